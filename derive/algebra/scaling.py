"""How quantities grow with the size of the system, all sizes growing together at fixed ratios."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from derive.errors import DeclarationError, SizeError
from derive.language.diagonals import Diagonal
from derive.language.matrices import Atom, Disorder, Dyad, Matrix, Product, Sum
from derive.language.symbols import EngineSymbol, Sector
from derive.language.vectors import shown

BASE = EngineSymbol("base_size", positive=True)


def in_base_size(expression: sp.Expr) -> sp.Expr:
    """The expression with every size written as ratio times the base size."""
    return _in_base_size(sp.sympify(expression))


@lru_cache(maxsize=1000)  # the same few coefficients are asked about at every stage
def _in_base_size(expression: sp.Expr) -> sp.Expr:
    sizes = {sector: sector.ratio * BASE for sector in expression.atoms(Sector)}
    return sp.powdenest(sp.powsimp(expression.xreplace(sizes)), force=True) if sizes else expression


def size_order(expression: sp.Expr, where: str) -> sp.Rational:
    """The power of the base size with which a scalar coefficient grows."""
    scaled = sp.expand_power_base(sp.expand_mul(in_base_size(expression)), force=True)
    parts = [term.as_coeff_exponent(BASE) for term in sp.Add.make_args(scaled)]
    if any(factor.has(BASE) for factor, _ in parts):  # log(D) or 1/(1 + D), whose order is none
        raise SizeError(
            f"{where}: {shown(expression)} is not a power of a size; take powers; a function of a ratio of sizes "
            "is a parameter of its own"
        )
    orders = {order for _, order in parts}
    if len(orders) != 1 or not next(iter(orders)).is_Rational:
        raise SizeError(
            f"{where}: the coefficient {shown(expression)} has parts that grow differently with the sizes; give each "
            "term its own power of a size"
        )
    return next(iter(orders))


def size_free(expression: sp.Expr, where: str) -> sp.Expr:
    """The expression in terms of ratios; an error if it still grows or shrinks with the size."""
    scaled = sp.powsimp(sp.expand_power_base(sp.factor_terms(in_base_size(expression)), force=True))
    if scaled.has(BASE):
        order = size_order(expression, where)
        size = min(expression.atoms(Sector), key=lambda sector: sector.name)
        raise SizeError(
            f"{where} {growth(order, size)} and has no limit at large size; {cure(order, size)}, for instance W @ x / "
            "sqrt(columns) for entries of variance 1, or outer(a, b) / size"
        )
    return scaled


def growth(order: sp.Rational, size: Sector) -> str:
    """How something with this power of the size changes as the size grows."""
    return f"grows like {size**order}" if order > 0 else f"vanishes like {size**order}"


def cure(order: sp.Rational, size: Sector) -> str:
    """What to do about something that has this power of the size too much."""
    return f"divide it by {size**order}" if order > 0 else f"multiply it by {size**-order}"


def split_sizes(coefficient: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """A product as (powers of sizes, the rest).

    SymPy multiplies denominators out: a size is taken out of sqrt(D)*t + sqrt(D) first, or t would count as a size.
    """
    sizes, rest = sp.S.One, sp.S.One
    for factor in sp.Mul.make_args(sp.expand_power_base(sp.factor_terms(coefficient), force=True)):
        if factor.atoms(Sector):
            sizes *= factor
        else:
            rest *= factor
    return sizes, rest


def norm_order(matrix: Matrix) -> sp.Rational:
    """The power of the base size with which the largest singular value of a matrix grows."""
    if isinstance(matrix, Sum):
        return max(size_order(scale, str(matrix)) + norm_order(part) for scale, part in matrix.terms)
    if isinstance(matrix, Product):
        return sum(map(norm_order, matrix.factors), sp.S.Zero)
    if isinstance(matrix, Dyad):
        return sp.S.One
    if isinstance(matrix, Diagonal):
        return sp.S.Zero
    if isinstance(matrix, Atom) and isinstance(matrix.symbol, Disorder):
        return (1 + size_order(matrix.symbol.variance, str(matrix))) / 2
    raise DeclarationError(f"{matrix}: its size is not known; state weights by their update rule")
