"""The chapters of a report, from a model and its records, in the order of the derivation.

A record becomes blocks section by section, each equation in its own LaTeX.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from derive.language.model import Model
from derive.pipeline import Derivation
from derive.printing.documents import (
    display,
    latex,
    latex_of_equation,
    latex_of_observable,
    latex_of_spectrum,
    rows_of_letters,
)
from derive.printing.lettering import current
from derive.printing.names import PrintedNames, is_no_word, latex_name
from derive.printing.sections import joined_sections, sections_of
from derive.printing.statements import Section, Statement
from derive.printing.tex import TexPrinter
from derive.records.base import Record
from derive.report.assumptions import Level, assumptions, levels
from derive.report.conventions import conventions
from derive.report.document import (
    Block,
    Chapter,
    CodeListing,
    ComparisonRow,
    ComparisonSection,
    DisplayedEquation,
    Fold,
    Heading,
    Items,
    Math,
    Prose,
    References,
    ReportDocument,
    ReportTable,
    Words,
    sentence,
    with_names,
    words,
)
from derive.report.references import CITED, REFERENCES
from derive.support.plain_words import shown_value
from derive.version import __version__

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
    """Return the clauses of a sentence that precede its first formula."""
    clauses = []
    for clause in line.split(", "):
        if FORMULA.search(clause):
            break
        clauses.append(clause)
    return ", ".join(clauses)


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
    """Return the title with a capital letter, unless it begins with a name."""
    first = title.split(" ", 1)[0]
    plain = first == "a" or (first.replace("-", "").isalpha() and first.islower() and len(first) > 1)
    return title[:1].upper() + title[1:] if plain else title


Values = Mapping[str, int | float | str]
ORDER_PARAMETERS = "order parameters"
LONGEST_MODEL = 12
"""Number of equations above which a model is not repeated before the result."""

STAGE_CHAPTERS = {
    "system": "declaration",
    "action": "action",
    "average": "average",
    "saddle": "saddle-point",
    "single-site": "single-site",
    "order": "time-order",
    "method": "method",
    "probe": "projected",
    "blocks": "a-of-z",
    "pencil": "pencil",
    "bulk": "bulk",
}
"""The chapter of each stage of the pipeline."""


def report_of(
    derivation: Derivation,
    values: Values,
    sources: Sequence[tuple[str, str]],
    files: Mapping[str, str],
    comparison: ComparisonSection | None = None,
    command: str = "",
    layers: Sequence[str] | None = None,
) -> ReportDocument:
    """Return the whole report.

    Args:
        sources: name and text of the declaration's own files.
        files: generated code, text by name.
        comparison: theory against simulation, if one was run.
        layers: the probed matrices of the report, all if empty.
    """
    model, reported = derivation.model, levels(derivation, layers)
    first = next(iter(reported.values()))
    training = first if len(reported) == 1 else derivation
    mentioned = TexPrinter(PrintedNames.of(training.record("system"))).names.mentioned
    mentioned |= {name: latex_name(name) for name, _ in model.choices if is_no_word(name)}
    chapters = [
        *_letters(),
        _result(reported, comparison),
        _declaration(model, training.record("system"), values, sources),
        *_training(training),
        *_probe(reported),
        _code(files),
        _comparison(comparison),
        _assumptions(reported, mentioned),
    ]
    chapters = [
        replace(chapter, cites=CITED.get(chapter.key, ())) if chapter.blocks else chapter for chapter in chapters
    ]
    chapters.append(_references(chapters))
    chosen = [f"{name} = {value}" for name, value in model.choices]
    if 0 < len(reported) < len(model.probes):
        chosen.append(f"layer {', '.join(reported)} only")
    return ReportDocument(
        name=model.setting,
        title=title_of(model.doc) or model.setting,
        subtitle=", ".join(chosen),
        summary=tuple(with_names((paragraph,), mentioned) for paragraph in prose_of(model.doc)),
        model=_formulas(model),
        command=command,
        version=__version__,
        conventions=conventions(first),
        chapters=tuple(chapters),
    )


def _letters() -> list[Chapter]:
    """Return the chapter with the table of symbols, if the report uses the notation of a source."""
    letters = current()
    if letters is None:
        return []
    rows = tuple(((key,), words(Math(tex))) for key, _, tex in rows_of_letters(letters))
    lead = words("The names of objects in the declaration and in the source.")
    return [
        Chapter("letters", "Letters of the source", lead, (ReportTable(("model", "source"), rows, text_columns=2),))
    ]


def _result(levels: dict[str, Level], comparison: ComparisonSection | None) -> Chapter:
    """Return the chapter of results: the eigenproblem, the law of the bulk, and the main numbers."""
    blocks: list[Block] = _main_numbers(comparison)
    probed = {label: level for label, level in levels.items() if "probe" in level.stages}
    for label, level in probed.items():
        results = [
            block
            for stage in ("pencil", "bulk")
            for block in blocks_of_sections(level.record(stage), sections_of(level.record(stage)), explained=False)
        ]
        opened = label == next(iter(probed))
        blocks += results if len(probed) == 1 else [Fold(words(f"Layer {label}"), tuple(results), opened)]
    if not probed:
        blocks += blocks_of_record(next(iter(levels.values())).record("single-site"))
    lead = words(
        "The spectrum consists of a bulk and outliers: the map below sends each eigenvalue of a small matrix, made of "
        "correlations and responses of the training, to an outlier, and the curve gives the bulk. The chapters after "
        "this one derive each line."
        if any(level.blocks.labels for level in probed.values())
        else "The spectrum consists of a bulk without outliers. The following chapters derive each line."
        if probed
        else "One site with noises and memory represents all of them; the following chapters derive it."
    )
    return Chapter("result", "Result", lead, tuple(blocks))


def _main_numbers(comparison: ComparisonSection | None) -> list[Block]:
    """Return the outliers, or the first compared quantities if there are none."""
    if comparison is None or not comparison.rows:
        return []
    rows = [row for row in comparison.rows if "outlier" in row.quantity] or list(comparison.rows[:6])
    table = tuple(
        (
            (r.quantity,),
            (_measured(r.theory, r.theory_error),),
            (_measured(r.simulation, r.stderr),),
            (_difference(r),),
        )
        for r in rows
    )
    at = f"Numbers of {comparison.settings}; simulated at size {comparison.size}, {comparison.seeds} seeds."
    return [Prose((at,)), ReportTable(("quantity", "theory", "simulation", "difference / error"), table)]


def _difference(row: ComparisonRow) -> str:
    """Return the difference in standard errors, marked if it is too large."""
    if row.difference is None:
        return "–" if row.agrees else "differs"
    return f"{row.difference:+.2f}".replace("-", "−") + ("" if row.agrees else " differs")


def _formulas(model: Model) -> tuple[str, ...]:
    """Return the equations of the declaration and its probed matrices, as LaTeX."""
    equations = [latex_of_equation(equation) for equation in model.equations]
    for label, probe in model.probes:
        whose = rf"\text{{spectrum of layer {label}: }}\," if label else r"\text{spectrum of }\,"
        equations.append(whose + latex_of_spectrum(probe))
    return tuple(equations) if len(equations) <= LONGEST_MODEL else ()


def _references(chapters: Sequence[Chapter]) -> Chapter:
    keys = dict.fromkeys(key for chapter in chapters for key in chapter.cites)
    entries = tuple((key, REFERENCES[key]) for key in keys)
    lead = words("The assumptions of the steps; each is cited where it is used.")
    return Chapter("references", "References", lead, (References(entries),))


def _declaration(model: Model, system: Record, values: Values, sources: Sequence[tuple[str, str]]) -> Chapter:
    blocks: list[Block] = []
    if model.parameters:
        blocks.append(_parameters(model, values))
    blocks.append(Heading(words("Equations as declared")))
    blocks += [DisplayedEquation(latex_of_equation(e)) for e in model.equations]
    if not model.equations:
        blocks.append(
            Prose(words("There is no training: the probed matrix is a fixed function of the random matrices."))
        )
    observed = (*model.observe, *model.alignments)
    if observed:
        blocks.append(Heading(words("Observed")))
        blocks += [DisplayedEquation(latex_of_observable(name, value)) for name, value in observed]
    if model.probes:
        blocks.append(Heading(words("Probed: the spectrum of")))
        for label, probe in model.probes:
            blocks.append(DisplayedEquation(latex_of_spectrum(probe), words(f"layer {label}") if label else ()))
    written_out = blocks_of_record(system)
    if written_out:
        title = "The same with weights written out as initial matrix plus history"
        blocks.append(Fold(words(title), written_out))
    blocks += [
        Fold(words(f"Source: {name}"), (CodeListing(name, text),), opened=number == 0)
        for number, (name, text) in enumerate(sources)
    ]
    lead = words("The model as it would be simulated at finite size, and nothing more.")
    return Chapter("declaration", "Declaration", lead, tuple(blocks))


def _parameters(model: Model, values: Values) -> ReportTable:
    rows = [
        (words(Math(latex(p))), (p.name,), (p.doc,),
         (shown_value(values.get(p.name, p.default)),), (shown_value(p.default),), (_domain(str(p.domain)),))
        for p in model.parameters
    ]  # fmt: skip
    return ReportTable(("symbol", "name", "meaning", "value", "default", "domain"), tuple(rows), text_columns=3)


def _domain(text: str) -> str:
    return (
        text.removeprefix("a number in ")
        .replace("a whole number in ", "whole, ")
        .replace("inf", "∞")
        .replace("-∞", "−∞")
    )


def _shown(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")


def _measured(value: float, error: float | None) -> str:
    """Return a number with its standard error, rounded to two digits of the error."""
    if not error:
        return _shown(value)
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}".replace("-", "−")


def _training(level: Level) -> list[Chapter]:
    saddle = level.record("saddle")
    order = tuple(s for s in sections_of(saddle) if s.title == ORDER_PARAMETERS)
    rest = tuple(s for s in sections_of(saddle) if s.title != ORDER_PARAMETERS)
    disorder_free = not any(s.statements for s in order)
    nothing = (Prose(words("There are none: no random matrix acts on a field.")),)
    return [
        Chapter(
            "action",
            "Martin-Siggia-Rose action",
            words("Every equation is imposed by a response field, and the exponent is linear in each random matrix."),
            blocks_of_record(level.record("action")),
        ),
        Chapter(
            "average",
            "Average over the disorder",
            words(
                "For a Gaussian matrix ", Math("W"), " the mean of ", Math(r"e^{-i\, \mathrm{Tr}\, W^{\top} X}"),
                " is the exponential of minus half its variance times ", Math(r"\mathrm{Tr}\, X^{\top} X"),
                ": products of two bilinears.",
            ),
            blocks_of_record(level.record("average")),
        ),
        Chapter(
            "order-parameters",
            "Order parameters",
            words("Bilinears are sums over many sites: each takes its mean, a correlation or a response."),
            nothing if disorder_free else blocks_of_sections(saddle, _titled(order, "as means over one site")),
        ),
        Chapter(
            "conjugates",
            "Conjugate order parameters",
            words("Delta functions define the order parameters; the conjugate fields in them vanish or give memory."),
            nothing if disorder_free else blocks_of_record(level.record("conjugates")),
        ),
        Chapter(
            "saddle-point",
            "Saddle point",
            words(
                "What multiplies two response fields is the covariance of a noise; what multiplies one response field "
                "and one field is a memory."
            ),
            blocks_of_sections(saddle, rest) or nothing,
        ),
        Chapter(
            "single-site",
            "Single-site process",
            words("Sites are now independent: each is driven only by noises and its own past."),
            blocks_of_record(level.record("single-site")),
        ),
        Chapter(
            "time-order",
            "Order in time",
            words("The order in which the fields at one time depend on each other, and how far back each "
            "response reaches."),
            blocks_of_record(level.record("order")),
        ),
        Chapter(
            "method",
            "Method",
            words("How the averages over the sites of each sector are computed, and why."),
            blocks_of_record(level.record("method")),
        ),
    ]  # fmt: skip


def _titled(sections: tuple[Section, ...], title: str) -> tuple[Section, ...]:
    return tuple(replace(section, title=title) for section in sections)


def _probe(levels: dict[str, Level]) -> list[Chapter]:
    matrices = (
        ("probe", "Projected equations of the probe",
         words("The probe's fields, averaged against the training fields by Stein's lemma and differentiated by their "
               "noises, close on themselves; spectral time becomes ", Math("z"), ".")),
        ("blocks", "A(z)",
         words("The closed linear equations as one matrix: ", Math(r"A(z)\, q(z) = q^{(0)}"), ". It is singular at an "
               "outlier.")),
        ("pencil", "Pencil: one eigenproblem",
         words("Scalars that depend on ", Math("z"), " times matrices that do not: the eigenvalues of one matrix give "
               "every outlier.")),
        ("bulk", "Bulk curve and edges",
         words("The responses of the bulk close on themselves; where they can be eliminated, one polynomial in ",
               Math("z"), " and ", Math("G"), " is left.")),
    )  # fmt: skip
    if all("probe" not in level.stages for level in levels.values()):
        reason = (
            "The declaration probes no matrix, so the derivation ends with the training level. "
            "With probe=spectrum(...) in its Model the report goes on to A(z), the pencil and the bulk."
        )
        return [Chapter("projected", "Projected equations of the probe", words(reason), ())]
    return [
        Chapter(STAGE_CHAPTERS[stage], title, lead, tuple(_layers(levels, stage))) for stage, title, lead in matrices
    ]


def _layers(levels: dict[str, Level], stage: str) -> list[Block]:
    """Return the stage of every probed matrix; equal stages share a fold."""
    if len(levels) == 1:
        return list(blocks_of_record(next(iter(levels.values())).record(stage)))
    layers: dict[tuple[Block, ...], list[str]] = {}
    for label, level in levels.items():
        joined = level.saddle if stage == "probe" and "probe" in level.stages else None
        before = () if joined is None else blocks_of_sections(joined, joined_sections(joined))
        layers.setdefault((*before, *blocks_of_record(level.record(stage))), []).append(label)
    return [
        Fold(words(f"Layer{'s' if len(labels) > 1 else ''} {', '.join(labels)}"), blocks, opened=number == 0)
        for number, (blocks, labels) in enumerate(layers.items())
    ]


def _code(files: Mapping[str, str]) -> Chapter:
    blocks = tuple(
        Fold(words(f"{name}, {text.count(chr(10))} lines"), (CodeListing(name, text),), opened=False)
        for name, text in files.items()
        if name.endswith(".py")
    )
    lead = words("The solver in JAX and the simulation in NumPy, written from the same records.")
    return Chapter("code", "Generated code", lead, blocks)


def _comparison(comparison: ComparisonSection | None) -> Chapter:
    title = "Theory against simulation"
    if comparison is None:
        return Chapter(
            "comparison", title, words("This report was written without a simulation (--no-simulation)."), ()
        )
    columns = ("quantity", "theory", "theory error", "simulation", "standard error", "difference / error")
    rows = tuple(
        (
            (row.quantity,),
            (_shown(row.theory),),
            ("exact" if row.theory_error is None else f"{row.theory_error:.2g}",),
            (_shown(row.simulation),),
            (f"{row.stderr:.2g}",),
            (_difference(row),),
        )
        for row in comparison.rows
    )
    lead = words(
        f"The declaration at size {comparison.size}, {comparison.seeds} seeds, compared with the theory at infinite "
        f"size: {comparison.settings}."
    )
    blocks: list[Block] = [
        Prose(words(comparison.verdict[:1].upper() + comparison.verdict[1:] + ".")),
        *comparison.figures,
    ]
    if rows:
        blocks.append(ReportTable(columns, rows))
        blocks.append(Prose(words(
            "Differences are in standard errors, the simulation's over the seeds and the theory's added in quadrature; "
            "rows with a dash are for information. "
            f"Were the theory exact at this size, {comparison.by_chance:.1g} of the "
            f"{sum(row.difference is not None for row in comparison.rows)} compared rows would still differ by more "
            f"than three standard errors on average, by chance alone, with {comparison.seeds} seeds. "
            "Corrections of finite size fall roughly as one over the size."
        )))  # fmt: skip
    return Chapter("comparison", title, lead, tuple(blocks))


def _assumptions(levels: dict[str, Level], mentioned: Mapping[str, str]) -> Chapter:
    entries = tuple(
        (
            with_names(a.statement, mentioned),
            STAGE_CHAPTERS[a.stage],
            tuple(with_names(line, mentioned) for line in a.particulars),
        )
        for a in assumptions(levels)
    )
    lead = words("Collected from the records of this derivation, in the order in which they were needed.")
    return Chapter("assumptions", "Assumptions of the derivation", lead, (Items(entries),))
