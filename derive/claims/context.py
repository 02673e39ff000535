"""Context of a claim: parsing, comparison and wording of results."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import mpmath
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.words import Letter
from derive.cells.region import Point, Region
from derive.cells.verdicts import PROVED, REFUTED, UNDECIDED, ComparisonOutcome, best, weakest
from derive.claims.equality import FURTHER_POINTS, Comparator, close, number, vanishes_identically
from derive.claims.formulas import Reader, WordSum
from derive.claims.reading import Claim, ClaimsFile
from derive.claims.source_letters import SourceLetters
from derive.claims.source_text import SourceText
from derive.equations.history import History, write_out
from derive.errors import ClaimError
from derive.expansions.infinity import moments_of_curve, moments_of_system
from derive.expansions.spikes import CaseSpikes
from derive.language.matrices import Disorder, Weights
from derive.pipeline import Derivation
from derive.printing.lettering import Lettering
from derive.printing.names import PrintedNames
from derive.printing.plain import TextPrinter
from derive.records.probe import MAP, BlockCycle
from derive.records.saddle import Conjugates
from derive.stages.conjugates import find_conjugates

SMALL = sp.Symbol("x", positive=True)
"""The small parameter of a series in a claims file."""
_BESIDE_PARAMETERS = {
    "inverse_map": ("s",),
    **dict.fromkeys(("resolvent", "equation", "scalar_map", "block", "matrix", "projected"), ("z",)),
}
"""Symbols besides parameters that a region may bound."""


class ClaimContext:
    """A claims file with the derivation against which it is checked. `comparator` belongs to the current claim."""

    comparator: Comparator

    def __init__(self, file: ClaimsFile, derivation: Derivation):
        self.file = file
        self.probed = bool(derivation.probes)
        self.system, self.action = derivation.system, derivation.action
        self.average, self.saddle = derivation.average, derivation.saddle
        self.derivation = derivation
        if self.probed:
            self.matrix = derivation.probes.get(file.layer, derivation.first)
            self.system, self.action = self.matrix.system, self.matrix.action
            self.average = derivation.average.joined(self.matrix.average)
            self.saddle = derivation.saddle.joined(self.matrix.saddle)
            for given in self.matrix.probe.measured:
                raise ClaimError(
                    f"the bulk depends on {given.average}, which itself depends on the parameters, and a claim "
                    "about the bulk cannot include this dependence; make it a parameter"
                )
            self.bulk, self.blocks = self.matrix.bulk, self.matrix.blocks
        self.parameters = self.system.model.parameters
        self.fields = {f.name: f for f in (*(s.field for s in self.system.fields), *self.system.sources)}
        self.comparators: dict[Any, Comparator] = {}
        self.integrals: list[str] = []
        self.spikes: dict[tuple[Any, ...], CaseSpikes] = {}
        self.letters: Lettering | None = None
        self.unit: sp.Expr = sp.S.One

    def in_names(self, claim: Claim) -> Claim:
        """Return a claim in the names of the model; `unit` is then the ratio of its object to the typed one."""
        self.unit = sp.S.One
        if self.source is not None:
            claim, self.unit = self.source.translated(claim, self.place(claim))
        return claim

    @cached_property
    def text(self) -> SourceText:
        """The printer of formulas in verdicts and errors."""
        typed = {} if self.source is None else self.source.typed
        if not self.probed:
            return SourceText(self.system, letters=self.letters, typed=typed)
        projected = self.bulk.projected
        unknowns = self.blocks.projected.unknowns
        return SourceText(
            self.system, unknowns, tuple(projected.bulk_symbols), projected.resolvent, self.letters, typed
        )

    @cached_property
    def history(self) -> History:
        """The trained weights as initial matrices and sums of updates."""
        return write_out(self.system.model)

    @cached_property
    def weights(self) -> tuple[Weights, ...]:
        """The trained weights."""
        return tuple(self.history.clocks)

    @cached_property
    def disorder(self) -> tuple[Disorder, ...]:
        """The random matrices, also those that act on no field of this derivation."""
        initial = (start.disorder for _, start in self.history.initial)
        return tuple(dict.fromkeys([*self.system.disorder, *initial]))

    @cached_property
    def conjugates(self) -> Conjugates:
        """The order parameters with their conjugates at the saddle point."""
        return find_conjugates(self.saddle)

    @cached_property
    def source(self) -> SourceLetters | None:
        """The notation in which claims are written; None for the names of the model."""
        if self.letters is None:
            return None
        return SourceLetters(self.letters, self.system, self.blocks.projected.unknowns if self.probed else ())

    def label(self, name: str) -> str:
        """Return the label of an unknown of A(z), written C[a,b], C[b,a], R[a,j] or with underscores for brackets."""
        names = re.fullmatch(r"([CR])\[(.*)\]", name.replace("(z)", ""))
        a, _, b = (names[2] if names else "").partition(",")
        for unknown in self.blocks.projected.unknowns:
            fields = (unknown.probe.name, unknown.field.name)
            orders = (fields, fields[::-1]) if unknown.kind == "C" else (fields,)
            spelled = (self.respelled(a.strip()), self.respelled(b.strip()))
            if names and unknown.kind == names[1] and spelled in orders:
                return unknown.name
            if name in ("_".join((unknown.kind, *order)) for order in orders):
                return unknown.name
        return name

    def respelled(self, text: str) -> str:
        """Return text with products in the form of `derive show`, such as J0^T g1, replaced by the names of their
        fields."""
        return self._printed.sub(lambda m: self._spellings[m[0]], text) if self._spellings else text

    @cached_property
    def _spellings(self) -> dict[str, str]:
        printer = TextPrinter(PrintedNames.of(self.system))
        return {printer._product(f): f.name for f in printer.names.products}

    @cached_property
    def _printed(self) -> re.Pattern[str]:
        forms = "|".join(re.escape(form) for form in sorted(self._spellings, key=len, reverse=True))
        return re.compile(rf"(?<![\w^])(?:{forms})(?!\w)")

    def comparator_of(self, claim: Claim) -> Comparator:
        """Return the comparator of the claim's region; its points are computed once."""
        beside = _BESIDE_PARAMETERS.get(claim.kind, ())
        key = (claim.region, beside, claim.define if claim.region else ())
        if key not in self.comparators:
            reader = self.reader(claim, *beside)
            inequalities = [c for text in claim.region for c in reader.inequalities(text)]
            bounds = tuple(c for c, _ in inequalities if c.has(MAP, Z))
            conditions = tuple(c for c, _ in inequalities if c not in bounds)
            closed = tuple(c for c, may_be_zero in inequalities if may_be_zero and c not in bounds)
            region = Region(self.place(claim), tuple(self.parameters), " and ".join(claim.region), conditions, closed)
            comparator = Comparator(region, self.bulk if self.probed else None, bounds)
            if conditions:
                region.box, comparator.points  # noqa: B018  (an empty region is refused before anything is decided)
            self.comparators[key] = comparator
        return self.comparators[key]

    def place(self, claim: Claim) -> str:
        """Return where a claim is, for messages: its file and its name."""
        return f"{self.file.path.name}, claim {claim.name!r}"

    @cached_property
    def responses(self) -> dict[Letter, sp.Expr]:
        """The responses of the bulk, functions of z."""
        spectral = [f for f in self.fields.values() if f.role == "spectral"]
        named = {symbol.name: symbol for symbol in self.bulk.projected.bulk_symbols}
        pairs = {(a, j): named.get(f"R_{a.name}_{j.name}") for a in spectral for j in spectral}
        found = {Letter.response(a, j): symbol for (a, j), symbol in pairs.items() if symbol is not None}
        letters = self.letters or Lettering()
        for a, other in ((a, b) for a in spectral for b in spectral if letters.rep(b) == a != b):
            for j in spectral:
                symbol = pairs[other, j]
                if symbol is not None:
                    found.setdefault(Letter.response(a, j), letters.scale(a) / letters.scale(other) * symbol)
        return found

    def spectral_reader(self, claim: Claim) -> Reader:
        """Return the parser of formulas in z, G, C, R and the responses of the bulk."""
        reader = self.reader(claim, "z", "G", matrices=True)
        named = {symbol.name: symbol for symbol in self.bulk.projected.bulk_symbols}
        return replace(reader, scalars={**named, **reader.scalars}, responses=self.responses)

    def reader(self, claim: Claim, *names: str, matrices: bool = False, sizes: bool = False) -> Reader:
        """Return the parser of a claim's formulas, with C and R if `matrices`, with i and the sizes if `sizes`."""
        special: dict[str, sp.Expr] = {"z": Z, "s": MAP, "x": SMALL}
        if self.probed:
            special["G"] = self.bulk.projected.resolvent
        scalars = {p.name: p for p in self.parameters}
        scalars = {**{name: special[name] for name in names}, "pi": sp.pi, **scalars}
        if sizes:
            scalars = {"i": sp.I, **{sector.name: sector for sector in self.system.sectors}, **scalars}
        fields = self.fields if matrices else None
        spelling = self.respelled if matrices else None
        return Reader(
            self.place(claim),
            scalars,
            fields,
            define=dict(claim.define),
            integrals=self.integrals,
            respelled=spelling,
            typed=self.text.typed,
            name=self.text.name,
        )

    @property
    def curve(self) -> sp.Expr:
        """The curve of the bulk; without one the claim is refused."""
        return cast(sp.Expr, self.bulk.curve)

    def fixed(self, claim: Claim, reader: Reader) -> Point:
        """Return the exact values that `at` assigns to parameters."""
        names = {p.name: p for p in self.parameters}
        fixed: Point = {}
        for name, text in claim.get("at", ()):
            if name not in names:
                raise ClaimError(f"{self.place(claim)}: at names {name}, but the parameters are {', '.join(names)}")
            fixed[names[name]] = reader.scalar(text)
            if not fixed[names[name]].is_Rational:
                raise ClaimError(f"{self.place(claim)}: {name} = {text} in at is not a whole number or a fraction")
            if not names[name].domain.contains(float(fixed[names[name]])):
                raise ClaimError(
                    f"{self.place(claim)}: {name} = {text} is out of range: it must be {names[name].domain}"
                )
        for condition in (c.subs(fixed) for c in self.comparator.region.conditions):
            if condition.is_number and condition.is_positive is not True:
                raise ClaimError(f"{self.place(claim)}: the values in at lie outside the region; correct one of them")
        return fixed

    def cycle(self, claim: Claim) -> BlockCycle:
        """Return the cycle of A(z) that a claim names."""
        cycles = self.matrix.pencil.cycles
        wanted = claim.get("eigenproblem", 1)
        if not 1 <= wanted <= len(cycles):
            raise ClaimError(
                f"{self.place(claim)}: A(z) reduces to {len(cycles)} eigenproblems; there is no eigenproblem {wanted}"
            )
        return cycles[wanted - 1]

    def moments(self, order: int) -> list[sp.Expr]:
        """Return the moments of the bulk up to an order."""
        projected = self.bulk.projected
        if projected.differing and self.bulk.curve is not None:  # equations free of denominators have another form
            return moments_of_curve(self.bulk.curve, projected.resolvent, order)
        return moments_of_system(projected.algebraic, projected.bulk_symbols, projected.resolvent, order, {})

    def vanishes(self, expression: sp.Expr) -> bool:
        """Return whether an expression in the parameters vanishes by algebra, with radicals simplified within the
        region."""
        return vanishes_identically(expression) or vanishes_identically(expression, box=self.comparator.region.box)

    def conclude(
        self, result: ComparisonOutcome, claimed: sp.Expr, derived: sp.Expr, what: str, how: str = ""
    ) -> tuple[str, str]:
        """Return the status and the detail of a comparison."""
        claimed, derived = claimed / self.unit, derived / self.unit
        derived_text, claimed_text = shown_formula(self.text.plain(derived)), shown_formula(self.text.plain(claimed))
        if result.status != PROVED:
            evidence = self._refuted(result, claimed, derived, self.unit)
            return result.status, f"derived {what} = {derived_text}, claimed {claimed_text}; {evidence}"
        return PROVED, ", ".join(filter(None, (f"derived {what} = {derived_text}", how, result.evidence)))

    def same_sets(self, values: list[sp.Expr], derived: tuple[sp.Expr, ...], what: str) -> tuple[str, str]:
        """Compare two sets of formulas up to their order."""
        text = ", ".join(map(shown_formula, derived)) or "none in closed form"
        if not derived:
            return UNDECIDED, f"derived {what} {text}"
        points = self.comparator.region.points(FURTHER_POINTS)
        for values_there in self.comparator.values({s for e in (*values, *derived) for s in e.free_symbols}, points):
            open_numbers = [number(other, values_there) for other in derived]
            at = shown_point(values_there, *values, *derived)
            at = f" at {at}" if at else ""
            for value in values:
                here = number(value, values_there)
                match = next((other for other in open_numbers if close(here, other)), None)
                if match is None and not mpmath.isnan(here):
                    return REFUTED, f"derived {what} {text}; {shown_formula(value)} is not among them{at}"
                if match is not None:
                    open_numbers.remove(match)
            if open_numbers and len(values) < len(derived):
                left = [other for other in derived if any(close(number(other, values_there), n) for n in open_numbers)]
                return REFUTED, f"derived {what} {text}; the claim leaves out {', '.join(map(shown_formula, left))}{at}"
        open_ones, statuses, detail = list(derived), [PROVED], ""
        for value in values:
            results = [self.comparator.same(value, other) for other in open_ones]
            closest = best(results)
            if closest.status == REFUTED:  # the two lists agree at every point, but not in one order
                return (
                    UNDECIDED,
                    f"derived {what} {text}; {shown_formula(value)} is one of them at each point, but not always the "
                    "same",
                )
            statuses.append(closest.status)
            if closest.evidence:
                detail = f"; {shown_formula(value)}: {closest.evidence}"
            open_ones.pop(results.index(closest))
        return weakest(statuses), f"derived {what} {text}{detail}"

    def _refuted(self, result: ComparisonOutcome, claimed: sp.Expr, derived: sp.Expr, scale: sp.Expr) -> str:
        """Return the evidence of a comparison, with the numbers of two sides that it compared times a scale."""
        if result.status == REFUTED and scale != 1:
            scaled = self.comparator.same(claimed, derived)
            result = scaled if scaled.status == REFUTED else result
        return self.text.evidence(result.evidence)

    def same_words(self, claimed: WordSum, derived: WordSum, what: str, unit: sp.Expr | None = None) -> tuple[str, str]:
        """Compare two sums of words coefficient by coefficient; they are printed in terms of a unit."""
        unit, text = self.unit if unit is None else unit, self.text
        if self.source is not None:
            claimed, derived = (_with_probe_last(self.source.same(side)) for side in (claimed, derived))
        statuses, modulo, detail = [PROVED], False, ""
        for word in dict.fromkeys([*derived.terms, *claimed.terms]):
            left, right = claimed.terms.get(word, sp.S.Zero), derived.terms.get(word, sp.S.Zero)
            result = self.comparator.same(left, right)
            if result.status == REFUTED:
                scale = text.scale(word) / unit
                evidence = self._refuted(result, scale * left, scale * right, scale)
                return REFUTED, (
                    f"derived {what} = {text.words(derived, unit)}, claimed {text.words(claimed, unit)}; they differ "
                    f"in the coefficient of {text.word(word)}: {evidence}"
                )
            modulo = modulo or self.probed and bool(right.free_symbols & set(self.bulk.projected.bulk_symbols))
            statuses.append(result.status)
            if result.evidence:
                detail = f"; coefficient of {text.word(word)}: {text.evidence(result.evidence)}"
        how = ", modulo the bulk equations" if modulo else ""
        return weakest(statuses), f"derived {what} = {text.words(derived, unit)}{how}{detail}"


def _with_probe_last(total: WordSum) -> WordSum:
    """Return words in which every correlation of a training and a spectral field has the same order of arguments.

    The notation of a source fixes the order of times, so that such a correlation is always summed over its training
    time.
    """
    done = WordSum({})
    for word, scale in total.terms.items():
        done += WordSum({tuple(letter.plain if _is_mixed(letter) else letter for letter in word): scale})
    return done


def _is_mixed(letter: object) -> bool:
    """Return whether a letter is the correlation of a training and a spectral field."""
    roles = {f.role == "spectral" for f in letter.fields} if isinstance(letter, Letter) and letter.kind == "C" else ()
    return len(roles) > 1


def shown_formula(expression: sp.Expr) -> str:
    """Return a formula as text."""
    return str(expression.subs(MAP, sp.Symbol("s")))


def shown_point(point: dict[sp.Symbol, Any], *expressions: sp.Expr) -> str:
    """Return a point of the parameters as text."""
    inside = {s for e in expressions for s in e.free_symbols}
    return ", ".join(f"{p} = {v}" for p, v in point.items() if p in inside)
