"""Digests of saved results: at the end of a file, or in a separate file of a directory.

HDF5 reads a file only up to its stored length, so appended bytes do not affect readers. The digest is checked before
anything else reads the file. Each block has a digest as well, which locates a change.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from derive.errors import DeriveError
from derive.support.bounds import RESULT_FILES, RESULT_SIZE, THEORY_SIZE
from derive.support.guarded import digest, opened_file, parsed_json, read_bytes

BLOCKS = 64
"""Number of parts of a file with digests of their own."""
BLOCK_DIGITS = 8
"""Hexadecimal digits of the digest of a block: enough to locate a change, not to prove integrity."""
LIST = "digests.json"
"""The file in a directory that contains the digests of all others."""
_START = b'\n{"two-level-dmft":'
_READ = 1 << 20
"""Bytes read at a time."""


def sealed(content: bytes) -> bytes:
    """Return the content of a file with its digest appended."""
    return content + _trailer(io.BytesIO(content), len(content))


def sealed_files(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a directory, by name, with an additional one that contains their digests."""
    return {**contents, LIST: _listed({name: digest(content) for name, content in contents.items()})}


def check_seal(path: Path) -> None:
    """Refuse a result that was modified after it was saved; the error locates the change."""
    if path.is_dir():
        _check_directory(path)
        return
    with opened_file(path, RESULT_SIZE) as (file, size):
        longest = 200 + (BLOCK_DIGITS + 4) * BLOCKS
        file.seek(max(0, size - longest))
        end = file.read(longest)
        start = end.rfind(_START)
        if start < 0:
            raise DeriveError(
                f"{path} is truncated, is not a result of this package, or was saved by a version without digests; "
                "save it again"
            )
        length = size - len(end) + start
        if end[start:] != _trailer(file, length):
            raise DeriveError(
                f"{path} was modified after it was saved ({_where(file, length, end[start:])}); save it again"
            )


def _trailer(file: BinaryIO, length: int) -> bytes:
    """Return the trailer of a file: the number of its bytes, their digest, and the digests of the blocks."""
    whole, blocks = hashlib.sha256(), []
    for first, last in _blocks(length):
        block = hashlib.sha256()
        file.seek(first)
        while first < last and (content := file.read(min(_READ, last - first))):
            whole.update(content)
            block.update(content)
            first += len(content)
        blocks.append(block.hexdigest()[:BLOCK_DIGITS])
    told = {"two-level-dmft": "result", "bytes": length, "digest": whole.hexdigest(), "blocks": " ".join(blocks)}
    return b"\n" + json.dumps(told, separators=(",", ":")).encode() + b"\n"


def _blocks(length: int) -> Iterator[tuple[int, int]]:
    size = max(512, -(-length // BLOCKS))
    return ((first, min(first + size, length)) for first in range(0, length, size))


def _where(file: BinaryIO, length: int, trailer: bytes) -> str:
    """Return where a file differs from its trailer."""
    told = re.search(rb'"bytes":(\d{1,15}),.*"blocks":"([0-9a-f ]*)"', trailer)
    if told is None:
        return "in the digest at its end"
    if int(told[1]) != length:
        return f"{length} bytes are left of {int(told[1])}" if length < int(told[1]) else "bytes were added"
    now = re.search(rb'"blocks":"([0-9a-f ]*)"', _trailer(file, length))
    pairs = zip(_blocks(length), told[2].split(), (now[1] if now else b"").split(), strict=False)
    place = next((f"between bytes {first} and {last}" for (first, last), one, other in pairs if one != other), "")
    return place or "in the digest at its end"


def _names(directory: Path) -> list[str]:
    """Return all files of a directory except the list of digests, in order, without links and special files."""
    found, waiting = [], [directory]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    found.append(Path(entry.path).relative_to(directory).as_posix())
                else:
                    raise DeriveError(f"{entry.path} is not a file of a saved result; remove it")
                if len(found) + len(waiting) > RESULT_FILES.most:
                    raise DeriveError(f"{directory} has more than {RESULT_FILES} files, so it is not a saved result")
    return sorted(name for name in found if name != LIST)


def _whole_digest(path: Path) -> str:
    found = hashlib.sha256()
    with opened_file(path, RESULT_SIZE) as (file, _):
        while content := file.read(_READ):
            found.update(content)
    return found.hexdigest()


def _listed(digests: dict[str, str]) -> bytes:
    return json.dumps({"two-level-dmft": "result", "files": digests}, indent=0).encode()


def _check_directory(path: Path) -> None:
    if not (path / LIST).is_file():
        raise DeriveError(
            f"{path} is not a result of this package, or was saved by a version without digests; save it again"
        )
    content = read_bytes(path / LIST, THEORY_SIZE)
    try:
        told = parsed_json(content)
        digests = dict(told["files"])
    except (ValueError, KeyError, TypeError):
        raise DeriveError(f"{path / LIST} was changed; save the result again") from None
    names = _names(path)
    for name in sorted({*names, *map(str, digests)}):
        if name not in names:
            raise DeriveError(f"{path} was modified after it was saved: {name} is missing; save it again")
        if digests.get(name) != _whole_digest(path / name):
            raise DeriveError(f"{path} was modified after it was saved: {name} differs; save it again")
    if content != _listed(digests):
        raise DeriveError(f"{path / LIST} was changed; save the result again")
