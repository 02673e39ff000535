"""Exact decisions in cells: each question against plain numbers at random points."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
import sympy as sp

from derive import parameter, whole_positive
from derive.algebra.nodes import Z
from derive.algebra.polynomials import TooLarge
from derive.cells.balls import (
    Inconclusive,
    decided,
    enclosure,
    irreducible_factors,
    real_roots,
    simplest_between,
)
from derive.cells.branch import RootBranch
from derive.cells.chart import Chart, zero_factors
from derive.cells.conjugates import RootConjugates
from derive.cells.decomposition import Cells
from derive.cells.region import Region
from derive.cells.signs import sign_inside
from derive.cells.solver import has_no_zero
from derive.cells.spectrum import BulkCurve
from derive.claims.equality import FURTHER_POINTS

X, Y, G = sp.Symbol("x"), sp.Symbol("y"), sp.Symbol("G")


def polynomial(draw: random.Random, symbols: tuple[sp.Symbol, ...], degree: int) -> sp.Expr:
    terms = [draw.randint(-3, 3) * sp.Mul(*(s ** draw.randint(0, degree) for s in symbols)) for _ in range(3)]
    return sp.Add(*terms, draw.randint(1, 5) * symbols[0], draw.randint(-4, 4))


@pytest.mark.parametrize("seed", range(6))
def test_cells_have_all_signs_that_polynomials_take(seed):
    """A sign vector that occurs at a random point occurs at the point of some cell."""
    draw = random.Random(seed)
    polynomials = [polynomial(draw, (X, Y), 2) for _ in range(2)]
    box = {X: (sp.S.Zero, None), Y: (sp.Integer(-2), sp.Integer(3))}
    cells = Cells.of(polynomials, box, (), lambda p: False)
    found = [{X: sp.S.One, Y: sp.S.One, **point} for point in cells.points()]
    assert all(point[X] > 0 and -2 < point[Y] < 3 for point in found)
    signs = {tuple(sp.sign(p.subs(point)) for p in polynomials) for point in found}
    functions = [sp.lambdify((X, Y), p) for p in polynomials]
    for _ in range(400):
        at = draw.expovariate(0.3), draw.uniform(-2, 3)
        values = [f(*at) for f in functions]
        if min(map(abs, values)) > 1e-9:
            assert tuple(int(np.sign(v)) for v in values) in signs, at


@pytest.mark.parametrize("end", [(sp.S.Zero, None), (None, sp.Rational(1, 2))])
def test_zeros_that_leave_an_interval_divide_cells(end):
    """Zeros of x**3 + y - 1 in y leave the interval as x changes; their number is not the same in one cell."""
    cells = Cells.of([X**3 + Y - 1], {X: (None, None), Y: end}, (Y,), lambda p: sign_inside(p, {Y: end}) != 0)
    values = [point[X] ** 3 - 1 for point in cells.points((Y,))]
    assert {end[0] is not None and -v > 0 or end[1] is not None and -v < end[1] for v in values} == {True, False}


@pytest.mark.parametrize("seed", range(4))
def test_real_roots_are_those_of_numpy(seed):
    draw = random.Random(seed)
    products = [flint.fmpz_poly([draw.randint(-9, 9) for _ in range(5)] + [1]) for _ in range(2)]
    found = decided(lambda: real_roots(irreducible_factors(products)))
    expected = sorted(
        {
            round(float(root.real), 9)
            for p in products
            for root in np.roots([int(c) for c in reversed(p.coeffs())])
            if abs(root.imag) < 1e-9
        }
    )
    assert [float(root.mid()) for root in found] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_the_simplest_fraction_has_the_smallest_denominator(seed):
    draw = random.Random(seed)
    low, high = sorted({Fraction(draw.randint(-50, 50), draw.randint(1, 30)) for _ in range(2)} | {Fraction(99)})[:2]
    found = simplest_between(low, high)
    assert low < found < high
    for denominator in range(1, found.denominator):
        assert (low * denominator).__floor__() + 1 >= high * denominator


def test_the_ends_of_an_interval_may_be_infinite():
    assert simplest_between(None, None) == 1
    assert simplest_between(None, Fraction(-5, 2)) < Fraction(-5, 2)
    assert simplest_between(Fraction(7, 3), None) == 3
    with pytest.raises(Inconclusive):
        simplest_between(Fraction(1), Fraction(1))


def semicircle(shift: int, width: int) -> RootBranch:
    """The resolvent of a semicircle of radius 2 width around a shift."""

    def far(place: Fraction) -> tuple[Fraction, flint.acb]:
        height = Fraction(4096 * (abs(shift) + 2 * width + abs(place).__ceil__()))
        with flint.ctx.workprec(flint.ctx.prec + 100):  # the difference of nearly equal numbers
            z = flint.acb(flint.arb(flint.fmpq(place.numerator, place.denominator)) - shift, int(height))
            return height, (z - (z - 2 * width).sqrt() * (z + 2 * width).sqrt()) / (2 * width**2)

    return RootBranch(width**2 * G**2 - (Z - shift) * G + 1, G, {}, far)


@pytest.mark.parametrize("seed", range(5))
def test_the_physical_branch_is_the_root_that_goes_to_zero_far_away(seed):
    """Outside the bulk it is the smaller of two real roots, inside it has a negative imaginary part."""
    draw = random.Random(seed)
    shift, width = draw.randint(-3, 3), draw.randint(1, 3)
    place = shift + Fraction(2 * draw.randint(-40, 40) + 1, 14)  # no branch point
    branch = semicircle(shift, width)
    real = decided(lambda: branch.is_real(place, branch.at(place)))
    roots = np.roots([width**2, -float(place - shift), 1])
    expected = min(roots, key=abs) if real else min(roots, key=lambda g: g.imag)
    assert real == (abs(place - shift) > 2 * width)
    assert complex(branch.at(place).centre) == pytest.approx(complex(expected))


def test_a_branch_point_is_not_decided():
    branch = semicircle(0, 1)
    with pytest.raises(Inconclusive):
        branch.at(Fraction(2))


@pytest.mark.parametrize("value", ["1/4", "9/4", "9"])
def test_a_square_root_of_a_square_has_one_sign_in_a_cell(value):
    """sqrt((x - 1)**2) = x - 1 for x > 1 alone."""
    root = sp.Pow(sp.Pow(X - 1, 2, evaluate=False), sp.Rational(1, 2), evaluate=False)
    conjugates = RootConjugates.of(root - (X - 1))
    assert conjugates.norm() == 0
    assert conjugates.decide(lambda: {X: sp.Rational(value)}) == (sp.Rational(value) > 1)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_the_norm_of_a_root_is_what_stands_under_it(degree):
    root = RootConjugates.of(sp.root(X * Y + 1, degree) - X)
    assert sp.expand(root.norm() ** 2 - (X**degree - X * Y - 1) ** 2) == 0


@pytest.mark.parametrize(("x", "same"), [(2, True), (-2, False)])
def test_a_cube_root_of_a_cube_is_principal(x, same):
    difference = RootConjugates.of(sp.root(X**3, 3) - X)
    assert difference.norm() == 0 and difference.decide(lambda: {X: sp.Integer(x)}) is same


def test_the_solver_knows_roots_and_sizes():
    """A root of something negative has no real value, and nothing is shown there."""
    free, positive = {X: (None, None)}, {X: (sp.S.Zero, None), Y: (sp.S.Zero, None)}
    assert has_no_zero(X - 1, free, [sp.Abs(X) - 1], False)
    assert not has_no_zero(X - 1, free, [sp.Abs(X) - 1], True)
    assert has_no_zero(sp.root(X * Y + 1, 3) - 2, positive, [7 - X * Y])
    assert has_no_zero(sp.sqrt(X) - 1, positive, [1 - X])
    assert not has_no_zero(sp.sqrt(X) - 1, free, [1 - X])
    assert has_no_zero(X - Y, free, [X - sp.sqrt(2) * Y, Y])


def test_signs_by_coefficients_and_by_the_solver():
    box = {X: (sp.S.Zero, None), Y: (sp.S.Zero, None)}
    assert sign_inside(X * Y + X + 1, box) == 1 and sign_inside(-X - 1, box) == -1 and sign_inside(X - Y, box) == 0
    assert has_no_zero(X**2 - X * Y + Y**2 + 1, box) and not has_no_zero(X - Y, box)


def test_a_ball_holds_the_value_of_a_formula():
    formula = sp.sqrt(X) * sp.exp(-Y) + sp.log(X) / (X + Y)
    values = {X: sp.Rational(7, 3), Y: sp.Rational(2, 5)}
    assert float(enclosure(formula, values).real.mid()) == pytest.approx(float(formula.subs(values)))
    with pytest.raises(Inconclusive):
        enclosure(1 / (X - Y), {X: sp.Rational(1, 3), Y: sp.Rational(1, 3)})
    assert Chart.of((formula,)).powers == ()  # x is no positive parameter


def test_points_of_a_region_reach_far_in_every_parameter():
    """Also in the last of many, and in a whole number whose default is the least of its domain."""
    parameters = tuple(parameter(f"p{i}", default=1, domain=whole_positive) for i in range(12))
    points = Region("here", parameters).points(FURTHER_POINTS)
    assert all(max(point[p] for point in points) > 3 for p in parameters)


def test_a_condition_whose_conjugate_vanishes_identically_has_no_walls_to_divide_by():
    k, m = sp.symbols("k m", real=True)
    with pytest.raises(TooLarge, match="vanishes identically"):
        zero_factors((sp.sqrt(sp.expand((k + m) ** 2)) - k - m) * (k - sp.Rational(9, 10)))


@pytest.mark.parametrize(
    ("expression", "at"),
    [
        (lambda k, m: sp.Abs(m - sp.Abs(k)) - 2, {"k": -3, "m": 5}),
        (lambda k, m: sp.sqrt(m + sp.Abs(k)) - 2, {"k": -3, "m": 1}),
        (lambda k, m: sp.Abs(sp.sqrt(m) - k) - 1, {"k": 3, "m": 4}),
        (lambda k, m: sp.sqrt(1 + sp.sqrt(m)) - k, {"k": 2, "m": 9}),
    ],
)
def test_walls_are_found_through_roots_and_absolute_values_in_each_other(expression, at):
    """The wall is a polynomial in the parameters alone, and vanishes where the condition does."""
    k, m = sp.symbols("k m", real=True)
    condition, point = expression(k, m), {k: at["k"], m: at["m"]}
    assert condition.subs(point) == 0
    found = zero_factors(condition)
    assert all(f.free_symbols <= {k, m} for f in found) and any(f.subs(point) == 0 for f in found)


def test_a_polynomial_that_vanishes_on_a_whole_wall_leaves_faces_open():
    """At x = y = 0 the zeros of x z - y are unknown."""
    box = {symbol: (None, None) for symbol in (X, Y, Z)}
    cells = Cells.of([X * Z - Y, X, Y], box, (Z,), lambda polynomial: False)
    with pytest.raises(TooLarge, match="vanishes on a whole wall"):
        list(cells.faces((Z,), {}))


def test_a_curve_has_branch_points_of_its_own_where_its_degree_falls():
    """At x = 0 it is that of a Wishart matrix with half as many rows as columns, whose edges are 3 -+ 2 sqrt(2)."""
    curve = X**2 * G**3 - G**2 * (X**2 / 2 + Z) + G * (Z / 2 + sp.Rational(1, 2)) - sp.Rational(1, 2)
    bulk = BulkCurve((), (), G, curve, ())
    bulk = replace(bulk, singular=bulk.branch_points())
    assert bulk.at({X: sp.S.One}) is bulk
    special = bulk.at({X: sp.S.Zero})
    assert sp.degree(special.curve, G) == 2
    assert any(sp.rem(f, Z**2 - 6 * Z + 1, Z) == 0 for f in special.singular)
