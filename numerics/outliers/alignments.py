"""Squared cosines between eigenvectors of outliers and declared directions, from residues of the resolvent.

For a unit direction g the matrix element g^T (z - M)^-1 g has the residue (g^T v)^2 at an outlier with eigenvector v.
At a degenerate outlier the residue is the squared norm of the projection of g on the eigenspace. Only A'(z) between the
null vectors of A(z) is inverted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from numerics.outliers.poles import Pole
from numerics.outliers.problem import driven_by, responses_at
from numerics.runtime.interface import Direction
from numerics.runtime.operators import Operator
from numerics.runtime.point import Point
from numerics.support.compiling import compiled
from numerics.support.nearby import Nearby
from numerics.support.precision import in_float64


@dataclass(frozen=True)
class OutlierAlignment:
    """Squared cosines of outlier eigenvectors (or of the eigenspace of degenerate ones) with a declared direction.

    Attributes:
        name, side: the direction, and the vectors with which it is compared ("right", or "left" singular vectors).
            times: times of the direction, None if it has none. series: whether all its times are requested.
        labelled: whether the direction has labels.
        counts: multiplicity of each outlier.
        values: one per outlier, time and label, NaN where the direction is zero.
        errors: their standard errors, None if values are exact.
    """

    name: str
    side: str
    times: tuple[int, ...] | None
    series: bool
    labelled: bool
    counts: tuple[int, ...]
    values: np.ndarray
    errors: np.ndarray | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the values after that of outliers."""
        return (*(("time",) if self.series else ()), *(("label",) if self.labelled else ()))

    def shaped(self, values: np.ndarray) -> np.ndarray:
        """Drop the axes of time and label that the direction does not have."""
        values = values if self.series else values[:, 0]
        return values if self.labelled else values[..., 0]


def times_of(direction: Direction, p: Point, steps: str | None) -> tuple[int, ...] | None:
    """Return the times at which a direction is evaluated; None if it has none."""
    if not direction.timed or steps is None:
        return None
    return tuple(range(getattr(p, steps))) if direction.time is None else (int(direction.time(p)),)


@in_float64
def alignments(outlier_poles: Sequence[Pole], steps: str | None) -> list[OutlierAlignment]:
    """Return the alignment of every requested direction."""
    if not outlier_poles:
        return []
    p, counts = outlier_poles[0].problem.p, tuple(pole.count for pole in outlier_poles for _ in range(pole.count))
    aligned = []
    for one in outlier_poles[0].problem.probe.directions:
        times, labelled = times_of(one, p, steps), bool(one.labels)
        series = times is not None and one.time is None
        aligned.append(OutlierAlignment(one.name, one.side, times, series, labelled, counts, _rows(outlier_poles, one)))
    return aligned


@in_float64
def with_errors(
    here: Sequence[OutlierAlignment], others: Sequence[Sequence[OutlierAlignment]], nearby: Nearby
) -> list[OutlierAlignment]:
    """Return bias-corrected alignments with standard errors from Monte Carlo replicates; NaN if too few replicates have
    them.
    """
    estimates = []
    for number, one in enumerate(here):
        values, errors = np.array(one.values), np.full(one.values.shape, np.nan)
        for at in np.ndindex(one.values.shape):
            if np.isfinite(one.values[at]):
                there = [float(other[number].values[at]) for other in others]
                values[at], error = nearby.estimate(float(one.values[at]), there)
                errors[at] = error if np.isfinite(error) else np.nan
        estimates.append(replace(one, values=values, errors=errors))
    return estimates


def unknown_errors(here: Sequence[OutlierAlignment]) -> list[OutlierAlignment]:
    """Return the alignments with standard errors NaN."""
    return [replace(one, errors=np.full(one.values.shape, np.nan)) for one in here]


def _rows(outlier_poles: Sequence[Pole], direction: Direction) -> np.ndarray:
    """Return squared cosines: one row per outlier, over times and labels."""
    p = outlier_poles[0].problem.p
    labels = math.prod(int(getattr(p, size, size)) for size in direction.labels)
    taken = None if direction.time is None else int(direction.time(p))
    rows = []
    for pole in outlier_poles:
        squared = _squared(pole, direction).reshape(-1, labels)
        rows += [squared if taken is None else squared[taken : taken + 1]] * pole.count
    return np.array(rows)


def _squared(pole: Pole, direction: Direction) -> np.ndarray:
    """Return squared cosines of the eigenvector at a pole with a direction at all its times and labels."""
    seen, driven, squares = projections(pole, direction)
    weight = np.sum(seen * driven.T, axis=1)
    return np.where(squares > 0, weight / np.where(squares > 0, squares, 1.0), np.nan)


@in_float64
def projections(pole: Pole, direction: Direction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the overlaps of the direction with the right null vectors, those of its source with the left null vectors,
    and its mean square. The residue between two directions is the product of the first for one of them and the second
    for the other.
    """
    problem, order = pole.problem, dict(pole.problem.order)
    needed = direction.later is not None or direction.earlier is not None or direction.sited
    r = responses_at(problem, pole.z) if needed else np.zeros(0)
    driven, seen, products = driven_by(problem, direction, pole.z, r)
    vectors, laws = pole.right, problem.probe.laws(problem.p)
    if direction.later is not None:
        (rows,) = _written(direction.later, laws, problem.p, pole.z, r, order)
        fed, own = rows[:, : len(vectors)], rows[:, len(vectors) :]
        vectors = np.concatenate([vectors, -np.linalg.solve(own, fed @ vectors)])
    if direction.earlier is not None:
        own, impulse, added = _written(direction.earlier, laws, problem.p, pole.z, r, order)
        driven = driven + added @ np.linalg.solve(own, impulse)
    return seen @ vectors, pole.answers(driven) * pole.scale(direction.side), np.diagonal(products)


def _written(function: Callable[..., Any], laws: tuple[Any, ...], *arguments: Any) -> list[np.ndarray]:
    """Return the operators of a generated function, one or several, as dense arrays; compiled if sites differ."""
    found = _compiled(function)(*arguments, *laws) if laws else _arrays(function(*arguments), np)
    return [np.asarray(x) for x in found]


@lru_cache(maxsize=64)
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return compiled(lambda *arguments: _arrays(function(*arguments), jnp), quickly=True)


def _arrays(operators: Operator | tuple[Operator, ...], xp: Any) -> list[Any]:
    return [part.array(xp) for part in (operators if isinstance(operators, tuple) else (operators,))]
