"""A spectral law: atoms, moments, and the resolvent at any scale."""

from __future__ import annotations

from functools import cache
from math import comb, pi
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from numerics.bulk import density
from numerics.bulk.branch import CLOSEST, Branch
from numerics.bulk.law import DensityPanel, DensityPiece, Panelled, SpectralLaw
from numerics.bulk.support import _with_tips
from numerics.runtime.interface import BulkLaw, CoefficientTable
from numerics.runtime.point import Point


def test_a_law_that_is_moved_has_its_atoms_moved():
    atoms = SpectralLaw(((0.0, 0.0),), ((-1.0, 0.25), (2.0, 0.75)), Panelled((), (0.5,)), 0.0)
    moved = atoms.moved(3.0)
    assert moved.transform(5j + 3) == pytest.approx(atoms.transform(5j))
    assert moved.moment(1) == pytest.approx(atoms.moment(1) + 3) and moved.panels.zeros == (3.5,)


def test_a_resolvent_that_a_curve_gives_to_nine_digits_is_found_again_at_any_scale(monkeypatch):
    """Of the matrix times 1e6 the resolvent is a millionth, and so is the error that is allowed."""
    monkeypatch.setattr(density.Curve, "of", lambda law, own: True)
    monkeypatch.setattr(density, "_on_curve", lambda *_: (np.array([1e-6 + 0j]), np.array([1e-15])))
    branch = SimpleNamespace(
        law=None,
        own=None,
        eliminated=True,
        resolvent_index=0,
        start=SimpleNamespace(height=1e7),
        certain=lambda z, tell, what: (np.full((len(z), 1), 2e-6 + 0j), np.zeros(len(z))),
    )
    assert density.resolvent_at(branch, np.array([1.0]))[0] == pytest.approx([2e-6])


@pytest.mark.parametrize("use_curve", [True, False])
def test_the_resolvent_is_the_curve_where_that_may_be_used_and_solves_the_equations_where_not(use_curve):
    """The equation 1 - z r + r^2 has the semicircle of radius 2, and a curve that is not its own that of radius 4."""
    curve = CoefficientTable(lambda _: (), ((("1",), ()), ((), ("-1",)), (("4",), ())))
    law = BulkLaw(("r",), 0, lambda _: ((("1", 1), ("z r", -1), ("r r", 1)),), curve=curve)
    z, radius = np.array([6 + 1j, 1 + 2j]), 4 if use_curve else 2
    found, errors = density.resolvent_at(Branch(law, Point(), use_curve), z)
    expected = 2 / (z + np.sqrt(z - radius) * np.sqrt(z + radius))
    assert np.allclose(found, expected, rtol=1e-13) and np.all(errors < 1e-13)


@pytest.mark.parametrize("by_factors", [True, False])
def test_only_where_sites_differ_is_a_neighbourhood_of_a_divergent_edge_out_of_reach(by_factors, monkeypatch):
    """The density sqrt((4 - x)/x) / (2 pi) diverges at 0 and vanishes at 4. Elsewhere there is multiple precision."""
    monkeypatch.setattr(density, "resolvent_at", lambda _, x: (-0.5j * np.sqrt((4 - x) / x), np.zeros(x.shape)))
    branch = SimpleNamespace(by_factors=by_factors, start=SimpleNamespace(height=8.0))
    found = density.out_of_reach(branch, [(0.0, 4.0)])
    assert found == ({0.0: pytest.approx(100 * CLOSEST * 8)} if by_factors else {})


@pytest.mark.parametrize(("tip", "total"), [(0.1, 1.0), (0.15, 1.0), (0.05, 0.93), (0.3, 1.18)])
def test_tips_have_the_mass_that_is_left_where_their_own_is_off_by_less_than_half(tip: float, total: float):
    """Panels have 0.78 and an atom 0.1 of the mass, so that 0.12 is left."""
    flat, end = (
        DensityPanel(DensityPiece(low, low + 1, 1, 1), 0.0, 1.0, np.array([mass]), 0.0)
        for low, mass in ((0.0, 0.78), (1.0, tip))
    )
    assert _with_tips(Panelled((flat,), ()), [end], 0.1).mass == pytest.approx(total - 0.1)


# -- laws whose transform, moments and distribution function are known, as panels

NODES = -np.cos((2 * np.arange(20) + 1) * np.pi / 40)


def panelled(density, pieces, weight: float, breaks=(0.0, 0.5, 1.0)) -> SpectralLaw:
    """A law whose density is given as a function of the distances from both ends of each piece."""
    panels = []
    for piece in pieces:
        for t0, t1 in zip(breaks, breaks[1:], strict=False):
            t = (t0 + t1) / 2 + (t1 - t0) / 2 * NODES
            above, below = -piece.beyond(np.array([piece.low]), t)[0], piece.beyond(np.array([piece.high]), t)[0]
            values = weight * density(above, below) * piece.rate(t)
            panels.append(DensityPanel(piece, t0, t1, np.polynomial.chebyshev.chebfit(NODES, values, 19), 0.0))
    return SpectralLaw(tuple((p.low, p.high) for p in pieces), (), Panelled(tuple(panels), ()), 0.0)


@cache
def semicircle(centre: float, breaks=(0.0, 0.5, 1.0)) -> SpectralLaw:
    """Radius two: sqrt(above below) / (2 pi)."""
    piece = DensityPiece(centre - 2, centre + 2, 2, 2)
    return panelled(lambda above, below: np.sqrt(above * below) / (2 * pi), [piece], 1.0, breaks)


@cache
def square_wishart(sign: int) -> SpectralLaw:
    """Marchenko-Pastur with ratio one, sqrt((4 - x) / x) / (2 pi): a hard edge at zero, perhaps reflected."""
    ends, density = (0.0, 4.0), lambda above, below: np.sqrt(below / above) / (2 * pi)
    if sign < 0:
        ends, density = (-4.0, 0.0), lambda above, below: np.sqrt(above / below) / (2 * pi)
    return panelled(density, [DensityPiece(*ends, 2, 2)], 1.0)


def by_hand(kind: str, z: complex, centre: float = 0.0) -> complex:
    """The resolvent with the sign of Im z, in multiple precision; real z are outside the support."""
    with mpmath.workdps(40):
        if kind == "semicircle":
            w = mpmath.mpmathify(z) - mpmath.mpf(centre)
            return complex((w - mpmath.sqrt(w - 2) * mpmath.sqrt(w + 2)) / 2)
        w = mpmath.mpmathify(z)
        return complex((1 - mpmath.sqrt(w - 4) / mpmath.sqrt(w)) / 2)


PLACES = [0.3 + 1j, 0.3 + 0.05j, 1.99 + 1e-3j, -1.5 - 0.2j, 1e-3j, -1.7 + 1e-9j, 0.2 - 1e-7j, 2 + 1e-8j, -2 + 1e-5j]


@pytest.mark.parametrize("centre", [0.0, 7.5])
@pytest.mark.parametrize("breaks", [(0.0, 0.5, 1.0), (0.0, 0.1, 0.11, 0.7, 1.0)])
def test_the_transform_of_a_semicircle_at_any_distance_from_it(centre, breaks):
    """Beside the axis on either side, next to both edges and far away."""
    law = semicircle(centre, breaks)
    z = np.array([*PLACES, 2.0001, -2.0001, 2.3, -5.0, 1e3, 3 + 4j, -1e5j]) + centre
    expected = [by_hand("semicircle", point, centre) for point in z]
    np.testing.assert_allclose(law.transform(z), expected, rtol=2e-9)
    away = np.abs(z.imag) + np.maximum(np.abs(z.real - centre) - 2, 0) > 0.04
    np.testing.assert_allclose(law.transform(z[away]), np.array(expected)[away], rtol=1e-12)


@pytest.mark.parametrize("side", [1, -1])
def test_on_the_support_the_transform_is_its_limit_from_either_side(side):
    x = np.array([-1.9999, -1.3, -1e-3, 0.4, 1.0, 1.99999])
    expected = x / 2 - side * 0.5j * np.sqrt(4 - x**2)
    np.testing.assert_allclose(semicircle(0.0).transform(x, side), expected, atol=1e-11)
    np.testing.assert_allclose(semicircle(0.0).transform(np.array([2.0, -2.0]), side), [1.0, -1.0], atol=1e-7)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_transform_beside_a_hard_edge(sign):
    law = square_wishart(sign)
    z = np.array([1e-8j, 1e-12 + 1e-12j, -1e-6, -1e-13, 4.0001, 2 + 1e-3j, 3.9 - 1e-6j, -3.0, 0.1 + 0.2j, 1e6])
    expected = [by_hand("wishart", point) for point in z]
    np.testing.assert_allclose(law.transform(sign * z), sign * np.array(expected), rtol=1e-7)
    assert np.isinf(law.transform(np.array([0.0]))[0]) and np.isfinite(law.transform(np.array([4.0 * sign]))[0])


@pytest.mark.parametrize("sign", [1, -1])
def test_density_and_distribution_of_a_law_with_a_hard_edge(sign):
    law = square_wishart(sign)
    x = np.array([1e-14, 1e-7, 0.2, 1.0, 2.0, 3.7, 4 - 1e-7])
    np.testing.assert_allclose(law.density(sign * x), np.sqrt((4 - x) / x) / (2 * pi), rtol=1e-6)
    assert law.density(sign * np.array([-1e-9, -3.0, 4.1])).tolist() == [0.0, 0.0, 0.0]
    below = (np.sqrt(x * (4 - x)) + 4 * np.arcsin(np.sqrt(x) / 2)) / (2 * pi)
    np.testing.assert_allclose(law.cumulative(sign * x), below if sign > 0 else 1 - below, atol=1e-13)
    assert law.cumulative(sign * np.array([-1.0, 5.0])).tolist() == pytest.approx([0, 1][::sign], abs=1e-14)
    catalan = [sign**k * comb(2 * k, k) / (k + 1) for k in range(6)]
    np.testing.assert_allclose(law.moments(6), catalan, rtol=1e-12)
    assert law.moment(3) == pytest.approx(catalan[3])


def test_a_law_of_two_pieces_and_an_atom_is_their_mixture():
    """A quarter at 1, half of a semicircle around -6, a quarter of one around 6."""
    left, right = semicircle(-6.0), semicircle(6.0)
    panels = [
        DensityPanel(p.piece, p.t0, p.t1, weight * p.series, 1e-3)
        for law, weight in ((left, 0.5), (right, 0.25))
        for p in law.panels.panels
    ]
    law = SpectralLaw((*left.edges, *right.edges), ((1.0, 0.25),), Panelled(tuple(panels), ()), 0.0)
    assert law.panels.mass == pytest.approx(0.75) and law.panels.error == pytest.approx(4e-3)
    assert law.panels.pieces == (left.panels.panels[0].piece, right.panels.panels[0].piece)
    x = np.array([-9.0, -6.0, 0.999, 1.0, 3.0, 6.0, 9.0])
    np.testing.assert_allclose(law.cumulative(x), [0, 0.25, 0.5, 0.75, 0.75, 0.875, 1], atol=1e-12)
    np.testing.assert_allclose(law.density(x), np.array([0, 0.5, 0, 0, 0, 0.25, 0]) / pi, atol=1e-12)
    assert law.moments(3) == pytest.approx([1, -3 + 0.25 + 1.5, 0.5 * 37 + 0.25 + 0.25 * 37])
    at = np.array([[0.5 + 1j, 20.0]])
    mixed = 0.5 * left.transform(at) + 0.25 * right.transform(at) + 0.25 / (at - 1)
    np.testing.assert_allclose(law.transform(at), mixed, rtol=1e-13)
    moved = law.moved(2.0)
    assert moved.edges[1] == (6.0, 10.0) and moved.atoms == ((3.0, 0.25),) and moved.error == law.error
    np.testing.assert_allclose(moved.transform(at + 2), mixed, rtol=1e-12)
    np.testing.assert_allclose(moved.density(x + 2), law.density(x), atol=1e-12)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("powers", [(1, 1), (2, 2), (2, 1), (1, 3), (4, 2)])
def test_the_coordinate_of_a_piece_is_inverted_up_to_its_ends(powers):
    piece = DensityPiece(-1.0, 3.0, *powers)
    t = np.array([0.0, 1e-3, 0.3, 0.5, 0.9, 0.999, 1.0])
    share = 1 - (1 - t ** powers[0]) ** powers[1]
    np.testing.assert_allclose(piece.x(t), -1 + 4 * share, atol=1e-15)
    np.testing.assert_allclose(piece.t(piece.x(t)), t, atol=1e-6)
    assert piece.t(np.array([-5.0, 8.0])).tolist() == [0.0, 1.0]
    inner = t[1:-1]
    slope = (piece.x(inner + 1e-6) - piece.x(inner - 1e-6)) / 2e-6
    np.testing.assert_allclose(piece.rate(inner), slope, rtol=1e-4, atol=1e-5)
    z = np.array([-1 + 1e-13, 3 - 1e-13, 0.7 + 0.1j, -4.0, 9j])
    np.testing.assert_allclose(piece.beyond(z, t), z[:, None] - piece.x(t), atol=1e-14)
    roots = piece.roots(z)
    assert len(roots) == powers[0] * powers[1]
    for root in roots:
        x = -1 + 4 * (1 - (1 - root ** powers[0]) ** powers[1])
        np.testing.assert_allclose(x, z, atol=1e-12)
    distinct = np.array(roots)[:, 2:]
    apart = np.abs(distinct[:, None] - distinct[None]) + np.eye(len(roots))[:, :, None]
    assert np.min(apart) > 1e-3
    assert roots[0][2].imag > 0 and roots[0][4].imag > 0  # the first is in the half plane of z


def test_the_first_root_keeps_its_digits_beside_the_lower_end():
    """x - low is t^2 / 2 + ... of the width: 1e-20 beside the end it is not rounded to zero."""
    piece = DensityPiece(0.0, 1.0, 2, 2)
    (near,) = piece.roots(np.array([1e-20 + 1e-20j]))[:1]
    assert near[0] ** 2 * 2 == pytest.approx(1e-20 + 1e-20j, rel=1e-9)


@pytest.mark.parametrize(("end", "inward"), [(-2.0, 1), (2.0, -1)])
def test_the_mean_outermost_eigenvalue_is_that_of_tracy_and_widom(end, inward):
    """Of a GOE matrix with unit scale the mean is 1.2065 N^(-2/3) inside the edge, whatever its units."""
    law = semicircle(0.0)
    assert law.mean_at_edge(end, 1000) == pytest.approx(end + inward * 1.2065335745820 / 100, abs=1e-6)
    wide = DensityPiece(-8.0, 8.0, 2, 2)
    stretched = panelled(lambda above, below: np.sqrt(above * below) / (32 * pi), [wide], 1.0)
    assert stretched.mean_at_edge(4 * end, 1000) == pytest.approx(4 * law.mean_at_edge(end, 1000), rel=1e-6)
    assert square_wishart(1).mean_at_edge(0.0, 1000) is None
    upper = 4 - 1.2065335745820 * 2 ** (4 / 3) / 100
    assert square_wishart(1).mean_at_edge(4.0, 1000) == pytest.approx(upper, abs=1e-6)
