"""Python's error messages reworded in the terms of a declaration."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from derive.support.bounds import SENTENCE

_KINDS = {
    "FieldAt": "a field", "Field": "a field", "Evolving": "a weight matrix", "MatrixAtom": "a matrix",
    "SumOfMatrices": "a matrix", "Dyad": "a matrix", "ProductOfMatrices": "a matrix", "DiagonalMatrix": "a matrix",
    "Mean": "a mean", "Apply": "a vector",
    "Project": "a vector", "Mix": "a vector", "Clock": "a clock", "Sector": "a sector", "Parameter": "a parameter",
    "LabelTable": "a table", "GivenData": "data", "DataAt": "data", "Trait": "a trait", "Axis": "an axis",
    "Eq": "an equation", "DeclaredSpectrum": "a spectrum", "Model": "a model", "Mul": "a product", "Add": "a sum",
    "Pow": "a power",
    "int": "a number", "float": "a number", "complex": "a complex number", "bool": "a truth value", "str": "a text",
    "bytes": "bytes", "list": "a list", "tuple": "a tuple", "dict": "a dictionary", "set": "a set", "NoneType": "None",
    "function": "a function", "builtin_function_or_method": "a function", "method": "a function", "type": "a class",
    "module": "a module", "ndarray": "an array", "Symbol": "a symbol of SymPy", "float64": "a number",
    "int64": "a number", "generator": "a generator",
}  # fmt: skip
"""Classes by their names in a declaration."""
_METHODS = {"__init__", "__call__", "__new__"}
_OBJECT = r"(?P<what>'[\w.]+'|type)(?: object)?"


def kind_named(name: str) -> str:
    """Return the declaration's name for an object of a class."""
    return _KINDS.get(name.strip("'").rpartition(".")[2], "an expression")


def _call(match: re.Match[str]) -> tuple[str, int]:
    """Return the called function, and the number of its hidden arguments, such as self."""
    owner, name = match["owner"], match["name"]
    if name == "__call__" and owner:
        return kind_named(owner), 1
    return f"{owner if name in _METHODS and owner else name}(...)", int(bool(owner))


def shown_value(value: float | str) -> str:
    """Return the value of a parameter or a choice, with twelve digits."""
    return value if isinstance(value, str) else f"{value:.12g}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def _listed(names: str) -> str:
    return names.replace("'", "")


def _too_many(match: re.Match[str]) -> str:
    call, hidden = _call(match)
    most, given = int(match["most"]) - hidden, int(match["given"]) - hidden
    takes = "none without its name" if most == 0 else f"{most}{'' if most == 1 else ' at most'}"
    return f"{call} is given {counted(given, 'argument')}, where it takes {takes}"


_CALL = r"(?:(?P<owner>\w+)\.)?(?P<name>[\w<>]+)\(\) "
_SENTENCES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        r"(?:free variable|name|cannot access local variable) '(?P<n>\w+)'.*",
        lambda m: f"the name {m['n']} is not defined",
    ),
    (
        _CALL + r"missing \d+ required .*?arguments?: (?P<args>.+)",
        lambda m: f"{_call(m)[0]} lacks {_listed(m['args'])}",
    ),
    (_CALL + r"takes (?:from \d+ to )?(?P<most>\d+) positional arguments? but (?P<given>\d+).*", _too_many),
    (_CALL + r"got an unexpected keyword argument '(?P<n>\w+)'.*", lambda m: f"{_call(m)[0]} has no argument {m['n']}"),
    (_CALL + r"got multiple values for argument '(?P<n>\w+)'", lambda m: f"{_call(m)[0]} is given {m['n']} twice"),
    (_OBJECT + r" is not callable.*", lambda m: f"{kind_named(m['what'])} is called like a function"),
    (r"type object '(?P<n>\w+)' has no attribute '(?P<a>\w+)'.*", lambda m: f"{m['n']} has no {m['a']}"),
    (r"module '(?P<n>[\w.]+)' has no attribute '(?P<a>\w+)'.*", lambda m: f"{m['n']} has no {m['a']}"),
    (_OBJECT + r" has no attribute '(?P<a>\w+)'.*", lambda m: f"{kind_named(m['what'])} has no {m['a']}"),
    (_OBJECT + r" is not subscriptable.*", lambda m: f"{kind_named(m['what'])} has no entries in square brackets"),
    (_OBJECT + r" does not support item .*", lambda m: f"entries of {kind_named(m['what'])} cannot be set"),
    (_OBJECT + r" is not iterable", lambda m: f"{kind_named(m['what'])} is used where a list is expected"),
    (
        r"argument of type " + _OBJECT + r" is not iterable",
        lambda m: f"{kind_named(m['what'])} is not a container",
    ),
    (r"iteration over a 0-d array", lambda m: "a number is used where a list is expected"),
    (
        r"cannot unpack non-iterable " + r"(?P<what>\w+) object",
        lambda m: f"{kind_named(m['what'])} is a single object, not several",
    ),
    (
        r"(?:not enough|too many) values to unpack \(expected (?P<n>\d+).*",
        lambda m: f"the {m['n']} names on the left do not match the number of values on the right",
    ),
    (
        r"unsupported operand type\(s\) for (?P<by>\S+?)(?: or pow\(\))?: '(?P<a>[\w.]+)' and '(?P<b>[\w.]+)'",
        lambda m: f"{kind_named(m['a'])} and {kind_named(m['b'])} cannot be joined by {m['by']}",
    ),
    (r"bad operand type for unary (?P<by>\S): '(?P<a>[\w.]+)'", lambda m: f"{kind_named(m['a'])} has no {m['by']}"),
    (
        r"'(?P<by>\S+)' not supported between instances of '(?P<a>[\w.]+)' and '(?P<b>[\w.]+)'",
        lambda m: f"{kind_named(m['a'])} and {kind_named(m['b'])} cannot be compared by {m['by']}",
    ),
    (
        r"can only concatenate (?P<a>\w+) \(not \"(?P<b>[\w.]+)\"\) to \w+",
        lambda m: f"{kind_named(m['a'])} and {kind_named(m['b'])} cannot be joined by +",
    ),
    (
        r"object of type '(?P<a>[\w.]+)' has no len\(\)",
        lambda m: f"{kind_named(m['a'])} is used where a list is expected",
    ),
    (r"unhashable type: '(?P<a>[\w.]+)'", lambda m: f"{kind_named(m['a'])} is not allowed here"),
    (r"cannot import name '(?P<n>\w+)' from '(?P<a>[\w.]+)'.*", lambda m: f"{m['a']} has no {m['n']} to import"),
    (r"[Nn]o module named '(?P<a>[\w.]+)'.*", lambda m: f"there is no module {m['a']}"),
    (
        r"(?:loop of ufunc does not support argument \d+|can't multiply sequence by non-int) of type '?(?P<a>\w+)'?.*",
        lambda m: f"{kind_named(m['a'])} is used where a number is expected",
    ),
    (
        r"Cannot (?:convert|round) (?:symbols|expression|symbolic expression).*|Error interpreting argument to .*"
        r"|'(?:\w+)' object cannot be interpreted as an integer",
        lambda m: "an expression is used where a number is expected",
    ),
    (
        r"cannot determine truth value of Relational: (?P<a>.*)",
        lambda m: f"{m['a']} is neither true nor false, because it depends on symbols",
    ),
    (r"maximum recursion depth exceeded.*", lambda m: "this is nested too deeply"),
)


def in_plain_words(error: BaseException) -> str:
    """Return the message of an exception without names of classes, methods and addresses."""
    text = " ".join(str(error).split())
    for pattern, sentence in _SENTENCES:
        match = re.fullmatch(pattern, text)
        if match is not None:
            return sentence(match)
    if isinstance(error, KeyError):
        return f"there is no {text}"
    text = re.sub(r"<class '([\w.]+)'>", lambda m: kind_named(m[1]), text)
    text = re.sub(r"\bof type '?(\w+)'?", lambda m: f"that is {kind_named(m[1])}", text)
    return f"{type(error).__name__}{': ' if text else ''}{plain_objects(text)}"


def plain_objects(text: str) -> str:
    """Return a sentence with objects by their names, without memory addresses."""
    text = re.sub(r"<function (?:[\w.]*\.)?<lambda> at 0x[0-9a-f]+>", "a lambda", text)
    text = re.sub(
        r"<(?:built-in )?(?:function|method) ([\w.]+)(?: of [\w. ]+ object)?(?: at 0x[0-9a-f]+)?>", r"\1", text
    )
    text = re.sub(r"<bound method ([\w.]+) of .*?>", r"\1", text)
    text = re.sub(r"<class '(?:[\w.]*\.)?(\w+)'>", r"\1", text)
    text = re.sub(r"<module '([\w.]+)'[^>]*>", r"\1", text)
    text = re.sub(r"<([\w.]*\.)?(\w+) object at 0x[0-9a-f]+>", lambda m: kind_named(m[2]), text)
    return re.sub(r"np\.(?:float|int|bool)\w*\(([^()]*)\)", r"\1", text)


def printable(text: str) -> str:
    """Return text with control characters, format characters and lone surrogates escaped.

    Line ends and tabs are kept. Names from files pass through it before a terminal prints them.
    """
    if text.isprintable():
        return text
    letters = (letter if letter in "\n\t" or _is_shown(letter) else _escaped(letter) for letter in text)
    return "".join(letters)


def _is_shown(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


ARGUMENTS = {"in": "variable"}
"""Options whose Python argument has another name, because theirs is a Python keyword."""


def as_python_names(text: str) -> str:
    """Return text with --options as names of arguments, except in a whole command that begins with `derive`."""
    pattern = r"derive [a-z]+ [^;,]*|--(no-)?([a-z][a-z-]*)"
    return re.sub(
        pattern,
        lambda m: m[0] if m[2] is None else f"{ARGUMENTS.get(m[2], m[2].replace('-', '_'))}{'=False' * bool(m[1])}",
        text,
    )


def one_sentence(text: str) -> str:
    """Return text as one printable line of at most `SENTENCE` characters, with the middle elided."""
    line = " ".join(printable(text).split())
    if len(line) > SENTENCE.most:
        line = re.sub(r"\S{61,}", lambda word: f"{word[0][:40]}...{word[0][-12:]}", line)
    if len(line) > SENTENCE.most:
        line = f"{line[: SENTENCE.most - 115].rstrip()} ... {line[-105:].lstrip()}"
    return line
