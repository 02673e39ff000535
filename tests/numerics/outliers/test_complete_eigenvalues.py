"""Leading eigenvalues with the bound that proves that no other is as large."""

from functools import reduce

import numpy as np
import pytest
from conftest import solver_and_values

import numerics.outliers.paths as paths
from numerics.outliers.complete import NO_START, Complete, IterationStart, complete_eigenvalues, perturbation
from numerics.outliers.finding import mapped, smallest_image
from numerics.outliers.powers import LowRankChange, Powers
from numerics.outliers.restriction import products
from numerics.solver import solve, spiked_problem
from numerics.support.precision import in_float64


def planted(values, rows=90, bulk=0.4, seed=0, coupling=1.0):
    """A matrix that is not normal, with given eigenvalues above a bulk of random ones."""
    rng = np.random.default_rng(seed)
    matrix = bulk * rng.standard_normal((rows, rows)) / np.sqrt(rows)
    count = len(values)
    matrix[:, :count] = 0.0
    matrix[:count, :count] = np.diag(values) + coupling * np.triu(rng.standard_normal((count, count)), 1)
    matrix[:count, count:] = 3 * rng.standard_normal((count, rows - count)) / np.sqrt(rows)
    turn = np.linalg.qr(rng.standard_normal((rows, rows)))[0]
    return turn @ matrix @ turn.T


def powers_of(matrix, squarings):
    powers = Powers.of(matrix)
    assert all(powers.square() for _ in range(squarings))
    return powers


@pytest.mark.parametrize("values", [(), (1.5,), (1.6, -1.3, 1.1), (0.9, 0.8)])
def test_eigenvalues_are_those_of_the_whole_eigenproblem(values):
    matrix = planted(values)
    found = complete_eigenvalues(Powers.of(matrix), NO_START.padded(len(matrix)))
    assert found is not None
    assert np.sort(found.real) == pytest.approx(np.sort([s for s in values if abs(s) >= 1]), rel=1e-12)


def test_outliers_in_a_continuum_are_complete():
    """Twelve eigenvalues up to 0.99 are followed with the three outliers, although none of them is one."""
    outliers = (1.4, 1.2, 1.1)
    matrix = planted((*outliers, *np.linspace(0.99, 0.6, 12)), rows=160, coupling=0.1)
    found = complete_eigenvalues(Powers.of(matrix), NO_START.padded(len(matrix)))
    assert found is not None and np.sort(found.real) == pytest.approx(np.sort(outliers), rel=1e-12)


def test_powers_that_hide_small_eigenvalues_do_not_spoil_them():
    """M^16 has the norm 7e7, so its rounding moves the eigenvalue 1.05; a lower power then replaces it."""
    values = (3.0, 1.5, 1.05)
    matrix = planted(values)
    found = complete_eigenvalues(powers_of(matrix, 4), IterationStart(np.zeros((len(matrix), 0)), 4))
    assert found is not None and found.start.level == 4
    assert np.sort(found.real) == pytest.approx(np.sort(values), rel=1e-13)


def test_a_matrix_without_entries_has_no_eigenvalues():
    found = complete_eigenvalues(Powers.of(np.zeros((70, 70))), NO_START.padded(70))
    assert found is not None and found.off == 0 and not found.values.size


def test_a_start_that_misses_an_eigenvalue_is_no_proof():
    """Without the vector of the second of two large eigenvalues nothing is bounded; with both what is left is."""
    matrix = planted((1.5, 1.3))
    powers = powers_of(matrix, 2)
    values, vectors = np.linalg.eig(matrix)
    largest = np.argsort(-np.abs(values))
    one, both = (np.linalg.qr(vectors[:, largest[:count]].real)[0] for count in (1, 2))
    assert perturbation(powers, one) == np.inf
    assert perturbation(powers, both) < 1e-10


def test_the_perturbation_bounds_what_eigenvalues_move_by():
    """Columns that span an invariant subspace roughly: eigenvalues between them are off by less than the bound says."""
    matrix = planted((1.5,))
    powers = powers_of(matrix, 2)
    values, vectors = np.linalg.eig(matrix)
    right = vectors[:, [np.argmax(np.abs(values))]].real
    for size in (1e-3, 1e-5):
        rough = np.linalg.qr(right + size * np.random.default_rng(1).standard_normal(right.shape))[0]
        off = abs((rough.T @ matrix @ rough).item() - 1.5)
        assert 0 < off <= perturbation(powers, rough) < np.inf


def test_complex_eigenvalues_next_to_the_real_axis_are_not_decided():
    pair = np.array([1.5 + 1e-5j, 1.5 - 1e-5j])
    assert Complete(pair, 1e-9, NO_START).real is None
    assert Complete(np.array([1.5, 1.5 + 1e-5]), 1e-4, NO_START).real is None
    assert Complete(np.array([1.5 + 0j, 0.8 + 1j, 0.8 - 1j]), 1e-9, NO_START).real.tolist() == [1.5]


def test_outliers_at_all_times_are_those_of_all_eigenvalues(monkeypatch):
    """The same to rounding, at some of the times from a bound."""
    case = solver_and_values("anti_hebbian", gamma0=4.0, dt=0.2, T=20)
    monkeypatch.setattr(paths, "CHUNK", 8)
    monkeypatch.setattr(paths, "FEWEST_ROWS", 10)
    proved, complete = [], paths._CycleCourse.complete
    monkeypatch.setattr(paths._CycleCourse, "complete", lambda *given: proved.append(complete(*given)) or proved[-1])
    found = solve(*case, path=True)
    monkeypatch.setattr(paths._CycleCourse, "complete", lambda *_: {})
    every = solve(*case, path=True)
    assert all(len(one) > 3 for one in proved)
    assert any(len(now) for one in found.layers for now in one.outlier_path)
    for one, other in zip(found.layers, every.layers, strict=True):
        for now, then in zip(one.outlier_path, other.outlier_path, strict=True):
            assert now == pytest.approx(then, rel=1e-12)


@pytest.mark.parametrize("widths", [(2,), (2, 1), (1, 3, 2)])
def test_products_of_corners_are_those_of_each_time(widths):
    rng, times = np.random.default_rng(0), 6
    sizes = [tuple(width * time for width in widths) for time in range(times + 1)]
    last = sizes[-1]
    factors = [rng.standard_normal(shape) for shape in zip(last, [*last[1:], last[0]], strict=True)]
    before = np.zeros((0, 0))
    for now, (found, change) in zip(sizes[1:], products(factors, sizes), strict=True):
        ends = zip(factors, now, [*now[1:], now[0]], strict=True)
        assert found == pytest.approx(reduce(np.matmul, [x[:rows, :columns] for x, rows, columns in ends]), abs=1e-12)
        assert found == pytest.approx(np.pad(before, (0, len(found) - len(before))) + change.left @ change.right)
        before = found.copy()


def test_powers_of_a_growing_matrix_drift_by_less_than_their_bound():
    """Squares that follow 40 changes of rank 2 stay as close to the squares of the matrices as `drifts` say."""
    rng, size = np.random.default_rng(3), 60
    whole = 1.5 * rng.standard_normal((size, size)) / np.sqrt(size)
    powers = Powers(size)
    powers.restart(whole[:20, :20])
    assert powers.square() and powers.square()
    for rows in range(21, size + 1):
        left, right = np.zeros((rows, 2)), np.zeros((2, rows))
        left[-1, 0], right[0] = 1.0, whole[rows - 1, :rows]
        left[:-1, 1], right[1, -1] = whole[: rows - 1, rows - 1], 1.0
        powers.grow(whole[:rows, :rows], LowRankChange(left, right))
    assert len(powers) == 3
    for level in (1, 2):
        off = np.linalg.norm(powers[level] - powers[level - 1] @ powers[level - 1])
        assert 0 < off < powers.drifts[level] < 1e-9
        assert powers.norms[level] == pytest.approx(np.linalg.norm(powers[level]))


@in_float64
def test_the_map_is_nowhere_smaller_than_its_bound():
    solver, values = solver_and_values("anti_hebbian", gamma0=4.0, dt=0.2, T=20)
    problem = spiked_problem(solver, solve(solver, values))
    (low, high), (cycle,) = problem.excluded[0], problem.probe.cycles
    away = (high - low) * np.geomspace(1e-9, 1e6, 40)
    z = np.concatenate([low - away, high + away])
    smallest = np.min(np.abs(mapped(problem.probe, cycle, problem.p, z, problem.branch.responses(z))))
    bound = smallest_image(problem, cycle)
    assert 0.97 * smallest < bound <= smallest


def test_eigenvalues_are_moved_by_what_is_beside_a_subspace_over_what_is_outside_it():
    """M has 2 on the subspace, 0.2 and 0.1 beside it, and a rest R of norm 1.5 with R^2 = 0. Outside, M^2 is 0.02, and
    R^2 differs from it by no more than 0.02: |(1 - R)^-1| <= (1 + 1.5) / (1 - 0.04)."""
    matrix = np.array([[2.0, 0.1, 0.0], [0.2, 0.0, 1.5], [0.0, 0.0, 0.0]])
    expected = 0.2 * 0.1 * 2.5 / 0.96
    assert perturbation(powers_of(matrix, 1), np.eye(3)[:, :1]) == pytest.approx(expected)
