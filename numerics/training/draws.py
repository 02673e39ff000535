"""Standard normals for many sites: pseudo-random or quasi-random (Sobol), optionally with exact first and second
moments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from numerics.runtime.interface import Array

DRAWS = ("sobol", "matched", "plain")
"""Ways to draw normals. "sobol": the leading ones from a scrambled Sobol sequence, in antithetic pairs, with exact
first and second moments. "matched": independent, with exact moments. "plain": independent."""
POLYNOMIALS = (1, 1, 2, 2, 6, 6, 18)
"""Number of Sobol dimensions whose primitive polynomial over GF(2) has degree 1, 2, ..."""
SITES_PER_NORMAL = 4
"""Sites of a half per normal whose moments are made exact. Halves and the whole treat the same normals, so that their
biases differ only in size. More sites per normal lower the bias of moment matching; fewer lower the variance."""

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
    """Return standard normals for a number of sites, by name; deterministic in the seed.

    Args:
        groups: names of normals that belong to the same sites.
        shapes: shape per site of each name.
        sites: number of sites; a power of two for Sobol sequences.
        seed: entropy of the generator.
        how: one of `DRAWS`.
        paired: whether Sobol sites come in antithetic pairs.
    """
    rng = np.random.default_rng(seed)
    normals: dict[str, np.ndarray] = {}
    alone = tuple((name,) for name in sorted(shapes) if not any(name in group for group in groups))
    for names in (*groups, *alone):
        rows = sites // 2 if how == "sobol" and _turned_kind(names, shapes, paired) else sites
        tables = [rng.standard_normal((rows, math.prod(shapes[name]))) for name in names]
        if how == "sobol":
            columns = _in_turn([table.shape[1] for table in tables])[: even_dimensions(rows // 2)]
            points = _sobol(rng, rows, len(columns))[_shuffled(rng, rows)]
            for (k, kind), values in zip(columns, points.T, strict=True):
                tables[kind][:, k] = values
        normals.update({name: table.reshape(rows, *shapes[name]) for name, table in zip(names, tables, strict=True)})
    return _as_wanted(groups, normals, how, 0.5, paired)


def _in_turn(counts: Sequence[int]) -> list[tuple[int, int]]:
    """Order normals of several kinds as (index, kind), with the lowest index first: low indices carry most of the
    variance, and moment matching changes the first normals least.
    """
    return sorted((k, kind) for kind, count in enumerate(counts) for k in range(count))


def even_dimensions(points: int) -> int:
    """Return the number of Sobol dimensions that are equidistributed pairwise with this many points, a power of two.

    For dimensions with polynomials of degrees a and b, 2^m points are equidistributed in cells of area 2^(t - m), with
    t = a + b - 2 (a digital net). For t > m the correlations of a pair need not decrease with the number of points.
    Matching their moments then leaves a bias common to the halves, which bias correction does not detect.
    """
    degrees = [0, *(degree for degree, count in enumerate(POLYNOMIALS, 1) for _ in range(count))]
    return sum(4 ** (degree - 1) <= points for degree in degrees)


def halves(groups: Groups, normals: Mapping[str, Array], how: str, paired: bool = True) -> list[dict[str, Array]]:
    """Return the normals of the first and of the second half of the sites."""
    shapes = {name: x.shape[1:] for name, x in normals.items()}
    step = {name: 2 for group in groups if how == "sobol" and _turned_kind(group, shapes, paired) for name in group}
    drawn = {name: np.asarray(x)[:: step.get(name, 1)] for name, x in normals.items()}
    parts = [{name: np.array_split(x, 2)[side] for name, x in drawn.items()} for side in (0, 1)]
    return [_as_wanted(groups, part, how, 1.0, paired) for part in parts]


def _turned_kind(names: tuple[str, ...], shapes: Mapping[str, tuple[int, ...]], paired: bool) -> str | None:
    """Return the kind of normals that changes sign at the second site of each antithetic pair: the kind with the fewest
    normals, or None.

    Averages of odd functions of it vanish exactly, as does the output of a network before training. Sites of a pair
    share all other normals. A sector with a single kind has no antithetic pairs.
    """
    kinds = [name for name in names if math.prod(shapes[name])] if paired else []
    return min(kinds, key=lambda name: math.prod(shapes[name])) if len(kinds) > 1 else None


def _as_wanted(
    groups: Groups, drawn: Mapping[str, np.ndarray], how: str, part: float, paired: bool
) -> dict[str, Array]:
    """Return drawn normals with the moments and signs that a method of drawing prescribes. part: the smallest set of
    sites that is drawn, as a fraction of all sites.
    """
    if how == "plain":
        return {name: jax.device_put(x) for name, x in drawn.items()}
    if how == "matched":
        return {name: jax.device_put(x) for name, x in matched(groups, drawn, part).items()}
    shapes = {name: x.shape[1:] for name, x in drawn.items()}
    turned = {group: _turned_kind(group, shapes, paired) for group in groups}
    # antithetic signs make all moments with the other kinds vanish
    apart = tuple(names for group, kind in turned.items() for names in _apart(group, kind))
    normals = dict(matched(apart, drawn, part))
    for group, kind in turned.items():
        for name in group if kind is not None else ():
            pair = np.array([1.0, -1.0 if name == kind else 1.0])
            normals[name] = np.repeat(normals[name], 2, axis=0) * np.tile(pair, len(normals[name])).reshape(
                -1, *(1,) * (normals[name].ndim - 1)
            )
    return {name: jax.device_put(x) for name, x in normals.items()}


def _shuffled(rng: np.random.Generator, sites: int) -> np.ndarray:
    """Return a random order of the sites within each half, each of which is a separate Sobol sequence.

    Two scrambled Sobol sequences visit the same cells at the same steps. Without shuffling, normals of different
    sectors would be dependent.
    """
    halves = np.split(np.arange(sites), [sites // 2])
    return np.concatenate([rng.permutation(half) for half in halves])


def _apart(group: tuple[str, ...], kind: str | None) -> Groups:
    """Split the antithetic kind off a group."""
    return (group,) if kind is None else (tuple(name for name in group if name != kind), (kind,))


def _sobol(rng: np.random.Generator, sites: int, width: int) -> np.ndarray:
    """Return normals from a scrambled Sobol sequence; sites is a power of two."""
    if not width:
        return np.zeros((sites, 0))
    # imported here because it is slow to load and only Sobol draws need it
    from scipy.special import ndtri
    from scipy.stats import qmc

    sequence = qmc.Sobol(width, scramble=True, rng=rng)
    half = 0.5 ** (sequence.bits + 1)  # points are the lower ends of cells of width 2 half
    normals: np.ndarray = ndtri(sequence.random(sites) + half)
    return normals


def matched(groups: Groups, normals: Mapping[str, np.ndarray], part: float = 1.0) -> dict[str, np.ndarray]:
    """Return normals whose first and second sample moments are exactly those of independent standard normals.

    The bias of moment matching is of order 1/sites. If sites are few, only the leading normals of each kind are
    matched: they belong to the first directions of a basis, which carry most of the variance.
    """
    adjusted = {name: np.asarray(x) for name, x in normals.items()}
    for names in groups:
        parts = [adjusted[name].reshape(len(adjusted[name]), math.prod(adjusted[name].shape[1:])) for name in names]
        sites, width = len(parts[0]), sum(x.shape[1] for x in parts)
        if not width:
            continue
        share = min(1.0, part * sites / (SITES_PER_NORMAL * width))
        stops = [int(share * x.shape[1]) for x in parts]
        places = _in_turn(stops)
        turned = _turned(np.array([parts[kind][:, k] for k, kind in places]).reshape(len(places), sites))
        columns = [np.array(x) for x in parts]
        for (k, kind), column in zip(places, turned, strict=True):
            columns[kind][:, k] = column
        adjusted.update({name: x.reshape(adjusted[name].shape) for name, x in zip(names, columns, strict=True)})
    return adjusted


def _turned(moved: np.ndarray) -> np.ndarray:
    """Return rows that are centred, uncorrelated and of unit variance (whitening by a Cholesky factor)."""
    # imported here because it is slow to load and plain draws do not need it
    from scipy.linalg.blas import dsyrk, dtrsm

    if not len(moved):
        return moved
    sites = moved.shape[1]
    moved = moved - moved.mean(axis=1, keepdims=True)
    factor = np.linalg.cholesky(dsyrk(1 / sites, moved, lower=1))  # dsyrk fills the lower triangle only
    whitened: np.ndarray = dtrsm(1.0, factor, moved, lower=1)
    return whitened
