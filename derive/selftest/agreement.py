"""Compare the theory with finite-size simulations of the same declaration at two sizes, extrapolated in 1/D.

A difference counts if it exceeds the bound at the first two sizes and again, with the same sign, at two larger sizes
with other seeds. The probability of a false alarm is then the product of the two probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from derive.selftest.engine import ProbeNumbers, TheoryNumbers, simulated, solved
from derive.selftest.laws import BROKE, HELD, Outcome, outcome_of

FALSE_ALARM = 1e-4
"""Probability that a run of the family reports a false difference."""
COMPARISONS = 20
"""Approximate number of comparisons per declaration."""
SIZES = ((48, 96), (128, 256))
"""The first pair of sizes, and the pair at which a difference must recur."""
DRAWS = 32
CLEAR = 0.3
"""Smallest distance of a compared outlier from the bulk, in bulk widths: closer ones fluctuate like the edge. An
extreme eigenvalue at this distance without a predicted outlier counts as a difference."""


@dataclass(frozen=True)
class SizeDifference:
    """One number of the theory, the simulation extrapolated in size, and their difference in standard errors."""

    quantity: str
    theory: float
    simulation: float
    error: float

    @property
    def normalised(self) -> float:
        return (self.simulation - self.theory) / self.error

    def __str__(self) -> str:
        return f"{self.quantity}: theory {self.theory:.6g}, simulation {self.simulation:.6g} +- {self.error:.2g}"


@cache
def bound(declarations: int) -> float:
    """Return the number of standard errors that counts as a difference, for a family of declarations."""
    from scipy.special import stdtrit

    each = math.sqrt(FALSE_ALARM / (COMPARISONS * max(1, declarations)))
    return float(-stdtrit(DRAWS - 1, each / 2))


def agreement(text: str, seed: int, declarations: int = 1) -> tuple[Outcome, tuple[SizeDifference, ...]]:
    """Return the outcome of theory against simulation, and all differences at the first two sizes."""
    measured: tuple[SizeDifference, ...] = ()

    def check() -> Outcome:
        nonlocal measured
        theory = solved(text)
        measured = differences(text, theory, SIZES[0], seed)
        suspects = {d.quantity: d for d in measured if abs(d.normalised) > bound(declarations)}
        if not suspects:
            return Outcome(HELD)
        theory = theory if theory.exact else solved(text, seed=1)
        for again in differences(text, theory, SIZES[1], seed + 1):
            first = suspects.get(again.quantity)
            if first and abs(again.normalised) > bound(declarations) and again.normalised * first.normalised > 0:
                return Outcome(BROKE, str(again), (text,))
        return Outcome(HELD)

    return outcome_of(check, text), measured


def differences(text: str, theory: TheoryNumbers, sizes: tuple[int, int], seed: int) -> tuple[SizeDifference, ...]:
    """Return the differences of a theory and simulations of a declaration at a size and at twice that size."""
    import numpy as np

    small, large = (simulated(text, size, DRAWS, seed + 7919 * k) for k, size in enumerate(sizes))
    results = []
    for k, series in enumerate(theory.observables):
        draws = [np.asarray(run[0][k], float).reshape(DRAWS, -1) for run in (small, large)]
        for time, value in enumerate(series):
            if math.isnan(value):  # not defined at this time
                continue
            error = theory.errors[k][time] if theory.errors is not None else 0.0
            name = f"observable {k + 1} at time {time}"
            results.append(_difference(name, value, error, *(d[:, time] for d in draws)))
    for k, spectrum in enumerate(theory.spectra):
        spectra = [[np.sort(np.asarray(e)) for e in run[1][k]] for run in (small, large)]
        results += _outliers(spectrum, spectra)
    return tuple(results)


def _difference(quantity: str, theory: float, error: float, small: Any, large: Any) -> SizeDifference:
    """Return the difference between theory and simulation, extrapolated linearly in 1/size from two sizes in the ratio
    1:2.
    """
    import numpy as np

    value = 2 * float(np.mean(large)) - float(np.mean(small))
    spread = math.hypot(2 * float(np.std(large, ddof=1)), float(np.std(small, ddof=1))) / math.sqrt(len(large))
    floor = 1e-8 * max(1.0, abs(theory))
    return SizeDifference(quantity, theory, value, math.hypot(spread, error) + floor)


def _outliers(spectrum: ProbeNumbers, spectra: list[list[Any]]) -> list[SizeDifference]:
    """Return the differences for outliers well separated from the bulk or, without outliers, for the extreme
    eigenvalue.

    Below the bulk only negative outliers count: a rank-deficient matrix may have zeros between an outlier and the bulk.
    """
    if not spectrum.edges:
        return []
    top, bottom = max(b for _, b in spectrum.edges), min(a for a, _ in spectrum.edges)
    errors = spectrum.errors or (0.0,) * len(spectrum.outliers)
    pairs = list(zip(spectrum.outliers, errors, strict=True))
    turned = [[-e[::-1] for e in run] for run in spectra]
    results = _beyond(f"of probe {spectrum.label or 1}", top, top - bottom, pairs, spectra)
    negative = [(-z, e) for z, e in pairs if z < 0]
    return results + _beyond(f"below in probe {spectrum.label or 1}", max(-bottom, 0.0), top - bottom, negative, turned)


def _beyond(
    where: str, edge: float, width: float, outliers: list[tuple[float, float]], spectra: list[list[Any]]
) -> list[SizeDifference]:
    """Return the differences between outliers above an edge and the largest eigenvalues."""
    import numpy as np

    above = sorted(((z, e) for z, e in outliers if z > edge), reverse=True)
    results = []
    for rank, (z, error) in enumerate(above):
        apart = all(abs(z - other) > 0.1 * width for k, (other, _) in enumerate(above) if k != rank)
        if z > edge + CLEAR * width and apart:
            draws = [np.array([e[-1 - rank] for e in run]) for run in spectra]
            results.append(_difference(f"outlier {rank + 1} {where}", z, error, *draws))
    others = [np.array([e[-1 - len(above)] for e in run]) for run in spectra]
    if all(float(np.mean(o)) > edge + CLEAR * width for o in others):
        results.append(_difference(f"next eigenvalue {where}", edge + CLEAR * width, 0.0, *others))
    return results
