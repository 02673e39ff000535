"""Degrees of the curve of a bulk from the resolvent's expansion at infinity, without elimination."""

import pytest
import sympy as sp

from derive.algebra.degrees import NoExpansion, ResolventExpansion
from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint
from derive.algebra.polynomials import MOST_FACTORED_TERMS, TooLarge, check_degrees, eliminate, irreducible
from derive.support.progress import report, reporting

G, R, S = sp.symbols("G R S")


def product_of_gaussians(count):
    """z G = 1 + z^count G^(count + 1): the resolvent of X^T X for a product X of square Gaussian matrices, with
    responses R_k = (z G)^k as unknowns of their own."""
    steps = [sp.Symbol(f"R{k}") for k in range(count + 1)]
    chain = [steps[0] - Z * G, *(b - a * steps[0] for a, b in zip(steps, steps[1:], strict=False))]
    return [Z * steps[0] - Z - steps[-1], *chain], [G, *steps]


def test_semicircle_has_degree_two_in_the_resolvent_and_one_in_z():
    """G^2 - z G + 1 = 0."""
    semicircle = ResolventExpansion.of([Z * G - 1 - G**2], [G])
    assert semicircle.lowest_degrees([(2, 1)]) == (2, 1)
    assert semicircle.lowest_degrees([(1, 20), (2, 0), (20, 0)]) is None


@pytest.mark.parametrize("count", [1, 3])
def test_products_of_gaussian_matrices_have_their_number_plus_one_as_degree(count):
    """Fuss and Catalan: k matrices give the degree k + 1."""
    expansion = ResolventExpansion.of(*product_of_gaussians(count))
    assert expansion.lowest_degrees([(count, 20)]) is None
    assert expansion.lowest_degrees([(count + 1, count)]) == (count + 1, count)
    assert expansion.lowest_degrees([(count + 1, count - 1)]) is None


def test_parameters_that_moments_do_not_depend_on_are_not_counted():
    """R = 1 + c R - c is R = 1 for every c."""
    nu, c = sp.symbols("nu c", positive=True)
    equations = [Z * G - 1 - sp.sqrt(nu) * G * R, R - 1 - c * (R - 1)]
    assert ResolventExpansion.of(equations, [G, R]).parameters_in_resolvent == 1


def test_curves_beyond_the_bounds_are_refused_before_they_are_eliminated(monkeypatch):
    """Products of few matrices have a curve within the bounds, those of many do not."""
    monkeypatch.setattr("derive.algebra.polynomials.MOST_CURVE_TERMS", 40)
    check_degrees(*product_of_gaussians(4))
    with pytest.raises(TooLarge):
        check_degrees(*product_of_gaussians(9))


def test_equations_without_an_expansion_are_left_to_the_elimination():
    """R^2 = 2 has no value at infinity that is reached from zero."""
    with pytest.raises(NoExpansion):
        ResolventExpansion.of([Z * G - 1 - G * R, R**2 - 2], [G, R]).lowest_degrees([(2, 2)])
    check_degrees([Z * G - 1 - G * R, R**2 - 2], [G, R])


def test_an_elimination_tells_its_progress_and_asks_the_bound_once_it_grows(monkeypatch):
    """With every resultant counted as large, the bound is asked once; each unknown is told."""
    monkeypatch.setattr("derive.algebra.polynomials.MANY_TERMS", 0)
    equations, unknowns = product_of_gaussians(2)
    asked, told = [], []
    with reporting(lambda fraction, text: told.append((fraction, text))):
        physical = PhysicalPoint.of(tuple(equations), tuple(unknowns))
        curve = eliminate(equations, unknowns[1:], physical, lambda: asked.append(True))
    report(0.0, "nobody listens")
    assert sp.expand(curve**2 - (Z**2 * G**3 - Z * G + 1) ** 2) == 0
    assert asked == [True]
    assert [text for _, text in told] == [f"eliminating unknown {k} of 3" for k in (1, 2, 3)]


def test_resultants_beyond_the_bound_are_not_factored(monkeypatch):
    """The bound is asked before flint is, which cannot be interrupted."""
    assert MOST_FACTORED_TERMS > 0
    monkeypatch.setattr("derive.algebra.polynomials.MOST_FACTORED_TERMS", 2)
    monkeypatch.setattr("derive.algebra.polynomials.irreducible", lambda p: pytest.fail("factored") or irreducible(p))
    equations, unknowns = product_of_gaussians(2)
    with pytest.raises(TooLarge):
        eliminate(equations, unknowns[1:], PhysicalPoint.of(tuple(equations), tuple(unknowns)))
