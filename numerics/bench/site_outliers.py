"""Speed of outliers where sites differ: A(z) holds averages over sites, and does not reduce to an eigenproblem."""

from __future__ import annotations

import json
from pathlib import Path

from numerics.bench.tools import Figure, python

SPIKES, POINTS, ACCURACY = 6, 400, 1e-9
"""Pairs of spikes; points of the scan that it is set against, and how far the dips that it shows are narrowed down."""

_SOLVED = f"""
import json, pathlib, tempfile, time
from dataclasses import replace
import numpy as np
from scipy.optimize import minimize_scalar
import derive
from numerics.bulk.branch import Branch
from numerics.outliers.finding import by_contour, smallest_singular_values
from numerics.solver import solve, spiked_problem
text = '''
from derive import Model, diag, goe, normal, outer, sectors, spectrum, trait
D = sectors("D")
s = trait("s", D, density=lambda x: 1 + x, low=0, high=1)
planted = goe("M", D) + diag(s)
for k in range({SPIKES}):
    v = normal(f"v{{k}}", D)
    planted = planted + (2 + k / 2) / D * (outer(s * v, v) + outer(v, s * v))
MODEL = Model(parameters=(), probe=spectrum(planted))
'''
with tempfile.TemporaryDirectory() as directory:
    place = pathlib.Path(directory) / "planted.py"
    place.write_text(text)
    theory = derive.load(place)
    solution = solve(theory.solver, {{}})
problem = spiked_problem(theory.solver, solution)
grid = np.linspace(solution.bulk_edges[-1][1] * 1.001, max(solution.outliers) * 1.05, {POINTS})

def worked(work):
    # a branch that has been asked remembers, so that each call gets its own
    seconds = []
    for _ in range(4):
        fresh = replace(problem, branch=Branch(problem.branch.law, problem.branch.p))
        start = time.process_time()
        found = work(fresh)
        seconds.append(time.process_time() - start)
    return min(seconds[1:]), found

def scanned(fresh):
    # the dips of the smallest singular value on a grid, each made narrower until it is known
    values = smallest_singular_values(fresh, grid)
    dips = [k for k in range(1, len(grid) - 1) if values[k] < min(values[k - 1], values[k + 1])]
    return [
        minimize_scalar(
            lambda x: smallest_singular_values(fresh, np.array([x]))[0],
            bounds=(grid[k - 1], grid[k + 1]), method="bounded", options={{"xatol": {ACCURACY} * grid[-1]}},
        ).x
        for k in dips
    ]

fast, found = worked(by_contour)
slow, dips = worked(scanned)
above = [z for z in found if z > grid[0]]
off = max(min(abs(z - x) for x in dips) for z in above) if dips else float("inf")
residual = solution.diagnostics["residual"]
print(json.dumps([fast, slow, len(found), len(above), len(dips), float(off), float(residual)]))
"""


def outliers_with_averages(references: Path | None) -> list[Figure]:
    """All outliers of an A(z) with averages over sites: polynomials on panels against a scan."""
    fast, slow, count, above, dips, off, residual = json.loads(python("-c", _SOLVED).strip().splitlines()[-1])
    return [
        Figure(
            "outliers where sites differ: panels over scan",
            slow / fast,
            "times",
            f"all {count} outliers, above and below the bulk, in {fast:.2f} s of work to a residual of {residual:.0e}; "
            f"dips of the smallest singular value of A(z) on {POINTS} points above it, narrowed down, in {slow:.2f} s: "
            f"{dips} of {above}, off by up to {off:.0e}",
        )
    ]
