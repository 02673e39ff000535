"""SaddlePoint, TimeOrder -> ProjectedProbe: close the mixed order parameters between probe and training fields.

The single-site equations of the spectral fields are linear (`derive.equations.spectral_sites`). Multiplied by a
training field and averaged, they close by Stein's lemma (`derive.equations.mixed_overlaps`). A diagonal entry is a
trait of the site, a Gaussian variable, or sampled (`derive.equations.diagonals`). The Laplace transform turns d/dtau
into z and convolutions into products.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from derive.algebra.sites import at_source, by_source
from derive.equations.aligning import alignments
from derive.equations.mixed_overlaps import MixedOverlaps
from derive.equations.spectral_sites import RESOLVENT, SpectralSites
from derive.equations.traced_sites import TracedSites
from derive.language.vectors import Field
from derive.records.base import gathered
from derive.records.probe import ProjectedProbe
from derive.records.saddle import SaddlePoint, SingleSite, TimeOrder


def project_probe(
    saddle: SaddlePoint, order: TimeOrder, images: tuple[tuple[str, Field], ...] = (), sampled: bool = False
) -> ProjectedProbe:
    """Return the propagators, the bulk equations and the closed set of projected equations of a probe.

    Args:
        images: fields A psi0 of matrices between resolvents. With them the bulk equations are those of traces, and
            nothing is projected.
        sampled: whether training fields on diagonals are sampled even if their law has a closed form.
    """
    if images:
        return _traced(saddle, order, images, sampled)
    sites = SpectralSites(saddle, order, sampled)
    overlaps = MixedOverlaps(sites)
    equations = sites.bulk_equations()
    unknowns, couplings = overlaps.close()
    return ProjectedProbe(
        system=saddle.system,
        **_of_sites(sites),
        bulk_equations=equations,
        unknowns=unknowns,
        couplings=couplings,
        directions=overlaps.directions(unknowns),
        alignments=alignments(overlaps, unknowns, saddle.system.model.alignments),
        assumptions=gathered(
            SingleSite.of(saddle),
            order,
            new="the probe is stationary in spectral time and starts without overlap with the noises",
        ),
    )


def _of_sites(sites: SpectralSites) -> dict[str, Any]:
    """Return the fields of a projected probe that follow from its bulk equations."""
    return {
        "probes": tuple(sites.probes),
        "propagator": tuple(sites.propagator().items()),
        "responses": tuple(sites.responses.values()),
        "resolvent": RESOLVENT,
        "differing": tuple(probe for probe in sites.probes if probe.sector in sites.differing),
        "spreads": tuple(diagonal.spread for diagonal in sites.normal.values()),
        "sampled": tuple(diagonal.sites for diagonal in sites.sampled.values()),
    }


def _traced(
    saddle: SaddlePoint, order: TimeOrder, images: tuple[tuple[str, Field], ...], sampled: bool
) -> ProjectedProbe:
    """Return the bulk equations of M together with those of tr R A, and their derivatives with respect to epsilon in M
    + epsilon A.
    """
    sites = TracedSites(saddle, order, sampled, tuple(image for _, image in images))
    whole = (*sites.bulk_equations(), *sites.unreached())
    none = {source: sp.S.Zero for source in sites.sources.values()}
    # responses that vanish at epsilon = 0 are set to zero in the other equations, so that no rounding remains
    gone = sites.vanishing() & {symbol for equation in whole for symbol in equation.free_symbols}
    nothing = {symbol: sp.S.Zero for symbol in gone}
    bare = [at_source(equation, none) for equation in whole]
    return ProjectedProbe(
        system=saddle.system,
        **_of_sites(sites),
        bulk_equations=tuple(
            e if e.free_symbols & gone and at_source(e, nothing) == 0 else at_source(e, nothing) for e in bare
        ),
        unknowns=(),
        couplings=(),
        directions=(),
        alignments=(),
        assumptions=gathered(saddle, order, new="the probe is stationary in spectral time"),
        images=tuple((name, sites.response_symbol(image, None)) for name, image in images),
        sources=tuple(
            tuple(at_source(at_source(by_source(e, source), none), nothing) for e in whole)
            for source in sites.sources.values()
        ),
        slopes=tuple(
            (symbol, tuple(at_source(by_source(e, symbol), nothing) for e in bare)) for symbol in sorted(gone, key=str)
        ),
    )
