"""SymPy expressions as readable array code, for JAX and for NumPy."""

from __future__ import annotations

import sympy as sp
from sympy.printing.codeprinter import PrintMethodNotImplementedError
from sympy.printing.numpy import JaxPrinter, NumPyPrinter

from derive.errors import DeclarationError
from derive.language.matrices import Apply
from derive.language.vectors import FieldAt, Mean, Project


class _Short:
    """Shared by both printers: plain symbols, short module names, and a clear word for what cannot be printed."""

    def _print_Symbol(self, expr) -> str:
        return expr.name

    def _print_MatrixSymbol(self, expr) -> str:
        return expr.name

    def _print_AppliedUndef(self, expr) -> str:
        return f"{expr.func.__name__}[{', '.join(map(self._print, expr.args))}]"

    def _nested(self, name: str, arguments) -> str:
        first, *rest = arguments
        return self._print(first) if not rest else f"{name}({self._print(first)}, {self._nested(name, rest)})"

    def _print_Max(self, expr) -> str:
        return self._nested(f"{self.short}.maximum", expr.args)

    def _print_Min(self, expr) -> str:
        return self._nested(f"{self.short}.minimum", expr.args)

    def _print_KroneckerDelta(self, expr) -> str:
        return f"({self._print(expr.args[0])} == {self._print(expr.args[1])})"

    def _refuse(self, expr) -> str:
        raise DeclarationError(f"{expr} cannot be written as array code; use functions that NumPy and JAX have")

    emptyPrinter = _refuse


class JaxCode(_Short, JaxPrinter):
    """Prints with jnp and jsp (jax.scipy.special)."""

    short = "jnp"

    def _print_erf(self, expr) -> str:
        return f"jsp.erf({self._print(expr.args[0])})"

    def _print_erfc(self, expr) -> str:
        return f"jsp.erfc({self._print(expr.args[0])})"

    def _print_gamma(self, expr) -> str:
        return f"jsp.gamma({self._print(expr.args[0])})"


class NumpyCode(_Short, NumPyPrinter):
    """Prints with np and scipy.special as sc."""

    short = "np"

    def _print_erf(self, expr) -> str:
        return f"sc.erf({self._print(expr.args[0])})"

    def _print_erfc(self, expr) -> str:
        return f"sc.erfc({self._print(expr.args[0])})"

    def _print_gamma(self, expr) -> str:
        return f"sc.gamma({self._print(expr.args[0])})"


def jax_code(expression: sp.Basic, names: dict | None = None) -> str:
    """JAX source of an expression; `names` maps nodes to variable names."""
    return _printed(JaxCode(), expression, names).replace("jax.numpy.", "jnp.")


def numpy_code(expression: sp.Basic, names: dict | None = None) -> str:
    """NumPy source of an expression."""
    return _printed(NumpyCode(), expression, names).replace("numpy.", "np.")


def _printed(printer, expression: sp.Basic, names: dict | None) -> str:
    try:
        code = printer.doprint(_named(expression, names))
    except PrintMethodNotImplementedError as error:
        raise DeclarationError(
            f"{expression} cannot be written as array code; use functions that NumPy and JAX have"
        ) from error
    if "Not supported" in code:
        raise DeclarationError(f"{expression} cannot be written as array code; use functions that NumPy and JAX have")
    return code


def _named(expression: sp.Basic, names: dict | None) -> sp.Basic:
    expression = sp.sympify(expression)
    if names:
        expression = expression.xreplace({node: sp.Symbol(name) for node, name in names.items()})
    left = expression.atoms(FieldAt, Mean, Apply, Project)
    if left:
        raise DeclarationError(f"{sorted(map(str, left))[0]} stands where only numbers may stand")
    return expression
