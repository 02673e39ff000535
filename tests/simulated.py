"""A model's theory against finite-size samples of the same declaration, as one block of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agreement import Block, extrapolated, kept_controls, recorded, seed_of

from numerics.simulation.compare import Row, bulk_intervals, compare
from numerics.simulation.samples import simulate

SIZES = ((90, 240), (270, 120))
"""Base sizes, each with its number of samples: what is left of second order in 1/size is below the errors."""


def block_of(
    name: str,
    theory: Any,
    seed: int,
    sizes: Sequence[tuple[int, int]] = SIZES,
    values: Mapping[str, Any] | None = None,
    **looked: Any,
) -> Block:
    """Everything that `compare` sets against the theory and the moments of the bulk, extrapolated in the size.

    values: the parameters of the samples, the theory's own if None. looked: what else of the samples is looked at, as
    `simulate` takes it: times=..., overlaps=True.
    """
    solver, values = theory.solver, dict(values or theory.parameters)
    tables: list[dict[str, Row]] = []
    controls = []
    for size, seeds in sizes:
        with recorded() as table:
            sample = simulate(solver, values, size, seeds, seed=seed_of(seed, name, size), **looked)
            controls.append(kept_controls(table(), seeds))
        rows = compare(theory, sample)
        tables.append({r.quantity: r for r in rows if r.draws is not None and (r.compared or "moment" in r.quantity)})
    assert all(set(t) == set(tables[0]) for t in tables), [sorted(t) for t in tables]
    comparisons = []
    for quantity, row in tables[-1].items():
        mine = [table[quantity] for table in tables]
        differences = [r.draws - r.theory for r in mine]
        comparisons.append(
            extrapolated(
                quantity,
                row.theory,
                [size for size, _ in sizes],
                differences,
                controls,
                row.theory_error or 0.0,
                distance_of(theory, quantity, row.theory),
            )
        )
    return Block(name, tuple(comparisons))


def distance_of(theory: Any, quantity: str, value: float) -> float | None:
    """How far an outlier after the last step is from the nearest edge, positive above it; None for what is none."""
    if "overlap" in quantity or "outlier" not in quantity or " at time " in quantity:
        return None
    label = quantity.removeprefix("layer ").split(":")[0] if quantity.startswith("layer ") else ""
    layer = next(layer for layer in theory.layers if layer.label == label)
    ends: Mapping[float, float] = {abs(value - e): value - e for pair in bulk_intervals(layer.bulk_edges) for e in pair}
    return float(ends[min(ends)])


def stretched(block: Block, share: float) -> Block:
    """What the block would be had the theory its outliers farther from the edge by this share of their distance."""
    moved = [
        c if c.distance is None else replace(c, difference=c.difference - share * c.distance) for c in block.comparisons
    ]
    return Block(block.name, tuple(moved))
