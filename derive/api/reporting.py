"""Write the whole derivation as one document."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derive.codegen import formatted
from derive.codegen.store import stored_files
from derive.errors import DeriveError, NumericalError, ParameterError
from derive.inputs.loading import declaration_sources
from derive.inputs.problems import Problem
from derive.pipeline import Derivation, derive_model
from derive.report import (
    ComparisonRow,
    ComparisonSection as Told,
    ReportFigure,
    html_of_report,
    latex_of_report,
    report_of,
)
from derive.report.document import DisplayedEquation
from derive.results import Comparison
from derive.support.progress import Progress
from numerics.plots.report import draw_observables, draw_spectrum, narrowed, picture
from numerics.simulation.compare import expected_by_chance
from numerics.support.progress import part

SUFFIXES = {"html": (".html", ".htm"), "latex": (".tex",)}


@dataclass(frozen=True)
class Reported:
    """The files written, their sections and number of equations, and the comparison, if any."""

    written: list[str]
    format: str
    sections: list[str]
    equations: int
    comparison: Comparison | None

    def __repr__(self) -> str:
        verdict = "" if self.comparison is None else f"; {self.comparison.verdict}"
        return f"wrote {', '.join(self.written)}: {len(self.sections)} sections, {self.equations} equations{verdict}"


def report(
    problem: Problem,
    target: str,
    path: Path,
    compare: Callable[[Progress], Comparison] | None,
    command: str,
    progress: Progress | None,
) -> Reported:
    """Write the derivation of a model; see `Theory.report`. compare: compares theory and simulation, if requested."""
    style = style_of(path)
    tell = progress or (lambda fraction, text: None)
    derivation = _derived(problem, part(tell, 0.0, 0.15))
    tell(0.15, "generating code")
    files = formatted(stored_files(problem.model, derivation))
    compared, section = None, None
    if compare is not None:
        compared = compare(part(tell, 0.2, 0.95))
        section = _told(compared)
    tell(0.95, "writing")
    sources = declaration_sources(target) if target else (("declaration", str(problem.model)),)
    document = report_of(derivation, problem.values, sources, files, section, command, problem.layers)
    if style == "latex":
        figures = {f"{path.stem}-{f.name}.pdf": f.pdf for f in (section.figures if section is not None else ())}
        text = latex_of_report(document, picture=f"{path.stem}-{{name}}.pdf")
        written = write_all(path, {**figures, path.name: text.encode()})
    else:
        written = write_all(path, {path.name: html_of_report(document).encode()})
    sections = [chapter.key for chapter in document.chapters]
    return Reported(written, style, sections, _count_equations(document.chapters), compared)


def style_of(path: Path) -> str:
    """Return the format of a file name; raise if the file cannot be written."""
    style = next((name for name, ends in SUFFIXES.items() if path.suffix.lower() in ends), None)
    if style is None:
        raise ParameterError(f"{path}: end the file name in .html for a page or in .tex for LaTeX")
    if path.is_dir():
        raise ParameterError(f"{path} is a directory; give a file name")
    if not path.parent.is_dir():
        raise ParameterError(f"{path}: there is no directory {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK):
        raise ParameterError(f"{path}: the directory {path.parent} cannot be written to; choose another file")
    if style == "latex" and not all(letter.isascii() and (letter.isalnum() or letter in "-_.") for letter in path.stem):
        raise ParameterError(f"{path}: LaTeX finds pictures by plain names; use letters, digits, - and _")
    return style


def _derived(problem: Problem, tell: Progress) -> Derivation:
    """Return the derivation of the model with the requested probed matrices."""
    derivation = derive_model(problem.model)
    for number, label in enumerate(problem.layers):
        tell(number / len(problem.layers), "deriving" + (f" layer {label}" if label else ""))
        for stage in derivation.probes[label].stages:
            derivation.probes[label].record(stage)
    return derivation


def _told(compared: Comparison) -> Told:
    """Return the section of a document that describes a comparison, with its figures."""
    trouble = (*compared.theory.trouble, *compared.simulation.trouble)
    if compared.theory.failed or compared.simulation.failed:
        raise NumericalError(f"{trouble[0]}; or write the derivation alone: --no-simulation")
    return Told(
        settings=compared.theory.made.point,
        size=compared.simulation.size,
        seeds=compared.simulation.seeds,
        rows=tuple(
            ComparisonRow(r.quantity, r.theory, r.theory_error, r.simulation, r.stderr, r.difference, r.agrees)
            for r in compared.rows
        ),
        verdict=compared.verdict,
        agrees=compared.agrees,
        by_chance=expected_by_chance(compared.rows, compared.simulation.seeds),
        figures=_pictures(compared),
    )


def _pictures(compared: Comparison) -> tuple[ReportFigure, ...]:
    """Return figures of the spectrum, where a matrix is probed, and of the observables, if any."""
    solution, simulation = compared.theory, compared.simulation
    assert solution is not None and simulation is not None
    figures = []
    for layer in solution.layers:
        caption = (
            ("Layer " + layer.label + ". " if layer.label else "")
            + "Density of eigenvalues: histogram of all seeds and the bulk law of the theory. "
            + ("Below, outliers: theory as diamonds, every seed as a stroke." if layer.outliers else "No outliers.")
        )
        drawn = draw_spectrum(solution, simulation, layer.label)
        svg, pdf = picture(drawn, "svg"), picture(drawn, "pdf")
        name = f"spectrum-{layer.label}" if layer.label else "spectrum"
        figures.append(ReportFigure(name, svg, picture(narrowed(drawn), "svg"), pdf, caption))
    if solution.observables:
        caption = (
            "Observables during training: lines for the theory, means over seeds with standard errors "
            "for the simulation."
        )
        drawn = draw_observables(solution, simulation)
        narrow = narrowed(draw_observables(solution, simulation, across=1))
        figures.append(
            ReportFigure("observables", picture(drawn, "svg"), picture(narrow, "svg"), picture(drawn, "pdf"), caption)
        )
    return tuple(figures)


def _count_equations(blocks: tuple[Any, ...]) -> int:
    """Return the number of displayed equations of a document."""
    inner = sum(_count_equations(block.blocks) for block in blocks if hasattr(block, "blocks"))
    return inner + sum(isinstance(block, DisplayedEquation) for block in blocks)


def write_all(path: Path, contents: dict[str, bytes]) -> list[str]:
    """Write all files, the document last; on failure none of them."""
    staged: list[tuple[str, Path]] = []
    try:
        for name, data in contents.items():
            handle, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=path.parent)
            staged.append((temporary, path.parent / name))
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
        for temporary, final in staged:
            os.replace(temporary, final)
    except OSError as error:
        raise DeriveError(f"{path}: cannot be written ({error.strerror}); choose another file") from None
    finally:
        for temporary, _ in staged:
            with suppress(OSError):
                os.unlink(temporary)
    return [str(path.parent / name) for name in reversed(contents)]
