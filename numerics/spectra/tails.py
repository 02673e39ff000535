"""Power-law tail of a spectrum: the density of eigenvalues above a start falls as eigenvalue^-exponent.

The method is that of Clauset, Shalizi and Newman (2009). The exponent above a given start is the maximum-likelihood
estimate, 1 + count / sum log(eigenvalue / start), which is Hill's estimator; the start is where the Kolmogorov-Smirnov
distance is smallest. The standard error is the spread over bootstrap samples, each with its own start. Goodness of fit
is the fraction of synthetic spectra, a drawn tail above a resampled body, that fit worse. Vuong's test compares the
likelihood with that of an exponential tail above the same start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LEAST_COUNT = 25
"""Fewest eigenvalues of a tail; the relative error of the exponent minus one is then a fifth."""
STARTS = 40
"""Number of starts that are tried, evenly spaced in the logarithm of the count."""
SAMPLES = 100
"""Bootstrap samples: the error is then known to 7 percent, and a p-value of 0.1 to 0.03."""
LEAST_FIT = 0.1
"""p-value of the fit below which a power law is ruled out, as its authors recommend."""
LEAST_PREFERENCE = 1.645
"""Standard errors by which a power law must beat an exponential: one-sided, one chance in twenty."""


@dataclass(frozen=True)
class PowerTail:
    """A power law fitted to the largest eigenvalues of W^T W / rows; singular values have exponent 2 exponent - 1.

    Attributes:
        error: standard error of the exponent, including the choice of the start.
        start: smallest eigenvalue of the tail.
        count: number of eigenvalues in the tail.
        distance: Kolmogorov-Smirnov distance of the tail from its law.
        p_value: probability that a true power law fits worse; None if it was not computed.
        preference: log-likelihood ratio to an exponential tail, in standard errors; positive for the power law.
    """

    exponent: float
    error: float
    start: float
    count: int
    distance: float
    p_value: float | None
    preference: float

    @property
    def doubts(self) -> tuple[str, ...]:
        """Results of tests that speak against a power law."""
        bad_fit = self.p_value is not None and self.p_value < LEAST_FIT
        reasons = [f"a power law fits badly (p = {self.p_value:.2g})"] if bad_fit else []
        if self.preference < LEAST_PREFERENCE:
            reasons.append("an exponential tail fits about as well or better")
        return tuple(reasons)


@dataclass(frozen=True)
class _Hill:
    """The best start of the tail in a sample of logarithms, and the law above it."""

    count: int
    rate: float
    distance: float
    start: float


def fit_tail(eigenvalues: np.ndarray, goodness: bool) -> PowerTail | None:
    """Return the power law of the largest of some positive eigenvalues; None if there are too few.

    goodness: whether to compute the p-value, which doubles the time.
    """
    logs = np.sort(np.log(eigenvalues))[::-1]
    if len(logs) < LEAST_COUNT or logs[0] == logs[LEAST_COUNT - 1]:
        return None
    best = _best_start(logs)
    rng = np.random.default_rng(0)
    rates = [_best_start(np.sort(rng.choice(logs, len(logs)))[::-1]).rate for _ in range(SAMPLES)]
    return PowerTail(
        exponent=1.0 + best.rate,
        error=float(np.std(rates, ddof=1)),
        start=math.exp(best.start),
        count=best.count,
        distance=best.distance,
        p_value=_goodness_of_fit(logs, best, rng) if goodness else None,
        preference=_preference(logs[: best.count] - best.start),
    )


def _best_start(logs: np.ndarray) -> _Hill:
    """Return the start, among those tried, whose tail is nearest to its power law."""
    counts = np.unique(np.geomspace(LEAST_COUNT, len(logs), STARTS).astype(int))
    starts = logs[counts - 1]
    spread = np.cumsum(logs)[counts - 1] - counts * starts
    rates = counts / np.maximum(spread, 1e-12 * counts)
    beyond = np.exp(-rates[:, None] * np.maximum(logs - starts[:, None], 0.0))
    rank = np.arange(len(logs))
    gaps = np.maximum(np.abs(beyond - rank / counts[:, None]), np.abs(beyond - (rank + 1) / counts[:, None]))
    distances = np.where(rank < counts[:, None], gaps, 0.0).max(axis=1)
    place = int(np.argmin(distances))
    return _Hill(int(counts[place]), float(rates[place]), float(distances[place]), float(starts[place]))


def _goodness_of_fit(logs: np.ndarray, best: _Hill, rng: np.random.Generator) -> float:
    """Return the fraction of synthetic spectra that lie farther from their power law."""
    body, worse = logs[best.count :], 0
    for _ in range(SAMPLES):
        count = int(rng.binomial(len(logs), best.count / len(logs))) if len(body) else len(logs)
        tail = best.start + rng.exponential(1.0 / best.rate, count)
        inner = rng.choice(body, len(logs) - count) if count < len(logs) else body[:0]
        worse += _best_start(np.sort(np.concatenate([inner, tail]))[::-1]).distance >= best.distance
    return worse / SAMPLES


def _preference(excess: np.ndarray) -> float:
    """Return Vuong's statistic of power law against exponential, for logarithms above the start."""
    ratio = np.exp(np.minimum(excess, 700.0))
    rate, mean = 1.0 / excess.mean(), ratio.mean() - 1.0
    gain = (math.log(rate) - (rate + 1.0) * excess) - (-math.log(mean) - (ratio - 1.0) / mean)
    return float(gain.sum() / (gain.std() * math.sqrt(len(gain)))) if gain.std() > 0.0 else 0.0
