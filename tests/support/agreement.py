"""Theory against simulation, judged as one family: how each comparison is made, and when all of them are too far off.

A comparison is a simulated mean, extrapolated to infinite size, minus what the theory says, with an error whose
distribution is known. Comparisons of one model share their samples and form a block; blocks are independent. The
family is held to a bound on the largest score, to the mean and to the spread of all scores, and to the stretch of the
distances of outliers from the bulk's edges. All of these together raise a false alarm in one of 10 000 seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from unittest.mock import patch
from zlib import crc32

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtri, stdtr

FALSE_ALARM = 1e-4
"""Chance that a right theory is called wrong somewhere in the suite."""
COMPARISONS, FAMILIES = 1000, 8
"""More than the suite makes, so that a bound does not depend on which tests are run."""
LARGEST = FALSE_ALARM / 4
MEAN = SPREAD = STRETCH = FALSE_ALARM / 4 / FAMILIES
BOUND = float(-ndtri(LARGEST / COMPARISONS / 2))
"""What no |score| of the suite exceeds, by Bonferroni's inequality, which correlations do not weaken."""
CURVATURE = 3.0
"""How large a coefficient of 1/size^2 may be, in units of that of 1/size, without counting as a wrong theory."""
FOLDS = 8
"""Parts of a sample, each corrected by slopes from the others."""
REPLICAS = 10
"""Fewest replicas behind the error of a sampled theory."""


@dataclass(frozen=True)
class Comparison:
    """Simulation minus theory at infinite size.

    influence: what every independent sample adds to the difference; its squares sum to the squared standard error, and
    its products with that of another comparison of the block to their covariance. freedom: degrees of freedom of that
    error. distance: for an outlier, how far the theory has it from the bulk, positive above it.
    """

    name: str
    theory: float
    difference: float
    influence: np.ndarray
    freedom: float
    theory_error: float = 0.0
    distance: float | None = None

    @property
    def stderr(self) -> float:
        return float(np.linalg.norm(self.influence))

    @property
    def error(self) -> float:
        return math.hypot(self.stderr, self.theory_error)

    @property
    def score(self) -> float:
        return normal_score(self.difference, self.error, self.freedom)

    def __str__(self) -> str:
        found = self.theory + self.difference
        return f"{self.name}: {self.theory:.5g} against {found:.5g} ({self.error:.2g}), score {self.score:+.1f}"


@dataclass(frozen=True)
class Block:
    """Comparisons that share their samples."""

    name: str
    comparisons: tuple[Comparison, ...]

    @property
    def scattered(self) -> Block:
        """Without what is exact in every sample, which has no part in statistics."""
        return Block(self.name, tuple(c for c in self.comparisons if c.error > 0))

    @property
    def outliers(self) -> Block:
        return Block(self.name, tuple(c for c in self.comparisons if c.error > 0 and c.distance is not None))

    @property
    def scores(self) -> np.ndarray:
        return np.array([c.score for c in self.comparisons])

    def correlations(self) -> np.ndarray:
        """Of the scores, from the samples; errors of the theory count as independent."""
        influences = np.array([c.influence / c.error for c in self.comparisons])
        found = influences @ influences.T
        np.fill_diagonal(found, 1.0)
        return found

    def combined(self, weights: np.ndarray) -> tuple[float, float, float]:
        """A weighted sum of the differences, its error and degrees of freedom; errors of the theory add up."""
        shared = weights @ np.array([c.influence for c in self.comparisons])
        theory = np.abs(weights) @ np.array([c.theory_error for c in self.comparisons])
        difference = weights @ np.array([c.difference for c in self.comparisons])
        return float(difference), math.hypot(np.linalg.norm(shared), theory), min(c.freedom for c in self.comparisons)


# -- one comparison


def normal_score(difference: float, error: float, freedom: float) -> float:
    """The normal deviate as unlikely as Student's t = difference / error."""
    if abs(difference) <= 1e-12 * error or difference == 0.0:
        return 0.0
    if error == 0.0:
        return math.copysign(math.inf, difference)
    return float(math.copysign(-ndtri(stdtr(freedom, -abs(difference) / error)), difference))


def mean_at_size(draws: np.ndarray, controls: np.ndarray | None = None) -> tuple[float, np.ndarray, int]:
    """Mean of the draws, the influence of each and the degrees of freedom.

    controls: one row per draw of numbers whose expectation is exactly zero. What they explain of the scatter is taken
    out, with slopes from the other draws: slopes from the same draws would shift the mean by a part of its error.
    """
    count = len(draws)
    left, columns = draws, 0
    if controls is not None and controls.shape[1]:
        scaled, columns = controls / np.sqrt(np.mean(controls**2, axis=0)), controls.shape[1]
        basis = np.hstack([np.ones((count, 1)), scaled])
        left = np.empty(count)
        for fold in range(FOLDS):
            held = np.arange(count) % FOLDS == fold
            slopes = np.linalg.lstsq(basis[~held], draws[~held], rcond=1e-9)[0][1:]
            left[held] = draws[held] - scaled[held] @ slopes
    return float(left.mean()), (left - left.mean()) / math.sqrt(count * (count - 1)), count - 1 - columns


def extrapolated(
    name: str,
    theory: float,
    sizes: Sequence[int],
    differences: Sequence[np.ndarray],
    controls: Sequence[np.ndarray | None] | None = None,
    theory_error: float = 0.0,
    distance: float | None = None,
) -> Comparison:
    """From samples minus theory at each size: the limit v of v + a / size, by least squares in the errors found.

    What a term in 1/size^2 would do to v counts as an error of the theory, the same for all comparisons of a block.
    With one size it is the mean there, which is right where corrections are smaller than the error.
    """
    found = [mean_at_size(d, c) for d, c in zip(differences, controls or [None] * len(sizes), strict=True)]
    rounding = 1e-11 * max(abs(theory), 1.0)
    if controls and min(np.linalg.norm(influence) for _, influence, _ in found) < rounding:
        # the controls say all of it: what they leave has no scatter to judge it by
        found = [mean_at_size(d) for d in differences]
    errors = np.maximum([np.linalg.norm(influence) for _, influence, _ in found], rounding)
    powers = np.array([[1.0, 1.0 / size] for size in sizes]) if len(sizes) > 1 else np.ones((1, 1))
    weights = np.linalg.pinv(powers / errors[:, None])[0] / errors
    influence = np.concatenate([w * i for w, (_, i, _) in zip(weights, found, strict=True)])
    parts = (weights * errors) ** 2
    freedom = (parts.sum() + theory_error**2) ** 2 / (
        np.sum(parts**2 / [f for _, _, f in found]) + theory_error**4 / (REPLICAS - 1)
    )
    means = np.array([mean for mean, _, _ in found])
    difference = float(weights @ means)
    if len(sizes) > 1:
        slope = np.linalg.lstsq(powers / errors[:, None], means / errors, rcond=None)[0][1]
        truncated = CURVATURE * abs(slope * (weights @ [size**-2.0 for size in sizes]))
        theory_error = math.hypot(theory_error, truncated)
    if np.linalg.norm(influence) < rounding and abs(difference) < 100 * rounding:
        difference, influence = 0.0, np.zeros_like(influence)
    return Comparison(name, theory, difference, influence, float(freedom), theory_error, distance)


# -- all of them


def too_far(blocks: Sequence[Block]) -> list[str]:
    """Comparisons beyond the bound of the suite."""
    return [f"{block.name}: {c}" for block in blocks for c in block.comparisons if not abs(c.score) <= BOUND]


def mean_score(blocks: Sequence[Block]) -> float:
    """The sum of all scores in units of its own error, normal under a right theory: common bias."""
    live = [block.scattered for block in blocks if block.scattered.comparisons]
    counts = np.array([len(block.comparisons) for block in live])
    scores = [normal_score(*b.combined(np.array([1 / c.error for c in b.comparisons]))) for b in live]
    return float(np.sqrt(counts) @ scores / math.sqrt(counts.sum()))


def stretch(blocks: Sequence[Block]) -> tuple[float, float]:
    """How much farther from the edges outliers are simulated than the theory has them, as a share, and its error.

    Each block gives its own least-squares share; their errors come from the samples and include correlations.
    """
    shares, errors = [], []
    for live in (block.outliers for block in blocks if block.outliers.comparisons):
        distances = np.array([c.distance for c in live.comparisons])
        weights = distances / np.array([c.error for c in live.comparisons]) ** 2
        share, error, freedom = live.combined(weights / (weights @ distances))
        shares.append(share)
        errors.append(error * _widening(freedom))
    precision = 1 / np.array(errors) ** 2
    return float(precision @ shares / precision.sum()), float(precision.sum() ** -0.5)


def _widening(freedom: float) -> float:
    """Student's standard deviation in place of the normal one, for errors from few samples."""
    return math.sqrt(freedom / (freedom - 2)) if math.isfinite(freedom) else 1.0


def spread_chances(blocks: Sequence[Block]) -> tuple[float, float]:
    """Upper bounds (Chernoff) on the chances of a sum of squared scores as large, and as small, as it is found."""
    live = [block.scattered for block in blocks if block.scattered.comparisons]
    found = sum(float(b.scores @ b.scores) for b in live)
    rates = np.concatenate([np.linalg.eigvalsh(b.correlations()) for b in live])
    rates = rates[rates > 1e-9]

    def exponent(s: float) -> float:
        return float(-s * found - np.sum(np.log1p(-2 * s * rates)) / 2)

    if found >= rates.sum():
        best = minimize_scalar(exponent, bounds=(0, (0.5 - 1e-9) / rates.max()), method="bounded").fun
        return math.exp(min(best, 0.0)), 1.0
    best = minimize_scalar(exponent, bounds=(-1e3 / rates.min(), 0), method="bounded").fun
    return 1.0, math.exp(min(best, 0.0))


def wrong(blocks: Sequence[Block]) -> list[str]:
    """Everything that a right theory would show in one of 10 000 seeds only; empty if there is nothing."""
    found = too_far(blocks)
    common = mean_score(blocks)
    if not abs(common) <= -ndtri(MEAN / 2):
        found.append(f"scores have a common bias: their sum is {common:+.1f} of its errors")
    wide, narrow = spread_chances(blocks)
    if wide < SPREAD / 2:
        found.append(f"scores are spread too widely: a chance of {wide:.1g}")
    if narrow < SPREAD / 2:
        found.append(f"scores are spread too little, so errors are too large: a chance of {narrow:.1g}")
    if any(block.outliers.comparisons for block in blocks):
        share, error = stretch(blocks)
        if not abs(share) <= -ndtri(STRETCH / 2) * error:
            found.append(f"outliers are {100 * share:+.2f}({100 * error:.2f}) percent off in their distance from edges")
    return found


def sees_stretch(blocks: Sequence[Block], share: float) -> bool:
    """Whether outliers off by this share of their distance from the edge are seen in all but one of 1000 seeds."""
    return (-ndtri(STRETCH / 2) + 3.1) * stretch(blocks)[1] < share


# -- what scatters for reasons that are known exactly

MOST_COLUMNS, MOST_MATRICES = 4, 4
"""Arrays with at most so many columns are vectors, one per column; matrices beyond the first few are left out."""


class Recording:
    """A random generator that keeps the normal numbers that it draws."""

    def __init__(self, rng: np.random.Generator):
        self.rng, self.drawn = rng, []
        self.permutation, self.random = rng.permutation, rng.random

    def standard_normal(self, shape=None):
        values = self.rng.standard_normal(shape)
        if np.ndim(values):
            self.drawn.append(values)
        return values


@contextmanager
def recorded(most: int | None = None) -> Iterator[Callable[[], np.ndarray]]:
    """Inside, every generator is one sample; the function returned gives the controls of all samples, at most so many
    of each."""
    make, rows, last = np.random.default_rng, [], []

    def finish() -> None:
        if last:
            rows.append(controls_of(last.pop().drawn, most))

    def new(seed=None) -> Recording:
        finish()
        last.append(Recording(make(seed)))
        return last[0]

    def table() -> np.ndarray:
        finish()
        return np.array(rows)

    with patch("numpy.random.default_rng", new):
        yield table


def controls_of(drawn: Sequence[np.ndarray], most: int | None = None) -> np.ndarray:
    """The first of the controls of what was drawn, all if None."""
    return np.fromiter(islice(_controls(drawn), most), float)


def _controls(drawn: Sequence[np.ndarray]) -> Iterator[float]:
    """Inner products of the normal vectors drawn, and of their products with the normal matrices drawn, minus their
    expectations: w.w has that of its length, |G w|^2 the product of the sides n by m of G, w.G G w the side of a square
    G, |G^T G w|^2 nm(n + m + 1), and with S = G + G^T w.S^4 w has 4n(2n^2 + 5n + 5); all others have none."""
    matrices = [a for a in drawn if a.ndim == 2 and min(a.shape) > MOST_COLUMNS][:MOST_MATRICES]
    plain = [v for a in drawn if a.ndim == 1 or min(a.shape) <= MOST_COLUMNS for v in _columns(a)]
    yield from (np.sum(m**2) - m.size for m in matrices)
    yield from (v @ v - len(v) for v in plain)
    yield from (u @ v for i, u in enumerate(plain) for v in plain[:i] if len(u) == len(v))
    right = {(k, j): m @ v for k, m in enumerate(matrices) for j, v in enumerate(plain) if len(v) == m.shape[1]}
    left = {(k, j): m.T @ v for k, m in enumerate(matrices) for j, v in enumerate(plain) if len(v) == m.shape[0]}
    made = [*right.items(), *left.items()]
    yield from (v @ v - matrices[k].size for (k, _), v in made)
    yield from (u @ v for u in plain for v in right.values() if len(u) == len(v))
    twice = [((k, j), matrices[k].T @ v) for (k, j), v in right.items()]
    twice += [((k, j), matrices[k] @ v) for (k, j), v in left.items()]
    yield from (v @ v - matrices[k].size * (sum(matrices[k].shape) + 1) for (k, _), v in twice)
    for k, j in [key for key in right if key in left]:
        n = len(plain[j])
        first = left[k, j] + right[k, j]
        second = matrices[k] @ first + matrices[k].T @ first
        yield from (first @ second, second @ second - 4 * n * (2 * n**2 + 5 * n + 5))
    yield from (u @ v for _, u in twice for _, v in made if len(u) == len(v))
    for i, (start, u) in enumerate(made):
        yield from (u @ v - (len(v) if start == other else 0) for other, v in made[:i] if len(u) == len(v))


def _columns(a: np.ndarray) -> list[np.ndarray]:
    return [a] if a.ndim == 1 else list(a.T if a.shape[1] <= MOST_COLUMNS else a)


def controls_for(seeds: int) -> int:
    """As many controls as so many samples can tell the slopes of."""
    return seeds // 6


def kept_controls(table: np.ndarray, seeds: int) -> np.ndarray:
    """As many of the controls, from the first, as the samples can tell the slopes of."""
    return table[:, : controls_for(seeds)] if table.ndim == 2 and len(table) == seeds else np.zeros((seeds, 0))


def seed_of(seed: int, *words: object) -> int:
    """A seed of its own for each sample that is drawn, from the one seed of the suite."""
    return int(np.random.SeedSequence([seed, crc32(repr(words).encode())]).generate_state(1)[0])
