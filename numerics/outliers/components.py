"""A(z) as a direct sum over the irreducible representations of permutations of its labels.

For equivalent labels, every order parameter is a delta_cd + b over two labels. It equals a + C b on the sum over labels
and a on each of the C - 1 differences; on each of these A(z) is that of a single label with this order parameter.
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
from numerics.runtime.labels import ComponentTable, tables_of
from numerics.runtime.point import Point, replaced
from numerics.runtime.program import AlikeLabels, size_of


@dataclass(frozen=True)
class Component:
    """A direct summand of A(z) as a separate problem, with its multiplicity. labels: the number of labels."""

    problem: SpikedProblem
    multiplicity: int = 1
    labels: int = 1

    def steps(self, steps: Steps) -> Steps:
        """The dependence of the summand on time, if the whole depends on time."""
        strides: Any = {key: tuple(one // self.labels for one in axes) for key, axes in steps.strides.items()}
        return replace(steps, strides=strides)


def components_of(problem: SpikedProblem) -> tuple[Component, ...]:
    """Return the direct summands of A(z), or A(z) as a whole if labels are inequivalent or there is only one."""
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
    """Return a point and its order parameters for a single label, if A(z) is the same for each; otherwise unchanged."""
    alike = probe.alike
    if alike is None or alike.components > 1:
        return p, order
    return _with_one_label(p, alike), component_orders(order, size_of(p, alike.axes), 1)[0]


def _with_one_label(p: Point, alike: AlikeLabels) -> Point:
    """Return the point of a summand."""
    return replaced(p, **dict.fromkeys(alike.axes, 1))


def component_orders(order: Order, labels: int, components: int) -> tuple[dict[OrderKey, Array], ...]:
    """Return the order parameters of each summand: those of the sum over labels and of a difference, or those of any
    single label.
    """
    found: list[dict[OrderKey, Array]] = [{} for _ in range(components)]
    for key, table in tables_of(order).items():
        if isinstance(table, ComponentTable):
            if not (table.left and table.right):
                continue  # A(z) of a summand has labels alone
            values = table.eigenvalues()[-components:]
        elif key.kind not in ("C", "R"):
            values = (table,) * components
        elif components == 1:
            values = (table[::labels, ::labels],)
        else:
            same, other = table[::labels, ::labels], table[::labels, 1::labels]
            values = (same + (labels - 1) * other, same - other)
        for one, value in zip(found, values, strict=True):
            one[key] = value
    return tuple(found)


def joined_paths(courses: Sequence[Course], parts: Sequence[Component]) -> Course:
    """Return the outliers of A(z) at every time from those of its summands."""
    if len(parts) == 1 and parts[0].multiplicity == 1:
        return courses[0]
    path = [
        (repeated([now for now, _ in at_time], parts), at_time[0][1])  # summands share the bulk
        for at_time in zip(*(course.path for course in courses), strict=True)
    ]
    return Course(path, [])


def repeated(values: Iterable[Sequence[float]], parts: Sequence[Component]) -> list[float]:
    """Return the numbers of each summand, repeated by its multiplicity, in descending order."""
    found = [z for some, part in zip(values, parts, strict=True) for z in some for _ in range(part.multiplicity)]
    return sorted(found, reverse=True)
