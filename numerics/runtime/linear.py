"""Linear laws with constant coefficients, as generated code states them: who enters whose equation with what.

With w = 1/(1 + z) for a delay by one step, the fields x of a site obey S(w) x = drives + noises. Fields and sources
may have labels; S, responses and correlations are then matrices over labels, and one label is the plain case. A
coefficient is a function of the parameters and of the traits of a site: a number, or a column with one per label.
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
    """A field or a source of the sites of a sector. labels(p): how many labels it has, if not one."""

    name: str
    sector: str
    labels: Callable[[Point], Any] | None = None


@dataclass(frozen=True, eq=False)
class LinearTerm:
    """coefficient * w^delay (1 - w)^power times a field or a source, in the equation of `target`.

    Next to w = 1, where training has come to rest, no terms with power 0 cancel. acting(p): a table that acts on labels
    before the coefficient multiplies.
    """

    target: str
    of: str
    coefficient: Coefficient
    delay: int = 0
    power: int = 0
    acting: Callable[[Point], Any] | None = None


@dataclass(frozen=True, eq=False)
class MemoryTerm:
    """coefficient * R[a, noise] * on in the equation of `target`, with (a, noise) = response.

    fresh: of a matrix that is drawn afresh at each step, so that responses at equal times count alone.
    """

    target: str
    on: str
    coefficient: Coefficient
    response: tuple[str, str]
    fresh: bool = False


@dataclass(frozen=True, eq=False)
class NoiseCovariance:
    """<u_left u_right> = coefficient * C[a, b], with (a, b) = of; fresh: at equal times only."""

    left: str
    right: str
    coefficient: Coefficient
    of: tuple[str, str]
    fresh: bool = False


@dataclass(frozen=True, eq=False)
class LinearSitesOf:
    """Linear laws at the sites of all sectors.

    traits: names and sectors of what differs from site to site. sites(p, nodes): their laws, a density at so many
    values; settles: whether there is a density. operator: the terms of S, which acts on
    the fields of a site.
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
    """The mean over the sites of a sector of coefficient * a * b, label by label; without fields that of the
    coefficient alone."""

    coefficient: Coefficient
    sector: str
    a: str | None = None
    b: str | None = None


@dataclass(frozen=True, eq=False)
class LimitOf(LinearSitesOf):
    """The stationary limit of linear training.

    drives: what is drawn on the right-hand side. variances: of the sources. means: each a sum of products;
    observing(p, m): the observables from these, which are rows with one number per label. forgotten: a start that is
    left out.
    """

    drives: tuple[LinearTerm, ...]
    variances: tuple[Coefficient, ...]
    means: tuple[tuple[MeanProduct, ...], ...]
    observables: tuple[str, ...]
    observing: Callable[[Point, tuple[Any, ...]], tuple[Any, ...]]
    forgotten: str


@dataclass(frozen=True, eq=False)
class PlantedTerm:
    """coefficient * source * overlap in the equation of `target`."""

    target: str
    source: str
    coefficient: Coefficient


@dataclass(frozen=True, eq=False)
class PlantedOverlap:
    """mean(source * field(t - delay)), with the variance of the source, and the terms that it stands in."""

    source: str
    field: str
    delay: int
    variance: Coefficient
    terms: tuple[PlantedTerm, ...]


@dataclass(frozen=True, eq=False)
class RecursionOf(LinearSitesOf):
    """The step that linear training applies over and over.

    observed: by observable the fields in it. stirred: fields with noise of each step. renewed: sources that are drawn
    afresh at each step.
    """

    observed: tuple[tuple[str, tuple[str, ...]], ...]
    stirred: tuple[str, ...]
    overlaps: tuple[PlantedOverlap, ...]
    renewed: tuple[str, ...]


def summing(labels: int) -> np.ndarray:
    """The table that sums over labels."""
    return np.ones((1, int(labels)))
