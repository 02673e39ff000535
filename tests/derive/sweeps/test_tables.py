"""Tables of sweeps: each column holds the quantity that its name says, at the last time."""

from __future__ import annotations

import numpy as np
import pytest

import derive
from derive import (
    Eq,
    Model,
    field,
    goe,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

rate = parameter("rate", default=1.0, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
D = sectors("D")
t = training_clock("t", steps=T)
g, v, M = normal("g", D), field("v", D, t), weights("M", D, D, t)
MODEL = Model(
    parameters=(rate, T),
    equations=[
        Eq(v(0), g),
        Eq(v(t + 1), v(t) / 2),
        Eq(M(0), goe("S", D)),
        Eq(M(t + 1), M(t) + rate / D * outer(g, g)),
    ],
    observe={"activity": mean(v(t) ** 2)},
    probe=spectrum(M(T)),
)
"""A vector that halves at each step, and a matrix with a spike of strength rate T: everything is known by hand."""
RATES = (0.25, 1.0, 2.0)


@pytest.fixture(scope="module")
def theory() -> derive.Theory:
    return derive.load(MODEL)


@pytest.fixture(scope="module")
def simulated(theory) -> derive.Sweep:
    return theory.sweep(rate=RATES[1:], of="simulate", size=30, seeds=3)


def test_a_row_of_solutions_has_the_last_time_and_the_ends_of_the_spectrum(theory):
    for strength, row in zip(RATES, theory.sweep(rate=list(RATES)).rows(), strict=True):
        spike = 2 * strength
        outliers = [spike + 1 / spike] if spike > 1 else []
        assert row["rate"] == strength and row["T"] == 2 and row["intervals"] == 1
        assert row["activity"] == pytest.approx(1 / 16)
        assert (row["lower_edge"], row["upper_edge"]) == pytest.approx((-2, 2))
        assert row["smallest"] == pytest.approx(-2) and row["largest"] == pytest.approx(max([2, *outliers]))
        assert [row[name] for name in row if name.startswith("outlier_")] == pytest.approx(outliers)


def test_a_row_of_simulations_has_means_over_seeds_and_their_errors(simulated):
    for point, row in zip(simulated, simulated.rows(), strict=True):
        last = np.array([series[-1] for series in point.observables["activity"]])
        assert np.ptp(last) > 0 and last == pytest.approx([series[0] / 16 for series in point.observables["activity"]])
        ends = np.array([(values[0], values[-1]) for values in point.layers[0].eigenvalues])
        for name, draws in (("activity", last), ("smallest", ends[:, 0]), ("largest", ends[:, 1])):
            assert row[name] == pytest.approx(np.mean(draws))
            assert row[f"{name}_error"] == pytest.approx(np.sqrt(np.sum((draws - np.mean(draws)) ** 2) / (2 * 3)))


def test_a_row_of_comparisons_names_the_largest_difference(theory):
    (point,) = swept = theory.sweep(rate=[1.0], of="compare", size=30, seeds=3)
    (row,) = swept.rows()
    judged = {one.quantity: one.difference for one in point.rows if one.difference is not None}
    assert abs(row["largest_difference"]) == max(map(abs, judged.values()))
    assert judged[row["largest_difference_of"]] == row["largest_difference"]
    assert row["activity at 2"] == pytest.approx(1 / 16) and row["agrees"] == point.agrees


def test_the_printed_table_has_the_axes_and_the_last_values(theory):
    heads, rows = theory.sweep(rate=[0.25, 1.0]).lines()
    assert heads == ["rate", "activity", "upper_edge", "largest"]
    assert rows == [["0.25", "0.0625", "2", "2"], ["1", "0.0625", "2", "2.5"]]
