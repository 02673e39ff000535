"""Records as blocks of a report: their sections, equation by equation, in their own LaTeX."""

from __future__ import annotations

from derive.printing.documents import display
from derive.printing.names import PrintedNames
from derive.printing.sections import sections_of
from derive.printing.statements import Section, Statement
from derive.printing.tex import TexPrinter
from derive.records.base import Record
from derive.report.document import Block, DisplayedEquation, Heading, Prose, Words, sentence, with_names, words


def blocks_of_sections(record: Record, sections: tuple[Section, ...], explained: bool = True) -> tuple[Block, ...]:
    """Return every nonempty section with its heading and, if wanted, its explanation."""
    printer = TexPrinter(PrintedNames.of(record))
    names = printer.names
    blocks: list[Block] = []
    for section in sections:
        if section.statements:
            blocks.append(Heading(_line(_sentence(section.title), names)))
            blocks += [Prose(sentence(section.why))] if explained and section.why else []
            blocks += [_block(statement, printer) for statement in section.statements]
    return tuple(blocks)


def blocks_of_record(record: Record) -> tuple[Block, ...]:
    """Return all sections of a record as blocks."""
    return blocks_of_sections(record, sections_of(record))


def _block(statement: Statement, printer: TexPrinter) -> Block:
    if statement.left is None:
        return Prose(_line(_sentence(statement.remark) + ".", printer.names))
    return DisplayedEquation(display(statement, printer), _line(statement.remark, printer.names))


def _line(line: str, names: PrintedNames) -> Words:
    return with_names(words(line, written=names.written), names.mentioned)


def _sentence(title: str) -> str:
    """Return the title capitalised, unless it begins with a name of fixed spelling."""
    first = title.split(" ", 1)[0]
    plain = first == "a" or (first.replace("-", "").isalpha() and first.islower() and len(first) > 1)
    return title[:1].upper() + title[1:] if plain else title
