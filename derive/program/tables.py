"""Coefficients that are polynomials in parameters, stored as data instead of code."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import sympy as sp

from derive.algebra.generators import Generators, decode
from derive.program.text import SHORT

Lines = tuple[str, ...]
WIDTH = 96
"""Line width of a table, in characters."""


def coefficient_table(rows: Sequence[Sequence[sp.Expr]]) -> tuple[tuple[sp.Expr, ...], tuple[tuple[Lines, ...], ...]]:
    """Return the variables of a table and its rows of coefficients, sums of "number power power ..." terms.

    Each power belongs to one variable. Variables are parameters and functions of them; a coefficient that is not a
    polynomial over the rationals becomes a variable itself.
    """
    entries = [sp.sympify(entry) for row in rows for entry in row]
    generators = Generators.of(entries)
    encoded = [generators.encode(entry) for entry in entries]
    symbols = sorted({s for entry in encoded for s in entry.free_symbols}, key=sp.default_sort_key)
    polys = {entry: _polynomial(entry, symbols) for entry in encoded}
    others = list(dict.fromkeys(entry for entry in encoded if polys[entry] is None))
    texts = iter(_lines(polys[entry], len(symbols), others, entry) for entry in encoded)
    table = tuple(tuple(next(texts) for _ in row) for row in rows)
    return tuple(map(decode, (*symbols, *others))), table


def _polynomial(entry: sp.Expr, symbols: Sequence[sp.Symbol]) -> sp.Poly | None:
    try:
        return sp.Poly(entry, *(symbols or (sp.Dummy(),)), domain=sp.QQ)
    except (sp.PolynomialError, sp.CoercionFailed):
        return None


def _lines(poly: sp.Poly | None, count: int, others: list[sp.Expr], entry: sp.Expr) -> Lines:
    behind = [0] * len(others)
    if poly is None:
        behind[others.index(entry)] = 1
        terms = [((0,) * count, sp.S.One)]
    else:
        terms = [(powers[:count], c) for powers, c in poly.terms() if c != 0]
    words = (" ".join((_number(c), *map(str, (*powers, *behind)))) for powers, c in terms)
    # spaces inside of a term are kept together
    joined = ", ".join(word.replace(" ", "_") for word in words)
    return tuple(line.replace("_", " ") for line in textwrap.wrap(joined, WIDTH, break_long_words=False))


def _number(number: sp.Rational) -> str:
    parts = (number.p,) if number.q == 1 else (number.p, number.q)
    return "/".join(str(part) if abs(part) < SHORT else hex(part) for part in parts)
