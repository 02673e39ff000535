"""The forward pass by quadrature over its closure: facts of Gaussian fields with closed forms."""

from __future__ import annotations

import math
from functools import cache
from types import ModuleType

import jax
import numpy as np
import pytest
from sympy import Heaviside, Rational, erf, sqrt

from derive import Eq, Model, fields, gaussian, mean, normal, parameter, sectors, training_clock, trait, whole_positive
from derive.pipeline import derive_model
from derive.program.forward_text import ForwardText
from derive.program.lowering import forward_program
from numerics.runtime import exact
from numerics.runtime.keys import OrderKey, keys_of
from numerics.runtime.point import Point
from numerics.runtime.quadrature import QuadratureClosure
from numerics.runtime.rows import ExactClosure, RowsPass
from numerics.training.quadrature import OF_LAWS, _moved, settle

D = sectors("D")
SIZE = parameter("size", default=2)
J = gaussian("J", D, D)
NODES = 64


def pass_of(model: Model) -> RowsPass:
    """The forward pass of a model without sampled sectors."""
    module = ModuleType("training")
    exec(ForwardText(forward_program(derive_model(model)), "numerics.runtime").module(), module.__dict__)
    training = module.TRAINING
    return RowsPass(training, QuadratureClosure if training.closure == "quadrature" else ExactClosure)


def saturating() -> Model:
    """Entries of h have variance size^2; y saturates in them."""
    w, (h, y) = normal("w", D, scale=SIZE), fields("h y", D)
    return Model(
        parameters=(SIZE,),
        equations=[Eq(h(), J @ w / sqrt(D)), Eq(y(), erf(h()))],
        observe={"square": mean(y() ** 2), "own": mean(erf(h()) * h())},
    )


@cache
def saturated():
    return pass_of(saturating())


POINT = Point(size=1.5)
VARIANCE = 1.5**2
SLOPE = 2 / math.sqrt(math.pi * (1 + 2 * VARIANCE))


def test_the_mean_square_of_an_error_function():
    """<erf(h)^2> = (2/pi) arcsin(2 q / (1 + 2 q)), and by Stein's lemma <h erf(h)> = q <erf'(h)>."""
    with jax.enable_x64():
        _, found, _ = jax.jit(lambda p: saturated().forward_pass(p, NODES))(POINT)
    square = 2 / math.pi * math.asin(2 * VARIANCE / (1 + 2 * VARIANCE))
    np.testing.assert_allclose(found["square"], [square], rtol=1e-12)
    np.testing.assert_allclose(found["own"], [VARIANCE * SLOPE], rtol=1e-12)


def test_a_law_responds_by_its_mean_slope():
    """R[y, h] = <erf'(h)>; C[y, h] = q R[y, h]; what is drawn responds to itself by one whatever its scale."""
    wanted = keys_of([("R", "y", "h"), ("C", "y", "h"), ("R", "w", "w"), ("C", "w", "w")])
    with jax.enable_x64():
        found, _ = jax.jit(lambda p: saturated().two_time(p, wanted, NODES))(POINT)
    for name, expected in zip(wanted, (SLOPE, VARIANCE * SLOPE, 1.0, VARIANCE), strict=True):
        np.testing.assert_allclose(found[name].ravel(), [expected], rtol=1e-12)


def test_responses_of_jumps_of_several_arguments_are_refused():
    w, v, (h, y) = normal("w", D), normal("v", D), fields("h y", D)
    gate = [Eq(h(), J @ w / sqrt(D)), Eq(y(), Heaviside(h()) * v)]
    training = pass_of(Model(parameters=(), equations=gate, observe={"square": mean(y() ** 2)})).training
    assert "jumps" in training.refusal(OrderKey("R", "y", "h"))
    assert not training.refusal(OrderKey("C", "y", "h"))


def test_a_mean_of_a_law_and_of_traits_is_the_product_of_their_means():
    """Traits are 1 or 3 with weights 3/4 and 1/4: <s> = 3/2 and <s^2> = 3."""
    w, (h, y) = normal("w", D, scale=SIZE), fields("h y", D)
    s = trait("s", D, values=[1, 3], weights=[Rational(3, 4), Rational(1, 4)])
    model = Model(
        parameters=(SIZE,),
        equations=[Eq(h(), J @ w / sqrt(D)), Eq(y(), s * erf(h()))],
        observe={
            "once": mean(s * erf(h()) ** 2) - 2 * mean(erf(h()) ** 2),
            "own": mean(s**2 * erf(h()) * h()) + mean(s * h() ** 2),
            "square": mean(y() ** 2) + mean(s * w**2) + mean(s**2),
        },
    )
    with jax.enable_x64():
        _, found, _ = jax.jit(lambda p: pass_of(model).forward_pass(p, NODES))(POINT)
    square = 2 / math.pi * math.asin(2 * VARIANCE / (1 + 2 * VARIANCE))
    expected = {
        "once": -square / 2,
        "own": 3 * VARIANCE * SLOPE + 1.5 * VARIANCE,
        "square": 3 * square + 1.5 * VARIANCE + 3,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], [value], rtol=1e-12)


def growing():
    """Entries of v are size^t times standard normals, and so are those of g."""
    T = parameter("T", default=4, domain=whole_positive)
    t = training_clock("t", steps=T)
    w, (v, g) = normal("w", D), fields("v g", D, t)
    return Model(
        parameters=(SIZE, T),
        equations=[Eq(v(0), w), Eq(v(t + 1), SIZE * v(t)), Eq(g(t), J @ v(t) / sqrt(D))],
        observe={"square": mean(g(t) ** 2)},
    )


@pytest.mark.parametrize(("size", "finite"), [(2.0, 5), (1e100, 2)])
def test_arrays_that_grow_in_stages_and_variances_that_overflow(size, finite, monkeypatch):
    """<g(t)^2> = size^(2 t); with size 1e100 it overflows at t = 2, where v itself does not."""
    monkeypatch.setattr(exact, "STAGE", 1)
    forward = pass_of(growing()).forward_pass
    with jax.enable_x64():
        _, found, times = jax.jit(forward)(Point(size=size, T=4))
    assert int(times) == finite
    np.testing.assert_allclose(found["square"][:finite], [size ** (2 * t) for t in range(finite)], rtol=1e-12)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_change_below_the_rounding_of_the_largest_result_is_none(size):
    """Results of size s and s 1e-8, of which the smaller is off by s 1e-17, s 1e-10 or not at all."""
    large, small = np.full(2, size), np.full(2, 1e-8 * size)
    for change, moved in ((0.0, 0.0), (1e-17, 0.0), (1e-10, 1e-2)):
        before, now = (({OrderKey("C", "x", "x"): x}, {"mean": large}, 3) for x in (small + change * size, small))
        assert _moved(before, now) == pytest.approx(moved, rel=1e-6)
    assert _moved(({}, {"mean": small}, 3), ({}, {"mean": 2 * small}, 3)) == pytest.approx(0.5)
    assert _moved(({}, {"mean": small}, 3), ({}, {"mean": 2 * small}, 3), unit=1e12 * size) == 0.0
    assert _moved(({}, {"mean": small}, 3), ({}, {"mean": np.zeros(2)}, 3)) == pytest.approx(1e-8 * size)


def test_results_of_rounding_of_bounded_integrands_have_converged():
    """A mean that vanishes changes sign with the number of nodes."""

    def run(nodes: int):
        return {}, {"mean": np.array([4e-15 * (-1) ** (nodes % 5)])}, np.array(2)

    (method,) = settle(run, OF_LAWS)[1]
    assert method.quadrature.converged and method.quadrature.error == 0
