"""The physical branch in high precision: the solution of the bulk equations that behaves like 1/z at infinity.

Used only to recognise which factor of an eliminated polynomial is the right one; nothing numerical enters a result.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.nodes import Z
from derive.errors import NumericalError
from derive.language.symbols import Parameter

DIGITS = 60


def sample_point(expressions, attempt: int = 0) -> dict[sp.Symbol, sp.Rational]:
    """Generic rational values for every parameter in the expressions, inside their domains."""
    found = sorted({p for e in expressions for p in e.atoms(Parameter)}, key=lambda p: p.name)
    values = {}
    for i, parameter in enumerate(found):
        if parameter.domain.whole:
            values[parameter] = sp.Integer(int(parameter.default))
            continue
        shift = sp.Rational(2 * i + 3 + attempt, 7 * i + 41)
        value = sp.nsimplify(parameter.default, rational=True) * (1 + shift) + (shift if parameter.default == 0 else 0)
        values[parameter] = (
            value if parameter.domain.contains(float(value)) else sp.nsimplify(parameter.default, rational=True)
        )
    functions = sorted({f for e in expressions for f in e.atoms(AppliedUndef)}, key=str)
    return {**values, **{f: sp.Rational(7 + 2 * i + attempt, 8 + 3 * i) for i, f in enumerate(functions)}}


def physical_values(
    equations: tuple[sp.Expr, ...], unknowns: tuple[sp.Symbol, ...], point: dict, digits: int = DIGITS, at=None
):
    """z and all unknowns at one point of the upper half plane, by continuation from infinity; `at` names the point.

    Every equation is linear in each unknown's own column, so near infinity the iteration unknown <- solution of its
    column contracts; Newton's method then brings z in.
    """
    system = [sp.sympify(e).subs(point) for e in equations]
    with mpmath.workdps(digits):
        residual = sp.lambdify((Z, list(unknowns)), system, "mpmath")
        jacobian = sp.lambdify((Z, list(unknowns)), sp.Matrix(system).jacobian(list(unknowns)), "mpmath")
        goal = mpmath.mpc(3, "1.5") if at is None else mpmath.mpc(at)
        z = mpmath.mpc(goal.real, 10**6 * (1 + abs(goal.real)))
        values = mpmath.matrix([mpmath.mpf(0)] * len(unknowns))
        while True:
            for _ in range(60):
                step = mpmath.lu_solve(jacobian(z, list(values)), mpmath.matrix(residual(z, list(values))))
                values -= step
                if mpmath.norm(step) < mpmath.mpf(10) ** (-digits + 8):
                    break
            else:
                raise NumericalError("the physical branch of the bulk equations could not be followed from infinity")
            if z == goal:
                return {Z: z, **dict(zip(unknowns, values, strict=True))}
            lower = mpmath.im(z) * mpmath.mpf("0.75")
            z = mpmath.mpc(goal.real, lower) if lower > goal.imag else goal


@dataclass(frozen=True)
class PhysicalPoint:
    """One point of the physical branch: parameters, and the values of z and of all unknowns there."""

    point: dict
    values: dict

    @staticmethod
    def of(equations: tuple[sp.Expr, ...], unknowns: tuple[sp.Symbol, ...]) -> PhysicalPoint:
        point = sample_point(equations)
        return PhysicalPoint(point, physical_values(equations, unknowns, point))

    def value(self, expression: sp.Expr):
        """An expression at this point."""
        with mpmath.workdps(DIGITS):
            return sp.lambdify(list(self.values), expression.subs(self.point), "mpmath")(*self.values.values())

    def joined_by(self, symbol: sp.Symbol, expression: sp.Expr) -> PhysicalPoint:
        """The same point with one more symbol, defined by an expression."""
        return PhysicalPoint(self.point, {**self.values, symbol: self.value(expression)})

    def accepts(self, expression: sp.Expr) -> bool:
        """Whether an expression is zero here, to far more digits than chance allows."""
        with mpmath.workdps(DIGITS):
            plain = sp.expand(expression.subs(self.point))
            symbols = sorted(plain.free_symbols, key=lambda s: s.name)
            if any(s not in self.values for s in symbols):
                return False
            arguments = [self.values[s] for s in symbols]
            total = sp.lambdify(symbols, plain, "mpmath")(*arguments)
            scale = sum(abs(sp.lambdify(symbols, term, "mpmath")(*arguments)) for term in sp.Add.make_args(plain))
            return abs(total) <= (scale or 1) * mpmath.mpf(10) ** (-DIGITS // 2)
