"""The command that sets theory against simulation."""

from __future__ import annotations

import click

from derive.cli.output import json_option, plain, print_json, print_table, progress_bar
from derive.cli.problem import (
    backend_option,
    check_plot,
    kernel_option,
    loaded,
    path_option,
    plot_option,
    rank_option,
    samples_option,
    save_plot,
    seed_option,
    seeds_option,
    size_option,
    target_argument,
    values_argument,
)


@click.command(short_help="Compare theory with simulation, and plot both.")
@target_argument
@values_argument
@size_option
@seeds_option
@samples_option
@rank_option
@seed_option
@backend_option
@plot_option
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
    from derive.errors import NumericalError

    check_plot(plot)
    if seeds < 2:
        raise click.UsageError("--seeds must be at least 2 here: one seed gives no standard error")
    theory, given, _ = loaded(target, pairs)
    with progress_bar(f"comparing {theory.declared.name}", as_json) as progress:
        found = theory.compare(
            given,
            size=size,
            seeds=seeds,
            samples=samples,
            rank=rank,
            seed=seed,
            backend=backend,
            path=path,
            kernels=kernels,
            progress=progress,
        )
    if found.theory.found is None or found.simulation.found is None:
        raise NumericalError((*found.theory.trouble, *found.simulation.trouble)[0])
    if plot is not None:
        save_plot(found.plot(), plot)
    if as_json:
        print_json(plain({**found.as_dict(), **({} if plot is None else {"plot": plot})}))
        return
    click.echo(found.title)
    print_table("", ("quantity", "theory", "simulation", "difference / error"), found.lines())
    click.echo(found.verdict)
    if plot is not None:
        click.echo(f"wrote {plot}")
