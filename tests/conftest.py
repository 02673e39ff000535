"""Shared by all tests: models by name, and solvers generated once a session."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one worker a core: more threads only wait for each other
    os.environ.setdefault(_name, "1")

HERE = Path(__file__).parent
SHIPPED = tuple(sorted(p.stem for p in (HERE.parent / "derive" / "models").glob("*.py") if p.stem != "__init__"))
STRANGERS = tuple(sorted(p.stem for p in (HERE / "declarations").glob("*.py")))


@cache
def model_named(name: str):
    """A shipped setting, or one of the declarations that no stage has been written for."""
    from derive.loading import load_model

    return load_model(name if name in SHIPPED else str(HERE / "declarations" / f"{name}.py"))


@cache
def records_of(name: str):
    from derive.pipeline import derive_model

    return derive_model(model_named(name))


@cache
def solver_of(name: str):
    from derive.codegen import generate_files
    from numerics.solver import load_solver

    return load_solver(generate_files(model_named(name)))


def values_of(name: str, **changes) -> dict:
    """Default parameters with some changed."""
    return {**{p.name: p.default for p in model_named(name).parameters}, **changes}


@pytest.fixture
def declared(tmp_path):
    """Write a declaration to a file and return its path."""

    def write(text: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
