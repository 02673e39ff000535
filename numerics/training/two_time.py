"""Two-time functions of a solution, from another forward pass on request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.modules import Solver
from numerics.runtime.keys import OrderKey
from numerics.runtime.rows import RowsPass
from numerics.runtime.samples import SampledPass
from numerics.runtime.two_time import Wanted, with_own
from numerics.support.precision import in_float64
from numerics.training.quadrature import check_settled, integrals_of, settle
from numerics.training.sampling import Sampling, sampled_pass
from numerics.training.trained import MOST_BYTES, WORKING_COPIES
from numerics.two_time import NoTwoTime, TwoTime, checked, finished


@in_float64
def two_time_functions(
    solver: Solver, values: dict[str, Any], wanted: Wanted, sampling: Sampling | None
) -> dict[OrderKey, TwoTime]:
    """Return the requested functions. sampling: how the solution was sampled, if it was, so that the same sites are
    used."""
    wanted = checked(solver.setting, wanted)
    if not wanted:
        return {}
    training, p = solver.training, solver.point(values)
    for name in wanted:
        if training.training.refusal(name):
            raise NoTwoTime(f"{name} is not given: {training.training.refusal(name)}")
    if isinstance(training, SampledPass):
        assert sampling is not None, "a sampled setting is solved by sampling"
        found = sampled_pass(
            _asked(training, _with_memories(training, wanted)), p, sampling, lambda fraction, text: None
        )
        table, errors = _by_name(found.observables), _by_name(found.errors)
        table = {name: np.asarray(with_own(name, value)) for name, value in table.items()}
        return {name: finished(solver.setting, name, _finite(name, table), errors[name]) for name in wanted}
    integrals = integrals_of(training)
    _check_memory(training, wanted, p, integrals.first if solver.quadrature else 1)
    moved = 0.0
    if solver.quadrature:
        run = _functions(training, wanted)
        (results, _, _), (method,) = settle(lambda nodes: (run(p, nodes), {}, 0), integrals)
        check_settled(method)
        moved = 0.0 if method.quadrature is None else method.quadrature.error
    else:
        results = jax.tree.map(np.asarray, _functions(training, wanted)(p, 1))
    return {name: finished(solver.setting, name, _finite(name, results), moved=moved) for name in wanted}


def _by_name(table: Mapping[Any, np.ndarray]) -> dict[OrderKey, np.ndarray]:
    return dict(table)


def _finite(name: OrderKey, table: Mapping[Any, np.ndarray]) -> np.ndarray:
    if not np.all(np.isfinite(table[name])):
        raise NumericalError(f"{name} is not finite; try a smaller step or fewer steps")
    return table[name]


def _with_memories(training: SampledPass, wanted: Wanted) -> Wanted:
    """Return the request, to which responses add impulses in all noises of memory terms."""
    if not any(kind == "R" for kind, _, _ in wanted):
        return wanted
    noises = dict.fromkeys(memory.noise for product in training.training.products for memory in product.memories)
    return (*wanted, *(OrderKey("K", name, name) for name in noises))


def _check_memory(training: RowsPass, wanted: Wanted, p: Any, nodes: int) -> None:
    """Refuse absurd sizes before memory is allocated."""
    results = jax.eval_shape(lambda p: training.two_time(p, wanted, nodes), p)
    entries = sum(math.prod(x.shape) for x in jax.tree.leaves(results))
    if 8 * WORKING_COPIES * entries > MOST_BYTES:
        names = ", ".join(map(str, wanted))
        raise ParameterError(f"{names} take about {8 * entries / 1e9:.0f} GB; ask for fewer, or take fewer steps")


@lru_cache(maxsize=64)
def _functions(training: RowsPass, wanted: Wanted) -> jax.stages.Wrapped:
    return jax.jit(lambda p, nodes: training.two_time(p, wanted, nodes)[0], static_argnums=1)


@lru_cache(maxsize=64)
def _asked(training: SampledPass, wanted: Wanted) -> SampledPass:
    """A sampled pass whose observables are the two-time functions."""
    return SampledPass(training.training, wanted)
