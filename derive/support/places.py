"""Where things are: the checkout, if there is one, and what is kept between runs, derived code and what JAX compiled.

Both kinds of kept code run when they are read back, so that whoever writes them can run code as this user. The user can
do that anyway, and so can root; another user of the machine must not be able to. Hence

- the directory belongs to this user, nobody else may write to it, and nobody else may exchange it for another one by
  writing to a directory above it; otherwise nothing is kept, and one sentence on stderr says why;
- a file is read only if it belongs to this user, nobody else may write to it, and it is no link;
- every file is signed with a secret that only this user can read, together with what it is the answer to: the
  declaration and the version of the engine, or the program that was compiled. A file that was cut off, changed, renamed
  or written by another version has no valid signature.

A file without a valid signature is as good as missing: it is made again and replaced. Files appear whole or not at
all, so that two processes may write the same one. A directory that is read-only or full keeps nothing new and stops
nothing. A directory that the user names to JAX (JAX_COMPILATION_CACHE_DIR) is between the two of them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import sys
import tempfile
import time
import tomllib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from derive.errors import ParameterError
from derive.support.bounds import KEPT_SIZE

PROJECT = "two-level-dmft"
SECRET_FILE = "secret"
SECRET_BYTES = 32
UNFINISHED = ".unfinished-"
DAY = 86400.0
"""In seconds. A file that is used is marked as such once a day."""
DAYS_UNUSED = 60
"""What has not been used for so many days is removed."""


def path_of(given: Any, what: str = "path") -> Path:
    """A path that a caller gave as text or as a path; ParameterError says what was to be given."""
    if isinstance(given, (str, Path)):
        return Path(given)
    found = os.fspath(given) if isinstance(given, os.PathLike) else None
    if not isinstance(found, str):
        raise ParameterError(f"{what}={given!r}: give the path as text, such as 'results/run.nc'")
    return Path(found)


def checkout() -> Path | None:
    """The directory of the project's sources that this package is part of; None where it is installed."""
    root = Path(__file__).resolve().parents[2]
    try:
        told = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    project = told.get("project")
    return root if isinstance(project, dict) and project.get("name") == PROJECT else None


def refuse_among_packages(directory: Path) -> None:
    """Raise ParameterError where solvers would be written among the files of this project, installed or not."""
    home, place = Path(__file__).resolve().parents[2], directory.resolve()
    if checkout() is None and place.is_relative_to(home):
        raise ParameterError(
            f"{directory} is where this project is installed; write solvers to a directory of your own"
        )
    if any(place.is_relative_to(home / package) for package in ("derive", "numerics", "generated")):
        raise ParameterError(
            f"{directory} holds the code of this project itself; write solvers to a directory of your own (what ships "
            "is written by `derive build`)"
        )


def cache_place() -> Path | None:
    """The user's cache directory, or what TWO_LEVEL_DMFT_CACHE names; None if it is set to nothing."""
    named = os.environ.get("TWO_LEVEL_DMFT_CACHE")
    if named is not None:
        return Path(named) if named else None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / PROJECT


def kept() -> KeptFiles | None:
    """What is kept between runs; None if nothing is to be. Nothing is made or read before it is used."""
    place = cache_place()
    return None if place is None else _kept_at(Path(os.path.abspath(place)))


class KeptFiles:
    """Files of one directory, by kind and by what they are the answer to."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._refused = False
        self._secret: bytes | None = None
        self._swept: set[str] = set()

    def read(self, kind: str, question: str) -> bytes | None:
        """What was kept as the answer, byte for byte; None if there is none that this user wrote."""
        try:
            secret = self._key(make=False)
            signed = None if secret is None else _read(self._path(kind, question))
        except OSError:
            return None
        if secret is None or signed is None:
            return None
        size = hashlib.sha256().digest_size
        signature, answer = signed[:size], signed[size:]
        return answer if hmac.compare_digest(signature, _signature(secret, kind, question, answer)) else None

    def write(self, kind: str, question: str, answer: bytes) -> None:
        """Keep an answer; a directory that cannot be written is no reason to fail."""
        with suppress(OSError):
            secret = self._key(make=True)
            if secret is None:
                return
            path = self._path(kind, question)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._sweep(kind)
            _write(path, _signature(secret, kind, question, answer) + answer)

    def _path(self, kind: str, question: str) -> Path:
        """A name that can be read, and a digest that tells questions apart."""
        readable = re.split(r"\W", question)[0][:60]
        return self.place / kind / f"{readable}-{hashlib.sha256(question.encode()).hexdigest()[:32]}"

    def _key(self, make: bool) -> bytes | None:
        """The secret of this user, made if it is not there; None where nothing is kept."""
        if self._secret is not None or self._refused:
            return self._secret
        if make:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self.place.mkdir(mode=0o700, exist_ok=True)
        elif not self.place.exists():
            return None
        reason = _open_to_others(self.place)
        if reason:
            self._refused = True
            print(f"note: nothing is kept in {self.place} between runs: {reason}", file=sys.stderr)
            return None
        self._secret = _secret(self.place / SECRET_FILE, make)
        return self._secret

    def _sweep(self, kind: str) -> None:
        """Remove what was not finished or has not been used for long, once per process."""
        if kind in self._swept:
            return
        self._swept.add(kind)
        now = time.time()
        with os.scandir(self.place / kind) as entries:
            for entry in entries:
                age = now - entry.stat(follow_symlinks=False).st_mtime
                if age > DAY * (1 if entry.name.startswith(UNFINISHED) else DAYS_UNUSED):
                    with suppress(OSError):
                        os.unlink(entry.path)


@cache
def _kept_at(place: Path) -> KeptFiles:
    return KeptFiles(place)


def _signature(secret: bytes, kind: str, question: str, answer: bytes) -> bytes:
    """A signature of the answer and of what it answers, each with its length, so that no two mean the same."""
    parts = [kind.encode(), question.encode(), answer]
    return hmac.digest(secret, b"".join(len(part).to_bytes(8, "big") + part for part in parts), "sha256")


def _secret(path: Path, make: bool) -> bytes | None:
    """The secret in this file; a new one if there is none that only this user can read, and one is to be made."""
    found = _read(path, readable=False)
    if found is not None and len(found) == SECRET_BYTES:
        return found
    if not make:
        return None
    if found is not None or path.is_symlink() or path.exists():
        path.unlink()  # cut off, or others could read it
    handle, made = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
        try:
            os.link(made, path)  # another process may have been first: then its secret is ours too
        except FileExistsError:
            pass
        except OSError:
            os.replace(made, path)  # no links here: what the slower of two processes signs is made again later
    finally:
        with suppress(OSError):
            os.unlink(made)
    found = _read(path, readable=False)
    return found if found is not None and len(found) == SECRET_BYTES else None


def _read(path: Path, readable: bool = True) -> bytes | None:
    """A file that this user alone may write, and unless `readable` alone may read; None if it is any other."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not _mine(status, 0o022 if readable else 0o077):
            return None
        if status.st_size > KEPT_SIZE.most:
            return None
        content = file.read()
        if time.time() - status.st_mtime > DAY:
            with suppress(OSError):
                os.utime(handle if os.utime in os.supports_fd else path)
        return content


def _write(path: Path, content: bytes) -> None:
    """Put a file in place of what is there, whole or not at all."""
    handle, made = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(made, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(made)
        raise


def _mine(status: os.stat_result, forbidden: int) -> bool:
    """Whether a file or directory belongs to this user and gives others none of these permissions."""
    if not hasattr(os, "geteuid"):
        return True  # where there are no such permissions, the cache of a user lies in the profile, which is private
    return status.st_uid == os.geteuid() and not status.st_mode & forbidden


def _open_to_others(place: Path) -> str:
    """Who could plant something in this directory, and what to do about it; nothing if nobody but its user can.

    Directories above it must not let others exchange it: they belong to the user or to root, and others may write to
    them only where the sticky bit protects what is not theirs, or where nobody else can get to in the first place.
    """
    if not hasattr(os, "geteuid"):
        return ""
    elsewhere = "name a directory of your own with TWO_LEVEL_DMFT_CACHE"
    real = Path(os.path.realpath(place))
    if not real.is_dir():
        return f"it is not a directory; {elsewhere}"
    out_of_reach = False
    for directory in (*reversed(real.parents), real):
        status = directory.stat()
        itself = directory == real
        mine = status.st_uid == os.geteuid()
        if not mine and (itself or status.st_uid != 0) and directory != directory.parent:
            return f"{directory} belongs to another user; {elsewhere}"
        protected = not itself and (out_of_reach or bool(status.st_mode & stat.S_ISVTX))
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not protected:
            return f"others may write to {directory}; run chmod go-w {directory}, or {elsewhere}"
        out_of_reach |= mine and not status.st_mode & (stat.S_IXGRP | stat.S_IXOTH)
    return ""
