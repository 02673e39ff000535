"""Sizes of a sampled pass: ranks of bases, normals, tangents, floats stored per site."""

from __future__ import annotations

from functools import cached_property

from . import two_time as kicks
from .point import Point
from .program import Channel, SpanOf, Training, Vector, Wanted, size_of
from .sampled import beyond, room

LIGHT = 4e6
"""Floats, over all sites and times, up to which a pass is light. Trades compile time for run time; reproduce with
`derive bench --long --only "optimising"`."""


class Sizes:
    """Sizes of a sampled pass at a point. rank: largest rank of a basis; None for full rank."""

    def __init__(self, training: Training, p: Point, rank: int | None, wanted: Wanted = ()):
        self.training, self.p, self.rank, self.wanted = training, p, rank, wanted
        self.times = training.times(p)
        self.vectors = {vector.name: vector for vector in training.vectors}
        self.labels = {vector.name: size_of(p, vector.axes) for vector in training.vectors}
        self.spans = {span.name: span for span in training.spans}
        self.channels = {channel.name: channel for channel in training.channels}
        self.channel_of = {name: channel for channel in training.channels for name in channel.products}
        self.products = {product.name: product for product in training.products}

    def most_directions(self, span: SpanOf) -> int:
        """Return the full rank of a basis."""
        often = 1 if span.fresh else self.times
        return sum(self.labels[name] * (often if self.vectors[name].timed else 1) for name in span.vectors)

    def size(self, name: str) -> int:
        """Return the allotted rank of a basis."""
        span = self.spans[name]
        return self.most_directions(span) if span.fresh else room(self.most_directions(span), self.rank)

    def joining(self, span: SpanOf, timed: bool) -> int:
        """Return the number of directions that join a basis at each time, or before the first time."""
        return sum(self.labels[name] for name in span.vectors if self.vectors[name].timed == timed)

    def may_lack_room(self, name: str, span: SpanOf) -> bool:
        """Whether a vector may be truncated in a basis; vectors without time come first and are never truncated."""
        return self.vectors[name].timed and not span.fresh

    def beyond(self, name: str, span: SpanOf) -> int:
        """Return the number of normals for the truncated part of a vector."""
        return beyond(self.rank, self.most_directions(span), self.labels[name])

    def base(self, name: str) -> str:
        """Return the vector that a vector is a multiple of."""
        return self.vectors[name].multiple_of or name

    @cached_property
    def beyonds(self) -> dict[tuple[str, str], str]:
        """Return names of the normals of truncated parts, by channel and argument."""
        names: dict[tuple[str, str], str] = {}
        for channel in self.training.channels:
            span = self.spans[channel.span]
            for name in dict.fromkeys(map(self.base, channel.arguments)):
                if self.may_lack_room(name, span):
                    count = sum(owner == channel.name for owner, _ in names)
                    names[channel.name, name] = f"{channel.name}_beyond{'_' * count}"
        return names

    @cached_property
    def traits(self) -> dict[str, tuple[str, ...]]:
        """Return names of sampled traits, by sector."""
        drawn: dict[str, tuple[str, ...]] = {}
        for trait in self.training.traits:
            drawn[trait.sector] = (*drawn.get(trait.sector, ()), trait.name)
        return drawn

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape per site of each kind of standard normals."""
        shapes: dict[str, tuple[int, ...]] = {}
        for channel in self.training.channels:
            size = self.size(channel.span)
            shapes[channel.name] = (self.times, size) if channel.fresh else (size,)
        for vector in self.training.vectors:
            if vector.role == "normal":
                labels = (self.labels[vector.name],) if vector.axes else ()
                shapes[vector.name] = (*((self.times,) if vector.timed else ()), *labels)
        for sector, names in self.traits.items():
            shapes[f"traits_{sector}"] = (len(names),)
        for (channel_name, name), key in self.beyonds.items():
            shapes[key] = (self.times, self.beyond(name, self.spans[self.channels[channel_name].span]))
        for vector in self.impulses:
            many = kicks.kicked(self.wanted, vector.name, self.times if vector.timed else 1)
            shapes[f"kick {vector.name}"] = (many, self.labels[vector.name])
        return shapes

    @cached_property
    def impulses(self) -> tuple[Vector, ...]:
        """Return vectors with impulses in their equations, if two-time functions are requested."""
        return impulses_of(self.training, self.wanted)

    @property
    def pathwise(self) -> bool:
        """Whether responses are pathwise derivatives."""
        return self.training.responses == "pathwise" and not self.wanted

    @property
    def sloped(self) -> bool:
        """Whether tangents are propagated."""
        return self.pathwise or (bool(self.wanted) and not self.training.jumps)

    def slots(self, group: int) -> int:
        """Return the number of tangents per value of a group."""
        if self.wanted:
            return kicks.tangents(self.wanted)
        return sum(self.size(channel.span) for channel in self.of_group(group))

    def of_group(self, group: int) -> list[Channel]:
        """Return the channels whose products belong to a group."""
        return [c for c in self.training.channels if self.vectors[c.products[0]].group == group]

    def place(self, channel: Channel) -> tuple[int, int]:
        """Return the first slot of a channel's normals, and their number."""
        mine = self.of_group(self.vectors[channel.products[0]].group)
        return sum(self.size(c.span) for c in mine[: mine.index(channel)]), self.size(channel.span)

    def footprint(self) -> int:
        """Return the number of floats stored per site, summed over kinds of sites."""
        counted: dict[int, int] = {}
        for span in self.training.spans:
            group = self.vectors[span.vectors[0]].group
            counted[group] = counted.get(group, 0) + self.size(span.name)
        for vector in self.training.vectors:
            if vector.role in ("field", "product"):
                counted[vector.group] = counted.get(vector.group, 0) + self.labels[vector.name]
        floats = sum(n * (1 + self.slots(group)) if self.sloped else n for group, n in counted.items())
        for vector in self.impulses:
            numbers = self.labels[vector.name] * (self.times if vector.timed else 1)
            floats += kicks.numbers_kept(self.wanted, vector.name, numbers)
        return floats or 1

    def is_light(self, sites: int) -> bool:
        """Whether compiling a pass over this many sites takes longer than running all replicates."""
        return sites * self.times * self.footprint() <= LIGHT


def impulses_of(training: Training, wanted: Wanted) -> tuple[Vector, ...]:
    """Return the vectors with impulses in their equations, if two-time functions are requested."""
    return tuple(vector for vector in training.vectors if vector.role != "constant") if wanted else ()


def groups_of(training: Training, wanted: Wanted) -> tuple[tuple[str, ...], ...]:
    """Return the names of normals that belong to the same sites.

    Traits form separate groups, so that stratification does not depend on other draws; impulses come last, so that they
    do not change other draws.
    """
    groups = [group for group in training.groups if group]
    groups += [(f"traits_{sector}",) for sector in dict.fromkeys(trait.sector for trait in training.traits)]
    return (*groups, *((f"kick {vector.name}",) for vector in impulses_of(training, wanted)))
