"""SaddlePoint, TimeOrder -> Recursion: the linear map of a training step, on fixed or fresh data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import sympy as sp

from derive.equations.linear_laws import LinearLaws
from derive.equations.multiplicative_noise import NoisyTerm, covariance_of, drawn_before, noisy_terms
from derive.errors import DeclarationError, blaming
from derive.language.vectors import Field, FieldAt, Mean, shown
from derive.records.base import gathered
from derive.records.limit import LinearPart, Overlap, OverlapTerm, Recursion
from derive.records.saddle import NoiseKernel, SaddlePoint, TimeOrder
from derive.records.system import SystemField, Term, quadratic_pairs


def find_recursion(saddle: SaddlePoint, order: TimeOrder) -> Recursion:
    """Return the homogeneous linear map of a training step, without constant sources.

    Raises:
        DeclarationError: if laws are not linear, or change with time.
    """
    return _HomogeneousStep(saddle, order).recursion()


class _HomogeneousStep(LinearLaws):
    """The homogeneous part of a training step: without starting values and constant sources."""

    def __init__(self, saddle: SaddlePoint, order: TimeOrder):
        super().__init__(saddle.system)
        self.saddle, self.order = saddle, order
        timed = {field: f for field, f in self.fields.items() if field.timed}
        self.fields = {field: f for field, f in timed.items() if not _drawn_by_law(f)}
        sources = [source for source in self.system.sources if source.timed]
        self.noises = {*sources, *(field for field in timed if field not in self.fields)}
        self.noisy: dict[Field, tuple[NoisyTerm, ...]] = {}
        for f in self.fields.values():
            with blaming(f.origin):
                self._check(f)

    def _check(self, f: SystemField) -> None:
        """Refuse laws that are not linear with constant coefficients, up to noise drawn anew at each step."""
        terms = noisy_terms(f.rule.laws[0], self.fields, self.noises) if f.rule.laws else None
        if terms is None:
            self.check_rule(f.field, f.rule)
            return
        for term in terms:
            if term.value is not None:
                self._check_noisy(f.field, term, term.value)
        self.noisy[f.field] = terms

    def _check_noisy(self, field: Field, term: NoisyTerm, value: FieldAt) -> None:
        plain = Term(term.coefficient, value)
        self.check_means(field, plain)
        self.check_constant(field, plain)
        met = drawn_before(self.order, term, lambda v: self.lag(field, v))
        if met is not None:
            raise DeclarationError(
                f"{shown(met)} multiplies {shown(value)}, which depends on the same draw, and the recursion is derived "
                "for noise that is independent of what it multiplies; solve it at a large T"
            )
        differing = [trait for trait in self.system.trained_traits if trait.sector == field.sector]
        if term.noises and (differing or any(noise.field.labelled for noise in term.noises)):
            what = f"sites that differ by {differing[0]}" if differing else "a draw for each label"
            raise DeclarationError(
                f"{shown(term.noises[0])} multiplies {shown(value)} with {what}, for which the recursion is not "
                "derived; solve it at a large T"
            )

    def check_means(self, field: Field, term: Term) -> None:
        if not term.coefficient.has(Mean) or self._overlap_terms(field, term) is None:
            super().check_means(field, term)

    def recursion(self) -> Recursion:
        rules = {f.field: f.rule.terms for f in self.fields.values()}
        overlaps = [self._overlap_terms(field, term) or () for field, terms in rules.items() for term in terms]
        memories = [m for m in self.saddle.memories if m.target in self.fields and m.on in self.fields]
        timed = {f.field for f in self.system.training if f.field.timed}
        observed = [
            (name, tuple(dict.fromkeys(v.field for v in _values(value) if v.field in timed)))
            for name, value in self.system.model.observe
        ]
        covariances = [c for c in self.saddle.covariances if c.a in self.fields and c.b in self.fields]
        stirred = {field for field, terms in rules.items() if any(map(self._drawn_afresh, terms))}
        stirred |= {field for field, terms in self.noisy.items() if any(t.noises and t.value is None for t in terms)}
        return Recursion(
            system=self.system,
            fields=tuple(self.fields),
            sources=tuple(self.system.sources),
            parts=tuple(part for f in self.fields.values() for part in (*self.parts(f), *self._mean_parts(f.field))),
            memories=tuple(memories),
            covariances=(*covariances, *self._noise_covariances()),
            observed=tuple(observed),
            stirred=tuple(field for field in self.fields if field in stirred),
            overlap_terms=tuple(term for group in overlaps for term in group),
            assumptions=gathered(self.saddle, self.order, new="training continues indefinitely with the same laws"),
        )

    def _drawn_afresh(self, term: Term) -> bool:
        """Return whether a term is white noise; noise times a mean over sites is not."""
        return term.vector.field in self.noises and not term.coefficient.has(Mean)

    def _mean_parts(self, field: Field) -> list[LinearPart]:
        """Return the coefficients of fields in a law with noise, averaged over the noise."""
        return [
            LinearPart(field, term.value.field, mean, self.lag(field, term.value))
            for term in self.noisy.get(field, ())
            if term.value is not None and (mean := sp.factor(term.mean)) != 0
        ]

    def _noise_covariances(self) -> Iterator[NoiseKernel]:
        """Yield the covariances of the fluctuating part of the law, which is uncorrelated with the past."""
        noisy = [(f, term) for f, terms in self.noisy.items() for term in terms if term.noises and term.value]
        for (f, first), (g, second) in product(noisy, repeat=2):
            covariance = covariance_of(first, second)
            if covariance == 0 or first.value is None or second.value is None:
                continue
            with blaming(self.fields[f].origin):
                self._check_times((f, first), (g, second))
            yield NoiseKernel(f, g, covariance, first.value.field, second.value.field, fresh=True)

    def _check_times(self, *both: tuple[Field, NoisyTerm]) -> None:
        """Refuse a noise that occurs in two terms at different times."""
        lags = [{v.field: self.lag(f, v) for v in term.noises} for f, term in both]
        values = [self.lag(f, term.value) for f, term in both if term.value is not None]
        for noise in lags[0]:
            if values[0] != values[1] or lags[1].get(noise, lags[0][noise]) != lags[0][noise]:
                raise DeclarationError(
                    f"{noise} multiplies fields at several times, for which the recursion is not derived; solve it at "
                    "a large T"
                )

    def _overlap_terms(self, field: Field, term: Term) -> tuple[OverlapTerm, ...] | None:
        """Return a term as one mean over sites that is linear in a field; None if it has another form."""
        means = term.coefficient.atoms(Mean)
        if not means or term.vector.field in self.fields or field.labelled or term.vector.field.labelled:
            return None
        mean = means.pop()
        factor = sp.expand(term.coefficient).coeff(mean)
        pairs = quadratic_pairs(mean)
        if means or pairs is None or factor.has(Mean) or sp.expand(factor * mean - term.coefficient) != 0:
            return None
        terms = []
        for scale, *both in pairs:
            inside = [value for value in both if value.field in self.fields]
            sources = [value for value in both if value.field in self.system.sources]
            if len(sources) == 2:
                continue  # a number, which drives
            if len(sources) != 1 or len(inside) != 1 or not self._together(field, sources[0], inside[0], term.vector):
                return None
            overlap = Overlap(sources[0].field, inside[0].field, self.lag(field, inside[0]), scale)
            terms.append(OverlapTerm(field, term.vector.field, factor, overlap))
        return tuple(terms)

    def _together(self, target: Field, source: FieldAt, value: FieldAt, vector: FieldAt) -> bool:
        """Return whether fresh sources have the same time as the values they multiply."""
        met = not source.field.timed or self.lag(target, source) == self.lag(target, value)
        return met and (not vector.field.timed or self.lag(target, vector) == 0)


def _drawn_by_law(f: SystemField) -> bool:
    """Return whether a field is a noise with a known law."""
    return bool(f.field.has_law and f.rule.laws)


def _values(expression: sp.Expr) -> list[FieldAt]:
    return sorted(expression.atoms(FieldAt), key=sp.default_sort_key)
