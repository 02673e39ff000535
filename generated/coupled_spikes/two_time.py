# Written by `derive build coupled_spikes` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Two-time functions of all fields: the forward pass again, with sources in all equations."""

from functools import partial

import jax.numpy as jnp

from numerics.runtime.exact import (
    dual,
    finite_times,
    forward,
    kick,
    overlaps,
    part,
    past_sum,
    put,
    site,
    store,
    summed,
    unit,
    units,
)
from numerics.runtime.interface import TwoTimeOf
from numerics.runtime.two_time import Rows, kicked, two_time


def sites(p, times, wanted):
    """The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."""
    # a site of N0: u[xi]; a
    N0 = site(((times, 1),), drawn=((times, 1),), kicks=((kicked(wanted, "phi", times), 1),))
    # a site of N1: u[chi]; b
    N1 = site(((times, 1),), drawn=((times, 1),), kicks=((kicked(wanted, "g", times), 1),))
    return (N0, N1)


def carried(p, times, wanted):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    N0, N1 = sites(p, times, wanted)
    return (
        ((times,), N0.parts),  # phi_past
        ((times,), N1.parts),  # chi_past
        ((times,), N1.parts),  # g_past
        ((times,), N0.parts),  # xi_past
        (N0.extent(0), N0.extent(0)),  # cov_W0T
        (N1.extent(0), N1.extent(0)),  # cov_W0
    )


def step(p, times, wanted, t, state):
    """All fields of one time."""
    N0, N1 = sites(p, times, wanted)
    in_xi, in_a, kick_phi = N0
    in_chi, in_b, kick_g = N1
    when = jnp.arange(times)
    (phi_past, chi_past, g_past, xi_past, cov_W0T, cov_W0) = state
    # phi(t) = a(t) + kappa sum_{s<t} xi(s)
    phi = (p.kappa * summed(xi_past, 1) + unit(in_a, t)) + kick(kick_phi, t)
    phi_past = store(phi_past, phi, t)
    # chi(t) = u[chi](t) + (sigma^2/alpha) sum_{s<t} R[phi,xi](t,s) g(s)
    chi = unit(in_chi, t) + (p.sigma**2 / p.alpha) * (part(phi, in_xi) @ g_past)
    chi_past = store(chi_past, chi, t)
    seen_phi = dual(phi, N0, cov_W0T)
    C_phi_phi = overlaps(seen_phi, phi_past)
    # <u[chi](t) u[chi](s)> = sigma^2 C[phi,phi](t,s)
    cov_W0 = put(cov_W0, in_chi, t, in_chi, None, (p.sigma**2) * C_phi_phi)
    # g(t) = theta b(t) + kappa theta sum_{s<t} chi(s)
    g = (
        p.theta * unit(in_b, t) + past_sum(jnp.where(jnp.less(when, t), p.kappa * p.theta, 0), chi_past, 1)
    ) + kick(kick_g, t)
    g_past = store(g_past, g, t)
    # xi(t) = u[xi](t) + sigma^2 sum_{s<t} R[g,chi](t,s) phi(s)
    xi = unit(in_xi, t) + (p.sigma**2) * (part(g, in_chi) @ phi_past)
    xi_past = store(xi_past, xi, t)
    seen_g = dual(g, N1, cov_W0)
    C_g_g = overlaps(seen_g, g_past)
    # <u[xi](t) u[xi](s)> = (sigma^2/alpha) C[g,g](t,s)
    cov_W0T = put(cov_W0T, in_xi, t, in_xi, None, (p.sigma**2 / p.alpha) * C_g_g)
    return (phi_past, chi_past, g_past, xi_past, cov_W0T, cov_W0)


def results(p, wanted, state):
    """The two-time functions asked for, and the number of times before anything overflowed."""
    times = p.S
    N0, N1 = sites(p, times, wanted)
    in_xi, in_a, kick_phi = N0
    in_chi, in_b, kick_g = N1
    (phi_past, chi_past, g_past, xi_past, cov_W0T, cov_W0) = state
    fields = {
        "phi": Rows(phi_past, 1, kick_phi, 1, N0, (cov_W0T,)),
        "chi": Rows(chi_past, 1, in_chi, 1, N1, (cov_W0,)),
        "g": Rows(g_past, 1, kick_g, 1, N1, (cov_W0,)),
        "xi": Rows(xi_past, 1, in_xi, 1, N0, (cov_W0T,)),
        "a": Rows(units(in_a), 1, in_a, 1, N0, (cov_W0T,)),
        "b": Rows(units(in_b), 1, in_b, 1, N1, (cov_W0,)),
    }
    return two_time(wanted, fields), finite_times(
        times, (phi_past, chi_past, g_past, xi_past), ((N0.channels[0], cov_W0T), (N1.channels[0], cov_W0))
    )


def forward_pass(p, wanted):
    """Two-time functions, wanted as ("C", a, b) and ("R", a, b), each as times of a x labels of a x times
    of b x labels of b, and the number of times before anything overflowed.
    """
    return results(p, wanted, forward(p, p.S, partial(carried, wanted=wanted), step, None, wanted))


TWO_TIME = TwoTimeOf(
    forward_pass,
    {},
)
