"""Two-time functions of one sample at finite size: means over sites, and responses to small random sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numerics.runtime.interface import Setting
from numerics.runtime.keys import OrderKey
from numerics.runtime.two_time import Wanted
from numerics.two_time import NoTwoTime

KICKS = 1
"""Distinguishes the random numbers of sources from those of the sample."""
KICK = 1e-4
"""Size of the sources; differences of two runs then have eight digits."""


def check_declared(setting: Setting, wanted: Wanted) -> None:
    """Refuse fields that exist only in the derivation."""
    made = {f.name for f in setting.fields if not f.declared}
    for name in wanted:
        missing = [f for f in name[1:] if f in made]
        if missing:
            raise NoTwoTime(
                f"{name}: {missing[0]} exists only in the derivation, not in a simulation; give it an equation of "
                "its own, or use the theory alone"
            )


class FollowedFields:
    """The requested fields of one sample."""

    def __init__(self, wanted: Wanted, convert: Callable[[Any], Any]):
        self.wanted, self.convert = wanted, convert
        self.fields: dict[str, np.ndarray] = {}

    def take(self, fields: Mapping[str, Any]) -> None:
        """Store fields as times x sites x labels."""
        names = dict.fromkeys(field for name in self.wanted for field in name[1:])
        self.fields = {name: self._series(fields[name]) for name in names}

    def _series(self, field: Any) -> np.ndarray:
        if hasattr(field, "ndim"):
            return np.asarray(self.convert(field))[None]
        return np.stack([np.asarray(self.convert(field[time])) for time in range(len(field))])

    def two_time(self, run: Callable[..., Any], seed: np.random.SeedSequence) -> dict[OrderKey, np.ndarray]:
        """Return arrays of times of a x labels of a x times of b x labels of b. run: runs a sample with sources, from a
        generator. seed: the seed of this sample.
        """
        found: dict[OrderKey, np.ndarray] = {}
        for kind, a, b in self.wanted:
            if kind == "C":
                left, right = self.fields[a], self.fields[b]
                found[OrderKey(kind, a, b)] = np.einsum("tic,sid->tcsd", left, right) / left.shape[1]
        kicks = np.random.Generator(np.random.PCG64([*seed.generate_state(4).tolist(), KICKS]))
        for kicked in dict.fromkeys(b for kind, _, b in self.wanted if kind == "R"):
            # every site gets its own sign: what sites do to each other averages out
            signs = kicks.choice((-1.0, 1.0), self.fields[kicked].shape)
            sides = []
            for size in (KICK, -KICK):
                moved = FollowedFields(self.wanted, self.convert)
                run(np.random.Generator(np.random.PCG64(seed)), kicks={kicked: size * signs}, follow=moved.take)
                sides.append(moved.fields)
            for kind, a, b in self.wanted:
                if kind == "R" and b == kicked:
                    slopes = (sides[0][a] - sides[1][a]) / (2 * KICK)
                    found[OrderKey(kind, a, b)] = np.einsum("tic,sid->tcsd", slopes, signs) / slopes.shape[1]
        return found
