"""Small models for the examples of docstrings: a symmetric Gaussian matrix with one planted direction, and linear
regression by gradient descent."""

from sympy import sqrt

from derive.language.equations import Eq, spectrum
from derive.language.matrices import gaussian, goe, outer
from derive.language.model import Model
from derive.language.symbols import nonnegative, parameter, positive, sectors, training_clock, whole_positive
from derive.language.vectors import field, mean, normal

_strength = parameter("strength", default=2.0, domain=positive, doc="size of the planted direction")
_D = sectors("D")
_v = normal("v", _D)

SPIKE = Model(
    name="spike",
    parameters=(_strength,),
    equations=[],
    observe={"norm": mean(_v**2)},
    probe=spectrum(goe("M", _D) + _strength / _D * outer(_v, _v)),
)


def _regression() -> Model:
    """Linear regression on alpha D samples, by gradient descent with a ridge."""
    alpha, ridge = parameter("alpha", default=2.0, domain=positive), parameter("ridge", default=0.1, domain=nonnegative)
    T = parameter("T", default=30, domain=whole_positive)
    D, P = sectors("D", P=alpha)
    t = training_clock("t", steps=T)
    X, teacher, noise = gaussian("X", P, D), normal("teacher", D), normal("noise", P, scale=0.3)
    w, error, gradient = field("w", D, t), field("error", P, t), field("gradient", D, t)
    return Model(
        name="regression",
        parameters=(alpha, ridge, T),
        equations=[
            Eq(error(t), X @ (teacher - w(t)) / sqrt(D) + noise),
            Eq(gradient(t), sqrt(D) / P * X.T @ error(t)),
            Eq(w(0), 0 * teacher),
            Eq(w(t + 1), w(t) + (gradient(t) - ridge * w(t)) / 5),
        ],
        observe={"distance": mean((teacher - w(t)) ** 2)},
    )


REGRESSION = _regression()
