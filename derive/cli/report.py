"""The command that writes a derivation as one document."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from derive.cli import completion
from derive.cli.output import json_option, print_json, progress_bar
from derive.cli.problem import loaded, takes, target_argument, values_argument
from numerics.options import options_of


@click.command(short_help="Write the whole derivation as a page or as LaTeX.")
@target_argument
@values_argument
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    shell_complete=completion.files(".html", ".tex"),
    help="The file to write; by default report.html or report.tex.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(("html", "latex")),
    help="A page that opens offline, or a document for pdflatex. By default that of the file name, otherwise html.",
)
@takes(options_of("report"))
@json_option
def report(
    target: str, pairs: tuple[str, ...], out: str | None, style: str | None, as_json: bool, **options: Any
) -> None:
    """Write the whole derivation of a model as one document: from its declaration to A(z) and the law of the bulk.

    The page is one file that opens without a network and without fonts for mathematics: the result on top, contents,
    collapsible sections, every equation with a button that copies its LaTeX, generated code, theory against simulation
    at the given parameters, all assumptions that were made, and references. LaTeX needs only pdflatex; its figures are
    PDF files in the same directory, named after it. Choices pick a member of a family, layer=K one of several probed
    matrices (all of them otherwise). Without a simulation the same declaration gives the same bytes. On any failure
    nothing is written.

    \b
    Keys of --json:
      setting, parameters, format, written, sections, equations
      within_three_standard_errors   null without a simulation

    \b
    Examples:
      derive report SETTING -o report.html
      derive report my_model.py eta=0.5 --size 500 --seeds 8 -o my_model.html
      derive report SETTING L=3 --no-simulation -o report.tex
      derive report SETTING --notation paper --no-simulation
    """
    path = check_out(out, style)
    theory, inputs, _ = loaded(target, pairs)
    drawn = [f"--{name}={options[name]}" for name in ("size", "seeds")]
    command = shlex.join(
        ["derive", "report", Path(target).name if target.endswith(".py") else target, *pairs]
        + (drawn if options["simulation"] else ["--no-simulation"])
        + (["--notation=paper"] if options["notation"] == "paper" else [])
    )
    with progress_bar(f"report on {theory.declared.name}", as_json) as progress:
        from derive.inputs.problems import problem_of

        values = problem_of(theory.declared, inputs).values
        reported = theory.report(path, inputs, **options, command=command, progress=progress)
    compared = reported.comparison
    if as_json:
        print_json(
            {
                "setting": theory.declared.name,
                "parameters": values,
                "format": reported.format,
                "written": reported.written,
                "sections": reported.sections,
                "equations": reported.equations,
                "within_three_standard_errors": None if compared is None else compared.agrees,
            }
        )
        return
    if compared is not None:
        click.echo(compared.verdict)
    click.echo("\n".join(f"wrote {name}" for name in reported.written))


def check_out(out: str | None, style: str | None) -> Path:
    """Return the path of the document; raise if it cannot be written or does not match the format."""
    from derive.api.reporting import SUFFIXES, style_of
    from derive.errors import ParameterError

    if out is None:
        out = "report.tex" if style == "latex" else "report.html"
    path = Path(out)
    try:
        inferred = style_of(path)
    except ParameterError as error:
        raise click.UsageError(f"-o {error}") from None
    if style is not None and style != inferred:
        raise click.UsageError(f"-o {out}: --format {style} goes into a file that ends in {SUFFIXES[style][0]}")
    return path
