"""Records of a generated training level: its vectors, random matrices and recorded numbers, and one function per phase.

`start(p, x)` computes vectors without time, `step(p, x, t)` all fields at one time, `order(p, x)` the order parameters
that probed matrices need. `p` is a Point; `x` is the closure, which represents vectors over sites and averages over
them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .point import Point

if TYPE_CHECKING:
    from .gaussian import GaussianFunction

Array = Any
Key = tuple[str, str, str] | tuple[str, int] | tuple[str, str] | tuple[str, str, str, str]
Axes = tuple[str, ...]
"""Sizes of axes of labels: names of parameters, or numbers."""
Wanted = tuple[tuple[str, str, str], ...]
"""Two-time functions that are asked for: ("C", a, b) and ("R", a, b)."""


def size_of(p: Point, axes: Axes) -> int:
    """Return the number of labels along some axes."""
    return math.prod(sizes_of(p, axes))


def sizes_of(p: Point, axes: Axes) -> tuple[int, ...]:
    """Return the sizes of some axes."""
    return tuple(int(axis) if axis.isdigit() else int(getattr(p, axis)) for axis in axes)


@dataclass(frozen=True)
class Vector:
    """A vector over the sites of a sector.

    Attributes:
        role: "field" has an equation, "product" is a random matrix times a field, "normal" is Gaussian with standard
            deviation scale(p) (one if None), "constant" is one at all sites, "law" is a nonlinear law.
        past: whether its values at all earlier times are needed.
        idle: whether no result depends on it.
        lags: number of single earlier values that are needed.
        spans: where sites are sampled, the bases in which it has coordinates.
        home: the basis that holds its past.
        multiple_of: the field that it is proportional to at each time.
        group: vectors of one group share their sites.
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
    """The memory term R[a, noise] acting on a field. fresh: the matrix is redrawn, so that only equal times enter. lag:
    steps after which a first responds to the noise."""

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
    """A random matrix times a field. matrix: the name of the matrix, with the suffix "T" for its transpose."""

    name: str
    matrix: str
    argument: str
    memories: tuple[Memory, ...] = ()
    covariances: tuple[Covariance, ...] = ()
    strength: Callable[[Point], Array] | None = None
    """The standard deviation of its noise for an argument of norm one, where sites are sampled."""


@dataclass(frozen=True)
class SpanOf:
    """Vectors that share an orthonormal basis over the sites. fresh: the basis restarts at every time."""

    name: str
    vectors: tuple[str, ...]
    fresh: bool = False


@dataclass(frozen=True)
class Channel:
    """A random matrix, or its transpose, with sampled noises: its arguments, their basis, and the products. fresh: it
    is redrawn at every time."""

    name: str
    span: str
    arguments: tuple[str, ...]
    products: tuple[str, ...]
    fresh: bool = False


@dataclass(frozen=True)
class SitesOf:
    """Diagonal entries of the sites of a sector.

    Attributes:
        values: vectors and traits that the entries are functions of, with the times of the former.
        entries(*values): the diagonal entries.
        reach: parameter that holds the range of the entries; None where traits determine it.
        known: whether the entries are functions of traits with finitely many values.
        laws(p): the laws of these traits.
    """

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
    """The law of a trait of a sector. law(p, nodes): values and weights, a density at this many nodes."""

    name: str
    sector: str
    law: Callable[[Point, int], Any]
    discrete: bool = True
    draw: Callable[..., Array] | None = None
    """draw(p, normals, number): its values at sites, from one of their normals."""


@dataclass(frozen=True)
class Recorded:
    """A number that is recorded at every time, or once."""

    key: str
    axes: Axes = ()
    timed: bool = True


@dataclass(frozen=True)
class Integrand:
    """A nonlinear law of Gaussian arguments.

    Attributes:
        numbers: how many further numbers it takes.
        traits: traits of its sites that it takes last.
        holds: first time at which the law applies, and the first after; None for no end.
    """

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
    """Axes of labels whose permutations are a symmetry of the training level. components: number of irreducible
    components of a labelled vector, one with sign symmetry, else two."""

    axes: Axes
    components: int


class _Nothing:
    """A closure without numbers that reveals which order parameters exist."""

    def __getattr__(self, name: str) -> Callable[..., float]:
        return lambda *_: 0.0


@dataclass(frozen=True, eq=False)
class Training:
    """The training level.

    Attributes:
        closure: "exact", "quadrature" or "sampled".
        times(p): number of times of fields.
        before(p): number of times of order parameters.
        observables, means: numbers that `step` records.
        laws(p), meetings: nonlinear laws by name, and pairs of them whose correlations are needed.
        carried: for each field the laws that it contains.
        refused: two-time functions that are not available, and why; ("R", "", b) is the response of any field to b.
    """

    closure: str
    times: Callable[[Point], int]
    before: Callable[[Point], int]
    vectors: tuple[Vector, ...]
    products: tuple[MatrixProduct, ...]
    observables: tuple[Recorded, ...]
    step: Callable[..., None] | None
    order: Callable[..., Mapping[Key, Array]]
    start: Callable[..., None] | None = None
    tables: Callable[[Point], tuple[Array, ...]] | None = None
    traits: tuple[TraitLaw, ...] = ()
    means: tuple[Recorded, ...] = ()
    kept: tuple[str, ...] = ()
    overlaps: tuple[tuple[str, str], ...] = ()
    """Vectors a and b for which C[a, b] of the time before with all times is needed at every time."""
    laws: Callable[[Point], Mapping[str, Integrand]] | None = None
    meetings: tuple[Meeting, ...] = ()
    carried: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spans: tuple[SpanOf, ...] = ()
    channels: tuple[Channel, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    """By group of vectors that share their sites, the channels and drawn vectors among them."""
    lags: tuple[tuple[str, str, int], ...] = ()
    """How many steps after a noise a vector first responds to it."""
    links: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By vector those that enter its equation on the same site, and after how many steps."""
    sites: tuple[SitesOf, ...] = ()
    paired: bool = False
    """Whether sites are drawn in pairs that differ by a sign."""
    responses: str = "stein"
    """How responses are estimated: "stein" or "pathwise"."""
    refused: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """Two-time functions that there are not, and why."""
    alike: AlikeLabels | None = None
    """Labels whose permutations leave everything as it is, where there are any."""
    jumps: bool = False
    """Whether some law jumps, so that its derivative does not tell how it changes."""

    def refusal(self, name: tuple[str, str, str]) -> str:
        """Return why a two-time function is not available; empty if it is."""
        if self.jumps and name[0] == "R":
            return (
                "a law jumps, and its derivative does not tell how it changes: responses to a source are not followed"
            )
        kind, _, b = name
        return self.refused.get(name, self.refused.get((kind, "", b), ""))

    @property
    def densities(self) -> bool:
        """Whether a trait has a density, which needs quadrature nodes."""
        return any(not trait.discrete for trait in self.traits)

    def strides(self, p: Point) -> dict[Key, tuple[int, ...]]:
        """Entries per time step along each axis of the order parameters; 0 along an axis without time."""
        timed = {vector.name: size_of(p, vector.axes) for vector in self.vectors if vector.timed}
        strides: dict[Key, tuple[int, ...]] = {}
        for key in self.order(p, _Nothing()):
            if key[0] in ("C", "R"):
                strides[key] = tuple(timed.get(str(name), 0) for name in key[1:])
            elif key[0] == "S":
                strides[key] = (0, 0)
            elif key[0] == "W":
                strides[key] = (0, *(timed.get(str(end).split(" ", 1)[1], 0) for end in key[2:]))
        return strides

    def delays(self, name: str) -> tuple[tuple[str, int], ...]:
        """Return the vectors that respond to an impulse in the equation of one, with their smallest delays."""
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
