"""Bulks that end where their density diverges, anywhere on the axis: edges, density and outliers."""

from __future__ import annotations

import numpy as np
import pytest
from reference_formulas import hard_edges_by_hand, sites_by_hand
from sympy import sqrt, tanh

import derive
from derive import Eq, Model, diag, field, gaussian, goe, normal, outer, parameter, positive, sectors, spectrum, trait
from numerics.bulk.branch import Branch
from numerics.bulk.density import _root_of
from numerics.bulk.support import law_of, law_without_curve

D, k = sectors("D"), parameter("k", default=8.0)
G, Q, u = goe("G", D), gaussian("Q", D, D) / sqrt(D), normal("u", D)
SPIKE = k / D * outer(u, u)
MATRICES = {
    "square": G @ G + G + SPIKE,
    "beside identity": Q + Q.T + Q.T @ Q + SPIKE,
    "many digits": G @ G + 1.4142135623730951 * G + SPIKE,
}


@pytest.fixture(scope="module")
def theory():
    known = {}

    def of(name):
        if name not in known:
            known[name] = derive.load(Model(parameters=(k,), equations=[], probe=spectrum(MATRICES[name])))
        return known[name]

    return of


@pytest.mark.slow
def test_outlier_above_a_bulk_with_an_inverse_square_root(theory):
    solution = theory("square").solve(k=8.0)
    np.testing.assert_allclose(solution.bulk_edges, [[-0.25, 6]], rtol=1e-14)
    (outlier,) = solution.outliers
    assert hard_edges_by_hand.square_plus_itself(outlier) == pytest.approx(1 / 8, rel=1e-12)
    assert not len(theory("square").solve(k=2.0).outliers)


@pytest.mark.parametrize("strength", [6.0, -5.0, -0.02])
def test_outliers_beside_an_inverse_cube_root(theory, strength):
    """However weak a spike is, it pulls an eigenvalue out of an edge at which the density diverges."""
    solution = theory("beside identity").solve(k=strength)
    np.testing.assert_allclose(solution.bulk_edges, [[-1, 5.75]], rtol=1e-14)
    assert list(solution.outliers) == pytest.approx([hard_edges_by_hand.beside_identity(strength)], rel=1e-9)


@pytest.mark.long_cases("beside identity")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["square", "beside identity"])
def test_law_without_a_curve_is_the_same(theory, name, monkeypatch):
    seen = []
    certain = Branch.certain
    monkeypatch.setattr(Branch, "certain", lambda self, *given: (seen.append(self), certain(self, *given))[1])
    assert theory(name).solve(k=3.0).bulk_edges.size
    with_curve, without = law_of(seen[0]), law_without_curve(seen[0])
    np.testing.assert_allclose(without.edges, with_curve.edges, rtol=1e-13)
    low, high = with_curve.edges[0]
    x = low + (high - low) * np.array([1e-6, 0.1, 0.5, 0.99])
    np.testing.assert_allclose(without.density(x), with_curve.density(x), rtol=1e-6)


def test_numbers_of_many_digits_are_coefficients_too(theory):
    np.testing.assert_allclose(theory("many digits").solve().bulk_edges, [[-0.5, 4 + 2 * 2**0.5]], rtol=1e-14)


@pytest.mark.parametrize(("p", "q"), [(1, 2), (1, 3), (2, 3), (3, 4), (7, 8)])
def test_roots_in_which_a_density_is_smooth(p, q):
    assert {_root_of(-p / q + off) for off in (-3e-3, 0.0, 3e-3)} == {q}


# -- sites that differ: a square layer whose units saturate

VALUES = np.geomspace(0.02, 1, 12)
SHARES = np.full(12, 1 / 12)


def squares(values):
    s = trait("s", D, values=list(values))
    return derive.load(Model(parameters=(k,), equations=[], probe=spectrum(Q.T @ diag(s) @ Q + SPIKE)))


@pytest.fixture(scope="module")
def many_values():
    return squares(VALUES).solve(k=4.0)


@pytest.mark.slow
def test_square_with_many_values_on_a_diagonal_reaches_zero(many_values):
    assert many_values.bulk_edges[0, 0] == 0
    top = sites_by_hand.weighted_rows_edges(1.0, VALUES, SHARES, gaps=False)[-1]
    assert many_values.bulk_edges[-1, 1] == pytest.approx(top, rel=1e-12)
    (outlier,) = many_values.outliers
    assert sites_by_hand.weighted_rows(complex(outlier), 1.0, VALUES, SHARES).real == pytest.approx(1 / 4, rel=1e-9)


@pytest.mark.parametrize("x", [1e-9, 1e-5, 1e-2])
def test_density_next_to_zero_is_the_one_by_hand(many_values, x):
    assert many_values.density(np.array([x]))[0] == pytest.approx(
        sites_by_hand.square_density(x, VALUES, SHARES), rel=1e-6
    )


@pytest.mark.slow
def test_sites_that_vanish_are_an_atom_beside_a_soft_edge():
    solution = squares([0, *VALUES[1:]]).solve(k=4.0)
    assert solution.layer().atoms == ((0, pytest.approx(1 / 12, rel=1e-12)),)
    assert solution.bulk_edges[0, 0] > 1e-5


@pytest.fixture(scope="module")
def jacobian():
    """J = diag(tanh'(h)) (Q + planted) of a square layer, h = Q x made by the matrix itself."""
    x, y, h = normal("x", D), normal("y", D), field("h", D)
    J = diag(1 - tanh(h) ** 2) @ (Q + k / D * outer(y, x))
    return derive.load(Model(parameters=(k,), equations=[Eq(h, Q @ x)], probe=spectrum(J.T @ J))).solve(k=3.0)


@pytest.mark.slow
def test_square_jacobian_of_saturating_units(jacobian):
    places, shares = sites_by_hand.normal_numbers()
    factor = (1 - np.tanh(places) ** 2) ** 2
    place, _ = sites_by_hand.weighted_by_field(1.0, factor, places**2 + 9, shares, 2.6, 20.0)
    assert list(jacobian.outliers) == pytest.approx([place], rel=1e-9)
    top = sites_by_hand.weighted_rows_edges(1.0, factor, shares, gaps=False)[-1]
    assert jacobian.bulk_edges.tolist() == [[0, pytest.approx(top, rel=1e-10)]]
    for x in (1e-8, 1e-4, 1e-1):
        expected = sites_by_hand.square_density(x, factor, shares)
        assert jacobian.density(np.array([x]))[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_entries_near_zero_with_fewer_rows_than_columns_are_refused_with_a_remedy_that_works():
    """The density vanishes faster than any power next to the point mass at zero, however smooth the entries are."""
    nu = parameter("nu", default=2.0, domain=positive)
    columns, rows = sectors("A", B=nu)
    W, x, g = gaussian("W", rows, columns), normal("x", columns), field("g", rows)
    probe = spectrum(W.T @ diag(1 / (1 + g**2)) @ W / rows)
    model = derive.load(Model(parameters=(nu,), equations=[Eq(g, W @ x / sqrt(columns))], probe=probe))
    for few in (0.9, 0.4):
        assert "fewer rows than columns, take more rows" in model.solve(nu=few).trouble[0]
    assert model.solve(nu=2.0)
