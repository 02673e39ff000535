"""Elimination, factors, discriminants and quotients of random polynomials, against SymPy and against numbers."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import sympy as sp

import derive.algebra.polynomials as polynomials
from derive import parameter, positive
from derive.algebra.degrees import PRIME, NoExpansion, ResolventExpansion
from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint, physical_values, sample_point
from derive.algebra.polynomials import (
    MOST_UNKNOWNS,
    PolynomialRing,
    TooLarge,
    branch_points,
    check_size,
    chosen_factor,
    common_roots,
    eliminate,
    eliminated,
    factors,
    normalised,
    proves_zero,
    rational_factors,
    rational_norm,
    solve_linear_unknowns,
)
from derive.algebra.quotients import RationalFunctions

x, y, z, G, R, S = sp.symbols("x y z G R S")
SEEDS = range(3)


def drawn(chance: random.Random, variables: tuple[sp.Symbol, ...], degree: int, terms: int = 4) -> sp.Expr:
    """A polynomial of a given degree in the first variable, with fractions as coefficients."""
    numbers = [sp.Rational(chance.choice([-1, 1]) * chance.randint(1, 9), chance.randint(1, 4)) for _ in range(terms)]
    parts = [numbers[0] * variables[0] ** degree * (1 + sum(variables[1:]))]
    for number in numbers[1:]:
        powers = [chance.randint(0, degree), *(chance.randint(0, 2) for _ in variables[1:])]
        parts.append(number * sp.Mul(*(v**p for v, p in zip(variables, powers, strict=True))))
    return sp.expand(sp.Add(*parts) + chance.randint(10, 19))


def up_to_a_number(expressions) -> set[sp.Expr]:
    """Polynomials with leading coefficient one."""
    return {sp.Poly(e, x, y, z, domain="QQ").monic().as_expr() for e in expressions}


def of_sympy(expression: sp.Expr) -> set[sp.Expr]:
    """SymPy's irreducible factors, without numbers."""
    return up_to_a_number(f for f, _ in sp.factor_list(expression)[1])


# -- resultants, discriminants, factors


@pytest.mark.parametrize("seed", SEEDS)
def test_resultants_and_discriminants_are_those_of_sympy(seed):
    chance = random.Random(seed)
    p, q = drawn(chance, (x, y), 3), drawn(chance, (x, z), 2)
    assert up_to_a_number(common_roots(p, q, x)) == of_sympy(sp.resultant(p, q, x))
    square_free = sp.prod(of_sympy(sp.resultant(p, q, x)))
    assert up_to_a_number([eliminated(p, q, x)]) == up_to_a_number([square_free])
    discriminant, lead = branch_points(p, x)
    assert up_to_a_number(discriminant) == of_sympy(sp.discriminant(p, x))
    assert up_to_a_number(lead) == of_sympy(sp.LC(p, x))


def test_a_curve_of_degree_one_has_no_branch_points_but_a_pole():
    discriminant, (lead,) = branch_points(x * (y - 2) + y**2, x)
    assert discriminant == [] and sp.expand(lead**2 - (y - 2) ** 2) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_factors_are_those_that_were_multiplied(seed):
    chance = random.Random(seed)
    parts = [drawn(chance, (x, y, z), degree) for degree in (1, 2)]
    expected = set().union(*map(of_sympy, parts))
    assert up_to_a_number(factors(sp.expand(parts[0] ** 2 * parts[1]))) == expected
    assert up_to_a_number(factors(parts[0] / (1 + y**2) * parts[1])) == expected


def test_factors_with_long_coefficients_are_found():
    """Declared decimals with many digits are fractions with long numerators."""
    long = sp.Rational(10**40 + 7, 3**60)
    assert up_to_a_number(factors(sp.expand((x - long) * (x + y * long) * 6))) == {x - long, x + y * long}


def test_a_number_has_no_factors():
    assert factors(sp.Rational(3, 4)) == [] and rational_factors(sp.sqrt(2)) == []


@pytest.mark.parametrize(
    ("radicals", "conjugates"),
    [
        ((sp.sqrt(y),), 2),
        ((sp.sqrt(y), sp.sqrt(z)), 4),
        ((sp.sqrt(y), -3 * sp.sqrt(2)), 4),
        ((y ** sp.Rational(1, 3),), 3),
        ((y ** sp.Rational(-3, 2),), 2),
        ((sp.sqrt(1 + sp.sqrt(y)),), 4),
        ((sp.sqrt(y + sp.sqrt(2)),), 4),
        ((sp.sqrt(y), y ** sp.Rational(1, 4)), 4),
    ],
)
def test_the_norm_is_the_product_over_all_conjugates(radicals, conjugates):
    """A polynomial of as many degrees as there are conjugates, which vanishes where the expression does."""
    norm = rational_norm(x - sp.Add(*radicals))
    assert sp.Poly(norm, x).degree() == conjugates and norm.is_polynomial(x, y, z)
    for at in ({y: sp.Rational(9, 4), z: 5}, {y: 3, z: sp.Rational(1, 2)}):
        assert abs(sp.N(norm.subs(x, sp.Add(*radicals)).subs(at), 40)) < 1e-30
        assert abs(sp.N(norm.subs(x, 1 + sp.Add(*radicals)).subs(at), 40)) > 1e-3


def test_a_fraction_with_roots_has_the_zeros_of_its_numerator():
    (factor,) = rational_factors((sp.sqrt(x) - y) / (z + sp.sqrt(x)))
    assert sp.expand(factor**2 - (x - y**2) ** 2) == 0


def test_exactly_one_factor_fits_the_branch():
    product = sp.expand((x - 2) * (x - 3) * (x - y))
    assert sp.expand(chosen_factor(product, lambda f: f.subs(x, 3) == 0) ** 2 - (x - 3) ** 2) == 0
    for accept in (lambda f: False, lambda f: True):
        with pytest.raises(ValueError, match="fit the physical branch"):
            chosen_factor(product, accept)


def test_a_polynomial_and_its_negative_are_written_alike():
    one = sp.expand((x - 3 * y) * (z - 2))
    assert normalised(one) == normalised(-one) and normalised(one) in (one, -one)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ring_gives_back_what_it_takes(seed):
    """Up to the common denominator, whether a polynomial is expanded or not; coefficients by powers are exact."""
    chance = random.Random(seed)
    p = drawn(chance, (x, y, z), 3)
    whole = sp.Poly(p, x, y, z, domain="QQ").clear_denoms(convert=True)[1].as_expr()
    ring = PolynomialRing.of((p, whole))
    for form in (whole, sp.factor(whole), whole / (1 + y**2), p):
        assert sp.expand(ring.decode(ring.encode(form)) - whole) == 0
    encoded = ring.encode(whole)
    for place, symbol in enumerate(ring.symbols):
        degree = ring.degree(encoded, symbol)
        assert degree == sp.Poly(whole, symbol).degree()
        for power in range(degree + 1):
            coefficient = ring.decode(polynomials._coefficient(ring, encoded, place, power))
            assert sp.expand(coefficient - whole.coeff(symbol, power)) == 0
    assert ring.degree(encoded, sp.Symbol("other")) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_pseudo_remainders_are_combinations_of_lower_degree(seed):
    """lead^k high - quotient low: it vanishes where both do, and its degree is below that of low."""
    chance = random.Random(seed)
    shared = x - y
    high, low = (sp.expand(shared * drawn(chance, (x, y), degree)) for degree in (3, 1))
    ring = PolynomialRing.of((high, low))
    place = ring.symbols.index(x)
    rest = polynomials._remainder(ring, ring.encode(high), ring.encode(low), place)
    assert ring.degree(rest, x) < ring.degree(ring.encode(low), x)
    assert rest != 0 and sp.expand(ring.decode(rest).subs(x, y)) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_resultant_has_no_more_terms_than_its_bound(seed):
    chance = random.Random(seed)
    p, q = drawn(chance, (x, y), 3, 6), drawn(chance, (x, y, z), 2, 6)
    ring = PolynomialRing.of((p, q))
    first, second = ring.encode(p), ring.encode(q)
    bound = polynomials._resultant_bound(ring, first, second, x)
    assert len(first.resultant(second, ring.variable(x))) <= bound
    degrees = [dict(zip(ring.symbols, map(int, e.degrees()), strict=True)) for e in (first, second)]
    box = np.prod([degrees[0][s] * 2 + degrees[1][s] * 3 + 1 for s in (y, z)])
    assert bound == min(box, len(first) ** 2 * len(second) ** 3)


def test_bounds_are_met_exactly(monkeypatch):
    """What reaches a bound is tried, what exceeds it by one is refused."""
    check_size(list(sp.symbols(f"u:{MOST_UNKNOWNS}")))
    with pytest.raises(TooLarge, match=f"{MOST_UNKNOWNS + 1} unknowns"):
        check_size(list(sp.symbols(f"u:{MOST_UNKNOWNS + 1}")))
    p, q = x**2 + y, x + y * z + 1  # their resultant 1 + y^2 z^2 + 2 y z + y has four terms, by degrees at most 4 x 3
    for name, most in (("MOST_TERMS", 12), ("MOST_FACTOR_TERMS", 4)):
        monkeypatch.setattr(polynomials, name, most)
        assert common_roots(p, q, x)
        monkeypatch.setattr(polynomials, name, most - 1)
        with pytest.raises(TooLarge, match=f"{most} terms"):
            common_roots(p, q, x)
        monkeypatch.undo()
    # the discriminant of x^3 + x y + z^2, of degree four in the coefficients, has at most 5 x 9 terms by its degrees
    monkeypatch.setattr(polynomials, "MOST_DISCRIMINANT_TERMS", 45)
    assert branch_points(x**3 + x * y + z**2, x)
    monkeypatch.setattr(polynomials, "MOST_DISCRIMINANT_TERMS", 44)
    with pytest.raises(TooLarge, match="45 terms"):
        branch_points(x**3 + x * y + z**2, x)


# -- elimination


@pytest.mark.parametrize("seed", SEEDS)
def test_unknowns_of_first_degree_are_replaced_by_what_they_equal(seed):
    """A triangular system in disguise: all substitutions together solve it, and none is left."""
    chance = random.Random(seed)
    a, b, c = (chance.randint(1, 9) for _ in range(3))
    mixed = [sp.expand(R * (y + a) - S * z * b), S - R * y * c - 1]
    left, unknowns, found = solve_linear_unknowns(mixed, [R, S], lambda factor: True)
    assert left == [] and unknowns == [] and {symbol for symbol, _ in found} == {R, S}
    solution: dict = {}
    for symbol, value in reversed(found):
        solution[symbol] = sp.cancel(value.subs(solution))
    assert all(sp.cancel(e.subs(solution)) == 0 for e in mixed)


def test_one_equation_is_left_where_an_unknown_is_of_second_degree():
    left, unknowns, found = solve_linear_unknowns([R**2 - y, S - R - 1], [R, S], lambda factor: True)
    ((symbol, value),) = found
    (other,) = {R, S} - {symbol}
    assert unknowns == [other] and value == (R + 1 if symbol == S else S - 1)
    assert [sp.expand(e) for e in left] == [sp.expand((R**2 - y).subs(dict(found)))]


def test_the_factor_of_the_solution_is_followed():
    """(R - y) (R - z) = 0 and S = 2 R: the branch R = y is kept."""
    accept = lambda factor: factor.subs({R: y, S: 2 * y}).expand() == 0  # noqa: E731
    left, unknowns, found = solve_linear_unknowns([sp.expand((R - y) * (R - z)), S - 2 * R], [R, S], accept)
    assert (left, unknowns) == ([], []) and dict(found)[S].subs(dict(found)) == 2 * y


BULKS = {
    "semicircle": ([Z * G - 1 - y**2 * G**2], [G], Z * G - 1 - y**2 * G**2),
    # W^T W / N, with the response of the other side as an unknown: R = 1 / (1 - G y)
    "marchenko-pastur": ([Z * G - 1 - G * R, R - 1 - y * G * R], [G, R], Z * G * (1 - y * G) - (1 - y * G) - G),
    # two unknowns that coincide, and one with the opposite sign
    "coinciding": (
        [Z * G - 1 - G * R / 2 + G * S / 2, R - 1 - y * G * R, S + 1 - y * G * S],
        [G, R, S],
        Z * G * (1 - y * G) - (1 - y * G) - G,
    ),
    # the coefficient sqrt(2) becomes an unknown with a minimal polynomial
    "irrational": ([Z * G - 1 - sp.sqrt(2) * G * R, R - sp.sqrt(2) * y * G], [G, R], Z * G - 1 - 2 * y * G**2),
    # an unknown that vanishes on the branch
    "vanishing": ([Z * G - 1 - y * G**2 - S, S * (Z - 1) - S * G], [G, S], Z * G - 1 - y * G**2),
}


@pytest.mark.parametrize("name", BULKS)
def test_elimination_leaves_the_known_curve(name):
    equations, unknowns, expected = BULKS[name]
    ratio = parameter("y", default=0.7, domain=positive)
    equations = [sp.sympify(e).subs(y, ratio) for e in equations]
    physical = PhysicalPoint.of(tuple(equations), tuple(unknowns))
    curve = eliminate(equations, unknowns[1:], physical)
    assert sp.cancel(curve / expected.subs(y, ratio)).is_number
    assert physical.accepts(curve) and not physical.accepts(curve + 1)


def test_what_vanishes_on_the_branch_is_proved_and_nothing_else():
    """R = 1 + y G R and S = R^2 on the branch: consequences hold, the same with a small change do not."""
    ratio = parameter("y", default=0.7, domain=positive)
    equations = [Z * G - 1 - G * R, R - 1 - ratio * G * R, S - R**2]
    unknowns = [G, R, S]
    physical = PhysicalPoint.of(tuple(equations), tuple(unknowns))
    for expression in (S * (1 - ratio * G) ** 2 - 1, S - R - ratio * G * S, Z * G * R - R - G * S, sp.S.Zero):
        assert proves_zero(expression, equations, [R, S], physical), expression
    for expression in (S - R, S * (1 - ratio * G) ** 2 - 1 + sp.Rational(1, 10**6), R - 1, sp.S.One):
        assert not proves_zero(expression, equations, [R, S], physical), expression


@pytest.mark.parametrize("at", [mpmath.mpc(3, "1.5"), mpmath.mpc("0.3", "1e-12"), mpmath.mpf("4.25"), mpmath.mpf(-5)])
def test_the_physical_branch_is_followed_to_any_point(at):
    """(z - sqrt(z^2 - 4)) / 2 in the semicircle's units, with sixty digits, beside its real axis and on it."""
    solved = physical_values((Z * G - 1 - G**2,), (G,), {}, at=at)
    with mpmath.workdps(60):
        root = mpmath.sqrt(at - 2) * mpmath.sqrt(at + 2)
        assert abs(solved[G] - (at - root) / 2) < mpmath.mpf(10) ** -55
        assert solved[Z] == at


def test_a_generic_point_lies_inside_the_domains():
    small = parameter("s", default=1.0, domain=positive)
    free, zero = parameter("f", default=-2.5), parameter("g", default=0.0)
    function = sp.Function("h")(y)
    points = [sample_point([small * free + zero * function], attempt) for attempt in range(3)]
    assert all(point[small] > 0 and point[zero] != 0 and point[free] != sp.Rational(-5, 2) for point in points)
    assert len({tuple(map(str, point.values())) for point in points}) == 3
    assert all(set(point) == {small, free, zero, function} for point in points)


# -- expansions at infinity


def shifted_catalan(k: int) -> int:
    """The moments of a semicircle around two."""
    return sum(sp.binomial(k, 2 * j) * sp.catalan(j) * 2 ** (k - 2 * j) for j in range(k // 2 + 1))


@pytest.mark.parametrize(
    ("equations", "moment"),
    [
        ([Z * G - 1 - G**2], lambda k: sp.catalan(k // 2) * (k % 2 == 0)),
        ([Z * G - 1 - G * R, R - 1 - G * R], sp.catalan),
        ([Z * G - 1 - 3 * G], lambda k: 3**k),
        ([(Z - 2) * G - 1 - G**2], shifted_catalan),
    ],
)
def test_the_expansion_at_infinity_has_the_moments_modulo_the_prime(equations, moment):
    expansion = ResolventExpansion.of(equations, [G, R][: len(equations)])
    series = expansion._at(expansion.values).resolvent(30)
    assert series.tolist() == [0, *(int(moment(k)) % PRIME for k in range(29))]


def test_equations_that_are_singular_at_infinity_have_no_expansion():
    """G = 1/sqrt(z) is no series in 1/z."""
    with pytest.raises(NoExpansion, match="singular"):
        ResolventExpansion.of([G**2 - 1 / Z], [G]).lowest_degrees([(2, 2)])


@pytest.mark.parametrize(("degree", "other"), [(2, 3), (4, 1), (3, 2)])
def test_lowest_degrees_are_those_of_the_curve(degree, other):
    """G z = 1 + G^degree / z^(other - 1) is irreducible: neither degree can be one less."""
    curve = sp.expand((Z * G - 1) * Z ** (other - 1) - G**degree)
    expansion = ResolventExpansion.of([sp.expand(curve / Z ** (other - 1))], [G])
    assert expansion.lowest_degrees([(degree - 1, 12), (12, other - 1)]) is None
    assert expansion.lowest_degrees([(degree - 1, other), (degree, other)]) == (degree, other)


def test_parameters_of_the_moments_are_counted():
    a, b, c = (parameter(name, default=1.5, domain=positive) for name in "abc")
    for equation, count in ((Z * G - 1 - a * G**2, 1), (Z * G - 1 - a * b * G - c * G**2, 3), (Z * G - 1 - G**2, 0)):
        assert ResolventExpansion.of([equation], [G]).parameters_in_resolvent == count


# -- the field of quotients


@pytest.mark.parametrize("seed", SEEDS)
def test_quotients_obey_the_arithmetic_of_sympy(seed):
    chance = random.Random(seed)
    field = RationalFunctions((x, y))
    one, two = (drawn(chance, (x, y), 1, 3) / drawn(chance, (x, y), 1, 2) for _ in range(2))
    a, b = field.convert(one), field.convert(two)
    cases = [
        (a + b, one + two),
        (a + field.convert(one), 2 * one),
        (a * b, one * two),
        (-a, -one),
        (a / b, one / two),
        (a**3, one**3),
        (a**-2, one**-2),
        (a**0, sp.S.One),
        (a + field.convert(0), one),
        (field.convert(0) + b, two),
        (a * field.convert(0), sp.S.Zero),
    ]
    for quotient, expected in cases:
        assert sp.cancel(field.decode(quotient) - expected) == 0
        assert quotient.bottom.leading_coefficient() > 0 and quotient.top.gcd(quotient.bottom) in (1, -1)
    assert (a + -a).is_zero and not a.is_zero and not (a * b).is_zero


def test_quotients_that_are_numbers_have_their_value():
    field = RationalFunctions((x, y))
    assert float(field.convert(sp.Rational(-7, 4))) == -1.75 and float(field.convert(0)) == 0.0
    assert int(field.convert((x**2 - y**2) / (x - y) - x - y + 5)) == 5
    with pytest.raises(ValueError, match="is not a number"):
        float(field.convert(x / 3))
    with pytest.raises(ValueError, match="is not an integer"):
        int(field.convert(sp.Rational(1, 3)))
    with pytest.raises(ZeroDivisionError):
        field.convert(x) / field.convert(0)
    assert float(RationalFunctions(()).convert(sp.Rational(9, 8))) == 1.125


@pytest.mark.parametrize("seed", SEEDS)
def test_cheapest_pivots_are_equations_that_determine_their_unknown(seed):
    """An equation whose derivative vanishes on the branch is no pivot, however short it is."""
    chance = random.Random(seed)
    number = sp.Rational(chance.randint(1, 9), 7)
    ring = PolynomialRing.of((R, G, (R - number) ** 2, R - number * G, R * G - number))
    values = SimpleNamespace(value=lambda s: {R: mpmath.mpf(number.p) / number.q, G: mpmath.mpf(1)}[s])
    with mpmath.workdps(60):
        evaluation = polynomials._Evaluation.of(ring, values)
        polys = [ring.encode(e) for e in ((R - number) ** 2, R - number * G, R * G - number)]
        cost, symbol, pivot = polynomials._cheapest(ring, polys, [R], evaluation)
    assert symbol == R and pivot in polys[1:]
    assert cost == sum(polynomials._resultant_bound(ring, pivot, p, R) for p in polys if p is not pivot)


def test_every_sign_of_every_pair_is_tried_as_coincidence():
    names = sp.symbols("u0:3")
    for signs in itertools.product((1, -1), repeat=2):
        values = {names[0]: mpmath.mpf("0.37"), names[1]: signs[0] * mpmath.mpf("0.37"), names[2]: mpmath.mpf("0.9")}
        values[G] = signs[1] * mpmath.mpf("0.9")
        found = polynomials._coincidences(list(names), [sum(names) + G], SimpleNamespace(values=values))
        assert found == {names[1]: signs[0] * names[0], names[2]: signs[1] * G}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_expanded_polynomial_is_written_with_its_signs_and_sums(seed):
    """Of whole coefficients as it is, term by term; of fractions times the least common denominator."""
    chance = random.Random(seed)
    ring = PolynomialRing.of((x + y,))
    fractions = drawn(chance, (x, y), 3)
    denominator = sp.ilcm(*(c.q for c in sp.Poly(fractions, x, y).coeffs()))
    whole = sp.expand(denominator * fractions)
    for given in (fractions, whole, sp.factor(whole)):
        assert sp.expand(ring.decode(ring.encode(given)) - whole) == 0
    twice = sp.Add(x * y, x * y, -3 * x, evaluate=False)
    assert sp.expand(ring.decode(ring.encode(twice)) - 2 * x * y + 3 * x) == 0
    assert ring.decode(ring.encode(sp.Add(x, -x, evaluate=False))) == 0
