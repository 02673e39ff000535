# Written by `derive build deep_linear L=2 data=full_batch param=mup spectrum=isotropic kernel=shift teachers=alike` (two-level-dmft 0.3.0) from a declaration; edits are lost.
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
    weighted,
)
from numerics.runtime.interface import TwoTimeOf
from numerics.runtime.two_time import Rows, kicked, two_time


def sites(p, times, wanted):
    """The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."""
    # a site of N2: u[J1_h1]; readout
    N2 = site(
        ((times, p.C),),
        drawn=((1, p.C),),
        kicks=((kicked(wanted, "g2", times), p.C), (kicked(wanted, "h2", times), p.C)),
    )
    # a site of N1: u[J1T_g2]; u[J0_h0]
    N1 = site(
        ((times, p.C),),
        ((times, p.C),),
        kicks=((kicked(wanted, "g1", times), p.C), (kicked(wanted, "h1", times), p.C)),
    )
    # a site of D: u[J0T_g1]; u[h0]; teacher
    D = site(((times, p.C),), ((times, p.C),), drawn=((1, p.C),), kicks=((kicked(wanted, "v", times), p.C),))
    # a site of P: u[X_v]; eps
    P = site(((times, p.C),), drawn=((1, p.C),), kicks=((kicked(wanted, "delta", times), p.C),))
    return (N2, N1, D, P)


def carried(p, times, wanted):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    N2, N1, D, P = sites(p, times, wanted)
    return (
        ((p.C * times,), N2.parts),  # g2_past
        ((p.C * times,), N1.parts),  # J1T_g2_past
        ((p.C * times,), N1.parts),  # g1_past
        ((p.C * times,), D.parts),  # J0T_g1_past
        ((p.C * times,), D.parts),  # v_past
        ((p.C * times,), P.parts),  # X_v_past
        ((p.C * times,), P.parts),  # delta_past
        ((p.C * times,), D.parts),  # h0_past
        ((p.C * times,), N1.parts),  # J0_h0_past
        ((p.C * times,), N1.parts),  # h1_past
        ((p.C * times,), N2.parts),  # J1_h1_past
        ((p.C * times,), N2.parts),  # h2_past
        (N2.extent(0), N2.extent(0)),  # cov_J1
        (N1.extent(0), N1.extent(0)),  # cov_J1T
        (N1.extent(1), N1.extent(1)),  # cov_J0
        (D.extent(0), D.extent(0)),  # cov_J0T
        (D.extent(1), D.extent(1)),  # cov_XT
        (P.extent(0), P.extent(0)),  # cov_X
    )


def step(p, times, wanted, t, state):
    """All fields of one time."""
    N2, N1, D, P = sites(p, times, wanted)
    in_J1_h1, in_readout, kick_g2, kick_h2 = N2
    in_J1T_g2, in_J0_h0, kick_g1, kick_h1 = N1
    in_J0T_g1, in_h0, in_teacher, kick_v = D
    in_X_v, in_eps, kick_delta = P
    when = jnp.arange(times)
    (
        g2_past,
        J1T_g2_past,
        g1_past,
        J0T_g1_past,
        v_past,
        X_v_past,
        delta_past,
        h0_past,
        J0_h0_past,
        h1_past,
        J1_h1_past,
        h2_past,
        cov_J1,
        cov_J1T,
        cov_J0,
        cov_J0T,
        cov_XT,
        cov_X,
    ) = state
    # g2(0) = readout
    # g2(t) = eta gamma0 h2(t-1) + g2(t-1)
    g2 = jnp.where(
        jnp.equal(t, 0),
        unit(in_readout, 0),
        (p.eta * p.gamma0) * earlier(h2_past, p.C, t, 1) + earlier(g2_past, p.C, t, 1),
    ) + kick(kick_g2, t)
    g2_past = store(g2_past, g2, t)
    g2 = stored(g2_past, p.C, t)
    # J1T_g2(t) = u[J1T_g2](t) + sum_{s<t} R[g2,J1_h1](t,s) h1(s)
    J1T_g2 = unit(in_J1T_g2, t) + part(g2, in_J1_h1) @ h1_past
    J1T_g2_past = store(J1T_g2_past, J1T_g2, t)
    seen_g2 = dual(g2, N2, cov_J1)
    C_g2_g2 = overlaps(seen_g2, g2_past)
    # <u[J1T_g2](t) u[J1T_g2](s)> = C[g2,g2](t,s)
    cov_J1T = put(cov_J1T, in_J1T_g2, t, in_J1T_g2, None, C_g2_g2)
    # g1(t) = J1T_g2(t) + eta gamma0 sum_{s<t} <g2(t) g2(s)> h1(s)
    g1 = ((p.eta * p.gamma0) * (C_g2_g2 @ h1_past) + J1T_g2) + kick(kick_g1, t)
    g1_past = store(g1_past, g1, t)
    # J0T_g1(t) = u[J0T_g1](t) + sum_{s<t} R[g1,J0_h0](t,s) h0(s)
    J0T_g1 = unit(in_J0T_g1, t) + part(g1, in_J0_h0) @ h0_past
    J0T_g1_past = store(J0T_g1_past, J0T_g1, t)
    seen_g1 = dual(g1, N1, cov_J1T, cov_J0)
    C_g1_g1 = overlaps(seen_g1, g1_past)
    # <u[J0T_g1](t) u[J0T_g1](s)> = C[g1,g1](t,s)/nu
    cov_J0T = put(cov_J0T, in_J0T_g1, t, in_J0T_g1, None, (1 / p.nu) * C_g1_g1)
    # v(t) = teacher - J0T_g1(t)/gamma0 - eta sum_{s<t} <g1(t) g1(s)> h0(s)
    v = ((-1 / p.gamma0) * J0T_g1 + (-p.eta) * (C_g1_g1 @ h0_past) + unit(in_teacher, 0)) + kick(kick_v, t)
    v_past = store(v_past, v, t)
    # X_v(t) = u[X_v](t) + (1/alpha) sum_{s<t} R[v,h0](t,s) delta(s)
    X_v = unit(in_X_v, t) + (1 / p.alpha) * (part(v, in_h0) @ delta_past)
    X_v_past = store(X_v_past, X_v, t)
    seen_v = dual(v, D, cov_J0T, cov_XT)
    C_v_v = overlaps(seen_v, v_past)
    # <u[X_v](t) u[X_v](s)> = C[v,v](t,s)
    cov_X = put(cov_X, in_X_v, t, in_X_v, None, C_v_v)
    # delta(t) = sigma eps + X_v(t)
    delta = (p.sigma * unit(in_eps, 0) + X_v) + kick(kick_delta, t)
    delta_past = store(delta_past, delta, t)
    # h0(t) = u[h0](t) + sum_{s<=t} R[delta,X_v](t,s) v(s)
    h0 = unit(in_h0, t) + part(delta, in_X_v) @ v_past
    h0_past = store(h0_past, h0, t)
    seen_delta = dual(delta, P, cov_X)
    C_delta_delta = overlaps(seen_delta, delta_past)
    # <u[h0](t) u[h0](s)> = C[delta,delta](t,s)/alpha
    cov_XT = put(cov_XT, in_h0, t, in_h0, None, (1 / p.alpha) * C_delta_delta)
    # J0_h0(t) = u[J0_h0](t) + (1/nu) sum_{s<=t} R[h0,J0T_g1](t,s) g1(s)
    J0_h0 = unit(in_J0_h0, t) + (1 / p.nu) * (part(h0, in_J0T_g1) @ g1_past)
    J0_h0_past = store(J0_h0_past, J0_h0, t)
    seen_h0 = dual(h0, D, cov_J0T, cov_XT)
    C_h0_h0 = overlaps(seen_h0, h0_past)
    # <u[J0_h0](t) u[J0_h0](s)> = C[h0,h0](t,s)
    cov_J0 = put(cov_J0, in_J0_h0, t, in_J0_h0, None, C_h0_h0)
    # h1(t) = J0_h0(t) + eta gamma0 sum_{s<t} <h0(t) h0(s)> g1(s)
    h1 = (weighted(C_h0_h0, jnp.where(jnp.less(when, t), p.eta * p.gamma0, 0), p.C) @ g1_past + J0_h0) + kick(
        kick_h1, t
    )
    h1_past = store(h1_past, h1, t)
    # J1_h1(t) = u[J1_h1](t) + sum_{s<=t} R[h1,J1T_g2](t,s) g2(s)
    J1_h1 = unit(in_J1_h1, t) + part(h1, in_J1T_g2) @ g2_past
    J1_h1_past = store(J1_h1_past, J1_h1, t)
    seen_h1 = dual(h1, N1, cov_J1T, cov_J0)
    C_h1_h1 = overlaps(seen_h1, h1_past)
    # <u[J1_h1](t) u[J1_h1](s)> = C[h1,h1](t,s)
    cov_J1 = put(cov_J1, in_J1_h1, t, in_J1_h1, None, C_h1_h1)
    # h2(t) = J1_h1(t) + eta gamma0 sum_{s<t} <h1(t) h1(s)> g2(s)
    h2 = (weighted(C_h1_h1, jnp.where(jnp.less(when, t), p.eta * p.gamma0, 0), p.C) @ g2_past + J1_h1) + kick(
        kick_h2, t
    )
    h2_past = store(h2_past, h2, t)
    return (
        g2_past,
        J1T_g2_past,
        g1_past,
        J0T_g1_past,
        v_past,
        X_v_past,
        delta_past,
        h0_past,
        J0_h0_past,
        h1_past,
        J1_h1_past,
        h2_past,
        cov_J1,
        cov_J1T,
        cov_J0,
        cov_J0T,
        cov_XT,
        cov_X,
    )


def results(p, wanted, state):
    """The two-time functions asked for, and the number of times before anything overflowed."""
    times = p.T + 1
    N2, N1, D, P = sites(p, times, wanted)
    in_J1_h1, in_readout, kick_g2, kick_h2 = N2
    in_J1T_g2, in_J0_h0, kick_g1, kick_h1 = N1
    in_J0T_g1, in_h0, in_teacher, kick_v = D
    in_X_v, in_eps, kick_delta = P
    (
        g2_past,
        J1T_g2_past,
        g1_past,
        J0T_g1_past,
        v_past,
        X_v_past,
        delta_past,
        h0_past,
        J0_h0_past,
        h1_past,
        J1_h1_past,
        h2_past,
        cov_J1,
        cov_J1T,
        cov_J0,
        cov_J0T,
        cov_XT,
        cov_X,
    ) = state
    fields = {
        "g2": Rows(g2_past, p.C, kick_g2, 1, N2, (cov_J1,)),
        "J1T_g2": Rows(J1T_g2_past, p.C, in_J1T_g2, 1, N1, (cov_J1T, cov_J0)),
        "g1": Rows(g1_past, p.C, kick_g1, 1, N1, (cov_J1T, cov_J0)),
        "J0T_g1": Rows(J0T_g1_past, p.C, in_J0T_g1, 1, D, (cov_J0T, cov_XT)),
        "v": Rows(v_past, p.C, kick_v, 1, D, (cov_J0T, cov_XT)),
        "X_v": Rows(X_v_past, p.C, in_X_v, 1, P, (cov_X,)),
        "delta": Rows(delta_past, p.C, kick_delta, 1, P, (cov_X,)),
        "h0": Rows(h0_past, p.C, in_h0, 1, D, (cov_J0T, cov_XT)),
        "J0_h0": Rows(J0_h0_past, p.C, in_J0_h0, 1, N1, (cov_J1T, cov_J0)),
        "h1": Rows(h1_past, p.C, kick_h1, 1, N1, (cov_J1T, cov_J0)),
        "J1_h1": Rows(J1_h1_past, p.C, in_J1_h1, 1, N2, (cov_J1,)),
        "h2": Rows(h2_past, p.C, kick_h2, 1, N2, (cov_J1,)),
        "eps": Rows(units(in_eps), p.C, in_eps, 1, P, (cov_X,)),
        "readout": Rows(units(in_readout), p.C, in_readout, 1, N2, (cov_J1,)),
        "teacher": Rows(units(in_teacher), p.C, in_teacher, 1, D, (cov_J0T, cov_XT)),
    }
    return two_time(wanted, fields), finite_times(
        times,
        (
            g2_past,
            J1T_g2_past,
            g1_past,
            J0T_g1_past,
            v_past,
            X_v_past,
            delta_past,
            h0_past,
            J0_h0_past,
            h1_past,
            J1_h1_past,
            h2_past,
        ),
        (
            (N2.channels[0], cov_J1),
            (N1.channels[0], cov_J1T),
            (N1.channels[1], cov_J0),
            (D.channels[0], cov_J0T),
            (D.channels[1], cov_XT),
            (P.channels[0], cov_X),
        ),
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
