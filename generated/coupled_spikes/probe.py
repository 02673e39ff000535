# Written by `derive build coupled_spikes` from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

import jax.numpy as jnp

from numerics.runtime.interface import Probe, Ring, Side


def a_matrix(p, z, r, order):
    """A(z), one row of blocks per unknown: C[psi0, phi], R[psi0, xi], C[psi1, g], R[psi1, chi]."""
    _, R_psi0_W0T_psi1, R_psi1_W0_psi0 = r
    C_phi_phi = order["C", "phi", "phi"]
    R_phi_xi = order["R", "phi", "xi"]
    C_g_g = order["C", "g", "g"]
    R_g_chi = order["R", "g", "chi"]
    return jnp.block(
        [
            [
                (-(p.sigma**2) * R_psi1_W0_psi0 + z) * jnp.eye(p.S),
                jnp.zeros((p.S, p.S)),
                -C_phi_phi + (-(p.sigma**2) / p.alpha) * R_phi_xi,
                (-(p.sigma**2)) * C_phi_phi,
            ],
            [
                jnp.zeros((p.S, p.S)),
                (-(p.sigma**2) * R_psi1_W0_psi0 + z) * jnp.eye(p.S),
                -R_phi_xi.T,
                (-(p.sigma**2)) * R_phi_xi.T,
            ],
            [
                -C_g_g + (-(p.sigma**2)) * R_g_chi,
                (-(p.sigma**2) / p.alpha) * C_g_g,
                (1 - p.sigma**2 * R_psi0_W0T_psi1 / p.alpha) * jnp.eye(p.S),
                jnp.zeros((p.S, p.S)),
            ],
            [
                -R_g_chi.T,
                (-(p.sigma**2) / p.alpha) * R_g_chi.T,
                jnp.zeros((p.S, p.S)),
                (1 - p.sigma**2 * R_psi0_W0T_psi1 / p.alpha) * jnp.eye(p.S),
            ],
        ]
    )


def right_spikes(p, order):
    """For sources along phi: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_phi_phi = order["C", "phi", "phi"]
    R_phi_xi = order["R", "phi", "xi"]
    return (
        jnp.block([[C_phi_phi], [R_phi_xi.T], [jnp.zeros((p.S, p.S))], [jnp.zeros((p.S, p.S))]]),
        jnp.block([[jnp.eye(p.S), jnp.zeros((p.S, p.S)), jnp.zeros((p.S, p.S)), jnp.zeros((p.S, p.S))]]),
        jnp.block([[C_phi_phi]]),
    )


def left_spikes(p, order):
    """For sources along g: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_g_g = order["C", "g", "g"]
    R_g_chi = order["R", "g", "chi"]
    return (
        jnp.block([[jnp.zeros((p.S, p.S))], [jnp.zeros((p.S, p.S))], [C_g_g], [R_g_chi.T]]),
        jnp.block([[jnp.zeros((p.S, p.S)), jnp.zeros((p.S, p.S)), jnp.eye(p.S), jnp.zeros((p.S, p.S))]]),
        jnp.block([[C_g_g]]),
    )


def pencil_0(p, order):
    """The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    C_phi_phi = order["C", "phi", "phi"]
    R_phi_xi = order["R", "phi", "xi"]
    C_g_g = order["C", "g", "g"]
    R_g_chi = order["R", "g", "chi"]
    return jnp.block(
        [
            [C_phi_phi + (p.sigma**2 / p.alpha) * R_phi_xi, (p.sigma**2) * C_phi_phi],
            [R_phi_xi.T, (p.sigma**2) * R_phi_xi.T],
        ]
    ) @ jnp.block(
        [
            [C_g_g + (p.sigma**2) * R_g_chi, (p.sigma**2 / p.alpha) * C_g_g],
            [R_g_chi.T, (p.sigma**2 / p.alpha) * R_g_chi.T],
        ]
    )


def scalar_map_0(p, z, r):
    """s(z) = (1 - sigma^2 R_psi0_W0T_psi1/alpha) (z - sigma^2 R_psi1_W0_psi0)"""
    _, R_psi0_W0T_psi1, R_psi1_W0_psi0 = r
    return (1 - p.sigma**2 * R_psi0_W0T_psi1 / p.alpha) * (-(p.sigma**2) * R_psi1_W0_psi0 + z)


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
    rings=(Ring(pencil_0, scalar_map_0, relation_0, inverse_map_0),),
    reduced=True,
    steady=True,
)
