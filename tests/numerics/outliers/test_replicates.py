"""Outliers without each replica: followed from those of the mean, against solving anew, and the errors they give."""

from __future__ import annotations

import dataclasses
import math
from functools import cache, reduce
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import solver_and_values, solver_of, values_of

from derive.errors import NumericalError
from numerics.bulk.support import atoms_of, support
from numerics.outliers import paths as paths_module, replicas as replicas_module
from numerics.outliers.errors import estimated_outliers, estimated_overlaps, estimated_path
from numerics.outliers.finding import (
    CycleSpectrum,
    SpikedProblem,
    cycle_factors,
    cycle_spectra,
    factors_at,
    find_outliers,
    outlier_positions,
)
from numerics.outliers.following import (
    Dense,
    Lost,
    ShiftedProduct,
    eigenvalue_block,
    follow_eigenvalues,
    follow_zeros,
    zero_block,
)
from numerics.outliers.linear import all_eigenvalues
from numerics.outliers.overlaps import spike_overlaps
from numerics.outliers.paths import Steps, outlier_path
from numerics.outliers.poles import poles, replica_poles
from numerics.outliers.replicas import apart, followed_eigenvalues, followed_outliers, replica_outliers
from numerics.runtime.interface import Cycle
from numerics.runtime.operators import operator
from numerics.solver import solve, spiked_problem
from numerics.support.nearby import Nearby
from numerics.support.precision import in_float64
from numerics.training.sampling import Sampling
from numerics.training.trained import Trained

SPIKES = {"S": 4, "theta": 1.5}
FEW = 1000


@cache
def trained(seed: int, samples: int = FEW) -> Trained:
    values = values_of("coupled_spikes_tanh", **SPIKES)
    run = in_float64(Trained.sampled)
    return run(solver_of("coupled_spikes_tanh"), values, Sampling(samples, seed), lambda *_: None)


@cache
def problem(seed: int) -> SpikedProblem:
    solver, values = solver_of("coupled_spikes_tanh"), values_of("coupled_spikes_tanh", **SPIKES)
    branch = solver.branch(values)
    edges = support(branch)
    excluded = (*edges, *((atom["at"], atom["at"]) for atom in atoms_of(branch, edges)))
    return SpikedProblem(solver.matrices[0].probe, branch.p, trained(seed).order, branch, excluded)


def orders_of(seed: int) -> list:
    return list(trained(seed).nearby.orders)


# -- matrices


def near(scale: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A matrix with eigenvalues 5, 3, 3 and 2.9 above many smaller ones, and one nearby."""
    rng = np.random.default_rng(seed)
    vectors = np.eye(30) + 0.1 * rng.standard_normal((30, 30))
    values = np.concatenate([[5.0, 3.0, 3.0, 2.9], rng.uniform(-1, 1, 26)])
    return vectors @ np.diag(values) @ np.linalg.inv(vectors), scale * rng.standard_normal((30, 30))


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e-2])
def test_eigenvalues_are_followed_where_they_cross_split_and_leave_the_real_axis(scale):
    matrix, change = near(scale)
    block = eigenvalue_block(matrix, [3.0, 5.0, 2.9, 3.0])
    kept = 0
    for sign in (1, -1):
        there = matrix + sign * change
        found = follow_eigenvalues(block, ShiftedProduct((there,)))
        known = np.linalg.eigvals(there)
        known = np.sort_complex(known[np.argsort(-known.real)[:4]])
        assert np.allclose(found.zeros, known, rtol=0, atol=1e-10)
        kept += np.sum(np.abs(known.imag) < 1e-12)
        rest = there @ found.right - found.right @ np.linalg.lstsq(found.right, there @ found.right, rcond=None)[0]
        assert np.abs(rest).max() < 30 * scale**2
    assert 2 <= kept <= 8


def test_a_product_is_followed_without_being_carried_out():
    matrix, change = near(1e-3)
    half = np.random.default_rng(1).standard_normal((30, 30)) + 6 * np.eye(30)
    factors = (half, np.linalg.solve(half, matrix + change))
    found = follow_eigenvalues(eigenvalue_block(matrix, [5.0]), ShiftedProduct(factors))
    assert found.zeros[0].real == pytest.approx(max(np.linalg.eigvals(matrix + change).real), rel=1e-10)


def test_outlying_eigenvalues_are_followed_together_and_complex_ones_left_out():
    """Two of them, 3 and 3.1, are coupled so that they meet in one of two matrices nearby."""
    matrix = np.diag([3.0, 3.1, 0.5, 0.2])
    spectrum = CycleSpectrum(matrix, np.diag(matrix), np.diag(matrix), [[4.0], [4.1], [], []], False)
    change = np.zeros((4, 4))
    change[0, 1], change[1, 0] = 0.03, 0.02
    real, complex_ = matrix + change, matrix + 3 * (change - 2 * np.tril(change))
    found = followed_eigenvalues(spectrum, np.zeros(0), [lambda: (real,), lambda: (complex_,)])
    assert sorted(found[0]) == pytest.approx(sorted(np.linalg.eigvals(real).real)[2:], rel=1e-10)
    assert found[1] == []


def test_a_matrix_too_far_away_is_said_to_be():
    matrix, change = near(3.0)
    with pytest.raises(Lost):
        follow_eigenvalues(eigenvalue_block(matrix, [2.9]), ShiftedProduct((matrix + change,)))


def test_zeros_of_a_matrix_that_is_not_linear_in_z():
    """det(M + D - z^2) is zero at the roots of the eigenvalues."""
    matrix, change = near(1e-3)
    block = zero_block(matrix - 5 * np.eye(30), 1)

    def matrices(numbers, points):
        signs = (1, -1, 0.5)
        return [
            Dense(matrix + signs[k] * change - z**2 * np.eye(30), -2 * z * np.eye(30))
            for k, z in zip(numbers, points, strict=True)
        ]

    found = follow_zeros(block, math.sqrt(5), matrices, 3)
    for sign, one in zip((1, -1, 0.5), found, strict=True):
        top = max(np.linalg.eigvals(matrix + sign * change).real)
        assert one.zeros[0].real == pytest.approx(math.sqrt(top), rel=1e-10)


def test_rows_and_columns_that_vanish_do_not_change_the_eigenvalues():
    matrix = np.random.default_rng(0).standard_normal((8, 8))
    matrix[3], matrix[:, 5] = 0, 0
    assert np.allclose(np.sort_complex(all_eigenvalues(matrix)), np.sort_complex(np.linalg.eigvals(matrix)), atol=1e-12)


@pytest.mark.long_cases("coupled_spikes_tanh")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["coupled_spikes_tanh", "deep_linear"])
@in_float64
def test_factors_of_a_ring_multiply_to_its_matrix(name):
    solver, values = solver_of(name), values_of(name)
    if solver.setting.exact:
        solution = solve(solver, values)
        one = spiked_problem(solver, solution)
    else:
        one = problem(0)
    for cycle in one.probe.cycles:
        factors = cycle_factors(one, cycle)
        assert len(factors) > 1
        assert np.allclose(reduce(np.matmul, factors), cycle.pencil(one.p, one.order).array(np), rtol=1e-12, atol=1e-14)


# -- replicas


@pytest.mark.slow
def test_outliers_of_replicas_are_those_that_are_solved_for(monkeypatch):
    one, spectra = problem(0), cycle_spectra(problem(0))
    here = [o.z for o in find_outliers(one)]
    solved = [outlier_positions(one.with_order(order)) for order in orders_of(0)]
    calls = []
    monkeypatch.setattr(
        replicas_module, "outlier_positions", lambda problem: calls.append(1) or outlier_positions(problem)
    )
    found = replica_outliers(one, spectra, here, trained(0).nearby)
    assert len(here) >= 1 and len(calls) == 1 and found.method.way == "followed"
    assert np.allclose(found.positions, solved, rtol=1e-9)


@pytest.mark.slow
def test_zeros_of_a_matrix_that_does_not_reduce_are_followed_too():
    one = problem(0)
    here = [o.z for o in find_outliers(one)]
    followed = followed_outliers(one, None, here, orders_of(0))
    assert np.allclose(followed, followed_outliers(one, cycle_spectra(one), here, orders_of(0)), rtol=1e-8)


@pytest.mark.slow
def test_large_matrices_are_followed_in_parts(monkeypatch):
    assert apart([3.0, 1.0, 1.1, 7.0], 2) == [[1.0, 1.1], [3.0], [7.0]] and apart([2.0], 1) == [[2.0]]
    one = problem(0)
    here = [o.z for o in find_outliers(one)]
    whole = followed_outliers(one, cycle_spectra(one), here, orders_of(0))
    monkeypatch.setattr(replicas_module, "BLOCK_BYTES", 0)
    assert np.allclose(followed_outliers(one, cycle_spectra(one), here, orders_of(0)), whole, rtol=1e-9)


def test_replicas_that_cannot_be_followed_are_solved_anew():
    one = problem(0)
    here = [o.z for o in find_outliers(one)]
    far = [{key: value * (1 + 3 * k) for key, value in one.order.items()} for k in (0, 1, 2)]
    found = replica_outliers(one, cycle_spectra(one), here, Nearby(tuple(far), (1.0,) * 3))
    assert found.method.way == "solved"
    assert found.positions == [outlier_positions(one.with_order(order)) for order in far]


def test_an_outlier_that_a_replica_has_lost_to_the_bulk_is_found_by_solving_anew():
    one = problem(0)
    here = [o.z for o in find_outliers(one)]
    bulk = (one.excluded[0][0], here[0] * (1 - 1e-4))
    squeezed = dataclasses.replace(one, excluded=(bulk,))
    found = replica_outliers(squeezed, cycle_spectra(squeezed), here[:1], trained(0).nearby)
    assert found.method.way == "solved" and "edge" in found.method.reason
    assert sorted({len(positions) for positions in found.positions}) == [0, 1]


def test_overlaps_of_replicas_are_those_that_are_solved_for():
    one = problem(0)
    here = [o.z for o in find_outliers(one)]
    orders = orders_of(0)
    found = [spike_overlaps(there) for there in replica_poles(one, here, orders)]
    _, errors = estimated_overlaps(spike_overlaps(poles(one, here)), found, trained(0).nearby)
    for order, overlaps in zip(orders[:3], found, strict=False):
        there = one.with_order(order)
        known = spike_overlaps(poles(there, outlier_positions(there)))
        for seen, expected, error in zip(overlaps, known, errors, strict=True):
            assert all(abs(seen[side] - expected[side]) < 2e-3 * error[side] for side in ("right", "left"))


def test_the_path_of_a_replica_is_the_one_it_has_alone():
    one, solver = problem(0), solver_of("coupled_spikes_tanh")
    steps = Steps("S", SPIKES["S"], solver.training.strides(one.p))
    orders = orders_of(0)[:4]
    course = outlier_path(one, steps, lambda *_: None, orders)
    for order, path in zip(orders, course.replicas, strict=True):
        alone = outlier_path(one.with_order(order), steps, lambda *_: None).path
        assert [len(now) for now in path] == [len(now) for now, _ in alone]
        assert np.allclose([z for now in path for z in now], [z for now, _ in alone for z in now], rtol=1e-9)
    assert sum(map(bool, course.replicas[0])) >= 2


def test_along_a_path_of_large_matrices_replicas_that_cannot_be_followed_are_not_solved_for(monkeypatch):
    one, solver = problem(0), solver_of("coupled_spikes_tanh")
    steps = Steps("S", SPIKES["S"], solver.training.strides(one.p))

    def lost(*_):
        raise Lost("they differ too much")

    monkeypatch.setattr(paths_module, "followed_eigenvalues", lost)
    small = outlier_path(one, steps, lambda *_: None, orders_of(0)[:2])
    assert (small.anew, small.unknown) == (SPIKES["S"], 0) and any(small.replicas[0])
    monkeypatch.setattr(paths_module, "LARGEST_ANEW", 0)
    large = outlier_path(one, steps, lambda *_: None, orders_of(0)[:2])
    assert (large.anew, large.unknown) == (0, SPIKES["S"]) and not any(large.replicas[0])
    assert large.path == small.path
    path = [now for now, _ in large.path]
    _, errors = estimated_path(path, large.replicas, Nearby(({},) * 2, (1.0,) * 2))
    assert errors == [[None] * len(now) for now in path] and any(path)


def test_a_time_at_which_replicas_of_one_cycle_are_unknown_has_none_of_another(monkeypatch):
    """Of two cycles both replicas are known at times 0 to 2, but for the second cycle at time 1."""

    class Course(SimpleNamespace):
        def __init__(self, problem, cycle, steps, orders):
            unknown = {1} if cycle else set()
            known = [(number, time, [cycle + 1.0]) for number in (0, 1) for time in (0, 1, 2) if time not in unknown]
            super().__init__(
                points=lambda _: [],
                spectra=lambda *_: (),
                solve_missing=lambda: (set(), unknown),
                replicas=lambda: known,
            )

    monkeypatch.setattr(paths_module, "_CycleCourse", Course)
    problem = SimpleNamespace(probe=SimpleNamespace(cycles=(0, 1)), excluded=[(-2.0, 2.0)])
    course = paths_module._by_restriction(problem, SimpleNamespace(count=2), None, [{}, {}], ({}, {}))
    assert course.replicas == [[[2.0, 1.0], [], [2.0, 1.0]]] * 2 and course.unknown == 1


def test_a_ring_asks_for_the_order_parameters_that_it_reads():
    def pencil(p, order):
        return operator(order["C", "x", "x"]) @ operator(order["R", "x", "y"])

    keys = ("C", "x", "x"), ("R", "x", "y")

    class Read(dict):
        def __getitem__(self, key):
            assert key != ("C", "z", "z"), "large, on disk, and of another layer"
            return super().__getitem__(key)

    order = Read({("C", "x", "x"): np.eye(2), ("C", "z", "z"): np.eye(3), ("R", "x", "y"): np.full((2, 2), 0.5)})
    one, two = factors_at(Cycle(pencil, None, None, reads=keys), {}, order)
    assert np.array_equal(one, np.eye(2)) and np.array_equal(two, np.full((2, 2), 0.5))


@pytest.mark.parametrize(
    "name, changes",
    [
        pytest.param("hebbian_momentum", {"T": 4, "rate": 0.6}, marks=pytest.mark.slow),
        ("deep_linear", {"L": 1, "T": 5, "C": 2, "eta": 0.1, "gamma0": 6.0}),
    ],
)
def test_paths_of_nearby_order_parameters_are_those_they_have_alone(name, changes, monkeypatch):
    """Where the whole problem depends on the number of steps, and where rows and columns of labels come together. The
    times at which they are solved anew are counted."""
    solver, values = solver_and_values(name, **changes)
    one = spiked_problem(solver, solve(solver, values))
    steps = Steps("T", changes["T"], solver.training.strides(one.p))
    rng = np.random.default_rng(0)
    orders = [{key: x * (1 + 1e-3 * rng.standard_normal()) for key, x in one.order.items()} for _ in range(2)]
    solved = []
    with monkeypatch.context() as patched:
        patched.setattr(paths_module, "outlier_positions", lambda at: solved.append(at) or outlier_positions(at))
        course = outlier_path(one, steps, lambda *_: None, orders)
    assert len(solved) == len(orders) * course.anew
    for order, path in zip(orders, course.replicas, strict=True):
        alone = [now for now, _ in outlier_path(one.with_order(order), steps, lambda *_: None).path]
        assert [len(now) for now in path] == [len(now) for now in alone] and any(path)
        assert np.allclose(np.concatenate(path), np.concatenate(alone), rtol=1e-7)


# -- errors


def moved(values: np.ndarray) -> list[float]:
    """A mean moved by what each value contributes to its error."""
    off = (values - values.mean()) / math.sqrt(len(values) * (len(values) - 1))
    return (values.mean() + off).tolist()


def test_a_mean_has_its_standard_error_and_loses_what_halves_have_twice():
    rng = np.random.default_rng(0)
    wholes, halves = 3 + rng.standard_normal(7), 3.2 + rng.standard_normal(7)
    whole, half = wholes.mean(), halves.mean()
    plain = Nearby(({},) * 7, (1.0,) * 7)
    both = dataclasses.replace(plain, half={}, share=0.5)
    error = np.std(wholes, ddof=1) / math.sqrt(7)
    assert plain.estimate(whole, moved(wholes)) == (whole, pytest.approx(error, rel=1e-12))
    found = both.estimate(whole, [*moved(wholes), half])
    assert found == pytest.approx((1.5 * whole - 0.5 * half, error), rel=1e-12)
    doubted = dataclasses.replace(both, doubt=0.3).estimate(whole, [*moved(wholes), half])
    assert doubted == pytest.approx((found[0], math.hypot(error, 0.3 * (whole - half))), rel=1e-12)
    halved = dataclasses.replace(both, counted=(0.5,) * 7).estimate(whole, [*moved(wholes), half])
    assert halved == pytest.approx((found[0], error / 2), rel=1e-12)


def test_what_is_not_there_everywhere_has_no_error_or_a_larger_one():
    values = np.random.default_rng(0).standard_normal(20)
    nearby, whole = Nearby(({},) * 20, (1.0,) * 20, {}), float(values.mean())
    around = moved(values)
    _, error = nearby.estimate(whole, [*around, whole])
    _, larger = nearby.estimate(whole, [*around[:19], None, whole])
    left = np.square(np.array(around[:19]) - whole).sum() * 20 / 19
    assert larger == pytest.approx(math.sqrt(left)) and error == pytest.approx(np.std(values, ddof=1) / math.sqrt(20))
    assert nearby.estimate(whole, [*around, None]) == (whole, math.inf)
    assert nearby.estimate(whole, [*([None] * 3), *around[3:], whole])[1] == math.inf
    path, errors = estimated_path([[], [1.0]], [[[], [1.0]]] * 20 + [[[], []]], nearby)
    assert (path, errors) == ([[], [1.0]], [[], [None]])
    sides = [[{"right": x, "left": None}] for x in (*around, whole)]
    overlaps, errors = estimated_overlaps([{"right": whole, "left": None}], sides, nearby)
    assert overlaps == [{"right": pytest.approx(whole), "left": None}]
    assert errors == [{"right": pytest.approx(error), "left": None}]
    assert estimated_outliers([whole], [[x] for x in (*around, whole)], nearby)[0][1] == pytest.approx(error)


def test_a_zero_that_meets_the_bulk_in_a_replicate_is_lost(monkeypatch):
    def inside(*_):
        raise NumericalError("it is inside the bulk")

    problem = SimpleNamespace(with_order=lambda order: order, moves=True)
    monkeypatch.setattr(replicas_module, "with_slope", lambda *_: (np.eye(2), np.eye(2)))
    monkeypatch.setattr(replicas_module, "follow_zeros", inside)
    with pytest.raises(Lost, match="meets the bulk in a replicate"):
        replicas_module.follow_zero(problem, 2.0, 1, ["one"])
