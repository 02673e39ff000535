# Written by `derive build deep_linear L=2 data=full_batch param=mup` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

import jax
import jax.numpy as jnp


LABELS = ("C_psi0_h1", "R_psi0_J1T_g2", "C_psi1_g2", "R_psi1_J1_h1")
CYCLES = 1
REDUCED = True
# whether the number of steps enters through shapes alone: earlier outliers are then those of earlier spikes
STEADY = True
SIDES = ("right", "left")


def a_matrix(z, r, order, alpha, nu, gamma0, eta, sigma, T, C):
    """A(z); `r` holds the bulk responses at z (see bulk.py), `order` what training.py returns."""
    R_psi0_J1T_psi1 = r["R_psi0_J1T_psi1"]
    R_psi1_J1_psi0 = r["R_psi1_J1_psi0"]
    # equation of C[psi0, h1]
    row_0 = [
        (-R_psi1_J1_psi0 + z) * jnp.eye(T * C),
        jnp.zeros((T * C, T * C)),
        -((eta * gamma0) * order["C_h1_h1"] + order["R_h1_J1T_g2"]),
        -(order["C_h1_h1"]),
    ]
    # equation of R[psi0, J1T_g2]
    row_1 = [
        jnp.zeros((T * C, T * C)),
        (-R_psi1_J1_psi0 + z) * jnp.eye(T * C),
        -((eta * gamma0) * order["R_h1_J1T_g2"].T),
        -(order["R_h1_J1T_g2"].T),
    ]
    # equation of C[psi1, g2]
    row_2 = [
        -((eta * gamma0) * order["C_g2_g2"] + order["R_g2_J1_h1"]),
        -(order["C_g2_g2"]),
        (1 - R_psi0_J1T_psi1) * jnp.eye(T * C),
        jnp.zeros((T * C, T * C)),
    ]
    # equation of R[psi1, J1_h1]
    row_3 = [
        -((eta * gamma0) * order["R_g2_J1_h1"].T),
        -(order["R_g2_J1_h1"].T),
        jnp.zeros((T * C, T * C)),
        (1 - R_psi0_J1T_psi1) * jnp.eye(T * C),
    ]
    return jnp.block([row_0, row_1, row_2, row_3])


def right_spikes(order, alpha, nu, gamma0, eta, sigma, T, C):
    """For sources along h1: the right-hand side of A(z) q = b, the rows of q that are its overlaps
    with them, and their Gram matrix."""
    driven = jnp.block(
        [
            [order["C_h1_h1"]],
            [order["R_h1_J1T_g2"].T],
            [jnp.zeros((T * C, T * C))],
            [jnp.zeros((T * C, T * C))],
        ]
    )
    seen = jnp.block(
        [[jnp.eye(T * C), jnp.zeros((T * C, T * C)), jnp.zeros((T * C, T * C)), jnp.zeros((T * C, T * C))]]
    )
    gram = jnp.block([[order["C_h1_h1"]]])
    return driven, seen, gram


def left_spikes(order, alpha, nu, gamma0, eta, sigma, T, C):
    """For sources along g2: the right-hand side of A(z) q = b, the rows of q that are its overlaps
    with them, and their Gram matrix."""
    driven = jnp.block(
        [
            [jnp.zeros((T * C, T * C))],
            [jnp.zeros((T * C, T * C))],
            [order["C_g2_g2"]],
            [order["R_g2_J1_h1"].T],
        ]
    )
    seen = jnp.block(
        [[jnp.zeros((T * C, T * C)), jnp.zeros((T * C, T * C)), jnp.eye(T * C), jnp.zeros((T * C, T * C))]]
    )
    gram = jnp.block([[order["C_g2_g2"]]])
    return driven, seen, gram


def pencil_0(order, alpha, nu, gamma0, eta, sigma, T, C):
    """The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    coupling_0 = jnp.block(
        [
            [(eta * gamma0) * order["C_h1_h1"] + order["R_h1_J1T_g2"], order["C_h1_h1"]],
            [(eta * gamma0) * order["R_h1_J1T_g2"].T, order["R_h1_J1T_g2"].T],
        ]
    )
    coupling_1 = jnp.block(
        [
            [(eta * gamma0) * order["C_g2_g2"] + order["R_g2_J1_h1"], order["C_g2_g2"]],
            [(eta * gamma0) * order["R_g2_J1_h1"].T, order["R_g2_J1_h1"].T],
        ]
    )
    return coupling_0 @ coupling_1


def scalar_map_0(z, r, alpha, nu, gamma0, eta, sigma, T, C):
    """s(z) = (1 - R_psi0_J1T_psi1) (z - R_psi1_J1_psi0)"""
    R_psi0_J1T_psi1 = r["R_psi0_J1T_psi1"]
    R_psi1_J1_psi0 = r["R_psi1_J1_psi0"]
    return (1 - R_psi0_J1T_psi1) * (-R_psi1_J1_psi0 + z)


def inverse_map_0(s, alpha, nu, gamma0, eta, sigma, T, C):
    """z(s) = (s + 1)^2/s"""
    return (s + 1) ** 2 / s


def relation_0(s, alpha, nu, gamma0, eta, sigma, T, C):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return jnp.array([-s, s**2 + 2 * s + 1])
