"""Print expressions as LaTeX for amsmath."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.latex import LatexPrinter

from derive.algebra import nodes
from derive.algebra.nodes import TAU
from derive.language import matrices
from derive.language.symbols import EngineSymbol
from derive.language.traversal import ByKind
from derive.language.vectors import Field
from derive.printing.layout import (
    Times,
    in_reading_order,
    is_negative,
    juxtaposed,
    matrix_terms,
    memory_is_spectral,
    ordered_terms,
    signed,
    signed_sum,
    split_product,
)
from derive.printing.names import Conjugate, Drive, OverlapName, PairName, PrintedNames, latex_name, latex_symbol

TOP = r"^{\top}"
LATEX_SYMBOLS = {
    "s_map": "s",
    "s_critical": r"s_{\mathrm{c}}",
    "z_edge": r"z_{\mathrm{edge}}",
    "z_outlier": r"z_{\mathrm{out}}",
}


class TexPrinter(LatexPrinter):
    """SymPy's LaTeX printer with the nodes of this project."""

    printmethod = None  # nodes say themselves that they are printed here

    def __init__(self, names: PrintedNames | None = None):
        super().__init__({"order": None})
        self.names = names or PrintedNames()
        self.times = Times()

    # -- names

    def _print_Field(self, field: Field) -> str:
        if field in self.names.products:
            return f"({self._product(field)})"
        return r"\mathbf{1}" if field.role == "constant" else latex_symbol(field)

    def _product(self, field: Field) -> str:
        if field not in self.names.products:
            return self._print_Field(field)
        product = self.names.products[field]
        return f"{latex_symbol(product.matrix)}{TOP if product.transposed else ''} {self._product(product.argument)}"

    def _index(self, *fields: Field) -> str:
        names = [self._product(f) for f in fields]
        composed = any(f in self.names.products for f in fields)
        return "_{" + (", " if composed else " ").join(names) + "}"

    def _print_Symbol(self, symbol: sp.Symbol, style: str = "plain") -> str:
        engine = isinstance(symbol, EngineSymbol) or type(symbol) is sp.Symbol
        return self._meaning(symbol.name) if engine else latex_symbol(symbol)

    def _meaning(self, name: str) -> str:
        return self._meant(self.names.symbols.get(name), name)

    @ByKind
    def _meant(self, meaning: Any, name: str) -> str:
        block = re.fullmatch(r"A_(\d+)_(\d+)", name)
        if block:
            return f"A_{{{block[1]},{block[2]}}}"
        right = re.fullmatch(r"q0_(\d+)", name)
        if right:
            return f"q^{{(0)}}_{{{right[1]}}}"
        return LATEX_SYMBOLS.get(name) or latex_name(name)

    @_meant.on(PairName)
    def _(self, meaning: PairName, name: str) -> str:
        fields = (meaning.a,) if meaning.b is None else (meaning.a, meaning.b)
        places = ", ".join(r"\cdot" if time is None else self._print(time) for time in meaning.places)
        return meaning.kind + self._index(*fields) + ("(z)" if meaning.of_z else f"({places})" if places else "")

    @_meant.on(OverlapName)
    def _(self, meaning: OverlapName, name: str) -> str:
        return rf"\langle {self._source()}\, {self._print_Field(meaning.field)} \rangle"

    @_meant.on(Drive)
    def _(self, meaning: Drive, name: str) -> str:
        if meaning.unknown.b is None:
            return self._meant(None, name)
        unknown = meaning.unknown.kind + self._index(meaning.unknown.a, meaning.unknown.b)
        return rf"b^{{\mathrm{{{meaning.side}}}}}_{{{unknown}}}"

    @_meant.on(Conjugate)
    def _(self, meaning: Conjugate, name: str) -> str:
        return f"X_{{{latex_symbol(meaning.matrix)}}}"

    def _print_MatrixSymbol(self, symbol: sp.MatrixSymbol, style: str = "plain") -> str:
        return self._meaning(symbol.name)

    _print_Parameter = _print_Sector = _print_Clock = _print_Disorder = _print_Weights = _print_Symbol

    # -- values

    def _source(self) -> str:
        return latex_name(self.names.source)

    def _tau(self) -> str:
        return r"\tau'" if self.times.later else r"\tau"

    def _argument(self, value: sp.Basic) -> str:
        if value.field.role == "spectral":
            return f"({self._tau()})"
        return f"({self._print(value.time)})" if value.time is not None else ""

    def _print_FieldAt(self, value: sp.Basic) -> str:
        return self._print_Field(value.field) + self._argument(value)

    def _print_Noise(self, noise: sp.Basic) -> str:
        return "u" + self._index(noise.field) + self._argument(noise)

    def _order_parameter(self, kind: str, left: sp.Basic, right: sp.Basic, times: Sequence[sp.Basic]) -> str:
        name = kind + self._index(left, right)
        if times == (TAU, TAU):
            return rf"{name}(\tau, \tau')"
        return f"{name}({', '.join(map(self._print, times))})" if times else name

    def _print_Correlation(self, node: sp.Basic) -> str:
        return self._order_parameter("C", node.left, node.right, node.times)

    def _print_Response(self, node: sp.Basic) -> str:
        return self._order_parameter("R", node.left, node.noise, node.times)

    def _print_Hat(self, node: sp.Basic) -> str:
        field = node.value.field
        if field in self.names.products:
            return rf"\widehat{{{self._print_Field(field)}}}{self._argument(node.value)}"
        return latex_symbol(field, accent=r"\hat") + self._argument(node.value)

    def _print_Dot(self, node: sp.Basic) -> str:
        left, right = self.times.pair(self, node.left, node.right)
        return rf"\bigl({left} \cdot {right}\bigr)"

    def _print_ProbeSource(self, node: sp.Basic) -> str:
        return f"{self._source()}({self._tau()})"

    def _print_TauDerivative(self, node: sp.Basic) -> str:
        return rf"\partial_{{{self._tau()}}} {self._print(node.value)}"

    def _print_Mean(self, node: sp.Basic) -> str:
        return rf"\left\langle {self._print(node.expression)} \right\rangle"

    def _print_Alignment(self, node: sp.Basic) -> str:
        return rf"\cos^2 \bigl(\mathrm{{outlier}},\, {self._print(node.direction)}\bigr)"

    def _print_Apply(self, node: sp.Basic) -> str:
        return rf"{self._print(node.matrix)}{TOP if node.transposed else ''}\, {self._factor(node.vector)}"

    def _print_Project(self, node: sp.Basic) -> str:
        return rf"{self._factor(node.left)}\, \bigl({self._factor(node.right)} \cdot {self._factor(node.vector)}\bigr)"

    def _print_Mix(self, node: sp.Basic) -> str:
        return rf"{self._print(node.table)}{TOP if node.transposed else ''}\, {self._factor(node.vector)}"

    def _print_LabelSelection(self, node: sp.Basic) -> str:
        rows, columns = (",".join(map(self._print, axes)) for axes in (node.rows, node.named))
        return rf"1_{{{rows};{columns}}}"

    def _print_Total(self, node: sp.Basic) -> str:
        over = r"\mathrm{labels}" if node.axis is None else self._print(node.axis)
        return rf"\sum_{{{over}}} {self._factor(node.expression)}"

    def _print_Softmax(self, node: sp.Basic) -> str:
        return rf"\mathrm{{softmax}}_{{{self._print(node.axis)}}}\left({self._print(node.expression)}\right)"

    def _print_EntriesAt(self, node: sp.Basic) -> str:
        return self._print_DataAt(node)

    def _print_RootAt(self, node: sp.Basic) -> str:
        return rf"\sqrt{{{self._print_DataAt(node)}}}"

    def _print_Each(self, node: sp.Basic) -> str:
        return str(self._print(node.expression))

    def _print_DataAt(self, node: sp.Basic) -> str:
        name = latex_symbol(node.data)
        return name if node.time is None else f"{name}({self._print(node.time)})"

    def _print_WeightsAt(self, node: sp.Basic) -> str:
        return f"{latex_symbol(node.args[0])}({self._print(node.time)})"

    _print_DisorderAt = _print_WeightsAt

    # -- functions used in records

    def _print_Function(self, node: sp.Basic, exp: str | None = None) -> str:
        if not isinstance(node, AppliedUndef):
            return str(super()._print_Function(node, exp))
        printed = self._applied(node.func.__name__, node.args)
        return printed if exp is None else rf"\left({printed}\right)^{{{exp}}}"

    def _applied(self, name: str, arguments: tuple[Any, ...]) -> str:
        if name == "sum_s":
            return self._memory(arguments[0])
        if name in ("mean", "cov"):
            printed = self.times.pair(self, *arguments) if len(arguments) == 2 else (self._print(arguments[0]),)
            inner = f"{printed[0]}^{{2}}" if len(printed) == 2 and printed[0] == printed[1] else r"\, ".join(printed)
            return rf"\left\langle {inner} \right\rangle"
        if name == "d":
            return r"\frac{{\partial {}}}{{\partial {}}}".format(*self.times.pair(self, *arguments))
        if name == "outer":
            return rf"{self._print(arguments[0])}\, {self._print(arguments[1])}{TOP}"
        if name == "cycle":
            return r" \leftarrow ".join(self._print(group) for group in arguments)
        return f"{latex_name(name)}({', '.join(map(self._print, arguments))})"

    def _memory(self, body: sp.Expr) -> str:
        if memory_is_spectral(body):
            return rf"\int_{{0}}^{{\tau}} \mathrm{{d}}\tau'\, {self.times.later_copy(self, body)}"
        return rf"\sum_{{s}} {self._print(body)}"

    def _print_SumOfMatrices(self, node: matrices.SumOfMatrices) -> str:
        return signed_sum(self.terms(node))

    def _print_Sum(self, node: sp.Basic) -> str:
        if len(node.limits) != 1:
            return str(super()._print_Sum(node))
        index, low, high = node.limits[0]
        limits = rf"_{{{self._print(index)}={self._print(low)}}}^{{{self._print(high)}}}"
        body = self._print(node.function)
        return rf"\sum{limits} " + (rf"\left({body}\right)" if node.function.is_Add else body)

    def _print_KroneckerDelta(self, node: sp.Basic, exp: str | None = None) -> str:
        printed = rf"\delta_{{{', '.join(map(self._print, node.args))}}}"
        return printed if exp is None else f"{printed}^{{{exp}}}"

    # -- sums, products, powers

    def terms(self, expression: sp.Basic | matrices.MatrixExpression) -> list[tuple[bool, str]]:
        """Return the terms of a sum, each with its sign; line breaks go between them."""
        if isinstance(expression, sp.MatrixExpr) and not isinstance(expression, sp.BlockMatrix):
            return self._matrix_parts(
                [
                    (scalar, r"\, ".join(map(self._matrix_factor, factors)))
                    for scalar, factors in matrix_terms(expression)
                ]
            )
        if isinstance(expression, matrices.SumOfMatrices):
            parts = [(scale, self._print(part)) for scale, part in expression.terms]
            return self._matrix_parts(parts) if parts else [(False, "0")]
        if not getattr(expression, "is_Add", False):
            return [signed(self._print(expression))]
        return [
            signed(rf"\left({self._print(term)}\right)" if term.is_Add else self._print(term))
            for term in ordered_terms(expression)
        ]

    def _print_Add(self, expression: sp.Basic, order: str | None = None) -> str:
        return signed_sum(self.terms(expression))

    def _factor(self, factor: sp.Expr) -> str:
        printed = self._print(factor)
        return rf"\left({printed}\right)" if factor.is_Add or factor.is_Mul else printed

    def _print_Mul(self, expression: sp.Basic) -> str:
        negative, above, below, values, sums = split_product(expression)
        alone = len(above) == 1 and bool(below)
        scalar = juxtaposed(
            [self._print(x) if alone else self._factor(x) for x in in_reading_order(above, self.names)],
            r"\, ",
            r" \cdot ",
        )
        follow = r"\, ".join(
            [
                *map(self._factor, values),
                *(rf"\left({self._print(x)}\right)" for x in sums[:-1]),
                *map(self._print, sums[-1:]),
            ]
        )
        if below:
            parts = [self._print(x) if len(below) == 1 else self._factor(x) for x in below]
            under = juxtaposed(parts, r"\, ", r" \cdot ")
            scalar = rf"\frac{{{scalar or '1'}}}{{{under}}}"
        printed = r"\, ".join(part for part in (scalar, follow) if part) or "1"
        return f"-{printed}" if negative else printed

    def _print_Pow(self, expression: sp.Basic) -> str:
        base, exponent = expression.base, expression.exp
        if exponent == sp.Rational(1, 2):
            return rf"\sqrt{{{self._print(base)}}}"
        if exponent.is_Number and exponent.is_negative:
            return rf"\frac{{1}}{{{self._print(base ** (-exponent))}}}"
        printed = self._print(base)
        if not (
            base.is_Symbol
            or base.is_number
            and base.is_nonnegative
            and base.is_Integer
            or isinstance(base, (nodes.Correlation, nodes.Response, nodes.Noise))
            or hasattr(base, "field")
        ):
            printed = rf"\left({printed}\right)"
        raised = f"{exponent.p}/{exponent.q}" if exponent.is_Rational and exponent.q != 1 else self._print(exponent)
        return f"{printed}^{{{raised}}}"

    # -- matrices over training times

    def _matrix_parts(self, parts: list[tuple[sp.Expr, str]]) -> list[tuple[bool, str]]:
        found = []
        for scalar, printed in parts:
            negative = is_negative(scalar)
            scalar = -scalar if negative else scalar
            found.append((negative, printed if scalar == 1 else rf"{self._scalar(scalar)}\, {printed}"))
        return found

    def _scalar(self, scalar: sp.Expr) -> str:
        return rf"\left({self._print(scalar)}\right)" if scalar.is_Add else self._print(scalar)

    def _print_MatAdd(self, expression: sp.Basic) -> str:
        return signed_sum(self.terms(expression))

    _print_MatMul = _print_MatAdd

    def _matrix_factor(self, factor: sp.MatrixExpr) -> str:
        printed = self._print(factor)
        return rf"\left({printed}\right)" if isinstance(factor, (sp.MatAdd, sp.MatMul)) else printed

    def _print_Transpose(self, node: sp.Basic) -> str:
        return self._matrix_factor(node.arg) + TOP

    def _print_Identity(self, node: sp.Basic) -> str:
        return "I"

    def _print_ZeroMatrix(self, node: sp.Basic) -> str:
        return "0"

    def _print_DiagonalWeight(self, node: sp.Basic) -> str:
        return rf"\mathrm{{diag}}\left[{self._print(node.weight)}\right]"

    def _print_BlockMatrix(self, node: sp.Basic) -> str:
        rows = [
            " & ".join(self._print(node.blocks[r, c]) for c in range(node.blockshape[1]))
            for r in range(node.blockshape[0])
        ]
        return "\\begin{bmatrix}\n" + " \\\\\n".join(rows) + "\n\\end{bmatrix}"

    def _print_Tuple(self, node: sp.Basic) -> str:
        return "(" + ", ".join(map(self._print, node)) + ")"

    # -- matrices of a declaration

    def _print_MatrixAtom(self, node: sp.Basic) -> str:
        return str(self._print(node.symbol) + (TOP if node.transposed else ""))

    def _print_Dyad(self, node: sp.Basic) -> str:
        return rf"{self._factor(node.left)}\, {self._factor(node.right)}{TOP}"

    def _print_DiagonalMatrix(self, node: sp.Basic) -> str:
        return rf"\mathrm{{diag}}\left({self._print(node.entries)}\right)"

    def _print_Evolving(self, node: sp.Basic) -> str:
        return str(self._print(node.weights))

    def _print_GivenData(self, node: sp.Basic) -> str:
        return latex_symbol(node.data)

    def _print_LabelTable(self, node: sp.Basic) -> str:
        table = f"{self._print(node.value)}{TOP if node.transposed else ''}"
        return table if node.scale == 1 else rf"{self._scalar(node.scale)}\, {table}"

    def _print_ProductOfMatrices(self, node: sp.Basic) -> str:
        return r"\, ".join(
            rf"\left({self._print(f)}\right)" if isinstance(f, matrices.SumOfMatrices) else self._print(f)
            for f in node.factors
        )
