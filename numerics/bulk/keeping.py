"""A disk cache for the spectral laws of large systems.

The key is a hash of the numerical coefficients of the equations and of the source of the solver, so that other
parameters, another declaration or another version miss the cache. Entries are signed like cached code.
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
"""CPU time, in seconds, below which a result is not cached."""
T = TypeVar("T")


def load_or_compute(
    branch: Branch, what: str, find: Callable[[], T], plain: Callable[[T], Any], restore: Callable[[Any], T]
) -> T:
    """Return the cached result of a branch, or compute it by `find` and cache it.

    `plain` and `made` convert it to and from JSON.
    """
    place, equations = kept(), branch.equations
    if place is None or not isinstance(equations, PolynomialSystem):
        return find()
    question = f"{what} {_digest(equations, branch.resolvent_index)} {_solver()}"
    cached = place.read(KIND, question)
    if cached is not None:
        return restore(json.loads(cached))
    start = time.process_time()
    result = find()
    if time.process_time() - start > LONG:
        place.write(KIND, question, json.dumps(plain(result)).encode())
    return result


def law_to_json(law: SpectralLaw) -> dict[str, Any]:
    """Return a law as JSON data, bit for bit."""
    pieces = list(law.panels.pieces)
    return {
        "edges": law.edges,
        "atoms": law.atoms,
        "error": law.error,
        "zeros": law.panels.zeros,
        "pieces": [(piece.low, piece.high, piece.a, piece.b) for piece in pieces],
        "panels": [(pieces.index(p.piece), p.t0, p.t1, p.series.tolist(), p.error) for p in law.panels.panels],
    }


def law_from_json(plain: dict[str, Any]) -> SpectralLaw:
    """Return the law from JSON data of `law_to_json`."""
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
    """Return a hash of the equations with their coefficients."""
    digest = hashlib.sha256(f"{equations.count} {resolvent}".encode())
    residual = equations.residual
    for array in (residual.coefficients, residual.factors, residual.starts, residual.places):
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


@cache
def _solver() -> str:
    """Return a hash of the solver: the sources of `numerics` and the versions of NumPy and SciPy."""
    digest = hashlib.sha256(" ".join(f"{name} {version(name)}" for name in ("numpy", "scipy")).encode())
    numerics = Path(__file__).parents[1]
    for path in sorted(numerics.rglob("*.py")):
        digest.update(path.relative_to(numerics).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
