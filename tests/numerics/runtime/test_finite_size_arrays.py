"""Arrays of a simulation, sites x labels, against sums and loops by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from numerics.runtime import finite_size as of

RNG = np.random.default_rng(7)
SITES, SIZES = 5, (2, 3, 4)
WIDE = RNG.normal(size=(SITES, 24))
"""A vector with three axes of labels."""
TABLED = WIDE.reshape(SITES, *SIZES)


def test_sizes_are_whole_and_positive():
    assert of.whole_sizes({"D": 10.4, "N": 2.6, "K": 0.2}) == (10, 3, 1)


def test_matrices_and_vectors_have_the_declared_variances():
    """To five standard errors of 90 000 entries; a GOE matrix has twice the variance on its diagonal."""
    rng = np.random.default_rng(0)
    matrix = of.goe(rng, np, 300, 0.5)
    np.testing.assert_array_equal(matrix, matrix.T)
    off = matrix[np.triu_indices(300, 1)]
    assert np.var(off) == pytest.approx(0.5, abs=5 * 0.5 * np.sqrt(2 / off.size))
    assert np.var(np.diag(matrix)) == pytest.approx(1.0, abs=5 * np.sqrt(2 / 300))
    assert of.gaussian(rng, np, 3, 7).shape == (3, 7)
    assert np.var(of.gaussian(rng, np, 300, 300)) == pytest.approx(1.0, abs=5 * np.sqrt(2 / 90_000))
    assert of.normal(rng, np, 4).shape == (4, 1) and of.normal(rng, np, 4, 3).shape == (4, 3)
    assert of.drawn_from(rng, np, ("uniform", 2.0, 3.0), 6).shape == (6, 1)


@pytest.mark.parametrize("size", [20, 101])
def test_traits_are_stratified(size):
    """Each value has the number of sites of its weight, up to one, and each quantile of a density one site."""
    rng = np.random.default_rng(1)
    drawn = of.trait_of_values(rng, np, size, (3.0, -1.0, 8.0), (0.2, 0.5, 0.3))
    assert drawn.shape == (size, 1)
    for value, share in ((3.0, 0.2), (-1.0, 0.5), (8.0, 0.3)):
        assert abs(np.sum(drawn == value) - share * size) <= 1
    equal = of.trait_of_values(rng, np, size, np.array([1.0, 2.0]), None)
    assert abs(np.sum(equal == 1) - size / 2) <= 1
    values = of.trait_of_density(rng, np, size, lambda x: 2 * x, 0.0, 3.0)
    assert values.shape == (size, 1) and not np.array_equal(values, np.sort(values, axis=0))
    places = size * (np.sort(values[:, 0]) / 3) ** 2  # the distribution function of the density
    np.testing.assert_allclose(places - np.arange(size), np.full(size, places[0]), atol=1e-3)
    assert 0 < places[0] < 1


def test_a_past_is_zero_before_its_start_and_takes_impulses_at_each_time():
    kicks = RNG.normal(size=(3, SITES, 2))
    past, plain = of.Past(SITES, 2, kicks), of.Past(SITES)
    for time in range(3):
        past.append(np.full((SITES, 2), float(time)))
        plain.append(np.array([[7.0 + time]]))
    assert len(past) == 3
    for time in range(3):
        np.testing.assert_array_equal(past[time], time + kicks[time])
        np.testing.assert_array_equal(plain[time], np.full((SITES, 1), 7.0 + time))
    assert past[-1].shape == (SITES, 2) and not past[-1].any() and plain[-2].shape == (SITES, 1)
    np.testing.assert_array_equal(of.kicked(TABLED, TABLED[None]), 2 * TABLED)
    assert of.kicked(TABLED, None) is TABLED


def test_vectors_have_their_full_shape_in_floating_point():
    whole = np.ones((SITES, 2))
    assert of.filled(whole, SITES, 2) is whole
    for value in (3, np.array([[3, 3]]), np.full((SITES, 2), 3)):
        found = of.filled(value, SITES, 2)
        assert found.dtype == float and np.array_equal(found, np.full((SITES, 2), 3.0))


def test_data_are_rows_and_zero_before_the_start():
    series = RNG.normal(size=(4, 3))
    np.testing.assert_array_equal(of.given(series, 2), series[2:3])
    np.testing.assert_array_equal(of.given(series[0]), series[:1])
    assert of.given(series) is series
    assert of.given(series, -1).shape == (1, 3) and not of.given(series, -1).any()
    np.testing.assert_array_equal(of.by_pair(series, 0)[0], [x for row in series for x in row])
    np.testing.assert_array_equal(of.by_pair(series, 1)[0], [x for row in series.T for x in row])


def test_the_root_of_a_covariance_is_symmetric_and_squares_to_it():
    rows = RNG.normal(size=(4, 3))
    found = of.root(rows @ rows.T)
    np.testing.assert_allclose(found @ found, rows @ rows.T, atol=1e-12)
    np.testing.assert_allclose(found, found.T, atol=1e-7)


def test_means_and_totals():
    np.testing.assert_allclose(of.mean(WIDE), [[sum(column) / SITES for column in WIDE.T]])
    assert of.average(WIDE) == pytest.approx(sum(map(sum, WIDE)) / WIDE.size)
    assert of.mean(3.0) == of.average(3.0) == 3.0
    np.testing.assert_allclose(of.total(WIDE), [[sum(row)] for row in WIDE])
    assert of.total_number(WIDE[:1]) == pytest.approx(sum(WIDE[0]))
    np.testing.assert_array_equal(of.by_label(WIDE[:1]), WIDE[0])
    np.testing.assert_array_equal(of.by_label(WIDE[:1], *SIZES), TABLED[0])


@pytest.mark.parametrize("place", range(3))
def test_sums_and_softmax_along_an_axis_of_labels(place):
    behind = int(np.prod(SIZES[place + 1 :], initial=1))
    summed = of.total_along(WIDE, SIZES[place], behind)
    np.testing.assert_allclose(summed, TABLED.sum(axis=1 + place).reshape(SITES, -1), rtol=1e-12)
    shifted = 700 + WIDE  # its exponential is finite only after a shift
    found = of.softmax(np, 10 * shifted, SIZES[place], behind).reshape(TABLED.shape)
    expected = np.exp(10 * TABLED) / np.exp(10 * TABLED).sum(axis=1 + place, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_axes_of_labels_are_repeated_permuted_and_mixed():
    narrow = RNG.normal(size=(SITES, 6))
    found = of.repeated(np, narrow, (2, 3, 1), SIZES).reshape(TABLED.shape)
    for i, j, k in itertools.product(*map(range, SIZES)):
        np.testing.assert_array_equal(found[:, i, j, k], narrow.reshape(SITES, 2, 3)[:, i, j])
    np.testing.assert_array_equal(
        of.in_order(WIDE, SIZES, (2, 0, 1)), np.transpose(TABLED, (0, 3, 1, 2)).reshape(SITES, -1)
    )
    table = RNG.normal(size=(5, 3))
    mixed = of.mixed_along(np, WIDE, table, SIZES, 1, (0, 1, 2)).reshape(SITES, 2, 4, 5)
    np.testing.assert_allclose(mixed, np.einsum("sijk,lj->sikl", TABLED, table), rtol=1e-12)
    turned = of.mixed_along(np, WIDE, table, SIZES, 1, (2, 0, 1)).reshape(SITES, 5, 2, 4)
    np.testing.assert_allclose(turned, np.einsum("sijk,lj->slik", TABLED, table), rtol=1e-12)


def test_diagonal_matrices_and_products_of_low_rank():
    entries, matrix, vector = RNG.normal(size=(SITES, 1)), RNG.normal(size=(SITES, SITES)), RNG.normal(size=(SITES, 2))
    diagonal = of.diagonal_matrix(entries)
    np.testing.assert_array_equal(diagonal, np.diag(entries[:, 0]))
    np.testing.assert_allclose(of.scaled_rows(entries, matrix), diagonal @ matrix)
    np.testing.assert_allclose(of.scaled_columns(matrix, entries), matrix @ diagonal)
    left, right = RNG.normal(size=(2, SITES, 3))
    np.testing.assert_allclose(of.outer(left, right), sum(np.outer(left[:, k], right[:, k]) for k in range(3)))
    np.testing.assert_allclose(of.project(left, right, vector), of.outer(left, right) @ vector)
    joined = of.columns(np, SITES, left, [vector, right])
    np.testing.assert_array_equal(joined, np.hstack([left, vector, right]))
    assert of.columns(np, SITES).shape == (SITES, 0)
