"""One eigenproblem of the reduced A(z), as polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.polynomials import common_roots
from derive.records.probe import MAP


@dataclass(frozen=True)
class Eigenproblem:
    """One cycle of A(z): its scalar map and its characteristic polynomial, expanded and in factors.

    `relation` is a polynomial in z and MAP; `factors` are irreducible polynomials in MAP.
    """

    scalar_map: sp.Expr
    relation: sp.Expr
    characteristic: sp.Expr
    factors: tuple[sp.Expr, ...]

    @cached_property
    def critical(self) -> list[sp.Expr]:
        """Polynomials in MAP whose roots are the critical values dz/ds = 0, where an outlier meets the bulk."""
        polynomials = common_roots(self.relation, sp.diff(self.relation, MAP), Z)
        return [f for f in polynomials if f.has(MAP) and f != MAP]
