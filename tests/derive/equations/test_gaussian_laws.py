"""Nonlinear laws of Gaussian arguments: the combinations they depend on, their numbers and kinks."""

from __future__ import annotations

import pytest
import sympy as sp

from derive import Eq, Model, field, fields, gaussian, mean, normal, parameter, sectors, training_clock, whole_positive
from derive.equations.gaussian_laws import (
    MOST_SMOOTH,
    MOST_SPLIT,
    SMOOTH,
    SPLIT,
    Laws,
    NotGaussian,
    _check_size,
    _decompose,
    _degree,
    _kind,
    _kinks,
    _reduce_arguments,
    both_kinds,
    product_of,
)
from derive.pipeline import derive_model

D = sectors("D")
a, b, k = sp.symbols("a b k", real=True)
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x, y = fields("x y", D, t)
v = normal("v", D)


def test_a_law_that_changes_in_time_takes_the_time_as_a_number():
    h, W = field("h", D, t), gaussian("W", D, D)
    equations = [
        Eq(x(0), v),
        Eq(h(t), W @ x(t) / sp.sqrt(D)),
        Eq(x(t + 1), sp.tanh((1 + t) * h(t))),
        Eq(y(t), sp.tanh(h(t))),
    ]
    laws = Laws(derive_model(Model((T,), equations, {"q": mean(x(t) * y(t))})).layout, (), ())
    numbers = {str(law.expression): tuple(map(str, law.numbers)) for law in laws.laws.values()}
    assert numbers == {"tanh(u0)": (), "tanh(n0*u0)": ("t",)}


@pytest.mark.parametrize(
    ("law", "count"),
    [
        (sp.tanh(a + k * b), 1),
        (sp.tanh(a + 2 * b) * sp.sin(2 * a + 4 * b), 1),
        (sp.tanh(a + 2 * b) * sp.sin(2 * a + 3 * b), 2),
        (sp.exp(a + b + sp.tanh(2 * a + 2 * b)), 1),
        (sp.exp(1 + a + b + sp.tanh(k * (a + b) + 3)), 1),
    ],
)
def test_a_law_in_combinations_of_its_arguments_is_the_same_function(law, count):
    reduced, combinations = _reduce_arguments(law, [a, b])
    values = {sp.Symbol(f"u{i}", real=True): sp.Add(*(c * u for u, c in one)) for i, one in enumerate(combinations)}
    assert len(combinations) == count
    assert sp.expand(reduced.xreplace(values if count == 1 else {}) - law) == 0


def test_a_mean_may_multiply_the_argument_of_an_absolute_value():
    """Numbers of a law are real, so that an absolute value of their products with fields has a slope."""
    h, W = field("h", D, t), gaussian("W", D, D)
    law = sp.Abs(mean(x(t) ** 2) * h(t) - 1)
    equations = [Eq(x(0), v), Eq(h(t), W @ x(t) / sp.sqrt(D)), Eq(x(t + 1), law)]
    (found,) = Laws(derive_model(Model((T,), equations, {"q": mean(x(t))})).layout, (), ()).laws.values()
    assert found.straight and len(found.numbers) == 1 and not found.slopes[0].has(sp.re)


def test_a_law_of_one_field_at_its_own_time_is_averaged_over_that_field():
    """A field of another time, or a sum, is a Gaussian field of its own."""
    h, k, W = field("h", D, t), field("k", D, t), gaussian("W", D, D)
    equations = [
        Eq(x(0), v),
        Eq(h(t), W @ x(t) / sp.sqrt(D)),
        Eq(x(t + 1), sp.tanh(h(t))),
        Eq(y(t), sp.sin(2 * h(t))),
        Eq(k(t), sp.cos(h(t) + v)),
    ]
    laws = Laws(derive_model(Model((T,), equations, {"q": mean(x(t) * y(t)), "k": mean(k(t))})).layout, (), ())
    own = {str(law.expression): law.arguments == (h,) for law in laws.laws.values()}
    assert own == {"tanh(u0)": False, "sin(2*u0)": True, "cos(u0)": False}
    made = [{(str(term.vector), term.coefficient) for term in rule.terms} for rule in laws.arguments.values()]
    assert len(made) == 2 and {("h(t - 1)", 1)} in made and {("h(t)", 1), ("v", 1)} in made


def test_the_larger_of_two_arguments_has_a_kink_where_they_are_equal():
    assert _kinks(sp.Max(a, 3 * b), [a, b], "here") in ((a - 3 * b,), (3 * b - a,))


# -- what integrals cost


@pytest.mark.parametrize(
    ("kinds", "refused"),
    [
        ((SMOOTH,) * MOST_SMOOTH, False),
        ((SMOOTH,) * (MOST_SMOOTH + 1), True),
        ((SPLIT,) * MOST_SPLIT, False),
        ((SPLIT,) * (MOST_SPLIT + 1), True),
        ((SPLIT, SMOOTH), False),
        ((SPLIT, SMOOTH, SMOOTH), True),  # beside a kink smooth arguments count as it does
        ((2,) * 3, False),  # of degree six together: four nodes for each, 4^3
        ((2,) * 4, True),  # 5^4
        ((1, 3, 1), False),  # 3^3
        ((1, 3) * 3, True),
        ((16, 16), False),  # 17 nodes for each: 289 together
        ((17, 17), True),  # 18: 324
        ((SMOOTH, 8, SPLIT), False),
    ],
)
def test_integrals_are_bounded_in_dimension_and_nodes(kinds, refused):
    """n Gauss-Hermite nodes are exact to the degree 2 n - 1."""
    if not refused:
        _check_size(kinds, "it")
        return
    with pytest.raises(NotGaussian, match=f"over {len(kinds)} Gaussian"):
        _check_size(kinds, "it")


@pytest.mark.parametrize(
    ("law", "kind", "degree"),
    [
        (a**3 * b - 2 * a, 3, 3),
        (b, 1, 0),
        (sp.tanh(a) + a, SMOOTH, sp.oo),
        (sp.Abs(a - b), SPLIT, 1),
        (sp.Abs(a - b) * a**2, SPLIT, 3),
        (sp.Max(a, b) + a * b, SPLIT, 1),
        (sp.Heaviside(a) * a**2 + 1, SPLIT, 2),
        (sp.sign(a) * b, SPLIT, 0),
        (sp.Piecewise((a**2, a > 0), (b, True)), SPLIT, 2),
        (sp.Piecewise((sp.exp(a), a > 0), (1, True)), SPLIT, sp.oo),
        ((1 + a) ** 4 * sp.Abs(b), 4, 4),
        (sp.Abs(a) ** sp.Rational(3, 2), SPLIT, sp.oo),
        (k**a, SMOOTH, sp.oo),
    ],
)
def test_an_argument_enters_with_kinks_smoothly_or_as_a_polynomial(law, kind, degree):
    law = law.subs(k, 2)
    try:
        kinks = _kinks(law, [a, b], "here")
    except NotGaussian:
        assert law == sp.Abs(a) ** sp.Rational(3, 2)
        kinks = (a,)
    assert _kind(law, a, kinks) == kind and _degree(law, a) == degree


@pytest.mark.parametrize(
    ("law", "zeros"),
    [
        (sp.Abs(2 * a - 1) + sp.Abs(1 - 2 * a), [2 * a - 1]),
        (sp.sign(sp.Abs(a) - b), [a, a - b, a + b]),
        (sp.Max(a, b, 1), [a - b, a - 1, b - 1]),
        (sp.Piecewise((1, sp.And(a > 1, b < 2)), (sp.tanh(a), True)), [a - 1, b - 2]),
        (sp.Heaviside(sp.Max(a, 3) - b), [a - 3, a - b, b - 3]),
        (sp.Abs(sp.Piecewise((a, a > 2), (b - 5, True))), [a - 2, a, b - 5]),
        (sp.tanh(a) * sp.exp(b) + a**3, []),
    ],
)
def test_kinks_are_where_some_branch_vanishes(law, zeros):
    found = {sp.Poly(e, a, b).monic() for e in _kinks(law, [a, b], "here")}
    assert {sp.Poly(e, a, b).monic() for e in zeros} <= found
    assert all(e.total_degree() == 1 for e in found) and len(found) >= len(zeros)
    assert zeros or not found


@pytest.mark.parametrize(
    "law", [sp.Abs(a * b), sp.sqrt(a), sp.log(a), 1 / (1 + a), a**b, sp.gamma(a), sp.sign(a**2 - 1)]
)
def test_laws_that_are_not_analytic_between_straight_kinks_are_refused(law):
    with pytest.raises(NotGaussian):
        _kinks(law, [a, b], "here")


def test_powers_and_logarithms_of_what_is_positive_are_analytic():
    p = sp.Symbol("p", positive=True)
    for law in (sp.log(1 + sp.exp(a) * p), (1 + a**2) ** sp.Rational(-3, 2), p**a, a**4, sp.sqrt(sp.exp(b))):
        assert _kinks(law, [a, b], "here") == ()


@pytest.mark.parametrize(
    ("first", "second", "together"), [(SPLIT, 3, SPLIT), (SMOOTH, 2, SMOOTH), (2, 3, 5), (SMOOTH, SPLIT, SPLIT)]
)
def test_a_product_depends_on_a_shared_argument_as_its_worse_factor(first, second, together):
    assert both_kinds(first, second) == both_kinds(second, first) == together


def test_an_expression_splits_into_linear_constant_and_nonlinear_terms():
    """Products and squares of two values have means without an integral; nothing else has."""
    one, other = sp.sympify(x(t)), sp.sympify(y(t))
    linear, number, nonlinear = _decompose(k * one + 3 + (1 + one) * (2 - other) + sp.tanh(one) * k)
    assert sp.expand(sum(c * v for c, v in linear) - (k + 2) * one + other) == 0 and number == 5
    assert {(c, e) for c, e in nonlinear} == {(sp.Integer(-1), one * other), (k, sp.tanh(one))}
    assert product_of(one * other) in ((one, other), (other, one)) and product_of(one**2) == (one, one)
    for core in (one, one**3, sp.tanh(one) ** 2, one * sp.tanh(other), one * other * sp.sin(one)):
        assert product_of(core) is None


def test_laws_of_the_same_arguments_are_one_integral_where_that_is_no_harder():
    """sin(h) + cos(h) + sin(h) cos(g) is one law of two values; |h| keeps its own integral of one."""
    h, g, W, V = field("h", D, t), field("g", D, t), gaussian("W", D, D), gaussian("V", D, D)

    def laws(law):
        equations = [
            Eq(x(0), v),
            Eq(h(t), W @ x(t) / sp.sqrt(D)),
            Eq(g(t), V @ x(t) / sp.sqrt(D)),
            Eq(x(t + 1), h(t) / 2),
            Eq(y(t), law(h(t), g(t))),
        ]
        found = Laws(derive_model(Model((T,), equations, {"q": mean(y(t))})).layout, (), ()).laws.values()
        return sorted((len(one.arguments), one.kinds) for one in found)

    assert laws(lambda h, g: sp.sin(h) + sp.cos(h) + sp.sin(h) * sp.cos(g)) == [(2, (SMOOTH, SMOOTH))]
    assert laws(lambda h, g: sp.Abs(h) + sp.sin(h) * sp.cos(g)) == [(1, (SPLIT,)), (2, (SMOOTH, SMOOTH))]
    assert laws(lambda h, g: 2 * sp.sin(h) + sp.sin(g)) == [(1, (SMOOTH,)), (1, (SMOOTH,))]
