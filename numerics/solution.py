"""The output of the solver: the spectra of the probed matrices, order parameters and observables at given
parameters."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.bulk.law import SpectralLaw
from numerics.bulk.moments import traced
from numerics.certificate.records import Certificate
from numerics.modules import Solver
from numerics.outliers.alignments import OutlierAlignment
from numerics.runtime.interface import Setting
from numerics.runtime.keys import OrderKey
from numerics.runtime.two_time import Wanted
from numerics.support.formatting import grouped, html_table, listed, shown_number, table
from numerics.support.labelled import with_none
from numerics.support.progress import handful
from numerics.support.records import ArrayRecord, read_only
from numerics.support.reports import LayerDiagnostics, TrainingMethod
from numerics.training.sampling import Sampling
from numerics.training.two_time import two_time_functions
from numerics.two_time import Kernels, NoTwoTime, TwoTime, checked

SIDES = ("above", "below")
"""The half planes from which a point of the bulk is approached."""
Place = tuple[str, float, float, int]
"""A label, a point of the complex plane, and on the real axis the side from which it is approached."""


class Labelled(Protocol):
    """The spectrum of a probed matrix, from theory or from simulation."""

    @property
    def label(self) -> str: ...


L = TypeVar("L", bound=Labelled)
ByDirection = dict[str, dict[str, np.ndarray]]
"""Numbers by the name of a direction and by side."""


def real_places(given: Any) -> np.ndarray:
    """Return points on the real axis."""
    try:
        return np.asarray(given, float)
    except (TypeError, ValueError):
        raise ParameterError(f"{given!r}: give real numbers") from None


def _places(given: Any) -> np.ndarray:
    """Return points on the real axis at which a law can be evaluated, including infinity."""
    found = real_places(given)
    if np.isnan(found).any():
        raise ParameterError(f"{given!r} is not a real number or an array of real numbers")
    return found


def _points(given: Any) -> np.ndarray:
    """Return finite points of the complex plane."""
    try:
        found = np.asarray(given)
        found = found.astype(complex if np.iscomplexobj(found) else float)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if not np.isfinite(found).all():
        raise ParameterError(f"{given!r} is not a finite number or an array of finite numbers")
    return found


def _by_name(alignments: Sequence[OutlierAlignment], errors: bool = False) -> ByDirection:
    """Return squared cosines, or their standard errors, by name and side."""
    by_name: ByDirection = {}
    for one in alignments:
        values = one.errors if errors else one.values
        if values is not None:
            by_name.setdefault(one.name, {})[one.side] = read_only(one.shaped(values))
    return by_name


def _plain_alignments(alignments: Sequence[OutlierAlignment]) -> list[dict[str, Any]]:
    """Return squared cosines as plain data."""
    return [
        {"name": one.name, "side": one.side, "axes": ["outlier", *one.axes], "times": one.times}
        | {"values": with_none(one.shaped(one.values))}
        | {"errors": None if one.errors is None else with_none(one.shaped(one.errors))}
        for one in alignments
    ]


def _plain(arrays: np.ndarray | Sequence[np.ndarray] | None) -> list[Any] | None:
    """Return nested lists with None for NaN."""
    if arrays is None:
        return None
    return with_none(arrays) if isinstance(arrays, np.ndarray) else list(map(with_none, arrays))


def find_layer(layers: Sequence[L], label: int | str | None, setting: str) -> L:
    """Return the layer with a label, by default the first."""
    labels = [layer.label for layer in layers]
    if not labels:
        raise ParameterError(f"there are no spectra: {setting} probes no matrix, or layer=none was given")
    if label is not None and str(label) not in labels:
        raise ParameterError(f"there is no layer {label}; the layers are {', '.join(labels) or 'one without a name'}")
    return layers[0 if label is None else labels.index(str(label))]


@dataclass(frozen=True, eq=False, repr=False)
class Layer(ArrayRecord):
    """The spectrum of one probed matrix after the last step, and its outliers at all times if requested."""

    label: str
    law: SpectralLaw
    """The law of the bulk."""
    outliers: np.ndarray
    """Descending, repeated by multiplicity."""
    outlier_errors: np.ndarray | None
    """The standard error of each outlier; None if the outliers are exact."""
    diagnostics: LayerDiagnostics
    """How the spectrum was computed, and how accurately: `residual`, `condition`, `bulk.nodes`, `undecided` and
    more."""
    moments: np.ndarray = field(default_factory=lambda: read_only([]))
    """Moments of the bulk, from order 0."""
    moment_errors: np.ndarray | None = None
    """Their standard errors; None if the bulk is exact."""
    edge_errors: np.ndarray | None = None
    """One standard error for each edge, NaN where responses are infinite; None if the bulk is exact."""
    curve: str | None = None
    """A polynomial in the resolvent G and z that vanishes on the bulk; None if it was too large to compute."""
    shift: float = 0.0
    """The number added to the diagonal of the matrix."""
    shift_path: np.ndarray | None = None
    """The same at each time."""
    outlier_path: tuple[np.ndarray, ...] | None = None
    """The outliers at each time; None if they were not requested."""
    outlier_path_errors: tuple[np.ndarray, ...] | None = None
    """Their standard errors, NaN for an outlier that is not always present; None if they are exact."""
    bulk_path: tuple[np.ndarray, ...] | None = None
    """The intervals of the bulk at each time; None if they do not depend on time."""
    largest_path: np.ndarray | None = None
    """The top of the spectrum at each time, outlier or edge."""
    overlaps: Mapping[str, np.ndarray] | None = None
    """By side the squared overlaps of the outliers' vectors with the span of the spikes; NaN if not available."""
    overlap_errors: Mapping[str, np.ndarray] | None = None
    """The standard errors of the alignments along the path; None if they are exact."""
    outlier_alignments: tuple[OutlierAlignment, ...] = ()
    """Squared cosines of the outliers' vectors with each declared direction."""
    outlier_alignment_path: tuple[tuple[OutlierAlignment, ...], ...] | None = None
    """The alignments of the outliers present at each time; None if the path was not requested."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Values from the training level that the bulk takes as parameters."""

    def bulk_at(self, time: int) -> np.ndarray:
        """Return intervals of the bulk at a time: one row [low, high] for each, ascending."""
        return self.bulk_edges if self.bulk_path is None else self.bulk_path[time]

    def shift_at(self, time: int) -> float:
        """Return the number added to the diagonal of the matrix at a time."""
        return self.shift if self.shift_path is None or len(self.shift_path) < 2 else float(self.shift_path[time])

    def diagnosed(self, **changes: Any) -> Layer:
        """Return the layer with other diagnostics."""
        return replace(self, diagnostics=replace(self.diagnostics, **changes))

    @property
    def bulk_edges(self) -> np.ndarray:
        """Intervals of the bulk: one row [low, high] for each, ascending."""
        return read_only(np.reshape(self.law.edges, (-1, 2)))

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Point masses of the bulk: position and weight."""
        return self.law.atoms

    @property
    def bbp_time(self) -> int | Literal["never"] | None:
        """The first time with an outlier; "never" if there is none, None if the path was not requested."""
        if self.outlier_path is None:
            return None
        return next((time for time, now in enumerate(self.outlier_path) if len(now)), "never")

    @property
    def alignments(self) -> ByDirection:
        """The squared cosines of the outliers' vectors with each direction, by the name of alignment(...) and by side:
        one row per outlier, then the times and labels of the direction, if it has several.
        """
        return _by_name(self.outlier_alignments)

    @property
    def alignment_errors(self) -> ByDirection | None:
        """The standard error of each alignment; None if they are exact."""
        if any(one.errors is None for one in self.outlier_alignments):
            return None
        return _by_name(self.outlier_alignments, errors=True) or None

    @property
    def alignment_path(self) -> tuple[ByDirection, ...] | None:
        """The alignments of the outliers present at each time; None if the path was not requested."""
        path = self.outlier_alignment_path
        return None if path is None else tuple(map(_by_name, path))

    @property
    def alignment_path_errors(self) -> tuple[ByDirection, ...] | None:
        """The standard errors of the alignments along the path; None if they are exact."""
        path = self.outlier_alignment_path
        if path is None or any(one.errors is None for now in path for one in now):
            return None
        return tuple(_by_name(now, errors=True) for now in path)

    def density(self, x: Any) -> np.ndarray:
        """Return the density of the bulk at each x, without atoms."""
        return self.law.density(_places(x))

    def share_below(self, x: Any) -> np.ndarray:
        """Return the fraction of eigenvalues at or below each x, including atoms."""
        return self.law.cumulative(_places(x))

    def resolvent(self, z: Any, side: str | None = None) -> np.ndarray:
        """Return G(z), the mean of 1 / (z - eigenvalue) over the bulk, including atoms, at any complex z.

        On the support it has two limits: side="above" is the limit from the upper half plane, whose imaginary part is
            -pi times the density; side="below" is the limit from the lower half plane. Elsewhere no side is needed.
        """
        points = self.checked_points(z, side)
        inside = self.on_support(points)
        found = self.law.transform(points, -1 if side == "below" else 1)
        if not np.isfinite(found).all():
            where = points[~np.isfinite(found)].flat[0].real
            raise ParameterError(f"the resolvent is infinite at z = {where:.6g}; choose another z")
        return found if np.iscomplexobj(points) or inside.any() else found.real

    def checked_points(self, z: Any, side: str | None) -> np.ndarray:
        """Return points of the complex plane at which a resolvent has a single value."""
        points = _points(z)
        if side is not None and side not in SIDES:
            raise ParameterError(f"side={side!r}: write side='above' or side='below' the real axis")
        inside = self.on_support(points)
        if inside.any() and side is None:
            raise ParameterError(
                f"the resolvent is not unique on the bulk, as at z = {points[inside].flat[0].real:.6g}; give "
                "side='above' or side='below', or take z outside the bulk or off the real axis"
            )
        return points

    def on_support(self, points: np.ndarray) -> np.ndarray:
        """Return which points lie on the bulk or on one of its atoms."""
        found = np.zeros(points.shape, bool)
        for low, high in (*self.law.edges, *((at, at) for at, _ in self.atoms)):
            found |= (points.real >= low) & (points.real <= high) & (points.imag == 0)
        return found

    def outermost(self, size: int, lower: bool = False) -> float:
        """Return the mean of the largest (or smallest) of `size` eigenvalues if no outlier lies beyond the bulk.

        It is the edge plus the mean shift of the Tracy-Widom law for real symmetric matrices, which falls as
        size^(-2/3).
        """
        number = isinstance(size, numbers.Real) and not isinstance(size, (bool, np.bool_))
        if not number or not size >= 1 or size % 1:
            raise ParameterError(f"size={size!r}: size must be a whole number, 1 or larger")
        if not self.law.edges:
            raise NumericalError("there is no bulk and therefore no outermost eigenvalue")
        edge = self.law.edges[0][0] if lower else self.law.edges[-1][1]
        mean = self.law.mean_at_edge(edge, size)
        if mean is None:
            raise NumericalError(
                f"the density at the edge {edge:.6g} is not a square root, so the Tracy-Widom law does not apply"
            )
        return mean

    def side(self, value: float) -> str:
        """Return the position of an outlier relative to the intervals of the bulk, or to its atoms if it has no
        interval."""
        ends = [end for pair in self.law.edges for end in pair] or [at for at, _ in self.atoms]
        if not ends or value > max(ends):
            return "above the bulk"
        return "below the bulk" if value < min(ends) else "in a gap"

    def alignment_rows(self) -> list[tuple[str, str]]:
        """Return squared cosines with directions for display, as "direction|side|outlier|time" with a number, averaged
        over labels: at a handful of times, for each outlier, with equal outliers once.
        """
        rows = []
        for one in self.outlier_alignments:
            for first, count, _ in grouped(self.outliers):
                who = f"{first + 1}" if count == 1 else f"{first + 1}-{first + count}"
                for i, place in enumerate(handful(one.values.shape[1])):
                    when = "" if one.times is None else str(one.times[place])
                    names = f"{one.name}|{one.side}|{who}" if i == 0 else "||"
                    error = None if one.errors is None else float(np.max(one.errors[first, place]))
                    value = float(np.mean(one.values[first, place]))
                    rows.append((f"{names}|{when}", shown_number(value, error)))
        return rows

    def alignment_path_rows(self) -> list[tuple[str, str]]:
        """Return squared cosines of the first outlier along the path for display, as "direction|side|outlier|time" with
        a number, at a handful of the times with outliers. A direction that depends on time is evaluated at the same
        time.
        """
        path = self.outlier_alignment_path or ()
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
        """Return the displayed quantities with their numbers; equal outliers appear once, with their multiplicity."""
        edges = ", ".join(f"[{shown_number(a)}, {shown_number(b)}]" for a, b in self.bulk_edges)
        found = [("bulk", edges or "none")]
        errors = self.outlier_errors
        for first, count, value in grouped(self.outliers):
            number = shown_number(value, None if errors is None else float(errors[first]))
            found.append((f"outlier {self.side(value)}", number + (f" x {count}" if count > 1 else "")))
        for one in self.outlier_alignments:
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
        """Return the layer as plain data."""
        path = self.outlier_alignment_path
        sides = self.overlaps and [
            dict(zip(self.overlaps, row, strict=True))
            for row in zip(*map(with_none, self.overlaps.values()), strict=True)
        ]
        data: dict[str, Any] = {
            "bulk_edges": self.bulk_edges.tolist(),
            "edge_errors": _plain(self.edge_errors),
            "outliers": self.outliers.tolist(),
            "outlier_errors": _plain(self.outlier_errors),
            "overlaps": None if self.overlaps is None else sides or [],
            "alignments": _plain_alignments(self.outlier_alignments),
            "alignment_path": None if path is None else list(map(_plain_alignments, path)),
            "outlier_path": _plain(self.outlier_path),
            "outlier_path_errors": _plain(self.outlier_path_errors),
            "bulk_path": _plain(self.bulk_path),
            "largest_path": _plain(self.largest_path),
            "bbp_time": self.bbp_time,
            "atoms": [{"at": at, "weight": weight} for at, weight in self.atoms],
            "moments": self.moments.tolist(),
            "curve": self.curve,
        }
        if grid is not None:
            data["density"] = {"x": list(grid), "y": self.density(grid).tolist()}
        return {**data, "diagnostics": asdict(self.diagnostics)}


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(ArrayRecord):
    """The theory at given parameters. Errors are None if the result is exact."""

    inputs: dict[str, Any]
    """Values of the parameters, and arrays."""
    layers: tuple[Layer, ...]
    """The probed matrices in the order of the declaration."""
    observables: Mapping[str, np.ndarray]
    """By name an array over time, with labels along further axes; NaN at times at which it is not defined."""
    errors: Mapping[str, np.ndarray] | None
    """Standard errors of the observables; None if they are exact."""
    method: TrainingMethod
    """How the training level was computed: `closure`, `quadrature` (nodes, error), `sampling` (samples, seed)."""
    about: Setting
    """The declaration: names of fields, observables and parameters."""
    order: Mapping[OrderKey, np.ndarray] | None = None
    """Order parameters by name; None at points of a sweep, which do not store them."""
    sampling: Sampling | None = None
    """How sites were sampled, if they were."""
    certificate: Certificate | None = None
    """The checks of the numbers, with their agreement; None if nothing was checked."""
    two_time: dict[OrderKey, TwoTime] = field(default_factory=dict, compare=False)
    """The two-time functions computed so far."""
    traces: dict[Place, dict[str, list[float]]] = field(default_factory=dict, compare=False)
    """The traces of resolvents with other matrices computed so far: by label, z and side; real and imaginary parts."""
    solver: Solver | None = field(default=None, compare=False, metadata={"live": True})
    """Computes further two-time functions and traces; not pickled or saved."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "solver": None}

    @property
    def setting(self) -> str:
        """The name of the declared model."""
        return self.about.name

    @property
    def exact(self) -> bool:
        """Whether nothing was sampled."""
        return self.errors is None

    def layer(self, label: int | str | None = None) -> Layer:
        """Return one probed matrix by its label, by default the first."""
        return find_layer(self.layers, label, self.setting)

    @property
    def bulk_edges(self) -> np.ndarray:
        """Intervals of the bulk of the first layer, one row [low, high] for each."""
        return self.layer().bulk_edges

    @property
    def outliers(self) -> np.ndarray:
        """Outliers of the first layer, descending, repeated by multiplicity."""
        return self.layer().outliers

    @property
    def outlier_errors(self) -> np.ndarray | None:
        """The standard error of each outlier; None if the outliers are exact."""
        return self.layer().outlier_errors

    @property
    def overlaps(self) -> Mapping[str, np.ndarray] | None:
        """The squared overlaps of the outliers' vectors with the span of the spikes, by side."""
        return self.layer().overlaps

    @property
    def alignments(self) -> ByDirection:
        """The squared cosines of the outliers' vectors with declared directions, by name and side."""
        return self.layer().alignments

    @property
    def outlier_path(self) -> tuple[np.ndarray, ...] | None:
        """The outliers of the first layer at each time; None if they were not requested."""
        return self.layer().outlier_path

    @property
    def bbp_time(self) -> int | Literal["never"] | None:
        """The first time with an outlier; "never" if there is none."""
        return self.layer().bbp_time

    @property
    def diagnostics(self) -> LayerDiagnostics:
        """How the spectrum of the first layer was computed, and how accurately."""
        return self.layer().diagnostics

    @property
    def C(self) -> Kernels:
        """Correlations of the named fields: `s.C["a", "b"]` is <a(t) b(s)>, with `.values`, `.errors` and `.axes`.

        Each correlation is computed on first access. A pickled or saved result contains those computed so far.
        """
        return self._kernels("C")

    @property
    def R(self) -> Kernels:
        """Responses: `s.R["a", "b"]` is the mean derivative of a(t) with respect to a source in the equation of b at
        time s, NaN for s > t."""
        return self._kernels("R")

    def _kernels(self, kind: str) -> Kernels:
        """Return all correlations "C" or responses "R"."""
        return Kernels(kind, self.about, self.two_time, self.compute_two_time)

    def compute_traces(self, label: str, points: Iterable[complex], side: int) -> list[dict[str, complex]]:
        """Compute traces of the resolvent R of a layer with the matrices A between, "A" for tr R A, "A R" for tr R A R
        and "A R B" for tr R A R B, each at every point, and store them in `traces`."""
        keys = [(label, point.real, point.imag, side if point.imag == 0 else 0) for point in points]
        missing = [key for key in dict.fromkeys(keys) if key not in self.traces]
        if missing and self.solver is None:
            raise ParameterError(
                f"the traces at z = {missing[0][1] + 1j * missing[0][2]:.6g} were not computed before this result "
                "was saved; solve again and compute them"
            )
        if missing and self.solver is not None:
            self.traces.update(zip(missing, _traces(self.solver, self, label, missing), strict=True))
        return [{name: complex(*value) for name, value in self.traces[key].items()} for key in keys]

    def compute_two_time(self, wanted: Wanted) -> None:
        """Compute two-time functions, all of one call in a single pass, and store them in `two_time`."""
        missing = tuple(name for name in checked(self.about, wanted) if name not in self.two_time)
        if missing and self.solver is None:
            raise NoTwoTime(f"{missing[0]} was not computed before this result was saved; solve again and compute it")
        if missing and self.solver is not None:
            self.two_time.update(two_time_functions(self.solver, self.inputs, missing, self.sampling))

    def density(self, x: Any, layer: int | str | None = None) -> np.ndarray:
        """Return the density of the bulk at each x; by default of the first layer."""
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
        """Return G(z), the normalised trace of the resolvent R = 1 / (z - M), at any complex z, or a trace with other
        matrices.

        beside="A": tr R A; between="A": tr R A R; between=("A", "B"): tr R A R B, for matrices that the declaration
        names in spectrum(..., between={"A": ...}); all are divided by the number of sites. On the bulk, where the
        resolvent has two limits, side="above" or side="below" selects the half plane. The default is the first layer.

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
                    f"{name!r} is not a matrix between resolvents of {self.setting}, {have}; declare it with "
                    f"spectrum(..., between={{{name!r}: ...}})"
                )
        points = found.checked_points(z, side)
        values = self.compute_traces(found.label, points.astype(complex).ravel(), -1 if side == "below" else 1)
        made = np.array([value[asked] for value in values]).reshape(points.shape)
        if not np.isfinite(made).all():
            raise ParameterError(f"tr R {asked} is infinite at z = {points[~np.isfinite(made)].flat[0]:.6g}")
        return made if np.iscomplexobj(points) or found.on_support(points).any() else made.real

    def resolvents(self, z: Any, layer: int | str | None = None, side: str | None = None) -> list[dict[str, Any]]:
        """Return all available traces at each z as plain data: G, and for matrices A and B between resolvents "A" for
        tr R A, "A R" for tr R A R and "A R B" for tr R A R B; numbers are [real part, imaginary part]."""
        found = self.layer(layer)
        points = np.atleast_1d(found.checked_points(z, side)).astype(complex).ravel()
        values = [{"G": complex(g)} for g in np.atleast_1d(found.resolvent(points, side))]
        if self.traced(found.label):
            more = self.compute_traces(found.label, points, -1 if side == "below" else 1)
            values = [{**one, **other} for one, other in zip(values, more, strict=True)]
        return [
            {"z": [point.real, point.imag], "values": {name: [v.real, v.imag] for name, v in one.items()}}
            for point, one in zip(points, values, strict=True)
        ]

    def traced(self, label: str | None = None) -> tuple[str, ...]:
        """Return the names of the matrices between resolvents of a layer."""
        layer = self.layer(label)
        return next((p.between for p in self.about.probes if p.label == layer.label), ())


def _traces(solver: Solver, solution: Prediction, label: str, places: Sequence[Place]) -> list[dict[str, list[float]]]:
    """Return traces at some points; in the lower half plane they are complex conjugates of those in the upper one."""
    matrix, layer = solver.matrix(label), solution.layer(label)
    assert matrix.traces is not None, "requested only if there are some"
    z = np.array([complex(re - layer.shift, im) for _, re, im, _ in places])
    lower = np.array([im < 0 or side < 0 for _, _, im, side in places])
    branch = solver.branch(solution.inputs, matrix, solution.order, layer.given)
    found = traced(matrix.traces, branch, np.where(lower, z.conj(), z))
    names = [name for name, _ in matrix.traces.images]
    tables = []
    for one, turned in zip(found, lower, strict=True):
        values: dict[str, complex] = dict(zip(names, one.beside.tolist(), strict=True))
        values |= {f"{name} R": value for name, value in zip(names, one.between.tolist(), strict=True)}
        for name, row in zip(names, one.both.tolist(), strict=True):
            values |= {f"{name} R {other}": value for other, value in zip(names, row, strict=True)}
        tables.append({name: [v.real, -v.imag if turned else v.imag] for name, v in values.items()})
    return tables
