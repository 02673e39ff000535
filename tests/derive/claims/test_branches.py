"""Claims that are nearly right: other branches, left-out edges, empty statements, formulas that cannot be evaluated."""

from __future__ import annotations

import pytest

from derive.claims import check_claims, load_claims
from derive.errors import ClaimError

PRODUCT = """
from derive import *
a = parameter("a", default=2.0, domain=positive)
b = parameter("b", default=2.0, domain=positive)
p = parameter("p", default=4.0, domain=positive)
D, N, P = sectors("D", N=a, P=b)
A, B, x = gaussian("A", N, D), gaussian("B", P, N), normal("x", D)
MODEL = Model(parameters=(a, b, p), probe=spectrum(A.T @ B.T @ B @ A / N / P + p / D * outer(x, x)))
"""
SANDWICH = """
from derive import *
a = parameter("a", default=2.0, domain=positive)
D, N = sectors("D", N=a)
MODEL = Model(parameters=(a,), probe=spectrum(gaussian("A", N, D) @ goe("M0", D) @ gaussian("A", N, D).T / N))
"""
ROOT = "sqrt((a*b*{0}**2-(a+b-2)*{0})**2 - 4*(a*b*{0}**3+(a*b-a-b+1)*{0}**2))"


def _verdicts(declared, model: str, *claims: str):
    path = declared(model, "model.py")
    text = 'model = "model.py"\n' if model else 'model = "spiked_wigner"\n'
    toml = path.with_name("claims.toml")
    toml.write_text(text + "".join(f'[[claim]]\nname = "c{i}"\n{body}\n' for i, body in enumerate(claims)))
    return [v.status for v in check_claims(load_claims(toml))]


@pytest.mark.long_cases("outlier-p")
@pytest.mark.slow
@pytest.mark.parametrize("kind, letter", [("outlier", "p"), ("inverse_map", "s")])
def test_the_other_root_of_the_relation_fails(declared, kind, letter):
    half = f"((a*b*{letter}**2-(a+b-2)*{letter}) {{}} {ROOT.format(letter)})/2"
    region = "a > 2 and b > 2" + (" and p > 20" if letter == "p" else " and s > 3")
    claims = [f'kind = "{kind}"\nvalue = "{half.format(sign)}"\nregion = "{region}"' for sign in "-+"]
    assert _verdicts(declared, PRODUCT, *claims) == ["proved", "refuted"]


@pytest.mark.slow
def test_an_edge_left_out_fails(declared):
    inner = "sqrt(a**2 + 14*a + 1)"
    upper = f"sqrt(3)*sqrt(-2*a**3 + (2*a**2 + 28*a + 2)*{inner} + 66*a**2 + 66*a - 2)/(9*a)"
    one, both = (f'kind = "edges"\nvalue = [{values}]' for values in (f'"{upper}"', f'"{upper}", "-{upper}"'))
    statuses = _verdicts(declared, SANDWICH, one, both)
    assert statuses == ["refuted", "proved"]


@pytest.mark.parametrize(
    "body",
    [
        'kind = "resolvent"\nvalue = "(z - sqrt(z-2)*sqrt(z+2))/2 + exp(-4*z)"',
        'kind = "series"\nof = "outlier"\nin = "gamma0"\nset = "1/x**3"\norder = -3\nvalue = "2"',
    ],
)
def test_wrong_claim_fails(declared, body):
    assert _verdicts(declared, "", body) == ["refuted"]


def test_series_that_starts_at_a_negative_power(declared):
    body = 'kind = "series"\nof = "outlier"\nin = "gamma0"\nset = "1/x**3"\norder = -3\nvalue = "1"'
    assert _verdicts(declared, "", body) == ["proved"]


@pytest.mark.parametrize(
    "body",
    [
        'kind = "matrix"\nlabels = ["C_psi0_v"]\nrows_times = ["0"]\nvalue = [["0"]]',
        'kind = "kernel"\ntarget = "v"\nvalue = "0"',
        'kind = "covariance"\nnoises = ["v", "v"]\nvalue = "0"',
        'kind = "curve"\nvalue = "sqrt(G) - z"',
        'kind = "curve"\nvalue = "G**2 - exp(z)*G + 1"',
        'kind = "outlier"\nvalue = "1e400"',
        'kind = "outlier"\nvalue = "1e-400"',
        'kind = "outlier"\nvalue = "exp(exp(exp(exp(10))))"',
        'kind = "atom"\nposition = "0"\nvalue = "0"\nat = { gamma0 = "-1" }',
    ],
)
def test_claim_that_says_nothing_is_refused(declared, body):
    with pytest.raises(ClaimError) as caught:
        _verdicts(declared, "", body)
    assert "\n" not in str(caught.value)


def test_deep_nesting_is_refused(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("a=" + "[" * 5000)
    with pytest.raises(ClaimError):
        load_claims(path)
