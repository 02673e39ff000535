"""The generated modules of a setting as one object, from memory or from generated/."""

from __future__ import annotations

import importlib
import linecache
import types
from dataclasses import dataclass
from functools import cached_property

import jax

from numerics.arrays import checked_array
from numerics.bulk.support import Branch
from numerics.training.sampling import compiled


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
