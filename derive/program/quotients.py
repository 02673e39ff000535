"""The exact back end: a program run with quotients of polynomials in the open parameters.

What generated JAX code does in floating point is done here exactly, at given whole numbers: arrays hold quotients, and
every function of the runtime that the exact forward pass and its eigenproblem call has a counterpart of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from derive.algebra.polynomials import TooLarge
from derive.algebra.quotients import Quotient, RationalFunctions
from derive.errors import DeriveError
from derive.language.symbols import Parameter
from derive.program.exact import ExactPass, Key, SiteLayout, lines_of
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
"""An array of quotients (or of whole numbers), or one of them."""


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
        roots = {
            base: sp.Symbol(f"_radical{i}", positive=True)
            for i, base in enumerate(sorted(powers, key=sp.default_sort_key))
        }
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
    size: int
    """Of the part of a row that belongs to one group of sites."""
    weights: tuple[Quotient, ...]
    """Of the groups of sites."""

    @property
    def length(self) -> int:
        return self.times * self.labels


@dataclass(frozen=True)
class Groups:
    """The sites of one sector: the size of a row for one group, the weights of the groups and their traits."""

    size: int
    weights: tuple[Quotient, ...]
    values: tuple[tuple[sp.Expr, ...], ...]

    @property
    def whole(self) -> int:
        return self.size * len(self.weights)


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


def formulas(values: Iterable[Value]) -> list[sp.Expr]:
    """All formulas inside some values."""
    return [sp.sympify(value.expression) for value in _everything(values) if isinstance(value, Formula)]


def _formulas_at_groups(values: list[Value], sites: Iterable[SiteLayout]) -> list[sp.Expr]:
    """Formulas of traits at all values of the traits: their roots are roots of these."""
    moments: dict[Symbol, list[Symbol]] = {}
    for value in _everything(values):
        if isinstance(value, Call) and value.function == "moment":  # a mean of traits alone has symbols of its own
            place, function = value.arguments
            assert isinstance(place, Ref) and isinstance(function, Function)
            moments.setdefault(place.symbol, []).extend(function.arguments)
    found, expressions = [], formulas(values)
    for site in sites:
        own = [symbol for _, _, symbol in site.traits]
        own += moments.get(site.symbol, [])
        stands = {symbol: k % len(site.traits) for k, symbol in enumerate(own)}
        for expression in expressions:
            slots = [s for s in expression.atoms(Slot) if isinstance(s.value, Ref) and s.value.symbol in stands]
            if slots:
                each = (some for _, some in groups_of(site))
                found += [expression.xreplace({s: some[stands[s.value.symbol]] for s in slots}) for some in each]
    return found


class ExactRun:
    """Runs programs at given whole numbers. `substitution` gives those, and whatever else is fixed; `arrays` the data,
    in decimals that are taken at their word."""

    def __init__(self, scalars: Scalars, arrays: Mapping[str, Any] = MappingProxyType({})):
        self.scalars, self.arrays = scalars, arrays
        self.known: dict[Symbol, Any] = {}
        self.functions: dict[str, Callable[..., Any]] = {
            name.removeprefix("_call_"): getattr(self, name) for name in dir(self) if name.startswith("_call_")
        }

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
        values += [value for _, value in (*program.order, *program.observables)]
        found = formulas(values) + _formulas_at_groups(values, program.sites)
        found += [e for site in program.sites for weight, some in groups_of(site) for e in (weight, *some)]
        return ExactRun(Scalars(found, substitution), arrays)

    # -- programs

    def order(self, program: ExactPass) -> dict[Key, Array]:
        """The order parameters that a forward pass gives."""
        times = 1 if program.clock is None else self.whole(Formula(program.clock.points))
        self.known[program.times] = times
        self.known[program.when] = np.arange(times)
        self.run(program.tables)
        self._sites(program, times)
        for c in program.carried:
            if c.field is not None:
                lines = self.whole(Formula(lines_of(c.field))) * (times if c.field.timed else 1)
                shape: tuple[int, ...] = (lines, self.whole(Attribute(c.site.symbol, "size")))
            elif c.channel is not None:
                extent = sum(self.known[b].length for _, b in c.site.channels[c.channel][1])
                shape = (extent, extent)
            else:
                shape = (times,)
            self.known[c.symbol] = self.zeros(shape)
        self.run(program.start)
        for t in range(times if program.clock is not None else 0):
            self.known[program.time] = t
            self.run(program.step)
        self.run(program.results)
        return {key: self.value(value) for key, value in program.order}

    def observables(self, program: ExactPass) -> dict[str, Array]:
        """The observables of a forward pass that has been run by `order`."""
        return {name: self.value(value) for name, value in program.observables}

    def _sites(self, program: ExactPass, times: int) -> None:
        for site in program.sites:
            groups = [*(noises for _, noises in site.channels), site.drawn]
            extents = [
                [(times if field.timed else 1, self.whole(Formula(lines_of(field)))) for field, _ in group]
                for group in groups
            ]
            size, start = sum(n * labels for group in extents for n, labels in group), 0
            found = groups_of(site)
            weights = tuple(self.scalars.of(weight) for weight, _ in found)
            for group, extent in zip(groups, extents, strict=True):
                place = 0
                for (_, symbol), (n, labels) in zip(group, extent, strict=True):
                    self.known[symbol] = Place(start, place, n, labels, size, weights)
                    start, place = start + n * labels, place + n * labels
            self.known[site.symbol] = Groups(size, weights, tuple(some for _, some in found))
            for k, (_, _, along) in enumerate(site.traits):
                values = [self.scalars.of(some[k]) for _, some in found]
                self.known[along] = np.repeat(np.array(values, object), size)[None, :]

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
        if isinstance(value, Formula):
            return self._formula(value)
        if isinstance(value, Call):
            return self.functions[value.function](*value.arguments)
        if isinstance(value, MatMul):
            return self.product(self.value(value.left), self.value(value.right))
        if isinstance(value, Transposed):
            return self.value(value.value).T
        if isinstance(value, Sum):
            return self._sum(value)
        if isinstance(value, Chosen):
            return self._chosen(value)
        if isinstance(value, Blocks):
            return np.block([[self.value(block) for block in row] for row in value.rows])
        if isinstance(value, Tuple):
            return tuple(map(self.value, value.values))
        raise AssertionError(f"{type(value).__name__} cannot be run exactly")

    def whole(self, value: Value | int) -> int:
        """A value that is a whole number."""
        if isinstance(value, int):
            return value
        if isinstance(value, Ref):
            return int(self.known[value.symbol])
        if isinstance(value, Attribute):  # the size of a site
            return int(self.known[value.owner].whole)
        assert isinstance(value, Formula)
        slots = {slot: sp.Integer(self.whole(slot.value)) for slot in value.expression.atoms(Slot)}
        return int(sp.sympify(value.expression).xreplace(slots).subs(self.scalars.substitution))

    def _formula(self, formula: Formula) -> Array:
        expression = sp.sympify(formula.expression)
        values = {slot: self.value(slot.value) for slot in expression.atoms(Slot)}
        arrays = [v for v in values.values() if isinstance(v, np.ndarray)]
        if not arrays:
            return self._at(expression, values)
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        found = np.empty(shape, object)
        spread = {s: np.broadcast_to(v, shape) if isinstance(v, np.ndarray) else v for s, v in values.items()}
        for index in np.ndindex(*shape):
            here = {s: v[index] if isinstance(v, np.ndarray) else v for s, v in spread.items()}
            found[index] = self._at(expression, here)
        return found

    def _at(self, expression: sp.Expr, values: dict[Slot, Any]) -> Quotient:
        """One entry of a formula."""
        slots = expression.atoms(Slot)
        if not slots:
            return self.scalars.of(expression)
        if isinstance(expression, Slot):
            found = values[expression]
            return found if isinstance(found, Quotient) else self.scalars.of(sp.Integer(int(found)))
        if expression.is_Add or expression.is_Mul:
            parts = [self._at(arg, values) for arg in expression.args]
            total = parts[0]
            for part in parts[1:]:
                total = total + part if expression.is_Add else total * part
            return total
        whole = {s: sp.Integer(int(values[s])) for s in slots if not isinstance(values[s], Quotient)}
        if expression.is_Pow:
            exponent = expression.exp.xreplace(whole)
            if exponent.is_Integer:
                return self._power(self._at(expression.base, values), int(exponent))
        exact = {s: self.scalars.expression(values[s]) for s in slots if s not in whole}
        return self.scalars.of(expression.xreplace({**whole, **exact}))

    def _power(self, base: Quotient, exponent: int) -> Quotient:
        total = self.scalars.one
        for _ in range(abs(exponent)):
            total = total * base
        return total if exponent >= 0 else self.scalars.one / total

    def _sum(self, value: Sum) -> Array:
        if not value.terms:
            return self.zeros(tuple(self.whole(Formula(d)) for d in value.shape or ()))
        total: Array = None
        for factor, term in value.terms:
            scale, array = self._formula(factor), self.value(term)
            part = array if factor.expression == 1 else self.times(scale, array)
            total = part if total is None else self.plus(total, part)
        return total

    def _chosen(self, value: Chosen) -> Array:
        slots = {slot: self.value(slot.value) for slot in value.condition.atoms(Slot)}
        arrays = [v for v in slots.values() if isinstance(v, np.ndarray)]
        if not arrays:
            holds = value.condition.xreplace({s: sp.Integer(int(v)) for s, v in slots.items()})
            return self.value(value.value if bool(holds) else value.otherwise)
        yes, no = (self.value(v) for v in (value.value, value.otherwise))
        found = np.empty(arrays[0].shape, object)
        for index in np.ndindex(*found.shape):
            here = {s: sp.Integer(int(v[index] if isinstance(v, np.ndarray) else v)) for s, v in slots.items()}
            side = yes if bool(value.condition.xreplace(here)) else no
            found[index] = side[index] if isinstance(side, np.ndarray) else side
        return found

    # -- arithmetic of arrays

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.full(shape, self.scalars.zero, object)

    def eye(self, size: int) -> np.ndarray:
        found = self.zeros((size, size))
        for i in range(size):
            found[i, i] = self.scalars.one
        return found

    def plus(self, a: Array, b: Array) -> Array:
        a, b = np.broadcast_arrays(a, b)
        found = np.empty(a.shape, object)
        for index in np.ndindex(*a.shape):
            found[index] = self.total((a[index], b[index]))
        return found

    def times(self, a: Array, b: Array) -> Array:
        a, b = np.broadcast_arrays(a, b)
        found = np.empty(a.shape, object)
        for index in np.ndindex(*a.shape):
            x, y = a[index], b[index]
            found[index] = self.scalars.zero if x.is_zero or y.is_zero else x * y
        return found

    def total(self, parts: Iterable[Quotient]) -> Quotient:
        total = self.scalars.zero
        for part in parts:
            if not part.is_zero:
                total = total + part
        if len(total.top) > MOST_TERMS:
            raise TooLarge(f"an order parameter has more than {MOST_TERMS} terms")
        return total

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """A matrix product; most entries are zero."""
        columns = [[(k, x) for k, x in enumerate(column) if not x.is_zero] for column in b.T]
        found = self.zeros((len(a), b.shape[1]))
        for i, row in enumerate(a):
            for j, column in enumerate(columns):
                found[i, j] = self.total(row[k] * x for k, x in column if not row[k].is_zero)
        return found

    # -- functions of the runtime, each under its name there

    def _call_arange(self, count: Value) -> Array:
        return np.arange(self.whole(count))

    def _call_eye(self, size: Value) -> Array:
        return self.eye(self.whole(size))

    def _call_unit(self, block: Value, t: Value | int = 0) -> Array:
        place, time = self.value(block), self.whole(t)
        found = self.zeros((place.labels, place.size))
        for label in range(place.labels if time >= 0 else 0):
            found[label, place.start + time * place.labels + label] = self.scalars.one
        return np.tile(found, (1, len(place.weights)))

    def _call_units(self, block: Value) -> Array:
        place = self.value(block)
        found = self.zeros((place.length, place.size))
        for i in range(place.length):
            found[i, place.start + i] = self.scalars.one
        return np.tile(found, (1, len(place.weights)))

    def _call_lines(self, rows: Value, labels: Value) -> Array:
        array = self.value(rows)
        return np.broadcast_to(array, (self.whole(labels), array.shape[1]))

    def _call_part(self, rows: Value, block: Value) -> Array:
        return self._part(self.value(rows), self.value(block), self.value(block).length)

    def _call_part_before(self, rows: Value, block: Value, count: Value) -> Array:
        return self._part(self.value(rows), self.value(block), self.whole(count))

    def _part(self, rows: np.ndarray, place: Place, count: int) -> np.ndarray:
        """What rows hold of the first entries of a noise or source, as a mean over the groups."""
        total = self.zeros((len(rows), count))
        for number, weight in enumerate(place.weights):
            start = number * place.size + place.start
            total = self.plus(total, self.times(weight, rows[:, start : start + count]))
        return total

    def _call_first(self, rows: Value, count: Value) -> Array:
        return self.value(rows)[: self.whole(count)]

    def _call_lines_at(self, rows: Value, labels: Value, time: Value) -> Array:
        count, at = self.whole(labels), self.whole(time)
        return self.value(rows)[at * count : (at + 1) * count]

    def _call_earlier(self, past: Value, labels: Value, t: Value, lag: int) -> Array:
        rows, count, time = self.value(past), self.whole(labels), self.whole(t) - lag
        return rows[time * count : (time + 1) * count] if time >= 0 else self.zeros((count, rows.shape[1]))

    def _call_past_sum(self, weights: Value, past: Value, labels: Value) -> Array:
        w, rows, count = self.value(weights), self.value(past), self.whole(labels)
        total = self.zeros((count, rows.shape[1]))
        for s, weight in enumerate(w):
            if not weight.is_zero:
                total = self.plus(total, self.times(weight, rows[s * count : (s + 1) * count]))
        return total

    def _call_summed(self, past: Value, labels: Value) -> Array:
        rows, count = self.value(past), self.whole(labels)
        total = self.zeros((count, rows.shape[1]))
        for s in range(len(rows) // count if count else 0):
            total = self.plus(total, rows[s * count : (s + 1) * count])
        return total

    def _call_weighted(self, overlaps: Value, weights: Value, labels: Value) -> Array:
        w = np.repeat(self.value(weights), self.whole(labels))
        return self.times(self.value(overlaps), w[None, :])

    def _call_at_time(self, row: Value, labels: Value, t: Value) -> Array:
        count, time = self.whole(labels), self.whole(t)
        return self.value(row)[:, time * count : (time + 1) * count]

    def _call_dual(self, rows: Value, place: Value, *covariances: Value) -> Array:
        array, site, pieces = self.value(rows), self.value(place), []
        for number, weight in enumerate(site.weights):
            each, start = array[:, number * site.size : (number + 1) * site.size], 0
            for covariance in map(self.value, covariances):
                seen = self.product(each[:, start : start + len(covariance)], covariance)
                pieces.append(self.times(weight, seen))
                start += len(covariance)
            pieces.append(self.times(weight, each[:, start:]))
        return np.concatenate(pieces, axis=1)

    def _call_moment(self, place: Value, function: Value) -> Array:
        assert isinstance(function, Function)
        site, parts = self.value(place), []
        for weight, some in zip(site.weights, site.values, strict=True):
            self.known |= {s: self.scalars.of(v) for s, v in zip(function.arguments, some, strict=True)}
            parts.append(weight * self.value(function.body))
        return self.total(parts)

    def _call_column_of(self, number: Value) -> Array:
        return np.array([[self.value(number)]], object)

    def _call_overlaps(self, seen: Value, past: Value) -> Array:
        return self.product(self.value(seen), self.value(past).T)

    def _call_after(self, t: Value, *rows: Value) -> int:
        return self.whole(t)

    def _call_store(self, past: Value, rows: Value, t: Value) -> Array:
        found, new = self.value(past), self.value(rows)
        time = t if isinstance(t, int) else self.value(t)
        found[time * len(new) : (time + 1) * len(new)] = new
        return found

    def _call_stored(self, past: Value, labels: Value, t: Value) -> Array:
        return self._call_earlier(past, labels, t, 0)

    def _call_products(self, seen: Value, rows: Value) -> Array:
        a, b = np.broadcast_arrays(self.value(seen), self.value(rows))
        found = self.zeros((len(a), 1))
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            found[i, 0] = self.total(p * q for p, q in zip(x, y, strict=True) if not (p.is_zero or q.is_zero))
        return found

    def _call_products_by_time(self, seen: Value, seen_labels: Value, rows: Value, labels: Value) -> Array:
        sides = ((self.value(seen), self.whole(seen_labels)), (self.value(rows), self.whole(labels)))
        a, b = np.broadcast_arrays(*(x.reshape(len(x) // count, count, x.shape[1]) for x, count in sides))
        found = self.zeros(a.shape[:2])
        for index in np.ndindex(*found.shape):
            pairs = zip(a[index], b[index], strict=True)
            found[index] = self.total(p * q for p, q in pairs if not (p.is_zero or q.is_zero))
        return found

    def _call_covariance_before(self, covariance: Value, block: Value, count: Value) -> Array:
        start, size = self.value(block).place, self.whole(count)
        return self.value(covariance)[start : start + size, start : start + size]

    def _call_variances(self, covariance: Value, block: Value) -> Array:
        place = self.value(block)
        return np.diagonal(self.value(covariance))[place.place :][: place.length].reshape(place.times, place.labels)

    def _call_total_of_labels(self, table: Value) -> Array:
        array = self.value(table)
        found = self.zeros((len(array), 1))
        for i, row in enumerate(array):
            found[i, 0] = self.total(row)
        return found

    def _call_mean_of_labels(self, table: Value) -> Array:
        array = self.value(table)
        share = self.scalars.one / self.scalars.of(sp.Integer(array.shape[1]))
        return self.times(self._call_total_of_labels(table), share)

    def _call_series(self, table: Value) -> Array:
        return np.atleast_1d(self.value(table)).reshape(-1)

    def _call_delayed(self, past: Value, labels: Value, lag: int) -> Array:
        rows = self.value(past)
        shift = min(lag * self.whole(labels), len(rows))
        return np.concatenate([self.zeros((shift, rows.shape[1])), rows[: len(rows) - shift]])

    def _call_put(self, covariance: Value, a: Value, t: Value, b: Value, s: Value, values: Value) -> Array:
        found, here, there = self.value(covariance), self.value(a), self.value(b)
        block = self.value(values)
        row = here.place + self.whole(t) * here.labels
        column = there.place + (0 if s is None else self.whole(s) * there.labels)
        found[row : row + block.shape[0], column : column + block.shape[1]] = block
        found[column : column + block.shape[1], row : row + block.shape[0]] = block.T
        return found

    def _call_entry(self, column: Value) -> Array:
        return self.value(column).reshape(-1)[0]

    def _call_store_number(self, table: Value, value: Value, t: Value) -> Array:
        found = self.value(table)
        found[self.whole(t)] = self.value(value)
        return found

    def _call_total(self, column: Value) -> Array:
        array = self.value(column)
        found = self.zeros((1, array.shape[1]))
        for j in range(array.shape[1]):
            found[0, j] = self.total(array[:, j])
        return found

    def _call_given(self, data: Value, t: Value | None, lag: int) -> Array:
        table = self._array(data)
        if t is not None:
            now = self.whole(t) - lag
            table = table[now] if now >= 0 else self.zeros(table.shape[1:])
        return table if table.ndim == 2 else table[:, None]

    def _call_root(self, table: Value) -> Array:
        assert isinstance(table, Call)
        data, t, lag = table.arguments
        assert isinstance(data, Formula) and isinstance(lag, int)
        given = self._numbers(data)
        if isinstance(t, Value):
            now = self.whole(t) - lag
            given = given[now] if now >= 0 else np.zeros(given.shape[1:])
        values, vectors = np.linalg.eigh(given)
        return self._quotients(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)

    def _call_selection(self, rows: Tuple, columns: Tuple, places: Tuple) -> Array:
        own, others, where = (tuple(self.whole(v) for v in some.values) for some in (rows, columns, places))
        sides = [list(product(*map(range, sizes))) for sizes in (own, others)]
        found = self.zeros((len(sides[0]), len(sides[1])))
        for i, one in enumerate(sides[0]):
            for j, other in enumerate(sides[1]):
                if all(place < 0 or one[place] == label for place, label in zip(where, other, strict=True)):
                    found[i, j] = self.scalars.one
        return found

    def _call_softmax(self, *_: Value) -> Array:
        raise DeriveError("softmax has no exact expansion; use `derive solve`")

    _call_softmax_by_time = _call_softmax

    def _call_apart(self, table: Value, sizes: Value) -> Array:
        return self.value(table)

    def _call_listed(self, table: Value) -> Array:
        return self.value(table).reshape(-1, 1)

    def _call_given_series(self, data: Value, timed: int, lag: int, turned: int | None = None) -> Array:
        table = self._array(data)
        table = table if timed else table[None]
        if turned is not None:
            table = (np.swapaxes(table, 1, 2) if turned else table).reshape(len(table), -1)
        if not timed:
            return table
        lag = min(lag, len(table))
        return np.concatenate([self.zeros((lag, *table.shape[1:])), table[: len(table) - lag]])

    def _array(self, data: Value) -> np.ndarray:
        """Data as quotients."""
        return self._quotients(self._numbers(data))

    def _numbers(self, data: Value) -> np.ndarray:
        assert isinstance(data, Formula)
        name = str(data.expression)
        if name not in self.arrays:
            raise DeriveError("data are numbers, not symbols, so there is no exact expansion; use `derive solve`")
        return np.asarray(self.arrays[name], float)

    def _quotients(self, given: np.ndarray) -> np.ndarray:
        found = self.zeros(given.shape)
        for index in np.ndindex(*given.shape):
            found[index] = self.scalars.of(sp.Rational(repr(float(given[index]))))
        return found

    def _call_diagonal(self, weights: Value, size: Value, labels: Value) -> Array:
        count = self.whole(size)
        w = np.repeat(np.atleast_1d(self.value(weights)).reshape(-1), self.whole(labels))
        found = self.zeros((count, count))
        for i in range(count):
            found[i, i] = w[i if len(w) > 1 else 0]
        return found

    def _call_taken_at(self, table: Value, time: Value) -> Array:
        when = self.whole(time)
        return self.value(table).reshape(-1)[when] if when >= 0 else self.zeros(())

    def _call_by_time(self, table: Value) -> Array:
        return self.value(table).reshape(-1)

    def _call_over_time(self, table: Value, count: Value) -> Array:
        assert isinstance(table, Table)
        times = self.whole(count)
        found = self.zeros((times, len(table.rows), len(table.rows[0])))
        for i, row in enumerate(table.rows):
            for j, entry in enumerate(row):
                found[:, i, j] = np.broadcast_to(self.value(entry), (times,))
        return found

    def _call_initial_coefficients(self, matrix: Value, entry: Value, forcing: Value) -> Array:
        steps, start, added = (self.value(x) for x in (matrix, entry, forcing))
        now, found = start[0], []
        for step, more in zip(steps, added, strict=True):
            found.append(now[:, 0])
            now = self.plus(self.product(step, now), more)
        return np.array(found, object)

    def _call_history_coefficients(self, matrix: Value, entry: Value, forcing: Value) -> Array:
        steps, start = self.value(matrix), self.value(entry)
        count = len(steps)
        now, found = self.zeros((steps.shape[1], count)), []
        for t in range(count):
            found.append(now)
            now = self.product(steps[t], now)
            now[:, t] = start[t][:, 0]
        return np.array(found, object)

    def _call_coefficient(self, table: Value, t: Value, position: Value) -> Array:
        return self.value(table)[max(self.whole(t), 0), position]

    def _call_coefficients(self, table: Value, t: Value, position: Value, times: Value) -> Array:
        return self.value(table)[max(self.whole(t), 0), position, : self.whole(times)]
