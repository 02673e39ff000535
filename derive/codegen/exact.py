"""The forward pass for linear laws: rows of coefficients over the Gaussian noises and sources of a site."""

from __future__ import annotations

import re

import sympy as sp

from derive.algebra.words import Letter
from derive.codegen.layout import indices
from derive.codegen.pieces import indented, multiple_of, plus, product_of, scaled_by
from derive.codegen.printer import jax_code
from derive.codegen.writer import Writer
from derive.errors import DeclarationError
from derive.language.symbols import Sector
from derive.language.vectors import PAST, Field, FieldAt, Mean
from derive.records.system import DisorderRule, ElementwiseRule, LinearRule, SystemField, Term, quadratic_pairs

SMALL = 256
"""So many times are passed in one stage: their arrays fit into a cache."""


class Exact(Writer):
    done: tuple[Field, ...] = ()
    """Fields with time that are known at the current time."""
    kept: tuple[Field, ...] = ()
    """Those whose earlier values are needed."""
    intro = "Training level, exactly: all laws are linear, so all fields are Gaussian and one forward pass is enough."

    begin = "begin"

    def pass_lines(self) -> list[str]:
        """Time is passed in stages, each with arrays twice as large as the last: early times are cheap."""
        if not self.timed:
            return super().pass_lines()
        static, timed = self.static_part(), self.timed_part()
        state = ", ".join(self.state())
        stage = [*self.positions(), *self.start_arrays(), *static, *self.grow_lines(), *timed]
        return [
            f"steps = {self.clock.steps}",
            "# how many times are free of overflow",
            "finite = 0",
            "before = ()",
            f"for begin, times in stages({jax_code(self.clock.points)}):",
            *indented([*stage, f"before = ({state},)"]),
            *self.results(),
        ]

    def grow_lines(self) -> list[str]:
        """What the stage before has found, put where it belongs in larger arrays."""
        lines = ["if begin:"]
        places = {}
        for sector in self.layout.sectors:
            basis = self.basis(sector)
            parts = [
                *(f"in_{f}.reshape(-1)" for f in basis if not f.timed),
                *(f"in_{f}[:begin].reshape(-1)" for f in basis if f.timed),
            ]
            if parts:
                places[sector] = f"old_{sector}"
                lines.append(f"    old_{sector} = jnp.concatenate([{', '.join(parts)}])")
        for number, name in enumerate(self.state()):
            field = next((f for f in self.kept if f.name == name), None)
            if field is None:
                old = f"old_{name.removeprefix('cov_')}"
                lines.append(f"    {name} = {name}.at[{old}[:, None], {old}].set(before[{number}])")
            elif field.sector in places:
                lines.append(f"    {name} = {name}.at[:begin, ..., {places[field.sector]}].set(before[{number}])")
        return lines

    def helpers(self) -> list[str]:
        if not self.timed:
            return super().helpers()
        return [
            *super().helpers(),
            "",
            "",
            "def stages(times):",
            '    """First and last time of each stage: the last has all times, the ones before half of the next."""',
            "    ends = [times]",
            f"    while ends[0] > {SMALL}:",
            "        ends.insert(0, (ends[0] + 1) // 2)",
            "    return tuple(zip((0, *ends[:-1]), ends))",
        ]

    def timed_positions(self, sector: Sector, timed: list[Field], offset: str) -> list[str]:
        """Each noise with all its times in one piece, so that a covariance is written as one block."""
        lines = []
        for f in timed:
            entries = self.layout.entries(f)
            position = plus(offset, multiple_of(entries, "when"))
            lines.append(f"in_{f} = ({position})[:, None] + label" if f.labelled else f"in_{f} = {position}")
            offset = plus(offset, multiple_of(entries, "times"))
        return [*lines, f"size_{sector} = {offset}"]

    def put_lines(self) -> list[str]:
        return [
            "def put(matrix, rows, columns, values):",
            '    """A symmetric matrix with the block columns x rows of values and its transpose."""',
            "    rows, columns = rows.reshape(-1), columns.reshape(-1)",
            "    values = values.reshape(columns.size, rows.size)",
            "    matrix = jax.lax.dynamic_update_slice(matrix, values, (columns[0], rows[0]))",
            "    return jax.lax.dynamic_update_slice(matrix, values.T, (rows[0], columns[0]))",
        ]

    def start_arrays(self) -> list[str]:
        lines = []
        for sector in self.layout.sectors:
            sources = self.layout.sources(sector)
            lines.append(f"cov_{sector} = jnp.zeros((size_{sector}, size_{sector}))")
            for s in sources:
                scale = jax_code(s.scale)
                lines.append(f"{s} = {'' if scale == '1' else f'({scale}) * '}unit(in_{s}, size_{sector})")
                lines.append(f"cov_{sector} = put(cov_{sector}, in_{s}, in_{s}, jnp.eye(in_{s}.size))")
        for f in self.kept:
            shape = f"times, {self.layout.labels}" if f.labelled else "times"
            lines.append(f"{f} = jnp.zeros(({shape}, size_{f.sector}))")
        return lines

    def state(self) -> list[str]:
        covariances = [f"cov_{s}" for s in self.layout.sectors if self.layout.noises(s)]
        return [*(f.name for f in self.kept), *covariances]

    def end_of_step(self, body: list[str]) -> list[str]:
        """Rows are written when the time is done, so that no array is read and changed within a step."""
        code = "\n".join(line for line in (*body, *self.results()) if not line.lstrip().startswith("#"))
        self.kept = tuple(f for f in self.done if re.search(rf"\b{f}\b", code))
        stores = [f"{f} = jax.lax.dynamic_update_index_in_dim({f}, {f}_new, here, 0)" for f in self.kept]
        return [
            "# keep this time: `here` is t, told only when all is computed, so that arrays are changed in place",
            f"here = {self.time} + (finite < 0)",
            *stores,
        ]

    def watched(self) -> list[str]:
        newest = [f"{f}_new" for f in self.done]
        return [*newest, *(f"jnp.diagonal(cov_{s})" for s in self.layout.sectors if self.layout.noises(s))]

    def now(self, field: Field) -> str:
        return f"{field}_new" if field in self.done else super().now(field)

    def row(self, value: FieldAt, prefix: str = "") -> str:
        if value.field in self.done and self.lag(value) == 0:
            return f"{value.field}_new"
        return super().row(value, prefix)

    def choose(self, target: str, start: str, condition: str) -> list[str]:
        return [f"{target} = jnp.where({condition}, {start}, {target})"]

    def store(self, field: Field, target: str) -> list[str]:
        if not field.timed:
            return [f"{field} = {target}"]
        self.done = (*self.done, field)
        return []

    def law_lines(self, f: SystemField, rule: ElementwiseRule, target: str) -> list[str]:
        raise DeclarationError(f"the law of {f.field} is not linear")

    def linear_lines(self, f: SystemField, rule: LinearRule, target: str) -> list[str]:
        if not rule.terms:
            shape = f"({self.layout.labels}, size_{f.field.sector})" if f.field.labelled else f"size_{f.field.sector}"
            return [f"{target} = jnp.zeros({shape})"]
        total = " + ".join(self.term_code(t, f.field) for t in rule.terms)
        if f.field.labelled and not any(_has_labels(t) for t in rule.terms):
            total = f"jnp.broadcast_to({total}, ({self.layout.labels}, size_{f.field.sector}))"
        return [f"{target} = {total}"]

    def term_code(self, term: Term, target: Field) -> str:
        sums = self.means(term)
        vector, c = term.vector.field, target.labelled
        if term.past is None and term.pair is None:
            row = self.row(term.vector)
            if vector.labelled and not c:
                raise DeclarationError(f"{target} has no class labels but its equation uses {vector}, which has")
            row = f"{row}[None, :]" if c and not vector.labelled else row
            return product_of(jax_code(term.coefficient, sums), row)
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
            kernel, scale, at_now = self.now(m.a), scaled_by(m.coefficient), f"in_{m.noise}[{self.time}]"
            if not m.fresh:
                s = "s" if m.on.timed else ""
                lines.append(
                    f'{target} += {scale}jnp.einsum("{c}{s}{b},{s}{b}n->{c}n", {kernel}[..., in_{m.noise}], {m.on})'
                )
            if m.fresh or m.on in self.done:
                lines.append(
                    f'{target} += {scale}jnp.einsum("{c}{b},{b}n->{c}n", {kernel}[..., {at_now}], {self.now(m.on)})'
                )
        return lines

    def covariance_lines(self, f: SystemField) -> list[str]:
        lines = []
        for c in self.covariances(f.field):
            a, b = indices(("c", c.a.labelled)), indices(("b", c.b.labelled))
            seen, scale, cov = f"{self.now(c.a)} @ cov_{c.a.sector}", scaled_by(c.coefficient), f"cov_{c.left.sector}"
            rows = f"in_{c.left}[{self.time}]" if c.left.timed else f"in_{c.left}"
            if not c.fresh:
                s = "s" if c.b.timed else ""
                values = f'jnp.einsum("{s}{b}m,{a}m->{s}{b}{a}", {c.b}, {seen})'
                lines.append(f"{cov} = put({cov}, {rows}, in_{c.right}, {scale}{values})")
            if c.fresh or c.b in self.done:
                values = f'jnp.einsum("{b}m,{a}m->{b}{a}", {self.now(c.b)}, {seen})'
                lines.append(f"{cov} = put({cov}, {rows}, in_{c.right}[{self.time}], {scale}{values})")
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
            parts.append(product_of(jax_code(scale.xreplace({PAST: sp.Symbol("when")})), code))
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
            parts.append(product_of(jax_code(scale), code))
        return "(" + " + ".join(parts) + ")"


def _has_labels(term: Term) -> bool:
    """Whether the labels of a term are those of its target; otherwise the target has the same value for each label."""
    return term.pair[1].field.labelled if term.pair is not None else term.vector.field.labelled
