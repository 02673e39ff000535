"""Cycles of blocks, order in time and delays: graphs drawn at random against their definitions."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import pytest
import sympy as sp

from derive import (
    Eq,
    Model,
    fields,
    goe,
    mean,
    normal,
    parameter,
    past_sum,
    positive,
    sectors,
    training_clock,
    whole_positive,
)
from derive.algebra.nodes import Z
from derive.algebra.words import Letter
from derive.equations.gaussian_laws import Laws
from derive.equations.mixed_overlaps import _SampledSites
from derive.errors import DeclarationError
from derive.pipeline import derive_model
from derive.records.probe import MAP
from derive.stages.expand import expand_declaration
from derive.stages.order import order_in_time
from derive.stages.pencil import _components, _critical_points, _cyclic_order, _inverted

D = sectors("D")
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
A, B, v, w = goe("A", D), goe("B", D), normal("v", D), normal("w", D)
G = sp.Symbol("G")


@pytest.mark.parametrize("seed", range(8))
def test_components_are_sets_that_reach_each_other(seed):
    chance = random.Random(seed)
    into = {i: {j for j in range(6) if chance.random() < 0.25} for i in range(6)}
    reach = {i: set(into[i]) for i in into}
    for _ in into:
        reach = {i: reach[i].union(*(into[j] for j in reach[i])) for i in into}
    found = _components(into)
    both = {frozenset(j for j in into if j in reach[i] and i in reach[j]) for i in into if i in reach[i]}
    assert {frozenset(c) for c in found} == both and len(found) == len(both)
    for component in found:
        cycle = _cyclic_order(component, into)
        inner = [into[i] & set(component) for i in component]
        assert (cycle is None) == any(len(following) != 1 for following in inner)
        if cycle is not None:
            assert sorted(cycle) == component
            assert all(b in into[a] for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


@pytest.mark.parametrize(
    ("product", "inverse", "critical"),
    [
        (G, MAP + 1 / MAP, [1, -1]),  # a spike beside a GOE matrix has s = G: z = s + 1/s, where |s| = 1 at the edges
        (2 * G, MAP / 2 + 2 / MAP, [2, -2]),
        (Z - G, MAP + 1 / MAP, [1, -1]),  # z - G is 1/G
        (G**2, None, []),
    ],
)
def test_a_scalar_map_is_inverted_and_its_critical_values_are_edges(product, inverse, critical):
    relation, found, points = _inverted((Z * G - 1 - G**2,), (G,), product)
    for g in (sp.Rational(1, 3), sp.Rational(-1, 5)):
        assert sp.expand(relation.subs({MAP: product}).subs({Z: g + 1 / g, G: g})) == 0
    assert (found is None) == (inverse is None) and set(points) == set(critical)
    if inverse is not None:
        assert sp.cancel(found - inverse) == 0
        edges = {found.subs(MAP, point) for point in points}
        assert edges == {2, -2}


def test_critical_values_hold_parameters():
    k = parameter("k", default=2.0, domain=positive)
    assert set(_critical_points(MAP + k / MAP)) == {sp.sqrt(k), -sp.sqrt(k)}
    assert _critical_points(3 * MAP + 1) == []


def test_fields_at_one_time_are_ordered_by_what_they_need():
    """Whatever the order of the declaration, each field follows those it needs at the same time."""
    a, b, c, d = fields("a b c d", D, t)
    equations = {
        a: [Eq(a(0), v), Eq(a(t + 1), A @ d(t))],
        b: [Eq(b(t), a(t) + c(t - 1))],
        c: [Eq(c(t), b(t) * 2 + w)],
        d: [Eq(d(t), c(t) + past_sum(lambda s: b(s), t) + a(t) * mean(b(t) ** 2))],
    }
    for chosen in itertools.permutations(equations):
        system = expand_declaration(Model((T,), [e for one in chosen for e in equations[one]]))
        order = order_in_time(system)
        place = {str(field): k for k, field in enumerate(order.order)}
        assert place["a"] < place["b"] < place["c"] < place["d"]
        for edge in order.edges:
            if edge.lag == 0 and str(edge.source) in place:
                assert place[str(edge.source)] < place[str(edge.target)]


@pytest.mark.parametrize(
    ("delays", "expected"),
    [({}, {("b", "a"): 0, ("c", "a"): 0, ("a", "c"): 1, ("a", "a"): 0, ("b", "c"): 1}), ({"b": 2}, {("c", "a"): 2})],
)
def test_a_response_is_delayed_by_the_shortest_way(delays, expected):
    a, b, c = fields("a b c", D, t)
    system = expand_declaration(
        Model((T,), [Eq(a(0), v), Eq(a(t + 1), A @ c(t)), Eq(b(t), a(t - delays.get("b", 0))), Eq(c(t), 3 * b(t))])
    )
    order = order_in_time(system)
    by_name = {str(f.field): f.field for f in system.training}
    for (left, right), delay in expected.items():
        assert order.delay(by_name[left], by_name[right]) == delay


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        (lambda a, b: b(t), lambda a, b: a(t), True),
        (lambda a, b: b(t) * mean(b(t) ** 2), lambda a, b: A @ a(t), True),
        (lambda a, b: b(t - 1), lambda a, b: a(t), False),
        (lambda a, b: past_sum(lambda s: b(s), t), lambda a, b: a(t), False),
        (lambda a, b: v * mean(b(t) ** 2), lambda a, b: a(t), True),
    ],
)
def test_fields_that_need_each_other_at_one_time_are_refused(first, second, refused):
    a, b = fields("a b", D, t)
    system = expand_declaration(Model((T,), [Eq(a(t), first(a, b)), Eq(b(t), second(a, b))]))
    if refused:
        with pytest.raises(DeclarationError, match="cycle: .* -> "):
            order_in_time(system)
    else:
        assert len(order_in_time(system).order) >= 2


# -- means over sites


@pytest.mark.parametrize("responds", [True, False])
def test_the_mean_of_a_field_and_a_noise_is_a_response(responds):
    """<a b> is C[a, b], <a d/dn> is R[a, n] or its transpose, and two derivatives have none."""
    a, b = fields("a b", D, t)
    sites = SimpleNamespace(
        equations=SimpleNamespace(responds=lambda field, noise: responds and (field, noise) == (a, b))
    )
    sites = _SampledSites(SimpleNamespace(equations=sites.equations, sampled={D: None}), D)
    weight = sp.Symbol("c")

    def found(own, thing):
        return sites._weighted_mean(weight, SimpleNamespace(kind=own[0], field=own[1]), thing)

    assert found(("C", a), ("C", b)) == [(weight, Letter.correlation(a, b))]
    assert found(("C", b), ("C", a)) == [(weight, Letter.correlation(b, a))]
    assert found(("R", a), ("R", b)) == []
    assert found(("C", a), ("R", b)) == ([(weight, Letter.response(a, b))] if responds else [])
    assert found(("R", b), ("C", a)) == ([(weight, Letter.response(a, b).T)] if responds else [])
    assert found(("C", b), ("R", a)) == [] == found(("R", a), ("C", b))


def test_correlations_that_are_asked_for_pair_their_laws_at_all_times():
    """C[y, y] needs <y(t) y(s)> beyond equal times; R[y, h] is a mean of a slope."""
    h, x, y = fields("h x y", D, t)
    model = Model((T,), [Eq(x(0), v), Eq(h(t), A @ x(t)), Eq(x(t + 1), h(t) / 2), Eq(y(t), sp.tanh(h(t)))])
    layout = derive_model(model).layout
    of = {str(f.field): f.field for f in layout.fields}
    assert Laws(layout, (Letter.response(of["y"], of["h"]),), ()).meetings == {}
    ((pair, together),) = Laws(layout, (Letter.correlation(of["y"], of["y"]),), ()).meetings.items()
    assert pair[0] is pair[1] and not together
    equal = Model((T,), model.equations, {"q": mean(y(t) ** 2), "far": mean(y(t) * x(t))})
    ((_, together),) = Laws(derive_model(equal).layout, (), ()).meetings.items()
    assert together
