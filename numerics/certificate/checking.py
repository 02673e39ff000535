"""The certificate of a solution: outliers, bulk and training level, each compared with an independent computation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from derive.errors import DeriveError, NumericalError
from numerics.bulk.branch import Branch
from numerics.bulk.curve import Curve
from numerics.bulk.law import SpectralLaw
from numerics.certificate.declared import MORE_STEPS, STEPS
from numerics.certificate.expected import ExpectedMoments, expected_at
from numerics.certificate.records import Certificate, CertificateCheck, Status, Stopwatch
from numerics.certificate.words import NotWritten
from numerics.certificate.zeros import LARGEST_ROWS, check_outliers, kept_branch, responses_along
from numerics.modules import ProbedMatrix, Solver
from numerics.outliers.problem import SpikedProblem
from numerics.runtime.interface import Side
from numerics.runtime.keys import OrderKey
from numerics.support.nearby import read
from numerics.support.precision import in_float64
from numerics.training.trained import Trained

BESIDE = 1e-7
"""Distance from an edge at which it is checked, in units of the largest edge."""
ALONE = 4.0
"""Least distance to another edge or to zero for a check, in units of BESIDE."""
INSIDE, OUTSIDE = 1e-9, 1e-2
"""Least |Im G| / |G| inside the bulk, and largest Im G outside relative to that inside."""


def unconfirmed_edges(branch: Branch, law: SpectralLaw, thorough: bool) -> list[float]:
    """Return edges at which G is real on both sides or on neither side.

    The number of real roots G of the curve changes by two at an edge. If it does not, for example where three roots
    meet, the bulk equations decide; so they do in a thorough check without a curve.
    """
    ends = [end for pair in law.edges for end in pair]
    if branch.law.sites is not None or not ends:
        return []
    step = BESIDE * max(map(abs, ends))
    places = [0.0, *ends]
    alone = [end for end in ends if sum(abs(end - other) <= ALONE * step for other in places) == 1]
    doubtful = alone if thorough else []
    if branch.eliminated and alone:
        counts = real_roots(branch, np.array([*(end - step for end in alone), *(end + step for end in alone)]))
        sides = zip(alone, counts, counts[len(alone) :], strict=False)
        doubtful = [end for end, one, other in sides if one == other]
    return [end for end in doubtful if not _ends_at(branch, end, step)]


def real_roots(branch: Branch, z: np.ndarray) -> list[int]:
    """Return the number of real roots G of the curve at each real z."""
    return list(_real_roots(kept_branch(branch.law, branch.own), tuple(z.tolist())))


@lru_cache(maxsize=64)
def _real_roots(branch: Branch, places: tuple[float, ...]) -> Sequence[int]:
    """Return the number of real roots at each place; cached, because solutions with the same bulk share its edges."""
    curve, z = Curve.of(branch.law, branch.own), np.array(places)
    assert curve is not None, "roots of a curve need a curve"
    table = curve.table
    occupied = np.flatnonzero(table.any(axis=1))
    if not occupied.size or occupied[-1] == 0:
        return [0] * z.size
    table = table[: 1 + int(occupied[-1])]
    powers = np.array([z**k for k in range(table.shape[1])]).T @ table.T
    degree = powers.shape[1] - 1
    companion = np.zeros((z.size, degree, degree))
    companion[:, 1:, :-1] = np.eye(degree - 1)
    with np.errstate(all="ignore"):
        companion[:, :, -1] = -powers[:, :-1] / powers[:, -1:]
    if not np.isfinite(companion).all():
        return [0] * z.size
    counts: list[int] = np.sum(np.linalg.eigvals(companion).imag == 0, axis=1).tolist()
    return counts


def _ends_at(branch: Branch, end: float, step: float) -> bool:
    """Return whether G is real on one side of a point and complex on the other; true if undecided."""
    try:
        resolvents = responses_along(branch, np.array([end - step, end + step]))[:, branch.resolvent_index]
    except NumericalError:
        return True
    outside, inside = sorted(resolvents, key=lambda g: abs(g.imag))
    return bool(abs(inside.imag) > INSIDE * abs(inside) and abs(outside.imag) < OUTSIDE * abs(inside.imag))


MOST_ROWS = 2000
"""Rows of A(z) up to which its zeros are counted if all checks are requested, regardless of time."""
MOMENT = 1e-7
"""Tolerance of a moment of order k, in units of the largest eigenvalue of the bulk to the power k."""
EXACT, BY_QUADRATURE = 1e-9, 1e-5
"""Tolerances of the first steps of training, in units of the largest value of an observable, for linear laws and for
averages of functions by quadrature."""
ZERO = 1e-3
"""Values below this, relative to other observables or to one, may consist of rounding errors."""
FAR, ALONG = 1e3, 1e-5
"""Point at which the resolvent between spikes is evaluated, in units of the largest eigenvalue, and tolerance of its
moments."""
ERRORS = 6.0
"""Tolerance of sampled quantities, in standard errors."""


class Certifier:
    """Collects the checks of one solution.

    thorough: also count the zeros of large A(z), and follow fields for more steps, regardless of time.
    """

    def __init__(self, solver: Solver, values: dict[str, Any], trained: Trained, thorough: bool = False) -> None:
        self.solver, self.values, self.trained = solver, values, trained
        self.thorough = thorough
        self.most_rows, self.steps = (MOST_ROWS, MORE_STEPS) if thorough else (LARGEST_ROWS, STEPS)
        self.checks: dict[str, tuple[CertificateCheck, ...]] = {}

    def check_layer(
        self,
        matrix: ProbedMatrix,
        problem: SpikedProblem,
        outliers: Sequence[float],
        bulk: tuple[SpectralLaw, Sequence[float], Sequence[float] | None],
    ) -> None:
        """Check the spectrum of one probed matrix. outliers: at the order parameters of the problem, bias included;
        bulk: its law, its moments, and the errors of the moments."""
        sampled = bool(self.trained.nearby.orders)
        zeros = check_outliers(problem, outliers, matrix.label, sampled, self.most_rows)
        found = [zeros, check_bulk(self.expected, matrix.label, *bulk)]
        if wrong := unconfirmed_edges(problem.branch, bulk[0], self.thorough):
            what, count = f"edges where the resolvent has no branch point ({wrong[0]:.9g})", float(len(wrong))
            found[1] = replace(found[1], what=what, value=count, expected=0.0, closeness=0.0, status="failed")
        if not sampled:
            found += check_spikes(self.expected, problem, matrix.label, outliers)
        self.checks[matrix.label] = tuple(found)

    @cached_property
    def expected(self) -> ExpectedMoments:
        """The values from the declared equations, or the reason why there are none."""
        names = [key.of for key in self.trained.order if key.kind == "C"]
        pairs = tuple((first, second) for first, second in names) if self.trained.errors is None else ()
        try:
            return expected_at(self.solver.simulation, self.solver.point(self.values, checked=True), self.steps, pairs)
        except (NotWritten, DeriveError) as error:
            return ExpectedMoments({}, {}, {}, {}, str(error))

    def certificate(self, labels: Sequence[str]) -> Certificate:
        """Return all checks, for probed matrices in this order; equal matrices are checked once."""
        spectra = [check for label in labels for check in self.checks.get(label, ())]
        setting = self.solver.setting
        if setting.steps is None and not setting.observables:
            return Certificate(tuple(spectra))
        return Certificate((*spectra, check_training(self.expected, self.solver, self.trained)))


def check_bulk(
    declared: ExpectedMoments,
    label: str,
    law: SpectralLaw,
    moments: Sequence[float],
    errors: Sequence[float] | None = None,
) -> CertificateCheck:
    """Check that the law of the bulk has mass one and the moments of the declared matrix.

    Moments are computed by integration of the density and from the resolvent.
    """
    watch = Stopwatch()
    expected, note = declared.moments.get(label, [1.0]), declared.unknown or ""
    count = len(expected)
    unit = max([*(abs(end) for pair in law.edges for end in pair), *(abs(at) for at, _ in law.atoms)], default=1.0)
    allowed = MOMENT * np.maximum(max(unit, ZERO) ** np.arange(count), np.abs(expected))
    if errors is not None:
        allowed = allowed + ERRORS * np.array(errors[:count])
    values = np.stack([law.moments(count), np.array(moments[:count])])
    off = np.abs(values - expected) / allowed
    way, order = np.unravel_index(np.argmax(off), off.shape)
    what = f"mass and moments 1 to {count - 1}" if count > 1 else "mass; moments not checked"
    status: Status = "failed" if not np.max(off) <= 1 else "passed"
    if status == "failed":
        what = f"moment {order} {('of the density', 'of the resolvent')[way]}" if order else "mass"
    return CertificateCheck(
        "bulk", label, what, float(values[way, order]), float(expected[order]), float(allowed[order]), status, note,
        watch.seconds,
    )  # fmt: skip


@in_float64
def check_spikes(
    declared: ExpectedMoments, problem: SpikedProblem, label: str, outliers: Sequence[float]
) -> list[CertificateCheck]:
    """Check A(z) along the spikes: compare the first two moments of H^T (z - M)^-1 H, the resolvent between the spikes,
    with M applied to the spikes. The check is omitted if not all of these are known, for example after many steps.
    """
    watch = Stopwatch()
    side = next((side for side in problem.probe.sides if side.name == "right"), None)
    along = declared.spikes.get(label)
    if side is None or along is None or problem.probe.sites is not None:
        return []
    weight = along.weight
    ends = [abs(end) for pair in problem.excluded for end in pair]
    unit = 2.0 ** math.ceil(math.log2(max([ZERO, *ends, *map(abs, outliers), math.sqrt(along.second / weight)])))
    z = FAR * unit
    try:
        (above, below), gram = _between_spikes(problem, side, (z, -z))
    except (NumericalError, np.linalg.LinAlgError):
        return []
    copies = round(gram / weight) if along.alone else 1  # one for each time
    if not gram > 0 or abs(gram - copies * weight) > ALONG * gram:
        return []  # no spike yet, as before the first step, or the same span written with other vectors
    found = {1: (above - below) * z / (2 * gram), 2: ((above + below) / (2 * gram) - 1) * z**2}
    expected, allowed = {1: along.first / weight, 2: along.second / weight}, {k: ALONG * unit**k for k in (1, 2)}
    order = max(found, key=lambda k: abs(found[k] - expected[k]) / allowed[k])
    status: Status = "passed" if abs(found[order] - expected[order]) <= allowed[order] else "failed"
    what = "moments 1 and 2 along the spikes" if status == "passed" else f"moment {order} along the spikes"
    return [
        CertificateCheck(
            "A(z)", label, what, found[order], expected[order], allowed[order], status, seconds=watch.seconds
        )
    ]


def _between_spikes(problem: SpikedProblem, side: Side, places: Sequence[float]) -> tuple[list[float], float]:
    """Return z times the trace of the resolvent between the spikes at each z, and the trace of the Gram matrix of the
    spikes.
    """
    order = {key: np.asarray(value) for key, value in read(problem.order).items()}
    driven, seen, gram = (part.array(np) for part in side.spikes(problem.p, order))
    traces = []
    for z, responses in zip(places, responses_along(problem.branch, np.array(places)).real, strict=True):
        matrix = problem.probe.a_matrix(problem.p, z, responses, order).array(np)
        traces.append(z * float(np.trace(seen @ np.linalg.solve(matrix, driven))))
    return traces, float(np.trace(gram))


def check_training(declared: ExpectedMoments, solver: Solver, trained: Trained) -> CertificateCheck:
    """Check observables at the first times, or correlations if there are none, against the declared equations."""
    watch = Stopwatch()
    unchecked = partial(
        CertificateCheck, "training", "", "observables at the first times", None, None, 0.0, "not checked"
    )
    if declared.unknown is not None:
        return unchecked(declared.unknown, watch.seconds)
    share = EXACT if solver.training.training.closure == "exact" else BY_QUADRATURE
    pairs = _observed(declared, trained, share) or _correlated(declared, trained, share)
    if not pairs:
        return unchecked("no observable at the first times is a sum over words", watch.seconds)
    worst = max(pairs, key=_excess)
    note, seconds = f"{len(pairs)} numbers", watch.seconds
    what: str = worst.what
    status: Status = "failed"
    if _excess(worst) <= 1:
        what, status = f"{', '.join(dict.fromkeys(pair.name for pair in pairs))} at time 0", "passed"
        if last := max(pair.time for pair in pairs):
            what = f"{what.removesuffix(' at time 0')} at times 0 to {last}"
    return CertificateCheck("training", "", what, worst.value, worst.expected, worst.allowed, status, note, seconds)


class ComparedPair(NamedTuple):
    """A comparison at one time: the value of the solution, that of the declared equations, and the tolerance."""

    name: str
    time: int
    value: float
    expected: float
    allowed: float

    @property
    def what(self) -> str:
        return f"{self.name} at {self.time}"


def _excess(pair: ComparedPair) -> float:
    """Return the deviation of a value from its expectation, in units of the tolerance; infinite if either is not a
    number.
    """
    off = abs(pair.value - pair.expected) / pair.allowed
    return math.inf if math.isnan(off) else off


def _observed(declared: ExpectedMoments, trained: Trained, share: float) -> list[ComparedPair]:
    values = {name: _first_rows(series) for name, series in trained.observables.items()}
    errors = {} if trained.errors is None else {name: _first_rows(series) for name, series in trained.errors.items()}
    unit = ZERO * max([1.0, *(abs(x) for rows in values.values() for x in rows[0])])
    found: list[ComparedPair] = []
    for name, series in declared.observables.items():
        for time, (expected, here) in enumerate(zip(series, values[name], strict=False)):
            if len(expected) != len(here):
                break
            allowed = share * max(unit, *map(abs, expected))
            noise = errors[name][time] if errors else [0.0] * len(here)
            each = [
                ComparedPair(name, time, x, y, allowed + ERRORS * e)
                for x, y, e in zip(here, expected, noise, strict=True)
            ]
            found.append(each[0] if len(each) == 1 else max(each, key=_excess))
    return found


def _first_rows(series: np.ndarray) -> list[list[float]]:
    """Return an observable at the first times: one number per label."""
    if np.ndim(series) == 1:
        return [[value] for value in series[: MORE_STEPS + 1].tolist()]
    rows = np.atleast_1d(series)[: MORE_STEPS + 1]
    return rows.reshape(len(rows), -1).tolist()


def _correlated(declared: ExpectedMoments, trained: Trained, share: float) -> list[ComparedPair]:
    """Return correlations of declared fields at the first times."""
    found: list[ComparedPair] = []
    for names, overlaps in declared.correlations.items():
        expected = np.array(overlaps)
        here = np.asarray(trained.order[OrderKey("C", *names)])[: expected.shape[0], : expected.shape[1]]
        if here.shape == expected.shape:
            unit = share * max(ZERO, float(np.max(np.abs(expected))))
            place = np.unravel_index(np.argmax(np.abs(here - expected)), here.shape)
            found.append(ComparedPair(f"C[{', '.join(names)}]", 0, float(here[place]), float(expected[place]), unit))
    return found
