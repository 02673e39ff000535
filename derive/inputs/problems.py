"""A model with values of its parameters: names, domains and integers are checked here, from text or from Python.

A value is a number, or text that represents one ("1/2"). Several values of one name form an axis of a grid.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

from derive.errors import DeclarationError, DeriveError, ParameterError
from derive.inputs.loading import load_declaration, nearest
from derive.support.shapes import fits, texts

if TYPE_CHECKING:
    from derive.language.family import Family
    from derive.language.model import Model
    from derive.language.symbols import Parameter

    Declared = Model | Family

Given = Mapping[str, tuple[Any, ...]]
"""The requested values of each name."""
MOST_POINTS = 100_000
_DOTTED_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\.{2,3}(-?\d+(?:\.\d+)?)(?:/(\d+))?")
"""Two ends with dots between them, and perhaps a number of points."""
_OTHER_RANGE = re.compile(
    r"[-+\d.eE]*\d\.?\s*(\.\.+|~|;|to)\s*[-+.]?\d.*|[\d.]+\s*-\s*[\d.]+|(np\.)?(lin|log|geom)space\(.*|(np\.)?a?range\(.*"
)
"""Ranges in the notation of other languages."""


@dataclass(frozen=True)
class Problem:
    """A model with a value for each choice and parameter, and the requested layers.

    Attributes:
        data: a file of arrays, or the arrays by name; None if the declaration computes them or has none.
        align: directions in addition to those of the model.
    """

    model: Model
    values: dict[str, int | float | str]
    layers: tuple[str, ...]
    data: str | Mapping[str, Any] | None = None
    align: tuple[str, ...] = ()

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """Return the values together with the data arrays, from the user or from the declaration."""
        from derive.inputs.data_files import check_roots, declared_data, read_arrays, spread

        if not declared_data(self.model):
            return dict(self.values)
        if self.data is None and self.model.arrays is None:
            raise ParameterError(f"{self.model.setting} needs data: give data=FILE.npz")
        own: dict[str, Any] = {}
        if self.data is not None:
            arrays = read_arrays(self.data, self.model)
            own = spread(arrays, self.model, self.values)
        if any(d.name not in own for d in declared_data(self.model)):
            own = {**_own_arrays(self.model, dict(self.values)), **own}
        check_roots(own, self.model)
        return {**self.values, **own}

    @property
    def shapes(self) -> tuple[Any, ...]:
        """Return what problems must share to be solved in one batch: the model, its layers and its integers."""
        whole = [self.values[p.name] for p in self.model.parameters if p.domain.whole]
        return (self.model.name, self.layers, *whole)


def aligned(problem: Problem, align: str | Iterable[str] | None) -> Problem:
    """Return the problem with further directions for alignments of outliers, as "teacher" or "v(3)"."""
    from derive.language.alignments import with_alignments

    directions = texts(align)
    model = with_alignments(problem.model, directions)
    return replace(problem, model=model, align=directions) if directions else problem


def _own_arrays(model: Model, values: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of a declaration's own function."""
    try:
        arrays = model.arrays(values)
    except DeriveError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the function raises
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise DeclarationError(f"{model.setting}: its function arrays=... fails with {what}") from None
    if not isinstance(arrays, dict):
        raise DeclarationError(
            f"{model.setting}: its function arrays=... returns {type(arrays).__name__}; return a dictionary of arrays"
        )
    return arrays


@dataclass(frozen=True)
class Grid:
    """Problems on a grid: the validated values along each axis, and one problem per point, with the last axis varying
    fastest.

    Without axes there is a single problem.
    """

    axes: tuple[tuple[str, tuple[Any, ...]], ...]
    problems: tuple[Problem, ...]

    @property
    def one(self) -> Problem:
        """Return the only problem."""
        if self.axes:
            name, values = self.axes[0]
            shown = ",".join(map(str, values[:3]))
            raise ParameterError(f"{name}={shown}...: give one value here; only sweeps take several")
        return self.problems[0]


def load_problem(target: str, pairs: Iterable[str]) -> Problem:
    """Return a problem from texts such as "alpha=2"; all values are checked."""
    return load_grid(target, pairs).one


def load_grid(target: str, pairs: Iterable[str]) -> Grid:
    """Return all problems of lists (nu=0.5,1,2) and ranges (eta=0.01:0.5:20) among the texts."""
    declared = load_declaration(target)
    return grid_of(declared, typed_values(declared, pairs))


def problem_of(declared: Declared, values: Mapping[str, Any]) -> Problem:
    """Return the model with one value for each name."""
    arrays = array_names(declared, values)
    for name, value in values.items():
        if name not in arrays and (_is_sequence(value) or getattr(value, "ndim", 0) != 0):
            raise ParameterError(f"{name} has several values; give one value here, sweeps take several")
    return grid_of(declared, {name: (value,) for name, value in values.items()}).one


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def array_names(declared: Declared, values: Mapping[str, Any]) -> set[str]:
    """Return the names of data arrays that may be given individually, for these choices; each is one value."""
    from derive.inputs.data_files import declared_data

    chosen = {name: values[name] for name, _ in declared.open_choices if name in values}
    plain = {name: value for name, value in chosen.items() if not _is_sequence(value)}
    return {d.name for d in declared_data(declared.member(plain))} if len(plain) == len(chosen) else set()


def grid_of(declared: Declared, given: Given) -> Grid:
    """Return all problems on the grid of the given values."""

    count = math.prod(len(values) for values in given.values())
    if count > MOST_POINTS:
        raise ParameterError(f"the grid has more than {MOST_POINTS} points; take fewer values")
    empty = [name for name, values in given.items() if not values]
    if empty:
        raise ParameterError(f"{empty[0]} has no values; give at least one")
    choices = [name for name, _ in declared.open_choices]
    members: dict[tuple[Any, ...], Model] = {}
    problems = []
    for point in itertools.product(*given.values()):
        here = dict(zip(given, point, strict=True))
        chosen = {name: here[name] for name in choices if name in here}
        key = tuple((name, str(value)) for name, value in chosen.items())
        if key not in members:
            members[key] = declared.member(chosen)
        problems.append(_problem(members[key], {n: v for n, v in here.items() if n not in choices}))
    several = [name for name, values in given.items() if len(values) > 1]
    for name in several:
        if name not in problems[0].values:
            one = "layer, or write layer=all" if name == "layer" else "value"
            raise ParameterError(f"{name}={','.join(map(str, given[name][:3]))}: name one {one}")
    axes = tuple((name, tuple(dict.fromkeys(p.values[name] for p in problems))) for name in several)
    for name, values in axes:
        if len(values) < len(given[name]):
            raise ParameterError(f"{name} contains a value twice; keep it once")
    return Grid(axes, tuple(problems))


# -- what is typed


def typed_values(declared: Declared, pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return each name with the texts of its values."""
    texts: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise ParameterError(f"{pair!r} is not a parameter setting; {_hint(declared, name)}")
        if name in texts:
            raise ParameterError(f"{name} is given twice; keep one of the two values")
        texts[name] = (text,) if name == "data" and not _has_name(declared, "data") else _spread(name, text)
    return texts


def makes_a_grid(pairs: Iterable[str]) -> bool:
    """Return whether the texts contain a list or a range, before anything is loaded."""
    for pair in pairs:
        name, _, text = (part.strip() for part in pair.partition("="))
        try:
            if name != "data" and len(_spread(name, text)) > 1:
                return True
        except ParameterError:
            return False  # refused later, with all that is known then
    return False


def _has_name(declared: Declared, name: str) -> bool:
    """Return whether a choice or a parameter has this name."""
    names = [choice for choice, _ in declared.choices]
    return name in (*names, *(p.name for p in getattr(declared, "parameters", ())))


def _hint(declared: Declared, name: str) -> str:
    """Return a hint on how to set a value, with an existing name as an example."""

    model = declared.member({})
    names = [*model.choices, *((p.name, f"{p.default:g}") for p in model.parameters)]
    if name in dict(names):
        return f"write {name}=VALUE"
    return "write parameters as name=value" + (f", for instance {names[0][0]}={names[0][1]}" if names else "")


def _spread(name: str, text: str) -> tuple[str, ...]:
    """Return the values of a list a,b,c or of a range low:high:count, or one value; commas in brackets do not count."""
    if ":" in text:
        parts = text.split(":")
        try:
            low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        except (ValueError, IndexError):
            count = 0
        if len(parts) != 3 or count < 2 or not (math.isfinite(low) and math.isfinite(high)) or low == high:
            raise ParameterError(f"{name}={text} is not a range; write {name}=low:high:count, such as {name}=0.1:0.5:9")
        if count > MOST_POINTS:
            raise ParameterError(f"{name}={text} has more than {MOST_POINTS} points; take fewer values")
        spread = (low + (high - low) * i / (count - 1) for i in range(count))
        return tuple(str(int(value)) if value.is_integer() else repr(value) for value in spread)
    dotted = _DOTTED_RANGE.fullmatch(text)
    if dotted:
        first, last, number = dotted.groups()
        raise ParameterError(f"{name}={text} is not a range; write {name}={first}:{last}:{number or 9}")
    if _OTHER_RANGE.fullmatch(text):
        raise ParameterError(
            f"{name}={text} is not a range; write {name}=low:high:count, such as {name}=0.1:0.5:9, or {name}=0.1,0.5"
        )
    values = tuple(part.strip() for part in _listed(text))
    if "" in values and len(values) > 1:
        raise ParameterError(f"{name}={text} has an empty entry; write {name}=1,2,3")
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise ParameterError(f"{name}={text} contains {twice[0]} twice; keep it once")
    return values


def _listed(text: str) -> list[str]:
    """Return the parts between commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


# -- one problem


def _problem(model: Model, given: dict[str, Any]) -> Problem:
    """Return the model with its values; `layer` selects probed matrices, `data` is a file of arrays or arrays."""
    parameters = {parameter.name: parameter for parameter in model.parameters}
    data = None
    if "data" in given and "data" not in parameters and _takes_data(model):
        data = given.pop("data")
        if isinstance(data, str) and not data:
            raise ParameterError("data= names no file; write data=FILE.npz, or leave it out")
    given, data = _with_arrays(model, given, data)
    if data is not None:
        given = _with_sizes(model, given, data)
    labels = tuple(label for label, _ in model.probes)
    layered = labels not in ((), ("",)) and "layer" not in parameters
    values: dict[str, int | float] = {}
    layers = labels
    for name, value in given.items():
        if name == "layer" and layered:
            label = str(value)
            if label not in (*labels, "all", "none"):
                raise ParameterError(f"layer={label} does not exist; the layers are {', '.join(labels)}, all or none")
            layers = (label,) if label in labels else labels if label == "all" else ()
        elif name not in parameters:
            raise ParameterError(_unknown(model, name, layered))
        else:
            values[name] = parameters[name].checked(number_of(name, value, str(parameters[name].domain)))
    filled = {name: parameters[name].checked(_filled(parameters[name], values)) for name in parameters}
    return Problem(model, {**dict(model.choices), **filled}, layers, data)


def _with_arrays(
    model: Model, values: dict[str, Any], data: str | Mapping[str, Any] | None
) -> tuple[dict[str, Any], str | Mapping[str, Any] | None]:
    """Separate the data arrays from the values and add them to the other data."""
    from derive.inputs.data_files import array_of, declared_data, read_arrays, shown_source

    taken = {p.name for p in model.parameters}
    own = [d for d in declared_data(model) if d.name in values and d.name not in taken]
    if not own:
        return values, data
    others = {} if data is None else read_arrays(data, model)
    twice = [d.name for d in own if d.name in others]
    if twice:
        assert data is not None
        raise ParameterError(f"{twice[0]} is given by itself and in {shown_source(data)}; keep one of the two")
    arrays = {d.name: array_of(d, values[d.name]) for d in own}
    return {name: value for name, value in values.items() if name not in arrays}, {**others, **arrays}


def _takes_data(model: Model) -> bool:
    from derive.inputs.data_files import declared_data

    return bool(declared_data(model))


def _with_sizes(model: Model, values: dict[str, Any], data: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with sizes that the data determine; raise if they contradict given ones."""
    from derive.inputs.data_files import read_arrays, shown_source, sizes

    lengths = sizes(read_arrays(data, model), model)
    for name, size in lengths.items():
        if name in values and number_of(name, values[name], "a whole number") != size:
            raise ParameterError(f"{name}={values[name]}, but {shown_source(data)} has {name}={size}; leave {name} out")
    return {**lengths, **values}


def _filled(parameter: Parameter, values: dict[str, int | float]) -> float:
    """Return the given value, otherwise that of the parameter that it follows, otherwise the default."""
    if parameter.name in values:
        return values[parameter.name]
    return parameter.default if parameter.follows is None else _filled(parameter.follows, values)


def _unknown(model: Model, name: str, layered: bool) -> str:
    names = [*(choice for choice, _ in model.choices), *(p.name for p in model.parameters), *(["layer"] * layered)]
    have = f"its parameters are {', '.join(names)}" if names else "it has none"
    return f"{model.setting} has no parameter {name!r}{nearest(name, names)}; {have}"


def number_of(name: str, value: Any, domain: str) -> float:
    """Return a value, number or text, as a number."""
    number: float
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            try:
                number = float(Fraction(value))
            except (ValueError, ZeroDivisionError, OverflowError):
                raise ParameterError(f"{name}={value}: {value!r} is not a number; {name} must be {domain}") from None
    else:
        # a number of NumPy, or an array without axes
        item = value.item() if getattr(value, "shape", None) == () else value
        if not fits(item, Real):
            kind = type(value).__name__
            raise ParameterError(f"{name} is given a {kind} instead of a number; {name} must be {domain}")
        try:
            number = float(item)
        except OverflowError:
            raise ParameterError(f"{name} is too large for a floating-point number; it must be {domain}") from None
    if not math.isfinite(number):
        raise ParameterError(f"{name}={value} is not finite; {name} must be {domain}")
    return number
