"""How quantities grow with the size of the system, all sizes growing together at fixed ratios."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp
from sympy.core.relational import Relational

from derive.algebra.recheck import check_same
from derive.errors import DeclarationError, SizeError
from derive.language.diagonals import Diagonal
from derive.language.matrices import Atom, Disorder, Dyad, Matrix, Product, Sum
from derive.language.symbols import Sector
from derive.language.vectors import shown


def size_order(expression: sp.Expr, where: str) -> sp.Rational:
    """The power of the base size with which a scalar coefficient grows."""
    expression = sp.sympify(expression)
    order = _degree(expression)
    if order is None:
        order = _degree(sp.expand_mul(expression))
    if order is None:
        raise SizeError(
            f"{where}: {shown(expression)} is not a power of a size; give each term its own power of a size (a "
            "function of a ratio of sizes is a parameter of its own)"
        )
    return order


def size_free(expression: sp.Expr, where: str) -> sp.Expr:
    """The expression in terms of ratios; an error if it still grows or shrinks with the size.

    A homogeneous function of degree zero has the same value for the sizes and for their ratios to the base size.
    """
    expression = sp.sympify(expression)
    sizes = {sector: sector.ratio for sector in expression.atoms(Sector)}
    if not sizes:
        return expression
    order = size_order(expression, where)
    if order != 0:
        size = min(sizes, key=lambda sector: sector.name)
        raise SizeError(
            f"{where} {growth(order, size)} and has no limit at large size; {cure(order, size)}, for instance W @ x / "
            "sqrt(columns) for entries of variance 1, or outer(a, b) / size"
        )
    scaled = sp.powsimp(sp.expand_power_base(sp.factor_terms(expression.xreplace(sizes))))
    check_same(expression, scaled, "system", where)
    return scaled


@lru_cache(maxsize=1000)  # the same few coefficients are asked about at every stage
def _degree(expression: sp.Basic) -> sp.Rational | None:
    """The degree of a function of the sizes that is homogeneous: f(x D, x N, ...) = x^degree f(D, N, ...) for x > 0.

    None for any other function. The rules hold whatever the signs of the other symbols are.
    """
    if not expression.atoms(Sector):
        return sp.S.Zero
    if isinstance(expression, Sector):
        return sp.S.One
    if isinstance(expression, sp.Pow) and expression.exp.is_Rational:
        inner = _degree(expression.base)
        return None if inner is None else inner * expression.exp
    if isinstance(expression, sp.Piecewise):
        degrees = {_degree(value) for value, _ in expression.args}
        decided = all(_degree(condition) == 0 for _, condition in expression.args)
        return degrees.pop() if decided and len(degrees) == 1 else None
    parts = [_degree(arg) for arg in expression.args]
    if any(part is None for part in parts):
        return None
    if isinstance(expression, sp.Mul):
        return sp.Add(*parts)
    if isinstance(expression, (sp.Add, sp.Min, sp.Max, sp.Abs)):
        return parts[0] if len(set(parts)) == 1 else None
    if isinstance(expression, (sp.sign, sp.Heaviside)):  # the second argument of Heaviside is its value at zero
        return sp.S.Zero if all(part == 0 for part in parts[1:]) else None
    if isinstance(expression, Relational):
        return sp.S.Zero if len(set(parts)) == 1 else None
    return sp.S.Zero if all(part == 0 for part in parts) else None


def growth(order: sp.Rational, size: Sector) -> str:
    """How something with this power of the size changes as the size grows."""
    return f"grows like {size**order}" if order > 0 else f"vanishes like {size**order}"


def cure(order: sp.Rational, size: Sector) -> str:
    """What to do about something that has this power of the size too much."""
    return f"divide it by {size**order}" if order > 0 else f"multiply it by {size**-order}"


def split_sizes(coefficient: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """A product as (powers of sizes, the rest).

    SymPy multiplies denominators out: a size is taken out of sqrt(D)*t + sqrt(D) first, or t would count as a size.
    A factor with sizes and other symbols is a power of one of its sizes times what it is at the ratios to that size.
    """
    coefficient, sizes, rest = sp.sympify(coefficient), sp.S.One, sp.S.One
    for factor in sp.Mul.make_args(sp.expand_power_base(sp.factor_terms(coefficient))):
        inside = sorted(factor.atoms(Sector), key=lambda sector: sector.name)
        degree = _degree(factor) if inside and factor.free_symbols - set(inside) else None
        if degree is not None:
            sizes *= inside[0] ** degree
            rest *= factor.xreplace({sector: sector.ratio / inside[0].ratio for sector in inside})
        elif inside:
            sizes *= factor
        else:
            rest *= factor
    check_same(coefficient, sizes * rest, "system", shown(coefficient))
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
