"""The command that sets theory against simulation."""

from __future__ import annotations

from pathlib import Path

import click

from derive.cli.output import (
    json_option,
    number,
    part_of,
    plain,
    print_json,
    print_table,
    progress_bar,
    settings_line,
)
from derive.cli.run import (
    load_problem,
    samples_option,
    seed_option,
    seeds_option,
    size_option,
    solver_of,
    target_argument,
    values_argument,
)


@click.command(short_help="Compare theory with simulation, and plot both.")
@target_argument
@values_argument
@size_option
@seeds_option
@samples_option
@seed_option
@click.option(
    "--plot", metavar="FILE.png", help="Draw the density with the bulk law and the outliers (.png, .pdf or .svg)."
)
@json_option
def compare(
    target: str,
    pairs: tuple[str, ...],
    size: int,
    seeds: int,
    samples: int | None,
    seed: int,
    plot: str | None,
    as_json: bool,
) -> None:
    """Compare the theory with a finite-size simulation of the same declaration.

    The k-th outlier above the bulk is set against the k-th largest eigenvalue, below the bulk from the bottom, and
    observables are compared at a handful of times. Differences are in standard errors: the simulation's over the
    seeds and, where the theory was sampled, the theory's, added in quadrature. With few seeds the errors themselves
    are uncertain, so that three of them mean less. The largest and smallest eigenvalues
    that are no outliers are listed beside the edges for information. Corrections fall with the size, roughly as
    1/D, so that very many seeds at a small size show them: then repeat with a larger --size.

    \b
    Keys of --json:
      setting, parameters, size, seeds
      rows                     quantity, theory, theory_error (null where exact), simulation, stderr,
                               difference (in standard errors; null for information only), compared
      within_three_standard_errors, verdict, plot (where one was drawn)

    \b
    Examples:
      derive compare SETTING --size 1000 --seeds 20
      derive compare my_model.py eta=0.5 --plot my_model.png
      derive compare my_model.py --size 500 --seeds 8 --json
    """
    check_plot(plot)
    if seeds < 2:
        raise click.UsageError("--seeds must be at least 2 here: one seed gives no standard error")
    model, values = load_problem(target, pairs)
    if plot is not None and model.probe is None:
        raise click.UsageError(f"--plot: {model.name} probes no matrix, so there is no density to draw")
    with progress_bar(f"comparing {model.name}", as_json) as progress:
        from numerics.compare import compare as rows_of, verdict
        from numerics.simulation import simulate
        from numerics.solver import solve

        solver = solver_of(target, model, progress)
        solution = solve(solver, values, samples=samples, seed=seed, progress=part_of(progress, 0.05, 0.3))
        simulation = simulate(solver, values, size, seeds, seed=seed, progress=part_of(progress, 0.3, 0.95))
        rows = rows_of(solution, simulation)
        within, sentence = verdict(rows, seeds)
        result = plain(
            {
                "setting": model.name,
                "parameters": values,
                "size": size,
                "seeds": seeds,
                "rows": [row.as_dict() for row in rows],
                "within_three_standard_errors": within,
                "verdict": sentence,
            }
        )
        if plot is not None:
            from numerics.plots import save_comparison

            save_comparison(
                Path(plot), solution, simulation, f"{settings_line(model.name, values)}   (size {size}, {seeds} seeds)"
            )
            result["plot"] = plot
    if as_json:
        print_json(result)
        return
    click.echo(f"{settings_line(model.name, values)}, size {size}, {seeds} seeds")
    lines = [
        (
            row["quantity"],
            number(row["theory"]),
            "exact" if row["theory_error"] is None else f"{row['theory_error']:.2g}",
            number(row["simulation"]),
            f"{row['stderr']:.2g}",
            "-" if row["difference"] is None else f"{row['difference']:+.2f}",
        )
        for row in result["rows"]
    ]
    print_table("", ("quantity", "theory", "theory error", "simulation", "stderr", "difference / error"), lines)
    click.echo(sentence)
    if plot is not None:
        click.echo(f"wrote {plot}")


def check_plot(plot: str | None) -> None:
    """Refuse a plot that cannot be written before any work is done."""
    if plot is None:
        return
    path = Path(plot)
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise click.UsageError(f"--plot {plot}: end the file name in .png, .pdf or .svg")
    if not path.parent.is_dir():
        raise click.UsageError(f"--plot {plot}: there is no directory {path.parent}; make it first")
    if path.is_dir():
        raise click.UsageError(f"--plot {plot} is a directory; give a file name")
