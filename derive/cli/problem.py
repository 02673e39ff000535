"""What the computing commands share: arguments, options, and the generated solver of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from derive.cli.output import Progress
    from derive.language.model import Model
    from derive.loading import Sweep
    from numerics.solver import Layer, Solution, Solver

target_argument = click.argument("target", metavar="SETTING|FILE")
values_argument = click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
samples_option = click.option(
    "--samples",
    type=click.IntRange(min=100),
    metavar="N",
    help="Monte Carlo samples of the single-site process; for nonlinear laws of what is not Gaussian.",
)
rank_option = click.option(
    "--rank",
    type=click.IntRange(min=2),
    metavar="R",
    help="Sampled laws: most directions of the past to remember of each field; as many as fit unless given.",
)
backend_option = click.option(
    "--backend",
    type=click.Choice(("numpy", "jax")),
    default="numpy",
    show_default=True,
    help="What the simulation runs on; jax uses an accelerator where JAX finds one.",
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
kernel_option = click.option(
    "--kernel",
    "kernels",
    multiple=True,
    metavar="C[a,b]|R[a,b]",
    help="A two-time function of two fields: C[a,b](t,s) = <a(t) b(s)>, or R[a,b](t,s), how a(t) answers to a source "
    "in the equation of b at s. May be repeated.",
)
path_option = click.option(
    "--path/--no-path",
    "path",
    default=None,
    help="The spectrum at every time, not only at the end; on by default where a model names its layers.",
)


def solver_of(target: str, model: Model, progress: Progress | None) -> Solver:
    """The generated solver: as built for a shipped setting, otherwise derived now and kept for the next time."""
    from derive.loading import is_file_target
    from numerics.solver import load_built, load_solver

    built = None if is_file_target(target) else load_built(model.name)
    if built is not None and _belongs(built, model):
        return built
    if progress is not None:
        progress(0.0, "deriving")
    from derive.codegen.store import stored_files

    return load_solver(stored_files(model))


def _belongs(built: Solver, model: Model) -> bool:
    """Whether built code is of the declaration as it stands; `derive build --check` compares every byte."""
    from derive.codegen import declaration_digest

    return declaration_digest(model) == built.setting.declaration


def wanted_kernels(texts: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    """Two-time functions as they are asked for on the command line."""
    from numerics.two_time import parsed

    return tuple(map(parsed, texts))


def bulk_data(
    solution: Solution, layer: Layer, grid: Sequence[float] | None, progress: Progress | None = None
) -> dict[str, Any]:
    """Atoms, moments, curve and density of the bulk of a layer for machines."""
    import numpy as np

    matrix = solution.solver.matrix(layer.label)
    place = f"(z - {matrix.plus})" if matrix.plus else "z"
    data: dict[str, Any] = {
        "atoms": layer.diagnostics["atoms"],
        "moments": layer.moments,
        "curve": None if matrix.bulk.curve_text is None else matrix.bulk.curve_text.format(z=place),
    }
    if grid is not None:
        data["density"] = {"x": list(grid), "y": solution.density(np.array(grid), layer.label, progress)}
    return data


def axes_of(sweep: Sweep) -> dict[str, list[Any]]:
    """The values along each axis of a grid, as they are among the parameters."""
    return {name: list(dict.fromkeys(p.values[name] for p in sweep.problems)) for name, _ in sweep.axes}


def layer_data(layer: Layer) -> dict[str, Any]:
    """One layer of a solution for machines."""
    return {
        "layer": int(layer.label) if layer.label.isdigit() else layer.label,
        "bulk_edges": layer.bulk_edges,
        "outliers": layer.outliers,
        "outlier_errors": layer.outlier_errors,
        "outlier_path": layer.outlier_path,
        "outlier_path_errors": layer.outlier_path_errors,
        "largest_path": layer.largest_path,
        "bbp_time": layer.bbp_time,
        "overlaps": layer.overlaps,
        "diagnostics": layer.diagnostics,
    }


def with_observables(result: dict[str, Any], observables: dict[str, Any]) -> dict[str, Any]:
    """The result with each observable also under its own name, where no other key has that name."""
    return {**result, **{name: series for name, series in observables.items() if name not in result}}


def named_with_choices(words: tuple[str, ...]) -> list[tuple[str, dict[str, int | str]]]:
    """Models with the choices that follow each."""
    found: list[tuple[str, dict[str, int | str]]] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            found.append((word, {}))
        elif not found:
            raise click.UsageError(f"{word} chooses from no model: name the model first")
        else:
            found[-1][1][name.strip()] = value.strip()
    return found
