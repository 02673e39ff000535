"""SaddlePoint, TimeOrder -> StationaryLimit: the fixed point of linear training, without the transient.

The laws must be linear with coefficients constant in time. The transform x(z) = (1 - 1/(1 + z)) sum_t x(t) (1 + z)^(-t)
then gives one linear equation per field: a delay becomes a factor 1/(1 + z), memory a product, and a constant remains
unchanged. The response of each site to noises and sources is the inverse of a small matrix; its averages over sites are
the response functions, and noises have the covariances of the saddle point. These are order parameters of the declared
dynamics at any z, and the limit of x(t) is x(z) at z = 0.
"""

from __future__ import annotations

import sympy as sp

from derive.equations.linear_laws import LinearLaws
from derive.errors import DeclarationError, blaming
from derive.language.symbols import EngineSymbol
from derive.language.vectors import Field, FieldAt, Mean, Mix
from derive.records.base import gathered
from derive.records.limit import LinearPart, StationaryLimit
from derive.records.saddle import SaddlePoint, TimeOrder
from derive.records.system import SystemField, Term, is_moment, quadratic_pairs


def find_limit(saddle: SaddlePoint, order: TimeOrder) -> StationaryLimit:
    """Return the equations of one site in z, and the observables in terms of its order parameters.

    Raises:
        DeclarationError: if laws are not linear and constant in time, or training has no stationary limit.
    """
    sites = _Stationary(saddle)
    fields = sites.fields
    drives = [part for f in fields.values() for part in sites.drawn(f)]
    observables, means = sites.observed()
    return StationaryLimit(
        system=saddle.system,
        fields=tuple(fields),
        sources=tuple(saddle.system.sources),
        parts=tuple(part for f in fields.values() for part in sites.parts(f)),
        drives=tuple(drives),
        memories=tuple(m for m in saddle.memories if m.target in fields),
        covariances=tuple(c for c in saddle.covariances if c.left in fields and c.right in fields),
        mean_symbols=tuple((symbol, mean) for mean, symbol in means.items()),
        means=tuple(map(_pairs, means)),
        observables=observables,
        forgotten=sites.forgotten,
        assumptions=gathered(saddle, order, new="training converges: all fields have a stationary limit"),
    )


class _Stationary(LinearLaws):
    """The equations of one site in z, and its observables at the fixed point."""

    def __init__(self, saddle: SaddlePoint):
        super().__init__(saddle.system)
        self.forgotten = ""
        self._check()

    def _check(self) -> None:
        """Refuse laws that are not linear with constant coefficients."""
        for f in self.system.training:
            if f.field.is_drawn:
                continue  # drawn by its moments, unless something that follows is not linear
            with blaming(f.origin):
                for rule in f.rules:
                    self.check_rule(f.field, rule)
        afresh = [str(source) for source in self.system.sources if source.timed]
        afresh += [str(matrix) for matrix in self.system.disorder if matrix.fresh is not None]
        for name in afresh:
            raise DeclarationError(
                f"{name} is drawn anew at each step, so there is no stationary limit; solve it at finite T"
            )

    def drawn(self, f: SystemField) -> list[LinearPart]:
        """Return the random terms in the equation of a field: sources, and starting values that training does not
        forget."""
        drives: list[LinearPart] = []
        for t in f.rule.terms:
            value, lag = t.vector.field, self.lag(f.field, t.vector)
            if value not in self.fields:
                drives.append(LinearPart(f.field, value, t.coefficient, f.shift, mixing=t.mixing))
                continue
            # the rule holds from its first time on: earlier values of its fields do not count
            for time in range(f.shift - lag if value.timed else 0):
                early = self._starts(value, time, f"{value}({time}) in the equation of {f.field}")
                if early and t.mixing is not None:
                    self.forgotten = self.forgotten or f"{value}({time}) in the equation of {f.field}"
                    continue
                drives += [
                    LinearPart(f.field, s.vector.field, -t.coefficient * s.coefficient, time + lag + 1, 1, s.mixing)
                    for s in early
                ]
        if f.shift and (f.rule.laws or f.product):
            self.forgotten = self.forgotten or f"the start of {f.field}"
        for time in range(len(f.starts)):
            early = self._starts(f.field, time, f"the start of {f.field}")
            drives += [LinearPart(f.field, s.vector.field, s.coefficient, time + 1, 1, s.mixing) for s in early]
        return drives

    def _starts(self, field: Field, time: int, description: str) -> tuple[Term, ...]:
        """Return the starting value of a field in terms of sources; if it is not linear, record it as forgotten and
        return nothing.
        """
        starts = self.fields[field].starts
        start = starts[time] if time < len(starts) else None
        if start is None or start.laws or start.product or any(t.vector.field in self.fields for t in start.terms):
            self.forgotten = self.forgotten or description
            return ()
        return start.terms

    def observed(self) -> tuple[tuple[tuple[str, sp.Expr], ...], dict[Mean, EngineSymbol]]:
        """Return the observables as formulas of means at the fixed point."""
        means: dict[Mean, EngineSymbol] = {}
        observables = []
        for name, value in self.system.model.observe:
            resting = value.xreplace({v: v.field(self.clock) for v in value.atoms(FieldAt) if v.time is not None})
            for mean in sorted(resting.atoms(Mean), key=sp.default_sort_key):
                if not is_moment(mean) and quadratic_pairs(mean) is None:
                    raise DeclarationError(
                        f"the observable {name} contains {mean}, which is not quadratic in fields; leave it out"
                    )
                means.setdefault(mean, EngineSymbol(f"mean_{len(means)}"))
            formula = resting.xreplace(means)
            if formula.has(FieldAt, Mix, self.clock, self.clock.steps):
                raise DeclarationError(
                    f"the observable {name} contains data or the time itself, so it has no limit of many steps; "
                    "leave it out"
                )
            observables.append((name, formula))
        if not observables:
            raise DeclarationError("nothing is observed, so there is no limit to return; add observe={...}")
        return tuple(observables), means


def _pairs(mean: Mean) -> tuple[tuple[sp.Expr, Field | None, Field | None], ...]:
    """Return a mean as a sum of products of two fields, or as a function of traits alone."""
    if is_moment(mean):
        return ((mean.expression, None, None),)
    return tuple((scale, a.field, b.field) for scale, a, b in quadratic_pairs(mean) or ())
