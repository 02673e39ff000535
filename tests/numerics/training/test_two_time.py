"""Two-time functions as results: by hand, against simulation, and what holds for all of them."""

from __future__ import annotations

import json
from functools import cache

import deep_linear_by_hand
import numpy as np
import pytest
from agreement import too_far
from click.testing import CliRunner
from gaussian_by_hand import normal_nodes, recurrent_network
from simulated import block_of
from sympy import sign, sin, sqrt, tanh

import derive
from derive import (
    Eq,
    Model,
    axis,
    each,
    field,
    gaussian,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)
from derive.cli import main
from derive.cli.compare import EXIT_CODES
from derive.codegen import generate_files, solver_files
from derive.equations.needs import NOTHING
from derive.errors import DeriveError
from derive.inputs.problems import load_problem
from derive.pipeline import derive_model
from derive.program.forward_text import ForwardText
from derive.program.lowering import forward_pass
from derive.records.method import ClosureKind
from numerics.simulation.samples import simulate
from numerics.solver import load_solver, solve
from numerics.two_time import parsed

g = parameter("g", default=1.5, domain=positive)
dt = parameter("dt", default=0.2, domain=positive)
T = parameter("T", default=5, domain=whole_positive)
K = parameter("K", default=2, domain=whole_positive)
D, N = sectors("D", N=2)
t = training_clock("t", steps=T)


def recurrent(x_name: str = "x", law=tanh) -> Model:
    """x' = -x + g J phi(x), a field of its own for the product: quadrature, without a probe."""
    start, J = normal("start", D), gaussian("J", D, D, variance=1 / D)
    x, phi, h = field(x_name, D, t), field("phi", D, t), field("h", D, t)
    return Model(
        parameters=(g, dt, T),
        equations=[
            Eq(x(0), start),
            Eq(x(t + 1), (1 - dt) * x(t) + dt * g * h(t)),
            Eq(phi(t), law(x(t))),
            Eq(h(t), J @ phi(t)),
        ],
        observe={"square": mean(x(t) ** 2), "law": mean(phi(t) ** 2), "late": mean(x(t) * x(t - 3))},
    )


def remembering(law=tanh) -> Model:
    """The same with a matrix that learns, and with J^T beside J: sites remember, and have to be sampled."""
    start, J = normal("start", D), gaussian("J", D, D, variance=1 / D)
    x, phi, h, back = (field(name, D, t) for name in ("x", "phi", "h", "back"))
    return Model(
        parameters=(g, dt, T),
        equations=[
            Eq(x(0), start),
            Eq(x(t + 1), (1 - dt) * x(t) + dt * (h(t) + back(t))),
            Eq(phi(t), law(x(t))),
            Eq(h(t), J @ phi(t)),
            Eq(back(t), g / 2 * J.T @ phi(t)),
        ],
        observe={"square": mean(x(t) ** 2), "law": mean(phi(t) ** 2), "late": mean(x(t) * x(t - 3))},
    )


def labelled(law=lambda x: x) -> Model:
    """A layer with K labels that learns from its own activity; linear, or not."""
    clock, k = training_clock("t", steps=T), axis("k", K)
    start, W0 = normal("start", D, axes=k), gaussian("W0", N, D)
    x, y, z = field("x", D, clock, axes=k), field("y", N, clock, axes=k), field("z", N, clock, axes=k)
    W = weights("W", N, D, clock)
    return Model(
        parameters=(g, dt, T, K),
        equations=[
            Eq(x(0), start),
            Eq(x(clock + 1), x(clock) - dt * W(clock).T @ z(clock) / sqrt(D)),
            Eq(y(clock), W(clock) @ x(clock) / sqrt(D)),
            Eq(z(clock), law(y(clock))),
            Eq(W(0), W0),
            Eq(W(clock + 1), W(clock) + dt * g / sqrt(D) * outer(z(clock), x(clock))),
        ],
        observe={"square": each(mean(x(clock) ** 2)), "late": each(mean(x(clock) * x(clock - 3)))},
        probe=spectrum(W(T).T @ W(T) / N),
    )


MODELS = {
    "quadrature": recurrent,
    "sampled": remembering,
    "exact with labels": labelled,
    "sampled with labels": lambda: labelled(tanh),
    "exact": lambda: remembering(lambda x: x),
}
KERNELS = {
    "quadrature": ("C[x,x]", "C[phi,x]", "C[h,start]", "R[x,h]", "R[phi,x]", "R[x,start]"),
    "sampled": ("C[x,phi]", "C[x,start]", "R[x,h]", "R[phi,x]", "R[back,phi]", "R[x,start]"),
    "exact with labels": ("C[x,x]", "C[y,z]", "C[x,start]", "R[z,y]", "R[x,x]", "R[x,start]"),
    "sampled with labels": ("C[x,x]", "C[y,z]", "C[x,start]", "R[z,y]", "R[x,x]", "R[x,start]"),
    "exact": ("C[x,phi]", "C[x,start]", "R[x,h]", "R[phi,x]", "R[back,phi]", "R[x,start]"),
}


def values_of(model: Model, **changes) -> dict:
    return {p.name: p.default for p in model.parameters} | changes


def solved(model: Model, two_time: tuple[str, ...] = (), samples: int = 20_000, **changes):
    solver = load_solver(solver_files(model))
    return solve(solver, values_of(model, **changes), samples=samples, kernels=tuple(map(parsed, two_time)))


@cache
def theory_of(name: str):
    return solved(MODELS[name](), KERNELS[name])


def two_time(solution, text: str):
    return solution.two_time[parsed(text)]


# -- against what is written by hand


@pytest.mark.long_cases("full_batch")
@pytest.mark.slow
@pytest.mark.parametrize("data", ["full_batch", "online"])
def test_kernels_of_a_linear_network_are_those_by_hand(data):
    problem = load_problem("deep_linear", ("L=2", f"data={data}", "T=5", "C=2", "nu=1.5", "gamma0=2"))
    wanted = [f"C[{f},{f}]" for f in ("h0", "h1", "h2", "g1", "g2", "v")]
    wanted += ["R[g1,J0_h0]", "R[g2,J1_h1]", "R[h1,J1T_g2]", "R[h0,J0T_g1]"]
    solver = load_solver(solver_files(problem.model))
    found = solve(solver, problem.inputs, kernels=tuple(map(parsed, wanted)))
    given = {k: v for k, v in problem.values.items() if k in ("alpha", "nu", "gamma0", "eta", "sigma", "T", "C")}
    hand = deep_linear_by_hand.solve(L=2, data=data, param="mup", **given)
    kernels = hand.kernels
    expected = {f"C[h{k},h{k}]": kernels.C_h[k] for k in range(3)} | {"C[v,v]": kernels.C_v}
    expected |= {f"C[g{k},g{k}]": kernels.C_g[k] for k in (1, 2)}
    expected |= {"R[g1,J0_h0]": kernels.R_gu[1], "R[g2,J1_h1]": kernels.R_gu[2], "R[h1,J1T_g2]": kernels.R_hr[1]}
    expected |= {"R[h0,J0T_g1]": kernels.R_hr[0] / hand.problem.gamma}
    assert set(expected) == set(wanted)
    for text, kernel in expected.items():
        result = two_time(found, text)
        assert result.axes == ("t", "label of a", "s", "label of b") and result.exact
        whole = np.nan_to_num(result.values).reshape(12, 12)
        assert np.allclose(whole, kernel, rtol=1e-9, atol=1e-10), text


@pytest.mark.slow
def test_kernels_of_a_recurrent_network_are_those_by_hand():
    found = solved(recurrent(), ("C[x,x]", "R[x,h]", "R[x,x]", "R[phi,h]"), T=12)
    correlation = recurrent_network(1.5, 0.2, 1.0, 12)
    assert np.allclose(two_time(found, "C[x,x]").values, correlation, rtol=0, atol=1e-9)
    z, w = normal_nodes(160)
    slope = [float(w @ np.cosh(np.sqrt(v) * z) ** -2) for v in np.diag(correlation)]
    lag = np.subtract.outer(np.arange(13), np.arange(13))
    kept = np.where(lag >= 0, 0.8 ** np.maximum(lag, 0), np.nan)
    answer = np.where(lag >= 1, 0.3 * 0.8 ** np.maximum(lag - 1, 0), np.where(lag == 0, 0.0, np.nan))
    assert np.allclose(two_time(found, "R[x,x]").values, kept, atol=1e-12, equal_nan=True)
    assert np.allclose(two_time(found, "R[x,h]").values, answer, atol=1e-12, equal_nan=True)
    assert np.allclose(two_time(found, "R[phi,h]").values, np.array(slope)[:, None] * answer, atol=1e-9, equal_nan=True)


# -- against each other, and against simulation


def sampled_solver(model: Model):
    """A solver that samples although it need not."""
    files = generate_files(model)
    derivation = derive_model(model)
    program = forward_pass(derivation.layout, NOTHING, ClosureKind.SAMPLED)
    files["training.py"] = ForwardText(program, "numerics.runtime").module()
    files["__init__.py"] = files["__init__.py"].replace("exact=True", "exact=False")
    return load_solver(files)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadrature", "exact"])
def test_sampled_kernels_are_the_exact_ones_within_their_errors(name):
    wanted = tuple(map(parsed, KERNELS[name]))
    found = solve(sampled_solver(MODELS[name]()), values_of(MODELS[name]()), samples=20_000, kernels=wanted)
    scores, scattered = [], []
    for key in wanted:
        one, two = theory_of(name).two_time[key], found.two_time[key]
        there = ~np.isnan(one.values)
        assert one.exact and not two.exact and np.array_equal(there, ~np.isnan(two.values)), key
        difference, error = (two.values - one.values)[there], two.errors[there]
        assert np.all(error < 0.02), key
        scores += (difference / np.maximum(error, 1e-6)).tolist()
        scattered += (difference[error > 1e-6] / error[error > 1e-6]).tolist()
    assert np.max(np.abs(scores)) < 6  # second moments of the draws are exact, and so is what is linear in them
    assert bool(scattered) == (name == "quadrature") and (not scattered or 0.2 < np.std(scattered) < 1.8)


@pytest.mark.long_cases("exact with labels", "sampled", "sampled with labels")
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_kernels_are_those_of_simulations(name, simulation_seed):
    wanted = tuple(map(parsed, KERNELS[name]))
    theory = theory_of(name)
    block = block_of(
        f"two-time, {name}", theory.solver, theory, simulation_seed, ((60, 96), (180, 48)), two_time=wanted
    )
    assert sum("[" in c.name for c in block.comparisons) > 20
    assert not too_far([block])


# -- what holds for all


@pytest.mark.long_cases("sampled", "sampled with labels")
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_correlations_are_symmetric_and_hold_the_observables(name):
    solution = theory_of(name)
    kernel = solution.C["x", "x"]
    labels = [axis for axis in kernel.axes if "label" in axis]
    table = np.moveaxis(kernel.values, (0, 2), (0, 1)) if labels else kernel.values
    flipped = table.transpose(1, 0, 3, 2) if labels else table.T
    assert np.allclose(table, flipped, rtol=1e-12, atol=1e-12)
    diagonal = np.einsum("ttcc->tc", table) if labels else np.diag(table)
    assert np.allclose(diagonal, np.array(solution.observables["square"], float), rtol=1e-9, atol=1e-12)
    late = np.array(solution.observables["late"], float)
    assert np.all(np.isnan(late[:3])) and np.all(np.isfinite(late[3:]))
    lagged = [np.einsum("cc->c", table[k, k - 3]) if labels else table[k, k - 3] for k in range(3, len(table))]
    assert np.allclose(lagged, late[3:], rtol=1e-9, atol=1e-12)
    if solution.errors is not None:
        assert np.isnan(solution.errors["late"][0]).all()
        spread = np.einsum("tctc->tc", kernel.errors) if labels else np.diag(kernel.errors)
        assert np.allclose(spread, np.array(solution.errors["square"], float), rtol=1e-6, atol=1e-9)
    one, other = solution.C["x", "start"].values, solution.C["start", "x"].values
    assert np.allclose(one, other.transpose(1, 2, 0) if labels else other, rtol=1e-9, atol=1e-12)


@pytest.mark.long_cases("quadrature")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadrature", "exact", "exact with labels"])
def test_more_steps_leave_earlier_times_as_they_are(name):
    longer = solved(MODELS[name](), KERNELS[name], T=8)
    for text in KERNELS[name]:
        short, long = two_time(theory_of(name), text), two_time(longer, text)
        cut = tuple(slice(n) for n in short.values.shape)
        assert np.allclose(long.values[cut], short.values, rtol=1e-9, atol=1e-10, equal_nan=True), text


@pytest.mark.long
@pytest.mark.slow
def test_names_do_not_matter():
    one, two = solved(recurrent(), ("R[phi,x]",)), solved(recurrent("another_name"), ("R[phi,another_name]",))
    assert np.array_equal(two_time(one, "R[phi,x]").values, two_time(two, "R[phi,another_name]").values, equal_nan=True)


@pytest.mark.long
@pytest.mark.slow
def test_a_response_is_null_before_its_source_and_of_its_own_source_one():
    for name in MODELS:
        kernel = theory_of(name).R["x", "x"]
        if "label of a" in kernel.axes:
            first, spread = kernel.values[:, 0, :, 0], None if kernel.exact else kernel.errors[:, 0, :, 0]
        else:
            first, spread = kernel.values, kernel.errors
            assert kernel.as_dict()["values"][0][-1] is None
        assert np.array_equal(np.isnan(first), np.triu(np.ones_like(first), 1) > 0)
        assert np.all(np.abs(np.diag(first) - 1.0) <= 1e-9 + (0.0 if spread is None else 6 * np.diag(spread)))


@pytest.mark.slow
def test_kernels_of_a_model_without_probe_that_nothing_needs():
    found = solved(recurrent())
    assert found.order == {} and found.two_time == {}
    assert set(found.C) == {(a, b) for a in ("x", "phi", "h", "start") for b in ("x", "phi", "h", "start")}
    assert np.allclose(found.C["start", "start"].values, 1.0) and found.C["start", "start"].axes == ()


# -- before the start


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exact", "exact with labels", "sampled"])
def test_a_correlation_with_a_normal_start_is_the_response_to_it(name):
    """Stein's lemma: <x(t) start> is the mean slope of x(t) by start."""
    correlation, response = (two_time(theory_of(name), f"{kind}[x,start]") for kind in "CR")
    bound = 1e-9 if correlation.exact else 6 * np.hypot(correlation.errors, response.errors) + 1e-9
    assert np.all(np.abs(correlation.values - response.values) <= bound) and np.all(bound < 0.05)


@pytest.mark.long_cases("sampled with labels")
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_observables_of_simulations_are_null_before_the_lag(name):
    model = MODELS[name]()
    found = simulate(theory_of(name).solver, values_of(model), 30, 2)
    assert np.all(np.isnan(found.observables["late"][:, :3])) and np.all(np.isfinite(found.observables["late"][:, 3:]))
    assert np.all(np.isfinite(found.observables["square"]))


# -- refusals


def test_what_there_is_not_is_refused_with_what_there_is():
    found = theory_of("exact with labels")
    for ask, told in (
        (lambda: found.C["x", "nothing"], "no field nothing; there are x"),
        (lambda: found.C["y", "x"], "they share no site; products of random matrices with x on N are W0_x"),
        (lambda: found.C["x"], "name two fields"),
        (lambda: parsed("C(x,x)"), "write C[a,b] or R[a,b]"),
    ):
        with pytest.raises(KeyError) as caught:
            ask()
        assert isinstance(caught.value, DeriveError) and told in str(caught.value)
    assert found.R["y", "x"] is found.R["y", "W0_x"]  # what y can feel of x is what the one matrix makes of it there
    with pytest.raises(DeriveError, match="exists only in the derivation"):
        simulate(found.solver, values_of(labelled()), 30, 2, two_time=(("R", "y", "W0_x"),))


@pytest.mark.long
@pytest.mark.slow
def test_responses_of_laws_that_jump_are_refused_where_they_are_sampled():
    found = solved(remembering(sign), samples=2000)
    assert np.allclose(np.diag(found.C["phi", "phi"].values), 1.0)
    with pytest.raises(DeriveError, match="a law jumps"):
        found.R["x", "h"]


@pytest.mark.long
@pytest.mark.slow
def test_a_field_that_quadrature_writes_out_has_no_response():
    start, J = normal("start", D), gaussian("J", D, D, variance=1 / D)
    x, y, z, h = (field(name, D, t) for name in "xyzh")
    equations = [Eq(x(0), start), Eq(x(t + 1), x(t) / 2 + h(t)), Eq(y(t), tanh(x(t))), Eq(z(t), y(t) ** 2 + y(t))]
    found = solved(Model(parameters=(T,), equations=[*equations, Eq(h(t), J @ z(t))], observe={"a": mean(x(t) ** 2)}))
    assert found.solver.quadrature
    assert np.all(np.isfinite(found.C["z", "y"].values))
    with pytest.raises(DeriveError, match="nonlinear in y"):
        found.R["z", "y"]


# -- the command line


def run(*arguments: str, exit_codes: tuple[int, ...] = (0,)) -> dict:
    result = CliRunner().invoke(main, [*arguments, "--json"])
    assert result.exit_code in exit_codes, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_commands_give_kernels():
    model = ("anti_hebbian", "T=4")
    asked = ("--kernel", "C[v,v]", "--kernel", "R[v, start]")
    theory = run("solve", *model, *asked)["kernels"]
    assert theory["C[v,v]"]["axes"] == ["t", "s"] and theory["R[v,start]"]["axes"] == ["t"]
    assert theory["C[v,v]"]["errors"] is None and theory["C[v,v]"]["values"][0][0] == pytest.approx(1.0)
    simulated = run("simulate", *model, *asked, "--size", "50", "--seeds", "3")["kernels"]
    assert np.shape(simulated["C[v,v]"]["mean"]) == np.shape(simulated["C[v,v]"]["stderr"]) == (5, 5)
    few = EXIT_CODES["cannot tell"]
    both = run("compare", *model, *asked, "--size", "50", "--seeds", "3", exit_codes=(0, few))
    assert both["kernels"]["C[v,v]"]["values"] == theory["C[v,v]"]["values"]
    assert sum(row["quantity"].startswith("C[v,v](") for row in both["rows"]) == 6
    shown = CliRunner().invoke(main, ["solve", *model, *asked])
    assert shown.exit_code == 0 and "s = 4" in shown.output
    refused = CliRunner().invoke(main, ["solve", *model, "--kernel", "C[v,w]"])
    assert refused.exit_code == 2 and "there is no field w" in refused.output


def test_a_simulated_response_leaves_out_what_a_site_does_to_all_others():
    """x(t + 1) = x(t)/2 + mean(x(t)): a site answers to itself by 1/2 per step, and the mean to one site by 1/D."""
    D, T = sectors("D"), parameter("T", default=2, domain=whole_positive)
    t = training_clock("t", steps=T)
    x = field("x", D, t)
    model = Model(
        parameters=(T,),
        equations=[Eq(x(0), normal("g", D)), Eq(x(t + 1), x(t) / 2 + mean(x(t)))],
        observe={"square": mean(x(t) ** 2)},
    )
    drawn = simulate(load_solver(solver_files(model)), {"T": 2}, 400, 2, two_time=(("R", "x", "x"),))
    values = np.nan_to_num(np.mean(drawn.two_time["R", "x", "x"], axis=0).squeeze())  # none before its cause
    assert np.allclose(values, [[1, 0, 0], [1 / 2, 1, 0], [1 / 4, 1 / 2, 1]], atol=0.1)


@pytest.mark.slow
def test_correlations_of_laws_do_not_depend_on_fields_of_other_sectors_between_them():
    """<tanh(2^t g) sin(2^s g)> at all pairs of times, with a field of another sector declared between the two."""
    (D, N), T = sectors("D", N=2), parameter("T", default=1, domain=whole_positive)
    t = training_clock("t", steps=T)
    x, u, w, h, v = *(field(name, D, t) for name in "xuw"), *(field(name, N, t) for name in "hv")
    model = Model(
        parameters=(T,),
        equations=[
            Eq(x(0), normal("g", D)),
            Eq(x(t + 1), 2 * x(t)),
            Eq(u(t), tanh(x(t))),
            Eq(h(t), gaussian("W", N, D) @ x(t) / sqrt(D)),
            Eq(v(t), tanh(h(t))),
            Eq(w(t), sin(x(t))),
        ],
        observe={"v": mean(v(t) ** 2)},
    )
    found = np.squeeze(derive.load(model).solve(T=1).C["u", "w"])
    g = np.linspace(-10, 10, 4001)
    shares = np.exp(-(g**2) / 2) / np.sum(np.exp(-(g**2) / 2))
    expected = [[shares @ (np.tanh(2**k * g) * np.sin(2**j * g)) for j in (0, 1)] for k in (0, 1)]
    assert np.allclose(found, expected, atol=1e-8)
