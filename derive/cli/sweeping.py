"""Common parts of `solve`, `simulate` and `compare` on a grid: workers, files and display; `merge` joins journals."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from derive.cli import completion
from derive.cli.output import columns, json_option, plain, print_json, print_table, progress_bar
from derive.cli.problem import (
    beside_plot,
    check_plot,
    loaded,
    log_option,
    out_option,
    plot_data_option,
    plot_option,
    quantity_option,
    save_plot,
    takes,
)
from derive.support.guarded import with_digest
from numerics.options import SweepOptions, fields_of

if TYPE_CHECKING:
    from derive.api import Theory
    from derive.results import Sweep


KINDS = (".jsonl", ".csv", ".nc", ".zarr")
F = TypeVar("F", bound=Callable[..., Any])


def sweep_options(command: F) -> F:
    """Add the options of every command that takes lists and ranges: workers, files and display."""
    dry_run = click.option("--dry-run", is_flag=True, help="Only print the amount of work and the expected time.")
    for option in (
        json_option,
        dry_run,
        takes(fields_of(SweepOptions)),
        log_option,
        quantity_option,
        plot_data_option,
        plot_option,
        out_option,
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class Flags:
    """The flags of a command that are not options of its verb."""

    out: str | None
    plot: str | None
    plot_data: bool
    quantity: str | None
    log: bool
    as_json: bool
    jobs: int | None
    on: str | None
    journal: str | None
    shard: str | None
    dry_run: bool

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Flags:
        """Remove the flags from the options of a command and return them."""
        return cls(**{f.name: options.pop(f.name) for f in fields(cls)})

    @property
    def spread(self) -> bool:
        """Whether even a single point is computed by workers, stored in a journal or planned."""
        return self.dry_run or any(x is not None for x in (self.jobs, self.on, self.journal, self.shard))


@dataclass(frozen=True)
class Command:
    """A command that computes one point or a grid of points.

    Attributes:
        verb: the verb that it calls.
        title: of the progress bar.
        one: the verb at a single point.
        show: prints its result.
        as_data: that result for --json.
        each: prints further requested output of each point of a grid.
    """

    verb: str
    title: str
    one: Callable[..., Any]
    show: Callable[[Any], None]
    as_data: Callable[[Any], dict[str, Any]] | None = None
    each: Callable[[Any], None] | None = None


def run(command: Command, target: str, pairs: tuple[str, ...], options: Mapping[str, Any], flags: Flags) -> Any:
    """Compute, write, plot and print; return the result, or None if there is none yet."""
    from derive.cli.output import check_table
    from derive.errors import DeriveError
    from derive.inputs.problems import makes_a_grid

    check_table(flags.out, KINDS)
    check_plot(flags.plot)
    for flag, there in (("--plot-data", flags.plot_data), ("--quantity", flags.quantity), ("--log", flags.log)):
        if there and flags.plot is None:
            raise DeriveError(f"{flag} belongs to a figure: add --plot FILE.png")
    if flags.plot is not None and flags.plot_data and flags.out is not None:
        if Path(flags.out).absolute() == Path(beside_plot(flags.plot)).absolute():
            raise DeriveError(f"--plot-data would overwrite --out {flags.out}; give one of the two another name")
    if (flags.quantity or flags.log) and not makes_a_grid(pairs):
        raise DeriveError(
            "--quantity and --log belong to a grid: give a parameter several values, such as eta=0.1:0.5:9"
        )
    if flags.shard is not None and (flags.out or flags.plot or flags.journal is None):
        raise DeriveError(
            "--shard takes --journal FILE and neither --out nor --plot: first join the journals of all shards"
        )
    if flags.spread or makes_a_grid(pairs):
        _one_thread()
    theory, inputs, several = loaded(target, pairs)
    if flags.dry_run:
        _print_plan(theory, inputs, _work(command.verb, options, flags), flags)
        return None
    result = _compute(command, theory, inputs, options, flags, several)
    if flags.shard is not None:
        _print_shard(result, flags)
        return None
    _deliver(command, result, flags, several)
    if several and result.missing == len(result) or _uncertified(result.points if several else (result,)):
        click.get_current_context().exit(3)
    return result


def _compute(
    command: Command, theory: Theory, inputs: dict[str, Any], options: Mapping[str, Any], flags: Flags, several: bool
) -> Any:
    """Return the result at one point, or the sweep for several points or distributed work."""
    with progress_bar(f"{command.title} {theory.declared.name}", flags.as_json) as progress:
        if several or flags.spread:
            result = theory.sweep(inputs, **_work(command.verb, options, flags), progress=progress)
        else:
            result = command.one(theory, inputs, progress=progress)
    if flags.spread and not several and flags.shard is None:
        result = result.points[0]
    if not several and flags.shard is None:
        _refuse_nothing(result)
    return result


def _deliver(command: Command, result: Any, flags: Flags, several: bool) -> None:
    """Write, plot and print a result."""
    from derive.cli.output import write_result, write_rows
    from numerics.plots.data import figure_rows

    as_data, each = command.as_data, command.each
    # before it is written, so that a file has what is asked
    asked = list(map(as_data, result.points)) if several and each is not None and as_data is not None else []
    if flags.out is not None:
        write_result(flags.out, result)
        if flags.journal is None and several:
            Path(f"{flags.out}.journal").unlink(missing_ok=True)  # everything is in the file
    written = [flags.out, flags.plot]
    if flags.plot is not None:
        figure = result.plot(flags.quantity, flags.log) if several else result.plot()
        save_plot(figure, flags.plot)
        if flags.plot_data:
            rows = result.plot_rows(flags.quantity) if several else list(figure_rows(figure))
            write_rows(beside_plot(flags.plot), rows)
            written.append(beside_plot(flags.plot))
    if flags.as_json:
        data = result.as_dict() if several or as_data is None else as_data(result)
        printed = plain({**data, "points": asked} if asked else data)
        print_json(with_digest(printed) if command.verb == "solve" else printed)
        return
    if several:
        print_grid(result, flags.out is not None)
        for point in result.points if each is not None else ():
            if each is not None and not point.failed:
                each(point)
    else:
        command.show(result)
    for name in written:
        if name is not None:
            click.echo(f"wrote {name}")


def _work(verb: str, options: Mapping[str, Any], flags: Flags) -> dict[str, Any]:
    """Return all options of a sweep: those of its verb and of its workers."""
    journal = flags.journal or (None if flags.out is None else f"{flags.out}.journal")
    jobs = flags.jobs if flags.jobs is not None else None if flags.on is not None else "cores"
    own = {name: value for name, value in options.items() if name != "memory"}
    return {**own, "of": verb, "jobs": jobs, "on": flags.on, "journal": journal, "shard": flags.shard}


def _uncertified(points: Iterable[Any]) -> bool:
    """Return whether the certificate of any solution failed."""
    solutions = (getattr(point, "theory", point) for point in points)
    certificates = (getattr(solution, "certificate", None) for solution in solutions)
    return any(certificate is not None and not certificate for certificate in certificates)


def _one_thread() -> None:
    """Limit this process to one thread, like its workers, if no numerical library is loaded yet."""
    from derive.sweeps.threads import one_thread

    if not {"numpy", "jax"} & set(sys.modules):
        os.environ.update(one_thread())


def _refuse_nothing(result: Any) -> None:
    """Raise if a single point diverged."""
    from derive.errors import NumericalError

    if result.failed:
        raise NumericalError(result.trouble[0])


def _print_plan(theory: Theory, inputs: dict[str, Any], work: dict[str, Any], flags: Flags) -> None:
    from derive.api.sweeping import cores
    from derive.sweeps.watching import shown_time

    with progress_bar(f"measuring {theory.declared.name}", flags.as_json):
        plan = theory.plan(inputs, measured=True, **work)
    jobs = flags.jobs or (1 if flags.on is not None else cores())
    expected = plan.expected(jobs)
    if flags.as_json:
        counts = {"points": plan.points, "samples": plan.samples, "parts": plan.units, "done": plan.done}
        print_json({**counts, "jobs": jobs, "bytes_of_a_sample": plan.bytes, "expected_seconds": expected})
        return
    samples = f", {plan.samples} samples" if plan.samples else ""
    click.echo(f"{plan.points} points{samples} in {plan.units} parts, {plan.done} of them done")
    if plan.bytes:
        click.echo(f"about {plan.bytes / 1e9:.3g} GB of memory for each sample in progress")
    if expected is not None:
        click.echo(f"expected with {jobs} process{'es' if jobs > 1 else ''}: {shown_time(expected)}")


def _print_shard(sweep: Sweep, flags: Flags) -> None:
    there = len(sweep) - sweep.missing
    click.echo(
        f"shard {flags.shard}: {there} of {len(sweep)} points are complete in {flags.journal}; when all shards are "
        f"done, "
        "join their journals with `derive merge` and run this command with --journal and without --shard"
    )


def print_grid(sweep: Sweep, written: bool) -> None:
    """Print a row per point, or the first and last if a file contains all of them.

    Columns that do not fit are omitted and named; numbers are never broken.
    """
    heads, rows = sweep.lines()
    click.echo(f"{sweep.made.point}, {len(sweep)} points; observables are those of the last time")
    if written and len(rows) > 10:
        rows = [*rows[:5], ["..."] * len(heads), *rows[-5:]]
    widths = [max(len(row[k]) for row in [heads, *rows]) + 3 for k in range(len(heads))]
    room = max(len(sweep.axes) + 1, sum(width <= columns() for width in accumulate(widths)))
    print_table("", heads[:room], [row[:room] for row in rows], text_columns=0)
    if heads[room:]:
        click.echo(f"omitted to fit the terminal: {', '.join(heads[room:])} (use --out FILE.csv)")
    for reason in sweep.trouble:
        click.echo(reason)


@click.command(short_help="Join the journals of the shards of a sweep.")
@click.argument("out", metavar="OUT", shell_complete=completion.files(".journal"))
@click.argument("journals", metavar="JOURNAL...", nargs=-1, required=True, shell_complete=completion.files(".journal"))
def merge(out: str, journals: tuple[str, ...]) -> None:
    """Join journals of one sweep into OUT, in the order of its parts.

    Journals of another declaration, other parameters, options or versions are refused, and so are two that disagree
    on a number. Then run the command of the sweep with --journal OUT and without --shard: it computes what is still
    missing and writes the table.

    \b
    Examples:
      derive solve my_model.py eta=0.1:0.5:20 --shard 1/2 --journal part1.journal
      derive merge all.journal part1.journal part2.journal
      derive solve my_model.py eta=0.1:0.5:20 --journal all.journal --out sweep.csv
    """
    from derive.sweeps.journal import merged, write_merged

    about, units = merged([Path(name) for name in journals])
    write_merged(Path(out), about, units)
    click.echo(f"wrote {out}: {len(units)} parts of {len(journals)} journals")
