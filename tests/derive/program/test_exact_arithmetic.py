"""Functions of the exact back end against those of the same name that generated code calls."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from derive.program.quotients import Evaluation, Scalars
from numerics.runtime import coefficients, exact
from numerics.support.precision import in_float64

STEPS = 4


@pytest.fixture
def machine():
    return Evaluation(Scalars([], {}))


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Fractions that float64 holds exactly."""
    return np.random.default_rng(seed).integers(-7, 8, shape) / 4


def rational(machine: Evaluation, table: np.ndarray) -> np.ndarray:
    return np.frompyfunc(lambda x: machine.scalars.of(sp.Rational(Fraction(float(x)))), 1, 1)(table)


def floats(machine: Evaluation, table: np.ndarray) -> np.ndarray:
    return np.array(np.frompyfunc(lambda x: float(machine.scalars.expression(x)), 1, 1)(table), float)


@pytest.mark.parametrize("size", [1, 2, 3])
@in_float64
def test_coefficients_of_a_vector_recursion_are_those_of_floating_point(machine, size):
    """k(t + 1) = A(t) k(t) + f(t), from a start, and from what is added at each earlier time."""
    given = numbers((STEPS, size, size), 1), numbers((STEPS, size, 1), 2), numbers((STEPS, size, 1), 3)
    same = [rational(machine, table) for table in given]
    for name in ("initial_coefficients", "history_coefficients"):
        known = getattr(coefficients, name)(*given)
        found = getattr(machine, name)(*same)
        np.testing.assert_array_equal(floats(machine, found), known)
        for time in (-1, 0, 2, STEPS + 3):
            entry = machine.coefficient(found, time, size - 1)
            np.testing.assert_array_equal(floats(machine, entry), coefficients.coefficient(known, time, size - 1))
    np.testing.assert_array_equal(
        floats(machine, machine.coefficients(found, 3, 0, 2)), coefficients.coefficients(known, 3, 0, 2)
    )


@in_float64
def test_tables_over_time_are_those_of_floating_point(machine):
    rows = [[0.5, numbers((STEPS,), 4)], [numbers((STEPS,), 5), -0.25]]
    same = [[rational(machine, np.asarray(entry)) for entry in row] for row in rows]
    known = np.asarray(coefficients.over_time(rows, STEPS))
    np.testing.assert_array_equal(floats(machine, machine.over_time(same, STEPS)), known)
    column = numbers((STEPS, 1), 6)
    for time in (-2, -1, 0, STEPS - 1):
        found = machine.taken_at(rational(machine, column), time)
        assert float(machine.scalars.expression(found)) == coefficients.taken_at(column, time)
    np.testing.assert_array_equal(floats(machine, machine.by_time(rational(machine, column))), column[:, 0])


def test_products_and_diagonal_matrices(machine):
    a, b = numbers((3, 4), 7), numbers((4, 2), 8)
    np.testing.assert_array_equal(
        floats(machine, machine.product_of(rational(machine, a), rational(machine, b))), a @ b
    )
    weights = numbers((3,), 9)
    found = machine.diagonal(rational(machine, weights), 6, 2)
    np.testing.assert_array_equal(floats(machine, found), np.diag(np.repeat(weights, 2)))
    np.testing.assert_array_equal(floats(machine, machine.identity(3)), np.eye(3))


# -- sites with traits: rows of each group


GROUPS = [np.array([0.2, 0.3, 0.5]), np.array([1.0])]


@pytest.mark.parametrize("weights", GROUPS, ids=len)
@in_float64
def test_means_over_groups_are_weighted_sums_of_means_over_one(weights):
    """Products and responses of rows of all groups, against a loop over groups with the site written out."""
    groups, own = len(weights), 7
    place = exact.site(((2, 1), (2, 2)), drawn=((1, 1),), traits=(exact.TraitValues(np.arange(groups), weights),))
    rng = np.random.default_rng(groups)
    covariance = np.cov(rng.standard_normal((6, 20)))
    whole = np.block([[covariance, np.zeros((6, 1))], [np.zeros((1, 6)), np.eye(1)]])
    rows, others = rng.standard_normal((2, groups * own)), rng.standard_normal((3, groups * own))
    each, every = rows.reshape(2, groups, own), others.reshape(3, groups, own)
    known = np.einsum("agi,ij,bgj->gab", each, whole, every) * np.asarray(weights)[:, None, None]
    seen = exact.dual(rows, place, covariance)
    np.testing.assert_allclose(exact.overlaps(seen, others), known.sum(0), atol=1e-13)
    np.testing.assert_allclose(exact.products_by_group(seen, others, place), known, atol=1e-13)
    for block in place:
        for count in (1, block.length):
            answers = each[:, :, block.start : block.start + count]
            np.testing.assert_allclose(
                exact.part_by_group(rows, block, count), np.einsum("agk,g->gak", answers, weights), atol=1e-14
            )
            np.testing.assert_allclose(
                exact.part_before(rows, block, count), np.einsum("agk,g->ak", answers, weights), atol=1e-14
            )
    by_group = exact.law_of_groups(place, place.along(0), 2 * place.along(0))
    np.testing.assert_allclose(by_group, np.stack([np.arange(groups), 2 * np.arange(groups), weights], axis=1))
    assert float(exact.moment(place, lambda value: value**2)) == pytest.approx(weights @ np.arange(groups) ** 2)
