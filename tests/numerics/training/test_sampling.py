"""The sampled forward pass: its normals, its errors and bias, its two ways to responses, and what it agrees with."""

from __future__ import annotations

import itertools
import logging
import math
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import scipy.special
from conftest import model_named, solver_of, values_of
from threadpoolctl import threadpool_info

from derive.codegen import solver_files
from derive.errors import NumericalError, ParameterError
from numerics.runtime.keys import OrderKey
from numerics.runtime.sampled import Carried, Resolved
from numerics.simulation.samples import simulate
from numerics.solver import Trained, load_built, load_solver, solve
from numerics.support import compiling
from numerics.support.nearby import read
from numerics.support.precision import in_float64
from numerics.support.threads import threads_for
from numerics.training import ensemble as made, sampling
from numerics.training.draws import DRAWS, POLYNOMIALS, _sobol, draw, even_dimensions, halves, matched
from numerics.training.ensemble import Ensemble
from numerics.training.sampling import (
    COARSE,
    ENOUGH,
    FEWEST_SITES,
    ROUNDING,
    SITES_BYTES,
    WORKING_COPIES,
    Sampling,
    _chosen,
    _deviations,
    _Plan,
    _share,
    plans_for,
)
from numerics.training.shelf import Shelf
from numerics.training.trained import check_memory

GROUPS = (("J", "JT", "w"), ("V",))
SHAPES = {"J": (3,), "JT": (2, 2), "w": (), "V": (2,)}
SPIKES = {"alpha": 1.6, "theta": 2.5, "kappa": 0.8, "S": 3}
FEW, MANY = 4_000, 16_000


# -- normals


def tables(normals: dict, names: tuple[str, ...]) -> np.ndarray:
    return np.concatenate([np.asarray(normals[name]).reshape(len(normals[name]), -1) for name in names], axis=1)


@pytest.mark.parametrize("how", DRAWS)
def test_the_same_seed_gives_the_same_normals(how):
    first, again, other = (in_float64(draw)(GROUPS, SHAPES, 256, seed, how) for seed in ((3, 0), (3, 0), (3, 1)))
    for name, shape in SHAPES.items():
        assert first[name].shape == (256, *shape)
        assert np.array_equal(first[name], again[name])
        assert not np.allclose(first[name], other[name])


def test_first_and_second_moments_are_exact_within_each_group():
    normals = in_float64(draw)(GROUPS, SHAPES, 256, (3, 0), "matched")
    for names in GROUPS:
        table = tables(normals, names)
        assert np.allclose(table.T @ table / 256, np.eye(table.shape[1]), atol=1e-12)
        assert np.allclose(table.mean(axis=0), 0, atol=1e-12)


def test_normals_of_different_groups_and_of_what_is_left_out_are_independent():
    groups, shapes = (("J",), ("w",)), {"J": (4,), "w": (4,), "beyond": (3, 2)}
    drawn = [in_float64(draw)(groups, shapes, 1024, (seed, 0), "sobol") for seed in range(20)]
    for one, two in (("J", "w"), ("J", "beyond"), ("w", "beyond")):
        a, b = (np.array([np.asarray(x[name]).reshape(1024, -1) for x in drawn]) for name in (one, two))
        for change in (lambda x: x, lambda x: x**2 - 1):
            seen = np.einsum("sik,sil->skl", change(a), change(b)) / 1024
            assert np.sqrt(np.mean(seen**2)) < 2.5 / np.sqrt(1024) * (1 if change(2.0) == 2.0 else 2)


def test_a_sobol_sequence_in_pairs_of_opposite_sign_has_exact_moments_and_so_have_its_halves():
    shapes, groups = {"J": (20,), "w": (), "X": (3,), "none": (0,)}, (("J", "w"), ("X",))
    normals = in_float64(draw)(groups, shapes, 1024, (3, 0), "sobol")
    for one in (normals, *in_float64(halves)(groups, normals, "sobol")):
        for names in groups:
            table = tables(one, names)
            assert np.allclose(table.T @ table / len(table), np.eye(table.shape[1]), atol=1e-12)
            assert np.allclose(table.mean(axis=0), 0, atol=1e-12)
        features = np.tanh(np.asarray(one["J"]) @ np.ones(20))
        assert abs(np.mean(np.asarray(one["w"]) * features)) < 1e-14  # odd in w, whatever the function of J
    assert len(tables(in_float64(halves)(groups, normals, "sobol")[1], ("J",))) == 512
    assert even_dimensions(256) < 20  # some come from the sequence, some do not


def test_quantiles_of_a_sobol_sequence_have_the_mean_one_half():
    """A bias that all replicates share is absent from their spread: the mean of a uniform law was 5e-10 too low."""
    quantiles = scipy.special.ndtr(_sobol(np.random.default_rng(3), 512, 4))
    assert quantiles.mean(axis=0) == pytest.approx(0.5, abs=1e-14)


def test_pairs_of_sobol_dimensions_fill_cells_evenly_on_halves():
    """With the degrees of the polynomials that the number of dimensions is chosen by: 2^m points of a pair, 2^t in each
    cell of area 2^(t - m), whatever its sides."""
    from scipy.stats import qmc

    degrees = [1, *(degree for degree, count in enumerate(POLYNOMIALS, 1) for _ in range(count))]
    for power in (4, 6, 9):
        count = even_dimensions(2**power)
        assert 2 * degrees[count - 1] - 2 <= power < 2 * degrees[count] - 2
        for start in (0, 2**power):
            points = qmc.Sobol(count, scramble=True, rng=power).random(2 ** (power + 1))[start : start + 2**power]
            for one, two in itertools.combinations(range(count), 2):
                t = degrees[one] + degrees[two] - 2
                for bits in range(power - t + 1):
                    x, y = (points[:, [one, two]] * [2**bits, 2 ** (power - t - bits)]).astype(int).T
                    cells = np.bincount(x * 2 ** (power - t - bits) + y, minlength=2 ** (power - t))
                    assert np.all(cells == 2**t)


@pytest.mark.parametrize("shapes", [{"J": (18,), "w": (4,)}, {"J": (5,), "v": (), "w": ()}], ids=["many", "one"])
def test_the_bias_of_exact_moments_is_one_over_the_sites_in_every_kind(shapes):
    """A kind that came last had dimensions of the sequence in which its bias was the same on halves, or five times that
    of the whole, because its moments were made exact after all others."""
    groups, sites = (tuple(shapes),), 256
    found = []
    for seed in range(200):
        normals = in_float64(draw)(groups, shapes, sites, (seed, 0), "sobol")
        both = in_float64(halves)(groups, normals, "sobol")
        fourth = [np.mean(np.asarray(one["w"]) ** 4) for one in (normals, *both)]
        found.append(2 * fourth[0] - (fourth[1] + fourth[2]) / 2)
    assert abs(np.mean(found) - 3) < 4 * np.std(found) / np.sqrt(len(found))


def test_fourth_moments_stay_those_of_normals():
    table = tables(in_float64(draw)(GROUPS, SHAPES, 40_000, (3, 0), "matched"), ("J",))
    assert np.allclose((table**4).mean(axis=0), 3, atol=5 * math.sqrt(96 / 40_000))


def test_where_sites_are_few_the_first_normals_of_each_kind_have_exact_moments():
    normals = {name: np.random.default_rng(k).standard_normal((32, 8)) for k, name in enumerate("JK")}
    found = matched((("J", "K"),), normals)
    table = np.concatenate([found["J"][:, :4], found["K"][:, :4]], axis=1)
    assert np.allclose(table.T @ table / 32, np.eye(8), atol=1e-12)
    assert all(np.array_equal(found[name][:, 4:], normals[name][:, 4:]) for name in "JK")


# -- errors, bias and responses


@pytest.mark.parametrize("share", [0.0, 0.7, 1.0])
def test_squares_of_deviations_are_the_variance_of_a_mean_without_bias(share):
    rng = np.random.default_rng(0)
    wholes, halved = rng.normal(1.0, 0.1, 8), rng.normal(1.1, 0.2, (8, 2))
    ensemble = Ensemble(solver_of("coupled_spikes_tanh").training, None, Shelf())
    numbers = [ensemble.add(Carried(), {"x": np.array(x)}) for x in (*wholes, *halved.ravel())]
    pairs = np.reshape(numbers[8:], (8, 2)).tolist()
    mean = ensemble.mean([(1 / 8, k) for k in numbers[:8]])
    half = ensemble.mean([(1 / 16, k) for k in numbers[8:]])
    assert mean.observed["x"] == pytest.approx(np.mean(wholes)) and half.observed["x"] == pytest.approx(halved.mean())
    found = _deviations(mean, half, numbers[:8], pairs, share)
    without = (1 + share) * wholes - share * halved.mean(axis=1)
    assert sum(ensemble.observed(one)["x"] ** 2 for one in found) == pytest.approx(np.var(without, ddof=1) / 8)


@pytest.mark.slow
@pytest.mark.long_cases("at once")
@pytest.mark.parametrize(("most", "room"), [(1e9, 1e9), (0.0, 1e9), (0.0, 0.0)], ids=["at once", "in parts", "on disk"])
@in_float64
def test_order_parameters_of_a_sum_are_those_of_the_summed_moments(most, room, monkeypatch):
    """However they are made, all at once or those that share a moment together, and wherever they are kept."""
    monkeypatch.setattr(made, "SMALL", most)
    made._parts.cache_clear()
    solver = solver_of("wide_network")
    p = solver.point(values_of("wide_network", P=2, B=2, T=3, D=2))
    training = solver.training
    ensemble = Ensemble(training, p, Shelf(room))
    forward = jax.jit(training.forward_pass)
    passes = [forward(p, draw(training.groups, training.shapes(p, None), 64, (7, k), "sobol")) for k in range(3)]
    for kept, observables, *_ in passes:
        ensemble.add(kept, observables)
    factors = 0.7, 0.5, -0.2
    moments = [training.moments_of(p, kept) for kept, *_ in passes]
    summed = {key: sum(f * one[key] for f, one in zip(factors, moments, strict=True)) for key in moments[0]}
    expected = training.order_parameters(summed, p, tolerance=1e-3)  # smaller shares amplify rounding
    mean = ensemble.mean([(0.5, 0), (0.5, 1)])
    near = ensemble.order([(1.0, mean), (0.2, 0), (-0.2, 2)], Resolved(tolerance=1e-3))
    assert (len(ensemble.parts) == 1) == (most > 0) and set(near) == set(expected)
    if most == 0:
        sharing = {frozenset(keys) for keys, _ in ensemble.parts}
        assert frozenset({OrderKey("R", "g2", "J1_phi1"), OrderKey("R", "spike2", "J1_phi1")}) in sharing
        assert frozenset({OrderKey("C", "phi1", "phi1")}) in sharing
    kept_once = near.whole()
    for key, value in expected.items():
        assert np.allclose(near[key], value, rtol=1e-9, atol=1e-12) and np.array_equal(near[key], kept_once[key])
    some = [("C", "g2", "g2"), ("R", "phi1", "J1T_g2")]
    assert set(read(near, some)) == set(some)
    key = OrderKey("C", "phi1", "phi1")
    moved = ensemble.moved(mean, [(0.3, 0), (-0.3, mean)], Resolved(tolerance=1e-3)).changes([key])[key]
    assert np.allclose(made.written(moved), 0.15 * (moments[0][key] - moments[1][key]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fall, share", [(0.5, 1.0), (0.25, 1 / 3), (0.8, 1.0)])
def test_bias_is_taken_to_fall_as_the_variance_does(fall, share):
    rng = np.random.default_rng(0)
    halved = [[{"x": rng.standard_normal(2000), "still": np.ones(2)} for _ in (0, 1)] for _ in range(12)]
    wholes = [{"x": math.sqrt(fall) * rng.standard_normal(2000), "still": np.ones(2)} for _ in range(12)]
    found, doubt = _share(wholes, halved)
    assert found - doubt == pytest.approx(share, rel=0.1) and found + doubt == pytest.approx(1)


def test_rounding_errors_do_not_tell_how_bias_falls():
    """Those of an observable that vanishes are as large in the halves, and small beside the largest observable."""
    rng = np.random.default_rng(0)

    def one(scale):
        vanishing = 1e-16 * rng.standard_normal(2000)
        return {"x": scale * rng.standard_normal(200), "zero": vanishing, "later": np.array([np.nan, 1.0])}

    halved = [[one(1.0) for _ in (0, 1)] for _ in range(12)]
    found, doubt = _share([one(0.5) for _ in range(12)], halved)
    assert found - doubt == pytest.approx(1 / 3, rel=0.1)


def test_large_tables_are_kept_on_disk_and_read_when_asked_for():
    table = {("C", "x", "x"): np.arange(6.0).reshape(2, 3), ("M", 0): np.ones(2)}
    shelf = Shelf(most=100)
    assert shelf.keep(table) is table, "64 bytes, and there is room for a hundred"
    kept = shelf.keep(table)
    assert shelf.directory is not None and list(kept) == list(table) and len(kept) == 2
    assert all(np.array_equal(kept[name], table[name]) for name in table)


def many_points(solver, points, steps):
    values = {q.name: q.default for q in solver.setting.parameters} | {"P": points, "B": points, "T": steps}
    return values | {"x": np.zeros((steps + 1, points, 10)), "y": np.zeros((steps + 1, points))}


def large_network(points, steps):
    solver = load_built("wide_network")
    return solver.point(many_points(solver, points, steps)), solver.training


def test_order_parameters_that_no_memory_holds_are_refused_before_anything_is_drawn():
    solver = load_built("wide_network")

    def size(points, steps):
        return check_memory(solver, many_points(solver, points, steps))

    assert 14 * 2500**2 < size(50, 50) < 15 * 2500**2
    with pytest.raises(ParameterError, match="P=120.*T=120.* needs about 23 GB for its order parameters"):
        size(120, 120)


def test_small_matrices_take_one_thread_of_every_library_and_large_ones_all():
    def threads():
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    before = threads()
    with threads_for(100):
        assert set(threads()) == {1}
        with threads_for(10_000):
            assert set(threads()) == {1}, "what runs inside of a small problem is part of it"
    assert threads() == before
    with threads_for(10_000):
        assert threads() == before


@cache
def trained(samples: int, seed: int) -> Trained:
    values = values_of("coupled_spikes_tanh", **SPIKES)
    run = in_float64(Trained.sampled)
    return run(solver_of("coupled_spikes_tanh"), values, Sampling(samples, seed), lambda *_: None)


def stacked(table: dict) -> np.ndarray:
    """All observables that are not zero by symmetry, one after another."""
    return np.concatenate([np.ravel(table[name])[1 if name == "alignment" else 0 :] for name in sorted(table)])


@pytest.mark.slow
def test_the_same_seed_gives_the_same_results():
    first, again = trained(FEW, 0), trained.__wrapped__(FEW, 0)
    assert all(np.array_equal(first.order[name], again.order[name]) for name in first.order)
    assert not np.array_equal(stacked(first.observables), stacked(trained(FEW, 1).observables))


@pytest.mark.long
@pytest.mark.slow
def test_errors_fall_at_least_as_the_root_of_the_samples():
    few, many = (np.sqrt(np.mean([stacked(trained(n, k).errors) ** 2 for k in range(6)], axis=0)) for n in (FEW, MANY))
    sites = [trained(n, 0).method.sampling.samples for n in (FEW, MANY)]
    assert np.exp(np.mean(np.log(few / many))) > 0.8 * math.sqrt(sites[1] / sites[0])


@pytest.mark.long
@pytest.mark.slow
def test_reported_errors_are_those_seen_between_seeds_and_bias_is_below_them():
    few = [trained(FEW, seed) for seed in range(30)]
    reported = np.sqrt(np.mean([stacked(t.errors) ** 2 for t in few], axis=0))
    values = np.array([stacked(t.observables) for t in few])
    assert np.exp(np.mean(np.log(reported / values.std(axis=0, ddof=1)))) == pytest.approx(1, abs=0.25)
    long = np.array([stacked(trained(MANY, 100 + seed).observables) for seed in range(12)])
    bias = values.mean(axis=0) - long.mean(axis=0)
    noise = np.hypot(values.std(axis=0, ddof=1) / math.sqrt(30), long.std(axis=0, ddof=1) / math.sqrt(12))
    assert np.max(np.abs(bias) / noise) < 3.5
    assert np.max(np.abs(bias) / reported) < 0.6


@pytest.mark.slow
def test_the_first_averages_are_integrals():
    """phi = tanh(a) and g = theta tanh(b) at the first spike: a and b are normal with the variances of their fields."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    average = np.sum(weights * np.tanh(nodes) ** 2) / np.sum(weights)
    found = trained(MANY, 100)
    assert abs(found.observables["phi_norm"][0] - average) < 3.5 * found.errors["phi_norm"][0]


@pytest.mark.long
@pytest.mark.slow
def test_pathwise_and_stein_responses_agree():
    model = model_named("coupled_spikes_tanh")
    values = values_of("coupled_spikes_tanh", **SPIKES)
    paths = load_solver(solver_files(replace(model, responses="pathwise", observe=dict(model.observe))))
    one, other = (solve(s, values, samples=MANY, seed=k) for k, s in enumerate((paths, solver_of(model.name))))
    assert (one.method.sampling.responses, other.method.sampling.responses) == ("pathwise", "stein")
    error = math.hypot(one.outlier_errors[0], other.outlier_errors[0])
    assert abs(one.outliers[0] - other.outliers[0]) < 3 * error < 0.1 * one.outliers[0]


@pytest.mark.slow
def test_too_small_a_rank_is_refused():
    solver, values = solver_of("coupled_spikes_tanh"), values_of("coupled_spikes_tanh", **SPIKES)
    with pytest.raises(NumericalError, match="2 directions of the past are too few: .* raise rank, for instance to 4"):
        in_float64(Trained.sampled)(solver, values, Sampling(400, rank=2, debias=False), lambda *_: None)


def pilots(needed):
    """Passes that need so many directions for each share left out, and the shares that were tried, by rank."""
    tried: list[tuple[int, float]] = []

    def pilot(plan):
        def run(share):
            tried.append((plan.rank, share))
            return SimpleNamespace(full=needed(share) > plan.rank)

        return run

    return pilot, tried


@pytest.mark.parametrize("spread", [3.0, 30.0, 300.0, 3000.0])
def test_room_is_doubled_until_little_is_left_out_and_no_more_than_needed(spread):
    def needed(share):
        return spread * share**-0.25

    plans = [_Plan(64 * 2**k, 10, 16 * 2**k) for k in range(5)]
    pilot, _ = pilots(needed)
    if needed(COARSE[-1]) > plans[-1].rank:
        with pytest.raises(NumericalError, match="256 directions of the past are too few.* take fewer steps"):
            _chosen(plans, Sampling(), pilot)
        return
    plan, share = _chosen(plans, Sampling(), pilot)
    enough = [one for one in plans if needed(ENOUGH) <= one.rank]
    assert plan is (enough or plans[-1:])[0]
    assert share == min(x for x in (ROUNDING, *COARSE) if needed(x) <= plan.rank)


def test_a_rank_that_is_too_small_is_refused_after_one_pass_over_half_of_a_replica():
    pilot, tried = pilots(lambda share: 100)
    with pytest.raises(NumericalError, match="64 directions .* raise rank, for instance to 128"):
        _chosen([_Plan(256, 10, 64)], Sampling(rank=64), pilot)
    assert tried == [(64, COARSE[-1])]


@pytest.mark.parametrize("samples", [5_000, 100_000])
@pytest.mark.parametrize("steps", [20, 50])
def test_every_plan_has_sites_for_its_directions_and_fits_into_memory(samples, steps):
    p, training = large_network(50, steps)
    plans = plans_for(training, p, Sampling(samples))
    for plan in plans:
        numbers = WORKING_COPIES * training.footprint(p, plan.rank)
        numbers += sum(map(math.prod, training.shapes(p, plan.rank).values()))
        assert plan.sites >= FEWEST_SITES * plan.rank and 8 * plan.sites * numbers <= SITES_BYTES
        assert plan.replicas >= 10 and plan.replicas * plan.sites >= samples / 2
    assert [after.rank / before.rank for before, after in pairwise(plans)] == [2.0] * (len(plans) - 1)
    assert plans[-1].rank >= 512, "more room than the fewest samples have sites for"


def test_an_unknown_way_of_drawing_is_refused():
    with pytest.raises(ParameterError, match="draws=lattice is not known; it must be one of sobol, matched, plain"):
        in_float64(Trained.sampled)(
            solver_of("coupled_spikes_tanh"),
            values_of("coupled_spikes_tanh", **SPIKES),
            Sampling(FEW, draws="lattice"),
            lambda *_: None,
        )


# -- sites and backends


@pytest.mark.slow
def test_layers_of_a_network_do_not_share_sites():
    """The noise of J1 reaches layer 2 and that of its transpose layer 1: sites of different layers are independent."""
    groups = solver_of("wide_network", L=3).training.groups
    assert {frozenset(g) for g in groups} == {
        frozenset({"V0", "J1T"}),
        frozenset({"J1", "J2T"}),
        frozenset({"J2", "w0"}),
    }


def with_arrays(name: str, **changes) -> dict:
    """Values and the arrays of the declaration's own function."""
    values = values_of(name, **changes)
    return {**values, **model_named(name).arrays(values)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["driven_memory", "frozen_features", "gated_network"])
def test_numpy_and_jax_simulate_the_same_numbers(name):
    values = with_arrays(name) if name != "gated_network" else values_of(name)
    one, other = (simulate(solver_of(name), values, 40, 2, seed=5, backend=b) for b in ("numpy", "jax"))
    for observable, series in one.observables.items():
        assert np.allclose(series, other.observables[observable], rtol=1e-10, atol=1e-10)
    for here, there in zip(one.layers, other.layers, strict=True):
        assert np.allclose(here.eigenvalues, there.eigenvalues, rtol=1e-10, atol=1e-10)


def test_an_unknown_backend_is_refused():
    with pytest.raises(ParameterError, match="backend=fortran is not known; it must be numpy or jax"):
        simulate(solver_of("frozen_features"), with_arrays("frozen_features"), 10, 1, backend="fortran")


# -- declarations that use data in other ways


@pytest.mark.slow
def test_frozen_features_follow_the_kernel():
    """Only the readout learns, so predictions obey f(t+1) = f(t) + eta K (y - f(t)) / P with K = <phi phi>."""
    values = with_arrays("frozen_features")
    theory = solve(solver_of("frozen_features"), values)
    x, y = values["x"], values["y"]
    inner = 2 * x @ x.T / x.shape[1]
    scale = np.sqrt(1 + np.diag(inner))
    kernel = 2 / np.pi * np.arcsin(inner / np.outer(scale, scale))
    f = np.zeros(len(y))
    for time in range(values["T"] + 1):
        np.testing.assert_allclose(theory.observables["prediction"][time], f, rtol=1e-10, atol=1e-12)
        f = f + values["eta"] / values["P"] * kernel @ (y - f)
    assert theory.errors is None  # features of fixed Gaussian weights are integrated, not sampled


# -- compiling


@pytest.mark.long
@pytest.mark.slow
def test_other_values_seeds_and_replicas_compile_and_trace_nothing(caplog, monkeypatch):
    """One compilation serves all of them: parameters are numbers that a compiled pass is given. What is made of which
    moments is traced once, too: it depends on shapes alone."""
    solver, values = solver_of("coupled_spikes_tanh"), values_of("coupled_spikes_tanh", **SPIKES)

    def compilations(changed: dict[str, float], seed: int) -> list[str]:
        caplog.clear()
        with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
            solve(solver, {**values, **changed}, samples=FEW, seed=seed, path=True)
        return [record.getMessage() for record in caplog.records if record.getMessage().startswith("Compiling")]

    jax.clear_caches()
    assert any("forward_pass" in line for line in compilations({}, 0))
    monkeypatch.setattr(made, "_read_by", None)
    assert compilations({"alpha": 1.7, "theta": 2.6, "kappa": 0.75}, 1) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values", "rank", "programs"),
    [
        ("lotka_volterra", {}, None, {"forward_pass": 2}),  # the bulk needs no order parameters
        ("driven_memory", {}, None, {"forward_pass": 2, "chosen": 1, "moved": 1}),
        ("gated_network", {}, None, {"forward_pass": 2, "chosen": 1, "moved": 1}),
        ("wide_network", {"P": 2, "B": 2, "T": 8, "D": 2}, 16, {"forward_pass": 3, "chosen": 1, "moved": 1}),
    ],
)
def test_a_first_solution_compiles_a_pass_for_each_size_and_two_more_programs(name, values, rank, programs, caplog):
    """A pass over all sites, over half of them, and over half of them at twice the rank if it is truncated; moments of
    a pass; order parameters. A(z) and what else is made of them is evaluated in NumPy."""
    solver = solver_of(name)
    compiling.compiled(abs, quickly=True)  # whether the compiler knows its options is asked once
    jax.clear_caches()
    with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
        solve(solver, values_of(name, **values), samples=FEW, rank=rank, overlaps=True)
    lines = [record.getMessage() for record in caplog.records]
    assert Counter(re.findall(r"^Compiling jit\((.*?)\)", "\n".join(lines), re.MULTILINE)) == programs


def test_noise_that_diverges_is_told_apart_from_a_model_that_does():
    def passing(series: list[float]) -> sampling._Pass:
        return sampling._Pass(Carried(), {"M": np.array(series)}, len(series), 0.0, 1, False)

    late, never, same = passing([1.0] * 5 + [np.inf]), passing([1.0] * 6), passing([1.0, 1.0, 1e30, np.nan])
    assert (late.overflow, never.overflow, same.overflow) == (5, None, 2)
    sampling._check_noise(2, 64, same)  # the model diverges, whatever the number of sites
    for one in (late, never):
        with pytest.raises(NumericalError, match="noise of sampled responses has diverged at step 2 with 64 sites"):
            sampling._check_noise(2, 64, one)


def test_cutoffs_are_tried_in_ascending_order():
    assert np.all(np.diff(sampling.COARSE) > 0) and sampling.COARSE[0] > 0
