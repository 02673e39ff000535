"""The command that measures speed."""

from __future__ import annotations

from dataclasses import asdict

import click

from derive.cli.output import json_option, number, plain, print_json, print_table, progress_bar


@click.command(short_help="Measure speed, as ratios.")
@click.option("--only", metavar="WORDS", default="", help="Only the measurements whose title contains these words.")
@click.option("--long", is_flag=True, help="Also what takes minutes each: networks by the thousand.")
@json_option
def bench(only: str, long: bool, as_json: bool) -> None:
    """Measure speed: every figure is a ratio of two ways timed side by side in this run.

    All of them take several minutes, most of it for networks of up to 800 steps.

    \b
    Examples:
      derive bench
      derive bench --json
      derive bench --only "fixed-point"
      derive bench --only "small networks" --long
    """
    with progress_bar("measuring", as_json) as progress:
        from derive.claims.reading import reference_directory
        from derive.errors import ClaimError
        from numerics.bench.run import run

        try:
            references = reference_directory()
        except ClaimError:
            references = None
        figures = run(progress, references, only, long)
    result = plain({"figures": [asdict(figure) for figure in figures]})
    if as_json:
        print_json(result)
        return
    rows = [
        (f["name"], f["detail"], number(f["value"]), f["unit"], compilation(f["compilation"]))
        for f in result["figures"]
    ]
    print_table("", ("figure", "how it was measured", "value", "unit", "compilation, s"), rows, text_columns=2)


def compilation(seconds: float | None) -> str:
    """Seconds of compilation as text; empty where it was not measured apart."""
    return "" if seconds is None else f"{seconds:.1f}"
