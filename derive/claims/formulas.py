"""Parser of formulas: text to SymPy scalars and to sums of matrix words, with a closed list of names.

Definite integrals are SymPy's closed forms, confirmed by quadrature.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from dataclasses import dataclass, field as data_field, replace
from typing import Any

import mpmath
import sympy as sp
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from derive.algebra.physical import sample_point
from derive.algebra.words import Letter
from derive.errors import ClaimError, NumericalError
from derive.language.symbols import parameter_values
from derive.language.traversal import ByKind
from derive.language.vectors import Field
from derive.records.action import Leg
from derive.support.bounds import FORMULA_LENGTH, FORMULA_NODES, NUMBER_DIGITS

DIGITS, AGREEING = 30, 12
"""Working digits of the quadrature, and digits to which a closed form must agree."""
POINTS = 3
"""Number of parameter points at which a closed form is checked."""


def integrated(integrand: sp.Expr, variable: sp.Symbol, low: sp.Expr, high: sp.Expr) -> sp.Expr:
    """Return the closed form of a definite integral.

    Raises:
        NumericalError: SymPy finds no closed form, or quadrature contradicts it.
    """
    description = f"the integral of {integrand}"
    closed_form = sp.sympify(sp.integrate(integrand, (variable, low, high))).replace(sp.Piecewise, _generic)
    if closed_form.has(sp.Integral, sp.Piecewise, sp.zoo, sp.nan, sp.oo, variable):
        raise NumericalError(f"SymPy finds no closed form of {description} that holds for all parameters")
    for attempt in range(POINTS):
        values = _values({s for e in (integrand, low, high, closed_form) for s in e.free_symbols} - {variable}, attempt)
        with mpmath.workdps(DIGITS):
            ends = [mpmath.mpmathify(sp.N(end.subs(values), DIGITS)) for end in (low, high)]
            summed = mpmath.quad(sp.lambdify(variable, integrand.subs(values), "mpmath"), ends)
            closed = mpmath.mpmathify(sp.N(closed_form.subs(values), DIGITS))
            if not abs(summed - closed) <= mpmath.mpf(10) ** -AGREEING * (1 + abs(closed)):
                raise NumericalError(f"SymPy's closed form of {description} disagrees with quadrature")
    return closed_form


def _generic(*pieces: Any) -> sp.Expr:
    """Return the case of a Piecewise that holds for generic parameters, if there is one."""
    value, condition = pieces[0]
    return value if condition == True or isinstance(condition, sp.Ne) else sp.Piecewise(*pieces)  # noqa: E712


def holds_everywhere(integrand: sp.Expr, variable: sp.Symbol, low: sp.Expr, high: sp.Expr) -> bool:
    """Return whether a closed form needs no numerical check: polynomials, or integrals without parameters."""
    free = (integrand.free_symbols | low.free_symbols | high.free_symbols) - {variable}
    return not free or bool(integrand.is_polynomial(variable))


def _values(symbols: set[sp.Symbol], attempt: int) -> dict[sp.Symbol, Any]:
    """Return parameter values of both signs where the domains allow them, and complex values for other symbols."""
    drawn = {s: v for s, v in sample_point(symbols, attempt).items() if s in symbols}
    if attempt % 2:
        drawn |= {p: -v for p, v in parameter_values(drawn).items() if p.domain.contains(-float(v))}
    return {**{s: sp.Rational(41, 7) + (3 - attempt) * sp.I for s in symbols}, **drawn}


FUNCTIONS = {
    "sqrt": sp.sqrt,
    "exp": sp.exp,
    "log": sp.log,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "tanh": sp.tanh,
    "Abs": sp.Abs,
    "sign": sp.sign,
    "Max": sp.Max,
    "Min": sp.Min,
}
OF_SEVERAL = ("Max", "Min")
"""Functions of several scalars."""
LARGEST_POWER = 64
_LESS, _OR_EQUAL = (ast.Lt, ast.LtE), (ast.LtE, ast.GtE)
_ORDER = (*_LESS, ast.Gt, ast.GtE)


@dataclass(frozen=True)
class Carrier:
    """The last factor of a term: a field on which R[a, j] acts, or an unknown of A(z)."""

    name: str

    @property
    def T(self) -> None:
        raise ClaimError(f"{self.name} has no transpose; write terms as coefficient*R[a,j]*{self.name}")


@dataclass(frozen=True)
class ActingMatrix:
    """An operator on a field in an equation of motion: a random matrix, or the sum over earlier times."""

    matrix: str
    transposed: bool = False

    @property
    def T(self) -> ActingMatrix:
        return replace(self, transposed=not self.transposed)

    @property
    def name(self) -> str:
        return self.matrix + (".T" if self.transposed else "")


EARLIER = ActingMatrix("past")
"""The sum over earlier times."""


@dataclass(frozen=True)
class Bracket:
    """The scalar product of two vectors, or their dyad; the left vector is at one time, the right one at another."""

    left: Leg
    right: Leg
    kind: str = "dot"

    @property
    def T(self) -> Bracket:
        return replace(self, left=self.right, right=self.left)

    @property
    def name(self) -> str:
        legs = (f"hat({leg.field})" if leg.hatted else str(leg.field) for leg in (self.left, self.right))
        return f"{self.kind}({','.join(legs)})"


Words = dict[tuple[Any, ...], sp.Expr]


@dataclass(frozen=True)
class WordSum:
    """A linear combination of words; the empty word is the identity."""

    terms: Words

    is_Matrix = True
    """As of SymPy's expressions, where it is False of scalars."""

    def __add__(self, other: WordSum) -> WordSum:
        total = dict(self.terms)
        for word, scale in other.terms.items():
            total[word] = total.get(word, sp.S.Zero) + scale
        return WordSum(total)

    def __mul__(self, other: WordSum | sp.Expr) -> WordSum:
        if not other.is_Matrix:
            return other * self
        total: Words = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                total[left + right] = total.get(left + right, sp.S.Zero) + a * b
        return WordSum(total)

    def __rmul__(self, scalar: sp.Expr) -> WordSum:
        return WordSum({word: scalar * scale for word, scale in self.terms.items()})

    @property
    def T(self) -> WordSum:
        return WordSum({tuple(letter.T for letter in reversed(word)): scale for word, scale in self.terms.items()})


Value = Any
"""A SymPy scalar or a WordSum; `is_Matrix` tells which."""


@dataclass(frozen=True)
class Reader:
    """Parser of formulas over a fixed set of names.

    Attributes:
        scalars: SymPy expressions by name.
        fields: the fields allowed in C[a, b] and R[a, j]; None if matrices are not allowed.
        carriers: the names that may end a term.
        matrices: the random matrices that may act on a field.
        legs: whether dot(a, hat(b)) and outer(a, b) are allowed; C and R are then read as scalar products.
        define: formulas that the file defines by name.
        responses: the scalars that responses R[a, j] stand for; in formulas in z these are the responses of the bulk.
        respelled: returns a formula with products of matrices and fields replaced by the names of their fields.
        typed: formulas as they were typed, by their translation into the names of the model.
        name: returns the symbol of a name in messages.
        integrals: integrals whose closed forms were confirmed at points of the parameters only.
    """

    place: str
    scalars: dict[str, sp.Expr]
    fields: dict[str, Field] | None = None
    carriers: tuple[str, ...] = ()
    matrices: tuple[str, ...] = ()
    legs: bool = False
    define: dict[str, str] = data_field(default_factory=dict)
    within: tuple[str, ...] = ()
    integrals: list[str] = data_field(default_factory=list)
    responses: dict[Letter, sp.Expr] = data_field(default_factory=dict)
    respelled: Callable[[str], str] | None = None
    typed: dict[str, str] = data_field(default_factory=dict)
    name: Callable[[object], str] = str

    def scalar(self, text: str) -> sp.Expr:
        """Parse a scalar formula."""
        value = self._read(text)
        if value.is_Matrix:
            raise self.error(text, "is a matrix where a scalar is needed")
        return value

    def matrix(self, text: str) -> WordSum:
        """Parse a formula for a sum of words."""
        value = self._read(text)
        if not value.is_Matrix:
            if value == 0:
                return WordSum({})
            raise self.error(text, "is a scalar where a matrix is needed; multiply it by I, the identity")
        return value

    def error(self, text: str, what: str) -> ClaimError:
        """Return the error for a formula."""
        text = self.typed.get(text, text)
        shown = text if len(text) <= 80 else text[:77] + "..."
        return ClaimError(f"{self.place}: {shown!r} {what}")

    def inequalities(self, text: str) -> list[tuple[sp.Expr, bool]]:
        """Return expressions that are positive where a condition such as "1 < nu <= 4 and chi > nu" holds, and whether
        they may vanish."""
        node = self._parsed(text)
        parts = node.values if isinstance(node, ast.BoolOp) and type(node.op) is ast.And else [node]
        conditions = []
        for part in parts:
            if not isinstance(part, ast.Compare) or not all(type(op) in _ORDER for op in part.ops):
                raise self.error(text, "is not a region; join inequalities with and, such as nu > 1 and chi < 2*nu")
            sides = [self._evaluated(side, text) for side in (part.left, *part.comparators)]
            for left, op, right in zip(sides, part.ops, sides[1:], strict=False):
                if left.is_Matrix or right.is_Matrix:
                    raise self.error(text, "compares matrices; a region consists of scalars")
                difference = right - left if type(op) in _LESS else left - right
                if not difference.free_symbols:
                    raise self.error(text, "compares numbers; name a parameter on one side of each inequality")
                conditions.append((difference, type(op) in _OR_EQUAL))
        return conditions

    def _read(self, text: str) -> Value:
        node = self._parsed(text)
        if not self.within:
            self._check_work(node, text)
        return self._evaluated(node, text)

    def _check_work(self, node: ast.expr, text: str) -> None:
        """Raise if a formula would be too long with its definitions expanded; the length is counted without expanding
        them.
        """
        sizes: dict[str, int] = {}

        def size(part: ast.AST, within: tuple[str, ...]) -> int:
            if isinstance(part, ast.Name) and part.id in self.define and part.id not in within:
                if part.id not in sizes:
                    sizes[part.id] = size(self._parsed(self.define[part.id]), (*within, part.id))
                return sizes[part.id]
            return 1 + sum(size(inner, within) for inner in ast.iter_child_nodes(part))

        try:
            if size(node, self.within) > FORMULA_NODES.most:
                raise self.error(text, f"has more than {FORMULA_NODES} with its definitions expanded; shorten it")
        except RecursionError:
            raise self.error(text, "is nested too deeply; split it with define") from None

    def _parsed(self, text: str) -> ast.expr:
        if len(text) > FORMULA_LENGTH.most:
            raise self.error(text, f"is longer than {FORMULA_LENGTH}; split it with define")
        text = text if self.respelled is None else self.respelled(text)
        try:
            return ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self.error(text, "is not a formula; write products with * and powers with **") from None

    def _evaluated(self, node: ast.expr, text: str) -> Value:
        try:
            value = self._value(node, text)
        except RecursionError:
            raise self.error(text, "is nested too deeply; split it with define") from None
        scalars = value.terms.values() if value.is_Matrix else (value,)
        if any(scale.has(sp.zoo, sp.nan, sp.oo) for scale in scalars):
            raise self.error(text, "divides by zero")
        return value

    def _value(self, node: ast.AST, text: str) -> Value:
        match node:
            case ast.Constant(value=int() | float()) if type(node.value) is not bool:
                return self._number(node, text)
            case ast.Name(id=name):
                return self._name(name, text)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._value(operand, text)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return sp.S.NegativeOne * self._value(operand, text)
            case ast.BinOp(left=left, op=operator, right=right):
                return self._joined(operator, self._value(left, text), self._value(right, text), text)
            case ast.Call(func=ast.Name(id="integral")):
                return self._integral(node, text)
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
                return self._function(name, node, text)
            case ast.Call(func=ast.Name(id="past"), args=[inner]) if self.matrices:
                return WordSum({(EARLIER,): sp.S.One}) * self._value(inner, text)
            case ast.Call(func=ast.Name(id="dot" | "outer" as kind), args=[left, right]) if self.legs:
                return WordSum({(Bracket(self._leg(left, text), self._leg(right, text), kind),): sp.S.One})
            case ast.Subscript(value=ast.Name(id="C" | "R")):
                return self._letter(node, text)
            case ast.Subscript(value=ast.Name(id="u"), slice=ast.Name(id=name)) if noise_name(name) in self.carriers:
                return WordSum({(Carrier(noise_name(name)),): sp.S.One})
            case ast.Attribute(attr="T", value=inner):
                value = self._value(inner, text)
                return value.T if value.is_Matrix else value
        raise self.error(
            text,
            f"holds {ast.unparse(node)!r}, which is not allowed in formulas; use names, + - * / **, .T and "
            f"{', '.join(FUNCTIONS)}, integral",
        )

    def _number(self, node: ast.Constant, text: str) -> sp.Rational:
        """Return a number exactly as it is written."""
        written = ast.get_source_segment(text.strip(), node) or str(node.value)
        if len(written) > NUMBER_DIGITS.most:
            raise self.error(written, f"has more than {NUMBER_DIGITS}")
        mantissa = written.lower().split("e")[0]
        lost = node.value == 0 and any(digit in mantissa for digit in "123456789")
        if node.value == float("inf") or lost:
            raise ClaimError(f"{self.place}: the number {written} is implausibly large or small")
        return sp.Rational(written.replace("_", ""))

    def _function(self, name: str, node: ast.Call, text: str) -> sp.Expr:
        """Return a function of one or two scalars."""
        several = name in OF_SEVERAL
        values = [self._value(arg, text) for arg in node.args]
        if len(values) == 1 + several and not node.keywords and not any(v.is_Matrix for v in values):
            value = FUNCTIONS[name](*values)
            algebraic = isinstance(value, HyperbolicFunction) and value.has(sp.log)  # as cosh(log(x))
            return value.rewrite(sp.exp) if algebraic else value
        count = "two scalars" if several else "one scalar"
        raise self.error(text, f"calls {name} with something other than {count}")

    def _integral(self, node: ast.Call, text: str) -> sp.Expr:
        """Return integral(f, x, low, high), with a fresh symbol for the variable."""
        arguments = node.args
        if len(arguments) != 4 or node.keywords or not isinstance(arguments[1], ast.Name):
            raise self.error(text, "needs integral(f, x, low, high) with the name of a variable in second place")
        low, high = (self._value(end, text) for end in arguments[2:])
        positive = True if all(not end.is_Matrix and end.is_nonnegative for end in (low, high)) else None
        name, variable = arguments[1].id, sp.Symbol(arguments[1].id, real=True, positive=positive)
        define = {key: formula for key, formula in self.define.items() if key != name}
        inside = replace(self, scalars={**self.scalars, name: variable}, define=define)._value(arguments[0], text)
        if any(part.is_Matrix for part in (low, high, inside)):
            raise self.error(text, "integrates a matrix; an integral is a scalar")
        closed_form = integrated(inside, variable, low, high)
        if not holds_everywhere(inside, variable, low, high):
            self.integrals.append(ast.unparse(node))
        return closed_form

    def _name(self, name: str, text: str) -> Value:
        if name in self.define and name not in self.within:
            inner = replace(self, place=f"{self.place}: define.{name}", within=(*self.within, name))
            return inner._read(self.define[name])
        if name in self.scalars:
            return self.scalars[name]
        if name == "I" and self.fields is not None:
            return WordSum({(): sp.S.One})
        if name in self.carriers:
            return WordSum({(Carrier(name),): sp.S.One})
        if name in self.matrices:
            return WordSum({(ActingMatrix(name),): sp.S.One})
        names = [*map(self.name, self.scalars), *self.define]
        names += ["I", "C[a,b]", "R[a,j]"] if self.fields is not None else []
        listed = ", ".join(dict.fromkeys(names))
        raise self.error(text, f"uses {self.name(name)}, which has no meaning here; the names are {listed}")

    @ByKind
    def _joined(self, operator: ast.operator, left: Value, right: Value, text: str) -> Value:
        """Return the result of a binary operator on two values."""
        raise self.error(text, "uses an operator that formulas do not have; use + - * / **")

    @_joined.on(ast.Add)
    def _(self, operator: ast.Add, left: Value, right: Value, text: str) -> Value:
        if left.is_Matrix == right.is_Matrix:
            return left + right
        if left == 0 or right == 0:
            return right if left == 0 else left
        raise self.error(text, "adds a scalar to a matrix; multiply the scalar by I, the identity")

    @_joined.on(ast.Sub)
    def _(self, operator: ast.Sub, left: Value, right: Value, text: str) -> Value:
        return self._joined(ast.Add(), left, sp.S.NegativeOne * right, text)

    @_joined.on(ast.Mult, ast.MatMult)
    def _(self, operator: ast.operator, left: Value, right: Value, text: str) -> Value:
        return left * right

    @_joined.on(ast.Div)
    def _(self, operator: ast.Div, left: Value, right: Value, text: str) -> Value:
        if right.is_Matrix:
            raise self.error(text, "divides by a matrix; only scalars divide")
        if right == 0:
            raise self.error(text, "divides by zero")
        return 1 / right * left

    @_joined.on(ast.Pow)
    def _(self, operator: ast.Pow, left: Value, right: Value, text: str) -> Value:
        if left.is_Matrix or right.is_Matrix:
            raise self.error(text, "raises a matrix to a power; write products out")
        if right.is_Rational and max(abs(right.p), right.q) > LARGEST_POWER:
            raise self.error(text, f"has a power beyond {LARGEST_POWER}")
        if left.is_Rational and right.is_Rational and max(abs(left.p), left.q).bit_length() * abs(right) > 4096:
            raise self.error(text, "has an implausibly long number")
        if left == 0 and right.is_negative:
            raise self.error(text, "divides by zero")
        return left**right

    def _letter(self, node: ast.Subscript, text: str) -> Value:
        kind, index = ast.unparse(node.value), node.slice
        if self.fields is None:
            raise self.error(text, f"uses {kind}[...], which has no meaning in a scalar formula")
        match index:
            case ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]):
                a, b = self.field(first), self.field(second)
            case _:
                raise self.error(text, f"needs two fields in {kind}[a, b]")
        if self.legs:
            return WordSum(definition(kind, a, b))
        if kind == "R" and Letter.response(a, b) in self.responses:
            return self.responses[Letter.response(a, b)]
        return WordSum({(Letter.correlation(a, b) if kind == "C" else Letter.response(a, b),): sp.S.One})

    def _leg(self, node: ast.expr, text: str) -> Leg:
        """Return a field, or the response field written as hat(field)."""
        match node:
            case ast.Name(id=name):
                return Leg(self.field(name), False)
            case ast.Call(func=ast.Name(id="hat"), args=[ast.Name(id=name)]):
                return Leg(self.field(name), True)
        raise self.error(text, f"has {ast.unparse(node)!r} where a field or hat(field) is needed")

    def field(self, name: str) -> Field:
        """Return the field of a name."""
        name = name if self.respelled is None else self.respelled(name)
        fields = self.fields or {}
        if name not in fields:
            names = list(dict.fromkeys(map(self.name, fields)))
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ClaimError(f"{self.place}: there is no field {name}; {hint}the fields are {', '.join(names)}")
        return fields[name]


def noise_name(product: str) -> str:
    """Return the name of the noise of a product with a random matrix."""
    return f"u[{product}]"


def definition(kind: str, a: Field, b: Field) -> Words:
    """Return an order parameter as a scalar product: C[a, b] = a . b / size, R[a, b] = -i a . hat(b) / size."""
    response = kind == "R"
    return {(Bracket(Leg(a, False), Leg(b, response)),): (-sp.I if response else sp.S.One) / a.sector}


def shown(terms: Words) -> str:
    """Return a sum of words in the notation of a claims file."""
    parts = []
    for word, scale in terms.items():
        letters = [_letter_text(letter) for letter in word] or ["I"]
        if letters[0] == EARLIER.name and letters[1:]:
            letters = [f"{EARLIER.name}({'*'.join(letters[1:])})"]
        sign, scale = ("-", -scale) if scale.could_extract_minus_sign() and not scale.is_Add else ("", scale)
        factor = [] if scale == 1 else [f"({scale})" if scale.is_Add else str(scale)]
        parts.append(sign + "*".join(factor + letters))
    return " + ".join(parts).replace("+ -", "- ") or "0"


def _letter_text(letter: Any) -> str:
    if isinstance(letter, Letter):
        return f"{letter.kind}[{letter.a},{letter.b}]" + (".T" if letter.transposed else "")
    return str(letter.name)
