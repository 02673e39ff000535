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
        widths = [math.prod(shapes[name]) for name in names]
        table = rng.standard_normal((sites, sum(widths)))
        if how == "sobol":
            starts = np.cumsum([0, *widths])
            leading = [
                start + k for start, width in zip(starts, widths, strict=False) for k in range(min(width, LEADING))
            ]
            table[:, leading] = _sobol(rng, sites, len(leading))
        for name, part in zip(names, np.split(table, np.cumsum(widths)[:-1], axis=1), strict=True):
            made[name] = part.reshape(sites, *shapes[name])
    return as_wanted(groups, made, how)


def halves(groups: Groups, normals: Mapping[str, Array], how: str) -> list[dict[str, Array]]:
    """The normals of the first and of the second half of the sites."""
    middle = len(next(iter(normals.values()))) // 2
    parts = (
        {name: np.asarray(x)[half] for name, x in normals.items()} for half in (slice(middle), slice(middle, None))
    )
    return [as_wanted(groups, part, how) for part in parts]


def as_wanted(groups: Groups, normals: Mapping[str, np.ndarray], how: str) -> dict[str, Array]:
    found = normals if how == "plain" else matched(groups, normals)
    return {name: jnp.asarray(x) for name, x in found.items()}


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


def matched(groups: Groups, normals: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The normals of each group of sites moved, turned and stretched so that their first and second moments are exactly
    those of independent standard normals; where sites are few, only the first normals of each kind: they come first
    in the order of directions, and those carry most of the variance."""
    # slow to load, and plain draws do not need it
    from scipy.linalg.blas import dsyrk, dtrsm

    found = {name: np.asarray(x) for name, x in normals.items()}
    for names in groups:
        parts = [found[name].reshape(len(found[name]), -1) for name in names]
        sites, width = len(parts[0]), sum(part.shape[1] for part in parts)
        share = min(1.0, sites / (SITES_PER_NORMAL * width))
        counts = [int(share * part.shape[1]) for part in parts]
        table = np.asfortranarray(
            np.concatenate([part[:, :n] for part, n in zip(parts, counts, strict=True)], axis=1).T
        )
        table -= table.mean(axis=1, keepdims=True)
        factor = np.linalg.cholesky(dsyrk(1 / sites, table, lower=1))  # only the lower triangle is there, and read
        table = dtrsm(1.0, factor, table, lower=1, overwrite_b=1)
        starts = np.cumsum([0, *counts])
        for k, (name, part) in enumerate(zip(names, parts, strict=True)):
            whole = np.concatenate([table[starts[k] : starts[k + 1]].T, part[:, counts[k] :]], axis=1)
            found[name] = whole.reshape(found[name].shape)
    return found
