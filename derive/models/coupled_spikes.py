"""Coupled spikes with linear laws: a rectangular Gaussian matrix plus S spikes that depend on it.

W(S) = W(0) + N0^(-1/2) sum_t g(t) phi(t)^T with N1 = alpha N0 and entries of W(0) of variance sigma^2. The spikes
see the initial matrix through chi(t) = W(0) phi(t) / sqrt(N0) and xi(t) = (sqrt(N0) / N1) W(0)^T g(t), and each is
an elementwise law of the earlier ones. The spectrum is that of W(S)^T W(S) / N1.

`declare` takes the two laws, so that a model with other laws is a short file (see coupled_spikes_tanh).
"""

from collections.abc import Callable

from sympy import Expr, sqrt

from derive import (
    Eq,
    Model,
    fields,
    gaussian,
    mean,
    normal,
    outer,
    overlap,
    parameter,
    past_sum,
    positive,
    real,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

alpha = parameter("alpha", default=2.0, domain=positive, doc="N1 / N0, rows over columns")
sigma = parameter("sigma", default=1.0, domain=positive, doc="standard deviation of the entries of W(0)")
theta = parameter("theta", default=1.5, domain=real, doc="strength of the spikes")
kappa = parameter("kappa", default=0.5, domain=real, doc="how much a spike depends on earlier ones")
S = parameter("S", default=3, domain=whole_positive, doc="number of spikes")


LETTERS = {
    "W0": "W(0)",
    "N0": "N",
    "N1": "N_1",
    "G": r"\mathcal{G}",
    "u[chi]": r"u^\chi",
    "u[xi]": r"u^\xi",
    "psi0": r"\psi_0",
    "psi1": r"\psi_1",
    "u[W0 psi0]": r"u^{\psi_1}",
    "u[W0^T psi1]": r"u^{\psi_0}",
    "C[phi,phi]": r"C^\phi",
    "C[g,g]": "C^g",
    "R[phi,xi]": r"R^\phi",
    "R[g,chi]": "R^g",
    "C[psi0,psi0]": r"C^{\psi_0}",
    "C[psi1,psi1]": r"C^{\psi_1}",
    "R[psi0,W0^T psi1]": r"R^{\psi_0}",
    "R[psi1,W0 psi0]": r"R^{\psi_1}",
    "C[psi0,phi]": "c_0",
    "C[psi1,g]": "c_1",
    "R[psi0,xi]": r"\rho_0",
    "R[psi1,chi]": r"\rho_1",
}
"""The letters of the paper's appendix on statistically dependent spikes."""


def declare(phi_law: Callable[[Expr, Expr], Expr], g_law: Callable[[Expr, Expr], Expr]) -> Model:
    """Return the model with phi(t) = phi_law(a(t), sum of earlier xi), g(t) = g_law(b(t), sum of earlier chi)."""
    N0, N1 = sectors("N0", N1=alpha)
    t = training_clock("t", steps=S, endpoint=False)
    W0 = gaussian("W0", N1, N0, variance=sigma**2)
    a, b = normal("a", N0, t), normal("b", N1, t)
    phi, xi = fields("phi xi", N0, t)
    g, chi = fields("g chi", N1, t)
    W = weights("W", N1, N0, t)
    return Model(
        parameters=(alpha, sigma, theta, kappa, S),
        equations=[
            Eq(phi(t), phi_law(a(t), past_sum(lambda s: xi(s), t))),
            Eq(g(t), g_law(b(t), past_sum(lambda s: chi(s), t))),
            Eq(chi(t), W0 @ phi(t) / sqrt(N0)),
            Eq(xi(t), sqrt(N0) / N1 * W0.T @ g(t)),
            Eq(W(0), W0),
            Eq(W(t + 1), W(t) + outer(g(t), phi(t)) / sqrt(N0)),
        ],
        observe={"phi_norm": mean(phi(t) ** 2), "g_norm": mean(g(t) ** 2), "alignment": overlap(g(t), chi(t))},
        probe=spectrum(W(S).T @ W(S) / N1),
        notation=LETTERS,
    )


MODEL = declare(
    phi_law=lambda a, earlier: a + kappa * earlier,
    g_law=lambda b, earlier: theta * (b + kappa * earlier),
)
