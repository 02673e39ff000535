# Written by `derive build coupled_spikes_tanh` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level by sampling: many sites forward in time, responses by Stein's lemma: correlations with the noises."""

from functools import partial

import jax.numpy as jnp

from numerics.runtime.exact import first, past_sum, store
from numerics.runtime.interface import SampledTraining
from numerics.runtime.sampled import (
    Carried,
    Entries,
    answers,
    beyond,
    drawn_at,
    empty_span,
    expressed,
    extend,
    forward,
    mean,
    narrowed,
    noise,
    record,
    report_on,
    responses,
    room,
    still_finite,
    store_rest,
    with_rest,
)


def sizes(p, most):
    """How many directions there is room for in each span of fields, if in none for more than `most`."""
    return (
        room(p.S, most),  # size_W0: phi
        room(p.S, most),  # size_W0T: g
        room(p.S, most),  # size_chi: chi
        room(p.S, most),  # size_xi: xi
    )


def shapes(p, rank=None):
    """The shape of each kind of standard normals, for one site."""
    size_W0, size_W0T, _, _ = sizes(p, rank)
    return {
        "W0": (size_W0,),
        "W0T": (size_W0T,),
        "a": (p.S,),
        "b": (p.S,),
        "W0_beyond": (p.S, beyond(rank, p.S, 1)),
        "W0T_beyond": (p.S, beyond(rank, p.S, 1)),
    }


def footprint(p, rank=None):
    """How many numbers are kept for one site of each kind."""
    size_W0, size_W0T, size_chi, size_xi = sizes(p, rank)
    return size_W0 + size_W0T + size_chi + size_xi + 6


def joining(p):
    """How many directions can join each span of fields at one time, and how many before the first."""
    return {
        "span_W0": (1, 0),
        "span_W0T": (1, 0),
        "span_chi": (1, 0),
        "span_xi": (1, 0),
    }


def start(p, normals, noises, rank, tolerance, most):
    """Fields without time, and what is carried through time as it starts."""
    sites = normals["W0"].shape[0]
    size_W0, size_W0T, size_chi, size_xi = sizes(p, most)
    state = Carried(finite=jnp.zeros((), int))
    state.span_W0 = empty_span(sites, size_W0)
    state.span_W0T = empty_span(sites, size_W0T)
    state.span_chi = empty_span(sites, size_chi)
    state.span_xi = empty_span(sites, size_xi)
    state.xi_past = jnp.zeros((p.S, size_xi))
    state.phi_rest_past = jnp.zeros((p.S, 1, beyond(rank, p.S, 1)))
    state.phi_past = jnp.zeros((p.S, size_W0))
    state.phi_to_W0T = jnp.zeros((p.S, size_W0T))
    state.chi_past = jnp.zeros((p.S, size_chi))
    state.g_rest_past = jnp.zeros((p.S, 1, beyond(rank, p.S, 1)))
    state.g_past = jnp.zeros((p.S, size_W0T))
    state.g_to_W0 = jnp.zeros((p.S, size_W0))
    state.phi_norm_series = jnp.zeros((p.S,))
    state.g_norm_series = jnp.zeros((p.S,))
    state.alignment_series = jnp.zeros((p.S,))
    return state


def step(p, normals, noises, rank, tolerance, most, t, state):
    """All fields of one time, each as sites x labels; the state is changed in place."""
    when = jnp.arange(p.S)
    # phi_input(t) = sum_{s<t} xi(s)
    phi_input = expressed(state.span_xi, past_sum(jnp.where(jnp.less(when, t), 1, 0), state.xi_past, 1))
    # phi(t) = tanh(kappa phi_input(t) + a(t))
    phi = jnp.tanh(p.kappa * phi_input + drawn_at(normals["a"], t))
    phi_in_W0, phi_beyond_W0, state.span_W0 = extend(state.span_W0, phi, tolerance)
    state.phi_rest_past = store_rest(state.phi_rest_past, phi_beyond_W0, t)
    state.phi_past = store(state.phi_past, phi_in_W0, t)
    phi_answers_W0T = answers(phi, noises["W0T"], state.span_W0T)
    state.phi_to_W0T = store(state.phi_to_W0T, phi_answers_W0T, t)
    # chi(t) = u[chi](t) + (sigma^2/alpha) sum_{s<t} R[phi,xi](t,s) g(s)
    # <u[chi](t) u[chi](s)> = sigma^2 C[phi,phi](t,s)
    chi = p.sigma * noise(noises["W0"], phi_in_W0, drawn_at(normals["W0_beyond"], t), phi_beyond_W0) + (
        p.sigma / jnp.sqrt(p.alpha)
    ) * expressed(state.span_W0T, phi_answers_W0T)
    chi_in_chi, _, state.span_chi = extend(state.span_chi, chi, tolerance)
    state.chi_past = store(state.chi_past, chi_in_chi, t)
    # g_input(t) = sum_{s<t} chi(s)
    g_input = expressed(state.span_chi, past_sum(jnp.where(jnp.less(when, t), 1, 0), state.chi_past, 1))
    # g(t) = theta tanh(kappa g_input(t) + b(t))
    g = p.theta * jnp.tanh(p.kappa * g_input + drawn_at(normals["b"], t))
    g_in_W0T, g_beyond_W0T, state.span_W0T = extend(state.span_W0T, g, tolerance)
    state.g_rest_past = store_rest(state.g_rest_past, g_beyond_W0T, t)
    state.g_past = store(state.g_past, g_in_W0T, t)
    g_answers_W0 = answers(g, noises["W0"], state.span_W0)
    state.g_to_W0 = store(state.g_to_W0, g_answers_W0, t)
    # xi(t) = u[xi](t) + sigma^2 sum_{s<t} R[g,chi](t,s) phi(s)
    # <u[xi](t) u[xi](s)> = (sigma^2/alpha) C[g,g](t,s)
    xi = (p.sigma / jnp.sqrt(p.alpha)) * noise(
        noises["W0T"], g_in_W0T, drawn_at(normals["W0T_beyond"], t), g_beyond_W0T
    ) + p.sigma * expressed(state.span_W0, g_answers_W0)
    xi_in_xi, _, state.span_xi = extend(state.span_xi, xi, tolerance)
    state.xi_past = store(state.xi_past, xi_in_xi, t)
    # phi_norm = <phi(t)^2>
    state.phi_norm_series = record(state.phi_norm_series, mean(phi**2), t)
    # g_norm = <g(t)^2>
    state.g_norm_series = record(state.g_norm_series, mean(g**2), t)
    # alignment = <chi(t) g(t)>
    state.alignment_series = record(state.alignment_series, mean(chi * g), t)
    state.finite = still_finite(state.finite, t, (phi_input, phi, chi, g_input, g, xi))
    return state


def results(p, normals, rank, tolerance, state):
    """Observables at all times, and a report on the directions; the state is changed in place."""
    observables = {
        "phi_norm": state.phi_norm_series,
        "g_norm": state.g_norm_series,
        "alignment": state.alignment_series,
    }
    return observables, report_on((state.span_W0, state.span_W0T, state.span_chi, state.span_xi), ())


def forward_pass(p, normals, rank=None, tolerance=1e-12):
    """What moments are made of (see moments_of), observables at all times, the number of times before anything
    overflowed, and a report on the directions that are remembered.

    normals: as `shapes` says, with the sites in front. rank: most directions to remember of each span of
    fields, all if None. tolerance: share of its variance below which a new direction is left out.
    Whole-number parameters fix shapes.
    """

    def begin(most):
        noises = narrowed(normals, shapes(p, most), ("W0", "W0T"))
        return start(p, normals, noises, rank, tolerance, most)

    def move(most):
        noises = narrowed(normals, shapes(p, most), ("W0", "W0T"))
        return partial(step, p, normals, noises, rank, tolerance, most)

    state = forward(p.S, rank, begin, move, joining(p))
    observables, report = results(p, normals, rank, tolerance, state)
    kept = Carried(
        g_past=state.g_past,
        g_rest_past=state.g_rest_past,
        phi_past=state.phi_past,
        phi_rest_past=state.phi_rest_past,
        g_to_W0=state.g_to_W0,
        phi_to_W0T=state.phi_to_W0T,
    )
    return kept, observables, state.finite, report


def moments_of(p, state):
    """What order parameters are made of, from what is kept of a pass."""
    # the noises of W0 in terms of its normals
    noise_W0 = p.sigma * first(state.phi_past, p.S)
    # the noises of W0T in terms of its normals
    noise_W0T = (p.sigma / jnp.sqrt(p.alpha)) * first(state.g_past, p.S)
    return {
        ("C", "g", "g"): with_rest(
            first(state.g_past, p.S) @ first(state.g_past, p.S).T, state.g_rest_past, state.g_rest_past, p.S
        ),
        ("C", "phi", "phi"): with_rest(
            first(state.phi_past, p.S) @ first(state.phi_past, p.S).T,
            state.phi_rest_past,
            state.phi_rest_past,
            p.S,
        ),
        ("G", "W0"): noise_W0 @ noise_W0.T,
        ("G", "W0T"): noise_W0T @ noise_W0T.T,
        ("K", "g", "W0"): first(state.g_to_W0, p.S) @ noise_W0.T,
        ("K", "phi", "W0T"): first(state.phi_to_W0T, p.S) @ noise_W0T.T,
    }


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
    moments_of,
    order_parameters,
    footprint,
    groups=(("W0T", "a"), ("W0", "b")),
    paired=False,
    responses="stein",
)
