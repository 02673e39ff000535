"""The saddle point and the single-site process that it describes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp

from derive.algebra.nodes import TAU, Response, at, times_of
from derive.language.symbols import Sector
from derive.language.vectors import PAST, Field
from derive.records.action import clock_of
from derive.records.base import Record, gathered
from derive.records.system import System


@dataclass(frozen=True)
class NoiseKernel:
    """<u_left(t) u_right(s)> = coefficient * C[a, b](t, s), times delta(t, s) if drawn anew."""

    left: Field
    right: Field
    coefficient: sp.Expr
    a: Field
    b: Field
    fresh: bool


@dataclass(frozen=True)
class MemoryKernel:
    """The memory term coefficient * sum_s R[a, noise](t, s) * on(s) in the equation of `target`.

    `at_once` is the response at equal times, if the matrix is drawn anew and the equations give its value.
    """

    target: Field
    coefficient: sp.Expr
    a: Field
    noise: Field
    on: Field
    fresh: bool
    lag: int | None = None
    at_once: sp.Expr | None = None

    def expression(self) -> sp.Expr:
        t = clock_of(self.target)
        if self.at_once is not None:
            return self.coefficient * self.at_once * at(self.on, PAST) * sp.KroneckerDelta(t, PAST)
        s = TAU if self.on.role == "spectral" else PAST
        response = Response(self.a, self.noise, *times_of(self.a, t), *times_of(self.noise, s))
        value = self.coefficient * response * at(self.on, PAST)
        return value * sp.KroneckerDelta(t, PAST) if self.fresh else value


@dataclass(frozen=True, repr=False)
class SaddlePoint(Record):
    """Noises and memory kernels. For a probed matrix: only those with a spectral field, as in its averaged action."""

    system: System
    covariances: tuple[NoiseKernel, ...]
    memories: tuple[MemoryKernel, ...]
    vanishing: tuple[sp.Expr, ...]
    assumptions: tuple[str, ...]
    title = "Saddle point"

    def joined(self, probed: SaddlePoint) -> SaddlePoint:
        """Return the whole saddle point of a probed matrix, with noises and memory of the training level first."""
        return replace(
            probed,
            covariances=(*self.covariances, *probed.covariances),
            memories=(*self.memories, *probed.memories),
            vanishing=tuple(dict.fromkeys((*self.vanishing, *probed.vanishing))),
        )


@dataclass(frozen=True)
class Conjugate:
    """The field conjugate to R[a, noise], or to C[a, b] without a noise, in exp(-size hat(Q) (Q - its definition)).

    At the saddle point its value at (s, t) is the derivative of the averaged action by the order parameter: for a
    response the sum of coefficient * R[b, j](t, s) over `terms` (coefficient, b, j), for a correlation the sum of
    coefficient * <hat(b)(t) hat(j)(s)>.
    """

    a: Field
    b: Field
    response: bool
    terms: tuple[tuple[sp.Expr, Field, Field], ...]
    vanishes: bool


@dataclass(frozen=True)
class ResponseProduct:
    """coefficient * R[first](s, t) * R[second](t, s), at equal times only for a matrix that is drawn anew."""

    coefficient: sp.Expr
    first: tuple[Field, Field]
    second: tuple[Field, Field]
    fresh: bool


@dataclass(frozen=True)
class SiteIntegral:
    """The integral over the values of one site at one time of all its delta functions, with a source in each."""

    sector: Sector
    fields: tuple[Field, ...]
    sources: tuple[sp.Symbol, ...]
    value: sp.Expr


@dataclass(frozen=True, repr=False)
class Conjugates(Record):
    """The order parameters and their conjugates at the saddle point of the effective action.

    For each site of the base sector the effective action is the sum of -ratio * conjugate * Q over the order parameters
    Q, of the products of two responses, and of ratio * log Z over the sectors. The generating function Z of a site is
    the product of its `integrals`.
    """

    saddle: SaddlePoint
    all: tuple[Conjugate, ...]
    integrals: tuple[SiteIntegral, ...]
    assumptions: tuple[str, ...]
    title = "Conjugate order parameters"

    @property
    def system(self) -> System:
        return self.saddle.system

    @property
    def products(self) -> tuple[ResponseProduct, ...]:
        """The products of two responses in the effective action, each once. Those of two responses that vanish by
        causality are omitted.

        A memory is the derivative of its product by the response of a field to its own target.
        """
        products: dict[tuple[frozenset[tuple[Field, Field]], bool], ResponseProduct] = {}
        for m in self.saddle.memories:
            own, other = (m.on, m.target), (m.a, m.noise)
            weight = m.coefficient * m.on.sector.ratio
            product = ResponseProduct(weight / 2 if own == other else weight, own, other, m.fresh)
            products.setdefault((frozenset((own, other)), m.fresh), product)
        return tuple(products.values())


@dataclass(frozen=True, repr=False)
class SingleSite(Record):
    """One representative site of each sector: the saddle point together with the rules of the declaration."""

    saddle: SaddlePoint
    assumptions: tuple[str, ...]
    title = "Single-site process"

    @staticmethod
    def of(saddle: SaddlePoint) -> SingleSite:
        alike = " with equal traits" if saddle.system.traits else ""
        return SingleSite(saddle, gathered(saddle, new=f"sites of one sector{alike} are exchangeable"))

    @property
    def system(self) -> System:
        return self.saddle.system

    def noises(self, sector: Sector) -> tuple[Field, ...]:
        return tuple(f.field for f in self.system.fields if f.product is not None and f.field.sector == sector)

    def memories(self, target: Field) -> tuple[MemoryKernel, ...]:
        return tuple(m for m in self.saddle.memories if m.target == target)


@dataclass(frozen=True)
class Edge:
    """`target` at t depends on `source` at t - lag or earlier.

    `through_mean`: the dependence is only through an average over sites.
    """

    target: Field
    source: Field
    lag: int
    through_mean: bool


@dataclass(frozen=True, repr=False)
class TimeOrder(Record):
    """The order in which training fields of one time are computed, and the delays of responses.

    `edges` are the dependencies. `delays` contains (a, b, shortest delay of the response of a to an impulse in b);
    pairs without a response are absent.
    """

    system: System
    order: tuple[Field, ...]
    edges: tuple[Edge, ...]
    delays: tuple[tuple[Field, Field, int], ...]
    assumptions: tuple[str, ...]
    title = "Order in time"

    def delay(self, field: Field, kicked: Field) -> int | None:
        """Return the shortest delay of the response of a field to an impulse in another; None if it vanishes."""
        return self._table.get((field, kicked))

    @cached_property
    def _table(self) -> dict[tuple[Field, Field], int]:
        return {(a, b): delay for a, b, delay in self.delays}

    @cached_property
    def lags(self) -> tuple[tuple[Field, Field, int], ...]:
        """The responses of one site to its noises, with their delays, in the order of computation."""
        kicked = [f.field for f in self.system.training if f.product is not None]
        pairs = ((a, j) for a in self.order if a.timed for j in kicked if a.sector == j.sector)
        return tuple((a, j, self._table[a, j]) for a, j in pairs if (a, j) in self._table)
