"""Nonlinear laws with Gaussian arguments, and the Gaussian integrals for their averages.

Everything holds conditionally on the traits, which are constants of their sites. A field is Gaussian if it is drawn
from a normal law, is a linear combination of Gaussian fields (over the past or over labels), or is a random matrix
applied to any vector whose memory acts on Gaussian fields. A law is decomposed into a linear part, which may contain
any field, and nonlinear parts, whose arguments must be Gaussian. If this works for all laws and averages, the forward
pass needs Gaussian integrals only; otherwise NotGaussian gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import sympy as sp
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import Boolean, BooleanFunction

from derive.algebra.words import Letter
from derive.equations.layout import Layout, lag_of
from derive.equations.moments import NUMBERS
from derive.errors import DeclarationError
from derive.language.symbols import Sector, free_name
from derive.language.traits import is_trait, traits_in
from derive.language.traversal import ByKind, changed, outermost
from derive.language.vectors import PAST, Field, FieldAt, Mean, axes_of, sector_of, shown, values
from derive.records.system import LinearRule, Rule, SystemField, Term

SMOOTH, SPLIT = 0, -1
"""Kinds of arguments: analytic, or with kinks or jumps. The kind of a polynomial argument is its degree."""

# Bounds on Gaussian integrals: larger ones replace sampling by quadrature in more models, at a higher cost per step.
MOST_SMOOTH = 3
"""Dimension of an integral over analytic arguments."""
MOST_SPLIT = 2
"""Dimension of an integral over arguments with kinks or jumps."""
MOST_EXACT = 300
"""Gauss-Hermite nodes of all polynomial arguments together."""
ANALYTIC = (sp.tanh, sp.sinh, sp.cosh, sp.sech, sp.sin, sp.cos, sp.exp, sp.erf, sp.erfc, sp.atan, sp.asinh)
KINKED = (sp.Abs, sp.sign, sp.Heaviside)
JUMPS = (sp.Heaviside, sp.sign, sp.Piecewise)

Key = tuple[sp.Expr, tuple[Field, ...], tuple[sp.Expr, ...], tuple[int, int | None]]


class NotGaussian(DeclarationError):
    """Raised if averages of a declaration are not Gaussian integrals in few variables, so that it has to be sampled."""


@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """A nonlinear part of a law, or an integrand: an expression in Gaussian arguments and in numbers.

    `holds` is the half-open range of times in which the law applies; its end is None if it is unbounded. `own` is the
    remainder after projection on the Gaussian variables.
    """

    expression: sp.Expr
    symbols: tuple[sp.Symbol, ...]
    number_symbols: tuple[sp.Symbol, ...]
    arguments: tuple[Field, ...]
    numbers: tuple[sp.Expr, ...]
    kinds: tuple[int, ...]
    kinks: tuple[sp.Expr, ...]
    slopes: tuple[sp.Expr, ...] | None
    holds: tuple[int, int | None]
    own: Field
    shown: str
    traits: tuple[FieldAt, ...] = ()
    """The traits on which it depends; their symbols follow those of the numbers."""

    @property
    def straight(self) -> bool:
        """Whether it has one argument and is piecewise linear."""
        return bool(self.kinks) and len(self.symbols) == 1 and _degree(self.expression, self.symbols[0]) <= 1


@dataclass(frozen=True)
class Parts:
    """A right-hand side: linear terms, a constant, and nonlinear parts with their coefficients."""

    linear: tuple[tuple[sp.Expr, FieldAt], ...]
    number: sp.Expr
    laws: tuple[tuple[sp.Expr, GaussianLaw], ...]


class Laws:
    """All laws and averages of a training level, decomposed.

    `letters` and `means` are the order parameters that probed matrices need. `two_time` says whether correlations of
    all pairs of fields are needed, apart from those with integrals of too high a dimension.
    """

    def __init__(self, layout: Layout, letters: Iterable[Letter], means: Iterable[Mean], two_time: bool = False):
        self.layout, self.clock = layout, layout.clock
        self.letters, self.asked = tuple(letters), tuple(means)
        self.written_out: dict[Field, str] = {}
        """Fields that are replaced by their laws inside another law, and which law that is."""
        self.too_large: dict[tuple[Field, Field], str] = {}
        """Pairs of fields whose correlations are integrals of too high a dimension, with the reason."""
        self.rules = {f.field: f for f in layout.fields}
        self.taken = {f.field.name for f in layout.fields} | {s.name for s in layout.system.sources}
        self.ones = {sector: self._one(sector) for sector in layout.sectors}
        self.arguments: dict[Field, LinearRule] = {}
        """Arguments that are linear combinations of fields, each with its rule."""
        self.laws: dict[Key, GaussianLaw] = {}
        self.averages: dict[Mean, Parts] = {}
        self.parts = {
            (f.field, i): self._law_parts(f, rule, i)
            for f in layout.fields
            for i, rule in enumerate(f.rules)
            if rule.laws
        }
        for average in self._averages():
            self.average(average)
        self.meetings = self._meetings()
        if two_time:
            self.meetings, self.too_large = self.all_meetings()
        for law in (*self.laws.values(), *(law for p in self.averages.values() for _, law in p.laws)):
            _check_size(law.kinds, law.shown)
        for (a, b), together in self.meetings.items():
            _check_together(a, b, together)

    def all_meetings(self) -> tuple[dict[tuple[GaussianLaw, GaussianLaw], bool], dict[tuple[Field, Field], str]]:
        """Return the pairs of laws that two-time functions correlate, and the pairs of fields that cannot be
        integrated.

        Correlations of the former are needed at all pairs of times. Those of the latter are integrals of too high a
        dimension.
        """
        meetings, too_large = dict(self.meetings), {}
        for a in self.carried:
            for b in self.carried:
                if a.sector != b.sector:
                    continue
                pairs = [(first, second) for first in self.carried[a] for second in self.carried[b]]
                try:
                    for first, second in pairs:
                        _check_together(first, second, together=False)
                except NotGaussian as reason:
                    too_large[a, b] = str(reason)
                    continue
                meetings |= {pair: False for first, second in pairs for pair in ((first, second), (second, first))}
        return meetings, too_large

    def _one(self, sector: Sector) -> Field:
        constants = [s for s in self.layout.system.sources if s.role == "constant" and s.sector == sector]
        return constants[0] if constants else Field(free_name(f"one_{sector}", self.taken), sector, role="constant")

    # -- Gaussian fields

    @cached_property
    def gaussian(self) -> frozenset[Field]:
        """The Gaussian fields: the largest set whose rules and memories are linear in the set."""
        kept = {f.field for f in self.layout.fields} | set(self.layout.system.sources) | set(self.ones.values())
        while True:
            left = {f for f in kept if f not in self.rules or self._stays(self.rules[f], kept)}
            if left == kept:
                return frozenset(kept)
            kept = left

    def _stays(self, f: SystemField, kept: set[Field]) -> bool:
        if any(m.on not in kept for m in self.layout.memories(f.field)):
            return False
        for rule in f.rules:
            if any(term.vector.field not in kept for term in rule.terms):
                return False
            for law in rule.laws:
                linear, _, nonlinear = _decompose(law)
                if nonlinear or any(v.field not in kept for _, v in linear):
                    return False
        return True

    # -- decomposition

    def _law_parts(self, f: SystemField, rule: Rule, number: int) -> Parts:
        count = len(f.starts)
        holds = (count, None) if number == 0 else (number - 1, number)
        return self._parts(rule.laws[0], f.field, holds, f"the law of {f.field}")

    def _parts(self, expression: sp.Expr, like: Field, holds: tuple[int, int | None], where: str) -> Parts:
        """Decompose an expression over the sites of a field; its laws have the times and labels of that field."""
        linear, number, nonlinear = self._resolve(expression, where)
        groups: dict[tuple[FieldAt, ...], list[tuple[sp.Expr, sp.Expr]]] = {}
        for coefficient, core in nonlinear:
            groups.setdefault(tuple(fields_of(core)), []).append((coefficient, core))
        for few in sorted(groups, key=len):  # one integral is less work than two, if it is not a harder one
            for many in [many for many in groups if set(few) < set(many)]:
                before = sp.Add(*(c * e for c, e in groups[many]))
                both = before + sp.Add(*(c * e for c, e in groups[few]))
                if _dependences(before, where) == _dependences(both, where):
                    groups[many] += groups.pop(few)
                    break
        laws = []
        for members in groups.values():
            if len(members) == 1:
                coefficient, core = members[0]
            else:
                coefficient, core = sp.S.One, sp.Add(*(c * e for c, e in members))
            laws.append((coefficient, self._law(core, like, holds, where)))
        return Parts(tuple(linear), number, tuple(laws))

    def _resolve(
        self, expression: sp.Expr, where: str, depth: int = 0
    ) -> tuple[list[tuple[sp.Expr, FieldAt]], sp.Expr, list[tuple[sp.Expr, sp.Expr]]]:
        """Decompose an expression, with non-Gaussian fields inside nonlinear parts replaced by their laws.

        Args:
            depth: the number of replacements so far. More replacements than fields mean that a field appears in its own
                law.
        """
        if depth > len(self.rules):
            raise NotGaussian(f"{where} is nonlinear in a field that depends on its own past and is not Gaussian")
        linear, number, nonlinear = _decompose(expression)
        done: list[tuple[sp.Expr, sp.Expr]] = []
        for coefficient, core in nonlinear:
            others = [v for v in fields_of(core) if v.field not in self.gaussian]
            if not others:
                done.append((coefficient, core))
                continue
            inner = _outside_means(core, {v: self._written_out(v, where) for v in others})
            for v in others:
                self.written_out.setdefault(v.field, where)
            more, plus, rest = self._resolve(inner, where, depth + 1)
            linear += [(coefficient * c, v) for c, v in more]
            number += coefficient * plus
            done += [(coefficient * c, e) for c, e in rest]
        return linear, number, done

    def _written_out(self, value: FieldAt, where: str) -> sp.Expr:
        """Return a non-Gaussian value expanded into its law."""
        f, lag, rule = self.rules[value.field], lag_of(value, self.clock), self.rules[value.field].rule
        refusal = NotGaussian(f"{where} is nonlinear in {shown(value)}, which is not Gaussian")
        if f.starts or lag < 0:
            raise refusal
        if rule.product is not None or any(t != Term(t.coefficient, t.vector) for t in rule.terms):
            raise refusal
        law = sp.Add(*(t.coefficient * t.vector for t in rule.terms), *rule.laws)
        if lag and self.clock is not None:
            # before the start the field is zero, not its law
            at_rest = law.xreplace({v: sp.S.Zero for v in fields_of(law)})
            moving = law.has(*NUMBERS) or law.xreplace({v: sp.S.Zero for v in fields_of(law)}).has(self.clock)
            if moving or at_rest != 0 or any(v.time is None for v in fields_of(law)):
                raise refusal
            law = law.xreplace({self.clock: self.clock - lag})
        return law

    # -- one law

    def _law(self, core: sp.Expr, like: Field, holds: tuple[int, int | None], where: str) -> GaussianLaw:
        plain, values, back = _in_symbols(core)
        if self.clock is not None and plain.has(self.clock):
            back[sp.Symbol(f"n{len(back)}", real=True)] = self.clock
            plain = plain.xreplace({self.clock: list(back)[-1]})
        plain, combinations = _reduce_arguments(plain, list(values))
        fields = []
        for combination in combinations:
            terms = [(c.xreplace(back), values[u]) for u, c in combination]
            fields.append(self._argument(terms, like))
        key: Key = (plain, tuple(fields), tuple(back.values()), holds)
        if key not in self.laws:
            us = tuple(sp.Symbol(f"u{i}", real=True) for i in range(len(fields)))
            kinks = _kinks(plain, us, where)
            kinds = tuple(_kind(plain, u, kinks) for u in us)
            slopes = None if plain.has(*JUMPS) else tuple(plain.diff(u) for u in us)
            if slopes is not None and any(s.has(sp.DiracDelta, sp.Derivative, sp.Subs) for s in slopes):
                raise NotGaussian(f"{where}: {shown(core)} has no derivative that can be written down")
            own = Field(free_name(f"{like}_own", self.taken), like.sector, like.clock, timed=like.timed, axes=like.axes)
            used = sorted((n for n in back if plain.has(n)), key=lambda n: is_trait(back[n]))
            numbers = tuple(back[n] for n in used if not is_trait(back[n]))
            traits = tuple(back[n] for n in used if is_trait(back[n]))
            self.laws[key] = GaussianLaw(
                plain,
                us,
                tuple(used),
                tuple(fields),
                numbers,
                kinds,
                kinks,
                slopes,
                holds,
                own,
                shown(core),
                traits,
            )
        return self.laws[key]

    def _argument(self, terms: Sequence[tuple[sp.Expr, FieldAt]], like: Field) -> Field:
        """Return the Gaussian field that equals a linear combination, with the times and labels of another field."""
        if len(terms) == 1:
            coefficient, value = terms[0]
            f = value.field
            same = (f.timed, f.axes) == (like.timed, like.axes)
            if coefficient == 1 and lag_of(value, self.clock) == 0 and same and isinstance(f, Field):
                return f
        rule = LinearRule(tuple(Term(c, v) for c, v in terms))
        for field, other in self.arguments.items():
            if other == rule and (field.timed, field.axes, field.sector) == (like.timed, like.axes, like.sector):
                return field
        argument = Field(
            free_name(f"{like}_argument", self.taken), like.sector, like.clock, timed=like.timed, axes=like.axes
        )
        self.arguments[argument] = rule
        return argument

    # -- averages

    def _averages(self) -> list[Mean]:
        """Return all means over sites that are needed, each at the current time."""
        expressions: list[sp.Basic] = [value for _, value in self.layout.system.model.observe]
        expressions += list(self.asked)
        for f in self.layout.fields:
            for rule in f.rules:
                expressions += _coefficients(rule)
        expressions += [m.coefficient for m in self.layout.saddle.memories]
        expressions += [c.coefficient for c in self.layout.saddle.covariances]
        means = {m for expression in expressions for m in sp.sympify(expression).atoms(Mean)}
        return sorted(means, key=sp.default_sort_key)

    def average(self, average: Mean) -> Parts:
        """Decompose an integrand: its mean is that of its linear terms, its constant and its laws.

        Products of two values are omitted, because their means follow from the rows of both (see `product_of`).
        """
        moved = average.xreplace({PAST: self.clock}) if self.clock is not None else average
        if moved not in self.averages:
            where = shown(moved)
            linear: list[tuple[sp.Expr, FieldAt]] = []
            number = sp.S.Zero
            laws: list[tuple[sp.Expr, GaussianLaw]] = []
            for term in sp.Add.make_args(sp.expand(moved.expression)):
                coefficient, core = factors(term)
                if product_of(core) is not None:
                    continue
                sector = sector_of(core, where)
                if sector is None:
                    number += term
                    continue
                timed = any(v.time is not None for v in fields_of(core))
                like = Field(
                    "average",
                    sector,
                    self.clock if timed else None,
                    timed=timed,
                    axes=axes_of(core),
                )
                parts = self._parts(core, like, (0, None), where)
                linear += [(coefficient * c, v) for c, v in parts.linear]
                number += coefficient * parts.number
                laws += [(coefficient * c, law) for c, law in parts.laws]
            self.averages[moved] = Parts(tuple(linear), number, tuple(laws))
        return self.averages[moved]

    def integrands(self, sector: Sector) -> list[str]:
        """Return the integrands over the Gaussian variables of a site of this sector, as text."""
        averaged = (law for parts in self.averages.values() for _, law in parts.laws)
        return list(dict.fromkeys(law.shown for law in (*self.owned, *averaged) if law.own.sector == sector))

    @cached_property
    def owned(self) -> tuple[GaussianLaw, ...]:
        """Return the laws of fields, in the order of the fields."""
        return tuple(dict.fromkeys(law for parts in self.parts.values() for _, law in parts.laws))

    # -- pairs of laws that are correlated

    @cached_property
    def carried(self) -> dict[Field, dict[GaussianLaw, int | None]]:
        """Return, by field, the laws whose remainders enter its rows, and their lag in steps; None for several lags."""
        table: dict[Field, dict[GaussianLaw, int | None]] = {f.field: {} for f in self.layout.fields}
        changed = True
        while changed:
            changed = False
            for f in self.layout.fields:
                for law, lag in self._laws_in(f, table):
                    mine = table[f.field]
                    if law not in mine:
                        mine[law], changed = lag, True
                    elif mine[law] is not None and mine[law] != lag:
                        mine[law], changed = None, True
        return table

    def _laws_in(
        self, f: SystemField, table: dict[Field, dict[GaussianLaw, int | None]]
    ) -> Iterable[tuple[GaussianLaw, int | None]]:
        def of(field: Field, lag: int | None) -> Iterable[tuple[GaussianLaw, int | None]]:
            for law, before in list(table.get(field, {}).items()):
                yield law, None if lag is None or before is None else lag + before

        for memory in self.layout.memories(f.field):
            yield from of(memory.on, 0 if memory.fresh else None)
        for i, rule in enumerate(f.rules):
            for term in rule.terms:
                yield from of(term.vector.field, None if term.past is not None else lag_of(term.vector, self.clock))
            if rule.laws:
                parts = self.parts[f.field, i]
                for _, value in parts.linear:
                    yield from of(value.field, lag_of(value, self.clock))
                yield from ((law, 0) for _, law in parts.laws)

    def _meetings(self) -> dict[tuple[GaussianLaw, GaussianLaw], bool]:
        """Return the pairs of laws whose correlations are needed, and whether at equal times only."""
        meetings: dict[tuple[GaussianLaw, GaussianLaw], bool] = {}

        def meet(a: Field, b: Field, apart: int | None) -> None:
            """Add the pairs of laws in two fields. `apart` is the delay of b relative to a in steps; None for all
            delays."""
            for first, lag in self.carried.get(a, {}).items():
                for second, other in self.carried.get(b, {}).items():
                    now = apart is not None and lag is not None and other is not None and lag - other == apart
                    now = now and first.own.timed and second.own.timed
                    now = now or not (first.own.timed or second.own.timed)  # without time there is but one
                    for pair in ((first, second), (second, first)):
                        meetings[pair] = meetings.get(pair, True) and now

        for c in self.layout.saddle.covariances:
            if "spectral" not in (c.left.role, c.right.role):
                meet(c.a, c.b, 0 if c.fresh else None)
        for letter in self.letters:
            if letter.kind == "C":
                meet(letter.a, letter.b, None)
        for f in self.layout.fields:
            for rule in f.rules:
                for term in rule.terms:
                    if term.pair is not None:
                        a, b = term.pair
                        apart = lag_of(b, self.clock) - lag_of(a, self.clock) if term.past is None else None
                        meet(a.field, b.field, apart)
        for average in self.averages:
            for term in sp.Add.make_args(sp.expand(average.expression)):
                pair = product_of(factors(term)[1])
                if pair is not None:
                    a, b = pair
                    meet(a.field, b.field, lag_of(b, self.clock) - lag_of(a, self.clock))
        return meetings


def product_of(core: sp.Expr) -> tuple[FieldAt, FieldAt] | None:
    """Return the two factors of an expression that is a product of two values; None if it is not."""
    factors = sp.Mul.make_args(core)
    if len(factors) == 1 and factors[0].is_Pow and factors[0].exp == 2 and isinstance(factors[0].base, FieldAt):
        return factors[0].base, factors[0].base
    if len(factors) == 2 and all(isinstance(f, FieldAt) for f in factors):
        return factors[0], factors[1]
    return None


def joint(a: GaussianLaw, b: GaussianLaw) -> list[tuple[int, int | None, int | None]]:
    """Return the distinct arguments of two laws at equal times: (kind, position in a, position in b)."""
    shared = not a.own.labelled and not b.own.labelled
    arguments: list[tuple[int, int | None, int | None]] = []
    for i, field in enumerate(a.arguments):
        j = b.arguments.index(field) if shared and field in b.arguments else None
        arguments.append((a.kinds[i] if j is None else both_kinds(a.kinds[i], b.kinds[j]), i, j))
    met = {j for _, _, j in arguments}
    return [*arguments, *((b.kinds[j], None, j) for j in range(len(b.arguments)) if j not in met)]


def both_kinds(first: int, second: int) -> int:
    """Return the kind of an argument that occurs in both factors of a product."""
    if SPLIT in (first, second):
        return SPLIT
    return SMOOTH if SMOOTH in (first, second) else first + second


# -- expressions


def fields_of(expression: sp.Basic) -> list[FieldAt]:
    """Return the field values in an expression, without traits of their site."""
    return [value for value in values(expression) if not is_trait(value)]


def factors(term: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Split a product into the factor without fields, which may depend on traits, and the factor with fields."""
    factors = sp.Mul.make_args(term)
    return sp.Mul(*(f for f in factors if not fields_of(f))), sp.Mul(*(f for f in factors if fields_of(f)))


def _decompose(
    expression: sp.Expr,
) -> tuple[list[tuple[sp.Expr, FieldAt]], sp.Expr, list[tuple[sp.Expr, sp.Expr]]]:
    """Split an expression into linear terms, a constant and the other terms, each with its coefficient."""
    linear, number, nonlinear = [], sp.S.Zero, []
    for term in sp.Add.make_args(sp.expand_mul(expression)):
        coefficient, core = factors(term)
        if isinstance(core, FieldAt):
            linear.append((coefficient, core))
        elif core == 1:
            number += coefficient
        else:
            nonlinear.append((coefficient, core))
    return linear, number, nonlinear


def _outside_means(expression: sp.Expr, replacement: dict[FieldAt, sp.Expr]) -> sp.Expr:
    return changed(expression, (Mean, FieldAt), lambda node: replacement.get(node, node))


def _coefficients(rule: Rule) -> list[sp.Expr]:
    """Return the coefficients of a rule, which may contain means, and the expressions of its laws."""
    product = [] if rule.product is None else [rule.product.coefficient]
    return [*product, *(term.coefficient for term in rule.terms), *rule.laws]


Combination = tuple[tuple[sp.Symbol, sp.Expr], ...]


def _affine(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> dict[sp.Symbol, sp.Expr] | None:
    """Return the slopes of an expression that is affine in the symbols; None if it is not."""
    slopes = {u: expression.diff(u) for u in symbols if expression.has(u)}
    return None if any(s.has(*symbols) for s in slopes.values()) else slopes


def _reduce_arguments(expression: sp.Expr, symbols: list[sp.Symbol]) -> tuple[sp.Expr, list[Combination]]:
    """Return the expression as a function of as few linear combinations u0, u1, ... of the symbols as can be read off.

    For example, tanh(a + k b) is a function of one argument.
    """
    distinct: list[dict[sp.Symbol, sp.Expr]] = []
    places: dict[sp.Expr, tuple[int, sp.Expr]] = {}

    def record(node: sp.Expr, slopes: dict[sp.Symbol, sp.Expr]) -> None:
        for i, other in enumerate(distinct):
            if set(other) == set(slopes):
                first = next(iter(other))
                ratio = sp.cancel(slopes[first] / other[first])
                if all(sp.cancel(slopes[u] - ratio * other[u]) == 0 for u in other):
                    places[node] = (i, ratio)
                    return
        places[node] = (len(distinct), sp.S.One)
        distinct.append(slopes)

    def walk(node: sp.Basic) -> None:
        if not node.has(*symbols):
            return
        if isinstance(node, sp.Expr):
            slopes = _affine(node, symbols) if node.is_Add or node.is_Mul or node.is_Symbol else None
            if slopes:
                record(node, slopes)
                return
            if node.is_Add:
                straight = [arg for arg in node.args if arg.has(*symbols) and _affine(arg, symbols)]
                if straight:
                    total = sp.Add(*straight)
                    record(total, _affine(total, symbols) or {})
                for arg in node.args:
                    if arg not in straight:
                        walk(arg)
                return
        for arg in node.args:
            walk(arg)

    walk(expression)
    if len(distinct) >= len(symbols):
        return expression, [((u, sp.S.One),) for u in symbols]
    new = [sp.Symbol(f"u{i}", real=True) for i in range(len(distinct))]

    def rewrite(node: sp.Basic) -> sp.Basic:
        if not node.has(*symbols):
            return node
        if node in places:
            i, ratio = places[node]
            return ratio * new[i] + node.xreplace({u: sp.S.Zero for u in symbols})
        if node.is_Add:
            straight = [arg for arg in node.args if arg.has(*symbols) and _affine(arg, symbols)]
            rest = [rewrite(arg) for arg in node.args if arg not in straight]
            return sp.Add(rewrite(sp.Add(*straight)) if straight else sp.S.Zero, *rest)
        return node.func(*(rewrite(arg) for arg in node.args))

    combinations = [tuple((u, combination[u]) for u in symbols if u in combination) for combination in distinct]
    return rewrite(expression), combinations


def _kinks(expression: sp.Expr, symbols: Sequence[sp.Symbol], where: str) -> tuple[sp.Expr, ...]:
    """Return the affine functions whose zeros are the kinks and jumps of a law; elsewhere the law must be analytic."""
    kinks: dict[sp.Expr, None] = {}

    def kink(function: sp.Expr) -> None:
        for piece in _pieces(function, symbols):
            piece = sp.expand(piece)
            if not piece.has(*symbols):
                continue
            if _affine(piece, symbols) is None:
                raise NotGaussian(f"{where} has a kink or jump where {piece} vanishes, which is not linear in fields")
            if -piece not in kinks:
                kinks.setdefault(piece)

    def walk(node: sp.Basic) -> None:
        if not node.has(*symbols) or node.is_Symbol:
            return
        for function in _vanishing_at_kinks(node, symbols, where):
            kink(function)
        for arg in node.args:
            walk(arg)

    walk(expression)
    return tuple(kinks)


@ByKind
def _vanishing_at_kinks(node: sp.Basic, symbols: Sequence[sp.Symbol], where: str) -> list[sp.Expr]:
    """Return the functions whose zeros are the kinks and jumps of a node, apart from kinks and jumps of its arguments.

    A node that is not known to be analytic elsewhere is refused.
    """
    raise NotGaussian(f"{where} has {node.func.__name__}, which is not known to be analytic")


@_vanishing_at_kinks.on(sp.Add, sp.Mul, sp.Piecewise, *ANALYTIC, BooleanFunction, Boolean, ExprCondPair)
def _(node: sp.Basic, symbols: Sequence[sp.Symbol], where: str) -> list[sp.Expr]:
    return []


@_vanishing_at_kinks.on(Relational)
def _(node: Relational, symbols: Sequence[sp.Symbol], where: str) -> list[sp.Expr]:
    return [node.lhs - node.rhs]


@_vanishing_at_kinks.on(sp.Max, sp.Min)
def _(node: sp.Expr, symbols: Sequence[sp.Symbol], where: str) -> list[sp.Expr]:
    return [a - b for i, a in enumerate(node.args) for b in node.args[:i]]


@_vanishing_at_kinks.on(*KINKED)
def _(node: sp.Expr, symbols: Sequence[sp.Symbol], where: str) -> list[sp.Expr]:
    return [node.args[0]]


@_vanishing_at_kinks.on(sp.Pow)
def _(node: sp.Pow, symbols: Sequence[sp.Symbol], where: str) -> list[sp.Expr]:
    whole = node.exp.is_Integer and node.exp >= 0
    positive = node.base.is_positive and not node.exp.has(*symbols)
    constant_base = not node.base.has(*symbols) and node.base.is_positive
    if not (whole or positive or constant_base):
        raise NotGaussian(f"{where} takes a power of {node.base}, which may vanish")
    return []


@_vanishing_at_kinks.on(sp.log)
def _(node: sp.log, symbols: Sequence[sp.Symbol], where: str) -> list[sp.Expr]:
    if not node.args[0].is_positive:
        raise NotGaussian(f"{where} takes a logarithm of {node.args[0]}, which may vanish")
    return []


def _pieces(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> list[sp.Expr]:
    """Return the branches of a piecewise expression. At a zero of the expression one of its branches vanishes."""
    if not expression.has(*symbols) or expression in symbols:
        return [expression]
    return _sides(expression, symbols)


@ByKind
def _sides(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> list[sp.Expr]:
    each = (_pieces(arg, symbols) for arg in expression.args)
    return list(dict.fromkeys(expression.func(*args) for args in product(*each)))


@_sides.on(sp.sign)
def _(expression: sp.sign, symbols: Sequence[sp.Symbol]) -> list[sp.Expr]:
    return [sp.S.NegativeOne, sp.S.Zero, sp.S.One]


@_sides.on(sp.Heaviside)
def _(expression: sp.Heaviside, symbols: Sequence[sp.Symbol]) -> list[sp.Expr]:
    return [sp.S.Zero, sp.S.Half, sp.S.One]


@_sides.on(sp.Piecewise)
def _(expression: sp.Piecewise, symbols: Sequence[sp.Symbol]) -> list[sp.Expr]:
    return [piece for value, _ in expression.args for piece in _pieces(value, symbols)]


@_sides.on(sp.Max, sp.Min)
def _(expression: sp.Expr, symbols: Sequence[sp.Symbol]) -> list[sp.Expr]:
    return [piece for arg in expression.args for piece in _pieces(arg, symbols)]


@_sides.on(sp.Abs)
def _(expression: sp.Abs, symbols: Sequence[sp.Symbol]) -> list[sp.Expr]:
    return [side * piece for piece in _pieces(expression.args[0], symbols) for side in (1, -1)]


def _kind(expression: sp.Expr, symbol: sp.Symbol, kinks: tuple[sp.Expr, ...]) -> int:
    """Return how an expression depends on an argument: with kinks, smoothly, or as a polynomial."""
    if any(kink.has(symbol) for kink in kinks):
        return SPLIT
    polynomial = expression.as_poly(symbol)
    if polynomial is not None and not any(c.has(symbol) for c in polynomial.coeffs()):
        return max(1, int(polynomial.degree()))
    return SMOOTH


def _degree(expression: sp.Basic, symbol: sp.Symbol) -> sp.Expr:
    """Return the degree of a piecewise polynomial in a symbol; infinite unless every piece is a polynomial."""
    if expression == symbol:
        return sp.S.One
    return _degree_of(expression, symbol) if expression.has(symbol) else sp.S.Zero


@ByKind
def _degree_of(expression: sp.Basic, symbol: sp.Symbol) -> sp.Expr:
    return sp.oo


@_degree_of.on(sp.sign, sp.Heaviside)
def _(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    return sp.S.Zero


@_degree_of.on(sp.Piecewise)
def _(expression: sp.Piecewise, symbol: sp.Symbol) -> sp.Expr:
    return sp.Max(*(_degree(value, symbol) for value, _ in expression.args))


@_degree_of.on(sp.Mul)
def _(expression: sp.Mul, symbol: sp.Symbol) -> sp.Expr:
    return sp.Add(*(_degree(arg, symbol) for arg in expression.args))


@_degree_of.on(sp.Pow)
def _(expression: sp.Pow, symbol: sp.Symbol) -> sp.Expr:
    whole = expression.exp.is_Integer and expression.exp > 0
    return expression.exp * _degree(expression.base, symbol) if whole else sp.oo


@_degree_of.on(sp.Add, sp.Abs, sp.Max, sp.Min)
def _(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    return sp.Max(*(_degree(arg, symbol) for arg in expression.args))


def _dependences(core: sp.Expr, where: str) -> list[int]:
    """Return, for each value, how an expression depends on it: with kinks, smoothly, or as a polynomial."""
    plain, arguments, _ = _in_symbols(core)
    kinks = _kinks(plain, list(arguments), where)
    return [min(1, _kind(plain, u, kinks)) for u in arguments]


def _in_symbols(core: sp.Expr) -> tuple[sp.Expr, dict[sp.Symbol, FieldAt], dict[sp.Symbol, sp.Expr]]:
    """Return an expression with its values and constants replaced by symbols, and the meaning of each symbol."""
    numbers = outermost(core, NUMBERS, outside=(FieldAt,))
    constants = {sp.Symbol(f"n{i}", real=True): number for i, number in enumerate((*numbers, *traits_in(core)))}
    arguments = {sp.Symbol(f"u{i}", real=True): value for i, value in enumerate(fields_of(core))}
    plain = core.xreplace({number: n for n, number in constants.items()})
    return plain.xreplace({value: u for u, value in arguments.items()}), arguments, constants


def _check_together(a: GaussianLaw, b: GaussianLaw, together: bool) -> None:
    """Refuse the correlation of two laws, at equal or at all times, if its integrals have too high a dimension."""
    kinds = (*a.kinds, *b.kinds) if not together else [k for k, _, _ in joint(a, b)]
    _check_size(tuple(kinds), f"{a.shown} with {b.shown}")


def _check_size(kinds: tuple[int, ...], what: str) -> None:
    many, split = sum(k <= 0 for k in kinds), sum(k == SPLIT for k in kinds)
    exact = (sum(k for k in kinds if k > 0) // 2 + 1) ** sum(k > 0 for k in kinds)
    if many > MOST_SMOOTH or (split and (many > MOST_SPLIT or split > MOST_SPLIT)) or exact > MOST_EXACT:
        raise NotGaussian(f"the average of {what} is an integral over {len(kinds)} Gaussian variables")
