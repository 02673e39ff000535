"""Order parameters of weighted means over passes, computed when they are read.

A pass stores coordinates (times x directions). Moments are times x times and, for many labels and times, larger than
the coordinates that they are computed from. Passes are therefore stored as they are, and moments are computed for the
order parameters that are read: all at once where they are small, otherwise in groups that share a moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial, reduce
from operator import add
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from numerics.runtime.interface import Key
from numerics.runtime.operators import Operator, SomeColumns, Zero, operator
from numerics.runtime.point import Point
from numerics.runtime.sampled import Carried, PivotRecorder, Resolved
from numerics.runtime.samples import SampledPass
from numerics.support.compiling import compiled
from numerics.support.nearby import Moved, ReadTogether
from numerics.training.quadrature import BY_VALUE
from numerics.training.shelf import Shelf

MomentKey = tuple[Any, ...]
Moments = Mapping[MomentKey, np.ndarray]
Shapes = tuple[tuple[MomentKey, tuple[int, ...]], ...]
KeptShapes = tuple[tuple[str, tuple[int, ...]], ...]
Layout = tuple[Any, tuple[tuple[tuple[int, ...], Any], ...]]
"""Names and whole numbers of a point, and the shapes and types of its other values."""
Columns = np.ndarray | None
K = TypeVar("K")
SMALL = 2e8
"""Bytes below which all moments and order parameters are computed at once. Trades peak memory for fewer compiled
programs."""
FEW, STEP = 512, 128
"""Number of noises above which those that carry responses are gathered; their number is rounded up to multiples of
STEP. A small STEP compiles more programs, a large one pads more columns."""
MOST_COLUMNS = 0.7
"""Fraction of the noises above which moments over all noises are computed instead of gathered columns."""
LEAST = 0.25
"""Smallest conditional variance that a noise with responses may have, as a fraction of that in the mean. Bounds the
condition number of the covariance factor of perturbed order parameters."""


class Ensemble:
    """Passes over independent sites at the same parameters."""

    def __init__(self, training: SampledPass, p: Point, shelf: Shelf) -> None:
        self.training, self.p, self.shelf = training, p, shelf
        self.passes: list[Mapping[str, np.ndarray]] = []
        self.observables: list[Mapping[str, np.ndarray]] = []
        self.known: dict[tuple[int, tuple[MomentKey, ...]], Moments] = {}
        """Moments of passes that are small enough to store."""
        self.narrow: dict[Part, bool] = {}
        self.means: dict[tuple[tuple[tuple[float, PassSum], ...], MomentKey], Operator] = {}
        """Contributions of means that several replicates share."""

    def add(self, kept: Carried, observables: Mapping[str, np.ndarray]) -> int:
        """Store one more pass and return its index."""
        self.observables.append(observables)
        self.passes.append(self.shelf.keep({name: np.asarray(x) for name, x in vars(kept).items()}))
        return len(self.passes) - 1

    def mean(self, terms: Sequence[Term]) -> PassSum:
        """Return a weighted sum of passes that caches its moments."""
        return PassSum(self, terms)

    def order(self, terms: Sequence[Term], resolved: Resolved | float) -> Near:
        """Return the order parameters of a weighted sum of moments. resolved: noises that carry responses, or a
        tolerance."""
        return Near(self, terms, resolved)

    def moved(self, mean: PassSum, terms: Sequence[Term], resolved: Resolved) -> Near:
        """Return the order parameters of a mean, perturbed to first order (JVP) along a weighted sum of moments."""
        return NearMean(self, terms, resolved, mean)

    def resolved(self, mean: PassSum, tolerance: float) -> Resolved:
        """Return the noises that carry responses: those whose conditional variance, given earlier ones, exceeds the
        fraction `tolerance` of their variance in the mean."""
        noted = _noted(self.training, self.p, tolerance, self.shapes, mean)
        return Resolved(_together(*map(np.asarray, one)) for one in noted)

    def observed(self, terms: Sequence[Term]) -> dict[str, np.ndarray]:
        """Return the observables of a weighted sum."""
        tables = [(factor, self.observables[one] if isinstance(one, int) else one.observed) for factor, one in terms]
        return {name: np.asarray(sum(factor * table[name] for factor, table in tables)) for name in self.observables[0]}

    def moments(self, number: int, keys: tuple[MomentKey, ...], columns: Columns = None) -> Moments:
        """Return moments of one pass. columns: those to compute of moments over noises; None for all."""
        if (number, keys) in self.known:
            return self.known[number, keys]
        names = tuple(dict.fromkeys(name for key in keys for name in self.made_of[key]))
        kept = {name: self.passes[number][name] for name in names}
        values = _chosen_moments(self.training)(self.p, kept, columns, keys=keys, shapes=self.kept_shapes)
        moments = {key: np.asarray(value) for key, value in values.items()}
        if len(self.parts) == 1 and self.shelf.takes(moments):
            self.known[number, keys] = moments
        return moments

    def matrix(self, number: int, key: MomentKey) -> Operator:
        """Return a moment of one pass as an operator."""
        kept = {name: self.passes[number][name] for name in self.made_of[key]}
        return operator(self.training.moments_of(self.p, _as_operators(kept, self.kept_shapes))[key])

    @cached_property
    def kept_shapes(self) -> KeptShapes:
        """Shapes of the stored arrays of a pass."""
        return tuple((name, np.shape(x)) for name, x in self.passes[0].items())

    @cached_property
    def made_of(self) -> dict[MomentKey, tuple[str, ...]]:
        """For each moment the names of the stored arrays that it reads; a pass may be on disk, so that only these are
        loaded."""
        return _made_of(self.training, _layout_of(self.p), self.kept_shapes)

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of all moments."""
        return _shapes_of_moments(self.training, _layout_of(self.p), self.kept_shapes)

    @cached_property
    def noises(self) -> list[frozenset[MomentKey]]:
        """For each covariance factor of noises the moments that it reads."""
        read = _noted_by(self.training, _layout_of(self.p), self.shapes)
        return [frozenset(read["left", k]) for k in range(len(read))]

    def columns(self, part: Part, resolved: Resolved | float) -> Columns:
        """Return the columns of the noises that carry responses, or None where all columns are computed."""
        keys = part[1]
        if len(self.parts) == 1 or not isinstance(resolved, Resolved):
            return None
        shapes = dict(self.shapes)
        counts = {shapes[key][1] for key in keys if over_noises(key)}
        places = [
            np.asarray(which) for read, (which, _) in zip(self.noises, resolved.chosen, strict=True) if read & set(keys)
        ]
        if len(counts) != 1 or not places:
            return None
        (count,) = counts
        columns = np.unique(np.concatenate(places))
        columns = columns[columns < count]
        return columns if len(columns) <= MOST_COLUMNS * count and self._is_narrow(part, count) else None

    def _is_narrow(self, part: Part, count: int) -> bool:
        """Whether the order parameters have the same columns as the moments that they are computed from."""
        if part not in self.narrow:
            struct: Any = jax.ShapeDtypeStruct
            order, moments = part
            few = np.arange(2)
            resolved = Resolved([(few, np.ones(2))] * len(self.noises), few)
            shapes = dict(self.shapes)
            table = {key: struct((shapes[key][0], 2) if over_noises(key) else shapes[key], float) for key in moments}
            function = partial(_order_of, self.training, p=self.p, resolved=resolved, shapes=self.shapes, keys=order)
            try:
                results = jax.eval_shape(function, table)
            except (ValueError, TypeError):  # the moments enter in another way
                results = {}
            whole = self.of_order
            few_of = {key: (shape[0], 2) for key, shape in whole.items() if shape[1:] == (count,)}
            self.narrow[part] = bool(results) and all(
                x.shape in (whole[key], few_of.get(key)) for key, x in results.items()
            )
        return self.narrow[part]

    def sum_of(self, terms: Sequence[Term], key: MomentKey) -> Operator:
        """Return a moment of a weighted sum as an operator; zero for an empty sum."""
        parts = [
            factor * (self.matrix(one, key) if isinstance(one, int) else operator(one.moments((key,))[key]))
            for one, factor in _together_in(terms).items()
        ]
        rows, columns = dict(self.shapes)[key]
        return reduce(add, parts) if parts else Zero((rows, columns))

    @cached_property
    def of_order(self) -> dict[Key, tuple[int, ...]]:
        """Shapes of all order parameters."""
        return dict(_shapes_of_order(self.training, _layout_of(self.p), self.shapes))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Groups of order parameters that are computed together, with the moments that they read."""
        return _parts(self.training, _layout_of(self.p), self.shapes)


class PassSum:
    """A weighted sum of passes that caches its moments."""

    def __init__(self, ensemble: Ensemble, terms: Sequence[Term]) -> None:
        self.ensemble, self.terms = ensemble, terms
        self.observed = ensemble.observed(terms)
        self.known: dict[MomentKey, Moments] = {}
        self.narrow: dict[tuple[Any, ...], Moments] = {}

    def moments(self, keys: tuple[MomentKey, ...], columns: Columns = None) -> Moments:
        """Return moments of the sum. columns: those to compute of moments over noises; None for all."""
        if columns is not None and not all(key in self.known for key in keys):
            name = (keys, columns.tobytes())
            if name not in self.narrow:
                self.narrow[name] = self.ensemble.shelf.keep(_sum(self.ensemble, self.terms, keys, columns))
            return self.narrow[name]
        if columns is not None:
            return {key: x[:, columns] if over_noises(key) else x for key, x in self.moments(keys).items()}
        missing = tuple(key for key in keys if key not in self.known)
        if missing:
            table = self.ensemble.shelf.keep(_sum(self.ensemble, self.terms, missing))
            self.known.update(dict.fromkeys(missing, table))
        return {key: self.known[key][key] for key in keys}


Term = tuple[float, int | PassSum]
"""A coefficient, and a pass by its index or a mean."""
Part = tuple[tuple[Key, ...], tuple[MomentKey, ...]]


def over_noises(key: MomentKey) -> bool:
    """Whether the columns of a moment run over noises: correlations with noises, and their covariance."""
    return key[0] in ("K", "G")


def _sum(
    ensemble: Ensemble, terms: Sequence[Term], keys: tuple[MomentKey, ...], columns: Columns = None
) -> dict[MomentKey, np.ndarray]:
    """Return moments of a weighted sum; each pass is read once."""
    if len(ensemble.parts) > 1 and columns is None:
        return {key: written(ensemble.sum_of(terms, key)) for key in keys}
    total: dict[MomentKey, np.ndarray] = {}
    for one, factor in _together_in(terms).items():
        table = ensemble.moments(one, keys, columns) if isinstance(one, int) else one.moments(keys, columns)
        for key in keys:
            value = factor * table[key]
            if key in total:
                value += total[key]
            total[key] = value
    return total


def _together_in(terms: Sequence[Term]) -> dict[int | PassSum, float]:
    """Return the total coefficient of each pass or mean in a sum."""
    factors: dict[int | PassSum, float] = {}
    for factor, one in terms:
        factors[one] = factors.get(one, 0.0) + factor
    return {one: factor for one, factor in factors.items() if factor}


def _among(columns: np.ndarray, resolved: Resolved) -> Resolved:
    """Return the noises that carry responses by their positions among some columns."""
    chosen = []
    for which, least in resolved.chosen:
        places = np.searchsorted(columns, which)
        there = columns[np.minimum(places, len(columns) - 1)] == which
        chosen.append((np.where(there, places, len(columns)), np.where(there, least, 0.0)))
    return Resolved(chosen, columns)


class Near(ReadTogether):
    """Order parameters of a weighted sum of passes; values that were read are cached, in memory or on disk."""

    def __init__(
        self, ensemble: Ensemble, terms: Sequence[Term], resolved: Resolved | float, mean: PassSum | None = None
    ) -> None:
        self.ensemble, self.terms, self.resolved, self.mean = ensemble, terms, resolved, mean
        self.known: dict[Key, Mapping[Key, np.ndarray]] = {}

    def read(self, keys: Sequence[Key]) -> dict[Key, np.ndarray]:
        """Return the order parameters with these keys."""
        for part in self.ensemble.parts:
            if any(key in part[0] and key not in self.known for key in keys):
                table = self.ensemble.shelf.keep(self._made(part))
                self.known.update(dict.fromkeys(part[0], table))
        return {key: self.known[key][key] for key in keys}

    def whole(self) -> Mapping[Key, np.ndarray]:
        """Return all order parameters, stored in memory or on disk."""
        return self.ensemble.shelf.keep_parts(self._made(part) for part in self.ensemble.parts)

    def _made(self, part: Part) -> dict[Key, np.ndarray]:
        """Compute one group of order parameters."""
        order, moments = part
        if _are_moments(part):
            table = _sum(self.ensemble, self.terms, moments)
            base = {} if self.mean is None else self.mean.moments(moments)
            return {key: base[key] + table[key] if base else table[key] for key in order}
        return {key: _spread(value, self._columns(part), self.ensemble.of_order[key]) for key, value in self._few(part)}

    def _columns(self, part: Part) -> Columns:
        return self.ensemble.columns(part, self.resolved)

    def _few(self, part: Part, change: bool = False) -> Iterator[tuple[Key, np.ndarray]]:
        """Yield the order parameters that are not moments, or their first-order change, restricted to the computed
        columns."""
        order, moments = part
        training, p, shapes = self.ensemble.training, self.ensemble.p, self.ensemble.shapes
        columns, resolved = self._columns(part), self.resolved
        if columns is not None:
            assert isinstance(resolved, Resolved), "else all columns are made"
            resolved = _among(columns, resolved)
        table = _sum(self.ensemble, self.terms, moments, columns)
        if self.mean is None:
            base, moving = table, {key: np.zeros_like(value) for key, value in table.items()}
        else:
            base, moving = dict(self.mean.moments(moments, columns)), table
        run = _moved_order(training, _are_few(shapes))
        values = run(base, moving, p, resolved, shapes=shapes, keys=order, change=change)
        return ((key, np.asarray(value)) for key, value in values.items())

    def __iter__(self) -> Iterator[Key]:
        return (key for order, _ in self.ensemble.parts for key in order)

    def __len__(self) -> int:
        return sum(len(order) for order, _ in self.ensemble.parts)


class NearMean(Near, Moved):
    """Order parameters of a mean, perturbed to first order along a weighted sum of its moments."""

    def changes(self, keys: Sequence[Key]) -> dict[Key, Operator]:
        """Return the first-order changes of order parameters as operators."""
        changes: dict[Key, Operator] = {}
        self.ensemble.means = {name: mean for name, mean in self.ensemble.means.items() if name[1] in keys}
        for part in self.ensemble.parts:
            wanted = [key for key in part[0] if key in keys]
            if _are_moments(part):
                changes |= {key: self._of_moment(key) for key in wanted}
            elif wanted:
                changes |= {key: self._of_columns(part, key, value) for key, value in self._few(part, change=True)}
        return {key: changes[key] for key in keys}

    def _of_moment(self, key: MomentKey) -> Operator:
        """Return the change of an order parameter that is a moment; terms that replicates share are computed once."""
        own = [(factor, one) for factor, one in self.terms if isinstance(one, int)]
        shared = tuple((factor, one) for factor, one in self.terms if isinstance(one, PassSum))
        if not shared:
            return self.ensemble.sum_of(own, key)
        means = self.ensemble.means
        if (shared, key) not in means:
            means[shared, key] = operator(written(self.ensemble.sum_of(shared, key)))
        return self.ensemble.sum_of(own, key) + means[shared, key]

    def _of_columns(self, part: Part, key: Key, value: np.ndarray) -> Operator:
        """Return a change as an operator whose other columns are zero."""
        columns, shape = self._columns(part), self.ensemble.of_order[key]
        if columns is None or value.shape == shape:
            return operator(value)
        return SomeColumns(value, columns, shape[1])


def _spread(value: np.ndarray, columns: Columns, shape: tuple[int, ...]) -> np.ndarray:
    """Return a matrix with the given columns and zeros elsewhere."""
    if columns is None or value.shape == shape:
        return value
    matrix = np.zeros(shape)
    matrix[:, columns] = value
    return matrix


def written(moment: Operator) -> np.ndarray:
    """Return the entries of an operator as an array, without large temporaries."""
    matrix = np.zeros(moment.shape)
    moment.add_to(matrix, 1.0)
    return matrix


def _as_operators(kept: Mapping[str, Any], shapes: KeptShapes) -> Carried:
    """Return the stored arrays of a pass with matrices as operators, and zeros for arrays that were not loaded."""
    state: dict[str, Any] = {}
    for name, shape in shapes:
        if name in kept:
            state[name] = operator(kept[name]) if len(shape) == 2 else kept[name]
        else:
            state[name] = Zero((shape[0], shape[1])) if len(shape) == 2 else np.broadcast_to(0.0, shape)
    return Carried(**state)


@lru_cache(maxsize=64)
def _chosen_moments(training: SampledPass) -> Callable[..., Any]:
    """Return a compiled function that computes chosen moments of a pass."""

    def chosen(p: Point, kept: Any, columns: Any, keys: tuple[MomentKey, ...], shapes: tuple[Any, ...]) -> Any:
        if columns is None:
            # missing arrays do not enter the results, and the compiler eliminates them
            state = Carried(**{name: kept[name] if name in kept else jnp.zeros(shape) for name, shape in shapes})
            moments = training.moments_of(p, state)
            return {key: moments[key] for key in keys}
        moments = training.moments_of(p, _as_operators(kept, shapes))
        products = {}
        for key in keys:
            *first, last = (factor.array(jnp) for factor in operator(moments[key]).factors)
            products[key] = reduce(jnp.matmul, [*first, last[:, columns] if over_noises(key) else last])
        return products

    return compiled(chosen, quickly=True, static=("keys", "shapes"))


@lru_cache(maxsize=64)
def _moved_order(training: SampledPass, quickly: bool) -> Callable[..., Any]:
    """Return a compiled function that gives order parameters plus their JVP along a change of the moments, or the JVP
    alone."""

    def moved(
        moments: Moments,
        moving: Moments,
        p: Point,
        resolved: Resolved,
        shapes: Shapes,
        keys: tuple[Key, ...],
        change: bool,
    ) -> Any:
        def order(moments: Moments) -> Any:
            return _order_of(training, moments, p, resolved, shapes, keys)

        values, tangents = jax.jvp(order, (moments,), (moving,))
        return {key: tangents[key] if change else values[key] + tangents[key] for key in keys}

    return compiled(moved, quickly=quickly, static=("shapes", "keys", "change"))


def _order_of(
    training: SampledPass,
    moments: Moments,
    p: Point,
    resolved: Resolved | float,
    shapes: Shapes,
    keys: tuple[Key, ...],
) -> Any:
    """Return chosen order parameters from the moments that they read."""
    few = None
    if isinstance(resolved, Resolved):
        resolved = Resolved(
            resolved.chosen, resolved.columns
        )  # a fresh cache: values of one trace are invalid in another
        few = resolved.columns

    def nothing(key: MomentKey, shape: tuple[int, ...]) -> Any:
        return jnp.zeros(shape if few is None or not over_noises(key) else (shape[0], len(few)))

    # missing arrays do not enter the results, and the compiler eliminates them
    every = {key: moments[key] if key in moments else nothing(key, shape) for key, shape in shapes}
    order = training.order_parameters(every, p, tolerance=resolved)
    return {key: order[key] for key in keys}


def _noted(training: SampledPass, p: Point, tolerance: float, shapes: Shapes, mean: PassSum) -> Any:
    """Return the pivots of the noises of each random matrix, from the moments that they read."""
    names = tuple(key for key, _ in shapes)
    read = _noted_by(training, _layout_of(p), shapes)
    wanted = tuple(key for key in names if any(key in keys for keys in read.values()))
    return _compiled_notes(training, _are_few(shapes))(mean.moments(wanted), p, tolerance, shapes=shapes)


# the functions below depend on shapes alone and are traced once for all seeds and parameter values


def _layout_of(p: Point) -> Layout:
    """Return the shapes and types of a point, without its values."""
    leaves, names = jax.tree.flatten(p)
    return names, tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)


def _laid_out(layout: Layout) -> Point:
    """Return a point of abstract values, to trace functions at."""
    names, leaves = layout
    struct: Any = jax.ShapeDtypeStruct  # JAX gives it no types
    point: Point = jax.tree.unflatten(names, [struct(*leaf) for leaf in leaves])
    return point


def _arrays(shapes: tuple[tuple[K, tuple[int, ...]], ...]) -> dict[K, Any]:
    """Return abstract arrays of these shapes."""
    struct: Any = jax.ShapeDtypeStruct
    return {key: struct(shape, float) for key, shape in shapes}


@lru_cache(maxsize=64)
def _made_of(training: SampledPass, layout: Layout, kept: KeptShapes) -> dict[MomentKey, tuple[str, ...]]:
    """Return for each moment the names of the stored arrays that it reads."""
    return _read_by(lambda p, kept: dict(training.moments_of(p, Carried(**kept))), _laid_out(layout), _arrays(kept))


@lru_cache(maxsize=64)
def _shapes_of_moments(training: SampledPass, layout: Layout, kept: KeptShapes) -> Shapes:
    """Return the shapes of all moments."""
    moments = jax.eval_shape(training.moments_of, _laid_out(layout), Carried(**_arrays(kept)))
    return tuple((key, tuple(x.shape)) for key, x in moments.items())


@lru_cache(maxsize=64)
def _noted_by(training: SampledPass, layout: Layout, shapes: Shapes) -> dict[Any, tuple[MomentKey, ...]]:
    """Return for each covariance factor of noises the moments that it reads."""

    def left_of(p: Point, table: Moments) -> Any:
        return {("left", k): left for k, (*_, left) in enumerate(_notes(training, table, p, 0.0))}

    return _read_by(left_of, _laid_out(layout), _arrays(shapes))


def _notes(training: SampledPass, moments: Mapping[MomentKey, Any], p: Point, tolerance: Any) -> list[Any]:
    """Return the pivots that a tolerance records while order parameters are computed."""
    recorder = PivotRecorder(tolerance)
    training.order_parameters(moments, p, tolerance=recorder)
    return recorder.noted


@lru_cache(maxsize=64)
def _compiled_notes(training: SampledPass, quickly: bool) -> Callable[..., Any]:
    """Return a compiled function that computes the pivots of noises."""

    def noted(moments: Moments, p: Point, tolerance: float, shapes: Shapes) -> Any:
        every = {key: moments[key] if key in moments else jnp.zeros(shape) for key, shape in shapes}
        return _notes(training, every, p, tolerance)

    return compiled(noted, quickly=quickly, static=("shapes",))


def _are_few(shapes: Shapes) -> bool:
    """Whether moments are so small that compiling optimised code takes longer than it saves."""
    return max((side for _, shape in shapes for side in shape), default=0) <= FEW


def _together(which: np.ndarray, taken: np.ndarray, left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of the selected noises and lower bounds of their conditional variances. Many noises are gathered
    and padded with positions beyond the last."""
    count = len(which)
    if count <= FEW:
        return which, np.where(taken, LEAST * left, 0.0)
    there = int(np.sum(taken))
    size = min(count, -(-there // STEP) * STEP)
    places, least = np.full(size, count), np.zeros(size)
    places[:there], least[:there] = which[taken], LEAST * left[taken]
    return places, least


@lru_cache(maxsize=64)
def _shapes_of_order(training: SampledPass, layout: Layout, shapes: Shapes) -> tuple[tuple[Key, tuple[int, ...]], ...]:
    """Return the shapes of all order parameters."""
    order = jax.eval_shape(partial(training.order_parameters, tolerance=0.0), _arrays(shapes), _laid_out(layout))
    return tuple((key, tuple(x.shape)) for key, x in order.items())


@lru_cache(maxsize=64)
def _parts(training: SampledPass, layout: Layout, shapes: Shapes) -> tuple[Part, ...]:
    """Group order parameters that share a moment; a single group where all are small."""
    order = _shapes_of_order(training, layout, shapes)
    if sum(8 * math.prod(shape) for _, shape in (*shapes, *order)) <= SMALL:
        return ((tuple(key for key, _ in order), tuple(key for key, _ in shapes)),)
    of_order = _read_by(
        lambda p, table: training.order_parameters(table, p, tolerance=0.0), _laid_out(layout), _arrays(shapes)
    )
    parts: list[tuple[list[Key], dict[MomentKey, None]]] = []
    for key, read in of_order.items():
        sharing = [part for part in parts if any(name in part[1] for name in read)]
        parts = [part for part in parts if part not in sharing]
        keys = [*(name for part in sharing for name in part[0]), key]
        parts.append((keys, dict.fromkeys((*(name for part in sharing for name in part[1]), *read))))
    return tuple((tuple(keys), tuple(read)) for keys, read in parts)


def _are_moments(part: Part) -> bool:
    """Whether the order parameters of a group equal its moments, as correlations do. Tables by value of a diagonal
    entry share the keys of moments but have other values."""
    order, moments = part
    return order == moments and not any(key[0] in BY_VALUE for key in order)


def _read_by(function: Callable[[Point, Any], Any], p: Point, arguments: Mapping[K, Any]) -> dict[Key, tuple[K, ...]]:
    """Return for each named result of a function the named arguments that it depends on."""
    traced, results = jax.make_jaxpr(function, return_shape=True)(p, dict(arguments))
    names = jax.tree.leaves(jax.tree.map_with_path(lambda path, _: path[0].key, dict(arguments)), is_leaf=_is_key)
    labels = jax.tree.leaves(jax.tree.map_with_path(lambda path, _: path[0].key, results), is_leaf=_is_key)
    own = traced.jaxpr.invars[len(jax.tree.leaves(p)) :]
    reads: dict[Any, frozenset[int]] = {v: frozenset({k}) for k, v in enumerate(own)}
    for equation in traced.jaxpr.eqns:
        read = frozenset().union(*(reads.get(v, frozenset()) for v in _variables(equation.invars)))
        reads.update(dict.fromkeys(equation.outvars, read))
    dependencies = {}
    for label, variable in zip(labels, traced.jaxpr.outvars, strict=True):
        read = frozenset().union(*(reads.get(v, frozenset()) for v in _variables([variable])))
        dependencies[label] = tuple(names[k] for k in sorted(read))
    return dependencies


def _variables(atoms: Iterable[Any]) -> list[Any]:
    """Return the variables among the inputs or outputs of a traced equation, without constants."""
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def _is_key(x: Any) -> bool:
    """Whether a pytree node is a key."""
    return isinstance(x, tuple)
