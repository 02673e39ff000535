"""How many zeros det A(z) has outside the bulk, by the argument principle.

A(z) is assembled from its blocks on the physical branch of the bulk equations; neither an eigenproblem nor an inverse
map takes part. On each interval of the real axis outside the bulk a lens in the variable w, the logarithm of the
distances to both ends, encloses every zero but those at the very ends. A(z) is real on the real axis, so that the upper
half of the lens is enough: the argument of det A(z) changes by pi for each zero.

Far out the blocks decouple: what is left of A(z) without order parameters, A0(z), is a direct sum of small matrices.
The argument of det A(z) / det A0(z), which is one at infinity, is followed apart from those of the small matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

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
"""Rows of A(z) above which a determinant at every node costs more than the eigenproblem that gave the outliers."""
BESIDE = -7.0
"""Where a lens begins in w: at 1e-3 of the unit of length from the end of its interval."""
BEYOND = 3.0
"""Where a lens ends in w if its interval is infinite and no zero is known farther out: at twenty units of length."""
AROUND = 2.0
"""How far in w a lens reaches beyond a zero that is known."""
OPENING = 1.5
"""Half the opening of a lens, in radians."""
THINNER = 8.0
"""A lens that is thinner by this factor leaves out pairs of zeros that sampling noise has moved off the real axis."""
UNREPORTED = 3
"""So many zeros beside those that are known may lie together without being overlooked."""
TURN = 1.5
"""Neighbouring nodes between which log det changes by more, in its argument or modulus, get a node between them."""
MOST_TURN = 2.9
"""What all zeros together may turn the argument by from one of the first nodes to the next: less than pi, so that no
turn is taken for one in the other direction."""
MOST_NODES = 1024
"""Nodes of one lens beyond which the number of zeros is not decided."""
BATCH = 32
"""Nodes at which A(z) is assembled together where it is compiled: one shape, compiled once."""
FARTHER = 2.0
"""How much farther out in w log(det A / det A0) is looked at again: it falls like 1/z if no zero is left."""
SMALL, FALLING = 3.0, 0.4
"""What this logarithm may be at the end of a lens, and the factor that it falls by at least farther out."""
FARTHEST = 300.0
"""A lens that would have to end beyond this w is not followed."""
TIGHTEST = 1e-9
"""Nodes that are as close to each other in w have a zero beside them."""


class UncountedZeros(Exception):
    """The number of zeros could not be told; the argument says why."""


@dataclass(frozen=True)
class Gap:
    """An open interval of the real axis outside the bulk, infinite at one end or both, and the unit of length."""

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
        """The point that w stands for: w is the logarithm of the distance to a finite end, over that to the other."""
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
        """The real w of a point inside."""
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
    """The upper half of a contour around a part of a gap, from one real w to another."""

    gap: Gap
    first: float
    last: float
    opening: float
    known: int
    """How many zeros are known inside."""

    @staticmethod
    def around(gap: Gap, known: Sequence[float], opening: float = OPENING) -> Lens:
        """A lens that reaches beyond all known zeros, by whole steps, so that lenses of one gap are mostly the same."""
        places = [gap.w(z) for z in known]
        first = min([BESIDE, *(math.floor(w - AROUND) for w in places)])
        far = BEYOND if gap.infinite else -BESIDE
        return Lens(gap, first, max([far, *(math.ceil(w + AROUND) for w in places)]), opening, len(known))

    @property
    def nodes(self) -> np.ndarray:
        step = MOST_TURN * self.opening / (self.known + UNREPORTED)
        return np.linspace(self.first, self.last, 2 + int((self.last - self.first) / step))

    def z(self, w: np.ndarray) -> np.ndarray:
        """The points of the contour above w; on the real axis at its ends, and beyond them."""
        share = np.clip((w - self.first) / (self.last - self.first), 0.0, 1.0)
        height = self.opening * np.sqrt(4 * share * (1 - share))
        z = self.gap.z(w + 1j * height)
        found: np.ndarray = np.where(height == 0, z.real + 0j, z)
        return found


def gaps_outside(problem: SpikedProblem) -> list[Gap]:
    """The intervals of the real axis on which outliers are looked for, ascending."""
    taken = sorted(problem.searched)
    if not taken:
        return [Gap(-math.inf, 0.0, 1.0), Gap(0.0, math.inf, 1.0)]
    lowest, highest = taken[0][0], max(high for _, high in taken)
    unit = highest - lowest or abs(highest) or 1.0
    found, reached = [Gap(-math.inf, lowest, unit)], taken[0][1]
    for low, high in taken[1:]:
        if low - reached > 1e-9 * unit:
            found.append(Gap(reached, low, unit))
        reached = max(reached, high)
    return [*found, Gap(highest, math.inf, unit)]


class Determinant:
    """log det A(z) at nodes in the upper half plane or on the real axis, in parts: one column for det A(z) / det A0(z),
    and one for each of the small matrices that A0(z) is the direct sum of. counts: how often det A(z) has each."""

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
        """How many rows A(z) has."""
        if self.problem.probe.sites is not None:
            return rows_of(self.problem)
        count = len(self.problem.branch.law.responses)
        return self.problem.probe.a_matrix(self.problem.p, 1j, np.ones(count), self.order).shape[0]

    @cached_property
    def empty(self) -> Order:
        """No order parameters."""
        return {key: np.zeros_like(value) for key, value in self.order.items()}

    def _blocks(self, z: np.ndarray, responses: np.ndarray, order: Order) -> BlockRows:
        """A(z) at many points: by its blocks, unless averages over sites make them depend on z."""
        probe = self.problem.probe
        if self.rows and probe.sites is not None:
            return BlockRows([[self._compiled(z, responses, order)]], z.size)
        return blocks_of(probe.a_matrix(self.problem.p, z, responses.T, order), z.size)

    def _compiled(self, z: np.ndarray, responses: np.ndarray, order: Order) -> np.ndarray:
        """A(z) by compiled code, which has one shape."""
        filled = -(-z.size // BATCH) * BATCH - z.size
        points = np.concatenate([z, np.full(filled, z[0])])
        known = np.concatenate([responses, np.tile(responses[:1], (filled, 1))])
        assemble = assembler(self.problem.probe)
        made = [
            np.asarray(assemble(self.problem.p, jnp.asarray(points[k : k + BATCH]), known[k : k + BATCH], order))
            for k in range(0, points.size, BATCH)
        ]
        found: np.ndarray = np.concatenate(made)[: z.size]
        return found

    def _apart(self, whole: BlockRows, z: np.ndarray, responses: np.ndarray) -> np.ndarray:
        """Logarithms of the parts of A0: the multiples of identities in the blocks of A, or A without order
        parameters."""
        if self.parts is None:
            self.parts = whole.scalar_parts()
            self.scalar = self.parts is not None
        bare = whole if self.scalar else self._blocks(z, responses, self.empty)
        if self.parts is None:
            self.parts = bare.parts()
        self.counts = np.array([1.0, *(part.count for part in self.parts)])
        return bare.log_scalar_parts(self.parts) if self.scalar else bare.log_parts(self.parts)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """For each node a row: the logarithm of det A / det A0, and those of the parts of A0."""
        self.count += z.size
        responses = self.branch.responses(z).T.astype(complex)
        whole = self._blocks(z, responses, self.order)
        apart = self._apart(whole, z, responses)
        together = whole.log_determinants() - apart @ self.counts[1:]
        found = np.column_stack([_wrapped(together), apart])
        if not np.isfinite(found).all():
            raise UncountedZeros("A(z) is singular on the contour, or not finite")
        return found


def responses_along(branch: Branch, z: np.ndarray) -> np.ndarray:
    """The bulk responses at nodes, one row each; kept, because lenses around one bulk are mostly the same."""
    found: np.ndarray = kept_branch(branch.law, branch.own).responses(z).T.astype(complex)
    return found


@lru_cache(maxsize=64)
def kept_branch(law: BulkLaw, p: Point) -> Branch:
    """A branch of its own, which knows nothing of the way to the solution."""
    return Branch(law, p)


def _wrapped(logarithms: np.ndarray) -> np.ndarray:
    """Logarithms with arguments between -pi and pi."""
    found: np.ndarray = logarithms - 2j * np.pi * np.round(logarithms.imag / (2 * np.pi))
    return found


@dataclass(frozen=True)
class ContourTrace:
    """log det A(z) along a lens, in parts: of det A / det A0 in the first column, of those of A0 in the others."""

    lens: Lens
    nodes: np.ndarray
    logarithms: np.ndarray
    counts: np.ndarray
    """How often each of these parts occurs."""

    @property
    def ends_far_out(self) -> bool:
        """Whether no zero is left beyond the last node but one; that one ends the lens, the last is farther out."""
        end, beyond = self.logarithms[-2:, 0].tolist()
        real = abs(end.imag) < 1e-6 and abs(beyond.imag) < 1e-6
        return bool(real and abs(end) < SMALL and abs(beyond) < FALLING * abs(end) + 1e-9)

    @cached_property
    def changes(self) -> np.ndarray:
        """From each node to the next, with arguments between -pi and pi."""
        return _wrapped(self.logarithms[1:] - self.logarithms[:-1])

    @property
    def unresolved(self) -> np.ndarray:
        """Between which neighbouring nodes any of the logarithms changes too much, and where next to those."""
        wide = np.maximum(np.abs(self.changes.real), np.abs(self.changes.imag)).max(axis=1) > TURN
        found: np.ndarray = wide.copy()
        found[1:] |= wide[:-1]
        found[:-1] |= wide[1:]
        return found

    @property
    def zeros(self) -> int:
        """How many zeros the lens and its mirror image enclose."""
        turns = float(np.sum(self.changes.imag @ self.counts))
        # with w the contour runs clockwise, unless z falls where w grows
        zeros = turns / np.pi * (1 if math.isinf(self.lens.gap.low) else -1)
        if abs(zeros - round(zeros)) > 0.05:
            raise UncountedZeros("det A(z) is not real on the real axis")
        return round(zeros)


def trace(determinant: Determinant, lenses: Sequence[Lens]) -> list[ContourTrace]:
    """log det A(z) along several lenses, with as many nodes as it takes; Undecided where that is too many."""
    found = _together(determinant, lenses)
    for k, one in enumerate(found):
        while one.lens.gap.infinite and not one.ends_far_out:
            lens = replace(one.lens, last=one.lens.last + FARTHER)
            if lens.last > FARTHEST:
                raise UncountedZeros("the blocks of A(z) do not decouple far out")
            (one,) = _together(determinant, [lens])
        if one.lens.gap.infinite:
            one = replace(one, nodes=one.nodes[:-1], logarithms=one.logarithms[:-1])
        found[k] = _refined(determinant, one)
    return found


def _together(determinant: Determinant, lenses: Sequence[Lens]) -> list[ContourTrace]:
    """All lenses at their nodes: the bulk equations are solved at many points for little more than at one."""
    contours = [_contour(lens) for lens in lenses]
    logarithms = determinant(np.concatenate([z for _, z in contours]))
    found, begin = [], 0
    for lens, (nodes, _) in zip(lenses, contours, strict=True):
        found.append(ContourTrace(lens, nodes, logarithms[begin : begin + nodes.size], determinant.counts))
        begin += nodes.size
    return found


@lru_cache(maxsize=256)
def _contour(lens: Lens) -> tuple[np.ndarray, np.ndarray]:
    """The first nodes of a lens, with one farther out where its interval is infinite, and the points there."""
    nodes = np.append(lens.nodes, lens.last + FARTHER) if lens.gap.infinite else lens.nodes
    return nodes, lens.z(nodes)


def _refined(determinant: Determinant, one: ContourTrace) -> ContourTrace:
    while (wide := one.unresolved).any():
        if one.nodes.size + wide.sum() > MOST_NODES:
            raise UncountedZeros(f"{MOST_NODES} nodes do not resolve the argument of det A(z)")
        if np.min(np.diff(one.nodes)[wide]) < TIGHTEST:
            raise UncountedZeros("a zero of det A(z) is too close to the end of a contour")
        between = (one.nodes[:-1][wide] + one.nodes[1:][wide]) / 2
        z, beside = one.lens.z(between), [one.lens.z(ends[wide]) for ends in (one.nodes[:-1], one.nodes[1:])]
        determinant.branch.ask_from(np.where(beside[0].imag > beside[1].imag, *beside), z)
        logarithms = np.concatenate([one.logarithms, determinant(z)])
        order = np.argsort(np.concatenate([one.nodes, between]), kind="stable")
        one = replace(one, nodes=np.concatenate([one.nodes, between])[order], logarithms=logarithms[order])
    return one


def _counted(
    determinant: Determinant, gaps: Sequence[Gap], known: Sequence[Sequence[float]], sampled: bool
) -> list[int]:
    """The number of zeros in each gap; known: those that are reported there."""
    lenses = [Lens.around(gap, zs) for gap, zs in zip(gaps, known, strict=True)]
    counts = [one.zeros for one in trace(determinant, lenses)]
    for k, (gap, zs) in enumerate(zip(gaps, known, strict=True)):
        if sampled and counts[k] != len(zs):
            (thin,) = trace(determinant, [Lens.around(gap, zs, OPENING / THINNER)])
            counts[k] = thin.zeros
    return counts


@in_float64
def check_outliers(
    problem: SpikedProblem, outliers: Sequence[float], label: str = "", sampled: bool = False, most: int = LARGEST_ROWS
) -> CertificateCheck:
    """Whether A(z) has as many zeros outside the bulk as outliers are reported, interval by interval.

    outliers: at the order parameters of the problem. sampled: whether these carry noise. most: rows of A(z) above which
    nothing is checked.
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
    known = [[z for z in outliers if gap.holds(z)] for gap in gaps]
    try:
        with threads_for(rows):
            each = [_counted(determinant, gaps, known, sampled) for determinant in determinants]
    except (UncountedZeros, NumericalError, np.linalg.LinAlgError) as error:
        return replace(check, note=f"not decided: {error}", seconds=watch.seconds)
    counts = [
        sum(n * part.multiplicity for n, part in zip(some, parts, strict=True)) for some in zip(*each, strict=True)
    ]
    wrong = [gap.shown for gap, count, zs in zip(gaps, counts, known, strict=True) if count != len(zs)]
    check = replace(
        check,
        expected=float(sum(counts)),
        note=f"{sum(one.count for one in determinants)} nodes",
        seconds=watch.seconds,
    )
    if wrong:
        return replace(check, what=f"zeros of det A(z) {wrong[0]}", status="failed")
    return replace(check, status="passed")
