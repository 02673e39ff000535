"""Helpers of the notebooks: a common style, sizes for full and quick runs, and the check of agreement."""

from __future__ import annotations

import math
import os
from typing import TypeVar

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import ArrayLike, NDArray

Size = TypeVar("Size")

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
"""The Okabe-Ito palette, safe for colour-blind readers."""
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
QUICK = bool(os.environ.get("NOTEBOOK_QUICK"))
"""Set NOTEBOOK_QUICK=1 to shorten a run to seconds; the tests do."""


def size(full: Size, quick: Size) -> Size:
    """Return the first value in a full run of a notebook, the second in a quick one."""
    return quick if QUICK else full


def use_style() -> None:
    """Set the style of a paper: small figures, thin lines, colours that print in grey."""
    plt.rcParams.update(
        {
            "figure.figsize": (4.6, 3.1),
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "font.size": 9,
            "axes.labelsize": 10,
            "axes.titlesize": 10,
            "legend.fontsize": 8,
            "legend.frameon": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": plt.cycler(color=COLOURS),
            "lines.linewidth": 1.5,
            "lines.markersize": 4.5,
            "image.cmap": "cividis",
        }
    )


def mean_and_error(draws: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean over the first axis, the seeds, and its standard error."""
    seeds = np.asarray(draws, float)
    return seeds.mean(axis=0), seeds.std(axis=0, ddof=1) / math.sqrt(len(seeds))


class Agreement:
    """Collects comparisons of theory with simulation; `check` prints them and fails if a difference is too large."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, float, float, float]] = []

    def add(
        self, what: str, theory: float, draws: ArrayLike, theory_error: float = 0.0, allowance: float = 0.0
    ) -> None:
        """Add a comparison. draws: one number per seed. allowance: an additional tolerance for finite-size corrections,
        such as 3 / N times the value.
        """
        mean, error = mean_and_error(draws)
        self.rows.append((what, float(theory), float(mean), math.hypot(float(error), theory_error), allowance))

    def check(self, within: float = 3.5) -> None:
        """Print all rows and assert that each differs by at most `within` standard errors plus its allowance."""
        apart = []
        for what, theory, mean, error, allowance in self.rows:
            off = (mean - theory) / error if error > 0 else math.copysign(math.inf, mean - theory) * (mean != theory)
            note = f" (allowing {allowance:.2g})" if allowance else ""
            print(f"{what:44s} theory {theory:10.5f}   simulation {mean:10.5f} +- {error:.5f}   {off:+5.1f}{note}")
            if not abs(mean - theory) <= within * error + allowance:
                apart.append(what)
        assert not apart, f"theory and simulation differ: {', '.join(apart)}"
        print(f"all {len(self.rows)} within {within} standard errors")
