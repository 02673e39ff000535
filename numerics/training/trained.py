"""The training level of a solution: order parameters and observables, exact or sampled, one point or many."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.modules import Solver
from numerics.runtime.keys import OrderKey
from numerics.runtime.labels import OrderByComponents, of_one_label
from numerics.runtime.samples import SampledPass
from numerics.support.arrays import labels_in
from numerics.support.nearby import Nearby
from numerics.support.precision import in_float64
from numerics.support.progress import Report
from numerics.support.reports import ExpectedMemory, TrainingMethod
from numerics.training.quadrature import OF_TRAITS, check_settled, integrals_of, settle
from numerics.training.sampling import Sampling, sampled_pass

GROWTH = 1e25
"""Factor relative to their first value above which observables and variances have diverged, because double precision is
exhausted."""
MOST_BYTES = 8e9
"""Order parameters larger than this are refused."""
LONGEST = 10**12
"""Upper bound on the length of an axis, or on a product of a few of them, above which the memory cannot even be
queried."""
BATCH_BYTES = 1e9
WORKING_COPIES = 8
"""A batch of forward passes may need the first amount, and each pass this multiple of its order parameters."""


@dataclass(frozen=True)
class Trained:
    """The training level: order parameters and observables.

    nearby: if sampled, nearby order parameters, from which results get their errors and bias correction.
    """

    order: Mapping[OrderKey, np.ndarray]
    observables: Mapping[str, np.ndarray]
    finite: int
    errors: Mapping[str, np.ndarray] | None
    nearby: Nearby
    method: TrainingMethod

    @staticmethod
    def of(order: Any, observables: Any, finite: Any, method: TrainingMethod | None = None) -> Trained:
        method = method or TrainingMethod()
        order, observables = jax.tree.map(np.asarray, (order, observables))
        return Trained(order, observables, int(finite), None, Nearby(), method)

    @staticmethod
    def exact(solver: Solver, values: dict[str, Any]) -> Trained:
        """Return the training level at one point, without sampling."""
        p = solver.point(values)
        if not solver.quadrature:
            return Trained.of(*solver.pass_of(values)(p))
        found, (method,) = settle(lambda nodes: solver.forward_pass(p, nodes=nodes), integrals_of(solver.training))
        return Trained.of(*found, method=method)

    @cached_property
    def failure(self) -> str | None:
        """Why there are no results: the pass overflowed, order parameters grew until they lost all digits, or integrals
        did not converge.
        """
        return _failure(self)

    @property
    def rows(self) -> int:
        """Return the number of rows of the largest order parameter, of one label if labels are equivalent."""
        return max((max(value.shape, default=1) for value in of_one_label(self.order).values()), default=1)

    @property
    def noise(self) -> float:
        """The variance of sampling noise in normalised correlations; zero if they are exact."""
        return 0.0 if self.method.sampling is None else 2 * self.method.sampling.resolution

    @staticmethod
    def sampled(
        solver: Solver, values: dict[str, Any], sampling: Sampling, tell: Report, memory: ExpectedMemory | None = None
    ) -> Trained:
        """Return means over independent replicates of the sampled forward pass. memory: its expected memory."""
        found = sampled_pass(solver.sampled_pass, solver.point(values), sampling, tell)
        return Trained(
            found.order,
            found.observables,
            found.finite,
            found.errors,
            found.nearby,
            TrainingMethod("sampled", sampling=replace(found.report, memory=memory)),
        )


@in_float64
def train_together(solver: Solver, points: Sequence[dict[str, Any]], batch: int = 1) -> list[Trained]:
    """Return the training level of several points in one batch; integers are equal at all of them.

    batch: a batch of fewer points is padded with the last one if memory allows. The points are distributed over
    the JAX devices.
    """
    filled = list(points)
    if len(points) < batch:
        filled += [points[-1]] * (min(batch, most_together(check_memory(solver, points[0]))) - len(points))
    filled += [points[-1]] * (-len(filled) % jax.local_device_count())  # each device takes as many
    together = jax.tree.map(lambda *x: np.stack([np.asarray(v, float) for v in x]), *map(solver.point, filled))
    methods: Sequence[TrainingMethod | None] = [None] * len(points)
    if solver.quadrature:
        kind = integrals_of(solver.training)
        found, methods = settle(lambda nodes: solver.forward_passes(together, nodes=nodes), kind, len(filled))
    else:
        found = jax.tree.map(np.asarray, solver.forward_passes(together))
    made = []
    for k, how in enumerate(methods[: len(points)]):
        order, observables, finite = jax.tree.map(lambda x, k=k: x[k], found)
        made.append(Trained.of(order, observables, finite, how))
    return made


def chunks(solver: Solver, points: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split points into groups whose order parameters fit into a modest fraction of the memory."""
    if not points:
        return
    entries = check_memory(solver, points[0])
    count = most_together(entries) if solver.setting.exact else 1
    for start in range(0, len(points), count):
        yield list(points[start : start + count])


def most_together(entries: int) -> int:
    """Return the number of forward passes that fit into memory together; entries: floats in the order parameters of
    one."""
    return max(1, min(256, int(BATCH_BYTES / (WORKING_COPIES * 8 * entries))))


def check_memory(solver: Solver, values: dict[str, Any]) -> int:
    """Return the number of floats in the order parameters; refuse absurd sizes before memory is allocated."""
    p = solver.point(values)
    sizes = {solver.setting.steps, *solver.setting.labels}
    longest = max((int(value) for name, value in values.items() if name in sizes), default=0)
    if longest > LONGEST:
        _check_entries(solver, values, longest)
    if isinstance(solver.training, SampledPass):
        steps = 1 if solver.setting.steps is None else int(values[solver.setting.steps])
        sides = solver.training.extents(p, steps).values()
        entries = solver.training.footprint(p, None) + sum(map(math.prod, sides))
    else:
        # asked of the compiled pass, so that what is traced here need not be traced again when it runs
        if solver.quadrature:
            results = jax.eval_shape(solver.forward_pass, p, nodes=integrals_of(solver.training).first)
        else:
            results = jax.eval_shape(solver.pass_of(values), p)
        entries = sum(math.prod(x.shape) for x in jax.tree.leaves(results))
        if isinstance(results[0], OrderByComponents):
            _check_entries(solver, values, results[0].entries)
        if integrals_of(solver.training) is OF_TRAITS and solver.quadrature:  # rows of a field at all values of a trait
            labels = labels_in(values, solver.setting.labels)
            entries += OF_TRAITS.most // 2 * (solver.times(values) * labels) ** 2
    _check_entries(solver, values, entries)
    return int(entries)


def _check_entries(solver: Solver, values: dict[str, Any], entries: int) -> None:
    """Refuse order parameters with too many floats."""
    if 8 * entries > MOST_BYTES:
        whole = ", ".join(f"{q.name}={values[q.name]}" for q in solver.setting.parameters if q.whole)
        raise ParameterError(
            f"{whole} needs about {8 * entries / 1e9:.0f} GB for its order parameters; choose smaller numbers"
        )


def check_finite(trained: Trained) -> None:
    """Refuse a training level that has diverged, or whose integrals have not converged."""
    if trained.failure is not None:
        raise NumericalError(trained.failure)


def _failure(trained: Trained) -> str | None:
    order = of_one_label(trained.order)
    for name, value in (*trained.observables.items(), *order.items()):
        if not np.isfinite(value).all():
            return f"diverged at step {trained.finite} ({name} is not finite); try a smaller step or fewer steps"
    try:
        check_settled(trained.method)
    except NumericalError as error:
        return str(error)
    exploded = []
    for name, value in trained.observables.items():
        series = np.abs(np.atleast_1d(value))
        series = series.max(axis=tuple(range(1, series.ndim)))
        exploded += [(int(t), name) for t in np.flatnonzero(~(series <= GROWTH * max(1.0, series[0])))[:1]]
    if exploded:
        step, name = min(exploded)
        return f"diverged at step {step} ({name} explodes); try a smaller step or fewer steps"
    for name, value in order.items():
        if name.kind != "C" or not value.size:
            continue
        squares = np.abs(np.diagonal(value))
        if not squares.max() <= GROWTH * max(1.0, squares[0]):
            return f"diverged within {trained.finite} steps ({name} explodes); try a smaller step or fewer steps"
    return None
