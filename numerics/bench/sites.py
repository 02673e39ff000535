"""Speed where sites differ: groups of equal sites, exactly or by integrals, against sampled sites."""

from __future__ import annotations

import json
from pathlib import Path

from numerics.bench.tools import Figure, python

ACCURACY = 1e-3
"""For this relative error of the last value work is compared: groups have it, and many more digits."""
LINEAR, NONLINEAR = "w(t) / 2 + lam * h(t)", "w(t) / 2 + lam * tanh(2 * h(t) + lam)"

_SOLVED = """
import json, pathlib, sys, tempfile, time
import derive
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
found = []
with tempfile.TemporaryDirectory() as directory:
    for name, (other, more) in ways.items():
        place = pathlib.Path(directory) / f"{name}.py"
        place.write_text(text.replace("LAW", law).replace("OTHER", other).replace("MORE", more))
        theory = derive.load(place)
        theory.solve()
        start = time.process_time()
        solved = theory.solve()
        seconds = time.process_time() - start
        errors = solved.errors["square"][-1] if solved.errors else 0.0
        found.append([seconds, float(solved["square"][-1]), float(errors), solved.diagnostics["method"]])
print(json.dumps(found))
"""


def groups_of_sites(references: Path | None) -> list[Figure]:
    """Groups of equal sites against sampled sites, at equal error."""
    figures = []
    for name, law in (("linear laws", LINEAR), ("laws that saturate", NONLINEAR)):
        groups, sites = json.loads(python("-c", _SOLVED, law))
        seconds, value, _, method = groups
        sampled, near, error, _ = sites
        needed = sampled * (error / (ACCURACY * abs(value))) ** 2
        figures.append(
            Figure(
                f"sampled sites over groups of sites, {name}",
                needed / seconds,
                "times",
                f"four values of a trait, eight steps, relative error {ACCURACY:g}: {method}, in {seconds:.3f} s of "
                f"CPU, {value:.8f}; sampled sites in {sampled:.2f} s, {near:.5f} +- {error:.1g}, so {needed:.2f} s if "
                "their error falls as one over the square root of the work; compiling not counted",
            )
        )
    return figures
