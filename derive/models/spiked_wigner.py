"""Spiked Wigner: a GOE matrix plus one planted direction, M = M0 + (gamma0 / D) v v^T with |v|^2 = D.

The classical BBP problem: the simplest matrix with a bulk and an outlier.
"""

from derive import Model, goe, mean, normal, outer, parameter, positive, sectors, spectrum

gamma0 = parameter("gamma0", default=2.0, domain=positive, doc="strength of the planted direction")
D = sectors("D")
M0 = goe("M0", D)
v = normal("v", D)

MODEL = Model(
    parameters=(gamma0,),
    observe={"spike_norm": mean(v**2)},
    probe=spectrum(M0 + gamma0 / D * outer(v, v)),
    notation={
        "M0": "M_0",
        "psi0": "h",
        "C[v,v]": "C_v",
        "C[v,psi0]": "C_{vh}",
        "C[psi0,psi0]": "C_h",
        "R[psi0,M0 psi0]": "R_h",
        "u[M0 psi0]": "u_h",
    },
)
