"""Fields, Gaussian vectors and the scalars made of them.

`v(t)` is an ordinary SymPy expression: sums, products and functions of such values act site by site. The only new nodes
are the value of a field at a time, a matrix applied to a vector, and the mean over sites.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NoReturn, Self

import sympy as sp
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from derive.errors import DeclarationError
from derive.language.expressions import declared, word
from derive.language.symbols import (
    Axis,
    Clock,
    EngineSymbol,
    Parameter,
    Sector,
    _Named,
    axes_in_order,
    exact,
    labels_along,
    other_symbols,
)
from derive.language.traversal import ByKind, changed, outermost, parts
from derive.support.display import DisplayedNode


class Sited(DisplayedNode, sp.Expr):
    """A vector over sites, or a number composed of vectors."""


class Field(Sited, _Named):
    """A vector over a sector. On a clock it is written `v(t)`, otherwise `v`.

    `role` is "field" (it has a defining equation), "normal" (independent standard Gaussian entries times a scale) or
    "spectral" (added by the engine to probe a matrix). `is_drawn`: its entries are independent random numbers with this
    `expectation` and `variance`, between these `ends`, drawn anew at each of its times. `axes`: the field has one copy
    per label of these axes; `labels` is the number of copies.
    """

    __slots__ = ()

    def __new__(
        cls,
        name: str,
        sector: Sector,
        clock: Clock | None = None,
        role: str = "field",
        scale: Any = 1,
        timed: bool = True,
        axes: Any = (),
        latex: str = "",
    ) -> Self:
        Sector.check(name, sector)
        if clock is not None:
            Clock.check(name, clock)
        own = sp.Tuple(*axes_in_order(name, axes))
        payload = (sector, clock, role, _checked_scale(name, scale), timed and clock is not None, own)
        return super().__new__(cls, name, payload, latex, real=True)

    sector = property(lambda self: self.payload[0])
    clock = property(lambda self: self.payload[1])
    role = property(lambda self: self.payload[2])
    scale = property(lambda self: self.payload[3])
    timed = property(lambda self: self.payload[4])
    axes = property(lambda self: tuple(self.payload[5]))
    labels = property(lambda self: labels_along(self.payload[5]))
    labelled = property(lambda self: bool(self.payload[5]))
    is_drawn = property(lambda self: self.role == "normal")
    has_law = property(lambda self: False, doc="Whether it is drawn from a law of its own, `law`.")
    expectation = property(lambda self: sp.S.Zero)
    variance = property(lambda self: sp.sympify(self.scale) ** 2)
    ends = property(lambda self: (-sp.oo, sp.oo))
    given_by = property(lambda self: "normal(...) vector: it is drawn" if self.is_drawn else "")

    def __call__(self, time: Any = None) -> FieldAt:
        return FieldAt(self) if time is None else FieldAt(self, exact(time))


def _checked_scale(name: str, scale: Any) -> sp.Expr:
    size = exact(scale)
    unknown = other_symbols(size, Parameter)
    if unknown:
        raise DeclarationError(f"{name}: its scale {size} depends on {unknown[0]}; use numbers and parameters only")
    return size


class FieldAt(Sited):
    """The value of a field, at a time if the field has a clock."""

    is_commutative = True

    def __new__(cls, field: Field, *time: Any) -> Self:
        if field.timed and not time:
            raise DeclarationError(f"{field} lives on clock {field.clock}: write {field}({field.clock})")
        if not field.timed and time:
            raise DeclarationError(f"{field} has no clock: write {field}, not {field}({time[0]})")
        return sp.Expr.__new__(cls, field, *map(sp.sympify, time))

    field = owner = property(lambda self: self.args[0])
    symbol = property(lambda self: self)
    weights = property(lambda self: None)
    time = property(lambda self: self.args[1] if len(self.args) > 1 else None)

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"{self.args[0]}" if self.time is None else f"{self.args[0]}({printer._print(self.time)})"

    def _eval_is_real(self) -> bool:
        return True

    def _eval_subs(self, old: sp.Basic, new: sp.Basic) -> Any:
        """Substitute symbols only; a field is never replaced."""
        return self if old == self.field else None

    def __call__(self, *_: object) -> NoReturn:
        raise DeclarationError(f"{shown(self)} is already a value; write {self.field}(time) once")


class GivenNumbers(Sited):
    """One number per label that the user provides; it stores its own axes."""

    is_commutative = True

    def own_axes(self, where: str) -> tuple[Axis, ...]:
        raise NotImplementedError


class LabelSelection(Sited):
    """The 0/1 table that maps numbers on the axes `columns` to the axes `rows`: 1 where labels on common axes agree.

    `named` are the axes of the columns, renamed as in the rows. The table broadcasts labels, sums over axes that the
    rows lack, and renames axes.
    """

    is_commutative = True
    time = data = None

    rows = property(lambda self: tuple(self.args[0]))
    columns = property(lambda self: tuple(self.args[1]))
    named = property(lambda self: tuple(self.args[2]))
    axes = property(lambda self: (self.rows, self.columns))

    def _sympystr(self, printer: StrPrinter) -> str:
        rows, columns = (",".join(map(str, axes)) or "1" for axes in (self.rows, self.named))
        return f"labels[{rows}|{columns}]"

    def _eval_is_real(self) -> bool:
        return True


def spread(expression: sp.Expr, axes: tuple[Axis, ...], own: tuple[Axis, ...]) -> sp.Expr:
    """Return an expression on other axes: repeated along new ones, summed along omitted ones."""
    if own == axes:
        return expression
    return Mix(LabelSelection(sp.Tuple(*axes), sp.Tuple(*own), sp.Tuple(*own)), False, expression)


class Apply(Sited):
    """A matrix, or its transpose, times a vector."""

    is_commutative = True
    precedence = PRECEDENCE["Mul"]

    def __new__(cls, matrix: sp.Basic, transposed: bool | sp.Basic, vector: sp.Basic) -> Self:
        return sp.Expr.__new__(cls, matrix, sp.sympify(bool(transposed)), vector)

    matrix = property(lambda self: self.args[0])
    transposed = property(lambda self: bool(self.args[1]))
    vector = property(lambda self: self.args[2])

    def _sympystr(self, printer: StrPrinter) -> str:
        name = self.matrix if not self.matrix.args else f"{self.matrix.args[0]}({printer._print(self.matrix.time)})"
        return f"{name}{'.T' if self.transposed else ''} @ {_argument(self.vector, printer)}"

    def _eval_is_real(self) -> bool:
        return True


class Project(Sited):
    """The matrix left right^T times a vector; labels of left and right are summed jointly."""

    is_commutative = True
    precedence = PRECEDENCE["Mul"]

    left = property(lambda self: self.args[0])
    right = property(lambda self: self.args[1])
    vector = property(lambda self: self.args[2])

    def _sympystr(self, printer: StrPrinter) -> str:
        left, right = map(printer._print, self.args[:2])
        return f"outer({left}, {right}) @ {_argument(self.vector, printer)}"

    def _eval_is_real(self) -> bool:
        return True


class Mix(Sited):
    """A table, or its transpose, times a vector or numbers with labels: the sum runs over the labels."""

    is_commutative = True
    precedence = PRECEDENCE["Mul"]

    def __new__(cls, table: sp.Basic, transposed: bool | sp.Basic, vector: sp.Basic) -> Self:
        return sp.Expr.__new__(cls, table, sp.sympify(bool(transposed)), vector)

    table = property(lambda self: self.args[0])
    transposed = property(lambda self: bool(self.args[1]))
    vector = property(lambda self: self.args[2])

    def _sympystr(self, printer: StrPrinter) -> str:
        if self.table.data is None and set(self.table.rows) == set(self.table.named):
            text: str = printer._print(self.vector)
            for old, new in zip(self.table.columns, self.table.named, strict=True):
                text = text if old == new else f"relabel({text}, {old}, {new})"
            return text
        return f"{printer._print(self.table)}{'.T' if self.transposed else ''} @ {_argument(self.vector, printer)}"

    def _eval_is_real(self) -> bool:
        return True


class Total(Sited):
    """The sum over all labels, or over those of one axis, of a vector or of numbers with labels."""

    is_commutative = True
    precedence = PRECEDENCE["Mul"]

    def __new__(cls, expression: Any, axis: Axis | None = None) -> Self:
        return sp.Expr.__new__(cls, sp.sympify(expression), *(() if axis is None else (axis,)))

    expression = property(lambda self: self.args[0])
    axis = property(lambda self: self.args[1] if len(self.args) > 1 else None)

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"{type(self).__name__.lower()}({', '.join(map(printer._print, self.args))})"

    def _eval_is_real(self) -> bool:
        return True


class Each(Total):
    """Numbers with labels, each of which is observed separately."""


class Softmax(Total):
    """The softmax of numbers with labels along one axis."""

    precedence = PRECEDENCE["Func"]


class Mean(Sited):
    """The average over the sites of a sector: an order parameter. For a vector with labels there is one mean per
    label."""

    is_commutative = True

    def __new__(cls, expression: Any) -> Self:
        return sp.Expr.__new__(cls, sp.sympify(expression))

    expression = property(lambda self: self.args[0])

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"mean({printer._print(self.expression)})"

    def _eval_is_real(self) -> bool:
        return True


def _argument(vector: sp.Basic, printer: StrPrinter) -> str:
    text: str = printer._print(vector)
    return text if isinstance(vector, (FieldAt, Apply)) else f"({text})"


VECTORS = (FieldAt, Apply, Project, Mix, sp.Sum)
"""Nodes that have one entry for each site."""


class _Typed(StrPrinter):
    """Prints expressions as they are written in a declaration, including sums over earlier times."""

    def _print_Sum(self, node: sp.Basic) -> str:
        return f"past_sum(lambda s: {self._print(node.function)}, {self._print(node.limits[0][2] + 1)})"


@ByKind
def shown(expression: sp.Basic) -> str:
    """Return an expression as it was typed, for messages."""
    return str(_Typed().doprint(expression))


def named_fields(expression: sp.Expr) -> sp.Expr:
    """Return the expression with fields without a clock as values, and with decimals as fractions."""
    expression = exact(expression)
    bare = {symbol: FieldAt(symbol) for symbol in expression.atoms(Field) if not symbol.timed}
    clocked = sorted((str(symbol), symbol) for symbol in parts(expression, (Field,), (FieldAt,)) if symbol.timed)
    if clocked:
        symbol = clocked[0][1]
        raise DeclarationError(f"{symbol} lives on clock {symbol.clock}: write {symbol}({symbol.clock})")
    return changed(expression, (Field, FieldAt), lambda node: bare.get(node, node))


def values(expression: sp.Basic) -> list[FieldAt]:
    """Return the field values outside of means, in a fixed order."""
    return outermost(expression, (FieldAt,), (Mean,))


def sector_of(expression: sp.Basic, where: str = "an expression") -> Sector | None:
    """Return the sector of an elementwise expression; None for a scalar."""
    sectors: dict[Sector, str] = {}
    for sector, name in _sectors(expression, where):
        sectors.setdefault(sector, name)
    if len(sectors) > 1:
        listing = " and ".join(f"{name} over {sector}" for sector, name in sectors.items())
        raise DeclarationError(f"{where} mixes sectors: {listing}; elementwise operations need one sector")
    return next(iter(sectors), None)


@ByKind
def _sectors(node: sp.Basic, where: str) -> list[tuple[Sector, str]]:
    """Return the sectors in an expression, each with the name of a vector there."""
    return [pair for arg in node.args for pair in _sectors(arg, where)]


@_sectors.on(FieldAt)
def _(node: FieldAt, where: str) -> list[tuple[Sector, str]]:
    return [(node.field.sector, str(node.field))]


@_sectors.on(Field)
def _(node: Field, where: str) -> list[tuple[Sector, str]]:
    return [(node.sector, str(node))]


@_sectors.on(Apply)
def _(node: Apply, where: str) -> list[tuple[Sector, str]]:
    rows, columns = node.matrix.shape[:: -1 if node.transposed else 1]
    inner = sector_of(node.vector, where)
    if inner is not None and inner != columns:
        raise DeclarationError(
            f"{where}: {node.matrix}{'.T' if node.transposed else ''} takes vectors over {columns}, "
            f"but its argument lives on {inner}; check the sectors or use .T"
        )
    return [(rows, f"{node.matrix} @ ...")]


@_sectors.on(Project)
def _(node: Project, where: str) -> list[tuple[Sector, str]]:
    return _sectors(node.left, where)


@_sectors.on(Mix)
def _(node: Mix, where: str) -> list[tuple[Sector, str]]:
    return _sectors(node.vector, where)


@_sectors.on(Mean)
def _(node: Mean, where: str) -> list[tuple[Sector, str]]:
    return []


def axes_of(expression: sp.Basic, where: str = "an expression") -> tuple[Axis, ...]:
    """Return the axes of a vector or number, sorted by name; empty if it has no labels."""
    return tuple(sorted(_axes(expression, where), key=lambda axis: axis.name))


@ByKind
def _axes(node: sp.Basic, where: str) -> set[Axis]:
    axes: set[Axis] = set()
    return axes.union(*(_axes(arg, where) for arg in node.args))


@_axes.on(FieldAt)
def _(node: FieldAt, where: str) -> set[Axis]:
    return set(node.field.axes)


@_axes.on(GivenNumbers)
def _(node: GivenNumbers, where: str) -> set[Axis]:
    return set(node.own_axes(where))


@_axes.on(Project)
def _(node: Project, where: str) -> set[Axis]:
    return _axes(node.vector, where)


@_axes.on(Softmax)
def _(node: Softmax, where: str) -> set[Axis]:
    inner = axes_of(node.expression, where)
    if node.axis not in inner:
        raise DeclarationError(f"{where}: {shown(node)} is along {node.axis}, but {_having(inner)}")
    return set(inner)


@_axes.on(Total)
def _(node: Total, where: str) -> set[Axis]:
    inner = axes_of(node.expression, where)
    if not inner:
        raise DeclarationError(f"{where}: {shown(node)} runs over labels, but its argument has none; leave it out")
    if node.axis is not None and node.axis not in inner:
        raise DeclarationError(f"{where}: {shown(node)} is over {node.axis}, but {_having(inner)}")
    return {axis for axis in inner if node.axis not in (None, axis)}


@_axes.on(Mix)
def _(node: Mix, where: str) -> set[Axis]:
    """Replace the axes of the table's columns by those of its rows."""
    inner = axes_of(node.vector, where)
    if node.table.data is None:
        return set(node.table.rows)
    rows, columns = node.table.data.axes[:: -1 if node.transposed else 1]
    if columns not in inner:
        raise DeclarationError(
            f"{where}: {node.table.data}{'.T' if node.transposed else ''} takes vectors with the axis {columns}, "
            f"but its argument has {', '.join(map(str, inner)) or 'none'}; check the axes of data(...) or use .T"
        )
    rest = tuple(axis for axis in inner if axis != columns)
    if rows in rest or (rest and rows == columns):
        raise DeclarationError(
            f"{where}: {node.table.data} gives the axis {rows}, but its argument has {', '.join(map(str, inner))}; "
            f"give it a vector with {columns} alone, or rename an axis with relabel(...)"
        )
    return {rows, *rest}


def _having(axes: tuple[Axis, ...]) -> str:
    return f"its argument has the axes {', '.join(map(str, axes))}" if axes else "its argument has no labels"


@word
def total(expression: Any, axis: Axis | None = None) -> Total:
    """Return the sum over labels of a vector, or of numbers such as mean(w(t) * phi(t)) with labels.

    With several axes, `axis` is the one to sum over; by default the sum runs over all of them.

    >>> from derive import axis, field, mean, parameter, sectors, total, training_clock, whole_positive
    >>> T, P = (parameter(name, default=4, domain=whole_positive) for name in "TP")
    >>> N, t, p = sectors("N"), training_clock("t", steps=T), axis("p", P)
    >>> phi = field("phi", N, t, axes=p)
    >>> total(mean(phi(t)**2) / P)
    total(mean(phi(t)**2)/P)
    >>> total(phi(t), p)
    total(phi(t), p)
    """
    node = Total(named_fields(exact(expression)), _given_axis("total", axis))
    axes_of(node)
    return node


@word
def softmax(expression: Any, axis: Axis) -> Softmax:
    """Return the softmax of numbers with labels along an axis: one probability per label of that axis.

    The numbers are made of means over sites, data and parameters, such as the outputs of a network for each class.

    >>> from derive import axis, field, mean, normal, parameter, sectors, softmax, training_clock, whole_positive
    >>> T, C, P = (parameter(name, default=4, domain=whole_positive) for name in "TCP")
    >>> N, t, c, p = sectors("N"), training_clock("t", steps=T), axis("c", C), axis("p", P)
    >>> w, h = field("w", N, t, axes=c), field("h", N, t, axes=p)
    >>> softmax(mean(w(t) * h(t)), c)
    softmax(mean(h(t)*w(t)), c)
    """
    node = Softmax(named_fields(exact(expression)), _given_axis("softmax", axis))
    if node.axis is None:
        raise DeclarationError(f"softmax({shown(node.expression)}): name the axis, as in softmax(f, c)")
    if sector_of(node.expression) is not None:
        raise DeclarationError(
            f"{shown(node)} acts on a vector; apply it to means over sites, as in softmax(mean(v), c)"
        )
    axes_of(node, shown(node))
    return node


@word
def relabel(expression: Any, old: Axis, new: Axis) -> sp.Expr:
    """Return the expression with one of its axes renamed, so that products pair every label with every other.

    >>> from derive import axis, field, mean, parameter, relabel, sectors, training_clock, whole_positive
    >>> T, C = (parameter(name, default=4, domain=whole_positive) for name in "TC")
    >>> N, t, a, b = sectors("N"), training_clock("t", steps=T), axis("a", C), axis("b", C)
    >>> h = field("h", N, t, axes=a)
    >>> overlaps = mean(h(t) * relabel(h(t), a, b))  # of every class with every other
    """
    value = named_fields(exact(expression))
    where = f"relabel({shown(value)}, {old}, {new})"
    for axis in (old, new):
        _given_axis("relabel", axis)
    own = axes_of(value, where)
    if old not in own:
        raise DeclarationError(f"{where}: {_having(own)}; give one of them")
    if new in own and new != old:
        raise DeclarationError(f"{where}: it already has the axis {new}; make another one with axis(...)")
    if old.size != new.size:
        raise DeclarationError(
            f"{where}: {old} has {old.size} labels and {new} has {new.size}; give them the same size"
        )
    return value if old == new else _renamed(value, old, new)


def _renamed(value: sp.Expr, old: Axis, new: Axis) -> sp.Expr:
    own = axes_of(value)
    if old not in own:
        return value
    if isinstance(value, (*VECTORS, Total, Mean, GivenNumbers)):
        called = tuple(new if axis == old else axis for axis in own)
        rows = tuple(sorted(called, key=lambda axis: axis.name))
        return Mix(LabelSelection(sp.Tuple(*rows), sp.Tuple(*own), sp.Tuple(*called)), False, value)
    return value.func(*(_renamed(arg, old, new) for arg in value.args))


def _given_axis(word: str, axis: Any) -> Axis | None:
    if axis is not None and not isinstance(axis, Axis):
        raise DeclarationError(f"{word}(..., {axis!s}): that is not an axis; make one with c = axis('c', C)")
    return axis


@word
def each(expression: Any) -> Each:
    """Return, for observe={...}, numbers with labels as separate observables instead of their average over labels.

    Arrays of results have time as their first axis, followed by the axes of labels in alphabetical order.

    >>> from derive import axis, each, field, mean, parameter, sectors, training_clock, whole_positive
    >>> T, P = (parameter(name, default=4, domain=whole_positive) for name in "TP")
    >>> N, t, p = sectors("N"), training_clock("t", steps=T), axis("p", P)
    >>> phi = field("phi", N, t, axes=p)
    >>> observe = {"norms": each(mean(phi(t)**2))}
    """
    return Each(named_fields(exact(expression)))


@word
def field(
    name: str,
    sector: Sector,
    clock: Clock | None = None,
    axes: Axis | tuple[Axis, ...] = (),
    latex: str = "",
) -> Field:
    """Return a vector over `sector` that gets a defining equation; with a clock, one vector per time.

    `axes`: one axis of labels or several; the field has one copy per label. `latex` sets its symbol in formulas.

    >>> from sympy import tanh
    >>> from derive import Eq, field, parameter, sectors, training_clock, whole_positive
    >>> D, t = sectors("D"), training_clock("t", steps=parameter("T", default=3, domain=whole_positive))
    >>> x = field("x", D, t)
    >>> Eq(x(t + 1), x(t) + tanh(x(t)))
    Eq(x(t + 1), tanh(x(t)) + x(t))
    """
    return Field(name, sector, clock, axes=axes, latex=latex)


@word
def fields(
    names: str, sector: Sector, clock: Clock | None = None, axes: Axis | tuple[Axis, ...] = ()
) -> tuple[Field, ...]:
    """Return several fields over the same sector and clock.

    >>> from derive import fields, parameter, sectors, training_clock, whole_positive
    >>> D, t = sectors("D"), training_clock("t", steps=parameter("T", default=3, domain=whole_positive))
    >>> phi, xi = fields("phi xi", D, t)
    >>> phi(t) + 2 * xi(t - 1)
    phi(t) + 2*xi(t - 1)
    """
    if not isinstance(names, str):
        raise DeclarationError(f"fields({names!s}, ...): write the names as one text with spaces, fields('x y', ...)")
    return tuple(Field(name, sector, clock, axes=axes) for name in names.replace(",", " ").split())


@word
def normal(
    name: str,
    sector: Sector,
    clock: Clock | None = None,
    scale: Any = 1,
    axes: Axis | tuple[Axis, ...] = (),
    latex: str = "",
) -> Field:
    """Return a vector of independent Gaussian entries of mean 0 and standard deviation `scale`.

    With a clock it is drawn anew at every time; with `axes`, one axis of labels or several, once per label. `latex`
    sets its symbol in formulas.

    >>> from derive import mean, normal, sectors
    >>> D = sectors("D")
    >>> start = normal("start", D, latex="x_0")
    >>> mean(start**2)
    mean(start**2)
    """
    return Field(name, sector, clock, role="normal", scale=scale, axes=axes, latex=latex)


@word
def mean(expression: Any) -> sp.Expr:
    """Return the average of an elementwise expression over the sites of its sector.

    >>> from derive import mean, normal, sectors
    >>> v = normal("v", sectors("D"))
    >>> mean(v**2)
    mean(v**2)
    >>> mean(v**2)._repr_latex_()
    '$\\\\displaystyle \\\\left\\\\langle v^{2} \\\\right\\\\rangle$'
    """
    expression = named_fields(exact(expression))
    if sector_of(expression, f"mean({shown(expression)})") is None:
        raise DeclarationError(f"mean({shown(expression)}): there is no field to average")
    if expression.has(Mean) or _times_outside_values(expression):
        return sp.Add(*map(_mean_of_product, sp.Add.make_args(_multiplied_out(expression))))
    terms = sp.Add.make_args(expression)
    numbers = [part for part in terms if sector_of(part) is None and not part.has(GivenNumbers, Total, Mix)]
    of_traits = [part for part in terms if values(part) and all(v.field.role == "trait" for v in values(part))]
    rest = [part for part in terms if part not in (*numbers, *of_traits)]
    if of_traits and rest:  # moments of traits stand apart from means of fields
        return sp.Add(*numbers, Mean(sp.Add(*of_traits)), Mean(sp.Add(*rest)))
    return sp.Add(*numbers, Mean(sp.Add(*of_traits, *rest)))


def _multiplied_out(expression: sp.Expr) -> sp.Expr:
    """Return the expression with products of sums expanded; denominators are unchanged."""
    if expression.is_Add:
        return sp.Add(*map(_multiplied_out, expression.args))
    if expression.is_Mul:
        sums = [sp.Add.make_args(_multiplied_out(factor)) for factor in expression.args]
        return sp.Add(*(sp.Mul(*factors) for factors in product(*sums)))
    return expression


def _mean_of_product(term: sp.Expr) -> sp.Expr:
    """Return the mean of a product, with factors that are constant over sites, such as other means and functions of
    time, in front."""
    outside = [f for f in sp.Mul.make_args(term) if sector_of(f) is None and not f.has(GivenNumbers, Total, Mix)]
    inside = [f for f in sp.Mul.make_args(term) if f not in outside]
    return sp.Mul(*outside, Mean(sp.Mul(*inside)) if inside else sp.S.One)


def _times_outside_values(expression: sp.Basic) -> bool:
    """Return whether an expression depends on time explicitly, not only through values of fields."""
    return any(True for _ in parts(expression, (Clock, EngineSymbol), (FieldAt, GivenNumbers)))


@word
def overlap(left: Any, right: Any) -> sp.Expr:
    """Return mean(left * right): the normalised scalar product of two vectors.

    >>> from derive import normal, overlap, sectors
    >>> D = sectors("D")
    >>> overlap(normal("a", D), normal("b", D))
    mean(a*b)
    """
    return mean(exact(left) * exact(right))


PAST = EngineSymbol("s", integer=True, nonnegative=True)
"""The index of a sum over earlier times."""


class PastSum(sp.Sum):
    """A sum over earlier times that, unlike SymPy's Sum, does not move factors into a `Piecewise`.

    A mean or an outer product must remain outside, because the case differs from site to site.
    """

    def __new__(cls, function: sp.Expr, *limits: tuple[sp.Expr, ...]) -> PastSum:
        return sp.Expr.__new__(cls, sp.sympify(function), *(sp.Tuple(*limit) for limit in limits))

    @property
    def is_commutative(self) -> bool:
        return True


@word
def past_sum(term: Callable[[sp.Symbol], sp.Expr], clock: Clock) -> sp.Sum:
    """Return the sum over all earlier times s = 0, ..., t - 1 of term(s).

    >>> from derive import field, parameter, past_sum, sectors, training_clock, whole_positive
    >>> D, t = sectors("D"), training_clock("t", steps=parameter("T", default=3, domain=whole_positive))
    >>> xi = field("xi", D, t)
    >>> past_sum(lambda s: xi(s), t)
    Sum(xi(s), (s, 0, t - 1))
    """
    ends = clock.atoms(Clock) if isinstance(clock, sp.Expr) else set()
    if not callable(term) or not any((clock - end).is_Integer for end in ends):
        raise DeclarationError(
            "past_sum takes a function of the earlier time and the clock; write past_sum(lambda s: x(s), t)"
        )
    return PastSum(named_fields(exact(term(declared(PAST)))), (PAST, 0, clock - 1))
