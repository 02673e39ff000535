"""Print whole records as text, LaTeX and Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import sympy as sp

from derive.language.equations import DeclaredSpectrum, Eq
from derive.language.matrices import MatrixExpression
from derive.language.model import Model
from derive.pipeline import PROBE_STAGES, STAGES, TRAINING_STAGES, Derivation
from derive.printing.layout import signed_sum, tidy
from derive.printing.lettering import Lettering, current, plain_letter
from derive.printing.names import PrintedNames
from derive.printing.plain import TextPrinter, in_brackets
from derive.printing.sections import joined_sections, sections_of
from derive.printing.statements import Section, Statement
from derive.printing.tex import TexPrinter
from derive.records.base import Record

COLUMNS = 100
WHOLE = "A"
"""The name of A(z) as a whole."""
TEX_COLUMNS = 72
"""Width of a line of LaTeX, in letters as counted by `visible`."""
BRACED = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
COMPARED = re.compile(r"\b(\w+) (<=|>=|<|>) (\w+)( - \d+)?")
"""A comparison of two names in a sentence, such as s < t - 1."""
SIGNS = {"<=": r"\le", ">=": r"\ge", "<": "<", ">": ">"}
FRACTION = re.compile(r"\\frac" + BRACED + BRACED)


def text_of_record(record: Record) -> str:
    """Return the record as plain ASCII for a terminal of 100 columns."""
    printer = TextPrinter(PrintedNames.of(record))
    lines = [record.title, "=" * len(record.title)]
    for section in sections_of(record):
        if not section.statements:
            continue
        lines += [
            "",
            *textwrap.wrap(printer.words(section.title), COLUMNS - 2, initial_indent="  ", subsequent_indent="  "),
        ]
        for statement in section.statements:
            lines += text_of_statement(statement, printer)
    return "\n".join(lines) + "\n"


def text_of_statement(statement: Statement, printer: TextPrinter) -> list[str]:
    """Return one statement as indented lines."""
    if statement.left is None:
        words = printer.words(statement.remark)
        return textwrap.wrap(words, COLUMNS - 4, initial_indent="    ", subsequent_indent="    ")
    line = printer.doprint(tidy(statement.left))
    if isinstance(statement.right, sp.BlockMatrix):
        return text_of_matrix(line, statement.right, printer)
    if statement.right is not None:
        right = printer.doprint(tidy(statement.right))
        between = {"i dot": " . ", "joined by": " is joined by "}.get(statement.relation, f" {statement.relation} ")
        if statement.relation == "i dot":
            line, right = f"i {line}", f"[{right}]" if tidy(statement.right).is_Add else right
        line += between + right
    broken = break_text(line, COLUMNS - 4)
    lines = ["    " + broken[0], *("        " + rest for rest in broken[1:])]
    if statement.remark:
        remark = printer.words(statement.remark)
        if len(lines[-1]) + len(remark) + 5 <= COLUMNS:
            lines[-1] += f"   ({remark})"
        else:
            lines += textwrap.wrap(f"({remark})", COLUMNS, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return lines


def text_of_matrix(name: str, matrix: sp.BlockMatrix, printer: TextPrinter) -> list[str]:
    """Return a block matrix as lines: in full if it fits, otherwise with named blocks, followed by each block.

    A(z) itself is shown with named blocks, since its blocks have a separate section.
    """
    indent = " " * (4 + len(name) + 3)
    whole = printer.doprint(matrix).split("\n")
    listed: list[str] = []
    if name == WHOLE or len(indent) + len(whole[0]) > COLUMNS:
        rows, columns = (range(count) for count in matrix.blockshape)
        empty = {(r, c) for r in rows for c in columns if matrix.blocks[r, c].is_ZeroMatrix}
        named = [["0" if (r, c) in empty else f"{name}[{r + 1},{c + 1}]" for c in columns] for r in rows]
        whole = in_brackets(named).split("\n")
        for r, c in ((r, c) for r in rows for c in columns if (r, c) not in empty and name != WHOLE):
            broken = break_text(f"{named[r][c]} = {printer.doprint(matrix.blocks[r, c])}", COLUMNS - 4)
            listed += ["    " + broken[0], *("        " + rest for rest in broken[1:])]
    return [f"    {name} = {whole[0]}", *(indent + line for line in whole[1:]), *listed]


def break_text(line: str, width: int) -> list[str]:
    """Break a line before the + or - with the fewest enclosing brackets; continuation lines are indented by 4."""
    lines: list[str] = []
    while len(line) > width:
        depth, best = 0, None
        for position, letter in enumerate(line[: width + 1]):
            depth += (letter in "([{") - (letter in ")]}")
            if position > 12 and line[position : position + 3] in (" + ", " - "):
                if best is None or (depth, -position) <= best:
                    best = (depth, -position)
        if best is not None:
            cut = -best[1]
        equals = line.find(" = ", 1, width)
        if equals > 24 and not lines and (best is None or best[0] > 0):
            cut = equals
        elif best is None:
            cut = line.rfind(" ", 12, width)
        if cut <= 0:
            break
        lines.append(line[:cut])
        line = line[cut + 1 :]
        width = width if len(lines) > 1 else width - 4
    return [*lines, line]


def latex_of_record(record: Record) -> str:
    """Return the record as LaTeX for a document body; it needs amsmath and nothing else."""
    printer = TexPrinter(PrintedNames.of(record))
    lines = [rf"\subsection*{{{prose(record.title)}}}"]
    for section in sections_of(record):
        if not section.statements:
            continue
        lines += [
            "",
            rf"\paragraph{{{printer.words(section.title, prose)}}}",
            *([explained(section.why)] if section.why else []),
        ]
        for statement in section.statements:
            lines += latex_of_statement(statement, printer)
    return "\n".join(lines) + "\n"


def explained(why: str) -> str:
    """Return a sentence as LaTeX, with mathematics between dollar signs."""
    parts = why.split("$")
    return "".join(prose(part) if number % 2 == 0 else f"${part}$" for number, part in enumerate(parts))


def latex_of_statement(statement: Statement, printer: TexPrinter) -> list[str]:
    remark = printer.words(statement.remark, lambda words: prose(words, printer.names.written))
    if statement.left is None:
        return [remark + "."]
    shown = display(statement, printer)
    if not statement.remark:
        return [r"\[", shown, r"\]"]
    if "aligned" in shown or visible(shown) + len(remark) > TEX_COLUMNS:
        return [r"\[", shown, r"\]", f"({remark})"]
    return [r"\[", rf"{shown} \quad \text{{({remark})}}", r"\]"]


def display(statement: Statement, printer: TexPrinter) -> str:
    """Return the mathematics of a statement, broken over lines if it is long."""
    left = tidy(statement.left)
    if statement.right is None:
        return broken_tex("", printer.terms(left), "")
    right = tidy(statement.right)
    if statement.relation == "i dot":
        opening, closing = (r"\bigl[", r"\bigr]") if right.is_Add else ("", "")
        return broken_tex(rf"i\, {printer.doprint(left)} \cdot {opening}", printer.terms(right), closing)
    relation = {"contains": r"\ni", "joined by": r"\text{ is joined by }"}.get(statement.relation, "=")
    if right == 0:
        return broken_tex("", printer.terms(left), f" {relation} 0")
    return broken_tex(f"{printer.doprint(left)} {relation} ", printer.terms(right), "")


def broken_tex(opening: str, terms: list[tuple[bool, str]], closing: str) -> str:
    """Return opening, terms and closing: on one line if short, otherwise in `aligned` with breaks between terms."""
    if visible(opening) + sum(visible(printed) + 2 for _, printed in terms) <= TEX_COLUMNS or len(terms) == 1:
        return opening + signed_sum(terms) + closing
    lines: list[list[tuple[bool, str]]] = [[]]
    length = visible(opening)
    for term in terms:
        if lines[-1] and length + visible(term[1]) > TEX_COLUMNS:
            lines.append([])
            length = 4
        lines[-1].append(term)
        length += visible(term[1]) + 2
    first = f"{opening}&{signed_sum(lines[0])}"
    rest = [
        rf"&\quad {'-' if line[0][0] else '+'} " + signed_sum([(False, line[0][1]), *line[1:]]) for line in lines[1:]
    ]
    return "\\begin{aligned}\n" + " \\\\\n".join([first, *rest]) + closing + "\n\\end{aligned}"


def visible(source: str) -> int:
    """Return the approximate width of a piece of LaTeX in letters; a fraction is as wide as its wider part."""
    while True:
        fraction = FRACTION.search(source)
        if fraction is None:
            break
        source = source[: fraction.start()] + max(fraction[1], fraction[2], key=visible) + source[fraction.end() :]
    plain = re.sub(r"\\(left|right|bigl|bigr|mathrm|mathbf|hat|widehat|top|quad)\b|[{}_^]", "", source)
    return len(re.sub(r"\s+", "", re.sub(r"\\[a-zA-Z]+", "x", re.sub(r"\\[,;]", "", plain))))


def prose(words: str, written: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return plain words as LaTeX, with comparisons as mathematics; `written` maps names to their LaTeX."""
    escaped = words.replace("\\", r"\textbackslash{}")
    for letter in "&%$#_":
        escaped = escaped.replace(letter, "\\" + letter)
    escaped = escaped.replace("^", r"\textasciicircum{}").replace("~", r"\textasciitilde{}")
    return comparisons(escaped, written)


def comparisons(words: str, written: Mapping[str, str]) -> str:
    """Return text in which comparisons of two plain names are typeset as mathematics."""
    return COMPARED.sub(lambda match: f"${comparison(match, written, str)}$", words)


def comparison(match: re.Match[str], written: Mapping[str, str], named: Callable[[str], str]) -> str:
    """Return a match of COMPARED as mathematics; names absent from `written` are printed by `named`."""
    left, sign, right, rest = match.groups()
    left, right = (written.get(name) or named(name) for name in (left, right))
    return f"{left} {SIGNS[sign]} {right}{rest or ''}"


def markdown_of_derivation(derivation: Derivation) -> str:
    """Return the whole derivation: docstring, parameters, every stage, and all assumptions at the end.

    The training level is printed once, with the spectral fields of the probed matrix. With several probed matrices, the
    spectral fields of each precede its own stages.
    """
    model = derivation.model
    lines = [f"# {model.name}", ""]
    if model.doc.strip():
        lines += [textwrap.dedent(model.doc).strip(), ""]
    lines += parameter_table(model)
    letters = current()
    if letters is not None:
        lines += ["## Letters of the source", "", *table_of_letters(letters, "markdown"), ""]
    lines += ["## Declaration", "", *declared(model)]
    several = len(derivation.probes) > 1
    training = derivation.first if len(derivation.probes) == 1 else derivation
    assumed: dict[str, None] = {}
    for label, level, stages in (
        ("", training, TRAINING_STAGES),
        *((label, probed, PROBE_STAGES) for label, probed in derivation.probes.items()),
    ):
        layer = f", layer {label}" if label else ""
        if several and level is not training:
            added = derivation.probes[label].saddle
            lines += [
                f"## Joined by the spectral fields{layer}",
                "",
                *markdown_of_sections(added, joined_sections(added)),
            ]
        for stage in stages:
            record = level.record(stage)
            lines += [f"## {record.title}{layer} (`{stage}`)", "", *markdown_of_sections(record)]
            assumed.update(dict.fromkeys(record.assumptions))
    words = TexPrinter().words
    lines += ["## Assumptions", "", *(f"- {words(assumption, cell)}" for assumption in assumed)]
    return "\n".join(lines).rstrip() + "\n"


def markdown_of_sections(
    record: Record, sections: tuple[Section, ...] | None = None, heading: str = "### {}"
) -> list[str]:
    """Return the record, or the given sections of it, as Markdown lines."""
    printer = TexPrinter(PrintedNames.of(record))
    lines = []
    for section in sections_of(record) if sections is None else sections:
        if section.statements:
            lines += [
                heading.format(printer.words(section.title, cell)),
                "",
                *([section.why, ""] if section.why else []),
            ]
            for statement in section.statements:
                lines += markdown_of_statement(statement, printer)
    return lines


def markdown_of_statement(statement: Statement, printer: TexPrinter) -> list[str]:
    words = printer.words(statement.remark, lambda words: cell(words, printer.names.written))
    if statement.left is None:
        return [words + ".", ""]
    tag = [rf"\tag{{{statement.tag}}}"] if statement.tag else []
    return ["$$", display(statement, printer), *tag, "$$", "", *([f"({words})", ""] if words else [])]


def parameter_table(model: Model) -> list[str]:
    """Return the Markdown table of parameters."""
    if not model.parameters:
        return []
    rows = [
        f"| ${TexPrinter().doprint(p)}$ | `{p.name}` | {p.default:g} | {cell(str(p.domain))} | {cell(p.doc)} |"
        for p in model.parameters
    ]
    return ["| | parameter | default | domain | meaning |", "| --- | --- | --- | --- | --- |", *rows, ""]


def declared(model: Model) -> list[str]:
    """Return the declaration: its equations, observables and probed matrix."""
    formulas = [latex_of_equation(equation) for equation in model.equations]
    formulas += [latex_of_observable(name, value) for name, value in (*model.observe, *model.alignments)]
    lines = [line for formula in formulas for line in ("$$", formula, "$$", "")]
    for label, probe in model.probes:
        lines += [spectrum_words(label), "", "$$", latex_of_spectrum(probe), "$$", ""]
    return lines


def latex_of_equation(equation: Eq) -> str:
    printer = TexPrinter()
    target, value = in_letters(equation.target), in_letters(equation.value)
    return broken_tex(f"{printer.doprint(target)} = ", printer.terms(value), "")


def latex_of_observable(name: str, value: sp.Expr) -> str:
    return broken_tex(f"{latex_word(name)} = ", TexPrinter().terms(in_letters(value)), "")


def latex_of_spectrum(probe: DeclaredSpectrum) -> str:
    """Return the probed matrix as LaTeX."""
    plus = rf" + {latex_word(probe.plus)} \, I" if probe.plus else ""
    return str(TexPrinter().doprint(probe.matrix)) + plus


def latex_word(name: str) -> str:
    """Return the name of an observable as an upright word."""
    return rf"\mathrm{{{prose(name)}}}"


def spectrum_words(label: str) -> str:
    """Return the sentence that introduces a probed matrix."""
    return f"The spectrum {'of layer ' + label + ' ' if label else ''}is that of"


def cell(words: str, written: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return plain words as Markdown."""
    return comparisons(re.sub(r"([|*\\])", r"\\\1", words).replace("\n", " "), written)


@dataclass(frozen=True, repr=False)
class NumberedEquation:
    """One equation of a derivation: both sides as SymPy expressions, its text, and LaTeX in the declared symbols."""

    number: str
    left: Any
    right: Any
    text: str
    latex: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"


def equations_of(derivation: Derivation, stages: Iterable[str] = STAGES) -> dict[str, NumberedEquation]:
    """Return the numbered equations of a derivation, or of some of its stages, by their numbers in derivation.md."""
    training = derivation.first if len(derivation.probes) == 1 else derivation
    records = [training.record(stage) for stage in TRAINING_STAGES if stage in stages]
    for probed in derivation.probes.values():
        records += [probed.record(stage) for stage in PROBE_STAGES if stage in stages]
    found: dict[str, NumberedEquation] = {}
    for record in records:
        names = PrintedNames.of(record)
        plain, tex = TextPrinter(names), TexPrinter(names)
        for statement in (statement for section in sections_of(record) for statement in section.statements):
            if statement.tag and statement.tag not in found:
                lines = textwrap.dedent("\n".join(text_of_statement(replace(statement, remark=""), plain)))
                found[statement.tag] = NumberedEquation(
                    statement.tag, statement.left, statement.right, lines, display(statement, tex)
                )
    return found


def text(expression: Any, record: Record | None = None) -> str:
    """Return an expression, or a matrix of a declaration, as plain ASCII. The record resolves the engine's names."""
    printer = TextPrinter(PrintedNames.of(record))
    expression = in_letters(expression, record)
    return str(printer.doprint(tidy(expression)))


def latex(expression: Any, record: Record | None = None) -> str:
    """Return an expression, or a matrix of a declaration, as LaTeX. The record resolves the engine's names."""
    printer = TexPrinter(PrintedNames.of(record))
    expression = in_letters(expression, record)
    return str(printer.doprint(tidy(expression)))


def comment(expression: Any, record: Record) -> str:
    """Return an expression of a record as a comment of generated code, in the current notation."""
    if current() is not None:
        return text(expression, record)
    return str(TextPrinter(PrintedNames(kernels=True)).doprint(tidy(expression)))


def comment_of_equation(left: sp.Basic, right: sp.Basic, record: Record) -> str:
    """Return an equation of a record as a comment of generated code."""
    letters = current()
    if letters is not None:
        statement = letters.stated(record, Statement(left, right))
        printer = TextPrinter(PrintedNames.of(record))
        return " = ".join(str(printer.doprint(tidy(side))) for side in (statement.left, statement.right))
    return f"{comment(left, record)} = {comment(right, record)}"


def in_letters(expression: Any, record: Record | None = None) -> Any:
    """Return an expression rescaled to the current notation."""
    letters = current()
    return expression if letters is None else letters.rescaled(expression, record)


def rows_of_letters(letters: Lettering) -> list[tuple[str, str, str]]:
    """Return each name of the model with its symbol in the source, as text and as LaTeX."""
    rows = []
    for row in letters.rows:
        plain, tex = (p().doprint(row.scale) for p in (TextPrinter, TexPrinter))
        before = {"1": "", "-1": "-"}
        spoken = before.get(plain, f"({plain}) " if row.scale.is_Add else f"{plain} ") + plain_letter(row.latex)
        rows.append((row.key, spoken, before.get(tex, rf"{tex}\, ") + row.latex))
    return rows


def table_of_letters(letters: Lettering, style: str) -> list[str]:
    """Return the table of symbols as text, LaTeX or Markdown."""
    rows = rows_of_letters(letters)
    if style == "text":
        width = max(len(key) for key, _, _ in rows)
        head = "Letters of the source"
        return [head, "=" * len(head), "", *(f"    {key:{width}} = {plain}" for key, plain, _ in rows)]
    if style == "latex":
        lines = [rf"{prose(key)} & ${tex}$ \\" for key, _, tex in rows]
        return [r"\subsection*{Letters of the source}", r"\begin{tabular}{ll}", *lines, r"\end{tabular}"]
    return ["| model | source |", "| --- | --- |", *(f"| `{key}` | ${tex}$ |" for key, _, tex in rows)]


def sections_as_data(record: Record) -> list[dict[str, Any]]:
    """Return the record as plain data: each section with its statements as text and LaTeX."""
    names = PrintedNames.of(record)
    plain, tex = TextPrinter(names), TexPrinter(names)

    def both(expression: sp.Basic | MatrixExpression) -> dict[str, str] | None:
        if expression is None:
            return None
        return {"text": plain.doprint(tidy(expression)), "latex": tex.doprint(tidy(expression))}

    return [
        {
            "title": section.title,
            "statements": [
                {"left": both(s.left), "relation": s.relation, "right": both(s.right), "remark": s.remark}
                for s in section.statements
            ],
        }
        for section in sections_of(record)
    ]
