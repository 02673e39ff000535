# Written by `derive build spiked_wigner` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

import jax
import jax.numpy as jnp


RESPONSES = ("G", "R_psi0_M0_psi0")
RESOLVENT = RESPONSES.index("G")
# whether the responses were eliminated: curve and edge_polynomials exist
ELIMINATED = True
# zero on the curve of the resolvent
CURVE = "G**2 - G*z + 1"


def equations(z, r, gamma0):
    """Each is zero at the bulk responses r (in the order of RESPONSES) at z. They vanish as z grows."""
    G, R_psi0_M0_psi0 = r
    return (
        # 0 = R_psi0_M0_psi0 z - R_psi0_M0_psi0^2 - 1
        -(R_psi0_M0_psi0**2) + R_psi0_M0_psi0 * z - 1,
        # 0 = G z - G R_psi0_M0_psi0 - 1
        -G * R_psi0_M0_psi0 + G * z - 1,
    )


def residual(z, r, gamma0):
    """The equations as one array."""
    return jnp.stack(equations(z, r, gamma0))


def curve(gamma0):
    """Table c with sum_ij c[i][j] G^i z^j = 0 on the curve; exact if the arguments are fractions."""
    return ((1, 0), (0, -1), (1, 0))


def edge_polynomials(gamma0):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""
    return ((-1, 2), (1, 2))
