# Written by `derive build anti_hebbian` (two-level-dmft 0.3.0) from a declaration; edits are lost.
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
    # a site of D: u[M0_v]; start
    D = site(((times, 1),), drawn=((1, 1),), kicks=((kicked(wanted, "v", times), 1),))
    return (D,)


def carried(p, times, wanted):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    (D,) = sites(p, times, wanted)
    return (
        ((times,), D.parts),  # v_past
        ((times,), D.parts),  # M0_v_past
        (D.extent(0), D.extent(0)),  # cov_M0
    )


def step(p, times, wanted, t, state):
    """All fields of one time."""
    (D,) = sites(p, times, wanted)
    in_M0_v, in_start, kick_v = D
    when = jnp.arange(times)
    (v_past, M0_v_past, cov_M0) = state
    # v(0) = start
    # v(t) = v(t-1) - dt M0_v(t-1) - dt^2 gamma0 sum_{s<t-1} <v(s) v(t-1)> v(s)
    seen_v = dual(earlier(v_past, 1, t, 1), D, cov_M0)
    C_v_v = overlaps(seen_v, v_past)
    v = jnp.where(
        jnp.equal(t, 0),
        unit(in_start, 0),
        (-p.dt) * earlier(M0_v_past, 1, t, 1)
        + weighted(C_v_v, jnp.where(jnp.less(when, t - 1), -(p.dt**2) * p.gamma0, 0), 1) @ v_past
        + earlier(v_past, 1, t, 1),
    ) + kick(kick_v, t)
    v_past = store(v_past, v, t)
    v = stored(v_past, 1, t)
    # M0_v(t) = u[M0_v](t) + sum_{s<t} R[v,M0_v](t,s) v(s)
    M0_v = unit(in_M0_v, t) + part(v, in_M0_v) @ v_past
    M0_v_past = store(M0_v_past, M0_v, t)
    seen_v_ = dual(v, D, cov_M0)
    C_v_v_ = overlaps(seen_v_, v_past)
    # <u[M0_v](t) u[M0_v](s)> = C[v,v](t,s)
    cov_M0 = put(cov_M0, in_M0_v, t, in_M0_v, None, C_v_v_)
    return (v_past, M0_v_past, cov_M0)


def results(p, wanted, state):
    """The two-time functions asked for, and the number of times before anything overflowed."""
    times = p.T + 1
    (D,) = sites(p, times, wanted)
    in_M0_v, in_start, kick_v = D
    (v_past, M0_v_past, cov_M0) = state
    fields = {
        "v": Rows(v_past, 1, kick_v, 1, D, (cov_M0,)),
        "M0_v": Rows(M0_v_past, 1, in_M0_v, 1, D, (cov_M0,)),
        "start": Rows(units(in_start), 1, in_start, 1, D, (cov_M0,)),
    }
    return two_time(wanted, fields), finite_times(times, (v_past, M0_v_past), ((D.channels[0], cov_M0),))


def forward_pass(p, wanted):
    """Two-time functions, wanted as ("C", a, b) and ("R", a, b), each as times of a x labels of a x times
    of b x labels of b, and the number of times before anything overflowed.
    """
    return results(p, wanted, forward(p, p.T + 1, partial(carried, wanted=wanted), step, None, wanted))


TWO_TIME = TwoTimeOf(
    forward_pass,
    {},
)
