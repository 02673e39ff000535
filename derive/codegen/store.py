"""Cache of generated code, so that a member of a family is derived once.

The cache lies in the user's cache directory (XDG_CACHE_HOME, or .cache in the home directory), or where the environment
variable TWO_LEVEL_DMFT_CACHE points; an empty value disables it. An entry belongs to one declaration and one version of
the engine and is signed by this user (`derive/support/places.py`), so that a stale or foreign entry is never used.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from derive.codegen import declaration_digest, solver_files
from derive.language.model import Model
from derive.support.places import kept

if TYPE_CHECKING:
    from derive.pipeline import Derivation

KIND = "derived"
TAKES_PART = ("sympy", "mpmath", "python-flint")
"""Packages, besides the engine, on which the text of a solver depends."""


def stored_files(model: Model, derivation: Derivation | None = None) -> dict[str, str]:
    """Return the files of a model from the cache; on a miss, generate and store them."""
    place = kept()
    if place is None:
        return solver_files(model, derivation)
    question = f"{model.name} {declaration_digest(model)} {_engine()}"
    cached = place.read(KIND, question)
    if cached is not None:
        return json.loads(cached)
    files = solver_files(model, derivation)
    place.write(KIND, question, json.dumps(files).encode())
    return files


@cache
def _engine() -> str:
    """Return a hash of all sources that take part in the derivation."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(" ".join(f"{name} {version(name)}" for name in TAKES_PART).encode())
    apart = ("checkpoints.py", "claims", "cli", "explore", "report", "selftest")
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in apart:
            continue
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
