# Written by `derive build structured_regression spectrum=two_groups batch=full hessian=no` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Two-time functions of all fields: the forward pass again, with sources in all equations."""

from functools import partial

import jax.numpy as jnp

from numerics.runtime.exact import (
    dual,
    earlier,
    finite_times,
    forward,
    kick,
    overlaps,
    part,
    put,
    site,
    store,
    stored,
    unit,
    units,
)
from numerics.runtime.interface import TwoTimeOf
from numerics.runtime.traits import discrete
from numerics.runtime.two_time import Rows, kicked, two_time


def sites(p, times, wanted):
    """The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."""
    # a site of D: u[h]; teacher
    law_lam = discrete((1, p.kappa), (1 - p.share, p.share))
    D = site(
        ((times, 1),),
        drawn=((1, 1),),
        kicks=((kicked(wanted, "w", times), 1), (kicked(wanted, "u", times), 1)),
        traits=(law_lam,),
    )
    # a site of P: u[Z_u]; eps
    P = site(((times, 1),), drawn=((1, 1),), kicks=((kicked(wanted, "delta", times), 1),))
    return (D, P)


def carried(p, times, wanted):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    D, P = sites(p, times, wanted)
    return (
        ((times,), D.parts),  # w_past
        ((times,), D.parts),  # u_past
        ((times,), P.parts),  # Z_u_past
        ((times,), P.parts),  # delta_past
        ((times,), D.parts),  # h_past
        (D.extent(0), D.extent(0)),  # cov_ZT
        (P.extent(0), P.extent(0)),  # cov_Z
    )


def step(p, times, wanted, t, state):
    """All fields of one time."""
    D, P = sites(p, times, wanted)
    in_h, in_teacher, kick_w, kick_u = D
    lam = D.along(0)
    in_Z_u, in_eps, kick_delta = P
    (w_past, u_past, Z_u_past, delta_past, h_past, cov_ZT, cov_Z) = state
    # w(0) = 0
    # w(t) = eta sqrt(lam) h(t-1) - eta ridge w(t-1) - mu w(t-2) + mu w(t-1) + w(t-1)
    w = jnp.where(
        jnp.equal(t, 0),
        jnp.zeros((1, D.size)),
        p.mu * earlier(w_past, 1, t, 1)
        + (-p.mu) * earlier(w_past, 1, t, 2)
        + (p.eta * jnp.sqrt(lam)) * earlier(h_past, 1, t, 1)
        + (-p.eta * p.ridge) * earlier(w_past, 1, t, 1)
        + earlier(w_past, 1, t, 1),
    ) + kick(kick_w, t)
    w_past = store(w_past, w, t)
    w = stored(w_past, 1, t)
    # u(t) = teacher sqrt(lam) - sqrt(lam) w(t)
    u = ((jnp.sqrt(lam)) * unit(in_teacher, 0) + (-jnp.sqrt(lam)) * w) + kick(kick_u, t)
    u_past = store(u_past, u, t)
    # Z_u(t) = u[Z_u](t) + (1/alpha) sum_{s<t} R[u,h](t,s) delta(s)
    Z_u = unit(in_Z_u, t) + (1 / p.alpha) * (part(u, in_h) @ delta_past)
    Z_u_past = store(Z_u_past, Z_u, t)
    seen_u = dual(u, D, cov_ZT)
    C_u_u = overlaps(seen_u, u_past)
    # <u[Z_u](t) u[Z_u](s)> = C[u,u](t,s)
    cov_Z = put(cov_Z, in_Z_u, t, in_Z_u, None, C_u_u)
    # delta(t) = sigma eps + Z_u(t)
    delta = (p.sigma * unit(in_eps, 0) + Z_u) + kick(kick_delta, t)
    delta_past = store(delta_past, delta, t)
    # h(t) = u[h](t) + sum_{s<=t} R[delta,Z_u](t,s) u(s)
    h = unit(in_h, t) + part(delta, in_Z_u) @ u_past
    h_past = store(h_past, h, t)
    seen_delta = dual(delta, P, cov_Z)
    C_delta_delta = overlaps(seen_delta, delta_past)
    # <u[h](t) u[h](s)> = C[delta,delta](t,s)/alpha
    cov_ZT = put(cov_ZT, in_h, t, in_h, None, (1 / p.alpha) * C_delta_delta)
    return (w_past, u_past, Z_u_past, delta_past, h_past, cov_ZT, cov_Z)


def results(p, wanted, state):
    """The two-time functions asked for, and the number of times before anything overflowed."""
    times = p.T + 1
    D, P = sites(p, times, wanted)
    in_h, in_teacher, kick_w, kick_u = D
    in_Z_u, in_eps, kick_delta = P
    (w_past, u_past, Z_u_past, delta_past, h_past, cov_ZT, cov_Z) = state
    fields = {
        "w": Rows(w_past, 1, kick_w, 1, D, (cov_ZT,)),
        "u": Rows(u_past, 1, kick_u, 1, D, (cov_ZT,)),
        "Z_u": Rows(Z_u_past, 1, in_Z_u, 1, P, (cov_Z,)),
        "delta": Rows(delta_past, 1, kick_delta, 1, P, (cov_Z,)),
        "h": Rows(h_past, 1, in_h, 1, D, (cov_ZT,)),
        "eps": Rows(units(in_eps), 1, in_eps, 1, P, (cov_Z,)),
        "teacher": Rows(units(in_teacher), 1, in_teacher, 1, D, (cov_ZT,)),
    }
    return two_time(wanted, fields), finite_times(
        times,
        (w_past, u_past, Z_u_past, delta_past, h_past),
        ((D.channels[0], cov_ZT), (P.channels[0], cov_Z)),
    )


def forward_pass(p, wanted):
    """Two-time functions, wanted as ("C", a, b) and ("R", a, b), each as times of a x labels of a x times
    of b x labels of b, and the number of times before anything overflowed.
    """
    return results(p, wanted, forward(p, p.T + 1, partial(carried, wanted=wanted), step, None, wanted))


TWO_TIME = TwoTimeOf(
    forward_pass,
    {},
)
