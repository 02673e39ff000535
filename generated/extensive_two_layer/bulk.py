# Written by `derive build extensive_two_layer sample=population steps=1 output=left_out` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

import jax.numpy as jnp

from numerics.runtime.interface import BulkLaw


def equations(p, z, r):
    """Each is zero at the bulk responses r at z, and vanishes as z grows:
    0 = R_psi0_BT_psi3 z - chi R_psi0_BT_psi3 R_psi3_B_psi0/nu - R_psi0_BT_psi3 R_psi1_W0_psi0 - 1
    0 = R_psi2_B_psi0 - 1 - R_psi0_BT_psi3 R_psi3_B_psi0/nu
    0 = R_psi3_B_psi0 - gamma nu R_psi1_A_psi2 R_psi2_B_psi0/chi
    0 = R_psi0_W0T_psi1 z - chi R_psi0_W0T_psi1 R_psi3_B_psi0/nu - R_psi0_W0T_psi1 R_psi1_W0_psi0 - 1
    0 = R_psi1_W0_psi0 - gamma R_psi1_W0_psi0 R_psi2_AT_psi1 - 1 - R_psi0_W0T_psi1 R_psi1_W0_psi0/nu
    0 = R_psi2_AT_psi1 - R_psi0_BT_psi3 R_psi3_AT_psi1/nu
    0 = R_psi3_AT_psi1 - gamma - gamma nu R_psi1_A_psi2 R_psi2_AT_psi1/chi
    0 = R_psi1_A_psi2 - gamma R_psi1_A_psi2 R_psi2_AT_psi1 - gamma - R_psi0_W0T_psi1 R_psi1_A_psi2/nu
    0 = G z - chi G R_psi3_B_psi0/nu - G R_psi1_W0_psi0 - 1
    """
    (
        G,
        R_psi0_BT_psi3,
        R_psi0_W0T_psi1,
        R_psi1_A_psi2,
        R_psi1_W0_psi0,
        R_psi2_AT_psi1,
        R_psi2_B_psi0,
        R_psi3_AT_psi1,
        R_psi3_B_psi0,
    ) = r
    return (
        -p.chi * R_psi0_BT_psi3 * R_psi3_B_psi0 / p.nu
        - R_psi0_BT_psi3 * R_psi1_W0_psi0
        + R_psi0_BT_psi3 * z
        - 1,
        R_psi2_B_psi0 - 1 - R_psi0_BT_psi3 * R_psi3_B_psi0 / p.nu,
        R_psi3_B_psi0 - p.gamma * p.nu * R_psi1_A_psi2 * R_psi2_B_psi0 / p.chi,
        -p.chi * R_psi0_W0T_psi1 * R_psi3_B_psi0 / p.nu
        - R_psi0_W0T_psi1 * R_psi1_W0_psi0
        + R_psi0_W0T_psi1 * z
        - 1,
        -p.gamma * R_psi1_W0_psi0 * R_psi2_AT_psi1
        + R_psi1_W0_psi0
        - 1
        - R_psi0_W0T_psi1 * R_psi1_W0_psi0 / p.nu,
        R_psi2_AT_psi1 - R_psi0_BT_psi3 * R_psi3_AT_psi1 / p.nu,
        -p.gamma + R_psi3_AT_psi1 - p.gamma * p.nu * R_psi1_A_psi2 * R_psi2_AT_psi1 / p.chi,
        -p.gamma * R_psi1_A_psi2 * R_psi2_AT_psi1
        - p.gamma
        + R_psi1_A_psi2
        - R_psi0_W0T_psi1 * R_psi1_A_psi2 / p.nu,
        -p.chi * G * R_psi3_B_psi0 / p.nu - G * R_psi1_W0_psi0 + G * z - 1,
    )


def curve(p):
    """Table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the resolvent."""
    return (
        (p.chi * p.nu**2, 0, 0),
        (
            p.chi * p.gamma**2 * p.nu**2
            - p.chi * p.gamma**2 * p.nu
            + p.chi * p.nu**2
            - p.chi * p.nu
            - p.gamma**2 * p.nu**2
            + p.gamma**2 * p.nu,
            -p.chi * p.nu**2,
            0,
        ),
        (
            -(p.gamma**2) * p.nu**2 + 2 * p.gamma**2 * p.nu - p.gamma**2,
            p.chi * p.gamma**2 * p.nu + p.chi * p.nu + p.gamma**2 * p.nu**2 - 2 * p.gamma**2 * p.nu,
            0,
        ),
        (0, -2 * p.gamma**2 * p.nu + 2 * p.gamma**2, p.gamma**2 * p.nu),
        (0, 0, -(p.gamma**2)),
    )


def edge_polynomials(p):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""
    return (
        (1, 0),
        (
            4 * p.chi**3 * p.gamma**4 * p.nu**5,
            p.chi**4 * p.gamma**6 * p.nu**4
            + 20 * p.chi**4 * p.gamma**4 * p.nu**4
            - 8 * p.chi**4 * p.gamma**2 * p.nu**4
            - 10 * p.chi**3 * p.gamma**6 * p.nu**5
            - 10 * p.chi**3 * p.gamma**6 * p.nu**4
            - 16 * p.chi**3 * p.gamma**4 * p.nu**5
            - 16 * p.chi**3 * p.gamma**4 * p.nu**4
            + p.chi**2 * p.gamma**6 * p.nu**6
            - 10 * p.chi**2 * p.gamma**6 * p.nu**5
            + p.chi**2 * p.gamma**6 * p.nu**4,
            4 * p.chi**5 * p.gamma**6 * p.nu**3
            + 12 * p.chi**5 * p.gamma**4 * p.nu**3
            + 12 * p.chi**5 * p.gamma**2 * p.nu**3
            + 4 * p.chi**5 * p.nu**3
            - 2 * p.chi**4 * p.gamma**8 * p.nu**4
            - 2 * p.chi**4 * p.gamma**8 * p.nu**3
            - 52 * p.chi**4 * p.gamma**6 * p.nu**4
            - 52 * p.chi**4 * p.gamma**6 * p.nu**3
            - 26 * p.chi**4 * p.gamma**4 * p.nu**4
            - 26 * p.chi**4 * p.gamma**4 * p.nu**3
            + 24 * p.chi**4 * p.gamma**2 * p.nu**4
            + 24 * p.chi**4 * p.gamma**2 * p.nu**3
            + 8 * p.chi**3 * p.gamma**8 * p.nu**5
            - 4 * p.chi**3 * p.gamma**8 * p.nu**4
            + 8 * p.chi**3 * p.gamma**8 * p.nu**3
            + 36 * p.chi**3 * p.gamma**6 * p.nu**5
            - 20 * p.chi**3 * p.gamma**6 * p.nu**4
            + 36 * p.chi**3 * p.gamma**6 * p.nu**3
            + 22 * p.chi**3 * p.gamma**4 * p.nu**5
            + 44 * p.chi**3 * p.gamma**4 * p.nu**4
            + 22 * p.chi**3 * p.gamma**4 * p.nu**3
            - 2 * p.chi**2 * p.gamma**8 * p.nu**6
            - 4 * p.chi**2 * p.gamma**8 * p.nu**5
            - 4 * p.chi**2 * p.gamma**8 * p.nu**4
            - 2 * p.chi**2 * p.gamma**8 * p.nu**3
            - 4 * p.chi**2 * p.gamma**6 * p.nu**6
            + 28 * p.chi**2 * p.gamma**6 * p.nu**5
            + 28 * p.chi**2 * p.gamma**6 * p.nu**4
            - 4 * p.chi**2 * p.gamma**6 * p.nu**3
            - 2 * p.chi * p.gamma**8 * p.nu**6
            + 8 * p.chi * p.gamma**8 * p.nu**5
            - 2 * p.chi * p.gamma**8 * p.nu**4,
            -8 * p.chi**5 * p.gamma**8 * p.nu**3
            - 8 * p.chi**5 * p.gamma**8 * p.nu**2
            - 32 * p.chi**5 * p.gamma**6 * p.nu**3
            - 32 * p.chi**5 * p.gamma**6 * p.nu**2
            - 48 * p.chi**5 * p.gamma**4 * p.nu**3
            - 48 * p.chi**5 * p.gamma**4 * p.nu**2
            - 32 * p.chi**5 * p.gamma**2 * p.nu**3
            - 32 * p.chi**5 * p.gamma**2 * p.nu**2
            - 8 * p.chi**5 * p.nu**3
            - 8 * p.chi**5 * p.nu**2
            + p.chi**4 * p.gamma**10 * p.nu**4
            - 2 * p.chi**4 * p.gamma**10 * p.nu**3
            + p.chi**4 * p.gamma**10 * p.nu**2
            + 42 * p.chi**4 * p.gamma**8 * p.nu**4
            - 20 * p.chi**4 * p.gamma**8 * p.nu**3
            + 42 * p.chi**4 * p.gamma**8 * p.nu**2
            + 58 * p.chi**4 * p.gamma**6 * p.nu**4
            - 52 * p.chi**4 * p.gamma**6 * p.nu**3
            + 58 * p.chi**4 * p.gamma**6 * p.nu**2
            - 6 * p.chi**4 * p.gamma**4 * p.nu**4
            - 52 * p.chi**4 * p.gamma**4 * p.nu**3
            - 6 * p.chi**4 * p.gamma**4 * p.nu**2
            - 23 * p.chi**4 * p.gamma**2 * p.nu**4
            - 18 * p.chi**4 * p.gamma**2 * p.nu**3
            - 23 * p.chi**4 * p.gamma**2 * p.nu**2
            - 2 * p.chi**3 * p.gamma**10 * p.nu**5
            + 2 * p.chi**3 * p.gamma**10 * p.nu**4
            + 2 * p.chi**3 * p.gamma**10 * p.nu**3
            - 2 * p.chi**3 * p.gamma**10 * p.nu**2
            - 28 * p.chi**3 * p.gamma**8 * p.nu**5
            - 20 * p.chi**3 * p.gamma**8 * p.nu**4
            - 20 * p.chi**3 * p.gamma**8 * p.nu**3
            - 28 * p.chi**3 * p.gamma**8 * p.nu**2
            - 40 * p.chi**3 * p.gamma**6 * p.nu**5
            + 72 * p.chi**3 * p.gamma**6 * p.nu**4
            + 72 * p.chi**3 * p.gamma**6 * p.nu**3
            - 40 * p.chi**3 * p.gamma**6 * p.nu**2
            - 10 * p.chi**3 * p.gamma**4 * p.nu**5
            - 38 * p.chi**3 * p.gamma**4 * p.nu**4
            - 38 * p.chi**3 * p.gamma**4 * p.nu**3
            - 10 * p.chi**3 * p.gamma**4 * p.nu**2
            + p.chi**2 * p.gamma**10 * p.nu**6
            + 2 * p.chi**2 * p.gamma**10 * p.nu**5
            - 6 * p.chi**2 * p.gamma**10 * p.nu**4
            + 2 * p.chi**2 * p.gamma**10 * p.nu**3
            + p.chi**2 * p.gamma**10 * p.nu**2
            + 6 * p.chi**2 * p.gamma**8 * p.nu**6
            - 6 * p.chi**2 * p.gamma**8 * p.nu**5
            + 64 * p.chi**2 * p.gamma**8 * p.nu**4
            - 6 * p.chi**2 * p.gamma**8 * p.nu**3
            + 6 * p.chi**2 * p.gamma**8 * p.nu**2
            + 6 * p.chi**2 * p.gamma**6 * p.nu**6
            - 26 * p.chi**2 * p.gamma**6 * p.nu**5
            - 24 * p.chi**2 * p.gamma**6 * p.nu**4
            - 26 * p.chi**2 * p.gamma**6 * p.nu**3
            + 6 * p.chi**2 * p.gamma**6 * p.nu**2
            - 2 * p.chi * p.gamma**10 * p.nu**6
            + 2 * p.chi * p.gamma**10 * p.nu**5
            + 2 * p.chi * p.gamma**10 * p.nu**4
            - 2 * p.chi * p.gamma**10 * p.nu**3
            + 6 * p.chi * p.gamma**8 * p.nu**6
            - 14 * p.chi * p.gamma**8 * p.nu**5
            - 14 * p.chi * p.gamma**8 * p.nu**4
            + 6 * p.chi * p.gamma**8 * p.nu**3
            + p.gamma**10 * p.nu**6
            - 2 * p.gamma**10 * p.nu**5
            + p.gamma**10 * p.nu**4,
            4 * p.chi**5 * p.gamma**10 * p.nu**3
            - 8 * p.chi**5 * p.gamma**10 * p.nu**2
            + 4 * p.chi**5 * p.gamma**10 * p.nu
            + 20 * p.chi**5 * p.gamma**8 * p.nu**3
            - 40 * p.chi**5 * p.gamma**8 * p.nu**2
            + 20 * p.chi**5 * p.gamma**8 * p.nu
            + 40 * p.chi**5 * p.gamma**6 * p.nu**3
            - 80 * p.chi**5 * p.gamma**6 * p.nu**2
            + 40 * p.chi**5 * p.gamma**6 * p.nu
            + 40 * p.chi**5 * p.gamma**4 * p.nu**3
            - 80 * p.chi**5 * p.gamma**4 * p.nu**2
            + 40 * p.chi**5 * p.gamma**4 * p.nu
            + 20 * p.chi**5 * p.gamma**2 * p.nu**3
            - 40 * p.chi**5 * p.gamma**2 * p.nu**2
            + 20 * p.chi**5 * p.gamma**2 * p.nu
            + 4 * p.chi**5 * p.nu**3
            - 8 * p.chi**5 * p.nu**2
            + 4 * p.chi**5 * p.nu
            - 10 * p.chi**4 * p.gamma**10 * p.nu**4
            + 10 * p.chi**4 * p.gamma**10 * p.nu**3
            + 10 * p.chi**4 * p.gamma**10 * p.nu**2
            - 10 * p.chi**4 * p.gamma**10 * p.nu
            - 24 * p.chi**4 * p.gamma**8 * p.nu**4
            + 24 * p.chi**4 * p.gamma**8 * p.nu**3
            + 24 * p.chi**4 * p.gamma**8 * p.nu**2
            - 24 * p.chi**4 * p.gamma**8 * p.nu
            - 12 * p.chi**4 * p.gamma**6 * p.nu**4
            + 12 * p.chi**4 * p.gamma**6 * p.nu**3
            + 12 * p.chi**4 * p.gamma**6 * p.nu**2
            - 12 * p.chi**4 * p.gamma**6 * p.nu
            + 8 * p.chi**4 * p.gamma**4 * p.nu**4
            - 8 * p.chi**4 * p.gamma**4 * p.nu**3
            - 8 * p.chi**4 * p.gamma**4 * p.nu**2
            + 8 * p.chi**4 * p.gamma**4 * p.nu
            + 6 * p.chi**4 * p.gamma**2 * p.nu**4
            - 6 * p.chi**4 * p.gamma**2 * p.nu**3
            - 6 * p.chi**4 * p.gamma**2 * p.nu**2
            + 6 * p.chi**4 * p.gamma**2 * p.nu
            + 8 * p.chi**3 * p.gamma**10 * p.nu**5
            + 8 * p.chi**3 * p.gamma**10 * p.nu**4
            - 32 * p.chi**3 * p.gamma**10 * p.nu**3
            + 8 * p.chi**3 * p.gamma**10 * p.nu**2
            + 8 * p.chi**3 * p.gamma**10 * p.nu
            + 22 * p.chi**3 * p.gamma**8 * p.nu**5
            - 64 * p.chi**3 * p.gamma**8 * p.nu**4
            + 84 * p.chi**3 * p.gamma**8 * p.nu**3
            - 64 * p.chi**3 * p.gamma**8 * p.nu**2
            + 22 * p.chi**3 * p.gamma**8 * p.nu
            + 12 * p.chi**3 * p.gamma**6 * p.nu**5
            - 56 * p.chi**3 * p.gamma**6 * p.nu**4
            + 88 * p.chi**3 * p.gamma**6 * p.nu**3
            - 56 * p.chi**3 * p.gamma**6 * p.nu**2
            + 12 * p.chi**3 * p.gamma**6 * p.nu
            - 2 * p.chi**3 * p.gamma**4 * p.nu**5
            + 16 * p.chi**3 * p.gamma**4 * p.nu**4
            - 28 * p.chi**3 * p.gamma**4 * p.nu**3
            + 16 * p.chi**3 * p.gamma**4 * p.nu**2
            - 2 * p.chi**3 * p.gamma**4 * p.nu
            - 2 * p.chi**2 * p.gamma**10 * p.nu**6
            - 14 * p.chi**2 * p.gamma**10 * p.nu**5
            + 16 * p.chi**2 * p.gamma**10 * p.nu**4
            + 16 * p.chi**2 * p.gamma**10 * p.nu**3
            - 14 * p.chi**2 * p.gamma**10 * p.nu**2
            - 2 * p.chi**2 * p.gamma**10 * p.nu
            - 6 * p.chi**2 * p.gamma**8 * p.nu**6
            + 26 * p.chi**2 * p.gamma**8 * p.nu**5
            - 20 * p.chi**2 * p.gamma**8 * p.nu**4
            - 20 * p.chi**2 * p.gamma**8 * p.nu**3
            + 26 * p.chi**2 * p.gamma**8 * p.nu**2
            - 6 * p.chi**2 * p.gamma**8 * p.nu
            - 4 * p.chi**2 * p.gamma**6 * p.nu**6
            + 8 * p.chi**2 * p.gamma**6 * p.nu**5
            - 4 * p.chi**2 * p.gamma**6 * p.nu**4
            - 4 * p.chi**2 * p.gamma**6 * p.nu**3
            + 8 * p.chi**2 * p.gamma**6 * p.nu**2
            - 4 * p.chi**2 * p.gamma**6 * p.nu
            + 4 * p.chi * p.gamma**10 * p.nu**6
            + 4 * p.chi * p.gamma**10 * p.nu**5
            - 16 * p.chi * p.gamma**10 * p.nu**4
            + 4 * p.chi * p.gamma**10 * p.nu**3
            + 4 * p.chi * p.gamma**10 * p.nu**2
            - 6 * p.chi * p.gamma**8 * p.nu**6
            + 12 * p.chi * p.gamma**8 * p.nu**5
            - 12 * p.chi * p.gamma**8 * p.nu**4
            + 12 * p.chi * p.gamma**8 * p.nu**3
            - 6 * p.chi * p.gamma**8 * p.nu**2
            - 2 * p.gamma**10 * p.nu**6
            + 2 * p.gamma**10 * p.nu**5
            + 2 * p.gamma**10 * p.nu**4
            - 2 * p.gamma**10 * p.nu**3,
            p.chi**4 * p.gamma**10 * p.nu**4
            - 4 * p.chi**4 * p.gamma**10 * p.nu**3
            + 6 * p.chi**4 * p.gamma**10 * p.nu**2
            - 4 * p.chi**4 * p.gamma**10 * p.nu
            + p.chi**4 * p.gamma**10
            + 4 * p.chi**4 * p.gamma**8 * p.nu**4
            - 16 * p.chi**4 * p.gamma**8 * p.nu**3
            + 24 * p.chi**4 * p.gamma**8 * p.nu**2
            - 16 * p.chi**4 * p.gamma**8 * p.nu
            + 4 * p.chi**4 * p.gamma**8
            + 6 * p.chi**4 * p.gamma**6 * p.nu**4
            - 24 * p.chi**4 * p.gamma**6 * p.nu**3
            + 36 * p.chi**4 * p.gamma**6 * p.nu**2
            - 24 * p.chi**4 * p.gamma**6 * p.nu
            + 6 * p.chi**4 * p.gamma**6
            + 4 * p.chi**4 * p.gamma**4 * p.nu**4
            - 16 * p.chi**4 * p.gamma**4 * p.nu**3
            + 24 * p.chi**4 * p.gamma**4 * p.nu**2
            - 16 * p.chi**4 * p.gamma**4 * p.nu
            + 4 * p.chi**4 * p.gamma**4
            + p.chi**4 * p.gamma**2 * p.nu**4
            - 4 * p.chi**4 * p.gamma**2 * p.nu**3
            + 6 * p.chi**4 * p.gamma**2 * p.nu**2
            - 4 * p.chi**4 * p.gamma**2 * p.nu
            + p.chi**4 * p.gamma**2
            - 2 * p.chi**3 * p.gamma**10 * p.nu**5
            + 6 * p.chi**3 * p.gamma**10 * p.nu**4
            - 4 * p.chi**3 * p.gamma**10 * p.nu**3
            - 4 * p.chi**3 * p.gamma**10 * p.nu**2
            + 6 * p.chi**3 * p.gamma**10 * p.nu
            - 2 * p.chi**3 * p.gamma**10
            - 2 * p.chi**3 * p.gamma**8 * p.nu**5
            + 6 * p.chi**3 * p.gamma**8 * p.nu**4
            - 4 * p.chi**3 * p.gamma**8 * p.nu**3
            - 4 * p.chi**3 * p.gamma**8 * p.nu**2
            + 6 * p.chi**3 * p.gamma**8 * p.nu
            - 2 * p.chi**3 * p.gamma**8
            + 2 * p.chi**3 * p.gamma**6 * p.nu**5
            - 6 * p.chi**3 * p.gamma**6 * p.nu**4
            + 4 * p.chi**3 * p.gamma**6 * p.nu**3
            + 4 * p.chi**3 * p.gamma**6 * p.nu**2
            - 6 * p.chi**3 * p.gamma**6 * p.nu
            + 2 * p.chi**3 * p.gamma**6
            + 2 * p.chi**3 * p.gamma**4 * p.nu**5
            - 6 * p.chi**3 * p.gamma**4 * p.nu**4
            + 4 * p.chi**3 * p.gamma**4 * p.nu**3
            + 4 * p.chi**3 * p.gamma**4 * p.nu**2
            - 6 * p.chi**3 * p.gamma**4 * p.nu
            + 2 * p.chi**3 * p.gamma**4
            + p.chi**2 * p.gamma**10 * p.nu**6
            - 9 * p.chi**2 * p.gamma**10 * p.nu**4
            + 16 * p.chi**2 * p.gamma**10 * p.nu**3
            - 9 * p.chi**2 * p.gamma**10 * p.nu**2
            + p.chi**2 * p.gamma**10
            + 2 * p.chi**2 * p.gamma**8 * p.nu**6
            - 16 * p.chi**2 * p.gamma**8 * p.nu**5
            + 46 * p.chi**2 * p.gamma**8 * p.nu**4
            - 64 * p.chi**2 * p.gamma**8 * p.nu**3
            + 46 * p.chi**2 * p.gamma**8 * p.nu**2
            - 16 * p.chi**2 * p.gamma**8 * p.nu
            + 2 * p.chi**2 * p.gamma**8
            + p.chi**2 * p.gamma**6 * p.nu**6
            - 9 * p.chi**2 * p.gamma**6 * p.nu**4
            + 16 * p.chi**2 * p.gamma**6 * p.nu**3
            - 9 * p.chi**2 * p.gamma**6 * p.nu**2
            + p.chi**2 * p.gamma**6
            - 2 * p.chi * p.gamma**10 * p.nu**6
            + 6 * p.chi * p.gamma**10 * p.nu**5
            - 4 * p.chi * p.gamma**10 * p.nu**4
            - 4 * p.chi * p.gamma**10 * p.nu**3
            + 6 * p.chi * p.gamma**10 * p.nu**2
            - 2 * p.chi * p.gamma**10 * p.nu
            + 2 * p.chi * p.gamma**8 * p.nu**6
            - 6 * p.chi * p.gamma**8 * p.nu**5
            + 4 * p.chi * p.gamma**8 * p.nu**4
            + 4 * p.chi * p.gamma**8 * p.nu**3
            - 6 * p.chi * p.gamma**8 * p.nu**2
            + 2 * p.chi * p.gamma**8 * p.nu
            + p.gamma**10 * p.nu**6
            - 4 * p.gamma**10 * p.nu**5
            + 6 * p.gamma**10 * p.nu**4
            - 4 * p.gamma**10 * p.nu**3
            + p.gamma**10 * p.nu**2,
        ),
    )


BULK = BulkLaw(
    responses=(
        "G",
        "R_psi0_BT_psi3",
        "R_psi0_W0T_psi1",
        "R_psi1_A_psi2",
        "R_psi1_W0_psi0",
        "R_psi2_AT_psi1",
        "R_psi2_B_psi0",
        "R_psi3_AT_psi1",
        "R_psi3_B_psi0",
    ),
    resolvent=0,
    equations=equations,
    curve_text="chi*nu**2 - gamma**2*G**4*{z}**2 + G**3*(gamma**2*nu*{z}**2 - 2*gamma**2*nu*{z} + 2*gamma**2*{z}) + G**2*(chi*gamma**2*nu*{z} + chi*nu*{z} + gamma**2*nu**2*{z} - gamma**2*nu**2 - 2*gamma**2*nu*{z} + 2*gamma**2*nu - gamma**2) + G*(chi*gamma**2*nu**2 - chi*gamma**2*nu - chi*nu**2*{z} + chi*nu**2 - chi*nu - gamma**2*nu**2 + gamma**2*nu)",
    curve=curve,
    edge_polynomials=edge_polynomials,
)
