"""The command that builds the documentation site."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path

import click

from derive.cli import completion
from derive.errors import DeriveError
from derive.support.extras import check_installed

SITE = Path(__file__).resolve().parents[2] / "notebooks" / "site"


@click.command(short_help="Build the documentation site and open it.")
@click.option(
    "--out",
    default="site",
    show_default=True,
    metavar="DIR",
    shell_complete=completion.directories,
    help="The directory to write the site into.",
)
@click.option("--no-browser", is_flag=True, help="Only print the location of the site.")
def docs(out: str, no_browser: bool) -> None:
    """Build the documentation site from the manual, the executed notebooks and the docstrings, and open it.

    The site is a directory of static pages with a search. It loads nothing from elsewhere, so that it works without a
    network and from a file. Building takes about ten seconds and needs a checkout of the project, and Sphinx:
    pip install 'two-level-dmft[docs]'.

    \b
    Examples:
      derive docs
      derive docs --out pages --no-browser
    """
    if not SITE.is_dir():
        raise DeriveError("the pages of the site are not part of an installed copy; run derive docs in a checkout")
    check_installed("sphinx")
    index = build_site(Path(out))
    click.echo(str(index))
    if not no_browser:
        import webbrowser

        webbrowser.open(index.resolve().as_uri())


def build_site(place: Path) -> Path:
    """Build the site in a directory and return its first page.

    Raises:
        DeriveError: Sphinx reports an error or a warning, such as a link that leads nowhere.
    """
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory() as sources:
        runpy.run_path(str(SITE / "pages.py"))["gather"](Path(sources))
        if build_main(["-q", "-W", "--keep-going", "-E", "-b", "html", "-c", str(SITE), sources, str(place)]):
            raise DeriveError("the site was not built; the lines above name the page and the problem")
    return place / "index.html"
