"""Write generated code to a directory atomically, and compare a directory with what would be written.

The tree below the directory is <model name>/<file>. Files that are not generated are left unchanged.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from derive.errors import DeriveError
from derive.language.model import Model
from derive.support.places import checkout
from derive.support.progress import Progress

Generate = Callable[[Model], Mapping[str, str]]

ROOT_FILE = "__init__.py"
ROOT_TEXT = '"""Solvers written by `derive build`, one package a setting: change the declaration and build again."""\n'


@dataclass(frozen=True)
class DirectoryDifference:
    """Differences between a directory and a build: POSIX paths relative to the directory."""

    stale: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    foreign: tuple[str, ...]
    """Directories and files that belong to no model; a build keeps them."""

    def __bool__(self) -> bool:
        return bool(self.stale or self.missing or self.extra or self.foreign)


def project_directory() -> Path:
    """Return generated/ beside the package, in a checkout or as installed."""
    return Path(__file__).parents[2] / "generated"


def build_directory(out: str | None, shipped: bool, writing: bool) -> Path:
    """Return the directory of a build: `out` if given, else the project's or the current directory's generated/.

    An installed package is never modified: outside a checkout a build needs `out`.
    """
    place = Path(out) if out is not None else project_directory() if shipped else Path("generated")
    if writing and checkout() is None and (out is None or place.resolve() == project_directory().resolve()):
        raise DeriveError("a build does not change an installed copy; choose a directory with --out DIR")
    return place


def generate_tree(
    models: list[Model], generate: Generate, progress: Progress | None = None
) -> dict[str, dict[str, str]]:
    """Return the files of every model, by model name, without writing them."""
    tree: dict[str, dict[str, str]] = {}
    for i, model in enumerate(models):
        if progress is not None:
            progress(i / len(models), f"deriving {model.name}")
        if model.name in tree:
            raise DeriveError(
                f"two declarations are named {model.name}; rename one file, or build them with different --out"
            )
        tree[model.name] = dict(generate(model))
    if progress is not None:
        progress(1.0, "writing")
    return tree


def write_tree(tree: Mapping[str, Mapping[str, str]], directory: Path, whole: bool = False) -> list[Path]:
    """Replace the directory's contents by the tree and return the files; on failure the directory is unchanged.

    With `whole` the tree is the complete contents, and the directory becomes a package.
    """
    _check_place(directory)
    created = [parent for parent in (directory, *directory.parents) if not parent.exists()]
    staging = None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".building-", dir=directory))
        for name, files in tree.items():
            for file, text in files.items():
                path = staging / "new" / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode())
        if whole:
            (staging / "new" / ROOT_FILE).write_bytes(ROOT_TEXT.encode())
        _swap(staging, directory, [*tree, *([ROOT_FILE] if whole else [])])
    except BaseException as error:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
        for parent in created:
            if parent.exists() and not any(parent.iterdir()):
                parent.rmdir()
        if isinstance(error, OSError):
            raise DeriveError(
                f"cannot write to {directory} ({error.strerror or error}); nothing was changed, "
                "choose another place with --out DIR"
            ) from None
        raise
    shutil.rmtree(staging, ignore_errors=True)
    return [directory / name / file for name, files in tree.items() for file in files]


def _check_place(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise DeriveError(f"{directory} is a file, not a directory; choose another place with --out DIR")


def _swap(staging: Path, directory: Path, names: list[str]) -> None:
    """Replace each file or directory by its new version; on failure restore the old ones."""
    old, new = staging / "old", staging / "new"
    old.mkdir()
    try:
        for name in names:
            if (directory / name).exists():
                os.replace(directory / name, old / name)
            os.replace(new / name, directory / name)
    except BaseException:
        for name in names:
            if (old / name).exists():
                if (directory / name).exists():
                    os.replace(directory / name, staging / f"discarded-{name}")
                os.replace(old / name, directory / name)
            elif not (new / name).exists() and (directory / name).exists():
                os.replace(directory / name, staging / f"discarded-{name}")
        raise


def compare_tree(tree: Mapping[str, Mapping[str, str]], directory: Path, whole: bool = False) -> DirectoryDifference:
    """Return what a build would change. With `whole`, files of no model are reported as foreign."""
    _check_place(directory)
    expected = {
        str(PurePosixPath(name, file)): text.encode() for name, files in tree.items() for file, text in files.items()
    }
    if whole:
        expected[ROOT_FILE] = ROOT_TEXT.encode()
    present = {str(path.relative_to(directory).as_posix()) for name in tree for path in _files(directory / name)}
    foreign: list[str] = []
    if whole and directory.is_dir():
        tops = sorted(
            path for path in directory.iterdir() if path.name != "__pycache__" and not path.name.startswith(".")
        )
        foreign = [path.name for path in tops if path.name not in tree and path.name != ROOT_FILE]
        present |= {path.name for path in tops if path.name == ROOT_FILE}
    stale = [name for name in expected if name in present and (directory / name).read_bytes() != expected[name]]
    return DirectoryDifference(
        tuple(sorted(stale)),
        tuple(sorted(set(expected) - present)),
        tuple(sorted(present - set(expected))),
        tuple(foreign),
    )


def _files(directory: Path) -> Iterator[Path]:
    if directory.is_dir():
        for path in sorted(directory.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
