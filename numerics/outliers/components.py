"""A(z) as a direct sum over the irreducible representations of permutations of its labels.

Where labels are alike, every order parameter is a delta_cd + b. On the symmetric representation it is a + C b, and on
the standard one, of dimension C - 1, it is a. On each, A(z) is that of one label with these order parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numerics.outliers.paths import Course
from numerics.outliers.problem import SpikedProblem
from numerics.outliers.restriction import Steps
from numerics.runtime.interface import Array, Key, Order, Probe
from numerics.runtime.point import Point, replaced
from numerics.runtime.program import AlikeLabels, size_of


@dataclass(frozen=True)
class Component:
    """A direct summand of A(z) as a problem of its own, with its multiplicity; labels: their number C."""

    problem: SpikedProblem
    multiplicity: int = 1
    labels: int = 1

    def steps(self, steps: Steps) -> Steps:
        """Return the time dependence of the summand from that of the whole."""
        strides: Any = {key: tuple(one // self.labels for one in axes) for key, axes in steps.strides.items()}
        return replace(steps, strides=strides)


def components_of(problem: SpikedProblem) -> tuple[Component, ...]:
    """Return the direct summands of A(z); the whole where labels differ or there is one."""
    alike = problem.probe.alike
    if alike is None or (labels := size_of(problem.p, alike.axes)) == 1:
        return (Component(problem),)
    p = _with_one_label(problem.p, alike)
    orders = component_orders(problem.order, labels, alike.components)
    counts = (labels,) if alike.components == 1 else (1, labels - 1)
    return tuple(
        Component(replace(problem, p=p, order=order), count, labels)
        for order, count in zip(orders, counts, strict=True)
    )


def at_one_label(probe: Probe, p: Point, order: Order) -> tuple[Point, Order]:
    """Return point and order parameters for one label, where A(z) is the same for each; else unchanged."""
    alike = probe.alike
    if alike is None or alike.components > 1:
        return p, order
    return _with_one_label(p, alike), component_orders(order, size_of(p, alike.axes), 1)[0]


def _with_one_label(p: Point, alike: AlikeLabels) -> Point:
    """Return the point of a summand."""
    return replaced(p, **dict.fromkeys(alike.axes, 1))


def component_orders(order: Order, labels: int, components: int) -> tuple[dict[Key, Array], ...]:
    """Return the order parameters of each summand: symmetric and standard representation, or any label."""
    orders: list[dict[Key, Array]] = [{} for _ in range(components)]
    for key, table in order.items():
        if key[0] not in ("C", "R"):
            values = [table] * components
        elif components == 1:
            values = [table[::labels, ::labels]]
        else:
            same, other = table[::labels, ::labels], table[::labels, 1::labels]
            values = [same + (labels - 1) * other, same - other]
        for one, value in zip(orders, values, strict=True):
            one[key] = value
    return tuple(orders)


def joined_paths(courses: Sequence[Course], parts: Sequence[Component]) -> Course:
    """Return the outliers of the whole at every time from those of its summands."""
    if len(parts) == 1 and parts[0].multiplicity == 1:
        return courses[0]
    path = [
        (repeated([now for now, _ in at_time], parts), max(top for _, top in at_time))
        for at_time in zip(*(course.path for course in courses), strict=True)
    ]
    return Course(path, [])


def repeated(values: Iterable[Sequence[float]], parts: Sequence[Component]) -> list[float]:
    """Return the numbers of each summand, repeated by multiplicity, descending."""
    found = [z for some, part in zip(values, parts, strict=True) for z in some for _ in range(part.multiplicity)]
    return sorted(found, reverse=True)
