"""Two-time functions by sampling, as a program: the same pass with slopes along kicks of all fields."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from derive.equations.layout import Layout
from derive.equations.needs import Needs
from derive.language.vectors import Field, FieldAt
from derive.program.nodes import SCALAR, Call, Item, Let, Quoted, Ref, Shape, Slot, Sum, Symbol, Value
from derive.program.sampled import Build
from derive.program.sampled_records import NORMALS, SITES, WANTED, Key, Kick, Kind, MomentKey, SampledPass, has_jumps
from derive.program.training import ONE
from derive.records.saddle import Memory


def sampled_two_time(layout: Layout, needs: Needs) -> SampledPass:
    """The program that gives two-time functions of all fields; responses where no law jumps.

    needs: what the pass is asked for otherwise, so that it is the same pass over the same sites.
    """
    return TwoTimeBuild(layout, Needs(needs.letters, needs.means)).program()


class TwoTimeBuild(Build):
    """Adds random kicks to the equations of all fields, and follows slopes along them, where no law jumps."""

    def __init__(self, layout: Layout, needs: Needs):
        super().__init__(layout, needs, "stein")
        self.tangents = Slot(Call("tangents", (WANTED,), SCALAR), "tangents")
        self.slopes_past: dict[Field, Symbol] = {}
        """Slopes of a field at all times."""
        self.kept: dict[Field, Symbol] = {}
        """Values of a field at all times."""

    def _follows_slopes(self) -> bool:
        return not has_jumps(self.layout)

    def _more_kinds(self) -> list[tuple[Kind, str, Shape]]:
        found: list[tuple[Kind, str, Shape]] = []
        for field in self.layout.named:
            all_times = self.points if field.timed else sp.S.One
            many = Slot(Call("kicked", (WANTED, Quoted(field.name), all_times), SCALAR), "times")
            found.append((Kick(field), f"kick_{field}", (many, field.labels)))
        return found

    def _more_numbers(self) -> list[sp.Expr]:
        found: list[sp.Expr] = []
        for field in self.layout.named:
            numbers = field.labels * (self.points if field.timed else 1)
            kept = Call("numbers_kept", (WANTED, Quoted(field.name), numbers), SCALAR)
            found.append(Slot(kept, f"kept of {field}"))  # slots of one name would be added up in any order
        return found

    def _slots(self, field: Field) -> sp.Expr:
        """How many fields are kicked."""
        return self.tangents

    def _observed(self) -> tuple[tuple[str, sp.Expr], ...]:
        return ()

    def _moments(self, weighing: Sequence[Ref | None]) -> list[tuple[MomentKey, Value]]:
        return []

    def _order(self) -> tuple[tuple[Let, ...], tuple[tuple[Key, Value], ...]]:
        return (), ()

    def _kept_fields(self) -> list[tuple[str, Value]]:
        return [(field.name, self._kept(field)) for field in self.layout.named]

    def slope(self, value: FieldAt) -> Value | None:
        return self._kick(value) if value.field.role == "normal" else super().slope(value)

    def _known(self, field: Field) -> None:
        if self.sloped:
            slope = self.slopes[field]
            kicked = Sum(((ONE, Ref(slope)), (ONE, self._kick(self.present(field)))), slope.shape)
            self.lines.append(Let(slope, kicked))
            if field.timed:
                self._all_slopes(field)
                past = self.slopes_past[field]
                self.lines.append(Let(past, Call("keep", (past, slope, self.time), None)))
        if field.timed:
            self._keep(field)

    def _past_slopes(self, vector: Field, rows: Value, weighing: Value) -> Value | None:
        if not self.sloped:
            return None
        return Call("past_slopes", (weighing, self._all_slopes(vector), self.points), None)

    def _product(self, field: Field) -> tuple[Value, Value | None]:
        value, _ = super()._product(field)
        if not self.sloped:
            return value, None
        slopes = [(self.number(m.coefficient), self._memory_slopes(m)) for m in self.layout.memories(field)]
        return value, Sum(tuple(slopes), self.slopes_shape(field))

    def _kick(self, value: FieldAt) -> Call:
        """The kick of a field at the current time, or some steps earlier."""
        field = value.field
        kicks = Item(NORMALS, self.kinds[Kick(field)].key)
        lag = self.lag(value)
        when = (Ref(self.time), *((lag,) if lag else ())) if field.timed else ()
        return Call("kick_at", (WANTED, Quoted(field.name), kicks, *when), self.slopes_shape(field))

    def _keep(self, field: Field) -> None:
        """Keep the values of a field at all times, if somebody asks for them."""
        sizes = self.points, SITES, field.labels
        kept = self.kept[field] = Symbol(f"all_{field}")
        self.initial[kept] = Call("room_for", (WANTED, Quoted(field.name), *sizes), None)
        self.lines.append(Let(kept, Call("keep", (kept, self.done[field], self.time), None)))

    def _kept(self, field: Field) -> Call:
        """What two-time functions of a field are made of."""
        if field.role == "normal":
            times = self.points if field.timed else sp.S.One
            normals = Item(NORMALS, self.kinds[field].key)
            values: Value = Call("drawn_values", (normals, self.number(field.scale), times), None)
        else:
            values = Ref(self.kept[field]) if field.timed else Call("kept_once", (self.done[field],), None)
        if not self.sloped:
            return Call("Kept", (values, None, None, ()), None)
        known = self.layout.site_delays
        delays = tuple((Quoted(b.name), known[field, b]) for b in self.layout.named if (field, b) in known)
        kicks = Item(NORMALS, self.kinds[Kick(field)].key)
        return Call("Kept", (values, self._all_slopes(field), kicks, delays), None)

    def _memory_slopes(self, m: Memory) -> Call:
        """The slopes of what a random matrix remembers of a field: its responses, from the kicks of the noise, times
        the slopes of the field at all times. Directions of the past would not do: they do not hold the kick of a field
        that has nothing new."""
        a = self.present(m.a)
        slope = self.slope(a) or Call("no_slopes", (self.value(a), self._slots(m.a)), None)
        kicks = Item(NORMALS, self.kinds[Kick(m.noise)].key)
        when = Ref(self.time) if m.a.timed and m.noise.timed else None
        arguments = (
            Ref(WANTED),
            Quoted(m.noise.name),
            slope,
            kicks,
            self._all_slopes(m.on),
            when,
            int(m.fresh),
            m.lag or 0,
        )
        return Call("memory_slopes", arguments, self.slopes_shape(m.target))

    def _all_slopes(self, field: Field) -> Value:
        """The slopes of a field at all times so far: times x sites x labels x slopes."""
        if field.role == "normal":
            kicks = Item(NORMALS, self.kinds[Kick(field)].key)
            times = self.points if field.timed else sp.S.One
            return Call("drawn_slopes", (WANTED, Quoted(field.name), kicks, times), None)
        if not field.timed:
            return Call("kept_once", (self.slopes[field],), None)
        if field not in self.slopes_past:
            self.slopes_past[field] = Symbol(f"d_{field}_past")
            sizes = self.points, SITES, field.labels, self._slots(field)
            self.initial[self.slopes_past[field]] = Call("no_slopes_yet", sizes, None)
        return Ref(self.slopes_past[field])
