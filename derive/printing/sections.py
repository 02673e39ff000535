"""The sections of each printed record."""

from __future__ import annotations

from functools import singledispatch

from derive.printing.lettering import current
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
    spectral_sections,
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


def sections_of(record: Record) -> tuple[Section, ...]:
    """Return the sections of a record, in reading order and in the current notation."""
    return _in_letters(record, _sections(record))


def joined_sections(saddle: SaddlePoint) -> tuple[Section, ...]:
    """Return the contributions of the spectral fields of one probed matrix to the training level."""
    return _in_letters(saddle, spectral_sections(saddle))


def _in_letters(record: Record, sections: tuple[Section, ...]) -> tuple[Section, ...]:
    letters = current()
    return sections if letters is None else letters.settled(record, sections)


@singledispatch
def _sections(record: Record) -> tuple[Section, ...]:
    raise TypeError(f"a {type(record).__name__} has no printed form")


_sections.register(System, system_sections)
_sections.register(Action, action_sections)
_sections.register(AveragedAction, average_sections)
_sections.register(SaddlePoint, saddle_sections)
_sections.register(Conjugates, conjugate_sections)
_sections.register(SingleSite, single_site_sections)
_sections.register(TimeOrder, order_sections)
_sections.register(Method, method_sections)
_sections.register(ProjectedProbe, probe_sections)
_sections.register(BlockMatrix, blocks_sections)
_sections.register(Pencil, pencil_sections)
_sections.register(Bulk, bulk_sections)
_sections.register(StationaryLimit, limit_sections)
_sections.register(Recursion, recursion_sections)
