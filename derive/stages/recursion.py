"""SaddlePoint, TimeOrder -> Recursion: the step that linear training applies over and over, on fixed or fresh data."""

from __future__ import annotations

import sympy as sp

from derive.equations.linear_laws import LinearLaws
from derive.errors import blaming
from derive.language.vectors import Field, FieldAt, Mean
from derive.records.base import gathered
from derive.records.limit import Overlap, OverlapTerm, Recursion
from derive.records.saddle import SaddlePoint, TimeOrder
from derive.records.system import Term, quadratic_pairs


def find_recursion(saddle: SaddlePoint, order: TimeOrder) -> Recursion:
    """The step of training; refused where laws are not linear or change with time. What is constant in time drives it
    and is left out."""
    return _Repeated(saddle).recursion(order)


class _Repeated(LinearLaws):
    """The step of training alone: neither starts nor what is constant in time takes part."""

    def __init__(self, saddle: SaddlePoint):
        super().__init__(saddle.system)
        self.saddle = saddle
        self._check()

    def _check(self) -> None:
        self.fields = {field: f for field, f in self.fields.items() if field.timed}
        for f in self.fields.values():
            with blaming(f.origin):
                self.check_rule(f.field, f.rule)

    def check_means(self, field: Field, term: Term) -> None:
        if not term.coefficient.has(Mean) or self._overlap_terms(field, term) is None:
            super().check_means(field, term)

    def recursion(self, order: TimeOrder) -> Recursion:
        rules = {f.field: f.rule.terms for f in self.fields.values()}
        overlaps = [self._overlap_terms(field, term) or () for field, terms in rules.items() for term in terms]
        memories = [m for m in self.saddle.memories if m.target in self.fields and m.on in self.fields]
        timed = {f.field for f in self.system.training if f.field.timed}
        observed = [
            (name, tuple(dict.fromkeys(v.field for v in _values(value) if v.field in timed)))
            for name, value in self.system.model.observe
        ]
        return Recursion(
            system=self.system,
            fields=tuple(self.fields),
            sources=tuple(self.system.sources),
            parts=tuple(part for f in self.fields.values() for part in self.parts(f)),
            memories=tuple(memories),
            covariances=tuple(c for c in self.saddle.covariances if c.a in self.fields and c.b in self.fields),
            observed=tuple(observed),
            stirred=tuple(field for field, terms in rules.items() if any(map(self._drawn_afresh, terms))),
            overlap_terms=tuple(term for some in overlaps for term in some),
            assumptions=gathered(self.saddle, order, new="training goes on for ever with the same laws"),
        )

    def _drawn_afresh(self, term: Term) -> bool:
        """Whether a term is noise of its own time: what a mean over sites multiplies is not."""
        return term.vector.field in self.system.sources and term.vector.field.timed and not term.coefficient.has(Mean)

    def _overlap_terms(self, field: Field, term: Term) -> tuple[OverlapTerm, ...] | None:
        """A term with one mean over sites that is linear in a field; None if it has another form."""
        means = term.coefficient.atoms(Mean)
        if not means or term.vector.field in self.fields or field.labelled or term.vector.field.labelled:
            return None
        mean = means.pop()
        factor = sp.expand(term.coefficient).coeff(mean)
        pairs = quadratic_pairs(mean)
        if means or pairs is None or factor.has(Mean) or sp.expand(factor * mean - term.coefficient) != 0:
            return None
        found = []
        for scale, *both in pairs:
            inside = [value for value in both if value.field in self.fields]
            sources = [value for value in both if value.field in self.system.sources]
            if len(sources) == 2:
                continue  # a number, which drives
            if len(sources) != 1 or len(inside) != 1 or not self._together(field, sources[0], inside[0], term.vector):
                return None
            overlap = Overlap(sources[0].field, inside[0].field, self.lag(field, inside[0]), scale)
            found.append(OverlapTerm(field, term.vector.field, factor, overlap))
        return tuple(found)

    def _together(self, target: Field, source: FieldAt, value: FieldAt, vector: FieldAt) -> bool:
        """Whether sources that are drawn afresh are taken at the time of what they meet."""
        met = not source.field.timed or self.lag(target, source) == self.lag(target, value)
        return met and (not vector.field.timed or self.lag(target, vector) == 0)


def _values(expression: sp.Expr) -> list[FieldAt]:
    return sorted(expression.atoms(FieldAt), key=sp.default_sort_key)
