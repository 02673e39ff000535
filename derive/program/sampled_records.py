"""What a sampled pass consists of, as a program, and the names of its parts."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.algebra.words import Letter
from derive.equations.layout import Layout
from derive.language.symbols import Clock, Sector
from derive.language.vectors import Field
from derive.program.nodes import SCALAR, Formula, Let, Shape, Statement, Symbol, Value
from derive.program.sites import Channel, Span
from derive.records.system import ElementwiseRule

Key = tuple[str, str, str] | tuple[str, int] | tuple[str, str] | tuple[str, str, str, str]
"""An order parameter: ("C", a, b), ("R", a, b), ("M", i) for a mean that weighs updates, ("F", i) for one at a time."""
MomentKey = tuple[str | int, ...]
"""What order parameters are made of: also ("G", matrix), the covariance of its noises, and ("K", a, matrix), the
correlations of a field with them."""

SITES, RANK, TOLERANCE = (Symbol(hint, SCALAR) for hint in ("sites", "rank", "tolerance"))
NORMALS, NOISES, MOMENTS, WANTED = (Symbol(hint) for hint in ("normals", "noises", "moments", "wanted"))
"""What every pass is given: how many sites there are and directions may be, normals, among them those of random
matrices for the directions that there is room for; moments to find order parameters from; what is asked for."""

JUMPS = (sp.Heaviside, sp.sign, sp.Piecewise, sp.DiracDelta, sp.floor, sp.ceiling)
"""Functions whose derivative, where it exists, does not tell how they change."""


@dataclass(frozen=True)
class SpanLayout:
    """A span, the symbol of its directions, that of how many it has room for, how many there can be, how many of them
    can join at one time, and how many before the first."""

    span: Span
    symbol: Symbol
    size: Symbol
    entries: sp.Expr
    joining: sp.Expr
    before: sp.Expr


@dataclass(frozen=True)
class NormalsOf:
    """One kind of normals: its key, and the shape that they have per site."""

    key: str
    shape: Shape


@dataclass(frozen=True)
class Kick:
    """A source in the equation of a field, for the responses to it."""

    field: Field


Kind = Channel | Field | tuple[Channel, Field] | Kick | Sector
"""What has normals of its own: a random matrix, a drawn vector, the part of a field outside of the span of a matrix, a
source in an equation, the traits of a sector."""


@dataclass(frozen=True)
class SampledPass:
    """The program. `tables` come before everything, `start` before the first time, `step` at every time."""

    clock: Clock | None
    method: str
    time: Symbol
    when: Symbol
    spans: tuple[SpanLayout, ...]
    kinds: tuple[NormalsOf, ...]
    channels: tuple[str, ...]
    """Keys of the normals of random matrices."""
    groups: tuple[tuple[str, ...], ...]
    paired: bool
    """Whether sites are drawn in pairs that differ by a sign."""
    footprint: Formula
    tables: tuple[Let, ...]
    start: tuple[Statement, ...]
    step: tuple[Statement, ...]
    watched: tuple[Symbol, ...]
    carried: tuple[Symbol, ...]
    results: tuple[Statement, ...]
    kept: tuple[Symbol, ...]
    """What is kept of a pass, because moments are made of it: carried through time, or known after the last one."""
    averages: tuple[Let, ...]
    """What moments share."""
    moments: tuple[tuple[MomentKey, Value], ...]
    observables: tuple[tuple[str, Value, str], ...]
    """Names, values, and what they are as text, where that does not stand in a step."""
    responses: tuple[Let, ...]
    order: tuple[tuple[Key, Value], ...]
    ends: tuple[tuple[Key, tuple[Field, Field]], ...]
    """The fields whose times and labels the two axes of a correlation or response run over."""
    remembered: tuple[str, ...] = ()
    """Fields whose noises random matrices answer to: they are kicked whenever responses are asked for."""
    fields: tuple[tuple[str, Value], ...] = ()
    """In place of moments and observables: what two-time functions are made of."""
    ranges: tuple[tuple[str, MomentKey, int], ...] = ()
    """What stands on sampled diagonals: which parameter says where it lies, the moment that it is found from, and how
    many there are."""


def has_jumps(layout: Layout) -> bool:
    """Whether some law jumps, so that its mean derivative is not the mean of its derivatives."""
    rules = [rule for f in layout.fields for rule in (f.rule, *f.starts)]
    return any(rule.law.has(*JUMPS) for rule in rules if isinstance(rule, ElementwiseRule))


def key_of(letter: Letter) -> tuple[str, str, str]:
    return (letter.kind, letter.a.name, letter.b.name)
