"""The Martin-Siggia-Rose action, and what is left of it after the disorder average."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.algebra.nodes import TAU, Dot, Hat, Source, TauDerivative, at
from derive.language.matrices import Disorder
from derive.language.vectors import PAST, Field
from derive.records.base import Record, Section, Statement
from derive.records.system import DisorderRule, System


@dataclass(frozen=True)
class Coupling:
    """The term -i coefficient hat(field) . matrix argument: how a field meets the disorder."""

    matrix: Disorder
    transposed: bool
    coefficient: sp.Expr
    field: Field
    argument: Field


@dataclass(frozen=True)
class Leg:
    """A vector in a bilinear: a field, or its response field."""

    field: Field
    hatted: bool

    def value(self, time: sp.Expr) -> sp.Expr:
        value = at(self.field, time)
        return Hat(value) if self.hatted else value


@dataclass(frozen=True)
class Action(Record):
    system: System
    couplings: tuple[Coupling, ...]
    assumptions: tuple[str, ...]
    title = "Martin-Siggia-Rose action"

    def sections(self) -> tuple[Section, ...]:
        deterministic, linear = [], []
        for f in self.system.fields:
            value = at(f.field, f.time)
            left = TauDerivative(value) if f.derivative else value
            right = sp.S.Zero if isinstance(f.rule, DisorderRule) else f.rule.expression(f.time)
            right += Source() if f.derivative else 0
            deterministic.append(Statement(Hat(value), left - right, relation="i dot"))
        for c in self.couplings:
            name = sp.Symbol(f"X_{c.matrix}")
            hat, argument = Leg(c.field, True).value(_time(c.field)), Leg(c.argument, False).value(_time(c.argument))
            pair = (argument, hat) if c.transposed else (hat, argument)
            linear.append(Statement(name, sp.Function("outer")(*pair) * c.coefficient, relation="contains"))
        disorder = "disorder part: -i times the trace of W.T X for each random matrix W, with X summed over times"
        return (
            Section("deterministic part, summed over times", tuple(deterministic)),
            Section(disorder, tuple(linear)),
        )


def _time(field: Field) -> sp.Expr:
    return TAU if field.role == "spectral" else (field.clock or sp.Symbol("t"))


@dataclass(frozen=True)
class Quartic:
    """weight * (left0 . left1) * (right0 . right1); legs 0 at one time, legs 1 at another."""

    matrix: Disorder
    weight: sp.Expr
    left: tuple[Leg, Leg]
    right: tuple[Leg, Leg]

    def expression(self) -> sp.Expr:
        def dot(pair: tuple[Leg, Leg]) -> Dot:
            return Dot(pair[0].value(_time(pair[0].field)), pair[1].value(PAST))

        return self.weight * dot(self.left) * dot(self.right)


@dataclass(frozen=True)
class AveragedAction(Record):
    action: Action
    terms: tuple[Quartic, ...]
    assumptions: tuple[str, ...]
    title = "Averaged over the disorder"

    def sections(self) -> tuple[Section, ...]:
        found = []
        for matrix in self.action.system.disorder:
            lines = tuple(Statement(term.expression()) for term in self.terms if term.matrix == matrix)
            fresh = ", equal times only (drawn afresh)" if matrix.fresh is not None else ""
            found.append(Section(f"from {matrix}, summed over both times{fresh}", lines))
        return tuple(found)
