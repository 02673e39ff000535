"""The number of quadrature nodes of a forward pass, increased until results converge."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import jax
import numpy as np

from derive.errors import NumericalError
from numerics.runtime.keys import OrderKey
from numerics.runtime.rows import RowsPass
from numerics.runtime.samples import SampledPass
from numerics.support.reports import USABLE, Closure, QuadratureReport, TrainingMethod


@dataclass(frozen=True)
class Integrals:
    """The domain of integration, the initial and maximum number of nodes, and the factor by which their number
    grows."""

    first: int
    most: int
    factor: Fraction
    over: Literal["Gaussian fields", "trait"]
    trouble: str

    def more(self, nodes: int) -> int:
        return int(nodes * self.factor)

    def fewer(self, nodes: int) -> int:
        return int(nodes / self.factor)

    def method(self, nodes: int, error: float) -> TrainingMethod:
        """Return the report on a pass with this number of nodes, whose results have this relative quadrature error."""
        closure: Closure = "exact" if self.over == "trait" else "quadrature"
        return TrainingMethod(closure, QuadratureReport(self.over, nodes, self.fewer(nodes), error))


OF_LAWS = Integrals(
    64,
    486,
    Fraction(3, 2),  # as integrals over three variables become expensive quickly
    "Gaussian fields",
    "the averages over Gaussian fields have not converged: with {nodes} nodes per axis results still change by "
    "{error:.1e}; try smaller couplings, or fewer steps",
)
OF_TRAITS = Integrals(
    32,
    1024,
    Fraction(2),
    "trait",
    "the averages over the density of a trait have not converged: with {nodes} nodes results still change by "
    "{error:.1e}; if its density has no such moment, cut it off with low=... and high=..., or take fewer steps",
)


def integrals_of(training: RowsPass | SampledPass) -> Integrals:
    """Return the integrals of a forward pass."""
    return OF_TRAITS if training.training.closure == "exact" else OF_LAWS


SETTLED = 1e-10
"""Relative change of order parameters and observables, each in units of its largest entry, at which nodes suffice."""
HOPELESS = 0.5
"""Relative change with many nodes above which results have no limit."""
FASTER = 4.0
"""Least factor by which more nodes must reduce a small change; below it, rounding errors dominate."""

ROUNDING = 1e-14
"""Changes below this, relative to the largest of all results, may be rounding errors of zeros."""

BY_VALUE = ("S", "W")
"""Kinds of order parameters that have one entry per diagonal value."""
BESIDE, WEIGHING = 0.05, 1e-8
"""Distance of poles from the ends of these values, in units of their range, and the weight above which a value
counts."""
UNIT = 1.0
"""The typical size of bounded functions of normal variables."""

Results = tuple[Any, Any, Any]
"""Order parameters, observables, number of finite times; several points along the first axis."""


def settle(
    run: Callable[[int], Results], integrals: Integrals, points: int | None = None
) -> tuple[Results, list[TrainingMethod]]:
    """Return the results of run(nodes) with enough nodes, and a report for each point.

    points: number of points in a batch; None for a single one.
    """
    nodes, moved = integrals.first, math.inf
    which = [None] if points is None else list(range(points))
    before = _fetched(run(nodes))
    while True:
        nodes = integrals.more(nodes)
        now = _fetched(run(nodes))
        each = [_moved(_one(before, k), _one(now, k)) for k in which]
        earlier, moved = moved, max(each)
        rounding = moved < SETTLED * 1e2 and moved > earlier / FASTER
        hopeless = moved > HOPELESS and nodes > 4 * integrals.first
        if moved < SETTLED or nodes >= integrals.most or rounding or hopeless:
            break
        before = now
    if moved > USABLE:  # results may all be zero but for the rounding of what is integrated, which has its own size
        each = [min(change, _moved(_one(before, k), _one(now, k), UNIT)) for k, change in zip(which, each, strict=True)]
    return now, [integrals.method(nodes, change) for change in each]


def check_settled(method: TrainingMethod) -> None:
    """Refuse results whose quadrature has not converged."""
    report = method.quadrature
    if report is not None and not report.converged:
        integrals = OF_TRAITS if report.over == OF_TRAITS.over else OF_LAWS
        raise NumericalError(integrals.trouble.format(nodes=report.nodes, error=report.error))


def _fetched(results: Results) -> Results:
    order, observables, finite = jax.tree.map(np.asarray, results)
    return order, observables, finite


def _poles(order: Mapping[OrderKey, np.ndarray]) -> dict[str, list[tuple[complex, complex]]]:
    """Return, for each sector with differing sites and each diagonal entry, poles of functions as steep as a resolvent
    near the bulk. The ends of the significant values depend on their number."""
    found = {}
    for key, law in order.items():
        if key.kind == "S":
            sector = str(key.of[0])
            counts = law[:, -1] > WEIGHING * np.max(law[:, -1])
            ends = [(float(np.min(entry)), float(np.max(entry))) for entry in law[counts, :-1].T]
            offs = [BESIDE * (high - low) * (1 + 1j) or 1.0 for low, high in ends]
            found[sector] = [(low - off, high + off) for (low, high), off in zip(ends, offs, strict=True)]
    return found


def _without_nodes(
    order: Mapping[OrderKey, np.ndarray], poles: Mapping[str, list[tuple[complex, complex]]]
) -> dict[tuple[Any, ...], np.ndarray]:
    """Return order parameters that can be compared between numbers of nodes: those tabulated by diagonal value are
    averaged with functions of that value that have these poles.
    """
    found: dict[tuple[Any, ...], np.ndarray] = {key: x for key, x in order.items() if key.kind not in BY_VALUE}
    for key, value in order.items():
        if key.kind in BY_VALUE:
            law = order[OrderKey("S", key.of[0])]
            weights = law[:, -1] if key.kind == "S" else value
            for k, (entry, beside) in enumerate(zip(law[:, :-1].T, poles[key.of[0]], strict=True)):
                for end, pole in enumerate(beside):
                    found[(*key, k, end)] = np.tensordot(1 / (entry - pole), weights, axes=1)
    return found


def _one(results: Results, point: int | None) -> Results:
    return results if point is None else jax.tree.map(lambda x: x[point], results)


def _moved(before: Results, now: Results, unit: float = 0.0) -> float:
    """Return the largest change of any result, relative to its own size; overflow is handled elsewhere. unit: the size
    of the integrands, used if it is larger than all results.
    """
    worst = 0.0
    poles = _poles(now[0])
    before, now = ((_without_nodes(some[0], poles), *some[1:]) for some in (before, now))
    sizes = [float(np.max(np.abs(x))) for table in now[:2] for x in table.values() if x.size and np.all(np.isfinite(x))]
    rounding = ROUNDING * max([unit, *sizes])
    for table, other in zip(before[:2], now[:2], strict=True):
        for name, new in other.items():
            if new.size and np.all(np.isfinite(new)):
                change, size = float(np.max(np.abs(new - table[name]))), float(np.max(np.abs(new)))
                if change > rounding:
                    worst = max(worst, change / size if size > 0 else change)
    return worst
