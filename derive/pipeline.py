"""Run all stages on a declaration, one line per stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from derive.equations.layout import Layout
from derive.equations.needs import Needs, needs_of
from derive.equations.wording import as_declared
from derive.errors import DeclarationError, blaming, wording
from derive.language.model import Model
from derive.records.action import Action, AveragedAction
from derive.records.base import Record
from derive.records.limit import Recursion, StationaryLimit
from derive.records.method import Method
from derive.records.probe import BlockMatrix, Bulk, Pencil, ProjectedProbe
from derive.records.saddle import Conjugates, SaddlePoint, SingleSite, TimeOrder
from derive.records.system import System
from derive.stages.action import build_action
from derive.stages.average import average_disorder
from derive.stages.blocks import assemble_blocks
from derive.stages.bulk import find_bulk
from derive.stages.conjugates import find_conjugates
from derive.stages.expand import expand_declaration
from derive.stages.limit import find_limit
from derive.stages.method import choose_method
from derive.stages.order import order_in_time
from derive.stages.pencil import reduce_blocks
from derive.stages.probe import project_probe
from derive.stages.recursion import find_recursion
from derive.stages.saddle import take_saddle_point
from derive.support.display import Displayed

TRAINING_STAGES = ("system", "action", "average", "saddle", "single-site", "order", "method")
PROBE_STAGES = ("probe", "blocks", "pencil", "bulk")
"""The stages that are printed for each probed matrix; all earlier ones belong to the training level."""
STAGES = (*TRAINING_STAGES, *PROBE_STAGES)


def derive_model(model: Model) -> Derivation:
    """Derive all records of a declaration.

    Declarations that cannot be derived are refused here. Eliminations take most of the time and never refuse a
    declaration; they run, and are cached, when the pencil or the bulk of a probed matrix is first accessed.
    """
    derivation = Derivation(model)
    spectra = dict(model.probes)
    with wording(derivation.as_declared):
        _ = derivation.saddle
        for label, probed in derivation.probes.items():
            with blaming(spectra[label]):
                _ = probed.blocks
    return derivation


@dataclass(frozen=True, eq=False, repr=False)
class Derivation(Displayed):
    """The training level of a model and, by label, each probed matrix."""

    model: Model

    @cached_property
    def system(self) -> System:
        return expand_declaration(self.model)

    @cached_property
    def order(self) -> TimeOrder:
        return order_in_time(self.system)

    @cached_property
    def action(self) -> Action:
        return build_action(self.system)

    @cached_property
    def average(self) -> AveragedAction:
        return average_disorder(self.action)

    @cached_property
    def saddle(self) -> SaddlePoint:
        return take_saddle_point(self.average, self.order)

    @cached_property
    def conjugates(self) -> Conjugates:
        return find_conjugates(self.saddle)

    @cached_property
    def single_site(self) -> SingleSite:
        return SingleSite.of(self.saddle)

    @cached_property
    def layout(self) -> Layout:
        """The training level in the form that forward passes read."""
        return Layout(self.order, self.saddle)

    @cached_property
    def method(self) -> Method:
        """The closure of averages over sites that provides the order parameters of the probed matrices."""
        return choose_method(self.layout, needs_of(probed.in_closed_form for probed in self.probes.values()))

    @cached_property
    def needs(self) -> Needs:
        """The order parameters that the probed matrices need."""
        return needs_of(probed.blocks for probed in self.probes.values())

    @cached_property
    def limit(self) -> StationaryLimit:
        """The stationary limit of training; an error unless all laws are linear and the same at all times."""
        with wording(self.as_declared):
            return find_limit(self.saddle, self.order)

    @cached_property
    def recursion(self) -> Recursion:
        """The training step as a linear map; an error unless all laws are linear and the same at all times."""
        with wording(self.as_declared):
            return find_recursion(self.saddle, self.order)

    def as_declared(self) -> Callable[[str], str]:
        """A function that replaces auxiliary fields in a sentence by declared expressions."""
        system = self.system
        return as_declared(system.model, (*system.fields, *(f for probe in system.probes for f in probe.fields)))

    @cached_property
    def probes(self) -> Mapping[str, DerivedProbe]:
        """The probed matrices by their labels, in the order of the declaration."""
        return MappingProxyType({label: DerivedProbe(self, label) for label, _ in self.model.probes})

    @property
    def first(self) -> DerivedProbe:
        """The first probed matrix."""
        for probed in self.probes.values():
            return probed
        raise DeclarationError(f"{self.model.name or 'the model'} declares no probe; add probe=spectrum(...) to it")

    @property
    def probe(self) -> ProjectedProbe:
        """The projection of the first probed matrix; blocks, pencil and bulk also refer to it.

        `probes` has all matrices by label.
        """
        return self.first.probe

    @property
    def blocks(self) -> BlockMatrix:
        """A(z), block by block."""
        return self.first.blocks

    @property
    def pencil(self) -> Pencil:
        """The eigenproblem that A(z) reduces to."""
        return self.first.pencil

    @property
    def bulk(self) -> Bulk:
        """The law of the bulk: curve, resolvent, edges."""
        return self.first.bulk

    stages = TRAINING_STAGES

    def record(self, stage: str) -> Record:
        """The record of a stage of the training level."""
        return getattr(self, stage.replace("-", "_"))


@dataclass(frozen=True, eq=False, repr=False)
class DerivedProbe(Displayed):
    """One probed matrix: its spectral fields joined to the training level, A(z), its reduction and its bulk.

    `average` and `saddle` contain the contributions of the spectral fields.
    """

    training: Derivation
    label: str

    @cached_property
    def system(self) -> System:
        return self.training.system.joined(self.label)

    @cached_property
    def action(self) -> Action:
        return build_action(self.system)

    @cached_property
    def average(self) -> AveragedAction:
        return average_disorder(self.action)

    @cached_property
    def saddle(self) -> SaddlePoint:
        return take_saddle_point(self.average, self.training.order)

    @cached_property
    def in_closed_form(self) -> BlockMatrix:
        """A(z) with the law of the diagonal entries in closed form, if there is one."""
        return assemble_blocks(project_probe(self.saddle, self.training.order))

    @property
    def _sampled_diagonals(self) -> bool:
        """Whether diagonal entries are normal fields with a sampled variance, in which case functions of them are
        sampled."""
        spread = any(other.in_closed_form.projected.spreads for other in self.training.probes.values())
        return spread and self.training.method.sampled

    @cached_property
    def blocks(self) -> BlockMatrix:
        if self._sampled_diagonals:
            return assemble_blocks(project_probe(self.saddle, self.training.order, sampled=True))
        return self.in_closed_form

    @property
    def probe(self) -> ProjectedProbe:
        return self.blocks.projected

    @cached_property
    def pencil(self) -> Pencil:
        return reduce_blocks(self.blocks)

    @cached_property
    def bulk(self) -> Bulk:
        return find_bulk(self.probe)

    @cached_property
    def traces(self) -> Bulk | None:
        """The bulk with traces of the resolvent and the matrices between; None if none is declared."""
        system = self.training.system.traced(self.label)
        if system is None:
            return None
        saddle = take_saddle_point(average_disorder(build_action(system)), self.training.order)
        projected = project_probe(saddle, self.training.order, system.probes[0].images, self._sampled_diagonals)
        return Bulk(projected, None, (), (), None, projected.assumptions)

    stages = STAGES

    def record(self, stage: str) -> Record:
        """The record of a stage, together with its part of the training level."""
        whole = self.training
        if stage == "average":
            return whole.average.joined(self.average)
        if stage in ("saddle", "conjugates", "single-site"):
            saddle = whole.saddle.joined(self.saddle)
            if stage == "saddle":
                return saddle
            return find_conjugates(saddle) if stage == "conjugates" else SingleSite.of(saddle)
        return getattr(whole, stage) if stage in ("order", "method") else getattr(self, stage)
