"""Units of a sweep: the work of one worker, from plain data to results, which are sent as one line of JSON.

The points and samples of a unit, and every number, depend on the sweep alone and not on the worker: points of a unit
are solved as one batch in their order, and a sample's random numbers are those of its seed.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from derive.errors import DeriveError, NumericalError
from derive.support.guarded import parsed_json
from derive.support.shapes import fits
from derive.sweeps.threads import one_thread

if TYPE_CHECKING:
    from numerics.modules import Solver
    from numerics.simulation.samples import Samples
    from numerics.solution import Prediction

if not {"numpy", "jax"} & set(sys.modules):  # a worker that starts here, of whatever kind
    os.environ.update(one_thread())

_ONE_AT_A_TIME = threading.Lock()
"""A lock for workers with threads: double precision and NumPy's warnings are process-wide settings."""
_KNOWN_ELSEWHERE = ("inputs", "order", "about", "solver")
"""Parts of a solution that are stored elsewhere, large, or not serialisable."""


@dataclass(frozen=True)
class SolverCode:
    """The files of a generated solver as text, identified by their `digest`."""

    digest: str
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Unit:
    """One unit of work.

    Attributes:
        name: its key in the journal, the same in every run of the sweep.
        points: parameters and arrays by name.
        batch: size of the batch that is compiled, though this unit may have fewer points.
        versions: versions of the libraries, which must be the same for all units.
        kind: "solve", or "simulate" one sample.
        options: arguments of `numerics.solver.solve_many` or `numerics.simulation.samples.simulate`.
    """

    name: str
    kind: str
    code: SolverCode
    points: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    batch: int = 1


Tell = Callable[[float, str], None]
Found = dict[str, Any]
"""The parts of a solution or sample by name, or under "error" the reason why there is none."""
UnitResults = str | list[Found]
"""The results of all points of a unit: a line of JSON from elsewhere, or objects computed in this process."""


def computed(unit: Unit) -> str:
    """Return the results of all points of a unit as one line of JSON; raise if library versions differ."""
    from derive.results.made import versions

    here = versions()
    for library, version in unit.versions.items():
        if here[library] != version:
            raise DeriveError(
                f"a worker has {library} {here[library]}, but the sweep was started with {version}; install the same"
            )
    with _ONE_AT_A_TIME:
        return as_line(results_of(unit))


def results_of(unit: Unit, tell: Tell | None = None) -> list[Found]:
    """Return the results of all points of a unit, whatever the library versions. tell: progress callback."""
    import warnings

    import numpy as np

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow is reported as an error of ours
        return _solved(unit, tell) if unit.kind == "solve" else [_sampled(unit, tell)]


def as_line(found: list[Found]) -> str:
    """Return results as one line of JSON."""
    from derive.results.saving import Pool

    pool = Pool()
    results = pool.encoded(found)
    numbers = base64.b64encode(pool.numbers().astype("<f8").tobytes()).decode()
    return json.dumps({"results": results, "numbers": numbers}, allow_nan=False, separators=(",", ":"))


def read(line: str) -> list[Found]:
    """Parse a line of `as_line`; raise ValueError for anything else."""
    import numpy as np

    from derive.results.files import decoded

    held = parsed_json(line)
    if not fits(held, dict) or not fits(held.get("numbers"), str):
        raise ValueError("no numbers")
    numbers = np.frombuffer(base64.b64decode(held["numbers"], validate=True), "<f8")
    results: list[Found] = decoded(held.get("results"), numbers)
    if not fits(results, list[dict[str, Any]]):
        raise ValueError("no results")
    return results


def _solved(unit: Unit, tell: Tell | None) -> list[Found]:
    from numerics.solver import solve_many

    points = [dict(point) for point in unit.points]
    solutions = solve_many(_solver(unit.code), points, batch=unit.batch, progress=tell, **unit.options)
    return [_parts(one) for one in solutions]


def _sampled(unit: Unit, tell: Tell | None) -> Found:
    from numerics.simulation.samples import simulate

    options = dict(unit.options)
    size, number = options.pop("size"), options.pop("number")
    solver, point = _solver(unit.code), dict(unit.points[0])
    try:
        return _parts(simulate(solver, point, size, 1, first=number, progress=tell, **options))
    except NumericalError as error:
        return _parts(error)


def _parts(result: Prediction | Samples | NumericalError) -> Found:
    if isinstance(result, NumericalError):
        return {"error": str(result)}
    return {f.name: getattr(result, f.name) for f in fields(result) if f.name not in _KNOWN_ELSEWHERE}


_LOADED: OrderedDict[str, Solver] = OrderedDict()
_MOST_LOADED = 16


def remember(code: SolverCode, solver: Solver) -> None:
    """Register the loaded solver of a code, so that units computed in this process reuse it."""
    _LOADED[code.digest] = solver
    while len(_LOADED) > _MOST_LOADED:
        _LOADED.popitem(last=False)


def _solver(code: SolverCode) -> Solver:
    """Return the loaded solver of some generated code, cached with its compiled programs."""
    if code.digest not in _LOADED:
        from numerics.modules import load_solver

        remember(code, load_solver(dict(code.files)))
    return _LOADED[code.digest]


def solution_of(parts: Found, solver: Solver, point: Mapping[str, Any]) -> Prediction | NumericalError:
    """Return a solution of a unit, completed by data stored elsewhere; it has no order parameters."""
    from derive.results.typed import built
    from numerics.solution import Prediction

    if "error" in parts:
        return NumericalError(str(parts["error"]))
    completed = {"inputs": dict(point), "order": None, "about": solver.about, "solver": solver}
    return built(Prediction, {**parts, **completed})


def simulation_of(samples: Sequence[Found], solver: Solver, point: Mapping[str, Any]) -> Samples | NumericalError:
    """Return all samples of one point as one simulation; if some diverged, the error of the first."""
    from derive.results.typed import built
    from numerics.simulation.samples import Samples, joined

    wrong = next((one["error"] for one in samples if "error" in one), None)
    if wrong is not None:
        return NumericalError(str(wrong))
    completed = {"inputs": dict(point), "about": solver.about}
    return joined([built(Samples, {**one, **completed}) for one in samples])
