"""The points of the physical branch at which eliminated polynomials are checked."""

from __future__ import annotations

from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import sympy as sp

from derive import parameter, whole_positive
from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint, physical_samples, physical_values, sample_point
from derive.algebra.polynomials import PolynomialRing, _coincidences, _Elimination, _Evaluation

G, R, H = sp.symbols("G R H")
T = parameter("T", default=4, domain=whole_positive)


def test_a_point_has_a_value_for_every_parameter():
    rate, nu = parameter("rate", default=0.5), parameter("nu", default=2.0)
    assert len(sample_point([sp.sympify(T * rate + nu)])) == 3


def test_an_eliminated_polynomial_that_does_not_vanish_on_the_physical_branch_is_refused():
    ring = PolynomialRing.of([G**2 - R])
    with pytest.raises(ValueError, match="fits the physical branch"):
        _Evaluation.add_factors(SimpleNamespace(accepts=lambda factor: False), [], ring.encode(G**2 - R))


def test_functions_that_are_not_known_have_values_of_their_own_on_the_physical_branch():
    f, g = (sp.Function(name)(sp.Symbol("k")) for name in "fg")
    samples = physical_samples((Z * G - 1 - f * g * G**2,), (G,))
    assert samples and all(one.point[f] != one.point[g] for one in samples)
    assert all(one.vanishes(Z * G - 1 - f * g * G**2) for one in samples)


@pytest.mark.parametrize("at", [0.1, 0.9, 2.5])
def test_inside_the_bulk_the_physical_branch_has_the_negative_imaginary_part(at):
    """z = 1/G + G + 1/(1 - 5 G), a semicircle beside a Marchenko-Pastur law; the other two solutions are no limits."""
    found = physical_values(((Z - G - H) * G - 1, H * (1 - 5 * G) - 1), (G, H), {}, at=at)[G]
    solutions = np.roots([-5, 1 + 5 * at, -4 - at, 1])
    assert complex(found) == pytest.approx(solutions[np.argmin(solutions.imag)], rel=1e-12)


def test_unknowns_that_vanish_or_equal_another_symbol_up_to_a_sign_are_eliminated_by_it():
    a, b, c, k = sp.symbols("a b c k")
    values = {a: sp.Float("0.3", 60), b: sp.Float(0), c: sp.Float("-0.7", 60), G: sp.Float("0.3", 60)}
    physical = SimpleNamespace(values={s: mpmath.mpf(str(v)) for s, v in {**values, k: sp.Float("0.7", 60)}.items()})
    assert _coincidences([G, a, b, c], [G + a + b + c + k], physical) == {a: G, b: 0, c: -k}


def test_an_elimination_without_these_unknowns_needs_no_step():
    equations, unknowns = [(Z - H) * G - 1, (Z - G) * H - 1, R - R * G * H / 2], [G, H, R]
    done = _Elimination.of(equations, unknowns[1:], PhysicalPoint.of(tuple(equations), tuple(unknowns)))
    assert not done.steps and done.ring.decode(done.relation) in (Z * G - G**2 - 1, G**2 - Z * G + 1)
