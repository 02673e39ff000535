"""How many nodes the integrals of a forward pass need: half as many again until nothing moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from derive.errors import NumericalError

FIRST_NODES, MOST_NODES = 64, 486
"""In steps of a half, as integrals over three variables become expensive quickly."""
SETTLED = 1e-10
"""Nodes are added until order parameters and observables move by less than this, each relative to its largest."""
USABLE = 1e-6
"""What moves by more than this with the most nodes is refused."""
FASTER = 4.0
"""More nodes that gain less than this factor where little is left to gain has met rounding."""

Results = tuple[Any, Any, Any]
"""Order parameters, observables, number of finite times; of several points side by side along the first axis."""


def settle(run: Callable[[int], Results], points: int | None = None) -> tuple[Results, list[dict[str, Any]]]:
    """The results of run(nodes) with enough nodes, and for each point how they were found.

    points: how many there are side by side; None for one that stands alone.
    """
    nodes, moved = FIRST_NODES, math.inf
    before = _fetched(run(nodes))
    while True:
        nodes = 3 * nodes // 2
        now = _fetched(run(nodes))
        each = [_moved(_one(before, k), _one(now, k)) for k in ([None] if points is None else range(points))]
        earlier, moved = moved, max(each)
        rounding = moved < SETTLED * 1e2 and moved > earlier / FASTER
        if moved < SETTLED or nodes >= MOST_NODES or rounding:
            break
        before = now
    return now, [_method(nodes, change) for change in each]


def check_settled(method: dict[str, Any]) -> None:
    """Refuse results that still move."""
    if method.get("quadrature_error", 0.0) > USABLE:
        raise NumericalError(
            f"the Gaussian integrals have not settled: with {method['nodes']} nodes an axis results still move by "
            f"{method['quadrature_error']:.1e}; try smaller couplings, or fewer steps"
        )


def _method(nodes: int, moved: float) -> dict[str, Any]:
    told = f"Gaussian quadrature, {nodes} nodes per axis, moved by {moved:.1e} from {2 * nodes // 3}"
    return {"method": told, "nodes": nodes, "quadrature_error": moved}


def _fetched(results: Results) -> Results:
    order, observables, finite = jax.tree.map(np.asarray, results)
    return order, observables, finite


def _one(results: Results, point: int | None) -> Results:
    return results if point is None else jax.tree.map(lambda x: x[point], results)


def _moved(before: Results, now: Results) -> float:
    """The largest change of anything, relative to its own size; what has overflowed is judged elsewhere."""
    worst = 0.0
    for table, other in zip(before[:2], now[:2], strict=True):
        for name, new in other.items():
            if new.size and np.all(np.isfinite(new)):
                change, size = float(np.max(np.abs(new - table[name]))), float(np.max(np.abs(new)))
                worst = max(worst, change / size if size > 0 else change)
    return worst
