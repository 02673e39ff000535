"""Whoever computes a sweep, and however often they are killed: one and the same file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

import derive
from derive.cli import main
from derive.errors import DeriveError
from derive.sweeps.units import SolverCode, Unit
from derive.sweeps.workers import MOST_LOSSES, GivenExecutor, Processes, run

pytestmark = pytest.mark.slow
COUNT = 200
GRID = f"gamma0=0.1:4:{COUNT}"
PARTS = -(-COUNT // 16)
CLUSTER = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}


def command(journal: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "derive", "solve", "spiked_wigner", GRID, "--journal", str(journal), *more]


def in_order(path: Path) -> list[bytes]:
    return sorted(path.read_bytes().splitlines())


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The journal of one worker, undisturbed, with the table beside it."""
    path = tmp_path_factory.mktemp("alone") / "j"
    subprocess.run(command(path, "--jobs", "1", "--out", f"{path}.csv"), check=True, capture_output=True)
    assert lines_of(path) == 1 + PARTS and lines_of(Path(f"{path}.csv")) == 1 + COUNT
    return path


def killed(line: list[str], path: Path, later: float) -> None:
    """Start a run, and kill all of its processes some time after it has written two more lines."""
    there = lines_of(path)
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while lines_of(path) < there + 2 and process.poll() is None:
        time.sleep(0.01)
    time.sleep(later)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_killed_once_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Killed in the middle of a line, or wherever it was; this process does the rest."""
    monkeypatch.chdir(tmp_path)

    def words(journal: str, *more: str) -> list[str]:
        return ["solve", "spiked_wigner", "gamma0=0.1:4:80", "--jobs", "1", "--journal", journal, *more]

    assert CliRunner().invoke(main, words("alone", "--out", "alone.csv")).exit_code == 0
    there, path = Path("alone").read_bytes(), tmp_path / "j"
    killed([sys.executable, "-m", "derive", *words("j")], path, 0.0)
    begun = path.read_bytes()
    assert lines_of(path) >= 2 and set(begun.splitlines(keepends=True)[:-1]) <= set(there.splitlines(keepends=True))
    path.write_bytes(begun[: min(len(begun), len(there) - 100)])  # so that there is a rest, however fast it was
    assert CliRunner().invoke(main, words("j", "--out", "j.csv")).exit_code == 0
    assert in_order(path) == in_order(Path("alone")) and Path("j.csv").read_bytes() == Path("alone.csv").read_bytes()


@pytest.mark.long
def test_killed_three_times_and_resumed(alone: Path, tmp_path: Path, simulation_seed: int):
    """One worker, then two, then four, killed at random with all that belongs to them; a Dask cluster does the rest."""
    distributed = pytest.importorskip("distributed")
    draw, path = random.Random(simulation_seed), tmp_path / "j"
    for jobs in ("1", "2", "4"):
        killed(command(path, "--jobs", jobs), path, draw.uniform(0.0, 0.3))
    whole = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    assert set(whole) <= set(alone.read_bytes().splitlines(keepends=True))
    path.write_bytes(b"".join(whole[: 1 + PARTS // 2]))  # so that there is a rest, however fast they were
    with distributed.LocalCluster(**CLUSTER, local_directory=tmp_path) as cluster:
        on = ["--on", f"dask:{cluster.scheduler_address}", "--out", f"{path}.csv"]
        subprocess.run(command(path, *on), check=True, capture_output=True)
    assert in_order(path) == in_order(alone)
    assert Path(f"{path}.csv").read_bytes() == Path(f"{alone}.csv").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("workers", ["1", "2", "4", "dask"])
def test_killed_three_times_with_the_same_workers(alone: Path, tmp_path: Path, simulation_seed: int, workers: str):
    """As above, with one kind of workers from the first line to the last."""
    distributed = pytest.importorskip("distributed")
    draw, path = random.Random(f"{simulation_seed} {workers}"), tmp_path / "j"
    with ExitStack() as stack:
        who = ["--jobs", workers]
        if workers == "dask":
            cluster = stack.enter_context(distributed.LocalCluster(**CLUSTER, local_directory=tmp_path))
            who = ["--on", f"dask:{cluster.scheduler_address}"]
        for _ in range(3):
            killed(command(path, *who), path, draw.uniform(0.0, 0.3))
        subprocess.run(command(path, *who, "--out", f"{path}.csv"), check=True, capture_output=True)
    assert in_order(path) == in_order(alone)
    assert Path(f"{path}.csv").read_bytes() == Path(f"{alone}.csv").read_bytes()


KILLER = SolverCode("killer", (("__init__.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"),))


def test_a_unit_that_kills_its_workers_is_given_up_and_the_rest_goes_on():
    theory = derive.load("spiked_wigner")
    code = SolverCode("spiked_wigner", tuple(theory._source.files(theory.model).items()))
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
    code = SolverCode("spiked_wigner", tuple(theory._source.files(theory.model).items()))
    point = ({"gamma0": 2.0},)
    good = Unit("good", "simulate", code, point, {"size": 20, "number": 0}, {})
    wrong = Unit("wrong", "simulate", code, point, {"size": 20, "number": 0}, {"jax": "0.0.1"})
    done: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        assert theory.sweep(gamma0=[1.0, 2.0], executor=pool).rows() == theory.sweep(gamma0=[1.0, 2.0]).rows()
        with pytest.raises(DeriveError, match="a worker has jax"):
            run([good, wrong], GivenExecutor(pool), lambda unit, line: done.append(unit.name))
