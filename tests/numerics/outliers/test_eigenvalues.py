"""Eigenvalues by QR steps in JAX, against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import derive
from numerics.outliers import largest
from numerics.support.eigenvalues import eigenvalues, eigenvalues_by_qr
from numerics.support.precision import in_float64

SIZES = (1, 2, 7, 24)


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
    for n in SIZES:
        matrices = _matrices(n)
        together = np.asarray(jax.jit(jax.vmap(eigenvalues_by_qr))(np.stack(list(matrices.values()))))
        for (kind, matrix), found in zip(matrices.items(), together, strict=True):
            wanted = np.linalg.eigvals(matrix)
            assert _distance(found, wanted) <= 1e-13 * max(1.0, np.abs(matrix).max()), (n, kind)


@pytest.mark.slow
@in_float64
def test_eigenvalues_of_a_triangular_matrix_are_its_diagonal_in_any_order_of_rows():
    """A defective eigenvalue would otherwise move by the n-th root of rounding."""
    n = 8
    triangular = np.tril(np.random.default_rng(0).standard_normal((n, n)), -1) + np.diag(np.arange(n) // 2)
    order = np.random.default_rng(1).permutation(n)
    found = np.asarray(jax.jit(eigenvalues_by_qr)(triangular[order][:, order]))
    assert sorted(found.real) == sorted(np.arange(n) // 2) and not found.imag.any()


@pytest.mark.slow
@in_float64
def test_a_matrix_with_an_infinite_entry_has_no_eigenvalues():
    matrices = jnp.stack([jnp.eye(3).at[0, 1].set(jnp.inf), jnp.eye(3)])
    found = jax.jit(jax.vmap(eigenvalues_by_qr))(matrices)
    assert jnp.isnan(found[0]).all() and jnp.array_equal(found[1], jnp.ones(3))


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
