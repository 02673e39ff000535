"""Closure of the forward pass in exact rational arithmetic: a field is a linear form in the Gaussian variables of a
site.

A Gaussian variable is the noise of a random matrix, or a drawn vector, at one time and label. Generated solvers are
printed from the same program. Each operation has the name of its counterpart in numerics/runtime/rows.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, reduce
from itertools import product
from operator import add
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np
import sympy as sp

from derive.algebra.quotients import Quotient
from derive.errors import DeriveError
from derive.language.traits import Trait
from derive.program.forward import Forward, Key
from derive.program.nodes import Formula, Function, Op, Ref, Slot, Symbol, Tuple, Value
from derive.program.quotients import Array, Evaluation, Scalars, check_terms

Variable = tuple[str, int, int]
"""A Gaussian variable: the name of a noise or drawn vector, a time and a label."""


@dataclass(frozen=True, eq=False)
class Group:
    """Sites with equal traits: their weight, and the covariances of the noises of their sector.

    Variables without an entry in `covariances` are independent with unit variance.
    """

    weight: Quotient
    zero: Quotient
    covariances: dict[Variable, dict[Variable, Quotient]]


@dataclass(frozen=True, eq=False)
class Form:
    """A linear form in the Gaussian variables of a site.

    The product of two forms is their covariance times the weight of the group. `dual` and `means` cache covariances
    with variables and with other forms.
    """

    group: Group
    coefficients: dict[Variable, Quotient]
    dual: dict[Variable, Quotient | None] = field(default_factory=dict)
    means: dict[Form, Quotient] = field(default_factory=dict)

    def __add__(self, other: Form) -> Form:
        total = dict(self.coefficients)
        for variable, x in other.coefficients.items():
            total[variable] = total[variable] + x if variable in total else x
        return Form(self.group, {variable: x for variable, x in total.items() if not x.is_zero})

    def __mul__(self, other: Form | Quotient) -> Any:
        if isinstance(other, Quotient):
            scaled = {} if other.is_zero else {variable: other * x for variable, x in self.coefficients.items()}
            return Form(self.group, scaled)
        if other not in self.means:
            terms = (c * x for v, x in other.coefficients.items() if (c := self.covariance(v)) is not None)
            covariance = check_terms(self.group.weight * reduce(add, terms, self.group.zero))
            self.means[other] = other.means[self] = covariance
        return self.means[other]

    __rmul__ = __mul__

    def covariance(self, variable: Variable) -> Quotient | None:
        """Return the covariance with a variable; None if it vanishes."""
        if variable not in self.dual:
            row = self.group.covariances.get(variable)
            if row is None:
                self.dual[variable] = self.coefficients.get(variable)
            else:
                terms = [x * row[v] for v, x in self.coefficients.items() if v in row]
                self.dual[variable] = reduce(add, terms) if terms else None
        return self.dual[variable]


def _groups_of(traits: list[Trait]) -> list[tuple[sp.Expr, tuple[sp.Expr, ...]]]:
    """Return the groups of sites with equal traits: the weight of each and the values of all traits in it."""
    for trait in traits:
        if not trait.discrete or not trait.weights:
            raise DeriveError(f"trait {trait} has no list of values, so no exact expansion exists; use `derive solve`")
    laws = [list(zip(trait.weights, trait.values, strict=True)) for trait in traits]
    return [(sp.Mul(*(w for w, _ in some)), tuple(v for _, v in some)) for some in product(*laws)]


def _everything(values: Iterable[Value]) -> Iterator[Value]:
    """Yield the values and all their subexpressions."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        yield value
        waiting += value.children


def _is_call(value: Any, function: str) -> TypeGuard[Op]:
    return isinstance(value, Op) and value.function == function


def _formulas(values: Iterable[Value], traits: tuple[Trait, ...]) -> list[sp.Expr]:
    """Return all formulas inside the values, with functions of traits evaluated at each value of the traits.

    The radicals in these formulas are the generators of the coefficient field.
    """
    everything = list(_everything(values))
    expressions = [sp.sympify(value.expression) for value in everything if isinstance(value, Formula)]
    names: dict[Symbol, str] = {}
    for value in everything:
        if _is_call(value, "moment"):  # a mean of traits alone has symbols of its own
            _, function, *quoted = value.arguments
            assert isinstance(function, Function)
            names |= {symbol: one.word for symbol, one in zip(function.arguments, quoted, strict=True)}

    def name_of(value: Value) -> str | None:
        if _is_call(value, "trait"):
            return str(value.arguments[0].word)
        return names.get(value.symbol) if isinstance(value, Ref) else None

    at_groups = []
    for expression in expressions:
        slots = {slot: name for slot in expression.atoms(Slot) if (name := name_of(slot.value)) is not None}
        own = [trait for trait in traits if trait.name in slots.values()]
        for _, some in _groups_of(own) if own else ():
            at = {trait.name: value for trait, value in zip(own, some, strict=True)}
            at_groups.append(expression.xreplace({slot: at[name] for slot, name in slots.items()}))
    return expressions + at_groups


class ExactRun(Evaluation):
    """A forward pass in exact arithmetic at fixed whole-number parameters.

    A vector is an array of linear forms: labels x groups of sites.

    Args:
        program: the forward program.
        substitution: values of the whole-number parameters, and of all others that are fixed.
        beside: values of other programs, which are evaluated in the same coefficient field.
        arrays: the data.
    """

    lazy = frozenset({"starting"})

    def __init__(
        self,
        program: Forward,
        substitution: Mapping[sp.Basic, Any],
        beside: Iterable[Value] = (),
        arrays: Mapping[str, Any] = MappingProxyType({}),
    ):
        layout = program.layout
        standing = (value for sites in program.needs.sites for value in sites.values)
        traits = layout.system.traits_beside(standing)
        statements = (*program.tables, *program.start, *program.step)
        values = [*(one.value for one in statements), *(value for _, value in program.order), *beside]
        numbers = [e for trait in traits for weight, some in _groups_of([trait]) for e in (weight, *some)]
        numbers += [source.scale for source in layout.system.sources]
        super().__init__(Scalars([*_formulas(values, traits), *numbers], dict(substitution)), arrays)
        self.program, self.layout = program, layout
        clock = layout.clock
        self.times = 1 if clock is None else self.whole(clock.points)
        self.before = self.whole(layout.order_times)
        own = (f.field for f in layout.fields)
        self.fields = {field.name: field for field in (*own, *layout.system.sources)}
        self.labels = {name: self.whole(field.labels) for name, field in self.fields.items()}
        self.values_of: dict[str, Array] = {}
        """The values of each trait in the groups of its sector."""
        self.groups: dict[str, tuple[Group, ...]] = {}
        for sector in dict.fromkeys(one.sector for one in (*self.fields.values(), *traits)):
            self._group(sector.name, [trait for trait in traits if trait.sector == sector])
        self.past: dict[str, list[Array]] = {name: [] for name in self.fields}
        self.scales: dict[str, tuple[Array, ...]] = {}
        """Prefactors of the covariances of each noise at the current time."""
        self.means: dict[str, list[Array]] = {key: [] for key in program.kept}
        self.series_of = {one.key: one for one in (*program.observables, *program.means)}
        self.records: dict[str, list[Array]] = {key: [] for key in self.series_of}
        self.sizes = {key: tuple(map(self.whole, one.axes)) for key, one in self.series_of.items()}
        self.t = self.span = 0
        self.done = -1  # not started
        self.unit = cache(self._unit)

    def _group(self, sector: str, traits: list[Trait]) -> None:
        groups = _groups_of(traits)
        covariances: dict[Variable, dict[Variable, Quotient]] = {}
        self.groups[sector] = tuple(Group(self.scalars.of(weight), self.zero, covariances) for weight, _ in groups)
        for k, trait in enumerate(traits):
            self.values_of[trait.name] = np.array([self.scalars.of(some[k]) for _, some in groups], object)

    # -- the whole

    @cached_property
    def order(self) -> dict[Key, Array]:
        """The order parameters."""
        self._advance(self.times if self._at_later_times() else self.before)
        return {key: self.evaluate(value) for key, value in self.program.order}

    @cached_property
    def observables(self) -> dict[str, Array]:
        """The observables: times x labels, or times alone."""
        self._advance(self.times)
        observables = {series.key: self.series(series.key) for series in self.program.observables}
        return {key: table if self.sizes[key] else table[:, 0] for key, table in observables.items()}

    def _at_later_times(self) -> bool:
        """Return whether order parameters are needed at times after the last update."""
        means = any(_is_call(value, "series") for _, value in self.program.order)
        return means or any(letter.time is not None for letter in self.program.needs.letters)

    def _advance(self, times: int) -> None:
        """Run the program for a number of times."""
        if self.done < 0:
            self.run((*self.program.tables, *self.program.start))
        for t in range(max(self.done, 0), times if self.layout.clock is not None else 0):
            self.t = self.known[self.program.time] = t
            self.run(self.program.step)
        self.done = max(self.done, times)

    # -- vectors

    def at(self, name: str, s: int) -> Array:
        """Return a vector at a time; zero before the start and for times not computed yet."""
        vector, past = self.fields[name], self.past[name]
        s = s if vector.timed else 0
        if vector.role in ("normal", "constant"):
            return self.unit(name, s)
        return past[s] if 0 <= s < len(past) else self._nothing(name)

    def _now(self, name: str) -> int:
        return self.t if self.fields[name].timed else 0

    def _groups(self, name: str) -> tuple[Group, ...]:
        return self.groups[self.fields[name].sector.name]

    def _unit(self, name: str, s: int) -> Array:
        """Return the Gaussian variable of a noise or of a drawn vector (with its scale) at a time."""
        if s < 0:
            return self._nothing(name)
        scale, groups = self.scalars.of(self.fields[name].scale), self._groups(name)
        variables = [(name, s, label) for label in range(self.labels[name])]
        return np.array([[Form(group, {v: scale}) for group in groups] for v in variables], object)

    def _nothing(self, name: str) -> Array:
        return np.array([[Form(group, {}) for group in self._groups(name)]] * self.labels[name], object)

    def drawn(self, name: str, lag: int = 0) -> Array:
        return self.at(name, self.t - lag)

    earlier = drawn

    def value(self, name: str) -> Array:
        return self.at(name, 0)

    def trait(self, name: str) -> Array:
        return self.values_of[name][None, :]

    def starting(self, first: Tuple, later: Value) -> Array:
        # the branch that is not taken may be singular, such as 1/t at the start
        return self.evaluate(first.values[self.t] if self.t < len(first.values) else later)

    def put(self, name: str, value: Array) -> Array:
        rows = self._nothing(name)
        if value.ndim:  # otherwise the right side of an equation without terms
            rows = rows + value
        for x in (x for form in rows.flat for x in form.coefficients.values()):
            check_terms(x)
        self.past[name].append(rows)
        if name in self.scales:
            self._put_covariances(name, self.scales.pop(name))
        return rows

    def total(self, value: Array) -> Array:
        return np.sum(value, axis=0, keepdims=True)

    def mixed(self, table: Array, value: Array, transposed: int) -> Array:
        return (table.T if transposed else table) @ value

    def met(self, right: Array, left: Array, value: Array) -> Array:
        return (right @ left.T) @ value

    def past_sum(self, name: str, reach: int, weight: Any, left: str = "", right: Array | None = None) -> Array:
        """Return a weighted sum of a field over earlier times."""
        self.span = max(self.t + reach, 0)
        weights = np.broadcast_to(weight(np.arange(self.span)) if callable(weight) else self.one, (self.span,))
        total = self._nothing(name)[:1]
        for s, factor in enumerate(weights):
            value = self.at(name, s)
            total = total + factor * (value if right is None else (right @ self.at(left, s).T) @ value)
        return total if callable(weight) else weight * total

    def product(self, name: str, memories: tuple[Array, ...], covariances: tuple[Array, ...]) -> Array:
        """Return a random matrix times a field: its noise plus memory terms."""
        self.scales[name] = covariances
        total = self.unit(name, self._now(name))
        for factor, memory in zip(memories, self.layout.memories(self.fields[name]), strict=True):
            rows = self.at(memory.a.name, self.t)
            for s in self._times(memory.noise.name, memory.fresh):
                kernel = self._response(rows, memory.noise.name, s)
                total = total + factor * (kernel @ self.at(memory.on.name, s))
        return total

    def _times(self, name: str, fresh: bool) -> Iterable[int]:
        """Return the times with which the present noise is correlated: only its own if the matrix is drawn anew."""
        now = self._now(name)
        return (now,) if fresh else range(now + 1)

    def _put_covariances(self, name: str, scales: tuple[Array, ...]) -> None:
        """Store the covariances of a new noise with all earlier noises, in both orders."""
        own, covariances = self.fields[name], self._groups(name)[0].covariances
        mine = [(name, self._now(name), label) for label in range(self.labels[name])]
        for variable in mine:
            covariances.setdefault(variable, {})
        for scale, c in zip(scales, self.layout.covariances(own), strict=True):
            if c.right.timed and not own.timed:
                continue
            a = self.at(c.a.name, self.t)
            for s in self._times(c.right.name, c.fresh):
                values = scale * (a @ self.at(c.b.name, s).T)
                for (i, j), x in np.ndenumerate(values):
                    if not x.is_zero:
                        other = c.right.name, s, j
                        covariances[mine[i]][other] = covariances.setdefault(other, {})[mine[i]] = x

    # -- averages

    def mean(self, value: Array, labelled: int) -> Array:
        means = np.sum(value, axis=1, keepdims=True)
        return means if labelled else means.item()

    def moment(self, sector: str, function: Callable[..., Array], *names: str) -> Array:
        return np.sum(self._weights(sector) * function(*(self.values_of[name] for name in names)))

    def _weights(self, sector: str) -> Array:
        return np.array([group.weight for group in self.groups[sector]], object)

    def _response(self, rows: Array, noise: str, s: int) -> Array:
        """Return the response of rows to a noise or a drawn vector at a time, averaged over groups of sites."""
        return np.sum(self._responses(rows, noise, s), axis=1)

    def _responses(self, rows: Array, noise: str, s: int) -> Array:
        """Return the response in each group times its weight: rows x groups x labels."""
        variables = [(noise, s, label) for label in range(self.labels[noise])]
        each = [[[f.group.weight * f.coefficients.get(v, self.zero) for v in variables] for f in row] for row in rows]
        return np.array(each, object)

    # -- numbers with labels, as columns

    def data(self, array: Array, lag: int | None = None, time: Array | None = None) -> Array:
        return self.table(array, lag, time)[:, None]

    def table(self, array: Array, lag: int | None = None, time: Array | None = None) -> Array:
        if lag is None:
            return array
        s = (self.t if time is None else int(time)) - lag
        return array[s] if s >= 0 else self.zeros(array.shape[1:])

    def entries(self, array: Array, turned: int, lag: int | None = None, time: Array | None = None) -> Array:
        entries = self.table(array, lag, time)
        return (entries.T if turned else entries).reshape(-1, 1)

    def root(self, array: Array, lag: int | None = None, time: Array | None = None) -> Array:
        values, vectors = np.linalg.eigh(self.table(array, lag, time).astype(float))
        return self.decimals(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)

    def selection(self, rows: tuple[Array, ...], columns: tuple[Array, ...], places: tuple[int, ...]) -> Array:
        own, others = (np.indices(tuple(map(int, sizes))).reshape(len(sizes), -1) for sizes in (rows, columns))
        agree = np.ones((own.shape[1], others.shape[1]), bool)
        for place, labels in zip(places, others, strict=True):
            agree &= (place < 0) | (own[place][:, None] == labels)
        return np.where(agree, self.one, self.zero)

    def mean_of_labels(self, column: Array) -> Array:
        return np.sum(column) / self.scalars.of(sp.Integer(np.size(column)))

    # -- records

    def record(self, key: str, value: Array) -> None:
        row = np.broadcast_to(np.ravel(value), (math.prod(self.sizes[key]),))
        kept = self.records[key]
        kept[:] = [*kept, row] if self.series_of[key].timed else [row]

    def keep(self, key: str, value: Array) -> None:
        self.means[key][self.t :] = [np.ravel(value)[0]]

    def kept(self, key: str) -> Array:
        return np.array(self.means[key][: self.span], object)

    def coefficients(self, table: Array, time: Array, position: int, times: Array | None = None) -> Array:
        return super().coefficients(table, time, position, self.span if times is None else times)

    # -- order parameters

    def _before(self, name: str, time: Array | None = None) -> Array:
        """Return a vector at all times that order parameters have, or at one time: one row per time and label."""
        if time is not None or not self.fields[name].timed:
            return self.at(name, 0 if time is None else int(time))
        return np.concatenate([self._nothing(name)[:0], *(self.at(name, s) for s in range(self.before))])

    def _span(self, name: str) -> range:
        return range(self.before if self.fields[name].timed else 1)

    def correlation(self, a: str, b: str, time: Array | None = None) -> Array:
        """Return C[a, b] at all times that order parameters have, or at one time."""
        return self._before(a) @ self._before(b, time).T

    def response(self, a: str, noise: str, time: Array | None = None) -> Array:
        """Return R[a, noise] at all times that order parameters have, or at one time."""
        return np.sum(self._each_response(self._before(a, time), noise), axis=1)

    def _each_response(self, rows: Array, noise: str) -> Array:
        each = [self._responses(rows, noise, s) for s in self._span(noise)]
        return np.concatenate([self.zeros((*rows.shape, 0)), *each], axis=2)

    def covariance(self, name: str) -> Array:
        """Return the covariance matrix of a noise over times and labels."""
        covariances = self._groups(name)[0].covariances
        variables = [(name, s, label) for s in self._span(name) for label in range(self.labels[name])]
        rows = [[covariances[v].get(w, self.zero) for w in variables] for v in variables]
        return np.array(rows, object).reshape(len(variables), len(variables))

    def series(self, key: str) -> Array:
        return np.array(self.records[key], object)

    def series_before(self, key: str) -> Array:
        return self.series(key)[: self.before]

    def law_of_sites(self, sector: str, *entries: Array) -> Array:
        weights = self._weights(sector)
        return np.stack([*(np.broadcast_to(entry, (1, len(weights)))[0] for entry in entries), weights], axis=1)

    def by_value(self, sector: str, _: str, left: str, kind: str, right: str) -> Array:
        rows = self._before(left)
        if kind == "C":
            return rows.T[:, :, None] * self._before(right).T[:, None, :]
        return np.moveaxis(self._each_response(rows, right), 1, 0)
