"""Declarations that say the same in other words: the same numbers from each.

Each case is one way to write a model that was once refused, beside a plain way to write it.
"""

from __future__ import annotations

import numpy as np
import pytest

import derive
from derive import Model, goe, parameter, sectors, spectrum
from derive.selftest.engine import Refused, exact_observables, solved, training_level
from derive.selftest.laws import same_numbers

HEAD = """
from sympy import Piecewise, sqrt, tanh
from derive import *

T = parameter("T", default=3, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)
nu = parameter("nu", default=1.5, domain=positive)
c = parameter("c", default=0.5)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
l = training_clock("l", steps=T)
classes = axis("classes", C)
A, B, E = gaussian("A", N, D), gaussian("B", D, N), gaussian("E", N, D, variance=1 / D)
M = goe("M", D)
n, m = normal("n", D), normal("m", N)
k = normal("k", D, axes=classes)
x, y, z = fields("x y z", D, t)
h = field("h", N, t)
g, q = fields("g q", N, l, axes=classes)
W, V = weights("W", N, D, t), weights("V", N, D, t)
U = weights("U", N, D, l)
S, Q = weights("S", D, D, t), weights("Q", D, D, t)
q_ = field("q_", D, t)
MODEL = Model(
    parameters=(T, C, nu, c),
    equations=[EQUATIONS],
    observe={OBSERVE},
    PROBE
)
"""


def text(equations: str, observe: str = "", probe: str = "") -> str:
    probed = f"probe=spectrum({probe})," if probe else ""
    return HEAD.replace("EQUATIONS", equations).replace("OBSERVE", observe).replace("PROBE", probed)


SEEN = "'a': mean(x(t)**2), 'b': mean(y(t)**2), 'c': mean(x(t) * y(t - 1))"
START = "Eq(x(0), n), "
MOMENTUM = "Eq(W(0), {start}), Eq(V(0), 0), Eq(h(t), W(t) @ n), Eq(V(t + 1), V(t) / 2 + {old} * W(t) / 5 + {spike}), "
MOMENTUM += "Eq(W(t + 1), W(t) * (9 - t / (1 + t)) / 10 + V(t + 1) * {new} + {more} / 10)"
SMALL = {"old": "1", "spike": "outer(h(t), n) / D", "new": "1"}
LARGE = {"old": "sqrt(D)", "spike": "sqrt(nu) * outer(h(t), n) / sqrt(N)", "new": "1 / sqrt(D)"}
TRAINED = ("'a': mean(h(t)**2), 'b': mean(h(t) * h(t - 1))", "W(T).T @ W(T)")
LABELLED = "Eq(U(0), E), Eq(g(l), U(l) @ k), Eq(U(l + 1), U(l) + {update})"
BY_LABEL = ("'a': mean(g(l)**2), 'b': mean(g(l) * g(l - 1))", "U(T).T @ U(T)")

DECAYED = "Eq(S(0), M), Eq(x(0), n), Eq(x(t + 1), S(t) @ x(t) / 2 + x(t)), Eq(S(t + 1), 9 * S(t) / 10 + {update})"
DECAY = ("'a': mean(x(t)**2)", "S(T).T @ S(T)")

CASES = {
    "a mean before an outer product, and decay": (
        text(DECAYED.format(update="mean(x(t)**2) / D / 4 * outer(x(t), x(t))"), *DECAY),
        text(DECAYED.format(update="outer(y(t), x(t)) / D / 4") + ", Eq(y(t), mean(x(t)**2) * x(t))", *DECAY),
    ),
    "the mean of two times in a sum over one": (
        text(
            START + "Eq(x(t + 1), M @ x(t) - c * past_sum(lambda s: mean(x(s) * x(t)) * x(s), t)), "
            "Eq(y(t), past_sum(lambda s: mean((x(s) + x(s - 1)) * (x(t) - c * n)) * x(s) + mean(x(s)**2) * n, t))",
            SEEN,
        ),
        text(
            START + "Eq(S(0), 0 * M), Eq(Q(0), 0 * M), Eq(S(t + 1), S(t) + outer(x(t), x(t)) / D), "
            "Eq(Q(t + 1), Q(t) + outer(x(t), x(t) + x(t - 1)) / D), Eq(z(t), mean(x(t)**2) * n), "
            "Eq(x(t + 1), M @ x(t) - c * S(t) @ x(t)), Eq(y(t), Q(t) @ (x(t) - c * n) + past_sum(lambda s: z(s), t))",
            SEEN,
        ),
    ),
    "time and means inside a mean": (
        text(
            START + "Eq(x(t + 1), M @ x(t)), Eq(y(t), mean(t * x(t)**2 + mean(x(t)**2) * x(t) * x(t - 2)) * n + "
            "past_sum(lambda s: mean(t * mean(x(t)**2) * x(s)**2) * x(s), t))",
            SEEN,
        ),
        text(
            START + "Eq(x(t + 1), M @ x(t)), Eq(z(t), mean(x(t)**2) * x(t)), "
            "Eq(y(t), (t * mean(x(t)**2) + mean(x(t)**2) * mean(x(t) * x(t - 2))) * n + "
            "t * mean(x(t)**2) * past_sum(lambda s: z(s), t))",
            SEEN,
        ),
    ),
    "a mean with its time before an outer product": (
        text(DECAYED.format(update="mean(t * x(t)**2 + x(t) * x(t - 1)) / D / 4 * outer(x(t), x(t))"), *DECAY),
        text(
            DECAYED.format(update="outer(y(t), x(t)) / D / 4")
            + ", Eq(y(t), (t * mean(x(t)**2) + mean(x(t) * x(t - 1))) * x(t))",
            *DECAY,
        ),
    ),
    "cases of time before an outer product, and in a sum": (
        text(
            DECAYED.format(update="Piecewise((3, t < 1), (-1, True)) / D / 4 * outer(x(t), x(t))")
            + ", Eq(y(t), past_sum(lambda s: Piecewise((3, s < 2), (-1, True)) * x(s), t))",
            "'a': mean(x(t)**2), 'b': mean(y(t)**2)",
            DECAY[1],
        ),
        text(
            DECAYED.format(update="outer(z(t), x(t)) / D / 4")
            + ", Eq(z(t), Piecewise((3, t < 1), (-1, True)) * x(t)), "
            "Eq(y(t), past_sum(lambda s: q_(s), t)), Eq(q_(t), Piecewise((3, t < 2), (-1, True)) * x(t))",
            "'a': mean(x(t)**2), 'b': mean(y(t)**2)",
            DECAY[1],
        ),
    ),
    "sizes inside a nested product": (
        text(START + "Eq(x(t + 1), B @ (A @ x(t) / sqrt(D)) / sqrt(N)), Eq(y(t), B @ (A @ x(t) / sqrt(N * D)))", SEEN),
        text(
            START + "Eq(h(t), A @ x(t) / sqrt(D)), Eq(x(t + 1), B @ h(t) / sqrt(N)), Eq(y(t), B @ h(t) / sqrt(N))", SEEN
        ),
    ),
    "sizes inside a sum inside a product": (
        text(
            START + "Eq(x(t + 1), B @ (c * A @ x(t) / D + tanh(1) * m / sqrt(D))), Eq(y(t), B @ (A @ (x(t) / D) - m / "
            "sqrt(N)))",
            SEEN,
        ),
        text(
            START + "Eq(h(t), A @ x(t) / sqrt(D)), Eq(x(t + 1), sqrt(nu) * B @ (c * h(t) + tanh(1) * m) / sqrt(N)), "
            "Eq(y(t), sqrt(nu) * B @ h(t) / sqrt(N) - B @ m / sqrt(N))",
            SEEN,
        ),
    ),
    "a size in the start of weights with momentum": (
        text(MOMENTUM.format(start="A / sqrt(D)", more="A / sqrt(D)", **SMALL), *TRAINED),
        text(MOMENTUM.format(start="E", more="E", **SMALL), *TRAINED),
    ),
    "a transpose in the start of weights with momentum": (
        text(MOMENTUM.format(start="B.T / sqrt(D)", more="B.T / sqrt(D)", **SMALL), *TRAINED),
        text(MOMENTUM.format(start="E", more="E", **SMALL), *TRAINED),
    ),
    "sizes between weights that need each other": (
        text(MOMENTUM.format(start="E", more="E", **LARGE), *TRAINED),
        text(MOMENTUM.format(start="E", more="E", **SMALL), *TRAINED),
    ),
    "a mean with labels before an outer product": (
        text(LABELLED.format(update="mean(g(l)**2) / D * outer(g(l), k)"), *BY_LABEL),
        text(LABELLED.format(update="outer(q(l), k) / D") + ", Eq(q(l), mean(g(l)**2) * g(l))", *BY_LABEL),
    ),
    "a sum of means before an outer product": (
        text(LABELLED.format(update="outer(g(l), k) * total(mean(g(l)**2)) / D / 4"), *BY_LABEL),
        text(LABELLED.format(update="outer(g(l) * total(mean(g(l)**2)), k) / D / 4"), *BY_LABEL),
    ),
}


@pytest.mark.long_cases(
    "a mean before an outer product, and decay",
    "a mean with its time before an outer product",
    "cases of time before an outer product, and in a sum",
    "a size in the start of weights with momentum",
    "a transpose in the start of weights with momentum",
)
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_other_words_have_the_same_numbers(case):
    one, two = map(solved, CASES[case])
    assert one.exact and two.exact and any(map(any, one.observables))
    assert same_numbers(one, two, 1e-10) == ""


NONLINEAR = {
    "a size outside a history in a nonlinear law": (
        "Eq(x(0), n), Eq(x(t + 1), tanh(x(t)) + S(t) @ x(t) / sqrt(N)), Eq(S(0), F), "
        "Eq(S(t + 1), S(t) + outer(x(t), n) / sqrt(D))",
        "Eq(x(0), n), Eq(x(t + 1), tanh(x(t)) + y(t)), Eq(y(t), S(t) @ x(t) / sqrt(N)), Eq(S(0), F), "
        "Eq(S(t + 1), S(t) + outer(x(t), n) / sqrt(D))",
    ),
    "a size outside an outer product in a nonlinear law": (
        "Eq(x(0), n), Eq(x(t + 1), tanh(x(t)) + (outer(n, n) @ x(t)) / N)",
        "Eq(x(0), n), Eq(x(t + 1), tanh(x(t)) + mean(n * x(t)) * n / nu)",
    ),
    "a size inside a product with a nonlinear law": (
        "Eq(x(0), n), Eq(x(t + 1), F @ (tanh(x(t)) / sqrt(D) + n / sqrt(D)))",
        "Eq(x(0), n), Eq(y(t), tanh(x(t)) + n), Eq(x(t + 1), F @ y(t) / sqrt(D))",
    ),
}


@pytest.mark.long_cases("a size outside a history in a nonlinear law", "a size inside a product with a nonlinear law")
@pytest.mark.slow
@pytest.mark.parametrize("case", NONLINEAR)
def test_other_words_have_the_same_sampled_numbers(case):
    """The same random numbers are drawn for the same fields, or the errors cover the difference."""
    head = HEAD.replace("S, Q = weights", 'F = gaussian("F", D, D)\nS, Q = weights')
    made = [
        head.replace("EQUATIONS", e).replace("OBSERVE", "'a': mean(x(t)**2)").replace("PROBE", "")
        for e in NONLINEAR[case]
    ]
    one, two = map(solved, made)
    assert one.observables[0][-1] > 0.01
    assert same_numbers(one, two, 1e-9) == ""


SIGNS = {
    "Eq(x(t), B @ (A @ n) / D)": ("nu = 0", "domain=nonnegative", "the size of N over that of the first sector is 0"),
    "Eq(x(t), goe('Q', D, variance=c) @ n)": ("c = -1", "", "the variance of Q is -1"),
    "Eq(x(t), normal('q', D, scale=sqrt(c)) + n)": ("c = -1", "", "the scale of q is not a finite number"),
}


@pytest.mark.parametrize("equation", SIGNS)
def test_a_size_a_variance_or_a_scale_that_cannot_be_is_refused(equation):
    """The theory has no root of a variance, and would go on with a negative one."""
    setting, domain, reason = SIGNS[equation]
    name, value = setting.split(" = ")
    made = text(equation, "'a': mean(x(t)**2)")
    lines = [
        f"{name} = parameter({name!r}, default={value}, {domain})" if line.startswith(f"{name} = ") else line
        for line in made.splitlines()
    ]
    with pytest.raises(Refused, match=reason):
        solved("\n".join(lines))


def test_parts_of_weights_that_grow_differently_are_refused():
    with pytest.raises(Refused, match="the updates of V, W: the same matrix enters W both as"):
        training_level(text(MOMENTUM.format(start="E", more="sqrt(D) * E", **SMALL), *TRAINED))


# a mean taken at one time, in the probed matrix

GROWN = "Eq(x(0), n), Eq(x(t + 1), x(t) + {law})"
LAWS = {"linear": "M @ x(t) / 2", "nonlinear": "2 * tanh(y(t)) / 3), Eq(y(t), M @ x(t)"}


@pytest.mark.long_cases("nonlinear")
@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_a_mean_at_one_time_weighs_the_spike(law):
    """One spike of strength a along n, in a matrix that has seen n, pulls an eigenvalue to a + 1 / a."""
    observe = "'a': mean(x(t)**2), 'b': mean(x(t) * x(t - 1))"
    close = 1e-9 if law == "linear" else 1e-4  # of a sampled outlier the bias is taken off, to first order
    for coefficient, series, late in (("mean(x(T)**2)", 0, 0), ("mean(x(T - 1) * x(T - 2))", 1, 1)):
        matrix = f"M + 2 * {coefficient} / D * outer(n, n)"
        found = solved(text(GROWN.format(law=LAWS[law]), observe, matrix), path=True)
        strengths = [0.0] * late + [2 * a for a in found.observables[series]]
        path = found.spectra[0].path
        for time in range(1, 4):
            expected = [strengths[time] + 1 / strengths[time]] if strengths[time] > 1 else []
            assert path[time] == pytest.approx(expected, abs=close)
        assert list(found.spectra[0].outliers) == pytest.approx(list(path[3]), abs=close)


REFUSED = {
    "mean(x(t)**2)": "which uses x at t; a coefficient is taken at T, T - 1, ..., or at 0",
    "mean(x(2)**2)": "which uses x at 2; a coefficient is taken at T, T - 1, ..., or at 0",
    "mean(x(0) * x(T))": "from the same end",
}


@pytest.mark.parametrize("coefficient", REFUSED)
def test_other_times_in_the_probed_matrix_are_refused(coefficient):
    with pytest.raises(Refused) as caught:
        solved(text(GROWN.format(law=LAWS["linear"]), "'a': mean(x(t)**2)", f"M + {coefficient} / D * outer(n, n)"))
    assert REFUSED[coefficient] in str(caught.value)


# what vanishes


@pytest.mark.slow
def test_a_field_without_a_source_is_zero():
    """No variable drives it: its rows have no entries at all."""
    equations = "Eq(x(t), x(t - 1)), Eq(y(t), past_sum(lambda s: x(s), t)), Eq(S(0), M), "
    equations += "Eq(S(t + 1), S(t) + outer(x(t), x(t)) / D)"
    found = solved(text(equations, "'a': mean(x(t)**2), 'b': mean(y(t)**2)", "S(T)"))
    assert found.observables == ((0.0,) * 4,) * 2
    assert exact_observables(text(equations, "'a': mean(x(t)**2), 'b': mean(y(t)**2)")) == found.observables
    assert found.spectra[0].edges == ((-2.0, 2.0),) and not found.spectra[0].outliers


def test_a_law_whose_terms_cancel_is_zero():
    """Nothing is left of the rule, and nothing acts on the sites of its sector."""
    seen = "'a': mean(h(t)**2), 'b': mean(h(t) * h(t - 2)), 'c': mean(x(t)**2)"
    cancelled = text("Eq(h(t), h(t - 1) / 2 - h(t - 1) / 2), Eq(x(t), n)", seen)
    a, b, c = solved(cancelled).observables
    assert exact_observables(cancelled) == ((0.0,) * 4, (0.0,) * 4, (1.0,) * 4)
    assert (a, b[2:], c) == ((0.0,) * 4, (0.0,) * 2, (1.0,) * 4)
    assert np.isnan(b[:2]).all()  # before the lag there is none


@pytest.mark.long
@pytest.mark.slow
def test_a_coupling_at_zero_is_the_term_left_out():
    """M^3 has the cubes of the semicircle for eigenvalues; its density diverges at zero, which no curve says here."""
    c, D = parameter("c", default=0.0), sectors("D")
    M, Q = goe("M", D), goe("Q", D)
    found = derive.load(Model((c,), probe=spectrum(M @ M @ M + c * M @ Q @ M))).solve()
    assert found.diagnostics.bulk.way == "responses"
    (layer,) = found.layers
    np.testing.assert_allclose(layer.bulk_edges, [[-8, 8]], rtol=1e-9)
    np.testing.assert_allclose(layer.moments[:5], [1, 0, 5, 0, 132], atol=1e-9)
    x = np.array([-7.0, -1.0, 1e-3, 0.2, 5.0])
    root = np.cbrt(x)
    np.testing.assert_allclose(layer.density(x), np.sqrt(4 - root**2) / (2 * np.pi) / (3 * root**2), rtol=1e-7)


def test_a_coupling_at_zero_leaves_the_semicircle():
    c, D = parameter("c", default=0.0), sectors("D")
    M, Q = goe("M", D), goe("Q", D)
    found = derive.load(Model((c,), probe=spectrum(M + c * Q @ M @ Q))).solve()
    np.testing.assert_allclose(found.layers[0].bulk_edges, [[-2, 2]], rtol=1e-9)
