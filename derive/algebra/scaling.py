"""Powers of the system size: all sizes grow together at fixed ratios."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import sympy as sp
from sympy.core.relational import Relational

from derive.algebra.recheck import check_same
from derive.errors import DeclarationError, SizeError
from derive.language.diagonals import DiagonalMatrix
from derive.language.matrices import Dyad, MatrixAtom, MatrixExpression, ProductOfMatrices, SumOfMatrices
from derive.language.symbols import Sector
from derive.language.traversal import ByKind
from derive.language.vectors import shown


def size_order(expression: sp.Expr, where: str) -> sp.Rational:
    """Return the power of the base size with which a scalar coefficient grows."""
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
    """Return the expression in terms of ratios of sizes; raise an error if it still depends on the size.

    A homogeneous function of degree zero has the same value at the sizes and at their ratios to the base size.
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
    """Return the degree of homogeneity in the sizes: f(x D, x N, ...) = x^degree f(D, N, ...) for x > 0.

    None if the function is not homogeneous. The rules hold for all signs of the other symbols.
    """
    return _homogeneous(expression) if expression.atoms(Sector) else sp.S.Zero


def _degrees(expression: sp.Basic) -> list[sp.Rational | None]:
    return [_degree(arg) for arg in expression.args]


def _common(degrees: Iterable[sp.Rational | None]) -> sp.Rational | None:
    """Return the degree that all have in common; None if they differ."""
    distinct = set(degrees)
    return distinct.pop() if len(distinct) == 1 else None


@ByKind
def _homogeneous(expression: sp.Basic) -> sp.Rational | None:
    return sp.S.Zero if all(degree == 0 for degree in _degrees(expression)) else None


@_homogeneous.on(Sector)
def _(expression: Sector) -> sp.Rational | None:
    return sp.S.One


@_homogeneous.on(sp.Pow)
def _(expression: sp.Pow) -> sp.Rational | None:
    inner = _degree(expression.base)
    if expression.exp.is_Rational:
        return None if inner is None else inner * expression.exp
    return sp.S.Zero if inner == 0 and _degree(expression.exp) == 0 else None


@_homogeneous.on(sp.Piecewise)
def _(expression: sp.Piecewise) -> sp.Rational | None:
    decided = all(_degree(condition) == 0 for _, condition in expression.args)
    return _common(_degree(value) for value, _ in expression.args) if decided else None


@_homogeneous.on(sp.Mul)
def _(expression: sp.Mul) -> sp.Rational | None:
    degrees = _degrees(expression)
    return None if None in degrees else sp.Add(*degrees)


@_homogeneous.on(sp.Add, sp.Min, sp.Max, sp.Abs)
def _(expression: sp.Expr) -> sp.Rational | None:
    return _common(_degrees(expression))


@_homogeneous.on(sp.sign, sp.Heaviside)
def _(expression: sp.Expr) -> sp.Rational | None:
    """The second argument of Heaviside is its value at zero."""
    first, *others = _degrees(expression)
    return sp.S.Zero if first is not None and all(degree == 0 for degree in others) else None


@_homogeneous.on(Relational)
def _(expression: Relational) -> sp.Rational | None:
    return None if _common(_degrees(expression)) is None else sp.S.Zero


def growth(order: sp.Rational, size: Sector) -> str:
    """Describe how a quantity with this power of the size changes as the size grows."""
    return f"grows like {size**order}" if order > 0 else f"vanishes like {size**order}"


def cure(order: sp.Rational, size: Sector) -> str:
    """Describe how to remove an excess power of the size."""
    return f"divide it by {size**order}" if order > 0 else f"multiply it by {size**-order}"


def split_sizes(coefficient: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Split a product into powers of sizes and the rest.

    SymPy expands denominators, so a size is factored out of sqrt(D)*t + sqrt(D) first; otherwise t would count as a
    size. A factor with sizes and other symbols is a power of one of its sizes times its value at the ratios to that
    size.
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


@ByKind
def norm_order(matrix: MatrixExpression) -> sp.Rational:
    """Return the power of the base size with which the operator norm of a matrix grows."""
    raise NotImplementedError(type(matrix).__name__)


@norm_order.on(SumOfMatrices)
def _(matrix: SumOfMatrices) -> sp.Rational:
    return max(size_order(scale, str(matrix)) + norm_order(part) for scale, part in matrix.terms)


@norm_order.on(ProductOfMatrices)
def _(matrix: ProductOfMatrices) -> sp.Rational:
    return sum(map(norm_order, matrix.factors), sp.S.Zero)


@norm_order.on(Dyad)
def _(matrix: Dyad) -> sp.Rational:
    return sp.S.One


@norm_order.on(DiagonalMatrix)
def _(matrix: DiagonalMatrix) -> sp.Rational:
    return sp.S.Zero


@norm_order.on(MatrixAtom)
def _(matrix: MatrixAtom) -> sp.Rational:
    if matrix.random is None:
        raise DeclarationError(f"{matrix}: its size is not known; state weights by their update rule")
    return (1 + size_order(matrix.random.variance, str(matrix))) / 2
