"""Training fields in diag(...) of a probed matrix: against conditioning by hand, laws, simulation; what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import solver_and_values
from reference_formulas import sites_by_hand as by_hand
from scipy.special import erf
from sympy import Heaviside, Max, Min, Rational, log, sqrt, tanh

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
from derive.cli import main
from derive.errors import DeclarationError, ParameterError
from derive.pipeline import derive_model
from numerics.runtime.traits import standard_normal, triangular
from numerics.solver import solve, spiked_problem

pytestmark = pytest.mark.slow

nu = parameter("nu", default=2.0, domain=positive)
gain = parameter("gain", default=1.0)
strength = parameter("strength", default=2.0)
T = parameter("T", default=2, domain=whole_positive)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
W, M, V = gaussian("W", N, D), goe("M", D), gaussian("V", N, D)
x, y = normal("x", D), normal("y", D)
u, a = normal("u", N), normal("a", N)
h, bent, error, again = field("h", N), field("bent", N), field("error", N), field("again", N)
m, back = field("m", D), field("back", D)
H = [Eq(h, gain * W @ x / sqrt(D))]
PLACES, SHARES = by_hand.normal_numbers()


def theory(equations, matrix, **observe):
    return derive.load(
        Model(parameters=(nu, gain, strength, T), equations=equations, observe=observe, probe=spectrum(matrix))
    )


def jacobian(factor, planted):
    """K^T K / N for diag(factor) (W + planted x^T / sqrt(D))."""
    K = diag(factor) @ (W + strength / sqrt(D) * outer(planted, x))
    return K.T @ K / N


SLOPE = 1 - tanh(h) ** 2
FLAT = (1 - np.tanh(PLACES) ** 2) ** 2

# what is declared, the same by hand: squares of the factor, squares of what the direction x is mapped to, an interval
PLANTED = {
    "weights that are a function": (
        H,
        W.T @ diag(3 * h**2 / (1 + h**2)) @ W / N,
        {"nu": 6.0, "gain": 0.5},
        (3 * (PLACES / 2) ** 2 / (1 + (PLACES / 2) ** 2), PLACES**2, (1.26, 3.0)),
    ),
    "an independent spike": (
        H,
        jacobian(SLOPE, u),
        {"strength": 3.0},
        (FLAT, PLACES**2 + 9, (1.75, 9.0)),
    ),
    "a spike that is a function": (
        [*H, Eq(bent, tanh(h))],
        jacobian(SLOPE, bent),
        {"strength": 9.0},
        (FLAT, (PLACES + 9 * np.tanh(PLACES)) ** 2, (1.75, 30.0)),
    ),
    "a spike times a function": (
        [*H, Eq(error, SLOPE * a)],
        jacobian(SLOPE, error),
        {"strength": 6.0},
        (FLAT, PLACES**2 + 36 * FLAT, (1.75, 30.0)),
    ),
}


@pytest.mark.long_cases("an independent spike", "a spike that is a function", "a spike times a function")
@pytest.mark.parametrize("name", PLANTED)
def test_outlier_and_its_vector_are_those_by_conditioning(name):
    equations, matrix, values, (factor, seen, interval) = PLANTED[name]
    found = theory(equations, matrix, along=alignment(x)).solve(**values)
    place, cosine = by_hand.weighted_by_field(values.get("nu", 2.0), factor, seen, SHARES, *interval)
    assert found.outliers[0] == pytest.approx(place, rel=1e-9)
    assert found.alignments["along"]["right"][0] == pytest.approx(cosine, rel=1e-6)


@pytest.mark.long_cases("2.0")
@pytest.mark.parametrize("theta", [2.0, 3.0])
def test_outlier_of_a_symmetric_matrix_with_its_own_field_is_the_one_by_conditioning(theta):
    found = theory([Eq(m, M @ x)], M + 2 * diag(tanh(m)) + strength / D * outer(x, x)).solve(strength=theta)
    expected = by_hand.symmetric_with_field(theta, 2 * np.tanh(PLACES), PLACES, SHARES, 3.05, 8.0)
    assert list(found.outliers) == [pytest.approx(expected, rel=1e-9)]


@pytest.mark.long
def test_bulk_is_that_of_the_law_of_the_field():
    solution = theory(H, W.T @ diag(SLOPE**2) @ W / N).solve(gain=2.0)
    values = (1 - np.tanh(2 * PLACES) ** 2) ** 2
    expected = by_hand.weighted_rows_edges(2.0, values, SHARES, gaps=False)
    assert np.allclose(solution.bulk_edges, [expected], rtol=1e-8)


@pytest.mark.long
def test_a_field_of_another_matrix_is_a_trait():
    """What knows nothing of the probed matrix is a normal number of each site, and adds no outlier."""
    solution = theory([Eq(h, V @ x / sqrt(D))], W.T @ diag(1 / (1 + h**2)) @ W / N).solve()
    w = trait("w", N, density=lambda s: np.e ** (-(s**2) / 2), low=-12, high=12)
    by_trait = theory([], W.T @ diag(1 / (1 + w**2)) @ W / N).solve()
    assert np.allclose(solution.bulk_edges, by_trait.bulk_edges, rtol=1e-9)
    assert not len(solution.outliers) and not len(by_trait.outliers)


@pytest.mark.long
def test_traces_of_the_resolvent_are_those_with_a_trait():
    """That h comes from the probed matrix itself is seen in one direction, and in no trace."""
    w = trait("w", N, density=lambda s: np.e ** (-(s**2) / 2), low=-12, high=12)
    found = []
    for equations, value in ((H, h), ([], w)):
        probe = spectrum(W.T @ diag(1 / (1 + value**2)) @ W / N, between={"own": W.T @ W / N, "other": M})
        s = derive.load(Model((nu, gain), equations, probe=probe)).solve()
        z = np.array([-0.5, 1 + 0.5j])
        found.append([s.resolvent(z), *(s.resolvent(z, **{k: "own"}) for k in ("beside", "between"))])
        assert np.allclose(s.resolvent(z, between="other"), 0, atol=1e-12)
    assert np.allclose(*found, rtol=1e-9) and abs(found[0][1][0]) > 0.1


def test_a_field_without_variance_is_a_number():
    solution = theory(H, W.T @ diag(2 / (1 + h**2)) @ W / N).solve(gain=0.0)
    assert np.allclose(solution.bulk_edges, theory([], 2 * W.T @ W / N).solve().bulk_edges, rtol=1e-9)


@pytest.mark.long
def test_a_jump_is_two_groups_of_sites():
    solution = theory(H, W.T @ diag(1 + Heaviside(h)) @ W / N).solve()
    groups = trait("groups", N, values=[1, 2])
    assert np.allclose(solution.bulk_edges, theory([], W.T @ diag(groups) @ W / N).solve().bulk_edges, rtol=1e-9)
    assert not len(solution.outliers)


@pytest.mark.long
@pytest.mark.slow
def test_a_jump_may_be_anywhere():
    """At sites where a normal number is above one, and where a trait is above three tenths."""
    upper = (1 - erf(1 / np.sqrt(2))) / 2
    by_field = theory(H, W.T @ diag(1 + Heaviside(h - 1)) @ W / N).solve()
    w = trait("w", N, density=lambda s: 1, low=0, high=1)
    by_trait = theory([], W.T @ diag(1 + Heaviside(w - 0.3)) @ W / N).solve()
    for found, share in ((by_field, upper), (by_trait, 0.7)):
        groups = trait("groups", N, values=[1, 2], weights=[1 - share, share])
        expected = theory([], W.T @ diag(groups) @ W / N).solve()
        assert np.allclose(found.bulk_edges, expected.bulk_edges, rtol=1e-9)


@pytest.mark.slow
def test_functions_that_bend_may_stand_inside_each_other():
    """A piece at a time by hand: one place at which it bends is where a function inside bends."""
    found = theory(H, W.T @ diag(2 + Max(Min(h, Rational(1, 2)), -1)) @ W / N).solve()
    places, shares = np.polynomial.legendre.leggauss(120)
    ends = (-9, -1, 0.5, 9)
    parts = [(low + (high - low) * (places + 1) / 2, shares * (high - low) / 2) for low, high in pairwise(ends)]
    numbers, weights = (np.concatenate(some) for some in zip(*parts, strict=True))
    weights = weights * np.exp(-(numbers**2) / 2) / np.sqrt(2 * np.pi)
    expected = by_hand.weighted_rows_edges(2.0, 2 + np.clip(numbers, -1, 0.5), weights, gaps=False)
    assert np.allclose(found.bulk_edges, [expected], rtol=1e-8)


@pytest.mark.long
def test_names_and_the_way_it_is_written_make_no_difference():
    other, inner = field("zeta", N), field("a0", N)
    one = theory(H, W.T @ diag(3 * h**2 / (1 + h**2)) @ W / N).solve(nu=6.0, gain=0.5)
    steps = [Eq(inner, W @ x / sqrt(D)), Eq(other, gain * inner), Eq(bent, other**2)]
    two = theory(steps, 3 * W.T @ diag(bent / (1 + bent)) @ W / N).solve(nu=6.0, gain=0.5)
    assert np.allclose(one.bulk_edges, two.bulk_edges, rtol=1e-9)
    assert len(one.outliers) == 1 and np.allclose(one.outliers, two.outliers, rtol=1e-9)


def test_traits_and_fields_of_a_site_multiply():
    """A field with a trait as its factor is one of several strengths, each on its group of sites."""
    s = trait("s", N, values=[1, 3], weights=[0.5, 0.5])
    solution = theory([Eq(h, s * (W @ x) / sqrt(D))], W.T @ diag(h**2 / (1 + h**2)) @ W / N).solve(nu=6.0)
    places, shares = np.concatenate([PLACES, 3 * PLACES]), np.concatenate([SHARES, SHARES]) / 2
    seen = np.concatenate([PLACES, PLACES]) ** 2
    expected, _ = by_hand.weighted_by_field(6.0, places**2 / (1 + places**2), seen, shares, 1.1407, 3.0)
    assert list(solution.outliers) == [pytest.approx(expected, rel=1e-8)]


# -- training


def learned(probe):
    f, A = field("f", D, t), weights("A", D, D, t)
    equations = [
        Eq(f(0), x),
        Eq(f(t + 1), (f(t) + A(t) @ f(t)) / 2),
        Eq(A(0), M),
        Eq(A(t + 1), A(t) + strength / D * outer(f(t), f(t))),
    ]
    return Model(
        parameters=(nu, gain, strength, T),
        equations=equations,
        observe={"q": mean(f(t) ** 2)},
        probe=spectrum(probe(f, A)),
    )


def test_alignments_beside_a_trained_field_at_the_last_time():
    """They have the matrix at every time, where its field was asked for before there was a time: a traceback."""
    f, A = field("f", N, t), weights("A", N, D, t)
    equations = [Eq(A(0), W), Eq(f(t), A(t) @ x / sqrt(D)), Eq(A(t + 1), A(t) + strength / sqrt(D) * outer(f(t), x))]
    matrix = A(T).T @ diag(1 + Heaviside(f(T))) @ A(T) / N
    found = theory(equations, matrix, along=alignment(x)).solve(T=1)
    assert len(found.outliers) == 1
    np.testing.assert_allclose(found.alignments["along"]["right"].ravel(), found.layers[0].overlaps["right"], rtol=1e-8)


@pytest.mark.long
def test_a_trained_field_is_taken_at_its_time():
    """With one step f(T - 1) is what it started from, which has no clock."""
    timed = derive.load(learned(lambda f, A: A(T) + 2 * diag(tanh(f(T - 1))))).solve(T=1, strength=1.5)
    static = derive.load(learned(lambda f, A: A(T) + 2 * diag(tanh(x)))).solve(T=1, strength=1.5)
    first = derive.load(learned(lambda f, A: A(T) + 2 * diag(tanh(f(0))))).solve(T=1, strength=1.5)
    for other in (static, first):
        assert np.allclose(timed.bulk_edges, other.bulk_edges, rtol=1e-10)
        assert len(timed.outliers) and np.allclose(timed.outliers, other.outliers, rtol=1e-10)


def test_a_solution_gives_a_of_z_and_no_outliers_at_earlier_times():
    solver, values = solver_and_values("tanh_jacobian")
    solution = solve(solver, values, path=True)
    assert solution.layers[0].outlier_path is None
    problem = spiked_problem(solver, solution)
    assert problem.p.spread_h_T == pytest.approx(np.sqrt(solution.observables["activity"][-1]), rel=1e-12)
    with pytest.raises(ParameterError, match="solve this point alone"):
        solver.branch(values)


# -- numbers


def test_triangular_roots_leave_out_what_does_not_vary():
    lower, inverse = triangular([[4.0], [2.0, 5.0], [2.0, 1.0, 1.0]])
    assert np.allclose(lower @ lower.T, [[4, 2, 2], [2, 5, 1], [2, 1, 1]])
    assert inverse[2, 2] == 0 and np.allclose(inverse[:2, :2] @ lower[:2, :2], np.eye(2))
    assert not np.any(triangular([[0.0]])[1])


@pytest.mark.parametrize("halves", [False, True])
def test_normal_numbers_have_their_moments(halves):
    law = standard_normal(256, halves, np)
    assert [float(np.sum(law.weights * law.values**k)) for k in (0, 2, 4)] == pytest.approx([1, 1, 3], rel=1e-12)


# -- records, code, command line


def test_records_and_commands_know_fields_on_diagonals(tmp_path):
    path = "tests/declarations/tanh_jacobian.py"
    shown = CliRunner().invoke(main, ["show", path, "--stage", "blocks"])
    assert shown.exit_code == 0 and "spread_h" in shown.output, shown.output
    for extra in ([], ["--check"]):
        result = CliRunner().invoke(main, ["build", path, "--out", str(tmp_path / "solvers"), *extra])
        assert result.exit_code == 0, result.output


# -- what is refused

loud, fading = field("loud", N, t), field("fading", D, t)
one, other = diag(1 / (1 + h**2)), diag(tanh(h))
REFUSED = {
    "pole": (lambda: derive_model(theory(H, W.T @ diag(1 / (h - gain)) @ W / N).model), "unbounded next to h = 1"),
    "unbounded": (lambda: derive_model(theory(H, W.T @ diag(h**2) @ W / N).model), "is unbounded because h is"),
    "grows slowly": (
        lambda: derive_model(theory(H, W.T @ diag(log(1 + h**2)) @ W / N).model),
        "is unbounded because h is",
    ),
    "another time": (
        lambda: derive_model(learned(lambda f, A: A(T) + diag(tanh(f(T - 2))))),
        "taken at the first or at the last times",
    ),
    "two times": (
        lambda: derive_model(learned(lambda f, A: A(T) + diag(tanh(f(0) * f(T))))),
        "not a fixed number of steps apart",
    ),
    "after the last update": (
        lambda: derive_model(
            Model(
                parameters=(nu, T),
                equations=[Eq(fading(0), x), Eq(fading(t + 1), fading(t) / 2), Eq(loud(t), V @ fading(t) / sqrt(D))],
                probe=spectrum(V.T @ diag(tanh(loud(T))) @ V / N),
            )
        ),
        "use loud(T - 1)",
    ),
    "after the last update, where laws are sampled": (
        lambda: derive_model(
            Model(
                parameters=(nu, T),
                equations=[
                    Eq(fading(0), x),
                    Eq(fading(t + 1), tanh(fading(t))),
                    Eq(loud(t), V @ fading(t) / sqrt(D)),
                ],
                probe=spectrum(V.T @ diag(tanh(loud(T))) @ V / N),
            )
        ),
        "use loud(T - 1)",
    ),
    "three sampled functions": (
        lambda: derive_model(
            theory(
                [*H, Eq(bent, tanh(h)), Eq(back, W.T @ bent / sqrt(D)), Eq(again, W @ back / sqrt(D))],
                W.T @ (diag(tanh(again)) + one @ V @ V.T @ other / N + other @ V @ V.T @ one / N) @ W / N,
            ).model
        ),
        "use at most 2 different functions on the diagonals of N",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name):
    make, words = REFUSED[name]
    with pytest.raises(DeclarationError) as told:
        make()
    assert words in str(told.value)
    assert "\n" not in str(told.value).strip()
