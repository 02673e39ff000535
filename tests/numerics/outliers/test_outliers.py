"""Outliers: one eigenproblem against the slow ways, multiplicity, and the BBP threshold."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import model_named, solver_of, values_of

from derive import Model, goe, normal, outer, sectors, spectrum
from derive.codegen import solver_files
from derive.errors import NumericalError
from numerics.bulk.support import support
from numerics.outliers import finding
from numerics.outliers.errors import estimated_outliers
from numerics.outliers.finding import (
    SpikedProblem,
    by_contour,
    find_outliers,
    smallest_singular_values,
)
from numerics.outliers.linear import distance_to_zero, eigenvalue_residual, null_spaces
from numerics.outliers.poles import _clusters
from numerics.solver import load_solver, solve, spiked_problem
from numerics.support.nearby import Nearby
from numerics.support.precision import in_float64


@pytest.mark.parametrize("gamma0", [1.001, 1.5, 40.0])
def test_planted_direction(gamma0):
    solution = solve(solver_of("spiked_wigner"), {"gamma0": gamma0})
    assert solution.outliers == pytest.approx([gamma0 + 1 / gamma0], rel=1e-12)


@pytest.mark.parametrize("gamma0", [0.2, 0.999, 1.0])
def test_no_outlier_at_or_below_the_threshold(gamma0):
    assert not len(solve(solver_of("spiked_wigner"), {"gamma0": gamma0}).outliers)


@pytest.mark.parametrize("away", [1e-4, 1e-5, 5e-6])
def test_an_outlier_next_to_the_edge_is_told_from_the_bulk(away):
    """Its distance from the edge is the square of `away`; just below the threshold the other branch is as close."""
    wigner, rectangular = solver_of("spiked_wigner"), solver_of("coupled_spikes")
    solution = solve(wigner, {"gamma0": 1 + away})
    assert np.array(solution.outliers) - 2 == pytest.approx([away**2], rel=1e-3)
    assert not len(solve(wigner, {"gamma0": 1 - away}).outliers)
    for alpha in (0.1, 1.0, 10.0):  # threshold theta = alpha^(-1/4), edge (1 + 1/sqrt(alpha))^2
        values = {"alpha": alpha, "sigma": 1.0, "kappa": 0.5, "S": 1}
        above = solve(rectangular, {**values, "theta": alpha**-0.25 * (1 + away)})
        distance = 4 * away**2 / np.sqrt(alpha)
        assert np.array(above.outliers) - (1 + alpha**-0.5) ** 2 == pytest.approx([distance], rel=0.02)
        assert not len(solve(rectangular, {**values, "theta": alpha**-0.25 * (1 - away)}).outliers)


@pytest.mark.long_cases("linear_network-changes4")
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, changes",
    [
        ("anti_hebbian", {}),
        ("anti_hebbian", {"gamma0": -1.5, "dt": 0.1, "T": 10}),
        ("coupled_spikes", {"S": 5}),
        ("coupled_spikes", {"alpha": 3.0, "theta": -0.6, "kappa": -1.0, "S": 4}),
        ("linear_network", {"C": 3, "T": 9}),
        ("unlearning", {"T": 4}),
    ],
)
@in_float64
def test_eigenproblem_and_contour_integral_find_the_same_outliers(name, changes):
    solver, values = solver_of(name), values_of(name, **changes)
    solution = solve(solver, values)
    slow = sorted(by_contour(spiked_problem(solver, solution)), reverse=True)
    assert len(solution.outliers)
    # one entry per outlier in both, equal ones as often as they occur
    assert slow == pytest.approx(sorted(solution.outliers, reverse=True), abs=2e-6)


@pytest.mark.slow
def test_smallest_singular_value_vanishes_at_outliers_and_nowhere_else():
    solver, values = solver_of("coupled_spikes"), values_of("coupled_spikes", S=4)
    solution = solve(solver, values)
    problem = spiked_problem(solver, solution)
    top = solution.bulk_edges[-1][1]
    grid = np.linspace(top + 0.02, 1.2 * max(solution.outliers), 400)
    sizes = smallest_singular_values(problem, grid)
    dips = [grid[i] for i in range(1, 399) if sizes[i] < min(sizes[i - 1], sizes[i + 1]) and sizes[i] < 0.05]
    found = [z for z in solution.outliers if grid[0] < z < grid[-1]]
    assert len(dips) == len(found)
    assert np.allclose(sorted(dips), sorted(found), atol=grid[1] - grid[0])
    assert np.max(smallest_singular_values(problem, np.array(found))) < 1e-10


@pytest.mark.slow
def test_symmetric_classes_give_one_outlier_each():
    solver = solver_of("linear_network")
    for classes in (1, 2, 4):
        outliers = solve(solver, values_of("linear_network", C=classes)).outliers
        assert len(outliers) == classes and np.ptp(outliers) < 1e-9


@pytest.mark.slow
def test_outliers_do_not_depend_on_how_a_ring_is_cut():
    """W W^T / N1 has the same outliers as W^T W / N1."""
    model = model_named("coupled_spikes")
    ((_, probe),) = model.probes
    W = probe.matrix.terms[0][1].factors[1]
    scale = probe.matrix.terms[0][0]
    turned = dataclasses.replace(model, observe=dict(model.observe), probe=spectrum(scale * W @ W.T))
    values = values_of("coupled_spikes", S=4, alpha=0.6)
    assert solve(load_solver(solver_files(turned)), values).outliers == pytest.approx(
        solve(solver_of("coupled_spikes"), values).outliers, rel=1e-9
    )


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, Fraction(1, 8), 30])
def test_outliers_that_are_found_by_contours_scale_with_the_matrix(scale):
    """Small matrices have each of them as often as large ones: what is near is told in units of the bulk."""
    D = sectors("D")
    W = goe("A", D) + outer(normal("m", D), normal("u", D)) * 8 / D
    for k, strength in enumerate((16, 4, 1)):
        n = normal(f"n{k}", D)
        W = W + strength / D * outer(n, n)
    plain, scaled = (
        solve(load_solver(solver_files(Model(parameters=(), probe=spectrum(c**2 * W @ W.T), name="scaled"))), {})
        for c in (1, scale)
    )
    assert not plain.diagnostics.reduced and len(plain.outliers) >= 3
    assert np.allclose(scaled.outliers, np.array(plain.outliers) * float(scale) ** 2, rtol=1e-8)


def test_no_spurious_outlier_at_the_atom():
    solution = solve(solver_of("coupled_spikes"), values_of("coupled_spikes", alpha=0.4, S=4))
    assert solution.layers[0].atoms and all(abs(z) > 1e-3 for z in solution.outliers)


@pytest.mark.slow
def test_sixty_spikes_to_rounding():
    solution = solve(solver_of("coupled_spikes"), values_of("coupled_spikes", S=60, kappa=0.05))
    assert len(solution.outliers) and solution.diagnostics.residual < 1e-10


def test_no_spikes_no_outliers():
    solver, values = solver_of("extensive_step"), values_of("extensive_step")
    branch = solver.branch(values)
    problem = SpikedProblem(solver.matrices[0].probe, branch.p, {}, branch, tuple(support(branch)))
    assert find_outliers(problem) == []


def test_outliers_of_different_orders_beside_a_hard_edge_are_two():
    """Each negative spike of a square W^T W has an outlier below zero, however weak it is."""
    branch = solver_of("extensive_step").branch(values_of("extensive_step"))
    problem = SpikedProblem(solver_of("extensive_step").matrices[0].probe, branch.p, {}, branch, ((0.0, 2.0),))
    strong, weak, far = -5.9e-8, -2.0e-10, -0.3
    paths = [[far, strong, weak], [far + 1e-8, far, weak * (1 + 1e-6)], [strong * (1 + 1e-6)]]
    assert finding._merged(paths, problem.same) == pytest.approx([far, far, strong, weak], rel=1e-5)
    assert _clusters(problem, [weak, strong, far, far]) == [(weak, 1), (strong, 1), (far, 2)]


@pytest.mark.parametrize("gamma0", [1e120, 1e200])
def test_numbers_too_large_to_square_are_an_error_and_no_empty_answer(gamma0):
    with pytest.raises(NumericalError, match="diverged"):
        solve(solver_of("spiked_wigner"), {"gamma0": gamma0})


@pytest.mark.parametrize("size, count", [(1, 1), (2, 2), (3, 2)])
def test_null_spaces_of_a_matrix_that_vanishes(size, count):
    for space in null_spaces(np.zeros((size, size)), count):
        assert np.allclose(space.T @ space, np.eye(count), atol=1e-12)


def test_null_spaces_on_both_sides():
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((6, 4)) @ rng.standard_normal((4, 6))
    right, left = null_spaces(matrix, 2)
    assert np.abs(matrix @ right).max() < 1e-12 and np.abs(matrix.T @ left).max() < 1e-12


@pytest.mark.parametrize("rows", [(1.0, 1.0), (1e5, 1e-5)])
def test_a_matrix_that_vanishes_at_an_edge_has_its_zero_as_far_as_the_edge(rows):
    """sqrt(-z) vanishes at the hard edge z = 0, and nowhere outside the bulk, however rows are scaled."""
    z, scale = -5e-9, np.diag(rows)
    root, slope = np.diag([1.0, math.sqrt(-z)]), np.diag([0.0, -0.5 / math.sqrt(-z)])
    assert distance_to_zero(scale @ root, scale @ slope, 2e-16) == pytest.approx(2 * abs(z), rel=1e-6)


@pytest.mark.parametrize("z", [-1e-2, -1e-5])
def test_zeros_that_poles_cancel_are_no_zeros_of_the_determinant(z):
    """[[z^2, z], [z, 2 + 1/z^2]] has a vanishing singular value at z = 0, where its determinant is one."""
    matrix, slope = np.array([[z * z, z], [z, 2 + z**-2]]), np.array([[2 * z, 1.0], [1.0, -2 * z**-3]])
    assert distance_to_zero(matrix, slope, 2e-16) > 1


@pytest.mark.parametrize("copies", [1, 3])
def test_a_zero_is_as_near_as_it_is_whatever_its_multiplicity(copies):
    off, simple = 1e-6, np.kron(np.eye(copies), [[1.0, 2.0], [2.0, 4.0]])
    slope = np.kron(np.eye(copies), [[0.0, 0.0], [0.0, 1.0]])
    assert distance_to_zero(simple + off * slope, slope, 2e-16) == pytest.approx(off, rel=1e-6)


def test_rounding_of_the_matrix_is_part_of_the_distance():
    """Entries that cancel leave a slope of 1e-6 here: rounding alone moves the zero by 1e-10."""
    off, slope = -3e-11, np.array([[0.0, 0.0], [0.0, 1e-6]])
    assert distance_to_zero(np.ones((2, 2)) + off * slope, slope, 2e-15) > 3e-10


@in_float64
def test_outliers_of_large_problems_are_checked_in_their_eigenproblem(monkeypatch):
    """A(z) is not written down: the same outliers, and a residual that tells an eigenvalue from what is none."""
    solver = solver_of("coupled_spikes")
    problem = spiked_problem(solver, solve(solver, values_of("coupled_spikes", S=5)))
    small = find_outliers(problem)
    monkeypatch.setattr(finding, "LARGEST_ASSEMBLED", 0)
    monkeypatch.setattr(finding, "with_slope", None)
    large = find_outliers(problem)
    assert [one.z for one in large] == [one.z for one in small] and len(large) > 2
    assert all(one.residual < 1e-12 for one in large)
    (spectrum,) = finding.cycle_spectra(problem)
    s = spectrum.outliers[0][1]
    assert eigenvalue_residual(spectrum.matrix, s) < 1e-12 < 1e-4 < eigenvalue_residual(spectrum.matrix, 1.01 * s)


@pytest.mark.parametrize("at", [0.0, 2.0])
def test_null_spaces_of_a_matrix_less_a_number(at):
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((6, 6))
    matrix = vectors @ np.diag([at, at, 1.0, 3.0, -1.0, 0.5]) @ np.linalg.inv(vectors)
    before = matrix.copy()
    right, left = null_spaces(matrix, 2, at)
    assert np.allclose(matrix @ right, at * right, atol=1e-9) and np.allclose(matrix.T @ left, at * left, atol=1e-9)
    assert np.array_equal(matrix, before), "factored in place, but not in its own"


def errors_of(outliers, others):
    return [
        error for _, error in estimated_outliers(outliers, others, Nearby(({},) * len(others), (1.0,) * len(others)))
    ]


def nearly_equal(rng, apart, symmetric=True, count=20, trials=400):
    """Estimates of two outliers at 5 + apart and 5 - apart; noise moves half their distance by one, and their mean by
    a hundredth."""
    for _ in range(trials):
        noise = rng.standard_normal((count, 3)) * count**0.5
        matrices = np.array([[[x, y], [y if symmetric else y / 2, -x]] for x, y, _ in noise])
        matrices = matrices + 0.01 * noise[:, 2, None, None] * np.eye(2)
        mean = 5 * np.eye(2) + apart * np.diag([1.0, -1.0]) + matrices.mean(0)
        moved = [mean + (one - matrices.mean(0)) / (count * (count - 1)) ** 0.5 for one in matrices]
        here, *others = (np.sort(np.linalg.eigvals(one))[::-1].tolist() for one in (mean, *moved))
        yield estimated_outliers(here, others, Nearby(({},) * count, (1.0,) * count, replicas=count))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("apart", [0.0, 0.5, 1.0, 2.0, 3.0, 4.0])
def test_outliers_that_are_nearly_equal_are_off_by_their_errors(apart, symmetric):
    """They are within four errors, errors are neither too small nor too large, and noise that pushes them apart moves
    their means by less than half an error."""
    found = np.array(list(nearly_equal(np.random.default_rng(7), apart, symmetric)))
    off, errors = found[..., 0] - (5 + apart, 5 - apart), found[..., 1]
    assert np.mean(np.any(abs(off) > 4 * errors, axis=1)) <= 0.01
    assert np.all(np.mean(errors**2, axis=0) > 0.6 * np.mean(off**2, axis=0))
    assert np.all(np.mean(errors**2, axis=0) < 2 * np.mean(off**2, axis=0))
    assert np.all(abs(np.mean(off, axis=0)) < 0.55 * np.mean(errors**2, axis=0) ** 0.5)


def test_an_outlier_that_is_known_well_keeps_its_error_beside_one_that_is_not():
    """At 28 and 5, with errors of 8 and 0.5: three errors of their distance apart."""
    rng, count = np.random.default_rng(3), 20
    for _ in range(20):
        noise = rng.standard_normal((count, 2)) * (8, 0.5)
        noise = (noise - noise.mean(0)) * math.sqrt((count - 1) / count) / noise.std(0, ddof=1) * (8, 0.5) / count**0.5
        others = [(np.array([28.0, 5.0]) + one * math.sqrt(count / (count - 1))).tolist() for one in noise]
        (high, wide), (low, narrow) = estimated_outliers(
            [28.0, 5.0], others, Nearby(({},) * count, (1.0,) * count, replicas=count)
        )
        assert (high, low) == pytest.approx((28, 5), abs=1.5)
        assert wide == pytest.approx(8, rel=0.15) and narrow < 2


def test_noise_adds_its_second_order_to_a_result():
    values = np.random.default_rng(0).standard_normal(20)
    moves = (values - values.mean()) / math.sqrt(20 * 19)
    nearby = Nearby(({},) * 21, (1.0,) * 21, replicas=20)
    for slope in (0.0, 3.0):
        found = nearby.added_by_noise(1.0, [*(1 + slope * moves + 2 * moves**2), 100.0])
        assert found == pytest.approx(2 * np.var(values, ddof=1) / 20)


def test_no_outlier_of_a_replica_is_that_of_two():
    """A second one, at the edge, that some replicas do not have: it says nothing about the first."""
    others = [[5.1, 4.0], [4.9, 4.01], [5.2], [4.8], [5.1]]
    first, second = errors_of([5.0, 4.0], others)
    assert first == pytest.approx(math.sqrt(0.01 + 0.01 + 0.04 + 0.04 + 0.01)) and second == math.inf
    assert errors_of([4.9], [[5.0, 4.0], [4.8, 4.1]]) == pytest.approx([0.1 * 2**0.5])


def test_replicas_without_the_outlier_are_said():
    assert errors_of([3.0], [[3.1], [2.9], [], [], []]) == [float("inf")]
    assert errors_of([3.0], [[3.1], [2.9]]) == pytest.approx([0.1 * 2**0.5])


def test_of_two_equally_near_outliers_of_a_replica_the_one_of_the_same_rank_is_taken():
    """With one more or one fewer in a replica, ranks are counted from the end that the outlier is nearer to."""
    assert errors_of([9.0, 0.0], [[9.5, 8.5, 0.0], [9.5, 0.0]])[0] == pytest.approx(0.5 * 2**0.5)
    assert errors_of([9.0, 0.0], [[9.0, 0.5, -0.5], [9.0, -0.5]])[1] == pytest.approx(0.5 * 2**0.5)


@pytest.mark.parametrize(
    "coefficients, roots",
    [
        ([1.0, -3.0, 2.0], [2, 1]),
        ([1e-320, -3.0, 6.0], [2]),
        ([0.0, 1e-310, 1e-300, 1.0, -2.0], [2]),
        ([1e300, -3e300], [3]),
        ([1.0, 0.0, 1.0], []),
        ([5e-324], []),
        ([0.0, 0.0], None),
        ([np.inf, 1.0], None),
        ([1.0, np.nan], None),
    ],
)
def test_real_roots_of_polynomials_with_coefficients_of_any_size(coefficients, roots):
    """What vanishes identically or is not finite says nothing about roots."""
    found = finding.real_roots(coefficients)
    assert found is None if roots is None else sorted(found, reverse=True) == pytest.approx(roots, rel=1e-12)


@pytest.mark.parametrize("reduced", [True, False])
def test_outliers_are_zeros_of_a_of_z_where_there_is_no_eigenproblem(reduced, monkeypatch):
    spectra = [SimpleNamespace(outliers=[(3.0, 0.1), (5.0, 0.2)]), SimpleNamespace(outliers=[(4.0, 0.3)])]
    monkeypatch.setattr(finding, "cycle_spectra", lambda problem: spectra if problem.probe.reduced else [])
    monkeypatch.setattr(finding, "by_contour", lambda problem: [-3.0, 7.0])
    problem = SimpleNamespace(probe=SimpleNamespace(unknowns=(1,), reduced=reduced))
    assert finding.outlier_positions(problem) == ([5.0, 4.0, 3.0] if reduced else [7.0, -3.0])


def test_one_point_is_found_from_the_value_that_the_map_has_there():
    """However far it is from the bulk, where the map is as large, or as small."""
    solver = solver_of("spiked_wigner")
    problem = spiked_problem(solver, solve(solver, values_of("spiked_wigner")))
    top = max(high for _, high in problem.excluded)
    for cycle in problem.probe.cycles:
        for z in (1.01 * top, 3 * top, 1e4 * top, 1e8 * top):
            (value,) = np.real(in_float64(finding._mapped_at)(problem, cycle, np.array([z])))
            assert in_float64(finding.physical)(problem, cycle, [value]) == [[pytest.approx(z, rel=1e-6)]]


@pytest.mark.parametrize("name", ["spiked_wigner", "anti_hebbian", "coupled_spikes", "deep_linear"])
def test_a_value_of_the_map_of_any_size_has_places_or_none(name):
    """Eigenvalues that are zero but for rounding may be as small as float64 goes, and are no outliers."""
    solver = solver_of(name)
    problem = spiked_problem(solver, solve(solver, values_of(name)))
    for cycle in problem.probe.cycles:
        for size in (5e-324, 1e-310, 1e-200, 1e-100, 1e-30, 1e200, 1e308):
            found = finding.physical(problem, cycle, [size, -size])
            assert all(abs(z) < finding.LARGEST for zs in found for z in zs)
            assert size > 1 or found == [[], []]
