"""Labels along several axes: matrices over labels, functions of them in coefficients, the same written differently."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import target_of
from reference_formulas import softmax_network_by_hand as by_hand
from sympy import sqrt, tanh

import derive
from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    entries,
    field,
    fields,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    relabel,
    sectors,
    softmax,
    spectrum,
    total,
    training_clock,
    weights,
    whole_positive,
)
from derive.errors import DeclarationError
from derive.program.exact_run import ExactRun

rate = parameter("rate", default=0.7)
A = parameter("A", default=2, domain=whole_positive)
B = parameter("B", default=3, domain=whole_positive)
T = parameter("T", default=3, domain=whole_positive)
D = sectors("D")
t = training_clock("t", steps=T)
a, b = axis("a", A), axis("b", B)
X = normal("X", D, axes=(a, b))
GIVEN = np.arange(6.0).reshape(2, 3) / 5 - 0.4


# -- softmax over classes, by hand


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"C": 2, "P": 3, "D": 2, "T": 4},
        {"C": 1, "T": 3},  # one class is certain
        {"P": 1, "C": 4, "D": 1, "T": 3},
        {"eta": 3.0, "T": 1},
    ],
)
def test_cross_entropy_over_classes_is_that_by_hand(values):
    m = derive.load(target_of("softmax_network"))
    given, found = m.inputs(values), m.solve(values)
    grams = by_hand.grams(given["x"], given["onehot"], given["eta"], given["T"])
    shares = [by_hand.probabilities(given["x"], S).T for S in grams]
    right = [np.sum(given["onehot"] * share.T) / given["P"] for share in shares]
    np.testing.assert_allclose(found["probability"], shares, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        found["readouts"], [S[given["D"] :, given["D"] :] for S in grams], rtol=1e-11, atol=1e-12
    )
    np.testing.assert_allclose(found["right"], right, rtol=1e-12)


# -- the same, written differently


def learner(
    a=a, b=b, sizes=(A, B), name="push", inlined=False, law=lambda x: x, by_total=False, numbers=False
) -> Model:
    """Vectors along two axes, errors that are functions of a matrix over labels, weights that are probed."""
    start, seen = normal("start", D, axes=a), normal("seen", D, axes=b)
    x, y, push = field("x", D, t, axes=a), field("y", D, t, axes=b), field(name, D, t, axes=(b, a))
    given, W, J = data("given", a, b), weights("W", D, D, t), gaussian("J", D, D)
    error = entries(given) - softmax(mean(x(t) * y(t)), b)
    pushed = error * x(t) if inlined else push(t)
    spike = outer(total(pushed, a), y(t)) if by_total else outer(pushed, y(t))
    equations = [
        Eq(x(0), start),
        Eq(x(t + 1), law(x(t) / 2) + rate * total(error * y(t), b) + W(t) @ x(t) / sqrt(D) / 3),
        Eq(y(t), seen + rate * W(t).T @ seen / sqrt(D)),
        Eq(W(0), J),
        Eq(W(t + 1), W(t) + rate / sqrt(D) * spike),
    ]
    return Model(
        parameters=(rate, *(() if numbers else sizes), T),
        equations=[*equations, *([] if inlined else [Eq(push(t), error * x(t))])],
        observe={"all": each(mean(x(t) * y(t))), "error": total(error**2), "norm": each(mean(x(t) ** 2))},
        probe=spectrum(W(T).T @ W(T) / D),
    )


def told(model: Model, **arrays):
    found = derive.load(model).solve(arrays or {"given": GIVEN}, path=False)
    return np.asarray(found["all"]), found["error"], found["norm"], found.outliers


@pytest.fixture(scope="module")
def plain():
    return told(learner())


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_vectors_along_two_axes_may_be_named_or_written_out(plain):
    assert plain[0].shape == (4, 2, 3) and len(plain[3])
    same(told(learner(inlined=True)), plain)


def test_an_outer_product_sums_over_what_one_side_lacks(plain):
    same(told(learner(by_total=True)), plain)


def test_names_of_axes_say_only_in_which_order_labels_come(plain):
    turned = told(learner(axis("z", A), axis("b", B), name="other"))
    same(turned[1:], plain[1:])
    np.testing.assert_allclose(turned[0], plain[0].transpose(0, 2, 1), rtol=1e-10, atol=1e-12)


def test_an_axis_may_have_a_number_of_labels(plain):
    same(told(learner(axis("a", 2), axis("b", 3), numbers=True)), plain)
    with pytest.raises(derive.errors.ParameterError, match="given has 3 entries along a, but the axis has 2 labels"):
        told(learner(axis("a", 2), axis("b", 3), numbers=True), given=np.ones((3, 3)))


def test_simulation_has_the_same_labels(plain, simulation_seed):
    m = derive.load(learner())
    samples = m.simulate({"given": GIVEN}, size=600, seeds=24, seed=simulation_seed, path=False, overlaps=False)
    for name, theory in zip(("all", "error", "norm"), plain[:3], strict=True):
        draws = np.asarray(samples[name])
        error = draws.std(axis=0, ddof=1) / np.sqrt(24)
        assert np.all(np.abs(draws.mean(axis=0) - theory) < 5.5 * error + 12 / 600), name


@pytest.mark.long
@pytest.mark.slow
def test_laws_are_sampled_along_two_axes(simulation_seed):
    m = derive.load(learner(law=tanh))
    theory = m.solve({"given": GIVEN}, samples=20_000, path=False)
    assert theory.errors is not None
    samples = m.simulate({"given": GIVEN}, size=600, seeds=24, seed=simulation_seed, path=False, overlaps=False)
    for name in ("all", "error"):
        draws = np.asarray(samples[name])
        error = np.hypot(draws.std(axis=0, ddof=1) / np.sqrt(24), theory.errors[name])
        assert np.all(np.abs(draws.mean(axis=0) - theory[name]) < 5.5 * error + 12 / 600), name


# -- matrices over labels


def test_a_vector_meets_itself_along_another_axis():
    c = axis("c", B)
    x = normal("x", D, axes=b)
    other, twice = field("other", D, t, axes=(b, c)), field("twice", D, t, axes=b)
    gram = mean(x * relabel(x, b, c))
    model = Model(
        parameters=(B, T),
        equations=[
            Eq(other(t), gram * relabel(x, b, c)),
            Eq(twice(t), total((2 * gram + 1) * relabel(x, b, c), c)),  # the sum over c of (2 d_bc + 1) x_c
        ],
        observe={"gram": each(gram), "other": each(mean(other(t) ** 2)), "twice": each(mean(twice(t) * x))},
    )
    found = derive.load(model).solve()
    np.testing.assert_allclose(found["gram"], np.eye(3)[None], atol=1e-15)
    np.testing.assert_allclose(found["other"], np.tile(np.eye(3), (4, 1, 1)), atol=1e-15)
    np.testing.assert_allclose(found["twice"], np.full((4, 3), 3.0), atol=1e-14)


def test_a_table_acts_along_one_axis_of_several(simulation_seed):
    c, d = axis("c", 2), axis("d", 4)
    x, V = data("x", b, d), normal("V", D, axes=(c, d))
    (h, summed), back = fields("h summed", D, axes=(b, c)), field("back", D, axes=(c, d))
    model = Model(
        parameters=(B,),
        equations=[Eq(h, x @ V), Eq(summed, total(entries(x) * V, d)), Eq(back, x.T @ h)],
        observe={str(one): each(mean(one**2)) for one in (h, summed, back)},
    )
    given = np.arange(12.0).reshape(3, 4) / 10 - 0.5
    m = derive.load(model)
    found, twice = m.solve(x=given), given.T @ given @ given.T @ given
    np.testing.assert_allclose(found["h"], [np.tile((given**2).sum(axis=1)[:, None], (1, 2))], rtol=1e-12)
    np.testing.assert_allclose(found["summed"], found["h"], rtol=1e-12)
    np.testing.assert_allclose(found["back"], [np.tile(np.diag(twice), (2, 1))], rtol=1e-12)
    samples = m.simulate(x=given, size=4000, seeds=6, seed=simulation_seed)
    for name in ("h", "summed", "back"):  # 24000 sites: variances within a standard error of one percent
        np.testing.assert_allclose(np.mean(samples[name], axis=0), found[name], rtol=0.06)


@pytest.mark.slow
def test_several_axes_are_one_list_of_labels():
    """Two axes of 2 and 3 labels that nothing tells apart are an axis of 6."""

    def norms(axes, sizes):
        x, y = fields("x y", D, t, axes=axes)
        start, J, W = normal("start", D, axes=axes), gaussian("J", D, D), weights("W", D, D, t)
        equations = [
            Eq(x(0), start),
            Eq(x(t + 1), x(t) / 2 + rate * W(t).T @ y(t) / sqrt(D)),
            Eq(y(t), W(t) @ x(t) / sqrt(D)),
            Eq(W(0), J),
            Eq(W(t + 1), W(t) + rate / sqrt(D) * outer(y(t), x(t))),
        ]
        probe = spectrum(W(T).T @ W(T) / D)
        model = Model((rate, *sizes, T), equations, {"norm": mean(x(t) ** 2)}, probe)
        found = derive.load(model).solve(rate=0.2, path=False)
        return found["norm"], found.outliers

    one, other = norms((a, b), (A, B)), norms((axis("six", 6),), ())
    assert len(one[1]) >= 6
    for found, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.slow
def test_a_mean_over_several_axes_multiplies_a_probed_matrix():
    """The sum over 2 x 3 labels of <(X_a + Y_b)^2> = 2 is 12, and a Wigner matrix times it ends at 24."""
    X, Y = normal("X", D, axes=a), normal("Y", D, axes=b)
    model = Model((A, B), [], {}, spectrum(total(mean((X + Y) ** 2)) * goe("S", D)))
    np.testing.assert_allclose(derive.load(model).solve().bulk_edges, [[-24, 24]], rtol=1e-12)


def test_a_selection_repeats_sums_and_renames_labels_in_exact_arithmetic_too():
    """Rows (i, j) of 2 x 3 labels and columns of 3: ones where j is the label of the column."""
    found = ExactRun.selection(SimpleNamespace(one="1", zero="0"), (2, 3), (3,), (1,))
    assert found.tolist() == 2 * [["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]]


# -- what is refused


@pytest.mark.parametrize("inside", [total(X * X, b), total(X), total(X, a)])
def test_a_mean_asks_for_fields_of_what_is_summed_inside(inside):
    """Also where all labels are summed over, which had ended in a traceback."""
    y, z = normal("y", D), field("z", D)
    with pytest.raises(DeclarationError, match=r"give total\(.* a field of its own"):
        Model((A, B), [Eq(z, y)], {"q": each(mean(inside * z))})
    with pytest.raises(DeclarationError, match=r"give total\(.* a field of its own"):
        Model((A, B), [Eq(z, y * mean(total(X * X) * y))], {"q": mean(z)})


@pytest.mark.parametrize("law", [lambda x: x, lambda x: mean(x**2) * x, lambda x: softmax(mean(x**2), a) * x])
def test_the_only_axis_may_be_named_in_a_total(law):
    def told(*axes) -> np.ndarray:
        x, z = field("x", D, axes=a), field("z", D)
        equations = [Eq(x, gaussian("J", D, D) @ normal("start", D, axes=a) / sqrt(D)), Eq(z, total(law(x), *axes))]
        return derive.load(Model((A,), equations, {"square": mean(z**2)})).solve(A=2)["square"]

    assert told(a) == pytest.approx(told(), rel=1e-13)
    assert told(a)[0] > 0.1


def test_an_axis_may_stand_in_relabel_alone():
    """Independent vectors of length one have the unit matrix as their overlaps, along an axis that no field has."""
    x, y = normal("x", D, axes=b), field("y", D, axes=b)
    gram = each(mean(y * relabel(y, b, axis("c", B))))
    found = derive.load(Model(parameters=(B,), equations=[Eq(y, 2 * x)], observe={"gram": gram})).solve()
    np.testing.assert_allclose(np.squeeze(found["gram"]), 4 * np.eye(3), atol=1e-14)


def test_a_product_with_a_table_along_another_axis_needs_a_field_of_its_own():
    c, d, y, V = axis("c", B), axis("d", 4), field("y", D, axes=b), normal("V", D, axes=axis("d", 4))
    seen = data("seen", b, d) @ V
    observe = {"gram": each(mean(y * relabel(seen, b, c)))}
    with pytest.raises(DeclarationError, match="give seen @ V a field of its own"):
        derive.load(Model(parameters=(B,), equations=[Eq(y, seen)], observe=observe)).solve(seen=np.ones((3, 4)))
