# Written by `derive build extensive_two_layer` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

import jax
import jax.numpy as jnp


RESPONSES = (
    "G",
    "R_psi0_BT_psi3",
    "R_psi0_W0T_psi1",
    "R_psi1_A_psi2",
    "R_psi1_W0_psi0",
    "R_psi2_AT_psi1",
    "R_psi2_B_psi0",
    "R_psi3_AT_psi1",
    "R_psi3_B_psi0",
)
RESOLVENT = RESPONSES.index("G")
# whether the responses were eliminated: curve and edge_polynomials exist
ELIMINATED = True
# zero on the curve of the resolvent
CURVE = "chi*nu**2 - gamma**2*G**4*z**2 + G**3*(gamma**2*nu*z**2 - 2*gamma**2*nu*z + 2*gamma**2*z) + G**2*(chi*gamma**2*nu*z + chi*nu*z + gamma**2*nu**2*z - gamma**2*nu**2 - 2*gamma**2*nu*z + 2*gamma**2*nu - gamma**2) + G*(chi*gamma**2*nu**2 - chi*gamma**2*nu - chi*nu**2*z + chi*nu**2 - chi*nu - gamma**2*nu**2 + gamma**2*nu)"


def equations(z, r, nu, chi, gamma):
    """Each is zero at the bulk responses r (in the order of RESPONSES) at z. They vanish as z grows."""
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
        # 0 = R_psi0_BT_psi3 z - chi R_psi0_BT_psi3 R_psi3_B_psi0/nu - R_psi0_BT_psi3 R_psi1_W0_psi0 - 1
        -chi * R_psi0_BT_psi3 * R_psi3_B_psi0 / nu - R_psi0_BT_psi3 * R_psi1_W0_psi0 + R_psi0_BT_psi3 * z - 1,
        # 0 = R_psi2_B_psi0 - 1 - R_psi0_BT_psi3 R_psi3_B_psi0/nu
        R_psi2_B_psi0 - 1 - R_psi0_BT_psi3 * R_psi3_B_psi0 / nu,
        # 0 = R_psi3_B_psi0 - gamma nu R_psi1_A_psi2 R_psi2_B_psi0/chi
        R_psi3_B_psi0 - gamma * nu * R_psi1_A_psi2 * R_psi2_B_psi0 / chi,
        # 0 = R_psi0_W0T_psi1 z - chi R_psi0_W0T_psi1 R_psi3_B_psi0/nu - R_psi0_W0T_psi1 R_psi1_W0_psi0 - 1
        -chi * R_psi0_W0T_psi1 * R_psi3_B_psi0 / nu
        - R_psi0_W0T_psi1 * R_psi1_W0_psi0
        + R_psi0_W0T_psi1 * z
        - 1,
        # 0 = R_psi1_W0_psi0 - gamma R_psi1_W0_psi0 R_psi2_AT_psi1 - 1 - R_psi0_W0T_psi1 R_psi1_W0_psi0/nu
        -gamma * R_psi1_W0_psi0 * R_psi2_AT_psi1 + R_psi1_W0_psi0 - 1 - R_psi0_W0T_psi1 * R_psi1_W0_psi0 / nu,
        # 0 = R_psi2_AT_psi1 - R_psi0_BT_psi3 R_psi3_AT_psi1/nu
        R_psi2_AT_psi1 - R_psi0_BT_psi3 * R_psi3_AT_psi1 / nu,
        # 0 = R_psi3_AT_psi1 - gamma - gamma nu R_psi1_A_psi2 R_psi2_AT_psi1/chi
        -gamma + R_psi3_AT_psi1 - gamma * nu * R_psi1_A_psi2 * R_psi2_AT_psi1 / chi,
        # 0 = R_psi1_A_psi2 - gamma R_psi1_A_psi2 R_psi2_AT_psi1 - gamma - R_psi0_W0T_psi1 R_psi1_A_psi2/nu
        -gamma * R_psi1_A_psi2 * R_psi2_AT_psi1
        - gamma
        + R_psi1_A_psi2
        - R_psi0_W0T_psi1 * R_psi1_A_psi2 / nu,
        # 0 = G z - chi G R_psi3_B_psi0/nu - G R_psi1_W0_psi0 - 1
        -chi * G * R_psi3_B_psi0 / nu - G * R_psi1_W0_psi0 + G * z - 1,
    )


def residual(z, r, nu, chi, gamma):
    """The equations as one array."""
    return jnp.stack(equations(z, r, nu, chi, gamma))


def curve(nu, chi, gamma):
    """Table c with sum_ij c[i][j] G^i z^j = 0 on the curve; exact if the arguments are fractions."""
    return (
        (chi * nu**2, 0, 0),
        (
            chi * gamma**2 * nu**2
            - chi * gamma**2 * nu
            + chi * nu**2
            - chi * nu
            - gamma**2 * nu**2
            + gamma**2 * nu,
            -chi * nu**2,
            0,
        ),
        (
            -(gamma**2) * nu**2 + 2 * gamma**2 * nu - gamma**2,
            chi * gamma**2 * nu + chi * nu + gamma**2 * nu**2 - 2 * gamma**2 * nu,
            0,
        ),
        (0, -2 * gamma**2 * nu + 2 * gamma**2, gamma**2 * nu),
        (0, 0, -(gamma**2)),
    )


def edge_polynomials(nu, chi, gamma):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""
    return (
        (1, 0),
        (
            4 * chi**3 * gamma**4 * nu**5,
            chi**4 * gamma**6 * nu**4
            + 20 * chi**4 * gamma**4 * nu**4
            - 8 * chi**4 * gamma**2 * nu**4
            - 10 * chi**3 * gamma**6 * nu**5
            - 10 * chi**3 * gamma**6 * nu**4
            - 16 * chi**3 * gamma**4 * nu**5
            - 16 * chi**3 * gamma**4 * nu**4
            + chi**2 * gamma**6 * nu**6
            - 10 * chi**2 * gamma**6 * nu**5
            + chi**2 * gamma**6 * nu**4,
            4 * chi**5 * gamma**6 * nu**3
            + 12 * chi**5 * gamma**4 * nu**3
            + 12 * chi**5 * gamma**2 * nu**3
            + 4 * chi**5 * nu**3
            - 2 * chi**4 * gamma**8 * nu**4
            - 2 * chi**4 * gamma**8 * nu**3
            - 52 * chi**4 * gamma**6 * nu**4
            - 52 * chi**4 * gamma**6 * nu**3
            - 26 * chi**4 * gamma**4 * nu**4
            - 26 * chi**4 * gamma**4 * nu**3
            + 24 * chi**4 * gamma**2 * nu**4
            + 24 * chi**4 * gamma**2 * nu**3
            + 8 * chi**3 * gamma**8 * nu**5
            - 4 * chi**3 * gamma**8 * nu**4
            + 8 * chi**3 * gamma**8 * nu**3
            + 36 * chi**3 * gamma**6 * nu**5
            - 20 * chi**3 * gamma**6 * nu**4
            + 36 * chi**3 * gamma**6 * nu**3
            + 22 * chi**3 * gamma**4 * nu**5
            + 44 * chi**3 * gamma**4 * nu**4
            + 22 * chi**3 * gamma**4 * nu**3
            - 2 * chi**2 * gamma**8 * nu**6
            - 4 * chi**2 * gamma**8 * nu**5
            - 4 * chi**2 * gamma**8 * nu**4
            - 2 * chi**2 * gamma**8 * nu**3
            - 4 * chi**2 * gamma**6 * nu**6
            + 28 * chi**2 * gamma**6 * nu**5
            + 28 * chi**2 * gamma**6 * nu**4
            - 4 * chi**2 * gamma**6 * nu**3
            - 2 * chi * gamma**8 * nu**6
            + 8 * chi * gamma**8 * nu**5
            - 2 * chi * gamma**8 * nu**4,
            -8 * chi**5 * gamma**8 * nu**3
            - 8 * chi**5 * gamma**8 * nu**2
            - 32 * chi**5 * gamma**6 * nu**3
            - 32 * chi**5 * gamma**6 * nu**2
            - 48 * chi**5 * gamma**4 * nu**3
            - 48 * chi**5 * gamma**4 * nu**2
            - 32 * chi**5 * gamma**2 * nu**3
            - 32 * chi**5 * gamma**2 * nu**2
            - 8 * chi**5 * nu**3
            - 8 * chi**5 * nu**2
            + chi**4 * gamma**10 * nu**4
            - 2 * chi**4 * gamma**10 * nu**3
            + chi**4 * gamma**10 * nu**2
            + 42 * chi**4 * gamma**8 * nu**4
            - 20 * chi**4 * gamma**8 * nu**3
            + 42 * chi**4 * gamma**8 * nu**2
            + 58 * chi**4 * gamma**6 * nu**4
            - 52 * chi**4 * gamma**6 * nu**3
            + 58 * chi**4 * gamma**6 * nu**2
            - 6 * chi**4 * gamma**4 * nu**4
            - 52 * chi**4 * gamma**4 * nu**3
            - 6 * chi**4 * gamma**4 * nu**2
            - 23 * chi**4 * gamma**2 * nu**4
            - 18 * chi**4 * gamma**2 * nu**3
            - 23 * chi**4 * gamma**2 * nu**2
            - 2 * chi**3 * gamma**10 * nu**5
            + 2 * chi**3 * gamma**10 * nu**4
            + 2 * chi**3 * gamma**10 * nu**3
            - 2 * chi**3 * gamma**10 * nu**2
            - 28 * chi**3 * gamma**8 * nu**5
            - 20 * chi**3 * gamma**8 * nu**4
            - 20 * chi**3 * gamma**8 * nu**3
            - 28 * chi**3 * gamma**8 * nu**2
            - 40 * chi**3 * gamma**6 * nu**5
            + 72 * chi**3 * gamma**6 * nu**4
            + 72 * chi**3 * gamma**6 * nu**3
            - 40 * chi**3 * gamma**6 * nu**2
            - 10 * chi**3 * gamma**4 * nu**5
            - 38 * chi**3 * gamma**4 * nu**4
            - 38 * chi**3 * gamma**4 * nu**3
            - 10 * chi**3 * gamma**4 * nu**2
            + chi**2 * gamma**10 * nu**6
            + 2 * chi**2 * gamma**10 * nu**5
            - 6 * chi**2 * gamma**10 * nu**4
            + 2 * chi**2 * gamma**10 * nu**3
            + chi**2 * gamma**10 * nu**2
            + 6 * chi**2 * gamma**8 * nu**6
            - 6 * chi**2 * gamma**8 * nu**5
            + 64 * chi**2 * gamma**8 * nu**4
            - 6 * chi**2 * gamma**8 * nu**3
            + 6 * chi**2 * gamma**8 * nu**2
            + 6 * chi**2 * gamma**6 * nu**6
            - 26 * chi**2 * gamma**6 * nu**5
            - 24 * chi**2 * gamma**6 * nu**4
            - 26 * chi**2 * gamma**6 * nu**3
            + 6 * chi**2 * gamma**6 * nu**2
            - 2 * chi * gamma**10 * nu**6
            + 2 * chi * gamma**10 * nu**5
            + 2 * chi * gamma**10 * nu**4
            - 2 * chi * gamma**10 * nu**3
            + 6 * chi * gamma**8 * nu**6
            - 14 * chi * gamma**8 * nu**5
            - 14 * chi * gamma**8 * nu**4
            + 6 * chi * gamma**8 * nu**3
            + gamma**10 * nu**6
            - 2 * gamma**10 * nu**5
            + gamma**10 * nu**4,
            4 * chi**5 * gamma**10 * nu**3
            - 8 * chi**5 * gamma**10 * nu**2
            + 4 * chi**5 * gamma**10 * nu
            + 20 * chi**5 * gamma**8 * nu**3
            - 40 * chi**5 * gamma**8 * nu**2
            + 20 * chi**5 * gamma**8 * nu
            + 40 * chi**5 * gamma**6 * nu**3
            - 80 * chi**5 * gamma**6 * nu**2
            + 40 * chi**5 * gamma**6 * nu
            + 40 * chi**5 * gamma**4 * nu**3
            - 80 * chi**5 * gamma**4 * nu**2
            + 40 * chi**5 * gamma**4 * nu
            + 20 * chi**5 * gamma**2 * nu**3
            - 40 * chi**5 * gamma**2 * nu**2
            + 20 * chi**5 * gamma**2 * nu
            + 4 * chi**5 * nu**3
            - 8 * chi**5 * nu**2
            + 4 * chi**5 * nu
            - 10 * chi**4 * gamma**10 * nu**4
            + 10 * chi**4 * gamma**10 * nu**3
            + 10 * chi**4 * gamma**10 * nu**2
            - 10 * chi**4 * gamma**10 * nu
            - 24 * chi**4 * gamma**8 * nu**4
            + 24 * chi**4 * gamma**8 * nu**3
            + 24 * chi**4 * gamma**8 * nu**2
            - 24 * chi**4 * gamma**8 * nu
            - 12 * chi**4 * gamma**6 * nu**4
            + 12 * chi**4 * gamma**6 * nu**3
            + 12 * chi**4 * gamma**6 * nu**2
            - 12 * chi**4 * gamma**6 * nu
            + 8 * chi**4 * gamma**4 * nu**4
            - 8 * chi**4 * gamma**4 * nu**3
            - 8 * chi**4 * gamma**4 * nu**2
            + 8 * chi**4 * gamma**4 * nu
            + 6 * chi**4 * gamma**2 * nu**4
            - 6 * chi**4 * gamma**2 * nu**3
            - 6 * chi**4 * gamma**2 * nu**2
            + 6 * chi**4 * gamma**2 * nu
            + 8 * chi**3 * gamma**10 * nu**5
            + 8 * chi**3 * gamma**10 * nu**4
            - 32 * chi**3 * gamma**10 * nu**3
            + 8 * chi**3 * gamma**10 * nu**2
            + 8 * chi**3 * gamma**10 * nu
            + 22 * chi**3 * gamma**8 * nu**5
            - 64 * chi**3 * gamma**8 * nu**4
            + 84 * chi**3 * gamma**8 * nu**3
            - 64 * chi**3 * gamma**8 * nu**2
            + 22 * chi**3 * gamma**8 * nu
            + 12 * chi**3 * gamma**6 * nu**5
            - 56 * chi**3 * gamma**6 * nu**4
            + 88 * chi**3 * gamma**6 * nu**3
            - 56 * chi**3 * gamma**6 * nu**2
            + 12 * chi**3 * gamma**6 * nu
            - 2 * chi**3 * gamma**4 * nu**5
            + 16 * chi**3 * gamma**4 * nu**4
            - 28 * chi**3 * gamma**4 * nu**3
            + 16 * chi**3 * gamma**4 * nu**2
            - 2 * chi**3 * gamma**4 * nu
            - 2 * chi**2 * gamma**10 * nu**6
            - 14 * chi**2 * gamma**10 * nu**5
            + 16 * chi**2 * gamma**10 * nu**4
            + 16 * chi**2 * gamma**10 * nu**3
            - 14 * chi**2 * gamma**10 * nu**2
            - 2 * chi**2 * gamma**10 * nu
            - 6 * chi**2 * gamma**8 * nu**6
            + 26 * chi**2 * gamma**8 * nu**5
            - 20 * chi**2 * gamma**8 * nu**4
            - 20 * chi**2 * gamma**8 * nu**3
            + 26 * chi**2 * gamma**8 * nu**2
            - 6 * chi**2 * gamma**8 * nu
            - 4 * chi**2 * gamma**6 * nu**6
            + 8 * chi**2 * gamma**6 * nu**5
            - 4 * chi**2 * gamma**6 * nu**4
            - 4 * chi**2 * gamma**6 * nu**3
            + 8 * chi**2 * gamma**6 * nu**2
            - 4 * chi**2 * gamma**6 * nu
            + 4 * chi * gamma**10 * nu**6
            + 4 * chi * gamma**10 * nu**5
            - 16 * chi * gamma**10 * nu**4
            + 4 * chi * gamma**10 * nu**3
            + 4 * chi * gamma**10 * nu**2
            - 6 * chi * gamma**8 * nu**6
            + 12 * chi * gamma**8 * nu**5
            - 12 * chi * gamma**8 * nu**4
            + 12 * chi * gamma**8 * nu**3
            - 6 * chi * gamma**8 * nu**2
            - 2 * gamma**10 * nu**6
            + 2 * gamma**10 * nu**5
            + 2 * gamma**10 * nu**4
            - 2 * gamma**10 * nu**3,
            chi**4 * gamma**10 * nu**4
            - 4 * chi**4 * gamma**10 * nu**3
            + 6 * chi**4 * gamma**10 * nu**2
            - 4 * chi**4 * gamma**10 * nu
            + chi**4 * gamma**10
            + 4 * chi**4 * gamma**8 * nu**4
            - 16 * chi**4 * gamma**8 * nu**3
            + 24 * chi**4 * gamma**8 * nu**2
            - 16 * chi**4 * gamma**8 * nu
            + 4 * chi**4 * gamma**8
            + 6 * chi**4 * gamma**6 * nu**4
            - 24 * chi**4 * gamma**6 * nu**3
            + 36 * chi**4 * gamma**6 * nu**2
            - 24 * chi**4 * gamma**6 * nu
            + 6 * chi**4 * gamma**6
            + 4 * chi**4 * gamma**4 * nu**4
            - 16 * chi**4 * gamma**4 * nu**3
            + 24 * chi**4 * gamma**4 * nu**2
            - 16 * chi**4 * gamma**4 * nu
            + 4 * chi**4 * gamma**4
            + chi**4 * gamma**2 * nu**4
            - 4 * chi**4 * gamma**2 * nu**3
            + 6 * chi**4 * gamma**2 * nu**2
            - 4 * chi**4 * gamma**2 * nu
            + chi**4 * gamma**2
            - 2 * chi**3 * gamma**10 * nu**5
            + 6 * chi**3 * gamma**10 * nu**4
            - 4 * chi**3 * gamma**10 * nu**3
            - 4 * chi**3 * gamma**10 * nu**2
            + 6 * chi**3 * gamma**10 * nu
            - 2 * chi**3 * gamma**10
            - 2 * chi**3 * gamma**8 * nu**5
            + 6 * chi**3 * gamma**8 * nu**4
            - 4 * chi**3 * gamma**8 * nu**3
            - 4 * chi**3 * gamma**8 * nu**2
            + 6 * chi**3 * gamma**8 * nu
            - 2 * chi**3 * gamma**8
            + 2 * chi**3 * gamma**6 * nu**5
            - 6 * chi**3 * gamma**6 * nu**4
            + 4 * chi**3 * gamma**6 * nu**3
            + 4 * chi**3 * gamma**6 * nu**2
            - 6 * chi**3 * gamma**6 * nu
            + 2 * chi**3 * gamma**6
            + 2 * chi**3 * gamma**4 * nu**5
            - 6 * chi**3 * gamma**4 * nu**4
            + 4 * chi**3 * gamma**4 * nu**3
            + 4 * chi**3 * gamma**4 * nu**2
            - 6 * chi**3 * gamma**4 * nu
            + 2 * chi**3 * gamma**4
            + chi**2 * gamma**10 * nu**6
            - 9 * chi**2 * gamma**10 * nu**4
            + 16 * chi**2 * gamma**10 * nu**3
            - 9 * chi**2 * gamma**10 * nu**2
            + chi**2 * gamma**10
            + 2 * chi**2 * gamma**8 * nu**6
            - 16 * chi**2 * gamma**8 * nu**5
            + 46 * chi**2 * gamma**8 * nu**4
            - 64 * chi**2 * gamma**8 * nu**3
            + 46 * chi**2 * gamma**8 * nu**2
            - 16 * chi**2 * gamma**8 * nu
            + 2 * chi**2 * gamma**8
            + chi**2 * gamma**6 * nu**6
            - 9 * chi**2 * gamma**6 * nu**4
            + 16 * chi**2 * gamma**6 * nu**3
            - 9 * chi**2 * gamma**6 * nu**2
            + chi**2 * gamma**6
            - 2 * chi * gamma**10 * nu**6
            + 6 * chi * gamma**10 * nu**5
            - 4 * chi * gamma**10 * nu**4
            - 4 * chi * gamma**10 * nu**3
            + 6 * chi * gamma**10 * nu**2
            - 2 * chi * gamma**10 * nu
            + 2 * chi * gamma**8 * nu**6
            - 6 * chi * gamma**8 * nu**5
            + 4 * chi * gamma**8 * nu**4
            + 4 * chi * gamma**8 * nu**3
            - 6 * chi * gamma**8 * nu**2
            + 2 * chi * gamma**8 * nu
            + gamma**10 * nu**6
            - 4 * gamma**10 * nu**5
            + 6 * gamma**10 * nu**4
            - 4 * gamma**10 * nu**3
            + gamma**10 * nu**2,
        ),
    )
