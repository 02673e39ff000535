"""The template that `derive new` writes: small, commented, and complete."""

from __future__ import annotations

_TEXT = '''"""A rectangular matrix learns to map one vector onto another.

The output for the input x is u(t) = W(t) x / sqrt(D), and the target is y, so gradient descent on the
error e(t) = y - u(t) gives W(t+1) = W(t) + eta/sqrt(D) e(t) x^T. There are N = nu D rows, and W(0) is random. Which
singular values does learning create?

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
signal = parameter("signal", default=2.0, domain=positive, doc="size of the target")
T = parameter("T", default=6, domain=whole_positive, doc="number of training steps")

# Index spaces: the base first, the others by their size over the base's. In formulas D and N are the sizes.
D, N = sectors("D", N=nu)

# Training time t = 0, 1, ..., T.
t = training_clock("t", steps=T)

# Random matrices: gaussian("W0", rows, columns, variance=1), or goe("M0", D) for a symmetric one.
W0 = gaussian("W0", N, D)

# Random vectors with independent standard normal entries.
x = normal("x", D)
teacher = normal("teacher", N)

# Fields get one equation each, weights one for the start and one for the update.
u = field("u", N, t)
e = field("e", N, t)
W = weights("W", N, D, t)

MODEL = Model(
    parameters=(nu, eta, signal, T),
    equations=[
        Eq(u(t), W(t) @ x / sqrt(D)),
        Eq(e(t), signal * teacher - u(t)),
        Eq(W(0), W0),
        Eq(W(t + 1), W(t) + eta / sqrt(D) * outer(e(t), x)),
    ],
    # Scalars to follow along the training, made of averages over the sites.
    observe={"train_loss": mean(e(t) ** 2) / 2, "answer": overlap(u(t), teacher)},
    # The symmetric matrix whose spectrum is wanted.
    probe=spectrum(W(T).T @ W(T) / N),
)
'''


def declaration(name: str) -> str:
    """Return the text of NAME.py."""
    return _TEXT.replace("@NAME@", name)
