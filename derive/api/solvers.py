"""The source of a declaration: its text, the generated solver of each model, and the provenance of its results."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path

from derive.codegen import declaration_digest
from derive.codegen.store import stored_files
from derive.inputs.loading import declaration_sources, is_file_target
from derive.inputs.problems import Problem
from derive.language.model import Model
from derive.printing.documents import latex_of_spectrum
from derive.results.made import Provenance, fingerprints, versions
from derive.support.progress import Progress, reporting
from numerics.modules import Solver, load_built, load_solver
from numerics.options import Options


@dataclass(frozen=True, eq=False)
class DeclarationSource:
    """A declaration by its target: the name of a setting, the path of a file, or none for one made in Python."""

    target: str = ""
    _solvers: dict[str, Solver] = field(default_factory=dict)
    _files: dict[str, dict[str, str]] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _latex: dict[str, dict[str, str]] = field(default_factory=dict)

    def solver(self, model: Model, progress: Progress | None = None) -> Solver:
        """The generated solver: built in advance for a shipped setting, otherwise derived now and cached."""
        if model.name not in self._solvers:
            self._solvers[model.name] = self._built(model) or load_solver(self._derived(model, progress))
        return self._solvers[model.name]

    def files(self, model: Model, progress: Progress | None = None) -> dict[str, str]:
        """The generated solver as text, by file."""
        if model.name not in self._files and self._built(model) is not None:
            spec = importlib.util.find_spec(f"generated.{model.name}")
            place = None if spec is None or spec.origin is None else Path(spec.origin).parent
            if place is not None:
                texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(place.glob("*.py"))}
                self._files[model.name] = texts
        return self._derived(model, progress)

    def _built(self, model: Model) -> Solver | None:
        built = None if not self.target or is_file_target(self.target) else load_built(model.name)
        return built if built is not None and declaration_digest(model) == built.setting.declaration else None

    def _derived(self, model: Model, progress: Progress | None) -> dict[str, str]:
        if model.name not in self._files:
            if progress is not None:
                progress(0.0, "deriving")
            with reporting(progress):
                self._files[model.name] = stored_files(model)
        return self._files[model.name]

    def text(self, model: Model) -> str:
        """The text of the file that declares a model and of the files it imports; a model made in Python is printed."""
        if model.name not in self._texts:
            self._texts[model.name] = declaration_text(self.target, model)
        return self._texts[model.name]

    def made(self, verb: str, problem: Problem, options: Options) -> Provenance:
        """The provenance of a result; options are the given ones, in the form of the command line."""
        told = options.told(verb)
        told["kernel"] = [str(name) for name in told.pop("kernels", ())] or None
        told["align"] = list(problem.align) or None
        labels = tuple(label for label, _ in problem.model.probes)
        if problem.layers != labels:
            told["layer"] = problem.layers[0] if problem.layers else "none"
        return Provenance(
            verb,
            problem.model.setting,
            self.target,
            dict(problem.values),
            {name: value for name, value in told.items() if value is not None},
            self.text(problem.model),
            fingerprints(problem.inputs),
            versions(),
            {p.name: p.tex for p in problem.model.parameters if p.tex},
            dict(self._spectra(problem.model)),
        )

    def _spectra(self, model: Model) -> dict[str, str]:
        """The probed matrices as LaTeX, which are the same at all points of a sweep."""
        if model.name not in self._latex:
            self._latex[model.name] = {label: latex_of_spectrum(probe) for label, probe in model.probes}
        return self._latex[model.name]


def declaration_text(target: str, model: Model) -> str:
    """The text of the file that declares a model and of the files it imports; a model made in Python is printed."""
    if not target:
        return str(model)
    return "\n".join(text for _, text in declaration_sources(target))
