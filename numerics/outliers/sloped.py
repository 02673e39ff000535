"""A(z) together with its derivative."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numerics.bulk.folds import residual_of
from numerics.compiling import compiled
from numerics.outliers.finding import SpikedProblem
from numerics.runtime.interface import Array, BulkLaw, Order, Probe
from numerics.runtime.point import Point


def with_slope(problem: SpikedProblem, z: float, responses: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A(z) and its derivative; `responses` of the bulk at z where they are known."""
    r = problem.branch.responses(np.array([z]))[:, 0].real if responses is None else responses
    matrix, slope = _sloped(problem.probe, problem.branch.law)(problem.p, z, jnp.asarray(r), dict(problem.order))
    return np.asarray(matrix), np.asarray(slope)


@lru_cache(maxsize=64)
def _sloped(probe: Probe, bulk: BulkLaw) -> Callable[..., Any]:
    """A(z) with its derivative, compiled; the bulk responses move with z as their equations say."""

    def sloped(p: Point, z: Array, r: Array, order: Order) -> Any:
        def residual(z: Array, r: Array) -> Array:
            return jnp.real(residual_of(bulk, p, z, r))

        rate = jnp.linalg.solve(jax.jacfwd(residual, argnums=1)(z, r), -jax.jacfwd(residual, argnums=0)(z, r))
        return jax.jvp(lambda z, r: probe.a_matrix(p, z, r, order), (z, r), (jnp.ones_like(z), rate))

    return compiled(sloped, quickly=True)
