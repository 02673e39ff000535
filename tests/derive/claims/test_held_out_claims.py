"""Claims by hand on branches, walls, boundaries, atoms, maps and series, true and false: each with its verdict."""

from __future__ import annotations

import json

import pytest

from derive.api.verifying import _confirmed, check
from derive.claims import load_claims
from derive.claims.checking import ClaimVerdict, check_claims
from derive.claims.counterexamples import Counterexample

HEAD = "from sympy import Rational, sqrt\nfrom derive import *\n"
SIGNED = f"""{HEAD}
k = parameter("k", default=2.0, domain=real)
D = sectors("D")
v = normal("v", D)
MODEL = Model(parameters=(k,), probe=spectrum(goe("M", D) + k/D*outer(v, v)))
"""
TOUCHING = f"""{HEAD}
a = parameter("a", default=2.0, domain=real)
D = sectors("D")
v = normal("v", D)
MODEL = Model(parameters=(a,), probe=spectrum(goe("M", D) + (1 + (a - 1)**2)/D*outer(v, v)))
"""
SHIFTED = f"""{HEAD}
sg = parameter("sg", default=1.0, domain=positive)
k = parameter("k", default=2.0, domain=real)
c = parameter("c", default=0.5, domain=real)
D = sectors("D")
v = normal("v", D)
o = trait("o", D, values=[1, 1])
MODEL = Model(parameters=(sg, k, c), probe=spectrum(sg*goe("M", D) + c*diag(o) + k/D*outer(v, v)))
"""
COVARIANCE = f"""{HEAD}
nu = parameter("nu", default=2.0, domain=positive)
l = parameter("l", default=3.0, domain=positive)
D, N = sectors("D", N=nu)
u, v = normal("u", N), normal("v", D)
Y = gaussian("X", N, D) + sqrt(l) * outer(u, v) / sqrt(D)
MODEL = Model(parameters=(nu, l), probe=spectrum(Y.T @ Y / N))
"""
WISHART = f"""{HEAD}
nu = parameter("nu", default=2.0, domain=positive)
sg = parameter("sg", default=1.0, domain=positive)
k = parameter("k", default=0.5, domain=real)
D, N = sectors("D", N=nu)
v = normal("v", D)
A = gaussian("A", N, D)
MODEL = Model(parameters=(nu, sg, k), probe=spectrum(sg*A.T @ A / N + k/D*outer(v, v)))
"""
CUBED = f"""{HEAD}
k = parameter("k", default=3.0, domain=real)
m = parameter("m", default=2.0, domain=positive)
D = sectors("D")
v = normal("v", D)
MODEL = Model(parameters=(k, m), probe=spectrum(goe("M", D) + (k**3 + m)/D*outer(v, v)))
"""
TWO_SPIKES = f"""{HEAD}
k = parameter("k", default=3.0, domain=real)
m = parameter("m", default=2.0, domain=real)
D = sectors("D")
v, w = normal("v", D), normal("w", D)
MODEL = Model(parameters=(k, m), probe=spectrum(goe("M", D) + (k*outer(v, v) + m*outer(w, w))/D))
"""
CURVED = f"""{HEAD}
a = parameter("a", default=3.0, domain=real)
b = parameter("b", default=0.5, domain=real)
D = sectors("D")
v = normal("v", D)
MODEL = Model(parameters=(a, b), probe=spectrum(goe("M", D) + (1 + (a**2 - 2*b**2)**2)/D*outer(v, v)))
"""
ROOTED = f"""{HEAD}
q = parameter("q", default=0.5, domain=Domain(0, 1))
k = parameter("k", default=2.0, domain=real)
D = sectors("D")
v = normal("v", D)
MODEL = Model(parameters=(q, k), probe=spectrum(sqrt(1 - q**2)*goe("M", D) + k/D*outer(v, v)))
"""
BANDS = f"""{HEAD}
b = parameter("b", default=0.05, domain=real)
k = parameter("k", default=4.0, domain=real)
D = sectors("D")
s = trait("s", D, values=[b, -b])
v = normal("v", D)
MODEL = Model(parameters=(b, k), probe=spectrum(goe("M", D) + diag(s) + k/D*outer(v, v)))
"""
MOVING = f"""{HEAD}
a = parameter("a", default=2.0, domain=real)
D, N = sectors("D", N=Rational(1, 4))
A = gaussian("A", N, D)
o = trait("o", D, values=[a, -a])
MODEL = Model(parameters=(a,), probe=spectrum(A.T @ A / N + diag(o)))
"""
MEETING = f"""{HEAD}
a = parameter("a", default=1.0, domain=real)
m = parameter("m", default=2.0, domain=real)
D = sectors("D")
v = normal("v", D)
MODEL = Model(parameters=(a, m), probe=spectrum(goe("M", D) + (1 + (m - a)*(m - a - (a**2 - 2)))/D*outer(v, v)))
"""
MASS = f"""{HEAD}
nu = parameter("nu", default=2.0, domain=positive)
k = parameter("k", default=3.0, domain=real)
D, N = sectors("D", N=nu)
v = normal("v", D)
A = gaussian("A", N, D)
MODEL = Model(parameters=(nu, k), probe=spectrum(A.T @ A / N + k/D*outer(v, v)))
"""
CONTACT = f"""{HEAD}
w = parameter("w", default=2.0, domain=Domain(1, float("inf")))
D = sectors("D")
s = trait("s", D, values=[sqrt((w**2 - 1)/8), -sqrt((w**2 - 1)/8)])
MODEL = Model(parameters=(w,), probe=spectrum(goe("M", D) + diag(s)))
"""
SUM = f"""{HEAD}
nu = parameter("nu", default=2.0, domain=positive)
sg = parameter("sg", default=0.5, domain=real)
D, N = sectors("D", N=nu)
A = gaussian("A", N, D)
MODEL = Model(parameters=(nu, sg), probe=spectrum(A.T @ A / N + sg*goe("M", D)))
"""
WIGNER, COUPLED, PLASTIC = "spiked_wigner", "coupled_spikes", "anti_hebbian"


def outlier(value: str, region: str = "", more: str = "") -> str:
    return _table("outlier", region, more, value=value)


def threshold(parameter: str, value: str, region: str = "", more: str = "") -> str:
    return _table("threshold", region, more, parameter=parameter, value=value)


def atom(position: str, value: str, region: str = "") -> str:
    return _table("atom", region, position=position, value=value)


def edges(*values: str, region: str = "") -> str:
    listed = ", ".join(f'"{value}"' for value in values)
    return _table("edges", region, f"value = [{listed}]")


def series(of: str, variable: str, replaced: str, order: int, value: str, more: str = "") -> str:
    return _table("series", "", f"order = {order}\n{more}", of=of, **{"in": variable, "set": replaced, "value": value})


def formula(kind: str, value: str, region: str = "", more: str = "") -> str:
    return _table(kind, region, more, value=value)


def _table(kind: str, region: str, more: str = "", **keys: str) -> str:
    lines = [f'kind = "{kind}"', *(f'{key} = "{text}"' for key, text in keys.items()), more]
    return "\n".join([*lines, f'region = "{region}"' if region else ""])


OUTER, INNER = (f"sqrt((8*b**4 + 20*b**2 - 1 {sign} (8*b**2 + 1)**(3/2))/(8*b**2))" for sign in "+-")
EDGES = (f"-{OUTER}", f"-{INNER}", INNER, OUTER)
TOUCHES = "1 + (a-1)**2 + 1/(1 + (a-1)**2)"
SPIKE = "(l + 1)*(nu*l + 1)/(nu*l)"
PAIR = "(theta**2 + sigma**2)*(theta**2 + sigma**2/alpha)/theta**2"
ROOT = "(z + sqrt(z**2 - 4))/2"
MP = "((z - 1)*nu + 1 {} sqrt(nu*z - (sqrt(nu) + 1)**2)*sqrt(nu*z - (sqrt(nu) - 1)**2))/(2*z)"
CUBE, CURVE = "(k**3 + m)", "(1 + (a**2 - 2*b**2)**2)"
BESIDE = "k + nu*k/(nu*k - 1)"
MAX, MIN = "Max(gamma0, 1/gamma0)", "Min(gamma0, 1/gamma0)"
HALVES = "(k**2 - k*Abs(k))/(k*(k - Abs(k)))*(1 + 1/nu)"
FAR_EDGE, NEAR_EDGE = "(w + 3)**(3/2)/sqrt(8*(w + 1))", "(w - 3)**(3/2)/sqrt(8*(w - 1))"
ONE, THREE = "at = { T = 1 }", "at = { S = 1 }"

HELD_OUT = {
    "a spike of either sign": (
        SIGNED,
        (True, outlier("k + 1/k", "k > 1")),
        (True, outlier("k + 1/k", "k < -1")),
        (True, outlier("k + 1/k", "k**2 > 1")),
        (False, outlier("k + 1/k", "k**2 >= 1")),  # at k = 1 it is the edge
        (False, outlier("k + 1/k", "k >= 1")),
        (False, outlier("k + 1/k", "k > 999/1000")),
        (True, outlier("sqrt(k**2 + 1/k**2 + 2)", "k > 1")),
        (False, outlier("sqrt(k**2 + 1/k**2 + 2)", "k**2 > 1")),
        (False, outlier("k + 1/k + 10**(-13)", "k > 1")),
        (False, outlier("k + 1/k + (k - 2)**2", "k > 1")),  # true at the default
        (True, threshold("k", "1")),
        (True, threshold("k", "-1")),
        (False, threshold("k", "0")),
        (False, threshold("k", "2")),
        (True, series("outlier", "k", "1/x", 1, "1")),
        (False, series("outlier", "k", "1/x", 1, "2")),
        (False, series("outlier", "k", "x", 0, "0")),
        (True, outlier("k + 1/k", "Abs(k) > 1")),
        (False, outlier("k + 1/k", "Abs(k) > 99/100")),
        (True, outlier("(k**3)**(1/3) + 1/k", "k > 1")),
        (False, outlier("(k**3)**(1/3) + 1/k", "k**2 > 1")),
        (True, threshold("k", "1", "k > 0")),
        (False, threshold("k", "1", "k > 5")),
        (False, formula("moment", "integral(sqrt(y**2), y, 0, -1) + 1/2", more="order = 2")),
        (True, formula("moment", "integral(sqrt(y**2), y, 0, -1) + 3/2", more="order = 2")),
        (True, formula("curve", "(k**2 + 1)*(G**2 - z*G + 1)")),
        (True, formula("inverse_map", "s + 1/s")),
        (False, formula("inverse_map", "Abs(s) + 1/Abs(s)")),
        (True, formula("inverse_map", "Abs(s) + 1/Abs(s)", "s > 0")),
    ),
    "an outlier that touches the bulk": (
        TOUCHING,
        (False, outlier(TOUCHES)),  # none at a = 1
        (True, outlier(TOUCHES, "a > 1")),
        (True, outlier(TOUCHES, "a < 1")),
        (False, outlier(TOUCHES, "a > 99/100")),
        (False, threshold("a", "1")),
    ),
    "a domain that ends": (
        CUBED,
        (True, outlier(f"{CUBE} + 1/{CUBE}", "k**3 + m > 1")),
        (False, outlier(f"{CUBE} + 1/{CUBE}", "k**3 + m > 99/100")),
        (False, outlier(f"{CUBE} + 1/{CUBE}", "m > 1/2 and k > 0")),
        (True, threshold("m", "1 - k**3", "k < 1")),
        (False, threshold("m", "1 - k**3")),
    ),
    "cube roots": (
        CUBED,
        (True, outlier(f"{CUBE} + 1/{CUBE}", "k > (1 - m)**(1/3) and m < 1")),
        (False, outlier(f"{CUBE} + 1/{CUBE}", "k > (1 - m)**(1/3) - 1/10 and m < 1")),
        (True, outlier(f"({CUBE}**3)**(1/3) + 1/{CUBE}", "k**3 + m > 1")),
        (False, outlier(f"({CUBE}**3)**(1/3) + 1/{CUBE}", "(k**3 + m)**2 > 1")),
        (True, threshold("k", "(1 - m)**(1/3)", "m < 1")),
        (True, threshold("k", "-(m - 1)**(1/3)", "m > 1")),
        (False, threshold("k", "(1 - m)**(1/3)")),
    ),
    "the larger of two spikes": (
        TWO_SPIKES,
        (True, outlier("Max(k, m) + 1/Max(k, m)", "k > 1 and m > 1")),
        (False, outlier("Max(k, m) + 1/Max(k, m)", "k > 1/2")),
        (False, outlier("Min(k, m) + 1/Min(k, m)", "k > 1")),
        (True, outlier("k + 1/k", "k - Abs(m) > 1")),
        (False, outlier("k + 1/k", "sqrt(k**2 - m**2) > 1/2 and k > 0")),
        (False, threshold("k", "1", "m > 1 and k > 2")),
    ),
    "a region with an irrational boundary": (
        CURVED,
        (False, outlier(f"{CURVE} + 1/{CURVE}")),
        (True, outlier(f"{CURVE} + 1/{CURVE}", "a**2 > 2*b**2")),
        (True, outlier(f"{CURVE} + 1/{CURVE}", "a > sqrt(2)*b and b > 0")),
    ),
    "a root in the declaration": (
        ROOTED,
        (True, edges("-2*sqrt(1 - q)*sqrt(1 + q)", "2*sqrt(1 - q**2)")),
        (False, edges("-2*sqrt(1 - q)", "2*sqrt(1 - q)")),
        (True, outlier("k + (1 - q**2)/k", "k**2 + q**2 > 1")),
        (False, outlier("k + (1 - q**2)/k", "k > 1 - q**2")),
        (True, threshold("k", "sqrt(1 - q**2)")),
        (False, threshold("q", "sqrt(1 - k**2)", "Abs(k) < 1")),  # at k = 0 it is 1, outside the domain
        (True, formula("moment", "1 - q**2", more="order = 2")),
    ),
    "three parameters": (
        SHIFTED,
        (True, edges("c - 2*sg", "c + 2*sg")),
        (False, edges("1/2 - 2*sg", "1/2 + 2*sg")),
        (False, edges("Abs(c) - 2*sg", "Abs(c) + 2*sg")),
        (True, edges("Abs(c) - 2*sg", "Abs(c) + 2*sg", region="c > 0")),
        (True, outlier("c + k + sg**2/k", "k > sg")),
        (True, outlier("c + k + sg**2/k", "k < -sg")),
        (False, outlier("c + k + sg**2/k", "k > sg**2")),
        (True, threshold("k", "-sg")),
        (False, threshold("k", "sg**2")),
        (False, threshold("k", "sg + c")),
        (True, formula("moment", "sg**2 + c**2", more="order = 2")),
        (False, formula("moment", "sg**2 + c/2", more="order = 2")),
    ),
    "a spiked covariance": (
        COVARIANCE,
        (True, outlier(SPIKE, "nu*l**2 > 1")),
        (False, outlier(SPIKE, "nu*l**2 >= 1")),
        (True, threshold("l", "1/sqrt(nu)")),
        (False, threshold("l", "1/nu")),
        (False, threshold("l", "sqrt(nu)/2")),  # true at nu = 2
        (True, atom("0", "1 - nu", "nu <= 1")),
        (True, atom("0", "Max(0, 1 - nu)")),
        (False, atom("0", "Max(0, 1 - nu**2)")),
        (True, edges("(1 - 1/sqrt(nu))**2", "(1 + 1/sqrt(nu))**2")),
        (False, edges("(1 - sqrt(nu))**2", "(1 + sqrt(nu))**2")),
        (True, series("edge upper", "nu", "1/x**2", 1, "2")),
        (True, series("outlier", "l", "1/x", 0, "1 + 1/nu")),
        (False, series("outlier", "l", "x", 0, "1 + 1/nu")),
        (True, formula("resolvent", MP.format("-"))),
        (False, formula("resolvent", MP.format("+"))),
        (True, series("threshold", "nu", "1/x**2", 1, "1", 'parameter = "l"')),
        (False, series("threshold", "nu", "1/x**2", 2, "1", 'parameter = "l"')),
        (False, series("threshold", "nu", "1/x**2", 1, "1", 'parameter = "l"\nnumber = 2')),
        (True, series("atom", "nu", "x", 1, "-1", 'position = "0"')),
        (True, series("atom", "nu", "1/x", 0, "0", 'position = "0"')),
        (False, series("atom", "nu", "1/x", 0, "1", 'position = "0"')),
    ),
    "a spike on a Wishart matrix": (
        WISHART,
        (True, threshold("k", "sg/sqrt(nu)*(1 + 1/sqrt(nu))")),
        (False, threshold("k", "sg/sqrt(nu)")),
        (False, edges("sg**2*(1 - 1/sqrt(nu))**2", "sg**2*(1 + 1/sqrt(nu))**2")),  # true at the default
        (True, series("scalar_map", "z", "1/x", 0, "-sg")),
        (False, series("scalar_map", "z", "1/x", 0, "sg")),
        (True, series("inverse_map", "s", "1/x", 0, "sg")),
        (True, series("threshold", "nu", "1/x**2", 2, "sg", 'parameter = "k"')),
        (True, series("threshold", "nu", "1/x**2", 1, "-sg", 'parameter = "k"\nnumber = 2')),
    ),
    "bands on both sides of zero": (
        BANDS,
        (False, edges(f"-{OUTER}", OUTER)),
        (True, edges(f"-{OUTER}", OUTER, region="0 < b < 1")),
        (True, edges(f"-{OUTER}", OUTER, region="-1 < b < 1")),
        (True, edges(f"-{OUTER}", f"-{INNER}", INNER, OUTER, region="b < -1")),
        (False, edges(f"-{OUTER}", f"-{INNER}", INNER, OUTER, region="b**2 > 99/100")),
        (False, edges(f"-{OUTER}", f"-{INNER}", INNER, OUTER, region="b >= 1")),  # one band at b = 1
        (True, series("threshold", "b", "x", 0, "-1", 'parameter = "k"\nnumber = 2')),
        (True, series("threshold", "b", "1/x", 0, "sqrt(2)", 'parameter = "k"')),
        (True, series("threshold", "b", "1/x", 1, "-1/2", 'parameter = "k"')),
        (False, series("threshold", "b", "1/x", 0, "-sqrt(2)", 'parameter = "k"')),
    ),
    "atoms that move": (
        MOVING,
        (False, atom("a", "1/4")),  # at a = 0 two are one
        (True, atom("a", "1/4", "a > 0")),
        (True, atom("-a", "1/4", "a < 0")),
        (False, atom("a", "1/4", "a > -1")),
        (False, atom("2", "1/4")),
    ),
    "an outlier on both sides of zero": (  # where branches other than the physical one diverge for nu > 1
        MASS,
        (True, outlier(BESIDE, "k < -1/4")),
        (False, outlier(BESIDE, "k < -6/25")),
        (True, outlier(BESIDE, "nu > 1 and k < 1/nu - 1/sqrt(nu)")),
        (True, outlier(BESIDE, "nu <= 1 and k < 0")),
        (True, outlier(BESIDE, "nu < 1 and k > 0 and k < 1/nu - 1/sqrt(nu)")),
        (False, outlier(BESIDE, "nu < 1 and k > 0 and k < 1/nu")),
        (False, outlier(BESIDE, "nu < 1 and k < 1/nu - 1/sqrt(nu)")),  # at k = 0 there is none
        (False, outlier(BESIDE, "nu > 1/2 and k < 0 and nu < 101/100")),
        (True, outlier("(nu*k**2 + (nu - 1)*k)/(nu*k - 1)", "k < -1/4")),
        (True, threshold("k", "(1 - sqrt(nu))/nu", "nu < 1")),
        (True, atom("0", "Max(1, nu) - nu")),
        (False, atom("0", "Max(0, 1 - nu) + Max(0, 1/10**6 - nu)/10**6")),
        (True, formula("moment", HALVES, "k < 0", "order = 2")),
    ),
    "bands that touch": (
        CONTACT,
        (True, edges(f"-{FAR_EDGE}", FAR_EDGE, region="w <= 3")),
        (False, edges(f"-{FAR_EDGE}", FAR_EDGE, region="w < 301/100")),
        (True, edges(f"-{FAR_EDGE}", f"-{NEAR_EDGE}", NEAR_EDGE, FAR_EDGE, region="w > 3")),
        (False, edges(f"-{FAR_EDGE}", f"-{NEAR_EDGE}", NEAR_EDGE, FAR_EDGE, region="w >= 3")),
    ),
    "larger, smaller and hyperbolic": (
        WIGNER,
        (True, outlier(f"{MAX} + {MIN}", "gamma0 > 1")),
        (False, outlier(f"{MAX} + {MIN}")),
        (False, outlier(f"2*{MAX}", "gamma0 > 1")),
        (True, outlier("2*cosh(log(gamma0))", "gamma0 > 1")),
        (False, outlier("2*sinh(log(gamma0))", "gamma0 > 1")),
        (True, outlier("2 + 4*sinh(log(gamma0)/2)**2", "gamma0 > 1")),
        (False, outlier("2*cosh(log(gamma0)) + log(gamma0/2)**2/10**12", "gamma0 > 1")),
        (True, formula("inverse_map", "Max(s, 1/s) + Min(s, 1/s)")),
        (False, formula("inverse_map", "Max(s, 1/s) + Min(s, 1/s) + Max(0, s - 1000)")),
        (True, formula("equation", "Abs(z) - G - 1/G", "z > 2")),
        (False, formula("equation", "Abs(z) - G - 1/G")),
        (True, formula("scalar_map", "Max(z, 2) - G", "z > 2")),
        (False, formula("scalar_map", "Max(z, 5) - G", "z > 2")),
    ),
    "signs": (
        SIGNED,
        (False, formula("moment", "sign(k)**2", more="order = 2")),  # 0 at k = 0
        (False, formula("moment", "Abs(sign(k - 1))", more="order = 2")),
        (True, formula("moment", "sign(k)**2", "k > 0", "order = 2")),
        (False, edges("-2*sign(k)**2", "2*sign(k)**2")),
        (True, formula("scalar_map", "sign(z)*(Abs(z) + sqrt(z**2 - 4))/2")),
        (True, formula("equation", "Max(0, G - 1)")),
        (False, formula("equation", "Max(0, G - 9/10)")),
        (True, formula("equation", "Max(0, 2 - z)*Max(0, z + 2)")),
        (False, formula("equation", "Max(0, 3 - z)*Max(0, z - 2)")),
        (True, formula("equation", "G*Abs(G) - 2*G/(Abs(z) + sqrt(z**2 - 4))", "z > 2")),
        (False, threshold("k", "1", "exp(k) > 3")),
    ),
    "a wall on which cells are others": (  # at sg = 0 zero has the mass 1 - nu for nu < 1, and none for nu > 1
        SUM,
        (False, atom("0", "0")),
        (False, atom("0", "0", "nu < 2")),
        (False, atom("0", "0", "sg >= 0")),
        (True, atom("0", "0", "sg > 0")),
        (True, atom("0", "0", "nu >= 1")),
        (True, atom("0", "(1 - sign(sg)**2)*Max(0, 1 - nu)")),
        (False, series("atom", "nu", "x", 0, "0", 'position = "0"')),
        (True, series("edge upper", "nu", "1/x", 0, "1 + 2*Abs(sg)")),
        (False, series("edge upper", "nu", "1/x", 0, "1 + 2*sg")),
    ),
    "plastic matrix": (
        PLASTIC,
        (False, outlier("gamma0*dt + 1/(gamma0*dt)", more=ONE)),
        (True, outlier("gamma0*dt + 1/(gamma0*dt)", "gamma0*dt < -1", ONE)),
        (True, threshold("gamma0", "-1/dt", more=ONE)),
        (False, threshold("gamma0", "10", more=ONE)),  # true at the default dt
    ),
    "rectangular matrix": (
        COUPLED,
        (True, outlier(PAIR, "theta**4*alpha > sigma**4", THREE)),
        (False, outlier(PAIR, "theta**2*alpha > sigma**2", THREE)),
        (False, threshold("theta", "sigma**2/alpha**(1/4)", more=THREE)),
    ),
    "bounds on z": (
        WIGNER,
        (True, formula("scalar_map", ROOT, "z > 2")),
        (False, formula("scalar_map", ROOT, "z < -2")),
        (False, formula("scalar_map", ROOT)),
        (True, formula("resolvent", ROOT, "z < -2")),
        (False, formula("resolvent", ROOT, "z > 2")),
        (True, series("scalar_map", "z", "1/x", 3, "-1")),
        (True, outlier("gamma0 + 2*integral(y, y, 0, 1)/gamma0", "gamma0 > 1")),
        (False, outlier("gamma0 + 3*integral(y, y, 0, 1)/gamma0", "gamma0 > 1")),
    ),
}


@pytest.fixture
def claims(declared):
    """A claims file of a model and some bodies of claims."""

    def write(model: str, *bodies: str):
        path = declared(model, "model.py").with_name("claims.toml")
        tables = "".join(f'[[claim]]\nname = "c{i}"\n{body}\n' for i, body in enumerate(bodies))
        path.write_text(f'model = "{"model.py" if "MODEL" in model else model}"\n{tables}')
        return load_claims(path)

    return write


QUICK = (
    "bands that touch",
    "larger, smaller and hyperbolic",
    "an outlier that touches the bulk",
    "a domain that ends",
    "atoms that move",
    "bounds on z",
    "signs",
    "a wall on which cells are others",
)


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in HELD_OUT])
def test_true_claims_are_proved_and_false_ones_refuted(claims, name):
    model, *held_out = HELD_OUT[name]
    file = claims(model, *(body for _, body in held_out))
    for found, (true, body) in zip(check_claims(file), held_out, strict=True):
        assert found.status == ("proved" if true else "refuted"), (body, found)


@pytest.mark.parametrize(
    ("region", "status"),
    [("", "supported"), ("a > 1", "supported"), ("a > 2", "proved")],
    ids=["all", "wall", "beyond"],
)
def test_a_threshold_that_meets_another_at_an_irrational_wall_is_not_proved(claims, region, status):
    """At a = sqrt(2) the spike's strength is 1 + (m - a)**2, so that no outlier leaves."""
    (found,) = check_claims(claims(MEETING, threshold("m", "a", region)))
    assert found.status == status, found


def test_a_threshold_at_a_rational_wall_of_a_root_is_proved(claims):
    (found,) = check_claims(claims(COVARIANCE, threshold("l", "1/sqrt(nu)")))
    assert found.status == "proved", found


@pytest.mark.slow
def test_the_solver_confirms_counterexamples(claims):
    """Outliers, on a wall too, thresholds and edges."""
    file = claims(SIGNED, outlier("k + 1/k", "k >= 1"), threshold("k", "2"), edges("-2", "3"))
    given = ("solve` gives the outliers: none", "gives 1 outliers at k = 1.5 and 1 at k = 2.5", "the edges: -2, 2")
    for verdict, told in zip(check([file]), given, strict=True):
        assert verdict.refuted and told in verdict.detail, verdict


@pytest.mark.parametrize(("same", "status"), [(True, "refuted"), (None, "refuted"), (False, "not decided")])
def test_a_solver_that_contradicts_leaves_a_claim_undecided(same, status):
    verdict = ClaimVerdict(
        "c", "refuted", "at k = 2 it is 3", counterexample=Counterexample((("k", 2),), "outliers", (2.5,))
    )
    found = _confirmed(verdict, lambda against: (same, "`derive solve` gives the outliers: 2.7"))
    assert found.status == status and "2.7" in found.detail
    assert ("internal error" in found.detail and "2.5" in found.detail) == (same is False)


@pytest.mark.parametrize(
    "body",
    [
        formula("curve", "(k - Abs(k))*(G**2 - 5*z*G + 1)", "k > 0"),  # zero times another curve
        formula("curve", "(k + Abs(k))*(G**2 - z*G + 1)"),
    ],
)
def test_a_curve_times_zero_says_nothing(claims, body):
    (found,) = check_claims(claims(SIGNED, body))
    assert found.status == "not decided" and "0 = 0 says nothing" in found.detail


def test_a_formula_that_divides_by_zero_is_not_proved(claims):
    (found,) = check_claims(claims(MASS, formula("moment", HALVES, "k > 0", "order = 2")))
    assert found.status == "not decided" and "k - Abs(k) may be zero" in found.detail


@pytest.mark.parametrize(("size", "status"), [("4*S + Max(0, 2 - S)", "refuted"), ("Max(4*S, 3*S)", "proved")])
def test_sizes_are_tried_at_the_smallest_whole_numbers(claims, size, status):
    labels = ["C_psi0_phi", "R_psi0_xi", "C_psi1_g", "R_psi1_chi"]
    rows = [
        ["1/G*I", "0", "-C[phi,phi] - sigma**2/alpha*R[phi,xi]", "-sigma**2*C[phi,phi]"],
        ["0", "1/G*I", "-R[phi,xi].T", "-sigma**2*R[phi,xi].T"],
        ["-C[g,g] - sigma**2*R[g,chi]", "-sigma**2/alpha*C[g,g]", "(1 - sigma**2*G/alpha)*I", "0"],
        ["-R[g,chi].T", "-sigma**2/alpha*R[g,chi].T", "0", "(1 - sigma**2*G/alpha)*I"],
    ]
    body = f'kind = "matrix"\nlabels = {json.dumps(labels)}\nsize = "{size}"\nvalue = {json.dumps(rows)}'
    (found,) = check_claims(claims(COUPLED, body))
    assert found.status == status, found


@pytest.mark.slow
def test_the_solver_confirms_that_touching_bands_are_one(claims):
    body = edges(f"-{FAR_EDGE}", f"-{NEAR_EDGE}", NEAR_EDGE, FAR_EDGE, region="w >= 3")
    (verdict,) = check([claims(CONTACT, body)])
    assert verdict.refuted and "gives the edges: -2.59808, 2.59808" in verdict.detail, verdict


@pytest.mark.parametrize(
    ("model", "body", "told"),
    [
        (MOVING.replace("[a, -a]", "[a, 2/a]"), atom("a", "1/4", "a > 1"), "2 - a**2 = 0"),  # two atoms are one there
        (
            BANDS.replace("[b, -b]", "[sqrt(2)*b, -sqrt(2)*b]"),
            edges(*(edge.replace("b", "(sqrt(2)*b)") for edge in EDGES), region="2*b**2 >= 1 and b > 0"),
            "1 - 2*b**2 = 0",
        ),
    ],
)
@pytest.mark.long
def test_what_may_fail_at_an_irrational_value_is_not_proved(claims, model, body, told):
    (found,) = check_claims(claims(model, body))
    assert found.status == "supported" and told in found.detail, found


@pytest.mark.long
def test_roots_of_negative_numbers_do_not_hide_where_an_outlier_touches_the_bulk(claims):
    """Two imaginary roots have a real product; on the wall a**2 = 2*b**2 the outlier is the edge."""
    value = f"-sqrt(-{CURVE}*(a*b - 10))*sqrt(-{CURVE}/(a*b - 10)) + 1/{CURVE}"
    (found,) = check_claims(claims(CURVED, outlier(value, "a*b > 10 and a > 0")))
    assert found.status == "supported" and "a**2 - 2*b**2 = 0" in found.detail


def test_an_integral_without_a_closed_form_is_not_decided(claims):
    (found,) = check_claims(claims(SIGNED, formula("moment", "integral(x**x, x, 0, 1)", more="order = 2")))
    assert found.status == "not decided"


def test_a_sign_that_is_zero_at_an_irrational_value_is_not_proved(claims):
    (found,) = check_claims(claims(SIGNED, formula("moment", "sign(k**2 - 2)**2", more="order = 2")))
    assert found.status == "supported" and "where k**2 - 2 = 0" in found.detail


def test_a_tiny_jump_where_a_sign_is_zero_is_not_proved(claims):
    (found,) = check_claims(claims(SIGNED, formula("moment", "1 + (1 - sign(k)**2)/10**60", more="order = 2")))
    assert found.status == "supported" and "where k = 0" in found.detail


@pytest.mark.slow
def test_integrals_with_parameters_are_supported(claims):
    """Their closed form was tried at points of the parameters only."""
    (found,) = check_claims(
        claims(SIGNED, outlier("k + 1/k + integral(exp(-k*y), y, 0, 1) - (1 - exp(-k))/k", "k > 1"))
    )
    assert found.status == "supported" and "was tried at 3 points" in found.detail
