"""The front of a generated package: what was declared."""

from __future__ import annotations

import sympy as sp

from derive.language.contents import atoms
from derive.language.data import Data, DataAt
from derive.language.matrices import Disorder
from derive.language.model import Model
from derive.language.symbols import Clock, Sector
from derive.language.vectors import Field, FieldAt
from derive.program.layout import Layout
from derive.program.text import PARAMETERS, Names, PlainNumpyText
from derive.records.system import DisorderRule

_LIBRARIES = ("numpy as np", "scipy.special as sc")


def front_text(model: Model, layout: Layout, exact: bool, stems: dict[str, str], digest: str, runtime: str) -> str:
    """The text of __init__.py. stems: for each probed matrix the end of its modules' names."""
    clock = next(iter(atoms(model, Clock)), None)
    labels = None if clock is None or clock.channels is None else clock.channels.name
    parameters = [f"ParameterOf({p.name!r}, {p.default!r}, {p.domain.whole!r})," for p in model.parameters]
    arrays = [f"DataOf({d.name!r}, {_axes(d)!r})," for d in atoms(model, Data)]
    probes = [
        f"ProbeOf({label!r}, {f'probe{stems[label]}'!r}, {f'bulk{stems[label]}'!r}, {probe.plus!r}),"
        for label, probe in model.probes
    ]
    declared = set(atoms(model, Field))
    products = {f.field: f.rule.argument.name for f in layout.fields if isinstance(f.rule, DisorderRule)}
    vectors = [
        f"FieldOf({f.name!r}, {f.sector.name!r}, {f.timed!r}, {f.labels.name if f.labelled else None!r}, "
        f"{f in declared!r}, {products.get(f)!r}),"
        for f in layout.named
    ]
    observed = [f"ObservableOf({name!r}, {_first_time(value)})," for name, value in model.observe]
    demands = _demands(model)
    used = ["ParameterOf", "Setting"]
    optional = {"DataOf": arrays, "ProbeOf": probes, "Demand": demands, "FieldOf": vectors, "ObservableOf": observed}
    used += [word for word, some in optional.items() if some]
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
        *_tuple("parameters", parameters),
        *_tuple("data", arrays),
        *_tuple("observables", observed),
        *_tuple("fields", vectors),
        f"    exact={exact!r},",
        f"    steps={None if clock is None else clock.steps.name!r},",
        f"    labels={labels!r},",
        f"    endpoint={clock is not None and clock.endpoint!r},",
        *_tuple("probes", probes),
        *(_tuple("demands", demands) if demands else []),
        ")",
    ]
    return "\n".join(lines) + "\n"


def _tuple(name: str, entries: list[str]) -> list[str]:
    return [f"    {name}=(", *(f"        {entry}" for entry in entries), "    ),"]


def _first_time(observable: sp.Expr) -> int:
    """The first time at which all that an observable is made of is there: its longest lag."""
    times = [node.time for node in observable.atoms(FieldAt, DataAt) if node.time is not None]
    lags = [sp.expand(clock - time) for time in times for clock in time.atoms(Clock)]
    return max((int(lag) for lag in lags), default=0)


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
