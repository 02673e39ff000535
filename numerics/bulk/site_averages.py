"""The bulk equations with differing sites: residual and Jacobian at many points in NumPy, without compilation.

The equations are polynomials in z, the responses and averages over sites. What is averaged is a product of powers of
polynomials in z and the responses. A generated bulk lists all of these term by term.
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
    """A power of a polynomial whose coefficients vary over groups of sites: groups x terms.

    factors: the variables of each term, padded with the constant. rates: for each variable, the terms that contain it,
        their powers, and their remaining factors.
    """

    power: int
    coefficients: np.ndarray
    factors: np.ndarray
    rates: tuple[tuple[int, np.ndarray, np.ndarray, np.ndarray], ...]

    @staticmethod
    def of(power: int, terms: Sequence[tuple[Monomial, Any]], groups: int, one: int) -> _Factor:
        """Build the factor from its monomials and their coefficients; `one` is the index of the constant."""
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
        """Return the power at points, groups x points, and its derivative with respect to the polynomial."""
        value = self.coefficients @ np.prod(variables[self.factors], axis=0)
        if self.power < 0:
            inverse = 1 / value
            whole = inverse**-self.power
            return whole, self.power * whole * inverse
        return value**self.power, self.power * value ** (self.power - 1)


def _padded(monomials: Sequence[Monomial], constant: int) -> np.ndarray:
    """Return the variables of each monomial, padded to one length: variables x monomials."""
    padded = np.full((max(1, *map(len, monomials)), len(monomials)), constant)
    for n, monomial in enumerate(monomials):
        padded[: len(monomial), n] = monomial
    return padded


@dataclass(frozen=True)
class _Average:
    weights: np.ndarray
    factors: tuple[_Factor, ...]

    def at(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the average at points, and its derivatives with respect to z and the responses: variables x points."""
        powers = [factor.at(variables) for factor in self.factors]
        slopes = np.zeros((len(variables) - 1, variables.shape[1]), variables.dtype)
        for i, factor in enumerate(self.factors):
            others = (whole for j, (whole, _) in enumerate(powers) if j != i)
            weighed = reduce(np.multiply, others, self.weights[:, None] * powers[i][1])
            by_term = factor.coefficients.T @ weighed
            for k, places, times, rest in factor.rates:
                slopes[k] += np.sum(times * by_term[places] * np.prod(variables[rest], axis=0), axis=0)
        return self.weights @ reduce(np.multiply, (whole for whole, _ in powers)), slopes


@dataclass(frozen=True)
class SiteSystem:
    """A square system in the responses with averages over sites, and its derivatives with respect to z and the
    responses."""

    count: int
    groups: int
    averages: tuple[_Average, ...]
    residual: Sums
    slope: Sums

    def __call__(self, z: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return residual, derivative with respect to z and Jacobian with respect to r at many points; the results are
        real at real points.
        """
        kind = np.result_type(z, r, float)
        variables = np.array([z, *r.T, np.ones_like(z)], kind)
        averages = [average.at(variables) for average in self.averages]
        everything = np.array([*variables[:-1], *(value for value, _ in averages), variables[-1]]).T
        residual = np.zeros((z.size, self.count), kind)
        residual[:, self.residual.places] = self.residual.at(everything)
        width = everything.shape[1] - 1
        slope = np.zeros((z.size, self.count * width), kind)
        slope[:, self.slope.places] = self.slope.at(everything)
        slope = slope.reshape(z.size, self.count, width)
        direct = slope[:, :, : self.count + 1]
        if averages:
            inner = np.array([slopes for _, slopes in averages])  # averages x variables x points
            direct = direct + slope[:, :, self.count + 1 :] @ np.moveaxis(inner, 2, 0)
        return residual, direct[:, :, 0], direct[:, :, 1:]


@lru_cache(maxsize=64)
@in_float64
def site_system(law: BulkLaw, p: Point) -> SiteSystem:
    """Return the generated equations at these parameters."""
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
    """Return the values and weights of traits as NumPy arrays."""
    return tuple(
        TraitValues(np.asarray(one.values), np.asarray(one.weights)) for one in _compiled(sites)(p, nodes=nodes)
    )


@lru_cache(maxsize=64)
def _compiled(sites: Sites) -> Callable[..., Any]:
    """Compile the laws of sites as one function, since each number of nodes would recompile every operation."""
    return compiled(sites, quickly=True, static=("nodes",))
