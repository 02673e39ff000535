"""Formulas of verdicts and errors in the symbols of a source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field as data_field
from functools import cached_property
from typing import Any

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.words import Letter
from derive.claims.formulas import ActingMatrix, Bracket, Carrier, WordSum, noise_name, shown
from derive.language.vectors import Field
from derive.printing.lettering import Lettering, plain_letter
from derive.records.action import Leg
from derive.records.probe import Unknown
from derive.records.system import System

SOURCE = "source_"
"""Names of the overlaps <j a> of the probe's source begin with it."""


@dataclass(frozen=True)
class SourceText:
    """Printer of formulas in the names of the model, or in the symbols of its source if `letters` are given.

    `bulk` are the symbols of the bulk, of which `resolvent` is G.
    """

    system: System
    unknowns: tuple[Unknown, ...] = ()
    bulk: tuple[sp.Symbol, ...] = ()
    resolvent: sp.Symbol | None = None
    letters: Lettering | None = None
    typed: dict[str, str] = data_field(default_factory=dict)
    """Formulas as they were typed, by their translation."""

    @cached_property
    def fields(self) -> dict[str, Field]:
        return {f.name: f for f in (*(s.field for s in self.system.fields), *self.system.sources)}

    @cached_property
    def _carried(self) -> dict[str, tuple[str, sp.Expr]]:
        """The symbols of fields, noises, unknowns of A(z) and overlaps with the source, with their scales."""
        letters, found = self.letters, {}
        assert letters is not None
        for name, f in self.fields.items():
            if letters.rep(f) in letters.words:
                text = plain_letter(letters.words[letters.rep(f)])
                found[name] = text, letters.scale(f)
                found[SOURCE + name] = f"{SOURCE}{text}", letters.scale(f)
            if f in letters.noises:
                found[noise_name(name)] = plain_letter(letters.noises[f][0]), letters.noise_scale(f)
        for unknown in self.unknowns:
            found[unknown.name] = self._pair(unknown.kind, unknown.probe, unknown.field)
        return found

    def _pair(self, kind: str, a: Field, b: Field) -> tuple[str, sp.Expr]:
        """Return the symbol of an order parameter and its scale."""
        assert self.letters is not None
        known = self.letters.pair(kind, a, b)
        text = f"{kind}[{self.name(a)},{self.name(b)}]" if known is None else plain_letter(known[0])
        return text, self.letters.pair_scale(kind, a, b)

    @cached_property
    def _scalars(self) -> dict[sp.Symbol, sp.Expr]:
        """The scalars that have another symbol in the source, in terms of it."""
        letters = self.letters
        assert letters is not None
        named = (*self.system.model.parameters, *self.system.sectors)
        found: dict[sp.Symbol, sp.Expr] = {
            s: _symbol(plain_letter(letters.words[s])) for s in named if s in letters.words
        }
        for s in (Z, *self.bulk):
            entry = letters.engine.get(s.name)
            if entry is not None:
                found[s] = found[sp.Symbol(s.name, real=True)] = entry[1] * _symbol(plain_letter(entry[0]))
        pairs = {f"R_{a}_{j}": (a, j) for a in self.fields.values() for j in self.fields.values()}
        for s in self.bulk:
            if s.name in pairs and s != self.resolvent:
                text, scale = self._pair("R", *pairs[s.name])
                found[s] = scale * _symbol(text)
        return found

    def name(self, thing: object) -> str:
        """Return the symbol of a field, matrix, size or parameter; its name if it has none."""
        if self.letters is None:
            return str(thing)
        by_name = {s.name: s for s in self.letters.words}
        symbol = by_name.get(str(thing))
        latex = None if symbol is None else self.letters.word(symbol)
        if latex is not None:
            return plain_letter(latex)
        product = next((f.product for f in self.system.fields if f.field.name == str(thing) and f.product), None)
        if product is None:
            return str(thing)
        return f"{self.name(product.matrix)}{'.T' * product.transposed}*{self.name(product.argument)}"

    def noise(self, f: Field) -> str:
        """Return the symbol of the noise of a field, u[x] without one."""
        known = None if self.letters is None else self._carried.get(noise_name(f.name))
        return noise_name(self.name(f)) if known is None else known[0]

    def entry(self, row: str, column: str) -> sp.Expr:
        """Return the ratio of a block of A(z) to the one in symbols of the source."""
        if self.letters is None:
            return sp.S.One
        return self._carried[row][1] / self._carried[column][1]

    def names(self, things: Iterable[object]) -> str:
        """Return the symbols of several objects as a list in a sentence."""
        return ", ".join(dict.fromkeys(map(self.order_parameter, things)))

    def order_parameter(self, thing: object) -> str:
        """Return the symbol of an order parameter or of an unknown, and otherwise that of a name."""
        if self.letters is None:
            return f"{thing.kind}[{thing.a},{thing.b}]" if isinstance(thing, Letter) else str(thing)
        if isinstance(thing, Letter):
            return self._pair(thing.kind, thing.a, thing.b)[0]
        if str(thing) in self._carried:
            return self._carried[str(thing)][0]
        engine = self.letters.engine.get(str(thing))
        return self.name(thing) if engine is None else plain_letter(engine[0])

    def plain(self, expression: sp.Expr) -> sp.Expr:
        """Return a scalar in terms of the symbols of the source, for printing."""
        return expression if self.letters is None else expression.subs(self._scalars)

    def word(self, word: tuple[Any, ...]) -> str:
        """Return a word as text, without its scale."""
        return shown({word if self.letters is None else self._word(word)[0]: sp.S.One})

    def words(self, total: WordSum, unit: sp.Expr = sp.S.One) -> str:
        """Return a sum of words as text, divided by a unit."""
        if self.letters is None:
            return shown(total.terms)
        done = WordSum({})
        for word, coefficient in total.terms.items():
            parts, scale = self._word(word)
            done += WordSum({parts: self.plain(coefficient * scale / unit)})
        return shown(done.terms)

    def scale(self, word: tuple[Any, ...]) -> sp.Expr:
        """Return the ratio of a word to the one in symbols of the source."""
        return sp.S.One if self.letters is None else self._word(word)[1]

    def evidence(self, text: str) -> str:
        """Return a sentence on values at a point with the symbols of the source."""
        if self.letters is None:
            return text
        names = {s.name: str(value) for s, value in self._scalars.items()}
        alternatives = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        return re.sub(rf"(?<!\w)({alternatives}) = ", lambda m: f"{names[m[1]]} = ", text) if names else text

    def _word(self, word: tuple[Any, ...]) -> tuple[tuple[Carrier, ...], sp.Expr]:
        parts = [self._part(part) for part in word]
        return tuple(Carrier(text) for text, _ in parts), sp.Mul(*(scale for _, scale in parts))

    def _part(self, part: Any) -> tuple[str, sp.Expr]:
        match part:
            case Letter():
                text, scale = self._pair(part.kind, part.a, part.b)
                return text + (".T" if self._is_turned(part) else ""), scale
            case ActingMatrix():
                return self.name(part.matrix) + (".T" if part.transposed else ""), sp.S.One
            case Bracket():
                (left, a), (right, b) = self._leg(part.left), self._leg(part.right)
                return f"{part.kind}({left},{right})", a * b
        return self._carried.get(part.name, (str(part.name), sp.S.One))

    def _is_turned(self, letter: Letter) -> bool:
        """Return whether a letter is the transpose of its symbol; symbols with one training time have none."""
        assert self.letters is not None
        if letter.kind == "C" and len({f.role == "spectral" for f in letter.fields}) > 1:
            return False
        known = self.letters.pair(letter.kind, letter.a, letter.b)
        return letter.transposed != (known is not None and known[1])

    def _leg(self, leg: Leg) -> tuple[str, sp.Expr]:
        assert self.letters is not None
        scale = self.letters.scale(leg.field)
        return (f"hat({self.name(leg.field)})", 1 / scale) if leg.hatted else (self.name(leg.field), scale)


def _symbol(text: str) -> sp.Symbol:
    """Return a scalar that prints as a symbol of the source; one of several words in parentheses."""
    return sp.Symbol(f"({text})" if " " in text and "{" not in text else text)
