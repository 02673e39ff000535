"""One fact of the theory for each of several small parts of the engine, which larger tests pass through unnoticed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from derive import Eq, Model, field, goe, normal, parameter, sectors, spectrum, training_clock, trait, whole_positive
from derive.algebra.degrees import MOST_ORDERS, PRIME, Expansion, NoExpansion
from derive.algebra.nodes import Z
from derive.algebra.sites import SiteAverage, around_averages, at_source
from derive.equations.history import _reached
from derive.program.module import _demands_in_time
from derive.program.text import Names, PlainNumpyText
from derive.stages.expand import expand_declaration
from numerics.outliers.overlaps import _spanned
from numerics.outliers.panels import Interval, Panel, crossings
from numerics.simulation.samples import _in_span
from numerics.training import trained

D = sectors("D")
A, B, C = (goe(name, D) for name in "ABC")
G, R = sp.symbols("G R")
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x, v = field("x", D, t), normal("v", D)


# -- the probed matrix


def spectral_fields(matrix) -> int:
    """How many vectors the resolvent of a matrix is made of."""
    return len(expand_declaration(Model((), [], probe=spectrum(matrix))).probes[0].fields)


def test_only_multiples_of_one_matrix_share_the_vector_that_they_make():
    """(A + B)^2 takes psi, (A + B) psi, and A and B times either; another sum of the same first term takes its own."""
    assert spectral_fields((A + B) @ (A + B)) == spectral_fields(3 * (A + B) @ (A + B)) == 6
    assert spectral_fields((A + B) @ (A + B) + 2 * (A + B) @ (A + B)) == 6
    assert spectral_fields((A + B) @ (A + B) + (A + C) @ (A + C)) == 10


# -- averages over sites


def test_an_expression_with_two_averages_is_expanded_around_them():
    s = sp.sympify(trait("s", D, values=[1, 2])())
    one, two = SiteAverage(1 / (Z - s)), SiteAverage(s / (Z - s))
    assert around_averages(sp.expand, (1 + one) * (1 + two)) == 1 + one + two + one * two
    with_source = SiteAverage(1 / (Z - s + R)) * SiteAverage(s / (Z - s + R))
    assert at_source(G + with_source + R, {R: sp.S.Zero}) == G + one * two


# -- degrees of a curve


def test_sums_of_products_of_residues_fit_into_whole_numbers_of_64_bits():
    assert MOST_ORDERS * (PRIME - 1) ** 2 < 2**63


def test_a_coefficient_that_is_not_rational_has_no_residue():
    with pytest.raises(NoExpansion, match="not rational"):
        Expansion.of([Z * G - 1 - G**2, Z * R - 1 - sp.sqrt(2) * R**2], [G, R])


# -- what is asked of parameter values


def test_every_coefficient_in_time_must_be_finite():
    text = PlainNumpyText(Names(), {})
    model = Model((T,), [Eq(x(0), v), Eq(x(t + 1), x(t) / (t - 1) + v / (t - 2))])
    assert len(_demands_in_time(model, text)) == 2


# -- histories of weights


def test_what_is_added_to_weights_reaches_those_that_depend_on_them_through_others():
    """U(t+1) = U + dyad, V(t+1) = V + U, W(t+1) = W + V: a dyad is in W two steps later. X depends on none of them."""
    zero, one = sp.S.Zero, sp.S.One
    matrix = [[one, zero, zero, zero], [one, one, zero, zero], [zero, one, one, zero], [zero, zero, zero, one]]
    assert _reached(matrix, [one, zero, zero, zero], [zero] * 4) == [True, True, True, False]


# -- zeros outside the bulk


def test_a_function_that_vanishes_like_one_over_z_is_zero_at_infinity():
    upwards = Panel(Interval(1.0, np.inf, 1.0), 0.0, 1.0, np.array([0.5, -0.5]))
    assert crossings(lambda z: 1 / z, [0.0], [upwards]) == [[np.inf]]


# -- spans of spikes


def test_theory_and_simulation_count_spikes_that_are_nearly_dependent_alike():
    """Two unit vectors at an angle of 2e-6: singular values with a ratio of 1e-6, which count as one and a half."""
    spikes = np.eye(9)[:, :2] @ np.array([[1.0, np.cos(2e-6)], [0.0, np.sin(2e-6)]])
    _, counted = _in_span(spikes, np.eye(9)[:, :2])
    assert counted == pytest.approx(1.5, rel=1e-3)
    assert np.sum(_spanned(spikes.T @ spikes)[2]) == pytest.approx(counted, rel=1e-3)


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
