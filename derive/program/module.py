"""The front of a generated package: what was declared."""

from __future__ import annotations

import sympy as sp

from derive.language.data import Data, DataAt
from derive.language.model import Model, atoms
from derive.language.symbols import Clock
from derive.language.vectors import Field, FieldAt
from derive.program.layout import Layout
from derive.records.system import DisorderRule


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
    used = [*(["FieldOf"] if vectors else []), *(["ObservableOf"] if observed else [])]
    used += ["ParameterOf", "Setting", *(["DataOf"] if arrays else []), *(["ProbeOf"] if probes else [])]
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
        *_tuple("parameters", parameters),
        *_tuple("data", arrays),
        *_tuple("observables", observed),
        *_tuple("fields", vectors),
        f"    exact={exact!r},",
        f"    steps={None if clock is None else clock.steps.name!r},",
        f"    labels={labels!r},",
        f"    endpoint={clock is not None and clock.endpoint!r},",
        *_tuple("probes", probes),
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


def _axes(data: Data) -> tuple[str, ...]:
    """The axes of an array of data: parameters, and "times" for a clock."""
    return (*(("times",) if data.clock is not None else ()), *(axis.name for axis in data.axes))
