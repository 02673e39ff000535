"""The declaration with one rule per field, and weights as initial matrices plus low-rank history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field as data_field, replace
from functools import cached_property

import sympy as sp

from derive.algebra.nodes import TAU, at
from derive.language.contents import atoms
from derive.language.data import DataAt
from derive.language.equations import Eq
from derive.language.laws import Drawn
from derive.language.matrices import Disorder
from derive.language.model import Model
from derive.language.symbols import Clock, Parameter, Sector
from derive.language.traits import Trait, apart, is_trait
from derive.language.vectors import PAST, Apply, Field, FieldAt, LabelSelection, Mean, Mix, PastSum, Total
from derive.records.base import Record


@dataclass(frozen=True)
class Mixing:
    """A linear map over the labels of a vector: the rows of a table, or the sum."""

    table: DataAt | LabelSelection | None
    transposed: bool = False

    def of(self, vector: sp.Expr) -> sp.Expr:
        return Total(vector) if self.table is None else Mix(self.table, self.transposed, vector)


@dataclass(frozen=True)
class Term:
    """coefficient * vector, times the overlap mean(pair) if there is one, summed over s < past if `past` is set.

    In a sum the vector and the left of the pair are at time s, and their labels are summed over together. With `mixing`
    the labels of the vector are mapped linearly.
    """

    coefficient: sp.Expr
    vector: FieldAt
    pair: tuple[FieldAt, FieldAt] | None = None
    past: sp.Expr | None = None
    mixing: Mixing | None = None

    def expression(self) -> sp.Expr:
        body = self.coefficient * (self.vector if self.mixing is None else self.mixing.of(self.vector))
        if self.pair is not None:
            body *= Mean(sp.Mul(*self.pair, evaluate=self.pair[0] != self.pair[1]))
        return body if self.past is None else PastSum(body, (PAST, 0, self.past - 1))


class RuleParts:
    """The parts of a rule: linear terms, nonlinear laws, or the product of a random matrix and a field."""

    @property
    def product(self) -> DisorderRule | None:
        return None

    @property
    def terms(self) -> tuple[Term, ...]:
        return ()

    @property
    def laws(self) -> tuple[sp.Expr, ...]:
        return ()


@dataclass(frozen=True)
class DisorderRule(RuleParts):
    """field = coefficient * matrix (or its transpose) @ argument."""

    matrix: Disorder
    transposed: bool
    coefficient: sp.Expr
    argument: Field

    @property
    def product(self) -> DisorderRule:
        return self

    def expression(self, time: sp.Expr) -> sp.Expr:
        return self.coefficient * Apply(self.matrix, self.transposed, at(self.argument, time))


@dataclass(frozen=True)
class LinearRule:
    """field = sum of linear terms."""

    terms: tuple[Term, ...]
    laws = ()
    product = None

    def expression(self, time: sp.Expr) -> sp.Expr:
        return sp.Add(*(term.expression() for term in self.terms))


@dataclass(frozen=True)
class ElementwiseRule(RuleParts):
    """field = a nonlinear function of field values of the same site."""

    law: sp.Expr

    @property
    def laws(self) -> tuple[sp.Expr, ...]:
        return (self.law,)

    def expression(self, time: sp.Expr) -> sp.Expr:
        return self.law


Rule = DisorderRule | LinearRule | ElementwiseRule


@dataclass(frozen=True)
class SystemField:
    """A field, its rule for times >= shift, and its rules at the first times. `derivative`: the rule is d/dtau."""

    field: Field
    rule: Rule
    shift: int = 0
    starts: tuple[Rule, ...] = ()
    derivative: bool = False
    origin: Eq | None = data_field(default=None, compare=False, repr=False)
    """The declared equation from which it derives, for messages."""

    @property
    def product(self) -> DisorderRule | None:
        """The rule as a random matrix times a field; None if it has another form."""
        return self.rule.product

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All its rules; the rule for later times comes first."""
        return (self.rule, *self.starts)

    @property
    def time(self) -> sp.Expr:
        return TAU if self.field.role == "spectral" else self.field.clock


@dataclass(frozen=True)
class Recurrence:
    """Coefficients of trained weights that have no closed form in time.

    The vector of coefficients over `weights` obeys k(t+1) = matrix(t) k(t) + forcing. names[i] is the function of (t,
    s) for the coefficient in weights[i] of the dyad added at s; it starts from `entry` at t = s + 1. For an initial
    matrix the functions depend on t alone and start from `entry` at t = 0.
    """

    weights: tuple[str, ...]
    names: tuple[str, ...]
    matrix: tuple[tuple[sp.Expr, ...], ...]
    entry: tuple[sp.Expr, ...]
    forcing: tuple[sp.Expr, ...]
    initial: bool


@dataclass(frozen=True)
class ProbeTimes:
    """Times of a probed matrix that is followed during training: after `stop` updates of a run of `run` steps.

    `ahead` says whether order parameters include the last time.
    """

    clock: Clock
    stop: Parameter
    run: Parameter
    ahead: bool

    @property
    def mask(self) -> sp.Expr:
        """One for spikes already present in the matrix, zero for later ones."""
        return sp.Piecewise((sp.S.One, self.stop > PAST), (sp.S.Zero, True))


@dataclass(frozen=True)
class SpectralFields:
    """The fields that probe one matrix; the first is the one that evolves in spectral time.

    `middle` is the field K psi0 if the probed matrix is a multiple of K^T K.
    """

    label: str
    fields: tuple[SystemField, ...]
    middle: Field | None
    images: tuple[tuple[str, Field], ...] = ()
    """The fields A psi0 of matrices between resolvents, by name."""


@dataclass(frozen=True, repr=False)
class System(Record):
    """Every training field with its rule, and separately the spectral fields of each probed matrix.

    `joined` gives the system of one probed matrix, in which its spectral fields are fields like any other.
    """

    model: Model
    fields: tuple[SystemField, ...]
    sources: tuple[Field, ...]
    recurrences: tuple[Recurrence, ...]
    probes: tuple[SpectralFields, ...]
    assumptions: tuple[str, ...]
    middle: Field | None = None
    traces: tuple[SpectralFields, ...] = ()
    """The fields of probed matrices, with those of the matrices between their resolvents."""
    stopping: ProbeTimes | None = None
    """The times of probed matrices that are followed during training, or whose directions come after their last
    spike."""
    title = "Equations with weights written out"

    @property
    def system(self) -> System:
        """The system itself; records that refer to a system have the same attribute."""
        return self

    def joined(self, label: str) -> System:
        """Return the system of the training fields, followed by the spectral fields of one probed matrix."""
        probe = next(probe for probe in self.probes if probe.label == label)
        return replace(self, fields=(*self.fields, *probe.fields), probes=(probe,), middle=probe.middle)

    def traced(self, label: str) -> System | None:
        """Return the system with the fields for traces of one probed matrix; None if no traces are declared."""
        probe = next((probe for probe in self.traces if probe.label == label), None)
        return None if probe is None else replace(self, fields=(*self.fields, *probe.fields), probes=(probe,))

    @cached_property
    def disorder(self) -> tuple[Disorder, ...]:
        """The random matrices that act on fields."""
        return tuple(dict.fromkeys(f.product.matrix for f in self.fields if f.product is not None))

    @cached_property
    def sectors(self) -> tuple[Sector, ...]:
        return tuple(dict.fromkeys([*(f.field.sector for f in self.fields), *(x.sector for x in self.sources)]))

    @cached_property
    def traits(self) -> tuple[Trait, ...]:
        """The traits of the model."""
        return atoms(self.model, Trait)

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        """The random vectors with a law other than the normal one."""
        return atoms(self.model, Drawn)

    @cached_property
    def trained_traits(self) -> tuple[Trait, ...]:
        """The traits that fields, means or observables of the training level depend on."""
        rules = [rule for f in self.training for rule in f.rules]
        laws = [law for rule in rules for law in rule.laws]
        laws += [term.coefficient for rule in rules for term in rule.terms]
        laws += [value for _, value in self.model.observe]
        probing = [f.rule for probe in self.probes for f in probe.fields]
        laws += [m for rule in probing for term in rule.terms for m in term.coefficient.atoms(Mean)]
        traits = {trait for law in laws for trait in law.atoms(Trait)}
        return tuple(trait for trait in self.traits if trait in traits)

    def traits_beside(self, standing: Iterable[FieldAt]) -> tuple[Trait, ...]:
        """Return the traits by which training sites differ if these values are diagonal entries of a probed matrix."""
        traits = {*self.trained_traits, *(value.field for value in standing)}
        return tuple(trait for trait in self.traits if trait in traits)

    @cached_property
    def training(self) -> tuple[SystemField, ...]:
        return tuple(f for f in self.fields if f.field.role != "spectral")

    @cached_property
    def spectral(self) -> tuple[SystemField, ...]:
        return tuple(f for f in self.fields if f.field.role == "spectral")

    @cached_property
    def linear(self) -> bool:
        """Whether every law is linear and every average at most quadratic, so that all fields are Gaussian."""
        rules = [rule for f in self.training for rule in f.rules]
        probing = [f.rule for probe in self.probes for f in probe.fields]
        averages = [m for rule in (*rules, *probing) for term in rule.terms for m in term.coefficient.atoms(Mean)]
        averages += [m for _, value in self.model.observe for m in value.atoms(Mean)]
        return not any(rule.laws for rule in rules) and all(map(is_quadratic, averages))


def weighing(average: Mean, clock: Clock | None) -> tuple[Mean, sp.Expr | None]:
    """Return a mean in the probed matrix as a mean at the clock, and the time of its evaluation; None for all times.

    A mean in a history of updates is needed at all times before the last update.
    """
    times = [v.time for v in average.atoms(FieldAt) if v.time is not None]
    if clock is None or not times:
        return average, None
    if any(time.has(PAST) for time in times):
        return average.xreplace({PAST: clock}), None
    last = max(times, key=lambda time: int(sp.expand(time - times[0])))
    moved = {v: v.field(clock + sp.expand(v.time - last)) for v in average.atoms(FieldAt) if v.time is not None}
    return average.xreplace(moved), last


def is_quadratic(average: Mean) -> bool:
    """Return whether the argument of a mean is a sum of products of two field values, or of traits alone."""
    return is_moment(average) or quadratic_pairs(average) is not None


def is_moment(average: Mean) -> bool:
    """Return whether a mean contains traits alone, so that it follows from their law."""
    return all(map(is_trait, average.atoms(FieldAt)))


def quadratic_pairs(average: Mean) -> tuple[tuple[sp.Expr, FieldAt, FieldAt], ...] | None:
    """Return a quadratic mean as triples (coefficient, a, b) with traits in the coefficients; None if it is not
    quadratic."""
    pairs = []
    for term in sp.Add.make_args(apart(sp.expand, average.expression)):
        scale, vectors = sp.S.One, []
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if isinstance(base, FieldAt) and not is_trait(base) and power.is_Integer and power > 0:
                vectors += [base] * int(power)
            elif any(not is_trait(value) for value in factor.atoms(FieldAt)):
                return None
            else:
                scale *= factor
        if len(vectors) != 2:
            return None
        pairs.append((scale, vectors[0], vectors[1]))
    return tuple(pairs)
