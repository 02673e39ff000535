# Written by `derive build deep_linear L=2 data=full_batch param=mup spectrum=isotropic kernel=shift teachers=alike` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

from numerics.runtime.interface import BulkLaw, CoefficientTable


def polynomials(p):
    """Equations that vanish as z grows, by products of z, responses and averages what multiplies them:
    [B1.0] 0 = R_psi0_J0T_psi1 z - R_psi0_J0T_psi1 R_psi1_J0_psi0 - 1
    [B2.0] 0 = R_psi1_J0_psi0 - 1 - R_psi0_J0T_psi1 R_psi1_J0_psi0/nu
    [B3.0] 0 = G z - G R_psi1_J0_psi0 - 1
    """
    return (
        (("1", -1), ("z R_psi0_J0T_psi1", 1), ("R_psi0_J0T_psi1 R_psi1_J0_psi0", -1)),
        (("1", -1), ("R_psi0_J0T_psi1 R_psi1_J0_psi0", -1 / p.nu), ("R_psi1_J0_psi0", 1)),
        (("1", -1), ("z G", 1), ("G R_psi1_J0_psi0", -1)),
    )


def curve_variables(p):
    """[G1.0] Table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the resolvent.
    A term of a coefficient is a number and the powers of these:
    """
    return (p.nu,)


def edge_polynomials_variables(p):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them.
    A term of a coefficient is a number and the powers of these:
    """
    return (p.nu,)


BULK = BulkLaw(
    responses=("G", "R_psi0_J0T_psi1", "R_psi1_J0_psi0"),
    resolvent=0,
    polynomials=polynomials,
    curve_text="-nu - G**2*{z} + G*(nu*{z} - nu + 1)",
    curve=CoefficientTable(curve_variables, ((("-1 1",), ()), (("-1 1, 1 0",), ("1 1",)), ((), ("-1 0",)))),
    edge_polynomials=CoefficientTable(
        edge_polynomials_variables, ((("1 0",), ()), (("1 2",), ("-2 2, -2 1",), ("1 2, -2 1, 1 0",)))
    ),
)
