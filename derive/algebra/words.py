"""Words: noncommutative products of correlation, response and diagonal matrices over training times.

A block of A(z) is a sum of scalar * word. A word is a tuple of letters; SymPy matrix expressions are used only for
printing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import sympy as sp

from derive.algebra.nodes import index_size
from derive.algebra.sites import around_averages
from derive.language.symbols import Sector
from derive.language.vectors import PAST, Field, FieldAt


@dataclass(frozen=True)
class Letter:
    """C[a, b] or R[a, b] as a matrix over the times (and labels) of a and b, possibly transposed.

    `time` fixes the time of b in a correlation (one column), or that of a in a response (one row).
    """

    kind: str
    a: Field
    b: Field
    transposed: bool = False
    time: sp.Expr | None = None

    @staticmethod
    def correlation(a: Field, b: Field) -> Letter:
        """Return the letter C[a, b]."""
        return Letter("C", a, b) if a.name <= b.name else Letter("C", b, a, True)

    @staticmethod
    def response(a: Field, noise: Field) -> Letter:
        """Return the letter R[a, noise]."""
        return Letter("R", a, noise)

    @staticmethod
    def with_value(a: Field, value: FieldAt) -> Letter:
        """Return the correlations with a field at one time: one column."""
        if value.time is None:
            return Letter.correlation(a, value.field)
        return Letter("C", a, value.field, time=value.time)

    @staticmethod
    def of_value(value: FieldAt, noise: Field) -> Letter:
        """Return the responses of a field at one time: one row."""
        return Letter("R", value.field, noise, time=value.time)

    @property
    def T(self) -> Letter:
        if self.kind == "C" and self.a == self.b and self.time is None:
            return self
        return replace(self, transposed=not self.transposed)

    tables: ClassVar[tuple[SiteTable, ...]] = ()
    weights: ClassVar[tuple[sp.Expr, ...]] = ()

    @property
    def order_parameters(self) -> tuple[Letter, ...]:
        """The correlations and responses that it contains."""
        return (self.plain,)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields over whose times it is a matrix."""
        return self.a, self.b

    @property
    def plain(self) -> Letter:
        """The same letter without transposition."""
        return replace(self, transposed=False)

    @property
    def shown(self) -> tuple[str, str]:
        """The names of its two fields."""
        a, b = str(self.a), str(self.b)
        if self.time is None:
            return a, b
        return (a, f"{b}({self.time})") if self.kind == "C" else (f"{a}({self.time})", b)

    @property
    def shape(self) -> tuple[sp.Expr, sp.Expr]:
        """The numbers of rows and columns before transposition."""
        rows, columns = index_size(self.a), index_size(self.b)
        if self.time is None:
            return rows, columns
        return (rows, sp.S.One) if self.kind == "C" else (sp.S.One, columns)

    @property
    def name(self) -> str:
        return "_".join((self.kind, *self.shown))

    def matrix(self) -> sp.MatrixExpr:
        symbol = sp.MatrixSymbol(self.name, *self.shape)
        return symbol.T if self.transposed else symbol


class DiagonalWeight(sp.MatrixExpr):
    """The diagonal matrix with entries weight(s)."""

    def __new__(cls, weight: sp.Expr, size: sp.Expr) -> Self:
        return sp.MatrixExpr.__new__(cls, sp.sympify(weight), sp.sympify(size))

    weight = property(lambda self: self.args[0])
    shape = property(lambda self: (self.args[1], self.args[1]))

    def _entry(self, i: Any, j: Any, **kwargs: Any) -> Any:
        return self.weight.subs(PAST, i) * sp.KroneckerDelta(i, j)

    def _eval_transpose(self) -> Any:
        return self


@dataclass(frozen=True)
class DiagonalFactor:
    """A diagonal weight over the times of a field."""

    weight: sp.Expr
    field: Field

    order_parameters: ClassVar[tuple[Letter, ...]] = ()
    tables: ClassVar[tuple[SiteTable, ...]] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.field,)

    @property
    def weights(self) -> tuple[sp.Expr, ...]:
        """The diagonal entries as functions of time."""
        return (self.weight,)

    @property
    def T(self) -> DiagonalFactor:
        return self

    @property
    def name(self) -> str:
        return f"diag({self.weight})"

    def matrix(self) -> sp.MatrixExpr:
        return DiagonalWeight(self.weight, index_size(self.field))


@dataclass(frozen=True)
class SiteTable:
    """The means over sites of products of two factors, conditional on the diagonal entries.

    A factor is ("C", field), or ("R", noise): the latter is a derivative with respect to the noise.
    """

    sector: Sector
    left: tuple[str, Field]
    right: tuple[str, Field]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Its key among the order parameters."""
        return ("W", self.sector.name, *(f"{kind} {field}" for kind, field in (self.left, self.right)))


@dataclass(frozen=True)
class Weighed:
    """<weight left right>: a mean over sites weighted by a function of the diagonal entries.

    It is a matrix indexed by the times (and labels) of the two factors of a SiteTable.
    """

    weight: sp.Expr
    sector: Sector
    left: tuple[str, Field]
    right: tuple[str, Field]

    order_parameters: ClassVar[tuple[Letter, ...]] = ()
    weights: ClassVar[tuple[sp.Expr, ...]] = ()

    @property
    def tables(self) -> tuple[SiteTable, ...]:
        """The tables of conditional means that it contains."""
        return (self.table,)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.left[1], self.right[1]

    @property
    def T(self) -> Weighed:
        return replace(self, left=self.right, right=self.left)

    @property
    def turned(self) -> bool:
        """Whether it uses the transposed table."""
        return (self.left[0], self.left[1].name) > (self.right[0], self.right[1].name)

    @property
    def table(self) -> SiteTable:
        ends = (self.right, self.left) if self.turned else (self.left, self.right)
        return SiteTable(self.sector, *ends)

    @property
    def shape(self) -> tuple[sp.Expr, sp.Expr]:
        return index_size(self.left[1]), index_size(self.right[1])

    @property
    def name(self) -> str:
        ends = (str(field) if kind == "C" else f"d/d {field}" for kind, field in (self.left, self.right))
        return f"<{self.weight}; {', '.join(ends)}>"

    def matrix(self) -> sp.MatrixExpr:
        return sp.MatrixSymbol(self.name, *self.shape)


Word = tuple[Letter | DiagonalFactor | Weighed, ...]
Combination = tuple[tuple[sp.Expr, Word], ...]


def combine(terms: list[tuple[sp.Expr, Word]]) -> Combination:
    """Return a sum of scalar * word with equal words added and zeros dropped, in a fixed order."""
    total: dict[Word, sp.Expr] = {}
    for scale, word in terms:
        total[word] = total.get(word, sp.S.Zero) + scale
    tidied = [(around_averages(lambda e: sp.factor_terms(sp.expand(e)), scale), word) for word, scale in total.items()]
    kept = [(scale, word) for scale, word in tidied if scale != 0]
    return tuple(sorted(kept, key=lambda item: [letter.name for letter in item[1]]))


def as_matrix(combination: Combination, rows: sp.Expr, columns: sp.Expr) -> sp.MatrixExpr:
    """Return the combination as a SymPy matrix expression."""
    parts = []
    for scale, word in combination:
        matrix = sp.MatMul(*(letter.matrix() for letter in word)) if word else sp.Identity(rows)
        if len(word) == 1:
            matrix = word[0].matrix()
        parts.append(scale * matrix if scale != 1 else matrix)
    if not parts:
        return sp.ZeroMatrix(rows, columns)
    return sp.MatAdd(*parts) if len(parts) > 1 else parts[0]
