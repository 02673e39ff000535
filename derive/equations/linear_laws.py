"""Linear laws with constant coefficients: the coefficient of each field in the equation of each other."""

from __future__ import annotations

import sympy as sp

from derive.errors import DeclarationError
from derive.language.data import DataAt
from derive.language.symbols import Clock
from derive.language.vectors import PAST, Field, FieldAt, Mean, shown
from derive.records.limit import LinearPart
from derive.records.system import Rule, System, SystemField, Term


def _nonlinear_part(law: sp.Expr) -> sp.Expr:
    """Return the terms of a law that are not a field value times a number."""
    parts = [part for part in sp.Add.make_args(law) if not isinstance(part.as_independent(FieldAt)[1], FieldAt)]
    return sp.Add(*parts)


class LinearLaws:
    """The training fields of a system, whose laws are checked to be linear and constant in time."""

    def __init__(self, system: System):
        self.system = system
        self.fields = {f.field: f for f in system.training}
        clocks = {f.clock for f in self.fields if f.timed}
        if not clocks:
            raise DeclarationError("there is no clock and therefore no limit of many steps; solve the model instead")
        self.clock: Clock = min(clocks, key=str)

    def check_rule(self, field: Field, rule: Rule) -> None:
        """Refuse a rule that is not linear in fields."""
        for law in rule.laws:
            raise DeclarationError(
                f"{shown(_nonlinear_part(law))} is not linear; the limit of many steps is derived for linear "
                "training only; solve it at a large T"
            )
        for term in rule.terms:
            self.check_means(field, term)
            self.check_constant(field, term)

    def check_means(self, field: Field, term: Term) -> None:
        """Refuse means over sites, sums over the past and trained weights in a term."""
        if term.pair is not None or term.past is not None or term.coefficient.has(Mean):
            raise DeclarationError(
                f"the equation of {field} contains means over sites or trained weights, so it is not linear; the "
                "limit of many steps is derived for linear training only; solve it at a large T"
            )

    def check_constant(self, field: Field, term: Term) -> None:
        """Refuse coefficients that change with time."""
        inside = term.coefficient.xreplace({m: sp.S.One for m in term.coefficient.atoms(Mean)})
        tables = [term.mixing.table] if term.mixing is not None and term.mixing.table is not None else []
        if any(data.time is not None for data in (*inside.atoms(DataAt), *tables)):
            raise DeclarationError(
                f"the equation of {field} contains data that change with time, so there is no stationary limit; solve "
                "it at finite T"
            )
        if inside.has(self.clock) or inside.has(PAST) or inside.has(self.clock.steps):
            raise DeclarationError(
                f"the coefficient {inside} in the equation of {field} changes with time; the limit of many steps "
                "is derived for constant coefficients only; solve it at a large T"
            )

    def lag(self, field: Field, value: FieldAt) -> int:
        """Return the lag in steps of a value in the equation of a field."""
        return int(sp.expand(self.clock - value.time)) if value.time is not None and field.timed else 0

    def parts(self, f: SystemField) -> list[LinearPart]:
        """Return the linear terms in the equation of a field."""
        return [
            LinearPart(f.field, t.vector.field, t.coefficient, self.lag(f.field, t.vector), mixing=t.mixing)
            for t in f.rule.terms
            if t.vector.field in self.fields
        ]
