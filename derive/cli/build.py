"""The command that writes the generated code."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derive.cli import completion
from derive.cli.output import json_option, print_json, progress_bar
from derive.cli.problem import named_with_choices, notation_option, takes, words_argument
from numerics.options import options_of

if TYPE_CHECKING:
    from derive.language.model import Model


HELP = """
Write the solver and the derivation of each model into generated/<name>/.

Without arguments every shipped setting is built, into the project's generated/ directory. Your own declarations
are built into generated/ of the current directory. An installed copy of the project is never changed: outside a
checkout --out is needed. All code is derived before anything is replaced: a build that fails leaves everything as
it was. The same declaration gives the same bytes on every machine.
For a family of models the default member is built, or the one selected by the choices after its name.
Outside the project each solver gets a copy of the shared functions, so that it stands alone.

With --target cuda nothing is written: every generated function, and the quantities of m.function with their
derivatives, are compiled for a GPU, which need not be present. Parameters may follow the name of a model, as for
solve; without arguments all settings are compiled. Nothing is executed on a GPU, so no time is measured. The table
lists the kernels of a call outside of loops, the kernels per step of each loop (lowest to highest number), and the
bytes per point. It also estimates two batch sizes: the number of points at which the device is busy (the mean kernel
has as many entries as the device holds threads), and the number that fits into its memory. The compiler is installed
by pip install 'two-level-dmft[gpu]'.

\b
Keys of --json with --target:
  compiled          each model: setting, device (published figures), devices, batch, functions, host, versions
  functions of one  name, seconds (to compile), kernels (in one call, null where a loop ends at a condition), once,
                    steps (kernels in a step of each loop), loops (how often each runs, null likewise), custom_calls,
                    host_calls, collectives, floats, memory, workspace, busy, most
  host of one       name and why of what runs on the host

\b
Examples:
  derive build
  derive build --check
  derive build SETTING my_model.py --out solvers
  derive build SETTING L=3 --out solvers
  derive build SETTING T=10 --target cuda --device a100
  derive build my_model.py --target cuda --batch 4096 --devices 4
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
@takes({name: replace(one, default=None) for name, one in options_of("compile").items()})
@notation_option
@json_option
def build(words: tuple[str, ...], check: bool, out: str | None, notation: str, as_json: bool, **compiling: Any) -> None:
    """Write the solver and the derivation of each model into generated/<name>/, or compile it for a GPU."""
    if compiling["target"] is not None:
        if check or out is not None or notation != "model":
            raise click.UsageError("--target writes nothing: leave out --check, --out and --notation")
        from derive.cli.compiled import print_compiled

        print_compiled(words, {name: value for name, value in compiling.items() if value is not None}, as_json)
        return
    for name, value in compiling.items():
        if value is not None:
            raise click.UsageError(f"--{name} compiles for a GPU: add --target cuda")
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
    mend = shlex.join(["derive", "build", *words, *(["--out", out] if out is not None else [])])
    _print_differences(names, differences, mend, as_json)


def _print_differences(names: list[str], differences: Mapping[Path, Any], mend: str, as_json: bool) -> None:
    """Print which files differ from what would be written; exit 1 if any does."""
    contents = {
        kind: [_shown(place / name) for place, difference in differences.items() for name in getattr(difference, kind)]
        for kind in ("stale", "missing", "extra", "foreign")
    }
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
