"""Benchmark of sites that differ: groups of equal sites, exact or by quadrature, against sampled sites."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from numerics.bench.tools import BenchRow, python

ACCURACY = 1e-3
"""Relative error of the last value at which costs are compared; groups are far more accurate."""
LINEAR, NONLINEAR = "w(t) / 2 + lam * h(t)", "w(t) / 2 + lam * tanh(2 * h(t) + lam)"

_SOLVED = """
import json, pathlib, sys, tempfile
import derive
from numerics.bench.tools import time_in_turns
text = '''
from sympy import sqrt, tanh
from derive import Eq, Model, field, gaussian, mean, normal, parameter, sectors, training_clock, trait, whole_positive
D = sectors("D")
T = parameter("T", default=8, domain=whole_positive)
t = training_clock("t", steps=T)
lam = trait("lam", D, values=[0.2, 0.5, 1, 1.5], weights=[0.4, 0.3, 0.2, 0.1])
w, h = field("w", D, t), field("h", D, t)
a, b, c, d = (normal(name, D) for name in "abcd")
aside = field("aside", D)
MODEL = Model(
    parameters=(T,),
    equations=[
        Eq(w(0), normal("start", D)),
        Eq(h(t), gaussian("A", D, D) @ w(t) / sqrt(D)),
        Eq(w(t + 1), LAW),
        OTHER
    ],
    observe={"square": mean(lam * w(t) ** 2)MORE},
)
'''
law = sys.argv[1]
ways = {
    "groups": ("", ""),
    "sites": ("Eq(aside, tanh(a) * tanh(b) * tanh(c) * tanh(d))", ", 'aside': mean(aside**2)"),
}
theories, ways_to_solve = [], []
with tempfile.TemporaryDirectory() as directory:
    for name, (other, more) in ways.items():
        place = pathlib.Path(directory) / f"{name}.py"
        place.write_text(text.replace("LAW", law).replace("OTHER", other).replace("MORE", more))
        theory = derive.load(place)
        ways_to_solve.append(theory.solve)
        theories.append(theory)
    timings = time_in_turns(*ways_to_solve, repeats=3)
found = []
for theory, timing in zip(theories, timings, strict=True):
    solved = theory.solve()
    error = float(solved.errors["square"][-1]) if solved.errors else 0.0
    value, method = float(solved["square"][-1]), solved.method.sentence
    found.append([timing.seconds, timing.compilation, value, error, method])
print(json.dumps(found))
"""


def groups_of_sites(references: Path | None) -> Iterator[BenchRow]:
    """Groups of equal sites against sampled sites, at equal error."""
    for name, law in (("linear laws", LINEAR), ("laws that saturate", NONLINEAR)):
        (seconds, compilation, value, _, method), (sampled, _, near, error, _) = json.loads(python("-c", _SOLVED, law))
        needed = sampled * (error / (ACCURACY * abs(value))) ** 2
        yield BenchRow(
            f"sampled sites over groups of sites, {name}",
            needed / seconds,
            "times",
            f"four values of a trait, eight steps, relative error {ACCURACY:g}: {method}, in {seconds:.3f} s, "
            f"{value:.8f}; sampled sites in {sampled:.2f} s, {near:.5f} +- {error:.1g}, so {needed:.2f} s, since their "
            "error falls as one over the square root of the work",
            compilation,
        )
