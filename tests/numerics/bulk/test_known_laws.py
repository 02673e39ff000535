"""Laws with known edges, atoms, densities and moments, found from a curve and from the equations alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from derive.errors import NumericalError
from numerics.bulk import density, support
from numerics.bulk.branch import Branch
from numerics.bulk.curve import Curve, singular_points
from numerics.bulk.density import resolvent_at, roots_of
from numerics.bulk.edges import atom_at, edge_candidates, hidden_masses, support_from_branch, support_from_curve
from numerics.bulk.folds import FOLD, POLE, End, march
from numerics.bulk.law import SpectralLaw
from numerics.bulk.moments import exact_moments, moments
from numerics.bulk.support import law_of, law_without_curve, series_moments
from numerics.runtime.interface import BulkLaw, CoefficientTable
from numerics.runtime.point import Point

z, g = sp.symbols("z g")


@dataclass(frozen=True)
class Known:
    """A curve P(z, G) = 0 with the edges and atoms of its law, and the moments from order one."""

    curve: sp.Expr
    edges: tuple[tuple[float, float], ...]
    moments: tuple[float, ...]
    atoms: tuple[tuple[float, float], ...] = ()
    roots: tuple[int, int] = (2, 2)


def semicircle(centre: int, radius: sp.Rational) -> Known:
    """The mean square is the square of half the radius beside that of the centre."""
    half = sp.Rational(radius) / 2
    second = half**2
    known = (centre, centre**2 + second, centre**3 + 3 * centre * second)
    return Known(
        1 - (z - centre) * g + second * g**2,
        ((float(centre - 2 * half), float(centre + 2 * half)),),
        tuple(map(float, known)),
    )


def wishart(ratio: str, shift: int = 0, sign: int = 1) -> Known:
    """sign W^T W / N + shift, with N = ratio D: moments of W^T W / N are 1, 1 + c, 1 + 3 c + c^2 with c = 1 / ratio."""
    a = sp.Rational(ratio)
    w, h = sign * (z - shift), sign * g
    c = float(1 / a)
    low, high = ((1 + side * c**0.5) ** 2 for side in (-1, 1))
    ends = tuple(sorted(sign * end + shift for end in (low, high)))
    first, second, third = 1.0, 1 + c, 1 + 3 * c + c**2
    known = (
        sign * first + shift,
        second + 2 * sign * shift * first + shift**2,
        sign * third + 3 * shift * second + 3 * sign * shift**2 * first + shift**3,
    )
    atoms = ((float(shift), float(1 - a)),) if a < 1 else ()
    roots = (2, 2)
    return Known(sp.expand((w * h - 1) * (a - h) - a * h), (ends,), known, atoms, roots)


def two_values(spread: str) -> Known:
    """A GOE matrix of variance s beside +1 and -1 on the diagonal: <1 / (z - s G -+ 1)> = G.

    Folds of z = w + s w / (w^2 - 1), with w = z - s G, are at w^2 = 1 + s (1 +- sqrt(1 + 8 / s)) / 2.
    """
    s = sp.Rational(spread)
    w = z - s * g
    x = float(s)
    squares = [1 + x * (1 + side * (1 + 8 / x) ** 0.5) / 2 for side in (1, -1)]
    ends = [p + x * p / (p * p - 1) for square in squares if square > 0 for p in (square**0.5, -(square**0.5))]
    ends = sorted(ends)
    edges = ((ends[0], ends[1]), (ends[2], ends[3])) if len(ends) == 4 else ((ends[0], ends[1]),)
    return Known(sp.expand(g * (w**2 - 1) - w), edges, (0.0, 1 + x, 0.0, 1 + 4 * x + 2 * x * x))


LAWS = {
    "semicircle": semicircle(0, 2),
    "small semicircle far away": semicircle(7, sp.Rational(1, 50)),
    "wide semicircle": semicircle(-3, 400),
    "wishart": wishart("5/2"),
    "wishart with a null space": wishart("2/5"),
    "shifted wishart with a null space": wishart("1/4", 3),
    "reflected wishart with a null space": wishart("3/4", 0, -1),
    "reflected and shifted wishart": wishart("2", -2, -1),
    "square wishart": wishart("1"),
    "shifted square wishart": wishart("1", 2),
    "reflected square wishart": wishart("1", 0, -1),
    "two bands": two_values("1/4"),
    "two bands that have met": two_values("3"),
    "product of two": Known(
        z**2 * g**3 - z * g + 1, ((0.0, 27 / 4),), tuple(comb(3 * k, k) / (2 * k + 1) for k in (1, 2, 3)), (), (3, 2)
    ),
}
ELSEWHERE = ("square", "product", "shifted wishart with")
"""Where the density diverges, which takes many digits, and a point mass away from zero, which only a curve gives."""
WITHOUT_CURVE = [name for name in LAWS if not any(word in name for word in ELSEWHERE)]


def table(rows) -> CoefficientTable:
    return CoefficientTable(lambda p: (), tuple(tuple((str(c),) for c in row) for row in rows))


@cache
def law(name: str, eliminated: bool = True) -> BulkLaw:
    """A bulk with one unknown, whose equation is the curve."""
    poly = sp.Poly(LAWS[name].curve, g, z)
    words = tuple((" ".join(["z"] * j + ["g"] * i) or "1", float(c)) for (i, j), c in poly.terms())
    if not eliminated:
        return BulkLaw(("g",), 0, lambda p: (words,))
    by_power = [
        [poly.coeff_monomial(g**i * z**j) for j in range(poly.degree(z) + 1)] for i in range(poly.degree(g) + 1)
    ]
    singular = sp.discriminant(poly.as_expr(), g) * sp.LC(poly.as_expr(), g)
    parts = [f for f, _ in sp.factor_list(singular)[1]]
    edges = [sp.Poly(f, z).all_coeffs() for f in parts]
    return BulkLaw(("g",), 0, lambda p: (words,), curve=table(by_power), edge_polynomials=table(edges))


def branch(name: str, eliminated: bool = True) -> Branch:
    return Branch(law(name, eliminated), Point())


def check(found: SpectralLaw, name: str, digits: float) -> None:
    known, scale = LAWS[name], max(abs(end) for pair in LAWS[name].edges for end in pair)
    assert np.shape(found.edges) == np.shape(known.edges) and found.error < 1e-10
    np.testing.assert_allclose(found.edges, known.edges, rtol=digits, atol=digits * scale)
    assert [at for at, _ in found.atoms] == pytest.approx([at for at, _ in known.atoms], abs=1e-9 * scale)
    assert [w for _, w in found.atoms] == pytest.approx([w for _, w in known.atoms], rel=1e-10)
    exact = [1.0, *map(float, known.moments)]
    np.testing.assert_allclose(found.moments(len(exact)), exact, rtol=1e-10, atol=1e-10 * scale)
    for low, high in known.edges:
        x = low + (high - low) * np.array([0.03, 0.3, 0.62, 0.97])
        roots = [np.roots([complex(c) for c in sp.Poly(known.curve.subs(z, at), g).all_coeffs()]) for at in x]
        np.testing.assert_allclose(found.density(x), [np.max(r.imag) / np.pi for r in roots], rtol=1e-7)


@pytest.mark.parametrize("name", LAWS)
def test_a_law_from_its_curve(name):
    check(law_of(branch(name)), name, 1e-12)


@pytest.mark.parametrize("name", WITHOUT_CURVE)
def test_a_law_from_its_equation_alone(name):
    check(law_without_curve(branch(name, eliminated=False)), name, 1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_moments_and_exponents_are_known_before_the_density(name):
    known, one = LAWS[name], branch(name)
    scale = max(abs(end) for pair in known.edges for end in pair)
    exact = [1.0, *map(float, known.moments)]
    assert list(map(float, exact_moments(one, len(exact) - 1))) == pytest.approx(exact, rel=1e-14, abs=1e-13)
    powers = scale ** np.arange(len(exact))
    np.testing.assert_allclose(series_moments(one, len(exact) - 1) / powers, exact / powers, rtol=1e-10, atol=1e-11)
    assert moments(one, 2) == [float(m) for m in exact_moments(one, 2)]
    np.testing.assert_allclose(
        moments(branch(name, False), 2, like=one) / powers[:3], exact[:3] / powers[:3], atol=1e-9
    )
    if len(known.edges) == 1 and not known.atoms:
        assert roots_of(one, known.edges) in ([known.roots], [known.roots[::-1]])


@pytest.mark.parametrize("name", LAWS)
def test_the_real_axis_is_followed_to_the_first_fold_or_pole_from_either_side(name):
    known, one = LAWS[name], branch(name, eliminated=False)
    far = 10 * one.start.height
    r, _ = one.followed(np.array([far, -far]))
    ends = sorted([*(e for pair in known.edges for e in pair), *(at for at, _ in known.atoms)])
    poles = {at for at, _ in known.atoms}
    hard = {e for e in ends if "square" in name and abs(e - (2 if "shifted" in name else 0)) < 1e-9}
    hard |= {0.0} if name == "product of two" else set()
    scale = max(abs(ends[0]), abs(ends[-1]))
    for found, end in ((march(one, far, r[0], upward=False), ends[-1]), (march(one, -far, r[1], upward=True), ends[0])):
        assert found.z == pytest.approx(end, rel=1e-10, abs=1e-9 * scale)
        assert found.kind == (POLE if end in poles | hard else FOLD)


@pytest.mark.parametrize("name", ["two bands", "shifted wishart with a null space", "wishart with a null space"])
def test_masses_between_points_outside_the_support_are_those_of_the_law(name):
    """A contour around each gap's neighbours: nothing where it is empty, the mass of a band or an atom else."""
    known, one = LAWS[name], branch(name)
    ends = sorted([*(e for pair in known.edges for e in pair), *(e for at, _ in known.atoms for e in (at, at))])
    middles = [(a + b) / 2 for a, b in zip(ends[1::2], ends[2::2], strict=False)]
    outside = np.array([ends[0] - 2, ends[0] - 1, *middles, ends[-1] + 1, ends[-1] + 2])
    masses = {(low, high): mass for low, high, mass in hidden_masses(one, outside)}
    whole = law_of(one)
    for low, high in zip(outside[:-1], outside[1:], strict=True):
        inside = float(np.diff(whole.cumulative(np.array([low, high])))[0])
        assert masses.get((low, high), 0.0) == pytest.approx(inside, rel=0.15, abs=1e-9)
    assert hidden_masses(one, outside[:1]) == []
    for eliminated in (True, False):
        for at, weight in known.atoms:
            found = atom_at(branch(name, eliminated), at, list(known.edges))
            assert found == pytest.approx(weight, rel=1e-10)
        assert atom_at(branch(name, eliminated), float(outside[0]), list(known.edges)) < 1e-6


def test_candidates_of_edges_are_the_real_branch_points():
    """Also two that are complex, near which the density is no edge."""
    met = branch("two bands that have met")
    points = singular_points(met.law, met.own)
    assert len([p for p in points if p.imag != 0]) >= 2
    assert set(edge_candidates(met)) == {p.real for p in points if p.imag == 0}
    np.testing.assert_allclose(support_from_curve(met), LAWS["two bands that have met"].edges, rtol=1e-13)
    assert support_from_curve(branch("semicircle", eliminated=False)) is None
    assert edge_candidates(branch("semicircle", eliminated=False)).size == 0


def between_bands(weight: str, shift: str) -> tuple[Known, float]:
    """A GOE matrix of variance 1/4 beside shift + 1 and shift - 1, in shares weight and 1 - weight, and where G = 0."""
    p, s = sp.Rational(weight), sp.Rational(shift)
    w = z - g / 4 - s
    curve = sp.expand(g * (w**2 - 1) - p * (w + 1) - (1 - p) * (w - 1))
    return Known(curve, ((0.0, 0.0),), (0.0, 0.0, 0.0)), float(1 - 2 * p + s)


@pytest.mark.parametrize(("weight", "shift"), [("1/2", "0"), ("1/3", "0"), ("1/3", "-1/10"), ("1/2", "3")])
def test_a_sample_where_the_resolvent_vanishes_is_outside_the_support(weight, shift, monkeypatch):
    """At G = 0 no imaginary part is small relative to G, but the point is in the gap all the same."""
    known, zero = between_bands(weight, shift)
    name = f"zero in a gap {weight} {shift}"
    monkeypatch.setitem(LAWS, name, known)
    for x in (zero, np.nextafter(zero, 9), np.nextafter(zero, -9)):
        one = branch(name, eliminated=False)
        intervals, empty = support_from_branch(one, more=(float(x),))
        (_, low), (high, _) = intervals
        assert low < x < high and x in empty
        assert one.certain(np.array([x]))[0][0, 0].imag == 0
    origin = np.array([low + 0.9 * (high - low) if low * high > 0 else 0.0])  # zero, if it lies in the gap
    found = march(one, origin[0], one.certain(origin)[0][0], upward=True)
    assert found.z == pytest.approx(high, rel=1e-12) and found.kind == FOLD
    near, _ = resolvent_at(branch(name), np.array([zero, np.nextafter(zero, 9)]))
    assert np.all(near.imag == 0) and np.all(np.abs(near) < 1e-14)


def test_samples_outside_the_support_are_returned_with_it():
    intervals, empty = support_from_branch(branch("two bands", eliminated=False))
    (_, first), (second, _) = intervals
    assert empty.size and np.all((empty > first) & (empty < second))
    intervals, _ = support_from_branch(branch("two bands", eliminated=False), more=(0.01, 1e-3))
    assert len(intervals) == 2


@pytest.mark.parametrize("name", ["semicircle", "two bands", "product of two"])
@pytest.mark.parametrize("eliminated", [True, False])
def test_the_resolvent_anywhere_and_its_error(name, eliminated):
    """Each value solves the curve, is a Stieltjes transform, and is off by less than its error says."""
    one = branch(name, eliminated)
    low, high = LAWS[name].edges[0][0], LAWS[name].edges[-1][1]
    at = np.array(
        [low - 1e-3, high + 1e-6, (low + high) / 3 + 1e-10j, high - 1e-5 + 0j, 0.3 * high + 2j, 1e6, 1e-3j + low]
    )
    found, errors = resolvent_at(one, at)
    for x, value, error in zip(at, found, errors, strict=True):
        roots = np.roots(
            [complex(c) for c in sp.Poly(LAWS[name].curve.subs(z, sp.sympify(complex(x))), g).all_coeffs()]
        )
        assert np.min(np.abs(roots - value)) <= 1e-9 * abs(value) + 10 * error and value.imag <= 0
        assert error < 1e-6 * abs(value) and abs(value) * x.imag <= 1
    if eliminated:
        bound = Curve.of(one.law, one.own).rounding(at, found)
        assert np.all(bound < 1e-7 * np.abs(found))


def test_what_has_no_branch_at_infinity_is_refused():
    """z G = 2 and G^2 = 1 do not decay like 1/z with weight one."""
    for words in ((("z g", 1.0), ("1", -2.0)), (("g g", 1.0), ("1", -1.0))):
        with pytest.raises(NumericalError, match="vanishes like 1/z"):
            _ = Branch(BulkLaw(("g",), 0, lambda p, words=words: (words,)), Point()).start


def test_ends_of_the_axis_are_where_they_are_bracketed():
    from numerics.bulk.edges import _met

    assert _met(End(1.0, FOLD), 0.5, 1.0) == 1.0
    for low, high in ((1.1, 1.2), (0.2, 0.9)):
        with pytest.raises(NumericalError, match="could not be found"):
            _met(End(1.0, FOLD), low, high)


@pytest.mark.parametrize("zeros", [(), (0.5,)])
def test_a_law_whose_mass_is_not_one_is_refused(zeros, monkeypatch):
    """Also if a gap is seen inside of it, wherever it is looked for."""
    tried = []

    def assembled(branch, intervals, candidates, more, tell):
        tried.append(list(more))
        return SpectralLaw(tuple(intervals), (), SimpleNamespace(zeros=zeros), 0.0 if zeros else 1e-3)

    monkeypatch.setattr(support, "_assembled", assembled)
    with pytest.raises(NumericalError) as caught:
        law_without_curve(branch("semicircle", eliminated=False))
    assert len(str(caught.value)) < 300 and ("0.001" in str(caught.value)) == (not zeros)
    assert len(tried) == (2 if zeros else 3)


def test_a_density_that_is_lost_says_where_first(monkeypatch):
    one, asked = branch("semicircle"), []

    def lost(branch, x, tell):
        asked.extend(x)
        return np.full(x.shape, -1j), np.where(np.arange(x.size) < 5, 0.0, np.inf)

    pieces, _ = density.pieces_of(one, [(-2.0, 2.0)], np.zeros(0))
    monkeypatch.setattr(density, "resolvent_at", lost)
    with pytest.raises(NumericalError) as caught:
        density.build_panels(one, pieces)
    assert f"{asked[5]:.6g}" in str(caught.value)


@pytest.mark.parametrize("name", ["wishart with a null space", "shifted wishart with a null space", "two bands"])
def test_the_weight_of_a_point_mass_is_a_residue_of_the_curve_and_a_mean_around_it(name, monkeypatch):
    """The curve, the resolvent next to a point and the contour around it give the same weight, zero beside it."""
    one, known = branch(name), dict(LAWS[name].atoms)
    intervals = list(LAWS[name].edges)
    for at, weight in (known or {0.0: 0.0}).items():
        assert atom_at(one, at, intervals) == pytest.approx(weight, rel=1e-9)
        monkeypatch.setattr("numerics.bulk.edges.Curve.of", lambda law, own: None)
        assert atom_at(one, at, intervals) == pytest.approx(weight, rel=1e-9)
        monkeypatch.undo()
        plain = branch(name, eliminated=False)
        assert atom_at(plain, at, intervals) == pytest.approx(weight, rel=1e-9)


@pytest.mark.parametrize("scale", [sp.Rational(1, 10**8), sp.Rational(1, 1000), sp.Integer(10**6)], ids=str)
def test_a_multiple_of_a_matrix_has_the_multiple_of_its_law(scale):
    """c W^T W / N: edges and moments times powers of c, and the same point mass at zero, with and without the curve."""
    c, a = scale, sp.Rational(2, 5)
    curve = sp.Poly(sp.expand((z * g - 1) * (a - c * g) - a * c * g), g, z)
    words = tuple((" ".join(["z"] * j + ["g"] * i) or "1", float(x)) for (i, j), x in curve.terms())
    plain = BulkLaw(("g",), 0, lambda p: (words,))
    edges = [sp.Poly((z - c * (1 + 1 / a)) ** 2 - 4 * c**2 / a, z).all_coeffs(), [1, 0]]
    rows = [[curve.coeff_monomial(g**i * z**j) for j in range(2)] for i in range(3)]
    whole = BulkLaw(("g",), 0, lambda p: (words,), curve=table(rows), edge_polynomials=table(edges))
    known = LAWS["wishart with a null space"]
    for one in (law_of(Branch(whole, Point())), law_without_curve(Branch(plain, Point()))):
        np.testing.assert_allclose(one.edges, np.array(known.edges) * float(c), rtol=1e-9)
        assert one.atoms == ((0.0, pytest.approx(0.6, rel=1e-9)),)
        np.testing.assert_allclose(
            one.moments(4), [1, *(m * float(c) ** k for k, m in enumerate(known.moments, 1))], rtol=1e-9
        )


def test_a_sample_that_is_not_reached_is_refused_unless_it_is_next_to_an_edge(monkeypatch):
    one = branch("two bands", eliminated=False)
    certain = Branch.certain

    def without(share):
        def lost(self, x, *rest):
            r, errors = certain(self, x, *rest)
            place = np.argmin(np.abs(x - (x[0] + share * (x[-1] - x[0]))))
            return r, np.where(np.arange(x.size) == place, np.inf, errors)

        monkeypatch.setattr(Branch, "certain", lost)

    without(1e-6)
    np.testing.assert_allclose(support_from_branch(one)[0], LAWS["two bands"].edges, rtol=1e-8)
    without(0.3)
    with pytest.raises(NumericalError, match="could not be continued to x = "):
        support_from_branch(one)
