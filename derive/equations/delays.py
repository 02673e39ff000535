"""The shortest delay of each impulse response: shortest paths in the graph of dependencies."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from derive.language.vectors import Field
from derive.records.saddle import Edge


def shortest_delays(fields: tuple[Field, ...], edges: Iterable[Edge]) -> tuple[tuple[Field, Field, int], ...]:
    """Return triples (a, b, n): n is the shortest delay of the response of a to an impulse in b, if there is one."""
    place = {field: i for i, field in enumerate(fields)}
    onward: list[dict[int, int]] = [{} for _ in fields]
    for edge in edges:
        if not edge.through_mean and edge.source in place:
            step, target = onward[place[edge.source]], place[edge.target]
            step[target] = min(edge.lag, step.get(target, edge.lag))
    delays = []
    for origin in range(len(fields)):
        reached: dict[int, int] = {}
        waiting = [(0, origin)]
        while waiting:
            delay, here = heapq.heappop(waiting)
            if here not in reached:
                reached[here] = delay
                for target, lag in onward[here].items():
                    if target not in reached:
                        heapq.heappush(waiting, (delay + lag, target))
        delays += [(fields[target], fields[origin], delay) for target, delay in sorted(reached.items())]
    return tuple(delays)
