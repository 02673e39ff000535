# Written by `derive build spiked_wigner` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

from numerics.runtime.interface import BulkLaw, CoefficientTable


def polynomials(p):
    """Equations that vanish as z grows, by products of z, responses and averages what multiplies them:
    [B1] 0 = R_psi0_M0_psi0 z - R_psi0_M0_psi0^2 - 1
    [B2] 0 = G z - G R_psi0_M0_psi0 - 1
    """
    return (
        (("1", -1), ("R_psi0_M0_psi0 R_psi0_M0_psi0", -1), ("z R_psi0_M0_psi0", 1)),
        (("1", -1), ("z G", 1), ("G R_psi0_M0_psi0", -1)),
    )


def curve_variables(p):
    """[G1] Table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the resolvent.
    A term of a coefficient is a number and the powers of these:
    """
    return ()


def edge_polynomials_variables(p):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them.
    A term of a coefficient is a number and the powers of these:
    """
    return ()


BULK = BulkLaw(
    responses=("G", "R_psi0_M0_psi0"),
    resolvent=0,
    polynomials=polynomials,
    curve_text="G**2 - G*{z} + 1",
    curve=CoefficientTable(curve_variables, ((("1",), ()), ((), ("-1",)), (("1",), ()))),
    edge_polynomials=CoefficientTable(edge_polynomials_variables, ((("-1",), ("2",)), (("1",), ("2",)))),
)
