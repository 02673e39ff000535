"""The numerical bulk: density, edges, atoms and moments, against closed forms and against ways that share no code."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from agreement import BOUND, Block, extrapolated, seed_of, wrong
from conftest import derivation_of, solver_of, values_of

from derive import Model, gaussian, goe, nonnegative, parameter, positive, sectors, spectrum
from derive.codegen import solver_files
from derive.errors import NumericalError
from derive.program.probe import bulk_record
from derive.program.tables import coefficient_table
from derive.program.text import module_text
from numerics.bench.bulk import fixed_point
from numerics.bulk.branch import Branch, _above
from numerics.bulk.curve import _evaluated, singular_points
from numerics.bulk.density import resolvent_at
from numerics.bulk.folds import _step_is_consistent, march, residual_of, solve_scaled, upper_edge_program
from numerics.bulk.keeping import law_from_json, law_to_json, load_or_compute
from numerics.bulk.law import TRACY_WIDOM_MEAN
from numerics.bulk.moments import exact_moments
from numerics.bulk.polynomials import polynomial_system
from numerics.bulk.support import counts_against, law_of, law_without_curve, series_moments, support
from numerics.runtime.interface import CoefficientTable
from numerics.runtime.point import Point, replaced
from numerics.simulation.samples import simulate
from numerics.solver import load_solver
from numerics.support.precision import in_float64


def _branch(name: str, **changes) -> Branch:
    return solver_of(name).branch(values_of(name, **changes))


@cache
def _declared(kind: str):
    """Solvers of small matrix models made here."""
    if kind == "wishart":
        nu = parameter("nu", default=0.4, domain=positive)
        D, N = sectors("D", N=nu)
        W = gaussian("W", N, D)
        return load_solver(solver_files(Model(parameters=(nu,), probe=spectrum(W.T @ W / N))))
    if kind == "product of three":
        one = parameter("one", default=1.0, domain=positive)
        D = sectors("D")
        product = gaussian("A0", D, D, variance=one) @ gaussian("A1", D, D) @ gaussian("A2", D, D)
        return load_solver(solver_files(Model(parameters=(one,), probe=spectrum(product.T @ product / D**3))))
    a, b, c = (parameter(n, default=d, domain=positive) for n, d in (("a", 30.0), ("b", 0.3), ("c", 9.0)))
    D, N, P = sectors("D", N=a, P=b)
    A, B = gaussian("A", N, D), gaussian("B", P, D)
    return load_solver(solver_files(Model(parameters=(a, b, c), probe=spectrum(A.T @ A / N + c * B.T @ B / P))))


def _declared_branch(kind: str, *numbers: float) -> Branch:
    solver = _declared(kind)
    return solver.branch(dict(zip((q.name for q in solver.setting.parameters), numbers, strict=True)))


def _law(kind: str, *numbers: float):
    return law_of(_declared_branch(kind, *numbers))


@pytest.mark.parametrize("nu", [1e-3, 0.4, 0.999999, 1.0, 1.000001, 1e4])
def test_marchenko_pastur_law_at_any_ratio(nu):
    law = _law("wishart", nu)
    low, high = (1 - nu**-0.5) ** 2, (1 + nu**-0.5) ** 2
    ((a, b),) = law.edges
    assert b == pytest.approx(high, rel=1e-14) and a == pytest.approx(low, rel=1e-9, abs=1e-15)
    assert sum(w for _, w in law.atoms) == pytest.approx(max(0.0, 1 - nu), abs=1e-15)
    x = a + (b - a) * np.linspace(0.01, 0.99, 99)
    exact = nu * np.sqrt((b - x) * (x - a)) / (2 * np.pi * x)
    assert np.max(np.abs(law.density(x) - exact)) < 1e-10 * np.max(exact)
    assert law.error < 1e-10


def test_hard_edge_of_a_product_of_three():
    """Density x^(-3/4) at zero; Fuss-Catalan moments; the upper edge is 4^4 / 3^3."""
    law = _law("product of three", 1.0)
    assert law.edges == ((0.0, pytest.approx(256 / 27, rel=1e-14)),) and law.atoms == ()
    assert {p.piece.a for p in law.panels.panels} == {4}
    near = law.density(np.array([1e-12, 1e-16]))
    assert np.log(near[1] / near[0]) / np.log(1e-4) == pytest.approx(-3 / 4, abs=1e-3)
    exact = [comb(4 * k, k) / (3 * k + 1) for k in range(6)]
    assert [law.moment(k) for k in range(6)] == pytest.approx(exact, rel=1e-12)
    assert series_moments(_declared_branch("product of three", 1.0), 5) == pytest.approx(exact, rel=1e-11)


def test_moments_of_a_curve_with_rational_coefficients_are_fractions():
    """Narayana polynomials in c = 1/alpha: 1, 1 + c, 1 + 3 c + c^2, 1 + 6 c + 6 c^2 + c^3."""
    found = exact_moments(_branch("marchenko_pastur", alpha=2.0), 4)
    assert found == [1, 1, Fraction(3, 2), Fraction(11, 4), Fraction(45, 8)]


@pytest.mark.parametrize(("before", "behind", "fits"), [(0.5, 0.6, True), (0.97, 1.03, True), (0.5, 1.5, False)])
def test_a_step_fits_where_slopes_at_its_ends_explain_it(before, behind, fits):
    """Along z = G + 1/G, whose fold at G = 1 may be stepped over closely, and not from far away."""

    def at(g):
        return SimpleNamespace(z=g + 1 / g, turn=1 - 1 / g**2, g=lambda index: g)

    assert _step_is_consistent(at(before), at(behind), 0, False) == fits


def test_gap_between_two_intervals():
    law = _law("gap", 30.0, 0.3, 9.0)
    (first, second) = law.edges
    assert first[1] < second[0]
    inside = np.array([(first[1] + second[0]) / 2])
    assert law.density(inside)[0] == 0
    assert law.cumulative(inside)[0] == pytest.approx(0.7, abs=1e-12)  # the low-rank part holds the share b of all


@pytest.mark.long_cases("1e-05-2")
@pytest.mark.slow
@pytest.mark.parametrize("beyond, intervals", [(-1e-3, 1), (-1e-7, 1), (1e-5, 2), (1e-3, 2)])
def test_closing_gap_is_decided_the_same_both_ways(beyond, intervals):
    """At c = 0.318106893516... the gap closes; 1e-5 beyond it is 4e-8 wide."""
    branch = _declared_branch("gap", 30.0, 0.3, 0.31810689351654 + beyond)
    with_curve, without = law_of(branch), law_without_curve(branch)
    assert len(with_curve.edges) == len(without.edges) == intervals
    assert np.max(np.abs(np.array(with_curve.edges) - without.edges)) < 1e-10
    assert max(with_curve.error, without.error) < 1e-10


def test_gap_of_rounding_size_is_seen_with_the_curve():
    law = _law("gap", 30.0, 0.3, 0.31810689351654 + 1e-7)
    (first, second) = law.edges
    assert 0 < second[0] - first[1] < 1e-10 and law.error < 1e-10


EXTREME = [
    {"nu": 1e-3},
    {"nu": 1e4},
    {"gamma": 1e-3},
    {"gamma": 30.0},
    {"chi": 1e-2, "gamma": 3.0},
    {"chi": 50.0},
    {"nu": 1e-3, "chi": 1e-2, "gamma": 30.0},
    {"nu": 1e4, "chi": 50.0, "gamma": 30.0},
    {"nu": 1.0},
    {"nu": 1.0, "chi": 1e-2},
]


@pytest.mark.long_cases("{'nu': 0.001}", "{'nu': 0.001, 'chi': 0.01, 'gamma': 30.0}")
@pytest.mark.slow
@pytest.mark.parametrize("changes", EXTREME, ids=str)
def test_curve_and_folds_agree_at_extreme_parameters(changes):
    branch = _branch("extensive_step", **changes)
    with_curve, without = law_of(branch), law_without_curve(branch)
    scale = with_curve.edges[-1][1]
    assert np.shape(with_curve.edges) == np.shape(without.edges)
    assert np.max(np.abs(np.array(with_curve.edges) - without.edges)) < 1e-10 * scale
    assert np.allclose(with_curve.atoms, without.atoms, atol=1e-12)
    assert max(with_curve.error, without.error) < 1e-10
    # trace of the matrix by hand: 1 + gamma^2 for the mean of the eigenvalues
    gamma = values_of("extensive_step", **changes)["gamma"]
    assert with_curve.moment(1) == pytest.approx(1 + gamma**2, rel=1e-10)
    assert series_moments(branch, 3) == pytest.approx([with_curve.moment(k) for k in range(4)], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_spiked_wisharts", "coupled_spikes", "spiked_wigner", "trained_product"])
def test_curve_and_folds_agree(name):
    branch = _branch(name)
    assert np.max(np.abs(np.array(law_of(branch).edges) - law_without_curve(branch).edges)) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["extensive_step", "two_spiked_wisharts"])
def test_density_against_a_damped_fixed_point(name):
    """Iteration of the equations just above the axis, to convergence, then linear extrapolation to the axis."""
    branch = _branch(name)
    ((low, high),) = support(branch)
    x = low + (high - low) * np.linspace(0.1, 0.9, 41)

    @in_float64
    def iterated(height: float) -> np.ndarray:
        start = jnp.asarray(np.tile(branch.start.responses[:, None], (1, x.size)))
        once = fixed_point(branch)
        never = np.full(x.size, np.inf)  # no reference: run a fixed number of times
        r, count = once(x + 1j * height, start, never, -1.0, 40_000)
        assert int(count) == 40_000
        return -np.asarray(r)[branch.resolvent_index].imag / np.pi

    values = 2 * iterated(1e-5) - iterated(2e-5)
    assert np.max(np.abs(values - law_of(branch).density(x))) < 1e-8


@pytest.mark.long
@pytest.mark.slow
def test_resolvent_is_a_resolvent_everywhere():
    branch = _branch("extensive_step", nu=0.7, chi=0.2, gamma=2.0)
    law = law_of(branch)
    angle = np.exp(1j * np.pi * np.linspace(0.02, 0.98, 25))
    z = (np.geomspace(1e-3, 1e3, 13)[:, None] * angle).ravel()
    g, errors = resolvent_at(branch, z)
    system = branch.resolvent(z)
    transform = np.array([law.transform(point) for point in z])
    away = z.imag > 0.3 * law.edges[-1][1]  # closer to the axis the quadrature, not the branch, is the limit
    assert np.max(np.abs(g - system) / np.abs(g)) < 1e-11
    assert np.max(np.abs(transform - g)[away] / np.abs(g)[away]) < 1e-10
    assert np.all(errors < 1e-10 * np.abs(g) + 1e-14) and np.all(g.imag < 0)


def test_equations_are_solved_to_the_last_digits_on_the_axis():
    branch = _branch("extensive_step")
    ((low, high),) = support(branch)
    x = np.concatenate([np.linspace(low, high, 402)[1:-1], [high + 0.5, low / 2, -3.0]])
    r = branch.responses(x)
    with jax.enable_x64(True):
        residual = np.asarray(residual_of(branch.law, branch.p, x + 0j, r))
    assert np.max(np.abs(residual)) < 1e-12
    assert np.all(r[:, -3:].imag == 0)


GRIDS = {"nu": np.geomspace(1e-3, 1e4, 9), "chi": np.geomspace(1e-2, 50, 9), "gamma": np.geomspace(1e-3, 30, 9)}


@pytest.mark.long_cases("nu", "gamma")
@pytest.mark.slow
@pytest.mark.parametrize("name", GRIDS)
def test_upper_edge_against_a_parameter(name):
    branch, grid = _branch("extensive_step"), GRIDS[name]
    program = upper_edge_program(branch.law)
    edge_at = jax.jit(jax.vmap(jax.value_and_grad(lambda value: program(replaced(branch.p, **{name: value}))[0])))
    with jax.enable_x64(True):
        edge, slope = map(np.asarray, edge_at(jnp.asarray(grid)))
    for value, found in zip(grid, edge, strict=True):
        there = replaced(branch.p, **{name: float(value)})
        exact = max(z.real for z in singular_points(branch.law, there) if z.imag == 0)
        assert found == pytest.approx(exact, rel=1e-13)
    step = 1e-4 * grid
    with jax.enable_x64(True):
        ends = [np.asarray(edge_at(jnp.asarray(grid + s * step))[0]) for s in (1, -1)]
    assert np.allclose((ends[0] - ends[1]) / (2 * step), slope, rtol=1e-5, atol=1e-9)


@pytest.mark.slow
def test_upper_edge_can_be_mapped_and_differentiated_in_reverse():
    """(1 + nu^(-1/2))^2 and its derivative."""
    edge = upper_edge_program(_declared("wishart").matrices[0].bulk)
    nu = np.array([0.1, 1.0, 40.0])
    with jax.enable_x64(True):
        value, slope = jax.jit(jax.vmap(jax.value_and_grad(lambda x: edge(Point(nu=x))[0])))(jnp.asarray(nu))
    assert np.allclose(value, (1 + nu**-0.5) ** 2, rtol=1e-14)
    assert np.allclose(slope, -(1 + nu**-0.5) * nu**-1.5, rtol=1e-12)


def test_histogram_of_eigenvalues_agrees_with_the_integrated_law(simulation_seed):
    """Eigenvalues drawn with numpy alone: every bin within the bound of the suite and half an eigenvalue, which counts
    are off by at a finite size; a shifted law is refused."""
    rng = np.random.default_rng(simulation_seed)
    size, nu, seeds = 300, 0.5, 24
    draws = []
    for _ in range(seeds):
        w = rng.standard_normal((int(nu * size), size))
        draws.append(np.linalg.eigvalsh(w.T @ w / len(w)))
    bins = np.linspace(-0.5, 7.0, 16)
    counts = counts_against(_law("wishart", nu), [np.where(np.abs(e) < 1e-9, 0.0, e) for e in draws], bins)
    assert counts.expected.sum() == pytest.approx(size, abs=1e-9)
    assert np.all(np.abs(counts.mean - counts.expected) < 0.5 + BOUND * counts.stderr)
    shifted = counts_against(_law("wishart", 0.55), draws, bins)
    assert np.max(np.abs(shifted.differences)) > 20


def test_a_coefficient_table_is_its_polynomials():
    """Whole numbers of any length and fractions stay exact; a root is a variable, and a ratio is one of its own."""
    a, b = parameter("a", default=2.0, domain=positive), parameter("b", default=3.0)
    rows = [
        [0, a**2 * b - 3 * b + 7, 10**60 * a + sp.Rational(1, 3)],
        [sp.sqrt(a) * b + a, b / (1 + a), sp.sqrt(2) * b],
    ]
    variables, terms = coefficient_table(rows)
    at = {a: sp.Rational(9, 4), b: sp.Rational(-5, 7)}
    table = CoefficientTable(
        lambda _: [Fraction(str(v)) if (v := x.subs(at)).is_Rational else float(v) for x in variables], terms
    )
    first, second = table.at(Point())
    assert first == tuple(Fraction(str(sp.sympify(e).subs(at))) for e in rows[0])
    assert second == pytest.approx([float(e.subs(at)) for e in rows[1]], rel=1e-15)


def test_coefficients_with_signs_and_cases_are_exact_and_cancel():
    """With sign(k) = -1 nothing is left of a curve but G = 1/z, however long the numbers in it are."""
    sign_curve = CoefficientTable(
        lambda p: (jnp.sign(p.k), jnp.maximum(jnp.abs(p.k), 0.1)),
        ((("1 0 0",), ()), ((f"{10**40} 1 0, {10**40} 0 0",), ("-4/3 0 1",))),
    )
    law = solver_of("spiked_wigner").matrices[0].bulk  # without updates
    assert _evaluated(sign_curve, law, Point(k=-0.75)) == (((1, 0), (0, -1)), True)
    rooted = CoefficientTable(lambda p: (jnp.sqrt(p.k),), (((f"{10**40} 1, {-(10**40)} 1, 1 2",),),))
    assert _evaluated(rooted, law, Point(k=4.0)) == (((4,),), False)


@pytest.mark.slow
def test_module_without_a_curve_has_the_equations_alone():
    """What is written when elimination gives up, and that the same law comes out of it."""
    derivation = derivation_of("extensive_step")
    record = replace(derivation.first.bulk, curve=None, edge_factors=(), edges=(), resolvent=None)
    text = module_text("", "BULK", bulk_record(record, derivation.layout), "numerics.runtime")
    assert "CoefficientTable" not in text
    module = ModuleType("bulk_without_curve")
    exec(compile(text, "bulk.py", "exec"), module.__dict__)  # noqa: S102
    branch = Branch(module.BULK, _branch("extensive_step").p)
    assert not branch.law.eliminated and branch.law.curve_text is None and branch.law.edge_polynomials is None
    assert _branch("extensive_step").law.eliminated
    assert np.allclose(support(branch), support(_branch("extensive_step")), rtol=0, atol=1e-10)
    x = np.linspace(0.5, 7.5, 30)
    assert np.max(np.abs(law_of(branch).density(x) - law_of(_branch("extensive_step")).density(x))) < 1e-11


def test_no_branch_at_infinity_is_one_sentence():
    branch = _branch("extensive_step", gamma=float("nan"))
    with pytest.raises(NumericalError, match="at these parameters"):
        support(branch)


@pytest.mark.long_cases("two_steps")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["spiked_wigner", "extensive_two_layer", "two_steps"])
@in_float64
def test_polynomials_are_the_generated_equations_and_their_derivatives(name):
    branch = _branch(name)
    rng = np.random.default_rng(3)
    r = rng.normal(size=(2, len(branch.law.responses))) + 1j * rng.normal(size=(2, len(branch.law.responses)))
    z = np.array([0.7 + 0.2j, -1.3 + 2j])
    residual, rate, slope = polynomial_system(branch.law, branch.p)(z, r)
    for k in range(2):

        def at(step: float, turn: np.ndarray, k: int = k) -> np.ndarray:
            return np.array(branch.law.residual(branch.p, z[k] + step, r[k] + step * turn))

        turn = rng.normal(size=r.shape[1])
        assert residual[k] == pytest.approx(at(0.0, turn), rel=1e-12, abs=1e-12)
        # of a polynomial of the second degree the central difference is the derivative
        along = (at(0.5, turn) - at(-0.5, turn)) / 1.0
        assert rate[k] + slope[k] @ turn == pytest.approx(along, rel=1e-12, abs=1e-11)


@pytest.mark.slow
@in_float64
def test_points_followed_together_are_where_each_is_alone():
    """Also where a null space makes responses grow without bound, and where some of them nearly vanish."""
    branch = _branch("two_steps", nu=0.5)
    z = np.concatenate([np.linspace(-1.0, 32.0, 23), [1e-3j, 0.02 + 1e-6j, 5 + 1j, -3 + 2j]]) + 0j
    together, errors = branch.followed(z)
    alone = [branch.followed(z[k : k + 1])[0][0] for k in range(z.size)]
    assert np.max(errors) < 1e-6
    index = branch.resolvent_index
    assert together[:, index] == pytest.approx(np.array(alone)[:, index], rel=1e-9, abs=1e-12)


@pytest.mark.slow
def test_large_systems_are_solved_as_small_ones(monkeypatch):
    """Two steps of Newton's method with the factors of the first find what two with their own find."""
    law, p = _branch("extensive_two_layer").law, _branch("extensive_two_layer").p
    z = np.array([3.0 + 0.2j, 1.0, 40.0, -2.0])
    small, found = Branch(law, p, use_curve=False).followed(z)[0], law_without_curve(Branch(law, p))
    monkeypatch.setattr("numerics.bulk.branch.SMALL", 0)
    np.testing.assert_allclose(Branch(law, p, use_curve=False).followed(z)[0], small, rtol=1e-11)
    np.testing.assert_allclose(law_without_curve(Branch(law, p)).edges, found.edges, rtol=1e-12)


@in_float64
def test_points_beside_known_ones_are_where_following_finds_them(monkeypatch):
    """Guessed from neighbours and corrected, next to both edges as in the middle; across an edge nothing is guessed."""
    law, p = _branch("extensive_two_layer").law, _branch("extensive_two_layer").p
    ((low, high),) = law_of(Branch(law, p)).edges
    x = low + (high - low) * np.concatenate([np.geomspace(1e-8, 0.4, 30), 1 - np.geomspace(1e-8, 0.4, 30)])
    small = Branch(law, p, use_curve=False).followed(x)[0]
    monkeypatch.setattr("numerics.bulk.branch.SMALL", 0)
    large = Branch(law, p, use_curve=False)
    found, errors = large.followed(x)
    assert np.max(errors) < 1e-6 and large._inside.places.size > 50
    np.testing.assert_allclose(found, small, rtol=1e-8, atol=1e-10)
    guessed = large._beside_neighbours(np.array([(low + high) / 2, high + 0.1, low - 0.01]) + 0j)[1]
    assert guessed[0] < 1e-12 and np.all(np.isinf(guessed[1:]))


def test_points_that_are_asked_for_are_solved_together_and_once_unless_they_fail(monkeypatch):
    """The semicircle outside its bulk; at 7 the error is too large."""
    branch = Branch(_branch("spiked_wigner").law, Point())
    solved, certain = [], Branch.certain

    def seen(self, z):
        solved.append(z.tolist())
        r, errors = certain(self, z)
        return r, np.where(z == 7, 1e-5, errors)

    monkeypatch.setattr(Branch, "certain", seen)
    for z in ([3, -4, 3], [3, 5, 7], [-4, 5]):
        branch.ask(np.array(z, float))
    assert solved == [[3, -4], [5, 7]]
    assert branch.resolvent(np.array([3.0, -4, 5])) == pytest.approx(
        [(3 - 5**0.5) / 2, 3**0.5 - 2, (5 - 21**0.5) / 2], rel=1e-14
    )
    assert len(solved) == 2
    with pytest.raises(NumericalError, match="did not converge near z = 7"):
        branch.resolvent(np.array([3.0, 7.0]))
    assert solved[2:] == [[7]]


@pytest.mark.long
@pytest.mark.slow
@in_float64
def test_multiples_of_a_matrix_share_the_fields_of_its_products():
    """Unless the number between them may be zero: then each has fields of its own, and the same bulk."""

    def found(domain):
        a, b = parameter("a", default=1.3, domain=domain), parameter("b", default=0.7, domain=positive)
        D, N = sectors("D", N=b)
        A, B = gaussian("A", N, D), goe("B", N)
        M = (a * A.T) @ B @ (a * A) / D + (b * A.T) @ B @ B @ (b * A) / D
        files = solver_files(Model(parameters=(a, b), probe=spectrum(M)))
        branch = load_solver(files).branch({"a": 1.3, "b": 0.7})
        return len(branch.law.responses), branch.resolvent(np.array([0.5 + 0.4j, 3.0 + 1j, -1.0 + 0.2j]))

    (shared, g), (apart, same) = found(positive), found(nonnegative)
    assert shared < apart
    np.testing.assert_allclose(g, same, rtol=1e-10)


def test_a_law_is_kept_to_the_last_bit(monkeypatch, tmp_path):
    branch = _branch("extensive_two_layer")
    other = Branch(branch.law, replaced(branch.p, nu=branch.p.nu * (1 + 1e-15)))
    law, calls = law_of(branch), []

    def find(law=law):
        calls.append(law)
        return law

    tmp_path.chmod(0o700)
    monkeypatch.setenv("TWO_LEVEL_DMFT_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr("numerics.bulk.keeping.LONG", -1.0)
    for _ in range(2):
        kept = load_or_compute(branch, "law", find, law_to_json, law_from_json)
    assert len(calls) == 1 and (kept.edges, kept.atoms, kept.error) == (law.edges, law.atoms, law.error)
    x = np.linspace(*law.edges[0], 50)
    np.testing.assert_array_equal(kept.density(x), law.density(x))
    load_or_compute(other, "law", find, law_to_json, law_from_json)
    load_or_compute(branch, "moments", find, law_to_json, law_from_json)
    assert len(calls) == 3, "other numbers and other questions have answers of their own"
    (file, *_) = (path for path in (tmp_path / "kept" / "bulk").iterdir() if path.name.startswith("law-"))
    file.write_bytes(file.read_bytes()[:-1] + b" ")
    for one in (branch, other):
        load_or_compute(one, "law", find, law_to_json, law_from_json)
    assert len(calls) == 4, "what somebody has changed is found again"


@pytest.mark.long
@pytest.mark.slow
@in_float64
def test_two_steps_on_both_layers_agree_with_simulation(simulation_seed):
    """205 equations without a curve: the resolvent at complex points, and the upper edge, extrapolated in the size."""
    solver, values = solver_of("two_steps_both_layers"), values_of("two_steps_both_layers")
    branch = solver.branch(values)
    z = np.array([0.3 + 0.4j, 1.0 + 0.4j, 2.0 + 0.4j, 3.0 + 0.4j])
    theory = branch.resolvent(z)
    far = 10 * branch.start.height
    edge = march(branch, far, branch.followed(np.array([far]))[0][0], upward=False).z
    step = 1e-5 * edge
    near = -branch.resolvent(np.array([edge - step])).imag[0] / np.pi
    sizes, seen, tops = ((70, 60), (210, 24)), [], []
    for size, seeds in sizes:
        draws = simulate(solver, values, size, seeds, seed=seed_of(simulation_seed, "two steps", size)).eigenvalues
        seen.append(np.array([np.mean(1 / (z[:, None] - e), axis=1) for e in draws]) - theory)
        tracy_widom = edge - TRACY_WIDOM_MEAN * (np.sqrt(step) / (np.pi * near * size)) ** (2 / 3)
        tops.append(np.array([e[-1] for e in draws]) - tracy_widom)
    found = [extrapolated("upper edge", edge, [size for size, _ in sizes], tops)]
    for k, value in enumerate(theory):
        for part in ("real", "imag"):
            draws = [getattr(s[:, k], part) for s in seen]
            name = f"{part} part at {z[k]}"
            found.append(extrapolated(name, getattr(value, part), [size for size, _ in sizes], draws))
    assert not wrong([Block("two steps on both layers", tuple(found))])


def test_points_are_begun_above_their_centre_as_high_as_they_are_apart():
    assert _above(np.array([1.0, 3.0 + 0.5j, 7.0])) == 4.0 + 6.5j
    assert _above(np.array([2.0 + 1j, 2.0 + 4j])) == 2.0 + 7j


@in_float64
def test_equations_of_any_units_are_solved_to_rounding():
    """Without scaling of rows the entry of the first row, 1e-200, is lost beside that of the second."""
    matrix, unit = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([[1e-200], [1e200]])
    right = np.array([[5.0], [5.0]])
    assert solve_scaled(jnp.array(matrix * unit), jnp.array(right * unit))[:, 0] == pytest.approx([1.0, 2.0], rel=1e-14)
