"""Which vectors over sites a sampled pass remembers together."""

from __future__ import annotations

import sympy as sp

from derive import (
    Eq,
    Model,
    axis,
    field,
    fields,
    gaussian,
    mean,
    normal,
    parameter,
    sectors,
    total,
    training_clock,
    whole_positive,
)
from derive.equations.needs import Needs
from derive.pipeline import derive_model
from derive.program.sites import Sharing

D = sectors("D")
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x, y = fields("x y", D, t)
v = normal("v", D)


def test_vectors_that_one_matrix_acts_on_are_remembered_together_also_where_a_fresh_one_does():
    h, j, k = fields("h j k", D, t)
    W, X = gaussian("W", D, D), gaussian("X", D, D, fresh=t)
    equations = [
        Eq(x(0), v),
        Eq(x(t + 1), sp.tanh(h(t) + j(t)) + k(t)),
        Eq(y(t), sp.sin(x(t))),
        Eq(h(t), W @ x(t) / sp.sqrt(D)),
        Eq(j(t), W @ y(t) / sp.sqrt(D)),
        Eq(k(t), X(t) @ x(t) / sp.sqrt(D)),
    ]
    layout = derive_model(Model((T,), equations, {"q": mean(x(t) ** 2)})).layout
    held = [{str(one) for one in span.fields} for span in Sharing(layout, Needs()).spans if not span.fresh]
    assert {"x", "y"} in held


def test_what_a_fixed_matrix_acts_on_is_kept_and_what_a_fresh_one_acts_on_is_not():
    """A fixed matrix correlates products of all times, so that the past of its arguments is needed."""
    a, b, h, k = fields("a b h k", D, t)
    W, X = gaussian("W", D, D), gaussian("X", D, D, fresh=t)
    equations = [
        Eq(x(0), v),
        Eq(a(t), sp.tanh(x(t))),
        Eq(b(t), sp.sin(x(t))),
        Eq(h(t), W @ a(t) / sp.sqrt(D)),
        Eq(k(t), X(t) @ b(t) / sp.sqrt(D)),
        Eq(x(t + 1), sp.tanh(h(t) + k(t))),
    ]
    kept = {str(field) for field in Sharing(derive_model(Model((T,), equations)).layout, Needs()).kept}
    assert "a" in kept and "b" not in kept


def test_a_multiple_has_the_times_the_labels_and_the_sector_of_its_vector():
    """Twice x is a multiple of x; twice x for each label, twice v or x(0) and what has a start are not."""
    a = axis("a", 3)
    b, d, e, f = field("b", D, t), field("d", D, t, a), field("e", D, t), field("f", D, t)
    s, h = field("s", D), fields("h i j k", D, t)
    W = gaussian("W", D, D)
    equations = [
        Eq(x(0), v),
        Eq(x(t + 1), sp.tanh(sum(one(t) for one in h) + total(field("l", D, t, a)(t), a))),
        Eq(b(t), 2 * x(t)),
        Eq(d(t), 2 * x(t)),
        Eq(e(t), 2 * v),
        Eq(f(0), v),
        Eq(f(t + 1), 2 * x(t + 1)),
        Eq(s, 2 * x(0)),
        Eq(h[3](t), W @ s / sp.sqrt(D)),
        *(Eq(one(t), W @ of(t) / sp.sqrt(D)) for one, of in zip(h, (b, e, f), strict=False)),
        Eq(field("l", D, t, a)(t), W @ d(t) / sp.sqrt(D)),
    ]
    sharing = Sharing(derive_model(Model((T,), equations, {"q": mean(x(t) ** 2)})).layout, Needs())
    roots = {str(one.field): sharing.root(one.field) for one in sharing.layout.fields}
    assert (str(roots["b"][0]), roots["b"][1]) == ("x", 2)
    assert all(roots[name][1] is None for name in ("x", "d", "e", "f", "s"))


def test_a_drawn_vector_that_a_memory_contains_shares_sites_with_its_product():
    """W x contains R[x, W^T w] w, so that w and W x are correlated at a site."""
    w, h, j, W = normal("w", D), field("h", D, t), field("j", D, t), gaussian("W", D, D)
    equations = [
        Eq(x(0), v),
        Eq(h(t), W @ x(t) / sp.sqrt(D)),
        Eq(j(t), W.T @ w / sp.sqrt(D)),
        Eq(x(t + 1), sp.tanh(h(t) + j(t))),
    ]
    layout = derive_model(Model((T,), equations, {"q": mean(x(t) ** 2)})).layout
    assert {(str(m.target), str(m.on)) for m in layout.saddle.memories} == {("h", "w")}
    sharing = Sharing(layout, Needs())
    assert sharing.group_of(w) == sharing.group_of(h) == sharing.group_of(x)
