"""The command that finds the largest stable rate."""

from __future__ import annotations

from math import pi
from typing import Any

import click

from derive.cli import completion
from derive.cli.output import json_option, number, part_of, plain, print_json, print_table, progress_bar, settings_line
from derive.cli.problem import takes, target_argument, values_argument
from numerics.options import StabilityOptions, options_of

HELP = """
Find the largest stable learning rate, at one point or on a grid of the other parameters.

The command finds two limits. The first is the rate above which the loss grows without bound as the number of steps
increases. For linear training on fixed data, fresh data or mini-batches it is exact: the spectral radius of the
linear map of one step reaches one, for means or, on fresh data, for covariances. The result includes an interval:
training is stable at its lower end and grows at its upper end. If elimination succeeds, the rate is also given as
a formula or as the root of a polynomial. For other models it is the rate at which the late increments of the loss
change from shrinking to growing, to one part in a thousand. It is computed for T, T/2 and T/4 steps and extrapolated
if the changes shrink; the error is the change over the last doubling. If that is more than five percent or
contradicts the run, the limit within the T steps is given instead: take a larger T.

The second is the rate above which the rate times the largest eigenvalue of the curvature exceeds 2 at some step, so
that the direction of that eigenvalue overshoots. The curvature depends on the rate, because training sharpens it;
the limit from the initial curvature is given too. Layer ntk is the kernel of the population. On fresh data it is the
curvature. On few fixed samples the loss diverges earlier; if it does so before any direction of the population
overshoots, this limit is null.

A warning says above which rate finite-size simulations are unreliable. At size D, data and matrices differ from their
limits by about 1/sqrt(D), as if the rate were off by that fraction, and a loss that rises during training amplifies
corrections of order 1/D. By this estimate, below the printed size the fluctuations of one run near the limit are as
large as its loss. Between the two limits, individual directions that exist only at
finite size may grow.

\b
Keys of --json:
  setting, rate, axes, points
                           each point: parameters, by_divergence (exact, or extrapolated where late growth has
                           converged, else within the steps that were run), by_divergence_error, by_curvature,
                           at_start (null without a curvature), tolerance; exact (null where training is
                           not linear)
  exact of a point         rate, error, low and high (training is stable and grows there), kind (mean, or
                           covariance of what each step draws), angle of the critical mode (pi: it changes its
                           sign at every step; null for covariances), formula and polynomial (null where none
                           is found)
  horizons of a point      empty if exact; steps that were run, by_growth (the limit from the late growth of the
                           loss there) and within (from where the loss exceeds 100 times its initial value in
                           those steps)
  size, noisy_above        how large a simulation must be at 0.95 of the limit, and the rate above which it would
                           have to exceed 10000 (null if none has to)

\b
Examples:
  derive stability my_model.py T=30
  derive stability SETTING L=1 data=online nu=0.25,0.5,1,2,4 param=mup,ntk T=30
  derive stability my_model.py --of eta --loss train_loss --json
"""


@click.command(short_help="Find the largest stable learning rate.", help=HELP)
@target_argument
@values_argument
@takes(options_of("stable_rate"))
@click.option(
    "--out",
    metavar="FILE",
    shell_complete=completion.files(".jsonl", ".csv"),
    help="Also write the results: FILE.jsonl or FILE.csv.",
)
@json_option
def stability(
    target: str, pairs: tuple[str, ...], of: str, loss: str, curvature: str | None, out: str | None, as_json: bool
) -> None:
    """Find the largest stable learning rate, at one point or on a grid of the other parameters."""
    from dataclasses import asdict

    from derive.cli.output import check_table, write_rows
    from derive.errors import NumericalError
    from derive.inputs.problems import load_grid

    check_table(out)
    options, rate = StabilityOptions(of, loss, curvature), of
    sweep = load_grid(target, pairs)
    if rate in dict(sweep.axes):
        raise click.UsageError(f"{rate} is the rate to be found; give one value to start from, or none")
    points: list[dict[str, Any]] = []
    setting = sweep.problems[0].model.setting
    with progress_bar(f"stability of {setting}", as_json) as progress:
        from derive.api.limiting import stable_rate
        from derive.api.loading import load

        theory = load(target)
        for k, problem in enumerate(sweep.problems):
            share = part_of(progress, k / len(sweep.problems), (k + 1) / len(sweep.problems))
            parameters = {name: value for name, value in problem.values.items() if name != rate}
            try:
                result = stable_rate(theory._solver(problem.model, share), problem, options, share)
                points.append(plain({"parameters": parameters, **asdict(result)}))
            except NumericalError as error:
                points.append(plain({"parameters": parameters, "error": str(error)}))
    if out is not None:
        write_rows(out, [{**p["parameters"], **{k: v for k, v in p.items() if k != "parameters"}} for p in points])
    if as_json:
        axes = {name: list(values) for name, values in sweep.axes}
        print_json({"setting": setting, "rate": rate, "axes": axes, "points": points})
        if all("error" in p for p in points):
            click.get_current_context().exit(3)
        return
    names = [name for name, _ in sweep.axes]
    fixed = {name: value for name, value in points[0]["parameters"].items() if name not in names}
    click.echo(f"largest {rate} of {settings_line(setting, fixed)}")
    columns = ("by_divergence", "by_divergence_error", "by_curvature", "at_start", "size")
    rows = [[str(p["parameters"][name]) for name in names] + _cells(p, columns) for p in points]
    headings = ("loss diverges", "+-", "curvature overshoots", "initial curvature overshoots", "size to follow")
    print_table("", (*names, *headings), rows, text_columns=0)
    for p in points:
        at = " ".join(f"{name}={p['parameters'][name]}" for name in names)
        for line in _remarks(p, rate):
            click.echo(f"{at}: {line}" if at else line)
    if out is not None:
        click.echo(f"wrote {out}")
    if all("error" in p for p in points):
        click.get_current_context().exit(3)


def _remarks(point: dict[str, Any], rate: str) -> list[str]:
    """Return remarks on the runs of a grid point, and on the limits of simulation."""
    if "error" in point:
        return [point["error"]]
    remarks = _found_by(point, rate)
    if point["noisy_above"] is not None:
        remarks.append(
            f"warning: above {rate} = {number(point['noisy_above'])} no simulation below size 10000 is reliable"
        )
    curved = point["by_curvature"]
    if curved is not None and curved < 0.95 * point["by_divergence"]:
        remarks.append(
            f"warning: above {rate} = {number(curved)} a direction grows that the loss does not see at once; a "
            "simulation sees it early"
        )
    return remarks


def _cells(point: dict[str, Any], columns: tuple[str, ...]) -> list[str]:
    """Return the results at a grid point, or its error."""
    if "error" in point:
        return ["none", *([""] * (len(columns) - 1))]
    return [number(point[column]) for column in columns]


def _exact(exact: dict[str, Any], rate: str) -> list[str]:
    """Return lines on an exact limit."""
    turn = exact["angle"]
    mode = "covariances of the draws of each step never decay"
    if exact["kind"] == "mean":
        mode = "a mode lasts for ever"
        if turn is not None:
            changing = abs(turn - pi) < 1e-6
            mode += ", with alternating sign" if changing else "" if turn < 1e-6 else f", turning by {turn:.4g}"
    lines = [f"exact: there {mode}; stable at {exact['low']:.9g}, growing at {exact['high']:.9g}"]
    if exact["formula"] is not None:
        lines.append(f"{rate} = {exact['formula']}")
    if exact["polynomial"] is not None:
        lines.append(f"0 = {exact['polynomial']}")
    return lines


def _found_by(point: dict[str, Any], rate: str) -> list[str]:
    """Return lines on the method by which a limit was found."""
    horizons = point["horizons"]
    if point["exact"] is not None:
        return _exact(point["exact"], rate)
    runs = ", ".join(f"{number(h['by_growth'])} from {h['steps']} steps" for h in horizons)
    last = horizons[0]
    inside = f"within {last['steps']} steps it exceeds 100 times its start only above {number(last['within'])}"
    if point["by_divergence"] == last["within"]:
        return [f"late growth of the loss: {runs}; not converged, so this is the limit within these steps: {inside}"]
    return [f"late growth of the loss: {runs}; extrapolated {number(point['by_divergence'])} ({inside})"]
