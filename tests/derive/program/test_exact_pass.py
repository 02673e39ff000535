"""The exact forward pass: the functions that every solver calls, what the program keeps, and the two back ends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from conftest import derivation_of, solver_and_values
from sympy import sqrt

import derive
from derive import (
    Eq,
    Model,
    field,
    gaussian,
    mean,
    normal,
    outer,
    parameter,
    past_sum,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive as whole,
)
from derive.algebra.polynomials import TooLarge
from derive.codegen import solver_files
from derive.errors import DeriveError
from derive.pipeline import derive_model
from derive.program.exact_run import ExactRun
from derive.program.forward import covariance_of, equations_of
from derive.program.lowering import forward_pass
from derive.program.nodes import Call, Formula, Let, MatMul, Ref, Slot, Symbol, WeightedSum, alive
from derive.program.text import ModuleNames, Text
from numerics.bench.passes import activity_in_numpy
from numerics.runtime import exact as runtime
from numerics.runtime.pasts import PastPiece, TriangularPast
from numerics.runtime.point import Point, exact, replaced
from numerics.runtime.rows import ExactClosure, Rows
from numerics.solver import load_built, load_solver, solve
from numerics.support.precision import in_float64

# -- a point


def test_whole_numbers_of_a_point_are_static_and_the_rest_are_leaves():
    p = Point(gamma0=2.0, T=3, x=np.ones(2))
    leaves, tree = jax.tree.flatten(p)
    assert len(leaves) == 2 and jax.tree.unflatten(tree, leaves).T == 3
    assert jax.jit(lambda p: jnp.zeros(p.T) + p.gamma0)(p).shape == (3,)
    slope = jax.grad(lambda p: p.gamma0**2 * p.T)(Point(gamma0=2.0, T=3))
    assert slope.gamma0 == pytest.approx(12.0) and slope.T == 3


def test_points_are_compared_by_their_values():
    assert Point(a=1.0, T=2) == Point(a=1.0, T=2) != Point(a=1.0, T=3)
    assert hash(Point(a=1.0, T=2)) == hash(Point(a=1.0, T=2))
    assert replaced(Point(a=1.0, p=2.0), p=3.0) == Point(a=1.0, p=3.0)
    assert exact(Point(a=0.5, T=2)).a == sp.Rational(1, 2) and exact(Point(a=0.5, T=2)).T == 2


# -- rows


@pytest.fixture
def place():
    """Two noises of one matrix at three times, the second with two labels, and a static source with two labels."""
    return runtime.site(((3, 1), (3, 2)), drawn=((1, 2),))


def test_blocks_stand_behind_each_other(place):
    a, b, c = place
    assert (a.start, b.start, c.start) == (0, 3, 9) and place.size == 11 and place.parts == (3, 6, 2)
    assert (a.place, b.place, c.place) == (0, 3, 0) and place.extent(0) == (3, 6)


@in_float64
def test_a_noise_at_a_time_is_one_entry_per_label_and_nothing_before_the_start(place):
    _, b, c = place
    rows = np.asarray(runtime.unit(b, 1))
    assert rows.shape == (2, 11) and rows.sum() == 2 and rows[0, 5] == rows[1, 6] == 1
    assert not np.any(runtime.unit(b, -1))
    assert np.array_equal(np.asarray(runtime.units(c)), np.asarray(runtime.unit(c)))
    assert np.array_equal(runtime.part(runtime.units(b), b), np.eye(6))


@in_float64
def test_the_past_is_stored_and_read_time_by_time():
    past = jnp.zeros((6, 2))
    rows = jnp.arange(4.0).reshape(2, 2)
    past = runtime.store(past, rows, 1)
    assert np.array_equal(runtime.stored(past, 2, 1), rows)
    assert np.array_equal(runtime.delayed(past, 2, 1)[4:], rows) and not np.any(runtime.delayed(past, 2, 7))
    assert np.array_equal(runtime.past_sum(jnp.array([5.0, 2.0, 7.0]), past, 2), 2 * rows)
    assert np.array_equal(runtime.weighted(jnp.ones((1, 6)), jnp.array([1.0, 2.0, 3.0]), 2)[0], [1, 1, 2, 2, 3, 3])


@in_float64
def test_a_past_in_pieces_is_the_past_in_one():
    """Two noises and one number that is drawn; rows of the first time are shorter."""
    rng = np.random.default_rng(0)
    early, late = (jnp.asarray(rng.standard_normal(shape)) for shape in ((2, 5), (4, 9)))
    past = TriangularPast((PastPiece(early, (2, 2, 1)), PastPiece(late, (4, 4, 1))))
    whole = np.zeros((6, 9))
    whole[:2, [0, 1, 4, 5, 8]], whole[2:] = early, late
    kernel, seen, weights = (jnp.asarray(rng.standard_normal(shape)) for shape in ((2, 6), (1, 9), (3,)))
    assert np.array_equal(past.whole(), whole)
    assert np.allclose(past.combine(kernel), kernel @ whole, rtol=0, atol=1e-14)
    assert np.allclose(past.overlap(seen), seen @ whole.T, rtol=0, atol=1e-14)
    assert np.allclose(past.weigh(weights, 2), np.kron(weights, np.eye(2)) @ whole, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_learning_in_two_stages_is_that_of_growing_arrays(monkeypatch):
    """<v(t)^2> in two stages: pasts, overlaps and products that are put off cross from one to the other."""
    monkeypatch.setattr(runtime, "STAGE", 1)
    monkeypatch.setattr(runtime, "MOST_STAGES", 2)
    values = {"dt": 0.3, "gamma0": 2.0, "T": 7}
    solver = load_built("anti_hebbian")
    with jax.enable_x64():
        _, found, finite = jax.jit(solver.training.forward_pass)(Point(**values))
    assert int(finite) == 8
    np.testing.assert_allclose(found["activity"], activity_in_numpy(**values), rtol=1e-13)


@in_float64
def test_dual_rows_give_means():
    """Against the covariance of the whole site, written out."""
    place = runtime.site(((2, 1),), ((2, 1),), drawn=((1, 1),))
    rng = np.random.default_rng(0)
    first, second = (x @ x.T for x in rng.standard_normal((2, 2, 2)))
    whole = np.zeros((5, 5))
    whole[:2, :2], whole[2:4, 2:4], whole[4, 4] = first, second, 1
    rows, others = rng.standard_normal((1, 5)), rng.standard_normal((3, 5))
    seen = runtime.dual(rows, place, first, second)
    assert np.allclose(seen, rows @ whole)
    assert np.allclose(runtime.overlaps(seen, others), rows @ whole @ others.T)
    assert np.allclose(runtime.products(seen, rows), rows @ whole @ rows.T)


@in_float64
def test_a_covariance_is_written_in_both_places():
    a, b = runtime.site(((2, 1), (2, 2)))
    found = np.asarray(runtime.put(jnp.zeros((6, 6)), a, 1, b, None, jnp.arange(1.0, 5.0)[None]))
    assert np.array_equal(found[1, 2:], [1, 2, 3, 4]) and np.array_equal(found, found.T)
    found = np.asarray(runtime.put(jnp.zeros((6, 6)), a, 0, b, 1, jnp.array([[7.0, 8.0]])))
    assert np.array_equal(found[0, 4:], [7, 8]) and np.array_equal(found, found.T) and found.sum() == 30


def test_stages_follow_each_other_up_to_the_last_time_and_there_are_few():
    assert runtime.stages(5, 0) == ((0, 5),)
    for times, numbers in ((1001, 2 * runtime.STAGE), (1001, 1 << 40), (2, 1 << 40), (7, runtime.STAGE)):
        found = runtime.stages(times, numbers)
        begins, ends = zip(*found, strict=True)
        assert ends[-1] == times and begins == (0, *ends[:-1]) and all(a < b for a, b in found)
        assert 1 < len(found) <= runtime.MOST_STAGES


@pytest.mark.parametrize("data", ["full_batch", "online"])
def test_a_step_tells_each_equation_once(data):
    layout = derivation_of("deep_linear", L=2, data=data).layout
    told = [line for let in forward_pass(layout).step for line in let.remark.splitlines()]
    equations = [equation for f in layout.fields for equation in equations_of(layout, f)]
    noises = [covariance_of(layout, c) for f in layout.fields for c in layout.covariances(f.field)]
    observed = [line for line in told if line not in equations and line not in noises]
    assert sorted(told) == sorted((*equations, *noises, *observed))
    assert [line.split(" = ")[0] for line in observed] == [name for name, _ in layout.system.model.observe]


@in_float64
def test_products_with_one_past_are_one():
    """(u + k @ past) + w @ past is u + (k + w) @ past: a long product is what takes the time."""
    solver, values = solver_and_values("deep_linear", T=2)
    closure = ExactClosure(solver.training.training, solver.point(values), 3)
    past = np.random.default_rng(0).standard_normal((3, 4))
    closure.state["past h1"] = jnp.asarray(past)
    u, k, w = np.ones((1, 4)), np.arange(3.0)[None], np.array([[2.0, 0.0, 1.0]])
    both = Rows(closure, jnp.asarray(u), {"h1": jnp.asarray(k)}) + 2.0 * Rows(closure, None, {"h1": jnp.asarray(w)})
    assert list(both.kernels) == ["h1"]
    assert np.allclose(both.rows, u + (k + 2 * w) @ past)


@in_float64
def test_arrays_grow_part_by_part():
    array = runtime.grow(jnp.array([[1.0, 2.0, 9.0]]), ((1,), (2, 1)), ((2,), (3, 1)))
    assert np.array_equal(array, [[1, 2, 0, 9], [0, 0, 0, 0]])


@in_float64
def test_the_first_time_that_is_not_finite_ends_the_count():
    """A law that doubles its square overflows at a step that is known."""
    x = field("x", D, t)
    model = Model((T,), [Eq(x(0), 1e100 * n), Eq(x(t + 1), 1e100 * x(t))], {"norm": mean(x(t) ** 2)})
    solver = load_solver(solver_files(model))
    *_, finite = solver.training.forward_pass(solver.point({"T": 6}))
    assert int(finite) == 3  # 1e100, 1e200, 1e300, and nothing beyond


# -- the program


def test_no_two_symbols_share_a_name():
    names = ModuleNames(("jnp",))
    symbols = [Symbol("u_1"), Symbol("u_1"), Symbol("jnp"), Symbol("sum"), Symbol("lambda")]
    given = [names.of(s) for s in symbols]
    assert len(set(given)) == 5 and not {"jnp", "sum", "lambda"} & set(given)
    assert [names.of(s) for s in symbols] == given


def test_a_slot_never_meets_a_parameter_of_its_name():
    u_1 = parameter("u_1", default=1.0)
    late = Slot(Ref(Symbol("u_1")), "u_1")
    printed = Text(ModuleNames()).formula(sp.tanh(late + u_1))
    assert printed in ("jnp.tanh(u_1 + p.u_1)", "jnp.tanh(p.u_1 + u_1)")


def test_shapes_are_checked_when_a_node_is_made():
    n = sp.Symbol("n")
    wide, tall = Ref(Symbol("a", (sp.S(2), n))), Ref(Symbol("b", (n, sp.S(3))))
    assert MatMul(wide, tall).shape == (2, 3)
    with pytest.raises(AssertionError, match="columns"):
        MatMul(tall, wide)
    with pytest.raises(AssertionError, match="shape"):
        WeightedSum(((Formula(sp.S.One), wide),), (sp.S(3), n))


def test_one_row_may_stand_for_all_rows_of_a_sum_but_not_the_other_way_round():
    n = sp.Symbol("n")
    row, table = Ref(Symbol("row", (sp.S.One, n))), Ref(Symbol("table", (sp.S(2), n)))
    assert WeightedSum(((Formula(sp.S.One), row), (Formula(sp.S.One), table)), (sp.S(2), n)).shape == (2, n)
    with pytest.raises(AssertionError, match="shape"):
        WeightedSum(((Formula(sp.S.One), table),), (sp.S.One, n))


def test_what_nobody_needs_is_left_out_and_what_is_changed_is_carried():
    kept, used, dead = Symbol("kept", ()), Symbol("used", ()), Symbol("dead", ())
    step = (
        Let(used, Call("f", (Ref(kept),), ())),
        Let(dead, Call("g", (Ref(used),), ())),
        Let(kept, Call("h", (Ref(kept), Ref(used)), ())),
    )
    alive_lines, before = alive(step, {kept: None})
    assert [let.symbol for let in alive_lines] == [used, kept] and list(before) == [kept]


T = parameter("T", default=4, domain=whole)
D = sectors("D")
t = training_clock("t", steps=T)
n = normal("n", D)
A = gaussian("A", D, D)
W = weights("W", D, D, t)
x = field("x", D, t)


def _model(factor) -> Model:
    """Weights that decay by a factor, with a spike at every step that sees them."""
    return Model(
        (T,),
        [
            Eq(x(0), n),
            Eq(x(t + 1), W(t) @ x(t) / sqrt(D) + n / 2),
            Eq(W(0), A),
            Eq(W(t + 1), factor * W(t) + outer(x(t), x(t)) / sqrt(D) / 2),
        ],
        {"norm": mean(x(t) ** 2), "late": mean(x(t) * x(t - 6))},
        spectrum(W(T).T @ W(T) / D),
        name="decaying",
    )


@pytest.mark.parametrize(("other", "count", "most"), [(normal("other", D), 0, 5), (x(t), 9, 9)], ids=["vector", "mean"])
def test_vectors_and_means_with_too_many_terms_are_refused(monkeypatch, other, count, most):
    """(a + b)^4 has five terms, also where its mean with another vector vanishes; its square has nine."""
    a, b = parameter("a", default=1.0), parameter("b", default=1.0)
    equations = [Eq(x(0), n), Eq(x(t + 1), (a + b) * x(t))]
    layout = derive_model(Model((T, a, b), equations, {"mean": mean(x(t) * other)})).layout

    def run():
        return ExactRun(forward_pass(layout), {T: sp.Integer(4)}).observables["mean"][-1]

    monkeypatch.setattr("derive.program.quotients.MOST_TERMS", most)
    assert len(run().top) == count
    monkeypatch.setattr("derive.program.quotients.MOST_TERMS", most - 1)
    with pytest.raises(TooLarge, match=f"more than {most - 1} terms"):
        run()


@pytest.mark.slow
@pytest.mark.parametrize("factor", [sp.Rational(9, 10), sp.Rational(1, 2), 0.9, (1 + t) / (2 + t)])
def test_both_back_ends_of_a_decay_agree(factor):
    """A number as factor splits into powers of primes, whose exponents differ in sign."""
    model = _model(factor)
    solution = solve(load_solver(solver_files(model)), {"T": 4})
    derivation = derive_model(model)
    machine = ExactRun(forward_pass(derivation.layout), {T: sp.Integer(4)})
    for name, series in machine.observables.items():
        by_hand = [float(machine.scalars.expression(q)) for q in series]
        series = solution.observables[name]
        defined = ~np.isnan(series)
        assert np.allclose(series[defined], np.array(by_hand)[defined], rtol=1e-13, atol=1e-14), name
    assert solution.observables["late"].shape == (5,) and np.isnan(solution.observables["late"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name, changes", [("deep_linear", {"T": 3, "C": 2}), ("linear_network", {"T": 3})])
@in_float64
def test_order_parameters_are_those_of_the_exact_back_end(name, changes):
    solver, values = solver_and_values(name, **changes)
    derivation = derivation_of(name)
    fixed = {p: sp.nsimplify(values[p.name], rational=True) for p in derivation.model.parameters}
    machine = ExactRun(forward_pass(derivation.layout, derivation.needs), fixed)
    order = machine.order
    found = jax.jit(solver.training.forward_pass)(solver.point(values))[0]
    assert order
    for key, matrix in order.items():
        exactly = np.vectorize(lambda q: float(machine.scalars.expression(q)))(matrix)
        assert np.allclose(found[key], exactly, rtol=1e-12, atol=1e-13), key


@pytest.mark.slow
def test_linear_laws_with_labels_and_data_are_solved_exactly():
    """A linear network on data: the same as sampled sites of a law that departs from it by 1e-10 of what goes in."""
    solver, values = solver_and_values("wide_network", activation="linear", L=2, T=4, P=4, B=4, D=3)
    assert solver.setting.exact
    exactly = solve(solver, values)
    assert exactly.errors is None
    nearly, values = solver_and_values("wide_network", activation="tanh(x/100000)*100000", L=2, T=4, P=4, B=4, D=3)
    sampled = solve(nearly, values, samples=20000)
    for name, series in exactly.observables.items():
        assert np.allclose(series, sampled.observables[name], rtol=1e-8, atol=1e-8), name


@pytest.mark.parametrize("split", [False, True])
def test_a_covariance_is_not_read_before_it_is_written(split):
    """y(2) = (2 A^T A + A^T A A + A^T A^T A + A^T A^T + A^T) n. By pairings that do not cross the squares of these have
    traces 4 * 2, 2, 2, 1 and 1, and the third and the last overlap by 1: 16 in all."""
    y, u = field("y", D, t), field("u", D, t)
    inner = A.T @ y(t - 1) + A.T @ u(t - 1) if split else A.T @ (y(t - 1) + u(t - 1))
    equations = [
        Eq(y(t), A.T @ (A @ u(t - 1) / sqrt(D)) / sqrt(D) + inner / sqrt(D)),
        Eq(u(0), n),
        Eq(u(t + 1), n + A @ u(t) / sqrt(D)),
    ]
    model = Model((T,), equations, {"norm": mean(y(t) ** 2)}, name="products")
    found = solve(load_solver(solver_files(model)), {"T": 2}).observables["norm"]
    assert np.allclose(found, [0, 3, 16], rtol=1e-13)


def test_a_mean_at_all_earlier_times_weighs_what_was_learned():
    """x(t + 1) = M(t) g with M(t + 1) = M(t) + q(t) g g^T / D and q = mean(x^2): x(t) = S g + g times the sum of q(s)
    over s < t - 1, so that q(t) is one plus the square of that sum."""
    D, T = derive.sectors("D"), derive.parameter("T", default=4, domain=derive.whole_positive)
    t = derive.training_clock("t", steps=T)
    g, x, M = derive.normal("g", D), derive.field("x", D, t), derive.weights("M", D, D, t)
    square = derive.mean(x(t) ** 2)
    model = derive.Model(
        parameters=(T,),
        equations=[
            derive.Eq(x(0), 2 * g),
            derive.Eq(x(t + 1), M(t) @ g),
            derive.Eq(M(0), derive.goe("S", D)),
            derive.Eq(M(t + 1), M(t) + square / D * derive.outer(g, g)),
        ],
        observe={"square": square},
    )
    assert derive.load(model).solve()["square"] == pytest.approx([4, 1, 17, 26, 485])


def test_the_scale_of_what_is_drawn_counts_in_every_mean_of_the_exact_back_end():
    """By hand: n has variance 1/4, so W n has it too, and sums of n(s) over s < t have t times that."""
    n, x, y = normal("n", D, t, scale=sp.Rational(1, 2)), field("x", D, t), field("y", D, t)
    equations = [Eq(x(t), gaussian("B", D, D, variance=1 / D) @ n(t)), Eq(y(t), past_sum(lambda s: n(s), t))]
    observe = {"product": mean(x(t) ** 2), "sum": mean(y(t) ** 2), "both": mean(y(t) * n(t - 1))}
    machine = ExactRun(forward_pass(derive_model(Model((T,), equations, observe)).layout), {T: sp.Integer(2)})
    found = {name: [machine.scalars.expression(q) for q in series] for name, series in machine.observables.items()}
    quarter = sp.Rational(1, 4)
    assert found == {"product": [quarter] * 3, "sum": [0, quarter, 2 * quarter], "both": [0, quarter, quarter]}


def test_a_division_by_zero_is_refused_in_exact_arithmetic():
    """x(t - 1) is zero at t = 0."""
    x = field("x", D, t)
    model = Model((T,), [Eq(x(t), normal("n", D))], {"ratio": mean(x(t) ** 2) / mean(x(t - 1) ** 2)})
    machine = ExactRun(forward_pass(derive_model(model).layout), {T: sp.Integer(2)})
    with pytest.raises(DeriveError, match="divides by zero"):
        _ = machine.observables
