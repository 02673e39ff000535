"""A generated setting as one object, and its solution at given parameters."""

from __future__ import annotations

import importlib
import linecache
import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.bulk import Branch, atoms_of, support
from numerics.outliers import Outlier, find_outliers, match_replicas
from numerics.precision import in_float64

Progress = Callable[[float, str], None] | None
DEFAULT_SAMPLES = 100_000
REPLICAS = 20
MOST_BYTES = 8e9
"""Order parameters larger than this are refused."""


@dataclass(frozen=True)
class Solver:
    """The generated modules of one setting."""

    front: types.ModuleType
    training: types.ModuleType
    simulation: types.ModuleType
    probe: types.ModuleType | None
    bulk: types.ModuleType | None

    @property
    def name(self) -> str:
        return self.front.NAME

    def arguments(self, values: dict) -> tuple:
        """Parameter values in the order in which generated functions take them."""
        return tuple(int(values[name]) if whole else float(values[name]) for name, _, whole in self.front.PARAMETERS)

    @cached_property
    def forward_pass(self):
        """The training level, compiled once for each set of whole-number parameters."""
        whole = tuple(i for i, (_, _, is_whole) in enumerate(self.front.PARAMETERS) if is_whole)
        return jax.jit(self.training.forward_pass, static_argnums=whole)

    def branch(self, values: dict) -> Branch:
        """The physical branch of the bulk at these parameters."""
        return Branch(self.bulk, self.arguments(values))


_PARTS = ("training", "simulation", "probe", "bulk")


def load_solver(files: dict[str, str]) -> Solver:
    """Execute generated text in memory; nothing is written to disk."""
    modules = {}
    for name, text in files.items():
        if name.endswith(".py"):
            stem = name[:-3]
            label = f"<generated {stem}>"
            linecache.cache[label] = (len(text), None, text.splitlines(keepends=True), label)
            module = types.ModuleType(f"generated_in_memory_{stem}")
            exec(compile(text, label, "exec"), module.__dict__)  # noqa: S102 - our own generated source
            modules[stem] = module
    return Solver(modules["__init__"], *(modules.get(part) for part in _PARTS))


def load_built(name: str) -> Solver | None:
    """The setting as it stands in generated/; None if it has not been built."""
    try:
        front = importlib.import_module(f"generated.{name}")
    except ModuleNotFoundError:
        return None
    parts: dict[str, types.ModuleType | None] = {}
    for part in _PARTS:
        try:
            parts[part] = importlib.import_module(f"generated.{name}.{part}")
        except ModuleNotFoundError:
            parts[part] = None
    return Solver(front, **parts)


@dataclass(frozen=True)
class Solution:
    """What the theory says at given parameters. Errors are None where the result is exact."""

    setting: str
    parameters: dict
    bulk_edges: list[list[float]]
    outliers: list[float]
    outlier_errors: list[float] | None
    observables: dict[str, list[float]]
    observable_errors: dict[str, list[float]] | None
    diagnostics: dict
    order: dict[str, np.ndarray]
    solver: Solver

    def density(self, x: np.ndarray) -> np.ndarray:
        """The density of the bulk, atoms left out."""
        if self.solver.bulk is None:
            raise NumericalError(f"{self.setting} probes no matrix, so it has no density")
        return self.solver.branch(self.parameters).density(np.asarray(x, float), self.bulk_edges)


@in_float64
def solve(
    solver: Solver, values: dict, *, samples: int | None = None, seed: int = 0, progress: Progress = None
) -> Solution:
    """Order parameters, bulk and outliers. `samples` is the number of sampled sites where laws are nonlinear."""
    tell = progress or (lambda fraction, text: None)
    arguments = solver.arguments(values)
    tell(0.0, "training level")
    _check_memory(solver, arguments)
    if solver.front.LINEAR:
        order, observables, finite = solver.forward_pass(*arguments)
        order, observables, finite = _as_numpy(order), _as_numpy(observables), int(finite)
        replicas, errors = [], None
        method: dict[str, str | int] = {"method": "exact forward pass"}
    else:
        replicas = _sampled(solver, arguments, samples or DEFAULT_SAMPLES, seed, tell)
        finite = min(r[2] for r in replicas)
        order = {k: np.mean([r[0][k] for r in replicas], axis=0) for k in replicas[0][0]}
        observables = {k: np.mean([r[1][k] for r in replicas], axis=0) for k in replicas[0][1]}
        errors = {k: _stderr([r[1][k] for r in replicas]) for k in observables}
        method = {
            "method": "sampled forward pass",
            "samples": len(replicas) * _sites(samples or DEFAULT_SAMPLES),
            "replicas": len(replicas),
            "seed": seed,
        }
    _check_finite(observables, order, finite)
    edges, found, outlier_errors, spectral = [], [], None, {}
    if solver.bulk is not None:
        tell(0.7, "bulk and outliers")
        branch = solver.branch(values)
        edges = support(branch)
        atoms = atoms_of(branch, edges)
        excluded = [*edges, *((atom["at"], atom["at"]) for atom in atoms)]
        found = find_outliers(solver, order, arguments, branch, excluded)
        spectral = {
            "atoms": atoms,
            "residual": max((o.residual for o in found), default=0.0),
            "eigenvalue_condition": max((o.condition for o in found), default=1.0),
            "reduced": bool(solver.probe.REDUCED),
        }
        if replicas:
            each = [find_outliers(solver, r[0], arguments, branch, excluded) for r in replicas]
            outlier_errors = match_replicas([o.z for o in found], [[o.z for o in group] for group in each])
            if any(not math.isfinite(e) for e in outlier_errors):
                spectral["unsettled"] = (
                    "an outlier is so close to the edge that not all replicas have it; raise samples"
                )
                outlier_errors = [
                    e if math.isfinite(e) else abs(o.z - _nearest_edge(o, edges))
                    for e, o in zip(outlier_errors, found, strict=True)
                ]
    tell(1.0, "done")
    return Solution(
        solver.name,
        dict(values),
        [[float(a), float(b)] for a, b in edges],
        [float(o.z) for o in found],
        outlier_errors,
        {k: np.atleast_1d(v).tolist() for k, v in observables.items()},
        None if errors is None else {k: np.atleast_1d(v).tolist() for k, v in errors.items()},
        {**method, **spectral},
        order,
        solver,
    )


def _check_memory(solver: Solver, arguments: tuple) -> None:
    """Refuse sizes that cannot be meant before any array is made."""
    if not solver.front.LINEAR:
        entries = sum(math.prod(shape) for shape in solver.training.shapes(*arguments).values()) ** 2
    else:
        results = jax.eval_shape(lambda: solver.training.forward_pass(*arguments))
        entries = sum(math.prod(x.shape) for x in jax.tree.leaves(results))
    if 8 * entries > MOST_BYTES:
        whole = ", ".join(f"{n}={a}" for (n, _, w), a in zip(solver.front.PARAMETERS, arguments, strict=True) if w)
        raise ParameterError(
            f"{whole} needs about {8 * entries / 1e9:.0f} GB for its order parameters; take smaller numbers"
        )


def _nearest_edge(outlier: Outlier, edges: list) -> float:
    return min((e for pair in edges for e in pair), key=lambda e: abs(e - outlier.z))


def _as_numpy(table: dict) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in table.items()}


def _sites(samples: int) -> int:
    """Sites in each replica: even, because normals come in antithetic pairs."""
    return max(2, 2 * math.ceil(samples / REPLICAS / 2))


def _sampled(solver: Solver, arguments: tuple, samples: int, seed: int, tell) -> list:
    """Independent replicas of the sampled forward pass."""
    sites = _sites(samples)
    shapes = solver.training.shapes(*arguments)
    replicas = []
    for number, key in enumerate(jax.random.split(jax.random.key(seed), REPLICAS)):
        keys = jax.random.split(key, len(shapes))
        half = {
            name: jax.random.normal(k, (sites // 2, *shape), dtype=float)
            for k, (name, shape) in zip(keys, sorted(shapes.items()), strict=True)
        }
        normals = {name: jnp.concatenate([x, -x]) for name, x in half.items()}
        order, observables, finite = solver.forward_pass(*arguments, normals)
        replicas.append((_as_numpy(order), _as_numpy(observables), int(finite)))
        tell(0.7 * (number + 1) / REPLICAS, "sampling")
    return replicas


def _stderr(values: list[np.ndarray]) -> np.ndarray:
    return np.std(values, axis=0, ddof=1) / math.sqrt(len(values))


def _check_finite(observables: dict[str, np.ndarray], order: dict[str, np.ndarray], finite: int) -> None:
    for name, value in (*observables.items(), *order.items()):
        if not np.all(np.isfinite(value)):
            raise NumericalError(f"diverged at step {finite} ({name} is not finite); try a smaller step or fewer steps")
