"""Print expressions as plain ASCII."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.str import StrPrinter

from derive.algebra import nodes
from derive.algebra.nodes import TAU
from derive.language.vectors import Apply, Mix, Project
from derive.printing.layout import in_reading_order, is_memory, juxtaposed, split_product
from derive.printing.lettering import plain_letter
from derive.printing.notation import NotationPrinter

PLAIN_SYMBOLS = {"s_map": "s", "z_outlier": "z_out"}


def in_brackets(rows: list[list[str]]) -> str:
    """Return the entries of a matrix, one row per line, in columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "[ " + "  ".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)) + " ]" for row in rows
    )


class TextPrinter(NotationPrinter, StrPrinter):
    """SymPy's text printer with the nodes of this project; products are written with spaces, powers with ^."""

    printmethod = ""
    """Disables the nodes' own printing, which reproduces the declaration; the methods below print all of them."""
    one, top, gap, comma, tau, anywhere = "1", "^T", " ", ",", "tau", "."
    forms = {
        "parentheses": "({})",
        "block": "A[{},{}]",
        "right side": "q0[{}]",
        "overlap": "<{} {}>",
        "drive": "b_{}[{}]",
        "conjugate": "X[{}]",
        "dot": "({} . {})",
        "flow": "d/d{} {}",
        "mean": "<{}>",
        "square": "{}^2",
        "slope": "d {}/d {}",
        "alignment": "cos^2(outlier, {})",
        "project": "{} ({} . {})",
        "entries": "entries({})",
        "root": "root({})",
        "cycle": " <- ",
        "sum": "sum_s {}",
        "integral": "int_0^tau dtau' {}",
        "differential": "d {}",
        "deltas": "int {} delta(their equations)",
        "weight": "diag[{}]",
        "diagonal": "diag({})",
    }

    def _word(self, symbol: Any) -> str:
        return self._letter(symbol) or str(symbol.name)

    def _written(self, latex: str) -> str:
        letter = plain_letter(latex)
        return f"({letter})" if " " in letter and "{" not in letter and not letter.startswith("hat ") else letter

    def _source(self) -> str:
        return str(self.names.source)

    def _scalar(self, scalar: sp.Expr) -> str:
        value = self._print(scalar)
        return f"({value})" if scalar.is_Add or "/" in value else value

    # -- names

    def _index(self, *names: str) -> str:
        return "[" + (", " if any(" " in n for n in names) else ",").join(names) + "]"

    def _engine_word(self, name: str) -> str:
        return PLAIN_SYMBOLS.get(name, name)

    # -- values

    def _time(self, time: sp.Expr) -> str:
        return str(self._print(time).replace(" + ", "+").replace(" - ", "-"))

    def _print_Noise(self, noise: sp.Basic) -> str:
        name = self._noise_name(noise.field)
        if noise.time is None:
            return name
        return f"{name}({self._tau() if noise.time == TAU else self._time(noise.time)})"

    def _print_Hat(self, node: sp.Basic) -> str:
        hat = None if self.letters is None else self.letters.hats.get(node.value.field)
        if hat is not None:
            return self._written(hat) + self._argument(node.value)
        return f"hat {self._print(node.value)}"

    def _print_LabelSelection(self, node: sp.Basic) -> str:
        rows, columns = (", ".join(map(str, axes)) or "1" for axes in (node.rows, node.named))
        return f"1[{rows}; {columns}]"

    def _print_Total(self, node: sp.Basic) -> str:
        return f"total({', '.join(map(self._print, node.args))})"

    def _print_Softmax(self, node: sp.Basic) -> str:
        return f"softmax({', '.join(map(self._print, node.args))})"

    # -- functions used in records

    def _function_word(self, name: str) -> str:
        return self._meaning(name)

    def _hatted(self, name: str) -> str:
        return f"hat {name}"

    def _print_Function(self, node: sp.Basic) -> str:
        if not isinstance(node, AppliedUndef):
            return str(super()._print_Function(node))
        return self._applied(node.func.__name__, node.args)

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

    def _print_BlockMatrix(self, node: sp.Basic) -> str:
        rows, columns = node.blockshape
        return in_brackets([[self._print(node.blocks[r, c]) for c in range(columns)] for r in range(rows)])

    # -- matrices of a declaration

    def _print_LabelTable(self, node: sp.Basic) -> str:
        table = f"{self._print(node.value)}{'^T' if node.transposed else ''}"
        return table if node.scale == 1 else f"{self._factor(node.scale)} {table}"
