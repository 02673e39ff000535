"""The generated modules of a setting as one object, from memory or from generated/."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from derive.errors import DeriveError, ParameterError
from numerics.arrays import checked_array
from numerics.bulk.branch import Branch
from numerics.runtime.interface import (
    BulkLaw,
    Demand,
    ExactTraining,
    FiniteSize,
    GaussianTraining,
    Probe,
    SampledTraining,
    Setting,
)
from numerics.runtime.point import Point, replaced

SHORT = 64
"""So many times and labels together run within milliseconds even if the compiler hardly optimises."""
QUICKLY: dict[str, bool | str] = {"xla_backend_optimization_level": "0"}
"""Compile in half the time, for code that takes longer to compile than to run."""


@dataclass(frozen=True)
class ProbedMatrix:
    """One probed matrix: A(z), its bulk, and the observable that is added to its diagonal."""

    label: str
    probe: Probe
    bulk: BulkLaw
    plus: str = ""


@dataclass(frozen=True)
class Solver:
    """The generated parts of one setting. `finite_size` loads the simulation, which a solution does not need."""

    setting: Setting
    training: ExactTraining | GaussianTraining | SampledTraining
    finite_size: Callable[[], FiniteSize]
    matrices: tuple[ProbedMatrix, ...]

    @property
    def name(self) -> str:
        return self.setting.name

    @property
    def layered(self) -> bool:
        """Whether the probed matrices have names."""
        return any(matrix.label for matrix in self.matrices)

    def matrix(self, label: str) -> ProbedMatrix:
        return next(matrix for matrix in self.matrices if matrix.label == label)

    def point(self, values: dict[str, Any]) -> Point:
        """Parameter values, and data if the setting has any, as generated functions take them."""
        sizes = {**values, "times": self.times(values)}
        return replaced(
            self.numbers(values), **{d.name: checked_array(d.name, d.axes, sizes) for d in self.setting.data}
        )

    def times(self, values: dict[str, Any]) -> int:
        """How many times a field has."""
        steps = self.setting.steps
        return 1 if steps is None else int(values[steps]) + int(self.setting.endpoint)

    @cached_property
    def simulation(self) -> FiniteSize:
        """The declaration at finite size."""
        return self.finite_size()

    @cached_property
    def forward_pass(self) -> jax.stages.Wrapped:
        """The exact training level, compiled once for each set of whole-number parameters."""
        return jax.jit(self.training.forward_pass, static_argnames=("nodes",) if self.quadrature else ())

    @cached_property
    def short_pass(self) -> jax.stages.Wrapped:
        """The same, compiled in half the time, where running it takes none."""
        return jax.jit(self.training.forward_pass, compiler_options=QUICKLY)

    def pass_of(self, values: dict[str, Any]) -> jax.stages.Wrapped:
        """The exact training level, compiled as it pays for one point: a short pass is not worth much optimising."""
        labels = 1 if self.setting.labels is None else int(values[self.setting.labels])
        return self.short_pass if self.times(values) * labels <= SHORT else self.forward_pass

    @cached_property
    def forward_passes(self) -> jax.stages.Wrapped:
        """The exact training level at many values of the other parameters side by side."""
        if not self.quadrature:
            return jax.jit(jax.vmap(self.training.forward_pass))

        def together(p: Point, **how: int) -> Any:
            return jax.vmap(partial(self.training.forward_pass, **how))(p)

        return jax.jit(together, static_argnames=("nodes",))

    @property
    def quadrature(self) -> bool:
        """Whether the exact training level holds integrals: a forward pass can be told how many nodes they take."""
        return isinstance(self.training, GaussianTraining)

    def branch(self, values: dict[str, Any], matrix: ProbedMatrix | None = None) -> Branch:
        """The physical branch of the bulk at these parameters; of the first probed matrix unless one is given."""
        return Branch((matrix or self.matrices[0]).bulk, self.numbers(values))

    def numbers(self, values: dict[str, Any]) -> Point:
        """Parameter values alone: spectra depend on data through order parameters only, so that none is needed."""
        p = Point(
            **{q.name: int(values[q.name]) if q.whole else float(values[q.name]) for q in self.setting.parameters}
        )
        for demand in self.setting.demands:
            _check(demand, p)
        return p


def _check(demand: Demand, p: Point) -> None:
    with np.errstate(all="ignore"):
        try:
            number = float(demand.value(p))
        except (ArithmeticError, ValueError, TypeError):
            number = math.nan
    fits = {"positive": number > 0, "not negative": number >= 0, "finite": True}[demand.kind]
    if not (math.isfinite(number) and fits):
        found = f"{number:g}" if math.isfinite(number) else "not a finite number"
        raise ParameterError(f"{demand.what} is {found} at these parameters; it must be {demand.kind}, so change them")


def load_solver(files: dict[str, str]) -> Solver:
    """Execute generated text in memory; nothing is written to disk."""

    def module(stem: str) -> types.ModuleType:
        text, label = files[f"{stem}.py"], f"<generated {stem}>"
        linecache.cache[label] = (len(text), None, text.splitlines(keepends=True), label)
        made = types.ModuleType(f"generated_in_memory_{stem}")
        exec(compile(text, label, "exec"), made.__dict__)  # noqa: S102 - our own generated source
        return made

    return _assembled(module("__init__").SETTING, module)


def load_built(name: str) -> Solver | None:
    """The setting as it stands in generated/; None if it has not been built."""
    try:
        if importlib.util.find_spec(f"generated.{name}.simulation") is None:
            return None
        setting: Setting = importlib.import_module(f"generated.{name}").SETTING
        return _assembled(setting, lambda stem: importlib.import_module(f"generated.{name}.{stem}"))
    except (ImportError, AttributeError):
        return None


def _assembled(setting: Setting, module: Callable[[str], types.ModuleType]) -> Solver:
    stems = dict.fromkeys(stem for probe in setting.probes for stem in (probe.probe, probe.bulk))
    modules = {stem: module(stem) for stem in stems}
    matrices = tuple(
        ProbedMatrix(probe.label, modules[probe.probe].PROBE, modules[probe.bulk].BULK, probe.plus)
        for probe in setting.probes
    )

    def finite_size() -> FiniteSize:
        try:
            made: FiniteSize = module("simulation").SIMULATION
        except (ImportError, AttributeError) as error:
            raise DeriveError(
                f"the simulation of {setting.name} was written by another version ({error}); run derive build"
            ) from None
        return made

    return Solver(setting, module("training").TRAINING, finite_size, matrices)


def forget_compiled() -> None:
    """Drop all compiled code."""
    jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX gives it no types


def keep_compiled_in_memory() -> None:
    """Write no compiled code to disk from now on."""
    jax.config.update("jax_enable_compilation_cache", False)  # type: ignore[no-untyped-call]  # JAX gives it no types
