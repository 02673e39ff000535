"""Slopes of the polynomial equations of a bulk."""

from __future__ import annotations

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numerics.bulk.branch import REFINED, Branch, _with_one_factorisation
from numerics.bulk.digits import long_system
from numerics.bulk.polynomials import PolynomialSystem, Sums, polynomial_system, terms_of
from numerics.runtime.interface import BulkLaw
from numerics.runtime.point import Point


@pytest.mark.parametrize("root", [jnp.sqrt, lambda a: a**0.5])
def test_equations_with_a_root_of_a_parameter_are_those_with_its_value(root):
    """1 - z r + sqrt(2) r^2 and its derivatives at z = 3 and r = 1/2, and its root near 0.4142 in more digits."""
    law = BulkLaw(("r",), 0, lambda p: ((("1", 1), ("z r", -1), ("r r", root(p.a))),))
    z, r = 3.0, 0.5
    expected = [1 - z * r + np.sqrt(2) * r**2, -r, -z + 2 * np.sqrt(2) * r]
    with jax.enable_x64():
        found = polynomial_system(law, Point(a=2.0)).values(np.array([z]), np.array([[r]]))
        better = long_system(law, Point(a=2.0)).improved(complex(z), np.array([0.4142]), np.array([1.0]))[0]
    for one, value in zip(found, expected, strict=True):
        assert float(np.ravel(one)[0]) == pytest.approx(value, rel=1e-14)
    assert better[0] == pytest.approx((z - np.sqrt(z**2 - 4 * np.sqrt(2))) / np.sqrt(8), rel=1e-14)


def test_coefficients_in_fractions_are_exact_and_are_rounded_otherwise():
    law = BulkLaw(("r",), 0, lambda p: ((("z r", p.a / 3), ("r", 1)),))
    (_, exact, _), _ = terms_of(law, Point(a=0.5), in_fractions=True)[0]
    (_, rounded, _), _ = terms_of(law, Point(a=0.5))[0]
    assert exact == Fraction(1, 6) and isinstance(exact, Fraction)
    assert rounded == 0.5 / 3 and isinstance(rounded, float)


def test_slopes_that_are_not_zero_act_as_their_matrix():
    """Slopes ((2 z, 0, 5), (0, 3, 0), (1, 0, r0)) of three equations by three unknowns."""
    slope = [(0, 2.0, (0,)), (2, 5.0, ()), (4, 3.0, ()), (6, 1.0, ()), (8, 1.0, (1,))]
    none = Sums.of([], 4)
    system = PolynomialSystem(3, none, none, Sums.of(slope, 4))
    z, r = np.array([1.5, -1.0]), np.array([[0.5, 7.0, 9.0], [4.0, 7.0, 9.0]])
    values = system.values(z, r)[2]
    matrices = np.array([[[2 * a, 0, 5], [0, 3, 0], [1, 0, b]] for a, b in zip(z, r[:, 0], strict=True)])
    columns, sizes = np.arange(12.0).reshape(2, 3, 2), np.array([[1.0, 2.0, 3.0], [5.0, 0.1, 0.2]])
    assert np.allclose(system.matrices(values), matrices)
    assert np.allclose(system.times(values, columns), matrices @ columns)
    assert np.allclose(system.widest(values, sizes), np.max(np.abs(matrices) * sizes[:, None, :], axis=-1))


@pytest.mark.parametrize("z", [3.02, 3.6, 2.001])
def test_responses_next_to_a_known_point_lie_on_the_physical_branch(z):
    """The semicircle law, r = (z - sqrt(z^2 - 4)) / 2: two steps of Newton's method from the tangent at 3, four, or a
    continuation where it does not contract at once.
    """
    branch = Branch(BulkLaw(("r",), 0, lambda p: ((("1", 1), ("z r", -1), ("r r", 1)),)), Point())
    branch.ask(np.array([3.0]))
    branch.ask_near(np.array([3.0 + 0j]), np.array([z + 0j]))
    assert branch.knows(np.array([z + 0j]))
    assert branch.responses(np.array([z]))[0, 0] == pytest.approx((z - np.sqrt(z**2 - 4)) / 2, rel=1e-12)


def test_steps_that_share_a_factorisation_are_those_with_two_of_their_own():
    """For a = z and b^2 = 1, a = z is exact at once, and b takes two steps of Newton's method from 1.08; its slope 2 b
    changes by a thirteenth between them. The derivatives with respect to z are 1 and 0."""
    law = BulkLaw(("a", "b"), 0, lambda _: ((("a", 1), ("z", -1)), (("b b", 1), ("1", -1))))
    system, z, r = polynomial_system(law, Point()), np.array([2.0 + 0j]), np.array([[2.0, 1.08]], complex)
    found, first, last, rate = _with_one_factorisation(system, z, r, np.abs(r))
    once = (1.08 + 1 / 1.08) / 2
    twice = (once + 1 / once) / 2
    assert found[0, 0] == 2 and abs(found[0, 1] - twice) < REFINED * (once - twice)
    assert rate[0] == pytest.approx([1.0, 0.0])
    assert (first[0], last[0]) == pytest.approx(((1.08 - once) / 1.08, (once - twice) / 1.08), rel=1e-3)
