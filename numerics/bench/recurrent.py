"""Speed of integrals over Gaussian fields: a random recurrent network."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path

import numpy as np

from numerics.bench.tools import Figure, python, worked

GAIN, STEP, TIME, EARLIER = 1.5, 0.1, 100, 50
WIDTH, NETWORKS = 500, 16
ACCURACY, FEW, CALLS = 0.01, 24, 9
"""For this error of <x(t) x(s)> work is compared; so many nodes an axis have less; calls whose median is taken."""
BEFORE = {20_000: (0.07, 50.0), 100_000: (0.025, 315.0), 400_000: (0.016, 1260.0)}
"""The sampler that once did this: by samples how far it was off, and its work in networks of this width, timed side by
side with them; the last one's work is four times that of the one before."""

_SOLVED = f"""
import json, pathlib, statistics, tempfile, time
import derive
from numerics.precision import in_float64
text = '''
from sympy import tanh, sqrt
from derive import Eq, Model, field, gaussian, mean, normal, parameter, sectors, training_clock, whole_positive
D = sectors("D")
T = parameter("T", default={TIME}, domain=whole_positive)
g = parameter("g", default={GAIN})
t = training_clock("t", steps=T)
x = field("x", D, t)
MODEL = Model(
    parameters=(T, g),
    equations=[
        Eq(x(0), normal("w", D)),
        Eq(x(t + 1), {1 - STEP} * x(t) + {STEP} * g / sqrt(D) * gaussian("J", D, D) @ tanh(x(t))),
    ],
    observe={{"late": mean(x(t) * x(t - {TIME - EARLIER}))}},
)
'''
with tempfile.TemporaryDirectory() as directory:
    place = pathlib.Path(directory) / "recurrent.py"
    place.write_text(text)
    theory = derive.load(place)
    theory.solve()

    def seconds_of(work):
        spent = []
        for call in range({CALLS}):
            start = time.process_time()
            work(call)
            spent.append(time.process_time() - start)
        return statistics.median(spent)

    seconds = seconds_of(lambda call: theory.solve(g={GAIN} - 0.01 * call))
    found, solver = theory.solve(), theory.solver

    @in_float64
    def with_few_nodes(call):
        return float(solver.forward_pass(solver.point({{"T": {TIME}, "g": {GAIN}}}), nodes={FEW})[1]["late"][-1])

    few = with_few_nodes(0)
    few_seconds = seconds_of(with_few_nodes)
value = float(found.observables["late"][-1])
print(json.dumps([value, seconds, found.diagnostics["quadrature_error"], abs(few - value) / value, few_seconds]))
"""


def recurrent_network(references: Path | None) -> list[Figure]:
    """Two times of a random recurrent network: integrals against networks."""
    value, seconds, error, off, few_seconds = json.loads(python("-c", _SOLVED))
    found: list[float] = []
    slow = worked(lambda: found.extend(_two_times(seed) for seed in range(NETWORKS)))
    spread = statistics.stdev(found)
    needed = max(1.0, (spread / (ACCURACY * value)) ** 2)
    one, mean = slow / NETWORKS, statistics.mean(found)
    far, networks = BEFORE[max(BEFORE)]
    sampled = networks * one * (far / ACCURACY) ** 2
    before = ", ".join(f"{n} samples low by {x:.1%} in {k * one:.1f} s" for n, (x, k) in BEFORE.items())
    return [
        Figure(
            f"sampling, as it was, over integrals, <x(t) x(s)> to {ACCURACY:.0%}",
            sampled / seconds,
            "times",
            f"a user's call, at another g each time, has ten digits in {seconds:.4f} s of CPU, compiling not counted; "
            f"sampling, as it was: {before}, so {sampled:.0f} s, scaled from the last of these as one over the square "
            f"of the error. A bare pass with {FEW} nodes an axis is off by {off:.2%} in {few_seconds:.4f} s, which is "
            f"{sampled / few_seconds:.0f} times less",
        ),
        Figure(
            f"networks over integrals, <x(t) x(s)> to {ACCURACY:.0%}",
            needed * one / seconds,
            "times",
            f"g = {GAIN}, dt = {STEP}, <x({TIME}) x({EARLIER})> = {value:.10f} to {error:.0e} in {seconds:.3f} s of "
            f"CPU, compiling not counted; one network of width {WIDTH} {one:.3f} s with spread {spread:.3f}, so "
            f"{needed:.0f} of them ({mean:.3f} +- {spread / math.sqrt(NETWORKS):.3f} of {NETWORKS}); for a tenth of "
            "the error a hundred times as many, and integrals have it already",
        ),
    ]


def _two_times(seed: int) -> float:
    """<x(t) x(s)> of one network, written by hand."""
    rng = np.random.default_rng(seed)
    weights = GAIN / math.sqrt(WIDTH) * rng.standard_normal((WIDTH, WIDTH))
    x = rng.standard_normal(WIDTH)
    early = x
    for time in range(TIME):
        if time == EARLIER:
            early = x
        x = (1 - STEP) * x + STEP * weights @ np.tanh(x)
    return float(np.mean(x * early))
