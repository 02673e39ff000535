"""Finite-size simulation of a declaration: draw, run, diagonalise, for several seeds."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np

from derive.errors import NumericalError, ParameterError


@dataclass(frozen=True)
class Simulation:
    """Spectra and observables, one entry a seed."""

    setting: str
    parameters: dict
    size: int
    eigenvalues: list[np.ndarray]
    observables: dict[str, np.ndarray]

    def mean(self, name: str) -> np.ndarray:
        return self.observables[name].mean(axis=0)

    def stderr(self, name: str) -> np.ndarray:
        values = self.observables[name]
        if len(values) < 2:
            return np.full(values.shape[1:], np.nan)
        return values.std(axis=0, ddof=1) / np.sqrt(len(values))


def simulate(solver, values: dict, size: int, seeds: int, *, seed: int = 0, progress=None) -> Simulation:
    """Independent samples at base size `size`."""
    if size < 2:
        raise ParameterError(
            f"size={size} is too small; use a size of at least 2, a few hundred for meaningful spectra"
        )
    if seeds < 1:
        raise ParameterError(f"seeds={seeds}: at least one sample is needed")
    arguments = dict(zip((name for name, _, _ in solver.front.PARAMETERS), solver.arguments(values), strict=True))
    known = inspect.signature(solver.simulation.simulate).parameters
    spectra, observed = [], []
    for number, child in enumerate(np.random.SeedSequence(seed).spawn(seeds)):

        def tell(fraction: float, number: int = number) -> None:
            if progress is not None:
                progress((number + 0.5 * fraction) / seeds, f"sample {number + 1} of {seeds}")

        with np.errstate(over="ignore", invalid="ignore"):
            matrix, observables = solver.simulation.simulate(
                **{k: v for k, v in arguments.items() if k in known},
                size=size,
                rng=np.random.default_rng(child),
                progress=tell,
            )
        for name, series in observables.items():
            bad = np.flatnonzero(~np.isfinite(series))
            if bad.size:
                raise NumericalError(
                    f"the simulation diverged at step {bad[0]} ({name} is not finite); "
                    "try a smaller step or fewer steps"
                )
        if matrix is not None:
            if not np.all(np.isfinite(matrix)):
                raise NumericalError("the simulated matrix is not finite; the dynamics has diverged")
            spectra.append(np.linalg.eigvalsh((matrix + matrix.T) / 2))
        observed.append(observables)
        if progress is not None:
            progress((number + 1) / seeds, f"sample {number + 1} of {seeds}")
    names = observed[0]
    return Simulation(
        solver.name, dict(values), size, spectra, {n: np.array([o[n] for o in observed], float) for n in names}
    )
