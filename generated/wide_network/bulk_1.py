# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

import jax
import jax.numpy as jnp


RESPONSES = ("G", "R_psi0_J1T_psi1", "R_psi1_J1_psi0")
RESOLVENT = RESPONSES.index("G")
# whether the responses were eliminated: curve and edge_polynomials exist
ELIMINATED = True
# zero on the curve of the resolvent
CURVE = "sigma**2*G**2*z - G*z + 1"


def equations(z, r, gamma, eta, sigma, P, D, B, T, draw):
    """Each is zero at the bulk responses r (in the order of RESPONSES) at z. They vanish as z grows."""
    G, R_psi0_J1T_psi1, R_psi1_J1_psi0 = r
    return (
        # 0 = R_psi0_J1T_psi1 z - sigma^2 R_psi0_J1T_psi1 R_psi1_J1_psi0 - 1
        -(sigma**2) * R_psi0_J1T_psi1 * R_psi1_J1_psi0 + R_psi0_J1T_psi1 * z - 1,
        # 0 = R_psi1_J1_psi0 - sigma^2 R_psi0_J1T_psi1 R_psi1_J1_psi0 - 1
        -(sigma**2) * R_psi0_J1T_psi1 * R_psi1_J1_psi0 + R_psi1_J1_psi0 - 1,
        # 0 = G z - sigma^2 G R_psi1_J1_psi0 - 1
        -(sigma**2) * G * R_psi1_J1_psi0 + G * z - 1,
    )


def residual(z, r, gamma, eta, sigma, P, D, B, T, draw):
    """The equations as one array."""
    return jnp.stack(equations(z, r, gamma, eta, sigma, P, D, B, T, draw))


def curve(gamma, eta, sigma, P, D, B, T, draw):
    """Table c with sum_ij c[i][j] G^i z^j = 0 on the curve; exact if the arguments are fractions."""
    return ((1, 0), (0, -1), (0, sigma**2))


def edge_polynomials(gamma, eta, sigma, P, D, B, T, draw):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""
    return ((1, 0), (-1, 4 * sigma**2))
