"""The bulk equations where sites differ: residual and Jacobian at many points by NumPy, with nothing to compile.

The equations are polynomials in z, the responses and averages over sites; an average is that of a product of powers of
polynomials in z and the responses. A generated bulk has all of them term by term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from numerics.bulk.parameters import updated
from numerics.bulk.polynomials import Monomial, Sums, differentiated, monomial_of, polynomials_of
from numerics.compiling import compiled
from numerics.precision import in_float64
from numerics.runtime.interface import BulkLaw, Sites
from numerics.runtime.point import Point
from numerics.runtime.traits import Law, SiteAverage


@dataclass(frozen=True)
class _Factor:
    """A power of a polynomial whose coefficients differ from site to site: groups x terms, and its derivatives."""

    power: int
    coefficients: np.ndarray
    factors: np.ndarray
    rates: tuple[tuple[int, np.ndarray, np.ndarray], ...]

    @staticmethod
    def of(power: int, terms: Sequence[tuple[Monomial, Any]], groups: int, one: int) -> _Factor:
        """From monomials and what multiplies them; `one` is the number of the constant."""
        columns = {m: np.broadcast_to(np.asarray(c, float), (groups, 1))[:, 0] for m, c in terms}
        by_variable: dict[int, dict[Monomial, np.ndarray]] = {}
        for monomial, column in columns.items():
            for k, times, rest in differentiated(monomial):
                by_variable.setdefault(k, {})[rest] = times * column
        rates = ((k, *_table(some, one)) for k, some in sorted(by_variable.items()))
        return _Factor(power, *_table(columns, one), tuple(rates))


def _table(columns: dict[Monomial, np.ndarray], one: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients, groups x terms, and the variables of each term, padded by the constant: variables x terms."""
    factors = np.full((max(1, *map(len, columns)), len(columns)), one)
    for n, monomial in enumerate(columns):
        factors[: len(monomial), n] = monomial
    return np.stack(list(columns.values()), axis=1), factors


def _sums(coefficients: np.ndarray, factors: np.ndarray, variables: np.ndarray) -> np.ndarray:
    """Sums of terms: groups x points."""
    return np.asarray(coefficients @ np.prod(variables[factors], axis=0))


@dataclass(frozen=True)
class _Average:
    weights: np.ndarray
    factors: tuple[_Factor, ...]

    def at(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The average at points, and its derivatives by z and the responses: variables x points."""
        values = [_sums(f.coefficients, f.factors, variables) for f in self.factors]
        powers = [value**f.power for value, f in zip(values, self.factors, strict=True)]
        slopes = np.zeros((len(variables) - 1, variables.shape[1]), variables.dtype)
        for i, factor in enumerate(self.factors):
            others = [x for j, x in enumerate(powers) if j != i]
            outer = factor.power * values[i] ** (factor.power - 1) * self.weights[:, None]
            for other in others:
                outer = outer * other
            for k, coefficients, factors in factor.rates:
                slopes[k] += np.sum(outer * _sums(coefficients, factors, variables), axis=0)
        whole = powers[0]
        for other in powers[1:]:
            whole = whole * other
        return self.weights @ whole, slopes


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
def site_laws(sites: Sites, p: Point, nodes: int) -> tuple[Law, ...]:
    """What differs from site to site, in NumPy's arrays: averages over them have nothing to compile."""
    return tuple(Law(np.asarray(one.values), np.asarray(one.weights)) for one in _compiled(sites)(p, nodes=nodes))


@lru_cache(maxsize=64)
def _compiled(sites: Sites) -> Callable[..., Any]:
    """All at once: a density is taken at more and more values, and each operation would be compiled for each number."""
    return compiled(sites, quickly=True, static=("nodes",))
