"""The probed matrix at any time of training: its time becomes a parameter, and later spikes are omitted."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.equations.field_rules import FieldRules
from derive.equations.history import History
from derive.language.matrices import MatrixExpression, WeightsAt
from derive.language.model import Model
from derive.language.symbols import Parameter, whole_nonnegative
from derive.language.traversal import outermost
from derive.language.vectors import PAST, FieldAt, Mean, Total
from derive.records.system import LinearRule, ProbeTimes, SystemField, Term


def stopping(model: Model, rules: FieldRules, history: History) -> ProbeTimes | None:
    """Return the times of a probed matrix; None if the number of steps can represent all of them.

    It cannot if a declared direction may come after the spikes, or if an update depends on when training ends.
    """
    clock = rules.clock
    if clock is None:
        return None
    timed = any(value.direction.time is not None for _, value in model.alignments)
    schedules = [*(i.coefficient for i in history.increments), *_updates(history)]
    followed = model.alignments or any(_measures(probe.matrix) for _, probe in model.probes)
    if not followed and not any(sp.sympify(e).has(clock.steps) for e in schedules):
        return None
    stop, run = (Parameter(rules.free_name(word), clock.steps.default, whole_nonnegative) for word in ("stop", "run"))
    return ProbeTimes(clock, stop, run, timed and clock.endpoint)


def _measures(matrix: MatrixExpression) -> bool:
    """Return whether coefficients of a probed matrix contain means, so that the matrix depends on the time of these
    means.
    """
    factors = (factor for _, part in matrix.as_sum for factor in part.as_product if factor != matrix)
    return any(sp.sympify(scale).has(Mean) for scale, _ in matrix.as_sum) or any(map(_measures, factors))


def _updates(history: History) -> list[sp.Expr]:
    """Return the coefficients of weights and random matrices in updates, as functions of a dummy time."""
    at = sp.Symbol("at", integer=True, positive=True)
    coefficients = [scale(at) for scale in history.initial.values()] + [k(at, PAST) for k in history.kernels.values()]
    return [*coefficients, *(e for r in history.recurrences for row in (*r.matrix, r.entry, r.forcing) for e in row)]


def stopped(matrix: MatrixExpression, times: ProbeTimes) -> MatrixExpression:
    """Return the matrix with its last time as a parameter. Means keep their time: the training level evaluates them."""
    if matrix.weights is not None:
        return matrix.mapped(lambda symbol: WeightsAt(symbol.weights, _at_stop(symbol.time, times)))
    return matrix.rebuilt(lambda part: stopped(part, times), lambda scale, _: _at_stop(scale, times))


def _at_stop(scale: sp.Expr, times: ProbeTimes) -> sp.Expr:
    scale = sp.sympify(scale)
    kept = {node: node for node in (*outermost(scale, (Mean, Total)), *scale.atoms(FieldAt))}
    return scale.xreplace({**kept, times.clock.steps: times.stop})


def without_later(field: SystemField, times: ProbeTimes) -> SystemField:
    """Return an equation of a probe without the spikes that are added after the time of the matrix."""
    if not field.rule.terms:
        return field
    return replace(field, rule=LinearRule(tuple(_term(term, times) for term in field.rule.terms)))


def _term(term: Term, times: ProbeTimes) -> Term:
    scale = sp.sympify(term.coefficient)
    kept = {node: node for node in (*outermost(scale, (Mean, Total)), *scale.atoms(FieldAt))}
    scale = scale.xreplace({**kept, times.clock.steps: times.run})
    return replace(term, coefficient=scale * times.mask if term.past is not None else scale)
