"""Error estimates are honest: what is reported covers what is wrong, and is not a thousandth of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from conftest import solver_and_values

from derive.errors import NumericalError
from numerics.bulk import density, edges, settling
from numerics.bulk.law import DensityPiece, Panelled
from numerics.bulk.sampled import edge_errors, moment_errors
from numerics.bulk.support import law_of
from numerics.outliers.alignments import OutlierAlignment, with_errors
from numerics.outliers.errors import estimated_overlaps, estimated_path
from numerics.outliers.leading import leading
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import Point
from numerics.runtime.sampled import BasisReport, Carried
from numerics.simulation import samples
from numerics.simulation.compare import compare, mean_and_error
from numerics.simulation.samples import joined, simulate
from numerics.solver import solve
from numerics.support.nearby import Nearby
from numerics.support.precision import in_float64
from numerics.training import sampling

# -- comparisons


def test_two_draws_have_the_error_of_their_mean():
    """1 and 3 have the standard deviation sqrt(2), and their mean half of the difference as its error."""
    assert mean_and_error([[1.0, 9.0], [3.0, 9.0]]) == {"mean": [2.0, 9.0], "stderr": [pytest.approx(1.0), 0.0]}
    assert mean_and_error([[1.0]])["stderr"] is None


@pytest.fixture(scope="module")
def wigner():
    """A bulk without outliers, solved and drawn at two sizes."""
    solver, values = solver_and_values("spiked_wigner", gamma0=0.5)
    return solve(solver, values), simulate(solver, values, 60, 5, seed=1), simulate(solver, values, 20, 4, seed=2)


def rows_of(*compared) -> dict:
    return {row.quantity: row for row in compare(*compared)}


def test_the_extrapolation_in_size_has_the_errors_of_both_sizes(wigner):
    """m(inf) = 3/2 m(60) - 1/2 m(20) where m(D) = m(inf) + c/D; independent errors add in squares."""
    theory, large, small = wigner
    row = rows_of(theory, large, small)["moment 2 of the bulk (sizes 60, 20)"]
    means, errors = [], []
    for one in (large, small):
        moments = [float(np.mean(np.square(e))) for e in one.layer("").eigenvalues]
        means.append(sum(moments) / len(moments))
        squares = sum((m - means[-1]) ** 2 for m in moments)
        errors.append(math.sqrt(squares / (len(moments) - 1) / len(moments)))
    assert row.simulation == pytest.approx(1.5 * means[0] - 0.5 * means[1])
    assert row.stderr == pytest.approx(math.hypot(1.5 * errors[0], 0.5 * errors[1]))
    assert row.difference == pytest.approx((row.simulation - 1) / row.stderr)
    assert row.compared


def test_samples_are_independent_and_parts_of_them_are_the_whole():
    solver, values = solver_and_values("spiked_wigner", gamma0=0.5)
    whole = simulate(solver, values, 20, 3, seed=1)
    parts = joined([simulate(solver, values, 20, 1, seed=1, first=k) for k in range(3)])
    assert all(np.array_equal(x, y) for x, y in zip(whole.eigenvalues, parts.eigenvalues, strict=True))
    others = simulate(solver, values, 20, 3, seed=2)
    assert len({float(e[0]) for e in (*whole.eigenvalues, *others.eigenvalues)}) == 6


def test_one_size_says_nothing_about_moments(wigner):
    """They are off by 1/D, which is as much as they fluctuate."""
    theory, large, _ = wigner
    row = rows_of(theory, large)["moment 2 of the bulk"]
    assert not row.compared and row.difference is None


def test_the_outermost_eigenvalue_has_the_spread_over_seeds(wigner):
    """beside the mean of the Tracy-Widom law, which is 1.2065 D^(-2/3) inside the edge 2 of the semicircle."""
    theory, large, _ = wigner
    row = rows_of(theory, large)["upper edge, largest other eigenvalue (Tracy-Widom mean)"]
    largest = np.array([np.max(e) for e in large.layer("").eigenvalues])
    assert row.theory == pytest.approx(2 - 1.2065335745820 * 60 ** (-2 / 3), abs=1e-5)
    assert row.simulation == pytest.approx(largest.mean())
    assert row.stderr == pytest.approx(math.sqrt(np.sum((largest - largest.mean()) ** 2) / 4 / 5))


# -- the bulk


def panels_of(monkeypatch, resolvent) -> Panelled:
    """The density on [-2, 2] from a resolvent with the errors that it claims."""
    monkeypatch.setattr(density, "resolvent_at", lambda branch, x, tell=None: resolvent(x))
    return density.build_panels(None, [DensityPiece(-2.0, 2.0, 2, 2)])


def semicircle(x: np.ndarray) -> np.ndarray:
    return np.sqrt(4 - x**2) / (2 * np.pi)


@pytest.mark.parametrize("off", [1e-4, 1e-8])
def test_the_error_of_a_mass_covers_a_density_that_is_off_everywhere(monkeypatch, off: float):
    """A resolvent that is wrong by its error, to the same side at all points, and not by much less."""
    found = panels_of(monkeypatch, lambda x: (-1j * np.pi * (semicircle(x) + off), np.full(x.shape, np.pi * off)))
    assert found.mass - 1 == pytest.approx(4 * off, rel=1e-5)
    assert 4 * off <= found.error <= 1000 * off


def test_the_mass_of_a_density_with_a_kink_is_off_by_less_than_its_error(monkeypatch):
    """A series that has not converged when panels run out: 1 + |x - 1/3| times the semicircle."""
    monkeypatch.setattr(density, "MOST_PANELS", 6)

    def resolvent(x):
        return -1j * np.pi * semicircle(x) * (1 + np.abs(x - 1 / 3)), np.zeros(x.shape)

    found = panels_of(monkeypatch, resolvent)
    angles = (np.arange(200_000) + 0.5) * np.pi / 200_000
    exact = np.mean(2 * np.sin(angles) ** 2 * (1 + np.abs(2 * np.cos(angles) - 1 / 3)))
    assert 1e-8 < abs(found.mass - exact) <= found.error < 1e-2


def test_a_smooth_density_has_the_error_of_rounding(monkeypatch):
    found = panels_of(monkeypatch, lambda x: (-1j * np.pi * semicircle(x), np.zeros(x.shape)))
    assert abs(found.mass - 1) < 1e-13 and found.error < 1e-12


@pytest.mark.parametrize(("error", "weight"), [(0.0, 0.5), (np.inf, 0.0)])
def test_an_atom_is_reported_where_the_resolvent_is_known(monkeypatch, error: float, weight: float):
    """G = w/z next to a point mass of weight w at zero; one that could not be followed there has none."""
    monkeypatch.setattr(edges, "resolvent_at", lambda branch, z: (0.5 / z, np.full(z.shape, error)))
    branch = SimpleNamespace(start=SimpleNamespace(height=1.0), eliminated=False, by_factors=False)
    assert edges.atom_at(branch, 0.0, [(0.0, 1.0)]) == pytest.approx(weight)


def test_edges_and_moments_move_with_what_the_bulk_is_made_of():
    """Marchenko-Pastur edges (1 +- r)^2 and second moment 1 + r^2 with r = 1/sqrt(alpha): two replicas that are off by
    the same amount to both sides have an error of sqrt(2) times the slope, and halves a bias beside it."""
    solver, values = solver_and_values("marchenko_pastur")
    alpha, off, more = values["alpha"], 1e-4, 3e-4
    branch, others = solver.branch(values), [solver.branch({"alpha": alpha + x}) for x in (off, -off, more)]
    nearby = Nearby(({}, {}), (1.0, 1.0), {}, share=0.5)
    (found,) = edge_errors(branch, others, law_of(branch), nearby)
    slopes = [(1 + side * alpha**-0.5) * side * alpha**-1.5 for side in (-1, 1)]
    by_hand = [abs(slope) * math.hypot(math.sqrt(2) * off, 0.5 * more) for slope in slopes]
    assert found == pytest.approx(by_hand, rel=1e-3)
    by_moments = [0.0, 0.0, alpha**-2 * math.hypot(math.sqrt(2) * off, 0.5 * more)]
    assert moment_errors(branch, others, 2, nearby) == pytest.approx(by_moments, rel=1e-3)


@dataclass(frozen=True)
class Densities:
    """A bulk of which only the number of values of its density matters."""

    nodes: int = 32
    densities: tuple = (("trait", "s"),)


def values_needed(monkeypatch, moves: dict[int, float]) -> tuple[int, float]:
    """How many values a density is taken at, and what the bulk still moves by; moves: by number, NaN where it is not
    found."""

    def moved(coarse, law, fine):
        assert fine.nodes == 2 * coarse.nodes
        if np.isnan(moves[coarse.nodes]):
            raise NumericalError("not found")
        return moves[coarse.nodes]

    monkeypatch.setattr(settling, "Branch", lambda law, p: law)
    monkeypatch.setattr(settling, "law_of", lambda branch: None)
    monkeypatch.setattr(settling, "_most_nodes", lambda law, p: 128)
    monkeypatch.setattr(settling, "_first_guess", lambda law, p, most: 32)
    monkeypatch.setattr(settling, "_largest_change", moved)
    settling._converge_nodes.cache_clear()
    try:
        return settling._converge_nodes(Densities(), Point(a=1.0))
    finally:
        settling._converge_nodes.cache_clear()


def test_a_density_has_as_many_values_as_leave_the_bulk_where_it_is(monkeypatch):
    assert values_needed(monkeypatch, {32: 1e-3, 64: 3e-11, 128: 0.0}) == (64, 3e-11)
    assert values_needed(monkeypatch, {32: np.nan, 64: 1e-9, 128: 2e-11}) == (128, 2e-11)
    with pytest.raises(NumericalError, match="over s has not converged: with 128 values the bulk still changes by 2"):
        values_needed(monkeypatch, {32: np.nan, 64: 1e-9, 128: 2e-10})
    with pytest.raises(NumericalError, match="with 128 values the bulk was not found; if .* fewer rows than columns"):
        values_needed(monkeypatch, {32: 1e-3, 64: 1e-9, 128: np.nan})


@pytest.mark.parametrize(("densities", "most"), [(1, 4096), (2, 256), (3, 32)])
def test_combinations_of_values_of_several_densities_are_bounded(densities: int, most: int):
    """At 2^16 together, and values of a trait beside them do not count."""
    few = SimpleNamespace(weights=np.ones(3))
    law = SimpleNamespace(sites=lambda p, nodes: [few, *[SimpleNamespace(weights=np.ones(nodes))] * densities])
    assert settling._most_nodes(law, Point(a=1.0)) == most


# -- sampled theories


def test_what_a_truncation_moves_by_chance_is_not_an_error_of_one_quantity():
    """A mean of six moves is beyond doubt at six of its own errors, and chance at three; what a fourth of the cutoff
    moves is three fourths of the whole."""
    noise = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]) * math.sqrt(5.0)  # its mean has the standard error one
    moved = {"one": np.stack([noise + 3, noise + 6, 0 * noise + 0.5], axis=1), "others": np.tile(noise, (60, 1)).T}
    errors = {"one": np.ones(3), "others": np.ones(60)}
    found = sampling._beyond_chance(moved, errors)
    assert found["one"] == pytest.approx([0.0, 16 / 9 * (36 - 25), 16 / 9 / 4])
    assert not found["others"].any()


# -- results at order parameters nearby

NEARBY = Nearby(({}, {}, {}), (1.0, 1.0, 0.5), {}, share=0.5, doubt=0.2, replicas=2, unbiased={})
"""Two replicas, something else of which half is an error, halves, and what is moved by the bias that is taken off."""


def test_a_result_without_bias_has_the_error_of_all_that_moves_it():
    value, error = NEARBY.estimate(1.0, [1.1, 0.8, 1.4, 1.3, 0.9])
    assert value == pytest.approx(1 + 0.5 * (1 - 1.3))
    assert error == pytest.approx(math.sqrt(0.1**2 + 0.2**2 + (0.5 * 0.4) ** 2 + (0.2 * 0.3) ** 2))
    assert NEARBY.added_by_noise(1.0, [1.1, 0.8, 1.4, 1.3, 0.9]) == pytest.approx(0.1 - 0.2)
    assert NEARBY.estimate(1.0, [1.1, None, 1.4, 1.3, 0.9]) == (value, math.inf)
    assert NEARBY.estimate(1.0, [1.1, 0.8, 1.4, None, 0.9]) == (1.0, math.inf)


def test_a_contribution_that_is_not_known_is_as_large_as_the_others_are():
    """One of ten, of which nine are known: the sum of their squares is a tenth of ten larger."""
    nearby = Nearby(({},) * 10, (1.0,) * 10)
    assert nearby.estimate(2.0, [2.1] * 9 + [None]) == (2.0, pytest.approx(math.sqrt(10) * 0.1))
    assert nearby.estimate(2.0, [2.1] * 8 + [None] * 2) == (2.0, math.inf)


def test_alignments_and_overlaps_have_the_errors_of_their_own_entries():
    """Each a multiple of the same numbers, so that errors are the same multiples."""
    moved = [1.1, 0.8, 1.4, 1.3, 0.9]
    value, error = NEARBY.estimate(1.0, moved)
    factors = np.array([[[0.1, 0.2], [0.3, np.nan]], [[0.5, 0.6], [0.7, 0.8]]])

    def aligned(x: float) -> list[OutlierAlignment]:
        return [
            OutlierAlignment(name, "right", (0, 1), True, True, (1, 1), k * x * factors)
            for k, name in ((1, "a"), (2, "b"))
        ]

    found = with_errors(aligned(1.0), [aligned(x) for x in moved], NEARBY)
    for k, one in enumerate(found, start=1):
        assert one.values[np.isfinite(factors)] == pytest.approx(k * value * factors[np.isfinite(factors)])
        assert one.errors[np.isfinite(factors)] == pytest.approx(k * error * factors[np.isfinite(factors)])
        assert np.isnan(one.errors[0, 1, 1])

    def overlaps(x: float) -> list[dict[str, float | None]]:
        return [{"right": 0.5 * x, "left": 0.25 * x}, {"right": 0.1 * x, "left": None}]

    values, errors = estimated_overlaps(overlaps(1.0), [overlaps(x) for x in moved], NEARBY)
    for table, scale in ((values, value), (errors, error)):
        assert table[0] == pytest.approx({"right": 0.5 * scale, "left": 0.25 * scale})
        assert table[1] == {"right": pytest.approx(0.1 * scale), "left": None}


def test_outliers_on_the_way_have_the_errors_of_their_time():
    path, moved = [[], [4.0], [6.0, -5.0]], [1.001, 0.998, 1.004, 1.003, 0.999]
    others = [[[x * z for z in now] for now in path] for x in moved]
    value, error = NEARBY.estimate(1.0, moved)
    values, errors = estimated_path(path, others, NEARBY)
    assert values[:2] == [[], [pytest.approx(4 * value)]] and errors[:2] == [[], [pytest.approx(4 * error)]]
    assert values[2] == pytest.approx([6 * value, -5 * value]) and errors[2] == pytest.approx([6 * error, 5 * error])
    others[0][1] = []
    assert estimated_path(path, others, NEARBY)[1][1] == [None] and estimated_path(path, others, NEARBY)[0][1] == [4.0]


# -- sampled passes by hand


OUT, SITES, REPLICAS, DIRECTIONS = 50.0, 256, 10, 12
KEPT, MADE = OrderKey("C", "f", "f"), OrderKey("C", "f", "g")


class ByHand:
    """A sampled pass of given functions."""

    def __init__(self, **functions):
        self.ranges = ()
        self.__dict__.update(functions)

    def is_light(self, p, rank, sites):
        return True


def fourth_moments() -> ByHand:
    """The mean of x^4 over sites, off by 8 over their number, by OUT for a share one that is left out, and by twice as
    much more where there is room for 32 directions; its square is an order parameter. Shares of a thousandth find
    room."""

    def forward_pass(p, normals, rank=None, tolerance=None):
        x = jnp.mean(normals["J"] ** 4) + 8 / len(normals["J"]) + OUT * tolerance[1] * (3 if rank == 32 else 1)
        half = len(normals["J"]) < SITES
        report = BasisReport(0.2 if half else 0.1, DIRECTIONS - half, tolerance[0] < 1e-3)
        return Carried(x=x[None, None]), {"x": x[None]}, 3 - half, report

    return ByHand(
        forward_pass=forward_pass,
        strides=lambda p: {},
        shapes=lambda p, rank: {"J": (1,)},
        moments_of=lambda p, kept: {KEPT: kept.x},
        order_parameters=lambda moments, p, tolerance: {MADE: moments[KEPT] ** 2},
        footprint=lambda p, rank: 1,
        groups=(("J",),),
        paired=False,
        responses="stein",
    )


@pytest.mark.parametrize("rank", [None, 16])
@pytest.mark.parametrize("told", [(0.6, 0.25), None, "left"])
@in_float64
def test_errors_of_a_sampled_pass_are_those_by_hand(monkeypatch, rank, told):
    """Replicas with their halves, the share of the bias, and what is left out; every pass has normals of its own."""
    seeds, original = [], sampling.draw
    monkeypatch.setattr(sampling, "draw", lambda *given: seeds.append(given[3]) or original(*given))
    debias = told != "left"
    how = sampling.Sampling(400, 7, "plain", rank, share=told if debias else None, debias=debias)
    found = sampling.sampled_pass(fourth_moments(), Point(a=1.0), how, lambda *_: None)
    tolerance = 1e-12 if rank is None else 1e-3
    normals = [np.asarray(original((("J",),), {"J": (1,)}, SITES, (7, k), "plain")["J"]) for k in range(REPLICAS)]
    wholes = np.array([np.mean(x**4) + 8 / 256 + OUT * tolerance for x in normals])
    halves = np.array([[np.mean(x**4) + 8 / 128 + OUT * tolerance for x in np.split(x, 2)] for x in normals])
    mean, half = wholes.mean(), halves.mean()
    if told is None:
        tables = [{"x": np.array([x])} for x in wholes], [[{"x": np.array([x])} for x in both] for both in halves]
        share, doubt = sampling._share(*tables)
        doubt = math.hypot(doubt, sampling.NEXT_ORDER * DIRECTIONS / SITES)
    else:
        share, doubt = told if debias else (0.0, 0.0)
    spread = np.var((1 + share) * wholes - share * halves.mean(axis=1), ddof=1) / REPLICAS + (OUT * tolerance) ** 2
    wider = 8 * (OUT * tolerance) ** 2 if rank and how.share is None else 0.0
    assert found.observables["x"] == pytest.approx([mean + share * (mean - half)], rel=1e-12)
    assert found.errors["x"] == pytest.approx([math.sqrt(spread + (doubt * (mean - half)) ** 2 + wider)], rel=1e-7)
    if wider:
        part = 3 * OUT * tolerance / float(found.errors["x"][0])
        assert found.report.rank_effect == pytest.approx(part, rel=1e-6)
    value, error = found.nearby.estimate(mean**2, [float(one[MADE][0, 0]) for one in found.nearby.orders])
    assert float(found.order[MADE][0, 0]) == pytest.approx(mean**2, rel=1e-12)
    assert value == pytest.approx(mean**2 + share * (mean**2 - half**2), rel=1e-12)
    assert error == pytest.approx(math.sqrt((2 * mean) ** 2 * spread + (doubt * (mean**2 - half**2)) ** 2), rel=1e-7)
    assert len(found.nearby.orders) == REPLICAS + 2 + 2 * debias and found.nearby.replicas == REPLICAS
    if debias:
        moved = mean**2 + 2 * mean * share * (mean - half)
        assert float(found.nearby.unbiased[MADE][0, 0]) == pytest.approx(moved, rel=1e-12)
    assert found.finite == 3 - debias
    report = found.report
    assert (report.samples, report.replicates, report.rank) == (SITES * REPLICAS * (1 + debias), REPLICAS, DIRECTIONS)
    assert report.truncated_variance == (0.2 if debias else 0.1)
    assert (report.bias is not None) == debias
    if report.bias is not None:
        assert (report.bias.share, report.bias.doubt) == pytest.approx((share, doubt), rel=1e-9)
    # that of the pilot, which has the normals of the first replica, is drawn twice
    assert len(set(seeds)) == len(seeds) - (rank is not None)


# -- eigenvalues by products


def test_an_eigenvalue_that_a_good_start_has_no_part_of_is_found():
    """A search that begins with the vectors of three eigenvalues does not stop before it knows what lies beyond."""
    rng = np.random.default_rng(4)
    values = np.concatenate([[3.0, 2.5, 2.0, 1.02], np.linspace(-0.98, 0.98, 396)])
    turn = np.linalg.qr(rng.standard_normal((400, 400)))[0]
    matrix = (turn * values) @ turn.T
    found = leading(lambda v: matrix @ v, 400, 1.0, turn[:, :3])
    assert found.found == pytest.approx(values[:4])


def test_eigenvalues_that_are_found_have_residuals_of_rounding():
    """Next to a floor with many eigenvalues below it, and with vectors that are not orthogonal."""
    rng = np.random.default_rng(5)
    values = np.concatenate([[5.0, 1.1, 1.05], np.linspace(-0.95, 0.95, 397)])
    vectors = np.eye(400) + 0.5 * rng.standard_normal((400, 400)) / 20
    matrix = vectors @ (values[:, None] * np.linalg.inv(vectors))
    found = leading(lambda v: matrix @ v, 400, 1.0).cut(3)
    off = np.linalg.norm(matrix @ found.vectors - found.vectors @ found.small, 2)
    assert found.found == pytest.approx(values[:3], abs=1e-10) and off < 1e-10


@pytest.mark.parametrize(
    ("there", "each", "count"), [(1e9, 1e6, 900), (1e9, 1e12, 0), (1e6, 0.0, 900_000), (None, 1, None)]
)
def test_as_many_samples_are_drawn_at_once_as_fit_into_nine_tenths_of_the_memory(there, each, count, monkeypatch):
    monkeypatch.setattr(samples, "available_memory", lambda: there)
    monkeypatch.setattr(samples, "needed_memory", lambda solver, values, size: each)
    assert samples.samples_at_once(None, {}, 10) == count
