"""The command that serves a page with sliders."""

from __future__ import annotations

from typing import Any

import click

from derive.cli.output import progress_bar
from derive.cli.problem import takes, target_argument, values_argument
from derive.support.extras import check_installed
from numerics.options import options_of, read_options


@click.command(short_help="A page with a slider for each parameter, on this machine.")
@target_argument
@values_argument
@takes(options_of("explore"))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=5006,
    show_default=True,
    metavar="N",
    help="The port on which the page is served; 0 takes any free one.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def explore(target: str, pairs: tuple[str, ...], samples: int | None, port: int, no_browser: bool) -> None:
    """Serve a page with a slider for each parameter; the plot updates as you drag.

    The page shows the bulk with its outliers, the outliers over time, the observables and, on request, a simulation.
    Sliders of positive numbers are logarithmic, whole numbers move in steps of one, and choices of a family are lists.
    The sliders start at the values given here; data=FILE.npz and layer=NAME are fixed. The first point is compiled and
    solved before the address is printed. Another point takes a fraction of a second, or a few seconds if a whole number
    or a choice needs code that is not compiled yet. A point that diverges is reported as such. Below the plots are the
    command and the lines of Python that reproduce the point.

    The page is served to this machine only and loads nothing from elsewhere. It needs Bokeh:
    pip install 'two-level-dmft[explore]'. Press Ctrl-C to stop.

    \b
    Examples:
      derive explore SETTING
      derive explore my_model.py eta=0.5 --port 8000 --no-browser
    """
    check_installed("bokeh")
    from derive.explore.page import free_port, serve

    place = free_port(port)
    from derive.cli.problem import loaded
    from derive.explore.points import Explorer, Wish

    read_options("explore", {"samples": samples})
    theory, given, several = loaded(target, pairs)
    if several:
        raise click.UsageError("a slider starts from one value; derive solve takes several")
    family = dict(theory.declared.open_choices)
    choices = tuple((name, choice.read(name, given.get(name, choice.default))) for name, choice in family.items())
    fixed = {name: value for name, value in given.items() if name in ("data", "layer") and name not in family}
    explorer = Explorer(target, fixed, samples)
    member = explorer.theory(choices)
    inputs = {name: value for name, value in given.items() if name not in family}
    checked = member.inputs(inputs)
    start = Wish(choices, tuple((p.name, checked[p.name]) for p in member.parameters))
    with progress_bar(f"solving {target}", False) as progress:
        if progress is not None:
            progress(0.1, "the first point")
        explorer.shown(start)

    def ready(address: str, loop: Any) -> None:
        click.echo(f"{target} at {address} (Ctrl-C ends it)")
        if not no_browser:
            import webbrowser

            loop.call_later(0.1, webbrowser.open, address)

    try:
        serve(explorer, start, place, ready)
    except KeyboardInterrupt:
        click.echo("stopped")
