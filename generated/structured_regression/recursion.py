# Written by `derive build structured_regression spectrum=two_groups batch=full hessian=no` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The step that linear training applies over and over, as numbers: its spectral radius decides stability."""

import jax.numpy as jnp

from numerics.runtime.interface import RecursionOf
from numerics.runtime.traits import discrete


def sites(p, nodes):
    """The laws of what differs from site to site: values, and the share of the sites that has each."""
    return (discrete((1, p.kappa), (1 - p.share, p.share)),)


def sizes(p):
    """How many labels each field has, and each of what is drawn."""
    return (1, 1, 1, 1, 1, 1, 1)


def numbers(p, lam):
    """Coefficients at a site: numbers, or columns with one per label."""
    return (-jnp.sqrt(lam), 1, p.mu, -p.mu, p.eta * jnp.sqrt(lam), -p.eta * p.ridge, 1 / p.alpha)


def tables(p):
    """Tables that act on labels."""
    return ()


RECURSION = RecursionOf(
    fields=("h", "u", "Z_u", "delta", "w"),
    sources=("eps", "teacher"),
    sectors=(0, 0, 1, 1, 0, 1, 0),
    traits=(0,),
    parts=(
        (1, 4, 0, 0, 0, -1, 0),
        (3, 2, 1, 0, 0, -1, 0),
        (4, 4, 2, 1, 0, -1, 0),
        (4, 4, 3, 2, 0, -1, 0),
        (4, 0, 4, 1, 0, -1, 0),
        (4, 4, 5, 1, 0, -1, 0),
        (4, 4, 1, 1, 0, -1, 0),
    ),
    memories=((2, 3, 6, 0), (0, 1, 1, 1)),
    covariances=((0, 0, 6, 3, 3), (2, 2, 1, 1, 1)),
    responses=((1, 0), (3, 2)),
    settles=False,
    instant=(),
    white=(),
    observed=(("train_loss", (3,)), ("test_loss", (1,)), ("distance", (4,))),
    stirred=(),
    overlaps=(),
    uses=(),
    renewed=(),
    sites=sites,
    sizes=sizes,
    numbers=numbers,
    tables=tables,
)
