"""The Martin-Siggia-Rose action before and after the disorder average."""

from __future__ import annotations

from dataclasses import dataclass, replace

import sympy as sp

from derive.algebra.nodes import TAU, Dot, Hat, at
from derive.language.matrices import Disorder
from derive.language.vectors import PAST, Field
from derive.records.base import Record
from derive.records.system import System


@dataclass(frozen=True)
class Coupling:
    """The term -i coefficient hat(field) . matrix argument, which couples a field to the disorder."""

    matrix: Disorder
    transposed: bool
    coefficient: sp.Expr
    field: Field
    argument: Field


@dataclass(frozen=True)
class Leg:
    """A vector in a bilinear: a field, or its response field."""

    field: Field
    hatted: bool

    def value(self, time: sp.Expr) -> sp.Expr:
        value = at(self.field, time)
        return Hat(value) if self.hatted else value


@dataclass(frozen=True, repr=False)
class Action(Record):
    """The Martin-Siggia-Rose action: the deterministic part, and the couplings to each random matrix."""

    system: System
    couplings: tuple[Coupling, ...]
    assumptions: tuple[str, ...]
    title = "Martin-Siggia-Rose action"


def clock_of(field: Field) -> sp.Expr:
    """Return the time variable of a field: its clock, or spectral time."""
    return TAU if field.role == "spectral" else (field.clock or sp.Symbol("t"))


@dataclass(frozen=True)
class Quartic:
    """weight * (left0 . left1) * (right0 . right1); legs numbered 0 are at one time, legs numbered 1 at another."""

    matrix: Disorder
    weight: sp.Expr
    left: tuple[Leg, Leg]
    right: tuple[Leg, Leg]

    def expression(self) -> sp.Expr:
        def dot(pair: tuple[Leg, Leg]) -> Dot:
            return Dot(pair[0].value(clock_of(pair[0].field)), pair[1].value(PAST))

        return self.weight * dot(self.left) * dot(self.right)


@dataclass(frozen=True, repr=False)
class AveragedAction(Record):
    """The disorder-averaged action as products of bilinears.

    For a probed matrix it contains only products with a spectral field.
    """

    system: System
    terms: tuple[Quartic, ...]
    assumptions: tuple[str, ...]
    title = "Averaged over the disorder"

    def joined(self, probed: AveragedAction) -> AveragedAction:
        """Return the whole averaged action of a probed matrix, with the terms of the training level first."""
        return replace(probed, terms=(*self.terms, *probed.terms))
