"""The exact forward pass as a JAX module that reads as the model's equations in order."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from derive.language.data import Data
from derive.language.traits import VALUE, Trait
from derive.language.vectors import Field
from derive.program.exact import Carried, ExactPass, SiteLayout, lines_of
from derive.program.nodes import Let, Symbol, Value, symbols_in
from derive.program.text import IN_COEFFICIENTS, PARAMETERS, Names, Text, indented, joined

IN_EXACT = (
    "after apart at_time column_of covariance_before delayed dual earlier empty entry finite_times first forward given "
    "given_series kick lines lines_at listed mean_of_labels moment overlaps part part_before past_sum products "
    "products_by_time put root selection series site softmax softmax_by_time "
    "store store_number stored summed total total_of_labels unit units variances weighted"
).split()
IN_TRAITS = "density discrete".split()
IN_TWO_TIME = "Rows kicked two_time".split()
WANTED = "wanted"
"""Which two-time functions are asked for."""
FUNCTIONS = ("forward_pass", "sites", "carried", "tables", "start", "step", "results", "strides", WANTED)
LOCALS = ("state", "order", "observables", "fields")
"""What functions of the module call their own values."""

TWO_TIME_DOC = "Two-time functions of all fields: the forward pass again, with sources in all equations."


def law_text(trait: Trait, text: Text, nodes: Iterable[str] = (), xp: Iterable[str] = ()) -> str:
    """The call that gives the law of a trait. nodes: of a density; xp: where arrays come from, if not from JAX."""
    if trait.discrete:
        return f"discrete({', '.join([*discrete_text(trait, text), *xp])})"
    return f"density({', '.join([*density_text(trait, text), *nodes, *xp])})"


def discrete_text(trait: Trait, text: Text) -> list[str]:
    """The values of a trait and their weights."""
    if isinstance(trait.values, Data):
        return [text.formula(trait.values), "None"]
    return [f"({joined(map(text.formula, some))})" for some in (trait.values, trait.weights)]


def density_text(trait: Trait, text: Text) -> list[str]:
    """The density of a trait, as a function, and its ends."""
    inside = type(text)(text.names, {VALUE: VALUE.name})
    return [f"lambda {VALUE.name}: {inside.formula(trait.density)}", *(end_text(e, text) for e in trait.law[1:])]


def end_text(end: sp.Expr, text: Text) -> str:
    """An end of a density."""
    return {sp.oo: 'float("inf")', -sp.oo: '-float("inf")'}.get(end) or text.formula(end)


class ExactText:
    """One module: what a site is made of, what is carried through time, one step, the results."""

    plain_kind, trait_kind = "ExactTraining", "TraitTraining"
    nodes = Symbol("nodes")
    """Callers give it by name, so that it has its name before anything of the declaration can take it."""
    doc = "Training level, exactly: all laws are linear, so all fields are Gaussian and one pass is enough."
    runtime_functions: tuple[tuple[str, list[str]], ...] = (
        ("coefficients", IN_COEFFICIENTS),
        ("exact", IN_EXACT),
        ("two_time", IN_TWO_TIME),
    )

    refused: tuple[tuple[tuple[str, str, str], str], ...] = ()
    """Two-time functions that there are not, and why."""
    default = "128"
    """How many nodes are taken where their number is not given."""

    def __init__(self, program: ExactPass, runtime: str):
        self.program, self.runtime = program, runtime
        laws = [trait for site in program.sites for trait, _, _ in site.traits]
        spread = any(not trait.discrete for trait in laws)
        self.kind = self.trait_kind if spread else self.plain_kind
        known = (*(name for _, functions in self.runtime_functions for name in functions), *IN_TRAITS)
        names = Names((*known, *FUNCTIONS, *LOCALS, self.kind, "TRAINING", "jnp", "jsp"))
        self.text = Text(names)
        for symbol in (PARAMETERS, self.nodes, program.time, program.times, program.when):
            names.of(symbol)
        self.p, self.times = names.of(PARAMETERS), names.of(program.times)
        self.time = names.of(program.time)
        self.steps = "1" if program.clock is None else self.text.formula(program.clock.steps)
        self.points = "1" if program.clock is None else self.text.formula(program.clock.points)
        self.tables = [let.symbol for let in program.tables if let.remark]
        self.values = (names.of(self.nodes),) if spread else ()
        """How many values a trait with a density is taken at, if there is one."""

    def module(self) -> str:
        body = [
            *self._sites(),
            *self._carried(),
            *self._tables(),
            *self._start(),
            *self._step(),
            *self._results(),
            *self._forward(),
            *(self._offer() if self.program.fields else self._strides()),
        ]
        two_time = self.program.fields != ()
        called = {*self.text.called, "site", *(("kicked", "two_time") if two_time else ())}
        called |= {*(("finite_times", "forward") if self.program.clock else ("empty",))}
        imports = [
            f"from {self.runtime}.{module} import {', '.join(sorted(called & set(known)))}"
            for module, known in self.runtime_functions
            if called & set(known)
        ]
        imports.append(f"from {self.runtime}.interface import {'TwoTimeOf' if two_time else self.kind}")
        laws = sorted(called & set(IN_TRAITS))
        imports += [f"from {self.runtime}.traits import {', '.join(laws)}"] if laws else []
        head = [
            f'"""{TWO_TIME_DOC if two_time else self.doc}"""',
            "",
            *(["from functools import partial", ""] if self.given and self.program.clock else []),
            "import jax.numpy as jnp",
            "import jax.scipy.special as jsp",
            "",
            *imports,
            "",
            "",
        ]
        return "\n".join([*head, *body]) + "\n"

    @property
    def extra(self) -> tuple[str, ...]:
        """What the functions of a pass take beside the parameters."""
        return self.values

    @property
    def given(self) -> tuple[str, ...]:
        """The same, and what is asked for where two-time functions are."""
        return (*self.extra, *([WANTED] if self.program.fields else []))

    # -- parts

    def _function(self, signature: str, doc: str, lines: Iterable[str]) -> list[str]:
        return [f"def {signature}:", *indented([f'"""{doc}"""', *lines]), "", ""]

    def _blocks(self, site: SiteLayout) -> list[str]:
        def extent(field: Field) -> str:
            return f"({self.times if field.timed else '1'}, {self.text.formula(lines_of(field))})"

        def group(pairs: Iterable[tuple[Field, Symbol]]) -> str:
            return f"({joined(extent(field) for field, _ in pairs)})"

        groups = [group(noises) for _, noises in site.channels]
        groups += [f"drawn={group(site.drawn)}"] if site.drawn else []
        kicks = [(f, f"kicked({WANTED}, {f.name!r}, {self.times if f.timed else '1'})") for f, _ in site.kicks]
        kicks_text = joined(f"({times}, {self.text.formula(lines_of(f))})" for f, times in kicks)
        groups += [f"kicks=({kicks_text})"] if kicks else []
        inside = [", ".join(f"u[{field}]" for field, _ in noises) for _, noises in site.channels]
        inside += [", ".join(str(field) for field, _ in site.drawn)] if site.drawn else []
        remark = [
            f"# a site of {site.sector}: {'; '.join(inside)}" if inside else f"# a site of {site.sector}: nothing"
        ]
        laws = [(self.text.names.of(symbol), trait) for trait, symbol, _ in site.traits]
        groups += [f"traits=({joined(name for name, _ in laws)})"] if laws else []
        made = [f"{name} = {self._law(trait)}" for name, trait in laws]
        return [*remark, *made, f"{self.text.names.of(site.symbol)} = site({', '.join(groups)})"]

    def _law(self, trait: Trait) -> str:
        """The law of a trait as values with weights."""
        self.text.called.setdefault("discrete" if trait.discrete else "density")
        return law_text(trait, self.text, self.values)

    def _sites(self) -> list[str]:
        lines = [line for site in self.program.sites for line in self._blocks(site)]
        names = joined(self.text.names.of(site.symbol) for site in self.program.sites)
        doc = "The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."
        return self._function(f"sites({self._shaping()})", doc, [*lines, f"return ({names})"])

    def _shaping(self) -> str:
        """What fixes the shapes of everything."""
        return ", ".join((self.p, self.times, *self.given))

    def _axes(self, c: Carried) -> str:
        site = self.text.names.of(c.site.symbol)
        if c.columns is not None:
            many = sp.Symbol("times") if c.field is None or c.field.timed else sp.S.One
            bound = Text(self.text.names, {sp.Symbol("times"): self.program.times})
            lines = many if c.field is None else many * lines_of(c.field)
            groups = f" * {site}.groups" if c.each and c.site.traits else ""
            return f"(({bound.formula(lines)}{groups},), ({self.text.formula(c.columns)},))"
        if c.field is not None:
            lines = lines_of(c.field) * (sp.Symbol("times") if c.field.timed else 1)
            bound = Text(self.text.names, {sp.Symbol("times"): self.program.times})
            return f"(({bound.formula(lines)},), {site}.parts)"
        if c.channel is None:
            return f"(({self.times},),)"
        square = f"{site}.extent({c.channel}), {site}.extent({c.channel})"
        return f"({square})" if len(c.symbol.shape or ()) == 2 else f"(({site}.groups,), {square})"

    def _carried(self) -> list[str]:
        entries = [f"{self._axes(c)},  # {self.text.names.of(c.symbol)}" for c in self.program.carried]
        doc = "The axes of all that is carried through time, each as the lengths of its parts."
        return self._function(
            f"carried({self._shaping()})", doc, [*self._unpack_sites(), "return (", *indented(entries), ")"]
        )

    def _unpack_sites(self) -> list[str]:
        if not self.program.sites:
            return []
        names = joined(self.text.names.of(site.symbol) for site in self.program.sites)
        return [f"{names} = sites({self._shaping()})"]

    def _state(self) -> str:
        return f"({joined(self.text.names.of(c.symbol) for c in self.program.carried)})"

    def _prelude(self, statements: Iterable[Let], values: Iterable[Value] = ()) -> list[str]:
        """What a function begins with: sites, their blocks as far as they are used, the clock's times."""
        used: dict[Symbol, None] = {}
        for value in (*(s.value for s in statements), *values):
            used |= symbols_in(value)
        lines = []
        if any(any(s in used for s in self._of_site(site)) for site in self.program.sites):
            lines += self._unpack_sites()
        for site in self.program.sites:
            if any(b in used for _, b in site.blocks):
                names = joined(self.text.names.of(b) if b in used else "_" for _, b in site.blocks)
                lines.append(f"{names} = {self.text.names.of(site.symbol)}")
            for number, (_, _, along) in enumerate(site.traits):
                if along in used:
                    lines.append(f"{self.text.names.of(along)} = {self.text.names.of(site.symbol)}.along({number})")
        if self.program.when in used:
            lines.append(f"{self.text.names.of(self.program.when)} = jnp.arange({self.times})")
        return lines

    def _of_site(self, site: SiteLayout) -> list[Symbol]:
        """All symbols that a site gives meaning to."""
        return [site.symbol, *(block for _, block in site.blocks), *(along for _, _, along in site.traits)]

    def _with_tables(self, *arguments: str) -> str:
        tables = (self.text.names.of(s) for s in self.tables)
        return ", ".join([self.p, self.times, *self.given, *tables, *arguments])

    def _tables(self) -> list[str]:
        if not self.tables:
            return []
        self.text.called.setdefault("over_time")
        names = joined(map(self.text.names.of, self.tables))
        doc = "Coefficients of updated weights at all times, where they have no closed form."
        lines = self.text.lines(self.program.tables)
        return self._function(f"tables({self.p})", doc, [*lines, f"return ({names})"])

    def _start(self) -> list[str]:
        if not self.program.start:
            return []
        lines = [
            *self._prelude(self.program.start),
            f"{self._state()} = state",
            *self.text.lines(self.program.start),
            f"return {self._state()}",
        ]
        return self._function(f"start({self._with_tables('state')})", "Fields without time.", lines)

    def _step(self) -> list[str]:
        program = self.program
        if program.clock is None:
            return []
        lines = [
            *self._prelude(program.step),
            f"{self._state()} = state",
            *self.text.lines(program.step),
            f"return {self._state()}",
        ]
        return self._function(f"step({self._with_tables(self.time, 'state')})", "All fields of one time.", lines)

    def _results(self) -> list[str]:
        program = self.program
        if program.fields:
            return self._fields()
        values = [*(v for _, v in program.order), *(v for _, v in program.observables)]
        statements = self.text.lines(program.results)
        order = [f"{key!r}: {self.text.value(value)}," for key, value in program.order]
        observables = [f"{name!r}: {self.text.value(value)}," for name, value in program.observables]
        lines = [
            f"{self.times} = {self.points}",
            *self._prelude(program.results, values),
            f"{self._state()} = state",
            *statements,
            "order = {",
            *indented(order),
            "}",
            "observables = {",
            *indented(observables),
            "}",
            f"return order, observables, {self._finite()}",
        ]
        doc = "Order parameters before the last update, observables at all times, times before anything overflowed."
        return self._function(f"results({', '.join((self.p, *self.given, 'state'))})", doc, lines)

    def _fields(self) -> list[str]:
        """The results of a pass that is asked for two-time functions."""
        program = self.program
        statements = self.text.lines(program.results)
        fields = [f"{name!r}: {self.text.value(value)}," for name, value in program.fields]
        lines = [
            f"{self.times} = {self.points}",
            *self._prelude(program.results, [value for _, value in program.fields]),
            f"{self._state()} = state",
            *statements,
            "fields = {",
            *indented(fields),
            "}",
            f"return two_time({WANTED}, fields), {self._finite()}",
        ]
        doc = "The two-time functions asked for, and the number of times before anything overflowed."
        return self._function(f"results({', '.join((self.p, *self.given, 'state'))})", doc, lines)

    def _finite(self) -> str:
        """The number of times before anything overflowed."""
        if self.program.clock is None:
            return "1"
        pasts = joined(
            self.text.names.of(c.symbol) for c in self.program.carried if c.field is not None and c.field.timed
        )
        variances = joined(
            f"({self.text.names.of(c.site.symbol)}.channels[{c.channel}], {self.text.names.of(c.symbol)})"
            for c in self.program.carried
            if c.channel is not None
        )
        return f"finite_times({self.times}, ({pasts}), ({variances}))"

    def _forward(self) -> list[str]:
        doc = [
            "Order parameters before the last update, observables at all times, and the number of times before",
            "anything overflowed. Whole-number parameters fix shapes.",
        ]
        if self.program.fields:
            doc = [
                'Two-time functions, wanted as ("C", a, b) and ("R", a, b), each as times of a x labels of a x times',
                "of b x labels of b, and the number of times before anything overflowed.",
            ]
        start = "start" if self.program.start else "None"
        given = ", ".join((self.p, *self.given))
        shapes = [self.p, "1", *self.given]
        carried = f"partial(carried, {', '.join(f'{n}={n}' for n in self.given)})" if self.given else "carried"
        if self.program.clock is None:
            state = f"empty(carried({', '.join(shapes)}))"
            state = f"start({', '.join((self.p, '1', *self.given, state))})" if self.program.start else state
            lines = [f"return results({given}, {state})"]
        else:
            more = "".join(f", {name}" for name in self.given) + (f", *tables({self.p})" if self.tables else "")
            lines = [f"return results({given}, forward({self.p}, {self.points}, {carried}, step, {start}{more}))"]
        defaults = ", ".join((self.p, *(f"{name}={self.default}" for name in self.extra)))
        if self.program.fields:
            defaults = given
        return self._function(f"forward_pass({defaults})", "\n    ".join(doc) + "\n    ", lines)

    def _offer(self) -> list[str]:
        entries = [f"{key!r}: {why!r}," for key, why in self.refused]
        return ["TWO_TIME = TwoTimeOf(", *indented(["forward_pass,", "{", *indented(entries), "},"]), ")"]

    def _strides(self) -> list[str]:
        """How order parameters grow with time."""

        def stride(field: Field | None) -> str:
            return self.text.formula(lines_of(field)) if field is not None and field.timed else "0"

        entries = [f"{key!r}: ({', '.join(map(stride, ends))})," for key, ends in self.program.ends]
        doc = "Entries per time step along each axis of the order parameters; 0 along an axis without time."
        lines = self._function(f"strides({self.p})", doc, ["return {", *indented(entries), "}"])
        return [*lines, f"TRAINING = {self.kind}(forward_pass, strides)"]
