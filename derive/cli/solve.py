"""The command that solves the theory, at one point or on a grid."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import handful, print_kernel, print_table
from derive.cli.problem import OneOf, takes, target_argument, values_argument
from derive.cli.sweeping import Command, Flags, run, sweep_options
from numerics.options import options_of

if TYPE_CHECKING:
    from derive.results import Layer, Solution
    from numerics.support.reports import LayerDiagnostics, SamplingReport, TrainingMethod

SHOWN_LABELS = 3
"""Labels of an observable in a table for people."""

HELP = """
Solve the theory at infinite size: bulk edges, outliers, order parameters along the training.

Outliers are eigenvalues of the declared matrix outside its bulk, in descending order, repeated by multiplicity. For
W^T W / N they are squared singular values over N. Linear laws are solved exactly. Nonlinear laws of Gaussian fields
are integrated by quadrature. All others are sampled, and errors are one Monte Carlo standard error; the expected
time and memory are printed first. Times count training steps from 0.

A value may be a list or a range, and several make a grid: nu=0.5,1,2 or eta=0.01:0.5:20 (twenty values from 0.01
to 0.5). Points that differ only in real parameters are solved in one batch. A point that diverges is reported, and
the others continue. Finished points are kept beside the file of --out until it is written, or in --journal: after
an interruption the same command resumes. Results do not depend on --jobs, --on or --shard.

Models that name their layers take layer=0, layer=1, ... or layer=all. Models that take arrays of data take
data=FILE.npz, a NumPy archive with an array for each name that `derive list SETTING` gives.

\b
Keys of --json:
  setting, parameters      what was solved
  digest                   of all other keys; --theory of derive spectrum refuses what was changed
  bulk_edges               list of [low, high], ascending; of the first layer where there are several
  edge_errors              one standard error for each of them, null where the bulk is exact
  outliers                 floats, descending, above and below the bulk
  outlier_errors           one standard error each, null where exact
  overlaps                 for each outlier its squared overlap with the span of the spikes, right and left
                           (left: of the left singular vector; null for a matrix that is no W^T W)
  alignments               squared cosines of the outliers' vectors with directions: those that the model observes
                           with alignment(...) and those of --align; each with name, side (right or left), axes
                           (outlier, time, label, as far as it has several), times, values, errors
  alignment_path           with --path the same list at each time, for the outliers that exist then
  outlier_path, bbp_time   outliers at each time, and the first time with one (or "never"); with --path
  outlier_path_errors      their standard errors where laws are sampled, else null
  bulk_path                bulk_edges at each time; null where they are the same at all times
  largest_path             largest point of the spectrum at each time, outlier or edge
  atoms                    point masses of the bulk: at, weight
  moments                  of the bulk, orders 0 to 8, from the series of the resolvent at infinity
  curve                    polynomial in the resolvent G and z, zero on the bulk; null if too large to eliminate
  density                  x and y, with --grid; zero outside the bulk and at its edges
  resolvent                with --resolvent, for each point z and values: G, the normalised trace of R = 1/(z - M),
                           and for matrices A, B of spectrum(..., between=...) "A" for tr R A, "A R" for tr R A R
                           and "A R B" for tr R A R B; each number as [real part, imaginary part]
  observables              name to list over time, of numbers or, with labels, of lists; each also under its name
                           null at times before all of its fields exist, as for v(t - 5) at t = 4
  observable_errors        their standard errors where laws are sampled, else null
  kernels                  with --kernel: name to axes ("t", "label of a", "s", "label of b", as far as there are
                           any), values and errors (null where nothing is sampled); a response is null where s > t
  layers                   the same for each layer, where a model names them
  certificate              what was checked: name, layer, what, value, expected, closeness, status, note of each
  method                   how the training level was computed: closure (exact, quadrature or sampled); quadrature (null
                           or over, nodes per axis, coarser nodes, error: the relative change between the two);
                           sampling (null or samples, replicates, seed, draws, responses, rank of the past,
                           truncated_variance, resolution, bias with share and doubt, rank_effect in errors, memory in
                           bytes of passes, moments and outliers)
  diagnostics              how the spectrum of a layer was computed: residual of A(z) at the outliers, condition of the
                           eigenproblem, reduced (A(z) is an eigenproblem), spiked, bulk (way, responses, nodes, error),
                           spike_directions (side to dimension of the span and number of spikes); null unless they
                           apply: outlier_errors (way, discrepancy in errors, reason), undecided (edge and its error),
                           overlaps (why there are none, rows of A(z)), overlap_errors, path (rows of the eigenproblem
                           where it is left out), path_errors (times, of them solved anew, of them unknown)
On a grid: setting, axes, points (parameters and the above, or parameters and error).

\b
Examples:
  derive solve SETTING
  derive solve my_model.py eta=0.5 nu=1/2
  derive solve my_model.py eta=0.5 T=4 --json
  derive solve SETTING --samples 200000 --seed 1
  derive solve my_model.py --kernel C[u,u] --kernel R[e,u] --json
  derive solve my_model.py --align teacher --align "u(3)"
  derive solve my_model.py --grid 0:10:400 --json
  derive solve my_model.py --resolvent -0.5 --resolvent 1+0.1j
  derive solve my_model.py --resolvent 0.5:2:4 --side above --json
  derive solve my_model.py nu=0.5,1,2 eta=0.01:0.5:20 --out sweep.csv --plot sweep.png
  derive solve my_model.py eta=0.01:0.5:20 --jobs 2 --dry-run
"""


@click.command(short_help="Solve the theory: bulk edges, outliers, order parameters.", help=HELP)
@target_argument
@values_argument
@takes(options_of("solve"))
@click.option(
    "--grid",
    metavar="LOW:HIGH:COUNT",
    help="Also give the density of the bulk on this range, or at points such as 0.1,0.5.",
)
@click.option(
    "--resolvent",
    "places",
    multiple=True,
    metavar="Z",
    help="Also give the resolvent at Z, such as 1+0.1j, or at LOW:HIGH:COUNT real points; may be repeated.",
)
@click.option("--side", type=OneOf("above", "below"), help="The half plane from which --resolvent approaches the bulk.")
@sweep_options
@click.option("-v", "--verbose", is_flag=True, help="Also print how the numbers were computed.")
def solve(
    target: str,
    pairs: tuple[str, ...],
    grid: str | None,
    places: tuple[str, ...],
    side: str | None,
    verbose: bool,
    **options: Any,
) -> None:
    """Solve the theory at one point or on a grid."""
    points_of_grid, asked, flags = _grid(grid), _places(places), Flags.taken_from(options)
    if options["memory"] is not None:
        from derive.inputs.problems import makes_a_grid

        if makes_a_grid(pairs):
            raise click.UsageError("--memory applies to a single point; give each parameter one value")

    def solved(theory: Any, given: dict[str, Any], progress: Any) -> Solution:
        found: Solution = theory.solve(given, **options, progress=progress)
        if asked and not found.failed:  # before it is written, so that a file has them
            for layer in found.layers:
                found.resolvents(asked, layer.label, side)
        return found

    command = Command(
        "solve",
        "solving",
        solved,
        lambda solution: _print_solution(solution, points_of_grid, asked, side, verbose),
        lambda solution: solution.as_dict(points_of_grid, asked, side),
        (lambda solution: _print_resolvents(solution, asked, side)) if asked else None,
    )
    run(command, target, pairs, options, flags)


def _print_resolvents(solution: Solution, asked: list[complex], side: str | None) -> None:
    """Print traces of the resolvent at the points of a grid."""
    click.echo(solution.made.point)
    for layer in solution.layers:
        _print_resolvent(solution, layer, asked, side)


def _places(texts: tuple[str, ...]) -> list[complex]:
    """The points of --resolvent: complex numbers, or low:high:count."""
    found: list[complex] = []
    for text in texts:
        if ":" in text:
            found += map(complex, _range(f"--resolvent {text}", text) or ())
            continue
        try:
            found.append(complex(text.replace(" ", "").replace("i", "j")))
        except ValueError:
            raise click.UsageError(f"--resolvent {text}: write a number such as 1+0.1j, or LOW:HIGH:COUNT") from None
    return found


def _grid(text: str | None) -> list[float] | None:
    """Return the points of --grid: a range, or a list of numbers."""
    if text is None or ":" in text:
        return None if text is None else _range(f"--grid {text}", text)
    try:
        points = [float(part) for part in text.split(",")]
    except ValueError:
        points = [math.nan]
    if not all(map(math.isfinite, points)):
        raise click.UsageError(f"--grid {text}: write points, such as 0.1,0.5, or LOW:HIGH:COUNT, such as 0:10:400")
    return points


def _range(option: str, text: str) -> list[float]:
    """The points of low:high:count."""
    parts = text.split(":")
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        good = len(parts) == 3 and math.isfinite(low) and math.isfinite(high) and low < high and 2 <= count <= 10**6
    except (ValueError, IndexError):
        good = False
    if not good:
        raise click.UsageError(f"{option}: write LOW:HIGH:COUNT, such as 0:10:400")
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def _print_solution(
    solution: Solution, grid: list[float] | None, asked: list[complex], side: str | None, verbose: bool
) -> None:
    from derive.results.frames import columns_of
    from numerics.support.formatting import shown_number

    click.echo(solution.made.point)
    for layer in solution.layers:
        _print_layer(layer, grid)
        if asked:
            _print_resolvent(solution, layer, asked, side)
    rows: list[tuple[str, ...]] = []
    for name, series in solution.observables.items():
        spreads = {} if solution.errors is None else columns_of(name, solution.errors[name])
        columns = columns_of(name, series)
        for column, values in list(columns.items())[:SHOWN_LABELS]:
            rows += [
                (
                    column if i == 0 else "",
                    str(time),
                    shown_number(values[time], spreads[column][time] if spreads else None),
                )
                for i, time in enumerate(handful(len(values)))
            ]
        if len(columns) > SHOWN_LABELS:
            rows.append((f"{name}: {len(columns) - SHOWN_LABELS} more labels with --json", "", ""))
    if rows:
        print_table("observables", ("observable", "time", "value"), rows)
    if not solution.failed:
        for kernel in solution.two_time.values():
            print_kernel(kernel.name, kernel.values, kernel.errors, kernel.axes)
    click.echo(_how(solution))
    _print_certificate(solution, verbose)
    for reason in solution.trouble:
        click.echo(f"not to be trusted: {reason}")
    if verbose:
        _print_record("", solution.method.sampling or solution.method)
        for layer in solution.layers:
            _print_record(f", layer {layer.label}" if layer.label else "", layer.diagnostics)


def _print_certificate(solution: Solution, verbose: bool) -> None:
    """Print one line, or a table if a check failed or details are requested."""
    found = solution.certificate
    if found is None:
        return
    click.echo(f"certificate: {found.summary}")
    if verbose or not found:
        print_table("", ("check", "compared", "how closely", "outcome"), found.rows(), text_columns=4)


def _how(solution: Solution) -> str:
    """The method of a computation, in plain words."""
    told = solution.method.sentence
    return told if solution.exact else f"{told}; in brackets one standard error"


def _print_layer(layer: Layer, grid: list[float] | None) -> None:
    from numerics.support.formatting import grouped, shown_number

    named = f", layer {layer.label}" if layer.label else ""
    edges = ["  to  ".join(map(shown_number, pair)) for pair in layer.bulk_edges]
    click.echo(f"\nbulk{named}: {'; '.join(edges)}")
    for at, weight in layer.atoms:
        click.echo(f"  atom at {shown_number(at)} of weight {shown_number(weight)}")
    spreads, overlaps = layer.outlier_errors, layer.overlaps or {}
    lines = []
    for first, count, value in grouped(layer.outliers):
        text = f"{value:.10g}" if spreads is None else shown_number(value, float(spreads[first]))
        cells = [shown_number(overlaps[side][first]) for side in ("right", "left") if side in overlaps]
        lines.append((layer.side(value), text + (f"  x {count}" if count > 1 else ""), *cells))
    if lines:
        sides = [f"overlap, {side}" for side in ("right", "left") if side in overlaps]
        print_table(f"outliers{named}", ("place", "value", *sides), lines)
    elif len(layer.bulk_edges) and layer.diagnostics.spiked:
        click.echo(f"no outliers{named}: every eigenvalue lies in the bulk")
    elif len(layer.bulk_edges):
        click.echo(f"the matrix{named} has no spikes: its spectrum is the bulk")
    directions = [(*row.split("|"), number) for row, number in layer.alignment_rows()]
    if directions:
        heads = ("direction", "vector", "outlier", "time", "squared cosine")
        print_table(f"alignments{named}", heads, directions, text_columns=4)
    if layer.bbp_time is not None and lines:
        click.echo(f"first outlier{named} at time {layer.bbp_time}")
    directions = [(*row.split("|"), number) for row, number in layer.alignment_path_rows()]
    if directions:
        heads = ("direction", "vector", "outlier", "at time", "squared cosine")
        print_table(f"alignments along the path{named}", heads, directions, text_columns=4)
    if grid is not None:
        density = layer.density(grid)
        points = [(shown_number(grid[i]), shown_number(density[i])) for i in handful(len(grid), 11)]
        print_table(f"density of the bulk{named} (all points with --json)", ("x", "density"), points, text_columns=0)


def _print_resolvent(solution: Solution, layer: Layer, asked: list[complex], side: str | None) -> None:
    rows = []
    for one in solution.resolvents(asked, layer.label, side):
        z = _complex(one["z"])
        for name, value in one["values"].items():
            rows.append((z, name if name == "G" else f"tr R {name}", _complex(value)))
            z = ""
    named = f", layer {layer.label}" if layer.label else ""
    print_table(f"resolvent R = 1/(z - M){named}", ("z", "trace", "value"), rows, text_columns=2)


def _complex(value: list[float]) -> str:
    from numerics.support.formatting import shown_number

    real, imaginary = value
    if imaginary == 0:
        return shown_number(real)
    return f"{shown_number(real)} {'-' if imaginary < 0 else '+'} {shown_number(abs(imaginary))}j"


def _print_record(named: str, record: TrainingMethod | SamplingReport | LayerDiagnostics) -> None:
    """Print one line for each field of a record that applies."""
    for one in fields(record):
        value = getattr(record, one.name)
        if value is not None and value != {}:
            click.echo(f"{one.name.replace('_', ' ')}{named}: {_readable(value)}")


def _readable(value: Any) -> str:
    """A diagnostic in words."""
    from numerics.support.formatting import shown_cell
    from numerics.support.reports import Described

    if isinstance(value, Described):
        return value.sentence
    if isinstance(value, dict):
        return ", ".join(f"{name} {_readable(part)}" for name, part in value.items())
    return shown_cell(value)
