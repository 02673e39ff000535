# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Training level by sampling: many sites forward in time."""

import jax.numpy as jnp

from numerics.runtime.program import Channel, MatrixProduct, Memory, Recorded, SpanOf, Training, Vector


def step(p, x, t):
    """All fields of one time."""
    # [E1] V(0) = V0
    # [E2] V(t) = V(t-1) + (eta gamma/sqrt(D)) x(t-1)^T spike1(t-1)
    V = x.put(
        "V",
        x.starting(
            (x.drawn("V0"),),
            (p.eta * p.gamma / jnp.sqrt(p.D)) * x.mixed(x.table(p.x, 1), x.earlier("spike1", 1), 1)
            + x.earlier("V", 1),
        ),
    )
    # [E3] w(0) = w0
    # [E4] w(t) = eta gamma total(pushed(t-1)) + w(t-1)
    w = x.put(
        "w",
        x.starting((x.drawn("w0"),), (p.eta * p.gamma) * x.total(x.earlier("pushed", 1)) + x.earlier("w", 1)),
    )
    # [E6] h1(t) = x(t) V(t)/sqrt(D)
    h1 = x.put("h1", (1 / jnp.sqrt(p.D)) * x.mixed(x.table(p.x, 0), V, 0))
    # [E7] phi1(t) = tanh(h1(t))
    phi1 = x.put("phi1", x.law(lambda h1_: jnp.tanh(h1_), h1))
    # [E10] J1_phi1(t) = u[J1_phi1](t) + sigma^2 sum_{s<t} R[phi1,J1T_g2](t,s) g2(s)
    # [E24] <u[J1_phi1](t) u[J1_phi1](s)> = sigma^2 C[phi1,phi1](t,s)
    J1_phi1 = x.put("J1_phi1", x.product("J1_phi1", (p.sigma,), (p.sigma**2,)))
    # [E11] h2(t) = J1_phi1(t) + eta gamma sum_{s<t} C[phi1,phi1](t,s) spike2(s)
    h2 = x.put("h2", x.past_sum("spike2", 0, p.eta * p.gamma, "phi1", phi1) + J1_phi1)
    # [E14] phi2(t) = tanh(h2(t))
    phi2 = x.put("phi2", x.law(lambda h2_: jnp.tanh(h2_), h2))
    # [E17] J2_phi2(t) = u[J2_phi2](t) + sigma^2 sum_{s<t} R[phi2,J2T_g3](t,s) g3(s)
    # [E26] <u[J2_phi2](t) u[J2_phi2](s)> = sigma^2 C[phi2,phi2](t,s)
    J2_phi2 = x.put("J2_phi2", x.product("J2_phi2", (p.sigma,), (p.sigma**2,)))
    # [E18] h3(t) = J2_phi2(t) + eta gamma sum_{s<t} C[phi2,phi2](t,s) spike3(s)
    h3 = x.put("h3", x.past_sum("spike3", 0, p.eta * p.gamma, "phi2", phi2) + J2_phi2)
    # [E21] phi3(t) = tanh(h3(t))
    phi3 = x.put("phi3", x.law(lambda h3_: jnp.tanh(h3_), h3))
    # [E5] pushed(t) = y(t) phi3(t)/B - C[phi3,w](t,t) phi3(t)/(B gamma)
    pushed = x.put_multiple("pushed", x.data(p.y, 0) / p.B - x.mean((phi3 * w), 1) / (p.B * p.gamma), "phi3")
    # [E22] g3(t) = w(t) - tanh(h3(t))^2 w(t)
    g3 = x.put("g3", x.law(lambda h3__, w_: w_ - w_ * jnp.tanh(h3__) ** 2, h3, w))
    # [E19] J2T_g3(t) = u[J2T_g3](t) + sigma^2 sum_{s<=t} R[g3,J2_phi2](t,s) phi2(s)
    # [E27] <u[J2T_g3](t) u[J2T_g3](s)> = sigma^2 C[g3,g3](t,s)
    J2T_g3 = x.put("J2T_g3", x.product("J2T_g3", (p.sigma,), (p.sigma**2,)))
    # [E20] z2(t) = J2T_g3(t) + eta gamma sum_{s<t} C[g3,spike3](t,s) phi2(s)
    z2 = x.put("z2", x.past_sum("phi2", 0, p.eta * p.gamma, "spike3", g3) + J2T_g3)
    # [E15] g2(t) = z2(t) - tanh(h2(t))^2 z2(t)
    g2 = x.put("g2", x.law(lambda h2__, z2_: z2_ - z2_ * jnp.tanh(h2__) ** 2, h2, z2))
    # [E12] J1T_g2(t) = u[J1T_g2](t) + sigma^2 sum_{s<=t} R[g2,J1_phi1](t,s) phi1(s)
    # [E25] <u[J1T_g2](t) u[J1T_g2](s)> = sigma^2 C[g2,g2](t,s)
    J1T_g2 = x.put("J1T_g2", x.product("J1T_g2", (p.sigma,), (p.sigma**2,)))
    # [E13] z1(t) = J1T_g2(t) + eta gamma sum_{s<t} C[g2,spike2](t,s) phi1(s)
    z1 = x.put("z1", x.past_sum("phi1", 0, p.eta * p.gamma, "spike2", g2) + J1T_g2)
    # [E8] g1(t) = z1(t) - tanh(h1(t))^2 z1(t)
    g1 = x.put("g1", x.law(lambda h1__, z1_: z1_ - z1_ * jnp.tanh(h1__) ** 2, h1, z1))
    # [E9] spike1(t) = y(t) g1(t)/B - C[phi3,w](t,t) g1(t)/(B gamma)
    spike1 = x.put_multiple("spike1", x.data(p.y, 0) / p.B - x.mean((phi3 * w), 1) / (p.B * p.gamma), "g1")
    # [E16] spike2(t) = y(t) g2(t)/B - C[phi3,w](t,t) g2(t)/(B gamma)
    spike2 = x.put_multiple("spike2", x.data(p.y, 0) / p.B - x.mean((phi3 * w), 1) / (p.B * p.gamma), "g2")
    # [E23] spike3(t) = y(t) g3(t)/B - C[phi3,w](t,t) g3(t)/(B gamma)
    spike3 = x.put_multiple("spike3", x.data(p.y, 0) / p.B - x.mean((phi3 * w), 1) / (p.B * p.gamma), "g3")
    # loss = total((<phi3(t) w(t)>/gamma - y(t))^2/(2 B))
    x.record("loss", x.total((1 / 2) * (x.mean((phi3 * w), 1) / p.gamma - x.data(p.y, 0)) ** 2 / p.B))
    # prediction = <phi3(t) w(t)>/gamma
    x.record("prediction", x.mean((phi3 * w), 1) / p.gamma)
    # features1 = <phi1(t)^2>
    x.record("features1", x.mean_of_labels(x.mean((phi1 * phi1), 1)))
    # features2 = <phi2(t)^2>
    x.record("features2", x.mean_of_labels(x.mean((phi2 * phi2), 1)))
    # features3 = <phi3(t)^2>
    x.record("features3", x.mean_of_labels(x.mean((phi3 * phi3), 1)))
    # gradients1 = <g1(t)^2>
    x.record("gradients1", x.mean_of_labels(x.mean((g1 * g1), 1)))
    # gradients2 = <g2(t)^2>
    x.record("gradients2", x.mean_of_labels(x.mean((g2 * g2), 1)))
    # gradients3 = <g3(t)^2>
    x.record("gradients3", x.mean_of_labels(x.mean((g3 * g3), 1)))


def order(p, x):
    """Order parameters before the last update."""
    return {
        ("C", "g2", "g2"): x.correlation("g2", "g2"),
        ("C", "g2", "spike2"): x.correlation("g2", "spike2"),
        ("C", "g3", "g3"): x.correlation("g3", "g3"),
        ("C", "g3", "spike3"): x.correlation("g3", "spike3"),
        ("C", "phi1", "phi1"): x.correlation("phi1", "phi1"),
        ("C", "phi2", "phi2"): x.correlation("phi2", "phi2"),
        ("C", "spike2", "spike2"): x.correlation("spike2", "spike2"),
        ("C", "spike3", "spike3"): x.correlation("spike3", "spike3"),
        ("R", "g2", "J1_phi1"): x.response("g2", "J1_phi1"),
        ("R", "g3", "J2_phi2"): x.response("g3", "J2_phi2"),
        ("R", "phi1", "J1T_g2"): x.response("phi1", "J1T_g2"),
        ("R", "phi2", "J2T_g3"): x.response("phi2", "J2T_g3"),
        ("R", "spike2", "J1_phi1"): x.response("spike2", "J1_phi1"),
        ("R", "spike3", "J2_phi2"): x.response("spike3", "J2_phi2"),
    }


TRAINING = Training(
    closure="sampled",
    times=lambda p: p.T + 1,
    before=lambda p: p.T,
    vectors=(
        Vector("V", "N", axes=("D",), lags=1, group=2),
        Vector("w", "N", lags=1),
        Vector("h1", "N", axes=("B",), group=2),
        Vector("phi1", "N", axes=("B",), past=True, spans=("J1",), home="J1", group=2),
        Vector("J1_phi1", "N", axes=("B",), role="product", group=1),
        Vector("h2", "N", axes=("B",), group=1),
        Vector("phi2", "N", axes=("B",), past=True, spans=("J2",), home="J2", group=1),
        Vector("J2_phi2", "N", axes=("B",), role="product"),
        Vector("h3", "N", axes=("B",)),
        Vector("phi3", "N", axes=("B",)),
        Vector("pushed", "N", axes=("B",), lags=1, multiple_of="phi3"),
        Vector("g3", "N", axes=("B",), past=True, spans=("J2T",), home="J2T"),
        Vector("J2T_g3", "N", axes=("B",), role="product", group=1),
        Vector("z2", "N", axes=("B",), group=1),
        Vector("g2", "N", axes=("B",), past=True, spans=("J1T",), home="J1T", group=1),
        Vector("J1T_g2", "N", axes=("B",), role="product", group=2),
        Vector("z1", "N", axes=("B",), group=2),
        Vector("g1", "N", axes=("B",), group=2),
        Vector("spike1", "N", axes=("B",), lags=1, multiple_of="g1", group=2),
        Vector("spike2", "N", axes=("B",), past=True, spans=("J1T",), home="J1T", multiple_of="g2", group=1),
        Vector("spike3", "N", axes=("B",), past=True, spans=("J2T",), home="J2T", multiple_of="g3"),
        Vector("V0", "N", axes=("D",), timed=False, role="normal", scale=lambda p: p.sigma, group=2),
        Vector("w0", "N", timed=False, role="normal", scale=lambda p: p.sigma),
    ),
    products=(
        MatrixProduct(
            "J1_phi1", "J1", "phi1", (Memory("phi1", "J1T_g2", "g2", lag=1),), strength=lambda p: p.sigma
        ),
        MatrixProduct(
            "J2_phi2", "J2", "phi2", (Memory("phi2", "J2T_g3", "g3", lag=1),), strength=lambda p: p.sigma
        ),
        MatrixProduct("J2T_g3", "J2T", "g3", (Memory("g3", "J2_phi2", "phi2"),), strength=lambda p: p.sigma),
        MatrixProduct("J1T_g2", "J1T", "g2", (Memory("g2", "J1_phi1", "phi1"),), strength=lambda p: p.sigma),
    ),
    observables=(
        Recorded("loss"),
        Recorded("prediction", axes=("B",)),
        Recorded("features1"),
        Recorded("features2"),
        Recorded("features3"),
        Recorded("gradients1"),
        Recorded("gradients2"),
        Recorded("gradients3"),
    ),
    step=step,
    order=order,
    spans=(SpanOf("J1", ("phi1",)), SpanOf("J2", ("phi2",)), SpanOf("J2T", ("g3",)), SpanOf("J1T", ("g2",))),
    channels=(
        Channel("J1", "J1", ("phi1",), ("J1_phi1",)),
        Channel("J2", "J2", ("phi2",), ("J2_phi2",)),
        Channel("J2T", "J2T", ("g3",), ("J2T_g3",)),
        Channel("J1T", "J1T", ("g2",), ("J1T_g2",)),
    ),
    groups=(("J2", "w0"), ("J1", "J2T"), ("J1T", "V0")),
    lags=(
        ("phi1", "J1T_g2", 1),
        ("phi2", "J2T_g3", 1),
        ("g3", "J2_phi2", 0),
        ("g2", "J1_phi1", 0),
        ("spike2", "J1_phi1", 0),
        ("spike3", "J2_phi2", 0),
    ),
    links={
        "V": {"spike1": 1, "V": 1, "V0": 0},
        "w": {"pushed": 1, "w": 1, "w0": 0},
        "pushed": {"phi3": 0},
        "h1": {"V": 0},
        "phi1": {"h1": 0},
        "g1": {"h1": 0, "z1": 0},
        "spike1": {"g1": 0},
        "h2": {"spike2": 1, "J1_phi1": 0},
        "z1": {"phi1": 1, "J1T_g2": 0},
        "phi2": {"h2": 0},
        "g2": {"h2": 0, "z2": 0},
        "spike2": {"g2": 0},
        "h3": {"spike3": 1, "J2_phi2": 0},
        "z2": {"phi2": 1, "J2T_g3": 0},
        "phi3": {"h3": 0},
        "g3": {"h3": 0, "w": 0},
        "spike3": {"g3": 0},
        "J1_phi1": {"g2": 1},
        "J1T_g2": {"phi1": 0},
        "J2_phi2": {"g3": 1},
        "J2T_g3": {"phi2": 0},
    },
    paired=True,
)
