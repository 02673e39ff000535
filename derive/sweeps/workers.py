"""Workers of a sweep: this process, a pool of processes, or any executor, such as a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
from types import ModuleType
from typing import Any, Protocol

from derive.errors import DeriveError
from derive.support.extras import optional
from derive.support.interrupts import not_for_children
from derive.sweeps.threads import environment_of_one_thread
from derive.sweeps.units import Tell, Unit, UnitResults, computed, results_of

MOST_LOSSES = 3
"""Lost workers after which a unit is abandoned."""

LONGEST_END = 0.5
"""Seconds to wait for the shutdown of a pool whose processes have ended."""

Done = Callable[[Unit, UnitResults], None]


class Crew(Protocol):
    """The interface of workers.

    room(): whether they accept one more unit. submit(unit): start it; its future has UnitResults. gone(future): handle
    a dead worker; return whether another is available.
    """

    def room(self) -> bool: ...

    def submit(self, unit: Unit) -> Future[Any]: ...

    def gone(self, future: Future[Any]) -> bool: ...

    def free(self, future: Future[Any]) -> None: ...

    def stop(self) -> None: ...


def run(units: Sequence[Unit], crew: Crew, done: Done) -> list[str]:
    """Compute all units, pass each to `done` as it finishes, and return the names of those abandoned.

    A unit whose worker died is given to another worker. An exception of a unit is raised here, after all finished units
    are stored.
    """
    waiting, losses, lost = deque(units), Counter[str](), []
    running: dict[Future[Any], Unit] = {}
    try:
        while waiting or running:
            while waiting and crew.room():
                unit = waiting.popleft()
                running[crew.submit(unit)] = unit
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            trouble: BaseException | None = None
            for future in finished:
                unit = running.pop(future)
                try:
                    done(unit, future.result())
                    crew.free(future)
                except Exception as error:  # noqa: BLE001 - whatever a unit raises, after the others are kept
                    if not _died(error):
                        trouble = trouble or error
                        continue
                    losses[unit.name] += 1
                    more = crew.gone(future)
                    if losses[unit.name] >= MOST_LOSSES or _given_up(error):
                        lost.append(unit.name)
                    elif more:
                        waiting.appendleft(unit)
                    else:
                        trouble = trouble or DeriveError(
                            f"the executor has lost its workers ({' '.join(str(error).split())[:200]}); run the "
                            "same command again to resume"
                        )
            if trouble is not None:
                raise trouble
        return sorted(lost)
    finally:
        for future in running:
            future.cancel()
        crew.stop()


def _died(error: Exception) -> bool:
    """Return whether a worker failed, not the unit."""
    return isinstance(error, (BrokenExecutor, CancelledError)) or _given_up(error)


def _given_up(error: Exception) -> bool:
    """Return whether a Dask cluster has exhausted its own retries."""
    return type(error).__name__ == "KilledWorker"


# -- processes on this machine


class Processes:
    """A pool of processes with one thread each; a process that dies loses only its own unit."""

    def __init__(self, count: int) -> None:
        self.idle: list[ProcessPoolExecutor | None] = [None] * count
        self.busy: dict[Future[str], ProcessPoolExecutor] = {}

    def room(self) -> bool:
        return bool(self.idle)

    def submit(self, unit: Unit) -> Future[str]:
        pool = self.idle.pop()
        if pool is None:
            pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=follow_parent)
            with environment_of_one_thread(), _without_script(), not_for_children():
                pool.submit(os.getpid)  # starts the process
        future = pool.submit(computed, unit)
        self.busy[future] = pool
        return future

    def free(self, future: Future[str]) -> None:
        self.idle.append(self.busy.pop(future))

    def gone(self, future: Future[str]) -> bool:
        self.busy.pop(future).shutdown(wait=False)
        self.idle.insert(0, None)
        return True

    def stop(self) -> None:
        """Stop at once, without waiting for running units."""
        for pool in (*self.idle, *self.busy.values()):
            if pool is None:
                continue
            processes, manager = list((pool._processes or {}).values()), getattr(pool, "_executor_manager_thread", None)
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()
            if manager is not None:
                manager.join(LONGEST_END)  # it releases the semaphores of the pool
        self.idle, self.busy = [], {}


def follow_parent() -> None:
    """End this worker when its parent process ends; Ctrl-C is handled by the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


@contextmanager
def _without_script() -> Iterator[None]:
    """Prevent processes started in this block from running the caller's script again."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


# -- anything else


class Here:
    """This process, one unit at a time."""

    def __init__(self, tell: Tell | None = None) -> None:
        self.tell, self.idle = tell, True

    def room(self) -> bool:
        return self.idle

    def submit(self, unit: Unit) -> Future[UnitResults]:
        future: Future[UnitResults] = Future()
        self.idle = False
        try:
            future.set_result(results_of(unit, self.tell))
        except Exception as error:  # noqa: BLE001 - raised where it is asked for
            future.set_exception(error)
        return future

    def free(self, future: Future[UnitResults]) -> None:
        self.idle = True

    def gone(self, future: Future[UnitResults]) -> bool:
        return False

    def stop(self) -> None:
        pass


class GivenExecutor:
    """An executor of the caller, which is left running; it gets a limited number of units at a time."""

    def __init__(self, executor: Executor, at_a_time: int | None = None) -> None:
        self.executor, self.under_way = executor, 0
        self.most = at_a_time or 2 * int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)

    def room(self) -> bool:
        return self.under_way < self.most

    def submit(self, unit: Unit) -> Future[str]:
        self.under_way += 1
        try:
            return self.executor.submit(computed, unit)
        except BrokenExecutor as error:
            failed: Future[str] = Future()
            failed.set_exception(error)
            return failed

    def free(self, future: Future[str]) -> None:
        self.under_way -= 1

    def gone(self, future: Future[str]) -> bool:
        self.under_way -= 1
        return False  # an executor that is broken stays so; Dask finds another worker by itself

    def stop(self) -> None:
        pass


@contextmanager
def cluster(where: str) -> Iterator[GivenExecutor]:
    """Connect to the workers of a Dask cluster: dask:tcp://HOST:PORT, or dask:FILE with the scheduler's address."""
    kind, _, address = where.partition(":")
    if kind != "dask" or not address:
        raise DeriveError(f"--on {where}: write dask:tcp://HOST:PORT or dask:FILE.json, the scheduler's file")
    distributed = optional("distributed")
    place = {"address": address} if "://" in address else {"scheduler_file": address}
    if "scheduler_file" in place and not os.path.isfile(address):
        raise DeriveError(f"--on {where}: there is no file {address}; start the scheduler with --scheduler-file")
    try:
        client = distributed.Client(**place, timeout="20s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise DeriveError(f"--on {where}: no scheduler responds there ({' '.join(str(error).split())[:120]})") from None
    try:
        threads = sum(client.nthreads().values())
        yield GivenExecutor(client.get_executor(pure=False), 2 * max(1, threads))
    finally:
        client.close()
