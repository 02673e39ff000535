"""AveragedAction, TimeOrder -> SaddlePoint: vary the action, and read off noises and memory.

At the saddle point every bilinear takes its mean: field . field = size * C, field . hat = i size * R, hat . hat = 0, as
the stage `conjugates` derives. The variation of a product of two bilinears is one of them times the mean of the other.
The coefficient of hat . hat is the covariance of a Gaussian noise; that of hat . field is a memory kernel.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.algebra.nodes import Response, times_of
from derive.algebra.scaling import size_free
from derive.errors import blaming
from derive.language.symbols import Parameter
from derive.language.vectors import PAST, Field
from derive.records.action import AveragedAction, Leg, clock_of
from derive.records.base import gathered
from derive.records.saddle import MemoryKernel, NoiseKernel, SaddlePoint, TimeOrder
from derive.records.system import System


def take_saddle_point(averaged: AveragedAction, order: TimeOrder) -> SaddlePoint:
    """Return the effective quadratic action, without responses that causality forbids."""
    covariances: dict[tuple[Field, Field, Field, Field, bool], sp.Expr] = {}
    memories: dict[tuple[Field, Field, Field, Field, bool], sp.Expr] = {}
    for term in averaged.terms:
        fresh = term.matrix.fresh is not None
        for kept, meant in ((term.left, term.right), (term.right, term.left)):
            size = meant[0].field.sector
            if all(leg.hatted for leg in kept) and not any(leg.hatted for leg in meant):
                key = (kept[0].field, kept[1].field, meant[0].field, meant[1].field, fresh)
                covariances[key] = covariances.get(key, sp.S.Zero) - 2 * term.weight * size
            elif _mixed(kept) and _mixed(meant):
                hat, field = _hat_first(kept)
                answering, kicked = _hat_first(meant)[::-1]
                key = (hat.field, answering.field, kicked.field, field.field, fresh)
                memories[key] = memories.get(key, sp.S.Zero) - term.weight * size
    origins = {f.field: f.origin for f in averaged.system.fields}
    kept_memories, vanishing = [], []
    for (target, a, kicked, on, fresh), coefficient in memories.items():
        lag = _lag(a, kicked, order)
        value = Response(a, kicked, *times_of(a, clock_of(a)), *times_of(kicked, PAST))
        if lag is None or (fresh and lag > 0):
            vanishing.append(value)
        else:
            with blaming(origins[target]):
                scale = size_free(coefficient, "the memory from a random matrix")
            kept_memories.append(MemoryKernel(target, scale, a, kicked, on, fresh, lag))
    kept_memories = [replace(m, at_once=_at_once(averaged.system, kept_memories, m)) for m in kept_memories]
    kernels = []
    for (left, right, a, b, fresh), coefficient in covariances.items():
        with blaming(origins[left]):
            scale = size_free(coefficient, "the noise from a random matrix")
        kernels.append(NoiseKernel(left, right, scale, a, b, fresh))
    return SaddlePoint(
        averaged.system,
        tuple(kernels),
        tuple(kept_memories),
        tuple(dict.fromkeys(vanishing)),
        gathered(
            averaged,
            order,
            new="order parameters concentrate; response fields have no correlations among themselves",
        ),
    )


def _at_once(system: System, memories: list[MemoryKernel], memory: MemoryKernel) -> sp.Expr | None:
    """Return the equal-time response in the memory of a fresh matrix; None if it is not a sum over paths of linear
    laws.
    """
    rules = {f.field: f for f in system.training}
    remembers = {m.target for m in memories if m.fresh or m.lag == 0}

    def response(a: Field) -> sp.Expr | None:
        if a not in rules:
            return sp.S.Zero  # drawn at random
        f = rules[a]
        if a in remembers or f.shift or f.starts or f.rule.laws:
            return None
        if f.product is not None:
            return sp.S.One if a == memory.noise else sp.S.Zero
        total: sp.Expr = sp.S.Zero
        for term in f.rule.terms:
            if term.past is None:
                if term.pair is not None or term.mixing is not None or term.vector.time not in (None, f.time):
                    return None
                inner = response(term.vector.field)
                if inner is None:
                    return None
                total += term.coefficient * inner
        return total

    found = response(memory.a) if memory.fresh else None
    return found if found is not None and all(isinstance(s, Parameter) for s in found.free_symbols) else None


def _mixed(pair: tuple[Leg, Leg]) -> bool:
    return pair[0].hatted != pair[1].hatted


def _hat_first(pair: tuple[Leg, Leg]) -> tuple[Leg, Leg]:
    return pair if pair[0].hatted else pair[::-1]


def _lag(a: Field, kicked: Field, order: TimeOrder) -> int | None:
    """Return the delay of the response of field a to an impulse in another; None if it vanishes.

    The probe never acts on training.
    """
    if kicked.role == "spectral":
        return 0 if a.role == "spectral" else None
    if a.role == "spectral":
        return 0
    return order.delay(a, kicked)
