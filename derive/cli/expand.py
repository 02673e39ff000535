"""The command that expands edges, outliers and thresholds in a parameter."""

from __future__ import annotations

import click

from derive.cli import completion
from derive.cli.output import json_option, print_json, progress_bar
from derive.cli.problem import AsTyped, OneOf, loaded, target_argument

HELP = """
Expand an edge of the bulk, an outlier or a threshold in a parameter, to any order and exactly.

The outlier is the largest one. Thresholds are all values of a parameter in its domain at which an outlier leaves the
bulk, each with the edge that it leaves; that of the upper edge comes first. For linear laws both are found for as
many training steps as exact algebra can handle: a few, or more if parameters are numbers.

Parameters that are not fixed with --at stay symbols. Powers may be negative or fractions. The physical branch is
decided exactly in each cell of the parameters; where cells have different series, all are given, each with the
inequalities under which it holds; --at selects one. Coefficients that need an algebraic number of degree three or
more are written in theta, with its polynomial (in vartheta, where theta is a parameter).

\b
Keys of --json:
  setting, choices, of, in, order, at   what was expanded; in and order are null without --in
  parameter                    with --of threshold: whose threshold it is
  terms                        list of {power, coefficient, relative, latex}; relative to the first coefficient
  series, latex                the whole series as text and as LaTeX
  grouped                      leading term times (1 + nu_star/nu + ...), with nu_star; empty if powers differ by
                               something other than one
  next_power                   power of the first term left out; null if the series ends
  theta                        null, or {name, polynomial, near}: the algebraic number in the coefficients
  edge                         with --of threshold: which edge the outlier leaves
  cell, status                 inequalities under which the series holds; proved, or supported (at points only)
  branch                       parameter values at which the branch was identified
  others                       the series of other cells and other thresholds, with the same keys

\b
Examples:
  derive expand SETTING --of edge --in 1/nu --order 3
  derive expand SETTING --of edge --in chi --order 1 --at gamma=1 --at nu=2 --format latex
  derive expand SETTING L=2 --of edge --in gamma0 --at nu=4 --at chi=1
  derive expand my_model.py --of outlier --in 1/signal --at T=2 --json
  derive expand SETTING --of outlier --in kappa --at S=2 --at alpha=2 --order 4
  derive expand SETTING --of threshold --parameter theta --at S=1
"""


@click.command(short_help="Expand an edge, an outlier or a threshold in a parameter, exactly.", help=HELP)
@target_argument
@click.argument("chosen", metavar="[CHOICE=VALUE]...", nargs=-1, shell_complete=completion.choices)
@click.option(
    "--of",
    "of",
    type=OneOf("edge", "lower_edge", "outlier", "threshold"),
    default="edge",
    show_default=True,
    help="Upper or lower end of the bulk, largest outlier, or the strength at which it leaves the bulk.",
)
@click.option(
    "--in",
    "variable",
    metavar="PARAMETER",
    shell_complete=completion.small_parameters,
    help="The small quantity: a parameter, its inverse or its distance from a value, such as gamma, 1/nu, gamma0-2. "
    "Without it the quantity itself is given exactly.",
)
@click.option("--order", type=AsTyped(), metavar="N", default=3, show_default=True, help="Highest power to keep.")
@click.option(
    "--at",
    "pairs",
    metavar="KEY=VALUE",
    shell_complete=completion.values,
    multiple=True,
    help="Fix another parameter, exactly: 2, 0.3 or 1/3; repeatable. Outliers of trained models need a number "
    "of steps, such as T=1.",
)
@click.option(
    "--parameter",
    "wanted",
    metavar="NAME",
    shell_complete=completion.parameters,
    help="With --of threshold: the parameter whose threshold is computed.",
)
@click.option(
    "--name",
    "named",
    metavar="NAME=FORMULA",
    multiple=True,
    help="Also write the series in terms of a combination of parameters, such as lam=1+gamma^2; repeatable.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(("text", "latex")),
    default="text",
    show_default=True,
    help="Plain text, or LaTeX to paste into a paper.",
)
@json_option
def expand(
    target: str,
    chosen: tuple[str, ...],
    of: str,
    variable: str | None,
    order: int,
    pairs: tuple[str, ...],
    wanted: str | None,
    named: tuple[str, ...],
    style: str,
    as_json: bool,
) -> None:
    """Expand an edge of the bulk, an outlier or a threshold in a parameter, to any order and exactly."""
    from derive.errors import ParameterError

    theory, inputs, several = loaded(target, chosen)
    layer = inputs.pop("layer", None)
    with progress_bar(f"expanding {theory.declared.name}", as_json):
        from derive.api import load
        from derive.inputs.problems import problem_of

        model = problem_of(theory.declared, {} if several else inputs).model
        parameters = {parameter.name for parameter in model.parameters}
        for name in inputs:
            if name in parameters:
                raise ParameterError(f"{name} is a parameter: fix it with --at {name}=VALUE, or leave it a symbol")
        at: dict[str, str] = {}
        for pair in pairs:
            name, equals, text = (part.strip() for part in pair.partition("="))
            if not equals:
                raise ParameterError(f"--at {pair}: write --at name=value")
            if name in at:
                raise ParameterError(f"--at {name} is given twice; keep one of the two values")
            at[name] = text
        expansion = load(target, **inputs).expand(of, variable, order=order, at=at, parameter=wanted, layer=layer)
    names = {name.strip(): formula for name, _, formula in (one.partition("=") for one in named)}
    if "" in names.values():
        raise ParameterError(f"--name {named[0]}: write --name NAME=FORMULA")
    series_in_names = expansion.in_terms_of(names) if names else None
    if as_json:
        print_json(expansion.as_dict() | ({} if series_in_names is None else {"named": str(series_in_names)}))
    elif style == "latex":
        for series in (expansion, *expansion.others):
            click.echo(series.latex)
            if series.cell:
                click.echo(f"% {series.cell}")
            if (theta := series.theta) is not None:
                click.echo(f"% {theta['name']} is the root near {theta['near']} of {theta['polynomial']}")
        if series_in_names is not None:
            from sympy import latex

            click.echo(latex(series_in_names))
    else:
        click.echo(str(expansion))
        if series_in_names is not None:
            click.echo(f"in terms of {', '.join(names)}: {series_in_names}")
