"""Power-law tails and localised vectors: estimates and errors against synthetic spectra with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numerics.spectra.fitting import FITS, NOT, analyse
from numerics.spectra.localisation import participation
from numerics.spectra.tails import fit_tail


def pareto(exponent: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draws of density proportional to x^-exponent above one."""
    return rng.pareto(exponent - 1.0, count) + 1.0


def with_body(exponent: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """A tail of two fifths of the numbers above a uniform body."""
    tail = 2 * count // 5
    return np.concatenate([rng.uniform(0.0, 1.0, count - tail), pareto(exponent, tail, rng)])


# Tails


@pytest.mark.parametrize("count", [50, 200, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("law", "exponent"), [(pareto, 2.0), (pareto, 3.0), (with_body, 2.5)])
def test_the_error_of_an_exponent_covers_the_truth(law, exponent, count):
    fits = [fit_tail(law(exponent, count, np.random.default_rng([count, seed])), False) for seed in range(60)]
    scores = np.array([(fit.exponent - exponent) / fit.error for fit in fits])
    assert (abs(scores) < 1.0).mean() > 0.5  # 0.68 less three of its standard errors, and more if conservative
    assert (abs(scores) < 2.0).mean() > 0.87
    assert abs(scores.mean()) < 0.7 and scores.std() > 0.4  # and it is not twice too large


@pytest.mark.parametrize("size", [50, 200, pytest.param(1000, marks=pytest.mark.long)])
def test_no_power_law_is_believed_of_noise(size):
    for seed in range(40 if size < 1000 else 10):
        rng = np.random.default_rng([size, seed])
        fitted = analyse("W", rng.standard_normal((size * (1 + seed % 2), size)))
        assert fitted.tail is not None and fitted.tail_doubts
        again = fit_tail(fitted.eigenvalues, goodness=True)  # also without knowing that noise describes it
        assert again is not None and again.doubts


def test_a_power_law_is_believed_where_there_is_one():
    believed = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        left, right = (np.linalg.qr(rng.standard_normal((300, 300)))[0] for _ in range(2))
        fitted = analyse("W", (left * np.sqrt(pareto(2.2, 300, rng))) @ right)
        assert fitted.verdict == NOT
        believed += not fitted.tail_doubts
    assert believed >= 7  # goodness of fit alone rejects a true power law one time in ten


def test_tails_too_short_or_without_spread_have_no_exponent():
    assert fit_tail(np.arange(1.0, 21.0), False) is None and fit_tail(np.ones(100), False) is None
    one = analyse("W", np.random.default_rng(0).standard_normal((20, 30)))
    assert one.tail is None and one.tail_doubts


# Localisation


@pytest.mark.parametrize("size", [50, 300, 1000])
def test_participation_of_a_random_direction_is_a_third_of_the_entries_with_the_error_stated(size):
    found = [participation(vector) for vector in np.random.default_rng(size).standard_normal((400, size))]
    inverse = np.array([1.0 / one.ratio for one in found])
    assert inverse.mean() == pytest.approx(3.0 / (size + 2), rel=4 * math.sqrt(8 / 3 / size / 400))
    deviations = np.array([one.deviations for one in found])
    assert abs(deviations.mean()) < 0.2 and deviations.std() == pytest.approx(1.0, abs=0.35)  # 4 standard errors
    scores = np.array([(one.ratio - size / 3) / one.error for one in found])
    assert 0.6 < scores.std() < 1.4
    assert sum(one.localised for one in found) <= 4


def test_participation_of_equal_entries_counts_them():
    for count in (1, 5, 400):
        one = participation(np.repeat([1.0, 0.0], [count, 400 - count]))
        assert one.ratio == pytest.approx(count)
        assert one.error == pytest.approx(count * math.sqrt(1 / count - 1 / 400), abs=1e-9)


@pytest.mark.parametrize("size", [50, 200, 1000])
@pytest.mark.parametrize("wide", [False, True])
def test_a_spike_on_three_rows_is_localised_there_and_nowhere_else(size, wide):
    for seed in range(5):
        rng = np.random.default_rng([size, seed])
        rows = np.repeat([1.0, 0.0], [3, size - 3]) / math.sqrt(3)
        columns = rng.standard_normal(2 * size) / math.sqrt(2 * size)
        matrix = rng.standard_normal((size, 2 * size)) + 4.0 * math.sqrt(2 * size) * np.outer(rows, columns)
        fitted = analyse("W", matrix if wide else matrix.T)
        assert fitted.verdict == FITS and len(fitted.vectors) == 1 and not fitted.vectors[0].doubts
        few, all_of_them = (fitted.vectors[0].left, fitted.vectors[0].right)[:: 1 if wide else -1]
        assert few.localised and abs(few.ratio - 3.0) < few.error
        assert not all_of_them.localised and all_of_them.size == 2 * size


def test_vectors_are_those_of_a_singular_value_decomposition_and_say_when_they_mix():
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((n, 2)))[0] for n in (120, 90))
    for strengths, mixed in (((4.0, 2.5), False), ((3.0, 2.99), True), ((1.15,), None)):
        count = len(strengths)
        spikes = math.sqrt(120) * (left[:, :count] * np.array(strengths)) @ right[:, :count].T
        matrix = rng.standard_normal((120, 90)) + spikes
        fitted = analyse("W", matrix)
        u, _, v = np.linalg.svd(matrix)
        for one in fitted.vectors:
            assert one.left.ratio == pytest.approx(participation(u[:, one.rank]).ratio, rel=1e-6)
            assert one.right.ratio == pytest.approx(participation(v[one.rank]).ratio, rel=1e-6)
        if mixed is None:
            assert fitted.vectors[0].doubts  # at the transition: no outlier, or one made of noise
        else:
            assert [any("mix" in doubt for doubt in one.doubts) for one in fitted.vectors] == [mixed, mixed]
