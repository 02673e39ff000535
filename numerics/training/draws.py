"""Standard normals for many sites: independent, or with first and second moments made exact."""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from numerics.runtime.interface import Array

DRAWS = ("sobol", "matched", "plain")
"""How normals are drawn: the leading ones from a scrambled Sobol sequence and all with exact first and second moments;
independently, with such moments; independently."""
LEADING = 16
"""Normals of each kind that come from a Sobol sequence: it is no better than chance in many dimensions."""
SITES_PER_NORMAL = 4
"""Moments are made exact of one normal for so many sites."""

Groups = tuple[tuple[str, ...], ...]
"""Names of normals that belong to the same sites."""


def draw(
    groups: Groups, shapes: dict[str, tuple[int, ...]], sites: int, seed: tuple[int, ...], how: str
) -> dict[str, Array]:
    """Standard normals for so many sites, by name; the same seed gives the same numbers."""
    rng = np.random.default_rng(seed)
    made: dict[str, np.ndarray] = {}
    alone = tuple((name,) for name in sorted(shapes) if not any(name in group for group in groups))
    for names in (*groups, *alone):
        tables = [rng.standard_normal((sites, math.prod(shapes[name]))) for name in names]
        if how == "sobol":
            leading = [table[:, :LEADING] for table in tables]
            stops = np.cumsum([part.shape[1] for part in leading])
            points = _sobol(rng, sites, stops[-1])[_shuffled(rng, sites)]
            for part, values in zip(leading, np.split(points, stops[:-1], axis=1), strict=True):
                part[:] = values
        made.update({name: table.reshape(sites, *shapes[name]) for name, table in zip(names, tables, strict=True)})
    return as_wanted(groups, made, how)


def halves(groups: Groups, normals: Mapping[str, Array], how: str) -> list[dict[str, Array]]:
    """The normals of the first and of the second half of the sites."""
    middle = len(next(iter(normals.values()))) // 2
    sides = slice(middle), slice(middle, None)
    return [as_wanted(groups, {name: np.asarray(x)[side] for name, x in normals.items()}, how) for side in sides]


def as_wanted(groups: Groups, normals: Mapping[str, np.ndarray], how: str) -> dict[str, Array]:
    """The normals with the moments that a way of drawing promises."""
    found = normals if how == "plain" else matched(groups, normals, LEADING if how == "sobol" else 0)
    return {name: jnp.asarray(x) for name, x in found.items()}


def _shuffled(rng: np.random.Generator, sites: int) -> np.ndarray:
    """Sites in random order within each half, and halves are Sobol sequences of their own.

    Two Sobol sequences, however scrambled, visit the same cells at the same steps: in their own order normals of
    different sites, or of what is left out of a field, would not be independent of each other.
    """
    halves = np.split(np.arange(sites), [sites // 2])
    return np.concatenate([rng.permutation(half) for half in halves])


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


def matched(groups: Groups, normals: Mapping[str, np.ndarray], leading: int = 0) -> dict[str, np.ndarray]:
    """The normals of each group of sites moved, turned and stretched so that their first and second moments are exactly
    those of independent standard normals.

    leading: so many of each kind are left as they are, and the others made exact among themselves and with them: a
    Sobol sequence has no bias, and would have one if it were stretched. Where sites are few, only the first normals of
    each kind are made exact: they come first in the order of directions, and those carry most of the variance.
    """
    found = {name: np.asarray(x) for name, x in normals.items()}
    for names in groups:
        parts = [found[name].reshape(len(found[name]), math.prod(found[name].shape[1:])) for name in names]
        sites, width = len(parts[0]), sum(part.shape[1] for part in parts)
        if not width:
            continue
        share = min(1.0, sites / (SITES_PER_NORMAL * width))
        stops = [(min(leading, part.shape[1]), int(share * part.shape[1])) for part in parts]
        given = np.concatenate([part[:, :first].T for part, (first, _) in zip(parts, stops, strict=True)])
        moved = np.concatenate([part[:, first:last].T for part, (first, last) in zip(parts, stops, strict=True)])
        turned = iter(_turned(given, moved))
        for name, part, (first, last) in zip(names, parts, stops, strict=True):
            inside = [next(turned) for _ in range(first, last)]
            columns = [part[:, :first], *(column[:, None] for column in inside), part[:, max(first, last) :]]
            found[name] = np.concatenate(columns, axis=1).reshape(found[name].shape)
    return found


def _turned(given: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Rows moved to mean zero, without correlation to the given rows and among themselves, with variance one."""
    # slow to load, and plain draws do not need it
    from scipy.linalg.blas import dsyrk, dtrsm

    if not len(moved):
        return moved
    sites = moved.shape[1]
    around = np.concatenate([np.ones((1, sites)), given])
    moved = moved - np.linalg.solve(around @ around.T, around @ moved.T).T @ around
    factor = np.linalg.cholesky(dsyrk(1 / sites, moved, lower=1))  # only the lower triangle is there, and read
    found: np.ndarray = dtrsm(1.0, factor, moved, lower=1)
    return found
