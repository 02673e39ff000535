"""Linear recursions of one vector: fields are polynomials of the matrix, and means are their moments, exactly."""

from __future__ import annotations

import functools
import random
from fractions import Fraction
from math import comb

import numpy as np
import pytest
import sympy as sp

import derive
from derive import (
    Eq,
    Model,
    axis,
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
    sectors,
    spectrum,
    total,
    training_clock,
    trait,
    weights,
    whole_positive,
)
from derive.pipeline import derive_model
from derive.program.exact_run import ExactRun
from derive.program.lowering import forward_pass
from derive.stages.expand import expand_declaration

T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
STEPS = 4
Polynomial = list[Fraction]
"""Coefficients of the powers of the matrix."""


def plus(one: Polynomial, other: Polynomial, factor=1) -> Polynomial:
    size = max(len(one), len(other))
    a, b = ([*x, *[Fraction(0)] * (size - len(x))] for x in (one, other))
    return [x + factor * y for x, y in zip(a, b, strict=True)]


def times(one: Polynomial, other: Polynomial) -> Polynomial:
    product = [Fraction(0)] * (len(one) + len(other))
    for i, x in enumerate(one):
        for j, y in enumerate(other):
            product[i + j] += x * y
    return product


def wigner(power: int) -> int:
    return comb(power, power // 2) // (power // 2 + 1) if power % 2 == 0 else 0


def wishart(ratio: Fraction):
    """Moments of W^T W / N with N = ratio D, by Narayana's numbers."""
    return lambda k: sum((Fraction(comb(k, r) * comb(k, r + 1), k) * ratio**-r for r in range(k)), Fraction(k == 0))


def observed(model: Model, **fixed) -> dict[str, np.ndarray]:
    """Observables of the exact pass, at all times."""
    names = {p.name: p for p in model.parameters}
    substitution = {T: sp.Integer(STEPS), **{names[name]: sp.Rational(str(value)) for name, value in fixed.items()}}
    machine = ExactRun(forward_pass(derive_model(model).layout), substitution)
    decimal = np.vectorize(lambda x: float(machine.scalars.expression(x)), otypes=[float])
    return {name: decimal(table) for name, table in machine.observables.items()}


def moment(one: Polynomial, other: Polynomial, moments) -> float:
    return float(sum(c * moments(k) for k, c in enumerate(times(one, other)) if c))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["goe", "wishart"])
def test_means_of_a_linear_recursion_are_moments_of_polynomials(kind, seed):
    """x(t + 1) of x now and before, of the matrix times both, of sums over the past and of the start, with coefficients
    that change in time; y and its mean with x at another time."""
    chance = random.Random(seed)
    draw = lambda: Fraction(chance.randint(-3, 3), chance.randint(1, 3))  # noqa: E731
    here, before, pushed, pushed_before, summed, started = (draw() for _ in range(6))
    kept, slope, scale = draw(), draw(), Fraction(chance.randint(1, 5), 2)
    ratio, delay = Fraction(chance.choice([1, 2, 3]), 2), chance.randint(1, 2)
    rational = lambda x: sp.Rational(x.numerator, x.denominator)  # noqa: E731
    if kind == "goe":
        (D,) = (sectors("D"),)
        A = goe("A", D)
        apply, moments = lambda v: A @ v, wigner  # noqa: E731
    else:
        D, N = sectors("D", N=rational(ratio))
        W = gaussian("W", N, D)
        apply, moments = lambda v: W.T @ (W @ v) / N, wishart(ratio)  # noqa: E731
    x, y = fields("x y", D, t)
    v = normal("v", D, scale=rational(scale))
    law = (
        rational(here) * x(t)
        + rational(before) / (1 + t) * x(t - delay)
        + rational(pushed) * apply(x(t))
        + rational(pushed_before) * apply(x(t - 1))
        + rational(summed) * past_sum(lambda s: x(s) * rational(slope) ** (t - s), t)
        + rational(started) * v
    )
    equations = [Eq(x(0), v), Eq(x(t + 1), law), Eq(y(t), rational(kept) * x(t) - apply(x(t - 1)))]
    observe = {"xx": mean(x(t) ** 2), "xx1": mean(x(t) * x(t - 1)), "xy": mean(x(t) * y(t)), "yv": mean(y(t) * v)}
    found = observed(Model((T,), equations, observe))

    start: Polynomial = [scale]
    path: dict[int, Polynomial] = {0: start}
    nothing: Polynomial = [Fraction(0)]
    for now in range(STEPS):
        value = times([here, pushed], path[now])
        value = plus(value, path.get(now - delay, nothing), before / (1 + now))
        value = plus(value, times([Fraction(0), pushed_before], path.get(now - 1, nothing)))
        for s in range(now):
            value = plus(value, path[s], summed * slope ** (now - s))
        path[now + 1] = plus(value, start, started)
    other = {
        now: plus(times([kept], path[now]), times([Fraction(0), Fraction(-1)], path.get(now - 1, nothing)))
        for now in path
    }
    for now in path:
        earlier = path.get(now - 1, nothing)
        expected = {
            "xx": moment(path[now], path[now], moments),
            "xx1": moment(path[now], earlier, moments),
            "xy": moment(path[now], other[now], moments),
            "yv": moment(other[now], start, moments),
        }
        for name, value in expected.items():
            assert found[name][now] == pytest.approx(value, rel=1e-12, abs=1e-12), (name, now)


def test_a_scale_that_is_a_root_is_exact():
    """<v^2> = 2 for the scale sqrt(2), and <v w> = 0 for independent vectors."""
    D = sectors("D")
    x, A, v, w = field("x", D, t), goe("A", D), normal("v", D, scale=sp.sqrt(2)), normal("w", D, scale=sp.sqrt(3))
    found = observed(
        Model((T,), [Eq(x(0), v), Eq(x(t + 1), A @ x(t) + w / 2)], {"q": mean(x(t) ** 2), "w": mean(x(t) * w)})
    )
    assert found["q"][:3] == pytest.approx([2, 2 + 3 / 4, 2 * 2 + 3 / 4 + 3 / 4]) and found["w"][:2] == pytest.approx(
        [0, 1.5]
    )


@pytest.mark.parametrize("shares", [None, [0.25, 0.5, 0.25]])
def test_traits_multiply_what_their_site_remembers(shares):
    """x(t + 1) = s x(t): <x^2> = <s^2t>, <s x v> = <s^(t+1)>; with a matrix the first steps by hand."""
    D = sectors("D")
    s = trait("s", D, values=[sp.Rational(1, 2), 1, -2], **({} if shares is None else {"weights": shares}))
    x, y = fields("x y", D, t)
    v, A = normal("v", D), goe("A", D)
    share = shares or [1 / 3] * 3
    power = lambda k: sum(w * a**k for w, a in zip(share, (0.5, 1.0, -2.0), strict=True))  # noqa: E731
    equations = [Eq(x(0), v), Eq(x(t + 1), s * x(t)), Eq(y(0), v), Eq(y(t + 1), s * (A @ y(t)) + y(t) / 2)]
    observe = {"xx": mean(x(t) ** 2), "sxv": mean(s * x(t) * v), "yy": mean(y(t) ** 2), "yv": mean(y(t) * v)}
    found = observed(Model((T,), equations, observe))
    assert found["xx"] == pytest.approx([power(2 * k) for k in range(STEPS + 1)])
    assert found["sxv"] == pytest.approx([power(k + 1) for k in range(STEPS + 1)])
    # y(2) = (s A + 1/2)^2 v, and the mean of v s A s A v is <s>^2
    assert found["yy"][:2] == pytest.approx([1, power(2) + 0.25])
    assert found["yv"][:3] == pytest.approx([1, 0.5, 0.25 + power(1) ** 2])


@pytest.fixture(scope="module")
def two_spikes():
    names = a, b, c = tuple(parameter(name, default=2.0) for name in "abc")
    D = sectors("D")
    u, w = normal("u", D), normal("w", D)
    spikes = a / D * outer(u, u) + b / D * outer(w, w) + c / D * (outer(u, w) + outer(w, u))
    theory = derive.load(Model(names, equations=[], probe=spectrum(goe("A", D) + spikes)))
    return theory, theory.function("outlier", of=["a", "b", "c"])


@pytest.mark.slow
@pytest.mark.parametrize("values", [(3.0, 2.0, 0.0), (2.0, 3.0, 0.0), (1.5, 1.5, 0.3), (-4.0, 1.7, -0.2)])
def test_outliers_of_two_spikes_are_those_of_their_strengths(values, two_spikes):
    """(a, c; c, b) between two directions beside a GOE matrix; the largest outlier is a function of all three."""
    theory, largest = two_spikes
    strengths = np.linalg.eigvalsh([[values[0], values[2]], [values[2], values[1]]])
    outliers = sorted((s + 1 / s for s in strengths if abs(s) > 1), reverse=True)
    given = dict(zip("abc", values, strict=True))
    solution = theory.solve(**given)
    assert list(solution.outliers) == pytest.approx(outliers, rel=1e-9)
    assert float(largest(*values)) == pytest.approx(outliers[0], rel=1e-6)  # in the caller's precision


@pytest.mark.parametrize("power", [sp.Rational(1, 2), -1])
def test_sizes_leave_recurrences_of_weights(power):
    """V times a power of the size drives W as V does where W divides it out: the same functions of time."""
    D = sectors("D")
    g, A = normal("g", D), goe("A", D)
    W, V = weights("W", D, D, t), weights("V", D, D, t)

    def recurrences(scale):
        equations = [
            Eq(W(0), A),
            Eq(V(0), scale * A),
            Eq(V(t + 1), V(t) / (1 + t) + scale / D * outer(g, g)),
            Eq(W(t + 1), W(t) + V(t) / scale / 2),
        ]
        found = expand_declaration(Model((T,), equations, probe=spectrum(W(T)))).recurrences
        return [(one.matrix, one.entry, one.forcing, one.initial) for one in found]

    plain = recurrences(sp.S.One)
    assert plain and recurrences(D**power) == plain


@pytest.mark.parametrize("seed", range(5))
def test_weights_that_learn_add_overlaps_of_the_past(seed):
    """W(t) = A + sum over s of c a^(t-1-s) outer(x(s), y(s)) / D acts on x as A and as the past times its overlaps; an
    overlap that multiplies a field is a number."""
    chance = random.Random(100 + seed)
    learned, kept, pushed, fed = (Fraction(chance.choice([-2, -1, 1, 2]), chance.randint(1, 3)) for _ in range(4))
    decay = Fraction(chance.choice([1, 1, 2]), 2)
    rational = lambda x: sp.Rational(x.numerator, x.denominator)  # noqa: E731
    D = sectors("D")
    A, v, W = goe("A", D), normal("v", D), weights("W", D, D, t)
    x, y, h, u = fields("x y h u", D, t)
    equations = [
        Eq(x(0), v),
        Eq(h(t), W(t) @ x(t)),
        Eq(y(t), rational(pushed) * h(t) + x(t)),
        Eq(u(t), W(t).T @ y(t)),
        Eq(x(t + 1), rational(kept) * x(t) + h(t) / 2 + rational(fed) * mean(x(t) * v) * v),
        Eq(W(0), A),
        Eq(W(t + 1), rational(decay) * W(t) + rational(learned) / D * outer(y(t), x(t))),
    ]
    observe = {"xx": mean(x(t) ** 2), "xh": mean(x(t) * h(t)), "yu": mean(y(t) * u(t)), "uv": mean(u(t) * v)}
    found = observed(Model((T,), equations, observe))

    xs: list[Polynomial] = [[Fraction(1)]]
    ys: list[Polynomial] = []

    def mean_of(one, other):
        return sum((c * wigner(k) for k, c in enumerate(times(one, other))), Fraction(0))

    for now in range(STEPS + 1):
        start = decay**now

        def acted(vector, left, right, now=now, start=start):
            total = times([Fraction(0), start], vector)
            for s in range(now):
                total = plus(total, left[s], learned * decay ** (now - 1 - s) * mean_of(right[s], vector))
            return total

        h_now = acted(xs[now], ys, xs)
        ys.append(plus(times([pushed], h_now), xs[now]))
        u_now = acted(ys[now], xs, ys)
        expected = {
            "xx": mean_of(xs[now], xs[now]),
            "xh": mean_of(xs[now], h_now),
            "yu": mean_of(ys[now], u_now),
            "uv": mean_of(u_now, [Fraction(1)]),
        }
        for name, value in expected.items():
            assert found[name][now] == pytest.approx(float(value), rel=1e-11, abs=1e-11), (name, now)
        after = plus(times([kept], xs[now]), h_now, Fraction(1, 2))
        xs.append(plus(after, [Fraction(1)], fed * mean_of(xs[now], [Fraction(1)])))


@pytest.mark.parametrize("seed", range(4))
def test_labels_that_are_summed_mix_their_starts(seed):
    """x_c(t + 1) = a sum over d of x_d(t) + b x_c(t) + A x_c(t): matrices over labels times polynomials of A."""
    chance = random.Random(seed)
    count = 3
    shared, shift = (Fraction(chance.randint(-2, 2), 3) for _ in range(2))
    D, c = sectors("D"), axis("c", count)
    A, v = goe("A", D), normal("v", D, axes=c)
    x, y = (field(name, D, t, axes=c) for name in "xy")
    share, number = (sp.Rational(e.numerator, e.denominator) for e in (shared, shift))
    equations = [
        Eq(x(0), v),
        Eq(y(t), share * total(x(t), c) + number * x(t)),
        Eq(x(t + 1), y(t) + A @ x(t)),
    ]
    wanted = {"xx": mean(x(t) ** 2), "xv": mean(x(t) * v), "xy": mean(x(t) * y(t))}
    observe = {**{name: each(value) for name, value in wanted.items()}, "average": mean(x(t) * y(t))}
    found = observed(Model((T,), equations, observe))
    mix = [[shared + shift * (i == j) for j in range(count)] for i in range(count)]
    # by label of the start: a polynomial of A for each label
    one, none = [Fraction(1)], [Fraction(0)]
    state = [[one if i == j else none for j in range(count)] for i in range(count)]
    for now in range(STEPS + 1):
        driven = [
            [functools.reduce(plus, (times([mix[i][k]], state[k][j]) for k in range(count))) for j in range(count)]
            for i in range(count)
        ]
        for i in range(count):
            expected = {
                "xx": sum(moment(p, p, wigner) for p in state[i]),
                "xv": moment(state[i][i], one, wigner),
                "xy": sum(moment(p, q, wigner) for p, q in zip(state[i], driven[i], strict=True)),
            }
            for name, value in expected.items():
                assert found[name][now][i] == pytest.approx(value, rel=1e-11, abs=1e-11), (name, now, i)
        assert found["average"][now] == pytest.approx(np.mean(found["xy"][now]))
        state = [
            [plus(driven[i][j], times([Fraction(0), Fraction(1)], state[i][j])) for j in range(count)]
            for i in range(count)
        ]
