"""Labels that are alike: which permutations the declaration allows, and what one label in place of all gives."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from sympy import sqrt, tanh

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    field,
    gaussian,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    total,
    training_clock,
    weights,
    whole_positive,
)
from derive.codegen import solver_files
from derive.pipeline import derive_model
from derive.program.probe import _falls_apart
from derive.records.method import LabelGroup
from numerics.outliers.components import components_of
from numerics.runtime.labels import (
    ComponentTable,
    LabelComponents,
    OrderByComponents,
    components_at,
    of_one_label,
)
from numerics.solver import load_solver, solve, spiked_problem
from numerics.support.compiling import compiled
from numerics.support.precision import in_float64

rate = parameter("rate", default=0.6, domain=positive)
T = parameter("T", default=3, domain=whole_positive)
C = parameter("C", default=3, domain=whole_positive)
D = sectors("D")
t, c = training_clock("t", steps=T), axis("c", C)
J = gaussian("J", D, D)
start, common = normal("start", D, axes=c), normal("common", D)
v, u, h = field("v", D, t, axes=c), field("u", D, t), field("h", D, t, axes=c)
W = weights("W", D, D, t)
strength = data("strength", c)


def model(later, first=start, plain=None, observe=None, probe=True):
    """A matrix that learns vectors with labels. later: what these become; plain: what one without labels becomes."""
    equations = [
        Eq(v(0), first),
        Eq(v(t + 1), later),
        Eq(h(t), W(t) @ v(t) / sqrt(D)),
        Eq(W(0), J),
        Eq(W(t + 1), W(t) + rate / sqrt(D) * outer(h(t), v(t))),
    ]
    equations += [] if plain is None else [Eq(u(0), common), Eq(u(t + 1), plain)]
    return Model(
        parameters=(rate, T, C),
        equations=equations,
        observe=observe or {"square": each(mean(v(t) ** 2))},
        probe=spectrum(W(T).T @ W(T) / D) if probe else None,
    )


SIGNED = model(v(t) / 2 + h(t) / 3 + mean(v(t) ** 2) * v(t) / 5)
JOINED = model(v(t) / 2 + h(t) / 3 - 2 * rate * total(v(t)) / (3 * C))
MIXED = model(
    v(t) / 2 + h(t) / 3 + u(t) / 4 + mean(v(t) * u(t)) * v(t) / 5 + mean(v(t) ** 2) * u(t) / 7,
    start + common / 2,
    u(t) / 3 + total(v(t)) / (5 * C) + total(mean(v(t) * h(t))) * u(t) / 9,
    {"square": mean(v(t) ** 2), "overlap": each(mean(v(t) * u(t))), "sum": total(mean(v(t) ** 2))},
    probe=False,
)


def group(declared):
    found = derive_model(replace(declared, probe=None, observe=dict(declared.observe))).method.labels
    return None if found is None else found.group


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (SIGNED, LabelGroup.SIGNED),
        (JOINED, LabelGroup.PERMUTATIONS),
        (MIXED, LabelGroup.PERMUTATIONS),
        (model(strength * v(t) / 2), LabelGroup.NONE),  # labels differ by data
        (model(tanh(v(t))), LabelGroup.NONE),  # not exact
        (model(v(t) / 2 + u(t), plain=u(t) / 2), LabelGroup.PERMUTATIONS),  # one vector enters every label
        (model(v(t) / 2, plain=u(t) / 2), LabelGroup.SIGNED),  # vectors without labels stand apart
    ],
    ids=("odd", "joined", "mixed", "data", "nonlinear", "spread", "apart"),
)
def test_the_symmetry_of_labels_is_read_off_the_equations(declared, expected):
    assert group(declared) is expected


def test_labels_without_symmetry_are_all_computed():
    solver = solver_of("given")
    assert solver.training.training.alike is None and solver.matrices[0].probe.alike is None


def test_a_matrix_splits_only_where_labels_are_alike_and_of_any_number():
    """Of three labels by declaration shapes are known, and of labels that differ nothing is alike."""

    def splits(declared, **changed):
        derivation = derive_model(declared)
        labels = replace(derivation.method.labels, **changed)
        return _falls_apart(derivation.blocks, derivation.layout, labels)

    assert splits(JOINED) and splits(SIGNED)
    assert not splits(JOINED, group=LabelGroup.NONE)
    assert not splits(JOINED, axes=(axis("c", 3),))


@cache
def solver_of(name):
    declared = {"signed": SIGNED, "joined": JOINED, "mixed": MIXED, "given": model(strength * v(t) / 2)}[name]
    return load_solver(solver_files(declared))


@in_float64
def apart(name, count, wanted=()):
    """The largest difference of order parameters, observables and two-time functions to those of all labels."""
    solver = solver_of(name)
    point = solver.point({"rate": 0.6, "T": 3, "C": count})
    assert (components_at(solver.training.training, point) is None) == (
        count <= solver.training.training.alike.components
    )

    def numbers(rows):
        order, observables, _ = compiled(rows.forward_pass, quickly=True)(point)
        two_time = compiled(lambda p: rows.two_time(p, wanted)[0], quickly=True)(point) if wanted else {}
        return {**order, **observables, **two_time}

    one, every = numbers(solver.rows), numbers(solver.with_all_labels.rows)
    assert {key: np.shape(x) for key, x in one.items()} == {key: np.shape(x) for key, x in every.items()}
    return max(float(np.max(np.abs(one[key] - every[key]), initial=0.0)) for key in every)


ASKED = (("C", "v", "v"), ("C", "v", "u"), ("R", "v", "v"), ("R", "u", "v"))


def test_one_label_and_a_sum_give_what_all_labels_give():
    assert apart("mixed", 3) < 1e-12


@pytest.mark.long
@pytest.mark.parametrize("name", ["signed", "joined", "mixed"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_one_label_for_all_gives_what_all_labels_give(name, count):
    assert apart(name, count, ASKED if name == "mixed" else (("C", "v", "h"), ("R", "h", "v"))) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "multiplicities"), [pytest.param("signed", [5], marks=pytest.mark.long), ("joined", [1, 4])]
)
def test_a_matrix_splits_into_the_representations_of_its_labels(name, multiplicities):
    solver, values = solver_of(name), {"rate": 1.6, "T": 3, "C": 5}
    found, whole = (solve(one, values, path=True, certify=True) for one in (solver, solver.with_all_labels))
    assert [part.multiplicity for part in components_of(spiked_problem(solver, found))] == multiplicities
    assert len(whole.outliers) > 1
    np.testing.assert_allclose(found.outliers, whole.outliers, rtol=1e-10)
    for one, other in zip(found.layers[0].outlier_path, whole.layers[0].outlier_path, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    assert found.certificate.failed == ()


@in_float64
def test_components_of_a_table_are_its_eigenvalues():
    """a delta_cd + b has the eigenvalue a + C b on the sum over labels and a on differences."""
    table = np.array([[[[2.0 + 4 * 3.0, 0.0]], [[0.0, 2.0]]]]).reshape(1, 2, 1, 2)
    np.testing.assert_allclose(LabelComponents(4, 2).expand(table, True, True)[0, :, 0], 2 * np.eye(4) + 3, rtol=1e-14)


@pytest.mark.parametrize(
    ("components", "left", "right"),
    [(1, True, True), (2, True, True), (2, True, False), (2, False, False), (1, False, True)],
)
@in_float64
def test_entries_of_one_label_are_those_of_the_expanded_table(components, left, right):
    """One label with itself holds all diagonal entries, and scaling by a number commutes with expanding."""
    labels = 3
    shape = [4 * (components if has_labels else 1) for has_labels in (left, right)]
    table = ComponentTable(
        np.random.default_rng(0).normal(size=shape), LabelComponents(labels, components), left, right
    )
    whole = table.expand()
    assert whole.shape == table.shape == tuple(4 * (labels if has_labels else 1) for has_labels in (left, right))
    np.testing.assert_allclose(table.of_one_label(), whole[:: labels if left else 1, :: labels if right else 1])
    np.testing.assert_allclose((np.float64(0.5) * table).expand(), whole / 2, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(lambda x: x.expand())(table), whole, rtol=1e-14)
    if left and right:
        (summed, difference), other = table.eigenvalues(), whole[::labels, 1::labels]
        np.testing.assert_allclose(difference, table.of_one_label() - other, atol=1e-14)
        if components == 2:
            np.testing.assert_allclose(summed, table.of_one_label() + (labels - 1) * other, atol=1e-14)


def test_order_parameters_expand_when_they_are_read():
    """A solution stores components; what is read has all labels, cannot be changed, and is expanded once."""
    solver, values = solver_of("joined"), {"rate": 0.6, "T": 3, "C": 5}
    found, whole = (solve(one, values).order for one in (solver, solver.with_all_labels))
    assert isinstance(found, OrderByComponents) and not isinstance(whole, OrderByComponents)
    assert not found._read, "a solution expands nothing"
    assert found.entries == sum(table.size for table in whole.values()) > sum(x.size for x in jax.tree.leaves(found))
    for key, table in whole.items():
        np.testing.assert_allclose(found[key], table, atol=1e-12)
        np.testing.assert_allclose(of_one_label(found)[key], table[::5, ::5], atol=1e-12)
        assert found[key] is found[key] and not found[key].flags.writeable
    assert all(table is whole[key] for key, table in of_one_label(whole).items())
