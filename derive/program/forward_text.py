"""Printer of a forward pass as a Python module: tables of fields and laws, then functions that contain the equations in
order.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from derive.language.symbols import free_name
from derive.language.traits import Trait
from derive.language.vectors import Field
from derive.program.forward import Forward, IntegratedLaw, Series
from derive.program.forward_sampled import has_jumps
from derive.program.nodes import Call, Do, Formula, Function, Let, Ref, Slot, Symbol, Tuple
from derive.program.sites import FieldSpan, Sharing, SiteChannel
from derive.program.text import PARAMETERS, ModuleText, indented, joined
from derive.program.traits import law_of, law_parts
from derive.records.method import ClosureKind
from derive.records.probe import SampledSiteValues
from derive.records.system import SystemField

CLOSURE = Symbol("x")
NODES = Symbol("nodes")
DOCS = {
    ClosureKind.EXACT: "Training level, exactly: all laws are linear, so all fields are Gaussian, in one pass.",
    ClosureKind.QUADRATURE: "Training level by quadrature: arguments of nonlinear laws are Gaussian, in one pass.",
    ClosureKind.SAMPLED: "Training level by sampling: many sites forward in time.",
}
FUNCTIONS = ("tables", "start", "step", "order", "laws", "TRAINING")
RECORDS = (
    "AlikeLabels Channel Covariance Integrand MatrixProduct Meeting Memory Recorded SitesOf SpanOf Training TraitLaw "
    "Vector"
).split()
FEWEST = 64
"""Number of quadrature nodes from which the extreme nodes represent the ends of a density."""


class ForwardText(ModuleText):
    """Prints the module of a forward pass."""

    sources = ("coefficients", "gaussian", "traits", "program")

    def __init__(self, program: Forward, runtime: str):
        super().__init__(runtime, FUNCTIONS)
        self.program = program
        for symbol in (PARAMETERS, CLOSURE, NODES, program.time):
            self.names.of(symbol)
        self.text.closure = self.names.of(CLOSURE)
        self.p, self.x, self.t = (self.names.of(symbol) for symbol in (PARAMETERS, CLOSURE, program.time))
        self.tables = [self.names.of(let.symbol) for let in program.tables if let.remark]
        sampled = program.closure is ClosureKind.SAMPLED
        self.sharing = Sharing(program.layout, program.needs) if sampled else None
        self.spans: dict[FieldSpan, str] = {}
        self.channels: dict[SiteChannel, str] = {}
        if self.sharing is not None:
            taken = {source.name for source in program.layout.system.sources}
            for channel in self.sharing.channels:
                self.channels[channel] = free_name(channel.hint, taken)
            taken = set()
            for span in self.sharing.spans:
                self.spans[span] = free_name(span.hint, taken)

    def module(self) -> str:
        program = self.program
        body = [*self._tables(), *self._phase("start", "Fields without time.", program.start)]
        if program.layout.clock is not None:
            body += self._phase("step", "All fields of one time.", program.step, self.t)
        body += [*self._order(), *self._laws(), *self._offer()]
        return self.whole(DOCS[program.closure], body, ())

    def _tables(self) -> list[str]:
        if not self.tables:
            return []
        self.called("over_time")
        doc = "Coefficients of updated weights at all times, where they have no closed form."
        lines = self.text.lines(self.program.tables)
        return self.function(f"tables({self.p})", doc, [*lines, f"return ({joined(self.tables)})"])

    def _phase(self, name: str, doc: str, statements: tuple[Let | Do, ...], *more: str) -> list[str]:
        if not statements:
            return []
        lines = self.text.lines(statements)
        unpacked = [f"({joined(self.tables)}) = {self.x}.tables"] if self.tables else []
        return self.function(f"{name}({', '.join((self.p, self.x, *more))})", doc, [*unpacked, *lines])

    def _order(self) -> list[str]:
        doc = "Order parameters before the last update."
        return self.function(f"order({self.p}, {self.x})", doc, self.values("return", self.program.order))

    def _laws(self) -> list[str]:
        """Return the nonlinear laws by name, each below a comment with its formula."""
        if not self.program.integrands:
            return []
        entries = []
        for one in self.program.integrands:
            entries += [f"# {one.law.shown}", f"{one.law.own.name!r}: {self._integrand(one)},"]
        doc = "Nonlinear laws of Gaussian arguments."
        return self.function(f"laws({self.p})", doc, ["return {", *indented(entries), "}"])

    def _integrand(self, integrand: IntegratedLaw) -> str:
        law = integrand.law
        parts = [self.text.value(integrand.functions), repr(tuple(field.name for field in law.arguments))]
        parts += [f"numbers={len(law.numbers)}"] if law.numbers else []
        parts += [f"traits={tuple(value.field.name for value in law.traits)!r}"] if law.traits else []
        parts += [f"holds={law.holds!r}"] if law.holds != (0, None) else []
        return f"{self._name('Integrand')}({', '.join(parts)})"

    def _of_laws(self) -> list[str]:
        """Return the entries on nonlinear laws in the module's record."""
        program = self.program
        if not program.integrands:
            return []
        meetings = (
            f"{self._name('Meeting')}({a.own.name!r}, {b.own.name!r}{', together=True' if together else ''})"
            for a, b, together in program.meetings
        )
        carried = ((field.name, repr(tuple(law.own.name for law in laws))) for field, laws in program.two_time.carried)
        refused = ((key, repr(why)) for key, why in program.two_time.refused)
        lines = ["laws=laws,", *_tuple("meetings", meetings)]
        for name, entries in (("carried", tuple(carried)), ("refused", tuple(refused))):
            if entries:
                lines += [f"{line}," if line == "}" else line for line in self.table(f"{name}=", entries)]
        return lines

    def _offer(self) -> list[str]:
        program, layout = self.program, self.program.layout
        clock = layout.clock
        times = "1" if clock is None else self.text.formula(clock.points)
        lines = [
            f"closure={program.closure.value!r},",
            f"times=lambda {self.p}: {times},",
            f"before=lambda {self.p}: {self.text.formula(layout.order_times)},",
            *_tuple("vectors", map(self._vector, self._vectors())),
            *_tuple("products", (self._product(f) for f in layout.fields if f.product is not None)),
            f"observables=({joined(map(self._recorded, program.observables))}),",
            f"step={'step' if clock is not None else None},",
            "order=order,",
        ]
        lines += ["start=start,"] if program.start else []
        lines += ["tables=tables,"] if self.tables else []
        lines += _tuple("traits", self._traits()) if self._traits() else []
        lines += [f"means=({joined(map(self._recorded, program.means))}),"] if program.means else []
        lines += [f"kept={program.kept!r},"] if program.kept else []
        lines += [f"overlaps={program.overlaps!r},"] if program.overlaps and self.sharing is None else []
        lines += self._alike()
        lines += self._of_sampling() if self.sharing is not None else []
        lines += self._of_laws()
        return [f"{self._name('TRAINING')} = {self._name('Training')}(", *indented(lines), ")"]

    def _alike(self) -> list[str]:
        """Return the permutation symmetry of labels."""
        labels = self.program.labels
        if labels is None or not labels.group.components:
            return []
        axes = tuple(str(axis.size) for axis in labels.axes)
        return [f"alike={self._name('AlikeLabels')}({axes!r}, components={labels.group.components}),"]

    def _of_sampling(self) -> list[str]:
        """Return the tables that only sampled passes read."""
        program, layout, sharing = self.program, self.program.layout, self.sharing
        assert sharing is not None
        groups = []
        for members in sharing.groups:
            drawn = (s.name for s in layout.system.sources if s in members and s.role == "normal")
            groups.append((*(self.channels[c] for c in sharing.noises(members)), *drawn))
        responses = {(x.a, j) for x in program.needs.letters if x.kind == "R" for j in sharing.channel_of(x.b).products}
        lags = tuple((a.name, j.name, lag) for a, j, lag in layout.time_order.lags if (a, j) in responses)
        return [
            f"spans=({joined(map(self._span, sharing.spans))}),",
            *_tuple("channels", map(self._channel, sharing.channels)),
            f"groups={tuple(groups)!r},",
            f"lags={lags!r},",
            "links={",
            *indented(f"{target!r}: {sources!r}," for target, sources in layout.site_links.items()),
            "},",
            *(_tuple("sites", map(self._sites, program.needs.sites)) if program.needs.sites else []),
            f"paired={sharing.has_mean_of_product!r},",
            *([f"responses={program.responses!r},"] if program.responses != "stein" else []),
            *(["jumps=True,"] if has_jumps(layout) else []),
        ]

    def _span(self, span: FieldSpan) -> str:
        fresh = ", fresh=True" if span.fresh else ""
        return f"{self._name('SpanOf')}({self.spans[span]!r}, {tuple(f.name for f in span.fields)!r}{fresh})"

    def _channel(self, channel: SiteChannel) -> str:
        assert self.sharing is not None
        span = self.spans[self.sharing.channel_span(channel)]
        names = (tuple(f.name for f in some) for some in (channel.arguments, channel.products))
        fresh = ", fresh=True" if channel.fresh else ""
        return f"{self._name('Channel')}({self.channels[channel]!r}, {span!r}, {', '.join(map(repr, names))}{fresh})"

    def _sites(self, sites: SampledSiteValues) -> str:
        bound = {value: Symbol(value.field.name) for value in sites.values}
        slots = {value: Slot(Ref(symbol), symbol.hint) for value, symbol in bound.items()}
        formulas = tuple(Formula(entry.function.xreplace(slots), None) for entry in sites.entries)
        entries = self.text.value(Function(tuple(bound.values()), Tuple(formulas)))
        times = (None if v.time is None else Formula(v.time, None) for v in sites.values)
        parts = [
            repr(sites.sector.name),
            repr(tuple(value.field.name for value in sites.values)),
            f"lambda {self.p}: {self.text.value(Tuple(tuple(times)))}",
            entries,
            str(len(sites.entries)),
        ]
        parts += [f"reach={sites.reach.name!r}"] if not sites.bounded else []
        parts += ["known=True"] if sites.known else []
        if sites.of_traits:
            laws = Tuple(tuple(law_of(value.field, (FEWEST,)) for value in sites.values))
            parts.append(f"laws=lambda {self.p}: {self.text.value(laws)}")
        return f"{self._name('SitesOf')}({', '.join(parts)})"

    def _name(self, word: str) -> str:
        if word in RECORDS:
            self.called(word)
        return word

    def _vectors(self) -> list[tuple[Field, str]]:
        layout = self.program.layout
        roles = [(f.field, "field" if f.product is None else "product") for f in layout.fields]
        return [*roles, *((source, source.role) for source in layout.system.sources), *self.program.vectors]

    def _vector(self, one: tuple[Field, str]) -> str:
        field, role = one
        parts = [repr(field.name), repr(field.sector.name)]
        axes = tuple(str(axis.size) for axis in field.axes)
        parts += [f"axes={axes!r}"] if axes else []
        parts += ["timed=False"] if not field.timed else []
        parts += [f"role={role!r}"] if role != "field" else []
        parts += ["past=True"] if field in self.program.remembered and field.timed else []
        lags = self.program.lags.get(field, 0)
        parts += [f"lags={lags}"] if lags else []
        parts += ["idle=True"] if field in self.program.idle else []
        parts += [f"scale=lambda {self.p}: {self.text.formula(field.scale)}"] if field.scale != 1 else []
        parts += self._sampled_vector(field)
        return f"{self._name('Vector')}({', '.join(parts)})"

    def _sampled_vector(self, field: Field) -> list[str]:
        """Return the entries of a vector that only sampled passes read."""
        sharing = self.sharing
        if sharing is None:
            return []
        base, factor = sharing.root(field)
        spans = tuple(self.spans[span] for span in sharing.coordinates(field))
        home = next((s for s in sharing.spans if base in s.fields and not s.fresh), None)
        entries = [f"spans={spans!r}"] if spans else []
        entries += [f"home={self.spans[home]!r}"] if home is not None else []
        entries += [f"multiple_of={base.name!r}"] if factor is not None else []
        group = sharing.groups.index(sharing.group_of(field))
        return [*entries, *([f"group={group}"] if group else [])]

    def _product(self, f: SystemField) -> str:
        layout, rule = self.program.layout, f.product
        assert rule is not None, "the requested value is a product"
        memories = (
            f"{self._name('Memory')}({m.a.name!r}, {m.noise.name!r}, {m.on.name!r}{', fresh=True' if m.fresh else ''}"
            f"{f', lag={m.lag}' if m.lag else ''})"
            for m in layout.memories(f.field)
        )
        covariances = (
            f"{self._name('Covariance')}({c.right.name!r}, {c.a.name!r}, {c.b.name!r}"
            f"{', fresh=True' if c.fresh else ''})"
            for c in layout.covariances(f.field)
        )
        matrix = f"{rule.matrix}{'T' if rule.transposed else ''}"
        names = f"{f.field.name!r}, {matrix!r}, {rule.argument.name!r}"
        if self.sharing is None:
            return f"{self._name('MatrixProduct')}({names}, ({joined(memories)}), ({joined(covariances)}))"
        strength = f"strength=lambda {self.p}: {self.text.formula(self.sharing.strength(f.field))}"
        return f"{self._name('MatrixProduct')}({names}, ({joined(memories)}), {strength})"

    def _traits(self) -> list[str]:
        standing = (value for sites in self.program.needs.sites for value in sites.values)
        return [
            f"{self._name('TraitLaw')}({trait.name!r}, {trait.sector.name!r}, "
            f"lambda {self.p}, {self.names.of(NODES)}: {self.text.value(law_of(trait, (Ref(NODES),)))}, "
            f"discrete={trait.discrete!r}{self._draw(trait)})"
            for trait in self.program.layout.system.traits_beside(standing)
        ]

    def _draw(self, trait: Trait) -> str:
        if self.sharing is None:
            return ""
        arguments = [Symbol("normals"), Symbol("number")]
        draws = Call("of_values" if trait.discrete else "of_density", (*arguments, *law_parts(trait)), None)
        return f", draw=lambda {self.p}, {', '.join(map(self.names.of, arguments))}: {self.text.value(draws)}"

    def _recorded(self, series: Series) -> str:
        axes = tuple(
            self.text.formula(size).removeprefix(f"{self.p}.") for size in series.axes if sp.sympify(size) != 1
        )
        parts = [repr(series.key), *([f"axes={axes!r}"] if axes else []), *([] if series.timed else ["timed=False"])]
        return f"{self._name('Recorded')}({', '.join(parts)})"


def _tuple(name: str, entries: Iterable[str]) -> list[str]:
    return [f"{name}=(", *indented(f"{entry}," for entry in entries), "),"]
