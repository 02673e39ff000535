# Written by `derive build anti_hebbian` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

import jax.numpy as jnp

from numerics.runtime.interface import BulkLaw


def equations(p, z, r):
    """Each is zero at the bulk responses r at z, and vanishes as z grows:
    0 = R_psi0_M0_psi0 z - R_psi0_M0_psi0^2 - 1
    0 = G z - G R_psi0_M0_psi0 - 1
    """
    G, R_psi0_M0_psi0 = r
    return (-(R_psi0_M0_psi0**2) + R_psi0_M0_psi0 * z - 1, -G * R_psi0_M0_psi0 + G * z - 1)


def curve(p):
    """Table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the resolvent."""
    return ((1, 0), (0, -1), (1, 0))


def edge_polynomials(p):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""
    return ((-1, 2), (1, 2))


BULK = BulkLaw(
    responses=("G", "R_psi0_M0_psi0"),
    resolvent=0,
    equations=equations,
    curve_text="G**2 - G*{z} + 1",
    curve=curve,
    edge_polynomials=edge_polynomials,
)
