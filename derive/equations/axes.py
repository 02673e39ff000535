"""Labels along several axes: broadcast factors with different axes by tables of zeros and ones.

After this step all terms and factors have the same labels, or none: several axes form one list of labels, and a table
of zeros and ones maps one list to another. A vector with other axes inside a mean gets a field of its own.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.errors import DeclarationError, blaming
from derive.language.contents import declared_names, everything
from derive.language.data import EntriesAt
from derive.language.equations import Eq
from derive.language.matrices import MatrixExpression
from derive.language.model import Model
from derive.language.symbols import Axis
from derive.language.traversal import ByKind, changed
from derive.language.vectors import (
    Apply,
    Each,
    Field,
    FieldAt,
    GivenNumbers,
    LabelSelection,
    Mean,
    Mix,
    PastSum,
    Project,
    Softmax,
    Total,
    axes_of,
    sector_of,
    shown,
    spread,
)

Axes = tuple[Axis, ...]
LEAVES = (FieldAt, GivenNumbers, Apply, Project, Mix, Total, Mean, sp.Sum)


def broadcast_labels(model: Model) -> Model:
    """Return the model with all terms broadcast to common axes; the model itself if its axes already agree."""
    if len({axis for e in everything(model) for axis in _axes_in(e)}) < 2:
        return model
    spreading = _Spreading(declared_names(model))
    equations = [spreading.equation(e) for e in model.equations]
    observe = {name: spreading.number(value) for name, value in model.observe}
    probe = tuple((label, replace(p, matrix=spreading.matrix(p.matrix))) for label, p in model.probes)
    single = [p for label, p in probe if label == ""]
    changed = [e.value for e in equations] != [e.value for e in model.equations] or observe != dict(model.observe)
    if not changed and not spreading.made:
        return model
    return replace(
        model,
        equations=(*equations, *spreading.equations),
        observe=observe,
        probe=single[0] if single else probe or None,
    )


def _axes_in(expression: sp.Basic) -> set[Axis]:
    fields = {axis for value in expression.atoms(FieldAt) for axis in value.field.axes}
    data_axes = {axis for node in expression.atoms(GivenNumbers) for axis in node.args[0].axes}
    return fields | data_axes | {axis for node in expression.atoms(LabelSelection) for axis in node.rows}


class _Spreading:
    """Broadcasts the expressions of a model to common axes."""

    def __init__(self, taken: set[str]):
        self.taken = taken
        self.made: dict[sp.Expr, Field] = {}
        self.equations: list[Eq] = []

    def equation(self, equation: Eq) -> Eq:
        with blaming(equation):
            if equation.target.weights is not None:
                return equation.with_value(self.matrix(equation.value))
            return equation.with_value(self.like(equation.value, equation.defined.axes))

    def number(self, value: sp.Expr) -> sp.Expr:
        """Broadcast an observable, or the coefficient of a matrix."""
        return changed(value, (Each, *LEAVES), self._inside)

    def matrix(self, matrix: MatrixExpression) -> MatrixExpression:
        if matrix.low_rank:
            return matrix.mapped(self.own)
        return matrix.rebuilt(self.matrix, lambda scale, _: self.number(scale))

    def own(self, expression: sp.Expr) -> sp.Expr:
        """Broadcast all parts of an expression to the expression's own axes."""
        return self.like(expression, axes_of(expression))

    def like(self, expression: sp.Expr, axes: Axes) -> sp.Expr:
        """Broadcast all parts of an expression to the given axes; parts without labels remain unchanged."""

        def leaf(node: sp.Expr) -> sp.Expr:
            inner, own = self._inside(node), axes_of(node)
            return spread(inner, axes, own) if own else inner

        return changed(expression, LEAVES, leaf)

    @ByKind
    def _inside(self, node: sp.Expr) -> sp.Expr:
        """Broadcast the arguments of a node."""
        return node.func(*node.args[:-1], self.own(node.args[-1]))

    @_inside.on(FieldAt, GivenNumbers)
    def _(self, node: sp.Expr) -> sp.Expr:
        return node

    @_inside.on(Mean)
    def _(self, node: Mean) -> sp.Expr:
        return Mean(self._in_mean(node))

    @_inside.on(Each)
    def _(self, node: Each) -> sp.Expr:
        return Each(self.own(node.expression))

    @_inside.on(Softmax)
    def _(self, node: Softmax) -> sp.Expr:
        return Softmax(self.own(node.expression), node.axis)

    @_inside.on(Total)
    def _(self, node: Total) -> sp.Expr:
        inner, axes = self.own(node.expression), axes_of(node.expression)
        rest = tuple(axis for axis in axes if node.axis not in (None, axis))
        return Total(inner) if not rest else spread(inner, rest, axes)

    @_inside.on(Project)
    def _(self, node: Project) -> sp.Expr:
        return Project(*map(self.own, node.args))

    @_inside.on(sp.Sum)
    def _(self, node: sp.Sum) -> sp.Expr:
        return PastSum(self.own(node.function), *node.limits)

    @_inside.on(Mix)
    def _(self, node: Mix) -> sp.Expr:
        if node.table.data is not None and len(axes_of(node.vector)) > 1:
            return self._mixed(node)
        return Mix(node.table, node.transposed, self.own(node.vector))

    def _mixed(self, node: Mix) -> sp.Expr:
        """Return a table times a vector with further axes, as a sum over columns."""
        axes = axes_of(node)
        wide = tuple(sorted({*axes, *axes_of(node.vector)}, key=lambda axis: axis.name))
        return spread(self.like(EntriesAt(*node.table.args) * node.vector, wide), axes, wide)

    def _in_mean(self, node: Mean) -> sp.Expr:
        """Return the argument of a mean, with a new field for every broadcast vector."""
        expression = self.own(node.expression)
        wide = {m for m in expression.atoms(Mix) if m.table.data is None and sector_of(m) is not None}
        outer = [m for m in wide if not any(m != other and other.has(m) for other in wide)]
        return expression.xreplace({m: self._field(m, node) for m in sorted(outer, key=sp.default_sort_key)})

    def _field(self, mix: Mix, where: sp.Expr) -> FieldAt:
        vector = mix.vector
        if vector in vector.atoms(Mix) and vector.table.data is None:
            vector = self._field(vector, where)
        if not isinstance(vector, FieldAt):
            raise DeclarationError(
                f"{shown(where)}: give {shown(mix.vector)} a field of its own and use that field here"
            )
        field, time = vector.field, () if vector.time is None else (vector.time,)
        now = field(field.clock) if field.timed else field()
        content = Mix(mix.table, False, now)
        if content not in self.made:
            name = "_".join(map(str, (field, *mix.table.rows)))
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            auxiliary = Field(name, field.sector, field.clock if field.timed else None, axes=mix.table.rows)
            self.made[content] = auxiliary
            self.equations.append(Eq(auxiliary(field.clock) if field.timed else auxiliary(), content))
        return self.made[content](*time)
