"""Code generation: JAX solvers, a NumPy simulation, and the derivation as Markdown."""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from derive.errors import DeclarationError, blaming, wording
from derive.language.contents import atoms, expressions
from derive.language.equations import DeclaredSpectrum
from derive.language.model import Model
from derive.language.symbols import _Named

if TYPE_CHECKING:
    from derive.pipeline import Derivation

_SHARED = Path(__file__).parents[2] / "numerics" / "runtime"
RUNTIME = "numerics.runtime"
"""The package of the runtime, which generated code imports."""

_PROBE = "A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."
_BULK, _CURVE = "The bulk: self-consistent responses", ", the curve of the resolvent G, and where its edges may lie"


def generate_files(model: Model, runtime: str = RUNTIME) -> dict[str, str]:
    """Return all files of generated/<name>/ by name. `runtime` as in `solver_files`."""
    from derive.pipeline import derive_model
    from derive.printing import markdown_of_derivation

    derivation = derive_model(model)
    document = markdown_of_derivation(derivation)
    document = document if document.endswith("\n") else document + "\n"
    return dict(sorted({**formatted(solver_files(model, derivation, runtime)), "derivation.md": document}.items()))


def solver_files(model: Model, derivation: Derivation | None = None, runtime: str = RUNTIME) -> dict[str, str]:
    """Return the modules of a solver as they are executed, text by file name. `formatted` formats them for readers.

    Args:
        model: the declared model.
        derivation: its derivation, if it has been computed.
        runtime: the package from which the code imports the runtime.
    """
    # the digest identifies a built or cached setting, so that it loads without the derivation
    from derive.pipeline import derive_model
    from derive.program.text import NoCode

    derivation = derive_model(model) if derivation is None else derivation
    try:
        with wording(derivation.as_declared):
            return _written(model, derivation, runtime)
    except NoCode as error:
        users = (e for e in model.equations if any(x.has(*error.functions) for x in expressions(e.value)))
        with blaming(next(users, None) if error.functions else None):
            raise


def _written(model: Model, derivation: Derivation, runtime: str) -> dict[str, str]:
    from derive.program.forward_text import ForwardText
    from derive.program.limit import LinearPrograms, linear_text
    from derive.program.lowering import forward_program
    from derive.program.module import front_text
    from derive.program.probe import bulk_record, probe_record
    from derive.program.simulation_text import write_simulation
    from derive.program.text import module_text

    layout, needs = derivation.layout, derivation.needs
    stems = _stems(model)
    files = {
        "training.py": ForwardText(forward_program(derivation), runtime).module(),
        "simulation.py": write_simulation(model, derivation.order.order, runtime),
    }
    for label, stem in stems.items():
        probed = derivation.probes[label]
        record = probe_record(probed.pencil, layout, needs.means, derivation.method.labels)
        files[f"probe{stem}.py"] = module_text(_PROBE, "PROBE", record, runtime)
        for name, bulk in (("bulk", probed.bulk), ("traces", probed.traces)):
            if bulk is not None:
                doc = f"{_BULK}{'' if bulk.curve is None else _CURVE}."
                record = bulk_record(bulk, layout, needs.means)
                files[f"{name}{stem}.py"] = module_text(doc, "BULK", record, runtime)
    linear, programs = LinearPrograms(), []
    with suppress(DeclarationError):  # `derive limit` reports the reason
        programs.append(linear.limit(derivation.limit))
    with suppress(DeclarationError):  # stability is then extrapolated from finite runs
        programs.append(linear.recursion(derivation.recursion))
    if programs:
        files["linear.py"] = linear_text(programs, runtime)
    exact = not derivation.method.sampled
    files["__init__.py"] = front_text(model, layout, exact, stems, declaration_digest(model), runtime)
    texts = {name: _banner(model) + text for name, text in sorted(files.items())}
    for text in texts.values():
        _check_syntax(text)
    return texts


def generate_alone(model: Model) -> dict[str, str]:
    """Return all files, with a copy of the runtime beside them."""
    files = generate_files(model, runtime=".runtime")
    shared = {f"runtime/{path.name}": path.read_text(encoding="utf-8") for path in sorted(_SHARED.glob("*.py"))}
    return {**files, **shared}


def _stems(model: Model) -> dict[str, str]:
    """Return the suffix of the module names of each probed matrix; equal matrices share modules."""
    stems: dict[str, str] = {}
    for label, probe in model.probes:
        same = next((other for other in stems if dict(model.probes)[other].matrices == probe.matrices), None)
        stems[label] = stems[same] if same is not None else f"_{label}" if label else ""
    return stems


def _between(probe: DeclaredSpectrum) -> str:
    return "".join(f" between {name}: {matrix}" for name, matrix in probe.between)


def _banner(model: Model) -> str:
    chosen = "".join(f" {name}={value}" for name, value in model.choices)
    return (
        f"# Written by `derive build {model.setting}{chosen}` from a declaration; edits are lost.\n"
        "# The mathematics is in derivation.md in this directory.\n"
    )


def _check_syntax(text: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise DeclarationError(
            f"the code generated from this declaration does not parse ({error.msg}); rename unusual names, "
            "and please report the declaration"
        ) from None


def formatted(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files formatted by the pinned formatter, with a fixed style independent of configuration files."""
    from ruff import find_ruff_bin

    with TemporaryDirectory() as place:
        paths = {name: Path(place, name) for name in files}
        for name, path in paths.items():
            path.write_text(files[name], encoding="utf-8")
        command = [find_ruff_bin(), "format", "--isolated", "--no-cache", "--quiet", "--line-length", "110", place]
        subprocess.run(command, check=True, capture_output=True)
        return {name: path.read_text(encoding="utf-8") for name, path in paths.items()}


def declaration_digest(model: Model) -> str:
    """Return a hash of the declaration that is the same on every machine."""
    parts = [
        model.name,
        model.doc,
        *(f"{name}={value}" for name, value in model.choices),
        *(f"{label}: {probe.matrix} plus {probe.plus}{_between(probe)}" for label, probe in model.probes),
        *(f"{e.target} = {e.value}" for e in model.equations),
        *(f"{name} = {value}" for name, value in (*model.observe, *model.alignments)),
        model.responses,
        *sorted(f"{type(s).__name__} {s.name} {s.fingerprint}" for s in {*atoms(model, _Named), *model.parameters}),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
