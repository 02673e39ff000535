"""The largest outlier as a pure function of the parameters, for jit and grad."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from numerics.bulk.branch import FARTHEST
from numerics.bulk.folds import continuation_program, implicit, residual_of, solve_scaled, upper_edge_program
from numerics.modules import ProbedMatrix
from numerics.outliers.components import at_one_label
from numerics.runtime.interface import Array, Order
from numerics.runtime.point import Point
from numerics.support.derivatives import differentiable_once
from numerics.support.eigenvalues import eigenvalues

REAL, SAME, PHYSICAL, MARGIN, SURE = 1e-9, 1e-7, 1e-6, 1e-9, 1e-9
"""Relative tolerances: imaginary part of a real eigenvalue, distance of equal outliers, defect of the scalar map on the
physical branch, distance from the edge, error of the edge."""


def largest_outlier_program(matrix: ProbedMatrix) -> Callable[[Point, Order], Array]:
    """Return a function for the largest outlier above the bulk at a point and its order parameters; NaN if there is
    none.

    First derivatives come from the null vectors of A(z), degenerate outliers included. Second derivatives would need
    derivatives of the vectors and are NaN.
    """
    probe, bulk = matrix.probe, matrix.bulk
    continued = continuation_program(bulk)
    responses = implicit(lambda place, r: residual_of(bulk, place[0], place[1], r))

    def largest(p: Point, trained: Order) -> tuple[Array, tuple[Array, ...]]:
        """Return the outlier, and the data for its derivatives: the outlier, the responses there, and the number of
        outliers at this point.
        """
        p, trained = at_one_label(probe, p, trained)
        zs, maps = zip(*(_places(p, trained, cycle) for cycle in probe.cycles), strict=True)
        z = jnp.concatenate(zs)
        # the edge and all points in one program; a missing point ends at once
        lowest = jnp.concatenate([jnp.array([-FARTHEST]), jnp.where(jnp.isfinite(z), z, FARTHEST)])
        ends = jax.vmap(partial(continued, p))(lowest)
        edge, r = jnp.where(ends.error[0] < SURE, ends.z[0], jnp.nan), ends.r[1:]
        defects, start = [], 0
        for cycle, s in zip(probe.cycles, maps, strict=True):
            own = slice(start, start + len(s))
            back = jax.vmap(lambda one, at, cycle=cycle: jnp.real(probe.mapped(cycle, p, one, at)))(z[own], r[own])
            defects.append(jnp.abs(back - s) / jnp.abs(s))
            start += len(s)
        outside = (z > edge + MARGIN * jnp.abs(edge)) & (jnp.concatenate(defects) <= PHYSICAL)
        which = jnp.argmax(jnp.where(outside, z, -jnp.inf))
        top = jnp.where(outside[which], z[which], jnp.nan)
        return top, (top, r[which], jnp.sum(outside & (jnp.abs(z - top) <= SAME * jnp.abs(top))))

    def moved(known: tuple[Array, ...], p: Point, trained: Order) -> Array:
        """Return the mean of the outliers at one point to first order, up to a constant."""
        top, r, count = known
        p, trained = at_one_label(probe, p, trained)

        def a_matrix(p: Point, z: Array, order: Order) -> Array:
            return jnp.real(probe.at(p, z, responses((p, z), r), order))

        fixed, order = jax.lax.stop_gradient((p, trained))
        frozen, slope = jax.jvp(lambda z: a_matrix(fixed, z, order), (top,), (jnp.ones_like(top),))
        one = jnp.eye(len(frozen))
        u, _, v = jnp.linalg.svd(jnp.where(jnp.isfinite(top), frozen, one))
        null = jnp.arange(len(frozen)) >= len(frozen) - count
        both = null[:, None] & null[None, :]
        weights = jnp.where(both, solve_scaled(jnp.where(both, u.T @ slope @ v.T, one), one), 0.0)
        return -jnp.sum((u @ weights.T @ v) * a_matrix(p, top, trained)) / count

    return differentiable_once(largest, moved)


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
        z, error = program(p)
        return jnp.where(error < SURE, z, jnp.nan)

    return edge
