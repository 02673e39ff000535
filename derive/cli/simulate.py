"""The command that simulates a declaration at finite size."""

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
    print_kernel,
    print_table,
    progress_bar,
    settings_line,
)
from derive.cli.problem import (
    backend_option,
    kernel_option,
    path_option,
    seed_option,
    seeds_option,
    size_option,
    solver_of,
    target_argument,
    values_argument,
    wanted_kernels,
    with_observables,
)

if TYPE_CHECKING:
    from numerics.simulation.samples import SimulatedLayer, Simulation
    from numerics.solver import Solver


@click.command(short_help="Simulate the declaration at finite size.")
@target_argument
@values_argument
@size_option
@seeds_option
@seed_option
@backend_option
@path_option
@kernel_option
@json_option
def simulate(
    target: str,
    pairs: tuple[str, ...],
    size: int,
    seeds: int,
    seed: int,
    backend: str,
    path: bool | None,
    kernels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Simulate the declaration at finite size: draw the disorder, run the equations, diagonalise.

    Nothing of the theory enters. Matrices are dense: memory grows as D^2 and time as D^3 per seed. A size that does
    not fit into the free memory is refused, with one that does.
    With one seed there is no standard error, and it is null.

    \b
    Keys of --json:
      setting, parameters, size, seeds
      eigenvalues              top (descending) and bottom (ascending): ten each per seed; of the first layer
      observables              name to mean and stderr, each a list over time; each also under its own name
      kernels                  with --kernel: name to axes, mean and stderr (see `derive solve --help`); responses by
                               running each sample twice more with small random sources
      layers                   where a model names its layers: layer, eigenvalues, and by comparison with the
                               spectrum at time 0 of the same seeds: outliers, outlier_path (at each of path_times:
                               a handful, all with --path), bbp_time, overlaps of the outliers with the spikes

    \b
    Examples:
      derive simulate SETTING --size 2000 --seeds 20
      derive simulate my_model.py eta=0.5 T=4 --size 500 --seeds 4 --json
    """
    from derive.loading import load_problem

    problem = load_problem(target, pairs)
    setting = problem.model.setting
    with progress_bar(f"simulating {setting}", as_json) as progress:
        from numerics.simulation.compare import mean_and_error
        from numerics.simulation.samples import simulate as run

        solver = solver_of(target, problem.model, progress)
        simulation = run(
            solver,
            problem.inputs,
            size,
            seeds,
            seed=seed,
            backend=backend,
            layers=problem.layers,
            times=times_to_watch(solver, problem.values, path),
            overlaps=solver.layered,
            two_time=wanted_kernels(kernels),
            progress=part_of(progress, 0.05, 1.0),
        )
    observables = {name: mean_and_error(series) for name, series in simulation.observables.items()}
    result = {
        "setting": setting,
        "parameters": problem.values,
        "size": size,
        "seeds": seeds,
        "eigenvalues": _ends(simulation.eigenvalues),
        "observables": observables,
        **({"kernels": simulated_kernels(simulation, solver)} if simulation.two_time else {}),
        **({"layers": [simulated_layer(layer) for layer in simulation.layers]} if solver.layered else {}),
    }
    result = plain(with_observables(result, observables))
    if as_json:
        print_json(result)
        return
    click.echo(f"{settings_line(setting, problem.values)}, size {size}, {seeds} seed{'s' if seeds > 1 else ''}")
    for layer in result.get("layers", [result]):
        if layer["eigenvalues"]["top"]:
            _print_ends(layer)
    from numerics.labelled import single_series

    means = single_series({name: series["mean"] for name, series in result["observables"].items()})
    errors = single_series({name: series["stderr"] or [] for name, series in result["observables"].items()})
    rows = [
        (name if i == 0 else "", str(time), *_pair({"mean": series, "stderr": errors.get(name) or None}, time))
        for name, series in means.items()
        for i, time in enumerate(handful(len(series)))
    ]
    if rows:
        print_table("observables", ("observable", "time", "mean", "stderr"), rows)
    for name, kernel in result.get("kernels", {}).items():
        print_kernel(name, kernel["mean"], kernel["stderr"], kernel["axes"])


def simulated_kernels(simulation: Simulation, solver: Solver) -> dict[str, dict[str, Any]]:
    """Two-time functions of a simulation for machines."""
    from numerics.simulation.compare import mean_and_error
    from numerics.two_time import axes_of, shown

    return {
        shown(name): {"axes": list(axes_of(solver.setting, name)), **mean_and_error(draws)}
        for name, draws in simulation.two_time.items()
    }


def times_to_watch(solver: Solver, values: dict[str, Any], path: bool | None) -> list[int]:
    """When to diagonalise besides the end: at a handful of times where layers have names, at all with --path."""
    if solver.setting.steps is None or path is False or (path is None and not solver.layered):
        return []
    count = int(values[solver.setting.steps]) + 1
    return list(range(count)) if path else handful(count)


def _ends(eigenvalues: list[Any]) -> dict[str, list[Any]]:
    return {"top": [e[::-1][:10] for e in eigenvalues], "bottom": [e[:10] for e in eigenvalues]}


def simulated_layer(layer: SimulatedLayer) -> dict[str, Any]:
    """One layer for machines; outliers by comparison with time 0."""
    from numerics.simulation.compare import mean_and_error

    paths = [layer.outliers(time) for time in layer.times]
    found = paths[-1] if paths else None
    overlaps = {side: mean_and_error(layer.outlier_overlaps(side)) for side in layer.overlaps} if paths else None
    return {
        "layer": int(layer.label) if layer.label.isdigit() else layer.label,
        "eigenvalues": _ends(layer.eigenvalues),
        "outliers": None if found is None else mean_and_error(found),
        "path_times": list(layer.times),
        "outlier_path": [mean_and_error(rows) for rows in paths],
        "bbp_time": next((time for time, rows in zip(layer.times, paths, strict=True) if rows.shape[1]), None),
        "overlaps": overlaps,
    }


def _print_ends(layer: dict[str, Any]) -> None:
    from numerics.simulation.compare import mean_and_error

    top, bottom = (mean_and_error(layer["eigenvalues"][end]) for end in ("top", "bottom"))
    ranks = [
        (str(rank + 1), *_pair(top, rank), *_pair(bottom, rank)) for rank in range(len(layer["eigenvalues"]["top"][0]))
    ]
    print_table(
        "eigenvalues, averaged over the seeds" + (f", layer {layer['layer']}" if "layer" in layer else ""),
        ("rank", "from the top", "stderr", "from the bottom", "stderr"),
        ranks,
    )


def _pair(series: dict[str, Any], index: int) -> tuple[str, str]:
    error = series["stderr"]
    return number(series["mean"][index]), "-" if error is None or error[index] is None else f"{error[index]:.2g}"
