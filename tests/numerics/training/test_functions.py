"""Public functions under transformations of JAX, in either precision of the caller."""

from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import derive
from derive import Eq, Model, field, mean, normal, parameter, sectors, training_clock, whole_positive
from numerics.runtime.rows import RowsPass
from numerics.support.derivatives import differentiable_once
from numerics.support.lifting import lifted

LARGE = 1e9
"""A number that float32 cannot tell from its neighbours: what is computed there loses all digits."""


def cube(x):
    """x^3 by a loop that stores its steps, as a forward pass does, and by a difference of large numbers."""

    def step(k, past):
        return jax.lax.dynamic_update_slice_in_dim(past, (past[k] * x[0])[None], k + 1, axis=0)

    past = jax.lax.fori_loop(0, 3, step, jnp.zeros(4).at[0].set(1.0))
    return (LARGE + past[3]) - LARGE


IN_DOUBLE_PRECISION = lifted(cube)


def lifted_cube(x):
    return IN_DOUBLE_PRECISION(jnp.stack([x]))


def mapped(function):
    return lambda x: jax.vmap(function)(jnp.stack([x, x]))


def differentiated(function):
    return jax.grad(lambda x: jnp.sum(function(x)))


TRANSFORMATIONS = {"jit": jax.jit, "vmap": mapped, "grad": differentiated}


@pytest.mark.parametrize(
    ("names", "double"),
    [(names, False) for names in (*product(TRANSFORMATIONS, repeat=2), *permutations(TRANSFORMATIONS))]
    + [(names, True) for names in permutations(TRANSFORMATIONS)]
    + [pytest.param(names, False, marks=pytest.mark.long) for names in product(TRANSFORMATIONS, repeat=3)],
)
def test_compositions_of_transformations_compute_in_double_precision(names, double):
    """By hand: derivatives of x^3 at 2; the gradient of a sum over two equal values is twice that of one."""
    transformed, copies, expected = lifted_cube, 1, [8.0, 12.0, 12.0, 6.0][names.count("grad")]
    for name in reversed(names):
        transformed = TRANSFORMATIONS[name](transformed)
        if name == "vmap":
            copies *= 2
        elif name == "grad":
            copies, expected = 1, expected * copies
    for dtype in (np.float32, np.float64) if double else (np.float32,):
        with jax.enable_x64(double):
            result = transformed(jnp.asarray(2.0, dtype))
        assert result.dtype == dtype
        np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg="as exact as 1e9 + x^3 in float64")


def test_a_forward_pass_is_mapped_and_compiled_in_single_precision():
    """By hand: x(t + 1) = a x(t) has the norm a^(2t)."""
    a, T = parameter("a", default=0.5), parameter("T", default=2, domain=whole_positive)
    D = sectors("D")
    t = training_clock("t", steps=T)
    x = field("x", D, t)
    equations = [Eq(x(0), normal("start", D)), Eq(x(t + 1), a * x(t))]
    norm = derive.load(Model(parameters=(a, T), equations=equations, observe={"norm": mean(x(t) ** 2)})).function(
        "norm", of="a"
    )
    for transformed in (jax.jit(jax.vmap(norm)), jax.vmap(jax.jit(norm))):
        np.testing.assert_allclose(transformed(jnp.array([2.0, 3.0])), [[1, 4, 16], [1, 9, 81]], rtol=1e-6)


def test_what_is_differentiable_once_has_no_second_derivative():
    """A slope that rounding made would be a number without meaning; one that is linear in another argument, too."""
    area = differentiable_once(lambda a, b: (a * b, a), lambda known, a, b: known * b + a * jax.lax.stop_gradient(b))
    assert area(3.0, 2.0) == 6.0
    assert jax.grad(area, argnums=(0, 1))(3.0, 2.0) == (2.0, 3.0)
    for inner, outer in product((0, 1), repeat=2):
        assert np.isnan(jax.jit(jax.grad(jax.grad(area, inner), outer))(3.0, 2.0))


def test_a_value_alone_does_not_trace_its_derivative():
    def refused(known, x):
        raise AssertionError("nobody asked for it")

    assert jax.jit(jax.vmap(differentiable_once(lambda x: (x**2, None), refused)))(jnp.ones(2)).sum() == 2.0


def test_the_upper_edge_has_second_derivatives():
    """(1 + nu^(-1/2))^2 of the first layer: 3/2 nu^(-5/2) + 2 nu^(-3)."""
    edge = derive.load("deep_linear").function("edge", of="nu")
    np.testing.assert_allclose(jax.grad(jax.grad(edge))(2.0), 1.5 * 2**-2.5 + 2 * 2**-3.0, rtol=1e-6)


def test_a_value_and_its_slope_come_from_one_evaluation():
    calls = []

    def square(x):
        calls.append(x)
        return x[0] ** 2

    assert jax.value_and_grad(lambda x: lifted(square)(x[None]))(3.0) == (9.0, 6.0)
    assert len(calls) == 1


def test_the_largest_outlier_takes_one_forward_pass(monkeypatch):
    passes, forward = [], RowsPass.forward_pass

    def counted(self, *args, **kwargs):
        passes.append(args)
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(RowsPass, "forward_pass", counted)
    outlier = derive.load("anti_hebbian").function("outlier", of="gamma0", T=3)
    jax.make_jaxpr(outlier)(1.0)
    assert len(passes) == 1
