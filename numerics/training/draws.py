"""Standard normals for many sites: independent, or with first and second moments made exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from numerics.runtime.interface import Array

DRAWS = ("sobol", "matched", "plain")
"""How normals are drawn: the leading ones from a scrambled Sobol sequence, in pairs of sites that differ by a sign, and
all with exact first and second moments; independently, with such moments; independently."""
POLYNOMIALS = (1, 1, 2, 2, 6, 6, 18)
"""Primitive polynomials over two elements, of degree 1, 2, ...: how many dimensions of a Sobol sequence have them."""
SITES_PER_NORMAL = 4
"""Moments are made exact of one normal for so many sites of a half: of the same normals in halves and in the whole, so
that both have the same bias but for its size."""

Groups = tuple[tuple[str, ...], ...]
"""Names of normals that belong to the same sites."""


def draw(
    groups: Groups,
    shapes: dict[str, tuple[int, ...]],
    sites: int,
    seed: tuple[int, ...],
    how: str,
    paired: bool = True,
) -> dict[str, Array]:
    """Standard normals for so many sites, by name; the same seed gives the same numbers.

    paired: whether a Sobol sequence is drawn in pairs of sites that differ by a sign.
    """
    rng = np.random.default_rng(seed)
    made: dict[str, np.ndarray] = {}
    alone = tuple((name,) for name in sorted(shapes) if not any(name in group for group in groups))
    for names in (*groups, *alone):
        rows = sites // 2 if how == "sobol" and _turned_kind(names, shapes, paired) else sites
        tables = [rng.standard_normal((rows, math.prod(shapes[name]))) for name in names]
        if how == "sobol":
            columns = _in_turn([table.shape[1] for table in tables])[: even_dimensions(rows // 2)]
            points = _sobol(rng, rows, len(columns))[_shuffled(rng, rows)]
            for (k, kind), values in zip(columns, points.T, strict=True):
                tables[kind][:, k] = values
        made.update({name: table.reshape(rows, *shapes[name]) for name, table in zip(names, tables, strict=True)})
    return _as_wanted(groups, made, how, 0.5, paired)


def _in_turn(counts: Sequence[int]) -> list[tuple[int, int]]:
    """Normals of several kinds as (number, kind), the first of every kind first: they carry most of the variance, and
    what is made exact first is moved least."""
    return sorted((k, kind) for kind, count in enumerate(counts) for k in range(count))


def even_dimensions(points: int) -> int:
    """Dimensions of a Sobol sequence that so many of its points, a power of two, are used for.

    Of dimensions with polynomials of degrees a and b, 2^m points fill cells of area 2^(t - m) evenly, t = a + b - 2.
    Where t is above m nothing is known of a pair: correlations need not fall with the number of points, and what making
    moments exact does about those is a bias that halves of the points have as well, unseen in their difference.
    """
    degrees = [0, *(degree for degree, count in enumerate(POLYNOMIALS, 1) for _ in range(count))]
    return sum(4 ** (degree - 1) <= points for degree in degrees)


def halves(groups: Groups, normals: Mapping[str, Array], how: str, paired: bool = True) -> list[dict[str, Array]]:
    """The normals of the first and of the second half of the sites."""
    shapes = {name: x.shape[1:] for name, x in normals.items()}
    step = {name: 2 for group in groups if how == "sobol" and _turned_kind(group, shapes, paired) for name in group}
    drawn = {name: np.asarray(x)[:: step.get(name, 1)] for name, x in normals.items()}
    parts = [{name: np.array_split(x, 2)[side] for name, x in drawn.items()} for side in (0, 1)]
    return [_as_wanted(groups, part, how, 1.0, paired) for part in parts]


def _turned_kind(names: tuple[str, ...], shapes: Mapping[str, tuple[int, ...]], paired: bool) -> str | None:
    """The kind of normals whose sign is turned in the second site of each pair: the one with the fewest.

    What is odd in it then averages to zero exactly, as the output of a network does before training, however much the
    laws amplify it. Kinds are turned against each other, so that there is none where all normals are of one kind. Sites
    of a pair share all other normals: where what is turned is soon forgotten, there are as good as half the sites.
    """
    kinds = [name for name in names if math.prod(shapes[name])] if paired else []
    return min(kinds, key=lambda name: math.prod(shapes[name])) if len(kinds) > 1 else None


def _as_wanted(
    groups: Groups, drawn: Mapping[str, np.ndarray], how: str, part: float, paired: bool
) -> dict[str, Array]:
    """Normals that were drawn, with the moments and signs that a way of drawing promises; part: of all sites, that the
    smallest set has for which they are drawn."""
    if how == "plain":
        return {name: jax.device_put(x) for name, x in drawn.items()}
    if how == "matched":
        return {name: jax.device_put(x) for name, x in matched(groups, drawn, part).items()}
    shapes = {name: x.shape[1:] for name, x in drawn.items()}
    turned = {group: _turned_kind(group, shapes, paired) for group in groups}
    # with both signs, what is turned has no moment with the rest
    apart = tuple(names for group, kind in turned.items() for names in _apart(group, kind))
    found = dict(matched(apart, drawn, part))
    for group, kind in turned.items():
        for name in group if kind is not None else ():
            pair = np.array([1.0, -1.0 if name == kind else 1.0])
            found[name] = np.repeat(found[name], 2, axis=0) * np.tile(pair, len(found[name])).reshape(
                -1, *(1,) * (found[name].ndim - 1)
            )
    return {name: jax.device_put(x) for name, x in found.items()}


def _shuffled(rng: np.random.Generator, sites: int) -> np.ndarray:
    """Sites in random order within each half, and halves are Sobol sequences of their own.

    Two Sobol sequences, however scrambled, visit the same cells at the same steps: in their own order normals of
    different sites, or of what is left out of a field, would not be independent of each other.
    """
    halves = np.split(np.arange(sites), [sites // 2])
    return np.concatenate([rng.permutation(half) for half in halves])


def _apart(group: tuple[str, ...], kind: str | None) -> Groups:
    return (group,) if kind is None else (tuple(name for name in group if name != kind), (kind,))


def _sobol(rng: np.random.Generator, sites: int, width: int) -> np.ndarray:
    """Normals from a scrambled Sobol sequence; sites is a power of two."""
    if not width:
        return np.zeros((sites, 0))
    # slow to load, and no other way of drawing needs it
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(width, scramble=True, rng=rng).random(sites)
    found: np.ndarray = ndtri(np.clip(points, 1e-12, 1 - 1e-12))
    return found


def matched(groups: Groups, normals: Mapping[str, np.ndarray], part: float = 1.0) -> dict[str, np.ndarray]:
    """The normals of each group of sites moved, turned and stretched so that their first and second moments are exactly
    those of independent standard normals.

    The bias that this has is of order 1/sites. Where sites are few, only the first normals of each kind are made exact,
    as many as this part of the sites allows: they come first in the order of directions, and those carry most of the
    variance.
    """
    found = {name: np.asarray(x) for name, x in normals.items()}
    for names in groups:
        parts = [found[name].reshape(len(found[name]), math.prod(found[name].shape[1:])) for name in names]
        sites, width = len(parts[0]), sum(x.shape[1] for x in parts)
        if not width:
            continue
        share = min(1.0, part * sites / (SITES_PER_NORMAL * width))
        stops = [int(share * x.shape[1]) for x in parts]
        places = _in_turn(stops)
        turned = _turned(np.array([parts[kind][:, k] for k, kind in places]).reshape(len(places), sites))
        made = [np.array(x) for x in parts]
        for (k, kind), column in zip(places, turned, strict=True):
            made[kind][:, k] = column
        found.update({name: x.reshape(found[name].shape) for name, x in zip(names, made, strict=True)})
    return found


def _turned(moved: np.ndarray) -> np.ndarray:
    """Rows moved to mean zero, without correlation among themselves, with variance one."""
    # slow to load, and plain draws do not need it
    from scipy.linalg.blas import dsyrk, dtrsm

    if not len(moved):
        return moved
    sites = moved.shape[1]
    moved = moved - moved.mean(axis=1, keepdims=True)
    factor = np.linalg.cholesky(dsyrk(1 / sites, moved, lower=1))  # only the lower triangle is there, and read
    found: np.ndarray = dtrsm(1.0, factor, moved, lower=1)
    return found
