"""The starting point that `derive new` writes: small, commented, and complete."""

from __future__ import annotations

_TEXT = '''"""Learning along a feedback loop, in a rectangular matrix.

An input x(t) drives the layer u(t) = W(t) x(t) / sqrt(D). It returns through the initial matrix as the next input,
x(t+1) = (1 - leak) x(t) + leak sqrt(D)/N W(0)^T u(t), and the weights learn what fires together:
W(t+1) = W(t) + eta/sqrt(D) u(t) x(t)^T. There are N = nu D rows. Which singular values does learning create?

Everything in this file is the model at finite size, as one would run it; the theory is derived from it. Change what
you like, then:

    derive list @NAME@.py                          the parameters
    derive show @NAME@.py --stage single-site      the equations of one site
    derive solve @NAME@.py eta=0.5                 bulk edges, outliers, observables
    derive compare @NAME@.py --plot @NAME@.png     theory against simulation
"""

from sympy import sqrt

from derive import (
    Eq,
    Model,
    field,
    gaussian,
    mean,
    normal,
    outer,
    overlap,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

# Parameters: a name, a default, a domain (real, positive, nonnegative, whole_positive, whole_nonnegative or
# Domain(low, high, ...)) and what it means. They are set on the command line as eta=1.5.
nu = parameter("nu", default=2.0, domain=positive, doc="N / D, rows over columns")
eta = parameter("eta", default=0.3, domain=positive, doc="learning rate")
leak = parameter("leak", default=0.3, domain=positive, doc="how much of the input is replaced at each step")
T = parameter("T", default=3, domain=whole_positive, doc="number of training steps")

# Index spaces: the base first, the others by their size over the base's. In formulas D and N are the sizes.
D, N = sectors("D", N=nu)

# Training time t = 0, 1, ..., T.
t = training_clock("t", steps=T)

# Random matrices: gaussian("W0", rows, columns, variance=1), or goe("M0", D) for a symmetric one.
W0 = gaussian("W0", N, D)

# Random vectors with independent standard normal entries.
start = normal("start", D)

# Fields get one equation each, weights one for the start and one for the update.
x = field("x", D, t)
u = field("u", N, t)
W = weights("W", N, D, t)

MODEL = Model(
    parameters=(nu, eta, leak, T),
    equations=[
        Eq(x(0), start),
        Eq(u(t), W(t) @ x(t) / sqrt(D)),
        Eq(x(t + 1), (1 - leak) * x(t) + leak * sqrt(D) / N * W0.T @ u(t)),
        Eq(W(0), W0),
        Eq(W(t + 1), W(t) + eta / sqrt(D) * outer(u(t), x(t))),
    ],
    # Scalars to follow along the training, made of averages over the sites.
    observe={"activity": mean(x(t) ** 2), "memory": overlap(x(t), start)},
    # The symmetric matrix whose spectrum is wanted.
    probe=spectrum(W(T).T @ W(T) / N),
)
'''


def declaration(name: str) -> str:
    """The text of NAME.py."""
    return _TEXT.replace("@NAME@", name)
