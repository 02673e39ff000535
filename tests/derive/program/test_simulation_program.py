"""The declaration at finite size, as a program: each corner of the language against a few lines written by hand."""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import special as jax_special
from sympy import sqrt, tanh

from derive import (
    Eq,
    Model,
    alignment,
    axis,
    data,
    each,
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
    total,
    training_clock,
    weights,
    whole_nonnegative,
    whole_positive,
)
from derive.codegen import solver_files
from derive.errors import DeclarationError, NumericalError
from derive.program.simulation import finite_size_program
from derive.program.simulation_text import write_simulation
from numerics.runtime import finite_size
from numerics.runtime.interface import FiniteSize
from numerics.runtime.point import Point
from numerics.simulation.samples import check_memory, simulate as samples, smaller_size

a = parameter("a", default=1.5, domain=positive)
b = parameter("b", default=0.4)
c = parameter("c", default=2.0)
T = parameter("T", default=4, domain=whole_nonnegative)
C = parameter("C", default=3, domain=whole_positive)
P = parameter("P", default=2, domain=whole_positive)
D, N = sectors("D", N=a)
t = training_clock("t", steps=T)
u = training_clock("u", steps=T)
label, point = axis("label", C), axis("point", P)
e = training_clock("e", steps=T, endpoint=False)
M0, W0 = goe("M0", D), gaussian("W0", N, D)
v, w = normal("v", D), normal("w", D)
SIZE = 12


def loaded(model: Model) -> FiniteSize:
    """The generated module, executed; the order of the fields is left to the program."""
    module = ModuleType("simulation_in_memory")
    exec(compile(write_simulation(model, (), "numerics.runtime"), "<simulation>", "exec"), module.__dict__)
    return module.SIMULATION


def point_of(model: Model, **changes) -> Point:
    return Point(**{**{p.name: p.default for p in model.parameters}, **changes})


def sample(model: Model, seed: int = 3, **changes):
    """Probed matrices, spikes and observables as arrays."""
    matrices, spikes, observed = loaded(model).simulate(point_of(model, **changes), SIZE, np.random.default_rng(seed))
    return matrices, spikes, {name: np.array(series) for name, series in observed.items()}


def drawn(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def drawn_goe(rng, size: int = SIZE):
    entries = rng.standard_normal((size, size))
    return np.sqrt(1 / size / 2) * (entries + entries.T)


def close(found, expected) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.fixture
def any_names(monkeypatch):
    """Let a declaration use any identifier and any ratios, also where its own check is stricter."""
    monkeypatch.setattr("derive.language.checks._check_names", lambda model: None)


# -- names


WORDS = (
    "s tau row psi p rng xp np sc special size watch probed progress earlier u_1 jax sum range mean outer Past "
    "W_before observables spikes held simulate sectors SIMULATION max t fraction columns filled value size_ given "
    "total self np_"
).split()


def _everything(word) -> Model:
    """One declaration with all kinds of symbols, named by a function."""
    p1, p2, steps = parameter(word(0), 1.5, positive), parameter(word(1), 0.4), parameter(word(2), 3, whole_positive)
    many, points = parameter(word(3), 2, whole_positive), parameter(word(4), 3, whole_positive)
    small, large = sectors(word(5), **{word(6): p1})
    clock = training_clock(word(7), steps=steps)
    label, sample = axis(word(24), many), axis(word(25), points)
    x, y = field(word(8), small, clock, axes=label), field(word(9), large, clock, axes=label)
    start, alone = normal(word(10), small, axes=label), normal(word(11), small)
    G, K = gaussian(word(12), large, small), weights(word(13), large, small, clock)
    buffer, fresh = weights(word(14), large, small, clock), gaussian(word(15), large, small, fresh=clock)
    table, target = data(word(16), sample, label), data(word(17), label, clock=clock)
    mixed, noise = field(word(18), small, clock, axes=sample), normal(word(19), small, clock, axes=label)
    return Model(
        parameters=(p1, p2, steps, many, points),
        equations=[
            Eq(x(0), start),
            Eq(
                x(clock + 1),
                p2 * K(clock).T @ tanh(y(clock)) / sqrt(large) + alone + past_sum(lambda s: x(s - 1), clock),
            ),
            Eq(y(clock), K(clock) @ x(clock) / sqrt(small) + fresh(clock) @ noise(clock) / sqrt(small)),
            Eq(mixed(clock), table @ x(clock)),
            Eq(K(0), G),
            Eq(buffer(0), 0),
            Eq(buffer(clock + 1), p2 * buffer(clock) + p1 / small * outer(target(clock) * y(clock), x(clock))),
            Eq(K(clock + 1), K(clock) + buffer(clock + 1)),
        ],
        observe={
            word(20): mean(x(clock) * x(clock - 2)),
            word(21): each(target(clock) * mean(y(clock) ** 2)),
            word(22): total(mean(mixed(clock) ** 2)),
        },
        probe={word(23): spectrum(K(steps).T @ K(steps) / large)},
    )


def _ran(word):
    model = _everything(word)
    rng = np.random.default_rng(0)
    arrays = {word(16): rng.standard_normal((3, 2)), word(17): rng.standard_normal((4, 2))}
    point = Point(**{p.name: p.default for p in model.parameters}, **arrays)
    matrices, spikes, observed = loaded(model).simulate(point, SIZE, drawn())
    (matrix,), (sides,) = matrices.values(), spikes.values()
    return [matrix, *(np.array(series) for series in observed.values()), *(made() for made in sides.values())]


@pytest.mark.slow
def test_any_identifier_may_name_anything(any_names):
    """All words of the engine in all places of a declaration: the same numbers."""
    expected = _ran(lambda place: f"name{place}")
    assert all(np.isfinite(array).all() for array in expected) and len(expected) == 7
    for turn in range(0, len(WORDS), 4):
        found = _ran(lambda place, turn=turn: WORDS[(place + turn) % len(WORDS)])
        for one, other in zip(found, expected, strict=True):
            close(one, other)


def test_a_parameter_and_a_late_field_keep_apart(any_names):
    u_1, y = parameter("u_1", 0.7), field("y", D, t)
    model = Model(
        parameters=(u_1, T),
        equations=[Eq(y(t), tanh(y(t - 1) + u_1))],
        observe={"norm": mean(y(t))},
    )
    expected, value = [], 0.0
    for _ in range(5):
        value = np.tanh(value + 0.7)
        expected.append(value)
    close(sample(model)[2]["norm"], expected)


# -- times


def test_before_the_start_everything_is_zero():
    x = field("x", D, t)
    model = Model(
        parameters=(b, T),
        equations=[Eq(x(t), v + b * x(t - 5))],
        observe={"now": mean(x(t) ** 2), "late": mean(x(t) * x(t - 5))},
    )
    draw = drawn().standard_normal(SIZE)
    short = sample(model, T=3)[2]
    close(short["late"], np.zeros(4))
    long = sample(model, T=6)[2]
    close(long["late"], [0, 0, 0, 0, 0, *2 * [1.4 * np.mean(draw**2)]])
    close(long["now"], np.mean(draw**2) * np.array([1, 1, 1, 1, 1, 1.4**2, 1.4**2]))


def test_starting_values_may_use_each_other_and_weights():
    x, M = field("x", D, t), weights("M", D, D, t)
    model = Model(
        parameters=(b, c, T),
        equations=[
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + c / D * outer(x(t), x(t))),
            Eq(x(0), v),
            Eq(x(1), M(1) @ x(0) - M(0) @ x(0)),
            Eq(x(t + 2), b * x(t + 1) + M(t + 1) @ x(t)),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )
    matrices, spikes, observed = sample(model)
    rng = drawn()
    M_now, x0 = drawn_goe(rng), rng.standard_normal(SIZE)
    xs, Ms = [x0], [M_now]
    for now in range(1, 5):
        Ms.append(Ms[-1] + 2.0 / SIZE * np.outer(xs[-1], xs[-1]))
        xs.append((Ms[1] - Ms[0]) @ x0 if now == 1 else 0.4 * xs[-1] + Ms[now - 1] @ xs[-2])
    close(observed["norm"], [np.mean(x**2) for x in xs])
    close(matrices[""], Ms[-1])
    close(spikes[""]["right"](), np.stack(xs[:-1], axis=1))


def test_weights_and_fresh_matrices_of_the_time_before():
    x, y, M, X = field("x", D, t), field("y", D, t), weights("M", D, D, t), gaussian("X", D, D, fresh=t)
    model = Model(
        parameters=(b, c, T),
        equations=[
            Eq(M(0), M0),
            Eq(M(t + 1), b * M(t) + c / D * outer(y(t), v)),
            Eq(x(0), w),
            Eq(x(t), M(t - 1) @ v + X(t - 1) @ v + w),
            Eq(y(t), M(t) @ x(t) + X(t) @ w),
        ],
        observe={"x": mean(x(t) ** 2), "y": mean(y(t) ** 2)},
        probe=spectrum(M(T)),
    )
    matrices, _, observed = sample(model)
    rng = drawn()
    M_now, v_, w_ = drawn_goe(rng), rng.standard_normal(SIZE), rng.standard_normal(SIZE)
    M_old = X_now = np.zeros((SIZE, SIZE))
    norms = []
    for now in range(5):
        X_old, X_now = X_now, rng.standard_normal((SIZE, SIZE))
        if now:
            M_old, M_now = M_now, 0.4 * M_now + 2.0 / SIZE * np.outer(y_, v_)  # noqa: F821 - of the time before
        x_ = M_old @ v_ + X_old @ v_ + w_
        y_ = M_now @ x_ + X_now @ w_
        norms.append((np.mean(x_**2), np.mean(y_**2)))
    close(np.stack([observed["x"], observed["y"]], axis=1), norms)
    close(matrices[""], M_now)


def test_matrices_of_two_and_three_steps_before():
    """Weights and fresh matrices are held as long as they are used; before the start they are zero."""
    x, M, X = field("x", D, t), weights("M", D, D, t), gaussian("X", D, D, fresh=t)
    model = Model(
        parameters=(b, c, T),
        equations=[
            Eq(M(0), M0),
            Eq(M(t + 1), b * M(t) + c / D * outer(x(t), v)),
            Eq(x(0), w),
            Eq(x(1), X(0) @ w + w),
            Eq(x(t), M(t - 2) @ v + X(t - 3) @ v + X(t - 1) @ w + w),
        ],
        observe={"x": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )
    matrices, _, observed = sample(model)
    rng = drawn()
    M_, v_, w_ = [drawn_goe(rng)], rng.standard_normal(SIZE), rng.standard_normal(SIZE)
    X_, x_, zero = [], [], np.zeros((SIZE, SIZE))
    for now in range(5):
        X_.append(rng.standard_normal((SIZE, SIZE)))
        if now:
            M_.append(0.4 * M_[-1] + 2.0 / SIZE * np.outer(x_[-1], v_))
        late = [zero if now < lag else held[now - lag] for held, lag in ((M_, 2), (X_, 3), (X_, 1))]
        x_.append(late[0] @ v_ + late[1] @ v_ + late[2] @ w_ + w_)
    close(observed["x"], [np.mean(x**2) for x in x_])
    close(matrices[""], M_[-1])


def test_momentum_and_updates_that_need_the_new_field():
    """Weights that need other weights, and a field, at the time that is being computed."""
    x, M, B = field("x", D, t), weights("M", D, D, t), weights("B", D, D, t)
    model = Model(
        parameters=(b, c, T),
        equations=[
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + B(t + 1)),
            Eq(B(0), 0),
            Eq(B(t + 1), b * B(t) + c / D * outer(x(t + 1), v)),
            Eq(x(0), v),
            Eq(x(t + 1), M(t) @ x(t) + w),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )
    matrices, _, observed = sample(model)
    rng = drawn()
    M_now, v_, w_ = drawn_goe(rng), rng.standard_normal(SIZE), rng.standard_normal(SIZE)
    B_now, x_, norms = np.zeros((SIZE, SIZE)), v_, [np.mean(v_**2)]
    for _ in range(4):
        x_ = M_now @ x_ + w_
        B_now = 0.4 * B_now + 2.0 / SIZE * np.outer(x_, v_)
        M_now = M_now + B_now
        norms.append(np.mean(x_**2))
    close(observed["norm"], norms)
    close(matrices[""], M_now)


def test_equations_that_need_each_other_are_refused_by_name():
    x, M = field("x", D, t), weights("M", D, D, t)
    model = Model(
        parameters=(c, T),
        equations=[
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + c / D * outer(x(t + 1), v)),
            Eq(x(t), M(t) @ v),
        ],
    )
    with pytest.raises(DeclarationError, match="M, x: each needs another of them at the same time"):
        write_simulation(model, (), "numerics.runtime")


def test_updates_with_means_and_with_the_initial_matrix():
    x, M = field("x", D, t), weights("M", D, D, t)
    model = Model(
        parameters=(b, c, T),
        equations=[
            Eq(M(0), M0),
            Eq(
                M(t + 1),
                (1 - b) * M(t)
                + b * M0
                + c / mean(x(t) ** 2) / (1 + t) / D * outer(x(t), x(t - 1))
                + past_sum(lambda s: mean(x(s) * v), t) / D * outer(v, v),
            ),
            Eq(x(0), v),
            Eq(x(t + 1), M(t) @ x(t) + mean(x(t) * v) * v),
        ],
        observe={"norm": mean(x(t) ** 2), "ratio": mean(x(t) * v) / mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )
    matrices, _, observed = sample(model)
    rng = drawn()
    start, v_ = drawn_goe(rng), rng.standard_normal(SIZE)
    M_now, x_, x_old = start, v_, np.zeros(SIZE)
    norms, ratios, aligned = [np.mean(v_**2)], [1.0], []
    for now in range(4):
        M_new = 0.6 * M_now + 0.4 * start + 2.0 / np.mean(x_**2) / (1 + now) / SIZE * np.outer(x_, x_old)
        M_new = M_new + sum(aligned) / SIZE * np.outer(v_, v_)
        aligned.append(np.mean(x_ * v_))
        x_, x_old, M_now = M_now @ x_ + np.mean(x_ * v_) * v_, x_, M_new
        norms.append(np.mean(x_**2))
        ratios.append(np.mean(x_ * v_) / norms[-1])
    close(observed["norm"], norms)
    close(observed["ratio"], ratios)
    close(matrices[""], M_now)


@pytest.mark.slow
def test_constants_fill_sites_and_labels():
    """A constant counts at every site and for every label, also in an update; whole numbers do not overflow."""
    x, K = field("x", D, u, axes=label), weights("K", D, D, u)
    plain, grown = field("plain", D, u), field("grown", D, u)
    model = Model(
        parameters=(b, C, T),
        equations=[
            Eq(x(u), 1),
            Eq(plain(u), b),
            Eq(grown(0), 1000),
            Eq(grown(u + 1), 10**6 * grown(u)),
            Eq(K(0), M0),
            Eq(K(u + 1), K(u) + b / D * outer(x(u), x(u))),
        ],
        observe={"x": mean(x(u) ** 2), "plain": mean(plain(u)), "grown": mean(grown(u)), "all": total(mean(x(u)))},
        probe=spectrum(K(T)),
    )
    matrices, spikes, observed = sample(model)
    close(observed["x"], np.ones(5))
    close(observed["plain"], np.full(5, 0.4))
    close(observed["grown"], 1000.0 * 1e6 ** np.arange(5))
    close(observed["all"], np.full(5, 3.0))
    close(matrices[""], drawn_goe(drawn()) + 4 * 3 * 0.4 / SIZE)
    assert spikes[""]["right"]().shape == (SIZE, 12)


def test_sums_over_the_past_alone_late_and_inside_a_matrix():
    x, y, z = fields("x y z", D, t)
    model = Model(
        parameters=(b, T),
        equations=[
            Eq(x(t), v + b * y(t)),
            Eq(y(t), past_sum(lambda s: b ** (t - s) * x(s - 1), t)),
            Eq(z(t), M0 @ past_sum(lambda s: mean(x(s) ** 2) * x(s), t)),
        ],
        observe={"y": mean(y(t) * v), "z": mean(z(t) * v)},
    )
    observed = sample(model)[2]
    rng = drawn()
    matrix, v_ = drawn_goe(rng), rng.standard_normal(SIZE)
    xs, found = [], []
    for now in range(5):
        y_ = sum((0.4 ** (now - s) * xs[s - 1] for s in range(1, now)), np.zeros(SIZE))
        z_ = matrix @ sum((np.mean(xs[s] ** 2) * xs[s] for s in range(now)), np.zeros(SIZE))
        xs.append(v_ + 0.4 * y_)
        found.append((np.mean(y_ * v_), np.mean(z_ * v_)))
    close(np.stack([observed["y"], observed["z"]], axis=1), found)


# -- labels and data


def test_tables_totals_and_labels():
    """Data with and without time, one step late, labels that are mixed, summed, averaged and followed one by one."""
    table, moving, y = data("table", point, label), data("moving", point, label, clock=u), data("y", label, clock=u)
    x, summed = field("x", D, u, axes=label), field("summed", D, u)
    mixed, (back, read) = field("mixed", D, u, axes=point), fields("back read", D, u, axes=label)
    start = normal("start", D, axes=label)
    model = Model(
        parameters=(b, C, P, T),
        equations=[
            Eq(x(0), start),
            Eq(x(u + 1), b * x(u) + v),
            Eq(mixed(u), moving(u - 1) @ x(u) + table @ x(u)),
            Eq(back(u), table.T @ mixed(u)),
            Eq(summed(u), total(y(u) * x(u)) + w * total(mean(x(u)) ** 2)),
            Eq(read(u), y(u)),
        ],
        observe={
            "square": mean(x(u)) ** 2,
            "apart": total(y(u - 1) * mean(x(u)) ** 2),
            "each": each(mean(back(u) * x(u)) + y(u)),
            "summed": mean(summed(u) * v),
            "read": each(mean(read(u))),
            "given": total(y(u) ** 2),
        },
    )
    rng = np.random.default_rng(1)
    given = {
        "table": rng.standard_normal((2, 3)),
        "moving": rng.standard_normal((5, 2, 3)),
        "y": rng.standard_normal((5, 3)),
    }
    observed = sample(model, **given)[2]
    rng = drawn()
    x_, v_, w_ = (rng.standard_normal(shape) for shape in ((SIZE, 3), SIZE, SIZE))
    for now in range(5):
        late = given["moving"][now - 1] if now else np.zeros((2, 3))
        before = given["y"][now - 1] if now else np.zeros(3)
        mixed_ = x_ @ (late + given["table"]).T
        back_ = mixed_ @ given["table"]
        summed_ = x_ @ given["y"][now] + w_ * np.sum(x_.mean(axis=0) ** 2)
        close(observed["square"][now], x_.mean() ** 2)
        close(observed["apart"][now], np.sum(before * x_.mean(axis=0) ** 2))
        close(observed["each"][now], (back_ * x_).mean(axis=0) + given["y"][now])
        close(observed["summed"][now], np.mean(summed_ * v_))
        close(observed["read"][now], given["y"][now])
        close(observed["given"][now], np.sum(given["y"][now] ** 2))
        x_ = 0.4 * x_ + v_[:, None]


def test_projections_with_labels_on_either_side():
    """outer(...) @ v sums over the labels of the pair and keeps those of the vector."""
    (x, y), z = fields("x y", D, u, axes=label), field("z", D, u)
    start = normal("start", D, axes=label)
    model = Model(
        parameters=(b, C, T),
        equations=[
            Eq(x(u), start),
            Eq(y(u), outer(v, w) @ x(u) / D),
            Eq(z(u), outer(x(u), x(u)) @ v / D),
        ],
        observe={"y": each(mean(y(u) ** 2)), "z": mean(z(u) ** 2)},
    )
    observed = sample(model, T=0)[2]
    rng = drawn()
    x_, v_, w_ = rng.standard_normal((SIZE, 3)), rng.standard_normal(SIZE), rng.standard_normal(SIZE)
    close(observed["y"][0], np.mean(v_**2) * (w_ @ x_ / SIZE) ** 2)
    close(observed["z"][0], np.mean((x_ @ x_.T @ v_ / SIZE) ** 2))


# -- clocks and sectors


def _without_endpoint():
    x, M, X = field("x", D, e), weights("M", D, D, e), gaussian("X", D, D, fresh=e)
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(M(0), M0),
            Eq(M(e + 1), M(e) + c / D * outer(x(e), x(e)) + b * X(e)),
            Eq(x(e), M(e) @ v),
        ],
        observe={"norm": mean(x(e) ** 2)},
        probe=spectrum(M(T)),
    )


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_one_more_update_where_the_clock_has_no_endpoint(steps):
    matrices, spikes, observed = sample(_without_endpoint(), T=steps)
    rng = drawn()
    M_now, v_ = drawn_goe(rng), rng.standard_normal(SIZE)
    norms = []
    for _ in range(steps):
        fresh, x_ = rng.standard_normal((SIZE, SIZE)), M_now @ v_
        norms.append(np.mean(x_**2))
        M_now = M_now + 2.0 / SIZE * np.outer(x_, x_) + 0.4 * fresh
    close(observed["norm"], norms)
    close(matrices[""], M_now)
    assert spikes[""]["right"]().shape == (SIZE, steps)


@pytest.mark.parametrize("kind", ["x", "source", "X"])
def test_without_endpoint_an_update_cannot_use_what_the_new_time_does_not_have(kind):
    x, M = field("x", D, e), weights("M", D, D, e)
    source, X = normal("source", D, e), gaussian("X", D, D, fresh=e)
    late = X(e + 1) if kind == "X" else c / D * outer({"x": x, "source": source}[kind](e + 1), v)
    model = Model(
        parameters=(c, T),
        equations=[Eq(M(0), M0), Eq(M(e + 1), M(e) + late), Eq(x(e), v)],
    )
    said = rf"update of M at e \+ 1 needs {kind} at the same time.*use {kind} one step earlier"
    with pytest.raises(DeclarationError, match=said):
        write_simulation(model, (), "numerics.runtime")


def test_without_endpoint_a_probed_matrix_cannot_use_fields_after_the_last_update():
    x, M = field("x", D, e), weights("M", D, D, e)
    equations = [Eq(M(0), M0), Eq(M(e + 1), M(e) + c / D * outer(x(e), v)), Eq(x(e), v)]
    for time, refused in ((T, True), (T - 1, False)):
        model = Model((c, T), equations, probe=spectrum(M(T) + outer(x(time), x(time)) / D))
        with pytest.raises(DeclarationError, match=r"uses x\(T\).* use x\(T - 1\)") if refused else nullcontext():
            write_simulation(model, (), "numerics.runtime")


def test_a_sum_that_is_empty_at_the_start_and_fields_that_need_each_other():
    x, y, z = field("x", D, t), field("y", D), field("z", D)
    model = Model(
        parameters=(b, T),
        equations=[Eq(x(0), v + past_sum(lambda s: x(s), t)), Eq(x(t + 1), b * x(t))],
        observe={"norm": mean(x(t) ** 2)},
    )
    close(sample(model)[2]["norm"], np.mean(drawn().standard_normal(SIZE) ** 2) * 0.16 ** np.arange(5))
    circle = Model(parameters=(), equations=[Eq(y, M0 @ z), Eq(z, M0 @ y)])
    with pytest.raises(DeclarationError, match="y, z: each needs another of them at the same time; use other fields"):
        write_simulation(circle, (), "numerics.runtime")


def test_matrices_are_watched_as_they_are():
    model = _without_endpoint()
    seen = {}
    loaded(model).simulate(point_of(model), SIZE, drawn(), watch=lambda time, probed: seen.update({time: probed()[""]}))
    assert list(seen) == [0, 1, 2, 3, 4]
    close(seen[0], drawn_goe(drawn()))
    # before the last time a matrix is the one of a shorter run with the same draws
    close(seen[2], sample(model, T=2)[0][""])


def test_no_clock_at_all():
    y, one = field("y", N), field("one", N)
    model = Model(
        parameters=(a, c),
        equations=[Eq(y, W0 @ v / sqrt(D) + one), Eq(one, mean(v**2))],
        observe={"norm": mean(y**2), "rate": c},
        probe=spectrum(W0 @ W0.T / N + c / N * mean(y**2) * outer(y, y)),
    )
    matrices, spikes, observed = sample(model)
    rng = drawn()
    W, v_ = rng.standard_normal((18, SIZE)), rng.standard_normal(SIZE)
    y_ = W @ v_ / np.sqrt(SIZE) + np.mean(v_**2)
    close(observed["norm"], [np.mean(y_**2)])
    close(observed["rate"], [2.0])
    close(matrices[""], W @ W.T / 18 + 2.0 / 18 * np.mean(y_**2) * np.outer(y_, y_))
    close(spikes[""]["right"](), y_[:, None])


def test_a_number_in_the_equation_of_a_vector_counts_at_every_site_and_label():
    one, y = field("one", N, axes=label), field("y", D, axes=label)
    model = Model(
        parameters=(a, b, C),
        equations=[Eq(one, b), Eq(y, W0.T @ one / sqrt(D))],
        observe={"all": total(mean(one)), "norms": each(mean(y**2))},
    )
    observed = sample(model)[2]
    y_ = drawn().standard_normal((18, SIZE)).sum(0) * 0.4 / np.sqrt(SIZE)
    close(observed["all"], [3 * 0.4])
    close(np.ravel(observed["norms"]), np.full(3, np.mean(y_**2)))


def test_draws_have_their_declared_variances():
    y, late = field("y", N), normal("late", D, scale=b)
    A = gaussian("A", N, D, variance=a)
    model = Model(parameters=(a, b), equations=[Eq(y, A @ late / sqrt(D))], observe={"y": mean(y**2)})
    rng = drawn()
    matrix, vector = rng.standard_normal((18, SIZE)), rng.standard_normal(SIZE)
    close(sample(model)[2]["y"], [1.5 * 0.4**2 * np.mean((matrix @ vector) ** 2) / SIZE])


def test_a_sector_of_ratio_one(any_names):
    first, second = sectors("first", second=1)
    G, source, y = gaussian("G", second, first), normal("source", first), field("y", second)
    model = Model(parameters=(c,), equations=[Eq(y, c * G @ source)], observe={"norm": mean(y**2)})
    rng = drawn()
    expected = np.mean((2.0 * rng.standard_normal((SIZE, SIZE)) @ rng.standard_normal(SIZE)) ** 2)
    close(sample(model)[2]["norm"], [expected])
    assert loaded(model).sectors(point_of(model), SIZE) == {"second": SIZE, "first": SIZE}


def test_sizes_and_numbers():
    ratio = sectors("D", R=sqrt(a))[1]
    y = field("y", ratio, t)
    model = Model(
        parameters=(a, T),
        equations=[Eq(y(t), gaussian("G", ratio, D) @ v / sqrt(D))],
        observe={"norm": mean(y(t) ** 2)},
    )
    made = loaded(model)
    found = made.sectors(point_of(model, a=4.0), 10)
    assert {name: float(size) for name, size in found.items()} == {"R": 20.0, "D": 10}
    assert made.numbers(point_of(model, a=4.0), 10) == 20 * 10 + 10 + 5 * 20


def test_the_memory_of_the_probed_matrix_counts_its_intermediate_matrices():
    """The matrix (A + B)^T (A + B) has D^2 entries, and the sum in it N D."""
    one, other = gaussian("A", N, D), gaussian("B", N, D)
    model = Model(parameters=(a,), probe=spectrum((one + other).T @ (one + other) / D))
    assert set(finite_size_program(model, ()).numbers.working) == {N * D, D**2}


# -- the probed matrix


def test_means_in_the_coefficients_of_the_probed_matrix():
    """Where the matrix is watched, the weights are those of the current time."""
    x, M = field("x", D, t), weights("M", D, D, t)
    model = Model(
        parameters=(b, c, T),
        equations=[
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + c / D * outer(x(t), x(t))),
            Eq(x(0), v),
            Eq(x(t + 1), b * M(t) @ x(t)),
        ],
        probe=spectrum(M(T) / mean(v**2) + mean(v**4) / D * outer(v, v)),
    )
    seen = {}
    matrices, spikes, _ = loaded(model).simulate(
        point_of(model), SIZE, drawn(), watch=lambda time, probed: seen.update({time: probed()[""]})
    )
    rng = drawn()
    M_now, v_ = drawn_goe(rng), rng.standard_normal(SIZE)
    x_, xs = v_, []
    for now in range(5):
        expected = M_now / np.mean(v_**2) + np.mean(v_**4) / SIZE * np.outer(v_, v_)
        close(seen[now], expected)
        xs.append(x_)
        x_, M_now = 0.4 * M_now @ x_, M_now + 2.0 / SIZE * np.outer(x_, x_)
    close(matrices[""], expected)
    close(spikes[""]["right"](), np.stack([*xs[:4], v_], axis=1))


def test_spikes_of_both_sides_and_the_half():
    K, h = weights("K", N, D, t), field("h", N, t)
    model = Model(
        parameters=(a, c, T),
        equations=[
            Eq(K(0), W0 + c / sqrt(D) * outer(h(0), w)),
            Eq(K(t + 1), K(t) + c / sqrt(D) * outer(h(t), v)),
            Eq(h(t), W0 @ v / sqrt(D) + h(t - 1)),
        ],
        probe=spectrum(K(T).T @ K(T) / N),
    )
    matrices, spikes, _ = sample(model, T=2)
    rng = drawn()
    W = rng.standard_normal((18, SIZE))
    w_, v_ = rng.standard_normal(SIZE), rng.standard_normal(SIZE)
    h0 = W @ v_ / np.sqrt(SIZE)
    half = W + 2.0 / np.sqrt(SIZE) * (np.outer(h0, w_) + np.outer(h0 + 2 * h0, v_))
    close(spikes[""]["half"](), half)
    close(matrices[""], half.T @ half / 18)
    close(spikes[""]["right"](), np.stack([w_, v_], axis=1))
    close(spikes[""]["left"](), np.stack([h0, h0, 2 * h0], axis=1))


def test_halves_are_watched_where_left_vectors_are_asked_about():
    K = weights("K", N, D, t)
    model = Model(
        parameters=(a, c, T),
        equations=[Eq(K(0), W0), Eq(K(t + 1), K(t) + c / sqrt(D) * outer(normal("x", N), v))],
        observe={"along": alignment(v)},
        probe=spectrum(K(T).T @ K(T) / N),
    )
    seen = {}

    def watch(time, probed, halves):
        seen[time] = probed()[""], halves()[""]

    loaded(model).simulate(point_of(model, T=2), SIZE, drawn(), watch=watch)
    for matrix, half in seen.values():
        close(matrix, half.T @ half / 18)
    assert not np.allclose(seen[0][1], seen[1][1])


def test_spikes_of_a_product_of_two_matrices():
    """K = B A: right ones are those of A, which acts first, and left ones those of B."""
    A, B = weights("A", N, D, t), weights("B", N, N, t)
    model = Model(
        parameters=(a, c, T),
        equations=[
            Eq(A(0), W0 + c / sqrt(D) * outer(normal("x", N), v)),
            Eq(B(0), gaussian("B0", N, N) + c / sqrt(N) * outer(normal("y", N), normal("z", N))),
            Eq(A(t + 1), A(t)),
            Eq(B(t + 1), B(t)),
        ],
        probe=spectrum((B(T) @ A(T)).T @ (B(T) @ A(T)) / N**2),
    )
    matrices, spikes, _ = sample(model, T=1)
    rng = drawn()
    W, B_ = rng.standard_normal((18, SIZE)), rng.standard_normal((18, 18))
    x_, v_, y_, z_ = (rng.standard_normal(size) for size in (18, SIZE, 18, 18))
    half = (B_ + 2.0 / np.sqrt(18) * np.outer(y_, z_)) @ (W + 2.0 / np.sqrt(SIZE) * np.outer(x_, v_))
    close(spikes[""]["half"](), half)
    close(spikes[""]["right"](), v_[:, None])
    close(spikes[""]["left"](), y_[:, None])


# -- samples and back ends


def _solver(model: Model) -> SimpleNamespace:
    """What samples ask of a solver."""
    return SimpleNamespace(
        name="mine",
        setting=SimpleNamespace(name="mine", observables=(), fields=(), steps=None),
        about=None,
        simulation=loaded(model),
        matrices=tuple(
            SimpleNamespace(label=label, plus=probe.plus, probe=SimpleNamespace(directions=(), stopping=None))
            for label, probe in model.probes
        ),
        point=lambda values: Point(**values),
        numbers=lambda values: Point(**values),
    )


def test_samples_take_the_typed_interface():
    solver = _solver(_without_endpoint())
    values = {"b": 0.4, "c": 2.0, "T": 3}
    found = samples(solver, values, 20, 2, seed=1, times=(0, 3), overlaps=True)
    assert found.observables["norm"].shape == (2, 3)
    assert [len(values) for values in found.layers[0].eigenvalues] == [20, 20]
    assert found.layers[0].times == (0, 3) and list(found.layers[0].overlaps) == ["right"]
    in_jax = samples(solver, values, 20, 2, seed=1, backend="jax")
    np.testing.assert_allclose(in_jax.layers[0].eigenvalues, found.layers[0].eigenvalues, rtol=1e-10, atol=1e-10)
    check_memory(solver, values, 20)
    assert smaller_size(solver, values, 60) == 30


def test_a_coefficient_that_is_not_finite_is_told_in_a_sentence():
    x = field("x", D)
    model = Model(parameters=(b, c), equations=[Eq(x, (c + 1 / b) * v)], observe={"norm": mean(x**2)})
    solver = _solver(model)
    with pytest.raises(NumericalError, match="not finite at these parameters"):
        samples(solver, {"b": 0.0, "c": 1.0}, 20, 1)


def test_a_simulation_that_diverges_is_told_with_its_step():
    x = field("x", D, t)
    model = Model(parameters=(c, T), equations=[Eq(x(0), v), Eq(x(t + 1), c * x(t))], observe={"norm": mean(x(t) ** 2)})
    with pytest.raises(NumericalError, match=r"the simulation diverged at step 2 \(norm is not finite\)"):
        samples(_solver(model), {"c": 1e100, "T": 3}, 20, 1)


def test_the_runtime_may_lie_beside_the_module():
    text = write_simulation(_without_endpoint(), (), ".runtime")
    assert "\nfrom .runtime.finite_size import Past, " in text and "\nfrom .runtime.interface import FiniteSize" in text
    assert "numerics" not in text


@pytest.mark.slow
@pytest.mark.parametrize("arrays", [np, jnp], ids=["numpy", "jax"])
def test_runtime_functions(arrays):
    with jax.enable_x64(True):
        left, right = arrays.arange(6.0).reshape(3, 2), arrays.ones((4, 2))
        close(finite_size.outer(left, right), np.asarray(left) @ np.ones((2, 4)))
        close(finite_size.project(left, right, arrays.ones((4, 1))), finite_size.outer(left, right) @ np.ones((4, 1)))
        close(finite_size.mean(left), [[2.0, 3.0]])
        close(finite_size.average(left), 2.5)
        close(finite_size.total(left), [[1.0], [5.0], [9.0]])
        close(finite_size.total_number(finite_size.mean(left)), 5.0)
        close(finite_size.by_label(finite_size.mean(left)), [2.0, 3.0])
        close(finite_size.columns(arrays, 3, left, (left for _ in range(2))), np.tile(left, 3))
        assert finite_size.columns(arrays, 3, (left for _ in range(0))).shape == (3, 0)
        series = arrays.arange(4.0).reshape(2, 2)
        close(finite_size.given(series, 1), [[2.0, 3.0]])
        close(finite_size.given(series, -1), [[0.0, 0.0]])
        close(finite_size.given(series), series)
        past = finite_size.Past(3, 2)
        for value in (1, finite_size.mean(left), left):
            past.append(value)
        close(past[0], np.ones((3, 2)))
        close(past[1], np.tile([2.0, 3.0], (3, 1)))
        assert past[2] is left
        close(past[-1], np.zeros((3, 2)))
        with pytest.raises(IndexError):
            past[3]
        with pytest.raises((ValueError, TypeError)):
            past.append(arrays.ones((3, 3)))
        drawn_vector = finite_size.normal(drawn(), arrays, 3)
        close(drawn_vector[:, 0], drawn().standard_normal(3))
        close(finite_size.normal(drawn(), arrays, 3, 2), drawn().standard_normal((3, 2)))
        close(finite_size.gaussian(drawn(), arrays, 3, 2), drawn().standard_normal((3, 2)))
        symmetric = finite_size.goe(drawn(), arrays, 3, 1 / 3)
        close(symmetric, drawn_goe(drawn(), 3))
    assert finite_size.whole_sizes({"D": 10, "N": 2.5, "small": 0.1}) == (10, 2, 1)


def test_special_functions_come_from_where_arrays_do():
    from sympy import erf

    x = field("x", D)
    model = Model(parameters=(b,), equations=[Eq(x, erf(b * v))], observe={"norm": mean(x**2)})
    made = loaded(model)
    here = made.simulate(point_of(model), SIZE, drawn())[2]["norm"]
    with jax.enable_x64(True):
        there = made.simulate(point_of(model), SIZE, drawn(), xp=jnp, special=jax_special)[2]["norm"]
        assert isinstance(there[0], jax.Array)
        close(there, here)


@pytest.mark.parametrize("aligned", [False, True])
def test_who_watches_gets_what_the_documentation_says(aligned):
    """Half products of K^T K are there where singular vectors of K are compared with directions."""
    D, N = sectors("D", N=2)
    T = parameter("T", default=2, domain=whole_positive)
    t = training_clock("t", steps=T)
    p, q, W, W0 = normal("p", N), normal("q", D), weights("W", N, D, t), gaussian("W0", N, D)
    equations = [Eq(W(0), W0), Eq(W(t + 1), W(t) + outer(p, q) / sqrt(D))]
    observe = {"rows": alignment(p), "columns": alignment(q)} if aligned else {}
    text = solver_files(Model((T,), equations, observe, probe=spectrum(W(T).T @ W(T) / N)))["simulation.py"]
    given = "watch(t, probed, halves)" if aligned else "watch(t, probed)"
    assert given in text and (given.replace("t,", "time,") in text) and ("def halves()" in text) == aligned
