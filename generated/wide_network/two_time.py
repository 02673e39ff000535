# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Two-time functions of all fields by sampling: the forward pass again, with slopes along random kicks."""

from functools import partial

import jax.numpy as jnp

from numerics.runtime.exact import store, weighted
from numerics.runtime.interface import SampledTwoTime
from numerics.runtime.sampled import (
    Carried,
    answers,
    beyond,
    drawn,
    drawn_at,
    empty_span,
    expressed,
    extend,
    forward,
    given,
    law_and_slopes,
    mean_by_label,
    mixed_slopes,
    narrowed,
    noise,
    report_on,
    room,
    scaled_rows,
    scaled_slopes,
    still_finite,
    total,
)
from numerics.runtime.two_time import (
    Kept,
    drawn_slopes,
    drawn_values,
    keep,
    kick_at,
    kicked,
    memory_slopes,
    no_slopes_yet,
    numbers_kept,
    past_slopes,
    room_for,
    sampled_two_time,
    tangents,
)


def sizes(p, most):
    """How many directions there is room for in each span of fields, if in none for more than `most`."""
    return (
        room(p.B * (p.T + 1), most),  # size_J1: phi1
        room(p.B * (p.T + 1), most),  # size_J2: phi2
        room(p.B * (p.T + 1), most),  # size_J2T: g3
        room(p.B * (p.T + 1), most),  # size_J1T: g2
    )


def shapes(p, rank, wanted):
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
        "kick_V": (kicked(wanted, "V", p.T + 1), p.D),
        "kick_w": (kicked(wanted, "w", p.T + 1), 1),
        "kick_h1": (kicked(wanted, "h1", p.T + 1), p.B),
        "kick_phi1": (kicked(wanted, "phi1", p.T + 1), p.B),
        "kick_J1_phi1": (kicked(wanted, "J1_phi1", p.T + 1), p.B),
        "kick_h2": (kicked(wanted, "h2", p.T + 1), p.B),
        "kick_phi2": (kicked(wanted, "phi2", p.T + 1), p.B),
        "kick_J2_phi2": (kicked(wanted, "J2_phi2", p.T + 1), p.B),
        "kick_h3": (kicked(wanted, "h3", p.T + 1), p.B),
        "kick_phi3": (kicked(wanted, "phi3", p.T + 1), p.B),
        "kick_pushed": (kicked(wanted, "pushed", p.T + 1), p.B),
        "kick_g3": (kicked(wanted, "g3", p.T + 1), p.B),
        "kick_J2T_g3": (kicked(wanted, "J2T_g3", p.T + 1), p.B),
        "kick_z2": (kicked(wanted, "z2", p.T + 1), p.B),
        "kick_g2": (kicked(wanted, "g2", p.T + 1), p.B),
        "kick_J1T_g2": (kicked(wanted, "J1T_g2", p.T + 1), p.B),
        "kick_z1": (kicked(wanted, "z1", p.T + 1), p.B),
        "kick_g1": (kicked(wanted, "g1", p.T + 1), p.B),
        "kick_spike1": (kicked(wanted, "spike1", p.T + 1), p.B),
        "kick_spike2": (kicked(wanted, "spike2", p.T + 1), p.B),
        "kick_spike3": (kicked(wanted, "spike3", p.T + 1), p.B),
        "kick_V0": (kicked(wanted, "V0", 1), p.D),
        "kick_w0": (kicked(wanted, "w0", 1), 1),
    }


def footprint(p, rank, wanted):
    """How many numbers are kept for one site of each kind."""
    size_J1, size_J2, size_J2T, size_J1T = sizes(p, rank)
    return (
        numbers_kept(wanted, "J1T_g2", p.B * (p.T + 1))
        + numbers_kept(wanted, "J1_phi1", p.B * (p.T + 1))
        + numbers_kept(wanted, "J2T_g3", p.B * (p.T + 1))
        + numbers_kept(wanted, "J2_phi2", p.B * (p.T + 1))
        + numbers_kept(wanted, "V", p.D * (p.T + 1))
        + numbers_kept(wanted, "V0", p.D)
        + numbers_kept(wanted, "g1", p.B * (p.T + 1))
        + numbers_kept(wanted, "g2", p.B * (p.T + 1))
        + numbers_kept(wanted, "g3", p.B * (p.T + 1))
        + numbers_kept(wanted, "h1", p.B * (p.T + 1))
        + numbers_kept(wanted, "h2", p.B * (p.T + 1))
        + numbers_kept(wanted, "h3", p.B * (p.T + 1))
        + numbers_kept(wanted, "phi1", p.B * (p.T + 1))
        + numbers_kept(wanted, "phi2", p.B * (p.T + 1))
        + numbers_kept(wanted, "phi3", p.B * (p.T + 1))
        + numbers_kept(wanted, "pushed", p.B * (p.T + 1))
        + numbers_kept(wanted, "spike1", p.B * (p.T + 1))
        + numbers_kept(wanted, "spike2", p.B * (p.T + 1))
        + numbers_kept(wanted, "spike3", p.B * (p.T + 1))
        + numbers_kept(wanted, "w", p.T + 1)
        + numbers_kept(wanted, "w0", 1)
        + numbers_kept(wanted, "z1", p.B * (p.T + 1))
        + numbers_kept(wanted, "z2", p.B * (p.T + 1))
        + (tangents(wanted) + 1) * (6 * p.B + p.D + size_J1)
        + (tangents(wanted) + 1) * (6 * p.B + size_J2T + 1)
        + (tangents(wanted) + 1) * (7 * p.B + size_J1T + size_J2)
    )


def joining(p):
    """How many directions can join each span of fields at one time, and how many before the first."""
    return {
        "span_J1": (p.B, 0),
        "span_J2": (p.B, 0),
        "span_J2T": (p.B, 0),
        "span_J1T": (p.B, 0),
    }


def start(p, normals, noises, rank, tolerance, wanted, most):
    """Fields without time, and what is carried through time as it starts."""
    sites = normals["J1"].shape[0]
    size_J1, size_J2, size_J2T, size_J1T = sizes(p, most)
    state = Carried(finite=jnp.zeros((), int))
    state.span_J1 = empty_span(sites, size_J1)
    state.span_J2 = empty_span(sites, size_J2)
    state.span_J2T = empty_span(sites, size_J2T)
    state.span_J1T = empty_span(sites, size_J1T)
    state.spike1_1_before = jnp.zeros((sites, p.B))
    state.d_spike1_1_before = jnp.zeros((sites, p.B, tangents(wanted)))
    state.V_1_before = jnp.zeros((sites, p.D))
    state.d_V_1_before = jnp.zeros((sites, p.D, tangents(wanted)))
    state.d_V_past = no_slopes_yet(p.T + 1, sites, p.D, tangents(wanted))
    state.all_V = room_for(wanted, "V", p.T + 1, sites, p.D)
    state.pushed_1_before = jnp.zeros((sites, p.B))
    state.d_pushed_1_before = jnp.zeros((sites, p.B, tangents(wanted)))
    state.w_1_before = jnp.zeros((sites, 1))
    state.d_w_1_before = jnp.zeros((sites, 1, tangents(wanted)))
    state.d_w_past = no_slopes_yet(p.T + 1, sites, 1, tangents(wanted))
    state.all_w = room_for(wanted, "w", p.T + 1, sites, 1)
    state.d_h1_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_h1 = room_for(wanted, "h1", p.T + 1, sites, p.B)
    state.d_phi1_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_phi1 = room_for(wanted, "phi1", p.T + 1, sites, p.B)
    state.phi1_past = jnp.zeros((p.B * (p.T + 1), size_J1))
    state.d_g2_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.d_J1_phi1_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_J1_phi1 = room_for(wanted, "J1_phi1", p.T + 1, sites, p.B)
    state.spike2_past = jnp.zeros((p.B * (p.T + 1), size_J1T))
    state.d_spike2_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.d_h2_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_h2 = room_for(wanted, "h2", p.T + 1, sites, p.B)
    state.d_phi2_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_phi2 = room_for(wanted, "phi2", p.T + 1, sites, p.B)
    state.phi2_past = jnp.zeros((p.B * (p.T + 1), size_J2))
    state.d_g3_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.d_J2_phi2_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_J2_phi2 = room_for(wanted, "J2_phi2", p.T + 1, sites, p.B)
    state.spike3_past = jnp.zeros((p.B * (p.T + 1), size_J2T))
    state.d_spike3_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.d_h3_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_h3 = room_for(wanted, "h3", p.T + 1, sites, p.B)
    state.d_phi3_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_phi3 = room_for(wanted, "phi3", p.T + 1, sites, p.B)
    state.d_pushed_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_pushed = room_for(wanted, "pushed", p.T + 1, sites, p.B)
    state.all_g3 = room_for(wanted, "g3", p.T + 1, sites, p.B)
    state.d_J2T_g3_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_J2T_g3 = room_for(wanted, "J2T_g3", p.T + 1, sites, p.B)
    state.d_z2_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_z2 = room_for(wanted, "z2", p.T + 1, sites, p.B)
    state.all_g2 = room_for(wanted, "g2", p.T + 1, sites, p.B)
    state.d_J1T_g2_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_J1T_g2 = room_for(wanted, "J1T_g2", p.T + 1, sites, p.B)
    state.d_z1_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_z1 = room_for(wanted, "z1", p.T + 1, sites, p.B)
    state.d_g1_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_g1 = room_for(wanted, "g1", p.T + 1, sites, p.B)
    state.d_spike1_past = no_slopes_yet(p.T + 1, sites, p.B, tangents(wanted))
    state.all_spike1 = room_for(wanted, "spike1", p.T + 1, sites, p.B)
    state.all_spike2 = room_for(wanted, "spike2", p.T + 1, sites, p.B)
    state.all_spike3 = room_for(wanted, "spike3", p.T + 1, sites, p.B)
    return state


def step(p, normals, noises, rank, tolerance, wanted, most, t, state):
    """All fields of one time, each as sites x labels; the state is changed in place."""
    when = jnp.arange(p.T + 1)
    # V(0) = V0
    # V(t) = V(t-1) + (eta gamma/sqrt(D)) x(t-1)^T spike1(t-1)
    V = jnp.where(
        jnp.equal(t, 0),
        (p.sigma * drawn(normals["V0"])),
        (p.eta * p.gamma / jnp.sqrt(p.D)) * (state.spike1_1_before @ given(p.x, t, 1)) + state.V_1_before,
    )
    d_V = jnp.where(
        jnp.equal(t, 0),
        kick_at(wanted, "V0", normals["kick_V0"]),
        (p.eta * p.gamma / jnp.sqrt(p.D)) * mixed_slopes(state.d_spike1_1_before, given(p.x, t, 1))
        + state.d_V_1_before,
    )
    d_V = d_V + kick_at(wanted, "V", normals["kick_V"], t)
    state.d_V_past = keep(state.d_V_past, d_V, t)
    state.all_V = keep(state.all_V, V, t)
    # w(0) = w0
    # w(t) = eta gamma total(pushed(t-1)) + w(t-1)
    w = jnp.where(
        jnp.equal(t, 0),
        (p.sigma * drawn(normals["w0"])),
        (p.eta * p.gamma) * total(state.pushed_1_before) + state.w_1_before,
    )
    d_w = jnp.where(
        jnp.equal(t, 0),
        kick_at(wanted, "w0", normals["kick_w0"]),
        (p.eta * p.gamma) * total(state.d_pushed_1_before) + state.d_w_1_before,
    )
    d_w = d_w + kick_at(wanted, "w", normals["kick_w"], t)
    state.d_w_past = keep(state.d_w_past, d_w, t)
    state.all_w = keep(state.all_w, w, t)
    # h1(t) = x(t) V(t)/sqrt(D)
    h1 = (1 / jnp.sqrt(p.D)) * (V @ given(p.x, t, 0).T)
    d_h1 = (1 / jnp.sqrt(p.D)) * mixed_slopes(d_V, given(p.x, t, 0).T)
    d_h1 = d_h1 + kick_at(wanted, "h1", normals["kick_h1"], t)
    state.d_h1_past = keep(state.d_h1_past, d_h1, t)
    state.all_h1 = keep(state.all_h1, h1, t)
    # phi1(t) = tanh(h1(t))
    phi1, d_phi1 = law_and_slopes(lambda h1_: jnp.tanh(h1_), (h1,), (d_h1,))
    d_phi1 = d_phi1 + kick_at(wanted, "phi1", normals["kick_phi1"], t)
    state.d_phi1_past = keep(state.d_phi1_past, d_phi1, t)
    state.all_phi1 = keep(state.all_phi1, phi1, t)
    phi1_in_J1, phi1_beyond_J1, state.span_J1 = extend(state.span_J1, phi1, tolerance)
    state.phi1_past = store(state.phi1_past, phi1_in_J1, t)
    phi1_answers_J1T = answers(phi1, noises["J1T"], state.span_J1T)
    # J1_phi1(t) = u[J1_phi1](t) + sigma^2 sum_{s<t} R[phi1,J1T_g2](t,s) g2(s)
    # <u[J1_phi1](t) u[J1_phi1](s)> = sigma^2 C[phi1,phi1](t,s)
    J1_phi1 = p.sigma * noise(
        noises["J1"], phi1_in_J1, drawn_at(normals["J1_beyond"], t), phi1_beyond_J1
    ) + p.sigma * expressed(state.span_J1T, phi1_answers_J1T)
    d_J1_phi1 = (p.sigma**2) * memory_slopes(
        wanted, "J1T_g2", d_phi1, normals["kick_J1T_g2"], state.d_g2_past, t, 0, 1
    )
    d_J1_phi1 = d_J1_phi1 + kick_at(wanted, "J1_phi1", normals["kick_J1_phi1"], t)
    state.d_J1_phi1_past = keep(state.d_J1_phi1_past, d_J1_phi1, t)
    state.all_J1_phi1 = keep(state.all_J1_phi1, J1_phi1, t)
    # h2(t) = J1_phi1(t) + eta gamma sum_{s<t} <phi1(t) phi1(s)> spike2(s)
    h2 = (
        expressed(
            state.span_J1T,
            weighted(phi1_in_J1 @ state.phi1_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ state.spike2_past,
        )
        + J1_phi1
    )
    d_h2 = (
        past_slopes(
            weighted(phi1_in_J1 @ state.phi1_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B),
            state.d_spike2_past,
            p.T + 1,
        )
        + d_J1_phi1
    )
    d_h2 = d_h2 + kick_at(wanted, "h2", normals["kick_h2"], t)
    state.d_h2_past = keep(state.d_h2_past, d_h2, t)
    state.all_h2 = keep(state.all_h2, h2, t)
    # phi2(t) = tanh(h2(t))
    phi2, d_phi2 = law_and_slopes(lambda h2_: jnp.tanh(h2_), (h2,), (d_h2,))
    d_phi2 = d_phi2 + kick_at(wanted, "phi2", normals["kick_phi2"], t)
    state.d_phi2_past = keep(state.d_phi2_past, d_phi2, t)
    state.all_phi2 = keep(state.all_phi2, phi2, t)
    phi2_in_J2, phi2_beyond_J2, state.span_J2 = extend(state.span_J2, phi2, tolerance)
    state.phi2_past = store(state.phi2_past, phi2_in_J2, t)
    phi2_answers_J2T = answers(phi2, noises["J2T"], state.span_J2T)
    # J2_phi2(t) = u[J2_phi2](t) + sigma^2 sum_{s<t} R[phi2,J2T_g3](t,s) g3(s)
    # <u[J2_phi2](t) u[J2_phi2](s)> = sigma^2 C[phi2,phi2](t,s)
    J2_phi2 = p.sigma * noise(
        noises["J2"], phi2_in_J2, drawn_at(normals["J2_beyond"], t), phi2_beyond_J2
    ) + p.sigma * expressed(state.span_J2T, phi2_answers_J2T)
    d_J2_phi2 = (p.sigma**2) * memory_slopes(
        wanted, "J2T_g3", d_phi2, normals["kick_J2T_g3"], state.d_g3_past, t, 0, 1
    )
    d_J2_phi2 = d_J2_phi2 + kick_at(wanted, "J2_phi2", normals["kick_J2_phi2"], t)
    state.d_J2_phi2_past = keep(state.d_J2_phi2_past, d_J2_phi2, t)
    state.all_J2_phi2 = keep(state.all_J2_phi2, J2_phi2, t)
    # h3(t) = J2_phi2(t) + eta gamma sum_{s<t} <phi2(t) phi2(s)> spike3(s)
    h3 = (
        expressed(
            state.span_J2T,
            weighted(phi2_in_J2 @ state.phi2_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ state.spike3_past,
        )
        + J2_phi2
    )
    d_h3 = (
        past_slopes(
            weighted(phi2_in_J2 @ state.phi2_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B),
            state.d_spike3_past,
            p.T + 1,
        )
        + d_J2_phi2
    )
    d_h3 = d_h3 + kick_at(wanted, "h3", normals["kick_h3"], t)
    state.d_h3_past = keep(state.d_h3_past, d_h3, t)
    state.all_h3 = keep(state.all_h3, h3, t)
    # phi3(t) = tanh(h3(t))
    phi3, d_phi3 = law_and_slopes(lambda h3_: jnp.tanh(h3_), (h3,), (d_h3,))
    d_phi3 = d_phi3 + kick_at(wanted, "phi3", normals["kick_phi3"], t)
    state.d_phi3_past = keep(state.d_phi3_past, d_phi3, t)
    state.all_phi3 = keep(state.all_phi3, phi3, t)
    # pushed(t) = y(t) phi3(t)/B - <phi3(t) w(t)> phi3(t)/(B gamma)
    pushed = (given(p.y, t, 0) / p.B) * phi3 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * phi3
    d_pushed = scaled_slopes(given(p.y, t, 0) / p.B, d_phi3) + scaled_slopes(
        -mean_by_label(phi3 * w) / (p.B * p.gamma), d_phi3
    )
    d_pushed = d_pushed + kick_at(wanted, "pushed", normals["kick_pushed"], t)
    state.d_pushed_past = keep(state.d_pushed_past, d_pushed, t)
    state.all_pushed = keep(state.all_pushed, pushed, t)
    # g3(t) = w(t) - tanh(h3(t))^2 w(t)
    g3, d_g3 = law_and_slopes(lambda h3__, w_: -w_ * jnp.tanh(h3__) ** 2 + w_, (h3, w), (d_h3, d_w))
    d_g3 = d_g3 + kick_at(wanted, "g3", normals["kick_g3"], t)
    state.d_g3_past = keep(state.d_g3_past, d_g3, t)
    state.all_g3 = keep(state.all_g3, g3, t)
    g3_in_J2T, g3_beyond_J2T, state.span_J2T = extend(state.span_J2T, g3, tolerance)
    g3_answers_J2 = answers(g3, noises["J2"], state.span_J2)
    # J2T_g3(t) = u[J2T_g3](t) + sigma^2 sum_{s<=t} R[g3,J2_phi2](t,s) phi2(s)
    # <u[J2T_g3](t) u[J2T_g3](s)> = sigma^2 C[g3,g3](t,s)
    J2T_g3 = p.sigma * noise(
        noises["J2T"], g3_in_J2T, drawn_at(normals["J2T_beyond"], t), g3_beyond_J2T
    ) + p.sigma * expressed(state.span_J2, g3_answers_J2)
    d_J2T_g3 = (p.sigma**2) * memory_slopes(
        wanted, "J2_phi2", d_g3, normals["kick_J2_phi2"], state.d_phi2_past, t, 0, 0
    )
    d_J2T_g3 = d_J2T_g3 + kick_at(wanted, "J2T_g3", normals["kick_J2T_g3"], t)
    state.d_J2T_g3_past = keep(state.d_J2T_g3_past, d_J2T_g3, t)
    state.all_J2T_g3 = keep(state.all_J2T_g3, J2T_g3, t)
    # z2(t) = J2T_g3(t) + eta gamma sum_{s<t} <g3(t) spike3(s)> phi2(s)
    z2 = (
        expressed(
            state.span_J2,
            weighted(g3_in_J2T @ state.spike3_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ state.phi2_past,
        )
        + J2T_g3
    )
    d_z2 = (
        past_slopes(
            weighted(g3_in_J2T @ state.spike3_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B),
            state.d_phi2_past,
            p.T + 1,
        )
        + d_J2T_g3
    )
    d_z2 = d_z2 + kick_at(wanted, "z2", normals["kick_z2"], t)
    state.d_z2_past = keep(state.d_z2_past, d_z2, t)
    state.all_z2 = keep(state.all_z2, z2, t)
    # g2(t) = z2(t) - tanh(h2(t))^2 z2(t)
    g2, d_g2 = law_and_slopes(lambda h2__, z2_: -z2_ * jnp.tanh(h2__) ** 2 + z2_, (h2, z2), (d_h2, d_z2))
    d_g2 = d_g2 + kick_at(wanted, "g2", normals["kick_g2"], t)
    state.d_g2_past = keep(state.d_g2_past, d_g2, t)
    state.all_g2 = keep(state.all_g2, g2, t)
    g2_in_J1T, g2_beyond_J1T, state.span_J1T = extend(state.span_J1T, g2, tolerance)
    g2_answers_J1 = answers(g2, noises["J1"], state.span_J1)
    # J1T_g2(t) = u[J1T_g2](t) + sigma^2 sum_{s<=t} R[g2,J1_phi1](t,s) phi1(s)
    # <u[J1T_g2](t) u[J1T_g2](s)> = sigma^2 C[g2,g2](t,s)
    J1T_g2 = p.sigma * noise(
        noises["J1T"], g2_in_J1T, drawn_at(normals["J1T_beyond"], t), g2_beyond_J1T
    ) + p.sigma * expressed(state.span_J1, g2_answers_J1)
    d_J1T_g2 = (p.sigma**2) * memory_slopes(
        wanted, "J1_phi1", d_g2, normals["kick_J1_phi1"], state.d_phi1_past, t, 0, 0
    )
    d_J1T_g2 = d_J1T_g2 + kick_at(wanted, "J1T_g2", normals["kick_J1T_g2"], t)
    state.d_J1T_g2_past = keep(state.d_J1T_g2_past, d_J1T_g2, t)
    state.all_J1T_g2 = keep(state.all_J1T_g2, J1T_g2, t)
    # z1(t) = J1T_g2(t) + eta gamma sum_{s<t} <g2(t) spike2(s)> phi1(s)
    z1 = (
        expressed(
            state.span_J1,
            weighted(g2_in_J1T @ state.spike2_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B)
            @ state.phi1_past,
        )
        + J1T_g2
    )
    d_z1 = (
        past_slopes(
            weighted(g2_in_J1T @ state.spike2_past.T, jnp.where(jnp.less(when, t), p.eta * p.gamma, 0), p.B),
            state.d_phi1_past,
            p.T + 1,
        )
        + d_J1T_g2
    )
    d_z1 = d_z1 + kick_at(wanted, "z1", normals["kick_z1"], t)
    state.d_z1_past = keep(state.d_z1_past, d_z1, t)
    state.all_z1 = keep(state.all_z1, z1, t)
    # g1(t) = z1(t) - tanh(h1(t))^2 z1(t)
    g1, d_g1 = law_and_slopes(lambda h1__, z1_: -z1_ * jnp.tanh(h1__) ** 2 + z1_, (h1, z1), (d_h1, d_z1))
    d_g1 = d_g1 + kick_at(wanted, "g1", normals["kick_g1"], t)
    state.d_g1_past = keep(state.d_g1_past, d_g1, t)
    state.all_g1 = keep(state.all_g1, g1, t)
    # spike1(t) = y(t) g1(t)/B - <phi3(t) w(t)> g1(t)/(B gamma)
    spike1 = (given(p.y, t, 0) / p.B) * g1 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * g1
    d_spike1 = scaled_slopes(given(p.y, t, 0) / p.B, d_g1) + scaled_slopes(
        -mean_by_label(phi3 * w) / (p.B * p.gamma), d_g1
    )
    d_spike1 = d_spike1 + kick_at(wanted, "spike1", normals["kick_spike1"], t)
    state.d_spike1_past = keep(state.d_spike1_past, d_spike1, t)
    state.all_spike1 = keep(state.all_spike1, spike1, t)
    # spike2(t) = y(t) g2(t)/B - <phi3(t) w(t)> g2(t)/(B gamma)
    spike2 = (given(p.y, t, 0) / p.B) * g2 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * g2
    d_spike2 = scaled_slopes(given(p.y, t, 0) / p.B, d_g2) + scaled_slopes(
        -mean_by_label(phi3 * w) / (p.B * p.gamma), d_g2
    )
    d_spike2 = d_spike2 + kick_at(wanted, "spike2", normals["kick_spike2"], t)
    state.d_spike2_past = keep(state.d_spike2_past, d_spike2, t)
    state.all_spike2 = keep(state.all_spike2, spike2, t)
    spike2_in_J1T = scaled_rows(given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g2_in_J1T)
    state.spike2_past = store(state.spike2_past, spike2_in_J1T, t)
    # spike3(t) = y(t) g3(t)/B - <phi3(t) w(t)> g3(t)/(B gamma)
    spike3 = (given(p.y, t, 0) / p.B) * g3 + (-mean_by_label(phi3 * w) / (p.B * p.gamma)) * g3
    d_spike3 = scaled_slopes(given(p.y, t, 0) / p.B, d_g3) + scaled_slopes(
        -mean_by_label(phi3 * w) / (p.B * p.gamma), d_g3
    )
    d_spike3 = d_spike3 + kick_at(wanted, "spike3", normals["kick_spike3"], t)
    state.d_spike3_past = keep(state.d_spike3_past, d_spike3, t)
    state.all_spike3 = keep(state.all_spike3, spike3, t)
    spike3_in_J2T = scaled_rows(given(p.y, t, 0) / p.B - mean_by_label(phi3 * w) / (p.B * p.gamma), g3_in_J2T)
    state.spike3_past = store(state.spike3_past, spike3_in_J2T, t)
    state.spike1_1_before = spike1
    state.d_spike1_1_before = d_spike1
    state.V_1_before = V
    state.d_V_1_before = d_V
    state.pushed_1_before = pushed
    state.d_pushed_1_before = d_pushed
    state.w_1_before = w
    state.d_w_1_before = d_w
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
            spike2,
            spike3,
        ),
    )
    return state


def results(p, normals, rank, tolerance, wanted, state):
    """The two-time functions asked for, and a report on the directions."""
    fields = {
        "V": Kept(
            state.all_V,
            state.d_V_past,
            normals["kick_V"],
            (("V", 0), ("h1", 1), ("phi1", 1), ("J1T_g2", 1), ("z1", 1), ("g1", 1), ("spike1", 1), ("V0", 0)),
        ),
        "w": Kept(
            state.all_w,
            state.d_w_past,
            normals["kick_w"],
            (
                ("w", 0),
                ("J2_phi2", 1),
                ("h3", 1),
                ("phi3", 1),
                ("pushed", 1),
                ("g3", 2),
                ("spike3", 2),
                ("w0", 0),
            ),
        ),
        "h1": Kept(
            state.all_h1,
            state.d_h1_past,
            normals["kick_h1"],
            (("V", 0), ("h1", 0), ("phi1", 1), ("J1T_g2", 1), ("z1", 1), ("g1", 1), ("spike1", 1), ("V0", 0)),
        ),
        "phi1": Kept(
            state.all_phi1,
            state.d_phi1_past,
            normals["kick_phi1"],
            (("V", 0), ("h1", 0), ("phi1", 0), ("J1T_g2", 1), ("z1", 1), ("g1", 1), ("spike1", 1), ("V0", 0)),
        ),
        "J1_phi1": Kept(
            state.all_J1_phi1,
            state.d_J1_phi1_past,
            normals["kick_J1_phi1"],
            (("J1_phi1", 0), ("h2", 1), ("phi2", 1), ("J2T_g3", 1), ("z2", 1), ("g2", 1), ("spike2", 2)),
        ),
        "h2": Kept(
            state.all_h2,
            state.d_h2_past,
            normals["kick_h2"],
            (("J1_phi1", 0), ("h2", 0), ("phi2", 1), ("J2T_g3", 1), ("z2", 1), ("g2", 1), ("spike2", 1)),
        ),
        "phi2": Kept(
            state.all_phi2,
            state.d_phi2_past,
            normals["kick_phi2"],
            (("J1_phi1", 0), ("h2", 0), ("phi2", 0), ("J2T_g3", 1), ("z2", 1), ("g2", 1), ("spike2", 1)),
        ),
        "J2_phi2": Kept(
            state.all_J2_phi2,
            state.d_J2_phi2_past,
            normals["kick_J2_phi2"],
            (
                ("w", 1),
                ("J2_phi2", 0),
                ("h3", 1),
                ("phi3", 2),
                ("pushed", 2),
                ("g3", 1),
                ("spike3", 2),
                ("w0", 1),
            ),
        ),
        "h3": Kept(
            state.all_h3,
            state.d_h3_past,
            normals["kick_h3"],
            (
                ("w", 1),
                ("J2_phi2", 0),
                ("h3", 0),
                ("phi3", 2),
                ("pushed", 2),
                ("g3", 1),
                ("spike3", 1),
                ("w0", 1),
            ),
        ),
        "phi3": Kept(
            state.all_phi3,
            state.d_phi3_past,
            normals["kick_phi3"],
            (
                ("w", 1),
                ("J2_phi2", 0),
                ("h3", 0),
                ("phi3", 0),
                ("pushed", 2),
                ("g3", 1),
                ("spike3", 1),
                ("w0", 1),
            ),
        ),
        "pushed": Kept(
            state.all_pushed,
            state.d_pushed_past,
            normals["kick_pushed"],
            (
                ("w", 1),
                ("J2_phi2", 0),
                ("h3", 0),
                ("phi3", 0),
                ("pushed", 0),
                ("g3", 1),
                ("spike3", 1),
                ("w0", 1),
            ),
        ),
        "g3": Kept(
            state.all_g3,
            state.d_g3_past,
            normals["kick_g3"],
            (
                ("w", 0),
                ("J2_phi2", 0),
                ("h3", 0),
                ("phi3", 1),
                ("pushed", 1),
                ("g3", 0),
                ("spike3", 1),
                ("w0", 0),
            ),
        ),
        "J2T_g3": Kept(
            state.all_J2T_g3,
            state.d_J2T_g3_past,
            normals["kick_J2T_g3"],
            (("J1_phi1", 0), ("h2", 0), ("phi2", 0), ("J2T_g3", 0), ("z2", 1), ("g2", 1), ("spike2", 1)),
        ),
        "z2": Kept(
            state.all_z2,
            state.d_z2_past,
            normals["kick_z2"],
            (("J1_phi1", 0), ("h2", 0), ("phi2", 0), ("J2T_g3", 0), ("z2", 0), ("g2", 1), ("spike2", 1)),
        ),
        "g2": Kept(
            state.all_g2,
            state.d_g2_past,
            normals["kick_g2"],
            (("J1_phi1", 0), ("h2", 0), ("phi2", 0), ("J2T_g3", 0), ("z2", 0), ("g2", 0), ("spike2", 1)),
        ),
        "J1T_g2": Kept(
            state.all_J1T_g2,
            state.d_J1T_g2_past,
            normals["kick_J1T_g2"],
            (("V", 0), ("h1", 0), ("phi1", 0), ("J1T_g2", 0), ("z1", 1), ("g1", 1), ("spike1", 1), ("V0", 0)),
        ),
        "z1": Kept(
            state.all_z1,
            state.d_z1_past,
            normals["kick_z1"],
            (("V", 0), ("h1", 0), ("phi1", 0), ("J1T_g2", 0), ("z1", 0), ("g1", 1), ("spike1", 1), ("V0", 0)),
        ),
        "g1": Kept(
            state.all_g1,
            state.d_g1_past,
            normals["kick_g1"],
            (("V", 0), ("h1", 0), ("phi1", 0), ("J1T_g2", 0), ("z1", 0), ("g1", 0), ("spike1", 1), ("V0", 0)),
        ),
        "spike1": Kept(
            state.all_spike1,
            state.d_spike1_past,
            normals["kick_spike1"],
            (("V", 0), ("h1", 0), ("phi1", 0), ("J1T_g2", 0), ("z1", 0), ("g1", 0), ("spike1", 0), ("V0", 0)),
        ),
        "spike2": Kept(
            state.all_spike2,
            state.d_spike2_past,
            normals["kick_spike2"],
            (("J1_phi1", 0), ("h2", 0), ("phi2", 0), ("J2T_g3", 0), ("z2", 0), ("g2", 0), ("spike2", 0)),
        ),
        "spike3": Kept(
            state.all_spike3,
            state.d_spike3_past,
            normals["kick_spike3"],
            (
                ("w", 0),
                ("J2_phi2", 0),
                ("h3", 0),
                ("phi3", 1),
                ("pushed", 1),
                ("g3", 0),
                ("spike3", 0),
                ("w0", 0),
            ),
        ),
        "V0": Kept(
            drawn_values(normals["V0"], p.sigma, 1),
            drawn_slopes(wanted, "V0", normals["kick_V0"], 1),
            normals["kick_V0"],
            (("V0", 0),),
        ),
        "w0": Kept(
            drawn_values(normals["w0"], p.sigma, 1),
            drawn_slopes(wanted, "w0", normals["kick_w0"], 1),
            normals["kick_w0"],
            (("w0", 0),),
        ),
    }
    observables = sampled_two_time(wanted, fields)
    return observables, report_on((state.span_J1, state.span_J2, state.span_J2T, state.span_J1T), ())


def forward_pass(p, normals, rank, tolerance, wanted):
    """Nothing, the two-time functions asked for, as times of a x labels of a x times of b x labels of b,
    the number of times before anything overflowed, and a report on the directions that are remembered.

    normals: as `shapes` says, with the sites in front. rank: most directions to remember of each span of
    fields, all if None. tolerance: share of its variance below which a new direction is left out.
    Whole-number parameters fix shapes.
    """

    def begin(most):
        noises = narrowed(normals, shapes(p, most, wanted), ("J1", "J2", "J2T", "J1T"))
        return start(p, normals, noises, rank, tolerance, wanted, most)

    def move(most):
        noises = narrowed(normals, shapes(p, most, wanted), ("J1", "J2", "J2T", "J1T"))
        return partial(step, p, normals, noises, rank, tolerance, wanted, most)

    state = forward(p.T + 1, rank, begin, move, joining(p))
    observables, report = results(p, normals, rank, tolerance, wanted, state)
    kept = Carried()
    return kept, observables, state.finite, report


TWO_TIME = SampledTwoTime(
    forward_pass,
    shapes,
    footprint,
    (
        ("J2", "w0"),
        ("J1", "J2T"),
        ("J1T", "V0"),
        ("kick_V",),
        ("kick_w",),
        ("kick_h1",),
        ("kick_phi1",),
        ("kick_J1_phi1",),
        ("kick_h2",),
        ("kick_phi2",),
        ("kick_J2_phi2",),
        ("kick_h3",),
        ("kick_phi3",),
        ("kick_pushed",),
        ("kick_g3",),
        ("kick_J2T_g3",),
        ("kick_z2",),
        ("kick_g2",),
        ("kick_J1T_g2",),
        ("kick_z1",),
        ("kick_g1",),
        ("kick_spike1",),
        ("kick_spike2",),
        ("kick_spike3",),
        ("kick_V0",),
        ("kick_w0",),
    ),
    True,
    ("J1T_g2", "J1_phi1", "J2T_g3", "J2_phi2"),
    {},
)
