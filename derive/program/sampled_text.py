"""The sampled forward pass as a JAX module that reads as the model's equations in order."""

from __future__ import annotations

from collections.abc import Iterable

from derive.algebra.words import Letter
from derive.language.vectors import Field, Mean
from derive.program.layout import Layout
from derive.program.nodes import Formula, Statement, Symbol, Value, symbols_in
from derive.program.sampled import sampled_pass
from derive.program.sampled_records import SampledPass, has_jumps, lines_of
from derive.program.sampled_two_time import sampled_two_time
from derive.program.text import IN_COEFFICIENTS, PARAMETERS, Names, Text, indented, joined

IN_SAMPLED = (
    "Carried Entries answers before between beyond drawn drawn_at emptied empty_span expressed expressed_slopes extend "
    "forgetting forgotten forward given label_mean law_and_slopes mean mean_by_label mean_slopes mixed_slopes "
    "narrowed no_slopes noise noise_slopes once ones over_labels overlaps record repeated report_on responses room "
    "scaled_rows scaled_slopes seen_from spread stacked still_finite store_rest total with_rest"
).split()
IN_TRAITS = ("of_density", "of_values")
IN_EXACT = "apart first listed past_sum root selection softmax store weighted".split()
IN_TWO_TIME = (
    "Kept drawn_slopes drawn_values keep kept_once kick_at kicked memory_slopes no_slopes_yet numbers_kept past_slopes "
    "room_for sampled_two_time tangents"
).split()
FUNCTIONS = (
    "sizes",
    "shapes",
    "footprint",
    "joining",
    "tables",
    "start",
    "step",
    "results",
    "forward_pass",
    "moments_of",
    "order_parameters",
)
OTHERS = (
    *("strides", "partial", "jax", "jnp", "jsp", "state", "most", "one", "observables", "fields"),
    *("SampledTraining", "SampledTwoTime", "TRAINING", "TWO_TIME"),
)
FINITE = "finite"
"""What is carried through time besides the symbols of a program: how many times are free of overflow."""

HOW = {
    "stein": "Stein's lemma: correlations with the noises",
    "pathwise": "automatic differentiation of each law",
}


DOC = "Training level by sampling: many sites forward in time, responses by "
TWO_TIME_DOC = "Two-time functions of all fields by sampling: the forward pass again, with slopes along random kicks"


def write_sampled(
    layout: Layout, letters: Iterable[Letter], means: Iterable[Mean], responses: str, runtime: str
) -> str:
    """The text of a module that ends with TRAINING, a SampledTraining.

    letters: matrices over training times. means: what weighs updates of the probed matrix, at earlier times.
    responses: "stein" (also if empty) or "pathwise". runtime: the package that the module imports its functions from.
    """
    return SampledText(sampled_pass(layout, letters, means, responses), runtime).module()


def write_sampled_two_time(layout: Layout, letters: Iterable[Letter], means: Iterable[Mean], runtime: str) -> str:
    """The text of a module that ends with TWO_TIME, a SampledTwoTime; arguments as for `write_sampled`."""
    why = "a law jumps, and its derivative does not tell how it changes: responses to a source are not followed"
    names = [(a, b) for b in layout.named for a in layout.named if a.sector == b.sector] if has_jumps(layout) else []
    refused = tuple((("R", a.name, b.name), why) for a, b in names)
    return SampledText(sampled_two_time(layout, letters, means), runtime, refused).module()


class SampledText:
    """One module: sizes and normals, what is known before the first time, one step, the results.

    refused: two-time functions that there are not, and why.
    """

    def __init__(self, program: SampledPass, runtime: str, refused: tuple[tuple[tuple[str, str, str], str], ...] = ()):
        self.program, self.runtime, self.refused = program, runtime, refused
        names = Names((*IN_SAMPLED, *IN_EXACT, *IN_TWO_TIME, *IN_COEFFICIENTS, *FUNCTIONS, *OTHERS, FINITE))
        self.text = Text(names)
        given = (program.normals, program.noises, program.rank, program.tolerance, program.moments_symbol)
        # callers give some of these by name, so that nothing of the declaration may take it before them
        for symbol in (PARAMETERS, *given, program.wanted, program.time, program.when, program.sites):
            names.of(symbol)
        for symbol in dict.fromkeys((*program.carried, *program.kept)):
            names.given[symbol] = f"state.{names.of(symbol)}"
        self.wanted = [names.of(program.wanted)] if program.fields else []
        self.p, self.time, self.normals = (names.of(s) for s in (PARAMETERS, program.time, program.normals))
        self.tolerance, self.moments = names.of(program.tolerance), names.of(program.moments_symbol)
        self.rank = names.of(program.rank)
        self.noises = [names.of(program.noises)] if program.channels else []
        self.staged = [s for s in program.spans if s.symbol in program.carried and not s.span.fresh]
        """Spans that are widened as they fill: where slopes by their normals are followed, all have their places."""
        if program.method == "pathwise" or program.clock is None:
            self.staged = []
        self.points = "1" if program.clock is None else self.text.formula(program.clock.points)
        self.tables = [let.symbol for let in program.tables if let.remark]

    def module(self) -> str:
        program = self.program
        body = [
            *self._sizes(),
            *self._shapes(),
            *self._footprint(),
            *self._joining(),
            *self._tables(),
            *self._start(),
            *self._step(),
            *self._results(),
            *self._forward(),
            *([] if program.fields else [*self._moments(), *self._order(), *self._strides()]),
        ]
        needed = {*self.text.called, "report_on", "Carried", *(["narrowed"] if program.channels else [])}
        needed |= {"forward", "still_finite"} if program.clock is not None else set()
        needed |= {"over_time"} if self.tables else set()
        needed |= {"sampled_two_time"} if program.fields else set()
        imports = [
            f"from {self.runtime}.{module} import {', '.join(sorted(needed & set(known)))}"
            for module, known in (
                ("coefficients", IN_COEFFICIENTS),
                ("exact", IN_EXACT),
                ("sampled", IN_SAMPLED),
                ("traits", IN_TRAITS),
                ("two_time", IN_TWO_TIME),
            )
            if needed & set(known)
        ]
        head = [
            f'"""{TWO_TIME_DOC if program.fields else DOC + HOW[program.method]}."""',
            "",
            *(["from functools import partial", ""] if program.clock is not None else []),
            "import jax.numpy as jnp",
            "import jax.scipy.special as jsp  # noqa: F401",
            "",
            f"from {self.runtime}.interface import {'SampledTwoTime' if program.fields else 'SampledTraining'}",
            *imports,
            "",
            "",
        ]
        groups = joined(f"({joined(map(repr, group))})" for group in program.groups)
        if program.fields:
            entries = [f"{key!r}: {why!r}," for key, why in self.refused]
            always = f"({joined(map(repr, program.remembered))}),"
            parts_of = ("forward_pass,", "shapes,", "footprint,", f"({groups}),", always, "{", *indented(entries), "},")
            return "\n".join([*head, *body, "TWO_TIME = SampledTwoTime(", *indented(parts_of), ")"]) + "\n"
        parts = (
            "forward_pass",
            "strides",
            "shapes",
            "moments_of",
            "order_parameters",
            "footprint",
            f"groups=({groups})",
            f"responses={program.method!r}",
        )
        return "\n".join([*head, *body, f"TRAINING = SampledTraining({', '.join(parts)})"]) + "\n"

    # -- parts

    def _function(self, signature: str, doc: str, lines: Iterable[str]) -> list[str]:
        return [f"def {signature}:", *indented([f'"""{doc}"""', *lines]), "", ""]

    def _sizes(self) -> list[str]:
        lines = []
        for made in self.program.spans:
            entries = self.text.formula(made.entries)
            if not made.span.fresh:
                self.text.called.setdefault("room")
                entries = f"room({entries}, most)"
            lines.append(f"{entries},  # {self.text.names.of(made.size)}: {', '.join(map(str, made.span.fields))}")
        doc = "How many directions there is room for in each span of fields, if in none for more than `most`."
        return self._function(
            f"sizes({self.p}, most)", doc, ["return (", *indented(lines), ")"] if lines else ["return ()"]
        )

    def _unpacked_sizes(self, used: dict[Symbol, None], most: str) -> list[str]:
        names = [self.text.names.of(s.size) if s.size in used else "_" for s in self.program.spans]
        return [f"{joined(names)} = sizes({self.p}, {most})"] if set(names) - {"_"} else []

    def _joining(self) -> list[str]:
        if not self.staged:
            return []
        entries = []
        for made in self.staged:
            counts = ", ".join(map(self.text.formula, (made.joining, made.before)))
            entries.append(f"{self._own_name(made.symbol)!r}: ({counts}),")
        doc = "How many directions can join each span of fields at one time, and how many before the first."
        return self._function(f"joining({self.p})", doc, ["return {", *indented(entries), "}"])

    def _own_name(self, carried: Symbol) -> str:
        return self.text.names.of(carried).removeprefix("state.")

    def _shapes(self) -> list[str]:
        entries: list[str] = []
        used: dict[Symbol, None] = {}
        for kind in self.program.kinds:
            for extent in kind.shape:
                used |= symbols_in(Formula(extent))
            entries.append(f"{kind.key!r}: ({joined(map(self.text.formula, kind.shape))}),")
        doc = "The shape of each kind of standard normals, for one site."
        lines = [*self._unpacked_sizes(used, self.rank), "return {", *indented(entries), "}"]
        return self._function(f"shapes({', '.join((self.p, *self.asked()))})", doc, lines)

    def asked(self) -> list[str]:
        """What the sizes of everything depend on besides parameters, as parameters of a function."""
        return [self.rank, *self.wanted] if self.wanted else [f"{self.rank}=None"]

    def _footprint(self) -> list[str]:
        lines = [
            *self._unpacked_sizes(symbols_in(self.program.footprint), self.rank),
            f"return {self.text.value(self.program.footprint)}",
        ]
        return self._function(
            f"footprint({', '.join((self.p, *self.asked()))})",
            "How many numbers are kept for one site of each kind.",
            lines,
        )

    def _prelude(self, most: str, statements: Iterable[Statement], values: Iterable[Value] = ()) -> list[str]:
        """What a function begins with: how many sites and directions there are, the clock's times."""
        used: dict[Symbol, None] = {}
        for value in (*(s.value for s in statements), *values):
            used |= symbols_in(value)
        lines = []
        if self.program.sites in used:
            first = next((kind.key for kind in self.program.kinds), None)
            count = "1" if first is None else f"{self.normals}[{first!r}].shape[0]"
            lines.append(f"{self.text.names.of(self.program.sites)} = {count}")
        lines += self._unpacked_sizes(used, most)
        if self.program.when in used:
            lines.append(f"{self.text.names.of(self.program.when)} = jnp.arange({self.points})")
        return lines

    def _arguments(self, *more: str) -> str:
        """The first arguments of the functions in which fields are computed."""
        return self._given(*more).replace(f"{self.normals},", ", ".join((self.normals, *self.noises)) + ",", 1)

    def _given(self, *more: str) -> str:
        tables = map(self.text.names.of, self.tables)
        return ", ".join([self.p, self.normals, self.rank, self.tolerance, *self.wanted, *tables, *more])

    def _tables(self) -> list[str]:
        if not self.tables:
            return []
        names = joined(map(self.text.names.of, self.tables))
        doc = "Coefficients of updated weights at all times, where they have no closed form."
        return self._function(f"tables({self.p})", doc, [*self.text.lines(self.program.tables), f"return ({names})"])

    def _start(self) -> list[str]:
        lines = [
            *self._prelude("most", self.program.start),
            f"state = Carried({FINITE}={'jnp.zeros((), int)' if self.program.clock is not None else 1})",
            *self.text.lines(self.program.start),
            "return state",
        ]
        doc = "Fields without time, and what is carried through time as it starts."
        return self._function(f"start({self._arguments('most')})", doc, lines)

    def _step(self) -> list[str]:
        program = self.program
        if program.clock is None:
            return []
        watched = joined(map(self.text.names.of, program.watched))
        lines = [
            *self._prelude("most", program.step),
            *self.text.lines(program.step),
            f"state.{FINITE} = still_finite(state.{FINITE}, {self.time}, ({watched}))",
            "return state",
        ]
        doc = "All fields of one time, each as sites x labels; the state is changed in place."
        return self._function(f"step({self._arguments('most', self.time, 'state')})", doc, lines)

    def _results(self) -> list[str]:
        program = self.program
        values = [v for _, v in (*program.observables, *program.fields)]
        alive = [made for made in program.spans if made.symbol in program.carried]
        kept, fresh = (
            f"({joined(self.text.names.of(made.symbol) for made in alive if made.span.fresh == anew)})"
            for anew in (False, True)
        )
        lines = [
            *self._prelude(self.rank, program.results, values),
            *self.text.lines(program.results),
            *self._made(),
            f"return observables, report_on({kept}, {fresh})",
        ]
        doc = "Observables at all times, and a report on the directions; the state is changed in place."
        if program.fields:
            doc = "The two-time functions asked for, and a report on the directions."
        return self._function(f"results({self._given('state')})", doc, lines)

    def _made(self) -> list[str]:
        """What is averaged over sites."""
        program = self.program
        if program.fields:
            fields = (f"{name!r}: {self.text.value(value)}," for name, value in program.fields)
            made = f"observables = sampled_two_time({self.wanted[0]}, fields)"
            return ["fields = {", *indented(fields), "}", made]
        return [
            "observables = {",
            *indented(f"{name!r}: {self.text.value(value)}," for name, value in program.observables),
            "}",
        ]

    def _moments(self) -> list[str]:
        program = self.program
        used: dict[Symbol, None] = {}
        for value in (*(s.value for s in program.averages), *(v for _, v in program.moments)):
            used |= symbols_in(value)
        tables = joined(map(self.text.names.of, self.tables))
        lines = [
            *([f"{tables} = tables({self.p})"] if any(s in used for s in self.tables) else []),
            *self.text.lines(program.averages),
            "return {",
            *indented(f"{key!r}: {self.text.value(value)}," for key, value in program.moments),
            "}",
        ]
        doc = "What order parameters are made of, from what is kept of a pass."
        return self._function(f"moments_of({self.p}, state)", doc, lines)

    def _forward(self) -> list[str]:
        doc = [
            "What moments are made of (see moments_of), observables at all times, the number of times before anything",
            "overflowed, and a report on the directions that are remembered.",
            "",
            "normals: as `shapes` says, with the sites in front. rank: most directions to remember of each span of",
            "fields, all if None. tolerance: share of its variance below which a new direction is left out.",
            "Whole-number parameters fix shapes.",
        ]
        names = joined(map(self.text.names.of, self.tables))
        made = [f"{names} = tables({self.p})"] if self.tables else []
        sizes = ", ".join((self.p, "most", *self.wanted))
        keys = f"({joined(map(repr, self.program.channels))})"
        noises = [f"{x} = narrowed({self.normals}, shapes({sizes}), {keys})" for x in self.noises]
        joining = f"joining({self.p})" if self.staged else "{}"
        if self.program.clock is not None:
            lines = [
                *made,
                "",
                "def begin(most):",
                *indented([*noises, f"return start({self._arguments('most')})"]),
                "",
                "def move(most):",
                *indented([*noises, f"return partial(step, {self._arguments('most')})"]),
                "",
                f"state = forward({self.points}, {self.rank}, begin, move, {joining})",
            ]
        else:
            lines = [*made, f"most = {self.rank}", *noises, f"state = start({self._arguments('most')})"]
        lines += [
            f"observables, report = results({self._given('state')})",
            f"kept = Carried({', '.join(f'{self._own_name(s)}=state.{self._own_name(s)}' for s in self.program.kept)})",
            f"return kept, observables, state.{FINITE}, report",
        ]
        signature = f"forward_pass({self.p}, {self.normals}, {self.rank}=None, {self.tolerance}=1e-12)"
        if self.wanted:
            given = ", ".join((self.p, self.normals, self.rank, self.tolerance, *self.wanted))
            signature = f"forward_pass({given})"
            doc[0:2] = [
                "Nothing, the two-time functions asked for, as times of a x labels of a x times of b x labels of b,",
                "the number of times before anything overflowed, and a report on the directions that are remembered.",
            ]
        return self._function(signature, "\n    ".join(doc).replace("    \n", "\n") + "\n    ", lines)

    def _order(self) -> list[str]:
        entries = [f"{key!r}: {self.text.value(value)}," for key, value in self.program.order]
        lines = [*self.text.lines(self.program.responses), "return {", *indented(entries), "}"]
        doc = "Correlations, responses and means before the last update, times by times, from averaged moments."
        return self._function(f"order_parameters({self.moments}, {self.p}, {self.tolerance}=1e-12)", doc, lines)

    def _strides(self) -> list[str]:
        def stride(field: Field) -> str:
            return self.text.formula(lines_of(field)) if field.timed else "0"

        entries = [f"{key!r}: ({', '.join(map(stride, ends))})," for key, ends in self.program.ends]
        doc = "Entries per time step along each axis of the order parameters; 0 along an axis without time."
        return self._function(f"strides({self.p})", doc, ["return {", *indented(entries), "}"])
