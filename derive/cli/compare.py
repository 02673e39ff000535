"""The command that sets theory against simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from derive.cli.problem import (
    backend_option,
    kernel_option,
    layer_data,
    path_option,
    rank_option,
    samples_option,
    seed_option,
    seeds_option,
    size_option,
    solver_of,
    target_argument,
    values_argument,
    wanted_kernels,
    with_observables,
)
from derive.cli.simulate import simulated_kernels, simulated_layer, times_to_watch

if TYPE_CHECKING:
    from numerics.simulation.samples import Simulation
    from numerics.solver import Solution


@click.command(short_help="Compare theory with simulation, and plot both.")
@target_argument
@values_argument
@size_option
@seeds_option
@samples_option
@rank_option
@seed_option
@backend_option
@click.option(
    "--plot", metavar="FILE.png", help="Draw the density with the bulk law and the outliers (.png, .pdf or .svg)."
)
@path_option
@kernel_option
@json_option
def compare(
    target: str,
    pairs: tuple[str, ...],
    size: int,
    seeds: int,
    samples: int | None,
    rank: int | None,
    seed: int,
    backend: str,
    plot: str | None,
    path: bool | None,
    kernels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare the theory with a finite-size simulation of the same declaration.

    The k-th outlier above the bulk is set against the k-th largest eigenvalue, below the bulk from the bottom, and
    observables are compared at a handful of times. Differences are in standard errors: the simulation's over the
    seeds and, where the theory was sampled, the theory's, added in quadrature. With few seeds the errors themselves
    are uncertain, so that three of them mean less. Overlaps are those of the outliers' vectors with the spikes.

    Without outliers the largest and smallest eigenvalues are set against the mean of the Tracy-Widom law, at edges that
    the density meets like a root; otherwise those that are no outliers are listed beside the edges for information.
    The first four moments of such a bulk are extrapolated from --size and about half of it, because their correction
    is as large as their fluctuation; where ratios give no whole sizes they are listed for information. Atoms are
    compared by their weight, in whole eigenvalues. In the plot, intervals of the bulk that could not be seen on one
    axis get axes of their own, and atoms are given in words.

    Corrections fall with the size, roughly as 1/D, so that very many seeds at a small size show them: then repeat
    with a larger --size. Models that name their layers are compared layer by layer, and at a handful of earlier times
    too (all with --path).

    \b
    Keys of --json:
      setting, parameters, size, seeds
      rows                     quantity, theory, theory_error (null where exact), simulation, stderr,
                               difference (in standard errors; null for information only), compared
      within_three_standard_errors, verdict, plot (where one was drawn)
      observables              name to theory, theory_error, mean, stderr, lists over time; each also under its own name
      kernels                  with --kernel: the keys of `derive solve` and, under simulation, those of
                               `derive simulate`; rows has them at a handful of times
      layers                   where a model names its layers: the keys of `derive solve` and, under simulation, those
                               of `derive simulate`

    \b
    Examples:
      derive compare SETTING --size 1000 --seeds 20
      derive compare my_model.py eta=0.5 --plot my_model.png
      derive compare my_model.py --size 500 --seeds 8 --json
    """
    check_plot(plot)
    if seeds < 2:
        raise click.UsageError("--seeds must be at least 2 here: one seed gives no standard error")
    from derive.loading import load_problem

    problem = load_problem(target, pairs)
    setting, values = problem.model.setting, problem.values
    if plot is not None and not problem.model.probes:
        raise click.UsageError(f"--plot: {setting} probes no matrix, so there is no density to draw")
    with progress_bar(f"comparing {setting}", as_json) as progress:
        from numerics.simulation.compare import compare as rows_of, verdict
        from numerics.simulation.samples import check_memory, simulate, smaller_size
        from numerics.solver import solve

        solver = solver_of(target, problem.model, progress)
        check_memory(solver, values, size)
        times = times_to_watch(solver, values, path)
        solution = solve(
            solver,
            problem.inputs,
            samples=samples,
            rank=rank,
            seed=seed,
            layers=problem.layers,
            path=bool(times),
            overlaps=True,
            two_time=wanted_kernels(kernels),
            progress=part_of(progress, 0.05, 0.3),
        )
        simulation = simulate(
            solver,
            problem.inputs,
            size,
            seeds,
            seed=seed,
            layers=problem.layers,
            times=times,
            overlaps=True,
            two_time=wanted_kernels(kernels),
            backend=backend,
            progress=part_of(progress, 0.3, 0.9),
        )
        bare = any(not layer.outliers for layer in solution.layers)
        half = smaller_size(solver, values, size) if bare else None
        smaller = None
        if half is not None:
            share = part_of(progress, 0.9, 0.97)
            smaller = simulate(
                solver, problem.inputs, half, seeds, seed=seed + 1, layers=problem.layers, progress=share
            )
        rows = rows_of(solution, simulation, smaller)
        within, sentence = verdict(rows, seeds)
        observables = _observables(solution, simulation)
        result = {
            "setting": setting,
            "parameters": values,
            "size": size,
            "seeds": seeds,
            "rows": [row.as_dict() for row in rows],
            "within_three_standard_errors": within,
            "verdict": sentence,
            "observables": observables,
            **({"kernels": _kernels(solution, simulation)} if solution.two_time else {}),
            **({"layers": _layers(solution, simulation)} if solver.layered else {}),
        }
        result = plain(with_observables(result, observables))
        if plot is not None:
            from numerics.plots.solutions import save_comparison

            save_comparison(
                Path(plot), solution, simulation, f"{settings_line(setting, values)}   (size {size}, {seeds} seeds)"
            )
            result["plot"] = plot
    if as_json:
        print_json(result)
        return
    click.echo(f"{settings_line(setting, values)}, size {size}, {seeds} seeds")
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


def _observables(solution: Solution, simulation: Simulation) -> dict[str, dict[str, Any]]:
    """Every observable at all times, theory beside simulation."""
    from numerics.simulation.compare import mean_and_error

    return {
        name: {
            "theory": series,
            "theory_error": (solution.observable_errors or {}).get(name),
            **mean_and_error(simulation.observables[name]),
        }
        for name, series in solution.observables.items()
    }


def _kernels(solution: Solution, simulation: Simulation) -> dict[str, dict[str, Any]]:
    """Two-time functions, theory beside simulation."""
    simulated = simulated_kernels(simulation, solution.solver)
    return {k.name: {**k.as_dict(), "simulation": simulated[k.name]} for k in solution.two_time.values()}


def _layers(solution: Solution, simulation: Simulation) -> list[dict[str, Any]]:
    """Every layer, theory beside simulation."""
    return [
        {**layer_data(layer), "simulation": simulated_layer(simulation.layer(layer.label))} for layer in solution.layers
    ]


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
