# Written by `derive build extensive_two_layer sample=population steps=1 output=left_out` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""

from numerics.runtime.interface import BulkLaw, CoefficientTable


def polynomials(p):
    """Equations that vanish as z grows, by products of z, responses and averages what multiplies them:
    [B1] 0 = R_psi0_BT_psi3 z - chi R_psi0_BT_psi3 R_psi3_B_psi0/nu - R_psi0_BT_psi3 R_psi1_W0_psi0 - 1
    [B2] 0 = R_psi2_B_psi0 - 1 - R_psi0_BT_psi3 R_psi3_B_psi0/nu
    [B3] 0 = R_psi3_B_psi0 - gamma nu R_psi1_A_psi2 R_psi2_B_psi0/chi
    [B4] 0 = R_psi0_W0T_psi1 z - chi R_psi0_W0T_psi1 R_psi3_B_psi0/nu - R_psi0_W0T_psi1 R_psi1_W0_psi0 - 1
    [B5] 0 = R_psi1_W0_psi0 - gamma R_psi1_W0_psi0 R_psi2_AT_psi1 - 1 - R_psi0_W0T_psi1 R_psi1_W0_psi0/nu
    [B6] 0 = R_psi2_AT_psi1 - R_psi0_BT_psi3 R_psi3_AT_psi1/nu
    [B7] 0 = R_psi3_AT_psi1 - gamma - gamma nu R_psi1_A_psi2 R_psi2_AT_psi1/chi
    [B8] 0 = R_psi1_A_psi2 - gamma R_psi1_A_psi2 R_psi2_AT_psi1 - gamma - R_psi0_W0T_psi1 R_psi1_A_psi2/nu
    [B9] 0 = G z - chi G R_psi3_B_psi0/nu - G R_psi1_W0_psi0 - 1
    """
    return (
        (
            ("1", -1),
            ("z R_psi0_BT_psi3", 1),
            ("R_psi0_BT_psi3 R_psi1_W0_psi0", -1),
            ("R_psi0_BT_psi3 R_psi3_B_psi0", -p.chi / p.nu),
        ),
        (("1", -1), ("R_psi0_BT_psi3 R_psi3_B_psi0", -1 / p.nu), ("R_psi2_B_psi0", 1)),
        (("R_psi1_A_psi2 R_psi2_B_psi0", -p.gamma * p.nu / p.chi), ("R_psi3_B_psi0", 1)),
        (
            ("1", -1),
            ("z R_psi0_W0T_psi1", 1),
            ("R_psi0_W0T_psi1 R_psi1_W0_psi0", -1),
            ("R_psi0_W0T_psi1 R_psi3_B_psi0", -p.chi / p.nu),
        ),
        (
            ("1", -1),
            ("R_psi0_W0T_psi1 R_psi1_W0_psi0", -1 / p.nu),
            ("R_psi1_W0_psi0 R_psi2_AT_psi1", -p.gamma),
            ("R_psi1_W0_psi0", 1),
        ),
        (("R_psi0_BT_psi3 R_psi3_AT_psi1", -1 / p.nu), ("R_psi2_AT_psi1", 1)),
        (("1", -p.gamma), ("R_psi1_A_psi2 R_psi2_AT_psi1", -p.gamma * p.nu / p.chi), ("R_psi3_AT_psi1", 1)),
        (
            ("1", -p.gamma),
            ("R_psi0_W0T_psi1 R_psi1_A_psi2", -1 / p.nu),
            ("R_psi1_A_psi2 R_psi2_AT_psi1", -p.gamma),
            ("R_psi1_A_psi2", 1),
        ),
        (("1", -1), ("z G", 1), ("G R_psi1_W0_psi0", -1), ("G R_psi3_B_psi0", -p.chi / p.nu)),
    )


def curve_variables(p):
    """[G1] Table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the resolvent.
    A term of a coefficient is a number and the powers of these:
    """
    return (p.chi, p.gamma, p.nu)


def edge_polynomials_variables(p):
    """Polynomials in z, highest power first: every edge of the support is a real root of one of them.
    A term of a coefficient is a number and the powers of these:
    """
    return (p.chi, p.gamma, p.nu)


BULK = BulkLaw(
    responses=(
        "G",
        "R_psi0_BT_psi3",
        "R_psi0_W0T_psi1",
        "R_psi1_A_psi2",
        "R_psi1_W0_psi0",
        "R_psi2_AT_psi1",
        "R_psi2_B_psi0",
        "R_psi3_AT_psi1",
        "R_psi3_B_psi0",
    ),
    resolvent=0,
    polynomials=polynomials,
    curve_text="chi*nu**2 - gamma**2*G**4*{z}**2 + G**3*(gamma**2*nu*{z}**2 - 2*gamma**2*nu*{z} + 2*gamma**2*{z}) + G**2*(chi*gamma**2*nu*{z} + chi*nu*{z} + gamma**2*nu**2*{z} - gamma**2*nu**2 - 2*gamma**2*nu*{z} + 2*gamma**2*nu - gamma**2) + G*(chi*gamma**2*nu**2 - chi*gamma**2*nu - chi*nu**2*{z} + chi*nu**2 - chi*nu - gamma**2*nu**2 + gamma**2*nu)",
    curve=CoefficientTable(
        curve_variables,
        (
            (("1 1 0 2",), (), ()),
            (("1 1 2 2, -1 1 2 1, 1 1 0 2, -1 1 0 1, -1 0 2 2, 1 0 2 1",), ("-1 1 0 2",), ()),
            (("-1 0 2 2, 2 0 2 1, -1 0 2 0",), ("1 1 2 1, 1 1 0 1, 1 0 2 2, -2 0 2 1",), ()),
            ((), ("-2 0 2 1, 2 0 2 0",), ("1 0 2 1",)),
            ((), (), ("-1 0 2 0",)),
        ),
    ),
    edge_polynomials=CoefficientTable(
        edge_polynomials_variables,
        (
            (("1 0 0 0",), ()),
            (
                ("4 3 4 5",),
                (
                    "1 4 6 4, 20 4 4 4, -8 4 2 4, -10 3 6 5, -10 3 6 4, -16 3 4 5, -16 3 4 4, 1 2 6 6, -10 2 6 5,",
                    "1 2 6 4",
                ),
                (
                    "4 5 6 3, 12 5 4 3, 12 5 2 3, 4 5 0 3, -2 4 8 4, -2 4 8 3, -52 4 6 4, -52 4 6 3, -26 4 4 4,",
                    "-26 4 4 3, 24 4 2 4, 24 4 2 3, 8 3 8 5, -4 3 8 4, 8 3 8 3, 36 3 6 5, -20 3 6 4, 36 3 6 3,",
                    "22 3 4 5, 44 3 4 4, 22 3 4 3, -2 2 8 6, -4 2 8 5, -4 2 8 4, -2 2 8 3, -4 2 6 6, 28 2 6 5,",
                    "28 2 6 4, -4 2 6 3, -2 1 8 6, 8 1 8 5, -2 1 8 4",
                ),
                (
                    "-8 5 8 3, -8 5 8 2, -32 5 6 3, -32 5 6 2, -48 5 4 3, -48 5 4 2, -32 5 2 3, -32 5 2 2, -8 5 0 3,",
                    "-8 5 0 2, 1 4 10 4, -2 4 10 3, 1 4 10 2, 42 4 8 4, -20 4 8 3, 42 4 8 2, 58 4 6 4, -52 4 6 3,",
                    "58 4 6 2, -6 4 4 4, -52 4 4 3, -6 4 4 2, -23 4 2 4, -18 4 2 3, -23 4 2 2, -2 3 10 5, 2 3 10 4,",
                    "2 3 10 3, -2 3 10 2, -28 3 8 5, -20 3 8 4, -20 3 8 3, -28 3 8 2, -40 3 6 5, 72 3 6 4, 72 3 6 3,",
                    "-40 3 6 2, -10 3 4 5, -38 3 4 4, -38 3 4 3, -10 3 4 2, 1 2 10 6, 2 2 10 5, -6 2 10 4, 2 2 10 3,",
                    "1 2 10 2, 6 2 8 6, -6 2 8 5, 64 2 8 4, -6 2 8 3, 6 2 8 2, 6 2 6 6, -26 2 6 5, -24 2 6 4,",
                    "-26 2 6 3, 6 2 6 2, -2 1 10 6, 2 1 10 5, 2 1 10 4, -2 1 10 3, 6 1 8 6, -14 1 8 5, -14 1 8 4,",
                    "6 1 8 3, 1 0 10 6, -2 0 10 5, 1 0 10 4",
                ),
                (
                    "4 5 10 3, -8 5 10 2, 4 5 10 1, 20 5 8 3, -40 5 8 2, 20 5 8 1, 40 5 6 3, -80 5 6 2, 40 5 6 1,",
                    "40 5 4 3, -80 5 4 2, 40 5 4 1, 20 5 2 3, -40 5 2 2, 20 5 2 1, 4 5 0 3, -8 5 0 2, 4 5 0 1,",
                    "-10 4 10 4, 10 4 10 3, 10 4 10 2, -10 4 10 1, -24 4 8 4, 24 4 8 3, 24 4 8 2, -24 4 8 1,",
                    "-12 4 6 4, 12 4 6 3, 12 4 6 2, -12 4 6 1, 8 4 4 4, -8 4 4 3, -8 4 4 2, 8 4 4 1, 6 4 2 4,",
                    "-6 4 2 3, -6 4 2 2, 6 4 2 1, 8 3 10 5, 8 3 10 4, -32 3 10 3, 8 3 10 2, 8 3 10 1, 22 3 8 5,",
                    "-64 3 8 4, 84 3 8 3, -64 3 8 2, 22 3 8 1, 12 3 6 5, -56 3 6 4, 88 3 6 3, -56 3 6 2, 12 3 6 1,",
                    "-2 3 4 5, 16 3 4 4, -28 3 4 3, 16 3 4 2, -2 3 4 1, -2 2 10 6, -14 2 10 5, 16 2 10 4, 16 2 10 3,",
                    "-14 2 10 2, -2 2 10 1, -6 2 8 6, 26 2 8 5, -20 2 8 4, -20 2 8 3, 26 2 8 2, -6 2 8 1, -4 2 6 6,",
                    "8 2 6 5, -4 2 6 4, -4 2 6 3, 8 2 6 2, -4 2 6 1, 4 1 10 6, 4 1 10 5, -16 1 10 4, 4 1 10 3,",
                    "4 1 10 2, -6 1 8 6, 12 1 8 5, -12 1 8 4, 12 1 8 3, -6 1 8 2, -2 0 10 6, 2 0 10 5, 2 0 10 4,",
                    "-2 0 10 3",
                ),
                (
                    "1 4 10 4, -4 4 10 3, 6 4 10 2, -4 4 10 1, 1 4 10 0, 4 4 8 4, -16 4 8 3, 24 4 8 2, -16 4 8 1,",
                    "4 4 8 0, 6 4 6 4, -24 4 6 3, 36 4 6 2, -24 4 6 1, 6 4 6 0, 4 4 4 4, -16 4 4 3, 24 4 4 2,",
                    "-16 4 4 1, 4 4 4 0, 1 4 2 4, -4 4 2 3, 6 4 2 2, -4 4 2 1, 1 4 2 0, -2 3 10 5, 6 3 10 4,",
                    "-4 3 10 3, -4 3 10 2, 6 3 10 1, -2 3 10 0, -2 3 8 5, 6 3 8 4, -4 3 8 3, -4 3 8 2, 6 3 8 1,",
                    "-2 3 8 0, 2 3 6 5, -6 3 6 4, 4 3 6 3, 4 3 6 2, -6 3 6 1, 2 3 6 0, 2 3 4 5, -6 3 4 4, 4 3 4 3,",
                    "4 3 4 2, -6 3 4 1, 2 3 4 0, 1 2 10 6, -9 2 10 4, 16 2 10 3, -9 2 10 2, 1 2 10 0, 2 2 8 6,",
                    "-16 2 8 5, 46 2 8 4, -64 2 8 3, 46 2 8 2, -16 2 8 1, 2 2 8 0, 1 2 6 6, -9 2 6 4, 16 2 6 3,",
                    "-9 2 6 2, 1 2 6 0, -2 1 10 6, 6 1 10 5, -4 1 10 4, -4 1 10 3, 6 1 10 2, -2 1 10 1, 2 1 8 6,",
                    "-6 1 8 5, 4 1 8 4, 4 1 8 3, -6 1 8 2, 2 1 8 1, 1 0 10 6, -4 0 10 5, 6 0 10 4, -4 0 10 3,",
                    "1 0 10 2",
                ),
            ),
        ),
    ),
)
