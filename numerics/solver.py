"""A generated setting as one object, and its solution at given parameters."""

from __future__ import annotations

import importlib
import linecache
import math
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.arrays import checked_array
from numerics.bulk import Branch, atoms_of, support
from numerics.moments import moments
from numerics.outliers import find_outliers, match_replicas, outlier_positions, outside
from numerics.overlaps import are_resolved, span_sizes, spike_overlaps
from numerics.paths import outlier_path
from numerics.precision import in_float64
from numerics.progress import part
from numerics.sampling import (
    DEFAULT_SAMPLES,
    RESOLVED,
    WIDEST_SPAN,
    Order,
    Sampling,
    compiled,
    extrapolated,
    jackknife,
    overlap_errors,
    path_errors,
    sampled_pass,
)

Progress = Callable[[float, str], None] | None
MOMENTS = 8
GROWTH = 1e25
"""Observables and variances that exceed so many times their first value have diverged: double precision is used up."""
PATH_GROUPS = 5
"""Groups of replicas whose spread gives the errors of outliers at all times."""
MOST_BYTES = 8e9
"""Order parameters larger than this are refused."""
BATCH_BYTES = 1e9
WORKING_COPIES = 8
"""A batch of forward passes may take the first, and each takes about so many times its order parameters."""


@dataclass(frozen=True)
class Probe:
    """The generated modules of one probed matrix; `plus` names the observable added to its diagonal."""

    label: str
    module: types.ModuleType
    bulk: types.ModuleType
    plus: str = ""


@dataclass(frozen=True)
class Solver:
    """The generated modules of one setting."""

    front: types.ModuleType
    training: types.ModuleType
    simulation: types.ModuleType
    probes: tuple[Probe, ...]

    @property
    def name(self) -> str:
        return self.front.NAME

    @property
    def layered(self) -> bool:
        """Whether the probed matrices have names."""
        return any(probe.label for probe in self.probes)

    @property
    def probe(self) -> types.ModuleType | None:
        """A(z) of the first probed matrix."""
        return self.probes[0].module if self.probes else None

    @property
    def bulk(self) -> types.ModuleType | None:
        """The bulk of the first probed matrix."""
        return self.probes[0].bulk if self.probes else None

    def labelled(self, label: str) -> Probe:
        return next(probe for probe in self.probes if probe.label == label)

    def arguments(self, values: dict) -> tuple:
        """Parameter values in the order in which generated functions take them."""
        return tuple(int(values[name]) if whole else float(values[name]) for name, _, whole in self.front.PARAMETERS)

    def arrays(self, values: dict) -> tuple:
        """Data in the order in which the forward pass and the simulation take them, checked."""
        sizes = {**values, "times": self.times(values)}
        return tuple(checked_array(name, axes, sizes) for name, axes in self.front.DATA)

    def times(self, values: dict) -> int:
        """How many times a field has."""
        return 1 if self.front.STEPS is None else int(values[self.front.STEPS]) + self.front.ENDPOINT

    @property
    def whole(self) -> tuple[int, ...]:
        """Which arguments are whole numbers: they fix shapes."""
        return tuple(i for i, (_, _, is_whole) in enumerate(self.front.PARAMETERS) if is_whole)

    @cached_property
    def forward_pass(self):
        """The training level, compiled once for each set of whole-number parameters."""
        if not self.front.LINEAR:
            return compiled(self.training, self.whole)
        return jax.jit(self.training.forward_pass, static_argnums=self.whole)

    @cached_property
    def forward_passes(self):
        """The training level at many values of the other parameters side by side."""

        def many(*arguments):
            def one(*moving):
                given = iter(moving)
                whole = enumerate(arguments)
                return self.training.forward_pass(*(a if i in self.whole else next(given) for i, a in whole))

            return jax.vmap(one)(*(a for i, a in enumerate(arguments) if i not in self.whole))

        return jax.jit(many, static_argnums=self.whole)

    def branch(self, values: dict, probe: Probe | None = None) -> Branch:
        """The physical branch of the bulk at these parameters."""
        return Branch((probe or self.probes[0]).bulk, self.arguments(values))


def load_solver(files: dict[str, str]) -> Solver:
    """Execute generated text in memory; nothing is written to disk."""
    modules = {}
    for name, text in files.items():
        if name.endswith(".py"):
            stem = name[:-3]
            label = f"<generated {stem}>"
            linecache.cache[label] = (len(text), None, text.splitlines(keepends=True), label)
            module = types.ModuleType(f"generated_in_memory_{stem}")
            exec(compile(text, label, "exec"), module.__dict__)  # noqa: S102 - our own generated source
            modules[stem] = module
    return _assembled(modules["__init__"], modules)


def load_built(name: str) -> Solver | None:
    """The setting as it stands in generated/; None if it has not been built."""
    try:
        front = importlib.import_module(f"generated.{name}")
        stems = {"training", "simulation", *(stem for _, probe, bulk, _ in front.PROBES for stem in (probe, bulk))}
        return _assembled(front, {stem: importlib.import_module(f"generated.{name}.{stem}") for stem in stems})
    except (ModuleNotFoundError, AttributeError):
        return None


def _assembled(front: types.ModuleType, modules: dict[str, types.ModuleType]) -> Solver:
    probes = tuple(Probe(label, modules[probe], modules[bulk], plus) for label, probe, bulk, plus in front.PROBES)
    return Solver(front, modules["training"], modules["simulation"], probes)


@dataclass(frozen=True)
class Layer:
    """The spectrum of one probed matrix after the last step, and its outliers at all times if they were asked for.

    outlier_path: for each time the outliers; outlier_path_errors: their standard errors where the theory is sampled,
    None for one that is not always there; largest_path: the top of the spectrum, outlier or edge; bbp_time: the
    first time with an outlier, None if there is none. overlaps: for each outlier the squared overlap of its right
    and left vector with the span of the spikes; overlap_errors: theirs where the theory is sampled. moments: of the
    bulk, from order 0. shift: what was added to the
    diagonal, also at all times.
    """

    label: str
    bulk_edges: list[list[float]]
    outliers: list[float]
    outlier_errors: list[float] | None
    diagnostics: dict
    moments: list[float] = field(default_factory=list)
    shift: float = 0.0
    shift_path: list[float] | None = None
    outlier_path: list[list[float]] | None = None
    outlier_path_errors: list[list[float | None]] | None = None
    largest_path: list[float] | None = None
    bbp_time: int | None = None
    overlaps: list[dict[str, float | None]] | None = None
    overlap_errors: list[dict[str, float | None]] | None = None


@dataclass(frozen=True)
class Solution:
    """What the theory says at given parameters. Errors are None where the result is exact."""

    setting: str
    parameters: dict
    layers: list[Layer]
    observables: dict[str, list[float]]
    observable_errors: dict[str, list[float]] | None
    method: dict
    order: dict[str, np.ndarray]
    solver: Solver

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
    def diagnostics(self) -> dict:
        return {**self.method, **(self.layers[0].diagnostics if self.layers else {})}

    def layer(self, label: str) -> Layer:
        return next(layer for layer in self.layers if layer.label == label)

    def density(self, x: np.ndarray, label: str | None = None, progress: Progress = None) -> np.ndarray:
        """The density of the bulk of a layer, of the first one unless it is named; atoms left out."""
        if not self.layers:
            raise NumericalError(f"{self.setting} probes no matrix, so it has no density")
        layer = self.layers[0] if label is None else self.layer(label)
        branch = self.solver.branch(self.parameters, self.solver.labelled(layer.label))
        edges = [[a - layer.shift, b - layer.shift] for a, b in layer.bulk_edges]
        return branch.density(np.asarray(x, float) - layer.shift, edges, progress)


@in_float64
def solve(
    solver: Solver,
    values: dict,
    *,
    samples: int | None = None,
    seed: int = 0,
    rank: int | None = None,
    layers: Sequence[str] | None = None,
    path: bool = False,
    overlaps: bool = False,
    progress: Progress = None,
) -> Solution:
    """Order parameters, bulk and outliers.

    samples, seed, rank: sites that are sampled where laws are nonlinear, their random numbers, and most directions
    of the past to keep. layers: labels of the probed matrices, all of them if None. path:
    outliers at every time. overlaps: of the outliers' vectors with the spikes.
    """
    tell = progress or (lambda fraction, text: None)
    tell(0.0, "training level")
    _check_memory(solver, solver.arguments(values))
    if solver.front.LINEAR:
        trained = Trained.of(*solver.forward_pass(*solver.arguments(values)))
    else:
        sampling = Sampling(samples or DEFAULT_SAMPLES, seed, rank=rank)
        trained = Trained.sampled(solver, values, sampling, part(tell, 0.0, 0.7))
    return spectra(
        solver,
        values,
        trained,
        layers=layers,
        path=path,
        overlaps=overlaps,
        progress=part(tell, 0.05 if solver.front.LINEAR else 0.7, 1.0),
    )


def solve_many(
    solver: Solver,
    points: Sequence[dict],
    *,
    samples: int | None = None,
    seed: int = 0,
    rank: int | None = None,
    layers: Sequence[str] | None = None,
    path: bool = False,
    overlaps: bool = False,
    progress: Progress = None,
) -> Iterator[Solution | NumericalError]:
    """A solution, or the reason why there is none, for each point. Whole numbers must be the same at all points.

    Exact forward passes run side by side, as many as fit into memory.
    """
    tell = progress or (lambda fraction, text: None)
    kwargs = {"layers": layers, "path": path, "overlaps": overlaps}
    done = 0
    for chunk in _chunks(solver, points):
        tables: Sequence[Trained | None] = [None] * len(chunk)
        if solver.front.LINEAR:
            tell(done / len(points), f"training level of {len(chunk)} points")
            tables = _train_together(solver, chunk)
        for values, trained in zip(chunk, tables, strict=True):
            tell(done / len(points), f"point {done + 1} of {len(points)}")
            try:
                if trained is None:
                    yield solve(solver, values, samples=samples, seed=seed, rank=rank, **kwargs)
                else:
                    yield spectra(solver, values, trained, **kwargs)
            except NumericalError as error:
                yield error
            done += 1
    tell(1.0, "done")


@in_float64
def _train_together(solver: Solver, points: Sequence[dict]) -> list[Trained]:
    arguments = [solver.arguments(values) for values in points]
    columns = [
        arguments[0][i] if i in solver.whole else jnp.array([a[i] for a in arguments], float)
        for i in range(len(arguments[0]))
    ]
    together = jax.tree.map(np.asarray, solver.forward_passes(*columns))
    return [Trained.of(*jax.tree.map(lambda x, k=k: x[k], together)) for k in range(len(points))]


def _chunks(solver: Solver, points: Sequence[dict]) -> Iterator[list[dict]]:
    """Points in groups whose order parameters fit into a modest share of the memory."""
    if not points:
        return
    entries = _check_memory(solver, solver.arguments(points[0]))
    count = 1 if not solver.front.LINEAR else max(1, min(256, int(BATCH_BYTES / (WORKING_COPIES * 8 * entries))))
    for start in range(0, len(points), count):
        yield list(points[start : start + count])


@dataclass(frozen=True)
class Trained:
    """The training level: order parameters and observables, and, if sampled, what they are without one replica.

    coarse: the same from half of the sites, from which the bias of sampling is known; None where there is none.
    """

    order: dict[str, np.ndarray]
    observables: dict[str, np.ndarray]
    finite: int
    errors: dict[str, np.ndarray] | None
    without_one: tuple[Order, ...]
    method: dict
    coarse: Order | None = None
    coarse_without_one: tuple[Order, ...] = ()

    @staticmethod
    def of(order, observables, finite) -> Trained:
        exact = {"method": "exact forward pass"}
        return Trained(_as_numpy(order), _as_numpy(observables), int(finite), None, (), exact)

    @property
    def noise(self) -> float:
        """How large the noise of sampling in normalised correlations is, in variance; zero if they are exact."""
        return 0.0 if not self.without_one else 2 * RESOLVED * self.method["replicas"] / self.method["samples"]

    @property
    def pairs(self) -> list[tuple[Order, Order | None]]:
        """Order parameters without one replica, each with its coarse counterpart."""
        return list(zip(self.without_one, self.coarse_without_one or [None] * len(self.without_one), strict=True))

    def groups(self, count: int = PATH_GROUPS) -> list[tuple[Order, Order | None]]:
        """Order parameters without each of a few groups of replicas, to first order in what a replica contributes."""

        def without(whole: Order, group: Sequence[Order]) -> Order:
            return {name: x + sum(one[name] - x for one in group) for name, x in whole.items()}

        return [
            (
                without(self.order, self.without_one[k::count]),
                without(self.coarse, self.coarse_without_one[k::count]) if self.coarse is not None else None,
            )
            for k in range(min(count, len(self.without_one)))
        ]

    @staticmethod
    def sampled(solver: Solver, values: dict, sampling: Sampling, tell) -> Trained:
        """Means over independent replicas of the sampled forward pass."""
        arguments, arrays = solver.arguments(values), solver.arrays(values)
        found = sampled_pass(solver.training, solver.forward_pass, arguments, arrays, sampling, tell)
        return Trained(
            found.fine[0],
            found.observables,
            found.finite,
            found.errors,
            found.fine[1:],
            found.method,
            found.coarse[0] if found.coarse else None,
            found.coarse[1:],
        )


@in_float64
def spectra(
    solver: Solver,
    values: dict,
    trained: Trained,
    *,
    layers: Sequence[str] | None = None,
    path: bool = False,
    overlaps: bool = False,
    progress: Progress = None,
) -> Solution:
    """The solution that belongs to a trained level: the spectrum of every layer asked for."""
    tell = progress or (lambda fraction, text: None)
    _check_finite(trained)
    chosen = [p for p in solver.probes if layers is None or p.label in layers]
    found: list[Layer] = []
    bare: dict[types.ModuleType, Layer] = {}
    for number, probe in enumerate(chosen):
        tell(number / len(chosen), f"spectrum of layer {probe.label}" if probe.label else "bulk and outliers")
        if probe.module not in bare:
            share = part(tell, number / len(chosen), (number + 1) / len(chosen))
            bare[probe.module] = _layer(solver, values, trained, probe, path, overlaps, share)
        layer = replace(bare[probe.module], label=probe.label)
        found.append(_moved(layer, trained.observables[probe.plus]) if probe.plus else layer)
    tell(1.0, "done")
    errors = trained.errors
    return Solution(
        solver.name,
        dict(values),
        found,
        {k: np.atleast_1d(v).tolist() for k, v in trained.observables.items()},
        None if errors is None else {k: np.atleast_1d(v).tolist() for k, v in errors.items()},
        trained.method,
        trained.order,
        solver,
    )


def _layer(solver: Solver, values: dict, trained: Trained, probe: Probe, path: bool, overlaps: bool, tell) -> Layer:
    arguments, branch = solver.arguments(values), solver.branch(values, probe)
    edges = support(branch, part(tell, 0.0, 0.8))
    atoms = atoms_of(branch, edges)
    excluded = [*edges, *((atom["at"], atom["at"]) for atom in atoms)]
    found = find_outliers(probe.module, trained.order, arguments, branch, excluded)
    diagnostics: dict = {
        "atoms": atoms,
        "residual": max((o.residual for o in found), default=0.0),
        "eigenvalue_condition": max((o.condition for o in found), default=1.0),
        "reduced": bool(probe.module.REDUCED),
        "bulk": "curve of the resolvent"
        if probe.bulk.ELIMINATED
        else f"{len(probe.bulk.RESPONSES)} response equations, too many to eliminate, followed by Newton's method",
    }

    def positions(order: Order) -> list[float]:
        return outlier_positions(probe.module, order, arguments, branch, excluded)

    def unbiased(pair: tuple[Order, Order | None]) -> list[float]:
        return positions(pair[0]) if pair[1] is None else extrapolated(positions(pair[0]), positions(pair[1]))

    here = [float(o.z) for o in found]
    outliers, errors = here, None
    if trained.without_one:
        coarse = here if trained.coarse is None else positions(trained.coarse)
        outliers = [z for z in extrapolated(here, coarse) if outside(z, excluded)]
        spreads = match_replicas(outliers, [unbiased(pair) for pair in trained.pairs])
        errors = [jackknife(spread, len(trained.without_one)) for spread in spreads]
        if any(not math.isfinite(e) for e in errors) or len(coarse) != len(here):
            diagnostics["unsettled"] = "an outlier is so close to the edge that not all replicas have it; raise samples"
            errors = [
                e if math.isfinite(e) else abs(z - _nearest_edge(z, edges))
                for e, z in zip(errors, outliers, strict=True)
            ]
    layer = Layer(
        probe.label,
        [[float(a), float(b)] for a, b in edges],
        outliers,
        errors,
        diagnostics,
        moments(branch, MOMENTS),
    )
    if overlaps:
        layer = _with_overlaps(layer, probe, trained, arguments, branch, here, positions)
    if path and solver.front.STEPS is not None and (probe.module.REDUCED or not probe.module.LABELS):

        def followed(pair: tuple[Order, Order | None]) -> list[tuple[list[float], float]]:
            paths = [outlier_path(solver, probe, order, arguments, branch, excluded, tell) for order in pair if order]
            if len(paths) == 1:
                return paths[0]
            steps = zip(paths[0], paths[1], strict=True)
            return [
                ([z for z in extrapolated(now, coarse) if outside(z, excluded)], top)
                for (now, top), (coarse, _) in steps
            ]

        whole = followed((trained.order, trained.coarse))
        groups = [[now for now, _ in followed(pair)] for pair in trained.groups()]
        layer = replace(
            layer,
            outlier_path=[now for now, _ in whole],
            outlier_path_errors=path_errors([now for now, _ in whole], groups) if groups else None,
            largest_path=[max([top, *now]) for now, top in whole],
            bbp_time=next((time for time, (now, _) in enumerate(whole) if now), None),
        )
    return layer


def _with_overlaps(layer: Layer, probe: Probe, trained: Trained, arguments, branch, here, positions) -> Layer:
    """The layer with the overlaps of its outliers, `here` where order parameters put them, with the spikes."""
    if not are_resolved(probe.module, trained.order, arguments, trained.noise) or len(here) != len(layer.outliers):
        layer.diagnostics["overlaps"] = "not given: the spikes are too nearly dependent for sampled order parameters"
        return layer
    found = spike_overlaps(probe.module, trained.order, arguments, branch, here)
    if here:
        layer.diagnostics["spike_directions"] = span_sizes(probe.module, trained.order, arguments)
    if not trained.without_one:
        return replace(layer, overlaps=found)
    others = [
        spike_overlaps(probe.module, order, arguments, branch, there)
        for order, _ in trained.groups()
        if len(there := positions(order)) == len(here)
    ]
    return replace(layer, overlaps=found, overlap_errors=overlap_errors(found, others))


def _moved(layer: Layer, observable: np.ndarray) -> Layer:
    """The layer with an observable added to the diagonal of its matrix."""
    shift = np.atleast_1d(observable)
    last = float(shift[-1])
    at = shift if shift.size > 1 else np.full(len(layer.outlier_path or [0]), last)
    atoms = [{**atom, "at": atom["at"] + last} for atom in layer.diagnostics["atoms"]]
    return replace(
        layer,
        bulk_edges=[[a + last, b + last] for a, b in layer.bulk_edges],
        outliers=[z + last for z in layer.outliers],
        diagnostics={**layer.diagnostics, "atoms": atoms},
        moments=_moved_moments(layer.moments, last),
        shift=last,
        shift_path=[float(x) for x in shift],
        outlier_path=layer.outlier_path
        and [[z + float(x) for z in now] for now, x in zip(layer.outlier_path, at, strict=True)],
        largest_path=layer.largest_path and [z + float(x) for z, x in zip(layer.largest_path, at, strict=True)],
    )


def _moved_moments(values: list[float], shift: float) -> list[float]:
    """Moments of x + shift from those of x."""
    return [sum(math.comb(k, j) * values[j] * shift ** (k - j) for j in range(k + 1)) for k in range(len(values))]


def _check_memory(solver: Solver, arguments: tuple) -> int:
    """How many numbers the order parameters are; sizes that cannot be meant are refused before any array is made."""
    if not solver.front.LINEAR:
        entries = solver.training.footprint(*arguments, rank=WIDEST_SPAN)
    else:
        results = jax.eval_shape(lambda: solver.training.forward_pass(*arguments))
        entries = sum(math.prod(x.shape) for x in jax.tree.leaves(results))
    if 8 * entries > MOST_BYTES:
        whole = ", ".join(f"{n}={a}" for (n, _, w), a in zip(solver.front.PARAMETERS, arguments, strict=True) if w)
        raise ParameterError(
            f"{whole} needs about {8 * entries / 1e9:.0f} GB for its order parameters; take smaller numbers"
        )
    return entries


def _nearest_edge(z: float, edges: list) -> float:
    return min((e for pair in edges for e in pair), key=lambda e: abs(e - z))


def _as_numpy(table: dict) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in table.items()}


def _check_finite(trained: Trained) -> None:
    """Refuse a training that has overflowed, or grown so far that its order parameters have no digits left."""
    for name, value in (*trained.observables.items(), *trained.order.items()):
        if not np.all(np.isfinite(value)):
            raise NumericalError(
                f"diverged at step {trained.finite} ({name} is not finite); try a smaller step or fewer steps"
            )
    exploded = []
    for name, value in trained.observables.items():
        series = np.abs(np.atleast_1d(value))
        series = series.max(axis=tuple(range(1, series.ndim)))
        exploded += [(int(t), name) for t in np.flatnonzero(~(series <= GROWTH * max(1.0, series[0])))[:1]]
    if exploded:
        step, name = min(exploded)
        raise NumericalError(f"diverged at step {step} ({name} explodes); try a smaller step or fewer steps")
    for name, value in trained.order.items():
        squares = np.abs(np.diagonal(value)) if name.startswith("C_") and value.size else np.zeros(1)
        if not np.max(squares) <= GROWTH * max(1.0, squares[0]):
            raise NumericalError(
                f"diverged within {trained.finite} steps ({name} explodes); try a smaller step or fewer steps"
            )
