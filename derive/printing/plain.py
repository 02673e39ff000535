"""Print expressions as plain ASCII."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.str import StrPrinter

from derive.algebra import nodes
from derive.algebra.nodes import TAU
from derive.language import matrices
from derive.language.symbols import EngineSymbol
from derive.language.traversal import ByKind
from derive.language.vectors import Apply, Field, Mix, Project
from derive.printing.layout import (
    Times,
    in_reading_order,
    is_memory,
    is_negative,
    juxtaposed,
    matrix_terms,
    memory_is_spectral,
    ordered_terms,
    signed,
    signed_sum,
    split_product,
)
from derive.printing.names import Conjugate, OverlapName, PairName, PrintedNames

PLAIN_SYMBOLS = {"s_map": "s", "z_outlier": "z_out"}


def in_brackets(rows: list[list[str]]) -> str:
    """Return the entries of a matrix, one row per line, in columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "[ " + "  ".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)) + " ]" for row in rows
    )


class TextPrinter(StrPrinter):
    """SymPy's text printer with the nodes of this project; products are written with spaces, powers with ^."""

    printmethod = ""
    """Disables the nodes' own printing, which reproduces the declaration; the methods below print all of them."""

    def __init__(self, names: PrintedNames | None = None):
        super().__init__({"order": None})
        self.names = names or PrintedNames()
        self.times = Times()

    # -- names

    def _print_Field(self, field: Field) -> str:
        if field in self.names.products:
            return f"({self._product(field)})"
        return "1" if field.role == "constant" else field.name

    def _product(self, field: Field) -> str:
        if field not in self.names.products:
            return self._print_Field(field)
        product = self.names.products[field]
        return f"{product.matrix}{'^T' if product.transposed else ''} {self._product(product.argument)}"

    def _index(self, *fields: Field) -> str:
        names = [self._product(f) for f in fields]
        return "[" + (", " if any(" " in n for n in names) else ",").join(names) + "]"

    def _print_Symbol(self, symbol: sp.Symbol) -> str:
        if not isinstance(symbol, EngineSymbol) and type(symbol) is not sp.Symbol:
            return str(symbol.name)
        return self._meaning(symbol.name)

    def _meaning(self, name: str) -> str:
        return self._meant(self.names.symbols.get(name), name)

    @ByKind
    def _meant(self, meaning: Any, name: str) -> str:
        block = re.fullmatch(r"A_(\d+)_(\d+)", name)
        if block:
            return f"A[{block[1]},{block[2]}]"
        right = re.fullmatch(r"q0_(\d+)", name)
        return f"q0[{right[1]}]" if right else PLAIN_SYMBOLS.get(name, name)

    @_meant.on(PairName)
    def _(self, meaning: PairName, name: str) -> str:
        fields = (meaning.a,) if meaning.b is None else (meaning.a, meaning.b)
        places = ",".join("." if time is None else self._time(time) for time in meaning.places)
        return meaning.kind + self._index(*fields) + ("(z)" if meaning.of_z else f"({places})" if places else "")

    @_meant.on(OverlapName)
    def _(self, meaning: OverlapName, name: str) -> str:
        return f"<{self.names.source} {self._print_Field(meaning.field)}>"

    @_meant.on(Conjugate)
    def _(self, meaning: Conjugate, name: str) -> str:
        return f"X[{meaning.matrix}]"

    def _print_MatrixSymbol(self, symbol: sp.MatrixSymbol) -> str:
        return self._meaning(symbol.name)

    _print_Parameter = _print_Sector = _print_Clock = _print_Disorder = _print_Weights = _print_Symbol

    # -- values

    def _time(self, time: sp.Expr) -> str:
        return str(self._print(time).replace(" + ", "+").replace(" - ", "-"))

    def _tau(self) -> str:
        return "tau'" if self.times.later else "tau"

    def _print_FieldAt(self, value: sp.Basic) -> str:
        name = self._print_Field(value.field)
        if value.field.role == "spectral":
            return f"{name}({self._tau()})"
        return f"{name}({self._time(value.time)})" if value.time is not None else name

    def _print_Noise(self, noise: sp.Basic) -> str:
        name = "u" + self._index(noise.field)
        if noise.time is None:
            return name
        return f"{name}({self._tau() if noise.time == TAU else self._time(noise.time)})"

    def _order_parameter(self, kind: str, left: sp.Basic, right: sp.Basic, times: Sequence[sp.Basic]) -> str:
        name = kind + self._index(left, right)
        if times == (TAU, TAU):
            return f"{name}(tau,tau')"
        return f"{name}({','.join(map(self._time, times))})" if times else name

    def _print_Correlation(self, node: sp.Basic) -> str:
        return self._order_parameter("C", node.left, node.right, node.times)

    def _print_Response(self, node: sp.Basic) -> str:
        return self._order_parameter("R", node.left, node.noise, node.times)

    def _print_Hat(self, node: sp.Basic) -> str:
        return f"hat {self._print(node.value)}"

    def _print_Dot(self, node: sp.Basic) -> str:
        left, right = self.times.pair(self, node.left, node.right)
        return f"({left} . {right})"

    def _print_ProbeSource(self, node: sp.Basic) -> str:
        return f"{self.names.source}({self._tau()})"

    def _print_TauDerivative(self, node: sp.Basic) -> str:
        return f"d/d{self._tau()} {self._print(node.value)}"

    def _print_Mean(self, node: sp.Basic) -> str:
        return f"<{self._print(node.expression)}>"

    def _print_Alignment(self, node: sp.Basic) -> str:
        return f"cos^2(outlier, {self._print(node.direction)})"

    def _print_Apply(self, node: sp.Basic) -> str:
        return f"{self._print(node.matrix)}{'^T' if node.transposed else ''} {self._factor(node.vector)}"

    def _print_Project(self, node: sp.Basic) -> str:
        return f"{self._factor(node.left)} ({self._factor(node.right)} . {self._factor(node.vector)})"

    def _print_Mix(self, node: sp.Basic) -> str:
        return f"{self._print(node.table)}{'^T' if node.transposed else ''} {self._factor(node.vector)}"

    def _print_LabelSelection(self, node: sp.Basic) -> str:
        rows, columns = (", ".join(map(str, axes)) or "1" for axes in (node.rows, node.named))
        return f"1[{rows}; {columns}]"

    def _print_Total(self, node: sp.Basic) -> str:
        return f"total({', '.join(map(self._print, node.args))})"

    def _print_Softmax(self, node: sp.Basic) -> str:
        return f"softmax({', '.join(map(self._print, node.args))})"

    def _print_EntriesAt(self, node: sp.Basic) -> str:
        return f"entries({self._print_DataAt(node)})"

    def _print_RootAt(self, node: sp.Basic) -> str:
        return f"root({self._print_DataAt(node)})"

    def _print_Each(self, node: sp.Basic) -> str:
        return str(self._print(node.expression))

    def _print_DataAt(self, node: sp.Basic) -> str:
        return f"{node.data}" if node.time is None else f"{node.data}({self._time(node.time)})"

    def _print_WeightsAt(self, node: sp.Basic) -> str:
        return f"{node.args[0]}({self._time(node.time)})"

    _print_DisorderAt = _print_WeightsAt

    # -- functions used in records

    def _print_Function(self, node: sp.Basic) -> str:
        name, arguments = node.func.__name__, node.args
        if not isinstance(node, AppliedUndef):
            return str(super()._print_Function(node))
        if is_memory(node):
            return self._memory(arguments[0])
        if name in ("mean", "cov"):
            if len(arguments) == 2:
                left, right = self.times.pair(self, *arguments)
                return f"<{left}^2>" if left == right else f"<{left} {right}>"
            return f"<{self._print(arguments[0])}>"
        if name == "d":
            return "d {}/d {}".format(*self.times.pair(self, *arguments))
        if name == "outer":
            return f"{self._print(arguments[0])} {self._print(arguments[1])}^T"
        if name == "cycle":
            return " <- ".join(self._print(group) for group in arguments)
        return f"{self._meaning(name)}({','.join(map(self._time, arguments))})"

    def _memory(self, body: sp.Expr) -> str:
        if memory_is_spectral(body):
            return f"int_0^tau dtau' {self.times.later_copy(self, body)}"
        return f"sum_s {self._print(body)}"

    def _print_Sum(self, node: sp.Basic) -> str:
        if len(node.limits) != 1 or node.limits[0][1] != 0:
            return str(super()._print_Sum(node))
        index, _, high = node.limits[0]
        body = self._print(node.function)
        limit = f"{index}<={self._time(high)}" if high.is_Symbol else f"{index}<{self._time(high + 1)}"
        return f"sum_{{{limit}}} " + (f"({body})" if node.function.is_Add else body)

    def _print_KroneckerDelta(self, node: sp.Basic) -> str:
        return f"delta({','.join(map(self._time, node.args))})"

    # -- sums, products, powers

    def _print_Add(self, expression: sp.Basic, order: str | None = None) -> str:
        return signed_sum(
            [
                signed(f"({self._print(term)})" if term.is_Add else self._print(term))
                for term in ordered_terms(expression)
            ]
        )

    def _factor(self, factor: sp.Expr) -> str:
        return f"({self._print(factor)})" if factor.is_Add or factor.is_Mul else self._print(factor)

    def _print_Mul(self, expression: sp.Basic) -> str:
        negative, above, below, values, sums = split_product(expression)
        scalar = juxtaposed([self._factor(x) for x in in_reading_order(above, self.names)], " ", " * ")
        follow = " ".join(
            [
                *map(self._factor, values),
                *(f"({self._print(x)})" for x in sums[:-1]),
                *(self._print(x) for x in sums[-1:]),
            ]
        )
        if below:
            under = juxtaposed([self._factor(x) for x in below], " ", " * ")
            under = f"({under})" if len(below) > 1 else under
            if not scalar and follow and not sums:
                text = f"{follow}/{under}"
            else:
                text = f"{scalar or '1'}/{under}"
                text = f"({text}) {follow}" if follow else text
        else:
            text = " ".join(part for part in (scalar, follow) if part) or "1"
        return f"-{text}" if negative else text

    def _print_Pow(self, expression: sp.Basic, rational: bool = False) -> str:
        base, exponent = expression.base, expression.exp
        if exponent == sp.Rational(1, 2):
            return f"sqrt({self._print(base)})"
        if exponent.is_Number and exponent.is_negative:
            return f"1/{self._factor(base ** (-exponent))}"
        printed = self._print(base)
        fraction = base.is_Number and not (base.is_Integer and base.is_nonnegative)
        compound = base.is_Add or base.is_Mul or base.is_Pow or fraction or is_memory(base)
        if compound or isinstance(base, (sp.Sum, nodes.Hat, nodes.TauDerivative, Apply, Mix, Project)):
            printed = f"({printed})"
        raised = self._print(exponent)
        return f"{printed}^{raised if exponent.is_Integer or exponent.is_Symbol else f'({raised})'}"

    # -- matrices over training times

    def _print_MatAdd(self, expression: sp.Basic) -> str:
        return signed_sum(
            self._matrix_parts(
                [(scalar, " ".join(map(self._matrix_factor, factors))) for scalar, factors in matrix_terms(expression)]
            )
        )

    def _matrix_parts(self, parts: list[tuple[sp.Expr, str]]) -> list[tuple[bool, str]]:
        found = []
        for scalar, printed in parts:
            negative = is_negative(scalar)
            scalar = -scalar if negative else scalar
            value = self._print(scalar)
            if scalar != 1:
                printed = f"({value}) {printed}" if scalar.is_Add or "/" in value else f"{value} {printed}"
            found.append((negative, printed))
        return found

    _print_MatMul = _print_MatAdd

    def _matrix_factor(self, factor: sp.MatrixExpr) -> str:
        printed = self._print(factor)
        return f"({printed})" if isinstance(factor, (sp.MatAdd, sp.MatMul)) else printed

    def _print_Transpose(self, node: sp.Basic) -> str:
        return f"{self._matrix_factor(node.arg)}^T"

    def _print_Identity(self, node: sp.Basic) -> str:
        return "I"

    def _print_ZeroMatrix(self, node: sp.Basic) -> str:
        return "0"

    def _print_DiagonalWeight(self, node: sp.Basic) -> str:
        return f"diag[{self._print(node.weight)}]"

    def _print_BlockMatrix(self, node: sp.Basic) -> str:
        rows, columns = node.blockshape
        return in_brackets([[self._print(node.blocks[r, c]) for c in range(columns)] for r in range(rows)])

    def _print_Tuple(self, node: sp.Basic) -> str:
        return "(" + ", ".join(map(self._print, node)) + ")"

    # -- matrices of a declaration

    def _print_MatrixAtom(self, node: sp.Basic) -> str:
        return str(self._print(node.symbol) + ("^T" if node.transposed else ""))

    def _print_Dyad(self, node: sp.Basic) -> str:
        return f"{self._factor(node.left)} {self._factor(node.right)}^T"

    def _print_DiagonalMatrix(self, node: sp.Basic) -> str:
        return f"diag({self._print(node.entries)})"

    def _print_Evolving(self, node: sp.Basic) -> str:
        return str(self._print(node.weights))

    def _print_GivenData(self, node: sp.Basic) -> str:
        return str(node.data)

    def _print_LabelTable(self, node: sp.Basic) -> str:
        table = f"{self._print(node.value)}{'^T' if node.transposed else ''}"
        return table if node.scale == 1 else f"{self._factor(node.scale)} {table}"

    def _print_ProductOfMatrices(self, node: sp.Basic) -> str:
        return " ".join(
            f"({self._print(f)})" if isinstance(f, matrices.SumOfMatrices) else self._print(f) for f in node.factors
        )

    def _print_SumOfMatrices(self, node: matrices.SumOfMatrices) -> str:
        return signed_sum(self._matrix_parts([(scale, self._print(part)) for scale, part in node.terms])) or "0"
