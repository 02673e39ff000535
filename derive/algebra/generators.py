"""Functions of the parameters as indeterminates of a polynomial ring.

Elimination treats sqrt(1 + a), (9/10)**T, Abs(k) or sign(k) as an indeterminate. A polynomial relation between
independent indeterminates holds for any functions in their place, so no sign or range is assumed. The only identities
of powers used hold for every base: b**(n x) = (b**x)**n for integer n, and b**(x + y) = b**x b**y if b is known to be
nonzero.
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
    """An indeterminate that represents a function of the parameters, its `meaning`."""

    __slots__ = ()

    @staticmethod
    def of(name: str, meaning: sp.Expr) -> Generator:
        """Return the indeterminate for a function, with the assumptions that SymPy can prove of the function."""
        assumptions = {key: True for key in ("real", "nonnegative", "positive") if getattr(meaning, f"is_{key}")}
        return Generator(name, meaning, **assumptions)

    @property
    def meaning(self) -> sp.Expr:
        return self.belongs[0]


Key = tuple[sp.Expr, sp.Expr]
"""A base and an exponent without its rational factor; the exponent of a root is one."""


@dataclass(frozen=True)
class Generators:
    """The indeterminates of some expressions. `powers` holds, for each key, b**(x/n) and n."""

    powers: dict[Key, tuple[Generator, int]]

    @staticmethod
    def of(expressions: Iterable[sp.Expr]) -> Generators:
        """Return the indeterminates in which all expressions are polynomials, or quotients of polynomials."""
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
        """Return the expression with an indeterminate for everything that is not a polynomial in symbols."""
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
    """Return the expression with every indeterminate replaced by its meaning."""
    return expression.xreplace({g: g.meaning for g in expression.atoms(Generator)})


def hide_functions(expression: sp.Expr) -> sp.Expr:
    """Return the expression with an indeterminate for every function of parameters.

    SymPy would write sign(k) as k/Abs(k), which is undefined at zero.
    """
    functions = expression.atoms(Application)
    return expression.xreplace({node: Generator.of(f"_{node}", node) for node in functions})


def roots_of(polynomial: sp.Expr, unknown: sp.Symbol) -> list[sp.Expr]:
    """Return the roots, with multiplicity, of a polynomial whose coefficients may contain functions of parameters."""
    return [decode(root) for root in sp.roots(sp.Poly(hide_functions(polynomial), unknown), multiple=True)]


def generic_value(generator: Generator) -> sp.Rational:
    """Return a rational number between 1/2 and 3/2 for an indeterminate, pseudo-random and the same in every run."""
    digest = hashlib.sha256(str(generator.meaning).encode()).digest()
    return sp.Rational(1, 2) + sp.Rational(int.from_bytes(digest[:3], "big"), 2**24 - 3)


@ByKind
def _collect(node: sp.Expr, orders: dict[Key, int]) -> None:
    """Collect the keys of all non-integer powers, with the least common denominator of their exponents."""


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
    """Return a power as a product of powers of keys. The exponent is split into terms only if the base is nonzero."""
    base, exponent = power.args
    if exponent.is_Rational:
        return [((base, sp.S.One), exponent)]
    invertible = base.is_zero is False
    factors = []
    for term in sp.Add.make_args(sp.expand(exponent)) if invertible else (exponent,):
        if term.is_Rational:
            factors.append(((base, sp.S.One), term))
            continue
        content, primitive = term.as_content_primitive()
        if invertible and primitive.could_extract_minus_sign():
            content, primitive = -content, -primitive
        factors.append(((base, primitive), content))
    return factors
