# Written by `derive build coupled_spikes` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level, exactly: all laws are linear, so all fields are Gaussian and one pass is enough."""

import jax.numpy as jnp

from numerics.runtime.exact import (
    dual,
    finite_times,
    first,
    forward,
    mean_of_labels,
    overlaps,
    part,
    part_before,
    past_sum,
    products_by_time,
    put,
    series,
    site,
    store,
    summed,
    unit,
)
from numerics.runtime.interface import ExactTraining


def sites(p, times):
    """The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."""
    # a site of N0: u[xi]; a
    N0 = site(((times, 1),), drawn=((times, 1),))
    # a site of N1: u[chi]; b
    N1 = site(((times, 1),), drawn=((times, 1),))
    return (N0, N1)


def carried(p, times):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    N0, N1 = sites(p, times)
    return (
        ((times,), N0.parts),  # phi_past
        ((times,), N1.parts),  # chi_past
        ((times,), N1.parts),  # g_past
        ((times,), N0.parts),  # xi_past
        (N0.extent(0), N0.extent(0)),  # cov_W0T
        (N1.extent(0), N1.extent(0)),  # cov_W0
    )


def step(p, times, t, state):
    """All fields of one time."""
    N0, N1 = sites(p, times)
    in_xi, in_a = N0
    in_chi, in_b = N1
    when = jnp.arange(times)
    (phi_past, chi_past, g_past, xi_past, cov_W0T, cov_W0) = state
    # phi(t) = a(t) + kappa sum_{s<t} xi(s)
    phi = p.kappa * summed(xi_past, 1) + unit(in_a, t)
    phi_past = store(phi_past, phi, t)
    # chi(t) = u[chi](t) + (sigma^2/alpha) sum_{s<t} R[phi,xi](t,s) g(s)
    chi = unit(in_chi, t) + (p.sigma**2 / p.alpha) * (part(phi, in_xi) @ g_past)
    chi_past = store(chi_past, chi, t)
    seen_phi = dual(phi, N0, cov_W0T)
    C_phi_phi = overlaps(seen_phi, phi_past)
    # <u[chi](t) u[chi](s)> = sigma^2 C[phi,phi](t,s)
    cov_W0 = put(cov_W0, in_chi, t, in_chi, None, (p.sigma**2) * C_phi_phi)
    # g(t) = theta b(t) + kappa theta sum_{s<t} chi(s)
    g = p.theta * unit(in_b, t) + past_sum(jnp.where(jnp.less(when, t), p.kappa * p.theta, 0), chi_past, 1)
    g_past = store(g_past, g, t)
    # xi(t) = u[xi](t) + sigma^2 sum_{s<t} R[g,chi](t,s) phi(s)
    xi = unit(in_xi, t) + (p.sigma**2) * (part(g, in_chi) @ phi_past)
    xi_past = store(xi_past, xi, t)
    seen_g = dual(g, N1, cov_W0)
    C_g_g = overlaps(seen_g, g_past)
    # <u[xi](t) u[xi](s)> = (sigma^2/alpha) C[g,g](t,s)
    cov_W0T = put(cov_W0T, in_xi, t, in_xi, None, (p.sigma**2 / p.alpha) * C_g_g)
    return (phi_past, chi_past, g_past, xi_past, cov_W0T, cov_W0)


def results(p, state):
    """Order parameters before the last update, observables at all times, times before anything overflowed."""
    times = p.S
    N0, N1 = sites(p, times)
    in_xi, _ = N0
    in_chi, _ = N1
    (phi_past, chi_past, g_past, xi_past, cov_W0T, cov_W0) = state
    order = {
        ("C", "g", "g"): dual(first(g_past, p.S), N1, cov_W0) @ first(g_past, p.S).T,
        ("C", "phi", "phi"): dual(first(phi_past, p.S), N0, cov_W0T) @ first(phi_past, p.S).T,
        ("R", "g", "chi"): part_before(first(g_past, p.S), in_chi, p.S),
        ("R", "phi", "xi"): part_before(first(phi_past, p.S), in_xi, p.S),
    }
    observables = {
        # phi_norm = <phi(t)^2>
        "phi_norm": series(mean_of_labels(products_by_time(dual(phi_past, N0, cov_W0T), 1, phi_past, 1))),
        # g_norm = <g(t)^2>
        "g_norm": series(mean_of_labels(products_by_time(dual(g_past, N1, cov_W0), 1, g_past, 1))),
        # alignment = <chi(t) g(t)>
        "alignment": series(mean_of_labels(products_by_time(dual(g_past, N1, cov_W0), 1, chi_past, 1))),
    }
    return (
        order,
        observables,
        finite_times(
            times,
            (phi_past, chi_past, g_past, xi_past),
            ((N0.channels[0], cov_W0T), (N1.channels[0], cov_W0)),
        ),
    )


def forward_pass(p):
    """Order parameters before the last update, observables at all times, and the number of times before
    anything overflowed. Whole-number parameters fix shapes.
    """
    return results(p, forward(p, p.S, carried, step, None))


def strides(p):
    """Entries per time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        ("C", "g", "g"): (1, 1),
        ("C", "phi", "phi"): (1, 1),
        ("R", "g", "chi"): (1, 1),
        ("R", "phi", "xi"): (1, 1),
    }


TRAINING = ExactTraining(forward_pass, strides)
