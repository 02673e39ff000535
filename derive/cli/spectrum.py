"""The command that looks at a network somebody has already trained."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derive.cli import completion
from derive.cli.output import json_option, number, plain, print_json, print_table, progress_bar
from derive.cli.problem import check_plot
from derive.errors import DeriveError

if TYPE_CHECKING:
    from derive.checkpoints import Entry
    from numerics.spectra.fitting import Spectrum
    from numerics.spectra.theory import Comparison

MOST_LINES = 8
"""Outliers of one matrix that are printed; --json has all."""


@click.command(short_help="Bulk and outliers of a trained network, from its checkpoint.")
@click.argument("file", metavar="FILE", shell_complete=completion.files())
@click.option(
    "--theory",
    metavar="THEORY.json",
    shell_complete=completion.files(".json"),
    help="Compare with a solved theory: what derive solve --json printed, or several of these under names.",
)
@click.option("--layer", metavar="NAME", help="Which solution of the theory file, where it holds several.")
@click.option(
    "--plot",
    metavar="OUT.png",
    shell_complete=completion.files(".png", ".pdf", ".svg"),
    help="Draw each matrix: bulk, fitted law, outliers (.png, .pdf or .svg).",
)
@click.option(
    "--matrix",
    "patterns",
    metavar="NAME-PATTERN",
    multiple=True,
    help="Only arrays of this name, with * and ? as wildcards, or whose name contains it. May be given again.",
)
@click.option(
    "--layout",
    type=click.Choice(["auto", "oihw", "hwio"]),
    default="auto",
    show_default=True,
    help="Axes of convolution kernels: oihw as in PyTorch, hwio as in Flax; auto takes the small axes as the kernel.",
)
@click.option(
    "--level",
    type=click.FloatRange(1e-9, 0.2),
    default=0.001,
    show_default=True,
    metavar="P",
    help="An outlier is what noise alone passes with this probability, for each edge of each matrix.",
)
@json_option
def spectrum(
    file: str,
    theory: str | None,
    layer: str | None,
    plot: str | None,
    patterns: tuple[str, ...],
    layout: str,
    level: float,
    as_json: bool,
) -> None:
    """Show the bulk and the outliers of every weight matrix in a checkpoint you already have.

    FILE is .npz, .safetensors, or a PyTorch state dict (.pt, .pth, .bin) where torch is installed. Nothing in it is
    ever run: pickled objects are refused, and torch is told to load weights only. At the start of training a weight
    matrix is noise, and its singular values follow the law of Marchenko and Pastur; what is learned first shows as a
    few singular values that leave this bulk.

    For each matrix of R rows and C columns, as stored: the scale of the bulk is fitted to the middle of the spectrum,
    so that outliers do not enter. Singular values are those of W / sqrt(C), with edges scale |1 -+ sqrt(R/C)|;
    eigenvalues are those of W^T W / R, with edges scale^2 (1 -+ sqrt(C/R))^2. The distance beyond the edge is in
    Tracy-Widom units: the scale, falling as size^(-2/3), by which the largest eigenvalue of noise fluctuates; its
    probability under noise alone is the p-value. The error of an outlier is how far it fluctuates if learned
    directions are independent of the noise. Convolution kernels are unfolded: rows are (k1, output channel), columns
    (k2, input channel).

    KS is the largest distance between the distribution of the bulk and the fitted law, beside what noise stays
    under 999 times of 1000. Beyond that the bulk is only near Marchenko-Pastur (KS at most 0.05, at most 5% beyond the
    edge), and an outlier must also clear the misfit of the edge; or it is not, and what lies beyond is a tail. Neither
    gets p-values.

    With --theory the matrix is rescaled so that the upper edges coincide, the factor is printed, and outliers are
    compared rank by rank.

    \b
    Keys of --json:
      file, level, matrices, left_out (name, shape, reason)
      matrices                 name, shape, layout, rows, columns, aspect_ratio, zero_rows_and_columns, scale,
                               entry_deviation, singular_edges, eigenvalue_edges, tracy_widom_scale (of the
                               eigenvalue), threshold (in that unit), bulk, ks_distance, ks_allowed, misfit,
                               largest_entry, entry_threshold, notes, outliers; theory (where given)
      outliers                 side, singular_value, error, eigenvalue, edge_ratio, tracy_widom, p_value, spike
      theory                   name, factor, bulk_edges, matrix_edges, pairs, agrees, verdict

    \b
    Examples:
      derive spectrum model.safetensors
      derive spectrum weights.npz --matrix 'layers.*.weight' --plot spectra.png
      derive solve SETTING --json > theory.json
      derive spectrum weights.npz --matrix W1 --theory theory.json
    """
    check_plot(plot)
    if layer is not None and theory is None:
        raise click.UsageError("--layer chooses from a theory file; give --theory too")
    path = Path(file)
    with progress_bar(f"reading {path.name}", as_json) as progress:
        from derive.checkpoints import load, read_checkpoint
        from numerics.spectra.fitting import analyse, layout_of
        from numerics.spectra.theory import compare_with_theory, read_theory

        solved = None if theory is None else read_theory(Path(theory), layer)
        entries = _chosen(path, read_checkpoint(path), patterns)
        left_out: list[tuple[Entry, str]] = []
        usable = []
        for entry in entries:
            shaped = layout_of(entry.shape, layout)
            if entry.broken is not None:
                load(path, entry)
            if entry.unusable is not None:
                left_out.append((entry, entry.unusable))
            elif isinstance(shaped, str):
                left_out.append((entry, shaped))
            else:
                usable.append(entry)
        _check_panels(plot, len(usable), path)
        spectra: list[Spectrum] = []
        for done, entry in enumerate(usable):
            if progress is not None:
                progress(done / len(usable), entry.name)
            result = analyse(entry.name, load(path, entry), layout, level)
            if isinstance(result, str):
                left_out.append((entry, result))
            else:
                spectra.append(result)
        if not spectra:
            entry, reason = left_out[0]
            others = f", and {len(left_out) - 1} more" if len(left_out) > 1 else ""
            raise DeriveError(
                f"{path} has no matrix with a bulk among {'those chosen' if patterns else 'its arrays'} ({entry.name}: "
                f"{reason}{others}); give a file with weight matrices"
            )
        compared = [None if solved is None else compare_with_theory(one, solved) for one in spectra]
        answer = plain(_answer(file, level, spectra, compared, left_out))
        if plot is not None:
            from numerics.plots.spectra import save_spectra

            title = path.name if solved is None else f"{path.name}, theory {solved.name}"
            save_spectra(Path(plot), spectra, compared, title)
            answer["plot"] = plot
    if as_json:
        print_json(answer)
        return
    _print(answer)


def _chosen(path: Path, entries: Sequence[Entry], patterns: tuple[str, ...]) -> list[Entry]:
    """The entries whose names fit any pattern; each pattern must fit one."""
    if not patterns:
        return list(entries)
    chosen: set[str] = set()
    names = [entry.name for entry in entries]
    for pattern in patterns:
        fitting = [name for name in names if name == pattern]
        fitting = fitting or [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        fitting = fitting or [name for name in names if pattern in name]
        if not fitting:
            near = difflib.get_close_matches(pattern, names, n=3, cutoff=0.3) or names[:3]
            more = f" and {len(names) - len(near)} more" if len(names) > len(near) else ""
            raise click.UsageError(f"--matrix {pattern}: {path} has no such array; it has {', '.join(near)}{more}")
        chosen.update(fitting)
    return [entry for entry in entries if entry.name in chosen]


def _check_panels(plot: str | None, count: int, path: Path) -> None:
    from numerics.plots.spectra import MOST_PANELS

    if plot is not None and count > MOST_PANELS:
        raise click.UsageError(
            f"--plot shows up to {MOST_PANELS} matrices and {path} has {count}; choose some with --matrix"
        )


def _answer(
    file: str,
    level: float,
    spectra: Sequence[Spectrum],
    compared: Sequence[Comparison | None],
    left_out: Sequence[tuple[Entry, str]],
) -> dict[str, Any]:
    return {
        "file": file,
        "level": level,
        "matrices": [
            {**_matrix(one), **({} if comparison is None else {"theory": _comparison(comparison)})}
            for one, comparison in zip(spectra, compared, strict=True)
        ],
        "left_out": [{"name": entry.name, "shape": entry.shape, "reason": reason} for entry, reason in left_out],
    }


def _matrix(one: Spectrum) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "name": one.name,
        "shape": one.shape,
        "layout": one.layout,
        "rows": one.rows,
        "columns": one.columns,
        "aspect_ratio": one.aspect_ratio,
        "zero_rows_and_columns": one.left_out,
        "scale": one.scale,
        "entry_deviation": one.entry_deviation,
        "singular_edges": one.singular_edges,
        "eigenvalue_edges": one.eigenvalue_edges,
        "tracy_widom_scale": one.tracy_widom_scale,
        "threshold": one.threshold,
        "bulk": one.verdict,
        "ks_distance": one.distance,
        "ks_allowed": one.distance_allowed,
        "misfit": one.misfit,
        "largest_entry": one.largest_entry,
        "entry_threshold": one.entry_threshold,
        "notes": _notes(one),
        "outliers": [asdict(outlier) for outlier in one.outliers],
    }


def _notes(one: Spectrum) -> list[str]:
    """What a reader should know before trusting the numbers of a matrix."""
    from numerics.spectra.fitting import FITS, MATRIX, NOT

    notes = []
    if one.layout != MATRIX:
        notes.append(f"kernel {' x '.join(map(str, one.shape))}, read as {one.layout}, unfolded")
    if one.left_out:
        notes.append(f"{one.left_out} rows and columns of zeros left out")
    if one.verdict == NOT:
        notes.append(
            f"the bulk is not Marchenko-Pastur (KS {one.distance:.2g}, noise has at most {one.distance_allowed:.2g}): "
            "scale and edges describe it badly, and what lies beyond is a tail rather than outliers"
        )
    elif one.verdict != FITS:
        notes.append(
            f"the bulk is only near Marchenko-Pastur (KS {one.distance:.2g}, noise has at most "
            f"{one.distance_allowed:.2g}): no p-values; outliers are those {one.threshold:.3g} units beyond the edge"
        )
    if one.largest_entry > one.entry_threshold:
        notes.append(
            f"the largest entry is {one.largest_entry:.3g} times the scale, and one above {one.entry_threshold:.3g} "
            "can make an outlier by itself"
        )
    return notes


def _comparison(comparison: Comparison) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "name": comparison.theory.name,
        "factor": comparison.factor,
        "bulk_edges": comparison.theory.edges,
        "matrix_edges": comparison.edges,
        "pairs": [asdict(pair) for pair in comparison.pairs],
        "agrees": comparison.agrees,
        "verdict": comparison.verdict,
    }


def _print(answer: dict[str, Any]) -> None:
    matrices = answer["matrices"]
    click.echo(f"{answer['file']}: {_count(len(matrices), 'matrix', 'matrices')}")
    print_table(
        "bulk (singular values of W / sqrt(columns))",
        ("matrix", "bulk", "rows x columns", "ratio", "scale", "low edge", "high edge", "KS", "beyond"),
        [
            (
                one["name"],
                one["bulk"],
                f"{one['rows']} x {one['columns']}",
                f"{one['aspect_ratio']:.4g}",
                f"{one['scale']:.4g}",
                *(f"{edge:.4g}" for edge in one["singular_edges"]),
                f"{one['ks_distance']:.2g}",
                str(len(one["outliers"])),
            )
            for one in matrices
        ],
        text_columns=2,
    )
    lines = [line for one in matrices for line in _outlier_lines(one)]
    if lines:
        print_table(
            f"beyond the edge (level {answer['level']:g} for each edge)",
            ("matrix", "side", "singular value", "error", "over edge", "eigenvalue", "Tracy-Widom units", "p-value"),
            lines,
            text_columns=2,
        )
    else:
        click.echo(f"no outliers: nothing lies beyond an edge at level {answer['level']:g}\n")
    for one in matrices:
        click.echo(
            f"{one['name']}: eigenvalues of W^T W / rows from {number(one['eigenvalue_edges'][0])} to "
            f"{number(one['eigenvalue_edges'][1])}, Tracy-Widom scale {one['tracy_widom_scale']:.3g}"
            + "".join(f"; {note}" for note in one["notes"])
        )
        if "theory" in one:
            _print_comparison(one["name"], one["theory"])
    for reason in dict.fromkeys(part["reason"] for part in answer["left_out"]):
        names = [part["name"] for part in answer["left_out"] if part["reason"] == reason]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        click.echo(f"left out {', '.join(names[:3])}{more}: {reason}")
    if "plot" in answer:
        click.echo(f"wrote {answer['plot']}")


def _probability(value: float | None) -> str:
    return "-" if value is None else "< 1e-16" if value < 1e-16 else f"{value:.1g}"


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _outlier_lines(one: dict[str, Any]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = [
        (
            one["name"] if place == 0 else "",
            outlier["side"],
            number(outlier["singular_value"]),
            "-" if outlier["error"] is None else f"{outlier['error']:.2g}",
            f"{outlier['edge_ratio']:.4g}",
            number(outlier["eigenvalue"]),
            f"{outlier['tracy_widom']:.3g}",
            _probability(outlier["p_value"]),
        )
        for place, outlier in enumerate(one["outliers"][:MOST_LINES])
    ]
    more = len(one["outliers"]) - MOST_LINES
    return [*lines, ("", f"and {more} more", "", "", "", "", "", "")] if more > 0 else lines


def _print_comparison(name: str, theory: dict[str, Any]) -> None:
    rows = [
        (
            f"{pair['side']}",
            pair["remark"],
            number(pair["theory"]),
            "-"
            if pair["theory"] is None
            else "exact"
            if pair["theory_error"] is None
            else f"{pair['theory_error']:.2g}",
            number(pair["matrix"]),
            "-" if pair["matrix_error"] is None else f"{pair['matrix_error']:.2g}",
            "-" if pair["difference"] is None else f"{pair['difference']:+.2f}",
        )
        for pair in theory["pairs"]
    ]
    low, high = theory["bulk_edges"]
    matrix_low = theory["matrix_edges"][0]
    click.echo(
        f"{name} against {theory['name']}: eigenvalues of W^T W / rows times {theory['factor']:.6g}; bulk of the "
        f"theory {low:.6g} to {high:.6g}, of the matrix {matrix_low:.6g} to {high:.6g}"
    )
    if rows:
        print_table(
            "",
            ("side", "outlier", "theory", "theory error", "matrix", "error", "difference / error"),
            rows[:MOST_LINES],
            text_columns=2,
        )
    click.echo(theory["verdict"])
