"""Functions of sampled fields in diag(...) of a probed matrix: against integrals, conditioning by hand, simulation."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from reference_formulas import sites_by_hand as by_hand
from sympy import Heaviside, sqrt, tanh

import derive
from derive import (
    Eq,
    Model,
    alignment,
    diag,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    trait,
    weights,
    whole_positive,
)
from derive.codegen import solver_files
from derive.equations.dependence import _slopes
from derive.errors import NumericalError
from derive.pipeline import Derivation
from derive.records.method import ClosureKind
from derive.stages.probe import project_probe
from numerics.modules import load_solver
from numerics.runtime import diagonals
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import Point
from numerics.solver import solve
from numerics.support.precision import in_float64
from numerics.training.ensemble import _are_moments
from numerics.training.sampling import _within

nu = parameter("nu", default=2.0, domain=positive)
strength = parameter("strength", default=3.0)
T = parameter("T", default=3, domain=whole_positive)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
W, M = gaussian("W", N, D), goe("M", D)
x, u = normal("x", D), normal("u", N)
h, m = field("h", N), field("m", D)
PLACES, SHARES = by_hand.normal_numbers()
FEW = 20_000


def sampled(equations, matrix, values, **observe):
    """The same declaration with what stands on its diagonals sampled, although its law is known."""
    model = Model(parameters=(nu, strength, T), equations=equations, observe=observe, probe=spectrum(matrix))
    derivation = Derivation(model)
    chosen = tuple(replace(one, closure=ClosureKind.SAMPLED) for one in derivation.method.sectors)
    vars(derivation)["method"] = replace(derivation.method, sectors=chosen, laws=None)
    solver = load_solver(solver_files(model, derivation))
    given = {p.name: p.default for p in model.parameters} | values
    return solve(solver, given, samples=FEW, seed=3).layers[0]


def near(value, error, expected):
    assert 0 < error < 0.02 * abs(expected) and abs(value - expected) < 4 * error, (value, error, expected)


@jax.jit
def _law(entries, reach):
    return diagonals.law_of_sites(diagonals.shares_of(entries, reach), reach)


def reached(entries):
    return diagonals.widened(np.asarray(jax.jit(diagonals.reach_of)(entries)))


def law_of(entries, reach):
    law = np.asarray(_law(entries, reach))
    assert np.all(law[:, -1] >= 0) and np.sum(law[:, -1]) == pytest.approx(1, rel=1e-12)
    return law


@in_float64
def test_cubics_of_cells_have_the_means_of_functions():
    entries = (np.random.default_rng(0).uniform(-1, 2, 4000),)
    reach = reached(entries)
    assert np.allclose(reach[:2, 0], [np.min(entries), np.max(entries)]) and np.all(np.isnan(reach[2:]))
    values = law_of(entries, reach)[:, 0]
    off = np.mean(jax.jit(diagonals.belonging)(entries, reach), axis=0) @ (1 / (3 - values)) - np.mean(
        1 / (3 - entries[0])
    )
    # the product of a point's distances to the four values of a cell of half the width w is at most w^4 / 5
    widest = np.max(np.diff(reach[0] + diagonals._ends(diagonals.CELLS[0]) * np.diff(reach[:2], axis=0)[0])) / 2
    assert abs(off) < widest**4 / 5 * np.mean((3 - entries[0] - 2 * widest) ** -5.0)


@pytest.mark.parametrize("scale", [1, strength])
def test_a_sum_on_a_diagonal_is_one_number_of_its_site(scale):
    model = Model((strength,), [Eq(m, M @ x)], probe=spectrum(M + diag(scale * (2 + tanh(m)))))
    derivation = Derivation(model)
    (sites,) = project_probe(derivation.first.saddle, derivation.order, sampled=True).sampled
    assert [str(entry.function) for entry in sites.entries] == ["tanh(m) + 2"]


@in_float64
def test_a_diagonal_that_jumps_between_many_numbers_is_refused():
    entries = np.random.default_rng(0).integers(0, 20, 4000) / 7
    training = SimpleNamespace(
        ranges=(("reach", "S", 1),),
        forward_pass=lambda p, normals, rank, tolerance: (entries,),
        is_light=lambda *_: True,
        moments_of=lambda p, kept: {"S": diagonals.reach_of((kept,))},
    )
    with pytest.raises(NumericalError, match="20 different numbers, which are too many"):
        _within(training, Point(reach=0.0), {}, None)


@in_float64
def test_ends_of_tails_leave_room():
    entries = (np.random.default_rng(0).standard_normal(4000),)
    reach = reached(entries)
    assert reach[0, 0] < np.min(entries) - 1 and reach[1, 0] > np.max(entries) + 1


@in_float64
def test_jumps_are_values_themselves():
    entries = (np.repeat([0.0, 1.0], [30, 70]), np.repeat([2.0, -1.0, 2.0], [30, 20, 50]))
    reach = reached(entries)
    law = law_of(entries, reach)
    kept = law[np.abs(law[:, 2]) > 1e-12]
    assert np.allclose(kept[np.lexsort(kept.T[1::-1])], [[0, 2, 0.3], [1, -1, 0.2], [1, 2, 0.5]])


@in_float64
def test_numbers_that_many_sites_have_are_values_wherever_they_are():
    """In cells they would be spread: the bulk had edges that were off by many of their errors."""
    rng = np.random.default_rng(0)
    spread = rng.uniform(0, 4, 4000)
    entries = (np.where(spread < 1, 1 / 3, np.where(spread < 1.5, np.pi / 2, spread)),)
    reach = reached(entries)
    law = law_of(entries, reach)
    for number, share in ((1 / 3, np.mean(spread < 1)), (np.pi / 2, np.mean((spread >= 1) & (spread < 1.5)))):
        assert np.sum(law[law[:, 0] == number, 1]) == pytest.approx(share, rel=1e-12)
    assert law[:, 1] @ (1 / (5 - law[:, 0])) == pytest.approx(np.mean(1 / (5 - entries[0])), rel=1e-4)
    # the same in another pass, and one number alone
    again = law_of((np.full(7, np.pi / 2),), reach)
    assert np.sum(again[again[:, 0] == np.pi / 2, 1]) == 1
    alone = reached((np.full(7, 0.3),))
    assert law_of((np.full(7, 0.3),), alone)[:, :2][-16].tolist() == [0.3, 1.0]
    with pytest.raises(ValueError, match="20 different numbers"):
        reached((rng.integers(0, 20, 4000) / 7,))


@pytest.mark.long
@pytest.mark.slow
def test_jumps_between_several_numbers_have_the_bulk_of_these():
    levels = np.array([0.2, 1, 2])
    level = trait("level", N, values=[0.2, 1, 2], weights=[0.5, 0.3, 0.2])
    n, A, g = normal("n", N), gaussian("A", N, N), field("g", N, t)
    V = weights("V", N, D, t)
    matrix = diag(level * Heaviside(g(T - 1))) @ V(T)
    rules = [Eq(V(0), W), Eq(V(t + 1), V(t) + outer(u, x) / (100 * sqrt(D)))]
    rules += [Eq(g(0), n), Eq(g(t + 1), A @ tanh(g(t)) / sqrt(N) + tanh(g(t)) / 2)]
    model = Model(parameters=(nu, T), equations=rules, probe=spectrum(matrix.T @ matrix / D))
    found = solve(load_solver(solver_files(model)), {"nu": 4.0, "T": 3}, samples=FEW, seed=3).layers[0]
    expected = [2 * e for e in by_hand.weighted_rows_edges(2, levels**2, np.array([0.5, 0.3, 0.2]))]
    for value, error, right in zip(found.bulk_edges[0], found.edge_errors[0], expected, strict=True):
        assert 0 < error < 0.05 * right and abs(value - right) < 4 * error, (value, error, right)


@pytest.mark.long
@pytest.mark.slow
def test_sampled_sites_have_the_outlier_by_conditioning():
    """h comes from the probed matrix itself: what goes along with it is found from derivatives by its noise."""
    K = diag(1 - tanh(h) ** 2) @ (W + strength / sqrt(D) * outer(u, x))
    layer = sampled([Eq(h, W @ x / sqrt(D))], K.T @ K / N, {}, along=alignment(x))
    factor = (1 - np.tanh(PLACES) ** 2) ** 2
    place, cosine = by_hand.weighted_by_field(2.0, factor, PLACES**2 + 9, SHARES, 1.75, 9.0)
    near(layer.outliers[0], layer.outlier_errors[0], place)
    (low, high), (low_error, high_error) = layer.bulk_edges[0], layer.edge_errors[0]
    expected = by_hand.weighted_rows_edges(2.0, factor, SHARES, gaps=False)
    near(low, low_error, expected[0])
    near(high, high_error, expected[1])
    (found,) = layer.outlier_alignments
    near(float(found.values[0, 0, 0]), float(found.errors[0, 0, 0]), cosine)


@pytest.mark.long
@pytest.mark.slow
def test_sampled_sites_of_a_square_jacobian_reach_zero():
    K = diag(1 - tanh(h) ** 2) @ (W + strength / sqrt(D) * outer(u, x))
    layer = sampled([Eq(h, W @ x / sqrt(D))], K.T @ K / N, {"nu": 1.0})
    factor = (1 - np.tanh(PLACES) ** 2) ** 2
    place, _ = by_hand.weighted_by_field(1.0, factor, PLACES**2 + 9, SHARES, 2.6, 20.0)
    near(layer.outliers[0], layer.outlier_errors[0], place)
    (low, high), (_, error) = layer.bulk_edges[0], layer.edge_errors[0]
    assert low == 0
    near(high, error, by_hand.weighted_rows_edges(1.0, factor, SHARES, gaps=False)[-1])
    # of twenty thousand sites a share of 0.4 is known to 3.5e-3
    for at, share in ((1e-2, 0.19270273), (0.1, 0.40665124)):
        assert float(layer.law.cumulative(np.array([at]))[0]) == pytest.approx(share, abs=4e-3)


@pytest.mark.long
@pytest.mark.slow
def test_second_derivatives_are_those_by_conditioning():
    layer = sampled([Eq(m, M @ x)], M + 2 * diag(tanh(m)) + strength / D * outer(x, x), {"strength": 2.0})
    expected = by_hand.symmetric_with_field(2.0, 2 * np.tanh(PLACES), PLACES, SHARES, 3.05, 8.0)
    near(layer.outliers[0], layer.outlier_errors[0], expected)


@pytest.mark.long
@pytest.mark.slow
def test_a_jump_that_is_sampled_is_two_groups_of_sites():
    layer = sampled([Eq(h, W @ x / sqrt(D))], W.T @ diag(1 + Heaviside(h)) @ W / N, {})
    groups = trait("groups", N, values=[1, 2])
    exact = derive.load(Model((nu,), [], probe=spectrum(W.T @ diag(groups) @ W / N))).solve()
    assert np.allclose(layer.bulk_edges, exact.bulk_edges, rtol=2e-3)


def recurrent():
    """A network with a symmetric matrix that learns: sites answer to what they did."""
    g = parameter("g", default=1.5)
    f, phi, A = field("f", D, t), field("phi", D, t), weights("A", D, D, t)
    equations = [
        Eq(f(0), x),
        Eq(f(t + 1), g * A(t) @ phi(t)),
        Eq(phi(t), tanh(f(t))),
        Eq(A(0), M),
        Eq(A(t + 1), A(t) + strength / D * outer(phi(t), phi(t))),
    ]
    probe = spectrum(A(T) + diag(tanh(f(T - 1))))
    return Model((g, strength, T), equations, {"q": mean(phi(t) ** 2)}, probe=probe)


@pytest.mark.long
@pytest.mark.slow
def test_a_network_with_memory_agrees_with_simulation():
    theory = derive.load(recurrent())
    found = theory.solve(strength=2.0, samples=FEW)
    simulated = theory.simulate(size=300, seeds=8, strength=2.0)
    assert derive.compare(found, simulated).agrees
    assert len(found.outliers) == 1


def test_the_law_of_sites_is_not_a_moment():
    """Its moments are shares alone; correlations are moments as they are."""
    correlation, law = OrderKey("C", "f", "f"), OrderKey("S", "D")
    assert _are_moments(((correlation,), (correlation,)))
    assert not _are_moments(((correlation, law), (correlation, law)))


@pytest.mark.long
@pytest.mark.slow
def test_a_field_without_a_clock_beside_a_trait_agrees_with_simulation():
    """Where nothing changes in time no response is made, and all order parameters have the names of moments."""
    s, f = trait("s", D, values=[0.5, 1.5]), field("f", D)
    model = Model((strength,), [Eq(f, s * x + tanh(x))], probe=spectrum(M + diag(s) + strength / D * outer(f, f)))
    theory = derive.load(model)
    assert derive.compare(theory.solve(samples=FEW), theory.simulate(size=200, seeds=8)).agrees


def test_a_spike_that_learned_from_a_trait_beside_it_is_sampled():
    """Otherwise than by a factor: given the trait no field of the site is free of it."""
    s, f, A = trait("s", D, values=[0.5, 1.5]), field("f", D, t), weights("A", D, D, t)
    equations = [
        Eq(f(0), x),
        Eq(f(t + 1), (s * f(t) + A(t) @ f(t)) / 2),
        Eq(A(0), M),
        Eq(A(t + 1), A(t) + strength / D * outer(f(t), f(t))),
    ]
    model = Model((strength, T), equations, probe=spectrum(A(T) + diag(s)))
    probe = Derivation(model).probe
    assert [sites.sector.name for sites in probe.sampled] == ["D"]


def test_a_field_that_a_symmetric_matrix_makes_of_a_trait_is_sampled():
    """What returns to a site through the matrix has the trait of the site, so that the field is not normal there."""
    s, f = trait("s", D, values=[0.5, 1.5]), field("f", D)
    for made, sampled_at in ((M @ f, ["D"]), (goe("M1", D) @ normal("y", D), [])):
        model = Model((strength,), [Eq(f, s * x), Eq(m, made)], probe=spectrum(M + diag(tanh(m))))
        assert [sites.sector.name for sites in Derivation(model).probe.sampled] == sampled_at


@pytest.mark.parametrize("by_trait", [True, False])
def test_a_spike_whose_noise_is_of_a_vector_beside_a_trait_is_sampled(by_trait):
    """W learns W f and a constant vector. Its noise is correlated with that of the eigenvector, which so overlaps with
    f: beside a trait it is a function of it, given the trait none of its fields is free of it."""
    s, g, f, h, q = trait("s", D, values=[0.5, 1.5]), field("g", D), field("f", D), field("h", N), normal("q", D)
    L, A = weights("L", N, D, t), goe("A", D)
    equations = [
        Eq(g, s * x),
        Eq(f, A @ g + g if by_trait else g),
        Eq(h, W @ f / sqrt(D)),
        Eq(L(0), W),
        Eq(L(t + 1), L(t) + strength * outer(h, q) / sqrt(D)),
    ]
    model = Model((nu, strength, T), equations, probe=spectrum(L(T).T @ L(T) / N + diag(s)))
    assert [sites.sector.name for sites in Derivation(model).probe.sampled] == (["D"] if by_trait else [])


def test_traits_alone_are_not_sampled_beside_a_sampled_training_level():
    s, f, A = trait("s", D, values=[0.5, 1.5]), field("f", D, t), weights("A", D, D, t)
    equations = [Eq(f(0), x), Eq(f(t + 1), tanh(x)), Eq(A(0), M), Eq(A(t + 1), A(t) + strength / D * outer(f(t), f(t)))]
    derivation = Derivation(Model((strength, T), equations, probe=spectrum(A(T) + diag(s))))
    assert not project_probe(derivation.first.saddle, derivation.order, sampled=True).sampled
    beside = Derivation(Model((), [Eq(m, M @ x)], probe=spectrum(M + diag(tanh(m) * s))))
    assert project_probe(beside.first.saddle, beside.order, sampled=True).sampled


def test_slopes_of_a_law_that_is_linear_in_some_of_its_values():
    one, two, held = (field(name, D)() for name in ("one", "two", "held"))
    assert _slopes(tanh(held) * one - 3 * (two + held * two), [one, two]) == [tanh(held), -3 - 3 * held]
    for law in (one * two, one + tanh(held), one**2 + two):
        assert _slopes(law, [one, two]) is None
