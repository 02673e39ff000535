"""Whoever computes a sweep, and however often they are killed: one and the same file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import derive
from derive.errors import DeriveError
from derive.sweeps.units import Code, Unit
from derive.sweeps.workers import MOST_LOSSES, Given, Processes, run

pytestmark = pytest.mark.slow
COUNT = 200
GRID = f"gamma0=0.1:4:{COUNT}"
PARTS = -(-COUNT // 16)


def command(journal: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "derive", "solve", "spiked_wigner", GRID, "--journal", str(journal), *more]


def in_order(path: Path) -> list[bytes]:
    return sorted(path.read_bytes().splitlines())


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The journal of one worker, undisturbed."""
    path = tmp_path_factory.mktemp("alone") / "j"
    subprocess.run(command(path, "--jobs", "1"), check=True, capture_output=True)
    assert lines_of(path) == 1 + PARTS
    return path


def test_killed_three_times_and_resumed(alone: Path, tmp_path: Path, simulation_seed: int):
    """The whole process group of a run is killed at random moments, with two workers and then with four."""
    draw, path = random.Random(simulation_seed), tmp_path / "j"
    for jobs in ("2", "2", "4"):
        there = lines_of(path)
        process = subprocess.Popen(
            command(path, "--jobs", jobs), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        while lines_of(path) < there + 2 and process.poll() is None:
            time.sleep(0.01)
        time.sleep(draw.uniform(0.0, 0.3))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    out = tmp_path / "sweep.csv"
    subprocess.run(command(path, "--jobs", "2", "--out", str(out)), check=True, capture_output=True)
    assert in_order(path) == in_order(alone)
    assert out.read_bytes().count(b"\n") == 1 + COUNT


def test_a_dask_cluster_of_two_processes(alone: Path, tmp_path: Path):
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "j"
    how = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**how, local_directory=tmp_path) as cluster:
        at = cluster.scheduler_address
        subprocess.run(command(path, "--on", f"dask:{at}"), check=True, capture_output=True)
        assert in_order(path) == in_order(alone)


KILLER = Code("killer", (("__init__.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"),))


def test_a_unit_that_kills_its_workers_is_given_up_and_the_rest_goes_on():
    theory = derive.load("spiked_wigner")
    code = Code("spiked_wigner", tuple(theory._source.files(theory.model).items()))
    options = {"size": 20, "number": 0}
    good = [Unit(f"good {k}", "simulate", code, ({"gamma0": 2.0},), {**options, "number": k}, {}) for k in range(4)]
    bad = Unit("bad", "simulate", KILLER, ({},), options, {})
    done: dict[str, str] = {}
    losses = 0

    class Counted(Processes):
        def gone(self, future) -> bool:
            nonlocal losses
            losses += 1
            return super().gone(future)

    lost = run([good[0], bad, *good[1:]], Counted(2), lambda unit, line: done.update({unit.name: line}))
    assert lost == ["bad"] and losses == MOST_LOSSES and sorted(done) == [unit.name for unit in good]


def test_any_executor_and_what_a_unit_raises():
    theory = derive.load("spiked_wigner")
    code = Code("spiked_wigner", tuple(theory._source.files(theory.model).items()))
    point = ({"gamma0": 2.0},)
    good = Unit("good", "simulate", code, point, {"size": 20, "number": 0}, {})
    wrong = Unit("wrong", "simulate", code, point, {"size": 20, "number": 0}, {"jax": "0.0.1"})
    done: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        assert theory.sweep(gamma0=[1.0, 2.0], executor=pool).rows() == theory.sweep(gamma0=[1.0, 2.0]).rows()
        with pytest.raises(DeriveError, match="a worker has jax"):
            run([good, wrong], Given(pool), lambda unit, line: done.append(unit.name))
