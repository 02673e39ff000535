"""A model's theory against finite-size samples of the same declaration, as one block of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agreement import Block, controls_for, extrapolated, kept_controls, recorded, seed_of

from numerics.simulation.compare import Row, bulk_intervals, compare
from numerics.simulation.samples import Samples, simulate
from numerics.solution import Prediction
from numerics.solver import Solver

SIZES = ((90, 240), (270, 120))
"""Base sizes, each with its number of samples: what is left of second order in 1/size is below the errors."""


NEAR = 1.0
"""Outliers nearer to the edge than this times the width of the bulk times size^(-2/3) have not left it at that size."""


def block_of(
    name: str,
    solver: Solver,
    theory: Prediction,
    seed: int,
    sizes: Sequence[tuple[int, int]] = SIZES,
    values: Mapping[str, Any] | None = None,
    **looked: Any,
) -> Block:
    """Everything that `compare` sets against the theory and the moments of the bulk, extrapolated in the size.

    Left out are outliers, and their overlaps, that the theory has too near to the bulk to be apart from it.
    values: the parameters of the samples, the theory's own if None. looked: what else of the samples is looked at, as
    `simulate` takes it: times=..., overlaps=True.
    """
    values = dict(values or theory.inputs)
    tables: list[dict[str, Row]] = []
    controls = []
    smallest: Samples | None = None
    for size, seeds in sorted(sizes):
        with recorded(controls_for(seeds)) as table:
            sample = simulate(solver, values, size, seeds, seed=seed_of(seed, name, size), **looked)
            controls.append(kept_controls(table(), seeds))
        smallest = smallest or sample  # what cannot be told apart there is compared in its mean at all sizes
        rows = compare(theory, sample, grouped_by=smallest)
        tables.append({r.quantity: r for r in rows if r.draws is not None and (r.compared or "moment" in r.quantity)})
    assert all(set(t) == set(tables[0]) for t in tables), [sorted(t) for t in tables]
    comparisons = []
    least = NEAR * min(size for size, _ in sizes) ** (-2 / 3)
    places = {quantity: place_of(theory, quantity, row.theory) for quantity, row in tables[-1].items()}
    for quantity, row in tables[-1].items():
        place = places.get(quantity.replace("right overlap of ", "").replace("left overlap of ", ""))
        if place is not None and abs(place[0]) < least * place[1]:
            continue
        mine = [table[quantity] for table in tables]
        differences = [r.draws - r.theory for r in mine]
        comparisons.append(
            extrapolated(
                quantity,
                row.theory,
                [size for size, _ in sorted(sizes)],
                differences,
                controls,
                row.theory_error or 0.0,
                None if places[quantity] is None or " at time " in quantity else places[quantity][0],
            )
        )
    return Block(name, tuple(comparisons))


def place_of(theory: Any, quantity: str, value: float) -> tuple[float, float] | None:
    """How far an outlier is from the nearest edge, positive above it, and the width of its bulk; None for others."""
    if "overlap" in quantity or "outlier" not in quantity:
        return None
    label = quantity.removeprefix("layer ").split(":")[0] if quantity.startswith("layer ") else ""
    layer = next(layer for layer in theory.layers if layer.label == label)
    moved = 0.0
    if " at time " in quantity and layer.shift_path is not None:
        moved = layer.shift_path[int(quantity.split()[-1])] - layer.shift
    intervals = [(low + moved, high + moved) for low, high in bulk_intervals(layer.bulk_edges)]
    distances = [value - edge for interval in intervals for edge in interval]
    return min(distances, key=abs), intervals[-1][1] - intervals[0][0]


def stretched(block: Block, share: float) -> Block:
    """What the block would be had the theory its outliers farther from the edge by this share of their distance."""
    moved = [
        c if c.distance is None else replace(c, difference=c.difference - share * c.distance) for c in block.comparisons
    ]
    return Block(block.name, tuple(moved))
