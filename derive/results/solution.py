"""What the theory says at one point."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from derive.errors import NumericalError, ParameterError
from derive.results.made import Provenance
from derive.results.saving import Saved
from derive.results.words import grouped, html_table, listed, shown_number, table
from numerics.support.labelled import with_none
from numerics.support.progress import handful

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

    from numerics.certificate.records import Certificate
    from numerics.outliers.alignments import OutlierAlignment
    from numerics.solver import Layer as FoundLayer, Solution as Found
    from numerics.support.reports import LayerDiagnostics, TrainingMethod
    from numerics.two_time import Kernels

LARGE_RESIDUAL = 1e-6
"""A(z) must be singular at an outlier; where its smallest singular value, relatively, is above this, it is not one."""


def read_only(values: Any) -> np.ndarray:
    """An array that cannot be written to."""
    found = np.array(values, float)
    found.flags.writeable = False
    return found


def _real(given: Any) -> np.ndarray:
    """Places on the real axis."""
    try:
        return np.asarray(given, float)
    except (TypeError, ValueError):
        raise ParameterError(f"{given!r}: give real numbers") from None


def _places(given: Any) -> np.ndarray:
    """Places on the real axis at which a law has a value, infinity among them."""
    found = _real(given)
    if np.isnan(found).any():
        raise ParameterError(f"{given!r} is not a number, or holds one that is not; give real numbers")
    return found


def _points(given: Any) -> np.ndarray:
    """Finite points of the complex plane."""
    try:
        found = np.asarray(given)
        found = found.astype(complex if np.iscomplexobj(found) else float)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if not np.isfinite(found).all():
        raise ParameterError(f"{given!r} is not a number, or holds one that is not; give finite numbers")
    return found


def _by_name(found: Sequence[OutlierAlignment], errors: bool = False) -> dict[str, dict[str, np.ndarray]]:
    """Squared cosines, or their standard errors, by name and side."""
    table: dict[str, dict[str, np.ndarray]] = {}
    for one in found:
        values = one.errors if errors else one.values
        if values is not None:
            table.setdefault(one.name, {})[one.side] = read_only(one.shaped(values))
    return table


def _listed(found: Sequence[OutlierAlignment]) -> list[dict[str, Any]]:
    """Squared cosines as plain data."""
    return [
        {"name": one.name, "side": one.side, "axes": ["outlier", *one.axes], "times": one.times}
        | {"values": with_none(one.shaped(one.values))}
        | {"errors": None if one.errors is None else with_none(one.shaped(one.errors))}
        for one in found
    ]


SIDES = ("above", "below")
"""From which half plane a point of the bulk is meant."""


@dataclass(frozen=True)
class Layer:
    """The spectrum of one probed matrix after the last step, and along the training if that was asked for."""

    found: FoundLayer

    @property
    def label(self) -> str:
        return self.found.label

    @property
    def bulk_edges(self) -> np.ndarray:
        """Intervals of the bulk: one row [low, high] for each, ascending."""
        return read_only(np.reshape(self.found.bulk_edges, (-1, 2)))

    @property
    def edge_errors(self) -> np.ndarray | None:
        """One standard error for each edge, NaN where there is none; None where the bulk is exact."""
        errors = self.found.edge_errors
        return None if errors is None else read_only(np.reshape(np.array(errors, float), (-1, 2)))

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Point masses of the bulk: place and weight."""
        return self.found.law.atoms

    @property
    def outliers(self) -> np.ndarray:
        """Descending, repeated by multiplicity."""
        return read_only(self.found.outliers)

    @property
    def outlier_errors(self) -> np.ndarray | None:
        """One standard error each; None where the outliers are exact."""
        return None if self.found.outlier_errors is None else read_only(self.found.outlier_errors)

    @property
    def overlaps(self) -> dict[str, np.ndarray] | None:
        """By side the squared overlaps of the outliers' vectors with the span of the spikes; NaN where not given."""
        rows = self.found.overlaps
        if rows is None:
            return None
        return (
            {side: read_only([np.nan if row[side] is None else row[side] for row in rows]) for side in rows[0]}
            if rows
            else {}
        )

    @property
    def alignments(self) -> dict[str, dict[str, np.ndarray]]:
        """By the name of alignment(...) and by side the squared cosines of the outliers' vectors with that direction:
        one row per outlier, then its times and labels, as far as it has several."""
        return _by_name(self.found.alignments)

    @property
    def alignment_path(self) -> tuple[dict[str, dict[str, np.ndarray]], ...] | None:
        """The same at each time, of the outliers that are there then; None if the path was not asked for."""
        path = self.found.alignment_path
        return None if path is None else tuple(map(_by_name, path))

    @property
    def alignment_path_errors(self) -> tuple[dict[str, dict[str, np.ndarray]], ...] | None:
        """Their standard errors; None where they are exact."""
        path = self.found.alignment_path
        if path is None or any(one.errors is None for now in path for one in now):
            return None
        return tuple(_by_name(now, errors=True) for now in path)

    @property
    def alignment_errors(self) -> dict[str, dict[str, np.ndarray]] | None:
        """One standard error each; None where they are exact."""
        if any(one.errors is None for one in self.found.alignments):
            return None
        return _by_name(self.found.alignments, errors=True) or None

    @property
    def outlier_path(self) -> tuple[np.ndarray, ...] | None:
        """The outliers at each time; None if they were not asked for."""
        path = self.found.outlier_path
        return None if path is None else tuple(map(read_only, path))

    @property
    def outlier_path_errors(self) -> tuple[np.ndarray, ...] | None:
        """Their standard errors, NaN for one that is not always there; None where they are exact."""
        errors = self.found.outlier_path_errors
        return None if errors is None else tuple(map(read_only, errors))

    @property
    def largest_path(self) -> np.ndarray | None:
        """The top of the spectrum at each time, outlier or edge."""
        return None if self.found.largest_path is None else read_only(self.found.largest_path)

    @property
    def bulk_path(self) -> tuple[np.ndarray, ...] | None:
        """The intervals of the bulk at each time; None if the path was not asked for."""
        path = self.found.outlier_path
        if path is None:
            return None
        return tuple(read_only(np.reshape(self.found.bulk_at(time), (-1, 2))) for time in range(len(path)))

    @property
    def bbp_time(self) -> int | Literal["never"] | None:
        """The first time with an outlier; "never" if there is none, None if the path was not asked for."""
        if self.found.outlier_path is None:
            return None
        return "never" if self.found.bbp_time is None else self.found.bbp_time

    @property
    def moments(self) -> np.ndarray:
        """Moments of the bulk, from order 0."""
        return read_only(self.found.moments)

    @property
    def curve(self) -> str | None:
        """A polynomial in the resolvent G and z that is zero on the bulk; None if it was too large to find."""
        return self.found.curve

    @property
    def diagnostics(self) -> LayerDiagnostics:
        """How the spectrum was computed, and how well: `residual`, `condition`, `bulk.nodes`, `undecided` and more."""
        return self.found.diagnostics

    def density(self, x: Any) -> np.ndarray:
        """The density of the bulk at each x; atoms left out."""
        return self.found.law.density(_places(x))

    def share_below(self, x: Any) -> np.ndarray:
        """The share of eigenvalues at or below each x, atoms included."""
        return self.found.law.cumulative(_places(x))

    def resolvent(self, z: Any, side: str | None = None) -> np.ndarray:
        """G(z), the mean of 1 / (z - eigenvalue) over the bulk, atoms included, at any complex z.

        On the support itself it has two values: side="above" is the limit from the upper half plane, whose imaginary
        part is -pi times the density, side="below" that from the lower one. Elsewhere no side is needed.
        """
        points = self.checked_points(z, side)
        inside = self.on_support(points)
        found = self.found.law.transform(points, -1 if side == "below" else 1)
        if not np.isfinite(found).all():
            where = points[~np.isfinite(found)].flat[0].real
            raise ParameterError(f"the resolvent is infinite at z = {where:.6g}; take z elsewhere")
        return found if np.iscomplexobj(points) or inside.any() else found.real

    def checked_points(self, z: Any, side: str | None) -> np.ndarray:
        """Points of the complex plane at which a resolvent has one value."""
        points = _points(z)
        if side is not None and side not in SIDES:
            raise ParameterError(f"side={side!r}: write side='above' or side='below' the real axis")
        inside = self.on_support(points)
        if inside.any() and side is None:
            raise ParameterError(
                f"the resolvent is not defined on the bulk, as at z = {points[inside].flat[0].real:.6g}; "
                "say side='above' or side='below', or take z outside of it or off the real axis"
            )
        return points

    def on_support(self, points: np.ndarray) -> np.ndarray:
        """Which points lie on the bulk or on an atom of it."""
        found = np.zeros(points.shape, bool)
        for low, high in (*self.found.bulk_edges, *((at, at) for at, _ in self.atoms)):
            found |= (points.real >= low) & (points.real <= high) & (points.imag == 0)
        return found

    def outermost(self, size: int, lower: bool = False) -> float:
        """The mean of the largest of `size` eigenvalues where no outlier is above the bulk, or of the smallest.

        It is the edge with the shift of the Tracy-Widom law of real symmetric matrices, which falls as size^(-2/3).
        """
        from numerics.simulation.compare import mean_at_edge

        number = isinstance(size, numbers.Real) and not isinstance(size, (bool, np.bool_))
        if not number or not size >= 1 or size % 1:
            raise ParameterError(f"size={size!r}: size must be a whole number, 1 or larger")
        if not self.found.bulk_edges:
            raise NumericalError("there is no bulk, so that it has no outermost eigenvalue")
        edge = self.found.bulk_edges[0][0] if lower else self.found.bulk_edges[-1][1]
        mean = mean_at_edge(self.found, edge, size)
        if mean is None:
            raise NumericalError(f"the density at the edge {edge:.6g} is no square root: the law there is another one")
        return mean

    def side(self, value: float) -> str:
        """Where an outlier stands: beside the intervals of the bulk, or beside its atoms where it has no interval."""
        ends = [end for pair in self.found.bulk_edges for end in pair] or [at for at, _ in self.atoms]
        if not ends or value > max(ends):
            return "above the bulk"
        return "below the bulk" if value < min(ends) else "in a gap"

    def alignment_rows(self) -> list[tuple[str, str]]:
        """Squared cosines with directions, for people: "direction|side|outlier|time" with a number, at a handful of
        times, for each outlier, equal ones once; the mean over labels."""
        found = []
        for one in self.found.alignments:
            for first, count, _ in grouped(self.outliers):
                who = f"{first + 1}" if count == 1 else f"{first + 1}-{first + count}"
                for i, place in enumerate(handful(one.values.shape[1])):
                    when = "" if one.times is None else str(one.times[place])
                    names = f"{one.name}|{one.side}|{who}" if i == 0 else "||"
                    error = None if one.errors is None else float(np.max(one.errors[first, place]))
                    value = float(np.mean(one.values[first, place]))
                    found.append((f"{names}|{when}", shown_number(value, error)))
        return found

    def alignment_path_rows(self) -> list[tuple[str, str]]:
        """Squared cosines along the path, for people: "direction|side|outlier|time" with a number, at a handful of the
        times with outliers, for the first of them; a direction with times is taken at the same one."""
        path = self.found.alignment_path or []
        found = []
        times = [time for time, now in enumerate(path) if now]
        for number, one in enumerate(path[times[0]] if times else ()):
            for i, place in enumerate(handful(len(times))):
                time, now = times[place], path[times[place]][number]
                at = min(time, now.values.shape[1] - 1) if now.series else 0
                error = None if now.errors is None else float(np.max(now.errors[0, at]))
                names = f"{one.name}|{one.side}|1" if i == 0 else "||"
                found.append((f"{names}|{time}", shown_number(float(np.mean(now.values[0, at])), error)))
        return found

    def rows(self) -> list[tuple[str, str]]:
        """What is shown of it: quantities and their numbers; equal outliers once, with how often they occur."""
        edges = ", ".join(f"[{shown_number(a)}, {shown_number(b)}]" for a, b in self.bulk_edges)
        found = [("bulk", edges or "none")]
        errors = self.outlier_errors
        for first, count, value in grouped(self.outliers):
            number = shown_number(value, None if errors is None else float(errors[first]))
            found.append((f"outlier {self.side(value)}", number + (f" x {count}" if count > 1 else "")))
        for one in self.found.alignments:
            if len(one.values):
                error = None if one.errors is None else float(np.max(one.errors[0, -1]))
                when = f" at {one.times[-1]}" if one.times is not None and one.series else ""
                shown = shown_number(float(np.mean(one.values[0, -1])), error)
                found.append((f"{one.name}{when} ({one.side}), of the first", shown))
        if self.bbp_time is not None:
            found.append(("first outlier", str(self.bbp_time)))
        return found

    def __repr__(self) -> str:
        return "\n".join([f"layer {self.label}" if self.label else "spectrum", *table(self.rows())])

    def _repr_html_(self) -> str:
        return html_table(f"layer {self.label}" if self.label else "spectrum", self.rows(), ())

    def as_dict(self, grid: Any = None) -> dict[str, Any]:
        """The layer as plain data."""
        found = self.found
        data: dict[str, Any] = {
            "bulk_edges": found.bulk_edges,
            "edge_errors": found.edge_errors,
            "outliers": found.outliers,
            "outlier_errors": found.outlier_errors,
            "overlaps": found.overlaps,
            "alignments": _listed(found.alignments),
            "alignment_path": None if found.alignment_path is None else list(map(_listed, found.alignment_path)),
            "outlier_path": found.outlier_path,
            "outlier_path_errors": found.outlier_path_errors,
            "bulk_path": found.bulk_path,
            "largest_path": found.largest_path,
            "bbp_time": self.bbp_time,
            "atoms": found.atoms,
            "moments": found.moments,
            "curve": found.curve,
        }
        if grid is not None:
            data["density"] = {"x": list(grid), "y": self.density(grid).tolist()}
        return {**data, "diagnostics": asdict(found.diagnostics)}


@dataclass(frozen=True)
class Solution(Saved):
    """What the theory says at one point.

    It is false in a condition if it is not to be trusted; `trouble` says why. Numbers of a solution that diverged do
    not exist: asking for them raises the error that says so.

    >>> import derive

    >>> from derive.api.example import SPIKE
    >>> s = derive.load(SPIKE).solve(strength=2)
    >>> s.outliers, s.bulk_edges, bool(s)
    (array([2.5]), array([[-2.,  2.]]), True)
    """

    made: Provenance
    found: Found | None
    trouble: tuple[str, ...] = ()

    @staticmethod
    def of(made: Provenance, found: Found) -> Solution:
        """A solution with what is wrong with it, if anything is."""
        trouble = []
        for layer in found.layers:
            if not np.all(np.isfinite([*layer.outliers, *(e for pair in layer.bulk_edges for e in pair)])):
                why = "an eigenvalue of the theory is not a number: the computation diverged; try a smaller step"
                return Solution(made, None, (why,))
            where = f"layer {layer.label}: " if layer.label else ""
            if layer.diagnostics.undecided is not None:
                trouble.append(where + layer.diagnostics.undecided.sentence)
            if layer.diagnostics.residual > LARGE_RESIDUAL:
                residual = layer.diagnostics.residual
                trouble.append(f"{where}A(z) is not singular at an outlier (residual {residual:.1g}); try other values")
        for check in found.certificate.failed if found.certificate is not None else ():
            trouble.append(f"{check.sentence}; do not use these numbers, and run derive check {made.target or 'FILE'}")
        return Solution(made, found, tuple(trouble))

    def __bool__(self) -> bool:
        return not self.trouble

    @property
    def _numbers(self) -> Found:
        if self.found is None:
            raise NumericalError(self.trouble[0])
        return self.found

    @property
    def setting(self) -> str:
        return self.made.setting

    @property
    def parameters(self) -> dict[str, int | float | str]:
        return dict(self.made.parameters)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The probed matrices in the order of the declaration."""
        return tuple(map(Layer, self._numbers.layers))

    def layer(self, label: int | str | None = None) -> Layer:
        """One probed matrix by its label; the first one if None."""
        if not self.layers:
            raise ParameterError(f"there are no spectra: {self.setting} probes no matrix, or layer=none was asked for")
        labels = [layer.label for layer in self.layers]
        if label is not None and str(label) not in labels:
            raise ParameterError(
                f"there is no layer {label}; the layers are {', '.join(labels) or 'one without a name'}"
            )
        return self.layers[0 if label is None else labels.index(str(label))]

    @property
    def bulk_edges(self) -> np.ndarray:
        """Of the first layer, as everything below that a layer has."""
        return self.layer().bulk_edges

    @property
    def outliers(self) -> np.ndarray:
        return self.layer().outliers

    @property
    def outlier_errors(self) -> np.ndarray | None:
        return self.layer().outlier_errors

    @property
    def overlaps(self) -> dict[str, np.ndarray] | None:
        return self.layer().overlaps

    @property
    def alignments(self) -> dict[str, dict[str, np.ndarray]]:
        return self.layer().alignments

    @property
    def outlier_path(self) -> tuple[np.ndarray, ...] | None:
        return self.layer().outlier_path

    @property
    def bbp_time(self) -> int | Literal["never"] | None:
        return self.layer().bbp_time

    def density(self, x: Any, layer: int | str | None = None) -> np.ndarray:
        """The density of the bulk at each x; of the first layer unless one is named."""
        return self.layer(layer).density(x)

    def resolvent(
        self,
        z: Any,
        layer: int | str | None = None,
        *,
        side: str | None = None,
        beside: str | None = None,
        between: str | tuple[str, str] | None = None,
    ) -> np.ndarray:
        """G(z), the normalised trace of the resolvent R = 1 / (z - M), at any complex z, or one with other matrices.

        beside="A": tr R A; between="A": tr R A R; between=("A", "B"): tr R A R B, of matrices that the declaration
        names in spectrum(..., between={"A": ...}); all over the number of sites. On the bulk, where the resolvent has
        two values, side="above" or side="below" says from which half plane. Of the first layer unless one is named.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> s = derive.load(SPIKE).solve(strength=2)
        >>> abs(s.resolvent([2.5, 2.5j])).round(6)
        array([0.5     , 0.350781])
        >>> round(float(s.resolvent(0.0, side="above").imag), 6)
        -1.0
        """
        found = self.layer(layer)
        if beside is None and between is None:
            return found.resolvent(z, side)
        pair = (between,) if isinstance(between, str) else tuple(between or ())
        if (beside is not None and pair) or len(pair) > 2:
            raise ParameterError("give one matrix with beside=, one with between=, or two as between=('A', 'B')")
        asked = beside if beside is not None else f"{pair[0]} R" if len(pair) == 1 else f"{pair[0]} R {pair[1]}"
        known = self.traced(found.label)
        for name in (beside,) if beside is not None else pair:
            if name not in known:
                have = f"there are {listed(known)}" if known else "there is none"
                raise ParameterError(
                    f"{name!r} is no matrix that stands between resolvents of {self.setting}, {have}; declare it with "
                    f"spectrum(..., between={{{name!r}: ...}})"
                )
        points = found.checked_points(z, side)
        values = self._numbers.compute_traces(found.label, points.astype(complex).ravel(), -1 if side == "below" else 1)
        made = np.array([value[asked] for value in values]).reshape(points.shape)
        if not np.isfinite(made).all():
            raise ParameterError(f"tr R {asked} is infinite at z = {points[~np.isfinite(made)].flat[0]:.6g}")
        return made if np.iscomplexobj(points) or found.on_support(points).any() else made.real

    def resolvents(self, z: Any, layer: int | str | None = None, side: str | None = None) -> list[dict[str, Any]]:
        """At each z all traces that there are, as plain data: G, and for matrices A and B between resolvents "A" for
        tr R A, "A R" for tr R A R and "A R B" for tr R A R B; numbers as [real part, imaginary part]."""
        found = self.layer(layer)
        points = np.atleast_1d(found.checked_points(z, side)).astype(complex).ravel()
        values = [{"G": complex(g)} for g in np.atleast_1d(found.resolvent(points, side))]
        if self.traced(found.label):
            more = self._numbers.compute_traces(found.label, points, -1 if side == "below" else 1)
            values = [{**one, **other} for one, other in zip(values, more, strict=True)]
        return [
            {"z": [point.real, point.imag], "values": {name: [v.real, v.imag] for name, v in one.items()}}
            for point, one in zip(points, values, strict=True)
        ]

    def traced(self, label: str | None = None) -> tuple[str, ...]:
        """The names of the matrices that stand between resolvents of a layer."""
        layer = self.layer(label)
        return next((p.between for p in self._numbers.about.probes if p.label == layer.label), ())

    def a_matrix(self, z: Any, layer: int | str | None = None) -> np.ndarray:
        """A(z) at real points outside the bulk; it is singular at the outliers. Of the first layer unless one is named.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> abs(derive.load(SPIKE).solve(strength=2).a_matrix([2.5, 3.0])[:, 0, 0]) > 1e-12
        array([False,  True])
        """
        from numerics.solver import a_matrices

        found, points = self.layer(layer), np.atleast_1d(_real(z))
        if self._numbers.solver is None:
            raise ParameterError("A(z) is not kept with a saved result; solve again and ask for it")
        return a_matrices(self._numbers.solver, self._numbers, points, found.label)

    @property
    def observables(self) -> dict[str, np.ndarray]:
        """By name an array over time, with labels along further axes."""
        return {name: read_only(series) for name, series in self._numbers.observables.items()}

    @property
    def errors(self) -> dict[str, np.ndarray] | None:
        """Standard errors of the observables; None where they are exact."""
        spread = self._numbers.observable_errors
        return None if spread is None else {name: read_only(series) for name, series in spread.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        found = self._numbers.observables
        if not isinstance(name, str) or name not in found:
            have = f"the observables are {listed(found)}" if found else "it has no observables"
            raise ParameterError(f"{self.setting} has no observable {name!r}; {have}")
        return read_only(found[name])

    @property
    def C(self) -> Kernels:
        """Correlations of the named fields: `s.C["a", "b"]` has <a(t) b(s)>; `.values`, `.errors`, `.axes`.

        Each is computed when it is first asked for. A result that was pickled or saved has those that were asked for.
        """
        return self._numbers.C

    @property
    def R(self) -> Kernels:
        """Responses: `s.R["a", "b"]` has the mean derivative of a(t) by a source in the equation of b at time s."""
        return self._numbers.R

    @property
    def method(self) -> TrainingMethod:
        """How the training level was computed: `closure`, `quadrature` (nodes, error), `sampling` (samples, seed)."""
        return self._numbers.method

    @property
    def diagnostics(self) -> LayerDiagnostics:
        """How the spectrum of the first layer was computed, and how well."""
        return self.layer().diagnostics

    @property
    def certificate(self) -> Certificate | None:
        """What was checked of the numbers, and how closely; None where nothing was."""
        return None if self.found is None else self.found.certificate

    @property
    def exact(self) -> bool:
        """Whether nothing was sampled."""
        return self._numbers.observable_errors is None

    # -- conversions

    def as_dict(self, grid: Any = None, resolvent: Any = (), side: str | None = None) -> dict[str, Any]:
        """Plain data, with the keys that `derive solve --json` prints. grid: where the density is wanted too;
        resolvent: where traces of the resolvent are, and from which side on the bulk."""
        start = {"setting": self.setting, "parameters": self.parameters}
        if self.found is None:
            return {**start, "error": self.trouble[0]}
        layers = [layer.as_dict(grid) for layer in self.layers]
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
            "observables": self.found.observables,
            "observable_errors": self.found.observable_errors,
        }
        if any(layer.label for layer in self.layers):
            named = [int(x.label) if x.label.isdigit() else x.label for x in self.layers]
            result["layers"] = [{"layer": name, **data} for name, data in zip(named, layers, strict=True)]
        if self.found.two_time:
            result["kernels"] = {kernel.name: kernel.as_dict() for kernel in self.found.two_time.values()}
        result["trouble"] = list(self.trouble)
        if self.certificate is not None:
            result["certificate"] = [check.as_dict() for check in self.certificate]
        result["method"] = asdict(self.method)
        more = {name: series for name, series in self.found.observables.items() if name not in result}
        return {**result, **more}

    def to_frame(self) -> pandas.DataFrame:
        """Observables with one row per time; of those with labels one column per label."""
        from derive.results.frames import frame_of_solution

        return frame_of_solution(self)

    def to_xarray(self) -> xarray.DataTree:
        """A labelled tree: observables over time, and a group for each layer that has a name."""
        from derive.results.trees import tree_of

        return tree_of({"theory": self})

    # -- pictures

    def plot(self) -> Figure:
        """Bulk and outliers of every layer, their path, and the observables."""
        from numerics.plots.theory import draw_solution

        return draw_solution(self._numbers, self.made.point)

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

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.made.point}: {self.trouble[0]}"
        lines = [self.made.point, *table(self._rows())]
        return "\n".join([*lines, *(f"not to be trusted: {reason}" for reason in self.trouble)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self.found is None:
            return html_table(self.made.point, [], self.trouble)
        return html_table(self.made.point, self._rows(), self.trouble)
