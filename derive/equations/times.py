"""The times in an expression, and the same expression shifted to another time."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp
from sympy.logic.boolalg import Boolean

from derive.errors import DeclarationError
from derive.language.data import DataAt
from derive.language.matrices import DisorderAt, WeightsAt
from derive.language.symbols import Clock
from derive.language.traversal import ByKind, parts
from derive.language.vectors import PAST, Apply, FieldAt, Mean, Mix, Project, Total, shown

TIMED = (FieldAt, DataAt, DisorderAt, WeightsAt)
"""Values that may have a time."""


@dataclass(frozen=True)
class Moment:
    """A time in an expression: a clock, or the index of a sum over earlier times, plus an integer number of steps."""

    variable: sp.Symbol
    shift: int

    @property
    def time(self) -> sp.Expr:
        return self.variable + self.shift

    @staticmethod
    def of(time: sp.Expr, where: str) -> Moment:
        """Return t + n as the pair of t and n."""
        variables = list(_times_in(time))
        if not variables:
            raise DeclarationError(
                f"{where} uses a law of values at the single time {shown(time)}; add the result to weights by an "
                f"update rule, and use the weights"
            )
        shift = sp.expand(time - variables[0]) if len(variables) == 1 else time
        if not shift.is_Integer:
            raise DeclarationError(
                f"{where} uses the time {shown(time)}; write times as t, t - 1, ... or sum over earlier ones"
            )
        return Moment(variables[0], int(shift))


def _times_in(expression: sp.Basic) -> set[sp.Symbol]:
    """Return the clock and the summation index over earlier times, where an expression depends on them."""
    return {symbol for symbol in expression.free_symbols if symbol == PAST or symbol in expression.atoms(Clock)}


def used_times(expression: sp.Basic) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """Return the times of all values in an expression, also inside means, and the upper ends of its sums.

    The end of a sum over s < t is t, although the value at t itself is not needed.
    """
    times: dict[sp.Expr, None] = {}
    ends: dict[sp.Expr, None] = {}
    for node in parts(expression, (*TIMED, sp.Sum)):
        if isinstance(node, sp.Sum):
            ends.setdefault(node.limits[0][2] + 1)
            inside, later = used_times(node.function)
            times.update(dict.fromkeys(time for time in inside if not time.has(PAST)))
            ends.update(dict.fromkeys(later))
        elif node.time is not None:
            times.setdefault(node.time)
    return list(times), list(ends)


def home_moment(expression: sp.Expr, where: str) -> Moment | None:
    """Return the time at which an auxiliary field for an expression is defined; None if it does not depend on time.

    This is the last time that the expression needs. But fields vanish before the start, so an expression that does not,
    for example because of a constant term, must not be defined there.
    """
    latest = latest_moment(expression, where)
    if latest is None or latest.shift >= 0 or vanishes_before_start(expression):
        return latest
    return Moment(latest.variable, 0)


@ByKind
def vanishes_before_start(expression: sp.Basic) -> bool:
    """Return whether an expression is zero wherever all its values with a time are."""
    inside = {arg: sp.S.Zero for arg in expression.args if vanishes_before_start(arg)}
    return bool(inside) and bool(expression.func(*(inside.get(arg, arg) for arg in expression.args)) == 0)


@vanishes_before_start.on(sp.Atom, Mean)
def _(expression: sp.Expr) -> bool:
    return bool(expression == 0)


@vanishes_before_start.on(FieldAt)
def _(expression: FieldAt) -> bool:
    return expression.time is not None


@vanishes_before_start.on(sp.Sum)
def _(expression: sp.Sum) -> bool:
    return True


@vanishes_before_start.on(Apply, Mix)
def _(expression: Apply | Mix) -> bool:
    return vanishes_before_start(expression.vector)


@vanishes_before_start.on(Total)
def _(expression: Total) -> bool:
    return vanishes_before_start(expression.expression)


@vanishes_before_start.on(sp.Mul, Project)
def _(expression: sp.Expr) -> bool:
    return any(map(vanishes_before_start, expression.args))


@vanishes_before_start.on(sp.Add)
def _(expression: sp.Add) -> bool:
    return all(map(vanishes_before_start, expression.args))


def latest_moment(expression: sp.Expr, where: str) -> Moment | None:
    """Return the last time that an expression needs; None if it does not depend on time."""
    expression = sp.sympify(expression)
    needed, ends = ([Moment.of(time, where) for time in times] for times in used_times(expression))
    variables = {m.variable for m in (*needed, *ends)} | _times_in(expression)
    if len(variables) > 1:
        names = " and ".join(sorted(s.name for s in variables))
        raise DeclarationError(
            f"{where}: {shown(expression)} is needed at the times {names} at once; give its parts fields of their own"
        )
    if not variables:
        return None
    # a sum over s < t + 1 belongs to t, which is its last term
    shifts = [*(m.shift for m in needed), *(m.shift - 1 if m.shift > 0 else m.shift for m in ends)]
    return Moment(variables.pop(), max(shifts, default=0))


def in_clock(expression: sp.Expr, moment: Moment, clock: Clock) -> sp.Expr:
    """Return the expression as a function of the clock, whose value at the clock is the value at the moment."""
    return expression.subs(moment.variable, clock - moment.shift)


def from_time(first: int, expression: sp.Expr, clock: Clock) -> sp.Expr:
    """Return the expression with coefficients that are finite before the first time at which it holds.

    A rule is evaluated at every time before starting values replace it. So 1/t, from 1/(1 + t) in an equation at t + 1,
    would leave infinities in covariances and derivatives.
    """
    return _finite(expression, first, clock) if first else expression


@ByKind
def _finite(expression: sp.Basic, first: int, clock: Clock) -> sp.Basic:
    if not expression.args or not expression.has(clock):
        return expression
    return expression.func(*(_finite(arg, first, clock) for arg in expression.args))


@_finite.on(*TIMED, Boolean)
def _(node: sp.Basic, first: int, clock: Clock) -> sp.Basic:
    return node


@_finite.on(sp.Sum)
def _(node: sp.Sum, first: int, clock: Clock) -> sp.Expr:
    return node.func(_finite(node.function, first, clock), *node.limits)


@_finite.on(sp.Expr)
def _(expression: sp.Expr, first: int, clock: Clock) -> sp.Expr:
    of_time = expression.args and expression.has(clock) and not expression.has(*TIMED, sp.Sum, sp.Piecewise)
    if of_time and not expression.is_polynomial(clock):
        return expression.subs(clock, sp.Max(first, clock))
    return _finite.default(expression, first, clock)
