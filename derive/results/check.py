"""The result of testing a declaration against the laws that every declaration must obey."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from derive.results.made import Provenance
from derive.support.extras import optional
from numerics.support.formatting import html_table, table

if TYPE_CHECKING:
    import pandas

BROKE = "broke"
"""The status of a law that does not hold."""


@dataclass(frozen=True)
class LawTried:
    """The outcome for one law (it held, does not apply, was not decided, was not tried, or broke), the reason, and the
    compared declarations.

    `declarations` are the texts of the compared files; `derive solve` runs them.
    """

    law: str
    status: str
    reason: str = ""
    declarations: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Check:
    """The laws that were tested on a declaration at given values of its parameters.

    It is false in a condition if one of them is violated.

    >>> import derive
    >>> from derive.results import LawTried, Provenance
    >>> laws = LawTried("every symbol renamed", "held"), LawTried("other random numbers", "broke", "1 against 2")
    >>> check = derive.Check(Provenance("check", "my_model", "my_model.py", {"rate": 0.5}), laws)
    >>> bool(check), [law.reason for law in check.broken]
    (False, ['1 against 2'])
    """

    made: Provenance
    laws: tuple[LawTried, ...]

    def __bool__(self) -> bool:
        return not self.broken

    def __iter__(self) -> Iterator[LawTried]:
        return iter(self.laws)

    @property
    def broken(self) -> tuple[LawTried, ...]:
        """The laws that broke."""
        return tuple(law for law in self.laws if law.status == BROKE)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the keys that `derive check --json` prints."""
        return {
            "setting": self.made.setting,
            "parameters": dict(self.made.parameters),
            "laws": [
                {"law": law.law, "status": law.status, "reason": law.reason, "declarations": list(law.declarations)}
                for law in self.laws
            ],
        }

    def to_frame(self) -> pandas.DataFrame:
        """One row per law: its name, status, reason, and time in seconds."""
        pandas = optional("pandas")

        columns = ("law", "status", "reason", "seconds")
        return pandas.DataFrame([{name: getattr(law, name) for name in columns} for law in self.laws])

    def _rows(self) -> list[tuple[str, str]]:
        return [(law.law, f"{law.status}: {law.reason}" if law.reason else law.status) for law in self.laws]

    def __repr__(self) -> str:
        return "\n".join([self.made.point, *table(self._rows())])

    def _repr_html_(self) -> str:
        return html_table(self.made.point, self._rows())
