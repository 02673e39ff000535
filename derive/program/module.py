"""The front of a generated package: what was declared."""

from __future__ import annotations

from derive.language.data import Data
from derive.language.model import Model, atoms
from derive.language.symbols import Clock


def front_text(model: Model, exact: bool, stems: dict[str, str], digest: str, runtime: str) -> str:
    """The text of __init__.py. stems: for each probed matrix the end of its modules' names."""
    clock = next(iter(atoms(model, Clock)), None)
    labels = None if clock is None or clock.channels is None else clock.channels.name
    parameters = [f"ParameterOf({p.name!r}, {p.default!r}, {p.domain.whole!r})," for p in model.parameters]
    arrays = [f"DataOf({d.name!r}, {_axes(d)!r})," for d in atoms(model, Data)]
    probes = [
        f"ProbeOf({label!r}, {f'probe{stems[label]}'!r}, {f'bulk{stems[label]}'!r}, {probe.plus!r}),"
        for label, probe in model.probes
    ]
    used = ["ParameterOf", "Setting", *(["DataOf"] if arrays else []), *(["ProbeOf"] if probes else [])]
    doc = model.doc.strip().replace("\\", "\\\\").replace('"""', "'''") or model.name
    lines = [
        f'"""{doc}\n"""',
        "",
        f"from {runtime}.interface import {', '.join(sorted(used))}",
        "",
        "SETTING = Setting(",
        f"    name={model.name!r},",
        f"    choices={model.choices!r},",
        f"    declaration={digest!r},",
        "    parameters=(",
        *(f"        {line}" for line in parameters),
        "    ),",
        *(["    data=(", *(f"        {line}" for line in arrays), "    ),"] if arrays else ["    data=(),"]),
        f"    observables={tuple(name for name, _ in model.observe)!r},",
        f"    exact={exact!r},",
        f"    steps={None if clock is None else clock.steps.name!r},",
        f"    labels={labels!r},",
        f"    endpoint={clock is not None and clock.endpoint!r},",
        *(["    probes=(", *(f"        {line}" for line in probes), "    ),"] if probes else ["    probes=(),"]),
        ")",
    ]
    return "\n".join(lines) + "\n"


def _axes(data: Data) -> tuple[str, ...]:
    """The axes of an array of data: parameters, and "times" for a clock."""
    return (*(("times",) if data.clock is not None else ()), *(axis.name for axis in data.axes))
