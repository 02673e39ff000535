"""Assemble the results of a sweep from its journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from derive.api.cutting import SMALLER, Cut, sample_name
from derive.errors import DeriveError, NumericalError
from derive.results import Comparison, Simulation, Solution, Sweep, compare
from derive.sweeps.journal import Journal
from derive.sweeps.units import Found, read, simulation_of, solution_of


def solutions(cut: Cut, journal: Journal) -> dict[int, Found]:
    """Return the finished solutions by grid index."""
    return {
        place: result
        for chunk in cut.chunks
        if chunk.name in journal.done
        for place, result in zip(chunk.places, _results(journal, chunk.name, len(chunk.places)), strict=True)
    }


def _results(journal: Journal, name: str, count: int = 1) -> list[Found]:
    """Return the results of a finished unit, one for each of its points."""
    try:
        held = journal.done[name]
        results = read(held) if isinstance(held, str) else held
        if len(results) != count:
            raise ValueError(f"{len(results)} results for {count} points")
    except ValueError:
        raise _malformed(journal, name) from None
    return results


def _malformed(journal: Journal, name: str) -> DeriveError:
    return DeriveError(
        f"{journal.place(name)} contains no result of this version; remove the line to recompute its part"
    )


@dataclass(frozen=True, eq=False)
class Gathered:
    """The finished part of a sweep; lost: names of units that no worker completed."""

    cut: Cut
    journal: Journal
    lost: frozenset[str]

    @cached_property
    def solved(self) -> Mapping[int, Found]:
        return {} if self.cut.of == "simulate" else solutions(self.cut, self.journal)

    def sweep(self) -> Sweep:
        """Return all points; missing ones carry an error."""
        of, grid = self.cut.of, self.cut.grid
        points = tuple(self.point(place) for place in range(len(grid.problems)))
        first = self.cut.source.made(of, grid.problems[0], self.cut.options)
        axes = dict(grid.axes)
        fixed = {name: value for name, value in first.parameters.items() if name not in axes}
        return Sweep(replace(first, parameters=fixed), axes, points)

    def point(self, place: int) -> Solution | Simulation | Comparison:
        if self.cut.of == "solve":
            return self.solution(place)
        return self.simulation(place) if self.cut.of == "simulate" else self.comparison(place)

    def solution(self, place: int) -> Solution:
        problem = self.cut.grid.problems[place]
        provenance = self.cut.source.made("solve", problem, self.cut.options)
        name = next(chunk.name for chunk in self.cut.chunks if place in chunk.places)
        if place not in self.solved:
            return Solution.without_numbers(provenance, self.cut.solver(problem).about, _missing(name in self.lost))
        try:
            solution = solution_of(self.solved[place], self.cut.solver(problem), problem.inputs)
        except ValueError:
            raise _malformed(self.journal, name) from None
        if isinstance(solution, NumericalError):
            return Solution.without_numbers(provenance, self.cut.solver(problem).about, str(solution))
        return Solution.of(provenance, solution)

    def simulation(self, place: int, kind: str = "", size: int | None = None) -> Simulation:
        problem, options = self.cut.grid.problems[place], self.cut.options
        drawn = options if size is None else replace(options, size=size)
        provenance = self.cut.source.made("simulate", problem, drawn)
        names = [sample_name(place, number, kind) for number in range(options.seeds)]
        absent = {name for name in names if name not in self.journal.done}
        if absent:
            why = _missing(bool(self.lost & absent))
            return Simulation.without_numbers(provenance, self.cut.solver(problem).about, why)
        parts = [_results(self.journal, name)[0] for name in names]
        try:
            simulation = simulation_of(parts, self.cut.solver(problem), problem.inputs)
        except ValueError:
            raise _malformed(self.journal, names[0]) from None
        if isinstance(simulation, NumericalError):
            return Simulation.without_numbers(provenance, self.cut.solver(problem).about, str(simulation))
        return Simulation(**vars(simulation), made=provenance)

    def comparison(self, place: int) -> Comparison:
        theory, simulation = self.solution(place), self.simulation(place)
        half = self.cut.half(place, self.solved)
        return compare(theory, simulation, None if half is None else self.simulation(place, SMALLER, half))


def _missing(lost: bool) -> str:
    if lost:
        return "every worker died at this point, perhaps for lack of memory; compute it alone"
    return "this point has not been computed: it belongs to another shard"
