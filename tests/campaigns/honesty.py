"""A long run: errors of sampled theories against their spread over seeds, means against a hundred times the samples.

Not a test: it takes about a quarter of an hour of CPU. Run it after a change of how sites are drawn, how bias is taken
off or what counts as an error, with seeds that the change was not made with:

    python tests/campaigns/honesty.py --first 5000 --seeds 40 --out honesty.jsonl

For each declaration and each kind of quantity it gives how many there are, reported over seen error (the root of the
mean square over the quantities, the least and the largest), reported error over how far values are from the long
solution (of which a bias that the error covers is a part), how far means over seeds are from the long solution in
reported errors (root of the mean square and the largest; what chance gives is printed beside), and what the tests of
tests/seeds.py would call wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / part) for part in ("", "support", "reference_formulas", "numerics/training", "..")]

import test_sampling_errors  # noqa: E402
from conftest import solver_and_values  # noqa: E402
from seeds import Quantity, Seen, over_seeds, wrong  # noqa: E402

from numerics.runtime.keys import OrderKey  # noqa: E402
from numerics.solution import Prediction  # noqa: E402
from numerics.solver import solve  # noqa: E402

Solve = Callable[[int, int], Prediction]
LONGER = 100


def of(name: str, *kernels: OrderKey, **values: Any) -> Solve:
    """A shipped setting, or a declaration of the tests, at some values; with kernels, those and no spectra."""
    solver, whole = solver_and_values(name, **values)
    layers = () if kernels else None

    def solved(seed: int, samples: int) -> Prediction:
        more = {"path": not kernels, "overlaps": not kernels}
        return solve(solver, whole, samples=samples, seed=seed, layers=layers, kernels=kernels, **more)

    return solved


CASES: dict[str, tuple[int, Callable[[], Solve]]] = {
    "spikes": (3000, lambda: of("coupled_spikes_tanh", S=4, theta=1.5)),
    "partly symmetric": (3000, lambda: lambda seed, samples: test_sampling_errors.solved("network", samples, seed)),
    "perceptron": (3000, lambda: lambda seed, samples: test_sampling_errors.solved("perceptron", samples, seed)),
    "Lotka-Volterra": (4000, lambda: of("lotka_volterra", T=40)),
    "network, 3 layers": (3000, lambda: of("wide_network", P=3, B=3, T=5, D=4, gamma=4.0, eta=0.3)),
    "gates": (3000, lambda: of("gated_network")),
    "driven memory": (3000, lambda: of("driven_memory")),
    "network, batches": (3000, lambda: of("wide_network", P=4, B=2, T=6, D=4, gamma=4.0, eta=0.3)),
    "network, relu": (3000, lambda: of("wide_network", L=2, activation="relu", P=3, B=3, T=4, D=4, gamma=3.0, eta=0.2)),
    "network, erf": (3000, lambda: of("wide_network", L=2, activation="erf", P=3, B=3, T=4, D=4, gamma=4.0, eta=0.3)),
    "network, cross entropy": (
        3000,
        lambda: of("wide_network", L=2, loss="cross_entropy", P=4, B=4, T=4, D=4, gamma=4.0, eta=0.5),
    ),
    "network, pathwise": (
        3000,
        lambda: of("wide_network", L=2, responses="pathwise", P=2, B=2, T=4, D=3, gamma=4.0, eta=0.3),
    ),
    "network, few sites per direction": (4000, lambda: of("wide_network", P=6, B=6, T=10, D=6, gamma=4.0, eta=0.3)),
    "network, one point": (3000, lambda: of("wide_network", P=1, B=1, T=8, D=3, gamma=4.0, eta=0.3)),
    "spikes, kernels": (3000, lambda: of("coupled_spikes_tanh", OrderKey("C", "phi", "phi"), S=4, theta=1.5)),
    "network, kernels": (
        3000,
        lambda: of("wide_network", OrderKey("C", "phi2", "phi2"), P=2, B=2, T=4, D=3, gamma=4.0, eta=0.3),
    ),
    "memory, kernels": (3000, lambda: of("driven_memory", OrderKey("C", "act", "act"))),
}


def kernels_of(solution: Prediction) -> dict[Quantity, tuple[float, float]]:
    """Two-time functions of a solution, entry by entry."""
    found = {}
    for one in solution.two_time.values():
        for place, value in np.ndenumerate(one.values):
            if one.errors is not None and np.isfinite(value):
                found["kernel", one.name, *place] = (float(value), float(one.errors[place]))
    return found


def seen_in(solutions: list[Prediction]) -> dict[Quantity, Seen]:
    """All quantities, kernels among them."""
    found = over_seeds(solutions)
    tables = [kernels_of(one) for one in solutions]
    freedom = min(one.method.sampling.replicates for one in solutions) - 1
    for name in tables[0]:
        values, errors = np.array([table[name] for table in tables]).T
        if np.ptp(values) > 1e-12 * np.max(np.abs(values)):
            found[name] = Seen(name, values, errors, freedom)
    return found


def rows(title: str, samples: int, solve: Solve, first: int, seeds: int) -> Iterator[dict[str, Any]]:
    """One row per kind of quantity."""
    start = time.process_time()
    solutions = [solve(seed, samples) for seed in range(first, first + seeds)]
    seen = seen_in(solutions)
    long = solve(first + seeds, LONGER * samples)
    truth = {name: (one.values[0], one.errors[0]) for name, one in seen_in([long, long]).items()}
    truth |= {name: pair for name, pair in kernels_of(long).items()}
    directions = solutions[0].method.sampling.rank
    for kind in dict.fromkeys(str(name[0]) for name in seen):
        these = {name: one for name, one in seen.items() if name[0] == kind and one.spread > 0}
        if not these:
            continue
        ratios = np.array([one.ratio for one in these.values()])
        true = np.array(
            [
                one.reported / math.sqrt(np.mean((one.values - truth[name][0]) ** 2))
                for name, one in these.items()
                if name in truth
            ]
        )
        off = np.array(
            [(one.values.mean() - truth[name][0]) / one.reported for name, one in these.items() if name in truth]
        )
        by_chance = [
            math.hypot(one.spread / math.sqrt(seeds), truth[name][1]) / one.reported
            for name, one in these.items()
            if name in truth
        ]
        yield {
            "case": title,
            "kind": kind,
            "count": len(these),
            "ratio": math.sqrt(np.mean(ratios**2) * (seeds - 3) / (seeds - 1)),  # the mean of one over a variance
            "least": float(ratios.min()),
            "largest": float(ratios.max()),
            "true": math.sqrt(np.mean(true**2)) if len(true) else None,
            "off": math.sqrt(np.mean(off**2)) if len(off) else None,
            "farthest": float(np.max(np.abs(off))) if len(off) else None,
            "by chance": math.sqrt(np.mean(np.square(by_chance))) if by_chance else None,
            "wrong": wrong(these, {name: pair for name, pair in truth.items() if name in these}),
            "samples": samples,
            "directions": int(directions),
            "replicas": int(solutions[0].method.sampling.replicates),
            "cpu": time.process_time() - start,
        }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--first", type=int, default=5000, help="the first seed")
    asked.add_argument("--seeds", type=int, default=40)
    asked.add_argument("--only", default="", help="cases whose title contains this")
    asked.add_argument("--out", type=Path, help="append one line of JSON per row to this file")
    told = asked.parse_args()
    for title, (samples, make) in CASES.items():
        if told.only not in title:
            continue
        for row in rows(title, samples, make(), told.first, told.seeds):
            if told.out is not None:
                with told.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            off = (
                ""
                if row["off"] is None
                else f"{row['true']:5.2f} {row['off']:6.2f} {row['farthest']:6.2f} ({row['by chance']:.2f})"
            )
            print(
                f"{title:34s} {row['kind']:10s} {row['count']:4d}   {row['ratio']:5.2f} [{row['least']:.2f}, "
                f"{row['largest']:.2f}]   {off}   wrong {len(row['wrong'])}",
                flush=True,
            )


if __name__ == "__main__":
    main()
