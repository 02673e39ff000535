# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` (two-level-dmft 0.2.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level by sampling: many sites forward in time, responses by Stein's lemma: correlations with the noises."""

from functools import partial

import jax.numpy as jnp
import jax.scipy.special as jsp  # noqa: F401

from numerics.runtime.interface import SampledTraining
from numerics.runtime.exact import first, store, weighted
from numerics.runtime.sampled import (
    Entries,
    answers,
    beyond,
    drawn,
    drawn_at,
    empty_span,
    expressed,
    extend,
    forward,
    given,
    label_mean,
    mean_by_label,
    noise,
    over_labels,
    record,
    report_on,
    responses,
    room,
    scaled_rows,
    still_finite,
    store_rest,
    total,
    with_rest,
)


def sizes(p, rank):
    """How many directions are kept of each span of fields."""
    return (
        room(p.B * (p.T + 1), rank),  # size_J1: phi1
        room(p.B * (p.T + 1), rank),  # size_J2: phi2
        room(p.B * (p.T + 1), rank),  # size_J2T: g3
        room(p.B * (p.T + 1), rank),  # size_J1T: g2
    )


def shapes(p, rank=None):
    """The shape of each kind of standard normals, for one site."""
    size_J1, size_J2, size_J2T, size_J1T = sizes(p, rank)
    return {
        "J1": (size_J1,),
        "J2": (size_J2,),
        "J2T": (size_J2T,),
        "J1T": (size_J1T,),
        "V0": (p.D,),
        "w0": (),
        "J1_beyond": (p.T + 1, beyond(size_J1, p.B * (p.T + 1), p.B)),
        "J2_beyond": (p.T + 1, beyond(size_J2, p.B * (p.T + 1), p.B)),
        "J2T_beyond": (p.T + 1, beyond(size_J2T, p.B * (p.T + 1), p.B)),
        "J1T_beyond": (p.T + 1, beyond(size_J1T, p.B * (p.T + 1), p.B)),
    }


def footprint(p, rank=None):
    """How many numbers are kept for one site of each kind."""
    size_J1, size_J2, size_J2T, size_J1T = sizes(p, rank)
    return 19 * p.B + p.D + size_J1 + size_J1T + size_J2 + size_J2T + 1


def start(p, normals, rank, tolerance):
    """Fields without time, and what is carried through time as it starts."""
    sites = normals["J1"].shape[0]
    size_J1, size_J2, size_J2T, size_J1T = sizes(p, rank)
    span_J1 = empty_span(sites, size_J1)
    span_J2 = empty_span(sites, size_J2)
    span_J2T = empty_span(sites, size_J2T)
    span_J1T = empty_span(sites, size_J1T)
    spike1_1_before = jnp.zeros((sites, p.B))
    V_1_before = jnp.zeros((sites, p.D))
    pushed_1_before = jnp.zeros((sites, p.B))
    w_1_before = jnp.zeros((sites, 1))
    phi1_rest_past = jnp.zeros((p.T + 1, p.B, beyond(size_J1, p.B * (p.T + 1), p.B)))
    phi1_past = jnp.zeros((p.B * (p.T + 1), size_J1))
    phi1_to_J1T = jnp.zeros((p.B * (p.T + 1), size_J1T))
    spike2_past = jnp.zeros((p.B * (p.T + 1), size_J1T))
    phi2_rest_past = jnp.zeros((p.T + 1, p.B, beyond(size_J2, p.B * (p.T + 1), p.B)))
    phi2_past = jnp.zeros((p.B * (p.T + 1), size_J2))
    phi2_to_J2T = jnp.zeros((p.B * (p.T + 1), size_J2T))
    spike3_past = jnp.zeros((p.B * (p.T + 1), size_J2T))
    g3_rest_past = jnp.zeros((p.T + 1, p.B, beyond(size_J2T, p.B * (p.T + 1), p.B)))
    g3_past = jnp.zeros((p.B * (p.T + 1), size_J2T))
    g3_to_J2 = jnp.zeros((p.B * (p.T + 1), size_J2))
    g2_rest_past = jnp.zeros((p.T + 1, p.B, beyond(size_J1T, p.B * (p.T + 1), p.B)))
    g2_past = jnp.zeros((p.B * (p.T + 1), size_J1T))
    g2_to_J1 = jnp.zeros((p.B * (p.T + 1), size_J1))
    spike2_rest_past = jnp.zeros((p.T + 1, p.B, beyond(size_J1T, p.B * (p.T + 1), p.B)))
    spike2_to_J1 = jnp.zeros((p.B * (p.T + 1), size_J1))
    spike3_rest_past = jnp.zeros((p.T + 1, p.B, beyond(size_J2T, p.B * (p.T + 1), p.B)))
    spike3_to_J2 = jnp.zeros((p.B * (p.T + 1), size_J2))
    loss_series = jnp.zeros((p.T + 1,))
    prediction_series = jnp.zeros((p.T + 1, p.B))
    features1_series = jnp.zeros((p.T + 1,))
    features2_series = jnp.zeros((p.T + 1,))
    features3_series = jnp.zeros((p.T + 1,))
    gradients1_series = jnp.zeros((p.T + 1,))
    gradients2_series = jnp.zeros((p.T + 1,))
    gradients3_series = jnp.zeros((p.T + 1,))
    return (
        span_J1,
        span_J2,
        span_J2T,
        span_J1T,
        spike1_1_before,
        V_1_before,
        pushed_1_before,
        w_1_before,
        phi1_rest_past,
        phi1_past,
        phi1_to_J1T,
        spike2_past,
        phi2_rest_past,
        phi2_past,
        phi2_to_J2T,
        spike3_past,
        g3_rest_past,
        g3_past,
        g3_to_J2,
        g2_rest_past,
        g2_past,
        g2_to_J1,
        spike2_rest_past,
        spike2_to_J1,
        spike3_rest_past,
        spike3_to_J2,
        loss_series,
        prediction_series,
        features1_series,
        features2_series,
        features3_series,
        gradients1_series,
        gradients2_series,
        gradients3_series,
    )


def step(p, normals, rank, tolerance, t, state):
    """All fields of one time, each as sites x labels."""
    when = jnp.arange(p.T + 1)
    (
        (
            span_J1,
            span_J2,
            span_J2T,
            span_J1T,
            spike1_1_before,
            V_1_before,
            pushed_1_before,
            w_1_before,
            phi1_rest_past,
            phi1_past,
            phi1_to_J1T,
            spike2_past,
            phi2_rest_past,
            phi2_past,
            phi2_to_J2T,
            spike3_past,
            g3_rest_past,
            g3_past,
            g3_to_J2,
            g2_rest_past,
            g2_past,
            g2_to_J1,
            spike2_rest_past,
            spike2_to_J1,
            spike3_rest_past,
            spike3_to_J2,
            loss_series,
            prediction_series,
            features1_series,
            features2_series,
            features3_series,
            gradients1_series,
            gradients2_series,
            gradients3_series,
        ),
        finite,
    ) = state
    # V(t) = V(t-1) + (eta gamma/sqrt(D)) x(t-1)^T spike1(t-1)
    V = jnp.where(
        jnp.equal(t, 0),
        (p.sigma * drawn(normals["V0"])),
        (p.eta * p.gamma / jnp.sqrt(p.D)) * (spike1_1_before @ given(p.x, t, 1)) + V_1_before,
    )
    # w(t) = eta gamma total(pushed(t-1)) + w(t-1)
    w = jnp.where(
        jnp.equal(t, 0),
        (p.sigma * drawn(normals["w0"])),
        (p.eta * p.gamma) * total(pushed_1_before) + w_1_before,
    )
    # h1(t) = x(t) V(t)/sqrt(D)
    h1 = (1 / jnp.sqrt(p.D)) * (V @ given(p.x, t, 0).T)
    # phi1(t) = tanh(h1(t))
    phi1 = jnp.tanh(h1)
    phi1_in_J1, phi1_beyond_J1, span_J1 = extend(span_J1, phi1, tolerance)
    phi1_rest_past = store_rest(phi1_rest_past, phi1_beyond_J1, t)
    phi1_past = store(phi1_past, phi1_in_J1, t)
    phi1_to_J1T = store(phi1_to_J1T, answers(phi1, normals["J1T"], span_J1T), t)
    # J1_phi1(t) = u[J1_phi1] + sum_s sigma^2 R[phi1,J1T_g2](t,s) g2(s)
    J1_phi1 = p.sigma * noise(
        normals["J1"], phi1_in_J1, drawn_at(normals["J1_beyond"], t), phi1_beyond_J1
    ) + p.sigma * expressed(span_J1T, answers(phi1, normals["J1T"], span_J1T))
    # h2(t) = J1_phi1(t) + eta gamma sum_{s<t} <phi1(t) phi1(s)> spike2(s)
    h2 = (
        expressed(
            span_J1T,
            weighted(phi1_in_J1 @ phi1_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ spike2_past,
        )
        + J1_phi1
    )
    # phi2(t) = tanh(h2(t))
    phi2 = jnp.tanh(h2)
    phi2_in_J2, phi2_beyond_J2, span_J2 = extend(span_J2, phi2, tolerance)
    phi2_rest_past = store_rest(phi2_rest_past, phi2_beyond_J2, t)
    phi2_past = store(phi2_past, phi2_in_J2, t)
    phi2_to_J2T = store(phi2_to_J2T, answers(phi2, normals["J2T"], span_J2T), t)
    # J2_phi2(t) = u[J2_phi2] + sum_s sigma^2 R[phi2,J2T_g3](t,s) g3(s)
    J2_phi2 = p.sigma * noise(
        normals["J2"], phi2_in_J2, drawn_at(normals["J2_beyond"], t), phi2_beyond_J2
    ) + p.sigma * expressed(span_J2T, answers(phi2, normals["J2T"], span_J2T))
    # h3(t) = J2_phi2(t) + eta gamma sum_{s<t} <phi2(t) phi2(s)> spike3(s)
    h3 = (
        expressed(
            span_J2T,
            weighted(phi2_in_J2 @ phi2_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ spike3_past,
        )
        + J2_phi2
    )
    # phi3(t) = tanh(h3(t))
    phi3 = jnp.tanh(h3)
    # pushed(t) = y(t) phi3(t)/B - <phi3(t) w(t)> phi3(t)/(B gamma)
    pushed = (given(p.y, t, 0) / p.B) * phi3 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * phi3
    # g3(t) = w(t) - tanh(h3(t))^2 w(t)
    g3 = -w * jnp.tanh(h3) ** 2 + w
    g3_in_J2T, g3_beyond_J2T, span_J2T = extend(span_J2T, g3, tolerance)
    g3_rest_past = store_rest(g3_rest_past, g3_beyond_J2T, t)
    g3_past = store(g3_past, g3_in_J2T, t)
    g3_to_J2 = store(g3_to_J2, answers(g3, normals["J2"], span_J2), t)
    # J2T_g3(t) = u[J2T_g3] + sum_s sigma^2 R[g3,J2_phi2](t,s) phi2(s)
    J2T_g3 = p.sigma * noise(
        normals["J2T"], g3_in_J2T, drawn_at(normals["J2T_beyond"], t), g3_beyond_J2T
    ) + p.sigma * expressed(span_J2, answers(g3, normals["J2"], span_J2))
    # z2(t) = J2T_g3(t) + eta gamma sum_{s<t} <g3(t) spike3(s)> phi2(s)
    z2 = (
        expressed(
            span_J2,
            weighted(g3_in_J2T @ spike3_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ phi2_past,
        )
        + J2T_g3
    )
    # g2(t) = z2(t) - tanh(h2(t))^2 z2(t)
    g2 = -z2 * jnp.tanh(h2) ** 2 + z2
    g2_in_J1T, g2_beyond_J1T, span_J1T = extend(span_J1T, g2, tolerance)
    g2_rest_past = store_rest(g2_rest_past, g2_beyond_J1T, t)
    g2_past = store(g2_past, g2_in_J1T, t)
    g2_to_J1 = store(g2_to_J1, answers(g2, normals["J1"], span_J1), t)
    # J1T_g2(t) = u[J1T_g2] + sum_s sigma^2 R[g2,J1_phi1](t,s) phi1(s)
    J1T_g2 = p.sigma * noise(
        normals["J1T"], g2_in_J1T, drawn_at(normals["J1T_beyond"], t), g2_beyond_J1T
    ) + p.sigma * expressed(span_J1, answers(g2, normals["J1"], span_J1))
    # z1(t) = J1T_g2(t) + eta gamma sum_{s<t} <g2(t) spike2(s)> phi1(s)
    z1 = (
        expressed(
            span_J1,
            weighted(g2_in_J1T @ spike2_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ phi1_past,
        )
        + J1T_g2
    )
    # g1(t) = z1(t) - tanh(h1(t))^2 z1(t)
    g1 = -z1 * jnp.tanh(h1) ** 2 + z1
    # spike1(t) = y(t) g1(t)/B - <phi3(t) w(t)> g1(t)/(B gamma)
    spike1 = (given(p.y, t, 0) / p.B) * g1 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * g1
    # spike2(t) = y(t) g2(t)/B - <phi3(t) w(t)> g2(t)/(B gamma)
    spike2 = (given(p.y, t, 0) / p.B) * g2 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * g2
    spike2_in_J1T = scaled_rows(given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g2_in_J1T)
    spike2_beyond_J1T = scaled_rows(
        given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g2_beyond_J1T
    )
    spike2_rest_past = store_rest(spike2_rest_past, spike2_beyond_J1T, t)
    spike2_past = store(spike2_past, spike2_in_J1T, t)
    spike2_to_J1 = store(spike2_to_J1, answers(spike2, normals["J1"], span_J1), t)
    # spike3(t) = y(t) g3(t)/B - <phi3(t) w(t)> g3(t)/(B gamma)
    spike3 = (given(p.y, t, 0) / p.B) * g3 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * g3
    spike3_in_J2T = scaled_rows(given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g3_in_J2T)
    spike3_beyond_J2T = scaled_rows(
        given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g3_beyond_J2T
    )
    spike3_rest_past = store_rest(spike3_rest_past, spike3_beyond_J2T, t)
    spike3_past = store(spike3_past, spike3_in_J2T, t)
    spike3_to_J2 = store(spike3_to_J2, answers(spike3, normals["J2"], span_J2), t)
    loss_series = record(
        loss_series,
        over_labels((1 / 2) * (-given(p.y, t, 0) + mean_by_label(phi3 * w) / p.gamma) ** 2 / p.B),
        t,
    )
    prediction_series = record(prediction_series, mean_by_label(phi3 * w) / p.gamma, t)
    features1_series = record(features1_series, label_mean(mean_by_label(phi1**2)), t)
    features2_series = record(features2_series, label_mean(mean_by_label(phi2**2)), t)
    features3_series = record(features3_series, label_mean(mean_by_label(phi3**2)), t)
    gradients1_series = record(gradients1_series, label_mean(mean_by_label(g1**2)), t)
    gradients2_series = record(gradients2_series, label_mean(mean_by_label(g2**2)), t)
    gradients3_series = record(gradients3_series, label_mean(mean_by_label(g3**2)), t)
    spike1_1_before = spike1
    V_1_before = V
    pushed_1_before = pushed
    w_1_before = w
    finite = still_finite(
        finite,
        t,
        (
            V,
            w,
            h1,
            phi1,
            J1_phi1,
            h2,
            phi2,
            J2_phi2,
            h3,
            phi3,
            pushed,
            g3,
            J2T_g3,
            z2,
            g2,
            J1T_g2,
            z1,
            g1,
            spike1,
            spike2,
            spike3,
        ),
    )
    return (
        span_J1,
        span_J2,
        span_J2T,
        span_J1T,
        spike1_1_before,
        V_1_before,
        pushed_1_before,
        w_1_before,
        phi1_rest_past,
        phi1_past,
        phi1_to_J1T,
        spike2_past,
        phi2_rest_past,
        phi2_past,
        phi2_to_J2T,
        spike3_past,
        g3_rest_past,
        g3_past,
        g3_to_J2,
        g2_rest_past,
        g2_past,
        g2_to_J1,
        spike2_rest_past,
        spike2_to_J1,
        spike3_rest_past,
        spike3_to_J2,
        loss_series,
        prediction_series,
        features1_series,
        features2_series,
        features3_series,
        gradients1_series,
        gradients2_series,
        gradients3_series,
    ), finite


def results(p, normals, rank, tolerance, state):
    """What order parameters are made of, observables at all times, and a report on the directions."""
    (
        span_J1,
        span_J2,
        span_J2T,
        span_J1T,
        spike1_1_before,
        V_1_before,
        pushed_1_before,
        w_1_before,
        phi1_rest_past,
        phi1_past,
        phi1_to_J1T,
        spike2_past,
        phi2_rest_past,
        phi2_past,
        phi2_to_J2T,
        spike3_past,
        g3_rest_past,
        g3_past,
        g3_to_J2,
        g2_rest_past,
        g2_past,
        g2_to_J1,
        spike2_rest_past,
        spike2_to_J1,
        spike3_rest_past,
        spike3_to_J2,
        loss_series,
        prediction_series,
        features1_series,
        features2_series,
        features3_series,
        gradients1_series,
        gradients2_series,
        gradients3_series,
    ) = state
    # the noises of J1 in terms of its normals
    noise_J1 = p.sigma * first(phi1_past, p.B * p.T)
    # the noises of J2 in terms of its normals
    noise_J2 = p.sigma * first(phi2_past, p.B * p.T)
    # the noises of J1T in terms of its normals
    noise_J1T = p.sigma * first(g2_past, p.B * p.T)
    # the noises of J2T in terms of its normals
    noise_J2T = p.sigma * first(g3_past, p.B * p.T)
    moments = {
        ("C", "g2", "g2"): with_rest(
            first(g2_past, p.B * p.T) @ first(g2_past, p.B * p.T).T, g2_rest_past, g2_rest_past, p.T
        ),
        ("C", "g2", "spike2"): with_rest(
            first(g2_past, p.B * p.T) @ first(spike2_past, p.B * p.T).T, g2_rest_past, spike2_rest_past, p.T
        ),
        ("C", "g3", "g3"): with_rest(
            first(g3_past, p.B * p.T) @ first(g3_past, p.B * p.T).T, g3_rest_past, g3_rest_past, p.T
        ),
        ("C", "g3", "spike3"): with_rest(
            first(g3_past, p.B * p.T) @ first(spike3_past, p.B * p.T).T, g3_rest_past, spike3_rest_past, p.T
        ),
        ("C", "phi1", "phi1"): with_rest(
            first(phi1_past, p.B * p.T) @ first(phi1_past, p.B * p.T).T, phi1_rest_past, phi1_rest_past, p.T
        ),
        ("C", "phi2", "phi2"): with_rest(
            first(phi2_past, p.B * p.T) @ first(phi2_past, p.B * p.T).T, phi2_rest_past, phi2_rest_past, p.T
        ),
        ("C", "spike2", "spike2"): with_rest(
            first(spike2_past, p.B * p.T) @ first(spike2_past, p.B * p.T).T,
            spike2_rest_past,
            spike2_rest_past,
            p.T,
        ),
        ("C", "spike3", "spike3"): with_rest(
            first(spike3_past, p.B * p.T) @ first(spike3_past, p.B * p.T).T,
            spike3_rest_past,
            spike3_rest_past,
            p.T,
        ),
        ("G", "J1"): noise_J1 @ noise_J1.T,
        ("G", "J2"): noise_J2 @ noise_J2.T,
        ("G", "J1T"): noise_J1T @ noise_J1T.T,
        ("G", "J2T"): noise_J2T @ noise_J2T.T,
        ("K", "g2", "J1"): first(g2_to_J1, p.B * p.T) @ noise_J1.T,
        ("K", "g3", "J2"): first(g3_to_J2, p.B * p.T) @ noise_J2.T,
        ("K", "phi1", "J1T"): first(phi1_to_J1T, p.B * p.T) @ noise_J1T.T,
        ("K", "phi2", "J2T"): first(phi2_to_J2T, p.B * p.T) @ noise_J2T.T,
        ("K", "spike2", "J1"): first(spike2_to_J1, p.B * p.T) @ noise_J1.T,
        ("K", "spike3", "J2"): first(spike3_to_J2, p.B * p.T) @ noise_J2.T,
    }
    observables = {
        "loss": loss_series,
        "prediction": prediction_series,
        "features1": features1_series,
        "features2": features2_series,
        "features3": features3_series,
        "gradients1": gradients1_series,
        "gradients2": gradients2_series,
        "gradients3": gradients3_series,
    }
    return moments, observables, report_on((span_J1, span_J2, span_J2T, span_J1T), ())


def forward_pass(p, normals, rank=None, tolerance=1e-12):
    """What order parameters are made of (see order_parameters), observables at all times, the number of times
    before anything overflowed, and a report on the directions that are remembered.

    normals: as `shapes` says, with the sites in front. rank: most directions to remember of each span of
    fields, all if None. tolerance: share of its variance below which a new direction is left out.
    Whole-number parameters fix shapes.
    """
    state = start(p, normals, rank, tolerance)
    state, finite = forward(p.T + 1, partial(step, p, normals, rank, tolerance), state)
    moments, observables, report = results(p, normals, rank, tolerance, state)
    return moments, observables, finite, report


def order_parameters(moments, p, tolerance=1e-12):
    """Correlations, responses and means before the last update, times by times, from averaged moments."""
    R_g2_J1 = responses(
        moments["K", "g2", "J1"],
        moments["G", "J1"],
        Entries(p.T, p.B),
        (Entries(p.T, p.B, 0),),
        p.T + 1,
        tolerance,
    )
    R_g3_J2 = responses(
        moments["K", "g3", "J2"],
        moments["G", "J2"],
        Entries(p.T, p.B),
        (Entries(p.T, p.B, 0),),
        p.T + 1,
        tolerance,
    )
    R_phi1_J1T = responses(
        moments["K", "phi1", "J1T"],
        moments["G", "J1T"],
        Entries(p.T, p.B),
        (Entries(p.T, p.B, 1),),
        p.T + 1,
        tolerance,
    )
    R_phi2_J2T = responses(
        moments["K", "phi2", "J2T"],
        moments["G", "J2T"],
        Entries(p.T, p.B),
        (Entries(p.T, p.B, 1),),
        p.T + 1,
        tolerance,
    )
    R_spike2_J1 = responses(
        moments["K", "spike2", "J1"],
        moments["G", "J1"],
        Entries(p.T, p.B),
        (Entries(p.T, p.B, 0),),
        p.T + 1,
        tolerance,
    )
    R_spike3_J2 = responses(
        moments["K", "spike3", "J2"],
        moments["G", "J2"],
        Entries(p.T, p.B),
        (Entries(p.T, p.B, 0),),
        p.T + 1,
        tolerance,
    )
    return {
        ("C", "g2", "g2"): moments["C", "g2", "g2"],
        ("C", "g2", "spike2"): moments["C", "g2", "spike2"],
        ("C", "g3", "g3"): moments["C", "g3", "g3"],
        ("C", "g3", "spike3"): moments["C", "g3", "spike3"],
        ("C", "phi1", "phi1"): moments["C", "phi1", "phi1"],
        ("C", "phi2", "phi2"): moments["C", "phi2", "phi2"],
        ("C", "spike2", "spike2"): moments["C", "spike2", "spike2"],
        ("C", "spike3", "spike3"): moments["C", "spike3", "spike3"],
        ("R", "g2", "J1_phi1"): R_g2_J1[0],
        ("R", "g3", "J2_phi2"): R_g3_J2[0],
        ("R", "phi1", "J1T_g2"): R_phi1_J1T[0],
        ("R", "phi2", "J2T_g3"): R_phi2_J2T[0],
        ("R", "spike2", "J1_phi1"): R_spike2_J1[0],
        ("R", "spike3", "J2_phi2"): R_spike3_J2[0],
    }


def strides(p):
    """Entries per time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        ("C", "g2", "g2"): (p.B, p.B),
        ("C", "g2", "spike2"): (p.B, p.B),
        ("C", "g3", "g3"): (p.B, p.B),
        ("C", "g3", "spike3"): (p.B, p.B),
        ("C", "phi1", "phi1"): (p.B, p.B),
        ("C", "phi2", "phi2"): (p.B, p.B),
        ("C", "spike2", "spike2"): (p.B, p.B),
        ("C", "spike3", "spike3"): (p.B, p.B),
        ("R", "g2", "J1_phi1"): (p.B, p.B),
        ("R", "g3", "J2_phi2"): (p.B, p.B),
        ("R", "phi1", "J1T_g2"): (p.B, p.B),
        ("R", "phi2", "J2T_g3"): (p.B, p.B),
        ("R", "spike2", "J1_phi1"): (p.B, p.B),
        ("R", "spike3", "J2_phi2"): (p.B, p.B),
    }


TRAINING = SampledTraining(
    forward_pass,
    strides,
    shapes,
    order_parameters,
    footprint,
    groups=(("J2", "w0"), ("J1", "J2T"), ("J1T", "V0")),
    responses="stein",
)
