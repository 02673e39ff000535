"""Weights and fresh matrices that are used some steps late: as with a field of its own for the product."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from sympy import Sum, cos, exp, sin, sqrt, tanh

import derive
from derive import (
    Eq,
    Model,
    field,
    gaussian,
    mean,
    normal,
    outer,
    parameter,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)
from derive.equations.times import Moment, latest_moment
from derive.errors import DeclarationError
from derive.language.vectors import PAST

a, T = parameter("a", default=0.5), parameter("T", default=4, domain=whole_positive)
D = sectors("D")
t = training_clock("t", steps=T)
g, F, X = normal("g", D), gaussian("F", D, D, fresh=t), gaussian("X", D, D)
u, y, z, W = field("u", D, t), field("y", D, t), field("z", D, t), weights("W", D, D, t)


def model(*equations: Eq) -> Model:
    learning = (Eq(W(0), X / sqrt(D)), Eq(W(t + 1), 0.9 * W(t) + a / D * outer(u(t), g)))
    return Model(
        parameters=(a, T),
        equations=[Eq(u(0), g), *equations, *learning],
        observe={"square": mean(u(t) ** 2), "start": mean(u(t) * g), "late": mean(u(t) * u(t - 1))},
        probe=spectrum(W(T).T @ W(T)),
    )


@pytest.mark.slow
def test_matrices_some_steps_late_are_products_with_fields_of_their_own():
    late = model(Eq(u(t), W(t - 2) @ u(t - 2) + F(t - 3).T @ u(t - 3) / sqrt(D) + u(t - 1) / 2))
    found = derive.load(late).solve()
    assert found["square"][-1] > 1 and len(found.outliers) == 1
    products = (Eq(y(t), W(t) @ u(t)), Eq(z(t), F(t).T @ u(t) / sqrt(D)))
    by_field = model(*products, Eq(u(t), y(t - 2) + z(t - 3) + u(t - 1) / 2))
    other = derive.load(by_field).solve()
    for name in ("square", "start", "late"):
        np.testing.assert_allclose(found[name], other[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.outliers, other.outliers, rtol=1e-10)
    compared = derive.compare(found, derive.load(late).simulate(size=200, seeds=12))
    assert compared.to_frame()["difference"].abs().max() < 6


@pytest.mark.slow
def test_what_stands_at_the_start_is_what_its_equation_says():
    spiked = X / sqrt(D) + gaussian("Y", D, D) / sqrt(2 * D)
    learning = (Eq(W(0), spiked), Eq(W(t + 1), (1 - a) * W(t) + a * W(0) + a / D * outer(u(t), u(0))))
    by_name = [Eq(u(0), g), Eq(u(t + 1), W(0).T @ u(t) / 2 + W(t) @ u(0) / 4), *learning]
    written = [
        Eq(u(0), g),
        Eq(u(t + 1), spiked.T @ u(t) / 2 + W(t) @ g / 4),
        Eq(W(0), spiked),
        Eq(W(t + 1), (1 - a) * W(t) + a * spiked + a / D * outer(u(t), g)),
    ]
    observe, probe = {"square": mean(u(t) ** 2)}, spectrum(W(T).T @ W(T))
    found, other = (
        derive.load(Model(parameters=(a, T), equations=equations, observe=observe, probe=probe)).solve()
        for equations in (by_name, written)
    )
    np.testing.assert_allclose(found["square"], other["square"], rtol=1e-13)
    np.testing.assert_allclose(found.outliers, other.outliers, rtol=1e-12)


def test_other_fixed_times_are_refused():
    with pytest.raises(DeclarationError, match=r"the equation of u uses W\(1\); on the right side times are relative"):
        model(Eq(u(t + 1), W(1) @ u(t)))


def test_weights_before_their_start_are_refused_where_they_would_matter():
    """What they act on vanishes there if it is as late as they are; else starting values must say what holds."""
    with pytest.raises(DeclarationError, match=r"W has no value before its start; give u starting values, Eq\(u\(1\)"):
        model(Eq(u(t), W(t - 2) @ g + u(t - 1)))
    with pytest.raises(DeclarationError, match="no value before its start"):
        model(Eq(u(t + 1), W(t - 1) @ u(t)))
    model(Eq(u(1), g), Eq(u(t), W(t - 2) @ g + u(t - 1)))
    model(Eq(u(t + 1), W(t - 1) @ (2 * tanh(u(t - 1)) - u(t - 2))))


def test_a_law_of_a_late_field_that_is_not_gaussian_has_that_lag():
    """r(t) = tanh(x(t)), x(t) = 2^t g: cos(r(t - 1)) is an integral over g, with x one step before, and so is that of
    y = 2 r."""
    r, x, y = field("r", D, t), field("x", D, t), field("y", D, t)
    late = Model(
        parameters=(T,),
        equations=[Eq(x(0), g), Eq(x(t + 1), 2 * x(t)), Eq(r(t), tanh(x(t))), Eq(y(t), 2 * r(t))],
        observe={"late": mean(cos(r(t - 1))), "linear": mean(cos(y(t - 1)))},
    )
    found = derive.load(late).solve(T=3)
    values = np.linspace(-12, 12, 4001)
    shares = np.exp(-(values**2) / 2) / np.sum(np.exp(-(values**2) / 2))
    for name, factor in (("late", 1), ("linear", 2)):
        at = [shares @ np.cos(factor * np.tanh(2.0**k * values)) for k in range(3)]
        np.testing.assert_allclose(found[name][1:], at, rtol=1e-8)


@pytest.mark.parametrize("later", [-1, 0, 1])
def test_a_sum_over_earlier_times_is_needed_when_the_last_of_its_values_is(later: int):
    """The sum over s < t of <u(s) z(t + n)> belongs to t, or to the time of z if that is later."""
    past = Sum(mean(u(PAST) * z(t + later)) * g, (PAST, 0, t - 1))
    assert latest_moment(past, "here") == Moment(t, max(0, later))


def test_what_depends_on_time_through_a_number_alone_has_a_time():
    assert latest_moment(t * g, "here") == Moment(t, 0) and latest_moment(a * g, "here") is None


@pytest.mark.slow
def test_a_product_of_independent_fields_that_are_not_gaussian_has_the_product_of_their_means():
    """r_k = k + tanh(g_k), k = 1, 2, 3: the mean of their product is 6, a number that no law holds."""
    few = [field(f"r{k}", D) for k in (1, 2, 3)]
    equations = [Eq(r, k + tanh(normal(f"g{k}", D))) for k, r in enumerate(few, start=1)]
    found = derive.load(Model(parameters=(), equations=equations, observe={"product": mean(prod(few))})).solve()
    np.testing.assert_allclose(found["product"], 6, rtol=1e-8)


@pytest.mark.slow
def test_a_field_is_the_sum_of_laws_of_gaussian_fields_and_of_others():
    """z = sin(g)^2 + cos(r) + exp(-g^2) + exp(-r^2) with r = tanh(g), by integrals over g."""
    r, z = field("r", D), field("z", D)
    law = sin(g) ** 2 + cos(r) + exp(-(g**2)) + exp(-(r**2))
    model = Model(parameters=(), equations=[Eq(r, tanh(g)), Eq(z, law)], observe={"mean": mean(z)})
    x = np.linspace(-12, 12, 4001)
    shares = np.exp(-(x**2) / 2) / np.sum(np.exp(-(x**2) / 2))
    values = np.sin(x) ** 2 + np.cos(np.tanh(x)) + np.exp(-(x**2)) + np.exp(-(np.tanh(x) ** 2))
    np.testing.assert_allclose(derive.load(model).solve()["mean"], shares @ values, rtol=1e-8)
