"""Laws of large systems kept between runs: finding one takes seconds, reading it back takes none.

What is kept is the answer to the equations themselves, number by number, and to the code that solves them: other
parameters, another declaration or another version ask another question. It is signed as derived code is.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from derive.support.places import kept
from numerics.bulk.branch import Branch
from numerics.bulk.law import DensityPanel, DensityPiece, Panelled, SpectralLaw
from numerics.bulk.polynomials import PolynomialSystem

KIND = "bulk"
LONG = 1.0
"""What took fewer seconds of the processor is not kept."""
T = TypeVar("T")


def kept_or_found(
    branch: Branch, what: str, find: Callable[[], T], plain: Callable[[T], Any], made: Callable[[Any], T]
) -> T:
    """What was kept of a branch, or else what `find` finds; `plain` and `made` turn it into JSON and back."""
    place, equations = kept(), branch.equations
    if place is None or not isinstance(equations, PolynomialSystem):
        return find()
    question = f"{what} {_digest(equations, branch.resolvent_index)} {_solver()}"
    known = place.read(KIND, question)
    if known is not None:
        return made(json.loads(known))
    start = time.process_time()
    found = find()
    if time.process_time() - start > LONG:
        place.write(KIND, question, json.dumps(plain(found)).encode())
    return found


def plain_law(law: SpectralLaw) -> dict[str, Any]:
    """A law as lists of numbers, each to the last bit."""
    pieces = list(law.panels.pieces)
    return {
        "edges": law.edges,
        "atoms": law.atoms,
        "error": law.error,
        "zeros": law.panels.zeros,
        "pieces": [(piece.low, piece.high, piece.a, piece.b) for piece in pieces],
        "panels": [(pieces.index(p.piece), p.t0, p.t1, p.series.tolist(), p.error) for p in law.panels.panels],
    }


def made_law(plain: dict[str, Any]) -> SpectralLaw:
    """The law that these lists stand for."""
    pieces = [DensityPiece(float(low), float(high), int(a), int(b)) for low, high, a, b in plain["pieces"]]
    panels = tuple(
        DensityPanel(pieces[k], float(t0), float(t1), np.array(series, float), float(error))
        for k, t0, t1, series, error in plain["panels"]
    )
    return SpectralLaw(
        _pairs(plain["edges"]), _pairs(plain["atoms"]), Panelled(panels, tuple(plain["zeros"])), plain["error"]
    )


def _pairs(listed: list[list[float]]) -> tuple[tuple[float, float], ...]:
    return tuple((float(a), float(b)) for a, b in listed)


def _digest(equations: PolynomialSystem, resolvent: int) -> str:
    """A fingerprint of the equations with their numbers."""
    digest = hashlib.sha256(f"{equations.count} {resolvent}".encode())
    residual = equations.residual
    for array in (residual.coefficients, residual.factors, residual.starts, residual.places):
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


@cache
def _solver() -> str:
    """A fingerprint of what solves them: all of the numerics, which the bulk builds on."""
    digest = hashlib.sha256(" ".join(f"{name} {version(name)}" for name in ("numpy", "scipy")).encode())
    numerics = Path(__file__).parents[1]
    for path in sorted(numerics.rglob("*.py")):
        digest.update(path.relative_to(numerics).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
