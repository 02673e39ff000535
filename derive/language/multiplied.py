"""Expanded matrix products, which make equal matrices comparable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp

from derive.language.diagonals import DiagonalLetter, DiagonalMatrix, diagonal_words
from derive.language.matrices import Dyad, MatrixAtom, MatrixExpression, ProductOfMatrices, SumOfMatrices
from derive.language.traversal import ByKind
from derive.language.vectors import axes_of, sector_of

Letters = tuple[tuple[Any, ...] | DiagonalLetter, ...]
Words = dict[Letters, sp.Expr]
Spelling = Callable[[MatrixAtom], Words]


@ByKind
def words_of(matrix: MatrixExpression, letters: Spelling | None = None) -> Words:
    """Return the expanded matrix: a coefficient for each product of letters (symbol, transposed) or outer products.

    Args:
        letters: the expansion of a matrix symbol; by default the symbol itself.
    """
    raise NotImplementedError(type(matrix).__name__)


@words_of.on(SumOfMatrices)
def _(matrix: SumOfMatrices, letters: Spelling | None = None) -> Words:
    total: Words = {}
    for scale, part in matrix.terms:
        for word, value in words_of(part, letters).items():
            total[word] = total.get(word, sp.S.Zero) + scale * value
    return total


@words_of.on(ProductOfMatrices)
def _(matrix: ProductOfMatrices, letters: Spelling | None = None) -> Words:
    total: Words = {(): sp.S.One}
    for factor in matrix.factors:
        following = words_of(factor, letters)
        longer: Words = {}
        for a, x in total.items():
            for b, y in following.items():
                word, scale = _joined(a, b)
                longer[word] = longer.get(word, sp.S.Zero) + x * y * scale
        total = longer
    return total


@words_of.on(Dyad)
def _(matrix: Dyad, letters: Spelling | None = None) -> Words:
    return dyad_words(matrix.left, matrix.right)


@words_of.on(DiagonalMatrix)
def _(matrix: DiagonalMatrix, letters: Spelling | None = None) -> Words:
    return {word: scale for word, scale in diagonal_words(matrix.entries).items()}


@words_of.on(MatrixAtom)
def _(matrix: MatrixAtom, letters: Spelling | None = None) -> Words:
    return {((matrix.symbol, matrix.transposed),): sp.S.One} if letters is None else letters(matrix)


def _joined(a: Letters, b: Letters) -> tuple[Letters, sp.Expr]:
    """Concatenate two words; adjacent diagonal matrices merge, and the identity is dropped."""
    if not (a and b and isinstance(a[-1], DiagonalLetter) and isinstance(b[0], DiagonalLetter)):
        return a + b, sp.S.One
    ((word, scale),) = diagonal_words(a[-1].entries * b[0].entries).items()
    return a[:-1] + word + b[1:], scale


def dyad_words(left: sp.Expr, right: sp.Expr) -> dict[Letters, sp.Expr]:
    """Return an expanded outer product, so that 2 outer(a, b) and outer(a, 2 b) are equal.

    A letter is (left, right, weight): a factor with labels is inside the sum over them, on whichever side it was
    written.
    """
    total: dict[Letters, sp.Expr] = {}
    for a in sp.Add.make_args(sp.expand(left)):
        for b in sp.Add.make_args(sp.expand(right)):
            factors = sp.Mul.make_args(a), sp.Mul.make_args(b)
            first, second = (sp.Mul(*(f for f in end if sector_of(f) is not None)) for end in factors)
            numbers = [f for end in factors for f in end if sector_of(f) is None]
            weight = sp.Mul(*(f for f in numbers if axes_of(f)))
            word = ((first, second, weight),)
            total[word] = total.get(word, sp.S.Zero) + sp.Mul(*(f for f in numbers if not axes_of(f)))
    return total


def are_proportional(first: dict[Letters, sp.Expr], second: dict[Letters, sp.Expr]) -> bool:
    """Return whether two expanded matrices are multiples of each other."""
    if not first or set(first) != set(second):
        return False
    word = next(iter(first))
    return all(sp.simplify(first[w] * second[word] - second[w] * first[word]) == 0 for w in first)


def half_product(matrix: MatrixExpression) -> int:
    """Return the number of factors of K^T if the matrix is a multiple of K^T K; 0 otherwise."""
    if len(matrix.as_sum) == 1:
        matrix = matrix.as_sum[0][1]
    factors = matrix.as_product
    for half in sorted(range(1, len(factors)), key=lambda n: (abs(2 * n - len(factors)), n)):
        left = ProductOfMatrices(matrix.rows, factors[half].rows, factors[:half])
        right = ProductOfMatrices(factors[half].rows, matrix.columns, factors[half:])
        if are_proportional(words_of(left), words_of(right.T)):
            return half
    return 0
