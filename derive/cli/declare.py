"""Commands for declarations: list them, start a new one, show their derivation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derive.cli import completion
from derive.cli.output import json_option, number, print_json, print_table, progress_bar
from derive.cli.problem import named_with_choices, notation_option, target_argument, words_argument

if TYPE_CHECKING:
    from derive.language.model import Model
    from derive.language.symbols import Parameter

STAGES = tuple("system action average saddle single-site order method probe blocks pencil bulk".split())


@click.command("list")
@words_argument
@json_option
def list_settings(words: tuple[str, ...], as_json: bool) -> None:
    """List the shipped settings, or the parameters of the named ones.

    \b
    Examples:
      derive list                     every setting in one line
      derive list SETTING             its parameters: name, default, domain, meaning
      derive list my_model.py         the same for a declaration of your own
      derive list SETTING L=1         the same for another member of a family
    """
    from derive.inputs.loading import load_declaration, load_model, settings

    targets = named_with_choices(words)
    if not targets:
        if as_json:
            print_json({"settings": [{"name": name, "summary": summary} for name, summary in settings()]})
            return
        print_table("", ("setting", "what it is"), settings(), text_columns=2)
        click.echo("parameters of one: derive list SETTING")
        return
    models = [load_model(target, chosen) for target, chosen in targets]
    choices = [getattr(load_declaration(target), "choices", ()) for target, _ in targets]
    from derive.inputs.data_files import declared_data

    if as_json:
        print_json(
            {
                "settings": [
                    {
                        "name": model.setting,
                        "summary": model.doc.partition("\n")[0],
                        "choices": [
                            {"name": name, "default": c.default, "allowed": str(c), "meaning": c.doc}
                            for name, c in chosen
                        ],
                        "parameters": [_parameter(p) for p in model.parameters],
                        "observables": list(dict(model.observe)),
                        "layers": [label for label, _ in model.probes if label],
                        "data": {d.name: [str(a.size) for a in d.axes] for d in declared_data(model)},
                    }
                    for model, chosen in zip(models, choices, strict=True)
                ]
            }
        )
        return
    for model, chosen in zip(models, choices, strict=True):
        click.echo(f"{model.setting}: {model.doc.partition(chr(10))[0]}")
        if chosen:
            rows = [(name, str(c.default), str(c), c.doc) for name, c in chosen]
            print_table("", ("choice", "default", "values", "meaning"), rows, text_columns=4)
        rows = [(p.name, number(p.default), str(p.domain), p.doc) for p in model.parameters]
        print_table("", ("parameter", "default", "domain", "meaning"), rows, text_columns=4)
        click.echo(f"observables: {', '.join(dict(model.observe)) or 'none'}")
        arrays = [f"{d.name} ({' by '.join(str(a.size) for a in d.axes)})" for d in declared_data(model)]
        if arrays:
            name = declared_data(model)[0].name if "data" in dict(chosen) else "data"
            click.echo(f"data: {', '.join(arrays)}; {name}=FILE.npz gives your own" + _own_data(model))
        layers = [label for label, _ in model.probes if label]
        if layers:
            click.echo(f"layers: {', '.join(layers)} (layer=K picks one, layer=all is the default)")


def _own_data(model: Model) -> str:
    """Return the default data, from the declaration's own function, as text."""
    return "" if model.arrays is None else ", otherwise the declaration makes them"


def _parameter(parameter: Parameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "default": parameter.default,
        "domain": str(parameter.domain),
        "meaning": parameter.doc,
    }


@click.command(short_help="Write NAME.py, a commented declaration that already runs.")
@click.argument("name")
@click.option(
    "--path",
    "directory",
    default=".",
    show_default=True,
    metavar="DIR",
    shell_complete=completion.directories,
    help="The directory to write into.",
)
@json_option
def new(name: str, directory: str, as_json: bool) -> None:
    """Write NAME.py: a commented declaration that already runs, to be changed into your own model.

    An existing file is never overwritten.

    \b
    Examples:
      derive new my_model
      derive solve my_model.py
      derive new my_model --path declarations
    """
    import keyword

    from derive.cli.template import declaration
    from derive.errors import DeriveError
    from derive.inputs.loading import setting_names

    name = name.removesuffix(".py")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise DeriveError(f"{name!r} cannot name a model; use letters, digits and underscores, such as my_model")
    if name in setting_names():
        raise DeriveError(f"{name} is the name of a shipped setting; choose another, such as my_{name}")
    path = Path(directory) / f"{name}.py"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(declaration(name))
    except FileExistsError:
        raise DeriveError(f"{path} exists and is not overwritten; choose another name or another --path") from None
    except OSError as error:
        raise DeriveError(
            f"cannot write {path} ({error.strerror}); make the directory first or choose another --path"
        ) from None
    if as_json:
        print_json({"setting": name, "path": str(path)})
        return
    click.echo(
        f"wrote {path}\ntry: derive show {path} --stage bulk\n     derive solve {path}\n"
        f"     derive compare {path} --plot {name}.png"
    )


ALONE = ("limit", "recursion")
"""Stages of linear training that are shown by name only."""
CONJUGATES = "conjugates"
"""The stage of the conjugate order parameters, shown by name only."""


@click.command()
@target_argument
@click.argument("pairs", metavar="[CHOICE=VALUE]...", nargs=-1, shell_complete=completion.choices)
@click.option(
    "--stage", type=click.Choice((*STAGES, CONJUGATES, *ALONE)), help="Show one stage only; all of them otherwise."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(("text", "latex")),
    default="text",
    show_default=True,
    help="Plain text, or LaTeX to paste into a paper.",
)
@click.option("--equation", metavar="NUMBER", help="One equation only, by its number in derivation.md, such as B1.")
@notation_option
@json_option
def show(
    target: str,
    pairs: tuple[str, ...],
    stage: str | None,
    style: str,
    equation: str | None,
    notation: str,
    as_json: bool,
) -> None:
    """Show what follows from a declaration, stage by stage.

    \b
    system       the declared equations with weights written out as initial matrix plus history
    action       Martin-Siggia-Rose action           probe     spectral fields projected on the training fields
    average      averaged over the disorder          blocks    A(z), block by block
    saddle       order parameters at the saddle      pencil    the eigenproblem it reduces to, the scalar map
    single-site  noises, memory, laws of one site    bulk      algebraic curve, resolvent, edges
    order        which field needs which, and when   limit     the stationary limit of linear training
    method       exact, by quadrature or sampled     recursion the step that it applies over and over

    limit, recursion and conjugates (the order parameters and their conjugates) are shown by name only.

    Correlations are C[a, b](t, s), responses R[a, b](t, s) to the noise of b at time s; z is the spectral variable.
    Choices pick a member of a family of models, layer=K one of several probed matrices (the first otherwise).

    \b
    Examples:
      derive show SETTING
      derive show my_model.py --stage bulk
      derive show my_model.py --stage blocks --format latex
      derive show SETTING L=3 layer=2 --stage blocks
      derive show SETTING --equation B1 --format latex
      derive show SETTING --stage blocks --notation paper
    """
    from derive.errors import DeriveError
    from derive.inputs.problems import load_problem

    problem = load_problem(target, pairs)
    model = problem.model
    with progress_bar(f"deriving {model.name}", as_json):
        from derive.pipeline import derive_model
        from derive.printing import equations_of, latex_of_record, lettered, letters_of, text_of_record
        from derive.printing.documents import table_of_letters

        derivation = derive_model(model)
        letters = letters_of(model, notation)
        if equation is not None:
            with lettered(letters):
                numbered = equations_of(derivation, STAGES if stage is None else (stage,))
            where = "" if stage is None else f" in the stage {stage}"
            _print_equation(model.name, equation, numbered, where, style, as_json)
            return
        shown = derivation.probes[problem.layers[0]] if problem.layers else derivation
        if stage in ALONE:
            shown = derivation
        elif stage not in (None, CONJUGATES, *shown.stages):
            raise DeriveError(
                f"{model.name} declares no probe, so there is no stage {stage}; "
                f"add probe=spectrum(...) to its Model, or show one of {', '.join(shown.stages)}"
            )
        chosen = (stage,) if stage is not None else shown.stages
        printed = latex_of_record if style == "latex" else text_of_record
        with lettered(letters):
            texts = {name: printed(shown.record(name)).rstrip("\n") for name in chosen}
        table = [] if letters is None else table_of_letters(letters, style)
    if as_json:
        print_json({"setting": model.name, "format": style, "stages": texts})
        return
    if stage is None:
        _print_heading(model, "% " if style == "latex" else "")
    click.echo("\n\n".join(filter(None, ("\n".join(table), *texts.values()))))


def _print_equation(
    setting: str, label: str, numbered: Mapping[str, Any], where: str, style: str, as_json: bool
) -> None:
    """Print one equation by its number."""
    from derive.errors import DeriveError

    if label not in numbered:
        have = ", ".join(numbered) or "none"
        raise DeriveError(f"{setting} has no equation {label}{where}; its numbers are {have}"[:300])
    one = numbered[label]
    if as_json:
        print_json({"setting": setting, "equation": one.number, "text": one.text, "latex": one.latex})
    else:
        click.echo(one.latex if style == "latex" else one.text)


def _print_heading(model: Model, comment: str) -> None:
    """Print the name and the parameters of a model as comment lines."""
    click.echo("\n".join(f"{comment}{line}".rstrip() for line in (f"{model.name}: {model.doc}").splitlines()))
    for parameter in model.parameters:
        click.echo(
            f"{comment}  {parameter.name} = {number(parameter.default)}, {parameter.domain}"
            + (f": {parameter.doc}" if parameter.doc else "")
        )
    click.echo("")
