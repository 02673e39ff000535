"""Output of commands: one JSON object for machines, tables for people and in files, a progress bar on a terminal."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from derive.errors import DeriveError, NumericalError
from derive.support.extras import check_installed
from derive.support.guarded import write_whole
from derive.support.plain_words import printable, shown_value
from derive.support.progress import Progress

if TYPE_CHECKING:
    from derive.results import Comparison, Simulation, Solution, Sweep


class PrintableStream:
    """A text stream that writes control characters as escapes; `raw` is the wrapped stream."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(printable(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Escape control characters on stdout and stderr in this block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (PrintableStream(raw_stream(one)) for one in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw_stream(stream: TextIO) -> TextIO:
    """Return the wrapped stream, for a library that draws on the terminal and escapes text itself."""
    return stream.raw if isinstance(stream, PrintableStream) else stream


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


@singledispatch
def plain(value: Any, where: str = "the result") -> Any:
    """Return the value as JSON data; raise for NaN or infinity."""
    return plain(value.tolist(), where) if hasattr(value, "tolist") else str(value)


@plain.register(type(None))
@plain.register(str)
@plain.register(int)
def _(value: str | int | None, where: str = "the result") -> Any:
    return value


@plain.register
def _(value: dict, where: str = "the result") -> Any:  # type: ignore[type-arg]
    inside = "" if where == "the result" else f"{where}."
    return {str(key): plain(part, f"{inside}{key}") for key, part in value.items()}


@plain.register(list)
@plain.register(tuple)
def _(value: list[Any] | tuple[Any, ...], where: str = "the result") -> Any:
    return [plain(part, where) for part in value]


@plain.register
def _(value: complex, where: str = "the result") -> Any:
    raise NumericalError(f"{where} is complex ({value}); try other parameter values")


@plain.register
def _(value: float, where: str = "the result") -> Any:
    if math.isfinite(value):
        return float(value)
    kind = "not a number" if math.isnan(value) else "infinite"
    raise NumericalError(
        f"{where} is {kind}: the computation diverged; try a smaller step, a weaker coupling or fewer steps"
    )


def print_json(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value, allow_nan=False, indent=2))


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> None:
    """Print a table; the first `text_columns` columns contain words, the others numbers, which are never broken or
    truncated.

    Headings break between words. If that is not enough, the table is wider than the terminal.
    """
    from rich import box
    from rich.table import Table

    if title:
        click.echo(title)
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max([0, *(len(row[i]) for row in cells if i < len(row))]) for i in range(len(heads))]
    between = 3
    whole = sum(max(width, len(name)) + between for width, name in zip(widths, heads, strict=True))
    table, needed = Table(box=box.SIMPLE_HEAD, pad_edge=False), 0
    for i, name in enumerate(heads):
        if i < text_columns:
            table.add_column(name, overflow="fold")
            unbroken = [word for row in cells if i < len(row) for word in row[i].split()]
            needed += max(map(len, [*unbroken, *name.split()]), default=0) + between
        else:
            heading = name if whole <= columns() else "\n".join(name.split())
            table.add_column(heading, justify="right", no_wrap=True)
            needed += max(widths[i], *map(len, heading.split("\n"))) + between
    for row in cells:
        table.add_row(*row)
    print_rich(table, needed)


def print_rich(renderable: Any, least: int = 0) -> None:
    """Print at the width of the terminal, but at least `least`."""
    from rich.console import Console

    out = raw_stream(sys.stdout)
    Console(file=out, highlight=False, markup=False, width=max(columns(), least)).print(renderable)


def columns() -> int:
    """Return the line width: that of the terminal, or 120 in a file."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 120


def number(value: float | None) -> str:
    """Return a number with six digits, or "" for None."""
    if value is None:
        return "-"
    return f"{value:d}" if isinstance(value, int) else f"{value:.6g}"


def settings_line(setting: str, values: Mapping[str, float | int | str]) -> str:
    return " ".join([setting, *(f"{name}={shown_value(value)}" for name, value in values.items())])


def print_kernel(name: str, values: Any, errors: Any, times: Sequence[str]) -> None:
    """Print a two-time function as a small table: rows t, columns s, a few of each."""
    import numpy as np

    table, spread = np.asarray(values, float), None if errors is None else np.asarray(errors, float)
    labels = tuple(0 for axis in times if axis not in ("t", "s"))
    where = tuple(slice(None) if axis in ("t", "s") else 0 for axis in times)
    table, spread = table[where], None if spread is None else spread[where]
    title = f"{name}, labels {', '.join(map(str, labels))} (all with --json)" if labels else name

    def cell(place: tuple[int, ...]) -> str:
        value = float(table[place])
        if math.isnan(value):
            return "-"
        return number(value) if spread is None else f"{number(value)} ± {float(spread[place]):.1g}"

    if table.ndim == 2:
        rows, columns = (handful(count) for count in table.shape)
        cells = [(str(t), *(cell((t, s)) for s in columns)) for t in rows]
        print_table(title, ("t", *(f"s = {s}" for s in columns)), cells)
    elif table.ndim == 1:
        axis = next(axis for axis in times if axis in ("t", "s"))
        print_table(title, (axis, name), [(str(k), cell((k,))) for k in handful(len(table))])
    else:
        click.echo(f"{title}: {cell(())}\n")


def handful(count: int, most: int = 5) -> list[int]:
    """Return the indices of the few times that tables show and at which theory and simulation are compared."""
    from numerics.support.progress import handful as chosen

    return chosen(count, most)


@contextmanager
def progress_bar(title: str, quiet: bool) -> Iterator[Progress | None]:
    """Yield a callback (fraction, text) that draws a bar with the remaining time on stderr, or None if `quiet`.

    The bar indicates when JAX compiles.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress as Bar,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    left = (TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=False))
    title = printable(title)
    with Bar(*columns, *left, console=Console(file=raw_stream(sys.stderr)), transient=True) as bar:
        task, shown = bar.add_task(title, total=None), [title]

        def report(fraction: float, text: str) -> None:
            shown[0] = f"{title}: {printable(text)}" if text else title
            bar.update(task, total=1.0, completed=min(max(fraction, 0.0), 1.0), description=shown[0])

        def compiling(now: bool) -> None:
            bar.update(task, description=f"{shown[0]} (compiling)" if now else shown[0])

        from numerics.support.compiling import tell_while_compiling

        with tell_while_compiling(compiling):
            yield report


def part_of(progress: Progress | None, low: float, high: float) -> Progress | None:
    """Return a progress callback for the part of a bar from `low` to `high`."""
    if progress is None:
        return None
    from numerics.support.progress import part

    return part(progress, low, high)


MEANING = {".jsonl": "everything", ".csv": "one number per cell", ".nc": "for derive.open", ".zarr": "the same as Zarr"}


def check_table(out: str | None, kinds: Sequence[str] = (".jsonl", ".csv")) -> None:
    """Raise if a file cannot be written, before any computation."""
    if out is None:
        return
    path = Path(out)
    if path.suffix not in kinds:
        endings = " or ".join(f"{kind} ({MEANING[kind]})" for kind in kinds)
        raise DeriveError(f"--out {out}: the name must end in {endings}")
    if path.suffix in (".nc", ".zarr"):
        check_installed("xarray")
        check_installed("h5netcdf")
    if path.suffix == ".zarr":
        from derive.results.saving import check_zarr

        check_zarr(path)
    if (path.is_dir() and path.suffix != ".zarr") or not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise DeriveError(f"--out {out}: cannot be written; choose a file in a directory that exists")


def write_result(out: str, result: Solution | Simulation | Comparison | Sweep) -> None:
    """Write a result in the format of the file's suffix."""
    from derive.results.sweep import points_of, row_of

    suffix = Path(out).suffix
    points = points_of(result)
    if suffix in (".nc", ".zarr"):
        result.save(out)
    elif suffix == ".csv":
        write_rows(out, [row_of(point) for point in points])
    else:
        write_rows(out, [plain(point.as_dict()) for point in points])


def write_rows(out: str, rows: list[dict[str, Any]]) -> None:
    """Write all rows, or nothing on failure."""
    path = Path(out)
    text = _csv(rows) if path.suffix == ".csv" else "".join(json.dumps(r, allow_nan=False) + "\n" for r in rows)
    try:
        write_whole(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise DeriveError(f"--out {out}: cannot be written ({error.strerror}); choose another file") from None


def _csv(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    names.sort(key=lambda name: name == "trouble")
    file = io.StringIO()
    writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: "" if v is None or v != v else v for k, v in row.items()} for row in rows)
    return file.getvalue()
