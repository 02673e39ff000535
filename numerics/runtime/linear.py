"""Linear laws with constant coefficients, as tables of terms.

With w = 1/(1 + z) for a delay by one step, the fields x of a site obey S(w) x = drives + noises. Fields and sources may
have labels; S, responses and correlations are then matrices over labels. A coefficient is a function of the parameters
and of the traits of a site: a number, or a column with one entry per label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .point import Point

Coefficient = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class SiteField:
    """A field or source on the sites of a sector. labels(p): number of labels; None for one."""

    name: str
    sector: str
    labels: Callable[[Point], Any] | None = None


@dataclass(frozen=True, eq=False)
class LinearTerm:
    """The term coefficient * w^delay (1 - w)^power times a field or source, in the equation of `target`.

    Near w = 1, the stationary limit, terms with power 0 do not cancel. acting(p): matrix on labels, applied before the
    coefficient.
    """

    target: str
    of: str
    coefficient: Coefficient
    delay: int = 0
    power: int = 0
    acting: Callable[[Point], Any] | None = None


@dataclass(frozen=True, eq=False)
class MemoryTerm:
    """The term coefficient * R[a, noise] * on in the equation of `target`, where (a, noise) = response.

    fresh: whether the random matrix is redrawn at each step, so that only equal-time responses enter.
    """

    target: str
    on: str
    coefficient: Coefficient
    response: tuple[str, str]
    fresh: bool = False


@dataclass(frozen=True, eq=False)
class NoiseCovariance:
    """The covariance <u_left u_right> = coefficient * C[a, b], with (a, b) = of. fresh: at equal times only."""

    left: str
    right: str
    coefficient: Coefficient
    of: tuple[str, str]
    fresh: bool = False


@dataclass(frozen=True, eq=False)
class LinearSitesOf:
    """Linear laws on the sites of all sectors.

    Attributes:
        traits: names and sectors of traits.
        sites(p, nodes): their laws, densities at this many nodes.
        settles: whether one of them is a density, so that nodes must converge.
        operator: the terms of S, which acts on the fields of a site.
    """

    fields: tuple[SiteField, ...]
    sources: tuple[SiteField, ...]
    traits: tuple[tuple[str, str], ...]
    operator: tuple[LinearTerm, ...]
    memories: tuple[MemoryTerm, ...]
    covariances: tuple[NoiseCovariance, ...]
    settles: bool
    sites: Callable[[Point, int], Any]


@dataclass(frozen=True, eq=False)
class MeanProduct:
    """The mean over the sites of a sector of coefficient * a * b, label by label; without fields, of the coefficient
    alone."""

    coefficient: Coefficient
    sector: str
    a: str | None = None
    b: str | None = None


@dataclass(frozen=True, eq=False)
class LimitOf(LinearSitesOf):
    """The stationary limit of linear training.

    Attributes:
        drives: drawn sources on the right-hand side.
        variances: variances of the sources.
        means: each a sum of products.
        observing(p, m): the observables from the means, rows with one entry per label.
        forgotten: an initial condition on which the limit does not depend.
    """

    drives: tuple[LinearTerm, ...]
    variances: tuple[Coefficient, ...]
    means: tuple[tuple[MeanProduct, ...], ...]
    observables: tuple[str, ...]
    observing: Callable[[Point, tuple[Any, ...]], tuple[Any, ...]]
    forgotten: str


@dataclass(frozen=True, eq=False)
class PlantedTerm:
    """The term coefficient * source * overlap in the equation of `target`."""

    target: str
    source: str
    coefficient: Coefficient


@dataclass(frozen=True, eq=False)
class PlantedOverlap:
    """The overlap mean(source * field(t - delay)), with the variance of the source, and the terms that contain it."""

    source: str
    field: str
    delay: int
    variance: Coefficient
    terms: tuple[PlantedTerm, ...]


@dataclass(frozen=True, eq=False)
class RecursionOf(LinearSitesOf):
    """The linear recursion that training iterates.

    Attributes:
        observed: by observable the fields that it contains.
        stirred: fields with noise at each step.
        renewed: sources that are redrawn at each step.
    """

    observed: tuple[tuple[str, tuple[str, ...]], ...]
    stirred: tuple[str, ...]
    overlaps: tuple[PlantedOverlap, ...]
    renewed: tuple[str, ...]


def summing(labels: int) -> np.ndarray:
    """Return the matrix that sums over labels."""
    return np.ones((1, int(labels)))
