"""Words of correlation and response matrices, and averages over sites that differ by traits."""

from __future__ import annotations

import itertools
import random

import pytest
import sympy as sp

from derive import field, normal, parameter, sectors, training_clock, trait, whole_positive
from derive.algebra.nodes import Z
from derive.algebra.sites import (
    MOST_GROUPS,
    TraitAverage,
    around_averages,
    as_polynomials,
    at_source,
    averaged,
    by_source,
    site_responses,
    without_averages,
)
from derive.algebra.words import DiagonalFactor, Letter, SiteTable, Weighed, as_matrix, combine
from derive.equations.delays import shortest_delays
from derive.records.saddle import Edge

D = sectors("D")
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x, y = field("x", D, t), field("y", D, t)
v = normal("v", D)
s = trait("s", D, values=[1, 2, -3], weights=[sp.Rational(1, 2), sp.Rational(1, 3), sp.Rational(1, 6)])
u = trait("u", D, values=[0, 5])
G, H = sp.symbols("G H")


def test_correlations_are_symmetric_and_responses_are_not():
    assert Letter.correlation(x, y) == Letter.correlation(y, x).T and Letter.correlation(y, x).transposed
    square, response = Letter.correlation(x, x), Letter.response(x, x)
    assert square == square.T and response != response.T
    for letter in (Letter.correlation(x, y), Letter.response(x, y), Letter.with_value(x, y(T - 1))):
        assert letter == letter.T.T and letter.T.plain == letter and letter.order_parameters == (letter,)


def test_letters_at_one_time_are_a_column_or_a_row():
    column, row = Letter.with_value(x, y(T - 1)), Letter.of_value(y(T - 1), x)
    assert column.shape[1] == 1 and row.shape[0] == 1 and column.shape[0] == row.shape[1] != 1
    assert column.matrix().shape == column.shape and column.T.matrix().shape == column.shape[::-1]
    assert Letter.with_value(x, v()) == Letter.correlation(x, v)
    assert column.shown == ("x", "y(T - 1)") and row.shown == ("y(T - 1)", "x") and column.name == "C_x_y(T - 1)"


def test_weighed_means_of_both_orders_have_one_table():
    one = Weighed(s(), D, ("C", x), ("R", y))
    assert one == one.T.T and one.T.table == one.table == SiteTable(D, ("C", x), ("R", y))
    assert one.T.turned and not one.turned and one.T.shape == one.shape[::-1]
    assert one.table.key == ("W", "D", "C x", "R y") and one.tables == (one.table,)
    assert one.name == "<s; x, d/d y>" and one.T.name == "<s; d/d y, x>" and one.matrix().shape == one.shape


def test_combinations_add_equal_words_and_drop_zeros():
    a, b = Letter.correlation(x, x), Letter.response(x, y)
    combination = combine([(G, (b,)), (2, (a,)), (-G, (b,)), (H, (a,)), (1, (a, b)), (G**2 + G, ())])
    table = dict((word, sp.expand(scale)) for scale, word in combination)
    assert table == {(): G**2 + G, (a,): 2 + H, (a, b): 1}
    assert combine([(1, (a,)), (-1, (a,))]) == () and as_matrix((), 2, 3) == sp.ZeroMatrix(2, 3)
    size = a.shape[0]
    whole = as_matrix(combination, size, size)
    expected = (G**2 + G) * sp.Identity(size) + (2 + H) * a.matrix() + sp.MatMul(a.matrix(), b.matrix())
    assert {sp.expand(arg) for arg in whole.args} == {sp.expand(arg) for arg in expected.args}
    weight = DiagonalFactor(sp.Integer(3), x).matrix()
    assert weight[0, 0] == 3 and weight[0, 1] == 0 and weight == weight.T


def direct(expression):
    """The average over both traits, group by group."""
    laws = [list(zip(one.weights, one.values, strict=True)) for one in (s, u)]
    return sp.Add(*(p * q * expression.xreplace({s(): a, u(): b}) for (p, a), (q, b) in itertools.product(*laws)))


RATIONAL = [s() / (Z - G * s()), G * s() ** 2 / (1 + H * s() * u()), (Z + u()) / (H - Z * s()), H * u(), s() ** 2 / G]


@pytest.mark.parametrize("one", RATIONAL, ids=str)
def test_averages_over_sites_and_their_derivatives_are_sums_over_groups(one):
    rng = random.Random(1)
    at = {symbol: sp.Rational(rng.randint(1, 30), 7) + sp.I for symbol in (Z, G, H)}
    found, expected = averaged(sp.sympify(one)), direct(sp.sympify(one))
    exact = lambda e: sp.nsimplify(sp.expand_complex(e.xreplace(at)))  # noqa: E731
    assert exact(without_averages(found)) == exact(expected)
    assert exact(without_averages(by_source(found * H, H))) == exact(sp.diff(expected * H, H))
    moved = {G: H**2 + 1}
    assert exact(without_averages(at_source(found * G, moved))) == exact((expected * G).xreplace(moved))
    for part in found.atoms(TraitAverage):  # only what depends on traits is inside, as one fraction
        assert part.expression.has(s(), u()) and part.expression.as_independent(s(), u(), as_Add=False)[0] == 1


def test_a_change_around_averages_leaves_them_as_they_are():
    average = averaged(s() / (Z - s() * (G + 1) ** 2))
    changed = around_averages(sp.expand, (G + 1) ** 2 * average)
    assert sp.expand(changed - (G**2 + 2 * G + 1) * average) == 0 and changed.has(average)
    assert around_averages(sp.expand, (G + 1) ** 2) == G**2 + 2 * G + 1


def test_few_groups_are_written_as_polynomials_and_many_or_a_density_are_not():
    (polynomial,) = as_polynomials([G - averaged(1 / (Z - s() * G))])
    assert sp.Poly(polynomial, G, Z).degree(G) == 4
    assert sp.simplify(polynomial.subs({G: 0})) != 0
    unknown = G - direct(1 / (Z - s() * G))
    assert sp.cancel(sp.together(polynomial / unknown)).is_polynomial(G, Z)
    assert as_polynomials([G**2 - Z]) == (G**2 - Z,)
    many = trait("many", D, values=list(range(1, MOST_GROUPS + 2)))
    smooth = trait("smooth", D, density=lambda z: z, low=0, high=1)
    for law in (many, smooth):
        assert as_polynomials([G - averaged(1 / (Z - law() * G))]) is None
    assert without_averages(averaged(1 / s())) is not None and without_averages(averaged(1 / u())) is None


def test_responses_of_a_site_are_the_inverse_of_its_propagator():
    rows = [[Z - s() * G, -sp.sqrt(2)], [-(s() ** 2), 1 - H * sp.tanh(s())]]
    found = site_responses(rows)
    assert (found * sp.Matrix(rows)).applyfunc(sp.simplify) == sp.eye(2)


@pytest.mark.parametrize("seed", range(5))
def test_delays_of_responses_are_shortest_paths(seed):
    """Against Floyd and Warshall on random graphs; edges through means carry no response."""
    rng = random.Random(seed)
    fields = tuple(field(f"f{k}", D, t) for k in range(6))
    edges, expected = [], {(a, a): 0 for a in fields}
    for _ in range(11):
        target, source, lag, through = rng.choice(fields), rng.choice(fields), rng.randint(0, 3), rng.random() < 0.25
        edges.append(Edge(source=source, target=target, lag=lag, through_mean=through))
        if not through:
            expected[target, source] = min(lag, expected.get((target, source), lag))
    for middle, a, b in itertools.product(fields, repeat=3):
        if (a, middle) in expected and (middle, b) in expected:
            way = expected[a, middle] + expected[middle, b]
            expected[a, b] = min(way, expected.get((a, b), way))
    assert {(a, b): n for a, b, n in shortest_delays(fields, edges)} == expected
