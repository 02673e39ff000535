"""The forward pass for nonlinear laws: many sites side by side, with the derivatives of their values by the noises."""

from __future__ import annotations

import sympy as sp

from derive.algebra.words import Letter
from derive.codegen.layout import indices
from derive.codegen.pieces import multiple_of, plus, product_of, scaled_by, sum_of
from derive.codegen.printer import jax_code
from derive.codegen.writer import Writer
from derive.errors import DeclarationError
from derive.language.symbols import Sector
from derive.language.vectors import PAST, Field, FieldAt, Mean, values as values_of
from derive.records.system import DisorderRule, ElementwiseRule, LinearRule, SystemField, Term


class Sampled(Writer):
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
        lines = [line for line in (*self.extent(), *self.positions()) if line.startswith(("steps", "size_"))]
        entries = [f'"noise_{s}": (size_{s},)' for s in self.layout.sectors]
        for source in (x for s in self.layout.sectors for x in self.layout.sources(s) if x.role == "normal"):
            shape = [*(["times"] if source.timed else []), *([str(self.layout.labels)] if source.labelled else [])]
            entries.append(f'"{source}": ({", ".join(shape)}{"," if shape else ""})')
        return [*lines, "return {" + ", ".join(entries) + "}"]

    def timed_positions(self, sector: Sector, timed: list[Field], offset: str) -> list[str]:
        """Time by time, so that the factor of the covariance grows at its end."""
        lines = []
        stride = sum_of(self.layout.entries(f) for f in timed)
        inner = "0"
        for f in timed:
            position = plus(plus(offset, multiple_of(stride, "when")), inner)
            lines.append(f"in_{f} = ({position})[:, None] + label" if f.labelled else f"in_{f} = {position}")
            inner = plus(inner, self.layout.entries(f))
        return [*lines, f"size_{sector} = {plus(offset, multiple_of(stride, 'times')) if timed else offset}"]

    def put_lines(self) -> list[str]:
        return [
            "def put(matrix, rows, columns, values):",
            '    """A symmetric matrix with values written at rows x columns and, transposed, at columns x rows."""',
            "    rows, columns = rows.reshape(-1), columns.reshape(-1)",
            "    values = values.reshape(rows.size, columns.size)",
            "    matrix = matrix.at[rows[:, None], columns[None, :]].set(values)",
            "    return matrix.at[columns[:, None], rows[None, :]].set(values.T)",
        ]

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
                product_of(scale, self.row(term.vector) + ("[:, None]" if thin else "")),
                product_of(scale, self.row(term.vector, "d_") + ("[:, None, :]" if thin else "")),
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
                f"response = {scaled_by(m.coefficient)}{response}",
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
            lines.append(f"{cov} = put({cov}, {rows}, {columns}, {scaled_by(c.coefficient)}{values})")
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
