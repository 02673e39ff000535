"""Squared cosines of outlying vectors with declared directions: closed forms, laws of all declarations, samples."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from reference_formulas.alignments_by_hand import spiked_rectangle, spiked_wigner
from sympy import Max, sqrt, tanh

import derive
from derive import (
    Eq,
    Model,
    alignment,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    positive,
    real,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)
from derive.cli import main
from derive.codegen import solver_files
from derive.errors import DeclarationError, DeriveError
from derive.language.alignments import sides_of, with_alignments
from derive.language.contents import atoms
from derive.language.vectors import Field
from derive.selftest.drawing import drawn
from derive.selftest.engine import load
from derive.selftest.writing import write
from numerics.outliers.alignments import projections
from numerics.outliers.poles import poles
from numerics.solver import load_solver, solve, spiked_problem

pytestmark = pytest.mark.slow

theta = parameter("theta", default=1.7, domain=positive)
rho = parameter("rho", default=0.6, domain=real)
small = parameter("small", default=0.0, domain=real)
T = parameter("T", default=5, domain=whole_positive)


@functools.cache
def wigner():
    D = sectors("D")
    M, v, w = goe("M", D), normal("v", D), normal("w", D)
    tilted = field("tilted", D)
    return derive.load(
        Model(
            parameters=(theta, rho),
            equations=[Eq(tilted, 3 * (rho * v + sqrt(1 - rho**2) * w))],
            observe={"spike": alignment(v), "other": alignment(w), "tilted": alignment(tilted)},
            probe=spectrum(M + theta / D * outer(v, v)),
            name="tilted_wigner",
        )
    )


@pytest.mark.parametrize("strength", [1.05, 1.7, 20.0])
@pytest.mark.parametrize("cosine", [0.0, -0.6, 0.95, 1.0])
def test_a_direction_sees_of_a_planted_one_what_they_share(strength, cosine):
    found = wigner().solve(theta=strength, rho=cosine)
    z, squared = spiked_wigner(strength, cosine)
    assert np.isclose(found.outliers[0], z, rtol=1e-10)
    assert np.isclose(found.alignments["tilted"]["right"][0], squared, rtol=1e-9, atol=1e-14)
    assert np.isclose(found.alignments["spike"]["right"][0], found.overlaps["right"][0], rtol=1e-9)
    assert abs(found.alignments["other"]["right"][0]) < 1e-14  # it is independent of all else


@pytest.mark.parametrize(("strength", "ratio", "right", "left"), [(1.5, 2.0, 0.8, 0.3), (1.2, 0.5, 0.4, 1.0)])
def test_left_and_right_singular_vectors(strength, ratio, right, left):
    nu = parameter("nu", default=2.0, domain=positive)
    D, N = sectors("D", N=nu)
    W, u, v = gaussian("W", N, D), normal("u", N), normal("v", D)
    a, b, p, q = normal("a", N), normal("b", D), field("p", N), field("q", D)
    spiked = W + theta / sqrt(D) * outer(u, v)
    model = Model(
        parameters=(theta, nu),
        equations=[Eq(p, left * u + (1 - left**2) ** 0.5 * a), Eq(q, right * v + (1 - right**2) ** 0.5 * b)],
        observe={"rows": alignment(p), "columns": alignment(q)},
        probe=spectrum(spiked.T @ spiked / N),
        name="tilted_rectangle",
    )
    found = derive.load(model).solve(theta=strength, nu=ratio)
    z, of_right, of_left = spiked_rectangle(strength, 1 / ratio, right, left)
    assert np.isclose(found.outliers[0], z, rtol=1e-9)
    assert list(found.alignments["rows"]) == ["left"] and list(found.alignments["columns"]) == ["right"]
    assert np.isclose(found.alignments["columns"]["right"][0], of_right, rtol=1e-8)
    assert np.isclose(found.alignments["rows"]["left"][0], of_left, rtol=1e-8)


# -- laws of every declaration


def trained(law, name="trained"):
    """A matrix that learns what it drives, from a start that has something of a hidden direction."""
    D, t = sectors("D"), training_clock("t", steps=T)
    M0, start, hidden = goe("M0", D), normal("start", D), normal("hidden", D)
    v, x, late = field("v", D, t), field("x", D, t), field("late", D, t)
    M = weights("M", D, D, t)
    directions = {"start": start, "v": v(t), "x": x(t), "late": late(t)}
    return Model(
        parameters=(theta, T),
        equations=[
            Eq(v(0), start + hidden / 2),
            Eq(v(t + 1), law(x(t)) / 2 + v(t) / 3),
            Eq(x(t), M(t) @ v(t)),
            Eq(late(t), v(t) - hidden),  # in no spike and in no equation
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + theta / D * outer(v(t), v(t))),
        ],
        observe={"size": mean(v(t) ** 2), **{name: alignment(one) for name, one in directions.items()}},
        probe=spectrum(M(T)),
        name=name,
    )


def linear(x):
    return x


@pytest.mark.parametrize("direction", ["start", "hidden", "x", "late"])
def test_an_outlier_moves_along_a_small_spike_by_its_squared_cosine(direction):
    """dz = (g . v)^2 d eps for M + eps g g^T, whatever M is: held against the outliers of another declaration."""

    def spiked():
        D, t = sectors("D"), training_clock("t", steps=T)
        M0, start, hidden = goe("M0", D), normal("start", D), normal("hidden", D)
        v, x, late = field("v", D, t), field("x", D, t), field("late", D, t)
        fixed = {"start": start, "hidden": hidden}
        M, K = weights("M", D, D, t), weights("K", D, D, t)
        along = fixed.get(direction, {"x": x, "late": late}.get(direction))
        along = along if direction in fixed else along(t)
        return Model(
            parameters=(theta, small, T),
            equations=[
                Eq(v(0), start + hidden / 2),
                Eq(v(t + 1), x(t) / 2 + v(t) / 3),
                Eq(x(t), M(t) @ v(t)),
                Eq(late(t), v(t) - hidden),
                Eq(M(0), M0),
                Eq(M(t + 1), M(t) + theta / D * outer(v(t), v(t))),
                Eq(K(0), M0),  # what is probed: M and at each step a little of the direction
                Eq(K(t + 1), K(t) + theta / D * outer(v(t), v(t)) + small / D * outer(along, along)),
            ],
            observe={"asked": alignment(along), "square": mean(along**2)},
            probe=spectrum(K(T)),
            name=f"small_{direction}",
        )

    theory = derive.load(spiked())
    step = 1e-4
    here = theory.solve(small=0.0)
    slope = (theory.solve(small=step).outliers - theory.solve(small=-step).outliers) / (2 * step)
    squares = np.broadcast_to(here["square"], 6)[:5] if direction in ("start", "hidden") else here["square"][:5]
    cosines = here.alignments["asked"]["right"]
    cosines = np.repeat(cosines[:, None], 5, axis=1) if cosines.ndim == 1 else cosines[:, :5]  # spikes end before T
    assert len(here.outliers) >= 1 and np.max(cosines) > 0.05
    assert np.allclose(slope, cosines @ squares, rtol=1e-5, atol=1e-7)


@functools.cache
def solved(**values):
    return derive.load(trained(linear)).solve(**values)


def test_directions_that_are_equal_are_seen_alike_whatever_they_are_called():
    D, t = sectors("D"), training_clock("t", steps=T)
    J, b, a = goe("J", D), normal("b", D), normal("a", D)
    z, y, q = field("z", D, t), field("y", D, t), field("q", D, t)
    Q = weights("Q", D, D, t)
    other = Model(
        parameters=(theta, T),
        equations=[
            Eq(Q(0), J),
            Eq(q(t), 2 * z(t) - 2 * a),
            Eq(y(t), Q(t) @ z(t)),
            Eq(z(0), b + a / 2),
            Eq(z(t + 1), y(t) / 2 + z(t) / 3),
            Eq(Q(t + 1), Q(t) + theta / D * outer(z(t), z(t))),
        ],
        observe={"late": alignment(q(t)), "start": alignment(b), "x": alignment(y(t)), "v": alignment(z(t))},
        probe=spectrum(Q(T)),
        name="renamed",
    )
    found, known = derive.load(other).solve(), solved()
    for name in ("start", "v", "x", "late"):
        assert np.allclose(found.alignments[name]["right"], known.alignments[name]["right"], rtol=1e-9), name


@pytest.mark.long_cases("10", "13", "15", "19", "20")
@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 10, 13, 15, 19, 20])  # drawn in order: the first with several directions
def test_two_directions_see_each_other_alike_in_declarations_drawn_at_random(seed):
    """What h sees of a source along g is what g sees of one along h, and no direction sees more than all of a vector:
    the probed matrix is symmetric, which the equations of overlaps and of responses do not know of each other."""
    text = write(drawn(seed, linear=True))
    model = load(text)
    over = {sector for _, probe in model.probes for _, sector in sides_of(probe.matrix)}
    fields = [f for f in atoms(model, Field) if f.role in ("field", "normal") and f.sector in over]
    solver = load_solver(solver_files(with_alignments(model, [f.name for f in fields])))
    values = {p.name: p.default for p in model.parameters}
    solution = solve(solver, values if model.arrays is None else {**values, **model.arrays(values)})
    pairs = 0
    for layer in solution.layers:
        problem = spiked_problem(solver, solution, layer.label)
        for pole in poles(problem, [z - layer.shift for z in layer.outliers]):
            for side in ("right", "left"):
                found = [projections(pole, one) for one in problem.probe.directions if one.side == side]
                if not found:
                    continue
                lengths = np.sqrt(np.concatenate([np.where(squares > 0, squares, 1.0) for _, _, squares in found]))
                seen = np.concatenate([one for one, _, _ in found]) / lengths[:, None]
                both = seen @ (np.concatenate([one for _, one, _ in found], axis=1) / lengths)
                assert np.allclose(both, both.T, atol=1e-7)
                assert np.linalg.eigvalsh((both + both.T) / 2)[0] > -1e-7 and np.max(np.diagonal(both)) < 1 + 1e-7
                pairs += both.size
    assert pairs > 0


def test_a_time_of_a_direction_is_that_entry_of_all_times():
    found = derive.load(trained(linear)).solve(align=["v(3)", "v(T - 1)", "late(0)"])
    rows = solved().alignments
    assert np.allclose(found.alignments["v(3)"]["right"], rows["v"]["right"][:, 3], rtol=1e-12)
    assert np.allclose(found.alignments["v(T - 1)"]["right"], rows["v"]["right"][:, 4], rtol=1e-12)
    assert np.allclose(found.alignments["late(0)"]["right"], rows["late"]["right"][:, 0], rtol=1e-12)


def test_an_orthonormal_basis_of_the_span_sees_what_the_span_sees():
    D = sectors("D")
    M, directions = goe("M", D), [normal(f"u{k}", D) for k in range(3)]
    mixed = directions[0] + directions[1] / 2, directions[1] - directions[2], directions[2] / 3
    strengths = (2, 3, -18)
    spiked = M
    for strength, vector in zip(strengths, mixed, strict=True):
        spiked = spiked + strength / D * outer(vector, vector)
    observe = {f"along{k}": alignment(u) for k, u in enumerate(directions)}
    found = derive.load(Model(parameters=(), observe=observe, probe=spectrum(spiked), name="basis")).solve()
    total = sum(found.alignments[name]["right"] for name in observe)
    assert len(found.outliers) == 3 and found.outliers[-1] < -2
    assert np.allclose(total, found.overlaps["right"], rtol=1e-8)


def test_a_spike_alone_is_the_span():
    found = derive.load("coupled_spikes").solve(S=1, align=["phi", "g"])
    for name, side in (("phi", "right"), ("g", "left")):
        assert np.allclose(found.alignments[name][side][:, 0], found.overlaps[side], rtol=1e-8)


@pytest.mark.long
@pytest.mark.slow
def test_classes_see_the_eigenspace_that_they_share():
    """With C equal classes an outlier is there C times, and each class sees of it what one class sees alone."""
    network = derive.load("deep_linear", L=1)
    point = {"nu": 2, "gamma0": 6, "T": 6, "eta": 0.1, "layer": "0", "align": ["teacher", "g1(2)", "readout"]}
    one, three = network.solve(**point), network.solve(**point, C=3)
    assert len(one.outliers) == 1 and len(three.outliers) == 3
    for name, side in (("teacher", "right"), ("g1(2)", "left"), ("readout", "left")):
        alone, each = one.alignments[name][side], three.alignments[name][side]
        assert alone.shape == (1, 1) and each.shape == (3, 3)
        assert np.allclose(each, alone[0, 0], rtol=1e-6)
    assert 0.5 < one.alignments["teacher"]["right"][0, 0] < 0.95


def test_both_sides_of_a_square_matrix():
    D = sectors("D")
    W, u, v = gaussian("W", D, D), normal("u", D), normal("v", D)
    spiked = W + theta / sqrt(D) * outer(u, v)
    observe = {"u": alignment(u), "v": alignment(v)}
    model = Model(parameters=(theta,), observe=observe, probe=spectrum(spiked.T @ spiked / D), name="square")
    found = derive.load(model).solve(theta=1.5).alignments
    _, right, left = spiked_rectangle(1.5, 1.0, 1.0, 1.0)
    assert np.isclose(found["v"]["right"][0], right, rtol=1e-8) and np.isclose(found["u"]["left"][0], left, rtol=1e-8)
    assert abs(found["u"]["right"][0]) < 1e-12 and abs(found["v"]["left"][0]) < 1e-12


def test_a_direction_need_not_be_near_any_spike():
    """The spike of J^T (1 + theta u u^T) J stands between the random factors: no spike lives on the vector's sector."""
    D, N = sectors("D", N=2)
    J, u = gaussian("J", N, D), normal("u", N)
    back = field("back", D)
    middle = J + theta / N * outer(u, u) @ J
    model = Model(
        parameters=(theta,),
        equations=[Eq(back, J.T @ u / sqrt(N))],
        observe={"back": alignment(back)},
        probe=spectrum(J.T @ middle / N),
        name="between",
    )
    theory = derive.load(model)
    comparison = theory.compare(theta=3.0, size=300, seeds=8, seed=3)
    row = next(row for row in comparison.rows if row.quantity.startswith("back"))
    assert row.theory > 0.5 and abs(row.difference) < 4


# -- sampled theories


def cut_off(x):
    return Max(x, -80)


@pytest.mark.slow
def test_sampled_is_exact_within_its_errors():
    """A law that is linear at all sites there are, which the engine has to sample."""
    exact = solved(theta=2.0, T=4).alignments
    found = derive.load(trained(cut_off, "cut_off")).solve(theta=2.0, T=4, samples=20_000, seed=2)
    assert not found.exact
    off = []
    for name, sides in exact.items():
        errors, differences = (
            found.layer().alignment_errors[name]["right"],
            found.alignments[name]["right"] - sides["right"],
        )
        assert np.all(errors < 0.02)
        if name == "x":  # of M(T) v(T) the part along earlier v is told from its noise to the tolerance of sampling
            assert np.max(np.abs(differences[:, -1])) < 1e-5
            errors, differences = errors[:, :-1], differences[:, :-1]
        off.append(np.abs(differences) / np.maximum(errors, 1e-9))
    assert np.max(np.concatenate([np.ravel(x) for x in off])) < 5


@pytest.mark.long
@pytest.mark.slow
def test_errors_are_the_spread_over_seeds():
    theory = derive.load(trained(tanh, "saturating"))
    runs = [theory.solve(theta=3.0, T=4, samples=6000, seed=seed, overlaps=False) for seed in range(12)]
    ratios = []
    for name in ("start", "v", "x", "late"):
        values = np.array([run.alignments[name]["right"] for run in runs])
        errors = np.array([run.layer().alignment_errors[name]["right"] for run in runs])
        told = np.sqrt(np.mean(errors**2, axis=0))
        ratios.append(np.ravel(values.std(axis=0, ddof=1) / told))
    assert 0.5 < np.median(np.concatenate(ratios)) < 1.6


# -- finite size


@pytest.mark.long
@pytest.mark.slow
def test_samples_have_the_same_cosines():
    comparison = derive.load(trained(tanh, "saturating")).compare(theta=3.0, T=4, size=400, seeds=12, samples=20_000)
    rows = [row for row in comparison.rows if "(right)" in row.quantity]
    assert len(rows) >= 13
    assert np.max(np.abs([row.difference for row in rows])) < 4


def test_what_chance_gives_a_direction_is_no_disagreement():
    comparison = wigner().compare(theta=2.0, size=200, seeds=20)
    row = next(row for row in comparison.rows if row.quantity.startswith("other"))
    assert row.theory == pytest.approx(0, abs=1e-14) and 0.2 < 200 * row.simulation < 4
    assert abs(row.difference) < 3


# -- results


def test_results_keep_them(tmp_path):
    found = wigner().solve(theta=2.0)
    assert np.isclose(derive.open(found.save(tmp_path / "run.nc")).alignments["tilted"]["right"][0], 0.36 * 0.75)
    tree = found.to_xarray()
    assert tree["theory"]["alignment_spike_right"].dims == ("rank",)
    swept = wigner().sweep(theta=[0.5, 2.0, 4.0]).to_xarray()
    assert np.allclose(swept["alignment_spike_right"].values[:, 0], [np.nan, 0.75, 1 - 1 / 16], equal_nan=True)
    assert wigner().sweep(theta=[2.0, 4.0]).to_frame()["spike right of outlier_1"].tolist() == pytest.approx(
        [0.75, 15 / 16]
    )
    assert "spike (right)" in str(found)
    command = derive.load("spiked_wigner").solve(align="v").made.command
    assert command is not None and command.endswith("--align v")


def test_the_command_line_asks_for_any_field():
    asked = ["--align", "start", "--align", "v(3)", "--json"]
    run = CliRunner().invoke(main, ["solve", "anti_hebbian", "T=12", "gamma0=8", *asked])
    assert run.exit_code == 0, run.output
    told = json.loads(run.stdout)
    names = {one["name"]: one for one in told["alignments"]}
    assert set(names) == {"start", "v(3)"} and names["v(3)"]["times"] == [3]
    assert 0 < names["start"]["values"][0] < 1 and names["start"]["errors"] is None


# -- bad input


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda v, t: alignment(2 * v(t)), "name one field"),
        (lambda v, t: alignment(mean(v(t) ** 2)), "name one field"),
        (lambda v, t: alignment(v), "write v(t)"),
        (lambda v, t: 2 * alignment(v(t)), "an entry of its own"),
        (lambda v, t: alignment(v(T + 1)), "times are t for all of them"),
        (lambda v, t: alignment(v(t - 1)), "times are t for all of them"),
        (lambda v, t: alignment(v(-1)), "times are t for all of them"),
    ],
)
def test_what_is_no_direction_is_refused_in_one_sentence(asked, words):
    D, t = sectors("D"), training_clock("t", steps=T)
    M, v = goe("M", D), field("v", D, t)
    with pytest.raises(DeclarationError) as error:
        Model(
            parameters=(T,),
            equations=[Eq(v(0), normal("start", D)), Eq(v(t + 1), M @ v(t))],
            observe={"asked": asked(v, t)},
            probe=spectrum(M),
        )
    assert words in str(error.value) and "\n" not in str(error.value)


def test_sectors_and_probes_that_do_not_fit_are_named():
    D, N, P = sectors("D", N=2, P=3)
    W, x, y = gaussian("W", N, D), normal("x", P), normal("y", D)
    with pytest.raises(DeclarationError, match="x lives on P, and the vectors of the probed matrices on D and N"):
        Model(parameters=(), observe={"asked": alignment(x)}, probe=spectrum(W.T @ W / N))
    with pytest.raises(DeclarationError, match="needs a matrix that is probed"):
        Model(parameters=(), observe={"asked": alignment(y)})


@pytest.mark.parametrize(
    ("align", "words"),
    [
        ("nobody", "there is no field nobody; there are start, v"),
        ("v(40)", "the number of updates after v\\(40\\) is -10"),
        ("v(T - 99)", "the time of v\\(T - 99\\) is -69"),
        ("v + start", "write the name of a field"),
        ("activity", "there is no field activity"),
        (3, "names of fields"),
    ],
)
def test_directions_that_are_typed_badly(align, words):
    with pytest.raises(DeriveError, match=words):
        derive.load("anti_hebbian").solve(align=align)


def test_where_nothing_stands_out_there_are_none():
    found = wigner().solve(theta=0.5)
    assert len(found.outliers) == 0 and found.alignments == {}
