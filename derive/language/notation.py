"""The notation of a source: the symbols of a paper for the fields, noises, order parameters and parameters of a
model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.errors import DeclarationError
from derive.language.expressions import plain
from derive.language.symbols import Parameter, Sector, check_latex, exact
from derive.support.shapes import fits


@dataclass(frozen=True)
class SourceLetter:
    """`key` of a model is `scale` times `latex` in the source; without an explicit scale, it follows from fields."""

    key: str
    latex: str
    scale: sp.Expr | None = None


def read_notation(notation: Any, parameters: tuple[Parameter, ...]) -> tuple[SourceLetter, ...]:
    """Return a declared notation as symbols. The objects named by its keys are known only after the derivation."""
    if fits(notation, tuple[SourceLetter, ...]):
        return notation
    if not isinstance(notation, Mapping):
        raise DeclarationError(
            f"notation={notation!r}: give a letter for each name, as in notation={{'u[J0 h0]': r'u^1'}}"
        )
    return tuple(_letter(key, value, parameters) for key, value in notation.items())


def _letter(key: Any, value: Any, parameters: tuple[Parameter, ...]) -> SourceLetter:
    if not isinstance(key, str) or not key.strip():
        raise DeclarationError(f"notation: {key!r} is not a name; write it as text, such as 'J0 h0' or 'C[h0,h0]'")
    where = f"notation of {key}"
    scale, latex = value if isinstance(value, tuple) and len(value) == 2 else (None, value)
    if not isinstance(latex, str) or not latex.strip():
        raise DeclarationError(f"{where}: {value!r} is not a letter; write LaTeX, or (scale, LaTeX) if it has a factor")
    check_latex(latex, where)
    name = " ".join(key.split())
    if scale is None:
        return SourceLetter(name, latex.strip())
    factor = exact(plain(scale))
    strange = sorted((s for s in factor.free_symbols if s not in parameters and not isinstance(s, Sector)), key=str)
    if strange:
        raise DeclarationError(f"{where}: its scale has {strange[0]}; a scale is made of parameters and numbers")
    if factor == 0:
        raise DeclarationError(f"{where}: its scale is 0, and a vanishing object needs no letter")
    return SourceLetter(name, latex.strip(), factor)
