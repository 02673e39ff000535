# Written by `derive build deep_linear L=2 data=full_batch param=mup spectrum=isotropic kernel=shift teachers=alike` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

from numerics.runtime.interface import AlikeLabels, Cycle, Probe, Side
from numerics.runtime.operators import block, identity, operator


def a_matrix(p, z, r, order):
    """A(z), a row of blocks for the equation of each unknown."""
    _, R_psi0_J1T_psi1, R_psi1_J1_psi0 = r
    C_h1_h1 = operator(order["C", "h1", "h1"])
    R_h1_J1T_g2 = operator(order["R", "h1", "J1T_g2"])
    C_g2_g2 = operator(order["C", "g2", "g2"])
    R_g2_J1_h1 = operator(order["R", "g2", "J1_h1"])
    return block(
        [
            # [A1.1] C[psi0, h1]
            [
                (z - R_psi1_J1_psi0) * identity(p.C * p.T),
                0,
                -p.eta * p.gamma0 * C_h1_h1 - R_h1_J1T_g2,
                -C_h1_h1,
            ],
            # [A2.1] R[psi0, J1T_g2]
            [
                0,
                (z - R_psi1_J1_psi0) * identity(p.C * p.T),
                -p.eta * p.gamma0 * R_h1_J1T_g2.T,
                -R_h1_J1T_g2.T,
            ],
            # [A3.1] C[psi1, g2]
            [
                -p.eta * p.gamma0 * C_g2_g2 - R_g2_J1_h1,
                -C_g2_g2,
                (1 - R_psi0_J1T_psi1) * identity(p.C * p.T),
                0,
            ],
            # [A4.1] R[psi1, J1_h1]
            [-p.eta * p.gamma0 * R_g2_J1_h1.T, -R_g2_J1_h1.T, 0, (1 - R_psi0_J1T_psi1) * identity(p.C * p.T)],
        ],
        4 * (p.C * p.T,),
    )


def right_spikes(p, order):
    """For sources along h1: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_h1_h1 = operator(order["C", "h1", "h1"])
    R_h1_J1T_g2 = operator(order["R", "h1", "J1T_g2"])
    return (
        block([[C_h1_h1], [R_h1_J1T_g2.T], [0], [0]], 4 * (p.C * p.T,), (p.C * p.T,)),
        block([[identity(p.C * p.T), 0, 0, 0]], (p.C * p.T,), 4 * (p.C * p.T,)),
        block([[C_h1_h1]], (p.C * p.T,)),
    )


def left_spikes(p, order):
    """For sources along g2: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_g2_g2 = operator(order["C", "g2", "g2"])
    R_g2_J1_h1 = operator(order["R", "g2", "J1_h1"])
    return (
        block([[0], [0], [C_g2_g2], [R_g2_J1_h1.T]], 4 * (p.C * p.T,), (p.C * p.T,)),
        block([[0, 0, identity(p.C * p.T), 0]], (p.C * p.T,), 4 * (p.C * p.T,)),
        block([[C_g2_g2]], (p.C * p.T,)),
    )


def pencil_0(p, order):
    """[S1.1] The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    C_h1_h1 = operator(order["C", "h1", "h1"])
    R_h1_J1T_g2 = operator(order["R", "h1", "J1T_g2"])
    C_g2_g2 = operator(order["C", "g2", "g2"])
    R_g2_J1_h1 = operator(order["R", "g2", "J1_h1"])
    return block(
        [
            [p.eta * p.gamma0 * C_h1_h1 + R_h1_J1T_g2, C_h1_h1],
            [p.eta * p.gamma0 * R_h1_J1T_g2.T, R_h1_J1T_g2.T],
        ],
        2 * (p.C * p.T,),
    ) @ block(
        [[p.eta * p.gamma0 * C_g2_g2 + R_g2_J1_h1, C_g2_g2], [p.eta * p.gamma0 * R_g2_J1_h1.T, R_g2_J1_h1.T]],
        2 * (p.C * p.T,),
    )


def scalar_map_0(p, z, r):
    """[S1.1] s(z) = (1 - R_psi0_J1T_psi1) (z - R_psi1_J1_psi0)"""
    _, R_psi0_J1T_psi1, R_psi1_J1_psi0 = r
    return (1 - R_psi0_J1T_psi1) * (z - R_psi1_J1_psi0)


def relation_0(p, s):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return (-s, s**2 + 2 * s + 1)


def inverse_map_0(p, s):
    """z(s) = (s + 1)^2/s"""
    return (s + 1) ** 2 / s


PROBE = Probe(
    unknowns=("C_psi0_h1", "R_psi0_J1T_g2", "C_psi1_g2", "R_psi1_J1_h1"),
    a_matrix=a_matrix,
    sides=(Side("right", right_spikes), Side("left", left_spikes)),
    cycles=(
        Cycle(
            pencil_0,
            scalar_map_0,
            relation_0,
            inverse_map_0,
            reads=(("C", "h1", "h1"), ("R", "h1", "J1T_g2"), ("C", "g2", "g2"), ("R", "g2", "J1_h1")),
        ),
    ),
    reduced=True,
    steady=True,
    alike=AlikeLabels(("C",), 1),
)
