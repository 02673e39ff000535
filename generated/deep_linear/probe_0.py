# Written by `derive build deep_linear L=2 data=full_batch param=mup spectrum=isotropic kernel=shift teachers=alike` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

from numerics.runtime.interface import AlikeLabels, Cycle, Probe, Side
from numerics.runtime.operators import block, identity, operator


def a_matrix(p, z, r, order):
    """A(z), a row of blocks for the equation of each unknown."""
    _, R_psi0_J0T_psi1, R_psi1_J0_psi0 = r
    C_h0_h0 = operator(order["C", "h0", "h0"])
    R_h0_J0T_g1 = operator(order["R", "h0", "J0T_g1"])
    C_g1_g1 = operator(order["C", "g1", "g1"])
    R_g1_J0_h0 = operator(order["R", "g1", "J0_h0"])
    return block(
        [
            # [A1.0] C[psi0, h0]
            [
                (z - R_psi1_J0_psi0) * identity(p.C * p.T),
                0,
                -p.eta * p.gamma0 * C_h0_h0 - 1 / p.nu * R_h0_J0T_g1,
                -C_h0_h0,
            ],
            # [A2.0] R[psi0, J0T_g1]
            [
                0,
                (z - R_psi1_J0_psi0) * identity(p.C * p.T),
                -p.eta * p.gamma0 * R_h0_J0T_g1.T,
                -R_h0_J0T_g1.T,
            ],
            # [A3.0] C[psi1, g1]
            [
                -p.eta * p.gamma0 * C_g1_g1 - R_g1_J0_h0,
                -1 / p.nu * C_g1_g1,
                (1 - R_psi0_J0T_psi1 / p.nu) * identity(p.C * p.T),
                0,
            ],
            # [A4.0] R[psi1, J0_h0]
            [
                -p.eta * p.gamma0 * R_g1_J0_h0.T,
                -1 / p.nu * R_g1_J0_h0.T,
                0,
                (1 - R_psi0_J0T_psi1 / p.nu) * identity(p.C * p.T),
            ],
        ],
        4 * (p.C * p.T,),
    )


def right_spikes(p, order):
    """For sources along h0: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_h0_h0 = operator(order["C", "h0", "h0"])
    R_h0_J0T_g1 = operator(order["R", "h0", "J0T_g1"])
    return (
        block([[C_h0_h0], [R_h0_J0T_g1.T], [0], [0]], 4 * (p.C * p.T,), (p.C * p.T,)),
        block([[identity(p.C * p.T), 0, 0, 0]], (p.C * p.T,), 4 * (p.C * p.T,)),
        block([[C_h0_h0]], (p.C * p.T,)),
    )


def left_spikes(p, order):
    """For sources along g1: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_g1_g1 = operator(order["C", "g1", "g1"])
    R_g1_J0_h0 = operator(order["R", "g1", "J0_h0"])
    return (
        block([[0], [0], [C_g1_g1], [R_g1_J0_h0.T]], 4 * (p.C * p.T,), (p.C * p.T,)),
        block([[0, 0, identity(p.C * p.T), 0]], (p.C * p.T,), 4 * (p.C * p.T,)),
        block([[C_g1_g1]], (p.C * p.T,)),
    )


def pencil_0(p, order):
    """[S1.0] The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    C_h0_h0 = operator(order["C", "h0", "h0"])
    R_h0_J0T_g1 = operator(order["R", "h0", "J0T_g1"])
    C_g1_g1 = operator(order["C", "g1", "g1"])
    R_g1_J0_h0 = operator(order["R", "g1", "J0_h0"])
    return block(
        [
            [p.eta * p.gamma0 * C_h0_h0 + 1 / p.nu * R_h0_J0T_g1, C_h0_h0],
            [p.eta * p.gamma0 * R_h0_J0T_g1.T, R_h0_J0T_g1.T],
        ],
        2 * (p.C * p.T,),
    ) @ block(
        [
            [p.eta * p.gamma0 * C_g1_g1 + R_g1_J0_h0, 1 / p.nu * C_g1_g1],
            [p.eta * p.gamma0 * R_g1_J0_h0.T, 1 / p.nu * R_g1_J0_h0.T],
        ],
        2 * (p.C * p.T,),
    )


def scalar_map_0(p, z, r):
    """[S1.0] s(z) = (1 - R_psi0_J0T_psi1/nu) (z - R_psi1_J0_psi0)"""
    _, R_psi0_J0T_psi1, R_psi1_J0_psi0 = r
    return (1 - R_psi0_J0T_psi1 / p.nu) * (z - R_psi1_J0_psi0)


def relation_0(p, s):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return (-p.nu * s, p.nu * s**2 + p.nu * s + s + 1)


def inverse_map_0(p, s):
    """z(s) = (s + 1) (nu s + 1)/(nu s)"""
    return (s + 1) * (p.nu * s + 1) / (p.nu * s)


PROBE = Probe(
    unknowns=("C_psi0_h0", "R_psi0_J0T_g1", "C_psi1_g1", "R_psi1_J0_h0"),
    a_matrix=a_matrix,
    sides=(Side("right", right_spikes), Side("left", left_spikes)),
    cycles=(
        Cycle(
            pencil_0,
            scalar_map_0,
            relation_0,
            inverse_map_0,
            reads=(("C", "h0", "h0"), ("R", "h0", "J0T_g1"), ("C", "g1", "g1"), ("R", "g1", "J0_h0")),
        ),
    ),
    reduced=True,
    steady=True,
    alike=AlikeLabels(("C",), 1),
)
