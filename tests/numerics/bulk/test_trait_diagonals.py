"""Diagonal matrices of traits in probed matrices: against equations by hand, sectors, simulation; what is refused."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner
from conftest import derivation_of, solver_and_values
from reference_formulas import sites_by_hand as by_hand
from sympy import Symbol, oo, sqrt

import derive
from derive import (
    Eq,
    Model,
    axis,
    data,
    diag,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    trait,
    weights,
    whole_positive,
)
from derive.claims import check_claims, load_claims
from derive.cli import main
from derive.errors import DeclarationError, NumericalError
from derive.pipeline import derive_model
from numerics.bulk.law import DensityPanel, DensityPiece
from numerics.bulk.site_averages import site_system
from numerics.bulk.support import law_of, law_without_curve
from numerics.outliers.finding import by_contour, find_outliers
from numerics.solver import solve, spiked_problem

pytestmark = pytest.mark.slow

x = Symbol("x", positive=True)
nu = parameter("nu", default=2.0, domain=positive)
kappa = parameter("kappa", default=4.0, domain=positive)
strength = parameter("strength", default=2.0)
PARAMETERS = (nu, kappa, strength)
D, N = sectors("D", N=nu)
W, M = gaussian("W", N, D), goe("M", D)
u, v = normal("u", N), normal("v", D)
FEW = trait("few", D, values=[1, kappa, -2], weights=[0.5, 0.25, 0.25])
ROWS = trait("rows", N, values=[1, kappa], weights=[0.75, 0.25])
ACROSS = trait("across", D, values=[1, 2], weights=[0.6, 0.4])
MANY_VALUES = np.round(np.linspace(0.3, 3.0, 12) ** 2, 6)
MANY = trait("many", N, values=list(map(float, MANY_VALUES)))
POWER_LAW = trait("power_law", N, density=x**-1.5, low=0.1, high=kappa)
FLAT = trait("flat", D, density=1, low=-1, high=kappa / 2)


def model(matrix, *parameters) -> Model:
    return Model(parameters=(*PARAMETERS, *parameters), probe=spectrum(matrix))


def branch_of(matrix, **values):
    theory = derive.load(model(matrix))
    defaults = {p.name: p.default for p in PARAMETERS}
    return theory.solver.branch({**defaults, **values})


def quadrature(density, low, high, nodes=200):
    """Values and weights of a density that is smooth between its ends."""
    places, shares = np.polynomial.legendre.leggauss(nodes)
    values = low + (high - low) * (places + 1) / 2
    weighed = shares * density(values)
    return values, weighed / np.sum(weighed)


HERE = np.array([0.5 + 0.5j, 6.0 + 0.4j, -3.0 + 0.5j])
WEIGHTED = (np.array([1.0, 4.0]), np.array([0.75, 0.25]))
DIAGONAL = (np.array([1.0, 4.0, -2.0]), np.array([0.5, 0.25, 0.25]))
UNEVEN = (np.array([1.0, 2.0]), np.array([0.6, 0.4]))
MANY_LAW = (MANY_VALUES, np.full(12, 1 / 12))
POWER = quadrature(lambda s: s**-1.5, 0.1, 4.0)
EVENLY = quadrature(np.ones_like, -1.0, 2.0)

RESOLVENTS = {
    "weighted rows": (W.T @ diag(ROWS) @ W / N, lambda z: by_hand.weighted_rows(z, 2.0, *WEIGHTED)),
    "weighted rows, many values": (W.T @ diag(MANY) @ W / N, lambda z: by_hand.weighted_rows(z, 2.0, *MANY_LAW)),
    "weighted rows, density": (W.T @ diag(POWER_LAW) @ W / N, lambda z: by_hand.weighted_rows(z, 2.0, *POWER)),
    "diagonal": (M + diag(FEW), lambda z: by_hand.with_diagonal(z, 1.0, *DIAGONAL)),
    "diagonal, density": (M / 2 + diag(FLAT), lambda z: by_hand.with_diagonal(z, 0.25, *EVENLY)),
    "profile": (diag(ACROSS) @ M @ diag(ACROSS), lambda z: by_hand.profile(z, *UNEVEN)),
    "separable": (
        diag(ACROSS) @ W.T @ diag(ROWS) @ W @ diag(ACROSS) / N,
        lambda z: by_hand.separable(z, 2.0, *UNEVEN, *WEIGHTED),
    ),
    "separable, density": (
        diag(ACROSS) @ W.T @ diag(POWER_LAW) @ W @ diag(ACROSS) / N,
        lambda z: by_hand.separable(z, 2.0, *UNEVEN, *POWER),
    ),
}


@pytest.mark.long_cases("diagonal, density", "separable, density")
@pytest.mark.parametrize("name", RESOLVENTS)
def test_resolvent_is_the_one_by_hand(name):
    matrix, expected = RESOLVENTS[name]
    found = branch_of(matrix).resolvent(HERE)
    assert np.allclose(found, [expected(z) for z in HERE], rtol=1e-10, atol=0)


@pytest.mark.parametrize("trait_law, law", [(ROWS, WEIGHTED), (MANY, MANY_LAW), (POWER_LAW, POWER)])
def test_edges_of_weighted_rows_are_where_silversteins_function_turns(trait_law, law):
    edges = law_of(branch_of(W.T @ diag(trait_law) @ W / N)).edges
    expected = by_hand.weighted_rows_edges(2.0, *law, gaps=trait_law.discrete)
    assert np.allclose([e for pair in edges for e in pair], expected, rtol=1e-9)


@pytest.mark.parametrize("trait_law, law, scale", [(FEW, DIAGONAL, 1), (FLAT, EVENLY, sp.Rational(1, 2))])
def test_outermost_edges_with_a_diagonal_are_those_by_hand(trait_law, law, scale):
    edges = law_of(branch_of(scale * M + diag(trait_law))).edges
    expected = by_hand.with_diagonal_edges(float(scale) ** 2, *law)
    assert np.allclose([edges[0][0], edges[-1][1]], expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["weighted rows", "diagonal", "profile", "separable"])
def test_the_curve_and_the_averages_over_sites_give_one_law(name):
    branch = branch_of(RESOLVENTS[name][0])
    assert branch.law.eliminated
    one, other = law_of(branch), law_without_curve(branch)
    assert np.allclose(one.edges, other.edges, rtol=1e-9)
    points = np.concatenate([np.linspace(low, high, 10)[1:-1] for low, high in one.edges])
    assert np.allclose(one.density(points), other.density(points), rtol=1e-8)


def test_equal_sites_are_as_without_a_trait():
    same = trait("same", N, values=[3, 3])
    found = law_of(branch_of(W.T @ diag(same) @ W / N))
    assert np.allclose(found.edges, law_of(branch_of(3 * W.T @ W / N)).edges, rtol=1e-12)


def test_groups_of_rows_are_sectors_of_their_own():
    """Two values of a trait are two matrices with as many rows as each value has, and no trait at all."""
    total = parameter("total", default=2.0, domain=positive)
    size, first, second = sectors("size", first=3 * total / 4, second=total / 4)
    A, B = gaussian("A", first, size), gaussian("B", second, size)
    apart = derive.load(Model(parameters=(total, kappa), probe=spectrum((A.T @ A + kappa * B.T @ B) / (total * size))))
    joined = derive.load(model(W.T @ diag(ROWS) @ W / N))
    assert np.allclose(joined.solve().bulk_edges, apart.solve().bulk_edges, rtol=1e-12)


@pytest.mark.long
def test_a_function_of_traits_and_their_product_is_one_diagonal():
    other = trait("other", N, values=[1, 3], weights=[0.5, 0.5])
    both = law_of(branch_of(W.T @ diag(ROWS) @ diag(other) @ W / N)).edges
    assert both == law_of(branch_of(W.T @ diag(other * ROWS) @ W / N)).edges
    assert both == law_of(branch_of(W.T @ diag(sqrt(ROWS)) @ diag(other) @ diag(sqrt(ROWS)) @ W / N)).edges


# -- outliers

SPIKES = {
    "independent of the trait": (v, np.ones(3)),
    "times the trait": (FEW * v, np.array([1.0, 4.0, -2.0]) ** 2),
    "a function of it": (v / (3 + FEW), 1 / (3 + np.array([1.0, 4.0, -2.0])) ** 2),
    "the trait itself": (FEW, np.array([1.0, 4.0, -2.0]) ** 2),
}


@pytest.mark.parametrize("name", SPIKES)
@pytest.mark.parametrize("value", [0.7, 3.0, 40.0])
def test_outlier_beside_a_diagonal_is_the_one_by_hand(name, value):
    direction, seen = SPIKES[name]
    found = derive.load(model(M + diag(FEW) + strength / D * outer(direction, direction))).solve(strength=value)
    expected = by_hand.with_diagonal_outliers(value, 1.0, *DIAGONAL, seen)
    above = [z for z in found.outliers if z > found.bulk_edges[-1][1]]
    assert above == ([] if expected is None else [pytest.approx(expected, rel=1e-10)])


@pytest.mark.long_cases("0.001-trait_law1-law1", "1e-05-trait_law1-law1")
@pytest.mark.parametrize("trait_law, law", [(FEW, DIAGONAL), (FLAT, EVENLY)])
@pytest.mark.parametrize("distance", [1e-3, 1e-5, 3e-8])
def test_an_outlier_is_found_however_close_to_the_edge(trait_law, law, distance):
    """Near its threshold an outlier has left the edge by the square of what the strength is beyond it."""
    theory = derive.load(model(M + diag(trait_law) + strength / D * outer(v, v)))
    top = by_hand.with_diagonal_edges(1.0, *law)[1]
    low, high = 0.1, 10.0
    for _ in range(200):
        middle = (low + high) / 2
        found = by_hand.with_diagonal_outliers(middle, 1.0, *law, np.ones(len(law[0])))
        low, high = (low, middle) if found is not None and found > top + distance else (middle, high)
    expected = by_hand.with_diagonal_outliers(high, 1.0, *law, np.ones(len(law[0])))
    solution = theory.solve(strength=high)
    above = [z for z in solution.outliers if z > solution.bulk_edges[-1][1]]
    assert above == [pytest.approx(expected, abs=1e-3 * distance)]
    assert not [z for z in theory.solve(strength=0.8 * low).outliers if z > solution.bulk_edges[-1][1]]


@pytest.mark.parametrize("theta", [4.0, 8.0])
def test_outlier_beside_a_profile_of_variances_is_the_one_by_hand(theta):
    found = derive.load(model(diag(ACROSS) @ M @ diag(ACROSS) + strength / D * outer(v, v))).solve(strength=theta)
    expected = by_hand.profile_outlier(theta, *UNEVEN, found.bulk_edges[-1][1] + 1e-3, 20.0)
    assert list(found.outliers) == [pytest.approx(expected, rel=1e-10)]


def test_several_averages_in_one_row_have_the_zeros_of_their_determinant():
    """v and s v, coupled to each other: no reduction, and a determinant of two by two by hand."""
    both = strength / D * (outer(FEW * v, v) + outer(v, FEW * v))
    theory = derive.load(model(M + diag(FEW) + both))
    solution = theory.solve(strength=1.5)
    assert not solution.diagnostics.reduced
    values, shares = DIAGONAL
    (low, high) = by_hand.with_diagonal_edges(1.0, values, shares)
    for z in solution.outliers:
        g = by_hand.with_diagonal(z + 1e-13j, 1.0, values, shares).real
        e = [np.sum(shares * values**k / (z - values - g)) for k in range(3)]
        assert (1 - 1.5 * e[1]) ** 2 - 1.5**2 * e[0] * e[2] == pytest.approx(0, abs=1e-7)
    assert solution.outliers[0] > high and solution.outliers[-1] < low


def test_rings_and_the_whole_determinant_have_the_same_zeros():
    theory = derive.load(model(M + diag(FEW) + strength / D * outer(v, v) - strength / D * outer(FEW * v, FEW * v) / 2))
    solution = solve(theory.solver, {"nu": 2.0, "kappa": 4.0, "strength": 3.0})
    problem = spiked_problem(theory.solver, solution)
    assert len(solution.outliers) > 1
    assert sorted(solution.outliers) == pytest.approx(sorted(by_contour(problem)), rel=1e-9)
    assert all(o.residual < 1e-9 for o in find_outliers(problem))


# -- numbers


@pytest.mark.long
def test_derivatives_of_the_equations_are_those_of_differences():
    branch = branch_of(diag(ACROSS) @ W.T @ diag(POWER_LAW) @ W @ diag(ACROSS) / N)
    system = site_system(branch.law, branch.own)
    z = np.array([0.7 + 0.3j, 3.0 + 1.0j])
    r = branch.responses(z).T
    _, rate, slope = system(z, r)
    step = 1e-6
    assert np.allclose(rate, (system(z + step, r)[0] - system(z - step, r)[0]) / (2 * step), rtol=1e-6, atol=1e-9)
    for k in range(r.shape[1]):
        moved = np.zeros(r.shape[1])
        moved[k] = step
        change = (system(z, r + moved)[0] - system(z, r - moved)[0]) / (2 * step)
        assert np.allclose(slope[:, :, k], change, rtol=1e-6, atol=1e-9)


@pytest.mark.long
def test_a_density_is_taken_at_as_many_values_as_it_needs():
    branch = branch_of(M / 2 + diag(FLAT))
    fine = replace(branch, law=replace(branch.law, nodes=4 * branch.law.nodes))
    points = np.concatenate([np.linspace(low, high, 31)[1:-1] for low, high in law_of(branch).edges])
    assert np.allclose(branch.resolvent(points), fine.resolvent(points), rtol=1e-10)
    method = derive.load(model(M / 2 + diag(FLAT))).solve().diagnostics.bulk
    assert method.way == "site averages" and method.nodes == branch.law.nodes and method.error < 1e-10


def test_the_upper_edge_is_a_function_with_derivatives():
    theory = derive.load(model(M + diag(FEW)))
    edge = theory.function("edge", of=["kappa"])
    step = 1e-5
    values = [by_hand.with_diagonal_edges(1.0, np.array([1.0, k, -2.0]), DIAGONAL[1])[1] for k in (4 - step, 4 + step)]
    with jax.enable_x64(True):
        assert float(edge(4.0)) == pytest.approx(sum(values) / 2, rel=1e-9)
        assert float(jax.grad(edge)(4.0)) == pytest.approx((values[1] - values[0]) / (2 * step), rel=1e-6)


def test_the_density_is_a_number_where_panels_meet():
    """The curve of a profile has a root at zero, in the middle of the bulk."""
    law = law_of(branch_of(diag(ACROSS) @ M @ diag(ACROSS)))
    assert any(piece.low == 0 for piece in law.panels.pieces)
    expected = -by_hand.profile(1e-13j, *UNEVEN).imag / np.pi
    assert law.density(np.zeros(1)) == pytest.approx([expected], rel=1e-9)


@pytest.mark.parametrize("series, expected", [([1.5, 1.5], np.inf), ([1.125, 1.5, 0.375], 1.0)])
def test_at_the_end_of_a_piece_a_density_is_what_it_tends_to(series, expected):
    """x = t^3, so that dx/dt = 3 t^2: the density x^(-1/3) has the series of 3 t, and a constant that of 3 t^2."""
    panel = DensityPanel(DensityPiece(0.0, 1.0, 3, 1), 0.0, 1.0, np.array(series), 0.0)
    assert panel.density(np.array([0.0, 0.5]))[0] == pytest.approx(expected, rel=1e-9)


# -- infinite ends

UNBOUNDED = trait("unbounded", N, density=sp.exp(-((sp.log(x)) ** 2) / 2) / x, low=0, high=oo)


def test_a_bounded_function_of_an_unbounded_trait_has_a_bulk():
    """1 / (1 + s) for a log-normal s, which is 1 / (1 + exp(w)) for a normal w."""
    branch = branch_of(W.T @ diag(1 / (1 + UNBOUNDED)) @ W / N)
    places, shares = by_hand.normal_numbers()
    values = 1 / (1 + np.exp(places))
    assert np.allclose(
        branch.resolvent(HERE), [by_hand.weighted_rows(z, 2.0, values, shares) for z in HERE], rtol=1e-10, atol=0
    )
    expected = by_hand.weighted_rows_edges(2.0, values, shares, gaps=False)
    assert np.allclose(law_of(branch).edges, [expected], rtol=1e-9)


# -- records, code, command line


def test_curve_of_two_local_fields():
    """Pastur's equation with two values is a cubic: G = (1/2) / (z - 1 - G) + (1/2) / (z + 1 - G)."""
    two = trait("two", D, values=[1, -1])
    bulk = derive.load(model(M + diag(two))).derivation.bulk
    z, g = sp.Symbol("z"), bulk.projected.resolvent
    expected = sp.expand((z - g) - g * ((z - g) ** 2 - 1))
    ratio = sp.cancel(bulk.curve.subs({s: z for s in bulk.curve.free_symbols if s.name == "z"}) / expected)
    assert ratio.is_number and ratio != 0


def test_equations_of_the_bulk_show_averages_over_sites(declared):
    path = declared(DECLARATION)
    for stage, words in (("probe", "<1/(z - R[psi0, M psi0](z) - s)>"), ("bulk", "averages over sites remain")):
        shown = CliRunner().invoke(main, ["show", str(path), "--stage", stage])
        assert shown.exit_code == 0 and words in shown.output, shown.output


def test_a_density_gives_no_function_of_the_parameters(declared):
    with pytest.raises(NumericalError, match="is available from solve"):
        derive.load(declared(DECLARATION)).function("edge", of=["strength"])


def test_generated_package_runs_and_is_up_to_date(tmp_path, declared):
    path = declared(DECLARATION)
    out = tmp_path / "solvers"
    for extra in ([], ["--check"]):
        result = CliRunner().invoke(main, ["build", str(path), "--out", str(out), *extra])
        assert result.exit_code == 0, result.output
    shown = CliRunner().invoke(main, ["solve", str(path), "strength=3"])
    assert shown.exit_code == 0 and "above the bulk" in shown.output, shown.output


DECLARATION = """
from derive import Model, diag, goe, normal, outer, parameter, sectors, spectrum, trait

strength = parameter("strength", default=2.0)
D = sectors("D")
s = trait("s", D, density=lambda x: 1 + x**2, low=-1, high=1)
v = normal("v", D)
MODEL = Model(parameters=(strength,), probe=spectrum(goe("M", D) + diag(s) + strength / D * outer(v, v)))
"""


TWO_LOCAL_FIELDS = """
from derive import Model, diag, goe, normal, outer, parameter, positive, sectors, spectrum, trait

b = parameter("b", default=1.5, domain=positive)
theta = parameter("theta", default=4.0, domain=positive)
D = sectors("D")
s = trait("s", D, values=[b, -b])
v = normal("v", D)
MODEL = Model(parameters=(b, theta), probe=spectrum(goe("M", D) + diag(s) + theta / D * outer(v, v)))
"""


@pytest.mark.parametrize(
    "claim, status",
    [
        ('kind = "curve"\nvalue = "z - G - G*((z - G)**2 - b**2)"', "proved"),
        ('kind = "curve"\nvalue = "z - G - G*((z - G)**2 - b**3)"', "refuted"),
        ('kind = "moment"\norder = 4\nvalue = "2*(1 + b**2)**2 - b**4"', "proved"),
        ('kind = "scalar_map"\nvalue = "1/G"', "proved"),
        ('kind = "scalar_map"\nvalue = "1/G + b"', "refuted"),
        (
            'kind = "outlier"\nvalue = "(theta + sqrt(theta**2 + 4*b**2))/2 + 1/theta"\nregion = "theta > 3/2"',
            "proved",
        ),
        (
            'kind = "outlier"\nvalue = "(theta + sqrt(theta**2 + 4*b**2))/2 + 2/theta"\nregion = "theta > 3/2"',
            "refuted",
        ),
        ('kind = "outlier"\nvalue = "(theta + sqrt(theta**2 + 4*b**2))/2 + 1/theta"', "refuted"),
        ('kind = "block"\nrow = "C_psi0_v"\ncolumn = "C_psi0_v"\nvalue = "I - theta*G*C[v,v]"', "proved"),
    ],
)
def test_closed_forms_of_two_local_fields(tmp_path, declared, claim, status):
    path = declared(TWO_LOCAL_FIELDS)
    claims = tmp_path / "claims.toml"
    claims.write_text(f'model = "{path}"\n\n[[claim]]\nname = "one"\n{claim}\n', encoding="utf-8")
    (verdict,) = check_claims(load_claims(claims))
    assert verdict.status == status, verdict


# -- what is refused

T = parameter("T", default=3, domain=whole_positive)
K = parameter("K", default=3, domain=whole_positive)
t = training_clock("t", steps=T)


def learned(start, probe) -> Model:
    f, A = field("f", D, t), weights("A", D, D, t)
    equations = [
        Eq(f(0), start),
        Eq(f(t + 1), (f(t) + A(t) @ f(t)) / 2),
        Eq(A(0), M),
        Eq(A(t + 1), A(t) + strength / D * outer(f(t), f(t))),
    ]
    return Model(
        parameters=(*PARAMETERS, T), equations=equations, observe={"q": mean(f(t) ** 2)}, probe=spectrum(probe(f, A))
    )


REFUSED = {
    "a matrix": (lambda: diag(W), "is a matrix; diag takes a vector"),
    "a number": (lambda: diag(2), "is not a vector"),
    "a parameter": (lambda: diag(kappa), "is not a vector"),
    "a product": (lambda: diag(M @ v), "give W @ v a field of its own"),
    "two sectors": (lambda: diag(FEW * ROWS), "sector"),
    "wrong sector": (lambda: W.T @ diag(FEW) @ W, "columns meet"),
    "sum of sectors": (lambda: M + diag(ROWS), "cannot add"),
    "size inside": (lambda: diag(FEW + 1 / D), "a size occurs inside"),
    "no trait": (lambda: derive_model(model(M + diag(v))), "which is unbounded because v is"),
    "not symmetric": (lambda: derive_model(model(diag(FEW) @ M)), "not symmetric"),
    "nothing random": (lambda: derive_model(model(diag(FEW) + outer(v, v) / D)), "there is no random matrix"),
    "mean inside": (lambda: derive_model(model(M + diag(FEW / mean(FEW**2)))), "contains a mean"),
    "data": (
        lambda: derive_model(model(M + diag(trait("given", D, values=data("numbers", axis("k", K)))), K)),
        "are data",
    ),
    "grows slowly": (lambda: derive_model(model(W.T @ diag(sp.log(1 + UNBOUNDED)) @ W / N)), "is unbounded because"),
    "unbounded": (
        lambda: derive_model(model(M + diag(trait("long", D, density=sp.exp(-x), low=0, high=oo)))),
        "which is unbounded because long is",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name):
    make, words = REFUSED[name]
    with pytest.raises(
        DeclarationError, match="(?s).*" + words.replace("(", r"\(").replace(")", r"\)").replace(".", r"\.")
    ) as told:
        make()
    assert "\n" not in str(told.value).strip() or "line" in str(told.value)


@pytest.mark.long
def test_a_bulk_that_ends_where_its_density_does_is_refused_or_right():
    """A density that vanishes fast at its end, and hardly any noise: the edge is no fold."""
    thin = trait("thin", D, density=(1 - x) ** 3, low=0, high=1)
    with pytest.raises(NumericalError):
        _ = derive.load(model(M / 20 + diag(thin))).solve().bulk_edges


# -- simulation


@pytest.mark.parametrize("name", ["uneven_samples", "local_fields", "tanh_jacobian", "uneven_wigner"])
def test_declarations_derive(name):
    assert derivation_of(name).probe.differing


def test_spikes_that_are_learned_are_seen_at_every_time():
    solver, values = solver_and_values("local_fields", T=4, rate=1.0)
    whole = solve(solver, values, path=True)
    for steps in (2, 3):
        early = solve(solver, {**values, "T": steps})
        assert whole.layers[0].outlier_path[steps] == pytest.approx(early.layers[0].outliers, rel=1e-9)


def test_a_spike_at_which_the_inverse_of_the_map_has_a_pole_has_no_outlier():
    """z = s + sum of shares w of values d of w d / (1 - d / (2 s)): infinite at s = 1/2, and an outlier beyond 3.03."""
    strength = parameter("strength", default=0.5, domain=positive)
    D, N = sectors("D", N=2)
    W, a, d = gaussian("W", N, D), normal("a", D), trait("d", N, values=[1, 3], weights=[0.5, 0.5])
    m = derive.load(Model((strength,), probe=spectrum(W.T @ diag(d) @ W / N + strength / D * outer(a, a))))
    assert len(m.solve().outliers) == len(m.solve(strength=1.5).outliers) == 0
    s = 4.0
    expected = s + 0.5 / (1 - 1 / (2 * s)) + 1.5 / (1 - 3 / (2 * s))
    assert m.solve(strength=s).outliers == pytest.approx([expected], rel=1e-12)


@pytest.mark.long
def test_a_bulk_that_diverges_at_zero_may_be_cut_as_close_to_it_as_rounding():
    """Squared singular values of diag(s)^2 A, s of the density 2 (1 + x)/3 on (0, 1): by its own moments, and the
    share of eigenvalues below a tiny number as in simulations of 1000 sites."""
    s, A = trait("s", D, density=1 + Symbol("x"), low=0, high=1), gaussian("A", D, D)
    solution = derive.load(Model(parameters=(), probe=spectrum(A.T @ diag(s**4) @ A / D))).solve()
    assert solution and solution.layer().share_below(1e-8) == pytest.approx(0.0193, abs=0.001)
