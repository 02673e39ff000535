"""Display protocols: short text in a terminal, mathematics in a notebook.

Displayed classes lie below the printers in the import order. They derive from the classes below, and `printed_by`
registers a function that imports the printers on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Printers(Protocol):
    """The interface of a printer."""

    def summary_of(self, shown: Any, /) -> str:
        """Return a summary of one or a few short lines for a terminal."""

    def text_of(self, shown: Any, /) -> str:
        """Return the whole as plain text."""

    def latex_of(self, shown: Any, /) -> str:
        """Return the whole as LaTeX."""

    def markdown_of(self, shown: Any, /) -> str:
        """Return Markdown for a notebook, with formulas between $$."""

    def sections_as_data(self, shown: Any, /) -> list[dict[str, Any]]:
        """Return the sections of a record as plain data."""

    def in_notation(self, notation: str, shown: Any, form: str, /) -> Any:
        """Return one of these forms in the notation of the model or in that of its source."""


_places: list[Callable[[], Printers]] = []


def printed_by(find: Callable[[], Printers]) -> None:
    """Register the function that imports the printers."""
    _places[:] = [find]


def _printers() -> Printers:
    return _places[0]()


class _Printed:
    """Base of objects with a text and a LaTeX form."""

    __slots__ = ()

    def text(self, notation: str = "model") -> str:
        """Return the whole as plain text, as `derive show` prints it; notation="paper" uses the notation of its
        source."""
        return str(_printers().in_notation(notation, self, "text_of"))

    def latex(self, notation: str = "model") -> str:
        """Return the whole as LaTeX for a paper; it needs amsmath. notation="paper" uses the notation of its source."""
        return str(_printers().in_notation(notation, self, "latex_of"))


class Displayed(_Printed):
    """An object printed on many lines: `repr` is a summary, `print` gives the whole, a notebook shows mathematics."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _printers().summary_of(self)

    def __str__(self) -> str:
        return self.text()

    def _repr_markdown_(self) -> str:
        return _printers().markdown_of(self)


class DisplayedSections(Displayed):
    """An object printed in several sections, each with a title and formulas."""

    __slots__ = ()

    def sections(self, notation: str = "model") -> list[dict[str, Any]]:
        """Return the sections as plain data: title, and statements with left, relation and right, as text and as
        LaTeX."""
        return _printers().in_notation(notation, self, "sections_as_data")


class DisplayedFormula(_Printed):
    """An object printed on one line: its source in a terminal, a formula in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.latex()}$"


class DisplayedNode:
    """A SymPy node that defines its own form for SymPy's LaTeX and pretty printers."""

    __slots__ = ()

    def _latex(self, printer: Any) -> str:
        return _printers().latex_of(self)

    def _pretty(self, printer: Any) -> Any:
        return printer.emptyPrinter(self)
