"""Bounded reads and atomic writes of files, shared by the readers of all formats.

A read succeeds if the path names a regular file within its bound; pipes, devices and directories are refused before
they are opened. JSON is refused if it is nested too deeply, has oversized numbers or repeats a key. Errors are one
sentence.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from derive.errors import DeriveError
from derive.support import interrupts
from derive.support.bounds import RECORD_DEPTH, Bound

LONGEST_INTEGER = 40
"""Most digits of an integer in JSON."""
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def opened_file(path: Path, bound: Bound, error: type[DeriveError] = DeriveError) -> Iterator[tuple[BinaryIO, int]]:
    """Open a regular file within the bound; yield it with its size in bytes."""
    with _telling(path, error):
        _check_regular(path, os.stat(path), bound, error)  # a pipe or a device is not even opened
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        _check_regular(path, status, bound, error)
        yield file, status.st_size


def read_bytes(path: Path, bound: Bound, error: type[DeriveError] = DeriveError) -> bytes:
    """Return the content of a regular file within the bound."""
    with opened_file(path, bound, error) as (file, size), _telling(path, error):
        content = file.read(size + 1)
    if len(content) != size:
        raise error(f"{path} changed while it was read; try again")
    return content


def read_text(path: Path, bound: Bound, error: type[DeriveError] = DeriveError) -> str:
    """Return the content of a UTF-8 text file."""
    try:
        return read_bytes(path, bound, error).decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise error(f"{path}: is not UTF-8 text (byte {wrong.start}); save it as UTF-8") from None


@contextmanager
def _telling(path: Path, error: type[DeriveError]) -> Iterator[None]:
    """Convert an OSError about a path to an error of this kind."""
    try:
        yield
    except FileNotFoundError:
        raise error(f"there is no file {path}; check the path") from None
    except OSError as wrong:
        raise error(f"{path}: cannot be read ({wrong.strerror or wrong}); check the path") from None
    except MemoryError:
        raise error(f"{path} does not fit into memory") from None
    except ValueError as wrong:  # a path that no file can have
        raise error(f"{path}: cannot be read ({wrong}); check the path") from None


def _check_regular(path: Path, status: os.stat_result, bound: Bound, error: type[DeriveError]) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "something special")
        raise error(f"{path} is {kind}, not a file; give the path of a file")
    if status.st_size > bound.most:
        raise error(f"{path} has {status.st_size} bytes, and a {bound.reader} has at most {bound}")


def parsed_json(content: bytes | str, depth: Bound = RECORD_DEPTH) -> Any:
    """Return JSON as plain data; raise ValueError if it is not UTF-8, too deep, repeats a key or has an oversized
    number."""
    text = content.decode("utf-8") if isinstance(content, bytes) else content
    try:
        value = json.loads(
            text, object_pairs_hook=_once, parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
    except RecursionError:
        raise ValueError(f"more than {depth.most} levels of nested objects and lists") from None
    check_depth(value, depth)
    return value


def check_depth(value: Any, bound: Bound) -> None:
    """Raise ValueError if lists and tables are nested deeper than the bound."""
    level = [value]
    for _ in range(bound.most + 1):
        level = [
            part
            for whole in level
            if isinstance(whole, (dict, list))
            for part in (whole.values() if isinstance(whole, dict) else whole)
        ]
        if not level:
            return
    raise ValueError(f"more than {bound.most} levels of nested objects and lists")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name occurs twice")
    return result


def _integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise ValueError(f"a whole number has {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


# -- digests

DIGEST = "digest"
"""The key under which plain data carries its own digest."""


def digest(content: bytes) -> str:
    """Return the SHA-256 digest in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def with_digest(data: dict[str, Any]) -> dict[str, Any]:
    """Return plain data with its digest, which does not depend on white space or the order of keys."""
    return {**data, DIGEST: _digest_of(data)}


def has_its_digest(data: dict[str, Any]) -> bool:
    """Return whether plain data matches its digest."""
    return data.get(DIGEST) == _digest_of({key: part for key, part in data.items() if key != DIGEST})


def _digest_of(data: dict[str, Any]) -> str:
    return digest(json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())


# -- writing


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file atomically; raise OSError if it cannot be written."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}-", dir=path.parent)
    with interrupts.removing(Path(temporary)):
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(handle)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
