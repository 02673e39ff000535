"""The journal of a sweep: a file with one line per finished unit.

The first line describes the sweep: declaration, parameters, options and versions. Each other line contains a
fingerprint of that, the name of a unit and its results. Every line ends with its own digest, so a modified line is
refused and its number reported. Lines are in the order of completion; sorted, they are the same bytes regardless of the
workers. A line truncated by a crash or a full disk is computed again.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from derive.errors import DeriveError
from derive.support.bounds import JOURNAL_LINE, JOURNAL_SIZE
from derive.support.guarded import digest, parsed_json, read_bytes, write_whole
from derive.support.shapes import fits
from derive.sweeps.units import UnitResults, as_line

FORMAT = 2
SYNCED_EVERY = 2.0
"""Seconds between fsyncs: the most work that a crash of the machine loses."""
About = Mapping[str, Any]
"""The description of a sweep as JSON data: declaration, parameters, options and versions."""


def fingerprint(about: About) -> str:
    """Return a digest of the description of a sweep."""
    return digest(_text(about).encode())[:32]


@dataclass
class Journal:
    """The finished units of one sweep; in memory only without a path.

    done: the results of each unit, as a line, or as objects if they were computed in this process. places: line numbers
    of units.
    """

    path: Path | None
    about: About
    done: dict[str, UnitResults]
    places: dict[str, int] = field(default_factory=dict)
    _file: FileIO | None = None
    _synced: float = 0.0

    def add(self, unit: str, results: UnitResults) -> None:
        """Append the results of a unit; once this returns, a crash of this process does not lose them."""
        if self._file is not None:
            line = results if isinstance(results, str) else as_line(results)
            try:
                _append(self._file, _line(fingerprint(self.about), unit, line))  # survives a crash of this process
                if time.monotonic() - self._synced > SYNCED_EVERY:
                    os.fsync(self._file.fileno())  # survives a crash of the machine
                    self._synced = time.monotonic()
            except OSError as error:
                raise self._full(error) from None
        self.done[unit] = results

    def place(self, unit: str) -> str:
        """Return the location of a unit for a message."""
        return f"{self.path}, line {self.places[unit]}," if unit in self.places else f"the part {unit}"

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            try:
                with file:
                    os.fsync(file.fileno())
            except OSError as error:
                raise self._full(error) from None

    def remove(self) -> None:
        """Delete the file once its content is stored elsewhere."""
        self.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _full(self, error: OSError) -> DeriveError:
        return DeriveError(
            f"{self.path}: cannot be written ({error.strerror}); the {len(self.done)} finished parts are kept; "
            "free some space and run the same command to resume"
        )


def opened(path: Path | None, about: About, write: bool = True) -> Journal:
    """Open the journal of a sweep, with the units that it already has; raise if it belongs to another sweep.

    write: whether units will be appended; otherwise the file is only read and may be missing.
    """
    if path is None:
        return Journal(None, about, {})
    journal, good = Journal(path, about, {}), 0
    if os.path.lexists(path):
        content = _read(path)
        if content is not None:
            why = _differs(content.about, about)
            if why:
                raise DeriveError(f"{path} is the journal of another sweep: {why}; name another --journal")
            journal, good = Journal(path, about, dict(content.units), content.places), content.length
    if not write:
        return journal
    try:
        journal._file = _opened_alone(path)
        journal._file.truncate(good)  # what was cut off
        if not good:
            _append(journal._file, _head(about))
    except OSError as error:
        if journal._file is not None:
            journal._file.close()
        raise DeriveError(f"{path}: cannot be written ({error.strerror}); name another --journal") from None
    return journal


def _opened_alone(path: Path) -> FileIO:
    """Open the file with an exclusive lock and without a buffer, so that a full disk is noticed at once."""
    file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+")
    _lock(file, path)
    return file


def _append(file: FileIO, content: bytes) -> None:
    """Append to a file, all or nothing."""
    start = file.seek(0, os.SEEK_END)
    left = memoryview(content)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError:
        with suppress(OSError):
            file.truncate(start)
        raise


def merged(paths: Iterable[Path]) -> tuple[About, dict[str, str]]:
    """Return the description and the units of several journals of one sweep."""
    about: About | None = None
    first, units = Path(), dict[str, str]()
    for path in paths:
        content = _read(path)
        if content is None:
            raise DeriveError(f"{path} is empty: no part of its shard is finished")
        if about is None:
            about, first = content.about, path
        elif why := _differs(content.about, about):
            raise DeriveError(f"{path} and {first} are journals of different sweeps: {why}")
        for unit, line in content.units.items():
            if units.setdefault(unit, line) != line:
                raise DeriveError(
                    f"{path} has different numbers for {unit} than an earlier journal, so one of them was "
                    "computed with other libraries or on another processor; leave one out"
                )
    if about is None:
        raise DeriveError("there is nothing to merge; give the journals of all shards")
    return about, units


def write_merged(path: Path, about: About, units: Mapping[str, str]) -> None:
    """Write one journal of all units, ordered by name, atomically."""
    lines = (_line(fingerprint(about), unit, units[unit]) for unit in sorted(units))
    try:
        write_whole(path, b"".join([_head(about), *lines]))
    except OSError as error:
        raise DeriveError(f"{path}: cannot be written ({error.strerror}); choose another file") from None


def _text(about: About) -> str:
    return json.dumps(about, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _head(about: About) -> bytes:
    return _signed(f'{{"journal":{FORMAT},"sweep":"{fingerprint(about)}","about":{_text(about)}')


def _line(sweep: str, unit: str, line: str) -> bytes:
    return _signed(f'{{"sweep":"{sweep}","unit":{json.dumps(unit)},"found":{line}')


_SIGNED = re.compile(rb',"digest":"([0-9a-f]{64})"}')


def _signed(record: str) -> bytes:
    """Return a record as a complete line with its digest."""
    content = record.encode()
    return content + f',"digest":"{digest(content)}"}}\n'.encode()


def _unsigned(line: bytes) -> bytes | None:
    """Return the record of a line; None if its digest differs."""
    tail = line[-len(_signed("")) :]
    content, signed = line[: -len(tail)], _SIGNED.fullmatch(tail[:-1])
    if signed is None or not tail.endswith(b"\n") or signed[1] != digest(content).encode():
        return None
    return content + b"}"


@dataclass(frozen=True)
class _Content:
    """The description of a journal, its units and their line numbers, and the bytes of all complete lines."""

    about: About
    units: dict[str, str]
    places: dict[str, int]
    length: int


def _read(path: Path) -> _Content | None:
    """Return the content of a journal; None if not even its first line is complete.

    Only the last line may be truncated, by a crash or a full disk.
    """
    *lines, rest = read_bytes(path, JOURNAL_SIZE).split(b"\n")
    if not lines:
        if rest and not rest.startswith(b'{"journal":') and not b'{"journal":'.startswith(rest):
            raise DeriveError(f"{path} is not a journal of a sweep; name another --journal")
        return None
    about, sweep = _about(path, lines[0] + b"\n")
    units: dict[str, str] = {}
    places: dict[str, int] = {}
    length = len(lines[0]) + 1
    for number, line in enumerate(lines[1:], start=2):
        unit, results = _unit(line + b"\n", sweep) or ("", None)
        if results is None or units.setdefault(unit, results) != results:
            raise _changed(path, number)
        places.setdefault(unit, number)
        length += len(line) + 1
    if (end := _SIGNED.search(rest)) and (end.end() < len(rest) or _unit(rest + b"\n", sweep) is None):
        raise _changed(path, len(lines) + 1)  # a whole line whose end was changed, not one that was cut off
    return _Content(about, units, places, length)


def _about(path: Path, line: bytes) -> tuple[About, str]:
    """Return the description of the sweep in the first line, and its fingerprint."""
    if not line.startswith(b'{"journal":'):
        raise DeriveError(f"{path} is not a journal of a sweep; name another --journal")
    if line.endswith(b"\r\n"):
        raise DeriveError(
            f"{path}, line 1, has a Windows line ending: another program rewrote the file; restore the original"
        )
    if not line.startswith(f'{{"journal":{FORMAT},'.encode()):
        raise DeriveError(f"{path} is a journal of another version; remove it and run the sweep again")
    content = _unsigned(line)
    head = None if content is None else _parsed(content)
    if head is None or not fits(head.get("about"), dict) or fingerprint(head["about"]) != head.get("sweep"):
        raise DeriveError(f"the first line of {path} was changed; name another --journal")
    return head["about"], head["sweep"]


def _unit(line: bytes, sweep: str) -> tuple[str, str] | None:
    """Return name and results of a unit; None if the line is malformed."""
    start = f'{{"sweep":"{sweep}","unit":'.encode()
    content = _unsigned(line) if line.startswith(start) and len(line) <= JOURNAL_LINE.most else None
    held = None if content is None else _parsed(content)
    if content is None or held is None or not fits(held.get("unit"), str) or "found" not in held:
        return None
    before = start + json.dumps(held["unit"]).encode() + b',"found":'
    return (held["unit"], content[len(before) : -1].decode()) if content.startswith(before) else None


def _changed(path: Path, number: int) -> DeriveError:
    return DeriveError(
        f"{path}, line {number}, is damaged or was modified after it was written; remove the line to recompute its part"
    )


def _parsed(content: bytes) -> dict[str, Any] | None:
    try:
        held = parsed_json(content)
    except ValueError:
        return None
    return held if fits(held, dict) else None


def _differs(stored: About, wanted: About) -> str:
    """Return the first difference between two sweeps in words; empty if there is none."""
    if fingerprint(stored) == fingerprint(wanted):
        return ""
    for what in sorted({*stored, *wanted}, key=lambda what: (what != "sweep", what)):  # another model explains the rest
        one, other = stored.get(what), wanted.get(what)
        if one == other:
            continue
        if fits(one, dict) and fits(other, dict):
            name = next(name for name in sorted({*one, *other}) if one.get(name) != other.get(name))
            return f"{name} is {_shown(one.get(name))} there and {_shown(other.get(name))} here"
        if what in ("declaration", "code"):
            return "its declaration is different"
        return f"{what} is {_shown(one)} there and {_shown(other)} here"
    return "they differ"


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    text = ",".join(map(str, value)) if fits(value, list) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _lock(file: FileIO, path: Path) -> None:
    """Take the exclusive lock, since two processes must not write one journal."""
    try:
        import fcntl
    except ImportError:  # where there are no such locks, nothing is promised
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise DeriveError(
            f"{path} is being written by another process; wait for it, or give each shard a --journal of its own"
        ) from None
    except OSError:  # a file system without locks
        return
