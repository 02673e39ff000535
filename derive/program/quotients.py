"""Evaluation of programs over the field of rational functions in the open parameters, at fixed whole numbers.

Arrays contain quotients of polynomials. Each runtime function that the constant matrix of a cycle of A(z) calls has a
counterpart of the same name here; those of the forward pass are in derive/program/exact_run.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial, reduce, singledispatchmethod
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
from derive.program import nodes as ir

MOST_TERMS = 20_000
"""Maximal number of terms in the numerator of an entry: bounds time and memory."""

Array = Any
"""An array of quotients or integers, or a single one."""


def _is_root(node: sp.Basic) -> bool:
    return bool(node.is_Pow and node.exp.is_Rational and not node.exp.is_Integer and not node.base.atoms(ir.Slot))


def _radicals(power: sp.Pow) -> list[tuple[sp.Expr, sp.Rational]]:
    """Return the bases and exponents of a root.

    A number has one per prime factor, so that sqrt(2) sqrt(3) = sqrt(6).
    """
    if power.base.is_Integer and power.base > 1:
        return [(sp.Integer(prime), n * power.exp) for prime, n in sp.factorint(power.base).items()]
    return [(power.base, power.exp)]


class Scalars:
    """Conversion of expressions to quotients of polynomials; each radical is a generator of its own."""

    def __init__(self, expressions: Iterable[sp.Expr], substitution: dict[sp.Basic, sp.Basic]):
        self.substitution = substitution
        formulas = [sp.sympify(e) for e in expressions]
        # subexpressions too: a factor that is zero here must not hide the generators of the others
        parts = {node for e in formulas for node in sp.preorder_traversal(e) if _is_root(node)}
        powers: dict[sp.Expr, int] = {}
        brought = any(_is_root(node) for e in substitution.values() for node in sp.preorder_traversal(sp.sympify(e)))
        for e in dict.fromkeys((*formulas, *parts)):
            if not brought and all(n.is_Pow and n.exp.is_Integer for n in e.atoms(sp.Pow, sp.Function)):
                continue  # a quotient of polynomials, before and after
            for node in filter(_is_root, sp.preorder_traversal(e.subs(substitution))):
                for base, exponent in _radicals(node):
                    powers[base] = int(sp.ilcm(powers.get(base, 1), exponent.q))
        roots = {base: sp.Symbol(f"_radical{i}") for i, base in enumerate(sorted(powers, key=sp.default_sort_key))}
        self.roots = {base: (root, powers[base]) for base, root in roots.items()}
        self.meaning = {root: base ** sp.Rational(1, q) for base, (root, q) in self.roots.items()}
        symbols = {p for e in formulas for p in e.atoms(Parameter) if p not in substitution}
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
                f"fix its parameters with --at, or solve for numbers with `derive solve`"
            ) from None

    def expression(self, quotient: Quotient) -> sp.Expr:
        """Return a quotient as a SymPy expression, with the radicals restored."""
        return self.field.decode(quotient).xreplace(self.meaning)


class Evaluation:
    """Interpreter of programs at fixed parameters. `arrays` contains the data as decimals, which are read as exact
    fractions."""

    lazy: frozenset[str] = frozenset()
    """Runtime functions that evaluate their arguments themselves."""

    def __init__(self, scalars: Scalars, arrays: Mapping[str, Any] = MappingProxyType({})):
        self.scalars, self.arrays = scalars, arrays
        self.zero: Array = scalars.zero
        self.one: Array = scalars.one
        self.known: dict[ir.Symbol, Any] = {}
        self.slots = cache(_slots)
        self.numbers = np.frompyfunc(self._number, 1, 1)
        self.data_of = cache(self._data)

    # -- programs

    def run(self, statements: Iterable[ir.Let | ir.Do]) -> None:
        """Execute statements in order."""
        for statement in statements:
            value = self.evaluate(statement.value)
            self.known |= dict.fromkeys(statement.symbols, value)

    def call(self, function: ir.Definition, arguments: dict[ir.Symbol, Any]) -> Array:
        """Return the result of calling a function of the program."""
        self.known |= arguments
        self.run(function.body)
        return self.evaluate(function.result)

    # -- values

    @singledispatchmethod
    def evaluate(self, value: Any) -> Any:
        """Return the value of a node."""
        raise AssertionError(f"{type(value).__name__} cannot be evaluated exactly")

    @evaluate.register(int)
    @evaluate.register(type(None))
    def _plain(self, value: int | None) -> int | None:
        return value

    @evaluate.register
    def _ref(self, value: ir.Ref) -> Any:
        return self.known[value.symbol]

    @evaluate.register
    def _item(self, value: ir.Item) -> Any:
        return self.known[value.owner][value.keys]

    @evaluate.register
    def _quoted(self, value: ir.Quoted) -> str:
        return value.word

    @evaluate.register
    def _tuple(self, value: ir.Tuple) -> tuple[Any, ...]:
        return tuple(map(self.evaluate, value.values))

    @evaluate.register(ir.Call)
    @evaluate.register(ir.Op)
    def _called(self, value: ir.Call | ir.Op) -> Any:
        function = getattr(self, value.function, None)
        if function is None:
            raise DeriveError(f"{value.function} has no exact expansion; use `derive solve`")
        return function(*(value.arguments if value.function in self.lazy else map(self.evaluate, value.arguments)))

    @evaluate.register
    def _product(self, value: ir.SiteProduct) -> Array:
        return self._scaled(value.factor, reduce(mul, map(self.evaluate, value.vectors)))

    @evaluate.register
    def _matmul(self, value: ir.MatMul) -> Array:
        return self.product_of(self.evaluate(value.left), self.evaluate(value.right))

    @evaluate.register
    def _transposed(self, value: ir.Transposed) -> Array:
        return self.evaluate(value.value).T

    @evaluate.register
    def _sum(self, value: ir.WeightedSum) -> Array:
        if not value.terms:
            return self.zeros(tuple(map(self.whole, value.shape or ())))
        return reduce(add, (self._scaled(factor, self.evaluate(term)) for factor, term in value.terms))

    def _scaled(self, factor: ir.Formula, value: Array) -> Array:
        return value if factor.expression is sp.S.One else self.evaluate(factor) * value

    @evaluate.register
    def _table(self, value: ir.EntryTable) -> list[list[Array]]:
        return [list(map(self.evaluate, row)) for row in value.rows]

    @evaluate.register
    def _blocks(self, value: ir.Blocks) -> Array:
        return np.block([list(map(self.evaluate, row)) for row in value.rows])

    @evaluate.register
    def _function(self, value: ir.Function) -> Callable[..., Array]:
        def applied(*arguments: Array) -> Array:
            self.known |= zip(value.arguments, arguments, strict=True)
            return self.evaluate(value.body)

        return applied

    # -- formulas

    @evaluate.register
    def _formula(self, value: ir.Formula) -> Array:
        expression = value.expression
        if isinstance(expression, Data):
            return self.data_of(expression.name)
        values = {slot: self.evaluate(slot.value) for slot in self.slots(expression)}
        return self._arithmetic(expression, values)

    def whole(self, expression: sp.Expr) -> int:
        """Return the value of an expression that is a whole number."""
        return int(self.scalars.of(expression))

    def _arithmetic(self, expression: sp.Expr, values: dict[ir.Slot, Any]) -> Array:
        """Evaluate a formula at the values of its slots, entry by entry; parts without slots are converted once."""
        slots = self.slots(expression)
        if not slots:
            return self.scalars.of(expression)
        if expression.is_Symbol:
            return self.numbers(values[expression])
        if expression.is_Add or expression.is_Mul:
            return reduce(add if expression.is_Add else mul, (self._arithmetic(e, values) for e in expression.args))
        entry = np.frompyfunc(partial(self._entry, expression, slots), len(slots), 1)
        return entry(*(values[slot] for slot in slots))

    def _entry(self, expression: sp.Expr, slots: tuple[ir.Slot, ...], *here: Any) -> Quotient:
        """Return one entry of a power or of another function."""
        values = dict(zip(slots, here, strict=True))
        whole = {s: sp.Integer(int(x)) for s, x in values.items() if not isinstance(x, Quotient)}
        if expression.is_Pow:
            exponent = expression.exp.xreplace(whole)
            if exponent.is_Integer:
                base: Quotient = self._arithmetic(expression.base, values)
                return self._power(base, int(exponent))
        exact = {s: self.scalars.expression(x) for s, x in values.items() if s not in whole}
        return self.scalars.of(expression.xreplace({**whole, **exact}))

    def _power(self, base: Quotient, exponent: int) -> Quotient:
        if base.is_zero and exponent < 0:
            raise DeriveError("an equation divides by zero here, so there is no exact expansion; take other values")
        return base**exponent

    def _number(self, entry: Any) -> Quotient:
        return entry if isinstance(entry, Quotient) else self.scalars.of(sp.Integer(int(entry)))

    def _data(self, name: str) -> Array:
        if name not in self.arrays:
            raise DeriveError("data are numbers, not symbols, so no exact expansion exists; use `derive solve`")
        return self.decimals(np.asarray(self.arrays[name], float))

    def decimals(self, numbers: Array) -> Array:
        """Return decimals as exact fractions."""
        return np.frompyfunc(lambda x: self.scalars.of(sp.Rational(repr(float(x)))), 1, 1)(numbers)

    # -- arithmetic of arrays

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return np.full(shape, self.zero, object)

    def product_of(self, a: Array, b: Array) -> Array:
        """Return a matrix product, skipping zero entries."""
        columns = [[(k, x) for k, x in enumerate(column) if not x.is_zero] for column in b.T]
        product = self.zeros((len(a), b.shape[1]))
        for i, row in enumerate(a):
            for j, column in enumerate(columns):
                terms = (row[k] * x for k, x in column if not row[k].is_zero)
                product[i, j] = check_terms(reduce(add, terms, self.zero))
        return product

    # -- functions of the runtime, each under its name there

    def arange(self, count: Array) -> Array:
        return np.arange(int(count))

    def operator(self, entries: Array) -> Array:
        return entries

    def identity(self, size: Array) -> Array:
        return np.where(np.eye(int(size), dtype=bool), self.one, self.zero)

    def diagonal(self, weights: Array, size: Array, labels: Array) -> Array:
        each = np.broadcast_to(np.ravel(weights), (int(size) // int(labels),))
        return self.identity(size) * np.repeat(each, int(labels))

    def taken_at(self, table: Array, time: Array) -> Array:
        return np.ravel(table)[int(time)] if int(time) >= 0 else self.zero

    def by_time(self, table: Array) -> Array:
        return np.ravel(table)

    def over_time(self, rows: list[list[Array]], count: Array) -> Array:
        each = [[np.broadcast_to(np.asarray(entry, object), (int(count),)) for entry in row] for row in rows]
        return np.moveaxis(np.array(each, object), 2, 0)

    def initial_coefficients(self, matrix: Array, entry: Array, forcing: Array) -> Array:
        now, rows = entry[0], []
        for step, more in zip(matrix, forcing, strict=True):
            rows.append(now[:, 0])
            now = self.product_of(step, now) + more
        return np.array(rows, object)

    def history_coefficients(self, matrix: Array, entry: Array, forcing: Array) -> Array:
        now, rows = self.zeros((matrix.shape[1], len(matrix))), []
        for t, (step, start) in enumerate(zip(matrix, entry, strict=True)):
            rows.append(now)
            now = self.product_of(step, now)
            now[:, t] = start[:, 0]
        return np.array(rows, object)

    def coefficient(self, table: Array, time: Array, position: int) -> Array:
        # indices beyond the end are clamped, as in JAX; no result reads them
        return table[min(max(int(time), 0), len(table) - 1)][position]

    def coefficients(self, table: Array, time: Array, position: int, times: Array) -> Array:
        return self.coefficient(table, time, position)[: int(times)]


def _slots(expression: sp.Basic) -> tuple[ir.Slot, ...]:
    return tuple(sorted(expression.atoms(ir.Slot), key=lambda slot: slot.number))


def check_terms(entry: Quotient) -> Quotient:
    """Return the quotient, or raise if it has too many terms."""
    if len(entry.top) > MOST_TERMS:
        raise TooLarge(f"an order parameter has more than {MOST_TERMS} terms")
    return entry
