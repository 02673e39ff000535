"""The runner of benchmarks: each in its own process with the same environment, both sides by CPU time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from derive.errors import DeriveError
from numerics.bench import (
    bulk as bench_bulk,
    certificates,
    light,
    networks,
    passes,
    processes,
    recurrent,
    scans,
    site_outliers,
    sites,
    sweeps,
    wide as bench_wide,
)
from numerics.bench.tools import BenchRow, Measurement, failed, one_state

MEASUREMENTS: tuple[Measurement, ...] = (
    scans.outliers,
    site_outliers.outliers_with_averages,
    networks.forward_pass,
    passes.recurrent_pass,
    passes.deep_pass,
    networks.growing_arrays,
    networks.equal_labels,
    networks.outlier_path,
    networks.theory_and_simulation,
    networks.growth,
    bench_wide.theory_and_network,
    bench_wide.small_networks,
    bench_wide.damped_iteration,
    bench_wide.growth_with_spikes,
    recurrent.recurrent_network,
    sites.groups_of_sites,
    bench_bulk.bulk,
    sweeps.bare_vmap,
    sweeps.side_by_side,
    sweeps.ends_of_spectra,
    sweeps.workers,
    certificates.certificates,
    processes.compiling,
    processes.first_solve,
    processes.functions,
    processes.second_solves,
    processes.depth,
    processes.elimination,
    processes.large_elimination,
    processes.build_everything,
    processes.start_up,
)
"""The measurements of `derive bench`; a new one is one more function here."""
LONG: tuple[Measurement, ...] = (bench_wide.more_small_networks, bench_wide.fifty_points, light.light_passes)
"""Measurements that take minutes, run on request."""


def titles(only: str = "", long: bool = False) -> list[str]:
    """Return the titles of all measurements, or of those that contain `only`; long: include those that take minutes."""
    known = [title_of(measure) for measure in (*MEASUREMENTS, *(LONG if long else ()))]
    chosen = [title for title in known if only.lower() in title.lower()]
    if not chosen:
        raise DeriveError(f"no measurement has {only[:80]!r} in its title; derive bench --list has all of them")
    return chosen


def title_of(measure: Callable[..., object]) -> str:
    return (measure.__doc__ or "").partition("\n")[0].rstrip(".")


def figures(title: str, references: Path | None = None) -> Iterator[BenchRow]:
    """Yield the rows of a measurement as they finish; `references` contains hand-written equations."""
    arguments = ("-m", "numerics.bench.run", title, str(references or ""))
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=told, text=True, env=one_state(empty)
        )
        with process:
            assert process.stdout is not None, "it is a pipe"
            try:
                yield from (BenchRow(**json.loads(line)) for line in process.stdout)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            told.seek(0)
            raise failed(arguments, told.read(), process.returncode)


def main(title: str, references: str) -> None:
    """Print the rows of a measurement, one JSON object per line."""
    measure = next(one for one in (*MEASUREMENTS, *LONG) if title_of(one) == title)
    for figure in measure(Path(references) if references else None):
        print(json.dumps(asdict(figure)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
