"""The probed matrix as equations: d psi0 / d tau = M psi0 + source, with one field per intermediate product."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import sympy as sp

from derive.algebra.scaling import cure, growth, norm_order, size_order
from derive.algebra.sites import SiteValue
from derive.equations.field_rules import FieldRules
from derive.equations.history import History
from derive.equations.rules import Rules
from derive.equations.stopping import stopped, without_later
from derive.errors import DeclarationError, SizeError
from derive.language.contents import expressions
from derive.language.diagonals import DiagonalMatrix
from derive.language.matrices import MatrixAtom, MatrixExpression, SumOfMatrices
from derive.language.model import Model
from derive.language.multiplied import Letters, dyad_words, half_product, words_of
from derive.language.symbols import Parameter
from derive.language.traits import is_trait, trait, traits_in
from derive.language.traversal import ByKind, outermost
from derive.language.vectors import PAST, Apply, Field, FieldAt, Mean, PastSum, Total, shown, values
from derive.records.system import ProbeTimes, SpectralFields, SystemField

# The numerical search for poles of diagonal entries: a finer grid finds closer pairs of poles, and costs time.
WIDEST = 8
"""Half width of the interval that is searched, in units of the value."""
GRID = 800
"""Grid cells of that interval."""
HALVED = 60
"""Bisection steps in a cell, enough for double precision."""


def with_diagonal_traits(model: Model) -> Model:
    """Return the model with drawn vectors that appear only on diagonals of probed matrices replaced by traits.

    An average over a trait is a sum over its values, or an integral with its density. As a function of normals a law
    with jumps would need many quadrature nodes.
    """
    leaves = [leaf for _, probe in model.probes for matrix in probe.matrices for leaf in matrix.leaves]
    elsewhere = [e for leaf in leaves if not leaf.is_diagonal for e in expressions(leaf)]
    elsewhere += [e for equation in model.equations for e in expressions(equation.value)]
    elsewhere += [e for _, e in (*model.observe, *model.alignments)]
    used = {value for e in elsewhere for value in e.atoms(FieldAt)}
    entries = [e for _, probe in model.probes for matrix in probe.matrices for e in _diagonals(matrix)]
    traits = {
        value: sp.sympify(trait(value.field.name, value.field.sector, law=value.field.law, latex=value.field.tex)())
        for value in dict.fromkeys(value for e in entries for value in values(e))
        if value.field.has_law and value.time is None and value not in used and value.field.law.is_spread
    }
    if not traits:
        return model

    def changed(matrix: MatrixExpression) -> MatrixExpression:
        return with_entries(matrix, lambda entries: entries.xreplace(traits))

    probes = tuple(
        (label, replace(p, matrix=changed(p.matrix), between=tuple((name, changed(m)) for name, m in p.between)))
        for label, p in model.probes
    )
    return replace(model, probe=probes, observe=dict(model.observe))


def with_entries(matrix: MatrixExpression, change: Callable[[sp.Expr], sp.Expr]) -> MatrixExpression:
    """Return a matrix with a function applied to the entries of its diagonal factors."""
    if matrix.is_diagonal:
        return matrix.mapped(change)
    return matrix.rebuilt(lambda factor: with_entries(factor, change))


def with_site_values(matrix: MatrixExpression) -> MatrixExpression:
    """Return a matrix with training fields on diagonals as constants of their sites, like traits."""

    def at_sites(entries: sp.Expr) -> sp.Expr:
        return entries.xreplace({value: SiteValue(value)() for value in values(entries) if not is_trait(value)})

    return with_entries(matrix, at_sites)


def check_diagonals(matrix: MatrixExpression, rules: FieldRules) -> None:
    """Refuse diagonal matrices in a probed matrix that are not bounded functions of variables with a known law."""
    for entries in _diagonals(matrix):
        where = f"spectrum(...) has diag({shown(entries)})"
        if entries.has(Mean):
            raise DeclarationError(f"{where}, which contains a mean; make it a parameter")
        for value in (value for value in values(entries) if not is_trait(value)):
            _check_time(value, where)
        for quenched in (value.field for value in traits_in(entries)):
            if quenched.discrete and not quenched.weights:
                raise DeclarationError(
                    f"{where}, and the values of {quenched} are data; write them into the declaration, values=[...]"
                )
        _check_bounded(entries, _written_out(entries, rules), where, rules)


def _check_bounded(entries: sp.Expr, written: sp.Expr, where: str, rules: FieldRules) -> None:
    """Refuse unbounded diagonal entries. `written` are the entries in terms of the underlying fields."""
    if written.has(sp.zoo, sp.nan):
        raise DeclarationError(f"{where}, which divides by zero; take a field that is not zero everywhere")
    for value in (value for value in values(written) if is_trait(value) or _has_full_support(value, rules)):
        place = _pole(written, value)
        if place is not None:
            there = f"next to {shown(value)} = {place:.3g}" if value in values(entries) else "at some sites"
            raise DeclarationError(
                f"{where}, which is unbounded {there}, so the bulk would have no edge; use a bounded function of it"
            )
    for value, sign in _infinite_ends(written):
        if _grows(written, value, sign):
            unbounded = value if value in values(entries) else values(entries)[0]
            raise DeclarationError(
                f"{where}, which is unbounded because {shown(unbounded)} is, and the bulk would have no edge; use a "
                "bounded function of it, or truncate the density"
            )


def _written_out(entries: sp.Expr, rules: FieldRules) -> sp.Expr:
    """Return diagonal entries with elementwise fields expanded into the fields at the same time on which they depend.

    In this form a square is recognised as non-negative, and a constant field as a number.
    """
    laws: dict[FieldAt, sp.Expr] = {}
    for value in values(entries):
        whole = rules.rules.get(value.field)
        if value.field.role == "constant":
            laws[value] = sp.S.One
        if whole is None or whole.shift or whole.starts:
            continue
        law = whole.rule.expression(value.time)
        if value.field.clock is not None:
            law = law.xreplace({value.field.clock: value.time})
        if law.has(Mean, Apply, PastSum) or any(
            x.field.clock is not None and x.time != value.time for x in values(law)
        ):
            continue
        written = _written_out(law, rules)
        if whole.rule.laws or written != law or not values(law):
            laws[value] = written  # else it is a sum of normal fields, which says no more
    return sp.sympify(entries.xreplace(laws))


def _has_full_support(value: FieldAt, rules: FieldRules) -> bool:
    """Return whether the law of a field is supported on the whole line because the field has an additive Gaussian
    part."""
    whole = rules.rules.get(value.field)
    if whole is None:
        return bool(value.field.role == "normal")
    return not (whole.starts and value.time == 0) and not whole.rule.laws


def _check_between(name: str, matrix: MatrixExpression, rules: FieldRules) -> None:
    """Refuse training fields on diagonals between resolvents: only traits are allowed there."""
    check_diagonals(matrix, rules)
    for entries in _diagonals(matrix):
        for value in (value for value in values(entries) if not is_trait(value)):
            raise DeclarationError(
                f"spectrum(..., between=...): {name} has diag({shown(entries)}), and {shown(value)} is not a trait; "
                "between resolvents diag(...) takes traits and functions of them"
            )


def _check_time(value: FieldAt, where: str) -> None:
    """Refuse a training field on a diagonal that has a clock, except at the first and the last two times."""
    time, clock = value.time, value.field.clock
    if time is None:
        return
    ends = [sp.S.Zero, clock.steps - 1, *([clock.steps] if clock.endpoint else [])]
    if time not in ends:
        allowed = " or ".join(f"{value.field}({shown(end)})" for end in ends)
        raise DeclarationError(
            f"{where}: a field on a diagonal is taken at the first or at the last times; use {allowed}"
        )


def _law(value: FieldAt) -> sp.Tuple:
    """Return the law of a trait: its density and the ends of its support, or its values.

    For other fields, only the ends are returned.
    """
    if is_trait(value):
        return value.field.law
    return sp.Tuple(sp.S.One, *value.field.ends)


def _infinite_ends(entries: sp.Expr) -> list[tuple[FieldAt, int]]:
    """Return the traits and training fields on a diagonal that are unbounded, with the sign of the unbounded end."""
    ends = []
    for value in values(entries):
        law = _law(value)
        if len(law) > 2:
            ends += [(value, sign) for sign, end in ((-1, law[1]), (1, law[2])) if end in (sp.oo, -sp.oo)]
    return ends


def _pole(entries: sp.Expr, value: FieldAt) -> float | None:
    """Return a pole of diagonal entries inside the support of a value; None if there is none.

    Parameters are set to their default values, and other values to one.
    """
    law = _law(value)
    if len(law) < 3:
        return None
    x = sp.Dummy("x", real=True)
    point = {other: x if other == value else sp.S.One for other in values(entries)}
    point |= {p: sp.sympify(p.default) for p in (entries.atoms(Parameter) | law.atoms(Parameter))}
    function = entries.xreplace(point)
    ends = [sp.sympify(end).xreplace(point) for end in law[1:]]
    if not all(end.is_number for end in ends):
        return None
    low, high = (float(min(max(end, -WIDEST), WIDEST)) for end in ends)
    divisors = {p.base for p in function.atoms(sp.Pow) if p.exp.is_negative and p.base.has(x)}
    for divisor in sorted(divisors, key=sp.default_sort_key):
        at = sp.lambdify(x, divisor, "math")
        places = [low + (high - low) * k / GRID for k in range(1, GRID)]
        for a, b in itertools.pairwise(places):
            try:
                if at(a) * at(b) > 0:
                    continue
                for _ in range(HALVED):
                    middle = (a + b) / 2
                    a, b = (a, middle) if at(a) * at(middle) <= 0 else (middle, b)
            except (TypeError, ValueError, OverflowError, ZeroDivisionError):
                continue
            near, nearer = (_size(function.xreplace({x: sp.Float(b + off)})) for off in (1e-4, 1e-8))
            if nearer is None or near is not None and nearer > 100 * near:
                return b
    return None


def _grows(entries: sp.Expr, value: FieldAt, sign: int) -> bool:
    """Return whether diagonal entries are unbounded as functions of a value, judged by their size at large values.

    Parameters are set to their default values, and other values to one.
    """
    x = sp.Dummy("x", real=True)
    function = entries.xreplace({other: x if other == value else sp.S.One for other in values(entries)})
    function = function.xreplace({p: sp.sympify(p.default) for p in function.atoms(Parameter)})
    near, far = (
        [
            _size(function.xreplace({x: sp.Rational(sign * k) * sp.Integer(10) ** power}))
            for power in powers
            for k in (1, 2, 3, 7)
        ]
        for powers in (range(-1, 5), range(5, 9))
    )
    return None in far or max(x for x in far if x is not None) > 1.5 * max(
        (x for x in near if x is not None), default=0
    )


def _size(number: sp.Expr) -> float | None:
    try:
        size = abs(complex(sp.N(number)))
    except (TypeError, ValueError, OverflowError):
        return None
    return size if size < float("inf") else None


def _diagonals(matrix: MatrixExpression) -> list[sp.Expr]:
    return [leaf.entries for leaf in matrix.leaves if isinstance(leaf, DiagonalMatrix)]


def _multiple(matrix: MatrixExpression) -> tuple[sp.Expr, MatrixExpression]:
    """Return a matrix as a scalar times another matrix."""
    terms = matrix.as_sum
    return terms[0] if len(terms) == 1 else (sp.S.One, matrix)


class Probing:
    """Adds the spectral fields of one matrix."""

    def __init__(self, made: FieldRules, rules: Rules, history: History, times: ProbeTimes | None = None):
        self.made, self.rules, self.history, self.times = made, rules, history, times
        self.products: dict[tuple[MatrixExpression, Field], tuple[sp.Expr, Field]] = {}

    def spectral_fields(
        self, label: str, matrix: MatrixExpression, between: tuple[tuple[str, MatrixExpression], ...] = ()
    ) -> SpectralFields:
        """Return the fields of one probed matrix and remove them from the rules; additions to the training level are
        kept.

        The next probed matrix may use their names again.

        Args:
            between: named matrices A, for which fields A psi0 are added.
        """
        check_diagonals(matrix, self.made)
        for name, other in between:
            _check_between(name, other, self.made)
        self._check_symmetric(matrix)
        matrix = with_site_values(self._prepared(matrix))
        root = self.made.probe_field(matrix.rows)
        try:
            rule = self.rules.rule(self._applied(matrix, root), None, root, "the probed matrix")
        except SizeError:
            self._check_sizes(matrix, sp.S.Zero)
            raise
        images = tuple((name, self._image(name, other, root)) for name, other in between)
        fields = (SystemField(root, rule, derivative=True), *self.made.take_spectral(root))
        if self.times is not None:
            fields = tuple(without_later(field, self.times) for field in fields)
        if _diagonals(matrix) and all(f.product is None for f in fields):
            raise DeclarationError(
                f"spectrum({matrix}): there is no random matrix beside diag(...), so the eigenvalues are its "
                f"entries; add a random matrix, or use the law of the trait"
            )
        return SpectralFields(label, fields, self._middle(matrix, root), images)

    def _check_sizes(self, matrix: MatrixExpression, wanted: sp.Expr) -> None:
        """Raise SizeError for the first term whose norm does not scale with the power `wanted` of the size."""
        for scale, part in matrix.as_sum:
            for factor in part.as_product:
                if factor.as_sum[0][1] != factor:
                    self._check_sizes(factor, norm_order(self._at_start(factor)))
            order = size_order(scale, "the probed matrix") + norm_order(self._at_start(part)) - wanted
            if order != 0:
                term = SumOfMatrices(part.rows, part.columns, ((scale, part),))
                raise SizeError(
                    f"the probed matrix: the term {term} {growth(order, part.columns)} and has no limit at large size; "
                    f"{cure(order, part.columns)}"
                )

    def _image(self, name: str, matrix: MatrixExpression, root: Field) -> Field:
        image = self.made.probe_field(matrix.rows)
        where = f"the matrix {name} between resolvents"
        expression = self._applied(self._prepared(matrix), root)
        self.made.put(SystemField(image, self.rules.rule(expression, None, image, where)))
        return image

    def _prepared(self, matrix: MatrixExpression) -> MatrixExpression:
        """Return the matrix with means of the training level, and if needed its time, replaced by parameters."""
        measured = self._measured(matrix)
        return measured if self.times is None else stopped(measured, self.times)

    def _measured(self, matrix: MatrixExpression) -> MatrixExpression:
        """Return the matrix with means that multiply random matrices replaced by parameters of known value.

        The bulk equations then keep their form, as equations in responses with numerical coefficients.
        """
        return matrix.rebuilt(self._measured, lambda scale, part: scale if part.low_rank else self._number(scale))

    def _number(self, scale: sp.Expr) -> sp.Expr:
        return scale.xreplace({average: self.made.measured(average) for average in outermost(scale, (Mean, Total))})

    def _middle(self, matrix: MatrixExpression, root: Field) -> Field | None:
        """Return the field of K psi0, if the probed matrix is a multiple of K^T K; None otherwise."""
        half = half_product(matrix)
        if not half:
            return None
        field = root
        for factor in reversed(matrix.as_sum[0][1].as_product[half:]):
            multiple, field = self.products[factor, field]
            if multiple != 1:
                return None
        return field

    @ByKind
    def _applied(self, matrix: MatrixExpression, field: Field) -> sp.Expr:
        """Return matrix @ field. Every inner product becomes a spectral field of order one, shared by all its
        occurrences."""
        head, *others = matrix.as_product
        scale = sp.S.One
        for factor in reversed(others):
            order = norm_order(self._at_start(factor))
            if (factor, field) not in self.products:
                self.products[factor, field] = self._product(factor, field, order)
            multiple, field = self.products[factor, field]
            scale *= multiple * factor.columns**order
        return scale * (self._applied(head, field) if others else head.applied_to(field()))

    @_applied.on(SumOfMatrices)
    def _applied_sum(self, matrix: SumOfMatrices, field: Field) -> sp.Expr:
        return sp.Add(*(scale * self._applied(part, field) for scale, part in matrix.terms))

    def _product(self, factor: MatrixExpression, field: Field, order: sp.Expr) -> tuple[sp.Expr, Field]:
        """Return factor @ field as a number times a field of order one; multiples of one matrix share the field."""
        number, bare = _multiple(factor)
        for (other, on), (multiple, inner) in self.products.items():
            first, alike = _multiple(other)
            if on == field and alike == bare and multiple == 1:
                share = sp.powsimp(number / first * factor.columns ** (norm_order(self._at_start(other)) - order))
                if sp.fraction(share)[1].is_nonzero:
                    return share, inner
        inner = self.made.probe_field(factor.rows)
        expression = self._applied(factor, field) * factor.columns ** (-order)
        self.made.put(SystemField(inner, self.rules.rule(expression, None, inner, "the probed matrix")))
        return sp.S.One, inner

    def _at_start(self, matrix: MatrixExpression) -> MatrixExpression:
        """Return the matrix with weights replaced by their initial matrices, which determine its size."""
        if matrix.weights is None:
            return matrix.rebuilt(self._at_start)
        parts = self.history.starts(matrix.weights)
        if not parts:
            raise DeclarationError(
                f"{matrix.weights} starts from 0, so it has no bulk; probe weights with a random initial matrix"
            )
        terms = (
            (
                scale(matrix.time),
                MatrixAtom(matrix.rows, matrix.columns, start.disorder, matrix.transposed != start.transposed),
            )
            for start, scale in parts
        )
        return SumOfMatrices(matrix.rows, matrix.columns, tuple(terms))

    def _check_symmetric(self, matrix: MatrixExpression) -> None:
        here, there = words_of(matrix, self._letters), words_of(matrix.T, self._letters)
        keys = sorted({*here, *there}, key=str)
        if any(sp.simplify(here.get(k, 0) - there.get(k, 0)) != 0 for k in keys):
            raise DeclarationError(
                f"spectrum({matrix}): the matrix is not symmetric; probe W.T @ W for singular values"
            )

    def _letters(self, matrix: MatrixAtom) -> dict[Letters, sp.Expr]:
        """Return weights as initial matrices and outer products with coefficients; a random matrix is returned
        unchanged."""
        symbol, transposed = matrix.symbol, matrix.transposed
        if symbol.weights is None:
            return {((symbol, transposed),): sp.S.One}
        total: dict[Letters, sp.Expr] = {}
        for start, scale in self.history.starts(symbol.weights):
            turned = transposed != start.transposed and not start.disorder.symmetric
            total[(start.disorder, turned),] = scale(symbol.time)
        for (w, i), kernel in self.history.kernels.items():
            if w == symbol.weights:
                ends = (i.left, i.right)
                for word, value in dyad_words(*(ends[::-1] if transposed else ends)).items():
                    added = value * i.coefficient * kernel(symbol.time, PAST)
                    total[word] = total.get(word, sp.S.Zero) + added
        return total
