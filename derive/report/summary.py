"""The prose of a declaration's docstring, without its formulas, which are typeset instead."""

from __future__ import annotations

import re
import textwrap
from itertools import takewhile

FORMULA = re.compile(r"[=^*/\\|<>{}]|\w\(|\w_\w|\w \. \w|\.\.\.|\b\w+ x \w+\b|\bsqrt\b|`")
SENTENCE = re.compile(r"(?<=[\w)][.;?!])(?<!\b[A-Z]\.)\s+")
LONGEST_TITLE = 80


def title_of(doc: str) -> str:
    """Return the text up to a colon, semicolon or full stop, if it is short enough for a title."""
    opening = re.split(r"[:;.](?:\s|$)", doc.strip().partition("\n")[0])[0].strip()
    return opening if 0 < len(opening) <= LONGEST_TITLE and not re.search(r"[=^]", opening) else ""


def prose_of(doc: str) -> tuple[str, ...]:
    """Return the paragraphs of a docstring without its title, each up to its first sentence with an ASCII formula."""
    paragraphs = []
    for number, paragraph in enumerate(re.split(r"\n\s*\n", textwrap.dedent(doc).strip())):
        if any(line.startswith((" ", "\t")) for line in paragraph.splitlines()):
            continue  # indented text is a formula or a table
        line = " ".join(paragraph.split())
        if number == 0 and title_of(doc):
            line = line.removeprefix(title_of(doc)).lstrip(" :;.")
            line = line[:1].upper() + line[1:]
        sentences = SENTENCE.split(line)
        plain = list(takewhile(lambda sentence: not FORMULA.search(sentence), sentences))
        if number == 0 and not plain:
            plain = [_before_formulas(sentences[0])]
        kept = " ".join(filter(None, plain))
        if kept:
            first = kept.split(" ", 1)[0]
            opening = first.capitalize() if first.islower() and len(first) > 2 else first
            paragraphs.append(opening + kept[len(first) :].rstrip(" ;:,.") + ".")
    return tuple(paragraphs)


def _before_formulas(line: str) -> str:
    """Return the clauses of a sentence before its first formula."""
    clauses = []
    for clause in line.split(", "):
        if FORMULA.search(clause):
            break
        clauses.append(clause)
    return ", ".join(clauses)
