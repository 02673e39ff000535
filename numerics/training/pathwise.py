"""Pathwise derivatives of sampled theories: derivatives of each Monte Carlo replicate at fixed random numbers.

A replicate is a function of the parameters once its normals are fixed. Its derivative is that of the forward pass, of
the order parameters and of the quantity computed from them. Replicates are averaged and corrected for bias as in
`numerics.training.sampling`; standard errors of values and slopes are those of the jackknife over replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError
from numerics.runtime.interface import Array
from numerics.runtime.point import Point, replaced
from numerics.runtime.program import sizes_of
from numerics.runtime.samples import SampledPass
from numerics.support.precision import in_float64
from numerics.training.sampling import (
    LARGEST_CUTOFF,
    LEAST_CUTOFF,
    NEXT_ORDER,
    RESPONSE_CUTOFF,
    ROUNDING,
    Sampling,
    _chosen,
    _SampledRun,
    _share,
    plans_for,
)

STEP = 1e-5
"""Step of the difference that gives the derivative of the fraction of bias."""
ReadOff = Callable[[Point, Mapping[Any, Array], Mapping[str, Array]], Array]
"""A quantity at a point as a function of its order parameters and observables."""


@dataclass(frozen=True)
class PathwiseValue:
    """A quantity with its derivatives along a last axis: the value first, then one derivative for each parameter.

    Attributes:
        numbers: bias-corrected estimates.
        errors: their standard errors.
    """

    numbers: np.ndarray
    errors: np.ndarray


@dataclass(frozen=True)
class SampledQuantity:
    """A quantity of a sampled theory as a function of some parameters.

    Attributes:
        training: the forward pass.
        of: names of the parameters.
        how: options of the sampling, with the seed.
        read_off: the function that evaluates the quantity.
        spectral: whether it needs order parameters.
    """

    training: SampledPass
    of: tuple[str, ...]
    how: Sampling
    read_off: ReadOff
    spectral: bool

    def shape(self, p: Point, observable: str) -> tuple[int, ...]:
        """Return the shape of an observable."""
        (one,) = (one for one in self.training.training.observables if one.key == observable)
        return (self.training.training.times(p) if one.timed else 1, *sizes_of(p, one.axes))

    @in_float64
    def at(self, p: Point, slopes: bool) -> PathwiseValue:
        """Return the quantity at a point, with slopes if wanted.

        Raises:
            NumericalError: if the basis of the past is truncated, because the truncation jumps with the parameters.
        """
        run = _SampledRun(self.training, p, self.how, lambda share, what: None)
        plan, tolerance = _chosen(plans_for(self.training, p, self.how), self.how, run.pilot)
        if slopes and tolerance > ROUNDING:
            raise NumericalError(
                f"the basis of the past is truncated to {plan.rank} directions, and the truncation jumps with the "
                f"parameters; use more samples or fewer steps"
            )
        program = _program(self.training, self.of, plan.rank, self.spectral, slopes)
        x, cut = jnp.asarray([getattr(p, name) for name in self.of], float), np.full(2, tolerance)
        wholes, halved, pairs, directions = [], [], [], 1
        for number in range(plan.replicas):
            normals = run.drawn(plan, number)
            whole, *both = (
                jax.tree.map(np.asarray, program(p, x, one, cut)) for one in (normals, *run.halves(normals))
            )
            wholes.append(whole[0])
            halved.append(_mean([one[0] for one in both]))
            pairs.append([one[0] for one in both])
            directions = max(directions, *(int(one[1]) for one in (whole, *both)))
        share, doubt = _share(*(_moved(table, None) for table in (wholes, pairs)))
        resolved = min(LARGEST_CUTOFF, max(LEAST_CUTOFF, RESPONSE_CUTOFF * directions)) / (plan.replicas * plan.sites)
        finish = _finisher(self, slopes)

        def estimated(some: Sequence[int]) -> np.ndarray:
            """Return the bias-corrected estimate from some replicates."""
            whole, half = (finish(p, x, _mean([table[k] for k in some]), resolved) for table in (wholes, halved))
            return np.array((1 + share) * whole - share * half)

        count = len(wholes)
        numbers = estimated(range(count))
        left = np.array([estimated([k for k in range(count) if k != out]) for out in range(count)])
        spread = (count - 1) / count * np.sum((left - left.mean(axis=0)) ** 2, axis=0)
        whole, half = (np.asarray(finish(p, x, _mean(table), resolved)) for table in (wholes, halved))
        for k in range(len(self.of) if slopes else 0):  # the fraction that is bias moves, too
            ends = [_share(*(_moved(table, (k, step)) for table in (wholes, pairs)))[0] for step in (STEP, -STEP)]
            numbers[..., 1 + k] += (ends[0] - ends[1]) / (2 * STEP) * (whole - half)[..., 0]
        unsure = math.hypot(doubt, NEXT_ORDER * directions / plan.sites) * (whole - half)
        return PathwiseValue(numbers, np.sqrt(spread + unsure**2))


def _moved(passes: Any, how: tuple[int, float] | None) -> Any:
    """Return the observables of passes, or of pairs of passes, shifted by a step along a parameter."""
    if isinstance(passes, list):
        return [_moved(one, how) for one in passes]
    table = passes["observables"]
    return {name: x[..., 0] + (0.0 if how is None else how[1] * x[..., 1 + how[0]]) for name, x in table.items()}


def _mean(tables: Sequence[Any]) -> Any:
    """Return the mean of trees of arrays."""
    return jax.tree.map(lambda *leaves: reduce(np.add, leaves) / len(leaves), *tables)


@lru_cache(maxsize=16)
def _program(training: SampledPass, of: tuple[str, ...], rank: int | None, moments: bool, slopes: bool) -> Any:
    """Return a compiled pass: the quantities to average, with derivatives along a last axis, and the rank of the
    basis."""

    def averaged(x: Array, p: Point, normals: Any, cut: Array) -> Any:
        q = replaced(p, **{name: x[k] for k, name in enumerate(of)})
        kept, observables, _, report = training.forward_pass(q, normals, rank=rank, tolerance=cut)
        found = {"observables": observables, "moments": dict(training.moments_of(q, kept)) if moments else {}}
        return found, (found, report.directions)

    def passed(p: Point, x: Array, normals: Any, cut: Array) -> Any:
        if not slopes:
            found, (_, directions) = averaged(x, p, normals, cut)
            return jax.tree.map(lambda value: value[..., None], found), directions
        sloped, (found, directions) = jax.jacfwd(averaged, has_aux=True)(x, p, normals, cut)
        return jax.tree.map(
            lambda value, slope: jnp.concatenate([value[..., None], slope], -1), found, sloped
        ), directions

    return jax.jit(passed)


@lru_cache(maxsize=16)
def _finisher(quantity: SampledQuantity, slopes: bool) -> Any:
    """Return a compiled function from averages to the quantity, with derivatives along a last axis."""
    training, of = quantity.training, quantity.of

    def finished(p: Point, x: Array, table: Any, resolved: Any) -> Array:
        def at(x: Array, table: Any) -> Array:
            q = replaced(p, **{name: x[k] for k, name in enumerate(of)})
            order = training.order_parameters(table["moments"], q, resolved) if quantity.spectral else {}
            return quantity.read_off(q, dict(order), table["observables"])

        here = jax.tree.map(lambda leaf: leaf[..., 0], table)
        found = [at(x, here)]
        for k in range(len(of) if slopes else 0):
            moved = jax.tree.map(lambda leaf, k=k: leaf[..., 1 + k], table)
            found.append(jax.jvp(at, (x, here), (jnp.zeros(len(of)).at[k].set(1.0), moved))[1])
        return jnp.stack(found, axis=-1)

    return jax.jit(finished)
