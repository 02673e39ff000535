"""Diagonal matrices of traits and training fields, as factors or terms of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy as sp

from derive.errors import DeclarationError
from derive.language.expressions import word
from derive.language.matrices import Evolving, MatrixExpression, SumOfMatrices
from derive.language.symbols import Sector, exact
from derive.language.vectors import Apply, Each, FieldAt, Total, axes_of, named_fields, sector_of, shown


@dataclass(frozen=True, repr=False)
class DiagonalMatrix(MatrixExpression):
    """The matrix with a vector on its diagonal: it multiplies vectors entry by entry."""

    entries: sp.Expr

    is_diagonal = property(lambda self: True)

    @property
    def T(self) -> MatrixExpression:
        return self

    def applied_to(self, vector: sp.Expr) -> sp.Expr:
        return self.entries * vector

    @property
    def expressions(self) -> list[sp.Basic]:
        return [self.entries]

    def mapped(self, change: Callable[[sp.Basic], Any]) -> MatrixExpression:
        return DiagonalMatrix(self.rows, self.columns, change(self.entries))

    def __str__(self) -> str:
        return f"diag({shown(self.entries)})"


class DiagonalLetter(NamedTuple):
    """A diagonal factor in an expanded product: a product of functions of the site."""

    entries: sp.Expr


def diagonal_words(entries: sp.Expr) -> dict[tuple[DiagonalLetter, ...], sp.Expr]:
    """Return an expanded diagonal matrix, so that diag(2 s) and 2 diag(s) are equal."""
    total: dict[tuple[DiagonalLetter, ...], sp.Expr] = {}
    for part in sp.Add.make_args(sp.expand(entries)):
        scale, of_sites = part.as_independent(FieldAt, as_Add=False)
        letters = () if of_sites == 1 else (DiagonalLetter(of_sites),)
        total[letters] = total.get(letters, sp.S.Zero) + scale
    return total


@word
def diag(entries: Any) -> MatrixExpression:
    """Return the diagonal matrix of a vector: diag(s) @ v is s * v, entry by entry.

    In a probed matrix its entries are bounded functions of traits, or of training fields with linear laws. For example,
    diag(1 - tanh(h) ** 2) @ W is the Jacobian of a layer of saturating units with h = W @ x / sqrt(D).

    >>> from derive import diag, gaussian, parameter, positive, sectors, spectrum, trait
    >>> D, N = sectors("D", N=parameter("nu", default=2.0, domain=positive))
    >>> W, s = gaussian("W", N, D), trait("s", N, values=[1, 4], weights=[0.5, 0.5])
    >>> spectrum(W.T @ diag(s) @ W / N)
    spectrum(1/N*W.T @ diag(s) @ W)
    """
    if isinstance(entries, (MatrixExpression, Evolving)):
        raise DeclarationError(f"diag({entries}): {entries} is a matrix; diag takes a vector, such as a trait")
    vector = named_fields(exact(entries))
    where = f"diag({shown(vector)})"
    sector = sector_of(vector, where)
    if sector is None:
        raise DeclarationError(f"{where}: {shown(vector)} is not a vector; give a trait, trait('s', D, values=[1, 2])")
    if vector.has(Apply):
        raise DeclarationError(f"{where}: give W @ v a field of its own and use that field here")
    if axes_of(vector, where) or vector.has(Each, Total):
        raise DeclarationError(f"{where}: its entries have labels; a diagonal matrix has one entry per site")
    scale, of_sites = vector.as_independent(FieldAt, as_Add=False)
    if of_sites.atoms(Sector):
        raise DeclarationError(
            f"{where}: a size occurs inside a function of the sites; multiply the matrix by it, as in diag(s) / "
            f"{min(map(str, of_sites.atoms(Sector)))}"
        )
    matrix = DiagonalMatrix(sector, sector, of_sites)
    return matrix if scale == 1 else SumOfMatrices.of((scale, matrix))
