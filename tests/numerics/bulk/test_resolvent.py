"""The resolvent at any complex z, and its traces with declared matrices: tr R A, tr R A R and tr R A R B."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from agreement import BOUND
from click.testing import CliRunner
from conftest import target_of
from resolvent_by_hand import equivalents, marchenko_pastur
from sympy import Symbol, sqrt, tanh

import derive
from derive import (
    Model,
    diag,
    gaussian,
    goe,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    trait,
)
from derive.cli import main
from derive.errors import DeclarationError, ParameterError

GROUPS = (np.array([1.0, 4.0]), np.array([0.75, 0.25]))
ANYWHERE = np.array([1 + 0.1j, 1 - 0.1j, -1, 9, -0.3 + 2j, 1 + 1e-6j, 1 + 1e-12j, 3 - 1e-3j, 30j])


@pytest.fixture(scope="module")
def wishart():
    return derive.load(target_of("marchenko_pastur"))


def covariance(**law) -> Model:
    alpha = parameter("alpha", default=2.0, domain=positive)
    D, P = sectors("D", P=alpha)
    X, lam = gaussian("X", P, D), trait("lam", D, **law)
    side = diag(sqrt(lam))
    between = {"population": diag(lam), "gram": X.T @ X / P}
    return Model(parameters=(alpha,), probe=spectrum(side @ X.T @ X @ side / P, between=between))


@pytest.fixture(scope="module")
def population():
    return derive.load(covariance(values=list(GROUPS[0]), weights=list(GROUPS[1])))


@pytest.fixture(scope="module")
def many():
    """A sum of two Wishart matrices with spikes, and matrices of all kinds between its resolvents."""
    alpha = parameter("alpha", default=2.0, domain=positive)
    D, N = sectors("D", N=alpha)
    X, Y, Z, M = gaussian("X", N, D), gaussian("Y", N, D), gaussian("Z", N, D), goe("M", D)
    u = normal("u", D)
    between = {
        "own": X.T @ X / N,
        "mixed": (X.T @ Y + Y.T @ X) / N,
        "other": Z.T @ Z / N,
        "square": X.T @ X @ X.T @ X / N**2,
        "symmetric": M,
        "spike": outer(u, u) / D,
    }
    probed = X.T @ X / N + Y.T @ Y / (2 * N) + 3 / D * outer(u, u)
    return derive.load(Model(parameters=(alpha,), probe=spectrum(probed, between=between)))


@pytest.mark.parametrize("alpha", [2.0, 0.5, 1.0])
def test_marchenko_pastur_anywhere_in_the_plane(wishart, alpha):
    """By hand, also within 1e-12 of the bulk, in both half planes, and beside a hard edge and an atom."""
    s = wishart.solve(alpha=alpha)
    right = marchenko_pastur(ANYWHERE, alpha)
    assert np.max(np.abs(s.resolvent(ANYWHERE) / right - 1)) < 1e-11
    assert s.resolvent(-1.0).dtype == float
    assert s.resolvent([[-1.0, -2.0]]).shape == (1, 2)


def test_the_bulk_has_two_sides(wishart):
    """On the bulk the imaginary part is pi times the density, with the sign of the side that is asked for."""
    s = wishart.solve(alpha=2.0)
    x = np.linspace(*s.bulk_edges[0], 12)[1:-1]
    above, below = (s.resolvent(x, side=side) for side in ("above", "below"))
    assert np.allclose(above, marchenko_pastur(x + 1e-15j, 2.0), atol=1e-11)
    assert np.array_equal(below, above.conj())
    assert np.allclose(-above.imag / np.pi, s.density(x), atol=1e-11)


def test_the_resolvent_outlives_the_solver(wishart, tmp_path):
    s = wishart.solve(alpha=2.0)
    for again in (derive.open(s.save(tmp_path / "run.nc")), pickle.loads(pickle.dumps(s))):
        assert np.array_equal(again.resolvent(ANYWHERE), s.resolvent(ANYWHERE))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [2.0, 0.5])
@pytest.mark.parametrize("z", [-0.4, 1 + 0.5j, 1 - 0.5j, 30.0])
def test_generalised_marchenko_pastur_with_its_population_between(population, alpha, z):
    """Against deterministic equivalents by hand, iterated."""
    s = population.solve(alpha=alpha)
    right = equivalents(complex(z), alpha, *GROUPS)
    assert s.resolvent(z) == pytest.approx(right["G"], rel=1e-9)
    assert s.resolvent(z, beside="population") == pytest.approx(right["A"], rel=1e-9)
    assert s.resolvent(z, between="population") == pytest.approx(right["A R"], rel=1e-9)
    assert s.resolvent(z, between=("population", "population")) == pytest.approx(right["A R A"], rel=1e-9)


@pytest.mark.slow
def test_a_population_with_a_density():
    """Traits with a density are taken at so many values that nothing changes; by hand with many values."""
    x = Symbol("x", positive=True)
    s = derive.load(covariance(density=1 / x, low=0.5, high=2)).solve(alpha=2.0)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    right = equivalents(-0.3, 2.0, np.exp(np.log(2) * nodes), weights / 2)
    assert s.resolvent(-0.3, between="population") == pytest.approx(right["A R"].real, rel=1e-9)


@pytest.mark.slow
def test_what_must_hold_for_all_traces(many):
    """R M = z R - 1, d R / dz = -R^2, tr R A R B = tr R B R A, and what has rank one has no trace."""
    s = many.solve(alpha=1.5)
    names = s.traced()
    for z in (-0.5, 2 + 0.5j):
        (found,) = s.compute_traces("", [complex(z)], 1)
        for a in names:
            for b in names:
                assert found[f"{a} R {b}"] == pytest.approx(found[f"{b} R {a}"], rel=1e-12, abs=1e-13)
        assert abs(found["spike"]) < 1e-14 and abs(found["spike R own"]) < 1e-14
        h = 1e-5
        for name in names:
            rate = (s.resolvent(z + h, beside=name) - s.resolvent(z - h, beside=name)) / (2 * h)
            assert found[f"{name} R"] == pytest.approx(-rate, rel=1e-7, abs=1e-8)


def test_a_matrix_with_itself_between_is_known_from_the_resolvent(wishart):
    """tr R M = z G - 1 and tr R M R = -G - z dG/dz, so that the rate of M + epsilon M is right by hand."""
    alpha = parameter("alpha", default=2.0, domain=positive)
    D, N = sectors("D", N=alpha)
    X = gaussian("X", N, D)
    s = derive.load(Model(parameters=(alpha,), probe=spectrum(X.T @ X / N, between={"M": X.T @ X / N}))).solve(
        alpha=0.7
    )
    z, h = np.array([-0.3 + 0j, 1 + 1j]), 1e-6
    rate = (marchenko_pastur(z + h, 0.7) - marchenko_pastur(z - h, 0.7)) / (2 * h)
    assert np.allclose(s.resolvent(z, beside="M"), z * marchenko_pastur(z, 0.7) - 1, rtol=1e-12)
    assert np.allclose(s.resolvent(z, between="M"), -marchenko_pastur(z, 0.7) - z * rate, rtol=1e-7)
    x = 1.0
    upper, lower = (s.resolvent(x, between="M", side=side) for side in ("above", "below"))
    assert upper == np.conj(lower) and abs(upper - s.resolvent(x + 1e-9j, between="M")) < 1e-6


def test_comparisons_have_traces(population, simulation_seed):
    """`compare` extrapolates them from two sizes, at a point below the spectrum."""
    found = population.compare(alpha=2.0, size=120, seeds=24, seed=simulation_seed)
    rows = [row for row in found.rows if row.quantity.startswith("tr R")]
    assert len(rows) == 2 * len(found.theory.traced())
    assert all(row.compared and abs(row.difference) < BOUND for row in rows)


@pytest.mark.long_cases("many")
@pytest.mark.slow
@pytest.mark.parametrize("case", ["population", "many"])
def test_traces_against_simulation_at_two_sizes(case, request, simulation_seed):
    """Extrapolated, as traces fluctuate as little as they are off at a finite size, by 1/D both."""
    theory = request.getfixturevalue(case)
    points = np.array([-0.7, 0.5 + 1j])
    s = theory.solve(alpha=2.0)
    sizes = ((60, 300), (180, 100))
    drawn = [theory.simulate(alpha=2.0, size=n, seeds=k, seed=simulation_seed + n) for n, k in sizes]
    for kind in ("beside", "between"):
        for name in s.traced():
            means, errors = [], []
            for sim in drawn:
                draws = sim.resolvent(points, **{kind: name})
                means.append(np.mean(draws, axis=0))
                errors.append(np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws)))
            difference = (3 * means[1] - means[0]) / 2 - s.resolvent(points, **{kind: name})
            error = np.hypot(1.5 * errors[1], 0.5 * errors[0]) + 3 * np.abs(means[1] - means[0]) / 60
            assert np.all(np.abs(difference) < BOUND * error), (kind, name, difference / error)


@pytest.mark.slow
def test_the_command_line_gives_all_traces(declared, tmp_path):
    path = declared(
        "from sympy import sqrt\n"
        "from derive import Model, diag, gaussian, parameter, positive, sectors, spectrum, trait\n"
        "alpha = parameter('alpha', default=2.0, domain=positive)\n"
        "D, P = sectors('D', P=alpha)\n"
        "X, lam = gaussian('X', P, D), trait('lam', D, values=[1, 4], weights=[0.75, 0.25])\n"
        "s = diag(sqrt(lam))\n"
        "MODEL = Model(parameters=(alpha,), probe=spectrum(s @ X.T @ X @ s / P, between={'population': diag(lam)}))\n"
    )
    run = CliRunner().invoke(
        main, ["solve", str(path), "--resolvent", "1+0.5j", "--resolvent", "-2:-1:2", "--json"], catch_exceptions=False
    )
    assert run.exit_code == 0
    rows = json.loads(run.stdout)["resolvent"]
    assert [row["z"] for row in rows] == [[1.0, 0.5], [-2.0, 0.0], [-1.0, 0.0]]
    right = equivalents(1 + 0.5j, 2.0, *GROUPS)
    assert complex(*rows[0]["values"]["G"]) == pytest.approx(right["G"], rel=1e-9)
    assert complex(*rows[0]["values"]["population R"]) == pytest.approx(right["A R"], rel=1e-9)
    file = tmp_path / "run.nc"
    run = CliRunner().invoke(main, ["solve", str(path), "--resolvent", "1+0.5j", "--out", str(file)])
    assert run.exit_code == 0 and "tr R population R population" in run.stdout
    saved = derive.open(file)
    assert saved.resolvent(1 + 0.5j, between="population") == pytest.approx(right["A R"], rel=1e-9)
    with pytest.raises(ParameterError, match="not computed before this result was saved"):
        saved.resolvent(-3.0, between="population")
    for extra, told in (
        (["--resolvent", "1"], "on the bulk"),
        (["--resolvent", "one"], "write a number such as"),
    ):
        run = CliRunner().invoke(main, ["solve", str(path), *extra])
        assert run.exit_code == 2 and told in run.output
    run = CliRunner().invoke(main, ["solve", str(path), "alpha=1,2", "--resolvent", "1+0.5j", "--json"])
    points = json.loads(run.stdout)["points"]
    assert complex(*points[1]["resolvent"][0]["values"]["population R"]) == pytest.approx(right["A R"], rel=1e-9)


def test_what_is_refused(population):
    s = population.solve(alpha=0.5)
    for asked, told in (
        ({"z": 1.0}, "give side='above' or side='below'"),
        ({"z": 0.0, "side": "above"}, "infinite at z = 0"),
        ({"z": 1.0, "side": "left"}, "write side="),
        ({"z": "x"}, "is not a finite number"),
        ({"z": np.inf}, "finite"),
        ({"z": -1.0, "between": "noise"}, "not a matrix between resolvents"),
        ({"z": -1.0, "beside": "gram", "between": "gram"}, "give one matrix"),
    ):
        with pytest.raises(ParameterError, match=told):
            s.resolvent(**asked)


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ([1], "name each"),
        ({"a b": "X.T @ X"}, "not a Python name"),
        ({"A": "alpha"}, "give a matrix"),
        ({"A": "X @ X.T"}, "one of the same shape"),
        ({"A": "X.T @ X"}, "grows"),
        ({"A": "diag(tanh(normal('v', D)))"}, "is not a trait"),
    ],
)
def test_matrices_that_cannot_stand_between(between, told):
    alpha = parameter("alpha", default=2.0, domain=positive)
    D, N = sectors("D", N=alpha)
    known = {"X": gaussian("X", N, D), "D": D, "N": N, "alpha": alpha, "diag": diag, "normal": normal, "tanh": tanh}
    given = {k: eval(v, known) for k, v in between.items()} if isinstance(between, dict) else between  # noqa: S307
    with pytest.raises(DeclarationError, match=told):
        model = Model(parameters=(alpha,), probe=spectrum(known["X"].T @ known["X"] / N, between=given))
        _ = derive.load(model).derivation


def test_a_trace_that_vanishes_by_symmetry_is_zero_and_its_square_is_not():
    """M = A A commutes with A: tr R A is odd in A, and tr R A R A is the mean of x^2 / (z - x^2)^2."""
    matrix = goe("A", sectors("D"))
    s = derive.load(Model(parameters=(), probe=spectrum(matrix @ matrix, between={"A": matrix}))).solve(certify=False)
    z, (x, weights) = 5 + 1j, np.polynomial.chebyshev.chebgauss(400)
    weights = weights * (1 - x**2) * 2 / np.pi
    assert abs(s.resolvent(z, beside="A")) < 1e-12 and abs(s.resolvent(z, between="A")) < 1e-12
    expected = np.sum(weights * 4 * x**2 / (z - 4 * x**2) ** 2)
    assert s.resolvent(z, between=("A", "A")) == pytest.approx(expected, rel=1e-9)
