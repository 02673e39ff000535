# Written by `derive build coupled_spikes_tanh` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

from numerics.runtime.interface import BulkLaw, CoefficientTable


def polynomials(p):
    """Equations that vanish as z grows, by products of z, responses and averages what multiplies them:
    [B1] 0 = R_psi0_W0T_psi1 z - sigma^2 R_psi0_W0T_psi1 R_psi1_W0_psi0 - 1
    [B2] 0 = R_psi1_W0_psi0 - 1 - sigma^2 R_psi0_W0T_psi1 R_psi1_W0_psi0/alpha
    [B3] 0 = G z - sigma^2 G R_psi1_W0_psi0 - 1
    """
    return (
        (("1", -1), ("z R_psi0_W0T_psi1", 1), ("R_psi0_W0T_psi1 R_psi1_W0_psi0", -(p.sigma**2))),
        (("1", -1), ("R_psi0_W0T_psi1 R_psi1_W0_psi0", -(p.sigma**2) / p.alpha), ("R_psi1_W0_psi0", 1)),
        (("1", -1), ("z G", 1), ("G R_psi1_W0_psi0", -(p.sigma**2))),
    )


def curve_variables(p):
    """[G1] Table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the resolvent.
    A term of a coefficient is a number and the powers of these:
    """
    return (p.alpha, p.sigma)


def edge_polynomials_variables(p):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them.
    A term of a coefficient is a number and the powers of these:
    """
    return (p.alpha, p.sigma)


BULK = BulkLaw(
    responses=("G", "R_psi0_W0T_psi1", "R_psi1_W0_psi0"),
    resolvent=0,
    polynomials=polynomials,
    curve_text="alpha + sigma**2*G**2*{z} + G*(alpha*sigma**2 - alpha*{z} - sigma**2)",
    curve=CoefficientTable(
        curve_variables, ((("1 1 0",), ()), (("1 1 2, -1 0 2",), ("-1 1 0",)), ((), ("1 0 2",)))
    ),
    edge_polynomials=CoefficientTable(
        edge_polynomials_variables,
        ((("1 0 0",), ()), (("-1 2 0",), ("2 2 2, 2 1 2",), ("-1 2 4, 2 1 4, -1 0 4",))),
    ),
)
