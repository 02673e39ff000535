"""What strangers' declarations and calls broke once, each as the class that it stood for."""

from __future__ import annotations

import pickle
from math import erfc
from pathlib import Path

import jax
import numpy as np
import pytest
from sympy import Piecewise, Rational, log, sqrt, tanh

import derive
from derive import (
    Domain,
    Eq,
    Model,
    axis,
    field,
    fields,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    past_sum,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_nonnegative,
    whole_positive,
)
from derive.api.example import SPIKE
from derive.equations.history import write_out
from derive.errors import CheckpointError, DeclarationError, DeriveError, ParameterError, SizeError
from derive.models import spiked_wigner
from derive.pipeline import derive_model
from derive.program.exact_run import ExactRun
from derive.program.lowering import forward_pass
from numerics.simulation.compare import _overlap_rows

a = parameter("a", default=0.2, domain=positive)
b = parameter("b", default=0.3)
c = parameter("c", default=4.0)
T = parameter("T", default=2, domain=whole_positive)
C = parameter("C", default=1, domain=whole_positive)
D, N = sectors("D", N=a)
t = training_clock("t", steps=T)
v = normal("v", D)


@pytest.mark.parametrize("factor", [1 / sqrt(2), 1 + sqrt(3), Rational(1, 2) ** Rational(3, 4)])
def test_roots_of_numbers_beside_squares(factor):
    """By hand: Q + Q^T is a semicircle of variance 2. The 2 of a square is not to be taken for a power of sqrt(2)."""
    Q = gaussian("Q", D, D, variance=1 / D)
    probe = spectrum(factor * (Q + Q.T) + c / D * outer(v, v))
    found = derive.load(Model(parameters=(c,), equations=[], probe=probe)).solve(c=9)
    width = 2 * float(factor) ** 2
    assert found.bulk_edges == pytest.approx(np.array([[-1, 1]]) * 2 * np.sqrt(width), rel=1e-9)
    assert found.outliers == pytest.approx([9 + width / 9], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [sqrt(2) / 4, (1 + sqrt(3)) / 3, Rational(1, 2) ** Rational(3, 4)])
def test_roots_of_numbers_in_powers_of_the_number_of_steps(factor):
    """Weights that shrink by the factor at every step, next to the factor itself: nothing is left of its name."""
    V, Q = weights("V", D, D, t), goe("Q", D)
    equations = [Eq(V(0), Q), Eq(V(t + 1), factor * V(t))]
    probe = spectrum(V(T) + factor * Q + c / D * outer(v, v))
    found = derive.load(Model(parameters=(c, T), equations=equations, probe=probe)).solve(c=9, T=3)
    width = float(factor) ** 3 + float(factor)
    assert found.bulk_edges == pytest.approx(np.array([[-2, 2]]) * width, rel=1e-9)
    assert found.outliers == pytest.approx([9 + width**2 / 9], rel=1e-9)


def test_overlaps_of_outliers_on_either_side_of_a_null_space():
    """Zeros of a product stand above a negative outlier here; they are not to be taken for the smallest eigenvalues."""
    X = gaussian("X", N, D, variance=1 / D)
    for sign in (1, -1):
        probe = spectrum(sign * (X.T @ X - c / D * outer(v, v)))
        m = derive.load(Model(parameters=(a, c), equations=[], probe=probe))
        theory, simulated = m.solve().layers[0], m.simulate(size=100, seeds=3, overlaps=True).layers[0]
        (row,) = _overlap_rows("", theory, simulated, simulated)
        assert np.sign(theory.outliers[0]) == -sign
        assert row.simulation == pytest.approx(row.theory, abs=0.1)


@pytest.mark.slow
def test_a_factor_with_labels_keeps_an_outer_product_symmetric():
    """One label against none, the factor at either end or in front."""

    def largest(clock, update):
        axes = (axis("label", C),) if clock != t else ()
        x, y = fields("x y", D, clock, axes=axes)
        M = weights("M", D, D, clock)
        start = normal("start", D, axes=axes)
        equations = [
            Eq(x(0), start),
            Eq(y(clock), M(clock) @ x(clock)),
            Eq(x(clock + 1), b * y(clock) + start),
            Eq(M(0), goe("M0", D)),
            Eq(M(clock + 1), M(clock) + update(x(clock), mean(x(clock) ** 2)) / D),
        ]
        counted = (C,) if axes else ()
        model = Model(parameters=(b, c, T, *counted), equations=equations, probe=spectrum(M(T)))
        return derive.load(model).solve().outliers

    u = training_clock("u", steps=T)
    plain = largest(t, lambda x, m: c * m * outer(x, x))
    assert len(plain)
    assert largest(u, lambda x, m: c * m * outer(x, x)) == pytest.approx(plain, rel=1e-10)
    assert largest(u, lambda x, m: c / 2 * outer(m * x, x) + c / 2 * outer(x, m * x)) == pytest.approx(plain, rel=1e-10)


def _kept(share):
    W = weights("W", N, D, t)
    h = field("h", N, t)
    return Model(
        parameters=(a, b, T),
        equations=[
            Eq(h(t), W(t) @ v),
            Eq(W(0), gaussian("W0", N, D, variance=1 / D)),
            Eq(W(t + 1), share * W(t) + b / D * outer(h(t), v)),
        ],
        probe=spectrum(W(T).T @ W(T)),
    )


def test_sizes_in_what_weights_keep_are_ratios():
    forms = [[form(t, 0) for form in write_out(_kept(share)).kernels.values()] for share in (1 - b * N / D, 1 - b * a)]
    assert forms[0] == forms[1]
    with pytest.raises(SizeError, match=r"W\(t \+ 1\)|the equation of W"):
        derive.load(_kept(1 / D)).solve()


def test_a_scale_is_free_of_sizes():
    with pytest.raises(DeclarationError, match="its scale .* depends on D; use numbers and parameters"):
        normal("s", D, scale=sqrt(D / 2))


NUMBERS = ("a", None, float("nan"), 2.5, True, 1j, [1], np.array(0.5))
WRONG = {
    "solve": {"seed": (*NUMBERS, -1), "kernels": (3, [0.5]), "path": ("a", 1), "overlaps": ("a",), "progress": (1,)},
    "simulate": {"size": NUMBERS, "seeds": NUMBERS, "seed": (*NUMBERS, -1), "backend": ("torch", 1)},
    "compare": {"size": NUMBERS, "seeds": NUMBERS, "samples": (0, "a"), "rank": (0, 1.5)},
    "sweep": {"executor": (1,), "on": (1,), "shard": (1,), "journal": (1,), "jobs": (True, 1.5), "of": (0, "sove")},
}


@pytest.mark.parametrize(
    ("verb", "option", "value"),
    [(verb, option, value) for verb, all_of in WRONG.items() for option, given in all_of.items() for value in given],
)
def test_an_option_of_the_wrong_kind_is_refused_by_name(verb, option, value):
    with pytest.raises(ParameterError, match=f"^{option}="):
        getattr(derive.load(SPIKE), verb)(**{option: value})


def test_values_are_given_by_name_and_fit_into_a_number():
    m = derive.load(SPIKE)
    with pytest.raises(ParameterError, match="by name"):
        m.solve(3)
    with pytest.raises(ParameterError, match="too large"):
        m.solve(strength=10**400)


def test_whole_numbers_of_other_kinds_are_numbers():
    m = derive.load(SPIKE)
    first, *others = (
        m.simulate(size=size, seeds=seeds, seed=1)
        for size, seeds in ((20, 2), (20.0, np.int8(2)), (np.array(20), np.uint64(2)))
    )
    assert all(np.array_equal(first.eigenvalues, other.eigenvalues) for other in others)


def test_a_sweep_of_one_point_is_a_table():
    for one in (derive.load(SPIKE).sweep(strength=[2.0]), derive.load(SPIKE).sweep(strength=2)):
        assert one.to_xarray()["outliers"].values.ravel() == pytest.approx([2.5])
        assert len(one.to_frame()) == 1


def _start(scale):
    """Models of one name that differ in a number."""
    return Model(parameters=(c,), equations=[], probe=spectrum(goe("M0", D) + scale * c / D * outer(v, v)))


def test_theory_and_simulation_are_of_one_declaration():
    one, other = (derive.load(_start(scale)) for scale in (1, 2))
    theory, sample = one.solve(), other.simulate(size=20, seeds=2)
    assert one.name == other.name and theory.outliers.tolist() != other.solve().outliers.tolist()
    with pytest.raises(ParameterError, match="different declarations"):
        derive.compare(theory, sample)
    assert derive.compare(theory, derive.load(_start(1)).simulate(size=20, seeds=2)).rows
    for wrong in ((sample, theory), (theory, theory), (None, sample)):
        with pytest.raises(ParameterError, match="the results of solve and simulate, in this order"):
            derive.compare(*wrong)


@pytest.mark.parametrize("value", [1.5, True, None, float("inf"), 1j])
def test_a_choice_of_whole_numbers_takes_no_other(value):
    with pytest.raises(ParameterError, match="^L="):
        _ = derive.load("deep_linear", L=value).model


@pytest.mark.parametrize("place", ["a", None, float("nan"), [0.0, float("nan")]])
def test_places_are_real_numbers(place):
    found = derive.load(SPIKE).solve()
    for asked in (found.density, found.a_matrix, found.layer().share_below):
        with pytest.raises(ParameterError, match="real numbers|a finite z"):
            asked(place)


@pytest.fixture(scope="module")
def spike():
    return derive.load(SPIKE)


@pytest.fixture(scope="module")
def theory(spike):
    return spike.solve()


@pytest.mark.parametrize("size", [0, -1, 2.5, float("nan"), float("inf"), True, None, "a"])
def test_an_outermost_eigenvalue_is_of_a_whole_number_of_them(size, theory):
    with pytest.raises(ParameterError, match="^size="):
        theory.layer().outermost(size)


@pytest.mark.parametrize("place", [None, 3, 2.5, b"a.nc", [], True])
def test_a_path_is_text(place, spike, theory):
    takes = (derive.load, derive.open, theory.save, spike.build, spike.report, spike.verify)
    for take in takes if place is not None else takes[:-1]:  # verify without claims takes those of the project
        with pytest.raises(ParameterError, match="path"):
            take(place)
    with pytest.raises(CheckpointError, match="contains no arrays; give a file"):
        derive.spectra(place)


@pytest.mark.parametrize("name", [3, [], {}])
def test_names_are_text(name, spike, theory):
    sample = spike.simulate(size=10, seeds=2)
    asks = (
        lambda: theory[name],
        lambda: sample[name],
        lambda: spike.function("outlier", of=name),
        lambda: spike.function(name, of="strength"),
        lambda: spike.expand("outlier", name),
        lambda: spike.expand("threshold", parameter=name),
        lambda: derive.compare(theory, sample, name),
    )
    for ask in asks:
        with pytest.raises(ParameterError):
            ask()


def test_a_function_of_parameters_keeps_to_their_domains(spike):
    outlier = spike.function("outlier", of="strength")
    for wrong, word in (
        (-2.0, "out of range"),
        ("a", "not a number"),
        (None, "instead of a number"),
        ([1.0, 2.0], "jax.vmap"),
    ):
        with pytest.raises(ParameterError, match=word):
            outlier(wrong)
    for count in ((), (1.0, 2.0)):
        with pytest.raises(ParameterError, match="takes strength"):
            outlier(*count)


def test_a_theory_is_pickled_as_what_it_was_loaded_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = Path(spiked_wigner.__file__).read_text()
    Path("mine.py").write_text(text)
    packed = pickle.dumps(derive.load("mine.py"))
    family = pickle.loads(pickle.dumps(derive.load("deep_linear", L=3)))
    monkeypatch.chdir(tmp_path.parent)
    assert pickle.loads(packed).declaration == text and family.model.name == derive.load("deep_linear", L=3).model.name
    (tmp_path / "mine.py").write_text(text + "\n")
    with pytest.raises(DeclarationError, match="changed"):
        pickle.loads(packed)
    for declared in (derive.load(SPIKE), SPIKE, SPIKE.parameters[0]):
        with pytest.raises(DeclarationError, match="to a file"):
            pickle.dumps(declared)


@pytest.mark.parametrize("wrong", [{"order": "a"}, {"order": -1}, {"order": 1.5}, {"at": 3}])
def test_orders_and_exact_numbers_of_an_expansion(wrong):
    with pytest.raises(ParameterError, match=f"^{next(iter(wrong))}="):
        derive.load(SPIKE).expand("outlier", "strength-2", **wrong)


@pytest.mark.parametrize(
    ("word", "law"),
    [
        ("nodes", lambda x, y: b * x + tanh(v)),
        ("rank", lambda x, y: tanh(y) + v),
        ("tolerance", lambda x, y: tanh(y) + v),
    ],
)
def test_a_clock_may_be_called_like_what_a_pass_is_given_by_name(word, law):
    """By hand: at time 0 the field is the normal vector, whatever time is called."""
    clock = training_clock(word, steps=T)
    x, y = fields("x y", D, clock)
    equations = [Eq(x(0), v), Eq(x(clock + 1), law(x(clock), y(clock))), Eq(y(clock), goe("M0", D) @ x(clock))]
    found = derive.load(Model(parameters=(b, T), equations=equations, observe={"norm": mean(x(clock) ** 2)}))
    assert found.solve(samples=500, T=1)["norm"][0] == pytest.approx(1, rel=0.2)


def test_a_root_of_a_mean_is_refused_where_arithmetic_is_exact():
    """sqrt(5)/2 is met as the pass runs: there is no symbol for it, and what SymPy says of it is no sentence."""
    x = field("x", D, t)
    n = normal("n", D, t, scale=Rational(1, 2))
    rule = Eq(x(t), sqrt(3) * v + x(t - 1) / sqrt(1 + mean(n(t) ** 2)))
    model = Model(parameters=(T,), equations=[rule], observe={"norm": mean(x(t) ** 2)})
    derivation = derive_model(model)
    machine = ExactRun(forward_pass(derivation.layout), {T: 2})
    with pytest.raises(DeriveError, match="no exact expansion"):
        _ = machine.observables


@pytest.mark.parametrize(
    ("law", "told"),
    [
        (lambda x: x ** sqrt(D), "D occurs inside a nonlinear law"),
        (lambda x: tanh(x + D), "D occurs inside a nonlinear law"),
        (lambda x: x * log(D), r"log\(D\) is not a power of a size"),
        (lambda x: x / (1 + D), "is not a power of a size"),
    ],
)
def test_sizes_that_have_no_limit_are_refused_in_a_sentence(law, told):
    x = field("x", D, t)
    model = Model(parameters=(T,), equations=[Eq(x(0), v), Eq(x(t + 1), law(x(t)))], observe={"norm": mean(x(t) ** 2)})
    with pytest.raises(DeclarationError, match=f"the equation of x.*{told}"):
        _ = derive.load(model).derivation.saddle


@pytest.mark.parametrize("default", [float("nan"), float("inf"), 10**400])
def test_a_default_is_finite(default):
    for domain in (whole_positive, positive):
        with pytest.raises(DeclarationError, match="parameter T: its default"):
            parameter("T", default=default, domain=domain)


def test_cases_of_a_law_stay_inside_outer_products_and_means():
    """By hand: <f(u) a> for u = a + b, f(u) = u above 1/5 and u/10 below, is <f(u) u> / 2."""
    B = gaussian("B", D, D, variance=1 / D)
    one, two = normal("one", D), normal("two", D)
    u, x, y = fields("u x y", D, t)
    W = weights("W", D, D, t)
    law = Piecewise((u(t), u(t) > Rational(1, 5)), (u(t) / 10, True))
    equations = [
        Eq(u(t), one + two),
        Eq(x(t), W(t) @ one),
        Eq(y(t), past_sum(lambda s: mean(law.subs(t, s) * one) * two, t)),
        Eq(W(0), B),
        Eq(W(t + 1), W(t) + 1 / D * outer(two, law)),
    ]
    observe = {"x": mean(x(t) ** 2), "y": mean(y(t) ** 2)}
    found = derive.load(Model(parameters=(T,), equations=equations, observe=observe)).solve(T=2)
    cut = 0.2 / np.sqrt(2)
    above = 0.5 * erfc(cut / np.sqrt(2)) + cut * np.exp(-(cut**2) / 2) / np.sqrt(2 * np.pi)
    expected = above + (1 - above) / 10  # <u^2> is 2, so that <f(u) u> / 2 is this
    assert found["y"] == pytest.approx(expected**2 * np.array([0, 1, 4]), abs=1e-9)
    assert found["x"] == pytest.approx(1 + found["y"], abs=1e-9)


def test_coefficients_of_weights_beyond_the_end_in_exact_arithmetic():
    """By hand: z(1) = 3/8 S S^T one, entries of S of variance 2 / D; W(T + 1) stands in a field that nothing uses."""
    A, B = gaussian("A", D, D, variance=1 / D), gaussian("B", D, D, variance=1 / D)
    x, z = fields("x z", D, t)
    W = weights("W", D, D, t)
    equations = [
        Eq(W(0), A + B),
        Eq(W(t + 1), W(t) / 2 + A + B),
        Eq(z(0), 1),
        Eq(z(t + 1), W(t) @ (W(t).T @ z(t - 1)) + W(t) @ (W(t + 1).T @ z(t)) / 4),
        Eq(x(0), 1),
        Eq(x(1), 1),
        Eq(x(t + 2), z(t)),
    ]
    derivation = derive_model(Model(parameters=(T,), equations=equations, observe={"x": mean(x(t) ** 2)}))
    program = forward_pass(derivation.layout)
    for steps, last in ((1, 1), (2, 1), (3, Rational(9, 8))):
        machine = ExactRun(program, {T: steps})
        assert machine.scalars.expression(machine.observables["x"][-1]) == last


def test_coefficients_that_are_singular_before_a_rule_begins():
    """By hand; 1/(1 + t) in an equation at t + 1 is never taken at t = -1, in derivatives neither."""
    Q = gaussian("Q", D, D, variance=1 / D)
    x, y = fields("x y", D, t)
    equations = [Eq(x(0), v), Eq(x(t + 1), b * Q @ (v / (1 + t) + x(t))), Eq(y(0), v), Eq(y(t + 1), b * y(t) / (1 + t))]
    observe = {"both": mean(x(t) ** 2) + mean(y(t) ** 2)}
    loaded = derive.load(Model(parameters=(b, T), equations=equations, observe=observe))
    assert loaded.solve(b=1, T=2)["both"] == pytest.approx([2, 5, 4.5])  # 4 + 1, then 1/4 + 4 + 1/4
    assert loaded.solve(b=0, T=2)["both"] == pytest.approx([2, 0, 0])
    slope = jax.jacrev(loaded.function("both", of=["b"], T=1))(1.0)
    assert np.asarray(slope) == pytest.approx([0, 10])


def test_a_mean_in_front_of_a_random_matrix_in_an_update_is_refused_in_a_sentence():
    G, x, W = goe("G", D), field("x", D, t), weights("W", D, D, t)
    equations = [Eq(x(0), v), Eq(x(t + 1), W(t) @ x(t)), Eq(W(0), G), Eq(W(t + 1), W(t) + mean(x(t) ** 2) * G)]
    model = Model(parameters=(T,), equations=equations, observe={"norm": mean(x(t) ** 2)})
    with pytest.raises(DeclarationError, match="update of W multiplies a random matrix by a mean"):
        _ = derive.load(model).derivation.saddle


@pytest.mark.parametrize("fresh", [False, True])
def test_factors_that_change_in_time_scale_a_product_when_they_are_written(fresh):
    """By hand. SymPy multiplies sqrt(D) (1 + <x^2>) out: <x^2> stood beside a size and was taken a step late."""
    Q = gaussian("Q", D, D, fresh=t) if fresh else gaussian("Q", D, D)
    x, y = fields("x y", D, t)
    product = (Q(t) if fresh else Q) @ v
    slower = 1 / (sqrt(N) * mean(y(t) ** 2) + sqrt(D) / (1 + t))
    equations = [
        Eq(x(0), v),
        Eq(x(t + 1), 1 / (1 + mean(x(t) ** 2)) * (1 / sqrt(D) * product)),
        Eq(y(0), v),
        Eq(y(t + 1), slower * product),
    ]
    observe = {"x": mean(x(t) ** 2), "y": mean(y(t) ** 2)}
    found = derive.load(Model(parameters=(a, T), equations=equations, observe=observe)).solve(a=4, T=2)
    assert found["x"] == pytest.approx([1, 1 / 4, 16 / 25])
    assert found["y"] == pytest.approx([1, 1 / 9, (2 / 9 + 1 / 2) ** -2])


@pytest.mark.slow
def test_before_the_first_step_no_contour_is_drawn():
    """A probe without an eigenproblem: A(z) has no rows where no step was made."""
    whole = parameter("T", default=0, domain=whole_nonnegative)
    clock = training_clock("t", steps=whole)
    V, Q = weights("V", D, D, clock), goe("Q", D)
    equations = [Eq(V(0), Q), Eq(V(clock + 1), V(clock) / 2 + 8 / D * outer(v, v))]
    probe = spectrum(V(whole) @ V(whole) + V(whole))
    m = derive.load(Model(parameters=(whole,), equations=equations, probe=probe))
    start = m.solve(path=True)
    assert not start.diagnostics.reduced and len(start.outliers) == 0
    assert [len(found) for found in start.layers[0].outlier_path] == [0]
    assert start.bulk_edges == pytest.approx(np.array([[-0.25, 6.0]]), rel=1e-9)


@pytest.mark.parametrize("default", [0, 1, 2])
def test_what_coincides_at_the_defaults_alone_is_not_taken_for_equal(default):
    """By hand: V(T) - Q/2 + S is a semicircle; at T = 1 nothing of Q is left in it, and at rho = 1 nothing of S."""
    whole = parameter("T", default=default, domain=whole_nonnegative)
    rho = parameter("rho", default=1.0, domain=Domain(0, 1, high_included=True))
    clock = training_clock("t", steps=whole)
    V, Q, S = weights("V", D, D, clock), goe("Q", D), goe("S", D)
    probe = spectrum(V(whole) - Q / 2 + S - rho * S)
    equations = [Eq(V(0), Q), Eq(V(clock + 1), V(clock) / 2)]
    m = derive.load(Model(parameters=(whole, rho), equations=equations, probe=probe))
    for steps, share in ((0, 0.5), (1, 0.5), (3, 0.25), (3, 1.0)):
        edge = 2 * np.hypot(0.5**steps - 0.5, 1 - share)
        assert m.solve(T=steps, rho=share).bulk_edges == pytest.approx(np.array([[-edge, edge]]), rel=1e-9)


@pytest.mark.parametrize("steps", [10**18, 10**30])
def test_sizes_that_no_array_has_are_refused(steps):
    x, J = field("x", D, t), goe("J", D)
    equations = [Eq(x(0), v), Eq(x(t + 1), J @ x(t))]
    m = derive.load(Model(parameters=(T,), equations=equations, observe={"norm": mean(x(t) ** 2)}))
    with pytest.raises(ParameterError, match="needs about .* GB"):
        m.solve(T=steps)
