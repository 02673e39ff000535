"""The theory at one point."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.errors import ParameterError
from derive.results.made import Provenance
from derive.results.saving import PointResult
from numerics.runtime.interface import Setting
from numerics.solution import Layer, Prediction, real_places
from numerics.support.formatting import listed, shown_number
from numerics.support.labelled import with_none
from numerics.support.reports import TrainingMethod
from numerics.two_time import Kernels

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

LARGE_RESIDUAL = 1e-6
"""Largest relative singular value of A(z) at an outlier; A(z) must be singular there."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Solution(PointResult, Prediction):
    """The theory at one point, and how it was computed.

    It is false in a condition if it is unreliable; `trouble` gives the reason. A diverged solution has no numbers:
    accessing them raises an error with the reason.

    >>> import derive
    >>> from derive.api.example import SPIKE
    >>> s = derive.load(SPIKE).solve(strength=2)
    >>> s.outliers, s.bulk_edges, bool(s)
    (array([2.5]), array([[-2.,  2.]]), True)
    """

    @staticmethod
    def of(made: Provenance, prediction: Prediction) -> Solution:
        """Return a solution with a list of its problems, if any."""
        trouble = []
        for layer in prediction.layers:
            if not np.all(np.isfinite([*layer.outliers, *layer.bulk_edges.ravel()])):
                why = "an eigenvalue of the theory is not a number: the computation diverged; try a smaller step"
                return Solution.without_numbers(made, prediction.about, why)
            where = f"layer {layer.label}: " if layer.label else ""
            if layer.diagnostics.undecided is not None:
                trouble.append(where + layer.diagnostics.undecided.sentence)
            if layer.diagnostics.residual > LARGE_RESIDUAL:
                residual = layer.diagnostics.residual
                trouble.append(f"{where}A(z) is not singular at an outlier (residual {residual:.1g}); try other values")
        for check in prediction.certificate.failed if prediction.certificate is not None else ():
            trouble.append(f"{check.sentence}; do not use these numbers; run derive check {made.target or 'FILE'}")
        return Solution(**vars(prediction), made=made, trouble=tuple(trouble))

    @staticmethod
    def without_numbers(made: Provenance, about: Setting, why: str) -> Solution:
        """Return a solution whose computation failed."""
        return Solution(
            inputs={},
            layers=(),
            observables={},
            errors=None,
            method=TrainingMethod(),
            about=about,
            made=made,
            trouble=(why,),
            failed=True,
        )

    def layer(self, label: int | str | None = None) -> Layer:
        """Return one probed matrix by its label, by default the first."""
        self._check_numbers()
        return super().layer(label)

    def _kernels(self, kind: str) -> Kernels:
        """Return all correlations "C" or responses "R"."""
        self._check_numbers()
        return super()._kernels(kind)

    def a_matrix(self, z: Any, layer: int | str | None = None) -> np.ndarray:
        """Return A(z) at real points outside the bulk; it is singular at the outliers. The default is the first layer.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> abs(derive.load(SPIKE).solve(strength=2).a_matrix([2.5, 3.0])[:, 0, 0]) > 1e-12
        array([False,  True])
        """
        from numerics.solver import a_matrices

        found, points = self.layer(layer), np.atleast_1d(real_places(z))
        if self.solver is None:
            raise ParameterError("A(z) is not part of a saved result; solve again and compute it")
        return a_matrices(self.solver, self, points, found.label)

    def __getitem__(self, name: str) -> np.ndarray:
        self._check_numbers()
        if not isinstance(name, str) or name not in self.observables:
            have = f"the observables are {listed(self.observables)}" if self.observables else "it has no observables"
            raise ParameterError(f"{self.setting} has no observable {name!r}; {have}")
        return self.observables[name]

    # -- conversions

    def as_dict(self, grid: Any = None, resolvent: Any = (), side: str | None = None) -> dict[str, Any]:
        """Plain data, with the keys that `derive solve --json` prints. grid: points for the density;
        resolvent: points for the traces of the resolvent, and the side on the bulk."""
        start = {"setting": self.setting, "parameters": self.parameters}
        if self.failed:
            return {**start, "error": self.trouble[0]}
        layers = [layer.as_dict(grid) for layer in self.layers]
        observables = {name: with_none(series) for name, series in self.observables.items()}
        if np.size(resolvent):
            for layer, data in zip(self.layers, layers, strict=True):
                data["resolvent"] = self.resolvents(resolvent, layer.label, side)
        without: dict[str, Any] = {
            "bulk_edges": [],
            "outliers": [],
            "outlier_errors": None,
            "diagnostics": None,
        }
        result: dict[str, Any] = {
            **start,
            **(layers[0] if layers else without),
            "observables": observables,
            "observable_errors": self.errors and {name: with_none(x) for name, x in self.errors.items()},
        }
        if any(layer.label for layer in self.layers):
            named = [int(x.label) if x.label.isdigit() else x.label for x in self.layers]
            result["layers"] = [{"layer": name, **data} for name, data in zip(named, layers, strict=True)]
        if self.two_time:
            result["kernels"] = {kernel.name: kernel.as_dict() for kernel in self.two_time.values()}
        result["trouble"] = list(self.trouble)
        if self.certificate is not None:
            result["certificate"] = [check.as_dict() for check in self.certificate]
        result["method"] = asdict(self.method)
        return {**result, **{name: series for name, series in observables.items() if name not in result}}

    def to_frame(self) -> pandas.DataFrame:
        """Observables with one row per time, and one column per label."""
        from derive.results.frames import frame_of_solution

        return frame_of_solution(self)

    def to_xarray(self) -> xarray.DataTree:
        """A labelled tree: observables over time, and a group for each named layer."""
        from derive.results.trees import tree_of

        return tree_of({"theory": self})

    # -- pictures

    def plot(self) -> Figure:
        """Plot bulk and outliers of every layer, their path, and the observables."""
        from numerics.plots.theory import draw_solution

        self._check_numbers()
        return draw_solution(self, self.made.title(), self.made.matrices)

    # -- displays

    def _rows(self) -> list[tuple[str, str]]:
        rows = []
        for layer in self.layers:
            where = f" of layer {layer.label}" if layer.label else ""
            rows += [(f"{what}{where}", text) for what, text in layer.rows()]
        for name, series in self.observables.items():
            if series.ndim == 1 and series.size:
                spread = None if self.errors is None else self.errors[name][-1]
                when = f" at {len(series) - 1}" if len(series) > 1 else ""
                rows.append((f"{name}{when}", shown_number(series[-1], spread)))
        return rows
