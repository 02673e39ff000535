# Written by `derive build coupled_spikes_tanh` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Two-time functions of all fields by sampling: the forward pass again, with slopes along random kicks."""

from functools import partial

import jax.numpy as jnp

from numerics.runtime.exact import past_sum, store
from numerics.runtime.interface import SampledTwoTime
from numerics.runtime.sampled import (
    Carried,
    answers,
    beyond,
    drawn_at,
    empty_span,
    expressed,
    extend,
    forward,
    law_and_slopes,
    narrowed,
    noise,
    report_on,
    room,
    still_finite,
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
        room(p.S, most),  # size_W0: phi
        room(p.S, most),  # size_W0T: g
        room(p.S, most),  # size_chi: chi
        room(p.S, most),  # size_xi: xi
    )


def shapes(p, rank, wanted):
    """The shape of each kind of standard normals, for one site."""
    size_W0, size_W0T, _, _ = sizes(p, rank)
    return {
        "W0": (size_W0,),
        "W0T": (size_W0T,),
        "a": (p.S,),
        "b": (p.S,),
        "W0_beyond": (p.S, beyond(rank, p.S, 1)),
        "W0T_beyond": (p.S, beyond(rank, p.S, 1)),
        "kick_phi_input": (kicked(wanted, "phi_input", p.S), 1),
        "kick_phi": (kicked(wanted, "phi", p.S), 1),
        "kick_chi": (kicked(wanted, "chi", p.S), 1),
        "kick_g_input": (kicked(wanted, "g_input", p.S), 1),
        "kick_g": (kicked(wanted, "g", p.S), 1),
        "kick_xi": (kicked(wanted, "xi", p.S), 1),
        "kick_a": (kicked(wanted, "a", p.S), 1),
        "kick_b": (kicked(wanted, "b", p.S), 1),
    }


def footprint(p, rank, wanted):
    """How many numbers are kept for one site of each kind."""
    size_W0, size_W0T, size_chi, size_xi = sizes(p, rank)
    return (
        numbers_kept(wanted, "a", p.S)
        + numbers_kept(wanted, "b", p.S)
        + numbers_kept(wanted, "chi", p.S)
        + numbers_kept(wanted, "g", p.S)
        + numbers_kept(wanted, "g_input", p.S)
        + numbers_kept(wanted, "phi", p.S)
        + numbers_kept(wanted, "phi_input", p.S)
        + numbers_kept(wanted, "xi", p.S)
        + (tangents(wanted) + 1) * (size_W0 + size_xi + 3)
        + (tangents(wanted) + 1) * (size_W0T + size_chi + 3)
    )


def joining(p):
    """How many directions can join each span of fields at one time, and how many before the first."""
    return {
        "span_W0": (1, 0),
        "span_W0T": (1, 0),
        "span_chi": (1, 0),
        "span_xi": (1, 0),
    }


def start(p, normals, noises, rank, tolerance, wanted, most):
    """Fields without time, and what is carried through time as it starts."""
    sites = normals["W0"].shape[0]
    size_W0, size_W0T, size_chi, size_xi = sizes(p, most)
    state = Carried(finite=jnp.zeros((), int))
    state.span_W0 = empty_span(sites, size_W0)
    state.span_W0T = empty_span(sites, size_W0T)
    state.span_chi = empty_span(sites, size_chi)
    state.span_xi = empty_span(sites, size_xi)
    state.xi_past = jnp.zeros((p.S, size_xi))
    state.d_xi_past = no_slopes_yet(p.S, sites, 1, tangents(wanted))
    state.d_phi_input_past = no_slopes_yet(p.S, sites, 1, tangents(wanted))
    state.all_phi_input = room_for(wanted, "phi_input", p.S, sites, 1)
    state.d_phi_past = no_slopes_yet(p.S, sites, 1, tangents(wanted))
    state.all_phi = room_for(wanted, "phi", p.S, sites, 1)
    state.d_g_past = no_slopes_yet(p.S, sites, 1, tangents(wanted))
    state.d_chi_past = no_slopes_yet(p.S, sites, 1, tangents(wanted))
    state.all_chi = room_for(wanted, "chi", p.S, sites, 1)
    state.chi_past = jnp.zeros((p.S, size_chi))
    state.d_g_input_past = no_slopes_yet(p.S, sites, 1, tangents(wanted))
    state.all_g_input = room_for(wanted, "g_input", p.S, sites, 1)
    state.all_g = room_for(wanted, "g", p.S, sites, 1)
    state.all_xi = room_for(wanted, "xi", p.S, sites, 1)
    return state


def step(p, normals, noises, rank, tolerance, wanted, most, t, state):
    """All fields of one time, each as sites x labels; the state is changed in place."""
    when = jnp.arange(p.S)
    # phi_input(t) = sum_{s<t} xi(s)
    phi_input = expressed(state.span_xi, past_sum(jnp.where(jnp.less(when, t), 1, 0), state.xi_past, 1))
    d_phi_input = past_slopes(jnp.where(jnp.less(when, t), 1, 0), state.d_xi_past, p.S)
    d_phi_input = d_phi_input + kick_at(wanted, "phi_input", normals["kick_phi_input"], t)
    state.d_phi_input_past = keep(state.d_phi_input_past, d_phi_input, t)
    state.all_phi_input = keep(state.all_phi_input, phi_input, t)
    # phi(t) = tanh(kappa phi_input(t) + a(t))
    phi, d_phi = law_and_slopes(
        lambda a, phi_input_: jnp.tanh(p.kappa * phi_input_ + a),
        (drawn_at(normals["a"], t), phi_input),
        (kick_at(wanted, "a", normals["kick_a"], t), d_phi_input),
    )
    d_phi = d_phi + kick_at(wanted, "phi", normals["kick_phi"], t)
    state.d_phi_past = keep(state.d_phi_past, d_phi, t)
    state.all_phi = keep(state.all_phi, phi, t)
    phi_in_W0, phi_beyond_W0, state.span_W0 = extend(state.span_W0, phi, tolerance)
    phi_answers_W0T = answers(phi, noises["W0T"], state.span_W0T)
    # chi(t) = u[chi](t) + (sigma^2/alpha) sum_{s<t} R[phi,xi](t,s) g(s)
    # <u[chi](t) u[chi](s)> = sigma^2 C[phi,phi](t,s)
    chi = p.sigma * noise(noises["W0"], phi_in_W0, drawn_at(normals["W0_beyond"], t), phi_beyond_W0) + (
        p.sigma / jnp.sqrt(p.alpha)
    ) * expressed(state.span_W0T, phi_answers_W0T)
    d_chi = (p.sigma**2 / p.alpha) * memory_slopes(
        wanted, "xi", d_phi, normals["kick_xi"], state.d_g_past, t, 0, 1
    )
    d_chi = d_chi + kick_at(wanted, "chi", normals["kick_chi"], t)
    state.d_chi_past = keep(state.d_chi_past, d_chi, t)
    state.all_chi = keep(state.all_chi, chi, t)
    chi_in_chi, _, state.span_chi = extend(state.span_chi, chi, tolerance)
    state.chi_past = store(state.chi_past, chi_in_chi, t)
    # g_input(t) = sum_{s<t} chi(s)
    g_input = expressed(state.span_chi, past_sum(jnp.where(jnp.less(when, t), 1, 0), state.chi_past, 1))
    d_g_input = past_slopes(jnp.where(jnp.less(when, t), 1, 0), state.d_chi_past, p.S)
    d_g_input = d_g_input + kick_at(wanted, "g_input", normals["kick_g_input"], t)
    state.d_g_input_past = keep(state.d_g_input_past, d_g_input, t)
    state.all_g_input = keep(state.all_g_input, g_input, t)
    # g(t) = theta tanh(kappa g_input(t) + b(t))
    g, d_g = law_and_slopes(
        lambda b, g_input_: p.theta * jnp.tanh(p.kappa * g_input_ + b),
        (drawn_at(normals["b"], t), g_input),
        (kick_at(wanted, "b", normals["kick_b"], t), d_g_input),
    )
    d_g = d_g + kick_at(wanted, "g", normals["kick_g"], t)
    state.d_g_past = keep(state.d_g_past, d_g, t)
    state.all_g = keep(state.all_g, g, t)
    g_in_W0T, g_beyond_W0T, state.span_W0T = extend(state.span_W0T, g, tolerance)
    g_answers_W0 = answers(g, noises["W0"], state.span_W0)
    # xi(t) = u[xi](t) + sigma^2 sum_{s<t} R[g,chi](t,s) phi(s)
    # <u[xi](t) u[xi](s)> = (sigma^2/alpha) C[g,g](t,s)
    xi = (p.sigma / jnp.sqrt(p.alpha)) * noise(
        noises["W0T"], g_in_W0T, drawn_at(normals["W0T_beyond"], t), g_beyond_W0T
    ) + p.sigma * expressed(state.span_W0, g_answers_W0)
    d_xi = (p.sigma**2) * memory_slopes(wanted, "chi", d_g, normals["kick_chi"], state.d_phi_past, t, 0, 1)
    d_xi = d_xi + kick_at(wanted, "xi", normals["kick_xi"], t)
    state.d_xi_past = keep(state.d_xi_past, d_xi, t)
    state.all_xi = keep(state.all_xi, xi, t)
    xi_in_xi, _, state.span_xi = extend(state.span_xi, xi, tolerance)
    state.xi_past = store(state.xi_past, xi_in_xi, t)
    state.finite = still_finite(state.finite, t, (phi_input, phi, chi, g_input, g, xi))
    return state


def results(p, normals, rank, tolerance, wanted, state):
    """The two-time functions asked for, and a report on the directions."""
    fields = {
        "phi_input": Kept(
            state.all_phi_input,
            state.d_phi_input_past,
            normals["kick_phi_input"],
            (("phi_input", 0), ("phi", 2), ("xi", 1), ("a", 2)),
        ),
        "phi": Kept(
            state.all_phi,
            state.d_phi_past,
            normals["kick_phi"],
            (("phi_input", 0), ("phi", 0), ("xi", 1), ("a", 0)),
        ),
        "chi": Kept(
            state.all_chi,
            state.d_chi_past,
            normals["kick_chi"],
            (("chi", 0), ("g_input", 1), ("g", 1), ("b", 1)),
        ),
        "g_input": Kept(
            state.all_g_input,
            state.d_g_input_past,
            normals["kick_g_input"],
            (("chi", 1), ("g_input", 0), ("g", 2), ("b", 2)),
        ),
        "g": Kept(
            state.all_g, state.d_g_past, normals["kick_g"], (("chi", 1), ("g_input", 0), ("g", 0), ("b", 0))
        ),
        "xi": Kept(
            state.all_xi,
            state.d_xi_past,
            normals["kick_xi"],
            (("phi_input", 1), ("phi", 1), ("xi", 0), ("a", 1)),
        ),
        "a": Kept(
            drawn_values(normals["a"], 1, p.S),
            drawn_slopes(wanted, "a", normals["kick_a"], p.S),
            normals["kick_a"],
            (("a", 0),),
        ),
        "b": Kept(
            drawn_values(normals["b"], 1, p.S),
            drawn_slopes(wanted, "b", normals["kick_b"], p.S),
            normals["kick_b"],
            (("b", 0),),
        ),
    }
    observables = sampled_two_time(wanted, fields)
    return observables, report_on((state.span_W0, state.span_W0T, state.span_chi, state.span_xi), ())


def forward_pass(p, normals, rank, tolerance, wanted):
    """Nothing, the two-time functions asked for, as times of a x labels of a x times of b x labels of b,
    the number of times before anything overflowed, and a report on the directions that are remembered.

    normals: as `shapes` says, with the sites in front. rank: most directions to remember of each span of
    fields, all if None. tolerance: share of its variance below which a new direction is left out.
    Whole-number parameters fix shapes.
    """

    def begin(most):
        noises = narrowed(normals, shapes(p, most, wanted), ("W0", "W0T"))
        return start(p, normals, noises, rank, tolerance, wanted, most)

    def move(most):
        noises = narrowed(normals, shapes(p, most, wanted), ("W0", "W0T"))
        return partial(step, p, normals, noises, rank, tolerance, wanted, most)

    state = forward(p.S, rank, begin, move, joining(p))
    observables, report = results(p, normals, rank, tolerance, wanted, state)
    kept = Carried()
    return kept, observables, state.finite, report


TWO_TIME = SampledTwoTime(
    forward_pass,
    shapes,
    footprint,
    (
        ("W0T", "a"),
        ("W0", "b"),
        ("kick_phi_input",),
        ("kick_phi",),
        ("kick_chi",),
        ("kick_g_input",),
        ("kick_g",),
        ("kick_xi",),
        ("kick_a",),
        ("kick_b",),
    ),
    False,
    ("xi", "chi"),
    {},
)
