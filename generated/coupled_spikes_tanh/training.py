# Written by `derive build coupled_spikes_tanh` (two-level-dmft 0.2.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level by sampling: many sites forward in time, responses by Stein's lemma: correlations with the noises."""

from functools import partial

import jax.numpy as jnp
import jax.scipy.special as jsp  # noqa: F401

from numerics.runtime.interface import SampledTraining
from numerics.runtime.exact import first, past_sum, store
from numerics.runtime.sampled import (
    Entries,
    answers,
    beyond,
    drawn_at,
    empty_span,
    expressed,
    extend,
    forward,
    mean,
    noise,
    record,
    report_on,
    responses,
    room,
    still_finite,
    store_rest,
    with_rest,
)


def sizes(p, rank):
    """How many directions are kept of each span of fields."""
    return (
        room(p.S, rank),  # size_W0: phi
        room(p.S, rank),  # size_W0T: g
        room(p.S, rank),  # size_chi: chi
        room(p.S, rank),  # size_xi: xi
    )


def shapes(p, rank=None):
    """The shape of each kind of standard normals, for one site."""
    size_W0, size_W0T, _, _ = sizes(p, rank)
    return {
        "W0": (size_W0,),
        "W0T": (size_W0T,),
        "a": (p.S,),
        "b": (p.S,),
        "W0_beyond": (p.S, beyond(size_W0, p.S, 1)),
        "W0T_beyond": (p.S, beyond(size_W0T, p.S, 1)),
    }


def footprint(p, rank=None):
    """How many numbers are kept for one site of each kind."""
    size_W0, size_W0T, size_chi, size_xi = sizes(p, rank)
    return size_W0 + size_W0T + size_chi + size_xi + 6


def start(p, normals, rank, tolerance):
    """Fields without time, and what is carried through time as it starts."""
    sites = normals["W0"].shape[0]
    size_W0, size_W0T, size_chi, size_xi = sizes(p, rank)
    span_W0 = empty_span(sites, size_W0)
    span_W0T = empty_span(sites, size_W0T)
    span_chi = empty_span(sites, size_chi)
    span_xi = empty_span(sites, size_xi)
    xi_past = jnp.zeros((p.S, size_xi))
    phi_rest_past = jnp.zeros((p.S, 1, beyond(size_W0, p.S, 1)))
    phi_past = jnp.zeros((p.S, size_W0))
    phi_to_W0T = jnp.zeros((p.S, size_W0T))
    chi_past = jnp.zeros((p.S, size_chi))
    g_rest_past = jnp.zeros((p.S, 1, beyond(size_W0T, p.S, 1)))
    g_past = jnp.zeros((p.S, size_W0T))
    g_to_W0 = jnp.zeros((p.S, size_W0))
    phi_norm_series = jnp.zeros((p.S,))
    g_norm_series = jnp.zeros((p.S,))
    alignment_series = jnp.zeros((p.S,))
    return (
        span_W0,
        span_W0T,
        span_chi,
        span_xi,
        xi_past,
        phi_rest_past,
        phi_past,
        phi_to_W0T,
        chi_past,
        g_rest_past,
        g_past,
        g_to_W0,
        phi_norm_series,
        g_norm_series,
        alignment_series,
    )


def step(p, normals, rank, tolerance, t, state):
    """All fields of one time, each as sites x labels."""
    when = jnp.arange(p.S)
    (
        (
            span_W0,
            span_W0T,
            span_chi,
            span_xi,
            xi_past,
            phi_rest_past,
            phi_past,
            phi_to_W0T,
            chi_past,
            g_rest_past,
            g_past,
            g_to_W0,
            phi_norm_series,
            g_norm_series,
            alignment_series,
        ),
        finite,
    ) = state
    # phi_input(t) = sum_{s<t} xi(s)
    phi_input = expressed(span_xi, past_sum(jnp.where(jnp.less(when, t), 1, 0), xi_past, 1))
    # phi(t) = tanh(kappa phi_input(t) + a(t))
    phi = jnp.tanh(p.kappa * phi_input + drawn_at(normals["a"], t))
    phi_in_W0, phi_beyond_W0, span_W0 = extend(span_W0, phi, tolerance)
    phi_rest_past = store_rest(phi_rest_past, phi_beyond_W0, t)
    phi_past = store(phi_past, phi_in_W0, t)
    phi_to_W0T = store(phi_to_W0T, answers(phi, normals["W0T"], span_W0T), t)
    # chi(t) = u[chi] + sum_s (sigma^2/alpha) R[phi,xi](t,s) g(s)
    chi = p.sigma * noise(normals["W0"], phi_in_W0, drawn_at(normals["W0_beyond"], t), phi_beyond_W0) + (
        p.sigma / jnp.sqrt(p.alpha)
    ) * expressed(span_W0T, answers(phi, normals["W0T"], span_W0T))
    chi_in_chi, _, span_chi = extend(span_chi, chi, tolerance)
    chi_past = store(chi_past, chi_in_chi, t)
    # g_input(t) = sum_{s<t} chi(s)
    g_input = expressed(span_chi, past_sum(jnp.where(jnp.less(when, t), 1, 0), chi_past, 1))
    # g(t) = theta tanh(kappa g_input(t) + b(t))
    g = p.theta * jnp.tanh(p.kappa * g_input + drawn_at(normals["b"], t))
    g_in_W0T, g_beyond_W0T, span_W0T = extend(span_W0T, g, tolerance)
    g_rest_past = store_rest(g_rest_past, g_beyond_W0T, t)
    g_past = store(g_past, g_in_W0T, t)
    g_to_W0 = store(g_to_W0, answers(g, normals["W0"], span_W0), t)
    # xi(t) = u[xi] + sum_s sigma^2 R[g,chi](t,s) phi(s)
    xi = (p.sigma / jnp.sqrt(p.alpha)) * noise(
        normals["W0T"], g_in_W0T, drawn_at(normals["W0T_beyond"], t), g_beyond_W0T
    ) + p.sigma * expressed(span_W0, answers(g, normals["W0"], span_W0))
    xi_in_xi, _, span_xi = extend(span_xi, xi, tolerance)
    xi_past = store(xi_past, xi_in_xi, t)
    phi_norm_series = record(phi_norm_series, mean(phi**2), t)
    g_norm_series = record(g_norm_series, mean(g**2), t)
    alignment_series = record(alignment_series, mean(chi * g), t)
    finite = still_finite(finite, t, (phi_input, phi, chi, g_input, g, xi))
    return (
        span_W0,
        span_W0T,
        span_chi,
        span_xi,
        xi_past,
        phi_rest_past,
        phi_past,
        phi_to_W0T,
        chi_past,
        g_rest_past,
        g_past,
        g_to_W0,
        phi_norm_series,
        g_norm_series,
        alignment_series,
    ), finite


def results(p, normals, rank, tolerance, state):
    """What order parameters are made of, observables at all times, and a report on the directions."""
    (
        span_W0,
        span_W0T,
        span_chi,
        span_xi,
        xi_past,
        phi_rest_past,
        phi_past,
        phi_to_W0T,
        chi_past,
        g_rest_past,
        g_past,
        g_to_W0,
        phi_norm_series,
        g_norm_series,
        alignment_series,
    ) = state
    # the noises of W0 in terms of its normals
    noise_W0 = p.sigma * first(phi_past, p.S)
    # the noises of W0T in terms of its normals
    noise_W0T = (p.sigma / jnp.sqrt(p.alpha)) * first(g_past, p.S)
    moments = {
        ("C", "g", "g"): with_rest(first(g_past, p.S) @ first(g_past, p.S).T, g_rest_past, g_rest_past, p.S),
        ("C", "phi", "phi"): with_rest(
            first(phi_past, p.S) @ first(phi_past, p.S).T, phi_rest_past, phi_rest_past, p.S
        ),
        ("G", "W0"): noise_W0 @ noise_W0.T,
        ("G", "W0T"): noise_W0T @ noise_W0T.T,
        ("K", "g", "W0"): first(g_to_W0, p.S) @ noise_W0.T,
        ("K", "phi", "W0T"): first(phi_to_W0T, p.S) @ noise_W0T.T,
    }
    observables = {
        "phi_norm": phi_norm_series,
        "g_norm": g_norm_series,
        "alignment": alignment_series,
    }
    return moments, observables, report_on((span_W0, span_W0T, span_chi, span_xi), ())


def forward_pass(p, normals, rank=None, tolerance=1e-12):
    """What order parameters are made of (see order_parameters), observables at all times, the number of times
    before anything overflowed, and a report on the directions that are remembered.

    normals: as `shapes` says, with the sites in front. rank: most directions to remember of each span of
    fields, all if None. tolerance: share of its variance below which a new direction is left out.
    Whole-number parameters fix shapes.
    """
    state = start(p, normals, rank, tolerance)
    state, finite = forward(p.S, partial(step, p, normals, rank, tolerance), state)
    moments, observables, report = results(p, normals, rank, tolerance, state)
    return moments, observables, finite, report


def order_parameters(moments, p, tolerance=1e-12):
    """Correlations, responses and means before the last update, times by times, from averaged moments."""
    R_g_W0 = responses(
        moments["K", "g", "W0"], moments["G", "W0"], Entries(p.S, 1), (Entries(p.S, 1, 1),), p.S, tolerance
    )
    R_phi_W0T = responses(
        moments["K", "phi", "W0T"],
        moments["G", "W0T"],
        Entries(p.S, 1),
        (Entries(p.S, 1, 1),),
        p.S,
        tolerance,
    )
    return {
        ("C", "g", "g"): moments["C", "g", "g"],
        ("C", "phi", "phi"): moments["C", "phi", "phi"],
        ("R", "g", "chi"): R_g_W0[0],
        ("R", "phi", "xi"): R_phi_W0T[0],
    }


def strides(p):
    """Entries per time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        ("C", "g", "g"): (1, 1),
        ("C", "phi", "phi"): (1, 1),
        ("R", "g", "chi"): (1, 1),
        ("R", "phi", "xi"): (1, 1),
    }


TRAINING = SampledTraining(
    forward_pass,
    strides,
    shapes,
    order_parameters,
    footprint,
    groups=(("W0T", "a"), ("W0", "b")),
    responses="stein",
)
