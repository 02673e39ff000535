# Written by `derive build spiked_wigner` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

from numerics.runtime.interface import Cycle, Probe, Side
from numerics.runtime.operators import block, identity, operator


def a_matrix(p, z, r, order):
    """A(z), a row of blocks for the equation of each unknown."""
    _, R_psi0_M0_psi0 = r
    C_v_v = operator(order["C", "v", "v"])
    return block(
        [
            # [A1] C[psi0, v]
            [(z - R_psi0_M0_psi0) * identity(1) - p.gamma0 * C_v_v]
        ],
        (1,),
    )


def right_spikes(p, order):
    """For sources along v: the right-hand side of A(z) q = b,
    the rows of q that are its overlaps with them, and their Gram matrix.
    """
    C_v_v = operator(order["C", "v", "v"])
    return (block([[C_v_v]], (1,)), block([[identity(1)]], (1,)), block([[C_v_v]], (1,)))


def pencil_0(p, order):
    """[S1] The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""
    C_v_v = operator(order["C", "v", "v"])
    return block([[p.gamma0 * C_v_v]], (1,))


def scalar_map_0(p, z, r):
    """[S1] s(z) = z - R_psi0_M0_psi0"""
    _, R_psi0_M0_psi0 = r
    return z - R_psi0_M0_psi0


def relation_0(p, s):
    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""
    return (-s, s**2 + 1)


def inverse_map_0(p, s):
    """z(s) = (s^2 + 1)/s"""
    return (s**2 + 1) / s


PROBE = Probe(
    unknowns=("C_psi0_v",),
    a_matrix=a_matrix,
    sides=(Side("right", right_spikes),),
    cycles=(Cycle(pencil_0, scalar_map_0, relation_0, inverse_map_0, reads=(("C", "v", "v"),)),),
    reduced=True,
    steady=True,
)
