# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

from numerics.runtime.interface import Cycle, Probe, Side
from numerics.runtime.operators import block, identity, operator


def a_matrix(p, z, r, order):
    """A(z), a row of blocks for the equation of each unknown."""
    _, R_psi0_J2T_psi1, R_psi1_J2_psi0 = r
    R_phi2_J2T_g3 = operator(order["R", "phi2", "J2T_g3"])
    C_phi2_phi2 = operator(order["C", "phi2", "phi2"])
    C_g3_spike3 = operator(order["C", "g3", "spike3"])
    R_g3_J2_phi2 = operator(order["R", "g3", "J2_phi2"])
    C_g3_g3 = operator(order["C", "g3", "g3"])
    C_spike3_spike3 = operator(order["C", "spike3", "spike3"])
    R_spike3_J2_phi2 = operator(order["R", "spike3", "J2_phi2"])
    return block(
        [
            # [A1.2] C[psi0, phi2]
            [
                (z - p.sigma**2 * R_psi1_J2_psi0) * identity(p.B * p.T),
                0,
                -(p.sigma**2) * R_phi2_J2T_g3,
                -p.eta * p.gamma * C_phi2_phi2,
                -(p.sigma**2) * C_phi2_phi2,
            ],
            # [A2.2] R[psi0, J2T_g3]
            [
                0,
                (z - p.sigma**2 * R_psi1_J2_psi0) * identity(p.B * p.T),
                0,
                -p.eta * p.gamma * R_phi2_J2T_g3.T,
                -(p.sigma**2) * R_phi2_J2T_g3.T,
            ],
            # [A3.2] C[psi1, g3]
            [
                -p.eta * p.gamma * C_g3_spike3 - p.sigma**2 * R_g3_J2_phi2,
                -(p.sigma**2) * C_g3_g3,
                (1 - p.sigma**2 * R_psi0_J2T_psi1) * identity(p.B * p.T),
                0,
                0,
            ],
            # [A4.2] C[psi1, spike3]
            [
                -p.eta * p.gamma * C_spike3_spike3 - p.sigma**2 * R_spike3_J2_phi2,
                -(p.sigma**2) * C_g3_spike3.T,
                0,
                (1 - p.sigma**2 * R_psi0_J2T_psi1) * identity(p.B * p.T),
                0,
            ],
            # [A5.2] R[psi1, J2_phi2]
            [
                -p.eta * p.gamma * R_spike3_J2_phi2.T,
                -(p.sigma**2) * R_g3_J2_phi2.T,
                0,
                0,
                (1 - p.sigma**2 * R_psi0_J2T_psi1) * identity(p.B * p.T),
            ],
        ],
        5 * (p.B * p.T,),
    )


def right_spikes(p, order):
    """For sources along phi2: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    R_phi2_J2T_g3 = operator(order["R", "phi2", "J2T_g3"])
    C_phi2_phi2 = operator(order["C", "phi2", "phi2"])
    return (
        block([[C_phi2_phi2], [R_phi2_J2T_g3.T], [0], [0], [0]], 5 * (p.B * p.T,), (p.B * p.T,)),
        block([[identity(p.B * p.T), 0, 0, 0, 0]], (p.B * p.T,), 5 * (p.B * p.T,)),
        block([[C_phi2_phi2]], (p.B * p.T,)),
    )


def left_spikes(p, order):
    """For sources along spike3: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_g3_spike3 = operator(order["C", "g3", "spike3"])
    C_spike3_spike3 = operator(order["C", "spike3", "spike3"])
    R_spike3_J2_phi2 = operator(order["R", "spike3", "J2_phi2"])
    return (
        block(
            [[0], [0], [C_g3_spike3], [C_spike3_spike3], [R_spike3_J2_phi2.T]], 5 * (p.B * p.T,), (p.B * p.T,)
        ),
        block([[0, 0, 0, identity(p.B * p.T), 0]], (p.B * p.T,), 5 * (p.B * p.T,)),
        block([[C_spike3_spike3]], (p.B * p.T,)),
    )


def pencil_0(p, order):
    """[S1.2] The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    R_phi2_J2T_g3 = operator(order["R", "phi2", "J2T_g3"])
    C_phi2_phi2 = operator(order["C", "phi2", "phi2"])
    C_g3_spike3 = operator(order["C", "g3", "spike3"])
    R_g3_J2_phi2 = operator(order["R", "g3", "J2_phi2"])
    C_g3_g3 = operator(order["C", "g3", "g3"])
    C_spike3_spike3 = operator(order["C", "spike3", "spike3"])
    R_spike3_J2_phi2 = operator(order["R", "spike3", "J2_phi2"])
    return block(
        [
            [p.sigma**2 * R_phi2_J2T_g3, p.eta * p.gamma * C_phi2_phi2, p.sigma**2 * C_phi2_phi2],
            [0, p.eta * p.gamma * R_phi2_J2T_g3.T, p.sigma**2 * R_phi2_J2T_g3.T],
        ],
        2 * (p.B * p.T,),
        3 * (p.B * p.T,),
    ) @ block(
        [
            [p.eta * p.gamma * C_g3_spike3 + p.sigma**2 * R_g3_J2_phi2, p.sigma**2 * C_g3_g3],
            [p.eta * p.gamma * C_spike3_spike3 + p.sigma**2 * R_spike3_J2_phi2, p.sigma**2 * C_g3_spike3.T],
            [p.eta * p.gamma * R_spike3_J2_phi2.T, p.sigma**2 * R_g3_J2_phi2.T],
        ],
        3 * (p.B * p.T,),
        2 * (p.B * p.T,),
    )


def scalar_map_0(p, z, r):
    """[S1.2] s(z) = (1 - sigma^2 R_psi0_J2T_psi1) (z - sigma^2 R_psi1_J2_psi0)"""
    _, R_psi0_J2T_psi1, R_psi1_J2_psi0 = r
    return (1 - p.sigma**2 * R_psi0_J2T_psi1) * (z - p.sigma**2 * R_psi1_J2_psi0)


def relation_0(p, s):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return (-s, p.sigma**4 + 2 * p.sigma**2 * s + s**2)


def inverse_map_0(p, s):
    """z(s) = (sigma^2 + s)^2/s"""
    return (p.sigma**2 + s) ** 2 / s


PROBE = Probe(
    unknowns=("C_psi0_phi2", "R_psi0_J2T_g3", "C_psi1_g3", "C_psi1_spike3", "R_psi1_J2_phi2"),
    a_matrix=a_matrix,
    sides=(Side("right", right_spikes), Side("left", left_spikes)),
    cycles=(
        Cycle(
            pencil_0,
            scalar_map_0,
            relation_0,
            inverse_map_0,
            reads=(
                ("R", "phi2", "J2T_g3"),
                ("C", "phi2", "phi2"),
                ("C", "g3", "spike3"),
                ("R", "g3", "J2_phi2"),
                ("C", "g3", "g3"),
                ("C", "spike3", "spike3"),
                ("R", "spike3", "J2_phi2"),
            ),
        ),
    ),
    reduced=True,
    steady=True,
)
