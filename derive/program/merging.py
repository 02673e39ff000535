"""Fewer products with the same past: what two statements contract with one array is contracted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import sympy as sp

from derive.program.nodes import SCALAR, Formula, Let, MatMul, Ref, Shape, Sum, Symbol, Value, children, symbols_in

Terms = tuple[tuple[Formula, Value], ...]


def merged(statements: tuple[Let, ...], wanted: Collection[Symbol]) -> tuple[Let, ...]:
    """The same statements, with sums put into the sums that use them where both hold a product with one array.

    a = u + k @ past and b = a + w @ past become b = u + (k + w) @ past: a long product is what takes the time. Only
    where a is used nowhere else, is not wanted afterwards, and what it reads is still the same at b.
    """
    found = list(statements)
    uses = Counter(symbol for let in found for symbol in _mentions(let.value))
    place = 0
    while place < len(found):
        let = found[place]
        alone = uses[let.symbol] == 1 and let.symbol not in wanted
        user = _user(found, place) if alone and isinstance(let.value, Sum) else None
        if user is not None:
            into = found[user]
            value = _put_in(let.symbol, let.value, into.value)
            if value is not None:
                remark = "\n".join(filter(None, (let.remark, into.remark)))
                found[user] = Let(into.symbol, value, remark)
                del found[place]
                continue
        place += 1
    return tuple(found)


def _user(statements: list[Let], place: int) -> int | None:
    """The next statement that uses a symbol, if all that the symbol is made of is still the same there."""
    made = statements[place]
    reads = symbols_in(made.value)
    for later in range(place + 1, len(statements)):
        let = statements[later]
        if made.symbol in symbols_in(let.value):
            return later
        if let.symbol in reads or let.symbol is made.symbol:
            return None
    return None


def _put_in(symbol: Symbol, inner: Value, outer: Value) -> Sum | None:
    """The outer sum with the inner one in place of its symbol; None if that saves no product."""
    if not (isinstance(inner, Sum) and isinstance(outer, Sum)) or inner.shape != outer.shape:
        return None
    terms: list[tuple[Formula, Value]] = []
    for factor, value in outer.terms:
        if isinstance(value, Ref) and value.symbol is symbol:
            terms += [(_times(factor, each), term) for each, term in inner.terms]
        else:
            terms.append((factor, value))
    if any(symbol in symbols_in(part) for term in terms for part in term):
        return None
    together = _gathered(tuple(terms))
    return Sum(together, outer.shape) if len(together) < len(terms) else None


def _times(a: Formula, b: Formula) -> Formula:
    return Formula(a.expression * b.expression, _together(a.shape, b.shape))


def _together(a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of the product of two factors."""
    if a is None or b is None or SCALAR in (a, b):
        return b if a == SCALAR else a
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


def _gathered(terms: Terms) -> Terms:
    """Products with the same array as one, where the first of them stood."""
    groups: dict[tuple[Symbol, Shape] | int, list[tuple[Formula, Value]]] = {}
    for number, (factor, value) in enumerate(terms):
        key = _contracted(factor, value)
        groups.setdefault(number if key is None else key, []).append((factor, value))
    return tuple(group[0] if len(group) == 1 else _one_product(group) for group in groups.values())


def _contracted(factor: Formula, value: Value) -> tuple[Symbol, Shape] | None:
    """What a product contracts with which array, if its factor can go to the left of the product."""
    if not (isinstance(value, MatMul) and isinstance(value.right, Ref)) or value.left.shape is None:
        return None
    if factor.shape is None or (factor.shape != SCALAR and factor.shape[0] not in (1, value.left.shape[0])):
        return None
    if len(factor.shape) > 1 and factor.shape[1] != 1:  # it multiplies columns, which stand on the right
        return None
    return value.right.symbol, value.left.shape


def _one_product(products: list[tuple[Formula, Value]]) -> tuple[Formula, Value]:
    first = products[0][1]
    kernels = tuple((factor, value.left) for factor, value in products if isinstance(value, MatMul))
    assert isinstance(first, MatMul)
    return Formula(sp.S.One), MatMul(Sum(kernels, first.left.shape), first.right)


def _mentions(value: Value) -> list[Symbol]:
    """The symbols that a value refers to, as often as it does."""
    own = [value.symbol] if isinstance(value, Ref) else []
    return [*own, *(symbol for child in children(value) for symbol in _mentions(child))]
