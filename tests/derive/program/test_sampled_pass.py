"""The sampled forward pass: its functions one by one, names that meet, and corners of the language."""

from __future__ import annotations

import types
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sympy import Heaviside, sqrt, tanh

from derive import (
    Eq,
    Model,
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
    total,
    training_clock,
    weights,
    whole_positive,
)
from derive.algebra.words import Letter
from derive.equations.layout import Layout
from derive.equations.needs import Needs
from derive.errors import DeclarationError
from derive.language.vectors import PAST, Mean
from derive.pipeline import derive_model
from derive.program.forward_text import ForwardText
from derive.program.lowering import forward_pass
from derive.records.method import ClosureKind
from numerics.runtime import sampled as run, samples, sizes
from numerics.runtime.point import Point
from numerics.runtime.rows import RowsPass
from numerics.runtime.samples import SampledPass
from numerics.support.precision import in_float64
from numerics.training.sampling import Sampling, compiled, draw, sampled_pass

SITES = 256
RUNTIME = "numerics.runtime"


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


# compiled as a whole, as they are in a solver: one operation after the other they are compiled by the dozen
extend, pivoted, response_matrix = map(jax.jit, (run.extend, run.pivoted, run.response_matrix))
responses = jax.jit(run.responses, static_argnames=("field", "noises", "last"))


def close(found, expected, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=atol, rtol=0)


# -- directions


def test_room_is_what_there_is_or_the_rank():
    assert run.room(7, None) == 7 and run.room(7, 3) == 3 and run.room(2, 3) == 2


def test_pivoted_factor_gives_back_the_matrix_largest_remainder_first():
    values = random(6, 4) * jnp.array([1.0, 5.0, 0.1, 2.0])
    gram = values.T @ values
    factor, chosen, remainders = pivoted(gram, 0.0)
    close(factor @ factor.T, gram)
    close(remainders, np.diagonal(factor[chosen]) ** 2)
    assert np.all(np.diff(remainders) <= 0)
    assert sorted(np.asarray(chosen)) == [0, 1, 2, 3] and chosen[0] == np.argmax(np.diagonal(gram))


@pytest.mark.parametrize("off", [1e-15, -1e-15])
def test_pivots_that_are_equal_up_to_rounding_are_taken_in_their_order(off):
    _, chosen, _ = pivoted(jnp.diag(jnp.array([0.5, 1.0, 1.0 + off, 2.0, 2.0 - off])), 1e-2)
    assert chosen.tolist() == [3, 4, 1, 2, 0]


def test_pivoted_factor_stops_at_the_floor():
    factor, _, remainders = pivoted(jnp.diag(jnp.array([4.0, 1e-3, 9.0])), 1e-2)
    close(factor @ factor.T, np.diag([4.0, 0.0, 9.0]))
    close(remainders, [9.0, 4.0, 0.0])


@pytest.mark.long
@pytest.mark.slow
def test_extended_span_is_orthonormal_and_gives_the_values_back():
    first, second = random(SITES, 2), random(SITES, 3, seed=1)
    rows, _, span = extend(run.empty_span(SITES, 6), first, 1e-12)
    more, _, span = extend(span, second, 1e-12)
    close(run.expressed(span, rows), first)
    close(run.expressed(span, more), second)
    assert span.used == 5 and span.lost < 1e-12
    close(run.between(span, span)[:5, :5], np.eye(5))
    close(run.seen_from(span, second), more)


def test_directions_of_a_slow_motion_are_orthonormal():
    rate, noise, span = random(SITES, 1), random(SITES, 30, seed=1), run.empty_span(SITES, 30)
    for step in range(30):
        _, _, span = extend(span, np.exp(-0.05 * step * rate) + 1e-4 * noise[:, step : step + 1], 1e-12)
    close(run.between(span, span), np.eye(30))


@pytest.mark.slow
def test_what_is_known_already_takes_no_direction():
    values = random(SITES, 2)
    _, _, span = extend(run.empty_span(SITES, 4), values, 1e-9)
    rows, _, again = extend(span, values @ random(2, 2, seed=1), 1e-9)
    assert again.used == 2
    close(run.expressed(again, rows), values @ random(2, 2, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize(("room", "tolerance"), [(2, 0.0), (3, 0.5)])
def test_what_is_left_out_keeps_its_covariance_and_is_reported(room, tolerance):
    values = random(SITES, 3) * jnp.array([1.0, 0.3, 2.0])
    rows, rest, span = extend(run.empty_span(SITES, room), values, tolerance)
    left = values - np.asarray(run.expressed(span, rows))
    assert 1 <= span.used <= 2 and rows.shape == (3, room) and rest.shape == (3, 3)
    assert span.full == (room == 2)
    close(rest @ rest.T, left.T @ left / SITES)
    close(span.lost, (left**2).sum() / (values**2).sum())
    assert extend(span, np.zeros((SITES, 1)), 1e-12)[2].lost == span.lost


@pytest.mark.slow
def test_what_lies_beyond_a_span_is_noise_of_its_covariance():
    values, normals, beyond = random(SITES, 3), random(50_000, 1, seed=1), random(50_000, 3, seed=2)
    rows, rest, _ = extend(run.empty_span(SITES, 1), values)
    made = run.noise(normals, rows, beyond, rest)
    wanted = values.T @ values / SITES
    np.testing.assert_allclose(made.T @ made / 50_000, wanted, atol=6 * np.max(wanted) / np.sqrt(50_000))
    close(run.noise(normals, rows, beyond[:, :0], rest), run.noise(normals, rows))
    past = run.store_rest(jnp.zeros((2, 3, 3)), rest, 1)
    whole = run.with_rest(jnp.zeros((6, 6)), past, past, 2)
    close(whole[3:, 3:], rest @ rest.T)
    close(whole.at[3:, 3:].set(0.0), 0.0)
    close(run.with_rest(whole, past[:, :, :0], past[:, :, :0], 2), whole)
    assert run.beyond(4, 4, 3) == 0 and run.beyond(3, 4, 3) == 3


def test_slopes_of_directions_give_back_those_of_the_values():
    values, slopes = random(SITES, 2), random(SITES, 2, 5, seed=1)
    rows, _, span = extend(run.empty_span(SITES, 4, 5), values, 1e-12, slopes)
    more, _, span = extend(span, values**3, 1e-12, 3 * values[..., None] ** 2 * slopes)
    close(run.expressed_slopes(span, rows), slopes)
    close(run.expressed_slopes(span, more), 3 * values[..., None] ** 2 * slopes)
    kept = run.forgetting(span, 1, 2).slopes
    close(kept[:, :, 1:3], 0)
    close(kept[:, :, 3:], span.slopes[:, :, 3:])


@pytest.mark.slow
def test_an_emptied_span_keeps_its_report_only():
    _, _, span = extend(run.empty_span(SITES, 1, 2), random(SITES, 2), 1e-12, random(SITES, 2, 2))
    empty = run.emptied(span)
    assert empty.used == 0 and empty.lost == span.lost > 0
    close(empty.fields, 0)
    close(empty.factor, 0)
    close(empty.slopes, 0)
    assert run.report_on((empty,), (span,)) == (span.lost, 0, True)
    assert run.report_on((span,)) == (span.lost, 1, True)
    assert run.report_on(()) == (0, 0, False)


def test_coordinates_are_scaled_repeated_and_stacked():
    rows = random(2, 3)
    close(run.scaled_rows(2.0, rows), 2 * rows)
    close(run.scaled_rows(np.array([[2.0, 3.0]]), rows), np.asarray(rows) * [[2.0], [3.0]])
    close(run.repeated(rows, 2), np.concatenate([rows, rows]))
    close(run.stacked(rows, rows[:1]), np.concatenate([rows, rows[:1]]))


# -- values


def test_what_is_drawn_has_sites_and_labels():
    once, often, labelled = random(4), random(4, 3), random(4, 3, 2)
    close(run.drawn(once), once[:, None])
    close(run.drawn(often), often)
    close(run.drawn_at(often, 2), often[:, 2:])
    close(run.drawn_at(labelled, 2, 1), labelled[:, 1])
    close(run.drawn_at(labelled, 0, 1), np.zeros((4, 2)))
    close(run.ones(3), np.ones((3, 1)))
    close(run.ones(3, 1, 2), np.zeros((3, 1)))


def test_overlaps_and_sums_over_labels():
    values, others = random(5, 3), random(5, 2, seed=1)
    close(run.overlaps(values, others), values.T @ others / 5)
    close(run.total(values), values.sum(axis=1)[:, None])
    close(run.total(random(5, 3, 2)), random(5, 3, 2).sum(axis=1)[:, None])


def test_numbers_are_recorded_by_time():
    close(run.record(jnp.zeros(3), jnp.float64(2.0), 1), [0, 2, 0])
    close(run.record(jnp.zeros((2, 3)), jnp.ones((1, 3)), 1), [[0, 0, 0], [1, 1, 1]])


def test_answers_to_a_noise_are_its_coordinates():
    """With exact second moments; normals of directions that are not used yet carry no answer."""
    normals = in_float64(draw)((("J",),), {"J": (3,)}, SITES, (1,), "matched")["J"]
    span = run.empty_span(SITES, 3)._replace(used=2)
    rows = random(2, 3)
    close(run.answers(run.noise(normals, rows), normals, span), np.asarray(rows) * [1, 1, 0])


# -- slopes


def test_laws_are_differentiated_site_by_site():
    h, w = random(4, 3), random(4, 1, seed=1)
    d_h, d_w = random(4, 3, 2, seed=2), random(4, 1, 2, seed=3)
    value, slopes = run.law_and_slopes(lambda h, w: w * jnp.tanh(h), (h, w), (d_h, d_w))
    close(value, w * np.tanh(h))
    close(slopes, np.tanh(h)[..., None] * d_w + (w * (1 - np.tanh(h) ** 2))[..., None] * d_h)


def test_slopes_of_noises_means_and_mixtures():
    rows, slopes, table = random(2, 3), jnp.asarray(random(4, 2, 5)), random(2, 3, seed=1)
    made = run.noise_slopes(rows, 1, 5, 4)
    assert made.shape == (4, 2, 5)
    close(run.mean_slopes(made, 1, 3), rows)
    close(made[:, :, ::4], 0)
    close(run.no_slopes(random(4, 2), 3), np.zeros((4, 2, 3)))
    close(run.mixed_slopes(slopes, table), np.stack([slopes[..., n] @ table for n in range(5)], axis=-1))
    close(run.forgotten(slopes, 0, 2)[..., :2], 0)
    close(run.forgotten(slopes, 0, 2)[..., 2:], slopes[..., 2:])


# -- responses and time


@pytest.mark.slow
def test_responses_are_found_from_correlations_and_reach_back_only():
    times, labels = 3, 2
    when = np.repeat(np.arange(times), labels)
    rows = random(2 * times * labels, 20)
    noise = rows @ rows.T
    causal = np.concatenate([when[:, None] >= when + 1, when[:, None] >= when], axis=1)
    truth = random(times * labels, 2 * times * labels, seed=1) * causal
    entries = run.Entries(times, labels), (run.Entries(times, labels, 1), run.Entries(times, labels, 0))
    late, now = responses(truth @ noise, noise, *entries, times, 1e-12)
    close(np.concatenate([late, now], axis=1), truth, 1e-8)
    noises = (run.Entries(times, labels, 1), run.Entries(times, labels, None))
    close(responses(truth @ noise, noise, entries[0], noises, times, 1e-12)[1], 0)


@pytest.mark.long
def test_responses_move_with_moments_as_their_derivatives_say():
    """With the noises fixed that carry responses, against differences; they are those that a tolerance takes."""
    times = 6
    rows = random(times, 20)
    rows = jnp.concatenate([rows[:4], rows[3:4] + rows[2:3], rows[5:]])  # the fifth is determined by earlier ones
    noise, seen, change, moved = rows @ rows.T, *(random(times, times, seed=k) for k in (1, 2, 3))
    entries = run.Entries(times, 1), (run.Entries(times, 1, 1),), times
    recorder = run.Resolved(tolerance=1e-9)
    expected = run.responses(seen, noise, *entries, recorder)[0]
    which, taken, left = (np.asarray(x) for x in recorder.noted[0])
    assert list(taken) == [True, True, True, True, False, True] and np.all(left[taken] > 0)
    places = np.append(which[taken], times)  # one more place than there are noises

    def at(step):
        resolved = run.Resolved([(places, np.append(0.25 * left[taken], 0.0))])
        return run.responses(seen + step * change, noise + step * (moved + moved.T), *entries, resolved)[0]

    close(at(0.0), expected)
    close(expected[:, 4], 0)
    _, slope = jax.jvp(at, (0.0,), (1.0,))
    close(slope, (at(1e-6) - at(-1e-6)) / 2e-6, 1e-4)


def test_a_small_direction_is_found_and_a_place_may_stay_empty():
    """What is new in a field far below the rounding of its square, and a pass that leaves out more than it has places
    for."""
    first, second = random(SITES, 1), random(SITES, 1, seed=1)
    _, _, span = run.extend(run.empty_span(SITES, 3), first, 1e-12)
    rows, _, fine = run.extend(span, first + 1e-5 * second, 1e-12)
    assert fine.used == 2
    close(run.expressed(fine, rows), first + 1e-5 * second, 1e-14)
    close(run.between(fine, fine)[:2, :2], np.eye(2), 1e-9)
    _, rest, coarse = run.extend(span, first + 1e-5 * second, jnp.array([1e-12, 1e-6]))
    assert coarse.used == 2 and coarse.lost > 0 == fine.lost and rest[0, 0] > 0
    rows, _, coarse = run.extend(coarse, second, 1e-12)
    close(run.expressed(coarse, rows), second)
    close(rows[0, 1], 0)


@pytest.mark.slow
def test_static_noises_come_before_all_times():
    noise = jnp.diag(jnp.array([2.0, 3.0, 5.0]))
    truth = jnp.array([[1.0, 0.0, 0.0], [2.0, 4.0, 0.0]])
    noises = (run.Entries(None, 1), run.Entries(2, 1, 1))
    static, timed = responses(truth @ noise, noise, run.Entries(2, 1), noises, 2, 1e-12)
    close(np.concatenate([static, timed], axis=1), truth)


@pytest.mark.slow
def test_a_noise_that_others_determine_carries_no_response():
    times = jnp.array([5]), jnp.array([0, 1]), jnp.array([0, 0])
    found = response_matrix(jnp.array([[2.0, 2.0]]), jnp.ones((2, 2)), *times, 1e-6)
    close(found, [[2.0, 0.0]])


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, run.BLOCK, 2 * run.BLOCK + 7])
def test_responses_by_blocks_are_those_column_by_column(count):
    """Every third noise is determined by earlier ones and gets no response; the others are as one by one."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal((count, 4 * count))
    for k in range(2, count, 3):
        values[k] = values[k - 1] - 2 * values[k - 2]
    noise, seen = values @ values.T / (4 * count), rng.standard_normal((count, count))
    times = np.sort(rng.integers(0, 6, count))
    expected = np.zeros((count, count))
    free = [k for k in range(count) if k % 3 != 2]
    for row in range(count):  # the projection on the noises so far, one at a time
        whitened = np.linalg.solve(np.linalg.cholesky(noise[np.ix_(free, free)]), seen[row, free])
        whitened *= times[free] <= times[row]
        expected[row, free] = np.linalg.solve(np.linalg.cholesky(noise[np.ix_(free, free)]).T, whitened)
    close(response_matrix(seen, noise, times, times, np.zeros(count, int), 1e-9), expected, 1e-8)


# -- whole declarations

a = parameter("a", default=1.5, domain=positive)
b = parameter("b", default=0.4)
c = parameter("c", default=0.7)
T = parameter("T", default=3, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)
POINT = {"a": 1.5, "b": 0.4, "c": 0.7, "T": 3, "C": 2}
D, N = sectors("D", N=a)
t = training_clock("t", steps=T)
u = training_clock("u", steps=T)
label = axis("label", C)
M0, W0 = goe("M0", D), gaussian("W0", N, D)
v, w = normal("v", D), normal("w", D)


def declared(equations, observe, parameters=(a, b, c, T), **more) -> Model:
    return Model(parameters=parameters, equations=equations, observe=observe, **more)


def loaded(text: str) -> types.ModuleType:
    module = types.ModuleType("generated_for_a_test")
    exec(compile(text, "<generated for a test>", "exec"), module.__dict__)
    return module


def letters_of(*names: str) -> list[tuple[str, ...]]:
    """("C", "x", "y") of "C x y"."""
    return [tuple(name.split()) for name in names]


def prepared(model: Model, wanted: tuple[str, ...]) -> tuple[Layout, tuple[Letter, ...]]:
    derivation = derive_model(model)
    layout = derivation.layout
    by_name = {f.name: f for f in (*(f.field for f in layout.fields), *layout.system.sources)}
    return layout, tuple(Letter(kind, by_name[x], by_name[y]) for kind, x, y in letters_of(*wanted))


def sampling_of(layout: Layout, needs: Needs, responses: str = "stein") -> SampledPass:
    """The sampled pass of a training level, whatever its laws."""
    program = forward_pass(layout, needs, ClosureKind.SAMPLED, responses=responses)
    return SampledPass(loaded(ForwardText(program, RUNTIME).module()).TRAINING)


def point_of(model: Model, **given) -> Point:
    values = {**{p.name: p.default for p in model.parameters}, **given}
    return Point(
        **{name: value if isinstance(value, int) else jnp.asarray(value, float) for name, value in values.items()}
    )


def sampled(
    model: Model, *wanted: str, means=(), responses: str = "stein", sites: int = SITES, draws="matched", **given
):
    """Order parameters and observables of one pass over a few sites."""
    layout, letters = prepared(model, wanted)
    training = sampling_of(layout, Needs(letters, means), responses)
    p = point_of(model, **given)
    normals = draw(training.groups, training.shapes(p, None), sites, (5,), draws)
    kept, observables, finite, _ = compiled(training.forward_pass)(p, normals, rank=None, tolerance=1e-12)
    assert finite == (1 if layout.clock is None else p.T + int(layout.clock.endpoint))
    moments = training.moments_of(p, kept)
    return compiled(training.order_parameters)(moments, p, tolerance=1e-9), observables


def exactly(model: Model, *wanted: str, means=(), **given):
    layout, letters = prepared(model, wanted)
    module = loaded(ForwardText(forward_pass(layout, Needs(letters, means)), RUNTIME).module())
    order, observables, _ = jax.jit(RowsPass(module.TRAINING).forward_pass)(point_of(model, **given))
    return order, observables


def same_as_exact(model: Model, *wanted: str, means=(), responses: str = "stein", **given) -> None:
    """Linear laws: the normals have exact second moments, so that the sampled pass has no error."""
    found, seen = sampled(model, *wanted, means=means, responses=responses, **given)
    truth, observed = exactly(model, *wanted, means=means, **given)
    for name, value in observed.items():
        close(seen[name], value, 1e-8)
    for key, value in truth.items():
        close(found[key], value, 1e-8)


x, y = fields("x y", D, t)
M = weights("M", D, D, t)


def hebbian(update, extra=(), observe=None) -> Model:
    return declared(
        [
            Eq(x(0), v),
            Eq(x(t + 1), b * y(t) + v),
            Eq(y(t), M(t) @ x(t)),
            Eq(M(0), M0),
            Eq(M(t + 1), update),
            *extra,
        ],
        observe or {"norm": mean(x(t) ** 2), "drive": mean(y(t) ** 2)},
    )


@pytest.mark.slow
@pytest.mark.parametrize("responses", ["stein", "pathwise"])
def test_linear_laws_agree_with_the_exact_pass(responses):
    model = hebbian(M(t) + c / D * outer(x(t), x(t)))
    same_as_exact(model, "C x x", "C x y", "R x M0_x", responses=responses)


@pytest.mark.slow
def test_means_at_earlier_times_weigh_updates():
    model = hebbian(M(t) + c / mean(x(t) ** 2) / D * outer(x(t), x(t)))
    past = Mean(x(PAST) ** 2)
    same_as_exact(model, "C x x", means=(past, Mean(x(PAST) * x(PAST - 1))))
    order, observables = sampled(model, means=(past,))
    close(order["M", 0][:, 0], observables["norm"][:3])


@pytest.mark.slow
def test_weights_with_decay_that_has_no_closed_form():
    model = hebbian((1 - b / (1 + t)) * M(t) + c / D * outer(x(t), x(t)))
    assert derive_model(model).system.recurrences
    same_as_exact(model, "C x x", "R x M0_x")


@pytest.mark.slow
@pytest.mark.parametrize("responses", ["stein", "pathwise"])
def test_fresh_matrices_and_a_sum_over_the_past_of_the_same_field(responses):
    X = gaussian("X", N, D, fresh=t)
    h, z = field("h", N, t), field("z", D, t)
    model = declared(
        [
            Eq(x(0), v),
            Eq(x(t + 1), b * z(t) + v + c * past_sum(lambda s: x(s), t)),
            Eq(h(t), X(t) @ x(t) / sqrt(D)),
            Eq(z(t), sqrt(D) / N * X(t).T @ h(t)),
        ],
        {"norm": mean(x(t) ** 2), "seen": mean(h(t) ** 2), "back": mean(z(t) * x(t))},
    )
    same_as_exact(model, "C x x", "C z x", responses=responses)


@pytest.mark.long
@pytest.mark.slow
def test_fresh_matrices_act_on_vectors_that_stay_and_on_sources():
    X, noisy = gaussian("X", N, D, fresh=t), normal("noisy", D, t)
    h, k, z = field("h", N, t), field("k", N, t), field("z", D, t)
    model = declared(
        [
            Eq(h(t), X(t) @ v / sqrt(D)),
            Eq(k(t), X(t) @ noisy(t) / sqrt(D)),
            Eq(z(t), sqrt(D) / N * X(t).T @ h(t) + c * past_sum(lambda s: noisy(s), t) + b * noisy(t - 1)),
        ],
        {"h": mean(h(t) ** 2), "k": mean(k(t) ** 2), "z": mean(z(t) ** 2), "both": mean(z(t) * noisy(t - 1))},
    )
    same_as_exact(model, "C z noisy", "C h k")


@pytest.mark.slow
def test_lags_beyond_the_last_time_are_zero():
    model = hebbian(M(t), observe={"late": mean(x(t) * x(t - 5)), "one": mean(x(t) * x(t - 1))})
    same_as_exact(model, "C x x")
    assert not np.any(sampled(model)[1]["late"])


def test_powers_of_whole_numbers_that_fall_in_time():
    """2 and C are whole numbers, their negative powers are not."""
    z = field("z", D, t)
    model = declared(
        [Eq(z(t), 2 ** (-t) * v + C ** (-t) * tanh(w) * 0 + C ** (1 - t) * w)], {"z": mean(z(t) ** 2)}, (C, T)
    )
    close(sampled(model, C=3)[1]["z"], [4.0**-n + 9.0 ** (1 - n) for n in range(4)], 1e-8)


@pytest.mark.slow
def test_a_clock_without_its_end():
    r = training_clock("r", steps=T, endpoint=False)
    z = field("z", D, r)
    model = declared(
        [Eq(z(0), v), Eq(z(r + 1), b * M0 @ z(r) + c * past_sum(lambda s: z(s), r) + w)],
        {"norm": mean(z(r) ** 2)},
    )
    assert sampled(model)[1]["norm"].shape == (3,)
    same_as_exact(model, "C z z", "R z M0_z")


@pytest.mark.slow
def test_fields_without_time():
    k, q, f = field("k", D), field("q", D), field("f", D)
    model = declared([Eq(k, M0 @ v), Eq(q, v - b * k), Eq(f, M0 @ q)], {"norm": mean(f**2), "cross": mean(f * k)}, (b,))
    same_as_exact(model, "C f f", "C k q", "R q k")


@pytest.mark.long
@pytest.mark.slow
def test_labels_that_are_drawn_once_each():
    z, r = fields("z r", D, u, axes=label)
    drawn = normal("drawn", D, axes=label)
    K = weights("K", D, D, u)
    model = declared(
        [
            Eq(z(0), drawn),
            Eq(z(u + 1), b * r(u) + drawn - w),
            Eq(r(u), K(u) @ z(u)),
            Eq(K(0), M0),
            Eq(K(u + 1), K(u) + c / D * outer(z(u), z(u))),
        ],
        {"norm": mean(z(u) ** 2)},
        (b, c, T, C),
    )
    same_as_exact(model, "C z z", "R z M0_z")


def test_constants_count_as_they_are():
    """Also where a field has labels, under a random matrix, and where the law of all labels is that of none."""
    one, z, k = fields("one z k", D, u, axes=label)
    model = declared(
        [Eq(one(u), 1), Eq(z(u), w), Eq(k(u), tanh(w) * 0 + M0 @ one(u) + c)],
        {"one": mean(one(u) ** 2), "z": mean(z(u) ** 2), "k": mean(k(u) ** 2), "m": mean(k(u)), "w": mean(w**2)},
        (b, c, T, C),
    )
    _, seen = sampled(model, "C one one", "C z one")
    close(seen["one"], np.ones(4))
    close(seen["z"], np.ones(4), 1e-8)
    close(seen["k"], np.full(4, 1 + 0.7**2), 1e-8)
    close(seen["m"], np.full(4, 0.7), 1e-8)
    close(seen["w"], [1.0], 1e-8)


def test_means_of_means_and_sums_over_labels():
    z, r = fields("z r", D, u, axes=label)
    drawn, y_of = normal("drawn", D, axes=label), data("y_of", label)
    model = declared(
        [Eq(z(u), y_of * drawn + c), Eq(r(u), total(mean(z(u) ** 2)) * tanh(w) + mean(z(u)) * drawn)],
        {
            "spread": mean((z(u) - mean(z(u))) ** 2),
            "each": each(mean(z(u) ** 2)),
            "sum": total(y_of * mean(z(u))),
            "r": each(mean(r(u) * drawn)),
        },
        (b, c, T, C),
    )
    order, seen = sampled(model, means=(Mean(z(PAST) ** 2),), y_of=np.array([1.0, 2.0]))
    squares = np.array([1 + 0.49, 4 + 0.49])
    close(seen["spread"], np.full(4, 2.5), 1e-8)
    close(seen["each"], np.tile(squares, (4, 1)), 1e-8)
    close(seen["sum"], np.full(4, 3 * 0.7), 1e-8)
    # <tanh(w) drawn> is zero only up to the noise of so many sites, and the sum over labels of <z^2> multiplies it
    close(seen["r"], np.full((4, 2), 0.7), 5 * squares.sum() * 0.63 / np.sqrt(SITES))
    close(order["M", 0], np.tile(squares, (3, 1)), 1e-8)


@pytest.mark.slow
def test_sums_that_include_the_current_time():
    """W(t + 1) x(t), also where a mean weighs the update, is W(t) x(t) and what is added at t."""
    z, k = fields("z k", D, t)
    rate = c * mean(z(t) ** 2)
    update = [Eq(z(0), v), Eq(z(t + 1), b * k(t) + v), Eq(M(0), M0), Eq(M(t + 1), M(t) + rate / D * outer(z(t), z(t)))]
    observe = {"k": mean(k(t) ** 2), "bent": mean(tanh(z(t)) ** 2)}
    updated = declared([*update, Eq(k(t), M(t + 1) @ z(t))], observe)
    written = declared([*update, Eq(k(t), M(t) @ z(t) + rate * mean(z(t) ** 2) * z(t))], observe)
    found, expected = (sampled(model, "C z z", c=0.05) for model in (updated, written))
    close(found[1]["k"], expected[1]["k"], 1e-9)
    close(found[0]["C", "z", "z"], expected[0]["C", "z", "z"], 1e-9)


def test_a_law_of_fresh_data_and_its_past_by_hand():
    """v(t) = tanh(n(t)) under a matrix drawn anew, and the sum of its past: averages are those of the normals."""
    X, noisy = gaussian("X", N, D, fresh=t), normal("noisy", D, t)
    f, kept, h = field("f", D, t), field("kept", D, t), field("h", N, t)
    model = declared(
        [Eq(f(t), tanh(noisy(t))), Eq(kept(t), past_sum(lambda s: f(s), t)), Eq(h(t), X(t) @ f(t) / sqrt(D))],
        {"kept": mean(kept(t) ** 2), "h": mean(h(t) ** 2)},
    )
    layout, letters = prepared(model, ("C f f",))
    training = sampling_of(layout, Needs(letters))
    p = point_of(model)
    normals = draw(training.groups, training.shapes(p, None), SITES, (5,), "plain")
    kept, seen, _, _ = training.forward_pass(p, normals)
    moments = training.moments_of(p, kept)
    values = np.tanh(np.asarray(normals["noisy"]))
    before = np.cumsum(values, axis=1) - values
    noise = np.asarray(normals["X"])[:, :, 0] * np.sqrt((values**2).mean(axis=0))
    close(seen["kept"], (before**2).mean(axis=0))
    close(seen["h"], (noise**2).mean(axis=0))
    close(moments["C", "f", "f"], (values.T @ values / SITES)[:3, :3])


def test_times_that_are_finite_are_counted():
    z = field("z", D, t)
    model = declared([Eq(z(0), 1e100 * v), Eq(z(t + 1), 1e100 * tanh(z(t)) * z(t) ** 2)], {"m": mean(z(t) ** 2)}, (T,))
    layout, _ = prepared(model, ())
    training, p = sampling_of(layout, Needs()), point_of(model, T=4)
    normals = draw(training.groups, training.shapes(p, None), 64, (5,), "plain")
    assert training.forward_pass(p, normals)[2] == 2  # 1e100, 1e300, and nothing beyond


# -- names


def named(names: list[str]) -> Model:
    """The same declaration, with its symbols called as given."""
    names_of = iter(names)
    p1, p2 = (parameter(next(names_of), default=1.0) for _ in range(2))
    steps = parameter(next(names_of), default=2, domain=whole_positive)
    size = sectors(next(names_of))
    clock = training_clock(next(names_of), steps=steps)
    matrix, other = gaussian(next(names_of), size, size), gaussian(next(names_of), size, size, fresh=clock)
    source = normal(next(names_of), size)
    f, g = fields(f"{next(names_of)} {next(names_of)}", size, clock)
    kept = weights(next(names_of), size, size, clock)
    return Model(
        parameters=(p1, p2, steps),
        equations=[
            Eq(f(0), source),
            Eq(f(clock + 1), tanh(f(clock) + p1 * g(clock)) + p2),
            Eq(g(clock), kept(clock) @ f(clock) / sqrt(size) + other(clock) @ f(clock - 1) / sqrt(size)),
            Eq(kept(0), matrix),
            Eq(kept(clock + 1), kept(clock) + p2 / mean(f(clock) ** 2) / sqrt(size) * outer(g(clock), f(clock))),
        ],
        observe={next(names_of): mean(f(clock) ** 2), "lagging": mean(g(clock) * f(clock - 1))},
    )


PLAIN = ["rate", "shift", "T", "D", "t", "J", "X", "n", "f", "g", "W", "norm"]
UNLUCKY = (
    ["p", "moments", "sizes", "first", "drawn", "noise", "record", "means", "normals_", "partial", "kept", "results"],
    ["u_1", "f_1", "store", "span", "start_", "JT", "J", "p", "u", "weighing", "Entries", "u_series"],
    ["JT", "X_", "lag", "T", "t_", "J", "JTT", "values", "weighted", "expressed", "forward", "TRAINING"],
)


@cache
def run_with(names: tuple[str, ...], responses: str) -> tuple[np.ndarray, ...]:
    model = named(list(names))
    layout, letters = prepared(model, (f"C {names[8]} {names[9]}",))
    training = sampling_of(layout, Needs(letters), responses)
    p = point_of(model, **dict(zip(names[:3], (0.6, 0.3, 2), strict=True)))
    normals = draw(training.groups, training.shapes(p, None), 64, (5,), "plain")
    kept, seen, _, _ = compiled(training.forward_pass)(p, normals, rank=None, tolerance=1e-12)
    return training.moments_of(p, kept)["C", names[8], names[9]], seen[names[11]], seen["lagging"]


@pytest.mark.long_cases("p-stein", "p-pathwise", "JT-pathwise")
@pytest.mark.slow
@pytest.mark.parametrize("responses", ["stein", "pathwise"])
@pytest.mark.parametrize("names", UNLUCKY, ids=lambda names: names[0])
def test_names_do_not_matter(names, responses):
    for found, expected in zip(run_with(tuple(names), responses), run_with(tuple(PLAIN), responses), strict=True):
        close(found, expected, 1e-12)


def remembering() -> Model:
    """Rows of data that stay, with labels by a teacher: the same matrix acts on what has no time and on what has."""
    s, taught, (d, row) = field("s", D, t), field("taught", N), fields("d row", N, t)
    return declared(
        [
            Eq(s(0), w),
            Eq(row(t), W0 @ s(t) / sqrt(D)),
            Eq(taught, W0 @ v / sqrt(D)),
            Eq(d(t), tanh(taught) - tanh(row(t))),
            Eq(s(t + 1), s(t) + c * sqrt(D) / N * W0.T @ d(t)),
        ],
        {"loss": mean(d(t) ** 2), "overlap": mean(s(t) * v)},
        (a, c, T),
    )


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "rank"), [("updated", None), ("updated", 3), ("remembering", None), ("remembering", 7)]
)
def test_spans_that_are_widened_in_stages_hold_the_same(which, rank, monkeypatch):
    """Directions that have joined, and what found no room in the end, do not depend on the widths on the way."""
    model, wanted = (named(PLAIN), ("C f g", "R f J_f")) if which == "updated" else (remembering(), ("C d d",))
    layout, letters = prepared(model, wanted)
    p = point_of(model, T=9)
    monkeypatch.setattr(sizes, "LIGHT", 0)
    found = []
    for staged in (1000, 2):
        monkeypatch.setattr(samples, "STAGED", staged)
        training = sampling_of(layout, Needs(letters))
        normals = draw(training.groups, training.shapes(p, rank), 64, (5,), "plain")
        text = str(jax.make_jaxpr(lambda x, f=training.forward_pass: f(p, x, rank=rank))(normals))
        kept, *passed = compiled(training.forward_pass)(p, normals, rank=rank, tolerance=1e-12)
        found.append((text.count("cond_jaxpr"), (training.moments_of(p, kept), *passed)))
    (one_loop, expected), (loops, staged_pass) = found
    assert loops >= one_loop + (3 if rank is None else 1)
    jax.tree.map(lambda x, y: close(x, y, 1e-10), staged_pass, expected)


def test_a_light_pass_has_one_width(monkeypatch):
    """Each width is compiled by itself, which takes longer than a pass over few sites."""
    monkeypatch.setattr(samples, "STAGED", 2)
    model = remembering()
    layout, letters = prepared(model, ("C d d",))
    training = sampling_of(layout, Needs(letters))
    p = point_of(model, T=9)
    normals = draw(training.groups, training.shapes(p, None), 16, (5,), "plain")
    loops = []
    for light in (sizes.LIGHT, 0):
        monkeypatch.setattr(sizes, "LIGHT", light)
        text = str(jax.make_jaxpr(lambda x: training.forward_pass(p, x, rank=None))(normals))
        loops.append(text.count("cond_jaxpr"))
    assert loops[0] < loops[1]


def test_a_parameter_called_like_a_late_value():
    """tanh(u(t - 1) + u_1): both are used, whatever the names."""
    u_1, late = parameter("u_1", default=2.0), field("late", D, t)
    model = declared([Eq(late(0), v), Eq(late(t + 1), tanh(late(t) * 0 + u_1))], {"m": mean(late(t))}, (u_1, T))
    close(sampled(model)[1]["m"][1:], np.full(3, np.tanh(2.0)))


# -- refusals, and replicas


@pytest.mark.parametrize("start", [v, tanh(v)], ids=str)
def test_pathwise_responses_of_a_law_that_jumps_are_refused(start):
    """Also where other laws are smooth."""
    z, k = fields("z k", D, t)
    equations = [Eq(z(0), start), Eq(z(t + 1), Heaviside(k(t))), Eq(k(t), M0 @ z(t))]
    model = declared(equations, {"m": mean(z(t))}, (T,))
    with pytest.raises(DeclarationError, match="pathwise responses are not available if a law jumps"):
        sampled(model, responses="pathwise")


@pytest.mark.slow
def test_replicas_take_a_training_level_and_a_point():
    model = hebbian(M(t) + c / D * outer(x(t), x(t)))
    layout, letters = prepared(model, ("C x x", "R x M0_x"))
    training = sampling_of(layout, Needs(letters))
    found = sampled_pass(training, point_of(model), Sampling(samples=5_000, seed=1), lambda *_: None)
    truth, observed = exactly(model, "C x x", "R x M0_x")
    replicas = found.report.replicates
    assert len(found.nearby.varied) == replicas + 1 >= 11 and len(found.nearby.orders) == replicas + 3
    assert found.finite == 4 and found.report.responses == "stein"
    close(found.observables["norm"], observed["norm"], 1e-6)
    close(found.order["C", "x", "x"], truth["C", "x", "x"], 1e-2)
