# Written by `derive build coupled_spikes_tanh` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

from numerics.runtime.interface import Cycle, Probe, Side
from numerics.runtime.operators import block, identity, operator


def a_matrix(p, z, r, order):
    """A(z), a row of blocks for the equation of each unknown."""
    _, R_psi0_W0T_psi1, R_psi1_W0_psi0 = r
    C_phi_phi = operator(order["C", "phi", "phi"])
    R_phi_xi = operator(order["R", "phi", "xi"])
    C_g_g = operator(order["C", "g", "g"])
    R_g_chi = operator(order["R", "g", "chi"])
    return block(
        [
            # [A1] C[psi0, phi]
            [
                (z - p.sigma**2 * R_psi1_W0_psi0) * identity(p.S),
                0,
                -C_phi_phi - p.sigma**2 / p.alpha * R_phi_xi,
                -(p.sigma**2) * C_phi_phi,
            ],
            # [A2] R[psi0, xi]
            [0, (z - p.sigma**2 * R_psi1_W0_psi0) * identity(p.S), -R_phi_xi.T, -(p.sigma**2) * R_phi_xi.T],
            # [A3] C[psi1, g]
            [
                -C_g_g - p.sigma**2 * R_g_chi,
                -(p.sigma**2) / p.alpha * C_g_g,
                (1 - p.sigma**2 * R_psi0_W0T_psi1 / p.alpha) * identity(p.S),
                0,
            ],
            # [A4] R[psi1, chi]
            [
                -R_g_chi.T,
                -(p.sigma**2) / p.alpha * R_g_chi.T,
                0,
                (1 - p.sigma**2 * R_psi0_W0T_psi1 / p.alpha) * identity(p.S),
            ],
        ],
        4 * (p.S,),
    )


def right_spikes(p, order):
    """For sources along phi: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_phi_phi = operator(order["C", "phi", "phi"])
    R_phi_xi = operator(order["R", "phi", "xi"])
    return (
        block([[C_phi_phi], [R_phi_xi.T], [0], [0]], 4 * (p.S,), (p.S,)),
        block([[identity(p.S), 0, 0, 0]], (p.S,), 4 * (p.S,)),
        block([[C_phi_phi]], (p.S,)),
    )


def left_spikes(p, order):
    """For sources along g: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_g_g = operator(order["C", "g", "g"])
    R_g_chi = operator(order["R", "g", "chi"])
    return (
        block([[0], [0], [C_g_g], [R_g_chi.T]], 4 * (p.S,), (p.S,)),
        block([[0, 0, identity(p.S), 0]], (p.S,), 4 * (p.S,)),
        block([[C_g_g]], (p.S,)),
    )


def pencil_0(p, order):
    """[S1] The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    C_phi_phi = operator(order["C", "phi", "phi"])
    R_phi_xi = operator(order["R", "phi", "xi"])
    C_g_g = operator(order["C", "g", "g"])
    R_g_chi = operator(order["R", "g", "chi"])
    return block(
        [
            [C_phi_phi + p.sigma**2 / p.alpha * R_phi_xi, p.sigma**2 * C_phi_phi],
            [R_phi_xi.T, p.sigma**2 * R_phi_xi.T],
        ],
        2 * (p.S,),
    ) @ block(
        [
            [C_g_g + p.sigma**2 * R_g_chi, p.sigma**2 / p.alpha * C_g_g],
            [R_g_chi.T, p.sigma**2 / p.alpha * R_g_chi.T],
        ],
        2 * (p.S,),
    )


def scalar_map_0(p, z, r):
    """[S1] s(z) = (1 - sigma^2 R_psi0_W0T_psi1/alpha) (z - sigma^2 R_psi1_W0_psi0)"""
    _, R_psi0_W0T_psi1, R_psi1_W0_psi0 = r
    return (1 - p.sigma**2 * R_psi0_W0T_psi1 / p.alpha) * (z - p.sigma**2 * R_psi1_W0_psi0)


def relation_0(p, s):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return (-p.alpha * s, p.alpha * p.sigma**2 * s + p.alpha * s**2 + p.sigma**4 + p.sigma**2 * s)


def inverse_map_0(p, s):
    """z(s) = (sigma^2 + s) (alpha s + sigma^2)/(alpha s)"""
    return (p.sigma**2 + s) * (p.alpha * s + p.sigma**2) / (p.alpha * s)


PROBE = Probe(
    unknowns=("C_psi0_phi", "R_psi0_xi", "C_psi1_g", "R_psi1_chi"),
    a_matrix=a_matrix,
    sides=(Side("right", right_spikes), Side("left", left_spikes)),
    cycles=(
        Cycle(
            pencil_0,
            scalar_map_0,
            relation_0,
            inverse_map_0,
            reads=(("C", "phi", "phi"), ("R", "phi", "xi"), ("C", "g", "g"), ("R", "g", "chi")),
        ),
    ),
    reduced=True,
    steady=True,
)
