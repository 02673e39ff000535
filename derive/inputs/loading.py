"""Load a declaration by the name of a shipped setting or by the path of a file.

SymPy is imported only when a declaration is loaded, so listing the settings is immediate.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from derive.errors import DeclarationError, DeriveError, ParameterError
from derive.support.bounds import DECLARATION_SIZE
from derive.support.guarded import read_bytes

if TYPE_CHECKING:
    from derive.language.family import Family
    from derive.language.model import Model

    Declared = Model | Family

_MODELS = Path(__file__).parents[1] / "models"
_PRIVATE = "_declaration_"


@cache
def settings() -> tuple[tuple[str, str], ...]:
    """Return the shipped settings: name and first line of the docstring, in alphabetical order."""
    listed = []
    for path in sorted(_MODELS.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        targets = [target for node in tree.body for target in getattr(node, "targets", ())]
        if any(getattr(target, "id", "") == "MODEL" for target in targets):
            listed.append((path.stem, (ast.get_docstring(tree) or "").partition("\n")[0]))
    return tuple(listed)


def setting_names() -> tuple[str, ...]:
    return tuple(name for name, _ in settings())


def is_file_target(target: str) -> bool:
    """Return whether a target is a file: it has a directory, ends in .py, or exists and is not a setting."""
    if target.endswith(".py") or "/" in target or "\\" in target:
        return True
    return Path(target).is_file() and target not in setting_names()


def load_model(target: str, chosen: Mapping[str, int | str] | None = None) -> Model:
    """Return the model of a shipped setting or file, named after it; of a family, the chosen member."""

    declared = load_declaration(target)
    names = [name for name, _ in declared.open_choices]
    unknown = [name for name in chosen or () if name not in names]
    if unknown and not names:
        raise ParameterError(f"{declared.name} is one model: there is no {unknown[0]!r} to choose")
    if unknown:
        raise ParameterError(
            f"{declared.name} has no choice {unknown[0]!r}{nearest(unknown[0], names)}; "
            f"its choices are {', '.join(names)}"
        )
    return declared.member(chosen or {})


def load_declaration(target: str) -> Declared:
    """Return the model or family that a shipped setting or file declares."""
    if is_file_target(target):
        return _load_file(target)
    names = setting_names()
    if target not in names:
        if Path(f"{target}.py").is_file():
            raise DeclarationError(f"there is no setting {target!r}, but there is a file: write {target}.py")
        raise DeclarationError(
            f"there is no setting {target!r}{nearest(target, names)}; the settings are {', '.join(names)}, "
            "and a path to a .py file loads your own declaration"
        )
    return _shipped(target)


@cache
def _shipped(name: str) -> Declared:
    """Return a shipped setting, cached because a family stores the members that it has declared."""
    return _named(importlib.import_module(f"derive.models.{name}"), name, name)


def declaration_sources(target: str) -> tuple[tuple[str, str], ...]:
    """Return name and text of a declaration's file and of the files beside it that it imports."""
    path = Path(target) if is_file_target(target) else _MODELS / f"{target}.py"
    texts: dict[str, str] = {}
    waiting = [path]
    while waiting:
        path = waiting.pop(0)
        if path.name in texts or not path.is_file():
            continue
        texts[path.name] = source = read_bytes(path, DECLARATION_SIZE).decode("utf-8", errors="replace")
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.ImportFrom(module=str(name)):
                    names = [name]
                case ast.Import(names=aliases):
                    names = [alias.name for alias in aliases]
                case _:
                    names = []
            waiting += [path.parent / f"{name.removeprefix('derive.models.')}.py" for name in names]
    return tuple(texts.items())


def _load_file(target: str) -> Declared:
    path = Path(target)
    if not os.path.lexists(path):
        raise DeclarationError(f"there is no file {target}; check the path, or start one with `derive new {path.stem}`")
    source = read_bytes(path, DECLARATION_SIZE, DeclarationError)
    name = re.sub(r"\W", "_", path.stem)
    name = name if name.isidentifier() else f"model_{name}"
    module = ModuleType(_PRIVATE + name)
    module.__file__ = str(path)
    # before the caller's directory comes first on the path
    as_declaration_error = importlib.import_module("derive.language.cures").as_declaration_error
    importlib.import_module("derive.language.model")
    with _importing_from(path.resolve().parent, module):
        try:
            exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
        except DeclarationError:
            raise
        except DeriveError as error:
            raise DeclarationError(f"{_place(path, target, error)}: {error}") from None
        except SyntaxError as error:
            line = (
                f", line {error.lineno}"
                if error.filename == str(path)
                else f" imports {error.filename}, line {error.lineno}"
            )
            raise DeclarationError(f"{target}{line}: SyntaxError: {error.msg}; change the line and run again") from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the file raises
            raise as_declaration_error(error, _advice(error)) from None
    return _named(module, name, target)


@contextmanager
def _importing_from(directory: Path, module: ModuleType) -> Iterator[None]:
    """Let a file import its neighbours, and restore the interpreter's state afterwards."""
    path, modules, bytecode = list(sys.path), set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, str(directory))
    sys.modules[module.__name__] = module
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path[:] = path
        sys.dont_write_bytecode = bytecode
        del sys.modules[module.__name__]
        for name in [name for name in sys.modules if name not in modules]:
            home = getattr(sys.modules[name], "__file__", None)
            if home and Path(home).parent == directory:
                del sys.modules[name]


def _place(path: Path, target: str, error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{target}, line {lines[-1]}" if lines else target


def _advice(error: BaseException) -> str:
    from derive.words import WORDS as words

    match error:
        case ModuleNotFoundError():
            return "install it into this environment, or put the module beside the file"
        case ImportError(name="derive"):
            word = re.search(r"import name '(\w+)'", str(error))
            return f"the words of the language are {', '.join(words)}" if word is None else _word_advice(word[1], words)
        case NameError(name=str(name)) if name in words:
            return f"add {name} to the line `from derive import ...`"
        case NameError(name=str(name)) if name:
            return "define it above this line, or import it"
    return ""


def _word_advice(word: str, words: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else f"the words of the language are {', '.join(words)}"


def _named(module: ModuleType, name: str, target: str) -> Declared:
    from derive.language.family import Family
    from derive.language.model import Model

    declared = getattr(module, "MODEL", None)
    if declared is None:
        raise DeclarationError(
            f"{target} declares no MODEL; end the file with MODEL = Model(...), as `derive new` shows"
        )
    doc = (module.__doc__ or "").strip()
    if isinstance(declared, Family):
        return replace(declared, name=name, doc=doc)
    if not isinstance(declared, Model):
        raise DeclarationError(
            f"{target}: MODEL is of type {type(declared).__name__}, not a Model; write MODEL = Model(...)"
        )
    return replace(declared, name=name, doc=doc, observe=dict(declared.observe))


def nearest(word: str, words: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""
