"""Equations of a declaration, and the matrix whose spectrum is probed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field as data_field
from typing import Any

import sympy as sp

from derive.errors import DeclarationError
from derive.language.array_calls import refuse_array_calls
from derive.language.expressions import word
from derive.language.matrices import Evolving, MatrixAtom, MatrixExpression, SumOfMatrices, Weights
from derive.language.symbols import Clock, check_name, exact
from derive.language.traversal import ByKind
from derive.language.vectors import Each, Field, FieldAt, axes_of, named_fields, sector_of, shown
from derive.support.display import DisplayedFormula
from derive.support.source_lines import Place, line_of_caller


@word
@dataclass(frozen=True, repr=False)
class Eq(DisplayedFormula):
    """A defining equation. The left-hand side is a field or weights: at t, at t + k, or at a starting time.

    `place` is the source line, for error messages.

    >>> from derive import Eq, field, goe, parameter, sectors, training_clock, whole_positive
    >>> D, t = sectors("D"), training_clock("t", steps=parameter("T", default=3, domain=whole_positive))
    >>> M, x = goe("M", D), field("x", D, t)
    >>> Eq(x(t + 1), M @ x(t) / 2)
    Eq(x(t + 1), (M @ x(t))/2)
    >>> print(Eq(x(t + 1), M @ x(t) / 2).latex())
    x(t + 1) = \\frac{1}{2}\\, M\\, x(t)
    """

    target: FieldAt | MatrixAtom
    value: Any
    """An expression, or a matrix where weights are defined."""
    place: Place | None = data_field(default=None, compare=False, repr=False)

    def __init__(self, target: Any, value: Any) -> None:
        if isinstance(value, Evolving):
            raise value.untimed()
        target, value = _sides(target, value)
        if isinstance(value, sp.Expr):
            refuse_array_calls([value])
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "value", value)
        line = line_of_caller()
        object.__setattr__(self, "place", None if line is None else line.of_equation(self.name))

    def with_value(self, value: sp.Expr | MatrixExpression) -> Eq:
        """Return the equation of the same field, at the same source line, with another right-hand side."""
        equation = Eq(self.target, value)
        object.__setattr__(equation, "place", self.place)
        return equation

    def __str__(self) -> str:
        return f"Eq({self.target}, {shown(self.value)})"

    @property
    def name(self) -> str:
        return str(self.defined)

    @property
    def time(self) -> sp.Expr | None:
        return self.target.time

    @property
    def start(self) -> int | None:
        """The time of the starting value that it gives; None if it is a rule."""
        return int(self.time) if self.time is not None and self.time.is_Integer else None

    @property
    def clock(self) -> Clock | None:
        return self.defined.clock

    @property
    def defined(self) -> Field | Weights:
        """The field or the weights that it defines."""
        return self.target.owner


def clock_values(equation: Eq, equations: Iterable[Eq]) -> tuple[sp.Expr, sp.Expr] | None:
    """Return the first clock value at which a rule is used, and the one after the last; None without a time.

    The rule of x(t + 1) with one starting value gives x(1) at t = 0, and x(T) at t = T - 1.
    """
    if equation.clock is None or equation.time is None or equation.time.is_Integer:
        return None
    shift = sp.expand(equation.time - equation.clock)
    starts = sum(other.name == equation.name and other is not equation for other in equations)
    return sp.Max(shift, starts) - shift, equation.clock.steps + 1 - shift


@ByKind
def _sides(target: Any, value: Any) -> tuple[FieldAt | MatrixAtom, sp.Expr | MatrixExpression]:
    """Return both sides of an equation, if they are compatible."""
    raise DeclarationError(
        f"Eq({target!s}, ...): the left side must be a field such as v(t), or weights W(t + 1), and nothing else; "
        f"move other terms to the right side"
    )


@_sides.on(Field)
def _(target: Field, value: Any) -> tuple[FieldAt | MatrixAtom, sp.Expr | MatrixExpression]:
    return _sides(target(), value)


@_sides.on(FieldAt)
def _(target: FieldAt, value: Any) -> tuple[FieldAt | MatrixAtom, sp.Expr | MatrixExpression]:
    return target, _value_of_field(target, value)


@_sides.on(Evolving)
def _(target: Evolving, value: Any) -> tuple[FieldAt | MatrixAtom, sp.Expr | MatrixExpression]:
    raise target.untimed()


@_sides.on(MatrixAtom)
def _(target: MatrixAtom, value: Any) -> tuple[FieldAt | MatrixAtom, sp.Expr | MatrixExpression]:
    if target.weights is None or target.transposed:
        return _sides.default(target, value)
    return target, _value_of_weights(target, value)


def _value_of_weights(target: MatrixAtom, value: Any) -> MatrixExpression:
    if not isinstance(value, MatrixExpression):
        vector = named_fields(exact(value))
        if vector != 0:
            cure = "the matrix of two vectors is outer(a, b)" if sector_of(vector) is not None else "give a matrix"
            raise DeclarationError(f"{target} is a matrix, but its equation gives {shown(vector)}; {cure}")
        value = SumOfMatrices(target.rows, target.columns, ())
    if (value.rows, value.columns) != (target.rows, target.columns):
        raise DeclarationError(
            f"the equation of {target} gives a {value.rows} x {value.columns} matrix; "
            f"{target} is {target.rows} x {target.columns}; check the sectors or use .T"
        )
    return value


def _value_of_field(target: FieldAt, value: Any) -> sp.Expr:
    field = target.field
    where = f"the equation of {field}"
    if isinstance(value, MatrixExpression):
        raise DeclarationError(
            f"{target} is a vector, but its equation gives the matrix {value}; apply it to a vector with @"
        )
    expression = named_fields(exact(value))
    if expression.has(Each):
        raise DeclarationError(f"{where}: each(...) is for observe={{...}} only")
    sector = sector_of(expression, where)
    if sector is not None and sector != field.sector:
        raise DeclarationError(
            f"{where} mixes sectors: {field} lives on {field.sector}, its right-hand side on {sector}; check the "
            "sectors or use .T"
        )
    axes = axes_of(expression, where)
    if not set(axes) <= set(field.axes):
        listing = ", ".join(map(str, axes)), ", ".join(map(str, field.axes)) or "none"
        raise DeclarationError(
            f"{where} has the axes {listing[0]} on its right-hand side, but {field} has {listing[1]}; sum over labels "
            "with total(...), or give the field axes=..."
        )
    return expression


@dataclass(frozen=True, repr=False)
class DeclaredSpectrum(DisplayedFormula):
    """The symmetric matrix to probe.

    `plus` names an observable; its multiple of the identity is added. `between` names matrices whose traces with the
    resolvent are computed.
    """

    matrix: MatrixExpression
    plus: str = ""
    place: Place | None = data_field(default=None, compare=False, repr=False)
    between: tuple[tuple[str, MatrixExpression], ...] = ()

    @property
    def matrices(self) -> tuple[MatrixExpression, ...]:
        """The matrix, and those between its resolvents."""
        return (self.matrix, *(matrix for _, matrix in self.between))

    def __str__(self) -> str:
        more = f", plus={self.plus!r}" if self.plus else ""
        inside = ", ".join(f"{name!r}: {matrix}" for name, matrix in self.between)
        return f"spectrum({self.matrix}{more}{f', between={{{inside}}}' if inside else ''})"


@word
def spectrum(
    matrix: MatrixExpression, plus: str = "", between: Mapping[str, MatrixExpression] | None = None
) -> DeclaredSpectrum:
    """Return the declaration that probes the spectrum of a symmetric matrix: M(T), or W(T).T @ W(T) / N.

    With plus="name" the matrix is M(T) + name(T) * identity, where name is one of the observables. With between={"A":
    matrix} the traces tr R A and tr R A R of its resolvent R(z) with other matrices are computed too. These are random
    matrices, products of them, or diag(...) of a trait, such as a population covariance.

    >>> from derive import gaussian, parameter, positive, sectors, spectrum
    >>> D, N = sectors("D", N=parameter("nu", default=2.0, domain=positive))
    >>> W = gaussian("W", N, D)
    >>> spectrum(W.T @ W / N)
    spectrum(1/N*W.T @ W)
    """
    if not isinstance(matrix, MatrixExpression):
        if isinstance(matrix, Evolving):
            last = matrix.weights.clock.steps
            raise DeclarationError(f"spectrum({matrix}): {matrix} changes in time; write spectrum({matrix}({last}))")
        raise DeclarationError(f"spectrum({matrix!s}): give a matrix such as M(T) or W(T).T @ W(T) / N")
    if not matrix.as_sum:
        raise DeclarationError("spectrum(0): the terms of the matrix cancel, so there is nothing to probe")
    if matrix.rows != matrix.columns:
        raise DeclarationError(
            f"spectrum({matrix}): the matrix is {matrix.rows} x {matrix.columns}; for singular values probe W.T @ W, "
            f"as in spectrum(W.T @ W / {matrix.rows}) with W = {matrix}"
        )
    return DeclaredSpectrum(matrix, plus, line_of_caller(), _between(matrix, between))


def _between(matrix: MatrixExpression, between: Any) -> tuple[tuple[str, MatrixExpression], ...]:
    """Return the matrices between resolvents, by name."""
    if between is None:
        return ()
    if not isinstance(between, Mapping):
        raise DeclarationError(
            f"spectrum(..., between={named(between)}): name each, as in between={{'A': X.T @ X / N}}"
        )
    for name, other in between.items():
        where = f"spectrum(..., between={{{name!r}: {other!s}}})"
        check_name(name, f"{where}: the name")
        if not isinstance(other, MatrixExpression):
            raise DeclarationError(f"{where}: give a matrix, such as X.T @ X / N or diag(lam)")
        if (other.rows, other.columns) != (matrix.rows, matrix.columns):
            raise DeclarationError(
                f"{where}: it is {other.rows} x {other.columns}, and the probed matrix {matrix.rows} x "
                f"{matrix.columns}; give one of the same shape"
            )
    return tuple(between.items())


@ByKind
def named(argument: Any) -> str:
    """Describe an argument of the wrong type in a word."""
    return f"a {type(argument).__name__}"


@named.on(str, type(None))
def _(argument: str | None) -> str:
    return repr(argument)


@named.on(sp.Basic, MatrixExpression, Evolving)
def _(argument: Any) -> str:
    return str(argument)


@named.on(Eq)
def _(argument: Eq) -> str:
    return argument.name
