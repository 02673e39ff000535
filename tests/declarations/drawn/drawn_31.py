"""Declaration 31 of seed 2026, as drawn by `derive selftest`."""

from sympy import Abs, Piecewise, sqrt, tanh

from derive import Eq, Model, field, gaussian, mean, normal, outer, overlap, parameter, positive, sectors, spectrum

nu = parameter("nu", default=0.5, domain=positive)
c1 = parameter("c1", default=0.75, doc="a number")
c2 = parameter("c2", default=0.75)
kappa2 = parameter("kappa2", default=-0.75)
c3 = parameter("c3", default=0.5)
c4 = parameter("c4", default=0.25)
D, N = sectors("D", N=nu)
A = gaussian("A", N, D)
n1 = normal("n1", D)
n2 = normal("n2", N)
x = field("x", D)
y = field("y", D)
u = field("u", N)
v = field("v", N)

MODEL = Model(
    parameters=(
        nu,
        c1,
        c2,
        kappa2,
        c3,
        c4,
    ),
    equations=[
        Eq(x, Abs(0.75 * n1 + n1) + c1 * Abs(n1)),
        Eq(y, (-0.25) * Abs(x) + c2 * Abs(x)),
        Eq(u, Piecewise((kappa2, kappa2 > 0), (0.25, True)) * Abs(n2 + (-0.25))),
        Eq(v, 0.25 * n2 * tanh(u)),
    ],
    observe={
        "o1": mean(x**2),
        "o2": mean(y**2),
        "o3": mean(tanh(y)),
        "o4": mean(u**2),
        "o5": overlap(u, v),
        "o6": mean(v**2),
    },
    probe=spectrum(
        ((A + 2 * c3 / sqrt(D) * outer(n2, y)).T @ (A + 2 * c3 / sqrt(D) * outer(n2, y))) / D
        + c4
        / (sqrt(D) * sqrt(D))
        * (((A + 2 * c3 / sqrt(D) * outer(n2, y)).T @ A) + (A.T @ (A + 2 * c3 / sqrt(D) * outer(n2, y))))
    ),
)
