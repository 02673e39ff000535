"""Quantities of a solver as pure JAX functions of some parameters, computed in double precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError
from numerics.modules import ProbedMatrix, Solver
from numerics.outliers.largest import largest_outlier_program, upper_edge_of
from numerics.runtime.interface import Array
from numerics.runtime.point import Point, replaced
from numerics.support.lifting import lifted
from numerics.training.pathwise import PathwiseValue, SampledQuantity
from numerics.training.sampling import Sampling
from numerics.training.trained import Trained


def hosted(compute: Callable[[np.ndarray, bool], np.ndarray], shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return a function of a vector x that JAX can compile, map and differentiate once; second derivatives are NaN."""

    def called(x: Array, slopes: bool) -> Array:
        behind = (1 + len(x),) if slopes else ()
        result: Any = jax.ShapeDtypeStruct((*shape, *behind), x.dtype)  # type: ignore[no-untyped-call]
        run = lambda at: np.asarray(compute(np.asarray(at, float), slopes), result.dtype)  # noqa: E731
        return jax.pure_callback(run, result, x, vmap_method="sequential")

    @jax.custom_jvp
    def value(x: Array) -> Array:
        return called(x, False)

    @jax.custom_jvp
    def with_slopes(x: Array) -> Array:
        return called(x, True)

    @value.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        both = with_slopes(primals[0])
        return both[..., 0], both[..., 1:] @ tangents[0]

    @with_slopes.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        found = with_slopes(primals[0])
        return found, jnp.nan * found * jnp.sum(tangents[0])

    return value


def pure_function(
    solver: Solver,
    values: Mapping[str, Any],
    quantity: str,
    of: tuple[str, ...],
    label: str | None,
    inside: Callable[[Array], Any],
) -> Callable[..., Array]:
    """Return a function of the parameters `of`, in this order, with the others as in `values`.

    quantity: "outlier", "edge", or an observable. label: the probed matrix. inside: whether the model is defined at
    these parameters; elsewhere the value and all derivatives are NaN.
    """
    base = solver.point(dict(values))
    needed = solver.setting.exact or needs_training(solver, quantity, label)
    forward = _forward_pass(solver, values) if needed else _no_training
    read_off, spectral = _quantity(solver, quantity, label, forward)

    def value_at(p: Point) -> Array:
        if spectral is None:
            return read_off(p, {}, {})
        order, observables, _ = forward(p)  # called once, because each call compiles one more loop
        return read_off(p, order, observables)

    def of_vector(x: Array) -> Array:
        value = value_at(replaced(base, **{name: x[k] for k, name in enumerate(of)}))
        return value * jnp.where(inside(x), 1.0, jnp.nan)  # a factor, so that derivatives are NaN too

    in_doubles = lifted(of_vector, quickly=solver.is_short(dict(values)))

    def quantity_of(*parameters: Any) -> Array:
        return in_doubles(jnp.stack([jnp.asarray(value, float) for value in parameters]))

    quantity_of.__name__ = quantity_of.__qualname__ = quantity
    quantity_of.__doc__ = f"{quantity} of {solver.name} as a function of {', '.join(of)}, in the caller's precision."
    return quantity_of


def _forward_pass(solver: Solver, values: Mapping[str, Any]) -> Callable[[Point], Any]:
    """Return the training level as a function of a point, with the number of quadrature nodes that it needs at
    `values`."""
    if not solver.quadrature:
        return solver.rows.forward_pass
    report = Trained.exact(solver, dict(values)).method.quadrature
    assert report is not None, "quadrature needs nodes"
    return partial(solver.rows.forward_pass, nodes=report.nodes)


def _no_training(p: Point) -> Any:
    raise AssertionError("a quantity of the bulk alone needs no training")


def sampled_function(
    solver: Solver,
    values: Mapping[str, Any],
    quantity: str,
    of: tuple[str, ...],
    label: str | None,
    inside: Callable[[Array], Any],
    how: Sampling,
) -> tuple[Callable[..., Array], Callable[..., PathwiseValue]]:
    """Return a quantity of a sampled theory as a function of the parameters `of`, and the function that also returns
    its derivatives and standard errors.

    Random numbers are the same at all parameter values, and derivatives are pathwise.
    """

    def none(p: Point) -> Any:
        raise NumericalError(
            f"the outliers of {solver.name} need training at two lengths, which a function of parameters does not "
            f"support; "
            "take them from solve"
        )

    base, training = solver.point(dict(values)), solver.sampled_pass
    read_off, spectral = _quantity(solver, quantity, label, none)
    if spectral and training.training.sites:
        raise NumericalError(
            f"values on the diagonals of {solver.name} are sorted into point masses, and this sorting jumps as "
            f"parameters change; use finite differences of the {quantity} between solutions with the same seed"
        )
    sampled = SampledQuantity(training, of, how, read_off, bool(spectral))
    known: dict[tuple[bytes, bool], PathwiseValue] = {}

    def at(x: np.ndarray, slopes: bool) -> PathwiseValue:
        name = (x.tobytes(), slopes)
        if name not in known:
            point = replaced(base, **{one: float(x[k]) for k, one in enumerate(of)})
            known.clear()  # the last point only: a value is often followed by its slopes
            known[name] = sampled.at(point, slopes)
        return known[name]

    def computed(x: np.ndarray, slopes: bool) -> np.ndarray:
        if not inside(x):
            return np.full((*shape, 1 + len(of)) if slopes else shape, np.nan)
        found = at(x, slopes).numbers
        return found if slopes else found[..., 0]

    shape = () if quantity in ("outlier", "edge") else sampled.shape(base, quantity)
    run = hosted(computed, shape)
    return (
        lambda *parameters: run(jnp.stack([jnp.asarray(value, float) for value in parameters])),
        lambda *parameters: at(np.array(parameters, float), True),
    )


def _quantity(solver: Solver, quantity: str, label: str | None, forward: Callable[[Point], Any]) -> tuple[Any, Any]:
    """Return the function that computes a quantity from order parameters and observables, and whether it needs order
    parameters; None if it needs neither.
    """
    if quantity not in ("outlier", "edge"):
        return (lambda p, order, observables: observables[quantity]), False
    matrix = solver.matrix(label or "")
    _check_matrix(matrix, quantity, solver.name)
    stopping, outlier, edge = matrix.probe.stopping, largest_outlier_program(matrix), upper_edge_of(matrix)
    shift, measured = matrix.plus, matrix.probe if matrix.probe.measured or stopping else None
    if not needs_training(solver, quantity, label):
        return (lambda p, order, observables: edge(p)), None  # it depends on the bulk alone

    def read_off(p: Point, order: Any, observables: Any) -> Array:
        completed = p if measured is None else measured.completed(p, order)
        if quantity == "edge":
            value = edge(completed)
        else:
            before = order if stopping is None else forward(stopping.trained(completed))[0]
            value = outlier(completed, before)
        return value + jnp.atleast_1d(observables[shift])[-1] if shift else value

    return read_off, True


def needs_training(solver: Solver, quantity: str, label: str | None) -> bool:
    """Return whether a quantity depends on the training level; an edge of a bulk independent of training does not."""
    if quantity != "edge":
        return True
    matrix = solver.matrix(label or "")
    return bool(matrix.plus or matrix.probe.measured or matrix.probe.stopping)


def _check_matrix(matrix: ProbedMatrix, quantity: str, name: str) -> None:
    """Raise for an edge or an outlier if its algorithm branches on parameter values."""
    if matrix.bulk.settles:
        raise NumericalError(
            f"the bulk of {name} is an average over a density, whose number of nodes varies from point to point; its "
            f"{quantity} is available from solve, not as a function"
        )
    invertible = all(cycle.relation is not None or cycle.inverse is not None for cycle in matrix.probe.cycles)
    if quantity == "outlier" and not (matrix.probe.reduced and matrix.probe.unknowns and invertible):
        raise NumericalError(
            f"A(z) of {name} does not reduce to an eigenproblem with a polynomial relation to z; its outliers are "
            "available from solve, not as a function"
            if matrix.probe.unknowns
            else f"{name} has no spikes and therefore no outliers"
        )


def is_traced(value: Any) -> bool:
    """Whether a value is a JAX tracer."""
    return isinstance(value, jax.core.Tracer)
