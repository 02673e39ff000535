"""Records the numbers that commands print, which `tests/settings/test_recorded_numbers.py` compares with later ones.

    python tests/campaigns/record_numbers.py                           # run all commands again, and print differences
    python tests/campaigns/record_numbers.py --write                   # ... and record what they print now
    python tests/campaigns/record_numbers.py --write "solve FILE.py T=3"   # add a command
    python tests/campaigns/record_numbers.py --draw 3 --seed 2026      # write declaration 3 of a seed, to be added

A recorded number is not thereby right: other tests compare theories with simulations and with formulas by hand. It
says that nobody changed it unawares. Whoever records anew gives the reason for each difference in the commit.

The declarations in `tests/declarations/drawn` are some of the first 70 of seed 2026, each solved within three seconds
of CPU time: exact ones, ones by quadrature and sampled ones, with and without outliers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS / "support")]

from recorded import DRAWN, PLACE, differences, numbers_of  # noqa: E402

from derive.selftest.running import draft_of  # noqa: E402
from derive.selftest.writing import write  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", help="commands to add, without --json")
    parser.add_argument("--write", action="store_true", help="record what the commands print now")
    parser.add_argument("--draw", type=int, metavar="N", help="write declaration N of a seed")
    parser.add_argument("--seed", type=int, default=2026)
    given = parser.parse_args()
    if given.draw is not None:
        doc = f"Declaration {given.draw} of seed {given.seed}, as drawn by `derive selftest`."
        path = DRAWN / f"drawn_{given.draw:02}.py"
        path.write_text(write(draft_of(given.seed, given.draw), doc=doc))
        return
    recorded = json.loads(PLACE.read_text()) if PLACE.exists() else {}
    for command in given.commands or list(recorded):
        found = numbers_of(command)
        for line in differences(found, recorded.get(command, found)):
            print(f"derive {command}\n  {line}")
        recorded[command] = found
    if given.write:
        lines = (f"{json.dumps(command)}: {json.dumps(recorded[command])}" for command in sorted(recorded))
        PLACE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
