"""System -> Action: every equation becomes i hat(field) . (field - right-hand side)."""

from __future__ import annotations

from derive.records.action import Action, Coupling
from derive.records.system import System


def build_action(system: System) -> Action:
    """Return the Martin-Siggia-Rose action, with the couplings X of each random matrix W in exp(-i Tr W^T X)."""
    couplings = tuple(
        Coupling(product.matrix, product.transposed, product.coefficient, f.field, product.argument)
        for f in system.fields
        if (product := f.product) is not None
    )
    return Action(
        system, couplings, (*system.assumptions, "the Jacobian of the equations is 1 (causal discretisation)")
    )
