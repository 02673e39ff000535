"""Linear laws at the sites of all sectors, put together from the numbers and tables of generated code."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from derive.errors import ParameterError
from numerics.runtime.interface import LinearSites
from numerics.runtime.point import Point
from numerics.runtime.traits import Law

SUMMED = -2
"""In place of a table: labels are summed over."""
MOST = 2000
"""Largest number of responses, or of correlations: entries of matrices over labels."""


@dataclass(frozen=True)
class SitesOf:
    """The sites of a sector. places: of its fields in the rows of S; weights: of groups of sites; numbers: coefficients
    of each group; delayed: by delay, groups x rows x rows."""

    places: dict[int, slice]
    rows: int
    weights: np.ndarray
    numbers: list[tuple[Any, ...]]
    delayed: dict[int, np.ndarray]


@dataclass(frozen=True)
class AtPoint:
    """Generated linear laws at parameters; laws: of what differs from site to site."""

    of: LinearSites
    p: Point
    laws: tuple[Law, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.of.sizes(self.p))

    @cached_property
    def sectors(self) -> dict[int, SitesOf]:
        inside = range(len(self.of.fields))
        return {number: self._sector(number) for number in dict.fromkeys(self.of.sectors[k] for k in inside)}

    def _sector(self, number: int) -> SitesOf:
        of = self.of
        inside = [k for k in range(len(of.fields)) if of.sectors[k] == number]
        ends = list(itertools.accumulate((self.sizes[k] for k in inside), initial=0))
        places = {k: slice(*ends[i : i + 2]) for i, k in enumerate(inside)}
        own = [i for i, sector in enumerate(of.traits) if sector == number]
        groups = list(itertools.product(*(range(len(self.laws[i].weights)) for i in own)))
        weights = np.array([np.prod([self.laws[i].weights[k] for i, k in zip(own, g, strict=True)]) for g in groups])
        values = np.ones((len(of.traits), len(groups)))
        for place, i in enumerate(own):
            values[i] = self.laws[i].values[[group[place] for group in groups]]
        numbers = self._numbers_at(values)
        rows = ends[-1]
        delayed: dict[int, np.ndarray] = {}
        for target, other, coefficient, delay, _, table, turned in of.parts:
            if target in places:
                made = delayed.setdefault(delay, np.zeros((len(groups), rows, rows)))
                made[:, places[target], places[other]] += self.blocks(
                    numbers, coefficient, target, other, table, turned
                )
        return SitesOf(places, rows, weights, numbers, delayed)

    def _numbers_at(self, values: np.ndarray) -> list[tuple[Any, ...]]:
        """Coefficients at groups of sites with given traits; all at once where there are no labels."""
        if max(self.sizes) > 1:
            return [tuple(np.asarray(x) for x in self.of.numbers(self.p, *group)) for group in values.T]
        columns = [np.broadcast_to(np.asarray(x), values.shape[1:]) for x in self.of.numbers(self.p, *values)]
        return list(zip(*columns, strict=True)) if columns else [()] * values.shape[1]

    @cached_property
    def _tables(self) -> list[np.ndarray]:
        return [np.asarray(table, float) for table in self.of.tables(self.p)]

    def blocks(
        self, numbers: Iterable[tuple[Any, ...]], coefficient: int, target: int, other: int, table: int, turned: int
    ) -> np.ndarray:
        """For each group how a field, or what is drawn, enters the equation of another: matrices over labels."""
        rows, columns = self.sizes[target], self.sizes[other]
        if table == SUMMED:
            acting = np.ones((1, columns))
        elif table >= 0:
            acting = self._tables[table].T if turned else self._tables[table]
        else:
            acting = np.eye(columns) if rows == columns else np.ones((rows, columns))
        if acting.shape[1] != columns or acting.shape[0] not in (1, rows):
            raise ParameterError(f"{self._name(target)} and {self._name(other)} have labels that do not fit")
        return np.array([np.broadcast_to(_column(one[coefficient]) * acting, (rows, columns)) for one in numbers])

    def _name(self, place: int) -> str:
        return (*self.of.fields, *self.of.sources)[place]


def _column(number: Any) -> np.ndarray:
    return np.reshape(number, (-1, 1))


def scaled(numbers: Sequence[tuple[Any, ...]], coefficient: int) -> np.ndarray:
    """A coefficient of each group, to multiply matrices of groups with."""
    return np.array([float(np.ravel(one[coefficient])[0]) for one in numbers])[:, None, None]


def kron(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The sum over groups of Kronecker products."""
    found: np.ndarray = np.einsum("gij,gkl->ikjl", left, right)
    return found.reshape(left.shape[1] * right.shape[1], -1)
