"""Theory compared with simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from derive.errors import ParameterError
from derive.results.saving import Saved
from derive.results.simulation import Simulation, layer_as_dict
from derive.results.solution import Solution
from derive.support.extras import optional
from numerics.simulation.compare import Outcome, Row, Verdict, compare as rows_of, judge, mean_and_error
from numerics.support.formatting import html_table, shown_number
from numerics.support.labelled import with_none

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Comparison(Saved):
    """Theory compared with simulation, quantity by quantity in standard errors; false in a condition if they differ.

    >>> import derive
    >>> from derive.api.example import SPIKE
    >>> c = derive.load(SPIKE).compare(strength=2, size=100, seeds=4)
    >>> c.rows[0].quantity, c.agrees
    ('outlier 1 above the bulk', True)
    """

    theory: Solution
    simulation: Simulation
    rows: tuple[Row, ...]
    judgement: Verdict

    def __bool__(self) -> bool:
        return self.agrees

    @property
    def outcome(self) -> Outcome:
        """ "agrees", "disagrees" or "cannot tell"."""
        return self.judgement.outcome

    @property
    def agrees(self) -> bool:
        """Whether all compared quantities are within three standard errors."""
        return self.outcome == "agrees"

    @property
    def failed(self) -> bool:
        """Whether the theory or the simulation failed to give numbers."""
        return self.theory.failed or self.simulation.failed

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.failed:
            return f"{self.outcome}: there is nothing to compare, because {self.trouble[0]}"
        return self.judgement.sentence

    @property
    def title(self) -> str:
        """The setting, its values, the size and the number of seeds."""
        return self.simulation.title

    @property
    def parameters(self) -> dict[str, int | float | str]:
        """All values, including choices."""
        return self.theory.parameters

    @property
    def trouble(self) -> tuple[str, ...]:
        """Why theory or simulation is unreliable; a difference between them is reported by `agrees` and `verdict`."""
        return (*self.theory.trouble, *self.simulation.trouble)

    def to_frame(self) -> pandas.DataFrame:
        """One row per quantity."""
        pandas = optional("pandas")

        columns = ["quantity", "theory", "theory_error", "simulation", "stderr", "difference", "compared"]
        found = pandas.DataFrame([row.as_dict() for row in self.rows], columns=None if self.rows else columns)
        return found.set_index("quantity")

    def to_xarray(self) -> xarray.DataTree:
        """Theory and simulation as two groups of one tree."""
        from derive.results.trees import tree_of

        return tree_of({"theory": self.theory, "simulation": self.simulation})

    def plot(self) -> Figure:
        """Plot the histogram with the law of the bulk, the outliers of both, and the observables of both."""
        from numerics.plots.theory import draw_both

        if self.failed:
            raise ParameterError("there is nothing to draw: " + "; ".join(self.trouble))
        return draw_both(self.theory, self.simulation, self.simulation.title_of_figure, self.theory.made.matrices)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the keys that `derive compare --json` prints."""
        theory, simulation = self.theory, self.simulation
        result: dict[str, Any] = {
            "setting": theory.setting,
            "parameters": theory.parameters,
            "size": simulation.size,
            "seeds": simulation.seeds,
            "rows": [row.as_dict() for row in self.rows],
            "within_three_standard_errors": self.agrees,
            "outcome": self.outcome,
            "expected_beyond": self.judgement.expected,
            "verdict": self.verdict,
        }
        if self.failed:
            return {**result, "error": self.trouble[0]}
        observables = {
            name: {
                "theory": with_none(series),
                "theory_error": None if theory.errors is None else with_none(theory.errors[name]),
                **mean_and_error(simulation.observables[name]),
            }
            for name, series in theory.observables.items()
        }
        result["observables"] = observables
        if theory.two_time and simulation.two_time:
            simulated = simulation.kernels()
            result["kernels"] = {
                kernel.name: {**kernel.as_dict(), "simulation": simulated.get(kernel.name)}
                for kernel in theory.two_time.values()
            }
        if any(layer.label for layer in theory.layers):
            layers = theory.as_dict()["layers"]
            result["layers"] = [
                {**data, "simulation": layer_as_dict(simulation.layer(layer.label))}
                for data, layer in zip(layers, theory.layers, strict=True)
            ]
        return {**result, **{name: both for name, both in observables.items() if name not in result}}

    def lines(self) -> list[tuple[str, str, str, str]]:
        """Quantity, theory, simulation, difference in standard errors, as text."""
        return [
            (
                row.quantity,
                shown_number(row.theory, row.theory_error),
                shown_number(row.simulation, row.stderr),
                "" if row.difference is None else f"{row.difference:+.1f}",
            )
            for row in self.rows
        ]

    def __str__(self) -> str:
        rows = [("quantity", "theory", "simulation", "difference"), *self.lines()]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = ["  ".join([row[0].ljust(widths[0]), *(row[k].rjust(widths[k]) for k in (1, 2, 3))]) for row in rows]
        return "\n".join([self.title, *lines, self.verdict])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = ("quantity", "theory", "simulation", "difference / error")
        return html_table(self.title, [*self.lines(), (self.verdict, "", "", "")], head=head)


def compare(theory: Solution, simulation: Simulation, smaller: Simulation | None = None) -> Comparison:
    """Compare a solution with samples of the same model at the same values.

    The k-th outlier above the bulk is compared with the k-th largest eigenvalue, outliers below the bulk from the
    bottom; observables at a handful of times. `smaller`: samples at about half the size, which extrapolate the moments
    of a bulk without outliers in 1/D.

    >>> import derive
    >>> from derive.api.example import SPIKE
    >>> m = derive.load(SPIKE)
    >>> c = derive.compare(m.solve(strength=2), m.simulate(strength=2, size=200, seeds=4))
    >>> c.agrees, c.to_frame().loc["outlier 1 above the bulk", "theory"].item()
    (True, 2.5)
    """
    if not (isinstance(theory, Solution) and isinstance(simulation, Simulation)):
        kinds = f"{type(theory).__name__} and a {type(simulation).__name__}"
        raise ParameterError(f"compare takes the results of solve and simulate, in this order, not a {kinds}")
    if smaller is not None and not isinstance(smaller, Simulation):
        raise ParameterError(f"smaller takes a result of simulate at a smaller size, not a {type(smaller).__name__}")
    for what, one, other in (
        ("setting", theory.setting, simulation.setting),
        ("data", theory.made.data, simulation.made.data),
    ):
        if one != other:
            raise ParameterError(f"theory and simulation are of different {what}: {one} and {other}")
    if bool(theory.made.target) == bool(simulation.made.target) and (
        theory.made.declaration != simulation.made.declaration
    ):
        raise ParameterError(
            f"theory and simulation are of different declarations named {theory.setting}: solve and simulate the "
            "same one"
        )
    for name, value in theory.parameters.items():
        other_value = simulation.parameters.get(name)
        if other_value != value:
            raise ParameterError(
                f"theory and simulation have different values: {name}={value} and {name}={other_value}"
            )
    if simulation.seeds < 2:
        raise ParameterError("seeds must be at least 2 to compare: one seed gives no standard error")
    if theory.failed or simulation.failed:
        return Comparison(theory, simulation, (), Verdict("cannot tell"))
    rows = rows_of(theory, simulation, None if smaller is None or smaller.failed else smaller)
    return Comparison(theory, simulation, tuple(rows), judge(rows, simulation.seeds))
