"""The stationary limit of linear training with labels and given data: ridge regression of classes, tables of labels."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner
from resolvent_by_hand import equivalents, interpolator_test_loss
from sympy import sqrt

import derive
from derive import (
    Domain,
    Eq,
    Model,
    axis,
    data,
    each,
    field,
    gaussian,
    goe,
    mean,
    nonnegative,
    normal,
    parameter,
    positive,
    root,
    sectors,
    total,
    training_clock,
    trait,
    whole_positive,
)
from derive.cli import main
from derive.errors import DeclarationError

T = parameter("T", default=30, domain=whole_positive)
C = parameter("C", default=3, domain=whole_positive)
alpha = parameter("alpha", default=2.0, domain=positive)
eta = parameter("eta", default=0.1, domain=positive)
sigma = parameter("sigma", default=0.3, domain=nonnegative)
ridge = parameter("ridge", default=0.1, domain=nonnegative)
mu = parameter("mu", default=0.0, domain=Domain(0, 1, low_included=True))
g = parameter("g", default=0.4, domain=positive)
t, c = training_clock("t", steps=T), axis("c", C)


@cache
def classes(structured: bool):
    """Linear regression on C teachers of given lengths and scalar products, by gradient descent with momentum."""
    D, P = sectors("D", P=alpha)
    X, lam = gaussian("X", P, D), trait("lam", D, values=[1, 4], weights=[0.75, 0.25])
    strengths, gram = data("strengths", c), data("gram", c, c)
    teacher, free, eps = field("teacher", D, axes=c), normal("free", D, axes=c), normal("eps", P, axes=c)
    w, v, e = field("w", D, t, axes=c), field("v", D, t, axes=c), field("e", P, t, axes=c)
    half = sqrt(lam) if structured else 1
    return derive.load(
        Model(
            parameters=(C, alpha, eta, sigma, ridge, mu, T),
            equations=[
                Eq(teacher, strengths * (root(gram) @ free)),
                Eq(w(0), 0 * free),
                Eq(v(0), 0 * free),
                Eq(e(t), X @ (half * (teacher - w(t))) / sqrt(D) + sigma * eps),
                Eq(v(t + 1), mu * v(t) + eta * (sqrt(D) / P * half * (X.T @ e(t)) - ridge * w(t))),
                Eq(w(t + 1), w(t) + v(t + 1)),
            ],
            observe={
                "risk": each(mean(half**2 * (w(t) - teacher) ** 2)),
                "mean_risk": mean(half**2 * (w(t) - teacher) ** 2),
                "all": total(mean(half**2 * (w(t) - teacher) ** 2)),
                "seen": total(strengths * mean(w(t) * teacher)),
            },
            name=f"classes_{structured}",
        )
    )


GIVEN = {"C": 3, "strengths": [1.0, 2.0, 0.5], "gram": [[1, 0.4, 0], [0.4, 1, 0.2], [0, 0.2, 1]]}


@pytest.mark.slow
@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_each_class_has_the_ridge_risk_of_its_teacher(momentum):
    found = classes(True).limit(**GIVEN, ridge=0.2, sigma=0.3, alpha=0.8, mu=momentum)
    by_hand = equivalents(-0.2, 0.8, np.array([1.0, 4.0]), np.array([0.75, 0.25]))
    beside, between = by_hand["A"].real, by_hand["A R"].real
    risk = np.array(GIVEN["strengths"]) ** 2 * 0.2**2 * between + 0.3**2 / 0.8 * (-beside - 0.2 * between)
    assert np.allclose(found["risk"], risk, rtol=1e-8)
    assert np.isclose(found["mean_risk"], risk.mean(), rtol=1e-8) and np.isclose(found["all"], risk.sum(), rtol=1e-8)


@pytest.mark.parametrize("samples", [0.5, 1.6])
def test_without_a_ridge_each_class_has_its_interpolator(samples):
    found = classes(False).limit(**GIVEN, ridge=0, sigma=0.3, alpha=samples, eta=0.05)
    noise = interpolator_test_loss(samples, 0.3) - 0.3**2 - max(0.0, 1 - samples)
    risk = np.array(GIVEN["strengths"]) ** 2 * max(0.0, 1 - samples) + noise
    assert np.allclose(found["risk"], risk, rtol=1e-8)


@pytest.mark.slow
def test_a_long_run_ends_there():
    found = classes(True).limit(**GIVEN, ridge=0.5, alpha=2, eta=0.1, mu=0.3)
    run = classes(True).solve(**GIVEN, ridge=0.5, alpha=2, eta=0.1, mu=0.3, T=120)
    for name in ("risk", "mean_risk", "all", "seen"):
        assert np.allclose(found[name], run[name][-1], rtol=1e-5), name


@pytest.mark.slow
def test_what_does_not_come_to_rest_is_refused():
    for values in ({"eta": 3.0}, {"ridge": 0, "alpha": 1}):
        found = classes(False).limit(**GIVEN, **values)
        assert not found and "has no stationary limit" in found.trouble[0]


def network(symmetric: bool):
    """A linear recurrent network whose labels a table joins, driven by what has labels and by what has none."""
    D = sectors("D")
    x, b, common, table = field("x", D, t, axes=c), normal("b", D, axes=c), normal("common", D), data("table", c, c)
    drive = goe("M", D) @ x(t) if symmetric else gaussian("J", D, D) @ x(t) / sqrt(D)
    return derive.load(
        Model(
            parameters=(C, g, T),
            equations=[Eq(x(0), b), Eq(x(t + 1), g * drive + table @ x(t) + b + 3 * common)],
            observe={"size": each(mean(x(t) ** 2)), "common": each(mean(x(t) * common))},
            name=f"network_{symmetric}",
        )
    )


def test_a_table_joins_labels_as_by_hand():
    """x = A x + g J x + b: covariances K obey K = R (g^2 K + 1 + 9) R^T with R = 1/(1 - A), at independent J."""
    table = np.array([[0.3, 0.2, 0.0], [-0.1, 0.4, 0.1], [0.2, 0.0, 0.1]])
    inverse = np.linalg.inv(np.eye(3) - table)
    drawn = np.eye(3) + 9 * np.ones((3, 3))
    known = np.linalg.solve(
        np.eye(9) - 0.16 * np.kron(inverse, inverse), (inverse @ drawn @ inverse.T).ravel()
    ).reshape(3, 3)
    found = network(False).limit(C=3, table=table, g=0.4)
    assert np.allclose(found["size"], np.diag(known), rtol=1e-9)
    assert np.allclose(found["common"], 3 * inverse.sum(axis=1), rtol=1e-9)


@pytest.mark.slow
def test_a_symmetric_network_ends_where_a_long_run_does():
    table = np.array([[0.3, 0.2], [0.2, -0.4]])
    found, run = network(True).limit(C=2, table=table, g=0.2), network(True).solve(C=2, table=table, g=0.2, T=130)
    assert np.allclose(found["size"], run["size"][-1], rtol=1e-9)
    assert not network(True).limit(C=2, table=table, g=0.5)


@pytest.mark.slow
def test_results_have_labels(tmp_path):
    found = classes(False).limit(**GIVEN)
    again = derive.open(found.save(tmp_path / "limit.nc"))
    assert np.array_equal(again["risk"], found["risk"]) and "risk[2]" in repr(found)
    path = classes(False).limits(**GIVEN, ridge=[0.1, 1.0])
    assert path["risk"].shape == (2, 3) and "risk[0]" in path.to_frame()
    assert "strengths" in classes(False).derivation.limit.text()


def test_data_that_change_with_time_are_refused():
    D = sectors("D")
    x, now = field("x", D, t, axes=c), data("now", c, clock=t)
    model = Model(
        parameters=(C, T),
        equations=[Eq(x(0), normal("b", D, axes=c)), Eq(x(t + 1), x(t) / 2 + now(t) * x(t) / 9)],
        observe={"size": mean(x(t) ** 2)},
    )
    with pytest.raises(DeclarationError, match="data that change with time"):
        derive.load(model).limit(C=2, T=3, now=np.ones((4, 2)))


def test_the_command_prints_a_column_per_label(tmp_path):
    source = """
from derive import *
C, T = parameter("C", default=2, domain=whole_positive), parameter("T", default=4, domain=whole_positive)
D, t, c = sectors("D"), training_clock("t", steps=T), axis("c", C)
x, b, s = field("x", D, t, axes=c), normal("b", D, axes=c), data("s", c)
MODEL = Model(
    parameters=(C, T), equations=[Eq(x(0), b), Eq(x(t + 1), x(t) / 2 + s * b)], observe={"size": each(mean(x(t) ** 2))}
)
"""
    file = tmp_path / "labelled.py"
    file.write_text(source)
    shown = CliRunner().invoke(main, ["limit", str(file), "s=[1,3]", "--json"])
    assert json.loads(shown.stdout)["points"][0]["observables"]["size"] == pytest.approx([4.0, 36.0])
    assert "size[1]" in CliRunner().invoke(main, ["limit", str(file), "s=[1,3]"]).output
    assert "one site" in CliRunner().invoke(main, ["show", str(file), "--stage", "limit"]).output
