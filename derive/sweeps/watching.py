"""Progress reports of a sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from derive.sweeps.units import Unit

Progress = Callable[[float, str], None]


class Watch:
    """Progress of a sweep: completed units, rate, and remaining time."""

    def __init__(self, progress: Progress | None, units: int) -> None:
        """Args:
        progress: the callback.
        units: number of missing units, if known.
        """
        self.progress, self.units = progress, units
        self.points = self.done = self.done_units = 0
        self.began = 0.0

    def start(self, missing: Sequence[Unit]) -> None:
        """Register the units that are computed next."""
        self.units, self.done = max(self.units, self.done_units + len(missing)), 0
        self.points = sum(len(unit.points) for unit in missing)
        self.what = "points" if missing[0].kind == "solve" else "samples"
        self.began = time.perf_counter()
        if self.progress is not None:
            self.progress(self.done_units / self.units, "starting and compiling")

    @property
    def inside(self) -> Progress | None:
        """The progress callback of a unit that this process computes."""
        if self.progress is None:
            return None

        def tell(fraction: float, text: str) -> None:
            if self.progress is not None:
                self.progress((self.done_units + fraction) / self.units, text)

        return tell

    def finished(self, unit: Unit) -> None:
        self.done_units += 1
        self.done += len(unit.points)
        if self.progress is None:
            return
        passed = time.perf_counter() - self.began
        rate = self.done / max(passed, 1e-9)
        left = (self.points - self.done) / rate
        self.progress(
            self.done_units / self.units,
            f"{self.done} of {self.points} {self.what}, {rate:.3g} a second, {shown_time(left)} left",
        )


def shown_time(seconds: float) -> str:
    """Return a duration as readable text."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
