"""Layout, Needs -> Method: the closure of each sector, exact, by quadrature or sampled."""

from __future__ import annotations

from derive.equations.gaussian_laws import Laws, NotGaussian
from derive.equations.label_symmetry import label_symmetry
from derive.equations.layout import Layout
from derive.equations.needs import Needs
from derive.equations.wording import as_declared
from derive.language.symbols import Sector
from derive.language.vectors import shown
from derive.records.method import ClosureKind, Method, SectorMethod

STEIN = "stein"


def choose_method(layout: Layout, needs: Needs) -> Method:
    """Return the closure of the training level that gives the order parameters of the probed matrices.

    If one sector is sampled, all are: its samples enter the order parameters of the others.
    """
    laws: Laws | None = None
    reason = _sampled_diagonals(layout, needs)
    if not reason and not layout.system.linear:
        try:
            laws = Laws(layout, needs.letters, needs.means)
        except NotGaussian as why:
            reason = as_declared(layout.system.model, layout.system.fields)(str(why))
    sectors = tuple(_of_sector(layout, needs, laws, reason, sector) for sector in layout.sectors)
    responses = layout.system.model.responses or STEIN
    labels = label_symmetry(layout, exact=laws is None and not reason)
    return Method(layout.system, sectors, responses, layout.time_order.assumptions, labels, laws)


def _sampled_diagonals(layout: Layout, needs: Needs) -> str:
    """Return why diagonals of a probed matrix have to be sampled; empty if they do not."""
    for sites in needs.sites:
        values = ", ".join(shown(value) for value in sites.values)
        if not sites.of_traits:
            return f"the law of {values} on a diagonal of the probed matrix has no closed form"
        if not layout.system.linear:
            return f"laws are nonlinear, and the probed matrix needs averages conditional on each value of {values}"
    return ""


def _of_sector(layout: Layout, needs: Needs, laws: Laws | None, reason: str, sector: Sector) -> SectorMethod:
    if reason:
        return SectorMethod(sector, ClosureKind.SAMPLED, reason)
    standing = (value for sites in needs.sites for value in sites.values)
    traits = [trait for trait in layout.system.traits_beside(standing) if trait.sector == sector]
    densities = [trait for trait in traits if not trait.discrete]
    nonlinear = [] if laws is None else laws.integrands(sector)
    if nonlinear:
        return SectorMethod(
            sector, ClosureKind.QUADRATURE, f"{', '.join(nonlinear)}: averages over few Gaussian variables"
        )
    if densities:
        names = ", ".join(map(str, densities))
        return SectorMethod(sector, ClosureKind.QUADRATURE, f"fields are Gaussian given {names}, which has a density")
    condition = f" given {', '.join(map(str, traits))}" if traits else ""
    return SectorMethod(sector, ClosureKind.EXACT, f"laws are linear, so all fields are jointly Gaussian{condition}")
