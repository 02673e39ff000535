"""The command that measures speed."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path

import click

from derive.cli.output import columns, json_option, number, plain, print_json

VALUE, UNIT, COMPILATION = 10, 18, 14
"""Widths of columns, in characters."""


@click.command(short_help="Measure speed, as ratios.")
@click.option("--only", metavar="WORDS", default="", help="Only the measurements whose title contains these words.")
@click.option(
    "--long", is_flag=True, help="Also run measurements that take minutes each, on networks of thousands of units."
)
@click.option("--list", "listed", is_flag=True, help="List the titles and measure nothing.")
@json_option
def bench(only: str, long: bool, listed: bool, as_json: bool) -> None:
    """Measure speed against other ways to the same result.

    Each measurement runs in its own process, with one thread for linear algebra and an empty cache. Both sides of a
    ratio are timed there in turn, by CPU time, and compared at equal error; if the errors differ, the row says by how
    much. Compilation has its own column and is not part of the value. Each row is printed as soon as it is measured.
    All measurements take a while; --only selects some.

    \b
    Examples:
      derive bench --list
      derive bench
      derive bench --only "outliers at all times" --json
      derive bench --only "small networks" --long
    """
    from numerics.bench.run import figures, titles

    chosen = titles(only, long)
    if listed:
        print_json({"titles": chosen}) if as_json else click.echo("\n".join(chosen))
        return
    references, result = _references(), []
    if not as_json:
        click.echo(f"{'value':>{VALUE}} {'unit':<{UNIT}}{'compilation, s':>{COMPILATION}}  what is measured")
    for title in chosen:
        if not as_json:
            click.echo(f"\n{title}")
        for figure in figures(title, references):
            result.append(plain(asdict(figure)))
            if not as_json:
                click.echo(row(**result[-1]))
    if as_json:
        print_json({"figures": result})


def row(name: str, value: float, unit: str, detail: str, compilation: float | None) -> str:
    """Return a measurement as text: its numbers, its name, and below them the method."""
    compiled = "" if compilation is None else f"{compilation:.1f}"
    first = f"{number(value):>{VALUE}} {unit:<{UNIT}}{compiled:>{COMPILATION}}  {name}"
    indent = " " * (VALUE + 1)
    return "\n".join([first, *textwrap.wrap(detail, columns(), initial_indent=indent, subsequent_indent=indent)])


def _references() -> Path | None:
    from derive.claims.reading import reference_directory
    from derive.errors import ClaimError

    try:
        return reference_directory()
    except ClaimError:
        return None
