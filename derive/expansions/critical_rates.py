"""The critical rate of linear training in closed form, by elimination.

A numerical rate selects the instability and the root; the equations are exact. At w = 1 or -1 on the unit circle the
responses obey polynomial equations. Their discriminant vanishes at a fold; at a pole their resultant with its
denominator does. Covariances of fresh data diverge where det(1 - M) = 0; M sums products of impulse responses over all
times and is rational in the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import sympy as sp

from derive.algebra.polynomials import TooLarge, branch_points, common_roots, factors, normalised
from derive.algebra.sites import site_responses
from derive.language.data import DataAt
from derive.language.symbols import EngineSymbol, Parameter, Sector
from derive.language.traits import Trait
from derive.language.vectors import Field
from derive.records.limit import Recursion

W = EngineSymbol("w")
"""The variable of the generating function sum_t x(t) w^t: a delay by one step is a factor w."""
MOST_FIELDS, MOST_UNKNOWNS, MOST_GROUPS, MOST_DELAY = 12, 4, 3, 4
"""Bounds of an elimination: fields, responses, groups of sites, and degree in w of a denominator."""
WINDOW = sp.Rational(1, 10**9)
"""Relative distance from the critical rate at which the signs of a polynomial must differ."""
LONGEST = 400
"""Length of the longest polynomial that is returned, in characters."""


@dataclass(frozen=True)
class ClosedForm:
    """A critical rate: a polynomial in the parameters that vanishes there and, if solvable, the formula of the rate."""

    polynomial: sp.Expr
    formula: sp.Expr | None


def closed_form(
    recursion: Recursion, rate: str, values: Mapping[str, Any], kind: str, angle: float | None
) -> ClosedForm | None:
    """Return the critical rate in closed form; None if elimination gives none.

    Args:
        recursion: the step of training.
        rate: the parameter.
        values: the parameters, with the rate at its critical value to rounding.
        kind: the instability that the numerics found.
        angle: its angle on the unit circle.

    Nonzero parameters remain symbols if the elimination is small enough, and are numbers otherwise.
    """
    symbols = {p.name: p for p in sorted(parameters_of(recursion), key=lambda p: p.name)}
    if (
        rate not in symbols
        or len(recursion.fields) > MOST_FIELDS
        or any(c.has(DataAt) for c in recursion.coefficients)
        or _has_labels(recursion)
    ):
        return None
    root = symbols[rate]
    point = {p: sp.nsimplify(values[name], rational=True) for name, p in symbols.items()}
    point[root] = sp.Rational(float(values[rate]))
    others = {p: value for p, value in point.items() if p != root}
    zero = {p: value for p, value in others.items() if value == 0}
    for fixed in (zero, others):
        try:
            elimination = _StepElimination(recursion, fixed)
            for candidate in elimination.candidates(kind, angle):
                if root in candidate.free_symbols and _changes_sign(candidate, root, point):
                    polynomial = normalised(candidate)
                    if len(str(polynomial)) <= LONGEST:
                        return ClosedForm(polynomial, _solved(polynomial, root, point))
        except (TooLarge, NotImplementedError, sp.PolynomialError):
            continue
    return None


def parameters_of(recursion: Recursion) -> set[Parameter]:
    """Return the parameters of the step and of the laws of its traits."""
    laws = [t.law for t in recursion.traits]
    return {p for e in (*recursion.coefficients, *laws) for p in sp.sympify(e).atoms(Parameter)}


def _has_labels(recursion: Recursion) -> bool:
    return any(f.labelled for f in recursion.fields) or any(part.mixing is not None for part in recursion.parts)


def _changes_sign(polynomial: sp.Expr, rate: sp.Symbol, point: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Return whether a polynomial changes sign near the rate, in exact arithmetic."""
    ends = [polynomial.xreplace({**point, rate: point[rate] * (1 + side * WINDOW)}) for side in (-1, 1)]
    signs = [sp.sign(end if end.is_Rational else sp.N(end, 50)) for end in ends]
    return bool(signs[0] * signs[1] == -1)


def _solved(polynomial: sp.Expr, rate: sp.Symbol, point: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr | None:
    """Return the root, near the rate, of a polynomial of degree one or two; None for other degrees."""
    poly = sp.Poly(polynomial, rate)
    if poly.degree() == 1:
        return sp.factor(-poly.coeff_monomial(1) / poly.coeff_monomial(rate))
    if poly.degree() != 2:
        return None
    a, b, c = (sp.factor(poly.coeff_monomial(rate**k)) for k in (2, 1, 0))
    root = _root(b**2 - 4 * a * c)
    roots = []
    for sign in (1, -1):
        for value in ((-b + sign * root) / (2 * a), 2 * c / (-b - sign * root)):
            nice = _nice(value)
            number = sp.N(nice.xreplace(dict(point)), 20)
            if number.is_number and number.is_finite and abs(number - point[rate]) < WINDOW * abs(point[rate]):
                roots.append(nice)
    return min(roots, key=lambda e: (sp.count_ops(e), str(e)), default=None)


def _root(square: sp.Expr) -> sp.Expr:
    """Return a square root with integer factors extracted, up to its sign; the caller tries both signs."""
    outside, inside = sp.S.One, sp.S.One
    number, factors = sp.factor_list(square)
    for base, power in factors:
        outside *= base ** (power // 2)
        inside *= base ** (power % 2)
    return outside * sp.sqrt(number) * sp.Mul(*(sp.sqrt(part) for part in sp.Mul.make_args(inside)))


def _nice(value: sp.Expr) -> sp.Expr:
    """Return the expression factored over the roots of the parameters."""
    roots = [n for n in sp.preorder_traversal(value) if n.is_Pow and n.exp.is_Rational and n.exp.q == 2]
    bases = sorted({n.base for n in roots}, key=str)
    marks = {base: sp.Symbol(f"_root{k}", positive=True) for k, base in enumerate(bases)}
    plain = value.xreplace({n: marks[n.base] ** (2 * n.exp) for n in roots})
    plain = sp.factor(plain.xreplace({base: mark**2 for base, mark in marks.items() if base.is_Symbol}))
    return plain.xreplace({mark: sp.sqrt(base) for base, mark in marks.items()})


class _StepElimination:
    """The equations of a step with some parameters fixed."""

    def __init__(self, recursion: Recursion, fixed: Mapping[sp.Symbol, sp.Expr]):
        self.recursion, self.fixed = recursion, dict(fixed)
        self.rows: dict[Sector, list[Field]] = {}
        for field in recursion.fields:
            self.rows.setdefault(field.sector, []).append(field)
        inside = dict.fromkeys((m.a, m.noise) for m in recursion.memories if not m.fresh)
        self.unknown = {pair: EngineSymbol(f"R{k}", *pair) for k, pair in enumerate(inside)}
        if len(inside) > MOST_UNKNOWNS:
            raise NotImplementedError("too many responses")
        self.groups = {sector: self._groups(sector) for sector in self.rows}
        self.inverse = {sector: site_responses(self._matrix(sector).tolist()) for sector in self.rows}

    def _groups(self, sector: Sector) -> list[tuple[sp.Expr, dict[sp.Expr, sp.Expr]]]:
        """Return the weight and the traits of each group of sites."""
        traits: list[Trait] = [trait for trait in self.recursion.traits if trait.sector == sector]
        if any(not trait.discrete or not trait.weights for trait in traits):
            raise NotImplementedError("sites with a density")
        laws = [list(zip(t.weights, t.values, strict=True)) for t in traits]
        groups = []
        for group in product(*laws):
            share = sp.Mul(*(weight for weight, _ in group)).xreplace(self.fixed)
            at = {t(): sp.sympify(value).xreplace(self.fixed) for t, (_, value) in zip(traits, group, strict=True)}
            groups.append((share, at))
        if len(groups) > MOST_GROUPS:
            raise NotImplementedError("too many groups of sites")
        return groups

    def _matrix(self, sector: Sector) -> sp.Matrix:
        rows = self.rows[sector]
        place = {field: i for i, field in enumerate(rows)}
        matrix = sp.eye(len(rows))
        for part in self.recursion.parts:
            if part.target in place and part.of in place:
                matrix[place[part.target], place[part.of]] -= part.coefficient.xreplace(self.fixed) * W**part.delay
        for m in self.recursion.memories:
            if m.target in place:
                response = self.at_once.get((m.a, m.noise), sp.S.Zero) if m.fresh else self.unknown[m.a, m.noise]
                matrix[place[m.target], place[m.on]] -= m.coefficient.xreplace(self.fixed) * response
        return matrix

    @cached_property
    def at_once(self) -> dict[tuple[Field, Field], sp.Expr]:
        """Responses at equal times of fresh matrices, by a finite fixed-point iteration."""
        responses: dict[tuple[Field, Field], sp.Expr] = {}
        pairs = list(dict.fromkeys((m.a, m.noise) for m in self.recursion.memories))
        for _ in range(2 * len(pairs) + 2):
            self.__dict__["at_once"] = responses
            new = {}
            for a, noise in pairs:
                sector = noise.sector
                if a.sector != sector:
                    continue
                matrix = self._matrix(sector).xreplace(
                    {self.unknown[p]: responses.get(p, sp.S.Zero) for p in self.unknown}
                )
                inverse = site_responses(matrix.xreplace({W: sp.S.Zero}).tolist())
                new[a, noise] = self._average(sector, inverse[self._at(a), self._at(noise)])
            if new == responses:
                break
            responses = new
        return responses

    def _at(self, field: Field) -> int:
        return self.rows[field.sector].index(field)

    def _average(self, sector: Sector, expression: sp.Expr) -> sp.Expr:
        return sp.cancel(sp.Add(*(share * expression.xreplace(at) for share, at in self.groups[sector])))

    def _answer(self, a: Field, noise: Field) -> sp.Expr:
        return self.inverse[noise.sector][self._at(a), self._at(noise)] if a.sector == noise.sector else sp.S.Zero

    # -- conditions of criticality

    def candidates(self, kind: str, angle: float | None) -> Iterator[sp.Expr]:
        """Yield irreducible polynomials in the parameters, one of which vanishes at the critical rate."""
        if kind == "covariance":
            yield from self._covariances()
        elif angle is not None and min(abs(angle), abs(angle - float(sp.pi))) < 1e-9:
            yield from self._modes(sp.S.One if angle < 1 else -sp.S.One)

    def _covariances(self) -> Iterator[sp.Expr]:
        """Yield the factors of det(1 - M), where all matrices are drawn anew."""
        covariances = self.recursion.covariances
        if self.unknown or any(not c.fresh for c in covariances):
            return
        pairs = list(dict.fromkeys(tuple(sorted((c.a, c.b), key=str)) for c in covariances))
        matrix = sp.eye(len(pairs))
        for i, (a, b) in enumerate(pairs):
            for c in covariances:
                if c.left.sector != a.sector or c.right.sector != b.sector:
                    continue
                scale = c.coefficient.xreplace(self.fixed)
                left_response, right_response = self._answer(a, c.left), self._answer(b, c.right)
                added = sp.Add(
                    *(
                        share * scale.xreplace(at) * _summed(left_response.xreplace(at), right_response.xreplace(at))
                        for share, at in self.groups[a.sector]
                    )
                )
                matrix[i, pairs.index(tuple(sorted((c.a, c.b), key=str)))] -= added
        yield from _factors(sp.together(matrix.det(method="berkowitz")))

    def _modes(self, w: sp.Expr) -> Iterator[sp.Expr]:
        """Yield the factors that vanish if a fold or a pole lies at w."""
        at = {W: w}
        equations = [
            symbol - self._average(noise.sector, self._answer(a, noise).xreplace(at))
            for (a, noise), symbol in self.unknown.items()
        ]
        rest = [sp.fraction(sp.together(e))[0] for e in equations]
        unknowns, polynomials = list(self.unknown.values()), []
        while len(unknowns) > 1:
            choice = next(((e, s) for e in rest for s in unknowns if e.has(s) and sp.degree(e, s) == 1), None)
            if choice is None:
                return
            equation, symbol = choice
            poly = sp.Poly(equation, symbol)
            value = sp.cancel(-poly.coeff_monomial(1) / poly.coeff_monomial(symbol))
            polynomials.append((symbol, value))
            unknowns.remove(symbol)
            rest = [_numerator(e.xreplace({symbol: value})) for e in rest if e is not equation]
        poles = [self._without(p, polynomials) for p in self._poles(at)]
        if not unknowns:
            for pole in poles:
                yield from _factors(pole)
            return
        (last,) = unknowns
        curves = [f for e in rest for f in factors(sp.expand(e)) if f.has(last)]
        for curve in curves:
            yield from branch_points(curve, last)[0]
        for curve in curves:
            for pole in poles:
                for part in _factors(pole):
                    yield from common_roots(curve, part, last) if part.has(last) else [part]

    def _poles(self, at: Mapping[sp.Symbol, sp.Expr]) -> Iterator[sp.Expr]:
        """Yield the polynomials that vanish at a pole of a site's response, of overlaps or of correlations."""
        yield from self._overlapping(at)
        for sector in self.rows:
            matrix = self._matrix(sector).xreplace(dict(at))
            for _, group in self.groups[sector]:
                yield matrix.xreplace(group).det(method="berkowitz")
        covariances = [c for c in self.recursion.covariances if not c.fresh]
        pairs = list(dict.fromkeys((c.a, c.b) for c in covariances))
        if not pairs:
            return
        joined = sp.eye(len(pairs))
        for i, (a, b) in enumerate(pairs):
            for c in covariances:
                if c.left.sector == a.sector == b.sector:
                    answers = self._answer(a, c.left) * self._answer(b, c.right)
                    added = c.coefficient.xreplace(self.fixed) * answers.xreplace(dict(at))
                    joined[i, pairs.index((c.a, c.b))] -= self._average(a.sector, added)
        yield joined.det(method="berkowitz")

    def _overlapping(self, at: Mapping[sp.Symbol, sp.Expr]) -> Iterator[sp.Expr]:
        overlaps = self.recursion.overlaps
        if not overlaps:
            return
        matrix = sp.eye(len(overlaps))
        for k, one in enumerate(overlaps):
            for use in self.recursion.overlap_terms:
                if use.source != one.source or use.target.sector != one.field.sector:
                    continue
                answer = self._answer(one.field, use.target)
                seen = answer.xreplace({W: sp.S.Zero}) if one.source.timed else answer.xreplace(dict(at))
                scale = (one.scale * one.source.scale**2 * use.coefficient).xreplace(self.fixed)
                joined = self._average(one.field.sector, scale * seen) * at[W] ** one.delay
                matrix[k, overlaps.index(use.overlap)] -= joined
        yield matrix.det(method="berkowitz")

    def _without(self, expression: sp.Expr, polynomials: Iterable[tuple[sp.Symbol, sp.Expr]]) -> sp.Expr:
        for symbol, value in polynomials:
            expression = expression.xreplace({symbol: value})
        return _numerator(expression)


def _numerator(expression: sp.Expr) -> sp.Expr:
    return sp.expand(sp.fraction(sp.cancel(sp.together(expression)))[0])


def _factors(expression: sp.Expr) -> list[sp.Expr]:
    """Return the irreducible factors of the numerator; roots of parameters are indeterminates."""
    numerator = _numerator(expression)
    return factors(numerator) if numerator.free_symbols else []


def _summed(left: sp.Expr, right: sp.Expr) -> sp.Expr:
    """Return sum_t x(t) y(t) of two impulse responses from their rational transforms.

    The part of x(w) y(1/w) that is analytic in the disc is split off; the sum is the value of the rest at infinity.
    """
    if left == 0 or right == 0:
        return sp.S.Zero
    (p, q), (r, s) = (tuple(sp.Poly(x, W) for x in sp.fraction(sp.cancel(e))) for e in (left, right))
    high = max(r.degree(), s.degree())
    if q.degree() + high > 2 * MOST_DELAY:
        raise NotImplementedError("long memory")
    turned, below = (sp.Poly(sp.expand(x.as_expr().subs(W, 1 / W) * W**high), W) for x in (r, s))
    # p turned / (w q below) = A / q + B / (w below) + whole: the residues inside are those of the second term
    total = p * turned
    denominator = sp.Poly(W, W) * below
    whole, rest = sp.div(total, q * denominator)
    inside, outside = denominator.degree(), q.degree()
    unknowns = sp.symbols(f"_c:{inside + outside}")
    first = sp.Poly(sum(c * W**k for k, c in enumerate(unknowns[:outside])), W)
    second = sp.Poly(sum(c * W**k for k, c in enumerate(unknowns[outside:])), W)
    equation = first * denominator + second * q - rest
    solution = sp.solve(equation.all_coeffs(), unknowns, dict=True)
    if not solution:
        raise NotImplementedError("no partial fractions")
    leading = second.as_expr().subs(solution[0])
    top = sp.Poly(leading, W).coeff_monomial(W ** (inside - 1))
    return sp.cancel(top / denominator.LC())
