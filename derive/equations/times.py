"""Times in an expression: which it uses, and the same expression written for another time."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.errors import DeclarationError
from derive.language.data import DataAt
from derive.language.matrices import DisorderAt, WeightsAt
from derive.language.symbols import Clock
from derive.language.vectors import PAST, FieldAt, shown


@dataclass(frozen=True)
class Moment:
    """A time of an expression: a clock, or the index of a sum over earlier times, plus a whole number of steps."""

    variable: sp.Symbol
    shift: int

    @property
    def time(self) -> sp.Expr:
        return self.variable + self.shift

    @staticmethod
    def of(time: sp.Expr, where: str) -> Moment:
        """The time t + n as t and n."""
        variables = [s for s in time.free_symbols if isinstance(s, Clock) or s == PAST]
        shift = sp.expand(time - variables[0]) if len(variables) == 1 else time
        if not shift.is_Integer:
            raise DeclarationError(
                f"{where} uses the time {shown(time)}; write times as t, t - 1, ... or sum over earlier ones"
            )
        return Moment(variables[0], int(shift))


def used_times(expression: sp.Basic) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """The times at which an expression needs anything, also inside means: those of values, and the ends of sums.

    The end of a sum over s < t is t, although t itself is not needed.
    """
    found: dict[sp.Expr, None] = {}
    ends: dict[sp.Expr, None] = {}

    def walk(node: sp.Basic, bound: bool) -> None:
        if isinstance(node, (FieldAt, DataAt, DisorderAt, WeightsAt)):
            if node.time is not None and not (bound and node.time.has(PAST)):
                found.setdefault(node.time)
        elif isinstance(node, sp.Sum):
            ends.setdefault(node.limits[0][2] + 1)
            walk(node.function, True)
        else:
            for arg in node.args:
                walk(arg, bound)

    walk(expression, False)
    return list(found), list(ends)


def latest_moment(expression: sp.Expr, where: str) -> Moment | None:
    """The time that an expression belongs to, the last that it needs; None if it does not depend on time."""
    needed, ends = ([Moment.of(time, where) for time in times] for times in used_times(expression))
    bare = {s for s in expression.free_symbols if isinstance(s, Clock) or s == PAST}
    variables = {m.variable for m in (*needed, *ends)} | bare
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
    """The expression as a function of the clock, so that its value at the clock is the one that was at the moment."""
    return expression.subs(moment.variable, clock - moment.shift)
