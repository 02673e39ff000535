"""What a report is made of, before anybody decides whether it becomes HTML or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from derive.printing.names import latex_name

COMPARED = re.compile(r"\b(\w+) (<=|>=|<|>) (\w+)( - \d+)?")
SIGNS = {"<=": r"\le", ">=": r"\ge", "<": "<", ">": ">"}


@dataclass(frozen=True)
class Math:
    """Mathematics inside a line of words, as LaTeX."""

    latex: str


Words = tuple[str | Math, ...]


def words(*parts: str | Math, written: Mapping[str, str] = MappingProxyType({})) -> Words:
    """Words and mathematics in one line; comparisons of two names, such as s < t, are mathematics.

    `written` says how the declaration writes some of the names.
    """

    def formula(match: re.Match[str]) -> str:
        left, right = (written.get(name, _name(name)) for name in (match[1], match[3]))
        return f"{left} {SIGNS[match[2]]} {right}{match[4] or ''}"

    return _replaced(parts, COMPARED, formula)


def with_names(told: Words, mentioned: Mapping[str, str]) -> Words:
    """The same line with the names of a declaration, and shapes such as N x D, as mathematics."""
    if not mentioned:
        return told
    names = "|".join(re.escape(name) for name in sorted(mentioned, key=len, reverse=True))
    shape = re.compile(rf"(?<![\w.'])({names}) x ({names})(?![\w(])")
    alone = re.compile(rf"(?<![\w.'/])(\d/|\d+ )?({names})(?![\w('])")
    crossed = _replaced(told, shape, lambda m: rf"{mentioned[m[1]]} \times {mentioned[m[2]]}")
    return _replaced(crossed, alone, lambda m: f"{(m[1] or '').strip()}{mentioned[m[2]]}")


def sentence(why: str) -> Words:
    """A sentence whose mathematics stands between dollar signs."""
    return tuple(Math(part) if k % 2 else part for k, part in enumerate(why.split("$")) if part)


def _replaced(parts: Words, pattern: re.Pattern[str], formula: Callable[[re.Match[str]], str]) -> Words:
    """What matches a pattern in the words of a line, as mathematics."""
    found: list[str | Math] = []
    for part in parts:
        if isinstance(part, Math):
            found.append(part)
            continue
        last = 0
        for match in pattern.finditer(part):
            found += [part[last : match.start()], Math(formula(match))]
            last = match.end()
        found.append(part[last:])
    return tuple(part for part in found if part != "")


def _name(word: str) -> str:
    return word if word.isdigit() else latex_name(word)


@dataclass(frozen=True)
class Prose:
    words: Words


@dataclass(frozen=True)
class Heading:
    words: Words


@dataclass(frozen=True)
class DisplayedEquation:
    """A displayed formula. `latex` is what a record prints and what a reader copies."""

    latex: str
    remark: Words = ()


@dataclass(frozen=True)
class Items:
    """A list: what is said, where it comes from (the key of a chapter), and the particulars of this model."""

    entries: tuple[tuple[Words, str, tuple[Words, ...]], ...]


@dataclass(frozen=True)
class ReportTable:
    """Columns after the first `text_columns` hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
    text_columns: int = 1


@dataclass(frozen=True)
class CodeListing:
    """A file; `python` says whether it is coloured as such."""

    name: str
    text: str
    python: bool = True


@dataclass(frozen=True)
class ReportFigure:
    """A picture for a page, for a narrow page and for LaTeX, with what it shows in words."""

    name: str
    svg: bytes
    narrow_svg: bytes
    pdf: bytes
    caption: str


@dataclass(frozen=True)
class Fold:
    """Blocks under a title that can be closed."""

    title: Words
    blocks: tuple[Block, ...]
    opened: bool = True


@dataclass(frozen=True)
class References:
    """The literature, in the order in which it is numbered: a key for links and the entry."""

    entries: tuple[tuple[str, str], ...]


Block = Prose | Heading | DisplayedEquation | Items | ReportTable | CodeListing | ReportFigure | Fold | References


@dataclass(frozen=True)
class Chapter:
    """One step of the derivation: `key` names it in links, `lead` says in a sentence what happens.

    `cites` are the keys of the literature that the step rests on.
    """

    key: str
    title: str
    lead: Words
    blocks: tuple[Block, ...]
    cites: tuple[str, ...] = ()
    opened: bool = True


@dataclass(frozen=True)
class ReportDocument:
    """`summary` is what the declaration says in words, paragraph by paragraph, `model` its equations as LaTeX."""

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
    """One quantity of theory and simulation. Errors are standard errors; `difference` is in units of both together."""

    quantity: str
    theory: float
    theory_error: float | None
    simulation: float
    stderr: float
    difference: float | None


@dataclass(frozen=True)
class ComparisonSection:
    """What a simulation of the same declaration gave, beside the theory.

    by_chance: how many of the compared rows differ by more than three standard errors, on average, if the theory is
    right.
    """

    settings: str
    size: int
    seeds: int
    rows: tuple[ComparisonRow, ...]
    verdict: str
    agrees: bool
    by_chance: float
    figures: tuple[ReportFigure, ...]
