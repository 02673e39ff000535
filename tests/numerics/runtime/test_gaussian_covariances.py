"""Means, mean slopes and covariances of laws of Gaussian arguments against closed forms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from numerics.runtime.gaussian import SMOOTH, GaussianFunction, average, facts, residuals
from numerics.support.precision import in_float64

NODES = 64
MEANS, SPREADS = np.array([0.3, -0.8, 0.0]), np.array([1.3, 0.6, 0.0])
"""The last argument has no variance."""
CROSS = 0.55
"""Correlation of arguments of both laws."""


def wave(rate: float) -> GaussianFunction:
    return GaussianFunction(
        lambda x, shift: jnp.sin(rate * x + shift),
        lambda x, shift: (rate * jnp.cos(rate * x + shift),),
        None,
        (SMOOTH,),
    )


def growth(rate: float) -> GaussianFunction:
    return GaussianFunction(
        lambda x, shift: jnp.exp(rate * x + shift),
        lambda x, shift: (rate * jnp.exp(rate * x + shift),),
        None,
        (SMOOTH,),
    )


def mean_of(kind: str, rate: complex, mean, variance, shift):
    """Return <exp(k x + s)>, of which a sine is the imaginary part."""
    k = 1j * rate if kind == "wave" else rate
    s = 1j * shift if kind == "wave" else shift
    whole = np.exp(k * mean + k**2 * variance / 2 + s)
    return whole.imag if kind == "wave" else whole


LAWS = {"wave": wave, "growth": growth}


@pytest.mark.parametrize("kind", LAWS)
@in_float64
def test_means_and_slopes_are_those_of_moment_generating_functions(kind):
    law, rate, shifts = LAWS[kind](0.7), 0.7, np.array([[0.2], [-0.4], [1.0]])
    grams, at = (jnp.asarray(SPREADS**2 + MEANS**2)[:, None],), (jnp.asarray(MEANS)[:, None],)
    known = mean_of(kind, rate, MEANS, SPREADS**2, shifts[:, 0])
    found = average(NODES, law, grams, at, jnp.asarray(shifts))
    np.testing.assert_allclose(found[:, 0], known, rtol=1e-12)
    record = facts(NODES, law, grams, at, jnp.asarray(shifts), jnp.asarray(True))
    quarter = np.pi / 2 if kind == "wave" else 0.0
    slopes = rate * mean_of(kind, rate, MEANS, SPREADS**2, shifts[:, 0] + quarter)
    np.testing.assert_allclose(record[:, 1:3], np.stack([known, slopes], axis=1), rtol=1e-12)


@pytest.mark.parametrize("second", LAWS)
@pytest.mark.parametrize("first", LAWS)
@in_float64
def test_covariances_of_what_is_not_linear_in_the_arguments(first, second):
    """<f(x) g(y)> - <f><g> - <f'><g'> <x y>_c of exponentials of real and imaginary rates, for each pair of labels."""
    rates, shifts = (0.7, 0.9), (np.array([[0.2], [-0.4], [1.0]]), np.array([[0.5], [0.0], [0.3]]))
    laws = LAWS[first](rates[0]), LAWS[second](rates[1])
    at = jnp.asarray(MEANS)[:, None]
    grams = jnp.asarray(SPREADS**2 + MEANS**2)[:, None]
    records = [
        facts(NODES, law, (grams,), (at,), jnp.asarray(s), jnp.asarray(True))
        for law, s in zip(laws, shifts, strict=True)
    ]
    covariance = CROSS * np.outer(SPREADS, SPREADS)
    cross = jnp.asarray(covariance + np.outer(MEANS, MEANS))
    found = residuals(NODES, laws[0], records[0], laws[1], records[1], (cross,))

    def pair(sign: float, kinds: tuple[str, str]) -> np.ndarray:
        """Return <exp(p x + s) exp(+-(q y + r))>."""
        p, q = ((1j if kind == "wave" else 1) * rate for kind, rate in zip(kinds, rates, strict=True))
        s, r = ((1j if kind == "wave" else 1) * x[:, 0] for kind, x in zip(kinds, shifts, strict=True))
        variance = p**2 * SPREADS[:, None] ** 2 + q**2 * SPREADS**2 + 2 * sign * p * q * covariance
        return np.exp(p * MEANS[:, None] + s[:, None] + sign * (q * MEANS + r) + variance / 2)

    kinds = first, second
    if kinds == ("wave", "wave"):
        whole = (pair(-1, kinds) - pair(1, kinds)).real / 2
    else:
        whole = pair(1, kinds).imag if "wave" in kinds else pair(1, kinds).real
    (f, df), (g, dg) = (np.asarray(record[:, 1:3]).T for record in records)
    known = whole - np.outer(f, g) - np.outer(df, dg) * covariance
    np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12)


@in_float64
def test_a_law_that_does_not_apply_has_no_record():
    law = wave(1.0)
    grams, at = (jnp.ones((2, 1)),), (jnp.zeros((2, 1)),)
    assert not np.any(facts(NODES, law, grams, at, jnp.ones((2, 1)), jnp.asarray(False))[:, 0])
    assert np.all(facts(NODES, law, grams, at, jnp.ones((2, 1)), jnp.asarray(True))[:, 0] == 1)
