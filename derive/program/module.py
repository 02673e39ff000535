"""The front of a generated package: what was declared."""

from __future__ import annotations

import sympy as sp

from derive.language.data import Data
from derive.language.matrices import Disorder
from derive.language.model import Model, atoms
from derive.language.symbols import Clock, Sector
from derive.language.vectors import Field
from derive.program.text import PARAMETERS, Names, PlainNumpyText

_LIBRARIES = ("numpy as np", "scipy.special as sc")


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
    demands = _demands(model)
    used = ["ParameterOf", "Setting"]
    used += [word for word, some in (("DataOf", arrays), ("ProbeOf", probes), ("Demand", demands)) if some]
    libraries = [f"import {name}" for name in _LIBRARIES if any(f"{name.split()[-1]}." in line for line in demands)]
    doc = model.doc.strip().replace("\\", "\\\\").replace('"""', "'''") or model.name
    lines = [
        f'"""{doc}\n"""',
        "",
        *([*libraries, ""] if libraries else []),
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
        *(["    demands=(", *(f"        {line}" for line in demands), "    ),"] if demands else []),
        ")",
    ]
    return "\n".join(lines) + "\n"


def _demands(model: Model) -> list[str]:
    """Ratios of sizes, variances and scales that might not be what they must be, whatever the domains allow."""
    text = PlainNumpyText(Names((*(n.split()[-1] for n in _LIBRARIES), "Demand", "Setting")))
    found = []
    for symbol in atoms(model, (Sector, Disorder, Field)):
        if isinstance(symbol, Sector):
            what, value, kind = f"the size of {symbol} over that of the first sector", symbol.ratio, "positive"
        elif isinstance(symbol, Disorder):
            what, value, kind = f"the variance of {symbol}", symbol.variance, "not negative"
        else:
            what, value, kind = f"the scale of {symbol}", symbol.scale, "finite"
        ensured = {"positive": value.is_positive, "not negative": value.is_nonnegative, "finite": value.is_real}[kind]
        if not ensured:
            number = value.xreplace({sector: sp.S.One for sector in value.atoms(Sector)})  # sizes are positive
            found.append(f"Demand({what!r}, lambda {text.names.of(PARAMETERS)}: {text.formula(number)}, {kind!r}),")
    return found


def _axes(data: Data) -> tuple[str, ...]:
    """The axes of an array of data: parameters, and "times" for a clock."""
    return (*(("times",) if data.clock is not None else ()), *(axis.name for axis in data.axes))
