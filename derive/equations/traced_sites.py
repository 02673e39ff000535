"""Spectral fields of M + epsilon A for each matrix A between resolvents of the probed matrix M.

As d R / d epsilon = R A R, the derivative of tr R is tr R A R, and that of tr R B is tr R A R B.
"""

from __future__ import annotations

from functools import cached_property

import sympy as sp

from derive.algebra.sites import site_responses
from derive.equations.spectral_sites import Propagator, SpectralSites
from derive.language.symbols import EngineSymbol
from derive.language.vectors import Field
from derive.records.saddle import SaddlePoint, TimeOrder


class TracedSites(SpectralSites):
    """The spectral sites of M + epsilon A. `sources` is epsilon by the field A psi."""

    def __init__(self, saddle: SaddlePoint, order: TimeOrder, sampled: bool, images: tuple[Field, ...]):
        super().__init__(saddle, order, sampled, images)
        self.sources = {image: EngineSymbol(f"epsilon_{image}", image) for image in images}

    @cached_property
    def small(self) -> tuple[sp.Symbol, ...]:
        """The first-order symbols: epsilon of each matrix, and the responses that vanish with it."""
        return (*self.sources.values(), *sorted(self.vanishing(), key=str))

    def inverted(self, rows: list[list[sp.Expr]]) -> sp.Matrix:
        """Return the inverse to first order: 1 / (S + y E) = 1/S - y (1/S) E (1/S), where only S is sparse."""
        matrix = sp.Matrix(rows)
        bare = matrix.xreplace({symbol: sp.S.Zero for symbol in self.small})
        inverse = site_responses(bare.tolist())
        whole = inverse
        for symbol in self.small:
            rate = matrix.diff(symbol)
            if not rate.is_zero_matrix:
                rate = rate.xreplace({other: sp.S.Zero for other in self.small})
                whole = whole - symbol * (inverse * rate * inverse).applyfunc(sp.factor_terms)
        return whole

    def averaged(self, expression: sp.Expr) -> sp.Expr:
        """Return the average with first-order symbols moved in front of it."""
        expression = sp.sympify(expression)
        here = [symbol for symbol in self.small if expression.has(symbol)]
        none = {symbol: sp.S.Zero for symbol in here}
        total = super().averaged(expression.xreplace(none))
        for symbol in here:
            total += symbol * super().averaged(sp.diff(expression, symbol).xreplace(none))
        return total

    def propagator(self) -> Propagator:
        table = super().propagator()
        root = next(i for i, probe in enumerate(self.probes) if probe in self.equations.roots)
        for image, source in self.sources.items():
            table[root, self.probes.index(image)] = -source
        return dict(sorted(table.items()))

    def vanishing(self) -> set[sp.Symbol]:
        """Return the responses that are zero at epsilon = 0: no path leads from the impulse to the responding field."""
        table = super().propagator()
        every = {response.symbol for response in self.responses.values()}
        there: set[sp.Symbol] = set()
        while True:
            none = {symbol: sp.S.Zero for symbol in every - there}
            ways = {key: value for key, entry in table.items() if (value := entry.xreplace(none)) != 0}
            vanishing = {
                response.symbol
                for (probe, noise), response in self.responses.items()
                if self.probes.index(probe) in self.connected(noise, ways)
            }
            if vanishing == there:
                reached = self.connected(None, ways)
                driven = {self.response_symbol(p, None) for i, p in enumerate(self.probes) if i not in reached}
                return (every - there) | driven
            there = vanishing

    def unreached(self) -> list[sp.Symbol]:
        """Return the responses that vanish for every epsilon, as for a matrix of low rank, and therefore have no
        equation."""
        table = self.propagator()
        needed = [*self.responses, *((image, None) for image in self.images)]
        return [
            self.response_symbol(probe, column)
            for probe, column in needed
            if self.driven_by(column).sector not in self.differing
            and self.probes.index(probe) not in self.connected(column, table)
        ]
