"""SaddlePoint, TimeOrder -> Limit: where linear training comes to rest, without the way there.

Laws that are linear, with coefficients that do not change in time, turn under
x(z) = (1 - 1/(1 + z)) sum_t x(t) (1 + z)^(-t) into one linear equation per field: a delay becomes a factor 1/(1 + z),
memory a product, and what stays as it was drawn is itself. Each site then answers its noises and sources by the inverse
of a small matrix, whose averages over sites are the responses; noises have the covariances of the saddle point. These
are order parameters of the declared dynamics at any z, and the last value of x(t) is x(z) at z = 0.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.sites import averaged, site_responses
from derive.equations.linear_laws import LinearLaws
from derive.errors import DeclarationError, blaming
from derive.language.data import DataAt
from derive.language.laws import Drawn
from derive.language.symbols import EngineSymbol, Sector
from derive.language.vectors import Field, FieldAt, Mean, Mix, Total
from derive.records.base import gathered
from derive.records.limit import LabelledLimit, Limit, OrderSymbol, Part
from derive.records.saddle import SaddlePoint, TimeOrder
from derive.records.system import DisorderRule, LinearRule, System, SystemField, Term, is_moment, quadratic_pairs

DELAYED = 1 / (1 + Z)
"""What a delay by one step becomes. z counts from one, so that close to rest nothing cancels."""
Parts = dict[Field, sp.Expr]
"""By field what multiplies it."""


def find_limit(saddle: SaddlePoint, order: TimeOrder) -> Limit | LabelledLimit:
    """Order parameters in z and the observables made of them; refused where training does not come to rest by laws that
    are linear and the same at all times. With labels or data every order parameter is a matrix over labels."""
    if _has_labels(saddle.system):
        return _WithLabels(saddle).found(order)
    work = _AtRest(saddle)
    responses, response_equations = work.responding()
    observables, means = work.observed()
    correlations, correlation_equations, values = work.correlating(means)
    return Limit(
        saddle.system,
        responses,
        response_equations,
        correlations,
        correlation_equations,
        tuple((symbol, mean) for mean, symbol in means.items()),
        values,
        observables,
        work.forgotten,
        gathered(saddle, order, new="training comes to rest: all fields have a last value"),
    )


def _has_labels(system: System) -> bool:
    """Whether fields have labels, or data stand in their equations."""
    rules = [rule for f in system.training for rule in (f.rule, *f.starts) if isinstance(rule, LinearRule)]
    given = any(t.mixing is not None or t.coefficient.has(DataAt) for rule in rules for t in rule.terms)
    return given or any(f.labelled for f in (*(f.field for f in system.training), *system.sources))


class _AtRest(LinearLaws):
    labelled = False
    """Whether fields have labels and data stand in equations."""

    def __init__(self, saddle: SaddlePoint):
        super().__init__(saddle.system)
        self.saddle = saddle
        self.forgotten = ""
        self._check()
        self.response: dict[tuple[Field, Field], EngineSymbol] = {}
        for m in saddle.memories:
            self._name(self.response, "R", m.a, m.noise)
        self.correlation: dict[tuple[Field, Field], EngineSymbol] = {}
        self.rows: dict[Sector, list[Field]] = {}
        for field in self.fields:
            self.rows.setdefault(field.sector, []).append(field)
        if self.labelled:
            return
        self.drives = {field: self._drive(f) for field, f in self.fields.items()}
        self.inverse = {sector: self._inverted(rows) for sector, rows in self.rows.items()}

    # -- what can be done

    def _check(self) -> None:
        """Refuse what is not linear with constant coefficients."""
        for f in self.system.training:
            if isinstance(f.field, Drawn):
                continue  # drawn by its moments, unless something that follows is not linear
            with blaming(f.origin):
                for rule in (f.rule, *f.starts):
                    self.check_rule(f.field, rule)
        for source in self.system.sources:
            if source.timed:
                raise DeclarationError(
                    f"{source} is drawn afresh at each step, so that nothing comes to rest; solve it at finite T"
                )
        for matrix in self.system.disorder:
            if matrix.fresh is not None:
                raise DeclarationError(
                    f"{matrix} is drawn afresh at each step, so that nothing comes to rest; solve it at finite T"
                )

    # -- one site

    def _name(self, table: dict[tuple[Field, Field], EngineSymbol], kind: str, a: Field, b: Field) -> EngineSymbol:
        if (a, b) not in table:
            table[a, b] = EngineSymbol(f"{kind}_{a}_{b}", a, b)
        return table[a, b]

    def _drive(self, f: SystemField) -> Parts:
        """What is drawn in the equation of a field: sources, and starts, which count as far as they are remembered."""
        found: Parts = {}

        def add(parts: Parts, factor: sp.Expr) -> None:
            for source, scale in parts.items():
                found[source] = found.get(source, sp.S.Zero) + factor * scale

        if isinstance(f.rule, LinearRule):
            for term in f.rule.terms:
                value, lag = term.vector.field, self.lag(f.field, term.vector)
                if value not in self.fields:
                    add({value: term.coefficient}, DELAYED**f.shift)
                    continue
                # the rule holds from its first time on: earlier values of what stands in it do not count
                for time in range(f.shift - lag if value.timed else 0):
                    early = self._start(value, time, f"{value}({time}) in the equation of {f.field}")
                    add(early, -term.coefficient * Z * DELAYED ** (time + lag + 1))
        elif f.shift:
            self.forgotten = self.forgotten or f"the start of {f.field}"
        for time in range(len(f.starts)):
            add(self._start(f.field, time, f"the start of {f.field}"), Z * DELAYED ** (time + 1))
        return found

    def _start(self, field: Field, time: int, told: str) -> Parts:
        """The value of a field at a first time in terms of what is drawn; nothing, and noted, where it is not."""
        starts = self.fields[field].starts
        start = starts[time] if time < len(starts) else None
        if not isinstance(start, LinearRule) or any(t.vector.field in self.fields for t in start.terms):
            self.forgotten = self.forgotten or told
            return {}
        found: Parts = {}
        for term in start.terms:
            found[term.vector.field] = found.get(term.vector.field, sp.S.Zero) + term.coefficient
        return found

    def _inverted(self, rows: list[Field]) -> sp.Matrix:
        """The response of the fields of a site to drives of their equations."""
        place = {field: i for i, field in enumerate(rows)}
        matrix = sp.eye(len(rows))
        for field in rows:
            f, i = self.fields[field], place[field]
            if isinstance(f.rule, LinearRule):
                for term in f.rule.terms:
                    if term.vector.field in place:
                        matrix[i, place[term.vector.field]] -= term.coefficient * DELAYED ** self.lag(
                            field, term.vector
                        )
            for m in self.saddle.memories:
                if m.target == field and m.on in place:
                    matrix[i, place[m.on]] -= m.coefficient * self.response[m.a, m.noise]
        return site_responses(matrix.tolist())

    def _answers(self, field: Field) -> tuple[Parts, Parts]:
        """A field of one site as a combination of the noises of random matrices and of what is drawn."""
        if field not in self.fields:
            return {}, {field: sp.S.One}
        rows, inverse = self.rows[field.sector], self.inverse[field.sector]
        noises: Parts = {}
        drawn: Parts = {}
        for column, driven in enumerate(rows):
            response = inverse[rows.index(field), column]
            if response == 0:
                continue
            if isinstance(self.fields[driven].rule, DisorderRule):
                noises[driven] = response
            for source, scale in self.drives[driven].items():
                drawn[source] = drawn.get(source, sp.S.Zero) + response * scale
        # a memory may act on what is drawn itself
        for column, driven in enumerate(rows):
            response = inverse[rows.index(field), column]
            for m in self.saddle.memories:
                if m.target == driven and m.on not in self.fields and response != 0:
                    added = response * m.coefficient * self.response[m.a, m.noise]
                    drawn[m.on] = drawn.get(m.on, sp.S.Zero) + added
        return noises, drawn

    # -- order parameters

    def responding(self) -> tuple[tuple[OrderSymbol, ...], tuple[sp.Expr, ...]]:
        """Each response of the memory terms is the average of one site's answer to its noise."""
        symbols, equations = [], []
        for (a, noise), symbol in self.response.items():
            answer = self._answers(a)[0].get(noise, sp.S.Zero)
            symbols.append(OrderSymbol(symbol, a, noise))
            equations.append(symbol - averaged(answer))
        return tuple(symbols), tuple(equations)

    def observed(self) -> tuple[tuple[tuple[str, sp.Expr], ...], dict[Mean, EngineSymbol]]:
        """The observables as formulas of means at rest."""
        means: dict[Mean, EngineSymbol] = {}
        found = []
        for name, value in self.system.model.observe:
            resting = value.xreplace({v: self._resting(v) for v in value.atoms(FieldAt) if v.time is not None})
            for mean in sorted(resting.atoms(Mean), key=sp.default_sort_key):
                if not is_moment(mean) and quadratic_pairs(mean) is None:
                    raise DeclarationError(
                        f"the observable {name} holds {mean}, which is not quadratic in fields; leave it out"
                    )
                means.setdefault(mean, EngineSymbol(f"mean_{len(means)}"))
            formula = resting.xreplace(means)
            known = () if self.labelled else (Total, DataAt)
            if formula.has(FieldAt, Mix, *known, self.clock, self.clock.steps):
                raise DeclarationError(
                    f"the observable {name} holds data or the time itself, so that it has no limit of many steps; "
                    "leave it out"
                )
            found.append((name, formula))
        if not found:
            raise DeclarationError("nothing is observed, so that there is no limit to give; add observe={...}")
        return tuple(found), means

    def _resting(self, value: FieldAt) -> FieldAt:
        """A value at any of the current times, as one at the clock: at rest they are the same."""
        found: FieldAt = value.field(self.clock)
        return found

    def correlating(
        self, means: Iterable[Mean]
    ) -> tuple[tuple[OrderSymbol, ...], tuple[sp.Expr, ...], tuple[sp.Expr, ...]]:
        """Correlations that noises have, each with its equation, and the means in terms of them."""
        values = []
        for mean in means:
            if is_moment(mean):
                values.append(averaged(mean.expression))
                continue
            pairs = quadratic_pairs(mean) or ()
            values.append(sp.Add(*(self._product(scale, a.field, b.field) for scale, a, b in pairs)))
        symbols, equations = [], []
        done: set[tuple[Field, Field]] = set()
        while len(done) < len(self.correlation):
            for (a, b), symbol in [*self.correlation.items()]:
                if (a, b) not in done:
                    done.add((a, b))
                    symbols.append(OrderSymbol(symbol, a, b))
                    equations.append(symbol - self._product(sp.S.One, a, b))
        return tuple(symbols), tuple(equations), tuple(values)

    def _product(self, scale: sp.Expr, a: Field, b: Field) -> sp.Expr:
        """The mean of scale * a * b over sites; scale may hold traits."""
        own, other = self._answers(a), self._answers(b)
        total = sp.S.Zero
        for c in self.saddle.covariances:
            if c.left in own[0] and c.right in other[0]:
                pair = sorted((c.a, c.b), key=lambda f: f.name)
                seen = averaged(scale * own[0][c.left] * other[0][c.right])
                total += c.coefficient * seen * self._name(self.correlation, "C", *pair)
        for source, factor in own[1].items():
            if source in other[1]:
                total += averaged(scale * source.scale**2 * factor * other[1][source])
        return total


class _WithLabels(_AtRest):
    """The same with labels: what a site inverts is kept as blocks, which are matrices over labels."""

    labelled = True

    def found(self, order: TimeOrder) -> LabelledLimit:
        parts = [part for f in self.fields.values() for part in self.parts(f)]
        drives = [part for f in self.fields.values() for part in self._drawn(f)]
        observables, means = self.observed()
        return LabelledLimit(
            system=self.system,
            fields=tuple(self.fields),
            sources=tuple(self.system.sources),
            parts=tuple(parts),
            drives=tuple(drives),
            memories=tuple(m for m in self.saddle.memories if m.target in self.fields),
            covariances=tuple(c for c in self.saddle.covariances if c.left in self.fields and c.right in self.fields),
            responses=tuple(self.response),
            mean_symbols=tuple((symbol, mean) for mean, symbol in means.items()),
            means=tuple(map(self._pairs, means)),
            observables=observables,
            forgotten=self.forgotten,
            assumptions=gathered(self.saddle, order, new="training comes to rest: all fields have a last value"),
        )

    def _drawn(self, f: SystemField) -> list[Part]:
        """What is drawn in the equation of a field: as `_drive`."""
        found: list[Part] = []
        if isinstance(f.rule, LinearRule):
            for t in f.rule.terms:
                value, lag = t.vector.field, self.lag(f.field, t.vector)
                if value not in self.fields:
                    found.append(Part(f.field, value, t.coefficient, f.shift, mixing=t.mixing))
                    continue
                for time in range(f.shift - lag if value.timed else 0):
                    early = self._starts(value, time, f"{value}({time}) in the equation of {f.field}")
                    if early and t.mixing is not None:
                        self.forgotten = self.forgotten or f"{value}({time}) in the equation of {f.field}"
                        continue
                    found += [
                        Part(f.field, s.vector.field, -t.coefficient * s.coefficient, time + lag + 1, 1, s.mixing)
                        for s in early
                    ]
        elif f.shift:
            self.forgotten = self.forgotten or f"the start of {f.field}"
        for time in range(len(f.starts)):
            early = self._starts(f.field, time, f"the start of {f.field}")
            found += [Part(f.field, s.vector.field, s.coefficient, time + 1, 1, s.mixing) for s in early]
        return found

    def _starts(self, field: Field, time: int, told: str) -> tuple[Term, ...]:
        """The value of a field at a first time in terms of what is drawn; nothing, and noted, where it is not."""
        starts = self.fields[field].starts
        start = starts[time] if time < len(starts) else None
        if not isinstance(start, LinearRule) or any(t.vector.field in self.fields for t in start.terms):
            self.forgotten = self.forgotten or told
            return ()
        return start.terms

    def _pairs(self, mean: Mean) -> tuple[tuple[sp.Expr, Field | None, Field | None], ...]:
        if is_moment(mean):
            return ((mean.expression, None, None),)
        return tuple((scale, a.field, b.field) for scale, a, b in quadratic_pairs(mean) or ())
