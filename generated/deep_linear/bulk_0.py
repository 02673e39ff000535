# Written by `derive build deep_linear L=2 data=full_batch param=mup` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

import jax
import jax.numpy as jnp


RESPONSES = ("G", "R_psi0_J0T_psi1", "R_psi1_J0_psi0")
RESOLVENT = RESPONSES.index("G")
# whether the responses were eliminated: curve and edge_polynomials exist
ELIMINATED = True
# zero on the curve of the resolvent
CURVE = "-nu - G**2*z + G*(nu*z - nu + 1)"


def equations(z, r, alpha, nu, gamma0, eta, sigma, T, C):
    """Each is zero at the bulk responses r (in the order of RESPONSES) at z. They vanish as z grows."""
    G, R_psi0_J0T_psi1, R_psi1_J0_psi0 = r
    return (
        # 0 = R_psi0_J0T_psi1 z - R_psi0_J0T_psi1 R_psi1_J0_psi0 - 1
        -R_psi0_J0T_psi1 * R_psi1_J0_psi0 + R_psi0_J0T_psi1 * z - 1,
        # 0 = R_psi1_J0_psi0 - 1 - R_psi0_J0T_psi1 R_psi1_J0_psi0/nu
        R_psi1_J0_psi0 - 1 - R_psi0_J0T_psi1 * R_psi1_J0_psi0 / nu,
        # 0 = G z - G R_psi1_J0_psi0 - 1
        -G * R_psi1_J0_psi0 + G * z - 1,
    )


def residual(z, r, alpha, nu, gamma0, eta, sigma, T, C):
    """The equations as one array."""
    return jnp.stack(equations(z, r, alpha, nu, gamma0, eta, sigma, T, C))


def curve(alpha, nu, gamma0, eta, sigma, T, C):
    """Table c with sum_ij c[i][j] G^i z^j = 0 on the curve; exact if the arguments are fractions."""
    return ((-nu, 0), (1 - nu, nu), (0, -1))


def edge_polynomials(alpha, nu, gamma0, eta, sigma, T, C):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""
    return ((1, 0), (nu**2, -2 * nu**2 - 2 * nu, nu**2 - 2 * nu + 1))
