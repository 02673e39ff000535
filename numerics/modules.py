"""The generated modules of a setting as one object, loaded from memory or from generated/."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import numpy as np

from derive.errors import DeriveError, ParameterError
from numerics.bulk.branch import Branch
from numerics.bulk.settling import settled
from numerics.runtime.interface import (
    BulkLaw,
    Demand,
    FiniteSize,
    Order,
    Probe,
    Setting,
)
from numerics.runtime.linear import LimitOf, RecursionOf
from numerics.runtime.passes import pass_of
from numerics.runtime.point import Point, Table, replaced
from numerics.runtime.program import size_of
from numerics.runtime.rows import RowsPass
from numerics.runtime.samples import SampledPass
from numerics.runtime.traits import NotSmooth
from numerics.support.arrays import checked_array, labels_in
from numerics.support.compiled import keep_compiled
from numerics.support.compiling import compiled
from numerics.support.precision import in_float64
from numerics.support.sharding import sharded

SHORT = 256
"""Times x labels up to which a forward pass is compiled without optimisation. Trades compile time for run time."""

SOLVERS_KEPT = 16
"""Number of recent solvers that remain in memory with their compiled programs."""


@dataclass(frozen=True)
class ProbedMatrix:
    """One probed matrix: A(z), its bulk, the observable added to its diagonal, and its bulk with traces tr R A, if
    any."""

    label: str
    probe: Probe
    bulk: BulkLaw
    plus: str = ""
    traces: BulkLaw | None = None

    @in_float64
    def completed(self, p: Point, order: Order) -> Point:
        """Return the point with the numbers that the training level determines for the bulk and A(z)."""
        p = self.probe.begun(p)
        for spread in self.bulk.spreads:
            p = spread.at(p, order)
        return self.probe.measured_at(p, order)

    @property
    def moves(self) -> bool:
        """Whether the bulk depends on the training level."""
        return self.bulk.moves or bool(self.probe.measured)

    def recalled(self, p: Point, given: Mapping[str, Any]) -> Point:
        """Return a completed point from the stored numbers that `given_to` returned."""
        return replaced(
            self.probe.begun(p), **{name: Table(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}
        )

    def given_to(self, p: Point, completed: Point) -> dict[str, Any]:
        """Return the numbers from the training level in a completed point, as plain data."""
        if not self.moves:
            return {}
        more = {name: x for name, x in vars(completed).items() if name not in vars(p)}
        return {name: np.asarray(x.numbers) if isinstance(x, Table) else x for name, x in more.items()}

    @property
    def curve(self) -> str | None:
        """The algebraic curve of the Stieltjes transform as text; None if elimination was too large."""
        text = self.bulk.curve_text
        return None if text is None else text.format(z=f"(z - {self.plus})" if self.plus else "z")


@dataclass(frozen=True)
class Solver:
    """The generated parts of one setting.

    `finite_size` loads the simulation and, for linear laws, `limit_of` the stationary limit and `recursion_of` the
    linear recursion; a solution needs none of them.
    """

    setting: Setting
    training: RowsPass | SampledPass
    finite_size: Callable[[], FiniteSize]
    limit_of: Callable[[], LimitOf | None]
    recursion_of: Callable[[], RecursionOf | None]
    matrices: tuple[ProbedMatrix, ...]

    @property
    def name(self) -> str:
        """Name of the setting."""
        return self.setting.name

    @property
    def about(self) -> Setting:
        """The declaration as plain data, to be stored with a result."""
        return replace(self.setting, demands=())

    @property
    def layered(self) -> bool:
        """Whether the probed matrices have names."""
        return any(matrix.label for matrix in self.matrices)

    @property
    def with_all_labels(self) -> Solver:
        """The solver without label symmetry: every label is computed, and A(z) is not split into components."""
        matrices = tuple(replace(one, probe=replace(one.probe, alike=None)) for one in self.matrices)
        return replace(self, training=pass_of(replace(self.training.training, alike=None)), matrices=matrices)

    def has_label_symmetry(self, values: dict[str, Any]) -> bool:
        """Whether there are several labels whose permutations are a symmetry of the training level."""
        alike = self.training.training.alike
        return alike is not None and size_of(self.numbers(values), alike.axes) > 1

    def matrix(self, label: str) -> ProbedMatrix:
        """Return the probed matrix with this label."""
        return next(matrix for matrix in self.matrices if matrix.label == label)

    def point(self, values: dict[str, Any], checked: bool = False) -> Point:
        """Return parameter values and data in the form that generated functions take. checked: whether the values are
        known to satisfy the conditions of the setting."""
        sizes = {**values, "times": self.times(values)}
        return replaced(
            self.numbers(values, checked), **{d.name: checked_array(d.name, d.axes, sizes) for d in self.setting.data}
        )

    def times(self, values: dict[str, Any]) -> int:
        """Return the number of times of a field."""
        steps = self.setting.steps
        return 1 if steps is None else int(values[steps]) + int(self.setting.endpoint)

    @cached_property
    def simulation(self) -> FiniteSize:
        """The declaration at finite size."""
        return self.finite_size()

    @cached_property
    def limit(self) -> LimitOf | None:
        """The equations of the stationary limit; None if they were not derived."""
        return self.limit_of()

    @cached_property
    def recursion(self) -> RecursionOf | None:
        """The linear recursion of training; None if laws are not linear or depend on time."""
        return self.recursion_of()

    @cached_property
    def forward_pass(self) -> jax.stages.Wrapped:
        """The exact training level, compiled for each set of whole-number parameters; transform `training.forward_pass`
        instead."""
        return compiled(self.rows.forward_pass, static=("nodes",))

    @property
    def rows(self) -> RowsPass:
        """The forward pass without sampling."""
        assert isinstance(self.training, RowsPass), "a sampled pass takes normals"
        return self.training

    @property
    def sampled_pass(self) -> SampledPass:
        """The forward pass over sampled sites."""
        assert isinstance(self.training, SampledPass), "an exact pass draws nothing"
        return self.training

    @cached_property
    def short_pass(self) -> jax.stages.Wrapped:
        """The exact training level, compiled without optimisation."""
        return compiled(self.rows.forward_pass, quickly=True)

    def pass_of(self, values: dict[str, Any]) -> jax.stages.Wrapped:
        """Return the exact training level for one point, compiled without optimisation if it is short."""
        return self.short_pass if self.is_short(values) else self.forward_pass

    def is_short(self, values: dict[str, Any]) -> bool:
        """Whether a forward pass is too short to be worth optimising."""
        return self.times(values) * labels_in(values, self.setting.labels) <= SHORT

    @cached_property
    def forward_passes(self) -> jax.stages.Wrapped:
        """The exact training level at many points, vectorised (vmap) and distributed over all JAX devices."""

        def together(p: Point, **how: int) -> Any:
            return sharded(lambda one: self.rows.forward_pass(one, **how), jax.local_devices())(p)

        return compiled(together, static=("nodes",) if self.quadrature else ())

    @property
    def quadrature(self) -> bool:
        """Whether the training level uses quadrature, so that a forward pass takes a number of nodes."""
        level = self.training.training
        return level.closure == "quadrature" or (level.closure == "exact" and level.densities)

    @in_float64
    def branch(
        self,
        values: dict[str, Any],
        matrix: ProbedMatrix | None = None,
        order: Order | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> Branch:
        """Return the physical branch of the bulk.

        Args:
            values: parameter values.
            matrix: the probed matrix; by default the first.
            order: order parameters, for a bulk that depends on the training level.
            given: instead of these, the stored numbers that `ProbedMatrix.given_to` returned.
        """
        matrix, p = matrix or self.matrices[0], self.numbers(values)
        if given:
            return settled(Branch(matrix.bulk, matrix.recalled(p, given)))
        if order is None and matrix.moves:
            raise ParameterError(
                f"the bulk of {self.name} depends on order parameters, which are not stored; solve this point alone"
            )
        return settled(Branch(matrix.bulk, matrix.completed(p, order or {})))

    def numbers(self, values: dict[str, Any], checked: bool = False) -> Point:
        """Return parameter values without data; spectra depend on data through order parameters only."""
        p = Point(
            **{q.name: int(values[q.name]) if q.whole else float(values[q.name]) for q in self.setting.parameters}
        )
        for demand in () if checked else self.setting.demands:
            _check(demand, p)
        return p


def _check(demand: Demand, p: Point) -> None:
    """Raise if a number of the declaration violates its condition at these parameters."""
    times = None if demand.times is None else demand.times(p)
    with np.errstate(all="ignore"):
        try:
            value = demand.value(p) if times is None else demand.value(p, np.array(times, float))
            numbers = np.broadcast_to(np.asarray(value, float), 1 if times is None else len(times))
        except NotSmooth:
            raise ParameterError(
                f"{demand.what} has not converged: a density must be smooth between its ends; give one with a kink or "
                "a jump as values= with weights="
            ) from None
        except (ArithmeticError, ValueError, TypeError):
            numbers = np.full(1 if times is None else len(times), math.nan)
    fits = {
        "positive": numbers > 0,
        "not negative": numbers >= 0,
        "finite": np.isfinite(numbers),
        "one": np.abs(numbers - 1) < 1e-9,
    }[demand.kind] & np.isfinite(numbers)
    if np.all(fits):
        return
    worst = int(np.argmin(fits))
    shown = f"{numbers[worst]:g}" if math.isfinite(numbers[worst]) else "not a finite number"
    if times is not None:
        raise ParameterError(f"{demand.what} is {shown} at time {times[worst]}; it must be {demand.kind}")
    raise ParameterError(f"{demand.what} is {shown} at these parameters; it must be {demand.kind}; change them")


def load_solver(files: Mapping[str, str]) -> Solver:
    """Return the solver of generated source texts, executed in memory.

    The same texts give the same object, so that its compiled programs are reused.
    """
    return _executed(tuple(sorted(files.items())))


@lru_cache(maxsize=SOLVERS_KEPT)
def _executed(texts: tuple[tuple[str, str], ...]) -> Solver:
    """Execute generated source texts."""
    files = dict(texts)

    def module(stem: str) -> types.ModuleType:
        text, label = files[f"{stem}.py"], f"<generated {stem}>"
        linecache.cache[label] = (len(text), None, text.splitlines(keepends=True), label)
        loaded = types.ModuleType(f"generated_in_memory_{stem}")
        exec(compile(text, label, "exec"), loaded.__dict__)  # noqa: S102 - our own generated source
        return loaded

    return _assembled(module("__init__").SETTING, module)


def load_built(name: str) -> Solver | None:
    """Return the solver of a setting in generated/; None if it has not been built.

    The same module gives the same object, so that its compiled programs are reused.
    """
    try:
        if importlib.util.find_spec(f"generated.{name}.simulation") is None:
            return None
        return _imported(importlib.import_module(f"generated.{name}"))
    except (ImportError, AttributeError):
        return None


@lru_cache(maxsize=SOLVERS_KEPT)
def _imported(package: types.ModuleType) -> Solver:
    """Return the solver of a generated package."""
    return _assembled(package.SETTING, lambda stem: importlib.import_module(f"{package.__name__}.{stem}"))


def _assembled(setting: Setting, module: Callable[[str], types.ModuleType]) -> Solver:
    """Assemble a solver from its modules."""
    keep_compiled()
    stems = dict.fromkeys(stem for one in setting.probes for stem in (one.probe, one.bulk, one.traces) if stem)
    modules = {stem: module(stem) for stem in stems}
    matrices = tuple(
        ProbedMatrix(
            probe.label,
            modules[probe.probe].PROBE,
            modules[probe.bulk].BULK,
            probe.plus,
            modules[probe.traces].BULK if probe.traces else None,
        )
        for probe in setting.probes
    )

    def part(stem: str, name: str, what: str) -> Any:
        """Return an object of a module; raise if it was generated by another version."""
        try:
            return getattr(module(stem), name)
        except (ImportError, AttributeError) as error:
            raise DeriveError(
                f"the {what} of {setting.name} was written by another version ({error}); run derive build"
            ) from None

    def of_linear(name: str) -> Any:
        """Return an object of the linear module; None without one."""
        try:
            return getattr(module("linear"), name, None)
        except (ImportError, KeyError):
            return None

    return Solver(
        setting,
        pass_of(part("training", "TRAINING", "training level")),
        partial(part, "simulation", "SIMULATION", "simulation"),
        partial(of_linear, "LIMIT"),
        partial(of_linear, "RECURSION"),
        matrices,
    )


def forget_compiled() -> None:
    """Drop all compiled programs and cached solvers."""
    _executed.cache_clear()
    _imported.cache_clear()
    jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX gives it no types


def keep_compiled_in_memory() -> None:
    """Switch off the persistent cache of compiled programs."""
    jax.config.update("jax_enable_compilation_cache", False)  # type: ignore[no-untyped-call]  # JAX gives it no types
