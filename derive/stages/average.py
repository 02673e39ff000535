"""Action -> AveragedAction: <exp(-i Tr W^T X)> = exp(-variance/2 Tr X^T X), expanded into bilinears.

For a symmetric matrix the exponent is -variance/2 (Tr X^T X + Tr X X). The square is a sum over pairs of couplings. The
spectral fields of a probe therefore add the pairs that contain one of them and change no other.
"""

from __future__ import annotations

import sympy as sp

from derive.language.matrices import Disorder
from derive.records.action import Action, AveragedAction, Coupling, Leg, Quartic


def average_disorder(action: Action) -> AveragedAction:
    """Return the quartic terms of Tr X^T X for each matrix: one for every ordered pair of couplings.

    If the action contains spectral fields, only pairs with one of them are returned; the others belong to the training
    level.
    """
    uses: dict[Disorder, list[Coupling]] = {}
    for c in action.couplings:
        uses.setdefault(c.matrix, []).append(c)
    probed = bool(action.system.spectral)
    terms: list[Quartic] = []
    for matrix, couplings in uses.items():
        for p in couplings:
            for q in couplings:
                if probed and "spectral" not in (p.field.role, q.field.role):
                    continue
                weight = -matrix.variance / 2 * p.coefficient * q.coefficient
                (p_row, p_column), (q_row, q_column) = _dyad(p), _dyad(q)
                terms.append(Quartic(matrix, weight, (p_row, q_row), (p_column, q_column)))
                if matrix.symmetric:
                    terms.append(Quartic(matrix, weight, (p_row, q_column), (p_column, q_row)))
    return AveragedAction(
        action.system,
        tuple(t for t in terms if t.weight != sp.S.Zero),
        (*action.assumptions, "the entries of random matrices are Gaussian and independent"),
    )


def _dyad(coupling: Coupling) -> tuple[Leg, Leg]:
    """Return the coupling's contribution to X as (row vector, column vector)."""
    hat, argument = Leg(coupling.field, True), Leg(coupling.argument, False)
    return (argument, hat) if coupling.transposed else (hat, argument)
