"""System -> Action: every equation becomes i hat(field) . (field - right-hand side)."""

from __future__ import annotations

from derive.records.action import Action, Coupling
from derive.records.system import DisorderRule, System


def build_action(system: System) -> Action:
    """Collect what multiplies each random matrix: exp(-i Tr W^T X)."""
    couplings = tuple(
        Coupling(f.rule.matrix, f.rule.transposed, f.rule.coefficient, f.field, f.rule.argument)
        for f in system.fields
        if isinstance(f.rule, DisorderRule)
    )
    return Action(
        system, couplings, (*system.assumptions, "the Jacobian of the equations is 1 (causal discretisation)")
    )
