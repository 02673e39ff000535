"""Eigenvalues of general real matrices, in operations available on every JAX device.

For these JAX calls LAPACK, from a GPU through the host. Here the QR algorithm is a JAX program: balancing, Householder
reduction to Hessenberg form, and Francis steps with two shifts. All loops have the same length for all matrices of a
batch, except the outermost one.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from numerics.runtime.interface import Array

EPS = 2.0**-52
BALANCING = 8
"""Passes over all rows and columns that equalise their norms."""
STEPS = 30
"""Francis steps per row after which the eigenvalues are NaN, as in LAPACK."""
STUCK = 10
"""Francis steps without deflation after which a step uses exceptional shifts."""


def eigenvalues(matrix: Array) -> Array:
    """Return the eigenvalues of a real square matrix as complex numbers, in any order: by LAPACK on a CPU, by QR steps
    elsewhere. They are not differentiable."""
    found: Array = _primitive.bind(jax.lax.stop_gradient(matrix))
    return found


def eigenvalues_by_qr(matrix: Array) -> Array:
    """Return the eigenvalues of a real square matrix; NaN if an entry is not finite or the steps do not converge."""
    n = matrix.shape[0]
    if n == 0:
        return jnp.zeros(0, jnp.result_type(matrix, jnp.complex64))
    finite = jnp.all(jnp.isfinite(matrix))
    start = _hessenberg(_balanced(_without_isolated(jnp.where(finite, matrix, 0.0))))
    reduced, converged = _quasi_triangular(start)
    values = _eigenvalues_of_blocks(reduced)
    return jnp.where(finite & converged, values, jnp.nan)


def _without_isolated(matrix: Array) -> Array:
    """Return a matrix with the same eigenvalues, in which rows and columns that are triangular after a permutation are
    made diagonal. Eigenvalues of a triangular matrix remain exact."""
    diagonal = jnp.eye(len(matrix), dtype=bool)

    def coupled(kept: Array) -> Array:
        return (matrix != 0) & ~diagonal & kept[:, None] & kept[None, :]

    def fewer(state: tuple[Array, Array]) -> tuple[Array, Array]:
        kept, _ = state
        links = coupled(kept)
        return kept & links.any(axis=0) & links.any(axis=1), kept

    start = jnp.ones(len(matrix), bool)
    kept, _ = jax.lax.while_loop(lambda state: jnp.any(state[0] != state[1]), fewer, fewer((start, start)))
    return jnp.where(coupled(kept) | diagonal, matrix, 0.0)


def _balanced(matrix: Array) -> Array:
    """Return a similar matrix whose rows and columns have norms of the same order, scaled by powers of two."""
    n = len(matrix)

    def scale(k: Array, a: Array) -> Array:
        k = k % n
        other = jnp.arange(n) != k
        column = jnp.sqrt(jnp.sum(jnp.where(other, a[:, k], 0.0) ** 2))
        row = jnp.sqrt(jnp.sum(jnp.where(other, a[k], 0.0) ** 2))
        usable = (column > 0) & (row > 0)
        ratio = jnp.where(usable, row, 1.0) / jnp.where(usable, column, 1.0)
        factor = jnp.exp2(jnp.clip(jnp.round(0.5 * jnp.log2(ratio)), -500.0, 500.0))
        worthwhile = usable & (column * factor + row / factor < 0.95 * (column + row))
        factor = jnp.where(worthwhile, factor, 1.0)
        return a.at[:, k].multiply(factor).at[k].divide(factor)

    return jax.lax.fori_loop(0, BALANCING * n, scale, matrix)


def _reflection(v: Array) -> tuple[Array, Array]:
    """Return w and b such that 1 - b w w^T maps v to a multiple of the first unit vector; b = 0 if v has one entry."""
    size = jnp.max(jnp.abs(v))
    v = v / jnp.where(size > 0, size, 1.0)
    norm = jnp.sqrt(jnp.sum(v**2))
    w = v.at[0].add(jnp.where(v[0] < 0, -norm, norm))
    square = jnp.sum(w**2)
    alone = jnp.all(v[1:] == 0)
    return w, jnp.where(alone, 0.0, 2.0 / jnp.where(square > 0, square, 1.0))


def _hessenberg(matrix: Array) -> Array:
    """Return a similar matrix that is zero below its first subdiagonal."""
    n = len(matrix)
    index = jnp.arange(n)

    def eliminate(k: Array, a: Array) -> Array:
        below = index > k
        column = jnp.where(below, a[:, k], 0.0)
        w, b = _reflection(jnp.roll(column, -k - 1))  # its first entry is that of row k + 1
        w = jnp.roll(w, k + 1)
        a = a - b * jnp.outer(w, w @ a)
        a = a - b * jnp.outer(a @ w, w)
        return a.at[:, k].set(jnp.where(index > k + 1, 0.0, a[:, k]))

    return jax.lax.fori_loop(0, max(n - 2, 0), eliminate, matrix)


def _links(h: Array) -> Array:
    """Return for each row but the last whether its subdiagonal entry is significant."""
    diagonal, below = jnp.diagonal(h), jnp.diagonal(h, -1)
    size = jnp.abs(diagonal[:-1]) + jnp.abs(diagonal[1:])
    size = jnp.where(size > 0, size, jnp.sqrt(jnp.sum(h**2)))
    return jnp.abs(below) > EPS * size


def _quasi_triangular(h: Array) -> tuple[Array, Array]:
    """Return a similar matrix with diagonal blocks of one or two rows, and whether that converged."""
    n = len(h)
    if n < 3:
        return h, jnp.array(True)
    index = jnp.arange(n)

    def unfinished(state: Any) -> Array:
        _, high, _, count = state
        return (high > 0) & (count < STEPS * n)

    def deflated(h: Array) -> tuple[Array, Array, Array]:
        """Return the matrix without insignificant entries, and first and last row of the last block of more than two
        rows; both are zero if there is no such block."""
        linked = _links(h)
        h = h.at[index[1:], index[:-1]].multiply(linked)
        high = jnp.max(jnp.where(linked[1:] & linked[:-1], index[2:], 0))
        begins = jnp.concatenate([jnp.ones(1, bool), ~linked]) & (index <= high)
        return h, jnp.max(jnp.where(begins, index, 0)), high

    def step(state: Any) -> Any:
        h, last, stuck, count = state
        h, low, high = deflated(h)
        stuck = jnp.where(high == last, stuck + 1, 0)
        return _francis_step(h, low, high, (stuck % STUCK) == STUCK - 1), high, stuck, count + 1

    h, high, *_ = jax.lax.while_loop(unfinished, step, (h, jnp.array(n), jnp.array(0), jnp.array(0)))
    return deflated(h)[0], high == 0


def _francis_step(h: Array, low: Array, high: Array, unusual: Array) -> Array:
    """Return the matrix after one implicit QR step with two shifts on rows `low` to `high`; unchanged if there are
    none.

    unusual: whether to use exceptional shifts instead of the eigenvalues of the last two rows.
    """
    n = len(h)
    wide = jnp.pad(h, ((0, 3), (0, 3)))
    a, b, c, d = wide[high - 1, high - 1], wide[high - 1, high], wide[high, high - 1], wide[high, high]
    size = jnp.abs(c) + jnp.abs(wide[high - 1, high - 2])
    trace = jnp.where(unusual, 1.5 * size, a + d)
    product = jnp.where(unusual, size**2, a * d - b * c)
    block = jax.lax.dynamic_slice(wide, (low, low), (3, 3))
    first = jnp.stack(
        [
            block[0, 0] ** 2 + block[0, 1] * block[1, 0] - trace * block[0, 0] + product,
            block[1, 0] * (block[0, 0] + block[1, 1] - trace),
            block[1, 0] * block[2, 1],
        ]
    )

    def chase(k: Array, wide: Array) -> Array:
        rows = jax.lax.dynamic_slice(wide, (k, 0), (3, n + 3))
        before = rows[:, jnp.maximum(k - 1, 0)]
        v = jnp.where(k == low, first, before)
        v = v.at[2].set(jnp.where(k + 2 > high, 0.0, v[2]))
        w, b = _reflection(v)
        b = jnp.where((k >= low) & (k < high), b, 0.0)
        rows = rows - b * jnp.outer(w, w @ rows)
        cleared = (jnp.arange(n + 3) == k - 1)[None, :] & (jnp.arange(3) > 0)[:, None] & (k > low) & (b > 0)
        wide = jax.lax.dynamic_update_slice(wide, jnp.where(cleared, 0.0, rows), (k, 0))
        columns = jax.lax.dynamic_slice(wide, (0, k), (n + 3, 3))
        columns = columns - b * jnp.outer(columns @ w, w)
        return jax.lax.dynamic_update_slice(wide, columns, (0, k))

    return jax.lax.fori_loop(0, n - 1, chase, wide)[:n, :n]


def _eigenvalues_of_blocks(h: Array) -> Array:
    """Return the eigenvalues of a matrix with diagonal blocks of one or two rows."""
    n = len(h)
    if n == 1:
        return jax.lax.complex(h[0], jnp.zeros_like(h[0]))
    linked = _links(h)
    upper, lower = jnp.diagonal(h, 1), jnp.diagonal(h, -1)
    a, d = jnp.diagonal(h)[:-1], jnp.diagonal(h)[1:]
    half = (a - d) / 2
    square = half**2 + upper * lower
    root = jnp.sqrt(jnp.abs(square))
    larger = half + jnp.where(half < 0, -root, root)  # without cancellation
    safe = jnp.where(larger == 0, 1.0, larger)
    first = jnp.where(square < 0, (a + d) / 2, d + larger)
    second = jnp.where(square < 0, (a + d) / 2, d - jnp.where(larger == 0, 0.0, upper * lower / safe))
    turned = jnp.where(square < 0, root, 0.0)
    none = jnp.zeros(1)
    begins, ends = jnp.concatenate([linked, jnp.zeros(1, bool)]), jnp.concatenate([jnp.zeros(1, bool), linked])
    real = jnp.where(begins, jnp.concatenate([first, none]), jnp.diagonal(h))
    real = jnp.where(ends, jnp.concatenate([none, second]), real)
    imaginary = jnp.where(begins, jnp.concatenate([turned, none]), 0.0)
    imaginary = jnp.where(ends, jnp.concatenate([none, -turned]), imaginary)
    return jax.lax.complex(real, imaginary)


def _of_batch(matrices: Array) -> Array:
    """Return the eigenvalues of matrices along all leading axes."""
    of_one = eigenvalues_by_qr
    for _ in matrices.shape[:-2]:
        of_one = jax.vmap(of_one)
    return of_one(matrices)


# a primitive, because `jax.lax.platform_dependent` would trace QR steps on every device
_primitive: Any = Primitive("eigenvalues")
_primitive.def_impl(jax.jit(_primitive.bind))
_primitive.def_abstract_eval(
    lambda matrix: jax.core.ShapedArray(matrix.shape[:-1], jnp.result_type(matrix.dtype, jnp.complex64))
)
batching.primitive_batchers[_primitive] = lambda arrays, axes: (
    _primitive.bind(jnp.moveaxis(arrays[0], axes[0], 0)),
    0,
)
mlir.register_lowering(_primitive, mlir.lower_fun(_of_batch, multiple_results=False))
mlir.register_lowering(_primitive, mlir.lower_fun(jnp.linalg.eigvals, multiple_results=False), platform="cpu")
