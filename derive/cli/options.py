"""Click options generated from the records that declare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from derive.cli import completion
from derive.cli.problem import AsTyped, OneOf
from numerics.options import OptionInfo

F = TypeVar("F", bound=Callable[..., Any])
COMPLETED: dict[str, Any] = {
    "journal": completion.files(".journal"),
    "of": completion.parameters,
    "loss": completion.observables,
    "curvature": completion.layers,
}
"""The shell completion of each option."""


notation_option = click.option(
    "--notation",
    type=OneOf("model", "paper"),
    default="model",
    show_default=True,
    help="The names of the model, or the letters that it declares for its source, with the table of letters first.",
)
"""The option of commands that print derived formulas."""


def takes(options: Mapping[str, OptionInfo]) -> Callable[[F], F]:
    """Return a decorator that adds declared options to a command, in their order."""

    def add(command: F) -> F:
        for name, declared in reversed(list(options.items())):
            if declared.flag is not None:
                command = click_option(name, declared)(command)
        return command

    return add


def click_option(name: str, declared: OptionInfo) -> Callable[[F], F]:
    """Return one declared option as a click option."""
    flag = declared.flag or f"--{name.replace('_', '-')}"
    more: dict[str, Any] = {"help": f"{declared.help} {declared.cost}".rstrip(), "default": declared.default}
    if "bool" in declared.type:
        flag = flag if declared.default is False else f"{flag}/--no-{flag[2:]}"
        return click.option(flag, name, is_flag=True, **more)
    if declared.default is not None and declared.default != ():
        more["show_default"] = True
    if declared.metavar:
        more["metavar"] = declared.metavar
    if declared.domain.words:
        more["type"] = OneOf(*declared.domain.words)
    elif "int" in declared.type or "float" in declared.type:
        more["type"] = AsTyped()
    if "Sequence" in declared.type:
        more["multiple"] = True
    return click.option(flag, name, shell_complete=COMPLETED.get(name), **more)
