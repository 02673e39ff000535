"""Alignments: squared cosines of an outlier's vector with declared directions."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import sympy as sp
from sympy.printing.str import StrPrinter

from derive.errors import DeclarationError
from derive.language.contents import Declaration, atoms, everything
from derive.language.expressions import word
from derive.language.matrices import Evolving, MatrixExpression
from derive.language.multiplied import half_product
from derive.language.symbols import Clock, Parameter, Sector
from derive.language.traversal import ByKind
from derive.language.vectors import Field, FieldAt, Sited, named_fields, shown
from derive.support.bounds import ALIGNMENT_LENGTH, ALIGNMENTS

RIGHT, LEFT = "right", "left"


class Alignment(Sited):
    """The squared cosine between the vector of an outlier and a declared direction."""

    is_commutative = True

    def __new__(cls, direction: FieldAt) -> Self:
        return sp.Expr.__new__(cls, direction)

    direction = property(lambda self: self.args[0])

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"alignment({printer._print(self.direction)})"

    def _eval_is_real(self) -> bool:
        return True


@word
def alignment(direction: Any) -> Alignment:
    """Return, for observe={...}, the squared cosine between each outlier's vector and a field or a normal.

    The vector is the eigenvector of the probed matrix. For K.T @ K it is the right singular vector of K, or the left
    one if the direction lives on the rows of K. `v(t)` means v at every time, `v(3)` and `v(T)` one of them. The probed
    matrix is that after the last step, or after every step if the path is computed.

    >>> from derive import Model, alignment, goe, normal, outer, parameter, positive, sectors, spectrum
    >>> gamma, D = parameter("gamma", default=2.0, domain=positive), sectors("D")
    >>> M, v, w = goe("M", D), normal("v", D), normal("w", D)
    >>> spiked = spectrum(M + gamma / D * outer(v, v))
    >>> Model(parameters=(gamma,), observe={"spike": alignment(v), "other": alignment(w)}, probe=spiked)
    Model model: 1 parameter, alignments spike, other, spectrum of M + gamma/D*outer(v, v); print(...) shows it
    """
    if isinstance(direction, (MatrixExpression, Evolving)):
        raise DeclarationError(f"alignment({direction}): that is a matrix; name a field such as v(t), or a normal")
    value = named_fields(direction)
    if not isinstance(value, FieldAt):
        raise DeclarationError(
            f"alignment({shown(value)}): name one field such as v(t), or a normal; declare a field for anything else"
        )
    if value.field.role == "trait":
        raise DeclarationError(f"alignment({shown(value)}): {value.field} is a trait; name a field or a normal")
    return Alignment(value)


def sides_of(matrix: MatrixExpression) -> tuple[tuple[str, Sector], ...]:
    """Return the vectors of an eigenvalue of a probed matrix, with their sectors."""
    sides: list[tuple[str, Sector]] = [(RIGHT, matrix.rows)]
    half = half_product(matrix)
    if half:
        sides.append((LEFT, matrix.as_sum[0][1].as_product[half].rows))
    return tuple(sides)


def check_alignments(model: Declaration) -> None:
    """Raise DeclarationError if a direction does not fit the probed matrices."""
    for expression in everything(model):
        if expression.has(Alignment) and not isinstance(expression, Alignment):
            inside = min(expression.atoms(Alignment), key=sp.default_sort_key)
            raise DeclarationError(
                f"{shown(inside)} belongs to the outliers of a probed matrix; give it an entry of its own in "
                "observe={...}"
            )
    for name, value in model.alignments:
        _check(model, f"observable {name}: {shown(value)}", value.direction)


def _check(model: Declaration, where: str, direction: FieldAt) -> None:
    if not model.probes:
        raise DeclarationError(f"{where} needs a matrix that is probed; add probe=spectrum(...)")
    sectors = {sector: None for _, probe in model.probes for _, sector in sides_of(probe.matrix)}
    if direction.field.sector not in sectors:
        raise DeclarationError(
            f"{where}: {direction.field} lives on {direction.field.sector}, and the vectors of the probed matrices on "
            f"{' and '.join(map(str, sectors))}; name a field over one of these"
        )
    if direction.time is None:
        return
    clock = direction.field.clock
    steps = clock.steps
    before = sp.expand(steps - direction.time)
    late = before.is_Integer and before < (0 if clock.endpoint else 1)
    fixed = direction.time == clock or (direction.time.is_Integer and direction.time >= 0) or before.is_Integer
    if late or not fixed:
        ends = (f"{steps}, " if clock.endpoint else "") + f"{steps} - 1, {steps} - 2, ..."
        raise DeclarationError(f"{where}: times are {clock} for all of them, 0, 1, ... or {ends}")


def with_alignments(model: Any, texts: Iterable[str]) -> Any:
    """Return a model with further directions, typed as "teacher" or "v(3)" and named after their text.

    The model gets another name, because its generated code differs.
    """
    names = {name for name, _ in (*model.observe, *model.alignments)}
    typed = {text.strip(): None for text in texts}
    if len(typed) > ALIGNMENTS.most:
        raise DeclarationError(f"align: {len(typed)} directions are requested, but at most {ALIGNMENTS} are allowed")
    long = next((text for text in typed if len(text) > ALIGNMENT_LENGTH.most), None)
    if long is not None:
        raise DeclarationError(f"align={long[:40]}... is longer than {ALIGNMENT_LENGTH}; name a field and its time")
    more = tuple((text, _typed(model, text)) for text in typed if text not in dict(model.alignments))
    if not more:
        return model
    taken = next((text for text, _ in more if text in names), None)
    if taken is not None:
        raise DeclarationError(f"align={taken}: {taken} is the name of an observable; rename the observable")
    digest = hashlib.sha256(repr(tuple(typed)).encode()).hexdigest()[:8]
    return replace(
        model,
        name=f"{model.name}_align_{digest}",
        family=model.setting,
        observe=dict(model.observe),
        alignments=(*model.alignments, *more),
    )


def _typed(model: Declaration, text: str) -> Alignment:
    """Return a direction from its text: a name, possibly with a time in brackets."""
    fields = {f.name: f for f in atoms(model, Field) if f.role in ("field", "normal")}
    symbols = {s.name: s for s in (*atoms(model, (Clock, Parameter)),)}
    try:
        node: ast.AST = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = ast.Pass()
    match node:
        case ast.Name(id=name):
            time: list[ast.expr] = []
        case ast.Call(func=ast.Name(id=name), args=[_] as time, keywords=[]):
            pass
        case _:
            raise DeclarationError(
                f"align={text}: write the name of a field, with its time if it has one: teacher, v(3)"
            )
    if name not in fields:
        raise DeclarationError(f"align={text}: there is no field {name}; there are {', '.join(sorted(fields))}")
    field = fields[name]
    if not time:
        return alignment(field(field.clock) if field.timed else field())
    return alignment(field(_time(time[0], symbols, text)))


@ByKind
def _time(node: ast.expr, symbols: dict[str, Any], text: str) -> sp.Expr:
    """Return a time: an integer, a name, or a sum or difference of these."""
    raise DeclarationError(f"align={text}: write its time as a whole number or relative to the last one: v(T - 1)")


@_time.on(ast.Constant)
def _(node: ast.Constant, symbols: dict[str, Any], text: str) -> sp.Expr:
    return sp.Integer(node.value) if isinstance(node.value, int) else _time.default(node, symbols, text)


@_time.on(ast.Name)
def _(node: ast.Name, symbols: dict[str, Any], text: str) -> sp.Expr:
    return symbols[node.id] if node.id in symbols else _time.default(node, symbols, text)


@_time.on(ast.BinOp)
def _(node: ast.BinOp, symbols: dict[str, Any], text: str) -> sp.Expr:
    sign = {ast.Add: 1, ast.Sub: -1}.get(type(node.op))
    if sign is None:
        return _time.default(node, symbols, text)
    return _time(node.left, symbols, text) + sign * _time(node.right, symbols, text)
