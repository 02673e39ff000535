"""From a declaration to a system: the same model written in another way is the same system, whatever it is called."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sp
from agreement import too_far
from simulated import block_of
from sympy import sqrt, tanh

from derive import (
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
    whole_positive,
)
from derive.algebra.nodes import TAU, Z
from derive.codegen import solver_files
from derive.errors import DeclarationError
from derive.language.multiplied import half_product
from derive.language.symbols import Parameter
from derive.language.vectors import PAST, shown
from derive.pipeline import derive_model
from derive.printing.documents import text_of_record
from derive.records.probe import MAP
from derive.records.system import DisorderRule, LinearRule
from derive.stages.expand import expand_declaration
from numerics.solver import load_solver, solve

alpha = parameter("alpha", default=1.5, domain=positive)
k = parameter("k", default=0.8)
T = parameter("T", default=3, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)
D, N = sectors("D", N=alpha)
t = training_clock("t", steps=T)
u = training_clock("u", steps=T)
label = axis("label", C)
M0, Q, W0 = goe("M0", D), gaussian("Q", D, D), gaussian("W0", N, D)
a, b = normal("a", D), normal("b", D)


def solved(model: Model, **changes):
    values = {p.name: p.default for p in model.parameters} | changes
    solver = load_solver(solver_files(model))
    return solver, values, solve(solver, values, samples=20_000)


SIZES = ((60, 96), (180, 48))


def agrees(seed: int, model: Model, **changes) -> None:
    """Theory against small simulations, extrapolated in the size, within the bound of the suite."""
    solver, _, theory = solved(model, **changes)
    block = block_of(model.name, solver, theory, seed, SIZES)
    assert block.comparisons and not too_far([block])


# -- what has been made is found by what it is


def fresh_sum(named: bool) -> Model:
    """Fresh data applied to a sum of two vectors, one of which is also a direction of the update."""
    X = gaussian("X", N, D, fresh=t)
    h, f, W = field("h", N, t), field("f", D), weights("W", N, D, t)
    equations = [
        Eq(h(t), X(t) @ (f if named else a + b) / sqrt(D)),
        Eq(W(0), W0),
        Eq(W(t + 1), W(t) + k / sqrt(D) * outer(h(t), a)),
        *([Eq(f, a + b)] if named else []),
    ]
    return Model((alpha, k, T), equations, {"norm": mean(h(t) ** 2)}, spectrum(W(T).T @ W(T) / N))


@pytest.mark.slow
def test_a_sum_under_fresh_data_is_not_its_first_part(simulation_seed):
    (_, _, inlined), (_, _, named) = solved(fresh_sum(False)), solved(fresh_sum(True))
    assert np.allclose(inlined.outliers, named.outliers, rtol=1e-9)
    agrees(simulation_seed, fresh_sum(False))


def test_equal_expressions_share_a_field_also_at_another_time():
    x, y, h = fields("x y h", D, t)
    equations = [
        Eq(x(t), a + k * (M0 @ (y(t - 1) + x(t - 1)))),
        Eq(y(t), M0 @ (x(t - 1) + y(t - 1)) + b),
        Eq(h(t), M0 @ (x(t - 2) + y(t - 2)) + past_sum(lambda s: M0 @ (y(s) + x(s)), t)),
    ]
    system = expand_declaration(Model((k, T), equations))
    sums = [f for f in system.fields if isinstance(f.rule, LinearRule) and f.field not in (x, y, h)]
    assert [f.rule.expression(t) for f in sums] == [x(t) + y(t)]
    assert sum(isinstance(f.rule, DisorderRule) for f in system.fields) == 1


def test_the_same_copy_serves_fresh_data_and_updates():
    X = gaussian("X", D, D, fresh=t)
    h, M = field("h", D, t), weights("M", D, D, t)
    equations = [
        Eq(h(t), X(t) @ a / sqrt(D)),
        Eq(M(0), M0),
        Eq(M(t + 1), M(t) + k / D * (outer(h(t), a) + outer(a, h(t)))),
    ]
    system = expand_declaration(Model((k, T), equations, probe=spectrum(M(T))))
    copies = [f for f in system.training if isinstance(f.rule, LinearRule) and f.rule.expression(t) == a()]
    assert len(copies) == 1


def test_a_mean_at_a_later_time_than_its_vector_stays_causal(simulation_seed):
    x, y = fields("x y", D, t)
    equations = [Eq(x(0), a), Eq(x(t + 1), y(t)), Eq(y(t), M0 @ (mean(x(t) ** 2) * x(t - 1)) + a)]
    agrees(simulation_seed, Model((T,), equations, {"norm": mean(y(t) ** 2)}))


def test_a_coefficient_in_time_makes_a_vector_in_time():
    x = field("x", D, t)
    model = Model((T,), [Eq(x(t), M0 @ (a / (1 + t) + b))], {"norm": mean(x(t) ** 2)})
    _, _, theory = solved(model)
    assert np.allclose(theory.observables["norm"], [1 / (1 + n) ** 2 + 1 for n in range(4)], rtol=1e-12)


def test_fresh_data_of_another_time_are_not_those_of_now():
    X = gaussian("X", D, D, fresh=t)
    x, y = fields("x y", D, t)
    equations = [Eq(x(t), X(t - 1) @ a / sqrt(D)), Eq(y(t), X(t) @ a / sqrt(D))]
    _, _, theory = solved(Model((T,), equations, {"cross": mean(x(t) * y(t)), "late": mean(x(t) * y(t - 1))}))
    assert np.allclose(theory.observables["cross"], 0)
    assert np.allclose(theory.observables["late"][1:], 1) and np.isnan(theory.observables["late"][0])
    with pytest.raises(DeclarationError, match="the equation of x: a random matrix drawn anew at t - 1 .* later"):
        expand_declaration(Model((T,), [Eq(x(t), X(t - 1) @ y(t) / sqrt(D)), Eq(y(t), a)]))


# -- constants, labels, drawn vectors


@pytest.mark.slow
@pytest.mark.parametrize("value", [1, a], ids=["a constant", "a vector without labels"])
def test_what_has_no_labels_is_the_same_for_each(value, simulation_seed):
    x, g, W = field("x", D, u, axes=label), normal("g", D, axes=label), weights("W", D, D, u)
    equations = [
        Eq(x(u), value),
        Eq(W(0), Q / sqrt(D)),
        Eq(W(u + 1), sp.Rational(9, 10) * W(u) + k / D * outer(x(u), g)),
    ]
    model = Model((k, T, C), equations, {"norm": mean(x(u) ** 2)}, spectrum(W(T).T @ W(T)))
    _, _, theory = solved(model)
    assert np.allclose(theory.observables["norm"], 1)  # 1/2 when one of the two labels was left empty
    agrees(simulation_seed, model)


@pytest.mark.slow
def test_two_constants_are_one_vector(simulation_seed):
    x, y, W = field("x", D, u, axes=label), field("y", D, u, axes=label), weights("W", D, D, u)
    equations = [Eq(x(u), 1), Eq(y(u), 2), Eq(W(0), Q / sqrt(D)), Eq(W(u + 1), W(u) + k / D * outer(x(u), y(u)))]
    model = Model((k, T, C), equations, {"cross": mean(x(u) * y(u))}, spectrum(W(T).T @ W(T)))
    _, _, theory = solved(model)
    assert np.allclose(theory.observables["cross"], 2)
    assert len(theory.outliers) == 1
    agrees(simulation_seed, model)


@pytest.mark.slow
@pytest.mark.parametrize("observed", [lambda x: x**2, lambda x: x], ids=["exactly", "sampled"])
def test_a_vector_drawn_at_each_time_is_a_direction(observed):
    x, g, W = field("x", D, t), normal("g", D, t), weights("W", D, D, t)
    equations = [
        Eq(x(t), 1),
        Eq(W(0), Q / sqrt(D)),
        Eq(W(t + 1), sp.Rational(9, 10) * W(t) + k / D * outer(x(t), g(t))),
    ]
    model = Model((k, T), equations, {"seen": mean(observed(x(t)))}, spectrum(W(T) @ W(T).T))
    _, _, theory = solved(model, T=8)
    # the directions add in squares to one spike beside 0.9^T Q / sqrt(D)
    bulk = 0.9**16
    spike = sum((0.8 * 0.9**n) ** 2 for n in range(8)) / bulk
    assert np.allclose(theory.outliers, [bulk * (1 + spike) ** 2 / spike], rtol=1e-6)


# -- delays and means


@pytest.mark.slow
def test_a_sum_of_two_times_in_an_update():
    x, y, M = field("x", D, t), field("y", D, t), weights("M", D, D, t)

    def model(named: bool) -> Model:
        sums = y(t) if named else x(t) + x(t - 2)
        equations = [
            Eq(x(0), a),
            Eq(x(t + 1), k * M(t) @ x(t)),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + k / D * outer(sums, sums)),
            *([Eq(y(t), x(t) + x(t - 2))] if named else []),
        ]
        return Model((k, T), equations, {"norm": mean(x(t) ** 2)}, spectrum(M(T)))

    (_, _, inlined), (_, _, named) = solved(model(False)), solved(model(True))
    assert np.allclose(inlined.outliers, named.outliers, rtol=1e-9)
    assert np.allclose(inlined.observables["norm"], named.observables["norm"], rtol=1e-9)


def test_a_past_sum_beside_another_time_under_a_matrix():
    x, y, f = fields("x y f", D, t)
    inside = x(t - 1) + past_sum(lambda s: x(s), t)

    def model(named: bool) -> Model:
        equations = [Eq(x(t), a + k * y(t)), Eq(y(t), M0 @ (f(t) if named else inside))]
        return Model((k, T), [*equations, *([Eq(f(t), inside)] if named else [])], {"norm": mean(x(t) ** 2)})

    (_, _, inlined), (_, _, named) = solved(model(False)), solved(model(True))
    assert np.allclose(inlined.observables["norm"], named.observables["norm"], rtol=1e-12)


def test_a_lag_beyond_the_last_time_is_derived():
    x = field("x", D, t)
    model = Model((T,), [Eq(x(0), a), Eq(x(t + 1), M0 @ x(t - 5))], {"late": mean(x(t) * x(t - 5))})
    assert dict(model.observe)["late"] == mean(x(t) * x(t - 5))
    assert derive_model(model).order.lags


def test_a_mean_weighs_an_outer_product_of_the_probe():
    y = field("y", D)
    model = Model((k,), [Eq(y, 2 * M0 @ a)], {"norm": mean(y**2)}, spectrum(M0 + mean(y**2) / D * outer(b, b)))
    _, _, theory = solved(model)
    assert np.allclose(theory.outliers, [4.25], rtol=1e-9)


# -- products


def spiked(form) -> Model:
    K = W0 + 2 * k / sqrt(D) * outer(normal("c", N), a)
    P = gaussian("P", N, N) / sqrt(N) + 2 / N * outer(normal("e", N), normal("f", N))
    return Model((alpha, k), probe=spectrum(form(K, P)))


FORMS = {
    "plain": lambda K, P: K.T @ K / N,
    "scaled alike": lambda K, P: (K.T / sqrt(N)) @ (K / sqrt(N)),
    "scaled apart": lambda K, P: (K.T / 2) @ (K / N) * 2,
    "twice half": lambda K, P: K.T @ K / N / 2 + K.T @ K / N / 2,
}
PRODUCTS = {
    "plain": lambda K, P: K.T @ P.T @ P @ K / N,
    "in brackets": lambda K, P: (P @ K).T @ (P @ K) / N,
    "scaled inside": lambda K, P: ((P @ K) / N).T @ (2 * (P @ K)) / 2,
    "from the middle": lambda K, P: (K.T @ (P.T / 3 @ P)) @ (3 * K) / N,
}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("forms", [FORMS, PRODUCTS], ids=["one factor", "two factors"])
def test_left_overlaps_do_not_depend_on_how_a_product_is_written(forms):
    found = {}
    for name, form in forms.items():
        model = spiked(form)
        solver = load_solver(solver_files(model))
        layer = solve(solver, {p.name: p.default for p in model.parameters}, overlaps=True).layers[0]
        found[name] = np.array([layer.outliers, layer.overlaps["right"], layer.overlaps["left"]])
    assert found["plain"].size and np.isfinite(found["plain"]).all()
    for name, rows in found.items():
        assert np.allclose(rows, found["plain"], rtol=1e-7), name


def test_half_of_a_product_with_sums_inside():
    A, B = gaussian("A", N, N), gaussian("B", D, D)
    K = W0 + A @ W0 / sqrt(N) + W0 @ B
    assert half_product(K.T @ K / N) == 1
    assert half_product((A @ K).T @ (A @ K)) == 2
    assert half_product(K.T @ (A + A.T) @ K) == 0
    assert half_product(K.T @ (W0 + A @ W0 / sqrt(N))) == 0
    assert half_product((W0 + 2 * A @ W0).T @ (A @ W0 + W0 / 2)) == 1


def test_index_spaces_of_one_size():
    wide, tall = sectors("wide", tall=1)
    noise = gaussian("noise", wide, tall)
    K = noise + 2 / sqrt(wide) * outer(normal("c", wide), normal("e", tall))
    _, _, theory = solved(Model((), probe=spectrum(K.T @ K / wide)))
    assert np.allclose(theory.outliers, [6.25], rtol=1e-9)


# -- names

NAMES = (
    "s tau row psi psi0 psi1 vector vector1 order u_1 jax z r G I one_D base_size s_map initial_M0_M history_M M0_x "
    "R_psi0_M0_psi0 epsilon theta E S O Q N pi x_each sum len t_ _opaque0 _root_z"
).split()
ROLES = "T rate decay D clock M0 source x y M".split()


def learned(names: dict[str, str]) -> tuple[Model, list[Parameter]]:
    """A symmetric matrix that learns with a rate and a buffer that decays, all of it named as told."""
    steps = parameter(names["T"], default=3, domain=whole_positive)
    rate, decay = parameter(names["rate"], default=1.5, domain=positive), parameter(names["decay"], default=0.5)
    size = sectors(names["D"])
    clock = training_clock(names["clock"], steps=steps)
    start, source = goe(names["M0"], size, variance=rate), normal(names["source"], size)
    x, y = field(names["x"], size, clock), field(names["y"], size, clock)
    M = weights(names["M"], size, size, clock)
    equations = [
        Eq(x(0), source),
        Eq(x(clock + 1), decay * y(clock) + 1),
        Eq(y(clock), M(clock) @ (x(clock) + source)),
        Eq(M(0), start),
        Eq(M(clock + 1), M(clock) / (1 + clock) + sqrt(rate) / size * outer(x(clock), x(clock))),
    ]
    parameters = [steps, rate, decay]
    return Model(tuple(parameters), equations, {"norm": mean(x(clock) ** 2)}, spectrum(M(steps))), parameters


def shape_of(model: Model, back: dict[Parameter, Parameter]) -> list:
    """What a derivation found, in the parameters of another one and without names of fields."""
    probed = derive_model(model).first
    bulk, probe, saddle = probed.bulk, probed.probe, probed.record("saddle")
    for stage in probed.stages:
        assert text_of_record(probed.record(stage))
    names = [name for r in probed.system.recurrences for name in r.names]
    coefficients = {sp.Function(name): sp.Function(f"coefficient{n}") for n, name in enumerate(names)}

    def plain(expression: sp.Expr) -> sp.Expr:
        return expression.replace(lambda e: e.func in coefficients, lambda e: coefficients[e.func](*e.args)).xreplace(
            back
        )

    return [
        sp.factor(plain(bulk.curve)),
        {sp.factor(plain(e)) for e in bulk.edges},
        {sp.factor(plain(c.inverse)) for c in probed.pencil.cycles},
        sorted((plain(c.coefficient) for c in (*saddle.covariances, *saddle.memories)), key=sp.default_sort_key),
        len(probed.system.fields),
        sorted(u.kind for u in probe.unknowns),
    ]


@cache
def plainly_named() -> tuple[list, list[Parameter]]:
    """What the derivation finds under names that are the roles themselves, and its parameters."""
    model, parameters = learned(dict(zip(ROLES, ROLES, strict=True)))
    return shape_of(model, {}), parameters


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(0, len(NAMES), 4))
def test_names_do_not_matter(turn):
    shape, expected = plainly_named()
    odd = [NAMES[(turn + n) % len(NAMES)] for n in range(len(ROLES))]
    model, parameters = learned(dict(zip(ROLES, odd, strict=True)))
    back = dict(zip(parameters, expected, strict=True))
    assert shape_of(model, back) == shape


def test_engine_symbols_are_no_declared_ones():
    for symbol in (PAST, TAU, Z, MAP):
        assert symbol != sp.Symbol(symbol.name, **symbol.assumptions0)
        assert symbol != parameter(symbol.name, default=1.0)
    clock = training_clock("s", steps=T)
    assert clock != PAST and sp.expand(clock - PAST) != 0


def test_pasted_names_of_recurrences_and_responses_do_not_meet():
    one, other = goe("p_q", D), goe("p", D)
    first, second = weights("w", D, D, t), weights("q_w", D, D, t)
    equations = [
        Eq(first(0), one),
        Eq(first(t + 1), first(t) / (1 + t)),
        Eq(second(0), other),
        Eq(second(t + 1), second(t) / (1 + t) + other),
    ]
    system = expand_declaration(Model((T,), equations, probe=spectrum(first(T) + second(T))))
    names = [name for r in system.recurrences for name in r.names]
    assert len(set(names)) == len(names)


# -- refusals


def _refused(equations=(), probe=None, observe=None, parameters=(alpha, k, T, C)) -> str:
    with pytest.raises(DeclarationError) as caught:
        derive_model(Model(parameters, list(equations), observe or {}, probe))
    message = str(caught.value)
    assert "\n" not in message and "FieldAt(" not in message
    return message


def test_refusals_name_the_equation():
    x, y, q, M = field("x", D, t), field("y", D, t), field("q", D), weights("M", D, D, t)
    begin = [Eq(x(t), a), Eq(q, M0 @ a)]
    assert "changes in time" in _refused(begin, spectrum(M0 / (1 + t)))
    assert "nothing to probe" in _told(lambda: spectrum(M0 - M0))
    assert "the equation of y" in _refused(
        [*begin, Eq(y(t), past_sum(lambda s: outer(x(s), a) @ x(s) / D, t))],
    )
    assert "inside the mean" in _refused([*begin, Eq(y(t), mean(x(t) * past_sum(lambda s: x(s), t)) * x(t))])
    assert "observable n" in _refused(begin, observe={"n": mean(x(t) * past_sum(lambda s: x(s), t))})
    other = training_clock("other", steps=T)
    moved = weights("V", D, D, other)
    assert "clock" in _refused([*begin, Eq(M(0), M0), Eq(M(t + 1), M(t)), Eq(moved(0), M0), Eq(moved(other + 1), M0)])
    assert "drawn anew" in _refused([Eq(x(t), gaussian("X", D, D, fresh=t)(t) @ x(t + 1) / sqrt(D))])


def _told(make) -> str:
    with pytest.raises(DeclarationError) as caught:
        make()
    return str(caught.value)


def test_messages_show_what_was_typed():
    x = field("x", D, t)
    assert shown(M0 @ (x(t) + a)) == "M0 @ (a + x(t))"
    assert shown(outer(x(t), a) @ x(t - 1)) == "outer(x(t), a) @ x(t - 1)"
    assert shown(past_sum(lambda s: x(s), t)) == "past_sum(lambda s: x(s), t)"
    assert shown(M0 @ tanh(x(t))) == "M0 @ (tanh(x(t)))"


def test_nothing_learned_and_nothing_kept():
    x, M = field("x", D, t), weights("M", D, D, t)
    kept = Model((T,), [Eq(x(t), M(t) @ a), Eq(M(0), M0), Eq(M(t + 1), M(t))], {"n": mean(x(t) ** 2)})
    assert np.allclose(solved(kept)[2].observables["n"], 1)
    zero = Model((T,), [Eq(x(t), M(t) @ a + b), Eq(M(0), 0), Eq(M(t + 1), 0)], {"n": mean(x(t) ** 2)})
    assert np.allclose(solved(zero)[2].observables["n"], 1)
    lost = Model((T,), [Eq(x(t), M(t) @ a), Eq(M(0), M0), Eq(M(t + 1), 0)], {"n": mean(x(t) ** 2)})
    assert np.allclose(solved(lost)[2].observables["n"], [1, 0, 0, 0])


@pytest.mark.slow
@pytest.mark.parametrize("under", [lambda v: v, lambda v: M0 @ (v + b)], ids=["alone", "under a matrix"])
def test_a_past_sum_that_ends_with_now(under):
    """The term of the present time counts, also where it is computed at that time only."""
    x, y = fields("x y", D, t)

    def norms(past) -> np.ndarray:
        equations = [Eq(x(0), a), Eq(x(t + 1), y(t) / 2), Eq(y(t), M0 @ a + under(past))]
        return solved(Model((T,), equations, {"norm": mean(y(t) ** 2)}))[2].observables["norm"]

    apart = norms(past_sum(lambda s: x(s), t) + x(t))
    assert np.allclose(norms(past_sum(lambda s: x(s), t + 1)), apart, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("inside", [lambda v: v, sp.cos], ids=["beside a static vector", "under a law"])
def test_what_is_not_zero_before_the_start_is_not_delayed_as_a_whole(inside):
    """A field of the engine's own at t - 1 would be zero at t = 0, where its static part, or a law of zero, is not."""
    x, part = field("x", D, t), field("part", D, t)
    inlined = [Eq(x(t), M0 @ (inside(x(t - 1)) + a))]
    named = [Eq(part(t), inside(x(t - 1)) + a), Eq(x(t), M0 @ part(t))]
    found = [solved(Model((T,), e, {"norm": mean(x(t) ** 2)}))[2].observables["norm"] for e in (inlined, named)]
    assert np.allclose(*found, rtol=1e-9) and found[0][0] == pytest.approx(
        1.0 if inside is not sp.cos else 2.0, rel=0.05
    )


def test_sizes_inside_a_nonlinear_law_are_ratios():
    """cos(N/D x) with N = alpha D is cos(alpha x)."""
    x, y = fields("x y", D, t)
    model = Model(
        parameters=(alpha, T),
        equations=[Eq(x(0), a), Eq(y(t), sp.cos(N * x(t) / D)), Eq(x(t + 1), tanh(N**2 / D**2 * x(t)) / 2)],
    )
    laws = {f.field.name: f.rule.law for f in expand_declaration(model).training}
    assert sp.simplify(laws["y"] - sp.cos(alpha * x(t))) == 0
    assert sp.simplify(laws["x"].subs(t, t + 1) - tanh(alpha**2 * x(t)) / 2) == 0
