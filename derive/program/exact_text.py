"""The exact forward pass as a JAX module that reads as the model's equations in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from derive.language.vectors import Field
from derive.program.exact import Carried, ExactPass, SiteLayout
from derive.program.nodes import Let, Ref, Symbol, Value, shape_of, symbols_in
from derive.program.text import PARAMETERS, PassText, indented, joined
from derive.program.traits import law_of

WANTED = "wanted"
"""Which two-time functions are asked for."""
FUNCTIONS = ("forward_pass", "sites", "carried", "tables", "start", "step", "results", "strides", WANTED)
LOCALS = ("state", "order", "observables", "fields", "partial", "TRAINING")
"""What functions of the module call their own values, and other names of the module."""

NODES = 128
"""How many nodes are taken where their number is not given."""
DOC = "Training level, exactly: all laws are linear, so all fields are Gaussian and one pass is enough."
BY_INTEGRALS = "Training level by Gaussian integrals: what enters nonlinear laws is Gaussian, and one pass is enough."
TWO_TIME_DOC = "Two-time functions of all fields: the forward pass again, with sources in all equations."


class ExactText(PassText):
    """One module: what a site is made of, what is carried through time, one step, the results."""

    sources = ("coefficients", "exact", "two_time", "gaussian", "traits")

    def __init__(self, program: ExactPass, runtime: str):
        self.program = program
        spread = any(not trait.discrete for site in program.sites for trait, _, _ in site.traits)
        self.kind = "GaussianTraining" if program.nodes else "TraitTraining" if spread else "ExactTraining"
        self.doc = DOC if program.nodes is None else BY_INTEGRALS
        # callers give the nodes by name, so that nothing of the declaration may take it before them
        self.nodes = program.nodes or Symbol("nodes")
        first = (PARAMETERS, self.nodes, program.time, program.times, program.when)
        super().__init__(runtime, (*FUNCTIONS, *LOCALS, self.kind), program, first)
        self.times = self.names.of(program.times)
        self.extra = (self.names.of(self.nodes),) if spread or program.nodes else ()
        """What the functions of a pass take beside the parameters: nodes of integrals, or values of a density."""
        self.given = (*self.extra, *([WANTED] if program.fields else []))
        """The same, with what is asked for."""
        if self.given and program.clock:
            self.libraries = ("from functools import partial", *self.libraries)

    def module(self) -> str:
        two_time = self.program.fields != ()
        body = [
            *self._sites(),
            *self._carried(),
            *self.table_functions(),
            *self._start(),
            *self._step(),
            *self._results(),
            *self._forward(),
            *(self._offer() if two_time else self.strides(self.program.ends)),
            *([] if two_time else [f"TRAINING = {self.kind}(forward_pass, strides)"]),
        ]
        return self.whole(TWO_TIME_DOC if two_time else self.doc, body, ["TwoTimeOf" if two_time else self.kind])

    # -- parts

    def _blocks(self, site: SiteLayout) -> list[str]:
        def extent(field: Field) -> str:
            return f"({self.times if field.timed else '1'}, {self.text.formula(field.labels)})"

        def group(pairs: Iterable[tuple[Field, Symbol]]) -> str:
            return f"({joined(extent(field) for field, _ in pairs)})"

        groups = [group(noises) for _, noises in site.channels]
        groups += [f"drawn={group(site.drawn)}"] if site.drawn else []
        if site.kicks:
            asked = f"{self.called('kicked')}({WANTED}"
            kicks = [(f"{asked}, {f.name!r}, {self.times if f.timed else '1'})", f.labels) for f, _ in site.kicks]
            groups.append(f"kicks=({joined(f'({times}, {self.text.formula(labels)})' for times, labels in kicks)})")
        inside = [", ".join(f"u[{field}]" for field, _ in noises) for _, noises in site.channels]
        inside += [", ".join(str(field) for field, _ in site.drawn)] if site.drawn else []
        laws = [(self.names.of(symbol), trait) for trait, symbol, _ in site.traits]
        groups += [f"traits=({joined(name for name, _ in laws)})"] if laws else []
        return [
            f"# a site of {site.sector}: {'; '.join(inside) or 'nothing'}",
            *(f"{name} = {self.text.value(law_of(trait, (Ref(self.nodes),)))}" for name, trait in laws),
            f"{self.names.of(site.symbol)} = {self.called('site')}({', '.join(groups)})",
        ]

    def _sites(self) -> list[str]:
        lines = [line for site in self.program.sites for line in self._blocks(site)]
        doc = "The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."
        return self.function(f"sites({self._shaping()})", doc, [*lines, f"return ({self._site_names()})"])

    def _site_names(self) -> str:
        return joined(self.names.of(site.symbol) for site in self.program.sites)

    def _shaping(self) -> str:
        """What fixes the shapes of everything."""
        return ", ".join((self.p, self.times, *self.given))

    def _axes(self, c: Carried) -> str:
        site = self.names.of(c.site.symbol)
        if c.channel is not None:
            square = f"{site}.extent({c.channel}), {site}.extent({c.channel})"
            return f"({square})" if len(c.symbol.shape or ()) == 2 else f"(({site}.groups,), {square})"
        lines = c.lines(shape_of(Ref(self.program.when))[0])
        groups = f" * {site}.groups" if c.each and c.site.traits else ""
        rows = f"({self.text.formula(lines)}{groups},)"
        if c.columns is not None:
            return f"({rows}, ({self.text.formula(c.columns)},))"
        return f"({rows},)" if c.field is None else f"({rows}, {site}.parts)"

    def _carried(self) -> list[str]:
        entries = [f"{self._axes(c)},  # {self.names.of(c.symbol)}" for c in self.program.carried]
        doc = "The axes of all that is carried through time, each as the lengths of its parts."
        lines = [*self._unpack_sites(), "return (", *indented(entries), ")"]
        return self.function(f"carried({self._shaping()})", doc, lines)

    def _unpack_sites(self) -> list[str]:
        return [f"{self._site_names()} = sites({self._shaping()})"] if self.program.sites else []

    def _prelude(self, statements: Iterable[Let], values: Iterable[Value] = ()) -> list[str]:
        """What a function begins with: sites, their blocks as far as they are used, the clock's times, the state."""
        used: dict[Symbol, None] = {}
        for value in (*(s.value for s in statements), *values):
            used |= symbols_in(value)
        lines = []
        for site in self.program.sites:
            name = self.names.of(site.symbol)
            if any(b in used for _, b in site.blocks):
                names = joined(self.names.of(b) if b in used else "_" for _, b in site.blocks)
                lines.append(f"{names} = {name}")
            for number, (_, _, along) in enumerate(site.traits):
                if along in used:
                    lines.append(f"{self.names.of(along)} = {name}.along({number})")
        if lines or any(site.symbol in used for site in self.program.sites):
            lines = [*self._unpack_sites(), *lines]
        if self.program.when in used:
            lines.append(f"{self.names.of(self.program.when)} = jnp.arange({self.times})")
        return [*lines, f"{self._state()} = state"]

    def _state(self) -> str:
        return f"({joined(self.names.of(c.symbol) for c in self.program.carried)})"

    def _moved(self, name: str, doc: str, statements: tuple[Let, ...], *arguments: str) -> list[str]:
        """A function that changes the state."""
        lines = [*self._prelude(statements), *self.text.lines(statements), f"return {self._state()}"]
        given = ", ".join((self.p, self.times, *self.given, *self.tables, *arguments, "state"))
        return self.function(f"{name}({given})", doc, lines)

    def _start(self) -> list[str]:
        return self._moved("start", "Fields without time.", self.program.start) if self.program.start else []

    def _step(self) -> list[str]:
        if self.program.clock is None:
            return []
        return self._moved("step", "All fields of one time.", self.program.step, self.time)

    def _results(self) -> list[str]:
        program = self.program
        tables: dict[str, Any] = {"order": program.order, "observables": program.observables}
        found = "order, observables"
        doc = "Order parameters before the last update, observables at all times, times before anything overflowed."
        if program.fields:
            tables, found = {"fields": program.fields}, f"{self.called('two_time')}({WANTED}, fields)"
            doc = "The two-time functions asked for, and the number of times before anything overflowed."
        values = [value for entries in tables.values() for _, value, *_ in entries]
        statements = self.text.lines(program.results)
        lines = [
            f"{self.times} = {self.points}",
            *self._prelude(program.results, (*values, *self._checked())),
            *statements,
            *(line for name, entries in tables.items() for line in self.values(f"{name} =", entries)),
            f"return {found}, {self._finite()}",
        ]
        return self.function(f"results({', '.join((self.p, *self.given, 'state'))})", doc, lines)

    def _checked(self) -> list[Value]:
        """What the number of times before anything overflowed reads besides the state."""
        covariances = [c for c in self.program.carried if c.channel is not None and self.program.clock is not None]
        return [Ref(c.site.symbol) for c in covariances]

    def _finite(self) -> str:
        """The number of times before anything overflowed."""
        if self.program.clock is None:
            return "1"
        carried = [(c, self.names.of(c.symbol)) for c in self.program.carried]
        pasts = joined(name for c, name in carried if c.field is not None and c.field.timed)
        found = [(f"{self.names.of(c.site.symbol)}.channels", c.channel, name) for c, name in carried]
        variances = joined(f"({blocks}[{n}], {name})" for blocks, n, name in found if n is not None)
        return f"{self.called('finite_times')}({self.times}, ({pasts}), ({variances}))"

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
        given = ", ".join((self.p, *self.given))
        if self.program.clock is None:
            shapes = ", ".join((self.p, "1", *self.given))
            state = f"{self.called('empty')}(carried({shapes}))"
            state = f"start({shapes}, {state})" if self.program.start else state
        else:
            carried = f"partial(carried, {', '.join(f'{n}={n}' for n in self.given)})" if self.given else "carried"
            moving = [self.p, self.points, carried, "step", "start" if self.program.start else "None", *self.given]
            moving += [f"*tables({self.p})"] if self.tables else []
            state = f"{self.called('forward')}({', '.join(moving)})"
        defaults = ", ".join((self.p, *(f"{name}={NODES}" for name in self.extra)))
        signature = f"forward_pass({given if self.program.fields else defaults})"
        return self.function(signature, "\n    ".join(doc) + "\n    ", [f"return results({given}, {state})"])

    def _offer(self) -> list[str]:
        entries = [f"{key!r}: {why!r}," for key, why in self.program.refused]
        return ["TWO_TIME = TwoTimeOf(", *indented(["forward_pass,", "{", *indented(entries), "},"]), ")"]
