# Written by `derive build coupled_spikes_tanh` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

import jax
import jax.numpy as jnp


LABELS = ("C_psi0_phi", "R_psi0_xi", "C_psi1_g", "R_psi1_chi")
CYCLES = 1
REDUCED = True
# whether the number of steps enters through shapes alone: earlier outliers are then those of earlier spikes
STEADY = True
SIDES = ("right", "left")


def a_matrix(z, r, order, alpha, sigma, theta, kappa, S):
    """A(z); `r` holds the bulk responses at z (see bulk.py), `order` what training.py returns."""
    R_psi0_W0T_psi1 = r["R_psi0_W0T_psi1"]
    R_psi1_W0_psi0 = r["R_psi1_W0_psi0"]
    # equation of C[psi0, phi]
    row_0 = [
        (-(sigma**2) * R_psi1_W0_psi0 + z) * jnp.eye(S),
        jnp.zeros((S, S)),
        -(order["C_phi_phi"] + (sigma**2 / alpha) * order["R_phi_xi"]),
        -((sigma**2) * order["C_phi_phi"]),
    ]
    # equation of R[psi0, xi]
    row_1 = [
        jnp.zeros((S, S)),
        (-(sigma**2) * R_psi1_W0_psi0 + z) * jnp.eye(S),
        -(order["R_phi_xi"].T),
        -((sigma**2) * order["R_phi_xi"].T),
    ]
    # equation of C[psi1, g]
    row_2 = [
        -(order["C_g_g"] + (sigma**2) * order["R_g_chi"]),
        -((sigma**2 / alpha) * order["C_g_g"]),
        (1 - sigma**2 * R_psi0_W0T_psi1 / alpha) * jnp.eye(S),
        jnp.zeros((S, S)),
    ]
    # equation of R[psi1, chi]
    row_3 = [
        -(order["R_g_chi"].T),
        -((sigma**2 / alpha) * order["R_g_chi"].T),
        jnp.zeros((S, S)),
        (1 - sigma**2 * R_psi0_W0T_psi1 / alpha) * jnp.eye(S),
    ]
    return jnp.block([row_0, row_1, row_2, row_3])


def right_spikes(order, alpha, sigma, theta, kappa, S):
    """For sources along phi: the right-hand side of A(z) q = b, the rows of q that are its overlaps
    with them, and their Gram matrix."""
    driven = jnp.block(
        [[order["C_phi_phi"]], [order["R_phi_xi"].T], [jnp.zeros((S, S))], [jnp.zeros((S, S))]]
    )
    seen = jnp.block([[jnp.eye(S), jnp.zeros((S, S)), jnp.zeros((S, S)), jnp.zeros((S, S))]])
    gram = jnp.block([[order["C_phi_phi"]]])
    return driven, seen, gram


def left_spikes(order, alpha, sigma, theta, kappa, S):
    """For sources along g: the right-hand side of A(z) q = b, the rows of q that are its overlaps
    with them, and their Gram matrix."""
    driven = jnp.block([[jnp.zeros((S, S))], [jnp.zeros((S, S))], [order["C_g_g"]], [order["R_g_chi"].T]])
    seen = jnp.block([[jnp.zeros((S, S)), jnp.zeros((S, S)), jnp.eye(S), jnp.zeros((S, S))]])
    gram = jnp.block([[order["C_g_g"]]])
    return driven, seen, gram


def pencil_0(order, alpha, sigma, theta, kappa, S):
    """The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    coupling_0 = jnp.block(
        [
            [order["C_phi_phi"] + (sigma**2 / alpha) * order["R_phi_xi"], (sigma**2) * order["C_phi_phi"]],
            [order["R_phi_xi"].T, (sigma**2) * order["R_phi_xi"].T],
        ]
    )
    coupling_1 = jnp.block(
        [
            [order["C_g_g"] + (sigma**2) * order["R_g_chi"], (sigma**2 / alpha) * order["C_g_g"]],
            [order["R_g_chi"].T, (sigma**2 / alpha) * order["R_g_chi"].T],
        ]
    )
    return coupling_0 @ coupling_1


def scalar_map_0(z, r, alpha, sigma, theta, kappa, S):
    """s(z) = (1 - sigma^2 R_psi0_W0T_psi1/alpha) (z - sigma^2 R_psi1_W0_psi0)"""
    R_psi0_W0T_psi1 = r["R_psi0_W0T_psi1"]
    R_psi1_W0_psi0 = r["R_psi1_W0_psi0"]
    return (1 - sigma**2 * R_psi0_W0T_psi1 / alpha) * (-(sigma**2) * R_psi1_W0_psi0 + z)


def inverse_map_0(s, alpha, sigma, theta, kappa, S):
    """z(s) = (sigma^2 + s) (alpha s + sigma^2)/(alpha s)"""
    return (sigma**2 + s) * (alpha * s + sigma**2) / (alpha * s)


def relation_0(s, alpha, sigma, theta, kappa, S):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return jnp.array([-alpha * s, alpha * sigma**2 * s + alpha * s**2 + sigma**4 + sigma**2 * s])
