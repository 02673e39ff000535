"""Laws of traits as values with weights: integrals, means and quantiles with closed forms."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from numerics.runtime import traits
from numerics.runtime.point import Table
from numerics.runtime.traits import TraitValues

INFINITE = float("inf")
ENDS = {
    "finite": (-1.0, 3.0),
    "positive": (1e-3, 10.0),
    "from zero": (0.0, 2.0),
    "below": (-INFINITE, 2.0),
    "above": (-1.5, INFINITE),
    "everywhere": (-INFINITE, INFINITE),
}
MANY = 4 * traits.MANY


@pytest.mark.parametrize(
    ("name", "even"), [*((name, 0.0) for name in ENDS), *((name, 40.0) for name in list(ENDS)[:3])]
)
def test_values_increase_from_end_to_end_and_their_derivative_is_their_slope(name, even):
    low, high = ENDS[name]
    places = np.linspace(-2.4, 2.4, 25) * (1 if not even else 25)
    step = 1e-5
    values, slopes = traits.stretched(places, low, high, np, even)
    ahead, behind = (traits.stretched(places + d, low, high, np, even)[0] for d in (step, -step))
    assert np.all(np.diff(values) > 0) and np.all((low <= values) & (values <= high))
    np.testing.assert_allclose((ahead - behind) / (2 * step), slopes, rtol=2e-5, atol=1e-9)
    if math.isfinite(high - low):
        np.testing.assert_allclose(values[[0, -1]], [low, high], atol=0.02 * (high - low))


INTEGRALS = {
    "constant": (lambda x: 1 + 0 * x, -1.0, 3.0, 4.0),
    "power that diverges at zero": (lambda x: x**-0.5, 0.0, 4.0, 4.0),
    "power over decades": (lambda x: x**-1.5, 1e-4, 1.0, 2 * (100 - 1)),
    "half circle": (lambda x: np.sqrt(np.maximum(4 - x * x, 0)), -2.0, 2.0, 2 * np.pi),
    "exponential": (lambda x: np.exp(-2 * x), 0.0, INFINITE, 0.5),
    "exponential from below": (np.exp, -INFINITE, 1.0, np.e),
    "bell": (lambda x: np.exp(-(x**2) / 2), -INFINITE, INFINITE, math.sqrt(2 * np.pi)),
    "heavy tail": (lambda x: x**-3.0, 2.0, INFINITE, 1 / 8),
}


@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals_of_densities_with_closed_forms(name):
    function, low, high, exact = INTEGRALS[name]
    assert traits.integral(function, low, high) == pytest.approx(exact, rel=1e-8)
    for nodes, evenly in ((128, False), (128, True), (MANY, True)):
        places, values, shares = traits.rule(function, low, high, nodes, np, evenly)
        assert len(places) == len(values) == len(shares) == nodes and np.allclose(
            np.diff(places), places[1] - places[0]
        )
        assert np.sum(shares) == pytest.approx(exact, rel=1e-6)
        assert np.all((low <= values) & (values <= high)) and np.all(shares >= 0)


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda x: 1 / x, 0.0, 1.0),
        (lambda x: 1 + 0 * x, 0.0, INFINITE),
        (lambda x: x, -1.0, 2.0),
        (lambda x: x / (x - 3), 0.0, 1.0),
    ],
)
def test_a_density_that_diverges_or_is_negative_has_no_integral(function, low, high):
    assert math.isnan(traits.integral(function, low, high))


def test_a_density_with_a_jump_is_told_apart_from_a_smooth_one():
    with pytest.raises(traits.NotSmooth):
        traits.integral(lambda x: np.where(x < 0.3, 1.0, 2.0), 0.0, 1.0)


@pytest.mark.parametrize("power", [0.5, 0.8, 1.1, 2.0])
def test_a_mean_over_a_heavy_tail_exists_below_its_power(power):
    """Over the density x^-2 from one to infinity the mean of x^p is 1 / (1 - p) for p < 1."""
    found = traits.mean_size(lambda x: -(x**power), lambda x: x**-2.0, 1.0, INFINITE)
    expected = 1 / (1 - power) if power < 1 else INFINITE
    assert found == pytest.approx(expected, rel=1e-2)


LAWS = {
    "uniform": (lambda x: 1 + 0 * x, -1.0, 3.0, scipy.stats.uniform(-1, 4)),
    "exponential": (lambda x: 7 * np.exp(-x / 2), 0.0, INFINITE, scipy.stats.expon(scale=2)),
    "bell": (lambda x: np.exp(-((x - 1) ** 2) / 8), -INFINITE, INFINITE, scipy.stats.norm(1, 2)),
    "powers": (lambda x: x**-2.0, 0.5, 8.0, scipy.stats.truncpareto(1, 16, scale=0.5)),
    "power": (lambda x: x**-0.5, 0.0, 4.0, scipy.stats.powerlaw(0.5, scale=4)),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("nodes", [192, MANY])
def test_a_density_has_its_moments(name, nodes):
    function, low, high, known = LAWS[name]
    with np.errstate(all="ignore"):
        law = traits.density(function, low, high, nodes, np)
    assert np.sum(law.weights) == pytest.approx(1.0, rel=1e-14) and np.all(np.isfinite(law.values))
    for order in (1, 2, 3):
        assert law.weights @ law.values**order == pytest.approx(known.moment(order), rel=1e-6)
    split = traits.density_between(function, low, high, nodes, (0.7, 2.5), np)
    bent = known.mean() - 0.7 + 2 * scipy.integrate.quad(known.cdf, low, 0.7)[0]
    assert split.weights @ split.values == pytest.approx(known.mean(), rel=1e-6)
    assert split.weights @ np.abs(split.values - 0.7) == pytest.approx(bent, rel=1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_sites_have_quantiles_of_their_density(name):
    """The site with standard normal z has the value below which the fraction Phi(z) of the sites lies."""
    function, low, high, known = LAWS[name]
    z = np.linspace(-2.5, 2.5, 11)
    with jax.enable_x64():
        normals = jnp.stack([jnp.zeros(z.size), jnp.asarray(z)], axis=1)
        function = {"exponential": lambda x: jnp.exp(-x / 2), "bell": lambda x: jnp.exp(-((x - 1) ** 2) / 8)}.get(
            name, function
        )
        found = traits.of_density(normals, 1, function, low, high)
    assert found.shape == (z.size, 1)
    np.testing.assert_allclose(found[:, 0], known.ppf(scipy.special.ndtr(z)), rtol=2e-4, atol=2e-5)


def test_each_value_has_its_share_of_the_sites():
    z = scipy.special.ndtri((np.arange(1000) + 0.5) / 1000)
    normals = jnp.stack([jnp.asarray(z), jnp.zeros(z.size)], axis=1)
    values, shares = (5.0, -1.0, 2.0), (0.25, 0.65, 0.1)
    found = np.asarray(traits.of_values(normals, 0, values, shares))
    assert found.shape == (1000, 1)
    for value, share in zip(values, shares, strict=True):
        assert abs(np.mean(found == value) - share) <= 1.5e-3
    equal = np.asarray(traits.of_values(normals, 0, np.array([1.0, 2.0]), None))
    assert np.mean(equal == 1.0) == pytest.approx(0.5, abs=2e-3)


@pytest.mark.parametrize("halves", [False, True])
def test_standard_normals_have_their_moments(halves):
    law = traits.standard_normal(256, halves, np)
    for power, moment in ((0, 1), (1, 0), (2, 1), (4, 3), (6, 15)):
        assert law.weights @ law.values**power == pytest.approx(moment, abs=1e-10)
    if halves:
        assert law.weights @ np.abs(law.values) == pytest.approx(math.sqrt(2 / np.pi), rel=1e-10)
    at = traits.normal_between(300, (0.5, -1.0), np)
    beyond = scipy.stats.norm.pdf(0.5) - 0.5 * scipy.stats.norm.sf(0.5)
    assert at.weights @ np.maximum(at.values - 0.5, 0) == pytest.approx(beyond, rel=1e-9)
    assert at.weights @ (at.values < -1) == pytest.approx(scipy.stats.norm.cdf(-1), rel=1e-9)


def two_laws():
    return (
        TraitValues(np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.2, 0.3])),
        TraitValues(np.array([4.0, 7.0]), np.array([0.25, 0.75])),
    )


def test_means_over_independent_traits_are_sums_over_pairs():
    """Of z s r^2 / (u + s), and of s^2 alone, which depends on no z."""
    one, two = two_laws()
    z, r = np.array([0.5, 2.0, -1.0]), np.array([1.0, 3.0, 2.0])
    pairs = [(s, u, p * q) for s, p in zip(*one, strict=True) for u, q in zip(*two, strict=True)]
    expected = sum(w * z * s * r**2 / (u + s) for s, u, w in pairs)
    average = traits.site_average(lambda s, u: ((1, (("z r r", s),)), (-1, (("1", u), ("1", s)))), one, two)
    np.testing.assert_allclose(average.at({"z": z, "r": r}), expected, rtol=1e-14)
    np.testing.assert_allclose(
        traits.over_sites(z, lambda s, u: z * s * r**2 / (u + s), one, two), expected, rtol=1e-14
    )
    alone = traits.over_sites(z, lambda s, u: s**2 + 0 * u, one, two)
    assert alone.shape == z.shape and np.allclose(alone, sum(w * s**2 for s, _, w in pairs))


def test_a_sampled_law_weighs_a_table_by_its_values():
    """Rows are two entries and a weight each."""
    table = Table(np.array([[1.0, 10.0, 0.25], [2.0, 20.0, 0.75]]))
    law = traits.sampled_law(table)
    assert np.allclose(law.values, [[1, 10], [2, 20]]) and np.allclose(law.weights, [0.25, 0.75])
    matrices = np.arange(8.0).reshape(2, 2, 2)
    found = traits.weighed(lambda a, b: np.array([0.25, 0.75]) * a * b, law, matrices)
    np.testing.assert_allclose(found, 2.5 * matrices[0] + 30 * matrices[1], rtol=1e-6)


def test_the_largest_modulus_over_values_that_occur():
    one, two = two_laws()
    assert traits.extent(lambda s, u: s * u, one, two) == 14.0
    assert traits.extent(lambda s: s - 1, TraitValues(np.array([0.0, -9.0]), np.array([1.0, 0.0]))) == 1.0
    assert math.isnan(traits.extent(lambda s: 1 / (s - 2), one))


@pytest.mark.parametrize("missing", [(), (1,), (0, 3)])
def test_a_covariance_is_the_product_of_its_factor_and_a_direction_without_variance_is_zero(missing):
    """Row k of a singular one is a combination of those before it."""
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(4, 4))
    for k in missing:
        roots[k] = rng.normal(size=k) @ roots[:k]
    covariance = roots @ roots.T
    lower, inverse = traits.triangular([row[: k + 1] for k, row in enumerate(covariance)])
    np.testing.assert_allclose(lower @ lower.T, covariance, atol=1e-12)
    np.testing.assert_allclose(np.tril(lower), lower)
    present = np.diag([0.0 if k in missing else 1.0 for k in range(4)])
    np.testing.assert_allclose(inverse @ lower, present, atol=1e-10)


# -- coefficients of updated weights


def test_coefficients_are_those_of_the_recursion_by_hand():
    """k(t + 1) = A(t) k(t) + f(t), and the same for each earlier update from the time at which it is added."""
    from numerics.runtime import coefficients as of

    rng = np.random.default_rng(0)
    count = 4
    entries = [[0.5, rng.normal(size=count)], [rng.normal(size=count), -0.25]]
    start, forcing = [[1.5], [rng.normal(size=count)]], [[rng.normal(size=count)], [0.5]]
    with jax.enable_x64():
        matrix, begin, force = (of.over_time(rows, count) for rows in (entries, start, forcing))
        initial = np.asarray(of.initial_coefficients(matrix, begin, force))
        history = np.asarray(of.history_coefficients(matrix, begin, force))
    at = lambda rows, t: np.array([[np.broadcast_to(e, (count,))[t] for e in row] for row in rows])  # noqa: E731
    now = at(start, 0)[:, 0]
    for t in range(count):
        np.testing.assert_allclose(initial[t], now, rtol=1e-14)
        now = at(entries, t) @ now + at(forcing, t)[:, 0]
    for s in range(count):
        now = at(start, s)[:, 0]
        assert not np.any(history[: s + 1, :, s])
        for t in range(s + 1, count):
            np.testing.assert_allclose(history[t, :, s], now, rtol=1e-14)
            now = at(entries, t) @ now
    assert of.coefficient(initial, 2, 1) == initial[2, 1] and of.coefficient(initial, -1, 0) == initial[0, 0]
    np.testing.assert_array_equal(of.coefficients(history, 3, 1, 2), history[3, 1, :2])
    table = np.arange(3.0)[:, None]
    assert of.by_time(table).shape == (3,) and of.taken_at(table, 2) == 2 and of.taken_at(table, -1) == 0


@pytest.mark.parametrize(("low", "high"), [(-INFINITE, INFINITE), (0.0, INFINITE), (-INFINITE, 1.0)])
def test_nodes_without_weight_have_values_that_occur(low, high):
    """Functions that grow fast would overflow at nodes far out in a tail, where infinity times zero is no number."""
    with np.errstate(all="ignore"):
        law = traits.density(lambda x: np.exp(-(x**2) / 2), low, high, MANY, np)
    assert np.any(law.weights == 0) and np.max(np.abs(law.values)) < 45
    with np.errstate(over="raise"):
        half = law.weights @ np.exp(law.values**2 / 4)
    even = scipy.integrate.quad(lambda x: np.exp(-(x**2) / 4), max(low, -50), min(high, 50))[0]
    norm = scipy.integrate.quad(lambda x: np.exp(-(x**2) / 2), max(low, -50), min(high, 50))[0]
    assert half == pytest.approx(even / norm, rel=1e-9)
