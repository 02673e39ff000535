# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level by sampling: many sites forward in time, responses by Stein's lemma: correlations with the noises."""

from functools import partial

import jax.numpy as jnp

from numerics.runtime.exact import first, store, weighted
from numerics.runtime.interface import SampledTraining
from numerics.runtime.sampled import (
    Carried,
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
    narrowed,
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


def sizes(p, most):
    """How many directions there is room for in each span of fields, if in none for more than `most`."""
    return (
        room(p.B * (p.T + 1), most),  # size_J1: phi1
        room(p.B * (p.T + 1), most),  # size_J2: phi2
        room(p.B * (p.T + 1), most),  # size_J2T: g3
        room(p.B * (p.T + 1), most),  # size_J1T: g2
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
        "J1_beyond": (p.T + 1, beyond(rank, p.B * (p.T + 1), p.B)),
        "J2_beyond": (p.T + 1, beyond(rank, p.B * (p.T + 1), p.B)),
        "J2T_beyond": (p.T + 1, beyond(rank, p.B * (p.T + 1), p.B)),
        "J1T_beyond": (p.T + 1, beyond(rank, p.B * (p.T + 1), p.B)),
    }


def footprint(p, rank=None):
    """How many numbers are kept for one site of each kind."""
    size_J1, size_J2, size_J2T, size_J1T = sizes(p, rank)
    return 19 * p.B + p.D + size_J1 + size_J1T + size_J2 + size_J2T + 1


def joining(p):
    """How many directions can join each span of fields at one time, and how many before the first."""
    return {
        "span_J1": (p.B, 0),
        "span_J2": (p.B, 0),
        "span_J2T": (p.B, 0),
        "span_J1T": (p.B, 0),
    }


def start(p, normals, noises, rank, tolerance, most):
    """Fields without time, and what is carried through time as it starts."""
    sites = normals["J1"].shape[0]
    size_J1, size_J2, size_J2T, size_J1T = sizes(p, most)
    state = Carried(finite=jnp.zeros((), int))
    state.span_J1 = empty_span(sites, size_J1)
    state.span_J2 = empty_span(sites, size_J2)
    state.span_J2T = empty_span(sites, size_J2T)
    state.span_J1T = empty_span(sites, size_J1T)
    state.spike1_1_before = jnp.zeros((sites, p.B))
    state.V_1_before = jnp.zeros((sites, p.D))
    state.pushed_1_before = jnp.zeros((sites, p.B))
    state.w_1_before = jnp.zeros((sites, 1))
    state.phi1_rest_past = jnp.zeros((p.T + 1, p.B, beyond(rank, p.B * (p.T + 1), p.B)))
    state.phi1_past = jnp.zeros((p.B * (p.T + 1), size_J1))
    state.phi1_to_J1T = jnp.zeros((p.B * (p.T + 1), size_J1T))
    state.spike2_past = jnp.zeros((p.B * (p.T + 1), size_J1T))
    state.phi2_rest_past = jnp.zeros((p.T + 1, p.B, beyond(rank, p.B * (p.T + 1), p.B)))
    state.phi2_past = jnp.zeros((p.B * (p.T + 1), size_J2))
    state.phi2_to_J2T = jnp.zeros((p.B * (p.T + 1), size_J2T))
    state.spike3_past = jnp.zeros((p.B * (p.T + 1), size_J2T))
    state.g3_rest_past = jnp.zeros((p.T + 1, p.B, beyond(rank, p.B * (p.T + 1), p.B)))
    state.g3_past = jnp.zeros((p.B * (p.T + 1), size_J2T))
    state.g3_to_J2 = jnp.zeros((p.B * (p.T + 1), size_J2))
    state.g2_rest_past = jnp.zeros((p.T + 1, p.B, beyond(rank, p.B * (p.T + 1), p.B)))
    state.g2_past = jnp.zeros((p.B * (p.T + 1), size_J1T))
    state.g2_to_J1 = jnp.zeros((p.B * (p.T + 1), size_J1))
    state.spike2_rest_past = jnp.zeros((p.T + 1, p.B, beyond(rank, p.B * (p.T + 1), p.B)))
    state.spike2_to_J1 = jnp.zeros((p.B * (p.T + 1), size_J1))
    state.spike3_rest_past = jnp.zeros((p.T + 1, p.B, beyond(rank, p.B * (p.T + 1), p.B)))
    state.spike3_to_J2 = jnp.zeros((p.B * (p.T + 1), size_J2))
    state.loss_series = jnp.zeros((p.T + 1,))
    state.prediction_series = jnp.zeros((p.T + 1, p.B))
    state.features1_series = jnp.zeros((p.T + 1,))
    state.features2_series = jnp.zeros((p.T + 1,))
    state.features3_series = jnp.zeros((p.T + 1,))
    state.gradients1_series = jnp.zeros((p.T + 1,))
    state.gradients2_series = jnp.zeros((p.T + 1,))
    state.gradients3_series = jnp.zeros((p.T + 1,))
    return state


def step(p, normals, noises, rank, tolerance, most, t, state):
    """All fields of one time, each as sites x labels; the state is changed in place."""
    when = jnp.arange(p.T + 1)
    # V(0) = V0
    # V(t) = V(t-1) + (eta gamma/sqrt(D)) x(t-1)^T spike1(t-1)
    V = jnp.where(
        jnp.equal(t, 0),
        (p.sigma * drawn(normals["V0"])),
        (p.eta * p.gamma / jnp.sqrt(p.D)) * (state.spike1_1_before @ given(p.x, t, 1)) + state.V_1_before,
    )
    # w(0) = w0
    # w(t) = eta gamma total(pushed(t-1)) + w(t-1)
    w = jnp.where(
        jnp.equal(t, 0),
        (p.sigma * drawn(normals["w0"])),
        (p.eta * p.gamma) * total(state.pushed_1_before) + state.w_1_before,
    )
    # h1(t) = x(t) V(t)/sqrt(D)
    h1 = (1 / jnp.sqrt(p.D)) * (V @ given(p.x, t, 0).T)
    # phi1(t) = tanh(h1(t))
    phi1 = jnp.tanh(h1)
    phi1_in_J1, phi1_beyond_J1, state.span_J1 = extend(state.span_J1, phi1, tolerance)
    state.phi1_rest_past = store_rest(state.phi1_rest_past, phi1_beyond_J1, t)
    state.phi1_past = store(state.phi1_past, phi1_in_J1, t)
    phi1_answers_J1T = answers(phi1, noises["J1T"], state.span_J1T)
    state.phi1_to_J1T = store(state.phi1_to_J1T, phi1_answers_J1T, t)
    # J1_phi1(t) = u[J1_phi1](t) + sigma^2 sum_{s<t} R[phi1,J1T_g2](t,s) g2(s)
    # <u[J1_phi1](t) u[J1_phi1](s)> = sigma^2 C[phi1,phi1](t,s)
    J1_phi1 = p.sigma * noise(
        noises["J1"], phi1_in_J1, drawn_at(normals["J1_beyond"], t), phi1_beyond_J1
    ) + p.sigma * expressed(state.span_J1T, phi1_answers_J1T)
    # h2(t) = J1_phi1(t) + eta gamma sum_{s<t} <phi1(t) phi1(s)> spike2(s)
    h2 = (
        expressed(
            state.span_J1T,
            weighted(phi1_in_J1 @ state.phi1_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ state.spike2_past,
        )
        + J1_phi1
    )
    # phi2(t) = tanh(h2(t))
    phi2 = jnp.tanh(h2)
    phi2_in_J2, phi2_beyond_J2, state.span_J2 = extend(state.span_J2, phi2, tolerance)
    state.phi2_rest_past = store_rest(state.phi2_rest_past, phi2_beyond_J2, t)
    state.phi2_past = store(state.phi2_past, phi2_in_J2, t)
    phi2_answers_J2T = answers(phi2, noises["J2T"], state.span_J2T)
    state.phi2_to_J2T = store(state.phi2_to_J2T, phi2_answers_J2T, t)
    # J2_phi2(t) = u[J2_phi2](t) + sigma^2 sum_{s<t} R[phi2,J2T_g3](t,s) g3(s)
    # <u[J2_phi2](t) u[J2_phi2](s)> = sigma^2 C[phi2,phi2](t,s)
    J2_phi2 = p.sigma * noise(
        noises["J2"], phi2_in_J2, drawn_at(normals["J2_beyond"], t), phi2_beyond_J2
    ) + p.sigma * expressed(state.span_J2T, phi2_answers_J2T)
    # h3(t) = J2_phi2(t) + eta gamma sum_{s<t} <phi2(t) phi2(s)> spike3(s)
    h3 = (
        expressed(
            state.span_J2T,
            weighted(phi2_in_J2 @ state.phi2_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ state.spike3_past,
        )
        + J2_phi2
    )
    # phi3(t) = tanh(h3(t))
    phi3 = jnp.tanh(h3)
    # pushed(t) = y(t) phi3(t)/B - <phi3(t) w(t)> phi3(t)/(B gamma)
    pushed = (given(p.y, t, 0) / p.B) * phi3 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * phi3
    # g3(t) = w(t) - tanh(h3(t))^2 w(t)
    g3 = -w * jnp.tanh(h3) ** 2 + w
    g3_in_J2T, g3_beyond_J2T, state.span_J2T = extend(state.span_J2T, g3, tolerance)
    state.g3_rest_past = store_rest(state.g3_rest_past, g3_beyond_J2T, t)
    state.g3_past = store(state.g3_past, g3_in_J2T, t)
    g3_answers_J2 = answers(g3, noises["J2"], state.span_J2)
    state.g3_to_J2 = store(state.g3_to_J2, g3_answers_J2, t)
    # J2T_g3(t) = u[J2T_g3](t) + sigma^2 sum_{s<=t} R[g3,J2_phi2](t,s) phi2(s)
    # <u[J2T_g3](t) u[J2T_g3](s)> = sigma^2 C[g3,g3](t,s)
    J2T_g3 = p.sigma * noise(
        noises["J2T"], g3_in_J2T, drawn_at(normals["J2T_beyond"], t), g3_beyond_J2T
    ) + p.sigma * expressed(state.span_J2, g3_answers_J2)
    # z2(t) = J2T_g3(t) + eta gamma sum_{s<t} <g3(t) spike3(s)> phi2(s)
    z2 = (
        expressed(
            state.span_J2,
            weighted(g3_in_J2T @ state.spike3_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ state.phi2_past,
        )
        + J2T_g3
    )
    # g2(t) = z2(t) - tanh(h2(t))^2 z2(t)
    g2 = -z2 * jnp.tanh(h2) ** 2 + z2
    g2_in_J1T, g2_beyond_J1T, state.span_J1T = extend(state.span_J1T, g2, tolerance)
    state.g2_rest_past = store_rest(state.g2_rest_past, g2_beyond_J1T, t)
    state.g2_past = store(state.g2_past, g2_in_J1T, t)
    g2_answers_J1 = answers(g2, noises["J1"], state.span_J1)
    state.g2_to_J1 = store(state.g2_to_J1, g2_answers_J1, t)
    # J1T_g2(t) = u[J1T_g2](t) + sigma^2 sum_{s<=t} R[g2,J1_phi1](t,s) phi1(s)
    # <u[J1T_g2](t) u[J1T_g2](s)> = sigma^2 C[g2,g2](t,s)
    J1T_g2 = p.sigma * noise(
        noises["J1T"], g2_in_J1T, drawn_at(normals["J1T_beyond"], t), g2_beyond_J1T
    ) + p.sigma * expressed(state.span_J1, g2_answers_J1)
    # z1(t) = J1T_g2(t) + eta gamma sum_{s<t} <g2(t) spike2(s)> phi1(s)
    z1 = (
        expressed(
            state.span_J1,
            weighted(g2_in_J1T @ state.spike2_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ state.phi1_past,
        )
        + J1T_g2
    )
    # g1(t) = z1(t) - tanh(h1(t))^2 z1(t)
    g1 = -z1 * jnp.tanh(h1) ** 2 + z1
    # spike1(t) = y(t) g1(t)/B - <phi3(t) w(t)> g1(t)/(B gamma)
    spike1 = (given(p.y, t, 0) / p.B) * g1 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * g1
    spike2_in_J1T = scaled_rows(given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g2_in_J1T)
    spike2_beyond_J1T = scaled_rows(
        given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g2_beyond_J1T
    )
    state.spike2_rest_past = store_rest(state.spike2_rest_past, spike2_beyond_J1T, t)
    state.spike2_past = store(state.spike2_past, spike2_in_J1T, t)
    spike2_answers_J1 = scaled_rows(
        given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g2_answers_J1
    )
    state.spike2_to_J1 = store(state.spike2_to_J1, spike2_answers_J1, t)
    spike3_in_J2T = scaled_rows(given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g3_in_J2T)
    spike3_beyond_J2T = scaled_rows(
        given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g3_beyond_J2T
    )
    state.spike3_rest_past = store_rest(state.spike3_rest_past, spike3_beyond_J2T, t)
    state.spike3_past = store(state.spike3_past, spike3_in_J2T, t)
    spike3_answers_J2 = scaled_rows(
        given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g3_answers_J2
    )
    state.spike3_to_J2 = store(state.spike3_to_J2, spike3_answers_J2, t)
    # loss = total((<phi3(t) w(t)>/gamma - y(t))^2/(2 B))
    state.loss_series = record(
        state.loss_series,
        over_labels((1 / 2) * (-given(p.y, t, 0) + mean_by_label(phi3 * w) / p.gamma) ** 2 / p.B),
        t,
    )
    # prediction = <phi3(t) w(t)>/gamma
    state.prediction_series = record(state.prediction_series, mean_by_label(phi3 * w) / p.gamma, t)
    # features1 = <phi1(t)^2>
    state.features1_series = record(state.features1_series, label_mean(mean_by_label(phi1**2)), t)
    # features2 = <phi2(t)^2>
    state.features2_series = record(state.features2_series, label_mean(mean_by_label(phi2**2)), t)
    # features3 = <phi3(t)^2>
    state.features3_series = record(state.features3_series, label_mean(mean_by_label(phi3**2)), t)
    # gradients1 = <g1(t)^2>
    state.gradients1_series = record(state.gradients1_series, label_mean(mean_by_label(g1**2)), t)
    # gradients2 = <g2(t)^2>
    state.gradients2_series = record(state.gradients2_series, label_mean(mean_by_label(g2**2)), t)
    # gradients3 = <g3(t)^2>
    state.gradients3_series = record(state.gradients3_series, label_mean(mean_by_label(g3**2)), t)
    state.spike1_1_before = spike1
    state.V_1_before = V
    state.pushed_1_before = pushed
    state.w_1_before = w
    state.finite = still_finite(
        state.finite,
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
        ),
    )
    return state


def results(p, normals, rank, tolerance, state):
    """Observables at all times, and a report on the directions; the state is changed in place."""
    observables = {
        "loss": state.loss_series,
        "prediction": state.prediction_series,
        "features1": state.features1_series,
        "features2": state.features2_series,
        "features3": state.features3_series,
        "gradients1": state.gradients1_series,
        "gradients2": state.gradients2_series,
        "gradients3": state.gradients3_series,
    }
    return observables, report_on((state.span_J1, state.span_J2, state.span_J2T, state.span_J1T), ())


def forward_pass(p, normals, rank=None, tolerance=1e-12):
    """What moments are made of (see moments_of), observables at all times, the number of times before anything
    overflowed, and a report on the directions that are remembered.

    normals: as `shapes` says, with the sites in front. rank: most directions to remember of each span of
    fields, all if None. tolerance: share of its variance below which a new direction is left out.
    Whole-number parameters fix shapes.
    """

    def begin(most):
        noises = narrowed(normals, shapes(p, most), ("J1", "J2", "J2T", "J1T"))
        return start(p, normals, noises, rank, tolerance, most)

    def move(most):
        noises = narrowed(normals, shapes(p, most), ("J1", "J2", "J2T", "J1T"))
        return partial(step, p, normals, noises, rank, tolerance, most)

    state = forward(p.T + 1, rank, begin, move, joining(p))
    observables, report = results(p, normals, rank, tolerance, state)
    kept = Carried(
        g2_past=state.g2_past,
        g2_rest_past=state.g2_rest_past,
        spike2_past=state.spike2_past,
        spike2_rest_past=state.spike2_rest_past,
        g3_past=state.g3_past,
        g3_rest_past=state.g3_rest_past,
        spike3_past=state.spike3_past,
        spike3_rest_past=state.spike3_rest_past,
        phi1_past=state.phi1_past,
        phi1_rest_past=state.phi1_rest_past,
        phi2_past=state.phi2_past,
        phi2_rest_past=state.phi2_rest_past,
        g2_to_J1=state.g2_to_J1,
        g3_to_J2=state.g3_to_J2,
        phi1_to_J1T=state.phi1_to_J1T,
        phi2_to_J2T=state.phi2_to_J2T,
        spike2_to_J1=state.spike2_to_J1,
        spike3_to_J2=state.spike3_to_J2,
    )
    return kept, observables, state.finite, report


def moments_of(p, state):
    """What order parameters are made of, from what is kept of a pass."""
    # the noises of J1 in terms of its normals
    noise_J1 = p.sigma * first(state.phi1_past, p.B * p.T)
    # the noises of J2 in terms of its normals
    noise_J2 = p.sigma * first(state.phi2_past, p.B * p.T)
    # the noises of J1T in terms of its normals
    noise_J1T = p.sigma * first(state.g2_past, p.B * p.T)
    # the noises of J2T in terms of its normals
    noise_J2T = p.sigma * first(state.g3_past, p.B * p.T)
    return {
        ("C", "g2", "g2"): with_rest(
            first(state.g2_past, p.B * p.T) @ first(state.g2_past, p.B * p.T).T,
            state.g2_rest_past,
            state.g2_rest_past,
            p.T,
        ),
        ("C", "g2", "spike2"): with_rest(
            first(state.g2_past, p.B * p.T) @ first(state.spike2_past, p.B * p.T).T,
            state.g2_rest_past,
            state.spike2_rest_past,
            p.T,
        ),
        ("C", "g3", "g3"): with_rest(
            first(state.g3_past, p.B * p.T) @ first(state.g3_past, p.B * p.T).T,
            state.g3_rest_past,
            state.g3_rest_past,
            p.T,
        ),
        ("C", "g3", "spike3"): with_rest(
            first(state.g3_past, p.B * p.T) @ first(state.spike3_past, p.B * p.T).T,
            state.g3_rest_past,
            state.spike3_rest_past,
            p.T,
        ),
        ("C", "phi1", "phi1"): with_rest(
            first(state.phi1_past, p.B * p.T) @ first(state.phi1_past, p.B * p.T).T,
            state.phi1_rest_past,
            state.phi1_rest_past,
            p.T,
        ),
        ("C", "phi2", "phi2"): with_rest(
            first(state.phi2_past, p.B * p.T) @ first(state.phi2_past, p.B * p.T).T,
            state.phi2_rest_past,
            state.phi2_rest_past,
            p.T,
        ),
        ("C", "spike2", "spike2"): with_rest(
            first(state.spike2_past, p.B * p.T) @ first(state.spike2_past, p.B * p.T).T,
            state.spike2_rest_past,
            state.spike2_rest_past,
            p.T,
        ),
        ("C", "spike3", "spike3"): with_rest(
            first(state.spike3_past, p.B * p.T) @ first(state.spike3_past, p.B * p.T).T,
            state.spike3_rest_past,
            state.spike3_rest_past,
            p.T,
        ),
        ("G", "J1"): noise_J1 @ noise_J1.T,
        ("G", "J2"): noise_J2 @ noise_J2.T,
        ("G", "J1T"): noise_J1T @ noise_J1T.T,
        ("G", "J2T"): noise_J2T @ noise_J2T.T,
        ("K", "g2", "J1"): first(state.g2_to_J1, p.B * p.T) @ noise_J1.T,
        ("K", "g3", "J2"): first(state.g3_to_J2, p.B * p.T) @ noise_J2.T,
        ("K", "phi1", "J1T"): first(state.phi1_to_J1T, p.B * p.T) @ noise_J1T.T,
        ("K", "phi2", "J2T"): first(state.phi2_to_J2T, p.B * p.T) @ noise_J2T.T,
        ("K", "spike2", "J1"): first(state.spike2_to_J1, p.B * p.T) @ noise_J1.T,
        ("K", "spike3", "J2"): first(state.spike3_to_J2, p.B * p.T) @ noise_J2.T,
    }


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
    moments_of,
    order_parameters,
    footprint,
    groups=(("J2", "w0"), ("J1", "J2T"), ("J1T", "V0")),
    paired=True,
    responses="stein",
)
