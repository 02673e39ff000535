"""Interface of a generated solver: its parts, and the functions that each provides.

`p` is a Point with the parameters and data of the model. `order` contains order parameters: ("C", a, b) and ("R", a, b)
are matrices over training times before the last update (and labels), ("M", i) means over those times, ("F", i) means
over all times.
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
"""Rows of numbers: fractions, or decimals if something is not rational."""
Sites = Callable[[Point, int], tuple[Any, ...]]
"""Laws of the values that differ from site to site, with densities discretised at a number of nodes."""
NODES = 64
"""Default number of nodes of a density."""


@dataclass(frozen=True)
class ParameterOf:
    """A parameter of the declaration; integers determine shapes."""

    name: str
    default: float
    whole: bool


@dataclass(frozen=True)
class DataOf:
    """A user's array; its axes are parameters, numbers, or "times"."""

    name: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class FieldOf:
    """A field that may occur in two-time functions.

    Attributes:
        labels: sizes of the axes of its labels, parameters or numbers.
        declared: whether the user declared it.
        argument: for a random matrix times a field, that field.
    """

    name: str
    sector: str
    timed: bool
    labels: tuple[str, ...]
    declared: bool
    argument: str | None


@dataclass(frozen=True)
class ObservableOf:
    """An observable. first: the first time at which all of its fields are defined."""

    name: str
    first: int


@dataclass(frozen=True)
class Demand:
    """A condition on a ratio of sizes, a variance, a scale or a coefficient: "positive", "not negative", "finite" or
    "one". times: for a time-dependent quantity, the times at which it is used; `value` then takes a time, too.
    """

    what: str
    value: Callable[..., Any]
    kind: str
    times: Callable[[Point], range] | None = None


@dataclass(frozen=True)
class Setting:
    """The declaration of a model. steps: the parameter that counts the steps, if there is one."""

    name: str
    choices: tuple[tuple[str, int | str], ...]
    declaration: str
    """Fingerprint of the declaration."""
    parameters: tuple[ParameterOf, ...]
    data: tuple[DataOf, ...]
    observables: tuple[ObservableOf, ...]
    fields: tuple[FieldOf, ...]
    exact: bool
    """Whether the forward pass is exact, or exact up to convergent integrals; otherwise it is sampled."""
    steps: str | None
    labels: tuple[str, ...]
    """Parameters and numbers that are sizes of label axes."""
    endpoint: bool
    """Whether fields are defined both at time 0 and after the last step, or only before it."""
    probes: tuple[ProbeOf, ...]
    demands: tuple[Demand, ...] = ()
    """Conditions that the domains of the parameters alone do not ensure."""


@dataclass(frozen=True)
class ProbeOf:
    """A probed matrix: its label, the modules of A(z) and of its bulk, the observable added to its diagonal, and the
    module of traces of its resolvent with the names of the matrices in the traces, if any."""

    label: str
    probe: str
    bulk: str
    plus: str
    traces: str = ""
    between: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cycle:
    """A cycle of unknowns of A(z), reduced to one eigenproblem independent of z.

    Attributes:
        pencil(p, order): operator whose eigenvalues are the values of the scalar map s(z) at outliers.
        reads: the order parameters on which it depends. scalar_map(p, z, r): s(z) at bulk responses r. inverse(p, s):
        z(s), if it is rational. relation(p, s): coefficients in z, highest power first, of the polynomial relation
        between z and s, if there is one.
    """

    pencil: Callable[[Point, Order], Operator]
    scalar_map: Callable[..., Array]
    relation: Callable[[Point, Array], Array] | None
    inverse: Callable[[Point, Array], Array] | None = None
    reads: tuple[OrderKey, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", keys_of(self.reads))  # generated code writes tuples

    def factors(self, p: Point, order: Order) -> list[Array]:
        """Return the operators whose product, from left to right, is the pencil."""
        return [factor.array(jnp) for factor in self.pencil(p, order).factors]


@dataclass(frozen=True)
class Side:
    """The spikes on one side ("right", "left").

    spikes(p, order) returns, as operators, the right-hand side of A(z) q = b for sources along the spikes, the rows of
    q that are overlaps with them, and their Gram matrix. sited: whether sites there differ, in which case it is
    spikes(p, z, r, order, laws); `Probe.driven` calls either.
    """

    name: str
    spikes: Callable[..., tuple[Operator, Operator, Operator]]
    sited: bool = False


@dataclass(frozen=True)
class Direction:
    """A declared direction on one side of a probed matrix, by name.

    Attributes:
        labels: the parameter that counts its labels. source(p, order): the right-hand side of A(z) q = b for a source
        along it, the rows of its overlaps among those of q and of `later`, and the diagonal matrix of its mean squares.
        later(p, z, r, order): equations of overlaps that are not unknowns of A(z), one column per unknown of A(z) and
        of theirs; None without any. earlier(p, z, r, order): equations of responses that only the source drives, their
        right-hand side, and their contribution to that of A(z); None without any. time(p): time at which the direction
        is taken; None for all times before the last update, or for a constant.
        sited: whether sites there differ, in which case it is source(p, z, r, order, laws); later and earlier then also
            take laws as their last argument.
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
    """How a probed matrix is evaluated during training: the names, in a point, of the number of steps, of the time of
    the matrix, and of the length of the run. For functions of the matrix the number of steps counts the times of order
    parameters, one more if `ahead`."""

    steps: str
    stop: str
    run: str
    ahead: bool

    def begun(self, p: Point) -> Point:
        """Return the point for functions of the matrix after the last step."""
        count = getattr(p, self.steps)
        return replaced(p, **{self.steps: count + int(self.ahead), self.stop: count, self.run: count})

    def trained(self, p: Point) -> Point:
        """Return the point of the training level that belongs to a point of the matrix."""
        return replaced(p, **{self.steps: getattr(p, self.run)})


@dataclass(frozen=True)
class Probe:
    """A(z) of one probed matrix.

    a_matrix(p, z, r, order) returns A(z) at bulk responses r, as an operator; if sites are equivalent, also at many
    points, with one entry per point in z and in each response.

    Attributes:
        reduced: whether the cycles contain all zeros of det A(z).
        steady: whether the number of steps enters through shapes alone, so that outliers at earlier times are those of
            earlier spikes.
        directions: declared directions.
        sites(p, nodes): laws of diagonal entries, densities at this many nodes; functions of the responses take them
        last. `at` and `mapped` supply them. measured, measure(p, order): parameters of the bulk and of A(z) computed by
        the training level, and their values; `completed` inserts them into a point.
        stopping: set if the matrix can be taken at any time.
        alike: labels of all unknowns whose permutations are a symmetry, so that A(z) is a direct sum over irreducible
            representations.
    """

    unknowns: tuple[str, ...]
    a_matrix: Callable[..., Operator]
    cycles: tuple[Cycle, ...]
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
        """Return the point with the values computed by the training level after its last step."""
        return self.measured_at(self.begun(p), order)

    def begun(self, p: Point) -> Point:
        """Return the point for functions of the matrix."""
        return p if self.stopping is None else self.stopping.begun(p)

    def taken_at(self, p: Point, order: Order, steps: str, time: int) -> Point:
        """Return a completed point for the matrix at an earlier time."""
        name = steps if self.stopping is None else self.stopping.stop
        return self.measured_at(replaced(p, **{name: time}), order)

    def measured_at(self, p: Point, order: Order) -> Point:
        """Return a completed point with its measured numbers at other order parameters."""
        if self.measure is None:
            return p
        numbers = self.measure(p, order)
        return replaced(p, **{name: _plain(x) for name, x in zip(self.measured, numbers, strict=True)})

    def at(self, p: Point, z: Array, r: Array, order: Order) -> Array:
        """Return A(z) at bulk responses r."""
        return self.a_matrix(p, z, r, order, *_laws(self.sites, p, self.nodes)).array(jnp)

    def driven(
        self, one: Side | Direction, p: Point, z: Array, r: Array, order: Order, xp: Any = jnp
    ) -> tuple[Array, ...]:
        """Return right-hand side, overlap rows and Gram matrix for sources along the spikes of a side, or along a
        direction, as arrays of the module xp."""
        source = one.spikes if isinstance(one, Side) else one.source
        parts = source(p, z, r, order, *self.laws(p)) if one.sited else source(p, order)
        return tuple(operator(part).array(xp) for part in parts)

    def laws(self, p: Point) -> tuple[Any, ...]:
        """Return the laws of sites that functions of z and the responses take last."""
        return _laws(self.sites, p, self.nodes)

    def mapped(self, cycle: Cycle, p: Point, z: Array, r: Array) -> Array:
        """Return the scalar map of a cycle at bulk responses r."""
        return cycle.scalar_map(p, z, r, *_laws(self.sites, p, self.nodes))


@dataclass(frozen=True)
class Spread:
    """Training fields on a diagonal, as linear combinations of independent standard normals.

    Attributes:
        covariances(p, order): rows of the lower triangle of their covariance.
        lower, inverse: the names, in a point, of the Cholesky factor and of its pseudo-inverse.
        steady: whether the fields do not depend on time.
    """

    lower: tuple[tuple[str, ...], ...]
    inverse: tuple[tuple[str, ...], ...]
    covariances: Callable[[Point, Order], Any]
    steady: bool

    def at(self, p: Point, order: Order) -> Point:
        """Return the point with the Cholesky factor and its inverse."""
        lower, inverse = triangular([[float(x) for x in row] for row in self.covariances(p, order)])
        factors = {}
        for names, numbers in ((self.lower, lower), (self.inverse, inverse)):
            factors.update({name: float(numbers[a, b]) for a, row in enumerate(names) for b, name in enumerate(row)})
        return replaced(p, **factors)


@dataclass(frozen=True)
class SampledSites:
    """Diagonal entries of the sites of a sector with a sampled law.

    Attributes:
        law: the name, in a point, of the values and weights of the law.
        key: key of the law among order parameters.
        steady: whether the law does not depend on time.
        known: whether the entries are functions of traits, so that the bulk uses their exact law and only A(z) the
            sampled one.
    """

    law: str
    key: OrderKey
    steady: bool
    known: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", OrderKey(*self.key))  # generated code writes a tuple

    def at(self, p: Point, order: Order) -> Point:
        """Return the point with the sampled law; unchanged if there is none or the bulk needs none."""
        if self.known and self.key not in order:
            return p
        return replaced(p, **{self.law: Table(np.asarray(order[self.key], float))})


@dataclass(frozen=True, eq=False)
class CoefficientTable:
    """Coefficients that are polynomials in some variables, as data.

    variables(p): values of the variables. rows: for each coefficient its monomials, a number and the exponent of each
    variable.
    """

    variables: Callable[..., tuple[Array, ...]]
    rows: tuple[tuple[tuple[str, ...], ...], ...]

    @cached_property
    def _terms(self) -> list[list[list[tuple[int | Fraction, tuple[int, ...]]]]]:
        """Return the monomials of each coefficient."""
        return [
            [[_term(word) for line in entry for word in line.split(",") if word] for entry in row] for row in self.rows
        ]

    def at(self, p: Point, *given: Any) -> Coefficients:
        """Return the coefficients at a point: exact if its numbers are fractions and the variables rational in them."""
        return self.of(self.variables(p, *given))

    def of(self, values: Sequence[Any]) -> Coefficients:
        """Return the coefficients at values of the variables: exact if these are fractions."""
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
                    math.prod([table[k] for table, k in zip(powers_of, powers, strict=True) if k], start=c)
                    for c, powers in entry
                ),
                start=0,
            )

        return tuple(tuple(map(number, row)) for row in self._terms)


def _term(word: str) -> tuple[int | Fraction, tuple[int, ...]]:
    """Parse a monomial: its coefficient and its exponents."""
    number, *powers = word.split()
    whole, _, divisor = number.partition("/")
    return Fraction(int(whole, 0), int(divisor, 0)) if divisor else int(whole, 0), tuple(map(int, powers))


@dataclass(frozen=True)
class BulkLaw:
    """The bulk equations of one probed matrix.

    Attributes:
        responses: names of the unknowns, in the order of the array r.
        resolvent: index of the resolvent among them. polynomials(p): for each equation its monomials, products of "z",
        responses and averages ("1" for the constant), with coefficients. averages(p, laws): the averages over sites
        "average0", "average1", ..., if sites differ.
        curve: table c with sum_ij c[i][j] G^i z^j = 0, the algebraic curve of the Stieltjes transform; None without
            elimination.
        edge_polynomials: polynomials in z, highest power first, whose real roots contain the edges; None without
            elimination.
        curve_text: the curve as text, with {z} for z.
        coefficients(p): coefficients of updated weights without a closed form, which functions of the bulk take last.
        sites(p, nodes): laws of diagonal entries, which the equations take after the responses.
        densities: the laws that are densities, by kind ("trait" or "field") and as text.
        spreads: laws of training fields on diagonals.
        images: by the name of a matrix A the index of tr R A among the responses. sources(p, z, r): for each image the
        derivative of the equations with respect to epsilon in M + epsilon A.
        vanishing: indices of responses that are zero at epsilon = 0. slopes(p, z, r): derivatives of the equations with
        respect to these.
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
        """Whether the responses could be eliminated."""
        return self.curve is not None

    @property
    def settles(self) -> bool:
        """Whether a law of sites has a density."""
        return bool(self.densities)

    @property
    def sampled(self) -> bool:
        """Whether a law of sites is sampled, so that the bulk has a standard error."""
        return any(isinstance(one, SampledSites) and not one.known for one in self.spreads)

    @property
    def moves(self) -> bool:
        """Whether the bulk depends on the training level."""
        return any(not (isinstance(one, SampledSites) and one.known) for one in self.spreads)

    def residual(self, p: Point, z: Array, r: Array) -> tuple[Array, ...]:
        """Return the residuals of the bulk equations at responses r."""
        variables = dict(zip(("z", *self.responses), (z, *r), strict=True))
        coefficients = self.updated(p)
        if self.averages is not None and self.sites is not None:
            averages = self.averages(p, self.sites(p, self.nodes), *coefficients)
            variables |= {f"average{k}": average.at(variables) for k, average in enumerate(averages)}
        return tuple(
            sum(coefficient * monomial_at(name, variables) for name, coefficient in terms)
            for terms in self.polynomials(p, *coefficients)
        )

    def updated(self, p: Point) -> tuple[tuple[Array, ...], ...]:
        """Return the updated coefficients, which functions of the bulk take as their last argument."""
        return () if self.coefficients is None else (self.coefficients(p),)


def _plain(number: Array) -> Array:
    """Return a number as a Python float, so that points compare equal; a traced value is unchanged."""
    return number if isinstance(number, jax.core.Tracer) else float(number)


def _laws(sites: Sites | None, p: Point, nodes: int) -> tuple[Any, ...]:
    """Return the laws of sites as the last argument; empty if sites are equivalent."""
    return () if sites is None else (sites(p, nodes),)


@dataclass(frozen=True)
class FiniteSize:
    """The declaration at finite size.

    simulate(p, size, rng, ...): one sample. sectors(p, size): sizes before rounding. numbers(p, size): approximate
    number of floats that a sample holds at once.
    """

    simulate: Callable[..., tuple[dict[str, Array], dict[str, Any], dict[str, Array]]]
    sectors: Callable[[Point, int], dict[str, float]]
    numbers: Callable[[Point, int], float]
