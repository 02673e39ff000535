"""The Python front door: verbs, results that live, one validation for Python and the command line."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import logging
import pickle
import shlex
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner

import derive
from derive.api.example import SPIKE
from derive.cli import main
from derive.cli.problem import AsTyped
from derive.errors import DeriveError, NumericalError, ParameterError
from derive.results.saving import Pool
from numerics.options import OWN, VERBS, options_of
from numerics.support.formatting import grouped, shown_number

NETWORK = {"nu": 2, "gamma0": 6, "eta": 0.1, "T": 6}


@pytest.fixture(scope="module")
def network():
    return derive.load("deep_linear", L=1, data="online")


@pytest.fixture(scope="module")
def solution(network):
    return network.solve(NETWORK, kernels=["C[h0,h0]"])


@pytest.fixture(scope="module")
def compared(network, solution):
    return derive.compare(solution, network.simulate(NETWORK, size=60, seeds=4))


def own_model(name="seed", **changes):
    """A model that is declared in Python, with a parameter that is called like an option."""
    seed = derive.parameter(name, default=changes.get("default", 2.0), domain=derive.positive)
    D = derive.sectors("D")
    M, v = derive.goe("M", D), derive.normal("v", D)
    return derive.Model(
        name="mine", parameters=(seed,), equations=[], probe=derive.spectrum(M + seed / D * derive.outer(v, v))
    )


@pytest.mark.slow
def test_a_declaration_that_is_loaded_again_is_not_compiled_again():
    """The same declaration gives the same solver; another default gives another one."""
    one, again, other = (derive.load(own_model(default=x)).solver for x in (2.0, 2.0, 3.0))
    assert one is again is not other


# -- results


@pytest.mark.slow
def test_a_solution_has_arrays_that_cannot_be_written(solution):
    assert solution and solution.outliers.shape == (1,) and solution["test_loss"].shape == (7,)
    assert solution.C["h0", "h0"].values.shape[0] == 7
    with pytest.raises(ValueError, match="read-only"):
        solution["test_loss"][0] = 1.0
    with pytest.raises(ParameterError, match="test_loss"):
        solution["tset_loss"]
    with pytest.raises(ParameterError, match="layers are 0, ntk"):
        solution.layer(7)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pickle", "result.nc", "result.zarr"])
def test_results_live(way, solution, compared, network, tmp_path):
    sweep = network.sweep(eta=[0.1, 1e90], T=3)
    for result in (solution, compared.simulation, compared, sweep):
        if way == "pickle":
            back = pickle.loads(pickle.dumps(result))
        else:
            back = derive.open(result.save(tmp_path / way))
            assert [path.name for path in tmp_path.iterdir()] == [way]
        assert type(back) is type(result) and str(back) == str(result)
        assert Pool().encoded(back) == Pool().encoded(result)  # every number, every name
        assert back == result and back != solution.layer()
    assert np.array_equal(back.points[0].density([1.0]), sweep.points[0].density([1.0]))
    assert not back.points[1] and "diverged" in back.points[1].trouble[0]


def test_results_are_equal_where_their_numbers_and_their_making_are():
    m = derive.load(SPIKE)
    one, same, other = m.solve(strength=2), m.solve(strength=2), m.solve(strength=2.5)
    assert one == same and one.layer() == same.layer() and one != other and one.layer() != other.layer()
    assert one != m.solve(strength=2, certify=False) and one != "a solution"
    with pytest.raises(ValueError, match="read-only"):
        one.outliers[0] = 3.0


def test_zarr_is_refused_where_it_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "thesis.tex").write_text("years of work")
    command = ["solve", "spiked_wigner", "gamma0=2", "--out"]
    told = CliRunner().invoke(main, [*command, str(tmp_path / "mine.zarr")])
    assert told.exit_code == 2 and "choose another name" in told.stderr
    with pytest.raises(DeriveError, match="is not a result"):
        derive.open(tmp_path / "mine.zarr")
    assert (tmp_path / "mine.zarr" / "thesis.tex").read_text() == "years of work"
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "derive.support.extras.importlib.util.find_spec", lambda name: None if name == "zarr" else find(name)
    )
    told = CliRunner().invoke(main, [*command, str(tmp_path / "run.zarr")])
    assert told.exit_code == 2 and "two-level-dmft[zarr]" in told.stderr and not (tmp_path / "run.zarr").exists()


@pytest.mark.slow
def test_what_was_saved_without_a_two_time_function_says_so(network, tmp_path):
    back = derive.open(network.solve(T=2).save(tmp_path / "run.nc"))
    with pytest.raises(ParameterError, match="solve again"):
        _ = back.C["h0", "h0"]


def test_a_file_that_is_none_of_ours_is_refused(tmp_path):
    for name, content in (("text.nc", b"no file of ours"), ("empty.nc", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DeriveError, match="not a result"):
            derive.open(tmp_path / name)
    with pytest.raises(DeriveError, match="there is no file"):
        derive.open(tmp_path / "nothing.nc")
    with pytest.raises(DeriveError, match=r"\.nc"):
        derive.load("spiked_wigner").solve().save(tmp_path / "run.txt")


@pytest.mark.slow
def test_a_saved_result_cut_off_is_refused(solution, tmp_path):
    whole = solution.save(tmp_path / "run.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DeriveError):
        derive.open(tmp_path / "cut.nc")


@pytest.mark.slow
def test_a_result_knows_how_it_was_made(solution, network):
    made = solution.made
    assert made.setting == "deep_linear" and made.parameters["gamma0"] == 6 and made.parameters["L"] == 1
    assert "family(" in made.declaration and made.versions["jax"] == jax.__version__
    arguments = shlex.split(made.command)[1:]
    told = CliRunner().invoke(main, [*arguments, "--json"])
    assert told.exit_code == 0 and f"{solution.outliers[0]:.12f}"[:12] in told.stdout


def test_a_diverged_solution_is_false_and_has_no_numbers(network):
    bad = network.solve(eta=1e90, T=3)
    assert not bad and "diverged" in str(bad)
    for ask in (lambda: bad.outliers, lambda: bad["test_loss"], lambda: bad.C):
        with pytest.raises(NumericalError, match="diverged"):
            ask()


@pytest.mark.slow
def test_trees_and_tables_have_labels(solution, compared, network):
    tree = compared.to_xarray()
    assert set(tree.children) == {"theory", "simulation"} and tree["theory/layer_0"]["outliers"].dims == ("rank",)
    assert tree["simulation"]["test_loss"].dims == ("seed", "time")
    frame = solution.to_frame()
    assert frame.index.name == "time" and frame["test_loss"].to_numpy() == pytest.approx(solution["test_loss"])
    assert {"theory", "simulation", "difference"} <= set(compared.to_frame().columns)
    table = network.sweep(nu=[1, 2], eta=[0.1, 1e90], T=3, layer=0).to_xarray()
    assert table["test_loss"].dims == ("nu", "eta", "time") and np.isnan(table["test_loss"].sel(eta=1e90)).all()
    assert "diverged" in str(table["trouble"].sel(nu=1, eta=1e90).item())


@pytest.mark.slow
def test_a_sweep_has_the_points_that_solve_gives(network):
    sweep = network.sweep(nu=[0.5, 2.0], T=[2, 4], layer=0)
    assert len(sweep) == 4 and list(sweep.axes) == ["nu", "T"]
    one = network.solve(nu=2.0, T=4, layer=0)
    assert sweep.at(nu=2.0, T=4)["test_loss"] == pytest.approx(one["test_loss"], rel=1e-12)


@pytest.mark.slow
def test_pictures_are_drawn(solution, compared, network, tmp_path):
    sweep = network.sweep(nu=[1, 2], eta=[0.05, 0.1], T=2, layer=0)
    for number, figure in enumerate((solution.plot(), compared.plot(), compared.simulation.plot(), sweep.plot())):
        figure.savefig(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 5000


def test_theory_and_simulation_of_different_values_are_not_compared(network, solution):
    with pytest.raises(ParameterError, match="gamma0"):
        derive.compare(solution, network.simulate({**NETWORK, "gamma0": 5}, size=20, seeds=2))


def test_whatever_is_given_shows_itself_in_a_few_lines(solution, compared, network):
    given = (
        network,
        network.model,
        network.derivation,
        solution,
        solution.layer(0),
        solution.C,
        solution.C["h0", "h0"],
        solution.made,
        compared,
        compared.simulation,
    )
    for shown in given:
        assert len(repr(shown).splitlines()) < 40 and len(repr(shown)) < 4000, type(shown)
        assert "array(" not in repr(shown)
    for shown, how in (
        (network, "markdown"),
        (network.model, "markdown"),
        (solution, "html"),
        (solution.layer(0), "html"),
        (compared, "html"),
    ):
        assert getattr(shown, f"_repr_{how}_")()
    assert "outlier above the bulk" in repr(solution.layer(0)) and "C[h0,h0]" in repr(solution.C["h0", "h0"])
    assert solution.made.command in repr(solution.made)


# -- models declared in Python


def test_a_model_declared_in_python():
    m = derive.load(own_model())
    found = m.solve({"seed": 3.0}, seed=1)
    assert found.outliers == pytest.approx([3 + 1 / 3]) and found.made.command is None
    assert "v v^T" in found.made.declaration
    with pytest.raises(ParameterError, match="option of solve and a parameter"):
        m.solve(seed=3.0)
    assert pickle.loads(pickle.dumps(found)).outliers == pytest.approx(found.outliers)


def test_the_derivation_is_at_hand(network):
    for name in ("action", "saddle", "single_site", "order", "blocks", "pencil", "bulk"):
        record = getattr(network.derivation, name)
        assert "$" in record._repr_markdown_() and len(repr(record).splitlines()) < 6
        section = record.sections()[0]
        assert section["title"] in str(record) and section["statements"][0]["left"]["text"] in str(record)


# -- one validation

BAD = [
    ("deep_linear", {"nuu": "2"}, "did you mean nu"),
    ("deep_linear", {"nu": "-1"}, "out of range"),
    ("deep_linear", {"T": "2.5"}, "whole number"),
    ("deep_linear", {"T": "0"}, "out of range"),
    ("deep_linear", {"nu": "nan"}, "not finite"),
    ("deep_linear", {"nu": "two"}, "not a number"),
    ("deep_linear", {"L": "0"}, "out of range"),
    ("deep_linear", {"data": "offline"}, "full_batch or online"),
    ("deep_linear", {"layer": "9"}, "layers are"),
    ("anti_hebbian", {"dt": "-0.1"}, "out of range"),
    ("no_such_setting", {}, "there is no setting"),
    ("spiked_wigner", {"gamma0": ""}, "not a number"),
    ("spiked_wigner", {"gamma0": "1/0"}, "not a number"),
    ("spiked_wigner", {"gamma0": "1e999"}, "not finite"),
    ("spiked_wigner", {"data": "x.npz"}, "no parameter"),
    ("missing.py", {}, "there is no file"),
]
BAD_OPTIONS = [
    ("solve", "samples", "0"),
    ("solve", "samples", "many"),
    ("solve", "rank", "1"),
    ("solve", "seed", "-1"),
    ("solve", "kernels", "C[x"),
    ("simulate", "size", "0"),
    ("simulate", "size", "2.5"),
    ("simulate", "size", "1000000000"),
    ("simulate", "seeds", "0"),
    ("simulate", "seeds", "few"),
    ("simulate", "backend", "torch"),
    ("simulate", "eigenvalues", "some"),
    ("compare", "seeds", "1"),
    ("expand", "order", "-1"),
    ("expand", "order", "21"),
    ("expand", "of", "egde"),
    ("expand", "variable", "1/x"),
    ("verify", "claims", "missing.toml"),
    ("stable_rate", "of", "x"),
]
FLAGS = {"kernels": "kernel", "variable": "in", "stable_rate": "stability"}


@pytest.mark.parametrize(("target", "values", "word"), BAD)
@pytest.mark.parametrize("verb", ["solve", "simulate", "compare"])
def test_python_and_the_command_line_refuse_alike(verb, target, values, word):
    told = CliRunner().invoke(main, [verb, target, *(f"{name}={value}" for name, value in values.items())])
    assert told.exit_code == 2 and told.stdout == ""
    with pytest.raises(DeriveError, match=word) as caught:
        getattr(derive.load(target), verb)(**values)
    assert told.stderr == f"error: {caught.value}\n"


@pytest.mark.parametrize(("verb", "option", "value"), BAD_OPTIONS)
def test_python_and_the_command_line_refuse_the_same_options(verb, option, value):
    flag = f"--{FLAGS.get(option, option)}"
    told = CliRunner().invoke(main, [FLAGS.get(verb, verb), "spiked_wigner", flag, value])
    assert told.exit_code == 2 and told.stdout == ""
    with pytest.raises(DeriveError) as caught:
        getattr(derive.load("spiked_wigner"), verb)(**{option: AsTyped().convert(value, None, None)})
    assert told.stderr == f"error: {caught.value.on_the_command_line}\n"
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    "values", [{"nu": [1, 2]}, {"nu": None}, {"nu": True}, {"nu": 1j}, {"nu": np.array([1.0])}, {"nu": float("inf")}]
)
def test_python_values_that_are_no_number_are_refused(network, values):
    with pytest.raises(ParameterError, match="nu"):
        network.solve(**values)


def test_inputs_are_what_the_verbs_take(network):
    assert network.inputs(nu="1/2")["nu"] == network.solve(nu="1/2", T=1).parameters["nu"] == 0.5
    assert derive.load("wide_network").inputs(L=1, P=3, D=2, T=4)["x"].shape[-2:] == (3, 2)
    assert "family(" in network.declaration


def test_numbers_of_any_kind_are_taken(network):
    from fractions import Fraction

    found = {
        network.solve(nu=nu, T=np.int64(2), layer=0)["test_loss"][-1].item()
        for nu in (0.5, np.float32(0.5), Fraction(1, 2), "1/2", np.array(0.5))
    }
    assert len(found) == 1


def test_the_same_calls_give_the_same_numbers(network, solution):
    import json

    arguments = [f"{name}={value}" for name, value in NETWORK.items()]
    told = CliRunner().invoke(main, ["solve", "deep_linear", "L=1", "data=online", *arguments, "--json"])
    data = json.loads(told.stdout)
    assert data["outliers"] == solution.outliers.tolist() and data["test_loss"] == solution["test_loss"].tolist()


# -- functions


@pytest.mark.long_cases("deep_linear-of1-at1-fixed1", "coupled_spikes-of2-at2-fixed2")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "of", "at", "fixed"),
    [
        ("spiked_wigner", ["gamma0"], (2.0,), {}),
        ("deep_linear", ["gamma0", "eta"], (6.0, 0.1), {"L": 1, "T": 5, "nu": 2, "C": 2, "layer": 0}),
        ("coupled_spikes", ["theta", "kappa"], (1.8, 0.2), {"S": 2}),
    ],
)
def test_an_outlier_is_a_differentiable_function(target, of, at, fixed):
    """Against solve, and against differences of it."""
    m = derive.load(target)
    outlier = m.function("outlier", of=of, **fixed)

    def solved(*values):
        return m.solve({**fixed, **dict(zip(of, values, strict=True))}).outliers[0]

    with jax.enable_x64(True):
        value, slopes = jax.value_and_grad(outlier, argnums=tuple(range(len(of))))(*at)
    assert float(value) == pytest.approx(solved(*at), rel=1e-10)
    for k, slope in enumerate(slopes):
        moved = [tuple(x + h * (j == k) for j, x in enumerate(at)) for h in (1e-5, -1e-5)]
        assert float(slope) == pytest.approx((solved(*moved[0]) - solved(*moved[1])) / 2e-5, rel=1e-5)


@pytest.mark.long
@pytest.mark.slow
def test_an_outlier_is_mapped_and_compiled_like_any_function():
    """In single precision unless the caller asks for double."""
    outlier = derive.load("spiked_wigner").function("outlier", of="gamma0")
    many = jax.jit(jax.vmap(outlier))(jnp.array([2.0, 3.0, 1e-3]))
    assert many.dtype == jnp.float32
    np.testing.assert_allclose(many[:2], [2 + 1 / 2, 3 + 1 / 3], rtol=1e-6)


@pytest.mark.slow
def test_a_second_value_and_a_second_slope_compile_nothing(caplog):
    outlier = derive.load(own_model("size")).function("outlier", of="size")  # which no other test has compiled
    slope = jax.grad(outlier)

    def compilations(at):
        caplog.clear()
        with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
            assert float(slope(at)) == pytest.approx(1 - 1 / at**2, rel=1e-5)  # of gamma0 + 1/gamma0
            assert float(outlier(at)) == pytest.approx(at + 1 / at, rel=1e-6)
        return [record.getMessage() for record in caplog.records if record.getMessage().startswith("Compiling")]

    assert compilations(2.0)
    assert compilations(3.0) == []
    assert np.isnan(slope(-2.0)), "outside its domain a function that JAX traces has no number"


@pytest.mark.slow
def test_below_the_threshold_there_is_no_outlier():
    assert np.isnan(derive.load("spiked_wigner").function("outlier", of="gamma0")(0.5))


@pytest.mark.slow
def test_observables_and_edges_are_functions(network):
    loss = network.function("test_loss", of="eta", T=4)
    assert loss(0.1) == pytest.approx(network.solve(eta=0.1, T=4)["test_loss"], rel=1e-5)
    assert jax.jacobian(loss)(0.1).shape == (5,)
    edge = network.function("edge", of="nu", layer=0)
    assert float(edge(2.0)) == pytest.approx((1 + 2**-0.5) ** 2, rel=1e-6)
    for quantity, of, word in (
        ("loss", "eta", "there are outlier"),
        ("edge", "T", "whole number"),
        ("edge", "x", "of="),
    ):
        with pytest.raises(ParameterError, match=word):
            network.function(quantity, of=of)


# -- what pictures are made of


def test_a_matrix_is_singular_at_the_outliers_alone(network, solution):
    """Of a layer, and of one whose diagonal carries an observable."""
    for layer in solution.layers:
        (z,) = layer.outliers
        matrices = solution.a_matrix([z, z + 0.1], layer.label)
        assert matrices.shape[0] == 2 and matrices.shape[1] == matrices.shape[2]
        at_zero, beside = (np.linalg.svd(matrix, compute_uv=False)[-1] for matrix in matrices)
        assert at_zero < 1e-12 and beside > 1e-3
    for wrong in (solution.bulk_edges[0].mean(), np.nan):
        with pytest.raises(ParameterError, match="outside the bulk"):
            solution.a_matrix(wrong)
    with pytest.raises(ParameterError, match="solve again"):
        pickle.loads(pickle.dumps(solution)).a_matrix(9.0)
    with pytest.raises(NumericalError, match="no spikes"):
        derive.load("extensive_two_layer").solve().a_matrix(99.0)


@pytest.mark.slow
def test_the_outermost_eigenvalue_of_a_finite_matrix():
    """By hand for the semicircle, whose density is sqrt(distance) / pi at either edge."""
    layer = derive.load("spiked_wigner").solve(gamma0=0.5).layer()
    shift = 1.2065335745820 * 1000 ** (-2 / 3)
    assert layer.outermost(1000) == pytest.approx(2 - shift, abs=1e-6)
    assert layer.outermost(1000, lower=True) == pytest.approx(-2 + shift, abs=1e-6)
    square = derive.load("deep_linear").solve(T=1, layer=1).layer()
    with pytest.raises(NumericalError, match="edge 0 is not a square root"):  # 1 / sqrt(distance) at zero
        square.outermost(1000, lower=True)


def test_the_resolvent_of_the_bulk():
    """By hand for the semicircle."""
    layer = derive.load("spiked_wigner").solve(gamma0=0.5).layer()
    for z in (2.5, -3.0, 0.5 + 0.5j):
        g = layer.resolvent(z)
        assert abs(g**2 - z * g + 1) < 1e-9 and abs(g) < 1
    with pytest.raises(ParameterError, match="off the real axis"):
        layer.resolvent([1.0, 3.0])


def test_spectra_are_taken_when_they_are_asked_for(network):
    bare = network.solve(NETWORK, layer="none")
    assert bare.layers == () and np.array_equal(bare["test_loss"], network.solve(NETWORK)["test_loss"])
    with pytest.raises(ParameterError, match="layer=none"):
        _ = bare.outliers
    assert network.simulate(NETWORK, size=20, seeds=2, layer="none").layers == ()
    every = network.simulate(NETWORK, size=20, seeds=2, path=True).layer(0)
    some = network.simulate(NETWORK, size=20, seeds=2, path=[4, 1]).layer(0)
    assert some.times == (1, 4)
    assert np.array_equal(some.ends, [[seed[1], seed[4]] for seed in every.ends])
    for wrong in ([7], [-1], [0.5]):
        with pytest.raises(ParameterError, match="whole numbers from 0 to 6"):
            network.simulate(NETWORK, size=20, seeds=2, path=wrong)


@pytest.mark.slow
def test_the_largest_stable_rate_is_that_of_the_command_line(network):
    import json

    values = {"nu": 2, "alpha": 50, "T": 2}
    found = network.stable_rate(values, curvature="none")
    arguments = ["L=1", "data=online", *(f"{name}={value}" for name, value in values.items())]
    told = CliRunner().invoke(main, ["stability", "deep_linear", *arguments, "--curvature", "none", "--json"])
    point = json.loads(told.stdout)["points"][0]
    assert point["by_divergence"] == found.by_divergence > 0 and found.by_curvature is point["by_curvature"] is None
    with pytest.raises(ParameterError, match="no real parameter"):
        network.stable_rate(values, of="T")


# -- other verbs


@pytest.mark.slow
def test_series_claims_and_solvers(tmp_path: Path):
    m = derive.load("spiked_wigner")
    series = m.expand("outlier", "1/gamma0", order=2)
    gamma0 = sp.Symbol("gamma0")
    assert sp.simplify(series.sympy() - gamma0 - 1 / gamma0) == 0 and series.next_power is None
    assert series.coefficients == (1, 1) and "gamma" in series._repr_latex_()
    assert m.verify() and len(m.verify()) > 5
    assert (tmp_path / "spiked_wigner" / "probe.py") in m.build(tmp_path)


@pytest.mark.slow
def test_series_keep_parameters_that_are_called_like_numbers_and_functions():
    """E and gamma mean something else to SymPy's parser."""
    D = derive.sectors("D")
    M, v = derive.goe("M", D), derive.normal("v", D)
    for name in ("E", "gamma"):
        strength = derive.parameter(name, default=2.0, domain=derive.positive)
        matrix = M + strength / D * derive.outer(v, v)
        model = derive.Model(name="mine", parameters=(strength,), equations=[], probe=derive.spectrum(matrix))
        found = derive.load(model).expand("outlier", f"1/{name}", order=2)
        assert found.sympy() == sp.Symbol(name) + 1 / sp.Symbol(name) and "coefficients" not in found.as_dict()
        assert sp.simplify(derive.load(model).expand("outlier").sympy() - found.sympy()) == 0


# -- numbers for people


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (2.9123, 0.006, "2.912(6)"),
        (2.9123, 0.0123, "2.912(12)"),
        (0.0, 0.5, "0.0(5)"),
        (123456.0, 700.0, "123456(700)"),
        (1.234e-7, 3e-9, "1.23(3)e-7"),
        (-0.73, 1.1, "-0.7(11)"),
        (3e-17, None, "0"),
        (0.91945, None, "0.91945"),
        (float("nan"), None, "-"),
        (7, None, "7"),
    ],
)
def test_numbers_with_errors(value, error, text):
    assert shown_number(value, error) == text


def test_equal_outliers_are_one_line():
    assert grouped([5.0, 5.0 + 1e-12, 3.0]) == [(0, 2, 5.0), (2, 1, 3.0)]


def test_an_option_is_declared_once_for_python_and_the_command_line():
    commands = {"stable_rate": "stability", "compile": "build"}
    for verb in set(VERBS) - {"sweep", "plan", "limits", "function"}:
        shown = {p.name: p for p in main.commands[commands.get(verb, verb)].params}
        for name, declared in options_of(verb).items():
            if declared.flag is not None:
                assert shown[name].help == f"{declared.help} {declared.cost}".rstrip()
                assert verb != "solve" or name in inspect.signature(derive.Theory.solve).parameters
    assert {f.name for f in dataclasses.fields(OWN["sweep"])} <= set(inspect.signature(derive.Theory.sweep).parameters)


def test_options_load_neither_numpy_nor_jax():
    code = "import sys, numerics.options; assert not {'numpy', 'jax', 'sympy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
