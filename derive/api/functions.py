"""Quantities as plain JAX functions of some parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from derive.errors import ParameterError
from derive.inputs.problems import Problem, number_of
from derive.language.symbols import Domain, Parameter
from numerics.functions import is_traced, pure_function
from numerics.modules import Solver

SPECTRAL = ("outlier", "edge")


def function(
    problem: Problem, load: Callable[[], Solver], quantity: str, of: tuple[str, ...], fixed: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return a quantity as a function of the parameters `of`; see `Theory.function`. load: returns the solver."""
    model = problem.model
    declared = {parameter.name: parameter for parameter in model.parameters}
    for name in of:
        if name not in declared:
            raise ParameterError(f"of={name!r}: the parameters of {model.setting} are {', '.join(declared)}")
        if declared[name].domain.whole:
            raise ParameterError(f"of={name!r}: {name} is a whole number and fixes shapes; fix it with {name}=VALUE")
        if name in fixed:
            raise ParameterError(f"{name} is both fixed and an argument; keep one of the two")
    if not of or len(set(of)) < len(of):
        example = next(iter(declared), "x")
        raise ParameterError(f"of={of!r}: name the parameters that the function takes, each once: of=[{example!r}]")
    if quantity not in (*SPECTRAL, *dict(model.observe)):
        have = ", ".join([*SPECTRAL, *dict(model.observe)])
        raise ParameterError(f"there is no quantity {quantity!r}; there are {have}")
    solver = load()
    if quantity in SPECTRAL and not problem.layers:
        raise ParameterError(f"{model.setting} probes no matrix, so it has no {quantity}; add probe=spectrum(...)")
    if not solver.setting.exact and quantity != "edge":
        raise ParameterError(
            f"the laws of {model.setting} are sampled, so that {quantity} is not a smooth function of parameters; "
            "take a sweep with one seed and differences of its points"
        )
    label = problem.layers[0] if problem.layers else None
    domains = [declared[name].domain for name in of]
    pure = pure_function(solver, problem.inputs, quantity, of, label, lambda x: _inside(x, domains))

    def checked(*parameters: Any) -> Any:
        """Evaluate at numbers checked as in `solve`; under tracing the result is NaN outside the domain."""
        if len(parameters) != len(of):
            raise ParameterError(f"{quantity} takes {', '.join(of)}: {len(parameters)} values were given")
        return pure(*(_checked(declared[name], value) for name, value in zip(of, parameters, strict=True)))

    checked.__name__ = checked.__qualname__ = quantity
    checked.__doc__ = pure.__doc__
    return checked


def _checked(parameter: Parameter, value: Any) -> Any:
    """Return a number checked against the domain of the parameter; tracers pass unchecked."""
    if is_traced(value):
        if getattr(value, "shape", ()) != ():
            raise ParameterError(f"{parameter.name} takes one number; jax.vmap maps the function over several")
        return value
    if getattr(value, "shape", ()) != () or isinstance(value, (list, tuple)):
        raise ParameterError(f"{parameter.name} takes one number; jax.vmap maps the function over several")
    return parameter.checked(number_of(parameter.name, value, str(parameter.domain)))


def _inside(x: Any, domains: Sequence[Domain]) -> Any:
    """Return whether each entry of a vector is in its domain."""
    inside: Any = True
    for k, domain in enumerate(domains):
        above = x[k] >= domain.low if domain.low_included else x[k] > domain.low
        below = x[k] <= domain.high if domain.high_included else x[k] < domain.high
        inside = inside & above & below
    return inside
