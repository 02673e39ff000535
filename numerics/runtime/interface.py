"""What a generated solver promises: its parts, and what each of them can be asked.

`p` is always a Point: the parameters of the model and its data. `order` holds order parameters: ("C", a, b) and
("R", a, b) are matrices over training times before the last update (and labels), ("M", i) means over those times,
("F", i) means over all times.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .keys import OrderKey, keys_of
from .operators import Operator, operator
from .point import Point, Table, replaced
from .program import AlikeLabels
from .traits import SiteAverage, monomial_at, triangular

Array = Any
Order = Mapping[OrderKey, Array]
Strides = tuple[int, int]
Coefficients = tuple[tuple[Any, ...], ...]
"""Rows of numbers: fractions, or decimals where something is not rational."""
Sites = Callable[[Point, int], tuple[Any, ...]]
"""Laws of what differs from site to site, a density at so many values."""
NODES = 64
"""Values that a density is taken at unless more are asked for."""


@dataclass(frozen=True)
class ParameterOf:
    """A parameter of the declaration; a whole number fixes shapes."""

    name: str
    default: float
    whole: bool


@dataclass(frozen=True)
class DataOf:
    """An array that the user gives: its axes are parameters, numbers, or "times"."""

    name: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class FieldOf:
    """A field that two-time functions may be asked of. labels: the sizes of the axes of its labels, parameters or
    numbers. declared: by the user, or made by the engine. argument: of a random matrix applied to a field, that one."""

    name: str
    sector: str
    timed: bool
    labels: tuple[str, ...]
    declared: bool
    argument: str | None


@dataclass(frozen=True)
class ObservableOf:
    """An observable. first: the first time at which all that it is made of is there."""

    name: str
    first: int


@dataclass(frozen=True)
class Demand:
    """What a ratio of sizes, a variance, a scale or a coefficient must be at the point: "positive", "not negative",
    "finite" or "one". times: where it changes in time, the times at which it is used, which `value` takes too."""

    what: str
    value: Callable[..., Any]
    kind: str
    times: Callable[[Point], range] | None = None


@dataclass(frozen=True)
class Setting:
    """What was declared. steps: the parameter that is the number of steps, if there is one."""

    name: str
    choices: tuple[tuple[str, int | str], ...]
    declaration: str
    """Fingerprint of the declaration."""
    parameters: tuple[ParameterOf, ...]
    data: tuple[DataOf, ...]
    observables: tuple[ObservableOf, ...]
    fields: tuple[FieldOf, ...]
    exact: bool
    """Whether the forward pass is exact, or exact up to integrals that settle; it is sampled otherwise."""
    steps: str | None
    labels: tuple[str, ...]
    """Parameters and numbers that are sizes of axes of labels."""
    endpoint: bool
    """Whether fields are there at time 0 and after the last step, or before it only."""
    probes: tuple[ProbeOf, ...]
    demands: tuple[Demand, ...] = ()
    """What the domains of the parameters alone do not ensure."""


@dataclass(frozen=True)
class ProbeOf:
    """A probed matrix: its label, the modules of A(z) and of its bulk, the observable added to its diagonal, and the
    module of traces of its resolvent with the names of the matrices between, where there are any."""

    label: str
    probe: str
    bulk: str
    plus: str
    traces: str = ""
    between: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cycle:
    """Unknowns that feed each other in a ring: one eigenproblem that does not depend on z.

    pencil(p, order): the matrix whose eigenvalues are the values of the scalar map at the outliers, as an operator.
    reads: the order parameters that it is made of.
    scalar_map(p, z, r): the map, at bulk responses r. inverse(p, s): z, where there is a rational inverse.
    relation(p, s): coefficients in z, highest power first, of the polynomial relation between z and s, if there is one.
    """

    pencil: Callable[[Point, Order], Operator]
    scalar_map: Callable[..., Array]
    relation: Callable[[Point, Array], Array] | None
    inverse: Callable[[Point, Array], Array] | None = None
    reads: tuple[OrderKey, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", keys_of(self.reads))  # generated code writes tuples

    def factors(self, p: Point, order: Order) -> list[Array]:
        """The matrices whose product, from left to right, the matrix is."""
        return [factor.array(jnp) for factor in self.pencil(p, order).factors]


@dataclass(frozen=True)
class Side:
    """The spikes on one side ("right", "left"). spikes(p, order) -> as operators the right-hand side of A(z) q = b for
    sources along them, the rows of q that are its overlaps with them, and their Gram matrix. sited: sites there differ,
    so that it is spikes(p, z, r, order, laws); `Probe.driven` knows."""

    name: str
    spikes: Callable[..., tuple[Operator, Operator, Operator]]
    sited: bool = False


@dataclass(frozen=True)
class Direction:
    """A declared direction on one side of a probed matrix, under the name that it is asked for with.

    labels: the parameter that is the number of its labels. source(p, order) -> the right-hand side of A(z) q = b for
    a source along it, the rows that are its overlaps with it among those of q and of `later` behind them, and the
    matrix with its mean squares on the diagonal. later(p, z, r, order): the equations of the overlaps that A(z) has
    not, one column per unknown of A(z) and of theirs. earlier(p, z, r, order) -> the equations of responses that only
    the source drives, what drives them, and what they add to the right-hand side. None where there are none.
    time(p): when the direction is taken; None for all times before the last update, or where it has none. sited: sites
    there differ, so that it is source(p, z, r, order, laws); where any do, later and earlier take laws last too.
    """

    name: str
    side: str
    field: str
    timed: bool
    labels: tuple[str, ...]
    source: Callable[..., tuple[Operator, Operator, Operator]]
    later: Callable[..., Operator] | None = None
    earlier: Callable[..., tuple[Operator, Operator, Operator]] | None = None
    time: Callable[[Point], Any] | None = None
    sited: bool = False


@dataclass(frozen=True)
class Stopping:
    """How a probed matrix is followed through training: under which names a point has the number of steps, the time at
    which the matrix is taken, and the length of the run. In functions of the matrix the number of steps counts the
    times of order parameters, one more where `ahead`."""

    steps: str
    stop: str
    run: str
    ahead: bool

    def begun(self, p: Point) -> Point:
        """A point of the training level as functions of the matrix take it: after the last step."""
        count = getattr(p, self.steps)
        return replaced(p, **{self.steps: count + int(self.ahead), self.stop: count, self.run: count})

    def trained(self, p: Point) -> Point:
        """The point of the training level that such a point belongs to."""
        return replaced(p, **{self.steps: getattr(p, self.run)})


@dataclass(frozen=True)
class Probe:
    """A(z) of one probed matrix. a_matrix(p, z, r, order): A(z) at bulk responses r, as an operator; where sites do not
    differ, at many points too, with one entry per point in z and in each response.

    reduced: whether the rings have all its zeros. steady: whether the number of steps enters through shapes alone, but
    for what is measured, so that earlier outliers are those of earlier spikes. directions: those that the
    declaration asks about.

    sites(p, nodes): the laws of what differs from site to site, densities at so many values; functions of the responses
    take them last where there are any. `at` and `mapped` put them in.

    measured: parameters of the bulk and of A(z) that the training level gives, and measure(p, order) their values;
    `completed` puts them into a point. stopping: where the matrix can be taken at any time by numbers of a point.
    alike: labels that all unknowns have and that enter through shapes alone, so that A(z) is a direct sum over the
    irreducible representations of their permutations.
    """

    unknowns: tuple[str, ...]
    a_matrix: Callable[..., Operator]
    rings: tuple[Cycle, ...]
    sides: tuple[Side, ...]
    reduced: bool
    steady: bool
    directions: tuple[Direction, ...] = ()
    sites: Sites | None = None
    nodes: int = NODES
    measured: tuple[str, ...] = ()
    measure: Callable[[Point, Order], tuple[Array, ...]] | None = None
    stopping: Stopping | None = None
    alike: AlikeLabels | None = None

    def completed(self, p: Point, order: Order) -> Point:
        """The point with the numbers that the training level gives, after its last step."""
        return self.measured_at(self.begun(p), order)

    def begun(self, p: Point) -> Point:
        """A point of the training level as functions of the matrix take it."""
        return p if self.stopping is None else self.stopping.begun(p)

    def taken_at(self, p: Point, order: Order, steps: str, time: int) -> Point:
        """A completed point as it is for the matrix at an earlier time."""
        name = steps if self.stopping is None else self.stopping.stop
        return self.measured_at(replaced(p, **{name: time}), order)

    def measured_at(self, p: Point, order: Order) -> Point:
        """A completed point with these numbers at other order parameters."""
        if self.measure is None:
            return p
        given = self.measure(p, order)
        return replaced(p, **{name: _plain(x) for name, x in zip(self.measured, given, strict=True)})

    def at(self, p: Point, z: Array, r: Array, order: Order) -> Array:
        """A(z) at bulk responses r."""
        return self.a_matrix(p, z, r, order, *_laws(self.sites, p, self.nodes)).array(jnp)

    def driven(self, one: Side | Direction, p: Point, z: Array, r: Array, order: Order) -> tuple[Array, ...]:
        """What sources along the spikes of a side, or along a direction, drive; and what sees them."""
        source = one.spikes if isinstance(one, Side) else one.source
        made = source(p, z, r, order, *self.laws(p)) if one.sited else source(p, order)
        return tuple(operator(part).array(jnp) for part in made)

    def laws(self, p: Point) -> tuple[Any, ...]:
        """What functions of z and the responses take last."""
        return _laws(self.sites, p, self.nodes)

    def mapped(self, ring: Cycle, p: Point, z: Array, r: Array) -> Array:
        """The scalar map of a ring at bulk responses r."""
        return ring.scalar_map(p, z, r, *_laws(self.sites, p, self.nodes))


@dataclass(frozen=True)
class Spread:
    """Training fields of a site that stand on diagonals, as combinations of independent standard normal numbers.

    covariances(p, order): rows of the lower triangle. lower, inverse: under which names a point has the triangular
    root of them, and its inverse, which is zero in directions in which the fields do not vary. steady: whether the
    fields have no times.
    """

    lower: tuple[tuple[str, ...], ...]
    inverse: tuple[tuple[str, ...], ...]
    covariances: Callable[[Point, Order], Any]
    steady: bool

    def at(self, p: Point, order: Order) -> Point:
        """The point with these numbers."""
        lower, inverse = triangular([[float(x) for x in row] for row in self.covariances(p, order)])
        found = {}
        for names, numbers in ((self.lower, lower), (self.inverse, inverse)):
            found.update({name: float(numbers[a, b]) for a, row in enumerate(names) for b, name in enumerate(row)})
        return replaced(p, **found)


@dataclass(frozen=True)
class SampledSites:
    """What stands on diagonals at the sites of a sector, where its law is sampled. law: under which name a point has
    its values and shares; key: under which order parameters have them. steady: whether it has no times. known: whether
    it is made of traits, so that the bulk has their law and only A(z) this one."""

    law: str
    key: OrderKey
    steady: bool
    known: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", OrderKey(*self.key))  # generated code writes a tuple

    def at(self, p: Point, order: Order) -> Point:
        """The point with these numbers; without them where there are none and the bulk needs none."""
        if self.known and self.key not in order:
            return p
        return replaced(p, **{self.law: Table(np.asarray(order[self.key], float))})


@dataclass(frozen=True, eq=False)
class CoefficientTable:
    """Rows of coefficients that are polynomials in some variables, as data.

    variables(p): numbers. rows: for each coefficient lines with its terms, a number and the power of each variable.
    """

    variables: Callable[..., tuple[Array, ...]]
    rows: tuple[tuple[tuple[str, ...], ...], ...]

    @cached_property
    def _terms(self) -> list[list[list[tuple[int | Fraction, tuple[int, ...]]]]]:
        return [
            [[_term(word) for line in entry for word in line.split(",") if word] for entry in row] for row in self.rows
        ]

    def at(self, p: Point, *given: Any) -> Coefficients:
        """The coefficients at a point: exact if its numbers are fractions and the variables rational in them."""
        return self.of(self.variables(p, *given))

    def of(self, values: Sequence[Any]) -> Coefficients:
        """The coefficients at values of the variables: exact if these are fractions."""
        most = [
            max((powers[k] for row in self._terms for e in row for _, powers in e), default=0)
            for k in range(len(values))
        ]
        powers_of = [
            list(itertools.accumulate([value] * top, mul, initial=1)) for value, top in zip(values, most, strict=True)
        ]

        def number(entry: list[tuple[int | Fraction, tuple[int, ...]]]) -> Any:
            return sum(
                (
                    math.prod([some[k] for some, k in zip(powers_of, powers, strict=True) if k], start=c)
                    for c, powers in entry
                ),
                start=0,
            )

        return tuple(tuple(map(number, row)) for row in self._terms)


def _term(word: str) -> tuple[int | Fraction, tuple[int, ...]]:
    number, *powers = word.split()
    whole, _, divisor = number.partition("/")
    return Fraction(int(whole, 0), int(divisor, 0)) if divisor else int(whole, 0), tuple(map(int, powers))


@dataclass(frozen=True)
class BulkLaw:
    """The bulk of one probed matrix. responses: names of the unknowns, in the order of the array r; resolvent: the
    place of the resolvent among them.

    polynomials(p): for each equation, zero at the bulk responses, its terms, as products of names, "z", responses and
    averages, "1" for none, and what multiplies them. averages(p, laws): the averages "average0", "average1", ... over
    sites in the equations, where sites differ. curve: table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the
    resolvent, and edge_polynomials: polynomials in z, highest power first, that have the edges among their real roots;
    both exact if numbers are fractions, and None where the responses could not be eliminated. curve_text: the curve as
    text, with {z} for z.

    coefficients(p): those that weights have gained by their updates, where these have no closed form; all functions of
    the bulk take them last where there are any. Found once they are numbers like parameters, so that a curve is as
    exact in them.

    sites(p, nodes): the laws of what differs from site to site, which the equations take behind the responses;
    densities: those among them that are densities, so that the number of their values matters, by kind ("trait" or
    "field") and as text. spreads: what the laws need of the training level.

    images: by the name of a matrix A the place of tr R A among the responses. sources(p, z, r): for each of them how
    the equations change with epsilon in M + epsilon A. vanishing: places of responses that are zero at epsilon = 0, and
    slopes(p, z, r): how the equations change with each. All for traces of the resolvent only.
    """

    responses: tuple[str, ...]
    resolvent: int
    polynomials: Callable[..., tuple[tuple[tuple[str, Array], ...], ...]]
    averages: Callable[..., tuple[SiteAverage, ...]] | None = None
    curve_text: str | None = None
    curve: CoefficientTable | None = None
    edge_polynomials: CoefficientTable | None = None
    coefficients: Callable[[Point], tuple[Array, ...]] | None = None
    sites: Sites | None = None
    densities: tuple[tuple[str, str], ...] = ()
    nodes: int = NODES
    spreads: tuple[Spread | SampledSites, ...] = ()
    images: tuple[tuple[str, int], ...] = ()
    sources: Callable[..., tuple[tuple[Array, ...], ...]] | None = None
    vanishing: tuple[int, ...] = ()
    slopes: Callable[..., tuple[tuple[Array, ...], ...]] | None = None

    @property
    def eliminated(self) -> bool:
        return self.curve is not None

    @property
    def settles(self) -> bool:
        """Whether a density is among the laws of sites."""
        return bool(self.densities)

    @property
    def sampled(self) -> bool:
        """Whether the law of what differs from site to site is sampled, so that the bulk has an error."""
        return any(isinstance(one, SampledSites) and not one.known for one in self.spreads)

    @property
    def moves(self) -> bool:
        """Whether the bulk takes numbers of the training level."""
        return any(not (isinstance(one, SampledSites) and one.known) for one in self.spreads)

    def residual(self, p: Point, z: Array, r: Array) -> tuple[Array, ...]:
        """One number per equation, zero at the bulk responses."""
        variables = dict(zip(("z", *self.responses), (z, *r), strict=True))
        given = self.updated(p)
        if self.averages is not None and self.sites is not None:
            averages = self.averages(p, self.sites(p, self.nodes), *given)
            variables |= {f"average{k}": average.at(variables) for k, average in enumerate(averages)}
        return tuple(
            sum(coefficient * monomial_at(name, variables) for name, coefficient in terms)
            for terms in self.polynomials(p, *given)
        )

    def updated(self, p: Point) -> tuple[tuple[Array, ...], ...]:
        """What functions of the bulk take last."""
        return () if self.coefficients is None else (self.coefficients(p),)


def _plain(number: Array) -> Array:
    """A number as Python has it, so that points with equal ones are equal; a traced one stays."""
    return number if isinstance(number, jax.core.Tracer) else float(number)


def _laws(sites: Sites | None, p: Point, nodes: int) -> tuple[Any, ...]:
    return () if sites is None else (sites(p, nodes),)


@dataclass(frozen=True)
class FiniteSize:
    """The declaration at finite size. simulate(p, size, rng, ...): one sample. sectors(p, size): sizes before they are
    rounded. numbers(p, size): roughly how many numbers a sample holds at once."""

    simulate: Callable[..., tuple[dict[str, Array], dict[str, Any], dict[str, Array]]]
    sectors: Callable[[Point, int], dict[str, float]]
    numbers: Callable[[Point, int], float]
