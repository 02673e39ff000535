"""Conjugates of correlations vanish by the generating function of a site, and not where it depends on its sources."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from derive import Eq, Model, field, goe, normal, outer, parameter, sectors, spectrum, training_clock, whole_positive
from derive.errors import DeclarationError
from derive.inputs.loading import load_model
from derive.pipeline import derive_model
from derive.records.system import ElementwiseRule
from derive.stages.conjugates import find_conjugates


@pytest.fixture(scope="module")
def saddle():
    return derive_model(load_model("coupled_spikes")).saddle


def changed(saddle, name, law):
    """The saddle point with another law of one field at equal times."""
    fields = tuple(
        replace(f, rule=ElementwiseRule(law(f.field(f.time)))) if f.field.name == name else f
        for f in saddle.system.fields
    )
    return replace(saddle, system=replace(saddle.system, fields=fields))


def test_each_integral_is_one_and_correlations_have_no_conjugates(saddle):
    found = find_conjugates(saddle)
    assert {integral.value for integral in found.integrals} == {1}
    assert {f.name for integral in found.integrals for f in integral.fields} == {"phi", "xi", "g", "chi"}
    assert all(c.vanishes for c in found.all if not c.response)
    assert not any(c.vanishes for c in found.all if c.response)


def test_a_field_that_depends_on_itself_at_one_time_breaks_the_normalisation(saddle):
    with pytest.raises(DeclarationError, match="generating function of a site of N1 depends on its sources"):
        find_conjugates(changed(saddle, "g", sp.tanh))


def test_the_conjugate_of_a_correlation_is_a_mean_of_response_fields(saddle):
    of = {(c.a.name, c.b.name): c.terms for c in find_conjugates(saddle).all if not c.response}
    ((scale, left, right),) = of["phi", "phi"]
    sigma, alpha = (p for name in ("sigma", "alpha") for p in saddle.system.model.parameters if p.name == name)
    assert (left.name, right.name) == ("chi", "chi")
    assert sp.simplify(scale + alpha * sigma**2 / 2) == 0


def test_there_is_one_integral_for_each_sector_and_time_at_which_equations_differ():
    """Of fields with two starting values: the probe, later times, each of the first, and what has no time."""
    T = parameter("T", default=4, domain=whole_positive)
    D = sectors("D")
    t = training_clock("t", steps=T)
    x, y = field("x", D, t), field("y", D)
    g, W = normal("g", D), goe("W", D)
    equations = [Eq(y, 2 * g), Eq(x(0), y), Eq(x(1), g), Eq(x(t + 1), W @ x(t) + x(t - 1))]
    found = find_conjugates(derive_model(Model((T,), equations, probe=spectrum(W + outer(y, y) / D))).saddle)
    timed = [one for one in found.integrals if any(f.timed for f in one.fields)]
    assert len(timed) == 3 and {one.value for one in found.integrals} == {1}
    assert sum(y in one.fields for one in found.integrals) == 1


@pytest.mark.parametrize("name", ["coupled_spikes", "anti_hebbian", "extensive_two_layer", "deep_linear"])
def test_products_in_the_effective_action_are_those_of_the_averaged_action(name):
    """Each bracket of the average is replaced by its mean: i size R for a field and a response field."""
    matrix = derive_model(load_model(name)).first
    found = matrix.record("conjugates")
    base = next(s for s in found.system.sectors if s.ratio == 1)
    listed = sum(p.coefficient * response(p.first) * response(p.second) for p in found.products)
    vanishing = {tuple(map(str, r.args[:2])) for r in found.saddle.vanishing}
    expected = sp.S.Zero
    for term in matrix.record("average").terms:
        pairs = []
        for legs in (term.left, term.right):
            if len({leg.hatted for leg in legs}) == 2:
                a, j = sorted(legs, key=lambda leg: leg.hatted)
                pairs.append((a.field, j.field))
        if len(pairs) == 2 and not {(str(a), str(j)) for a, j in pairs} <= vanishing:  # both vanish by causality
            sizes = sp.Mul(*(a.sector for a, _ in pairs))
            expected -= term.weight * sizes / base * response(pairs[0]) * response(pairs[1])
    ratios = {s: s.ratio * base for s in found.system.sectors}
    assert listed != 0 and sp.simplify((expected - listed).xreplace(ratios)) == 0


def test_conjugates_of_responses_make_the_effective_action_stationary(saddle):
    found = find_conjugates(saddle)
    action = sum(p.coefficient * response(p.first) * response(p.second) for p in found.products)
    for c in found.all:
        if c.response:
            value = c.a.sector.ratio * sum(scale * response((a, j)) for scale, a, j in c.terms)
            assert sp.simplify(sp.diff(action, response((c.a, c.b))) - value) == 0


def response(pair):
    return sp.Symbol(f"R[{pair[0]},{pair[1]}]")
