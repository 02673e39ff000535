"""The command that checks the laws on a user's declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from derive.cli.output import json_option, print_json, print_table, progress_bar, settings_line
from derive.cli.problem import takes, target_argument, values_argument
from derive.support.plain_words import counted
from numerics.options import options_of

if TYPE_CHECKING:
    from derive.results.check import Check


@click.command(short_help="Test your declaration against laws that every declaration must obey.")
@target_argument
@values_argument
@takes(options_of("check"))
@json_option
def check(target: str, pairs: tuple[str, ...], quick: bool, simulate: bool, seed: int, as_json: bool) -> None:
    """Test your declaration against laws that every declaration must obey, at your parameter values.

    The declaration is rewritten in ways that must not change any number, and the numbers are compared: symbols
    renamed, equations reordered, an intermediate named or written out, a Gaussian matrix as the sum of two, another
    sector as the base, numbers instead of parameters, functions of time written out step by step, a parameter at zero
    against a very small one. The averaged action is compared with the cavity argument, exact results with sampled ones
    and with exact arithmetic, the curve of the bulk with its equations, and the theory with simulations at two sizes,
    extrapolated in 1/size. Run this before you publish a result.

    A violated law is printed with the declarations that were compared, in a form that `derive solve` runs; please
    report it. "does not apply" means that the declaration has nothing to rewrite in this way, "not decided" that both
    versions are refused, and "one is refused" that only one of them is, which is not an error but worth checking.

    All laws take a few minutes, and --quick less than one; laws that do not fit in that time are "not tried".
    The exit code is 1 if a law is violated.

    \b
    Keys of --json:
      setting, parameters      what was checked
      laws                     law, status, reason, declarations: the texts that were compared

    \b
    Examples:
      derive check my_model.py --quick
      derive check my_model.py rate=-0.5 T=4
      derive check SETTING L=1 data=online --no-simulate
    """
    from derive.api.loading import load
    from derive.inputs.problems import load_problem

    problem = load_problem(target, pairs)
    with progress_bar(f"check of {problem.model.setting}", as_json) as progress:
        from derive.api import checking

        def tell(share: float, law: str) -> None:
            if progress is not None:
                progress(share, law)
            elif law and not as_json:
                click.echo(f"{100 * share:3.0f} %  {law}", err=True)

        result = checking.check(load(target)._source, problem, quick, simulate, seed, tell)
    if as_json:
        print_json(result.as_dict())
    else:
        _print(result)
    if not result:
        click.get_current_context().exit(1)


def _print(result: Check) -> None:
    rows = [(law.law, law.status, law.reason) for law in result]
    print_table(settings_line(result.made.setting, result.made.parameters), ("law", "", "why"), rows, text_columns=3)
    for law in result.broken:
        click.echo(f"broke: {law.law}\n{law.reason}")
        for text in law.declarations:
            click.echo(f"\n{text.rstrip()}\n")
    held = sum(law.status == "held" for law in result)
    many = len(result.broken)
    click.echo(f"{counted(many, 'law')} broke" if many else f"no law was broken, {held} held")
