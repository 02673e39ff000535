"""Edges, outliers and thresholds as power series in a parameter, or exactly.

Each is a root of a derived polynomial. The physical branch at small values of the parameter selects the root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import sympy as sp

from derive.cells.region import Point, Region
from derive.cells.selection import Sites
from derive.cells.verdicts import SUPPORTED
from derive.errors import DeriveError, NumericalError
from derive.expansions.branches import Branches
from derive.expansions.cases import Case
from derive.expansions.edges import AtomPosition, Edges
from derive.expansions.limits import SMALL, ParameterLimit
from derive.expansions.series import PuiseuxSeries
from derive.expansions.spikes import CaseSpikes
from derive.language.symbols import Parameter, parameter_values
from derive.pipeline import DerivedProbe

MOST_THRESHOLDS = 12
"""Maximal number of listed thresholds."""
QUANTITIES = ("edge", "lower_edge", "outlier", "threshold")


class NoOutlier(DeriveError):
    """Raised if no cell has an outlier or threshold."""


@dataclass(frozen=True)
class QuantitySeries:
    """A series with its domain of validity and, for a threshold, its parameter and the edge that the outlier leaves.

    Attributes:
        points: values of the open parameters in the cells where it holds.
        status: "proved" if it holds in each whole cell, "supported" if it was identified at the points only.
        walls: polynomials that vanish between cells.
        elsewhere: points of cells in which it does not hold.
    """

    expansion: PuiseuxSeries
    points: tuple[Point, ...]
    status: str
    walls: tuple[sp.Expr, ...]
    elsewhere: tuple[Point, ...]
    parameter: Parameter | None = None
    edge_in_words: str = ""


@dataclass(frozen=True)
class Quantity:
    """The series of all cells, beginning with that at the defaults, and the branches that they expand."""

    series: list[QuantitySeries]
    branches: Branches

    @property
    def sites(self) -> Sites:
        """The visited points."""
        return self.branches.sites

    @property
    def expansion(self) -> PuiseuxSeries:
        """The series at the defaults."""
        return self.series[0].expansion


def expand_quantity(
    probed: DerivedProbe,
    of: str,
    limit: ParameterLimit | None,
    order: sp.Rational,
    fixed: dict[Parameter, sp.Rational],
    wanted: str | None = None,
    region: Region | None = None,
    rank: int | None = None,
) -> Quantity:
    """Return an edge, outlier or threshold through SMALL**order in each cell of a region.

    Coefficients are exact in every parameter that is not fixed. Without a limit the series has one term, the quantity
    itself. The series at the defaults is first; cells without an outlier have none. `rank` selects one of several
    thresholds, starting at 0.
    """
    case = Case.of(probed, limit, fixed)
    plus = dict(probed.training.model.probes)[probed.label].plus
    if plus and of != "threshold":
        raise DeriveError(
            f"the observable {plus} shifts the probed matrix, which `expand` does not support; use a layer without it"
        )
    for number in probed.probe.measured:
        raise DeriveError(
            f"the bulk depends on {number.average}, which itself depends on the parameters; `expand` does not include "
            "this dependence, so use a layer without it, or make it a parameter"
        )
    region = region or Region(case.name, tuple(probed.training.model.parameters))
    if of == "threshold":
        return _all_thresholds(CaseSpikes(case), wanted, region, order, rank)
    edge = of in ("edge", "lower_edge")
    branches = Edges(case).branches(of == "edge", region) if edge else CaseSpikes(case).branches(region)
    series = _series_of_cells(branches, order)
    if not series and not edge:
        other = "other values with --at" if limit is None else "another limit, or values with --at"
        raise NoOutlier(f"there is no outlier {case.limit_in_words}: all eigenvalues are in the bulk; try {other}")
    if not series:
        raise NumericalError(f"no edge of the bulk was found {case.limit_in_words}; expand around another value")
    return Quantity(sorted(series, key=lambda f: min(map(_distance, f.points))), branches)


def _series_of_cells(branches: Branches, order: sp.Rational) -> list[QuantitySeries]:
    """Return the series of all cells that have one."""
    series, sites = branches.series(order), branches.sites
    return [
        QuantitySeries(
            s.expansion,
            s.points,
            sites.status if s.whole_cells else SUPPORTED,
            sites.walls,
            tuple(point for other in series if other is not s for point in other.points),
        )
        for s in series
        if s.expansion is not None
    ]


def expand_atom(
    probed: DerivedProbe,
    position: sp.Expr,
    limit: ParameterLimit,
    order: sp.Rational,
    region: Region,
    fixed: dict[Parameter, sp.Rational],
) -> Quantity:
    """Return the weight of the point mass at a position through SMALL**order, in each cell of a region."""
    branches = AtomPosition(Case.of(probed, limit, fixed), position).branches(region)
    return Quantity(_series_of_cells(branches, order), branches)


def _all_thresholds(
    spikes: CaseSpikes, wanted: str | None, region: Region, order: sp.Rational, only: int | None
) -> Quantity:
    """Return every threshold of a parameter, or only the one of a given rank; thresholds of the upper edge near the
    defaults come first.
    """
    parameter = spikes.strength(wanted)
    thresholds = spikes.thresholds(parameter, region)
    results: list[QuantitySeries] = []
    for rank in range(MOST_THRESHOLDS) if only is None else (only,):
        branches = thresholds.branches(rank)
        here = sorted(_series_of_cells(branches, order), key=lambda f: min(map(_distance, f.points)))
        if not here:
            break
        for series in here:
            small = {SMALL: sp.S.One} if spikes.case.limit is None else {SMALL: branches.small(series.points[0])}
            crossing = thresholds.crossings(branches.selection, {**series.points[0], **small})[rank]
            results.append(replace(series, parameter=parameter, edge_in_words=crossing.edge_in_words))
    if not results:
        raise NoOutlier(
            f"no value of {parameter} in its domain ({parameter.domain}) lets an outlier leave the bulk "
            f"{spikes.case.limit_in_words}; name another with --parameter, or give other values with --at"
        )
    return Quantity(results, branches)


def _distance(point: Point) -> float:
    """Return the logarithmic distance of a point from the defaults."""
    total = 0.0
    for parameter, value in parameter_values(point).items():
        default = float(parameter.default)
        total += abs(math.log((abs(float(value)) + 1e-9) / (abs(default) + 1e-9))) + (float(value) * default < 0)
    return total


def cell_of(series: QuantitySeries) -> str:
    """Return the domain of a series: "for" inequalities that distinguish its cells, or "around" a point."""
    left, inequalities = list(series.elsewhere), list[str]()
    for wall in sorted(series.walls, key=lambda w: (len(w.free_symbols), sp.count_ops(w), str(w))):
        signs = {_sign(wall, point) for point in series.points}
        excluded = [point for point in left if _sign(wall, point) not in signs]
        if len(signs) == 1 and excluded:
            inequalities.append(_inequality(wall, signs.pop()))
            left = [point for point in left if point not in excluded]
    if left:
        point = series.points[0]
        return "around " + ", ".join(f"{p} = {v}" for p, v in parameter_values(point).items())
    return f"for {' and '.join(inequalities)}" if inequalities else ""


def _sign(wall: sp.Expr, point: Point) -> int:
    return int(sp.sign(wall.subs(point)))


def _inequality(wall: sp.Expr, sign: int) -> str:
    """Return the sign condition of a polynomial in its simplest form."""
    if len(wall.free_symbols) == 1:
        (symbol,) = wall.free_symbols
        if wall.is_polynomial(symbol) and sp.degree(wall, symbol) == 1:
            slope, rest = sp.Poly(wall, symbol).all_coeffs()
            return f"{symbol} {'>' if sign * slope > 0 else '<'} {-rest / slope}"
    return f"{wall} {'>' if sign > 0 else '<'} 0"
