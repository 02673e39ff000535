"""Records of the checks of a solution: the compared quantity, the tolerance, and the outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from time import perf_counter
from typing import Any, Literal

from numerics.support.formatting import counted

Status = Literal["passed", "failed", "not checked"]


@dataclass(frozen=True)
class CertificateCheck:
    """One comparison of a solution with an independent computation.

    Attributes:
        name: "outliers", "bulk" or "training".
        layer: the label of the probed matrix, if there are several.
        what: the quantity compared.
        value, expected: the values from the solution and from the check. closeness: the tolerance.
        note: why the comparison was omitted, or what it leaves out.
        seconds: the time that it took, which is not saved.
    """

    name: str
    layer: str
    what: str
    value: float | None
    expected: float | None
    closeness: float
    status: Status
    note: str = ""
    seconds: float = field(default=0.0, compare=False, metadata={"live": True})

    def as_dict(self) -> dict[str, Any]:
        """Return the check as plain data, without its time."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "seconds"}

    @property
    def passed(self) -> bool:
        """Whether the comparison was made and the values agree."""
        return self.status == "passed"

    @property
    def place(self) -> str:
        """The name, with the layer if there are several."""
        return f"{self.name} of layer {self.layer}" if self.layer else self.name

    @property
    def sentence(self) -> str:
        """Return a sentence about the failure."""
        value = "nothing" if self.value is None else f"{self.value:.6g}"
        wanted = "nothing" if self.expected is None else f"{self.expected:.6g}"
        return f"the certificate fails: {self.place}, {self.what}, {value} instead of {wanted}"


@dataclass(frozen=True)
class Certificate:
    """All checks of a solution; falsy if one of them failed."""

    checks: tuple[CertificateCheck, ...]

    def __bool__(self) -> bool:
        return not self.failed

    def __iter__(self) -> Iterator[CertificateCheck]:
        return iter(self.checks)

    @property
    def failed(self) -> tuple[CertificateCheck, ...]:
        return tuple(check for check in self.checks if check.status == "failed")

    @property
    def seconds(self) -> float:
        """The time of all checks."""
        return sum(check.seconds for check in self.checks)

    @property
    def summary(self) -> str:
        """Return one line on the numbers of checks made and passed."""
        counts = {status: sum(check.status == status for check in self.checks) for status in _TOLD}
        parts = [f"{count} {_TOLD[status]}" for status, count in counts.items() if count]
        passed = counts["passed"]
        if passed:
            parts[0] = f"{counted(passed, 'check')} passed"
        return ", ".join(parts) or "nothing to check"

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return one row per check: name, quantity, agreement, outcome."""
        return [(check.place, check.what, _closely(check), check.status) for check in self.checks]

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
        lines = ["  ".join([*(row[k].ljust(widths[k]) for k in range(3)), row[3]]) for row in rows]
        return "\n".join([f"certificate: {self.summary}", *(f"  {line}" for line in lines)])

    __repr__ = __str__


_TOLD = {"passed": "passed", "failed": "failed", "not checked": "not checked"}


def _closely(check: CertificateCheck) -> str:
    """Return the agreement of value and expectation as text, or the reason why they were not compared."""
    if check.value is None or check.expected is None:
        return check.note
    if check.closeness == 0:
        return (
            f"{check.value:.6g} = {check.expected:.6g}"
            if check.passed
            else f"{check.value:.6g}, not {check.expected:.6g}"
        )
    off = abs(check.value - check.expected)
    return f"off by {off:.1e}, at most {check.closeness:.1e}"


class Stopwatch:
    """Wall time since its start."""

    def __init__(self) -> None:
        self.begun = perf_counter()

    @property
    def seconds(self) -> float:
        return perf_counter() - self.begun
