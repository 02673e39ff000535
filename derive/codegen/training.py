"""Writes training.py: the order parameters of the training level by one forward pass in time.

Linear laws: every field is a row of coefficients over the Gaussian noises and sources of its site, and correlations
follow from the covariance of those. Nonlinear laws: many sites are sampled side by side; each carries its values
and, for responses, the derivatives of its values by its own noises.
"""

from __future__ import annotations

import sympy as sp

from derive.algebra.words import Letter
from derive.codegen.layout import Layout, indices
from derive.codegen.printer import jax_code
from derive.errors import DeclarationError
from derive.language.symbols import Sector
from derive.language.vectors import PAST, Field, FieldAt, Mean, values as values_of
from derive.printing import text
from derive.records.saddle import Memory, TimeOrder
from derive.records.system import (
    DisorderRule,
    ElementwiseRule,
    LinearRule,
    Recurrence,
    Rule,
    SystemField,
    Term,
    quadratic_pairs,
)


def write_training(time_order: TimeOrder, letters: tuple[Letter, ...], signature: str) -> str:
    """The text of training.py, giving the matrices named by `letters` and the observables."""
    kind = _Linear if time_order.system.linear else _Sampled
    return kind(Layout.of(time_order), letters, signature).module()


class _Writer:
    """What both kinds of forward pass share: shapes, order of computation, sums over the past."""

    sampled = False
    intro = ""

    def __init__(self, layout: Layout, letters: tuple[Letter, ...], signature: str):
        self.layout = layout
        self.letters = letters
        self.signature = signature
        self.clock = layout.clock
        self.time = str(self.clock) if self.clock is not None else "t"

    # -- the module

    def module(self) -> str:
        lines = [
            '"""' + self.intro + '"""',
            "",
            "import jax",
            "import jax.numpy as jnp",
            "import jax.scipy.special as jsp  # noqa: F401",
            "",
            "",
            *self.helpers(),
            "",
            "",
        ]
        arguments = f"{self.signature}, normals" if self.sampled else self.signature
        lines += [f"def forward_pass({arguments}):", f'    """{self.docstring()}"""']
        lines += _indent(
            [*self.positions(), *self.start_arrays(), *self.static_part(), *self.timed_part(), *self.results()]
        )
        if self.sampled:
            lines += [
                "",
                "",
                f"def shapes({self.signature}):",
                '    """Entries of standard normals that each kind of random number takes, one site of each sector."""',
                *_indent(self.normal_shapes()),
            ]
        return "\n".join(lines) + "\n"

    def docstring(self) -> str:
        names = ", ".join([letter.name for letter in self.letters] or ["none"])
        return (
            f"Order parameters before the last update ({names}: times by times), observables at all times, and the\n"
            "    number of times before anything overflowed.\n\n"
            "    Whole-number arguments fix shapes: pass them as Python integers, static under jit.\n    "
        )

    # -- basis of noises and sources, time by time

    def basis(self, sector: Sector) -> tuple[Field, ...]:
        sources = () if self.sampled else self.layout.sources(sector)
        return (*self.layout.noises(sector), *sources)

    def positions(self) -> list[str]:
        """Sizes, and where each noise and source sits in the basis of its site: static first, then by time."""
        lines = []
        if self.clock is not None:
            lines += [f"steps, times = {self.clock.steps}, {jax_code(self.clock.points)}", "when = jnp.arange(times)"]
            if self.layout.labels is not None:
                lines.append(f"label = jnp.arange({self.layout.labels})")
        for sector in self.layout.sectors:
            static = [f for f in self.basis(sector) if not f.timed]
            timed = [f for f in self.basis(sector) if f.timed]
            offset = "0"
            names = ", ".join(text(f) for f in self.basis(sector))
            lines.append(
                f"# a site of {sector} is described by {names}" if names else f"# a site of {sector} has no noise"
            )
            for f in static:
                lines.append(f"in_{f} = {_plus(offset, 'label')}" if f.labelled else f"in_{f} = jnp.asarray({offset})")
                offset = _plus(offset, self.layout.entries(f))
            stride = _sum(self.layout.entries(f) for f in timed)
            inner = "0"
            for f in timed:
                position = _plus(_plus(offset, _multiple(stride, "when")), inner)
                lines.append(f"in_{f} = ({position})[:, None] + label" if f.labelled else f"in_{f} = {position}")
                inner = _plus(inner, self.layout.entries(f))
            lines.append(f"size_{sector} = {_plus(offset, _multiple(stride, 'times')) if timed else offset}")
        for r in self.layout.system.recurrences:
            lines += recurrence_lines(r, self.time)
        return lines

    def start_arrays(self) -> list[str]:
        raise TypeError(f"{type(self).__name__} must say how arrays start")

    # -- one field

    def field_lines(self, f: SystemField) -> list[str]:
        """The lines that compute one field at one time."""
        name, timed = f.field.name, f.field.timed
        left = f"{text(f.field)}({self.time})" if timed else text(f.field)
        lines = [f"# {left} = {self.shown(f)}"]
        target = f"{name}_new"
        lines += self.rule_lines(f, f.rule, target)
        for first, rule in enumerate(f.starts):
            start = f"{name}_start"
            lines += self.rule_lines(f, rule, start)
            lines += self.choose(target, start, f"{self.time} == {first}")
        lines += self.store(f.field, target)
        if isinstance(f.rule, DisorderRule):
            lines += self.covariance_lines(f)
        return lines

    def shown(self, f: SystemField) -> str:
        if not isinstance(f.rule, DisorderRule):
            return text(f.rule.expression(self.clock))
        memories = [text(m.expression()) for m in self.layout.time_order.single_site.memories(f.field)]
        return " + ".join([f"u[{text(f.field)}]", *(f"sum_s {m}" for m in memories)])

    def rule_lines(self, f: SystemField, rule: Rule, target: str) -> list[str]:
        if isinstance(rule, DisorderRule):
            return self.disorder_lines(f, rule, target)
        if isinstance(rule, ElementwiseRule):
            return self.law_lines(f, rule, target)
        return self.linear_lines(f, rule, target)

    def now(self, field: Field) -> str:
        return f"{field}[{self.time}]" if field.timed else f"{field}"

    def lag(self, value: FieldAt) -> int:
        return 0 if value.time is None else int(sp.expand(self.clock - value.time))

    def row(self, value: FieldAt, prefix: str = "") -> str:
        """The array of a field value at the current time or earlier."""
        name = f"{prefix}{value.field}"
        if value.time is None:
            return name
        lag = self.lag(value)
        return f"{name}[{self.time}]" if lag == 0 else f"earlier({name}, {self.time}, {lag})"

    def weight(self, term: Term, sums: dict[Mean, str]) -> str:
        """The coefficient of each earlier time, zero outside the sum."""
        code = past_code(term.coefficient, sums)
        mask = f"when < {jax_code(term.past)}"
        if "when" in code or sums:
            return f"jnp.where({mask}, {code}, 0.0)"
        return f"({mask})" if code == "1" else f"({code}) * ({mask})"

    def means(self, term: Term) -> dict[Mean, str]:
        return {
            m: self.mean_code(m, past=m.has(PAST))
            for m in sorted(term.coefficient.atoms(Mean), key=sp.default_sort_key)
        }

    def mean_code(self, average: Mean, past: bool) -> str:
        raise TypeError(f"{type(self).__name__} must say how means are computed")

    def memories(self, field: Field) -> tuple[Memory, ...]:
        return self.layout.time_order.single_site.memories(field)

    def covariances(self, field: Field):
        saddle = self.layout.time_order.single_site.saddle
        ranks = {f: i for i, f in enumerate(self.layout.time_order.order)}
        return [
            c
            for c in saddle.covariances
            if c.left == field and c.right.role != "spectral" and (c.right.timed or ranks[c.right] <= ranks[field])
        ]

    # -- the whole pass

    def static_part(self) -> list[str]:
        return [line for f in self.layout.fields if not f.field.timed for line in self.field_lines(f)]

    def timed_part(self) -> list[str]:
        timed = [f for f in self.layout.fields if f.field.timed]
        if not timed:
            return []
        state = self.state()
        body = [line for f in timed for line in self.field_lines(f)]
        packed = ", ".join([*state, "finite"])
        watched = " & ".join(f"jnp.all(jnp.isfinite({name}))" for name in self.watched())
        body += [f"finite = jnp.where((finite == {self.time}) & {watched}, {self.time} + 1, finite)"]
        return [
            "# how many times are free of overflow",
            "finite = 0",
            "",
            f"def step({self.time}, state):",
            *_indent([f"{packed} = state", *body, f"return {packed}"]),
            "",
            f"{packed} = jax.lax.fori_loop(0, times, step, ({packed}))",
        ]

    def watched(self) -> list[str]:
        """What shows that a step has overflowed: the newest rows, and the covariances of the noises."""
        newest = [f"{f.field}[{self.time}]" for f in self.layout.fields if f.field.timed]
        return [*newest, *(f"cov_{s}" for s in self.layout.sectors if self.layout.noises(s))]

    def state(self) -> list[str]:
        raise TypeError(f"{type(self).__name__} must say what it carries through time")

    def results(self) -> list[str]:
        lines = ["", "order = {"]
        lines += [f'    "{letter.name}": {self.letter_code(letter)},' for letter in self.letters]
        lines += ["}", "observables = {"]
        for name, value in self.layout.system.model.observe:
            sums = {m: self.observed(m) for m in sorted(value.atoms(Mean), key=sp.default_sort_key)}
            lines.append(f'    "{name}": {jax_code(value, sums)},')
        finite = "finite" if any(f.field.timed for f in self.layout.fields) else "1"
        return [*lines, "}", f"return order, observables, {finite}"]

    def letter_code(self, letter: Letter) -> str:
        raise TypeError(f"{type(self).__name__} must say how {letter.name} is computed")

    def observed(self, average: Mean) -> str:
        raise TypeError(f"{type(self).__name__} must say how {average} is observed")

    def helpers(self) -> list[str]:
        return [
            "def earlier(rows, time, lag):",
            '    """The row `lag` steps before `time`; before the start everything is zero."""',
            "    return jnp.where(time >= lag, rows[time - lag], 0.0)",
            "",
            "",
            "def delayed(rows, lag):",
            '    """All rows, moved `lag` steps later."""',
            "    return jnp.concatenate([jnp.zeros_like(rows[:lag]), rows[: rows.shape[0] - lag]])",
            "",
            "",
            "def unit(position, size):",
            '    """Unit vectors of the noise basis at the given positions."""',
            "    return (position[..., None] == jnp.arange(size)).astype(float)",
            "",
            "",
            "def put(matrix, rows, columns, values):",
            '    """A symmetric matrix with `values` written at rows x columns and, transposed, at columns x rows."""',
            "    rows, columns = rows.reshape(-1), columns.reshape(-1)",
            "    values = values.reshape(rows.size, columns.size)",
            "    matrix = matrix.at[rows[:, None], columns[None, :]].set(values)",
            "    return matrix.at[columns[:, None], rows[None, :]].set(values.T)",
        ]

    def normal_shapes(self) -> list[str]:
        return []


class _Linear(_Writer):
    intro = "Training level, exactly: all laws are linear, so all fields are Gaussian and one forward pass is enough."

    def start_arrays(self) -> list[str]:
        lines = []
        for sector in self.layout.sectors:
            sources = self.layout.sources(sector)
            lines.append(f"cov_{sector} = jnp.zeros((size_{sector}, size_{sector}))")
            for s in sources:
                scale = jax_code(s.scale)
                lines.append(f"{s} = {'' if scale == '1' else f'({scale}) * '}unit(in_{s}, size_{sector})")
                lines.append(f"cov_{sector} = put(cov_{sector}, in_{s}, in_{s}, jnp.eye(in_{s}.size))")
        for f in self.layout.fields:
            if f.field.timed:
                shape = f"times, {self.layout.labels}" if f.field.labelled else "times"
                lines.append(f"{f.field} = jnp.zeros(({shape}, size_{f.field.sector}))")
        return lines

    def state(self) -> list[str]:
        covariances = [f"cov_{s}" for s in self.layout.sectors if self.layout.noises(s)]
        return [*(f.field.name for f in self.layout.fields if f.field.timed), *covariances]

    def choose(self, target: str, start: str, condition: str) -> list[str]:
        return [f"{target} = jnp.where({condition}, {start}, {target})"]

    def store(self, field: Field, target: str) -> list[str]:
        return [f"{field} = {field}.at[{self.time}].set({target})" if field.timed else f"{field} = {target}"]

    def law_lines(self, f, rule, target):
        raise DeclarationError(f"the law of {f.field} is not linear")

    def linear_lines(self, f: SystemField, rule: LinearRule, target: str) -> list[str]:
        if not rule.terms:
            shape = f"({self.layout.labels}, size_{f.field.sector})" if f.field.labelled else f"size_{f.field.sector}"
            return [f"{target} = jnp.zeros({shape})"]
        return [f"{target} = " + " + ".join(self.term_code(t, f.field) for t in rule.terms)]

    def term_code(self, term: Term, target: Field) -> str:
        sums = self.means(term)
        vector, c = term.vector.field, target.labelled
        if term.past is None and term.pair is None:
            row = self.row(term.vector)
            if vector.labelled and not c:
                raise DeclarationError(f"{target} has no class labels but its equation uses {vector}, which has")
            row = f"{row}[None, :]" if c and not vector.labelled else row
            return _times(jax_code(term.coefficient, sums), row)
        if term.pair is None:
            s = indices(("c", c and vector.labelled))
            return f'jnp.einsum("s,s{s}n->{s}n", {self.weight(term, sums)}, {vector})'
        left, right = term.pair
        b, r = indices(("b", vector.labelled)), indices(("c", right.field.labelled))
        seen = f"{self.row(right)} @ cov_{right.field.sector}"
        if term.past is None:
            return (
                f"({jax_code(term.coefficient, sums)}) * "
                f'jnp.einsum("{b}m,{r}m,{b}n->{r}n", {self.row(left)}, {seen}, {self.row(term.vector)})'
            )
        overlaps = f'jnp.einsum("s{b}m,{r}m->s{b}{r}", {left.field}, {seen})'
        return f'jnp.einsum("s,s{b}{r},s{b}n->{r}n", {self.weight(term, sums)}, {overlaps}, {vector})'

    def disorder_lines(self, f: SystemField, rule: DisorderRule, target: str) -> list[str]:
        field = f.field
        position = f"in_{field}[{self.time}]" if field.timed else f"in_{field}"
        lines = [f"{target} = unit({position}, size_{field.sector})"]
        for m in self.memories(field):
            c, b = indices(("c", m.a.labelled)), indices(("b", m.on.labelled))
            at_now = m.fresh or not m.on.timed
            where = f"in_{m.noise}[{self.time}]" if m.fresh else f"in_{m.noise}"
            s = "" if at_now else "s"
            on = self.now(m.on) if m.fresh else f"{m.on}"
            lines.append(
                f"{target} += {_scale(m.coefficient)}"
                f'jnp.einsum("{c}{s}{b},{s}{b}n->{c}n", {self.now(m.a)}[..., {where}], {on})'
            )
        return lines

    def covariance_lines(self, f: SystemField) -> list[str]:
        lines = []
        for c in self.covariances(f.field):
            other, at_now = c.b, c.fresh or not c.b.timed
            a, b = indices(("c", c.a.labelled)), indices(("b", other.labelled))
            s = "" if at_now else "s"
            with_what = self.now(other) if c.fresh else other
            values = f'jnp.einsum("{a}m,{s}{b}m->{a}{s}{b}", {self.now(c.a)} @ cov_{c.a.sector}, {with_what})'
            rows = f"in_{c.left}[{self.time}]" if c.left.timed else f"in_{c.left}"
            columns = f"in_{c.right}[{self.time}]" if c.fresh else f"in_{c.right}"
            cov = f"cov_{c.left.sector}"
            lines.append(f"{cov} = put({cov}, {rows}, {columns}, {_scale(c.coefficient)}{values})")
        return lines

    def mean_code(self, average: Mean, past: bool) -> str:
        parts: list[str] = []
        for scale, a, b in quadratic_pairs(average):
            if a.field.labelled or b.field.labelled:
                raise DeclarationError(
                    f"{average}: coefficients made of means are not available for fields with class labels"
                )
            left, right = (f"{v.field}" if v.time is not None and v.time.has(PAST) else self.row(v) for v in (a, b))
            code = f"jnp.sum(({left} @ cov_{a.field.sector}) * {right}, axis=-1)"
            parts.append(_times(jax_code(scale.xreplace({PAST: sp.Symbol("when")})), code))
        return "(" + " + ".join(parts) + ")"

    def spike_rows(self, field: Field) -> str:
        return (
            f"{field}[:steps].reshape(-1, size_{field.sector})"
            if field.timed
            else f"{field}.reshape(-1, size_{field.sector})"
        )

    def letter_code(self, letter: Letter) -> str:
        rows = self.spike_rows(letter.a)
        if letter.kind == "C":
            return f"{rows} @ cov_{letter.a.sector} @ {self.spike_rows(letter.b)}.T"
        positions = f"in_{letter.b}[:steps]" if letter.b.timed else f"in_{letter.b}"
        return f"{rows}[:, {positions}.reshape(-1)]"

    def observed(self, average: Mean) -> str:
        parts = []
        for scale, a, b in quadratic_pairs(average):
            rows = [
                f"delayed({v.field}, {self.lag(v)})" if v.time is not None and self.lag(v) else f"{v.field}"
                for v in (a, b)
            ]
            code = f"jnp.sum(({rows[0]} @ cov_{a.field.sector}) * {rows[1]}, axis=-1)"
            if a.field.labelled or b.field.labelled:
                code += ".mean(axis=-1)"
            parts.append(_times(jax_code(scale), code))
        return "(" + " + ".join(parts) + ")"


class _Sampled(_Writer):
    sampled = True
    intro = (
        "Training level by sampling: many sites forward in time, responses by automatic differentiation of each law."
    )

    def helpers(self) -> list[str]:
        return [
            *super().helpers(),
            "",
            "",
            "def extend(factor, covariance, rows):",
            '    """The Cholesky factor of the noises so far, with the rows of new noises filled in."""',
            "    rows = rows.reshape(-1)",
            "    past = jnp.arange(factor.shape[0]) < rows[0]",
            "    cross = jnp.where(past, covariance[rows], 0.0)",
            "    lower = jax.scipy.linalg.solve_triangular(factor, cross.T, lower=True).T * past",
            "    left = covariance[rows[:, None], rows[None, :]] - lower @ lower.T",
            "    tiny = 1e-13 * (1.0 + jnp.trace(covariance[rows[:, None], rows[None, :]]))",
            "    inner = jnp.linalg.cholesky(left + tiny * jnp.eye(rows.size))",
            "    return factor.at[rows].set(lower.at[:, rows].set(inner))",
            "",
            "",
            "def law_and_slope(law, values, slopes):",
            '    """A law at the given values, and its derivatives by every noise from those of its arguments."""',
            "    value, push = jax.linearize(law, *values)",
            "    return value, jax.vmap(push, in_axes=-1, out_axes=-1)(*slopes)",
        ]

    def normal_shapes(self) -> list[str]:
        lines = [line for line in self.positions() if line.startswith(("steps", "size_"))]
        entries = [f'"noise_{s}": (size_{s},)' for s in self.layout.sectors]
        for source in (x for s in self.layout.sectors for x in self.layout.sources(s) if x.role == "normal"):
            shape = [*(["times"] if source.timed else []), *([str(self.layout.labels)] if source.labelled else [])]
            entries.append(f'"{source}": ({", ".join(shape)}{"," if shape else ""})')
        return [*lines, "return {" + ", ".join(entries) + "}"]

    def start_arrays(self) -> list[str]:
        first = next((s for s in self.layout.sectors), None)
        lines = [] if first is None else [f'sites = normals["noise_{first}"].shape[0]']
        for sector in self.layout.sectors:
            lines += [
                f"cov_{sector} = jnp.zeros((size_{sector}, size_{sector}))",
                f"factor_{sector} = jnp.eye(size_{sector})",
            ]
            for s in self.layout.sources(sector):
                scale = "" if s.scale == 1 else f"({jax_code(s.scale)}) * "
                inner = f", {self.layout.labels}" if s.labelled else ""
                if s.role == "constant":
                    lines.append(f"{s} = jnp.ones((sites{inner}))" if inner else f"{s} = jnp.ones(sites)")
                elif s.timed:
                    lines.append(f'{s} = {scale}jnp.moveaxis(normals["{s}"], 1, 0)')
                else:
                    lines.append(f'{s} = {scale}normals["{s}"]')
                lines.append(f"d_{s} = jnp.zeros((*{s}.shape, size_{sector}))")
        for f in self.layout.fields:
            if f.field.timed:
                shape = f"times, sites, {self.layout.labels}" if f.field.labelled else "times, sites"
                lines += [
                    f"{f.field} = jnp.zeros(({shape}))",
                    f"d_{f.field} = jnp.zeros(({shape}, size_{f.field.sector}))",
                ]
        return lines

    def state(self) -> list[str]:
        names = []
        for f in self.layout.fields:
            if f.field.timed:
                names += [f.field.name, f"d_{f.field}"]
        for s in self.layout.sectors:
            if self.layout.noises(s):
                names += [f"cov_{s}", f"factor_{s}"]
        return names

    def choose(self, target: str, start: str, condition: str) -> list[str]:
        return [
            f"{target} = jnp.where({condition}, {start}, {target})",
            f"d_{target} = jnp.where({condition}, d_{start}, d_{target})",
        ]

    def store(self, field: Field, target: str) -> list[str]:
        if field.timed:
            return [
                f"{field} = {field}.at[{self.time}].set({target})",
                f"d_{field} = d_{field}.at[{self.time}].set(d_{target})",
            ]
        return [f"{field}, d_{field} = {target}, d_{target}"]

    def _shape(self, field: Field) -> str:
        return f"(sites, {self.layout.labels})" if field.labelled else "(sites,)"

    def law_lines(self, f: SystemField, rule: ElementwiseRule, target: str) -> list[str]:
        arguments = values_of(rule.law)
        means = {m: self.mean_code(m, False) for m in sorted(rule.law.atoms(Mean), key=sp.default_sort_key)}
        names = {v: f"{v.field}_{self.lag(v)}" if self.lag(v) else f"{v.field}_now" for v in arguments}
        body = jax_code(rule.law, {**names, **{m: f"mean_{i}" for i, m in enumerate(means)}})
        lines = [f"mean_{i} = {code}" for i, code in enumerate(means.values())]
        broadcast = "" if not f.field.labelled else "[:, None]"
        values, slopes = [], []
        for v in arguments:
            thin = f.field.labelled and not v.field.labelled
            values.append(self.row(v) + (broadcast if thin else ""))
            slopes.append(self.row(v, "d_") + ("[:, None, :]" if thin else ""))
        if not arguments:
            return [
                *lines,
                f"{target} = ({body}) * jnp.ones({self._shape(f.field)})",
                f"d_{target} = jnp.zeros((*{target}.shape, size_{f.field.sector}))",
            ]
        if any(f.field.labelled and not v.field.labelled for v in arguments):
            shape = self._shape(f.field)
            values = [f"jnp.broadcast_to({v}, {shape})" for v in values]
            slopes = [f"jnp.broadcast_to({d}, (*{shape}, size_{f.field.sector}))" for d in slopes]
        return [
            *lines,
            f"{target}, d_{target} = law_and_slope(lambda {', '.join(names.values())}: {body}, "
            f"({', '.join(values)},), ({', '.join(slopes)},))",
        ]

    def linear_lines(self, f: SystemField, rule: LinearRule, target: str) -> list[str]:
        zero = f"jnp.zeros({self._shape(f.field)})"
        zero_slope = f"jnp.zeros((*{self._shape(f.field)}, size_{f.field.sector}))"
        parts = [self.term_code(t, f.field) for t in rule.terms]
        return [
            f"{target} = " + " + ".join([p for p, _ in parts] or [zero]),
            f"d_{target} = " + " + ".join([d for _, d in parts] or [zero_slope]),
        ]

    def term_code(self, term: Term, target: Field) -> tuple[str, str]:
        sums = self.means(term)
        vector, c = term.vector.field, target.labelled
        if term.past is None and term.pair is None:
            scale = jax_code(term.coefficient, sums)
            thin = c and not vector.labelled
            return (
                _times(scale, self.row(term.vector) + ("[:, None]" if thin else "")),
                _times(scale, self.row(term.vector, "d_") + ("[:, None, :]" if thin else "")),
            )
        if term.pair is None:
            s = indices(("c", c and vector.labelled))
            weight = self.weight(term, sums)
            return (
                f'jnp.einsum("s,sm{s}->m{s}", {weight}, {vector})',
                f'jnp.einsum("s,sm{s}n->m{s}n", {weight}, d_{vector})',
            )
        left, right = term.pair
        b, r = indices(("b", vector.labelled)), indices(("c", right.field.labelled))
        if term.past is None:
            overlaps = f'jnp.einsum("m{b},m{r}->{b}{r}", {self.row(left)}, {self.row(right)}) / sites'
            scale = f"({jax_code(term.coefficient, sums)}) * "
            return (
                f'{scale}jnp.einsum("{b}{r},m{b}->m{r}", {overlaps}, {self.row(term.vector)})',
                f'{scale}jnp.einsum("{b}{r},m{b}n->m{r}n", {overlaps}, {self.row(term.vector, "d_")})',
            )
        overlaps = f'jnp.einsum("sm{b},m{r}->s{b}{r}", {left.field}, {self.row(right)}) / sites'
        weight = self.weight(term, sums)
        return (
            f'jnp.einsum("s,s{b}{r},sm{b}->m{r}", {weight}, {overlaps}, {vector})',
            f'jnp.einsum("s,s{b}{r},sm{b}n->m{r}n", {weight}, {overlaps}, d_{vector})',
        )

    def disorder_lines(self, f: SystemField, rule: DisorderRule, target: str) -> list[str]:
        field, sector = f.field, f.field.sector
        position = f"in_{field}[{self.time}]" if field.timed else f"in_{field}"
        lines = self._covariance(f)
        lines += [
            f"factor_{sector} = extend(factor_{sector}, cov_{sector}, {position})",
            f'{target} = normals["noise_{sector}"] @ factor_{sector}[{position}].T',
            f"d_{target} = jnp.broadcast_to(unit({position}, size_{sector}), (*{self._shape(field)}, size_{sector}))",
        ]
        for m in self.memories(field):
            c, b = indices(("c", m.a.labelled)), indices(("b", m.on.labelled))
            where = f"in_{m.noise}[{self.time}]" if m.fresh else f"in_{m.noise}"
            s = "" if m.fresh or not m.on.timed else "s"
            response = f"d_{self.now(m.a)}[..., {where}].mean(axis=0)"
            on = self.now(m.on) if m.fresh else f"{m.on}"
            lines += [
                f"response = {_scale(m.coefficient)}{response}",
                f'{target} += jnp.einsum("{c}{s}{b},{s}m{b}->m{c}", response, {on})',
                f'd_{target} += jnp.einsum("{c}{s}{b},{s}m{b}n->m{c}n", response, d_{on})',
            ]
        return lines

    def covariance_lines(self, f: SystemField) -> list[str]:
        return []

    def _covariance(self, f: SystemField) -> list[str]:
        lines = []
        for c in self.covariances(f.field):
            other = c.b
            a, b = indices(("c", c.a.labelled)), indices(("b", other.labelled))
            s = "" if c.fresh or not other.timed else "s"
            with_what = self.now(other) if c.fresh else other
            values = f'jnp.einsum("m{a},{s}m{b}->{a}{s}{b}", {self.now(c.a)}, {with_what}) / sites'
            rows = f"in_{c.left}[{self.time}]" if c.left.timed else f"in_{c.left}"
            columns = f"in_{c.right}[{self.time}]" if c.fresh else f"in_{c.right}"
            cov = f"cov_{c.left.sector}"
            lines.append(f"{cov} = put({cov}, {rows}, {columns}, {_scale(c.coefficient)}{values})")
        return lines

    def mean_code(self, average: Mean, past: bool) -> str:
        names = {}
        for v in sorted(average.atoms(FieldAt), key=sp.default_sort_key):
            if v.field.labelled:
                raise DeclarationError(
                    f"{average}: coefficients made of means are not available for fields with class labels"
                )
            names[v] = f"{v.field}" if v.time is not None and v.time.has(PAST) else self.row(v)
        return f"({jax_code(average.expression.xreplace({PAST: sp.Symbol('when')}), names)}).mean(axis=-1)"

    def letter_code(self, letter: Letter) -> str:
        def rows(field: Field, prefix: str = "") -> str:
            array = f"{prefix}{field}[:steps]" if field.timed else f"{prefix}{field}[None]"
            size = f", size_{field.sector}" if prefix else ""
            return f"jnp.moveaxis({array}, 1, {-2 if prefix else -1}).reshape(-1, sites{size})"

        if letter.kind == "C":
            return f"{rows(letter.a)} @ {rows(letter.b)}.T / sites"
        positions = f"in_{letter.b}[:steps]" if letter.b.timed else f"in_{letter.b}"
        return f"{rows(letter.a, 'd_')}.mean(axis=1)[:, {positions}.reshape(-1)]"

    def observed(self, average: Mean) -> str:
        names, labelled = {}, False
        for v in sorted(average.atoms(FieldAt), key=sp.default_sort_key):
            late = v.time is not None and self.lag(v)
            names[v] = f"delayed({v.field}, {self.lag(v)})" if late else f"{v.field}"
            labelled = labelled or v.field.labelled
        return f"({jax_code(average.expression, names)}).mean(axis={'(-2, -1)' if labelled else '-1'})"


def past_code(coefficient: sp.Expr, means: dict[Mean, str]) -> str:
    """A coefficient as code over all earlier times at once; powers of a delay are not taken where it is negative."""
    marks = {m: sp.Symbol(f"_mean{i}") for i, m in enumerate(means)}
    plain = coefficient.xreplace(marks).xreplace({PAST: sp.Symbol("when", integer=True)})
    plain = plain.replace(
        lambda e: e.is_Pow and bool(e.exp.free_symbols) and not e.exp.has(*marks.values()),
        lambda e: sp.Pow(e.base, sp.Max(e.exp, 0)),
    )
    return jax_code(plain, {mark: means[m] for m, mark in marks.items()})


def recurrence_lines(r: Recurrence, time: str) -> list[str]:
    """Coefficients of updated weights for all times, by stepping their recurrence."""
    matrix = "[" + ", ".join("[" + ", ".join(jax_code(e) for e in row) + "]" for row in r.matrix) + "]"
    entry = "[" + ", ".join(jax_code(e) for e in r.entry) + "]"
    forcing = "[" + ", ".join(jax_code(e) for e in r.forcing) + "]"
    step, table = f"next_{r.names[0]}", f"table_{r.names[0]}"
    if r.initial:
        start = f"jnp.array({entry}, float)"
        following = f"jnp.array({matrix}, float) @ now + jnp.array({forcing}, float)"
    else:
        start = f"jnp.zeros(({len(r.names)}, steps + 1))"
        following = f"(jnp.array({matrix}, float) @ now).at[:, {time}].set(jnp.array({entry}, float))"
    return [
        f"# coefficients of {', '.join(r.weights)}, by their update rules",
        f"def {step}(now, {time}):",
        f"    return {following}, now",
        f"{table} = jax.lax.scan({step}, {start}, jnp.arange(steps + 1))[1]",
        *(f"{name} = {table}[:, {i}]" for i, name in enumerate(r.names)),
    ]


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]


def _plus(a: str, b: str) -> str:
    return b if a == "0" else (a if b == "0" else f"{a} + {b}")


def _multiple(count: str, name: str) -> str:
    return name if count == "1" else f"({count}) * {name}" if "+" in count else f"{count} * {name}"


def _sum(parts) -> str:
    total = "0"
    for part in parts:
        total = _plus(total, part)
    return total


def _scale(coefficient: sp.Expr) -> str:
    return "" if coefficient == 1 else f"({jax_code(coefficient)}) * "


def _times(scale: str, code: str) -> str:
    return code if scale == "1" else (f"-{code}" if scale == "-1" else f"({scale}) * {code}")
