"""Quantities of a solver as pure JAX functions of some parameters, computed in double precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from derive.errors import NumericalError
from numerics.modules import ProbedMatrix, Solver
from numerics.outliers.largest import largest_outlier_program, upper_edge_of
from numerics.runtime.interface import Array
from numerics.runtime.point import Point, replaced
from numerics.support.lifting import lifted
from numerics.training.trained import Trained


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
    forward = _forward_pass(solver, values) if solver.setting.exact else None

    shift, measured = "", None
    if quantity in ("outlier", "edge"):
        matrix = solver.matrix(label or "")
        _check_matrix(matrix, quantity, solver.name)
        stopping, outlier, edge = matrix.probe.stopping, largest_outlier_program(matrix), upper_edge_of(matrix)
        shift, measured = matrix.plus, matrix.probe if matrix.probe.measured or stopping else None
        if forward is None and (shift or measured):
            raise NumericalError(
                f"the bulk of {solver.name} depends on sampled order parameters; its {quantity} is found by solve, not "
                "as a function"
            )

    def value_at(p: Point) -> Array:
        if quantity == "edge" and not (shift or measured):
            return edge(p)  # it depends on the bulk alone
        assert forward is not None, "an edge that depends on sampled order parameters is refused"
        order, observables, _ = forward(p)  # called once, because each call compiles one more loop
        if quantity not in ("outlier", "edge"):
            return observables[quantity]
        completed = p if measured is None else measured.completed(p, dict(order))
        if quantity == "edge":
            value = edge(completed)
        else:
            before = order if stopping is None else forward(stopping.trained(completed))[0]
            value = outlier(completed, dict(before))
        return value + jnp.atleast_1d(observables[shift])[-1] if shift else value

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
    """Return the training level as a function of a point, with as many quadrature nodes as it needs at `values`."""
    if not solver.quadrature:
        return solver.rows.forward_pass
    report = Trained.exact(solver, dict(values)).method.quadrature
    assert report is not None, "a pass by quadrature has nodes"
    return partial(solver.rows.forward_pass, nodes=report.nodes)


def _check_matrix(matrix: ProbedMatrix, quantity: str, name: str) -> None:
    """Raise for an edge or an outlier whose algorithm branches on parameter values."""
    if matrix.bulk.settles:
        raise NumericalError(
            f"the bulk of {name} is an average over a density, which is taken at more or fewer values from "
            f"point to point; its {quantity} is found by solve, not as a function"
        )
    invertible = all(cycle.relation is not None or cycle.inverse is not None for cycle in matrix.probe.cycles)
    if quantity == "outlier" and not (matrix.probe.reduced and matrix.probe.unknowns and invertible):
        raise NumericalError(
            f"A(z) of {name} does not reduce to an eigenproblem with a polynomial relation to z; its "
            "outliers are found by solve, not as a function"
            if matrix.probe.unknowns
            else f"{name} has no spikes, so that it has no outliers"
        )


def is_traced(value: Any) -> bool:
    """Whether a value is a JAX tracer."""
    return isinstance(value, jax.core.Tracer)
