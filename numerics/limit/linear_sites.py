"""Linear laws of all sectors at given parameters: inverse of a site's operator, responses, products of responses.

Points of the complex plane are given by v = 1 - w = z/(1 + z), where w is a delay by one step: v = 0 is the limit of
long training, v = 1 corresponds to equal times, and |1 - v| = 1 is the circle of marginal modes. A site inverts S(v),
which contains the responses R(v) of the memory terms: means over sites of blocks of G = 1/S.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from derive.errors import ParameterError
from numerics.runtime.linear import Coefficient, LinearSitesOf, LinearTerm, MemoryTerm, NoiseCovariance, SiteField
from numerics.runtime.point import Point
from numerics.runtime.traits import TraitValues

MOST = 2000
"""Largest number of responses, or of correlations: entries of matrices over labels."""
Inverses = dict[str, np.ndarray]
"""G by sector: points x groups x rows x rows."""
Pairs = dict[tuple[str, str], slice]
"""Ordered pairs of fields, and the indices of the entries of their matrix over labels among all unknowns."""


@dataclass(frozen=True)
class SectorAt:
    """The sites of a sector.

    Attributes:
        places: rows of S of each field.
        weights: weights of the groups of sites.
        traits: values of the traits, groups x 1 x 1.
        operator: terms of S, factors of `SitesAt.factors` x groups x rows x rows.
    """

    places: dict[str, slice]
    rows: int
    weights: np.ndarray
    traits: tuple[np.ndarray, ...]
    operator: np.ndarray

    def combined(self, factors: np.ndarray) -> np.ndarray:
        """Return S without memory terms, from the values of the factors at points: points x groups x rows x rows."""
        whole = self.operator
        return np.asarray((factors @ whole.reshape(len(whole), -1)).reshape(len(factors), *whole.shape[1:]))


def slices(sizes: Mapping[Any, int]) -> dict[Any, slice]:
    """Return consecutive slices of the given sizes."""
    ends = list(itertools.accumulate(sizes.values(), initial=0))
    return {key: slice(*ends[i : i + 2]) for i, key in enumerate(sizes)}


def end_of(places: Mapping[Any, slice]) -> int:
    """Return the total size of consecutive slices."""
    return max((where.stop for where in places.values()), default=0)


def laws_at(of: LinearSitesOf, p: Point, nodes: int) -> tuple[TraitValues, ...]:
    """Return the laws of traits at parameters."""
    return tuple(TraitValues(np.asarray(law.values), np.asarray(law.weights)) for law in of.sites(p, nodes))


@dataclass(frozen=True)
class SitesAt:
    """Linear laws at given parameters. laws: the laws of traits."""

    of: LinearSitesOf
    p: Point
    laws: tuple[TraitValues, ...]

    # -- one site

    @cached_property
    def places(self) -> dict[str, SiteField]:
        """Fields and sources by name."""
        return {one.name: one for one in (*self.of.fields, *self.of.sources)}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of labels of each field and source."""
        return {name: 1 if one.labels is None else int(one.labels(self.p)) for name, one in self.places.items()}

    @cached_property
    def sectors(self) -> dict[str, SectorAt]:
        """Sectors by name."""
        named = [*(one.sector for one in self.places.values()), *(sector for _, sector in self.of.traits)]
        return {name: self._sector(name) for name in dict.fromkeys(named)}

    @cached_property
    def factors(self) -> list[tuple[int, int]]:
        """Pairs (delay, power) of the factors w^delay v^power in S."""
        return list(dict.fromkeys((term.delay, term.power) for term in self.of.operator))

    def sector_of(self, name: str) -> SectorAt:
        """Return the sector of a field or source."""
        return self.sectors[self.places[name].sector]

    def _sector(self, name: str) -> SectorAt:
        """Assemble the operator of a sector."""
        of = self.of
        places = slices({one.name: self.sizes[one.name] for one in of.fields if one.sector == name})
        own = [i for i, (_, sector) in enumerate(of.traits) if sector == name]
        groups = list(itertools.product(*(range(len(self.laws[i].weights)) for i in own)))
        weights = np.array([np.prod([self.laws[i].weights[k] for i, k in zip(own, g, strict=True)]) for g in groups])
        traits = np.ones((len(of.traits), len(groups), 1, 1))
        for place, i in enumerate(own):
            traits[i, :, 0, 0] = self.laws[i].values[[group[place] for group in groups]]
        rows, factors = end_of(places), self.factors
        operator = np.zeros((len(factors), len(groups), rows, rows), complex)
        assembled = SectorAt(places, rows, weights, tuple(traits), operator)
        for term in of.operator:
            if term.target in places:
                added = assembled.operator[factors.index((term.delay, term.power))]
                added[:, places[term.target], places[term.of]] += self.block(assembled, term)
        return assembled

    def coefficient(self, sector: SectorAt, coefficient: Coefficient) -> np.ndarray:
        """Return a coefficient for each group of sites: groups x labels x 1, with one label if all are equal."""
        value = np.asarray(coefficient(self.p, *sector.traits), float)
        value = value.reshape((1,) * (3 - value.ndim) + value.shape)
        return np.broadcast_to(value, (len(sector.weights), *value.shape[1:]))

    def block(self, sector: SectorAt, term: LinearTerm) -> np.ndarray:
        """Return the matrix that multiplies a field or source in an equation: groups x labels x labels."""
        rows, columns = self.sizes[term.target], self.sizes[term.of]
        if term.acting is not None:
            table = np.asarray(term.acting(self.p), float)
        else:
            table = np.eye(columns) if rows == columns else np.ones((rows, columns))
        if table.shape[1] != columns or table.shape[0] not in (1, rows):
            raise ParameterError(f"{term.target} and {term.of} have different numbers of labels; make them equal")
        scale = self.coefficient(sector, term.coefficient)
        return np.broadcast_to(scale * table, (len(scale), rows, columns))

    @cached_property
    def _memories(self) -> list[tuple[MemoryTerm, np.ndarray]]:
        """The memory terms with their coefficients for each group of sites."""
        return [(m, self.coefficient(self.sector_of(m.target), m.coefficient)[:, :1]) for m in self.of.memories]

    @cached_property
    def covariance_terms(self) -> list[tuple[NoiseCovariance, np.ndarray]]:
        """The covariances of noises with their coefficients for each group of sites."""
        return [(c, self.coefficient(self.sector_of(c.left), c.coefficient)[:, :1]) for c in self.of.covariances]

    # -- responses

    @cached_property
    def _responses(self) -> list[tuple[str, str]]:
        """All responses that memory terms contain."""
        return list(dict.fromkeys(m.response for m in self.of.memories))

    @cached_property
    def unknown(self) -> Pairs:
        """Responses in the memory terms of fixed matrices."""
        inside = {m.response for m in self.of.memories if not m.fresh}
        return self._places(one for one in self._responses if one in inside)

    def _places(self, pairs: Iterable[tuple[str, str]], what: str = "responses") -> Pairs:
        """Return the slices that pairs of fields occupy in a vector; raise if there are too many."""
        places: Pairs = slices({(a, b): self.sizes[a] * self.sizes[b] for a, b in pairs})
        if end_of(places) > MOST:
            raise ParameterError(
                f"there are {end_of(places)} {what} between labels, more than {MOST}; take fewer labels"
            )
        return places

    @property
    def count(self) -> int:
        """Number of unknown responses."""
        return end_of(self.unknown)

    @cached_property
    def at_once(self) -> dict[tuple[str, str], np.ndarray]:
        """All equal-time responses (v = 1), by fixed-point iteration. Causality makes it terminate."""
        responses = {(a, b): np.zeros((self.sizes[a], self.sizes[b])) for a, b in self._responses}
        for _ in range(2 * len(responses) + 2):
            inverse = self._inverted(np.ones(1), {pair: one[None] for pair, one in responses.items()}, responses)
            new = {(a, b): self._mean(inverse, a, b)[0].real for a, b in responses}
            if all(np.array_equal(new[pair], one) for pair, one in responses.items()):
                break
            responses = new
        return responses

    def matrices(self, r: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
        """Return the unknown responses at points as matrices over labels."""
        return {
            (a, b): r[:, where].reshape(len(r), self.sizes[a], self.sizes[b]) for (a, b), where in self.unknown.items()
        }

    def _inverted(
        self,
        v: np.ndarray,
        responses: Mapping[tuple[str, str], np.ndarray],
        at_once: Mapping[tuple[str, str], np.ndarray],
    ) -> Inverses:
        """Return G at points, from responses at the points and equal-time responses."""
        inverses, factors = {}, powers_at(v, self.factors)
        for name, sector in self.sectors.items():
            if not sector.rows:
                continue
            matrix = sector.combined(factors)
            for m, scale in self._memories:
                if m.target in sector.places and m.on in sector.places:
                    value = at_once[m.response] if m.fresh else responses[m.response][:, None]
                    matrix[:, :, sector.places[m.target], sector.places[m.on]] -= scale * value
            inverses[name] = np.linalg.inv(matrix)
        return inverses

    def polynomials(self, powers: np.ndarray) -> Inverses:
        """Return the coefficients of S in powers of w, without memory of fixed matrices. powers: the factors expanded
        in powers of w, powers x factors.
        """
        coefficients = {name: sector.combined(powers) for name, sector in self.sectors.items() if sector.rows}
        for m, scale in self._memories:
            sector = self.sector_of(m.target)
            if m.on in sector.places:
                value = scale * self.at_once[m.response]
                coefficients[self.places[m.target].sector][0][:, sector.places[m.target], sector.places[m.on]] -= value
        return coefficients

    def inverses(self, v: np.ndarray, r: np.ndarray) -> Inverses:
        """Return G at points with their responses."""
        return self._inverted(v, self.matrices(r), self.at_once if any(m.fresh for m in self.of.memories) else {})

    def answer(self, inverse: Inverses, a: str, noise: str) -> np.ndarray:
        """Return the response of a field to a source in the equation of another: points x groups x labels x labels.

        It is zero between sectors.
        """
        own, sector = inverse[self.places[noise].sector], self.sector_of(noise)
        if a not in sector.places:
            return np.zeros((*own.shape[:2], self.sizes[a], self.sizes[noise]))
        return own[:, :, sector.places[a], sector.places[noise]]

    def _mean(self, inverse: Inverses, a: str, noise: str) -> np.ndarray:
        """Return the mean response over sites."""
        return np.asarray(np.einsum("g,mgij->mij", self.sector_of(noise).weights, self.answer(inverse, a, noise)))

    def system(self, v: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the equations of the responses at each point: residual, derivative with respect to v and Jacobian with
        respect to r.
        """
        inverse, factors = self.inverses(v, r), _powers_rate(v, self.factors)
        residual, rate = r.astype(complex), np.zeros(r.shape, complex)
        slope = np.zeros((*r.shape, self.count), complex) + np.eye(self.count)
        for name, own in inverse.items():
            sector = self.sectors[name]
            weighed = sector.weights[:, None, None] * own
            mean, changed = weighed.sum(1), (weighed @ sector.combined(factors) @ own).sum(1)
            for (a, noise), where in self.unknown.items():
                if a not in sector.places or noise not in sector.places:
                    continue  # no response between sectors
                rows, columns = sector.places[a], sector.places[noise]
                residual[:, where] -= mean[:, rows, columns].reshape(len(v), -1)
                rate[:, where] = changed[:, rows, columns].reshape(len(v), -1)
                for m, scale in self._memories:
                    if not m.fresh and m.target in sector.places and m.on in sector.places:
                        left = scale * weighed[:, :, rows, sector.places[m.target]]
                        right = np.swapaxes(own[:, :, sector.places[m.on], columns], 2, 3)
                        slope[:, where, self.unknown[m.response]] -= _kron(left, right)
        return residual, rate, slope

    # -- correlations

    def _pairs(self, fresh: bool) -> Pairs:
        """Return the correlations of fixed or of redrawn matrices."""
        both = (pair for c in self.of.covariances if c.fresh == fresh for pair in (c.of, c.of[::-1]))
        return self._places(dict.fromkeys(both), "correlations")

    @cached_property
    def fixed_pairs(self) -> Pairs:
        """Correlations that determine the noises of fixed matrices."""
        return self._pairs(False)

    @cached_property
    def white_pairs(self) -> Pairs:
        """Correlations that determine the noises of matrices redrawn at each step."""
        return self._pairs(True)

    def products(self, one: Inverses, other: Inverses, to: Pairs, fresh: bool) -> np.ndarray:
        """Return the linear map from correlations of noises to correlations of pairs of fields: points x pairs x pairs.
        one,
        other: G at the points of the two times."""
        of = self.white_pairs if fresh else self.fixed_pairs
        points = len(next(iter(one.values())))
        table = np.zeros((points, end_of(to), end_of(of)), complex)
        for (a, b), rows in to.items():
            for c, scale in self.covariance_terms:
                sector = self.sector_of(c.left)
                if c.fresh == fresh and a in sector.places and b in sector.places:
                    left, right = self.answer(one, a, c.left), self.answer(other, b, c.right)
                    table[:, rows, of[c.of]] += _kron(sector.weights[:, None, None] * scale * left, right)
        return table


def powers_at(v: np.ndarray, factors: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return (1 - v)^delay v^power: points x factors."""
    w = 1 - v
    return np.array([w**delay * v**power for delay, power in factors], complex).T


def _powers_rate(v: np.ndarray, factors: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the derivatives of (1 - v)^delay v^power with respect to v."""
    rates = np.zeros((len(v), len(factors)), complex)
    for k, (delay, power) in enumerate(factors):
        if power:
            rates[:, k] += power * v ** (power - 1) * (1 - v) ** delay
        if delay:
            rates[:, k] -= delay * (1 - v) ** (delay - 1) * v**power
    return rates


def _kron(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the sum over groups of Kronecker products, point by point."""
    product: np.ndarray = np.einsum("mgij,mgkl->mikjl", left, right)
    return product.reshape(len(left), left.shape[2] * right.shape[2], -1)


def conjugate(inverse: Inverses) -> Inverses:
    """Return the complex conjugate of G."""
    return {name: np.conj(own) for name, own in inverse.items()}


def stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays flattened and concatenated, one row per point."""
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
