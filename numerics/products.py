"""Products of matrices in traced functions, before they are carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun


def unfinished(function: Callable[..., Any], *arguments: Any) -> list[list[Any]]:
    """For each result of a function the matrices whose product, from left to right, it is."""
    traced = jax.make_jaxpr(function)(*arguments)
    made_by = {variable: equation for equation in traced.jaxpr.eqns for variable in equation.outvars}
    outputs = [_factors_of(variable, made_by) for variable in traced.jaxpr.outvars]
    stopped = ClosedJaxpr(traced.jaxpr.replace(outvars=[x for one in outputs for x in one]), traced.consts)
    found = iter(jaxpr_as_fun(stopped)(*jax.tree.leaves(arguments)))
    return [[next(found) for _ in one] for one in outputs]


Leaf = tuple[int, int, int]
"""A block of a matrix: its first row and column, and its number among all blocks."""


class Blocks:
    """A product of matrices that a function returns, each laid out in blocks: what each of them is made of."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        traced = jax.make_jaxpr(function)(*arguments)
        made_by = {variable: equation for equation in traced.jaxpr.eqns for variable in equation.outvars}
        factors = _factors_of(traced.jaxpr.outvars[0], made_by)
        laid = [_laid_out(factor, made_by) for factor in factors]
        self.shapes = [tuple(factor.aval.shape) for factor in factors]
        self.leaves: list[list[Leaf]] = []
        self.traced, self.outputs = traced, list[Any]()
        for one in laid:
            start = len(self.outputs)
            self.leaves.append([(row, column, start + k) for k, (row, column, _) in enumerate(one)])
            self.outputs += [variable for _, _, variable in one]

    def block(self, number: int, *arguments: Any) -> Any:
        """One block, of the same arguments or others."""
        stopped = ClosedJaxpr(self.traced.jaxpr.replace(outvars=[self.outputs[number]]), self.traced.consts)
        return jaxpr_as_fun(stopped)(*jax.tree.leaves(arguments))[0]


def _origin(variable: Any, made_by: Mapping[Any, Any]) -> Any:
    """What a variable is by this table; None for a constant, and for one that is not in it."""
    return None if isinstance(variable, Literal) else made_by.get(variable)


def _laid_out(variable: Any, made_by: Mapping[Any, Any]) -> list[tuple[int, int, Any]]:
    """The blocks that a matrix is put together of: first row, first column, and what stands there."""
    equation = _origin(variable, made_by)
    if equation is None or getattr(variable.aval, "ndim", 0) != 2:
        return [(0, 0, variable)]
    if equation.primitive.name == "concatenate":
        found, start = [], [0, 0]
        for part in equation.invars:
            found += [(start[0] + r, start[1] + c, leaf) for r, c, leaf in _laid_out(part, made_by)]
            start[equation.params["dimension"]] += part.aval.shape[equation.params["dimension"]]
        return found
    if equation.primitive.name in ("jit", "pjit"):
        inner = equation.params["jaxpr"].jaxpr
        inside = {variable: one for one in inner.eqns for variable in one.outvars}
        given = dict(zip(inner.invars, equation.invars, strict=True))
        leaves = _laid_out(inner.outvars[list(equation.outvars).index(variable)], inside)
        if all(_origin(leaf, given) is not None for _, _, leaf in leaves):
            pairs = [(r, c, _laid_out(given[leaf], made_by)) for r, c, leaf in leaves]
            return [(r + row, c + column, leaf) for r, c, parts in pairs for row, column, leaf in parts]
    return [(0, 0, variable)]


def _factors_of(result: Any, made_by: Mapping[Any, Any]) -> Sequence[Any]:
    """The matrices whose product, from left to right, a traced function returns."""
    equation = _origin(result, made_by)
    if equation is None or equation.primitive.name != "dot_general":
        return [result]
    if equation.params["dimension_numbers"] != (((1,), (0,)), ((), ())):
        return [result]
    return [factor for one in equation.invars for factor in _factors_of(one, made_by)]
