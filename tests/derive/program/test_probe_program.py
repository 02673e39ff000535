"""The program of a probed matrix: pieces of its coefficients, and diagonals that are sampled."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from derive import (
    Eq,
    Model,
    diag,
    field,
    goe,
    normal,
    parameter,
    sectors,
    spectrum,
    training_clock,
    trait,
    whole_positive,
)
from derive.codegen import solver_files
from derive.pipeline import Derivation
from derive.program.at_sites import _gathered
from derive.program.probe import _breaks, _pieces, _sampled, _steady
from derive.records.method import ClosureKind
from derive.stages.blocks import assemble_blocks
from derive.stages.probe import project_probe

D = sectors("D")
A = goe("A", D)
a, b = sp.symbols("a b", real=True)
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x = field("x", D, t)
v = normal("v", D)
k = parameter("k", default=0.5)


def test_what_a_function_may_be_between_its_kinks():
    assert set(_pieces(sp.Abs(a) + sp.Max(b, 1))) == {a + b, a + 1, b - a, 1 - a}


@pytest.mark.parametrize("steady", [True, False])
def test_what_is_sampled_at_a_time_before_the_last_depends_on_the_number_of_steps(steady):
    m = field("m", D) if steady else field("m", D, t)
    at, equation = (m, Eq(m, A @ v)) if steady else (m(T - 1), Eq(m(t), A @ x(t)))
    model = Model((T,), [Eq(x(0), v), Eq(x(t + 1), x(t) / 2), equation], probe=spectrum(A + diag(sp.tanh(at))))
    derivation = Derivation(model)
    blocks = assemble_blocks(project_probe(derivation.first.saddle, derivation.order, sampled=True))
    assert _steady(blocks, derivation.layout.clock) == steady


def test_of_what_is_sampled_on_a_diagonal_all_must_be_steady():
    """A field without times beside one before the last step."""
    still, moving = field("still", D), field("moving", D, t)
    equations = [Eq(still, A @ v), Eq(x(0), v), Eq(x(t + 1), x(t) / 2), Eq(moving(t), A @ x(t))]

    def steady(*entries):
        derivation = Derivation(Model((T,), equations, probe=spectrum(A + diag(sp.tanh(sp.Mul(*entries))))))
        return _sampled(project_probe(derivation.first.saddle, derivation.order, sampled=True).sampled[0]).entries[2]

    assert steady(still()) and not steady(moving(T - 1)) and not steady(still(), moving(T - 1))


def test_what_is_sampled_on_a_diagonal_is_taken_at_its_time():
    m = field("m", D, t)
    equations = [Eq(x(0), v), Eq(x(t + 1), x(t) / 2), Eq(m(t), A @ x(t))]
    model = Model((T,), equations, probe=spectrum(A + diag(sp.tanh(m(T - 1)))))
    derivation = Derivation(model)
    chosen = tuple(replace(one, closure=ClosureKind.SAMPLED) for one in derivation.method.sectors)
    vars(derivation)["method"] = replace(derivation.method, sectors=chosen, laws=None)
    assert "('m',), lambda p: (p.T - 1,)" in solver_files(model, derivation)["training.py"]


def test_terms_over_sites_are_gathered_by_what_gives_fewer_terms():
    """Functions of traits with one factor are put together first, because their difference would lose digits."""
    one, two = (trait(name, D, values=[1, 2]) for name in ("one", "two"))
    f, g = sp.sympify(one()), sp.sympify(two())
    assert _gathered(a * f + b * f + a * b * f, [one, two]) == f * (a + b + a * b)
    assert _gathered(a * f**2 - a * g**2, [one, two]) == a * (f - g) * (f + g)


@pytest.mark.parametrize(
    ("function", "places"),
    [
        (lambda v: sp.Max(2 * v - 3, 0), {sp.Rational(3, 2)}),
        (lambda v: sp.Abs(v + k), {-k}),
        (lambda v: sp.Heaviside(1 - 4 * v) + sp.sign(v), {sp.Rational(1, 4), 0}),
        (lambda v: sp.Min(v, 2 - v, 5), {1, 5, -3}),
        (lambda v: sp.Piecewise((v, v < 2), (1, v > 7), (0, True)), {2, 7}),
        (lambda v: sp.Abs(sp.Abs(v) - 2), {0, 2, -2}),
        (lambda v: sp.Max(v**2 - 1, 0) + v, set()),
    ],
)
def test_a_function_of_a_trait_has_its_kinks_and_jumps_where_linear_expressions_vanish(function, places):
    value = trait("value", D, values=[-1, 1])
    found = _breaks([sp.sympify(function(value()))], value)
    assert {sp.simplify(place) for place in found} == places
