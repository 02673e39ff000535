# Written by `derive build extensive_multilayer L=2 layer=1` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

import jax
import jax.numpy as jnp


RESPONSES = (
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
)
RESOLVENT = RESPONSES.index("G")
# whether the responses were eliminated: curve and edge_polynomials exist
ELIMINATED = True
# zero on the curve of the resolvent
CURVE = "-chi*G*z + chi + gamma0**2*nu**2*G**6*z**3 - 2*gamma0**2*nu**2*G**5*z**3 + G**4*(-chi*gamma0**2*nu*z**2 + gamma0**2*nu**2*z**3 + 2*gamma0**2*nu**2*z**2 - gamma0**2*nu*z**2) + G**3*(chi*gamma0**2*nu*z**2 - 2*gamma0**2*nu**2*z**2 + gamma0**2*nu*z**2) + G**2*(-chi*gamma0**2*nu*z + chi*gamma0**2*z + chi*z + gamma0**2*nu**2*z - gamma0**2*nu*z)"


def equations(z, r, nu, chi, gamma0):
    """Each is zero at the bulk responses r (in the order of RESPONSES) at z. They vanish as z grows."""
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
        # 0 = R_psi2_W0T_psi0 - sqrt(chi) R_psi0_W0_psi5 R_psi5_W0T_psi0/sqrt(nu) - 1
        -jnp.sqrt(chi) * R_psi0_W0_psi5 * R_psi5_W0T_psi0 / jnp.sqrt(nu) + R_psi2_W0T_psi0 - 1,
        # 0 = R_psi5_W0T_psi0 - sqrt(chi) R_psi2_W0T_psi0 R_psi4_B_psi2
        -jnp.sqrt(chi) * R_psi2_W0T_psi0 * R_psi4_B_psi2 + R_psi5_W0T_psi0,
        # 0 = R_psi0_W0_psi5 z - sqrt(chi) R_psi0_W0_psi5 R_psi5_W0T_psi0/nu^(3/2) - R_psi0_W0_psi5 R_psi1_W1_psi0 - 1
        -jnp.sqrt(chi) * R_psi0_W0_psi5 * R_psi5_W0T_psi0 / nu ** (3 / 2)
        - R_psi0_W0_psi5 * R_psi1_W1_psi0
        + R_psi0_W0_psi5 * z
        - 1,
        # 0 = R_psi2_BT_psi4 - sqrt(chi) R_psi0_W0_psi5 R_psi5_BT_psi4/sqrt(nu)
        -jnp.sqrt(chi) * R_psi0_W0_psi5 * R_psi5_BT_psi4 / jnp.sqrt(nu) + R_psi2_BT_psi4,
        # 0 = R_psi5_BT_psi4 - sqrt(chi) R_psi2_BT_psi4 R_psi4_B_psi2 - 1
        -jnp.sqrt(chi) * R_psi2_BT_psi4 * R_psi4_B_psi2 + R_psi5_BT_psi4 - 1,
        # 0 = R_psi3_B_psi2 - 1 - R_psi2_BT_psi4 R_psi4_B_psi2/sqrt(chi)
        R_psi3_B_psi2 - 1 - R_psi2_BT_psi4 * R_psi4_B_psi2 / jnp.sqrt(chi),
        # 0 = R_psi4_B_psi2 - gamma0 nu^(3/2) R_psi1_A_psi3 R_psi3_B_psi2/chi
        R_psi4_B_psi2 - gamma0 * nu ** (3 / 2) * R_psi1_A_psi3 * R_psi3_B_psi2 / chi,
        # 0 = R_psi0_W1T_psi1 z - sqrt(chi) R_psi0_W1T_psi1 R_psi5_W0T_psi0/nu^(3/2) - R_psi0_W1T_psi1 R_psi1_W1_psi0 - 1
        -jnp.sqrt(chi) * R_psi0_W1T_psi1 * R_psi5_W0T_psi0 / nu ** (3 / 2)
        - R_psi0_W1T_psi1 * R_psi1_W1_psi0
        + R_psi0_W1T_psi1 * z
        - 1,
        # 0 = R_psi1_W1_psi0 - gamma0 sqrt(nu) R_psi1_W1_psi0 R_psi3_AT_psi1 - R_psi0_W1T_psi1 R_psi1_W1_psi0 - 1
        -gamma0 * jnp.sqrt(nu) * R_psi1_W1_psi0 * R_psi3_AT_psi1
        - R_psi0_W1T_psi1 * R_psi1_W1_psi0
        + R_psi1_W1_psi0
        - 1,
        # 0 = R_psi3_AT_psi1 - R_psi2_BT_psi4 R_psi4_AT_psi1/sqrt(chi)
        R_psi3_AT_psi1 - R_psi2_BT_psi4 * R_psi4_AT_psi1 / jnp.sqrt(chi),
        # 0 = R_psi4_AT_psi1 - gamma0 - gamma0 nu^(3/2) R_psi1_A_psi3 R_psi3_AT_psi1/chi
        -gamma0 + R_psi4_AT_psi1 - gamma0 * nu ** (3 / 2) * R_psi1_A_psi3 * R_psi3_AT_psi1 / chi,
        # 0 = R_psi1_A_psi3 - gamma0 sqrt(nu) R_psi1_A_psi3 R_psi3_AT_psi1 - gamma0 - R_psi0_W1T_psi1 R_psi1_A_psi3
        -gamma0 * jnp.sqrt(nu) * R_psi1_A_psi3 * R_psi3_AT_psi1
        - gamma0
        - R_psi0_W1T_psi1 * R_psi1_A_psi3
        + R_psi1_A_psi3,
        # 0 = G z - sqrt(chi) G R_psi5_W0T_psi0/nu^(3/2) - G R_psi1_W1_psi0 - 1
        -jnp.sqrt(chi) * G * R_psi5_W0T_psi0 / nu ** (3 / 2) - G * R_psi1_W1_psi0 + G * z - 1,
    )


def residual(z, r, nu, chi, gamma0):
    """The equations as one array."""
    return jnp.stack(equations(z, r, nu, chi, gamma0))


def curve(nu, chi, gamma0):
    """Table c with sum_ij c[i][j] G^i z^j = 0 on the curve; exact if the arguments are fractions."""
    return (
        (chi, 0, 0, 0),
        (0, -chi, 0, 0),
        (0, -chi * gamma0**2 * nu + chi * gamma0**2 + chi + gamma0**2 * nu**2 - gamma0**2 * nu, 0, 0),
        (0, 0, chi * gamma0**2 * nu - 2 * gamma0**2 * nu**2 + gamma0**2 * nu, 0),
        (0, 0, -chi * gamma0**2 * nu + 2 * gamma0**2 * nu**2 - gamma0**2 * nu, gamma0**2 * nu**2),
        (0, 0, 0, -2 * gamma0**2 * nu**2),
        (0, 0, 0, gamma0**2 * nu**2),
    )


def edge_polynomials(nu, chi, gamma0):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""
    return (
        (1, 0),
        (
            -27 * chi**5 * gamma0**6 * nu**4
            + 54 * chi**4 * gamma0**6 * nu**4
            - 27 * chi**3 * gamma0**6 * nu**4,
            4 * chi**7 * gamma0**8 * nu**3
            - 12 * chi**6 * gamma0**8 * nu**4
            - 14 * chi**6 * gamma0**8 * nu**3
            - 144 * chi**6 * gamma0**6 * nu**3
            + 66 * chi**5 * gamma0**8 * nu**5
            + 180 * chi**5 * gamma0**8 * nu**4
            + 10 * chi**5 * gamma0**8 * nu**3
            + 360 * chi**5 * gamma0**6 * nu**4
            + 144 * chi**5 * gamma0**6 * nu**3
            + 54 * chi**5 * gamma0**4 * nu**3
            - 4 * chi**4 * gamma0**8 * nu**6
            - 66 * chi**4 * gamma0**8 * nu**5
            - 336 * chi**4 * gamma0**8 * nu**4
            + 10 * chi**4 * gamma0**8 * nu**3
            - 720 * chi**4 * gamma0**6 * nu**4
            + 144 * chi**4 * gamma0**6 * nu**3
            + 54 * chi**4 * gamma0**4 * nu**3
            + 8 * chi**3 * gamma0**8 * nu**6
            - 66 * chi**3 * gamma0**8 * nu**5
            + 180 * chi**3 * gamma0**8 * nu**4
            - 14 * chi**3 * gamma0**8 * nu**3
            + 360 * chi**3 * gamma0**6 * nu**4
            - 144 * chi**3 * gamma0**6 * nu**3
            - 4 * chi**2 * gamma0**8 * nu**6
            + 66 * chi**2 * gamma0**8 * nu**5
            - 12 * chi**2 * gamma0**8 * nu**4
            + 4 * chi**2 * gamma0**8 * nu**3,
            16 * chi**8 * gamma0**8 * nu**2
            - 8 * chi**7 * gamma0**10 * nu**4
            - 20 * chi**7 * gamma0**10 * nu**3
            + chi**7 * gamma0**10 * nu**2
            - 96 * chi**7 * gamma0**8 * nu**3
            - 36 * chi**7 * gamma0**8 * nu**2
            - 136 * chi**7 * gamma0**6 * nu**2
            + 24 * chi**6 * gamma0**10 * nu**5
            + 74 * chi**6 * gamma0**10 * nu**4
            + 68 * chi**6 * gamma0**10 * nu**3
            - 4 * chi**6 * gamma0**10 * nu**2
            + 480 * chi**6 * gamma0**8 * nu**4
            + 1012 * chi**6 * gamma0**8 * nu**3
            - 40 * chi**6 * gamma0**8 * nu**2
            + 1432 * chi**6 * gamma0**6 * nu**3
            - 494 * chi**6 * gamma0**6 * nu**2
            + 544 * chi**6 * gamma0**4 * nu**2
            - 51 * chi**5 * gamma0**10 * nu**6
            - 24 * chi**5 * gamma0**10 * nu**5
            - 288 * chi**5 * gamma0**10 * nu**4
            - 48 * chi**5 * gamma0**10 * nu**3
            + 6 * chi**5 * gamma0**10 * nu**2
            - 772 * chi**5 * gamma0**8 * nu**5
            - 1832 * chi**5 * gamma0**8 * nu**4
            - 916 * chi**5 * gamma0**8 * nu**3
            + 120 * chi**5 * gamma0**8 * nu**2
            - 1898 * chi**5 * gamma0**6 * nu**4
            - 1696 * chi**5 * gamma0**6 * nu**3
            + 1276 * chi**5 * gamma0**6 * nu**2
            - 612 * chi**5 * gamma0**4 * nu**3
            - 152 * chi**5 * gamma0**4 * nu**2
            - 27 * chi**5 * gamma0**2 * nu**2
            + 8 * chi**4 * gamma0**10 * nu**7
            + 140 * chi**4 * gamma0**10 * nu**6
            + 444 * chi**4 * gamma0**10 * nu**4
            - 48 * chi**4 * gamma0**10 * nu**3
            - 4 * chi**4 * gamma0**10 * nu**2
            + 48 * chi**4 * gamma0**8 * nu**6
            + 772 * chi**4 * gamma0**8 * nu**5
            + 2704 * chi**4 * gamma0**8 * nu**4
            - 916 * chi**4 * gamma0**8 * nu**3
            - 40 * chi**4 * gamma0**8 * nu**2
            + 8 * chi**4 * gamma0**6 * nu**5
            + 3268 * chi**4 * gamma0**6 * nu**4
            - 1696 * chi**4 * gamma0**6 * nu**3
            - 494 * chi**4 * gamma0**6 * nu**2
            - 612 * chi**4 * gamma0**4 * nu**3
            + 544 * chi**4 * gamma0**4 * nu**2
            - 8 * chi**3 * gamma0**10 * nu**7
            - 178 * chi**3 * gamma0**10 * nu**6
            - 288 * chi**3 * gamma0**10 * nu**4
            + 68 * chi**3 * gamma0**10 * nu**3
            + chi**3 * gamma0**10 * nu**2
            - 96 * chi**3 * gamma0**8 * nu**6
            + 772 * chi**3 * gamma0**8 * nu**5
            - 1832 * chi**3 * gamma0**8 * nu**4
            + 1012 * chi**3 * gamma0**8 * nu**3
            - 36 * chi**3 * gamma0**8 * nu**2
            + 8 * chi**3 * gamma0**6 * nu**5
            - 1898 * chi**3 * gamma0**6 * nu**4
            + 1432 * chi**3 * gamma0**6 * nu**3
            - 136 * chi**3 * gamma0**6 * nu**2
            - 8 * chi**2 * gamma0**10 * nu**7
            + 140 * chi**2 * gamma0**10 * nu**6
            - 24 * chi**2 * gamma0**10 * nu**5
            + 74 * chi**2 * gamma0**10 * nu**4
            - 20 * chi**2 * gamma0**10 * nu**3
            + 48 * chi**2 * gamma0**8 * nu**6
            - 772 * chi**2 * gamma0**8 * nu**5
            + 480 * chi**2 * gamma0**8 * nu**4
            - 96 * chi**2 * gamma0**8 * nu**3
            + 16 * chi**2 * gamma0**8 * nu**2
            + 8 * chi * gamma0**10 * nu**7
            - 51 * chi * gamma0**10 * nu**6
            + 24 * chi * gamma0**10 * nu**5
            - 8 * chi * gamma0**10 * nu**4,
            -32 * chi**8 * gamma0**10 * nu**3
            - 80 * chi**8 * gamma0**10 * nu**2
            + 4 * chi**8 * gamma0**10 * nu
            - 128 * chi**8 * gamma0**8 * nu**2
            + 80 * chi**8 * gamma0**8 * nu
            - 32 * chi**8 * gamma0**6 * nu
            + 4 * chi**7 * gamma0**12 * nu**5
            - 12 * chi**7 * gamma0**12 * nu**4
            + 12 * chi**7 * gamma0**12 * nu**3
            - 4 * chi**7 * gamma0**12 * nu**2
            + 176 * chi**7 * gamma0**10 * nu**4
            + 428 * chi**7 * gamma0**10 * nu**3
            + 164 * chi**7 * gamma0**10 * nu**2
            - 12 * chi**7 * gamma0**10 * nu
            + 856 * chi**7 * gamma0**8 * nu**3
            + 732 * chi**7 * gamma0**8 * nu**2
            - 304 * chi**7 * gamma0**8 * nu
            + 1200 * chi**7 * gamma0**6 * nu**2
            - 572 * chi**7 * gamma0**6 * nu
            + 260 * chi**7 * gamma0**4 * nu
            - 12 * chi**6 * gamma0**12 * nu**6
            + 20 * chi**6 * gamma0**12 * nu**5
            + 12 * chi**6 * gamma0**12 * nu**4
            - 36 * chi**6 * gamma0**12 * nu**3
            + 16 * chi**6 * gamma0**12 * nu**2
            - 480 * chi**6 * gamma0**10 * nu**5
            - 528 * chi**6 * gamma0**10 * nu**4
            - 1492 * chi**6 * gamma0**10 * nu**3
            + 224 * chi**6 * gamma0**10 * nu**2
            + 8 * chi**6 * gamma0**10 * nu
            - 3272 * chi**6 * gamma0**8 * nu**4
            - 4736 * chi**6 * gamma0**8 * nu**3
            + 3560 * chi**6 * gamma0**8 * nu**2
            + 224 * chi**6 * gamma0**8 * nu
            - 6064 * chi**6 * gamma0**6 * nu**3
            - 336 * chi**6 * gamma0**6 * nu**2
            + 668 * chi**6 * gamma0**6 * nu
            - 4300 * chi**6 * gamma0**4 * nu**2
            + 876 * chi**6 * gamma0**4 * nu
            - 656 * chi**6 * gamma0**2 * nu
            + 12 * chi**5 * gamma0**12 * nu**7
            + 12 * chi**5 * gamma0**12 * nu**6
            - 84 * chi**5 * gamma0**12 * nu**5
            + 60 * chi**5 * gamma0**12 * nu**4
            + 24 * chi**5 * gamma0**12 * nu**3
            - 24 * chi**5 * gamma0**12 * nu**2
            + 524 * chi**5 * gamma0**10 * nu**6
            + 640 * chi**5 * gamma0**10 * nu**5
            + 2128 * chi**5 * gamma0**10 * nu**4
            + 1096 * chi**5 * gamma0**10 * nu**3
            - 616 * chi**5 * gamma0**10 * nu**2
            + 8 * chi**5 * gamma0**10 * nu
            + 3192 * chi**5 * gamma0**8 * nu**5
            + 5984 * chi**5 * gamma0**8 * nu**4
            + 4008 * chi**5 * gamma0**8 * nu**3
            - 8392 * chi**5 * gamma0**8 * nu**2
            + 224 * chi**5 * gamma0**8 * nu
            + 5112 * chi**5 * gamma0**6 * nu**4
            + 5888 * chi**5 * gamma0**6 * nu**3
            - 6432 * chi**5 * gamma0**6 * nu**2
            + 668 * chi**5 * gamma0**6 * nu
            + 2428 * chi**5 * gamma0**4 * nu**3
            + 1572 * chi**5 * gamma0**4 * nu**2
            + 876 * chi**5 * gamma0**4 * nu
            + 252 * chi**5 * gamma0**2 * nu**2
            - 656 * chi**5 * gamma0**2 * nu
            - 4 * chi**4 * gamma0**12 * nu**8
            - 36 * chi**4 * gamma0**12 * nu**7
            + 60 * chi**4 * gamma0**12 * nu**6
            + 60 * chi**4 * gamma0**12 * nu**5
            - 120 * chi**4 * gamma0**12 * nu**4
            + 24 * chi**4 * gamma0**12 * nu**3
            + 16 * chi**4 * gamma0**12 * nu**2
            - 80 * chi**4 * gamma0**10 * nu**7
            - 1296 * chi**4 * gamma0**10 * nu**6
            - 160 * chi**4 * gamma0**10 * nu**5
            - 3552 * chi**4 * gamma0**10 * nu**4
            + 1096 * chi**4 * gamma0**10 * nu**3
            + 224 * chi**4 * gamma0**10 * nu**2
            - 12 * chi**4 * gamma0**10 * nu
            - 216 * chi**4 * gamma0**8 * nu**6
            - 3064 * chi**4 * gamma0**8 * nu**5
            - 5808 * chi**4 * gamma0**8 * nu**4
            + 4008 * chi**4 * gamma0**8 * nu**3
            + 3560 * chi**4 * gamma0**8 * nu**2
            - 304 * chi**4 * gamma0**8 * nu
            - 80 * chi**4 * gamma0**6 * nu**5
            - 5136 * chi**4 * gamma0**6 * nu**4
            + 5888 * chi**4 * gamma0**6 * nu**3
            - 336 * chi**4 * gamma0**6 * nu**2
            - 572 * chi**4 * gamma0**6 * nu
            - 4 * chi**4 * gamma0**4 * nu**4
            + 2428 * chi**4 * gamma0**4 * nu**3
            - 4300 * chi**4 * gamma0**4 * nu**2
            + 260 * chi**4 * gamma0**4 * nu
            + 16 * chi**3 * gamma0**12 * nu**8
            + 24 * chi**3 * gamma0**12 * nu**7
            - 120 * chi**3 * gamma0**12 * nu**6
            + 60 * chi**3 * gamma0**12 * nu**5
            + 60 * chi**3 * gamma0**12 * nu**4
            - 36 * chi**3 * gamma0**12 * nu**3
            - 4 * chi**3 * gamma0**12 * nu**2
            + 80 * chi**3 * gamma0**10 * nu**7
            + 1544 * chi**3 * gamma0**10 * nu**6
            - 160 * chi**3 * gamma0**10 * nu**5
            + 2128 * chi**3 * gamma0**10 * nu**4
            - 1492 * chi**3 * gamma0**10 * nu**3
            + 164 * chi**3 * gamma0**10 * nu**2
            + 4 * chi**3 * gamma0**10 * nu
            + 368 * chi**3 * gamma0**8 * nu**6
            - 3064 * chi**3 * gamma0**8 * nu**5
            + 5984 * chi**3 * gamma0**8 * nu**4
            - 4736 * chi**3 * gamma0**8 * nu**3
            + 732 * chi**3 * gamma0**8 * nu**2
            + 80 * chi**3 * gamma0**8 * nu
            - 80 * chi**3 * gamma0**6 * nu**5
            + 5112 * chi**3 * gamma0**6 * nu**4
            - 6064 * chi**3 * gamma0**6 * nu**3
            + 1200 * chi**3 * gamma0**6 * nu**2
            - 32 * chi**3 * gamma0**6 * nu
            - 24 * chi**2 * gamma0**12 * nu**8
            + 24 * chi**2 * gamma0**12 * nu**7
            + 60 * chi**2 * gamma0**12 * nu**6
            - 84 * chi**2 * gamma0**12 * nu**5
            + 12 * chi**2 * gamma0**12 * nu**4
            + 12 * chi**2 * gamma0**12 * nu**3
            + 80 * chi**2 * gamma0**10 * nu**7
            - 1296 * chi**2 * gamma0**10 * nu**6
            + 640 * chi**2 * gamma0**10 * nu**5
            - 528 * chi**2 * gamma0**10 * nu**4
            + 428 * chi**2 * gamma0**10 * nu**3
            - 80 * chi**2 * gamma0**10 * nu**2
            - 216 * chi**2 * gamma0**8 * nu**6
            + 3192 * chi**2 * gamma0**8 * nu**5
            - 3272 * chi**2 * gamma0**8 * nu**4
            + 856 * chi**2 * gamma0**8 * nu**3
            - 128 * chi**2 * gamma0**8 * nu**2
            + 16 * chi * gamma0**12 * nu**8
            - 36 * chi * gamma0**12 * nu**7
            + 12 * chi * gamma0**12 * nu**6
            + 20 * chi * gamma0**12 * nu**5
            - 12 * chi * gamma0**12 * nu**4
            - 80 * chi * gamma0**10 * nu**7
            + 524 * chi * gamma0**10 * nu**6
            - 480 * chi * gamma0**10 * nu**5
            + 176 * chi * gamma0**10 * nu**4
            - 32 * chi * gamma0**10 * nu**3
            - 4 * gamma0**12 * nu**8
            + 12 * gamma0**12 * nu**7
            - 12 * gamma0**12 * nu**6
            + 4 * gamma0**12 * nu**5,
            16 * chi**8 * gamma0**12 * nu**4
            - 48 * chi**8 * gamma0**12 * nu**3
            + 48 * chi**8 * gamma0**12 * nu**2
            - 16 * chi**8 * gamma0**12 * nu
            + 192 * chi**8 * gamma0**10 * nu**3
            + 208 * chi**8 * gamma0**10 * nu**2
            - 416 * chi**8 * gamma0**10 * nu
            + 16 * chi**8 * gamma0**10
            + 352 * chi**8 * gamma0**8 * nu**2
            - 208 * chi**8 * gamma0**8 * nu
            + 48 * chi**8 * gamma0**8
            + 192 * chi**8 * gamma0**6 * nu
            + 48 * chi**8 * gamma0**6
            + 16 * chi**8 * gamma0**4
            - 80 * chi**7 * gamma0**12 * nu**5
            + 192 * chi**7 * gamma0**12 * nu**4
            - 96 * chi**7 * gamma0**12 * nu**3
            - 64 * chi**7 * gamma0**12 * nu**2
            + 48 * chi**7 * gamma0**12 * nu
            - 960 * chi**7 * gamma0**10 * nu**4
            - 736 * chi**7 * gamma0**10 * nu**3
            + 256 * chi**7 * gamma0**10 * nu**2
            + 1504 * chi**7 * gamma0**10 * nu
            - 64 * chi**7 * gamma0**10
            - 3040 * chi**7 * gamma0**8 * nu**3
            - 1984 * chi**7 * gamma0**8 * nu**2
            + 4128 * chi**7 * gamma0**8 * nu
            - 320 * chi**7 * gamma0**8
            - 3648 * chi**7 * gamma0**6 * nu**2
            + 1056 * chi**7 * gamma0**6 * nu
            - 576 * chi**7 * gamma0**6
            - 1616 * chi**7 * gamma0**4 * nu
            - 448 * chi**7 * gamma0**4
            - 128 * chi**7 * gamma0**2
            + 144 * chi**6 * gamma0**12 * nu**6
            - 160 * chi**6 * gamma0**12 * nu**5
            - 352 * chi**6 * gamma0**12 * nu**4
            + 576 * chi**6 * gamma0**12 * nu**3
            - 176 * chi**6 * gamma0**12 * nu**2
            - 32 * chi**6 * gamma0**12 * nu
            + 2176 * chi**6 * gamma0**10 * nu**5
            - 112 * chi**6 * gamma0**10 * nu**4
            + 4896 * chi**6 * gamma0**10 * nu**3
            - 5968 * chi**6 * gamma0**10 * nu**2
            - 1088 * chi**6 * gamma0**10 * nu
            + 96 * chi**6 * gamma0**10
            + 8032 * chi**6 * gamma0**8 * nu**4
            + 4048 * chi**6 * gamma0**8 * nu**3
            - 5248 * chi**6 * gamma0**8 * nu**2
            - 4176 * chi**6 * gamma0**8 * nu
            + 544 * chi**6 * gamma0**8
            + 13504 * chi**6 * gamma0**6 * nu**3
            + 8048 * chi**6 * gamma0**6 * nu**2
            - 7072 * chi**6 * gamma0**6 * nu
            + 1312 * chi**6 * gamma0**6
            + 11152 * chi**6 * gamma0**4 * nu**2
            - 48 * chi**6 * gamma0**4 * nu
            + 1632 * chi**6 * gamma0**4
            + 3904 * chi**6 * gamma0**2 * nu
            + 1024 * chi**6 * gamma0**2
            + 256 * chi**6
            - 112 * chi**5 * gamma0**12 * nu**7
            - 192 * chi**5 * gamma0**12 * nu**6
            + 960 * chi**5 * gamma0**12 * nu**5
            - 576 * chi**5 * gamma0**12 * nu**4
            - 432 * chi**5 * gamma0**12 * nu**3
            + 384 * chi**5 * gamma0**12 * nu**2
            - 32 * chi**5 * gamma0**12 * nu
            - 1664 * chi**5 * gamma0**10 * nu**6
            - 2688 * chi**5 * gamma0**10 * nu**5
            - 1152 * chi**5 * gamma0**10 * nu**4
            - 4352 * chi**5 * gamma0**10 * nu**3
            + 11008 * chi**5 * gamma0**10 * nu**2
            - 1088 * chi**5 * gamma0**10 * nu
            - 64 * chi**5 * gamma0**10
            - 5536 * chi**5 * gamma0**8 * nu**5
            - 7200 * chi**5 * gamma0**8 * nu**4
            - 3568 * chi**5 * gamma0**8 * nu**3
            + 16320 * chi**5 * gamma0**8 * nu**2
            - 4176 * chi**5 * gamma0**8 * nu
            - 320 * chi**5 * gamma0**8
            - 7232 * chi**5 * gamma0**6 * nu**4
            - 4992 * chi**5 * gamma0**6 * nu**3
            - 96 * chi**5 * gamma0**6 * nu**2
            - 7072 * chi**5 * gamma0**6 * nu
            - 576 * chi**5 * gamma0**6
            - 3952 * chi**5 * gamma0**4 * nu**3
            - 1504 * chi**5 * gamma0**4 * nu**2
            - 48 * chi**5 * gamma0**4 * nu
            - 448 * chi**5 * gamma0**4
            - 704 * chi**5 * gamma0**2 * nu**2
            + 3904 * chi**5 * gamma0**2 * nu
            - 128 * chi**5 * gamma0**2
            + 32 * chi**4 * gamma0**12 * nu**8
            + 336 * chi**4 * gamma0**12 * nu**7
            - 528 * chi**4 * gamma0**12 * nu**6
            - 720 * chi**4 * gamma0**12 * nu**5
            + 1440 * chi**4 * gamma0**12 * nu**4
            - 432 * chi**4 * gamma0**12 * nu**3
            - 176 * chi**4 * gamma0**12 * nu**2
            + 48 * chi**4 * gamma0**12 * nu
            + 256 * chi**4 * gamma0**10 * nu**7
            + 3584 * chi**4 * gamma0**10 * nu**6
            + 512 * chi**4 * gamma0**10 * nu**5
            + 4448 * chi**4 * gamma0**10 * nu**4
            - 4352 * chi**4 * gamma0**10 * nu**3
            - 5968 * chi**4 * gamma0**10 * nu**2
            + 1504 * chi**4 * gamma0**10 * nu
            + 16 * chi**4 * gamma0**10
            + 448 * chi**4 * gamma0**8 * nu**6
            + 4256 * chi**4 * gamma0**8 * nu**5
            + 3456 * chi**4 * gamma0**8 * nu**4
            - 3568 * chi**4 * gamma0**8 * nu**3
            - 5248 * chi**4 * gamma0**8 * nu**2
            + 4128 * chi**4 * gamma0**8 * nu
            + 48 * chi**4 * gamma0**8
            + 256 * chi**4 * gamma0**6 * nu**5
            - 384 * chi**4 * gamma0**6 * nu**4
            - 4992 * chi**4 * gamma0**6 * nu**3
            + 8048 * chi**4 * gamma0**6 * nu**2
            + 1056 * chi**4 * gamma0**6 * nu
            + 48 * chi**4 * gamma0**6
            + 32 * chi**4 * gamma0**4 * nu**4
            - 3952 * chi**4 * gamma0**4 * nu**3
            + 11152 * chi**4 * gamma0**4 * nu**2
            - 1616 * chi**4 * gamma0**4 * nu
            + 16 * chi**4 * gamma0**4
            - 128 * chi**3 * gamma0**12 * nu**8
            - 224 * chi**3 * gamma0**12 * nu**7
            + 1152 * chi**3 * gamma0**12 * nu**6
            - 720 * chi**3 * gamma0**12 * nu**5
            - 576 * chi**3 * gamma0**12 * nu**4
            + 576 * chi**3 * gamma0**12 * nu**3
            - 64 * chi**3 * gamma0**12 * nu**2
            - 16 * chi**3 * gamma0**12 * nu
            - 256 * chi**3 * gamma0**10 * nu**7
            - 3840 * chi**3 * gamma0**10 * nu**6
            + 512 * chi**3 * gamma0**10 * nu**5
            - 1152 * chi**3 * gamma0**10 * nu**4
            + 4896 * chi**3 * gamma0**10 * nu**3
            + 256 * chi**3 * gamma0**10 * nu**2
            - 416 * chi**3 * gamma0**10 * nu
            - 384 * chi**3 * gamma0**8 * nu**6
            + 4256 * chi**3 * gamma0**8 * nu**5
            - 7200 * chi**3 * gamma0**8 * nu**4
            + 4048 * chi**3 * gamma0**8 * nu**3
            - 1984 * chi**3 * gamma0**8 * nu**2
            - 208 * chi**3 * gamma0**8 * nu
            + 256 * chi**3 * gamma0**6 * nu**5
            - 7232 * chi**3 * gamma0**6 * nu**4
            + 13504 * chi**3 * gamma0**6 * nu**3
            - 3648 * chi**3 * gamma0**6 * nu**2
            + 192 * chi**3 * gamma0**6 * nu
            + 192 * chi**2 * gamma0**12 * nu**8
            - 224 * chi**2 * gamma0**12 * nu**7
            - 528 * chi**2 * gamma0**12 * nu**6
            + 960 * chi**2 * gamma0**12 * nu**5
            - 352 * chi**2 * gamma0**12 * nu**4
            - 96 * chi**2 * gamma0**12 * nu**3
            + 48 * chi**2 * gamma0**12 * nu**2
            - 256 * chi**2 * gamma0**10 * nu**7
            + 3584 * chi**2 * gamma0**10 * nu**6
            - 2688 * chi**2 * gamma0**10 * nu**5
            - 112 * chi**2 * gamma0**10 * nu**4
            - 736 * chi**2 * gamma0**10 * nu**3
            + 208 * chi**2 * gamma0**10 * nu**2
            + 448 * chi**2 * gamma0**8 * nu**6
            - 5536 * chi**2 * gamma0**8 * nu**5
            + 8032 * chi**2 * gamma0**8 * nu**4
            - 3040 * chi**2 * gamma0**8 * nu**3
            + 352 * chi**2 * gamma0**8 * nu**2
            - 128 * chi * gamma0**12 * nu**8
            + 336 * chi * gamma0**12 * nu**7
            - 192 * chi * gamma0**12 * nu**6
            - 160 * chi * gamma0**12 * nu**5
            + 192 * chi * gamma0**12 * nu**4
            - 48 * chi * gamma0**12 * nu**3
            + 256 * chi * gamma0**10 * nu**7
            - 1664 * chi * gamma0**10 * nu**6
            + 2176 * chi * gamma0**10 * nu**5
            - 960 * chi * gamma0**10 * nu**4
            + 192 * chi * gamma0**10 * nu**3
            + 32 * gamma0**12 * nu**8
            - 112 * gamma0**12 * nu**7
            + 144 * gamma0**12 * nu**6
            - 80 * gamma0**12 * nu**5
            + 16 * gamma0**12 * nu**4,
            -64 * chi**8 * gamma0**12 * nu**4
            + 256 * chi**8 * gamma0**12 * nu**3
            - 384 * chi**8 * gamma0**12 * nu**2
            + 256 * chi**8 * gamma0**12 * nu
            - 64 * chi**8 * gamma0**12
            - 256 * chi**8 * gamma0**10 * nu**3
            + 256 * chi**8 * gamma0**10 * nu**2
            + 256 * chi**8 * gamma0**10 * nu
            - 256 * chi**8 * gamma0**10
            - 384 * chi**8 * gamma0**8 * nu**2
            - 256 * chi**8 * gamma0**8 * nu
            - 384 * chi**8 * gamma0**8
            - 256 * chi**8 * gamma0**6 * nu
            - 256 * chi**8 * gamma0**6
            - 64 * chi**8 * gamma0**4
            + 256 * chi**7 * gamma0**12 * nu**5
            - 768 * chi**7 * gamma0**12 * nu**4
            + 512 * chi**7 * gamma0**12 * nu**3
            + 512 * chi**7 * gamma0**12 * nu**2
            - 768 * chi**7 * gamma0**12 * nu
            + 256 * chi**7 * gamma0**12
            + 1536 * chi**7 * gamma0**10 * nu**4
            - 2560 * chi**7 * gamma0**10 * nu**3
            + 2048 * chi**7 * gamma0**10 * nu**2
            - 2560 * chi**7 * gamma0**10 * nu
            + 1536 * chi**7 * gamma0**10
            + 3584 * chi**7 * gamma0**8 * nu**3
            - 512 * chi**7 * gamma0**8 * nu**2
            - 512 * chi**7 * gamma0**8 * nu
            + 3584 * chi**7 * gamma0**8
            + 4096 * chi**7 * gamma0**6 * nu**2
            + 3584 * chi**7 * gamma0**6 * nu
            + 4096 * chi**7 * gamma0**6
            + 2304 * chi**7 * gamma0**4 * nu
            + 2304 * chi**7 * gamma0**4
            + 512 * chi**7 * gamma0**2
            - 384 * chi**6 * gamma0**12 * nu**6
            + 512 * chi**6 * gamma0**12 * nu**5
            + 1408 * chi**6 * gamma0**12 * nu**4
            - 3072 * chi**6 * gamma0**12 * nu**3
            + 1408 * chi**6 * gamma0**12 * nu**2
            + 512 * chi**6 * gamma0**12 * nu
            - 384 * chi**6 * gamma0**12
            - 2560 * chi**6 * gamma0**10 * nu**5
            + 2304 * chi**6 * gamma0**10 * nu**4
            + 256 * chi**6 * gamma0**10 * nu**3
            + 256 * chi**6 * gamma0**10 * nu**2
            + 2304 * chi**6 * gamma0**10 * nu
            - 2560 * chi**6 * gamma0**10
            - 7424 * chi**6 * gamma0**8 * nu**4
            + 3840 * chi**6 * gamma0**8 * nu**3
            - 8192 * chi**6 * gamma0**8 * nu**2
            + 3840 * chi**6 * gamma0**8 * nu
            - 7424 * chi**6 * gamma0**8
            - 11776 * chi**6 * gamma0**6 * nu**3
            - 2304 * chi**6 * gamma0**6 * nu**2
            - 2304 * chi**6 * gamma0**6 * nu
            - 11776 * chi**6 * gamma0**6
            - 10624 * chi**6 * gamma0**4 * nu**2
            - 9472 * chi**6 * gamma0**4 * nu
            - 10624 * chi**6 * gamma0**4
            - 5120 * chi**6 * gamma0**2 * nu
            - 5120 * chi**6 * gamma0**2
            - 1024 * chi**6
            + 256 * chi**5 * gamma0**12 * nu**7
            + 512 * chi**5 * gamma0**12 * nu**6
            - 3072 * chi**5 * gamma0**12 * nu**5
            + 2304 * chi**5 * gamma0**12 * nu**4
            + 2304 * chi**5 * gamma0**12 * nu**3
            - 3072 * chi**5 * gamma0**12 * nu**2
            + 512 * chi**5 * gamma0**12 * nu
            + 256 * chi**5 * gamma0**12
            + 1536 * chi**5 * gamma0**10 * nu**6
            + 2304 * chi**5 * gamma0**10 * nu**5
            - 5120 * chi**5 * gamma0**10 * nu**4
            + 2560 * chi**5 * gamma0**10 * nu**3
            - 5120 * chi**5 * gamma0**10 * nu**2
            + 2304 * chi**5 * gamma0**10 * nu
            + 1536 * chi**5 * gamma0**10
            + 3584 * chi**5 * gamma0**8 * nu**5
            + 3840 * chi**5 * gamma0**8 * nu**4
            + 2816 * chi**5 * gamma0**8 * nu**3
            + 2816 * chi**5 * gamma0**8 * nu**2
            + 3840 * chi**5 * gamma0**8 * nu
            + 3584 * chi**5 * gamma0**8
            + 4096 * chi**5 * gamma0**6 * nu**4
            - 2304 * chi**5 * gamma0**6 * nu**3
            + 15360 * chi**5 * gamma0**6 * nu**2
            - 2304 * chi**5 * gamma0**6 * nu
            + 4096 * chi**5 * gamma0**6
            + 2304 * chi**5 * gamma0**4 * nu**3
            - 9472 * chi**5 * gamma0**4 * nu**2
            - 9472 * chi**5 * gamma0**4 * nu
            + 2304 * chi**5 * gamma0**4
            + 512 * chi**5 * gamma0**2 * nu**2
            - 5120 * chi**5 * gamma0**2 * nu
            + 512 * chi**5 * gamma0**2
            - 64 * chi**4 * gamma0**12 * nu**8
            - 768 * chi**4 * gamma0**12 * nu**7
            + 1408 * chi**4 * gamma0**12 * nu**6
            + 2304 * chi**4 * gamma0**12 * nu**5
            - 5760 * chi**4 * gamma0**12 * nu**4
            + 2304 * chi**4 * gamma0**12 * nu**3
            + 1408 * chi**4 * gamma0**12 * nu**2
            - 768 * chi**4 * gamma0**12 * nu
            - 64 * chi**4 * gamma0**12
            - 256 * chi**4 * gamma0**10 * nu**7
            - 2560 * chi**4 * gamma0**10 * nu**6
            + 256 * chi**4 * gamma0**10 * nu**5
            + 2560 * chi**4 * gamma0**10 * nu**4
            + 2560 * chi**4 * gamma0**10 * nu**3
            + 256 * chi**4 * gamma0**10 * nu**2
            - 2560 * chi**4 * gamma0**10 * nu
            - 256 * chi**4 * gamma0**10
            - 384 * chi**4 * gamma0**8 * nu**6
            - 512 * chi**4 * gamma0**8 * nu**5
            - 8192 * chi**4 * gamma0**8 * nu**4
            + 2816 * chi**4 * gamma0**8 * nu**3
            - 8192 * chi**4 * gamma0**8 * nu**2
            - 512 * chi**4 * gamma0**8 * nu
            - 384 * chi**4 * gamma0**8
            - 256 * chi**4 * gamma0**6 * nu**5
            + 3584 * chi**4 * gamma0**6 * nu**4
            - 2304 * chi**4 * gamma0**6 * nu**3
            - 2304 * chi**4 * gamma0**6 * nu**2
            + 3584 * chi**4 * gamma0**6 * nu
            - 256 * chi**4 * gamma0**6
            - 64 * chi**4 * gamma0**4 * nu**4
            + 2304 * chi**4 * gamma0**4 * nu**3
            - 10624 * chi**4 * gamma0**4 * nu**2
            + 2304 * chi**4 * gamma0**4 * nu
            - 64 * chi**4 * gamma0**4
            + 256 * chi**3 * gamma0**12 * nu**8
            + 512 * chi**3 * gamma0**12 * nu**7
            - 3072 * chi**3 * gamma0**12 * nu**6
            + 2304 * chi**3 * gamma0**12 * nu**5
            + 2304 * chi**3 * gamma0**12 * nu**4
            - 3072 * chi**3 * gamma0**12 * nu**3
            + 512 * chi**3 * gamma0**12 * nu**2
            + 256 * chi**3 * gamma0**12 * nu
            + 256 * chi**3 * gamma0**10 * nu**7
            + 2048 * chi**3 * gamma0**10 * nu**6
            + 256 * chi**3 * gamma0**10 * nu**5
            - 5120 * chi**3 * gamma0**10 * nu**4
            + 256 * chi**3 * gamma0**10 * nu**3
            + 2048 * chi**3 * gamma0**10 * nu**2
            + 256 * chi**3 * gamma0**10 * nu
            - 256 * chi**3 * gamma0**8 * nu**6
            - 512 * chi**3 * gamma0**8 * nu**5
            + 3840 * chi**3 * gamma0**8 * nu**4
            + 3840 * chi**3 * gamma0**8 * nu**3
            - 512 * chi**3 * gamma0**8 * nu**2
            - 256 * chi**3 * gamma0**8 * nu
            - 256 * chi**3 * gamma0**6 * nu**5
            + 4096 * chi**3 * gamma0**6 * nu**4
            - 11776 * chi**3 * gamma0**6 * nu**3
            + 4096 * chi**3 * gamma0**6 * nu**2
            - 256 * chi**3 * gamma0**6 * nu
            - 384 * chi**2 * gamma0**12 * nu**8
            + 512 * chi**2 * gamma0**12 * nu**7
            + 1408 * chi**2 * gamma0**12 * nu**6
            - 3072 * chi**2 * gamma0**12 * nu**5
            + 1408 * chi**2 * gamma0**12 * nu**4
            + 512 * chi**2 * gamma0**12 * nu**3
            - 384 * chi**2 * gamma0**12 * nu**2
            + 256 * chi**2 * gamma0**10 * nu**7
            - 2560 * chi**2 * gamma0**10 * nu**6
            + 2304 * chi**2 * gamma0**10 * nu**5
            + 2304 * chi**2 * gamma0**10 * nu**4
            - 2560 * chi**2 * gamma0**10 * nu**3
            + 256 * chi**2 * gamma0**10 * nu**2
            - 384 * chi**2 * gamma0**8 * nu**6
            + 3584 * chi**2 * gamma0**8 * nu**5
            - 7424 * chi**2 * gamma0**8 * nu**4
            + 3584 * chi**2 * gamma0**8 * nu**3
            - 384 * chi**2 * gamma0**8 * nu**2
            + 256 * chi * gamma0**12 * nu**8
            - 768 * chi * gamma0**12 * nu**7
            + 512 * chi * gamma0**12 * nu**6
            + 512 * chi * gamma0**12 * nu**5
            - 768 * chi * gamma0**12 * nu**4
            + 256 * chi * gamma0**12 * nu**3
            - 256 * chi * gamma0**10 * nu**7
            + 1536 * chi * gamma0**10 * nu**6
            - 2560 * chi * gamma0**10 * nu**5
            + 1536 * chi * gamma0**10 * nu**4
            - 256 * chi * gamma0**10 * nu**3
            - 64 * gamma0**12 * nu**8
            + 256 * gamma0**12 * nu**7
            - 384 * gamma0**12 * nu**6
            + 256 * gamma0**12 * nu**5
            - 64 * gamma0**12 * nu**4,
        ),
    )
