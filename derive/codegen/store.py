"""Generated code kept between runs, so that a member of a family is derived once and then at hand.

The place is the user's cache directory (XDG_CACHE_HOME, or .cache in the home directory), or what the environment
variable TWO_LEVEL_DMFT_CACHE names; set it to nothing to keep no copies. A copy belongs to one declaration and one
version of the engine, both by fingerprint, so that a copy can be missing but not wrong.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from derive.codegen import declaration_digest, generate_files
from derive.codegen.build import write_tree
from derive.errors import DeriveError
from derive.language.model import Model
from derive.places import cache_place

if TYPE_CHECKING:
    from derive.pipeline import Derivation

CHECKSUM = "checksum.txt"


def stored_files(model: Model, derivation: Derivation | None = None) -> dict[str, str]:
    """The files of a model: from the store if they are there, derived (unless that is done) and stored otherwise."""
    place = cache_place()
    if place is None:
        return generate_files(model, derivation)
    folder = place / f"{model.name}-{declaration_digest(model)}-{_engine()}"
    try:
        found = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()) if path.is_file()}
        if found.pop(CHECKSUM, None) == _checksum(found):
            return found
    except (OSError, UnicodeDecodeError):
        pass
    files = generate_files(model, derivation)
    with suppress(DeriveError, OSError):  # a cache that cannot be written is no reason to fail
        write_tree({folder.name: {**files, CHECKSUM: _checksum(files)}}, place)
    return files


def _checksum(files: dict[str, str]) -> str:
    """A fingerprint of the files themselves: a damaged copy is derived again."""
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()


@cache
def _engine() -> str:
    """A fingerprint of everything that takes part in the derivation."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    apart = ("checkpoints.py", "claims", "cli", "report", "selftest")
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in apart:
            continue
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
