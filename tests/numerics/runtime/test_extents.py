"""Shapes of order parameters are known before a pass: the estimate of memory and its refusals rest on them."""

from __future__ import annotations

import jax
import pytest
from conftest import solver_of, values_of

from numerics.runtime.samples import SampledPass
from numerics.support.memory import expected_memory
from numerics.support.precision import in_float64
from numerics.training.sampling import Sampling

SITES = 8


@pytest.mark.parametrize("name", ["classifier", "coupled_spikes_tanh", "lotka_volterra"])
@in_float64
def test_extents_are_the_shapes_of_the_order_parameters(name):
    """Fields without time keep their labels, as the inputs of a classifier keep their data points."""
    solver, values = solver_of(name), values_of(name)
    training, p = solver.training, solver.point(values)
    assert isinstance(training, SampledPass)
    normals = {kind: jax.ShapeDtypeStruct((SITES, *shape), float) for kind, shape in training.shapes(p, None).items()}

    def order(normals):
        return training.order_parameters(training.moments_of(p, training.forward_pass(p, normals)[0]), p, tolerance=0.0)

    shapes = {key: x.shape for key, x in jax.eval_shape(order, normals).items()}
    steps = 1 if solver.setting.steps is None else int(values[solver.setting.steps])
    extents = training.extents(p, steps)
    assert {key: shapes[key] for key in extents if key.kind in ("C", "R")} == {
        key: extent for key, extent in extents.items() if key.kind in ("C", "R")
    }


def test_memory_of_labels_without_time_is_estimated():
    solver, values = solver_of("classifier"), values_of("classifier")
    assert expected_memory(solver, values, Sampling(5000), None, True).outliers > 0
