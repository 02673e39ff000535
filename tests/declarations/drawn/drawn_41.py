"""Declaration 41 of seed 2026, as drawn by `derive selftest`."""

from sympy import Max, sign, sqrt, tanh

from derive import Eq, Model, field, gaussian, mean, normal, outer, overlap, parameter, positive, sectors, spectrum

nu = parameter("nu", default=0.5, domain=positive)
kappa1 = parameter("kappa1", default=0.5)
kappa2 = parameter("kappa2", default=0.5, doc="a number")
c1 = parameter("c1", default=0.25)
kappa3 = parameter("kappa3", default=-0.75)
c2 = parameter("c2", default=0.25)
D, N = sectors("D", N=nu)
A = gaussian("A", N, N)
n1 = normal("n1", D)
n2 = normal("n2", N, scale=kappa1)
x = field("x", D)
y = field("y", N)
u = field("u", N)

MODEL = Model(
    parameters=(
        nu,
        kappa1,
        kappa2,
        c1,
        kappa3,
        c2,
    ),
    equations=[
        Eq(x, kappa1 * sign(Max(kappa2, 0.25) * n1 + n1) + kappa1 * sign(0.25 * n1 + n1) + 0.75 * sign(n1)),
        Eq(y, 0.25 * n2**2 + 0.25 * n2**2),
        Eq(u, 0.5 * D / N * sign(n2) + c1 * sign(0.5 * sqrt(N / D) * y + n2) + kappa2 * sign(tanh(kappa3) * n2 + y)),
    ],
    observe={
        "o1": mean(x**2),
        "o2": mean(y**2),
        "o3": mean(y),
        "o4": mean(u**2),
        "o5": overlap(u, n2),
        "o6": mean(tanh(u)),
    },
    probe=spectrum(
        ((A + 4 * c2 / sqrt(N) * mean(u**2) * outer(u, n2)).T @ (A + 4 * c2 / sqrt(N) * mean(u**2) * outer(u, n2))) / N
    ),
)
