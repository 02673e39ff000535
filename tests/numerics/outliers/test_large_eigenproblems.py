"""Large eigenproblems, known by what they do to vectors, against the same written down."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import solver_and_values, solver_of, values_of

import derive
from derive.errors import NumericalError, ParameterError
from numerics.outliers import finding, linear, restriction
from numerics.outliers.finding import cycle_spectra, factors_at, find_outliers
from numerics.outliers.following import Lost
from numerics.outliers.large import _moving_most, _nearest, _OfCycle, _paired, _Vectors, large_spectrum, rows_of
from numerics.outliers.leading import Leading, NotConverged, leading
from numerics.outliers.paths import outlier_path
from numerics.outliers.replicas import replica_outliers
from numerics.outliers.restriction import Steps
from numerics.runtime.keys import OrderKey
from numerics.runtime.operators import operator
from numerics.runtime.sampled import Resolved
from numerics.solver import load_built, solve, spiked_problem
from numerics.support.memory import check_expected, expected_memory
from numerics.support.nearby import Moved, Nearby
from numerics.support.precision import in_float64
from numerics.training import ensemble as ensemble_module
from numerics.training.ensemble import Ensemble
from numerics.training.sampling import Sampling
from numerics.training.trained import Trained

QUIET = lambda *_: None  # noqa: E731


def with_eigenvalues(values, rows: int, seed: int = 0) -> np.ndarray:
    """A matrix that is not normal, with these eigenvalues and many small ones; complex ones with their conjugates."""
    rng = np.random.default_rng(seed)
    middle = np.diag(rng.uniform(-0.3, 0.3, rows))
    at = 0
    for value in values:
        if np.iscomplex(value):
            middle[at : at + 2, at : at + 2] = [[value.real, value.imag], [-value.imag, value.real]]
        else:
            middle[at, at] = np.real(value)
        at += 2 if np.iscomplex(value) else 1
    vectors = np.eye(rows) + 0.3 * rng.standard_normal((rows, rows)) / np.sqrt(rows)
    return vectors @ middle @ np.linalg.inv(vectors)


@pytest.mark.parametrize(
    "values",
    [
        (3.0, 2.0, 2.0, -1.5, 1.1),
        (1.2 + 0.3j, 1.05, 0.95),
        (0.5,),
        tuple(np.linspace(1, 4, 20)),
    ],
)
@pytest.mark.parametrize("rows", [60, 400])
def test_leading_eigenvalues_are_all_found_with_their_vectors(values, rows):
    matrix = with_eigenvalues(values, rows)
    known = np.linalg.eigvals(matrix)
    known = known[np.abs(known) >= 1.0]
    for start in (None, np.eye(rows)[:, :3]):
        found = leading(lambda v: matrix @ v, rows, 1.0, start)
        assert found.count == len(known)
        assert np.allclose(np.sort_complex(found.found), np.sort_complex(known), atol=1e-9)
        exact = found.cut(found.count) if found.count else found
        if found.count:
            assert np.allclose(matrix @ exact.vectors, exact.vectors @ exact.small, atol=1e-8)
        assert np.allclose(found.vectors.T @ found.vectors, np.eye(found.vectors.shape[1]), atol=1e-12)


def test_conditions_of_a_pair_near_the_real_axis_are_those_of_all_eigenvectors(monkeypatch):
    matrix = with_eigenvalues((1.2 + 1e-4j, 1.05), 200)
    values = np.array([1.2 + 1e-4j, 1.2 - 1e-4j, 1.05])
    found = linear.eigenvalue_conditions(matrix, values)
    monkeypatch.setattr(linear, "DENSE", 1000)
    assert found == pytest.approx(linear.eigenvalue_conditions(matrix, values), rel=1e-6)
    assert finding.real_among(matrix, values) == pytest.approx([1.05])


def test_outliers_have_residuals_and_the_conditions_of_left_and_right_vectors():
    """The condition is the norm between the vectors over the eigenvalue times the cosine of its two vectors."""
    matrix = with_eigenvalues((3.0, 2.0, -1.5), 200)
    right, left, between = _paired(*(leading(lambda v, m=m: m @ v, 200, 1.0) for m in (matrix, matrix.T)))
    cycle = SimpleNamespace(points=lambda values: [[10 * s] for s in values])
    vectors = _Vectors(right, left, between, right.vectors)
    found = _OfCycle._outliers(cycle, operator(matrix), vectors, [3.0, 2.0, -1.5])
    values, columns = np.linalg.eig(matrix)
    rows = np.linalg.inv(columns)
    cosines = 1 / np.linalg.norm(columns, axis=0) / np.linalg.norm(rows, axis=1)
    for one, s in zip(found, (3.0, 2.0, -1.5), strict=True):
        place = np.argmin(np.abs(values - s))
        assert one.z == 10 * s and one.residual < 1e-10
        assert one.condition == pytest.approx(np.linalg.norm(right.small) / abs(s * cosines[place]), rel=1e-6)


def test_left_and_right_vectors_of_other_eigenvalues_are_not_paired():
    def of(place: int, count: int) -> Leading:
        return Leading(np.array([2.0, 1.5]), count, np.eye(6)[:, place : place + count], np.diag([2.0, 1.5][:count]))

    assert np.allclose(_paired(of(0, 2), of(0, 2))[2], np.eye(2))
    for left, told in ((of(2, 2), "are not resolved"), (of(0, 1), "too close together")):
        with pytest.raises(Lost, match=told):
            _paired(of(0, 2), left)


def test_eigenvalues_that_do_not_settle_are_given_up(monkeypatch):
    monkeypatch.setattr("numerics.outliers.leading.CYCLES", 1)
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((400, 400)) / 20  # a disc full of them
    with pytest.raises(NotConverged):
        leading(lambda v: matrix @ v, 400, 1.01)


@cache
def exact(setting: str, **values):
    """A problem whose order parameters are exact, and others nearby, drawn around them."""
    solver, given = solver_and_values(setting, **values)
    solution = solve(solver, given)
    problem = spiked_problem(solver, solution)
    rng = np.random.default_rng(3)
    nearby = [
        {key: x * (1 + 1e-3 * rng.standard_normal(np.shape(x))) for key, x in solution.order.items()} for _ in range(4)
    ]
    name = solver.setting.steps
    return problem, Steps(name, int(given[name]), solver.training.strides(problem.p)), nearby


MODELS = [("anti_hebbian", {"T": 12, "gamma0": 4.0, "dt": 0.1}), ("deep_linear", {"T": 20, "gamma0": 4.0, "nu": 2.0})]


@pytest.mark.parametrize(("setting", "values"), MODELS)
def test_large_and_small_ways_agree_on_outliers_replicas_and_paths(setting, values):
    problem, steps, orders = exact(setting, **values)
    nearby = Nearby(tuple(orders[:3]), (1.0,) * 3, orders[3], 0.5, 0.1)
    found = large_spectrum(problem, steps, nearby, QUIET)
    spectra = in_float64(cycle_spectra)(problem)
    known = find_outliers(problem, spectra)
    assert known, "there is something to compare"
    assert [o.z for o in found.outliers] == pytest.approx([o.z for o in known], rel=1e-9)
    assert max(o.residual for o in found.outliers) < 1e-9
    replicas = replica_outliers(problem, spectra, [o.z for o in known], nearby)
    for one, other in zip(found.replicas.positions, replicas.positions, strict=True):
        assert one == pytest.approx(other, rel=1e-7)
    course = outlier_path(problem, steps, QUIET, orders)
    assert [len(now) for now, _ in found.course.path] == [len(now) for now, _ in course.path]
    for (now, top), (then, same) in zip(found.course.path, course.path, strict=True):
        assert now == pytest.approx(then, rel=1e-8) and top == same
    moves = 0.0
    for one, other in zip(found.course.replicas, course.replicas, strict=True):
        for now, then, (mean, _) in zip(one, other, course.path, strict=True):
            assert len(now) == len(then)
            moves = max([moves, *np.abs(np.subtract(then, mean))])
            assert np.allclose(now, then, atol=0.1 * moves, rtol=1e-9), "to first order"
    assert moves > 0


@pytest.mark.slow
def test_several_outliers_descend_as_those_of_small_matrices():
    solver, values = solver_and_values("coupled_spikes", S=3)
    problem = spiked_problem(solver, solve(solver, values))
    known = [o.z for o in find_outliers(problem)]
    found = large_spectrum(problem, None, Nearby(), QUIET)
    assert len(known) > 1 and [o.z for o in found.outliers] == pytest.approx(known, rel=1e-9)
    assert known == sorted(known, reverse=True)


@pytest.mark.slow
def test_outliers_of_the_mean_do_not_depend_on_replicas():
    """At all times, where the bulk itself changes with them."""
    problem, steps, orders = exact("hebbian_momentum", T=2, rate=0.9)
    assert not problem.probe.steady
    course = outlier_path(problem, steps, QUIET, orders)
    assert course.path == outlier_path(problem, steps, QUIET, ()).path and course.path[-1][0]
    assert all(one != course.path[-1][0] for one in (found[-1] for found in course.replicas))


def test_matrices_of_early_times_with_numbers_that_cannot_be_squared_are_refused():
    """Their factors have numbers of 1e60, of which a product of two is beyond all measure."""
    setting, values = MODELS[1]
    problem, steps, _ = exact(setting, **values)
    large = problem.with_order({key: 1e60 * x for key, x in problem.order.items()})
    with pytest.raises(NumericalError, match="has entries beyond"):
        outlier_path(large, steps, QUIET)


class Along(Moved):
    """Order parameters moved along a direction."""

    def __init__(self, order, change):
        self.order, self.change = order, change

    def read(self, keys):
        return {key: self.order[key] + self.change[key] for key in keys}

    def changes(self, keys):
        return {key: operator(self.change[key]) for key in keys}

    def __iter__(self):
        return iter(self.order)

    def __len__(self):
        return len(self.order)


@pytest.mark.parametrize(("setting", "values"), MODELS)
def test_errors_need_derivatives_only(setting, values):
    """What a replica moves an eigenvalue by grows in proportion to how far it is off, at all times, and is a derivative
    where replicas are close; a replica that is far off, solved for, would have other outliers or none."""
    problem, steps, orders = exact(setting, **values)
    change = {key: orders[0][key] - x for key, x in problem.order.items()}
    sizes = (1e-4, 1.0, 30.0)
    moved = tuple(Along(problem.order, {key: size * x for key, x in change.items()}) for size in sizes)
    close = dict(moved[0].read(list(problem.order)))
    nearby = Nearby((*moved, close), (1.0,) * 4)
    found = large_spectrum(problem, steps, nearby, QUIET)
    assert found.replicas.method.way == "first order"
    (cycle,) = problem.probe.cycles

    def eigenvalues(places):
        z = np.array(places)
        return np.real(finding.mapped(problem.probe, cycle, problem.p, z, problem.branch.responses(z)))

    counts = 0
    for time, (mean, _) in enumerate(found.course.path):
        here, (small, one, far, solved) = eigenvalues(mean), (each[time] for each in found.course.replicas)
        if not len(mean) == len(small) == len(one) == len(far) == 1:
            continue
        counts += 1
        slopes = [
            (eigenvalues(x) - here) / size for x, size in zip((small, one, far, solved), (*sizes, 1e-4), strict=True)
        ]
        for slope in slopes:
            assert slope == pytest.approx(slopes[1], rel=1e-2)
    assert counts > 3, "there is something to compare"


def test_eigenvalues_of_a_replica_belong_to_the_nearest_of_the_mean():
    assert _nearest(np.array([5.0, 1.0, 3.1]), [0.9, 4.8, 3.0, 7.0]).tolist() == [4.8, 0.9, 3.0]
    assert _nearest(np.array([5.0, 1.0]), []).tolist() == [5.0, 1.0]


def test_the_replica_that_is_checked_moves_an_outlier_by_most_of_its_error():
    """Both move the first outlier by 1/sqrt(2) of its error, and one of them all that the second is moved by."""
    assert _moving_most({0: np.array([1.0, 0.0]), 1: np.array([-1.0, 0.1])}, np.array([2**0.5, 0.1])) == 1


@pytest.mark.parametrize(("setting", "values"), MODELS)
def test_rows_belong_to_the_same_times_by_one_set_of_factors_as_by_all(setting, values, monkeypatch):
    problem, steps, _ = exact(setting, **values)
    for cycle in problem.probe.cycles:
        found = []
        for size, by_all in ((1e99, restriction._early), (0.0, None)):
            monkeypatch.setattr(restriction, "CODED_BYTES", size)
            monkeypatch.setattr(restriction, "_early", by_all)
            restriction._structure.cache_clear()
            found.append(restriction.Restriction(problem, cycle, steps))
            monkeypatch.undo()
        one, other = found
        assert one.nested and other.nested and one.sizes == other.sizes and one.bytes == other.bytes
        assert all(np.array_equal(x, y) for x, y in zip(one.appearing, other.appearing, strict=True))
    restriction._structure.cache_clear()


def test_factors_in_another_order_multiply_to_the_same_matrix_in_that_order():
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((3, 4)), rng.standard_normal((4, 3))]
    places = [np.array([2, 0, 1]), np.array([3, 1, 0, 2])]
    one, other = finding._put(factors, places)
    assert np.allclose(one @ other, (factors[0] @ factors[1])[np.ix_(places[0], places[0])])
    assert np.allclose(other @ one, (factors[1] @ factors[0])[np.ix_(places[1], places[1])])


@pytest.mark.parametrize(("setting", "values"), MODELS)
def test_factors_are_the_same_block_by_block(setting, values, monkeypatch):
    problem, _, _ = exact(setting, **values)
    rng = np.random.default_rng(0)
    for cycle in problem.probe.cycles:
        whole = in_float64(factors_at)(cycle, problem.p, problem.order)
        assert whole[0].shape[0] == rows_of(problem, cycle)
        places = [rng.permutation(len(x)) for x in whole]
        turned = in_float64(factors_at)(cycle, problem.p, problem.order, places)
        monkeypatch.setattr(finding, "MANY", 0)
        for at, known in ((None, whole), (places, turned)):
            found = in_float64(factors_at)(cycle, problem.p, problem.order, at)
            assert all(np.allclose(x, y, rtol=1e-14) for x, y in zip(found, known, strict=True))
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("chosen", "narrow", "columns"), [((4, 1, 9), True, [1, 4]), ((4, 1, 9), False, None), ((0, 1, 2, 3), True, None)]
)
def test_columns_are_left_out_where_few_carry_responses_and_order_parameters_have_them(chosen, narrow, columns):
    """Of five noises, in a covariance ("G") beside a correlation with them ("K"); places beyond the last fill up."""
    part = ((), (OrderKey("K", "f", "W"), OrderKey("G", "W")))
    ensemble = SimpleNamespace(
        parts=(part, ()),
        shapes=((OrderKey("K", "f", "W"), (3, 5)), (OrderKey("G", "W"), (5, 5))),
        noises=[frozenset(part[1]), frozenset({OrderKey("G", "V")})],
        _is_narrow=lambda *_: narrow,
    )
    resolved = Resolved([(np.array(chosen), np.ones(1)), (np.array([2]), np.ones(1))])
    found = Ensemble.columns(ensemble, part, resolved)
    assert found is None if columns is None else found.tolist() == columns


@pytest.mark.long
@pytest.mark.slow
@in_float64
def test_responses_need_only_the_noises_that_carry_them(monkeypatch):
    """Moments over noises with a few columns give the same order parameters as with all."""
    made: list[Ensemble] = []

    class Kept(Ensemble):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr("numerics.training.sampling.Ensemble", Kept)
    monkeypatch.setattr(ensemble_module, "SMALL", 0)
    monkeypatch.setattr(ensemble_module, "FEW", 1)
    monkeypatch.setattr(ensemble_module, "STEP", 2)
    solver, values = solver_of("coupled_spikes_tanh"), values_of("coupled_spikes_tanh", S=6, theta=1.5)
    tables = []
    for share in (1.0, 0.0):
        monkeypatch.setattr(ensemble_module, "MOST_COLUMNS", share)
        found = Trained.sampled(solver, values, Sampling(2000, tolerance=0.02), QUIET)
        tables.append([dict(found.order), *(dict(one) for one in found.nearby.orders)])
    assert len(made[0].parts) > 1
    monkeypatch.setattr(ensemble_module, "MOST_COLUMNS", 1.0)
    noises = made[0].resolved(made[0].mean([(1.0, 0)]), 0.02).resolved
    some = [made[0].columns(part, noises) for part in made[0].parts]
    assert any(one is not None for one in some), "there is something to leave out"
    for one, other in zip(*tables, strict=True):
        assert all(np.allclose(one[key], other[key], rtol=1e-9, atol=1e-12) for key in one)
    moved = [
        (one, table) for one, table in zip(found.nearby.orders, tables[1][1:], strict=True) if isinstance(one, Moved)
    ]
    assert any(one is found.nearby.unbiased for one, _ in moved), "a sum of means alone is among them"
    for one, table in moved:
        for key, change in one.changes(list(table)).items():
            assert np.allclose(change.array(np), table[key] - found.order[key], atol=1e-12), "not written down"


# -- memory

CHILD = """
import sys
import derive
m = derive.load(sys.argv[1])
s = m.solve({k: float(v) if "." in v else int(v) for k, v in (x.split("=") for x in sys.argv[2:])}, samples=2000)
print(s.method.sampling.memory.most)
(most,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # ru_maxrss knows the parent's too
print(int(most.split()[1]) * 1024)
"""


def peak(setting: str, **values) -> tuple[float, float]:
    """GB that were expected and that a process of its own has taken at most."""
    words = [f"{name}={value}" for name, value in values.items()]
    around = {**os.environ, "PYTHONPATH": str(Path(derive.__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, "-c", CHILD, setting, *words], capture_output=True, text=True, check=True, env=around
    )
    expected, used = map(float, run.stdout.split())
    return expected / 1e9, used / 1e9


@pytest.mark.long_cases("wide_network-values1")
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell how much a process took")
@pytest.mark.parametrize(("setting", "values"), [("coupled_spikes_tanh", {"S": 3}), ("wide_network", {"P": 3, "T": 3})])
def test_expected_memory_is_what_a_process_takes_within_a_factor_of_two(setting, values):
    told, used = peak(setting, **values)
    assert used / 2 < told < 2 * used


def many_points(points, steps):
    solver = load_built("wide_network")
    values = {q.name: q.default for q in solver.setting.parameters} | {"P": points, "B": points, "T": steps}
    return solver, values | {"x": np.zeros((steps + 1, points, 10)), "y": np.zeros((steps + 1, points))}


def test_expected_memory_grows_with_labels_and_steps_and_is_refused_before_the_run():
    sizes = [
        expected_memory(*many_points(*shape), Sampling(10_000), None, True) for shape in ((10, 20), (50, 20), (50, 50))
    ]
    assert sizes[0].most < sizes[1].most < sizes[2].most < 4e9
    assert expected_memory(*many_points(50, 50), Sampling(10_000), (), True).outliers < sizes[2].outliers
    unasked, without = (expected_memory(*many_points(50, 50), Sampling(10_000), None, x) for x in (None, False))
    assert unasked.outliers == without.outliers < sizes[2].outliers, "large ones are solved for the last time only"
    with pytest.raises(
        ParameterError, match=r"takes about .* GB at most, for outliers, but 1.0 GB are allowed; take fewer"
    ):
        check_expected(sizes[2], 1e9)
    with pytest.raises(ParameterError, match="are allowed"):
        derive.load("wide_network").solve(P=3, T=3, memory=0.1)
