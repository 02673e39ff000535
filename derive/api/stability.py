"""The largest stable learning rate of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from derive.inputs.problems import Problem
from numerics.limit import stability
from numerics.limit.stability import StableRate
from numerics.modules import Solver
from numerics.options import StabilityOptions

KERNEL = "ntk"
"""The default layer for the curvature, if the model has it."""


def stable_rate(
    solver: Solver, problem: Problem, options: StabilityOptions, progress: Callable[[float, str], None] | None
) -> StableRate:
    """Return the largest stable rate; see `Theory.stable_rate`."""
    curvature = options.curvature
    if curvature is None and KERNEL in (matrix.label for matrix in solver.matrices):
        curvature = KERNEL
    layer, _, over = (curvature or "none").partition("/")
    rate = stability.stable_rate(
        solver,
        problem.inputs,
        rate=options.of,
        loss=options.loss,
        layer=None if layer == "none" else layer,
        over=over or None,
        tolerance=options.tolerance,
        progress=progress,
    )
    return _with_closed_form(rate, problem, options.of)


def _with_closed_form(rate: StableRate, problem: Problem, of: str) -> StableRate:
    """Return an exact rate with its formula and polynomial, if elimination yields them."""
    if rate.exact is None:
        return rate
    from derive.expansions.critical_rates import closed_form
    from derive.pipeline import derive_model
    from derive.printing import text

    exact = rate.exact
    values = {**problem.values, of: exact.rate}
    closed = closed_form(derive_model(problem.model).recursion, of, values, exact.kind, exact.angle)
    if closed is None:
        return rate
    formula = None if closed.formula is None else text(closed.formula)
    return replace(rate, exact=replace(exact, formula=formula, polynomial=text(closed.polynomial)))
