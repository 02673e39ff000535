"""Arguments and options that commands share, and the model with its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from derive.cli import completion
from numerics.options import OptionInfo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from derive.api import Theory

    _Kind = click.ParamType[Any]
else:
    _Kind = click.ParamType  # older versions of click have no kinds of kinds

F = TypeVar("F", bound=Callable[..., Any])
COMPLETED: dict[str, Any] = {
    "journal": completion.files(".journal"),
    "of": completion.parameters,
    "loss": completion.observables,
    "curvature": completion.layers,
}
"""The shell completion of each option."""


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


class AsTyped(_Kind):
    """A click type that passes a number as typed; the API validates it, as it does in Python."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        for kind in (int, float):
            try:
                return kind(value)
            except (ValueError, OverflowError):
                pass
        return value


class OneOf(_Kind):
    """A click type for one of several words, completed here and validated by the API."""

    name = "word"

    def __init__(self, *words: str) -> None:
        self.words = words

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(self.words)}]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


notation_option = click.option(
    "--notation",
    type=OneOf("model", "paper"),
    default="model",
    show_default=True,
    help="Use the names of the model, or the symbols declared for its source, preceded by a table of symbols.",
)
"""The option of commands that print derived formulas."""
target_argument = click.argument("target", metavar="SETTING|FILE", shell_complete=completion.targets)
values_argument = click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1, shell_complete=completion.values)
words_argument = click.argument(
    "words",
    metavar="[SETTING|FILE [CHOICE=VALUE]...]...",
    nargs=-1,
    shell_complete=completion.targets_and_choices,
)
plot_option = click.option(
    "--plot",
    metavar="FILE.png",
    shell_complete=completion.files(".png", ".pdf", ".svg"),
    help="Draw the result (.png, .pdf or .svg).",
)

plot_data_option = click.option(
    "--plot-data", is_flag=True, help="Also write the numbers of --plot to a CSV file of the same name."
)
quantity_option = click.option(
    "--quantity",
    metavar="NAME",
    shell_complete=completion.observables,
    help="What --plot draws on a grid: an observable at the last time or as 'NAME at TIME', outlier_1, upper_edge, "
    "bbp_time, ...; by default the loss, or else the first outlier or edge.",
)
log_option = click.option("--log", is_flag=True, help="Draw the quantity of a grid on a logarithmic scale.")

out_option = click.option(
    "-o",
    "--out",
    metavar="FILE",
    shell_complete=completion.files(".jsonl", ".csv", ".nc", ".zarr"),
    help="Also write the results: FILE.jsonl, one JSON object per point, FILE.csv, or FILE.nc or FILE.zarr for "
    "derive.open.",
)


def wanted_eigenvalues(
    given: str | None, size: Any, out: str | None, plot: str | None, pairs: tuple[str, ...]
) -> str | None:
    """Return the value of --eigenvalues, or its default: histograms and output files need all."""
    from derive.inputs.problems import makes_a_grid
    from numerics.options import LARGE

    whole_file = out is not None and Path(out).suffix in (".nc", ".zarr")
    histogram = plot is not None and not makes_a_grid(pairs)
    if given == "ends" and histogram:
        raise click.UsageError("--plot draws a histogram, which needs all eigenvalues: leave out --eigenvalues ends")
    large = not isinstance(size, str) and size >= LARGE
    return given or ("ends" if large and not whole_file and not histogram else None)


def check_plot(plot: str | None) -> None:
    """Raise if a figure cannot be written, before any computation."""
    if plot is None:
        return
    path = Path(plot)
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise click.UsageError(f"--plot {plot}: end the file name in .png, .pdf or .svg")
    if not path.parent.is_dir():
        raise click.UsageError(f"--plot {plot}: there is no directory {path.parent}; make it first")
    if path.is_dir():
        raise click.UsageError(f"--plot {plot} is a directory; give a file name")


def save_plot(figure: Figure, plot: str) -> None:
    """Write a figure; the suffix selects the format."""
    import io

    import matplotlib

    from derive.errors import DeriveError
    from derive.support.guarded import write_whole

    drawn = io.BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):  # text stays text
        figure.savefig(drawn, dpi=200, format=Path(plot).suffix.lower().removeprefix("."))
    try:
        write_whole(Path(plot), drawn.getvalue())
    except OSError as error:
        raise DeriveError(f"cannot write {plot} ({error.strerror}); choose another file for --plot") from None


def beside_plot(plot: str) -> str:
    """Return the name of the table with the numbers of a figure."""
    return str(Path(plot).with_suffix(".csv"))


def loaded(target: str, pairs: Sequence[str]) -> tuple[Theory, dict[str, Any], bool]:
    """Return a model, its values as the verbs take them, and whether they form a grid."""
    from derive.api import load
    from derive.inputs.problems import typed_values

    theory = load(target)
    given = typed_values(theory.declared, pairs)
    several = any(len(values) > 1 for values in given.values())
    return theory, {name: list(values) if len(values) > 1 else values[0] for name, values in given.items()}, several


def named_with_choices(words: tuple[str, ...]) -> list[tuple[str, dict[str, int | str]]]:
    """Return models with the choices that follow each."""
    models: list[tuple[str, dict[str, int | str]]] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            models.append((word, {}))
        elif not models:
            raise click.UsageError(f"{word} is a choice without a model; name the model first")
        else:
            models[-1][1][name.strip()] = value.strip()
    return models
