"""Numbers at which something cancels, vanishes or is very large, each as the class that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Abs, sqrt

import derive
from derive import (
    Eq,
    Model,
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
from derive.errors import DeclarationError, NumericalError
from derive.pipeline import derive_model as derivation_of
from derive.support.plain_words import in_plain_words
from numerics.bulk.branch import Branch
from numerics.outliers.finding import cycle_spectrum
from numerics.outliers.linear import long_eigenvalues, resolution
from numerics.solver import report_singular

b = parameter("b", default=0.4)
c = parameter("c", default=1.5)
nu = parameter("nu", default=1.5, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
W0 = gaussian("W0", N, D, variance=1 / D)
u, v = normal("u", N), normal("v", D)


def test_eigenvalues_of_entries_that_differ_by_many_orders():
    """By hand, the eigenvalues of the lower right corner alone, and their errors: entries are known to 2e-16."""
    matrix = np.array([[1e24, 1e24, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    values, moved = long_eigenvalues(matrix)
    assert values.real == pytest.approx([1e24, 3, 1], rel=1e-14)
    assert np.all(moved < 1e-14 * np.abs(values))
    assert resolution(matrix) > 3 > resolution(matrix[1:, 1:])
    rounded = np.outer([1e8, 1.0], [1e8, 1.0 / 3])  # of rank one, but for rounding
    values, moved = long_eigenvalues(rounded)
    assert abs(values[1]) <= 10 * moved[1]


def test_eigenvalues_that_are_rounding_are_not_mapped_to_outliers():
    """Repeated spikes make the matrix singular; 1e-50 in place of zero asks for the bulk at 1e50."""
    block = np.kron(np.array([[5.73, 5.3], [5.3, 0.09]]), np.ones((4, 1))) @ np.kron(np.eye(2), 1.7 ** -np.arange(4.0))
    asked: list[float] = []

    def points(values):
        asked.extend(values)
        return [[] for _ in values]

    spectrum_of = cycle_spectrum(block, points)
    assert spectrum_of is not None
    assert np.sum(np.abs(spectrum_of.values) > 1e-9) == 2
    assert all(s == 0 or abs(s) > 1e-9 for s in asked)


@pytest.mark.slow
def test_outliers_at_very_large_parameters_are_right_or_not_given():
    """Small outliers beside one of 1e24: no rounding is taken for an outlier, and none is lost to it."""
    m = derive.load("coupled_spikes")
    assert m.solve(S=2, kappa=1e6).outliers == pytest.approx([2.53125e24], rel=1e-6)
    assert m.solve(S=2, theta=1e12).outliers == pytest.approx([1.5625e47, 1e24], rel=1e-6)
    assert m.solve(S=2, sigma=1e6).outliers[1] == pytest.approx(m.solve(S=2, sigma=1e3).outliers[1], rel=1e-3)


def _trained(kept):
    h, g, W = field("h", N, t), field("g", D, t), weights("W", N, D, t)
    return Model(
        parameters=(b, c, nu, T),
        equations=[
            Eq(h(t), W(t) @ v),
            Eq(g(t), W(t).T @ h(t)),
            Eq(W(0), W0),
            Eq(W(t + 1), kept * W(t) + c / D * outer(h(t), v)),
        ],
        probe=spectrum(W(T).T @ W(T)),
    )


@pytest.mark.slow
def test_weights_that_keep_nothing_have_spikes_alone():
    """At b = 1 W(T) is c/D outer(h, v) with <h^2> = c^2: one outlier, c^4 nu, however close to 1 the number b is."""
    m = derive.load(_trained(1 - b))
    for near in (1, 1 - 1e-9):
        assert m.solve(b=near, T=2).outliers == pytest.approx([1.5**4 * 1.5], rel=1e-6)


@pytest.mark.slow
def test_an_outlier_at_zero_has_no_left_vector():
    """At c = -1 one step takes v out of W: an eigenvalue zero below the bulk, whose vector W maps to nothing."""
    found = derive.load(_trained(1)).solve(c=-1, T=1, overlaps=True)
    assert found.outliers == pytest.approx([0.0], abs=1e-12)
    assert found.overlaps["right"] == pytest.approx([1.0], abs=1e-9)
    assert np.isnan(found.overlaps["left"]).all()


@pytest.mark.slow
def test_a_bulk_that_cancels():
    """W^T W - W0^T W0 has two eigenvalues besides zero: those of [[c^2 nu, c sqrt(nu)], [c sqrt(nu), 0]]."""
    W = W0 + c / D * outer(u, v)
    m = derive.load(Model(parameters=(b, c, nu), probe=spectrum(W.T @ W + b * W0.T @ W0)))
    by_hand = np.linalg.eigvalsh([[1.5**3, 1.5**1.5], [1.5**1.5, 0.0]])
    assert np.sort(m.solve(b=-1).outliers) == pytest.approx(by_hand, rel=1e-9)
    near = m.solve(b=-0.999)
    assert near.bulk_edges == pytest.approx(1e-3 * (np.sqrt(1.5) + np.array([[-1, 1]])) ** 2, rel=1e-9)
    assert np.sort(near.outliers) == pytest.approx(by_hand, rel=1e-2)


def test_responses_that_rounding_hides_are_found_to_many_digits():
    """The same bulk: G = 1/z, and equations whose terms cancel, so that float64 sees no error in wrong numbers."""
    W = W0 + c / D * outer(u, v)
    m = derive.load(Model(parameters=(b, c, nu), probe=spectrum(W.T @ W + b * W0.T @ W0)))
    branch: Branch = m.solver.branch({"b": -1.0, "c": 1.5, "nu": 1.5}, m.solver.matrices[0], {})
    z = -(10.0 ** -np.arange(1, 8))
    assert branch.resolvent(z) * z == pytest.approx(np.ones(7), rel=1e-8)


def test_what_cannot_be_imported_is_told_without_a_path():
    for line, sentence in (
        ("from derive import nothing_like_it", "derive has no nothing_like_it to import"),
        ("import nothing_like_it", "there is no module nothing_like_it"),
    ):
        with pytest.raises(ImportError) as caught:
            exec(line)
        assert in_plain_words(caught.value) == sentence


def test_numbers_inside_means():
    """mean(1 - v^2) and its kin by hand, with traits and without: a number is no moment of a trait."""
    two = trait("two", D, values=[1, 3])
    observe = {
        "number": mean(1 - v**2 / 2),
        "parameter": mean(v + b),
        "beside_trait": mean(two + 1 + v**2),
        "in_function": 1 / mean(1 + v**2),
    }
    found = derive.load(Model(parameters=(b,), observe=observe)).solve(b=0.25)
    by_hand = {"number": 0.5, "parameter": 0.25, "beside_trait": 4.0, "in_function": 0.5}
    assert {name: found[name].item() for name in observe} == pytest.approx(by_hand, rel=1e-12)


def test_means_beyond_second_moments_of_linear_laws_without_a_probe():
    """By hand: x(1) has variance 1/2, and its moments are those of a normal."""
    x = field("x", D, t)
    equations = [Eq(x(0), v), Eq(x(t + 1), goe("M0", D) @ x(t) / 2 + normal("noise", D) / 2)]
    observe = {"fourth": mean(x(t) ** 4), "first": mean(x(t)), "size": mean(Abs(x(t)))}
    found = derive.load(Model(parameters=(T,), equations=equations, observe=observe)).solve(T=1)
    assert [found[name][1] for name in observe] == pytest.approx([3 / 4, 0, np.sqrt(1 / np.pi)], abs=1e-9)


@pytest.mark.slow
def test_a_random_matrix_whose_variance_vanishes_at_a_ratio_of_sizes():
    """By hand: where its variance (nu - 1)^2 is zero, x(t) = 2^-t start, although <x^2> stands in its covariance."""
    ratio = parameter("ratio", default=1.0, domain=positive)
    base, rows = sectors("base", rows=ratio)
    x, y, A = field("x", base, t), field("y", rows, t), gaussian("A", rows, base, variance=(ratio - 1) ** 2)
    equations = [
        Eq(x(0), normal("start", base)),
        Eq(x(t + 1), x(t) / 2 + A.T @ y(t) / sqrt(base)),
        Eq(y(t), A @ x(t) / sqrt(base)),
    ]
    model = derive.load(Model(parameters=(ratio, T), equations=equations, observe={"square": mean(x(t) ** 2)}))
    assert model.solve(T=3)["square"] == pytest.approx([1, 1 / 4, 1 / 16, 1 / 64])
    # and elsewhere, with that variance s, <x(1)^2> = 1/4 + s nu + s^2 (nu + nu^2)
    assert model.solve(T=1, ratio=3.0)["square"][1] == pytest.approx(1 / 4 + 4 * 3 + 16 * (3 + 9))


@pytest.mark.long
def test_what_training_has_changed():
    """W(T)^T W(T) - W(0)^T W(0) after one step, by hand: [[2 c nu + c^2 nu, c sqrt(nu)], [c sqrt(nu), 0]]."""
    g, W = field("g", N, t), weights("W", N, D, t)
    equations = [Eq(g(t), W(t) @ v), Eq(W(0), W0), Eq(W(t + 1), W(t) + c / D * outer(g(t), v))]
    probe = spectrum(W(T).T @ W(T) - W(0).T @ W(0))
    m = derive.load(Model(parameters=(c, nu, T), equations=equations, probe=probe))
    for rate in (1.5, 0.5):
        by_hand = np.linalg.eigvalsh([[1.5 * rate * (2 + rate), rate * 1.5**0.5], [rate * 1.5**0.5, 0.0]])
        assert np.sort(m.solve(c=rate, T=1).outliers) == pytest.approx(by_hand, rel=1e-9)
    with pytest.raises(DeclarationError, match="the terms of the matrix cancel"):
        Model(parameters=(c, nu, T), equations=equations, probe=spectrum(W(0).T @ W(0) - W0.T @ W0))


def test_singular_systems_are_told():
    with pytest.raises(NumericalError, match="singular at exactly these parameters"), report_singular():
        np.linalg.solve(np.zeros((2, 2)), np.ones(2))


@pytest.mark.slow
@pytest.mark.parametrize("entry", [lambda w: 1 / w, lambda w: w / 4, lambda w: sqrt(w / 8)])
def test_a_constant_field_on_a_diagonal(entry):
    """By hand: w = 2 on all sites, so that K is (G + 2 e e^T) / 2 with |e| = 1: an outlier at (4 + 1)^2 / 4 / 4."""
    E, w, half = gaussian("E", D, D), field("w", D), field("half", D)
    K = diag(entry(w)) @ (E + outer(w, w) / (2 * sqrt(D)))
    equations = [Eq(half, 1), Eq(w, 2 * half)]
    found = derive.load(Model(parameters=(), equations=equations, probe=spectrum(K.T @ K / D))).solve()
    assert found.bulk_edges == pytest.approx(np.array([[0.0, 1.0]]), abs=1e-12)
    assert found.outliers == pytest.approx([25 / 16], rel=1e-9)


def test_a_constant_that_is_divided_by_is_not_zero():
    E, w = gaussian("E", D, D), field("w", D)
    K = diag(1 / w) @ E
    model = Model(parameters=(), equations=[Eq(w, 0)], probe=spectrum(K.T @ K / D))
    with pytest.raises(DeclarationError, match=r"diag\(1/w\), which divides by zero"):
        derive.load(model).solve()


def test_a_field_that_is_never_negative_has_no_pole_below_zero():
    """1/f with f = 1 + v^2 is between 0 and 1, and 1/(f - 2) is not bounded."""
    E, square, f = gaussian("E", D, D), field("square", D), field("f", D)
    equations = [Eq(square, v**2), Eq(f, square + 1)]

    def probed(entry):
        K = diag(entry) @ E
        return Model(parameters=(), equations=equations, probe=spectrum(K.T @ K / D))

    assert derivation_of(probed(1 / f)).probe.differing and derivation_of(probed(1 / (1 + square))).probe.differing
    with pytest.raises(DeclarationError, match=r"diag\(1/\(f - 2\)\), which is unbounded at some sites"):
        derivation_of(probed(1 / (f - 2)))
