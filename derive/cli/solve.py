"""The command that solves the theory, at one point or on a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import (
    handful,
    json_option,
    number,
    part_of,
    plain,
    print_json,
    print_kernel,
    print_table,
    progress_bar,
    settings_line,
)
from derive.cli.problem import (
    axes_of,
    bulk_data,
    kernel_option,
    layer_data,
    path_option,
    rank_option,
    samples_option,
    seed_option,
    solver_of,
    target_argument,
    values_argument,
    wanted_kernels,
    with_observables,
)

if TYPE_CHECKING:
    from derive.cli.output import Progress
    from derive.loading import Problem, Sweep
    from numerics.solver import Solution


@click.command(short_help="Solve the theory: bulk edges, outliers, order parameters.")
@target_argument
@values_argument
@samples_option
@rank_option
@seed_option
@path_option
@kernel_option
@click.option("--grid", metavar="LOW:HIGH:COUNT", help="Also give the density of the bulk on so many points.")
@click.option("--out", metavar="FILE", help="Also write the results: FILE.jsonl, one JSON object a point, or FILE.csv.")
@json_option
def solve(
    target: str,
    pairs: tuple[str, ...],
    samples: int | None,
    rank: int | None,
    seed: int,
    path: bool | None,
    kernels: tuple[str, ...],
    grid: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Solve the theory at infinite size: bulk edges, outliers, order parameters along the training.

    Outliers are eigenvalues of the declared matrix outside its bulk, largest first, repeated by multiplicity; for
    W^T W / N they are squared singular values over N. Linear laws are solved exactly and carry no error, nor do
    nonlinear ones of Gaussian fields, which are integrated; others are sampled, and errors are one Monte Carlo
    standard error. Times count training steps from 0.

    A value may be a list or a range, and several make a grid: nu=0.5,1,2 or eta=0.01:0.5:20 (twenty values from 0.01
    to 0.5). Points that differ in real parameters only are solved side by side; a point that diverges says so
    and the others go on. Models that name their layers take layer=0, layer=1, ... or layer=all. Models that take
    arrays of data take data=FILE.npz, a NumPy archive with an array for each name that `derive list SETTING` gives.

    \b
    Keys of --json:
      setting, parameters      what was solved
      bulk_edges               list of [low, high], ascending; of the first layer where there are several
      outliers                 floats, descending, above and below the bulk
      outlier_errors           one standard error each, null where exact
      overlaps                 for each outlier its squared overlap with the span of the spikes, right and left
                               (left: of the left singular vector; null for a matrix that is no W^T W)
      outlier_path, bbp_time   outliers at each time, and the first time with one (null if none); with --path
      outlier_path_errors      their standard errors where laws are sampled, else null
      largest_path             largest point of the spectrum at each time, outlier or edge
      atoms                    point masses of the bulk: at, weight
      moments                  of the bulk, orders 0 to 8, from the series of the resolvent at infinity
      curve                    polynomial in the resolvent G and z, zero on the bulk; null if too large to eliminate
      density                  x and y, with --grid; zero outside the bulk and at its very edges
      observables              name to list over time, of numbers or, with labels, of lists; each also under its name
                               null at times before something that it is made of is there, such as v(t - 5)
      observable_errors        their standard errors where laws are sampled, else null
      kernels                  with --kernel: name to axes ("t", "label of a", "s", "label of b", as far as there are
                               any), values and errors (null where nothing is sampled); a response is null where s > t
      layers                   the same for each layer, where a model names them
      diagnostics              residuals and how the numbers were found
    On a grid: setting, axes, points (parameters and the above, or parameters and error).

    \b
    Examples:
      derive solve SETTING
      derive solve my_model.py eta=0.5 nu=1/2
      derive solve my_model.py eta=0.5 T=4 --json
      derive solve SETTING --samples 200000 --seed 1
      derive solve my_model.py --kernel C[v,v] --kernel R[v,v] --json
      derive solve my_model.py --grid 0:10:400 --json
      derive solve my_model.py nu=0.5,1,2 eta=0.01:0.5:20 --out sweep.csv
    """
    from derive.cli.tables import check_table, write_table
    from derive.loading import load_sweep

    check_table(out)
    points_of_grid = _grid(grid)
    sweep = load_sweep(target, pairs)
    sampling = {"samples": samples, "seed": seed, "rank": rank, "two_time": wanted_kernels(kernels)}
    with progress_bar(f"solving {sweep.problems[0].model.setting}", as_json) as progress:
        if sweep.axes:
            points = _solve_grid(target, sweep, sampling, path, points_of_grid, progress)
        else:
            solution = _solve_one(target, sweep.problems[0], sampling, path, progress)
            points = [_data(sweep.problems[0], solution, points_of_grid, progress)]
    setting = sweep.problems[0].model.setting
    if out is not None:
        write_table(out, points)
    if not sweep.axes:
        if as_json:
            print_json(points[0])
        else:
            _print_solution(points[0], points[0]["observable_errors"])
    elif as_json:
        print_json({"setting": setting, "axes": axes_of(sweep), "points": points})
    else:
        _print_grid(setting, sweep, points)
    if out is not None and not as_json:
        click.echo(f"wrote {out}")
    if all("error" in point for point in points):
        click.get_current_context().exit(3)


def _solve_one(
    target: str, problem: Problem, sampling: dict[str, Any], path: bool | None, progress: Progress | None
) -> Solution:
    from numerics.solver import solve as run

    solver = solver_of(target, problem.model, progress)
    follow = solver.layered if path is None else path
    return run(
        solver,
        problem.inputs,
        **sampling,
        layers=problem.layers,
        path=follow,
        overlaps=True,
        progress=part_of(progress, 0.1, 1.0),
    )


def _solve_grid(
    target: str,
    sweep: Sweep,
    sampling: dict[str, Any],
    path: bool | None,
    grid: list[float] | None,
    progress: Progress | None,
) -> list[dict[str, Any]]:
    """All points; those that share a model and its whole numbers in one computation."""
    from derive.errors import NumericalError
    from numerics.solver import solve_many

    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, problem in enumerate(sweep.problems):
        whole = [problem.values[p.name] for p in problem.model.parameters if p.domain.whole]
        groups.setdefault((problem.model.name, problem.layers, *whole), []).append(index)
    points: list[dict[str, Any]] = [{} for _ in sweep.problems]
    done = 0
    for members in groups.values():
        first = sweep.problems[members[0]]
        share = part_of(progress, done / len(points), (done + len(members)) / len(points))
        solver = solver_of(target, first.model, share)
        solutions = solve_many(
            solver,
            [sweep.problems[i].inputs for i in members],
            **sampling,
            layers=first.layers,
            path=solver.layered if path is None else path,
            overlaps=True,
            progress=share,
        )
        for index, solution in zip(members, solutions, strict=True):
            problem = sweep.problems[index]
            try:
                if isinstance(solution, NumericalError):
                    raise solution
                points[index] = _data(problem, solution, grid)
            except NumericalError as error:
                points[index] = plain(
                    {"setting": problem.model.setting, "parameters": problem.values, "error": str(error)}
                )
        done += len(members)
    return points


def _grid(text: str | None) -> list[float] | None:
    """The points of low:high:count."""
    if text is None:
        return None
    parts = text.split(":")
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        good = len(parts) == 3 and math.isfinite(low) and math.isfinite(high) and low < high and 2 <= count <= 10**6
    except (ValueError, IndexError):
        good = False
    if not good:
        raise click.UsageError(f"--grid {text}: write LOW:HIGH:COUNT, such as 0:10:400")
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def _data(
    problem: Problem, solution: Solution, grid: list[float] | None, progress: Progress | None = None
) -> dict[str, Any]:
    """A solution for machines."""
    layers = [{**layer_data(layer), **bulk_data(solution, layer, grid, progress)} for layer in solution.layers]
    first = layers[0] if layers else {}
    bulk = ("atoms", "moments", "curve", "density")
    extra = (*bulk, "overlaps", "outlier_path", "outlier_path_errors", "largest_path", "bbp_time")
    result = {
        "setting": problem.model.setting,
        "parameters": problem.values,
        "bulk_edges": solution.bulk_edges,
        "outliers": solution.outliers,
        "outlier_errors": solution.outlier_errors,
        **{key: first[key] for key in extra if key in first},
        "observables": solution.observables,
        "observable_errors": solution.observable_errors,
        **({"kernels": {k.name: k.as_dict() for k in solution.two_time.values()}} if solution.two_time else {}),
        **({"layers": layers} if solution.solver.layered else {}),
        "diagnostics": solution.diagnostics,
    }
    found: dict[str, Any] = plain(with_observables(result, solution.observables))
    return found


def _print_solution(result: dict[str, Any], observable_errors: dict[str, list[float]] | None) -> None:
    click.echo(settings_line(result["setting"], result["parameters"]))
    for layer in result.get("layers", [result]):
        if layer["bulk_edges"]:
            _print_layer(layer, f", layer {layer['layer']}" if "layer" in layer else "")
    rows: list[tuple[str, ...]] = []
    from numerics.labelled import single_series

    spreads = single_series(observable_errors or {})
    for name, series in single_series(result["observables"]).items():
        spread = spreads.get(name)
        rows += [
            (name if i == 0 else "", str(time), number(series[time]), _error_text(spread, time))
            for i, time in enumerate(handful(len(series)))
        ]
    if rows:
        print_table("observables", ("observable", "time", "value", "standard error"), rows)
    for name, kernel in result.get("kernels", {}).items():
        print_kernel(name, kernel["values"], kernel["errors"], kernel["axes"])
    for name, value in result["diagnostics"].items():
        click.echo(f"{name.replace('_', ' ')}: {_readable(value)}")


def _error_text(spread: Sequence[float | None] | None, time: int) -> str:
    if spread is None:
        return "exact"
    error = spread[time]
    return "-" if error is None else f"{error:.2g}"


def _print_layer(layer: dict[str, Any], named: str) -> None:
    edges, outliers = layer["bulk_edges"], layer["outliers"]
    print_table(f"bulk{named}", ("low", "high"), [tuple(map(number, pair)) for pair in edges], text_columns=0)
    errors = layer["outlier_errors"] or [None] * len(outliers)
    overlaps = layer.get("overlaps") or [{"right": None, "left": None}] * len(outliers)
    lines = [
        (
            _side(value, edges),
            f"{value:.10g}",
            "exact" if error is None else f"{error:.2g}",
            *map(number, seen.values()),
        )
        for value, error, seen in zip(outliers, errors, overlaps, strict=True)
    ]
    if lines:
        columns = ("place", "value", "standard error", "overlap with spikes, right", "left")
        print_table(f"outliers{named}", columns, lines)
    else:
        click.echo(f"no outliers{named}: every eigenvalue lies in the bulk\n")
    if layer.get("moments"):
        click.echo(f"moments of the bulk{named}: {', '.join(map(number, layer['moments'][:5]))}, ...\n")
    if layer.get("density"):
        x, y = layer["density"]["x"], layer["density"]["y"]
        points = [(number(x[i]), number(y[i])) for i in handful(len(x), 11)]
        print_table(f"density of the bulk{named} (all points with --json)", ("x", "density"), points, text_columns=0)
    if layer.get("outlier_path") is not None and layer["bbp_time"] is not None:
        click.echo(f"first outlier{named} at time {layer['bbp_time']}\n")


def _print_grid(setting: str, sweep: Sweep, points: list[dict[str, Any]]) -> None:
    from derive.cli.tables import row_of

    rows = [row_of(point) for point in points]
    fixed = {name: value for name, value in points[0]["parameters"].items() if name not in dict(sweep.axes)}
    click.echo(f"{settings_line(setting, fixed)}, {len(points)} points; observables are those of the last time")
    axes = [name for name, _ in sweep.axes]
    hidden = ("lower_edge", "upper_edge", "smallest", "outliers", "intervals")
    others = [
        key
        for key in dict.fromkeys(k for row in rows for k in row)
        if key not in points[0]["parameters"] and not key.startswith(hidden)
    ]
    cells = [
        [_readable(row[name]) for name in axes] + ["" if row.get(k) is None else _readable(row[k]) for k in others]
        for row in rows
    ]
    print_table("", (*axes, *others), cells, text_columns=0)


def _readable(value: Any) -> str:
    """A diagnostic in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{name} {_readable(part)}" for name, part in value.items())
    if isinstance(value, list):
        return "; ".join(map(_readable, value)) or "none"
    return number(value) if isinstance(value, float) else str(value)


def _side(value: float, edges: list[list[float]]) -> str:
    if value > edges[-1][1]:
        return "above the bulk"
    return "below the bulk" if value < edges[0][0] else "in a gap"
