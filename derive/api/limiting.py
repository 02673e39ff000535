"""The stationary limit of the training of a problem, and its largest stable learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from derive.api.options import several
from derive.api.solvers import DeclarationSource
from derive.errors import DeriveError, NumericalError
from derive.inputs.problems import Problem, array_names, grid_of
from derive.results.limit import Limit, LimitDiagnostics, Limits
from derive.support.progress import Progress
from numerics.limit import stability
from numerics.limit.stability import StableRate
from numerics.limit.stationary import at_rest
from numerics.modules import Solver
from numerics.options import Options, StabilityOptions

if TYPE_CHECKING:
    from derive.language.family import Family
    from derive.language.model import Model


def limit(source: DeclarationSource, problem: Problem, progress: Progress | None) -> Limit:
    """See `Theory.limit`."""
    solver = source.solver(problem.model, progress)
    if solver.limit is None:
        _refuse(problem.model)
    assert solver.limit is not None
    made = source.made("limit", problem, Options())
    steps = solver.setting.steps  # how many are run does not matter
    made = replace(made, parameters={name: value for name, value in made.parameters.items() if name != steps})
    if progress is not None:
        progress(0.5, "limit of many steps")
    try:
        found = at_rest(solver.limit, solver.point(problem.inputs))
    except NumericalError as error:
        return Limit(made, None, None, (str(error),))
    how = LimitDiagnostics(float(found.radius), float(found.error), found.nodes)
    return Limit(made, found.observables, how)


def limits(
    source: DeclarationSource, declared: Model | Family, given: Mapping[str, Any], progress: Progress | None
) -> Limits:
    """See `Theory.limits`."""
    alone = array_names(declared, given)
    values = {name: (value,) if name in alone else several(value) for name, value in given.items()}
    grid = grid_of(declared, values)
    return Limits(dict(grid.axes), tuple(limit(source, problem, progress) for problem in grid.problems))


def _refuse(model: Model) -> None:
    """Raise an error that explains why a model has no limit of many steps."""
    from derive.pipeline import derive_model

    _ = derive_model(model).limit
    raise DeriveError(f"the solver of {model.setting} was written by another version; run derive build")


KERNEL = "ntk"
"""The default layer for the curvature, if the model has it."""


def stable_rate(solver: Solver, problem: Problem, options: StabilityOptions, progress: Progress | None) -> StableRate:
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
