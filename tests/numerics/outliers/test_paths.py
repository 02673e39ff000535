"""The spectrum at every time, layer by layer: against the same problem with fewer steps, and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import solver_and_values, solver_of, target_of
from reference_formulas import sites_by_hand

import derive
from derive.cli import main
from numerics.outliers.paths import Steps, outlier_path
from numerics.solver import solve, spiked_problem

CASES = {
    "steady": ("anti_hebbian", {"gamma0": 4.0, "dt": 0.4, "T": 5}, (3,)),
    "below the bulk": ("anti_hebbian", {"gamma0": -1.5, "dt": 0.3, "T": 4}, (3,)),
    "decaying bulk": ("hebbian_momentum", {"T": 4, "rate": 0.6}, (1, 3)),
    "classes": ("deep_linear", {"L": 1, "T": 5, "C": 2, "eta": 0.1, "gamma0": 6.0}, (3,)),
    "hidden layer": ("deep_linear", {"T": 3, "eta": 0.4}, (2,)),
}


def solved(name: str, changes: dict, **options):
    return solve(*solver_and_values(name, **changes), **options)


@pytest.mark.long_cases("decaying bulk")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_an_earlier_time_is_a_shorter_training(case: str):
    name, changes, times = CASES[case]
    whole = solved(name, changes, path=True)
    for layer in whole.layers:
        assert len(layer.outlier_path) == len(layer.largest_path) == changes["T"] + 1
        assert not len(layer.outlier_path[0]) and layer.outlier_path[-1] == pytest.approx(layer.outliers, rel=1e-10)
        assert layer.bbp_time == next(t for t, found in enumerate(layer.outlier_path) if len(found))
    for time in times:
        shorter = solved(name, {**changes, "T": time})
        for layer, then in zip(whole.layers, shorter.layers, strict=True):
            assert layer.outlier_path[time] == pytest.approx(then.outliers, rel=1e-9, abs=1e-9)
            top = max([then.bulk_edges[-1][1], *then.outliers])
            assert layer.largest_path[time] == pytest.approx(top, rel=1e-9)
            assert np.allclose(layer.bulk_at(time), then.bulk_edges, rtol=1e-9)


def test_which_models_need_the_whole_problem_at_each_time():
    def steady(name, **choices):
        return solver_of(name, **choices).matrices[0].probe.steady

    assert steady("anti_hebbian") and steady("deep_linear", L=1)
    assert not steady("hebbian_momentum")


@pytest.mark.slow
def test_a_decaying_bulk_shrinks_and_classes_come_together():
    name, changes, _ = CASES["decaying bulk"]
    layer = solved(name, {**changes, "rate": 0.0}, path=True).layers[0]
    assert layer.bbp_time == "never"
    assert layer.largest_path == pytest.approx([2 * 0.9**t for t in range(5)], rel=1e-9)
    assert np.allclose(layer.bulk_path, [[[-2 * 0.9**t, 2 * 0.9**t]] for t in range(5)], rtol=1e-9)
    name, changes, _ = CASES["classes"]
    for found in solved(name, changes, path=True).layer("0").outlier_path:
        assert len(found) % 2 == 0 and found[::2] == pytest.approx(found[1::2], rel=1e-6)


def test_the_kernel_is_moved_at_each_time_by_its_own_readout():
    name, changes, _ = CASES["classes"]
    solution = solved(name, changes, path=True)
    first, kernel, shift = solution.layer("0"), solution.layer("ntk"), solution.observables["readout_norm"]
    assert len(set(shift)) == len(shift)
    for before, after, x in zip(first.outlier_path, kernel.outlier_path, shift, strict=True):
        assert after == pytest.approx([z + x for z in before], rel=1e-14)
    assert kernel.largest_path == pytest.approx([z + x for z, x in zip(first.largest_path, shift, strict=True)])
    assert kernel.bbp_time == first.bbp_time and kernel.shift_path.tolist() == shift.tolist()


def test_without_being_asked_there_is_no_path():
    layer = solved("anti_hebbian", CASES["steady"][1]).layers[0]
    assert layer.outlier_path is layer.largest_path is layer.bbp_time is layer.overlaps is None


def test_chosen_layers_only():
    name, changes, _ = CASES["classes"]
    assert [layer.label for layer in solved(name, changes, layers=("ntk",)).layers] == ["ntk"]


# Commands

NETWORK = ("deep_linear", "L=1", "T=5", "C=2", "eta=0.1", "gamma0=6")


@pytest.fixture
def compiled(monkeypatch):
    """Commands about the network use one compiled solver."""
    monkeypatch.setattr("derive.api.solvers.load_solver", lambda files: solver_of("deep_linear", L=1))


def run(*arguments: str) -> dict:
    result = CliRunner().invoke(main, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_solve_tells_every_layer():
    found = run("solve", *NETWORK)
    assert [layer["layer"] for layer in found["layers"]] == [0, "ntk"]
    for name in ("train_loss", "test_loss"):
        assert found[name] == found["observables"][name] and len(found[name]) == 6
    for layer in found["layers"]:
        assert {"bulk_edges", "outliers", "outlier_path", "largest_path", "bbp_time", "overlaps"} <= set(layer)
        assert len(layer["outlier_path"]) == 6 and len(layer["overlaps"]) == len(layer["outliers"]) > 0
        assert all(0 < seen[side] <= 1 for seen in layer["overlaps"] for side in ("right", "left"))
    first = found["layers"][0]
    assert all(found[key] == first[key] for key in ("bulk_edges", "outliers", "outlier_path", "bbp_time", "overlaps"))


def test_one_layer_and_no_path(compiled):
    found = run("solve", *NETWORK, "layer=ntk", "--no-path")
    assert [layer["layer"] for layer in found["layers"]] == ["ntk"]
    assert found["outliers"] == found["layers"][0]["outliers"] and found["layers"][0]["outlier_path"] is None
    assert found["bulk_edges"][0][0] > 0.1


def test_people_read_layers_and_times(compiled):
    text = CliRunner().invoke(main, ["solve", *NETWORK]).stdout
    assert "outliers, layer 0" in text and "outliers, layer ntk" in text and "first outlier, layer 0 at time" in text


@pytest.mark.slow
def test_a_path_where_layers_have_no_names():
    arguments = ("solve", target_of("hebbian_momentum"), "T=3", "rate=0.6")
    assert run(*arguments)["outlier_path"] is None
    found = run(*arguments, "--path")
    assert len(found["outlier_path"]) == 4 and found["outlier_path"][-1] == pytest.approx(found["outliers"])
    assert "layers" not in found


def test_a_model_without_time_has_no_path():
    found = run("solve", "spiked_wigner", "gamma0=2", "--path")
    assert found["outlier_path"] is found["bbp_time"] is None and found["outliers"]


def test_simulate_tells_every_layer(compiled):
    found = run("simulate", *NETWORK, "--size", "60", "--seeds", "3")
    assert [layer["layer"] for layer in found["layers"]] == [0, "ntk"]
    assert all(len(found[name]["mean"]) == len(found[name]["stderr"]) == 6 for name in ("train_loss", "test_loss"))
    first, kernel = found["layers"]
    assert first["eigenvalues"] == found["eigenvalues"] and len(first["eigenvalues"]["top"]) == 3
    assert first["path_times"][0] == 0 and first["path_times"][-1] == 5
    assert len(first["outlier_path"]) == len(first["path_times"])
    assert first["outlier_path"][0]["mean"] == [] and first["bbp_time"] in first["path_times"][1:]
    assert len(first["outliers"]["mean"]) == 2 and set(first["overlaps"]) == {"right", "left"}
    assert all(0 < x <= 1 for side in ("right", "left") for x in first["overlaps"][side]["mean"])
    for seed, (bare, moved) in enumerate(zip(first["eigenvalues"]["top"], kernel["eigenvalues"]["top"], strict=True)):
        shifts = {round(b - a, 9) for a, b in zip(bare, moved, strict=True)}
        assert len(shifts) == 1 and shifts.pop() > 0, f"seed {seed}"


def test_one_simulated_layer_at_all_times(compiled):
    found = run("simulate", *NETWORK, "layer=0", "--path", "--size", "40", "--seeds", "1")
    assert [layer["layer"] for layer in found["layers"]] == [0]
    assert found["layers"][0]["path_times"] == [0, 1, 2, 3, 4, 5]


def test_compare_tells_every_layer(compiled):
    found = run("compare", *NETWORK, "--size", "250", "--seeds", "8")
    names = [row["quantity"] for row in found["rows"]]
    assert "layer 0: outliers 1-2, mean, above the bulk" in names
    assert any(name.startswith("layer ntk: outliers 1-2, mean, above the bulk at time") for name in names)
    assert any("right overlap" in name for name in names) and any("left overlap" in name for name in names)
    for name in ("train_loss", "test_loss"):
        assert all(len(found[name][key]) == 6 for key in ("theory", "mean", "stderr"))
        assert found[name]["mean"] == pytest.approx(found[name]["theory"], rel=0.2)
    for layer in found["layers"]:
        assert layer["outliers"] and layer["bbp_time"] is not None
        assert layer["simulation"]["outliers"]["mean"] == pytest.approx(layer["outliers"], rel=0.2)
    assert found["within_three_standard_errors"], found["verdict"]


@pytest.mark.slow
def test_coefficients_with_the_number_of_steps_keep_it_on_the_way():
    """M keeps the share 1 - (t + 1)/(4 T) of itself at each step and gains a spike of strength two: at every time the
    outlier is theta + s^2/theta, with s and theta from a recursion in which T is that of the whole run."""
    T, D = derive.parameter("T", default=3, domain=derive.whole_positive), derive.sectors("D")
    t = derive.training_clock("t", steps=T)
    g, M = derive.normal("g", D), derive.weights("M", D, D, t)
    step = (1 - (t + 1) / (4 * T)) * M(t) + 2 / D * derive.outer(g, g)
    equations = [derive.Eq(M(0), derive.goe("S", D)), derive.Eq(M(t + 1), step)]
    model = derive.Model(parameters=(T,), equations=equations, probe=derive.spectrum(M(T)))
    path = derive.load(model).solve(path=True).layers[0].outlier_path
    size, spike, expected = 1.0, 0.0, []
    for kept in (11 / 12, 10 / 12, 9 / 12):
        size, spike = kept * size, kept * spike + 2
        expected.append(spike + size**2 / spike)
    assert len(path[0]) == 0 and [z for now in path for z in now] == pytest.approx(expected)


@pytest.mark.slow
def test_times_and_replicates_of_a_matrix_without_an_eigenproblem_are_zeros_of_its_determinant():
    """M + diag(s) gains (s v v^T + v (s v)^T) / D at each step, whereupon v doubles: spikes of strength w = 1,
    then 5, and of c w where all order parameters are c times as large. The determinant of two by two is by hand."""
    T, D = derive.parameter("T", default=2, domain=derive.whole_positive), derive.sectors("D")
    t = derive.training_clock("t", steps=T)
    values, shares = np.array([1.0, 4.0, -2.0]), np.array([0.5, 0.25, 0.25])
    s = derive.trait("s", D, values=[1, 4, -2], weights=[0.5, 0.25, 0.25])
    v, M = derive.field("v", D, t), derive.weights("M", D, D, t)
    both = derive.outer(s * v(t), v(t)) + derive.outer(v(t), s * v(t))
    model = derive.Model(
        parameters=(T,),
        equations=[
            derive.Eq(v(0), derive.normal("start", D)),
            derive.Eq(v(t + 1), 2 * v(t)),
            derive.Eq(M(0), derive.goe("S", D)),
            derive.Eq(M(t + 1), M(t) + both / D),
        ],
        probe=derive.spectrum(M(T) + derive.diag(s)),
    )
    theory = derive.load(model)
    solution = theory.solve(path=True)
    problem = spiked_problem(theory.solver, solution)
    assert problem.probe.steady and not solution.diagnostics.reduced
    sizes = (1.1, 0.9)
    orders = [{key: c * x for key, x in problem.order.items()} for c in sizes]
    steps = Steps("T", 2, theory.solver.training.strides(problem.p))
    course = outlier_path(problem, steps, lambda *_: None, orders)
    for c, path in zip((1, *sizes), (solution.layers[0].outlier_path, *course.replicas), strict=True):
        assert [len(now) for now in path] == [0, 2, 2]
        for strength, now in ((c, path[1]), (5 * c, path[2])):
            for z in now:
                g = sites_by_hand.with_diagonal(z + 1e-13j, 1.0, values, shares).real
                e = [np.sum(shares * values**k / (z - values - g)) for k in range(3)]
                assert (1 - strength * e[1]) ** 2 == pytest.approx(strength**2 * e[0] * e[2], rel=1e-6)
