"""Tables of a checkpoint's spectra for 80 columns: one row per matrix, grouped by kind, with trends over depth."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import click

from derive.cli.output import number, print_table
from derive.support.plain_words import counted

Row = dict[str, Any]
MOST_LINES = 8
"""Most outliers printed per matrix; --json has all."""
FEW = 8
"""Number of matrices up to which outliers are printed by default."""
WIDTH = 80
FLAT = 0.03
"""Relative trend below which a change is attributed to noise of the fitted scales."""
BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
LAWS = {
    "Marchenko-Pastur": "MP",
    "near Marchenko-Pastur": "near MP",
    "not Marchenko-Pastur": "neither",
    "extensive step": "extensive",
}


def print_spectra(data: Row, verbose: bool) -> None:
    matrices = data["matrices"]
    kinds = _kinds(matrices)
    sizes = [counted(len(matrices), "matrix", "matrices"), counted(len(kinds), "kind")]
    damaged = sum(one["damaged"] for one in data["left_out"])
    sizes += [f"{len(data['tied'])} tied"] if data["tied"] else []
    sizes += [f"{len(data['left_out'])} arrays left out"] if data["left_out"] else []
    sizes += [f"{damaged} of them DAMAGED"] if damaged else []
    after = f" after {data['before']}" if "before" in data else ""
    click.echo(_wrapped(f"{data['file']}{after}: {', '.join(sizes)}", ""))
    if "changes" in data:
        _print_changes(kinds, {one["name"]: one for one in data["changes"]})
    else:
        _print_rows(kinds)
    _print_trends(kinds)
    if verbose or len(matrices) <= FEW:
        for one in matrices:
            click.echo(_wrapped(f"{one['name']}: {one['verdict']}"))
        click.echo("")
        _print_outliers(matrices, data["level"])
        _print_notes(matrices)
    for one in matrices:
        if "theory" in one:
            _print_comparison(one["name"], one["theory"])
    for pair in data["tied"]:
        click.echo(_wrapped(f"tied: {pair['name']} equals {pair['same_as']}, shown once"))
    for reason in dict.fromkeys(part["reason"] for part in data["left_out"]):
        parts = [part for part in data["left_out"] if part["reason"] == reason]
        names = [part["name"] for part in parts]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        word = "DAMAGED" if parts[0]["damaged"] else "left out"
        click.echo(_wrapped(f"{word} {', '.join(names[:3])}{more}: {reason}"))
    if "plot" in data:
        click.echo(f"wrote {data['plot']}")


def _kinds(matrices: Sequence[Row]) -> dict[str, list[Row]]:
    from numerics.spectra.kinds import by_kind

    known = {one["name"]: one for one in matrices}
    return {kind: [known[name] for name in names] for kind, names in by_kind(known).items()}


def _print_rows(kinds: dict[str, list[Row]]) -> None:
    from numerics.support.formatting import shown_number

    layout = "{:>4}  {:>12}  {:>7}  {:>6}  {:<9}  {:>6}  {:>6}  {:>5}  {:>8}"
    click.echo(layout.format("at", "size", "scale", "KS MP", "law", "beyond", "top", "PR", "tail"))
    for kind, members in kinds.items():
        click.echo(kind)
        for one in members:
            tail = one["tail"]
            sides = [one["vectors"][0][side] for side in ("left", "right")]
            click.echo(
                layout.format(
                    _depth(one, members),
                    f"{one['rows']} x {one['columns']}",
                    f"{one['scale']:.3g}",
                    f"{one['ks_distance']:.2g}",
                    LAWS[one["picture"]],
                    len(one["outliers"]),
                    f"{one['top']:.3g}",
                    f"{min(3.0 * side['ratio'] / (side['size'] + 2) for side in sides):.2g}",
                    "-" if tail is None or tail["doubts"] else shown_number(tail["exponent"], tail["error"]),
                )
            )
    click.echo(
        "scale: of the noise in W / sqrt(columns). KS MP: how far the bulk is from the\n"
        "law of Marchenko-Pastur (MP). law: the law that holds to within noise.\n"
        "beyond: outside the MP edges. top: the largest singular value over the MP edge.\n"
        "PR: participation ratio of its vectors over that of a random direction, the\n"
        "smaller of left and right. tail: exponent of a power law, if one is found.\n"
    )


def _print_changes(kinds: dict[str, list[Row]], changes: dict[str, Row]) -> None:
    layout = "{:>4}  {:>7}  {:>6}  {:>17}  {:>11}  {:>13}  {:<9}"
    click.echo(layout.format("at", "moved", "rank", "scale", "beyond", "top", "law").rstrip())
    for kind, members in kinds.items():
        click.echo(kind)
        for one in members:
            change = changes.get(one["name"])
            if change is None:
                click.echo(f"{_depth(one, members):>4}  in one of the two only")
                continue
            click.echo(
                layout.format(
                    _depth(one, members),
                    "-" if change["moved"] is None else f"{100 * change['moved']:.3g}%",
                    "-" if change["stable_rank"] is None else f"{change['stable_rank']:.3g}",
                    _arrow(change["scale"], lambda value: f"{value:.3g}"),
                    _arrow(change["beyond"], str),
                    _arrow(change["top"], lambda value: f"{value:.3g}"),
                    LAWS[one["picture"]],
                ).rstrip()
            )
    click.echo(
        "moved: norm of the difference over norm before. rank: stable rank of the\n"
        "difference, near 1 where one direction was learned. scale: of the noise in\n"
        "W / sqrt(columns). beyond: outside the edges of that noise. top: the largest\n"
        "singular value over the edge. law: that of the matrix after.\n"
    )


def _print_trends(kinds: dict[str, list[Row]]) -> None:
    """Print the first and last values of quantities that change with depth, with a sparkline."""
    shown = {kind: members for kind, members in kinds.items() if len(members) > 2}
    if not shown:
        return
    click.echo("trend over depth, first to last")
    for kind, members in shown.items():
        laws = [LAWS[one["picture"]] for one in members]
        words = ", ".join(f"{laws.count(law)} {law}" for law in dict.fromkeys(laws))
        click.echo(_wrapped(f"{kind}: {words}", "  "))
        parts = [
            _trend("scale", [one["scale"] for one in members]),
            _trend("beyond", [len(one["outliers"]) for one in members]),
            _trend("top", [one["top"] for one in members]),
        ]
        click.echo(_wrapped("  " + "  ".join(parts)))
    click.echo("")


def _trend(name: str, values: Sequence[float]) -> str:
    return f"{name} {values[0]:.3g} -> {values[-1]:.3g} {_bars(values)}"


def _bars(values: Sequence[float]) -> str:
    """Return a sparkline of up to six bars, each the mean of neighbours; flat if nothing changes."""
    count = min(len(values), 6)
    cut = [len(values) * k // count for k in range(count + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in zip(cut[:-1], cut[1:], strict=True)]
    low, high = min(means), max(means)
    if high - low <= FLAT * abs(high):
        return BARS[0] * count
    return "".join(BARS[min(7, int(8 * (value - low) / (high - low)))] for value in means)


def _depth(one: Row, members: Sequence[Row]) -> str:
    return "" if len(members) == 1 or one["depth"] is None else str(one["depth"])


def _arrow(pair: Sequence[Any], shown: Callable[[Any], str]) -> str:
    return " -> ".join(shown(value) for value in pair)


def _wrapped(text: str, indent: str = "  ") -> str:
    """Return text in lines of at most 80 columns, with names unbroken."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _probability(value: float | None) -> str:
    return "-" if value is None else "< 1e-16" if value < 1e-16 else f"{value:.1g}"


def _print_outliers(matrices: Sequence[Row], level: float) -> None:
    if not any(one["outliers"] for one in matrices):
        click.echo(f"no outliers: nothing lies beyond an edge at level {level:g}\n")
        return
    click.echo(f"beyond the edge (level {level:g} for each edge), distance in Tracy-Widom units")
    layout = "  {:<6}  {:>14}  {:>8}  {:>9}  {:>10}  {:>8}  {:>8}"
    click.echo(layout.format("side", "singular value", "error", "over edge", "eigenvalue", "distance", "p-value"))
    for one in matrices:
        if not one["outliers"]:
            continue
        click.echo(one["name"])
        for outlier in one["outliers"][:MOST_LINES]:
            click.echo(
                layout.format(
                    outlier["side"],
                    number(outlier["singular_value"]),
                    "-" if outlier["error"] is None else f"{outlier['error']:.2g}",
                    f"{outlier['edge_ratio']:.4g}",
                    number(outlier["eigenvalue"]),
                    f"{outlier['tracy_widom']:.3g}",
                    _probability(outlier["p_value"]),
                )
            )
        more = len(one["outliers"]) - MOST_LINES
        if more > 0:
            click.echo(f"  and {more} more")
    click.echo("")


def _print_notes(matrices: Sequence[Row]) -> None:
    for one in matrices:
        low, high = one["eigenvalue_edges"]
        text = (
            f"{one['name']}: eigenvalues of W^T W / rows from {number(low)} to {number(high)}, Tracy-Widom scale "
            f"{one['tracy_widom_scale']:.3g}"
        )
        click.echo(_wrapped(text + "".join(f"; {note}" for note in one["notes"])))


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
