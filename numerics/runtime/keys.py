"""Names of order parameters and moments: a kind, and the vectors, numbers or sectors to which it refers."""

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

    It equals the tuple (kind, *of) that generated code writes, and has the same hash and order.

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
        """The object of the key: names of vectors, the number of a mean, or a sector."""
        return tuple(self[1:])

    def __str__(self) -> str:
        return f"{self.kind}[{','.join(map(str, self.of))}]"

    __repr__ = __str__


def keyed(table: Mapping[Any, V]) -> dict[OrderKey, V]:
    """Return a table of generated code with keys."""
    return {OrderKey(*key): value for key, value in table.items()}


def keys_of(names: Iterable[tuple[Any, ...]]) -> tuple[OrderKey, ...]:
    """Return names from generated code as keys."""
    return tuple(OrderKey(*name) for name in names)
