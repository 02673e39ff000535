"""The notation common to the printers of plain text and of LaTeX, independent of their markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp

from derive.algebra.nodes import TAU, Response
from derive.language import matrices
from derive.language.symbols import EngineSymbol
from derive.language.traversal import ByKind
from derive.language.vectors import PAST, Field
from derive.printing.layout import (
    Times,
    is_negative,
    matrix_terms,
    memory_is_spectral,
    ordered_terms,
    signed,
    signed_sum,
)
from derive.printing.lettering import Lettering, current, two_values
from derive.printing.names import Drive, OverlapName, PairName, PrintedNames, SourceName


class NotationPrinter:
    """A mixin for SymPy's printers that prints names, values, order parameters and matrices of this project."""

    one: str
    """The constant vector."""
    top: str
    """The mark of a transpose."""
    gap: str
    """The separator between two factors."""
    comma: str
    """The separator between two times."""
    tau: str
    """The spectral time."""
    anywhere: str
    """A time that is left open."""
    forms: Mapping[str, str]
    """The markup of each operation, with places for its parts."""
    _print: Callable[..., str]
    """SymPy's printing of any node."""

    def __init__(self, names: PrintedNames | None = None):
        super().__init__({"order": None})  # type: ignore[call-arg]  # SymPy's printer
        self.letters = current()
        names = names or PrintedNames()
        self.names = names if self.letters is None else renamed(names, self.letters)
        self.times = Times()

    def _form(self, operation: str, *parts: str) -> str:
        """An operation on printed parts."""
        return self.forms[operation].format(*parts)

    def _written(self, latex: str) -> str:
        """Write a symbol of the source, given as LaTeX."""
        raise NotImplementedError

    def _letter(self, symbol: sp.Symbol) -> str | None:
        """The symbol of a declared name or a product; None if the name itself is printed."""
        latex = None if self.letters is None else self.letters.word(symbol)
        return None if latex is None else self._written(latex)

    marks = ""
    """The delimiters of a symbol in a sentence."""

    def words(self, sentence: str, prose: Callable[[str], str] = str) -> str:
        """A sentence in which names of the model are replaced by symbols. `prose` prints the pieces between them."""
        if self.letters is None:
            return prose(sentence)
        return "".join(
            prose(piece) + (f"{self.marks}{self._written(letter)}{self.marks}" if letter else "")
            for piece, letter in self.letters.pieces(sentence)
        )

    def _word(self, symbol: Any) -> str:
        """The name of a declared object."""
        raise NotImplementedError

    def _engine_word(self, name: str) -> str:
        """The printed name of an engine symbol that has no other meaning."""
        raise NotImplementedError

    @ByKind
    def _meant(self, meaning: Any, name: str) -> str:
        """The printed name of an engine symbol, according to its meaning."""
        block, right = re.fullmatch(r"A_(\d+)_(\d+)", name), re.fullmatch(r"q0_(\d+)", name)
        if block:
            return self._form("block", *block.groups())
        return self._form("right side", right[1]) if right else self._engine_word(name)

    @_meant.on(PairName)
    def _(self, meaning: PairName, name: str) -> str:
        fields = (meaning.a,) if meaning.b is None else (meaning.a, meaning.b)
        name, turned = self._pair(meaning.kind, *fields)
        if meaning.of_z:
            return name + self.of_z
        order = meaning.places[:: -1 if turned else 1]
        places = self.comma.join(self.anywhere if time is None else self._time(time) for time in order)
        return (name + self.top if turned and not places else name) + (f"({places})" if places else "")

    @_meant.on(OverlapName)
    def _(self, meaning: OverlapName, name: str) -> str:
        return self._form("overlap", self._source(), self._print_Field(meaning.field))

    @_meant.on(Drive)
    def _(self, meaning: Drive, name: str) -> str:
        unknown = meaning.unknown
        if unknown.b is None or (self.letters is None and not self.marks):  # plain text keeps the engine's name
            return self._meant(None, name)
        return self._form("drive", meaning.side, self._pair(unknown.kind, unknown.a, unknown.b)[0])

    @_meant.on(SourceName)
    def _(self, meaning: SourceName, name: str) -> str:
        return self._form("conjugate", self._word(meaning.matrix))

    def _in_parentheses(self, printed: str) -> str:
        return self._form("parentheses", printed)

    def _time(self, time: sp.Expr) -> str:
        return self._print(time)

    def _transposed(self, is_transposed: bool) -> str:
        return self.top if is_transposed else ""

    # -- names

    def _print_Field(self, field: Field) -> str:
        if (letter := self._letter(field)) is not None:
            return letter
        if field in self.names.products:
            return f"({self._product(field)})"
        return self.one if field.role == "constant" else self._word(field)

    def _product(self, field: Field) -> str:
        if field not in self.names.products or self._letter(field) is not None:
            return self._print_Field(field)
        product = self.names.products[field]
        matrix = f"{self._word(product.matrix)}{self._transposed(product.transposed)}"
        return f"{matrix} {self._product(product.argument)}"

    def _index(self, *names: str) -> str:
        """The indices of an order parameter or a noise."""
        raise NotImplementedError

    def _pair(self, kind: str, *fields: Field) -> tuple[str, bool]:
        """An order parameter, and whether its fields are in the opposite order."""
        letter = None if self.letters is None or len(fields) != 2 else self.letters.pair(kind, *fields)
        if letter is not None:
            return self._written(letter[0]), letter[1]
        turned = kind == "C" and len(fields) == 2 and canonical(*fields) != fields
        a, *others = fields[::-1] if turned else fields
        second = self._noise_index if kind == "R" else self._product
        return kind + self._index(self._product(a), *map(second, others)), turned

    def _noise_letter(self, field: Field) -> str | None:
        """The symbol of the noise of a field."""
        if self.letters is None or field not in self.letters.noises:
            return None
        return self._written(self.letters.noises[field][0])

    def _noise_index(self, field: Field) -> str:
        return self._noise_letter(field) or self._product(field)

    def _noise_name(self, field: Field) -> str:
        return self._noise_letter(field) or "u" + self._index(self._product(field))

    def _print_Symbol(self, symbol: sp.Symbol, style: str = "plain") -> str:
        engine = isinstance(symbol, EngineSymbol) or type(symbol) is sp.Symbol
        return self._meaning(symbol.name) if engine else self._word(symbol)

    def _meaning(self, name: str) -> str:
        if self.letters is not None and name in self.letters.engine:
            return self._written(self.letters.engine[name][0])
        return self._meant(self.names.symbols.get(name), name)

    def _print_MatrixSymbol(self, symbol: sp.MatrixSymbol, style: str = "plain") -> str:
        return self._meaning(symbol.name)

    _print_Parameter = _print_Sector = _print_Clock = _print_Disorder = _print_Weights = _print_Symbol

    # -- values

    def _tau(self) -> str:
        return f"{self.tau}'" if self.times.later else self.tau

    def _argument(self, value: sp.Basic) -> str:
        if value.field.role == "spectral":
            return f"({self._tau()})"
        return "" if value.time is None else f"({self._time(value.time)})"

    def _print_FieldAt(self, value: sp.Basic) -> str:
        return self._print_Field(value.field) + self._argument(value)

    @property
    def of_z(self) -> str:
        """The argument of a function of the spectral variable; a function of i omega is written as one of omega."""
        latex = "z" if self.letters is None else self.letters.engine.get("z", ("z", None))[0]
        return f"({self._written(latex.removeprefix('i').strip() or latex)})"

    def _order_parameter(
        self, kind: str, left: Field, right: Field, times: Sequence[sp.Expr], hat: bool = False
    ) -> str:
        name, turned = self._pair(kind, left, right)
        name = self._hatted(name) if hat else name
        if times == (TAU, TAU):
            return f"{name}({self.tau}{self.comma}{self.tau}')"
        times = times[::-1] if turned and len(times) == 2 else times
        return f"{name}({self.comma.join(map(self._time, times))})" if times else name

    def _hatted(self, name: str) -> str:
        """The name of a conjugate field."""
        raise NotImplementedError

    def _conjugate(self, node: sp.Basic) -> str:
        """The field conjugate to an order parameter."""
        kind, right = ("R", node.noise) if isinstance(node, Response) else ("C", node.right)
        return self._order_parameter(kind, node.left, right, node.times, hat=True)

    def _transpose(self, node: sp.Basic) -> str:
        """A response whose two times are exchanged."""
        if node.times != (TAU, TAU):
            return str(self._print(node))
        return f"{self._pair('R', node.left, node.noise)[0]}({self.tau}'{self.comma}{self.tau})"

    def _print_Mean(self, node: sp.Basic) -> str:
        values = two_values(node.expression) if self.names.kernels else None
        if values is None:
            return self._mean(node.expression)
        a, b = values
        times = [TAU if v.field.role == "spectral" else v.time for v in values]
        if a.field == b.field and times[0] is not None and times[0].has(PAST):
            times = times[::-1]
        return self._order_parameter("C", a.field, b.field, tuple(time for time in times if time is not None))

    def _mean(self, expression: sp.Expr) -> str:
        """The average of an expression."""
        return self._form("mean", self._print(expression))

    def _print_Dot(self, node: sp.Basic) -> str:
        return self._form("dot", *self.times.pair(self, node.left, node.right))

    def _print_TauDerivative(self, node: sp.Basic) -> str:
        return self._form("flow", self._tau(), self._print(node.value))

    def _print_Alignment(self, node: sp.Basic) -> str:
        return self._form("alignment", self._print(node.direction))

    def _print_Project(self, node: sp.Basic) -> str:
        return self._form("project", *map(self._factor, (node.left, node.right, node.vector)))

    def _print_EntriesAt(self, node: sp.Basic) -> str:
        return self._form("entries", self._print_DataAt(node))

    def _print_RootAt(self, node: sp.Basic) -> str:
        return self._form("root", self._print_DataAt(node))

    def _print_Correlation(self, node: sp.Basic) -> str:
        return self._order_parameter("C", node.left, node.right, node.times)

    def _print_Response(self, node: sp.Basic) -> str:
        return self._order_parameter("R", node.left, node.noise, node.times)

    def _print_ImaginaryUnit(self, node: sp.Basic) -> str:
        return "i"

    def _source(self) -> str:
        """The source of the probe."""
        raise NotImplementedError

    def _print_ProbeSource(self, node: sp.Basic) -> str:
        return f"{self._source()}({self._tau()})"

    def _print_Apply(self, node: sp.Basic) -> str:
        return f"{self._print(node.matrix)}{self._transposed(node.transposed)}{self.gap}{self._factor(node.vector)}"

    def _print_Mix(self, node: sp.Basic) -> str:
        return f"{self._print(node.table)}{self._transposed(node.transposed)}{self.gap}{self._factor(node.vector)}"

    def _print_Each(self, node: sp.Basic) -> str:
        return self._print(node.expression)

    def _print_DataAt(self, node: sp.Basic) -> str:
        return self._word(node.data) + ("" if node.time is None else f"({self._time(node.time)})")

    def _print_WeightsAt(self, node: sp.Basic) -> str:
        return f"{self._word(node.args[0])}({self._time(node.time)})"

    _print_DisorderAt = _print_WeightsAt

    def _factor(self, factor: sp.Expr) -> str:
        printed = self._print(factor)
        return self._in_parentheses(printed) if factor.is_Add or factor.is_Mul else printed

    # -- functions used in records

    def _function_word(self, name: str) -> str:
        """The name of a function of times or of z."""
        raise NotImplementedError

    def _applied(self, name: str, arguments: tuple[Any, ...]) -> str:
        """A function that occurs in records."""
        if name == "sum_s":
            return self._memory(arguments[0])
        if name in ("mean", "cov") and len(arguments) == 2:
            left, right = self.times.pair(self, *arguments)
            return self._form("mean", self._form("square", left) if left == right else f"{left}{self.gap}{right}")
        if name in ("mean", "cov"):
            return self._mean(arguments[0])
        if name == "d":
            return self._form("slope", *self.times.pair(self, *arguments))
        if name == "outer":
            return f"{self._print(arguments[0])}{self.gap}{self._print(arguments[1])}{self.top}"
        if name == "conjugate":
            return self._conjugate(arguments[0])
        if name == "transpose":
            return self._transpose(arguments[0])
        if name == "integral":
            values = (self._form("differential", self._print(value)) for value in arguments)
            return self._form("deltas", self.gap.join(dict.fromkeys(values)))  # symbols of the source may coincide
        if name == "cycle":
            return self.forms["cycle"].join(self._print(group) for group in arguments)
        return f"{self._function_word(name)}({self.comma.join(map(self._time, arguments))})"

    def _memory(self, body: sp.Expr) -> str:
        if memory_is_spectral(body):
            return self._form("integral", self.times.later_copy(self, body))
        return self._form("sum", self._print(body))

    def _sum_terms(self, expression: sp.Expr) -> list[tuple[bool, str]]:
        """The terms of a sum, each with its sign."""
        printed = ((term, self._print(term)) for term in ordered_terms(expression))
        return [signed(self._in_parentheses(text) if term.is_Add else text) for term, text in printed]

    def _print_Add(self, expression: sp.Expr, order: str | None = None) -> str:
        return signed_sum(self._sum_terms(expression))

    # -- matrices over training times

    def _print_DiagonalWeight(self, node: sp.Basic) -> str:
        return self._form("weight", self._print(node.weight))

    def _matrix_terms(self, expression: sp.MatrixExpr) -> list[tuple[bool, str]]:
        """The terms of a sum of matrices, each with its sign."""
        terms = matrix_terms(expression)
        return self._matrix_parts([(scalar, self.gap.join(map(self._matrix_factor, some))) for scalar, some in terms])

    def _matrix_parts(self, parts: Sequence[tuple[sp.Expr, str]]) -> list[tuple[bool, str]]:
        signed_parts = []
        for scalar, printed in parts:
            negative = is_negative(scalar)
            scalar = -scalar if negative else scalar
            signed_parts.append((negative, printed if scalar == 1 else f"{self._scalar(scalar)}{self.gap}{printed}"))
        return signed_parts

    def _scalar(self, scalar: sp.Expr) -> str:
        """A number before a matrix."""
        return self._in_parentheses(self._print(scalar)) if scalar.is_Add else self._print(scalar)

    def _print_MatAdd(self, expression: sp.MatrixExpr) -> str:
        return signed_sum(self._matrix_terms(expression))

    _print_MatMul = _print_MatAdd

    def _matrix_factor(self, factor: sp.MatrixExpr) -> str:
        printed = self._print(factor)
        return self._in_parentheses(printed) if factor.is_MatAdd or factor.is_MatMul else printed

    def _print_Transpose(self, node: sp.Basic) -> str:
        printed = self._matrix_factor(node.arg)
        raised = self.letters is not None and "^" in printed
        return (self._in_parentheses(printed) if raised else printed) + self.top

    def _print_Identity(self, node: sp.Basic) -> str:
        return "I"

    def _print_ZeroMatrix(self, node: sp.Basic) -> str:
        return "0"

    def _print_Tuple(self, node: sp.Basic) -> str:
        return "(" + ", ".join(map(self._print, node)) + ")"

    # -- matrices of a declaration

    def _print_DiagonalMatrix(self, node: sp.Basic) -> str:
        return self._form("diagonal", self._print(node.entries))

    def _print_MatrixAtom(self, node: sp.Basic) -> str:
        return self._print(node.symbol) + self._transposed(node.transposed)

    def _print_Dyad(self, node: sp.Basic) -> str:
        return f"{self._factor(node.left)}{self.gap}{self._factor(node.right)}{self.top}"

    def _print_Evolving(self, node: sp.Basic) -> str:
        return self._print(node.weights)

    def _print_GivenData(self, node: sp.Basic) -> str:
        return self._word(node.data)

    def _print_ProductOfMatrices(self, node: matrices.ProductOfMatrices) -> str:
        return self.gap.join(
            self._in_parentheses(self._print(f)) if isinstance(f, matrices.SumOfMatrices) else self._print(f)
            for f in node.factors
        )

    def _print_SumOfMatrices(self, node: matrices.SumOfMatrices) -> str:
        return signed_sum(self._matrix_parts([(scale, self._print(part)) for scale, part in node.terms])) or "0"


def canonical(a: Field, b: Field) -> tuple[Field, Field]:
    """Return the fields of a correlation in the order of its key: the probe field first, otherwise by name."""
    first, second = sorted((a, b), key=lambda f: (f.role != "spectral", f.name))
    return first, second


def renamed(names: PrintedNames, letters: Lettering) -> PrintedNames:
    """Return the printed names, with the LaTeX of the source for those that sentences mention."""
    mentioned = {name: letters.mentioned.get(name, latex) for name, latex in names.mentioned.items()}
    return replace(names, written={**names.written, **letters.mentioned}, mentioned={**letters.mentioned, **mentioned})
