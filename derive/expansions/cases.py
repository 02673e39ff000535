"""A derived bulk with some parameters fixed and, for an expansion, one small parameter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.physical import sample_point
from derive.errors import DeriveError, ParameterError
from derive.expansions.exact_level import ExactLevel
from derive.expansions.limits import ParameterLimit
from derive.language.symbols import Parameter
from derive.pipeline import DerivedProbe
from derive.records.probe import Bulk


@dataclass(frozen=True)
class Case:
    """The problem of an expansion. Without a limit the quantity is exact, a series of one term."""

    probed: DerivedProbe
    limit: ParameterLimit | None
    fixed: tuple[tuple[Parameter, sp.Rational], ...]

    @staticmethod
    def of(probed: DerivedProbe, limit: ParameterLimit | None, fixed: dict[Parameter, sp.Rational]) -> Case:
        """Return the case, after a check of the fixed values against the limit and their domains."""
        if limit is not None and limit.parameter in fixed:
            raise ParameterError(f"{limit.parameter} is the parameter of the expansion; leave it out of --at")
        for parameter, value in fixed.items():
            parameter.checked(float(value))
        case = Case(probed, limit, tuple(fixed.items()))
        if any(e.has(sp.zoo, sp.nan, sp.oo) for e in case.equations):
            raise DeriveError("the bulk equations divide by zero at these values of --at; try others")
        return case

    @property
    def bulk(self) -> Bulk:
        return self.probed.bulk

    @cached_property
    def substitution(self) -> dict[sp.Symbol, sp.Expr]:
        values: dict[sp.Symbol, sp.Expr] = dict(self.fixed)
        return values if self.limit is None else {**values, self.limit.parameter: self.limit.value}

    @cached_property
    def equations(self) -> tuple[sp.Expr, ...]:
        polynomials = self.probed.probe.polynomials
        if polynomials is None:
            raise DeriveError(
                f"the bulk of {self.name} has site averages that are not polynomials, so there is no exact "
                "expansion; give its traits few values, or solve for numbers with `derive solve`"
            )
        return tuple(map(self.fill, polynomials))

    @property
    def unknowns(self) -> tuple[sp.Symbol, ...]:
        return self.probed.probe.bulk_symbols

    @cached_property
    def training(self) -> ExactLevel:
        """The training level of this case."""
        return ExactLevel(self.probed, self.substitution)

    @property
    def whole(self) -> tuple[Parameter, ...]:
        """The integer parameters that are not fixed."""
        return tuple(p for p in self.probed.training.model.parameters if p.domain.whole and p not in self.substitution)

    def fill(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression of the records with the fixed values and the small parameter substituted."""
        expression = sp.sympify(expression)
        if expression.has(AppliedUndef) and not self.whole:
            return self.training.resolved(expression)
        return expression.subs(self.substitution)

    def sampled(self, expressions: Iterable[sp.Expr]) -> dict[sp.Symbol, Any]:
        """Return values of the open parameters of the bulk, of its maps and of the expressions."""
        relations = (c.relation for c in self.probed.pencil.cycles if c.relation is not None)
        inside = sample_point((*(self.probed.probe.polynomials or ()), *relations))
        point = {**sample_point(expressions), **inside}
        return {p: v for p, v in point.items() if p not in self.substitution}

    @property
    def name(self) -> str:
        return self.probed.training.model.name or "the model"

    @property
    def limit_in_words(self) -> str:
        """The limit in words."""
        return "here" if self.limit is None else f"for {self.limit.in_words}"

    @property
    def advice(self) -> str:
        """A suggestion for the case in which an elimination is too large."""
        names = ", ".join(p.name for p in self.probed.training.model.parameters if p not in self.substitution)
        return f"fix more parameters with --at ({names} open)" if names else "solve for numbers with `derive solve`"


def check_algebraic(case: Case, expressions: Iterable[sp.Expr]) -> None:
    """Raise for powers with open exponents and for coefficients that depend on an open number of steps."""
    for node in (n for e in expressions for n in sp.preorder_traversal(e)):
        if isinstance(node, AppliedUndef) or (node.is_Pow and not node.exp.is_Rational) or node.is_Function:
            if case.whole:
                raise ask_for_whole_numbers(case)
            raise DeriveError(
                f"{node} is not an algebraic function of the parameters, so there is no exact expansion; fix its "
                f"parameters with --at, or solve for numbers with `derive solve`"
            )


def ask_for_whole_numbers(case: Case) -> ParameterError:
    """Return the error for integer parameters that are still open."""
    names = [p.name for p in case.whole]
    examples = " ".join(f"--at {name}=1" for name in names)
    return ParameterError(
        f"the equations of {case.name} have a definite size only at definite whole numbers; fix "
        f"{' and '.join(names)}, such as {examples}"
    )
