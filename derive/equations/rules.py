"""Right-hand sides decomposed: each field becomes a random matrix applied to a field, a linear combination of fields,
or an elementwise law of fields.
"""

from __future__ import annotations

import sympy as sp

from derive.algebra.scaling import size_free, size_order, split_sizes
from derive.equations.field_rules import Applied, Content, FieldRules
from derive.equations.history import History
from derive.equations.times import Moment, home_moment, in_clock, latest_moment
from derive.errors import DeclarationError
from derive.language.data import DataAt
from derive.language.matrices import DisorderAt, WeightsAt
from derive.language.symbols import Clock, Sector
from derive.language.traits import apart, is_trait, split_traits, traits_in
from derive.language.traversal import ByKind
from derive.language.vectors import (
    PAST,
    VECTORS,
    Apply,
    Field,
    FieldAt,
    Mean,
    Mix,
    PastSum,
    Project,
    Total,
    axes_of,
    sector_of,
    shown,
    values,
)
from derive.records.system import ElementwiseRule, LinearRule, Mixing, Rule, SystemField, Term


class Rules:
    """Makes rules, and the auxiliary fields that they need, from expressions."""

    def __init__(self, made: FieldRules, history: History):
        self.made, self.history = made, history

    def rule(self, expression: sp.Expr, clock: Clock | None, target: Field, where: str) -> Rule:
        """Return the rule of a field from its right-hand side, whose times are relative to the clock."""
        expression = self._lowered(_distributed(self._without_weights(expression)), clock, where)
        if not _is_nonlinear(expression):
            terms: list[Term] = []
            for part in sp.Add.make_args(apart(sp.expand, expression)):
                linear = self._linear_terms(part, target, where)
                if linear is None:
                    break
                terms.extend(linear)
            else:
                return LinearRule(tuple(terms))
        return ElementwiseRule(self._elementwise(expression, clock, target, where))

    # -- linear laws

    def _linear_terms(self, part: sp.Expr, target: Field, where: str) -> tuple[Term, ...] | None:
        """Return a summand as a list of terms; None if it is not linear in the fields."""
        if part == 0:
            return ()
        scale, vectors = _split(part)
        if not vectors:
            return (Term(_size_free(scale, where), self.made.constant(target.sector)()),)
        return None if len(vectors) > 1 else self._multiple(vectors[0], scale, target, where)

    @ByKind
    def _multiple(self, vector: sp.Expr, scale: sp.Expr, target: Field, where: str) -> tuple[Term, ...] | None:
        """Return a number times a vector as a list of terms; None if the vector is a nonlinear function of others."""
        return None

    @_multiple.on(FieldAt)
    def _(self, vector: FieldAt, scale: sp.Expr, target: Field, where: str) -> tuple[Term, ...]:
        return (Term(_size_free(scale, where), vector),)

    @_multiple.on(Mix)
    def _(self, vector: Mix, scale: sp.Expr, target: Field, where: str) -> tuple[Term, ...]:
        mixing = Mixing(vector.table, vector.transposed)
        return (Term(_size_free(scale, where), vector.vector, mixing=mixing),)

    @_multiple.on(Total)
    def _(self, vector: Total, scale: sp.Expr, target: Field, where: str) -> tuple[Term, ...]:
        return (Term(_size_free(scale, where), vector.args[-1], mixing=Mixing(None)),)

    @_multiple.on(Project)
    def _(self, vector: Project, scale: sp.Expr, target: Field, where: str) -> tuple[Term, ...]:
        return (self._projected(scale, vector, None, where),)

    @_multiple.on(sp.Sum)
    def _past_terms(self, node: sp.Sum, scale: sp.Expr, target: Field, where: str) -> tuple[Term, ...] | None:
        """Return a sum over earlier times as a list of terms; values at the target's time become separate factors."""
        ((index, low, high),) = node.limits
        if index != PAST or low != 0:
            raise DeclarationError(f"{where}: write sums over earlier times with past_sum(lambda s: ..., t)")
        if target.timed and (high + 1 - target.clock).is_positive:
            now = apart(sp.expand, scale * node.function.subs(PAST, high))
            earlier = self._past_terms(PastSum(node.function, (PAST, 0, high - 1)), scale, target, where)
            parts = [earlier, *(self._linear_terms(part, target, where) for part in sp.Add.make_args(now))]
            return None if None in parts else tuple(term for part in parts for term in part or ())
        terms = []
        for inner in sp.Add.make_args(apart(sp.expand, _with_cases_apart(node.function))):
            factor, ones = _split(inner)
            factor *= scale
            if len(ones) != 1 or not isinstance(ones[0], (FieldAt, Project)):
                raise DeclarationError(
                    f"{where}: the sum over earlier times is not linear in the fields; give {shown(inner)} a field of "
                    "its own"
                )
            if axes_of(factor, where) or factor.has(DataAt, Total, Mix):
                raise DeclarationError(
                    f"{where}: in the sum over earlier times {shown(inner)} has a factor made of data or labels; "
                    "give it a field of its own"
                )
            if any(traits_in(f) and f.has(PAST) for f in sp.Mul.make_args(factor)):
                raise DeclarationError(
                    f"{where}: in the sum over earlier times s, a factor of {shown(inner)} depends on a trait "
                    "and on s; declare a field for the sum, with its own equation in time"
                )
            until = high + 1
            both = _mean_of_two_times(factor, where)
            if both is not None and not isinstance(ones[0], FieldAt):
                raise _too_many_times(both, where)
            if isinstance(ones[0], Project):
                terms.append(self._projected(factor, ones[0], until, where))
            elif both is None:
                terms.append(Term(_size_free(factor, where), self._at_past(ones[0], until, where), past=until))
            else:
                terms += self._overlapping(factor / both, both, ones[0], until, where)
        return tuple(terms)

    def _overlapping(self, scale: sp.Expr, both: Mean, vector: FieldAt, until: sp.Expr, where: str) -> list[Term]:
        """Return the terms of sum_s vector(s) * mean(a(s) b(t)), the form of a history of outer products."""
        terms = []
        for part in sp.Add.make_args(apart(sp.expand, both.expression)):
            factor, ones = _split(part)
            factor, of_traits = split_traits(factor)
            values = [value for value in ones if isinstance(value, FieldAt)]
            early = [value for value in values if value.time is not None and value.time.has(PAST)]
            other = [value for value in values if value not in early]
            if (len(ones), len(early), len(other)) != (2, 1, 1) or axes_of(vector * both, where):
                raise _too_many_times(both, where)
            left = self._at_past(vector, until, where)
            right = self._times_traits(of_traits, early[0], until, where)
            terms.append(Term(_size_free(scale * factor, where), left, (right, other[0]), until))
        return terms

    def _times_traits(self, of_traits: sp.Expr, value: FieldAt, past: sp.Expr, where: str) -> FieldAt:
        """Return the field that represents a value at time s inside a mean times its trait-dependent factor."""
        if of_traits == 1:
            return self._at_past(value, past, where)
        clock = value.field.clock or self.made.clock
        return self.named(of_traits * value, Moment(PAST, 0), clock, where)

    def _projected(self, scale: sp.Expr, node: Project, past: sp.Expr | None, where: str) -> Term:
        outer = f"outer({shown(node.left)}, {shown(node.right)})"
        coefficient = _size_free(scale * node.right.field.sector, f"{where}: {outer}")
        left, right, vector = node.args
        if past is not None:
            if vector.time is not None and vector.time.has(PAST):
                raise DeclarationError(
                    f"{where}: {outer} acts on {shown(vector)} inside a sum over earlier times; give the product a "
                    "field of its own and sum over that"
                )
            left, right = self._at_past(left, past, where), self._at_past(right, past, where)
        return Term(coefficient, left, (right, vector), past)

    def _at_past(self, value: FieldAt, past: sp.Expr, where: str) -> FieldAt:
        """Return a value as a field at time s: a delayed copy, or a copy at every time if it has no clock."""
        if value.time == PAST:
            return value
        clock = value.field.clock or self.made.clock
        assert clock is not None
        if value.time is None:
            return self.named(value, Moment(PAST, 0), clock, where, f"{value.field}_each")
        if not value.time.has(PAST):
            raise DeclarationError(
                f"{where}: {shown(value)} occurs in a sum over earlier times s, but is not at s, s - 1, ...; only "
                "means may have other times there"
            )
        lag = sp.expand(PAST - value.time)
        if not lag.is_Integer or lag < 0:
            time = shown(value.time.subs(PAST, clock))
            raise DeclarationError(
                f"{where}: a sum over earlier times, or an update of weights, uses {value.field} at {time}; "
                f"use it at {clock} or earlier, "
                f"or give what makes {value.field} at {clock + 1} a field of its own at {clock} and use that"
            )
        return self.named(value, Moment(PAST, 0), clock, where, f"{value.field}_late{lag}")

    # -- nonlinear laws

    def _elementwise(self, expression: sp.Expr, clock: Clock | None, target: Field, where: str) -> sp.Expr:
        """Return a nonlinear law with sums over time, projections and sums over labels replaced by auxiliary fields."""
        for node in sorted(_parts_to_lower(expression), key=sp.default_sort_key):
            now = Moment(clock, 0) if clock is not None else None
            size, limited = _sizes_outside(node, where)
            value = self.named(limited, now, clock or target.clock, where, f"{target}_input")
            expression = expression.xreplace({node: size * value})
        expression = _in_ratios(expression, where)
        sizes = expression.atoms(Sector)
        if sizes:
            raise DeclarationError(
                f"{where}: the size {min(map(str, sizes))} occurs inside a nonlinear law; write laws in terms of ratios"
            )
        return expression

    # -- weights and random matrices

    @ByKind
    def _without_weights(self, expression: sp.Expr) -> sp.Expr:
        """Return the expression with trained weights as initial matrices plus history."""
        if not expression.has(WeightsAt):
            return expression
        return expression.func(*map(self._without_weights, expression.args))

    @_without_weights.on(Apply)
    def _(self, node: Apply) -> sp.Expr:
        inner = Apply(node.matrix, node.transposed, self._without_weights(node.vector))
        return inner if node.matrix.weights is None else self.history.applied(inner)

    @ByKind
    def _lowered(self, expression: sp.Expr, clock: Clock | None, where: str) -> sp.Expr:
        """Return the expression with a field in place of every applied matrix."""
        if not expression.args:
            return expression
        return expression.func(*(self._lowered(arg, clock, where) for arg in expression.args))

    @_lowered.on(FieldAt, Mean)
    def _(self, expression: sp.Expr, clock: Clock | None, where: str) -> sp.Expr:
        return expression

    @_lowered.on(Apply)
    def _(self, expression: Apply, clock: Clock | None, where: str) -> sp.Expr:
        return self._product(expression, sp.S.One, clock, where)

    @_lowered.on(Mix)
    def _(self, expression: Mix, clock: Clock | None, where: str) -> sp.Expr:
        if not _has_vector(expression):
            return expression
        factor, value = self._value(expression.vector, clock, where)
        return sp.S.Zero if value is None else factor * Mix(expression.table, expression.transposed, value)

    @_lowered.on(Total)
    def _(self, expression: Total, clock: Clock | None, where: str) -> sp.Expr:
        """Sum over the only axis, whether or not it is named."""
        if not _has_vector(expression):
            return expression
        factor, value = self._value(expression.expression, clock, where)
        return sp.S.Zero if value is None else factor * Total(value)

    @_lowered.on(Project)
    def _(self, expression: Project, clock: Clock | None, where: str) -> sp.Expr:
        arguments = [self._value(arg, clock, where) for arg in expression.args]
        if any(value is None for _, value in arguments):
            return sp.S.Zero
        return sp.Mul(*(factor for factor, _ in arguments)) * Project(*(value for _, value in arguments))

    @_lowered.on(sp.Mul)
    def _(self, expression: sp.Mul, clock: Clock | None, where: str) -> sp.Expr:
        scale, others = _split(expression)
        if len(others) == 1 and isinstance(others[0], Apply):
            return self._product(others[0], scale, clock, where)
        product = sp.Mul(scale, *(self._lowered(f, clock, where) for f in others))
        return product if _is_nonlinear(product) else apart(sp.expand, product)

    @_lowered.on(sp.Sum)
    def _(self, expression: sp.Sum, clock: Clock | None, where: str) -> sp.Expr:
        body = apart(sp.expand, self._lowered(apart(sp.expand, expression.function), clock, where))
        return sp.Add(*(PastSum(part, *expression.limits) for part in sp.Add.make_args(body)))

    def _product(self, node: Apply, scale: sp.Expr, clock: Clock | None, where: str) -> sp.Expr:
        """Return scale * W @ vector as a multiple of the field that represents the product."""
        drawn = Moment.of(node.matrix.time, where) if isinstance(node.matrix, DisorderAt) else None
        matrix = node.matrix if drawn is None else node.matrix.disorder
        factor, value = self._value(node.vector, clock, where, drawn)
        if value is None:
            return sp.S.Zero
        product = Applied(matrix, node.transposed, value.field)
        if product not in self.made.products:
            self._add_product(product, scale * factor, where)
        field, coefficient = self.made.products[product]
        time = value.time if drawn is None else drawn.time
        return scale * factor / coefficient * (field(time) if field.timed else field())

    def _add_product(self, product: Applied, scale: sp.Expr, where: str) -> None:
        matrix, argument = product.matrix, product.argument
        rows, columns = product.shape
        sizes, _ = split_sizes(scale)
        same = not sizes.has(Mean, DataAt, Total, Mix, Clock)  # at all times: it scales the noise
        if not same or size_order(sizes**2 * matrix.variance * columns, where) != 0:
            sizes = columns ** (-(1 + size_order(matrix.variance, where)) / 2)
        field = self.made.new_field(
            f"{matrix}{'T' if product.transposed else ''}_{argument}",
            rows,
            argument.clock or matrix.fresh,
            role="spectral" if argument.role == "spectral" else "field",
            timed=argument.timed or matrix.fresh is not None,
            axes=argument.axes,
        )
        self.made.add_product(field, product, sizes)

    # -- fields for expressions

    def _value(
        self, expression: sp.Expr, clock: Clock | None, where: str, drawn: Moment | None = None
    ) -> tuple[sp.Expr, FieldAt | None]:
        """Return the expression as (scalar, field value); the value is None for zero.

        Args:
            drawn: the time of the value, if it is fixed.
        """
        expression = self._lowered(expression, clock, where)
        if expression == 0:
            return sp.S.Zero, None
        factor, value = expression.as_independent(FieldAt, Project, Mix, Total, sp.Sum, as_Add=False)
        if isinstance(value, FieldAt) and not is_trait(value) and not factor.has(Mean, DataAt, Total, Mix):
            if drawn is None or value.time == drawn.time:
                return factor, value
        moment = home_moment(expression, where) if drawn is None else drawn
        if drawn is not None:
            self._check_drawn(expression, drawn, where)
        home = clock or (self.made.clock if moment is not None else None)
        size, expression = _sizes_outside(expression, where)
        plain = drawn is not None and isinstance(expression, FieldAt) and expression.time is None
        hint = f"{expression.field}_each" if plain else None
        return size, self.named(expression, moment, home, where, hint)

    def _check_drawn(self, expression: sp.Expr, drawn: Moment, where: str) -> None:
        latest = latest_moment(expression, where)
        if latest is not None and (latest.variable != drawn.variable or latest.shift > drawn.shift):
            raise DeclarationError(
                f"{where}: a random matrix drawn anew at {shown(drawn.time)} is applied to {shown(expression)}, "
                f"which belongs to a later time; a fresh matrix acts on vectors of its own time or earlier"
            )

    def named(
        self, expression: sp.Expr, moment: Moment | None, home: Clock | None, where: str, hint: str | None = None
    ) -> FieldAt:
        """Return a value of the field that equals the expression at this time; an existing equal field is reused."""
        dated = (moment, home) if moment is not None and home is not None else None
        canonical = expression if dated is None else in_clock(expression, *dated)
        sector, axes = sector_of(expression, where), axes_of(expression, where)
        if sector is None:
            raise DeclarationError(
                f"{where}: {shown(expression)} is a number where a vector is needed; multiply it by one"
            )
        clock = home if dated is not None else None
        role = "spectral" if any(v.field.role == "spectral" for v in values(expression)) else "field"
        content = Content(canonical, sector, clock, dated is not None, axes, role)
        if content not in self.made.contents:
            field = self.made.new_field(
                hint or self.made.next_name(), sector, clock, role, timed=dated is not None, axes=axes
            )
            self.made.put(SystemField(field, self.rule(canonical, home, field, where)))
            self.made.contents[content] = field
        field = self.made.contents[content]
        return field() if dated is None else field(dated[0].time)


def _with_cases_apart(expression: sp.Expr) -> sp.Expr:
    """Expand a Piecewise whose conditions contain no vector into a sum over its cases.

    SymPy would move every factor into the cases.
    """
    if not expression.is_Piecewise or any(_has_vector(condition) for _, condition in expression.args):
        return expression
    parts = []
    for number, (value, condition) in enumerate(expression.args):
        before = [(sp.S.Zero, earlier) for _, earlier in expression.args[:number]]
        holds = sp.Piecewise(*before, (sp.S.One, condition), (sp.S.Zero, sp.true))
        parts.append(holds * _with_cases_apart(value))
    return sp.Add(*parts)


def _mean_of_two_times(factor: sp.Expr, where: str) -> Mean | None:
    """Return the mean, in a coefficient of a sum over s, of values at s and at another time; None if there is none."""
    means: list[Mean] = sorted(factor.atoms(Mean), key=sp.default_sort_key)
    mixed = [m for m in means if m.has(PAST) and m.atoms(Clock)]
    if not mixed:
        return None
    if len(mixed) > 1 or (factor / mixed[0]).has(mixed[0]):
        raise _too_many_times(mixed[0], where)
    return mixed[0]


def _too_many_times(average: Mean, where: str) -> DeclarationError:
    return DeclarationError(
        f"{where}: {shown(average)} in the sum over earlier times s is of values at s and at another time; such a mean "
        "must be that of one vector at s times another, without labels, and may multiply only a vector"
    )


def _size_free(coefficient: sp.Expr, where: str) -> sp.Expr:
    """Express a coefficient in terms of ratios of sizes; functions of traits are unchanged."""
    return apart(lambda e: size_free(e, where), coefficient)


def _split(product: sp.Expr) -> tuple[sp.Expr, list[sp.Expr]]:
    """Split a product into the scalar factor and the factors that depend on the site."""
    factors = sp.Mul.make_args(product)
    return sp.Mul(*(f for f in factors if not _has_vector(f))), [f for f in factors if _has_vector(f)]


def _sizes_outside(expression: sp.Expr, where: str) -> tuple[sp.Expr, sp.Expr]:
    """Return (power of a size, vector of order one) if all terms have the same power; otherwise (1, vector)."""
    terms = sp.Add.make_args(expression)
    orders = {_growth(term, where) for term in terms}
    sector = sector_of(expression, where)
    if len(orders) != 1 or orders == {0} or sector is None:
        return sp.S.One, expression
    size = sector ** orders.pop()
    return size, sp.Add(*(_divided(term, size) for term in terms))


@ByKind
def _divided(term: sp.Expr, size: sp.Expr) -> sp.Expr:
    """Return the term divided by a power of a size, inside a sum over earlier times."""
    return term / size


@_divided.on(sp.Sum)
def _(term: sp.Sum, size: sp.Expr) -> sp.Expr:
    return PastSum(apart(sp.expand, term.function / size), *term.limits)


@ByKind
def _in_ratios(law: sp.Expr, where: str) -> sp.Expr:
    """Return a nonlinear law with its size factors as ratios, where they have a limit."""
    return law.func(*(_in_ratios(arg, where) for arg in law.args)) if law.atoms(Sector) else law


@_in_ratios.on(FieldAt, Mean, Sector)
def _(law: sp.Expr, where: str) -> sp.Expr:
    return law


@_in_ratios.on(sp.Mul)
def _(law: sp.Mul, where: str) -> sp.Expr:
    scale, vectors = _split(law)
    if scale.atoms(Sector) and size_order(scale, where) == 0:
        scale = size_free(scale, where)
    return sp.Mul(scale, *(_in_ratios(vector, where) for vector in vectors)) if law.atoms(Sector) else law


def _growth(term: sp.Expr, where: str) -> sp.Rational:
    """Return the power of the size with which a term grows; a sum over sites counts as one power."""
    scale, vectors = _split(term)
    return size_order(scale, where) + sum(_growth_of(vector, where) for vector in vectors)


@ByKind
def _growth_of(vector: sp.Expr, where: str) -> sp.Rational:
    return sp.S.Zero


@_growth_of.on(Project)
def _(vector: Project, where: str) -> sp.Rational:
    return sp.S.One


@_growth_of.on(sp.Sum)
def _(vector: sp.Sum, where: str) -> sp.Rational:
    return max(_growth(part, where) for part in sp.Add.make_args(apart(sp.expand, vector.function)))


def _parts_to_lower(expression: sp.Expr) -> set[sp.Expr]:
    """Return the outermost parts of a nonlinear law that are not elementwise."""
    inner = expression.atoms(Project, sp.Sum) | {n for n in expression.atoms(Mix, Total) if _has_vector(n)}
    return {n for n in inner if not any(n != m and m.has(n) for m in inner)}


@ByKind
def _is_nonlinear(expression: sp.Expr) -> bool:
    """Return whether an expression contains a power or a function of vectors; such laws are never expanded."""
    return _has_vector(expression)


@_is_nonlinear.on(sp.Add, sp.Mul)
def _(expression: sp.Expr) -> bool:
    return any(map(_is_nonlinear, expression.args))


@_is_nonlinear.on(*VECTORS, Total)
def _(expression: sp.Expr) -> bool:
    return False


@ByKind
def _has_vector(expression: sp.Basic) -> bool:
    """Return whether an expression contains fields. Traits do not count, because linearity is conditional on them."""
    return any(map(_has_vector, expression.args))


@_has_vector.on(Apply, Project, sp.Sum)
def _(expression: sp.Expr) -> bool:
    return True


@_has_vector.on(FieldAt)
def _(expression: FieldAt) -> bool:
    return not is_trait(expression)


@_has_vector.on(Mix)
def _(expression: Mix) -> bool:
    return _has_vector(expression.vector)


@_has_vector.on(Mean)
def _(expression: Mean) -> bool:
    return False


def _distributed(expression: sp.Expr) -> sp.Expr:
    """Distribute scalars over sums of applied matrices, so that each carries its own scale."""
    if expression.is_Mul and _has_vector(expression):
        return apart(sp.expand_mul, sp.Mul(*map(_distributed, expression.args)))
    if expression.is_Add:
        return sp.Add(*map(_distributed, expression.args))
    return expression
