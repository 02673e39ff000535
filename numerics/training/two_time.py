"""Two-time functions of a solution: the forward pass again, for those that are asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.modules import Solver
from numerics.precision import in_float64
from numerics.runtime.interface import SampledTraining, SampledTwoTime, TwoTimeOf
from numerics.runtime.two_time import Wanted, with_own
from numerics.training.quadrature import check_settled, integrals_of, settle
from numerics.training.sampling import Sampling, sampled_pass
from numerics.training.trained import MOST_BYTES, WORKING_COPIES
from numerics.two_time import Name, NoTwoTime, TwoTime, checked, finished, shown


@in_float64
def two_time_functions(
    solver: Solver, values: dict[str, Any], wanted: Wanted, sampling: Sampling | None
) -> dict[Name, TwoTime]:
    """Those that are wanted. sampling: how the rest was sampled, where it was, so that the same sites are taken."""
    wanted = checked(solver.setting, wanted)
    if not wanted:
        return {}
    offer = solver.two_time
    for name in wanted:
        if name in offer.refused:
            raise NoTwoTime(f"{shown(name)} is not given: {offer.refused[name]}")
    p = solver.point(values)
    if isinstance(offer, SampledTwoTime):
        assert sampling is not None, "a sampled setting is solved by sampling"
        responses = any(kind == "R" for kind, _, _ in wanted)
        kicks = tuple(("K", name, name) for name in offer.remembered) if responses else ()
        found = sampled_pass(_asked(offer, (*wanted, *kicks)), p, sampling, lambda fraction, text: None)
        table, errors = _by_name(found.observables), _by_name(found.errors)
        table = {name: np.asarray(with_own(name, value)) for name, value in table.items()}
        return {name: finished(solver.setting, name, _finite(name, table), errors[name]) for name in wanted}
    integrals = integrals_of(solver.training)
    _check_memory(offer, wanted, p, (integrals.first,) if solver.quadrature else ())
    moved = 0.0
    if solver.quadrature:
        run = _with_integrals(offer, wanted)
        (results, _, _), (method,) = settle(lambda nodes: (*run(p, nodes), {}, 0), integrals)
        check_settled(method)
        moved = method["quadrature_error"]
    else:
        results = jax.tree.map(np.asarray, _exactly(offer, wanted)(p))
    return {name: finished(solver.setting, name, _finite(name, results), moved=moved) for name in wanted}


def _by_name(table: Mapping[Any, np.ndarray]) -> dict[Name, np.ndarray]:
    return dict(table)


def _finite(name: Name, table: Mapping[Any, np.ndarray]) -> np.ndarray:
    if not np.all(np.isfinite(table[name])):
        raise NumericalError(f"{shown(name)} is not finite; try a smaller step or fewer steps")
    return table[name]


def _check_memory(offer: TwoTimeOf, wanted: Wanted, p: Any, nodes: tuple[int, ...]) -> None:
    """Refuse sizes that cannot be meant before any array is made."""
    results = jax.eval_shape(lambda p: offer.forward_pass(p, *nodes, wanted), p)
    entries = sum(math.prod(x.shape) for x in jax.tree.leaves(results))
    if 8 * WORKING_COPIES * entries > MOST_BYTES:
        names = ", ".join(map(shown, wanted))
        raise ParameterError(f"{names} take about {8 * entries / 1e9:.0f} GB; ask for fewer, or take fewer steps")


@lru_cache(maxsize=64)
def _exactly(offer: TwoTimeOf, wanted: Wanted) -> jax.stages.Wrapped:
    return jax.jit(lambda p: offer.forward_pass(p, wanted)[0])


@lru_cache(maxsize=64)
def _with_integrals(offer: TwoTimeOf, wanted: Wanted) -> jax.stages.Wrapped:
    return jax.jit(lambda p, nodes: offer.forward_pass(p, nodes, wanted)[:1], static_argnums=1)


@lru_cache(maxsize=64)
def _asked(offer: SampledTwoTime, wanted: Wanted) -> SampledTraining:
    """A sampled pass whose observables are the two-time functions."""

    def forward_pass(p: Any, normals: Any, rank: int | None = None, tolerance: Any = 1e-12) -> Any:
        return offer.forward_pass(p, normals, rank, tolerance, wanted)

    def moments_of(p: Any, kept: Any) -> Any:
        return {}

    def order_parameters(moments: Any, p: Any, tolerance: Any) -> Any:
        return {}

    return SampledTraining(
        forward_pass,
        lambda p: {},
        lambda p, rank: offer.shapes(p, rank, wanted),
        moments_of,
        order_parameters,
        lambda p, rank: offer.footprint(p, rank, wanted),
        offer.groups,
        offer.paired,
        "slopes along random kicks",
    )
