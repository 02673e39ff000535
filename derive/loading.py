"""Find a declaration, by the name of a shipped setting or by the path of a file, and read its parameters.

Nothing here imports SymPy before a declaration is loaded, so that listing the settings is immediate.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import itertools
import math
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from derive.errors import DeclarationError, DeriveError, ParameterError

if TYPE_CHECKING:
    from derive.language.family import Family
    from derive.language.model import Model
    from derive.language.symbols import Parameter

    Declared = Model | Family

_MODELS = Path(__file__).parent / "models"
_PRIVATE = "_declaration_"


@cache
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
    return Path(target).is_file() and target not in setting_names()


def load_model(target: str, chosen: Mapping[str, int | str] | None = None) -> Model:
    """The model declared by a shipped setting or by a file, named after it; of a family, the member that is chosen."""
    from derive.language.family import Family

    declared = load_declaration(target)
    if isinstance(declared, Family):
        unknown = [name for name in chosen or () if name not in dict(declared.choices)]
        if unknown:
            names = [name for name, _ in declared.choices]
            raise ParameterError(
                f"{declared.name} has no choice {unknown[0]!r}{_nearest(unknown[0], names)}; "
                f"its choices are {', '.join(names)}"
            )
        return declared.member(chosen or {})
    if chosen:
        raise ParameterError(f"{declared.name} is one model: there is no {next(iter(chosen))!r} to choose")
    return declared


def load_declaration(target: str) -> Declared:
    """What a shipped setting or a file declares: a model, or a family of models."""
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


def declaration_sources(target: str) -> tuple[tuple[str, str], ...]:
    """The text of a declaration: its own file first, then the files beside it that it imports, name and text."""
    path = Path(target) if is_file_target(target) else _MODELS / f"{target}.py"
    found: dict[str, str] = {}
    waiting = [path]
    while waiting:
        path = waiting.pop(0)
        if path.name in found or not path.is_file():
            continue
        found[path.name] = source = path.read_bytes().decode("utf-8", errors="replace")
        for node in ast.walk(ast.parse(source)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            waiting += [path.parent / f"{name.removeprefix('derive.models.')}.py" for name in names if name]
    return tuple(found.items())


def _load_file(target: str) -> Declared:
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
            raise DeclarationError(f"{target}{line}: SyntaxError: {error.msg}; mend the line and run again") from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the file raises
            raise as_declaration_error(error, _advice(error)) from None
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


def _nearest(word: str, words: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


@dataclass(frozen=True)
class Problem:
    """A model with a value for each of its choices and parameters, and the layers that are asked for."""

    model: Model
    values: dict[str, int | float | str]
    layers: tuple[str, ...]
    file: str = ""

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The values together with the arrays of data, from the file or from the declaration."""
        from derive.data_files import declared_data, read_archive, spread

        if not declared_data(self.model):
            return dict(self.values)
        if self.file:
            given = read_archive(self.file, self.model)
            if self.model.refuses is not None and (wrong := self.model.refuses(given)):
                raise ParameterError(f"data={self.file}: {wrong}")
            return {**self.values, **spread(given, self.model, self.values)}
        if self.model.arrays is None:
            raise ParameterError(f"{self.model.setting} needs data: give data=FILE.npz")
        return {**self.values, **_made(self.model, dict(self.values))}


def _made(model: Model, values: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a declaration's own function."""
    try:
        made = model.arrays(values)
    except DeriveError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the function raises
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise DeclarationError(f"{model.setting}: its function arrays=... fails with {what}") from None
    if not isinstance(made, dict):
        raise DeclarationError(
            f"{model.setting}: its function arrays=... returns {type(made).__name__}; return a dictionary of arrays"
        )
    return made


@dataclass(frozen=True)
class Sweep:
    """Problems on a grid: the names and values of the axes, and one problem a point, the last axis fastest."""

    axes: tuple[tuple[str, tuple[str, ...]], ...]
    problems: tuple[Problem, ...]


MOST_POINTS = 100_000


def load_problem(target: str, pairs: Iterable[str]) -> Problem:
    """The model and all its values, from texts such as "alpha=2"; checked before any work is done."""
    sweep = load_sweep(target, pairs)
    if sweep.axes:
        name, values = sweep.axes[0]
        raise ParameterError(
            f"{name}={','.join(values[:3])}...: one value here; `derive solve` and `stability` take several"
        )
    return sweep.problems[0]


def load_sweep(target: str, pairs: Iterable[str]) -> Sweep:
    """All problems that lists (nu=0.5,1,2) and ranges (eta=0.01:0.5:20) among the values ask for."""
    from derive.language.family import Family

    declared = load_declaration(target)
    given = _texts(declared, pairs)
    axes = tuple((name, values) for name, values in given.items() if len(values) > 1)
    if math.prod(len(values) for _, values in axes) > MOST_POINTS:
        raise ParameterError(f"the grid has more than {MOST_POINTS} points; take fewer values")
    choices = [name for name, _ in declared.choices] if isinstance(declared, Family) else []
    members: dict[tuple[Any, ...], Model] = {}
    problems = []
    for point in itertools.product(*given.values()):
        texts = dict(zip(given, point, strict=True))
        chosen = {name: texts[name] for name in choices if name in texts}
        key = tuple(chosen.items())
        if key not in members:
            members[key] = declared.member(chosen) if isinstance(declared, Family) else declared
        problems.append(_problem(members[key], {n: t for n, t in texts.items() if n not in choices}))
    if "layer" in dict(axes) and "layer" not in problems[0].values:
        raise ParameterError(f"layer={','.join(dict(axes)['layer'])}: name one layer, or write layer=all")
    return Sweep(axes, tuple(problems))


def _texts(declared: Declared, pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Each name with the texts of its values."""
    found: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise ParameterError(f"{pair!r} is not a parameter setting; {_hint(declared, name)}")
        if name in found:
            raise ParameterError(f"{name} is given twice; keep one of the two values")
        found[name] = (text,) if name == "data" and not _has_name(declared, "data") else _spread(name, text)
    return found


def _has_name(declared: Declared, name: str) -> bool:
    """Whether a choice or a parameter has this name."""
    names = [choice for choice, _ in declared.choices]
    return name in (*names, *(p.name for p in getattr(declared, "parameters", ())))


def _hint(declared: Declared, name: str) -> str:
    """How a setting is written, with a name that there is."""
    from derive.language.family import Family

    model = declared.member({}) if isinstance(declared, Family) else declared
    known = [*model.choices, *((p.name, f"{p.default:g}") for p in model.parameters)]
    if name in dict(known):
        return f"write {name}=VALUE"
    return "write parameters as name=value" + (f", for instance {known[0][0]}={known[0][1]}" if known else "")


def _spread(name: str, text: str) -> tuple[str, ...]:
    """The values of a list a,b,c or of a range low:high:count; one value otherwise. Commas in brackets do not count."""
    if ":" in text:
        parts = text.split(":")
        try:
            low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        except (ValueError, IndexError):
            count = 0
        if len(parts) != 3 or count < 2 or not (math.isfinite(low) and math.isfinite(high)) or low == high:
            raise ParameterError(f"{name}={text} is no range; write {name}=low:high:count, such as {name}=0.1:0.5:9")
        if count > MOST_POINTS:
            raise ParameterError(f"{name}={text} has more than {MOST_POINTS} points; take fewer values")
        spread = (low + (high - low) * i / (count - 1) for i in range(count))
        return tuple(str(int(value)) if value.is_integer() else repr(value) for value in spread)
    values = tuple(part.strip() for part in _listed(text))
    if "" in values and len(values) > 1:
        raise ParameterError(f"{name}={text} has an empty entry; write {name}=1,2,3")
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise ParameterError(f"{name}={text} has {twice[0]} twice; keep each value once")
    return values


def _listed(text: str) -> list[str]:
    """The parts between commas, but those inside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _problem(model: Model, texts: dict[str, str]) -> Problem:
    """The model with its values; `layer` picks one of several probed matrices, `data` names a file of arrays."""
    known = {parameter.name: parameter for parameter in model.parameters}
    file = ""
    if "data" in texts and "data" not in known and _takes_data(model):
        file = texts.pop("data")
        if not file:
            raise ParameterError("data= names no file; write data=FILE.npz, or leave it out")
        texts = _with_sizes(model, texts, file)
    labels = tuple(label for label, _ in model.probes)
    layered = labels not in ((), ("",)) and "layer" not in known
    values: dict[str, int | float] = {}
    layers = labels
    for name, text in texts.items():
        if name == "layer" and layered:
            if text not in (*labels, "all"):
                raise ParameterError(f"layer={text} is not there; the layers are {', '.join(labels)}, or all of them")
            layers = labels if text == "all" else (text,)
        elif name not in known:
            raise ParameterError(_unknown(model, name, layered))
        else:
            values[name] = known[name].checked(_number(name, text, str(known[name].domain)))
    filled = {name: known[name].checked(_filled(known[name], values)) for name in known}
    return Problem(model, {**dict(model.choices), **filled}, layers, file)


def _takes_data(model: Model) -> bool:
    from derive.data_files import declared_data

    return bool(declared_data(model))


def _with_sizes(model: Model, texts: dict[str, str], file: str) -> dict[str, str]:
    """The texts, joined by what a file of data says about sizes; it must not contradict what was typed."""
    from derive.data_files import read_archive, sizes

    told = sizes(read_archive(file, model), model)
    for name, size in told.items():
        if name in texts and _number(name, texts[name], "a whole number") != size:
            raise ParameterError(f"{name}={texts[name]}, but data={file} has {name}={size}; leave {name} out")
    return {**{name: str(size) for name, size in told.items()}, **texts}


def _filled(parameter: Parameter, values: dict[str, int | float]) -> float:
    """The value given, that of the parameter which it follows, or the default."""
    if parameter.name in values:
        return values[parameter.name]
    return parameter.default if parameter.follows is None else _filled(parameter.follows, values)


def _unknown(model: Model, name: str, layered: bool) -> str:
    names = [*(choice for choice, _ in model.choices), *(p.name for p in model.parameters), *(["layer"] * layered)]
    have = f"its parameters are {', '.join(names)}" if names else "it has none"
    return f"{model.setting} has no parameter {name!r}{_nearest(name, names)}; {have}"


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
