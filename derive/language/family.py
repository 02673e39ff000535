"""Families of declarations: integers or words, such as a depth or a kind of data, that change the equations.

A parameter such as gamma0 is a number inside the equations. A choice selects the equations, so every member of a family
is a separate model, derived on first use.
"""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from derive.errors import DeclarationError, DeriveError, ParameterError
from derive.language.cures import as_declaration_error
from derive.language.expressions import word
from derive.language.formulas import read_formula
from derive.language.model import Model
from derive.language.symbols import Domain
from derive.support.display import Displayed

Chosen = int | str


@dataclass(frozen=True)
class FormulaVariables:
    """Any formula in these variables; some formulas have names."""

    variables: tuple[str, ...]
    named: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"a formula in {' and '.join(self.variables)}, or {', '.join(name for name, _ in self.named)}"


@dataclass(frozen=True)
class Choice(ABC):
    """The options of a family: integers of a domain, one of several words, or a formula."""

    default: Chosen
    allowed: Any
    doc: str = ""

    words = property(lambda self: (), doc="All allowed values, if these are a few words.")
    offered = property(lambda self: self.words, doc="The allowed values that have a name.")

    def __str__(self) -> str:
        return str(self.allowed)

    def meaning(self, name: str, value: Chosen) -> Any:
        """Return the argument of the declaring function: the value, or a SymPy expression for a formula."""
        return value

    def in_name(self, name: str, value: Chosen) -> str:
        """Return how a non-default value is written in the name of a member."""
        return str(value)

    @abstractmethod
    def read(self, name: str, typed: Chosen) -> Chosen:
        """Return a typed value if it is allowed."""


class WholeChoice(Choice):
    """Integers of a domain."""

    def in_name(self, name: str, value: Chosen) -> str:
        return f"{name}{value}"

    def read(self, name: str, typed: Chosen) -> Chosen:
        try:
            value = int(typed)
            whole = not isinstance(typed, bool) and (isinstance(typed, str) or value == typed)
        except (TypeError, ValueError, OverflowError):
            whole = False
        if not whole:
            raise ParameterError(f"{name}={typed}: {name} must be {self}")
        if not self.allowed.contains(value):
            raise ParameterError(f"{name}={typed} is out of range: {name} must be {self}")
        return value


class WordChoice(Choice):
    """One of several words."""

    words = property(lambda self: self.allowed)

    def __str__(self) -> str:
        return " or ".join(self.words)

    def read(self, name: str, typed: Chosen) -> Chosen:
        if typed not in self.words:
            raise ParameterError(f"{name}={typed} is not known: {name} must be {self}")
        return typed


class FormulaChoice(Choice):
    """A formula, or the name of one."""

    offered = property(lambda self: tuple(name for name, _ in self.allowed.named))

    def meaning(self, name: str, value: Chosen) -> Any:
        text = dict(self.allowed.named).get(str(value), str(value))
        return read_formula(text, self.allowed.variables, f"{name}={value}", self.offered)

    def in_name(self, name: str, value: Chosen) -> str:
        return str(value) if value in self.offered else f"{name}_{hashlib.sha256(str(value).encode()).hexdigest()[:8]}"

    def read(self, name: str, typed: Chosen) -> Chosen:
        text = str(typed).strip()
        self.meaning(name, text)
        return text if text in self.offered else "".join(text.split())


@word
def whole_choice(default: int, low: int = 1, high: float = float("inf"), doc: str = "") -> Choice:
    """Return a choice of an integer that changes the equations, such as the number of layers.

    >>> from derive import whole_choice
    >>> layers = whole_choice(2, high=4, doc="layers")
    >>> layers.default
    2
    >>> print(layers)
    a whole number in [1, 4]
    """
    domain = Domain(low, high, low_included=True, high_included=high != float("inf"), whole=True)
    if not domain.contains(default):
        raise DeclarationError(f"whole_choice: its default {default} must be {domain}")
    return WholeChoice(default, domain, doc)


@word
def one_of(*words: str, doc: str = "") -> Choice:
    """Return a choice among several words; the first is the default.

    >>> from derive import one_of
    >>> print(one_of("full_batch", "online", doc="the same samples at each step, or fresh ones"))
    full_batch or online
    """
    if len(words) < 2 or not all(isinstance(word, str) and word.isidentifier() for word in words):
        raise DeclarationError(f"one_of{words}: give two or more words of letters, digits and underscores")
    return WordChoice(words[0], words, doc)


@word
def formula(variables: str, doc: str = "", **named: str) -> Choice:
    """Return a choice of a function, to which users may pass a formula.

    Each keyword names a formula; the first is the default.

    The declaring function receives a SymPy expression in real symbols of these names.

    >>> from derive import formula
    >>> activation = formula("x", tanh="tanh(x)", relu="Max(x, 0)")
    >>> print(activation)
    a formula in x, or tanh, relu
    >>> activation.meaning("activation", "x + x**3")
    x**3 + x
    """
    if not named:
        raise DeclarationError("formula(...): name at least one formula; the first is the default: tanh='tanh(x)'")
    names = tuple(variables.split())
    for name, text in named.items():
        read_formula(text, names, f"formula({name}={text!r})")
    return FormulaChoice(next(iter(named)), FormulaVariables(names, tuple(named.items())), doc)


@dataclass(frozen=True, repr=False)
class Family(Displayed):
    """Models made by one function, one for each combination of choices."""

    declare: Callable[..., Model]
    choices: tuple[tuple[str, Choice], ...]
    name: str = "model"
    doc: str = ""
    _members: dict[tuple[Chosen, ...], Model] = field(default_factory=dict, init=False, compare=False)

    @property
    def open_choices(self) -> tuple[tuple[str, Choice], ...]:
        """The choices, by name."""
        return self.choices

    def _word(self, name: str, word: str) -> str:
        """Return a chosen word for use in a name, prefixed by the name of its choice if another choice has the same
        word.
        """
        owners = [choice for choice, c in self.choices if word in c.words]
        return word if owners == [name] else f"{name}_{word}"

    def member(self, chosen: Mapping[str, Chosen]) -> Model:
        """Return the model for these choices, with defaults for the others; its name lists the non-default ones."""
        values = {name: choice.read(name, chosen.get(name, choice.default)) for name, choice in self.choices}
        key = tuple(values.values())
        if key not in self._members:
            self._members[key] = self._declared(values)
        return self._members[key]

    def _declared(self, values: dict[str, Chosen]) -> Model:
        meanings = {name: choice.meaning(name, values[name]) for name, choice in self.choices}
        try:
            model = self.declare(**meanings)
        except DeriveError:
            raise
        except Exception as error:
            raise as_declaration_error(error) from error
        if not isinstance(model, Model):
            what = "nothing" if model is None else type(model).__name__
            raise DeclarationError(f"{self.name}: its function returns {what}; end it with return Model(...)")
        clash = {p.name for p in model.parameters} & set(values)
        if clash:
            raise DeclarationError(f"{self.name}: {min(clash)} is both a choice and a parameter; rename one")
        changed = [
            self._word(name, str(values[name])) if choice.words else choice.in_name(name, values[name])
            for name, choice in self.choices
            if values[name] != choice.default
        ]
        return replace(
            model,
            name="_".join([self.name, *changed]),
            doc=self.doc,
            observe=dict(model.observe),
            choices=tuple(values.items()),
            family=self.name,
        )


@word
def family(declare: Callable[..., Model], **choices: Choice) -> Family:
    """Return a family of models: `declare` takes the choices by name and returns a Model.

    >>> from derive import Model, family, gaussian, parameter, positive, sectors, spectrum, whole_choice
    >>> def declare(L):
    ...     nu = parameter("nu", default=1.0, domain=positive)
    ...     sizes = sectors("D", **{f"N{k}": nu for k in range(1, L + 1)})
    ...     product = gaussian("W0", sizes[1], sizes[0])
    ...     for k in range(1, L):
    ...         product = gaussian(f"W{k}", sizes[k + 1], sizes[k]) @ product
    ...     return Model(parameters=(nu,), probe=spectrum(product.T @ product / sizes[-1]))
    >>> MODEL = family(declare, L=whole_choice(2, doc="factors"))
    >>> MODEL.member({"L": 3})
    Model model_L3: 1 parameter, spectrum of 1/N3*W0.T @ W1.T @ W2.T @ W2 @ W1 @ W0; print(...) shows it
    """
    for name, choice in choices.items():
        if not isinstance(choice, Choice):
            raise DeclarationError(
                f"family: {name}={choice!r}; make choices with whole_choice(...), one_of(...) or formula(...)"
            )
    if not choices:
        raise DeclarationError("family: there is nothing to choose; write MODEL = declare() instead")
    takes = inspect.signature(declare).parameters
    for name in choices:
        if name not in takes:
            raise DeclarationError(f"family: {getattr(declare, '__name__', 'the function')} takes no argument {name!r}")
    return Family(declare, tuple(choices.items()))
