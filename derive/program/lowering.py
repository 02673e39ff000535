"""The forward pass of a derivation as a program, by the closure that its method says."""

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
    """The program that gives the order parameters that probed matrices need, and the observables, by the method of the
    derivation."""
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
    """The program that gives the order parameters that are needed, and the observables."""
    return LOWERINGS[closure](layout, needs, laws, responses).program()
