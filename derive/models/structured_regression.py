"""Linear regression by gradient descent on inputs whose covariance has a spectrum; P = alpha D samples.

An input has the entries sqrt(lam_i) z_i with z normal, and y = sum_i sqrt(lam_i) z_i teacher_i / sqrt(D) + sigma noise
is learned by w with rate eta, momentum mu and weight decay ridge, from w = 0, on one set of samples (batch=full), on
fresh ones at each step (batch=online), or on mini-batches of one set (batch=mini): each step uses a random fraction
beta of the samples, drawn without replacement. The variances lam are all one (spectrum=isotropic), kappa for a fraction
of the sites and one for the others (two_groups), those of an array `variances` of K numbers (given), or between cut and
1 with the density lam^(-1 - 1/decay) (power_law): sorted, they decay like k^(-decay). The teacher then has the variance
lam^source.

With hessian=yes inputs have one additional random direction of variance spike, and the spectrum of the curvature X^T X
/ P of the loss is computed, where the rows of X are the training samples: its bulk and, if spike is large enough, an
outlier. With batch=online or a power law they are P independent samples, which have the same spectrum because inputs
are not learned.

u is the part of the teacher that has not been learned, weighted by the standard deviations of the inputs; delta are the
errors on the samples; h is the correlation of z with the errors used in a step. For a large batch the test loss of a
power law decays at late times like t^(1/decay - 1 - source) until the cutoff is reached.
"""

from typing import Any

from sympy import Expr, S, Symbol, sqrt

from derive import (
    Domain,
    Eq,
    Model,
    axis,
    data,
    diag,
    discrete,
    drawn as drawn_from,
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
    real,
    sectors,
    spectrum as spectrum_of,
    trait,
    training_clock,
    whole_positive,
)
from derive.errors import ParameterError

below_one = Domain(0, 1)
alpha = parameter("alpha", default=2.0, domain=positive, doc="P / D, samples (of a batch, if online) over inputs")
eta = parameter("eta", default=0.2, domain=positive, doc="learning rate")
sigma = parameter("sigma", default=0.3, domain=nonnegative, doc="standard deviation of the noise of the labels")
ridge = parameter("ridge", default=0.0, domain=nonnegative, doc="weight decay")
mu = parameter("mu", default=0.0, domain=Domain(0, 1, low_included=True), doc="momentum")
T = parameter("T", default=30, domain=whole_positive, doc="number of steps")
kappa = parameter("kappa", default=4.0, domain=nonnegative, doc="variance of the second group of inputs")
share = parameter("share", default=0.25, domain=below_one, doc="share of the inputs that are in the second group")
decay = parameter("decay", default=1.5, domain=positive, doc="exponent with which sorted variances decay")
cut = parameter("cut", default=0.001, domain=below_one, doc="smallest variance over the largest")
source = parameter(
    "source", default=0.0, domain=real, doc="exponent of the teacher's variance as a power of the input variance"
)
spike = parameter("spike", default=4.0, domain=nonnegative, doc="variance of the inputs along one random direction")
beta = parameter("beta", default=0.25, domain=below_one, doc="share of the samples in a mini-batch")
K = parameter("K", default=8, domain=whole_positive, doc="number of given variances")


def halving(values: dict[str, Any]) -> dict[str, Any]:
    """Return the default variances 1, 1/2, 1/4, ..."""
    import numpy as np

    return {"variances": 0.5 ** np.arange(values["K"])}


def unusable(arrays: dict[str, Any]) -> str:
    """Return an error message about the given variances; empty if they are valid."""
    return "" if (arrays["variances"] >= 0).all() else "variances must not be negative"


def declare(spectrum: str, batch: str, hessian: str) -> Model:
    """Return the regression for one spectrum of the inputs and one sampling of batches, with or without the Hessian."""
    if hessian == "yes" and spectrum == "given":
        raise ParameterError(
            "hessian=yes does not support spectrum=given: the spectrum of the curvature needs variances known to the "
            "declaration; use spectrum=two_groups or power_law, or hessian=no"
        )
    D, P = sectors("D", P=alpha)
    t = training_clock("t", steps=T)
    x = Symbol("x", positive=True)
    laws: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
        "isotropic": ({}, ()),
        "two_groups": ({"values": [1, kappa], "weights": [1 - share, share]}, (kappa, share)),
        "power_law": ({"density": x ** (-1 - 1 / decay), "low": cut, "high": 1}, (decay, cut, source)),
        "given": ({"values": data("variances", axis("k", K))}, (K,)),
    }
    law, of_law = laws[spectrum]
    lam: Expr = trait("lam", D, **law) if law else S.One
    if batch == "online":
        Z, noise = gaussian("Z", P, D, fresh=t)(t), normal("eps", P, t)(t)
    else:
        Z, noise = gaussian("Z", P, D), normal("eps", P)
    drawn = normal("teacher", D)
    teacher = drawn * lam ** (source / 2) if spectrum == "power_law" else drawn
    w, u, h, delta = field("w", D, t), field("u", D, t), field("h", D, t), field("delta", P, t)
    errors: Expr = delta(t)
    of_batch: tuple[Any, ...] = ()
    taking: list[Eq] = []
    if batch == "mini":
        taken, batched = drawn_from("taken", P, discrete([0, 1 / beta], [1 - beta, beta]), t), field("batched", P, t)
        errors, of_batch, taking = batched(t), (beta,), [Eq(batched(t), taken(t) * delta(t))]
    planted: dict[str, Any] = {}
    strength: tuple[Any, ...] = ()
    seen: Expr = S.Zero
    felt: Expr = S.Zero
    if hessian == "yes":
        direction = normal("direction", D)
        along = normal("along", P, t)(t) if batch == "online" else normal("along", P)
        own = batch != "online" and spectrum != "power_law"
        samples, further = (Z, along) if own else (gaussian("others", P, D), normal("further", P))
        X = (samples if lam == 1 else samples @ diag(sqrt(lam))) + sqrt(spike) / sqrt(D) * outer(further, direction)
        planted, strength = {"probe": spectrum_of(X.T @ X / P)}, (spike,)
        seen = sqrt(spike) * mean(direction * (teacher - w(t))) * along
        felt = sqrt(spike) * mean(along * errors) * direction
    return Model(
        parameters=(alpha, eta, sigma, ridge, mu, T, *of_batch, *of_law, *strength),
        equations=[
            Eq(u(t), sqrt(lam) * (teacher - w(t))),
            Eq(delta(t), Z @ u(t) / sqrt(D) + seen + sigma * noise),
            *taking,
            Eq(h(t), sqrt(D) / P * Z.T @ errors),
            Eq(w(0), 0 * drawn),
            Eq(w(t + 1), w(t) + mu * (w(t) - w(t - 1)) + eta * (sqrt(lam) * h(t) + felt - ridge * w(t))),
        ],
        observe={
            "train_loss": mean(delta(t) ** 2),
            "test_loss": mean(u(t) ** 2) + sigma**2,
            "distance": mean((teacher - w(t)) ** 2),
        },
        arrays=halving if spectrum == "given" else None,
        refuses=unusable if spectrum == "given" else None,
        **planted,
    )


MODEL = family(
    declare,
    spectrum=one_of("two_groups", "power_law", "isotropic", "given", doc="variances of the inputs"),
    batch=one_of("full", "online", "mini", doc="the same samples at every step, fresh ones, or some of them"),
    hessian=one_of("no", "yes", doc="whether to compute the spectrum of the curvature, with a planted direction"),
)
