# Written by `derive build extensive_multilayer L=2 layer=1 sample=population` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

import jax.numpy as jnp

from numerics.runtime.interface import BulkLaw


def equations(p, z, r):
    """Each is zero at the bulk responses r at z, and vanishes as z grows:
    0 = R_psi2_W0T_psi0 - sqrt(chi) R_psi0_W0_psi5 R_psi5_W0T_psi0/sqrt(nu) - 1
    0 = R_psi5_W0T_psi0 - sqrt(chi) R_psi2_W0T_psi0 R_psi4_B_psi2
    0 = R_psi0_W0_psi5 z - sqrt(chi) R_psi0_W0_psi5 R_psi5_W0T_psi0/nu^(3/2) - R_psi0_W0_psi5 R_psi1_W1_psi0 - 1
    0 = R_psi2_BT_psi4 - sqrt(chi) R_psi0_W0_psi5 R_psi5_BT_psi4/sqrt(nu)
    0 = R_psi5_BT_psi4 - sqrt(chi) R_psi2_BT_psi4 R_psi4_B_psi2 - 1
    0 = R_psi3_B_psi2 - 1 - R_psi2_BT_psi4 R_psi4_B_psi2/sqrt(chi)
    0 = R_psi4_B_psi2 - gamma0 nu^(3/2) R_psi1_A_psi3 R_psi3_B_psi2/chi
    0 = R_psi0_W1T_psi1 z - sqrt(chi) R_psi0_W1T_psi1 R_psi5_W0T_psi0/nu^(3/2) - R_psi0_W1T_psi1 R_psi1_W1_psi0 - 1
    0 = R_psi1_W1_psi0 - gamma0 sqrt(nu) R_psi1_W1_psi0 R_psi3_AT_psi1 - R_psi0_W1T_psi1 R_psi1_W1_psi0 - 1
    0 = R_psi3_AT_psi1 - R_psi2_BT_psi4 R_psi4_AT_psi1/sqrt(chi)
    0 = R_psi4_AT_psi1 - gamma0 - gamma0 nu^(3/2) R_psi1_A_psi3 R_psi3_AT_psi1/chi
    0 = R_psi1_A_psi3 - gamma0 sqrt(nu) R_psi1_A_psi3 R_psi3_AT_psi1 - gamma0 - R_psi0_W1T_psi1 R_psi1_A_psi3
    0 = G z - sqrt(chi) G R_psi5_W0T_psi0/nu^(3/2) - G R_psi1_W1_psi0 - 1
    """
    (
        G,
        R_psi0_W0_psi5,
        R_psi0_W1T_psi1,
        R_psi1_A_psi3,
        R_psi1_W1_psi0,
        R_psi2_BT_psi4,
        R_psi2_W0T_psi0,
        R_psi3_AT_psi1,
        R_psi3_B_psi2,
        R_psi4_AT_psi1,
        R_psi4_B_psi2,
        R_psi5_BT_psi4,
        R_psi5_W0T_psi0,
    ) = r
    return (
        -jnp.sqrt(p.chi) * R_psi0_W0_psi5 * R_psi5_W0T_psi0 / jnp.sqrt(p.nu) + R_psi2_W0T_psi0 - 1,
        -jnp.sqrt(p.chi) * R_psi2_W0T_psi0 * R_psi4_B_psi2 + R_psi5_W0T_psi0,
        -jnp.sqrt(p.chi) * R_psi0_W0_psi5 * R_psi5_W0T_psi0 / p.nu ** (3 / 2)
        - R_psi0_W0_psi5 * R_psi1_W1_psi0
        + R_psi0_W0_psi5 * z
        - 1,
        -jnp.sqrt(p.chi) * R_psi0_W0_psi5 * R_psi5_BT_psi4 / jnp.sqrt(p.nu) + R_psi2_BT_psi4,
        -jnp.sqrt(p.chi) * R_psi2_BT_psi4 * R_psi4_B_psi2 + R_psi5_BT_psi4 - 1,
        R_psi3_B_psi2 - 1 - R_psi2_BT_psi4 * R_psi4_B_psi2 / jnp.sqrt(p.chi),
        R_psi4_B_psi2 - p.gamma0 * p.nu ** (3 / 2) * R_psi1_A_psi3 * R_psi3_B_psi2 / p.chi,
        -jnp.sqrt(p.chi) * R_psi0_W1T_psi1 * R_psi5_W0T_psi0 / p.nu ** (3 / 2)
        - R_psi0_W1T_psi1 * R_psi1_W1_psi0
        + R_psi0_W1T_psi1 * z
        - 1,
        -p.gamma0 * jnp.sqrt(p.nu) * R_psi1_W1_psi0 * R_psi3_AT_psi1
        - R_psi0_W1T_psi1 * R_psi1_W1_psi0
        + R_psi1_W1_psi0
        - 1,
        R_psi3_AT_psi1 - R_psi2_BT_psi4 * R_psi4_AT_psi1 / jnp.sqrt(p.chi),
        -p.gamma0 + R_psi4_AT_psi1 - p.gamma0 * p.nu ** (3 / 2) * R_psi1_A_psi3 * R_psi3_AT_psi1 / p.chi,
        -p.gamma0 * jnp.sqrt(p.nu) * R_psi1_A_psi3 * R_psi3_AT_psi1
        - p.gamma0
        - R_psi0_W1T_psi1 * R_psi1_A_psi3
        + R_psi1_A_psi3,
        -jnp.sqrt(p.chi) * G * R_psi5_W0T_psi0 / p.nu ** (3 / 2) - G * R_psi1_W1_psi0 + G * z - 1,
    )


def curve(p):
    """Table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the resolvent."""
    return (
        (p.chi, 0, 0, 0),
        (0, -p.chi, 0, 0),
        (
            0,
            -p.chi * p.gamma0**2 * p.nu
            + p.chi * p.gamma0**2
            + p.chi
            + p.gamma0**2 * p.nu**2
            - p.gamma0**2 * p.nu,
            0,
            0,
        ),
        (0, 0, p.chi * p.gamma0**2 * p.nu - 2 * p.gamma0**2 * p.nu**2 + p.gamma0**2 * p.nu, 0),
        (
            0,
            0,
            -p.chi * p.gamma0**2 * p.nu + 2 * p.gamma0**2 * p.nu**2 - p.gamma0**2 * p.nu,
            p.gamma0**2 * p.nu**2,
        ),
        (0, 0, 0, -2 * p.gamma0**2 * p.nu**2),
        (0, 0, 0, p.gamma0**2 * p.nu**2),
    )


def edge_polynomials(p):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""
    return (
        (1, 0),
        (
            -27 * p.chi**5 * p.gamma0**6 * p.nu**4
            + 54 * p.chi**4 * p.gamma0**6 * p.nu**4
            - 27 * p.chi**3 * p.gamma0**6 * p.nu**4,
            4 * p.chi**7 * p.gamma0**8 * p.nu**3
            - 12 * p.chi**6 * p.gamma0**8 * p.nu**4
            - 14 * p.chi**6 * p.gamma0**8 * p.nu**3
            - 144 * p.chi**6 * p.gamma0**6 * p.nu**3
            + 66 * p.chi**5 * p.gamma0**8 * p.nu**5
            + 180 * p.chi**5 * p.gamma0**8 * p.nu**4
            + 10 * p.chi**5 * p.gamma0**8 * p.nu**3
            + 360 * p.chi**5 * p.gamma0**6 * p.nu**4
            + 144 * p.chi**5 * p.gamma0**6 * p.nu**3
            + 54 * p.chi**5 * p.gamma0**4 * p.nu**3
            - 4 * p.chi**4 * p.gamma0**8 * p.nu**6
            - 66 * p.chi**4 * p.gamma0**8 * p.nu**5
            - 336 * p.chi**4 * p.gamma0**8 * p.nu**4
            + 10 * p.chi**4 * p.gamma0**8 * p.nu**3
            - 720 * p.chi**4 * p.gamma0**6 * p.nu**4
            + 144 * p.chi**4 * p.gamma0**6 * p.nu**3
            + 54 * p.chi**4 * p.gamma0**4 * p.nu**3
            + 8 * p.chi**3 * p.gamma0**8 * p.nu**6
            - 66 * p.chi**3 * p.gamma0**8 * p.nu**5
            + 180 * p.chi**3 * p.gamma0**8 * p.nu**4
            - 14 * p.chi**3 * p.gamma0**8 * p.nu**3
            + 360 * p.chi**3 * p.gamma0**6 * p.nu**4
            - 144 * p.chi**3 * p.gamma0**6 * p.nu**3
            - 4 * p.chi**2 * p.gamma0**8 * p.nu**6
            + 66 * p.chi**2 * p.gamma0**8 * p.nu**5
            - 12 * p.chi**2 * p.gamma0**8 * p.nu**4
            + 4 * p.chi**2 * p.gamma0**8 * p.nu**3,
            16 * p.chi**8 * p.gamma0**8 * p.nu**2
            - 8 * p.chi**7 * p.gamma0**10 * p.nu**4
            - 20 * p.chi**7 * p.gamma0**10 * p.nu**3
            + p.chi**7 * p.gamma0**10 * p.nu**2
            - 96 * p.chi**7 * p.gamma0**8 * p.nu**3
            - 36 * p.chi**7 * p.gamma0**8 * p.nu**2
            - 136 * p.chi**7 * p.gamma0**6 * p.nu**2
            + 24 * p.chi**6 * p.gamma0**10 * p.nu**5
            + 74 * p.chi**6 * p.gamma0**10 * p.nu**4
            + 68 * p.chi**6 * p.gamma0**10 * p.nu**3
            - 4 * p.chi**6 * p.gamma0**10 * p.nu**2
            + 480 * p.chi**6 * p.gamma0**8 * p.nu**4
            + 1012 * p.chi**6 * p.gamma0**8 * p.nu**3
            - 40 * p.chi**6 * p.gamma0**8 * p.nu**2
            + 1432 * p.chi**6 * p.gamma0**6 * p.nu**3
            - 494 * p.chi**6 * p.gamma0**6 * p.nu**2
            + 544 * p.chi**6 * p.gamma0**4 * p.nu**2
            - 51 * p.chi**5 * p.gamma0**10 * p.nu**6
            - 24 * p.chi**5 * p.gamma0**10 * p.nu**5
            - 288 * p.chi**5 * p.gamma0**10 * p.nu**4
            - 48 * p.chi**5 * p.gamma0**10 * p.nu**3
            + 6 * p.chi**5 * p.gamma0**10 * p.nu**2
            - 772 * p.chi**5 * p.gamma0**8 * p.nu**5
            - 1832 * p.chi**5 * p.gamma0**8 * p.nu**4
            - 916 * p.chi**5 * p.gamma0**8 * p.nu**3
            + 120 * p.chi**5 * p.gamma0**8 * p.nu**2
            - 1898 * p.chi**5 * p.gamma0**6 * p.nu**4
            - 1696 * p.chi**5 * p.gamma0**6 * p.nu**3
            + 1276 * p.chi**5 * p.gamma0**6 * p.nu**2
            - 612 * p.chi**5 * p.gamma0**4 * p.nu**3
            - 152 * p.chi**5 * p.gamma0**4 * p.nu**2
            - 27 * p.chi**5 * p.gamma0**2 * p.nu**2
            + 8 * p.chi**4 * p.gamma0**10 * p.nu**7
            + 140 * p.chi**4 * p.gamma0**10 * p.nu**6
            + 444 * p.chi**4 * p.gamma0**10 * p.nu**4
            - 48 * p.chi**4 * p.gamma0**10 * p.nu**3
            - 4 * p.chi**4 * p.gamma0**10 * p.nu**2
            + 48 * p.chi**4 * p.gamma0**8 * p.nu**6
            + 772 * p.chi**4 * p.gamma0**8 * p.nu**5
            + 2704 * p.chi**4 * p.gamma0**8 * p.nu**4
            - 916 * p.chi**4 * p.gamma0**8 * p.nu**3
            - 40 * p.chi**4 * p.gamma0**8 * p.nu**2
            + 8 * p.chi**4 * p.gamma0**6 * p.nu**5
            + 3268 * p.chi**4 * p.gamma0**6 * p.nu**4
            - 1696 * p.chi**4 * p.gamma0**6 * p.nu**3
            - 494 * p.chi**4 * p.gamma0**6 * p.nu**2
            - 612 * p.chi**4 * p.gamma0**4 * p.nu**3
            + 544 * p.chi**4 * p.gamma0**4 * p.nu**2
            - 8 * p.chi**3 * p.gamma0**10 * p.nu**7
            - 178 * p.chi**3 * p.gamma0**10 * p.nu**6
            - 288 * p.chi**3 * p.gamma0**10 * p.nu**4
            + 68 * p.chi**3 * p.gamma0**10 * p.nu**3
            + p.chi**3 * p.gamma0**10 * p.nu**2
            - 96 * p.chi**3 * p.gamma0**8 * p.nu**6
            + 772 * p.chi**3 * p.gamma0**8 * p.nu**5
            - 1832 * p.chi**3 * p.gamma0**8 * p.nu**4
            + 1012 * p.chi**3 * p.gamma0**8 * p.nu**3
            - 36 * p.chi**3 * p.gamma0**8 * p.nu**2
            + 8 * p.chi**3 * p.gamma0**6 * p.nu**5
            - 1898 * p.chi**3 * p.gamma0**6 * p.nu**4
            + 1432 * p.chi**3 * p.gamma0**6 * p.nu**3
            - 136 * p.chi**3 * p.gamma0**6 * p.nu**2
            - 8 * p.chi**2 * p.gamma0**10 * p.nu**7
            + 140 * p.chi**2 * p.gamma0**10 * p.nu**6
            - 24 * p.chi**2 * p.gamma0**10 * p.nu**5
            + 74 * p.chi**2 * p.gamma0**10 * p.nu**4
            - 20 * p.chi**2 * p.gamma0**10 * p.nu**3
            + 48 * p.chi**2 * p.gamma0**8 * p.nu**6
            - 772 * p.chi**2 * p.gamma0**8 * p.nu**5
            + 480 * p.chi**2 * p.gamma0**8 * p.nu**4
            - 96 * p.chi**2 * p.gamma0**8 * p.nu**3
            + 16 * p.chi**2 * p.gamma0**8 * p.nu**2
            + 8 * p.chi * p.gamma0**10 * p.nu**7
            - 51 * p.chi * p.gamma0**10 * p.nu**6
            + 24 * p.chi * p.gamma0**10 * p.nu**5
            - 8 * p.chi * p.gamma0**10 * p.nu**4,
            -32 * p.chi**8 * p.gamma0**10 * p.nu**3
            - 80 * p.chi**8 * p.gamma0**10 * p.nu**2
            + 4 * p.chi**8 * p.gamma0**10 * p.nu
            - 128 * p.chi**8 * p.gamma0**8 * p.nu**2
            + 80 * p.chi**8 * p.gamma0**8 * p.nu
            - 32 * p.chi**8 * p.gamma0**6 * p.nu
            + 4 * p.chi**7 * p.gamma0**12 * p.nu**5
            - 12 * p.chi**7 * p.gamma0**12 * p.nu**4
            + 12 * p.chi**7 * p.gamma0**12 * p.nu**3
            - 4 * p.chi**7 * p.gamma0**12 * p.nu**2
            + 176 * p.chi**7 * p.gamma0**10 * p.nu**4
            + 428 * p.chi**7 * p.gamma0**10 * p.nu**3
            + 164 * p.chi**7 * p.gamma0**10 * p.nu**2
            - 12 * p.chi**7 * p.gamma0**10 * p.nu
            + 856 * p.chi**7 * p.gamma0**8 * p.nu**3
            + 732 * p.chi**7 * p.gamma0**8 * p.nu**2
            - 304 * p.chi**7 * p.gamma0**8 * p.nu
            + 1200 * p.chi**7 * p.gamma0**6 * p.nu**2
            - 572 * p.chi**7 * p.gamma0**6 * p.nu
            + 260 * p.chi**7 * p.gamma0**4 * p.nu
            - 12 * p.chi**6 * p.gamma0**12 * p.nu**6
            + 20 * p.chi**6 * p.gamma0**12 * p.nu**5
            + 12 * p.chi**6 * p.gamma0**12 * p.nu**4
            - 36 * p.chi**6 * p.gamma0**12 * p.nu**3
            + 16 * p.chi**6 * p.gamma0**12 * p.nu**2
            - 480 * p.chi**6 * p.gamma0**10 * p.nu**5
            - 528 * p.chi**6 * p.gamma0**10 * p.nu**4
            - 1492 * p.chi**6 * p.gamma0**10 * p.nu**3
            + 224 * p.chi**6 * p.gamma0**10 * p.nu**2
            + 8 * p.chi**6 * p.gamma0**10 * p.nu
            - 3272 * p.chi**6 * p.gamma0**8 * p.nu**4
            - 4736 * p.chi**6 * p.gamma0**8 * p.nu**3
            + 3560 * p.chi**6 * p.gamma0**8 * p.nu**2
            + 224 * p.chi**6 * p.gamma0**8 * p.nu
            - 6064 * p.chi**6 * p.gamma0**6 * p.nu**3
            - 336 * p.chi**6 * p.gamma0**6 * p.nu**2
            + 668 * p.chi**6 * p.gamma0**6 * p.nu
            - 4300 * p.chi**6 * p.gamma0**4 * p.nu**2
            + 876 * p.chi**6 * p.gamma0**4 * p.nu
            - 656 * p.chi**6 * p.gamma0**2 * p.nu
            + 12 * p.chi**5 * p.gamma0**12 * p.nu**7
            + 12 * p.chi**5 * p.gamma0**12 * p.nu**6
            - 84 * p.chi**5 * p.gamma0**12 * p.nu**5
            + 60 * p.chi**5 * p.gamma0**12 * p.nu**4
            + 24 * p.chi**5 * p.gamma0**12 * p.nu**3
            - 24 * p.chi**5 * p.gamma0**12 * p.nu**2
            + 524 * p.chi**5 * p.gamma0**10 * p.nu**6
            + 640 * p.chi**5 * p.gamma0**10 * p.nu**5
            + 2128 * p.chi**5 * p.gamma0**10 * p.nu**4
            + 1096 * p.chi**5 * p.gamma0**10 * p.nu**3
            - 616 * p.chi**5 * p.gamma0**10 * p.nu**2
            + 8 * p.chi**5 * p.gamma0**10 * p.nu
            + 3192 * p.chi**5 * p.gamma0**8 * p.nu**5
            + 5984 * p.chi**5 * p.gamma0**8 * p.nu**4
            + 4008 * p.chi**5 * p.gamma0**8 * p.nu**3
            - 8392 * p.chi**5 * p.gamma0**8 * p.nu**2
            + 224 * p.chi**5 * p.gamma0**8 * p.nu
            + 5112 * p.chi**5 * p.gamma0**6 * p.nu**4
            + 5888 * p.chi**5 * p.gamma0**6 * p.nu**3
            - 6432 * p.chi**5 * p.gamma0**6 * p.nu**2
            + 668 * p.chi**5 * p.gamma0**6 * p.nu
            + 2428 * p.chi**5 * p.gamma0**4 * p.nu**3
            + 1572 * p.chi**5 * p.gamma0**4 * p.nu**2
            + 876 * p.chi**5 * p.gamma0**4 * p.nu
            + 252 * p.chi**5 * p.gamma0**2 * p.nu**2
            - 656 * p.chi**5 * p.gamma0**2 * p.nu
            - 4 * p.chi**4 * p.gamma0**12 * p.nu**8
            - 36 * p.chi**4 * p.gamma0**12 * p.nu**7
            + 60 * p.chi**4 * p.gamma0**12 * p.nu**6
            + 60 * p.chi**4 * p.gamma0**12 * p.nu**5
            - 120 * p.chi**4 * p.gamma0**12 * p.nu**4
            + 24 * p.chi**4 * p.gamma0**12 * p.nu**3
            + 16 * p.chi**4 * p.gamma0**12 * p.nu**2
            - 80 * p.chi**4 * p.gamma0**10 * p.nu**7
            - 1296 * p.chi**4 * p.gamma0**10 * p.nu**6
            - 160 * p.chi**4 * p.gamma0**10 * p.nu**5
            - 3552 * p.chi**4 * p.gamma0**10 * p.nu**4
            + 1096 * p.chi**4 * p.gamma0**10 * p.nu**3
            + 224 * p.chi**4 * p.gamma0**10 * p.nu**2
            - 12 * p.chi**4 * p.gamma0**10 * p.nu
            - 216 * p.chi**4 * p.gamma0**8 * p.nu**6
            - 3064 * p.chi**4 * p.gamma0**8 * p.nu**5
            - 5808 * p.chi**4 * p.gamma0**8 * p.nu**4
            + 4008 * p.chi**4 * p.gamma0**8 * p.nu**3
            + 3560 * p.chi**4 * p.gamma0**8 * p.nu**2
            - 304 * p.chi**4 * p.gamma0**8 * p.nu
            - 80 * p.chi**4 * p.gamma0**6 * p.nu**5
            - 5136 * p.chi**4 * p.gamma0**6 * p.nu**4
            + 5888 * p.chi**4 * p.gamma0**6 * p.nu**3
            - 336 * p.chi**4 * p.gamma0**6 * p.nu**2
            - 572 * p.chi**4 * p.gamma0**6 * p.nu
            - 4 * p.chi**4 * p.gamma0**4 * p.nu**4
            + 2428 * p.chi**4 * p.gamma0**4 * p.nu**3
            - 4300 * p.chi**4 * p.gamma0**4 * p.nu**2
            + 260 * p.chi**4 * p.gamma0**4 * p.nu
            + 16 * p.chi**3 * p.gamma0**12 * p.nu**8
            + 24 * p.chi**3 * p.gamma0**12 * p.nu**7
            - 120 * p.chi**3 * p.gamma0**12 * p.nu**6
            + 60 * p.chi**3 * p.gamma0**12 * p.nu**5
            + 60 * p.chi**3 * p.gamma0**12 * p.nu**4
            - 36 * p.chi**3 * p.gamma0**12 * p.nu**3
            - 4 * p.chi**3 * p.gamma0**12 * p.nu**2
            + 80 * p.chi**3 * p.gamma0**10 * p.nu**7
            + 1544 * p.chi**3 * p.gamma0**10 * p.nu**6
            - 160 * p.chi**3 * p.gamma0**10 * p.nu**5
            + 2128 * p.chi**3 * p.gamma0**10 * p.nu**4
            - 1492 * p.chi**3 * p.gamma0**10 * p.nu**3
            + 164 * p.chi**3 * p.gamma0**10 * p.nu**2
            + 4 * p.chi**3 * p.gamma0**10 * p.nu
            + 368 * p.chi**3 * p.gamma0**8 * p.nu**6
            - 3064 * p.chi**3 * p.gamma0**8 * p.nu**5
            + 5984 * p.chi**3 * p.gamma0**8 * p.nu**4
            - 4736 * p.chi**3 * p.gamma0**8 * p.nu**3
            + 732 * p.chi**3 * p.gamma0**8 * p.nu**2
            + 80 * p.chi**3 * p.gamma0**8 * p.nu
            - 80 * p.chi**3 * p.gamma0**6 * p.nu**5
            + 5112 * p.chi**3 * p.gamma0**6 * p.nu**4
            - 6064 * p.chi**3 * p.gamma0**6 * p.nu**3
            + 1200 * p.chi**3 * p.gamma0**6 * p.nu**2
            - 32 * p.chi**3 * p.gamma0**6 * p.nu
            - 24 * p.chi**2 * p.gamma0**12 * p.nu**8
            + 24 * p.chi**2 * p.gamma0**12 * p.nu**7
            + 60 * p.chi**2 * p.gamma0**12 * p.nu**6
            - 84 * p.chi**2 * p.gamma0**12 * p.nu**5
            + 12 * p.chi**2 * p.gamma0**12 * p.nu**4
            + 12 * p.chi**2 * p.gamma0**12 * p.nu**3
            + 80 * p.chi**2 * p.gamma0**10 * p.nu**7
            - 1296 * p.chi**2 * p.gamma0**10 * p.nu**6
            + 640 * p.chi**2 * p.gamma0**10 * p.nu**5
            - 528 * p.chi**2 * p.gamma0**10 * p.nu**4
            + 428 * p.chi**2 * p.gamma0**10 * p.nu**3
            - 80 * p.chi**2 * p.gamma0**10 * p.nu**2
            - 216 * p.chi**2 * p.gamma0**8 * p.nu**6
            + 3192 * p.chi**2 * p.gamma0**8 * p.nu**5
            - 3272 * p.chi**2 * p.gamma0**8 * p.nu**4
            + 856 * p.chi**2 * p.gamma0**8 * p.nu**3
            - 128 * p.chi**2 * p.gamma0**8 * p.nu**2
            + 16 * p.chi * p.gamma0**12 * p.nu**8
            - 36 * p.chi * p.gamma0**12 * p.nu**7
            + 12 * p.chi * p.gamma0**12 * p.nu**6
            + 20 * p.chi * p.gamma0**12 * p.nu**5
            - 12 * p.chi * p.gamma0**12 * p.nu**4
            - 80 * p.chi * p.gamma0**10 * p.nu**7
            + 524 * p.chi * p.gamma0**10 * p.nu**6
            - 480 * p.chi * p.gamma0**10 * p.nu**5
            + 176 * p.chi * p.gamma0**10 * p.nu**4
            - 32 * p.chi * p.gamma0**10 * p.nu**3
            - 4 * p.gamma0**12 * p.nu**8
            + 12 * p.gamma0**12 * p.nu**7
            - 12 * p.gamma0**12 * p.nu**6
            + 4 * p.gamma0**12 * p.nu**5,
            16 * p.chi**8 * p.gamma0**12 * p.nu**4
            - 48 * p.chi**8 * p.gamma0**12 * p.nu**3
            + 48 * p.chi**8 * p.gamma0**12 * p.nu**2
            - 16 * p.chi**8 * p.gamma0**12 * p.nu
            + 192 * p.chi**8 * p.gamma0**10 * p.nu**3
            + 208 * p.chi**8 * p.gamma0**10 * p.nu**2
            - 416 * p.chi**8 * p.gamma0**10 * p.nu
            + 16 * p.chi**8 * p.gamma0**10
            + 352 * p.chi**8 * p.gamma0**8 * p.nu**2
            - 208 * p.chi**8 * p.gamma0**8 * p.nu
            + 48 * p.chi**8 * p.gamma0**8
            + 192 * p.chi**8 * p.gamma0**6 * p.nu
            + 48 * p.chi**8 * p.gamma0**6
            + 16 * p.chi**8 * p.gamma0**4
            - 80 * p.chi**7 * p.gamma0**12 * p.nu**5
            + 192 * p.chi**7 * p.gamma0**12 * p.nu**4
            - 96 * p.chi**7 * p.gamma0**12 * p.nu**3
            - 64 * p.chi**7 * p.gamma0**12 * p.nu**2
            + 48 * p.chi**7 * p.gamma0**12 * p.nu
            - 960 * p.chi**7 * p.gamma0**10 * p.nu**4
            - 736 * p.chi**7 * p.gamma0**10 * p.nu**3
            + 256 * p.chi**7 * p.gamma0**10 * p.nu**2
            + 1504 * p.chi**7 * p.gamma0**10 * p.nu
            - 64 * p.chi**7 * p.gamma0**10
            - 3040 * p.chi**7 * p.gamma0**8 * p.nu**3
            - 1984 * p.chi**7 * p.gamma0**8 * p.nu**2
            + 4128 * p.chi**7 * p.gamma0**8 * p.nu
            - 320 * p.chi**7 * p.gamma0**8
            - 3648 * p.chi**7 * p.gamma0**6 * p.nu**2
            + 1056 * p.chi**7 * p.gamma0**6 * p.nu
            - 576 * p.chi**7 * p.gamma0**6
            - 1616 * p.chi**7 * p.gamma0**4 * p.nu
            - 448 * p.chi**7 * p.gamma0**4
            - 128 * p.chi**7 * p.gamma0**2
            + 144 * p.chi**6 * p.gamma0**12 * p.nu**6
            - 160 * p.chi**6 * p.gamma0**12 * p.nu**5
            - 352 * p.chi**6 * p.gamma0**12 * p.nu**4
            + 576 * p.chi**6 * p.gamma0**12 * p.nu**3
            - 176 * p.chi**6 * p.gamma0**12 * p.nu**2
            - 32 * p.chi**6 * p.gamma0**12 * p.nu
            + 2176 * p.chi**6 * p.gamma0**10 * p.nu**5
            - 112 * p.chi**6 * p.gamma0**10 * p.nu**4
            + 4896 * p.chi**6 * p.gamma0**10 * p.nu**3
            - 5968 * p.chi**6 * p.gamma0**10 * p.nu**2
            - 1088 * p.chi**6 * p.gamma0**10 * p.nu
            + 96 * p.chi**6 * p.gamma0**10
            + 8032 * p.chi**6 * p.gamma0**8 * p.nu**4
            + 4048 * p.chi**6 * p.gamma0**8 * p.nu**3
            - 5248 * p.chi**6 * p.gamma0**8 * p.nu**2
            - 4176 * p.chi**6 * p.gamma0**8 * p.nu
            + 544 * p.chi**6 * p.gamma0**8
            + 13504 * p.chi**6 * p.gamma0**6 * p.nu**3
            + 8048 * p.chi**6 * p.gamma0**6 * p.nu**2
            - 7072 * p.chi**6 * p.gamma0**6 * p.nu
            + 1312 * p.chi**6 * p.gamma0**6
            + 11152 * p.chi**6 * p.gamma0**4 * p.nu**2
            - 48 * p.chi**6 * p.gamma0**4 * p.nu
            + 1632 * p.chi**6 * p.gamma0**4
            + 3904 * p.chi**6 * p.gamma0**2 * p.nu
            + 1024 * p.chi**6 * p.gamma0**2
            + 256 * p.chi**6
            - 112 * p.chi**5 * p.gamma0**12 * p.nu**7
            - 192 * p.chi**5 * p.gamma0**12 * p.nu**6
            + 960 * p.chi**5 * p.gamma0**12 * p.nu**5
            - 576 * p.chi**5 * p.gamma0**12 * p.nu**4
            - 432 * p.chi**5 * p.gamma0**12 * p.nu**3
            + 384 * p.chi**5 * p.gamma0**12 * p.nu**2
            - 32 * p.chi**5 * p.gamma0**12 * p.nu
            - 1664 * p.chi**5 * p.gamma0**10 * p.nu**6
            - 2688 * p.chi**5 * p.gamma0**10 * p.nu**5
            - 1152 * p.chi**5 * p.gamma0**10 * p.nu**4
            - 4352 * p.chi**5 * p.gamma0**10 * p.nu**3
            + 11008 * p.chi**5 * p.gamma0**10 * p.nu**2
            - 1088 * p.chi**5 * p.gamma0**10 * p.nu
            - 64 * p.chi**5 * p.gamma0**10
            - 5536 * p.chi**5 * p.gamma0**8 * p.nu**5
            - 7200 * p.chi**5 * p.gamma0**8 * p.nu**4
            - 3568 * p.chi**5 * p.gamma0**8 * p.nu**3
            + 16320 * p.chi**5 * p.gamma0**8 * p.nu**2
            - 4176 * p.chi**5 * p.gamma0**8 * p.nu
            - 320 * p.chi**5 * p.gamma0**8
            - 7232 * p.chi**5 * p.gamma0**6 * p.nu**4
            - 4992 * p.chi**5 * p.gamma0**6 * p.nu**3
            - 96 * p.chi**5 * p.gamma0**6 * p.nu**2
            - 7072 * p.chi**5 * p.gamma0**6 * p.nu
            - 576 * p.chi**5 * p.gamma0**6
            - 3952 * p.chi**5 * p.gamma0**4 * p.nu**3
            - 1504 * p.chi**5 * p.gamma0**4 * p.nu**2
            - 48 * p.chi**5 * p.gamma0**4 * p.nu
            - 448 * p.chi**5 * p.gamma0**4
            - 704 * p.chi**5 * p.gamma0**2 * p.nu**2
            + 3904 * p.chi**5 * p.gamma0**2 * p.nu
            - 128 * p.chi**5 * p.gamma0**2
            + 32 * p.chi**4 * p.gamma0**12 * p.nu**8
            + 336 * p.chi**4 * p.gamma0**12 * p.nu**7
            - 528 * p.chi**4 * p.gamma0**12 * p.nu**6
            - 720 * p.chi**4 * p.gamma0**12 * p.nu**5
            + 1440 * p.chi**4 * p.gamma0**12 * p.nu**4
            - 432 * p.chi**4 * p.gamma0**12 * p.nu**3
            - 176 * p.chi**4 * p.gamma0**12 * p.nu**2
            + 48 * p.chi**4 * p.gamma0**12 * p.nu
            + 256 * p.chi**4 * p.gamma0**10 * p.nu**7
            + 3584 * p.chi**4 * p.gamma0**10 * p.nu**6
            + 512 * p.chi**4 * p.gamma0**10 * p.nu**5
            + 4448 * p.chi**4 * p.gamma0**10 * p.nu**4
            - 4352 * p.chi**4 * p.gamma0**10 * p.nu**3
            - 5968 * p.chi**4 * p.gamma0**10 * p.nu**2
            + 1504 * p.chi**4 * p.gamma0**10 * p.nu
            + 16 * p.chi**4 * p.gamma0**10
            + 448 * p.chi**4 * p.gamma0**8 * p.nu**6
            + 4256 * p.chi**4 * p.gamma0**8 * p.nu**5
            + 3456 * p.chi**4 * p.gamma0**8 * p.nu**4
            - 3568 * p.chi**4 * p.gamma0**8 * p.nu**3
            - 5248 * p.chi**4 * p.gamma0**8 * p.nu**2
            + 4128 * p.chi**4 * p.gamma0**8 * p.nu
            + 48 * p.chi**4 * p.gamma0**8
            + 256 * p.chi**4 * p.gamma0**6 * p.nu**5
            - 384 * p.chi**4 * p.gamma0**6 * p.nu**4
            - 4992 * p.chi**4 * p.gamma0**6 * p.nu**3
            + 8048 * p.chi**4 * p.gamma0**6 * p.nu**2
            + 1056 * p.chi**4 * p.gamma0**6 * p.nu
            + 48 * p.chi**4 * p.gamma0**6
            + 32 * p.chi**4 * p.gamma0**4 * p.nu**4
            - 3952 * p.chi**4 * p.gamma0**4 * p.nu**3
            + 11152 * p.chi**4 * p.gamma0**4 * p.nu**2
            - 1616 * p.chi**4 * p.gamma0**4 * p.nu
            + 16 * p.chi**4 * p.gamma0**4
            - 128 * p.chi**3 * p.gamma0**12 * p.nu**8
            - 224 * p.chi**3 * p.gamma0**12 * p.nu**7
            + 1152 * p.chi**3 * p.gamma0**12 * p.nu**6
            - 720 * p.chi**3 * p.gamma0**12 * p.nu**5
            - 576 * p.chi**3 * p.gamma0**12 * p.nu**4
            + 576 * p.chi**3 * p.gamma0**12 * p.nu**3
            - 64 * p.chi**3 * p.gamma0**12 * p.nu**2
            - 16 * p.chi**3 * p.gamma0**12 * p.nu
            - 256 * p.chi**3 * p.gamma0**10 * p.nu**7
            - 3840 * p.chi**3 * p.gamma0**10 * p.nu**6
            + 512 * p.chi**3 * p.gamma0**10 * p.nu**5
            - 1152 * p.chi**3 * p.gamma0**10 * p.nu**4
            + 4896 * p.chi**3 * p.gamma0**10 * p.nu**3
            + 256 * p.chi**3 * p.gamma0**10 * p.nu**2
            - 416 * p.chi**3 * p.gamma0**10 * p.nu
            - 384 * p.chi**3 * p.gamma0**8 * p.nu**6
            + 4256 * p.chi**3 * p.gamma0**8 * p.nu**5
            - 7200 * p.chi**3 * p.gamma0**8 * p.nu**4
            + 4048 * p.chi**3 * p.gamma0**8 * p.nu**3
            - 1984 * p.chi**3 * p.gamma0**8 * p.nu**2
            - 208 * p.chi**3 * p.gamma0**8 * p.nu
            + 256 * p.chi**3 * p.gamma0**6 * p.nu**5
            - 7232 * p.chi**3 * p.gamma0**6 * p.nu**4
            + 13504 * p.chi**3 * p.gamma0**6 * p.nu**3
            - 3648 * p.chi**3 * p.gamma0**6 * p.nu**2
            + 192 * p.chi**3 * p.gamma0**6 * p.nu
            + 192 * p.chi**2 * p.gamma0**12 * p.nu**8
            - 224 * p.chi**2 * p.gamma0**12 * p.nu**7
            - 528 * p.chi**2 * p.gamma0**12 * p.nu**6
            + 960 * p.chi**2 * p.gamma0**12 * p.nu**5
            - 352 * p.chi**2 * p.gamma0**12 * p.nu**4
            - 96 * p.chi**2 * p.gamma0**12 * p.nu**3
            + 48 * p.chi**2 * p.gamma0**12 * p.nu**2
            - 256 * p.chi**2 * p.gamma0**10 * p.nu**7
            + 3584 * p.chi**2 * p.gamma0**10 * p.nu**6
            - 2688 * p.chi**2 * p.gamma0**10 * p.nu**5
            - 112 * p.chi**2 * p.gamma0**10 * p.nu**4
            - 736 * p.chi**2 * p.gamma0**10 * p.nu**3
            + 208 * p.chi**2 * p.gamma0**10 * p.nu**2
            + 448 * p.chi**2 * p.gamma0**8 * p.nu**6
            - 5536 * p.chi**2 * p.gamma0**8 * p.nu**5
            + 8032 * p.chi**2 * p.gamma0**8 * p.nu**4
            - 3040 * p.chi**2 * p.gamma0**8 * p.nu**3
            + 352 * p.chi**2 * p.gamma0**8 * p.nu**2
            - 128 * p.chi * p.gamma0**12 * p.nu**8
            + 336 * p.chi * p.gamma0**12 * p.nu**7
            - 192 * p.chi * p.gamma0**12 * p.nu**6
            - 160 * p.chi * p.gamma0**12 * p.nu**5
            + 192 * p.chi * p.gamma0**12 * p.nu**4
            - 48 * p.chi * p.gamma0**12 * p.nu**3
            + 256 * p.chi * p.gamma0**10 * p.nu**7
            - 1664 * p.chi * p.gamma0**10 * p.nu**6
            + 2176 * p.chi * p.gamma0**10 * p.nu**5
            - 960 * p.chi * p.gamma0**10 * p.nu**4
            + 192 * p.chi * p.gamma0**10 * p.nu**3
            + 32 * p.gamma0**12 * p.nu**8
            - 112 * p.gamma0**12 * p.nu**7
            + 144 * p.gamma0**12 * p.nu**6
            - 80 * p.gamma0**12 * p.nu**5
            + 16 * p.gamma0**12 * p.nu**4,
            -64 * p.chi**8 * p.gamma0**12 * p.nu**4
            + 256 * p.chi**8 * p.gamma0**12 * p.nu**3
            - 384 * p.chi**8 * p.gamma0**12 * p.nu**2
            + 256 * p.chi**8 * p.gamma0**12 * p.nu
            - 64 * p.chi**8 * p.gamma0**12
            - 256 * p.chi**8 * p.gamma0**10 * p.nu**3
            + 256 * p.chi**8 * p.gamma0**10 * p.nu**2
            + 256 * p.chi**8 * p.gamma0**10 * p.nu
            - 256 * p.chi**8 * p.gamma0**10
            - 384 * p.chi**8 * p.gamma0**8 * p.nu**2
            - 256 * p.chi**8 * p.gamma0**8 * p.nu
            - 384 * p.chi**8 * p.gamma0**8
            - 256 * p.chi**8 * p.gamma0**6 * p.nu
            - 256 * p.chi**8 * p.gamma0**6
            - 64 * p.chi**8 * p.gamma0**4
            + 256 * p.chi**7 * p.gamma0**12 * p.nu**5
            - 768 * p.chi**7 * p.gamma0**12 * p.nu**4
            + 512 * p.chi**7 * p.gamma0**12 * p.nu**3
            + 512 * p.chi**7 * p.gamma0**12 * p.nu**2
            - 768 * p.chi**7 * p.gamma0**12 * p.nu
            + 256 * p.chi**7 * p.gamma0**12
            + 1536 * p.chi**7 * p.gamma0**10 * p.nu**4
            - 2560 * p.chi**7 * p.gamma0**10 * p.nu**3
            + 2048 * p.chi**7 * p.gamma0**10 * p.nu**2
            - 2560 * p.chi**7 * p.gamma0**10 * p.nu
            + 1536 * p.chi**7 * p.gamma0**10
            + 3584 * p.chi**7 * p.gamma0**8 * p.nu**3
            - 512 * p.chi**7 * p.gamma0**8 * p.nu**2
            - 512 * p.chi**7 * p.gamma0**8 * p.nu
            + 3584 * p.chi**7 * p.gamma0**8
            + 4096 * p.chi**7 * p.gamma0**6 * p.nu**2
            + 3584 * p.chi**7 * p.gamma0**6 * p.nu
            + 4096 * p.chi**7 * p.gamma0**6
            + 2304 * p.chi**7 * p.gamma0**4 * p.nu
            + 2304 * p.chi**7 * p.gamma0**4
            + 512 * p.chi**7 * p.gamma0**2
            - 384 * p.chi**6 * p.gamma0**12 * p.nu**6
            + 512 * p.chi**6 * p.gamma0**12 * p.nu**5
            + 1408 * p.chi**6 * p.gamma0**12 * p.nu**4
            - 3072 * p.chi**6 * p.gamma0**12 * p.nu**3
            + 1408 * p.chi**6 * p.gamma0**12 * p.nu**2
            + 512 * p.chi**6 * p.gamma0**12 * p.nu
            - 384 * p.chi**6 * p.gamma0**12
            - 2560 * p.chi**6 * p.gamma0**10 * p.nu**5
            + 2304 * p.chi**6 * p.gamma0**10 * p.nu**4
            + 256 * p.chi**6 * p.gamma0**10 * p.nu**3
            + 256 * p.chi**6 * p.gamma0**10 * p.nu**2
            + 2304 * p.chi**6 * p.gamma0**10 * p.nu
            - 2560 * p.chi**6 * p.gamma0**10
            - 7424 * p.chi**6 * p.gamma0**8 * p.nu**4
            + 3840 * p.chi**6 * p.gamma0**8 * p.nu**3
            - 8192 * p.chi**6 * p.gamma0**8 * p.nu**2
            + 3840 * p.chi**6 * p.gamma0**8 * p.nu
            - 7424 * p.chi**6 * p.gamma0**8
            - 11776 * p.chi**6 * p.gamma0**6 * p.nu**3
            - 2304 * p.chi**6 * p.gamma0**6 * p.nu**2
            - 2304 * p.chi**6 * p.gamma0**6 * p.nu
            - 11776 * p.chi**6 * p.gamma0**6
            - 10624 * p.chi**6 * p.gamma0**4 * p.nu**2
            - 9472 * p.chi**6 * p.gamma0**4 * p.nu
            - 10624 * p.chi**6 * p.gamma0**4
            - 5120 * p.chi**6 * p.gamma0**2 * p.nu
            - 5120 * p.chi**6 * p.gamma0**2
            - 1024 * p.chi**6
            + 256 * p.chi**5 * p.gamma0**12 * p.nu**7
            + 512 * p.chi**5 * p.gamma0**12 * p.nu**6
            - 3072 * p.chi**5 * p.gamma0**12 * p.nu**5
            + 2304 * p.chi**5 * p.gamma0**12 * p.nu**4
            + 2304 * p.chi**5 * p.gamma0**12 * p.nu**3
            - 3072 * p.chi**5 * p.gamma0**12 * p.nu**2
            + 512 * p.chi**5 * p.gamma0**12 * p.nu
            + 256 * p.chi**5 * p.gamma0**12
            + 1536 * p.chi**5 * p.gamma0**10 * p.nu**6
            + 2304 * p.chi**5 * p.gamma0**10 * p.nu**5
            - 5120 * p.chi**5 * p.gamma0**10 * p.nu**4
            + 2560 * p.chi**5 * p.gamma0**10 * p.nu**3
            - 5120 * p.chi**5 * p.gamma0**10 * p.nu**2
            + 2304 * p.chi**5 * p.gamma0**10 * p.nu
            + 1536 * p.chi**5 * p.gamma0**10
            + 3584 * p.chi**5 * p.gamma0**8 * p.nu**5
            + 3840 * p.chi**5 * p.gamma0**8 * p.nu**4
            + 2816 * p.chi**5 * p.gamma0**8 * p.nu**3
            + 2816 * p.chi**5 * p.gamma0**8 * p.nu**2
            + 3840 * p.chi**5 * p.gamma0**8 * p.nu
            + 3584 * p.chi**5 * p.gamma0**8
            + 4096 * p.chi**5 * p.gamma0**6 * p.nu**4
            - 2304 * p.chi**5 * p.gamma0**6 * p.nu**3
            + 15360 * p.chi**5 * p.gamma0**6 * p.nu**2
            - 2304 * p.chi**5 * p.gamma0**6 * p.nu
            + 4096 * p.chi**5 * p.gamma0**6
            + 2304 * p.chi**5 * p.gamma0**4 * p.nu**3
            - 9472 * p.chi**5 * p.gamma0**4 * p.nu**2
            - 9472 * p.chi**5 * p.gamma0**4 * p.nu
            + 2304 * p.chi**5 * p.gamma0**4
            + 512 * p.chi**5 * p.gamma0**2 * p.nu**2
            - 5120 * p.chi**5 * p.gamma0**2 * p.nu
            + 512 * p.chi**5 * p.gamma0**2
            - 64 * p.chi**4 * p.gamma0**12 * p.nu**8
            - 768 * p.chi**4 * p.gamma0**12 * p.nu**7
            + 1408 * p.chi**4 * p.gamma0**12 * p.nu**6
            + 2304 * p.chi**4 * p.gamma0**12 * p.nu**5
            - 5760 * p.chi**4 * p.gamma0**12 * p.nu**4
            + 2304 * p.chi**4 * p.gamma0**12 * p.nu**3
            + 1408 * p.chi**4 * p.gamma0**12 * p.nu**2
            - 768 * p.chi**4 * p.gamma0**12 * p.nu
            - 64 * p.chi**4 * p.gamma0**12
            - 256 * p.chi**4 * p.gamma0**10 * p.nu**7
            - 2560 * p.chi**4 * p.gamma0**10 * p.nu**6
            + 256 * p.chi**4 * p.gamma0**10 * p.nu**5
            + 2560 * p.chi**4 * p.gamma0**10 * p.nu**4
            + 2560 * p.chi**4 * p.gamma0**10 * p.nu**3
            + 256 * p.chi**4 * p.gamma0**10 * p.nu**2
            - 2560 * p.chi**4 * p.gamma0**10 * p.nu
            - 256 * p.chi**4 * p.gamma0**10
            - 384 * p.chi**4 * p.gamma0**8 * p.nu**6
            - 512 * p.chi**4 * p.gamma0**8 * p.nu**5
            - 8192 * p.chi**4 * p.gamma0**8 * p.nu**4
            + 2816 * p.chi**4 * p.gamma0**8 * p.nu**3
            - 8192 * p.chi**4 * p.gamma0**8 * p.nu**2
            - 512 * p.chi**4 * p.gamma0**8 * p.nu
            - 384 * p.chi**4 * p.gamma0**8
            - 256 * p.chi**4 * p.gamma0**6 * p.nu**5
            + 3584 * p.chi**4 * p.gamma0**6 * p.nu**4
            - 2304 * p.chi**4 * p.gamma0**6 * p.nu**3
            - 2304 * p.chi**4 * p.gamma0**6 * p.nu**2
            + 3584 * p.chi**4 * p.gamma0**6 * p.nu
            - 256 * p.chi**4 * p.gamma0**6
            - 64 * p.chi**4 * p.gamma0**4 * p.nu**4
            + 2304 * p.chi**4 * p.gamma0**4 * p.nu**3
            - 10624 * p.chi**4 * p.gamma0**4 * p.nu**2
            + 2304 * p.chi**4 * p.gamma0**4 * p.nu
            - 64 * p.chi**4 * p.gamma0**4
            + 256 * p.chi**3 * p.gamma0**12 * p.nu**8
            + 512 * p.chi**3 * p.gamma0**12 * p.nu**7
            - 3072 * p.chi**3 * p.gamma0**12 * p.nu**6
            + 2304 * p.chi**3 * p.gamma0**12 * p.nu**5
            + 2304 * p.chi**3 * p.gamma0**12 * p.nu**4
            - 3072 * p.chi**3 * p.gamma0**12 * p.nu**3
            + 512 * p.chi**3 * p.gamma0**12 * p.nu**2
            + 256 * p.chi**3 * p.gamma0**12 * p.nu
            + 256 * p.chi**3 * p.gamma0**10 * p.nu**7
            + 2048 * p.chi**3 * p.gamma0**10 * p.nu**6
            + 256 * p.chi**3 * p.gamma0**10 * p.nu**5
            - 5120 * p.chi**3 * p.gamma0**10 * p.nu**4
            + 256 * p.chi**3 * p.gamma0**10 * p.nu**3
            + 2048 * p.chi**3 * p.gamma0**10 * p.nu**2
            + 256 * p.chi**3 * p.gamma0**10 * p.nu
            - 256 * p.chi**3 * p.gamma0**8 * p.nu**6
            - 512 * p.chi**3 * p.gamma0**8 * p.nu**5
            + 3840 * p.chi**3 * p.gamma0**8 * p.nu**4
            + 3840 * p.chi**3 * p.gamma0**8 * p.nu**3
            - 512 * p.chi**3 * p.gamma0**8 * p.nu**2
            - 256 * p.chi**3 * p.gamma0**8 * p.nu
            - 256 * p.chi**3 * p.gamma0**6 * p.nu**5
            + 4096 * p.chi**3 * p.gamma0**6 * p.nu**4
            - 11776 * p.chi**3 * p.gamma0**6 * p.nu**3
            + 4096 * p.chi**3 * p.gamma0**6 * p.nu**2
            - 256 * p.chi**3 * p.gamma0**6 * p.nu
            - 384 * p.chi**2 * p.gamma0**12 * p.nu**8
            + 512 * p.chi**2 * p.gamma0**12 * p.nu**7
            + 1408 * p.chi**2 * p.gamma0**12 * p.nu**6
            - 3072 * p.chi**2 * p.gamma0**12 * p.nu**5
            + 1408 * p.chi**2 * p.gamma0**12 * p.nu**4
            + 512 * p.chi**2 * p.gamma0**12 * p.nu**3
            - 384 * p.chi**2 * p.gamma0**12 * p.nu**2
            + 256 * p.chi**2 * p.gamma0**10 * p.nu**7
            - 2560 * p.chi**2 * p.gamma0**10 * p.nu**6
            + 2304 * p.chi**2 * p.gamma0**10 * p.nu**5
            + 2304 * p.chi**2 * p.gamma0**10 * p.nu**4
            - 2560 * p.chi**2 * p.gamma0**10 * p.nu**3
            + 256 * p.chi**2 * p.gamma0**10 * p.nu**2
            - 384 * p.chi**2 * p.gamma0**8 * p.nu**6
            + 3584 * p.chi**2 * p.gamma0**8 * p.nu**5
            - 7424 * p.chi**2 * p.gamma0**8 * p.nu**4
            + 3584 * p.chi**2 * p.gamma0**8 * p.nu**3
            - 384 * p.chi**2 * p.gamma0**8 * p.nu**2
            + 256 * p.chi * p.gamma0**12 * p.nu**8
            - 768 * p.chi * p.gamma0**12 * p.nu**7
            + 512 * p.chi * p.gamma0**12 * p.nu**6
            + 512 * p.chi * p.gamma0**12 * p.nu**5
            - 768 * p.chi * p.gamma0**12 * p.nu**4
            + 256 * p.chi * p.gamma0**12 * p.nu**3
            - 256 * p.chi * p.gamma0**10 * p.nu**7
            + 1536 * p.chi * p.gamma0**10 * p.nu**6
            - 2560 * p.chi * p.gamma0**10 * p.nu**5
            + 1536 * p.chi * p.gamma0**10 * p.nu**4
            - 256 * p.chi * p.gamma0**10 * p.nu**3
            - 64 * p.gamma0**12 * p.nu**8
            + 256 * p.gamma0**12 * p.nu**7
            - 384 * p.gamma0**12 * p.nu**6
            + 256 * p.gamma0**12 * p.nu**5
            - 64 * p.gamma0**12 * p.nu**4,
        ),
    )


BULK = BulkLaw(
    responses=(
        "G",
        "R_psi0_W0_psi5",
        "R_psi0_W1T_psi1",
        "R_psi1_A_psi3",
        "R_psi1_W1_psi0",
        "R_psi2_BT_psi4",
        "R_psi2_W0T_psi0",
        "R_psi3_AT_psi1",
        "R_psi3_B_psi2",
        "R_psi4_AT_psi1",
        "R_psi4_B_psi2",
        "R_psi5_BT_psi4",
        "R_psi5_W0T_psi0",
    ),
    resolvent=0,
    equations=equations,
    curve_text="-chi*G*{z} + chi + gamma0**2*nu**2*G**6*{z}**3 - 2*gamma0**2*nu**2*G**5*{z}**3 + G**4*(-chi*gamma0**2*nu*{z}**2 + gamma0**2*nu**2*{z}**3 + 2*gamma0**2*nu**2*{z}**2 - gamma0**2*nu*{z}**2) + G**3*(chi*gamma0**2*nu*{z}**2 - 2*gamma0**2*nu**2*{z}**2 + gamma0**2*nu*{z}**2) + G**2*(-chi*gamma0**2*nu*{z} + chi*gamma0**2*{z} + chi*{z} + gamma0**2*nu**2*{z} - gamma0**2*nu*{z})",
    curve=curve,
    edge_polynomials=edge_polynomials,
)
