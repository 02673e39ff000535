"""Sums over earlier times, and the last time that an expression needs."""

from __future__ import annotations

import pytest
import sympy as sp

from derive import Eq, Model, fields, goe, mean, normal, parameter, past_sum, sectors, training_clock, whole_positive
from derive.equations.times import latest_moment
from derive.errors import DeclarationError
from derive.language.vectors import PAST
from derive.stages.expand import expand_declaration

D = sectors("D")
A = goe("A", D)
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x, y = fields("x y", D, t)
v = normal("v", D)


def test_a_sum_over_earlier_times_may_hold_a_mean_of_both_times():
    """What outer products of x do to y: the sum over s of x(s) <x(s) y(t)>."""
    law = past_sum(lambda s: x(s) * mean(x(s) * y(t)), t)
    system = expand_declaration(Model((T,), [Eq(x(0), v), Eq(x(t + 1), A @ x(t)), Eq(y(0), v), Eq(y(t + 1), law)]))
    (terms,) = (f.rule.terms for f in system.fields if str(f.field) == "y")
    assert [tuple(str(one.field) for one in term.pair) for term in terms if term.pair] == [("x", "y")]


def test_an_expression_at_two_times_at_once_has_no_last_time():
    with pytest.raises(DeclarationError, match="at the times s and t at once"):
        latest_moment(sp.sympify(x(t)) + sp.sympify(y(t)).xreplace({sp.sympify(t): PAST}), "here")
