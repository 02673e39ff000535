"""Matrices that are known by what they do to vectors, against the same written down."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from numerics.matrices import Columns, Constant, Dense, Traced
from numerics.precision import in_float64
from numerics.runtime.sampled import with_rest


def blocks(number, a, b):
    return jnp.block([[number * a, jnp.zeros((3, 3))], [b.T - a / 2, -(b @ a)]]) @ jnp.block([[a + b], [2 * b]])


def bent(number, a, b):
    return jnp.tanh(number * a) @ b  # what is not linear in a matrix takes all of it


def filled(number, a, b):
    return number + 0 * (a @ b)


def rested(number, a, b):
    rest = jnp.stack([b, 2 * b])[:, :2, :2]
    return with_rest(jnp.vstack([a, a])[:4] @ jnp.vstack([b, a])[:4].T, rest, number * rest, 2)


@pytest.mark.parametrize("function", [blocks, bent, filled, rested])
@in_float64
def test_a_traced_matrix_does_to_vectors_what_the_written_one_does(function):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3, 3))
    known = np.asarray(function(0.7, jnp.asarray(a), jnp.asarray(b)))
    traced = Traced(function, 0.7, a, b)
    for given in ((a, b), (Dense(a), Dense(b)), (Dense(a), b)):
        (found,) = traced.at(0.7, *given)
        assert found.shape == known.shape
        right, left = (rng.standard_normal((rows, 2)) for rows in reversed(known.shape))
        assert np.allclose(found.right(right), known @ right, atol=1e-13)
        assert np.allclose(found.left(left), known.T @ left, atol=1e-13)
        assert np.allclose(found.written(), known, atol=1e-13)


@in_float64
def test_only_the_factors_of_the_result_are_told_apart():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3, 3))
    (found,) = Traced(blocks, 0.7, a, b).at(0.7, Dense(a), Dense(b))
    assert [factor.shape for factor in found.factors] == [(6, 6), (6, 3)]
    product = found.factors[0].written() @ found.factors[1].written()
    assert np.allclose(product, found.written(), atol=1e-13)


def test_a_few_columns_and_a_constant():
    rng = np.random.default_rng(0)
    few, places = rng.standard_normal((4, 2)), np.array([3, 1])
    whole = np.zeros((4, 5))
    whole[:, places] = few
    for found, known in ((Columns(few, places, 5), whole), (Constant((4, 5), 0.3), np.full((4, 5), 0.3))):
        vectors = rng.standard_normal((5, 2)), rng.standard_normal((4, 2))
        assert np.allclose(found.right(vectors[0]), known @ vectors[0])
        assert np.allclose(found.left(vectors[1]), known.T @ vectors[1])
        assert np.allclose(found.written(), known)
