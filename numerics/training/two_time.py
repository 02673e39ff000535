"""Two-time functions C[a, b](t, s) and R[a, b](t, s) of a solution, from a second forward pass with impulses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.modules import Solver
from numerics.runtime.rows import RowsPass
from numerics.runtime.samples import SampledPass
from numerics.runtime.two_time import Wanted, with_own
from numerics.support.precision import in_float64
from numerics.training.quadrature import check_settled, integrals_of, settle
from numerics.training.sampling import Sampling, sampled_pass
from numerics.training.trained import MOST_BYTES, WORKING_COPIES
from numerics.two_time import Name, NoTwoTime, TwoTime, checked, finished, shown


@in_float64
def two_time_functions(
    solver: Solver, values: dict[str, Any], wanted: Wanted, sampling: Sampling | None
) -> dict[Name, TwoTime]:
    """Return the requested two-time functions.

    Args:
        solver: the generated solver.
        values: parameter values and data.
        wanted: names of two-time functions.
        sampling: options of the sampled solution, so that the same sites are drawn; None without sampling.
    """
    wanted = checked(solver.setting, wanted)
    if not wanted:
        return {}
    training, p = solver.training, solver.point(values)
    for name in wanted:
        if training.training.refusal(name):
            raise NoTwoTime(f"{shown(name)} is not given: {training.training.refusal(name)}")
    if isinstance(training, SampledPass):
        assert sampling is not None, "a sampled setting is solved by sampling"
        sampled = sampled_pass(
            _asked(training, _with_memories(training, wanted)), p, sampling, lambda fraction, text: None
        )
        table, errors = _by_name(sampled.observables), _by_name(sampled.errors)
        table = {name: np.asarray(with_own(name, value)) for name, value in table.items()}
        return {name: finished(solver.setting, name, _finite(name, table), errors[name]) for name in wanted}
    integrals = integrals_of(training)
    _check_memory(training, wanted, p, integrals.first if solver.quadrature else 1)
    moved = 0.0
    if solver.quadrature:
        run = _functions(training, wanted)
        (results, _, _), (method,) = settle(lambda nodes: (run(p, nodes), {}, 0), integrals)
        check_settled(method)
        moved = method["quadrature_error"]
    else:
        results = jax.tree.map(np.asarray, _functions(training, wanted)(p, 1))
    return {name: finished(solver.setting, name, _finite(name, results), moved=moved) for name in wanted}


def _by_name(table: Mapping[Any, np.ndarray]) -> dict[Name, np.ndarray]:
    """Return a table whose keys are names of two-time functions."""
    return dict(table)


def _finite(name: Name, table: Mapping[Any, np.ndarray]) -> np.ndarray:
    """Return an array of a table; raise if it is not finite."""
    if not np.all(np.isfinite(table[name])):
        raise NumericalError(f"{shown(name)} is not finite; try a smaller step or fewer steps")
    return table[name]


def _with_memories(training: SampledPass, wanted: Wanted) -> Wanted:
    """Return the requested functions; for responses, with impulses in all noises of random matrices with memory."""
    if not any(kind == "R" for kind, _, _ in wanted):
        return wanted
    noises = dict.fromkeys(memory.noise for product in training.training.products for memory in product.memories)
    return (*wanted, *(("K", name, name) for name in noises))


def _check_memory(training: RowsPass, wanted: Wanted, p: Any, nodes: int) -> None:
    """Raise if the requested functions do not fit into memory."""
    results = jax.eval_shape(lambda p: training.two_time(p, wanted, nodes), p)
    entries = sum(math.prod(x.shape) for x in jax.tree.leaves(results))
    if 8 * WORKING_COPIES * entries > MOST_BYTES:
        names = ", ".join(map(shown, wanted))
        raise ParameterError(f"{names} take about {8 * entries / 1e9:.0f} GB; ask for fewer, or take fewer steps")


@lru_cache(maxsize=64)
def _functions(training: RowsPass, wanted: Wanted) -> jax.stages.Wrapped:
    """Return a compiled function that computes two-time functions."""
    return jax.jit(lambda p, nodes: training.two_time(p, wanted, nodes)[0], static_argnums=1)


@lru_cache(maxsize=64)
def _asked(training: SampledPass, wanted: Wanted) -> SampledPass:
    """Return a sampled pass whose observables are the two-time functions."""
    return SampledPass(training.training, wanted)
