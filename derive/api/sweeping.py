"""Sweeps: workers, plan, execution of missing units, and results."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from derive.api.cutting import Cut, names_of
from derive.api.gathering import Gathered, solutions
from derive.api.options import several, wanted_kernels
from derive.api.solvers import DeclarationSource
from derive.errors import ParameterError
from derive.inputs.problems import aligned, array_names, grid_of
from derive.language.family import Family
from derive.language.model import Model
from derive.results import Sweep
from derive.support.interrupts import check, saying
from derive.sweeps.journal import Journal, opened
from derive.sweeps.units import Unit, UnitResults, results_of
from derive.sweeps.watching import Progress, Watch
from derive.sweeps.workers import Crew, GivenExecutor, Here, Processes, cluster, run
from numerics.options import CORES, Options, SweepOptions
from numerics.simulation import samples as finite_size


@dataclass(frozen=True)
class Workers:
    """The workers that the options of a sweep request: this process by default.

    most: how many processes memory allows, if one per core was requested.
    """

    options: SweepOptions
    most: int | None = None

    @property
    def number(self) -> int:
        """The number of units computed concurrently, if known."""
        jobs = self.options.jobs
        if jobs == CORES:
            return min(cores(), self.most or cores())
        return 1 if jobs is None else int(jobs)

    @contextmanager
    def crew(self, tell: Progress | None) -> Iterator[Crew]:
        """Start the workers and yield them."""
        options = self.options
        if options.on is not None:
            with cluster(options.on) as far:
                yield far
        elif options.executor is not None:
            yield GivenExecutor(options.executor)
        else:
            yield Here(tell) if options.jobs is None else Processes(self.number)


def cores() -> int:
    """Return the number of available cores."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return os.cpu_count() or 1


PATIENCE = 10.0
"""Seconds that this process computes alone before it starts workers, each of which takes a few to start."""


@dataclass(frozen=True)
class UnitTimes:
    """Seconds for units of one kind: the first, which includes compilation, and the others. left: number of missing
    units."""

    first: float
    other: float
    left: int

    def expected(self, workers: int) -> float:
        """Return the seconds until all are done with `workers` workers."""
        return 0.0 if not self.left else self.first + self.other * max(0, -(-self.left // workers) - 1)


@dataclass(frozen=True)
class Plan:
    """The size of a sweep before it is computed.

    bytes: the memory of the largest sample. measured: the times per unit of solving and of sampling, if they were
        measured.

    >>> import derive
    >>> from derive.api.example import SPIKE
    >>> derive.load(SPIKE).plan(strength=[0.5 + k for k in range(20)]).units
    2
    """

    points: int
    units: int
    done: int
    samples: int = 0
    bytes: float = 0.0
    measured: tuple[UnitTimes, ...] = ()

    def expected(self, workers: int) -> float | None:
        """Return the seconds until everything is done with `workers` workers; None if nothing was measured."""
        return sum(one.expected(workers) for one in self.measured) if self.measured else None


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C, with a sentence on what is saved and how to resume."""


@dataclass(frozen=True, eq=False)
class Sweeping:
    """A sweep cut into units, and its workers."""

    cut: Cut
    workers: Workers

    def plan(self, measured: bool) -> Plan:
        """Return the size of the sweep.

        measured: compute the next unit of each kind to estimate the time; these units are stored if there is a journal.
        """
        share = self.cut.share(self.workers.options.part)
        journal = opened(self.workers.options.journal_path, self.cut.about, write=measured)
        try:
            times = self._measured(journal) if measured else ()
        finally:
            journal.close()
        names = names_of(share)
        done = 0 if journal.path is None else sum(name in journal.done for name in names)
        points = len(self.cut.grid.problems)
        return Plan(points, len(names), done, len(share.samples), self._largest_sample[0], times)

    def _measured(self, journal: Journal) -> tuple[UnitTimes, ...]:
        share = self.cut.share(self.workers.options.part)
        times, stored = [], int(journal.path is not None)
        solving = self._missing(self.cut.solving(share), journal)
        if solving:
            first = _timed(solving[0], journal)
            times.append(UnitTimes(first, _timed(solving[0], journal), len(solving) - stored))
        solved = solutions(self.cut, journal) if self.cut.of == "compare" else {}
        drawable = replace(share, samples=tuple(s for s in share.samples if not solved or s[0] in solved))
        sampling = self._missing(self.cut.sampling(drawable, solved), journal)
        if sampling:
            seconds = _timed(sampling[0], journal)
            left = sum(name not in journal.done for name in names_of(replace(share, chunks=())))
            times.append(UnitTimes(seconds, seconds, left + 1 - stored))
        return tuple(times)

    @cached_property
    def _largest_sample(self) -> tuple[float, int | None]:
        """Return the bytes of the largest sample of a simulation, and how many fit into memory."""
        if self.cut.of == "solve":
            return 0.0, None
        by_shape = {}
        for problem in self.cut.grid.problems:
            solver = self.cut.solver(problem)
            by_shape[finite_size.needed_memory(solver, problem.values, self.cut.options.size)] = solver, problem
        solver, problem = by_shape[max(by_shape)]
        return max(by_shape), finite_size.samples_at_once(solver, problem.values, self.cut.options.size)

    def _fitting(self) -> Workers:
        """Return the workers, as many as memory allows; raise if more were requested explicitly."""
        workers = self.workers
        size, most = self._largest_sample
        if most is None or not workers.options.jobs or workers.number <= most:
            return workers
        if workers.options.jobs == CORES:
            return replace(workers, most=max(1, most))
        raise ParameterError(
            f"jobs={workers.options.jobs}: each sample needs about {size / 1e9:.3g} GB at these parameters, and {most} "
            "fit into the free memory; take fewer jobs"
        )

    def done(self, progress: Progress | None) -> Sweep:
        """Compute the missing units; return all results."""
        cut, workers = self.cut, self._fitting()
        share = cut.share(workers.options.part)
        if cut.of != "solve":
            self._check_memory()
        journal = opened(workers.options.journal_path, cut.about)
        names = names_of(share)
        watch = Watch(progress, sum(name not in journal.done for name in names))
        try:
            with saying(lambda: _how_to_go_on(journal, names)):
                lost = self._compute(cut.solving(share), journal, workers, watch)
                if cut.of == "simulate":
                    lost |= self._compute(cut.sampling(share, {}), journal, workers, watch)
                elif cut.of == "compare":
                    solved = solutions(cut, journal)
                    units = [*cut.sampling(share, solved), *cut.smaller(share, solved)]
                    lost |= self._compute(units, journal, workers, watch)
        except KeyboardInterrupt:
            raise Interrupted(_how_to_go_on(journal, names)) from None
        finally:
            journal.close()
        return Gathered(cut, journal, frozenset(lost)).sweep()

    def _check_memory(self) -> None:
        """Raise for samples that do not fit into memory before anything is computed."""
        for problem in self.cut.grid.problems:
            finite_size.check_memory(self.cut.solver(problem), problem.values, self.cut.options.size)

    def _compute(self, units: Sequence[Unit], journal: Journal, workers: Workers, watch: Watch) -> set[str]:
        missing = self._missing(units, journal)
        if not missing:
            return set()
        watch.start(missing)

        def kept(unit: Unit, results: UnitResults) -> None:
            journal.add(unit.name, results)
            watch.finished(unit)
            check()

        if workers.options.jobs == CORES:
            start = time.perf_counter()
            while missing and (time.perf_counter() - start < PATIENCE or len(missing) == 1):
                run(missing[:1], Here(watch.inside), kept)
                missing = missing[1:]
        if not missing:
            return set()
        with workers.crew(watch.inside) as crew:
            return set(run(missing, crew, kept))

    @staticmethod
    def _missing(units: Sequence[Unit], journal: Journal) -> list[Unit]:
        return [unit for unit in units if unit.name not in journal.done]


def sweeping_of(
    source: DeclarationSource,
    declared: Model | Family,
    values: Mapping[str, Any],
    options: Options,
    sweep: SweepOptions,
) -> Sweeping:
    """Return the sweep over all given values of the parameters."""
    arrays = array_names(declared, values)
    grid = grid_of(declared, {name: (value,) if name in arrays else several(value) for name, value in values.items()})
    grid = replace(grid, problems=tuple(aligned(problem, options.align) for problem in grid.problems))
    options = replace(options, kernels=wanted_kernels(options.kernels))
    return Sweeping(Cut(source, grid, sweep.of, options), Workers(sweep))


def _timed(unit: Unit, journal: Journal) -> float:
    """Compute a unit in this process, store it, and return its seconds."""
    start = time.perf_counter()
    results = results_of(unit)
    if unit.name not in journal.done:
        journal.add(unit.name, results)
    return time.perf_counter() - start


def _how_to_go_on(journal: Journal, names: Sequence[str]) -> str:
    if journal.path is None:
        return "interrupted; nothing is kept without a journal (--journal FILE)"
    done = sum(name in journal.done for name in names)
    return f"interrupted with {done} of {len(names)} parts done, kept in {journal.path}; run the same command "
    "again to resume"
