"""Representations of models, derivations and records: summary, plain text, LaTeX, and Markdown for notebooks."""

from __future__ import annotations

import textwrap
from functools import singledispatch
from typing import Any

import sympy as sp

from derive.errors import DeclarationError
from derive.language.data import GivenData, LabelTable
from derive.language.equations import DeclaredSpectrum, Eq
from derive.language.family import Family
from derive.language.matrices import Evolving, MatrixExpression
from derive.language.model import Model
from derive.pipeline import PROBE_STAGES, TRAINING_STAGES, Derivation, DerivedProbe
from derive.printing.documents import (
    break_text,
    cell,
    declared,
    latex,
    latex_of_equation,
    latex_of_observable,
    latex_of_record,
    latex_of_spectrum,
    markdown_of_sections,
    parameter_table,
    prose,
    sections_as_data as sections_as_data,
    spectrum_words,
    text,
    text_of_record,
)
from derive.printing.lettering import MODEL, lettered, letters_of
from derive.printing.names import system_of
from derive.printing.sections import sections_of
from derive.records.base import Record
from derive.support.plain_words import counted

COLUMNS = 100
LONGEST_LINE = 60
"""Characters of a formula in a summary."""


@singledispatch
def summary_of(shown: Any) -> str:
    """Return a summary of one or a few short lines for a terminal."""
    return str(shown)


@singledispatch
def text_of(shown: Any) -> str:
    """Return the object in full as plain text."""
    raise TypeError(f"a {type(shown).__name__} has no printed form")


@singledispatch
def latex_of(shown: Any) -> str:
    """Return the object in full as LaTeX."""
    raise TypeError(f"a {type(shown).__name__} has no printed form")


@singledispatch
def markdown_of(shown: Any) -> str:
    """Return Markdown for a notebook, with formulas between $$."""
    raise TypeError(f"a {type(shown).__name__} has no printed form")


def in_notation(notation: str, shown: Any, form: str) -> Any:
    """Return a form of an object, such as `text_of`, in the notation of the model or of its source."""
    printed = globals()[form]
    if notation == MODEL:
        return printed(shown)
    model = _model_of(shown)
    if model is None:
        raise DeclarationError(f"a {type(shown).__name__} has no notation of its own; print its derivation or a record")
    with lettered(letters_of(model, notation)):
        return printed(shown)


@singledispatch
def _model_of(shown: Any) -> Model | None:
    """Return the model of an object; None if it is unknown."""
    return None


@_model_of.register
def _(shown: Model) -> Model | None:
    return shown


@_model_of.register
def _(shown: Derivation) -> Model | None:
    return shown.model


@_model_of.register
def _(shown: DerivedProbe) -> Model | None:
    return shown.training.model


@_model_of.register
def _(shown: Record) -> Model | None:
    system = system_of(shown)
    return None if system is None else system.model


# -- expressions, matrices and equations

for kind in (sp.Basic, MatrixExpression, Evolving, GivenData, LabelTable):
    text_of.register(kind, text)
    latex_of.register(kind, latex)

latex_of.register(Eq, latex_of_equation)
latex_of.register(DeclaredSpectrum, latex_of_spectrum)


@text_of.register
def _(shown: Eq) -> str:
    return f"{text(shown.target)} = {text(shown.value)}"


@text_of.register
def _(shown: DeclaredSpectrum) -> str:
    return text(shown.matrix) + (f" + {shown.plus} I" if shown.plus else "")


# -- declarations


@summary_of.register
def _(shown: Model) -> str:
    parts = [counted(len(shown.parameters), "parameter")]
    parts += [counted(len(shown.equations), "equation")] if shown.equations else []
    parts += [f"observables {_listed([name for name, _ in shown.observe])}"] if shown.observe else []
    parts += [f"alignments {_listed([name for name, _ in shown.alignments])}"] if shown.alignments else []
    if len(shown.probes) == 1:
        matrix = str(shown.probes[0][1].matrix)
        parts.append(f"spectrum of {textwrap.shorten(matrix, LONGEST_LINE, placeholder=' ...')}")
    elif shown.probes:
        parts.append(f"spectra of layers {_listed([label for label, _ in shown.probes])}")
    return f"Model {shown.name}: {', '.join(parts)}; print(...) shows it"


@text_of.register
def _(shown: Model) -> str:
    first = shown.doc.strip().partition("\n")[0]
    lines = [f"{shown.name}: {first}" if first else shown.name, ""]
    for p in shown.parameters:
        lines.append(f"    {p.name} = {p.default:g}, {p.domain}" + (f": {p.doc}" if p.doc else ""))
    formulas = [text_of(equation) for equation in shown.equations]
    formulas += [f"{name} = {text(value)}" for name, value in (*shown.observe, *shown.alignments)]
    lines += ["", *_lines(formulas)] if formulas else []
    for label, probe in shown.probes:
        lines += ["", f"  {spectrum_words(label)}", *_lines([text_of(probe)])]
    return "\n".join(lines) + "\n"


@latex_of.register
def _(shown: Model) -> str:
    formulas = [latex_of_equation(equation) for equation in shown.equations]
    formulas += [latex_of_observable(name, value) for name, value in (*shown.observe, *shown.alignments)]
    lines = [line for formula in formulas for line in (r"\[", formula, r"\]")]
    for label, probe in shown.probes:
        lines += [prose(spectrum_words(label)), r"\[", latex_of_spectrum(probe), r"\]"]
    return "\n".join(lines) + "\n"


@markdown_of.register
def _(shown: Model) -> str:
    return "\n".join([*_opening(shown.name, shown.doc), *parameter_table(shown), *declared(shown)])


@summary_of.register
def _(shown: Family) -> str:
    chosen = ", ".join(f"{name}={choice.default}" for name, choice in shown.choices)
    return f"Family {shown.name}: unless chosen otherwise {chosen}; .member({{...}}) is a Model, print(...) shows it"


@text_of.register
def _(shown: Family) -> str:
    lines = [f"    {name} = {c.default}, {c}" + (f": {c.doc}" if c.doc else "") for name, c in shown.choices]
    return "\n".join(["choices", *lines, "", text_of(shown.member({}))])


@latex_of.register
def _(shown: Family) -> str:
    return latex_of(shown.member({}))


@markdown_of.register
def _(shown: Family) -> str:
    rows = [f"| `{name}` | {c.default} | {cell(str(c))} | {cell(c.doc)} |" for name, c in shown.choices]
    table = ["| choice | default | values | meaning |", "| --- | --- | --- | --- |", *rows, ""]
    member = shown.member({})
    return "\n".join([*_opening(shown.name, shown.doc), *table, *parameter_table(member), *declared(member)])


# -- records

text_of.register(Record, text_of_record)
latex_of.register(Record, latex_of_record)


@summary_of.register
def _(shown: Record) -> str:
    lines = sum(statement.left is not None for section in sections_of(shown) for statement in section.statements)
    return f"{type(shown).__name__}{_of(shown)}: {counted(lines, 'formula')}; print(...) or .latex() shows them"


@markdown_of.register
def _(shown: Record) -> str:
    lines = markdown_of_sections(shown, heading="**{}**")
    return "\n".join([f"#### {cell(shown.title)}{_of(shown)}", "", *lines])


# -- derivations


@summary_of.register
def _(shown: Derivation) -> str:
    probed = f"; probed: {_listed([label or 'one matrix' for label in shown.probes])}" if shown.probes else ""
    return f"Derivation of {shown.model.name}: .{' .'.join(map(_attribute, TRAINING_STAGES))}{probed}"


@summary_of.register
def _(shown: DerivedProbe) -> str:
    return f"DerivedProbe{_layer(shown)} of {shown.training.model.name}: .{' .'.join(map(_attribute, PROBE_STAGES))}"


@text_of.register
def _(shown: Derivation | DerivedProbe) -> str:
    return "\n".join(map(text_of_record, _records(shown)))


@latex_of.register
def _(shown: Derivation | DerivedProbe) -> str:
    return "\n".join(map(latex_of_record, _records(shown)))


@markdown_of.register
def _(shown: Derivation) -> str:
    """Return the declaration, the single-site process and a table of records, without further derivation."""
    rows = [f"| `.{_attribute(stage)}` | {_title(shown.record(stage))} |" for stage in TRAINING_STAGES]
    for label in shown.probes:
        place = f".probes[{label!r}]"
        rows.append(f"| `{place}` | the probed matrix{f' of layer {label}' if label else ''}, A(z) and its bulk |")
    table = ["| record | what it is |", "| --- | --- |", *rows, ""]
    return "\n".join([markdown_of(shown.model), markdown_of(shown.single_site), *table])


@markdown_of.register
def _(shown: DerivedProbe) -> str:
    """Return the probed matrix, A(z) and a table of records, without elimination."""
    model = shown.training.model
    rows = [f"| `.{stage}` | {title} |" for stage, title in zip(PROBE_STAGES, _PROBE_TITLES, strict=True)]
    table = ["| record | what it is |", "| --- | --- |", *rows, ""]
    matrix = [spectrum_words(shown.label), "", "$$", latex_of_spectrum(dict(model.probes)[shown.label]), "$$", ""]
    return "\n".join([*matrix, markdown_of(shown.blocks), *table])


_PROBE_TITLES = (
    "spectral fields, projected on the training fields and Laplace transformed",
    "A(z), block by block",
    "the eigenproblem that A(z) reduces to",
    "the law of the bulk: its curve, edges and resolvent",
)


@singledispatch
def _records(shown: Any) -> list[Record]:
    """Return the records of a probed matrix, or of a derivation."""
    return [shown.record(stage) for stage in shown.stages]


@_records.register
def _(derivation: Derivation) -> list[Record]:
    """Return the records of the training level, followed by those of each probed matrix."""
    first = derivation.first if len(derivation.probes) == 1 else derivation
    records = [first.record(stage) for stage in TRAINING_STAGES]
    for probed in derivation.probes.values():
        records += [probed.record(stage) for stage in PROBE_STAGES]
    return records


def _title(record: Record) -> str:
    return cell(record.title[:1].lower() + record.title[1:] if not record.title[1:2].isupper() else record.title)


def _attribute(stage: str) -> str:
    return stage.replace("-", "_")


def _layer(probed: DerivedProbe) -> str:
    return f" {probed.label}" if probed.label else ""


def _of(record: Record) -> str:
    system = system_of(record)
    return "" if system is None else f" of {system.model.name}"


def _opening(name: str, doc: str) -> list[str]:
    text = textwrap.dedent(doc).strip()
    return [f"#### {name}", "", *([text, ""] if text else [])]


def _lines(formulas: list[str]) -> list[str]:
    broken = (break_text(formula, COLUMNS - 4) for formula in formulas)
    return [line for first, *rest in broken for line in (f"    {first}", *(f"        {more}" for more in rest))]


def _listed(words: list[str], most: int = 8) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
