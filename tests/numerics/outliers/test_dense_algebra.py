"""Eigenvalues, null spaces and powers of matrices with known ones."""

from __future__ import annotations

import flint
import numpy as np
import pytest

from numerics.outliers import leading, linear
from numerics.outliers.powers import LowRankChange, Powers
from numerics.simulation import outermost

RNG = np.random.default_rng(11)


def with_eigenvalues(values, rng=RNG):
    """A matrix with these eigenvalues that is not normal, and its eigenvectors."""
    basis = rng.normal(size=(len(values), len(values))) + 3 * np.eye(len(values))
    return basis @ np.diag(values) @ np.linalg.inv(basis), basis


@pytest.mark.parametrize("size", [12, 160])
def test_smallest_singular_values_and_null_spaces(size):
    """Of a matrix with two small singular values, below and above the size where all are computed; above, the smallest
    is bounded from above."""
    left, _, right = np.linalg.svd(RNG.normal(size=(size, size)))
    singular = np.concatenate([np.linspace(3, 1, size - 2), [1e-5, 1e-7]])
    matrix = left @ np.diag(singular) @ right
    found = linear.smallest_singular_value(matrix)
    assert found == pytest.approx(1e-7, rel=1e-4) if size <= linear.DENSE else 1e-7 <= found < 1e-5
    rights, lefts = linear.null_spaces(matrix, 2)
    np.testing.assert_allclose(np.abs(np.linalg.svd(rights.T @ right[-2:].T, compute_uv=False)), 1, atol=1e-6)
    np.testing.assert_allclose(np.abs(np.linalg.svd(lefts.T @ left[:, -2:], compute_uv=False)), 1, atol=1e-6)
    assert linear.largest_entry(-matrix) == np.max(np.abs(matrix)) == linear.largest_entry(matrix)
    shifted = linear.moved(matrix, 2.0, 3)
    assert shifted.shape == (size + 3, size + 3) and not shifted[size:].any() and not shifted[:, size:].any()
    np.testing.assert_array_equal(shifted[:size, :size], matrix + 2 * np.eye(size))
    assert linear.moved(matrix, 2.0j).dtype == complex


@pytest.mark.parametrize("size", [8, 140])
def test_eigenvalues_with_their_residuals_and_conditions(size):
    values = np.concatenate([[5.0, -4.0, 2.5], np.linspace(1, 0.1, size - 3)])
    matrix, basis = with_eigenvalues(values)
    np.testing.assert_allclose(np.sort(linear.all_eigenvalues(matrix).real), np.sort(values), rtol=1e-7)
    np.testing.assert_allclose(linear.leading_eigenvalues(matrix, 3)[:3], values[:3], rtol=1e-10)
    assert linear.eigenvalue_residual(matrix, 5.0) < 1e-10 * np.linalg.norm(matrix)
    assert linear.eigenvalue_residual(matrix, 4.5) > 1e-3
    inverse, norm = np.linalg.inv(basis), np.linalg.norm(matrix)
    lengths = np.linalg.norm(basis, axis=0) * np.linalg.norm(inverse, axis=1)
    expected = [norm / abs(values[k]) * lengths[k] for k in range(3)]
    np.testing.assert_allclose(linear.eigenvalue_conditions(matrix, values[:3]), expected, rtol=1e-6)


def test_rows_and_columns_that_vanish_have_the_eigenvalue_zero():
    matrix = np.array([[2.0, 0, 7], [0, 0, 0], [0, 0, -3]])
    assert sorted(linear.all_eigenvalues(matrix).real) == pytest.approx([-3, 0, 2])
    assert sorted(linear.all_eigenvalues(np.zeros((2, 2))).real) == [0, 0]


def test_digits_of_eigenvalues_of_matrices_far_from_balance():
    """Entries span 80 orders of magnitude; eigenvalues are those before rows and columns were scaled."""
    plain = np.array([[2.0, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, -2.0]])
    scales = 2.0 ** np.array([130.0, 0.0, -130.0])
    matrix = plain * scales[:, None] / scales
    assert linear.balanced_norm(matrix) == pytest.approx(np.linalg.norm(plain), rel=1.0)
    d = linear.balancing(matrix)
    assert np.linalg.norm(matrix * d / d[:, None]) == pytest.approx(linear.balanced_norm(matrix))
    values, moved = linear.long_eigenvalues(matrix)
    known = np.linalg.eigvals(plain)
    known = known[np.argsort(-np.abs(known), kind="stable")]
    np.testing.assert_allclose(np.abs(values), np.abs(known), rtol=1e-12)
    np.testing.assert_allclose(np.sort(values.real), np.sort(known.real), rtol=1e-12)
    assert np.all((moved > 0) & (moved < 1e-13))
    assert linear.resolution(np.eye(4)) == pytest.approx(linear.RESOLVED * 2)
    assert linear.balanced_norm(np.zeros((0, 0))) == 0.0


def test_the_distance_to_the_nearest_zero_of_a_determinant():
    """A(z) = M + z S with det A = 0 at -0.3 and 2, whatever the scales of rows and columns.

    From z = 0 Newton's step for det A goes further than the nearest zero.
    """
    slope = RNG.normal(size=(2, 2)) + 2 * np.eye(2)
    matrix = slope @ np.diag([0.3, -2.0])
    for scale in (1.0, 1e20):
        rows = np.diag([scale, 1 / scale])
        assert linear.distance_to_zero(rows @ matrix, rows @ slope, 1e-16) == pytest.approx(
            1 / (1 / 0.3 - 1 / 2), rel=1e-12
        )
    assert linear.distance_to_zero(np.zeros((2, 2)), slope, 0.0) == 0.0
    assert linear.distance_to_zero(np.eye(2), np.zeros((2, 2)), 0.0) == np.inf


@pytest.mark.parametrize("size", [40, 300])
def test_leading_eigenvalues_span_an_invariant_space(size):
    """All above a floor, with complex pairs and a cluster kept whole, from any start."""
    angle = 0.7
    turn = 3.0 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    inner = np.diag(np.concatenate([[4.0, -3.5, 0, 0, 2.0, 2.0], RNG.uniform(-0.4, 0.4, size - 6)]))
    inner[2:4, 2:4] = turn
    basis = np.eye(size) + 0.3 * RNG.normal(size=(size, size)) / np.sqrt(size)
    matrix = basis @ inner @ np.linalg.inv(basis)
    expected = [4.0, 3.5, 3.0, 3.0, 2.0, 2.0]
    for start in (None, basis[:, :3]):
        found = leading.leading(lambda x: matrix @ x, size, 1.0, start)
        assert found.count == 6 and np.allclose(np.abs(found.found), expected, rtol=1e-9)
        np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(found.vectors.shape[1]), atol=1e-10)
        cut = found.cut(4)
        assert cut.count == 4 and np.allclose(np.sort(np.abs(np.linalg.eigvals(cut.small))), expected[3::-1], rtol=1e-7)
        np.testing.assert_allclose(matrix @ cut.vectors, cut.vectors @ cut.small, atol=1e-6)
    assert leading.leading(lambda x: matrix @ x, size, 3.2).count == 2
    assert leading._whole(np.array([4.0, 3.0, 3.0, 1.0]), 2) == 3 and leading._whole(np.array([1.0, 1.0]), 1) == 2
    assert leading._gap(np.array([9.0, 8.0, 7.0, 1.0, 0.9]), 1, 4) == 3


def test_powers_follow_changes_of_low_rank_within_their_drift():
    """M grows by rows and columns and by a product of low rank; its powers are those of the new matrix."""
    matrix = RNG.normal(size=(6, 6)) / 3
    powers = Powers(9)
    powers.restart(matrix)
    assert powers.square() and powers.square() and len(powers) == 3
    for rows in (7, 9):
        padded = np.zeros((rows, rows))
        padded[: len(matrix), : len(matrix)] = matrix
        change = LowRankChange(RNG.normal(size=(rows, 2)) / 3, RNG.normal(size=(2, rows)) / 3)
        matrix = padded + change.left @ change.right
        powers.grow(matrix, change)
        for level in range(3):
            known = np.linalg.matrix_power(matrix, 2**level)
            np.testing.assert_allclose(powers[level], known, atol=1e-12)
            assert powers.norms[level] == pytest.approx(np.linalg.norm(known))
            if level:
                off = np.linalg.norm(powers[level] - powers[level - 1] @ powers[level - 1])
                assert off <= powers.drifts[level] < 1e-10
    powers.cut(1)
    assert len(powers) == 1 and len(Powers.of(matrix)) == 1 and np.array_equal(Powers.of(matrix)[0], matrix)
    assert not Powers.of(np.full((2, 2), 1e200)).square()


def test_columns_whose_product_vanishes_are_left_out_of_a_change():
    left, right = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 5))
    left[:, 1], right[2] = 0.0, 0.0
    kept = LowRankChange(left, right).without_zeros()
    assert kept.left.shape == (5, 2) and np.array_equal(kept.right, right[[0, 3]])
    np.testing.assert_allclose(kept.left @ kept.right, left @ right, atol=1e-14)
    assert LowRankChange(0.0 * left, right).without_zeros().right.shape == (0, 5)


def test_outermost_eigenvalues_of_a_large_symmetric_matrix():
    """By Lanczos, and of a small matrix by all of its eigenvalues."""
    values = np.concatenate([[-9.0, -7.5], RNG.uniform(-1, 1, 296), [6.0, 8.0]])
    turn = np.linalg.qr(RNG.normal(size=(300, 300)))[0]
    matrix = turn @ np.diag(values) @ turn.T
    found, vectors = outermost.by_lanczos(matrix, 2)
    np.testing.assert_allclose(found, [-9.0, -7.5, 6.0, 8.0], rtol=1e-9)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-6)
    few, at = outermost.outermost(matrix[:40, :40], 3, vectors=True)
    np.testing.assert_allclose(few, outermost.at_ends(np.linalg.eigvalsh(matrix[:40, :40]), 3), rtol=1e-10)
    np.testing.assert_allclose(matrix[:40, :40] @ at, at * few, atol=1e-10)
    assert outermost.at_ends(np.arange(5), 3).tolist() == [0, 1, 2, 3, 4]
    assert outermost.at_ends(np.arange(5), 2).tolist() == [0, 1, 3, 4]


def test_digits_of_other_computations_stay_as_they_are():
    before = flint.ctx.dps
    linear.long_eigenvalues(np.diag([1.0, 2.0]))
    assert flint.ctx.dps == before
    with pytest.raises((ValueError, TypeError)):
        linear.long_eigenvalues(np.array([["no number"]]))
    assert flint.ctx.dps == before
