"""The certificate of a solution: outliers, bulk and training level, each against a computation of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from derive.errors import DeriveError, NumericalError
from numerics.bulk.law import Law
from numerics.certificate.declared import MORE_STEPS, STEPS, Declared, Past, run_declared
from numerics.certificate.plain import UNUSUAL, in_numpy
from numerics.certificate.records import Certificate, Check, Status, Stopwatch
from numerics.certificate.words import UNKNOWN, LargeVector, NotWritten, word_moments
from numerics.certificate.zeros import LARGEST_ROWS, check_outliers, responses_along
from numerics.modules import ProbedMatrix, Solver
from numerics.nearby import read
from numerics.outliers.problem import SpikedProblem
from numerics.precision import in_float64
from numerics.runtime.interface import ExactTraining, FiniteSize, Side, TraitTraining
from numerics.runtime.point import Point
from numerics.training.trained import Trained

MOST_ROWS = 2000
"""Rows of A(z) up to which its zeros are counted where all checks are asked for, whatever they take."""
MOMENTS, LETTERS = 4, 1500
"""Moments of the bulk that are compared, as far as all words of a power have no more letters than this together."""
MOMENT = 1e-7
"""How far a moment of order k may be off, in units of the largest eigenvalue of the bulk to the power k."""
EXACT, BY_QUADRATURE = 1e-9, 1e-5
"""How far the first steps of training may be off, in units of the largest value of an observable, where all is linear,
and where averages of functions are taken by quadrature."""
ZERO = 1e-3
"""What counts as small beside the other observables, or beside one: it may be nothing but rounding."""
FAR, ALONG = 1e3, 1e-5
"""Where the resolvent between spikes is looked at, in units of the largest eigenvalue, and how far its moments may be
off."""
ERRORS = 6.0
"""How far what is sampled may be off, in standard errors."""


class Certifier:
    """Collects the checks of one solution.

    thorough: count the zeros of large A(z) too, and follow fields for more steps, whatever that takes.
    """

    def __init__(self, solver: Solver, values: dict[str, Any], trained: Trained, thorough: bool = False) -> None:
        self.solver, self.values, self.trained = solver, values, trained
        self.most_rows, self.steps = (MOST_ROWS, MORE_STEPS) if thorough else (LARGEST_ROWS, STEPS)
        self.checks: dict[str, tuple[Check, ...]] = {}

    def check_layer(
        self,
        matrix: ProbedMatrix,
        problem: SpikedProblem,
        outliers: Sequence[float],
        bulk: tuple[Law, Sequence[float], Sequence[float] | None],
    ) -> None:
        """Check the spectrum of one probed matrix. outliers: at the order parameters of the problem, bias included;
        bulk: its law, its moments, and the errors of these."""
        sampled = bool(self.trained.nearby.orders)
        zeros = check_outliers(problem, outliers, matrix.label, sampled, self.most_rows)
        found = [zeros, check_bulk(self.declared, matrix.label, *bulk)]
        if not sampled:
            found += check_spikes(self.declared, problem, matrix.label, outliers)
        self.checks[matrix.label] = tuple(found)

    @cached_property
    def declared(self) -> Declared | str:
        """The declared equations on words, or why there are none."""
        p = self.solver.point(self.values)
        try:
            simulation = self.solver.simulation
            return _kept_run(simulation, p, self.steps)
        except DeriveError as error:  # written by another version
            return str(error)
        except TypeError:  # arrays of data are not hashed
            return _run(simulation, p, self.steps)

    def certificate(self, labels: Sequence[str]) -> Certificate:
        """All checks, of probed matrices in this order; of one that is the same as another once."""
        spectra = [check for label in labels for check in self.checks.get(label, ())]
        setting = self.solver.setting
        if setting.steps is None and not setting.observables:
            return Certificate(tuple(spectra))
        return Certificate((*spectra, check_training(self.declared, self.solver, self.trained)))


def _run(simulation: FiniteSize, p: Point, steps: int) -> Declared | str:
    try:
        return run_declared(simulation, p, steps)
    except (NotWritten, DeriveError) as error:
        return str(error)


_kept_run = lru_cache(maxsize=16)(_run)


def check_bulk(
    declared: Declared | str, label: str, law: Law, moments: Sequence[float], errors: Sequence[float] | None = None
) -> Check:
    """Whether the law of the bulk has mass one and the moments of the declared matrix, by integration of its density
    and from its resolvent."""
    watch = Stopwatch()
    expected, note = [1.0], ""
    if isinstance(declared, str):
        note = declared
    else:
        found = word_moments(declared.probed[label], MOMENTS, LETTERS)
        expected = found[: next((k for k, m in enumerate(found) if not np.isfinite(m)), len(found))]
    count = len(expected)
    unit = max([*(abs(end) for pair in law.edges for end in pair), *(abs(at) for at, _ in law.atoms)], default=1.0)
    allowed = MOMENT * np.maximum(max(unit, ZERO) ** np.arange(count), np.abs(expected))
    if errors is not None:
        allowed = allowed + ERRORS * np.array(errors[:count])
    values = np.stack([law.moments(count), np.array(moments[:count])])
    off = np.abs(values - expected) / allowed
    way, order = np.unravel_index(np.argmax(off), off.shape)
    what = f"mass and moments 1 to {count - 1}" if count > 1 else "mass"
    status: Status = "failed" if not np.max(off) <= 1 else "passed"
    if status == "failed":
        what = f"moment {order} {('of the density', 'of the resolvent')[way]}" if order else "mass"
    return Check(
        "bulk", label, what, float(values[way, order]), float(expected[order]), float(allowed[order]), status, note,
        watch.seconds,
    )  # fmt: skip


@in_float64
def check_spikes(
    declared: Declared | str, problem: SpikedProblem, label: str, outliers: Sequence[float]
) -> list[Check]:
    """Whether A(z) knows the matrix along its spikes: the first two moments of H^T (z - M)^-1 H, the resolvent between
    them, against the matrix applied to them. Nothing where they are not all known, as after many steps."""
    watch = Stopwatch()
    sides = [side for side in problem.probe.sides if side.name == "right"]
    if isinstance(declared, str) or not sides or "right" not in declared.spikes.get(label, {}):
        return []
    if problem.probe.sites is not None:
        return []
    matrix, vectors = declared.probed[label], declared.spikes[label]["right"]()
    if matrix.dyads == UNKNOWN or not all(isinstance(u, LargeVector) and u.terms is not None for u in vectors):
        return []
    pairs = [(u, matrix @ u) for u in vectors]
    overlaps = matrix.ensemble.overlaps
    weight, first, second = (
        math.fsum(np.trace(overlaps(a, b)) for a, b in some)
        for some in ([(u, u) for u in vectors], pairs, [(v, v) for _, v in pairs])
    )
    if not (math.isfinite(second) and weight > 0):
        return []
    ends = [abs(end) for pair in problem.excluded for end in pair]
    unit = 2.0 ** math.ceil(math.log2(max([ZERO, *ends, *map(abs, outliers), math.sqrt(second / weight)])))
    z = FAR * unit
    try:
        at = responses_along(problem.branch, np.array([z, -z])).real
        (above, gram), (below, _) = (_between_spikes(problem, sides[0], x, r) for x, r in zip((z, -z), at, strict=True))
    except (NumericalError, np.linalg.LinAlgError, *UNUSUAL):
        return []
    copies = round(gram / weight) if len(vectors) == vectors[0].labels == 1 else 1  # one for each time
    if not gram > 0 or abs(gram - copies * weight) > ALONG * gram:
        return []  # no spike yet, as before the first step, or the same span written with other vectors
    found = {1: (above - below) * z / (2 * gram), 2: ((above + below) / (2 * gram) - 1) * z**2}
    expected, allowed = {1: first / weight, 2: second / weight}, {k: ALONG * unit**k for k in (1, 2)}
    order = max(found, key=lambda k: abs(found[k] - expected[k]) / allowed[k])
    status: Status = "passed" if abs(found[order] - expected[order]) <= allowed[order] else "failed"
    what = "moments 1 and 2 along the spikes" if status == "passed" else f"moment {order} along the spikes"
    return [Check("A(z)", label, what, found[order], expected[order], allowed[order], status, seconds=watch.seconds)]


def _between_spikes(problem: SpikedProblem, side: Side, z: float, responses: np.ndarray) -> tuple[float, float]:
    """z times the trace of the resolvent between the spikes, and the trace of their Gram matrix."""
    order = {key: np.asarray(value) for key, value in read(problem.order).items()}
    driven, seen, gram = in_numpy(side.spikes)(problem.p, order)
    matrix = in_numpy(problem.probe.a_matrix)(problem.p, z, responses, order)
    return z * float(np.trace(seen @ np.linalg.solve(matrix, driven))), float(np.trace(gram))


def check_training(declared: Declared | str, solver: Solver, trained: Trained) -> Check:
    """Whether observables at the first times, or correlations where there are none, are those of the declared
    equations."""
    watch = Stopwatch()
    check = Check("training", "", "observables at the first times", None, None, 0.0, "not checked")
    if isinstance(declared, str):
        return replace(check, note=declared, seconds=watch.seconds)
    share = EXACT if isinstance(solver.training, (ExactTraining, TraitTraining)) else BY_QUADRATURE
    pairs = _observed(declared, trained, share) or _correlated(declared, solver, trained, share)
    if not pairs:
        note = "no observable at the first times is a sum over words"
        return replace(check, note=note, seconds=watch.seconds)
    off = [abs(value - expected) / allowed for _, value, expected, allowed in pairs]
    name, value, expected, allowed = pairs[int(np.argmax(off))]
    found = replace(check, value=value, expected=expected, closeness=allowed, note=f"{len(pairs)} numbers")
    if not max(off) <= 1:
        return replace(found, what=name, status="failed", seconds=watch.seconds)
    names = dict.fromkeys(name.split(" at ")[0] for name, *_ in pairs)
    last = max(name.rsplit(" ", 1)[1] for name, *_ in pairs)
    what = f"{', '.join(names)} at times 0 to {last}" if last != "0" else f"{', '.join(names)} at time 0"
    return replace(found, what=what, status="passed", seconds=watch.seconds)


Pair = tuple[str, float, float, float]
"""What is compared, the value of the solution, that of the declared equations, and how far they may be apart."""


def _observed(declared: Declared, trained: Trained, share: float) -> list[Pair]:
    found: list[Pair] = []
    first = [float(np.max(np.abs(np.atleast_1d(x)[0]))) for x in trained.observables.values()]
    unit = ZERO * max([1.0, *first])
    for name, series in declared.observables.items():
        values = np.atleast_1d(trained.observables[name])
        for time, expected in enumerate(series[: MORE_STEPS + 1]):
            here = np.ravel(np.asarray(expected, float))
            there = np.ravel(values[time])
            if here.shape != there.shape or not np.all(np.isfinite(here)):
                break
            allowed = np.full(here.shape, share * max(unit, float(np.max(np.abs(here)))))
            if trained.errors is not None:
                allowed = allowed + ERRORS * np.ravel(np.atleast_1d(trained.errors[name])[time])
            worst = int(np.argmax(np.abs(here - there) / allowed))
            found.append((f"{name} at {time}", float(there[worst]), float(here[worst]), float(allowed[worst])))
    return found


def _correlated(declared: Declared, solver: Solver, trained: Trained, share: float) -> list[Pair]:
    """The same for correlations of declared fields; they carry no errors, so that sampled ones are left out."""
    if trained.errors is not None:
        return []
    found: list[Pair] = []
    fields: Mapping[str, Any] = declared.fields
    for key, table in trained.order.items():
        if key[0] != "C" or len(key) != 3 or not {key[1], key[2]} <= set(fields):
            continue
        first, second = (_first(fields[name]) for name in key[1:])
        if first is None or second is None:
            continue
        expected = first.ensemble.overlaps(first, second)
        here = np.asarray(table)[: expected.shape[0], : expected.shape[1]]
        if here.shape == expected.shape and np.all(np.isfinite(expected)):
            unit = share * max(ZERO, float(np.max(np.abs(expected))))
            place = np.unravel_index(np.argmax(np.abs(here - expected)), here.shape)
            found.append((f"C[{key[1]}, {key[2]}] at 0", float(here[place]), float(expected[place]), unit))
    return found


def _first(values: Any) -> LargeVector | None:
    """A field at the first time, if it is a sum of words."""
    if isinstance(values, Past):
        values = values[0] if len(values) else None
    return values if isinstance(values, LargeVector) and values.terms is not None else None
