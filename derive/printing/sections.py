"""The sections that each record is printed as."""

from __future__ import annotations

from functools import singledispatch

from derive.printing.of_limit import limit_sections, recursion_sections
from derive.printing.of_probe import blocks_sections, bulk_sections, pencil_sections, probe_sections
from derive.printing.of_training import (
    action_sections,
    average_sections,
    conjugate_sections,
    method_sections,
    order_sections,
    saddle_sections,
    single_site_sections,
    system_sections,
)
from derive.printing.statements import Section
from derive.records.action import Action, AveragedAction
from derive.records.base import Record
from derive.records.limit import Recursion, StationaryLimit
from derive.records.method import Method
from derive.records.probe import BlockMatrix, Bulk, Pencil, ProjectedProbe
from derive.records.saddle import Conjugates, SaddlePoint, SingleSite, TimeOrder
from derive.records.system import System


@singledispatch
def sections_of(record: Record) -> tuple[Section, ...]:
    """Return the sections of a record, in reading order."""
    raise TypeError(f"a {type(record).__name__} has no printed form")


sections_of.register(System, system_sections)
sections_of.register(Action, action_sections)
sections_of.register(AveragedAction, average_sections)
sections_of.register(SaddlePoint, saddle_sections)
sections_of.register(Conjugates, conjugate_sections)
sections_of.register(SingleSite, single_site_sections)
sections_of.register(TimeOrder, order_sections)
sections_of.register(Method, method_sections)
sections_of.register(ProjectedProbe, probe_sections)
sections_of.register(BlockMatrix, blocks_sections)
sections_of.register(Pencil, pencil_sections)
sections_of.register(Bulk, bulk_sections)
sections_of.register(StationaryLimit, limit_sections)
sections_of.register(Recursion, recursion_sections)
