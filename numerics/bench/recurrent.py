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
ACCURACY = 0.01
SAMPLED_BEFORE = "sampled, it was low by 7, 2.5 and 1.6 percent with 20000, 100000 and 400000 samples"

_SOLVED = f"""
import json, pathlib, sys, tempfile, time
import derive
text = '''
from sympy import tanh, sqrt
from derive import Eq, Model, field, gaussian, mean, normal, parameter, sectors, training_clock, whole_positive
D = sectors("D")
T = parameter("T", default={TIME}, domain=whole_positive)
t = training_clock("t", steps=T)
x = field("x", D, t)
MODEL = Model(
    parameters=(T,),
    equations=[
        Eq(x(0), normal("w", D)),
        Eq(x(t + 1), {1 - STEP} * x(t) + {STEP * GAIN} / sqrt(D) * gaussian("J", D, D) @ tanh(x(t))),
    ],
    observe={{"late": mean(x(t) * x(t - {TIME - EARLIER}))}},
)
'''
with tempfile.TemporaryDirectory() as directory:
    place = pathlib.Path(directory) / "recurrent.py"
    place.write_text(text)
    theory = derive.load(place)
    theory.solve()
    start = time.process_time()
    found = theory.solve()
    seconds = time.process_time() - start
print(json.dumps([float(found.observables["late"][-1]), seconds, found.diagnostics["quadrature_error"]]))
"""


def recurrent_network(references: Path | None) -> list[Figure]:
    """Two times of a random recurrent network: integrals against networks."""
    value, seconds, error = json.loads(python("-c", _SOLVED))
    found: list[float] = []
    slow = worked(lambda: found.extend(_two_times(seed) for seed in range(NETWORKS)))
    spread = statistics.stdev(found)
    needed = max(1.0, (spread / (ACCURACY * value)) ** 2)
    one, mean = slow / NETWORKS, statistics.mean(found)
    return [
        Figure(
            f"networks over integrals, <x(t) x(s)> to {ACCURACY:.0%}",
            needed * one / seconds,
            "times",
            f"g = {GAIN}, dt = {STEP}, <x({TIME}) x({EARLIER})> = {value:.10f} to {error:.0e} in {seconds:.3f} s of "
            f"CPU, compiling not counted; one network of width {WIDTH} {one:.3f} s with spread {spread:.3f}, so "
            f"{needed:.0f} of them ({mean:.3f} +- {spread / math.sqrt(NETWORKS):.3f} of {NETWORKS}); {SAMPLED_BEFORE}",
        )
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
