"""The exact back end: a program run with quotients of polynomials in the open parameters.

What generated JAX code does in floating point is done here exactly, at given whole numbers: arrays hold quotients, and
every function of the runtime that the exact forward pass and its eigenproblem call has a counterpart of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial, reduce
from itertools import product
from operator import add, mul
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from derive.algebra.polynomials import TooLarge
from derive.algebra.quotients import Quotient, RationalFunctions
from derive.errors import DeriveError
from derive.language.data import Data
from derive.language.symbols import Parameter
from derive.program.exact import ExactPass, Key, SiteLayout
from derive.program.nodes import (
    Attribute,
    Blocks,
    Call,
    Chosen,
    Definition,
    Formula,
    Function,
    Item,
    Let,
    MatMul,
    Ref,
    Slot,
    Sum,
    Symbol,
    Table,
    Transposed,
    Tuple,
    Value,
    children,
)

MOST_TERMS = 20_000
"""The most terms that the numerator of one entry may have."""

Array = Any
"""An array of quotients (or of whole numbers), or one of them. A whole number may be a quotient."""


def _is_root(node: sp.Basic) -> bool:
    return bool(node.is_Pow and node.exp.is_Rational and not node.exp.is_Integer and not node.base.atoms(Slot))


def _radicals(power: sp.Pow) -> list[tuple[sp.Expr, sp.Rational]]:
    """Bases and exponents of a root. One of a number is of its primes, so that sqrt(2) sqrt(3) is sqrt(6)."""
    if power.base.is_Integer and power.base > 1:
        return [(sp.Integer(prime), n * power.exp) for prime, n in sp.factorint(power.base).items()]
    return [(power.base, power.exp)]


class Scalars:
    """Expressions in the parameters as quotients of polynomials; a root of something is a generator of its own."""

    def __init__(self, expressions: Iterable[sp.Expr], substitution: dict[sp.Basic, sp.Basic]):
        self.substitution = substitution
        given = [sp.sympify(e) for e in expressions]
        # a formula is also taken apart, so that a factor that is zero here does not hide what stands beside it
        parts = {node for e in given for node in sp.preorder_traversal(e) if _is_root(node)}
        powers: dict[sp.Expr, int] = {}
        brought = any(_is_root(node) for e in substitution.values() for node in sp.preorder_traversal(sp.sympify(e)))
        for e in dict.fromkeys((*given, *parts)):
            if not brought and all(n.is_Pow and n.exp.is_Integer for n in e.atoms(sp.Pow, sp.Function)):
                continue  # a quotient of polynomials, before and after
            for node in filter(_is_root, sp.preorder_traversal(e.subs(substitution))):
                for base, exponent in _radicals(node):
                    powers[base] = int(sp.ilcm(powers.get(base, 1), exponent.q))
        roots = {base: sp.Symbol(f"_radical{i}") for i, base in enumerate(sorted(powers, key=sp.default_sort_key))}
        self.roots = {base: (root, powers[base]) for base, root in roots.items()}
        self.meaning = {root: base ** sp.Rational(1, q) for base, (root, q) in self.roots.items()}
        symbols = {s for e in given for s in e.free_symbols if isinstance(s, Parameter) and s not in substitution}
        extra = {s for e in substitution.values() for s in sp.sympify(e).free_symbols}
        generators = ((symbols | extra) - set(roots)) | set(roots.values())
        self.field = RationalFunctions(sorted(generators, key=lambda s: s.name))
        self.zero, self.one = (self.field.quotient(self.field.context.constant(n)) for n in (0, 1))
        self.converted = cache(self._convert)

    def of(self, expression: sp.Expr) -> Quotient:
        return self.converted(sp.sympify(expression))

    def _convert(self, expression: sp.Expr) -> Quotient:
        plain = expression.subs(self.substitution)
        plain = plain.replace(
            lambda e: _is_root(e) and all(base in self.roots for base, _ in _radicals(e)),
            lambda e: sp.Mul(*(self.roots[base][0] ** (n * self.roots[base][1]) for base, n in _radicals(e))),
        )
        plain = plain.xreplace({base: root**q for base, (root, q) in self.roots.items() if base.is_Symbol})
        try:
            return self.field.convert(plain)
        except (BasePolynomialError, TypeError, ValueError, ZeroDivisionError):
            raise DeriveError(
                f"{expression} is not an algebraic function of the parameters here, so there is no exact expansion; "
                "fix what it depends on with --at, or solve for numbers with `derive solve`"
            ) from None

    def expression(self, quotient: Quotient) -> sp.Expr:
        """Back to SymPy, with roots written as roots."""
        return self.field.decode(quotient).xreplace(self.meaning)


@dataclass(frozen=True)
class Place:
    """Where a noise or source stands: in a row, and in the covariance of its random matrix."""

    start: int
    place: int
    times: int
    labels: int
    groups: Groups

    @property
    def length(self) -> int:
        return self.times * self.labels


@dataclass(frozen=True)
class Groups:
    """The sites of one sector: the size of the part of a row that belongs to one group of sites with equal traits, the
    weights of the groups, and of each trait its values in them."""

    part: int
    weights: Array
    values: tuple[Array, ...]

    @property
    def size(self) -> int:
        return self.part * len(self.weights)

    def apart(self, rows: Array) -> Array:
        """Rows with an axis for the groups."""
        return rows.reshape(len(rows), len(self.weights), self.part)


def groups_of(site: SiteLayout) -> list[tuple[sp.Expr, tuple[sp.Expr, ...]]]:
    """Groups of sites with equal traits: the weight of each, and the values of all traits in it."""
    for trait, _, _ in site.traits:
        if not trait.discrete or not trait.weights:
            raise DeriveError(
                f"trait {trait} has no list of values, so there is no exact expansion; use `derive solve`"
            )
    laws = [list(zip(trait.weights, trait.values, strict=True)) for trait, _, _ in site.traits]
    return [(sp.Mul(*(w for w, _ in some)), tuple(v for _, v in some)) for some in product(*laws)]


def _everything(values: Iterable[Value]) -> Iterator[Value]:
    """Some values and all that they are made of."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        yield value
        waiting += children(value)


def _formulas(values: list[Value], sites: Iterable[SiteLayout]) -> list[sp.Expr]:
    """All formulas inside some values; those of traits also at all values of the traits: their roots are of these."""
    found = [sp.sympify(value.expression) for value in _everything(values) if isinstance(value, Formula)]
    moments: dict[Symbol, list[Symbol]] = {}
    for value in _everything(values):
        if isinstance(value, Call) and value.function == "moment":  # a mean of traits alone has symbols of its own
            place, function = value.arguments
            assert isinstance(place, Ref) and isinstance(function, Function)
            moments.setdefault(place.symbol, []).extend(function.arguments)
    at_groups = []
    for site in sites:
        own = [*(symbol for _, _, symbol in site.traits), *moments.get(site.symbol, [])]
        stands = {symbol: k % len(site.traits) for k, symbol in enumerate(own)}
        for expression in found:
            slots = [s for s in expression.atoms(Slot) if isinstance(s.value, Ref) and s.value.symbol in stands]
            if slots:
                each = (some for _, some in groups_of(site))
                at_groups += [expression.xreplace({s: some[stands[s.value.symbol]] for s in slots}) for some in each]
    return found + at_groups


class ExactRun:
    """Runs programs at given whole numbers. `substitution` gives those, and whatever else is fixed; `arrays` the data,
    in decimals that are taken at their word."""

    def __init__(self, scalars: Scalars, arrays: Mapping[str, Any] = MappingProxyType({})):
        self.scalars, self.arrays = scalars, arrays
        self.zero: Array = scalars.zero
        self.one: Array = scalars.one
        self.known: dict[Symbol, Any] = {}

    @staticmethod
    def of(
        program: ExactPass,
        substitution: dict[sp.Basic, sp.Basic],
        others: Iterable[Value] = (),
        arrays: Mapping[str, Any] = MappingProxyType({}),
    ) -> ExactRun:
        """A machine for a forward pass, and for other values beside it."""
        statements = (*program.tables, *program.start, *program.step, *program.results)
        values = [*(let.value for let in statements), *others]
        values += [*(value for _, value in program.order), *(value for _, value, _ in program.observables)]
        found = _formulas(values, program.sites)
        found += [e for site in program.sites for weight, some in groups_of(site) for e in (weight, *some)]
        return ExactRun(Scalars(found, substitution), arrays)

    # -- programs

    def order(self, program: ExactPass) -> dict[Key, Array]:
        """The order parameters that a forward pass gives."""
        times = 1 if program.clock is None else self.whole(program.clock.points)
        self.known |= {program.times: times, program.when: np.arange(times)}
        self.run(program.tables)
        for site in program.sites:
            self._site(site, times)
        self.known |= {c.symbol: self.zeros(tuple(map(self.whole, c.symbol.shape or ()))) for c in program.carried}
        self.run(program.start)
        for t in range(times if program.clock is not None else 0):
            self.known[program.time] = t
            self.run(program.step)
        self.run(program.results)
        return {key: self.value(value) for key, value in program.order}

    def observables(self, program: ExactPass) -> dict[str, Array]:
        """The observables of a forward pass that has been run by `order`."""
        return {name: self.value(value) for name, value, _ in program.observables}

    def _site(self, site: SiteLayout, times: int) -> None:
        places, start = [], 0
        for noises in (*(noises for _, noises in site.channels), site.drawn):
            place = 0
            for field, symbol in noises:
                n, labels = times if field.timed else 1, self.whole(field.labels)
                places.append((symbol, (start, place, n, labels)))
                start, place = start + n * labels, place + n * labels
        weights, *values = (
            np.array(list(map(self.scalars.of, some)), object)
            for some in zip(*((weight, *values) for weight, values in groups_of(site)), strict=True)
        )
        groups = self.known[site.symbol] = Groups(start, weights, tuple(values))
        self.known |= {symbol: Place(*where, groups) for symbol, where in places}
        for (_, _, along), each in zip(site.traits, values, strict=True):
            self.known[along] = np.repeat(each, start)[None, :]

    def call(self, function: Definition, arguments: dict[Symbol, Any]) -> Array:
        """The result of a function of the program."""
        self.known |= arguments
        self.run(function.body)
        return self.value(function.result)

    def run(self, statements: Iterable[Let]) -> None:
        for statement in statements:
            self.known[statement.symbol] = self.value(statement.value)

    # -- values

    def value(self, value: Value | int | None) -> Any:
        if value is None or isinstance(value, int):
            return value
        if isinstance(value, Ref):
            return self.known[value.symbol]
        if isinstance(value, Item):
            return self.known[value.owner][value.key]
        if isinstance(value, Attribute):
            return getattr(self.known[value.owner], value.name)
        if isinstance(value, Formula):
            return self._formula(value.expression)
        if isinstance(value, Call):
            return getattr(self, f"_call_{value.function}")(*map(self.value, value.arguments))
        if isinstance(value, MatMul):
            return self.product(self.value(value.left), self.value(value.right))
        if isinstance(value, Transposed):
            return self.value(value.value).T
        if isinstance(value, Sum):
            return self._sum(value)
        if isinstance(value, Chosen):
            return self._chosen(value)
        if isinstance(value, Table):
            return [list(map(self.value, row)) for row in value.rows]
        if isinstance(value, Blocks):
            return np.block([[self.value(block) for block in row] for row in value.rows])
        if isinstance(value, Tuple):
            return tuple(map(self.value, value.values))
        if isinstance(value, Function):
            return partial(self._applied, value)
        raise AssertionError(f"{type(value).__name__} cannot be run exactly")

    def whole(self, expression: sp.Expr) -> int:
        """The value of an expression that is a whole number."""
        return int(self._formula(expression))

    def _applied(self, function: Function, *arguments: Array) -> Array:
        self.known |= zip(function.arguments, arguments, strict=True)
        return self.value(function.body)

    def _formula(self, expression: sp.Expr) -> Array:
        if isinstance(expression, Data):
            return self._data(expression)
        slots = list(sp.sympify(expression).atoms(Slot))
        if not slots:
            return self.scalars.of(expression)
        each = np.frompyfunc(lambda *here: self._at(expression, dict(zip(slots, here, strict=True))), len(slots), 1)
        return each(*(self.value(slot.value) for slot in slots))

    def _data(self, data: Data) -> Array:
        if data.name not in self.arrays:
            raise DeriveError("data are numbers, not symbols, so there is no exact expansion; use `derive solve`")
        return self._taken(np.asarray(self.arrays[data.name], float))

    def _taken(self, numbers: Array) -> Array:
        """Decimals, taken at their word."""
        return np.frompyfunc(lambda x: self.scalars.of(sp.Rational(repr(float(x)))), 1, 1)(numbers)

    def _at(self, expression: sp.Expr, values: dict[Slot, Any]) -> Array:
        """One entry of a formula."""
        slots = expression.atoms(Slot)
        if not slots:
            return self.scalars.of(expression)
        if isinstance(expression, Slot):
            found = values[expression]
            return found if isinstance(found, Quotient) else self.scalars.of(sp.Integer(int(found)))
        if expression.is_Add or expression.is_Mul:
            return reduce(add if expression.is_Add else mul, (self._at(arg, values) for arg in expression.args))
        whole = {s: sp.Integer(int(values[s])) for s in slots if not isinstance(values[s], Quotient)}
        if expression.is_Pow:
            exponent = expression.exp.xreplace(whole)
            if exponent.is_Integer:
                base = self._at(expression.base, values)
                total = reduce(mul, [base] * abs(int(exponent)), self.one)
                return total if exponent >= 0 else self.one / total
        exact = {s: self.scalars.expression(values[s]) for s in slots if s not in whole}
        return self.scalars.of(expression.xreplace({**whole, **exact}))

    def _sum(self, value: Sum) -> Array:
        if not value.terms:
            return self.zeros(tuple(map(self.whole, value.shape or ())))
        parts = [
            self.value(term) if factor.expression == 1 else self.value(factor) * self.value(term)
            for factor, term in value.terms
        ]
        return reduce(add, parts)

    def _chosen(self, value: Chosen) -> Array:
        slots = list(value.condition.atoms(Slot))

        def holds(*here: Any) -> bool:
            return bool(value.condition.xreplace({s: sp.Integer(int(v)) for s, v in zip(slots, here, strict=True)}))

        where = np.frompyfunc(holds, len(slots), 1)(*(self.value(slot.value) for slot in slots))
        if not isinstance(where, np.ndarray):
            return self.value(value.value if where else value.otherwise)
        return np.where(where.astype(bool), self.value(value.value), self.value(value.otherwise))

    # -- arithmetic of arrays

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return np.full(shape, self.zero, object)

    def eye(self, size: int, columns: int | None = None, start: int = 0) -> Array:
        return np.where(np.eye(size, columns, start, bool), self.one, self.zero)

    def total(self, array: Array, axis: int, keepdims: bool = False) -> Array:
        """The sum along an axis."""
        return np.frompyfunc(_not_too_large, 1, 1)(np.sum(array, axis=axis, keepdims=keepdims, initial=self.zero))

    def product(self, a: Array, b: Array) -> Array:
        """A matrix product; most entries are zero."""
        columns = [[(k, x) for k, x in enumerate(column) if not x.is_zero] for column in b.T]
        found = self.zeros((len(a), b.shape[1]))
        for i, row in enumerate(a):
            for j, column in enumerate(columns):
                terms = (row[k] * x for k, x in column if not row[k].is_zero)
                found[i, j] = _not_too_large(reduce(add, terms, self.zero))
        return found

    # -- functions of the runtime, each under its name there

    def _call_arange(self, count: Array) -> Array:
        return np.arange(int(count))

    def _call_eye(self, size: Array) -> Array:
        return self.eye(int(size))

    def _call_unit(self, block: Place, t: Array = 0) -> Array:
        start = block.start + int(t) * block.labels
        own = self.eye(block.labels, block.groups.part, start)
        return np.tile(own if int(t) >= 0 else self.zeros(own.shape), (1, len(block.groups.weights)))

    def _call_units(self, block: Place) -> Array:
        own = self.eye(block.length, block.groups.part, block.start)
        return np.tile(own, (1, len(block.groups.weights)))

    def _call_lines(self, rows: Array, labels: Array) -> Array:
        return np.broadcast_to(rows, (int(labels), rows.shape[1]))

    def _call_part(self, rows: Array, block: Place) -> Array:
        return self._call_part_before(rows, block, block.length)

    def _call_part_before(self, rows: Array, block: Place, count: Array) -> Array:
        each = block.groups.apart(rows)[:, :, block.start : block.start + int(count)]
        return self.total(block.groups.weights[:, None] * each, axis=1)

    def _call_first(self, rows: Array, count: Array) -> Array:
        return rows[: int(count)]

    def _call_lines_at(self, rows: Array, labels: Array, time: Array) -> Array:
        return _by_time(rows, labels)[int(time)]

    def _call_earlier(self, past: Array, labels: Array, t: Array, lag: int) -> Array:
        found = _by_time(past, labels)
        return found[int(t) - lag] if int(t) >= lag else self.zeros(found.shape[1:])

    def _call_past_sum(self, weights: Array, past: Array, labels: Array) -> Array:
        return self.total(weights[:, None, None] * _by_time(past, labels), axis=0)

    def _call_summed(self, past: Array, labels: Array) -> Array:
        return self.total(_by_time(past, labels), axis=0)

    def _call_weighted(self, overlaps: Array, weights: Array, labels: Array) -> Array:
        return overlaps * np.repeat(weights, int(labels))

    def _call_at_time(self, row: Array, labels: Array, t: Array) -> Array:
        return row[:, int(t) * int(labels) : (int(t) + 1) * int(labels)]

    def _call_dual(self, rows: Array, place: Groups, *covariances: Array) -> Array:
        each, pieces, start = rows.reshape(len(rows) * len(place.weights), place.part), [], 0
        for covariance in covariances:
            pieces.append(self.product(each[:, start : start + len(covariance)], covariance))
            start += len(covariance)
        seen = place.apart(np.concatenate([*pieces, each[:, start:]], axis=1).reshape(rows.shape))
        return (place.weights[:, None] * seen).reshape(rows.shape)

    def _call_moment(self, place: Groups, function: Callable[..., Array]) -> Array:
        return self.total(place.weights * function(*place.values), axis=0)

    def _call_column_of(self, number: Array) -> Array:
        return np.array([[number]], object)

    def _call_overlaps(self, seen: Array, past: Array) -> Array:
        return self.product(seen, past.T)

    def _call_after(self, t: Array, *rows: Array) -> Array:
        return t

    def _call_store(self, past: Array, rows: Array, t: Array) -> Array:
        past[int(t) * len(rows) : (int(t) + 1) * len(rows)] = rows
        return past

    def _call_stored(self, past: Array, labels: Array, t: Array) -> Array:
        return self._call_earlier(past, labels, t, 0)

    def _call_products(self, seen: Array, rows: Array) -> Array:
        return self.total(seen * rows, axis=1, keepdims=True)

    def _call_products_by_time(self, seen: Array, seen_labels: Array, rows: Array, labels: Array) -> Array:
        return self.total(_by_time(seen, seen_labels) * _by_time(rows, labels), axis=2)

    def _call_covariance_before(self, covariance: Array, block: Place, count: Array) -> Array:
        inside = slice(block.place, block.place + int(count))
        return covariance[inside, inside]

    def _call_variances(self, covariance: Array, block: Place) -> Array:
        return np.diagonal(covariance)[block.place :][: block.length].reshape(block.times, block.labels)

    def _call_total_of_labels(self, table: Array) -> Array:
        return self.total(table, axis=1, keepdims=True)

    def _call_mean_of_labels(self, table: Array) -> Array:
        return self._call_total_of_labels(table) * (self.one / self.scalars.of(sp.Integer(table.shape[1])))

    def _call_series(self, table: Array) -> Array:
        return np.reshape(table, -1)

    def _call_delayed(self, past: Array, labels: Array, lag: int) -> Array:
        shift = min(lag * int(labels), len(past))
        return np.concatenate([self.zeros(past[:shift].shape), past[: len(past) - shift]])

    def _call_put(self, covariance: Array, a: Place, t: Array, b: Place, s: Array, values: Array) -> Array:
        row = a.place + int(t) * a.labels
        column = b.place + (0 if s is None else int(s) * b.labels)
        rows, columns = slice(row, row + len(values)), slice(column, column + values.shape[1])
        covariance[rows, columns], covariance[columns, rows] = values, values.T
        return covariance

    def _call_entry(self, column: Array) -> Array:
        return column.item()

    def _call_store_number(self, table: Array, value: Array, t: Array) -> Array:
        table[int(t)] = value
        return table

    def _call_total(self, column: Array) -> Array:
        return self.total(column, axis=0, keepdims=True)

    def _call_given(self, data: Array, t: Array | None, lag: int) -> Array:
        if t is not None:
            data = data[int(t) - lag] if int(t) >= lag else self.zeros(data.shape[1:])
        return data if data.ndim == 2 else data[:, None]

    def _call_root(self, table: Array) -> Array:
        values, vectors = np.linalg.eigh(table.astype(float))
        return self._taken(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)

    def _call_selection(self, rows: tuple[Array, ...], columns: tuple[Array, ...], places: tuple[Array, ...]) -> Array:
        own, others = (np.indices(tuple(map(int, sizes))).reshape(len(sizes), -1) for sizes in (rows, columns))
        agree = np.ones((own.shape[1], others.shape[1]), bool)
        for place, labels in zip(map(int, places), others, strict=True):
            agree &= (place < 0) | (own[place][:, None] == labels)
        return np.where(agree, self.one, self.zero)

    def _call_softmax(self, *_: Array) -> Array:
        raise DeriveError("softmax has no exact expansion; use `derive solve`")

    _call_softmax_by_time = _call_softmax

    def _call_apart(self, table: Array, sizes: tuple[Array, ...]) -> Array:
        return table

    def _call_listed(self, table: Array) -> Array:
        return table.reshape(-1, 1)

    def _call_given_series(self, data: Array, timed: int, lag: int, turned: int | None = None) -> Array:
        table = data if timed else data[None]
        if turned is not None:
            table = (np.swapaxes(table, 1, 2) if turned else table).reshape(len(table), -1)
        return self._call_delayed(table, 1, lag) if timed else table

    def _call_diagonal(self, weights: Array, size: Array, labels: Array) -> Array:
        each = np.broadcast_to(np.ravel(weights), (int(size) // int(labels),))
        return self.eye(int(size)) * np.repeat(each, int(labels))

    def _call_taken_at(self, table: Array, time: Array) -> Array:
        return np.ravel(table)[int(time)] if int(time) >= 0 else self.zero

    def _call_by_time(self, table: Array) -> Array:
        return np.ravel(table)

    def _call_over_time(self, rows: list[list[Array]], count: Array) -> Array:
        each = [[np.broadcast_to(np.asarray(entry, object), (int(count),)) for entry in row] for row in rows]
        return np.moveaxis(np.array(each, object), 2, 0)

    def _call_initial_coefficients(self, matrix: Array, entry: Array, forcing: Array) -> Array:
        now, found = entry[0], []
        for step, more in zip(matrix, forcing, strict=True):
            found.append(now[:, 0])
            now = self.product(step, now) + more
        return np.array(found, object)

    def _call_history_coefficients(self, matrix: Array, entry: Array, forcing: Array) -> Array:
        now, found = self.zeros((matrix.shape[1], len(matrix))), []
        for t, (step, start) in enumerate(zip(matrix, entry, strict=True)):
            found.append(now)
            now = self.product(step, now)
            now[:, t] = start[:, 0]
        return np.array(found, object)

    def _call_coefficient(self, table: Array, t: Array, position: int) -> Array:
        return _of_time(table, t)[position]

    def _call_coefficients(self, table: Array, t: Array, position: int, times: Array) -> Array:
        return _of_time(table, t)[position, : int(times)]


def _by_time(rows: Array, labels: Array) -> Array:
    """Rows of all times with an axis for the times."""
    return rows.reshape(len(rows) // int(labels), int(labels), rows.shape[1])


def _of_time(table: Array, t: Array) -> Array:
    """What a table has at a time; beyond the end the last one, as in JAX: nothing that is asked for uses it."""
    return table[min(max(int(t), 0), len(table) - 1)]


def _not_too_large(entry: Quotient) -> Quotient:
    if len(entry.top) > MOST_TERMS:
        raise TooLarge(f"an order parameter has more than {MOST_TERMS} terms")
    return entry
