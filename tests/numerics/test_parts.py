"""One fact of the theory for each of several small parts of the engine, which larger tests pass through unnoticed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from derive import (
    Eq,
    Model,
    diag,
    field,
    fields,
    gaussian,
    goe,
    mean,
    normal,
    parameter,
    past_sum,
    sectors,
    spectrum,
    training_clock,
    trait,
    whole_positive,
)
from derive.algebra.degrees import MOST_ORDERS, PRIME, NoExpansion, ResolventExpansion
from derive.algebra.generators import Generators, decode
from derive.algebra.nodes import Z
from derive.algebra.physical import physical_samples, sample_point
from derive.algebra.polynomials import PolynomialRing, _Evaluation
from derive.algebra.scaling import size_free
from derive.algebra.sites import TraitAverage, around_averages, at_source
from derive.codegen import solver_files
from derive.equations.aligning import _driven_earlier
from derive.equations.gaussian_laws import Laws, _kinks, _reduced
from derive.equations.history import _reached
from derive.equations.needs import Needs
from derive.equations.times import latest_moment
from derive.errors import DeclarationError
from derive.language.vectors import PAST
from derive.pipeline import Derivation, derive_model
from derive.program.module import _demands_in_time
from derive.program.probe import _pieces, _steady
from derive.program.simulation_text import write_simulation
from derive.program.sites import Sharing
from derive.program.text import ModuleNames, PlainNumpyText
from derive.records.method import ClosureKind
from derive.records.probe import Unknown
from derive.stages.blocks import assemble_blocks
from derive.stages.expand import expand_declaration
from derive.stages.probe import project_probe
from numerics.bulk import density, edges
from numerics.bulk.folds import End
from numerics.bulk.law import Panelled, SpectralLaw
from numerics.bulk.polynomials import PolynomialSystem, Sums
from numerics.outliers.errors import _apart
from numerics.outliers.panels import ChebyshevPanel, Interval, crossings
from numerics.runtime import moments, traits
from numerics.runtime.finite_size import in_order
from numerics.runtime.gaussian import _breaks
from numerics.simulation.compare import _inwards
from numerics.simulation.samples import KEPT, _early
from numerics.training import sampling, trained
from numerics.training.ensemble import Resolved, _among

D = sectors("D")
A, B, C = (goe(name, D) for name in "ABC")
G, R = sp.symbols("G R")
a, b, k = sp.symbols("a b k", real=True)
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x, y = fields("x y", D, t)
v = normal("v", D)


# -- the probed matrix


def spectral_fields(matrix) -> int:
    """How many vectors the resolvent of a matrix is made of."""
    return len(expand_declaration(Model((), [], probe=spectrum(matrix))).probes[0].fields)


def test_only_multiples_of_one_matrix_share_the_vector_that_they_make():
    """(A + B)^2 takes psi, (A + B) psi, and A and B times either; another sum of the same first term takes its own."""
    assert spectral_fields((A + B) @ (A + B)) == spectral_fields(3 * (A + B) @ (A + B)) == 6
    assert spectral_fields((A + B) @ (A + B) + 2 * (A + B) @ (A + B)) == 6
    assert spectral_fields((A + B) @ (A + B) + (A + C) @ (A + C)) == 10


# -- sizes and powers


def test_a_ratio_of_sizes_may_have_any_exponent():
    base, other = sectors("D", N=2)
    assert size_free((other / base) ** sp.Symbol("k", real=True), "here") == 2 ** sp.Symbol("k", real=True)


def test_a_power_stands_for_itself_where_it_was_not_announced():
    power = (1 + a) ** (2 * k)
    assert decode(Generators.of([]).encode(power)) == power


def test_a_point_has_a_value_for_every_parameter():
    rate, nu = parameter("rate", default=0.5), parameter("nu", default=2.0)
    assert len(sample_point([sp.sympify(T * rate + nu)])) == 3


def test_an_eliminated_polynomial_that_does_not_vanish_on_the_physical_branch_is_refused():
    ring = PolynomialRing.of([G**2 - R])
    with pytest.raises(ValueError, match="fits the physical branch"):
        _Evaluation.add_factors(SimpleNamespace(accepts=lambda factor: False), [], ring.encode(G**2 - R))


def test_a_source_drives_responses_through_others():
    """The source drives h, h drives j, and j drives k; nothing drives m."""
    h, j, k, m = (Unknown("R", x, one) for one in fields("h j k m", D, t))
    rows = {k: {j: ()}, j: {h: (), j: ()}, h: {}, m: {}}
    work = SimpleNamespace(
        reachable=lambda: rows, neighbours=lambda: {x: ()}, driven=lambda unknown, probe, field: unknown == h
    )
    assert list(_driven_earlier(work, (), x, v)) == [k, j, h]


# -- averages over sites


def test_an_expression_with_two_averages_is_expanded_around_them():
    s = sp.sympify(trait("s", D, values=[1, 2])())
    one, two = TraitAverage(1 / (Z - s)), TraitAverage(s / (Z - s))
    assert around_averages(sp.expand, (1 + one) * (1 + two)) == 1 + one + two + one * two
    with_source = TraitAverage(1 / (Z - s + R)) * TraitAverage(s / (Z - s + R))
    assert at_source(G + with_source + R, {R: sp.S.Zero}) == G + one * two


def test_functions_that_are_not_known_have_values_of_their_own_on_the_physical_branch():
    f, g = (sp.Function(name)(sp.Symbol("k")) for name in "fg")
    samples = physical_samples((Z * G - 1 - f * g * G**2,), (G,))
    assert samples and all(one.point[f] != one.point[g] for one in samples)
    assert all(one.vanishes(Z * G - 1 - f * g * G**2) for one in samples)


# -- degrees of a curve


def test_sums_of_products_of_residues_fit_into_whole_numbers_of_64_bits():
    assert MOST_ORDERS * (PRIME - 1) ** 2 < 2**63
    with pytest.raises(NoExpansion, match="more than"):
        ResolventExpansion.of([Z * G - 1 - G**2], [G]).lowest_degrees([(1, MOST_ORDERS // 2)])


def test_a_coefficient_that_is_not_rational_has_no_residue():
    with pytest.raises(NoExpansion, match="not rational"):
        ResolventExpansion.of([Z * G - 1 - G**2, Z * R - 1 - sp.sqrt(2) * R**2], [G, R])


# -- laws by quadrature


def test_a_law_that_changes_in_time_takes_the_time_as_a_number():
    h, W = field("h", D, t), gaussian("W", D, D)
    equations = [
        Eq(x(0), v),
        Eq(h(t), W @ x(t) / sp.sqrt(D)),
        Eq(x(t + 1), sp.tanh((1 + t) * h(t))),
        Eq(y(t), sp.tanh(h(t))),
    ]
    laws = Laws(derive_model(Model((T,), equations, {"q": mean(x(t) * y(t))})).layout, (), ())
    numbers = {str(law.expression): tuple(map(str, law.numbers)) for law in laws.laws.values()}
    assert numbers == {"tanh(u0)": (), "tanh(n0*u0)": ("t",)}


@pytest.mark.parametrize(
    ("law", "count"),
    [
        (sp.tanh(a + k * b), 1),
        (sp.tanh(a + 2 * b) * sp.sin(2 * a + 4 * b), 1),
        (sp.tanh(a + 2 * b) * sp.sin(2 * a + 3 * b), 2),
        (sp.exp(a + b + sp.tanh(2 * a + 2 * b)), 1),
        (sp.exp(1 + a + b + sp.tanh(k * (a + b) + 3)), 1),
    ],
)
def test_a_law_in_combinations_of_its_arguments_is_the_same_function(law, count):
    reduced, combinations = _reduced(law, [a, b])
    values = {sp.Symbol(f"u{i}", real=True): sp.Add(*(c * u for u, c in one)) for i, one in enumerate(combinations)}
    assert len(combinations) == count
    assert sp.expand(reduced.xreplace(values if count == 1 else {}) - law) == 0


# -- what is asked of parameter values


def test_every_coefficient_in_time_must_be_finite():
    text = PlainNumpyText(ModuleNames(), {})
    model = Model((T,), [Eq(x(0), v), Eq(x(t + 1), x(t) / (t - 1) + v / (t - 2))])
    assert len(_demands_in_time(model, text)) == 2


def test_a_mean_may_multiply_the_argument_of_an_absolute_value():
    """Numbers of a law are real, so that an absolute value of their products with fields has a slope."""
    h, W = field("h", D, t), gaussian("W", D, D)
    law = sp.Abs(mean(x(t) ** 2) * h(t) - 1)
    equations = [Eq(x(0), v), Eq(h(t), W @ x(t) / sp.sqrt(D)), Eq(x(t + 1), law)]
    (found,) = Laws(derive_model(Model((T,), equations, {"q": mean(x(t))})).layout, (), ()).laws.values()
    assert found.straight and len(found.numbers) == 1 and not found.slopes[0].has(sp.re)


def test_kinks_of_two_arguments_cross_where_both_vanish():
    """z0 + z1 = 1 and z0 = z1 cross at z0 = 1/2."""
    planes = [([np.array(1.0), np.array(1.0)], np.array(-1.0)), ([np.array(1.0), np.array(-1.0)], np.array(0.0))]
    assert float(_breaks(planes, 0, [])[-1]) == pytest.approx(0.5)


def test_the_larger_of_two_arguments_has_a_kink_where_they_are_equal():
    assert _kinks(sp.Max(a, 3 * b), [a, b], "here") in ((a - 3 * b,), (3 * b - a,))


def test_what_a_function_may_be_between_its_kinks():
    assert set(_pieces(sp.Abs(a) + sp.Max(b, 1))) == {a + b, a + 1, b - a, 1 - a}


# -- sums over earlier times


def test_a_sum_over_earlier_times_may_hold_a_mean_of_both_times():
    """What outer products of x do to y: the sum over s of x(s) <x(s) y(t)>."""
    law = past_sum(lambda s: x(s) * mean(x(s) * y(t)), t)
    system = expand_declaration(Model((T,), [Eq(x(0), v), Eq(x(t + 1), A @ x(t)), Eq(y(0), v), Eq(y(t + 1), law)]))
    (terms,) = (f.rule.terms for f in system.fields if str(f.field) == "y")
    assert [tuple(str(one.field) for one in term.pair) for term in terms if term.pair] == [("x", "y")]


def test_an_expression_at_two_times_at_once_has_no_last_time():
    with pytest.raises(DeclarationError, match="at the times s and t at once"):
        latest_moment(sp.sympify(x(t)) + sp.sympify(y(t)).xreplace({sp.sympify(t): PAST}), "here")


# -- long training


def test_noise_of_each_step_stirs_the_fields_whose_equations_hold_it():
    noise = normal("noise", D, t)
    equations = [Eq(x(0), v), Eq(x(t + 1), x(t) / 2 + noise(t)), Eq(y(0), v), Eq(y(t + 1), A @ y(t) / 4 + x(t))]
    recursion = derive_model(Model((T,), equations, {"q": mean(y(t) ** 2)})).recursion
    assert [str(one) for one in recursion.stirred] == ["x"]


# -- histories of weights


def test_what_is_added_to_weights_reaches_those_that_depend_on_them_through_others():
    """U(t+1) = U + dyad, V(t+1) = V + U, W(t+1) = W + V: a dyad is in W two steps later. X depends on none of them."""
    zero, one = sp.S.Zero, sp.S.One
    matrix = [[one, zero, zero, zero], [one, one, zero, zero], [zero, one, one, zero], [zero, zero, zero, one]]
    assert _reached(matrix, [one, zero, zero, zero], [zero] * 4) == [True, True, True, False]


# -- zeros outside the bulk


def test_a_function_that_vanishes_like_one_over_z_is_zero_at_infinity():
    upwards = ChebyshevPanel(Interval(1.0, np.inf, 1.0), 0.0, 1.0, np.array([0.5, -0.5]))
    assert crossings(lambda z: 1 / z, [0.0], [upwards]) == [[np.inf]]


# -- training


def test_points_that_fill_up_a_batch_are_no_results(monkeypatch):
    def settled(_, kind, count):
        return ({}, {"x": np.arange(float(count))[:, None]}, np.ones(count)), [{"point": k} for k in range(count)]

    monkeypatch.setattr(trained, "settle", settled)
    monkeypatch.setattr(trained, "integrals_of", lambda training: None)
    monkeypatch.setattr(trained, "check_memory", lambda solver, values: 1)
    solver = SimpleNamespace(quadrature=True, training=None, point=lambda values: values)
    (one,) = trained.train_together(solver, [{"a": 1.0}], batch=3)
    assert one.method == {"point": 0}


def test_vectors_that_one_matrix_acts_on_are_remembered_together_also_where_a_fresh_one_does():
    h, j, k = fields("h j k", D, t)
    W, X = gaussian("W", D, D), gaussian("X", D, D, fresh=t)
    equations = [
        Eq(x(0), v),
        Eq(x(t + 1), sp.tanh(h(t) + j(t)) + k(t)),
        Eq(y(t), sp.sin(x(t))),
        Eq(h(t), W @ x(t) / sp.sqrt(D)),
        Eq(j(t), W @ y(t) / sp.sqrt(D)),
        Eq(k(t), X(t) @ x(t) / sp.sqrt(D)),
    ]
    layout = derive_model(Model((T,), equations, {"q": mean(x(t) ** 2)})).layout
    held = [{str(one) for one in span.fields} for span in Sharing(layout, Needs()).spans if not span.fresh]
    assert {"x", "y"} in held


# -- diagonals


@pytest.mark.parametrize("steady", [True, False])
def test_what_is_sampled_at_a_time_before_the_last_depends_on_the_number_of_steps(steady):
    m = field("m", D) if steady else field("m", D, t)
    at, equation = (m, Eq(m, A @ v)) if steady else (m(T - 1), Eq(m(t), A @ x(t)))
    model = Model((T,), [Eq(x(0), v), Eq(x(t + 1), x(t) / 2), equation], probe=spectrum(A + diag(sp.tanh(at))))
    derivation = Derivation(model)
    blocks = assemble_blocks(project_probe(derivation.first.saddle, derivation.order, sampled=True))
    assert _steady(blocks, derivation.layout.clock) == steady


def test_what_is_sampled_on_a_diagonal_is_taken_at_its_time():
    m = field("m", D, t)
    equations = [Eq(x(0), v), Eq(x(t + 1), x(t) / 2), Eq(m(t), A @ x(t))]
    model = Model((T,), equations, probe=spectrum(A + diag(sp.tanh(m(T - 1)))))
    derivation = Derivation(model)
    chosen = tuple(replace(one, closure=ClosureKind.SAMPLED) for one in derivation.method.sectors)
    vars(derivation)["method"] = replace(derivation.method, sectors=chosen, laws=None)
    assert "('m',), lambda p: (p.T - 1,)" in solver_files(model, derivation)["training.py"]


def test_responses_for_each_diagonal_entry_are_those_of_the_times_and_the_tolerance_of_the_others(monkeypatch):
    monkeypatch.setattr(moments.diagonals, "responses_by_value", lambda *given: [None, given])
    run = SimpleNamespace(
        _sites=lambda sector: SimpleNamespace(known=False),
        _entries=lambda name, time: (name, time),
        channel_of={"h": SimpleNamespace(name="W", products=["g", "h"])},
        moments={("W", "D", "C x", "R W"): "means", ("G", "W"): "covariances"},
        tables={},
        times=5,
        tolerance=1e-3,
    )
    found = moments.OrderFromMoments.by_value(run, "D", "C", "x", "R", "h")
    assert found == ("means", "covariances", (("g", 0), ("h", 0)), 5, 1e-3)


# -- the bulk


def test_slopes_that_are_not_zero_act_as_their_matrix():
    """Slopes ((2 z, 0, 5), (0, 3, 0), (1, 0, r0)) of three equations by three unknowns."""
    slope = [(0, 2.0, (0,)), (2, 5.0, ()), (4, 3.0, ()), (6, 1.0, ()), (8, 1.0, (1,))]
    none = Sums.of([], 4)
    system = PolynomialSystem(3, none, none, Sums.of(slope, 4))
    z, r = np.array([1.5, -1.0]), np.array([[0.5, 7.0, 9.0], [4.0, 7.0, 9.0]])
    values = system.values(z, r)[2]
    matrices = np.array([[[2 * a, 0, 5], [0, 3, 0], [1, 0, b]] for a, b in zip(z, r[:, 0], strict=True)])
    columns, sizes = np.arange(12.0).reshape(2, 3, 2), np.array([[1.0, 2.0, 3.0], [5.0, 0.1, 0.2]])
    assert np.allclose(system.matrices(values), matrices)
    assert np.allclose(system.times(values, columns), matrices @ columns)
    assert np.allclose(system.widest(values, sizes), np.max(np.abs(matrices) * sizes[:, None, :], axis=-1))


def test_gaps_are_found_where_the_density_vanishes(monkeypatch):
    """A bulk in (-2, -1) and (1, 2), whose branch is followed to the next of these ends."""
    ends = np.array([-2.0, -1.0, 1.0, 2.0])

    def march(branch, z, r, upward):
        return End(float(np.min(ends[ends > z]) if upward else np.max(ends[ends < z])), "fold")

    def certain(z, tell, what):
        return (((np.abs(z) > 1) & (np.abs(z) < 2)) * 1j)[:, None], np.zeros(z.size)

    monkeypatch.setattr(edges, "march", march)
    branch = SimpleNamespace(
        start=SimpleNamespace(height=1.0),
        followed=lambda z: (np.zeros((2, 1)), None),
        certain=certain,
        by_factors=False,
        resolvent_index=0,
    )
    intervals, empty = edges.support_from_branch(branch)
    assert intervals == [(-2.0, -1.0), (1.0, 2.0)] and np.all(np.abs(empty) <= 1) and empty.size


def test_a_law_that_is_moved_has_its_atoms_moved():
    atoms = SpectralLaw(((0.0, 0.0),), ((-1.0, 0.25), (2.0, 0.75)), Panelled((), (0.5,)), 0.0)
    moved = atoms.moved(3.0)
    assert moved.transform(5j + 3) == pytest.approx(atoms.transform(5j))
    assert moved.moment(1) == pytest.approx(atoms.moment(1) + 3) and moved.panels.zeros == (3.5,)


def test_the_average_of_a_resolvent_over_sites():
    z, values, weights = np.array([3.0, 4.0j]), np.array([[1.0], [2.0]]), np.array([0.25, 0.75])
    average = traits.SiteAverage(weights, ((-1, (("z", np.ones((2, 1))), ("1", -values))),))
    assert average.at({"z": z}) == pytest.approx(0.25 / (z - 1) + 0.75 / (z - 2))


def test_a_resolvent_that_a_curve_gives_to_nine_digits_is_found_again_at_any_scale(monkeypatch):
    """Of the matrix times 1e6 the resolvent is a millionth, and so is the error that is allowed."""
    monkeypatch.setattr(density.Curve, "of", lambda law, own: True)
    monkeypatch.setattr(density, "_on_curve", lambda *_: (np.array([1e-6 + 0j]), np.array([1e-15])))
    branch = SimpleNamespace(
        law=None,
        own=None,
        eliminated=True,
        resolvent_index=0,
        start=SimpleNamespace(height=1e7),
        certain=lambda z, tell, what: (np.full((len(z), 1), 2e-6 + 0j), np.zeros(len(z))),
    )
    assert density.resolvent_at(branch, np.array([1.0]))[0] == pytest.approx([2e-6])


def test_outliers_whose_distance_is_half_noise_have_half_of_their_own_error():
    """Distances of 0.1 as they are seen are 0.2 without bias: squares of errors of an outlier alone, 0.1, and of the
    mean and of distances, 0.3 and 0.4, count alike."""
    errors = {1.1: 0.3, -0.1: 0.4, 0.1: 0.4, 1.0: 0.1, 1.2: 0.1}
    nearby = SimpleNamespace(
        estimate=lambda value, others: (value, errors[round(value, 6)]), added_by_noise=lambda *_: 0.0, unbiased={}
    )
    found = _apart([0, 1], [1.0, 1.2], [[0.9], [1.3]], nearby)
    assert found == [(pytest.approx(1.1 + far), pytest.approx(np.sqrt((0.01 + 0.25) / 2))) for far in (-0.2, 0.2)]


# -- simulation


def test_fields_are_computed_in_an_order_in_which_each_is_known():
    """y = 2 x is declared before x, and is computed after it."""
    model = Model((T,), [Eq(y(t), 2 * x(t)), Eq(x(t), A @ v)], {"q": mean(y(t) ** 2)})
    text = write_simulation(model, (), "numerics.runtime")
    assert text.index(" x = ") < text.index(" y = ")


def test_vectors_before_the_last_step_belong_to_the_eigenvalues_at_both_ends():
    matrix = np.diag(np.arange(3.0 * KEPT))
    kept: dict = {}
    asked = SimpleNamespace(asked={"": ["a direction"]}, keep=lambda label, time, found: kept.update(found))
    eigenvalues = _early("", matrix, None, 1, asked, None)
    (vectors,) = {id(one): one for one in kept.values()}.values()
    assert len(eigenvalues) == 2 * KEPT and np.allclose(matrix @ vectors, vectors * eigenvalues)


def test_labels_of_a_vector_in_another_order_of_their_axes():
    vector = np.arange(24.0).reshape(4, 6)  # four sites, labels 2 x 3
    assert np.array_equal(in_order(vector, (2, 3), (1, 0)), [row.reshape(2, 3).T.ravel() for row in vector])


def test_an_end_of_a_spectrum_with_a_null_space_says_nothing_about_what_is_behind():
    eigenvalues = np.array([-1e-15, 0.5, 1.0, 3.0, 4.0, 5.0])
    up, down = _inwards(eigenvalues, 0.0, whole=False)
    assert up.tolist() == [] and down.tolist() == [5.0, 4.0, 3.0]


# -- sampled responses


def test_noises_that_carry_no_response_have_a_place_behind_the_others():
    found = _among(np.array([1, 3]), Resolved([(np.array([0, 1, 3, 9]), np.array([0.1, 0.2, 0.3, 0.4]))], None))
    ((places, least),) = found.chosen
    assert places.tolist() == [2, 0, 1, 2] and least.tolist() == [0.0, 0.2, 0.3, 0.0]


def test_the_reach_of_sampled_diagonals_is_that_of_a_pass_over_the_sites_of_the_first_plan(monkeypatch):
    class NeededMoments(Exception):
        pass

    def within(training, p, normals, rank):
        raise NeededMoments(normals, rank)

    monkeypatch.setattr(sampling, "plans_for", lambda *_: [sampling._Plan(16, 2, 4), sampling._Plan(64, 2, 8)])
    monkeypatch.setattr(sampling, "draw", lambda groups, shapes, sites, seed, how, paired: (shapes["J"], sites, seed))
    monkeypatch.setattr(sampling, "_within", within)
    training = SimpleNamespace(ranges=("S",), groups=(("J",),), paired=False, shapes=lambda p, rank: {"J": (rank,)})
    with pytest.raises(NeededMoments) as asked:
        sampling.sampled_pass(training, None, sampling.Sampling(100, seed=3), lambda *_: None)
    assert asked.value.args == (((4,), 16, (3, 0)), 4)
