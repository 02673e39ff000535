"""Print expressions as LaTeX for amsmath."""

from __future__ import annotations

import re
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.latex import LatexPrinter

from derive.algebra import nodes
from derive.language import matrices
from derive.printing.layout import in_reading_order, juxtaposed, signed, split_product
from derive.printing.lettering import hatted
from derive.printing.names import latex_name, latex_symbol
from derive.printing.notation import NotationPrinter

TOP = r"^{\top}"
LATEX_SYMBOLS = {
    "s_map": "s",
    "s_critical": r"s_{\mathrm{c}}",
    "z_edge": r"z_{\mathrm{edge}}",
    "z_outlier": r"z_{\mathrm{out}}",
}


class TexPrinter(NotationPrinter, LatexPrinter):
    """SymPy's LaTeX printer with the nodes of this project."""

    printmethod = None  # nodes say themselves that they are printed here
    one, top, gap, comma, tau, anywhere = r"\mathbf{1}", TOP, r"\, ", ", ", r"\tau", r"\cdot"
    forms = {
        "parentheses": r"\left({}\right)",
        "block": "A_{{{},{}}}",
        "right side": "q^{{(0)}}_{{{}}}",
        "overlap": r"\langle {}\, {} \rangle",
        "drive": r"b^{{\mathrm{{{}}}}}_{{{}}}",
        "conjugate": "X_{{{}}}",
        "dot": r"\bigl({} \cdot {}\bigr)",
        "flow": r"\partial_{{{}}} {}",
        "mean": r"\left\langle {} \right\rangle",
        "square": "{}^{{2}}",
        "slope": r"\frac{{\partial {}}}{{\partial {}}}",
        "alignment": r"\cos^2 \bigl(\mathrm{{outlier}},\, {}\bigr)",
        "project": r"{}\, \bigl({} \cdot {}\bigr)",
        "entries": "{}",
        "root": r"\sqrt{{{}}}",
        "cycle": r" \leftarrow ",
        "sum": r"\sum_{{s}} {}",
        "integral": r"\int_{{0}}^{{\tau}} \mathrm{{d}}\tau'\, {}",
        "differential": r"\mathrm{{d}}{}",
        "deltas": r"\int {}\; \delta(\text{{their equations}})",
        "weight": r"\mathrm{{diag}}\left[{}\right]",
        "diagonal": r"\mathrm{{diag}}\left({}\right)",
    }
    marks = "$"

    def _word(self, symbol: Any) -> str:
        return self._letter(symbol) or latex_symbol(symbol)

    def _written(self, latex: str) -> str:
        return f"{{{latex}}}" if re.search(r"[\^']", latex) else latex  # a power or a transpose may follow

    # -- names

    def _index(self, *names: str) -> str:
        composed = any(" " in name for name in names)
        return "_{" + (", " if composed else " ").join(names) + "}"

    def _engine_word(self, name: str) -> str:
        return LATEX_SYMBOLS.get(name) or latex_name(name)

    # -- values

    def _source(self) -> str:
        return latex_name(self.names.source)

    def _print_Noise(self, noise: sp.Basic) -> str:
        return self._noise_name(noise.field) + self._argument(noise)

    def _print_Hat(self, node: sp.Basic) -> str:
        field = node.value.field
        letter = None if self.letters is None else self.letters.hats.get(field) or self.letters.word(field)
        if letter is not None and self.letters is not None:
            return self._written(letter if field in self.letters.hats else hatted(letter)) + self._argument(node.value)
        if field in self.names.products:
            return rf"\widehat{{{self._print_Field(field)}}}{self._argument(node.value)}"
        return latex_symbol(field, accent=r"\hat") + self._argument(node.value)

    def _print_LabelSelection(self, node: sp.Basic) -> str:
        rows, columns = (",".join(map(self._print, axes)) for axes in (node.rows, node.named))
        return rf"1_{{{rows};{columns}}}"

    def _print_Total(self, node: sp.Basic) -> str:
        over = r"\mathrm{labels}" if node.axis is None else self._print(node.axis)
        return rf"\sum_{{{over}}} {self._factor(node.expression)}"

    def _print_Softmax(self, node: sp.Basic) -> str:
        return rf"\mathrm{{softmax}}_{{{self._print(node.axis)}}}\left({self._print(node.expression)}\right)"

    # -- functions used in records

    def _print_Function(self, node: sp.Basic, exp: str | None = None) -> str:
        if not isinstance(node, AppliedUndef):
            return str(super()._print_Function(node, exp))
        printed = self._applied(node.func.__name__, node.args)
        return printed if exp is None else rf"\left({printed}\right)^{{{exp}}}"

    def _function_word(self, name: str) -> str:
        return latex_name(name)

    def _hatted(self, name: str) -> str:
        bare = name[1:-1] if name.startswith("{") and name.endswith("}") else name
        return f"{{{hatted(bare)}}}"

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
            return self._matrix_terms(expression)
        if isinstance(expression, matrices.SumOfMatrices):
            parts = [(scale, self._print(part)) for scale, part in expression.terms]
            return self._matrix_parts(parts) if parts else [(False, "0")]
        if not getattr(expression, "is_Add", False):
            return [signed(self._print(expression))]
        return self._sum_terms(expression)

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

    def _print_BlockMatrix(self, node: sp.Basic) -> str:
        rows = [
            " & ".join(self._print(node.blocks[r, c]) for c in range(node.blockshape[1]))
            for r in range(node.blockshape[0])
        ]
        return "\\begin{bmatrix}\n" + " \\\\\n".join(rows) + "\n\\end{bmatrix}"

    # -- matrices of a declaration

    def _print_LabelTable(self, node: sp.Basic) -> str:
        table = f"{self._print(node.value)}{TOP if node.transposed else ''}"
        return table if node.scale == 1 else rf"{self._scalar(node.scale)}\, {table}"
