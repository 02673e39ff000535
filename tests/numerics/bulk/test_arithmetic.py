"""Arithmetic of the bulk equations: polynomials and their derivatives, curves, interpolation, Newton's method."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import flint
import mpmath
import numpy as np
import pytest
import sympy as sp

from derive.errors import NumericalError
from numerics.bulk.branch import (
    Branch,
    BranchStart,
    Neighbours,
    begun,
    changed,
    follow,
    polish,
    relative_to,
    solve_batch,
)
from numerics.bulk.curve import Curve, _integers, _shifted, horner
from numerics.bulk.digits import LongSystem
from numerics.bulk.folds import _predict, _RealPoint
from numerics.bulk.moments import _coefficient
from numerics.bulk.neighbours import NEAREST
from numerics.bulk.polynomials import PolynomialSystem, Sums, polynomials_of
from numerics.runtime.interface import BulkLaw
from numerics.runtime.point import Point

RNG = np.random.default_rng(5)
NAMES = ("g", "r", "q")
# 3 z g - g^2 r + 1/2, r^3 + 2 q - z^2, q g r z - 5 q, with products in any order
EQUATIONS = [
    [("z g", 3), ("g r g", -1), ("1", Fraction(1, 2))],
    [("r r r", 1.0), ("q", 2), ("z z", -1)],
    [("q g z r", 1), ("q", -5)],
]


def by_sympy() -> tuple[list[sp.Expr], tuple[sp.Symbol, ...]]:
    z, g, r, q = variables = sp.symbols("z g r q")
    return [3 * z * g - g**2 * r + sp.Rational(1, 2), r**3 + 2 * q - z**2, q * g * r * z - 5 * q], variables


def system() -> PolynomialSystem:
    residual, slope = polynomials_of(EQUATIONS, NAMES)
    placed = [(*divmod(place, 4), c, monomial) for place, c, monomial in slope]
    by_z = [(row, c, monomial) for row, k, c, monomial in placed if k == 0]
    by_r = [(row * 3 + k - 1, c, monomial) for row, k, c, monomial in placed if k]
    return PolynomialSystem(3, *(Sums.of(terms, 4) for terms in (residual, by_z, by_r)))


def points(count: int) -> tuple[np.ndarray, np.ndarray]:
    draw = RNG.normal(size=(count, 8))
    return draw[:, 0] + 1j * draw[:, 1], draw[:, 2:5] + 1j * draw[:, 5:]


def test_polynomials_and_their_derivatives_are_those_of_sympy():
    equations, variables = by_sympy()
    z, r = points(4)
    residual, rate, slope = system()(z, r)
    for k in range(4):
        at = dict(zip(variables, [z[k], *r[k]], strict=True))
        assert residual[k] == pytest.approx([complex(e.subs(at)) for e in equations], rel=1e-12)
        assert rate[k] == pytest.approx([complex(e.diff(variables[0]).subs(at)) for e in equations], rel=1e-12)
        exact = [[complex(e.diff(v).subs(at)) for v in variables[1:]] for e in equations]
        assert slope[k] == pytest.approx(np.array(exact), rel=1e-12)


def test_scaled_equations_have_jacobians_whose_largest_entries_are_one():
    z, r = points(3)
    sizes = np.abs(RNG.normal(size=r.shape)) + 0.1
    plain, scaled = system()(z, r), system().scaled(z, r, sizes)
    widest = np.max(np.abs(plain[2]) * sizes[:, None, :], axis=-1)
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(other, one / (widest if one.ndim == 2 else widest[..., None]), rtol=1e-13)
    columns = RNG.normal(size=(3, 3, 2)) + 0j
    np.testing.assert_allclose(system().times(system().values(z, r)[2], columns), plain[2] @ columns, rtol=1e-12)


def test_an_equation_without_unknowns_is_left_as_it_is():
    residual, _ = polynomials_of([[("z", 2)], [("g", 4)]], ("g", "r"))
    alone = PolynomialSystem(2, Sums.of(residual, 3), Sums.of([(0, 2, ())], 3), Sums.of([(2, 4, ())], 3))
    value, rate, slope = alone.scaled(np.array([1.5]), np.array([[2.0, 1.0]]), np.ones((1, 2)))
    assert value.tolist() == [[3.0, 2.0]] and rate.tolist() == [[2.0, 0.0]] and slope.tolist() == [[[0, 0], [1, 0]]]


def long_system(vanishing: bool = False) -> LongSystem:
    """z g - 1 - g r = 0 and r - g = 0: the semicircle with two unknowns; a third, s, with g s = 0 may vanish."""
    equations = [[("z g", 1), ("1", -1), ("g r", -1)], [("r", 1), ("g", -1)], [("g s", 1)]]
    names = ("g", "r", "s")[: 2 + vanishing]
    count = len(names)
    residual, slope = polynomials_of(equations[:count], names)
    placed = [(*divmod(place, count + 1), flint.fmpq(int(c)), monomial) for place, c, monomial in slope]
    terms = (
        [(place, flint.fmpq(int(c)), monomial) for place, c, monomial in residual],
        [(row, c, monomial) for row, k, c, monomial in placed if k == 0],
        [(row * count + k - 1, c, monomial) for row, k, c, monomial in placed if k],
    )
    return LongSystem(count, terms)


def wigner(z: complex) -> complex:
    with mpmath.workdps(40):
        return complex((z - mpmath.sqrt(mpmath.mpc(z) - 2) * mpmath.sqrt(mpmath.mpc(z) + 2)) / 2)


def test_newtons_method_in_multiple_precision_contracts_quadratically():
    z, exact = 0.4 + 0.7j, wigner(0.4 + 0.7j)
    start = exact * np.array([1 + 1e-3, 1 - 1e-3])
    r, first, last, along = long_system().improved(z, start, np.abs(start))
    slope = 1 / (1 - 1 / exact**2)  # z = G + 1/G
    np.testing.assert_allclose(r, [exact, exact], rtol=1e-10)
    np.testing.assert_allclose(along, [slope, slope], rtol=1e-5)
    assert first == pytest.approx(1e-3, rel=0.01) and 1e-8 < last < 1e-5
    wide = long_system().improved(z, start, 10 * np.abs(start))
    assert wide[1] == pytest.approx(first / 10, rel=0.01)  # relative to what is usual, where that is larger


def test_newtons_method_at_a_fixed_resolvent_finds_the_real_axis():
    z, r, along, first, last = long_system().at_fixed(0, 2.4, np.array([0.5, 0.45]))
    assert z == pytest.approx(2.5, rel=1e-15) and r == pytest.approx([0.5, 0.5], rel=1e-15)
    assert along == pytest.approx([1 - 1 / 0.25, 1.0], rel=1e-12)  # dz/dG and dr/dG
    assert 0.01 < first < 0.2 and last < 1e-17


def test_corrections_are_not_measured_beside_a_response_that_vanishes():
    """A remainder of rounding is corrected by all of itself at every step."""
    z, r, _, first, last = long_system(vanishing=True).at_fixed(0, 2.5, np.array([0.5, 0.5, 1e-127]))
    assert (z, r.tolist()) == (2.5, [0.5, 0.5, 0.0]) and max(first, last) < 1e-60


def test_singular_equations_are_not_improved():
    singular = LongSystem(1, ([(0, flint.fmpq(1), (1, 1))], [], [(0, flint.fmpq(2), (1,))]))  # g^2 = 0 at g = 0
    assert np.isinf(singular.improved(1j, np.zeros(1), np.ones(1))[1])
    assert np.isinf(singular.at_fixed(0, 1.0, np.ones(1))[3])


# -- the curve

TABLE = ((Fraction(-1), Fraction(0)), (Fraction(0), Fraction(1)), (Fraction(-1), Fraction(0)))
"""-1 + G z - G^2."""


def curve(exact=TABLE) -> Curve:
    return Curve(np.array([[float(c) for c in row] for row in exact]), exact)


def test_a_curve_is_its_polynomial_in_the_resolvent():
    z, g = np.array([0.3 + 1j, -2.0]), np.array([0.2 - 1j, 0.7])
    value, slope = horner(curve().polynomials(z), g)
    np.testing.assert_allclose(value, -1 + g * z - g**2, rtol=1e-14)
    np.testing.assert_allclose(slope, z - 2 * g, rtol=1e-14)
    terms = 1 + np.abs(g * z) + np.abs(g) ** 2
    np.testing.assert_allclose(curve().rounding(z, g).real, 4e-16 * terms / np.abs(z - 2 * g), rtol=1e-12)
    better, first, last, along = curve().kernel(z, g[:, None], np.abs(g)[:, None])
    for k in range(2):
        steps, now = [], g[k]
        for _ in range(2):
            slope = z[k] - 2 * now
            steps.append((-1 + now * z[k] - now**2) / slope)
            now = now - steps[-1]
        measure = max(abs(now), abs(g[k]))
        assert better[k, 0] == pytest.approx(now) and first[k] == pytest.approx(abs(steps[0]) / measure)
        assert last[k] == pytest.approx(abs(steps[1]) / measure) and along[k, 0] == pytest.approx(-now / slope)


@pytest.mark.parametrize("at", [0.0, 1.5, -0.25])
def test_residues_of_a_curve_are_weights_of_its_atoms(at):
    """(z - a) G = w on one branch and a pole nowhere else: with (z - a) G - w times the semicircle."""
    z, g = sp.symbols("z g")
    point, weight = sp.Rational(at), sp.Rational(3, 8)
    whole = sp.expand(((z - point) * g - weight) * (g * (z - 7) - 1 - g**2))
    poly = sp.Poly(whole, g, z)
    exact = tuple(
        tuple(Fraction(str(poly.coeff_monomial(g**i * z**j))) for j in range(poly.degree(z) + 1))
        for i in range(poly.degree(g) + 1)
    )
    assert curve(exact).residues(at) == pytest.approx([0.375])
    assert not curve(exact).residues(at + 2.0).size or 0.375 not in curve(exact).residues(at + 2.0)
    assert curve().residues(at).size == 0


def test_polynomials_are_shifted_and_cleared_of_denominators():
    row = (Fraction(2), Fraction(-1, 3), Fraction(0), Fraction(5))
    moved = _shifted(row, Fraction(3, 2))
    for x in (Fraction(0), Fraction(7, 5)):
        powers = [(x - Fraction(3, 2)) ** k for k in range(4)]
        assert sum(c * p for c, p in zip(moved, powers, strict=True)) == 2 - x / 3 + 5 * x**3
    assert _integers(row) == [6, -1, 0, 15] and _integers((Fraction(1, 4), Fraction(1, 6))) == [3, 2]


def test_coefficients_of_a_polynomial_of_a_series():
    """u^2 w - 3 u + 2 w^2 at u = 1 + 2 w + 5 w^2."""
    terms = [(2, 1, Fraction(1)), (1, 0, Fraction(-3)), (0, 2, Fraction(2))]
    series = [Fraction(1), Fraction(2), Fraction(5)]
    assert [_coefficient(terms, series, order) for order in range(3)] == [-3, 1 - 6, 4 - 15 + 2]


# -- Newton's method and continuation


def kernel(z, r, usual):
    return curve().kernel(z, r, usual)


@pytest.mark.parametrize("by_factors", [False, True])
def test_continuation_stays_on_the_branch(by_factors):
    """To points beside the cut on both sides of its middle, far away and on the real axis outside."""
    ends = np.array([0.5 + 1e-9j, -1.9 + 1e-4j, 2.1, -7.0, 3j, 1.99 + 1e-12j])
    begin = np.full(ends.size, 40j)
    r, tangent = begun(kernel, begin, (1 / begin)[:, None])
    r, errors = follow(kernel, begin, ends, r, tangent, 0, by_factors=by_factors)
    r, errors = polish(kernel, ends, r, errors, 1 / begin[:1])
    np.testing.assert_allclose(r[:, 0], [wigner(z) for z in ends], rtol=1e-11)
    assert np.max(errors) < 1e-11 and np.all(r[2:4].imag == 0)


def test_responses_outside_the_support_are_exactly_real():
    """From a start with an imaginary part that is not small, by corrections that leave none but rounding."""
    z, begin = np.array([2.5, -3.0]), np.array([[0.5 + 1e-4j], [-0.38 - 1e-4j]])

    def corrected(z, r, usual):
        found = np.array([[wigner(one)] for one in z]) + 1e-15j * (np.abs(r.imag) > 0)
        return found, np.full(z.size, 1e-4), np.full(z.size, 1e-16), np.zeros(found.shape)

    r, _ = polish(corrected, z, begin, np.full(2, 1e-4), np.ones(1))
    assert r[:, 0].tolist() == [wigner(one) for one in z]


def test_no_response_is_returned_if_one_of_the_points_fails(monkeypatch):
    monkeypatch.setattr(Branch, "certain", lambda self, z: (np.ones((z.size, 1)), np.where(z.real > 2, 1e-3, 0.0)))
    branch = Branch(BulkLaw(("g",), 0, lambda p: ((("g z", 1.0), ("1", -1.0)),)), Point())
    assert branch.responses(np.array([1j])).tolist() == [[1]]
    with pytest.raises(NumericalError, match="did not converge near z = 3"):
        branch.responses(np.array([1.0 + 1j, 3.0, 2j]))


def test_a_branch_near_a_divergent_edge_is_predicted_as_a_power_law():
    """z = G^-2 and r = G^(1/2) at G + change, which linear predictions miss."""
    branch = SimpleNamespace(resolvent_index=0, by_factors=True, start=SimpleNamespace(height=1.0))
    g = 1e4
    near = _RealPoint(g**-2, np.array([g, g**0.5]), -2 * g**-3, np.array([1.0, 0.5 * g**-0.5]))
    z, r = _predict(branch, near, 0.7 * g)
    assert [z, *r] == pytest.approx([(1.7 * g) ** -2, 1.7 * g, (1.7 * g) ** 0.5], rel=1e-12)


def test_what_does_not_start_on_the_branch_is_not_followed():
    """The other root of G^2 - z G + 1 is no Stieltjes transform."""
    begin, end = np.array([40j]), np.array([0.5 + 0.1j])
    other = 1 / wigner(40j)
    r, errors = follow(kernel, begin, end, np.array([[other]]), np.array([[1.0 + 0j]]), 0)
    assert np.isinf(errors[0])


def test_a_kernel_that_does_not_converge_has_no_beginning():
    def wild(z, r, usual):
        return r, np.ones(z.size), np.full(z.size, 1e-3), r

    with pytest.raises(NumericalError, match="from infinity"):
        begun(wild, np.array([1j]), np.array([[1.0 + 0j]]))
    kept = begun(lambda z, r, usual: (r, np.ones(1), np.full(1, 1e-7), 2 * r), np.array([1j]), np.array([[1.0 + 0j]]))
    assert kept[1] == pytest.approx(np.array([[2.0]]))


def test_corrections_are_factors_where_they_are_small():
    r = np.array([2.0 + 0j, 2.0, 0.0])
    moved = changed(r, np.array([0.1, -1.5, 0.3]))
    assert moved == pytest.approx([2 * np.exp(0.05), 0.5, 0.3])
    assert relative_to(np, np.array([3.0, -1.0]), np.array([1.0, 2.0])) == pytest.approx([3.0, 2.0])


def test_singular_systems_of_a_batch_have_no_solution_and_the_others_do():
    matrices = np.array([np.eye(2), np.ones((2, 2)), 2 * np.eye(2)])
    solved = solve_batch(matrices, np.ones((3, 2, 1)))
    assert np.all(np.isnan(solved[1])) and solved[0, 0, 0] == 1 and solved[2, 1, 0] == 0.5


def test_a_first_guess_is_linear_in_the_inverse_height():
    start = BranchStart(10.0, np.array([0.1j, 2.0]), np.array([0.0, 1.0]))
    np.testing.assert_allclose(start.above(np.array([10.0, 40.0])), [[0.1j, 2.0], [0.025j, 1.25]])


def test_guesses_between_neighbours_are_exact_for_polynomials_in_the_angle():
    """Angle zero at the first and a right angle at the last place; of degree one less than the nodes."""
    low, high = -1.0, 3.0
    places = low + (high - low) * np.sort(RNG.uniform(size=12))
    places[0], places[-1] = low, high

    def exact(x):
        angle = np.arctan2(np.sqrt(x - low), np.sqrt(high - x))
        return np.stack([angle ** (NEAREST - 1) - angle, 1 + 2j * angle**3], axis=-1)

    known = Neighbours()
    assert not known.between(np.array([0.0])).any()
    known.add(np.zeros(0), np.zeros((0, 2)))
    known.add(places[::2], exact(places[::2]))
    known.add(places[1::2], exact(places[1::2]))
    known.add(places[:1], exact(places[:1]))
    assert known.places.tolist() == places.tolist()
    x = (places[1:] + places[:-1]) / 2
    np.testing.assert_allclose(known.guesses(x), exact(x), atol=1e-10)
    assert known.between(np.array([low, 0.0, high, low - 1e-9, high + 1e-9])).tolist() == [True] * 3 + [False] * 2


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_correction_is_the_largest_over_all_unknowns(wrong):
    """g^2 = 4 and g h = z of which one solution is off by a hundredth: the first step corrects it, the second less."""
    words = ((("g g", 1.0), ("1", -4.0)), (("g h", 1.0), ("z", -1.0)))
    kernel = Branch(BulkLaw(("g", "h"), 0, lambda p: words), Point()).kernel
    z = np.array([3.0 + 1j, 5.0])
    exact = np.stack([np.full(2, 2.0 + 0j), z / 2], axis=1)
    r = exact.copy()
    r[:, wrong] *= 1.01
    better, before, after, slopes = kernel(z, r, np.abs(exact))
    assert np.all((before > 5e-3) & (before < 2e-2)) and np.all((after < 2e-4) & (after < before / 50))
    np.testing.assert_allclose(better, exact, rtol=1e-8)
    np.testing.assert_allclose(slopes, np.array([[0, 0.5]] * 2), atol=1e-4)
