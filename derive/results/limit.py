"""Observables after arbitrarily many steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.errors import NumericalError, ParameterError
from derive.results.made import Provenance
from derive.results.saving import Saved
from derive.support.extras import optional
from numerics.support.formatting import html_table, listed, shown_number, table

if TYPE_CHECKING:
    import pandas
    import xarray


@dataclass(frozen=True)
class LimitDiagnostics:
    """Numerical details of a stationary limit. radius: the radius of the circle in z over which values are averaged.
    error: their relative error.
    nodes: the number of quadrature nodes of a density, None if there is none.
    """

    radius: float
    error: float
    nodes: int | None = None


@dataclass(frozen=True)
class Limits:
    """The stationary limit of training on a grid of parameters, such as a path of ridges.

    axes: the values along each axis; points: a Limit for each point, with the last axis varying fastest.
    `limits["test_loss"]` has one number per point, NaN if there is no stationary limit.

    >>> import derive
    >>> from derive.api.example import REGRESSION
    >>> found = derive.load(REGRESSION).limits(ridge=[0, 0.1, 1], alpha=2)
    >>> found["distance"].round(3).tolist()
    [0.09, 0.086, 0.358]
    """

    axes: Mapping[str, tuple[Any, ...]]
    points: tuple[Limit, ...]

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Limit]:
        return iter(self.points)

    def __getitem__(self, name: str) -> np.ndarray:
        known = next((np.asarray(point[name], float) for point in self.points if point), np.array(np.nan))
        rows = [np.asarray(point[name], float) if point else np.full(known.shape, np.nan) for point in self.points]
        shape = tuple(len(values) for values in self.axes.values())
        return np.reshape(rows, (*shape, *known.shape))

    def to_frame(self) -> pandas.DataFrame:
        """One row per point: parameters and observables, or the reason why there is no limit."""
        pandas = optional("pandas")

        return pandas.DataFrame(
            [{**one.parameters, **(one.columns() if one else {"error": one.trouble[0]})} for one in self.points]
        )


@dataclass(frozen=True, eq=False)
class Limit(Saved):
    """The stationary limit of training, exactly: `limit["test_loss"]` is the value after arbitrarily many steps.

    It is false in a condition if there is no stationary limit; `trouble` gives the reason.

    >>> import derive
    >>> from derive.api.example import REGRESSION
    >>> round(derive.load(REGRESSION).limit(alpha=2, ridge=0)["distance"], 6)
    0.09
    """

    made: Provenance
    found: Mapping[str, float | np.ndarray] | None
    diagnostics: LimitDiagnostics | None = None
    trouble: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.trouble

    @property
    def observables(self) -> dict[str, Any]:
        """All observables by name: numbers, or arrays for observables with labels."""
        if self.found is None:
            raise NumericalError(self.trouble[0])
        return dict(self.found)

    def __getitem__(self, name: str) -> Any:
        found = self.observables
        if name not in found:
            raise ParameterError(f"{self.made.setting} has no observable {name!r}; the observables are {listed(found)}")
        return found[name]

    @property
    def parameters(self) -> dict[str, int | float | str]:
        return dict(self.made.parameters)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the keys that `derive limit --json` prints."""
        start: dict[str, Any] = {"parameters": self.parameters}
        if self.found is None:
            return {**start, "error": self.trouble[0]}
        found = {name: np.asarray(value).tolist() for name, value in self.found.items()}
        return {
            **start,
            "observables": found,
            "diagnostics": None if self.diagnostics is None else asdict(self.diagnostics),
        }

    def to_frame(self) -> pandas.DataFrame:
        """One row, with a column per observable, or per label of an observable with labels."""
        pandas = optional("pandas")

        return pandas.DataFrame([self.columns()])

    def columns(self) -> dict[str, float]:
        """Numbers by name, with labels as separate columns: "loss[0]", "loss[1]", ..."""
        found: dict[str, float] = {}
        for name, value in self.observables.items():
            for at in np.ndindex(np.shape(value)):
                place = f"[{','.join(map(str, at))}]" if at else ""
                found[f"{name}{place}"] = float(np.asarray(value)[at])
        return found

    def to_xarray(self) -> xarray.DataTree:
        """A labelled tree with one number per observable."""
        from derive.results.trees import attributes

        library = optional("xarray")
        found = library.Dataset(
            {
                name: (tuple(f"{name}_label{k or ''}" for k in range(np.ndim(value))), value)
                for name, value in (self.found or {}).items()
            },
            attrs=attributes(self),
        )
        return library.DataTree.from_dict({"/limit": found})

    def _rows(self) -> list[tuple[str, str]]:
        return [(name, shown_number(value)) for name, value in self.columns().items()] if self else []

    def __repr__(self) -> str:
        if self.found is None:
            return f"{self.made.point}: {self.trouble[0]}"
        return "\n".join([f"{self.made.point}, after arbitrarily many steps", *table(self._rows())])

    def _repr_html_(self) -> str:
        return html_table(f"{self.made.point}, after arbitrarily many steps", self._rows(), self.trouble)
