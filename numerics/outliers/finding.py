"""Zeros of det A(z) outside the bulk: an eigenproblem if A(z) reduces to one, Beyn's contour method otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial, reduce

import numpy as np
from numpy.polynomial import chebyshev

from derive.errors import NumericalError
from numerics.bulk.branch import Branch
from numerics.bulk.parameters import map_parameters
from numerics.bulk.site_averages import site_laws
from numerics.outliers.linear import (
    LARGEST_LONG,
    RESOLVED,
    all_eigenvalues,
    balanced_norm,
    distance_to_zero,
    eigenvalue_conditions,
    eigenvalue_residual,
    largest_entry,
    leading_eigenvalues,
    long_eigenvalues,
    resolution,
    smallest_singular_value,
)
from numerics.outliers.panels import NARROWEST, ChebyshevPanel, Evaluate, crossings, intervals_outside, panels
from numerics.outliers.problem import SpikedProblem, a_matrices, responses_at, rows_of, with_slope
from numerics.runtime.interface import Cycle, Order, Probe
from numerics.runtime.operators import BlockOperator, Operator
from numerics.runtime.point import Point
from numerics.support.nearby import read
from numerics.support.precision import in_float64

FIRST_EIGENVALUES = 32
"""Eigenvalues of a large matrix computed first by Arnoldi's method."""
MEETING = 0.05
"""Relative imaginary part below which a complex pair may become real at nearby order parameters."""
CONTOUR_NODES, ELLIPSE = 64, 1.5
"""Trapezoidal nodes on the ellipse around a panel, and the sum of its half axes in units of half the panel."""
MOST_TURN = 2.5
"""Change of the phase of det A(z) between neighbouring nodes, in radians, above which zeros are not counted."""
MOST_BISECTIONS = 400
"""Bisections of panels after which zeros are no longer separated; a zero at a point mass takes about 25."""
AT_POINT_MASS = 1e-6
"""Distance from a point mass, in widths of the bulk, within which a zero of det A(z) is not distinguished from it."""
FIRST_VECTORS = 8
"""Initial number of probe vectors of Beyn's method; doubled until it exceeds the number of eigenvalues."""
NOTHING = 1e-9
"""Relative size below which values of an inverse map are rounding errors."""
LARGEST_ASSEMBLED = 2000
"""Rows of an eigenproblem above which residuals are computed for it, and A(z), which is two or three times as large, is
not assembled."""
SAMPLED_NODES = 128
"""Chebyshev nodes at which polynomials on panels are bounded."""
MANY = 1e7
"""Entries of a factor above which it is assembled block by block to save memory."""
LARGEST = 1e100
"""Modulus above which an entry cannot be squared safely."""
SMALLEST_LEADING = 1e-290
"""Leading coefficient, relative to the largest, below which roots overflow float64."""
KNOWN = 1e-3
"""Relative effect of rounding on an eigenvalue above which it determines no outlier."""
UNRESOLVED = (
    "the matrix whose eigenvalues are the outliers has entries that differ by too many orders of magnitude for "
    "float64 to resolve the smaller outliers; try less extreme parameters, or fewer steps"
)

Places = Sequence[np.ndarray] | None
Points = Callable[[Sequence[float]], list[list[float]]]
"""The outliers of each of several real eigenvalues."""


@dataclass(frozen=True)
class Outlier:
    """An isolated eigenvalue with its residual.

    `residual` is the smallest singular value of A(z), relative to its largest entry or 1; if A(z) is too large, it is
    the residual of the eigenproblem.
    """

    z: float
    residual: float
    condition: float


@dataclass(frozen=True)
class Eigenvalues:
    """A cycle's matrix, its eigenvalues (at least those of largest modulus), and the real ones among them."""

    matrix: np.ndarray
    values: np.ndarray
    real: np.ndarray

    @cached_property
    def _nearly(self) -> list[float]:
        real_parts: list[float] = _nearly_real(self.values, self.real).tolist()
        return real_parts

    @cached_property
    def _doubtful(self) -> list[float]:
        """Return the largest eigenvalue of either sign that rounding may have destroyed, if any."""
        if np.min(np.abs(self.values), initial=np.inf) >= RESOLVED * np.linalg.norm(self.matrix):
            return []  # balancing reduces the norm
        least = resolution(self.matrix)
        return [least, -least] if np.any(np.abs(self.values) < least) else []

    @property
    def asked(self) -> list[float]:
        """Return the values of the scalar map at which the bulk is needed: real eigenvalues, nearly real pairs, and
        unresolved small eigenvalues.
        """
        return [*self.real.tolist(), *self._nearly, *self._doubtful]

    def placed(self, places: list[list[float]]) -> CycleSpectrum | None:
        """Attach the outliers of each requested value; None if outliers may belong to eigenvalues lost to rounding."""
        count = len(self.real)
        if any(places[count + len(self._nearly) :]):
            return None
        return CycleSpectrum(self.matrix, self.values, self.real, places[:count], any(places[count:]))


@dataclass(frozen=True)
class CycleSpectrum:
    """Leading eigenvalues of a cycle's matrix, the real ones among them, and the outliers of each.

    meeting: whether a nearly real pair of eigenvalues would give outliers if it met on the real axis.
    """

    matrix: np.ndarray
    values: np.ndarray
    real: np.ndarray
    places: list[list[float]]
    meeting: bool

    @property
    def outliers(self) -> list[tuple[float, float]]:
        """Return the outliers, each with its eigenvalue of the cycle."""
        return [(z, float(s)) for s, zs in zip(self.real, self.places, strict=True) for z in zs]


@in_float64
def find_outliers(problem: SpikedProblem, spectra: Sequence[CycleSpectrum] | None = None) -> list[Outlier]:
    """Return all outliers above, below and between the intervals of the bulk, descending, repeated by multiplicity.

    spectra: the spectra of the cycles, if already computed.
    """
    probe = problem.probe
    if not probe.unknowns:
        return []
    if not probe.reduced:
        points = sorted(by_contour(problem), reverse=True)
        return [Outlier(z, residual, 1.0) for z, residual in zip(points, _residuals(problem, points), strict=True)]
    known = spectra or cycle_spectra(problem)
    found = [(z, condition, s, one) for one in known for z, condition, s in _with_conditions(one)]
    found.sort(key=lambda one: one[:2], reverse=True)
    if max((len(one.matrix) for one in known), default=0) <= LARGEST_ASSEMBLED:
        residuals = _residuals(problem, [z for z, *_ in found])
    else:
        relative = [max(1.0, largest_entry(one.matrix)) for *_, one in found]
        residuals = [eigenvalue_residual(one.matrix, s) / x for (*_, s, one), x in zip(found, relative, strict=True)]
    return [Outlier(z, residual, condition) for (z, condition, *_), residual in zip(found, residuals, strict=True)]


@in_float64
def cycle_spectra(problem: SpikedProblem, known: Sequence[Eigenvalues] | None = None) -> list[CycleSpectrum]:
    """Return the spectrum of every cycle; known: eigenvalues from `cycle_eigenvalues`."""
    return [
        cycle_spectrum(first.matrix, partial(physical, problem, cycle), first)
        for cycle, first in zip(problem.probe.cycles, known or cycle_eigenvalues(problem), strict=True)
    ]


@in_float64
def cycle_eigenvalues(problem: SpikedProblem) -> list[Eigenvalues]:
    """Return the leading eigenvalues of the matrix of every cycle, all of a small one."""
    return [leading(_pencil(problem, cycle)) for cycle in problem.probe.cycles]


def every(matrix: np.ndarray) -> Eigenvalues:
    """Return all eigenvalues of a small matrix."""
    values = all_eigenvalues(matrix)
    return Eigenvalues(matrix, values, real_among(matrix, values))


def leading(matrix: np.ndarray, count: int = FIRST_EIGENVALUES) -> Eigenvalues:
    """Return the leading eigenvalues; those that consist of rounding errors are zero and belong to no outlier."""
    values = leading_eigenvalues(matrix, count)
    eps = np.finfo(float).eps
    if np.min(np.abs(values), initial=np.inf) <= len(matrix) * eps * np.linalg.norm(matrix):  # balancing reduces it
        values = np.where(np.abs(values) <= len(matrix) * eps * balanced_norm(matrix), 0.0, values)
    return Eigenvalues(matrix, values, real_among(matrix, values))


def cycle_spectrum(matrix: np.ndarray, points: Points, first: Eigenvalues | None = None) -> CycleSpectrum:
    """Return the eigenvalues of a matrix to which outliers belong; `points` maps real eigenvalues to outliers.

    The map s(z) grows with the distance from the bulk, so outliers belong to the eigenvalues of largest modulus. For a
    large matrix their number is increased until the smaller half gives no outlier.
    """
    count, now = FIRST_EIGENVALUES, first or leading(matrix)
    while True:
        spectrum = now.placed(points(now.asked))
        if spectrum is None:
            return _long_spectrum(matrix, points)
        least = np.abs(now.values[len(now.values) // 2]) if len(now.values) else 0.0
        if len(now.values) == len(matrix) or not any(abs(s) <= least for _, s in spectrum.outliers):
            return spectrum
        count *= 2
        now = leading(matrix, count)


def _long_spectrum(matrix: np.ndarray, points: Points) -> CycleSpectrum:
    """Return the result of `cycle_spectrum` in multiple precision, for entries that span more orders of magnitude than
    float64 resolves.

    Eigenvalues below the rounding of the entries are set to zero.
    """
    if len(matrix) > LARGEST_LONG:
        raise NumericalError(UNRESOLVED)
    values, moved = long_eigenvalues(matrix)
    values = np.where(np.abs(values) <= 10 * moved, 0.0, values)
    real = real_among(matrix, values)
    places, nearly = points(real.tolist()), points(_nearly_real(values, real).tolist())
    for s, zs in zip(real, places, strict=True):
        if zs and moved[np.argmin(np.abs(values - s))] > KNOWN * abs(s):
            raise NumericalError(UNRESOLVED)
    return CycleSpectrum(matrix, values, real, places, any(nearly))


@in_float64
def outlier_positions(problem: SpikedProblem) -> list[float]:
    """Return the outliers alone, without residuals and condition numbers, descending."""
    if not problem.probe.unknowns:
        return []
    if not problem.probe.reduced:
        return sorted(by_contour(problem), reverse=True)
    return sorted((z for spectrum in cycle_spectra(problem) for z, _ in spectrum.outliers), reverse=True)


def candidates(problem: SpikedProblem, cycle: Cycle, values: Sequence[float]) -> list[tuple[int, float]]:
    """Return (index of the value, z) for points outside the bulk where a branch of the scalar map takes each value."""
    if cycle.inverse is None and (cycle.relation is None or problem.probe.sites is not None):
        places = _along_the_axis(problem, cycle, values)
    else:
        roots = _preimages(problem.p, cycle, values)
        open_ = [k for k, zs in enumerate(roots) if zs is None]
        on_axis = dict(zip(open_, _along_the_axis(problem, cycle, [values[k] for k in open_]), strict=True))
        places = [on_axis[k] if zs is None else zs for k, zs in enumerate(roots)]
    return [(k, z) for k, zs in enumerate(places) for z in zs if abs(z) < LARGEST and problem.outside(z)]


def _along_the_axis(problem: SpikedProblem, cycle: Cycle, values: Sequence[float]) -> list[list[float]]:
    """Return the points where the map takes each value, by inverting it on panels of the real axis.

    The inverse 1/s(z) has no poles outside the bulk except at point masses.
    """
    places: list[list[float]] = [[] for _ in values]
    wanted = [k for k, s in enumerate(values) if s != 0]
    if not wanted:
        return places
    floor = 10.0 ** np.floor(np.log10(NOTHING / max(abs(values[k]) for k in wanted)))
    top = np.inf
    if any(low == high for low, high in problem.excluded):
        top = 10.0 ** np.ceil(-np.log10(min(abs(values[k]) for k in wanted)))

    def inverse(z: np.ndarray) -> np.ndarray:
        return _inverse_map(problem.probe, cycle, problem.branch, problem.p, float(top), z)

    pieces = _panels_of_map(problem.probe, cycle, *_place(problem), float(floor), float(top))
    points = crossings(inverse, list(_saturated(1 / np.array([values[k] for k in wanted]), float(top))), pieces)
    for k, zs in zip(wanted, points, strict=True):
        places[k] = zs
    return places


def _place(problem: SpikedProblem) -> tuple[Branch, Point, tuple[tuple[float, float], ...]]:
    return problem.branch, problem.p, problem.excluded


@lru_cache(maxsize=64)
def _panels_of_map(
    probe: Probe,
    cycle: Cycle,
    branch: Branch,
    p: Point,
    excluded: tuple[tuple[float, float], ...],
    floor: float,
    top: float,
) -> list[ChebyshevPanel]:
    """Return the inverse of a map as Chebyshev series on panels; cached for all values. floor: smaller values
    are zero."""
    return panels(partial(_inverse_map, probe, cycle, branch, p, top), intervals_outside(excluded), floor)


def smallest_image(problem: SpikedProblem, cycle: Cycle) -> float:
    """Return a lower bound on |s(z)| of a cycle over all real z outside the bulk; 0 if there is none.

    A polynomial of degree d is at most 1 / cos(pi d / (2 n)) times as large on an interval as on n Chebyshev nodes
    there (Ehlich and Zeller).
    """
    if any(low == high for low, high in problem.excluded):  # the inverse of the map has poles at point masses
        return 0.0
    branch, p, probe = problem.branch, problem.p, problem.probe
    if probe.sites is None:  # the same at all points of a sweep with this bulk
        p = map_parameters(cycle, branch.law, p)
    return _smallest_image(probe, cycle, Branch(branch.law, branch.own, branch.use_curve), p, problem.excluded)


@lru_cache(maxsize=256)
def _smallest_image(
    probe: Probe, cycle: Cycle, branch: Branch, p: Point, excluded: tuple[tuple[float, float], ...]
) -> float:
    nodes = chebyshev.chebpts1(SAMPLED_NODES)
    evaluate = partial(_inverse_map, probe, cycle, branch, p, np.inf)
    pieces = panels(evaluate, intervals_outside(excluded))
    degree = max(len(piece.coefficients) for piece in pieces) - 1
    largest = max(float(np.max(np.abs(chebyshev.chebval(nodes, piece.coefficients)))) for piece in pieces)
    return float(np.cos(np.pi * degree / (2 * SAMPLED_NODES))) / largest if 0 < largest < np.inf else 0.0


def mapped(probe: Probe, cycle: Cycle, p: Point, z: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return the scalar map s(z) of a cycle at many points with the bulk responses there."""
    laws = () if probe.sites is None else (site_laws(probe.sites, p, probe.nodes),)
    return np.asarray(cycle.scalar_map(p, z, r, *laws)) * np.ones(z.shape)


def _inverse_map(probe: Probe, cycle: Cycle, branch: Branch, p: Point, top: float, z: np.ndarray) -> np.ndarray:
    """Return 1 / s(z); saturated at `top` next to point masses unless `top` is infinite."""
    with np.errstate(divide="ignore"):
        inverse: np.ndarray = np.real(1 / mapped(probe, cycle, p, z, branch.responses(z)))
    return _saturated(inverse, top)


def _saturated(values: np.ndarray, top: float) -> np.ndarray:
    """Limit values smoothly to `top`: the result is regular next to a pole, and unchanged where values are much
    smaller.
    """
    return (
        values
        if np.isinf(top)
        else np.where(np.isinf(values), np.sign(values) * top, values / np.hypot(1, values / top))
    )


def physical(problem: SpikedProblem, cycle: Cycle, values: Sequence[float]) -> list[list[float]]:
    """Return, for each value of the scalar map, the points outside the bulk where the physical branch takes it."""
    possible = candidates(problem, cycle, values)
    preimages: list[list[float]] = [[] for _ in values]
    if not possible:
        return preimages
    points = np.array([z for _, z in possible])
    wanted = np.array([values[k] for k, _ in possible])
    off = np.abs(_mapped_at(problem, cycle, points) - wanted)
    taken = off <= 1e-6 * np.abs(wanted)
    edges = np.array([problem.nearest_edge(z) for z in points])
    close = taken & (np.abs(points - edges) <= 1e-6 * np.abs(edges))
    if np.any(close):  # another branch, which meets this one at the edge, is as far from the value there, but opposite
        taken[close] = off[close] < np.abs(wanted[close] - _mapped_at(problem, cycle, edges[close]))
    for (k, z), right in zip(possible, taken, strict=True):
        if right:
            preimages[k].append(float(z))
    return preimages


def _mapped_at(problem: SpikedProblem, cycle: Cycle, points: np.ndarray) -> np.ndarray:
    return mapped(problem.probe, cycle, problem.p, points, problem.branch.responses(points))


def _filled(factor: Operator, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return a factor as a dense array with permuted rows and columns, assembled block by block to save memory."""
    dense = np.zeros(factor.shape)
    for top, left, entry in factor.blocks if isinstance(factor, BlockOperator) else ((0, 0, factor),):
        block = entry.array(np)
        across = columns[left : left + block.shape[1]]
        for place, entries in zip(rows[top : top + len(block)], block, strict=True):  # faster than all at once
            dense[place, across] = entries
    return dense


def _put(factors: Sequence[np.ndarray], places: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Permute rows and columns of factors consistently; the columns of the last factor match the rows of the first."""
    ends = zip(factors, places, [*places[1:], places[0]], strict=True)
    return [x[np.ix_(rows, columns)] for x, rows, columns in ends]


def cycle_factors(problem: SpikedProblem, cycle: Cycle, places: Places = None) -> tuple[np.ndarray, ...]:
    """Return matrices whose product has the outliers' eigenvalues; applying them in turn is cheaper than applying the
    product.

    places: permutation of the rows of each factor, and of the columns of the one before it.
    """
    factors = factors_at(cycle, problem.p, problem.order, places)
    check_size(*factors)
    return factors


def factors_at(cycle: Cycle, p: Point, order: Order, places: Places = None) -> tuple[np.ndarray, ...]:
    """Return the factors without checking the size of entries; reads only the order parameters of the cycle."""
    terms = read(order, cycle.reads)
    factors = cycle.pencil(p, terms).factors
    if sum(np.size(x) for x in terms.values()) <= MANY:
        dense = [factor.array(np) for factor in factors]
        return tuple(dense if places is None else _put(dense, places))
    at = [np.arange(factor.shape[0]) for factor in factors] if places is None else [np.argsort(x) for x in places]
    ends = zip(factors, at, [*at[1:], at[0]], strict=True)
    return tuple(_filled(*one) for one in ends)


def check_size(*matrices: np.ndarray) -> None:
    """Refuse matrices with entries too large to be squared."""
    if not all(np.min(m, initial=0.0) > -LARGEST and np.max(m, initial=0.0) < LARGEST for m in matrices):
        raise NumericalError(
            f"the matrix whose eigenvalues are the outliers has entries beyond {LARGEST:g}: the training level has "
            "diverged; try a smaller step, a weaker coupling or fewer steps"
        )


def _pencil(problem: SpikedProblem, cycle: Cycle) -> np.ndarray:
    matrix = reduce(np.matmul, cycle_factors(problem, cycle))
    check_size(matrix)
    return matrix


def real_among(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the eigenvalues that are real to rounding; their conditioning is estimated only if it matters."""
    size, imaginary = np.abs(values), np.abs(values.imag)
    close = imaginary <= 1e-9 * size
    unsure = ~close & (imaginary <= 1e-3 * size)
    if np.any(unsure):
        reach = np.clip(1e-13 * eigenvalue_conditions(matrix, values[unsure]), 1e-9, 1e-3)
        close[unsure] = imaginary[unsure] <= reach * size[unsure]
    real: np.ndarray = values[close].real
    return real


def _nearly_real(values: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Return real parts of complex pairs that are close to the real axis."""
    upper = values[values.imag > 0]
    if not upper.size:
        return upper.real
    pairs = upper[~np.isin(upper.real, real)]
    real_parts: np.ndarray = pairs[pairs.imag <= MEETING * np.abs(pairs)].real
    return real_parts


def _with_conditions(spectrum: CycleSpectrum) -> list[tuple[float, float, float]]:
    """Return outliers with the condition number of their eigenvalue, and the eigenvalue."""
    outliers = spectrum.outliers
    if not outliers:
        return []
    conditions = eigenvalue_conditions(spectrum.matrix, np.array([s for _, s in outliers]))
    return [(z, float(c), s) for (z, s), c in zip(outliers, conditions, strict=True)]


def _preimages(p: Point, cycle: Cycle, values: Sequence[float]) -> list[list[float] | None]:
    """Return the z at which a branch of the map takes each value; None if the relation degenerates or overflows."""
    finite = np.full(len(values), np.nan)
    # NumPy's numbers: where a quotient or a power is infinite, no error of Python's
    with np.errstate(all="ignore"):
        if cycle.inverse is not None and len(values):
            with suppress(ZeroDivisionError):
                finite[:] = cycle.inverse(p, np.array(values, float))

        def one(s: float, z: float) -> list[float] | None:
            if s == 0 or math.isfinite(z):
                return [z] if s else []
            assert cycle.relation is not None, "present if and only if there is an inverse"
            return real_roots([float(c) for c in cycle.relation(p, np.float64(s))])

        return [one(s, z) for s, z in zip(values, finite.tolist(), strict=True)]


def real_roots(coefficients: Sequence[float]) -> list[float] | None:
    """Return the real roots of a polynomial, given with the highest power first; None if it vanishes identically or is
    not finite.

    A relatively tiny leading coefficient is dropped: its root is at infinity.
    """
    shares = np.array(coefficients)
    size = float(np.max(np.abs(shares)))
    if not 0 < size < np.inf:
        return None
    shares /= size
    roots = np.roots(shares[int(np.argmax(np.abs(shares) > SMALLEST_LEADING)) :])
    return [float(root.real) for root in roots if abs(root.imag) <= 1e-9 * (1 + abs(root))]


@in_float64
def smallest_singular_values(problem: SpikedProblem, z: np.ndarray) -> np.ndarray:
    """Return the smallest singular value of A(z) at each point."""
    return np.array([np.linalg.svd(a, compute_uv=False)[-1] for a in a_matrices(problem, z)])


def _residuals(problem: SpikedProblem, points: list[float]) -> list[float]:
    matrices = [with_slope(problem, z)[0] for z in points]  # overlaps use the same compiled function
    return [smallest_singular_value(a) / max(1.0, float(np.max(np.abs(a)))) for a in matrices]


@in_float64
def by_contour(problem: SpikedProblem) -> list[float]:
    """Return the real zeros of det A(z) outside the bulk by contour integrals around panels, repeated by
    multiplicity."""
    if rows_of(problem) == 0:
        return []
    atoms = [low for low, high in problem.excluded if high == low]
    pieces = panels(_bounded_rows(problem, problem.radius), intervals_outside(problem.searched, problem.roots))
    starts = _zeros_on_panels(pieces)
    accepted = iter(_accepted(problem, [x for some in starts for x in some], atoms, problem.radius))
    found = [[z for z in (next(accepted) for _ in some) if z is not None] for some in starts]
    return _merged(found, problem.same)


def _bounded_rows(problem: SpikedProblem, unit: float) -> Evaluate:
    """Return A(z) on the real axis with rows divided by their growth at infinity, at point masses and at divergent
    edges.

    It has the same zeros and is bounded, so few panels represent it.
    """

    def real_matrices(z: np.ndarray) -> np.ndarray:
        if problem.branch.by_factors:  # continuation from infinity takes many steps
            problem.branch.ask_beside(z, problem.excluded)
        matrices: np.ndarray = np.real(a_matrices(problem, z))
        return matrices

    def growth(near: float, nearer: float, root: int = 2) -> np.ndarray:
        """Return the exponent of growth of each row between two points; their distances differ by a factor of 100."""
        rows = np.max(np.abs(real_matrices(np.array([near, nearer]))), axis=2)
        with np.errstate(all="ignore"):
            power = np.round(root * np.log(rows[1] / rows[0]) / np.log(100.0)) / root
        exponents: np.ndarray = np.where(np.isfinite(power), np.clip(power, 0, 4), 0)
        return exponents

    beside = _ends_outside(problem, 1e-4 * unit)
    away = [at + side * share * unit for at, side in beside for share in (1e-4, 1e-6)]
    problem.branch.ask(np.array(away))
    try:
        far = growth(1e4 * unit, 1e6 * unit)
    except NumericalError:  # responses that are small there are lost in rounding
        far = growth(1e2 * unit, 1e4 * unit)
    poles: list[tuple[float, np.ndarray]] = []
    for at, side in beside:
        with suppress(NumericalError):
            root = problem.roots.get(at, 2)
            poles.append((at, growth(at + side * 1e-4 * unit, at + side * 1e-6 * unit, root)))

    def bounded(z: np.ndarray) -> np.ndarray:
        scale = np.hypot(1.0, z / unit)[:, None] ** -far
        for at, power in poles:
            away = np.abs(z - at)[:, None] / unit
            scale = scale * (away / (1 + away)) ** power
        matrices: np.ndarray = real_matrices(z) * scale[:, :, None]
        return matrices

    return bounded


def _ends_outside(problem: SpikedProblem, distance: float) -> list[tuple[float, int]]:
    """Return edges and point masses of the bulk, each once, with a side on which nothing else is within `distance`."""
    ends: dict[float, int] = {}
    for low, high in problem.excluded:
        for at, side in ((low, -1), (high, 1)):
            beside = at + side * distance
            if not any(a <= beside <= b or a < at < b for a, b in problem.excluded):
                ends.setdefault(at, side)
    return list(ends.items())


def _zeros_on_panels(pieces: Sequence[ChebyshevPanel]) -> list[list[float]]:
    """Return the real zeros of det A(z) on each panel.

    A panel is bisected while Beyn's method and the argument principle disagree on the number of zeros, for example near
    a point mass with zeros of high multiplicity.
    """
    waiting, most = list(pieces), len(pieces) + MOST_BISECTIONS
    settled: list[list[float]] = []
    while waiting:
        panel = waiting.pop()
        zeros, certain = _inside_contour(panel.coefficients)
        if certain or panel.end - panel.begin < NARROWEST or len(waiting) + len(settled) > most:
            settled.append([float(panel.z(np.array(x))) for x in zeros])
        else:
            waiting += panel.halves()
    return settled


def _inside_contour(coefficients: np.ndarray) -> tuple[list[float], bool]:
    """Return the real eigenvalues in [-1, 1] of a matrix of Chebyshev series by Beyn's method, and whether it finds as
    many eigenvalues inside the contour as the argument principle counts.

    It uses two moments of the inverse on an ellipse, applied to more vectors than there are eigenvalues inside. The
    series is real, so the lower half of the ellipse mirrors the upper one.
    """
    turn = np.exp(2j * np.pi * (np.arange(CONTOUR_NODES // 2) + 0.5) / CONTOUR_NODES)
    w = (ELLIPSE * turn + 1 / (ELLIPSE * turn)) / 2
    step = (ELLIPSE * turn - 1 / (ELLIPSE * turn)) / 2  # along the ellipse, but for a factor
    weights = step * w ** np.arange(2)[:, None] * 2 / CONTOUR_NODES
    matrices = np.tensordot(chebyshev.chebvander(w, len(coefficients) - 1), coefficients, axes=1)
    rows = len(coefficients[0])
    count = min(rows, FIRST_VECTORS)
    while True:
        probes = np.random.default_rng(0).standard_normal((rows, count))
        inverse = np.linalg.solve(matrices, np.broadcast_to(probes, (len(w), rows, count)))
        moments = np.tensordot(weights, inverse, axes=1).real
        u, values, vh = np.linalg.svd(moments[0], full_matrices=False)
        rank = int(np.sum(values > 1e-10 * max(values[0], 1e-4 * np.max(np.abs(inverse)))))
        if rank < count or count == rows:
            break
        count = min(rows, 2 * count)
    zeros = np.linalg.eigvals(u[:, :rank].T @ moments[1] @ vh[:rank].T / values[:rank])
    inside = np.abs(zeros + np.sqrt(zeros - 1 + 0j) * np.sqrt(zeros + 1 + 0j)) < ELLIPSE
    on_panel = (np.abs(zeros.imag) < 1e-3) & (np.abs(zeros.real) < 1 + 1e-6)
    certain = int(np.sum(inside)) == _winding_number(np.linalg.slogdet(matrices)[0])
    return [float(x) for x in np.clip(zeros[on_panel].real, -1, 1)], certain


def _winding_number(phases: np.ndarray) -> int | None:
    """Return the winding number of a function around zero, given its phases on the upper half of a contour; None if two
    neighbours differ by more than MOST_TURN."""
    around = np.concatenate([phases, phases[::-1].conj(), phases[:1]])
    with np.errstate(all="ignore"):
        turns = np.angle(around[1:] / around[:-1])
    return round(float(np.sum(turns)) / (2 * np.pi)) if np.all(np.abs(turns) <= MOST_TURN) else None


def _accepted(problem: SpikedProblem, starts: list[float], atoms: list[float], unit: float) -> list[float | None]:
    """Return the zero to which each starting value converges, None if it does not or ends far from the start.

    All are refined together, because one solve of the bulk serves many points. unit: the width of the bulk.
    """

    def free(z: float) -> bool:
        at_atom = any(abs(z - a) < AT_POINT_MASS * (unit + abs(a)) for a in atoms)
        return bool(np.isfinite(z) and problem.outside(z) and not at_atom)

    def is_zero(start: float, z: float) -> bool:
        if not (free(z) and abs(z - start) <= 0.05 * (unit + abs(start))):
            return False
        return _position_error(problem, z) <= problem.resolution(z)

    leading = [x for x in starts if free(x)]
    try:
        refined = dict(zip(leading, _refined(problem, np.array(leading), unit).tolist(), strict=True))
        zeros = {x: z for x, z in refined.items() if is_zero(x, z)}
    except NumericalError:
        if len(starts) > 1:  # one of them leads to where the bulk cannot be evaluated
            return [z for x in starts for z in _accepted(problem, [x], atoms, unit)]
        zeros = {}
    return [zeros.get(x) for x in starts]


def _position_error(problem: SpikedProblem, z: float) -> float:
    """Return a bound on the distance of a zero of det A from z, given rounding of A(z) and of the bulk responses.

    Next to an end of the bulk, where rows of A(z) vanish like a root of the distance, it is the distance to that end.
    """
    r = responses_at(problem, z)
    rounding = np.finfo(float).eps + float(problem.branch.rounding(np.array([z]), r[None])[0])
    return distance_to_zero(*with_slope(problem, z, r), rounding)


def _merged(by_path: list[list[float]], same: Callable[[float, float], bool]) -> list[float]:
    """Merge the zeros from several paths; each has the largest multiplicity that it has on any path."""
    clusters: list[float] = []
    for z in sorted(z for group in by_path for z in group):
        if not clusters or not same(clusters[-1], z):
            clusters.append(z)
    merged = []
    for z in clusters:
        merged += [z] * max(sum(same(x, z) for x in group) for group in by_path)
    return merged


def _refined(problem: SpikedProblem, z: np.ndarray, unit: float) -> np.ndarray:
    """Refine zeros by secant steps on 1 / (a . A(z)^-1 b), which has a simple zero at an eigenvalue.

    A singular A(z) ends the iteration.
    """
    if not z.size:
        return z

    def value(x: np.ndarray) -> np.ndarray:
        problem.branch.ask_beside(x, problem.excluded)
        values = []
        for matrix in a_matrices(problem, x):
            ends = np.random.default_rng(1).standard_normal((2, len(matrix)))
            try:
                values.append(float(1 / (ends[0] @ np.linalg.solve(matrix, ends[1])).real))
            except np.linalg.LinAlgError:
                values.append(0.0)
        return np.array(values)

    x0, x1 = z, z * (1 + 1e-6) + 1e-9 * unit
    f0, f1 = np.split(value(np.concatenate([x0, x1])), 2)
    for _ in range(12):
        moving = (f1 != f0) & (f1 != 0.0) & (np.abs(x1 - x0) >= 1e-14 * (unit + np.abs(x1)))
        if not moving.any():
            break
        with np.errstate(all="ignore"):
            better = np.where(moving, x1 - f1 * (x1 - x0) / (f1 - f0), x1)
        lost = moving & ~np.isfinite(better)
        better, moving = np.where(lost, x1, better), moving & ~lost
        x0, f0 = np.where(moving, x1, x0), np.where(moving, f1, f0)
        x1 = better
        if moving.any():
            f1 = f1.copy()
            f1[moving] = value(x1[moving])
        f1 = np.where(lost, 0.0, f1)
    return x1
