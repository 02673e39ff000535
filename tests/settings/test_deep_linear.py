"""Deep linear networks: the derived solver against the solution by hand, and what must hold at any parameters.

Parameters of one shape (choices, T, C) are solved side by side, so that each solver is compiled once.
"""

from __future__ import annotations

import re
from functools import cache

import deep_linear_by_hand as by_hand
import numpy as np
import pytest

import derive
from derive.claims import check_claims, load_claims, project_claims
from derive.codegen.store import stored_files
from derive.errors import ClaimError, NumericalError, ParameterError
from derive.inputs.problems import load_problem
from numerics.solver import load_solver, solve_many

SHAPES = {
    "one layer": "L=1 data=full_batch param=mup T=8 C=1",
    "one layer, NTK": "L=1 data=full_batch param=ntk T=8 C=1",
    "one layer, one step": "L=1 data=full_batch param=mup T=1 C=1",
    "one layer, three classes, online": "L=1 data=online param=mup T=4 C=3",
    "two layers, three classes": "L=2 data=full_batch param=mup T=4 C=3",
    "two layers, online": "L=2 data=online param=mup T=6 C=1",
    "three layers": "L=3 data=full_batch param=mup T=4 C=1",
}
"""Choices and sizes; a solver is compiled for each."""

POINTS = {
    "one layer": (
        "alpha=2 nu=1 gamma0=1 eta=0.1 sigma=0.3",
        "alpha=3 nu=0.3 gamma0=0.3 eta=0.2 sigma=0.3",  # one outlier, just below the bulk
        "alpha=0.7 nu=4 gamma0=4 eta=0.2 sigma=0",  # outliers on both sides
        "alpha=2 nu=2 gamma0=4 eta=0.05 sigma=0.3",
        "alpha=2 nu=0.001 gamma0=3 eta=0.0005 sigma=0.3",
        "alpha=2 nu=1000 gamma0=3 eta=0.05 sigma=0",
        "alpha=2 nu=1 gamma0=0.001 eta=0.05 sigma=0.3",
        "alpha=2 nu=4 gamma0=1 eta=0.2 sigma=0.3",  # the first point of "one layer, NTK", gamma0 / sqrt(nu)
        "alpha=2 nu=0.25 gamma0=6 eta=0.05 sigma=0.3",  # the second
    ),
    "one layer, NTK": ("alpha=2 nu=4 gamma0=2 eta=0.2 sigma=0.3", "alpha=2 nu=0.25 gamma0=3 eta=0.05 sigma=0.3"),
    "one layer, one step": ("alpha=2 nu=2 gamma0=6 eta=0.4 sigma=0", "alpha=0.5 nu=0.5 gamma0=2 eta=0.1 sigma=1"),
    "one layer, three classes, online": (
        "alpha=2 nu=2 gamma0=4 eta=0.1 sigma=0.3",
        "alpha=0.6 nu=0.5 gamma0=2 eta=0.05 sigma=0",
    ),
    "two layers, three classes": (
        "alpha=2 nu=0.5 gamma0=4 eta=0.1 sigma=0.3",
        "alpha=0.8 nu=2 gamma0=4 eta=0.1 sigma=0",
        "alpha=3 nu=4 gamma0=1 eta=0.2 sigma=0.3",
    ),
    "two layers, online": (
        "alpha=3 nu=4 gamma0=1 eta=0.5 sigma=0.3",  # outliers on both sides of the first bulk
        "alpha=3 nu=0.3 gamma0=1 eta=0.2 sigma=0",  # three below it
        "alpha=2 nu=1 gamma0=6 eta=0.05 sigma=0.3",
        "alpha=1e9 nu=1e8 gamma0=0.01 eta=0.1 sigma=0",  # the population, wide and lazy
    ),
    "three layers": (
        "alpha=2 nu=0.5 gamma0=2 eta=0.2 sigma=0.3",  # outliers of the two upper layers, not of the first
        "alpha=0.7 nu=4 gamma0=1 eta=0.2 sigma=0.3",
        "alpha=2 nu=1 gamma0=4 eta=0.1 sigma=0",
    ),
}
CASES = [(shape, k) for shape in POINTS for k in range(len(POINTS[shape]))]


def values_of(shape: str, point: str) -> dict:
    return load_problem("deep_linear", [*SHAPES[shape].split(), *point.split()]).values


@cache
def solver_of(shape: str):
    choices = [text for text in SHAPES[shape].split() if text.partition("=")[0] in ("L", "data", "param")]
    return _solver(tuple(choices))


@cache
def _solver(choices: tuple[str, ...]):
    return load_solver(stored_files(load_problem("deep_linear", choices).model))


@cache
def solutions(shape: str):
    points = [values_of(shape, point) for point in POINTS[shape]]
    return list(solve_many(solver_of(shape), points, path=True))


@cache
def reference(shape: str, k: int) -> by_hand.Solution:
    return solved_by_hand(values_of(shape, POINTS[shape][k]))


def solved_by_hand(values: dict) -> by_hand.Solution:
    """By hand inputs are isotropic."""
    assert values["spectrum"] == "isotropic"
    left_out = ("spectrum", "teachers", "kernel")
    return by_hand.solve(**{name: value for name, value in values.items() if name not in left_out})


def both(shape: str, k: int):
    derived, hand = solutions(shape)[k], reference(shape, k)
    assert not isinstance(derived, NumericalError), derived
    return derived, hand


def expanded(found: list[by_hand.Outlier]) -> list[float]:
    """Descending, repeated by multiplicity."""
    return sorted((outlier.z for outlier in found for _ in range(outlier.multiplicity)), reverse=True)


# against the solution by hand


@pytest.mark.long_cases(
    "two layers, three classes-0",
    "two layers, three classes-1",
    "two layers, three classes-2",
    "three layers-0",
    "three layers-1",
    "three layers-2",
)
@pytest.mark.slow
@pytest.mark.parametrize(("shape", "k"), CASES)
def test_order_parameters_are_those_by_hand(shape, k):
    derived, hand = both(shape, k)
    problem, kernels = hand.problem, hand.kernels
    expected = {}
    for layer in range(problem.L):
        h, g, J = f"h{layer}", f"g{layer + 1}", f"J{layer}"
        # by hand the first backward field is divided by gamma0
        scale = 1 / problem.gamma if layer == 0 else 1.0
        expected["C", h, h] = kernels.C_h[layer]
        expected["C", g, g] = kernels.C_g[layer + 1]
        expected["R", h, f"{J}T_{g}"] = scale * kernels.R_hr[layer]
        expected["R", g, f"{J}_{h}"] = kernels.R_gu[layer + 1]
    assert set(derived.order) == set(expected)
    n = problem.T * problem.C
    for name, kernel in expected.items():
        error = np.max(np.abs(derived.order[name].reshape(n, n) - kernel[:n, :n]))
        assert error <= 1e-9 * np.max(np.abs(kernel[:n, :n]), initial=1.0), name


@pytest.mark.long_cases(
    "two layers, three classes-0",
    "two layers, three classes-1",
    "two layers, three classes-2",
    "three layers-0",
    "three layers-1",
    "three layers-2",
)
@pytest.mark.slow
@pytest.mark.parametrize(("shape", "k"), CASES)
def test_losses_are_those_by_hand(shape, k):
    derived, hand = both(shape, k)
    assert hand.diverged_at is None
    assert np.allclose(derived.observables["test_loss"], hand.test_loss, rtol=1e-8, atol=0)
    assert np.allclose(derived.observables["train_loss"], hand.train_loss, rtol=1e-8, atol=0)


@pytest.mark.long_cases(
    "two layers, three classes-0",
    "two layers, three classes-1",
    "two layers, three classes-2",
    "three layers-0",
    "three layers-1",
    "three layers-2",
)
@pytest.mark.slow
@pytest.mark.parametrize(("shape", "k"), CASES)
def test_outliers_of_every_layer_at_every_time_are_those_by_hand(shape, k):
    derived, hand = both(shape, k)
    for number in range(hand.problem.L):
        layer = derived.layer(str(number))
        assert np.allclose(layer.bulk_edges, [by_hand.bulk_edges(hand.problem, number)], rtol=1e-8, atol=1e-12)
        expected = [expanded(by_hand.outliers(hand, number, time)) for time in range(hand.problem.T + 1)]
        assert [len(now) for now in layer.outlier_path] == [len(now) for now in expected]
        for found, known in zip([*layer.outlier_path, layer.outliers], [*expected, expected[-1]], strict=True):
            assert np.allclose(found, known, rtol=1e-8, atol=1e-10)
        tops = [max([layer.bulk_edges[-1][1], *now]) for now in expected]
        assert np.allclose(layer.largest_path, tops, rtol=1e-8)
        assert layer.bbp_time == next((time for time, now in enumerate(expected) if now), "never")


GIVEN = {"alpha": 2.0, "nu": 2.0, "gamma0": 8.0, "eta": 0.02, "sigma": 0.3, "T": 5}
TEACHERS = [
    ([2.0], [[1.0]]),
    ([0.0], [[1.0]]),
    ([1.0, 1.0], [[1.0, 1.0], [1.0, 1.0]]),  # the same teacher twice
    ([1.5, 0.0], [[1.0, 0.5], [0.5, 1.0]]),
    ([1.5, -1.0, 0.7], [[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]]),
    ([1.0, 1.0, 1.0], [[2.0, 1.0, 0.0], [1.0, 1.0, 0.3], [0.0, 0.3, 0.5]]),
]


@pytest.mark.long_cases("strengths4-gram4")
@pytest.mark.parametrize(("strengths", "gram"), TEACHERS)
def test_given_teachers_are_those_by_hand(strengths, gram):
    derived = derive.load("deep_linear", L=1, teachers="given").solve(GIVEN, strengths=strengths, gram=gram, layer=0)
    lengths = np.diag(strengths)
    teacher = tuple(map(tuple, lengths @ np.array(gram) @ lengths))
    hand = by_hand.solve(L=1, C=len(strengths), teacher=teacher, **GIVEN)
    assert np.allclose(derived["test_loss"], hand.test_loss, rtol=1e-12, atol=0)
    assert np.allclose(derived["train_loss"], hand.train_loss, rtol=1e-12, atol=0)
    assert np.allclose(derived.outliers, expanded(by_hand.outliers(hand, 0, GIVEN["T"])), rtol=1e-8)


def test_five_teachers_that_differ_have_five_outliers():
    strengths = [1.6, 1.35, 1.1, 0.85, 0.6]
    values = {**GIVEN, "T": 10, "strengths": strengths}
    outliers = derive.load("deep_linear", L=1, teachers="given").solve(values, layer=0, path=False).outliers
    assert len(outliers) == 5
    assert np.all(np.diff(outliers) < -0.5)


@pytest.mark.slow
def test_teachers_given_as_orthonormal_are_alike():
    alike, given = (derive.load("deep_linear", L=1, teachers=teachers) for teachers in ("alike", "given"))
    one, other = (m.solve(GIVEN, C=2, layer=0, path=False) for m in (alike, given))
    assert np.allclose(one["test_loss"], other["test_loss"], rtol=1e-12, atol=0)
    assert np.allclose(one.outliers, other.outliers, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("gram=[[1,2],[2,1]]", "negative eigenvalue -1"),
        ("gram=[[1,0.2],[0.3,1]]", "not symmetric"),
        ("gram=[1,1]", "it must be C by C"),
        ("strengths=[1,2,3] gram=[[1,0],[0,1]]", "entries along"),
        ("C=3 strengths=[1,2]", "leave C out"),
        ("strengths=5", "write it in brackets"),
        ("strengths=nothing.npz", "there is no such file"),
    ],
)
def test_teachers_that_cannot_be_are_refused(given, sentence):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        _ = load_problem("deep_linear", ["L=1", "teachers=given", *given.split()]).inputs


def test_teachers_come_from_a_file_too(tmp_path):
    np.savez(tmp_path / "teachers.npz", strengths=[1.0, 2.0], gram=[[1.0, 0.1], [0.1, 1.0]])
    pairs = [f"{name}={tmp_path / 'teachers.npz'}" for name in ("strengths", "gram")]
    problem = load_problem("deep_linear", ["L=1", "teachers=given", *pairs])
    assert problem.values["C"] == 2
    assert problem.inputs["strengths"].tolist() == [1.0, 2.0]
    assert problem.inputs["gram"].tolist() == [[1.0, 0.1], [0.1, 1.0]]


@pytest.mark.long
@pytest.mark.slow
def test_the_parameters_reach_both_sides_of_the_bulk():
    sides = set()
    for shape in POINTS:
        for solution in solutions(shape):
            for layer in solution.layers:
                ((low, high),) = layer.bulk_edges
                sides |= {(layer.label, z > high) for now in layer.outlier_path for z in now}
    assert sides >= {("0", True), ("0", False), ("1", True), ("2", True)}


def test_printed_equations_give_other_losses():
    """The departures of the solution by hand are real: each printed term moves the loss beyond any tolerance here."""
    for name in by_hand.UNDONE:
        layers = 2 if name == "hidden_sum" else 1
        given = {"L": layers, "C": 1, "T": 5, "alpha": 2, "nu": 0.5, "gamma0": 1, "eta": 0.05, "sigma": 0.3}
        right = by_hand.solve(**given)
        printed = by_hand.solve(**given, method="fixed_point", as_printed=(name,))
        assert abs(printed.train_loss[-1] - right.train_loss[-1]) > 0.02


# properties


@pytest.mark.slow
def test_each_class_has_its_own_copy_of_every_outlier():
    counts = set()
    for shape in ("one layer, three classes, online", "two layers, three classes"):
        for solution in solutions(shape):
            for layer in solution.layers:
                for now in layer.outlier_path:
                    counts.add(len(now) // 3)
                    groups = np.array(now).reshape(-1, 3)  # fails unless there are three of each
                    assert np.allclose(groups, groups[:, :1], rtol=1e-9)
                    assert np.all(groups[:-1, 0] - groups[1:, 0] > 1e-6)
    assert counts >= {0, 1}


def test_independent_classes_do_not_see_each_other():
    for k, point in enumerate(POINTS["two layers, three classes"]):
        values = values_of("two layers, three classes", point)
        alone = solved_by_hand({**values, "C": 1})
        solution = solutions("two layers, three classes")[k]
        assert np.allclose(solution.observables["test_loss"], alone.test_loss, rtol=1e-9)
        kernel = solution.order["C", "h1", "h1"].reshape(values["T"], 3, values["T"], 3)
        assert np.max(np.abs(kernel[:, 0, :, 1])) <= 1e-12 * np.max(np.abs(kernel))


def test_ntk_parameterisation_is_mup_with_gamma0_over_root_nu():
    for ntk, mup in zip(solutions("one layer, NTK"), solutions("one layer")[-2:], strict=True):
        assert np.isclose(ntk.inputs["gamma0"] / np.sqrt(ntk.inputs["nu"]), mup.inputs["gamma0"])
        for name in ("test_loss", "train_loss", "readout_norm"):
            assert np.allclose(ntk.observables[name], mup.observables[name], rtol=1e-11)
        for label in ("0", "ntk"):
            assert ntk.layer(label).bbp_time == mup.layer(label).bbp_time
            assert np.allclose(ntk.layer(label).largest_path, mup.layer(label).largest_path, rtol=1e-11)


def test_tangent_kernel_is_the_first_layer_moved_by_the_readout():
    for k, solution in enumerate(solutions("one layer")):
        hand, weights, kernel = reference("one layer", k), solution.layer("0"), solution.layer("ntk")
        moved = np.diagonal(hand.kernels.C_g[1])
        assert np.allclose(solution.observables["readout_norm"], moved, rtol=1e-9)
        assert np.allclose(kernel.bulk_edges, np.array(weights.bulk_edges) + moved[-1], rtol=1e-9)
        for time, now in enumerate(weights.outlier_path):
            assert np.allclose(kernel.outlier_path[time], np.array(now) + moved[time], rtol=1e-9)
        assert np.allclose(kernel.largest_path, np.array(weights.largest_path) + moved, rtol=1e-9)


def test_a_wide_lazy_network_on_endless_data_decays_geometrically():
    """Then the tangent kernel is L + 1 times the identity at all times: v(t) = (1 - (L + 1) eta)^t v(0)."""
    solution = solutions("two layers, online")[-1]
    eta, loss = solution.inputs["eta"], np.array(solution.observables["test_loss"])
    assert np.allclose(loss, (1 - 3 * eta) ** (2 * np.arange(loss.size)), rtol=2e-3)
    assert np.allclose(solution.observables["train_loss"], loss, rtol=1e-12)


def test_full_batch_on_endless_data_is_online_on_endless_data():
    for layers in (1, 3):
        given = {"L": layers, "C": 1, "T": 6, "nu": 0.7, "gamma0": 2, "eta": 0.05, "sigma": 0.3}
        far, near = (
            [by_hand.solve(**given, alpha=alpha, data=data).test_loss for data in ("full_batch", "online")]
            for alpha in (1e6, 1e5)
        )
        gaps = [np.max(np.abs(batch - fresh)) for batch, fresh in (far, near)]
        assert gaps[0] < 1e-4 and np.isclose(gaps[1] / gaps[0], 10, rtol=0.05)


def test_first_step_in_closed_form():
    """After one step with a linear readout of unit variance, g^1(1) = w + eta gamma0 W(0) h^0(0) / sqrt(D)."""
    for k, solution in enumerate(solutions("one layer, one step")):
        values = values_of("one layer, one step", POINTS["one layer, one step"][k])
        alpha, nu, gamma0, eta, sigma = (values[name] for name in ("alpha", "nu", "gamma0", "eta", "sigma"))
        start = 1 + 1 / (gamma0**2 * nu) + sigma**2
        assert np.isclose(solution.observables["test_loss"][0], start, rtol=1e-12)
        assert np.isclose(solution.observables["train_loss"][0], start, rtol=1e-12)
        # h^1 = u^1 - w / (gamma0 nu), <u^1 u^1> = C_h^0 = C_v + C_Delta / alpha
        forward = start - sigma**2 + start / alpha
        norm = (1 - eta / nu) ** 2 + (eta * gamma0) ** 2 * forward
        assert np.isclose(solution.observables["readout_norm"][1], norm, rtol=1e-12)
        assert len(solution.layer("0").outlier_path) == 2


# the far ends


def test_a_learning_rate_beyond_stability_is_reported_with_its_step():
    point = values_of("one layer", "alpha=2 nu=1 gamma0=3 eta=50 sigma=0.3")
    count = len(POINTS["one layer"])
    found = list(solve_many(solver_of("one layer"), [point] * count, path=True))
    assert len(found) == count
    for error in found:
        assert isinstance(error, NumericalError)
        assert str(error).startswith("diverged at step ")
    hand = solved_by_hand(point)
    assert hand.diverged_at is not None
    assert f"diverged at step {hand.diverged_at} " in str(found[0])


@pytest.mark.slow
def test_every_number_of_every_solution_is_finite():
    for shape in POINTS:
        for solution in solutions(shape):
            for series in solution.observables.values():
                assert np.all(np.isfinite(series)) and np.all(np.array(series) >= 0)
            for layer in solution.layers:
                assert np.all(np.isfinite(layer.largest_path))
                assert np.all(np.isfinite([z for now in layer.outlier_path for z in now]))


# claims that must fail

WRONG = {
    "the printed bulk": (
        'kind = "block"\nrow = "C_psi1_g1"\ncolumn = "C_psi1_g1"\nvalue = "(1 + G/nu)*I"',
        "full_batch",
    ),
    "h^0 from earlier times only": ('kind = "kernel"\ntarget = "h0"\nvalue = "R[delta,X_v]*v"\nlag = 1', "full_batch"),
    "h^1 from earlier times only": (
        'kind = "kernel"\ntarget = "J0_h0"\nvalue = "1/nu*R[h0,J0T_g1]*g1"\nlag = 1',
        "full_batch",
    ),
    "errors on fresh samples correlated": ('kind = "covariance"\nnoises = ["X_v", "X_v"]\nvalue = "C[v,v]"', "online"),
    "errors on fresh samples remembered": (
        'kind = "kernel"\ntarget = "h0"\nvalue = "R[delta,X_v]*v"\nlag = 0',
        "online",
    ),
    "errors on one batch independent": (
        'kind = "covariance"\nnoises = ["X_v", "X_v"]\nvalue = "C[v,v]"\nsame_time = true',
        "full_batch",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_printed_formulas_that_are_wrong_fail_as_claims(name, tmp_path):
    body, data = WRONG[name]
    path = tmp_path / "claims.toml"
    path.write_text(
        f'model = "deep_linear"\nchoices = {{ L = 1, data = "{data}" }}\n[[claim]]\nname = "it"\n{body}\n',
        encoding="utf-8",
    )
    assert check_claims(load_claims(path))[0].status == "refuted"


def test_same_time_is_true_or_false(tmp_path):
    path = tmp_path / "claims.toml"
    body = 'kind = "covariance"\nnoises = ["X_v", "X_v"]\nvalue = "C[v,v]"\nsame_time = "yes"'
    path.write_text(f'model = "deep_linear"\n[[claim]]\nname = "it"\n{body}\n', encoding="utf-8")
    with pytest.raises(ClaimError, match="same_time must be true or false"):
        load_claims(path)


def test_claims_cover_every_depth_both_kinds_of_data_and_all_blocks():
    files = {path.stem: load_claims(path) for path in project_claims() if path.stem.startswith("deep_linear")}
    chosen = [dict(file.choices) for file in files.values()]
    assert {choice["L"] for choice in chosen} == {1, 2, 3}
    assert {choice.get("data", "full_batch") for choice in chosen} == {"full_batch", "online"}
    for name in ("deep_linear_first_layer", "deep_linear_hidden_layer", "deep_linear_top_layer"):
        blocks = [c for c in files[name].claims if c.kind == "block" and c.name.startswith("block (")]
        assert len({(c.get("row"), c.get("column")) for c in blocks}) == 16
    for depth in (1, 2, 3):
        claims = files[f"deep_linear_training_{depth}"].claims
        assert sum(c.kind == "kernel" for c in claims) == 2 + 2 * depth
    departures = [c for file in files.values() for c in file.claims if c.paper and "+-" in c.evidence]
    assert len({c.evidence for c in departures}) >= 5
