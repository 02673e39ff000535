"""Benchmark of outliers where sites differ and A(z) does not reduce to an eigenproblem."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from numerics.bench.tools import BenchRow, python

SPIKES, POINTS, ACCURACY = 6, 400, 1e-9
"""Pairs of spikes; points of the reference scan, and the tolerance of its minima."""

_SOLVED = f"""
import json, pathlib, tempfile
import numpy as np
import derive
from numerics.bench.scans import farthest, fresh, scan
from numerics.bench.tools import time_in_turns
from numerics.outliers.finding import by_contour
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

found, dips = by_contour(fresh(problem)), scan(fresh(problem), grid, {ACCURACY})
ways = lambda: by_contour(fresh(problem)), lambda: scan(fresh(problem), grid, {ACCURACY})
fast, slow = time_in_turns(*ways, repeats=3)
above = [z for z in found if z > grid[0]]
residual = solution.diagnostics.residual
times = [fast.seconds, slow.seconds, fast.compilation]
print(json.dumps([*times, len(found), len(above), len(dips), float(farthest(above, dips)), float(residual)]))
"""


def outliers_with_averages(references: Path | None) -> Iterator[BenchRow]:
    """All outliers of an A(z) with averages over sites: polynomials on panels against a scan."""
    printed = json.loads(python("-c", _SOLVED).strip().splitlines()[-1])
    fast, slow, compilation, count, above, dips, off, residual = printed
    yield BenchRow(
        "outliers where sites differ: scan over panels",
        slow / fast,
        "times",
        f"all {count} outliers, above and below the bulk, in {fast:.2f} s to a residual of {residual:.0e}; minima of "
        f"the smallest singular value of A(z) on {POINTS} points above it, refined, in {slow:.2f} s: {dips} of "
        f"{above}, off by up to {off:.0e}",
        compilation,
    )
