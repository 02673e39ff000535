"""The components of a generated training level: its vectors, random matrices and records, and one function per phase.

`start(p, x)` computes what does not depend on time, `step(p, x, t)` all fields of one time, `order(p, x)` the order
parameters that probed matrices need. `p` is a Point; `x` is the closure, which represents vectors over sites and
averages over them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .keys import OrderKey, keyed
from .point import Point

if TYPE_CHECKING:
    from .gaussian import GaussianFunction

Array = Any
Axes = tuple[str, ...]
"""Sizes of label axes: names of parameters, or numbers."""
Wanted = tuple[OrderKey, ...]
"""Requested two-time functions: C[a,b] and R[a,b]."""


def size_of(p: Point, axes: Axes) -> int:
    """Return the number of labels along some axes."""
    return math.prod(sizes_of(p, axes))


def sizes_of(p: Point, axes: Axes) -> tuple[int, ...]:
    """Return the sizes of some axes."""
    return tuple(int(axis) if axis.isdigit() else int(getattr(p, axis)) for axis in axes)


@dataclass(frozen=True)
class Vector:
    """A vector over the sites of a sector.

    role: "field" has an equation, "product" is a random matrix times a field, "normal" is drawn with the standard
        deviation scale(p), one if that is None, "constant" is one at all sites, and "law" is a nonlinear law.
    past: whether its values at all earlier times are needed. idle: whether no result depends on it.
    lags: the number of earlier values needed at single times, in addition to any past.

    In sampled passes, spans: the spans in which it has coordinates; home: the span that stores its past.
    multiple_of: the field of which it is a multiple at each time. group: vectors of one group share their sites.
    """

    name: str
    sector: str
    axes: Axes = ()
    timed: bool = True
    role: str = "field"
    past: bool = False
    idle: bool = False
    scale: Callable[[Point], Array] | None = None
    lags: int = 0
    spans: tuple[str, ...] = ()
    home: str = ""
    multiple_of: str = ""
    group: int = 0


@dataclass(frozen=True)
class Memory:
    """R[a, noise] that acts on a field. fresh: at equal times only, because the matrix is drawn anew. lag: the delay
    with which a first responds to the noise."""

    a: str
    noise: str
    on: str
    fresh: bool = False
    lag: int = 0


@dataclass(frozen=True)
class Covariance:
    """The covariance of a noise with another: C[a, b]."""

    right: str
    a: str
    b: str
    fresh: bool = False


@dataclass(frozen=True)
class MatrixProduct:
    """A random matrix times a field, by the name of the product. matrix: the name of the matrix, followed by "T" if it
    is transposed."""

    name: str
    matrix: str
    argument: str
    memories: tuple[Memory, ...] = ()
    covariances: tuple[Covariance, ...] = ()
    strength: Callable[[Point], Array] | None = None
    """In sampled passes, the standard deviation of its noise for an argument of norm one."""


@dataclass(frozen=True)
class SpanOf:
    """Vectors that share an orthonormal basis over the sites. fresh: it restarts at every time."""

    name: str
    vectors: tuple[str, ...]
    fresh: bool = False


@dataclass(frozen=True)
class Channel:
    """A random matrix, or its transpose, whose noises are sampled: its arguments, their span, and the products. fresh:
    it is drawn anew at every time."""

    name: str
    span: str
    arguments: tuple[str, ...]
    products: tuple[str, ...]
    fresh: bool = False


@dataclass(frozen=True)
class SitesOf:
    """Diagonal entries at the sites of a sector. values: the vectors and traits on which entries depend, and the times
    of timed ones; entries(*values). reach: the parameter with the bounds of the entries; None if traits determine them.
    known: whether it is a function of traits with a list of values. laws(p): the laws of these traits."""

    sector: str
    values: tuple[str, ...]
    times: Callable[[Point], tuple[Any, ...]]
    entries: Callable[..., tuple[Array, ...]]
    count: int
    reach: str | None = None
    known: bool = False
    laws: Callable[[Point], tuple[Any, ...]] | None = None


@dataclass(frozen=True)
class TraitLaw:
    """The law of a trait of the sites of a sector. law(p, nodes): a density is discretised at this number of nodes."""

    name: str
    sector: str
    law: Callable[[Point, int], Any]
    discrete: bool = True
    draw: Callable[..., Array] | None = None
    """draw(p, normals, number): its values at sites, from one of their normals."""


@dataclass(frozen=True)
class Recorded:
    """A number recorded at every time, or once."""

    key: str
    axes: Axes = ()
    timed: bool = True


@dataclass(frozen=True)
class Integrand:
    """A nonlinear law of Gaussian arguments: its functions, and its arguments. numbers: how many numbers follow them.
    traits: the traits of its sites, as last arguments. holds: the half-open range of times in which the law applies;
    its end is None if it is unbounded."""

    law: GaussianFunction
    arguments: tuple[str, ...]
    numbers: int = 0
    traits: tuple[str, ...] = ()
    holds: tuple[int, int | None] = (0, None)


@dataclass(frozen=True)
class Meeting:
    """Two laws whose correlations are needed. together: at equal times only."""

    a: str
    b: str
    together: bool = False


@dataclass(frozen=True)
class AlikeLabels:
    """Labels along some axes whose permutations leave the training level invariant. components: the number of
    irreducible representations in the labels of a vector, one if signs may also be changed label by label, otherwise
    two."""

    axes: Axes
    components: int


class _Nothing:
    """A closure that computes nothing and records which order parameters are requested."""

    def __getattr__(self, name: str) -> Callable[..., float]:
        return lambda *_: 0.0


@dataclass(frozen=True, eq=False)
class Training:
    """The training level. closure: "exact", "quadrature" or "sampled". times(p): the number of times of fields;
    before(p): the number of times of order parameters. observables and means: the numbers that `step` records.

    laws(p), meetings: nonlinear laws by name, and the pairs of them whose correlations are needed. carried: for each
    field, the laws that it contains. refused: unavailable two-time functions, with reasons; ("R", "", b) is the
    response of any field to b.
    """

    closure: str
    times: Callable[[Point], int]
    before: Callable[[Point], int]
    vectors: tuple[Vector, ...]
    products: tuple[MatrixProduct, ...]
    observables: tuple[Recorded, ...]
    step: Callable[..., None] | None
    order: Callable[..., Mapping[tuple[Any, ...], Array]]
    start: Callable[..., None] | None = None
    tables: Callable[[Point], tuple[Array, ...]] | None = None
    traits: tuple[TraitLaw, ...] = ()
    means: tuple[Recorded, ...] = ()
    kept: tuple[str, ...] = ()
    overlaps: tuple[tuple[str, str], ...] = ()
    """Vectors a and b for which C[a, b] between the previous time and all times is needed at every time."""
    laws: Callable[[Point], Mapping[str, Integrand]] | None = None
    meetings: tuple[Meeting, ...] = ()
    carried: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spans: tuple[SpanOf, ...] = ()
    channels: tuple[Channel, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    """By group of vectors that share their sites, the channels and drawn vectors among them."""
    lags: tuple[tuple[str, str, int], ...] = ()
    """The delay with which a vector first responds to a noise."""
    links: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By vector those in its equation on the same site, with their delays."""
    sites: tuple[SitesOf, ...] = ()
    paired: bool = False
    """Whether sites are drawn in pairs of opposite sign."""
    responses: str = "stein"
    """How responses are estimated: "stein" or "pathwise"."""
    refused: Mapping[tuple[Any, ...], str] = field(default_factory=dict)
    """Unavailable two-time functions, with reasons."""
    alike: AlikeLabels | None = None
    """Labels whose permutations leave the training level invariant, if any."""
    jumps: bool = False
    """Whether some law jumps, so that its derivative misses the jumps."""

    def order_parameters(self, p: Point, x: Any) -> dict[OrderKey, Array]:
        """The order parameters that probed matrices need, in a closure."""
        return keyed(self.order(p, x))

    def refusal(self, name: OrderKey) -> str:
        """Return why a two-time function is unavailable; empty if it is available."""
        if self.jumps and name.kind == "R":
            return "a law jumps, so its derivative does not describe its change: responses to a source are not computed"
        _, b = name.of
        return self.refused.get((name.kind, *name.of), self.refused.get((name.kind, "", b), ""))

    @property
    def densities(self) -> bool:
        """Whether traits have densities, which are discretised at a number of nodes."""
        return any(not trait.discrete for trait in self.traits)

    def strides(self, p: Point) -> dict[OrderKey, tuple[int, ...]]:
        """Entries per time step along each axis of the order parameters; 0 along an axis without time."""
        return self._by_axis(p, {vector.name: size_of(p, vector.axes) for vector in self.vectors if vector.timed}, 0)

    def extents(self, p: Point, steps: int) -> dict[OrderKey, tuple[int, ...]]:
        """Return the shapes of the order parameters after a number of steps."""
        lengths = {v.name: size_of(p, v.axes) * (steps if v.timed else 1) for v in self.vectors}
        return self._by_axis(p, lengths, 1)

    def _by_axis(self, p: Point, of_vector: Mapping[str, int], alone: int) -> dict[OrderKey, tuple[int, ...]]:
        """Return one number for each axis of each order parameter: the number of its vector, or `alone` if the axis has
        none.
        """
        found: dict[OrderKey, tuple[int, ...]] = {}
        for key in self.order_parameters(p, _Nothing()):
            if key.kind in ("C", "R"):
                found[key] = tuple(of_vector.get(str(name), alone) for name in key.of)
            elif key.kind == "S":
                found[key] = (alone, alone)
            elif key.kind == "W":
                found[key] = (alone, *(of_vector.get(str(end).split(" ", 1)[1], alone) for end in key.of[1:]))
        return found

    def delays(self, name: str) -> tuple[tuple[str, int], ...]:
        """Return the vectors that respond to a source in the equation of a vector, with the delays of their first
        responses.
        """
        onward: dict[str, list[tuple[str, int]]] = {}
        for target, sources in self.links.items():
            for source, lag in sources.items():
                onward.setdefault(source, []).append((target, lag))
        reached: dict[str, int] = {}
        waiting = [(0, name)]
        while waiting:
            delay, here = heapq.heappop(waiting)
            if here not in reached:
                reached[here] = delay
                for target, lag in onward.get(here, ()):
                    heapq.heappush(waiting, (delay + lag, target))
        return tuple(reached.items())
