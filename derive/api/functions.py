"""Quantities as plain JAX functions of some parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from derive.errors import ParameterError
from derive.inputs.problems import Problem, number_of
from derive.language.contents import expressions
from derive.language.model import Model
from derive.language.symbols import Domain, Parameter
from derive.language.traits import Trait
from derive.language.vectors import FieldAt
from derive.program.forward_sampled import JUMPS
from numerics.functions import is_traced, needs_training, pure_function, sampled_function
from numerics.modules import Solver
from numerics.options import Options
from numerics.training.sampling import DEFAULT_SAMPLES, Sampling

SPECTRAL = ("outlier", "edge")


def function(
    problem: Problem,
    load: Callable[[], Solver],
    quantity: str,
    of: tuple[str, ...],
    fixed: Mapping[str, Any],
    options: Options,
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
    label = problem.layers[0] if problem.layers else None
    domains = [declared[name].domain for name in of]

    def inside(x: Any) -> Any:
        return _inside(x, domains)

    if solver.setting.exact or not needs_training(solver, quantity, label):
        pure = pure_function(solver, problem.inputs, quantity, of, label, inside)
        sloped = None
    else:
        check_pathwise(model, quantity, [declared[name] for name in of])
        how = Sampling(options.samples or DEFAULT_SAMPLES, options.seed, rank=options.rank)
        pure, sloped = sampled_function(solver, problem.inputs, quantity, of, label, inside, how)
        pure.__doc__ = (
            f"{quantity} of {solver.name} as a function of {', '.join(of)}, sampled with seed {options.seed}."
        )

    def numbers(parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(parameters) != len(of):
            raise ParameterError(f"{quantity} takes {', '.join(of)}: {len(parameters)} values were given")
        return tuple(_checked(declared[name], value) for name, value in zip(of, parameters, strict=True))

    def checked(*parameters: Any) -> Any:
        """Evaluate after the checks that `solve` makes; under JAX tracing the result is NaN outside the domain."""
        return pure(*numbers(parameters))

    def gradient(*parameters: Any) -> Gradient:
        """Return value and derivatives at one point, with standard errors where the theory is sampled."""
        if sloped is not None:
            found = sloped(*numbers(parameters))
            return Gradient.of(quantity, of, found.numbers, found.errors)
        import jax

        slopes = jax.jacfwd(lambda x: pure(*x))(np.array(numbers(parameters), float))
        return Gradient.of(
            quantity, of, np.concatenate([np.asarray(checked(*parameters))[..., None], slopes], -1), None
        )

    checked.gradient = gradient  # type: ignore[attr-defined]
    checked.__name__ = checked.__qualname__ = quantity
    checked.__doc__ = pure.__doc__
    return checked


@dataclass(frozen=True)
class Gradient:
    """Value and first derivatives of a quantity at one point.

    value, error: the quantity and its standard error. slopes, slope_errors: its derivative with respect to each
    parameter, and the standard error. Errors are None if the theory is exact.
    """

    quantity: str
    value: np.ndarray
    error: np.ndarray | None
    slopes: Mapping[str, np.ndarray]
    slope_errors: Mapping[str, np.ndarray] | None

    @staticmethod
    def of(quantity: str, names: tuple[str, ...], numbers: Any, errors: Any) -> Gradient:
        """Return the record of an array whose last axis contains the value followed by the derivatives."""

        def by_name(table: Any) -> dict[str, np.ndarray]:
            return {name: np.asarray(table)[..., 1 + k] for k, name in enumerate(names)}

        exact = errors is None
        return Gradient(
            quantity,
            np.asarray(numbers)[..., 0],
            None if exact else np.asarray(errors)[..., 0],
            by_name(numbers),
            None if exact else by_name(errors),
        )


def check_pathwise(model: Model, quantity: str, moved: Sequence[Parameter]) -> None:
    """Refuse a pathwise derivative if the value at a site jumps, because the derivative would miss the jump.

    Values jump if an equation or the observable contains a discontinuous function of fields, or if the weights of a
    discrete law depend on a parameter.
    """
    cure = "take differences of solutions with one seed, several standard errors apart"
    named = [(f"the equation of {one.target}", part) for one in model.equations for part in expressions(one.value)]
    named += [(f"the observable {name}", value) for name, value in model.observe if name == quantity]
    for where, value in named:
        for node in sp.preorder_traversal(value):
            if isinstance(node, JUMPS) and _switches(node, moved):
                raise ParameterError(
                    f"{quantity} has no pathwise derivative: {node} in {where} jumps, and its derivative misses the "
                    f"jump; {cure}"
                )
            if isinstance(node, FieldAt) and _is_discrete(node.field) and any(node.field.law.has(one) for one in moved):
                raise ParameterError(
                    f"{quantity} has no pathwise derivative: {node} takes discrete values, and sites jump between "
                    f"them as {' or '.join(one.name for one in moved)} changes; {cure}"
                )


def _is_discrete(vector: Any) -> bool:
    """Return whether a vector is drawn from a law with point masses."""
    if isinstance(vector, Trait):
        return bool(vector.discrete)
    return vector.has_law and vector.law.kind in ("discrete", "mixture")


def _switches(node: sp.Basic, moved: Sequence[Parameter]) -> bool:
    """Return whether the location of a jump depends on fields or on a parameter."""
    places = [condition for _, condition in node.args] if node.is_Piecewise else node.args
    return any(place.atoms(FieldAt) or any(place.has(one) for one in moved) for place in places)


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
