"""SymPy nodes of the derivation: response fields, noises, correlations and responses. Printing is elsewhere."""

from __future__ import annotations

from typing import Any, Self

import sympy as sp

from derive.language.symbols import Clock, EngineSymbol
from derive.language.vectors import Field, FieldAt
from derive.support.display import DisplayedNode

Z = EngineSymbol("z")
"""The spectral variable: the resolvent is the trace of (z - M)^(-1)."""

TAU = EngineSymbol("tau", nonnegative=True)
"""Spectral time, whose Laplace variable is z."""


class _Node(DisplayedNode, sp.Expr):
    """Base of the nodes: commutative SymPy expressions of fields and times."""

    is_commutative = True

    def __new__(cls, *args: Any) -> Self:
        return sp.Expr.__new__(cls, *map(sp.sympify, args))


class Hat(_Node):
    """The Martin-Siggia-Rose response field of a field value."""

    value = property(lambda self: self.args[0])


class Dot(_Node):
    """The scalar product of two vectors over sites, not divided by the size."""

    left = property(lambda self: self.args[0])
    right = property(lambda self: self.args[1])


class Noise(_Node):
    """The Gaussian noise that replaces the disorder in the equation of a field."""

    field = property(lambda self: self.args[0])
    time = property(lambda self: self.args[1] if len(self.args) > 1 else None)


class Correlation(_Node):
    """C[a, b](t, s): the mean of a(t) b(s) over sites."""

    left = property(lambda self: self.args[0])
    right = property(lambda self: self.args[1])
    times = property(lambda self: self.args[2:])


class Response(_Node):
    """R[a, j](t, s): the mean of d a(t) / d u_j(s), where u_j is the noise of field j."""

    left = property(lambda self: self.args[0])
    noise = property(lambda self: self.args[1])
    times = property(lambda self: self.args[2:])


class TauDerivative(_Node):
    """The derivative in spectral time."""

    value = property(lambda self: self.args[0])


class ProbeSource(_Node):
    """The external source that drives the probe; the response to it is the resolvent."""


def times_of(field: Field, time: sp.Expr) -> tuple[sp.Expr, ...]:
    """Return the time arguments of a field: none if it has no clock."""
    if field.role == "spectral":
        return (TAU,)
    return (time,) if field.timed else ()


def at(field: Field, time: sp.Expr) -> FieldAt:
    """Return the field at a time, or the field itself if it has no clock."""
    return field(time) if field.timed else field()


def noise(field: Field, time: sp.Expr) -> Noise:
    return Noise(field, *times_of(field, time))


def index_size(field: Field) -> sp.Expr:
    """Return the number of spikes that a field contributes: times before the last update, times labels."""
    clock: Clock | None = field.clock
    size = sp.Integer(1)
    if clock is not None and field.timed:
        size *= clock.steps
    if field.labelled:
        size *= field.labels
    return size
