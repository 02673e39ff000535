"""The sampled forward pass: normals for many sites, replicas that fit into memory, means, errors and bias.

A replica is a forward pass over some sites. Its order parameters are means over those sites, so they carry an error
of order sites^(-1/2) and, because they feed back into the laws, a bias of order 1/sites. Replicas are independent:
their mean has the smaller error, their spread says how large it is, and passes over half of the sites show the bias,
which is then taken off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.progress import Report
from numerics.runtime.interface import Array, SampledTraining
from numerics.runtime.point import Point

DEFAULT_SAMPLES = 100_000
REPLICAS = 20
SITES_BYTES = 1.5e9
"""What the sites of one replica may take."""
WORKING_COPIES = 3
"""A pass takes about so many times what it keeps for each site."""
DRAWS = ("matched", "antithetic", "plain", "sobol")
"""How normals are drawn: in pairs of opposite sign with their second moments made exact, in such pairs, independently,
or from a scrambled Sobol sequence with second moments made exact."""
RESOLVED = 10.0
"""Noises that earlier ones determine, but for so many times 1/sites of their variance, carry no response."""
MOST_LOST = 0.02
"""Share of the variance of a field that may be left out because there is no room for more directions."""
WIDEST_SPAN = 96
"""Directions of the past that are kept unless the user asks for more."""
DROPPED = 2.0
"""A direction with less than so many times 1/sites of a field's variance is left out: sampling cannot resolve it, and
its answers to the noise would be noise themselves."""


@dataclass(frozen=True)
class Sampling:
    """How a sampled pass is made. samples: sites over all replicas. rank: most directions of the past. tolerance:
    share of its variance below which a direction is left out; by the number of sites if None."""

    samples: int = DEFAULT_SAMPLES
    seed: int = 0
    draws: str = "matched"
    rank: int | None = None
    tolerance: float | None = None
    debias: bool = True


K = TypeVar("K")
Order = dict[tuple[Any, ...], np.ndarray]
"""Order parameters, or what they are made of, by ("C", a, b), ("R", a, b), ("M", i) and the like."""


@dataclass(frozen=True)
class Sampled:
    """Order parameters of all replicas together, then without each of them, for errors by the jackknife.

    coarse: the same from passes over half of the sites, for the bias; empty if it is not wanted. errors: standard
    errors of the observables.
    """

    fine: tuple[Order, ...]
    coarse: tuple[Order, ...]
    observables: dict[str, np.ndarray]
    finite: int
    errors: dict[str, np.ndarray]
    method: dict[str, Any]


def sampled_pass(training: SampledTraining, p: Point, how: Sampling, tell: Report) -> Sampled:
    """The training level by independent replicas of a sampled forward pass, at parameter values and data p."""
    if how.draws not in DRAWS:
        raise ParameterError(f"draws={how.draws} is not known; it must be one of {', '.join(DRAWS)}")
    rank = how.rank or WIDEST_SPAN
    shapes = training.shapes(p, rank)
    sites, count = _plan(training.footprint(p, rank), how.samples)
    forward = compiled(training.forward_pass)
    tolerance = DROPPED / sites if how.tolerance is None else how.tolerance
    wholes: list[_Pass] = []
    halves: list[_Pass] = []
    for number in range(count):
        normals = draw(training.groups, shapes, sites, (how.seed, number), how.draws)
        wholes.append(_Pass.of(forward(p, normals, rank=rank, tolerance=tolerance)))
        if how.debias:
            parts = [{name: _part(x, k) for name, x in normals.items()} for k in (0, 1)]
            parts = [matched(training.groups, h) if how.draws in ("matched", "sobol") else h for h in parts]
            passes = [_Pass.of(forward(p, h, rank=rank, tolerance=tolerance)) for h in parts]
            halves.append(_Pass.mean(passes))
        tell((number + 1) / count, f"sampling, replica {number + 1} of {count}")
    lost = max(one.lost for one in (*wholes, *halves))
    _check_room(wholes, rank, lost)
    make = compiled(training.order_parameters)
    kept = RESOLVED / sites if how.tolerance is None else how.tolerance

    def orders(passes: list[_Pass]) -> tuple[Order, ...]:
        """Order parameters of all replicas, and then without each of them."""
        tables = [one.moments for one in passes]
        every = {name: np.mean([t[name] for t in tables], axis=0) for name in tables[0]}
        return tuple(_arrays(make(m, p, tolerance=kept)) for m in (every, *_without_one(tables)))

    fine = orders(wholes)
    coarse = orders(halves) if halves else ()
    observables = [
        whole.observables if not halves else extrapolated_table(whole.observables, halves[k].observables)
        for k, whole in enumerate(wholes)
    ]
    return Sampled(
        fine,
        coarse,
        {k: np.mean([o[k] for o in observables], axis=0) for k in observables[0]},
        min(one.finite for one in (*wholes, *halves)),
        {k: stderr([o[k] for o in observables]) for k in observables[0]},
        {
            "method": "sampled forward pass",
            "responses": training.responses,
            "samples": count * sites,
            "replicas": count,
            "seed": how.seed,
            "draws": how.draws,
            "bias": "order 1/sites taken off by passes over halves" if how.debias else "not taken off",
            "directions": max(one.directions for one in wholes),
            "variance_left_out": float(lost),
        },
    )


def _plan(footprint: int, samples: int) -> tuple[int, int]:
    """Sites of each replica, a multiple of eight because of signs and halves, and the number of replicas."""
    most = max(8, int(SITES_BYTES / (8 * WORKING_COPIES * footprint)))
    sites = max(8, 8 * math.ceil(samples / REPLICAS / 8))
    if sites <= most:
        return sites, REPLICAS
    sites = 8 * (most // 8)
    return sites, math.ceil(samples / sites)


@dataclass(frozen=True)
class _Pass:
    moments: Order
    observables: dict[str, np.ndarray]
    finite: int
    lost: float
    directions: int

    @staticmethod
    def of(result: Any) -> _Pass:
        moments, observables, finite, report = result
        return _Pass(_arrays(moments), _arrays(observables), int(finite), float(report.lost), int(report.directions))

    @staticmethod
    def mean(passes: list[_Pass]) -> _Pass:
        """Means over several passes, and the worst of their reports."""

        def over(tables: list[dict[K, np.ndarray]]) -> dict[K, np.ndarray]:
            return {name: np.mean([t[name] for t in tables], axis=0) for name in tables[0]}

        return _Pass(
            over([p.moments for p in passes]),
            over([p.observables for p in passes]),
            min(p.finite for p in passes),
            max(p.lost for p in passes),
            passes[0].directions,
        )


def extrapolated_table(fine: Mapping[K, np.ndarray], coarse: Mapping[K, np.ndarray]) -> dict[K, np.ndarray]:
    """Twice the value of all sites minus that of halves: a bias of order 1/sites drops out."""
    return {name: 2 * value - coarse[name] for name, value in fine.items()}


def _without_one(tables: list[dict[K, np.ndarray]]) -> list[dict[K, np.ndarray]]:
    """The means over all replicas but one."""
    count = len(tables)
    total = {name: np.sum([t[name] for t in tables], axis=0) for name in tables[0]}
    return [{name: (total[name] - t[name]) / (count - 1) for name in total} for t in tables]


def _arrays(table: Mapping[K, Any]) -> dict[K, np.ndarray]:
    return {name: np.asarray(value) for name, value in table.items()}


def stderr(values: list[np.ndarray]) -> np.ndarray:
    """The standard error of the mean of replicas."""
    found: np.ndarray = np.std(values, axis=0, ddof=1) / math.sqrt(len(values))
    return found


def _check_room(passes: list[_Pass], rank: int, lost: float) -> None:
    full = max(one.directions for one in passes) >= rank
    if full and lost > MOST_LOST:
        raise NumericalError(
            f"{rank} directions of the past are too few: {lost:.1%} of the variance of a field is left out; "
            f"raise --rank, for instance to {2 * rank}, or take fewer steps or samples"
        )


# -- normals


def draw(
    groups: tuple[tuple[str, ...], ...], shapes: dict[str, tuple[int, ...]], sites: int, seed: tuple[int, ...], how: str
) -> dict[str, Array]:
    """Standard normals for so many sites, by name; the same seed gives the same numbers."""
    rng = np.random.default_rng(seed)
    made: dict[str, np.ndarray] = {}
    for names in groups:
        widths = [math.prod(shapes[name]) for name in names]
        signs = _signs(len(names), how)
        table = _table(rng, sites // len(signs), sum(widths), how)
        stops = np.cumsum([0, *widths])
        for k, name in enumerate(names):
            part = table[:, None, stops[k] : stops[k + 1]] * signs[None, :, k, None]
            made[name] = part.reshape(sites, *shapes[name])
    made.update(
        {
            name: rng.standard_normal((sites, *shape))
            for name, shape in sorted(shapes.items())
            if not any(name in group for group in groups)
        }
    )
    found = matched(groups, made) if how in ("matched", "sobol") else made
    return {name: jnp.asarray(x) for name, x in found.items()}


def _table(rng: np.random.Generator, sites: int, width: int, how: str) -> np.ndarray:
    if how == "sobol":
        # slow to load, and no other way of drawing needs it
        from scipy.special import ndtri
        from scipy.stats import qmc

        points = qmc.Sobol(width, scramble=True, rng=rng).random(sites)
        found: np.ndarray = ndtri(np.clip(points, 1e-12, 1 - 1e-12))
        return found
    return rng.standard_normal((sites, width))


def _signs(kinds: int, how: str) -> np.ndarray:
    """Signs with which the same numbers are used again, for each kind of normal of a site: products of an odd number
    of kinds cancel, and for two kinds or three products of two as well."""
    if how == "plain":
        return np.ones((1, kinds))
    if how == "antithetic" or kinds == 1:
        return np.array([[1.0], [-1.0]]) * np.ones((1, kinds))
    rows = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], float)
    return rows[:, np.arange(kinds) % 2] if kinds != 3 else np.concatenate([rows, rows[:, :1] * rows[:, 1:]], axis=1)


def matched(groups: tuple[tuple[str, ...], ...], normals: Mapping[str, Array]) -> dict[str, np.ndarray]:
    """The normals of each group of sites turned and stretched so that their second moments are exactly those of
    independent standard normals; where there are too few sites for that they are left alone."""
    found = {name: np.asarray(x) for name, x in normals.items()}
    for names in groups:
        parts = [found[name].reshape(len(found[name]), -1) for name in names]
        table = np.concatenate(parts, axis=1)
        sites, width = table.shape
        if sites < 4 * width:
            continue
        factor = np.linalg.cholesky(table.T @ table / sites)
        table = np.linalg.solve(factor, table.T).T
        start = 0
        for name, part in zip(names, parts, strict=True):
            found[name] = table[:, start : start + part.shape[1]].reshape(found[name].shape)
            start += part.shape[1]
    return found


def _part(normals: Array, half: int) -> Array:
    """One half of the sites, pairs kept together."""
    middle = len(normals) // 2
    return normals[:middle] if half == 0 else normals[middle:]


@lru_cache(maxsize=64)
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a generated module, compiled once for each set of whole numbers and each rank."""
    ranked = ("rank",) if "rank" in signature(function).parameters else ()
    return jax.jit(function, static_argnames=ranked)
