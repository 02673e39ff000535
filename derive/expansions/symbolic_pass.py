"""The training level with symbols: one forward pass at a given number of steps, exact in the open parameters.

All laws must be linear. Every field is then a row of coefficients over the Gaussian noises and sources of its site;
what a generated solver does in floating point is done here with quotients of polynomials.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.polys.polyerrors import PolynomialError

from derive.algebra.polynomials import TooLarge
from derive.algebra.quotients import Quotient, RationalFunctions
from derive.algebra.words import Combination, Diagonal, Letter
from derive.errors import DeriveError
from derive.language.vectors import PAST, Field, FieldAt, Mean
from derive.pipeline import ProbedMatrix
from derive.records.probe import MAP, Cycle, Unknown
from derive.records.saddle import Covariance, Memory
from derive.records.system import DisorderRule, LinearRule, Rule, SystemField, Term, quadratic_pairs

MOST_TERMS = 20_000
"""The most terms that the numerator of one entry may have."""
MOST_ROWS = 12
"""The most rows of a matrix whose characteristic polynomial is taken."""

Place = tuple[Field, int | None, int | None]
"""A noise or source, or the value of a field: its time and its class label, where it has them."""
Row = dict[Place, Quotient]
Matrix = list[list[Quotient]]


class Scalars:
    """Expressions in the parameters as quotients of polynomials; a root of something is a generator of its own."""

    def __init__(self, expressions: Iterable[sp.Expr], substitution: dict, keep: tuple[sp.Symbol, ...]):
        self.substitution = substitution
        plain = [sp.sympify(e).subs(substitution) for e in expressions]
        symbols = {s for e in plain for s in e.free_symbols if s not in keep}
        powers: dict[sp.Expr, int] = {}
        for node in (node for e in plain for node in sp.preorder_traversal(e)):
            if node.is_Pow and node.exp.is_Rational and not node.exp.is_Integer:
                powers[node.base] = int(sp.ilcm(powers.get(node.base, 1), node.exp.q))
        roots = {
            base: sp.Symbol(f"_radical{i}", positive=True)
            for i, base in enumerate(sorted(powers, key=sp.default_sort_key))
        }
        self.roots = {base: (root, powers[base]) for base, root in roots.items()}
        self.meaning = {root: base ** sp.Rational(1, q) for base, (root, q) in self.roots.items()}
        generators = (symbols - set(roots)) | set(roots.values())
        self.field = RationalFunctions(sorted(generators, key=lambda s: s.name))
        self.zero, self.one = (self.field.quotient(self.field.context.constant(n)) for n in (0, 1))
        self.converted = cache(self._convert)

    def of(self, expression: sp.Expr) -> Quotient:
        return self.converted(sp.sympify(expression))

    def _convert(self, expression: sp.Expr) -> Quotient:
        plain = expression.subs(self.substitution)
        plain = plain.replace(
            lambda e: e.is_Pow and e.exp.is_Rational and not e.exp.is_Integer and e.base in self.roots,
            lambda e: self.roots[e.base][0] ** (e.exp * self.roots[e.base][1]),
        )
        plain = plain.xreplace({base: root**q for base, (root, q) in self.roots.items() if base.is_Symbol})
        try:
            return self.field.convert(plain)
        except (PolynomialError, TypeError, ValueError, ZeroDivisionError):
            raise DeriveError(
                f"{expression} is not an algebraic function of the parameters here, so there is no exact expansion; "
                "fix what it depends on with --at, or solve for numbers with `derive solve`"
            ) from None

    def expression(self, quotient: Quotient) -> sp.Expr:
        """Back to SymPy, with roots written as roots."""
        return self.field.decode(quotient).xreplace(self.meaning)


class SymbolicPass:
    """Order parameters before the last update. `substitution` gives whole numbers, and whatever else is fixed."""

    def __init__(self, probed: ProbedMatrix, substitution: dict):
        self.blocks = probed.blocks
        self.order, self.single_site = probed.training.order, probed.training.single_site
        self.system = probed.training.system
        fields = [*(f.field for f in self.system.training), *self.system.sources]
        self.clock = next((f.clock for f in fields if f.clock is not None), None)
        clock_symbols = () if self.clock is None else (self.clock,)
        self.scalars = Scalars(self._expressions(), substitution, (PAST, *clock_symbols))
        self.steps, self.times, self.labels = 1, 1, 1
        if self.clock is not None:
            self.steps = int(self.clock.steps.subs(substitution))
            self.times = int(self.clock.points.subs(substitution))
            self.labels = 1 if self.clock.channels is None else int(self.clock.channels.subs(substitution))
        self.coefficients = self._recurrences()
        self.rows: dict[Place, Row] = {}
        self.covariance: dict[tuple[Place, Place], Quotient] = {}

    def characteristic(self, cycle: Cycle) -> tuple[sp.Expr, ...]:
        """Factors, in MAP, of the characteristic polynomial of a ring's constant matrix."""
        unknowns = self.blocks.projected.unknowns
        size = min(sum(len(self._index(unknowns[r].field)) for r in group) for group in cycle.groups)
        if size > MOST_ROWS:
            raise TooLarge(f"its matrix has {size} rows, more than {MOST_ROWS}")
        if not self.rows:
            self._run()
        product: Matrix | None = None
        for group, following in zip(cycle.groups, (*cycle.groups[1:], cycle.groups[0]), strict=True):
            coupling = self._coupling(group, following)
            product = coupling if product is None else self._times(product, coupling)
        assert product is not None
        return tuple(
            sp.fraction(sp.together(sp.Add(*(self.scalars.expression(c) * MAP**k for k, c in enumerate(part)))))[0]
            for part in self._characteristic(product)
        )

    def resolved(self, expression: sp.Expr) -> sp.Expr:
        """An expression of the probe with the coefficients of updated weights filled in."""
        made = {f: self.scalars.expression(self._coefficient(f, {})) for f in expression.atoms(AppliedUndef)}
        return expression.xreplace(made).subs(self.scalars.substitution)

    # numbers that stand in the equations

    def _expressions(self) -> list[sp.Expr]:
        found: list[sp.Expr] = [s.scale for s in self.system.sources]
        for f in self.system.training:
            for rule in (f.rule, *f.starts):
                if isinstance(rule, LinearRule):
                    found += [t.coefficient for t in rule.terms]
        saddle = self.single_site.saddle
        found += [c.coefficient for c in saddle.covariances] + [m.coefficient for m in saddle.memories]
        for r in self.system.recurrences:
            found += [*(e for row in r.matrix for e in row), *r.entry, *r.forcing]
        for _, block in self.blocks.blocks:
            for scale, word in block.combination:
                found += [scale, *(letter.weight for letter in word if isinstance(letter, Diagonal))]
        # means and coefficients by recurrence are made of the others
        return [sp.sympify(e).replace(lambda n: isinstance(n, Mean | AppliedUndef), lambda n: sp.S.One) for e in found]

    def _recurrences(self) -> dict[str, dict[tuple[int, ...], Quotient]]:
        """name -> (t,) or (t, s) -> the coefficient of an updated weight."""
        tables: dict[str, dict[tuple[int, ...], Quotient]] = {}
        for r in self.system.recurrences:
            now: dict[int | None, list[Quotient]] = {}
            if r.initial:
                now[None] = [self._number(e, {self.clock: 0}) for e in r.entry]
            for name in r.names:
                tables[name] = {}
            for t in range(self.steps + 1):
                at = {self.clock: sp.Integer(t)}
                for s, values in now.items():
                    for name, value in zip(r.names, values, strict=True):
                        tables[name][(t,) if s is None else (t, s)] = value
                matrix = [[self._number(e, at) for e in row] for row in r.matrix]
                now = {
                    s: [self._sum(m * v for m, v in zip(row, vs, strict=True)) for row in matrix]
                    for s, vs in now.items()
                }
                if r.initial:
                    now[None] = [v + self._number(e, at) for v, e in zip(now[None], r.forcing, strict=True)]
                else:
                    now[t] = [self._number(e, at) for e in r.entry]
        return tables

    def _number(self, expression: sp.Expr, at: dict) -> Quotient:
        """A coefficient at given times, with its means and recurrent coefficients."""
        expression = sp.sympify(expression)
        inner: dict[sp.Basic, sp.Expr] = {}
        for node in sorted(expression.atoms(Mean, AppliedUndef), key=sp.default_sort_key):
            value = self._mean(node, at) if isinstance(node, Mean) else self._coefficient(node, at)
            inner[node] = self.scalars.expression(value)
        return self.scalars.of(expression.xreplace(inner).subs(at))

    def _coefficient(self, node: AppliedUndef, at: dict) -> Quotient:
        times = tuple(int(a.subs(at).subs(self.scalars.substitution)) for a in node.args)
        return self.coefficients[node.func.__name__].get(times, self.scalars.zero)

    def _mean(self, average: Mean, at: dict) -> Quotient:
        pairs = quadratic_pairs(average)
        assert pairs is not None
        parts = []
        for scale, a, b in pairs:
            if a.field.labelled or b.field.labelled:
                raise DeriveError(
                    f"{average}: coefficients made of means are not available for fields with class labels"
                )
            parts.append(self._number(scale, at) * self._overlap(self._value(a, at, None), self._value(b, at, None)))
        return self._sum(parts)

    # rows over noises and sources

    def _places(self, field: Field, time: int | None) -> list[Place]:
        return [(field, time if field.timed else None, c) for c in self._labels(field)]

    def _labels(self, field: Field) -> list[int | None]:
        return list(range(self.labels)) if field.labelled else [None]

    def _known(self, field: Field, time: int | None) -> list[int | None]:
        """The times up to now at which a field has been computed."""
        if not field.timed:
            return [None]
        last = -1 if time is None else time
        return [s for s in range(last + 1) if self._places(field, s)[0] in self.rows]

    def _value(self, value: FieldAt, at: dict, label: int | None) -> Row:
        field = value.field
        time = None if value.time is None else int(sp.sympify(value.time).subs(at))
        if time is not None and time < 0:
            return {}
        return self.rows[field, time, label if field.labelled else None]

    def _sum(self, parts: Iterable[Quotient]) -> Quotient:
        total = self.scalars.zero
        for part in parts:
            total = total + part
        if len(total.top) > MOST_TERMS:
            raise TooLarge(f"an order parameter has more than {MOST_TERMS} terms")
        return total

    def _overlap(self, left: Row, right: Row) -> Quotient:
        return self._sum(
            x * y * self.covariance[i, j]
            for i, x in left.items()
            for j, y in right.items()
            if (i, j) in self.covariance
        )

    def _add(self, total: Row, scale: Quotient, row: Row) -> None:
        if not scale.is_zero:
            for place, value in row.items():
                total[place] = self._sum((total[place], scale * value)) if place in total else scale * value

    # the pass

    def _run(self) -> None:
        table = {f.field: f for f in self.system.training}
        fields = [table[f] for f in self.order.order]
        for source in self.system.sources:
            for time in range(self.times) if source.timed else (None,):
                for place in self._places(source, time):
                    self.rows[place] = {place: self._number(source.scale, {})}
                    self.covariance[place, place] = self.scalars.one
        for f in fields:
            if not f.field.timed:
                self._compute(f, None)
        for time in range(self.times):
            for f in fields:
                if f.field.timed:
                    self._compute(f, time)

    def _compute(self, f: SystemField, time: int | None) -> None:
        at = {} if time is None else {self.clock: sp.Integer(time)}
        rule = f.starts[time] if time is not None and time < len(f.starts) else f.rule
        for place in self._places(f.field, time):
            self.rows[place] = self._row(rule, place, at)
        if isinstance(f.rule, DisorderRule):
            ranks = {field: i for i, field in enumerate(self.order.order)}
            for c in self.single_site.saddle.covariances:
                if c.left == f.field and c.right.role != "spectral":
                    if c.right.timed or ranks[c.right] <= ranks[f.field]:
                        self._correlate(c, time)

    def _row(self, rule: Rule, place: Place, at: dict) -> Row:
        total: Row = {}
        if isinstance(rule, DisorderRule):
            total[place] = self.scalars.one
            for m in self.single_site.memories(place[0]):
                self._remember(m, place, total)
        elif isinstance(rule, LinearRule):
            for term in rule.terms:
                self._add_term(term, place, at, total)
        return total

    def _remember(self, m: Memory, place: Place, total: Row) -> None:
        _, time, label = place
        answering = self.rows[m.a, time if m.a.timed else None, label if m.a.labelled else None]
        scale = self._number(m.coefficient, {})
        for s in [time] if m.fresh else self._known(m.on, time):
            for b in self._labels(m.on):
                kicked: Place = (m.noise, s if m.noise.timed else None, b if m.noise.labelled else None)
                on: Place = (m.on, s if m.on.timed else None, b)
                if kicked in answering and on in self.rows:
                    self._add(total, scale * answering[kicked], self.rows[on])

    def _add_term(self, term: Term, place: Place, at: dict, total: Row) -> None:
        target, _, label = place
        past = (None,) if term.past is None else range(int(sp.sympify(term.past).subs(at)))
        vector = term.vector.field
        if term.pair is None and vector.labelled and not target.labelled:
            raise DeriveError(f"{target} has no class labels but its equation uses {vector}, which has")
        for s in past:
            when = at if s is None else {**at, PAST: sp.Integer(s)}
            scale = self._number(term.coefficient, when)
            if term.pair is None:
                self._add(total, scale, self._value(term.vector, when, label))
                continue
            left, right = term.pair
            seen = self._value(right, when, label)
            for b in self._labels(vector):
                overlap = self._overlap(self._value(left, when, b), seen)
                self._add(total, scale * overlap, self._value(term.vector, when, b))

    def _correlate(self, c: Covariance, time: int | None) -> None:
        scale = self._number(c.coefficient, {})
        for left in self._places(c.left, time):
            row = self.rows[c.a, time if c.a.timed else None, left[2] if c.a.labelled else None]
            for s in [time] if c.fresh else self._known(c.b, time):
                for b in self._labels(c.b):
                    right: Place = (c.right, s if c.right.timed else None, b if c.right.labelled else None)
                    value = scale * self._overlap(row, self.rows[c.b, s if c.b.timed else None, b])
                    self.covariance[left, right] = self.covariance[right, left] = value

    # matrices over training times

    def _index(self, field: Field) -> list[Place]:
        """The values of a field that take part in spikes: times before the last update, then labels."""
        times = range(self.steps) if field.timed else (None,)
        return [place for time in times for place in self._places(field, time)]

    def _letter(self, letter: Letter | Diagonal) -> Matrix:
        zero = self.scalars.zero
        if isinstance(letter, Diagonal):
            places = self._index(letter.field)
            weights = [self._number(letter.weight, {PAST: sp.Integer(p[1] or 0)}) for p in places]
            return [[w if i == j else zero for j in range(len(places))] for i, w in enumerate(weights)]
        rows, columns = self._index(letter.a), self._index(letter.b)
        if letter.kind == "C":
            matrix = [[self._overlap(self.rows[i], self.rows[j]) for j in columns] for i in rows]
        else:
            matrix = [[self.rows[i].get(j, zero) for j in columns] for i in rows]
        return [list(column) for column in zip(*matrix, strict=True)] if letter.transposed else matrix

    def _times(self, a: Matrix, b: Matrix) -> Matrix:
        columns = list(zip(*b, strict=True))
        return [
            [self._sum(x * y for x, y in zip(row, c, strict=True) if not (x.is_zero or y.is_zero)) for c in columns]
            for row in a
        ]

    def _combination(self, combination: Combination, row: Unknown, column: Unknown) -> Matrix:
        shape = len(self._index(row.field)), len(self._index(column.field))
        total = [[self.scalars.zero] * shape[1] for _ in range(shape[0])]
        for scale, word in combination:
            factor = self._number(scale, {})
            product: Matrix = [
                [self.scalars.one if i == j else self.scalars.zero for j in range(shape[0])] for i in range(shape[0])
            ]
            for letter in word:
                product = self._times(product, self._letter(letter))
            total = [[x + factor * y for x, y in zip(a, b, strict=True)] for a, b in zip(total, product, strict=True)]
        return total

    def _coupling(self, group: tuple[int, ...], following: tuple[int, ...]) -> Matrix:
        unknowns = self.blocks.projected.unknowns
        matrix: Matrix = []
        for r in group:
            parts = [
                self._combination(self.blocks.block(r, c).combination, unknowns[r], unknowns[c]) for c in following
            ]
            matrix += [[x for row in rows for x in row] for rows in zip(*parts, strict=True)]
        return matrix

    def _characteristic(self, matrix: Matrix) -> list[list[Quotient]]:
        """Coefficients, lowest first, of det(s - M) of each set of rows that feed on each other."""
        feeds = [{j for j, x in enumerate(row) if not x.is_zero} for row in matrix]
        reach = [_reached(i, feeds) for i in range(len(matrix))]
        found, seen = [], set()
        for i in range(len(matrix)):
            if i in seen or i not in reach[i]:
                continue
            component = [j for j in sorted(reach[i]) if i in reach[j]]
            seen |= set(component)
            found.append(self._faddeev([[matrix[r][c] for c in component] for r in component]))
        return found

    def _faddeev(self, matrix: Matrix) -> list[Quotient]:
        """By Faddeev and LeVerrier: N = M N + c I, where c = - trace(M N) / k."""
        size = len(matrix)
        coefficients = [self.scalars.one]
        current = [[self.scalars.one if i == j else self.scalars.zero for j in range(size)] for i in range(size)]
        for k in range(1, size + 1):
            product = self._times(matrix, current)
            trace = self._sum(product[i][i] for i in range(size))
            c = -(trace / self.scalars.of(sp.Integer(k)))
            coefficients.append(c)
            current = [[x + c if i == j else x for j, x in enumerate(row)] for i, row in enumerate(product)]
        return coefficients[::-1]


def _reached(start: int, feeds: list[set[int]]) -> set[int]:
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        for following in feeds[waiting.pop()] - seen:
            seen.add(following)
            waiting.append(following)
    return seen
