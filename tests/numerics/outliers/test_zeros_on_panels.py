"""Zeros of functions and of determinants on the real axis, and what belongs to what: against numbers known by hand."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from derive.errors import NumericalError
from numerics.outliers import edges, finding
from numerics.outliers.components import component_orders, repeated as as_often
from numerics.outliers.errors import _matched, estimated_overlaps, estimated_path
from numerics.outliers.following import repeated
from numerics.outliers.linear import (
    all_eigenvalues,
    balancing,
    eigenvalue_conditions,
    eigenvalue_residual,
    largest_entry,
    leading_eigenvalues,
    long_eigenvalues,
    moved,
    null_spaces,
)
from numerics.outliers.panels import ChebyshevPanel, Interval, crossings, intervals_outside, panels
from numerics.outliers.replicas import apart
from numerics.runtime.keys import OrderKey
from numerics.support.nearby import Nearby

LINE = intervals_outside(((-1.0, 1.0), (4.0, 5.0)))


def matrix_with_zeros(zeros, turn):
    """A(z) = Q diag(1 - zero/z) Q^-1: bounded, and singular at the zeros alone."""

    def at(z):
        entries = 1 - np.array(zeros)[None, :] / z[:, None]
        return turn @ (entries[:, :, None] * np.linalg.inv(turn))

    return at


TURN = np.array([[1.0, 0.3, 0.0], [0.2, 1.0, -0.4], [0.0, 0.1, 1.0]])


@pytest.mark.parametrize("zeros", [(-3.0, 2.0, 7.0), (2.0, 2.0, -1.5), (1.05, 3.9, 40.0), (0.5, 4.4, 0.1)])
def test_zeros_of_a_determinant_outside_the_bulk_are_found_with_multiplicity(zeros):
    pieces = panels(matrix_with_zeros(zeros, TURN), LINE)
    found = finding._merged(finding._zeros_on_panels(pieces), lambda x, y: abs(x - y) < 1e-6)
    outside = [z for z in zeros if abs(z) > 1 and not 4 <= z <= 5]
    assert found == pytest.approx(sorted(outside), abs=1e-6)


def test_a_pair_of_complex_zeros_is_counted_and_not_taken_for_real():
    """z^2 - 4 z + 4.01 in two rows: zeros at 2 +- 0.1 i, inside the contour and off the axis."""
    turn = np.array([[2.0, 0.1], [-0.1, 2.0]])
    inside = ChebyshevPanel(Interval(1.5, 2.5, 1.0), 0.25, 0.75, np.zeros(0))
    nodes = np.cos(np.pi * (np.arange(16) + 0.5) / 16)
    z = inside.z(nodes)
    values = turn[None] - z[:, None, None] * np.eye(2)
    series = np.polynomial.chebyshev.chebfit(nodes, values.reshape(16, 4), 15).reshape(16, 2, 2)
    assert finding._inside_contour(series) == ([], True)
    real = values + np.array([[0.0, -0.1], [0.1, 0.0]])
    series = np.polynomial.chebyshev.chebfit(nodes, real.reshape(16, 4), 15).reshape(16, 2, 2)
    zeros, certain = finding._inside_contour(series)
    assert certain and inside.z(np.array(zeros)) == pytest.approx([2.0, 2.0], abs=1e-5)


@pytest.mark.parametrize("number", [-2, 0, 1, 3])
def test_turns_around_zero_are_counted(number):
    """Phases on the upper half of a contour; the lower half is the mirror image."""
    angle = np.pi * (np.arange(32) + 0.5) / 32
    assert finding._winding_number(np.exp(1j * number * angle)) == number
    assert finding._winding_number(np.exp(1j * 30 * angle)) is None


def test_a_panel_is_the_same_function_on_its_halves():
    function = lambda z: np.stack([1 / (2 + z), z**2 - z], axis=-1)  # noqa: E731
    panel = panels(function, [Interval(-1.0, 1.0, 1.0)])[1]
    for half in panel.halves():
        x = np.array([-1.0, -0.3, 0.5, 1.0])
        value = np.polynomial.chebyshev.chebval(x, half.coefficients).T
        np.testing.assert_allclose(value, function(half.z(x)), atol=1e-9)
    low, high = panel.halves()
    assert (low.begin, high.end) == (panel.begin, panel.end) and low.end == high.begin == (low.begin + high.end) / 2


def test_panels_are_bisected_until_they_have_converged_and_no_further(monkeypatch):
    interval = Interval(0.0, 1.0, 1.0)
    assert len(panels(lambda z: z, [interval])) == 4
    sharp = panels(lambda z: 1 / (1e-4 + (z - 0.3) ** 2), [interval])
    assert len(sharp) > 8 and min(p.end - p.begin for p in sharp) < 0.1
    x = np.linspace(-1, 1, 7)
    for one in sharp:
        np.testing.assert_allclose(
            np.polynomial.chebyshev.chebval(x, one.coefficients), 1 / (1e-4 + (one.z(x) - 0.3) ** 2), rtol=1e-6
        )
    assert len(panels(lambda z: 1e-12 * np.sign(z - 0.3), [interval], floor=1e-11)) == 4
    monkeypatch.setattr("numerics.outliers.panels.MOST", 100)
    with pytest.raises(NumericalError, match="not smooth"):
        panels(lambda z: np.sin(1e7 * z), [interval])


def test_a_function_takes_each_value_where_it_does():
    """1/z + 0.1 z on both sides of the bulk: values of two points, of one and of none."""
    function = lambda z: np.where(np.isinf(z), np.inf, 2 / (z**2 + 1) - z / (z**2 + 9))  # noqa: E731
    pieces = panels(function, LINE)
    values = [float(function(np.array([z]))[0]) for z in (-7.0, 2.0, 11.0)] + [5.0]
    found = crossings(function, values, pieces)
    for value, zs in zip(values, found, strict=True):
        roots = np.roots([value, 1, 10 * value - 2, 1, 9 * value - 18])
        real = [z.real for z in roots if abs(z.imag) < 1e-9 and abs(z) > 1 and not 4 <= z.real <= 5]
        assert sorted(zs) == pytest.approx(sorted(real), rel=1e-9)


def test_zeros_of_several_paths_have_the_largest_multiplicity_of_one():
    same = lambda x, y: abs(x - y) < 0.01  # noqa: E731
    assert finding._merged([[1.0, 1.001, 3.0], [1.002], [3.0, 5.0]], same) == [1.0, 1.0, 3.0, 5.0]
    assert repeated([2.0, -1.0, 2.0 + 1e-7, 2.1]) == [(2.1, 1), (2.0 + 1e-7, 2), (-1.0, 1)]
    assert apart([5.0, 1.0, 1.1, 5.2, 9.0], 2) == [[1.0, 1.1], [5.0, 5.2], [9.0]]


@pytest.mark.filterwarnings("ignore:invalid value")
def test_values_next_to_a_point_mass_saturate_smoothly():
    values = np.array([1e-3, -2.0, np.inf, -np.inf, 1e30])
    assert finding._saturated(values, np.inf) is values
    limited = finding._saturated(values, 10.0)
    assert limited == pytest.approx([1e-3, -2 / np.hypot(1, 0.2), 10, -10, 10], rel=1e-6)


@pytest.mark.parametrize(("imaginary", "real"), [(0.0, 2), (1e-10, 2), (1e-6, 0), (0.5, 0)])
def test_eigenvalues_are_real_to_the_rounding_of_their_matrix(imaginary, real):
    """A normal matrix rounds by 1e-16; a Jordan block of entry 1e10 by more than 1e-6."""
    matrix = np.array([[2.0, imaginary], [-imaginary, 2.0]])
    values = np.array([2 + 1j * imaginary, 2 - 1j * imaginary])
    assert len(finding.real_among(matrix, values)) == real
    sheared = np.array([[2.0, 1e8], [-1e-20, 2.0]])
    assert len(finding.real_among(sheared, np.linalg.eigvals(sheared))) == 2
    beside = np.array([[*sheared[0], 0.0], [*sheared[1], 0.0], [0.0, 0.0, 5.0]])
    assert sorted(finding.real_among(beside, np.linalg.eigvals(beside))) == pytest.approx([2.0, 2.0, 5.0])


@pytest.mark.parametrize("seed", range(4))
def test_outliers_of_replicates_are_matched_with_the_least_total_distance(seed):
    rng = np.random.default_rng(seed)
    for here, there in ((2, 4), (4, 2), (3, 3), (1, 3), (0, 2)):
        outliers, others = (np.sort(rng.normal(size=n))[::-1].tolist() for n in (here, there))
        found = _matched(outliers, others)
        if here == there:
            assert found == others
            continue
        few, many = sorted((outliers, others), key=len)
        least = min(sum(abs(a - b) for a, b in zip(few, some, strict=True)) for some in combinations(many, len(few)))
        pairs = [(z, x) for z, x in zip(outliers, found, strict=True) if x is not None]
        assert len(pairs) == len(few) and sum(abs(z - x) for z, x in pairs) == pytest.approx(least)
        assert len({x for _, x in pairs}) == len(pairs)


def test_paths_and_overlaps_have_errors_where_replicates_have_them():
    """Two contributions of 0.3 and 0.4 to each error; halves are off by 0.1 more."""
    nearby = Nearby(varied=({}, {}), counted=(1.0, 1.0), half={}, share=1.0)
    values, errors = estimated_path([[2.0], []], [[[2.3], []], [[1.6], []], [[2.1], []]], nearby)
    assert values == [[pytest.approx(1.9)], []] and errors == [[pytest.approx(0.5)], []]
    values, errors = estimated_path([[2.0]], [[[2.3]], [[]], [[2.1]]], nearby)
    assert values == [[2.0]] and errors == [[None]]
    sides = [{"right": 0.5, "left": None}], [{"right": 0.8, "left": None}], [{"right": 0.1, "left": None}]
    values, errors = estimated_overlaps(sides[0], [sides[1], sides[2], [{"right": 0.6, "left": None}]], nearby)
    assert values == [{"right": pytest.approx(0.4), "left": None}]
    assert errors == [{"right": pytest.approx(0.5), "left": None}]
    missing = estimated_overlaps(sides[0], [sides[1], [{"right": None, "left": None}], sides[0]], nearby)
    assert missing[1] == [{"right": None, "left": None}]


def test_alike_labels_give_the_sum_and_the_differences():
    """a delta + b over three labels and two times: a + 3 b once, and a twice."""
    a, b = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([[0.1, 0.0], [0.2, 0.3]])
    table = np.kron(a, np.eye(3)) + np.kron(b, np.ones((3, 3)))
    key, mean = OrderKey("C", ("x", "x")), OrderKey("M", ("x",))
    whole, difference = component_orders({key: table, mean: b}, 3, 2)
    np.testing.assert_allclose(whole[key], a + 3 * b)
    np.testing.assert_allclose(difference[key], a)
    assert whole[mean] is b and difference[mean] is b
    (alone,) = component_orders({key: np.kron(a, np.eye(3))}, 3, 1)
    np.testing.assert_allclose(alone[key], a)
    spectrum = np.sort(np.linalg.eigvals(table).real)
    parts = [SimpleNamespace(multiplicity=count) for count in (1, 2)]
    both = as_often([np.linalg.eigvals(a + 3 * b).real.tolist(), np.linalg.eigvals(a).real.tolist()], parts)
    assert both[::-1] == pytest.approx(spectrum.tolist())


# -- whether an outlier has separated from an edge with an error


@pytest.mark.parametrize(("at", "near"), [(0.3, True), (-0.3, True), (1.5, False), (-1.2, False)])
def test_an_edge_is_undecided_where_the_determinant_vanishes_within_its_error(at, near, monkeypatch):
    """A = t - at with t = sqrt(distance / error): outside for at > 0, about to be for at < 0."""
    error, edge = 0.04, 2.0
    monkeypatch.setattr(
        edges, "a_matrices", lambda problem, z: np.array([[[np.sqrt(abs(x - edge) / error) - at]] for x in z])
    )
    problem = SimpleNamespace(probe=SimpleNamespace(unknowns=1), searched=((-2.0, edge), (5.0, 5.0)))
    assert edges.undecided_edges(problem, {edge: error}, []) == ([edge] if near else [])
    assert edges.undecided_edges(problem, {edge: error}, [edge + error / 2]) == []
    assert edges.undecided_edges(problem, {edge: error}, [edge + 2 * error]) == ([edge] if near else [])
    assert edges.undecided_edges(problem, {edge: 0.0, 5.0: 1.0, 1.0: 1.0}, []) == []
    assert edges._outward(problem, -2.0) == -1 and edges._outward(problem, 5.0) == 0


# -- linear algebra


def test_leading_eigenvalues_condition_numbers_and_residuals():
    matrix = np.array([[3.0, 100.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert leading_eigenvalues(matrix, 2) == pytest.approx([3, 1, 0]) and len(all_eigenvalues(matrix)) == 3
    scale = np.linalg.norm(matrix)
    left, right = np.array([1.0, 50.0, 0.0]), np.array([1.0, 0.0, 0.0])  # of the eigenvalue 3
    cosine = abs(left @ right) / np.linalg.norm(left)
    assert eigenvalue_conditions(matrix, np.array([3.0])) == pytest.approx([scale / (3 * cosine)], rel=1e-9)
    assert eigenvalue_residual(matrix, 3.0) < 1e-12 < 0.01 < eigenvalue_residual(matrix, 3.5)
    assert largest_entry(matrix) == 100 and largest_entry(-matrix) == 100 and largest_entry(np.zeros((0, 0))) == 0
    bordered = moved(matrix, -2.0, 1)
    assert bordered.shape == (4, 4) and not bordered[3].any() and not bordered[:, 3].any()
    np.testing.assert_array_equal(bordered[:3, :3], matrix - 2 * np.eye(3))
    right_space, left_space = null_spaces(matrix, 1, 3.0)
    assert np.abs(right_space[0, 0]) == pytest.approx(1) and abs(left_space[1, 0] / left_space[0, 0]) == pytest.approx(
        50
    )


def test_eigenvalues_in_multiple_precision_know_how_far_rounding_moves_them():
    """Entries that are zero have no rounding: a triangular matrix has its diagonal, however large the others are."""
    eps = np.finfo(float).eps
    values, off = long_eigenvalues(np.array([[5.0, 0.0, 0.0], [0.0, 1.0, 1e12], [0.0, 0.0, 1.001]]))
    assert values.real == pytest.approx([5.0, 1.001, 1.0], rel=1e-15)
    assert off == pytest.approx(eps * values.real, rel=1e-9, abs=0)
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    exact, vectors = np.linalg.eig(matrix)
    left = np.linalg.inv(vectors)
    stretched = [np.abs(left[k]) @ matrix @ np.abs(vectors[:, k]) for k in np.argsort(-np.abs(exact))]
    assert long_eigenvalues(matrix)[1] == pytest.approx(eps * np.array(stretched), rel=1e-9, abs=0)


def test_balancing_is_by_powers_of_two_and_evens_out_rows_and_columns():
    matrix = np.array([[0.0, 1e8], [1e-8, 0.0]])
    scales = balancing(matrix)
    assert np.array_equal(np.log2(scales), np.round(np.log2(scales)))
    even = matrix * scales[None, :] / scales[:, None]
    assert 0.1 < even[0, 1] / even[1, 0] < 10


def test_a_start_that_leads_where_the_bulk_cannot_be_evaluated_costs_only_its_own_zero(monkeypatch):
    def refined(problem, starts, unit):
        if np.any(starts > 5):
            raise NumericalError("no bulk there")
        return starts + 0.01

    monkeypatch.setattr(finding, "_refined", refined)
    monkeypatch.setattr(finding, "_position_error", lambda problem, z: 1e-12)
    problem = SimpleNamespace(outside=lambda z: z > 1, resolution=lambda z: 1e-9)
    assert finding._accepted(problem, [2.0, 0.5, 6.0, 3.0], [], 1.0) == [2.01, None, None, 3.01]
    assert finding._accepted(problem, [2.0, 3.0], [2.01], 1.0) == [None, 3.01]
    assert finding._accepted(problem, [2.0, 3.0], [2.01 + 1.5e-5], 1.0) == [2.01, 3.01]


@pytest.mark.parametrize("singular", ["near", "far", "neither"])
def test_a_zero_beside_an_edge_is_extrapolated_from_finite_determinants(singular, monkeypatch):
    """det A = 1 + 2 t from t = 1/2 and t = 1 vanishes at t = -1/2."""
    determinants = {"near": 0.0 if singular == "near" else 2.0, "far": 0.0 if singular == "far" else 3.0}
    matrices = np.array([[[determinants["near"]]], [[determinants["far"]]]])
    monkeypatch.setattr(edges, "a_matrices", lambda problem, z: matrices)
    root = edges._root_beside(None, 2.0, 0.1)
    assert root == (pytest.approx(-0.5) if singular == "neither" else None)


def test_zeros_are_refined_from_nearby_to_rounding_each_on_its_own(monkeypatch):
    """A(z) is singular at -3, 2 and 7; starting values are a thousandth away, and one is exact."""
    zeros = np.array([-3.0, 2.0, 7.0])
    monkeypatch.setattr(finding, "a_matrices", lambda problem, z: matrix_with_zeros(zeros, TURN)(z))
    problem = SimpleNamespace(branch=SimpleNamespace(ask_beside=lambda x, excluded: None), excluded=())
    found = finding._refined(problem, zeros * [1.001, 0.999, 1.0], 1.0)
    assert found == pytest.approx(zeros, rel=1e-12)


def test_an_eigenvalue_zero_belongs_to_no_outlier():
    """z(s) = 1/s + s: none for s = 0, also where a polynomial relation gives one instead of the inverse."""
    inverse = SimpleNamespace(inverse=lambda p, s: 1 / s + s, relation=lambda p, s: [1.0, -5.0])
    assert finding._preimages(None, inverse, [0.5, 0.0]) == [[2.5], []]
    related = SimpleNamespace(inverse=None, relation=lambda p, s: [1.0, -5.0])
    assert finding._preimages(None, related, [0.5, 0.0]) == [[5.0], []]
