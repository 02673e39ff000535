"""The command that writes the generated code."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from derive.cli import completion
from derive.cli.options import notation_option
from derive.cli.output import json_option, print_json, progress_bar
from derive.cli.problem import named_with_choices, words_argument

if TYPE_CHECKING:
    from derive.language.model import Model


HELP = """
Write the solver and the derivation of each model into generated/<name>/.

Without arguments every shipped setting is built, into the project's generated/ directory. Your own declarations
are built into generated/ of the current directory. An installed copy of the project is never changed: outside a
checkout --out is needed. All code is derived before anything is replaced: a build that fails leaves everything as
it was. The same declaration gives the same bytes on every machine.
Of a family of models the default member is built, or the one that the choices after its name ask for.
Outside the project each solver gets a copy of the functions that all solvers share, so that it stands alone.

\b
Examples:
  derive build
  derive build --check
  derive build SETTING my_model.py --out solvers
  derive build SETTING L=3 --out solvers
  derive build SETTING --notation paper --out solvers
"""


@click.command(short_help="Write solvers and derivations into generated/.", help=HELP)
@words_argument
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 1 and name the files that are stale, missing or extra."
)
@click.option(
    "--out", metavar="DIR", shell_complete=completion.directories, help="Write DIR/<name>/ instead of the usual place."
)
@notation_option
@json_option
def build(words: tuple[str, ...], check: bool, out: str | None, notation: str, as_json: bool) -> None:
    """Write the solver and the derivation of each model into generated/<name>/."""
    from derive.codegen.build import compare_tree, generate_tree, project_directory, write_tree

    whole = not words
    places = _models_by_directory(words, out, check)
    with progress_bar("building", as_json) as progress:
        from derive.api.building import in_notation
        from derive.codegen import generate_alone, generate_files

        home = project_directory().resolve()
        trees = {
            place: generate_tree(
                models,
                in_notation(generate_files if place.resolve() == home else generate_alone, notation),
                progress,
            )
            for place, models in places.items()
        }
        if not check:
            written = [path for place, tree in trees.items() for path in write_tree(tree, place, whole)]
    names = [model.name for models in places.values() for model in models]
    if not check:
        if as_json:
            print_json({"settings": names, "written": [_shown(path) for path in written]})
        else:
            for place, tree in trees.items():
                for name, files in tree.items():
                    click.echo(f"{name}: {len(files)} files in {_shown(place / name)}/")
        return
    differences = {place: compare_tree(tree, place, whole) for place, tree in trees.items()}
    contents = {
        kind: [_shown(place / name) for place, difference in differences.items() for name in getattr(difference, kind)]
        for kind in ("stale", "missing", "extra", "foreign")
    }
    mend = shlex.join(["derive", "build", *words, *(["--out", out] if out is not None else [])])
    if as_json:
        contents["extra"] += contents.pop("foreign")
        print_json({"settings": names, **contents, "up_to_date": not any(contents.values()), "mend": mend})
    elif not any(contents.values()):
        click.echo(f"up to date: {', '.join(names)}")
    else:
        for kind, label in (("stale", "stale"), ("missing", "missing"), ("extra", "extra"), ("foreign", "extra")):
            for name in contents[kind]:
                click.echo(f"{label}: {name}")
        if contents["stale"] or contents["missing"] or contents["extra"]:
            click.echo(f"write it again with: {mend}")
        if contents["foreign"]:
            click.echo(f"belongs to no setting: remove it with: rm -r {shlex.join(contents['foreign'])}")
    if any(contents.values()):
        click.get_current_context().exit(1)


def _models_by_directory(words: tuple[str, ...], out: str | None, check: bool) -> dict[Path, list[Model]]:
    """Return the models to build, by the directory that their code goes into."""
    from derive.codegen.build import build_directory, project_directory
    from derive.errors import DeriveError
    from derive.inputs.loading import is_file_target, load_model, setting_names
    from derive.support.places import refuse_among_packages

    places: dict[Path, list[Model]] = {}
    for target, chosen in named_with_choices(words) or [(name, {}) for name in setting_names()]:
        own = is_file_target(target)
        model = load_model(target, chosen)
        shipped = not own and model.name == target
        directory = build_directory(out, shipped, writing=not check)
        if not check and directory.resolve() != project_directory().resolve():
            refuse_among_packages(directory)
        if own and model.name in setting_names() and directory.resolve() == project_directory().resolve():
            raise DeriveError(
                f"{target} would replace the code of the shipped setting {model.name}; rename the file or use --out DIR"
            )
        place_of_setting = next((place for place in places if place.resolve() == directory.resolve()), directory)
        places.setdefault(place_of_setting, []).append(model)
    return places


def _shown(path: Path) -> str:
    """Return the path relative to the current directory, if it lies below it."""
    absolute = path.resolve()
    here = Path.cwd()
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else os.fspath(path)
