"""The command line. Every command imports its dependencies when it runs, so that help is immediate."""

from __future__ import annotations

import click

from derive.cli.bench import bench
from derive.cli.build import build
from derive.cli.check import check
from derive.cli.compare import compare
from derive.cli.declare import list_settings, new, show
from derive.cli.docs import docs
from derive.cli.expand import expand
from derive.cli.explore import explore
from derive.cli.group import CONTEXT, DeriveGroup
from derive.cli.limit import limit
from derive.cli.report import report
from derive.cli.selftest import selftest
from derive.cli.simulate import simulate
from derive.cli.solve import solve
from derive.cli.spectrum import spectrum
from derive.cli.stability import stability
from derive.cli.sweeping import merge
from derive.cli.verify import verify


@click.group(cls=DeriveGroup, name="derive", context_settings=CONTEXT, invoke_without_command=True)
@click.option("--version", is_flag=True, help="Print the versions of this package and its libraries, and the commit.")
@click.pass_context
def main(context: click.Context, version: bool) -> None:
    """From a declared random-matrix or learning model to its equations, outliers, solver and simulation.

    SETTING is the name of a shipped setting (derive list) or the path of your own declaration, a .py file.
    Parameters are given as name=value; those left out take the defaults of the declaration.

    \b
    Examples:
      derive list                                      the settings that ship
      derive new my_model                              a declaration of your own, which already runs
      derive list my_model.py                          its parameters: name, default, domain, meaning
      derive show my_model.py --stage bulk             one stage of the derivation
      derive solve my_model.py eta=0.5 T=4             bulk edges, outliers, order parameters
      derive compare my_model.py --plot out.png        theory against simulation
      derive check my_model.py --quick                 test your model against laws that every model must obey
      derive explore my_model.py                       a page where every parameter is a slider
      derive report my_model.py -o report.html         the whole derivation as one page, or as LaTeX
      derive expand my_model.py --of edge --in 1/nu    an edge as a series, exactly
      derive verify                                    the claims of the project, proved
      derive spectrum weights.safetensors              bulk and outliers of a network you trained

    \b
    Exit codes: 0 done; 1 a claim or a law fails, compare disagrees, or generated code is stale; 2 bad input,
    nothing written; 3 the computation diverged, did not converge, failed a check or met a NaN; 4 a claim is neither
    proved nor refuted, or a comparison needs more seeds; 5 a claim is only supported; 130 interrupted.
    """
    if version:
        from derive.version import describe

        click.echo(describe())
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    list_settings,
    new,
    show,
    build,
    solve,
    simulate,
    compare,
    check,
    explore,
    merge,
    report,
    stability,
    limit,
    expand,
    verify,
    spectrum,
    selftest,
    bench,
    docs,
):
    main.add_command(command)
