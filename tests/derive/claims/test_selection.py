"""Claims that are true in part of their region: refuted with a counterexample there, proved where they hold."""

from __future__ import annotations

import pytest

from derive.claims import check_claims, load_claims
from derive.errors import ClaimError

SPIKED_WIGNER, ANTI_HEBBIAN = "spiked_wigner", "anti_hebbian"
COVARIANCE = """
from sympy import sqrt
from derive import *
nu = parameter("nu", default=2.0, domain=positive)
l = parameter("l", default=3.0, domain=positive)
D, N = sectors("D", N=nu)
u, v = normal("u", N), normal("v", D)
Y = gaussian("X", N, D) + sqrt(l) * outer(u, v) / sqrt(D)
MODEL = Model(parameters=(nu, l), probe=spectrum(Y.T @ Y / N))
"""
TWO_BANDS = """
from derive import *
b = parameter("b", default=0.05, domain=positive)
k = parameter("k", default=4.0, domain=positive)
D = sectors("D")
s = trait("s", D, values=[b, -b])
v = normal("v", D)
MODEL = Model(parameters=(b, k), probe=spectrum(goe("M", D) + diag(s) + k / D * outer(v, v)))
"""
WISHART = """
from derive import *
nu = parameter("nu", default=2.0, domain=positive)
D, N = sectors("D", N=nu)
A = gaussian("A", N, D)
MODEL = Model(parameters=(nu,), probe=spectrum(A.T @ A / N))
"""
OUTLIER = 'kind = "outlier"\nvalue = "(l + 1)*(nu*l + 1)/(nu*l)"'
SPIKE = 'kind = "outlier"\nvalue = "gamma0 + 1/gamma0"'
OUTER, INNER = (f"sqrt((8*b**4 + 20*b**2 - 1 {sign} (8*b**2 + 1)**(3/2))/(8*b**2))" for sign in "+-")
TWO_EDGES = f'kind = "edges"\nvalue = ["-{OUTER}", "{OUTER}"]'
FOUR_EDGES = f'kind = "edges"\nvalue = ["-{OUTER}", "-{INNER}", "{INNER}", "{OUTER}"]'
LEAVES = 'kind = "threshold"\nparameter = "k"\nvalue = "sqrt((4*b**2 - 1 {} sqrt(8*b**2 + 1))/(2*(b**2 - 1)))"'
ATOM = 'kind = "atom"\nposition = "0"\nvalue = "{}"'
SIZE = (
    'kind = "matrix"\nlabels = ["C_psi0_v", "R_psi0_M0_v"]\nsize = "{}"\nvalue = [["1/G*I - gamma0*dt*C[v,v] - '
    'R[v,M0_v]", "-C[v,v]"], ["-gamma0*dt*R[v,M0_v].T", "1/G*I - R[v,M0_v].T"]]'
)
ROOT = "sqrt(z - 2)*sqrt(z + 2)"

CLAIMS = {
    "outlier of a covariance": (
        COVARIANCE,
        (f'{OUTLIER}\nregion = "l > 1/sqrt(nu)"', "proved"),
        (f'{OUTLIER}\nregion = "l > 1/nu"', "the outliers there are none"),
        (f'{OUTLIER}\nregion = "nu > 1 and l > 1"', "proved"),
        (OUTLIER, "the outliers there are none"),
    ),
    "outlier of a Wigner matrix": (
        SPIKED_WIGNER,
        (f'{SPIKE}\nregion = "gamma0 > 1"', "proved"),
        (f'{SPIKE}\nregion = "gamma0 > 99/100"', "the outliers there are none"),
        (f'{SPIKE}\nregion = "sqrt(gamma0**2) > 1"', "proved"),
        ('kind = "edges"\nvalue = ["-2", "2"]', "proved"),
        ('kind = "edges"\nvalue = ["-2", "2.0000000000001"]', "the edges left are 2.0000000"),
        ('kind = "edges"\nvalue = ["-2", "2 + 10**(-60)"]', "which differ by"),
        ('kind = "inverse_map"\nvalue = "s + 1/s"', "proved"),
        ('kind = "inverse_map"\nvalue = "sqrt((s + 1/s)**2)"', "refuted"),
        (f'kind = "scalar_map"\nvalue = "(z + {ROOT})/2"', "proved"),
        (f'kind = "scalar_map"\nvalue = "(z - {ROOT})/2"', "refuted"),
        (f'kind = "equation"\nvalue = "2*G - z + {ROOT}"', "proved"),
        (f'kind = "equation"\nvalue = "2*G - z - {ROOT}"', "refuted"),
        (
            f'kind = "block"\nrow = "C_psi0_v"\ncolumn = "C_psi0_v"\nvalue = "(z + {ROOT})/2*I - gamma0*C[v,v]"',
            "proved",
        ),
        (
            f'kind = "block"\nrow = "C_psi0_v"\ncolumn = "C_psi0_v"\nvalue = "(z - {ROOT})/2*I - gamma0*C[v,v]"',
            "refuted",
        ),
    ),
    "edges and thresholds of two bands": (
        TWO_BANDS,
        (TWO_EDGES, "edges of one region only need region"),
        (f'{TWO_EDGES}\nregion = "b < 1"', "proved"),
        (f'{FOUR_EDGES}\nregion = "b > 1"', "proved"),
        (f'{FOUR_EDGES}\nregion = "b < 1"', "refuted"),
        (LEAVES.format("-"), "proved"),
        (f'{LEAVES.format("+")}\nregion = "b > 1"', "proved"),
        (LEAVES.format("+"), "is not real"),
    ),
    "atom of a Wishart matrix": (
        WISHART,
        (ATOM.format("0"), "refuted"),
        (f'{ATOM.format("0")}\nregion = "nu > 9/10"', "refuted"),
        (f'{ATOM.format("0")}\nregion = "nu > 1"', "proved"),
        (f'{ATOM.format("1 - nu")}\nregion = "nu < 1"', "proved"),
        (ATOM.format("(1 - nu + sqrt((1 - nu)**2))/2"), "proved"),
        (ATOM.format("1 - nu"), "refuted"),
    ),
    "size of A(z)": (
        ANTI_HEBBIAN,
        (SIZE.format("2*T"), "proved"),
        (SIZE.format("2*T + (T - 30)*(T - 31)*(T - 32)"), "rows, the claim"),
    ),
}


@pytest.mark.long_cases("edges and thresholds of two bands")
@pytest.mark.parametrize("name", CLAIMS)
def test_claims_are_decided_in_their_whole_region(declared, name):
    """Verdicts, or refutations with a part of their reason."""
    model, *claims = CLAIMS[name]
    path = declared(model, "model.py").with_name("claims.toml")
    tables = "".join(f'[[claim]]\nname = "c{i}"\n{body}\n' for i, (body, _) in enumerate(claims))
    path.write_text(f'model = "{"model.py" if "MODEL" in model else model}"\n{tables}')
    for found, (body, told) in zip(check_claims(load_claims(path)), claims, strict=True):
        assert found.status == "proved" if told == "proved" else found.refuted, (body, found)
        assert told in f"{found.status} {found.detail}", (body, found)


def test_rows_that_vanish_on_the_bulk_are_refused(tmp_path):
    path = tmp_path / "claims.toml"
    body = 'kind = "matrix"\nlabels = ["C_psi0_v"]\nrows_times = ["G**2 - z*G + 1"]\nvalue = [["0"]]'
    path.write_text(f'model = "spiked_wigner"\n[[claim]]\nname = "it"\n{body}\n')
    with pytest.raises(ClaimError, match="multiplied by 0 says nothing"):
        check_claims(load_claims(path))


@pytest.mark.parametrize(("region", "status"), [("nu < 3*l", "refuted"), ("nu < 2*l", "proved")])
def test_values_given_by_at_hold_in_the_region_too(declared, region, status):
    """With nu = 2 there is an outlier for l > 1/sqrt(2)."""
    path = declared(COVARIANCE, "model.py").with_name("claims.toml")
    body = f'{OUTLIER}\nat = {{ nu = 2 }}\nregion = "{region}"'
    path.write_text(f'model = "model.py"\n[[claim]]\nname = "it"\n{body}\n')
    assert check_claims(load_claims(path))[0].status == status


def test_values_outside_the_region_are_refused(declared):
    path = declared(WISHART, "model.py").with_name("claims.toml")
    body = f'{ATOM.format("0")}\nat = {{ nu = 2 }}\nregion = "nu < 2"'
    path.write_text(f'model = "model.py"\n[[claim]]\nname = "it"\n{body}\n')
    with pytest.raises(ClaimError, match="lie outside the region"):
        check_claims(load_claims(path))
