"""Quantities of a solver as pure functions of some parameters, in double precision whatever the caller's is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from derive.errors import NumericalError
from numerics.lifting import lifted
from numerics.modules import Solver
from numerics.outliers.largest import largest_outlier_program, upper_edge_of
from numerics.runtime.interface import Array, Order
from numerics.runtime.point import Point, replaced
from numerics.training.trained import Trained


def pure_function(
    solver: Solver,
    values: Mapping[str, Any],
    quantity: str,
    of: tuple[str, ...],
    label: str | None,
    inside: Callable[[Array], Any],
) -> Callable[..., Array]:
    """A function of the parameters `of`, in this order, the others as in `values`.

    quantity: "outlier", "edge", or an observable. label: of the probed matrix. inside: whether the model is defined at
    these parameters; elsewhere the value and all slopes are NaN.
    """
    base = solver.point(dict(values))
    forward: Callable[[Point], Any] = solver.rows.forward_pass
    if solver.quadrature:
        nodes = int(Trained.exact(solver, dict(values)).method["nodes"])
        forward = partial(solver.rows.forward_pass, nodes=nodes)

    def order(p: Point) -> Order:
        found: Any = forward(p)[0]
        return dict(found)

    def observable(p: Point) -> Array:
        return forward(p)[1][quantity]

    shift, measured = "", None
    if quantity in ("outlier", "edge"):
        matrix = solver.matrix(label or "")
        if matrix.bulk.settles:
            raise NumericalError(
                f"the bulk of {solver.name} is an average over a density, which is taken at more or fewer values from "
                f"point to point; its {quantity} is found by solve, not as a function"
            )
        known = all(ring.relation is not None or ring.inverse is not None for ring in matrix.probe.rings)
        if quantity == "outlier" and not (matrix.probe.reduced and matrix.probe.unknowns and known):
            raise NumericalError(
                f"A(z) of {solver.name} does not reduce to an eigenproblem with a polynomial relation to z; its "
                "outliers are found by solve, not as a function"
                if matrix.probe.unknowns
                else f"{solver.name} has no spikes, so that it has no outliers"
            )
        times = matrix.probe.stopping
        before: Callable[[Point], Order] = order if times is None else lambda p: order(times.trained(p))
        bare = largest_outlier_program(matrix, before) if quantity == "outlier" else upper_edge_of(matrix)
        shift, measured = matrix.plus, matrix.probe if matrix.probe.measured or times else None
    else:
        bare = observable

    def of_vector(x: Array) -> Array:
        p = replaced(base, **{name: x[k] for k, name in enumerate(of)})
        value = bare(p if measured is None else measured.completed(p, order(p)))
        whole = value + jnp.atleast_1d(forward(p)[1][shift])[-1] if shift else value
        return whole * jnp.where(inside(x), 1.0, jnp.nan)  # a factor, so that slopes have it too

    in_doubles = lifted(of_vector)

    def quantity_of(*parameters: Any) -> Array:
        return in_doubles(jnp.stack([jnp.asarray(value, float) for value in parameters]))

    quantity_of.__name__ = quantity_of.__qualname__ = quantity
    quantity_of.__doc__ = f"{quantity} of {solver.name} as a function of {', '.join(of)}, in the caller's precision."
    return quantity_of


def is_traced(value: Any) -> bool:
    """Whether JAX is about to transform or compile what is done with a value."""
    return isinstance(value, jax.core.Tracer)
