"""The sampled forward pass as a JAX module that reads as the model's equations in order."""

from __future__ import annotations

from collections.abc import Iterable

from derive.equations.layout import Layout
from derive.equations.needs import Needs
from derive.program.nodes import Formula, Statement, Symbol, Value, symbols_in
from derive.program.sampled import sampled_pass
from derive.program.sampled_records import (
    MOMENTS,
    NOISES,
    NORMALS,
    RANK,
    SITES,
    TOLERANCE,
    WANTED,
    SampledPass,
    has_jumps,
)
from derive.program.sampled_two_time import sampled_two_time
from derive.program.text import PARAMETERS, PassText, indented, joined

FUNCTIONS = "sizes shapes footprint joining tables start step results forward_pass moments_of order_parameters".split()
OTHERS = (
    "strides partial jax state most one observables fields SampledTraining SampledTwoTime TRAINING TWO_TIME".split()
)
FINITE = "finite"
"""What is carried through time besides the symbols of a program: how many times are free of overflow."""

HOW = {
    "stein": "Stein's lemma: correlations with the noises",
    "pathwise": "automatic differentiation of each law",
}


DOC = "Training level by sampling: many sites forward in time, responses by "
TWO_TIME_DOC = "Two-time functions of all fields by sampling: the forward pass again, with slopes along random kicks"


def write_sampled(layout: Layout, needs: Needs, runtime: str, responses: str = "stein") -> str:
    """The text of a module that ends with TRAINING, a SampledTraining.

    responses: "stein" or "pathwise". runtime: the package that the module imports its functions from.
    """
    return SampledText(sampled_pass(layout, needs, responses), runtime).module()


def write_sampled_two_time(layout: Layout, needs: Needs, runtime: str) -> str:
    """The text of a module that ends with TWO_TIME, a SampledTwoTime; arguments as for `write_sampled`."""
    why = "a law jumps, and its derivative does not tell how it changes: responses to a source are not followed"
    names = [(a, b) for b in layout.named for a in layout.named if a.sector == b.sector] if has_jumps(layout) else []
    refused = tuple((("R", a.name, b.name), why) for a, b in names)
    return SampledText(sampled_two_time(layout, needs), runtime, refused).module()


class SampledText(PassText):
    """One module: sizes and normals, what is known before the first time, one step, the results.

    refused: two-time functions that there are not, and why.
    """

    sources = ("coefficients", "sampled", "diagonals", "exact", "traits", "two_time")

    def __init__(self, program: SampledPass, runtime: str, refused: tuple[tuple[tuple[str, str, str], str], ...] = ()):
        self.program, self.refused = program, refused
        given = (NORMALS, NOISES, RANK, TOLERANCE, MOMENTS)
        # callers give some of these by name, so that nothing of the declaration may take it before them
        first = (PARAMETERS, *given, WANTED, program.time, program.when, SITES)
        super().__init__(runtime, (*FUNCTIONS, *OTHERS, FINITE), program, first)
        self.normals, noises, self.rank, self.tolerance, self.moments = map(self.names.of, given)
        for symbol in dict.fromkeys((*program.carried, *program.kept)):
            self.names.given[symbol] = f"state.{self.names.of(symbol)}"
        self.wanted = [self.names.of(WANTED)] if program.fields else []
        self.noises = [noises] if program.channels else []
        self.staged = [s for s in program.spans if s.symbol in program.carried and not s.span.fresh]
        """Spans that are widened as they fill: where slopes by their normals are followed, all have their places."""
        if program.method == "pathwise" or program.clock is None:
            self.staged = []
        if program.clock is not None:
            self.libraries = ("from functools import partial", *self.libraries)

    def module(self) -> str:
        program = self.program
        body = [
            *self._sizes(),
            *self._shapes(),
            *self._footprint(),
            *self._joining(),
            *self.table_functions(),
            *self._start(),
            *self._step(),
            *self._results(),
            *self._forward(),
        ]
        groups = f"({joined(f'({joined(map(repr, group))})' for group in program.groups)})"
        if program.fields:
            refused = [f"{key!r}: {why!r}," for key, why in self.refused]
            always = f"({joined(map(repr, program.remembered))}),"
            own = ("forward_pass,", "shapes,", "footprint,", f"{groups},", f"{program.paired},", always)
            parts = (*own, "{", *indented(refused), "},")
            offer = ["TWO_TIME = SampledTwoTime(", *indented(parts), ")"]
            return self.whole(f"{TWO_TIME_DOC}.", [*body, *offer], ["SampledTwoTime"])
        functions = "forward_pass, strides, shapes, moments_of, order_parameters, footprint"
        named = [f"groups={groups}", f"paired={program.paired}", f"responses={program.method!r}"]
        named += [f"ranges={program.ranges!r}"] if program.ranges else []
        offer = [f"TRAINING = SampledTraining({functions}, {', '.join(named)})"]
        body += [*self._moments(), *self._order(), *self.strides(program.ends), *offer]
        return self.whole(f"{DOC}{HOW[program.method]}.", body, ["SampledTraining"])

    # -- parts

    def _sizes(self) -> list[str]:
        lines = []
        for made in self.program.spans:
            entries = self.text.formula(made.entries)
            if not made.span.fresh:
                entries = f"{self.called('room')}({entries}, most)"
            lines.append(f"{entries},  # {self.names.of(made.size)}: {', '.join(map(str, made.span.fields))}")
        doc = "How many directions there is room for in each span of fields, if in none for more than `most`."
        return self.function(
            f"sizes({self.p}, most)", doc, ["return (", *indented(lines), ")"] if lines else ["return ()"]
        )

    def _unpacked_sizes(self, used: dict[Symbol, None], most: str) -> list[str]:
        names = [self.names.of(s.size) if s.size in used else "_" for s in self.program.spans]
        return [f"{joined(names)} = sizes({self.p}, {most})"] if set(names) - {"_"} else []

    def _joining(self) -> list[str]:
        if not self.staged:
            return []
        counts = (", ".join(map(self.text.formula, (made.joining, made.before))) for made in self.staged)
        entries = ((self._own_name(made.symbol), f"({some})") for made, some in zip(self.staged, counts, strict=True))
        doc = "How many directions can join each span of fields at one time, and how many before the first."
        return self.function(f"joining({self.p})", doc, self.table("return", entries))

    def _own_name(self, carried: Symbol) -> str:
        return self.names.of(carried).removeprefix("state.")

    def _shapes(self) -> list[str]:
        used: dict[Symbol, None] = {}
        for extent in (extent for kind in self.program.kinds for extent in kind.shape):
            used |= symbols_in(Formula(extent))
        entries = ((kind.key, f"({joined(map(self.text.formula, kind.shape))})") for kind in self.program.kinds)
        doc = "The shape of each kind of standard normals, for one site."
        lines = [*self._unpacked_sizes(used, self.rank), *self.table("return", entries)]
        return self.function(f"shapes({', '.join((self.p, *self.asked()))})", doc, lines)

    def asked(self) -> list[str]:
        """What the sizes of everything depend on besides parameters, as parameters of a function."""
        return [self.rank, *self.wanted] if self.wanted else [f"{self.rank}=None"]

    def _footprint(self) -> list[str]:
        lines = [
            *self._unpacked_sizes(symbols_in(self.program.footprint), self.rank),
            f"return {self.text.value(self.program.footprint)}",
        ]
        return self.function(
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
        if SITES in used:
            first = next((kind.key for kind in self.program.kinds), None)
            count = "1" if first is None else f"{self.normals}[{first!r}].shape[0]"
            lines.append(f"{self.names.of(SITES)} = {count}")
        lines += self._unpacked_sizes(used, most)
        if self.program.when in used:
            lines.append(f"{self.names.of(self.program.when)} = jnp.arange({self.points})")
        return lines

    def _arguments(self, *more: str) -> str:
        """The first arguments of the functions in which fields are computed."""
        return self._given(*more).replace(f"{self.normals},", ", ".join((self.normals, *self.noises)) + ",", 1)

    def _given(self, *more: str) -> str:
        return ", ".join([self.p, self.normals, self.rank, self.tolerance, *self.wanted, *self.tables, *more])

    def _start(self) -> list[str]:
        lines = [
            *self._prelude("most", self.program.start),
            f"state = {self.called('Carried')}({FINITE}={'1' if self.program.clock is None else 'jnp.zeros((), int)'})",
            *self.text.lines(self.program.start),
            "return state",
        ]
        doc = "Fields without time, and what is carried through time as it starts."
        return self.function(f"start({self._arguments('most')})", doc, lines)

    def _step(self) -> list[str]:
        program = self.program
        if program.clock is None:
            return []
        watched = joined(map(self.names.of, program.watched))
        lines = [
            *self._prelude("most", program.step),
            *self.text.lines(program.step),
            f"state.{FINITE} = {self.called('still_finite')}(state.{FINITE}, {self.time}, ({watched}))",
            "return state",
        ]
        doc = "All fields of one time, each as sites x labels; the state is changed in place."
        return self.function(f"step({self._arguments('most', self.time, 'state')})", doc, lines)

    def _results(self) -> list[str]:
        program = self.program
        values = [*(v for _, v, _ in program.observables), *(v for _, v in program.fields)]
        alive = [made for made in program.spans if made.symbol in program.carried]
        kept, fresh = (
            f"({joined(self.names.of(made.symbol) for made in alive if made.span.fresh == anew)})"
            for anew in (False, True)
        )
        lines = [
            *self._prelude(self.rank, program.results, values),
            *self.text.lines(program.results),
            *self._made(),
            f"return observables, {self.called('report_on')}({kept}, {fresh})",
        ]
        doc = "Observables at all times, and a report on the directions; the state is changed in place."
        if program.fields:
            doc = "The two-time functions asked for, and a report on the directions."
        return self.function(f"results({self._given('state')})", doc, lines)

    def _made(self) -> list[str]:
        """What is averaged over sites."""
        program = self.program
        if program.fields:
            made = f"observables = {self.called('sampled_two_time')}({self.wanted[0]}, fields)"
            return [*self.values("fields =", program.fields), made]
        return self.values("observables =", program.observables)

    def _moments(self) -> list[str]:
        program = self.program
        used: dict[Symbol, None] = {}
        for value in (*(s.value for s in program.averages), *(v for _, v in program.moments)):
            used |= symbols_in(value)
        tables = any(let.symbol in used for let in program.tables if let.remark)
        lines = [
            *([f"{joined(self.tables)} = tables({self.p})"] if tables else []),
            *self.text.lines(program.averages),
            *self.values("return", program.moments),
        ]
        doc = "What order parameters are made of, from what is kept of a pass."
        return self.function(f"moments_of({self.p}, state)", doc, lines)

    def _forward(self) -> list[str]:
        doc = [
            "What moments are made of (see moments_of), observables at all times, the number of times before anything",
            "overflowed, and a report on the directions that are remembered.",
            "",
            "normals: as `shapes` says, with the sites in front. rank: most directions to remember of each span of",
            "fields, all if None. tolerance: share of its variance below which a new direction is left out.",
            "Whole-number parameters fix shapes.",
        ]
        made = [f"{joined(self.tables)} = tables({self.p})"] if self.tables else []
        sizes = ", ".join((self.p, "most", *self.wanted))
        keys = f"({joined(map(repr, self.program.channels))})"
        noises = [f"{x} = {self.called('narrowed')}({self.normals}, shapes({sizes}), {keys})" for x in self.noises]
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
                f"state = {self.called('forward')}({self.points}, {self.rank}, begin, move, {joining})",
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
        return self.function(signature, "\n    ".join(doc).replace("    \n", "\n") + "\n    ", lines)

    def _order(self) -> list[str]:
        lines = [*self.text.lines(self.program.responses), *self.values("return", self.program.order)]
        doc = "Correlations, responses and means before the last update, times by times, from averaged moments."
        return self.function(f"order_parameters({self.moments}, {self.p}, {self.tolerance}=1e-12)", doc, lines)
