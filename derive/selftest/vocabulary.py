"""Frequencies of words, arguments, functions and values in declarations, counted in their text.

A feature is a word of the language, an optional argument such as `goe(variance=)`, a function with the kind of its
argument such as `Abs of a parameter`, or a kind of value. Drafts are drawn for pairs of features, since many defects
need two of them.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

from derive.selftest.sketch import LAWS, OF_PARAMETER, OF_TIME, OF_VECTOR, PARAMETERS, TIMES
from derive.words import LANGUAGE, WORDS

FILLED = {"Model": ("name", "choices", "family", "alignments")}
"""Arguments that loading fills in, never the declaration."""
FUNCTIONS = (
    *(f"{word}{OF_VECTOR}" for word in LAWS),
    *(f"{word}{OF_PARAMETER}" for word in PARAMETERS),
    *(f"{word}{OF_TIME}" for word in TIMES),
)
VALUES = (
    "a negative parameter",
    "a parameter at zero",
    "a huge or tiny ratio",
    "a ratio with a parameter",
    "a variance with a parameter",
    "a scale with a parameter",
    "a parameter in a trait",
    "T = 1",
    "a probe at the first step",
    "a probe before the last step",
)
FAR = 8.0
"""Size ratio at or above which it counts as huge, and at or below whose inverse as tiny."""
_VECTORS = ("field", "fields", "normal", "drawn", "trait")
_MEANS = ("mean", "overlap", "total")


@cache
def arguments() -> dict[str, tuple[str, ...]]:
    """Return the arguments of every word, in order, by name."""
    from importlib import import_module

    table = {}
    for module, words in LANGUAGE.items():
        for word in words:
            value = getattr(import_module(module), word)
            table[word] = tuple(inspect.signature(value).parameters) if callable(value) else ()
    return table


@cache
def optional() -> tuple[str, ...]:
    """Return every optional argument of every word, as goe(variance=)."""
    from importlib import import_module

    labels = []
    for module, words in LANGUAGE.items():
        for word in words:
            value: Any = getattr(import_module(module), word)
            parameters = inspect.signature(value).parameters.values() if callable(value) else ()
            names = [p.name for p in parameters if p.default is not inspect.Parameter.empty]
            labels += [f"{word}({name}=)" for name in names if name not in FILLED.get(word, ())]
    return tuple(labels)


def features() -> tuple[str, ...]:
    """Return all features: words, optional arguments, functions and kinds of values."""
    return (*WORDS, *optional(), *FUNCTIONS, *VALUES)


def features_of(text: str) -> frozenset[str]:
    """Return the features of a declaration, from its text."""
    counter = _Counter()
    counter.visit(ast.parse(text))
    return frozenset(counter.found)


class _Counter(ast.NodeVisitor):
    """Visitor of the syntax tree of a declaration that collects its features."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.kinds: dict[str, str] = {}
        self.defaults: dict[str, float] = {}
        self.probed = False

    def visit_Assign(self, node: ast.Assign) -> None:
        """Record the kind of a variable: a parameter, a clock or a vector."""
        word = _word(node.value)
        target = node.targets[0]
        for name in getattr(target, "elts", [target]):
            if name := getattr(name, "id", ""):
                self.kinds[name] = "vector" if word in _VECTORS else word
        match node.value:
            case ast.Call(func=ast.Name(id="parameter")) as call:
                self._parameter(call)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        word = _word(node)
        names = arguments().get(word)
        if names is not None:
            self.found.add(word)
            self.found |= {f"{word}({name}=)" for name, _ in zip(names, node.args, strict=False)}
            self.found |= {f"{word}({k.arg}=)" for k in node.keywords}
            self._values(word, node)
        elif word and self.kinds.get(word) == "vector":
            if self.probed and node.args:
                self._early(node.args[0])
        elif word not in self.kinds and word[:1].isalpha():
            self._function(word, node)
        probes, self.probed = self.probed, self.probed or word == "spectrum"
        self.generic_visit(node)
        self.probed = probes

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in arguments():  # domains are named and not called
            self.found.add(node.id)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        of_time, of_parameter = (self._has(node.right, kind) for kind in ("training_clock", "parameter"))
        match node.op:
            case ast.Pow() if of_time:
                self.found.add(f"{'0**t' if _is_zero(node.left) else 'c**t'}{OF_TIME}")
            case ast.Pow() if of_parameter:
                self.found.add(f"power{OF_PARAMETER}")
            case ast.Pow() if self._is_time(node.left):
                self.found.add(f"square{OF_TIME}")
            case ast.Div() if of_time:
                self.found.add(f"quotient{OF_TIME}")
            case ast.Div() if of_parameter:
                self.found.add(f"quotient{OF_PARAMETER}")
            case ast.Mult() if self._is_time(node.right):
                self.found.add(f"multiple{OF_TIME}")
        self.generic_visit(node)

    def _parameter(self, call: ast.Call) -> None:
        default = next((k.value for k in call.keywords if k.arg == "default"), None)
        value = ast.literal_eval(default) if default is not None else 1
        if value == 0:
            self.found.add("a parameter at zero")
        elif value < 0:
            self.found.add("a negative parameter")
        name = ast.literal_eval(call.args[0])
        if name == "T" and value == 1:
            self.found.add("T = 1")
        self.defaults[name] = float(value)

    def _values(self, word: str, node: ast.Call) -> None:
        keywords = {k.arg: k.value for k in node.keywords}
        if word == "sectors":
            for value in keywords.values():
                number = self._known(value)
                if number is not None and not 1 / FAR < number < FAR:
                    self.found.add("a huge or tiny ratio")
                if self._has(value, "parameter"):
                    self.found.add("a ratio with a parameter")
        for name, words in (("variance", ("goe", "gaussian")), ("scale", ("normal",)), ("values", ("trait",))):
            if word in words and name in keywords and self._has(keywords[name], "parameter"):
                self.found.add("a parameter in a trait" if name == "values" else f"a {name} with a parameter")

    def _known(self, value: ast.expr) -> float | None:
        """Return a number, or the default of a parameter that occurs alone; None for other expressions."""
        match value:
            case ast.Constant(value=number):
                return float(str(number))
            case ast.Name(id=name):
                return self.defaults.get(name)
        return None

    def _early(self, time: ast.expr) -> None:
        match time:
            case ast.Constant():
                self.found.add("a probe at the first step")
            case ast.BinOp() if self._has(time, "parameter"):
                self.found.add("a probe before the last step")

    def _function(self, word: str, node: ast.Call) -> None:
        """Record a SymPy function with the kind of its argument."""
        whole = ast.Tuple(elts=list(node.args), ctx=ast.Load())
        if self._has(whole, "vector"):
            self.found.add(f"{word}{OF_VECTOR}")
        elif self._has(whole, "training_clock"):
            self.found.add(f"{word}{OF_TIME}")
        elif self._has(whole, "parameter"):
            self.found.add(f"{word}{OF_PARAMETER}")

    def _is_time(self, node: ast.expr) -> bool:
        return self.kinds.get(getattr(node, "id", "")) == "training_clock"

    def _has(self, node: ast.AST, kind: str) -> bool:
        """Return whether an expression contains a kind of node outside of times and averages."""
        match node:
            case ast.Name(id=name):
                return self.kinds.get(name) == kind
            case ast.Call(func=ast.Name(id=name)) if name in _MEANS:
                return False
            case ast.Call(func=ast.Name(id=name)) if self.kinds.get(name) == "vector":
                return kind == "vector"
        return any(self._has(child, kind) for child in ast.iter_child_nodes(node))


def _word(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name
    return ""


def _is_zero(node: ast.expr) -> bool:
    """Return whether a node is 0 or Rational(0, 1)."""
    match node:
        case ast.Constant(value=0) | ast.Call(args=[ast.Constant(value=0), *_]):
            return True
    return False


@dataclass
class Vocabulary:
    """Number of declarations with each feature, and with each pair."""

    declarations: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def count(self, text: str) -> None:
        counted_features = set(features())
        present = sorted(features_of(text) & counted_features)
        self.declarations += 1
        self.counts.update(present)
        self.pairs.update(combinations(present, 2))

    @property
    def missing(self) -> tuple[str, ...]:
        """The features that no declaration has."""
        return tuple(feature for feature in features() if not self.counts[feature])

    def coverage(self) -> tuple[int, int]:
        """Return the number of feature pairs that occurred, and the number of all pairs."""
        wanted = [tuple(sorted(pair)) for pair in pairs()]
        return sum(pair in self.pairs for pair in wanted), len(wanted)


def counted(texts: Iterable[str]) -> Vocabulary:
    """Return the vocabulary of declarations."""
    vocabulary = Vocabulary()
    for text in texts:
        vocabulary.count(text)
    return vocabulary


@cache
def pairs() -> tuple[tuple[str, str], ...]:
    """Return the feature pairs that drafts are drawn for, in a fixed order."""
    steered = (*FUNCTIONS, *VALUES, *STEERED)
    return tuple(combinations(steered, 2))


STEERED = (
    "axis",
    "data",
    "diag",
    "drawn",
    "exponential",
    "fresh",
    "goe",
    "mixture",
    "past_sum",
    "relabel",
    "softmax",
    "spectrum(plus=)",
    "trait",
    "trait(density=)",
    "training_clock(endpoint=)",
    "weights",
)
"""Words and arguments for which drafts are drawn, together with all functions and values."""


def wanted_of(seed: int, number: int) -> frozenset[str]:
    """Return the pair of features for which a declaration is drawn: all pairs in turn, in an order set by the seed."""
    every = pairs()
    order = _order(seed, len(every))
    return frozenset(every[order[number % len(every)]])


@cache
def _order(seed: int, count: int) -> tuple[int, ...]:
    return tuple(Random(f"pairs of {seed}").sample(range(count), count))
