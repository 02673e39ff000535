"""The largest stable rate: from the loss itself and from the curvature, and what a diverged training says."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from conftest import solver_and_values

from derive.cli import main
from derive.errors import NumericalError, ParameterError
from numerics.solver import solve
from numerics.training.stability import GROWTH, stable_rate

ONLINE = {"L": 1, "data": "online", "T": 6, "C": 1, "alpha": 50.0, "nu": 2.0, "gamma0": 1.0, "sigma": 0.1}


@pytest.mark.slow
def test_limits_are_where_the_loss_and_the_curvature_say():
    solver, values = solver_and_values("deep_linear", **ONLINE)
    found = stable_rate(solver, values, layer="ntk")
    assert found.at_start == pytest.approx(2 / ((1 + 2**-0.5) ** 2 + 1), rel=1e-5)
    assert found.by_curvature is not None and found.by_curvature <= found.at_start * 1.001
    for share, bounded in ((0.998, True), (1.002, False)):
        losses = solve(solver, {**values, "eta": share * found.by_divergence}, layers=()).observables["train_loss"]
        assert (max(losses) <= GROWTH * losses[0]) == bounded
    below, above = (
        solve(solver, {**values, "eta": share * found.by_curvature}, layers=("ntk",), path=True)
        for share in (0.998, 1.002)
    )
    sharpest = [s.parameters["eta"] * max(s.layers[0].largest_path[:-1]) for s in (below, above)]
    assert sharpest[0] <= 2.0 < sharpest[1]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rate": "T"}, "no real parameter 'T'"),
        ({"loss": "speed"}, "observes no 'speed'"),
        ({"layer": "7"}, "has no layer '7'"),
    ],
)
def test_bad_requests_are_one_sentence(changes, sentence):
    solver, values = solver_and_values("deep_linear", **ONLINE)
    with pytest.raises(ParameterError, match=sentence):
        stable_rate(solver, values, **changes)


def test_growth_beyond_double_precision_is_divergence_at_a_step():
    """Before it overflows such a training gives numbers without digits: negative eigenvalues, overlaps above one."""
    solver, values = solver_and_values("deep_linear", L=1, T=8, C=1, eta=0.4)
    with pytest.raises(NumericalError, match=r"diverged at step \d \(\w+ explodes\)"):
        solve(solver, values)


@pytest.mark.slow
def test_a_grid_gives_paths_and_a_moved_curve_and_says_when_all_diverge():
    command = ["solve", "deep_linear", "L=1", "T=4", "nu=4", "gamma0=8,10", "--json"]
    points = json.loads(CliRunner().invoke(main, command).stdout)
    assert points["axes"] == {"gamma0": [8.0, 10.0]}
    for point in points["points"]:
        kernel = point["layers"][1]
        assert len(kernel["outlier_path"]) == 5 and kernel["overlaps"] is not None
        assert (kernel["bbp_time"] is None) == (not any(kernel["outlier_path"]))
        assert "(z - readout_norm)" in kernel["curve"] and "readout_norm" not in point["layers"][0]["curve"]
    result = CliRunner().invoke(main, ["solve", "deep_linear", "L=1", "T=4", "nu=4", "eta=50,60", "--json"])
    assert result.exit_code == 3
    assert all("diverged at step" in point["error"] for point in json.loads(result.stdout)["points"])
