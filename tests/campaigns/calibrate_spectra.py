"""Calibration of the constants of `numerics/spectra/fitting.py` on matrices whose law is known.

    python tests/campaigns/calibrate_spectra.py --draws 2000 --shapes 60x80 200x300

For each shape it prints what noise alone and pairs of equal spikes give, beside what the constants promise:

    distance   the quantile 0.999 of the Kolmogorov-Smirnov distance of noise, over `distance_allowed`: near one
    beyond     how often it is above `distance_allowed`: once in a thousand
    outliers   how often noise has an outlier at the level 0.05: 0.1 for two edges, 0.05 for one (square matrices)
    mixing     how often two equal spikes lie further apart than MIXING combined errors: 0.011

2000 draws of the three shapes take a few minutes.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from numerics.spectra.fitting import MIXING, FittedSpectrum, analyse

STRENGTH = 3.0
"""Strength of both spikes, in units of the noise: far above the threshold 1."""


def noise(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((rows, columns))


def equal_spikes(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Return noise with two orthogonal terms of rank one and of one strength."""
    left, right = (np.linalg.qr(rng.standard_normal((side, 2)))[0] for side in (rows, columns))
    return noise(rows, columns, rng) + STRENGTH * math.sqrt(max(rows, columns)) * left @ right.T


def separation(fitted: FittedSpectrum) -> float:
    """Return the distance of the two largest outliers in combined standard errors."""
    one, other = fitted.outliers[:2]
    return abs(one.singular_value - other.singular_value) / math.hypot(one.error or 0.0, other.error or 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shapes", nargs="+", default=["60x80", "100x100", "200x300"], metavar="ROWSxCOLUMNS")
    options = parser.parse_args()
    print(f"{'shape':10s} {'distance':>9s} {'beyond':>8s} {'outliers':>9s} {'mixing':>8s}")
    for shape in options.shapes:
        rows, columns = map(int, shape.split("x"))
        rng = np.random.default_rng([options.seed, rows, columns])
        plain = [analyse("W", noise(rows, columns, rng), level=0.05) for _ in range(options.draws)]
        distances = np.array([one.distance / one.distance_allowed for one in plain])
        apart = [separation(analyse("W", equal_spikes(rows, columns, rng))) for _ in range(options.draws)]
        print(
            f"{shape:10s} {np.quantile(distances, 0.999):9.2f} {np.mean(distances > 1):8.4f} "
            f"{np.mean([bool(one.outliers) for one in plain]):9.4f} {np.mean(np.array(apart) > MIXING):8.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
