# Written by `derive build anti_hebbian` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Training level, exactly: all laws are linear, so all fields are Gaussian, in one pass."""

from numerics.runtime.program import Covariance, MatrixProduct, Memory, Recorded, Training, Vector


def step(p, x, t):
    """All fields of one time."""
    # [E2] v(0) = start
    # [E3] v(t) = v(t-1) - dt M0_v(t-1) - dt^2 gamma0 sum_{s<t-1} C[v,v](t-1,s) v(s)
    v = x.put(
        "v",
        x.starting(
            (x.drawn("start"),),
            (-p.dt) * x.earlier("M0_v", 1)
            + x.past_sum("v", -1, -(p.dt**2) * p.gamma0, "v", x.earlier("v", 1))
            + x.earlier("v", 1),
        ),
    )
    # [E1] M0_v(t) = u[M0_v](t) + sum_{s<t} R[v,M0_v](t,s) v(s)
    # [E4] <u[M0_v](t) u[M0_v](s)> = C[v,v](t,s)
    M0_v = x.put("M0_v", x.product("M0_v", (1,), (1,)))
    # activity = <v(t)^2>
    x.record("activity", x.mean((v * v), 0))
    # memory = <start v(t)>
    x.record("memory", x.mean((v * x.drawn("start")), 0))


def order(p, x):
    """Order parameters before the last update."""
    return {
        ("C", "v", "v"): x.covariance("M0_v"),
        ("R", "v", "M0_v"): x.response("v", "M0_v"),
    }


TRAINING = Training(
    closure="exact",
    times=lambda p: p.T + 1,
    before=lambda p: p.T,
    vectors=(
        Vector("v", "D", past=True, lags=1),
        Vector("M0_v", "D", role="product", lags=1),
        Vector("start", "D", timed=False, role="normal"),
    ),
    products=(
        MatrixProduct("M0_v", "M0", "v", (Memory("v", "M0_v", "v", lag=1),), (Covariance("M0_v", "v", "v"),)),
    ),
    observables=(Recorded("activity"), Recorded("memory")),
    step=step,
    order=order,
    overlaps=(("v", "v"),),
)
