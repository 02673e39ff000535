"""Rows of comparisons by hand: which eigenvalue belongs to which outlier, at which time, and the errors of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from derive.errors import NumericalError
from numerics.bulk.law import Panelled, SpectralLaw
from numerics.outliers.alignments import OutlierAlignment
from numerics.runtime.keys import OrderKey
from numerics.simulation.compare import Row, Verdict, compare, expected_by_chance, judge, match
from numerics.simulation.samples import Samples, SimulatedLayer, _gathered, _Last, _Sample, joined
from numerics.solution import Layer
from numerics.support.reports import LayerDiagnostics, SpikeSpan
from numerics.two_time import TwoTime

BULK = np.array([-1.9, -1.0, 0.5, 1.2, 1.8])
OFF = np.array([-0.03, 0.0, 0.06])
"""What outliers of three seeds are off by; their mean is 0.01, and its error that of three draws."""
ERROR = math.sqrt((0.04**2 + 0.01**2 + 0.05**2) / 2 / 3)


def layer_with(outliers: list[float], errors: list[float] | None = None, edges=((-2.0, 2.0),), **given) -> Layer:
    law = SimpleNamespace(edges=edges, atoms=given.pop("atoms", ()), moved=given.pop("moved", None))
    for name in given.keys() & {"outlier_path", "outlier_path_errors"}:
        given[name] = given[name] and tuple(np.array(now, float) for now in given[name])
    for name in given.keys() & {"shift_path", "largest_path", "moments"}:
        given[name] = np.array(given[name])
    errors = None if errors is None else np.array(errors)
    return Layer("", law, np.array(outliers), errors, given.pop("diagnostics", LayerDiagnostics()), **given)


def spectra_of(outliers: list[float], bulk: np.ndarray = BULK) -> list[np.ndarray]:
    """Each outlier off by what the seed is, the largest by twice as much."""
    scales = [2.0 if z == max(outliers) else 1.0 for z in outliers]
    return [np.sort([*bulk, *(z + s * off for z, s in zip(outliers, scales, strict=True))]) for off in OFF]


@dataclass(frozen=True)
class GivenLaw(SpectralLaw):
    """A law with a given density."""

    panels: Panelled = Panelled((), ())
    error: float = 0.0
    given: Callable[[np.ndarray], np.ndarray] = np.zeros_like

    def density(self, x: np.ndarray) -> np.ndarray:
        return self.given(x)


def as_arrays(table: dict[str, list] | None) -> dict[str, np.ndarray]:
    return {name: np.array(series, float) for name, series in (table or {}).items()}


def rows_of(
    layer: Layer, spectra: list[np.ndarray], observables=None, errors=None, draws=None, **given
) -> dict[str, Row]:
    size = given.pop("size", len(spectra[0]))
    two_time, traces = given.pop("two_time", ({}, {})), given.pop("compute_traces", None)
    grouped_by = given.pop("grouped_by", None)
    simulated = SimulatedLayer(
        "", spectra, given.pop("overlaps", {}), given.pop("times", ()), given.pop("ends", []), [None] * 3, size, **given
    )
    solution = SimpleNamespace(
        layers=[layer],
        observables=as_arrays(observables),
        errors=as_arrays(errors),
        two_time=two_time[0],
        compute_traces=traces,
    )
    simulation = Samples({}, size, (simulated,), draws or {}, SimpleNamespace(name="mine"), two_time[1])
    other = grouped_by and replace(simulation, layers=(replace(simulated, eigenvalues=grouped_by),))
    return {row.quantity: row for row in compare(solution, simulation, grouped_by=other)}


def test_outliers_meet_eigenvalues_of_their_rank_and_edges_the_next_ones():
    rows = rows_of(layer_with([5.0, 4.0, -3.0]), spectra_of([5.0, 4.0, -3.0]))
    expected = {
        "outlier 1 above the bulk": (5.0, 5.02, 2 * ERROR),
        "outlier 2 above the bulk": (4.0, 4.01, ERROR),
        "outlier 1 below the bulk": (-3.0, -2.99, ERROR),
        "upper edge, largest other eigenvalue": (2.0, 1.8, 0.0),
        "lower edge, smallest other eigenvalue": (-2.0, -1.9, 0.0),
    }
    assert {name: (row.theory, row.simulation, row.stderr) for name, row in rows.items()} == {
        name: pytest.approx(numbers) for name, numbers in expected.items()
    }
    assert [row.compared for row in rows.values()] == [True] * 3 + [False] * 2
    assert rows["outlier 2 above the bulk"].difference == pytest.approx(0.01 / ERROR)


def test_an_outlier_in_a_gap_meets_the_nearest_eigenvalue():
    layer = layer_with([-0.6], edges=((-2.0, -0.9), (0.4, 2.0)))
    rows = rows_of(layer, spectra_of([-0.6]))
    row = rows["outlier 1 in a gap"]
    assert (row.theory, row.simulation) == pytest.approx((-0.6, -0.58))
    assert [name for name in rows if name.startswith("outlier")] == ["outlier 1 in a gap"]


def test_a_null_space_is_not_the_lower_edge_wherever_it_was_moved():
    """Three eigenvalues of K^T K are zero, and 0.3 was added to the diagonal; 0.5 of it at an earlier time."""
    spectra = [np.array([0.3 - 1e-15, 0.3, 0.3 + 1e-15, 1.0, 2.0, 3.0, 6.0 + off]) for off in OFF]
    layer = layer_with(
        [6.0],
        edges=((0.9, 4.0),),
        shift=0.3,
        shift_path=[0.0, 0.5, 0.3],
        outlier_path=[[], [5.0], [6.0]],
        largest_path=[4.0, 5.0, 6.0],
    )
    ends = [[np.array([0.5, 0.5, 0.5, 1.2, 2.2, 3.2, 5.0 + off])] for off in OFF]
    rows = rows_of(layer, spectra, times=(1,), ends=ends)
    assert rows["lower edge, smallest other eigenvalue"].simulation == 1.0
    assert rows["outlier 1 above the bulk at time 1"].simulation == pytest.approx(5.01)


def test_outliers_beside_a_null_space_of_one_seed_are_not_compared():
    """Of both ends of three spectra one has a zero among the lowest eigenvalues, so that others may be behind it."""
    spectra = [np.array([-3.0, -1.5, 1.5, 4.0])] * 2 + [np.array([-3.0, 0.0, 1.5, 4.0])]
    found = match(layer_with([4.0, -3.0]), spectra, whole=False)
    assert found.left_out == ("outliers below the bulk",)
    assert [one.quantity for one in found.outliers] == ["outlier 1 above the bulk"]
    found = match(layer_with([4.0, -3.0]), [-one[::-1] for one in spectra], whole=False)
    assert found.left_out == ("outliers above the bulk",)
    assert [one.quantity for one in found.outliers] == ["outlier 1 below the bulk"]


def test_outliers_need_as_many_eigenvalues_beside_a_null_space():
    spectra = [np.array([0.0, 0.0, 1.0, 5.0, 6.0]) for _ in OFF]
    with pytest.raises(NumericalError, match="2 outliers do not fit into a matrix with 3 nonzero eigenvalues"):
        rows_of(layer_with([6.0, 5.0], edges=((0.9, 4.0),)), spectra)


def test_a_difference_is_in_errors_of_theory_and_simulation_together():
    row = rows_of(layer_with([3.0], [0.2]), spectra_of([3.0]))["outlier 1 above the bulk"]
    assert row.theory_error == 0.2 and row.stderr == pytest.approx(2 * ERROR)
    assert row.difference == pytest.approx(0.02 / math.hypot(0.2, 2 * ERROR))


def test_outliers_that_cannot_be_told_apart_are_compared_in_their_mean():
    """Their errors may have one source: that of the mean is the largest of theirs."""
    rows = rows_of(layer_with([5.0, 4.0, 3.9], [0.01, 0.05, 0.02]), spectra_of([5.0, 4.0, 3.9]))
    row = rows["outliers 2-3, mean, above the bulk"]
    assert (row.theory, row.theory_error, row.simulation) == pytest.approx((3.95, 0.05, 3.96))
    assert "outlier 1 above the bulk" in rows


@pytest.mark.parametrize(
    ("outliers", "errors", "together"),
    [
        ([5.0, 4.0, 3.85], None, "outliers 2-3"),
        ([5.0, 4.0, 3.75], None, None),
        ([5.0, 4.75, 3.0], None, "outliers 1-2"),
        ([5.0, 4.0, 3.75], [0.01, 0.1, 0.01], "outliers 2-3"),
        ([5.0, 4.0, 3.75], [0.01, 0.01, 0.1], "outliers 2-3"),
    ],
)
def test_outliers_nearer_than_four_times_their_spread_or_three_errors_stand_together(outliers, errors, together):
    """They spread by 0.046 over the seeds, the first by 0.092, and repel each other at a finite size."""
    rows = rows_of(layer_with(outliers, errors), spectra_of(outliers))
    assert [name.partition(",")[0] for name in rows if "mean" in name] == ([together] if together else [])


def test_another_simulation_may_say_which_outliers_stand_together():
    """So that rows of several sizes are about the same."""
    layer, outliers = layer_with([4.0, 3.8]), [4.0, 3.8]
    spectra = [np.sort([*BULK, *(z + 0.1 * off for z in outliers)]) for off in OFF]
    assert "outlier 2 above the bulk" in rows_of(layer, spectra)
    found = rows_of(layer, spectra, grouped_by=spectra_of(outliers))["outliers 1-2, mean, above the bulk"]
    assert (found.simulation, found.stderr) == pytest.approx((3.901, 0.1 * ERROR))


def test_outliers_at_an_earlier_time_are_those_of_that_time():
    paths = [[], [3.0], [3.5], [4.0]]
    errors = [[], [0.1], [0.2], [0.3]]
    layer = layer_with([4.0], [0.3], outlier_path=paths, outlier_path_errors=errors, largest_path=[2.0, 3.0, 3.5, 4.0])
    ends = [[np.sort([*BULK, 3.0 + off]), np.sort([*BULK, 3.5 + 2 * off])] for off in OFF]
    rows = rows_of(layer, spectra_of([4.0]), times=(1, 2), ends=ends)
    for time, value, error, scale in ((1, 3.0, 0.1, 1), (2, 3.5, 0.2, 2)):
        row = rows[f"outlier 1 above the bulk at time {time}"]
        assert (row.theory, row.theory_error) == (value, error)
        assert (row.simulation, row.stderr) == pytest.approx((value + 0.01 * scale, scale * ERROR))


def test_overlaps_are_those_of_the_outlier_without_what_chance_holds():
    """Of vectors with 20 sites two directions hold a tenth by chance, and s - 0.1 over 0.9 of the rest."""
    squares = [np.concatenate([np.full(5, 0.3), [0.55 + off, 0.91 + off]]) for off in OFF]
    layer = layer_with(
        [5.0, 4.0],
        overlaps={"right": np.array([0.9, 0.5]), "left": np.full(2, np.nan)},
        overlap_errors={"right": np.array([0.01, 0.02]), "left": np.full(2, np.nan)},
        diagnostics=LayerDiagnostics(spike_directions={"right": SpikeSpan(2.0, 2)}),
    )
    given = {"overlaps": {"right": squares}, "counted": {"right": [2.0] * 3}, "lengths": {"right": 20}}
    rows = rows_of(layer, spectra_of([5.0, 4.0]), **given)
    for name, theory, error, seen in (("outlier 1", 0.9, 0.01, 0.92), ("outlier 2", 0.5, 0.02, 0.56)):
        row = rows[f"right overlap of {name} above the bulk"]
        assert (row.theory, row.theory_error) == (theory, error) and row.compared
        assert (row.simulation, row.stderr) == pytest.approx(((seen - 0.1) / 0.9, ERROR / 0.9))
    given["counted"] = {"right": [4.0] * 3}
    assert not rows_of(layer, spectra_of([5.0, 4.0]), **given)["right overlap of outlier 1 above the bulk"].compared


def test_alignments_are_taken_at_their_times_and_a_vector_holds_some_by_chance():
    """Of what is left of a direction, 1/n of a vector with n sites, which is an error beside that of the seeds."""
    values, errors = np.array([[[0.2], [0.6]]]), np.array([[[0.01], [0.03]]])
    squares = [np.stack([np.full(6, 0.1), [*np.full(5, 0.2), 0.6 + off]], axis=1)[:, :, None] for off in OFF]
    layer = layer_with(
        [5.0], outlier_alignments=(OutlierAlignment("along", "right", (0, 3), True, False, (1,), values, errors),)
    )
    given = {"alignments": {("along", "right"): squares}, "lengths": {"right": 50}}
    rows = rows_of(layer, spectra_of([5.0]), **given)
    first, last = (rows[f"along at {time} (right) of outlier 1 above the bulk"] for time in (0, 3))
    assert (first.theory, first.theory_error, first.simulation) == pytest.approx((0.2, 0.01, 0.1))
    assert first.stderr == pytest.approx(0.8 / 50)
    assert (last.theory, last.theory_error, last.simulation) == pytest.approx((0.6, 0.03, 0.61))
    assert last.stderr == pytest.approx(math.hypot(ERROR, 0.4 / 50))


def test_alignments_on_the_way_are_those_of_their_time():
    """Below a bulk that begins at 1 and was moved by 0.1 in the end, beside a null space: by 0.25 at time 1."""

    def one(first: float, second: float) -> OutlierAlignment:
        values = np.array([[[first], [second]]])
        return OutlierAlignment("along", "right", (0, 1), True, False, (1,), values, values / 10)

    def moved(shift: float) -> SimpleNamespace:
        return SimpleNamespace(edges=((1.1 + shift, 3.1 + shift),), atoms=())

    layer = layer_with(
        [0.7],
        edges=((1.1, 3.1),),
        outlier_path=[[], [0.85], [0.7]],
        outlier_path_errors=[[], [0.3], [0.4]],
        largest_path=[3.0, 3.25, 3.1],
        outlier_alignment_path=((), (one(0.3, 0.4),), (one(0.5, 0.6),)),
        shift=0.1,
        shift_path=[0.0, 0.25, 0.1],
        moved=moved,
    )
    bulk = np.array([1.3, 2.0, 2.7, 3.1])
    spectra = [np.array([0.1, 0.7 + off, *bulk]) for off in OFF]
    ends = [[bulk, np.array([0.25, 0.85 + off, *(bulk + 0.1)])] for off in OFF]
    early = [np.array([[0.9, 0.9], [0.7, 0.4 + off], *np.full((4, 2), 0.2)])[:, :, None] for off in OFF]
    squares = [[np.full((4, 2, 1), 0.9), of_seed] for of_seed in early]
    given = {"alignment_path": {("along", "right"): squares}, "lengths": {"right": 50}}
    rows = rows_of(layer, spectra, times=(0, 1), ends=ends, **given)
    (found,) = (row for name, row in rows.items() if name.startswith("along"))
    assert found.quantity == "along at 1 (right) of outlier 1 below the bulk at time 1"
    assert (found.theory, found.theory_error, found.simulation) == pytest.approx((0.4, 0.04, 0.41))


def test_observables_are_compared_at_their_times_with_the_errors_of_these():
    theory = {"norm": [None, 1.0, 2.0], "each": [[1.0, 4.0]], "last": [7.0]}
    errors = {"norm": [None, 0.1, 0.2], "each": [[0.3, 0.4]], "last": [0.5]}
    draws = {
        "norm": np.array([[np.nan, 1 + off, 2 + 2 * off] for off in OFF]),
        "each": np.array([[[1 + 3 * off, 4 + 4 * off]] for off in OFF]),
        "last": np.array([[7 + 5 * off] for off in OFF]),
    }
    rows = rows_of(layer_with([3.0]), spectra_of([3.0]), theory, errors, draws)
    expected = {
        "norm at 1": (1.0, 0.1, 1),
        "norm at 2": (2.0, 0.2, 2),
        "each[0]": (1.0, 0.3, 3),
        "each[1]": (4.0, 0.4, 4),
        "last": (7.0, 0.5, 5),
    }
    assert set(expected) == {name for name in rows if "bulk" not in name and "edge" not in name}
    for name, (value, error, scale) in expected.items():
        row = rows[name]
        assert (row.theory, row.theory_error) == (value, error)
        assert (row.simulation, row.stderr) == pytest.approx((value + 0.01 * scale, scale * ERROR))


def test_two_time_functions_are_compared_entry_by_entry():
    values, errors = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.1, 0.2], [0.3, 0.4]])
    name = OrderKey("R", "x", "y")
    draws = np.array([values * (1 + off) for off in OFF])
    two_time = ({name: TwoTime("R", "x", "y", ("t", "s"), values, errors)}, {name: draws})
    rows = rows_of(layer_with([3.0]), spectra_of([3.0]), two_time=two_time)
    row = rows["R[x,y](1, 0)"]
    assert (row.theory, row.theory_error, row.simulation) == pytest.approx((3.0, 0.3, 3.03))


def test_traces_are_compared_below_the_spectrum_as_far_as_the_bulk_is_wide():
    """With eigenvalues at -3 and 5 beside a bulk from -2 to 2: at z = -7."""
    layer = layer_with([5.0, -3.0])
    asked = []

    def compute_traces(label, points, count):
        asked.append((label, points, count))
        return [{"A": 0.25 + 0j, "A R": 0.5 + 0j}]

    spectra, weights = spectra_of([5.0, -3.0]), [np.arange(7.0) + off for off in OFF]
    rows = rows_of(layer, spectra, weights={"A": weights}, compute_traces=compute_traces)
    assert asked == [("", [-7.0], 1)]
    for power, what, theory in ((1, "tr R A", 0.25), (2, "tr R A R", 0.5)):
        row = rows[f"{what} at -7"]
        draws = [np.mean(w / (-7.0 - e) ** power) for w, e in zip(weights, spectra, strict=True)]
        assert (row.theory, row.simulation) == pytest.approx((theory, np.mean(draws))) and not row.compared


def test_the_weight_of_an_atom_is_counted_in_eigenvalues():
    """Two of eight are at zero; half an eigenvalue is the error of what is counted alike by all seeds."""
    spectra = [np.sort([0.0, 0.0, 1.0, 1.5, 2.0, 2.5, 2.8, 2.9 + off]) for off in OFF]
    law = GivenLaw(((0.9, 3.0),), ((0.0, 0.25),))
    row = rows_of(Layer("", law, np.array([]), None, {}, moments=np.array([1.0])), spectra)["weight of the atom at 0"]
    assert (row.theory, row.simulation, row.stderr) == pytest.approx((0.25, 0.25, 1 / 16))


def test_edges_and_moments_have_their_own_errors_where_the_bulk_is_sampled():
    law = GivenLaw(((-2.0, -1.5), (0.0, 2.0)), ())
    given = {"moments": [1.0, 0.3, 0.9, 0.5, 2.0, 7.0], "moment_errors": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]}
    offs = np.array([[0.01, 0.02], [0.03, 0.04]])
    arrays = {name: np.array(row) for name, row in given.items()}
    layer = Layer("", law, np.array([]), None, {}, edge_errors=offs, **arrays)
    rows = rows_of(layer, [BULK] * 3)
    for order in (1, 2, 3, 4):
        row = rows[f"moment {order} of the bulk"]
        assert (row.theory, row.theory_error) == (given["moments"][order], given["moment_errors"][order])
        assert row.simulation == pytest.approx(np.mean(BULK**order))
    assert rows["lower edge, smallest other eigenvalue"].theory_error == 0.01
    assert rows["upper edge, largest other eigenvalue"].theory_error == 0.04
    assert not any(name.startswith("moment 5") for name in rows)


@pytest.mark.parametrize(("edge", "inward"), [(-2.0, 1), (2.0, -1)])
def test_the_outermost_eigenvalue_is_inside_by_a_power_of_the_size(edge: float, inward: int):
    """Of the semicircle, by 1.2065 N^(-2/3): an eighth of the size is four times as far."""
    law = GivenLaw(((-2.0, 2.0),), (), given=lambda x: np.sqrt(4 - x**2) / (2 * np.pi))
    for size, share in ((1000, 1), (125, 4)):
        inside = inward * (law.mean_at_edge(edge, size) - edge)
        assert inside == pytest.approx(share * 1.2065335745820 / 100, rel=1e-4)


def test_a_density_without_a_square_root_has_no_mean_at_its_edge():
    assert GivenLaw(((0.0, 2.0),), (), given=np.ones_like).mean_at_edge(0.0, 100) is None


def test_each_outlier_that_theory_separates_is_compared_on_its_own():
    """Three outliers, of which two are equal, closer than their fluctuations: two rows and the mean of all."""
    draws = np.random.default_rng(0).normal(0.0, 0.3, (40, 3))
    bulk = np.linspace(-2.0, 2.0, 20)
    spectra = [np.sort(np.concatenate([bulk, np.array([4.0, 4.5, 4.5]) + shifts])) for shifts in draws]
    found = match(layer_with([4.5, 4.5, 4.0]), spectra)
    assert [one.theory for one in found.outliers] == [4.5, 4.0] and [one.theory for one in found.means] == [13 / 3]
    assert found.outliers[1].draws == pytest.approx([values[-3] for values in spectra])
    variance = np.array([values[-3:] for values in spectra]).var(axis=0, ddof=1).mean()
    assert found.outliers[0].repulsion == pytest.approx(variance / (2 * 0.5))
    assert found.outliers[1].repulsion == pytest.approx(min(2 * variance / (2 * 0.5), variance**0.5))
    assert found.means[0].repulsion == 0.0


def test_a_verdict_counts_what_chance_makes():
    """Three standard errors of four seeds are exceeded with probability 0.0577 (Student's t, three degrees)."""
    rows = [Row(name, 1.0, None, 1.0, 0.1, off, True) for name, off in (("a", 0.5), ("b", -3.5), ("c", 2.9))]
    rows.append(Row("shown", 1.0, None, 9.0, 0.1, None, False))
    assert expected_by_chance(rows, 4) == pytest.approx(3 * 0.05766888562243733)
    found = judge(rows, 4)
    assert (found.outcome, found.compared, found.beyond) == ("cannot tell", 3, ("b",))
    assert found.bound == pytest.approx(-stats.t(3).ppf(stats.norm.cdf(-3) / 3)) and found.seeds > 4
    assert found.sentence.startswith(f"cannot tell: use {found.seeds} seeds")
    assert judge(rows[::2], 4).outcome == judge(rows[-1:], 4).outcome == "agrees"
    assert judge(rows, 400).outcome == "disagrees"


def test_a_verdict_names_at_most_four_quantities():
    told = [Verdict("disagrees", 9, tuple("abcde"[:count])).sentence for count in (4, 5)]
    assert "(a, b, c, d)" in told[0] and "(a, b, c, d, ...)" in told[1]


# -- samples


def test_means_over_seeds_have_the_error_of_independent_draws():
    draws = np.array([[1.0, 5.0], [3.0, 5.0], [8.0, 5.0]])
    found = Samples({}, 10, (), {"x": draws}, SimpleNamespace())
    assert found.mean("x") == pytest.approx([4.0, 5.0])
    assert found.stderr("x") == pytest.approx([math.sqrt((9 + 1 + 16) / 2 / 3), 0.0])
    assert np.all(np.isnan(Samples({}, 10, (), {"x": draws[:1]}, SimpleNamespace()).stderr("x")))


def samples_of(shift: list[float] | None) -> SimulatedLayer:
    """Two seeds, looked at at times 0 and 2 of three steps, when the matrix was moved by what was added by then."""
    samples = []
    for seed in (0, 10):
        last = _Last(np.array([1.0, 2.0]) + seed, {}, {}, {}, {"right": 2}, {"A": np.array([seed, 1.0])})
        early = {time: {"": np.array([0.0, time]) + seed} for time in (0, 2)}
        samples.append(_Sample({"": last}, early, {"": shift}, {}, {"": 2}, {}, {}))
    return _gathered("", samples, (0, 2), 2)


@pytest.mark.parametrize(("shift", "added"), [(None, (0, 0, 0)), ([7.0], (7, 7, 7)), ([1.0, 3.0, 5.0, 8.0], (1, 5, 8))])
def test_a_spectrum_is_moved_by_what_is_added_at_its_time(shift, added):
    found = samples_of(shift)
    first, later, last = added
    for seed, place in ((0, 0), (10, 1)):
        assert found.eigenvalues[place] == pytest.approx([1 + seed + last, 2 + seed + last])
        assert found.ends[place][0] == pytest.approx([seed + first, seed + first])
        assert found.ends[place][1] == pytest.approx([seed + later, 2 + seed + later])
    assert found.shifts(2) == [later, later]


def test_a_trace_is_a_mean_over_eigenvalues_with_its_weights():
    found = samples_of(None)
    z = np.array([[3.0, 4.0]])
    assert found.traces(z, None, 1)[0] == pytest.approx(np.array([[(1 / 2 + 1) / 2, (1 / 3 + 1 / 2) / 2]]))
    assert found.traces(z, "A", 2)[1] == pytest.approx(np.array([[(10 / 64 + 1 / 81) / 2, (10 / 49 + 1 / 64) / 2]]))


def test_samples_drawn_apart_are_joined_in_their_order():
    one, other = (
        Samples({}, 2, (samples_of(shift),), {"x": np.full((2, 1), k)}, None) for k, shift in enumerate((None, [7.0]))
    )
    found = joined([one, other])
    (layer,) = found.layers
    assert [e[0] for e in layer.eigenvalues] == [1, 11, 8, 18] and found.observables["x"].ravel().tolist() == [
        0,
        0,
        1,
        1,
    ]
    assert layer.added == [None, None, [7.0], [7.0]] and [w[0] for w in layer.weights["A"]] == [0, 10, 0, 10]
    assert [ends[1][1] for ends in layer.ends] == [2, 12, 9, 19]


def test_eigenvalues_that_stand_out_exceed_those_at_the_start_by_their_distances():
    """At the start the bulk reaches from -3 to 3, and its fourth eigenvalues are at -1.5 and 1.5: beyond 4.5."""
    start = np.array([-3.0, -2.5, -2.0, -1.5, 0.0, 1.5, 2.0, 2.5, 3.0])
    now = [np.array([-4.6, -2.5, -2.0, -1.5, 0.0, 1.5, 4.4, 4.7, 5.0]) + 0.01 * k for k in range(3)]
    ends = [[start, e + 20] for e in now]
    layer = SimulatedLayer("", [e + 20 for e in now], {}, (0, 1), ends, [[0.0, 20.0]] * 3, 9)
    assert layer.outliers(1) == pytest.approx(np.array([[25.0, 24.7, 15.4]]) + 0.01 * np.arange(3)[:, None])
    assert layer.outliers(0).shape == (3, 0)
    squares = [np.arange(9.0) + 10 * k for k in range(3)]
    assert layer._of_outliers(squares) == pytest.approx(np.array([[8.0, 7.0, 0.0]]) + 10 * np.arange(3)[:, None])


def test_outliers_that_were_not_computed_are_named():
    spectra = [np.array([-3.0, -1.5, 1.5, 4.0])] * 2 + [np.array([-3.0, 0.0, 1.5, 4.0])]
    for sign, side in ((1, "below"), (-1, "above")):
        turned = [np.sort(sign * one) for one in spectra]
        with pytest.raises(NumericalError, match=f"^outliers {side} the bulk are not among the computed eigenvalues"):
            rows_of(layer_with([4.0 * sign, -3.0 * sign]), turned, size=9)


@pytest.mark.parametrize("errors", [None, [[], [0.01, 0.01], [0.0, 0.0]], [[], [0.3, 0.3], [0.0, 0.0]]])
def test_alignments_on_the_way_are_compared_one_by_one_unless_outliers_are_nearer_than_their_errors(errors):
    """Outliers 3 and 3.5 at time 1."""
    values = np.array([[[0.7]], [[0.6]]])
    path = (), (OutlierAlignment("along", "right", (1,), False, False, (1, 1), values, values / 10),), ()
    layer = layer_with(
        [9.0],
        outlier_path=[[], [3.5, 3.0], [9.0]],
        outlier_path_errors=errors,
        largest_path=[2.0, 3.5, 9.0],
        outlier_alignment_path=path,
        moved=lambda shift: SimpleNamespace(edges=((-2.0, 2.0),), atoms=()),
        shift_path=[0.0, 0.0, 0.0],
    )
    ends = [[np.sort([*BULK, 3.0 + off / 10, 3.5 + off / 10])] for off in OFF]
    squares = [[np.array([*np.full(5, 0.01), 0.6, 0.7])[:, None, None]] for _ in OFF]
    given = {"alignment_path": {("along", "right"): squares}, "lengths": {"right": 500}}
    rows = rows_of(layer, spectra_of([9.0]), times=(1,), ends=ends, **given)
    names = sorted(name for name in rows if name.startswith("along"))
    if errors is not None and errors[1][0] > 0.1:
        assert len(names) == 1 and "outliers 1-2, together" in names[0] and rows[names[0]].compared
    else:
        assert len(names) == 2 and all(rows[name].compared for name in names)


def test_alignments_that_theory_does_not_know_are_left_out_of_the_table_and_others_stay():
    values = np.array([[[np.nan]], [[0.6]]])
    squares = [np.array([*np.full(5, 0.1), 0.6 + off, 0.3])[:, None, None] for off in OFF]
    layer = layer_with(
        [5.0, 4.0], outlier_alignments=(OutlierAlignment("along", "right", None, False, False, (1, 1), values, None),)
    )
    rows = rows_of(layer, spectra_of([5.0, 4.0]), alignments={("along", "right"): squares}, lengths={"right": 10**9})
    (found,) = (row for name, row in rows.items() if name.startswith("along"))
    assert found.quantity.endswith("outlier 2 above the bulk") and found.theory_error is None
    assert (found.theory, found.simulation) == pytest.approx((0.6, 0.61))
