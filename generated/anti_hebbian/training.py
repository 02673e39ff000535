# Written by `derive build anti_hebbian` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level, exactly: all laws are linear, so all fields are Gaussian and one pass is enough."""

import jax.numpy as jnp

from numerics.runtime.exact import (
    covariance_before,
    dual,
    earlier,
    finite_times,
    first,
    forward,
    mean_of_labels,
    overlaps,
    part,
    part_before,
    products_by_time,
    put,
    series,
    site,
    store,
    stored,
    unit,
    units,
    variances,
    weighted,
)
from numerics.runtime.interface import ExactTraining


def sites(p, times):
    """The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."""
    # a site of D: u[M0_v]; start
    D = site(((times, 1),), drawn=((1, 1),))
    return (D,)


def carried(p, times):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    (D,) = sites(p, times)
    return (
        ((times,), D.parts),  # v_past
        ((times,), D.parts),  # M0_v_past
        (D.extent(0), D.extent(0)),  # cov_M0
    )


def step(p, times, t, state):
    """All fields of one time."""
    (D,) = sites(p, times)
    in_M0_v, in_start = D
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
    )
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


def results(p, state):
    """Order parameters before the last update, observables at all times, times before anything overflowed."""
    times = p.T + 1
    (D,) = sites(p, times)
    in_M0_v, in_start = D
    (v_past, M0_v_past, cov_M0) = state
    order = {
        ("C", "v", "v"): covariance_before(cov_M0, in_M0_v, p.T),
        ("R", "v", "M0_v"): part_before(first(v_past, p.T), in_M0_v, p.T),
    }
    observables = {
        # activity = <v(t)^2>
        "activity": series(mean_of_labels(variances(cov_M0, in_M0_v))),
        # memory = <start v(t)>
        "memory": series(mean_of_labels(products_by_time(dual(v_past, D, cov_M0), 1, units(in_start), 1))),
    }
    return order, observables, finite_times(times, (v_past, M0_v_past), ((D.channels[0], cov_M0),))


def forward_pass(p):
    """Order parameters before the last update, observables at all times, and the number of times before
    anything overflowed. Whole-number parameters fix shapes.
    """
    return results(p, forward(p, p.T + 1, carried, step, None))


def strides(p):
    """Entries per time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        ("C", "v", "v"): (1, 1),
        ("R", "v", "M0_v"): (1, 1),
    }


TRAINING = ExactTraining(forward_pass, strides)
