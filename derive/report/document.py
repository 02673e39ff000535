"""The blocks of a report, independent of HTML and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from derive.printing.documents import COMPARED, comparison
from derive.printing.names import latex_name


@dataclass(frozen=True)
class Math:
    """Inline mathematics, as LaTeX."""

    latex: str


Words = tuple[str | Math, ...]


def words(*parts: str | Math, written: Mapping[str, str] = MappingProxyType({})) -> Words:
    """Return a line of words and mathematics; comparisons of two names, such as s < t, become mathematics.

    `written` maps names to their LaTeX in the declaration.
    """

    return _replaced(parts, COMPARED, lambda match: comparison(match, written, _name))


def with_names(line: Words, mentioned: Mapping[str, str]) -> Words:
    """Return the line with names of the declaration, and shapes such as N x D, as mathematics."""
    if not mentioned:
        return line
    names = "|".join(re.escape(name) for name in sorted(mentioned, key=len, reverse=True))
    shape = re.compile(rf"(?<![\w.'])({names}) x ({names})(?![\w(])")
    alone = re.compile(rf"(?<![\w.'/])(\d/|\d+ )?({names})(?![\w('])")
    crossed = _replaced(line, shape, lambda m: rf"{mentioned[m[1]]} \times {mentioned[m[2]]}")
    return _replaced(crossed, alone, lambda m: f"{(m[1] or '').strip()}{mentioned[m[2]]}")


def sentence(why: str) -> Words:
    """Return a sentence whose mathematics is between dollar signs."""
    return tuple(Math(part) if k % 2 else part for k, part in enumerate(why.split("$")) if part)


def _replaced(parts: Words, pattern: re.Pattern[str], formula: Callable[[re.Match[str]], str]) -> Words:
    """Return the line with each match of a pattern in its words replaced by mathematics."""
    replaced: list[str | Math] = []
    for part in parts:
        if isinstance(part, Math):
            replaced.append(part)
            continue
        last = 0
        for match in pattern.finditer(part):
            replaced += [part[last : match.start()], Math(formula(match))]
            last = match.end()
        replaced.append(part[last:])
    return tuple(part for part in replaced if part != "")


def _name(word: str) -> str:
    return word if word.isdigit() else latex_name(word)


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    words: Words


@dataclass(frozen=True)
class Heading:
    """A heading inside a chapter."""

    words: Words


@dataclass(frozen=True)
class DisplayedEquation:
    """A displayed formula. `latex` is the text that a record prints and that readers can copy."""

    latex: str
    remark: Words = ()


@dataclass(frozen=True)
class Items:
    """A list of statements, each with its source (the key of a chapter) and details about this model."""

    entries: tuple[tuple[Words, str, tuple[Words, ...]], ...]


@dataclass(frozen=True)
class ReportTable:
    """A table; columns after the first `text_columns` contain numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
    text_columns: int = 1


@dataclass(frozen=True)
class CodeListing:
    """A source file; `python` selects syntax highlighting."""

    name: str
    text: str
    python: bool = True


@dataclass(frozen=True)
class ReportFigure:
    """A figure for wide pages, narrow pages and LaTeX, with a description."""

    name: str
    svg: bytes
    narrow_svg: bytes
    pdf: bytes
    caption: str


@dataclass(frozen=True)
class Fold:
    """Blocks under a title that can be collapsed."""

    title: Words
    blocks: tuple[Block, ...]
    opened: bool = True


@dataclass(frozen=True)
class References:
    """The bibliography in the order of its numbers: a key for links and the entry."""

    entries: tuple[tuple[str, str], ...]


Block = Prose | Heading | DisplayedEquation | Items | ReportTable | CodeListing | ReportFigure | Fold | References


@dataclass(frozen=True)
class Chapter:
    """One step of the derivation: `key` identifies it in links, `lead` summarises it in a sentence.

    `cites` are the keys of the literature on which the step rests.
    """

    key: str
    title: str
    lead: Words
    blocks: tuple[Block, ...]
    cites: tuple[str, ...] = ()
    opened: bool = True


@dataclass(frozen=True)
class ReportDocument:
    """A report. `summary` contains paragraphs about the declaration, `model` its equations as LaTeX."""

    name: str
    title: str
    subtitle: str
    summary: tuple[Words, ...]
    model: tuple[str, ...]
    command: str
    version: str
    conventions: tuple[tuple[str, Words], ...]
    chapters: tuple[Chapter, ...]


@dataclass(frozen=True)
class ComparisonRow:
    """One quantity of theory and simulation with standard errors; `difference` is in units of the combined error."""

    quantity: str
    theory: float
    theory_error: float | None
    simulation: float
    stderr: float
    difference: float | None
    agrees: bool = True


@dataclass(frozen=True)
class ComparisonSection:
    """The comparison of the theory with a simulation of the same declaration.

    `by_chance` is the expected number of rows beyond three standard errors if the theory is right.
    """

    settings: str
    size: int
    seeds: int
    rows: tuple[ComparisonRow, ...]
    verdict: str
    agrees: bool
    by_chance: float
    figures: tuple[ReportFigure, ...]
