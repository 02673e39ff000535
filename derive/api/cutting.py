"""Cut a grid of problems into units of work, in an order that depends on the sweep alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from derive.api.options import times_to_watch
from derive.api.points import ProblemPoint, half_size
from derive.api.solvers import DeclarationSource
from derive.inputs.problems import Grid, Problem
from derive.results.made import fingerprints, versions
from derive.sweeps.journal import About
from derive.sweeps.units import Found, SolverCode, Unit, remember, solution_of
from numerics.modules import Solver
from numerics.options import Options
from numerics.simulation import samples as finite_size
from numerics.simulation.wanted import ends_of_all, ends_to_compare
from numerics.solution import Prediction

CHUNK = 16
"""Points of one shape per unit; they are solved as one batch and stored together."""
SMALLER = " at half the size"


@dataclass(frozen=True)
class Chunk:
    """Grid points that are solved in one batch, with the name of their unit and the size of a full batch."""

    name: str
    places: tuple[int, ...]
    full: int


@dataclass(frozen=True)
class Share:
    """A part of the work: chunks to solve and samples to draw. A sample is a grid index and a sample number."""

    chunks: tuple[Chunk, ...]
    samples: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Cut:
    """A sweep over a declaration, cut into units.

    Samples of a comparison are drawn after the theory is solved, which determines what they need.
    """

    source: DeclarationSource
    grid: Grid
    of: str
    options: Options

    @cached_property
    def codes(self) -> dict[str, SolverCode]:
        """The generated code of each model, by its name."""
        codes = {}
        for problem in self.grid.problems:
            if problem.model.name not in codes:
                files = tuple(sorted(self.source.files(problem.model).items()))
                code = SolverCode(hashlib.sha256(repr(files).encode()).hexdigest()[:32], files)
                remember(code, self.solver(problem))
                codes[problem.model.name] = code
        return codes

    def solver(self, problem: Problem) -> Solver:
        return self.source.solver(problem.model)

    @cached_property
    def about(self) -> About:
        """Return the description of the sweep for the first line of its journal."""
        values: dict[str, dict[Any, None]] = {}
        for problem in self.grid.problems:
            for name, value in problem.values.items():
                values.setdefault(name, {})[value] = None
        arrays = dict.fromkeys(tuple(fingerprints(problem.inputs).items()) for problem in self.grid.problems)
        first = self.grid.problems[0]
        return {
            "sweep": {"of": self.of, "setting": first.model.setting},
            "declaration": hashlib.sha256(self.source.text(first.model).encode()).hexdigest()[:32],
            "code": {name: code.digest for name, code in self.codes.items()},
            "parameters": {name: list(row) for name, row in values.items()},
            "axes": {"axes": list(dict(self.grid.axes)), "layers": list(first.layers)},
            "data": {name: [digest] for row in arrays for name, digest in row}
            if len(arrays) == 1
            else {"data": [list(map(list, row)) for row in arrays]},
            "options": self.told,
            "versions": versions(),
        }

    @property
    def told(self) -> dict[str, Any]:
        """Return all options that affect numbers, except the number of samples, because additional samples extend a
        journal."""
        options = self.options
        numbers_depend_on: dict[str, Any] = {
            "seed": options.seed,
            "path": options.listed_path,
            "overlaps": options.overlaps,
        }
        numbers_depend_on["kernels"] = [list(name) for name in options.kernels]
        if self.of != "simulate":
            numbers_depend_on |= {"samples": options.samples, "rank": options.rank}
        if options.certify:
            numbers_depend_on["certify"] = True
        if self.of != "solve":
            numbers_depend_on |= {"size": options.size, "backend": options.backend}
            numbers_depend_on["eigenvalues"] = "ends" if options.ends_only else "all"
        return numbers_depend_on

    # -- parts of the work

    def share(self, shard: tuple[int, int] | None) -> Share:
        """Return all of the work, or the k-th of n parts of it.

        A part of a comparison has consecutive samples of as few points as possible, and solves those points; points
        shared by two parts are solved twice, with the same numbers.
        """
        chunks = () if self.of == "simulate" else self.chunks
        places = range(len(self.grid.problems)) if self.of != "solve" else ()
        samples = tuple((place, number) for place in places for number in range(self.options.seeds))
        if shard is None:
            return Share(chunks, samples)
        part, parts = shard
        if self.of != "compare":
            return Share(chunks[part - 1 :: parts], samples[part - 1 :: parts])
        mine = samples[len(samples) * (part - 1) // parts : len(samples) * part // parts]
        needed = {place for place, _ in mine}
        return Share(tuple(chunk for chunk in chunks if needed & set(chunk.places)), mine)

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """Points of one shape in batches."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for place, problem in enumerate(self.grid.problems):
            groups.setdefault(problem.shapes, []).append(place)
        chunks = []
        for places in groups.values():
            exact = self.solver(self.grid.problems[places[0]]).setting.exact
            size = min(CHUNK, len(places)) if exact else 1
            for start in range(0, len(places), size):
                chunk = tuple(places[start : start + size])
                chunks.append(Chunk(f"solve {chunk[0]:06d}", chunk, size))
        return tuple(chunks)

    # -- units

    def solving(self, share: Share) -> list[Unit]:
        return [self._unit(c.name, "solve", c.places, self._solve_options(c.places[0]), c.full) for c in share.chunks]

    def sampling(self, share: Share, solved: Mapping[int, Found]) -> list[Unit]:
        """Return the units of samples; solved: the theory at points that are compared."""
        units = []
        options: dict[int, dict[str, Any]] = {}
        for place, number in share.samples:
            if place not in options:
                options[place] = self._sample_options(place, solved.get(place))
            name = sample_name(place, number)
            units.append(self._unit(name, "simulate", (place,), {**options[place], "number": number}))
        return units

    def smaller(self, share: Share, solved: Mapping[int, Found]) -> list[Unit]:
        """Return the units of samples at about half the size, which extrapolate moments of a comparison in 1/D."""
        units = []
        sizes = {place: self.half(place, solved) for place in dict.fromkeys(place for place, _ in share.samples)}
        for place, number in share.samples:
            if sizes[place] is not None:
                options = {
                    "size": sizes[place],
                    "seed": self.options.seed + 1,
                    "layers": self.grid.problems[place].layers,
                    "ends": self._ends(place, solved.get(place)),
                    "backend": "numpy",
                    "number": number,
                }
                units.append(self._unit(sample_name(place, number, SMALLER), "simulate", (place,), options))
        return units

    def half(self, place: int, solved: Mapping[int, Found]) -> int | None:
        solution = self.theory(place, solved.get(place))
        if solution is None:
            return None
        problem = self.grid.problems[place]
        return half_size(ProblemPoint(self.source, problem, self.solver(problem)), solution.layers, self.options.size)

    def theory(self, place: int, solved: Found | None) -> Prediction | None:
        """Return the solution at a point; None if there is none."""
        if solved is None:
            return None
        problem = self.grid.problems[place]
        solution = solution_of(solved, self.solver(problem), problem.inputs)
        return solution if isinstance(solution, Prediction) else None

    def _unit(self, name: str, kind: str, places: Iterable[int], options: Mapping[str, Any], batch: int = 1) -> Unit:
        problems = [self.grid.problems[place] for place in places]
        points = tuple(dict(problem.inputs) for problem in problems)
        return Unit(name, kind, self.codes[problems[0].model.name], points, options, versions(), batch)

    def _solve_options(self, place: int) -> dict[str, Any]:
        problem, path = self.grid.problems[place], self.options.path
        if path is not None:
            solver = self.solver(problem)
            path = bool(times_to_watch(solver, problem.values, path) if self.of == "compare" else path)
        options = replace(
            self.options,
            path=path,
            overlaps=self.options.overlaps is not False,
            certify=None if self.options.certify else False,
        )
        return {"layers": problem.layers, "options": options}

    def _sample_options(self, place: int, solved: Found | None) -> dict[str, Any]:
        options, problem = self.options, self.grid.problems[place]
        solver = self.solver(problem)
        finite_size.check_memory(solver, problem.values, options.size)
        overlaps = solver.layered if options.overlaps is None else bool(options.overlaps)
        return {
            "size": options.size,
            "seed": options.seed,
            "layers": problem.layers,
            "times": tuple(times_to_watch(solver, problem.values, options.path)),
            "overlaps": True if self.of == "compare" else overlaps,
            "ends": self._ends(place, solved),
            "two_time": options.kernels,
            "backend": options.backend,
        }

    def _ends(self, place: int, solved: Found | None) -> Mapping[str, int] | None:
        """Return how many eigenvalues are computed at either end of each spectrum; None means all of them."""
        if not self.options.ends_only:
            return None
        if self.of == "simulate":
            return ends_of_all(self.grid.problems[place].layers)
        theory = self.theory(place, solved)
        return None if theory is None else ends_to_compare(theory)


def sample_name(place: int, number: int, kind: str = "") -> str:
    """Return the name of the unit of a sample."""
    return f"simulate {place:06d}{kind} sample {number:06d}"


def names_of(share: Share) -> Sequence[str]:
    """Return the names of those units of a part that are known before anything is computed."""
    return [*(chunk.name for chunk in share.chunks), *(sample_name(*sample) for sample in share.samples)]
