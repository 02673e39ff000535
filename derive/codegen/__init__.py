"""From records to source: JAX solvers, a NumPy simulation, and the derivation beside them as Markdown."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING

from derive import __version__
from derive.errors import DeclarationError
from derive.language.model import Model

if TYPE_CHECKING:
    from derive.pipeline import Derivation


def generate_files(model: Model, derivation: Derivation | None = None) -> dict[str, str]:
    """Everything that goes into generated/<name>/, formatted: file name to text.

    `derivation` is that of the model, where there is one already.
    """
    from derive.codegen.bulk import write_bulk
    from derive.codegen.probe import letters_needed, write_probe
    from derive.codegen.simulation import write_simulation
    from derive.codegen.training import write_training
    from derive.pipeline import derive_model
    from derive.printing import markdown_of_derivation

    derivation = derive_model(model) if derivation is None else derivation
    signature = ", ".join(p.name for p in model.parameters)
    stems = _stems(model)
    letters = {letter for probed in derivation.probes.values() for letter in letters_needed(probed.blocks)}
    files = {
        "training.py": write_training(derivation, tuple(sorted(letters, key=lambda x: x.name)), signature),
        "simulation.py": write_simulation(model, derivation.order, signature),
    }
    for label, stem in stems.items():
        files[f"probe{stem}.py"] = write_probe(derivation.probes[label].pencil, signature)
        files[f"bulk{stem}.py"] = write_bulk(derivation.probes[label].bulk, signature)
    files["__init__.py"] = _front(model, derivation.system.linear, stems)
    document = markdown_of_derivation(derivation)
    files = {name: _formatted(_banner(model) + text) for name, text in files.items()}
    files["derivation.md"] = document if document.endswith("\n") else document + "\n"
    return dict(sorted(files.items()))


def _stems(model: Model) -> dict[str, str]:
    """For each probed matrix the end of its modules' names; equal matrices share theirs."""
    stems: dict[str, str] = {}
    for label, probe in model.probes:
        same = next((other for other in stems if dict(model.probes)[other].matrix == probe.matrix), None)
        stems[label] = stems[same] if same is not None else f"_{label}" if label else ""
    return stems


def _banner(model: Model) -> str:
    chosen = "".join(f" {name}={value}" for name, value in model.choices)
    return (
        f"# Written by `derive build {model.setting}{chosen}` (two-level-dmft {__version__}) from a declaration; "
        "edits are lost.\n"
        "# The mathematics is in derivation.md beside this file.\n"
    )


def _front(model: Model, linear: bool, stems: dict[str, str]) -> str:
    from derive.language.data import Data
    from derive.language.model import atoms
    from derive.language.symbols import Clock

    parameters = [f"    ({p.name!r}, {p.default!r}, {p.domain.whole!r})," for p in model.parameters]
    observables = tuple(name for name, _ in model.observe)
    doc = model.doc.strip().replace('"""', "'''") or model.name
    clock = next(iter(atoms(model, Clock)), None)
    labels = None if clock is None or clock.channels is None else clock.channels.name
    probes = [
        f"    ({label!r}, {f'probe{stems[label]}'!r}, {f'bulk{stems[label]}'!r}, {probe.plus!r}),"
        for label, probe in model.probes
    ]
    return "\n".join(
        [
            f'"""{doc}\n"""',
            "",
            f"NAME = {model.name!r}",
            "# what was chosen of a family of models",
            f"CHOICES = {model.choices!r}",
            "# fingerprint of the declaration",
            f"DECLARATION = {declaration_digest(model)!r}",
            f"OBSERVABLES = {observables!r}",
            "# exact forward pass if true, sampled otherwise",
            f"LINEAR = {linear!r}",
            "# parameters that are the number of steps and the number of class labels, where there are any",
            f"STEPS = {None if clock is None else clock.steps.name!r}",
            f"CLASSES = {labels!r}",
            "# 1 if fields are there at time 0 and after the last step, 0 if before it only",
            f"ENDPOINT = {int(clock is not None and clock.endpoint)}",
            "# arrays of data that training and simulation take after the parameters, each with its axes",
            f"DATA = {tuple((d.name, _axes(d)) for d in atoms(model, Data))!r}",
            "# each probed matrix: label, the modules of A(z) and of its bulk, the observable added to its diagonal",
            "PROBES = (",
            *probes,
            ")",
            "# name, default, whole number: in the order in which all functions take them",
            "PARAMETERS = (",
            *parameters,
            ")",
            "",
        ]
    )


def _axes(data) -> tuple[str, ...]:
    """The axes of an array of data: parameters, and "times" for a clock."""
    return (*(("times",) if data.clock is not None else ()), *(axis.name for axis in data.axes))


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

    parts = [
        __version__,
        model.name,
        model.doc,
        *(f"{name}={value}" for name, value in model.choices),
        *(f"{label}: {probe.matrix} plus {probe.plus}" for label, probe in model.probes),
        *(f"{e.target} = {e.value}" for e in model.equations),
        *(f"{name} = {value}" for name, value in model.observe),
        model.responses,
        *sorted(f"{type(s).__name__} {s.name} {s.fingerprint}" for s in {*atoms(model, _Named), *model.parameters}),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
