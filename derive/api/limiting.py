"""Where the training of a problem comes to rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from derive.api.solvers import Source
from derive.errors import DeriveError, NumericalError
from derive.problems import Problem
from derive.results.limit import Limit
from numerics.limit import at_rest

if TYPE_CHECKING:
    from derive.language.model import Model

Progress = Callable[[float, str], None]


def limit(source: Source, problem: Problem, progress: Progress | None) -> Limit:
    """See `Theory.limit`."""
    solver = source.solver(problem.model, progress)
    if solver.limit is None:
        _refuse(problem.model)
    assert solver.limit is not None
    made = source.made("limit", problem, {})
    steps = solver.setting.steps  # how many are run does not matter
    made = replace(made, parameters={name: value for name, value in made.parameters.items() if name != steps})
    if progress is not None:
        progress(0.5, "limit of many steps")
    try:
        found = at_rest(solver.limit, solver.point(problem.inputs))
    except NumericalError as error:
        return Limit(made, None, {}, (str(error),))
    about = {"radius": found.radius, "error": found.error}
    if found.nodes is not None:
        about["nodes"] = found.nodes
    return Limit(made, found.observables, about)


def _refuse(model: Model) -> None:
    """Say why a model has no limit of many steps."""
    from derive.pipeline import derive_model

    _ = derive_model(model).limit
    raise DeriveError(f"the solver of {model.setting} was written by another version; run derive build")
