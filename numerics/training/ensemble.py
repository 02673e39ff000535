"""Order parameters of weighted means over passes, computed on demand.

A pass keeps coordinates, times x directions. Moments are arrays of times x times, which for many labels and times are
larger than the data from which they are computed. Passes are therefore stored unchanged, and moments are computed for
the order parameters that are read: all at once if they are small, otherwise in groups that share a moment.
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

from numerics.runtime.keys import OrderKey
from numerics.runtime.operators import Operator, SomeColumns, Zero, operator
from numerics.runtime.point import Point
from numerics.runtime.sampled import Carried, Resolved
from numerics.runtime.samples import SampledPass
from numerics.support.compiling import compiled
from numerics.support.nearby import Moved, ReadTogether
from numerics.training.quadrature import BY_VALUE
from numerics.training.shelf import Shelf, joined

Moments = Mapping[OrderKey, np.ndarray]
Shapes = tuple[tuple[OrderKey, tuple[int, ...]], ...]
KeptShapes = tuple[tuple[str, tuple[int, ...]], ...]
Layout = tuple[Any, tuple[tuple[tuple[int, ...], Any], ...]]
"""Names and integers of a point, and the shapes and types of its other values."""
Columns = np.ndarray | None
K = TypeVar("K")
SMALL = 2e8
"""Bytes of moments and order parameters below which all are computed at once."""
FEW, STEP = 512, 128
"""Number of noises above which those that carry responses are gathered; their number is rounded up to such steps,
because each number is compiled separately."""
MOST_COLUMNS = 0.7
"""Largest fraction of noises with responses for which moments over noises are restricted to those."""
LEAST = 0.25
"""Lower bound on the conditional variance of a noise that carries responses, as a fraction of that in the mean."""


class Ensemble:
    """Passes over different sites at the same parameters."""

    def __init__(self, training: SampledPass, p: Point, shelf: Shelf) -> None:
        self.training, self.p, self.shelf = training, p, shelf
        self.passes: list[Mapping[str, np.ndarray]] = []
        self.observables: list[Mapping[str, np.ndarray]] = []
        self.known: dict[tuple[int, tuple[OrderKey, ...]], Moments] = {}
        """Moments of passes that are small, so that they are made once."""
        self.narrow: dict[Part, bool] = {}
        self.means: dict[tuple[tuple[tuple[float, PassSum], ...], OrderKey], Operator] = {}
        """Contributions of several replicates to means, one after another."""

    def add(self, kept: Carried, observables: Mapping[str, np.ndarray]) -> int:
        """Store the data of one more pass and return its number."""
        self.observables.append(observables)
        self.passes.append(self.shelf.keep({name: np.asarray(x) for name, x in vars(kept).items()}))
        return len(self.passes) - 1

    def mean(self, terms: Sequence[Term]) -> PassSum:
        return PassSum(self, terms)

    def order(self, terms: Sequence[Term], resolved: Resolved) -> Near:
        """Return the order parameters of a sum of moments; resolved: noises that carry responses."""
        return Near(self, terms, resolved)

    def moved(self, mean: PassSum, terms: Sequence[Term], resolved: Resolved) -> Near:
        """Return the order parameters of a mean with their first-order change when a sum is added to its moments."""
        return NearMean(self, terms, resolved, mean)

    def resolved(self, mean: PassSum, tolerance: float) -> Near:
        """Return the order parameters of a mean, with the noises that carry responses: those whose variance conditional
        on earlier ones exceeds the fraction `tolerance`."""
        found = Near(self, [(1.0, mean)], Resolved())
        if not self.noises:
            return found
        shapes = dict(self.shapes)
        covariances = tuple(key for key in shapes if any(key in noise for noise in self.noises))
        keys, moments = self.parts[0] if self.selecting else ((), covariances)
        counts = [max(shapes[key][0] for key in noise) for noise in self.noises]
        undecided = Resolved([(np.arange(n), np.full(n, np.nan)) for n in counts], tolerance=float(tolerance))
        base = mean.moments(moments)
        moving = {key: np.zeros_like(value) for key, value in base.items() if keys}
        made, noted = self.run_order(base, moving, undecided, keys)
        found.resolved = Resolved(_together(*map(np.asarray, one)) for one in noted)
        if self.selecting:
            found.known[self.parts[0]] = self.shelf.keep({key: np.asarray(value) for key, value in made.items()})
        return found

    def observed(self, terms: Sequence[Term]) -> dict[str, np.ndarray]:
        """Return the observables of a sum."""
        tables = [(factor, self.observables[one] if isinstance(one, int) else one.observed) for factor, one in terms]
        return {name: np.asarray(sum(factor * table[name] for factor, table in tables)) for name in self.observables[0]}

    def moments(self, number: int, keys: tuple[OrderKey, ...], columns: Columns = None) -> Moments:
        """Return some moments of one pass; columns: of those over noises, all if None."""
        if (number, keys) in self.known:
            return self.known[number, keys]
        names = tuple(dict.fromkeys(name for key in keys for name in self.made_of[key]))
        kept = {name: self.passes[number][name] for name in names}
        made = _chosen_moments(self.training)(self.p, kept, columns, keys=keys, shapes=self.kept_shapes)
        found = {key: np.asarray(value) for key, value in made.items()}
        if len(self.parts) == 1 and self.shelf.takes(found):
            self.known[number, keys] = found
        return found

    def matrix(self, number: int, key: OrderKey) -> Operator:
        """Return a moment of one pass as an operator."""
        kept = {name: self.passes[number][name] for name in self.made_of[key]}
        return operator(self.training.moments_of(self.p, _as_operators(kept, self.kept_shapes))[key])

    @cached_property
    def kept_shapes(self) -> KeptShapes:
        """Return the shapes of the stored data of a pass."""
        return tuple((name, np.shape(x)) for name, x in self.passes[0].items())

    @cached_property
    def made_of(self) -> dict[OrderKey, tuple[str, ...]]:
        """Return for each moment the arrays of a pass that it needs: passes may be on disk, and only these are read."""
        return _made_of(self.training, _layout_of(self.p), self.kept_shapes)

    @cached_property
    def shapes(self) -> Shapes:
        """Return the shapes of all moments."""
        return _shapes_of_moments(self.training, _layout_of(self.p), self.kept_shapes)

    @cached_property
    def noises(self) -> list[frozenset[OrderKey]]:
        """Return the moments from which each factor of a noise covariance is computed."""
        read = _noted_by(self.training, _layout_of(self.p), self.shapes)
        return [frozenset(read["left", k]) for k in range(len(read))]

    def columns(self, part: Part, resolved: Resolved) -> Columns:
        """Return the noises that carry responses, if moments over noises are restricted to them; None for all."""
        keys = part[1]
        if len(self.parts) == 1 or not resolved.chosen:
            return None
        shapes = dict(self.shapes)
        counts = {shapes[key][1] for key in keys if over_noises(key)}
        places = [
            np.asarray(which) for read, (which, _) in zip(self.noises, resolved.chosen, strict=True) if read & set(keys)
        ]
        if len(counts) != 1 or not places:
            return None
        (count,) = counts
        found = np.unique(np.concatenate(places))
        found = found[found < count]
        if not len(found):  # no noise carries a response: one column of zeros
            found = np.zeros(1, int)
        return found if len(found) <= MOST_COLUMNS * count and self._is_narrow(part, count) else None

    def _is_narrow(self, part: Part, count: int) -> bool:
        """Return whether order parameters have the columns of the underlying moments."""
        if part not in self.narrow:
            struct: Any = jax.ShapeDtypeStruct
            order, moments = part
            few = np.arange(2)
            resolved = Resolved([(few, np.ones(2))] * len(self.noises), few)
            shapes = dict(self.shapes)
            table = {key: struct((shapes[key][0], 2) if over_noises(key) else shapes[key], float) for key in moments}
            made = partial(_order_of, self.training, p=self.p, resolved=resolved, shapes=self.shapes, keys=order)
            try:
                found, _ = jax.eval_shape(made, table)
            except (ValueError, TypeError):  # it does something else with them
                found = {}
            whole = self.of_order
            few_of = {key: (shape[0], 2) for key, shape in whole.items() if shape[1:] == (count,)}
            self.narrow[part] = bool(found) and all(
                x.shape in (whole[key], few_of.get(key)) for key, x in found.items()
            )
        return self.narrow[part]

    def sum_of(self, terms: Sequence[Term], key: OrderKey) -> Operator:
        """Return a moment of a sum as an operator; zero for an empty sum or one whose terms cancel."""
        parts = [
            factor * (self.matrix(one, key) if isinstance(one, int) else operator(one.moments((key,))[key]))
            for one, factor in _together_in(terms).items()
        ]
        rows, columns = dict(self.shapes)[key]
        return reduce(add, parts) if parts else Zero((rows, columns))

    @cached_property
    def of_order(self) -> dict[OrderKey, tuple[int, ...]]:
        """Return the shapes of all order parameters."""
        return dict(_shapes_of_order(self.training, _layout_of(self.p), self.shapes))

    @cached_property
    def selecting(self) -> bool:
        """Whether the program of order parameters also selects the noises; large ones do so in a program of its own."""
        return len(self.parts) == 1 and _are_few(self.shapes)

    def run_order(
        self, moments: Moments, moving: Moments, resolved: Resolved, keys: tuple[OrderKey, ...], change: bool = False
    ) -> Any:
        """Return order parameters as `_moved_order`, and the selected noises if they are wanted."""
        run = _moved_order(self.training, _are_few(self.shapes))
        noting = self.selecting or not keys
        return run(moments, moving, self.p, resolved, shapes=self.shapes, keys=keys, change=change, noting=noting)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return order parameters that are computed together, and the moments that they need."""
        return _parts(self.training, _layout_of(self.p), self.shapes)


class PassSum:
    """A sum of passes with cached moments."""

    def __init__(self, ensemble: Ensemble, terms: Sequence[Term]) -> None:
        self.ensemble, self.terms = ensemble, terms
        self.observed = ensemble.observed(terms)
        self.known: dict[OrderKey, Moments] = {}
        self.narrow: dict[tuple[Any, ...], Moments] = {}

    def moments(self, keys: tuple[OrderKey, ...], columns: Columns = None) -> Moments:
        """Return some moments; columns: of those over noises, all if None."""
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
"""A factor, and a pass (by its number) or mean that it multiplies."""
Part = tuple[tuple[OrderKey, ...], tuple[OrderKey, ...]]


def over_noises(key: OrderKey) -> bool:
    """Return whether the columns of a moment are noises: correlations with them, and their covariance."""
    return key.kind in ("K", "G")


def _sum(
    ensemble: Ensemble, terms: Sequence[Term], keys: tuple[OrderKey, ...], columns: Columns = None
) -> dict[OrderKey, np.ndarray]:
    """Return moments of a sum; every pass is evaluated once, however often it occurs."""
    if len(ensemble.parts) > 1 and columns is None:
        return {key: written(ensemble.sum_of(terms, key)) for key in keys}
    found: dict[OrderKey, np.ndarray] = {}
    for one, factor in _together_in(terms).items():
        table = ensemble.moments(one, keys, columns) if isinstance(one, int) else one.moments(keys, columns)
        for key in keys:
            value = factor * table[key]
            if key in found:
                value += found[key]
            found[key] = value
    return found


def _together_in(terms: Sequence[Term]) -> dict[int | PassSum, float]:
    """Return the passes and means that occur in a sum, each once."""
    factors: dict[int | PassSum, float] = {}
    for factor, one in terms:
        factors[one] = factors.get(one, 0.0) + factor
    return {one: factor for one, factor in factors.items() if factor}


def _among(columns: np.ndarray, resolved: Resolved) -> Resolved:
    """Return the positions, among given noises, of those that carry responses."""
    chosen = []
    for which, least in resolved.chosen:
        places = np.searchsorted(columns, which)
        there = columns[np.minimum(places, len(columns) - 1)] == which
        chosen.append((np.where(there, places, len(columns)), np.where(there, least, 0.0)))
    return Resolved(chosen, columns)


class Near(ReadTogether):
    """Order parameters of a sum of passes. Read entries are cached, in memory or on disk."""

    def __init__(
        self, ensemble: Ensemble, terms: Sequence[Term], resolved: Resolved, mean: PassSum | None = None
    ) -> None:
        self.ensemble, self.terms, self.resolved, self.mean = ensemble, terms, resolved, mean
        self.known: dict[Part, Mapping[OrderKey, np.ndarray]] = {}

    def read(self, keys: Sequence[OrderKey]) -> dict[OrderKey, np.ndarray]:
        kept = {key: self._kept(part) for part in self.ensemble.parts for key in part[0] if key in keys}
        return {key: kept[key][key] for key in keys}

    def whole(self) -> Mapping[OrderKey, np.ndarray]:
        """Return all of them, stored in memory or on disk."""
        return joined([self._kept(part) for part in self.ensemble.parts])

    def _kept(self, part: Part) -> Mapping[OrderKey, np.ndarray]:
        if part not in self.known:
            self.known[part] = self.ensemble.shelf.keep(self._made(part))
        return self.known[part]

    def _made(self, part: Part) -> dict[OrderKey, np.ndarray]:
        order, moments = part
        if _are_moments(part):
            table = _sum(self.ensemble, self.terms, moments)
            base = {} if self.mean is None else self.mean.moments(moments)
            return {key: base[key] + table[key] if base else table[key] for key in order}
        return {key: _spread(value, self._columns(part), self.ensemble.of_order[key]) for key, value in self._few(part)}

    def _columns(self, part: Part) -> Columns:
        return self.ensemble.columns(part, self.resolved)

    def _few(self, part: Part, change: bool = False) -> Iterator[tuple[OrderKey, np.ndarray]]:
        """Return order parameters that are not moments, or their changes, in the computed columns."""
        order, moments = part
        columns, resolved = self._columns(part), self.resolved
        if columns is not None:
            resolved = _among(columns, resolved)
        table = _sum(self.ensemble, self.terms, moments, columns)
        if self.mean is None:
            base, moving = table, {key: np.zeros_like(value) for key, value in table.items()}
        else:
            base, moving = dict(self.mean.moments(moments, columns)), table
        made, _ = self.ensemble.run_order(base, moving, resolved, order, change)
        return ((key, np.asarray(value)) for key, value in made.items())

    def __iter__(self) -> Iterator[OrderKey]:
        return (key for order, _ in self.ensemble.parts for key in order)

    def __len__(self) -> int:
        return sum(len(order) for order, _ in self.ensemble.parts)


class NearMean(Near, Moved):
    """Order parameters of a mean, with the first-order change when a sum is added to its moments."""

    def changes(self, keys: Sequence[OrderKey]) -> dict[OrderKey, Operator]:
        found: dict[OrderKey, Operator] = {}
        self.ensemble.means = {name: known for name, known in self.ensemble.means.items() if name[1] in keys}
        for part in self.ensemble.parts:
            wanted = [key for key in part[0] if key in keys]
            if _are_moments(part):
                found |= {key: self._of_moment(key) for key in wanted}
            elif wanted:
                found |= {key: self._of_columns(part, key, value) for key, value in self._few(part, change=True)}
        return {key: found[key] for key in keys}

    def _of_moment(self, key: OrderKey) -> Operator:
        own = [(factor, one) for factor, one in self.terms if isinstance(one, int)]
        shared = tuple((factor, one) for factor, one in self.terms if isinstance(one, PassSum))
        if not shared:
            return self.ensemble.sum_of(own, key)
        means = self.ensemble.means
        if (shared, key) not in means:
            means[shared, key] = operator(written(self.ensemble.sum_of(shared, key)))
        return self.ensemble.sum_of(own, key) + means[shared, key]

    def _of_columns(self, part: Part, key: OrderKey, value: np.ndarray) -> Operator:
        columns, shape = self._columns(part), self.ensemble.of_order[key]
        if columns is None or value.shape == shape:
            return operator(value)
        return SomeColumns(value, columns, shape[1])


def _spread(value: np.ndarray, columns: Columns, shape: tuple[int, ...]) -> np.ndarray:
    """Return a matrix with these columns and zeros elsewhere."""
    if columns is None or value.shape == shape:
        return value
    found = np.zeros(shape)
    found[:, columns] = value
    return found


def written(moment: Operator) -> np.ndarray:
    """Return a moment as a dense array, with as little additional memory as possible."""
    found = np.zeros(moment.shape)
    moment.add_to(found, 1.0)
    return found


def _as_operators(kept: Mapping[str, Any], shapes: KeptShapes) -> Carried:
    """Return the stored data of a pass with matrices as operators, and zeros for missing entries."""
    state: dict[str, Any] = {}
    for name, shape in shapes:
        if name in kept:
            state[name] = operator(kept[name]) if len(shape) == 2 else kept[name]
        else:
            state[name] = Zero((shape[0], shape[1])) if len(shape) == 2 else np.broadcast_to(0.0, shape)
    return Carried(**state)


@lru_cache(maxsize=64)
def _chosen_moments(training: SampledPass) -> Callable[..., Any]:
    """Return some moments of a pass, compiled once for each choice."""

    def chosen(p: Point, kept: Any, columns: Any, keys: tuple[OrderKey, ...], shapes: tuple[Any, ...]) -> Any:
        if columns is None:
            # of what is not there nothing is made that is asked for: the compiler leaves it out
            state = Carried(**{name: kept[name] if name in kept else jnp.zeros(shape) for name, shape in shapes})
            made = training.moments_of(p, state)
            return {key: made[key] for key in keys}
        made = training.moments_of(p, _as_operators(kept, shapes))
        found = {}
        for key in keys:
            *first, last = (factor.array(jnp) for factor in operator(made[key]).factors)
            found[key] = reduce(jnp.matmul, [*first, last[:, columns] if over_noises(key) else last])
        return found

    return compiled(chosen, quickly=True, static=("keys", "shapes"))


@lru_cache(maxsize=64)
def _moved_order(training: SampledPass, quickly: bool) -> Callable[..., Any]:
    """Return some order parameters, from their moments, shifted to first order in a change of the moments, or only the
    shift, and the noises that carry responses; compiled once for each choice."""

    def moved(
        moments: Moments,
        moving: Moments,
        p: Point,
        resolved: Resolved,
        shapes: Shapes,
        keys: tuple[OrderKey, ...],
        change: bool,
        noting: bool,
    ) -> Any:
        def order(moments: Moments) -> Any:
            return _order_of(training, moments, p, resolved, shapes, keys)

        if not keys:  # the noises alone
            return order(moments)
        made, moves, noted = jax.jvp(order, (moments,), (moving,), has_aux=True)
        return {key: moves[key] if change else made[key] + moves[key] for key in keys}, noted if noting else ()

    return compiled(moved, quickly=quickly, static=("shapes", "keys", "change", "noting"))


def _order_of(
    training: SampledPass,
    moments: Moments,
    p: Point,
    resolved: Resolved,
    shapes: Shapes,
    keys: tuple[OrderKey, ...],
) -> tuple[Any, list[Any]]:
    # what one trace has made is not there in another
    resolved = Resolved(resolved.chosen, resolved.columns, resolved.tolerance)
    few = resolved.columns

    def nothing(key: OrderKey, shape: tuple[int, ...]) -> Any:
        return jnp.zeros(shape if few is None or not over_noises(key) else (shape[0], len(few)))

    # of what is not there nothing is made that is asked for: the compiler leaves it out
    every = {key: moments[key] if key in moments else nothing(key, shape) for key, shape in shapes}
    made = training.order_parameters(every, p, tolerance=resolved)
    return {key: made[key] for key in keys}, resolved.noted


# what follows depends on shapes alone, so that it is traced once for all seeds and all values of parameters


def _layout_of(p: Point) -> Layout:
    leaves, names = jax.tree.flatten(p)
    return names, tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)


def _laid_out(layout: Layout) -> Point:
    """Return a point with shapes but without values, for tracing functions."""
    names, leaves = layout
    struct: Any = jax.ShapeDtypeStruct  # JAX gives it no types
    point: Point = jax.tree.unflatten(names, [struct(*leaf) for leaf in leaves])
    return point


def _arrays(shapes: tuple[tuple[K, tuple[int, ...]], ...]) -> dict[K, Any]:
    """Return uninitialised arrays of these shapes."""
    struct: Any = jax.ShapeDtypeStruct
    return {key: struct(shape, float) for key, shape in shapes}


@lru_cache(maxsize=64)
def _made_of(training: SampledPass, layout: Layout, kept: KeptShapes) -> dict[OrderKey, tuple[str, ...]]:
    """Return, for each moment, the arrays on which it depends."""
    return _read_by(lambda p, kept: dict(training.moments_of(p, Carried(**kept))), _laid_out(layout), _arrays(kept))


@lru_cache(maxsize=64)
def _shapes_of_moments(training: SampledPass, layout: Layout, kept: KeptShapes) -> Shapes:
    made = jax.eval_shape(training.moments_of, _laid_out(layout), Carried(**_arrays(kept)))
    return tuple((key, tuple(x.shape)) for key, x in made.items())


@lru_cache(maxsize=64)
def _noted_by(training: SampledPass, layout: Layout, shapes: Shapes) -> dict[Any, tuple[OrderKey, ...]]:
    """Return the moments on which the records of each factor of noises depend."""

    def left_of(p: Point, table: Moments) -> Any:
        resolved = Resolved()
        training.order_parameters(table, p, tolerance=resolved)
        return {("left", k): left for k, (*_, left) in enumerate(resolved.noted)}

    return _read_by(left_of, _laid_out(layout), _arrays(shapes))


def _are_few(shapes: Shapes) -> bool:
    """Return whether moments have so few rows and columns that computing order parameters takes less time than
    optimising their code."""
    return max((side for _, shape in shapes for side in shape), default=0) <= FEW


def _together(which: np.ndarray, taken: np.ndarray, left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the noises with responses and lower bounds of their conditional variances; if there are
    many, gathered and padded with positions beyond the last."""
    count = len(which)
    if count <= FEW:
        return which, np.where(taken, LEAST * left, 0.0)
    there = int(np.sum(taken))
    size = min(count, max(1, -(-there // STEP)) * STEP)
    places, least = np.full(size, count), np.zeros(size)
    places[:there], least[:there] = which[taken], LEAST * left[taken]
    return places, least


@lru_cache(maxsize=64)
def _shapes_of_order(
    training: SampledPass, layout: Layout, shapes: Shapes
) -> tuple[tuple[OrderKey, tuple[int, ...]], ...]:
    """Return the shapes of all order parameters."""
    made = jax.eval_shape(partial(training.order_parameters, tolerance=0.0), _arrays(shapes), _laid_out(layout))
    return tuple((key, tuple(x.shape)) for key, x in made.items())


@lru_cache(maxsize=64)
def _parts(training: SampledPass, layout: Layout, shapes: Shapes) -> tuple[Part, ...]:
    """Return order parameters that share a moment, with their moments; all of them if they are small."""
    order = _shapes_of_order(training, layout, shapes)
    if sum(8 * math.prod(shape) for _, shape in (*shapes, *order)) <= SMALL:
        return ((tuple(key for key, _ in order), tuple(key for key, _ in shapes)),)
    of_order = _read_by(
        lambda p, table: training.order_parameters(table, p, tolerance=0.0), _laid_out(layout), _arrays(shapes)
    )
    parts: list[tuple[list[OrderKey], dict[OrderKey, None]]] = []
    for key, read in of_order.items():
        sharing = [part for part in parts if any(name in part[1] for name in read)]
        parts = [part for part in parts if part not in sharing]
        keys = [*(name for part in sharing for name in part[0]), key]
        parts.append((keys, dict.fromkeys((*(name for part in sharing for name in part[1]), *read))))
    return tuple((tuple(keys), tuple(read)) for keys, read in parts)


def _are_moments(part: Part) -> bool:
    """Return whether order parameters equal moments, as correlations do; averages by diagonal value have the names of
    moments but other values."""
    order, moments = part
    return order == moments and not any(key.kind in BY_VALUE for key in order)


def _read_by(
    function: Callable[[Point, Any], Any], p: Point, arguments: Mapping[K, Any]
) -> dict[OrderKey, tuple[K, ...]]:
    """Return for each result of a function, by name, the arguments other than the point on which it depends."""
    traced, results = jax.make_jaxpr(function, return_shape=True)(p, dict(arguments))
    names = jax.tree.leaves(jax.tree.map_with_path(lambda path, _: path[0].key, dict(arguments)), is_leaf=_is_key)
    labels = jax.tree.leaves(jax.tree.map_with_path(lambda path, _: path[0].key, results), is_leaf=_is_key)
    own = traced.jaxpr.invars[len(jax.tree.leaves(p)) :]
    reads: dict[Any, frozenset[int]] = {v: frozenset({k}) for k, v in enumerate(own)}
    for equation in traced.jaxpr.eqns:
        read = frozenset().union(*(reads.get(v, frozenset()) for v in _variables(equation.invars)))
        reads.update(dict.fromkeys(equation.outvars, read))
    found = {}
    for label, variable in zip(labels, traced.jaxpr.outvars, strict=True):
        read = frozenset().union(*(reads.get(v, frozenset()) for v in _variables([variable])))
        found[label] = tuple(names[k] for k in sorted(read))
    return found


def _variables(atoms: Iterable[Any]) -> list[Any]:
    """Return the variables that an equation of a traced function reads or returns, without constants."""
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def _is_key(x: Any) -> bool:
    return isinstance(x, tuple)
