"""The spiked problem: A(z) of a probed matrix at given parameters, order parameters and bulk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import Branch
from numerics.bulk.density import out_of_reach, roots_of
from numerics.bulk.support import atoms_of, support
from numerics.runtime.interface import Array, Direction, Order, Probe, Side
from numerics.runtime.point import Point
from numerics.support.compiling import compiled
from numerics.support.nearby import read

AT_EDGE, AT_SETTLED_EDGE = 3e-12, 1e-9
"""Distance from an edge, relative to the largest edge, within which a point counts as the edge; the second if a density
is discretised. Edges are accurate to 1e-14 (1e-10 there), and the square root of the rest must separate the branches of
the curve."""
SAME, BESIDE = 1e-7, 1e-3
"""Tolerance of zeros of det A(z), relative to the width of the bulk and their size, and relative to their distance from
the bulk."""


@dataclass(frozen=True)
class SpikedProblem:
    """A probed matrix at given parameters and order parameters, whose outliers are sought.

    excluded: the intervals of the bulk; a point mass is an interval of length zero.
    """

    probe: Probe
    p: Point
    order: Order
    branch: Branch
    excluded: tuple[tuple[float, float], ...]

    @cached_property
    def roots(self) -> dict[float, int]:
        """For each end of the bulk, the q for which all functions are smooth in (distance)^(1/q)."""
        bulk = [(low, high) for low, high in self.excluded if high > low]
        pairs = zip(bulk, roots_of(self.branch, bulk), strict=True)
        return {end: root for ends, roots in pairs for end, root in zip(ends, roots, strict=True)}

    @cached_property
    def searched(self) -> tuple[tuple[float, float], ...]:
        """The intervals excluded from the search: the bulk, and neighbourhoods of divergent edges."""
        bulk = [(low, high) for low, high in self.excluded if high > low]
        off = out_of_reach(self.branch, bulk)
        return tuple((low - off.get(low, 0.0), high + off.get(high, 0.0)) for low, high in self.excluded)

    @property
    def moves(self) -> bool:
        """Whether the bulk depends on order parameters, and therefore has their errors."""
        return self.branch.law.sampled or bool(self.probe.measured)

    def with_order(self, order: Order) -> SpikedProblem:
        """Return the problem at other order parameters, with its bulk recomputed if it depends on them."""
        if not self.moves:
            return replace(self, order=order)
        p = self.p
        for spread in self.branch.law.spreads:
            p = spread.at(p, order)
        p = self.probe.measured_at(p, order)
        branch = Branch(self.branch.law, p)
        excluded = self.excluded if self.branch.law.sampled else excluded_by(branch)
        return replace(self, order=order, p=p, branch=branch, excluded=excluded)

    def outside(self, z: float) -> bool:
        """Return whether z lies outside every interval by more than rounding."""
        return all(z < low or z > high for low, high in self._met)

    @cached_property
    def _met(self) -> tuple[tuple[float, float], ...]:
        """The intervals widened by rounding."""
        share = AT_SETTLED_EDGE if self.branch.law.settles else AT_EDGE
        margin = share * max((abs(e) for pair in self.excluded for e in pair), default=1.0)
        return tuple((low - margin, high + margin) for low, high in self.searched)

    def nearest_edge(self, z: float) -> float:
        """Return the nearest end of an interval or point mass of the bulk."""
        return min((e for pair in self.excluded for e in pair), key=lambda e: abs(e - z), default=0.0)

    @cached_property
    def radius(self) -> float:
        """Half the width of the bulk, or without intervals the modulus of the largest point mass, or 1."""
        bulk = [end for low, high in self.excluded if high > low for end in (low, high)]
        if bulk:
            return (max(bulk) - min(bulk)) / 2
        return max((abs(at) for at, _ in self.excluded), default=0.0) or 1.0

    def resolution(self, z: float) -> float:
        """Return the tolerance of a zero of det A(z) at z; near an end of the bulk it scales with the distance."""
        away = abs(z - self.nearest_edge(z)) if self.excluded else np.inf
        return float(min(BESIDE * away, SAME * (self.radius + abs(z))))

    def same(self, z: float, other: float) -> bool:
        """Return whether two zeros of det A(z) are equal within their tolerance."""
        return abs(z - other) <= self.resolution(z) + self.resolution(other)


def excluded_by(branch: Branch) -> tuple[tuple[float, float], ...]:
    """Return the intervals of the bulk, and its point masses as intervals of length zero."""
    edges = support(branch)
    return (*edges, *((atom["at"], atom["at"]) for atom in atoms_of(branch, edges)))


def a_matrices(problem: SpikedProblem, z: np.ndarray) -> np.ndarray:
    """Return A(z) at many points, for contours, plots and as a reference."""
    z = np.atleast_1d(z)
    responses = problem.branch.responses(z).T
    if not np.iscomplexobj(z) and np.all(responses.imag == 0):
        responses = responses.real
    return np.asarray(assembler(problem.probe)(problem.p, jnp.asarray(z), responses, read(problem.order)))


def rows_of(problem: SpikedProblem) -> int:
    """Return the number of rows of A(z); zero before the first spike. Cached, because it depends on shapes alone."""
    leaves, layout = jax.tree_util.tree_flatten(problem.p)
    shapes = tuple((key, np.shape(value)) for key, value in problem.order.items())
    return _rows(problem.probe, layout, tuple(map(np.shape, leaves)), shapes, len(problem.branch.law.responses))


@lru_cache(maxsize=256)
def _rows(probe: Probe, layout: Any, leaves: tuple[Any, ...], shapes: tuple[Any, ...], count: int) -> int:
    """Return the number of rows of A(z) at a point with leaves of these shapes and `count` responses."""
    struct: type = jax.ShapeDtypeStruct
    p = layout.unflatten([struct(shape, float) for shape in leaves])
    order = {key: struct(shape, float) for key, shape in shapes}
    shape = jax.eval_shape(probe.at, p, struct((), float), struct((count,), float), order)
    return int(shape.shape[0])


@lru_cache(maxsize=64)
def assembler(probe: Probe) -> Callable[..., Any]:
    """Return a compiled function for A(z) at many points."""

    def many(p: Point, z: Array, responses: Array, order: Order) -> Array:
        return jax.vmap(lambda point, r: probe.at(p, point, r, order))(z, responses)

    return compiled(many, quickly=True)


def responses_at(problem: SpikedProblem, z: float) -> np.ndarray:
    """Return the bulk responses at a real point outside the bulk."""
    responses: np.ndarray = problem.branch.responses(np.array([z]))[:, 0].real
    return responses


def driven_by(
    problem: SpikedProblem, source: Side | Direction, z: float, r: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return right-hand side, overlap rows and Gram matrix for sources along a side's spikes or along a direction."""
    probe, order = problem.probe, read(problem.order)
    run = _driver(probe, source) if source.sited else partial(probe.driven, source, xp=np)
    driven, seen, gram = map(np.asarray, run(problem.p, z, r, order))
    return driven, seen, gram


@lru_cache(maxsize=64)
def _driver(probe: Probe, source: Side | Direction) -> Callable[..., Any]:
    """Return a compiled function for sources at sites that differ, whose averages are integrals."""

    def driven(p: Point, z: Array, r: Array, order: Order) -> Any:
        return probe.driven(source, p, z, r, order)

    return compiled(driven, quickly=True)


TINY = 1e-100
"""Imaginary step of derivatives: its square vanishes beside one, so that they are exact (complex step)."""


def with_slope(problem: SpikedProblem, z: float, responses: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return A(z) and A'(z); `responses` of the bulk at z if already computed."""
    branch = problem.branch
    r = branch.responses(np.array([z]))[:, 0].real if responses is None else responses
    _, by_z, by_r = (x[0].real for x in branch.equations(np.array([z]), r[None]))
    try:
        moved = np.linalg.solve(by_r, -by_z)  # dr/dz by the implicit function theorem
    except np.linalg.LinAlgError:
        raise NumericalError(f"the bulk equations are singular at z = {z:.6g}; try other parameters") from None
    order = read(problem.order)
    if problem.probe.sites is None:
        matrix = problem.probe.a_matrix(problem.p, z + TINY * 1j, r + TINY * 1j * moved, order).array(np)
        return matrix.real.copy(), matrix.imag / TINY
    matrix, slope = _sloped(problem.probe)(problem.p, (z, r), (1.0, moved), order)
    return np.asarray(matrix), np.asarray(slope)


@lru_cache(maxsize=64)
def _sloped(probe: Probe) -> Callable[..., Any]:
    """Return a compiled JVP of an A(z) with integrals, along a direction of z and the bulk responses."""

    def sloped(p: Point, at: tuple[Array, Array], along: tuple[Array, Array], order: Order) -> Any:
        return jax.jvp(lambda z, r: probe.at(p, z, r, order), at, along)

    return compiled(sloped, quickly=True)
