"""The bulk equations where sites differ: residual and Jacobian at many points by NumPy, with nothing to compile.

The equations are polynomials in z, the responses and averages over sites; an average is that of a product of powers of
polynomials in z and the responses. A generated bulk has all of them term by term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from numerics.bulk.parameters import updated
from numerics.bulk.polynomials import Monomial, Sums, differentiated, monomial_of, polynomials_of
from numerics.runtime.interface import BulkLaw, Sites
from numerics.runtime.point import Point
from numerics.runtime.traits import SiteAverage, TraitValues
from numerics.support.compiling import compiled
from numerics.support.precision import in_float64


@dataclass(frozen=True)
class _Factor:
    """A power of a polynomial whose coefficients differ from site to site: groups x terms.

    factors: the variables of each term, padded by the constant. rates: by variable the terms that hold it, how often,
    and the variables that are left of each.
    """

    power: int
    coefficients: np.ndarray
    factors: np.ndarray
    rates: tuple[tuple[int, np.ndarray, np.ndarray, np.ndarray], ...]

    @staticmethod
    def of(power: int, terms: Sequence[tuple[Monomial, Any]], groups: int, one: int) -> _Factor:
        """From monomials and what multiplies them; `one` is the number of the constant."""
        columns = [np.broadcast_to(np.asarray(c, float), (groups, 1)) for _, c in terms]
        held: dict[int, list[tuple[int, int, Monomial]]] = {}
        for place, (monomial, _) in enumerate(terms):
            for k, times, rest in differentiated(monomial):
                held.setdefault(k, []).append((place, times, rest))
        rates = (
            (
                k,
                np.array([p for p, _, _ in some]),
                np.array([[t] for _, t, _ in some]),
                _padded([m for *_, m in some], one),
            )
            for k, some in sorted(held.items())
        )
        return _Factor(power, np.concatenate(columns, axis=1), _padded([m for m, _ in terms], one), tuple(rates))

    def at(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The power at points, groups x points, and its derivative by the polynomial."""
        value = self.coefficients @ np.prod(variables[self.factors], axis=0)
        if self.power < 0:
            inverse = 1 / value
            whole = inverse**-self.power
            return whole, self.power * whole * inverse
        return value**self.power, self.power * value ** (self.power - 1)


def _padded(monomials: Sequence[Monomial], one: int) -> np.ndarray:
    """The variables of each monomial: variables x monomials."""
    found = np.full((max(1, *map(len, monomials)), len(monomials)), one)
    for n, monomial in enumerate(monomials):
        found[: len(monomial), n] = monomial
    return found


@dataclass(frozen=True)
class _Average:
    weights: np.ndarray
    factors: tuple[_Factor, ...]

    def at(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The average at points, and its derivatives by z and the responses: variables x points."""
        found = [factor.at(variables) for factor in self.factors]
        slopes = np.zeros((len(variables) - 1, variables.shape[1]), variables.dtype)
        for i, factor in enumerate(self.factors):
            others = (whole for j, (whole, _) in enumerate(found) if j != i)
            weighed = reduce(np.multiply, others, self.weights[:, None] * found[i][1])
            by_term = factor.coefficients.T @ weighed
            for k, places, times, rest in factor.rates:
                slopes[k] += np.sum(times * by_term[places] * np.prod(variables[rest], axis=0), axis=0)
        return self.weights @ reduce(np.multiply, (whole for whole, _ in found)), slopes


@dataclass(frozen=True)
class SiteSystem:
    """As many equations as responses, with averages over sites, and their derivatives by z and by the responses."""

    count: int
    groups: int
    averages: tuple[_Average, ...]
    residual: Sums
    slope: Sums

    def __call__(self, z: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residual, rate in z and slope in r at many points; real where the points are."""
        kind = np.result_type(z, r, float)
        variables = np.array([z, *r.T, np.ones_like(z)], kind)
        found = [average.at(variables) for average in self.averages]
        everything = np.array([*variables[:-1], *(value for value, _ in found), variables[-1]]).T
        residual = np.zeros((z.size, self.count), kind)
        residual[:, self.residual.places] = self.residual.at(everything)
        width = everything.shape[1] - 1
        slope = np.zeros((z.size, self.count * width), kind)
        slope[:, self.slope.places] = self.slope.at(everything)
        slope = slope.reshape(z.size, self.count, width)
        direct = slope[:, :, : self.count + 1]
        if found:
            inner = np.array([slopes for _, slopes in found])  # averages x variables x points
            direct = direct + slope[:, :, self.count + 1 :] @ np.moveaxis(inner, 2, 0)
        return residual, direct[:, :, 0], direct[:, :, 1:]


@lru_cache(maxsize=64)
@in_float64
def site_system(law: BulkLaw, p: Point) -> SiteSystem:
    """The generated equations at these parameters."""
    assert law.sites is not None and law.averages is not None
    sites, given, count = site_laws(law.sites, p, law.nodes), updated(law, p), len(law.responses)
    averages = tuple(_prepared(law, one) for one in law.averages(p, sites, *given))
    names = (*law.responses, *(f"average{k}" for k in range(len(averages))))
    residual, slope = polynomials_of(law.polynomials(p, *given), names)
    groups = int(np.prod([len(one.weights) for one in sites]))
    return SiteSystem(count, groups, averages, *(Sums.of(terms, len(names) + 1) for terms in (residual, slope)))


def _prepared(law: BulkLaw, average: SiteAverage) -> _Average:
    weights, one = np.asarray(average.weights, float), len(law.responses) + 1
    factors = (
        _Factor.of(power, [(monomial_of(name, law.responses), c) for name, c in terms], len(weights), one)
        for power, terms in average.factors
    )
    return _Average(weights, tuple(factors))


@lru_cache(maxsize=64)
@in_float64
def site_laws(sites: Sites, p: Point, nodes: int) -> tuple[TraitValues, ...]:
    """What differs from site to site, in NumPy's arrays: averages over them have nothing to compile."""
    return tuple(
        TraitValues(np.asarray(one.values), np.asarray(one.weights)) for one in _compiled(sites)(p, nodes=nodes)
    )


@lru_cache(maxsize=64)
def _compiled(sites: Sites) -> Callable[..., Any]:
    """All at once: a density is taken at more and more values, and each operation would be compiled for each number."""
    return compiled(sites, quickly=True, static=("nodes",))
