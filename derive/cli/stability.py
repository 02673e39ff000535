"""The command that finds the largest stable rate."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import json_option, number, part_of, plain, print_json, print_table, progress_bar, settings_line
from derive.cli.problem import axes_of, solver_of, target_argument, values_argument


@click.command(short_help="Find the largest stable learning rate.")
@target_argument
@values_argument
@click.option("--of", "rate", default="eta", show_default=True, metavar="NAME", help="The parameter to raise.")
@click.option(
    "--loss", default="train_loss", show_default=True, metavar="NAME", help="The observable that must stay bounded."
)
@click.option(
    "--curvature",
    metavar="LAYER",
    help="The layer whose largest eigenvalue is the curvature; by default ntk where a model has it.",
)
@click.option("--out", metavar="FILE", help="Also write the results: FILE.jsonl or FILE.csv.")
@json_option
def stability(
    target: str, pairs: tuple[str, ...], rate: str, loss: str, curvature: str | None, out: str | None, as_json: bool
) -> None:
    """Find the largest stable learning rate, at one point or on a grid of the other parameters.

    Two limits are found to one part in a thousand: the rate beyond which the loss exceeds a hundred times its initial
    value within T steps, and the rate beyond which rate times the largest eigenvalue of the curvature exceeds 2 at some
    step, so that its direction overshoots. The curvature depends on the rate, because training sharpens it; the
    limit from the initial curvature alone is given too. Layer ntk is the kernel of the population: on fresh data it is
    the curvature, on few fixed samples the loss diverges earlier, and where it does so before any direction of the
    population overshoots, that limit is null.

    \b
    Keys of --json:
      setting, rate, axes, points
                               each point: parameters, by_divergence, by_curvature, at_start (null without a
                               curvature), tolerance

    \b
    Examples:
      derive stability my_model.py T=30
      derive stability SETTING L=1 data=online nu=0.25,0.5,1,2,4 param=mup,ntk T=30
      derive stability my_model.py --of dt --loss activity --json
    """
    from derive.cli.tables import check_table, write_rows
    from derive.errors import NumericalError
    from derive.loading import load_sweep

    check_table(out)
    sweep = load_sweep(target, pairs)
    if rate in dict(sweep.axes):
        raise click.UsageError(f"{rate} is what is looked for; give one value to start from, or none")
    points: list[dict[str, Any]] = []
    setting = sweep.problems[0].model.setting
    with progress_bar(f"stability of {setting}", as_json) as progress:
        from numerics.training.stability import stable_rate

        for k, problem in enumerate(sweep.problems):
            share = part_of(progress, k / len(sweep.problems), (k + 1) / len(sweep.problems))
            solver = solver_of(target, problem.model, share)
            layer = curvature or ("ntk" if "ntk" in (m.label for m in solver.matrices) else None)
            parameters = {name: value for name, value in problem.values.items() if name != rate}
            try:
                found = stable_rate(solver, problem.inputs, rate=rate, loss=loss, layer=layer, progress=share)
                points.append(plain({"parameters": parameters, **vars(found)}))
            except NumericalError as error:
                points.append(plain({"parameters": parameters, "error": str(error)}))
    if out is not None:
        write_rows(out, [{**p["parameters"], **{k: v for k, v in p.items() if k != "parameters"}} for p in points])
    if as_json:
        print_json({"setting": setting, "rate": rate, "axes": axes_of(sweep), "points": points})
        return
    names = [name for name, _ in sweep.axes]
    fixed = {name: value for name, value in points[0]["parameters"].items() if name not in names}
    click.echo(f"largest {rate} of {settings_line(setting, fixed)}")
    columns = ("by_divergence", "by_curvature", "at_start")
    rows = [
        [str(p["parameters"][name]) for name in names] + [p.get("error") or number(p[column]) for column in columns]
        for p in points
    ]
    print_table(
        "", (*names, "loss diverges", "curvature overshoots", "initial curvature overshoots"), rows, text_columns=0
    )
    if out is not None:
        click.echo(f"wrote {out}")
