"""Sampled theories over many seeds: whether reported errors are the spread that is seen, and what bias is left.

Solutions of different seeds are independent, so that the spread of a quantity over them is its true error. Reported
errors come from a number of replicas each, so the ratio of the two mean squares has an F distribution, and the mean
over seeds, against what is known, a Student distribution. Both are held to a bound for all comparisons of the suite: a
right theory is called wrong in one of 10 000 runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from agreement import COMPARISONS, FALSE_ALARM
from scipy.special import fdtri, stdtrit

from numerics.solution import Prediction

LEVEL = FALSE_ALARM / COMPARISONS
LEFT = 0.5
"""Share of a reported error that a bias may have which more samples remove."""
Quantity = tuple[str | int, ...]


def quantities(solution: Prediction) -> Iterator[tuple[Quantity, float, float]]:
    """Everything that a sampled solution gives an error for: its name, value and error."""
    for name, errors in (solution.errors or {}).items():
        values = np.array(solution.observables[name], float)
        for place, error in np.ndenumerate(np.array(errors, float)):
            if np.isfinite(values[place]):
                yield ("observable", name, *place), values[place], error
    for layer in solution.layers:
        outlier_errors = () if layer.outlier_errors is None else layer.outlier_errors
        for rank, (z, error) in enumerate(zip(layer.outliers, outlier_errors, strict=True)):
            yield ("outlier", layer.label, rank), z, error
        for time, (now, errors) in enumerate(
            zip(layer.outlier_path or (), layer.outlier_path_errors or (), strict=True)
        ):
            for rank, (z, error) in enumerate(zip(now, errors, strict=True)):
                if not math.isnan(error):
                    yield ("path", layer.label, time, rank), z, error
        for side, values in (layer.overlaps or {}).items() if layer.overlap_errors else ():
            for rank, (value, error) in enumerate(zip(values, layer.overlap_errors[side], strict=True)):
                if np.isfinite([value, error]).all():
                    yield ("overlap", layer.label, rank, side), value, error


@dataclass(frozen=True)
class Seen:
    """A quantity over seeds. freedom: of each reported error."""

    name: Quantity
    values: np.ndarray
    errors: np.ndarray
    freedom: int

    @property
    def spread(self) -> float:
        return float(np.std(self.values, ddof=1))

    @property
    def reported(self) -> float:
        return math.sqrt(np.mean(self.errors**2))

    @property
    def ratio(self) -> float:
        return self.reported / self.spread

    def wrong_error(self) -> str:
        """What is wrong with the reported errors; empty if nothing is."""
        many, few = self.freedom * len(self.values), len(self.values) - 1
        low, high = 1 / math.sqrt(fdtri(few, many, 1 - LEVEL)), math.sqrt(fdtri(many, few, 1 - LEVEL))
        if low <= self.ratio <= high:
            return ""
        return (
            f"{self.name}: reported {self.reported:.2g}, seen {self.spread:.2g}; {low:.2f} to {high:.2f} of it is right"
        )

    def wrong_mean(self, truth: float, error: float = 0.0) -> str:
        """Whether the mean over seeds is off by more than chance and what may be left; error: that of the truth."""
        off = abs(float(np.mean(self.values)) - truth)
        chance = stdtrit(len(self.values) - 1, 1 - LEVEL / 2) * self.spread / math.sqrt(len(self.values))
        if off <= LEFT * self.reported + chance + 6 * error:
            return ""
        found = float(np.mean(self.values))
        return f"{self.name}: {found:.6g} on average for {truth:.6g}, off by {off / self.reported:.1f} errors"


def over_seeds(solutions: Sequence[Prediction]) -> dict[Quantity, Seen]:
    """The quantities that every solution has and that are not exact."""
    tables = [{name: (value, error) for name, value, error in quantities(one)} for one in solutions]
    freedom = min(one.method.sampling.replicates for one in solutions) - 1
    found = {}
    for name in tables[0]:
        if all(name in table for table in tables):
            values, errors = np.array([table[name] for table in tables]).T
            if np.ptp(values) > 1e-12 * np.max(np.abs(values)) or np.max(errors) > 1e-12 * np.max(np.abs(values)):
                found[name] = Seen(name, values, errors, freedom)
    return found


def wrong(seen: Mapping[Quantity, Seen], truth: Mapping[Quantity, tuple[float, float]]) -> list[str]:
    """All that is wrong with errors, and with means where the truth is known, with its error."""
    found = [one.wrong_error() for one in seen.values()]
    found += [seen[name].wrong_mean(*known) for name, known in truth.items() if name in seen]
    return [text for text in found if text]
