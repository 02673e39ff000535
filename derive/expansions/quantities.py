"""Edges, outliers and thresholds as power series in a parameter, or exactly.

Each is a root of a polynomial that the derivation has found; which root, is decided by following the physical branch
at small values of the parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.errors import DeriveError
from derive.expansions.cases import Case
from derive.expansions.edges import Edges
from derive.expansions.limits import Limit
from derive.expansions.series import Expansion
from derive.expansions.spikes import Spikes
from derive.language.symbols import Parameter
from derive.pipeline import ProbedMatrix

QUANTITIES = ("edge", "lower_edge", "outlier", "threshold")


@dataclass(frozen=True)
class Found:
    """A series, the parameter whose threshold it is, and the values of open parameters that identified its branch."""

    expansion: Expansion
    parameter: Parameter | None
    branch: tuple[tuple[Parameter, sp.Rational], ...]


def expand_quantity(
    probed: ProbedMatrix,
    of: str,
    limit: Limit | None,
    order: sp.Rational,
    fixed: dict[Parameter, sp.Rational],
    wanted: str | None = None,
) -> Found:
    """The edge, outlier or threshold through SMALL**order, exact in every parameter that is not fixed.

    Without a limit it is the quantity itself: a series of one term.
    """
    case = Case.of(probed, limit, fixed)
    plus = dict(probed.training.model.probes)[probed.label].plus
    if plus and of != "threshold":
        raise DeriveError(
            f"the probed matrix is moved by the observable {plus}, which `expand` leaves out; take a layer without it"
        )
    for number in probed.probe.measured:
        raise DeriveError(
            f"the bulk depends on {number.average}, which changes with the parameters in its own way; `expand` does "
            "not follow it, so take a layer without it, or make it a parameter"
        )
    parameter = None
    if of in ("edge", "lower_edge"):
        edges = Edges(case)
        expansion, point = edges.expand(of == "edge", order), edges.point
    else:
        spikes = Spikes(case)
        if of == "outlier":
            expansion, point = spikes.outlier(order), spikes.point
        else:
            parameter = spikes.strength(wanted)
            expansion, point = spikes.threshold(parameter, order)
    return Found(expansion, parameter, tuple((p, v) for p, v in point.items() if isinstance(p, Parameter)))
