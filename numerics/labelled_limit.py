"""Equations of the limit of long training with labels: every response and correlation is a matrix over labels.

The fields of one site obey S(z) x = noises + what is drawn, S(z) = 1 - sum over delays d of B_d (1 + z)^-d - memories,
with blocks that are matrices over labels. Responses are means over sites of blocks of the inverse; correlations of
noises obey linear equations, both times at the same z.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from derive.errors import ParameterError
from numerics.linear_sites import MOST, AtPoint, kron, scaled
from numerics.runtime.interface import LabelledLimitOf


@dataclass(frozen=True)
class _Inverse:
    """What the sites of a sector answer at z: to noises, groups x rows x rows, and to what is drawn."""

    to_noises: np.ndarray
    to_drawn: np.ndarray


@dataclass(frozen=True)
class LabelledEquations(AtPoint):
    of: LabelledLimitOf

    # -- what does not depend on z

    @cached_property
    def drawn(self) -> dict[int, slice]:
        """The places of what is drawn among all its labels."""
        ends = list(itertools.accumulate((self.sizes[k] for k in self._sources), initial=0))
        return {k: slice(*ends[i : i + 2]) for i, k in enumerate(self._sources)}

    @property
    def _sources(self) -> range:
        return range(len(self.of.fields), len(self.sizes))

    @cached_property
    def driven(self) -> dict[int, dict[tuple[int, int], np.ndarray]]:
        """By sector, delay and power of z what is drawn in its equations: groups x rows x drawn."""
        columns = sum(self.sizes[k] for k in self._sources)
        found: dict[int, dict[tuple[int, int], np.ndarray]] = {number: {} for number in self.sectors}
        for target, other, coefficient, delay, power, table, turned in self.of.drives:
            number = self.of.sectors[target]
            sector = self.sectors[number]
            empty = np.zeros((len(sector.weights), sector.rows, columns))
            added = found[number].setdefault((delay, power), empty)
            block = self.blocks(sector.numbers, coefficient, target, other, table, turned)
            added[:, sector.places[target], self.drawn[other]] += block
        return found

    @cached_property
    def _where(self) -> list[slice]:
        """The places of the responses among all unknowns."""
        counts = [self.sizes[a] * self.sizes[b] for a, b in self.of.responses]
        ends = list(itertools.accumulate(counts, initial=0))
        if ends[-1] > MOST:
            raise ParameterError(f"there are {ends[-1]} responses between labels, more than {MOST}; take fewer labels")
        return [slice(*ends[i : i + 2]) for i in range(len(counts))]

    @property
    def count(self) -> int:
        return self._where[-1].stop if self._where else 0

    def _matrices(self, r: np.ndarray) -> list[np.ndarray]:
        pairs = zip(self.of.responses, self._where, strict=True)
        return [r[where].reshape(self.sizes[a], self.sizes[b]) for (a, b), where in pairs]

    # -- at z

    def _inverse(self, number: int, z: complex, responses: Sequence[np.ndarray]) -> _Inverse:
        sector, delay = self.sectors[number], 1 / (1 + z)
        groups, columns = len(sector.weights), sum(self.sizes[k] for k in self._sources)
        matrix = np.broadcast_to(np.eye(sector.rows), (groups, sector.rows, sector.rows)).astype(complex)
        drive = np.zeros((groups, sector.rows, columns), complex)
        for d, made in sector.delayed.items():
            matrix -= delay**d * made
        for (d, power), made in self.driven[number].items():
            drive += z**power * delay**d * made
        for target, on, coefficient, which in self.of.memories:
            if target in sector.places:
                added = scaled(sector.numbers, coefficient) * responses[which]
                if on in sector.places:
                    matrix[:, sector.places[target], sector.places[on]] -= added
                else:
                    drive[:, sector.places[target], self.drawn[on]] += added
        found = np.linalg.inv(matrix)
        return _Inverse(found, found @ drive)

    def system(self, z: complex, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residual, rate in z and slope in r of the response equations."""
        responses, limit = self._matrices(r), self.of
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
                            * scaled(sector.numbers, coefficient)
                            * inverse[number][:, rows, sector.places[target]]
                        )
                        right = inverse[number][:, sector.places[on], columns]
                        slope[own, self._where[which]] -= kron(left, np.swapaxes(right, 1, 2))
        return residual, rate, slope

    # -- means

    @cached_property
    def _unknown(self) -> dict[tuple[int, int], slice]:
        """Correlations that noises have, and their places."""
        found: dict[tuple[int, int], slice] = {}
        end = 0
        for _, _, _, a, b in self.of.covariances:
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
            for s, k in zip(self._sources, self.of.scales, strict=True)
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
        for pairs in self.of.means:
            total: Any = 0.0
            for coefficient, a, b in pairs:
                total = total + self._mean(inverse, correlations, coefficient, a, b)
            found.append(np.ravel(total))
        return np.concatenate(found)

    def _correlations(self, inverse: dict[int, _Inverse]) -> dict[tuple[int, int], np.ndarray]:
        count = max((where.stop for where in self._unknown.values()), default=0)
        matrix, right = np.eye(count, dtype=complex), np.zeros(count, complex)
        for (a, b), own in self._unknown.items():
            number = self.of.sectors[a]
            sector, weighed = self.sectors[number], self.sectors[number].weights[:, None, None]
            one, other = (self._answers(number, inverse[number], k) for k in (a, b))
            free = weighed * one.to_drawn * self._variances @ np.swapaxes(other.to_drawn, 1, 2)
            right[own] = np.sum(free, axis=0).ravel()
            for left, noise, coefficient, c, d in self.of.covariances:
                if left not in sector.places:
                    continue
                shares = weighed * scaled(sector.numbers, coefficient)
                answers = kron(
                    shares * one.to_noises[:, :, sector.places[left]], other.to_noises[:, :, sector.places[noise]]
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
        number = self.of.sectors[a]
        sector = self.sectors[number]
        one, other = (self._answers(number, inverse[number], k) for k in (a, b))
        products = np.sum(one.to_drawn * self._variances * other.to_drawn, axis=2)
        for left, noise, scale, c, d in self.of.covariances:
            if left in sector.places:
                between = correlations[c, d] if c <= d else correlations[d, c].T
                seen = one.to_noises[:, :, sector.places[left]] @ between
                added = np.sum(seen * other.to_noises[:, :, sector.places[noise]], axis=2)
                products = products + scaled(sector.numbers, scale)[:, :, 0] * added
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
        for pairs in self.of.means:
            size = max(self._size(*pair) for pair in pairs)
            rows.append(means[None, start : start + size])
            start += size
        found: dict[str, float | np.ndarray] = {}
        for name, value in zip(self.of.observables, self.of.observing(self.p, tuple(rows)), strict=True):
            array = np.asarray(value, float)
            found[name] = float(array.ravel()[0]) if array.size == 1 else np.squeeze(array, axis=0)
        return found

    def _size(self, coefficient: int, a: int, b: int) -> int:
        own = int(next(iter(self.sectors.values())).numbers[0][coefficient].size)
        return max(own, *(self.sizes[k] for k in (a, b) if k >= 0)) if a >= 0 else own
