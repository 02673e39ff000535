"""What every record can do: list its statements, and print them as text or LaTeX."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import sympy as sp


@dataclass(frozen=True)
class Statement:
    """A line of mathematics: left = right, with a remark. Without `right` an expression, without both prose."""

    left: sp.Basic | None = None
    right: sp.Basic | None = None
    remark: str = ""
    relation: str = "="


@dataclass(frozen=True)
class Section:
    title: str
    statements: tuple[Statement, ...]


class Record(ABC):
    """A stage's result. `assumptions` holds everything assumed so far, so the last record shows them all."""

    title: str = ""
    assumptions: tuple[str, ...]

    @abstractmethod
    def sections(self) -> tuple[Section, ...]:
        """The record as mathematics, in reading order."""

    def text(self) -> str:
        from derive.printing import text_of_record

        return text_of_record(self)

    def latex(self) -> str:
        from derive.printing import latex_of_record

        return latex_of_record(self)
