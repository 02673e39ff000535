"""The solution of a setting at given parameters: training level, bulk and outliers of every layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.bulk.branch import Branch
from numerics.bulk.law import SpectralLaw
from numerics.bulk.moments import moments
from numerics.bulk.sampled import edge_errors, moment_errors
from numerics.bulk.settling import as_settled, movement
from numerics.bulk.support import law_of
from numerics.bulk.traces import traced
from numerics.certificate.checking import Certifier
from numerics.certificate.records import Certificate
from numerics.modules import ProbedMatrix, Solver, load_built, load_solver
from numerics.options import BARE, Options
from numerics.outliers.alignments import OutlierAlignment, alignments, unknown_errors, with_errors
from numerics.outliers.components import Component, components_of, joined_paths
from numerics.outliers.edges import undecided_edges
from numerics.outliers.errors import estimated_outliers, estimated_overlaps, estimated_path
from numerics.outliers.finding import (
    Eigenvalues,
    Outlier,
    RingSpectrum,
    find_outliers,
    ring_eigenvalues,
    ring_spectra,
)
from numerics.outliers.following import Lost
from numerics.outliers.large import LargeSpectrum, is_large, large_spectrum, largest_rows
from numerics.outliers.overlaps import are_resolved, spike_overlaps, spike_spans
from numerics.outliers.paths import Course, Early, early_eigenvalues, outlier_path, places_to_ask, taken_at
from numerics.outliers.poles import poles, replica_poles
from numerics.outliers.problem import SpikedProblem, a_matrices as assembled
from numerics.outliers.replicas import Replicas, replica_outliers
from numerics.outliers.restriction import Steps
from numerics.runtime.interface import ObservableOf, Probe, Setting
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import Point
from numerics.runtime.two_time import Wanted
from numerics.support.labelled import where_defined, with_none
from numerics.support.memory import check_expected, expected_memory
from numerics.support.nearby import Nearby
from numerics.support.precision import in_float64
from numerics.support.progress import Report, part
from numerics.support.reports import (
    BulkMethod,
    LayerDiagnostics,
    MissingOverlaps,
    OmittedPath,
    PathErrors,
    TrainingMethod,
    UndecidedOutlier,
)
from numerics.support.threads import threads_for
from numerics.training.sampling import DEFAULT_SAMPLES, Sampling
from numerics.training.trained import Trained, check_finite, check_memory, chunks, train_together
from numerics.training.two_time import two_time_functions
from numerics.two_time import Kernels, NoTwoTime, TwoTime, checked

__all__ = [
    "Layer",
    "Solution",
    "Solver",
    "Trained",
    "a_matrices",
    "load_built",
    "load_solver",
    "solve",
    "solve_many",
    "spectra",
    "spiked_problem",
]
Progress = Callable[[float, str], None] | None
MOMENTS = 8
Place = tuple[str, float, float, int]
"""A label, a point of the complex plane, and on the real axis the side that it is approached from."""


@dataclass(frozen=True)
class Layer:
    """The spectrum of one probed matrix after the last step, and its outliers at all times if they were asked for.

    outlier_path: for each time the outliers; outlier_path_errors: their standard errors where the theory is sampled,
    None for one that is not always there; bulk_path: the intervals of the bulk at each time, None where they do not
    depend on it; largest_path: the top of the spectrum, outlier or edge; bbp_time: the
    first time with an outlier, None if there is none. overlaps: for each outlier the squared overlap of its right
    and left vector with the span of the spikes; overlap_errors: theirs where the theory is sampled. alignments: with
    each direction that the declaration asks about, of the vectors that live on its sector; alignment_path: the same at
    each time, of the outliers that are there. law: of the bulk; moments: its own, from order 0, and moment_errors
    theirs where it depends on what is sampled, as edge_errors are those of the edges, None for an edge at which
    responses are infinite; curve: the polynomial in the resolvent G and z that is zero on it, None
    if it was too large to find. shift: what was added to the diagonal, also at all times. given: numbers of the
    training level that the bulk takes as parameters.
    """

    label: str
    law: SpectralLaw
    outliers: list[float]
    outlier_errors: list[float] | None
    diagnostics: LayerDiagnostics
    moments: list[float] = field(default_factory=list)
    curve: str | None = None
    shift: float = 0.0
    shift_path: list[float] | None = None
    outlier_path: list[list[float]] | None = None
    outlier_path_errors: list[list[float | None]] | None = None
    bulk_path: list[list[list[float]]] | None = None
    largest_path: list[float] | None = None
    bbp_time: int | None = None
    overlaps: list[dict[str, float | None]] | None = None
    overlap_errors: list[dict[str, float | None]] | None = None
    alignments: list[OutlierAlignment] = field(default_factory=list)
    alignment_path: list[list[OutlierAlignment]] | None = None
    moment_errors: list[float] | None = None
    edge_errors: list[list[float | None]] | None = None
    given: dict[str, Any] = field(default_factory=dict)

    def bulk_at(self, time: int) -> list[list[float]]:
        """The intervals of the bulk at a time, ascending."""
        return self.bulk_edges if self.bulk_path is None else self.bulk_path[time]

    def shift_at(self, time: int) -> float:
        """What was added to the diagonal at a time."""
        return self.shift_path[time] if self.shift_path and len(self.shift_path) > 1 else self.shift

    def diagnosed(self, **changes: Any) -> Layer:
        """The layer with other diagnostics."""
        return replace(self, diagnostics=replace(self.diagnostics, **changes))

    @property
    def bulk_edges(self) -> list[list[float]]:
        """The intervals of the bulk, ascending."""
        return [[low, high] for low, high in self.law.edges]

    @property
    def atoms(self) -> list[dict[str, float]]:
        """The point masses of the bulk, ascending."""
        return [{"at": at, "weight": weight} for at, weight in self.law.atoms]


@dataclass(frozen=True)
class Solution:
    """What the theory says at given parameters, as plain data. Errors are None where the result is exact."""

    setting: str
    parameters: dict[str, Any]
    layers: list[Layer]
    observables: dict[str, list[Any]]
    """By name, one number per time, or a list of numbers with labels; None at times at which it is not defined."""
    observable_errors: dict[str, list[Any]] | None
    method: TrainingMethod
    order: Mapping[OrderKey, np.ndarray] | None
    """Order parameters by name; None at points of a sweep, which do not keep them."""
    about: Setting
    """What was declared: names of fields, observables and parameters."""
    sampling: Sampling | None = None
    """How sites were sampled, where they were."""
    two_time: dict[OrderKey, TwoTime] = field(default_factory=dict)
    """Two-time functions that were asked for so far."""
    traces: dict[Place, dict[str, list[float]]] = field(default_factory=dict)
    """Traces of resolvents with other matrices that were asked for so far: by label, z and side; real and imaginary."""
    certificate: Certificate | None = None
    """What was checked, where that was asked for."""
    solver: Solver | None = field(default=None, repr=False, compare=False, metadata={"live": True})
    """What computes more of them; not part of what is pickled or saved."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "solver": None}

    @property
    def C(self) -> Kernels:
        """Correlations of the named fields: C["a", "b"] has <a(t) b(s)>."""
        return Kernels("C", self.about, self.two_time, self.compute_two_time)

    @property
    def R(self) -> Kernels:
        """Responses: R["a", "b"] has the mean derivative of a(t) by a source in the equation of b at time s, NaN where
        s is after t."""
        return Kernels("R", self.about, self.two_time, self.compute_two_time)

    def compute_traces(self, label: str, points: Iterable[complex], side: int) -> list[dict[str, complex]]:
        """Traces of the resolvent R of a layer with the matrices A between, "A" for tr R A, "A R" for tr R A R and
        "A R B" for tr R A R B, each at every point; kept in `traces`."""
        keys = [(label, point.real, point.imag, side if point.imag == 0 else 0) for point in points]
        missing = [key for key in dict.fromkeys(keys) if key not in self.traces]
        if missing and self.solver is None:
            raise ParameterError(
                f"the traces at z = {missing[0][1] + 1j * missing[0][2]:.6g} were not asked for before this result was "
                "saved; solve again and ask for them"
            )
        if missing and self.solver is not None:
            self.traces.update(zip(missing, _traces(self.solver, self, label, missing), strict=True))
        return [{name: complex(*value) for name, value in self.traces[key].items()} for key in keys]

    def compute_two_time(self, wanted: Wanted) -> None:
        """Compute two-time functions, those of one call in one pass, and keep them in `two_time`."""
        missing = tuple(name for name in checked(self.about, wanted) if name not in self.two_time)
        if missing and self.solver is None:
            raise NoTwoTime(f"{missing[0]} was not asked for before this result was saved; solve again and ask for it")
        if missing and self.solver is not None:
            self.two_time.update(two_time_functions(self.solver, self.parameters, missing, self.sampling))

    @property
    def bulk_edges(self) -> list[list[float]]:
        """The edges of the first layer, as `outliers` and `outlier_errors` are those of the first layer."""
        return self.layers[0].bulk_edges if self.layers else []

    @property
    def outliers(self) -> list[float]:
        return self.layers[0].outliers if self.layers else []

    @property
    def outlier_errors(self) -> list[float] | None:
        return self.layers[0].outlier_errors if self.layers else None

    @property
    def diagnostics(self) -> LayerDiagnostics:
        return self.layers[0].diagnostics

    def layer(self, label: str) -> Layer:
        return next(layer for layer in self.layers if layer.label == label)

    def density(self, x: np.ndarray, label: str | None = None) -> np.ndarray:
        """The density of the bulk of a layer, of the first one unless it is named; atoms left out."""
        if not self.layers:
            raise NumericalError(f"{self.setting} probes no matrix, so it has no density")
        layer = self.layers[0] if label is None else self.layer(label)
        return layer.law.density(x)


def _traces(solver: Solver, solution: Solution, label: str, places: Sequence[Place]) -> list[dict[str, list[float]]]:
    """Traces at places; in the lower half plane they are conjugate."""
    matrix, layer = solver.matrix(label), solution.layer(label)
    assert matrix.traces is not None, "whoever asks knows that there are some"
    z = np.array([complex(re - layer.shift, im) for _, re, im, _ in places])
    lower = np.array([im < 0 or side < 0 for _, _, im, side in places])
    branch = solver.branch(solution.parameters, matrix, solution.order, layer.given)
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


def spiked_problem(solver: Solver, solution: Solution, label: str | None = None) -> SpikedProblem:
    """What the outliers of a layer of a solution are found from, of the first one unless it is named."""
    layer = solution.layers[0] if label is None else solution.layer(label)
    if solution.order is None:
        raise ParameterError("points of a sweep keep no order parameters; solve this point alone and ask for A(z) then")
    matrix = solver.matrix(layer.label)
    branch = solver.branch(solution.parameters, matrix, solution.order)
    law = layer.law.moved(-layer.shift)
    return SpikedProblem(as_settled(matrix.probe, branch), branch.p, solution.order, branch, _excluded(law))


@in_float64
def a_matrices(solver: Solver, solution: Solution, z: np.ndarray, label: str | None = None) -> np.ndarray:
    """A(z) of a layer of a solution at real points outside its bulk, of the first one unless it is named."""
    layer = solution.layers[0] if label is None else solution.layer(label)
    problem = spiked_problem(solver, solution, label)
    if not problem.probe.unknowns:
        raise NumericalError(f"{solution.setting} has no spikes, so that it has no A(z)")
    points = np.asarray(z, float) - layer.shift
    for point, asked in zip(points, z, strict=True):
        if not (math.isfinite(point) and problem.outside(point)):
            raise ParameterError(f"A(z) at z = {asked:.6g}: take a finite z outside the bulk and its atoms")
    return assembled(problem, points)


def _excluded(law: SpectralLaw) -> tuple[tuple[float, float], ...]:
    """Where no outlier is: the intervals of the bulk, and its atoms as intervals of length zero."""
    return (*law.edges, *((at, at) for at, _ in law.atoms))


@in_float64
def solve(
    solver: Solver,
    values: dict[str, Any],
    options: Options = BARE,
    *,
    layers: Sequence[str] | None = None,
    progress: Progress = None,
    **changes: Any,
) -> Solution:
    """Order parameters, bulk and outliers.

    Args:
        options: As declared; `changes` replace fields of them.
        layers: Labels of the probed matrices, all of them if None.
    """
    options = replace(options, **changes)
    path, memory = _along(options), None if options.memory is None else 1e9 * options.memory
    tell = progress or (lambda fraction, text: None)
    tell(0.0, "training level")
    wanted = checked(solver.setting, tuple(options.kernels))
    check_memory(solver, values)
    sampling = (
        None if solver.setting.exact else Sampling(options.samples or DEFAULT_SAMPLES, options.seed, rank=options.rank)
    )
    if sampling is None:
        trained = Trained.exact(solver, values)
    else:
        along = any(_is_wanted(path, solver, m) for m in solver.matrices if layers is None or m.label in layers)
        expected = expected_memory(solver, values, sampling, layers, along and path)
        check_expected(expected, memory)
        tell(0.0, f"sampling, {expected.sentence}")
        trained = Trained.sampled(solver, values, sampling, part(tell, 0.0, 0.7), expected)
        sampling = replace(sampling, share=(trained.nearby.share, trained.nearby.doubt))
    rest = part(tell, 0.05 if solver.setting.exact else 0.7, 1.0)
    found = spectra(solver, values, trained, options, layers=layers, progress=rest)
    found = replace(found, sampling=sampling)
    found.compute_two_time(wanted)
    return found


def solve_many(
    solver: Solver,
    points: Sequence[dict[str, Any]],
    options: Options = BARE,
    *,
    layers: Sequence[str] | None = None,
    batch: int = 1,
    progress: Progress = None,
    **changes: Any,
) -> Iterator[Solution | NumericalError]:
    """A solution, or the reason why there is none, for each point. Whole numbers must be the same at all points.

    Exact forward passes run side by side, as many as fit into memory; of fewer than `batch` points as if they were so
    many, so that what was compiled for a full batch serves the last one too. Points that have their bulk in common ask
    it together.
    """
    tell = progress or (lambda fraction, text: None)
    options = replace(options, **changes)
    done = 0
    for chunk in chunks(solver, points):
        tables: Sequence[Trained | None] = [None] * len(chunk)
        if solver.setting.exact:
            tell(done / len(points), f"training level of {len(chunk)} points")
            tables = train_together(solver, chunk, batch)
            tell(done / len(points), f"bulk and outliers of {len(chunk)} points")
        known = _foreseen(solver, chunk, tables, layers, _along(options))
        for values, trained, foreseen in zip(chunk, tables, known, strict=True):
            tell(done / len(points), f"point {done + 1} of {len(points)}")
            try:
                if trained is None:
                    yield solve(solver, values, options, layers=layers)
                else:
                    found = spectra(solver, values, trained, options, layers=layers, foreseen=foreseen)
                    found.compute_two_time(tuple(options.kernels))
                    yield found
            except NumericalError as error:
                yield error
            done += 1
    tell(1.0, "done")


def _along(options: Options) -> bool | None:
    """Whether the outliers are wanted at every time; None where layers have names and eigenproblems are small."""
    return options.path if options.path is None else bool(options.path)


@dataclass(frozen=True)
class Foreseen:
    """What the outliers of a matrix are found from, with the eigenvalues of the rings of each summand of A(z) at the
    end and at all times."""

    law: SpectralLaw
    problem: SpikedProblem
    parts: tuple[Component, ...]
    rings: list[list[Eigenvalues]] | None = None
    early: list[Early | None] | None = None


@in_float64
def _foreseen(
    solver: Solver,
    points: Sequence[dict[str, Any]],
    tables: Sequence[Trained | None],
    layers: Sequence[str] | None,
    path: bool | None,
) -> list[dict[Probe, Foreseen]]:
    """For each point what its outliers are found from. Points that have a bulk in common share it, and it is asked
    about all of them at once. What cannot be computed is left out, and fails where it is needed."""
    branches: dict[tuple[Any, ...], Branch] = {}
    wanted: dict[tuple[Any, ...], list[float]] = {}
    found: list[dict[Probe, Foreseen]] = [{} for _ in points]
    for values, trained, known in zip(points, tables, found, strict=True):
        if trained is None or not _is_finite(trained):
            continue
        for matrix in solver.matrices:
            if matrix.probe in known or not (layers is None or matrix.label in layers):
                continue
            try:
                own = solver.branch(values, matrix, trained.order)
                key = (own.law, own.own)
                branch = branches.setdefault(key, own)
                law = law_of(branch)
                problem = SpikedProblem(as_settled(matrix.probe, own), own.p, trained.order, branch, _excluded(law))
                parts = components_of(problem)
                rings = [ring_eigenvalues(one.problem) for one in parts] if matrix.probe.reduced else None
                early: list[Early | None] = [None] * len(parts)
                if rings is not None and _is_wanted(path, solver, matrix):
                    steps = _steps(solver, own.p, values)
                    early = [early_eigenvalues(one.problem, one.steps(steps)) for one in parts]
                for one, of_rings, at_times in zip(parts, rings, early, strict=True) if rings else ():
                    wanted.setdefault(key, []).extend(places_to_ask(one.problem, of_rings, at_times))
            except NumericalError:
                continue
            known[matrix.probe] = Foreseen(law, problem, parts, rings, early)
    for key, places in wanted.items():
        with suppress(NumericalError):
            branches[key].ask(np.array(places))
    return found


def _is_finite(trained: Trained) -> bool:
    try:
        check_finite(trained)
    except NumericalError:
        return False
    return True


@contextmanager
def singular_told() -> Iterator[None]:
    """What linear algebra cannot do, as where two outliers or an edge and an outlier meet exactly, as a sentence."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise NumericalError(
            "a linear system of the spectrum is singular at exactly these parameters; take slightly other ones"
        ) from None


@in_float64
def spectra(
    solver: Solver,
    values: dict[str, Any],
    trained: Trained,
    options: Options = BARE,
    *,
    layers: Sequence[str] | None = None,
    foreseen: Mapping[Probe, Foreseen] | None = None,
    progress: Progress = None,
) -> Solution:
    """The solution that belongs to a trained level: the spectrum of every layer asked for."""
    tell = progress or (lambda fraction, text: None)
    check_finite(trained)
    chosen = [m for m in solver.matrices if layers is None or m.label in layers]
    found: list[Layer] = []
    bare: dict[Probe, Layer] = {}
    certify = options.certify
    certifier = None if certify is False else Certifier(solver, values, trained, certify is True)
    path, overlaps = _along(options), options.overlaps is True
    for number, matrix in enumerate(chosen):
        tell(number / len(chosen), f"spectrum of layer {matrix.label}" if matrix.label else "bulk and outliers")
        if matrix.probe not in bare:
            share = part(tell, number / len(chosen), (number + 1) / len(chosen))
            known = (foreseen or {}).get(matrix.probe)
            with threads_for(trained.rows), singular_told():
                bare[matrix.probe] = _layer(solver, values, trained, matrix, path, overlaps, known, share, certifier)
        layer = replace(bare[matrix.probe], label=matrix.label, curve=matrix.curve)
        found.append(_moved(layer, trained.observables[matrix.plus]) if matrix.plus else layer)
    tell(1.0, "done")
    errors = trained.errors
    observed = solver.setting.observables
    return Solution(
        solver.name,
        dict(values),
        found,
        _listed(observed, trained.observables),
        None if errors is None else _listed(observed, errors),
        trained.method,
        trained.order,
        solver.about,
        certificate=None if certifier is None else certifier.certificate([layer.label for layer in found]),
        solver=solver,
    )


def _listed(observed: Iterable[ObservableOf], table: Mapping[str, np.ndarray]) -> dict[str, list[Any]]:
    """Observables as lists over time, None where they are not defined."""
    found = where_defined(observed, {name: np.atleast_1d(value) for name, value in table.items()})
    return {name: with_none(value) for name, value in found.items()}


def _layer(
    solver: Solver,
    values: dict[str, Any],
    trained: Trained,
    matrix: ProbedMatrix,
    path: bool | None,
    overlaps: bool,
    known: Foreseen | None,
    tell: Report,
    certifier: Certifier | None,
) -> Layer:
    known = known or _posed(solver, values, trained, matrix, tell)
    law, problem, branch = known.law, known.problem, known.problem.branch
    along, steps = _is_wanted(path, solver, matrix), None
    if known.rings is None and is_large(known.parts[0].problem):  # summands are equally large
        along = along and path is not None  # it takes ten times as long as the outliers of the last time
    if along:
        steps = _steps(solver, problem.p, values)
    none = [None] * len(known.parts)
    isolated = [
        _isolated(part, of_rings, steps, trained, tell)
        for part, of_rings in zip(known.parts, known.rings or none, strict=True)
    ]
    rings, large = isolated[0].rings, isolated[0].large
    found = sorted(
        (z for one, of in zip(isolated, known.parts, strict=True) for z in one.outliers * of.multiplicity),
        key=lambda o: (o.z, o.condition),
        reverse=True,
    )
    blurred, off = _bulk_errors(problem, law, trained.nearby)
    here = [float(o.z) for o in found]
    without_bias, errors, replicate_method, undecided = here, None, None, None
    if trained.nearby.orders:
        replicas = replica_outliers(problem, rings, here, trained.nearby) if large is None else large.replicas
        without_bias, errors, undecided = _estimated(problem, Blurs.of(law, blurred), here, replicas, trained.nearby)
        replicate_method = replicas.method
    diagnostics = LayerDiagnostics(
        residual=max((float(o.residual) for o in found), default=0.0),
        condition=max((float(o.condition) for o in found), default=1.0),
        reduced=matrix.probe.reduced,
        spiked=bool(matrix.probe.unknowns),
        bulk=_bulk_method(branch),
        outlier_errors=replicate_method,
        undecided=undecided,
        path=OmittedPath(large.rows) if large and not along and _is_wanted(path, solver, matrix) else None,
    )
    layer = Layer(
        matrix.label,
        law,
        without_bias,
        errors,
        diagnostics,
        moments(branch, MOMENTS),
        moment_errors=off,
        edge_errors=blurred,
        given=matrix.given_to(solver.numbers(values), branch.p),
    )
    layer = _with_any_vectors(layer, known, here, large, trained, overlaps, solver.setting.steps)
    if steps is not None:
        layer = _with_path(layer, problem, _course(known, isolated, steps, trained, tell), trained, steps)
    if certifier is not None:
        certifier.check_layer(matrix, problem, here, (law, layer.moments, off))
    return layer


def _course(known: Foreseen, isolated: Sequence[Isolated], steps: Steps, trained: Trained, tell: Report) -> Course:
    """Return the outliers at every time, from those of each direct summand of A(z)."""
    early = known.early or [None] * len(known.parts)
    courses = [
        outlier_path(summand.problem, summand.steps(steps), tell, trained.nearby.orders, eigenvalues)
        if one.large is None or one.large.course is None
        else one.large.course
        for summand, one, eigenvalues in zip(known.parts, isolated, early, strict=True)
    ]
    return joined_paths(courses, known.parts)


@dataclass(frozen=True)
class Isolated:
    """Outliers of a summand of A(z), with the spectra of its rings, or what is known of large ones."""

    outliers: list[Outlier]
    rings: list[RingSpectrum] | None
    large: LargeSpectrum | None


def _isolated(
    summand: Component, known: list[Eigenvalues] | None, steps: Steps | None, trained: Trained, tell: Report
) -> Isolated:
    problem = summand.problem
    if known is None and is_large(problem):
        with suppress(Lost):
            large = large_spectrum(problem, steps and summand.steps(steps), trained.nearby, tell)
            return Isolated(large.outliers, None, large)
    rings = ring_spectra(problem, known) if problem.probe.reduced else None
    return Isolated(find_outliers(problem, rings), rings, None)


def _posed(solver: Solver, values: dict[str, Any], trained: Trained, matrix: ProbedMatrix, tell: Report) -> Foreseen:
    """The bulk of a matrix, and the problem of its outliers."""
    branch = solver.branch(values, matrix, trained.order)
    law = law_of(branch, part(tell, 0.0, 0.8))
    probe = as_settled(matrix.probe, branch)
    problem = SpikedProblem(probe, branch.p, trained.order, branch, _excluded(law))
    return Foreseen(law, problem, components_of(problem))


def _bulk_errors(problem: SpikedProblem, law: SpectralLaw, nearby: Nearby) -> tuple[Any, Any]:
    """Errors of the edges and of the moments of a bulk that depends on what is sampled; None where it does not."""
    if not (problem.moves and nearby.orders):
        return None, None
    others = [problem.with_order(order).branch for order in nearby.orders]
    return edge_errors(problem.branch, others, law, nearby), moment_errors(problem.branch, others, MOMENTS, nearby)


def _estimated(
    problem: SpikedProblem, blurs: Blurs, here: list[float], replicas: Replicas, nearby: Nearby
) -> tuple[list[float], list[float], UndecidedOutlier | None]:
    """Outliers without bias, their errors, and an outlier that is not decided, if there is one."""
    undecided = None
    estimates = estimated_outliers(here, replicas.positions, nearby)
    settled = [_settled(problem, blurs, z, *one) for z, one in zip(here, estimates, strict=True)]
    if not all(sure for _, _, sure in settled) or any(len(one) != len(here) for one in replicas.positions):
        undecided = UndecidedOutlier()
    elif unsure := undecided_edges(problem, blurs.errors, here):
        undecided = UndecidedOutlier(float(unsure[0]), float(blurs.errors[unsure[0]]))
    return [value for value, _, _ in settled], [error for _, error, _ in settled], undecided


def _with_any_vectors(
    layer: Layer,
    known: Foreseen,
    here: list[float],
    large: LargeSpectrum | None,
    trained: Trained,
    overlaps: bool,
    steps: str | None,
) -> Layer:
    """The layer with what is asked about vectors, unless A(z) as a whole is too large for them to be read off."""
    problem, wide = known.problem, 0 if large is None else large.rows
    if overlaps and len(known.parts) * known.parts[0].multiplicity > 1:  # vectors are those of the whole
        wide = largest_rows(problem) if is_large(problem) else 0
    if wide and not here:
        return replace(layer, overlaps=[] if overlaps else None)
    if wide and overlaps:
        return layer.diagnosed(overlaps=MissingOverlaps("large", round(2.5 * wide)))
    if not wide and (overlaps or problem.probe.directions):
        return _with_vectors(layer, problem, trained, here, overlaps, steps)
    return layer


def _is_wanted(path: bool | None, solver: Solver, matrix: ProbedMatrix) -> bool:
    """Whether the outliers of a matrix are wanted at every time."""
    wanted = solver.layered and (matrix.probe.reduced or not matrix.probe.unknowns) if path is None else path
    steady = all(spread.steady for spread in matrix.bulk.spreads)
    return wanted and steady and solver.setting.steps is not None


def _bulk_method(branch: Branch) -> BulkMethod:
    """How the bulk was computed."""
    law = branch.law
    if law.eliminated:
        return BulkMethod()
    count = len(law.responses)
    if law.sites is None:
        return BulkMethod("responses", count)
    nodes, error = (int(law.nodes), float(movement(branch))) if law.settles else (None, None)
    return BulkMethod("sampled site averages" if law.sampled else "site averages", count, nodes, error)


def _steps(solver: Solver, p: Point, values: Mapping[str, Any]) -> Steps:
    name = solver.setting.steps
    assert name is not None, "only models with a clock have steps"
    strides: Any = solver.training.strides(p)
    return Steps(name, int(values[name]), strides)


@dataclass(frozen=True)
class Blurs:
    """The standard error of each edge of a bulk that depends on what is sampled; no edges where it does not."""

    errors: dict[float, float]

    @staticmethod
    def of(law: SpectralLaw, found: list[list[float | None]] | None) -> Blurs:
        """An edge without an error of its own is blurred as much as the one that is known worst."""
        if found is None:
            return Blurs({})
        worst = max((error for pair in found for error in pair if error is not None), default=0.0)
        edges, errors = np.ravel(law.edges).tolist(), [error for pair in found for error in pair]
        return Blurs({e: worst if error is None else error for e, error in zip(edges, errors, strict=True)})

    def at(self, edge: float) -> float:
        return self.errors.get(edge, 0.0)


def _settled(problem: SpikedProblem, blurs: Blurs, z: float, value: float, error: float) -> tuple[float, float, bool]:
    """An outlier, its error, and whether it is one for sure. Where it is lost, or without its bias inside of the bulk,
    or closer to the edge than that is known, it stays where it was found; the way to the edge and the error of that
    are errors then."""
    edge = problem.nearest_edge(z)
    blur = blurs.at(edge)
    if math.isfinite(error) and problem.outside(value) and abs(value - edge) > blur:
        return value, error, True
    way = abs(z - edge)
    return z, math.hypot(way, blur, error if math.isfinite(error) else 0.0), False


def _with_path(layer: Layer, problem: SpikedProblem, course: Course, trained: Trained, steps: Steps) -> Layer:
    """The layer with its outliers at all times."""
    whole, bulks = [now for now, _ in course.path], [bulk for _, bulk in course.path]
    moves = any(bulk != bulks[-1] for bulk in bulks)
    errors = None
    if trained.nearby.orders:
        whole, errors = estimated_path(whole, course.replicas, trained.nearby)
        layer = layer.diagnosed(path_errors=PathErrors(steps.count, course.anew, course.unknown))
    directed = None
    if problem.probe.directions:
        directed = [*_directed_path(problem, steps, [now for now, _ in course.path], trained), layer.alignments]
    return replace(
        layer,
        alignment_path=directed,
        outlier_path=whole,
        outlier_path_errors=errors,
        bulk_path=[[[low, high] for low, high in bulk if low < high] for bulk in bulks] if moves else None,
        largest_path=[
            max([*now, *(high for _, high in bulk)], default=math.nan) for now, bulk in zip(whole, bulks, strict=True)
        ],
        bbp_time=next((time for time, now in enumerate(whole) if now), None),
    )


def _directed_path(
    problem: SpikedProblem, steps: Steps, path: Sequence[list[float]], trained: Trained
) -> list[list[OutlierAlignment]]:
    """Squared cosines of the vectors of the outliers at all times before the last with the directions asked about."""
    found: list[list[OutlierAlignment]] = []
    for time, now in enumerate(path[:-1]):
        if not now:
            found.append([])
            continue
        then = taken_at(problem, steps, time)
        here = alignments(poles(then, now), steps.name)
        if trained.nearby.orders:
            try:
                others = [alignments(one, steps.name) for one in replica_poles(then, now, trained.nearby.orders)]
                here = with_errors(here, others, trained.nearby)
            except Lost:
                here = unknown_errors(here)
        found.append(here)
    return found


def _with_vectors(
    layer: Layer, problem: SpikedProblem, trained: Trained, here: list[float], overlaps: bool, steps: str | None
) -> Layer:
    """The layer with what is asked about the vectors of its outliers; here: outliers of the problem."""
    if not here:
        return replace(layer, overlaps=[] if overlaps else None)
    if overlaps and not are_resolved(problem, trained.noise):
        layer = layer.diagnosed(overlaps=MissingOverlaps("dependent spikes"))
        overlaps = False
    if overlaps:
        layer = layer.diagnosed(spike_directions=spike_spans(problem))
    if not overlaps and not problem.probe.directions:
        return layer
    found = poles(problem, here)
    layer = replace(layer, overlaps=spike_overlaps(found) if overlaps else None, alignments=alignments(found, steps))
    if not trained.nearby.orders:
        return layer
    try:
        replicas = replica_poles(problem, here, trained.nearby.orders)
    except Lost as lost:
        return layer.diagnosed(overlap_errors=str(lost))
    others = [alignments(one, steps) for one in replicas]
    layer = replace(layer, alignments=with_errors(layer.alignments, others, trained.nearby))
    if layer.overlaps is None:
        return layer
    seen = [spike_overlaps(one) for one in replicas]
    values, errors = estimated_overlaps(layer.overlaps, seen, trained.nearby)
    return replace(layer, overlaps=values, overlap_errors=errors)


def _moved(layer: Layer, observable: np.ndarray) -> Layer:
    """The layer with an observable added to the diagonal of its matrix."""
    shift = np.atleast_1d(observable)
    last = float(shift[-1])
    at = shift if shift.size > 1 else np.full(len(layer.outlier_path or [0]), last)
    return replace(
        layer,
        law=layer.law.moved(last),
        outliers=[z + last for z in layer.outliers],
        moments=_moved_moments(layer.moments, last),
        moment_errors=None,
        shift=last,
        shift_path=[float(x) for x in shift],
        outlier_path=layer.outlier_path
        and [[z + float(x) for z in now] for now, x in zip(layer.outlier_path, at, strict=True)],
        bulk_path=[[[e + float(x) for e in pair] for pair in layer.bulk_at(time)] for time, x in enumerate(at)]
        if layer.outlier_path and (layer.bulk_path or shift.size > 1)
        else None,
        largest_path=layer.largest_path and [z + float(x) for z, x in zip(layer.largest_path, at, strict=True)],
    )


def _moved_moments(values: list[float], shift: float) -> list[float]:
    """Moments of x + shift from those of x."""
    return [sum(math.comb(k, j) * values[j] * shift ** (k - j) for j in range(k + 1)) for k in range(len(values))]
