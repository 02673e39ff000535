"""Equations with averages over sites, exponents at edges, and the march to the upper edge, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numerics.bulk import density, settling
from numerics.bulk.branch import Branch
from numerics.bulk.density import MOST_ROOT, _root_of, _tip_root, pieces_of, tip_panel
from numerics.bulk.folds import _RealPoint, _step_is_consistent, continuation_program, implicit
from numerics.bulk.law import DensityPiece
from numerics.bulk.polynomials import Sums, polynomials_of
from numerics.bulk.settling import _test_points
from numerics.bulk.site_averages import SiteSystem, _Average, _Factor
from numerics.bulk.support import law_of
from numerics.runtime.interface import BulkLaw
from numerics.runtime.point import Point

SPREAD = 0.25
VALUES, WEIGHTS = np.array([[1.0], [-1.0], [3.0]]), np.array([0.5, 0.3, 0.2])
PLAIN = (("z g", 1.0), ("g g", -SPREAD), ("1", -1.0))


def sites() -> SiteSystem:
    """G = <1 / (z - s G - x)> over three values x: one equation G - average = 0; variables are z, g, 1."""
    factor = _Factor.of(-1, [((0,), 1.0), ((1,), -SPREAD), ((), -VALUES)], 3, 2)
    residual, slope = polynomials_of([[("g", 1), ("average0", -1)]], ("g", "average0"))
    return SiteSystem(1, 3, (_Average(WEIGHTS, (factor,)),), Sums.of(residual, 3), Sums.of(slope, 3))


def test_an_average_over_sites_and_its_derivatives():
    z, g = np.array([0.3 + 1j, 2.0 + 0.2j]), np.array([[0.1 - 0.4j], [0.5 - 0.2j]])
    residual, rate, slope = sites()(z, g)
    w = z - SPREAD * g[:, 0]
    inverse = 1 / (w[:, None] - VALUES[:, 0])
    np.testing.assert_allclose(residual[:, 0], g[:, 0] - inverse @ WEIGHTS, rtol=1e-13)
    np.testing.assert_allclose(rate[:, 0], inverse**2 @ WEIGHTS, rtol=1e-13)
    np.testing.assert_allclose(slope[:, 0, 0], 1 - SPREAD * (inverse**2 @ WEIGHTS), rtol=1e-13)
    real = sites()(np.array([7.0]), np.array([[0.2]]))
    assert all(part.dtype == float for part in real)


@pytest.mark.parametrize("powers", [(2, -3), (1, -1), (-2, -2), (3, 1)])
def test_a_product_of_powers_in_an_average(powers):
    """<(x z + g)^a (x - 2 z g)^b>: derivatives by both variables are those of differences."""
    rows = [[((0,), VALUES), ((1,), 1.0)], [((), VALUES), ((0, 1), -2.0)]]
    average = _Average(WEIGHTS, tuple(_Factor.of(p, terms, 3, 2) for p, terms in zip(powers, rows, strict=True)))

    def value(z, g):
        x = VALUES[:, 0]
        return WEIGHTS @ ((x * z + g) ** float(powers[0]) * (x - 2 * z * g) ** float(powers[1]))

    at = np.array([0.7 + 0.5j, 0.4 - 0.3j])
    found, slopes = average.at(np.array([[at[0]], [at[1]], [1.0]]))
    assert found[0] == pytest.approx(value(*at), rel=1e-12)
    step = 1e-6
    differences = [(value(*(at + step * e)) - value(*(at - step * e))) / (2 * step) for e in np.eye(2)]
    assert slopes[:, 0] == pytest.approx(differences, rel=1e-7)


def test_sites_that_differ_have_the_law_of_their_mixture():
    """The same bulk from averages and from the polynomial that they make."""
    branch = Branch(BulkLaw(("g",), 0, lambda p: (PLAIN,)), Point())
    branch.__dict__["equations"] = sites()
    z = np.array([0.2 + 0.3j, 5.0, -1.5 + 1e-3j, 30j])
    for at, g in zip(z, branch.followed(z)[0][:, 0], strict=True):
        w = at - SPREAD * g
        assert g == pytest.approx(np.sum(WEIGHTS / (w - VALUES[:, 0])), rel=1e-10) and g.imag <= 0
    assert branch.by_factors and not branch.to_many_digits


# -- exponents at edges


@pytest.mark.parametrize(
    ("exponent", "root"),
    [(0.5, 2), (0.5003, 2), (1 / 3, 3), (0.36, 3), (0.29, 3), (0.27, 2), (0.41, 2), (-0.5, 2), (-1 / 3, 3), (-2 / 3, 3)]
    + [(-0.75, 4), (-0.2, 5), (-0.8, 5), (-0.05, 2), (np.nan, 2), (-np.inf, 2), (0.0, 2), (-0.498, 2), (-0.334, 3)],
)  # fmt: skip
def test_an_exponent_at_an_edge_is_the_simplest_fraction(exponent, root):
    assert _root_of(exponent) == root


def test_tips_are_smooth_in_roots_of_the_distance():
    assert [_tip_root(x) for x in (-0.5, -2 / 3, -0.9, -0.99, -0.2, 0.5)] == [2, 3, 10, MOST_ROOT, 2, 2]


def test_pieces_end_at_breaks_and_before_tips(monkeypatch):
    """An inverse root at the lower end of (0, 1): tips of the least fraction that can be followed, and decades."""
    monkeypatch.setattr(density, "_exponents", lambda branch, cuts: [(-0.5, 0.5)] * len(cuts))
    branch = SimpleNamespace(by_factors=False)
    plain, none = pieces_of(branch, [(0.0, 1.0)], np.array([0.25, 7.0]))
    assert [(p.low, p.high, p.a, p.b) for p in plain] == [(0.0, 0.25, 2, 2), (0.25, 1.0, 2, 2)] and none == []
    sites = SimpleNamespace(by_factors=True, start=SimpleNamespace(height=1.0))
    pieces, (tip,) = pieces_of(sites, [(0.0, 1.0)], np.zeros(0))
    assert (tip.low, tip.high, tip.a, tip.b) == (0.0, pytest.approx(1e-12), 2, 1)
    ends = [tip.high, *10.0 ** -np.arange(11, 0, -1), 1.0]
    assert [p.low for p in pieces] == pytest.approx(ends[:-1]) and [p.high for p in pieces] == pytest.approx(ends[1:])


@pytest.mark.parametrize("first", [-0.5, 0.5, -2 / 3])
@pytest.mark.parametrize("last", [-0.5, 0.5, 1 / 3])
def test_pieces_and_tips_fill_an_interval_with_a_tip_at_each_end_that_diverges(first, last, monkeypatch):
    monkeypatch.setattr(density, "_exponents", lambda branch, cuts: [(first, last)] * len(cuts))
    sites = SimpleNamespace(by_factors=True, start=SimpleNamespace(height=1.0))
    pieces, tips = pieces_of(sites, [(-1.0, 3.0)], np.zeros(0))
    parts = sorted([*pieces, *tips], key=lambda one: one.low)
    assert parts[0].low == -1.0 and parts[-1].high == 3.0
    assert [one.low for one in parts[1:]] == [one.high for one in parts[:-1]]
    assert [(one.low == -1.0, one.high == 3.0) for one in tips] == [(True, False)] * (first < 0) + [(False, True)] * (
        last < 0
    )
    assert [(one.a, one.b) for one in tips] == [(_tip_root(first), 1)] * (first < 0) + [(1, _tip_root(last))] * (
        last < 0
    )
    assert all(one.a == 2 for one in pieces) and pieces[-1].b == (2 if last < 0 else _root_of(last))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("exponent", [-0.5, -0.25])
def test_a_tip_has_the_mass_of_its_power_law(upper, exponent, monkeypatch):
    """density = x^e: the mass up to h is h^(1 + e) / (1 + e)."""
    width, end = 1e-3, 2.0
    side = -1.0 if upper else 1.0
    monkeypatch.setattr(
        density, "resolvent_at", lambda branch, x: (-1j * np.pi * (side * (x - end)) ** exponent, np.zeros(x.shape))
    )
    ends = (end - width, end) if upper else (end, end + width)
    # the density is matched at the end of the tip and at twice the distance
    tip = DensityPiece(*ends, *((1, 2) if upper else (2, 1)))
    panel = tip_panel(None, tip)
    assert panel.mass == pytest.approx(width ** (1 + exponent) / (1 + exponent), rel=1e-9)


def test_points_at_which_nodes_are_tried_are_inside_in_gaps_and_beside():
    law = SimpleNamespace(edges=((-1.0, 1.0), (3.0, 5.0)))
    points = _test_points(law).real
    assert len(points) == 2 * settling.INSIDE + 3
    assert np.sum((points > -1) & (points < 1)) == np.sum((points > 3) & (points < 5)) == settling.INSIDE
    assert 2.0 in points and points[-2:] == pytest.approx([-1.6, 5.6])


# -- the march


def semicircle() -> BulkLaw:
    return BulkLaw(("g",), 0, lambda p: ((("z g", 1.0), ("g g", -1.0), ("1", -1.0)),))


@pytest.mark.parametrize(("lowest", "end"), [(-1e16, 2.0), (2.0, 2.0), (2.5, 2.5), (5.0, 5.0), (1e16, 1e16)])
def test_continuation_from_infinity_ends_at_the_fold_or_the_lowest_point(lowest, end):
    """z = G + 1/G turns back at G = 1; there dz/dG = 0, and above it G = (z - sqrt(z^2 - 4)) / 2."""
    with jax.enable_x64(True):
        z, (g,), along, error = jax.jit(continuation_program(semicircle()))(Point(), jnp.asarray(lowest))
        assert float(z) == pytest.approx(end, rel=1e-14) and float(error) < 1e-9 and along == 1.0
        assert float(g) == pytest.approx(2 / (end + np.sqrt(end**2 - 4)), rel=1e-9 if end == 2 else 1e-13)


def test_continuation_without_an_end_has_no_result():
    """G = 1/z has neither a fold nor a point below zero."""
    law = BulkLaw(("g",), 0, lambda p: ((("z g", 1.0), ("1", -1.0)),))
    with jax.enable_x64(True):
        assert np.isinf(jax.jit(continuation_program(law))(Point(), jnp.asarray(-1e16)).error)


def test_an_implicit_solution_has_derivatives_of_any_order():
    """x^3 = p: x = 2 at p = 8 with derivatives p^(-2/3) / 3, -2 p^(-5/3) / 9 and 10 p^(-8/3) / 27."""
    root = implicit(lambda p, x: x**3 - p.a)
    with jax.enable_x64(True):
        found = function = lambda a: root(Point(a=a), jnp.array([2.0]))[0]
        for expected in (2.0, 1 / 12, -2 / 9 / 32, 10 / 27 / 256):
            assert float(found(8.0)) == pytest.approx(expected, rel=1e-13)
            found = jax.grad(found)
        assert float(jax.jit(jax.hessian(function))(8.0)) == pytest.approx(-2 / 9 / 32, rel=1e-13)


def real_point(g, turn=None, z=None):
    return _RealPoint(g + 1 / g if z is None else z, np.array([g]), 1 - 1 / g**2 if turn is None else turn, np.ones(1))


@pytest.mark.parametrize(
    ("before", "behind", "fits"),
    [
        (real_point(0.1), real_point(0.13), True),  # by 1/G
        (real_point(1e-3), real_point(0.4), True),  # z is nearly 1/G all the way
        (real_point(-0.4), real_point(-0.3), True),
        (real_point(0.5), real_point(2.0), False),  # beyond the fold, as far as before it
        (real_point(0.5), real_point(0.6, z=9.0), False),
        (real_point(0.5), real_point(0.6, turn=-40.0), False),
    ],
)
def test_a_step_is_explained_by_the_slopes_at_its_ends(before, behind, fits):
    assert _step_is_consistent(before, behind, 0, False) == fits


def test_by_powers_a_step_over_decades_is_explained():
    """z = G^-3 from 1 to 10: no straight line fits, the power does."""
    points = [_RealPoint(g**-3.0, np.array([g]), -3 * g**-4.0, np.ones(1)) for g in (1.0, 10.0)]
    assert _step_is_consistent(*points, 0, True) and not _step_is_consistent(*points, 0, False)


def test_a_law_is_found_once_for_equal_parameters():
    branch = Branch(semicircle(), Point())
    assert law_of(branch) is law_of(Branch(branch.law, Point()))
