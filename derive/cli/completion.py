"""Shell completion: settings, files, parameters, choices and values.

Declarations are parsed and never run: completion must not execute code or wait for SymPy. A name that a declaration
computes at run time is therefore not offered. The README shows the line that enables it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from derive.support.source_lines import called_name

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]

_BUILT = Path(__file__).parents[2] / "generated"
CHOICES = ("whole_choice", "one_of", "formula")
"""The words of the language that declare choices of a family."""


@dataclass(frozen=True)
class Name:
    """A name that a model accepts: its meaning, and its values if they can be enumerated."""

    name: str
    doc: str = ""
    values: tuple[str, ...] = ()
    files: str = ""
    """The suffix of files that are values."""


@dataclass(frozen=True)
class DeclaredWords:
    """The names in the text of a declaration."""

    choices: tuple[Name, ...] = ()
    parameters: tuple[Name, ...] = ()
    observables: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    data: bool = False

    @property
    def names(self) -> tuple[Name, ...]:
        """All names that can precede an equals sign."""
        names = [*self.choices, *self.parameters]
        if self.layers:
            names.append(Name("layer", "one of several probed matrices", (*self.layers, "all")))
        if self.data:
            names.append(Name("data", "a file of arrays", files=".npz"))
        return tuple({name.name: name for name in reversed(names)}.values())[::-1]


# Completers


def targets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete shipped settings and files of declarations."""
    from derive.inputs.loading import settings

    shipped = [CompletionItem(name, help=doc) for name, doc in settings() if name.startswith(incomplete)]
    return [*shipped, *files(".py")(context, parameter, incomplete)]


def values(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete name=value for every name that the model accepts."""
    return _pairs(declared(_target(context)).names, _given(context, parameter), incomplete)


def choices(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete name=value for the choices of a family."""
    words = declared(_target(context))
    layer = [name for name in words.names if name.name == "layer"]
    return _pairs((*words.choices, *layer), _given(context, parameter), incomplete)


def targets_and_choices(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Complete models, each followed by choices."""
    given = _given(context, parameter)
    models = [i for i, word in enumerate(given) if "=" not in word]
    named = declared(given[models[-1]]).choices if models else ()
    chosen = given[models[-1] + 1 :] if models else ()
    return [*_pairs(named, chosen, incomplete), *targets(context, parameter, incomplete)]


def parameters(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete names of parameters."""
    names = declared(_target(context)).parameters
    return [CompletionItem(name.name, help=name.doc) for name in names if name.name.startswith(incomplete)]


def small_parameters(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete names of parameters and their inverses."""
    items = parameters(context, parameter, incomplete.removeprefix("1/"))
    inverse = [CompletionItem(f"1/{item.value}", help=item.help) for item in items]
    return [item for item in (*items, *inverse) if item.value.startswith(incomplete)]


def observables(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete names of observables."""
    names = declared(_target(context)).observables
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def layers(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete labels of probed matrices."""
    labels = declared(_target(context)).layers
    return [CompletionItem(name) for name in labels if name.startswith(incomplete)]


def files(*suffixes: str) -> Completer:
    """Return a completer of files with one of these suffixes (or any), and of directories."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return [CompletionItem(path) for path in _paths(incomplete, suffixes)]

    return complete


def directories(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete directories."""
    return [CompletionItem(path) for path in _paths(incomplete, ("/",))]


def _target(context: click.Context) -> str | None:
    """Return the named model from the raw words: click has not parsed them while an option awaits its value."""
    named: str | None = context.params.get("target")
    return named or next((word for word in context.args if not word.startswith("-")), None)


def _given(context: click.Context, parameter: click.Parameter) -> tuple[str, ...]:
    """Return the words before the one being completed."""
    return tuple(context.params.get(parameter.name or "") or ())


def _pairs(names: Iterable[Name], given: Iterable[str], incomplete: str) -> list[CompletionItem[str]]:
    """Return name= for each name not given yet, or name=value after the equals sign or if only one name with values
    remains.
    """
    taken = {word.partition("=")[0] for word in given}
    name, equals, value = incomplete.partition("=")
    left = [n for n in names if n.name not in taken and (n.name == name if equals else n.name.startswith(name))]
    if not equals and (len(left) != 1 or len(left[0].values) < 2):
        return [CompletionItem(f"{n.name}=", help=n.doc) for n in left]
    items = []
    for n in left:
        earlier, comma, last = value.rpartition(",")  # several values make a sweep
        possible = [*n.values, *(_paths(last, (n.files,)) if n.files else ())]
        start = f"{n.name}={earlier}{comma}"
        taken = set(earlier.split(","))
        items += [CompletionItem(start + v, help=n.doc) for v in possible if v.startswith(last) and v not in taken]
    return items


def _paths(incomplete: str, suffixes: tuple[str, ...]) -> list[str]:
    """Return matching paths, directories with a trailing /; hidden files only after a dot."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder + slash) or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    paths = []
    for entry in entries:
        name = entry.name + "/" * entry.is_dir()
        wanted = not suffixes or name.endswith(("/", *suffixes))
        if wanted and name.startswith(start) and (start or not name.startswith((".", "__pycache__"))):
            paths.append(folder + slash + name)
    return paths


# Names in the text of a declaration


def declared(target: str | None) -> DeclaredWords:
    """Return the names in a shipped setting or a file; none if it cannot be read."""
    from derive.inputs.loading import declaration_sources, is_file_target, setting_names

    if not target:
        return DeclaredWords()
    file = is_file_target(target)
    if not file and target not in setting_names():
        return DeclaredWords()
    try:
        trees = [ast.parse(text) for _, text in declaration_sources(target)]
    except (OSError, SyntaxError, ValueError, RecursionError):
        return DeclaredWords()
    if not trees:
        return DeclaredWords()
    calls = [call for tree in trees for call in _calls(tree)]
    families = [call for call in _calls(trees[0]) if called_name(call) == "family"]
    keywords: list[tuple[str, Any]] = [(k.arg or "", k.value) for call in families for k in call.keywords]
    followed, probed = (_entries(calls, "observe"), _entries(calls, "probe")) if file else _built(target)
    return DeclaredWords(
        choices=tuple(_choice(name, value) for name, value in keywords if called_name(value) in CHOICES),
        parameters=tuple(_parameters(calls)),
        observables=followed,
        layers=probed,
        data=any(called_name(call) == "data" for call in calls),
    )


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _text(node: ast.AST | None) -> str:
    """Return a string or number literal as written; "" for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        return str(node.value)
    return ""


def _keyword(call: ast.Call, name: str) -> str:
    return next((_text(keyword.value) for keyword in call.keywords if keyword.arg == name), "")


def _parameters(calls: Iterable[ast.Call]) -> Iterator[Name]:
    for call in calls:
        name = _text(call.args[0]) if called_name(call) == "parameter" and call.args else ""
        if name.isidentifier():
            default = _keyword(call, "default") or (_text(call.args[1]) if len(call.args) > 1 else "")
            yield Name(name, _keyword(call, "doc"), (default,) * bool(default))


def _choice(name: str, node: ast.Call) -> Name:
    words = [_text(argument) for argument in node.args]
    if called_name(node) == "formula":
        words = [keyword.arg for keyword in node.keywords if keyword.arg and keyword.arg != "doc"]
    elif called_name(node) == "whole_choice":
        words = words[:1]
    return Name(name, _keyword(node, "doc"), tuple(word for word in words if word))


def _entries(calls: Iterable[ast.Call], name: str) -> tuple[str, ...]:
    """Return the keys of the dictionaries passed under this name."""
    dictionaries = (k.value for call in calls if called_name(call) == "Model" for k in call.keywords if k.arg == name)
    return tuple(
        dict.fromkeys(
            text for node in dictionaries if isinstance(node, ast.Dict) for text in map(_text, node.keys) if text
        )
    )


def _built(setting: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return observables and layer labels of a shipped setting, from its generated code."""
    try:
        calls = list(_calls(ast.parse((_BUILT / setting / "__init__.py").read_text(encoding="utf-8"))))
    except (OSError, SyntaxError, ValueError):
        return (), ()
    names = [_text(call.args[0]) for call in calls if called_name(call) == "ObservableOf" and call.args]
    labels = [_text(call.args[0]) for call in calls if called_name(call) == "ProbeOf" and call.args]
    return tuple(names), tuple(label for label in labels if label)


# Bash takes a word apart at every equals sign, and puts a space after what it completes


class BashWords(BashComplete):
    """Bash completion of words that contain an equals sign."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n'
    COMPREPLY=($(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1"))
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace
    fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        incomplete = "" if not words or line[-1].isspace() else words.pop()
        breaks = [mark for mark in "=:" if mark in os.environ.get("COMP_WORDBREAKS", "=:")]
        self.there = max((incomplete.rfind(mark) + 1 for mark in breaks), default=0)
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return the completion after the last word break, with special characters escaped."""
        return re.sub(r"([^\w@%+=:,./~-])", r"\\\1", item.value[self.there :])


# Zsh puts a space after whatever it completes, Fish is told to cut words and their meanings at a comma


class ZshWords(ZshComplete):
    """Zsh completion that continues after an equals sign and after a directory."""

    source_template = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a response plain plain_open described described_open
    (( ! $+commands[%(prog_name)s] )) && return 1
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete \
%(prog_name)s)}")
    for type key meaning in ${response}; do
        if [[ "$key" == *[=/] ]]; then
            [[ "$meaning" == "_" ]] && plain_open+=("$key") || described_open+=("$key:$meaning")
        else
            [[ "$meaning" == "_" ]] && plain+=("$key") || described+=("$key:$meaning")
        fi
    done
    [ -n "$described" ] && _describe -V unsorted described -U
    [ -n "$described_open" ] && _describe -V unsorted described_open -U -S ''
    [ -n "$plain" ] && compadd -U -V unsorted -a plain
    [ -n "$plain_open" ] && compadd -U -V unsorted -S '' -a plain_open
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    (( $+functions[compdef] )) || { autoload -U compinit && compinit }
    compdef %(complete_func)s %(prog_name)s
fi
"""


class FishWords(FishComplete):
    """Fish completion of words and descriptions that contain commas."""

    source_template = """\
function %(complete_func)s
    set -l response (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) \
%(prog_name)s)
    for completion in $response
        string split -m 1 "," $completion | tail -n 1
    end
end

complete --no-files --keep-order --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


def switch_on() -> None:
    """Register these completions with click."""
    for shell in (BashWords, ZshWords, FishWords):
        add_completion_class(shell)
