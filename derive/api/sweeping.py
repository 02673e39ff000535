"""A grid of problems as units of work, and the results that are made of what comes back."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derive.api.options import times_to_watch
from derive.api.solvers import Source
from derive.errors import DeriveError, NumericalError, ParameterError
from derive.problems import Grid, Problem
from derive.results import Comparison, Simulation, Solution, Sweep, compare
from derive.results.made import fingerprints, versions
from derive.sweeps.journal import About, Journal, opened
from derive.sweeps.units import Code, Found, Unit, read, remember, simulation_of, solution_of
from derive.sweeps.workers import Crew, Given, Here, Processes, cluster, run
from numerics.runtime.two_time import Wanted
from numerics.simulation import samples as finite_size

if TYPE_CHECKING:
    from numerics.modules import Solver

Progress = Callable[[float, str], None]
CHUNK = 16
"""Points of one shape that are one unit: solved side by side, kept and lost together."""
KINDS = ("solve", "simulate", "compare")
CORES = "cores"
"""As many processes as there are cores, once it pays to start them."""
PATIENCE = 10.0
"""Seconds that this process computes by itself before others are started, which takes each of them a few."""


@dataclass(frozen=True)
class Wish:
    """What is wanted at each point. path, overlaps and kernels are those of `Theory.solve` and `Theory.simulate`."""

    of: str
    size: int
    seeds: int
    seed: int
    samples: int | None = None
    rank: int | None = None
    backend: str = "numpy"
    path: Any = None
    overlaps: bool | None = None
    kernels: Wanted = ()

    def __post_init__(self) -> None:
        if self.of not in KINDS:
            raise ParameterError(f"of={self.of!r} is not known; it must be solve, simulate or compare")
        if self.of == "compare" and self.seeds < 2:
            raise ParameterError("seeds must be at least 2 to compare: one seed gives no standard error")

    @property
    def told(self) -> dict[str, Any]:
        """All that numbers depend on, but for how many samples there are: more samples extend fewer."""
        path = list(self.path) if isinstance(self.path, Sequence) else self.path
        common = {
            "seed": self.seed,
            "path": path,
            "overlaps": self.overlaps,
            "kernels": [list(k) for k in self.kernels],
        }
        solving = {"samples": self.samples, "rank": self.rank} if self.of != "simulate" else {}
        sampling = {"size": self.size, "backend": self.backend} if self.of != "solve" else {}
        return {**common, **solving, **sampling}


@dataclass(frozen=True)
class Workers:
    """Who computes. jobs: so many processes on this machine, or CORES; executor: any; on: a cluster,
    "dask:tcp://HOST:PORT". This process if none is given. journal: a file that keeps what is finished. shard: (k, n),
    only each n-th unit. most: processes that have memory, where it is CORES that was asked for."""

    jobs: int | str | None = None
    executor: Executor | None = None
    on: str | None = None
    journal: Path | None = None
    shard: tuple[int, int] | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.jobs, self.executor, self.on)) > 1:
            raise ParameterError("jobs, executor and on exclude each other: give one of them")
        if self.jobs is not None and self.jobs != CORES and (not isinstance(self.jobs, int) or self.jobs < 1):
            raise ParameterError(f"jobs={self.jobs}: give how many processes, at least one, or {CORES!r}")
        if self.shard is not None:
            part, parts = self.shard
            if not 1 <= part <= parts:
                raise ParameterError(f"shard {part}/{parts}: write K/N with K from 1 to N")
            if self.journal is None:
                raise ParameterError("a shard needs a journal of its own, which is what is joined afterwards")

    @property
    def number(self) -> int:
        """How many units are computed at once, as far as it is known."""
        if isinstance(self.jobs, int):
            return self.jobs
        return min(cores(), self.most or cores()) if self.jobs == CORES else 1

    @contextmanager
    def crew(self, tell: Progress | None) -> Iterator[Crew]:
        if self.on is not None:
            with cluster(self.on) as far:
                yield far
        elif self.executor is not None:
            yield Given(self.executor)
        else:
            yield Here(tell) if self.jobs is None else Processes(self.number)


@dataclass(frozen=True)
class Plan:
    """How much a sweep is, before it is computed. bytes: of the largest sample. seconds: of one unit on one worker, and
    of the first, with what is compiled for it.

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
    seconds: tuple[float, float] | None = None

    def expected(self, workers: int) -> float | None:
        """Seconds until all is done with so many workers; None if nothing was measured."""
        if self.seconds is None:
            return None
        left = self.units - self.done
        return 0.0 if not left else self.seconds[1] + self.seconds[0] * max(0, -(-left // workers) - 1)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a sentence that says what is kept and how to go on."""


@dataclass(frozen=True, eq=False)
class Work:
    """A sweep over a declaration: its units in an order that depends on nothing else, and its results."""

    source: Source
    grid: Grid
    asked: Wish

    # -- what is to be done

    @cached_property
    def _codes(self) -> dict[str, Code]:
        found = {}
        for problem in self.grid.problems:
            if problem.model.name not in found:
                files = tuple(sorted(self.source.files(problem.model).items()))
                code = Code(hashlib.sha256(repr(files).encode()).hexdigest()[:32], files)
                remember(code, self._solver(problem))
                found[problem.model.name] = code
        return found

    def _solver(self, problem: Problem) -> Solver:
        return self.source.solver(problem.model)

    @cached_property
    def about(self) -> About:
        """What the sweep is, for the first line of its journal."""
        values: dict[str, dict[Any, None]] = {}
        for problem in self.grid.problems:
            for name, value in problem.values.items():
                values.setdefault(name, {})[value] = None
        arrays = dict.fromkeys(tuple(fingerprints(problem.inputs).items()) for problem in self.grid.problems)
        first = self.grid.problems[0]
        return {
            "sweep": {"of": self.asked.of, "setting": first.model.setting},
            "declaration": hashlib.sha256(self.source.text(first.model).encode()).hexdigest()[:32],
            "code": {name: code.digest for name, code in self._codes.items()},
            "parameters": {name: list(row) for name, row in values.items()},
            "axes": {"axes": list(dict(self.grid.axes)), "layers": list(first.layers)},
            "data": {name: [digest] for row in arrays for name, digest in row}
            if len(arrays) == 1
            else {"data": [list(map(list, row)) for row in arrays]},
            "options": self.asked.told,
            "versions": versions(),
        }

    def units(self) -> list[Unit]:
        """All units that are known before anything is computed."""
        solving = [] if self.asked.of == "simulate" else list(self._solving())
        return [*solving, *([] if self.asked.of == "solve" else self._sampling())]

    def _unit(self, name: str, kind: str, places: Sequence[int], options: Mapping[str, Any], batch: int = 1) -> Unit:
        problems = [self.grid.problems[place] for place in places]
        points = tuple(dict(problem.inputs) for problem in problems)
        return Unit(name, kind, self._codes[problems[0].model.name], points, options, versions(), batch)

    def _solving(self) -> Iterator[Unit]:
        for name, places, batch in self._chunks:
            problem = self.grid.problems[places[0]]
            yield self._unit(name, "solve", places, self._solve_options(problem), batch)

    @cached_property
    def _chunks(self) -> list[tuple[str, list[int], int]]:
        """Points of one shape, so many at a time: name, places on the grid, and how many a full one has."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for place, problem in enumerate(self.grid.problems):
            groups.setdefault(problem.shapes, []).append(place)
        found = []
        for places in groups.values():
            exact = self._solver(self.grid.problems[places[0]]).setting.exact
            size = min(CHUNK, len(places)) if exact else 1
            for start in range(0, len(places), size):
                chunk = places[start : start + size]
                found.append((f"solve {chunk[0]:06d}", chunk, size))
        return found

    def _solve_options(self, problem: Problem) -> dict[str, Any]:
        asked, solver = self.asked, self._solver(problem)
        if asked.of == "compare":
            path = bool(times_to_watch(solver, problem.values, asked.path))
        else:
            path = solver.layered if asked.path is None else bool(asked.path)
        return {
            "samples": asked.samples,
            "seed": asked.seed,
            "rank": asked.rank,
            "layers": problem.layers,
            "path": path,
            "overlaps": asked.overlaps is not False,
            "two_time": asked.kernels,
        }

    def _sampling(self) -> Iterator[Unit]:
        for place, problem in enumerate(self.grid.problems):
            solver = self._solver(problem)
            finite_size.check_memory(solver, problem.values, self.asked.size)
            overlaps = solver.layered if self.asked.overlaps is None else self.asked.overlaps
            options = {
                "size": self.asked.size,
                "seed": self.asked.seed,
                "layers": problem.layers,
                "times": tuple(times_to_watch(solver, problem.values, self.asked.path)),
                "overlaps": True if self.asked.of == "compare" else overlaps,
                "two_time": self.asked.kernels,
                "backend": self.asked.backend,
            }
            yield from self._samples_of(place, options, "")

    def _samples_of(self, place: int, options: Mapping[str, Any], kind: str) -> Iterator[Unit]:
        for number in range(self.asked.seeds):
            yield self._unit(_sample(place, number, kind), "simulate", (place,), {**options, "number": number})

    def _smaller(self, journal: Journal) -> list[Unit]:
        """Samples at about half the size, where a comparison needs them: they take the corrections off moments."""
        units: list[Unit] = []
        for place, found in self._solutions(journal).items():
            size = self._half(place, found)
            if size is not None:
                layers = self.grid.problems[place].layers
                options = {"size": size, "seed": self.asked.seed + 1, "layers": layers, "backend": "numpy"}
                units += self._samples_of(place, options, SMALLER)
        return units

    def _half(self, place: int, found: Found) -> int | None:
        if "error" in found or all(layer.outliers for layer in found["layers"]):
            return None
        problem = self.grid.problems[place]
        return finite_size.smaller_size(self._solver(problem), problem.values, self.asked.size)

    # -- doing it

    def plan(self, workers: Workers, measured: bool) -> Plan:
        """How much there is to do. measured: compute the next unit twice, to say how long all will take; it is kept."""
        units = self.units()
        mine = _mine(units, workers.shard)
        journal = opened(workers.journal, self.about, write=measured)
        try:
            missing = [unit for unit in mine if unit.name not in journal.done]
            seconds = None
            if measured and missing:
                first = _timed(missing[0], journal if journal.path is not None else None)
                seconds = (_timed(missing[0], None), first)
        finally:
            journal.close()
        drawn = len(self.grid.problems) * self.asked.seeds if self.asked.of != "solve" else 0
        done = sum(unit.name in journal.done for unit in mine)
        return Plan(len(self.grid.problems), len(mine), done, drawn, self._largest_sample[0], seconds)

    @cached_property
    def _largest_sample(self) -> tuple[float, int | None]:
        """Bytes of the largest sample of a simulation, and how many of it fit into memory."""
        if self.asked.of == "solve":
            return 0.0, None
        found = {}
        for problem in self.grid.problems:
            solver = self._solver(problem)
            found[finite_size.needed_memory(solver, problem.values, self.asked.size)] = solver, problem
        solver, problem = found[max(found)]
        return max(found), finite_size.samples_at_once(solver, problem.values, self.asked.size)

    def _fitting(self, workers: Workers) -> Workers:
        """The workers, as many as have memory; more that were asked for are refused."""
        size, most = self._largest_sample
        if most is None or not workers.jobs or workers.number <= most:
            return workers
        if workers.jobs == CORES:
            return replace(workers, most=max(1, most))
        raise ParameterError(
            f"jobs={workers.jobs}: each sample needs about {size / 1e9:.3g} GB at these parameters, and {most} fit "
            "into the free memory; take fewer jobs"
        )

    def done(self, workers: Workers, progress: Progress | None) -> Sweep:
        """Compute what is missing, and everything as results."""
        units = self.units()
        workers = self._fitting(workers)
        journal = opened(workers.journal, self.about)
        watch = _Watch(progress, len(units))
        try:
            lost = self._compute(_mine(units, workers.shard), journal, workers, watch)
            if self.asked.of == "compare" and workers.shard is None:
                lost |= self._compute(self._smaller(journal), journal, workers, watch)
        except KeyboardInterrupt:
            raise Interrupted(_how_to_go_on(journal, units)) from None
        finally:
            journal.close()
        return self._swept(journal, lost)

    def _compute(self, units: Sequence[Unit], journal: Journal, workers: Workers, watch: _Watch) -> set[str]:
        missing = [unit for unit in units if unit.name not in journal.done]
        if not missing:
            return set()
        watch.start(missing)

        def kept(unit: Unit, line: str) -> None:
            journal.add(unit.name, line)
            watch.finished(unit)

        if workers.jobs == CORES:
            start = time.perf_counter()
            while missing and (time.perf_counter() - start < PATIENCE or len(missing) == 1):
                run(missing[:1], Here(watch.inside), kept)
                missing = missing[1:]
        if not missing:
            return set()
        with workers.crew(watch.inside) as crew:
            return set(run(missing, crew, kept))

    # -- what comes of it

    def _solutions(self, journal: Journal) -> dict[int, Found]:
        """By place on the grid, those that are there."""
        return {
            place: found
            for name, places, _ in self._chunks
            if name in journal.done
            for place, found in zip(places, read(journal.done[name]), strict=True)
        }

    def _swept(self, journal: Journal, lost: set[str]) -> Sweep:
        solved = {} if self.asked.of == "simulate" else self._solutions(journal)
        points: list[Solution | Simulation | Comparison] = []
        for place in range(len(self.grid.problems)):
            if self.asked.of == "solve":
                points.append(self._solution(place, solved, lost))
            elif self.asked.of == "simulate":
                points.append(self._simulation(place, journal, lost))
            else:
                points.append(self._comparison(place, solved, journal, lost))
        first = self.source.made(self.asked.of, self.grid.problems[0], self._options(self.asked.of))
        axes = dict(self.grid.axes)
        fixed = {name: value for name, value in first.parameters.items() if name not in axes}
        return Sweep(replace(first, parameters=fixed), axes, tuple(points))

    def _options(self, verb: str) -> dict[str, Any]:
        asked = self.asked
        common = {"seed": asked.seed, "path": asked.path, "kernels": asked.kernels}
        solving = {"samples": asked.samples, "rank": asked.rank} if verb != "simulate" else {}
        sampling: dict[str, Any] = {"size": asked.size, "seeds": asked.seeds} if verb != "solve" else {}
        if verb != "solve" and asked.backend != "numpy":
            sampling["backend"] = asked.backend
        return {**common, **solving, **sampling}

    def _solution(self, place: int, solved: Mapping[int, Found], lost: set[str]) -> Solution:
        problem = self.grid.problems[place]
        made = self.source.made("solve", problem, self._options("solve"))
        if place not in solved:
            name = next(name for name, places, _ in self._chunks if place in places)
            return Solution(made, None, (_missing(name in lost),))
        found = solution_of(solved[place], self._solver(problem), problem.inputs)
        return Solution(made, None, (str(found),)) if isinstance(found, NumericalError) else Solution.of(made, found)

    def _simulation(self, place: int, journal: Journal, lost: set[str], kind: str = "", size: int = 0) -> Simulation:
        problem = self.grid.problems[place]
        made = self.source.made("simulate", problem, {**self._options("simulate"), **({"size": size} if size else {})})
        names = [_sample(place, number, kind) for number in range(self.asked.seeds)]
        absent = [name for name in names if name not in journal.done]
        if absent:
            return Simulation(made, None, (_missing(bool(lost & set(absent))),))
        parts = [read(journal.done[name])[0] for name in names]
        found = simulation_of(parts, self._solver(problem), problem.inputs)
        return Simulation(made, None, (str(found),)) if isinstance(found, NumericalError) else Simulation(made, found)

    def _comparison(self, place: int, solved: Mapping[int, Found], journal: Journal, lost: set[str]) -> Comparison:
        theory = self._solution(place, solved, lost)
        simulation = self._simulation(place, journal, lost)
        half = self._half(place, solved[place]) if place in solved else None
        smaller = None if half is None else self._simulation(place, journal, lost, SMALLER, half)
        return compare(theory, simulation, smaller)


SMALLER = " at half the size"


def _sample(place: int, number: int, kind: str) -> str:
    return f"simulate {place:06d}{kind} sample {number:06d}"


def _mine(units: Sequence[Unit], shard: tuple[int, int] | None) -> Sequence[Unit]:
    return units if shard is None else units[shard[0] - 1 :: shard[1]]


def _missing(lost: bool) -> str:
    if lost:
        return "every worker that tried this point died of it, perhaps of too little memory; try it alone"
    return "this point is not computed yet: it belongs to another shard"


def _timed(unit: Unit, journal: Journal | None) -> float:
    """Seconds of a unit in this process."""
    from derive.sweeps.units import written

    start = time.perf_counter()
    line = written(unit)
    if journal is not None:
        journal.add(unit.name, line)
    return time.perf_counter() - start


def _how_to_go_on(journal: Journal, units: Sequence[Unit]) -> str:
    if journal.path is None:
        return "interrupted; nothing is kept without a journal (--journal FILE)"
    done = sum(unit.name in journal.done for unit in units)
    return f"interrupted with {done} of {len(units)} parts done, kept in {journal.path}; run the same again to go on"


def cores() -> int:
    """How many processes can work at once."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return os.cpu_count() or 1


def shard_of(text: str) -> tuple[int, int]:
    """K/N as two numbers."""
    part, slash, parts = text.partition("/")
    if not (slash and part.strip().isdigit() and parts.strip().isdigit()):
        raise DeriveError(f"shard {text}: write K/N, such as 2/8 for the second of eight")
    return int(part), int(parts)


class _Watch:
    """Progress of a sweep: how much is done, how fast, and how long it will take."""

    def __init__(self, progress: Progress | None, units: int) -> None:
        self.progress, self.units = progress, units
        self.missing = self.points = self.done = self.done_units = 0
        self.began = 0.0

    def start(self, missing: Sequence[Unit]) -> None:
        self.missing, self.done_units, self.done = len(missing), 0, 0
        self.points = sum(len(unit.points) for unit in missing)
        self.what = "points" if missing[0].kind == "solve" else "samples"
        self.began = time.perf_counter()
        if self.progress is not None:
            self.progress(0.0, "starting and compiling")

    @property
    def inside(self) -> Progress | None:
        """Progress within a unit that is computed in this process."""
        if self.progress is None:
            return None

        def tell(fraction: float, text: str) -> None:
            if self.progress is not None:
                self.progress((self.done_units + fraction) / max(1, self.missing), text)

        return tell

    def finished(self, unit: Unit) -> None:
        self.done_units += 1
        self.done += len(unit.points)
        if self.progress is None:
            return
        passed = time.perf_counter() - self.began
        rate = self.done / max(passed, 1e-9)
        left = (self.points - self.done) / rate
        self.progress(
            self.done_units / self.missing,
            f"{self.done} of {self.points} {self.what}, {rate:.3g} a second, {shown_time(left)} left",
        )


def shown_time(seconds: float) -> str:
    """A stretch of time for people."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
