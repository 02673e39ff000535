# Written by `derive build structured_regression spectrum=two_groups batch=full hessian=no` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Where training comes to rest: order parameters in z, whose last values are those at z = 0."""

import jax.numpy as jnp

from numerics.runtime.interface import LimitOf
from numerics.runtime.traits import discrete, over_sites


def sites(p, nodes):
    """The laws of what differs from site to site: values, and the share of the sites that has each."""
    return (discrete((1, p.kappa), (1 - p.share, p.share)),)


def equations(p, z, r, laws):
    """Each is zero at the responses r at z, which are what is answered at once as z grows:
    0 = R_u_h - eta (-z - 1) <lam/(eta ridge z + eta ridge + eta R_delta_Z_u z lam + eta R_delta_Z_u lam - mu z + z^2 + z)>
    0 = alpha/(R_u_h - alpha) + R_delta_Z_u
    """
    R_u_h, R_delta_Z_u = r
    (law_lam,) = laws
    return (
        -p.eta
        * over_sites(
            z,
            lambda lam: (
                lam
                / (
                    p.eta * p.ridge * z
                    + p.eta * p.ridge
                    - p.mu * z
                    + lam * (p.eta * R_delta_Z_u * z + p.eta * R_delta_Z_u)
                    + z**2
                    + z
                )
            ),
            law_lam,
        )
        * (-z - 1)
        + R_u_h,
        p.alpha / (-p.alpha + R_u_h) + R_delta_Z_u,
    )


def correlating(p, z, r, c, laws):
    """Each is linear in the correlations c and zero at them:
    0 = C_u_u - (eta ridge z + eta ridge - mu z + z^2 + z)^2 <lam/(eta ridge z + eta ridge + eta R_delta_Z_u z lam + eta R_delta_Z_u lam - mu z + z^2 + z)^2> - (eta^2 C_delta_delta (-z - 1)^2/alpha) <lam^2/(eta ridge z + eta ridge + eta R_delta_Z_u z lam + eta R_delta_Z_u lam - mu z + z^2 + z)^2>
    0 = C_delta_delta - alpha^2 sigma^2/(R_u_h - alpha)^2 - alpha^2 C_u_u/(R_u_h - alpha)^2
    """
    R_u_h, R_delta_Z_u = r
    C_u_u, C_delta_delta = c
    (law_lam,) = laws
    return (
        C_u_u
        - over_sites(
            z,
            lambda lam: (
                lam
                / (
                    p.eta * p.ridge * z
                    + p.eta * p.ridge
                    - p.mu * z
                    + lam * (p.eta * R_delta_Z_u * z + p.eta * R_delta_Z_u)
                    + z**2
                    + z
                )
                ** 2
            ),
            law_lam,
        )
        * (p.eta * p.ridge * z + p.eta * p.ridge - p.mu * z + z**2 + z) ** 2
        - p.eta**2
        * C_delta_delta
        * over_sites(
            z,
            lambda lam: (
                lam**2
                / (
                    p.eta * p.ridge * z
                    + p.eta * p.ridge
                    - p.mu * z
                    + lam * (p.eta * R_delta_Z_u * z + p.eta * R_delta_Z_u)
                    + z**2
                    + z
                )
                ** 2
            ),
            law_lam,
        )
        * (-z - 1) ** 2
        / p.alpha,
        -(p.alpha**2) * p.sigma**2 / (-p.alpha + R_u_h) ** 2
        - p.alpha**2 * C_u_u / (-p.alpha + R_u_h) ** 2
        + C_delta_delta,
    )


def means(p, z, r, c, laws):
    """The transform, with both times at the same z, of:
    <delta(t)^2>
    <u(t)^2>
    <(teacher - w(t))^2>
    """
    R_u_h, R_delta_Z_u = r
    C_u_u, C_delta_delta = c
    (law_lam,) = laws
    return (
        p.alpha**2 * p.sigma**2 / (-p.alpha + R_u_h) ** 2 + p.alpha**2 * C_u_u / (-p.alpha + R_u_h) ** 2,
        over_sites(
            z,
            lambda lam: (
                lam
                / (
                    p.eta * p.ridge * z
                    + p.eta * p.ridge
                    - p.mu * z
                    + lam * (p.eta * R_delta_Z_u * z + p.eta * R_delta_Z_u)
                    + z**2
                    + z
                )
                ** 2
            ),
            law_lam,
        )
        * (p.eta * p.ridge * z + p.eta * p.ridge - p.mu * z + z**2 + z) ** 2
        + p.eta**2
        * C_delta_delta
        * over_sites(
            z,
            lambda lam: (
                lam**2
                / (
                    p.eta * p.ridge * z
                    + p.eta * p.ridge
                    - p.mu * z
                    + lam * (p.eta * R_delta_Z_u * z + p.eta * R_delta_Z_u)
                    + z**2
                    + z
                )
                ** 2
            ),
            law_lam,
        )
        * (-z - 1) ** 2
        / p.alpha,
        p.eta**2
        * R_delta_Z_u**2
        * over_sites(
            z,
            lambda lam: (
                lam**2
                / (
                    p.eta * p.ridge * z
                    + p.eta * p.ridge
                    - p.mu * z
                    + lam * (p.eta * R_delta_Z_u * z + p.eta * R_delta_Z_u)
                    + z**2
                    + z
                )
                ** 2
            ),
            law_lam,
        )
        * (z + 1) ** 2
        - 2
        * p.eta
        * R_delta_Z_u
        * over_sites(
            z,
            lambda lam: (
                lam
                / (
                    p.eta * p.ridge * z
                    + p.eta * p.ridge
                    - p.mu * z
                    + lam * (p.eta * R_delta_Z_u * z + p.eta * R_delta_Z_u)
                    + z**2
                    + z
                )
            ),
            law_lam,
        )
        * (z + 1)
        + 1
        + p.eta**2
        * C_delta_delta
        * over_sites(
            z,
            lambda lam: (
                lam
                / (
                    p.eta * p.ridge * z
                    + p.eta * p.ridge
                    - p.mu * z
                    + lam * (p.eta * R_delta_Z_u * z + p.eta * R_delta_Z_u)
                    + z**2
                    + z
                )
                ** 2
            ),
            law_lam,
        )
        * (z + 1) ** 2
        / p.alpha,
    )


def observing(p, m):
    """The observables from the means at rest:
    train_loss = mean_0
    test_loss = sigma^2 + mean_1
    distance = mean_2
    """
    mean_0, mean_1, mean_2 = m
    return (mean_0, p.sigma**2 + mean_1, mean_2)


LIMIT = LimitOf(
    responses=("R_u_h", "R_delta_Z_u"),
    correlations=("C_u_u", "C_delta_delta"),
    observables=("train_loss", "test_loss", "distance"),
    sites=sites,
    equations=equations,
    correlating=correlating,
    means=means,
    observing=observing,
    settles=False,
    forgotten="",
)
