"""Anti-Hebbian Wigner dynamics: a symmetric matrix that learns the trajectory it drives.

v(t+1) = v(t) - dt M(t) v(t) from a standard normal v(0), and M(t+1) = M(t) + (gamma0 dt / D) v(t) v(t)^T from a
GOE matrix M(0). The spike directions depend on the random matrix to which they are added. The spectrum is that of M(T).
"""

from derive import (
    Eq,
    Model,
    field,
    goe,
    mean,
    normal,
    outer,
    parameter,
    positive,
    real,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

gamma0 = parameter("gamma0", default=4.0, domain=real, doc="strength of the plastic term")
dt = parameter("dt", default=0.1, domain=positive, doc="step of physical time")
T = parameter("T", default=30, domain=whole_positive, doc="number of steps")

D = sectors("D")
t = training_clock("t", steps=T)
M0 = goe("M0", D)
start = normal("start", D)
v = field("v", D, t)
M = weights("M", D, D, t)

MODEL = Model(
    parameters=(gamma0, dt, T),
    equations=[
        Eq(v(0), start),
        Eq(v(t + 1), v(t) - dt * M(t) @ v(t)),
        Eq(M(0), M0),
        Eq(M(t + 1), M(t) + gamma0 * dt / D * outer(v(t), v(t))),
    ],
    observe={"activity": mean(v(t) ** 2), "memory": mean(v(t) * start)},
    probe=spectrum(M(T)),
    notation={
        "M0": "M_0",
        "dt": r"\Delta t",
        "psi0": "h",
        "u[M0 v]": (-1, "u_v"),
        "u[M0 psi0]": "u_h",
        "C[v,v]": "C_v",
        "C[psi0,psi0]": "C_h",
        "C[v,psi0]": "C_{vh}",
        "R[v,M0 v]": (-dt, "R_v"),
        "R[psi0,M0 v]": (-dt, "R_{hv}"),
        "R[psi0,M0 psi0]": "R_h",
    },
)
