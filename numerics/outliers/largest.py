"""The largest outlier as a pure function of the parameters, for jit and grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from numerics.bulk.branch import FARTHEST
from numerics.bulk.folds import (
    edge_from_march,
    marching_program,
    responses_from_march,
    upper_edge_program,
    with_derivatives,
)
from numerics.modules import ProbedMatrix
from numerics.outliers.components import at_one_label
from numerics.runtime.interface import Array, Order
from numerics.runtime.point import Point
from numerics.support.eigenvalues import eigenvalues

REAL, SAME, PHYSICAL, MARGIN = 1e-9, 1e-7, 1e-6, 1e-9
"""Relative tolerances: imaginary part of a real eigenvalue, distance of equal outliers, defect of the scalar map on the
physical branch, distance from the edge."""


def largest_outlier_program(matrix: ProbedMatrix) -> Callable[[Point, Order], Array]:
    """Return a function for the largest outlier above the bulk at a point and its order parameters; NaN if there is
    none.

    First derivatives come from the null vectors of A(z), degenerate outliers included. Second derivatives would need
    those of the vectors and are NaN.
    """
    probe, bulk = matrix.probe, matrix.bulk
    march_down, edge_of, responses_of = marching_program(bulk), edge_from_march(bulk), responses_from_march(bulk)

    def candidates(p: Point, order: Order) -> tuple[Array, Array, Array]:
        """Return points z above the bulk (NaN if there is none), the defect of the scalar map there, and the
        responses."""
        zs, maps = zip(*(_places(p, order, cycle) for cycle in probe.cycles), strict=True)
        z = jnp.concatenate(zs)
        # one march to the edge and to all points, since each call is compiled by itself; short where there is no point
        lowest = jnp.concatenate([jnp.array([-FARTHEST]), jnp.where(jnp.isfinite(z), z, FARTHEST)])
        marched = jax.vmap(lambda one: march_down(p, one))(lowest)
        edge, _ = edge_of(p, [x[0] for x in marched])
        z = jnp.where(z > edge + MARGIN * jnp.abs(edge), z, jnp.nan)
        inside = jnp.where(jnp.isfinite(z), z, 2 * jnp.abs(edge) + 1.0)
        r = jax.vmap(lambda one, state: responses_of(p, one, state))(inside, [x[1:] for x in marched])
        defects, start = [], 0
        for cycle, s in zip(probe.cycles, maps, strict=True):
            own = slice(start, start + len(s))
            back = jax.vmap(lambda one, at, cycle=cycle: jnp.real(probe.mapped(cycle, p, one, at)))(inside[own], r[own])
            defects.append(jnp.abs(back - s) / jnp.abs(s))
            start += len(s)
        return z, jnp.concatenate(defects), r

    def largest(p: Point, trained: Order) -> Array:
        p, trained = at_one_label(probe, p, trained)
        fixed, known = jax.lax.stop_gradient((p, trained))
        z, defects, r = candidates(fixed, known)
        z = jnp.where(defects <= PHYSICAL, z, jnp.nan)
        which = jnp.argmax(jnp.where(jnp.isfinite(z), z, -jnp.inf))
        top, r = z[which], r[which]
        count = jnp.sum(jnp.abs(z - top) <= SAME * jnp.abs(top))

        def a_matrix(p: Point, z: Array, order: Order) -> Array:
            return jnp.real(probe.at(p, z, with_derivatives(bulk, p, z, r), order))

        frozen = a_matrix(fixed, top, known)
        u, _, v = jnp.linalg.svd(jnp.where(jnp.isfinite(top), frozen, jnp.eye(len(frozen))))
        slope = jax.jacfwd(lambda x: a_matrix(fixed, x, known))(top)
        null = jnp.arange(len(frozen)) >= len(frozen) - count
        both = null[:, None] & null[None, :]
        block = jnp.where(both, u.T @ slope @ v.T, jnp.eye(len(frozen)))
        weights = jnp.where(both, jnp.linalg.inv(block), 0.0)
        moved = -jnp.trace(weights @ (u.T @ (a_matrix(p, top, trained) - frozen) @ v.T)) / count
        return top + first_order(moved)

    return largest


def _places(p: Point, order: Order, cycle: Any) -> tuple[Array, Array]:
    """Return points z at which the scalar map of a cycle may equal one of its eigenvalues (NaN if not real), and the
    eigenvalues."""
    values = eigenvalues(cycle.pencil(p, order).array(jnp))
    s = jnp.where(jnp.abs(values.imag) <= REAL * jnp.abs(values), values.real, jnp.nan)
    if cycle.inverse is not None:
        return jnp.broadcast_to(cycle.inverse(p, s), s.shape), s
    assert cycle.relation is not None
    roots = jax.vmap(lambda one: _roots(jnp.stack([*map(jnp.asarray, cycle.relation(p, one))])))(
        jnp.where(jnp.isfinite(s), s, 1.0)
    )
    return jnp.where(jnp.isfinite(s)[:, None], roots, jnp.nan).ravel(), jnp.repeat(s, roots.shape[1])


@jax.custom_jvp
def first_order(x: Array) -> Array:
    """Return x with its first derivative; higher ones are NaN."""
    return x


@first_order.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return primals[0], tangents[0] * _constant_slope(primals[0])


@jax.custom_jvp
def _constant_slope(x: Array) -> Array:
    """Return one, with derivative NaN."""
    return jnp.ones_like(x)


@_constant_slope.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return jnp.ones_like(primals[0]), jnp.nan * tangents[0]


def _roots(coefficients: Array) -> Array:
    """Return the real roots of a polynomial, NaN in place of complex ones."""
    degree = len(coefficients) - 1
    companion = jnp.eye(degree, k=-1).at[0].set(-coefficients[1:] / coefficients[0])
    roots = eigenvalues(companion)
    return jnp.where(jnp.abs(roots.imag) <= REAL * (1 + jnp.abs(roots)), roots.real, jnp.nan)


def upper_edge_of(matrix: ProbedMatrix) -> Callable[[Point], Any]:
    """Return a function for the upper edge of the bulk; NaN if it does not converge."""
    program = upper_edge_program(matrix.bulk)

    def edge(p: Point) -> Array:
        z, residual = program(p)
        return jnp.where(residual < 1e-9, z, jnp.nan)

    return edge
