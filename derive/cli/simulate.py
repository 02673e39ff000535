"""The command that simulates a declaration at finite size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import handful, print_kernel, print_table
from derive.cli.problem import takes, target_argument, values_argument, wanted_eigenvalues
from derive.cli.sweeping import Command, Flags, run, sweep_options
from numerics.options import options_of

if TYPE_CHECKING:
    from derive.results import Simulation


HELP = """
Simulate the declaration at finite size: draw the disorder, iterate the equations, diagonalise.

The simulation uses nothing of the theory. Matrices are dense: memory grows as D^2 and time as D^3 per seed, or as D^2
if only the ends of the spectrum are needed (--eigenvalues). A size that does not fit into the free memory is refused,
and the error gives the largest one that fits; --dry-run prints the memory of one sample. With one seed the standard
error is null.

Lists and ranges make a grid, as in `derive solve`. With --jobs, --on, --shard or a grid, samples are distributed over
processes. A sample does not depend on where it is drawn, and --seeds 40 with the journal of --seeds 20 draws twenty
more.

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
  alignments               of directions that the model observes with alignment(...) and those of --align: name,
                           side, and for the vectors of the ten largest and smallest eigenvalues (top, bottom) mean
                           and stderr of the squared cosine, by eigenvalue, time and label; of the first layer

\b
Examples:
  derive simulate SETTING --size 2000 --seeds 20
  derive simulate my_model.py eta=0.5 T=4 --size 500 --seeds 4 --json
  derive simulate my_model.py eta=0.1,0.2 --size 200 --seeds 4 --out samples.csv
"""


@click.command(short_help="Simulate the declaration at finite size.", help=HELP)
@target_argument
@values_argument
@takes(options_of("simulate"))
@sweep_options
def simulate(target: str, pairs: tuple[str, ...], **options: Any) -> None:
    """Simulate a declaration at one point or on a grid."""
    flags = Flags.taken_from(options)
    options["eigenvalues"] = wanted_eigenvalues(options["eigenvalues"], options["size"], flags.out, flags.plot, pairs)
    command = Command(
        "simulate",
        "simulating",
        lambda theory, given, progress: theory.simulate(given, **options, progress=progress),
        _print_simulation,
    )
    run(command, target, pairs, options, flags)


def _print_simulation(simulation: Simulation) -> None:
    import numpy as np

    from derive.results.frames import columns_of
    from derive.results.simulation import ENDS
    from numerics.support.formatting import shown_number

    def shown(draws: np.ndarray) -> str:
        spread = float(draws.std(ddof=1) / np.sqrt(len(draws))) if len(draws) > 1 else None
        return shown_number(float(draws.mean()), spread)

    click.echo(simulation.title)
    for layer in simulation.layers:
        ranks = range(min(ENDS, min(map(len, layer.eigenvalues))))
        lines = [
            (
                str(rank + 1),
                shown(np.array([e[-1 - rank] for e in layer.eigenvalues])),
                shown(np.array([e[rank] for e in layer.eigenvalues])),
            )
            for rank in ranks
        ]
        title = "eigenvalues, averaged over the seeds" + (f", layer {layer.label}" if layer.label else "")
        print_table(title, ("rank", "from the top", "from the bottom"), lines)
        directions = []
        for (name, side), squares in layer.alignments.items():
            tops, bottoms = (np.array([s[end].mean(axis=-1) for s in squares]) for end in (-1, 0))
            for i, place in enumerate(handful(tops.shape[1])):
                who = (name, side) if i == 0 else ("", "")
                when = str(place) if tops.shape[1] > 1 else ""  # a series begins at 0; a name has its own time
                directions.append((*who, when, shown(tops[:, place]), shown(bottoms[:, place])))
        if directions:
            heads = ("direction", "vector", "time", "of the largest", "of the smallest")
            print_table("alignments: squared cosines", heads, directions, text_columns=3)
    rows = []
    for name, values in simulation.observables.items():
        by_label = [columns_of(name, one) for one in values]
        for column in list(by_label[0])[:3]:
            draws = np.array([one[column] for one in by_label])
            rows += [
                (column if i == 0 else "", str(time), shown(draws[:, time]))
                for i, time in enumerate(handful(draws.shape[1]))
            ]
    if rows:
        print_table("observables", ("observable", "time", "mean"), rows)
    for name, kernel in simulation.kernels().items():
        print_kernel(name, kernel["mean"], kernel["stderr"], kernel["axes"])
