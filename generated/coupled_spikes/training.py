# Written by `derive build coupled_spikes` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Training level, exactly: all laws are linear, so all fields are Gaussian, in one pass."""

from numerics.runtime.program import Covariance, MatrixProduct, Memory, Recorded, Training, Vector


def step(p, x, t):
    """All fields of one time."""
    # [E3] phi(t) = a(t) + kappa sum_{s<t} xi(s)
    phi = x.put("phi", x.past_sum("xi", 0, p.kappa) + x.drawn("a"))
    # [E1] chi(t) = u[chi](t) + (sigma^2/alpha) sum_{s<t} R[phi,xi](t,s) g(s)
    # [E5] <u[chi](t) u[chi](s)> = sigma^2 C[phi,phi](t,s)
    chi = x.put("chi", x.product("chi", (p.sigma**2 / p.alpha,), (p.sigma**2,)))
    # [E4] g(t) = theta b(t) + kappa theta sum_{s<t} chi(s)
    g = x.put("g", p.theta * x.drawn("b") + x.past_sum("chi", 0, p.kappa * p.theta))
    # [E2] xi(t) = u[xi](t) + sigma^2 sum_{s<t} R[g,chi](t,s) phi(s)
    # [E6] <u[xi](t) u[xi](s)> = (sigma^2/alpha) C[g,g](t,s)
    xi = x.put("xi", x.product("xi", (p.sigma**2,), (p.sigma**2 / p.alpha,)))
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
    closure="exact",
    times=lambda p: p.S,
    before=lambda p: p.S,
    vectors=(
        Vector("phi", "N0", past=True),
        Vector("chi", "N1", role="product", past=True),
        Vector("g", "N1", past=True),
        Vector("xi", "N0", role="product", past=True),
        Vector("a", "N0", role="normal"),
        Vector("b", "N1", role="normal"),
    ),
    products=(
        MatrixProduct(
            "chi", "W0", "phi", (Memory("phi", "xi", "g", lag=1),), (Covariance("chi", "phi", "phi"),)
        ),
        MatrixProduct("xi", "W0T", "g", (Memory("g", "chi", "phi", lag=1),), (Covariance("xi", "g", "g"),)),
    ),
    observables=(Recorded("phi_norm"), Recorded("g_norm"), Recorded("alignment")),
    step=step,
    order=order,
)
