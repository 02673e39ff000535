"""Commands that compute: solve the theory, simulate at finite size, measure speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import (
    handful,
    json_option,
    number,
    part_of,
    plain,
    print_json,
    print_table,
    progress_bar,
    settings_line,
)

if TYPE_CHECKING:
    from derive.cli.output import Progress
    from derive.language.model import Model
    from numerics.solver import Solver

target_argument = click.argument("target", metavar="SETTING|FILE")
values_argument = click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
samples_option = click.option(
    "--samples",
    type=click.IntRange(min=100),
    metavar="N",
    help="Monte Carlo samples of the single-site process; only nonlinear laws are sampled.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random numbers: the same seed gives the same result.",
)
size_option = click.option(
    "--size",
    type=click.IntRange(min=10),
    default=1000,
    show_default=True,
    metavar="D",
    help="Size of the base sector, the first one declared; the others follow by their ratios.",
)
seeds_option = click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="K",
    help="Number of independent draws of all the disorder.",
)


def load_problem(target: str, pairs: tuple[str, ...]) -> tuple[Model, dict[str, float | int]]:
    """The model and all its parameter values, checked before any work is done."""
    from derive.loading import load_model, parameter_values

    model = load_model(target)
    return model, parameter_values(model, pairs)


def solver_of(target: str, model: Model, progress: Progress | None) -> Solver:
    """The generated solver: as built for a shipped setting, generated in memory otherwise."""
    from derive.loading import is_file_target
    from numerics.solver import load_built, load_solver

    built = None if is_file_target(target) else load_built(model.name)
    if built is not None and _belongs(built, model):
        return built
    if progress is not None:
        progress(0.0, "deriving")
    from derive.codegen import generate_files

    return load_solver(generate_files(model))


def _belongs(built: Solver, model: Model) -> bool:
    """Whether built code is of the declaration as it stands; `derive build --check` compares every byte."""
    from derive.codegen import declaration_digest

    return declaration_digest(model) == built.front.DECLARATION


@click.command(short_help="Solve the theory: bulk edges, outliers, order parameters.")
@target_argument
@values_argument
@samples_option
@seed_option
@json_option
def solve(target: str, pairs: tuple[str, ...], samples: int | None, seed: int, as_json: bool) -> None:
    """Solve the theory at infinite size: bulk edges, outliers, order parameters along the training.

    Outliers are eigenvalues of the declared matrix outside its bulk, largest first, repeated by multiplicity; for
    W^T W / N they are squared singular values over N. Linear laws are solved exactly and carry no error; nonlinear
    ones are sampled, and errors are one Monte Carlo standard error. Times count training steps from 0.

    \b
    Keys of --json:
      setting, parameters      what was solved
      bulk_edges               list of [low, high], ascending
      outliers                 floats, descending, above and below the bulk
      outlier_errors           one standard error each, null where exact
      observables              name to list over time
      diagnostics              residuals and how the numbers were found

    \b
    Examples:
      derive solve SETTING
      derive solve my_model.py eta=0.5 nu=1/2
      derive solve my_model.py eta=0.5 T=4 --json
      derive solve SETTING --samples 200000 --seed 1
    """
    model, values = load_problem(target, pairs)
    with progress_bar(f"solving {model.name}", as_json) as progress:
        from numerics.solver import solve as run

        solver = solver_of(target, model, progress)
        solution = run(solver, values, samples=samples, seed=seed, progress=part_of(progress, 0.1, 1.0))
    errors = solution.outlier_errors
    result = plain(
        {
            "setting": model.name,
            "parameters": values,
            "bulk_edges": solution.bulk_edges,
            "outliers": solution.outliers,
            "outlier_errors": errors,
            "observables": solution.observables,
            "diagnostics": solution.diagnostics,
        }
    )
    observable_errors = plain({"observable_errors": solution.observable_errors})["observable_errors"]
    if as_json:
        print_json(result)
    else:
        _print_solution(result, observable_errors)


def _print_solution(result: dict[str, Any], observable_errors: dict[str, list[float]] | None) -> None:
    click.echo(settings_line(result["setting"], result["parameters"]))
    edges, outliers = result["bulk_edges"], result["outliers"]
    if edges:
        print_table("bulk", ("low", "high"), [tuple(map(number, pair)) for pair in edges], text_columns=0)
        errors = result["outlier_errors"] or [None] * len(outliers)
        lines = [
            (_side(value, edges), f"{value:.10g}", "exact" if error is None else f"{error:.2g}")
            for value, error in zip(outliers, errors, strict=True)
        ]
        if lines:
            print_table("outliers", ("place", "value", "standard error"), lines)
        else:
            click.echo("no outliers: every eigenvalue lies in the bulk\n")
    rows: list[tuple[str, ...]] = []
    for name, series in result["observables"].items():
        spread = (observable_errors or {}).get(name)
        rows += [
            (name if i == 0 else "", str(time), number(series[time]), f"{spread[time]:.2g}" if spread else "exact")
            for i, time in enumerate(handful(len(series)))
        ]
    if rows:
        print_table("observables", ("observable", "time", "value", "standard error"), rows)
    for name, value in result["diagnostics"].items():
        click.echo(f"{name.replace('_', ' ')}: {_readable(value)}")


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


@click.command(short_help="Simulate the declaration at finite size.")
@target_argument
@values_argument
@size_option
@seeds_option
@seed_option
@json_option
def simulate(target: str, pairs: tuple[str, ...], size: int, seeds: int, seed: int, as_json: bool) -> None:
    """Simulate the declaration at finite size: draw the disorder, run the equations, diagonalise.

    Nothing of the theory enters. Matrices are dense: memory grows as D^2 and time as D^3 per seed.
    With one seed there is no standard error, and it is null.

    \b
    Keys of --json:
      setting, parameters, size, seeds
      eigenvalues              top (descending) and bottom (ascending): ten each per seed
      observables              name to mean and stderr, each a list over time

    \b
    Examples:
      derive simulate SETTING --size 2000 --seeds 20
      derive simulate my_model.py eta=0.5 T=4 --size 500 --seeds 4 --json
    """
    model, values = load_problem(target, pairs)
    with progress_bar(f"simulating {model.name}", as_json) as progress:
        from numerics.compare import mean_and_error
        from numerics.simulation import simulate as run

        solver = solver_of(target, model, progress)
        simulation = run(solver, values, size, seeds, seed=seed, progress=part_of(progress, 0.05, 1.0))
    result = plain(
        {
            "setting": model.name,
            "parameters": values,
            "size": size,
            "seeds": seeds,
            "eigenvalues": {
                "top": [e[::-1][:10] for e in simulation.eigenvalues],
                "bottom": [e[:10] for e in simulation.eigenvalues],
            },
            "observables": {name: mean_and_error(series) for name, series in simulation.observables.items()},
        }
    )
    if as_json:
        print_json(result)
        return
    click.echo(f"{settings_line(model.name, values)}, size {size}, {seeds} seed{'s' if seeds > 1 else ''}")
    if result["eigenvalues"]["top"]:
        top, bottom = (mean_and_error(result["eigenvalues"][end]) for end in ("top", "bottom"))
        ranks = [
            (str(rank + 1), *_pair(top, rank), *_pair(bottom, rank))
            for rank in range(len(result["eigenvalues"]["top"][0]))
        ]
        print_table(
            "eigenvalues, averaged over the seeds",
            ("rank", "from the top", "stderr", "from the bottom", "stderr"),
            ranks,
        )
    rows = [
        (name if i == 0 else "", str(time), *_pair(series, time))
        for name, series in result["observables"].items()
        for i, time in enumerate(handful(len(series["mean"])))
    ]
    if rows:
        print_table("observables", ("observable", "time", "mean", "stderr"), rows)


def _pair(series: dict[str, Any], index: int) -> tuple[str, str]:
    error = series["stderr"]
    return number(series["mean"][index]), "-" if error is None else f"{error[index]:.2g}"


@click.command(short_help="Measure speed, as ratios.")
@json_option
def bench(as_json: bool) -> None:
    """Measure speed: every figure is a ratio of two ways timed side by side in this run.

    \b
    Examples:
      derive bench
      derive bench --json
    """
    with progress_bar("measuring", as_json) as progress:
        from numerics.bench import run

        figures = run(progress)
    result = plain(
        {"figures": [{"name": f.name, "value": f.value, "unit": f.unit, "detail": f.detail} for f in figures]}
    )
    if as_json:
        print_json(result)
        return
    rows = [(f["name"], f["detail"], number(f["value"]), f["unit"]) for f in result["figures"]]
    print_table("", ("figure", "how it was measured", "value", "unit"), rows, text_columns=2)
