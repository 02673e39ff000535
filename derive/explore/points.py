"""The content of the page at one point: ranges of sliders, the theory, an optional simulation, and the commands that
reproduce both."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from derive.api import Theory, load
from derive.errors import DeriveError
from derive.language.model import Model
from derive.language.symbols import Domain
from derive.printing.documents import text
from derive.results import Simulation, Solution
from derive.results.frames import columns_of

STEPS = 200
DECADES = 1.0
"""Range of a slider for a positive number, in powers of ten up and down."""


@dataclass(frozen=True)
class Range:
    """The ends of a slider, for the number or, with `log`, for its decimal logarithm."""

    low: float
    high: float
    step: float
    log: bool
    whole: bool

    def position(self, value: float) -> float:
        """Return the slider position of a value."""
        return math.log10(value) if self.log else float(value)

    def value(self, position: float) -> float | int:
        """Return the number at a position, rounded to the digits that a slider can set."""
        if self.whole:
            return round(position)
        return float(f"{10.0**position if self.log else position:.4g}")


def slider_range(domain: Domain, start: float) -> Range:
    """Return the range: integers in steps of one, positive numbers on a logarithmic scale, others linear, around the
    start."""
    if domain.whole:
        low = domain.low if domain.low_included else domain.low + 1
        low = low if math.isfinite(low) else min(start - 10, 2 * start)
        high = domain.high if domain.high_included else domain.high - 1
        return Range(low, min(high, max(4 * start, start + 10)), 1.0, False, True)
    if math.isfinite(domain.low) and math.isfinite(domain.high):
        return _linear(domain, domain.low, domain.high)
    if domain.low == 0.0 and start > 0.0 and not domain.low_included:
        middle = math.log10(start)
        return Range(middle - DECADES, middle + DECADES, 2 * DECADES / STEPS, True, False)
    far = max(2 * abs(start), 2.0)
    return _linear(domain, max(domain.low, start - far), min(domain.high, start + far))


def _linear(domain: Domain, low: float, high: float) -> Range:
    """Return a linear range within the domain; an excluded end is moved inwards by one step."""
    step = (high - low) / STEPS
    low = low if domain.contains(low) else low + step
    high = high if domain.contains(high) else high - step
    return Range(low, high, step, False, False)


SEEDS = 4
GRID = 400


@dataclass(frozen=True)
class Wish:
    """The state of the sliders: choices of the model, values of its parameters, and the size of a simulation."""

    choices: tuple[tuple[str, int | str], ...]
    values: tuple[tuple[str, Any], ...]
    size: int | None = None


@dataclass(frozen=True)
class Shown:
    """The results at a point, or the message that explains why there are none."""

    solution: Solution | None
    simulation: Simulation | None
    trouble: str
    seconds: float


class Explorer:
    """A model solved at one point after the other; compiled code is cached by shape."""

    def __init__(self, target: str, fixed: Mapping[str, Any], samples: int | None) -> None:
        self.target, self.fixed, self.samples = target, dict(fixed), samples
        self._theories: dict[tuple[tuple[str, int | str], ...], Theory] = {}

    def theory(self, choices: tuple[tuple[str, int | str], ...]) -> Theory:
        """Return the model with these choices."""
        if choices not in self._theories:
            self._theories[choices] = load(self.target, **dict(choices))
        return self._theories[choices]

    def shown(self, wish: Wish) -> Shown:
        """Solve, and simulate if a size is given; an error becomes a message."""
        began = time.perf_counter()
        solution = simulation = None
        try:
            theory, values = self.theory(wish.choices), {**self.fixed, **dict(wish.values)}
            more: dict[str, Any] = {} if self.samples is None else {"samples": self.samples}
            solution = theory.solve(values, path=True, **more)
            if wish.size is not None and not solution.failed:
                simulation = theory.simulate(values, size=wish.size, seeds=SEEDS)
            trouble = "; ".join([*solution.trouble, *(() if simulation is None else simulation.trouble)])
        except DeriveError as error:
            trouble = str(error)
        return Shown(solution, simulation, trouble, time.perf_counter() - began)

    def command(self, wish: Wish) -> str:
        """Return the shell command of the point."""
        inputs = {**dict(wish.choices), **dict(wish.values), **self.fixed}
        verb = ["solve"] if wish.size is None else ["compare"]
        options = [] if wish.size is None else ["--size", str(wish.size), "--seeds", str(SEEDS)]
        options += [] if self.samples is None else ["--samples", str(self.samples)]
        return shlex.join(["derive", *verb, self.target, *(f"{n}={v}" for n, v in inputs.items()), *options])

    def python(self, wish: Wish) -> str:
        """Return the Python code of the point."""
        chosen = "".join(f", {name}={value!r}" for name, value in wish.choices)
        inputs = {**dict(wish.values), **self.fixed}
        values = [f"{name}={value!r}" for name, value in inputs.items()]
        solved = [*values, *([] if self.samples is None else [f"samples={self.samples}"])]
        lines = ["import derive", "", f"m = derive.load({self.target!r}{chosen})", f"s = m.solve({', '.join(solved)})"]
        if wish.size is not None:
            lines += [f"sim = m.simulate({', '.join([*values, f'size={wish.size}', f'seeds={SEEDS}'])})"]
            lines += ["print(derive.compare(s, sim))"]
        return "\n".join([*lines, "s.plot()"])


def eigenvalue_of(model: Model, label: str | None) -> str:
    """Return the label of an axis for the eigenvalues of a probed matrix, by default the first."""
    probes = dict(model.probes)
    return f"eigenvalue of {text(probes[label or next(iter(probes))].matrix)}" if probes else "eigenvalue"


def density_of(shown: Shown, label: str | None) -> dict[str, list[float]]:
    """Return the density of a layer's bulk on a grid refined at its edges."""
    if shown.solution is None or shown.solution.failed or not shown.solution.layers:
        return {"x": [], "y": []}
    layer = shown.solution.layer(label)
    xs: list[np.ndarray] = []
    for low, high in layer.bulk_edges:
        angle = np.linspace(0.0, np.pi, GRID)
        xs.append(0.5 * (low + high) - 0.5 * (high - low) * np.cos(angle))
    x = np.concatenate(xs) if xs else np.zeros(0)
    y = layer.density(x)
    return {"x": x.tolist(), "y": np.minimum(y, _ceiling(x, y)).tolist()}


def _ceiling(x: np.ndarray, y: np.ndarray) -> float:
    """Return the cutoff of a density that diverges at an edge."""
    inside = np.sort(y[y > 0])
    return float(4.0 * inside[int(0.9 * len(inside))]) if len(inside) else 1.0


def histogram_of(shown: Shown, label: str | None) -> dict[str, list[float]]:
    """Return a histogram of the simulated eigenvalues of all seeds, without the null space of a rectangular matrix."""
    if shown.simulation is None or shown.simulation.failed or not shown.simulation.layers:
        return {"top": [], "left": [], "right": []}
    values = np.concatenate(
        [np.asarray(e, float) for e in shown.simulation.layer(label).all_eigenvalues("a histogram")]
    )
    rest = values[np.abs(values) > 1e-9 * np.abs(values).max()]
    heights, edges = np.histogram(rest, bins=int(np.clip(np.sqrt(len(rest)), 12, 80)))
    heights = heights / (len(values) * np.diff(edges))
    return {"top": heights.tolist(), "left": edges[:-1].tolist(), "right": edges[1:].tolist()}


def outliers_of(shown: Shown, label: str | None) -> list[float]:
    if shown.solution is None or shown.solution.failed or not shown.solution.layers:
        return []
    return [float(value) for value in shown.solution.layer(label).outliers]


def path_of(shown: Shown, label: str | None) -> dict[str, list[float]]:
    """Return time and position of every outlier."""
    points: dict[str, list[float]] = {"t": [], "x": []}
    if shown.solution is None or shown.solution.failed or not shown.solution.layers:
        return points
    for when, values in enumerate(shown.solution.layer(label).outlier_path or ()):
        points["t"] += [float(when)] * len(values)
        points["x"] += [float(value) for value in values]
    return points


def observables_of(shown: Shown) -> dict[str, tuple[list[float], list[float]]]:
    """Return, by name, the theory over time and the mean of the simulation, if any; the first few labels."""
    if shown.solution is None or shown.solution.failed:
        return {}
    found: dict[str, tuple[list[float], list[float]]] = {}
    for name, series in shown.solution.observables.items():
        drawn: dict[str, np.ndarray] = {}
        if shown.simulation is not None and not shown.simulation.failed:
            drawn = columns_of(name, np.mean(np.asarray(shown.simulation[name], float), axis=0))
        for column, values in list(columns_of(name, series).items())[:3]:
            found[column] = (values.tolist(), drawn[column].tolist() if column in drawn else [])
    return found
