"""The solution of a setting at given parameters: training level, bulk and outliers of every layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.bulk.branch import Branch
from numerics.bulk.law import SpectralLaw
from numerics.bulk.moments import moments
from numerics.bulk.sampled import edge_errors, moment_errors
from numerics.bulk.settling import as_settled, movement
from numerics.bulk.support import law_of
from numerics.certificate.checking import Certifier
from numerics.modules import ProbedMatrix, Solver, load_built, load_solver
from numerics.options import BARE, Options
from numerics.outliers.alignments import OutlierAlignment, alignments, unknown_errors, with_errors
from numerics.outliers.components import Component, components_of, joined_paths
from numerics.outliers.edges import undecided_edges
from numerics.outliers.errors import estimated_outliers, estimated_overlaps, estimated_path
from numerics.outliers.finding import (
    CycleSpectrum,
    Outlier,
    cycle_spectra,
    find_outliers,
)
from numerics.outliers.following import Lost
from numerics.outliers.large import LargeSpectrum, is_large, large_spectrum, largest_rows
from numerics.outliers.overlaps import are_resolved, spike_overlaps, spike_spans
from numerics.outliers.paths import Course, outlier_path, places_to_ask, taken_at
from numerics.outliers.poles import poles, replica_poles
from numerics.outliers.problem import SpikedProblem, a_matrices as assembled
from numerics.outliers.replicas import Replicas, replica_outliers
from numerics.outliers.restriction import Steps
from numerics.outliers.together import SolvedCycles, solve_cycles
from numerics.runtime.interface import ObservableOf, Probe
from numerics.runtime.point import Point
from numerics.solution import Layer, Prediction
from numerics.support.labelled import where_defined
from numerics.support.memory import check_expected, expected_memory
from numerics.support.nearby import Nearby
from numerics.support.precision import in_float64
from numerics.support.progress import Report, part
from numerics.support.records import read_only
from numerics.support.reports import (
    BulkMethod,
    LayerDiagnostics,
    MissingOverlaps,
    OmittedPath,
    PathErrors,
    UndecidedOutlier,
)
from numerics.support.threads import threads_for
from numerics.training.sampling import DEFAULT_SAMPLES, Sampling
from numerics.training.trained import Trained, check_finite, check_memory, chunks, train_together
from numerics.two_time import checked

__all__ = [
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
SpikeOverlaps = list[dict[str, float | None]]
"""For each outlier the squared overlap by side; None if it is not available."""
MOMENTS = 8
"""Moments of the bulk in a result, from order 0."""


def spiked_problem(solver: Solver, solution: Prediction, label: str | None = None) -> SpikedProblem:
    """Return the problem whose solutions are the outliers of a layer of a solution; by default the first layer."""
    layer = solution.layers[0] if label is None else solution.layer(label)
    if solution.order is None:
        raise ParameterError("points of a sweep store no order parameters; solve this point alone to get A(z)")
    matrix = solver.matrix(layer.label)
    branch = solver.branch(solution.inputs, matrix, solution.order)
    law = layer.law.moved(-layer.shift)
    return SpikedProblem(as_settled(matrix.probe, branch), branch.p, solution.order, branch, _excluded(law))


@in_float64
def a_matrices(solver: Solver, solution: Prediction, z: np.ndarray, label: str | None = None) -> np.ndarray:
    """Return A(z) of a layer of a solution at real points outside its bulk; by default the first layer."""
    layer = solution.layers[0] if label is None else solution.layer(label)
    problem = spiked_problem(solver, solution, label)
    if not problem.probe.unknowns:
        raise NumericalError(f"{solution.setting} has no spikes and therefore no A(z)")
    points = np.asarray(z, float) - layer.shift
    for point, asked in zip(points, z, strict=True):
        if not (math.isfinite(point) and problem.outside(point)):
            raise ParameterError(f"A(z) at z = {asked:.6g}: take a finite z outside the bulk and its atoms")
    return assembled(problem, points)


def _excluded(law: SpectralLaw) -> tuple[tuple[float, float], ...]:
    """Return where outliers cannot lie: the intervals of the bulk, and its atoms as intervals of length zero."""
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
) -> Prediction:
    """Return order parameters, bulk and outliers.

    Args:
        options: the declared record; `changes` replace some of its fields.
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
) -> Iterator[Prediction | NumericalError]:
    """Return a solution, or the reason why there is none, for each point. Integer parameters must be equal at all
    points.

    Exact forward passes are batched if memory allows; fewer than `batch` points are padded to a full batch, so
    that its compiled program is reused. Points that share a bulk evaluate it together.
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
        problems = _pose_together(solver, chunk, tables, layers, _along(options))
        for values, trained, posed in zip(chunk, tables, problems, strict=True):
            tell(done / len(points), f"point {done + 1} of {len(points)}")
            try:
                if trained is None:
                    yield solve(solver, values, options, layers=layers)
                else:
                    found = spectra(solver, values, trained, options, layers=layers, problems=posed)
                    found.compute_two_time(tuple(options.kernels))
                    yield found
            except NumericalError as error:
                yield error
            done += 1
    tell(1.0, "done")


def _along(options: Options) -> bool | None:
    """Return whether the outliers are needed at every time; None if they are needed only where layers have names and
    eigenproblems are small.
    """
    return options.path if options.path is None else bool(options.path)


@dataclass(frozen=True)
class LayerProblem:
    """The problem of the outliers of a matrix, with the eigenvalues of the cycles of each summand of A(z), and its
    dependence on time if outliers are needed at all times."""

    law: SpectralLaw
    problem: SpikedProblem
    parts: tuple[Component, ...]
    cycles: tuple[SolvedCycles, ...] | None = None
    steps: Steps | None = None

    @property
    def summands(self) -> list[tuple[Component, SolvedCycles | None]]:
        """The summands of A(z) with the eigenvalues of their cycles, if those are known."""
        return list(zip(self.parts, self.cycles or [None] * len(self.parts), strict=True))


@in_float64
def _pose_together(
    solver: Solver,
    points: Sequence[dict[str, Any]],
    tables: Sequence[Trained | None],
    layers: Sequence[str] | None,
    path: bool | None,
) -> list[dict[Probe, LayerProblem]]:
    """Return the outlier problem of each point.

    Points with a common bulk share it, and it is evaluated for all of them at once. Failures are deferred until the
    result is needed.
    """
    branches: dict[tuple[Any, ...], Branch] = {}
    wanted: dict[tuple[Any, ...], list[float]] = {}
    found: list[dict[Probe, LayerProblem]] = [{} for _ in points]
    for matrix in {m.probe: m for m in solver.matrices if layers is None or m.label in layers}.values():
        posed: list[tuple[int, tuple[Any, ...], LayerProblem]] = []
        for number, (values, trained) in enumerate(zip(points, tables, strict=True)):
            if trained is None or trained.failure is not None:
                continue
            with suppress(NumericalError):
                own = solver.branch(values, matrix, trained.order)
                key = (own.law, own.own)
                branch = branches.setdefault(key, own)
                law = law_of(branch)
                problem = SpikedProblem(as_settled(matrix.probe, own), own.p, trained.order, branch, _excluded(law))
                posed.append((number, key, LayerProblem(law, problem, components_of(problem))))
        if not posed:
            continue
        if not matrix.probe.reduced:
            for number, _, known in posed:
                found[number][matrix.probe] = known
            continue
        steps = _steps(solver, posed[0][2].problem.p, points[0]) if _is_wanted(path, solver, matrix) else None
        by_summand = [
            solve_cycles([one.problem for one in some], None if steps is None else some[0].steps(steps))
            for some in zip(*(known.parts for *_, known in posed), strict=True)
        ]
        for (number, key, known), solved in zip(posed, zip(*by_summand, strict=True), strict=True):
            done = tuple(one for one in solved if one is not None)
            if len(done) < len(solved):
                continue
            with suppress(NumericalError):
                for part, one in zip(known.parts, done, strict=True):
                    wanted.setdefault(key, []).extend(places_to_ask(part.problem, one.last, one.early))
                found[number][matrix.probe] = replace(known, cycles=done, steps=steps)
    for key, places in wanted.items():
        with suppress(NumericalError):
            branches[key].ask(np.array(places))
    return found


@contextmanager
def report_singular() -> Iterator[None]:
    """Raise NumericalError if a linear system is singular, for example where two outliers or an edge and an outlier
    meet."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise NumericalError(
            "a linear system of the spectrum is singular at exactly these parameters; change them slightly"
        ) from None


@in_float64
def spectra(
    solver: Solver,
    values: dict[str, Any],
    trained: Trained,
    options: Options = BARE,
    *,
    layers: Sequence[str] | None = None,
    problems: Mapping[Probe, LayerProblem] | None = None,
    progress: Progress = None,
) -> Prediction:
    """Return the solution of a training level: the spectrum of every requested layer."""
    tell = progress or (lambda fraction, text: None)
    check_finite(trained)
    chosen = [m for m in solver.matrices if layers is None or m.label in layers]
    found: list[Layer] = []
    bare: dict[Probe, Layer] = {}
    certify = options.certify
    certifier = None if certify is False else Certifier(solver, values, trained, certify is True)
    path, overlaps = _along(options), options.overlaps is True
    with threads_for(trained.rows), report_singular():
        for number, matrix in enumerate(chosen):
            tell(number / len(chosen), f"spectrum of layer {matrix.label}" if matrix.label else "bulk and outliers")
            if matrix.probe not in bare:
                share = part(tell, number / len(chosen), (number + 1) / len(chosen))
                known = (problems or {}).get(matrix.probe)
                bare[matrix.probe] = _layer(solver, values, trained, matrix, path, overlaps, known, share, certifier)
            layer = bare[matrix.probe]
            if (layer.label, layer.curve) != (matrix.label, matrix.curve):
                layer = replace(layer, label=matrix.label, curve=matrix.curve)
            found.append(_shifted(layer, trained.observables[matrix.plus]) if matrix.plus else layer)
    tell(1.0, "done")
    errors = trained.errors
    observed = solver.setting.observables
    return Prediction(
        inputs=dict(values),
        layers=tuple(found),
        observables=_over_time(observed, trained.observables),
        errors=None if errors is None else _over_time(observed, errors),
        method=trained.method,
        about=solver.about,
        order=trained.order,
        certificate=None if certifier is None else certifier.certificate([layer.label for layer in found]),
        solver=solver,
    )


def _over_time(observed: Iterable[ObservableOf], values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return observables as arrays over time, NaN where they are not defined."""
    return where_defined(observed, {name: np.atleast_1d(value) for name, value in values.items()})


def _layer(
    solver: Solver,
    values: dict[str, Any],
    trained: Trained,
    matrix: ProbedMatrix,
    path: bool | None,
    overlaps: bool,
    known: LayerProblem | None,
    tell: Report,
    certifier: Certifier | None,
) -> Layer:
    known = known or _pose(solver, values, trained, matrix, tell)
    law, problem, branch = known.law, known.problem, known.problem.branch
    along, steps = _is_wanted(path, solver, matrix), None
    if known.cycles is None and is_large(known.parts[0].problem):  # summands are equally large
        along = along and path is not None  # it takes ten times as long as the outliers of the last time
    if along:
        steps = known.steps or _steps(solver, problem.p, values)
    isolated = [_isolated(part, solved, steps, trained, tell) for part, solved in known.summands]
    cycles, large = isolated[0].cycles, isolated[0].large
    found = sorted(
        (z for one, of in zip(isolated, known.parts, strict=True) for z in one.outliers * of.multiplicity),
        key=lambda o: (o.z, o.condition),
        reverse=True,
    )
    blurred, off = _bulk_errors(problem, law, trained.nearby)
    here = [float(o.z) for o in found]
    without_bias, errors, replicate_method, undecided = here, None, None, None
    if trained.nearby.orders:
        replicas = replica_outliers(problem, cycles, here, trained.nearby) if large is None else large.replicas
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
    bulk_moments = moments(branch, MOMENTS)
    layer = Layer(
        label=matrix.label,
        curve=matrix.curve,
        law=law,
        outliers=read_only(without_bias),
        outlier_errors=None if errors is None else read_only(errors),
        diagnostics=diagnostics,
        moments=read_only(bulk_moments),
        moment_errors=None if off is None else read_only(off),
        edge_errors=None if blurred is None else read_only(blurred).reshape(-1, 2),
        given=matrix.given_to(solver.numbers(values), branch.p),
    )
    layer = _with_any_vectors(layer, known, here, large, trained, overlaps, solver.setting.steps)
    if steps is not None:
        layer = _with_path(layer, problem, _course(known, isolated, steps, trained, tell), trained, steps)
    if certifier is not None:
        certifier.check_layer(matrix, problem, here, (law, bulk_moments, off))
    return layer


def _course(known: LayerProblem, isolated: Sequence[Isolated], steps: Steps, trained: Trained, tell: Report) -> Course:
    """Return the outliers at every time, from those of each direct summand of A(z)."""
    courses = [
        outlier_path(
            summand.problem, summand.steps(steps), tell, trained.nearby.orders, solved.early if solved else None
        )
        if one.large is None or one.large.course is None
        else one.large.course
        for (summand, solved), one in zip(known.summands, isolated, strict=True)
    ]
    return joined_paths(courses, known.parts)


@dataclass(frozen=True)
class Isolated:
    """Outliers of a summand of A(z), with the spectra of its cycles, or the results for large ones."""

    outliers: list[Outlier]
    cycles: list[CycleSpectrum] | None
    large: LargeSpectrum | None


def _isolated(
    summand: Component, known: SolvedCycles | None, steps: Steps | None, trained: Trained, tell: Report
) -> Isolated:
    problem = summand.problem
    if known is None and is_large(problem):
        with suppress(Lost):
            large = large_spectrum(problem, steps and summand.steps(steps), trained.nearby, tell)
            return Isolated(large.outliers, None, large)
    cycles = cycle_spectra(problem, known.last if known else None) if problem.probe.reduced else None
    return Isolated(find_outliers(problem, cycles), cycles, None)


def _pose(solver: Solver, values: dict[str, Any], trained: Trained, matrix: ProbedMatrix, tell: Report) -> LayerProblem:
    """Return the bulk of a matrix, and the problem of its outliers."""
    branch = solver.branch(values, matrix, trained.order)
    law = law_of(branch, part(tell, 0.0, 0.8))
    probe = as_settled(matrix.probe, branch)
    problem = SpikedProblem(probe, branch.p, trained.order, branch, _excluded(law))
    return LayerProblem(law, problem, components_of(problem))


def _bulk_errors(problem: SpikedProblem, law: SpectralLaw, nearby: Nearby) -> tuple[Any, Any]:
    """Return errors of the edges and of the moments of a bulk that depends on sampled quantities; None for others."""
    if not (problem.moves and nearby.orders):
        return None, None
    others = [problem.with_order(order).branch for order in nearby.orders]
    return edge_errors(problem.branch, others, law, nearby), moment_errors(problem.branch, others, MOMENTS, nearby)


def _estimated(
    problem: SpikedProblem, blurs: Blurs, here: list[float], replicas: Replicas, nearby: Nearby
) -> tuple[list[float], list[float], UndecidedOutlier | None]:
    """Return bias-corrected outliers, their errors, and an undecided outlier if there is one."""
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
    known: LayerProblem,
    here: list[float],
    large: LargeSpectrum | None,
    trained: Trained,
    overlaps: bool,
    steps: str | None,
) -> Layer:
    """Return the layer with the requested results on vectors, unless A(z) as a whole is too large for them."""
    problem, wide = known.problem, 0 if large is None else large.rows
    if overlaps and len(known.parts) * known.parts[0].multiplicity > 1:  # vectors are those of the whole
        wide = largest_rows(problem) if is_large(problem) else 0
    if wide and not here:
        return replace(layer, overlaps={} if overlaps else None)
    if wide and overlaps:
        return layer.diagnosed(overlaps=MissingOverlaps("large", round(2.5 * wide)))
    if not wide and (overlaps or problem.probe.directions):
        return _with_vectors(layer, problem, trained, here, overlaps, steps)
    return layer


def _is_wanted(path: bool | None, solver: Solver, matrix: ProbedMatrix) -> bool:
    """Return whether the outliers of a matrix are needed at every time."""
    wanted = solver.layered and (matrix.probe.reduced or not matrix.probe.unknowns) if path is None else path
    steady = all(spread.steady for spread in matrix.bulk.spreads)
    return wanted and steady and solver.setting.steps is not None


def _bulk_method(branch: Branch) -> BulkMethod:
    """Return how the bulk was computed."""
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
    """The standard error of each edge of a bulk that depends on sampled quantities; empty for any other bulk."""

    errors: dict[float, float]

    @staticmethod
    def of(law: SpectralLaw, found: list[list[float | None]] | None) -> Blurs:
        """Return the error of an edge; an edge without an error gets the largest error of the others."""
        if found is None:
            return Blurs({})
        worst = max((error for pair in found for error in pair if error is not None), default=0.0)
        edges, errors = np.ravel(law.edges).tolist(), [error for pair in found for error in pair]
        return Blurs({e: worst if error is None else error for e, error in zip(edges, errors, strict=True)})

    def at(self, edge: float) -> float:
        return self.errors.get(edge, 0.0)


def _settled(problem: SpikedProblem, blurs: Blurs, z: float, value: float, error: float) -> tuple[float, float, bool]:
    """Return an outlier, its error, and whether it is certain.

    If bias correction loses the outlier, moves it inside the bulk, or brings it closer to the edge than the error of
    either, the outlier stays at its uncorrected position; the distance to the edge and the error of the edge are then
    added to its error.
    """
    edge = problem.nearest_edge(z)
    blur = blurs.at(edge)
    if math.isfinite(error) and problem.outside(value) and abs(value - edge) > max(blur, error):
        return value, error, True
    way = abs(z - edge)
    return z, math.hypot(way, blur, error if math.isfinite(error) else 0.0), False


def _with_path(layer: Layer, problem: SpikedProblem, course: Course, trained: Trained, steps: Steps) -> Layer:
    """Return the layer with its outliers at all times."""
    whole, bulks = [now for now, _ in course.path], [bulk for _, bulk in course.path]
    moves = any(bulk != bulks[-1] for bulk in bulks)
    errors = None
    if trained.nearby.orders:
        whole, errors = estimated_path(whole, course.replicas, trained.nearby)
        layer = layer.diagnosed(path_errors=PathErrors(steps.count, course.anew, course.unknown))
    directed = None
    if problem.probe.directions:
        early = _directed_path(problem, steps, [now for now, _ in course.path], trained)
        directed = (*early, layer.outlier_alignments)
    return replace(
        layer,
        outlier_alignment_path=directed,
        outlier_path=tuple(map(read_only, whole)),
        outlier_path_errors=None if errors is None else tuple(map(read_only, errors)),
        bulk_path=tuple(read_only(np.reshape([e for e in bulk if e[0] < e[1]], (-1, 2))) for bulk in bulks)
        if moves
        else None,
        largest_path=read_only(
            [max([*now, *(high for _, high in bulk)], default=math.nan) for now, bulk in zip(whole, bulks, strict=True)]
        ),
    )


def _directed_path(
    problem: SpikedProblem, steps: Steps, path: Sequence[list[float]], trained: Trained
) -> list[tuple[OutlierAlignment, ...]]:
    """Return squared cosines of the vectors of the outliers at all earlier times with the requested directions."""
    aligned: list[tuple[OutlierAlignment, ...]] = []
    for time, now in enumerate(path[:-1]):
        if not now:
            aligned.append(())
            continue
        then = taken_at(problem, steps, time)
        here = alignments(poles(then, now), steps.name)
        if trained.nearby.orders:
            try:
                others = [alignments(one, steps.name) for one in replica_poles(then, now, trained.nearby.orders)]
                here = with_errors(here, others, trained.nearby)
            except Lost:
                here = unknown_errors(here)
        aligned.append(tuple(here))
    return aligned


def _with_vectors(
    layer: Layer, problem: SpikedProblem, trained: Trained, here: list[float], overlaps: bool, steps: str | None
) -> Layer:
    """Return the layer with the requested results on the vectors of its outliers; here: the outliers of the problem."""
    if not here:
        return replace(layer, overlaps={} if overlaps else None)
    if overlaps and not are_resolved(problem, trained.noise):
        layer = layer.diagnosed(overlaps=MissingOverlaps("dependent spikes"))
        overlaps = False
    if overlaps:
        layer = layer.diagnosed(spike_directions=spike_spans(problem))
    if not overlaps and not problem.probe.directions:
        return layer
    outlier_poles = poles(problem, here)
    squared, cosines = spike_overlaps(outlier_poles) if overlaps else None, alignments(outlier_poles, steps)
    layer = _with_squares(layer, squared, cosines)
    if not trained.nearby.orders:
        return layer
    try:
        replicas = replica_poles(problem, here, trained.nearby.orders)
    except Lost as lost:
        return layer.diagnosed(overlap_errors=str(lost))
    cosines = with_errors(cosines, [alignments(one, steps) for one in replicas], trained.nearby)
    if squared is None:
        return _with_squares(layer, None, cosines)
    values, errors = estimated_overlaps(squared, [spike_overlaps(one) for one in replicas], trained.nearby)
    return replace(_with_squares(layer, values, cosines), overlap_errors=_by_side(errors))


def _with_squares(layer: Layer, overlaps: SpikeOverlaps | None, cosines: Sequence[OutlierAlignment]) -> Layer:
    """Return the layer with squared overlaps with the spikes and squared cosines with directions."""
    by_side = None if overlaps is None else _by_side(overlaps)
    return replace(layer, overlaps=by_side, outlier_alignments=tuple(cosines))


def _by_side(overlaps: SpikeOverlaps) -> dict[str, np.ndarray]:
    """Return squared overlaps of all outliers by side."""
    return {side: read_only([one[side] for one in overlaps]) for side in overlaps[0]}


def _shifted(layer: Layer, observable: np.ndarray) -> Layer:
    """Return the layer with an observable added to the diagonal of its matrix."""
    shift = np.atleast_1d(observable)
    last = float(shift[-1])
    path = layer.outlier_path
    at = shift if shift.size > 1 else np.full(len(path or [0]), last)
    return replace(
        layer,
        law=layer.law.moved(last),
        outliers=read_only(layer.outliers + last),
        moments=_shifted_moments(layer.moments, last),
        moment_errors=None,
        shift=last,
        shift_path=read_only(shift),
        outlier_path=None if path is None else tuple(read_only(now + x) for now, x in zip(path, at, strict=True)),
        bulk_path=tuple(read_only(layer.bulk_at(time) + x) for time, x in enumerate(at))
        if path is not None and (layer.bulk_path is not None or shift.size > 1)
        else None,
        largest_path=None if layer.largest_path is None else read_only(layer.largest_path + at),
    )


def _shifted_moments(values: np.ndarray, shift: float) -> np.ndarray:
    """Return moments of x + shift from those of x."""
    terms = [[math.comb(k, j) * values[j] * shift ** (k - j) for j in range(k + 1)] for k in range(len(values))]
    return read_only([sum(some) for some in terms])
