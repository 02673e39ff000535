"""One point: its solution, its samples, and one set against the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from derive.api.options import Asked, times_to_watch
from derive.api.solvers import Source
from derive.errors import NumericalError
from derive.problems import Problem
from derive.results import Comparison, Simulation, Solution, compare
from numerics.modules import Solver
from numerics.progress import part
from numerics.runtime.two_time import Wanted
from numerics.simulation import samples as finite_size
from numerics.simulation.wanted import ends_of_all, ends_to_compare
from numerics.solver import solve

Progress = Callable[[float, str], None]
Path = bool | Sequence[int] | None


@dataclass(frozen=True)
class Drawn:
    """How samples are drawn: base size, how many, their seed, where arrays come from, and whether only the ends of
    their spectra are wanted."""

    size: int
    seeds: int
    seed: int
    backend: str | None = None
    ends_only: bool = False

    @property
    def told(self) -> Asked:
        """As a result says it."""
        backend = None if self.backend == "numpy" else self.backend
        eigenvalues = "ends" if self.ends_only else None
        return {
            "size": self.size,
            "seeds": self.seeds,
            "seed": self.seed,
            "backend": backend,
            "eigenvalues": eigenvalues,
        }


@dataclass(frozen=True, eq=False)
class Point:
    """A problem with its solver."""

    source: Source
    problem: Problem
    solver: Solver

    @classmethod
    def of(cls, source: Source, problem: Problem, progress: Progress | None) -> Point:
        return cls(source, problem, source.solver(problem.model, progress))

    def solved(
        self,
        *,
        samples: int | None,
        seed: int,
        rank: int | None,
        path: bool | None,
        overlaps: bool,
        kernels: Wanted,
        progress: Progress | None,
        memory: float | None = None,
        certify: bool | None = None,
    ) -> Solution:
        """The theory; options as for `Theory.solve`."""
        told = {"samples": samples, "seed": seed, "rank": rank, "path": path, "kernels": kernels}
        made = self.source.made("solve", self.problem, told)
        with _quietly():
            try:
                found = solve(
                    self.solver,
                    self.problem.inputs,
                    samples=samples,
                    seed=seed,
                    rank=rank,
                    layers=self.problem.layers,
                    path=path,
                    overlaps=overlaps,
                    two_time=kernels,
                    memory=None if memory is None else 1e9 * memory,
                    certify=certify,
                    progress=None if progress is None else part(progress, 0.1, 1.0),
                )
            except NumericalError as error:
                return Solution(made, None, (str(error),))
        return Solution.of(made, found)

    def simulated(
        self,
        drawn: Drawn,
        *,
        path: Path,
        overlaps: bool,
        kernels: Wanted,
        progress: Progress | None,
        ends: Mapping[str, int] | None = None,
    ) -> Simulation:
        """Samples; ends: by layer how many eigenvalues of either end, unless it is as many of each layer."""
        times = times_to_watch(self.solver, self.problem.values, path)
        listed = path if path is None or isinstance(path, bool) else [int(time) for time in path]
        made = self.source.made("simulate", self.problem, {**drawn.told, "path": listed, "kernels": kernels})
        if drawn.ends_only and ends is None:
            ends = ends_of_all(self.problem.layers)
        with _quietly():
            try:
                found = finite_size.simulate(
                    self.solver,
                    self.problem.inputs,
                    drawn.size,
                    drawn.seeds,
                    seed=drawn.seed,
                    layers=self.problem.layers,
                    times=times,
                    overlaps=overlaps,
                    ends=ends if drawn.ends_only else None,
                    two_time=kernels,
                    backend=drawn.backend or "numpy",
                    progress=None if progress is None else part(progress, 0.05, 1.0),
                )
            except NumericalError as error:
                return Simulation(made, None, (str(error),))
        return Simulation(made, found)

    def compared(
        self,
        drawn: Drawn,
        *,
        samples: int | None,
        rank: int | None,
        path: Path,
        kernels: Wanted,
        progress: Progress | None,
        certify: bool | None = None,
    ) -> Comparison:
        """Theory against samples. Where only the ends of spectra are wanted, the theory says how much of them."""
        solver, values = self.solver, self.problem.values
        finite_size.check_memory(solver, values, drawn.size)
        theory = self.solved(
            samples=samples,
            seed=drawn.seed,
            rank=rank,
            path=None if path is None else bool(times_to_watch(solver, values, path)),
            overlaps=True,
            kernels=kernels,
            progress=_part(progress, 0.05, 0.3),
            certify=certify,
        )
        ends = {} if theory.found is None else ends_to_compare(theory.found)
        share = _part(progress, 0.3, 0.9)
        simulation = self.simulated(drawn, path=path, overlaps=True, kernels=kernels, progress=share, ends=ends)
        smaller = None
        half = None if theory.found is None else half_size(self, theory.found.layers, drawn.size)
        if half is not None:
            less = Drawn(half, drawn.seeds, drawn.seed + 1, None, drawn.ends_only)
            share = _part(progress, 0.9, 1.0)
            smaller = self.simulated(less, path=False, overlaps=False, kernels=(), progress=share, ends=ends)
        return compare(theory, simulation, smaller)


def half_size(point: Point, layers: Sequence[Any], size: int) -> int | None:
    """The size of further samples that take the corrections off moments, where a comparison has moments."""
    if all(layer.outliers for layer in layers):
        return None
    return finite_size.smaller_size(point.solver, point.problem.values, size)


def _part(progress: Progress | None, low: float, high: float) -> Progress | None:
    return None if progress is None else part(progress, low, high)


@contextmanager
def _quietly() -> Iterator[None]:
    """Overflow ends in a sentence of ours, not in warnings of NumPy."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
