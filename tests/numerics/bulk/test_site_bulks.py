"""Traits on diagonals beside trained weights: edges by hand, with and without a curve, where fields are sampled too."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from reference_formulas.sites_by_hand import weighted_rows_edges
from sympy import Rational, Symbol, sqrt, tanh

from derive import (
    Eq,
    Model,
    diag,
    field,
    gaussian,
    goe,
    normal,
    outer,
    parameter,
    sectors,
    spectrum,
    training_clock,
    trait,
    weights,
    whole_positive,
)
from derive.codegen import solver_files
from derive.program.nodes import Formula
from derive.program.text import ModuleNames, NoCode, Text
from numerics.bulk.branch import Branch
from numerics.bulk.support import law_of, law_without_curve
from numerics.modules import load_solver
from numerics.runtime.keys import OrderKey
from numerics.runtime.traits import density
from numerics.solver import solve
from numerics.training.quadrature import OF_TRAITS, settle

x = Symbol("x", positive=True)
T = parameter("T", default=2, domain=whole_positive)
VARIANCE = Rational(4, 9) * Rational(6, 5) ** 2
"""Of the entries of W(T): two steps add a tenth of W(0) each, which has no closed form in general."""


def weighted(law, ratio, update=lambda n, own: n):
    """diag(sqrt(l)) W(T), l a trait of its rows, as many as ratio times the columns; W has spikes."""
    (D, N) = sectors("D", N=ratio)
    t = training_clock("t", steps=T)
    level = trait("level", N, **law)
    n, m, h = normal("n", N), normal("m", D), field("h", N, t)
    B, W = gaussian("B", N, D, variance=Rational(4, 9)), weights("W", N, D, t)
    root = diag(sqrt(level)) @ W(T)
    spike = outer(update(level, h(t)), m)
    model = Model(
        parameters=(T,),
        equations=[
            Eq(W(0), B),
            Eq(h(t), n + W(t) @ m / sqrt(D)),
            Eq(W(t + 1), W(t) + B / 10 + 3 / (2 * sqrt(D)) * spike),
        ],
        probe=spectrum(root.T @ root / D),
    )
    return load_solver(solver_files(model))


def drawn_groups(count, seed):
    rng = np.random.default_rng(seed)
    values, shares = np.sort(rng.uniform(0.05, 3, count)).round(4), rng.dirichlet(np.ones(count)).round(6)
    shares[-1] += 1 - shares.sum()
    return values, shares


def by_hand(values, shares, ratio):
    """A hard edge at zero where there are as many rows as columns."""
    found = [float(VARIANCE) * ratio * e for e in weighted_rows_edges(ratio, np.array(values), np.array(shares))]
    return [0.0, *found] if ratio == 1 else found


def ends(edges):
    return [end for pair in edges for end in pair]


@pytest.mark.long_cases("2-1", "2-0.98", "5-1", "9-1", "40-1", "40-0.5")
@pytest.mark.slow
@pytest.mark.parametrize(("count", "ratio"), [(2, 1), (2, 0.98), (5, 1), (6, 2), (9, 1), (40, 1), (40, 0.5)])
def test_edges_of_few_and_many_groups_are_those_by_hand(count, ratio):
    """With few groups the curve is exact, its coefficients beyond all doubles; with many there is none."""
    values, shares = drawn_groups(count, seed=count)
    law = {"values": [*map(float, values)], "weights": [*map(float, shares)]}
    branch = weighted(law, ratio).branch({"T": 2})
    expected = by_hand(values, shares, ratio)
    for found in (law_of(branch), law_without_curve(branch)):
        np.testing.assert_allclose(ends(found.edges), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.slow
def test_every_point_next_to_a_hard_edge_is_reached():
    """One in two hundred was lost on the straight way from infinity."""
    branch = weighted({"values": [0.5, 1], "weights": [0.5, 0.5]}, 1).branch({"T": 2})
    z = 10 ** np.random.default_rng(0).uniform(-13, 0.2, 1000) + 0j
    r, errors = Branch(branch.law, branch.p, use_curve=False).followed(z)
    assert np.max(errors) < 1e-9
    # the density diverges like z^(-1/2), as that of every square matrix does
    close = z.real < 1e-9
    g = r[close, branch.resolvent_index]
    np.testing.assert_allclose(
        g.imag * np.sqrt(z[close].real), -np.mean(np.abs(g.imag) * np.sqrt(z[close].real)), rtol=1e-4
    )


@pytest.mark.slow
def test_the_numbers_that_updates_give_are_found_once_and_make_an_exact_curve():
    solver = weighted({"values": [0.3, 1.7], "weights": [0.4, 0.6]}, 2)
    law = solver.matrices[0].bulk
    assert law.coefficients is not None and law.eliminated
    np.testing.assert_allclose(law.updated(solver.numbers({"T": 2})), [[1.2]])
    edges = [law_of(solver.branch({"T": steps})).edges for steps in (0, 2, 5)]
    np.testing.assert_allclose(np.array(edges[1]) / edges[0], 1.2**2, rtol=1e-10)
    np.testing.assert_allclose(np.array(edges[2]) / edges[0], 1.5**2, rtol=1e-10)


LAWS = {
    "values": {"values": [0.05, 1, 3], "weights": [0.5, 0.4, 0.1]},
    "flat": {"density": 1 + 0 * x, "low": 0.05, "high": 3},
    "power": {"density": x ** Rational(-9, 5), "low": 0.01, "high": 3},
}


@pytest.mark.long_cases("flat", "power")
@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_where_fields_are_sampled_the_bulk_has_the_law_of_the_trait(law):
    """It was that of sampled sites, in cells: edges were off by many of their errors, or there were none, and next to
    an edge there were outliers that do not exist."""
    solver = weighted(LAWS[law], 2, lambda level, own: level * tanh(own * abs(own)))
    found = solve(solver, {"T": 2}, samples=10_000, seed=1).layers[0]
    edges = ends(found.bulk_edges)
    if "values" in LAWS[law]:
        expected = by_hand(*LAWS[law].values(), 2)
    else:
        places = np.linspace(LAWS[law]["low"], LAWS[law]["high"], 40_001)
        middle = (places[:-1] + places[1:]) / 2
        density = sp.lambdify(x, LAWS[law]["density"])(middle) * np.ones(middle.size)
        expected = [
            float(VARIANCE) * 2 * e for e in weighted_rows_edges(2, middle, density / density.sum(), gaps=False)
        ]
    np.testing.assert_allclose(edges, expected, rtol=1e-5)
    assert found.edge_errors is None
    assert len(found.outliers) == 1


@pytest.mark.long
@pytest.mark.slow
def test_groups_of_sampled_sites_give_the_outliers_of_exact_ones():
    """Linear in the fields, so that it is solved exactly, and with a law that is linear without looking so."""
    law = LAWS["values"]
    exact = solve(weighted(law, 2, lambda level, own: level * own), {"T": 2}).layers[0]
    solver = weighted(law, 2, lambda level, own: level * sp.Max(own, -1e9))
    found = solve(solver, {"T": 2}, samples=40_000, seed=2).layers[0]
    assert found.outlier_errors is not None and exact.outlier_errors is None
    assert len(found.outliers) == len(exact.outliers)
    for value, error, expected in zip(found.outliers, found.outlier_errors, exact.outliers, strict=True):
        assert 0 < error < 0.05 * expected and abs(value - expected) < 4 * error


@pytest.mark.slow
def test_a_density_on_a_diagonal_beside_linear_fields_is_as_exact_as_groups():
    """Against the nodes of Gauss, which are groups of sites like any others."""
    places, shares = np.polynomial.legendre.leggauss(40)
    groups = {"values": [*map(float, 0.05 + 2.95 * (places + 1) / 2)], "weights": [*map(float, shares / 2)]}
    found, expected = (
        solve(weighted(law, 2, lambda level, own: level * own), {"T": 2}).layers[0] for law in (LAWS["flat"], groups)
    )
    assert found.outlier_errors is None
    np.testing.assert_allclose(found.outliers, expected.outliers, rtol=1e-10)
    np.testing.assert_allclose(found.bulk_edges, expected.bulk_edges, rtol=1e-10)


@pytest.mark.slow
def test_traits_on_diagonals_that_fields_do_not_know_make_groups_beside_those_that_they_know():
    """A site differs by both: it ended in a traceback. The same number at all sites only shifts the spectrum."""

    def local(*values):
        D = sectors("D")
        t = training_clock("t", steps=T)
        gain, level = trait("gain", D, values=[0.5, 1]), trait("level", D, values=[*values])
        start, v, M = normal("start", D), field("v", D, t), weights("M", D, D, t)
        model = Model(
            parameters=(T,),
            equations=[
                Eq(v(0), start),
                Eq(v(t + 1), v(t) / 2 + gain * (M(t) @ v(t)) / 2),
                Eq(M(0), goe("M0", D)),
                Eq(M(t + 1), M(t) + 2 / D * outer(v(t), v(t))),
            ],
            probe=spectrum(M(T) + diag(level)),
        )
        return solve(load_solver(solver_files(model)), {"T": 2}).layers[0].outliers

    shifted, plain, spread = local(0.25), local(0), local(-1, 1.5)
    np.testing.assert_allclose(np.array(shifted) - 0.25, plain, rtol=1e-10)
    # NumPy has 3.95(3) and 3.97(5) at sizes 500 and 1000, and between the two parts of the bulk 0.142(7) and 0.134(7)
    np.testing.assert_allclose(spread, [3.96, 0.134], atol=0.03)


def test_whether_values_of_a_density_settle_does_not_depend_on_which_of_them_count():
    """The ends of the values with any weight move with their number, by more than the averages do."""

    def results(nodes):
        values, shares = density(lambda x: x**2 * np.exp(-6 * x), 0.01, 6.0, nodes, np)
        return {OrderKey("S", "N"): np.stack([values, shares], axis=1)}, {}, 2

    _, (method,) = settle(results, OF_TRAITS)
    assert method.quadrature.error < 1e-10


def test_numbers_beyond_machine_integers_are_written_to_the_last_digit_or_as_decimals():
    text = Text(ModuleNames())
    assert text.value(Formula(sp.Integer(3) ** 50)) == repr(float(3**50))
    assert float(text.value(Formula(sp.Rational(3**400, 7**300)))) == 3**400 / 7**300
    with pytest.raises(NoCode, match="cannot be written"):
        text.value(Formula(sp.Integer(10) ** 400))


@pytest.mark.parametrize("function", [sp.zeta, sp.elliptic_k, sp.Function("unknown")])
def test_functions_that_array_libraries_lack_are_named(function):
    x = sp.Symbol("x", real=True)
    with pytest.raises(NoCode) as caught:
        Text(ModuleNames(), {x: "x"}).formula(2 * function(x) + sp.sin(x))
    assert any(isinstance(function(x), one) for one in caught.value.functions)
