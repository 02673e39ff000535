"""Responses whose values follow from the order in time are exact where the rest is sampled."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import tanh

from derive import Eq, Model, field, gaussian, normal, parameter, positive, sectors, training_clock, whole_positive
from derive.codegen import solver_files
from numerics.solver import load_solver, solve
from numerics.two_time import parsed

g = parameter("g", default=0.8, domain=positive)
T = parameter("T", default=4, domain=whole_positive)


def remembering() -> Model:
    """A recurrent network with J and J^T, so that sites remember and have to be sampled."""
    D, t = sectors("D"), training_clock("t", steps=T)
    start, J = normal("start", D), gaussian("J", D, D, variance=1 / D)
    x, phi, h, back = (field(name, D, t) for name in ("x", "phi", "h", "back"))
    return Model(
        parameters=(g, T),
        equations=[
            Eq(x(0), start),
            Eq(x(t + 1), x(t) / 2 + h(t) + back(t)),
            Eq(phi(t), tanh(x(t))),
            Eq(h(t), g * J @ phi(t)),
            Eq(back(t), g / 2 * J.T @ phi(t)),
        ],
    )


def test_delays_on_one_site_go_through_memory_and_not_through_the_matrix():
    training = load_solver(solver_files(remembering())).training.training
    delays = {(a, b.name): delay for b in training.vectors for a, delay in training.delays(b.name)}
    assert delays["x", "x"] == delays["phi", "x"] == delays["x", "start"] == 0
    assert delays["x", "h"] == 1 and delays["h", "phi"] == 1  # J phi answers phi by the memory of J^T, a step later
    assert delays["x", "phi"] == 2
    assert ("start", "x") not in delays


@pytest.mark.slow
def test_equal_times_and_structural_zeros_of_sampled_responses_are_exact():
    solver = load_solver(solver_files(remembering()))
    names = ("R[x,x]", "R[x,h]", "R[h,phi]", "R[start,start]", "R[phi,x]")
    found = solve(solver, {"g": 0.8, "T": 4}, samples=1000, kernels=tuple(map(parsed, names))).two_time
    equal = {name: np.diagonal(np.squeeze(found[parsed(name)].values)) for name in ("R[x,x]", "R[x,h]", "R[h,phi]")}
    errors = {name: np.diagonal(np.squeeze(found[parsed(name)].errors)) for name in ("R[x,x]", "R[x,h]", "R[h,phi]")}
    assert np.all(equal["R[x,x]"] == 1) and np.all(equal["R[x,h]"] == 0) and np.all(equal["R[h,phi]"] == 0)
    assert all(np.all(error == 0) for error in errors.values())
    assert found[parsed("R[start,start]")].values == 1
    response = np.squeeze(found[parsed("R[phi,x]")].errors)
    assert np.all(np.diagonal(response) > 0)  # <1 - tanh(x)^2> is not known from the order in time
