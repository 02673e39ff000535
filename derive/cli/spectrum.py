"""The command that fits spectra of a trained network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from derive.cli import completion
from derive.cli.output import json_option, plain, print_json, progress_bar
from derive.cli.problem import AsTyped, OneOf, check_plot, save_plot

if TYPE_CHECKING:
    from derive.results import Spectra


HELP = """
Show the bulk and the outliers of every weight matrix in a checkpoint you already have.

FILE is .npz, .safetensors, or a PyTorch state dict (.pt, .pth, .bin) where torch is installed. Nothing in it is ever
executed: pickled objects are refused, and torch loads weights only. With AFTER, a later checkpoint of the same
network, each matrix is shown before and after. A damaged array is listed and skipped; duplicate arrays are shown
once.

At the start of training a weight matrix is noise, and its singular values follow the law of Marchenko and Pastur
(MP); learning first appears as a few singular values that leave this bulk. For each matrix of R rows and C
columns, as stored: the scale of the bulk is fitted to the middle of the spectrum, so that outliers do not enter.
Singular values are those of W / sqrt(C), with edges scale |1 -+ sqrt(R/C)|; eigenvalues are those of W^T W / R,
with edges scale^2 (1 -+ sqrt(C/R))^2. The distance beyond the edge is in Tracy-Widom units: the scale, falling as
size^(-2/3), by which the largest eigenvalue of noise fluctuates; its probability under noise alone is the p-value.
The error of an outlier is the size of its fluctuations if learned directions are independent of the noise. Convolution
kernels are unfolded: rows are (k1, output channel), columns (k2, input channel).

KS is the largest distance between the distribution of the bulk and the fitted law; noise stays below the bound beside
it 999 times out of 1000. Above that bound the bulk is near Marchenko-Pastur (KS at most 0.05, at most 5% beyond the
edge), and an outlier must also clear the misfit of the edge; otherwise it is not Marchenko-Pastur, and values beyond
the edge form a tail. Neither gets p-values. In these cases, and if more than 5% lie beyond, the law of one gradient
step with extensively many outputs is fitted too (one of the settings that ship; scale, chi and gamma are three
parameters, where MP has one). "law" says which of them describes the matrix up to noise: MP,
extensive, or neither. With three parameters to fit, other bulks of noise with unequal rows or heavy tails can look
extensive at sizes of a few hundred.

PR is the participation ratio 1 / sum u_i^4 of the vectors of the largest singular value: the number of rows or
columns that carry it, n / 3 for a random direction. Do not trust it for a value that is not an outlier, lies near the
edge or has a neighbour within three standard errors. "tail" is the exponent of a power law for the density of the
largest eigenvalues (Hill's maximum-likelihood estimator, start as in Clauset, Shalizi and Newman), with a bootstrap
error. It is printed only where no bulk law describes the spectrum, the fit is good and an exponential is worse; a
log-normal tail is rarely excluded.

Singular values come from the smaller Gram matrix, so that an embedding of 50000 x 768 takes seconds; where this
would leave the smallest fewer than four digits they come from a QR decomposition.

With --theory the matrix is rescaled so that the upper edges coincide, the factor is printed, and outliers are
compared rank by rank.

\b
Keys of --json:
  file, level, matrices, tied (name, same_as), left_out (name, shape, reason, damaged)
  before, changes          with AFTER
  matrices                 name, kind, depth, shape, layout, rows, columns, aspect_ratio, zero_rows_and_columns,
                           scale, entry_deviation, singular_edges, eigenvalue_edges, tracy_widom_scale (of the
                           eigenvalue), threshold (in that unit), picture (which law), bulk (how near to MP),
                           ks_distance, ks_allowed, misfit, largest_entry, entry_threshold, top (largest singular
                           value over the edge), notes, verdict (in words), outliers, vectors, tail (null where
                           there are too few eigenvalues), extensive (null if not fitted); theory
  outliers                 side, singular_value, error, eigenvalue, edge_ratio, tracy_widom, p_value, spike
  vectors                  rank, left, right (each size, ratio, error, deviations from a random direction), doubts
  tail                     exponent, error, start, count, distance, p_value, preference (over an exponential), doubts
  extensive                scale, chi, gamma, singular_edges, beyond, ks_distance, ks_allowed, fits
  changes                  name, moved (norm of the difference over norm before), stable_rank (of the difference),
                           ks_distance (between the two), and [before, after]: scale, upper_edge, beyond, top,
                           picture
  theory                   name, factor, bulk_edges, matrix_edges, pairs, agrees, verdict

\b
Examples:
  derive spectrum model.safetensors
  derive spectrum before.npz after.npz --plot change.png
  derive spectrum weights.npz --include 'layers.*.weight' --exclude embed --plot spectra.png
  derive solve SETTING --json > theory.json
  derive spectrum weights.npz --include W1 --theory theory.json
"""


@click.command(short_help="Bulk and outliers of a trained network, from its checkpoint.", help=HELP)
@click.argument("file", metavar="FILE", shell_complete=completion.files())
@click.argument("after", metavar="[AFTER]", required=False, shell_complete=completion.files())
@click.option(
    "--theory",
    metavar="THEORY.json",
    shell_complete=completion.files(".json"),
    help="Compare with a solved theory: output of derive solve --json, or several such outputs under names.",
)
@click.option("--layer", metavar="NAME", help="The solution to use if the theory file holds several.")
@click.option(
    "--plot",
    metavar="OUT.png",
    shell_complete=completion.files(".png", ".pdf", ".svg"),
    help="Draw each matrix with its law, or all against depth if there are many (.png, .pdf or .svg).",
)
@click.option(
    "--include",
    metavar="PATTERN",
    multiple=True,
    help="Only arrays with this name (* and ? are wildcards), or whose name contains it. May be given again.",
)
@click.option("--exclude", metavar="PATTERN", multiple=True, help="All but these arrays. May be given again.")
@click.option(
    "--layout",
    type=OneOf("auto", "oihw", "hwio"),
    default="auto",
    show_default=True,
    help="Axes of convolution kernels: oihw as in PyTorch, hwio as in Flax; auto takes the small axes as the kernel.",
)
@click.option(
    "--level",
    type=AsTyped(),
    default=0.001,
    show_default=True,
    metavar="P",
    help="Probability that noise alone exceeds the threshold for outliers, for each edge of each matrix.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also print each outlier and notes on each matrix.")
@json_option
def spectrum(
    file: str,
    after: str | None,
    theory: str | None,
    layer: str | None,
    plot: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    layout: str,
    level: float,
    verbose: bool,
    as_json: bool,
) -> None:
    """Show the bulk and the outliers of every weight matrix in a checkpoint you already have."""
    check_plot(plot)
    if layer is not None and theory is None:
        raise click.UsageError("--layer chooses from a theory file; give --theory too")
    with progress_bar(f"reading {Path(file).name}", as_json) as progress:
        from derive.api.spectra import spectra

        fitted: Spectra = spectra(
            file,
            after,
            include=include,
            exclude=exclude,
            layout=layout,
            level=level,
            theory=theory,
            layer=layer,
            progress=progress,
        )
        data = plain(fitted.as_dict())
        if plot is not None:
            save_plot(fitted.plot(), plot)
            data["plot"] = plot
    if as_json:
        print_json(data)
        return
    from derive.cli.spectrum_tables import print_spectra

    print_spectra(data, verbose)
