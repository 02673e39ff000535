"""Printers of programs as Python source; symbols get their names here, so that names cannot collide."""

from __future__ import annotations

import ast
import builtins
import keyword
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import sympy as sp
from sympy.printing.codeprinter import CodePrinter, PrintMethodNotImplementedError
from sympy.printing.numpy import JaxPrinter, NumPyPrinter
from sympy.printing.precedence import PRECEDENCE

from derive.errors import DeclarationError
from derive.language.symbols import Parameter
from derive.language.traversal import ByKind
from derive.printing.layout import is_negative, signed_sum, with_positive_first
from derive.program import nodes as ir

PARAMETERS = ir.Symbol("p")
"""The record of parameters and data, which are printed as its attributes."""


_RUNTIME = Path(__file__).parents[2] / "numerics" / "runtime"
ARRAY_FUNCTIONS = ("arange",)
"""Functions of NumPy and JAX; all others belong to the runtime."""
MACHINE, SHORT = 2**63, 10**40
"""Integers beyond MACHINE are printed as floats, beyond SHORT in hexadecimal, which Python reads at any length."""


@cache
def runtime_names(module: str) -> frozenset[str]:
    """Return the names that a module of numerics/runtime defines, read from its source without importing it."""
    body = ast.parse((_RUNTIME / f"{module}.py").read_text(encoding="utf-8")).body
    return frozenset(node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))


class ModuleNames:
    """Unique names for the symbols of one module."""

    def __init__(self, taken: Iterable[str] = ()):
        self.taken = {ir.UNUSED.hint, *taken, *keyword.kwlist, *dir(builtins)}
        self.given: dict[ir.Symbol, str] = {ir.UNUSED: ir.UNUSED.hint}

    def of(self, symbol: ir.Symbol) -> str:
        if symbol not in self.given:
            name = symbol.hint
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self.given[symbol] = name
        return self.given[symbol]


class NoCode(DeclarationError):
    """Raised for an expression that array libraries cannot evaluate; `functions` are the classes of its functions."""

    functions: tuple[type, ...] = ()

    @classmethod
    def of(cls, expression: sp.Basic) -> NoCode:
        error = cls(f"{expression} cannot be written as array code; use functions that NumPy and JAX have")
        nodes = sp.preorder_traversal(expression)
        error.functions = tuple(dict.fromkeys(type(node) for node in nodes if isinstance(node, sp.Function)))
        return error


class _Arithmetic(CodePrinter):
    """Rules that both printers share: a leaf is a slot or a symbol of the declaration."""

    module: str
    special: str

    def __init__(self, text: Text):
        super().__init__()
        self.text = text

    def _as_ordered_terms(self, expr: sp.Basic, order: str | None = None) -> list[sp.Basic]:
        """Return the terms as in derivation.md: a positive term first, if there is one."""
        return with_positive_first(super()._as_ordered_terms(expr, order))

    def _print_Slot(self, leaf: sp.Basic) -> str:
        return self.text.inside(leaf.value)

    def _print_Parameter(self, leaf: sp.Basic) -> str:
        return f"{self.text.names.of(PARAMETERS)}.{leaf.name}"

    _print_Data = _print_Parameter

    def _print_Symbol(self, leaf: sp.Basic) -> str:
        symbol = self.text.bound.get(leaf)
        if symbol is None:
            raise DeclarationError(f"{leaf} is not allowed where numbers are expected")
        return symbol if isinstance(symbol, str) else self.text.names.of(symbol)

    _print_Clock = _print_Sector = _print_Dummy = _print_Symbol

    def _print_Integer(self, expr: sp.Basic) -> str:
        # larger integers are not machine integers
        return str(expr) if abs(int(expr)) < MACHINE else self._decimal(expr)

    def _print_Rational(self, expr: sp.Basic) -> str:
        if max(abs(expr.p), expr.q) < MACHINE:
            return str(super()._print_Rational(expr))
        return self._decimal(expr)

    def _decimal(self, number: sp.Basic) -> str:
        value = float(number)
        if math.isinf(value):
            raise NoCode.of(number)
        return repr(value)

    def _print_Piecewise(self, expression: sp.Piecewise) -> str:
        """Print a conditional inside a condition with and, or and not: SymPy's simplification may not terminate."""
        plain = {node: node.to_nnf(simplify=False) for node in expression.atoms(sp.ITE)}
        while plain and expression.has(sp.ITE):
            expression = expression.xreplace(plain)
            plain = {node: node.to_nnf(simplify=False) for node in expression.atoms(sp.ITE)}
        return str(super()._print_Piecewise(expression))

    def _print_Pow(self, expr: sp.Basic, rational: bool = False) -> str:
        if expr.exp.is_Integer and expr.exp < 0:
            base = self.parenthesize(expr.base, PRECEDENCE["Pow"])
            return f"1 / {base}" if expr.exp == -1 else f"1 / {base}**{-expr.exp}"
        if not expr.exp.is_number and _may_be_whole(expr.base):
            # a negative power of a whole number is not a whole number: it must not be computed as one
            return f"(1.0 * {self.parenthesize(expr.base, PRECEDENCE['Mul'])})**({self._print(expr.exp)})"
        return str(super()._print_Pow(expr, rational=rational))

    def _nested(self, name: str, arguments: Sequence[sp.Basic]) -> str:
        first, *rest = arguments
        return self._print(first) if not rest else f"{name}({self._print(first)}, {self._nested(name, rest)})"

    def _print_Max(self, expr: sp.Basic) -> str:
        return self._nested(f"{self.module}.maximum", expr.args)

    def _print_Min(self, expr: sp.Basic) -> str:
        return self._nested(f"{self.module}.minimum", expr.args)

    def _print_And(self, expr: sp.Basic) -> str:
        return self._nested(f"{self.module}.logical_and", sorted(expr.args, key=sp.default_sort_key))

    def _print_Or(self, expr: sp.Basic) -> str:
        return self._nested(f"{self.module}.logical_or", sorted(expr.args, key=sp.default_sort_key))

    def _print_KroneckerDelta(self, expr: sp.Basic) -> str:
        # a number, since arrays of truth values have no negative
        return f"(1 * ({self._print(expr.args[0])} == {self._print(expr.args[1])}))"

    def _print_Heaviside(self, expr: sp.Basic) -> str:
        """Print the function itself: SymPy's Piecewise asks for the signs of roots, which it cannot always
        determine."""
        step, at_zero = expr.args
        return f"{self.module}.heaviside({self._print(step)}, {self._print(at_zero)})"

    def _print_factorial(self, expr: sp.Basic) -> str:
        return str(self._print(expr.rewrite(sp.gamma)))

    def _special(self, expr: sp.Basic) -> str:
        self.text.special = True
        return f"{self.special}.{expr.func.__name__}({self._print(expr.args[0])})"

    _print_erf = _print_erfc = _print_erfinv = _print_gamma = _special

    def _refuse(self, expr: sp.Basic) -> str:
        raise NoCode.of(expr)

    emptyPrinter = _refuse


def _may_be_whole(expression: sp.Expr) -> bool:
    """Return whether an expression may have an integer type: none of its leaves is a float."""
    return all(leaf.is_integer for leaf in expression.atoms(sp.Number, Parameter))


class _Jax(_Arithmetic, JaxPrinter):
    module, special = "jnp", "jsp"
    _module = "jnp"
    _kf = {name: value.replace("jax.numpy.", "jnp.") for name, value in JaxPrinter._kf.items()}
    _kc = {name: value.replace("jax.numpy.", "jnp.") for name, value in JaxPrinter._kc.items()}


class _Numpy(_Arithmetic, NumPyPrinter):
    module, special = "xp", "special"
    _module = "xp"
    _kf = {name: value.replace("numpy.", "xp.") for name, value in NumPyPrinter._kf.items()}
    _kc = {name: value.replace("numpy.", "xp.") for name, value in NumPyPrinter._kc.items()}


class _PlainNumpy(_Arithmetic, NumPyPrinter):
    module, special = "np", "sc"
    _module = "np"
    _kf = {name: value.replace("numpy.", "np.") for name, value in NumPyPrinter._kf.items()}
    _kc = {name: value.replace("numpy.", "np.") for name, value in NumPyPrinter._kc.items()}


_FOREIGN = re.compile(r"(?<![\w.])(?:math|cmath|scipy|numpy|jax|builtins)\.")
"""Modules that generated code does not import; SymPy falls back to them for functions that array libraries lack."""


class Text:
    """Prints values as array code. `bound` maps symbols of the declaration to their names in the code."""

    arithmetic: type[_Arithmetic] = _Jax

    def __init__(self, names: ModuleNames, bound: Mapping[sp.Symbol, ir.Symbol | str] | None = None):
        self.names = names
        self.bound = bound or {}
        self.called: dict[str, None] = {}
        """Runtime functions printed so far."""
        self.special = False
        """Whether special functions were printed."""
        self.closure = "x"
        """Name of the closure of a forward pass."""

    def formula(self, expression: sp.Basic) -> str:
        """Return the code of an expression."""
        try:
            code = self.arithmetic(self).doprint(expression)
        except PrintMethodNotImplementedError as error:
            raise NoCode.of(expression) from error
        except KeyError as error:  # SymPy looks some functions up in a table
            raise NoCode.of(expression) from error
        if "Not supported" in code or _FOREIGN.search(code):
            raise NoCode.of(expression)
        return str(code)

    @ByKind
    def value(self, value: ir.Value | int | None) -> str:
        """Return the code of a value, a whole number or None."""
        return repr(value)

    @value.on(ir.Value)
    def _no_text(self, value: ir.Value) -> str:
        raise AssertionError(f"{type(value).__name__} has no text")

    @value.on(ir.Ref)
    def _ref(self, value: ir.Ref) -> str:
        return self.names.of(value.symbol)

    @value.on(ir.Quoted)
    def _quoted(self, value: ir.Quoted) -> str:
        return repr(value.word)

    @value.on(ir.Attribute)
    def _attribute(self, value: ir.Attribute) -> str:
        return f"{self.names.of(value.owner)}.{value.name}"

    @value.on(ir.Item)
    def _item(self, value: ir.Item) -> str:
        return f"{self.names.of(value.owner)}[{', '.join(map(repr, value.keys))}]"

    @value.on(ir.Formula)
    def _formula(self, value: ir.Formula) -> str:
        return self.formula(value.expression)

    @value.on(ir.Call)
    def _call(self, value: ir.Call) -> str:
        arguments = ", ".join(map(self.value, value.arguments))
        if value.function in ARRAY_FUNCTIONS:
            return f"{self.arithmetic.module}.{value.function}({arguments})"
        self.called.setdefault(value.function)
        return f"{value.function}({arguments})"

    @value.on(ir.Op)
    def _op(self, value: ir.Op) -> str:
        return f"{self.closure}.{value.function}({', '.join(map(self.value, value.arguments))})"

    @value.on(ir.SiteProduct)
    def _product(self, value: ir.SiteProduct) -> str:
        vectors = " * ".join(map(self.inside, value.vectors))
        return vectors if value.factor.expression == 1 else f"{self.inside(value.factor)} * ({vectors})"

    @value.on(ir.MatMul)
    def _matmul(self, value: ir.MatMul) -> str:
        return f"{self.inside(value.left)} @ {self.inside(value.right)}"

    @value.on(ir.Transposed)
    def _transposed(self, value: ir.Transposed) -> str:
        return f"{self.inside(value.value)}.T"

    def _rows(self, value: ir.EntryTable | ir.Blocks) -> str:
        rows = (f"[{', '.join(map(self.value, row))}]" for row in value.rows)
        return f"[{', '.join(rows)}]"

    value.on(ir.EntryTable)(_rows)

    @value.on(ir.Function)
    def _function(self, value: ir.Function) -> str:
        return f"lambda {', '.join(map(self.names.of, value.arguments))}: {self.value(value.body)}"

    @value.on(ir.Tuple)
    def _tuple(self, value: ir.Tuple) -> str:
        return f"({joined(map(self.value, value.values))})"

    @ByKind
    def inside(self, value: ir.Value) -> str:
        """Return the code of a value as a factor or operand."""
        return f"({self.value(value)})"

    @inside.on(ir.Ref, ir.Attribute, ir.Item, ir.Call, ir.Op, ir.Transposed, ir.Blocks, ir.Tuple)
    def _plain(self, value: ir.Value) -> str:
        return self.value(value)

    @inside.on(ir.Formula)
    def _formula_inside(self, value: ir.Formula) -> str:
        code, expression = self.value(value), value.expression
        return code if expression.is_Symbol or (expression.is_Integer and expression >= 0) else f"({code})"

    @ByKind
    def summand(self, value: ir.Value) -> str:
        """Return the code of a value as a term of a sum."""
        return self.inside(value)

    @summand.on(ir.MatMul)
    def _matmul_summed(self, value: ir.MatMul) -> str:
        return self.value(value)

    @value.on(ir.WeightedSum)
    def _sum(self, value: ir.WeightedSum) -> str:
        if not value.terms and value.shape is None:
            return "0"
        if not value.terms:
            shape = ", ".join(self.formula(sp.sympify(d)) for d in ir.shape_of(value))
            return f"{self.arithmetic.module}.zeros(({shape}{',' if len(ir.shape_of(value)) == 1 else ''}))"
        parts = []
        for factor, term in value.terms:
            code = self.inside(term)
            if factor.expression == 1:
                parts.append(self.summand(term))
            elif factor.expression == -1:
                parts.append(f"-{code}")
            else:
                parts.append(f"{self.inside(factor)} * {code}")
        return " + ".join(parts)

    @value.on(ir.Blocks)
    def _blocks(self, value: ir.Blocks) -> str:
        def entry(block: ir.Value) -> str:
            return "0" if isinstance(block, ir.WeightedSum) and not block.terms else self.value(block)

        self.called.setdefault("block")
        remarks = (f"\n# {remark}\n" for remark in value.remarks)
        rows = (f"{next(remarks, '')}[{', '.join(map(entry, row))}]" for row in value.rows)
        sizes = [repeated(map(self.formula, some)) for some in (value.heights, value.widths)]
        return f"block([{', '.join(rows)}], {', '.join(dict.fromkeys(sizes))})"

    def lines(self, statements: Iterable[ir.Statement | ir.Do]) -> list[str]:
        """Return one line per statement, each below the lines of its remark."""
        lines = []
        for statement in statements:
            if statement.remark:
                lines += [f"# {line}" for line in statement.remark.splitlines()]
            names = ", ".join(map(self.names.of, statement.symbols))
            lines.append(f"{names} = {self.value(statement.value)}" if names else self.value(statement.value))
        return lines

    def function(self, definition: ir.Definition) -> list[str]:
        """Return the lines of a function, followed by two empty lines."""
        used: dict[ir.Symbol, None] = {}
        for value in (*(let.value for let in definition.body), definition.result):
            used |= ir.symbols_in(value)
        unpacking = [
            f"{joined(self.names.of(s) if s in used else '_' for s in parts)} = {self.names.of(whole)}"
            for whole, parts in definition.unpacked
            if any(s in used for s in parts)
        ]
        parameters = ", ".join(map(self.names.of, definition.parameters))
        doc = definition.doc.split("\n")
        lines = [f'"""{doc[0]}', *doc[1:]]
        lines[-1] += '"""' if len(doc) == 1 else ""
        lines += ['"""'] if len(doc) > 1 else []
        lines += [*unpacking, *self.lines(definition.body), f"return {self.value(definition.result)}"]
        return [f"def {definition.name}({parameters}):", *indented(lines), "", ""]


class ModuleText:
    """Prints a module.

    Args:
        sources: runtime modules; a function is imported from the first that defines it.
        taken: further names that the module uses.
    """

    sources: tuple[str, ...] = ("coefficients", "operators", "traits")
    libraries: tuple[str, ...] = ("import jax.numpy as jnp",)
    special = "import jax.scipy.special as jsp"
    """Import line of special functions."""

    def __init__(self, runtime: str, taken: Iterable[str], text: type[Text] | None = None):
        self.runtime = runtime
        modules = (line.split()[-1] for line in (*self.libraries, self.special))
        self.names = ModuleNames(
            (*modules, *taken, *(name for source in self.sources for name in runtime_names(source)))
        )
        self.text = (text or Text)(self.names)

    def called(self, function: str) -> str:
        """Return the name of a runtime function, and import it."""
        self.text.called.setdefault(function)
        return function

    def imports(self, *interface: str) -> list[str]:
        """Return the import lines of all called functions and of the given interface names."""
        sources = {"interface": set(interface)}
        for name in self.text.called:
            home = next((m for m in self.sources if name in runtime_names(m)), "interface")
            sources.setdefault(home, set()).add(name)
        return [
            f"from {self.runtime}.{m} import {', '.join(sorted(names))}"
            for m, names in sorted(sources.items())
            if names
        ]

    def whole(self, doc: str, body: Iterable[str], interface: Iterable[str]) -> str:
        """Return the module, given its lines after the imports."""
        body = list(body)
        words = {word for line in body for word in re.findall(r"\w+", line)}
        standard = [line for line in self.libraries if line.startswith("from")]
        others = [line for line in self.libraries if line not in standard and line.split()[-1] in words]
        others += [self.special] if self.text.special else []
        parts = [part for part in (standard, others, self.imports(*interface)) if part]
        head = [f'"""{doc}"""', *(line for part in parts for line in ("", *part)), "", ""]
        return "\n".join([*head, *body]) + "\n"

    def offering(self, doc: str, name: str, record: ir.RuntimeRecord) -> str:
        """Return a module that assigns a record, with its functions, to a name."""
        functions = tuple(record.functions)
        for symbol in (PARAMETERS, *(symbol for f in functions for symbol in f.parameters)):
            self.names.of(symbol)
        body = [line for function in functions for line in self.text.function(function)]
        end = f"{name} = {self.offered(record)[:-1]},)"  # one line per entry
        return self.whole(doc, [*body, end], ())

    def function(self, signature: str, doc: str, lines: Iterable[str]) -> list[str]:
        """Return a function, followed by two empty lines."""
        return [f"def {signature}:", *indented([f'"""{doc}"""', *lines]), "", ""]

    @ByKind
    def offered(self, entry: Any) -> str:
        """Return the code of an entry of a record."""
        return repr(entry)

    @offered.on(ir.Definition)
    def _function_offered(self, entry: ir.Definition) -> str:
        return entry.name

    @offered.on(ir.RuntimeRecord)
    def _record_offered(self, entry: ir.RuntimeRecord) -> str:
        named = (f"{word}={self.offered(value)}" for word, value in entry.named.items() if value is not None)
        return f"{self.called(entry.kind)}({', '.join((*map(self.offered, entry.entries), *named))})"

    @offered.on(tuple)
    def _tuple_offered(self, entries: tuple[Any, ...]) -> str:
        return f"({joined(map(self.offered, entries))})"

    @offered.on(ir.Value)
    def _value_offered(self, entry: ir.Value) -> str:
        return self.text.value(entry)

    def table(self, head: str, entries: Iterable[tuple[object, str]]) -> list[str]:
        """Return a dictionary of code by key, after `return` or an assignment."""
        return [f"{head} {{", *indented(f"{key!r}: {code}," for key, code in entries), "}"]

    def values(self, head: str, entries: Iterable[tuple[object, ir.Value] | tuple[object, ir.Value, str]]) -> list[str]:
        """Return a dictionary of values by key, each below its comment."""
        lines = []
        for key, value, *told in entries:
            lines += [f"# {line}" for line in told if line]
            lines.append(f"{key!r}: {self.text.value(value)},")
        return [f"{head} {{", *indented(lines), "}"]


def module_text(doc: str, name: str, record: ir.RuntimeRecord, runtime: str) -> str:
    """Return the text of a module that defines a record under a name."""
    taken = (*runtime_names("interface"), name, *(f.name for f in record.functions))
    return ModuleText(runtime, taken, OperatorText).offering(doc, name, record)


class OperatorText(Text):
    """Printer of sums of linear operators with signs between their terms."""

    value = Text.value.extended()

    @value.on(ir.WeightedSum)
    def _signed_sum(self, value: ir.WeightedSum) -> str:
        parts = []
        for factor, term in value.terms:
            negative = is_negative(factor.expression)
            scale = ir.Formula(-factor.expression if negative else factor.expression, factor.shape)
            code = self.summand(term) if scale.expression == 1 else self.inside(term)
            if scale.expression != 1:
                alone = scale.expression.is_Mul or scale.expression.is_Pow
                code = f"{self.value(scale) if alone else self.inside(scale)} * {code}"
            parts.append((negative, code))
        return signed_sum(parts) if parts else self._sum(value)


class NumpyText(Text):
    """Printer for the NumPy interface with a chosen array library."""

    arithmetic = _Numpy


class PlainNumpyText(Text):
    """Printer for NumPy without JAX arrays."""

    arithmetic = _PlainNumpy


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines indented by one level."""
    return [f"    {line}" if line else line for line in lines]


def repeated(parts: Iterable[str]) -> str:
    """Return the code of a tuple; equal parts are written as a repetition."""
    entries = tuple(parts)
    return (
        f"{len(entries)} * ({entries[0]},)" if len(entries) > 1 and len(set(entries)) == 1 else f"({joined(entries)})"
    )


def joined(parts: Iterable[str]) -> str:
    """Return the comma-separated parts of a tuple."""
    entries = tuple(parts)
    return f"{entries[0]}," if len(entries) == 1 else ", ".join(entries)
