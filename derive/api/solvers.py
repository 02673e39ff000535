"""The generated solver of a model, and the text of its declaration."""

from __future__ import annotations

from collections.abc import Callable

from derive.codegen import declaration_digest
from derive.codegen.store import stored_files
from derive.language.model import Model
from derive.loading import declaration_sources, is_file_target
from numerics.modules import Solver, load_built, load_solver


def solver_of(model: Model, target: str, progress: Callable[[float, str], None] | None = None) -> Solver:
    """The generated solver: as built for a shipped setting, otherwise derived now and kept for the next time."""
    built = None if not target or is_file_target(target) else load_built(model.name)
    if built is not None and declaration_digest(model) == built.setting.declaration:
        return built
    if progress is not None:
        progress(0.0, "deriving")
    return load_solver(stored_files(model))


def declaration_text(target: str, model: Model) -> str:
    """The file that declares a model, with those beside it that it imports; what was declared in Python is printed."""
    if not target:
        return str(model)
    return "\n".join(text for _, text in declaration_sources(target))
