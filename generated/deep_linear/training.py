# Written by `derive build deep_linear L=2 data=full_batch param=mup spectrum=isotropic kernel=shift teachers=alike` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Training level, exactly: all laws are linear, so all fields are Gaussian, in one pass."""

from numerics.runtime.program import (
    AlikeLabels,
    Covariance,
    MatrixProduct,
    Memory,
    Recorded,
    Training,
    Vector,
)


def step(p, x, t):
    """All fields of one time."""
    # [E6] g2(0) = readout
    # [E7] g2(t) = eta gamma0 h2(t-1) + g2(t-1)
    g2 = x.put(
        "g2", x.starting((x.drawn("readout"),), (p.eta * p.gamma0) * x.earlier("h2", 1) + x.earlier("g2", 1))
    )
    # [E8] J1T_g2(t) = u[J1T_g2](t) + sum_{s<t} R[g2,J1_h1](t,s) h1(s)
    # [E18] <u[J1T_g2](t) u[J1T_g2](s)> = C[g2,g2](t,s)
    J1T_g2 = x.put("J1T_g2", x.product("J1T_g2", (1,), (1,)))
    # [E9] g1(t) = J1T_g2(t) + eta gamma0 sum_{s<t} C[g2,g2](t,s) h1(s)
    g1 = x.put("g1", x.past_sum("h1", 0, p.eta * p.gamma0, "g2", g2) + J1T_g2)
    # [E2] J0T_g1(t) = u[J0T_g1](t) + sum_{s<t} R[g1,J0_h0](t,s) h0(s)
    # [E16] <u[J0T_g1](t) u[J0T_g1](s)> = C[g1,g1](t,s)/nu
    J0T_g1 = x.put("J0T_g1", x.product("J0T_g1", (1,), (1 / p.nu,)))
    # [E3] v(t) = teacher - J0T_g1(t)/gamma0 - eta sum_{s<t} C[g1,g1](t,s) h0(s)
    v = x.put("v", (-1 / p.gamma0) * J0T_g1 + x.past_sum("h0", 0, -p.eta, "g1", g1) + x.drawn("teacher"))
    # [E4] X_v(t) = u[X_v](t) + (1/alpha) sum_{s<t} R[v,h0](t,s) delta(s)
    # [E15] <u[X_v](t) u[X_v](s)> = C[v,v](t,s)
    X_v = x.put("X_v", x.product("X_v", (1 / p.alpha,), (1,)))
    # [E5] delta(t) = sigma eps + X_v(t)
    delta = x.put("delta", p.sigma * x.drawn("eps") + X_v)
    # [E1] h0(t) = u[h0](t) + sum_{s<=t} R[delta,X_v](t,s) v(s)
    # [E14] <u[h0](t) u[h0](s)> = C[delta,delta](t,s)/alpha
    h0 = x.put("h0", x.product("h0", (1,), (1 / p.alpha,)))
    # [E10] J0_h0(t) = u[J0_h0](t) + (1/nu) sum_{s<=t} R[h0,J0T_g1](t,s) g1(s)
    # [E17] <u[J0_h0](t) u[J0_h0](s)> = C[h0,h0](t,s)
    J0_h0 = x.put("J0_h0", x.product("J0_h0", (1 / p.nu,), (1,)))
    # [E11] h1(t) = J0_h0(t) + eta gamma0 sum_{s<t} C[h0,h0](t,s) g1(s)
    h1 = x.put("h1", x.past_sum("g1", 0, p.eta * p.gamma0, "h0", h0) + J0_h0)
    # [E12] J1_h1(t) = u[J1_h1](t) + sum_{s<=t} R[h1,J1T_g2](t,s) g2(s)
    # [E19] <u[J1_h1](t) u[J1_h1](s)> = C[h1,h1](t,s)
    J1_h1 = x.put("J1_h1", x.product("J1_h1", (1,), (1,)))
    # [E13] h2(t) = J1_h1(t) + eta gamma0 sum_{s<t} C[h1,h1](t,s) g2(s)
    h2 = x.put("h2", x.past_sum("g2", 0, p.eta * p.gamma0, "h1", h1) + J1_h1)
    # train_loss = <delta(t)^2>
    x.record("train_loss", x.mean_of_labels(x.mean((delta * delta), 1)))
    # test_loss = sigma^2 + <v(t)^2>
    x.record("test_loss", p.sigma**2 + x.mean_of_labels(x.mean((v * v), 1)))


def order(p, x):
    """Order parameters before the last update."""
    return {
        ("C", "g1", "g1"): p.nu * x.covariance("J0T_g1"),
        ("C", "g2", "g2"): x.covariance("J1T_g2"),
        ("C", "h0", "h0"): x.covariance("J0_h0"),
        ("C", "h1", "h1"): x.covariance("J1_h1"),
        ("R", "g1", "J0_h0"): x.response("g1", "J0_h0"),
        ("R", "g2", "J1_h1"): x.response("g2", "J1_h1"),
        ("R", "h0", "J0T_g1"): x.response("h0", "J0T_g1"),
        ("R", "h1", "J1T_g2"): x.response("h1", "J1T_g2"),
    }


TRAINING = Training(
    closure="exact",
    times=lambda p: p.T + 1,
    before=lambda p: p.T,
    vectors=(
        Vector("g2", "N2", axes=("C",), past=True, lags=1),
        Vector("J1T_g2", "N1", axes=("C",), role="product"),
        Vector("g1", "N1", axes=("C",), past=True),
        Vector("J0T_g1", "D", axes=("C",), role="product"),
        Vector("v", "D", axes=("C",), past=True),
        Vector("X_v", "P", axes=("C",), role="product"),
        Vector("delta", "P", axes=("C",), past=True),
        Vector("h0", "D", axes=("C",), role="product", past=True),
        Vector("J0_h0", "N1", axes=("C",), role="product"),
        Vector("h1", "N1", axes=("C",), past=True),
        Vector("J1_h1", "N2", axes=("C",), role="product"),
        Vector("h2", "N2", axes=("C",), lags=1),
        Vector("eps", "P", axes=("C",), timed=False, role="normal"),
        Vector("readout", "N2", axes=("C",), timed=False, role="normal"),
        Vector("teacher", "D", axes=("C",), timed=False, role="normal"),
    ),
    products=(
        MatrixProduct(
            "J1T_g2", "J1T", "g2", (Memory("g2", "J1_h1", "h1", lag=1),), (Covariance("J1T_g2", "g2", "g2"),)
        ),
        MatrixProduct(
            "J0T_g1", "J0T", "g1", (Memory("g1", "J0_h0", "h0", lag=1),), (Covariance("J0T_g1", "g1", "g1"),)
        ),
        MatrixProduct("X_v", "X", "v", (Memory("v", "h0", "delta", lag=1),), (Covariance("X_v", "v", "v"),)),
        MatrixProduct(
            "h0", "XT", "delta", (Memory("delta", "X_v", "v"),), (Covariance("h0", "delta", "delta"),)
        ),
        MatrixProduct(
            "J0_h0", "J0", "h0", (Memory("h0", "J0T_g1", "g1"),), (Covariance("J0_h0", "h0", "h0"),)
        ),
        MatrixProduct(
            "J1_h1", "J1", "h1", (Memory("h1", "J1T_g2", "g2"),), (Covariance("J1_h1", "h1", "h1"),)
        ),
    ),
    observables=(Recorded("train_loss"), Recorded("test_loss")),
    step=step,
    order=order,
    alike=AlikeLabels(("C",), components=1),
)
