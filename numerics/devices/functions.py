"""The generated functions of a solver with arguments of the right shapes, and the parts that do not run on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numerics.bulk.folds import residual_of
from numerics.modules import ProbedMatrix, Solver
from numerics.runtime.interface import Array, Order, SampledSites
from numerics.runtime.point import Point, Table, replaced
from numerics.runtime.samples import SampledPass
from numerics.training.quadrature import integrals_of

SITES = 1024
"""Number of sites of a compiled sampled pass; kernels do not depend on it, memory is proportional to it."""


@dataclass(frozen=True)
class DeviceFunction:
    """A function to compile. arguments: arguments with the shapes of one point. shared: further arguments, common to
    all points.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    shared: tuple[Any, ...] = ()


@dataclass(frozen=True)
class HostPart:
    """A part of a computation that runs on the host, and the reason."""

    name: str
    why: str


def generated_functions(solver: Solver, values: Mapping[str, Any]) -> Iterator[DeviceFunction]:
    """Yield the generated functions of a solver that are JAX programs."""
    p = solver.point(dict(values))
    training = solver.training
    if isinstance(training, SampledPass):
        shapes = training.shapes(p, None)
        normals = {name: jnp.zeros((SITES, *shape)) for name, shape in shapes.items()}
        yield DeviceFunction("forward pass", training.forward_pass, (p,), (normals,))
        carried = jax.eval_shape(lambda: training.forward_pass(p, normals))[0]
        yield DeviceFunction("moments", training.moments_of, (p, carried))
        moments = jax.eval_shape(training.moments_of, p, carried)
        yield DeviceFunction("order parameters", training.order_parameters, (moments, p))
        order = jax.eval_shape(training.order_parameters, moments, p)
    else:
        exact: Callable[[Point], Any] = training.forward_pass
        if solver.quadrature:
            exact = partial(training.forward_pass, nodes=integrals_of(training).first)
        if training.training.step is not None:
            yield DeviceFunction("forward pass", exact, (p,))
        order = jax.eval_shape(lambda: exact(p))[0]
    numbers, seen = solver.numbers(dict(values)), []
    for matrix in solver.matrices:
        if matrix.probe not in seen:
            seen.append(matrix.probe)
            yield from _functions_of_matrix(matrix, numbers, order)


def _functions_of_matrix(matrix: ProbedMatrix, numbers: Point, order: Order) -> Iterator[DeviceFunction]:
    """Yield the functions of one probed matrix."""
    probe, suffix = matrix.probe, f" of {matrix.label}" if matrix.label else ""
    p = _completed(matrix, numbers, order)
    z, s = jnp.array(5.0), jnp.array(2.0)
    bulk_law = matrix.traces or matrix.bulk
    r = jnp.full(len(matrix.bulk.responses), 0.1)
    of_traces = jnp.full(len(bulk_law.responses), 0.1)
    yield DeviceFunction(f"bulk equations{suffix}", partial(residual_of, bulk_law), (p, z, of_traces))
    if not probe.unknowns:
        return
    if probe.measure is not None:
        begun = probe.begun(numbers)
        yield DeviceFunction(f"measured numbers{suffix}", probe.measure, (begun, order))
    yield DeviceFunction(f"A(z){suffix}", probe.at, (p, z, r, order))
    for k, cycle in enumerate(probe.cycles):
        number = f" {k}" if len(probe.cycles) > 1 else ""
        yield DeviceFunction(f"eigenproblem{number}{suffix}", _matrix_of(cycle.pencil), (p, order))
        yield DeviceFunction(f"scalar map{number}{suffix}", partial(probe.mapped, cycle), (p, z, r))
        back = cycle.inverse or cycle.relation
        if back is not None:
            yield DeviceFunction(f"inverse map{number}{suffix}", _stacked(back), (p, s))
    for side in probe.sides:
        yield DeviceFunction(f"{side.name} spikes{suffix}", partial(probe.driven, side), (p, z, r, order))
    for one in probe.directions:
        yield DeviceFunction(f"direction {one.name}, {one.side}{suffix}", partial(probe.driven, one), (p, z, r, order))


def _matrix_of(pencil: Callable[..., Any]) -> Callable[..., Array]:
    return lambda p, order: pencil(p, order).array(jnp)


def _stacked(function: Callable[..., Any]) -> Callable[..., Array]:
    return lambda p, s: jnp.stack([*map(jnp.asarray, jnp.atleast_1d(jnp.asarray(function(p, s))))])


def _completed(matrix: ProbedMatrix, numbers: Point, order: Order) -> Point:
    """Return the point with arrays of the right shapes for quantities computed by the training level."""
    given: dict[str, Any] = dict.fromkeys(matrix.probe.measured, 1.0)
    for spread in matrix.bulk.spreads:
        if isinstance(spread, SampledSites):
            if spread.key in order:
                given[spread.law] = Table(np.ones(order[spread.key].shape))
        else:
            given |= dict.fromkeys([name for row in (*spread.lower, *spread.inverse) for name in row], 1.0)
    return replaced(matrix.probe.begun(numbers), **given)


def host_parts(solver: Solver) -> tuple[HostPart, ...]:
    """Return the parts of `solve`, `simulate` and `limit` that always run on the host."""
    parts = []
    if isinstance(solver.training, SampledPass):
        parts.append(HostPart("random numbers of a sampled pass", "NumPy draws them, Sobol sequences among them"))
    if solver.matrices:
        parts.append(HostPart("edges, atoms and density of the bulk", "NumPy and python-flint, adaptive"))
    if any(matrix.probe.unknowns for matrix in solver.matrices):
        parts.append(HostPart("outliers and overlaps in solve and sweep", "LAPACK or Krylov iterations in NumPy"))
        parts.append(HostPart("certificates", "NumPy; counts of zeros are adaptive"))
    if solver.limit is not None or solver.recursion is not None:
        parts.append(HostPart("stationary limit and stable rates", "NumPy and SciPy"))
    parts.append(HostPart("simulations", "NumPy draws; backend='jax' runs array by array and is not one program"))
    return tuple(parts)
