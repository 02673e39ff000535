"""A(z) as a direct sum over the irreducible representations of permutations of its labels.

Where labels are alike, every order parameter is a delta_cd + b over two labels. On the sum over labels it is a + C b,
and on each of the C - 1 differences it is a: A(z) is there what it would be with one label and these order parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numerics.outliers.paths import Course
from numerics.outliers.problem import SpikedProblem
from numerics.outliers.restriction import Steps
from numerics.runtime.interface import Array, Order, Probe
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import Point, replaced
from numerics.runtime.program import AlikeLabels, size_of


@dataclass(frozen=True)
class Component:
    """A direct summand of A(z) as a problem of its own, and how often it is there. labels: how many there are."""

    problem: SpikedProblem
    multiplicity: int = 1
    labels: int = 1

    def steps(self, steps: Steps) -> Steps:
        """How the summand depends on time, where the whole does so."""
        strides: Any = {key: tuple(one // self.labels for one in axes) for key, axes in steps.strides.items()}
        return replace(steps, strides=strides)


def components_of(problem: SpikedProblem) -> tuple[Component, ...]:
    """The direct summands of A(z); the whole where labels differ or there is one."""
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
    """A point and its order parameters as they are for one label, where A(z) is the same for each; else unchanged."""
    alike = probe.alike
    if alike is None or alike.components > 1:
        return p, order
    return _with_one_label(p, alike), component_orders(order, size_of(p, alike.axes), 1)[0]


def _with_one_label(p: Point, alike: AlikeLabels) -> Point:
    """The point of a summand."""
    return replaced(p, **dict.fromkeys(alike.axes, 1))


def component_orders(order: Order, labels: int, components: int) -> tuple[dict[OrderKey, Array], ...]:
    """The order parameters of each summand: of the sum over labels and of a difference, or of any label."""
    found: list[dict[OrderKey, Array]] = [{} for _ in range(components)]
    for key, table in order.items():
        if key.kind not in ("C", "R"):
            values = [table] * components
        elif components == 1:
            values = [table[::labels, ::labels]]
        else:
            same, other = table[::labels, ::labels], table[::labels, 1::labels]
            values = [same + (labels - 1) * other, same - other]
        for one, value in zip(found, values, strict=True):
            one[key] = value
    return tuple(found)


def joined_paths(courses: Sequence[Course], parts: Sequence[Component]) -> Course:
    """Outliers of the whole at every time, from those of its summands."""
    if len(parts) == 1 and parts[0].multiplicity == 1:
        return courses[0]
    path = [
        (repeated([now for now, _ in at_time], parts), at_time[0][1])  # summands share the bulk
        for at_time in zip(*(course.path for course in courses), strict=True)
    ]
    return Course(path, [])


def repeated(values: Iterable[Sequence[float]], parts: Sequence[Component]) -> list[float]:
    """Numbers of each summand as often as it is there, descending."""
    found = [z for some, part in zip(values, parts, strict=True) for z in some for _ in range(part.multiplicity)]
    return sorted(found, reverse=True)
