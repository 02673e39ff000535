# Written by `derive build structured_regression spectrum=two_groups batch=full hessian=no` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Training level, exactly: all laws are linear, so all fields are Gaussian, in one pass."""

import jax.numpy as jnp

from numerics.runtime.program import Covariance, MatrixProduct, Memory, Recorded, Training, TraitLaw, Vector
from numerics.runtime.traits import discrete


def step(p, x, t):
    """All fields of one time."""
    # [E5] w(0) = 0
    # [E6] w(t) = eta sqrt(lam) h(t-1) - eta ridge w(t-1) - mu w(t-2) + mu w(t-1) + w(t-1)
    w = x.put(
        "w",
        x.starting(
            (0,),
            p.mu * x.earlier("w", 1)
            + (-p.mu) * x.earlier("w", 2)
            + (p.eta * jnp.sqrt(x.trait("lam"))) * x.earlier("h", 1)
            + (-p.eta * p.ridge) * x.earlier("w", 1)
            + x.earlier("w", 1),
        ),
    )
    # [E2] u(t) = teacher sqrt(lam) - sqrt(lam) w(t)
    u = x.put("u", (jnp.sqrt(x.trait("lam"))) * x.drawn("teacher") + (-jnp.sqrt(x.trait("lam"))) * w)
    # [E3] Z_u(t) = u[Z_u](t) + (1/alpha) sum_{s<t} R[u,h](t,s) delta(s)
    # [E8] <u[Z_u](t) u[Z_u](s)> = C[u,u](t,s)
    Z_u = x.put("Z_u", x.product("Z_u", (1 / p.alpha,), (1,)))
    # [E4] delta(t) = sigma eps + Z_u(t)
    delta = x.put("delta", p.sigma * x.drawn("eps") + Z_u)
    # [E1] h(t) = u[h](t) + sum_{s<=t} R[delta,Z_u](t,s) u(s)
    # [E7] <u[h](t) u[h](s)> = C[delta,delta](t,s)/alpha
    h = x.put("h", x.product("h", (1,), (1 / p.alpha,)))
    # train_loss = <delta(t)^2>
    x.record("train_loss", x.mean((delta * delta), 0))
    # test_loss = sigma^2 + <u(t)^2>
    x.record("test_loss", p.sigma**2 + x.mean((u * u), 0))
    # distance = <(teacher - w(t))^2>
    x.record(
        "distance",
        x.mean((x.drawn("teacher") * x.drawn("teacher")) + (w * w) + ((-2) * (w * x.drawn("teacher"))), 0),
    )


def order(p, x):
    """Order parameters before the last update."""
    return {}


TRAINING = Training(
    closure="exact",
    times=lambda p: p.T + 1,
    before=lambda p: p.T,
    vectors=(
        Vector("w", "D", lags=2),
        Vector("u", "D", past=True),
        Vector("Z_u", "P", role="product"),
        Vector("delta", "P", past=True),
        Vector("h", "D", role="product", lags=1),
        Vector("eps", "P", timed=False, role="normal"),
        Vector("teacher", "D", timed=False, role="normal"),
    ),
    products=(
        MatrixProduct("Z_u", "Z", "u", (Memory("u", "h", "delta", lag=1),), (Covariance("Z_u", "u", "u"),)),
        MatrixProduct(
            "h", "ZT", "delta", (Memory("delta", "Z_u", "u"),), (Covariance("h", "delta", "delta"),)
        ),
    ),
    observables=(Recorded("train_loss"), Recorded("test_loss"), Recorded("distance")),
    step=step,
    order=order,
    traits=(
        TraitLaw("lam", "D", lambda p, nodes: discrete((1, p.kappa), (1 - p.share, p.share)), discrete=True),
    ),
)
