"""Find a declaration, by the name of a shipped setting or by the path of a file, and read its parameters.

Nothing here imports SymPy before a declaration is loaded, so that listing the settings is immediate.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import math
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from derive.errors import DeclarationError, DeriveError, ParameterError

if TYPE_CHECKING:
    from derive.language.model import Model

_MODELS = Path(__file__).parent / "models"
_PRIVATE = "_declaration_"


def settings() -> tuple[tuple[str, str], ...]:
    """The shipped settings: name and the first line of the docstring, in alphabetical order."""
    found = []
    for path in sorted(_MODELS.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        targets = {
            t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
        }
        if "MODEL" in targets:
            found.append((path.stem, (ast.get_docstring(tree) or "").partition("\n")[0]))
    return tuple(found)


def setting_names() -> tuple[str, ...]:
    return tuple(name for name, _ in settings())


def is_file_target(target: str) -> bool:
    """Whether a target means a file: it has a directory, ends in .py, or is a file and no setting."""
    if target.endswith(".py") or "/" in target or "\\" in target:
        return True
    return target not in setting_names() and Path(target).is_file()


def load_model(target: str) -> Model:
    """The model declared by a shipped setting or by a file, named after it."""
    if is_file_target(target):
        return _load_file(target)
    names = setting_names()
    if target not in names:
        if Path(f"{target}.py").is_file():
            raise DeclarationError(f"there is no setting {target!r}, but there is a file: write {target}.py")
        raise DeclarationError(
            f"there is no setting {target!r}{_nearest(target, names)}; the settings are {', '.join(names)}, "
            "and a path to a .py file is taken as your own declaration"
        )
    return _named(importlib.import_module(f"derive.models.{target}"), target, target)


def _load_file(target: str) -> Model:
    path = Path(target)
    if not path.exists():
        raise DeclarationError(f"there is no file {target}; check the path, or start one with `derive new {path.stem}`")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise DeclarationError(f"{target} cannot be read ({error.strerror}); give the path of a .py file") from None
    name = re.sub(r"\W", "_", path.stem)
    name = name if name.isidentifier() else f"model_{name}"
    module = ModuleType(_PRIVATE + name)
    module.__file__ = str(path)
    importlib.import_module("derive.language.model")  # before the caller's directory comes first on the path
    with _importing_from(path.resolve().parent, module):
        try:
            exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
        except DeriveError as error:
            raise DeclarationError(f"{_place(path, target, error)}: {error}") from None
        except SyntaxError as error:
            line = (
                f", line {error.lineno}"
                if error.filename == str(path)
                else f" imports {error.filename}, line {error.lineno}"
            )
            raise DeclarationError(f"{target}{line}: SyntaxError: {error.msg}; mend the line and run again") from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the file raises
            what = " ".join(str(error).split())
            raise DeclarationError(
                f"{_place(path, target, error)}: {type(error).__name__}{': ' if what else ''}{what}; {_advice(error)}"
            ) from None
    return _named(module, name, target)


@contextmanager
def _importing_from(directory: Path, module: ModuleType) -> Iterator[None]:
    """Let a file import its neighbours, and leave no trace of it in the interpreter afterwards."""
    path, known, bytecode = list(sys.path), set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, str(directory))
    sys.modules[module.__name__] = module
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path[:] = path
        sys.dont_write_bytecode = bytecode
        del sys.modules[module.__name__]
        for name in [name for name in sys.modules if name not in known]:
            home = getattr(sys.modules[name], "__file__", None)
            if home and Path(home).parent == directory:
                del sys.modules[name]


def _place(path: Path, target: str, error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{target}, line {lines[-1]}" if lines else target


def _advice(error: BaseException) -> str:
    from derive import __all__ as words

    if isinstance(error, ModuleNotFoundError):
        return "install it into this environment, or put the module beside the file"
    if isinstance(error, ImportError) and error.name == "derive":
        word = re.search(r"import name '(\w+)'", str(error))
        return f"the words of the language are {', '.join(words)}" if word is None else _word_advice(word[1], words)
    if isinstance(error, NameError) and error.name:
        if error.name in words:
            return f"add {error.name} to the line `from derive import ...`"
        return "define it above this line, or import it"
    return "mend the line and run again"


def _word_advice(word: str, words: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else f"the words of the language are {', '.join(words)}"


def _named(module: ModuleType, name: str, target: str) -> Model:
    from derive.language.model import Model

    declared = getattr(module, "MODEL", None)
    if declared is None:
        raise DeclarationError(
            f"{target} declares no MODEL; end the file with MODEL = Model(...), as `derive new` shows"
        )
    if not isinstance(declared, Model):
        raise DeclarationError(
            f"{target}: MODEL is of type {type(declared).__name__}, not a Model; write MODEL = Model(...)"
        )
    return replace(declared, name=name, doc=(module.__doc__ or "").strip(), observe=dict(declared.observe))


def _nearest(word: str, words: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


def parameter_values(model: Model, pairs: Iterable[str]) -> dict[str, int | float]:
    """The parameters in the order of the declaration, defaults filled in, from texts such as "alpha=2"."""
    known = {parameter.name: parameter for parameter in model.parameters}
    values: dict[str, int | float] = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            hint = (
                f"write {name}=VALUE"
                if name in known
                else "write parameters as name=value, for instance "
                + (f"{next(iter(known))}={known[next(iter(known))].default:g}" if known else "name=1")
            )
            raise ParameterError(f"{pair!r} is not a parameter setting; {hint}")
        if name not in known:
            have = (
                f"the parameters of {model.name} are {', '.join(known)}" if known else f"{model.name} has no parameters"
            )
            raise ParameterError(f"{model.name} has no parameter {name!r}{_nearest(name, known)}; {have}")
        if name in values:
            raise ParameterError(f"{name} is given twice; keep one of the two values")
        values[name] = known[name].checked(_number(name, text, str(known[name].domain)))
    return {name: values.get(name, known[name].checked(known[name].default)) for name in known}


def _number(name: str, text: str, domain: str) -> float:
    try:
        value = float(text)
    except ValueError:
        try:
            value = float(Fraction(text))
        except (ValueError, ZeroDivisionError, OverflowError):
            raise ParameterError(f"{name}={text}: {text!r} is not a number; {name} must be {domain}") from None
    if not math.isfinite(value):
        raise ParameterError(f"{name}={text} is not finite; {name} must be {domain}")
    return value
