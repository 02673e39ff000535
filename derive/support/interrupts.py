"""Ctrl-C ends a command within two seconds, even where Python cannot handle the signal.

SIGTERM, which `timeout` and batch systems send, is handled in the same way. Python handles a signal between two
bytecode instructions, which fails in three cases. If KeyboardInterrupt is raised inside a garbage-collector callback,
which JAX uses, it is dropped; it is raised again here. If a library computes without the global interpreter lock and
does not return, a thread ends the process with exit code 130. If a library computes while it holds the lock, a watchdog
process, notified through a pipe, ends this one.
"""

from __future__ import annotations

import _thread
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

PATIENCE = 1.2
"""Seconds that a command has to end by itself."""
LAST_PATIENCE = 1.7
"""Seconds after which the watchdog process ends it."""
BETWEEN = 0.02
"""Seconds after which a dropped KeyboardInterrupt is raised again, and between attempts: the callback that dropped it
has returned by then."""
EXIT_CODE = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TOLD = b"\0"
"""Sent to the watchdog process once the user has seen the message; no signal has this number."""
_SHOW_CURSOR = b"\x1b[?25h"


class _State:
    """The state of the interrupt of this process."""

    happened = False
    raised = 0
    told = False
    pipe: int | None = None
    sentence: Callable[[], str] | None = None
    unfinished: set[Path] = set()


def happened() -> bool:
    """Return whether the process was interrupted."""
    return _State.happened


def check() -> None:
    """Raise a KeyboardInterrupt that was dropped; called between iterations of loops."""
    if _State.happened:
        raise KeyboardInterrupt


def told() -> None:
    """Record that the user has seen the message."""
    _State.told = True
    if _State.pipe is not None:
        with suppress(OSError):
            os.write(_State.pipe, _TOLD)


def end(code: int) -> None:
    """End an interrupted process at once, without the exit handlers of libraries, which take seconds."""
    if _State.happened:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


@contextmanager
def saying(sentence: Callable[[], str]) -> Iterator[None]:
    """Set the message of a process that is ended in this block: what is saved, and how to resume."""
    before, _State.sentence = _State.sentence, sentence
    try:
        yield
    finally:
        _State.sentence = before


@contextmanager
def removing(path: Path) -> Iterator[None]:
    """Remove an unfinished file or directory if the process is ended in this block."""
    _State.unfinished.add(path)
    try:
        yield
    finally:
        _State.unfinished.discard(path)


@contextmanager
def handled(alone: bool) -> Iterator[None]:
    """Handle Ctrl-C in this block; alone: whether the process belongs to this command and may be ended."""
    ours = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    known = [number for number in SIGNALS if before[number] in (signal.default_int_handler, signal.SIG_DFL)]
    if not ours or not known:
        yield  # ignored, as under nohup, or somebody else's
        return
    hook, end = sys.unraisablehook, _second_process() if alone else None

    def again(unraisable: Any) -> None:
        """Raise a dropped KeyboardInterrupt again."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(_interrupt_again, ())
        else:
            hook(unraisable)

    def interrupted(number: int, frame: FrameType | None) -> None:
        if alone and not _State.happened:
            _thread.start_new_thread(
                _end_later, ()
            )  # without the locks of `threading`, which this may have interrupted
        _State.happened = True
        _State.raised += 1
        if _runs(again, frame):  # Python drops what is raised there, too
            _thread.start_new_thread(_interrupt_again, ())
        else:
            raise KeyboardInterrupt

    sys.unraisablehook = again
    for number in known:
        signal.signal(number, interrupted)
    try:
        yield
    finally:
        if not alone or not _State.happened:
            _State.happened = _State.told = False
            for number in known:
                signal.signal(number, before[number])
            sys.unraisablehook = hook
            if end is not None:
                end()


@contextmanager
def not_for_children() -> Iterator[None]:
    """Shield processes started in this block from Ctrl-C, which their parent handles."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _runs(function: Callable[..., Any], frame: FrameType | None) -> bool:
    """Return whether a frame belongs to a call of a function."""
    while frame is not None:
        if frame.f_code is function.__code__:
            return True
        frame = frame.f_back
    return False


def _interrupt_again() -> None:
    """Signal the main thread until the handler runs: a signal just before a system call does not wake the call."""
    main, raised = threading.main_thread().ident, _State.raised
    time.sleep(BETWEEN)
    while _State.happened and _State.raised == raised:
        if main is not None and hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main, signal.SIGINT)  # wakes a thread that waits, too
        else:
            _thread.interrupt_main()
        time.sleep(BETWEEN)


def _end_later() -> None:
    time.sleep(PATIENCE)
    sentence = "interrupted"
    with suppress(Exception):
        sentence = sentence if _State.sentence is None else _State.sentence()
    for path in tuple(_State.unfinished):
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not _State.told:
        with suppress(OSError):
            os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + f"error: {sentence}\n".encode(errors="replace"))
    os._exit(EXIT_CODE)


def _second_process() -> Callable[[], None] | None:
    """Start the watchdog process that ends this process after a signal; return the function that stops the watchdog.

    The C signal handler writes to a pipe as soon as the signal arrives. The pipe closes with this process.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1 or {"jax", "numpy"} & set(sys.modules):
        return None
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.close(writing)
            _guard(reading, parent)
        os._exit(0)
    os.close(reading)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    _State.pipe = writing

    def end() -> None:
        signal.set_wakeup_fd(-1)
        _State.pipe = None
        os.close(writing)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)

    return end


def _guard(reading: int, parent: int) -> None:
    """Wait for the signal, then for the exit of the parent, and kill it if it does not exit."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for handle in (0, 1):
        os.close(handle)
    while True:
        content = os.read(reading, 1)
        if not content:
            return
        if content[0] in SIGNALS:
            break
    deadline, acknowledged = time.monotonic() + LAST_PATIENCE, False
    while (left := deadline - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            content = os.read(reading, 64)
            acknowledged = acknowledged or _TOLD in content
            if not content:
                return
    if os.getppid() == parent:
        if not acknowledged:
            os.write(2, b"error: interrupted\n")
        os.kill(parent, signal.SIGKILL)
