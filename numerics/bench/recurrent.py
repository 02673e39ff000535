"""Benchmark of Gaussian quadrature: a random recurrent network."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from numerics.bench.tools import BenchRow, cpu_seconds, python

GAIN, STEP, TIME, EARLIER = 1.5, 0.1, 100, 50
WIDTH, NETWORKS = 500, 16
ACCURACY, FEW, CALLS = 0.01, 24, 9
"""Relative error of <x(t) x(s)> at which costs are compared; nodes per axis that reach it; calls per median."""
_SOLVED = f"""
import json, pathlib, tempfile
import derive
from numerics.bench.tools import time_in_turns
from numerics.support.precision import in_float64
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
    solver, gains = theory.solver, iter([{GAIN} + 0.01 * call for call in range({CALLS} + 1)])

    @in_float64
    def with_few_nodes():
        return float(solver.forward_pass(solver.point({{"T": {TIME}, "g": {GAIN}}}), nodes={FEW})[1]["late"][-1])

    # a user's calls, at another g each time
    ways = time_in_turns(lambda: theory.solve(g=next(gains)), with_few_nodes, repeats={CALLS})
    found, few = theory.solve(), with_few_nodes()
value, error = float(found.observables["late"][-1]), found.method.quadrature.error
timings = [[way.seconds, way.compilation] for way in ways]
print(json.dumps([value, timings, error / value, abs(few - value) / value]))
"""


def recurrent_network(references: Path | None) -> Iterator[BenchRow]:
    """Two times of a random recurrent network: integrals against networks."""
    value, timings, error, off = json.loads(python("-c", _SOLVED))
    (seconds, compilation), (few_seconds, few_compilation) = timings
    found: list[float] = []
    slow = cpu_seconds(lambda: found.extend(_two_times(seed) for seed in range(NETWORKS)))
    spread, one = statistics.stdev(found), slow / NETWORKS
    told = (
        f"one network of width {WIDTH} {one:.3f} s with spread {spread:.3f} "
        f"({statistics.mean(found):.3f} +- {spread / math.sqrt(NETWORKS):.3f} of {NETWORKS})"
    )
    for name, ours, compiling, precision, accuracy in (
        (f"with {FEW} nodes an axis", few_seconds, few_compilation, off, max(off, ACCURACY)),
        ("as users call them", seconds, compilation, error, ACCURACY),
    ):
        needed = max(1.0, (spread / (accuracy * value)) ** 2)
        yield BenchRow(
            f"networks over integrals {name}, <x(t) x(s)> to {accuracy:.1%}",
            needed * one / ours,
            "times",
            f"g = {GAIN}, dt = {STEP}, <x({TIME}) x({EARLIER})> = {value:.10f}, relative error {precision:.0e}, in "
            f"{ours:.4f} s; {told}, so {needed:.0f} of them",
            compiling,
        )


def _two_times(seed: int) -> float:
    """Return <x(t) x(s)> of one hand-written network."""
    rng = np.random.default_rng(seed)
    weights = GAIN / math.sqrt(WIDTH) * rng.standard_normal((WIDTH, WIDTH))
    x = rng.standard_normal(WIDTH)
    early = x
    for time in range(TIME):
        if time == EARLIER:
            early = x
        x = (1 - STEP) * x + STEP * weights @ np.tanh(x)
    return float(np.mean(x * early))
