"""Averages over sites by the value of their diagonal entries: sums over nodes are sums over sites."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numerics.runtime import diagonals
from numerics.runtime.traits import TraitValues

RNG = np.random.default_rng(5)
ONE = (np.tanh(RNG.normal(size=400)),)
TWO = (np.tanh(RNG.normal(size=300)), RNG.uniform(-2, 3, size=300))


@pytest.fixture(autouse=True)
def in_double_precision():
    with jax.enable_x64():
        yield


def reach(entries):
    """The range of entries, with room for a few point masses."""
    ends = np.stack([[float(np.min(x)) for x in entries], [float(np.max(x)) for x in entries]])
    return np.concatenate([ends, np.full((3, len(entries)), np.nan)])


@jax.jit
def measured(entries, range_):
    """Shares in cells, the law of the entries, weights of sites at nodes, and of nodes by cubic interpolation."""
    shares = diagonals.shares_of(entries, range_)
    law, weights = diagonals.law_of_sites(shares, range_), diagonals.belonging(entries, range_)
    return law, weights, diagonals.shares_by_cubics(shares, range_)


@pytest.mark.parametrize("entries", [ONE, TWO], ids=["one", "two"])
def test_a_mean_over_sites_is_a_sum_over_nodes(entries):
    """Up to cubic polynomials exactly, of smooth functions to four digits, with positive weights to a percent."""
    law, weights, by_cubics = map(np.asarray, measured(entries, reach(entries)))
    places, shares = law[:, :-1], law[:, -1]
    assert np.all(shares >= 0) and np.sum(shares) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(np.sum(weights, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(by_cubics, np.mean(weights, axis=0), atol=1e-13)
    functions = {
        1e-12: lambda x: 2 - x[0] ** 3 + (x[0] - 5) * x[-1] ** 2,
        1e-4: lambda x: np.exp(-x[0]) * np.cos(x[-1]),
    }
    for digits, function in functions.items():
        at_sites, at_nodes = function(entries), function(list(places.T))
        np.testing.assert_allclose(weights @ at_nodes, at_sites, atol=30 * digits)
        assert by_cubics @ at_nodes == pytest.approx(np.mean(at_sites), abs=digits)
        assert shares @ at_nodes == pytest.approx(np.mean(at_sites), abs=1e-2 * np.max(np.abs(at_sites)))


def test_values_that_many_sites_have_are_nodes_of_their_own():
    entries = (np.concatenate([np.full(100, 0.25), np.linspace(-1, 1, 300)]),)
    reach_of = jax.jit(diagonals.reach_of)
    found = np.asarray(reach_of(entries))
    often = found[4, 0]
    assert often == 1 and found[5, 0] == 0.25 and np.all(np.isnan(found[6:, 0]))
    wide = diagonals.widened(found)
    assert wide[0, 0] == pytest.approx(-1 - 0.25 * 2) and wide[1, 0] == pytest.approx(1 + 0.25 * 2)
    law = np.asarray(measured(entries, wide)[0])
    assert np.sum(law[law[:, 0] == 0.25, 1]) == pytest.approx(0.25, abs=3e-3)
    crowded = np.concatenate([np.full(50, -1.0), np.linspace(-1, 1, 300), np.full(50, 1.0)])
    wide = diagonals.widened(np.asarray(reach_of((crowded,))))
    assert (wide[0, 0], wide[1, 0]) == (-1.0, 1.0)
    many = np.repeat(np.linspace(0, 1, 40), 10)
    with pytest.raises(ValueError, match="40 different"):
        diagonals.widened(np.asarray(reach_of((many,))))


def groups():
    return diagonals.grouped(
        TraitValues(jnp.array([1.0, 2.0]), jnp.array([0.25, 0.75])),
        TraitValues(jnp.array([-1.0, 0.0, 5.0]), jnp.array([0.5, 0.2, 0.3])),
    )


def entries_of(s, u):
    return s * u, s + u**2


def test_groups_of_independent_traits_have_products_of_weights():
    law = groups()
    expected = {(s, u): p * q for s, p in ((1, 0.25), (2, 0.75)) for u, q in ((-1, 0.5), (0, 0.2), (5, 0.3))}
    assert {tuple(map(float, v)): float(w) for v, w in zip(*law, strict=True)} == pytest.approx(expected)
    assert np.array_equal(diagonals.shares_known(law), law.weights)
    table = np.asarray(diagonals.law_of_known(law, entries_of))
    assert {(a, b): w for a, b, w in table} == pytest.approx({entries_of(s, u): w for (s, u), w in expected.items()})
    np.testing.assert_array_equal(diagonals.reach_known(law, entries_of), [[-2, 1], [10, 27]])


def test_sites_belong_to_the_group_of_their_traits():
    law, values = groups(), (np.array([2.0, 1.0, 1.0, 1.0]), np.array([5.0, -1.0, -1.0, 0.0]))
    weights = np.asarray(diagonals.belonging_to(law, *values))
    at = {tuple(map(float, v)): k for k, v in enumerate(law.values)}
    expected = np.zeros((4, 6))
    for site, key in enumerate(zip(*values, strict=True)):
        expected[site, at[key]] = 1
    np.testing.assert_array_equal(weights, expected)
    equal = diagonals.grouped(TraitValues(jnp.array([3.0, 3.0]), jnp.array([0.5, 0.5])))
    np.testing.assert_array_equal(diagonals.belonging_to(equal, np.array([3.0, 3.0])), np.full((2, 2), 0.5))
    np.testing.assert_array_equal(diagonals.shares_seen(weights), expected.mean(axis=0))


def test_averages_by_group_have_the_declared_weights():
    """Sampled fractions of sites are replaced by declared ones; of a group without sites nothing is known."""
    law = groups()
    shares = np.array([0.5, 0.25, 0.25, 0.0, 0.0, 0.0])
    seen = shares[:, None, None] * np.arange(6.0)[:, None, None] * np.ones((6, 2, 3))
    found = np.asarray(diagonals.as_shared(seen, shares, law))
    np.testing.assert_allclose(found[:, 0, 0], np.asarray(law.weights) * np.arange(6) * (shares > 0))


def test_products_of_columns_by_node():
    rng = np.random.default_rng(1)
    weights, left, right = rng.random((50, 4)), rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    found = diagonals.by_value(jnp.asarray(weights), jnp.asarray(left), jnp.asarray(right))
    np.testing.assert_allclose(found, np.einsum("sn,sa,sb->nab", weights, left, right) / 50, rtol=1e-12)
    past = np.arange(24.0).reshape(6, 4)
    np.testing.assert_array_equal(diagonals.rows_at(past, 2, 2), past[4:6])
    assert np.isnan(diagonals.no_reach(2)[2:]).all() and not diagonals.no_reach(2)[:2].any()
