"""The judge of simulations itself: on synthetic families it is quiet under any seed and sees what is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agreement import (
    BOUND,
    COMPARISONS,
    FALSE_ALARM,
    Block,
    Comparison,
    controls_of,
    extrapolated,
    mean_at_size,
    mean_score,
    normal_score,
    recorded,
    seed_of,
    sees_stretch,
    spread_chances,
    stretch,
    too_far,
    wrong,
)
from scipy import stats
from simulated import stretched

SIZES = ((60, 120), (180, 60))


def family(rng, bias: float = 0.0, blocks: int = 12, tails: bool = True, scatter: float = 0.1) -> list[Block]:
    """Blocks of five correlated quantities near 3 with corrections 2/size, three of them outliers at distance 1.

    bias: what all are off by, in units of that distance. tails: samples skewed like a squared normal.
    """
    found = []
    for number in range(blocks):
        samples = []
        for size, seeds in SIZES:
            shared, own = rng.standard_normal((seeds, 1)), rng.standard_normal((seeds, 5))
            if tails:
                own = (own + own**2 - 1) / math.sqrt(3)
            samples.append(2 / size + bias + scatter * math.sqrt(60 / size) * (0.8 * shared + 0.6 * own))
        found.append(
            Block(
                f"model {number}",
                tuple(
                    extrapolated(
                        f"quantity {j}",
                        3.0,
                        [size for size, _ in SIZES],
                        [s[:, j] for s in samples],
                        distance=1.0 if j < 3 else None,
                    )
                    for j in range(5)
                ),
            )
        )
    return found


def test_scores_of_small_samples_are_normal():
    """Student's t with the degrees of freedom that two sizes leave, mapped to a normal deviate."""
    rng = np.random.default_rng(1)
    scores = [b.comparisons[0].score for b in family(rng, blocks=600, tails=False)]
    assert stats.kstest(scores, "norm").pvalue > 1e-4
    assert normal_score(12.0, 1.0, 5) < 5 < normal_score(12.0, 1.0, 500)


def test_the_bound_is_that_of_the_whole_suite():
    assert 2 * COMPARISONS * stats.norm.sf(BOUND) == pytest.approx(FALSE_ALARM / 4)
    off = Comparison("quantity", 1.0, 0.1, np.array([0.01]), math.inf)
    assert too_far([Block("model", (off,))])
    assert too_far([Block("model", (Comparison("quantity", 1.0, math.nan, np.array([0.01]), math.inf),))])


@pytest.mark.slow
def test_statistics_of_right_families_have_the_distribution_they_claim():
    rng = np.random.default_rng(2)
    families = [family(rng) for _ in range(150)]
    assert stats.kstest([mean_score(f) for f in families], "norm").pvalue > 1e-4
    shares = [share / error for share, error in map(stretch, families)]
    assert 0.75 < np.std(shares) < 1.25 and abs(np.mean(shares)) < 0.4
    for side in zip(*map(spread_chances, families), strict=True):
        assert np.mean(np.array(side) < 0.02) <= 0.02 + 0.04  # an upper bound, up to what 150 families can tell
    assert not any(map(wrong, families))


@pytest.mark.parametrize("share", [0.02, -0.02])
def test_two_percent_of_the_distance_is_seen(share):
    rng = np.random.default_rng(3)
    families = [family(rng, scatter=0.05) for _ in range(20)]
    assert all(sees_stretch(f, 0.02) for f in families)
    assert all(any("percent off" in line for line in wrong([stretched(b, share) for b in f])) for f in families)
    assert not sees_stretch(family(rng, scatter=1.0), 0.02)


def test_a_bias_too_small_for_any_one_comparison_is_seen_by_all():
    rng = np.random.default_rng(4)
    families = [family(rng, bias=0.03) for _ in range(20)]
    assert sum(not too_far(f) for f in families) > 17
    assert all(wrong(f) for f in families)


@pytest.mark.parametrize("factor, words", [(2.0, "too widely"), (0.4, "too little")])
def test_errors_that_are_not_what_they_claim_are_seen(factor, words):
    rng = np.random.default_rng(5)
    claimed = [
        Block(
            b.name,
            tuple(
                Comparison(c.name, c.theory, c.difference * factor, c.influence, c.freedom, distance=c.distance)
                for c in b.comparisons
            ),
        )
        for b in family(rng, blocks=40)
    ]
    assert any(words in line for line in wrong(claimed))


def test_corrections_in_the_size_are_taken_out():
    rng = np.random.default_rng(6)
    sizes = (50, 100, 200)
    draws = [7 / size + 0.02 * rng.standard_normal(60) for size in sizes]
    assert abs(extrapolated("with", 0.0, sizes, draws).score) < BOUND
    assert extrapolated("without", 0.0, sizes[-1:], draws[-1:]).score > BOUND


def test_what_scatters_in_no_sample_must_be_exact():
    constant = [np.full(9, 1 / size) for size in (50, 100)]
    assert extrapolated("right", 2.0, (50, 100), constant).score == 0.0
    assert extrapolated("wrong", 2.0, (50, 100), [d + 0.05 for d in constant]).score > BOUND
    rng = np.random.default_rng(7)
    known = [rng.standard_normal((40, 1)) for _ in range(2)]
    assert abs(extrapolated("explained", 2.0, (50, 100), [k[:, 0] for k in known], known).score) < BOUND


def test_controls_have_no_mean_and_leave_that_of_the_draws():
    """Every product of two vectors or images of vectors, by square and oblong matrices."""
    rng = np.random.default_rng(8)
    table = np.array(
        [controls_of([rng.standard_normal(s) for s in ((9, 9), (9, 13), 9, (13, 2), 9)]) for _ in range(1000)]
    )
    scores = table.mean(axis=0) / table.std(axis=0) * math.sqrt(len(table))
    assert table.shape[1] > 50 and np.max(np.abs(scores)) < 5
    draws = 1 + table[:, :6] @ np.ones(6) / 30 + 0.1 * rng.standard_normal(len(table))
    mean, influence, freedom = mean_at_size(draws, table[:, :20])
    assert abs(mean - 1) < 5 * np.linalg.norm(influence) < 0.2 * np.std(draws) / math.sqrt(len(draws)) * 5
    assert freedom == len(table) - 21


def test_controls_do_not_shift_the_mean_where_they_enter_squared():
    """What is left of such a quantity goes with the product of two controls, and so do errors of the slopes."""
    rng = np.random.default_rng(9)
    scores = []
    for _ in range(300):
        controls = rng.standard_normal((60, 10))
        mean, influence, freedom = mean_at_size(np.sum(controls + controls**2 - 1, axis=1), controls)
        scores.append(normal_score(mean, float(np.linalg.norm(influence)), freedom))
    assert abs(np.mean(scores)) < 0.25 and np.std(scores) < 1.35


def test_draws_of_every_sample_are_recorded_as_they_are():
    plain = [np.random.default_rng(seed).standard_normal((7, 7)) for seed in range(3)]
    with recorded() as table:
        drawn = [np.random.default_rng(seed).standard_normal((7, 7)) for seed in range(3)]
        assert np.allclose(table()[:, 0], [np.sum(m**2) - 49 for m in plain])
    assert np.array_equal(plain, drawn) and type(np.random.default_rng(0)) is np.random.Generator


def test_every_sample_has_a_seed_of_its_own():
    assert len({seed_of(s, name, size) for s in (1, 2) for name in "ab" for size in (90, 270)}) == 8
