# Written by `derive build structured_regression spectrum=two_groups batch=full hessian=no` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Linear training, with w for a delay by one step: the laws of a site, their stationary limit, and the step that is repeated."""

import jax.numpy as jnp

from numerics.runtime.linear import (
    LimitOf,
    LinearSitesOf,
    LinearTerm,
    MeanProduct,
    MemoryTerm,
    NoiseCovariance,
    RecursionOf,
    SiteField,
)
from numerics.runtime.traits import discrete


def sites(p, nodes):
    """The laws of what differs from site to site: values, and the share of the sites that has each."""
    return (discrete((1, p.kappa), (1 - p.share, p.share)),)


def observing(p, m):
    """The observables from stationary means, each a row with one number per label:
    mean_0 = mean(delta(t)**2)
    mean_1 = mean(u(t)**2)
    mean_2 = mean((teacher - w(t))**2)
    """
    mean_0, mean_1, mean_2 = m
    return (mean_0, p.sigma**2 + mean_1, mean_2)


SITES = LinearSitesOf(
    fields=(
        SiteField("h", "D"),
        SiteField("u", "D"),
        SiteField("Z_u", "P"),
        SiteField("delta", "P"),
        SiteField("w", "D"),
    ),
    sources=(SiteField("eps", "P"), SiteField("teacher", "D")),
    traits=(("lam", "D"),),
    operator=(
        LinearTerm("h", "h", lambda p, lam: 1),
        LinearTerm("u", "u", lambda p, lam: 1),
        LinearTerm("u", "w", lambda p, lam: jnp.sqrt(lam)),
        LinearTerm("Z_u", "Z_u", lambda p, lam: 1),
        LinearTerm("delta", "delta", lambda p, lam: 1),
        LinearTerm("delta", "Z_u", lambda p, lam: -1),
        LinearTerm("w", "w", lambda p, lam: p.eta * p.ridge),
        LinearTerm("w", "w", lambda p, lam: 1 - p.eta * p.ridge, power=1),
        LinearTerm("w", "w", lambda p, lam: -p.mu, delay=1, power=1),
        LinearTerm("w", "h", lambda p, lam: -p.eta * jnp.sqrt(lam), delay=1),
    ),
    memories=(
        MemoryTerm("Z_u", "delta", lambda p, lam: 1 / p.alpha, ("u", "h")),
        MemoryTerm("h", "u", lambda p, lam: 1, ("delta", "Z_u")),
    ),
    covariances=(
        NoiseCovariance("h", "h", lambda p, lam: 1 / p.alpha, ("delta", "delta")),
        NoiseCovariance("Z_u", "Z_u", lambda p, lam: 1, ("u", "u")),
    ),
    settles=False,
    sites=sites,
)
LIMIT = LimitOf(
    **vars(SITES),
    drives=(
        LinearTerm("u", "teacher", lambda p, lam: jnp.sqrt(lam)),
        LinearTerm("delta", "eps", lambda p, lam: p.sigma),
    ),
    variances=(lambda p, lam: 1, lambda p, lam: 1),
    means=(
        (MeanProduct(lambda p, lam: 1, "P", "delta", "delta"),),
        (MeanProduct(lambda p, lam: 1, "D", "u", "u"),),
        (
            MeanProduct(lambda p, lam: 1, "D", "teacher", "teacher"),
            MeanProduct(lambda p, lam: 1, "D", "w", "w"),
            MeanProduct(lambda p, lam: -2, "D", "teacher", "w"),
        ),
    ),
    observables=("train_loss", "test_loss", "distance"),
    forgotten="",
    observing=observing,
)
RECURSION = RecursionOf(
    **vars(SITES),
    observed=(("train_loss", ("delta",)), ("test_loss", ("u",)), ("distance", ("w",))),
    stirred=(),
    overlaps=(),
    renewed=(),
)
