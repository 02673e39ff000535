"""The command that compares theory and simulation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import print_table
from derive.cli.problem import takes, target_argument, values_argument, wanted_eigenvalues
from derive.cli.sweeping import Command, Flags, run, sweep_options
from numerics.options import options_of

if TYPE_CHECKING:
    from derive.results import Comparison


HELP = """
Compare the theory with a finite-size simulation of the same declaration.

The k-th outlier above the bulk is compared with the k-th largest eigenvalue; outliers below it are counted from the
bottom. Outliers closer than their fluctuations repel each other; the repulsion is part of their error, and their
mean is compared too. Observables are compared at a few times. Differences are in standard errors: that of the
simulation over the seeds and, for a sampled theory, that of the theory, added in quadrature. With few seeds the
errors themselves are uncertain. Overlaps of the outliers' vectors with the spikes are corrected for the overlap
that occurs by chance at this size; for squared cosines with directions (--align, or alignment(...) in the model)
the error includes chance overlap.

Without outliers, the largest and smallest eigenvalues are compared with the mean of the Tracy-Widom law at edges with
a square-root density. Otherwise the outermost eigenvalues of the bulk are listed next to its edges for information.
The first four moments are extrapolated from --size and about half of it, because their correction is as large as
their fluctuation; if the ratios of sizes give no whole sizes, they are listed for information. Atoms are compared by
their weight, as a number of eigenvalues. In the plot, intervals of the bulk that are too narrow for a common axis get
axes of their own, and atoms are given as text.

Finite-size corrections fall roughly as 1/D, so very many seeds at a small size reveal them: repeat with a larger
--size. Models that name their layers are compared layer by layer, and also at a few earlier times (at all times
with --path). Lists and ranges make a grid, as in `derive solve`.

\b
Keys of --json:
  setting, parameters, size, seeds
  rows                     quantity, theory, theory_error (null where exact), simulation, stderr,
                           difference (in standard errors; null for information only), compared
  within_three_standard_errors, plot (where one was drawn)
  outcome                  agrees, disagrees or cannot tell; verdict has the sentence, expected_beyond the expected
                           number of quantities beyond three standard errors
  observables              name to theory, theory_error, mean, stderr, lists over time; each also under its own name
  kernels                  with --kernel: the keys of `derive solve` and, under simulation, those of
                           `derive simulate`; rows has them at a handful of times
  layers                   where a model names its layers: the keys of `derive solve` and, under simulation, those
                           of `derive simulate`

The last line says *agrees* if all quantities are within three standard errors, *disagrees* if one is beyond what
chance explains in as many quantities with as many seeds, and otherwise *cannot tell*, with a number of seeds that
would decide. The exit code is 0, 1 or 4, on a grid that of the worst point.

\b
Examples:
  derive compare SETTING --size 1000 --seeds 20
  derive compare my_model.py eta=0.5 --plot my_model.png
  derive compare my_model.py --size 500 --seeds 8 --json
  derive compare my_model.py eta=0.1,0.2 --size 200 --seeds 4 --out compared.csv
"""


EXIT_CODES = {"disagrees": 1, "cannot tell": 4}
"""Of outcomes, the worst first, as for claims that are refuted or not decided."""


@click.command(short_help="Compare theory with simulation, and plot both.", help=HELP)
@target_argument
@values_argument
@takes(options_of("compare"))
@sweep_options
def compare(target: str, pairs: tuple[str, ...], **options: Any) -> None:
    """Compare theory and simulation at one point or on a grid."""

    flags = Flags.taken_from(options)
    options["eigenvalues"] = wanted_eigenvalues(options["eigenvalues"], options["size"], flags.out, flags.plot, pairs)
    command = Command(
        "compare",
        "comparing",
        lambda theory, given, progress: theory.compare(given, **options, progress=progress),
        _print_comparison,
        lambda found: {**found.as_dict(), **({} if flags.plot is None else {"plot": flags.plot})},
    )
    result = run(command, target, pairs, options, flags)
    if result is not None:
        from derive.results.sweep import points_of

        outcomes = {point.outcome for point in points_of(result)}
        click.get_current_context().exit(next((code for one, code in EXIT_CODES.items() if one in outcomes), 0))


def _print_comparison(comparison: Comparison) -> None:
    from numerics.support.labelled import SHOWN

    click.echo(comparison.title)
    print_table("", ("quantity", "theory", "simulation", "difference / error"), comparison.lines())
    for name, series in comparison.theory.observables.items():
        count = math.prod(series.shape[1:])
        if count > SHOWN:
            click.echo(f"{name}: {SHOWN} of {count} labels are compared; --json has all")
    click.echo(comparison.verdict)
