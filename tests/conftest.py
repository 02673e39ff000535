"""Shared by all tests: models by name, and solvers generated once a session."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one worker a core: more threads only wait for each other
    os.environ.setdefault(_name, "1")
# what a test runs takes longer to compile than to run; before JAX is imported
QUICKLY = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_parallel_codegen_split_count=1",  # both cores are busy: parts of a module only add work
)
os.environ.setdefault("XLA_FLAGS", " ".join(QUICKLY))

gc.set_threshold(100_000, 50, 1000)  # expressions and traces are many, and few of them are garbage in a circle

HERE = Path(__file__).parent
HEAVY = (
    "manual laws architecture trait_diagonals agreement api wide_network limit sampling_errors traits alignments "
    "sampled_pass generated unusual_declarations deep_linear site_bulks two_time report edge_expansions workers "
    "claims degenerate_values stability deep_linear_agreement tangent_kernel quadrature help_examples "
    "extensive_agreement non_gaussian_starts nonlinear_traits field_diagonals hard_edges diagonals_agreement "
    "spike_expansions alignments_in_time labelled_limit docstrings explore expansion_to_systems recursions "
    "exact_pass check cli notebooks means_in_coefficients install large_eigenproblems store sampling "
    "past_failures"
).split()
"""Files of tests that take longest. They begin first, so that no worker waits for another at the end."""
SHIPPED = tuple(sorted(p.stem for p in (HERE.parent / "derive" / "models").glob("*.py") if p.stem != "__init__"))
STRANGERS = tuple(sorted(p.stem for p in (HERE / "declarations").glob("*.py")))


def pytest_addoption(parser) -> None:
    parser.addoption(
        "--simulation-seed",
        type=int,
        default=1,
        help="seed of all simulations that theories are held to; no value may turn the suite red",
    )


@pytest.fixture(scope="session")
def simulation_seed(request) -> int:
    return request.config.getoption("--simulation-seed")


def pytest_configure(config) -> None:
    """Keep generated code of this session in a place of its own, which all workers share.

    Compiled code is found by what it was compiled from, so that it may stay from one session to the next, where pytest
    keeps its cache; `--cache-clear` removes it. So does the bytecode that other processes of the tests share, where
    none may be written beside the sources.
    """
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # the order is that of `HEAVY`
    if not hasattr(config, "workerinput"):
        config.code_store = tempfile.mkdtemp(prefix="two-level-dmft-tests-")
        os.environ["TWO_LEVEL_DMFT_CACHE"] = config.code_store
        if hasattr(config, "cache"):
            os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("compiled")))
            os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
            if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # nothing beside the sources, then
                os.environ.setdefault("PYTHONPYCACHEPREFIX", str(config.cache.mkdir("bytecode")))


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items) -> None:
    first = {f"test_{name}": rank for rank, name in enumerate(HEAVY)}
    items.sort(key=lambda item: first.get(item.path.stem, len(first)))
    for item in items:
        cases = [case for mark in item.iter_markers("long_cases") for case in mark.args]
        if item.get_closest_marker("long") or (cases and item.callspec.id in cases):
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.slow)
    _refuse_unknown_cases(items)
    _refuse_sets_in_names(items)


def _refuse_sets_in_names(items) -> None:
    """Raise if the name of a test contains a set, whose order changes from one process to the next."""
    for item in items:
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if any(isinstance(one, (set, frozenset)) and len(one) > 1 and str(one) in item.name for one in given):
            raise pytest.UsageError(f"{item.nodeid}: name the case by something that has an order, not by a set")


def _refuse_unknown_cases(items) -> None:
    """Raise if a `long_cases` mark names a case that its test does not have."""
    known, named = defaultdict(set), defaultdict(set)
    for item in items:
        for mark in item.iter_markers("long_cases"):
            test = f"{item.path.name}::{item.originalname}"
            known[test].add(item.callspec.id)
            named[test].update(mark.args)
    if items and items[0].config.args_source.name == "TESTPATHS":  # all tests, not a choice of cases
        unknown = [f"{test}[{case}]" for test in named for case in sorted(named[test] - known[test])]
        if unknown:
            raise pytest.UsageError(f"long_cases names cases that no test has: {', '.join(unknown)}")


def pytest_unconfigure(config) -> None:
    if hasattr(config, "code_store"):
        shutil.rmtree(config.code_store, ignore_errors=True)


def target_of(name: str) -> str:
    """What the command line takes: a shipped setting, or one of the declarations no stage has been written for."""
    return name if name in SHIPPED else str(HERE / "declarations" / f"{name}.py")


@cache
def model_named(name: str, **choices: int | str):
    """A shipped setting or a strange declaration; of a family the member that is chosen: L=1."""
    from derive.inputs.loading import load_model

    return load_model(target_of(name), choices)


@cache
def derivation_of(name: str, **choices: int | str):
    """Derived once per session and worker; each part when it is asked for."""
    from derive.pipeline import derive_model

    return derive_model(model_named(name, **choices))


@cache
def solver_of(name: str, **choices: int | str):
    """Derived once a session, whichever worker comes first."""
    from derive.codegen.store import stored_files
    from numerics.solver import load_solver

    return load_solver(stored_files(model_named(name, **choices)))


@cache
def choices_of(name: str) -> tuple[str, ...]:
    from derive.inputs.loading import load_declaration

    return tuple(choice for choice, _ in getattr(load_declaration(target_of(name)), "choices", ()))


def values_of(name: str, **changes) -> dict:
    """Choices and default parameters with some changed."""
    chosen = {key: value for key, value in changes.items() if key in choices_of(name)}
    model = model_named(name, **chosen)
    values = {**dict(model.choices), **{p.name: p.default for p in model.parameters}, **changes}
    return values if model.arrays is None else {**values, **model.arrays(values)}


def solver_and_values(name: str, **changes) -> tuple:
    """The solver that the choices among the changes ask for, and all values."""
    chosen = {key: value for key, value in changes.items() if key in choices_of(name)}
    return solver_of(name, **chosen), values_of(name, **changes)


@pytest.fixture
def declared(tmp_path):
    """Write a declaration to a file and return its path."""

    def write(text: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
