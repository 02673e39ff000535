"""The only interface of the self-test to the engine: a declaration as text in, numbers out.

A failure raises one of two exceptions: `Refused`, which carries an error message for the user and is allowed, or
`Broken`, which no declaration may cause.
"""

from __future__ import annotations

import ast
import re
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derive.errors import DeclarationError, DeriveError, NumericalError

if TYPE_CHECKING:
    from derive.language.model import Model
    from derive.pipeline import Derivation
    from numerics.solver import Solver

SAMPLES = 4000
"""Number of sampled sites: trades the detection of a wrong law against time."""
_FOLDER = re.compile(r"\S+(?=declaration\.py)")
_PYTHON = re.compile(r"\b[A-Z]\w*(Error|Exception|Warning)\b:|Traceback|please report")


class Refused(Exception):
    """The engine refused the declaration with an error message; `numerical`: only its numbers are at fault."""

    def __init__(self, sentence: str, numerical: bool = False):
        super().__init__(sentence)
        self.numerical = numerical


class Broken(Exception):
    """The engine failed without an error message for the user. The message ends the traceback; `text` is the
    declaration."""

    def __init__(self, message: str, text: str = ""):
        super().__init__(message)
        self.text = text


@contextmanager
def classify_errors(text: str = "") -> Iterator[None]:
    """Convert exceptions to `Refused` or `Broken`. A message that only wraps a Python exception counts as a failure."""
    try:
        yield
    except (Refused, Broken):
        raise
    except DeriveError as error:
        sentence = _FOLDER.sub("", " ".join(str(error).split()))
        told_for = error.told_for if isinstance(error, DeclarationError) else None
        if told_for is not None or _PYTHON.search(sentence) or not sentence:
            raise Broken(f"{type(told_for or error).__name__}: {sentence}", text) from None
        raise Refused(sentence, isinstance(error, NumericalError)) from None
    except Exception as error:  # noqa: BLE001 - whatever the engine raises
        frames = traceback.extract_tb(error.__traceback__)
        places = [f"{Path(f.filename).parent.name}/{Path(f.filename).name}:{f.lineno} in {f.name}" for f in frames[-3:]]
        what = " ".join(str(error).split())[:300]
        raise Broken(f"{type(error).__name__}: {what} ({' <- '.join(reversed(places))})", text) from None


Edges = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class ProbeNumbers:
    """The spectrum of one probe: intervals of its bulk with the standard errors of edges, outliers, point masses.

    Outliers are those of the last time and, on request, of every earlier time.
    """

    label: str
    edges: tuple[tuple[float, float], ...]
    edge_errors: tuple[tuple[float, float], ...] | None
    outliers: tuple[float, ...]
    errors: tuple[float, ...] | None
    condition: float
    path: tuple[tuple[float, ...], ...] | None
    atoms: tuple[float, ...] = ()


@dataclass(frozen=True)
class TheoryNumbers:
    """The numbers of the theory. Observables are in the order of the declaration, each a list over time."""

    observables: tuple[tuple[float, ...], ...]
    errors: tuple[tuple[float, ...], ...] | None
    spectra: tuple[ProbeNumbers, ...]
    failed: tuple[str, ...] = ()
    """Failed certificates, one sentence each."""

    @property
    def exact(self) -> bool:
        return self.errors is None


@lru_cache(maxsize=4)
def load(text: str) -> Model:
    """Return the model of a declaration."""
    from derive.inputs.loading import load_model

    with tempfile.TemporaryDirectory() as folder, classify_errors(text):
        path = Path(folder) / "declaration.py"
        path.write_text(text, encoding="utf-8")
        return load_model(str(path))


@lru_cache(maxsize=4)
def _files(text: str) -> dict[str, str]:
    model = load(text)
    with classify_errors(text):
        from derive.codegen import solver_files

        return solver_files(model)


@lru_cache(maxsize=4)
def _solver(text: str) -> Solver:
    files = _files(text)
    with classify_errors(text):
        from numerics.solver import load_solver

        return load_solver(files)


def words_of_code(text: str) -> list[str]:
    """Return the names in the modules generated for a declaration."""
    names: set[str] = set()
    for name, code in _files(text).items():
        for node in ast.walk(ast.parse(code if name.endswith(".py") else "")):
            match node:
                case ast.Name(id=word) | ast.arg(arg=word) | ast.FunctionDef(name=word):
                    names.add(word)
    return sorted(names)


def values_of(text: str) -> dict[str, Any]:
    """Return the default values of parameters, and the arrays."""
    model = load(text)
    values = {p.name: p.default for p in model.parameters}
    return values if model.arrays is None else {**values, **model.arrays(values)}


def _series(values: Any) -> tuple[float, ...]:
    """Return an observable over time as a list, with its labels in sequence at each time."""
    import numpy as np

    return tuple(map(float, np.ravel(np.asarray(values, float))))


@lru_cache(maxsize=16)
def solved(text: str, path: bool = False, samples: int = SAMPLES, seed: int = 0) -> TheoryNumbers:
    """Return the theory at the default values of the parameters."""
    solver, values = _solver(text), values_of(text)
    with classify_errors(text):
        return numbers_of(solver, load(text), values, path=path, samples=samples, seed=seed)


def with_all_labels(text: str) -> TheoryNumbers | None:
    """Return the theory without its label symmetry, with every label separate; None if it has no symmetry."""
    labels = training_level(text).method.labels
    if labels is None or not labels.group.components:
        return None
    solver, values = _solver(text), values_of(text)
    if not solver.has_label_symmetry(values):
        return None
    with classify_errors(text):
        return numbers_of(solver.with_all_labels, load(text), values)


def numbers_of(
    solver: Solver,
    model: Model,
    values: dict[str, Any],
    *,
    labels: tuple[str, ...] | None = None,
    path: bool = False,
    samples: int = SAMPLES,
    seed: int = 0,
) -> TheoryNumbers:
    """Return the numbers of a model from its solver at values of its parameters and arrays.

    `labels` are the labels of the probed matrices.
    """
    from numerics.solver import solve

    solution = solve(solver, values, samples=samples, seed=seed, path=path, certify=None)
    certificate = solution.certificate
    names = [name for name, _ in model.observe]
    errors = solution.errors
    return TheoryNumbers(
        tuple(_series(solution.observables[name]) for name in names),
        None if errors is None else tuple(_series(errors[name]) for name in names),
        tuple(
            ProbeNumbers(
                layer.label,
                layer.law.edges,
                _edge_errors(layer.edge_errors),
                tuple(layer.outliers.tolist()),
                None if layer.outlier_errors is None else tuple(layer.outlier_errors.tolist()),
                layer.diagnostics.condition,
                None if layer.outlier_path is None else tuple(tuple(now.tolist()) for now in layer.outlier_path),
                tuple(at for at, _ in layer.atoms),
            )
            for layer in solution.layers
            if labels is None or layer.label in labels
        ),
        () if certificate is None else tuple(check.sentence for check in certificate.failed),
    )


def _edge_errors(errors: Any) -> tuple[tuple[float, float], ...] | None:
    """Return the standard errors of edges, zero for an edge that has none; None if no edge has one."""
    import numpy as np

    return None if errors is None else tuple((low, high) for low, high in np.nan_to_num(errors).tolist())


def edges_in_two_ways(text: str) -> list[tuple[Edges, Edges]]:
    """Return the intervals of each bulk with a curve, from the curve and from the response equations."""
    solver, values = _solver(text), values_of(text)
    with classify_errors(text):
        from numerics.bulk.support import law_of, law_without_curve

        matrices = [matrix for matrix in solver.matrices if matrix.bulk.eliminated and not matrix.moves]
        branches = [solver.branch(values, matrix) for matrix in matrices]
        return [(tuple(law_of(one).edges), tuple(law_without_curve(one).edges)) for one in branches]


def simulated(text: str, size: int, seeds: int, seed: int) -> tuple[list[Any], list[list[Any]]]:
    """Return observables (draws by times) and eigenvalues (one array per draw) of a finite-size simulation."""
    solver, values = _solver(text), values_of(text)
    with classify_errors(text):
        from numerics.simulation.samples import simulate

        simulation = simulate(solver, values, size, seeds, seed=seed)
        names = [name for name, _ in load(text).observe]
        return [simulation.observables[name] for name in names], [layer.eigenvalues for layer in simulation.layers]


@lru_cache(maxsize=16)
def training_level(text: str) -> Derivation:
    """Return the derivation of the training level, without probes."""
    from dataclasses import replace

    model = load(text)
    with classify_errors(text):
        from derive.pipeline import derive_model

        return derive_model(replace(model, probe=None, observe=dict(model.observe), alignments=()))


@lru_cache(maxsize=512)  # a few numbers each, and every law begins with the same declarations
def exact_observables(text: str) -> tuple[tuple[float, ...], ...] | None:
    """Return the observables of a linear model in exact arithmetic, rounded at the end.

    None if laws are nonlinear or numbers have too many terms.
    """
    import sympy as sp

    derivation = training_level(text)
    with classify_errors(text):
        from derive.algebra.polynomials import TooLarge
        from derive.program.exact_run import ExactRun
        from derive.program.lowering import forward_pass

        if not derivation.system.linear:
            return None
        values = {p: sp.Rational(repr(float(p.default))) for p in derivation.model.parameters}
        arrays = {} if derivation.model.arrays is None else derivation.model.arrays(values_of(text))
        try:
            machine = ExactRun(forward_pass(derivation.layout), values, arrays=arrays)
            observables = machine.observables
        except (TooLarge, DeriveError):  # not an algebraic number, or too many terms
            return None
        return tuple(
            tuple(float(machine.scalars.expression(x).evalf(30)) for x in observables[name].ravel())
            for name, _ in derivation.model.observe
        )


def forget() -> None:
    """Clear all caches of earlier declarations, above all compiled code."""
    for kept in (load, _files, _solver, solved, training_level, exact_observables):
        kept.cache_clear()
    from numerics.modules import forget_compiled

    forget_compiled()


def keep_nothing() -> None:
    """Disable the disk cache of compiled code, since random declarations do not recur."""
    from numerics.modules import keep_compiled_in_memory

    keep_compiled_in_memory()
