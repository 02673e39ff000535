"""Bulk and outliers of a trained matrix by a Marchenko-Pastur fit.

A matrix of `rows x columns` independent entries of standard deviation sigma has, at large size, Marchenko-Pastur
singular values: those of W / sqrt(columns) fill sigma |1 - sqrt(phi)| ... sigma (1 + sqrt(phi)) with phi = rows /
columns, and the eigenvalues of W^T W / rows fill sigma^2 (1 -+ sqrt(columns / rows))^2. At finite size the outermost
eigenvalue of noise fluctuates about the edge by the Tracy-Widom law, whose scale falls as size^(-2/3). Sigma is fitted
to the middle of the spectrum, and distances beyond the edge are in these units. Only the matrix is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from numerics.spectra.extensive_law import ExtensiveFit
from numerics.spectra.localisation import MOST_VECTORS, TopVectors, leading_vectors, overlap_of_spike, participation
from numerics.spectra.tails import LEAST_COUNT, PowerTail, fit_tail
from numerics.support.formatting import shown_number, some, table
from numerics.support.threads import threads_for

# Tuned constants: value, unit, and what the value trades off. tests/campaigns/calibrate_spectra.py measures what
# MIXING and `distance_allowed` give on noise and on equal spikes.

SMALLEST_SIDE = 20
"""Least number of singular values for a fit."""

NEAR = 0.05
"""Kolmogorov-Smirnov distance up to which a bulk counts as near Marchenko-Pastur: larger values classify more
trained matrices as noise."""

TAIL = 0.05
"""Fraction of singular values beyond the edge above which a misfitting bulk has a tail instead of an edge."""

MIXING = 3.0
"""Combined standard errors between two outliers below which their vectors mix. Equal spikes repel: their distance has
the Rayleigh law in this unit and exceeds it with probability exp(-9/2) = 0.011."""

PIECE = 4096
"""Rows of a large matrix converted to double precision at once."""

ALL_DIGITS = 1e-9
"""Smallest eigenvalue of a Gram matrix, relative to the largest, that still has four digits."""

FITS, NEARLY, NOT = "Marchenko-Pastur", "near Marchenko-Pastur", "not Marchenko-Pastur"
EXTENSIVE = "extensive step"
STANDARD, SPATIAL_FIRST, MATRIX = "C_out x C_in x k1 x k2", "k1 x k2 x C_in x C_out", "matrix"
LAYOUTS = {"auto": None, "oihw": STANDARD, "hwio": SPATIAL_FIRST}


class NoSpectrum(Exception):
    """Raised if an array has no bulk to fit; `damaged` if it should have one."""

    def __init__(self, why: str, damaged: bool = False) -> None:
        super().__init__(why)
        self.damaged = damaged


@dataclass(frozen=True)
class FittedOutlier:
    """One singular value beyond an edge.

    Attributes:
        singular_value: the singular value of W / sqrt(columns).
        eigenvalue: the eigenvalue of W^T W / rows.
        tracy_widom: distance from the edge in units of the Tracy-Widom scale.
        p_value: probability that noise alone reaches this far; None if the bulk is not Marchenko-Pastur.
        spike: strength of the independent rank-one term with this singular value; None below the bulk.
        error: standard deviation of that singular value; None below the bulk.
    """

    side: str
    singular_value: float
    eigenvalue: float
    edge_ratio: float
    tracy_widom: float
    p_value: float | None
    spike: float | None
    error: float | None


@dataclass(frozen=True)
class Fit:
    """A bulk fitted to squared singular values: its scale, numbers of outliers, and goodness of fit."""

    scale: float
    above: int
    below: int
    distance: float


@dataclass(frozen=True, repr=False)
class FittedSpectrum:
    """Bulk, edges and outliers of a matrix; edges and scales refer to infinite size."""

    name: str
    shape: tuple[int, ...]
    layout: str
    rows: int
    columns: int
    left_out: int
    scale: float
    entry_deviation: float
    singular_values: np.ndarray
    singular_edges: tuple[float, float]
    eigenvalue_edges: tuple[float, float]
    tracy_widom_scale: float
    level: float
    threshold: float
    distance: float
    distance_allowed: float
    misfit: float
    verdict: str
    largest_entry: float
    outliers: tuple[FittedOutlier, ...]
    vectors: tuple[TopVectors, ...] = ()
    """Localisation of the singular vectors of the largest singular values, of outliers if there are any."""
    tail: PowerTail | None = None
    """A power law fitted to the largest eigenvalues; None if they are too few."""
    extensive: ExtensiveFit | None = None
    """The fitted law of a step with extensively many outputs, if Marchenko-Pastur does not suffice."""

    def __repr__(self) -> str:
        low, high = self.singular_edges
        above = [shown_number(one.singular_value, one.error) for one in self.outliers if one.side == "above"]
        below = [shown_number(one.singular_value) for one in self.outliers if one.side == "below"]
        rows = [
            ("matrix", f"{self.rows} x {self.columns}"),
            ("bulk", self.picture),
            ("scale", shown_number(self.scale)),
            ("edges", f"{shown_number(low)} to {shown_number(high)}, singular values of W / sqrt(columns)"),
            ("outliers above", some(above) or "none"),
            ("outliers below", some(below) or "none"),
            ("KS distance", f"{self.distance:.2g}, noise has at most {self.distance_allowed:.2g}"),
        ]
        return "\n".join([f"FittedSpectrum of {self.name}", *table(rows)])

    @property
    def picture(self) -> str:
        """The best description in a word or two: Marchenko-Pastur with outliers, an extensive step, or neither."""
        if self.extensive is not None and self.extensive.fits:
            return EXTENSIVE
        return self.verdict

    @property
    def wants_another_law(self) -> bool:
        """Whether Marchenko-Pastur with a few outliers fails to describe the spectrum."""
        return self.verdict != FITS or len(self.outliers) > TAIL * len(self.singular_values)

    @property
    def tail_doubts(self) -> tuple[str, ...]:
        """Reasons not to trust the power law of the tail; empty if it is trusted."""
        if self.tail is None:
            return (f"fewer than {LEAST_COUNT} eigenvalues, or all of one size",)
        described = not self.wants_another_law or self.picture == EXTENSIVE
        return ("the law of the bulk already describes the spectrum",) * described + self.tail.doubts

    @property
    def top(self) -> float:
        """The ratio of the largest singular value to the upper edge."""
        return float(self.singular_values[0] / self.singular_edges[1])

    @property
    def aspect_ratio(self) -> float:
        return self.rows / self.columns

    @property
    def entry_threshold(self) -> float:
        """The size of a single entry, in units of sigma, that creates an outlier."""
        return float(float(self.rows * self.columns) ** 0.25)

    @property
    def eigenvalues(self) -> np.ndarray:
        """The eigenvalues of W^T W / rows, descending, without the null space of the shape."""
        return self.singular_values**2 * self.columns / self.rows


# From an array to a matrix


def layout_of(shape: tuple[int, ...], wanted: str = "auto") -> str:
    """Return (layout, rows, columns) of an array read as a matrix, or an error message if this is impossible."""
    if len(shape) == 2:
        layout, rows, columns = MATRIX, *shape
    elif len(shape) == 4:
        # channels are many and kernels are small: the pair of axes with the smaller maximum is the spatial one
        spatial_first = max(shape[:2]) < max(shape[2:])
        layout = LAYOUTS[wanted] or (SPATIAL_FIRST if spatial_first else STANDARD)
        if layout == STANDARD:
            rows, columns = shape[2] * shape[0], shape[3] * shape[1]
        else:
            rows, columns = shape[0] * shape[3], shape[1] * shape[2]
    else:
        axes = {0: "a single number", 1: "one axis"}.get(len(shape), f"{len(shape)} axes")
        raise NoSpectrum(f"{axes}: neither a matrix nor a two-dimensional convolution kernel")
    if min(rows, columns) < SMALLEST_SIDE:
        raise NoSpectrum(f"{rows} x {columns} is too small for a bulk; both sides need {SMALLEST_SIDE}")
    return layout


def unfold(array: np.ndarray, layout: str) -> np.ndarray:
    """Return a kernel as a matrix: rows are (k1, output channel), columns (k2, input channel)."""
    if layout == MATRIX:
        return array
    axes = (2, 0, 3, 1) if layout == STANDARD else (0, 3, 1, 2)
    turned = array.transpose(axes)
    return turned.reshape(turned.shape[0] * turned.shape[1], -1)


def gram_of(matrix: np.ndarray) -> np.ndarray:
    """Return the Gram matrix of the smaller side in double precision."""
    gram = np.zeros((min(matrix.shape),) * 2)
    for piece in _pieces(matrix):
        gram += piece.T @ piece
    return gram


def squared_singular_values(matrix: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return the squared singular values, descending, from the Gram matrix of the smaller side.

    They are accurate to about 1e-13 of the largest one. If the smallest would have fewer than four digits, singular
    values of the R factor of a QR decomposition are used.
    """
    squares: np.ndarray = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0)
    if squares[-1] > ALL_DIGITS * squares[0]:
        return squares
    triangle: Any = np.zeros((0, len(gram)))
    for piece in _pieces(matrix):
        triangle = np.linalg.qr(np.vstack([triangle, piece]), mode="r")
    squares = np.linalg.svd(triangle, compute_uv=False) ** 2
    return squares


def _pieces(matrix: np.ndarray) -> Iterator[np.ndarray]:
    """Yield consecutive parts of the longer side in double precision, with the shorter side as columns."""
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    for begin in range(0, tall.shape[0], PIECE):
        yield tall[begin : begin + PIECE].astype(np.float64)


# Two laws


@lru_cache(maxsize=64)
def marchenko_pastur(ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """Return singular values and the distribution function at each, for entries of variance 1/longer side and ratio =
    shorter/longer."""
    position = np.linspace(0.0, 1.0, 8193)
    angle = np.pi * position**2  # refine at the lower edge, where a nearly square matrix is steepest
    low, half = (1.0 - math.sqrt(ratio)) ** 2, 2.0 * math.sqrt(ratio)
    value = low + 2.0 * half * np.sin(angle / 2.0) ** 2
    weight = np.sin(angle) ** 2 / np.where(value > 0.0, value, 1.0) * position
    fraction = np.concatenate([[0.0], np.cumsum(weight[1:] + weight[:-1])])
    return np.sqrt(value), fraction / fraction[-1]


def marchenko_pastur_density(singular: np.ndarray, ratio: float) -> np.ndarray:
    """Return the density of the singular values, for entries of variance 1/longer side and ratio = shorter/longer."""
    root = math.sqrt(ratio)
    inside = (((1 + root) ** 2 - singular**2) * (singular**2 - (1 - root) ** 2)).clip(min=0.0)
    return np.sqrt(inside) / (np.pi * ratio * np.where(singular > 0.0, singular, 1.0))


@lru_cache(maxsize=1)
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(64)


@lru_cache(maxsize=4096)
def tracy_widom_survival(value: float) -> float:
    """Return the probability that the Tracy-Widom law (beta = 1) exceeds `value`, as a Fredholm determinant."""
    from scipy.special import airy

    if value > 300.0:
        return 0.0
    nodes, weights = _nodes()
    length = 16.0 + max(0.0, -value)
    x = value + length * (nodes + 1.0) / 2.0
    if value > 10.0:  # the determinant is 1 - trace to all digits, and the difference would lose them
        return float(0.5 * airy(x)[0] @ weights * length / 2.0)
    root = np.sqrt(weights * length / 2.0)
    kernel = 0.5 * airy((x[:, None] + x[None, :]) / 2.0)[0] * root[:, None] * root[None, :]
    eigenvalues = np.minimum(np.linalg.eigvalsh(kernel), 1.0 - 1e-16)
    tail = -math.expm1(float(np.log1p(-eigenvalues).sum()))
    return min(max(tail, 0.0), 1.0)


@lru_cache(maxsize=64)
def tracy_widom_threshold(level: float) -> float:
    """Return the quantile that the Tracy-Widom law exceeds with probability `level`."""
    from scipy.optimize import brentq  # which no other command needs

    return float(brentq(lambda value: math.log(tracy_widom_survival(value) / level), -8.0, 60.0, xtol=1e-10))


def upper_edge(longer: float, shorter: float) -> tuple[float, float]:
    """Return centre and scale of the largest eigenvalue of X^T X, for unit entries, to second order in the size."""
    a, b = math.sqrt(longer - 0.5), math.sqrt(shorter - 0.5)
    return (a + b) ** 2, (a + b) * (1.0 / a + 1.0 / b) ** (1.0 / 3.0)


def lower_edge(longer: float, shorter: float) -> tuple[float, float] | None:
    """Return centre and scale of the logarithm of the smallest eigenvalue; None if the edge is too close to zero."""
    a, b = math.sqrt(longer - 0.5), math.sqrt(shorter - 0.5)
    if a - b < 1e-6:
        return None
    centre, scale = (a - b) ** 2, (a - b) * (1.0 / b - 1.0 / a) ** (1.0 / 3.0)
    if scale > 0.25 * centre:
        return None
    return math.log(centre) + (scale / centre) ** 2 / 8.0, scale / centre


# The fit


def distance_allowed(count: int) -> float:
    """Return the Kolmogorov-Smirnov distance that noise of `count` singular values exceeds about once in a thousand.

    Level repulsion makes it fall as log(count) / count instead of count^(-1/2).
    """
    return (1.3 + 0.5 * math.log(count)) / count


def fit_bulk(squares: np.ndarray, longer: int, level: float) -> Fit:
    """Fit Marchenko-Pastur to squared singular values in descending order.

    Values beyond the edge are excluded, and the others are fitted again until nothing changes. If the rest does not
    follow the law, robust fits start from several guessed fractions of outliers (none, an eighth, a quarter, ...), and
    the best is returned.
    """
    shorter = len(squares)
    best = _settle(squares, longer, level, 0, (False,))
    if best.distance > distance_allowed(shorter - best.above - best.below):
        for start in (0, shorter // 8, shorter // 4, 3 * shorter // 8):
            other = _settle(squares, longer, level, start, (True, False))
            if other.distance < 0.5 * best.distance:
                best = other
    return best


def _settle(squares: np.ndarray, longer: int, level: float, start: int, ways: tuple[bool, ...]) -> Fit:
    """Alternate between the fit and the count of outliers until both agree, for each kind of fit (robust or not) in
    turn.
    """
    above, below, scale = start, 0, 0.0
    for robust in ways:
        for _ in range(50):
            scale = fit_scale(squares, longer, above, below, robust)
            counted = _beyond(squares, longer, above, below, scale, tracy_widom_threshold(level))
            if counted == (above, below):
                break
            above, below = counted
    scale = fit_scale(squares, longer, above, below, False)
    return Fit(scale, above, below, _distance(squares, longer, above, below, scale))


def _rest(squares: np.ndarray, longer: int, above: int, below: int) -> tuple[np.ndarray, int]:
    """Return singular values of the bulk, ascending, divided by the square root of the longer side less the number of
    spikes.
    """
    bulk = squares[above : len(squares) - below][::-1]
    return np.sqrt(bulk / (longer - above)), longer - above


def fit_scale(
    squares: np.ndarray,
    longer: int,
    above: int,
    below: int,
    robust: bool,
    part: tuple[float, float] = (0.1, 0.95),
) -> float:
    """Return sigma from matched quantiles: the median of their ratios, or their regression over the middle of the
    bulk."""
    values, long_side = _rest(squares, longer, above, below)
    law, fraction = marchenko_pastur(len(values) / long_side)
    ranks = (np.arange(len(values)) + 0.5) / len(values)
    chosen = (ranks > 0.25) & (ranks < 0.9) if robust else (ranks > part[0]) & (ranks < part[1])
    expected, observed = np.interp(ranks[chosen], fraction, law), values[chosen]
    return float(np.median(observed / expected) if robust else observed @ expected / (expected @ expected))


def _beyond(
    squares: np.ndarray, longer: int, above: int, below: int, scale: float, threshold: float
) -> tuple[int, int]:
    """Return the numbers beyond the upper and lower edge; at most half are set aside."""
    up, down = _positions(squares, longer, above, below, scale)
    most = len(squares) // 2
    above_edge = min(int((up > threshold).sum()), most)
    return above_edge, min(int((down > threshold).sum()), most - above_edge)


def _positions(squares: np.ndarray, longer: int, above: int, below: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return distances beyond the upper and the lower edge, in Tracy-Widom units."""
    long_side, short_side = longer - above, len(squares) - above - below
    centre, width = upper_edge(long_side, short_side)
    unit = squares / scale**2
    up = (unit - centre) / width
    lower = lower_edge(long_side, short_side)
    if lower is None:
        return up, np.full_like(up, -np.inf)
    return up, -(np.log(np.maximum(unit, 1e-300)) - lower[0]) / lower[1]


def _distance(squares: np.ndarray, longer: int, above: int, below: int, scale: float) -> float:
    """Return the Kolmogorov-Smirnov distance of the bulk from its law."""
    values, long_side = _rest(squares, longer, above, below)
    count = len(values)
    law, fraction = marchenko_pastur(count / long_side)
    expected = np.interp(values / scale, law, fraction)
    steps = np.arange(count + 1) / count
    return float(max(np.abs(expected - steps[1:]).max(), np.abs(expected - steps[:-1]).max()))


# Spikes


def spike_at(singular: float, longer: int, shorter: int) -> tuple[float, float] | None:
    """Return the strength of the independent rank-one term with this singular value, and its standard deviation.

    Both are in units of sigma sqrt(longer). With a = z <u (z^2 - X X^T)^-1 u>, its counterpart b on the other side and
    the mixed element m = <u (z^2 - X X^T)^-1 X v>, a term theta u v^T has its singular value where a b = (1/theta -
    m)^2. The fluctuations of a, b and m over independent directions u, v are summed.
    """
    ratio = shorter / longer
    law, fraction = marchenko_pastur(ratio)
    if singular <= law[-1] * (1.0 + 1e-6):
        return None
    nodes = np.interp((np.arange(4000) + 0.5) / 4000, fraction, law) ** 2
    z, gap = singular, singular**2 - nodes

    def longer_mean(values: np.ndarray, at_zero: float) -> float:
        return ratio * float(values.mean()) + (1.0 - ratio) * at_zero

    near = z / gap
    slope = -(z**2 + nodes) / gap**2
    a, b = float(near.mean()), longer_mean(near, 1.0 / z)
    inverse = math.sqrt(a * b)
    variance_a = 2.0 / shorter * float(near.var())
    variance_b = 2.0 / longer * (longer_mean(near**2, 1.0 / z**2) - b**2)
    variance_mixed = float((nodes / gap**2).mean()) / longer
    variance = b**2 * variance_a + a**2 * variance_b + 4.0 * inverse**2 * variance_mixed
    steepness = float(slope.mean()) * b + a * longer_mean(slope, -1.0 / z**2)
    return 1.0 / inverse, math.sqrt(variance) / abs(steepness)


# One matrix


def analyse(name: str, array: np.ndarray, layout: str = "auto", level: float = 1e-3) -> FittedSpectrum:
    """Return the fitted spectrum of one array, or a message if it has no spectrum, or no bulk to fit."""
    read_as = layout_of(array.shape, layout)
    matrix = unfold(array, read_as)
    finite = np.isfinite(matrix)
    if not finite.all():
        raise NoSpectrum(
            f"{int((~finite).sum())} entries are NaN or infinite: training diverged or the file is damaged",
            damaged=True,
        )
    largest = max(float(matrix.max()), -float(matrix.min()))
    if largest == 0.0:
        raise NoSpectrum("all entries are zero")
    if not 1e-140 < largest < 1e140:
        raise NoSpectrum(f"entries as large as {largest:.1g} cannot be squared in double precision")
    live_rows, live_columns = matrix.any(axis=1), matrix.any(axis=0)
    left_out = int((~live_rows).sum() + (~live_columns).sum())
    if left_out:
        matrix = matrix[live_rows][:, live_columns]
        if min(matrix.shape) < SMALLEST_SIDE:
            raise NoSpectrum(
                f"without zero rows and columns it is {matrix.shape[0]} x {matrix.shape[1]}: too small for a bulk"
            )
    try:
        with threads_for(min(matrix.shape)):
            gram = gram_of(matrix)
            squares = squared_singular_values(matrix, gram)
    except MemoryError:
        raise NoSpectrum("too large for the memory of this machine") from None
    except np.linalg.LinAlgError:
        raise NoSpectrum("its singular values did not converge") from None
    rank = int((squares > 1e-13 * squares[0]).sum())
    if rank <= len(squares) // 2 + 1:
        raise NoSpectrum(f"rank {rank} of {len(squares)}: there is no bulk to fit")
    entries = float(matrix.std(dtype=np.float64)), largest
    one = _spectrum(name, array.shape, read_as, matrix.shape, left_out, squares, entries, level)
    return replace(
        one,
        vectors=_top_vectors(one, matrix, gram),
        tail=fit_tail(one.eigenvalues[:rank], goodness=one.wants_another_law),
    )


def _top_vectors(one: FittedSpectrum, matrix: np.ndarray, gram: np.ndarray) -> tuple[TopVectors, ...]:
    """Return the localisation of the singular vectors of all outliers above the bulk, or of the largest singular value
    if there are none.
    """
    above = [outlier for outlier in one.outliers if outlier.side == "above"]
    long, short = leading_vectors(_pieces(matrix), gram, min(max(len(above), 1), MOST_VECTORS))
    left, right = (long, short) if one.rows >= one.columns else (short, long)
    return tuple(
        TopVectors(k, participation(left[:, k]), participation(right[:, k]), _doubts_of_vector(one, above, k))
        for k in range(short.shape[1])
    )


def _doubts_of_vector(one: FittedSpectrum, above: list[FittedOutlier], rank: int) -> tuple[str, ...]:
    if rank >= len(above):
        return ("it is not an outlier",)
    doubts = [] if one.verdict != NOT else ["the bulk is not Marchenko-Pastur"]
    here = above[rank]
    if here.spike is not None:
        longer, shorter = max(one.rows, one.columns), min(one.rows, one.columns)
        strength = here.spike / one.scale * math.sqrt(one.columns / longer)
        if overlap_of_spike(strength, shorter / longer) < 0.5:
            doubts.append("close to the edge more than half of the vector is noise")
    for other in above[max(rank - 1, 0) : rank] + above[rank + 1 : rank + 2]:
        errors = math.hypot(here.error or 0.0, other.error or 0.0)
        if abs(here.singular_value - other.singular_value) < MIXING * errors:
            doubts.append(f"another outlier lies within {MIXING:g} standard errors, and their vectors mix")
            break
    return tuple(doubts)


def _outliers(
    squares: np.ndarray, sides: tuple[int, int], fit: Fit, edges: tuple[float, float], threshold: float
) -> tuple[FittedOutlier, ...]:
    """Return the singular values beyond the edges of the bulk, each with the strength of its spike."""
    rows, columns = sides
    longer = max(rows, columns)
    up, down = _positions(squares, longer, fit.above, fit.below, fit.scale)
    outliers = []
    for i in np.flatnonzero((up > threshold) | (down > threshold)):
        above = bool(up[i] > threshold)
        value, place = float(np.sqrt(squares[i] / columns)), float(up[i] if above else down[i])
        spike = spike_at(value * math.sqrt(columns / longer) / fit.scale, longer, len(squares)) if above else None
        back = fit.scale * math.sqrt(longer / columns)
        outliers.append(
            FittedOutlier(
                side="above" if above else "below",
                singular_value=value,
                eigenvalue=value**2 / (rows / columns),
                edge_ratio=value / edges[1 if above else 0],
                tracy_widom=place,
                p_value=tracy_widom_survival(place),
                spike=None if spike is None else spike[0] * back,
                error=None if spike is None else spike[1] * back,
            )
        )
    return tuple(outliers)


def _spectrum(
    name: str,
    shape: tuple[int, ...],
    layout: str,
    sides: tuple[int, ...],
    left_out: int,
    squares: np.ndarray,
    entries: tuple[float, float],
    level: float,
) -> FittedSpectrum:
    rows, columns = sides
    longer = max(rows, columns)
    fit = fit_bulk(squares, longer, level)
    long_side, short_side = longer - fit.above, len(squares) - fit.above - fit.below
    allowed = distance_allowed(short_side)
    verdict = FITS if fit.distance <= allowed else NEARLY
    if verdict != FITS and (fit.distance > NEAR or fit.above + fit.below > TAIL * len(squares)):
        verdict = NOT
    centre, width = upper_edge(long_side, short_side)
    upper_half = fit_scale(squares, longer, fit.above, fit.below, False, (0.5, 0.95))
    misfit = 0.0 if verdict == FITS else max(0.0, ((upper_half / fit.scale) ** 2 - 1.0) * centre / width)
    threshold = tracy_widom_threshold(level) + misfit

    scale, phi = fit.scale, rows / columns
    singular_edges = (scale * abs(1.0 - math.sqrt(phi)), scale * (1.0 + math.sqrt(phi)))
    singular_values = np.sqrt(squares / columns)
    outliers = _outliers(squares, (rows, columns), fit, singular_edges, threshold)
    return FittedSpectrum(
        name=name,
        shape=tuple(shape),
        layout=layout,
        rows=rows,
        columns=columns,
        left_out=left_out,
        scale=scale,
        entry_deviation=entries[0],
        singular_values=singular_values,
        singular_edges=singular_edges,
        eigenvalue_edges=(singular_edges[0] ** 2 / phi, singular_edges[1] ** 2 / phi),
        tracy_widom_scale=scale**2 * width / rows,
        level=level,
        threshold=threshold,
        distance=fit.distance,
        distance_allowed=allowed,
        misfit=misfit,
        verdict=verdict,
        largest_entry=entries[1] / scale,
        outliers=outliers if verdict == FITS else tuple(replace(one, p_value=None) for one in outliers),
    )
