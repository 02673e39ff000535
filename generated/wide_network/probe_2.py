# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

import jax
import jax.numpy as jnp


LABELS = ("C_psi0_phi2", "R_psi0_J2T_g3", "C_psi1_g3", "C_psi1_spike3", "R_psi1_J2_phi2")
CYCLES = 1
REDUCED = True
# whether the number of steps enters through shapes alone: earlier outliers are then those of earlier spikes
STEADY = True
SIDES = ("right", "left")


def a_matrix(z, r, order, gamma, eta, sigma, P, D, B, T, draw):
    """A(z); `r` holds the bulk responses at z (see bulk.py), `order` what training.py returns."""
    R_psi0_J2T_psi1 = r["R_psi0_J2T_psi1"]
    R_psi1_J2_psi0 = r["R_psi1_J2_psi0"]
    # equation of C[psi0, phi2]
    row_0 = [
        (-(sigma**2) * R_psi1_J2_psi0 + z) * jnp.eye(T * B),
        jnp.zeros((T * B, T * B)),
        -((sigma**2) * order["R_phi2_J2T_g3"]),
        -((eta * gamma) * order["C_phi2_phi2"]),
        -((sigma**2) * order["C_phi2_phi2"]),
    ]
    # equation of R[psi0, J2T_g3]
    row_1 = [
        jnp.zeros((T * B, T * B)),
        (-(sigma**2) * R_psi1_J2_psi0 + z) * jnp.eye(T * B),
        jnp.zeros((T * B, T * B)),
        -((eta * gamma) * order["R_phi2_J2T_g3"].T),
        -((sigma**2) * order["R_phi2_J2T_g3"].T),
    ]
    # equation of C[psi1, g3]
    row_2 = [
        -((eta * gamma) * order["C_g3_spike3"] + (sigma**2) * order["R_g3_J2_phi2"]),
        -((sigma**2) * order["C_g3_g3"]),
        (-(sigma**2) * R_psi0_J2T_psi1 + 1) * jnp.eye(T * B),
        jnp.zeros((T * B, T * B)),
        jnp.zeros((T * B, T * B)),
    ]
    # equation of C[psi1, spike3]
    row_3 = [
        -((eta * gamma) * order["C_spike3_spike3"] + (sigma**2) * order["R_spike3_J2_phi2"]),
        -((sigma**2) * order["C_g3_spike3"].T),
        jnp.zeros((T * B, T * B)),
        (-(sigma**2) * R_psi0_J2T_psi1 + 1) * jnp.eye(T * B),
        jnp.zeros((T * B, T * B)),
    ]
    # equation of R[psi1, J2_phi2]
    row_4 = [
        -((eta * gamma) * order["R_spike3_J2_phi2"].T),
        -((sigma**2) * order["R_g3_J2_phi2"].T),
        jnp.zeros((T * B, T * B)),
        jnp.zeros((T * B, T * B)),
        (-(sigma**2) * R_psi0_J2T_psi1 + 1) * jnp.eye(T * B),
    ]
    return jnp.block([row_0, row_1, row_2, row_3, row_4])


def right_spikes(order, gamma, eta, sigma, P, D, B, T, draw):
    """For sources along phi2: the right-hand side of A(z) q = b, the rows of q that are its overlaps
    with them, and their Gram matrix."""
    driven = jnp.block(
        [
            [order["C_phi2_phi2"]],
            [order["R_phi2_J2T_g3"].T],
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
    gram = jnp.block([[order["C_phi2_phi2"]]])
    return driven, seen, gram


def left_spikes(order, gamma, eta, sigma, P, D, B, T, draw):
    """For sources along spike3: the right-hand side of A(z) q = b, the rows of q that are its overlaps
    with them, and their Gram matrix."""
    driven = jnp.block(
        [
            [jnp.zeros((T * B, T * B))],
            [jnp.zeros((T * B, T * B))],
            [order["C_g3_spike3"]],
            [order["C_spike3_spike3"]],
            [order["R_spike3_J2_phi2"].T],
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
    gram = jnp.block([[order["C_spike3_spike3"]]])
    return driven, seen, gram


def pencil_0(order, gamma, eta, sigma, P, D, B, T, draw):
    """The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    coupling_0 = jnp.block(
        [
            [
                (sigma**2) * order["R_phi2_J2T_g3"],
                (eta * gamma) * order["C_phi2_phi2"],
                (sigma**2) * order["C_phi2_phi2"],
            ],
            [
                jnp.zeros((T * B, T * B)),
                (eta * gamma) * order["R_phi2_J2T_g3"].T,
                (sigma**2) * order["R_phi2_J2T_g3"].T,
            ],
        ]
    )
    coupling_1 = jnp.block(
        [
            [
                (eta * gamma) * order["C_g3_spike3"] + (sigma**2) * order["R_g3_J2_phi2"],
                (sigma**2) * order["C_g3_g3"],
            ],
            [
                (eta * gamma) * order["C_spike3_spike3"] + (sigma**2) * order["R_spike3_J2_phi2"],
                (sigma**2) * order["C_g3_spike3"].T,
            ],
            [(eta * gamma) * order["R_spike3_J2_phi2"].T, (sigma**2) * order["R_g3_J2_phi2"].T],
        ]
    )
    return coupling_0 @ coupling_1


def scalar_map_0(z, r, gamma, eta, sigma, P, D, B, T, draw):
    """s(z) = (1 - sigma^2 R_psi0_J2T_psi1) (z - sigma^2 R_psi1_J2_psi0)"""
    R_psi0_J2T_psi1 = r["R_psi0_J2T_psi1"]
    R_psi1_J2_psi0 = r["R_psi1_J2_psi0"]
    return (-(sigma**2) * R_psi0_J2T_psi1 + 1) * (-(sigma**2) * R_psi1_J2_psi0 + z)


def inverse_map_0(s, gamma, eta, sigma, P, D, B, T, draw):
    """z(s) = (sigma^2 + s)^2/s"""
    return (sigma**2 + s) ** 2 / s


def relation_0(s, gamma, eta, sigma, P, D, B, T, draw):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return jnp.array([-s, sigma**4 + 2 * sigma**2 * s + s**2])
