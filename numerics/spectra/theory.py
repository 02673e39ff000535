"""Comparison of a trained matrix with the bulk and the outliers of a solved theory.

Theory and checkpoint have different units, so the matrix is rescaled such that the upper edges of both bulks coincide,
and the factor is reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numerics.simulation.compare import THRESHOLD
from numerics.spectra.fitting import NOT, FittedOutlier, FittedSpectrum, spike_at, upper_edge
from numerics.support.formatting import counted

EDGE_TOLERANCE = 0.02
"""Largest difference of lower edges, relative to the upper edge, for bulks of the same shape."""

AGREES, DIFFERS, MISSING, MORE = "agrees", "differs", "not in the matrix", "not in the theory"
HIDDEN = "too close to the edge to be resolved at this size"
SHOWN = "shown, not compared"
"""Verdict on outliers without a known error, below the bulk or in a gap."""


@dataclass(frozen=True)
class ExpectedSpectrum:
    """Edges and outliers of a solved theory; errors are standard errors, None if exact."""

    name: str
    edges: tuple[float, float]
    outliers: tuple[float, ...]
    errors: tuple[float | None, ...]


@dataclass(frozen=True)
class MatchedOutlier:
    """One outlier of the theory, of the matrix, or of both, as eigenvalues in the units of the theory."""

    side: str
    theory: float | None
    theory_error: float | None
    matrix: float | None
    matrix_error: float | None
    difference: float | None
    remark: str

    @property
    def agrees(self) -> bool:
        return self.remark in (AGREES, HIDDEN, SHOWN)


@dataclass(frozen=True)
class TheoryComparison:
    """The comparison of a matrix with a theory.

    `factor` converts eigenvalues of W^T W / rows to those of the theory; it is 1 if both use the same units.
    """

    theory: ExpectedSpectrum
    factor: float
    edges: tuple[float, float]
    same_shape: bool
    pairs: tuple[MatchedOutlier, ...]
    agrees: bool
    verdict: str


def compare_with_theory(spectrum: FittedSpectrum, theory: ExpectedSpectrum) -> TheoryComparison:
    """Compare outliers by rank on each side of the bulk, in standard deviations.

    The theory is of infinite size and the matrix is one draw. The outliers of the matrix fluctuate like those of
    independent spikes; the error of a sampled theory is added in quadrature.
    """
    factor = theory.edges[1] / spectrum.eigenvalue_edges[1]
    edges = (factor * spectrum.eigenvalue_edges[0], factor * spectrum.eigenvalue_edges[1])
    same_shape = abs(edges[0] - theory.edges[0]) <= EDGE_TOLERANCE * edges[1]
    expected = list(zip(theory.outliers, theory.errors, strict=True))
    above = sorted((pair for pair in expected if pair[0] > theory.edges[1]), reverse=True)
    below = sorted(pair for pair in expected if pair[0] < theory.edges[0])
    inside = [pair for pair in expected if theory.edges[0] <= pair[0] <= theory.edges[1]]
    by_side = {side: [o for o in spectrum.outliers if o.side == side] for side in ("above", "below")}
    pairs = [
        *_by_rank("above", above, by_side["above"], spectrum, factor),
        *_by_rank("below", below, by_side["below"][::-1], spectrum, factor),
        *(MatchedOutlier("gap", value, error, None, None, None, SHOWN) for value, error in inside),
    ]
    agrees = same_shape and spectrum.verdict != NOT and all(pair.agrees for pair in pairs)
    return TheoryComparison(
        theory, factor, edges, same_shape, tuple(pairs), agrees, _verdict(spectrum, theory, pairs, same_shape)
    )


def _by_rank(
    side: str,
    expected: list[tuple[float, float | None]],
    found: list[FittedOutlier],
    spectrum: FittedSpectrum,
    factor: float,
) -> list[MatchedOutlier]:
    pairs = []
    for rank in range(max(len(expected), len(found))):
        value, error = expected[rank] if rank < len(expected) else (None, None)
        outlier = found[rank] if rank < len(found) else None
        matrix = None if outlier is None else factor * outlier.eigenvalue
        spread = None
        if outlier is not None and outlier.error is not None:
            spread = 2.0 * factor * outlier.eigenvalue * outlier.error / outlier.singular_value
        difference = None
        if value is not None and matrix is not None and spread is not None:
            difference = (matrix - value) / math.hypot(spread, error or 0.0)
        if difference is not None:
            remark = AGREES if abs(difference) <= THRESHOLD else DIFFERS
        elif side == "below" or (value is not None and matrix is not None):
            remark = SHOWN
        elif value is None:
            remark = MORE
        else:
            remark = HIDDEN if _hidden(spectrum, value / factor) else MISSING
        pairs.append(MatchedOutlier(side, value, error, matrix, spread, difference, remark))
    return pairs


def _hidden(spectrum: FittedSpectrum, eigenvalue: float) -> bool:
    """Return whether an outlier may lie below the threshold at this size, within three standard deviations."""
    longer, shorter = max(spectrum.rows, spectrum.columns), min(spectrum.rows, spectrum.columns)
    singular = math.sqrt(eigenvalue * spectrum.rows / longer) / spectrum.scale
    spike = spike_at(singular, longer, shorter)
    if spike is None:
        return True
    centre, width = upper_edge(longer, shorter)
    lowest = max(singular - THRESHOLD * spike[1], 0.0)
    return (lowest**2 * longer - centre) / width < spectrum.threshold


def _verdict(spectrum: FittedSpectrum, theory: ExpectedSpectrum, pairs: list[MatchedOutlier], same_shape: bool) -> str:
    if spectrum.verdict == NOT:
        return "not comparable: the bulk of the matrix is not Marchenko-Pastur, so it has no edge to compare"
    if not same_shape:
        root = math.sqrt(theory.edges[0] / theory.edges[1])
        ratio = ((1.0 - root) / (1.0 + root)) ** 2
        here = min(spectrum.aspect_ratio, 1.0 / spectrum.aspect_ratio)
        return (
            f"different shapes: the bulk of the theory belongs to a ratio of sides of {ratio:.4g}, but the matrix "
            f"has {here:.4g}; solve the theory at the ratio of the matrix"
        )
    wrong = [pair for pair in pairs if not pair.agrees]
    if wrong:
        return f"theory and matrix differ: {len(wrong)} of {len(pairs)} outliers do not agree"
    seen = [pair for pair in pairs if pair.difference is not None]
    if not pairs:
        return "theory and matrix agree: neither has an outlier"
    return (
        f"theory and matrix agree: {len(seen)} of {counted(len(pairs), 'outlier')} could be "
        f"compared, within {THRESHOLD:.0f} standard deviations"
    )
