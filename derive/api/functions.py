"""Quantities as plain JAX functions of some parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from derive.errors import ParameterError
from derive.problems import Problem
from numerics.functions import pure_function
from numerics.modules import Solver

SPECTRAL = ("outlier", "edge")


def function(
    problem: Problem, load: Callable[[], Solver], quantity: str, of: tuple[str, ...], fixed: Mapping[str, Any]
) -> Callable[..., Any]:
    """A quantity as a function of the parameters `of`; see `Theory.function`. load: gives the solver of the problem."""
    model = problem.model
    known = {parameter.name: parameter for parameter in model.parameters}
    for name in of:
        if name not in known:
            raise ParameterError(f"of={name!r}: the parameters of {model.setting} are {', '.join(known)}")
        if known[name].domain.whole:
            raise ParameterError(f"of={name!r}: {name} is a whole number and fixes shapes; fix it with {name}=VALUE")
        if name in fixed:
            raise ParameterError(f"{name} is fixed and asked for at once; keep one of the two")
    if not of or len(set(of)) < len(of):
        example = next(iter(known), "x")
        raise ParameterError(f"of={of!r}: name the parameters that the function takes, each once: of=[{example!r}]")
    if quantity not in (*SPECTRAL, *dict(model.observe)):
        have = ", ".join([*SPECTRAL, *dict(model.observe)])
        raise ParameterError(f"there is no quantity {quantity!r}; there are {have}")
    solver = load()
    if quantity in SPECTRAL and not problem.layers:
        raise ParameterError(f"{model.setting} probes no matrix, so it has no {quantity}; add probe=spectrum(...)")
    if not solver.setting.exact and quantity != "edge":
        raise ParameterError(
            f"the laws of {model.setting} are sampled, so that {quantity} is no smooth function of parameters; "
            "take a sweep with one seed and differences of its points"
        )
    label = problem.layers[0] if problem.layers else None
    return pure_function(solver, problem.inputs, quantity, of, label)
