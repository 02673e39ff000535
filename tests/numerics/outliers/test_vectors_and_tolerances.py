"""Tolerances of outliers, spans of spikes, residues at poles and parts of eigenproblems, by small examples."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg

from numerics.outliers.alignments import OutlierAlignment, times_of, unknown_errors, with_errors
from numerics.outliers.complete import Complete, IterationStart
from numerics.outliers.components import Component
from numerics.outliers.finding import Eigenvalues, cycle_spectrum
from numerics.outliers.leading import DEPTH, NotConverged, _gap, _growing, _leading_part, _orthonormal, _whole, leading
from numerics.outliers.overlaps import SPAN, _over_gram, _spanned, are_resolved
from numerics.outliers.poles import Pole, _clusters
from numerics.outliers.problem import SpikedProblem
from numerics.outliers.replicas import followed_eigenvalues, placed
from numerics.outliers.restriction import Steps, _before, _Structure, slices, without_later
from numerics.runtime.keys import OrderKey
from numerics.support.nearby import Nearby


def problem(excluded, divergent=(), **law):
    """A problem of which only the bulk matters; at divergent edges it is known from a distance of 0.01 on."""
    kinds = {"settles": False, "sampled": False, "spreads": (), **law}
    branch = SimpleNamespace(law=SimpleNamespace(**kinds))
    found = SpikedProblem(SimpleNamespace(measured=()), SimpleNamespace(), {}, branch, excluded)
    away = {end: 0.01 for end in divergent}
    searched = tuple((low - away.get(low, 0.0), high + away.get(high, 0.0)) for low, high in excluded)
    found.__dict__["searched"] = searched
    return found


def test_an_outlier_is_outside_every_interval_by_more_than_rounding():
    one = problem(((-1.0, 2.0), (5.0, 5.0)))
    assert [one.outside(z) for z in (0.0, 2.0, 2 + 1e-12, 2 + 2e-11, 5.0, 5 - 1e-11, 3.0, -1 - 1e-10)] == [
        *(False, False, False, True),
        *(False, False, True, True),
    ]
    settled = problem(((-1.0, 2.0),), settles=True)
    assert not settled.outside(2 + 1e-9) and settled.outside(2 + 1e-8)
    assert not problem(((0.0, 1.0),), divergent=(0.0,)).outside(-0.005)
    assert problem(()).outside(0.3)


@pytest.mark.parametrize(
    ("excluded", "radius"),
    [(((-1.0, 2.0), (4.0, 5.0)), 3.0), (((1.0, 3.0), (9.0, 9.0)), 1.0), (((-7.0, -7.0), (2.0, 2.0)), 7.0), ((), 1.0)],
)
def test_the_unit_of_length_is_half_the_width_of_the_bulk(excluded, radius):
    assert problem(excluded).radius == radius


def test_zeros_are_equal_within_tolerances_that_shrink_beside_an_edge():
    one = problem(((-2.0, 2.0),))
    assert one.nearest_edge(1.9) == 2.0 and one.nearest_edge(-50.0) == -2.0
    assert one.resolution(10.0) == pytest.approx(1e-7 * 12) and one.resolution(2 + 1e-6) == pytest.approx(1e-9)
    assert one.same(10.0, 10 + 2e-6) and not one.same(10.0, 10 + 3e-6)
    assert not one.same(2 + 1e-6, 2 + 1.1e-6) and one.same(2 + 1e-6, 2 + 1.001e-6)
    assert _clusters(one, [10.0, 10 - 1e-6, 5.0]) == [(pytest.approx(10 - 5e-7), 2), (5.0, 1)]


@pytest.mark.parametrize(("sampled", "measured", "moves"), [(1, 0, True), (0, 1, True), (0, 0, False), (1, 1, True)])
def test_a_bulk_moves_with_sampled_sites_or_measured_coefficients(sampled, measured, moves):
    one = problem(((-1.0, 1.0),), sampled=bool(sampled))
    one = SpikedProblem(SimpleNamespace(measured=(1,) * measured), one.p, {}, one.branch, one.excluded)
    assert one.moves == moves
    if not moves:
        assert one.with_order({"a": 1}).order == {"a": 1}


# -- overlaps and alignments


def test_directions_count_by_their_weight_in_the_span_of_unit_spikes():
    """Spikes of lengths 2 and 3 with a cosine c: weights 1 + c and 1 - c, each counted nearly whole."""
    c = 0.6
    gram = np.array([[4.0, 6 * c], [6 * c, 9.0]])
    lengths, weights, shares, directions = _spanned(gram)
    assert lengths[:, 0].tolist() == [2, 3] and weights == pytest.approx([1 - c, 1 + c])
    assert shares == pytest.approx(weights / (weights + SPAN * (1 + c)), rel=1e-15)
    assert np.abs(directions) == pytest.approx(np.full((2, 2), 0.5**0.5))
    np.testing.assert_allclose(_over_gram(gram, np.eye(2)), np.linalg.inv(gram), rtol=1e-10)
    tiny = np.array([[1.0, 1 - 1e-12], [1 - 1e-12, 1.0]])
    assert _spanned(tiny)[2][0] == pytest.approx(1e-12 / (1e-12 + 2e-12), rel=1e-3)


@pytest.mark.parametrize(("noise", "resolved"), [(1e-3, True), (0.2, True), (0.3, False)])
def test_spikes_are_resolved_where_every_direction_outweighs_the_noise(noise, resolved, monkeypatch):
    monkeypatch.setattr("numerics.outliers.overlaps._gram", lambda problem, side: np.array([[1.0, 0.6], [0.6, 1.0]]))
    one = SimpleNamespace(probe=SimpleNamespace(sides=("right",)))
    assert are_resolved(one, noise) == resolved  # the weights are 0.4 and 1.6


def test_residues_at_a_pole_are_those_of_the_resolvent():
    """A(z) = z - M for a matrix that is not normal: the residue is the projector; left vectors have 1/z more."""
    matrix = np.array([[3.0, 1.0, 0.0], [0.0, 3.0, 0.0], [0.5, 0.0, 1.0]])
    matrix[0, 1] = 0.0
    values, vectors = np.linalg.eig(matrix)
    right = vectors[:, np.abs(values - 3) < 1e-9]
    left = np.linalg.inv(vectors).T[:, np.abs(values - 3) < 1e-9]
    pole = Pole(problem(((0.0, 2.0),)), 3.0, left.T @ right, right, left)
    assert pole.count == 2
    projector = sum(
        np.outer(vectors[:, k], np.linalg.inv(vectors)[k]) for k in np.flatnonzero(np.abs(values - 3) < 1e-9)
    )
    np.testing.assert_allclose(right @ pole.answers(np.eye(3)), projector, atol=1e-12)
    assert pole.scale("right") == 1.0 and pole.scale("left") == pytest.approx(1 / 3)
    at_zero = Pole(pole.problem, 1e-13, pole.middle, right, left)
    assert np.isnan(at_zero.scale("left")) and at_zero.scale("right") == 1.0
    assert Pole(pole.problem, 1e-10, pole.middle, right, left).scale("left") == pytest.approx(1e10)
    alone = [Pole(problem(()), z, pole.middle, right, left).scale("left") for z in (4.0, 0.0)]
    assert alone[0] == 1 / 4 and np.isnan(alone[1]), "without a bulk there is no unit for what counts as zero"


def test_alignments_have_axes_and_errors_of_their_own():
    values = np.array([[[0.5, np.nan]], [[0.25, 1.0]]])  # outliers x times x labels
    one = OutlierAlignment("g", "right", None, False, True, (1, 1), values)
    assert one.axes == ("label",) and one.shaped(values).shape == (2, 2)
    both = OutlierAlignment("g", "right", (0, 1), True, True, (1, 1), values)
    assert both.axes == ("time", "label") and both.shaped(values).shape == (2, 1, 2)
    plain = OutlierAlignment("g", "right", (1,), False, False, (1, 1), values[..., :1])
    assert plain.axes == () and plain.shaped(plain.values).tolist() == [0.5, 0.25]
    nearby = Nearby(varied=({}, {}), counted=(1.0, 0.5))
    moved = [OutlierAlignment("g", "right", None, False, True, (1, 1), values + shift) for shift in (0.3, 0.8)]
    (found,) = with_errors([one], [[moved[0]], [moved[1]]], nearby)
    np.testing.assert_allclose(found.errors, [[[0.5, np.nan]], [[0.5, 0.5]]])
    np.testing.assert_allclose(found.values, values)
    assert np.all(np.isnan(unknown_errors([one])[0].errors))
    timed = SimpleNamespace(timed=True, time=None)
    assert times_of(timed, SimpleNamespace(T=3), "T") == (0, 1, 2) and times_of(timed, None, None) is None
    assert times_of(SimpleNamespace(timed=True, time=lambda p: p.T - 1), SimpleNamespace(T=3), "T") == (2,)
    assert times_of(SimpleNamespace(timed=False, time=None), SimpleNamespace(T=3), "T") is None


# -- eigenproblems


def test_eigenvalues_are_counted_whole():
    sizes = np.array([5.0, 3.0, 3.0 * (1 - 1e-7), 1.0, 0.9, 0.1])
    assert [_whole(sizes, count) for count in range(7)] == [0, 1, 3, 3, 4, 5, 6]
    assert _gap(sizes, 1, 5) == 5 and _gap(sizes, 1, 4) == 3 and _gap(sizes, 2, 2) == 2 and _gap(sizes, 1, 9) == 5


def test_the_leading_part_of_a_basis_spans_an_invariant_subspace():
    rng = np.random.default_rng(3)
    turn = rng.normal(size=(6, 6))
    matrix = turn @ np.diag([4.0, -3.0, 2.0, 0.5, 0.2, 0.1]) @ np.linalg.inv(turn)
    small, basis = _leading_part(matrix, np.eye(6), np.array([4.0, 3.0, 2.0, 0.5, 0.2, 0.1]), 3)
    np.testing.assert_allclose(matrix @ basis, basis @ small, atol=1e-10)
    assert sorted(np.linalg.eigvals(small).real) == pytest.approx([-3, 2, 4])
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
    columns = np.hstack([matrix[:, :3], matrix[:, :1] * 1e8])
    made = _orthonormal(columns[:, :3] * [1.0, 1e-9, 1e7])
    np.testing.assert_allclose(made.T @ made, np.eye(3), atol=1e-9)
    assert np.linalg.matrix_rank(np.hstack([made, columns[:, :3]]), tol=1e-6) == 3
    found = leading(lambda x: matrix @ x, 6, 1.0)
    assert found.count == 3 and found.found.real == pytest.approx([4, -3, 2])
    assert sorted(np.linalg.eigvals(found.cut(2).small).real) == pytest.approx([-3, 4]) and found.cut(2).count == 2


def test_a_cycle_has_orthonormal_blocks_up_to_the_most_with_their_images():
    rng = np.random.default_rng(0)
    matrix, block = rng.standard_normal((30, 30)), np.linalg.qr(rng.standard_normal((30, 3)))[0]
    found = list(_growing(lambda columns: matrix @ columns, block))
    assert [basis.shape[1] for basis, _ in found] == [3 * count for count in range(2, DEPTH + 1)]
    for basis, images in found:
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-13)
        np.testing.assert_allclose(images, matrix @ basis, atol=1e-13)
        np.testing.assert_allclose(basis[:, :3], block)
    inside = found[1][0]  # of three blocks, which the images of the first two lie in
    images = matrix @ found[0][0]
    np.testing.assert_allclose(inside @ (inside.T @ images), images, atol=1e-12)


def test_eigenvalues_without_a_gap_are_given_up(monkeypatch):
    """All on one circle: none is larger than the next, and residuals do not fall."""
    monkeypatch.setattr("numerics.outliers.leading.CYCLES", 2)
    monkeypatch.setattr("numerics.outliers.leading.COLUMNS", 4)
    monkeypatch.setattr("numerics.outliers.leading.DEPTH", 2)
    shift = np.roll(np.eye(300), 1, axis=0)
    with pytest.raises(NotConverged):
        leading(lambda x: shift @ x, 300, 1.5)


def test_a_proof_of_completeness_has_real_eigenvalues_that_are_apart():
    start = IterationStart(np.eye(3)[:, :2], 2)
    padded = start.padded(5)
    assert padded.columns.shape == (5, 2) and not padded.columns[3:].any() and padded.level == 2
    assert Complete(np.array([3.0, 2.0, 1 + 2j, 1 - 2j]), 1e-3, start).real.tolist() == [3.0, 2.0]
    for values, off in (([3.0, 3.005], 1e-6), ([3 + 1e-3j, 3 - 1e-3j], 1e-6), ([3.0, 2.9], 0.06)):
        assert Complete(np.array(values), off, start).real is None
    assert Complete(np.array([3.0, 2.9]), 0.04, start).real.tolist() == [3.0, 2.9]
    assert Complete(np.zeros(0), 1.0, start).real.tolist() == []


def test_leading_eigenvalues_are_asked_until_the_smaller_half_gives_no_outlier():
    """Of 200 eigenvalues 1, 1/2, 1/3, ... those above 1/70 have an outlier: at least 140 must be known."""
    matrix = scipy.linalg.block_diag(*(1 / np.arange(1.0, 601.0)))
    asked = []

    def points(values):
        asked.append(len(values))
        return [[z] if abs(z) > 1 / 70.5 else [] for z in values]

    found = cycle_spectrum(matrix, points)
    assert [s for _, s in found.outliers] == pytest.approx(1 / np.arange(1.0, 71.0)) and max(asked) >= 140
    assert not found.meeting


def test_pairs_about_to_meet_are_said_where_they_would_be_outliers():
    pair = np.array([[2.0, 0.05], [-0.05, 2.0]])
    values = np.linalg.eigvals(pair)
    one = Eigenvalues(pair, values, np.zeros(0))
    assert one.asked == pytest.approx([2.0])
    assert one.placed([[7.0]]).meeting and not one.placed([[]]).meeting
    far = np.array([[2.0, 0.5], [-0.5, 2.0]])
    assert Eigenvalues(far, np.linalg.eigvals(far), np.zeros(0)).asked == []


def test_eigenvalues_are_followed_to_nearby_matrices_with_their_outliers_in_order():
    matrix = np.diag([3.0, 2.0, 1.0, 0.3])
    points = lambda values: [[10 * s] if s > 1.5 else [] for s in values]  # noqa: E731
    spectrum = cycle_spectrum(matrix, points)
    near = [lambda shift=shift: (matrix + shift * np.eye(4), np.eye(4)) for shift in (0.01, -0.02)]
    found = followed_eigenvalues(spectrum, np.array([1.55]), near)
    assert [sorted(one) for one in found] == [pytest.approx([2.01, 3.01]), pytest.approx([1.98, 2.98])]
    close = followed_eigenvalues(spectrum, np.array([1.05]), near)
    assert [len(one) for one in close] == [3, 3]  # beside the image of an edge it may become an outlier
    assert placed(points, found) == [pytest.approx([10 * s for s in one if s > 1.5]) for one in found]


# -- earlier times


def test_order_parameters_of_earlier_times_are_corners_of_the_later():
    """Two entries for each time along the first axis, one along the second, and an axis without time."""
    assert slices((8, 4, 5), (2, 1, 0), 3) == (slice(6), slice(3), slice(5))
    assert slices((8,), (2,), 9) == (slice(8),)
    mask = _before((4, 2), (2, 1), 1)
    assert mask.tolist() == [[True, False], [True, False], [False, False], [False, False]]
    key, other = OrderKey("C", ("x", "y")), OrderKey("M", ("x",))
    table = np.arange(8.0).reshape(4, 2) + 1
    cut = without_later({key: table, other: table}, {key: (2, 1)}, 1)
    assert cut[key].tolist() == [[1, 0], [3, 0], [0, 0], [0, 0]] and cut[other] is table


def test_rows_are_sorted_by_the_time_at_which_they_appear():
    found = _Structure.of(True, [np.array([2, 1, 3, 1]), np.array([1, 4])], 3)
    assert [x.tolist() for x in found.appearing] == [[1, 3, 0, 2], [0, 1]]
    assert found.sizes == ((0, 0), (2, 1), (3, 1), (4, 1)) and found.bytes == 8 * (4 * 2 + 2 * 4)


def test_a_summand_of_alike_labels_has_one_label_for_each_time():
    key = OrderKey("C", ("x", "y"))
    steps = Component(None, 2, labels=3).steps(Steps("T", 4, {key: (6, 3)}))
    assert steps.strides == {key: (2, 1)} and (steps.name, steps.count) == ("T", 4)
