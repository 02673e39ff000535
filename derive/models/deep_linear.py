"""Deep linear network in the proportional limit: L layers of width N = nu D, P = alpha D samples, C outputs.

f_c(x) = sqrt(D) / (N gamma0) w_c . W(L-1) ... W1 W0 x / (sqrt(N)^(L-1) sqrt(D)) learns y_c = teacher_c . x / sqrt(D)
+ sigma noise by gradient descent with rate eta, either on one set of samples (data=full_batch) or on B = alpha D
fresh ones at each step (data=online). Layer 0 is W0, of N x D entries; layers 1 ... L-1 are square. All entries start
as independent standard normal variables. The spectra are those of W^T W / N after T steps, one per layer.

A step changes v by -eta B h0, where B = sum_k <g(k+1)^2> H_k^T H_k is the population core of the neural tangent kernel
(layer ntk): H_k = W(k-1) ... W0 / sqrt(N)^k, H_0 = 1, and <g(L+1)^2> = 1. For L = 1 it is W0^T W0 / N plus
the mean square of the readout, and is always computed (kernel=shift); kernel=core computes it at any depth.
kernel=sample also computes the kernel of the training inputs x, x B x^T / D (layer sample): a step on all samples
changes delta by -eta/alpha times this matrix applied to delta, and overshoots if eta times its largest eigenvalue
exceeds 2 alpha. Mean squares are averaged over classes as well: equivalent teachers have one kernel. With
teachers=given the array `classes` contains the weight of each class in the mean squares, by default 1/C:
classes=[0,1,0] gives the kernel of the second class of three, which differs from the others.

v is the part of the teacher that the network has not learned, delta the errors on the samples, h0 their correlation
with the inputs, h(k+1) the forward and g(k) the backward fields. With param=ntk the output is divided by gamma0
sqrt(N), and the learning rate does not grow with the width. This amounts to gamma0 / sqrt(nu) in place of gamma0: wide
networks are lazy.

The C teachers are orthogonal and of unit length (teachers=alike), or they have lengths strengths[c] sqrt(gram[c][c])
and scalar products strengths[a] strengths[b] gram[a][b], in units of D (teachers=given); gram is a positive
semidefinite table.
Different teachers give different outliers.

The variances lam of the inputs are all one (spectrum=isotropic), kappa for a fraction of the inputs and one for the
others (two_groups), or between cut and 1 with the density lam^(-1 - 1/decay) (power_law): sorted, they decay like
k^(-decay).
"""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from sympy import Expr, S, Symbol, sqrt

from derive import (
    Domain,
    Eq,
    Model,
    axis,
    data as given,
    diag,
    family,
    field,
    gaussian,
    mean,
    nonnegative,
    normal,
    one_of,
    outer,
    parameter,
    positive,
    root,
    sectors,
    spectrum as spectrum_of,
    total,
    trait,
    training_clock,
    weights,
    whole_choice,
    whole_positive,
)
from derive.errors import ParameterError

alpha = parameter("alpha", default=2.0, domain=positive, doc="P / D, samples (of a batch, if online) over inputs")
nu = parameter("nu", default=1.0, domain=positive, doc="N / D, width over inputs")
gamma0 = parameter("gamma0", default=3.0, domain=positive, doc="output scale: small is lazy, large learns features")
eta = parameter("eta", default=0.05, domain=positive, doc="learning rate")
sigma = parameter("sigma", default=0.3, domain=nonnegative, doc="standard deviation of the noise of the labels")
T = parameter("T", default=30, domain=whole_positive, doc="number of steps")
C = parameter("C", default=1, domain=whole_positive, doc="number of outputs")
kappa = parameter("kappa", default=4.0, domain=nonnegative, doc="variance of the second group of inputs")
share = parameter("share", default=0.25, domain=Domain(0, 1), doc="share of the inputs in the second group")
decay = parameter("decay", default=1.5, domain=positive, doc="exponent with which the sorted variances of inputs decay")
cut = parameter("cut", default=0.01, domain=Domain(0, 1), doc="smallest variance of inputs over the largest")

x = Symbol("x", positive=True)
LAWS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "isotropic": ({}, ()),
    "two_groups": ({"values": [1, kappa], "weights": [1 - share, share]}, (kappa, share)),
    "power_law": ({"density": x ** (-1 - 1 / decay), "low": cut, "high": 1}, (decay, cut)),
}
"""The law of the variances of the inputs, and the parameters in it."""


def alike(values: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of orthogonal teachers of strength one."""
    import numpy as np

    count = values["C"]
    return {"strengths": np.ones(count), "gram": np.eye(count), "classes": np.full(count, 1 / count)}


def unusable(arrays: dict[str, Any]) -> str:
    """Return an error message about the given weights of classes; empty if they are valid."""
    shares = arrays.get("classes")
    if shares is None or ((shares >= 0).all() and abs(shares.sum() - 1) < 1e-9):
        return ""
    return (
        "classes must be shares: nonnegative numbers that add up to one; classes=[0,1,0] is the second of three alone"
    )


def core(W: Sequence[Any], squares: Sequence[Any], N: Sequence[Any]) -> Any:
    """Return the core of the neural tangent kernel up to a multiple of the identity: a sum over layers."""
    below, size = W[0](T), N[1]
    terms = []
    for k in range(1, len(W)):
        terms.append(squares[k + 1] / size * below.T @ below)
        below, size = W[k](T) @ below, size * N[k + 1]
    return reduce(add, terms, below.T @ below / size)


def letters(L: int, data: str, spectrum: str, teachers: str, scale: Expr) -> dict[str, Any]:
    """Return the letters of the paper's appendix on deep linear networks."""
    named: dict[str, Any] = {"v": "v", "delta": r"\Delta", "readout": "w^L(0)", "eps": r"\epsilon"}
    named |= {"G": r"\mathcal{H}", "C[v,v]": "C_v", "C[delta,delta]": r"C_\Delta"}
    if teachers == "alike":
        named |= {"teacher": r"w_\star"}
    if spectrum == "isotropic":
        named |= {"u[X v]": r"u_\Delta", "u[h0]": "u^0"}
        if data == "full_batch":
            named |= {"R[delta,X v]": r"R_\Delta", "R[v,h0]": "R_{vu}^0"}
    if data == "online":
        named |= {"alpha": r"\alpha_B", "P": "B"}
    named |= {"psi0": r"\psi_0", "psi1": r"\psi_1", "C[psi0,psi0]": r"C^{\psi_0}", "C[psi1,psi1]": r"C^{\psi_1}"}
    for k in range(L + 1):
        named |= {f"h{k}": f"h^{k}", f"g{k}": f"g^{k}", f"C[h{k},h{k}]": f"C_h^{k}", f"C[g{k},g{k}]": f"C_g^{k}"}
    for k in range(L):
        h, g, forward, backward = f"h{k}", f"g{k + 1}", f"J{k} h{k}", f"J{k}^T g{k + 1}"
        above, below = f"J{k} psi0", f"J{k}^T psi1"
        named |= {
            f"N{k + 1}": "N",
            f"W{k}": f"W^{k}",
            f"J{k}": f"W^{k}(0)",
            forward: rf"\chi^{k + 1}",
            backward: (scale, rf"\xi^{k}") if k == 0 else rf"\xi^{k}",
            f"u[{forward}]": f"u^{k + 1}",
            f"u[{backward}]": f"r^{k}",
            f"R[{h},{backward}]": f"R_{{hr}}^{k}",
            f"R[{g},{forward}]": f"R_{{gu}}^{k + 1}",
            above: r"\zeta_1",
            below: r"\zeta_2",
            f"u[{above}]": r"u_{\zeta_1}",
            f"u[{below}]": r"u_{\zeta_2}",
            f"C[{h},psi0]": rf"C^{{h^{k}\psi_0}}",
            f"C[{g},psi1]": rf"C^{{g^{k + 1}\psi_1}}",
            f"R[psi0,{backward}]": rf"R^{{\psi_0 r^{k}}}",
            f"R[psi1,{forward}]": rf"R^{{\psi_1 u^{k + 1}}}",
            f"R[psi0,{below}]": r"R^{\psi_0\zeta_2}",
            f"R[psi1,{above}]": r"R^{\psi_1\zeta_1}",
            f"R[{h},{below}]": rf"R^{{h^{k}\zeta_2}}",
            f"R[{g},{above}]": rf"R^{{g^{k + 1}\zeta_1}}",
        }
    named.pop("g0"), named.pop("C[g0,g0]")
    return named


def check_choices(spectrum: str, kernel: str) -> None:
    """Refuse choices that exclude each other."""
    if kernel == "sample" and spectrum == "power_law":
        raise ParameterError(
            "kernel=sample does not support spectrum=power_law: sites with a density have no groups in which the "
            "data are normal; use spectrum=two_groups or isotropic, or kernel=core"
        )


def declare(L: int, data: str, param: str, spectrum: str, teachers: str, kernel: str) -> Model:
    """Return the network with L layers of weights below its readout."""
    check_choices(spectrum, kernel)
    scale = gamma0 if param == "mup" else gamma0 / sqrt(nu)
    sizes = sectors("D", P=alpha, **{f"N{k}": nu for k in range(1, L + 1)})
    D, P, N = sizes[0], sizes[1], (sizes[0], *sizes[2:])
    t, c = training_clock("t", steps=T), axis("c", C)

    law, of_law = LAWS[spectrum]
    lam: Expr = trait("lam", D, **law) if law else S.One
    teacher, readout = normal("teacher", D, axes=c), normal("readout", N[L], axes=c)
    if teachers == "given":
        strengths, gram = given("strengths", c, optional=True), given("gram", c, c, optional=True)
        teacher = strengths * (root(gram) @ normal("independent", D, axes=c))
    if data == "online":
        X, noise = gaussian("X", P, D, fresh=t)(t), normal("eps", P, t, axes=c)(t)
    else:
        X, noise = gaussian("X", P, D), normal("eps", P, axes=c)
    v, delta = field("v", D, t, axes=c), field("delta", P, t, axes=c)
    h = [field(f"h{k}", N[k], t, axes=c) for k in range(L + 1)]
    g = [field(f"g{k}", N[k], t, axes=c) for k in range(L + 1)]
    J = [gaussian(f"J{k}", N[k + 1], N[k]) for k in range(L)]
    W = [weights(f"W{k}", N[k + 1], N[k], t) for k in range(L)]

    equations = [
        Eq(v(t), teacher - sqrt(D) / (N[1] * scale) * W[0](t).T @ g[1](t)),
        Eq(delta(t), X @ (sqrt(lam) * v(t)) / sqrt(D) + sigma * noise),
        Eq(h[0](t), sqrt(D) / P * sqrt(lam) * (X.T @ delta(t))),
        Eq(g[L](0), readout),
        Eq(g[L](t + 1), g[L](t) + eta * scale * h[L](t)),
    ]
    equations += [Eq(g[k](t), W[k](t).T @ g[k + 1](t) / sqrt(N[k])) for k in range(1, L)]
    for k in range(L):
        equations += [
            Eq(h[k + 1](t), W[k](t) @ h[k](t) / sqrt(N[k])),
            Eq(W[k](0), J[k]),
            Eq(W[k](t + 1), W[k](t) + eta * scale / sqrt(N[k]) * outer(g[k + 1](t), h[k](t))),
        ]

    observe = {"train_loss": mean(delta(t) ** 2), "test_loss": mean(lam * v(t) ** 2) + sigma**2}
    probe = {str(k): spectrum_of(W[k](T).T @ W[k](T) / N[k + 1]) for k in range(L)}
    if L == 1 or kernel != "shift":
        shift = "readout_norm" if L == 1 else "backward_norm"
        squares = [total(mean(field(T) ** 2)) / C for field in g]
        observe[shift] = mean(g[1](t) ** 2)
        if teachers == "given":
            share = given("classes", c, optional=True)
            squares = [total(share * mean(field(T) ** 2)) for field in g]
            observe[shift] = total(share * mean(g[1](t) ** 2))
        probe["ntk"] = spectrum_of(core(W, squares, N), plus=shift)
        if kernel == "sample":
            inputs = X @ diag(sqrt(lam)) if law else X
            probe["sample"] = spectrum_of(
                squares[1] / D * inputs @ inputs.T + inputs @ core(W, squares, N) @ inputs.T / D
            )
    parameters = (alpha, nu, gamma0, eta, sigma, T, C, *of_law)
    own: dict[str, Any] = {"arrays": alike, "refuses": unusable} if teachers == "given" else {}
    own["notation"] = letters(L, data, spectrum, teachers, scale)
    return Model(parameters=parameters, equations=equations, observe=observe, probe=probe, **own)


MODEL = family(
    declare,
    L=whole_choice(2, doc="layers of weights below the readout"),
    data=one_of("full_batch", "online", doc="the same samples at every step, or fresh ones"),
    param=one_of("mup", "ntk", doc="scaling with the width: gamma0 fixed, or gamma0 / sqrt(nu)"),
    spectrum=one_of("isotropic", "two_groups", "power_law", doc="variances of the inputs"),
    kernel=one_of(
        "shift", "core", "sample", doc="tangent kernel: only if its core is a shift, always, or also on the samples"
    ),
    teachers=one_of("alike", "given", doc="orthogonal and equally strong, or with given strengths and scalar products"),
)
