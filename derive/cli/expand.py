"""The command that expands edges, outliers and thresholds in a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import json_option, print_json, progress_bar

if TYPE_CHECKING:
    from derive.language.model import Model


@click.command(short_help="Expand an edge, an outlier or a threshold in a parameter, exactly.")
@click.argument("target", metavar="SETTING|FILE")
@click.argument("chosen", metavar="[CHOICE=VALUE]...", nargs=-1)
@click.option(
    "--of",
    "of",
    type=click.Choice(("edge", "lower_edge", "outlier", "threshold")),
    default="edge",
    show_default=True,
    help="Upper or lower end of the bulk, largest outlier, or the strength at which it leaves the bulk.",
)
@click.option(
    "--in",
    "variable",
    metavar="PARAMETER",
    help="What is small: a parameter, its inverse or its distance from a value, such as gamma, 1/nu, gamma0-2. "
    "Without it the quantity itself is given, exactly.",
)
@click.option("--order", type=click.IntRange(0, 20), default=3, show_default=True, help="Highest power to keep.")
@click.option(
    "--at",
    "pairs",
    metavar="KEY=VALUE",
    multiple=True,
    help="Fix another parameter, exactly: 2, 0.3 or 1/3; repeatable. Outliers of trained models need T=1 or the like.",
)
@click.option(
    "--parameter", "wanted", metavar="NAME", help="With --of threshold: the parameter whose threshold is wanted."
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
    style: str,
    as_json: bool,
) -> None:
    """Expand an edge of the bulk, an outlier or a threshold in a parameter, to any order and exactly.

    The outlier is the largest. The threshold is the value of a parameter, the smallest in size inside its domain, at
    which an outlier leaves the upper edge of the bulk (a lower edge, if none leaves there). With linear laws both are
    found for any number of training steps that exact algebra can carry: a few, or more with numbers for parameters.

    Parameters that are not fixed with --at stay symbols. Powers may be negative or fractions. Where several branches
    exist, the physical one is followed at the values printed under `branch`; other regions of the parameters may have
    another branch, which --at selects. Coefficients that need an algebraic number of degree three or more are written
    in theta, with its polynomial (in vartheta, where theta is a parameter).

    \b
    Keys of --json:
      setting, choices, of, in, order, at   what was expanded; in and order are null without --in
      parameter                    with --of threshold: whose threshold it is
      terms                        list of {power, coefficient, relative, latex}; relative to the first coefficient
      series, latex                the whole series as text and as LaTeX
      next_power                   power of the first term left out; null if the series ends
      theta                        null, or {name, polynomial, near}: the algebraic number in the coefficients
      branch                       parameter values at which the branch was identified

    \b
    Examples:
      derive expand SETTING --of edge --in 1/nu --order 3
      derive expand SETTING --of edge --in chi --order 1 --at gamma=1 --at nu=2 --format latex
      derive expand SETTING L=2 --of edge --in gamma0 --at nu=4 --at chi=1
      derive expand my_model.py --of outlier --in 1/signal --at T=2 --json
      derive expand SETTING --of outlier --in kappa --at S=2 --at alpha=2 --order 4
      derive expand SETTING --of threshold --parameter theta --at S=1
    """
    from derive.errors import DeriveError, ParameterError
    from derive.loading import load_problem

    problem = load_problem(target, chosen)
    given = [pair.partition("=")[0] for pair in chosen if pair.partition("=")[0] in _parameters(problem.model)]
    if given:
        raise ParameterError(f"{given[0]} is a parameter: fix it with --at {given[0]}=VALUE, or leave it a symbol")
    model = problem.model.probing(problem.layers[0]) if problem.layers else problem.model
    names = {p.name: p for p in model.parameters}
    with progress_bar(f"expanding {model.setting}", as_json):
        import sympy as sp

        from derive.expansions.limits import Limit, rational
        from derive.expansions.quantities import expand_quantity
        from derive.pipeline import derive_model

        limit = None if variable is None else Limit.of(variable, model.parameters)
        fixed = {}
        for pair in pairs:
            name, equals, text = (part.strip() for part in pair.partition("="))
            if not equals or name not in names:
                raise ParameterError(
                    f"--at {pair}: write --at name=value with one of the parameters {', '.join(names) or '(none)'}"
                )
            if names[name] in fixed:
                raise ParameterError(f"--at {name} is given twice; keep one of the two values")
            fixed[names[name]] = rational(text, f"--at {pair}")
        if wanted is not None and (wanted not in names or of != "threshold"):
            raise ParameterError(
                f"--parameter {wanted}: use it with --of threshold and one of {', '.join(names) or '(none)'}"
            )
        if not model.probes:
            raise DeriveError(f"{model.setting} declares no probe; add probe=spectrum(...) to its Model")
        result = expand_quantity(derive_model(model).first, of, limit, sp.Integer(order), fixed, wanted)
        root = "vartheta" if "theta" in names else "theta"
        found = result.expansion.with_root(sp.Symbol(root))
        branch = {p.name: str(v) for p, v in result.branch}
        first = found.coefficients[0]
        terms = [
            {
                "power": str(power),
                "coefficient": str(c),
                "relative": str(sp.factor(sp.radsimp(c / first))) if first != 0 and found.minimal is None else None,
                "latex": sp.latex(c),
            }
            for power, c in zip(found.powers, found.coefficients, strict=True)
        ]
        shown = _written(sp, found, sp.S.One if limit is None else limit.small)
    if as_json:
        print_json(
            {
                "setting": model.setting,
                "choices": dict(model.choices),
                "of": of,
                "in": variable,
                "order": None if limit is None else order,
                "at": {p.name: str(v) for p, v in fixed.items()},
                "parameter": None if result.parameter is None else result.parameter.name,
                "terms": terms,
                "series": shown[0],
                "latex": shown[1],
                "next_power": None if found.ends else str(found.next_power),
                "theta": None
                if found.minimal is None
                else {"name": root, "polynomial": str(found.minimal), "near": found.root_near},
                "branch": branch,
            }
        )
        return
    if style == "latex":
        click.echo(shown[1])
        if found.minimal is not None:
            click.echo(f"% {root} is the root near {found.root_near} of {sp.latex(found.minimal)}")
        return
    fixed_text = "".join(f", {p.name} = {v}" for p, v in fixed.items())
    strength = "" if result.parameter is None else f" in {result.parameter}"
    if variable is None:
        click.echo(f"{of}{strength} of {model.name}{fixed_text}")
        click.echo(f"  {terms[0]['coefficient']}")
    else:
        click.echo(f"{of}{strength} of {model.name}, expanded in {variable}{fixed_text}")
        for term in terms:
            click.echo(f"  ({variable})^{term['power']}:  {term['coefficient']}")
        click.echo("the series ends here" if found.ends else f"next power: {found.next_power}")
    if found.minimal is not None:
        click.echo(f"{root} is the root near {found.root_near} of {found.minimal}")
    if branch:
        values = ", ".join(f"{name} = {value}" for name, value in branch.items())
        click.echo(f"branch followed at {values}; other regions may have another, which --at picks")


def _parameters(model: Model) -> set[str]:
    return {parameter.name for parameter in model.parameters}


def _written(sp: Any, found: Any, small: Any) -> tuple[str, str]:
    """The series as text and as LaTeX, in terms of the parameter itself."""
    texts, formulas = [], []
    for power, c in zip(found.powers, found.coefficients, strict=True):
        factor = small**power
        texts.append(f"({c})" if power == 0 else f"({c})*({factor})")
        formulas.append(sp.latex(c) if power == 0 else rf"\left({sp.latex(c)}\right) {sp.latex(factor)}")
    if not found.ends:
        texts.append(f"O(({small})**({found.next_power}))")
        formulas.append(rf"\mathcal{{O}}\left({sp.latex(small**found.next_power)}\right)")
    return " + ".join(texts), " + ".join(formulas)
