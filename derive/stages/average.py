"""Action -> AveragedAction: <exp(-i Tr W^T X)> = exp(-variance/2 Tr X^T X), expanded into bilinears.

For a symmetric matrix the exponent is -variance/2 (Tr X^T X + Tr X X).
"""

from __future__ import annotations

import sympy as sp

from derive.records.action import Action, AveragedAction, Coupling, Leg, Quartic


def average_disorder(action: Action) -> AveragedAction:
    """Square X for each matrix: one quartic term for every ordered pair of couplings."""
    terms: list[Quartic] = []
    for matrix in action.system.disorder:
        couplings = [c for c in action.couplings if c.matrix == matrix]
        for p in couplings:
            for q in couplings:
                weight = -matrix.variance / 2 * p.coefficient * q.coefficient
                (p_row, p_column), (q_row, q_column) = _dyad(p), _dyad(q)
                terms.append(Quartic(matrix, weight, (p_row, q_row), (p_column, q_column)))
                if matrix.symmetric:
                    terms.append(Quartic(matrix, weight, (p_row, q_column), (p_column, q_row)))
    return AveragedAction(
        action,
        tuple(t for t in terms if t.weight != sp.S.Zero),
        (*action.assumptions, "the entries of random matrices are Gaussian and independent"),
    )


def _dyad(coupling: Coupling) -> tuple[Leg, Leg]:
    """The coupling's contribution to X as (row vector, column vector)."""
    hat, argument = Leg(coupling.field, True), Leg(coupling.argument, False)
    return (argument, hat) if coupling.transposed else (hat, argument)
