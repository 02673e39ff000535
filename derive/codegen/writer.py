"""What both kinds of forward pass share: shapes, order of computation, sums over the past."""

from __future__ import annotations

from abc import ABC, abstractmethod

import sympy as sp

from derive.algebra.words import Letter
from derive.codegen.layout import Layout
from derive.codegen.pieces import indented, past_code, plus, recurrence_lines
from derive.codegen.printer import jax_code
from derive.language.data import Data
from derive.language.model import atoms
from derive.language.symbols import Sector
from derive.language.vectors import PAST, Field, FieldAt, Mean
from derive.printing import text
from derive.records.saddle import Memory
from derive.records.system import DisorderRule, ElementwiseRule, LinearRule, Rule, SystemField, Term


class Writer(ABC):
    """What both kinds of forward pass share: shapes, order of computation, sums over the past."""

    sampled = False
    method = "exact"
    intro = ""
    begin = "0"
    """The first time of the loop, as code."""

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
        lines += [f"def forward_pass({self.arguments()}):", f'    """{self.docstring()}"""']
        lines += indented(self.pass_lines())
        lines += [
            "",
            "",
            f"def strides({self.signature}):",
            '    """Entries a time step along each axis of the order parameters; 0 along an axis without time."""',
            *indented(self.stride_lines()),
        ]
        if self.sampled:
            lines += [
                "",
                "",
                f"def shapes({', '.join(filter(None, (self.signature, 'rank=None')))}):",
                '    """Entries of standard normals that each kind of random number takes, one site of each kind."""',
                *indented(self.normal_shapes()),
                "",
                "",
                f"def order_parameters({', '.join(filter(None, ('moments', self.signature)))}, tolerance=1e-12):",
                '    """Correlations and responses before the last update, times by times, from averaged moments."""',
                *indented(self.order_lines()),
                "",
                "",
                f"def footprint({', '.join(filter(None, (self.signature, 'rank=None')))}):",
                '    """How many numbers are kept for one site of each kind."""',
                *indented(self.footprint_lines()),
                "",
                "",
                "# normals that belong to the same sites",
                *self.group_lines(),
                f"RESPONSES = {self.method!r}",
            ]
        return "\n".join(lines) + "\n"

    def arguments(self) -> str:
        """What the forward pass takes."""
        return self.signature

    def data_names(self) -> tuple[str, ...]:
        return tuple(d.name for d in atoms(self.layout.system.model, Data))

    def pass_lines(self) -> list[str]:
        """The body of the forward pass."""
        static, timed = self.static_part(), self.timed_part()
        count = ["# how many times are free of overflow", "finite = 0"] if timed else []
        return [*self.extent(), *self.positions(), *self.start_arrays(), *static, *count, *timed, *self.results()]

    def extent(self) -> list[str]:
        return [] if self.clock is None else [f"steps, times = {self.clock.steps}, {jax_code(self.clock.points)}"]

    def docstring(self) -> str:
        names = ", ".join([letter.name for letter in self.letters] or ["none"])
        return (
            f"Order parameters before the last update ({names}: times by times), observables at all times, and the\n"
            "    number of times before anything overflowed.\n\n"
            "    Whole-number arguments fix shapes: pass them as Python integers, static under jit.\n    "
        )

    def stride_lines(self) -> list[str]:
        entries = [
            f'"{letter.name}": ({", ".join(self.layout.entries(f) if f.timed else "0" for f in (letter.a, letter.b))}),'
            for letter in self.letters
        ]
        return ["return {", *indented(entries), "}"]

    # -- basis of noises and sources, time by time

    def basis(self, sector: Sector) -> tuple[Field, ...]:
        sources = () if self.sampled else self.layout.sources(sector)
        return (*self.layout.noises(sector), *sources)

    def positions(self) -> list[str]:
        """Sizes, and where each noise and source sits in the basis of its site: static first, then by time."""
        lines = []
        if self.clock is not None:
            lines.append("when = jnp.arange(times)")
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
                lines.append(f"in_{f} = {plus(offset, 'label')}" if f.labelled else f"in_{f} = jnp.asarray({offset})")
                offset = plus(offset, self.layout.entries(f))
            lines += self.timed_positions(sector, timed, offset)
        for r in self.layout.system.recurrences:
            lines += recurrence_lines(r, self.time)
        return lines

    @abstractmethod
    def timed_positions(self, sector: Sector, timed: list[Field], offset: str) -> list[str]:
        """Say where noises and sources with time sit after the first `offset` entries of a site's basis."""

    @abstractmethod
    def start_arrays(self) -> list[str]:
        """Say how arrays start."""

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
        memories = [text(m.expression()) for m in self.layout.single_site.memories(f.field)]
        return " + ".join([f"u[{text(f.field)}]", *(f"sum_s {m}" for m in memories)])

    def rule_lines(self, f: SystemField, rule: Rule, target: str) -> list[str]:
        if isinstance(rule, DisorderRule):
            return self.disorder_lines(f, rule, target)
        if isinstance(rule, ElementwiseRule):
            return self.law_lines(f, rule, target)
        return self.linear_lines(f, rule, target)

    @abstractmethod
    def disorder_lines(self, f: SystemField, rule: DisorderRule, target: str) -> list[str]:
        """Noise plus memory."""

    @abstractmethod
    def linear_lines(self, f: SystemField, rule: LinearRule, target: str) -> list[str]:
        """A linear combination of fields."""

    @abstractmethod
    def law_lines(self, f: SystemField, rule: ElementwiseRule, target: str) -> list[str]:
        """An elementwise law."""

    @abstractmethod
    def covariance_lines(self, f: SystemField) -> list[str]:
        """What is written into the covariance of the noises once a field is known."""

    @abstractmethod
    def choose(self, target: str, start: str, condition: str) -> list[str]:
        """Take the starting value where the condition holds."""

    @abstractmethod
    def store(self, field: Field, target: str) -> list[str]:
        """Keep the new value."""

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

    @abstractmethod
    def mean_code(self, average: Mean, past: bool) -> str:
        """Say how means are computed."""

    def memories(self, field: Field) -> tuple[Memory, ...]:
        return self.layout.single_site.memories(field)

    def covariances(self, field: Field):
        saddle = self.layout.single_site.saddle
        ranks = {f: i for i, f in enumerate(self.layout.time_order.order)}
        return [
            c
            for c in saddle.covariances
            if c.left == field and c.right.role != "spectral" and (c.right.timed or ranks[c.right] <= ranks[field])
        ]

    # -- the whole pass

    def static_part(self) -> list[str]:
        return [line for f in self.layout.fields if not f.field.timed for line in self.field_lines(f)]

    @property
    def timed(self) -> list[SystemField]:
        return [f for f in self.layout.fields if f.field.timed]

    def timed_part(self) -> list[str]:
        if not self.timed:
            return []
        body = [*self.begin_of_step(), *(line for f in self.timed for line in self.field_lines(f))]
        watched = " & ".join(f"jnp.all(jnp.isfinite({name}))" for name in self.watched())
        body += [
            f"finite = jnp.where((finite == {self.time}) & {watched}, {self.time} + 1, finite)",
            *self.end_of_step(body),
        ]
        packed = ", ".join([*self.state(), "finite"])
        return [
            "",
            f"def step({self.time}, state):",
            *indented([f"{packed} = state", *body, f"return {packed}"]),
            "",
            f"{packed} = jax.lax.fori_loop({self.begin}, times, step, ({packed}))",
        ]

    def watched(self) -> list[str]:
        """What shows that a step has overflowed: the newest rows, and the variances of the noises."""
        newest = [f"{f.field}[{self.time}]" for f in self.layout.fields if f.field.timed]
        return [*newest, *(f"jnp.diagonal(cov_{s})" for s in self.layout.sectors if self.layout.noises(s))]

    def begin_of_step(self) -> list[str]:
        """What each time starts from."""
        return []

    def end_of_step(self, body: list[str]) -> list[str]:
        """What is kept once all fields of a time are known."""
        return []

    @abstractmethod
    def state(self) -> list[str]:
        """Say what it carries through time."""

    def results(self) -> list[str]:
        lines = ["", "order = {"]
        lines += [f'    "{letter.name}": {self.letter_code(letter)},' for letter in self.letters]
        lines += ["}", "observables = {"]
        for name, value in self.layout.system.model.observe:
            sums = {m: self.observed(m) for m in sorted(value.atoms(Mean), key=sp.default_sort_key)}
            lines.append(f'    "{name}": {jax_code(value, sums)},')
        finite = "finite" if self.timed else "1"
        return [*lines, "}", f"return order, observables, {finite}"]

    @abstractmethod
    def letter_code(self, letter: Letter) -> str:
        """Say how a matrix over training times is computed."""

    @abstractmethod
    def observed(self, average: Mean) -> str:
        """Say how a mean is observed at all times."""

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
            *self.put_lines(),
        ]

    @abstractmethod
    def put_lines(self) -> list[str]:
        """Say how a block is written into a covariance."""

    def normal_shapes(self) -> list[str]:
        return []

    def group_lines(self) -> list[str]:
        return []

    def order_lines(self) -> list[str]:
        return []

    def footprint_lines(self) -> list[str]:
        return []
