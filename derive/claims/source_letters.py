"""Claims typed in the notation of a source, translated into the names of the model with their scales."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property

import sympy as sp

from derive.algebra.words import Letter
from derive.claims.formulas import Bracket, Carrier, WordSum, noise_name
from derive.claims.reading import Claim
from derive.claims.source_text import SOURCE
from derive.errors import ClaimError
from derive.language.contents import atoms
from derive.language.matrices import Disorder, Weights
from derive.language.symbols import Sector
from derive.language.vectors import Field
from derive.printing.lettering import Lettering, plain_letter
from derive.records.action import Leg
from derive.records.probe import Unknown
from derive.records.system import System

_LEG = r"\s*(hat\([^(),]+\)|[^(),]+)\s*"
_BRACKET = re.compile(rf"\b(dot|outer)\({_LEG},{_LEG}\)")
_FORMULAS = ("position", "set", "size", "times", "rows_times", "columns_times")
"""Keys besides the value that contain formulas."""
_UNKNOWN = re.compile(r"[A-Za-z]\w*(?:\^\w+(?:\(0\))?|[_^]\{[^{}]*\})+")
"""A symbol with an upper index or braces; formulas have neither."""


@dataclass(frozen=True)
class Written:
    """A symbol in the names of the model: it equals `scale` times `token`."""

    token: str
    scale: sp.Expr

    @property
    def formula(self) -> str:
        return self.token if self.scale == 1 else f"(({self.scale})*{self.token})"


class SourceLetters:
    """The symbols that occur in one derivation, by their plain text."""

    def __init__(self, letters: Lettering, system: System, unknowns: tuple[Unknown, ...]):
        self.letters, self.system, self.unknowns = letters, system, unknowns
        self.typed: dict[str, str] = {}
        """Formulas as they were typed, by their translation."""

    @cached_property
    def fields(self) -> dict[str, Written]:
        """The symbols of fields, as names."""
        here = (*(f.field for f in self.system.fields), *self.system.sources)
        lettered = [f for f in here if f in self.letters.words and self.letters.rep(f) == f]
        found: dict[str, Written] = {}
        for f in lettered:
            found.setdefault(plain_letter(self.letters.words[f]), Written(f.name, 1 / self.letters.scale(f)))
        return found

    @cached_property
    def own_noises(self) -> dict[str, Written]:
        """The symbols of noises, each with the name of its product."""
        here = {f.field for f in self.system.fields}
        return {
            plain_letter(latex): Written(f.name, 1 / self.letters.noise_scale(f))
            for f, (latex, _) in self.letters.noises.items()
            if f in here
        }

    @cached_property
    def noises(self) -> dict[str, Written]:
        return self.fields | self.own_noises

    @cached_property
    def pairs(self) -> dict[str, list[Written]]:
        """The symbols of order parameters; several responses may share one."""
        found: dict[str, list[Written]] = {}
        for (kind, a, b), (latex, _) in self.letters.pairs.items():
            if {a, b} <= self.here:
                scale = 1 / self.letters.pair_scale(kind, a, b)
                found.setdefault(plain_letter(latex), []).append(Written(f"{kind}[{a},{b}]", scale))
        return found

    @cached_property
    def labels(self) -> dict[str, Written]:
        """The symbols of the unknowns of A(z), as labels."""
        found = {}
        for unknown in self.unknowns:
            letter = self.letters.pair(unknown.kind, unknown.probe, unknown.field)
            if letter is not None:
                scale = 1 / self.letters.pair_scale(unknown.kind, unknown.probe, unknown.field)
                found[plain_letter(letter[0])] = Written(unknown.name, scale)
        return found

    @cached_property
    def symbols(self) -> dict[str, Written]:
        """The symbols of parameters, sizes, matrices and of G."""
        model = self.system.model
        here = {*self.system.sectors, *self.system.disorder, *model.parameters, *atoms(model, (Weights, Disorder))}
        kept = {s: latex for s, latex in self.letters.words.items() if s in here and not isinstance(s, Field)}
        found: dict[str, Written] = {}
        for symbol, latex in sorted(kept.items(), key=lambda item: isinstance(item[0], Sector)):
            found.setdefault(plain_letter(latex), Written(symbol.name, sp.S.One))
        engine = {plain_letter(latex): Written(name, 1 / scale) for name, (latex, scale) in self.letters.engine.items()}
        return engine | found

    def canonical(self, letter: Letter) -> tuple[Letter, sp.Expr]:
        """Return the first order parameter with the same symbol, and the ratio of the two."""
        letters, (kind, a, b) = self.letters, (letter.kind, letter.a, letter.b)
        if letter.time is not None:
            return letter, sp.S.One
        if kind == "C":
            plain = Letter.correlation(letters.rep(a), letters.rep(b))
            turned = plain.transposed != letter.transposed
            scale = letters.scale(a) * letters.scale(b) / (letters.scale(plain.a) * letters.scale(plain.b))
            return (plain.plain.T if turned else plain.plain), scale
        found = letters.pair("R", a, b)
        here = [(x, y) for k, x, y in letters.pairs if k == "R" and found and letters.pairs[k, x, y][0] == found[0]]
        x, y = next(((x, y) for x, y in here if {x, y} <= self.here), (letters.rep(a), b))
        plain = Letter.response(x, y)
        scale = letters.pair_scale("R", a, b) / letters.pair_scale("R", x, y)
        return (plain.T if letter.transposed else plain), scale

    def same(self, total: WordSum) -> WordSum:
        """Return words in which one object represents all objects that share its symbol."""
        names = {f.name: f for f in self.here}
        done = WordSum({})
        for word, coefficient in total.terms.items():
            parts: list[object] = []
            for part in word:
                if isinstance(part, Letter):
                    part, scale = self.canonical(part)
                    coefficient *= scale
                elif isinstance(part, Carrier) and part.name in names:
                    f = names[part.name]
                    coefficient *= self.letters.scale(f) / self.letters.scale(self.letters.rep(f))
                    part = Carrier(self.letters.rep(f).name)
                elif isinstance(part, Bracket):
                    (left, a), (right, b) = self._leg(part.left), self._leg(part.right)
                    part, coefficient = replace(part, left=left, right=right), coefficient * a * b
                parts.append(part)
            done += WordSum({tuple(parts): coefficient})
        return done

    def _leg(self, leg: Leg) -> tuple[Leg, sp.Expr]:
        """Return the vector that represents all with the symbol of one, and the ratio of the two."""
        f, letters = leg.field, self.letters
        scale = letters.scale(f) / letters.scale(letters.rep(f))
        return replace(leg, field=letters.rep(f)), 1 / scale if leg.hatted else scale

    @cached_property
    def here(self) -> set[Field]:
        """The fields of the derivation."""
        return {*(f.field for f in self.system.fields), *self.system.sources}

    def translated(self, claim: Claim, place: str) -> tuple[Claim, sp.Expr]:
        """Return a claim in the names of the model, and the ratio of the object that it is about to its symbol."""
        keys = dict(claim.keys)
        first = {letter: some[0] for letter, some in self.pairs.items()}
        meanings = self.symbols | self.fields | first
        if claim.kind == "projected":
            overlaps = {f"{SOURCE}{x}": replace(w, token=f"{SOURCE}{w.token}") for x, w in self.fields.items()}
            meanings |= overlaps | self.labels
        if claim.kind == "site":
            meanings |= {name: replace(w, token=noise_name(w.token)) for name, w in self.own_noises.items()}

        def written(text: str) -> str:
            return self.formula(text, meanings, place)

        unit = self._subject(claim, keys, first)
        if claim.kind == "matrix":
            labels = [self.labels.get(label, Written(label, sp.S.One)) for label in claim.get("labels")]
            keys["labels"] = tuple(label.token for label in labels)
            keys["value"] = tuple(
                tuple(
                    self._noted(_times(column.scale / row.scale, written(text)), text)
                    for text, column in zip(texts, labels, strict=False)
                )
                for texts, row in zip(claim.get("value"), labels, strict=False)
            )
        else:
            keys["value"] = _mapped(keys["value"], lambda text: self._noted(_times(unit, written(text)), text))
        for key in _FORMULAS:
            if key in keys:
                keys[key] = _mapped(keys[key], written)
        if "at" in keys:
            keys["at"] = tuple((self._token(name, self.symbols), written(text)) for name, text in claim.get("at"))
        define = tuple((name, written(text)) for name, text in claim.define)
        region = tuple(map(written, claim.region))
        return replace(claim, keys=tuple(keys.items()), define=define, region=region), unit

    def _subject(self, claim: Claim, keys: dict[str, object], first: dict[str, Written]) -> sp.Expr:
        """Replace the symbols of the objects that a claim is about by their names; return the ratio of the two."""

        def found(key: str, table: dict[str, Written]) -> sp.Expr:
            ratio = 1 / table[str(keys[key])].scale if str(keys[key]) in table else sp.S.One
            keys[key] = self._token(str(keys[key]), table)
            return ratio

        match claim.kind:
            case "kernel" | "law" | "site":
                return found("target", self.fields | self.symbols)
            case "weights":
                found("target", self.symbols)
            case "covariance":
                pair = [self.noises.get(name, Written(name, sp.S.One)) for name in claim.get("noises")]
                keys["noises"] = tuple(written.token for written in pair)
                return 1 / sp.Mul(*(written.scale for written in pair))
            case "block":
                return found("row", self.labels) / found("column", self.labels)
            case "projected":
                return found("unknown", self.labels)
            case "series":
                for key in {"in", "parameter"} & set(keys):
                    found(key, self.symbols)
                return found("of", self.symbols | first)
            case "threshold":
                found("parameter", self.symbols)
            case "order_parameter":
                return found("of", first)
            case "conjugate":
                return 1 / found("of", first)
            case "source" | "average":
                found("matrix", self.symbols)
        return sp.S.One

    def _token(self, name: str, table: dict[str, Written]) -> str:
        """Return the name of the model for a symbol, spelled with spaces or as a product; itself if it is none."""
        spelled = name if name in table else name.replace("*", " ")
        return table[spelled].token if spelled in table else name

    def _noted(self, translated: str, typed: str) -> str:
        """Return a formula in the names of the model, noting how it was typed."""
        return self.typed.setdefault(translated, typed) and translated

    def formula(self, text: str, meanings: dict[str, Written], place: str) -> str:
        """Return a formula in the names of the model.

        Raises:
            ClaimError: it contains a symbol of no object of the derivation.
        """

        def bracket(match: re.Match[str]) -> str:
            scale: sp.Expr = sp.S.One
            legs = []
            for leg in match.groups()[1:]:
                hatted = leg.startswith("hat(")
                name = leg[4:-1].strip() if hatted else leg.strip()
                written = self.fields.get(name, Written(name, sp.S.One))
                scale *= 1 / written.scale if hatted else written.scale
                legs.append(f"hat({written.token})" if hatted else written.token)
            return _times(scale, f"{match[1]}({','.join(legs)})")

        pieces = _BRACKET.split(text)
        done = pieces[0] and _replaced(pieces[0], meanings)
        for start, match in zip(range(4, len(pieces), 4), _BRACKET.finditer(text), strict=True):
            done += bracket(match) + _replaced(pieces[start], meanings)
        self._check_known(text, meanings, place)
        return done

    def _check_known(self, text: str, meanings: dict[str, Written], place: str) -> None:
        """Raise for a symbol with an index that no object of the derivation has; powers of names are errors of the
        parser."""
        plain = {s.name for s in self.system.model.parameters} | {"x", "z", "s", "G"}
        for token in (m[0] for m in _UNKNOWN.finditer(text)):
            power = "{" not in token and re.split(r"\^", token)[0] in plain
            if token not in meanings and not power:
                near = get_close_matches(token, meanings, n=3, cutoff=0.5)
                hint = f"did you mean {' or '.join(near)}? " if near else ""
                raise ClaimError(
                    f"{place}: {token} is no symbol of this derivation; {hint}`derive show SETTING --notation paper` "
                    "prints the table"
                )


def _replaced(text: str, meanings: dict[str, Written]) -> str:
    if not meanings:
        return text
    typed = {letter.replace(" ", "*"): letter for letter in meanings if "{" not in letter}
    spelled = {**{letter: letter for letter in meanings}, **typed}
    letters = "|".join(re.escape(letter) for letter in sorted(spelled, key=len, reverse=True))
    boundary = rf"(?<![\w^\[,])({letters})(?![\w^{{(\[])"
    return re.sub(boundary, lambda m: meanings[spelled[m[1]]].formula, text)


def _times(scale: sp.Expr, text: str) -> str:
    return text if scale == 1 else f"({scale})*({text})"


def _mapped(value: object, change: Callable[[str], str]) -> object:
    return tuple(_mapped(part, change) for part in value) if isinstance(value, tuple) else change(str(value))
