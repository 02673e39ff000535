"""Calibration of the constants of `numerics/training/sampling.py`: errors, bias and time as one of them varies.

    python tests/campaigns/calibrate_sampling.py RESPONSE_CUTOFF 0.1 0.5 2 --only "few sites" --seeds 20

For each value, case and kind of quantity it prints reported over observed standard error, the distance of the mean from
a solution with a hundred times the samples in reported errors (with the value expected by chance), and the CPU time.
A good value has a ratio near one, a distance near that of chance, and little CPU time. A case takes about a minute for
each value. The first value of a case includes its compilation. Identical rows mean that the constant is inactive there.
"""

from __future__ import annotations

import argparse

from honesty import CASES, rows

from numerics.training import sampling

COUNTS = ("REPLICATES", "FEWEST_REPLICATES", "SITES_WANTED", "FEWEST_SITES", "SITES_AT_LEAST")
COUNTS += ("COARSER_REPLICATES", "PAIRS")
RATIOS = (
    "ENOUGH",
    "COARSER",
    "BEYOND_DOUBT",
    "NEXT_ORDER",
    "RESPONSE_CUTOFF",
    "LEAST_CUTOFF",
    "LARGEST_CUTOFF",
    "FINER",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("constant", choices=(*COUNTS, *RATIOS))
    parser.add_argument("values", type=float, nargs="+", help="ENOUGH: one of sampling.COARSE")
    parser.add_argument("--only", default="", help="cases whose title contains this")
    parser.add_argument("--first", type=int, default=5000, help="the first seed")
    parser.add_argument("--seeds", type=int, default=40)
    options = parser.parse_args()
    for value in options.values:
        setattr(sampling, options.constant, int(value) if options.constant in COUNTS else value)
        for title, (samples, make) in CASES.items():
            if options.only not in title:
                continue
            for row in rows(title, samples, make(), options.first, options.seeds):
                off = "" if row["off"] is None else f"{row['off']:6.2f} ({row['by chance']:.2f})"
                print(
                    f"{options.constant}={value:g} {title:34s} {row['kind']:10s} {row['ratio']:5.2f} {off:14s} "
                    f"{row['cpu']:6.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
