"""Largest stable rates of linear training at drawn parameters, each held against a closed form by hand.

    .venv/bin/python tests/campaigns/attack_stability.py --count 150 --seed 7

Full, fresh and mini-batches; momentum up to 0.99; ridges; one, two groups and power laws; ratios from 1/150 to 150. A
rate that is off by more than its error, and by more than ten digits, is wrong. Exit code 1 where one is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from derive.errors import NumericalError

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / part) for part in ("", "support", "reference_formulas", "numerics/limit")]
from test_exact_stability import drawn_point, fresh_batches, of_regression, power_law  # noqa: E402

DIGITS = 1e-10


def of_power_law(rng: np.random.Generator) -> tuple[dict, float]:
    """Fresh batches of inputs whose variances have a density."""
    decay, cut = float(rng.uniform(0.5, 3)), float(np.exp(rng.uniform(-6, -1)))
    batch, mu = float(np.exp(rng.uniform(-7, -1))), float(rng.choice([0, rng.uniform(0, 0.9)]))
    given = {"spectrum": "power_law", "batch": "online", "decay": decay, "cut": cut, "alpha": batch, "mu": mu}
    return given, fresh_batches(batch, *power_law(decay, cut), 0.0, mu)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--mini", type=float, default=0.3, help="share of the points with mini-batches of a fixed set")
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    told: Counter[str] = Counter()
    worst, started = 0.0, time.process_time()
    for k in range(asked.count):
        if k and k % 10 == 0:
            print(f"{k} of {asked.count}: {dict(told)}", flush=True)
        kind = rng.random()
        try:
            given, right = of_power_law(rng) if kind > 0.9 else drawn_point(rng, mini=kind < asked.mini)
        except ValueError:
            told["closed form below rounding"] += 1  # covariances are lost within 1e-13 of the mean
            continue
        try:
            found = of_regression(**given)
        except NumericalError as error:
            told["refused"] += 1
            print("refused", given, error, flush=True)
            continue
        off = abs(found.rate / right - 1)
        verdict = "right" if off <= DIGITS else "within its error" if off * right <= found.error else "WRONG"
        told[verdict] += 1
        worst = max(worst, off) if verdict == "right" else worst
        if verdict != "right":
            print(verdict, given, found.rate, found.error, right, f"{off:.1e}", flush=True)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in sorted(told.items()))
    print(f"{counted}; largest deviation {worst:.1e}; {time.process_time() - started:.0f} s of CPU")
    return int(told["WRONG"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
