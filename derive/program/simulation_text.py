"""Printer of a finite-size simulation as a module, in NumPy or JAX."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from derive.language.model import Model
from derive.language.vectors import Field
from derive.program.nodes import Formula, Let, MatMul, Symbol, Value
from derive.program.simulation import (
    RNG,
    XP,
    AtTime,
    Columns,
    DrawnTrait,
    FiniteSizeProgram,
    Held,
    KeptField,
    OverTimes,
    Rule,
    finite_size_program,
)
from derive.program.text import PARAMETERS, ModuleText, NumpyText, PlainNumpyText, indented, joined
from derive.program.traits import law_parts

SHELL = (
    "FiniteSize SIMULATION sectors numbers simulate probed size progress watch special np sc held working spectrum "
    "observables spikes kicks follow halves"
).split()
"""Names that the module uses besides runtime functions."""


SAMPLE = """One sample with base size `size`: probed matrices by label, for each the directions of its spikes
    on either side and, of K^T K, its half K (as functions), and observables, one row per time.

    `watch(time, probed)` is called at every time; probed() returns the current matrices. kicks: by field, the impulses
    added to the right side of its equation, times x sites x labels. `follow(fields)` is called at the end with all
    fields by name: vectors, or series of them. `xp` and `special` are the modules of arrays and special functions:
    numpy and scipy.special, or jax.numpy and jax.scipy.special. A vector has two axes, sites x labels.
    """


def write_simulation(model: Model, order_of_fields: Iterable[Field], runtime: str) -> str:
    """Return the text of simulation.py. `runtime` is the package that it imports from."""
    return SimulationText(finite_size_program(model, order_of_fields), runtime, bool(model.alignments)).module()


class _Code(NumpyText):
    """Printer for the nodes that occur only in simulations."""

    value = NumpyText.value.extended()
    inside = NumpyText.inside.extended()

    @value.on(AtTime)
    def _at_time(self, value: AtTime) -> str:
        return f"{self.names.of(value.owner)}[{self.value(value.time)}]"

    @value.on(OverTimes)
    def _over_times(self, value: OverTimes) -> str:
        each = f"{self.value(value.value)} for {self.names.of(value.index)} in {self.span(value.low, value.high)}"
        return f"sum(({each}), {self.zeros(value.shape or ())})"

    inside.on(AtTime, OverTimes)(NumpyText._plain)

    @value.on(MatMul)
    def _matmul(self, value: MatMul) -> str:
        return f"{self.summand(value.left)} @ {self.inside(value.right)}"

    @value.on(DrawnTrait)
    def _drawn(self, value: DrawnTrait) -> str:
        trait = value.trait
        plain = PlainNumpyText(self.names)
        law = map(plain.value, law_parts(trait))
        function = "trait_of_values" if trait.discrete else "trait_of_density"
        self.called.setdefault(function)
        arguments = [self.names.of(RNG), self.names.of(XP), self.formula(trait.sector), *law]
        return f"{function}({', '.join(arguments)})"

    def span(self, low: Formula | None, high: Formula) -> str:
        first = "" if low is None or low.expression == 0 else f"{self.value(low)}, "
        return f"range({first}{self.value(high)})"

    def axes(self, shape: Iterable[sp.Expr]) -> str:
        return ", ".join(self.formula(sp.sympify(axis)) for axis in shape)

    def zeros(self, shape: Iterable[sp.Expr]) -> str:
        return f"{self.names.of(XP)}.zeros(({self.axes(shape)}))"


class SimulationText(ModuleText):
    """Prints one module: sector sizes, a memory estimate, and one sample.

    Args:
        aligned: whether eigenvectors are compared with directions, including singular vectors of K for K^T K.
    """

    sources = ("finite_size",)
    libraries = ("import numpy as np", "import scipy.special as sc")
    special = "import scipy.special as sc"

    def __init__(self, program: FiniteSizeProgram, runtime: str, aligned: bool = False):
        super().__init__(runtime, SHELL)
        self.halved = aligned and any(found.half is not None for _, found in program.spikes)
        self.program, names = program, self.names
        for symbol in (PARAMETERS, XP, RNG, *(s for _, s in program.sectors), program.time):
            names.of(symbol)
        self.p, self.time = names.of(PARAMETERS), names.of(program.time)
        self.text: _Code = _Code(names, program.bound)
        self.plain = PlainNumpyText(names, program.bound)

    def module(self) -> str:
        doc = "The declaration at finite size: draw the disorder, run the equations, return the probed matrices."
        body = [*self._sectors(), *self._numbers(), *self._simulate()]
        return self.whole(doc, [*body, "SIMULATION = FiniteSize(simulate, sectors, numbers)"], ["FiniteSize"])

    # -- sizes

    def _sectors(self) -> list[str]:
        entries = []
        for sector, _ in self.program.sectors:
            ratio = Formula(sector.ratio)
            size = "size" if sector.ratio == 1 else f"{self.plain.inside(ratio)} * size"
            entries.append(f"{sector.name!r}: {size}")
        doc = "Sizes of the sectors as their ratios have them; a sample has whole ones."
        return self.function(f"sectors({self.p}, size)", doc, [f"return {{{', '.join(entries)}}}"])

    def _sizes(self) -> list[str]:
        if not self.program.sectors:
            return []
        names = joined(self.names.of(symbol) for _, symbol in self.program.sectors)
        return ["# sizes of the sectors", f"{names} = {self.called('whole_sizes')}(sectors({self.p}, size))"]

    def _numbers(self) -> list[str]:
        numbers = self.program.numbers

        def largest(factor: int, counts: tuple[sp.Expr, ...]) -> str:
            codes = [self.plain.formula(count) for count in counts]
            if not codes:
                return "0"
            return f"{factor} * max({', '.join(codes)})" if len(codes) > 1 else f"{factor} * {codes[0]}"

        body = [
            *self._sizes(),
            "# random matrices; weights, with those of the time before and a working copy; fields at all times",
            f"held = {self.plain.formula(numbers.held)}",
            "# intermediate products of the probed matrices",
            f"working = {largest(4, numbers.working)}",
            "# later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes",
            f"spectrum = {largest(6, numbers.spectrum)}",
            "return held + max(working, spectrum)",
        ]
        return self.function(
            f"numbers({self.p}, size)", "Approximate number of numbers that a sample holds at once.", body
        )

    # -- one sample

    def _simulate(self) -> list[str]:
        rng, xp = self.names.of(RNG), self.names.of(XP)
        drawn = self._with_impulses(self.program.drawn)
        static = self._with_impulses(self.program.static)
        body = [
            *self._sizes(),
            "kicks = kicks or {}",
            *(["# random matrices and vectors", *drawn] if drawn else []),
            *(["# fields without time", *static] if static else []),
            *self._probed(),
            *self._training(),
            *self._results(),
        ]
        options = f"progress=lambda fraction: None, watch=None, kicks=None, follow=None, {xp}=np, special=sc"
        doc = SAMPLE.replace("watch(time, probed)", "watch(time, probed, halves)") if self.halved else SAMPLE
        return self.function(f"simulate({self.p}, size, {rng}, {options})", doc, body)

    def _with_impulses(self, statements: tuple[Let, ...]) -> list[str]:
        """Return statements with the impulses added to the equations of vectors."""
        vectors = {symbol for _, symbol in self.program.fields}
        lines = []
        for let in statements:
            lines += self.text.lines((let,))
            if let.symbol in vectors:
                name = self.names.of(let.symbol)
                lines.append(f"{name} = {self.called('kicked')}({name}, kicks.get({self._field_name(let.symbol)!r}))")
        return lines

    def _field_name(self, symbol: Symbol) -> str:
        return next(name for name, made in self.program.fields if made is symbol)

    def _probed(self) -> list[str]:
        entries = [f"{label!r}: {self.text.value(matrix)}," for label, matrix in self.program.probed]
        lines = ["", "def probed():", *indented(["return {", *indented(entries), "}"]), ""]
        if self.halved:
            halves = [(label, found.half) for label, found in self.program.spikes if found.half is not None]
            entries = [f"{label!r}: {self.text.value(half)}," for label, half in halves]
            lines += ["def halves():", *indented(["return {", *indented(entries), "}"]), ""]
        return lines

    def _training(self) -> list[str]:
        program = self.program
        if program.clock is None:
            return []
        points = self.text.formula(program.clock.points)
        targets: tuple[KeptField | Held, ...] = (*program.kept, *program.held)
        lines = ["# training", *map(self._empty, targets)]
        for held in program.held:  # the earliest is only ever written
            lines += [f"{self.names.of(symbol)} = {self.text.zeros(held.shape)}" for symbol in held.before[:-1]]
        body = self._remembered()
        body += [f"{self.names.of(m.symbol)} = {self.text.value(m.draw)}" for m in program.held if m.draw is not None]
        body += [self._assigned(kept, value) for kept, value in program.sources]
        body += [line for rule in program.step for line in self._rule(rule)]
        body += self._watched()
        body += [f"progress(({self.time} + 1) / ({points}))"]
        lines += [f"for {self.time} in range({points}):", *indented(body)]
        if program.after:
            lines += [f"{self.time} = {self.text.formula(program.clock.steps)}", *self._remembered()]
            lines += [line for rule in program.after for line in self._rule(rule)]
            lines += self._watched()
        return lines

    def _empty(self, target: KeptField | Held) -> str:
        name = self.names.of(target.symbol)
        if isinstance(target, Held):
            return f"{name} = {self.text.zeros(target.shape)}"
        kicks = f"kicks.get({self._field_name(target.symbol)!r})"
        return f"{name} = {self.called('Past')}({self.text.axes(target.shape)}, {kicks})"

    def _remembered(self) -> list[str]:
        """Return the matrices of the previous time, where they are used."""
        pairs = [
            pair for m in self.program.held for pair in reversed([*zip(m.before, (m.symbol, *m.before), strict=False)])
        ]
        if not pairs:
            return []
        return [" = ".join(", ".join(map(self.names.of, side)) for side in zip(*pairs, strict=True))]

    def _assigned(self, target: KeptField | Held, value: Value) -> str:
        name = self.names.of(target.symbol)
        code = self.text.value(value)
        return f"{name}.append({code})" if isinstance(target, KeptField) else f"{name} = {code}"

    def _rule(self, rule: Rule) -> list[str]:
        always = self._assigned(rule.target, rule.value)
        if not rule.starts:
            return [always]
        lines = []
        for number, (first, value) in enumerate(rule.starts):
            lines.append(f"{'elif' if number else 'if'} {self.time} == {first}:")
            lines += indented([self._assigned(rule.target, value)])
        return [*lines, "else:", *indented([always])]

    def _watched(self) -> list[str]:
        halves = ", halves" if self.halved else ""
        return ["if watch is not None:", f"    watch({self.time}, probed{halves})"] if self.program.probed else []

    def _results(self) -> list[str]:
        observed = []
        points = "" if self.program.clock is None else self.text.formula(self.program.clock.points)
        for name, value, timed in self.program.observables:
            code = self.text.value(value)
            times = f" for {self.time} in range({points})" if timed else ""
            observed.append(f"{name!r}: [{code}{times}],")
        spikes = []
        for label, found in self.program.spikes:
            entries = [] if found.half is None else [f"'half': lambda: {self.text.value(found.half)},"]
            for side, sector, parts in found.sides:
                codes = [self.names.of(XP), self.text.formula(sector), *map(self._columns, parts)]
                entries.append(f"{side!r}: lambda: {self.called('columns')}({', '.join(codes)}),")
            if found.between:
                inside = ", ".join(f"{name!r}: {self.text.value(matrix)}" for name, matrix in found.between)
                entries.append(f"'between': lambda: {{{inside}}},")
            spikes += [f"{label!r}: {{", *indented(entries), "},"]
        return [
            "# what is observed",
            "observables = {",
            *indented(observed),
            "}",
            "spikes = {",
            *indented(spikes),
            "}",
            "if follow is not None:",
            f"    follow({{{', '.join(f'{name!r}: {self.names.of(made)}' for name, made in self.program.fields)}}})",
            "return probed(), spikes, observables",
        ]

    def _columns(self, part: Columns) -> str:
        code = self.text.value(part.value)
        return code if part.high is None else f"({code} for {self.time} in {self.text.span(part.low, part.high)})"
