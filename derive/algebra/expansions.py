"""Edges, outliers and thresholds as power series in a parameter, from the records of the bulk.

Each is a root of a polynomial that the derivation has found; which root, is decided by following the physical branch
at small values of the parameter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import flint
import mpmath
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint, physical_values, sample_point
from derive.algebra.polynomials import TooLarge, branch_points, check_size, eliminate, factors
from derive.algebra.series import Expansion, expand_root
from derive.errors import DeriveError, NumericalError, ParameterError
from derive.language.symbols import Parameter
from derive.records.probe import MAP, Bulk, Cycle

SMALL = sp.Symbol("epsilon", positive=True)
"""What an expansion is made in."""
QUANTITIES = ("edge", "lower_edge", "outlier", "threshold")
DIGITS = 80


@dataclass(frozen=True)
class Limit:
    """A parameter as a function of SMALL: p = e, p = 1/e or p = value + e."""

    parameter: Parameter
    value: sp.Expr

    @property
    def small(self) -> sp.Expr:
        """SMALL in terms of the parameter."""
        if self.value == 1 / SMALL:
            return 1 / self.parameter
        return self.parameter - self.value.subs(SMALL, 0)

    @staticmethod
    def of(text: str, parameters: tuple[Parameter, ...]) -> Limit:
        """Read "1/nu", "gamma" or "gamma0-1"."""
        names = {p.name: p for p in parameters}
        inverse = re.fullmatch(r"\s*1\s*/\s*(\w+)\s*", text)
        shifted = re.fullmatch(r"\s*(\w+)\s*([+-])\s*([\d./]+)\s*", text)
        name = inverse[1] if inverse else shifted[1] if shifted else text.strip()
        if name not in names:
            raise ParameterError(
                f"cannot expand in {text!r}; write a parameter, its inverse or its distance from a value, such as "
                f"{_examples(parameters)}"
            )
        if names[name].domain.whole:
            raise ParameterError(f"cannot expand in {name}: it is a whole number; the others can be expanded in")
        if inverse:
            return Limit(names[name], 1 / SMALL)
        if shifted:
            value = rational(shifted[3], text)
            return Limit(names[name], (value if shifted[2] == "-" else -value) + SMALL)
        return Limit(names[name], SMALL)


def _examples(parameters: tuple[Parameter, ...]) -> str:
    open_ones = [p.name for p in parameters if not p.domain.whole]
    return ", ".join((*open_ones, *(f"1/{n}" for n in open_ones[:1]))) or "nothing: there are no parameters"


def rational(text: str, where: str) -> sp.Rational:
    """An exact number from text: 2, 0.3, 1/3."""
    try:
        return sp.Rational(text.strip())
    except (TypeError, ValueError, ZeroDivisionError):
        raise ParameterError(f"{where}: {text!r} is not a number; write 2, 0.3 or 1/3") from None


def expand_quantity(
    bulk: Bulk,
    of: str,
    limit: Limit,
    order: sp.Rational,
    fixed: dict[Parameter, sp.Rational],
    wanted: str | None = None,
) -> Expansion:
    """The edge, outlier or threshold through SMALL**order, exact in every parameter that is not fixed."""
    if limit.parameter in fixed:
        raise ParameterError(f"{limit.parameter} is what the expansion is in; leave it out of --at")
    for parameter, value in fixed.items():
        parameter.checked(float(value))
    work = _Quantity(bulk, limit, fixed)
    if of in ("edge", "lower_edge"):
        return work.edge(of == "edge", order)
    if of == "outlier":
        return work.outlier(order)
    return work.threshold(order, wanted)


def branch_values(bulk: Bulk, limit: Limit, fixed: dict[Parameter, sp.Rational]) -> dict[str, str]:
    """The values of the open parameters at which the physical branch is identified."""
    point = _Quantity(bulk, limit, fixed).point
    return {p.name: str(v) for p, v in point.items() if isinstance(p, Parameter)}


class _Quantity:
    def __init__(self, bulk: Bulk, limit: Limit, fixed: dict[Parameter, sp.Rational]):
        self.bulk, self.limit, self.fixed = bulk, limit, fixed
        projected = bulk.projected
        self.substitution = {**fixed, limit.parameter: limit.value}
        self.equations = tuple(sp.sympify(e).subs(self.substitution) for e in projected.bulk_equations)
        if any(e.has(sp.zoo, sp.nan, sp.oo) for e in self.equations):
            raise DeriveError("the bulk equations divide by zero at these values of --at; take others")
        self.unknowns = projected.bulk_symbols
        inside = sample_point((*projected.bulk_equations, *(c.relation for c in bulk.pencil.cycles)))
        eigenvalues = [c.eigenvalue for c in bulk.pencil.cycles if c.eigenvalue is not None]
        self.point = {**sample_point(eigenvalues), **inside}
        self.point = {p: v for p, v in self.point.items() if p not in self.substitution}

    def given(self, small) -> dict:
        """All open symbols as numbers at one small value."""
        return {**self.point, SMALL: small}

    # edges

    def edge(self, upper: bool, order: sp.Rational) -> Expansion:
        candidates = self.edge_factors()

        def near(small):
            return self.numerical_edge(candidates, small, upper)

        probe = mpmath.mpf(10) ** -7
        with mpmath.workdps(DIGITS):
            value = near(probe)
            found = [f for f in candidates if _vanishes(f, {**self.given(_exact(probe)), Z: value})]
        if not found:
            raise NumericalError("the edge is not a root of a derived polynomial; expand in another parameter")
        return expand_root(found[0], Z, SMALL, order, near, self.point)

    def edge_factors(self) -> list[sp.Expr]:
        """Polynomials in z and SMALL whose roots hold the edges."""
        if self.bulk.curve is not None:
            raw = [sp.fraction(sp.together(f.subs(self.substitution)))[0] for f in self.bulk.edge_factors]
            return _distinct_factors(raw)
        projected = self.bulk.projected
        others = [s for s in self.unknowns if s != projected.resolvent]
        open_ones = ", ".join(p.name for p in self.bulk.system.model.parameters if p not in self.substitution)
        advice = (
            f"fix parameters with --at ({open_ones} are open)" if open_ones else "there is no exact expansion of it"
        )
        try:
            check_size(others)
        except TooLarge as reason:
            raise DeriveError(
                f"the bulk is too large to eliminate ({reason}), so its edges have no exact expansion; solve for edges "
                "at several values with `derive solve`"
            ) from None
        try:
            middle = {**self.point, SMALL: sp.Rational(3, 29)}
            values = physical_values(self.equations, self.unknowns, middle)
            curve = eliminate(list(self.equations), others, PhysicalPoint(middle, values))
            singular, poles = branch_points(curve, projected.resolvent)
        except TooLarge as reason:
            raise DeriveError(f"the bulk is too large to eliminate ({reason}); {advice}") from None
        return [f for f in (*singular, *poles) if f.has(Z)]

    def numerical_edge(self, candidates: list[sp.Expr], small, upper: bool):
        """The end of the support at one small value, among the real roots of the candidates."""
        point = self.given(_exact(small))
        with mpmath.workdps(DIGITS):
            roots = sorted({r for f in candidates for r in real_roots(f.subs(point))}, reverse=upper)
            places = _apart(roots)
            for here, following in zip(places, [*places[1:], None], strict=True):
                inner = here + (-1 if upper else 1) if following is None else (here + following) / 2
                if self._dense_at(inner, abs(here - inner), point):
                    return here
        raise NumericalError(f"no edge of the bulk was found near the limit {self._told()}")

    def _dense_at(self, place, distance, point: dict) -> bool:
        """Whether the density is positive: then Im G does not shrink with the distance to the real axis."""
        sizes = []
        for digits in (10, 13):
            at = mpmath.mpc(place, distance * mpmath.mpf(10) ** -digits)
            try:
                values = physical_values(self.equations, self.unknowns, point, at=at)
            except NumericalError:
                return False
            sizes.append(abs(mpmath.im(values[self.bulk.projected.resolvent])))
        return bool(sizes[1] > sizes[0] / 10)

    def _told(self) -> str:
        return f"{self.limit.parameter} = {self.limit.value}"

    # outliers

    def _explicit(self) -> list[Cycle]:
        found = [c for c in self.bulk.pencil.cycles if c.eigenvalue is not None]
        if not found:
            what = "has no spikes" if not self.bulk.blocks.labels else "has no outlier in closed form"
            raise DeriveError(
                f"{self.bulk.system.model.name or 'the model'} {what}: its eigenproblem is not explicit in the "
                "parameters; expand the edge instead, or solve for numbers with `derive solve`"
            )
        return found

    def outlier(self, order: sp.Rational) -> Expansion:
        options = []
        with mpmath.workdps(DIGITS):
            probe = mpmath.mpf(10) ** -7
            for cycle in self._explicit():
                position = self._position(cycle, probe)
                if position is not None:
                    options.append((position, cycle))
        if not options:
            raise DeriveError(f"there is no outlier at {self._told()} for small {SMALL}: it lies inside the bulk")
        cycle = max(options, key=lambda option: option[0])[1]
        assert cycle.eigenvalue is not None
        relation = cycle.relation.subs(MAP, cycle.eigenvalue).subs(self.substitution)

        def near(small):
            return self._position(cycle, small)

        for polynomial in _distinct_factors([sp.fraction(sp.together(relation))[0]]):
            with mpmath.workdps(DIGITS):
                if polynomial.has(Z) and _vanishes(polynomial, {**self.given(_exact(probe)), Z: near(probe)}):
                    return expand_root(polynomial, Z, SMALL, order, near, self.point)
        raise NumericalError("the outlier is not a root of a derived polynomial; expand in another parameter")

    def _position(self, cycle: Cycle, small):
        """Where the physical branch of the map takes the value of the eigenvalue, outside the bulk; None if nowhere."""
        point = self.given(_exact(small))
        assert cycle.eigenvalue is not None
        level = _number(cycle.eigenvalue.subs(self.substitution), point)
        relation = cycle.relation.subs(self.substitution)
        if mpmath.im(level) != 0:
            return None
        equation = sp.fraction(sp.together(relation.subs(point)))[0]
        poly = sp.Poly(equation, Z)
        coefficients = [_number(c, {MAP: level}) for c in poly.all_coeffs()]
        found = []
        for root in _roots(coefficients):
            if abs(mpmath.im(root)) > mpmath.mpf(10) ** -30 * (1 + abs(root)):
                continue
            at = mpmath.mpc(mpmath.re(root), mpmath.mpf(10) ** -20)
            try:
                values = physical_values(self.equations, self.unknowns, point, at=at)
            except NumericalError:
                continue
            mapped = _number(cycle.scalar_map.subs(self.substitution), {**point, **values})
            if abs(mapped - level) < mpmath.mpf(10) ** -12 * (1 + abs(level)):
                found.append(mpmath.re(root))
        return max(found) if found else None

    # thresholds

    def threshold(self, order: sp.Rational, wanted: str | None) -> Expansion:
        options = []
        for cycle in self._explicit():
            assert cycle.eigenvalue is not None
            names = {p.name: p for p in sorted(cycle.eigenvalue.atoms(Parameter), key=str)}
            open_names = [n for n, p in names.items() if p not in self.substitution]
            if wanted is not None and wanted not in open_names:
                continue
            if open_names and cycle.critical and cycle.inverse is not None:
                options.append((cycle, names[wanted or open_names[0]]))
        if not options:
            raise DeriveError(
                "no threshold in closed form: the strength of the spike must be a parameter that is neither fixed nor "
                f"expanded in ({self.limit.parameter} is); expand in another parameter, or name one with --parameter"
            )
        cycle, parameter = options[0]
        assert cycle.eigenvalue is not None and cycle.inverse is not None
        self.point = {p: v for p, v in self.point.items() if p != parameter}
        probe = mpmath.mpf(10) ** -7
        open_symbol = sp.Symbol(parameter.name, positive=parameter.is_positive)
        best = None
        for critical in cycle.critical:
            raw = (cycle.eigenvalue - critical).subs(self.substitution).subs(parameter, open_symbol)
            for polynomial in _rational_factors(raw):
                if not polynomial.has(open_symbol):
                    continue

                def near(small, polynomial=polynomial, critical=critical):
                    point = self.given(_exact(small))
                    allowed = []
                    for root in real_roots(polynomial.subs(point)):
                        value = _number(cycle.eigenvalue.subs(self.substitution), {**point, parameter: root})
                        level = _number(critical.subs(self.substitution), {**point, parameter: root})
                        same = abs(value - level) < mpmath.mpf(10) ** -20 * (1 + abs(level))
                        if same and parameter.domain.contains(float(root)):
                            allowed.append(root)
                    return min(allowed, key=abs) if allowed else None

                with mpmath.workdps(DIGITS):
                    value = near(probe)
                    if value is None:
                        continue
                    point = {**self.given(_exact(probe)), parameter: value}
                    height = _number(cycle.inverse.subs(MAP, critical).subs(self.substitution), point)
                if best is None or height > best[0]:
                    best = (height, polynomial, near)
        if best is None:
            raise DeriveError(
                f"no threshold of {parameter} lies in its domain ({parameter.domain}) near {self._told()}"
            )
        return expand_root(best[1], open_symbol, SMALL, order, best[2], self.point)


def _distinct_factors(polynomials: list[sp.Expr]) -> list[sp.Expr]:
    return list(dict.fromkeys(f for p in polynomials for f in factors(sp.expand(p)) if f.has(Z)))


def _rational_factors(expression: sp.Expr) -> list[sp.Expr]:
    """Polynomials that hold every zero of an expression with square roots of symbols."""
    from sympy.polys.polyutils import PolynomialError

    numerator = sp.fraction(sp.together(expression))[0]
    radicals = sorted(
        (n for n in sp.preorder_traversal(numerator) if n.is_Pow and n.exp.is_Rational and not n.exp.is_Integer),
        key=str,
    )
    made: dict[sp.Expr, sp.Symbol] = {}
    for node in radicals:
        made.setdefault(node.base ** sp.Rational(1, node.exp.q), sp.Symbol(f"_radical{len(made)}"))
    plain = numerator.subs({node: symbol for node, symbol in made.items()})
    for node, symbol in made.items():
        base, power = node.as_base_exp()
        relation = symbol**power.q - base
        try:
            plain = sp.resultant(sp.expand(plain), sp.fraction(sp.together(relation))[0], symbol)
        except PolynomialError:
            raise DeriveError("the threshold is not algebraic in the parameters; give numbers with --at") from None
    return factors(sp.expand(plain))


def real_roots(polynomial: sp.Expr) -> list:
    """The real roots of a polynomial with exact coefficients, to many digits."""
    symbols = sorted(polynomial.free_symbols, key=str)
    if len(symbols) != 1:
        return []
    found = []
    with mpmath.workdps(DIGITS):
        for factor, _ in sp.factor_list(sp.nsimplify(polynomial, rational=True))[1]:
            poly = sp.Poly(factor, symbols[0])
            if poly.degree() == 0:
                continue
            if all(c.is_Rational for c in poly.all_coeffs()):
                found += _isolated(poly)
                continue
            for root in _roots([_number(c, {}) for c in poly.all_coeffs()]):
                if abs(mpmath.im(root)) <= mpmath.mpf(10) ** -40 * (1 + abs(root)):
                    found.append(mpmath.re(root))
    return found


def _isolated(poly: sp.Poly) -> list:
    """Real roots of a polynomial with rational coefficients, by certified isolation."""
    _, cleared = poly.clear_denoms(convert=True)
    integers = flint.fmpz_poly([int(c) for c in reversed(cleared.all_coeffs())])
    before = flint.ctx.prec
    flint.ctx.prec = int(3.4 * DIGITS)
    try:
        middles = [root.real.mid().man_exp() for root, _ in integers.complex_roots() if root.imag == 0]
    finally:
        flint.ctx.prec = before
    return [mpmath.ldexp(mpmath.mpf(int(m)), int(e)) for m, e in middles]


def _roots(coefficients: list) -> list:
    while coefficients and coefficients[0] == 0:
        coefficients = coefficients[1:]
    if len(coefficients) < 2:
        return []
    return mpmath.polyroots(coefficients, maxsteps=2000, extraprec=1000)


def _apart(sorted_roots: list) -> list:
    """Roots without repetitions."""
    found: list = []
    for root in sorted_roots:
        if not found or abs(root - found[-1]) > mpmath.mpf(10) ** -40 * (1 + abs(root)):
            found.append(root)
    return found


def _exact(small) -> sp.Rational:
    """A number as a fraction, close enough to be the same."""
    if isinstance(small, sp.Rational):
        return small
    mantissa, exponent = mpmath.frexp(small)
    return sp.Rational(int(mantissa * 2**200), 2**200) * sp.Integer(2) ** int(exponent)


def _number(expression: sp.Expr, values: dict[Any, Any]):
    with mpmath.workdps(DIGITS):
        symbols = sorted(expression.free_symbols, key=lambda s: s.name)
        arguments = [
            mpmath.mpf(int(values[s].p)) / int(values[s].q) if isinstance(values[s], sp.Rational) else values[s]
            for s in symbols
        ]
        return mpmath.mpmathify(sp.lambdify(symbols, expression, "mpmath")(*arguments))


def _vanishes(polynomial: sp.Expr, values: dict) -> bool:
    terms = [abs(_number(term, values)) for term in sp.Add.make_args(sp.expand(polynomial))]
    return abs(_number(polynomial, values)) <= sum(terms) * mpmath.mpf(10) ** -30
