"""Write solvers into a directory."""

from __future__ import annotations

from pathlib import Path

from derive.codegen import generate_alone
from derive.codegen.build import Generate, generate_tree, write_tree
from derive.language.model import Model
from derive.printing import lettered, letters_of
from derive.support.places import refuse_among_packages


def build(model: Model, directory: Path, notation: str) -> list[Path]:
    """Write the solver of a model into a directory, with a copy of the shared runtime; return the files."""
    refuse_among_packages(directory)
    return write_tree(generate_tree([model], in_notation(generate_alone, notation)), directory)


def in_notation(generate: Generate, notation: str) -> Generate:
    """Return a function that generates files, with comments and derivation in the given notation."""

    def generated(model: Model) -> dict[str, str]:
        with lettered(letters_of(model, notation)):
            return dict(generate(model))

    return generated
