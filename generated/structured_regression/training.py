# Written by `derive build structured_regression spectrum=two_groups batch=full hessian=no` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level, exactly: all laws are linear, so all fields are Gaussian and one pass is enough."""

import jax.numpy as jnp

from numerics.runtime.exact import (
    dual,
    earlier,
    finite_times,
    forward,
    mean_of_labels,
    overlaps,
    part,
    products_by_time,
    put,
    series,
    site,
    store,
    stored,
    unit,
    units,
    variances,
)
from numerics.runtime.interface import ExactTraining
from numerics.runtime.traits import discrete


def sites(p, times):
    """The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."""
    # a site of D: u[h]; teacher
    law_lam = discrete((1, p.kappa), (1 - p.share, p.share))
    D = site(((times, 1),), drawn=((1, 1),), traits=(law_lam,))
    # a site of P: u[Z_u]; eps
    P = site(((times, 1),), drawn=((1, 1),))
    return (D, P)


def carried(p, times):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    D, P = sites(p, times)
    return (
        ((times,), D.parts),  # w_past
        ((times,), D.parts),  # u_past
        ((times,), P.parts),  # delta_past
        ((times,), D.parts),  # h_past
        (D.extent(0), D.extent(0)),  # cov_ZT
        (P.extent(0), P.extent(0)),  # cov_Z
    )


def step(p, times, t, state):
    """All fields of one time."""
    D, P = sites(p, times)
    in_h, in_teacher = D
    lam = D.along(0)
    in_Z_u, in_eps = P
    (w_past, u_past, delta_past, h_past, cov_ZT, cov_Z) = state
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
    )
    w_past = store(w_past, w, t)
    w = stored(w_past, 1, t)
    # u(t) = teacher sqrt(lam) - sqrt(lam) w(t)
    u = (jnp.sqrt(lam)) * unit(in_teacher, 0) + (-jnp.sqrt(lam)) * w
    u_past = store(u_past, u, t)
    # Z_u(t) = u[Z_u](t) + (1/alpha) sum_{s<t} R[u,h](t,s) delta(s)
    Z_u = unit(in_Z_u, t) + (1 / p.alpha) * (part(u, in_h) @ delta_past)
    seen_u = dual(u, D, cov_ZT)
    C_u_u = overlaps(seen_u, u_past)
    # <u[Z_u](t) u[Z_u](s)> = C[u,u](t,s)
    cov_Z = put(cov_Z, in_Z_u, t, in_Z_u, None, C_u_u)
    # delta(t) = sigma eps + Z_u(t)
    delta = p.sigma * unit(in_eps, 0) + Z_u
    delta_past = store(delta_past, delta, t)
    # h(t) = u[h](t) + sum_{s<=t} R[delta,Z_u](t,s) u(s)
    h = unit(in_h, t) + part(delta, in_Z_u) @ u_past
    h_past = store(h_past, h, t)
    seen_delta = dual(delta, P, cov_Z)
    C_delta_delta = overlaps(seen_delta, delta_past)
    # <u[h](t) u[h](s)> = C[delta,delta](t,s)/alpha
    cov_ZT = put(cov_ZT, in_h, t, in_h, None, (1 / p.alpha) * C_delta_delta)
    return (w_past, u_past, delta_past, h_past, cov_ZT, cov_Z)


def results(p, state):
    """Order parameters before the last update, observables at all times, times before anything overflowed."""
    times = p.T + 1
    D, P = sites(p, times)
    in_h, in_teacher = D
    in_Z_u, _ = P
    (w_past, u_past, delta_past, h_past, cov_ZT, cov_Z) = state
    order = {}
    observables = {
        # train_loss = <delta(t)^2>
        "train_loss": series(mean_of_labels(p.alpha * variances(cov_ZT, in_h))),
        # test_loss = sigma^2 + <u(t)^2>
        "test_loss": series(p.sigma**2 + mean_of_labels(variances(cov_Z, in_Z_u))),
        # distance = <(teacher - w(t))^2>
        "distance": series(
            mean_of_labels(
                products_by_time(dual(units(in_teacher), D, cov_ZT), 1, units(in_teacher), 1)
                + products_by_time(dual(w_past, D, cov_ZT), 1, w_past, 1)
                + (-2) * products_by_time(dual(w_past, D, cov_ZT), 1, units(in_teacher), 1)
            )
        ),
    }
    return (
        order,
        observables,
        finite_times(
            times, (w_past, u_past, delta_past, h_past), ((D.channels[0], cov_ZT), (P.channels[0], cov_Z))
        ),
    )


def forward_pass(p):
    """Order parameters before the last update, observables at all times, and the number of times before
    anything overflowed. Whole-number parameters fix shapes.
    """
    return results(p, forward(p, p.T + 1, carried, step, None))


def strides(p):
    """Entries per time step along each axis of the order parameters; 0 along an axis without time."""
    return {}


TRAINING = ExactTraining(forward_pass, strides)
