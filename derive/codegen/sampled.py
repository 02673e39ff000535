"""The forward pass for nonlinear laws: many sites side by side.

The past of the sites is kept as coordinates in a few orthonormal directions, so memory does not grow with the square
of the number of times. The noise that replaces a random matrix has one standard normal a direction, and what a field
answers to it is the mean derivative of the field by those normals: read off the correlation of the field with the
normals (Stein's lemma), or followed site by site (pathwise). The first needs no derivatives of the sites, which are by
far the largest part of the work, and holds where a law jumps; for equal work its variance is the smaller one.
"""

from __future__ import annotations

import sympy as sp

from derive.algebra.words import Letter
from derive.codegen.groups import Channel, Groups, Span
from derive.codegen.layout import Layout, indices
from derive.codegen.pieces import product_of, recurrence_lines, scaled_by, sum_of
from derive.codegen.printer import jax_code
from derive.codegen.sampled_helpers import helper_lines
from derive.codegen.writer import Writer
from derive.errors import DeclarationError
from derive.language.data import DataAt
from derive.language.symbols import Sector
from derive.language.vectors import PAST, Each, Field, FieldAt, Mean, Total, labels_of, values as values_of
from derive.records.system import DisorderRule, ElementwiseRule, LinearRule, SystemField, Term

JUMPS = (sp.Heaviside, sp.sign, sp.Piecewise, sp.DiracDelta, sp.floor, sp.ceiling)
"""Functions whose derivative, where it exists, does not tell how they change."""


def has_jumps(layout: Layout) -> bool:
    """Whether some law jumps, so that its mean derivative is not the mean of its derivatives."""
    rules = [rule for f in layout.fields for rule in (f.rule, *f.starts)]
    return any(rule.law.has(*JUMPS) for rule in rules if isinstance(rule, ElementwiseRule))


class Sampled(Writer):
    sampled = True

    def __init__(self, layout: Layout, letters: tuple[Letter, ...], signature: str, responses: str = ""):
        super().__init__(layout, letters, signature)
        self.sharing = Groups(layout, letters)
        self.method = responses or "stein"
        if self.method == "pathwise" and has_jumps(layout):
            raise DeclarationError(
                "responses cannot be found pathwise where a law jumps: its derivative does not tell how it changes; "
                "leave responses out, or write responses='stein'"
            )
        self.pathwise = self.method == "pathwise"
        how = (
            "automatic differentiation of each law" if self.pathwise else "Stein's lemma: correlations with the noises"
        )
        self.intro = f"Training level by sampling: many sites forward in time, responses by {how}."
        self.tables: dict[str, Mean] = {}

    # -- what a module has besides the pass

    def arguments(self) -> str:
        return ", ".join(filter(None, (self.signature, *self.data_names(), "normals, rank=None, tolerance=1e-12")))

    def docstring(self) -> str:
        return (
            "What order parameters are made of (see order_parameters), observables at all times, the number of times\n"
            "    before anything overflowed, and a report on the directions that are remembered.\n\n"
            "    Whole-number arguments fix shapes: pass them as Python integers, static under jit.\n"
            "\n    normals: as `shapes` says, with the sites in front. rank: most directions to remember of each"
            "\n    span of fields, all if None. tolerance: share of its variance below which a new direction is left"
            "\n    out.\n    "
        )

    def helpers(self) -> list[str]:
        return helper_lines(self.pathwise)

    def put_lines(self) -> list[str]:
        return []

    def normal_shapes(self) -> list[str]:
        entries = []
        for channel in self.sharing.channels:
            size = self._room(self.sharing.span_of(channel.arguments[0]))
            entries.append(f'"{channel.name}": ({f"times, {size}" if channel.fresh else f"{size},"})')
        for source in self._normals():
            shape = [*(["times"] if source.timed else []), *([str(source.labels)] if source.labelled else [])]
            entries.append(f'"{source}": ({", ".join(shape)}{"," if len(shape) == 1 else ""})')
        return [*self.extent(), "return {" + ", ".join(entries) + "}"]

    def footprint_lines(self) -> list[str]:
        """Numbers that are kept for each site: values, and with them their derivatives by the noises."""
        parts: dict[str, list[str]] = {}
        for span in self.sharing.spans:
            parts.setdefault(self.sharing.group_of(span.fields[0]), []).append(f"size_{span.name}")
        for f in self.layout.fields:
            parts.setdefault(self.sharing.group_of(f.field), []).append(self.layout.entries(f.field))
        each = [
            f"({sum_of(counts)})" + (f" * (1 + slots_{group})" if self.pathwise else "")
            for group, counts in parts.items()
        ]
        sizes = [line for line in self.positions() if line.startswith(("size_", "slots_"))]
        return [*self.extent(), *sizes, f"return {' + '.join(each) or '1'}"]

    def group_lines(self) -> list[str]:
        """Which normals belong to the same sites: they may be made orthogonal together."""
        found = []
        for name, members in self.sharing.groups.items():
            names = [c.name for c in self.sharing.noises(name)] + [str(s) for s in self._normals() if s in members]
            if names:
                found.append(f"({', '.join(map(repr, names))},)")
        return [f"GROUPS = ({', '.join(found)},)" if found else "GROUPS = ()"]

    def _normals(self) -> list[Field]:
        return [s for s in self.layout.system.sources if s.role == "normal"]

    # -- sizes

    def _entries(self, span: Span) -> str:
        """How many entries a span can have in all."""
        counts = []
        for f in span.fields:
            counts.append(self._count(f, span))
        return sum_of(counts)

    def _count(self, field: Field, span: Span) -> str:
        """How many entries a field has in its span: labels, at all times unless the span starts anew at each."""
        labels = self.layout.entries(field)
        if not field.timed or span.fresh:
            return labels
        return "times" if labels == "1" else f"times * {labels}"

    def _room(self, span: Span) -> str:
        return self._entries(span) if span.fresh else f"room({self._entries(span)}, rank)"

    def positions(self) -> list[str]:
        lines = ["when = jnp.arange(times)  # noqa: F841"] if self.clock is not None else []
        for span in self.sharing.spans:
            names = ", ".join(map(str, span.fields))
            lines.append(f"size_{span.name} = {self._room(span)}  # directions of {names}")
        for group in self.sharing.groups:
            offset = "0"
            for channel in self.sharing.noises(group):
                size = f"size_{self.sharing.span_of(channel.arguments[0]).name}"
                start = "" if offset == "0" else f"{offset} + "
                lines.append(f"in_{channel.name} = {start}jnp.arange({size})")
                offset = sum_of([offset, size])
            if self.pathwise:
                lines.append(f"slots_{group} = {offset}  # noises that sites of this kind answer to")
        for r in self.layout.system.recurrences:
            lines += recurrence_lines(r, self.time)
        return lines

    def timed_positions(self, sector: Sector, timed: list[Field], offset: str) -> list[str]:
        return []

    def _slots(self, field: Field) -> str:
        return f"slots_{self.sharing.group_of(field)}"

    # -- arrays at the start

    def start_arrays(self) -> list[str]:
        first = next((c.name for c in self.sharing.channels), None) or next(iter(map(str, self._normals())), None)
        lines = [f'sites = normals["{first}"].shape[0]' if first else "sites = 1", "lost = 0.0"]
        for s in self.layout.system.sources:
            scale = "" if s.scale == 1 else f"({jax_code(s.scale)}) * "
            if s.role == "constant":
                lines.append(f"{s} = jnp.ones({self._shape(s)})")
            elif s.timed:
                lines.append(f'{s} = {scale}jnp.moveaxis(normals["{s}"], 1, 0)')
            else:
                lines.append(f'{s} = {scale}normals["{s}"]')
            if not s.timed:
                lines += self._remember(s)
        for span in self.sharing.spans:
            if not span.fresh:
                lines = [*self._empty(span), *lines]
        return [lines[i] for i in sorted(range(len(lines)), key=lambda i: not lines[i].startswith("sites"))]

    def _empty(self, span: Span) -> list[str]:
        size = f"size_{span.name}"
        lines = [f"span_{span.name} = jnp.zeros((sites, {size}))"]
        if self.pathwise:
            lines.append(f"d_span_{span.name} = jnp.zeros((sites, {size}, {self._slots(span.fields[0])}))")
        return [*lines, f"used_{span.name} = 0"]

    def _shape(self, field: Field) -> str:
        return f"(sites, {field.labels})" if field.labelled else "(sites,)"

    def _late(self) -> dict[Field, int]:
        """Fields that are used at earlier times, and how much earlier."""
        found: dict[Field, int] = {}
        nodes = [f.rule.expression(self.clock) for f in self.timed] + [
            rule.expression(self.clock) for f in self.timed for rule in f.starts
        ]
        nodes += [value for _, value in self.layout.system.model.observe]
        for node in nodes:
            for v in node.atoms(FieldAt):
                if v.time is not None and v.field.role != "normal" and not v.time.has(PAST):
                    found[v.field] = max(found.get(v.field, 0), self.lag(v))
                elif v.time is not None and v.time.has(PAST) and v.time != PAST:
                    found[v.field] = max(found.get(v.field, 0), int(PAST - v.time))
        return {f: lag for f, lag in sorted(found.items(), key=lambda x: str(x[0])) if lag}

    def loop_arrays(self) -> list[str]:
        """What the loop over times starts from."""
        lines = []
        for field, lag in self._late().items():
            for k in range(1, lag + 1):
                lines.append(f"{field}_late{k} = jnp.zeros({self._shape(field)})")
                if self.pathwise:
                    lines.append(f"d_{field}_late{k} = jnp.zeros((*{self._shape(field)}, {self._slots(field)}))")
        for field in self._kept():
            if field.timed:
                size = f"size_{self.sharing.span_of(field).name}"
                shape = f"times, {field.labels}, {size}" if field.labelled else f"times, {size}"
                lines.append(f"row_{field} = jnp.zeros(({shape}))")
        for a, channel in self._answers():
            if a.timed:
                size = f"size_{self.sharing.span_of(channel.arguments[0]).name}"
                shape = f"times, {a.labels}, {size}" if a.labelled else f"times, {size}"
                lines.append(f"answer_{a}_{channel.name} = jnp.zeros(({shape}))")
        for name, average in self._mean_tables().items():
            labels = labels_of(average)
            lines.append(f"{name} = jnp.zeros((times, {labels}))" if labels else f"{name} = jnp.zeros(times)")
        for name, value in self._watched_values():
            labels = labels_of(value.expression) if isinstance(value, Each) else None
            lines.append(f"seen_{name} = jnp.zeros((times, {labels}))" if labels else f"seen_{name} = jnp.zeros(times)")
        return lines

    def _kept(self) -> list[Field]:
        """Fields whose coordinates are kept for all times: not those under matrices drawn afresh only."""
        return [f for f in self.sharing.remembered if not self.sharing.span_of(f).fresh]

    def _answers(self) -> list[tuple[Field, Channel]]:
        """Which fields answer to the noise of which random matrix in the order parameters asked for."""
        pairs = {(x.a, self.sharing.channel_of(x.b)) for x in self.letters if x.kind == "R"}
        return sorted(pairs, key=lambda p: (str(p[0]), p[1].name))

    def _mean_tables(self) -> dict[str, Mean]:
        """Means at earlier times, as functions of the present one."""
        found: dict[Mean, None] = {}
        for f in self.timed:
            for rule in (f.rule, *f.starts):
                if isinstance(rule, LinearRule):
                    for term in rule.terms:
                        for m in sorted(term.coefficient.atoms(Mean), key=sp.default_sort_key):
                            if m.has(PAST):
                                found.setdefault(m.xreplace({PAST: self.clock}) if self.clock is not None else m)
        return {f"table_mean{i}": m for i, m in enumerate(found)}

    def _watched_values(self) -> list[tuple[str, sp.Expr]]:
        """Observables that change in time."""
        return [
            (name, value)
            for name, value in self.layout.system.model.observe
            if any(v.time is not None for v in value.atoms(FieldAt))
        ]

    def timed_part(self) -> list[str]:
        found = super().timed_part()
        return [*self.loop_arrays(), *found] if found else found

    def state(self) -> list[str]:
        names = []
        for field, lag in self._late().items():
            for k in range(1, lag + 1):
                names += [f"{field}_late{k}", *([f"d_{field}_late{k}"] if self.pathwise else [])]
        for span in self.sharing.spans:
            if not span.fresh:
                names += [f"span_{span.name}", *([f"d_span_{span.name}"] if self.pathwise else [])]
                names.append(f"used_{span.name}")
        names += [f"row_{f}" for f in self._kept() if f.timed]
        names += [f"answer_{a}_{c.name}" for a, c in self._answers() if a.timed]
        names += [*self._mean_tables(), *(f"seen_{name}" for name, _ in self._watched_values()), "lost"]
        return names

    def watched(self) -> list[str]:
        return [f"{f.field}_now" for f in self.timed]

    def begin_of_step(self) -> list[str]:
        """Spans of matrices that are drawn afresh start empty at each time; what is drawn is there from the start."""
        empty = [line for span in self.sharing.spans if span.fresh for line in self._empty(span)]
        drawn = [s for s in self.layout.system.sources if s.timed]
        return [*empty, *(line for s in drawn for line in self._remember(s))]

    def end_of_step(self, body: list[str]) -> list[str]:
        lines = []
        for name, average in self._mean_tables().items():
            lines.append(f"{name} = {name}.at[{self.time}].set({self.mean_code(average, False)})")
        for name, value in self._watched_values():
            lines.append(f"seen_{name} = seen_{name}.at[{self.time}].set({self.observed_value(value)})")
        for field, lag in self._late().items():
            for k in range(lag, 0, -1):
                source = f"{field}_now" if k == 1 else f"{field}_late{k - 1}"
                lines.append(f"{field}_late{k} = {source}")
                if self.pathwise:
                    lines.append(f"d_{field}_late{k} = d_{source}{self._kept_slots(field) if k == 1 else ''}")
        if self.pathwise:
            for span in self.sharing.spans:
                mask = self._kept_slots(span.fields[0])
                if mask and not span.fresh:
                    lines.append(f"d_span_{span.name} = d_span_{span.name}{mask}")
        return lines

    def _kept_slots(self, field: Field) -> str:
        """A factor that forgets the answers to matrices drawn afresh at this time."""
        group = self.sharing.group_of(field)
        fresh = [c for c in self.sharing.noises(group) if c.fresh]
        if not fresh:
            return ""
        gone = " | ".join(f"jnp.isin(jnp.arange(slots_{group}), in_{c.name})" for c in fresh)
        return f" * ~({gone})"

    # -- one field

    def now(self, field: Field) -> str:
        if field.role in ("normal", "constant"):
            return f"{field}[{self.time}]" if field.timed else f"{field}"
        return f"{field}_now" if field.timed else f"{field}"

    def row(self, value: FieldAt, prefix: str = "") -> str:
        field = value.field
        if field.role in ("normal", "constant"):
            if prefix:
                return f"jnp.zeros((*{self._shape(field)}, {{slots}}))"
            lag = 0 if value.time is None else self.lag(value)
            if lag:
                return f"jnp.where({self.time} >= {lag}, {field}[{self.time} - {lag}], 0.0)"
            return self.now(field)
        if value.time is None or self.lag(value) == 0:
            return f"{prefix}{self.now(field)}"
        return f"{prefix}{field}_late{self.lag(value)}"

    def slope(self, value: FieldAt, target: Field) -> str:
        return self.row(value, "d_").replace("{slots}", self._slots(target))

    def choose(self, target: str, start: str, condition: str) -> list[str]:
        lines = [f"{target} = jnp.where({condition}, {start}, {target})"]
        if self.pathwise:
            lines.append(f"d_{target} = jnp.where({condition}, d_{start}, d_{target})")
        return lines

    def store(self, field: Field, target: str) -> list[str]:
        name = self.now(field)
        lines = [f"{name} = {target}", *([f"d_{name} = d_{target}"] if self.pathwise else [])]
        return [*lines, *self._remember(field)]

    def _remember(self, field: Field) -> list[str]:
        """Coordinates of a new value in the span of its past, and its answers to the noises so far."""
        lines: list[str] = []
        sharing = self.sharing
        spans = [s for s in sharing.spans if field in s.fields]
        if field not in sharing.remembered and not spans:
            return lines
        base, factor = sharing.root(field)
        span = sharing.span_of(field)
        row = f"row_{field}"
        value = self.now(field)
        if factor is not None:
            scale = jax_code(factor, self.named(factor))
            by_label = labels_of(factor) is not None
            source = f"row_{base}_now" if field.timed else f"row_{base}"
            lines.append(f"{row}_now = {product_of(f'({scale})[:, None]' if by_label else scale, source)}")
        else:
            inner = value if field.labelled else f"{value}[:, None]"
            d_value = (
                f"d_{value}"
                if field.role not in ("normal", "constant")
                else (f"jnp.zeros((*{self._shape(field)}, {self._slots(field)}))")
            )
            d_inner = d_value if field.labelled else f"({d_value})[:, None]"
            s = span.name
            slopes = (f"d_span_{s}, ", f"{d_inner}, ") if self.pathwise else ("", "")
            lines += [
                f"row_new, span_{s}, {slopes[0]}used_{s}, share = extend("
                f"span_{s}, {slopes[0]}used_{s}, {inner}, {slopes[1]}tolerance)",
                f"{row}_now, lost = {'row_new' if field.labelled else 'row_new[0]'}, jnp.maximum(lost, share)",
            ]
        if span.fresh:
            return lines
        if field.timed:
            if field in self._kept():
                lines.append(f"{row} = {row}.at[{self.time}].set({row}_now)")
        else:
            lines.append(f"{row} = {row}_now")
        for a, channel in self._answers():
            if a == field:
                name = f"answer_{a}_{channel.name}"
                answer = self.answer(a, channel)
                lines.append(f"{name} = {name}.at[{self.time}].set({answer})" if a.timed else f"{name} = {answer}")
        return lines

    def answer(self, a: Field, channel: Channel) -> str:
        """The mean derivative of a field by each normal of a random matrix: labels by directions."""
        if self.pathwise:
            return f"d_{self.now(a)}[..., in_{channel.name}].mean(axis=0)"
        span = self.sharing.span_of(channel.arguments[0])
        live = f"(jnp.arange(size_{span.name}) < used_{span.name})"
        return f"{self.now(a)}.T @ {self._normal(channel)} / sites * {live}"

    def _normal(self, channel: Channel) -> str:
        return f'normals["{channel.name}"][:, {self.time}]' if channel.fresh else f'normals["{channel.name}"]'

    def named(self, expression: sp.Expr) -> dict:
        """Code for the means and data inside a coefficient."""
        found: dict = {}

        def walk(node: sp.Basic) -> None:
            if isinstance(node, Mean):
                found[node] = self.mean_code(node, node.has(PAST))
            elif isinstance(node, DataAt):
                found[node] = self.data_code(node)
            elif isinstance(node, Total):
                inner = jax_code(node.expression, self.named(node.expression))
                found[node] = f"jnp.sum({inner})"
            else:
                for arg in node.args:
                    walk(arg)

        walk(expression)
        return found

    def data_code(self, node: DataAt) -> str:
        if node.time is None:
            return f"{node.data}"
        if not node.time.has(self.clock):
            return f"{node.data}[{node.time}]"
        lag = sp.expand(self.clock - node.time)
        if lag == 0:
            return f"{node.data}[{self.time}]"
        return f"jnp.where({self.time} >= {lag}, {node.data}[{self.time} - {lag}], 0.0)"

    def means(self, term: Term) -> dict:
        return self.named(term.coefficient)

    def law_lines(self, f: SystemField, rule: ElementwiseRule, target: str) -> list[str]:
        arguments = values_of(rule.law)
        numbers = self.named(rule.law)
        names = {v: f"{v.field}_{self.lag(v)}" if self.lag(v) else f"{v.field}_now" for v in arguments}
        scalars = {node: f"mean_{i}" for i, node in enumerate(numbers)}
        body = jax_code(rule.law, {**names, **scalars})
        lines = [f"mean_{i} = {code}" for i, code in enumerate(numbers.values())]
        values, slopes = [], []
        for v in arguments:
            thin = f.field.labelled and not v.field.labelled
            value, slope = self.row(v), self.slope(v, f.field)
            shape = self._shape(f.field)
            values.append(f"jnp.broadcast_to({value}[:, None], {shape})" if thin else value)
            slots = f"(*{shape}, {self._slots(f.field)})"
            slopes.append(f"jnp.broadcast_to({slope}[:, None, :], {slots})" if thin else slope)
        if not arguments:
            lines.append(f"{target} = ({body}) * jnp.ones({self._shape(f.field)})")
            return [*lines, *self._no_slope(f.field, target)]
        law = f"lambda {', '.join(names.values())}: {body}"
        if not self.pathwise:
            return [*lines, f"{target} = ({law})({', '.join(values)})"]
        return [
            *lines,
            f"{target}, d_{target} = law_and_slope({law}, ({', '.join(values)},), ({', '.join(slopes)},))",
        ]

    def _no_slope(self, field: Field, target: str) -> list[str]:
        return [f"d_{target} = jnp.zeros((*{target}.shape, {self._slots(field)}))"] if self.pathwise else []

    def linear_lines(self, f: SystemField, rule: LinearRule, target: str) -> list[str]:
        lines: list[str] = []
        parts = []
        for number, term in enumerate(rule.terms):
            if term.past is None:
                parts.append(self.term_code(term, f.field))
            else:
                kernel, letters = self.kernel_code(term, f.field)
                lines.append(f"kernel_{number} = {kernel}")
                span = f"span_{self.sharing.span_of(term.vector.field).name}"
                parts.append(
                    (
                        f'jnp.einsum("{letters}k,mk->m{letters}", kernel_{number}, {span})',
                        f'jnp.einsum("{letters}k,mkn->m{letters}n", kernel_{number}, d_{span})',
                    )
                )
        lines.append(f"{target} = " + " + ".join([p for p, _ in parts] or [f"jnp.zeros({self._shape(f.field)})"]))
        if self.pathwise:
            none = f"jnp.zeros((*{self._shape(f.field)}, {self._slots(f.field)}))"
            lines.append(f"d_{target} = " + " + ".join([d for _, d in parts] or [none]))
        return lines

    def term_code(self, term: Term, target: Field) -> tuple[str, str]:
        """A term at the present time, or a few steps earlier, and its derivatives."""
        sums = self.means(term)
        vector, c = term.vector.field, target.labelled
        if term.pair is None:
            by_label = labels_of(term.coefficient) is not None
            scale = jax_code(term.coefficient, sums)
            value, slope = self.row(term.vector), self.slope(term.vector, target)
            if term.mixing is not None:
                table = term.mixing.table
                if table is None:
                    value, slope = f"{value}.sum(axis=1)", f"{slope}.sum(axis=1)"
                else:
                    code = self.data_code(table)
                    letters = "dc" if term.mixing.transposed else "cd"
                    value = f'jnp.einsum("{letters},md->mc", {code}, {value})'
                    slope = f'jnp.einsum("{letters},mdn->mcn", {code}, {slope})'
            elif c and not vector.labelled:
                value, slope = f"{value}[:, None]", f"{slope}[:, None, :]"
            return product_of(scale, value), product_of(f"({scale})[:, None]" if by_label else scale, slope)
        left, right = term.pair
        b, r = indices(("b", vector.labelled)), indices(("c", right.field.labelled))
        overlaps = f'jnp.einsum("m{b},m{r}->{b}{r}", {self.row(left)}, {self.row(right)}) / sites'
        scale = f"({jax_code(term.coefficient, sums)}) * "
        return (
            f'{scale}jnp.einsum("{b}{r},m{b}->m{r}", {overlaps}, {self.row(term.vector)})',
            f'{scale}jnp.einsum("{b}{r},m{b}n->m{r}n", {overlaps}, {self.slope(term.vector, target)})',
        )

    def kernel_code(self, term: Term, target: Field) -> tuple[str, str]:
        """A sum over earlier times as coordinates in the span of its vector, and the letter of its labels."""
        weight = self.weight(term, self.means(term))
        vector = term.vector.field
        if term.pair is None:
            c = indices(("c", target.labelled and vector.labelled))
            return f'jnp.einsum("s,s{c}k->{c}k", {weight}, row_{vector})', c
        left, right = term.pair
        b, c = indices(("b", vector.labelled)), indices(("c", right.field.labelled))
        there = f"span_{self.sharing.span_of(left.field).name}"
        overlaps = f'jnp.einsum("s{b}k,k{c}->s{b}{c}", row_{left.field}, {there}.T @ {self.row(right)} / sites)'
        return f'jnp.einsum("s,s{b}{c},s{b}k->{c}k", {weight}, {overlaps}, row_{vector})', c

    def disorder_lines(self, f: SystemField, rule: DisorderRule, target: str) -> list[str]:
        field = f.field
        channel = self.sharing.channel_of(field)
        c = indices(("c", field.labelled))
        strength = scaled_by(self.sharing.strength(field))
        row = f"row_{rule.argument}_now" if rule.argument.timed else f"row_{rule.argument}"
        lines = [
            f"row = {strength}{row}",
            f'{target} = jnp.einsum("{c}k,mk->m{c}", row, {self._normal(channel)})',
        ]
        if self.pathwise:
            slots = self._slots(field)
            inside = f"jnp.zeros((*row.shape[:-1], {slots})).at[..., in_{channel.name}].set(row)"
            lines.append(f"d_{target} = jnp.broadcast_to({inside}, (*{self._shape(field)}, {slots}))")
        done = set()
        for m in self.memories(field):
            other = self.sharing.channel_of(m.noise)
            if (m.a, other) in done:
                continue
            done.add((m.a, other))
            span = f"span_{self.sharing.span_of(other.arguments[0]).name}"
            scale = scaled_by(sp.powsimp(sp.simplify(m.coefficient / self.sharing.strength(m.noise))))
            lines += [
                f"answer = {scale}{self.answer(m.a, other)}",
                f'{target} += jnp.einsum("{c}k,mk->m{c}", answer, {span})',
            ]
            if self.pathwise:
                lines.append(f'd_{target} += jnp.einsum("{c}k,mkn->m{c}n", answer, d_{span})')
        return lines

    def covariance_lines(self, f: SystemField) -> list[str]:
        return []

    def mean_code(self, average: Mean, past: bool) -> str:
        if past:
            moved = average.xreplace({PAST: self.clock})
            return next(name for name, known in self._mean_tables().items() if known == moved)
        vectors = sorted(average.atoms(FieldAt), key=sp.default_sort_key)
        wide = labels_of(average) is not None
        names = {v: self.row(v) + ("[:, None]" if wide and not v.field.labelled else "") for v in vectors}
        data = {node: self.data_code(node) for node in average.atoms(DataAt)}
        return f"({jax_code(average.expression, {**names, **data})}).mean(axis=0)"

    # -- results

    def letter_code(self, letter: Letter) -> str:
        """A correlation; of a response the correlations with all noises of its random matrix."""
        if letter.kind == "C":
            spans = [self.sharing.span_of(x).name for x in (letter.a, letter.b)]
            if spans[0] == spans[1]:
                return f"{self._rows(letter.a)} @ {self._rows(letter.b)}.T"
            middle = f"(span_{spans[0]}.T @ span_{spans[1]} / sites)"
            return f"{self._rows(letter.a)} @ {middle} @ {self._rows(letter.b)}.T"
        raise AssertionError("responses are made of what order_parameters is given")

    def _rows(self, field: Field) -> str:
        size = f"size_{self.sharing.span_of(field).name}"
        return f"row_{field}{'[:steps]' if field.timed else ''}.reshape(-1, {size})"

    def moment_lines(self) -> list[str]:
        """What is averaged over sites, before responses are made of it."""
        lines = [f'"{x.name}": {self.letter_code(x)},' for x in self.letters if x.kind == "C"]
        channels = list(dict.fromkeys(c for _, c in self._answers()))
        before = []
        for channel in channels:
            parts = []
            for product in channel.products:
                argument = self.sharing.rules[product].rule.argument
                parts.append(f"{scaled_by(self.sharing.strength(product))}{self._rows(argument)}")
            rows = parts[0] if len(parts) == 1 else f"jnp.concatenate([{', '.join(parts)}])"
            before.append(f"noise_{channel.name} = {rows}  # each noise in terms of the normals")
            lines.append(f'"G_{channel.name}": noise_{channel.name} @ noise_{channel.name}.T,')
        for a, channel in self._answers():
            size = f"size_{self.sharing.span_of(channel.arguments[0]).name}"
            answers = f"answer_{a}_{channel.name}{'[:steps]' if a.timed else ''}.reshape(-1, {size})"
            lines.append(f'"K_{a}_{channel.name}": {answers} @ noise_{channel.name}.T,')
        return [*before, "moments = {", *(f"    {line}" for line in lines), "}"]

    def order_lines(self) -> list[str]:
        """A function that makes order parameters of moments, which may be means over several passes."""
        lines = self.extent()
        entries = []
        last = "times" if self.clock is not None else "1"
        for a, channel in self._answers():
            name = f"R_{a}_{channel.name}"
            reach = {(x, j): lag for x, j, lag in self.layout.time_order.lags}
            times, lags = [], []
            for product in channel.products:
                count = self._steps_of(product)
                times.append(self._times_of(product, "-1"))
                lag = reach.get((a, product), 0 if not product.timed else None)
                lags.append(f"jnp.full({count}, {lag if lag is not None else 'times + 1'})")
            joined = [x[0] if len(x) == 1 else f"jnp.concatenate([{', '.join(x)}])" for x in (times, lags)]
            lines.append(
                f'{name} = response_matrix(moments["K_{a}_{channel.name}"], moments["G_{channel.name}"], '
                f"{self._times_of(a, last)}, {joined[0]}, {joined[1]}, tolerance)"
            )
        for letter in self.letters:
            if letter.kind == "C":
                entries.append(f'"{letter.name}": moments["{letter.name}"],')
                continue
            channel = self.sharing.channel_of(letter.b)
            before = channel.products[: channel.products.index(letter.b)]
            begin = sum_of(self._steps_of(p) for p in before)
            count = self._steps_of(letter.b)
            cut = f": {count}" if begin == "0" else f"{begin} : {begin} + {count}"
            whole = f"R_{letter.a}_{channel.name}"
            entries.append(f'"{letter.name}": {whole if len(channel.products) == 1 else f"{whole}[:, {cut}]"},')
        return [*lines, "return {", *(f"    {line}" for line in entries), "}"]

    def _steps_of(self, field: Field) -> str:
        """How many entries a field has before the last update."""
        labels = self.layout.entries(field)
        if not field.timed:
            return labels
        return "steps" if labels == "1" else f"steps * {labels}"

    def _times_of(self, field: Field, otherwise: str) -> str:
        """The time of each entry of a field."""
        labels = self.layout.entries(field)
        if not field.timed:
            return f"jnp.full({labels}, {otherwise})"
        return "jnp.arange(steps)" if labels == "1" else f"jnp.repeat(jnp.arange(steps), {labels})"

    def observed_value(self, value: sp.Expr) -> str:
        """An observable at the present time; outside total(...) and each(...) labels are averaged over."""
        if isinstance(value, Each):
            return jax_code(value.expression, self.named(value.expression))
        named: dict = {}

        def walk(node: sp.Basic) -> None:
            if isinstance(node, Total):
                named.update(self.named(node))
            elif isinstance(node, Mean):
                named[node] = f"jnp.mean({self.mean_code(node, False)})" if labels_of(node) else self.mean_code(node, 0)
            else:
                for arg in node.args:
                    walk(arg)

        walk(value)
        return jax_code(value, named)

    def results(self) -> list[str]:
        lines = ["", *self.moment_lines(), "observables = {"]
        timed = dict(self._watched_values())
        for name, value in self.layout.system.model.observe:
            once = f"({self.observed_value(value)})[None]" if isinstance(value, Each) else self.observed_value(value)
            lines.append(f'    "{name}": {f"seen_{name}" if name in timed else once},')
        finite = "finite" if self.timed else "1"
        used = ", ".join(f'"{s.name}": used_{s.name}' for s in self.sharing.spans if not s.fresh)
        return [
            *lines,
            "}",
            f'return moments, observables, {finite}, {{"lost": lost, "directions": {{{used}}}}}',
        ]

    def observed(self, average: Mean) -> str:
        raise AssertionError("observables of a sampled pass are followed in time")
