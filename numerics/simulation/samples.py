"""Finite-size simulation of a declaration: draw, run, diagonalise, for several seeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.modules import ProbedMatrix, Solver
from numerics.outliers.alignments import times_of
from numerics.runtime.interface import Direction, Setting
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import Point
from numerics.runtime.two_time import Wanted
from numerics.simulation.outermost import at_ends, outermost
from numerics.simulation.two_time import FollowedFields, check_declared
from numerics.solution import find_layer
from numerics.support.formatting import counted, listed
from numerics.support.labelled import where_defined
from numerics.support.precision import in_float64
from numerics.support.progress import Report
from numerics.support.records import ArrayRecord, read_only
from numerics.two_time import checked, finished

Named = tuple[str, str]
"""An alignment by its name and the side of its vectors."""


class Aligning:
    """The requested directions of the probed matrices, for one sample."""

    def __init__(
        self, matrices: Sequence[ProbedMatrix], p: Point, steps: str | None, convert: Callable[[Any], Any]
    ) -> None:
        self.asked: dict[str, tuple[Direction, ...]] = {m.label: m.probe.directions for m in matrices}
        probed = [m for m in matrices if m.probe.directions]
        self.points = {m.label: m.probe.begun(p) for m in probed}
        self.steps, self.convert = steps, convert
        self.vectors: dict[tuple[str, Named], np.ndarray] = {}
        self.kept: dict[tuple[str, int], dict[str, np.ndarray]] = {}

    def __bool__(self) -> bool:
        return any(self.asked.values())

    def take(self, fields: Mapping[str, Any]) -> None:
        """Store the directions of a sample as unit vectors, times x sites x labels; zero directions stay zero."""
        for label, directions in self.asked.items():
            for one in directions:
                times = times_of(one, self.points[label], self.steps)
                field = fields[one.field]
                series = [field] if times is None else [field[time] for time in times]
                stacked = np.stack([np.asarray(self.convert(part)) for part in series])
                lengths = np.linalg.norm(stacked, axis=1, keepdims=True)
                self.vectors[label, (one.name, one.side)] = np.divide(
                    stacked, lengths, where=lengths > 0, out=np.zeros_like(stacked)
                )

    def keep(self, label: str, time: int, found: Mapping[str, np.ndarray]) -> None:
        """Store eigenvectors of a matrix at an earlier time by side, because directions may be computed later."""
        self.kept[label, time] = {one.side: found[one.side] for one in self.asked[label]}

    def early(self) -> dict[tuple[str, int], dict[Named, np.ndarray]]:
        """Return `squared` for the stored vectors, by label and time."""
        return {(label, time): self.squared(label, found) for (label, time), found in self.kept.items()}

    def squared(self, label: str, found: Mapping[str, np.ndarray]) -> dict[Named, np.ndarray]:
        """Return each direction's squared cosines with vectors of its side, vectors x times x labels."""
        table = {}
        for one in self.asked[label]:
            named = (one.name, one.side)
            cosines = np.einsum("tic,ik->ktc", self.vectors[label, named], found[one.side])
            table[named] = cosines**2
        return table


SPAN = 1e-12
"""A direction of the unit spikes with singular value s has the weight s^2 / (s^2 + SPAN * largest s^2), like the
eigenvalues of their Gram matrix in the theory."""
MEMORY_SHARE = 0.9
"""Fraction of the free memory that a sample may take."""
WORTH_SAYING = 1e8
"""Bytes above which progress reports mention the memory of a sample."""
KEPT = 60
"""Number of eigenvalues stored at either end of the spectrum at times before the last."""


@dataclass(frozen=True, eq=False)
class SimulatedLayer(ArrayRecord):
    """Spectra of one probed matrix, one entry per seed.

    eigenvalues: after the last step, ascending: all of them, or equally many at either end if only these were
        requested. overlaps: by side, for each eigenvalue the squared overlap of its vector with the span of the spikes;
        counted: effective dimension of that span. alignments: by name and side, for each eigenvalue the squared cosine
        of its vector with a declared direction, by time and label. lengths: by side the number of sites of the vectors.
    times: earlier times with spectra; ends: for each seed and time the lowest and the highest eigenvalues, ascending.
    added: for each seed the number added to the diagonal, by time. size: the number of eigenvalues.
    weights: by the name of a matrix A between resolvents, <v, A v> for the vector v of each eigenvalue.
    alignment_path: as alignments, for each seed and time and the vectors that belong to `ends`.
    """

    label: str
    eigenvalues: list[np.ndarray]
    overlaps: dict[str, list[np.ndarray]]
    times: tuple[int, ...]
    ends: list[list[np.ndarray]]
    added: list[list[float] | None]
    size: int
    counted: dict[str, list[float]] = field(default_factory=dict)
    alignments: dict[Named, list[np.ndarray]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    weights: dict[str, list[np.ndarray]] = field(default_factory=dict)
    alignment_path: dict[Named, list[list[np.ndarray]]] = field(default_factory=dict)

    def __repr__(self) -> str:
        which = "all" if self.whole else f"{len(self.eigenvalues[0])} outermost"
        name = f"layer {self.label}" if self.label else "spectrum"
        return f"{name} in {counted(len(self.eigenvalues), 'sample')}: {which} of {counted(self.size, 'eigenvalue')}"

    @property
    def whole(self) -> bool:
        """Whether all eigenvalues are known."""
        return len(self.eigenvalues[0]) == self.size

    def all_eigenvalues(self, what: str) -> list[np.ndarray]:
        """Return the eigenvalues; refused if only the outermost are known; what: the quantity that needs them."""
        if not self.whole:
            raise NumericalError(
                f"{what} needs all eigenvalues, but only the outermost were computed; simulate with eigenvalues=all"
            )
        return self.eigenvalues

    def traces(self, z: np.ndarray, name: str | None, power: int) -> np.ndarray:
        """Return the mean of <v, A v> / (z - eigenvalue)^power over all eigenvalues, without A if no name is given: one
        row per seed, then the shape of z."""
        found = []
        for seed, values in enumerate(self.all_eigenvalues("a trace of the resolvent")):
            weights = np.ones(len(values)) if name is None else self.weights[name][seed]
            found.append((weights / (z.ravel()[:, None] - values) ** power).mean(axis=1).reshape(z.shape))
        return np.array(found)

    def outliers(self, time: int) -> np.ndarray:
        """Return eigenvalues at a time that are separated from the spectrum at time 0, descending: one row per seed.

        An eigenvalue counts as separated if it exceeds the largest initial eigenvalue by more than the distance between
        the first and the fourth initial eigenvalue, both averaged over the seeds; the same holds at the lower end.
        Their number is the median over the seeds. The criterion is independent of the theory.
        """
        at, start = self.times.index(time), self.times.index(0)
        now = [e - s for e, s in zip((e[at] for e in self.ends), self.shifts(time), strict=True)]
        then = [e - s for e, s in zip((e[start] for e in self.ends), self.shifts(0), strict=True)]
        reach = min(3, min(map(len, then)) - 1)
        high = np.mean([2 * e[-1] - e[-1 - reach] for e in then])
        low = np.mean([2 * e[0] - e[reach] for e in then])
        above = int(np.median([np.sum(e > high) for e in now]))
        below = int(np.median([np.sum(e < low) for e in now]))
        kept = min(map(len, now))
        if not self.whole and kept < self.size and max(above, below) >= kept // 2:
            raise NumericalError(
                f"{max(above, below)} or more eigenvalues are separated at time {time}, but no others were "
                "computed there; simulate with eigenvalues=all"
            )
        return np.array(
            [
                np.concatenate([e[len(e) - above :][::-1], e[:below][::-1]]) + s
                for e, s in zip(now, self.shifts(time), strict=True)
            ]
        )

    def outlier_overlaps(self, side: str) -> np.ndarray:
        """Return the squared overlaps between the spikes and the vectors of separated eigenvalues after the last step:
        one row per seed.
        """
        return self._of_outliers(self.overlaps[side])

    def outlier_alignments(self, name: str, side: str) -> np.ndarray:
        """Return squared cosines of the vectors of separated eigenvalues with a declared direction: seeds x vectors x
        times x labels.
        """
        return self._of_outliers(self.alignments[name, side])

    def _of_outliers(self, squares: list[np.ndarray]) -> np.ndarray:
        found = self.outliers(self.times[-1])
        nearest = [
            np.array([np.argmin(np.abs(all_values - z)) for z in values], int)
            for values, all_values in zip(found, self.eigenvalues, strict=True)
        ]
        return np.array([squared[at] for squared, at in zip(squares, nearest, strict=True)])

    def without_excess(self, side: str, squares: np.ndarray, counted: np.ndarray | float) -> np.ndarray:
        """Return squared overlaps with a span of this dimension, minus the overlap expected by chance at this size."""
        chance = np.minimum(np.asarray(counted) / self.lengths[side], 0.5)
        return (squares - chance) / (1 - chance)

    def shifts(self, time: int) -> list[float]:
        """Return the numbers added to the diagonal at a time, for each seed."""
        return [0.0 if s is None else float(s[time if len(s) > 1 else 0]) for s in self.added]


@dataclass(frozen=True, eq=False, repr=False)
class Samples(ArrayRecord):
    """Spectra and observables of independent samples of a declaration at one size."""

    inputs: dict[str, Any]
    """Values of the parameters, and arrays."""
    size: int
    """Size of the base sector, the first one declared."""
    layers: tuple[SimulatedLayer, ...]
    """The probed matrices in the order of the declaration."""
    observables: Mapping[str, np.ndarray]
    """By name one row per seed, then time, then labels; NaN at times at which it is not defined."""
    about: Setting
    """The declaration as plain data."""
    two_time: Mapping[OrderKey, np.ndarray] = field(default_factory=dict)
    """Requested correlations and responses, with the axes of the theory after that of the seeds."""

    @property
    def setting(self) -> str:
        """The name of the declared model."""
        return self.about.name

    def layer(self, label: int | str | None = None) -> SimulatedLayer:
        """Return one probed matrix by its label, by default the first."""
        return find_layer(self.layers, label, self.setting)

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of the first layer after the last step, ascending: one row per seed. All of them, unless only the
        ends of the spectrum were requested."""
        return read_only(self.layer().eigenvalues)

    def __getitem__(self, name: str) -> np.ndarray:
        if not isinstance(name, str) or name not in self.observables:
            raise ParameterError(
                f"{self.setting} has no observable {name!r}; the observables are {listed(self.observables)}"
            )
        return self.observables[name]

    def mean(self, name: str) -> np.ndarray:
        """Return the mean of an observable over the seeds."""
        return np.asarray(self[name].mean(axis=0))

    def stderr(self, name: str) -> np.ndarray:
        """Return the standard error of the mean of an observable; NaN with one seed."""
        values = self[name]
        if len(values) < 2:
            return np.full(values.shape[1:], np.nan)
        return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


@contextmanager
def _at_these_parameters() -> Iterator[None]:
    """Return the error message for a coefficient of the declaration that is not finite."""
    try:
        yield
    except ArithmeticError as error:
        raise NumericalError(
            f"a coefficient of the declaration is not finite at these parameters ({error}); try less extreme parameters"
        ) from None


def available_memory() -> float | None:
    """Return the bytes available without swapping; None if the system does not report them."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def needed_memory(solver: Solver, values: dict[str, Any], size: int) -> float:
    """Return the approximate number of bytes of one sample."""
    with _at_these_parameters():
        return float(8.0 * solver.simulation.numbers(solver.numbers(values), size))


def samples_at_once(solver: Solver, values: dict[str, Any], size: int) -> int | None:
    """Return the number of samples that fit into memory together; None if the system does not report it."""
    there = available_memory()
    return None if there is None else int(MEMORY_SHARE * there / max(1.0, needed_memory(solver, values, size)))


def check_memory(solver: Solver, values: dict[str, Any], size: int) -> None:
    """Refuse a sample that does not fit into memory, and suggest a size that does. Seeds are drawn one after
    another."""
    there = available_memory()

    def needed(size: int) -> float:
        return needed_memory(solver, values, size)

    if there is None or needed(size) <= MEMORY_SHARE * there:
        return
    low, high = 1, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle) <= MEMORY_SHARE * there else (low, middle)
    digits = max(0, len(str(low)) - 2)
    fits = low // 10**digits * 10**digits
    advice = f"--size {fits} fits" if fits >= 2 else "no size fits; take smaller parameters"
    raise ParameterError(
        f"size={size} needs about {needed(size) / 1e9:.3g} GB at these parameters and {there / 1e9:.3g} GB are free; "
        f"{advice}"
    )


def smaller_size(solver: Solver, values: dict[str, Any], size: int) -> int | None:
    """Return a size of about half, for extrapolation; None unless the ratios give whole sizes of all sectors at both
    sizes.
    """
    point = solver.numbers(values)

    def whole(size: int) -> bool:
        with _at_these_parameters():
            wanted = solver.simulation.sectors(point, size).values()
        return all(abs(n - round(n)) <= 1e-9 * n for n in wanted)

    nearby = [half for half in range(max(20, size // 3), 2 * size // 3 + 1) if whole(half)] if whole(size) else []
    return min(nearby, key=lambda half: abs(half - size / 2), default=None)


@in_float64
def simulate(
    solver: Solver,
    values: dict[str, Any],
    size: int,
    seeds: int,
    *,
    seed: int = 0,
    first: int = 0,
    layers: Sequence[str] | None = None,
    times: Sequence[int] = (),
    overlaps: bool = False,
    ends: Mapping[str, int] | None = None,
    two_time: Wanted = (),
    backend: str = "numpy",
    progress: Callable[[float, str], None] | None = None,
) -> Samples:
    """Return independent samples at base size `size`.

    first: the number of the first sample. The random numbers of a sample depend only on the seed and its own number, so
    that additional samples extend earlier ones, and `joined` parts equal the whole. layers: labels of the probed
    matrices, all of them if None. times: the times, besides the last, at which to diagonalise. overlaps: whether to
    compare eigenvectors with the spikes. ends: by label the number of eigenvalues at either end, if only these are
    needed. two_time: correlations and responses, as ("C", "a", "b"); responses by running each sample twice more, with
    small random sources in the equations. backend: "numpy" or "jax", which runs on any JAX device.
    """
    if size < 2:
        raise ParameterError(
            f"size={size} is too small; use a size of at least 2, a few hundred for meaningful spectra"
        )
    if seeds < 1:
        raise ParameterError(f"seeds={seeds}: at least one sample is needed")
    wanted = checked(solver.setting, two_time)
    check_declared(solver.setting, wanted)
    drawing = _Drawing(
        solver=solver,
        point=solver.point(values),
        size=size,
        backend=_backend(backend),
        probes=[m for m in solver.matrices if layers is None or m.label in layers],
        times=times,
        ends=ends or {},
        overlaps=overlaps,
        wanted=wanted,
    )
    check_memory(solver, values, size)
    memory = needed_memory(solver, values, size)
    each = f", {memory / 1e9:.2g} GB each" if memory >= WORTH_SAYING else ""
    children = [np.random.SeedSequence(seed, spawn_key=(first + number,)) for number in range(seeds)]
    samples = drawing.samples(children, progress or (lambda share, what: None), each)
    looked, observed = tuple(sorted(samples[0].early)), [sample.observables for sample in samples]
    return Samples(
        dict(values),
        size,
        tuple(_gathered(p.label, samples, looked, samples[-1].sizes[p.label]) for p in drawing.probes),
        where_defined(solver.setting.observables, {n: [o[n] for o in observed] for n in observed[0]}, axis=1),
        solver.about,
        {name: np.array([sample.two_time[name] for sample in samples]) for name in wanted},
    )


@dataclass(frozen=True)
class _Sample:
    """The stored parts of one sample: spectra at the end and before, numbers added to eigenvalues, sizes of
    matrices."""

    final: dict[str, Any]
    early: dict[int, dict[str, Any]]
    shifts: dict[str, Any]
    aligned: Any
    sizes: dict[str, int]
    observables: dict[str, Any]
    two_time: dict[OrderKey, np.ndarray]


@dataclass(frozen=True)
class _Drawing:
    """How samples are drawn and evaluated, from the arguments of `simulate`. backend: arrays, special functions, and
    the conversion of results to NumPy."""

    solver: Solver
    point: Point
    size: int
    backend: tuple[Any, ...]
    probes: list[ProbedMatrix]
    times: Sequence[int]
    ends: Mapping[str, int]
    overlaps: bool
    wanted: Wanted

    def run(self, rng: np.random.Generator, **how: Any) -> Any:
        """Run the declared equations with the random numbers of a generator."""
        arrays, special, _ = self.backend
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"), _at_these_parameters():
            return self.solver.simulation.simulate(self.point, self.size, rng, xp=arrays, special=special, **how)

    def samples(self, children: Sequence[np.random.SeedSequence], tell: Report, each: str) -> list[_Sample]:
        """Return one sample for each seed. each: progress text besides its number."""
        found, count = [], len(children)
        for number, child in enumerate(children):

            def begun(fraction: float, number: int = number) -> None:
                tell((number + 0.5 * fraction) / count, f"sample {number + 1} of {count}{each}")

            found.append(self.sample(child, begun))
            tell((number + 1) / count, f"sample {number + 1} of {count}{each}")
        return found

    def sample(self, child: np.random.SeedSequence, tell: Callable[[float], None]) -> _Sample:
        """Return one sample, whose random numbers come from its own seed."""
        setting, convert = self.solver.setting, self.backend[2]
        fields, asked = FollowedFields(self.wanted, convert), Aligning(self.probes, self.point, setting.steps, convert)
        early: dict[int, dict[str, Any]] = {}

        def watch(time: int, probed: Any, halves: Any = dict) -> None:
            if time in self.times:
                matrices, images = convert(probed()), convert(halves())
                early[time] = {
                    label: _early(label, matrices[label], images.get(label), time, asked, self.ends.get(label))
                    for label in (p.label for p in self.probes)
                }

        def follow(vectors: Mapping[str, Any]) -> None:
            fields.take(vectors)
            asked.take(vectors)

        rng, following = np.random.default_rng(child), follow if self.wanted or asked else None
        matrices, spikes, observables = self.run(rng, progress=tell, watch=watch, follow=following)
        tables = {name: finished(setting, name, x).values for name, x in fields.two_time(self.run, child).items()}
        matrices, observables = convert(matrices), convert(observables)
        sides = {label: {side: _converted(x, convert) for side, x in some.items()} for label, some in spikes.items()}
        _check_finite(observables)
        labels = [p.label for p in self.probes]
        return _Sample(
            final={x: _last(x, matrices[x], sides[x], asked, self.overlaps, self.ends.get(x)) for x in labels},
            early=early,
            shifts={p.label: observables[p.plus] if p.plus else None for p in self.probes},
            aligned=asked.early(),
            sizes={label: len(matrices[label]) for label in labels},
            observables=observables,
            two_time=tables,
        )


def _check_finite(observables: Mapping[str, Any]) -> None:
    """Raise NumericalError if an observable is not finite at some step."""
    for name, series in observables.items():
        bad = np.flatnonzero(~np.isfinite(np.asarray(series)).reshape(len(series), -1).all(axis=1))
        if bad.size:
            raise NumericalError(
                f"the simulation diverged at step {bad[0]} ({name} is not finite); try a smaller step or fewer steps"
            )


def joined(parts: Sequence[Samples]) -> Samples:
    """Return samples of one point at one size that were drawn separately, in this order."""
    start = parts[0]
    layers = []
    for number, layer in enumerate(start.layers):
        same = [part.layers[number] for part in parts]
        layers.append(
            SimulatedLayer(
                layer.label,
                [e for one in same for e in one.eigenvalues],
                {side: [row for one in same for row in one.overlaps[side]] for side in layer.overlaps},
                layer.times,
                [ends for one in same for ends in one.ends],
                [added for one in same for added in one.added],
                layer.size,
                {side: [number for one in same for number in one.counted[side]] for side in layer.counted},
                {named: [row for one in same for row in one.alignments[named]] for named in layer.alignments},
                layer.lengths,
                {name: [row for one in same for row in one.weights[name]] for name in layer.weights},
                {named: [row for one in same for row in one.alignment_path[named]] for named in layer.alignment_path},
            )
        )
    return replace(
        start,
        layers=tuple(layers),
        observables={name: np.concatenate([part.observables[name] for part in parts]) for name in start.observables},
        two_time={name: np.concatenate([part.two_time[name] for part in parts]) for name in start.two_time},
    )


def _backend(name: str) -> tuple[Any, ...]:
    """Return the array module and special functions, and the conversion of results to NumPy."""
    if name == "numpy":
        import scipy.special

        return np, scipy.special, lambda table: table
    if name != "jax":
        raise ParameterError(f"backend={name} is not known; it must be numpy or jax")
    import jax
    import jax.numpy as jnp
    import jax.scipy.special

    return jnp, jax.scipy.special, lambda table: jax.tree.map(np.asarray, table)


def _converted(made: Callable[..., Any], convert: Callable[..., Any]) -> Callable[..., Any]:
    return lambda: convert(made())


def _gathered(label: str, samples: list[_Sample], times: tuple[int, ...], size: int) -> SimulatedLayer:
    """Return one layer of all samples, with the numbers added to the diagonal."""

    def moved(values: np.ndarray, shift: list[Any] | None, time: int) -> np.ndarray:
        return values if shift is None else values + shift[time if len(shift) > 1 else 0]

    last = [sample.final[label] for sample in samples]
    added = [sample.shifts[label] for sample in samples]
    early_squares = {
        named: [[sample.aligned[label, time][named] for time in times] for sample in samples]
        for named in last[0].alignments
    }
    return SimulatedLayer(
        label,
        [moved(one.eigenvalues, shift, -1) for one, shift in zip(last, added, strict=True)],
        {side: [one.overlaps[side] for one in last] for side in last[0].overlaps},
        times,
        [[moved(sample.early[time][label], sample.shifts[label], time) for time in times] for sample in samples],
        added,
        size,
        {side: [one.counted[side] for one in last] for side in last[0].counted},
        {named: [one.alignments[named] for one in last] for named in last[0].alignments},
        last[0].lengths,
        {name: [one.weights[name] for one in last] for name in last[0].weights},
        early_squares if times else {},
    )


def _symmetric(matrix: np.ndarray, time: int | None = None) -> np.ndarray:
    if not np.all(np.isfinite(matrix)):
        when = "" if time is None else f" at step {time}"
        raise NumericalError(f"the simulated matrix is not finite{when}; the dynamics has diverged")
    return (matrix + matrix.T) / 2


def _early(
    label: str, matrix: np.ndarray, half: np.ndarray | None, time: int, asked: Aligning, few: int | None
) -> np.ndarray:
    """Return the ends of the spectrum before the last step. few: the number of eigenvalues at either end, if only these
    are needed. Vectors are stored if directions are requested, because these may be known only later.
    """
    symmetric = _symmetric(matrix, time)
    if not asked.asked[label]:
        if few is not None:
            return outermost(symmetric, few, vectors=False)[0]
        return at_ends(np.linalg.eigvalsh(symmetric), KEPT)
    if few is not None:
        eigenvalues, vectors = outermost(symmetric, few, vectors=True)
    else:
        eigenvalues, vectors = np.linalg.eigh(symmetric)
        eigenvalues, vectors = at_ends(eigenvalues, KEPT), at_ends(vectors, KEPT)
    assert vectors is not None, "they were asked for"
    asked.keep(label, time, _by_side(vectors, half))
    return eigenvalues


def _by_side(vectors: np.ndarray, half: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return eigenvectors and, for K^T K, the left singular vectors of K."""
    if half is None:
        return {"right": vectors}
    images = half @ vectors
    norms = np.linalg.norm(images, axis=0)
    return {"right": vectors, "left": images / np.where(norms > 0, norms, 1.0)}


@dataclass(frozen=True)
class _Last:
    """The spectrum of a matrix after the last step."""

    eigenvalues: np.ndarray
    overlaps: dict[str, np.ndarray]
    counted: dict[str, float]
    alignments: dict[Named, np.ndarray]
    lengths: dict[str, int]
    weights: dict[str, np.ndarray]


def _last(
    label: str, matrix: np.ndarray, spikes: dict[str, Any], asked: Aligning, overlaps: bool, few: int | None
) -> _Last:
    """Return the spectrum after the last step, and the overlap of each vector with the span of the spikes and with
    requested directions; few: the number of eigenvalues at either end, if only these are needed."""
    symmetric = _symmetric(matrix)
    traced = few is None and "between" in spikes
    needed = overlaps or traced or bool(asked.asked[label])
    if few is not None:
        eigenvalues, vectors = outermost(symmetric, few, vectors=needed)
    elif needed:
        eigenvalues, vectors = np.linalg.eigh(symmetric)
    else:
        eigenvalues, vectors = np.linalg.eigvalsh(symmetric), None
    if vectors is None:
        return _Last(eigenvalues, {}, {}, {}, {}, {})
    by_side = _by_side(vectors, spikes["half"]() if "half" in spikes else None)
    spans = {side: _in_span(spikes[side](), by_side[side]) for side in by_side if side in spikes} if overlaps else {}
    return _Last(
        eigenvalues,
        {side: squared for side, (squared, _) in spans.items()},
        {side: counted for side, (_, counted) in spans.items()},
        asked.squared(label, by_side),
        {side: len(found) for side, found in by_side.items()},
        {name: np.sum(vectors * (a @ vectors), axis=0) for name, a in spikes["between"]().items()} if traced else {},
    )


def _in_span(directions: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the squared lengths of the projections on the span of the directions, and the effective dimension of that
    span.
    """
    lengths = np.linalg.norm(directions, axis=0)
    basis, weights, _ = np.linalg.svd(directions / np.where(lengths > 0, lengths, 1.0), full_matrices=False)
    squares = weights**2
    shares = np.divide(squares, squares + SPAN * squares[:1], where=squares > 0, out=np.zeros_like(squares))
    return shares @ (basis.T @ vectors) ** 2, float(np.sum(shares))
