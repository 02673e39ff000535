"""The number of zeros of det A(z) outside the bulk, by the argument principle.

A(z) is assembled from its blocks on the physical branch; no eigenproblem or inverse map takes part. On each interval of
the real axis outside the bulk a lens-shaped contour in w, the logarithm of the distances to both ends, encloses every
zero except at the very ends. A(z) is real on the real axis, so the upper half of the contour suffices: the argument of
det A(z) changes by pi for each zero.

At large z the blocks decouple: A(z) without order parameters, A0(z), is a direct sum of small matrices. The argument of
det A(z) / det A0(z), which tends to 1 at infinity, is followed separately from those of the small matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import Branch
from numerics.certificate.blocks import BlockRows, SummandBlock, blocks_of
from numerics.certificate.records import CertificateCheck, Stopwatch
from numerics.outliers.components import components_of
from numerics.outliers.problem import SpikedProblem, assembler, rows_of
from numerics.runtime.interface import BulkLaw, Order
from numerics.runtime.point import Point
from numerics.support.nearby import read
from numerics.support.precision import in_float64
from numerics.support.threads import threads_for

NAME = "outliers"
LARGEST_ROWS = 150
"""Rows of A(z) above which determinants at the nodes cost more than the eigenproblem of the outliers."""
BESIDE = -7.0
"""Start of a lens in w: 1e-3 units of length from the end of its interval."""
BEYOND = 3.0
"""End of a lens in w on an infinite interval without farther known zeros: twenty units of length."""
AROUND = 2.0
"""Margin of a lens in w around known zeros."""
OPENING = 1.5
"""Half the opening angle of a lens, in radians."""
THINNER = 8.0
"""Factor by which a lens is thinned to exclude complex pairs of zeros created by sampling noise."""
UNREPORTED = 3
"""Number of unreported zeros close together that the initial nodes still resolve."""
TURN = 1.5
"""Change of log det between neighbouring nodes, in argument or modulus, above which a node is inserted."""
MOST_TURN = 2.9
"""Most change of the argument between initial nodes from all zeros; below pi, so that the direction is unambiguous."""
MOST_NODES = 1024
"""Nodes per lens above which the count is undecided."""
BATCH = 32
"""Nodes at which a compiled A(z) is assembled together, with one shape."""
FARTHER = 2.0
"""Distance in w beyond the lens at which the 1/z decay of log(det A / det A0) is tested."""
SMALL, FALLING = 3.0, 0.4
"""Largest value of this logarithm at the end of a lens, and the largest ratio beyond it."""
FARTHEST = 300.0
"""Largest w at which a lens may end."""
TIGHTEST = 1e-9
"""Spacing of nodes in w below which a zero lies on the contour."""
ANCHORED = 0.25
"""Spacing in w of the real points from which the branch is followed to reported zeros; Newton's method contracts
at once from a neighbour."""
ASIDE = 0.1
"""Distance from a reported zero at which its position is tested, over that to the nearest other zero or bulk edge."""
OFF = 1e-3
"""Largest error of a zero, in units of that distance."""
NOWHERE = np.zeros(0, complex)
TOGETHER = 1e-6
"""Distance in units of length within which reported zeros are a multiple one, and below which no position is tested."""


class UncountedZeros(Exception):
    """Raised when the number of zeros is undecided; the argument gives the reason."""


@dataclass(frozen=True)
class Gap:
    """An open interval of the real axis outside the bulk, possibly infinite, with its unit of length."""

    low: float
    high: float
    unit: float

    def holds(self, z: float) -> bool:
        return self.low < z < self.high

    @property
    def shown(self) -> str:
        if math.isinf(self.low):
            return f"below {self.high:.6g}"
        return f"above {self.low:.6g}" if math.isinf(self.high) else f"between {self.low:.6g} and {self.high:.6g}"

    def z(self, w: np.ndarray) -> np.ndarray:
        """Return z(w), where w is the logarithm of the ratio of the distances to the two ends."""
        grown: np.ndarray = np.exp(w)
        if math.isinf(self.high):
            return np.asarray(self.low + self.unit * grown)
        if math.isinf(self.low):
            return np.asarray(self.high - self.unit * grown.conj())
        # measured from the nearer end
        near = (self.high - self.low) * grown / (1 + grown)
        far = (self.high - self.low) / (1 + grown)
        return np.asarray(np.where(w.real < 0, self.low + near, self.high - far))

    def w(self, z: float) -> float:
        """Return the real w of a point inside."""
        if math.isinf(self.high):
            return math.log((z - self.low) / self.unit)
        if math.isinf(self.low):
            return math.log((self.high - z) / self.unit)
        return math.log((z - self.low) / (self.high - z))

    @property
    def infinite(self) -> bool:
        return math.isinf(self.low) or math.isinf(self.high)


@dataclass(frozen=True)
class Lens:
    """The upper half of a contour around part of a gap, from one real w to another."""

    gap: Gap
    first: float
    last: float
    opening: float
    known: int
    """Number of known zeros inside."""

    @staticmethod
    def around(gap: Gap, known: Sequence[float], opening: float = OPENING) -> Lens:
        """Return a lens around all known zeros, rounded to whole steps so that lenses of one gap mostly coincide."""
        places = [gap.w(z) for z in known]
        first = min([BESIDE, *(math.floor(w - AROUND) for w in places)])
        far = BEYOND if gap.infinite else -BESIDE
        return Lens(gap, first, max([far, *(math.ceil(w + AROUND) for w in places)]), opening, len(known))

    @property
    def nodes(self) -> np.ndarray:
        step = MOST_TURN * self.opening / (self.known + UNREPORTED)
        return np.linspace(self.first, self.last, 2 + int((self.last - self.first) / step))

    def z(self, w: np.ndarray) -> np.ndarray:
        """Return the points of the contour above w, which are real at its ends and beyond."""
        share = np.clip((w - self.first) / (self.last - self.first), 0.0, 1.0)
        height = self.opening * np.sqrt(4 * share * (1 - share))
        z = self.gap.z(w + 1j * height)
        return np.where(height == 0, z.real + 0j, z)


def gaps_outside(problem: SpikedProblem) -> list[Gap]:
    """Return the intervals of the real axis outside the bulk, ascending."""
    taken = sorted(problem.searched)
    if not taken:
        return [Gap(-math.inf, 0.0, 1.0), Gap(0.0, math.inf, 1.0)]
    lowest, highest = taken[0][0], max(high for _, high in taken)
    unit = highest - lowest or abs(highest) or 1.0
    gaps, reached = [Gap(-math.inf, lowest, unit)], taken[0][1]
    for low, high in taken[1:]:
        if low - reached > 1e-9 * unit:
            gaps.append(Gap(reached, low, unit))
        reached = max(reached, high)
    return [*gaps, Gap(highest, math.inf, unit)]


class Determinant:
    """log det A(z) at nodes with Im z >= 0, in parts.

    The first column is log(det A / det A0), the others are the small matrices whose direct sum is A0. counts: the
    multiplicity of each in det A.
    """

    def __init__(self, problem: SpikedProblem) -> None:
        self.problem = problem
        self.branch = kept_branch(problem.branch.law, problem.branch.own)
        self.order = {key: np.asarray(value) for key, value in read(problem.order).items()}
        self.parts: list[SummandBlock] | None = None
        self.counts = np.ones(1)
        self.scalar = False
        self.count = 0

    @cached_property
    def rows(self) -> int:
        """The number of rows of A(z)."""
        return rows_of(self.problem)

    @cached_property
    def empty(self) -> Order:
        """Order parameters that are all zero."""
        return {key: np.zeros_like(value) for key, value in self.order.items()}

    def _blocks(self, z: np.ndarray, responses: np.ndarray, order: Order) -> BlockRows:
        """Return A(z) at many points, from its blocks unless averages over sites make the blocks depend on z."""
        probe = self.problem.probe
        if self.rows and probe.sites is not None:
            return BlockRows([[self._compiled(z, responses, order)]], z.size)
        return blocks_of(probe.a_matrix(self.problem.p, z, responses.T, order), z.size)

    def _compiled(self, z: np.ndarray, responses: np.ndarray, order: Order) -> np.ndarray:
        """Return A(z), computed by compiled code in batches of one shape."""
        filled = -(-z.size // BATCH) * BATCH - z.size
        points = np.concatenate([z, np.full(filled, z[0])])
        padded = np.concatenate([responses, np.tile(responses[:1], (filled, 1))])
        assemble = assembler(self.problem.probe)
        batches = [
            np.asarray(assemble(self.problem.p, jnp.asarray(points[k : k + BATCH]), padded[k : k + BATCH], order))
            for k in range(0, points.size, BATCH)
        ]
        return np.concatenate(batches)[: z.size]

    def _apart(self, whole: BlockRows, z: np.ndarray, responses: np.ndarray) -> np.ndarray:
        """Return log det of the parts of A0, which consists of the multiples of identities in the blocks of A, or is A
        without order parameters.
        """
        if self.parts is None:
            self.parts = whole.scalar_parts()
            self.scalar = self.parts is not None
        bare = whole if self.scalar else self._blocks(z, responses, self.empty)
        if self.parts is None:
            self.parts = bare.parts()
        self.counts = np.array([1.0, *(part.count for part in self.parts)])
        return bare.log_scalar_parts(self.parts) if self.scalar else bare.log_parts(self.parts)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Return, for each node, log(det A / det A0) and the logarithms of the parts of A0."""
        return self.beside(z, z[:0])[0]

    def beside(self, z: np.ndarray, aside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return logarithms at nodes, and log |det A| at further points, minus infinity at a zero."""
        self.count += z.size
        points = np.concatenate([z, aside])
        responses = self.branch.responses(points).T.astype(complex)
        whole = self._blocks(points, responses, self.order)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = self._apart(whole, points, responses)
            total = whole.log_determinants()
            together = total - apart @ self.counts[1:]
        logarithms = np.column_stack([_wrapped(together[: z.size]), apart[: z.size]])
        if not np.isfinite(logarithms).all():
            raise UncountedZeros("A(z) is singular on the contour, or not finite")
        return logarithms, total[z.size :].real


def responses_along(branch: Branch, z: np.ndarray) -> np.ndarray:
    """Return the bulk responses at nodes, one row each; cached, because lenses around one bulk mostly coincide."""
    return kept_branch(branch.law, branch.own).responses(z).T.astype(complex)


@lru_cache(maxsize=64)
def kept_branch(law: BulkLaw, p: Point) -> Branch:
    """Return a cached branch that shares no state with the solution."""
    return Branch(law, p)


def _wrapped(logarithms: np.ndarray) -> np.ndarray:
    """Return logarithms with arguments between -pi and pi."""
    return logarithms - 2j * np.pi * np.round(logarithms.imag / (2 * np.pi))


@dataclass(frozen=True)
class ContourTrace:
    """log det A(z) along a lens, in parts: det A / det A0 in the first column, parts of A0 in the others."""

    lens: Lens
    nodes: np.ndarray
    logarithms: np.ndarray
    counts: np.ndarray
    """Multiplicity of each part."""

    @property
    def ends_far_out(self) -> bool:
        """Whether no zero lies beyond the lens, which shows in a decay of the logarithm between the last two nodes."""
        end, beyond = self.logarithms[-2:, 0].tolist()
        real = abs(end.imag) < 1e-6 and abs(beyond.imag) < 1e-6
        return bool(real and abs(end) < SMALL and abs(beyond) < FALLING * abs(end) + 1e-9)

    @cached_property
    def changes(self) -> np.ndarray:
        """Changes of the logarithms between neighbouring nodes, arguments between -pi and pi."""
        return _wrapped(self.logarithms[1:] - self.logarithms[:-1])

    @cached_property
    def unresolved(self) -> np.ndarray:
        """Mask of neighbouring nodes between which a logarithm changes too much, and of the adjacent pairs."""
        wide = np.maximum(np.abs(self.changes.real), np.abs(self.changes.imag)).max(axis=1) > TURN
        mask: np.ndarray = wide.copy()
        mask[1:] |= wide[:-1]
        mask[:-1] |= wide[1:]
        return mask

    @property
    def between(self) -> np.ndarray:
        """Midpoints of unresolved pairs of nodes; raise UncountedZeros if there are too many, or too close ones."""
        wide = self.unresolved
        if self.nodes.size + wide.sum() > MOST_NODES:
            raise UncountedZeros(f"{MOST_NODES} nodes do not resolve the argument of det A(z)")
        if np.min(np.diff(self.nodes)[wide]) < TIGHTEST:
            raise UncountedZeros("a zero of det A(z) is too close to the end of a contour")
        midpoints: np.ndarray = (self.nodes[:-1][wide] + self.nodes[1:][wide]) / 2
        return midpoints

    @property
    def above(self) -> np.ndarray:
        """Points at the node of each unresolved pair that is higher above the real axis."""
        one, other = (self.lens.z(ends[self.unresolved]) for ends in (self.nodes[:-1], self.nodes[1:]))
        return np.where(one.imag > other.imag, one, other)

    def inserted(self, nodes: np.ndarray, logarithms: np.ndarray) -> ContourTrace:
        """Return the contour with further nodes."""
        places = np.concatenate([self.nodes, nodes])
        order = np.argsort(places, kind="stable")
        together = np.concatenate([self.logarithms, logarithms])
        return replace(self, nodes=places[order], logarithms=together[order])

    @property
    def zeros(self) -> int:
        """The number of zeros enclosed by the lens and its mirror image."""
        turns = float(np.sum(self.changes.imag @ self.counts))
        # with w the contour runs clockwise, unless z falls where w grows
        zeros = turns / np.pi * (1 if math.isinf(self.lens.gap.low) else -1)
        if abs(zeros - round(zeros)) > 0.05:
            raise UncountedZeros("det A(z) is not real on the real axis")
        return round(zeros)


def trace(determinant: Determinant, lenses: Sequence[Lens]) -> list[ContourTrace]:
    """Return log det A(z) along several lenses, with adaptive nodes; raise UncountedZeros if they are too many."""
    return _completed(determinant, _together(determinant, lenses)[0])


def _completed(determinant: Determinant, begun: Sequence[ContourTrace]) -> list[ContourTrace]:
    """Return contours that end far out and have enough nodes."""
    traces = list(begun)
    for k, one in enumerate(begun):
        while one.lens.gap.infinite and not one.ends_far_out:
            lens = replace(one.lens, last=one.lens.last + FARTHER)
            if lens.last > FARTHEST:
                raise UncountedZeros("the blocks of A(z) do not decouple far out")
            ((one,), _) = _together(determinant, [lens])
        if one.lens.gap.infinite:
            traces[k] = replace(one, nodes=one.nodes[:-1], logarithms=one.logarithms[:-1])
    return _refined(determinant, traces)


def _together(
    determinant: Determinant, lenses: Sequence[Lens], aside: np.ndarray = NOWHERE
) -> tuple[list[ContourTrace], np.ndarray]:
    """Evaluate all lenses at their nodes, and log |det A| at further points, together, because one solve of the bulk
    and one assembly of A(z) serve many points.
    """
    contours = [_contour(lens) for lens in lenses]
    logarithms, moduli = determinant.beside(np.concatenate([z for _, z in contours]), aside)
    traces, begin = [], 0
    for lens, (nodes, _) in zip(lenses, contours, strict=True):
        traces.append(ContourTrace(lens, nodes, logarithms[begin : begin + nodes.size], determinant.counts))
        begin += nodes.size
    return traces, moduli


@lru_cache(maxsize=256)
def _contour(lens: Lens) -> tuple[np.ndarray, np.ndarray]:
    """Return the initial nodes of a lens, with one beyond it on an infinite interval, and the points there."""
    nodes = np.append(lens.nodes, lens.last + FARTHER) if lens.gap.infinite else lens.nodes
    return nodes, lens.z(nodes)


def _refined(determinant: Determinant, contours: Sequence[ContourTrace]) -> list[ContourTrace]:
    """Return contours with nodes inserted where a logarithm changes too much, those of all contours together."""
    found = list(contours)
    while wide := [k for k, one in enumerate(found) if one.unresolved.any()]:
        between = [found[k].between for k in wide]
        z = np.concatenate([found[k].lens.z(nodes) for k, nodes in zip(wide, between, strict=True)])
        if not determinant.branch.knows(z):
            determinant.branch.ask_from(np.concatenate([found[k].above for k in wide]), z)
        logarithms = np.split(determinant(z), np.cumsum([nodes.size for nodes in between])[:-1])
        for k, nodes, values in zip(wide, between, logarithms, strict=True):
            found[k] = found[k].inserted(nodes, values)
    return found


def _counted(
    determinant: Determinant, lenses: Sequence[Lens], aside: np.ndarray, sampled: bool
) -> tuple[list[int], np.ndarray]:
    """Return the number of zeros in the gap of each lens, and log |det A| at further points."""
    begun, moduli = _together(determinant, lenses, aside)
    counts = [one.zeros for one in _completed(determinant, begun)]
    for k, lens in enumerate(lenses):
        if sampled and counts[k] != lens.known:
            (thin,) = trace(determinant, [replace(lens, opening=OPENING / THINNER)])
            counts[k] = thin.zeros
    return counts, moduli


class TestedZero(NamedTuple):
    """A reported zero whose position is tested, its multiplicity, its distance to the point at which det A(z) is
    compared, and a real point nearby from which the branch is followed to both.
    """

    z: float
    multiplicity: int
    aside: float
    anchor: float


def isolated_zeros(gap: Gap, reported: Sequence[float]) -> list[TestedZero]:
    """Return the reported zeros in a gap with enough room for a test of their position; zeros ascend."""
    tight = TOGETHER * gap.unit
    zeros = [z for k, z in enumerate(reported) if k == 0 or z - reported[k - 1] > tight]
    ends = [gap.low, *zeros, gap.high]
    room = [ASIDE * min(z - before, after - z) for before, z, after in zip(ends, zeros, ends[2:], strict=False)]
    return [
        TestedZero(z, sum(abs(other - z) <= aside for other in reported), aside, _anchor(gap, z))
        for z, aside in zip(zeros, room, strict=True)
        if aside > tight
    ]


def _anchor(gap: Gap, z: float) -> float:
    """Return the nearest point of a grid in w, so that anchors of one gap mostly coincide."""
    return float(gap.z(np.array(ANCHORED * round(gap.w(z) / ANCHORED))).real)


class Displacement(NamedTuple):
    """A reported zero, its estimated distance from a zero of det A(z), and the largest distance that is allowed."""

    z: float
    distance: float
    allowed: float


def displacement(tested: Sequence[TestedZero], moduli: np.ndarray) -> Displacement | None:
    """Return the reported zero that is farthest from a zero of det A(z) in units of the allowed distance; None if all
    are close.

    |det A| is proportional to h^m at a small distance h from a zero of multiplicity m. moduli: log |det A| at the
    reported zeros and at the points beside them.
    """
    if not tested:
        return None
    z, multiplicity, aside, _ = np.array(tested).T
    at_zero, beside = np.split(moduli, 2)
    with np.errstate(invalid="ignore"):
        share = np.exp((at_zero - beside) / multiplicity)
    worst = int(np.argmax(np.where(np.isnan(share), 0.0, share)))
    if not share[worst] > OFF:
        return None
    return Displacement(float(z[worst]), float(share[worst] * aside[worst]), float(OFF * aside[worst]))


@in_float64
def check_outliers(
    problem: SpikedProblem, outliers: Sequence[float], label: str = "", sampled: bool = False, most: int = LARGEST_ROWS
) -> CertificateCheck:
    """Check that det A(z) has as many zeros outside the bulk as there are outliers, interval by interval, and that they
    lie at the outliers.

    Args:
        outliers: at the order parameters of the problem.
        sampled: whether these carry Monte Carlo noise.
        most: rows of A(z) above which the check is skipped.
    """
    watch = Stopwatch()
    check = CertificateCheck(
        NAME, label, "zeros of det A(z) outside the bulk", float(len(outliers)), None, 0.0, "not checked"
    )
    parts = components_of(problem) if problem.probe.unknowns else ()
    determinants = [Determinant(part.problem) for part in parts]
    rows = max((determinant.rows for determinant in determinants), default=0)
    if rows == 0:
        return replace(check, expected=0.0, status="failed" if outliers else "passed", seconds=watch.seconds)
    if rows > most:
        return replace(check, note=f"A(z) has {rows} rows, more than {most}", seconds=watch.seconds)
    gaps = gaps_outside(problem)
    known = [sorted(z for z in outliers if gap.holds(z)) for gap in gaps]
    lenses = [Lens.around(gap, zs) for gap, zs in zip(gaps, known, strict=True)]
    tested = [one for gap, zs in zip(gaps, known, strict=True) for one in isolated_zeros(gap, zs)]
    try:
        with threads_for(rows):
            places = np.array([*(one.z for one in tested), *(one.z + one.aside for one in tested)]) + 0j
            if tested:
                anchors = np.array([one.anchor for one in tested] * 2)
                at_once = np.concatenate([anchors, *(_contour(lens)[1] for lens in lenses)])
                for determinant in determinants:
                    determinant.branch.ask(at_once)
                    determinant.branch.ask_near(anchors, places)
            results = [_counted(one, lenses, places, sampled) for one in determinants]
        each, moduli = zip(*results, strict=True)
        copies = [part.multiplicity for part in parts]
        off = displacement(tested, sum(n * one for n, one in zip(copies, moduli, strict=True)))
    except (UncountedZeros, NumericalError, np.linalg.LinAlgError) as error:
        return replace(check, note=f"not decided: {error}", seconds=watch.seconds)
    counts = [sum(n * m for n, m in zip(some, copies, strict=True)) for some in zip(*each, strict=True)]
    wrong = [gap.shown for gap, count, zs in zip(gaps, counts, known, strict=True) if count != len(zs)]
    check = replace(
        check,
        expected=float(sum(counts)),
        note=f"{sum(one.count for one in determinants)} nodes",
        seconds=watch.seconds,
    )
    if wrong:
        return replace(check, what=f"zeros of det A(z) {wrong[0]}", status="failed")
    if off is not None:
        what = f"distance of {off.z:.12g} from a zero of det A(z)"
        return replace(check, what=what, value=off.distance, expected=0.0, closeness=off.allowed, status="failed")
    return replace(check, status="passed")
