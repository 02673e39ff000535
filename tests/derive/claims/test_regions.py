"""Claims with roots of parameters, and claims that are true in a region only: proved, failed or not decided."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from derive.claims import check_claims, load_claims
from derive.cli import main
from derive.errors import ClaimError

WIGNER = """
from sympy import sqrt
from derive import *
l = parameter("l", default=4.0, domain=positive)
D = sectors("D")
v = normal("v", D)
MODEL = Model(parameters=(l,), probe=spectrum(goe("M0", D) + sqrt(l) / D * outer(v, v)))
"""
TWO_SPIKES = """
from sympy import sqrt
from derive import *
c = parameter("c", default=2.0, domain=positive)
l = parameter("l", default=4.0, domain=positive)
m = parameter("m", default=9.0, domain=positive)
D, N = sectors("D", N=c)
u, v, w, y = normal("u", N), normal("v", D), normal("w", N), normal("y", D)
Y = gaussian("X", N, D) + sqrt(l) * outer(u, v) / sqrt(D) + sqrt(m) * outer(w, y) / sqrt(D)
MODEL = Model(parameters=(c, l, m), probe=spectrum(Y.T @ Y / N))
"""
CROSSED = """
from sympy import sqrt
from derive import *
l = parameter("l", default=4.0, domain=positive)
m = parameter("m", default=9.0, domain=positive)
D = sectors("D")
v, w = normal("v", D), normal("w", D)
spikes = sqrt(l) * outer(v, v) + sqrt(m) * outer(v, w) + sqrt(m) * outer(w, v)
MODEL = Model(parameters=(l, m), probe=spectrum(goe("M0", D) + spikes / D))
"""
DIFFERENCE = """
from derive import *
a = parameter("a", default=2.0, domain=positive)
D, N, P = sectors("D", N=a, P=a)
A, B = gaussian("A", N, D), gaussian("B", P, D)
MODEL = Model(parameters=(a,), probe=spectrum(A.T @ A / N - B.T @ B / P))
"""


@pytest.fixture
def verdicts(declared):
    def check(model: str, *claims: str):
        path = declared(model, "model.py").with_name("claims.toml")
        tables = "".join(f'[[claim]]\nname = "c{i}"\n{body}\n' for i, body in enumerate(claims))
        path.write_text('model = "model.py"\n' + tables)
        return check_claims(load_claims(path))

    return check


@pytest.mark.long
@pytest.mark.slow
def test_formulas_of_expand_are_proved_with_roots_of_parameters(verdicts):
    """What `derive expand --of outlier` and `--of threshold` print for two spikes of strengths sqrt(l) and sqrt(m)."""
    found = verdicts(
        TWO_SPIKES,
        'kind = "outlier"\nvalue = "(m + 1)*(c*m + 1)/(c*m)"\nregion = "m > 1/sqrt(c)"',
        'kind = "outlier"\nvalue = "(l + 1)*(c*l + 1)/(c*l)"\nregion = "c*l**2 > 1"',
        'kind = "threshold"\nparameter = "l"\nvalue = "1/sqrt(c)"',
        'kind = "series"\nof = "outlier"\nin = "m"\nset = "1/x"\norder = -1\nvalue = "1"',
    )
    assert [v.status for v in found] == ["proved"] * 4


def test_the_same_formulas_with_an_error_fail_with_a_counterexample(verdicts):
    outlier, threshold, early = verdicts(
        TWO_SPIKES,
        'kind = "outlier"\nvalue = "(m + 1)*(c*m + 2)/(c*m)"',
        'kind = "threshold"\nparameter = "l"\nvalue = "2/sqrt(c)"',
        'kind = "outlier"\nvalue = "(m + 1)*(c*m + 1)/(c*m)"\nregion = "m > 1/c"',
    )
    assert outlier.refuted and "c*m**2 - c*m*z + c*m + m + 1: at c = 82/37, l = 180/37, m = 441/37" in outlier.detail
    assert threshold.refuted and "critical where -c*l**2 + 1 vanishes" in threshold.detail
    assert early.refuted and "at l = 1/2, m = 1/5, c = 6 it is 2.2000000, the outliers there are 2.0" in early.detail


@pytest.mark.slow
def test_roots_of_two_parameters_in_one_outlier(verdicts):
    """Eigenvalues (sqrt(l) +- sqrt(l + 4 m))/2 of the two spikes, seen through s + 1/s."""
    upper = "sqrt(l)*(m - 1)/(2*m) + sqrt(l + 4*m)*(m + 1)/(2*m)"
    lower = "sqrt(l)*(m - 1)/(2*m) - sqrt(l + 4*m)*(m + 1)/(2*m)"
    wrong = "-sqrt(l)*(m - 1)/(2*m) + sqrt(l + 4*m)*(m + 1)/(2*m)"  # a root of the same polynomial, with -sqrt(l)
    both = "m > sqrt(l) + 1"
    regions = ((upper, "m > 1"), (lower, both), (lower, "m > 1"), (wrong, both), (wrong, "m > 1"))
    found = verdicts(CROSSED, *(f'kind = "outlier"\nvalue = "{value}"\nregion = "{r}"' for value, r in regions))
    assert [v.status for v in found] == ["proved", "proved", "refuted", "refuted", "refuted"]
    assert "at l = 1, m = 3/2 it is -2.0381261, the outliers there are 2.3714594" in found[2].detail


@pytest.mark.slow
def test_squares_under_roots_are_drawn_where_their_sign_is_known(verdicts):
    inside = "2 + sqrt(l - 2*sqrt(l) + 1)*(sqrt(l) - 1)/sqrt(l)"  # (sqrt(l) - 1)**2/sqrt(l) for l > 1 alone
    found = verdicts(
        WIGNER,
        'kind = "outlier"\nvalue = "sqrt(l + 2 + 1/l)"\nregion = "l > 1"',
        f'kind = "outlier"\nvalue = "{inside}"\nregion = "l > 1"',
        f'kind = "outlier"\nvalue = "{inside}"',
        f'kind = "outlier"\nvalue = "{inside}"\nregion = "l < 1"',
        'kind = "outlier"\nvalue = "2 + sqrt((sqrt(l) - 1)**2)*(sqrt(l) - 1)/sqrt(l)"\nregion = "l > 1"',
    )
    assert [v.status for v in found] == ["proved", "proved", "refuted", "refuted", "proved"]
    assert "at l = 1/2 the two sides differ" in found[2].detail


def test_with_a_region_there_must_be_an_outlier_throughout(verdicts):
    claim = 'kind = "outlier"\nvalue = "sqrt(l) + 1/sqrt(l)"'
    everywhere, above, beyond = verdicts(
        WIGNER, claim, f'{claim}\nregion = "l > 1"', f'{claim}\nregion = "1/2 < l < 3/4"'
    )
    assert everywhere.refuted and "at l = 1/4 it is 2.5000000, the outliers there are none" in everywhere.detail
    assert above.proved and above.detail.endswith("for l > 1")
    assert beyond.refuted and "the outliers there are none" in beyond.detail


@pytest.mark.slow
def test_inner_edges_are_edges_in_a_region(verdicts):
    """A difference of two Wishart matrices has a gap around zero where their ranks do not fill the space: a < 1/2."""
    middle = "a**2 - 10*a - 2"
    outer, inner = (f"sqrt((-({middle}) {sign} sqrt(({middle})**2 + 4*(2*a - 1)**3))/2)/a" for sign in "+-")
    two, four = f'["-{outer}", "{outer}"]', f'["-{outer}", "-{inner}", "{inner}", "{outer}"]'
    found = verdicts(
        DIFFERENCE,
        f'kind = "edges"\nvalue = {two}',
        f'kind = "edges"\nvalue = {two}\nregion = "a > 1/2"',
        f'kind = "edges"\nvalue = {four}\nregion = ["0 < a", "a < 1/2"]',
        f'kind = "edges"\nvalue = {two}\nregion = "a < 1/2"',
    )
    assert [v.status for v in found] == ["refuted", "proved", "proved", "refuted"]
    assert "at a = 1/3 the claim leaves out -0.25281754; edges of one region only need region" in found[0].detail


@pytest.mark.long_cases('"l*l < l and l > 1"-no point of the region')
@pytest.mark.slow
@pytest.mark.parametrize(
    ("region", "told"),
    [
        ('"l > 2 and l < 1"', "is empty"),
        ('"l < -1"', "lies outside the domain of l"),
        ('"l*l < l and l > 1"', "no point of the region"),
        ('"l == 2"', "is not a region"),
        ('"l"', "is not a region"),
        ('"l > 1 or l < 1/2"', "is not a region"),
        ('"1 < 2"', "compares numbers"),
        ('"beta > 1"', "uses beta"),
        ("\"__import__('os').getcwd() > 1\"", "not allowed in formulas"),
        ("3", "inequalities in quotes"),
        ("[]", "inequalities in quotes"),
    ],
)
def test_a_region_that_says_nothing_is_refused_in_one_sentence(verdicts, region, told):
    with pytest.raises(ClaimError) as caught:
        verdicts(WIGNER, f'kind = "outlier"\nvalue = "sqrt(l) + 1/sqrt(l)"\nregion = {region}')
    assert told in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "code", "summary"),
    [
        (["2"], 0, "1 of 1 claims proved"),
        (["2", "2 + log(l) + log(2) - log(2*l) + log(1 + l) - log(1 + l)"], 0, "2 of 2 claims proved"),
        (["2", "2 + log(1 + l) + log(2 + l) - log(2 + 3*l + l**2)"], 4, "1 of 2 claims proved, 1 not decided"),
        (
            ["3", "2 + log(1 + l) + log(2 + l) - log(2 + 3*l + l**2)"],
            1,
            "0 of 2 claims proved, 1 not decided, 1 refuted",
        ),
    ],
)
def test_the_exit_code_tells_refuted_from_not_decided(declared, values, code, summary):
    path = declared(WIGNER, "model.py").with_name("claims.toml")
    moment = '[[claim]]\nname = "c{}"\nkind = "moment"\norder = 4\nvalue = "{}"\n'
    path.write_text('model = "model.py"\n' + "".join(moment.format(i, value) for i, value in enumerate(values)))
    result = CliRunner().invoke(main, ["verify", "--claims", str(path)])
    assert result.exit_code == code and summary in result.stdout
    told = json.loads(CliRunner().invoke(main, ["verify", "--claims", str(path), "--json"]).stdout)
    assert (told["refuted"], told["not_decided"]) == (int(code == 1), int("not decided" in summary))


def test_a_sign_beside_the_resolvent_is_decided(verdicts):
    """|g| G is not g G where g may be negative, nor is |G| the resolvent below the bulk, where it is negative."""
    model = """
from derive import *
g = parameter("g", default=2.0, domain=real)
D = sectors("D")
v = normal("v", D)
MODEL = Model(parameters=(g,), probe=spectrum(goe("S", D) + g / D * outer(v, v)))
"""
    equation = 'kind = "equation"\nvalue = "{}"'
    false, true, below = verdicts(
        model,
        equation.format("sqrt(g**2)*G - g*G"),
        equation.format("sqrt(g**2)*G - Abs(g)*G + sqrt(z - 2)*sqrt(z + 2) - z + 2*G"),
        equation.format("sqrt(G**2) - G"),
    )
    assert (false.status, true.status, below.status) == ("refuted", "proved", "refuted")
