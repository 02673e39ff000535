"""Messages about auxiliary fields, in terms of declared expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import sympy as sp

from derive.language.contents import declared_names
from derive.language.model import Model
from derive.language.vectors import PAST, shown
from derive.records.system import SystemField

_TIME = r"(?:\((?P<time>[^()]*)\))?"
"""The optional time after the name of a field."""


def as_declared(model: Model, fields: Iterable[SystemField]) -> Callable[[str], str]:
    """Return a function that replaces auxiliary fields in a sentence by the declared expressions they represent.

    Spectral fields represent no declared expression and keep their names.
    """
    declared = declared_names(model)
    auxiliary = {f.field.name: f for f in fields if f.field.name not in declared and not f.derivative}

    def written(name: str, time: str | None) -> str:
        f = auxiliary[name]
        law = f.rule.expression(f.time)
        if time is not None and f.field.clock is not None:
            law = law.subs(f.field.clock, _parsed(time, f))
        return in_words(shown(law))

    def in_words(sentence: str) -> str:
        if not auxiliary:
            return sentence
        names = "|".join(sorted(map(re.escape, auxiliary), key=len, reverse=True))
        return re.sub(rf"(?<!\w)(?P<name>{names})(?!\w){_TIME}", lambda m: written(m["name"], m["time"]), sentence)

    return in_words


def _parsed(time: str, f: SystemField) -> sp.Expr:
    """Return a time parsed from a sentence."""
    symbols = {x.name: x for x in (f.field.clock, *f.field.clock.steps.free_symbols, PAST)}
    try:
        return sp.parse_expr(time, local_dict=symbols)
    except (SyntaxError, TypeError, ValueError):
        return sp.Symbol(time)
