"""Samples of a declaration at finite size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.errors import ParameterError
from derive.results.made import Provenance
from derive.results.saving import PointResult
from numerics.runtime.interface import Setting
from numerics.simulation.samples import Samples, SimulatedLayer
from numerics.support.formatting import counted, listed, shown_number

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

ENDS = 10
"""Eigenvalues listed at either end of a spectrum."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Simulation(PointResult, Samples):
    """Independent samples at one size; `sim["name"]` has one row per seed, then time, then labels.

    >>> import derive
    >>> from derive.api.example import SPIKE
    >>> sim = derive.load(SPIKE).simulate(strength=2, size=50, seeds=2)
    >>> sim.size, sim.seeds, sim["norm"].shape
    (50, 2, (2, 1))
    """

    @staticmethod
    def without_numbers(made: Provenance, about: Setting, why: str) -> Simulation:
        """Return a simulation whose computation failed."""
        size = int(made.options["size"])
        return Simulation(
            inputs={}, size=size, layers=(), observables={}, about=about, made=made, trouble=(why,), failed=True
        )

    @property
    def seeds(self) -> int:
        """The number of samples."""
        return int(self.made.options["seeds"])

    def layer(self, label: int | str | None = None) -> SimulatedLayer:
        """Return one probed matrix by its label, by default the first."""
        self._check_numbers()
        return super().layer(label)

    def __getitem__(self, name: str) -> np.ndarray:
        self._check_numbers()
        return super().__getitem__(name)

    def resolvent(
        self, z: Any, layer: int | str | None = None, *, beside: str | None = None, between: str | None = None
    ) -> np.ndarray:
        """Return the normalised trace of the resolvent at any z that is not an eigenvalue, or its trace with a declared
        matrix (tr R A, tr R A R, tr R A R B). The first axis is the seed, followed by the shape of z.
        """
        found = self.layer(layer)
        if beside is not None and between is not None:
            raise ParameterError("give one matrix, with beside= or with between=")
        name = beside or between
        if name is not None and name not in found.weights:
            have = f"there are {listed(found.weights)}" if found.weights else "there is none"
            raise ParameterError(f"{name!r} is not a matrix between resolvents of {self.setting}, {have}")
        return found.traces(np.asarray(z), name, 2 if between is not None else 1)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the keys that `derive simulate --json` prints."""
        from numerics.simulation.compare import mean_and_error

        start = {"setting": self.setting, "parameters": self.parameters}
        if self.failed:
            return {**start, "size": self.size, "seeds": self.seeds, "error": self.trouble[0]}
        observables = {name: mean_and_error(series) for name, series in self.observables.items()}
        result: dict[str, Any] = {
            **start,
            "size": self.size,
            "seeds": self.seeds,
            "eigenvalues": _ends(self.layers[0].eigenvalues if self.layers else []),
            "observables": observables,
        }
        if self.layers and self.layers[0].alignments:
            result["alignments"] = _alignments(self.layers[0])
        if self.two_time:
            result["kernels"] = self.kernels()
        if any(layer.label for layer in self.layers):
            result["layers"] = [layer_as_dict(layer) for layer in self.layers]
        return {**result, **{name: series for name, series in observables.items() if name not in result}}

    def kernels(self) -> dict[str, dict[str, Any]]:
        """Return the requested two-time functions as plain data: axes, mean over the seeds and standard error."""
        from numerics.simulation.compare import mean_and_error
        from numerics.two_time import axes_of

        return {
            str(name): {"axes": list(axes_of(self.about, name)), **mean_and_error(draws)}
            for name, draws in self.two_time.items()
        }

    def to_frame(self) -> pandas.DataFrame:
        """One row per seed and time, one column per observable."""
        from derive.results.frames import frame_of_simulation

        return frame_of_simulation(self)

    def to_xarray(self) -> xarray.DataTree:
        """A labelled tree: observables by seed and time, eigenvalues by seed and rank."""
        from derive.results.trees import tree_of

        return tree_of({"simulation": self})

    def plot(self) -> Figure:
        """Plot the histogram of the eigenvalues of all seeds, and the observables with their errors."""
        from numerics.plots.theory import draw_simulation

        self._check_numbers()
        return draw_simulation(self, self.title_of_figure, self.made.matrices)

    @property
    def title(self) -> str:
        """The model and parameters of the samples."""
        return f"{self.made.point}, {self._sampled}"

    @property
    def title_of_figure(self) -> str:
        """The title of a figure, with the symbols of parameters."""
        return f"{self.made.title()}, {self._sampled}"

    @property
    def _sampled(self) -> str:
        return f"size {self.size}, {counted(self.seeds, 'seed')}"

    def _rows(self) -> list[tuple[str, str]]:
        rows = []
        for layer in self.layers:
            where = f" of layer {layer.label}" if layer.label else ""
            for what, place in (("largest", -1), ("smallest", 0)):
                draws = np.array([e[place] for e in layer.eigenvalues])
                rows.append((f"{what} eigenvalue{where}", shown_number(draws.mean(), standard_error(draws))))
        for name, values in self.observables.items():
            if values.ndim == 2 and values.size:
                last = values[:, -1]
                when = f" at {values.shape[1] - 1}" if values.shape[1] > 1 else ""
                rows.append((f"{name}{when}", shown_number(last.mean(), standard_error(last))))
        return rows


def standard_error(draws: np.ndarray) -> float | None:
    """Return the standard error of the mean over seeds; None for a single seed."""
    return float(draws.std(ddof=1) / np.sqrt(len(draws))) if len(draws) > 1 else None


def _ends(eigenvalues: list[np.ndarray]) -> dict[str, list[Any]]:
    return {
        "top": [e[::-1][:ENDS].tolist() for e in eigenvalues],
        "bottom": [e[:ENDS].tolist() for e in eigenvalues],
    }


def layer_as_dict(layer: SimulatedLayer) -> dict[str, Any]:
    """Return one layer as plain data; outliers are identified by comparison with time 0."""
    from numerics.simulation.compare import mean_and_error

    paths = [layer.outliers(time) for time in layer.times]
    found = paths[-1] if paths else None
    overlaps = {side: mean_and_error(layer.outlier_overlaps(side)) for side in layer.overlaps} if paths else None
    first = next((time for time, rows in zip(layer.times, paths, strict=True) if rows.shape[1]), None)
    return {
        "layer": int(layer.label) if layer.label.isdigit() else layer.label,
        "eigenvalues": _ends(layer.eigenvalues),
        "outliers": None if found is None else mean_and_error(found),
        "path_times": list(layer.times),
        "outlier_path": [mean_and_error(rows) for rows in paths],
        "bbp_time": None if not paths else "never" if first is None else first,
        "overlaps": overlaps,
        **({"alignments": _alignments(layer)} if layer.alignments else {}),
    }


def _alignments(layer: SimulatedLayer) -> list[dict[str, Any]]:
    """Return squared cosines of the outermost vectors with declared directions, by eigenvalue, time and label."""
    from numerics.simulation.compare import mean_and_error

    found = []
    for (name, side), squares in layer.alignments.items():
        ends = {"top": np.array([s[::-1][:ENDS] for s in squares]), "bottom": np.array([s[:ENDS] for s in squares])}
        found.append({"name": name, "side": side, **{end: mean_and_error(rows) for end, rows in ends.items()}})
    return found
