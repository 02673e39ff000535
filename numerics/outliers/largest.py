"""The largest outlier as a pure function of the parameters, for compilation and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from numerics.bulk.folds import responses_program, upper_edge_program
from numerics.modules import ProbedMatrix
from numerics.runtime.interface import Array, Order
from numerics.runtime.point import Point

REAL, SAME, PHYSICAL, MARGIN = 1e-9, 1e-7, 1e-6, 1e-9
"""Relative: imaginary part of what counts as real, distance of equal outliers, defect of the scalar map at a point of
the physical branch, distance from the edge that is no distance."""


def largest_outlier_program(matrix: ProbedMatrix, forward: Callable[[Point], Order]) -> Callable[[Point], Array]:
    """The largest outlier above the bulk; NaN where there is none.

    Its first derivatives follow from the null vectors of A(z), also where equal outliers share them; second
    derivatives, which would need those of the vectors, are NaN.
    """
    probe, bulk = matrix.probe, matrix.bulk
    upper_edge, responses = upper_edge_program(bulk), responses_program(bulk)

    def candidates(p: Point, order: Order) -> tuple[Array, Array]:
        """Points z above the bulk, NaN where there is none, and how far the scalar map there is from its eigenvalue."""
        edge, _ = upper_edge(p)
        places, defects = [], []
        for ring in probe.rings:
            values = jnp.linalg.eigvals(ring.pencil(p, order))
            s = jnp.where(jnp.abs(values.imag) <= REAL * jnp.abs(values), values.real, jnp.nan)
            if ring.inverse is not None:
                z, s = jnp.broadcast_to(ring.inverse(p, s), s.shape), s
            else:
                assert ring.relation is not None
                roots = jax.vmap(lambda one, ring=ring: _roots(jnp.stack([*map(jnp.asarray, ring.relation(p, one))])))(
                    jnp.where(jnp.isfinite(s), s, 1.0)
                )
                z = jnp.where(jnp.isfinite(s)[:, None], roots, jnp.nan).ravel()
                s = jnp.repeat(s, roots.shape[1])
            z = jnp.where(z > edge + MARGIN * jnp.abs(edge), z, jnp.nan)
            inside = jnp.where(jnp.isfinite(z), z, 2 * jnp.abs(edge) + 1.0)
            r = jax.vmap(lambda one: responses(p, one))(inside)
            back = jax.vmap(lambda one, at, ring=ring: jnp.real(probe.mapped(ring, p, one, at)))(inside, r)
            places.append(z)
            defects.append(jnp.abs(back - s) / jnp.abs(s))
        return jnp.concatenate(places), jnp.concatenate(defects)

    def largest(p: Point) -> Array:
        fixed = jax.lax.stop_gradient(p)
        z, defects = candidates(fixed, forward(fixed))
        z = jnp.where(defects <= PHYSICAL, z, jnp.nan)
        top = jax.lax.stop_gradient(jnp.nanmax(z))
        count = jnp.sum(jnp.abs(z - top) <= SAME * jnp.abs(top))

        def a_matrix(p: Point, z: Array) -> Array:
            return jnp.real(probe.at(p, z, responses(p, z), forward(p)))

        here = jnp.where(jnp.isfinite(top), top, 1.0)
        frozen = a_matrix(fixed, here)
        u, _, v = jnp.linalg.svd(frozen)
        slope = jax.jacfwd(lambda x: a_matrix(fixed, x))(here)
        null = jnp.arange(len(frozen)) >= len(frozen) - count
        both = null[:, None] & null[None, :]
        block = jnp.where(both, u.T @ slope @ v.T, jnp.eye(len(frozen)))
        weights = jax.lax.stop_gradient(jnp.where(both, jnp.linalg.inv(block), 0.0))
        u, v, frozen = jax.lax.stop_gradient((u, v, frozen))
        moved = -jnp.trace(weights @ (u.T @ (a_matrix(p, here) - frozen) @ v.T)) / count
        return top + first_order(moved)

    return largest


@jax.custom_jvp
def first_order(x: Array) -> Array:
    """x, with its first derivative; higher ones are NaN."""
    return x


@first_order.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return primals[0], tangents[0] * _constant_slope(primals[0])


@jax.custom_jvp
def _constant_slope(x: Array) -> Array:
    """One, with the derivative NaN."""
    return jnp.ones_like(x)


@_constant_slope.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return jnp.ones_like(primals[0]), jnp.nan * tangents[0]


def _roots(coefficients: Array) -> Array:
    """Real roots of a polynomial, NaN for the others."""
    found = jnp.roots(coefficients, strip_zeros=False)
    return jnp.where(jnp.abs(found.imag) <= REAL * (1 + jnp.abs(found)), found.real, jnp.nan)


def upper_edge_of(matrix: ProbedMatrix) -> Callable[[Point], Any]:
    """The upper edge of the bulk; NaN where it was not found."""
    program = upper_edge_program(matrix.bulk)

    def edge(p: Point) -> Array:
        found, residual = program(p)
        return jnp.where(residual < 1e-9, found, jnp.nan)

    return edge
