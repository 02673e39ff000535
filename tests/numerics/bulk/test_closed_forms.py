"""Bulk spectra against classical closed forms, from declarations alone."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
import sympy as sp
from conftest import solver_of, values_of

from derive import Model, gaussian, goe, parameter, positive, sectors, spectrum
from derive.algebra.nodes import Z
from derive.codegen import solver_files
from derive.equations.spectral_sites import RESOLVENT
from derive.errors import DeclarationError
from derive.pipeline import derive_model
from numerics.bulk.density import resolvent_at
from numerics.bulk.support import atoms_of, edge_candidates, support
from numerics.solver import load_solver, solve

G = RESOLVENT


def _wishart(ratio: float):
    return solver_of("coupled_spikes"), values_of("coupled_spikes", alpha=ratio, theta=0.0)


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_marchenko_pastur_edges(ratio):
    solver, values = _wishart(ratio)
    ((low, high),) = solve(solver, values).bulk_edges
    assert np.allclose([low, high], [(1 - ratio**-0.5) ** 2, (1 + ratio**-0.5) ** 2], atol=1e-12)


@pytest.mark.parametrize("ratio", [0.3, 2.5])
def test_marchenko_pastur_density(ratio):
    solution = solve(*_wishart(ratio))
    ((low, high),) = solution.bulk_edges
    x = np.linspace(low, high, 102)[1:-1]
    exact = ratio * np.sqrt((high - x) * (x - low)) / (2 * np.pi * x)
    assert np.max(np.abs(solution.density(x) - exact)) < 1e-10


def test_atom_at_zero_has_the_missing_mass():
    solution = solve(*_wishart(0.3))
    (atom,) = solution.layers[0].atoms
    assert atom == (0.0, pytest.approx(0.7, abs=1e-14))


@pytest.mark.slow
def test_atom_inside_the_support_is_found():
    """A M0 A^T with twice as many rows as columns: half of the spectrum is exactly zero, inside a symmetric bulk."""
    a = parameter("a", default=2.0, domain=positive)
    D, N = sectors("D", N=a)
    A = gaussian("A", N, D)
    solver = _solver(Model(parameters=(a,), probe=spectrum(A @ goe("M0", D) @ A.T / N)))
    solution = solve(solver, {"a": 2.0})
    (atom,) = solution.layers[0].atoms
    assert solution.bulk_edges[0][0] < 0 < solution.bulk_edges[-1][1]
    assert atom == (0.0, pytest.approx(0.5, abs=1e-14))


def test_hard_edge_of_a_square_wishart_is_not_an_atom():
    assert solve(*_wishart(1.0)).layers[0].atoms == ()


def test_semicircle_density():
    solution = solve(solver_of("spiked_wigner"), values_of("spiked_wigner"))
    x = np.linspace(-1.99, 1.99, 61)
    assert np.max(np.abs(solution.density(x) - np.sqrt(4 - x**2) / (2 * np.pi))) < 1e-10


def _solver(model: Model):
    return load_solver(solver_files(model))


@pytest.mark.parametrize("factors", [1, 2, 3])
def test_fuss_catalan_moments_of_products(factors):
    """Moments of (A1 ... An)^T (A1 ... An), square, exactly from the curve's series at infinity."""
    D = sectors("D")
    one = parameter("one", default=1.0, domain=positive)
    product = gaussian("A0", D, D, variance=one)
    for i in range(1, factors):
        product = product @ gaussian(f"A{i}", D, D)
    record = derive_model(Model(parameters=(one,), probe=spectrum(product.T @ product / D**factors))).first.bulk
    curve = record.curve.subs(one, 1)
    order = 5
    moments = sp.symbols(f"m1:{order + 1}")
    w = sp.Symbol("w")
    series = w + sum(m * w ** (k + 2) for k, m in enumerate(moments))
    numerator = sp.expand(sp.fraction(sp.together(curve.subs({G: series, Z: 1 / w})))[0])
    found: dict = {}
    for power in range(60):
        equation = numerator.coeff(w, power).subs(found)
        unknown = [m for m in moments if equation.has(m)]
        if equation != 0 and len(unknown) == 1:
            found[unknown[0]] = sp.solve(equation, unknown[0])[0]
        if len(found) == order:
            break
    expected = [sp.Rational(comb((factors + 1) * k, k), factors * k + 1) for k in range(1, order + 1)]
    assert [found[m] for m in moments] == expected


def test_free_sum_of_two_wisharts_adds_r_transforms():
    a, b = parameter("a", default=2.0, domain=positive), parameter("b", default=0.6, domain=positive)
    D, N, P = sectors("D", N=a, P=b)
    A, B = gaussian("A", N, D), gaussian("B", P, D)
    curve = derive_model(Model(parameters=(a, b), probe=spectrum(A.T @ A / N + B.T @ B / P))).first.bulk.curve
    inverse = 1 / G + a / (a - G) + b / (b - G)
    assert sp.simplify(curve.subs(Z, inverse)) == 0


def test_several_intervals_are_found():
    """A projector-like sum: a large, low-rank Wishart beside a small full one splits the bulk in two."""
    a, b, c = (parameter(n, default=d, domain=positive) for n, d in (("a", 30.0), ("b", 0.3), ("c", 9.0)))
    D, N, P = sectors("D", N=a, P=b)
    A, B = gaussian("A", N, D), gaussian("B", P, D)
    solver = _solver(Model(parameters=(a, b, c), probe=spectrum(A.T @ A / N + c * B.T @ B / P)))
    edges = solve(solver, {"a": 30.0, "b": 0.3, "c": 9.0}).bulk_edges
    assert len(edges) == 2 and edges[0][1] < edges[1][0]


@pytest.mark.slow
def test_every_edge_is_a_root_of_a_derived_polynomial_and_support_is_consistent():
    solver, values = solver_of("extensive_step"), values_of("extensive_step")
    branch = solver.branch(values)
    points = edge_candidates(branch)
    for low, high in support(branch):
        assert low in points and high in points
        assert branch.resolvent(np.array([high + 1e-3]))[0].imag == pytest.approx(0, abs=1e-9)


def test_resolvent_is_the_transform_of_the_density():
    solver, values = solver_of("extensive_step"), values_of("extensive_step", nu=1.3, chi=0.4)
    branch = solver.branch(values)
    edges = support(branch)
    assert atoms_of(branch, edges) == []
    z = 0.7 + 0.9j
    total = 0
    for low, high in edges:
        nodes, weights = np.polynomial.legendre.leggauss(400)
        angle = (nodes + 1) * np.pi / 2
        x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
        density = -resolvent_at(branch, x)[0].imag / np.pi
        total += np.sum(weights * np.pi / 2 * (high - low) / 2 * np.sin(angle) * density / (z - x))
    assert abs(total - branch.resolvent(np.array([z]))[0]) < 1e-8


def test_non_symmetric_matrix_is_refused():
    D = sectors("D")
    one = parameter("one", default=1.0, domain=positive)
    A = gaussian("A", D, D, variance=one / D)
    with pytest.raises(DeclarationError, match="not symmetric"):
        derive_model(Model(parameters=(one,), probe=spectrum(A @ A)))


def test_sum_of_goe_matrices_has_variance_of_the_sum():
    p = parameter("p", default=2.0, domain=positive)
    D = sectors("D")
    record = derive_model(Model(parameters=(p,), probe=spectrum(goe("A", D) + p * goe("B", D)))).first.bulk
    assert sp.simplify(record.curve.subs(Z, 1 / G + (1 + p**2) * G)) == 0


@pytest.mark.slow
def test_the_cube_of_a_goe_matrix():
    """Its many responses coincide but for four, so that the curve is found at once."""
    D = sectors("D")
    M = goe("M", D)
    found = solve(load_solver(solver_files(Model(parameters=(), equations=[], probe=spectrum(M @ M @ M)))), {})
    np.testing.assert_allclose(found.bulk_edges, [(-8.0, 8.0)], rtol=1e-12)
    catalan = [comb(6 * k, 3 * k) / (3 * k + 1) for k in range(5)]
    np.testing.assert_allclose(found.layers[0].moments[::2], catalan, rtol=1e-13)
    assert found.layers[0].diagnostics.bulk.way == "curve"
