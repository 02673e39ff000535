"""Eigenvalues by QR steps in JAX, against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import derive
from numerics.outliers import largest
from numerics.support.eigenvalues import eigenvalues, eigenvalues_by_qr
from numerics.support.precision import in_float64

N, TOGETHER = 9, 7
"""Rows of a matrix, and matrices of a batch, so that one compiled program serves most tests."""
BY_QR = jax.jit(jax.vmap(eigenvalues_by_qr))


def _by_qr(*matrices: np.ndarray) -> np.ndarray:
    """The eigenvalues of a few matrices, one row each."""
    filled = [*matrices, *[np.eye(len(matrices[0]))] * (TOGETHER - len(matrices))]
    return np.asarray(BY_QR(np.stack(filled)))[: len(matrices)]


def _distance(found, wanted) -> float:
    """Largest distance between two sets of eigenvalues that are paired greedily, the largest first."""
    left, worst = list(found), 0.0
    for value in sorted(wanted, key=abs, reverse=True):
        nearest = int(np.argmin(np.abs(np.array(left) - value)))
        worst = max(worst, abs(left.pop(nearest) - value))
    return worst


def _matrices(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    normal = rng.standard_normal((n, n))
    scales = 2.0 ** rng.integers(-20, 20, n)
    half = rng.standard_normal((n // 2, n // 2))
    twice = np.zeros((n, n))
    twice[: 2 * (n // 2), : 2 * (n // 2)] = np.kron(np.eye(2), half)
    return {
        "normal": normal,
        "symmetric": normal + normal.T,
        "badly scaled": normal * scales[:, None] / scales,
        "each eigenvalue twice": twice,
        "rank one": np.outer(normal[0], normal[-1]),
        "cyclic": np.roll(np.eye(n), 1, axis=0),
        "zero": np.zeros((n, n)),
    }


@pytest.mark.slow
@in_float64
def test_qr_steps_give_the_eigenvalues_of_lapack():
    for n in (1, 2, N):
        matrices = _matrices(n)
        for (kind, matrix), found in zip(matrices.items(), _by_qr(*matrices.values()), strict=True):
            wanted = np.linalg.eigvals(matrix)
            assert _distance(found, wanted) <= 1e-13 * max(1.0, np.abs(matrix).max()), (n, kind)


@pytest.mark.slow
@in_float64
def test_eigenvalues_of_a_triangular_matrix_are_its_diagonal_in_any_order_of_rows():
    """A defective eigenvalue would otherwise move by the n-th root of rounding."""
    diagonal = np.arange(N) // 2
    triangular = np.tril(np.random.default_rng(0).standard_normal((N, N)), -1) + np.diag(diagonal)
    order = np.random.default_rng(1).permutation(N)
    (found,) = _by_qr(triangular[order][:, order])
    assert sorted(found.real) == sorted(diagonal) and not found.imag.any()


@pytest.mark.slow
@in_float64
def test_a_matrix_with_an_infinite_entry_has_no_eigenvalues():
    infinite = np.eye(N)
    infinite[0, 1] = np.inf
    none, ones = _by_qr(infinite, np.eye(N))
    assert np.isnan(none).all() and np.array_equal(ones, np.ones(N))


@in_float64
def test_derivatives_do_not_pass_through_eigenvalues():
    slopes = jax.jacfwd(lambda x: eigenvalues(x * jnp.eye(2)).real)(2.0)
    assert not slopes.any()


EXACT = (
    ("spiked_wigner", ["gamma0"], [2.0], {}),
    ("anti_hebbian", ["gamma0", "dt"], [1.5, 0.3], {"T": 6}),
    ("coupled_spikes", ["kappa", "theta"], [0.5, 0.7], {"S": 4}),
    ("deep_linear", ["gamma0", "eta"], [3.0, 0.05], {"L": 1, "T": 30, "C": 2}),
)


@pytest.mark.long
@pytest.mark.parametrize(("name", "of", "at", "fixed"), EXACT)
def test_the_largest_outlier_by_qr_steps_is_that_by_lapack(name, of, at, fixed, monkeypatch):
    def found():
        outlier = derive.load(name).function("outlier", of=of, **fixed)
        with jax.enable_x64(True):
            return jax.value_and_grad(outlier, argnums=tuple(range(len(of))))(*at)

    by_lapack = found()
    calls = []

    def by_qr(matrix):
        calls.append(matrix)
        return eigenvalues_by_qr(jax.lax.stop_gradient(matrix))

    monkeypatch.setattr(largest, "eigenvalues", by_qr)
    by_steps = found()
    assert calls and np.isfinite(by_lapack[0])
    np.testing.assert_allclose(by_steps[0], by_lapack[0], rtol=1e-10)
    np.testing.assert_allclose(by_steps[1], by_lapack[1], rtol=1e-8, atol=1e-10)
