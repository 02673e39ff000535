"""Theory compared with simulation, quantity by quantity, in standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.support.labelled import single_draws, single_series, with_none
from numerics.support.progress import handful

if TYPE_CHECKING:
    from numerics.outliers.alignments import OutlierAlignment
    from numerics.simulation.samples import Samples, SimulatedLayer
    from numerics.solution import Layer, Prediction

THRESHOLD = 3.0
"""Standard errors within which theory and simulation agree."""
ANOTHER_SPAN = 1.0
"""Excess of the simulated effective rank of spikes over the theory's above which their spans differ."""
REPEL = 4.0
"""Outliers closer than this many times their spread over seeds repel each other; their mean is compared too."""
POWER = 1.0
"""Standard errors beyond the bound at which a true difference is found five times out of six."""
MOST_SEEDS = 10**6
"""Number of seeds above which no additional seeds are suggested."""
Outcome = Literal["agrees", "disagrees", "cannot tell"]
Pairs = list[tuple[float, float | None]]
"""Outliers with their standard errors."""


@dataclass(frozen=True)
class Row:
    """One quantity; `difference` is (simulation - theory) / combined error, None for information only.

    draws: the simulated values, one per seed, where `stderr` is the error of their mean; not part of `as_dict`.
    """

    quantity: str
    theory: float
    theory_error: float | None
    simulation: float
    stderr: float
    difference: float | None
    compared: bool
    draws: np.ndarray | None = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "draws"}

    @property
    def agrees(self) -> bool:
        return not self.compared or (self.difference is not None and abs(self.difference) <= THRESHOLD)


@dataclass(frozen=True)
class OutlierMatch:
    """An outlier, or the mean of equal ones, with its simulated eigenvalue in each seed.

    repulsion: expected shift at finite size by outliers next to it, which is an error of the comparison.
    """

    quantity: str
    theory: float
    error: float | None
    draws: np.ndarray
    repulsion: float = 0.0

    def row(self, before: str = "", after: str = "") -> Row:
        """Return the comparison; before and after: parts added to the name."""
        mean, stderr = _mean_and_stderr(self.draws)
        name = f"{before}{self.quantity}{after}"
        row = _row_of(name, self.theory, self.error, mean, math.hypot(stderr, self.repulsion))
        return row if self.repulsion else replace(row, draws=self.draws)


@dataclass(frozen=True)
class Matches:
    """Outliers with their simulated eigenvalues, and the outermost eigenvalues of the bulk, one per seed.

    means: the means of outliers that theory separates but fluctuations do not; repulsion leaves them unchanged.
    left_out: outliers and edges whose eigenvalues were not computed.
    """

    outliers: tuple[OutlierMatch, ...]
    edges: tuple[tuple[str, float, np.ndarray], ...]
    means: tuple[OutlierMatch, ...] = ()
    left_out: tuple[str, ...] = ()


def mean_and_error(series: Any) -> dict[str, list[Any] | None]:
    """Return the mean over the first axis and its standard error; None if undefined, as for one draw."""
    array = np.asarray(series, dtype=float)
    draws = array.shape[0]
    error = array.std(axis=0, ddof=1) / math.sqrt(draws) if draws > 1 else None
    return {
        "mean": with_none(np.atleast_1d(array.mean(axis=0))),
        "stderr": None if error is None else with_none(np.atleast_1d(error)),
    }


def bulk_intervals(edges: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Return the intervals of the bulk in ascending order, without point masses."""
    return sorted((float(low), float(high)) for low, high in edges if high > low)


def bulk_ends(layer: Layer, time: int | None = None) -> tuple[float, float] | None:
    """Return the lower and upper end of the bulk at a time, the last if None; those of its point masses if there are no
    intervals."""
    edges, moved = (
        (layer.bulk_edges, 0.0) if time is None else (layer.bulk_at(time), layer.shift_at(time) - layer.shift)
    )
    places = [end for pair in bulk_intervals(edges.tolist()) for end in pair] or [at + moved for at, _ in layer.atoms]
    return (min(places), max(places)) if places else None


def without_null_space(eigenvalues: np.ndarray) -> np.ndarray:
    """Return the eigenvalues that are nonzero up to rounding: a product of rectangular matrices has an exact null
    space.
    """
    return eigenvalues[_beside_null_space(eigenvalues)]


def _beside_null_space(eigenvalues: np.ndarray) -> np.ndarray:
    return np.abs(eigenvalues) > 1e-11 * np.abs(eigenvalues).max(initial=0.0)


def at_atom(eigenvalues: np.ndarray, at: float) -> np.ndarray:
    """Return which eigenvalues belong to a point mass, up to rounding."""
    return np.abs(eigenvalues - at) <= 1e-9 * np.max(np.abs(eigenvalues), initial=0.0)


def match(
    layer: Layer, spectra: Sequence[np.ndarray], grouped_by: Sequence[np.ndarray] | None = None, whole: bool = True
) -> Matches:
    """Pair outliers with eigenvalues: by rank above and below the bulk, by distance inside a gap.

    whole: whether the spectra are complete; otherwise they contain equally many eigenvalues at either end.
    """
    return match_outliers(_with_errors(layer), layer, spectra, grouped_by or spectra, whole=whole)


def match_outliers(
    pairs: Pairs,
    layer: Layer,
    spectra: Sequence[np.ndarray],
    grouped_by: Sequence[np.ndarray],
    time: int | None = None,
    whole: bool = True,
) -> Matches:
    """Pair outliers with their errors at a time, the last if None.

    grouped_by: spectra whose spread decides which outliers are resolved.
    """
    ends = bulk_ends(layer, time)
    if ends is None:
        return Matches((), ())
    low, high = ends
    alone = not layer.law.edges  # the bulk is a few points, and a null space one of them
    base = None if alone else layer.shift if time is None else layer.shift_at(time)
    draws, others = ([_inwards(np.asarray(e), base, whole) for e in s] for s in (spectra, grouped_by))
    above, below = ([pairs[k] for k in ranks] for ranks in beyond([value for value, _ in pairs], low, high))
    inside = [p for p in pairs if low < p[0] < high]
    if whole and any(len(above) + len(below) + 2 > len(up) for up, _ in draws):
        raise NumericalError(
            f"{len(pairs)} outliers do not fit into a matrix with {min(len(up) for up, _ in draws)} nonzero "
            "eigenvalues; take a larger --size"
        )
    matches: list[OutlierMatch] = []
    means: list[OutlierMatch] = []
    edges, left_out = [], []
    for side, ranked, edge, end, what in (
        (1, above, high, "above", "upper edge, largest other eigenvalue"),
        (0, below, low, "below", "lower edge, smallest other eigenvalue"),
    ):
        if any(len(ranked) >= len(one[side]) for one in (*draws, *others)):
            left_out.append(f"outliers {end} the bulk")
            continue
        each, together = _ranked(ranked, end, [one[side] for one in draws], [one[side] for one in others])
        matches, means = matches + each, means + together
        if not alone:
            edges.append((what, edge, np.array([one[side][len(ranked)] for one in draws])))
    if whole:
        matches += [
            OutlierMatch(
                f"outlier {k + 1} in a gap",
                value,
                error,
                np.array([up[np.abs(up - value).argmin()] for up, _ in draws]),
            )
            for k, (value, error) in enumerate(inside)
        ]
    elif inside:
        left_out.append("outliers in a gap")
    return Matches(tuple(matches), tuple(edges), tuple(means), tuple(left_out))


def _inwards(eigenvalues: np.ndarray, base: float | None, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues in ascending and in descending order, without the null space at `base`.

    For an incomplete spectrum each list contains the eigenvalues of its own end; it is empty if the null space lies
    there.
    """
    mask = np.ones(len(eigenvalues), bool) if base is None else _beside_null_space(eigenvalues - base)
    if whole:
        return eigenvalues[mask], eigenvalues[mask][::-1]
    half = len(eigenvalues) // 2
    up, down = eigenvalues[:half], eigenvalues[half:][::-1]
    return (up if mask[:half].all() else up[:0]), (down if mask[half:].all() else down[:0])


def _with_errors(layer: Layer) -> Pairs:
    return _paired(layer.outliers, layer.outlier_errors)


def _paired(values: np.ndarray, errors: np.ndarray | None) -> Pairs:
    """Return values with their errors, None for exact ones."""
    return list(
        zip(values.tolist(), with_none(np.full(len(values), np.nan) if errors is None else errors), strict=True)
    )


def beyond(outliers: Sequence[float] | np.ndarray, low: float, high: float) -> tuple[list[int], list[int]]:
    """Return indices of outliers above the bulk, the largest first, and below it, the smallest first."""
    order = sorted(range(len(outliers)), key=lambda k: outliers[k])
    return [k for k in reversed(order) if outliers[k] >= high], [k for k in order if outliers[k] <= low]


def _groups(outliers: Pairs, draws: Sequence[np.ndarray]) -> list[list[int]]:
    """Return ranks of outliers on one side in groups that the fluctuations do not resolve.

    draws: eigenvalues of each seed, the outermost on this side first; without them, only equal outliers form groups.
    """
    ends = np.array([e[: len(outliers)] for e in draws])
    variances = ends.var(axis=0, ddof=1) if len(ends) > 1 else np.zeros(len(outliers))
    groups: list[list[int]] = []
    for k, (value, error) in enumerate(outliers):
        if groups:
            last, last_error = outliers[k - 1]
            scatter = REPEL * math.sqrt((variances[k - 1] + variances[k]) / 2)
            if abs(value - last) <= max(1e-6 * abs(last), 3 * math.hypot(error or 0.0, last_error or 0.0), scatter):
                groups[-1].append(k)
                continue
        groups.append([k])
    return groups


def _ranked(
    outliers: Pairs, side: str, draws: Sequence[np.ndarray], grouped_by: Sequence[np.ndarray]
) -> tuple[list[OutlierMatch], list[OutlierMatch]]:
    """Return outliers on one side with the eigenvalues of their rank, and means of groups that fluctuations do not
    resolve.

    Outliers that are equal in theory, or within its errors, are compared by their mean. Fluctuations mix the vectors of
    neighbouring outliers. In second-order perturbation theory, with off-diagonal entries of half the diagonal variance,
    each moves by variance / (2 distance), but by no more than its spread.
    """

    def matched(group: Sequence[int], repulsion: float = 0.0) -> OutlierMatch:
        value = float(np.mean([outliers[k][0] for k in group]))
        errors = [outliers[k][1] for k in group]
        error = None if errors[0] is None else max(e or 0.0 for e in errors)
        taken = np.array([e[group].mean() for e in draws])
        return OutlierMatch(f"{_called(group)} {side} the bulk", value, error, taken, repulsion)

    each, means = [], []
    equal = _groups(outliers, [])
    for group in _groups(outliers, grouped_by):
        parts = [part for part in equal if part[0] in group]
        if len(parts) == 1:
            each.append(matched(group))
            continue
        variance = float(np.mean(np.array([e[group] for e in grouped_by]).var(axis=0, ddof=1)))
        for part in parts:
            here = outliers[part[0]][0]
            others = [outliers[k][0] for k in group if k not in part]
            shift = sum(variance / (2 * abs(here - z)) for z in others)
            each.append(matched(part, min(shift, math.sqrt(variance))))
        means.append(matched(group))
    return each, means


def _called(group: Sequence[int]) -> str:
    return f"outlier {group[0] + 1}" if len(group) == 1 else f"outliers {group[0] + 1}-{group[-1] + 1}, mean,"


def compare(
    solution: Prediction,
    simulation: Samples,
    smaller: Samples | None = None,
    grouped_by: Samples | None = None,
) -> list[Row]:
    """Return rows for all outliers with their overlaps, the edges, and the observables at a few times.

    Outliers that theory separates are compared one by one; those closer than their fluctuations are compared by their
    mean too. The fluctuations are those of the simulation, or of `grouped_by` if rows of several simulations are
    combined.

    Layers without outliers are also compared by the moments and point masses of their bulk, if all eigenvalues are
    known. Fluctuation and finite-size correction of a moment are both of order 1/D, so a `smaller` simulation is needed
    to extrapolate.
    """
    rows: list[Row] = []
    for layer in solution.layers:
        simulated, other = simulation.layer(layer.label), (grouped_by or simulation).layer(layer.label)
        name = f"layer {layer.label}: " if layer.label else ""
        matches = match(layer, simulated.eigenvalues, other.eigenvalues, simulated.whole)
        if matches.left_out:
            raise NumericalError(
                f"{name}{matches.left_out[0]} are not among the computed eigenvalues; simulate with eigenvalues=all"
            )
        rows += [one.row(name) for one in (*matches.outliers, *matches.means)]
        rows += _edge_rows(name, layer, matches, simulated)
        if not len(layer.outliers) and simulated.whole:
            rows += _moment_rows(name, layer, simulation, smaller)
            rows += _atom_rows(name, layer, simulated.eigenvalues)
        rows += _trace_rows(name, solution, layer, simulation, smaller)
        rows += _overlap_rows(name, layer, simulated, other)
        rows += _alignment_rows(name, layer, simulated, other)
        rows += _path_rows(name, layer, simulated, other)
        rows += _alignment_path_rows(name, layer, simulated, other)
    spreads = single_series(solution.errors or {})
    for name, theory in single_series(solution.observables).items():
        draws = np.asarray(single_draws(name, simulation.observables), dtype=float)
        if draws.shape[1] != len(theory):
            raise NumericalError(
                f"{name} has {len(theory)} times in theory and {draws.shape[1]} in the simulation; "
                "build the solver again with derive build"
            )
        errors = with_none(spreads[name]) if name in spreads else None
        for time in handful(len(theory)):
            if np.isnan(theory[time]):
                continue
            label = f"{name} at {time}" if len(theory) > 1 else name
            rows.append(_row(label, theory[time], None if errors is None else errors[time], draws[:, time]))
    return [*rows, *_two_time_rows(solution, simulation)]


def _two_time_rows(solution: Prediction, simulation: Samples) -> list[Row]:
    """Return rows for common two-time functions at a few pairs of times."""
    rows = []
    for name, draws in simulation.two_time.items():
        theory = solution.two_time.get(name)
        if theory is None:
            continue
        for place, at in theory.entries(lambda count: handful(count, 3)):
            error = None if theory.errors is None else float(theory.errors[at])
            rows.append(_row(place, float(theory.values[at]), error, np.array([one[at] for one in draws])))
    return rows


def _edge_rows(name: str, layer: Layer, matches: Matches, simulated: SimulatedLayer) -> list[Row]:
    """Return rows for the outermost eigenvalues of the bulk: compared with the Tracy-Widom mean if there are no
    outliers, otherwise for information.

    If the largest eigenvalues come in equal pairs, the matrix has a symmetry and another law applies.
    """
    rows = []
    size = simulated.size
    paired = all(e[-1] - e[-2] <= 1e-8 * abs(e[-1]) for e in simulated.eigenvalues if len(e) > 1)
    for what, edge, draws in matches.edges:
        expected = None if len(layer.outliers) or paired else layer.law.mean_at_edge(edge, size)
        off = _edge_error(layer, edge)
        if expected is None:
            rows.append(_row(name + what, edge, off, draws, compared=False))
        else:
            rows.append(_row(f"{name}{what} (Tracy-Widom mean)", expected, off, draws))
    return rows


def _edge_error(layer: Layer, edge: float) -> float | None:
    """Return the standard error of an edge of a bulk that depends on sampled quantities."""
    errors = np.full((len(layer.law.edges), 2), np.nan) if layer.edge_errors is None else layer.edge_errors
    by_edge: dict[float, float | None] = dict(zip(np.ravel(layer.law.edges), with_none(errors.ravel()), strict=True))
    return by_edge.get(edge)


def _moment_rows(name: str, layer: Layer, simulation: Samples, smaller: Samples | None) -> list[Row]:
    """Return rows for moments 1 to 4, extrapolated to infinite size from two sizes, otherwise for information."""
    rows = []
    for order, theory in enumerate(layer.moments[1:5], start=1):
        what = f"{name}moment {order} of the bulk"
        draws = [
            np.array([np.mean(np.asarray(e) ** order) for e in s.layer(layer.label).eigenvalues])
            for s in (simulation, smaller)
            if s is not None
        ]
        off = None if layer.moment_errors is None else float(layer.moment_errors[order])
        rows.append(_extrapolated(what, theory, draws, simulation, smaller, off))
    return rows


def _extrapolated(
    what: str,
    theory: float,
    draws: Sequence[np.ndarray],
    simulation: Samples,
    smaller: Samples | None,
    off: float | None = None,
) -> Row:
    """Return a row for a quantity with a 1/D correction, extrapolated from two sizes, otherwise for information.

    off: the standard error of the theory.
    """
    if smaller is None:
        return _row(what, theory, off, draws[0], compared=False)
    weight = simulation.size / (simulation.size - smaller.size)
    (mean, stderr), (less, spread) = (_mean_and_stderr(d) for d in draws)
    extrapolated = weight * mean - (weight - 1) * less
    error = math.hypot(weight * stderr, (weight - 1) * spread)
    return _row_of(f"{what} (sizes {simulation.size}, {smaller.size})", theory, off, extrapolated, error)


def _trace_rows(
    name: str, solution: Prediction, layer: Layer, simulation: Samples, smaller: Samples | None
) -> list[Row]:
    """Return rows for traces of the resolvent with each declared matrix, one width below the spectrum."""
    simulated = simulation.layer(layer.label)
    if not simulated.weights or not layer.law.edges:
        return []
    low, high = (float(pick(layer.law.edges)) for pick in (np.min, np.max))
    z = min([low, *layer.outliers, *(at for at, _ in layer.atoms)]) - max(high - low, 1e-3)
    try:
        (theory,) = solution.compute_traces(layer.label, [complex(z)], 1)
    except ParameterError:  # a result that was saved without them
        return []
    rows = []
    for one in simulated.weights:
        for power, what in ((1, f"tr R {one}"), (2, f"tr R {one} R")):
            some = [s.layer(layer.label) for s in (simulation, smaller) if s is not None]
            draws = [s.traces(np.array(z), one, power) for s in some]
            value = theory[one if power == 1 else f"{one} R"].real
            rows.append(_extrapolated(f"{name}{what} at {z:.6g}", value, draws, simulation, smaller))
    return rows


def _atom_rows(name: str, layer: Layer, spectra: Sequence[np.ndarray]) -> list[Row]:
    """Return rows for the fraction of eigenvalues at each point mass, with an error of half an eigenvalue."""
    rows = []
    for at, weight in layer.atoms:
        near = [np.mean(at_atom(np.asarray(e), at)) for e in spectra]
        mean, stderr = _mean_and_stderr(np.array(near))
        error = max(stderr, 0.5 / len(spectra[0]))
        rows.append(_row_of(f"{name}weight of the atom at {at:.6g}", weight, None, mean, error))
    return rows


def _overlap_rows(name: str, layer: Layer, simulated: SimulatedLayer, grouped_by: SimulatedLayer) -> list[Row]:
    """Return rows for squared overlaps of the outliers outside the bulk, minus the overlap expected by chance at this
    size.

    Spikes that are linearly dependent at infinite size, such as those of parallel teachers, span more directions at
    finite size.
    """
    if layer.overlaps is None:
        return []
    rows = []
    spans = layer.diagnostics.spike_directions
    for side, squared in simulated.overlaps.items():
        theirs = spans[side].dimension if side in spans else math.inf
        same = float(np.mean(simulated.counted[side])) - theirs < ANOTHER_SPAN
        draws = [
            simulated.without_excess(side, np.asarray(s), k)
            for s, k in zip(squared, simulated.counted[side], strict=True)
        ]
        for group, called, taken in _vector_groups(layer, simulated, grouped_by, draws):
            theory = float(np.mean(layer.overlaps[side][group]))
            if math.isnan(theory):
                continue
            error = float(np.nan_to_num(layer.overlap_errors[side][group]).max()) if layer.overlap_errors else None
            rows.append(_row(f"{name}{side} overlap of {called}", theory, error, taken, compared=same))
    return rows


def _alignment_rows(name: str, layer: Layer, simulated: SimulatedLayer, grouped_by: SimulatedLayer) -> list[Row]:
    """Return rows for squared cosines of outliers with declared directions at a few times, averaged over labels.

    Unresolved outliers are compared by their eigenspace. A vector of n sites has a chance overlap of about 1/n, which
    is added to the error.
    """
    rows = []
    for one in layer.outlier_alignments:
        squared = simulated.alignments.get((one.name, one.side))
        if squared is None:
            continue
        for place in handful(one.values.shape[1]):
            draws = [s[:, place].mean(axis=-1) for s in squared]
            at = f" at {one.times[place]}" if one.times is not None and one.series else ""
            for group, called, taken in _vector_groups(layer, simulated, grouped_by, draws):
                shares = one.values[group, place].mean(axis=-1) / np.array(one.counts)[group]
                if not np.all(np.isfinite(shares)):
                    continue
                error = None
                if one.errors is not None:
                    error = float(np.nanmax(one.errors[group, place], initial=0.0))
                theory = float(np.sum(shares))
                chance = max(0.0, 1 - theory) * len(group) / simulated.lengths[one.side]
                mean, stderr = _mean_and_stderr(taken * len(group))
                what = f"{name}{one.name}{at} ({one.side}) of {called.replace(', mean,', ', together,')}"
                row = _row_of(what, theory, error, mean, math.hypot(stderr, chance))
                rows.append(replace(row, draws=taken * len(group)))
    return rows


def _vector_groups(
    layer: Layer, simulated: SimulatedLayer, grouped_by: SimulatedLayer, squares: Sequence[np.ndarray]
) -> Iterator[tuple[list[int], str, np.ndarray]]:
    """Yield unresolved groups of outliers outside the bulk: their indices, name, and `squares` averaged over
    each group."""
    ends = bulk_ends(layer)
    if ends is None:
        return
    low, high = ends
    if layer.law.edges:
        kept = [_beside_null_space(np.asarray(e) - layer.shift) for e in simulated.eigenvalues]
        others = [layer.shift + without_null_space(np.asarray(e) - layer.shift) for e in grouped_by.eigenvalues]
        spectra = [np.asarray(s)[nonzero] for s, nonzero in zip(squares, kept, strict=True)]
    else:
        spectra, others = ([np.asarray(x) for x in some] for some in (squares, grouped_by.eigenvalues))
    pairs = _with_errors(layer)
    for above in (True, False):
        ranked = beyond(layer.outliers, low, high)[0 if above else 1]
        for group in _groups([pairs[k] for k in ranked], [e[::-1] for e in others] if above else others):
            taken = [float(np.mean([s[-1 - k] if above else s[k] for k in group])) for s in spectra]
            called = f"{_called(group)} {'above' if above else 'below'} the bulk"
            yield [ranked[k] for k in group], called, np.array(taken)


def _path_rows(name: str, layer: Layer, simulated: SimulatedLayer, grouped_by: SimulatedLayer) -> list[Row]:
    """Return rows for outliers at the recorded times before the last."""
    if layer.outlier_path is None or layer.largest_path is None:
        return []
    rows = []
    for k, time in enumerate(simulated.times):
        if time >= len(layer.outlier_path) - 1 or not len(layer.outlier_path[time]):
            continue
        errors = None if layer.outlier_path_errors is None else layer.outlier_path_errors[time]
        pairs = _paired(layer.outlier_path[time], errors)
        ends, others = ([e[k] for e in one.ends] for one in (simulated, grouped_by))
        whole = len(ends[0]) == simulated.size
        matches = match_outliers(pairs, layer, ends, others, time, whole)
        rows += [one.row(name, f" at time {time}") for one in (*matches.outliers, *matches.means)]
    return rows


def _alignment_path_rows(name: str, layer: Layer, simulated: SimulatedLayer, grouped_by: SimulatedLayer) -> list[Row]:
    """Return rows for squared cosines at earlier times; a direction that depends on time is taken at the same time."""
    rows = []
    for k, time in enumerate(simulated.times):
        path, where = layer.outlier_alignment_path or (), layer.outlier_path or ()
        if not simulated.alignment_path or time >= len(path) - 1 or not path[time] or not len(where[time]):
            continue
        shift = layer.shift_at(time)
        law = layer.law.moved(shift - layer.shift)
        if layer.bulk_path is not None:
            law = replace(law, edges=tuple((low, high) for low, high in layer.bulk_at(time)))
        errors = layer.outlier_path_errors[time] if layer.outlier_path_errors else None
        then = replace(
            layer,
            law=law,
            shift=shift,
            outliers=where[time],
            outlier_errors=None if errors is None else np.nan_to_num(errors),
            outlier_alignments=tuple(_at_same_time(one, time) for one in path[time]),
        )
        early, other = (replace(one, eigenvalues=[ends[k] for ends in one.ends]) for one in (simulated, grouped_by))
        taken = {}
        for one in path[time]:
            place = slice(time, time + 1) if one.series else slice(None)
            squares = simulated.alignment_path[one.name, one.side]
            taken[one.name, one.side] = [of_seed[k][:, place] for of_seed in squares]
        rows_then = _alignment_rows(name, then, replace(early, alignments=taken), other)
        rows += [replace(row, quantity=f"{row.quantity} at time {time}") for row in rows_then]
    return rows


def _at_same_time(alignment: OutlierAlignment, time: int) -> OutlierAlignment:
    """Return an alignment with the direction at the time of the matrix."""
    if not alignment.series or alignment.times is None:
        return alignment
    place = slice(time, time + 1)
    errors = None if alignment.errors is None else alignment.errors[:, place]
    return replace(alignment, times=alignment.times[place], values=alignment.values[:, place], errors=errors)


def _mean_and_stderr(draws: np.ndarray) -> tuple[float, float]:
    return float(draws.mean()), float(draws.std(ddof=1) / math.sqrt(len(draws)))


def _row(name: str, theory: float, error: float | None, draws: np.ndarray, compared: bool = True) -> Row:
    return replace(_row_of(name, theory, error, *_mean_and_stderr(draws), compared=compared), draws=draws)


def _row_of(name: str, theory: float, error: float | None, mean: float, stderr: float, compared: bool = True) -> Row:
    combined = math.hypot(stderr, error or 0.0)
    scale = max(abs(theory), abs(mean), 1e-300)
    difference: float | None = None
    if compared:
        if abs(mean - theory) <= 1e-10 * scale:
            difference = 0.0
        elif combined > 1e-14 * scale:
            difference = (mean - theory) / combined
    return Row(name, float(theory), None if error is None else float(error), mean, stderr, difference, compared)


def expected_by_chance(rows: Sequence[Row], seeds: int) -> float:
    """Return the expected number of rows beyond the threshold if the theory is correct (Student's t)."""
    from scipy.special import stdtr

    return 2 * sum(row.compared for row in rows) * float(stdtr(seeds - 1, -THRESHOLD))


@dataclass(frozen=True)
class Verdict:
    """The outcome of a comparison.

    Attributes:
        outcome: "agrees" if all differences are within three standard errors, "disagrees" if one is beyond the bound
            for all of them together, otherwise "cannot tell".
        compared: number of compared quantities.
        beyond: names of the quantities that differ by more than three standard errors.
        expected: the expected number of such quantities if the theory is correct.
        bound: largest difference, in standard errors, expected among this many quantities with this many seeds at the
            confidence of three standard errors.
        seeds: number of seeds that would decide; None if more seeds would not.
    """

    outcome: Outcome
    compared: int = 0
    beyond: tuple[str, ...] = ()
    expected: float = 0.0
    bound: float = THRESHOLD
    seeds: int | None = None

    @property
    def sentence(self) -> str:
        """The verdict in words, with the outcome first."""
        if not self.compared:
            return "agrees: there are no outliers and no observables to compare"
        count, limit = self.compared, f"{THRESHOLD:g} standard errors"
        if not self.beyond:
            return f"{self.outcome}: all {count} quantities are within {limit}"
        names = ", ".join(self.beyond[:4]) + (", ..." if len(self.beyond) > 4 else "")
        facts = (
            f"{len(self.beyond)} of {count} quantities differ by more than {limit}, {self.expected:.2g} expected by "
            f"chance ({names})"
        )
        if self.outcome == "disagrees":
            return (
                f"disagrees: {facts}, and chance explains at most {self.bound:.1f} standard errors; run `derive check "
                "FILE`, and repeat with a larger --size: a finite-size correction falls as the size grows"
            )
        cure = f"use {self.seeds} seeds" if self.seeds else "the error of the theory is too large: use more samples"
        return f"cannot tell: {cure}; {facts}, and chance explains up to {self.bound:.1f} standard errors"


def judge(rows: Sequence[Row], seeds: int) -> Verdict:
    """Return the outcome of a comparison. Student's t accounts for the uncertainty of errors from few seeds."""
    compared = [row for row in rows if row.compared]
    apart = [row for row in compared if not row.agrees]
    bound = _family_bound(len(compared), seeds)
    facts = (len(compared), tuple(row.quantity for row in apart), expected_by_chance(rows, seeds), bound)
    if not apart:
        return Verdict("agrees", *facts)
    if any(row.difference is None or abs(row.difference) > bound for row in apart):
        return Verdict("disagrees", *facts)
    needed = [_deciding_seeds(row, len(compared), seeds) for row in apart]
    return Verdict("cannot tell", *facts, min((n for n in needed if n is not None), default=None))


def _family_bound(count: int, seeds: int) -> float:
    """Return the difference that, at the confidence of three standard errors, none of `count` correct quantities
    exceeds (Bonferroni).
    """
    from scipy.special import ndtr, stdtrit

    return -float(stdtrit(seeds - 1, ndtr(-THRESHOLD) / max(count, 1)))


def _deciding_seeds(row: Row, count: int, seeds: int) -> int | None:
    """Return a number of seeds for which the measured difference, if real, would exceed the bound; None if there is
    none.
    """
    off, more = abs(row.difference or 0.0) * math.hypot(row.stderr, row.theory_error or 0.0), seeds
    while more < MOST_SEEDS:
        more = math.ceil(1.25 * more)
        error = math.hypot(row.stderr * math.sqrt(seeds / more), row.theory_error or 0.0)
        if off >= (_family_bound(count, more) + POWER) * error:
            return more
    return None
