# Written by `derive build coupled_spikes_tanh` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Training level by sampling: many sites forward in time."""

import jax.numpy as jnp

from numerics.runtime.program import Channel, MatrixProduct, Memory, Recorded, SpanOf, Training, Vector


def step(p, x, t):
    """All fields of one time."""
    # [E3] phi_input(t) = sum_{s<t} xi(s)
    phi_input = x.put("phi_input", x.past_sum("xi", 0, 1))
    # [E4] phi(t) = tanh(kappa phi_input(t) + a(t))
    phi = x.put(
        "phi", x.law(lambda a, phi_input_: jnp.tanh(p.kappa * phi_input_ + a), x.drawn("a"), phi_input)
    )
    # [E1] chi(t) = u[chi](t) + (sigma^2/alpha) sum_{s<t} R[phi,xi](t,s) g(s)
    # [E7] <u[chi](t) u[chi](s)> = sigma^2 C[phi,phi](t,s)
    chi = x.put("chi", x.product("chi", (p.sigma / jnp.sqrt(p.alpha),), (p.sigma**2 / p.alpha,)))
    # [E5] g_input(t) = sum_{s<t} chi(s)
    g_input = x.put("g_input", x.past_sum("chi", 0, 1))
    # [E6] g(t) = theta tanh(kappa g_input(t) + b(t))
    g = x.put(
        "g", x.law(lambda b, g_input_: p.theta * jnp.tanh(p.kappa * g_input_ + b), x.drawn("b"), g_input)
    )
    # [E2] xi(t) = u[xi](t) + sigma^2 sum_{s<t} R[g,chi](t,s) phi(s)
    # [E8] <u[xi](t) u[xi](s)> = (sigma^2/alpha) C[g,g](t,s)
    xi = x.put("xi", x.product("xi", (p.sigma,), (p.sigma**2,)))
    # phi_norm = <phi(t)^2>
    x.record("phi_norm", x.mean((phi * phi), 0))
    # g_norm = <g(t)^2>
    x.record("g_norm", x.mean((g * g), 0))
    # alignment = <chi(t) g(t)>
    x.record("alignment", x.mean((g * chi), 0))


def order(p, x):
    """Order parameters before the last update."""
    return {
        ("C", "g", "g"): x.correlation("g", "g"),
        ("C", "phi", "phi"): x.correlation("phi", "phi"),
        ("R", "g", "chi"): x.response("g", "chi"),
        ("R", "phi", "xi"): x.response("phi", "xi"),
    }


TRAINING = Training(
    closure="sampled",
    times=lambda p: p.S,
    before=lambda p: p.S,
    vectors=(
        Vector("phi_input", "N0"),
        Vector("phi", "N0", past=True, spans=("W0",), home="W0"),
        Vector("chi", "N1", role="product", past=True, spans=("chi",), home="chi", group=1),
        Vector("g_input", "N1", group=1),
        Vector("g", "N1", past=True, spans=("W0T",), home="W0T", group=1),
        Vector("xi", "N0", role="product", past=True, spans=("xi",), home="xi"),
        Vector("a", "N0", role="normal"),
        Vector("b", "N1", role="normal", group=1),
    ),
    products=(
        MatrixProduct("chi", "W0", "phi", (Memory("phi", "xi", "g", lag=1),), strength=lambda p: p.sigma),
        MatrixProduct(
            "xi",
            "W0T",
            "g",
            (Memory("g", "chi", "phi", lag=1),),
            strength=lambda p: p.sigma / jnp.sqrt(p.alpha),
        ),
    ),
    observables=(Recorded("phi_norm"), Recorded("g_norm"), Recorded("alignment")),
    step=step,
    order=order,
    spans=(SpanOf("W0", ("phi",)), SpanOf("W0T", ("g",)), SpanOf("chi", ("chi",)), SpanOf("xi", ("xi",))),
    channels=(
        Channel("W0", "W0", ("phi",), ("chi",)),
        Channel("W0T", "W0T", ("g",), ("xi",)),
    ),
    groups=(("W0T", "a"), ("W0", "b")),
    lags=(("phi", "xi", 1), ("g", "chi", 1)),
    links={
        "phi_input": {"xi": 1},
        "phi": {"a": 0, "phi_input": 0},
        "g_input": {"chi": 1},
        "g": {"b": 0, "g_input": 0},
        "chi": {"g": 1},
        "xi": {"phi": 1},
    },
    paired=False,
)
