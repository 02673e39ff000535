"""Wide nonlinear network: L hidden layers of width N to infinity, gradient descent on P points in D dimensions.

f = w . phi(h_L) / (gamma N), h_(l+1) = W_l phi(h_l) / sqrt(N), h_1 = V x / sqrt(D), all weights drawn with variance
sigma^2. A step moves every weight by -eta gamma^2 N times the gradient of the mean loss over the B points of its
batch, so that features change by an amount of order one at any width. B = P is full-batch descent; smaller B takes
shuffled batches without replacement, epoch after epoch. The probed matrices are W_l(T)^T W_l(T) / N for l = 1, ...,
L - 1.

Points are those of the teacher y = q(beta . x), q(a) = a + a^2/2, with x standard normal and |beta| = 1 (the sign of
beta . x for loss=cross_entropy), unless a file is given: data=FILE.npz with x (P by D) and y (P numbers) and
optionally order (T by B positions in them).
"""

from functools import partial
from typing import Any

from sympy import Derivative, DiracDelta, Expr, Symbol, diff, exp, log, sqrt

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    family,
    field,
    formula,
    gaussian,
    mean,
    normal,
    one_of,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    total,
    training_clock,
    weights,
    whole_choice,
    whole_nonnegative,
    whole_positive,
)
from derive.inputs.data_files import batches
from derive.errors import ParameterError

gamma = parameter(
    "gamma", default=2.5, domain=positive, doc="output scale: lazy when small, feature learning when large"
)
eta = parameter("eta", default=0.1, domain=positive, doc="learning rate")
sigma = parameter("sigma", default=1.0, domain=positive, doc="standard deviation of the initial weights")
P = parameter("P", default=10, domain=whole_positive, doc="training points")
D = parameter("D", default=10, domain=whole_positive, doc="input dimensions")
B = parameter("B", default=P, domain=whole_positive, doc="points in a batch; P means full batch")
T = parameter("T", default=20, domain=whole_positive, doc="training steps")
draw = parameter(
    "draw", default=0, domain=whole_nonnegative, doc="number of the draw of the teacher's points and batches"
)


def single_index(values: dict[str, Any], signs: bool = False) -> dict[str, Any]:
    """Return samples of the teacher in the order of training, with labels or only the signs of the labels."""
    import numpy as np

    rng = np.random.default_rng(values["draw"])
    beta = rng.standard_normal(values["D"])
    x = rng.standard_normal((values["P"], values["D"]))
    signal = x @ (beta / np.linalg.norm(beta))
    y = np.sign(signal) if signs else signal + signal**2 / 2
    order = batches(values["P"], values["B"], values["T"] + 1, rng)
    return {"x": x[order], "y": y[order]}


def unusable(arrays: dict[str, Any], signs: bool) -> str:
    """Return an error message about the labels of the output, which must be signs for some losses; empty if they are
    valid.
    """
    x, y = arrays["x"], arrays["y"]
    classes = y.shape[1] if y.ndim == x.ndim == 2 and len(y) == len(x) and y.shape[1] > 1 else 0
    if signs and not (abs(y) == 1).all():
        classes = classes or len(set(y.ravel().tolist()))
        if classes <= 2:
            return "labels y of cross_entropy must be 1 or -1; for 0 and 1 take 2*y - 1"
    if not classes:
        return ""
    return f"y has {classes} classes, but this network has one output; start from classifier.py in the manual's gallery"


def derivatives(activation: Expr, hidden: Symbol, loss: Expr, output: Symbol) -> tuple[Expr, Expr]:
    """Return the derivative of the activation, and minus the derivative of the loss by the output."""
    slope, pull = diff(activation, hidden), -diff(loss, output)
    if not activation.has(hidden) or slope == 0:
        raise ParameterError(f"activation={activation} does not depend on x; give a function such as tanh(x)")
    if slope.has(DiracDelta, Derivative):
        raise ParameterError(
            f"activation={activation} jumps, so no gradient passes through it; give a function such as tanh(x)"
        )
    if pull.has(DiracDelta, Derivative) or pull == 0:
        raise ParameterError(
            f"loss={loss} has no usable derivative with respect to f; give a function such as (f - y)**2/2"
        )
    return slope, pull


def declare(L: int, activation: Expr, loss: Expr, responses: str) -> Model:
    """Return the network with L hidden layers; activation is an expression in x, loss one in f and y."""
    hidden, output, label = (Symbol(name, real=True) for name in ("x", "f", "y"))
    slope, pull = derivatives(activation, hidden, loss, output)
    signs = loss == log(1 + exp(-label * output))

    N = sectors("N")
    t, b, d = training_clock("t", steps=T), axis("b", B), axis("d", D)
    x, y = data("x", b, d, clock=t), data("y", b, clock=t)
    V0, w0 = normal("V0", N, axes=d, scale=sigma), normal("w0", N, scale=sigma)
    V, w = field("V", N, t, axes=d), field("w", N, t)
    layers = range(1, L + 1)
    h, phi, g, spike = ({n: field(f"{name}{n}", N, t, axes=b) for n in layers} for name in ("h", "phi", "g", "spike"))
    z = {n: field(f"z{n}", N, t, axes=b) for n in layers if n < L}
    J = {n: gaussian(f"J{n}", N, N, variance=sigma**2) for n in layers if n < L}
    W = {n: weights(f"W{n}", N, N, t) for n in layers if n < L}

    f = mean(w(t) * phi[L](t)) / gamma
    delta = pull.subs({output: f, label: y(t)})
    pushed = field("pushed", N, t, axes=b)
    equations = [
        Eq(V(0), V0),
        Eq(V(t + 1), V(t) + eta * gamma / sqrt(D) * x(t).T @ spike[1](t)),
        Eq(w(0), w0),
        Eq(w(t + 1), w(t) + eta * gamma * total(pushed(t))),
        Eq(pushed(t), delta / B * phi[L](t)),
        Eq(h[1](t), x(t) @ V(t) / sqrt(D)),
    ]
    for n in layers:
        back = w(t) if n == L else z[n](t)
        equations += [
            Eq(phi[n](t), activation.subs(hidden, h[n](t))),
            Eq(g[n](t), back * slope.subs(hidden, h[n](t))),
            Eq(spike[n](t), delta / B * g[n](t)),
        ]
        if n < L:
            equations += [
                Eq(h[n + 1](t), W[n](t) @ phi[n](t) / sqrt(N)),
                Eq(z[n](t), W[n](t).T @ g[n + 1](t) / sqrt(N)),
                Eq(W[n](0), J[n]),
                Eq(W[n](t + 1), W[n](t) + eta * gamma / sqrt(N) * outer(spike[n + 1](t), phi[n](t))),
            ]
    named: dict[str, Any] = {"V": "W^0", "w": "w^L", "G": r"\mathcal{G}"}
    for n in layers:
        named |= {f"{name}{n}": f"{letter}^{n}" for name, letter in (("h", "h"), ("phi", r"\phi"), ("g", "g"))}
        named[f"spike{n}"] = 1 / B, rf"\bar\Delta g^{n}"
        named |= {f"C[phi{n},phi{n}]": rf"C^{{\phi^{n}}}", f"C[g{n},g{n}]": f"C^{{g^{n}}}"}
        if n < L:
            forward, backward = f"J{n} phi{n}", f"J{n}^T g{n + 1}"
            named |= {
                f"W{n}": f"W^{n}",
                f"J{n}": f"W^{n}(0)",
                f"z{n}": f"z^{n}",
                forward: rf"\chi^{n + 1}",
                backward: rf"\xi^{n}",
            }
            named |= {f"u[{forward}]": rf"u^{{\chi^{n + 1}}}", f"u[{backward}]": rf"u^{{\xi^{n}}}"}
            named |= {f"R[phi{n},{backward}]": rf"R^{{\phi^{n}}}", f"R[g{n + 1},{forward}]": f"R^{{g^{n + 1}}}"}
            named |= {"psi0": r"\psi_0", "psi1": r"\psi_1"}
            named |= {f"C[psi0,phi{n}]": f"c_0^{n}", f"C[psi1,g{n + 1}]": f"c_1^{n + 1}"}
            named |= {f"R[psi0,{backward}]": rf"\rho_0^{n}", f"R[psi1,{forward}]": rf"\rho_1^{n + 1}"}
            named |= {f"R[psi0,J{n}^T psi1]": r"R^{\psi_0}", f"R[psi1,J{n} psi0]": r"R^{\psi_1}"}
            named |= {f"u[J{n}^T psi1]": r"u^{\psi_0}", f"u[J{n} psi0]": r"u^{\psi_1}"}
    return Model(
        notation=named,
        parameters=(gamma, eta, sigma, P, D, B, T, draw),
        equations=equations,
        observe={
            "loss": total(loss.subs({output: f, label: y(t)}) / B),
            "prediction": each(f),
            **{f"features{n}": mean(phi[n](t) ** 2) for n in layers},
            **{f"gradients{n}": mean(g[n](t) ** 2) for n in layers},
        },
        probe={n: spectrum(W[n](T).T @ W[n](T) / N) for n in layers if n < L} or None,
        responses="" if responses == "automatic" else responses,
        arrays=partial(single_index, signs=signs),
        refuses=partial(unusable, signs=signs),
    )


MODEL = family(
    declare,
    L=whole_choice(3, doc="hidden layers"),
    activation=formula(
        "x",
        doc="applied to every entry of a hidden layer",
        tanh="tanh(x)",
        erf="erf(x)",
        relu="max(x, 0)",
        gelu="x*(1 + erf(x/sqrt(2)))/2",
        linear="x",
    ),
    loss=formula(
        "f y",
        doc="of the output f at a point with label y (1 or -1 for cross_entropy)",
        square="(f - y)**2/2",
        cross_entropy="log(1 + exp(-y*f))",
    ),
    responses=one_of("automatic", "pathwise", "stein", doc="how responses are computed; automatic is stein"),
)
