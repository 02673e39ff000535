# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

import jax
import jax.numpy as jnp


LABELS = ("C_psi0_phi1", "R_psi0_J1T_g2", "C_psi1_g2", "C_psi1_spike2", "R_psi1_J1_phi1")
CYCLES = 1
REDUCED = True
# whether the number of steps enters through shapes alone: earlier outliers are then those of earlier spikes
STEADY = True
SIDES = ("right", "left")


def a_matrix(z, r, order, gamma, eta, sigma, P, D, B, T, draw):
    """A(z); `r` holds the bulk responses at z (see bulk.py), `order` what training.py returns."""
    R_psi0_J1T_psi1 = r["R_psi0_J1T_psi1"]
    R_psi1_J1_psi0 = r["R_psi1_J1_psi0"]
    # equation of C[psi0, phi1]
    row_0 = [
        (-(sigma**2) * R_psi1_J1_psi0 + z) * jnp.eye(T * B),
        jnp.zeros((T * B, T * B)),
        -((sigma**2) * order["R_phi1_J1T_g2"]),
        -((eta * gamma) * order["C_phi1_phi1"]),
        -((sigma**2) * order["C_phi1_phi1"]),
    ]
    # equation of R[psi0, J1T_g2]
    row_1 = [
        jnp.zeros((T * B, T * B)),
        (-(sigma**2) * R_psi1_J1_psi0 + z) * jnp.eye(T * B),
        jnp.zeros((T * B, T * B)),
        -((eta * gamma) * order["R_phi1_J1T_g2"].T),
        -((sigma**2) * order["R_phi1_J1T_g2"].T),
    ]
    # equation of C[psi1, g2]
    row_2 = [
        -((eta * gamma) * order["C_g2_spike2"] + (sigma**2) * order["R_g2_J1_phi1"]),
        -((sigma**2) * order["C_g2_g2"]),
        (-(sigma**2) * R_psi0_J1T_psi1 + 1) * jnp.eye(T * B),
        jnp.zeros((T * B, T * B)),
        jnp.zeros((T * B, T * B)),
    ]
    # equation of C[psi1, spike2]
    row_3 = [
        -((eta * gamma) * order["C_spike2_spike2"] + (sigma**2) * order["R_spike2_J1_phi1"]),
        -((sigma**2) * order["C_g2_spike2"].T),
        jnp.zeros((T * B, T * B)),
        (-(sigma**2) * R_psi0_J1T_psi1 + 1) * jnp.eye(T * B),
        jnp.zeros((T * B, T * B)),
    ]
    # equation of R[psi1, J1_phi1]
    row_4 = [
        -((eta * gamma) * order["R_spike2_J1_phi1"].T),
        -((sigma**2) * order["R_g2_J1_phi1"].T),
        jnp.zeros((T * B, T * B)),
        jnp.zeros((T * B, T * B)),
        (-(sigma**2) * R_psi0_J1T_psi1 + 1) * jnp.eye(T * B),
    ]
    return jnp.block([row_0, row_1, row_2, row_3, row_4])


def right_spikes(order, gamma, eta, sigma, P, D, B, T, draw):
    """For sources along phi1: the right-hand side of A(z) q = b, the rows of q that are its overlaps
    with them, and their Gram matrix."""
    driven = jnp.block(
        [
            [order["C_phi1_phi1"]],
            [order["R_phi1_J1T_g2"].T],
            [jnp.zeros((T * B, T * B))],
            [jnp.zeros((T * B, T * B))],
            [jnp.zeros((T * B, T * B))],
        ]
    )
    seen = jnp.block(
        [
            [
                jnp.eye(T * B),
                jnp.zeros((T * B, T * B)),
                jnp.zeros((T * B, T * B)),
                jnp.zeros((T * B, T * B)),
                jnp.zeros((T * B, T * B)),
            ]
        ]
    )
    gram = jnp.block([[order["C_phi1_phi1"]]])
    return driven, seen, gram


def left_spikes(order, gamma, eta, sigma, P, D, B, T, draw):
    """For sources along spike2: the right-hand side of A(z) q = b, the rows of q that are its overlaps
    with them, and their Gram matrix."""
    driven = jnp.block(
        [
            [jnp.zeros((T * B, T * B))],
            [jnp.zeros((T * B, T * B))],
            [order["C_g2_spike2"]],
            [order["C_spike2_spike2"]],
            [order["R_spike2_J1_phi1"].T],
        ]
    )
    seen = jnp.block(
        [
            [
                jnp.zeros((T * B, T * B)),
                jnp.zeros((T * B, T * B)),
                jnp.zeros((T * B, T * B)),
                jnp.eye(T * B),
                jnp.zeros((T * B, T * B)),
            ]
        ]
    )
    gram = jnp.block([[order["C_spike2_spike2"]]])
    return driven, seen, gram


def pencil_0(order, gamma, eta, sigma, P, D, B, T, draw):
    """The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    coupling_0 = jnp.block(
        [
            [
                (sigma**2) * order["R_phi1_J1T_g2"],
                (eta * gamma) * order["C_phi1_phi1"],
                (sigma**2) * order["C_phi1_phi1"],
            ],
            [
                jnp.zeros((T * B, T * B)),
                (eta * gamma) * order["R_phi1_J1T_g2"].T,
                (sigma**2) * order["R_phi1_J1T_g2"].T,
            ],
        ]
    )
    coupling_1 = jnp.block(
        [
            [
                (eta * gamma) * order["C_g2_spike2"] + (sigma**2) * order["R_g2_J1_phi1"],
                (sigma**2) * order["C_g2_g2"],
            ],
            [
                (eta * gamma) * order["C_spike2_spike2"] + (sigma**2) * order["R_spike2_J1_phi1"],
                (sigma**2) * order["C_g2_spike2"].T,
            ],
            [(eta * gamma) * order["R_spike2_J1_phi1"].T, (sigma**2) * order["R_g2_J1_phi1"].T],
        ]
    )
    return coupling_0 @ coupling_1


def scalar_map_0(z, r, gamma, eta, sigma, P, D, B, T, draw):
    """s(z) = (1 - sigma^2 R_psi0_J1T_psi1) (z - sigma^2 R_psi1_J1_psi0)"""
    R_psi0_J1T_psi1 = r["R_psi0_J1T_psi1"]
    R_psi1_J1_psi0 = r["R_psi1_J1_psi0"]
    return (-(sigma**2) * R_psi0_J1T_psi1 + 1) * (-(sigma**2) * R_psi1_J1_psi0 + z)


def inverse_map_0(s, gamma, eta, sigma, P, D, B, T, draw):
    """z(s) = (sigma^2 + s)^2/s"""
    return (sigma**2 + s) ** 2 / s


def relation_0(s, gamma, eta, sigma, P, D, B, T, draw):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return jnp.array([-s, sigma**4 + 2 * sigma**2 * s + s**2])
