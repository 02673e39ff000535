"""Bulk spectra of polynomials of Gaussian matrices against their simulation, and what `derive solve` says of them."""

from __future__ import annotations

import json
import re
import tracemalloc
from functools import cache

import numpy as np
import pytest
from agreement import BOUND, Block, normal_score, seed_of, too_far, wrong
from click.testing import CliRunner
from conftest import solver_and_values
from simulated import block_of

from derive.cli import main
from derive.errors import ParameterError
from numerics.bulk.moments import exact_moments, moments
from numerics.bulk.support import counts_against, law_of
from numerics.plots.solutions import draw_comparison, histogram_bins, interval_groups
from numerics.simulation.compare import compare
from numerics.simulation.samples import check_memory, simulate, smaller_size
from numerics.solution import Prediction
from numerics.solver import Solver, solve

CASES = {
    "one step": ("extensive_two_layer", {"nu": 2.0, "chi": 0.5, "gamma": 1.5}),
    "few neurons, many outputs": ("extensive_two_layer", {"nu": 0.6, "chi": 2.0, "gamma": 0.7}),
    "hidden layer": ("extensive_multilayer", {"nu": 1.5, "chi": 0.8, "gamma0": 1.2}),
    "step on a sample": ("extensive_two_layer", {"sample": "finite", "nu": 1.5, "chi": 0.8, "alpha": 2.0}),
    "whole first step, no curve": ("full_first_step", {}),
    "three steps": (
        "extensive_two_layer",
        {"steps": 3, "output": "included", "nu": 1.5, "chi": 0.5, "gamma": 0.6, "gamma0": 1.5},
    ),
    "hidden layer on a sample": ("extensive_multilayer", {"sample": "finite", "nu": 1.5, "chi": 0.8, "alpha": 3.0}),
}
FURTHER = ("whole first step, no curve", "three steps", "hidden layer on a sample")
"""Tried with the long tests only."""
SIZES = ((100, 100), (300, 50))


def solver_of_case(case: str) -> Solver:
    return solver_and_values(CASES[case][0], **CASES[case][1])[0]


@cache
def theory_of(case: str) -> Prediction:
    name, changes = CASES[case]
    return solve(*solver_and_values(name, **changes))


@cache
def block(case: str, seed: int) -> Block:
    return block_of(case, solver_of_case(case), theory_of(case), seed, SIZES)


@pytest.mark.long_cases("hidden layer")
@pytest.mark.slow
@pytest.mark.long_cases(*FURTHER)
@pytest.mark.parametrize("case", CASES)
def test_edges_and_moments_are_within_the_bound_of_the_suite(case, simulation_seed):
    """Extreme eigenvalues against the Tracy-Widom mean."""
    assert not len(theory_of(case).outliers)
    found = block(case, simulation_seed)
    names = [c.name for c in found.comparisons]
    assert sum("moment" in name for name in names) == 4 and any("Tracy-Widom" in name for name in names)
    assert not too_far([found])


@pytest.mark.slow
def test_most_bulks_have_no_common_bias(simulation_seed):
    assert not wrong([block(case, simulation_seed) for case in CASES if case not in FURTHER])


@pytest.mark.long
@pytest.mark.slow
def test_bulks_have_no_common_bias(simulation_seed):
    assert not wrong([block(case, simulation_seed) for case in CASES])


@pytest.mark.slow
@pytest.mark.long_cases(*FURTHER)
@pytest.mark.parametrize("case", CASES)
def test_histogram_and_atom_agree_with_simulation(case, simulation_seed):
    """Eigenvalues repel, so that counts hardly fluctuate and corrections of order one eigenvalue show."""
    theory = theory_of(case)
    sample = simulate(solver_of_case(case), theory.inputs, 300, 12, seed=simulation_seed)
    law = theory.layers[0].law
    low, high = law.edges[0][0], law.edges[-1][1]
    counts = counts_against(law, sample.eigenvalues, np.linspace(max(low, 1e-9), high, 13)[1:-1])
    assert np.max(np.abs(counts.mean - counts.expected)) < 1.0 + 6 * np.max(counts.stderr)
    nulls = [float(np.mean(np.abs(e) < 1e-9 * e[-1])) for e in sample.eigenvalues]
    assert np.mean(nulls) == pytest.approx(sum(weight for at, weight in law.atoms if at == 0.0), abs=1.01 / 300)


@pytest.mark.slow
def test_compare_sets_moments_and_atoms_of_a_pure_bulk_against_simulation(simulation_seed):
    """Moments are extrapolated from two sizes; a wrong theory is seen, rounded sizes are not held against it."""
    solver, values = solver_and_values("extensive_two_layer", nu=0.5, chi=1.0, gamma=1.0)
    half = smaller_size(solver, values, 120)
    assert half == 60
    samples = [
        simulate(solver, values, size, 40, seed=seed_of(simulation_seed, "moments", size)) for size in (120, half)
    ]
    found = {row.quantity: row for row in compare(solve(solver, values), *samples)}
    theory = {1: 2.0, 2: 13.0, 3: 107.0, 4: 999.0}
    for order, value in theory.items():
        row = found[f"moment {order} of the bulk (sizes 120, 60)"]
        assert row.theory == pytest.approx(value, rel=1e-12) and row.compared
        assert abs(normal_score(row.difference, 1.0, 39)) < BOUND
    atom = found["weight of the atom at 0"]
    assert (atom.theory, atom.simulation, atom.difference) == (pytest.approx(0.5), 0.5, 0.0)
    off = compare(solve(solver, {**values, "gamma": 1.2}), *samples)
    assert not all(row.agrees for row in off if row.quantity.startswith("moment"))
    alone = [row for row in compare(solve(solver, values), samples[0]) if row.quantity.startswith("moment")]
    assert len(alone) == 4 and not any(row.compared for row in alone)
    assert smaller_size(solver, {**values, "nu": 1 / 3}, 200) is None


def test_a_sample_that_does_not_fit_is_refused_with_a_size_that_does(monkeypatch):
    solver, values = solver_and_values("extensive_two_layer", nu=2.0)
    monkeypatch.setattr("numerics.simulation.samples.available_memory", lambda: 1e6)
    with pytest.raises(ParameterError, match=r"size=2000 needs about .* GB at these parameters and 0.001 GB are free"):
        simulate(solver, values, 2000, 1)
    with pytest.raises(ParameterError) as refused:
        check_memory(solver, values, 2000)
    fits = int(re.search(r"size (\d+) fits", str(refused.value))[1])
    assert 20 < fits < 200
    check_memory(solver, values, fits)
    with pytest.raises(ParameterError):
        check_memory(solver, values, 2 * fits)
    with pytest.raises(ParameterError, match="no size fits"):
        check_memory(solver, {**values, "nu": 1e9}, 50)
    monkeypatch.setattr("numerics.simulation.samples.available_memory", lambda: None)
    check_memory(solver, values, 10**6)


@pytest.mark.slow
def test_the_estimate_of_memory_is_what_a_sample_takes():
    """Within a factor of two either way, for a network and a polynomial of matrices; what LAPACK takes is not seen."""
    for name, size in (("extensive_multilayer", 300), ("deep_linear", 300)):
        solver, values = solver_and_values(name)
        simulate(solver, values, 10, 1)  # what is imported on the way does not count
        tracemalloc.start()
        simulate(solver, values, size, 1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        estimate = 8 * solver.simulation.numbers(solver.point(values), size)
        assert 0.5 < estimate / peak < 2.0, (name, estimate, peak)


@pytest.mark.slow
def test_intervals_that_would_not_be_seen_get_axes_of_their_own():
    solver, values = solver_and_values("extensive_two_layer", nu=0.5, chi=0.1, gamma=2.0)
    theory, sample = solve(solver, values), simulate(solver, values, 100, 4)
    (low, first), (second, high) = theory.bulk_edges
    figure = draw_comparison(theory, sample, "two intervals and an atom")
    left, right = figure.axes[0].child_axes
    assert left.get_xlim()[0] < low and first < left.get_xlim()[1] < second
    assert first < right.get_xlim()[0] < second and right.get_xlim()[1] > high
    assert (left.get_title(loc="right"), right.get_title(loc="right")) == (
        "40 % of the eigenvalues",
        "10 % of the eigenvalues",
    )
    assert "atom at 0: weight 0.5\nin simulation 0.5" in [text.get_text() for text in right.texts]
    # each curve fills its axes: it is neither a line at the bottom nor cut off
    for axes in (left, right):
        top = max(np.max(line.get_ydata()) for line in axes.lines)
        assert 0.5 < top / axes.get_ylim()[1] <= 1.0


def test_intervals_of_like_size_share_an_axis_and_bins_keep_to_them():
    intervals = [(0.0, 1.0), (1.5, 2.5)]
    assert interval_groups(intervals, lambda x: np.ones_like(x)) == [intervals]
    assert interval_groups(intervals, lambda x: np.where(x < 1.2, 1.0, 0.01)) == [intervals[:1], intervals[1:]]
    many = [(k * 10.0, k * 10.0 + 0.1 * (k + 1)) for k in range(7)]
    assert [len(group) for group in interval_groups(many, lambda x: np.ones_like(x))] == [1, 1, 1, 4]
    bins = histogram_bins(np.linspace(0, 2.5, 200), intervals, (-0.2, 2.8))
    assert {0.0, 1.0, 1.5, 2.5} <= set(bins) and bins[0] <= -0.2 and bins[-1] >= 2.8
    assert np.all(np.diff(bins) > 0)


@pytest.mark.long
@pytest.mark.slow
def test_moments_are_exact_where_there_is_a_curve_and_agree_without_one():
    solver, values = solver_and_values("extensive_two_layer", nu=2.0, chi=1.0, gamma=1.0)
    branch = solver.branch(values)
    found = exact_moments(branch, 6)
    assert [str(m) for m in found] == ["1", "2", "7", "32", "168", "1915/2", "23039/4"]
    assert moments(branch, 6) == [float(m) for m in found]
    law = law_of(branch)
    assert [law.moment(k) for k in range(5)] == pytest.approx([float(m) for m in found[:5]], rel=1e-9)
    solver, values = solver_and_values("full_first_step")
    branch = solver.branch(values)
    assert exact_moments(branch, 3) is None
    assert moments(branch, 3) == pytest.approx([law_of(branch).moment(k) for k in range(4)], rel=1e-9)


def test_solve_prints_the_bulk_as_a_whole():
    command = ["solve", "extensive_two_layer", "nu=1/2", "chi=1", "gamma=1", "--grid", "0.5:10:4", "--json"]
    result = json.loads(CliRunner().invoke(main, command).stdout)
    assert result["atoms"] == [{"at": 0.0, "weight": pytest.approx(0.5)}]
    assert result["moments"][:2] == [1.0, 2.0]
    assert result["density"]["x"] == pytest.approx([0.5, 0.5 + 9.5 / 3, 0.5 + 19 / 3, 10.0])
    assert len(result["density"]["y"]) == 4 and min(result["density"]["y"]) >= 0
    assert "G**4" in result["curve"] and result["outliers"] == [] and result["observables"] == {}


@pytest.mark.parametrize(
    ("pairs", "edges"),
    [
        (("gamma=0", "nu=2"), [(1 - 2**-0.5) ** 2, (1 + 2**-0.5) ** 2]),
        (("gamma=0", "nu=1"), [0.0, 4.0]),
        (("gamma=0", "nu=2", "sample=finite"), [(1 - 2**-0.5) ** 2, (1 + 2**-0.5) ** 2]),
        (("gamma=0", "nu=2", "sample=finite", "steps=2"), [(1 - 2**-0.5) ** 2, (1 + 2**-0.5) ** 2]),
        (("nu=1e6", "chi=1", "gamma=1"), [1.0, 5.0]),
    ],
)
def test_degenerate_parameters_give_the_right_limit(pairs, edges):
    result = CliRunner().invoke(main, ["solve", "extensive_two_layer", *pairs, "--json"])
    assert json.loads(result.stdout)["bulk_edges"][-1] == pytest.approx(edges, abs=5e-3 if "nu=1e6" in pairs else 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("nu", [1e7, 1e12])
def test_very_wide_hidden_layers(nu):
    """Almost all eigenvalues are those of a square Wishart matrix; a share 1/nu is that of the step, which grows as nu.

    On its own scale the step is a product of two Wisharts' halves of equal shape, of mean one: edge 4 nu, and the means
    of x and x^2 get 1 and 2 nu from it.
    """
    solver, values = solver_and_values("extensive_multilayer", nu=nu)
    law = law_of(solver.branch(values))
    assert law.error < 1e-9 and law.atoms == ()
    assert law.edges == ((0.0, pytest.approx(4 * nu, rel=1e-6)),)
    assert moments(solver.branch(values), 2)[1:] == pytest.approx([2.0, 2 * nu], rel=1e-6)
    x = np.linspace(0.1, 3.9, 9)
    assert law.density(x) == pytest.approx(np.sqrt(x * (4 - x)) / (2 * np.pi * x), rel=1e-5)


@pytest.mark.parametrize(
    "pairs", [("nu=1", "gamma0=0"), ("nu=3", "gamma0=0"), ("nu=1e9", "gamma0=0")], ids=lambda pairs: " ".join(pairs)
)
def test_hidden_layers_without_a_step(pairs):
    result = json.loads(CliRunner().invoke(main, ["solve", "extensive_multilayer", *pairs, "--json"]).stdout)
    assert result["bulk_edges"] == [[0.0, pytest.approx(4.0, rel=1e-12)]]
    assert result["moments"][:4] == [1.0, 1.0, 2.0, 5.0]


def test_hidden_layers_without_a_step_have_no_curve_with_finitely_many_samples():
    """Most responses vanish there, so that corrections cannot be measured beside them."""
    pairs = ("sample=finite", "gamma0=0")
    result = json.loads(CliRunner().invoke(main, ["solve", "extensive_multilayer", *pairs, "--json"]).stdout)
    assert result["bulk_edges"] == [[0.0, pytest.approx(4.0, rel=1e-12)]]
    assert result["moments"][:4] == pytest.approx([1.0, 1.0, 2.0, 5.0], rel=1e-12)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["extensive_two_layer", "chi=0"], "chi=0 is out of range"),
        (["extensive_multilayer", "chi=0"], "chi=0 is out of range"),
        (["extensive_two_layer", "--grid", "3:1:10"], "--grid 3:1:10: write LOW:HIGH:COUNT"),
        (["extensive_two_layer", "--grid", "0:1"], "--grid 0:1: write LOW:HIGH:COUNT"),
        (["extensive_multilayer", "L=2", "layer=2"], "with L=2 the hidden layers are 1 to 1"),
        (["extensive_multilayer", "L=1"], "L=1 is out of range"),
    ],
)
def test_bad_requests_are_one_sentence(words, sentence):
    result = CliRunner().invoke(main, ["solve", *words])
    assert result.exit_code == 2
    assert sentence in result.stderr and len(result.stderr.strip().splitlines()) == 1
