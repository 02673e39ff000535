"""Declaration 33 of seed 2026, as drawn by `derive selftest`."""

from sympy import Max, atan, exp, log, sqrt

from derive import Eq, Model, field, gaussian, goe, mean, normal, outer, overlap, parameter, sectors, spectrum

kappa1 = parameter("kappa1", default=1.25)
c1 = parameter("c1", default=0.5)
kappa2 = parameter("kappa2", default=0.5)
D, N = sectors("D", N=0.125)
A = gaussian("A", N, N, variance=kappa1**2)
B = goe("B", D)
n1 = normal("n1", D, scale=0.5)
n2 = normal("n2", N, scale=0.5)
n3 = normal("n3", D)
x = field("x", D)
y = field("y", D)

MODEL = Model(
    parameters=(
        kappa1,
        c1,
        kappa2,
    ),
    equations=[
        Eq(x, (B @ ((-0.5) * (B @ ((-0.5) * (B @ (n1 + n3))))))),
        Eq(
            y,
            (-0.25) * sqrt(3) * atan(n3)
            + 0.25 * exp((-1) * (x + (-0.25)) ** 2)
            + 0.5 * log(1 + (0.5 * sqrt(D / N) * n3 + x + 0.25) ** 2),
        ),
    ],
    observe={
        "o1": mean(x**2),
        "o2": mean(x * n1),
        "o3": mean(y**2),
        "o4": overlap(y, n3),
    },
    probe=spectrum(
        ((A + 4 * c1 / sqrt(N) * outer(n2, n2)).T @ (A + 4 * c1 / sqrt(N) * outer(n2, n2))) / N
        + Max(kappa2, 0.25)
        / (sqrt(N) * sqrt(N))
        * (((A + 4 * c1 / sqrt(N) * outer(n2, n2)).T @ A) + (A.T @ (A + 4 * c1 / sqrt(N) * outer(n2, n2)))),
        plus="o1",
    ),
)
