"""Outliers beside a point mass of the bulk at which det A(z) vanishes too."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy.optimize import brentq
from sympy import sqrt

import derive
from derive import Eq, Model, field, gaussian, normal, outer, parameter, positive, real, sectors, spectrum
from numerics.outliers.finding import _inside_contour, _zeros_on_panels
from numerics.outliers.panels import ChebyshevPanel, Interval


def crossed_spikes() -> Model:
    """A Wishart matrix W^T W / N plus k (h x^T + x h^T) / D, where h = W^T u / sqrt(N) depends on it."""
    k, nu = parameter("k", default=-0.4, domain=real), parameter("nu", default=0.5, domain=positive)
    D, N = sectors("D", N=nu)
    W, x, u, h = gaussian("W", N, D), normal("x", D), normal("u", N), field("h", D)
    probed = W.T @ W / N + k / D * (outer(h, x) + outer(x, h))
    return Model(parameters=(nu, k), equations=[Eq(h, W.T @ u / sqrt(N))], probe=spectrum(probed))


def by_hand(nu: float, k: float) -> list[float]:
    """Return the zeros of det A(z) = a b (a^2 - k^2) - k^2/nu, a = 1/G and b = 1/(z - a), off the support."""
    low, high = (1 - nu**-0.5) ** 2, (1 + nu**-0.5) ** 2

    def determinant(z: float) -> float:
        root = np.sqrt((z - low) * (z - high)) * np.sign(z - (low + high) / 2)
        resolvent = (z - 1 + 1 / nu - root) * nu / (2 * z)
        a = 1 / resolvent
        return a * (a**2 - k**2) / (z - a) - k**2 / nu

    near = np.geomspace(1e-4, 1 - 1e-9, 300)
    pieces = [-np.geomspace(1e-4, 50, 300), low * near, high * (1 + np.geomspace(1e-9, 50, 300))]
    return [
        brentq(determinant, z, y)
        for piece in pieces
        for z, y in zip(piece, piece[1:], strict=False)
        if determinant(z) * determinant(y) < 0
    ]


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("k", [-3.0, -1.2, 0.4, 5.0])
def test_outliers_beside_a_point_mass_are_complete(nu, k):
    solution = derive.load(crossed_spikes()).solve(nu=nu, k=k)
    assert solution, solution
    assert np.allclose(np.sort(solution.outliers), np.sort(by_hand(nu, k)), rtol=1e-8)


def test_zeros_beside_one_of_high_multiplicity_are_separated():
    """det = (1 + x)^4 (x - 1/3): more zeros than rows, so two moments of the inverse do not determine them."""
    x = chebyshev.chebpts1(16)
    block = np.array([[(1 + x) ** 2, 0 * x], [0 * x, (1 + x) ** 2 * (x - 1 / 3)]])
    panel = ChebyshevPanel(
        Interval(1.0, 2.0, 1.0), 0.0, 1.0, chebyshev.chebfit(x, block.reshape(4, -1).T, 15).reshape(16, 2, 2)
    )
    assert not _inside_contour(panel.coefficients)[1]
    expected = float(panel.z(np.array(1 / 3)))
    found = [z for zeros in _zeros_on_panels([panel]) for z in zeros]
    assert any(abs(z - expected) < 1e-9 for z in found)
    assert all(abs(z - expected) < 1e-9 or z - 1.0 < 1e-6 for z in found)


def test_halves_of_a_panel_are_the_same_series():
    rng = np.random.default_rng(3)
    panel = ChebyshevPanel(Interval(-np.inf, 2.0, 1.0), 0.25, 0.75, rng.standard_normal((16, 2, 2)))
    for half, places in zip(panel.halves(), ((-1, 0), (0, 1)), strict=True):
        for share in (0.1, 0.7):
            place = places[0] + share * (places[1] - places[0])
            whole, part = (chebyshev.chebval(at, p.coefficients) for at, p in ((place, panel), (2 * share - 1, half)))
            assert np.allclose(whole, part, atol=1e-12)
            assert np.isclose(panel.z(np.array(place)), half.z(np.array(2 * share - 1)))
