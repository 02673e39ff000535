"""Equations of the limit of long training with labels: every response and correlation is a matrix over labels.

The fields of one site obey S(z) x = noises + what is drawn, S(z) = 1 - sum over delays d of B_d (1 + z)^-d - memories,
with blocks that are matrices over labels. Responses are means over sites of blocks of the inverse; correlations of
noises obey linear equations, both times at the same z.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from derive.errors import ParameterError
from numerics.runtime.interface import LabelledLimitOf
from numerics.runtime.point import Point
from numerics.runtime.traits import Law

SUMMED = -2
"""In place of a table: labels are summed over."""
MOST = 2000
"""Largest number of responses, or of correlations: entries of matrices over labels."""


@dataclass(frozen=True)
class _Sector:
    """The sites of a sector. places: of its fields in the rows of S; weights: of groups of sites; numbers: coefficients
    of each group; delayed: by delay, groups x rows x rows; driven: by delay and power of z, groups x rows x drawn."""

    places: dict[int, slice]
    rows: int
    weights: np.ndarray
    numbers: list[tuple[Any, ...]]
    delayed: dict[int, np.ndarray]
    driven: dict[tuple[int, int], np.ndarray]


@dataclass(frozen=True)
class _Inverse:
    """What the sites of a sector answer at z: to noises, groups x rows x rows, and to what is drawn."""

    to_noises: np.ndarray
    to_drawn: np.ndarray


@dataclass(frozen=True)
class LabelledEquations:
    limit: LabelledLimitOf
    p: Point
    laws: tuple[Law, ...]

    # -- what does not depend on z

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.limit.sizes(self.p))

    @cached_property
    def drawn(self) -> dict[int, slice]:
        """The places of what is drawn among all its labels."""
        ends = list(itertools.accumulate((self.sizes[k] for k in self._sources), initial=0))
        return {k: slice(*ends[i : i + 2]) for i, k in enumerate(self._sources)}

    @property
    def _sources(self) -> range:
        return range(len(self.limit.fields), len(self.sizes))

    @cached_property
    def sectors(self) -> dict[int, _Sector]:
        return {number: self._sector(number) for number in dict.fromkeys(self.limit.sectors)}

    def _sector(self, number: int) -> _Sector:
        limit = self.limit
        inside = [k for k in range(len(limit.fields)) if limit.sectors[k] == number]
        ends = list(itertools.accumulate((self.sizes[k] for k in inside), initial=0))
        places = {k: slice(*ends[i : i + 2]) for i, k in enumerate(inside)}
        own = [i for i, sector in enumerate(limit.traits) if sector == number]
        groups = list(itertools.product(*(range(len(self.laws[i].weights)) for i in own)))
        weights = np.array([np.prod([self.laws[i].weights[k] for i, k in zip(own, g, strict=True)]) for g in groups])
        numbers = []
        for group in groups:
            values = np.ones(len(limit.traits))
            for i, k in zip(own, group, strict=True):
                values[i] = self.laws[i].values[k]
            numbers.append(tuple(np.asarray(x) for x in limit.numbers(self.p, *values)))
        rows, columns = ends[-1], sum(self.sizes[k] for k in self._sources)
        delayed: dict[int, np.ndarray] = {}
        driven: dict[tuple[int, int], np.ndarray] = {}
        for target, of, coefficient, delay, _, table, turned in limit.parts:
            if target in places:
                made = delayed.setdefault(delay, np.zeros((len(groups), rows, rows)))
                made[:, places[target], places[of]] += self._blocks(numbers, coefficient, target, of, table, turned)
        for target, of, coefficient, delay, power, table, turned in limit.drives:
            if target in places:
                added = driven.setdefault((delay, power), np.zeros((len(groups), rows, columns)))
                block = self._blocks(numbers, coefficient, target, of, table, turned)
                added[:, places[target], self.drawn[of]] += block
        return _Sector(places, rows, weights, numbers, delayed, driven)

    @cached_property
    def _tables(self) -> list[np.ndarray]:
        return [np.asarray(table, float) for table in self.limit.tables(self.p)]

    def _blocks(
        self, numbers: Iterable[tuple[Any, ...]], coefficient: int, target: int, of: int, table: int, turned: int
    ) -> np.ndarray:
        """For each group how a field, or what is drawn, enters the equation of another: matrices over labels."""
        rows, columns = self.sizes[target], self.sizes[of]
        if table == SUMMED:
            acting = np.ones((1, columns))
        elif table >= 0:
            acting = self._tables[table].T if turned else self._tables[table]
        else:
            acting = np.eye(columns) if rows == columns else np.ones((rows, columns))
        if acting.shape[1] != columns or acting.shape[0] not in (1, rows):
            raise ParameterError(f"{self._name(target)} and {self._name(of)} have labels that do not fit")
        return np.array([np.broadcast_to(_column(one[coefficient]) * acting, (rows, columns)) for one in numbers])

    def _name(self, place: int) -> str:
        return (*self.limit.fields, *self.limit.sources)[place]

    @cached_property
    def _where(self) -> list[slice]:
        """The places of the responses among all unknowns."""
        counts = [self.sizes[a] * self.sizes[b] for a, b in self.limit.responses]
        ends = list(itertools.accumulate(counts, initial=0))
        if ends[-1] > MOST:
            raise ParameterError(f"there are {ends[-1]} responses between labels, more than {MOST}; take fewer labels")
        return [slice(*ends[i : i + 2]) for i in range(len(counts))]

    @property
    def count(self) -> int:
        return self._where[-1].stop if self._where else 0

    def _matrices(self, r: np.ndarray) -> list[np.ndarray]:
        pairs = zip(self.limit.responses, self._where, strict=True)
        return [r[where].reshape(self.sizes[a], self.sizes[b]) for (a, b), where in pairs]

    # -- at z

    def _inverse(self, number: int, z: complex, responses: Sequence[np.ndarray]) -> _Inverse:
        sector, delay = self.sectors[number], 1 / (1 + z)
        groups, columns = len(sector.weights), sum(self.sizes[k] for k in self._sources)
        matrix = np.broadcast_to(np.eye(sector.rows), (groups, sector.rows, sector.rows)).astype(complex)
        drive = np.zeros((groups, sector.rows, columns), complex)
        for d, made in sector.delayed.items():
            matrix -= delay**d * made
        for (d, power), made in sector.driven.items():
            drive += z**power * delay**d * made
        for target, on, coefficient, which in self.limit.memories:
            if target in sector.places:
                added = _scaled(sector.numbers, coefficient) * responses[which]
                if on in sector.places:
                    matrix[:, sector.places[target], sector.places[on]] -= added
                else:
                    drive[:, sector.places[target], self.drawn[on]] += added
        found = np.linalg.inv(matrix)
        return _Inverse(found, found @ drive)

    def system(self, z: complex, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residual, rate in z and slope in r of the response equations."""
        responses, limit = self._matrices(r), self.limit
        inverse = {number: self._inverse(number, z, responses).to_noises for number in self.sectors}
        residual, rate = np.zeros(self.count, complex), np.zeros(self.count, complex)
        slope = np.eye(self.count, dtype=complex)
        for number, sector in self.sectors.items():
            change = np.zeros_like(inverse[number])
            for d, made in sector.delayed.items():
                change += d * (1 / (1 + z)) ** (d + 1) * made
            changed = inverse[number] @ change @ inverse[number]
            for (a, noise), own, now in zip(limit.responses, self._where, responses, strict=True):
                if noise not in sector.places:
                    continue
                if a not in sector.places:  # what is drawn answers to nothing
                    residual[own] = now.ravel()
                    continue
                rows, columns = sector.places[a], sector.places[noise]
                weighed = sector.weights[:, None, None]
                residual[own] = (now - np.sum(weighed * inverse[number][:, rows, columns], axis=0)).ravel()
                rate[own] = np.sum(weighed * changed[:, rows, columns], axis=0).ravel()
                for target, on, coefficient, which in limit.memories:
                    if target in sector.places and on in sector.places:
                        left = (
                            weighed
                            * _scaled(sector.numbers, coefficient)
                            * inverse[number][:, rows, sector.places[target]]
                        )
                        right = inverse[number][:, sector.places[on], columns]
                        slope[own, self._where[which]] -= _kron(left, np.swapaxes(right, 1, 2))
        return residual, rate, slope

    # -- means

    @cached_property
    def _unknown(self) -> dict[tuple[int, int], slice]:
        """Correlations that noises have, and their places."""
        found: dict[tuple[int, int], slice] = {}
        end = 0
        for _, _, _, a, b in self.limit.covariances:
            pair = (min(a, b), max(a, b))
            if pair not in found:
                start, end = end, end + self.sizes[a] * self.sizes[b]
                found[pair] = slice(start, end)
        if end > MOST:
            raise ParameterError(f"there are {end} correlations between labels, more than {MOST}; take fewer labels")
        return found

    @cached_property
    def _variances(self) -> np.ndarray:
        """Of what is drawn, label by label."""
        numbers = next(iter(self.sectors.values())).numbers[0]
        parts = [
            np.broadcast_to(np.ravel(numbers[k]), (self.sizes[s],))
            for s, k in zip(self._sources, self.limit.scales, strict=True)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def _answers(self, number: int, inverse: _Inverse, place: int) -> _Inverse:
        """What a field, or something drawn, answers to noises and to what is drawn: groups x labels x those."""
        sector = self.sectors[number]
        if place in sector.places:
            rows = sector.places[place]
            return _Inverse(inverse.to_noises[:, rows], inverse.to_drawn[:, rows])
        groups, size = len(sector.weights), self.sizes[place]
        own = np.zeros((groups, size, len(self._variances)))
        own[:, :, self.drawn[place]] = np.eye(size)
        return _Inverse(np.zeros((groups, size, sector.rows)), own)

    def means(self, z: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The means at points with their responses: one row per point."""
        return np.array([self._means(complex(x), responses) for x, responses in zip(z, r, strict=True)])

    def _means(self, z: complex, r: np.ndarray) -> np.ndarray:
        responses = self._matrices(r)
        inverse = {number: self._inverse(number, z, responses) for number in self.sectors}
        correlations = self._correlations(inverse)
        found = [np.zeros(0, complex)]
        for pairs in self.limit.means:
            total: Any = 0.0
            for coefficient, a, b in pairs:
                total = total + self._mean(inverse, correlations, coefficient, a, b)
            found.append(np.ravel(total))
        return np.concatenate(found)

    def _correlations(self, inverse: dict[int, _Inverse]) -> dict[tuple[int, int], np.ndarray]:
        count = max((where.stop for where in self._unknown.values()), default=0)
        matrix, right = np.eye(count, dtype=complex), np.zeros(count, complex)
        for (a, b), own in self._unknown.items():
            number = self.limit.sectors[a]
            sector, weighed = self.sectors[number], self.sectors[number].weights[:, None, None]
            one, other = (self._answers(number, inverse[number], k) for k in (a, b))
            free = weighed * one.to_drawn * self._variances @ np.swapaxes(other.to_drawn, 1, 2)
            right[own] = np.sum(free, axis=0).ravel()
            for left, noise, coefficient, c, d in self.limit.covariances:
                if left not in sector.places:
                    continue
                scaled = weighed * _scaled(sector.numbers, coefficient)
                answers = _kron(
                    scaled * one.to_noises[:, :, sector.places[left]], other.to_noises[:, :, sector.places[noise]]
                )
                if c > d:  # the transpose is known
                    shape = (self.sizes[c], self.sizes[d])
                    answers = answers.reshape(-1, *shape).transpose(0, 2, 1).reshape(len(answers), -1)
                matrix[own, self._unknown[min(c, d), max(c, d)]] -= answers
        found = np.linalg.solve(matrix, right) if count else right
        return {(a, b): found[own].reshape(self.sizes[a], self.sizes[b]) for (a, b), own in self._unknown.items()}

    def _mean(
        self,
        inverse: dict[int, _Inverse],
        correlations: dict[tuple[int, int], np.ndarray],
        coefficient: int,
        a: int,
        b: int,
    ) -> Any:
        """The mean over sites of a number times a product, label by label."""
        if a < 0:
            return sum(self._moment(coefficient))
        number = self.limit.sectors[a]
        sector = self.sectors[number]
        one, other = (self._answers(number, inverse[number], k) for k in (a, b))
        products = np.sum(one.to_drawn * self._variances * other.to_drawn, axis=2)
        for left, noise, scale, c, d in self.limit.covariances:
            if left in sector.places:
                between = correlations[c, d] if c <= d else correlations[d, c].T
                seen = one.to_noises[:, :, sector.places[left]] @ between
                added = np.sum(seen * other.to_noises[:, :, sector.places[noise]], axis=2)
                products = products + _scaled(sector.numbers, scale)[:, :, 0] * added
        scales = np.array([np.ravel(one[coefficient]) for one in sector.numbers])
        return np.sum(sector.weights[:, None] * scales * products, axis=0)

    def _moment(self, coefficient: int) -> list[Any]:
        """A mean of traits alone: those of one sector differ, whichever it is."""
        varied = [sector for sector in self.sectors.values() if len({str(n[coefficient]) for n in sector.numbers}) > 1]
        sector = varied[0] if varied else next(iter(self.sectors.values()))
        return [w * n[coefficient] for w, n in zip(sector.weights, sector.numbers, strict=True)]

    def observed(self, means: np.ndarray) -> dict[str, float | np.ndarray]:
        """Observables by name; those that are followed label by label as arrays."""
        rows, start = [], 0
        for pairs in self.limit.means:
            size = max(self._size(*pair) for pair in pairs)
            rows.append(means[None, start : start + size])
            start += size
        found: dict[str, float | np.ndarray] = {}
        for name, value in zip(self.limit.observables, self.limit.observing(self.p, tuple(rows)), strict=True):
            array = np.asarray(value, float)
            found[name] = float(array.ravel()[0]) if array.size == 1 else np.squeeze(array, axis=0)
        return found

    def _size(self, coefficient: int, a: int, b: int) -> int:
        own = int(next(iter(self.sectors.values())).numbers[0][coefficient].size)
        return max(own, *(self.sizes[k] for k in (a, b) if k >= 0)) if a >= 0 else own


def _column(number: np.ndarray) -> np.ndarray:
    return number.reshape(-1, 1)


def _scaled(numbers: Sequence[tuple[Any, ...]], coefficient: int) -> np.ndarray:
    """A coefficient of each group, to multiply matrices of groups with."""
    return np.array([float(np.ravel(one[coefficient])[0]) for one in numbers])[:, None, None]


def _kron(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The sum over groups of Kronecker products."""
    found: np.ndarray = np.einsum("gij,gkl->ikjl", left, right)
    return found.reshape(left.shape[1] * right.shape[1], -1)
