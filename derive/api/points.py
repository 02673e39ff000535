"""Solve, simulate and compare at one point."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from derive.api.options import times_to_watch, wanted_kernels
from derive.api.solvers import DeclarationSource
from derive.errors import NumericalError
from derive.inputs.problems import Problem
from derive.results import Comparison, Simulation, Solution, compare
from derive.support.progress import Progress
from numerics.modules import Solver
from numerics.options import Options
from numerics.simulation import samples as finite_size
from numerics.simulation.wanted import ends_of_all, ends_to_compare
from numerics.solution import Layer
from numerics.solver import solve
from numerics.support.progress import part


@dataclass(frozen=True, eq=False)
class ProblemPoint:
    """A problem with its solver."""

    source: DeclarationSource
    problem: Problem
    solver: Solver

    @classmethod
    def of(cls, source: DeclarationSource, problem: Problem, progress: Progress | None) -> ProblemPoint:
        return cls(source, problem, source.solver(problem.model, progress))

    def solved(self, options: Options, progress: Progress | None = None) -> Solution:
        """Return the solution of the theory."""
        options = replace(options, kernels=wanted_kernels(options.kernels))
        provenance = self.source.made("solve", self.problem, options)
        with _quietly():
            try:
                solution = solve(
                    self.solver,
                    self.problem.inputs,
                    replace(options, overlaps=options.overlaps is not False),
                    layers=self.problem.layers,
                    progress=_part(progress, 0.1, 1.0),
                )
            except NumericalError as error:
                return Solution.without_numbers(provenance, self.solver.about, str(error))
        return Solution.of(provenance, solution)

    def simulated(
        self, options: Options, progress: Progress | None = None, ends: Mapping[str, int] | None = None
    ) -> Simulation:
        """Return samples of the simulation. ends: the number of eigenvalues at either end of each layer's spectrum."""
        options = replace(options, kernels=wanted_kernels(options.kernels))
        times = times_to_watch(self.solver, self.problem.values, options.path)
        provenance = self.source.made("simulate", self.problem, options)
        if options.ends_only and ends is None:
            ends = ends_of_all(self.problem.layers)
        with _quietly():
            try:
                simulation = finite_size.simulate(
                    self.solver,
                    self.problem.inputs,
                    options.size,
                    options.seeds,
                    seed=options.seed,
                    layers=self.problem.layers,
                    times=times,
                    overlaps=self.solver.layered if options.overlaps is None else bool(options.overlaps),
                    ends=ends if options.ends_only else None,
                    two_time=tuple(options.kernels),
                    backend=options.backend,
                    progress=_part(progress, 0.05, 1.0),
                )
            except NumericalError as error:
                return Simulation.without_numbers(provenance, self.solver.about, str(error))
        return Simulation(**vars(simulation), made=provenance)

    def compared(self, options: Options, progress: Progress | None = None) -> Comparison:
        """Compare theory and samples; if only ends of spectra are requested, the theory determines their number."""
        solver, values = self.solver, self.problem.values
        finite_size.check_memory(solver, values, options.size)
        options = replace(options, overlaps=True)
        along = None if options.path is None else bool(times_to_watch(solver, values, options.path))
        theory = self.solved(replace(options, path=along), _part(progress, 0.05, 0.3))
        ends = {} if theory.failed else ends_to_compare(theory)
        simulation = self.simulated(options, _part(progress, 0.3, 0.9), ends)
        smaller = None
        half = None if theory.failed else half_size(self, theory.layers, options.size)
        if half is not None:
            less = replace(
                options, size=half, seed=options.seed + 1, path=False, overlaps=False, kernels=(), backend="numpy"
            )
            smaller = self.simulated(less, _part(progress, 0.9, 1.0), ends)
        return compare(theory, simulation, smaller)


def half_size(point: ProblemPoint, layers: Sequence[Layer], size: int) -> int | None:
    """Return the size of additional samples that extrapolate moments in 1/D, where a comparison has moments."""
    if all(len(layer.outliers) for layer in layers):
        return None
    return finite_size.smaller_size(point.solver, point.problem.values, size)


def _part(progress: Progress | None, low: float, high: float) -> Progress | None:
    return None if progress is None else part(progress, low, high)


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence NumPy's overflow warnings, since overflow is reported as an error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
