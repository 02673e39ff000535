"""Lowering of a derivation to its forward pass, with the closure that the stage `method` chose."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from derive.equations.gaussian_laws import Laws
from derive.equations.layout import Layout
from derive.equations.needs import NOTHING, Needs
from derive.program.forward import Forward, Lowering
from derive.program.forward_quadrature import ByQuadrature
from derive.program.forward_sampled import BySampling
from derive.records.method import ClosureKind

if TYPE_CHECKING:
    from derive.pipeline import Derivation

LOWERINGS = {ClosureKind.EXACT: Lowering, ClosureKind.QUADRATURE: ByQuadrature, ClosureKind.SAMPLED: BySampling}


def forward_program(derivation: Derivation) -> Forward:
    """Return the forward pass of a derivation: observables, and the order parameters that its probes need."""
    method = derivation.method
    closure = ClosureKind.EXACT if method.laws is None else ClosureKind.QUADRATURE
    closure = ClosureKind.SAMPLED if method.sampled else closure
    program = forward_pass(derivation.layout, derivation.needs, closure, method.laws, method.responses)
    return replace(program, labels=method.labels)


def forward_pass(
    layout: Layout,
    needs: Needs = NOTHING,
    closure: ClosureKind = ClosureKind.EXACT,
    laws: Laws | None = None,
    responses: str = "stein",
) -> Forward:
    """Return the forward pass with a given closure for the order parameters in `needs` and the observables."""
    return LOWERINGS[closure](layout, needs, laws, responses).program()
