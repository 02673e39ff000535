"""Sums over earlier times, and the last time that an expression needs."""

from __future__ import annotations

import pytest
import sympy as sp

from derive import (
    Eq,
    Model,
    fields,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    past_sum,
    sectors,
    training_clock,
    whole_positive,
)
from derive.equations.times import Moment, latest_moment, used_times
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


def test_a_time_is_a_clock_plus_a_whole_number_of_steps():
    assert Moment.of(t - 2, "here") == Moment(t, -2)
    for time in (2 * t, t / 2, t + T, t - PAST, t**2):
        with pytest.raises(DeclarationError, match="write times as t, t - 1"):
            Moment.of(time, "here")


def test_a_sum_inside_a_sum_has_its_own_end_and_the_times_of_its_values():
    inner = past_sum(lambda s: x(s) * mean(y(t + 1)), t + 2)
    times, ends = used_times(sp.sympify(past_sum(lambda s: y(s) * mean(y(t) * inner), t)))
    assert set(times) == {t, t + 1} and set(ends) == {t, t + 2}


def test_a_matrix_drawn_at_each_step_gives_a_vector_of_each_step_from_a_constant_one():
    X = gaussian("X", D, D, fresh=t)
    system = expand_declaration(Model((T,), [Eq(x(0), v), Eq(x(t + 1), X(t) @ v / sp.sqrt(D))]))
    (product,) = (f.field for f in system.fields if f.product is not None)
    assert product.timed and product.clock == t


def test_a_product_that_acts_on_a_vector_of_the_summed_time_needs_a_field_of_its_own():
    """sum over s of x(s) <y(s) y(s)>, written as a product, is refused; <y(s) y(t)> is a memory."""
    of_past = past_sum(lambda s: outer(x(s), y(s)) @ y(s) / D, t)
    with pytest.raises(DeclarationError, match="inside a sum over earlier times; give the product a field of its own"):
        expand_declaration(Model((T,), [Eq(x(0), v), Eq(x(t + 1), of_past), Eq(y(0), v), Eq(y(t + 1), x(t))]))
    of_now = past_sum(lambda s: outer(x(s), y(s)) @ y(t) / D, t)
    system = expand_declaration(Model((T,), [Eq(x(0), v), Eq(x(t + 1), of_now), Eq(y(0), v), Eq(y(t + 1), x(t))]))
    (terms,) = (f.rule.terms for f in system.fields if str(f.field) == "x")
    assert [tuple(str(one.field) for one in term.pair) for term in terms] == [("y", "y")]
