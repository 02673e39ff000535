"""Functions of the parameters as indeterminates of a polynomial ring.

Elimination sees sqrt(1 + a), (9/10)**T, Abs(k) or sign(k) as an indeterminate of its own. A polynomial relation that
holds for independent indeterminates holds for whatever they stand for, so no sign and no range has to be assumed. Only
identities of powers that hold for every base are used: b**(n x) = (b**x)**n for whole n, and b**(x + y) = b**x b**y
where b is known not to be zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import Application

from derive.language.symbols import EngineSymbol
from derive.language.traversal import ByKind


class Generator(EngineSymbol):
    """An indeterminate that stands for a function of the parameters, its `meaning`."""

    __slots__ = ()

    @staticmethod
    def of(name: str, meaning: sp.Expr) -> Generator:
        """The indeterminate for a function, with the assumptions that SymPy can prove of the function."""
        known = {key: True for key in ("real", "nonnegative", "positive") if getattr(meaning, f"is_{key}")}
        return Generator(name, meaning, **known)

    @property
    def meaning(self) -> sp.Expr:
        return self.belongs[0]


Key = tuple[sp.Expr, sp.Expr]
"""A base and an exponent without its rational factor; the exponent of a root is one."""


@dataclass(frozen=True)
class Generators:
    """The indeterminates of some expressions. powers: for each key, b**(x/n), and n."""

    powers: dict[Key, tuple[Generator, int]]

    @staticmethod
    def of(expressions: Iterable[sp.Expr]) -> Generators:
        """The indeterminates that make polynomials, or quotients of them, of all the expressions."""
        orders: dict[Key, int] = {}
        for expression in expressions:
            _collect(sp.sympify(expression), orders)
        powers = {}
        for (base, exponent), order in sorted(orders.items(), key=lambda item: sp.default_sort_key(sp.Tuple(*item[0]))):
            meaning = sp.Pow(base, exponent / order)
            name = f"_root_{base}" if exponent == 1 else f"_{meaning}"
            powers[base, exponent] = Generator.of(name, meaning), order
        return Generators(powers)

    def encode(self, expression: sp.Expr) -> sp.Expr:
        """The expression with indeterminates for everything that is not a polynomial in symbols."""
        node = sp.sympify(expression)
        if (node, sp.S.One) in self.powers:
            generator, order = self.powers[node, sp.S.One]
            return generator**order
        if node.is_Rational or node.is_Symbol or not node.free_symbols and node.is_Pow and node.base.is_Rational:
            return node
        return self._encoded(node)

    @ByKind
    def _encoded(self, node: sp.Expr) -> sp.Expr:
        return Generator.of(f"_{node}", node)

    @_encoded.on(sp.Add, sp.Mul)
    def _(self, node: sp.Expr) -> sp.Expr:
        return node.func(*map(self.encode, node.args))

    @_encoded.on(sp.Pow)
    def _(self, node: sp.Pow) -> sp.Expr:
        if node.exp.is_Integer:
            return self.encode(node.base) ** node.exp
        return sp.Mul(*(self._power(*power) for power in _factors(node)))

    def _power(self, key: Key, exponent: sp.Rational) -> sp.Expr:
        if key in self.powers:
            generator, order = self.powers[key]
            return generator ** (order * exponent)
        base, primitive = key
        if primitive == 1:
            return self.encode(base) ** exponent
        meaning = sp.Pow(base, primitive)
        return Generator.of(f"_{meaning}", meaning) ** exponent


def decode(expression: sp.Expr) -> sp.Expr:
    """The expression with every indeterminate replaced by what it stands for."""
    return expression.xreplace({g: g.meaning for g in expression.free_symbols if isinstance(g, Generator)})


def hide_functions(expression: sp.Expr) -> sp.Expr:
    """The expression with an indeterminate for every function of parameters: SymPy would write sign(k) as k/Abs(k),
    which has no value at zero."""
    functions = expression.atoms(Application)
    return expression.xreplace({node: Generator.of(f"_{node}", node) for node in functions})


def roots_of(polynomial: sp.Expr, unknown: sp.Symbol) -> list[sp.Expr]:
    """The roots, with their multiplicity, of a polynomial whose coefficients may hold functions of parameters."""
    return [decode(root) for root in sp.roots(sp.Poly(hide_functions(polynomial), unknown), multiple=True)]


def generic_value(generator: Generator) -> sp.Rational:
    """A rational number between 1/2 and 3/2 for an indeterminate: the same in every run, unrelated to any other."""
    digest = hashlib.sha256(str(generator.meaning).encode()).digest()
    return sp.Rational(1, 2) + sp.Rational(int.from_bytes(digest[:3], "big"), 2**24 - 3)


@ByKind
def _collect(node: sp.Expr, orders: dict[Key, int]) -> None:
    """The keys of all powers that are not whole, with the least common denominator of their exponents."""


@_collect.on(sp.Add, sp.Mul)
def _(node: sp.Expr, orders: dict[Key, int]) -> None:
    for arg in node.args:
        _collect(arg, orders)


@_collect.on(sp.Pow)
def _(node: sp.Pow, orders: dict[Key, int]) -> None:
    if node.exp.is_Integer:
        _collect(node.base, orders)
        return
    for key, exponent in _factors(node):
        if exponent.is_Integer and key[1] == 1:
            _collect(key[0], orders)
        elif not (key[0].is_Rational and key[1] == 1):
            orders[key] = int(sp.ilcm(orders.get(key, 1), exponent.q))


def _factors(power: sp.Pow) -> list[tuple[Key, sp.Rational]]:
    """A power as a product of powers of keys. The exponent is split into its terms only where the base is not zero."""
    base, exponent = power.args
    if exponent.is_Rational:
        return [((base, sp.S.One), exponent)]
    invertible = base.is_zero is False
    found = []
    for term in sp.Add.make_args(sp.expand(exponent)) if invertible else (exponent,):
        if term.is_Rational:
            found.append(((base, sp.S.One), term))
            continue
        content, primitive = term.as_content_primitive()
        if invertible and primitive.could_extract_minus_sign():
            content, primitive = -content, -primitive
        found.append(((base, primitive), content))
    return found
