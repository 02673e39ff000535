"""Certificates: each check passes where a solution is right and fails where a fault is planted."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner
from conftest import solver_of, values_of
from jax.tree_util import tree_flatten

import derive
import numerics.solver
from derive import (
    Eq,
    Model,
    diag,
    drawn,
    exponential,
    field,
    goe,
    half_normal,
    mean,
    mixture,
    normal,
    normal_law,
    outer,
    parameter,
    sectors,
    spectrum,
    training_clock,
    trait,
    uniform,
    weights,
    whole_positive,
)
from derive.cli import main
from derive.codegen import solver_files
from numerics.certificate.blocks import BlockRows, IdentityPlus
from numerics.certificate.checking import check_bulk, check_spikes, check_training, unconfirmed_edges
from numerics.certificate.declared import STEPS, DeclaredPast, Functions, _density_rule
from numerics.certificate.expected import Courses, expect
from numerics.certificate.recording import Recording, Tape
from numerics.certificate.records import Certificate, CertificateCheck
from numerics.certificate.words import (
    UNKNOWN,
    DeclaredEnsemble,
    DrawnLetter,
    EntrywiseFunction,
    TraitNumbers,
    outer_product,
    word_moments,
)
from numerics.certificate.zeros import (
    Determinant,
    Gap,
    Lens,
    UncountedZeros,
    check_outliers,
    displacement,
    gaps_outside,
    isolated_zeros,
    trace,
)
from numerics.outliers.edges import undecided_edges
from numerics.outliers.finding import find_outliers
from numerics.runtime.operators import Zero
from numerics.runtime.point import replaced
from numerics.solver import Blurs, _settled, load_solver, solve, spiked_problem
from numerics.support.precision import in_float64
from numerics.training.trained import Trained

SIZE = 2**100


# -- words


def test_traces_of_words_are_sums_over_non_crossing_pairings():
    every = DeclaredEnsemble()
    M = every.matrix(SIZE, SIZE, 1 / SIZE, True)
    assert word_moments(M, 6, 10**6) == [1, 0, 1, 0, 2, 0, 5]
    W = every.matrix(2 * SIZE, SIZE, 1.0, False)
    assert word_moments((1 / (2 * SIZE)) * (W.T @ W), 3, 10**6) == [1, 1, 1.5, 2.75]
    assert word_moments(M + (1 / (2 * SIZE)) * (W.T @ W), 2, 10**6) == [1, 1, 2.5]


def test_a_vector_that_learns_its_matrix_has_the_overlaps_of_wick():
    """v(1) = (M + g v v^T / D) v has <v(1)^2> = 1 + g^2 and <v v(1)> = g, for a normal v with <v^2> = 1."""
    every = DeclaredEnsemble()
    M, v = every.matrix(SIZE, SIZE, 1 / SIZE, True), every.vector(DrawnLetter(SIZE, 1))
    moved = (M + (0.5 / SIZE) * (v @ v.T)) @ v
    assert every.overlaps(moved, moved).item() == pytest.approx(1.25, rel=1e-15)
    assert every.overlaps(v, moved).item() == pytest.approx(0.5, rel=1e-15)


def test_a_matrix_on_a_function_is_gaussian_unless_it_has_a_part_in_it():
    every = DeclaredEnsemble()
    W, v = every.matrix(SIZE, SIZE, 1 / SIZE, False), every.vector(DrawnLetter(SIZE, 1))
    image = W @ EntrywiseFunction.of(np.tanh, v)
    assert every.overlaps(image, image).item() == pytest.approx(0.394294, rel=1e-5)
    again = W.T @ EntrywiseFunction.of(np.tanh, image)
    assert again.terms is None and math.isnan(every.overlaps(image, W @ v).item())


def test_a_mean_that_quadrature_does_not_reach_is_unknown():
    every = DeclaredEnsemble()
    assert math.isnan(EntrywiseFunction.of(np.sign, every.vector(DrawnLetter(SIZE, 1)) + 0.3).mean_row().item())


def test_functions_of_entries_and_of_traits_are_words_where_quadrature_reaches():
    """By hand: means over two values of a trait, and a square of a normal number where conditions hardly hold. A kink,
    as that of |v|, is beyond quadrature."""
    every = DeclaredEnsemble()
    functions, v = Functions(np, every), every.vector(DrawnLetter(SIZE, 1))
    weights = np.array([0.5, 0.5])
    s = TraitNumbers(every, SIZE, (0,), np.array([-1.0, 2.0]), {0: (weights,)})
    assert (2.0 - abs(s)).mean == pytest.approx(0.5) and (s < 0).mean == pytest.approx(0.5)
    assert functions.select([s < 0, True], [3.0, s], 0.0).mean == pytest.approx(2.5)
    assert (1 * (s == 2)).mean == pytest.approx(0.5) and (s != 2.5).mean == 1
    assert functions.select([v > 9, v < -9], [v, 5.0], v**2).mean_row().item() == pytest.approx(1, rel=1e-9)
    assert math.isnan(abs(v).mean_row().item())


def test_fields_before_their_start_are_zero_vectors():
    every = DeclaredEnsemble()
    past = DeclaredPast(every, 1, SIZE, 2)
    past.append(1.5)
    assert every.overlaps(past[0], past[0])[0, 1] == 2.25 and every.overlaps(past[-1], past[0]).tolist() == [[0, 0]] * 2
    assert outer_product(past[-2], past[0]).dyads != UNKNOWN
    assert (-past[-1] / 2).labels == past[-1].labels == 2


@pytest.mark.parametrize("kink", [0.5, 0.3, 0.1234])
def test_a_mean_of_a_density_over_a_kink_is_unknown(kink):
    """Also halfway between two nodes, where every second node has the same error as all."""
    nodes, *rules = _density_rule(np.ones_like, 0.0, 1.0)
    s = TraitNumbers(DeclaredEnsemble(), SIZE, (0,), nodes, {0: rules})
    assert (s * s).mean == pytest.approx(1 / 3, rel=1e-9)
    assert math.isnan(abs(s - kink).mean)


# -- the declared equations at other values


@pytest.mark.parametrize(
    "name, other",
    [
        ("anti_hebbian", {"gamma0": -1.5}),
        ("deep_linear", {"nu": 0.7, "sigma": 0.0}),
        ("structured_regression", {"kappa": 0.0, "ridge": 0.1, "mu": 0.3}),
    ],
)
def test_what_is_recorded_at_one_point_is_right_at_another(name, other):
    """Also where terms that vanish at one of them do not at the other: the computation takes another course."""
    solver, values = solver_of(name), {**values_of(name), "T": 2}
    courses = Courses(solver.simulation, STEPS, ())
    for point in (values, {**values, "eta": 0.07, "dt": 0.2}, {**values, **other}, values):
        p = solver.point(point)
        found, right = (tree_flatten(one) for one in (courses.at(p), expect(solver.simulation, p, STEPS)))
        assert found[1] == right[1] and courses.recordable
        np.testing.assert_allclose(found[0], right[0], rtol=1e-12, atol=1e-14)
    assert len(courses.known) <= 2


def test_a_recorded_number_does_not_turn_into_a_plain_one():
    number = Tape().parameter(2.0)
    for convert in (float, int, math.sqrt, hash, lambda x: np.asarray(x, float), lambda x: np.zeros(3) + x + np.exp(x)):
        with pytest.raises(TypeError):
            convert(number)


def test_a_recording_is_not_repeated_where_a_condition_differs():
    tape = Tape()
    x = tape.parameter(2.0)
    result = 3 * x if x > 1 else -x
    recording = Recording(tape, [x], [result, 7.0])
    assert recording([5.0]) == [15.0, 7.0] and recording([0.5]) is None


# -- matrices of blocks


def drawn_blocks(points=5, size=3):
    """Two rows of blocks with numbers on the diagonal, one with a matrix beside it: one function, of any identity."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, points, 1, 1)) + 1j
    B, C, E, F = rng.standard_normal((4, size, size))

    def made(eye):
        zero = np.zeros((size, size))
        return [
            [(a - 2) * eye, zero, B - C.T],
            [zero, -b * eye / 2, C],
            [E, 2 * F, b * eye.T - (F + a * eye)],
        ]

    dense = [[np.broadcast_to(block, (points, size, size)) for block in row] for row in made(np.eye(size))]
    return BlockRows(made(IdentityPlus(size)), points), np.block([[*row] for row in dense])


def test_a_matrix_of_blocks_has_the_determinant_of_the_matrix():
    blocks, dense = drawn_blocks()
    np.testing.assert_allclose(blocks.stack(), dense, rtol=1e-14)
    np.testing.assert_allclose(blocks.at(2), dense[2], rtol=1e-14)
    assert blocks.pivots == [(0, 0), (1, 1)]
    np.testing.assert_allclose(np.exp(blocks.log_determinants()), np.linalg.det(dense), rtol=1e-12)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
def test_a_determinant_is_that_of_the_matrix_whatever_serves_as_pivot(order):
    """s - gC - R and -C above -g R^T and s - R^T: a column taken off another leaves a number below the diagonal. At
    real s beside complex ones, with odd sizes, where an exchange of rows of blocks turns the sign."""
    rng, size = np.random.default_rng(2), 3
    R, C, E = rng.standard_normal((3, size, size))
    s = np.array([1.5, -0.7, 0.3 + 2j])[:, None, None]

    def made(eye):
        zero = np.zeros((size, size))
        rows = [[s * eye - 0.3 * C - R, -C, E], [-0.3 * R.T, s * eye - R.T, zero], [zero, E, (s + 2) * eye + C]]
        return [[rows[i][k] for k in order] for i in order]

    dense = [[np.broadcast_to(block, (3, size, size)) for block in row] for row in made(np.eye(size))]
    blocks, right = BlockRows(made(IdentityPlus(size)), 3), np.linalg.det(np.block(dense))
    assert len(blocks.sparser.pivots) == 1 and not blocks.pivots
    np.testing.assert_allclose(np.exp(blocks.log_determinants()), right, rtol=1e-12)
    stack = BlockRows([[blocks.stack()]], 3)
    np.testing.assert_allclose(np.exp(stack.log_determinants()), right, rtol=1e-12)


def test_multiples_of_identities_are_a_direct_sum():
    """Without what is beside them: the determinant of each number, as often as the identity has rows."""
    blocks, _ = drawn_blocks()
    parts = blocks.scalar_parts()
    assert [part.count for part in parts] == [3, 3, 3]
    logs = blocks.log_scalar_parts(parts)
    np.testing.assert_allclose(np.exp(logs[:, 2]), blocks.rows[2][2].scale[:, 0, 0], rtol=1e-14)


def test_a_number_added_to_every_entry_is_no_multiple_of_the_identity():
    with pytest.raises(TypeError):
        IdentityPlus(3) + 1.0
    with pytest.raises(TypeError):
        IdentityPlus(3) * np.ones((3, 3))


# -- the checks on solutions that are right


@pytest.mark.parametrize(
    "name, changes",
    [("spiked_wigner", {}), ("anti_hebbian", {"T": 8}), ("coupled_spikes", {})],
)
def test_the_certificate_of_a_right_solution_passes(name, changes):
    found = solve(solver_of(name), {**values_of(name), **changes}, certify=None).certificate
    assert found and all(check.passed for check in found), found


@pytest.fixture(scope="module")
def spiked():
    """A solution with one outlier, and what it is found from."""
    solver = solver_of("spiked_wigner")
    solution = solve(solver, {"gamma0": 2.0})
    return solver, solution, spiked_problem(solver, solution)


def declared_by(solver, values):
    return expect(solver.simulation, solver.point(values), STEPS)


# -- planted faults


@pytest.mark.parametrize("outliers", [[], [2.5, 2.5], [-2.5]])
def test_a_missing_a_doubled_or_a_misplaced_outlier_fails(spiked, outliers):
    check = check_outliers(spiked[2], outliers)
    assert check.status == "failed" and check_outliers(spiked[2], [2.5]).passed


@pytest.mark.parametrize("off", [0.025, -1e-3, 2e-4])
def test_an_outlier_that_is_no_zero_fails(spiked, off):
    check = check_outliers(spiked[2], [2.5 + off])
    assert check.status == "failed" and check.expected == 0.0
    assert check.value == pytest.approx(abs(off), rel=0.4) and check.closeness < abs(off)


def test_an_outlier_that_is_no_zero_fails_beside_one_that_is():
    """Two spikes of a Wigner matrix, with outliers t + 1/t; det A(z) is not a number at a third point."""
    tested = isolated_zeros(Gap(2.0, math.inf, 4.0), [2.5, 4.25, 6.0])
    beside = [math.log(one.aside) for one in tested]
    assert displacement(tested, np.array([-math.inf, -math.inf, math.nan, *beside])) is None
    off = displacement(tested, np.array([-math.inf, math.log(0.01), math.nan, *beside]))
    assert off is not None and off.z == 4.25 and off.distance == pytest.approx(0.01) and off.allowed < 0.01


@in_float64
def test_zeros_that_lie_together_are_all_counted():
    """Six outliers in one cluster turn the argument by more than a whole turn from one first node to the next."""
    D, C = sectors("D"), 6
    vectors = [normal(f"v{k}", D) for k in range(C)]
    matrix = sum((outer(v, v) * (2 + sp.Rational(k, 100)) / D for k, v in enumerate(vectors)), goe("S", D))
    solver = load_solver(solver_files(Model(parameters=(), equations=[], probe=spectrum(matrix))))
    solution = solve(solver, {})
    problem = spiked_problem(solver, solution)
    lens = Lens.around(gaps_outside(problem)[-1], solution.outliers)
    assert trace(Determinant(problem), [lens])[0].zeros == 6
    assert check_outliers(problem, solution.outliers).passed
    assert check_outliers(problem, solution.outliers[:5]).status == "failed"
    assert check_outliers(problem, [*solution.outliers[:5], solution.outliers[5] + 1e-4]).status == "failed"


@in_float64
def test_a_zero_on_the_contour_is_not_decided(spiked):
    problem = spiked[2]
    gap = gaps_outside(problem)[-1]
    lens = Lens(gap, gap.w(2.5), 3.0, 1.5, 0)
    with pytest.raises(UncountedZeros):
        trace(Determinant(problem), [lens])


def test_a_pencil_that_loses_its_eigenvalues_is_caught_by_the_zeros(spiked):
    problem = spiked[2]
    cycle = dataclasses.replace(problem.probe.cycles[0], pencil=lambda p, order: Zero((1, 1)))
    broken = dataclasses.replace(problem, probe=dataclasses.replace(problem.probe, cycles=(cycle,)))
    found = [outlier.z for outlier in find_outliers(broken)]
    assert found == [] and check_outliers(broken, found).status == "failed"


def test_a_relation_that_vanishes_identically_is_not_read_as_no_roots(spiked):
    problem = spiked[2]
    cycle = dataclasses.replace(problem.probe.cycles[0], inverse=None, relation=lambda p, s: (0.0, 0.0))
    broken = dataclasses.replace(problem, probe=dataclasses.replace(problem.probe, cycles=(cycle,)))
    assert [outlier.z for outlier in find_outliers(broken)] == pytest.approx([2.5], rel=1e-9)


def test_a_bulk_that_is_moved_or_of_another_width_fails(spiked):
    solver, solution, _ = spiked
    declared, layer = declared_by(solver, {"gamma0": 2.0}), solution.layers[0]
    assert check_bulk(declared, "", layer.law, layer.moments).passed
    assert check_bulk(declared, "", layer.law.moved(1e-6), layer.moments).status == "failed"
    wrong = [m * (1 + 1e-6) if k == 2 else m for k, m in enumerate(layer.moments)]
    assert check_bulk(declared, "", layer.law, wrong).status == "failed"


@in_float64
def test_an_observable_that_is_off_at_a_first_step_fails():
    solver, values = solver_of("anti_hebbian"), {**values_of("anti_hebbian"), "T": 8}
    trained = Trained.exact(solver, values)
    declared = declared_by(solver, values)
    assert check_training(declared, solver, trained).passed
    for time, status in ((1, "failed"), (7, "passed")):
        series = np.array(trained.observables["activity"])
        series[time] *= 1 + 1e-7
        changed = dataclasses.replace(trained, observables={**trained.observables, "activity": series})
        assert check_training(declared, solver, changed).status == status


@pytest.mark.parametrize("fault", ["dropped", "doubled", "moved edge", "wrong mass", "wrong first step"])
def test_a_wrong_number_anywhere_makes_the_certificate_fail(fault, monkeypatch):
    """Planted in what a solution is made from: an outlier dropped or twice there, an edge or a mass off by 1e-6, an
    observable off by 1e-8 after one step."""
    if fault == "wrong first step":
        exact = Trained.exact
        monkeypatch.setattr(Trained, "exact", staticmethod(lambda *given: _after_one_step(exact(*given))))
    else:
        place, change = {
            "dropped": ("find_outliers", lambda found: found[1:]),
            "doubled": ("find_outliers", lambda found: [*found, found[-1]]),
            "moved edge": ("law_of", _wider),
            "wrong mass": ("law_of", _heavier),
        }[fault]
        right = getattr(numerics.solver, place)
        monkeypatch.setattr(numerics.solver, place, lambda *given, **more: change(right(*given, **more)))
    values = values_of("coupled_spikes")
    (failed,) = solve(solver_of("coupled_spikes"), values, certify=None).certificate.failed
    name = {"dropped": "outliers", "doubled": "outliers", "wrong first step": "training"}.get(fault, "bulk")
    assert failed.name == name and len(failed.sentence) < 300
    assert "edges" in failed.what if fault == "moved edge" else True


def _wider(law):
    ((low, high),) = law.edges
    return dataclasses.replace(law, edges=((low, high * (1 + 1e-6)),))


def _heavier(law):
    panels = tuple(dataclasses.replace(panel, series=panel.series * (1 + 1e-6)) for panel in law.panels.panels)
    return dataclasses.replace(law, panels=dataclasses.replace(law.panels, panels=panels))


def _after_one_step(trained):
    series = np.array(trained.observables["phi_norm"])
    series[1] *= 1 + 1e-8
    return dataclasses.replace(trained, observables={**trained.observables, "phi_norm": series})


def test_edges_where_three_roots_meet_are_edges(monkeypatch):
    """Where the number of real roots of the curve does not change, the bulk equations decide."""
    solver, values = solver_of("coupled_spikes"), values_of("coupled_spikes")
    law, branch = solve(solver, values).layers[0].law, solver.branch(values)
    monkeypatch.setattr("numerics.certificate.checking.real_roots", lambda branch, z: [1] * z.size)
    assert unconfirmed_edges(branch, law, thorough=False) == []
    low, high = law.edges[0]
    moved = dataclasses.replace(law, edges=((low - 1e-6, high - 1e-6),))
    assert len(unconfirmed_edges(branch, moved, thorough=False)) == 2


def test_edges_of_a_bulk_with_coefficients_that_weights_gain_are_checked():
    """The curve takes the sums that updates of W have gained, as 0.9^T does not have to be written out."""
    T, D = parameter("T", default=3, domain=whole_positive), sectors("D")
    t = training_clock("t", steps=T)
    W, g, h = weights("W", D, D, t), normal("g", D), normal("h", D)
    rules = [Eq(W(0), goe("A", D)), Eq(W(t + 1), W(t) / (1 + sp.tanh(t)) + outer(g, h) / D)]
    solver = load_solver(solver_files(Model(parameters=(T,), equations=rules, probe=spectrum(W(T) + W(T).T))))
    assert solver.matrices[0].bulk.coefficients is not None
    assert solve(solver, {"T": 3}, certify=None).certificate


def test_blocks_with_the_wrong_sign_of_a_spike_fail(spiked):
    """det A(z) then has as many zeros, on the other side."""
    solver, _, problem = spiked
    declared = declared_by(solver, {"gamma0": 2.0})
    (right,), wrong = check_spikes(declared, problem, "", [2.5]), dataclasses.replace(problem, p=_turned(problem.p))
    assert right.passed and check_outliers(wrong, [-2.5]).passed
    assert check_spikes(declared, wrong, "", [-2.5])[0].status == "failed"


def _turned(p):
    return replaced(p, gamma0=-p.gamma0)


def test_traits_and_functions_are_checked_where_words_reach():
    T, D = parameter("T", default=4, domain=whole_positive), sectors("D")
    t = training_clock("t", steps=T)
    s, v, start = trait("s", D, values=[0.5, 1.5]), field("v", D, t), normal("start", D)
    M = goe("M", D)
    rules = [Eq(v(0), start), Eq(v(t + 1), s * v(t) + M @ v(t))]
    model = Model(parameters=(T,), equations=rules, observe={"size": mean(v(t) ** 2)}, probe=spectrum(M + diag(s)))
    found = solve(load_solver(solver_files(model)), {"T": 4}, certify=True).certificate
    assert [check.status for check in found] == ["passed"] * 3, found
    assert "moments 1 to 4" in found.checks[1].what and "times 0 to 3" in found.checks[2].what


def _on_a_diagonal(entries):
    a, D = parameter("a", default=1.0), sectors("D")
    model = Model(parameters=(a,), equations=[], probe=spectrum(a * goe("M", D) + diag(entries(D))))
    return load_solver(solver_files(model))


@pytest.mark.long_cases("<lambda>2")
@pytest.mark.parametrize(
    "entries",
    [
        lambda D: drawn("x", D, uniform(-1, 2)),
        lambda D: sp.tanh(drawn("x", D, exponential(0.7))),
        lambda D: sp.tanh(drawn("x", D, mixture([0.25, 0.75], [normal_law(-1, 0.5), half_normal(2)]))),
        lambda D: sp.tanh(normal("x", D)),
    ],
)
def test_moments_are_checked_with_drawn_numbers_on_a_diagonal(entries):
    found = solve(_on_a_diagonal(entries), {"a": 1.0}, certify=True).certificate
    assert found and "moments 1 to 4" in found.checks[1].what, found


def test_a_law_on_a_diagonal_counted_by_mean_and_variance_alone_fails():
    """Uniform numbers and normal ones with the same two moments; the certificate reads the declaration of the first."""
    right = _on_a_diagonal(lambda D: sp.tanh(drawn("x", D, uniform(-1, 2))))
    wrong = _on_a_diagonal(lambda D: sp.tanh(drawn("x", D, normal_law(0.5, sp.sqrt(3) / 2))))
    found = solve(dataclasses.replace(wrong, finite_size=right.finite_size), {"a": 1.0}, certify=True).certificate
    assert [check.name for check in found.failed] == ["bulk"] and "moment" in found.failed[0].what, found


def test_a_matrix_applied_twice_to_ones_has_a_mean():
    """By hand: M M 1 = 1 + n with n normal of variance one, so that the mean of cos is cos(1) exp(-1/2)."""
    every = DeclaredEnsemble()
    M, ones = every.matrix(SIZE, SIZE, 1 / SIZE, True), every.constant(SIZE, 1.0)
    mean = Functions(np, every).cos(M @ (M @ ones)).mean_row().item()
    assert mean == pytest.approx(math.cos(1) * math.exp(-0.5), rel=1e-9)


# -- what a solution does with it


def test_a_solution_says_what_was_checked(tmp_path):
    solution = derive.load("spiked_wigner").solve(gamma0=2)
    assert "4 checks passed" in str(solution.certificate) and solution
    kept = derive.open(solution.save(tmp_path / "run.nc"))
    assert kept.certificate == solution.certificate and kept.as_dict()["certificate"][0]["status"] == "passed"
    assert derive.load("spiked_wigner").solve(gamma0=2, certify=False).certificate is None
    points = derive.load("spiked_wigner").sweep(gamma0=[2, 3], certify=True)
    assert [point.certificate.summary for point in points] == ["4 checks passed"] * 2


def test_a_failed_check_makes_the_solution_false_and_the_command_end_with_3(monkeypatch):
    failed = CertificateCheck("outliers", "", "zeros of det A(z) above 2", 0.0, 1.0, 0.0, "failed")
    monkeypatch.setattr("numerics.solver.Certifier.certificate", lambda self, labels: Certificate((failed,)))
    solution = derive.load("spiked_wigner").solve(gamma0=2)
    assert not solution and "zeros of det A(z) above 2, 0 instead of 1" in solution.trouble[0]
    assert len(solution.trouble[0]) <= 300 and "derive check spiked_wigner" in solution.trouble[0]
    result = CliRunner().invoke(main, ["solve", "spiked_wigner"])
    assert result.exit_code == 3 and "1 failed" in result.output and "not to be trusted" in result.output


# -- outliers beside an edge that has an error


def test_an_outlier_within_the_error_of_the_edge_is_not_decided(spiked):
    problem, law = spiked[2], spiked[1].layers[0].law
    blurs = Blurs.of(law, [[None, 0.01]])
    assert blurs.at(-2.0) == blurs.at(2.0) == 0.01 and Blurs.of(law, None).at(2.0) == 0
    assert _settled(problem, blurs, 2.5, 2.49, 0.02) == (2.49, 0.02, True)
    value, error, sure = _settled(problem, blurs, 2.001, 2.002, 1e-5)
    assert value == 2.001 and 0.01 <= error < 0.011 and not sure
    assert _settled(problem, blurs, 2.001, 2.001, math.inf)[1] == pytest.approx(math.hypot(0.001, 0.01))


def test_an_outlier_closer_to_an_exact_edge_than_its_own_error_is_not_decided(spiked):
    exact = Blurs.of(spiked[1].layers[0].law, None)
    assert _settled(spiked[2], exact, 2.001, 2.002, 1e-3) == (2.002, 1e-3, True)
    value, error, sure = _settled(spiked[2], exact, 2.001, 2.002, 3e-3)
    assert value == 2.001 and error == pytest.approx(math.hypot(0.001, 3e-3)) and not sure


@pytest.mark.parametrize("gamma0, edges", [(1.01, []), (0.98, [2.0]), (0.8, []), (-0.98, [-2.0])])
def test_an_outlier_about_to_leave_a_blurred_edge_is_seen(gamma0, edges):
    """gamma0 + 1/gamma0 is 1e-4 from the edge at 1.01, and as far on the other sheet at 0.99."""
    solver = solver_of("spiked_wigner")
    solution = solve(solver, {"gamma0": gamma0})
    problem = spiked_problem(solver, solution)
    assert undecided_edges(problem, {-2.0: 1e-3, 2.0: 1e-3}, solution.outliers) == edges


@pytest.mark.long
def test_seeds_that_differ_about_an_outlier_all_say_that_it_is_not_decided():
    """At this coupling two seeds of four have an outlier, at a distance from the edge far below the error of that."""
    T, D, g = parameter("T", default=3, domain=whole_positive), sectors("D"), parameter("g", default=0.1)
    t = training_clock("t", steps=T)
    s, v, start = trait("s", D, values=[0.5, 1.5]), field("v", D, t), normal("start", D)
    M = weights("M", D, D, t)
    rules = [Eq(v(0), start), Eq(v(t + 1), s * v(t) / 2 + M(t) @ v(t) / 2)]
    rules += [Eq(M(0), goe("M0", D)), Eq(M(t + 1), M(t) + g / D * outer(v(t), v(t)))]
    matrix = M(T) + diag(sp.tanh(v(T - 1)))
    theory = derive.load(Model(parameters=(g, T), equations=rules, probe=spectrum(matrix)))
    runs = [theory.solve(samples=4000, seed=seed, overlaps=False) for seed in range(4)]
    assert {len(run.outliers) for run in runs} == {0, 1} and not any(runs)
    edges, errors = (np.array([f(run.layer())[0, 1] for run in runs]) for f in (_edges, _errors))
    assert np.std(edges, ddof=1) < 3 * errors.mean()
    for run in runs:
        assert all(error > 0.5 * errors.mean() for error in run.outlier_errors)


def _edges(layer):
    return layer.bulk_edges


def _errors(layer):
    return layer.edge_errors
