"""Laws of traits as values of a program."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from derive.language.traits import VALUE, Trait
from derive.program.nodes import SCALAR, Call, Formula, Function, Ref, Slot, Symbol, Tuple, Value

_ARGUMENT = Symbol(VALUE.name, SCALAR)


def law_parts(trait: Trait, number: Callable[[sp.Expr], Value] = Formula) -> tuple[Value | None, ...]:
    """Return the values of a trait and their weights (None if equal), or its density and its ends."""
    if not trait.discrete:
        density = Formula(trait.density.xreplace({VALUE: Slot(Ref(_ARGUMENT), VALUE.name)}), None)
        return (Function((_ARGUMENT,), density), *map(number, trait.law[1:]))
    if not trait.weights:
        return Formula(trait.values, None), None
    return tuple(Tuple(tuple(map(number, some))) for some in (trait.values, trait.weights))


def law_of(trait: Trait, nodes: tuple[Value | int, ...], number: Callable[[sp.Expr], Value] = Formula) -> Call:
    """Return the law of a trait. `nodes` is the number of quadrature nodes of a density."""
    parts = law_parts(trait, number)
    return Call("discrete", parts, None) if trait.discrete else Call("density", (*parts, *nodes), None)
