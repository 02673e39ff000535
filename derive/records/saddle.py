"""The saddle point and the single-site process it describes."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.algebra.nodes import TAU, Correlation, Noise, Response, Source, TauDerivative, at, noise, times_of
from derive.language.symbols import EngineSymbol, Sector
from derive.language.vectors import PAST, Field
from derive.records.action import AveragedAction
from derive.records.base import Record, Section, Statement
from derive.records.system import DisorderRule, System


def clock_of(field: Field) -> sp.Expr:
    return TAU if field.role == "spectral" else (field.clock or EngineSymbol("t"))


@dataclass(frozen=True)
class Covariance:
    """<u_left(t) u_right(s)> = coefficient * C[a, b](t, s), times delta(t, s) if drawn afresh."""

    left: Field
    right: Field
    coefficient: sp.Expr
    a: Field
    b: Field
    fresh: bool

    def statement(self) -> Statement:
        t, s = clock_of(self.left), PAST
        value = self.coefficient * Correlation(self.a, self.b, *times_of(self.a, t), *times_of(self.b, s))
        if self.fresh:
            value *= sp.KroneckerDelta(t, s)
        return Statement(sp.Function("cov")(noise(self.left, t), noise(self.right, s)), value)


@dataclass(frozen=True)
class Memory:
    """The equation of `target` receives coefficient * sum_s R[a, noise](t, s) * on(s)."""

    target: Field
    coefficient: sp.Expr
    a: Field
    noise: Field
    on: Field
    fresh: bool
    lag: int | None = None

    def expression(self) -> sp.Expr:
        t = clock_of(self.target)
        s = TAU if self.on.role == "spectral" else PAST
        response = Response(self.a, self.noise, *times_of(self.a, t), *times_of(self.noise, s))
        value = self.coefficient * response * at(self.on, PAST)
        return value * sp.KroneckerDelta(t, PAST) if self.fresh else value


@dataclass(frozen=True)
class SaddlePoint(Record):
    averaged: AveragedAction
    covariances: tuple[Covariance, ...]
    memories: tuple[Memory, ...]
    vanishing: tuple[sp.Expr, ...]
    assumptions: tuple[str, ...]
    title = "Saddle point"

    @property
    def system(self) -> System:
        return self.averaged.action.system

    def sections(self) -> tuple[Section, ...]:
        from derive.printing.statements import remembered

        correlations = {(c.a, c.b): None for c in self.covariances}
        responses = {(m.a, m.noise): None for m in self.memories}
        order = [
            Statement(
                Correlation(a, b, *times_of(a, clock_of(a)), *times_of(b, PAST)),
                sp.Function("mean")(at(a, clock_of(a)), at(b, PAST)),
            )
            for a, b in correlations
        ]
        order += [
            Statement(
                Response(a, j, *times_of(a, clock_of(a)), *times_of(j, PAST)),
                sp.Function("mean")(sp.Function("d")(at(a, clock_of(a)), noise(j, PAST))),
            )
            for a, j in responses
        ]
        kernels = tuple(
            Statement(noise(m.target, clock_of(m.target)), remembered(m), relation="joined by") for m in self.memories
        )
        return (
            Section("order parameters", tuple(order)),
            Section("covariances of the noises", tuple(c.statement() for c in self.covariances)),
            Section("memory that joins each noise", kernels),
            Section("vanish by causality", tuple(Statement(v, sp.S.Zero) for v in self.vanishing)),
        )


@dataclass(frozen=True)
class SingleSite(Record):
    """One representative site of each sector: noises, memory and the rules of the declaration."""

    saddle: SaddlePoint
    assumptions: tuple[str, ...]
    title = "Single-site process"

    @property
    def system(self) -> System:
        return self.saddle.system

    def noises(self, sector: Sector) -> tuple[Field, ...]:
        return tuple(
            f.field for f in self.system.fields if isinstance(f.rule, DisorderRule) and f.field.sector == sector
        )

    def memories(self, target: Field) -> tuple[Memory, ...]:
        return tuple(m for m in self.saddle.memories if m.target == target)

    def sections(self) -> tuple[Section, ...]:
        from derive.printing.statements import remembered

        found = []
        for sector in self.system.sectors:
            lines = []
            for f in self.system.fields:
                if f.field.sector != sector:
                    continue
                value = at(f.field, f.time)
                if isinstance(f.rule, DisorderRule):
                    right: sp.Expr = Noise(f.field, *times_of(f.field, f.time))
                    for m in self.memories(f.field):
                        right += remembered(m)
                else:
                    right = f.rule.expression(f.time) + (Source() if f.derivative else 0)
                lines.append(Statement(TauDerivative(value) if f.derivative else value, right))
            found.append(Section(f"a site of {sector}", tuple(lines)))
        return (*found, Section("noises", tuple(c.statement() for c in self.saddle.covariances)))


@dataclass(frozen=True)
class TimeOrder(Record):
    """In which order the fields of one time are computed, and how far back each response reaches."""

    single_site: SingleSite
    order: tuple[Field, ...]
    lags: tuple[tuple[Field, Field, int], ...]
    assumptions: tuple[str, ...]
    title = "Order in time"

    @property
    def system(self) -> System:
        return self.single_site.system

    def sections(self) -> tuple[Section, ...]:
        sequence = tuple(Statement(at(f, clock_of(f)), remark=f"step {i + 1}") for i, f in enumerate(self.order))
        reach = []
        for a, j, lag in self.lags:
            t = clock_of(a)
            left = Response(a, j, *times_of(a, t), *times_of(j, PAST))
            condition = f"s <= {t}" if lag == 0 else (f"s < {t}" if lag == 1 else f"s <= {t} - {lag}")
            timed = a.timed and j.timed
            reach.append(Statement(left, remark=f"nonzero only for {condition}" if timed else "nonzero"))
        if self.system.linear:
            method = "every law is linear: one exact forward pass in time"
        elif self.system.model.responses == "pathwise":
            method = "some laws are nonlinear: sampled forward in time, responses by derivatives along each path"
        else:
            method = "some laws are nonlinear: sampled forward in time, responses by Stein's lemma"
        return (
            Section("each time is computed in this order", sequence),
            Section("reach of the responses", tuple(reach)),
            Section("method", (Statement(remark=method),)),
        )
