"""The quadrature closure: nonlinear laws of Gaussian fields as coefficient rows, with averages by Gaussian quadrature.

A law is the sum of its projection on the Gaussian variables of its site (Stein's lemma) and an uncorrelated remainder.
The remainders of all laws of a sector form a channel of their own, whose covariances the closure computes. The exact
forward pass then proceeds as if all laws were linear. If sites have traits, this is done in each group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp

from .exact import Axes as Extents, part, products, put, store
from .gaussian import (
    average,
    columns,
    columns_each,
    dual_each,
    facts,
    overlaps_each,
    own,
    part_each,
    products_each,
    projection,
    residuals,
    terms,
)
from .point import Point
from .program import Integrand, Training, Vector, Wanted
from .rows import ExactClosure, Rows, channel_of_laws

Array = Any


class QuadratureClosure(ExactClosure):
    """The quadrature closure at one point. nodes: quadrature nodes per axis, and nodes of a density.

    Two-time functions require correlations of more pairs of laws than the forward pass does.
    """

    def __init__(self, training: Training, p: Point, times: int, wanted: Wanted = (), nodes: int = 1):
        self.laws = {} if training.laws is None else training.laws(p)
        self.meetings = _meetings(training, wanted)
        met = [pair for others in self.meetings.values() for pair in others.items()]
        self.remembered = tuple(dict.fromkeys(name for name, together in met if not together))
        """Laws whose products with others are averaged at all pairs of times."""
        self.arguments = {name for law in self.remembered for name in self.laws[law].arguments}
        super().__init__(training, p, times, wanted, nodes)
        constants = [vector for vector in training.vectors if vector.role == "constant"]
        self.ones = {vector.sector: self.blocks[vector.name] for vector in reversed(constants)}

    def carried(self) -> dict[str, Extents]:
        """Return the axes of the loop state."""
        axes = super().carried()
        for sector, place in self.sites.items():
            key = f"covariance {channel_of_laws(sector)}"
            if key in axes and place.traits:
                axes[key] = ((place.groups,), *axes[key])
        for name in self.remembered:
            lines = self._lines(self.laws[name]) * (self.times if self.vectors[name].timed else 1)
            axes[f"facts {name}"] = ((lines,), (self._width(self.laws[name]),))
        return axes

    def _lines(self, law: Integrand) -> int:
        """Return the number of rows of a law's record at one time: one per label and group of sites."""
        return self.labels[law.arguments[0]] * self.site_of(law.arguments[0]).groups

    def _width(self, law: Integrand) -> int:
        """Return the number of columns of a law's record."""
        k = len(law.arguments)
        width = 2 + 2 * k + k * (k + 1) // 2 + law.numbers + len(law.traits)
        return width + terms(self.nodes) if law.law.expanded else width

    def _is_kept(self, vector: Vector) -> bool:
        """Whether the past of a vector is stored."""
        return super()._is_kept(vector) or vector.name in self.arguments

    def begin(self, t: Array, state: Mapping[str, Array]) -> None:
        """Load the loop state at time t."""
        super().begin(t, state)
        self.values: dict[str, Rows] = {}
        self.facts: dict[str, Array] = {}
        """What is known of the laws at the current time."""
        self.duals_each: dict[tuple[str, int], tuple[int, Array]] = {}

    # -- laws

    def law(self, name: str, arguments: tuple[Rows, ...], numbers: tuple[Array, ...] = ()) -> Rows:
        """Return the rows of a law at the current time: its projection, plus its remainder as a variable of its own."""
        if name not in self.values:
            law, vector, block = self.laws[name], self.vectors[name], self.blocks[name]
            record = facts(self.nodes, law.law, *self._moments(law, arguments, numbers), self._holds(name))
            rows = projection(law.law, record, tuple(x.rows for x in arguments), self.ones[vector.sector])
            rows = rows + own(block, self.t if vector.timed else 0, record)
            self.facts[name] = record
            if name in self.remembered:
                history = self.state[f"facts {name}"]
                self.state[f"facts {name}"] = store(history, record, self.t) if vector.timed else record
            for other, together in self.meetings.get(name, {}).items():
                self._meet(name, arguments, other, together)
            self.known[vector.sector] += 1
            self.known_after[name] = self.known[vector.sector]
            self.values[name] = Rows(self, rows, name=name)
        return self.values[name]

    def average(
        self,
        name: str,
        arguments: tuple[Rows, ...],
        numbers: tuple[Array, ...] = (),
        factor: Callable[..., Array] | None = None,
        *traits: str,
    ) -> Array:
        """Return the mean of a law over sites, as a column over labels or as a number. factor: a function of traits
        that multiplies the law inside the mean."""
        law, first = self.laws[name], self.vectors[self.laws[name].arguments[0]]
        column = average(self.nodes, law.law, *self._moments(law, arguments, numbers))
        place = self.sites[first.sector]
        if place.traits:
            values = (place.traits[self._place(first.sector, trait)] for trait in traits)
            weights = place.weights if factor is None else place.weights * factor(*values)
            column = column.reshape(-1, place.groups) @ weights[:, None]
        return column if first.axes else column.reshape(())

    def _moments(
        self, law: Integrand, arguments: tuple[Rows, ...], numbers: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], tuple[Array, ...], Array]:
        """Return second moments and means of the arguments of a law, and its numbers, one row per label and group of
        sites."""
        first = law.arguments[0]
        sector, labels, place = self.vectors[first].sector, self.labels[first], self.site_of(first)
        one, pairs = self.ones[sector], [(a, b) for i, a in enumerate(arguments) for b in arguments[: i + 1]]
        if not place.traits:
            grams = tuple(products(self.dual(a, b), b.rows) for a, b in pairs)
            return grams, tuple(part(a.rows, one) for a in arguments), columns(numbers, labels)
        grams = tuple(products_each(self._dual_each(a, b.name or ""), b.rows, place) for a, b in pairs)
        traits = tuple(self._place(sector, trait) for trait in law.traits)
        return grams, tuple(part_each(a.rows, one) for a in arguments), columns_each(numbers, labels, place, traits)

    def _dual_each(self, value: Rows, other: str) -> Array:
        """Return dual rows in each group of sites, without the weights of the groups."""
        key, needed = (value.name or "", value.lag), self.known_after.get(other, 0)
        if key not in self.duals_each or self.duals_each[key][0] < needed:
            sector = self.vectors[key[0]].sector
            seen = dual_each(value.rows, self.sites[sector], *self.covariances_of(sector))
            self.duals_each[key] = (self.known[sector], seen)
        return self.duals_each[key][1]

    def _holds(self, name: str) -> Array:
        """Return 1 if the law applies at the current time, else 0."""
        first, end = self.laws[name].holds
        if not self.vectors[name].timed or (first == 0 and end is None):
            return 1.0
        return jnp.where(jnp.equal(self.t, first) if end is not None else jnp.greater_equal(self.t, first), 1.0, 0.0)

    # -- laws that meet

    def _meet(self, name: str, arguments: tuple[Rows, ...], other: str, together: bool) -> None:
        """Insert the covariances of the remainders of two laws symmetrically, at the times computed so far."""
        vector, after = self.vectors[name], self.vectors[other]
        is_known = other in self.facts or (vector.timed and not after.timed)
        if (after.timed and not vector.timed) or ((together or not after.timed) and not is_known):
            return
        a, b, place = self.laws[name], self.laws[other], self.sites[vector.sector]
        crosses = tuple(self._crossed(x, y, together) for x in arguments for y in b.arguments)
        shared: tuple[tuple[int, int], ...] = ()
        if together and not vector.axes and not after.axes:
            shared = tuple((i, b.arguments.index(x)) for i, x in enumerate(a.arguments) if x in b.arguments)
        there = self.facts[other] if together else self.state[f"facts {other}"]
        groups = place if place.traits else None
        values = residuals(self.nodes, a.law, self.facts[name], b.law, there, crosses, shared, groups)
        when, column = (self.t, self.t if together else None) if vector.timed else (0, None)
        key = f"covariance {channel_of_laws(vector.sector)}"
        self.state[key] = put(self.state[key], self.blocks[name], when, self.blocks[other], column, values)
        if other == name:
            self._watch(name, values)

    def _crossed(self, value: Rows, name: str, together: bool) -> Array:
        """Return means of products of a value with another vector, now or at all times; per group if sites have
        traits."""
        place = self.site_of(name)
        if not place.traits:
            other = self._value(name) if together else None
            return self.with_past(value, name) if other is None else self.dual(value, other) @ other.rows.T
        seen = self._dual_each(value, name)
        if together:
            return overlaps_each(seen, self._value(name).rows, place)
        return self.read(name, overlaps_each(seen, self.past(name).whole(), place))


def _meetings(training: Training, wanted: Wanted) -> dict[str, dict[str, bool]]:
    """Return, for each law, the laws with which its correlations are needed, and whether only at equal times."""
    partners: dict[str, dict[str, bool]] = {}

    def meet(a: str, b: str, together: bool) -> None:
        for one, two in ((a, b), (b, a)):
            met = partners.setdefault(one, {})
            met[two] = met.get(two, True) and together

    for meeting in training.meetings:
        meet(meeting.a, meeting.b, meeting.together)
    for kind, a, b in wanted:
        if kind == "C":
            for one in training.carried.get(a, ()):
                for two in training.carried.get(b, ()):
                    meet(one, two, False)
    return partners
