"""Names of order parameters and moments: a kind, and the vectors, numbers or sectors that it is of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

KINDS = {
    "C": "correlation over times",
    "R": "response over times",
    "M": "mean that weighs updates",
    "F": "mean at a fixed time",
    "S": "law of the values on a diagonal",
    "W": "means for each value on a diagonal",
    "G": "Gram matrix of the normals of a noise",
    "K": "correlation with the normals of a noise, or an impulse",
}
V = TypeVar("V")


class OrderKey(tuple[Any, ...]):
    """The name of an order parameter, printed as C[a,b].

    It is equal to the tuple (kind, *of), which generated code writes, and is hashed and sorted as that.

    >>> key = OrderKey("C", "a", "b")
    >>> key.kind, key.of, str(key), key == ("C", "a", "b")
    ('C', ('a', 'b'), 'C[a,b]', True)
    """

    __slots__ = ()

    def __new__(cls, kind: str, *of: str | int) -> OrderKey:
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not a kind of order parameter; the kinds are {', '.join(KINDS)}")
        return super().__new__(cls, (kind, *of))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    @property
    def kind(self) -> str:
        return str(self[0])

    @property
    def of(self) -> tuple[Any, ...]:
        """What it is of: names of vectors, the number of a mean, or a sector."""
        return tuple(self[1:])

    def __str__(self) -> str:
        return f"{self.kind}[{','.join(map(str, self.of))}]"

    __repr__ = __str__


def keyed(table: Mapping[Any, V]) -> dict[OrderKey, V]:
    """A table that generated code has written, by keys."""
    return {OrderKey(*key): value for key, value in table.items()}


def keys_of(names: Iterable[tuple[Any, ...]]) -> tuple[OrderKey, ...]:
    """Names that generated code has written, as keys."""
    return tuple(OrderKey(*name) for name in names)
