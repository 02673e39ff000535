"""From records to source: JAX solvers, a NumPy simulation, and the derivation beside them as Markdown."""

from __future__ import annotations

import hashlib
import subprocess

from derive import __version__
from derive.errors import DeclarationError
from derive.language.model import Model


def generate_files(model: Model) -> dict[str, str]:
    """Everything that goes into generated/<name>/, formatted: file name to text."""
    from derive.codegen.bulk import write_bulk
    from derive.codegen.probe import letters_needed, write_probe
    from derive.codegen.simulation import write_simulation
    from derive.codegen.training import write_training
    from derive.pipeline import derive_model
    from derive.printing import markdown_of_records

    records = derive_model(model)
    time_order = records["order"]
    signature = ", ".join(p.name for p in model.parameters)
    letters = letters_needed(records["blocks"]) if "blocks" in records else ()
    files = {
        "training.py": write_training(time_order, letters, signature),
        "simulation.py": write_simulation(time_order, signature),
    }
    if "bulk" in records:
        files["probe.py"] = write_probe(records["bulk"], signature)
        files["bulk.py"] = write_bulk(records["bulk"], signature)
    files["__init__.py"] = _front(model, time_order.system.linear, "bulk" in records)
    document = markdown_of_records(records, model)
    files = {name: _formatted(_banner(model) + text) for name, text in files.items()}
    files["derivation.md"] = document if document.endswith("\n") else document + "\n"
    return dict(sorted(files.items()))


def _banner(model: Model) -> str:
    return (
        f"# Written by `derive build {model.name}` (two-level-dmft {__version__}) from a declaration; edits are lost.\n"
        "# The mathematics is in derivation.md beside this file.\n"
    )


def _front(model: Model, linear: bool, probed: bool) -> str:
    parameters = [f"    ({p.name!r}, {p.default!r}, {p.domain.whole!r})," for p in model.parameters]
    observables = tuple(name for name, _ in model.observe)
    doc = model.doc.strip().replace('"""', "'''") or model.name
    return "\n".join(
        [
            f'"""{doc}\n"""',
            "",
            f"NAME = {model.name!r}",
            "# fingerprint of the declaration",
            f"DECLARATION = {declaration_digest(model)!r}",
            f"OBSERVABLES = {observables!r}",
            "# exact forward pass if true, sampled otherwise",
            f"LINEAR = {linear!r}",
            "# whether a matrix is probed: probe.py and bulk.py exist",
            f"PROBED = {probed!r}",
            "# name, default, whole number: in the order in which all functions take them",
            "PARAMETERS = (",
            *parameters,
            ")",
            "",
        ]
    )


def _formatted(text: str) -> str:
    """The text as the pinned formatter lays it out; the style is fixed here, not by any file around."""
    from ruff import find_ruff_bin

    command = [find_ruff_bin(), "format", "--isolated", "--line-length", "110", "--stdin-filename", "generated.py", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[0] if done.stderr.strip() else "no reason given"
        raise DeclarationError(
            f"the code generated from this declaration does not parse ({reason}); rename unusual names, "
            "and please report the declaration"
        )
    return done.stdout


def declaration_digest(model: Model) -> str:
    """A fingerprint of everything that is declared, the same on every machine."""
    from derive.language.model import atoms
    from derive.language.symbols import _Named

    matrix = "" if model.probe is None else str(model.probe.matrix)
    parts = [
        __version__,
        model.name,
        model.doc,
        matrix,
        *(f"{e.target} = {e.value}" for e in model.equations),
        *(f"{name} = {value}" for name, value in model.observe),
        *sorted(f"{type(s).__name__} {s.name} {s.fingerprint}" for s in {*atoms(model, _Named), *model.parameters}),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
