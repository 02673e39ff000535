# Written by `derive build anti_hebbian` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

import jax
import jax.numpy as jnp


LABELS = ("C_psi0_v", "R_psi0_M0_v")
CYCLES = 1
REDUCED = True
# whether the number of steps enters through shapes alone: earlier outliers are then those of earlier spikes
STEADY = True
SIDES = ("right",)


def a_matrix(z, r, order, gamma0, dt, T):
    """A(z); `r` holds the bulk responses at z (see bulk.py), `order` what training.py returns."""
    R_psi0_M0_psi0 = r["R_psi0_M0_psi0"]
    # equation of C[psi0, v]
    row_0 = [
        (-R_psi0_M0_psi0 + z) * jnp.eye(T) - ((dt * gamma0) * order["C_v_v"] + order["R_v_M0_v"]),
        -(order["C_v_v"]),
    ]
    # equation of R[psi0, M0_v]
    row_1 = [
        -((dt * gamma0) * order["R_v_M0_v"].T),
        (-R_psi0_M0_psi0 + z) * jnp.eye(T) - (order["R_v_M0_v"].T),
    ]
    return jnp.block([row_0, row_1])


def right_spikes(order, gamma0, dt, T):
    """For sources along v: the right-hand side of A(z) q = b, the rows of q that are its overlaps
    with them, and their Gram matrix."""
    driven = jnp.block([[order["C_v_v"]], [order["R_v_M0_v"].T]])
    seen = jnp.block([[jnp.eye(T), jnp.zeros((T, T))]])
    gram = jnp.block([[order["C_v_v"]]])
    return driven, seen, gram


def pencil_0(order, gamma0, dt, T):
    """The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    coupling_0 = jnp.block(
        [
            [(dt * gamma0) * order["C_v_v"] + order["R_v_M0_v"], order["C_v_v"]],
            [(dt * gamma0) * order["R_v_M0_v"].T, order["R_v_M0_v"].T],
        ]
    )
    return coupling_0


def scalar_map_0(z, r, gamma0, dt, T):
    """s(z) = z - R_psi0_M0_psi0"""
    R_psi0_M0_psi0 = r["R_psi0_M0_psi0"]
    return -R_psi0_M0_psi0 + z


def inverse_map_0(s, gamma0, dt, T):
    """z(s) = (s^2 + 1)/s"""
    return (s**2 + 1) / s


def relation_0(s, gamma0, dt, T):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return jnp.array([-s, s**2 + 1])
