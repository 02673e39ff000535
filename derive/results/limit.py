"""What is observed after arbitrarily many steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from derive.errors import NumericalError, ParameterError
from derive.results.made import Made
from derive.results.saving import Saved
from derive.results.words import html_table, listed, shown_number, table

if TYPE_CHECKING:
    import pandas
    import xarray


@dataclass(frozen=True)
class Limit(Saved):
    """Where training comes to rest, exactly: `limit["test_loss"]` is the value after arbitrarily many steps.

    It is false in a condition if training does not come to rest; `trouble` says why.

    >>> import derive
    >>> from derive.api.example import REGRESSION
    >>> round(derive.load(REGRESSION).limit(alpha=2, ridge=0)["distance"], 6)
    0.09
    """

    made: Made
    found: Mapping[str, float] | None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    trouble: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.trouble

    @property
    def observables(self) -> dict[str, float]:
        """All observables by name."""
        if self.found is None:
            raise NumericalError(self.trouble[0])
        return dict(self.found)

    def __getitem__(self, name: str) -> float:
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
        return {**start, "observables": dict(self.found), "diagnostics": dict(self.diagnostics)}

    def to_frame(self) -> pandas.DataFrame:
        """One row, with a column per observable."""
        import pandas

        return pandas.DataFrame([self.observables])

    def to_xarray(self) -> xarray.DataTree:
        """A labelled tree with one number per observable."""
        import xarray

        from derive.results.trees import attributes

        found = xarray.Dataset(
            {name: ((), value) for name, value in (self.found or {}).items()}, attrs=attributes(self)
        )
        return xarray.DataTree.from_dict({"/limit": found})

    def _rows(self) -> list[tuple[str, str]]:
        return [(name, shown_number(value)) for name, value in (self.found or {}).items()]

    def __repr__(self) -> str:
        if self.found is None:
            return f"{self.made.point}: {self.trouble[0]}"
        return "\n".join([f"{self.made.point}, after arbitrarily many steps", *table(self._rows())])

    def _repr_html_(self) -> str:
        return html_table(f"{self.made.point}, after arbitrarily many steps", self._rows(), self.trouble)
