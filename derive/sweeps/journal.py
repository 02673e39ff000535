"""What a sweep has computed so far, on disk: a line for each finished unit, written when it is finished.

The first line says what the sweep is: declaration, parameters, options and versions. Each other line holds a
fingerprint of that, the name of a unit and its results. Lines come in the order in which units were finished; sorted,
they are the same bytes however the work was done. A line that a crash has cut off is computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from derive.errors import DeriveError

FORMAT = 1
SYNCED_EVERY = 2.0
"""Seconds that a crash of the whole machine may cost."""
About = Mapping[str, Any]
"""What a sweep is, in terms of JSON: its declaration, parameters, options and versions."""


def fingerprint(about: About) -> str:
    """A digest of what a sweep is."""
    return hashlib.sha256(_text(about).encode()).hexdigest()[:32]


@dataclass
class Journal:
    """The finished units of one sweep; kept in memory alone if there is no path."""

    path: Path | None
    about: About
    done: dict[str, str]
    _file: IO[bytes] | None = None
    _synced: float = 0.0

    def add(self, unit: str, line: str) -> None:
        """Keep the results of a unit: once this returns, a crash of this process does not lose them."""
        self.done[unit] = line
        if self._file is not None:
            try:
                self._file.write(_line(fingerprint(self.about), unit, line))
                self._file.flush()  # beyond the reach of whatever happens to this process
                if time.monotonic() - self._synced > SYNCED_EVERY:
                    os.fsync(self._file.fileno())  # and to the machine
                    self._synced = time.monotonic()
            except OSError as error:
                raise DeriveError(
                    f"{self.path}: cannot be written ({error.strerror}); make room and run the same again to go on"
                ) from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Remove the file: everything in it is elsewhere."""
        self.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def opened(path: Path | None, about: About, write: bool = True) -> Journal:
    """The journal of a sweep: what is in the file already, if it belongs to this sweep, and the file to go on with.

    write: whether more is to be added; if not, the file is only read and may be missing.
    """
    if path is None:
        return Journal(None, about, {})
    done, good = {}, 0
    if path.exists():
        found, good = _read(path)
        if found is not None:
            why = _differs(found[0], about)
            if why:
                raise DeriveError(f"{path} is the journal of another sweep: {why}; name another --journal")
            done = found[1]
    if not write:
        return Journal(path, about, done)
    try:
        file = open(path, "r+b" if path.exists() else "x+b")  # noqa: SIM115 - closed with the journal
        _lock(file, path)
        file.truncate(good)  # what was cut off
        file.seek(0, os.SEEK_END)
        if not good:
            file.write(_head(about))
            file.flush()
    except OSError as error:
        raise DeriveError(f"{path}: cannot be written ({error.strerror}); name another --journal") from None
    return Journal(path, about, done, file)


def merged(paths: Iterable[Path]) -> tuple[About, dict[str, str]]:
    """What several journals of one sweep hold together, by the name of the unit."""
    about: About | None = None
    first, units = Path(), dict[str, str]()
    for path in paths:
        if not path.is_file():
            raise DeriveError(f"there is no file {path}; give the journals of all shards")
        found, _ = _read(path)
        if found is None:
            raise DeriveError(f"{path} is empty: nothing of its shard is done")
        if about is None:
            about, first = found[0], path
        elif why := _differs(found[0], about):
            raise DeriveError(f"{path} and {first} are journals of different sweeps: {why}")
        for unit, line in found[1].items():
            if units.setdefault(unit, line) != line:
                raise DeriveError(
                    f"{path} has other numbers for {unit} than a journal before it, so that one of them was made with "
                    "other libraries or on another kind of processor; leave one out"
                )
    if about is None:
        raise DeriveError("there is nothing to merge; give the journals of all shards")
    return about, units


def write_merged(path: Path, about: About, units: Mapping[str, str]) -> None:
    """One journal of all units, in the order of their names; whole or not at all."""
    unfinished = path.with_name(f".{path.name}-unfinished")
    try:
        with open(unfinished, "wb") as file:
            file.write(_head(about))
            file.writelines(_line(fingerprint(about), unit, units[unit]) for unit in sorted(units))
        os.replace(unfinished, path)
    except OSError as error:
        raise DeriveError(f"{path}: cannot be written ({error.strerror}); choose another file") from None


def _text(about: About) -> str:
    return json.dumps(about, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _head(about: About) -> bytes:
    return f'{{"journal":{FORMAT},"sweep":"{fingerprint(about)}","about":{_text(about)}}}\n'.encode()


def _line(sweep: str, unit: str, line: str) -> bytes:
    return f'{{"sweep":"{sweep}","unit":{json.dumps(unit)},"found":{line}}}\n'.encode()


def _read(path: Path) -> tuple[tuple[About, dict[str, str]] | None, int]:
    """What a journal says that it is and its units, None if not even its first line is whole; and the bytes that count.

    Only a last line may be cut off, by a crash or a full disk.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DeriveError(f"{path}: cannot be read ({error.strerror}); name another --journal") from None
    lines = list(_whole_lines(content))
    if not lines:
        if content and not b'{"journal":'.startswith(content[:11]) and not content.startswith(b'{"journal":'):
            raise DeriveError(f"{path} is no journal of a sweep; name another --journal")
        return None, 0
    head = _parsed(lines[0])
    if head is None or "journal" not in head or "about" not in head:
        raise DeriveError(f"{path} is no journal of a sweep; name another --journal")
    if head["journal"] != FORMAT:
        raise DeriveError(f"{path} was written by another version; name another --journal")
    about, sweep, good = head["about"], head["sweep"], len(lines[0])
    if fingerprint(about) != sweep:
        raise DeriveError(f"the first line of {path} was changed; name another --journal")
    units: dict[str, str] = {}
    for number, line in enumerate(lines[1:], start=2):
        start = f'{{"sweep":"{sweep}","unit":'.encode()
        held = _parsed(line) if line.startswith(start) else None
        if held is None or not isinstance(held.get("unit"), str) or "found" not in held:
            raise DeriveError(f"{path}, line {number}, is damaged; remove the line, and it is computed again")
        unit = held["unit"]
        units[unit] = line[len(start) + len(json.dumps(unit).encode()) + len(b',"found":') : -2].decode()
        good += len(line)
    return (about, units), good


def _whole_lines(content: bytes) -> Iterator[bytes]:
    return (line for line in content.splitlines(keepends=True) if line.endswith(b"\n"))


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        held = json.loads(line)
    except ValueError:
        return None
    return held if isinstance(held, dict) else None


def _differs(found: About, wanted: About) -> str:
    """The first thing in which two sweeps differ, in words; nothing if they are the same."""
    if fingerprint(found) == fingerprint(wanted):
        return ""
    for what in sorted({*found, *wanted}):
        one, other = found.get(what), wanted.get(what)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            name = next(name for name in sorted({*one, *other}) if one.get(name) != other.get(name))
            return f"{name} is {_shown(one.get(name))} there and {_shown(other.get(name))} here"
        if what in ("declaration", "code"):
            return "its declaration is another one"
        return f"{what} is {_shown(one)} there and {_shown(other)} here"
    return "they differ"


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _lock(file: IO[bytes], path: Path) -> None:
    """Two processes must not write one journal."""
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
