"""No rewrite uses more than the declared domains: signs, zeros and powers of parameters and times."""

from __future__ import annotations

import pytest
import sympy as sp

from derive import (
    Domain,
    Eq,
    Model,
    field,
    gaussian,
    goe,
    mean,
    nonnegative,
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
from derive.algebra.generators import Generator, Generators, decode, roots_of
from derive.algebra.physical import Sample, check_vanishes
from derive.algebra.recheck import check_same, domain_points
from derive.algebra.scaling import size_free, size_order, split_sizes
from derive.algebra.sites import SiteEntry, SiteNormal, SiteValue
from derive.codegen import solver_files
from derive.errors import DeclarationError, InternalError, ParameterError, SizeError
from derive.pipeline import derive_model
from derive.records.probe import MAP
from numerics.solver import load_solver

k, a = parameter("k", default=-1.5), parameter("a", default=0.5)
nu = parameter("nu", default=1.5, domain=positive)
T = parameter("T", default=5, domain=whole_positive)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
g = normal("g", N)


# -- sizes leave a coefficient because it is homogeneous


@pytest.mark.parametrize(
    ("coefficient", "order"),
    [
        (sp.Abs(k) / D, -1),
        (sp.sqrt(N + a**2 * D), sp.Rational(1, 2)),
        (sp.sqrt(k**2 * D**2 + N**2), 1),
        (sp.Max(N, 2 * D) / sp.sqrt(D), sp.Rational(1, 2)),
        (sp.Piecewise((D, N > D), (N, True)), 1),
        (sp.Heaviside(N - D) + sp.sign(k * D), 0),
        (sp.KroneckerDelta(t, 0) / sp.sqrt(N), -sp.Rational(1, 2)),
        (sp.log(N / D), 0),
    ],
)
def test_a_homogeneous_coefficient_has_the_power_of_its_degree(coefficient, order):
    assert size_order(coefficient, "here") == order


@pytest.mark.parametrize("coefficient", [sp.log(D), 1 + D, D ** sp.Symbol("x"), sp.Max(N, 1), D + sp.sqrt(D)])
def test_a_coefficient_that_is_not_homogeneous_is_refused(coefficient):
    with pytest.raises(SizeError, match="is not a power of a size"):
        size_order(coefficient, "here")


@pytest.mark.parametrize(
    ("coefficient", "at", "value"),
    [
        (sp.Abs(k) * N / D, {k: -2, nu: 3}, 6),
        (sp.sqrt(k**2 * N) / sp.sqrt(D), {k: -2, nu: 4}, 4),
        (sp.sign(k) * sp.sqrt(N * D) / D, {k: -2, nu: 4}, -2),
        ((1 + sp.Heaviside(k)) * D / N, {k: -2, nu: 4}, sp.Rational(1, 4)),
        (sp.KroneckerDelta(t, 0) * N / D, {t: 0, nu: 4}, 4),
        (sp.Abs(t - 1) * N / D, {t: 0, nu: 4}, 4),
        (sp.S.Zero**t * N / D, {t: 0, nu: 4}, 4),
    ],
)
def test_sizes_leave_a_coefficient_without_assuming_signs(coefficient, at, value):
    assert size_free(coefficient, "here").subs(at) == value


def test_only_powers_of_sizes_are_taken_out_of_a_coefficient():
    coefficient = k * sp.sqrt(N + k * D) / D
    sizes, rest = split_sizes(coefficient)
    assert not sizes.atoms(type(k)) & {k}
    check_same(coefficient, sizes * rest, "test", "here")


def test_a_mean_may_hold_ratios_of_sizes():
    """<(g + (D/N) h)^2> is <(g + h/nu)^2>, in whatever form it is written; <(g + D h)^2> is neither."""
    h = normal("h", N)
    square = mean((g + D / N * h) ** 2)
    assert not size_free(k * square, "here").has(D)
    assert split_sizes(square / sp.sqrt(D))[0] == 1 / sp.sqrt(D)
    check_same(square, mean((g + h / nu) ** 2), "test", "here")
    for other in (g + D * h, g + h, g - h / nu):
        with pytest.raises(InternalError):
            check_same(square, mean(other**2), "test", "here")


# -- indeterminates


def test_powers_of_one_base_share_an_indeterminate():
    shrink = sp.Rational(9, 10)
    generators = Generators.of((shrink**T * nu + shrink ** (2 * T) + shrink ** (T + 1),))
    encoded = generators.encode(shrink**T * nu + shrink ** (2 * T) + shrink ** (T + 1))
    (power,) = (s for s in encoded.free_symbols if isinstance(s, Generator))
    assert sp.expand(encoded - (power * nu + power**2 + shrink * power)) == 0


def test_a_base_that_may_be_zero_is_not_divided_by():
    """k**(T - 1) is 1 at k = 0 and T = 1; k**T / k is not."""
    expression = k ** (T - 1) + k**T
    assert decode(Generators.of((expression,)).encode(expression)).subs({T: 1, k: 0}) == 1


@pytest.mark.parametrize(
    "expression",
    [
        sp.sqrt(1 + a) * k + sp.Abs(k),
        sp.sqrt(nu) * nu + nu ** sp.Rational(1, 3),
        sp.exp(-k) / (1 + sp.pi * a),
        (1 + a) ** sp.Rational(3, 2) * sp.Piecewise((1, k > 0), (2, True)),
    ],
)
def test_functions_of_parameters_survive_the_way_into_a_ring(expression):
    check_same(expression, decode(Generators.of((expression,)).encode(expression)), "test", "here")


# -- every stage checks itself


def test_a_rewrite_that_drops_an_absolute_value_is_an_internal_error():
    with pytest.raises(InternalError, match="the stage test turned"):
        check_same(sp.Abs(k), k, "test", "here")


def test_a_rewrite_that_divides_by_zero_is_an_internal_error():
    with pytest.raises(InternalError):
        check_same(k ** (T - 1), k**T / k, "test", "here")


def test_a_relation_that_vanishes_as_a_whole_is_an_internal_error():
    shrink = sp.Rational(9, 10) ** T
    sample = Sample({T: 3}, {MAP: sp.Integer(2)})
    with pytest.raises(InternalError, match="does not hold"):
        check_vanishes(MAP * (shrink**2 - sp.Rational(9, 10) ** (2 * T)), [sample], "test", "a relation")


def test_points_of_a_domain_have_all_signs_zero_and_ends():
    values = [point[k] for point in domain_points([k])]
    assert min(values) < 0 < max(values) and 0 in values
    inside = parameter("rho", default=0.5, domain=Domain(-1, 1, low_included=True))
    assert -1 <= min(p[inside] for p in domain_points([inside])) < 0
    assert all(
        point[a_ratio] >= 0 for a_ratio in [parameter("x", 1.0, nonnegative)] for point in domain_points([a_ratio])
    )
    assert any(point[t] == 0 for point in domain_points([t]))


def test_points_are_generic_unless_a_domain_is_whole():
    """At whole numbers different relations may agree, as k^2 and |k| do at one."""
    assert [point[k].is_Integer for point in domain_points([k])] == [False, False, True, False]
    assert all(point[T].is_Integer and point[T] > 0 for point in domain_points([T]))


# -- the classes of wrong numbers that forced rewrites made


def outlier(coefficient: sp.Expr, **values: float) -> sp.Expr:
    """The outlier of a GOE matrix with a spike, from its derived record, at values of the parameters."""
    model = Model(parameters=(k, a, nu), equations=[], probe=spectrum(goe("S", N) + coefficient / N * outer(g, g)))
    (cycle,) = derive_model(model).first.pencil.cycles
    return cycle.inverse.subs(MAP, cycle.eigenvalue).subs({k: -1.5, a: 0.5, nu: 2, **values})


@pytest.mark.parametrize(
    ("coefficient", "strength"),
    [
        (sp.Abs(k), 1.5),
        (sp.sqrt(k**2), 1.5),
        (2 * sp.sign(k), -2),
        (2 + sp.Heaviside(k), 2),
        (sp.Min(k, 0), -1.5),
        (sp.Max(-k, 0), 1.5),
        (sp.Piecewise((3, k < 0), (2, True)), 3),
        (2 * sp.sqrt(1 + a), 2 * 1.5**0.5),
        (k * sp.Abs(k), -2.25),
        (sp.pi * sp.sqrt(1 - a**2), sp.pi * 0.75**0.5),
    ],
)
def test_a_spike_has_the_strength_that_is_declared(coefficient, strength):
    assert float(outlier(coefficient)) == pytest.approx(float(strength + 1 / strength))


def test_weights_that_shrink_beside_a_ratio_have_a_relation():
    """Elimination once returned the zero polynomial where (9/10)**T stood beside nu."""
    x, W, W0 = normal("x", D), weights("W", N, D, t), gaussian("W0", N, D)
    update = sp.Rational(9, 10) * W(t) + 2 / sp.sqrt(D) * outer(g, x)
    model = Model(
        parameters=(T, nu),
        equations=[Eq(W(0), W0), Eq(W(t + 1), update)],
        probe=spectrum(W(T).T @ W(T) / N + goe("B", D)),
    )
    (cycle,) = derive_model(model).first.pencil.cycles
    assert sp.expand(cycle.relation) != 0 and cycle.relation.has(MAP)


def test_a_root_of_a_sum_may_scale_a_random_matrix():
    model = Model(parameters=(a,), equations=[], probe=spectrum(sp.sqrt(1 + a) * goe("S", D)))
    edges = [e.subs(a, 3) for e in derive_model(model).first.bulk.edges]
    assert sorted(edges) == [-4, 4]


def test_a_sign_may_scale_a_wishart_matrix():
    W = gaussian("W", N, D)
    model = Model(parameters=(k, nu), equations=[], probe=spectrum(sp.sign(k) * W.T @ W / N))
    curve = derive_model(model).first.bulk.curve
    assert sp.expand(curve.subs({k: -2, nu: 1}) - curve.subs({k: -5, nu: 1})) == 0 and curve.has(sp.sign(k))


def test_a_declared_domain_is_what_sympy_may_assume():
    below = parameter("below", default=-1.0, domain=Domain(high=0))
    assert below.is_negative and parameter("x", default=0.0, domain=Domain(high=0, high_included=True)).is_nonpositive
    assert k.is_positive is None and k.is_real and sp.sqrt(k**2) == sp.Abs(k)
    with pytest.raises(DeclarationError):
        parameter("y", default=1.0, domain=Domain(high=0))


@pytest.mark.parametrize(("coefficient", "refused"), [(sp.sqrt(1 + a), -2.0), (1 / a, 0.0), (sp.log(2 + a), -3.0)])
def test_a_coefficient_that_is_not_real_is_refused_by_its_name(coefficient, refused):
    model = Model(parameters=(a,), equations=[], probe=spectrum(coefficient * goe("S", D)))
    solver = load_solver(solver_files(model))
    assert solver.numbers({"a": 0.5})
    with pytest.raises(ParameterError, match="is not a finite number at these parameters"):
        solver.numbers({"a": refused})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (sp.sin(2 * k), 2 * sp.sin(k) * sp.cos(k)),
        (sp.tan(2 * k), 2 * sp.tan(k) / (1 - sp.tan(k) ** 2)),
        (sp.sinh(2 * k), 2 * sp.sinh(k) * sp.cosh(k)),
        (sp.tanh(2 * k), 2 * sp.tanh(k) / (1 + sp.tanh(k) ** 2)),
        (sp.exp(2 * k), (sp.sinh(k) + sp.cosh(k)) ** 2),
        (sp.log(3 + k**2), 2 * sp.log(sp.sqrt(3 + k**2))),
        (sp.erf(2 * k) / 2, sp.erf(k + sp.Abs(k) * sp.sign(k)) / 2),
        (sp.atan(2 + k**2), sp.pi / 2 - sp.atan(1 / (2 + k**2))),
    ],
    ids=lambda one: type(one).__name__,
)
def test_functions_of_parameters_are_known_by_their_identities(one, other):
    """And not as numbers of their own, of which two that are written otherwise would differ."""
    assert one != other
    check_same(one, other, "test", "here")
    with pytest.raises(InternalError):
        check_same(one, 1.01 * other, "test", "here")


def test_roots_of_polynomials_with_signs_have_values_at_zero():
    """SymPy writes sign(k) as k/Abs(k) on the way to a root, and a critical value had none at k = 0."""
    k, z = parameter("k", default=0.0), sp.Symbol("z")
    strength = 2 + sp.sign(k) * sp.KroneckerDelta(sp.sign(k), -1)
    roots = roots_of(z**2 - 4 * strength**2, z)
    assert sorted(root.subs(k, 0) for root in roots) == [-4, 4]
    assert sorted(root.subs(k, -3) for root in roots) == [-2, 2]


def test_a_point_where_a_rewrite_has_no_value_is_a_mismatch():
    k = parameter("k", default=0.0)
    before, after = sp.KroneckerDelta(sp.sign(k), -1), sp.KroneckerDelta(0, k / sp.Abs(k) + 1)
    with pytest.raises(InternalError, match="turned 0 into"):
        check_same(before, after, "bulk", "an edge")


# -- numbers of a site are real


def test_symbols_for_numbers_of_a_site_are_real():
    """So that the square of a modulus is the square, and the root of a square a modulus."""
    value = sp.sympify(field("x", D, t)(0))
    sector = value.field.sector
    given = sp.sympify(trait("v", D, values=[-1, 1])())
    for one in (SiteNormal("n", sector)(), SiteValue(value)(), SiteEntry("d", sector, sp.tanh(value))(), given):
        assert one.is_real and not one.is_nonnegative and not one.is_zero
        assert sp.Abs(one) ** 2 == one**2 and sp.sqrt(one**2) == sp.Abs(one) and sp.conjugate(one) == one


def test_a_rewrite_is_not_judged_where_the_original_is_undefined():
    k = parameter("k", default=1.0)
    check_same(1 + 1 / k, (k + 1) / k, "test", "here")
    with pytest.raises(InternalError, match="turned"):
        check_same(1 + 1 / k, (k + 2) / k, "test", "here")
