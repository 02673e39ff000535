# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

from numerics.runtime.interface import Cycle, Probe, Side
from numerics.runtime.operators import block, identity, operator


def a_matrix(p, z, r, order):
    """A(z), a row of blocks for the equation of each unknown."""
    _, R_psi0_J1T_psi1, R_psi1_J1_psi0 = r
    R_phi1_J1T_g2 = operator(order["R", "phi1", "J1T_g2"])
    C_phi1_phi1 = operator(order["C", "phi1", "phi1"])
    C_g2_spike2 = operator(order["C", "g2", "spike2"])
    R_g2_J1_phi1 = operator(order["R", "g2", "J1_phi1"])
    C_g2_g2 = operator(order["C", "g2", "g2"])
    C_spike2_spike2 = operator(order["C", "spike2", "spike2"])
    R_spike2_J1_phi1 = operator(order["R", "spike2", "J1_phi1"])
    return block(
        [
            # [A1.1] C[psi0, phi1]
            [
                (z - p.sigma**2 * R_psi1_J1_psi0) * identity(p.B * p.T),
                0,
                -(p.sigma**2) * R_phi1_J1T_g2,
                -p.eta * p.gamma * C_phi1_phi1,
                -(p.sigma**2) * C_phi1_phi1,
            ],
            # [A2.1] R[psi0, J1T_g2]
            [
                0,
                (z - p.sigma**2 * R_psi1_J1_psi0) * identity(p.B * p.T),
                0,
                -p.eta * p.gamma * R_phi1_J1T_g2.T,
                -(p.sigma**2) * R_phi1_J1T_g2.T,
            ],
            # [A3.1] C[psi1, g2]
            [
                -p.eta * p.gamma * C_g2_spike2 - p.sigma**2 * R_g2_J1_phi1,
                -(p.sigma**2) * C_g2_g2,
                (1 - p.sigma**2 * R_psi0_J1T_psi1) * identity(p.B * p.T),
                0,
                0,
            ],
            # [A4.1] C[psi1, spike2]
            [
                -p.eta * p.gamma * C_spike2_spike2 - p.sigma**2 * R_spike2_J1_phi1,
                -(p.sigma**2) * C_g2_spike2.T,
                0,
                (1 - p.sigma**2 * R_psi0_J1T_psi1) * identity(p.B * p.T),
                0,
            ],
            # [A5.1] R[psi1, J1_phi1]
            [
                -p.eta * p.gamma * R_spike2_J1_phi1.T,
                -(p.sigma**2) * R_g2_J1_phi1.T,
                0,
                0,
                (1 - p.sigma**2 * R_psi0_J1T_psi1) * identity(p.B * p.T),
            ],
        ],
        5 * (p.B * p.T,),
    )


def right_spikes(p, order):
    """For sources along phi1: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    R_phi1_J1T_g2 = operator(order["R", "phi1", "J1T_g2"])
    C_phi1_phi1 = operator(order["C", "phi1", "phi1"])
    return (
        block([[C_phi1_phi1], [R_phi1_J1T_g2.T], [0], [0], [0]], 5 * (p.B * p.T,), (p.B * p.T,)),
        block([[identity(p.B * p.T), 0, 0, 0, 0]], (p.B * p.T,), 5 * (p.B * p.T,)),
        block([[C_phi1_phi1]], (p.B * p.T,)),
    )


def left_spikes(p, order):
    """For sources along spike2: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_g2_spike2 = operator(order["C", "g2", "spike2"])
    C_spike2_spike2 = operator(order["C", "spike2", "spike2"])
    R_spike2_J1_phi1 = operator(order["R", "spike2", "J1_phi1"])
    return (
        block(
            [[0], [0], [C_g2_spike2], [C_spike2_spike2], [R_spike2_J1_phi1.T]], 5 * (p.B * p.T,), (p.B * p.T,)
        ),
        block([[0, 0, 0, identity(p.B * p.T), 0]], (p.B * p.T,), 5 * (p.B * p.T,)),
        block([[C_spike2_spike2]], (p.B * p.T,)),
    )


def pencil_0(p, order):
    """[S1.1] The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    R_phi1_J1T_g2 = operator(order["R", "phi1", "J1T_g2"])
    C_phi1_phi1 = operator(order["C", "phi1", "phi1"])
    C_g2_spike2 = operator(order["C", "g2", "spike2"])
    R_g2_J1_phi1 = operator(order["R", "g2", "J1_phi1"])
    C_g2_g2 = operator(order["C", "g2", "g2"])
    C_spike2_spike2 = operator(order["C", "spike2", "spike2"])
    R_spike2_J1_phi1 = operator(order["R", "spike2", "J1_phi1"])
    return block(
        [
            [p.sigma**2 * R_phi1_J1T_g2, p.eta * p.gamma * C_phi1_phi1, p.sigma**2 * C_phi1_phi1],
            [0, p.eta * p.gamma * R_phi1_J1T_g2.T, p.sigma**2 * R_phi1_J1T_g2.T],
        ],
        2 * (p.B * p.T,),
        3 * (p.B * p.T,),
    ) @ block(
        [
            [p.eta * p.gamma * C_g2_spike2 + p.sigma**2 * R_g2_J1_phi1, p.sigma**2 * C_g2_g2],
            [p.eta * p.gamma * C_spike2_spike2 + p.sigma**2 * R_spike2_J1_phi1, p.sigma**2 * C_g2_spike2.T],
            [p.eta * p.gamma * R_spike2_J1_phi1.T, p.sigma**2 * R_g2_J1_phi1.T],
        ],
        3 * (p.B * p.T,),
        2 * (p.B * p.T,),
    )


def scalar_map_0(p, z, r):
    """[S1.1] s(z) = (1 - sigma^2 R_psi0_J1T_psi1) (z - sigma^2 R_psi1_J1_psi0)"""
    _, R_psi0_J1T_psi1, R_psi1_J1_psi0 = r
    return (1 - p.sigma**2 * R_psi0_J1T_psi1) * (z - p.sigma**2 * R_psi1_J1_psi0)


def relation_0(p, s):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return (-s, p.sigma**4 + 2 * p.sigma**2 * s + s**2)


def inverse_map_0(p, s):
    """z(s) = (sigma^2 + s)^2/s"""
    return (p.sigma**2 + s) ** 2 / s


PROBE = Probe(
    unknowns=("C_psi0_phi1", "R_psi0_J1T_g2", "C_psi1_g2", "C_psi1_spike2", "R_psi1_J1_phi1"),
    a_matrix=a_matrix,
    sides=(Side("right", right_spikes), Side("left", left_spikes)),
    cycles=(
        Cycle(
            pencil_0,
            scalar_map_0,
            relation_0,
            inverse_map_0,
            reads=(
                ("R", "phi1", "J1T_g2"),
                ("C", "phi1", "phi1"),
                ("C", "g2", "spike2"),
                ("R", "g2", "J1_phi1"),
                ("C", "g2", "g2"),
                ("C", "spike2", "spike2"),
                ("R", "spike2", "J1_phi1"),
            ),
        ),
    ),
    reduced=True,
    steady=True,
)
