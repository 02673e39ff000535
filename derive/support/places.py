"""Locations on disk: the checkout, if there is one, and the signed cache of derived and compiled code.

Cached code is executed when it is read back, so anyone who can write it can run code as this user. Another user of the
machine must not be able to. Hence

- the directory belongs to this user, nobody else may write to it, and nobody else may replace it by
  writing to a directory above it; otherwise nothing is cached, and one sentence on stderr says why;
- a file is read only if it belongs to this user, nobody else may write to it, and it is not a link;
- every file is signed with a secret that only this user can read, together with its key: the
  declaration and the version of the engine, or the compiled program. A truncated, changed or renamed file, or one
  of another version, has no valid signature.

A file without a valid signature counts as missing and is replaced. Writes are atomic, so two processes may write the
same file. A directory that is read-only or full stores nothing new and raises nothing. A directory that the user sets
for JAX (JAX_COMPILATION_CACHE_DIR) is not touched.
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
"""Seconds per day. The last use of a file is recorded once a day."""
DAYS_UNUSED = 60
"""Days without use after which a file is removed."""


def path_of(value: Any, what: str = "path") -> Path:
    """Return a path given as text or path; raise ParameterError otherwise."""
    if isinstance(value, (str, Path)):
        return Path(value)
    text = os.fspath(value) if isinstance(value, os.PathLike) else None
    if not isinstance(text, str):
        raise ParameterError(f"{what}={value!r}: give the path as text, such as 'results/run.nc'")
    return Path(text)


def checkout() -> Path | None:
    """Return the source directory of the project that contains this package; None if it is installed."""
    root = Path(__file__).resolve().parents[2]
    try:
        told = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    project = told.get("project")
    return root if isinstance(project, dict) and project.get("name") == PROJECT else None


def refuse_among_packages(directory: Path) -> None:
    """Raise ParameterError if solvers would be written among the files of this project, installed or not."""
    home, place = Path(__file__).resolve().parents[2], directory.resolve()
    if checkout() is None and place.is_relative_to(home):
        raise ParameterError(
            f"{directory} is where this project is installed; write solvers to a directory of your own"
        )
    if any(place.is_relative_to(home / package) for package in ("derive", "numerics", "generated")):
        raise ParameterError(
            f"{directory} contains the code of this project; write solvers to a directory of your own (shipped "
            "solvers are written by `derive build`)"
        )


def cache_place() -> Path | None:
    """Return the user's cache directory, or that of TWO_LEVEL_DMFT_CACHE; None if it is empty."""
    named = os.environ.get("TWO_LEVEL_DMFT_CACHE")
    if named is not None:
        return Path(named) if named else None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / PROJECT


def kept() -> KeptFiles | None:
    """Return the cache; None if it is disabled. The directory is created on first use."""
    place = cache_place()
    return None if place is None else _kept_at(Path(os.path.abspath(place)))


class KeptFiles:
    """The signed files of one cache directory, by kind and key (`question`)."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._refused = False
        self._secret: bytes | None = None
        self._swept: set[str] = set()

    def read(self, kind: str, question: str) -> bytes | None:
        """Return the cached bytes of a key; None if there are none with a valid signature."""
        try:
            secret = self._key(make=False)
            signed = None if secret is None else _read(self._path(kind, question))
        except OSError:
            return None
        if secret is None or signed is None:
            return None
        size = hashlib.sha256().digest_size
        signature, content = signed[:size], signed[size:]
        return content if hmac.compare_digest(signature, _signature(secret, kind, question, content)) else None

    def write(self, kind: str, question: str, content: bytes) -> None:
        """Store the bytes of a key; a directory that cannot be written is ignored."""
        with suppress(OSError):
            secret = self._key(make=True)
            if secret is None:
                return
            path = self._path(kind, question)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._sweep(kind)
            _write(path, _signature(secret, kind, question, content) + content)

    def _path(self, kind: str, question: str) -> Path:
        """Return the path of a key: a readable name and a digest."""
        readable = re.split(r"\W", question)[0][:60]
        return self.place / kind / f"{readable}-{hashlib.sha256(question.encode()).hexdigest()[:32]}"

    def _key(self, make: bool) -> bytes | None:
        """Return the secret of this user, creating it if necessary; None if nothing is cached."""
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
            print(f"note: nothing is cached in {self.place}: {reason}", file=sys.stderr)
            return None
        self._secret = _secret(self.place / SECRET_FILE, make)
        return self._secret

    def _sweep(self, kind: str) -> None:
        """Remove unfinished files and those unused for long, once per process."""
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


def _signature(secret: bytes, kind: str, question: str, content: bytes) -> bytes:
    """Return a signature of content and key, each prefixed by its length, so that no two inputs coincide."""
    parts = [kind.encode(), question.encode(), content]
    return hmac.digest(secret, b"".join(len(part).to_bytes(8, "big") + part for part in parts), "sha256")


def _secret(path: Path, make: bool) -> bytes | None:
    """Return the secret in this file.

    If there is none that only this user can read, create one, provided that `make` is set.
    """
    secret = _read(path, readable=False)
    if secret is not None and len(secret) == SECRET_BYTES:
        return secret
    if not make:
        return None
    if secret is not None or path.is_symlink() or path.exists():
        path.unlink()  # cut off, or others could read it
    handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
        try:
            os.link(temporary, path)  # another process may have been first: then its secret is ours too
        except FileExistsError:
            pass
        except OSError:
            os.replace(temporary, path)  # no links here: what the slower of two processes signs is made again later
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    secret = _read(path, readable=False)
    return secret if secret is not None and len(secret) == SECRET_BYTES else None


def _read(path: Path, readable: bool = True) -> bytes | None:
    """Return a file that only this user may write (and read, unless `readable`); None for any other."""
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
    """Replace a file atomically."""
    handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _mine(status: os.stat_result, forbidden: int) -> bool:
    """Return whether a file or directory belongs to this user and denies these permissions to all others."""
    if not hasattr(os, "geteuid"):
        return True  # where there are no such permissions, the cache of a user lies in the profile, which is private
    return status.st_uid == os.geteuid() and not status.st_mode & forbidden


def _open_to_others(place: Path) -> str:
    """Return who else could write to this directory and a remedy; empty if nobody can.

    Directories above it must not let others replace it: they belong to the user or to root, and others may write to
    them only where the sticky bit protects foreign files, or where nobody else has access.
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
