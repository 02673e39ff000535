"""What certificates cost beside the solutions that they are of."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from derive.errors import DeriveError
from numerics.bench.tools import Figure, worked
from numerics.solver import load_built, solve

REPEATS = 5
SETTINGS = (
    "spiked_wigner",
    "anti_hebbian",
    "coupled_spikes",
    "deep_linear",
    "structured_regression",
    "extensive_two_layer",
    "extensive_multilayer",
)
"""Settings whose solutions are exact; where sites are sampled a certificate takes a few thousandths of the time."""


def certificates(references: Path | None) -> list[Figure]:
    """Certificates: what they take beside a solution, at parameters that are new to both."""
    return [_figure(name) for name in SETTINGS]


def _figure(name: str) -> Figure:
    solver = load_built(name)
    if solver is None:
        raise DeriveError(f"the setting {name} has not been built; run derive build first")
    values: dict[str, Any] = {q.name: q.default for q in solver.setting.parameters}
    moving = next(q.name for q in solver.setting.parameters if not q.whole)
    plain, extra = [], []
    for k in range(REPEATS + 1):  # the first compiles
        new = {**values, moving: values[moving] * (1 + 1e-3 * k)}
        first = worked(lambda new=new: solve(solver, new, overlaps=True))  # type: ignore[misc]
        again = worked(lambda new=new: solve(solver, new, overlaps=True))  # type: ignore[misc]
        extra.append(worked(lambda new=new: solve(solver, new, overlaps=True, certify=None)) - again)  # type: ignore[misc]
        plain.append(first)
    solution, certificate = statistics.median(plain[1:]), statistics.median(extra[1:])
    told = f"{1e3 * certificate:.1f} ms beside {1e3 * solution:.1f} ms"
    return Figure(f"certificate of {name}", certificate / solution, "times a solution", told)
