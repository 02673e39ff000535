"""How things show themselves: in a terminal as short text, in a notebook as mathematics.

What is shown stands on the lower floors of this package, its printers on an upper one. So classes say here that they
are shown, and the package says once, with `printed_by`, where the printers are; they are found when the first thing is
shown, and nothing waits for them before that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Printers(Protocol):
    """What printers can do with everything that is shown."""

    def summary_of(self, shown: Any, /) -> str:
        """One or a few short lines for a terminal."""

    def text_of(self, shown: Any, /) -> str:
        """The whole as plain text."""

    def latex_of(self, shown: Any, /) -> str:
        """The whole as LaTeX."""

    def markdown_of(self, shown: Any, /) -> str:
        """What a notebook shows, as Markdown with formulas between $$."""

    def sections_as_data(self, shown: Any, /) -> list[dict[str, Any]]:
        """The sections of a record as plain data."""


_places: list[Callable[[], Printers]] = []


def printed_by(find: Callable[[], Printers]) -> None:
    """Say where the printers are."""
    _places[:] = [find]


def _printers() -> Printers:
    return _places[0]()


class _Told:
    """Something with a text and a LaTeX form."""

    __slots__ = ()

    def text(self) -> str:
        """The whole as plain text, as `derive show` prints it."""
        return _printers().text_of(self)

    def latex(self) -> str:
        """The whole as LaTeX for a paper; it needs amsmath."""
        return _printers().latex_of(self)


class Displayed(_Told):
    """Something of many lines: a few words as `repr`, all of it when printed, mathematics in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _printers().summary_of(self)

    def __str__(self) -> str:
        return self.text()

    def _repr_markdown_(self) -> str:
        return _printers().markdown_of(self)


class DisplayedSections(Displayed):
    """Something of several sections, each with a title and formulas."""

    __slots__ = ()

    def sections(self) -> list[dict[str, Any]]:
        """The sections as plain data: title, and statements with left, relation and right, as text and as LaTeX."""
        return _printers().sections_as_data(self)


class DisplayedFormula(_Told):
    """Something of one line: as it was typed in a terminal, a formula in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.latex()}$"


class DisplayedNode:
    """A part of SymPy's expressions: SymPy's own LaTeX and pretty printers ask it how it is written."""

    __slots__ = ()

    def _latex(self, printer: Any) -> str:
        return _printers().latex_of(self)

    def _pretty(self, printer: Any) -> Any:
        return printer.emptyPrinter(self)
