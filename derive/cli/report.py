"""The command that writes a derivation as one document."""

from __future__ import annotations

import os
import shlex
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derive.cli import completion
from derive.cli.output import json_option, part_of, print_json, progress_bar, settings_line
from derive.cli.problem import samples_option, seed_option, solver_of, target_argument, values_argument
from derive.cli.simulate import times_to_watch

if TYPE_CHECKING:
    from derive.cli.output import Progress
    from derive.problems import Problem
    from derive.pipeline import Derivation
    from derive.report import Comparison, Figure
    from numerics.simulation.samples import Simulation
    from numerics.solver import Solution

SUFFIXES = {"html": (".html", ".htm"), "latex": (".tex",)}


@click.command(short_help="Write the whole derivation as a page or as LaTeX.")
@target_argument
@values_argument
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    shell_complete=completion.files(".html", ".tex"),
    help="Where to write; report.html or report.tex unless said otherwise.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(("html", "latex")),
    help="A page that opens offline, or a document for pdflatex. Follows the name of the file; otherwise html.",
)
@click.option(
    "--size",
    type=click.IntRange(min=10),
    default=400,
    show_default=True,
    metavar="D",
    help="Size of the base sector in the simulation.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    metavar="K",
    help="Number of independent draws of all the disorder.",
)
@samples_option
@seed_option
@click.option(
    "--simulation/--no-simulation", default=True, help="With theory against simulation, or the derivation alone."
)
@json_option
def report(
    target: str,
    pairs: tuple[str, ...],
    out: str | None,
    style: str | None,
    size: int,
    seeds: int,
    samples: int | None,
    seed: int,
    simulation: bool,
    as_json: bool,
) -> None:
    """Write the whole derivation of a model as one document: from its declaration to A(z) and the law of the bulk.

    The page is one file that opens without a network: contents, sections that fold, every equation with a button
    that copies its LaTeX, generated code, theory against simulation at the given parameters, and all assumptions that
    were made. LaTeX needs plain pdflatex; its pictures are PDF files beside it, named after it.
    Choices pick a member of a family, layer=K one of several probed matrices (all of them otherwise). Without a
    simulation the same declaration gives the same bytes. On any failure nothing is written.

    \b
    Keys of --json:
      setting, parameters, format, written, sections, equations
      within_three_standard_errors   null without a simulation

    \b
    Examples:
      derive report SETTING -o report.html
      derive report my_model.py eta=0.5 --size 500 --seeds 8 -o my_model.html
      derive report SETTING L=3 --no-simulation -o report.tex
    """
    path, style = check_out(out, style)
    from derive.loading import declaration_sources
    from derive.problems import load_problem

    problem = load_problem(target, pairs)
    setting = problem.model.setting
    command = shlex.join(
        ["derive", "report", Path(target).name if target.endswith(".py") else target, *pairs]
        + ([f"--size={size}", f"--seeds={seeds}"] if simulation else ["--no-simulation"])
    )
    with progress_bar(f"report on {setting}", as_json) as progress:
        from derive.codegen.store import stored_files
        from derive.report import html_of_report, latex_of_report, report_of

        derivation = derive_layers(problem, progress)
        if progress is not None:
            progress(0.15, "generating code")
        files = stored_files(problem.model, derivation)
        found = None
        if simulation:
            found = compared(target, problem, size, seeds, samples, seed, part_of(progress, 0.2, 0.95))
        if progress is not None:
            progress(0.95, "writing")
        sources = declaration_sources(target)
        made = report_of(derivation, problem.values, sources, files, found, command, problem.layers)
        figures = {f"{path.stem}-{f.name}.pdf": f.pdf for f in (found.figures if found is not None else ())}
        if style == "latex":
            text = latex_of_report(made, picture=f"{path.stem}-{{name}}.pdf")
            written = write_all(path, {**figures, path.name: text.encode()})
        else:
            written = write_all(path, {path.name: html_of_report(made).encode()})
    if as_json:
        print_json(
            {
                "setting": setting,
                "parameters": problem.values,
                "format": style,
                "written": written,
                "sections": [chapter.key for chapter in made.chapters],
                "equations": count_equations(made.chapters),
                "within_three_standard_errors": None if found is None else found.agrees,
            }
        )
        return
    if found is not None:
        click.echo(found.verdict)
    click.echo("\n".join(f"wrote {name}" for name in written))


def check_out(out: str | None, style: str | None) -> tuple[Path, str]:
    """Where the document goes and in which format; a place that cannot be written is refused before any work."""
    if out is None:
        out = "report.tex" if style == "latex" else "report.html"
    path = Path(out)
    known = next((name for name, ends in SUFFIXES.items() if path.suffix.lower() in ends), None)
    if known is None:
        raise click.UsageError(f"-o {out}: end the file name in .html for a page or in .tex for LaTeX")
    if style is not None and style != known:
        raise click.UsageError(f"-o {out}: --format {style} goes into a file that ends in {SUFFIXES[style][0]}")
    if path.is_dir():
        raise click.UsageError(f"-o {out} is a directory; give a file name")
    if not path.parent.is_dir():
        raise click.UsageError(f"-o {out}: there is no directory {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK):
        raise click.UsageError(f"-o {out}: the directory {path.parent} cannot be written to; choose another place")
    if known == "latex" and not all(letter.isascii() and (letter.isalnum() or letter in "-_.") for letter in path.stem):
        raise click.UsageError(f"-o {out}: LaTeX finds pictures by plain names; use letters, digits, - and _")
    return path, known


def derive_layers(problem: Problem, progress: Progress | None) -> Derivation:
    """The derivation of the model, with the probed matrices that are asked for at hand."""
    from derive.pipeline import derive_model

    derivation = derive_model(problem.model)
    for number, label in enumerate(problem.layers):
        if progress is not None:
            progress(0.15 * number / len(problem.layers), "deriving" + (f" layer {label}" if label else ""))
        for stage in derivation.probes[label].stages:
            derivation.probes[label].record(stage)
    return derivation


def compared(
    target: str,
    problem: Problem,
    size: int,
    seeds: int,
    samples: int | None,
    seed: int,
    progress: Progress | None,
) -> Comparison:
    """Theory and simulation at the parameters of the problem, with their pictures."""
    from derive.errors import NumericalError
    from derive.report import Comparison, ComparisonRow
    from numerics.simulation.compare import compare, verdict
    from numerics.simulation.samples import simulate
    from numerics.solver import solve

    solver = solver_of(target, problem.model, progress)
    values, layers = problem.values, problem.layers
    times = times_to_watch(solver, values, None)
    try:
        solution = solve(
            solver,
            values,
            samples=samples,
            seed=seed,
            layers=layers,
            path=bool(times),
            overlaps=True,
            progress=part_of(progress, 0.0, 0.3),
        )
        simulation = simulate(
            solver,
            values,
            size,
            seeds,
            seed=seed,
            layers=layers,
            times=times,
            overlaps=True,
            progress=part_of(progress, 0.3, 0.95),
        )
        rows = compare(solution, simulation)
    except NumericalError as error:
        raise NumericalError(f"{error}; or write the derivation alone with --no-simulation") from None
    agrees, sentence = verdict(rows, seeds)
    return Comparison(
        settings=settings_line(problem.model.setting, values),
        size=size,
        seeds=seeds,
        rows=tuple(
            ComparisonRow(r.quantity, r.theory, r.theory_error, r.simulation, r.stderr, r.difference) for r in rows
        ),
        verdict=sentence,
        agrees=agrees,
        figures=pictures(solution, simulation),
    )


def pictures(solution: Solution, simulation: Simulation) -> tuple[Figure, ...]:
    """The spectrum where a matrix is probed, and the observables where there are any."""
    from derive.report import Figure
    from numerics.plots.report import draw_observables, draw_spectrum, narrowed, picture

    found = []
    for layer in solution.layers:
        caption = (
            ("Layer " + layer.label + ". " if layer.label else "")
            + "Density of eigenvalues: histogram of all seeds and the bulk law of the theory. "
            + ("Below, outliers: theory as diamonds, every seed as a stroke." if layer.outliers else "No outliers.")
        )
        drawn = draw_spectrum(solution, simulation, layer.label)
        svg, pdf = picture(drawn, "svg"), picture(drawn, "pdf")
        name = f"spectrum-{layer.label}" if layer.label else "spectrum"
        found.append(Figure(name, svg, picture(narrowed(drawn), "svg"), pdf, caption))
    if solution.observables:
        caption = "Observables along the training: theory as lines, means over the seeds with their standard errors."
        drawn = draw_observables(solution, simulation)
        narrow = narrowed(draw_observables(solution, simulation, across=1))
        found.append(
            Figure("observables", picture(drawn, "svg"), picture(narrow, "svg"), picture(drawn, "pdf"), caption)
        )
    return tuple(found)


def count_equations(blocks: tuple[Any, ...]) -> int:
    """How many displayed equations a document has."""
    from derive.report.document import Equation

    inner = sum(count_equations(block.blocks) for block in blocks if hasattr(block, "blocks"))
    return inner + sum(isinstance(block, Equation) for block in blocks)


def write_all(path: Path, contents: dict[str, bytes]) -> list[str]:
    """Write every file beside each other, the document last; on failure none of them."""
    from derive.errors import DeriveError

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
        raise DeriveError(f"-o {path}: cannot be written ({error.strerror}); choose another file") from None
    finally:
        for temporary, _ in staged:
            with suppress(OSError):
                os.unlink(temporary)
    return [str(path.parent / name) for name in reversed(contents)]
