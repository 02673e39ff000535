"""The command that computes the stationary limit of training."""

from __future__ import annotations

from typing import Any

import click

from derive.cli import completion
from derive.cli.output import json_option, number, part_of, plain, print_json, print_table, progress_bar, settings_line
from derive.cli.problem import target_argument, values_argument

HELP = """
Observables after arbitrarily many steps, at one point or on a grid.

Training with linear laws that are the same at all steps ends at a fixed point: for gradient descent on a quadratic
loss, the ridge estimator, or without a ridge the interpolator closest to the initial weights. The order parameters of
the declared dynamics are derived as functions of one complex variable z, and the limit is their value at z = 0. It is
exact: no step is run and nothing is extrapolated. The number of steps T does not matter. With labels or given data,
order parameters are matrices over labels.

A limit that does not exist is refused: at a rate that is too large, at the interpolation threshold without a ridge,
or if each step draws new data or noise. Nonlinear laws are refused, too.

\b
Keys of --json:
  setting, axes, points    each point: parameters, observables, diagnostics; or parameters and error
  diagnostics of a point   radius of the circle in z over which values are averaged, error (relative), nodes (values
                           of a density, null where there is none)

\b
Examples:
  derive limit SETTING alpha=0.5 ridge=0
  derive limit SETTING alpha=0.25,0.5,0.75,1.25,1.5,2 ridge=0 sigma=0.3
  derive limit SETTING ridge=0.001:1:20 --out ridge.csv
"""


@click.command(short_help="The stationary limit of linear training, without running it.", help=HELP)
@target_argument
@values_argument
@click.option(
    "--out",
    metavar="FILE",
    shell_complete=completion.files(".jsonl", ".csv", ".nc"),
    help="Also write the results: FILE.jsonl or FILE.csv; one point also as FILE.nc, for derive.open.",
)
@json_option
def limit(target: str, pairs: tuple[str, ...], out: str | None, as_json: bool) -> None:
    """Observables after arbitrarily many steps, at one point or on a grid."""
    from derive.cli.output import check_table, write_rows
    from derive.errors import NumericalError
    from derive.inputs.problems import load_grid

    sweep = load_grid(target, pairs)
    check_table(out, (".jsonl", ".csv", *((".nc",) if len(sweep.problems) == 1 else ())))
    setting = sweep.problems[0].model.setting
    limits = []
    with progress_bar(f"limit of {setting}", as_json) as progress:
        from derive.api import limiting
        from derive.api.loading import load

        theory = load(target)
        for k, problem in enumerate(sweep.problems):
            share = part_of(progress, k / len(sweep.problems), (k + 1) / len(sweep.problems))
            limits.append(limiting.limit(theory._source, problem, share))
    points: list[dict[str, Any]] = [plain(one.as_dict()) for one in limits]
    if out is not None and out.endswith(".nc"):
        limits[0].save(out)
    elif out is not None:
        told = [one.columns() if one else {"error": one.trouble[0]} for one in limits]
        write_rows(out, [{**p["parameters"], **row} for p, row in zip(points, told, strict=True)])
    if len(limits) == 1 and not limits[0]:
        raise NumericalError(limits[0].trouble[0])
    if as_json:
        axes = {name: list(values) for name, values in sweep.axes}
        print_json({"setting": setting, "axes": axes, "points": points})
    else:
        names = [name for name, _ in sweep.axes]
        fixed = {name: value for name, value in points[0]["parameters"].items() if name not in names}
        click.echo(f"{settings_line(setting, fixed)}, after arbitrarily many steps")
        numbers = [one.columns() if one else {} for one in limits]
        heads = list(dict.fromkeys(name for row in numbers for name in row))
        rows = [
            [
                *(str(p["parameters"][name]) for name in names),
                *(number(row[head]) if head in row else "none" for head in heads),
            ]
            for p, row in zip(points, numbers, strict=True)
        ]
        if heads:
            print_table("", (*names, *heads), rows, text_columns=0)
        for p in points:
            if "error" in p and len(points) > 1:
                at = " ".join(f"{name}={p['parameters'][name]}" for name in names)
                click.echo(f"{at}: {p['error']}")
        if out is not None:
            click.echo(f"wrote {out}")
    if all(not one for one in limits):
        raise NumericalError(limits[0].trouble[0])
