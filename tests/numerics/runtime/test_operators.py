"""Linear operators against the matrices that they are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numerics.runtime.operators import BlockDiagonal, SomeColumns, Zero, block, diagonal, identity, operator
from numerics.runtime.sampled import stacked, with_rest
from numerics.support.precision import in_float64

A, B = np.random.default_rng(0).standard_normal((2, 3, 3))
REST = np.stack([B, 2 * B])[:, :2, :2]


def blocks(a, b, eye, zero):
    left = [[0.7 * a, zero], [b.T - a / 2, 2 * eye - b @ a]]
    return left, [[a + b], [-2 * b.T]]


def assembled(a, b):
    left, right = blocks(a, b, identity(3), 0)
    return block(left, (3, 3)) @ block(right, (3, 3), (3,))


def written():
    left, right = blocks(A, B, np.eye(3), np.zeros((3, 3)))
    return np.block(left) @ np.block(right)


def columns():
    found = np.zeros((3, 5))
    found[:, [3, 1]] = A[:, :2]
    return found


ALL = {
    "blocks": lambda: (assembled(operator(A), operator(B)), written()),
    "transposed": lambda: (assembled(operator(A), operator(B)).T, written().T),
    "an array beside an operator": lambda: (A @ operator(B) + A - A * 2, A @ B - A),
    "an array before an operator": lambda: (A + operator(B) * 2 - A @ operator(A), A + 2 * B - A @ A),
    "an operator before an array": lambda: (-operator(B) / 4 - A, -B / 4 - A),
    "a sum of two": lambda: (sum([operator(A), operator(B)], Zero((3, 3))), A + B),
    "a diagonal": lambda: (
        diagonal(np.array([2.0, 3.0]), 4, 2) @ block([[0], [identity(2)]], (2, 2), (2,)),
        np.diag([2.0, 2, 3, 3])[:, 2:],
    ),
    "one weight for all times": lambda: (diagonal(0.5, 4, 2), np.eye(4) / 2),
    "blocks on the diagonal": lambda: (BlockDiagonal(REST, REST), np.kron(np.diag([1, 4]), REST[0] @ REST[0].T)),
    "a few columns": lambda: (SomeColumns(A[:, :2], np.array([3, 1]), 5), columns()),
    "nothing": lambda: (Zero((3, 2)), np.zeros((3, 2))),
}


@pytest.mark.parametrize("case", ALL)
@in_float64
def test_an_operator_does_to_vectors_what_its_matrix_does(case):
    found, known = ALL[case]()
    assert found.shape == known.shape
    rng = np.random.default_rng(1)
    right, left = (rng.standard_normal((rows, 2)) for rows in reversed(known.shape))
    assert np.allclose(found.apply(right), known @ right, atol=1e-13)
    assert np.allclose(found.apply_transposed(left), known.T @ left, atol=1e-13)
    total = np.ones(known.shape)
    found.add_to(total, 2.0)
    assert np.allclose(total, 1 + 2 * known, atol=1e-13)
    assert np.allclose(found.array(np), known, atol=1e-13)


@in_float64
def test_an_operator_is_written_down_by_compiled_code():
    """As A(z) is inside of functions that are compiled."""
    found = jax.jit(lambda a, b: assembled(operator(a), operator(b)).array(jnp))(A, B)
    assert np.allclose(found, written(), atol=1e-13)


def test_factors_of_a_product_and_terms_of_a_sum_are_kept():
    one, other = assembled(operator(A), operator(B)).factors
    assert (one.shape, other.shape) == ((6, 6), (6, 3))
    assert [(top, left) for top, left, _ in one.blocks] == [(0, 0), (3, 0), (3, 3)]
    assert [coefficient for coefficient, _ in (2 * (operator(A) - identity(3)) / 4).terms] == [0.5, -0.5]


def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="a block has shape"):
        block([[A]], (2,))
    with pytest.raises(ValueError, match="cannot multiply one with"):
        operator(A) @ np.ones((2, 2))
    with pytest.raises(ValueError, match="cannot be added"):
        operator(A) + identity(2)
    with pytest.raises(TypeError):
        operator(A) * identity(3)


@in_float64
def test_what_was_left_out_of_fields_is_added_to_their_covariance():
    a, b = A[:2], B[:2]
    rows = np.vstack([a, a])
    known = rows @ np.vstack([b, a]).T
    for t in range(2):
        known[2 * t : 2 * t + 2, 2 * t : 2 * t + 2] += REST[t] @ (0.3 * REST[t]).T
    for found in (
        with_rest(operator(rows) @ stacked(operator(b), operator(a)).T, REST, 0.3 * REST, 2).array(np),
        jax.jit(lambda rows: with_rest(rows @ stacked(b, a).T, REST, 0.3 * REST, 2))(rows),
    ):
        assert np.allclose(found, known, atol=1e-13)
