"""Write solvers into a directory."""

from __future__ import annotations

from pathlib import Path

from derive.codegen import generate_alone
from derive.codegen.build import generate_tree, write_tree
from derive.language.model import Model
from derive.support.places import refuse_among_packages


def build(model: Model, directory: Path) -> list[Path]:
    """Write the solver of a model into a directory, with a copy of the shared runtime; return the files."""
    refuse_among_packages(directory)
    return write_tree(generate_tree([model], generate_alone), directory)
