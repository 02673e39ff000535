"""Printer of the `__init__.py` of a generated package: parameters, data, observables, probes and parameter checks."""

from __future__ import annotations

import ast
from typing import Any

import sympy as sp

from derive.equations.layout import Layout
from derive.language.contents import atoms, everything, expressions
from derive.language.data import Data, DataAt
from derive.language.equations import DeclaredSpectrum, clock_values
from derive.language.laws import Drawn
from derive.language.matrices import Disorder, DisorderAt, WeightsAt
from derive.language.model import Model
from derive.language.symbols import Axis, Clock, Parameter, Sector, other_symbols
from derive.language.traits import VALUE, Trait, traits_in
from derive.language.traversal import ByKind
from derive.language.vectors import Field, FieldAt, Mean, shown
from derive.program.growth import averages_over_traits
from derive.program.nodes import Symbol
from derive.program.text import PARAMETERS, ModuleNames, PlainNumpyText, runtime_names
from derive.program.traits import law_parts

CHECKED_VALUES = 64
"""Number of points at which a density is checked before solving."""
_LIBRARIES = ("numpy as np", "scipy.special as sc")


def front_text(model: Model, layout: Layout, exact: bool, stems: dict[str, str], digest: str, runtime: str) -> str:
    """Return the text of `__init__.py`. `stems` contains the suffix of the module names of each probed matrix."""
    clock = next(iter(atoms(model, Clock)), None)
    labels = tuple(dict.fromkeys(str(axis.size) for axis in atoms(model, Axis)))
    parameters = [f"ParameterOf({p.name!r}, {p.default!r}, {p.domain.whole!r})," for p in model.parameters]
    arrays = [f"DataOf({d.name!r}, {_axes(d)!r})," for d in atoms(model, Data)]
    probes = [_probe(label, stems[label], probe) for label, probe in model.probes]
    declared = set(atoms(model, Field))
    products = {f.field: f.product.argument.name for f in layout.fields if f.product is not None}
    vectors = [
        f"FieldOf({f.name!r}, {f.sector.name!r}, {f.timed!r}, {tuple(str(axis.size) for axis in f.axes)!r}, "
        f"{f in declared!r}, {products.get(f)!r}),"
        for f in layout.named
    ]
    observed = [f"ObservableOf({name!r}, {_first_time(value)})," for name, value in model.observe]
    demands = [*_demands(model), *_demands_of_averages(layout)]
    used = ["ParameterOf", "Setting"]
    optional = {"DataOf": arrays, "ProbeOf": probes, "Demand": demands, "FieldOf": vectors, "ObservableOf": observed}
    used += [word for word, some in optional.items() if some]
    names = {node.id for line in demands for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Name)}
    laws = sorted(runtime_names("traits") & names)
    libraries = [f"import {name}" for name in _LIBRARIES if name.split()[-1] in names]
    doc = model.doc.strip().replace("\\", "\\\\").replace('"""', "'''") or model.name
    lines = [
        f'"""{doc}\n"""',
        "",
        *([*libraries, ""] if libraries else []),
        f"from {runtime}.interface import {', '.join(sorted(used))}",
        *([f"from {runtime}.traits import {', '.join(laws)}"] if laws else []),
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


def _probe(label: str, stem: str, probe: DeclaredSpectrum) -> str:
    parts: list[Any] = [label, f"probe{stem}", f"bulk{stem}", probe.plus]
    if probe.between:
        parts += [f"traces{stem}", tuple(name for name, _ in probe.between)]
    return f"ProbeOf({', '.join(map(repr, parts))}),"


def _tuple(name: str, entries: list[str]) -> list[str]:
    return [f"    {name}=(", *(f"        {entry}" for entry in entries), "    ),"]


def _first_time(observable: sp.Expr) -> int:
    """Return the first time at which an observable is defined: its longest lag."""
    times = [node.time for node in observable.atoms(FieldAt, DataAt) if node.time is not None]
    lags = [sp.expand(clock - time) for time in times for clock in time.atoms(Clock)]
    return max((int(lag) for lag in lags), default=0)


@ByKind
def _demanded(symbol: Field) -> tuple[str, sp.Expr, str]:
    """Return a numerical property of a symbol with its description and the condition that it must satisfy."""
    return f"the scale of {symbol}", symbol.scale, "finite"


@_demanded.on(Sector)
def _(symbol: Sector) -> tuple[str, sp.Expr, str]:
    return f"the size of {symbol} over that of the first sector", symbol.ratio, "positive"


@_demanded.on(Disorder)
def _(symbol: Disorder) -> tuple[str, sp.Expr, str]:
    return f"the variance of {symbol}", symbol.variance, "not negative"


def _demands(model: Model) -> list[str]:
    """Return runtime checks on size ratios, variances and scales that the domains do not guarantee."""
    text = PlainNumpyText(
        ModuleNames((*(n.split()[-1] for n in _LIBRARIES), *runtime_names("traits"), "Demand", "Setting"))
    )
    demands = []
    for symbol in atoms(model, (Sector, Disorder, Field)):
        what, value, kind = _demanded(symbol)
        ensured = {"positive": value.is_positive, "not negative": value.is_nonnegative, "finite": value.is_real}[kind]
        if not ensured:
            number = value.xreplace({sector: sp.S.One for sector in value.atoms(Sector)})  # sizes are positive
            demands.append(_demand(what, text.formula(number), kind, text))
    for trait in atoms(model, Trait):
        demands += _demands_of_law(trait, text)
    for vector in atoms(model, Drawn):
        for what, value, kind in vector.law.demands:
            fine = {"positive": value.is_positive, "not negative": value.is_nonnegative, "one": sp.expand(value) == 1}
            if not fine[kind]:
                demands.append(_demand(f"{what} (drawn {vector})", text.formula(value), kind, text))
    demands += _demands_of_times(model, text)
    demands += _demands_of_coefficients(model, text)
    return [*demands, *_demands_in_time(model, text), *_demands_of_functions(model, text)]


def _demand(what: str, code: str, kind: str, text: PlainNumpyText) -> str:
    return f"Demand({what!r}, lambda {text.names.of(PARAMETERS)}: {code}, {kind!r}),"


def _demands_of_times(model: Model, text: PlainNumpyText) -> list[str]:
    """Return checks that the directions of alignments refer to times before the last update."""
    demands = []
    for _, value in model.alignments:
        time, clock = value.direction.time, value.direction.field.clock
        if time is None or time == clock:
            continue
        if not time.is_nonnegative:
            demands.append(_demand(f"the time of {shown(value.direction)}", text.formula(time), "not negative", text))
        if not sp.expand(clock.steps - time).is_Integer:
            what = f"the number of updates after {shown(value.direction)}"
            demands.append(_demand(what, text.formula(clock.steps - time), "positive", text))
    return demands


def _demands_of_law(trait: Trait, text: PlainNumpyText) -> list[str]:
    """Return checks that weights of a trait are non-negative and add up to one, and that its density is integrable."""
    if not trait.discrete:
        ends = [end for end in trait.law[1:] if end not in (sp.oo, -sp.oo)]
        demands = []
        if len(ends) == 2 and not (ends[1] - ends[0]).is_positive:
            what = f"the distance from low to high of trait {trait}"
            demands.append(_demand(what, text.formula(ends[1] - ends[0]), "positive", text))
        code = f"integral({', '.join(map(text.value, law_parts(trait)))})"
        return [*demands, _demand(f"the integral of the density of trait {trait}", code, "positive", text)]
    demands = [
        _demand(f"a weight of trait {trait}", text.formula(weight), "not negative", text)
        for weight in dict.fromkeys(trait.weights)
        if not weight.is_nonnegative
    ]
    total = sp.expand(sp.Add(*trait.weights))
    if total != 1 and len(trait.weights):
        demands.append(_demand(f"the sum of the weights of trait {trait}", text.formula(total), "one", text))
    return demands


def _demands_of_coefficients(model: Model, text: PlainNumpyText) -> list[str]:
    """Return checks on functions of parameters that are not real for all values, such as sqrt(1 + a) or 1 / a."""
    nodes: dict[sp.Basic, None] = {}
    for expression in everything(model):
        for node in sp.preorder_traversal(expression):
            computed = (node.is_Pow or node.is_Function) and node.free_symbols
            if computed and not other_symbols(node, Parameter) and not node.is_real:
                nodes.setdefault(node)
    return [
        _demand(f"the value of {shown(node)}", text.formula(node), "finite", text)
        for node in sorted(nodes, key=sp.default_sort_key)
    ]


def _demands_in_time(model: Model, text: PlainNumpyText) -> list[str]:
    """Return checks on coefficients that are not real at all times of their rule, such as 1 / (t - 1)."""
    demands: dict[str, None] = {}
    for equation in model.equations:
        clock, times = equation.clock, clock_values(equation, model.equations)
        if clock is None or times is None:
            continue
        ends = [text.formula(end) for end in times]
        name = text.names.of(Symbol(clock.name))
        inside = PlainNumpyText(text.names, {clock: name})
        parts = [node for value in expressions(equation.value) for node in _coefficients_in_time(value, clock)]
        for node in sorted(set(parts), key=sp.default_sort_key):
            p = text.names.of(PARAMETERS)
            what = f"the coefficient {shown(node)} in the equation of {equation.name}"
            code = f"lambda {p}, {name}: {inside.formula(node)}"
            demands.setdefault(f"Demand({what!r}, {code}, 'finite', lambda {p}: range({', '.join(ends)})),")
    return list(demands)


def _coefficients_in_time(expression: sp.Basic, clock: Clock) -> list[sp.Basic]:
    """Return the maximal subexpressions of the clock and the parameters that may be complex."""
    symbols = expression.free_symbols
    if clock not in symbols:
        return []
    own = set(other_symbols(expression, Parameter)) <= {clock}
    if own and isinstance(expression, sp.Expr) and not expression.has(FieldAt, WeightsAt, DisorderAt, DataAt):
        return [] if expression.is_real else [expression]
    return [node for part in expression.args for node in _coefficients_in_time(part, clock)]


def _demands_of_functions(model: Model, text: PlainNumpyText) -> list[str]:
    """Return checks on functions of traits that are undefined for some values of a trait, such as square roots."""
    nodes: dict[sp.Basic, None] = {}
    for expression in everything(model):
        for node in sp.preorder_traversal(expression):
            if (node.is_Pow or node.is_Function) and _of_traits_alone(node):
                nodes.setdefault(node)
    demands = []
    for node in sorted(nodes, key=sp.default_sort_key):
        traits = [v.field for v in traits_in(node)]
        if any(t.discrete and not t.weights for t in traits):
            continue  # data are not known where parameters are checked
        names = [f"{VALUE.name}{k}" for k in range(len(traits))]
        inside = PlainNumpyText(text.names, {sp.Symbol(name): name for name in names})
        code = inside.formula(node.xreplace({t(): sp.Symbol(n) for t, n in zip(traits, names, strict=True)}))
        laws = [", ".join(map(text.value, law_parts(t))) for t in traits]
        laws = [
            f"discrete({law}, np)" if t.discrete else f"density({law}, {CHECKED_VALUES}, np)"
            for t, law in zip(traits, laws, strict=True)
        ]
        whole = f"extent(lambda {', '.join(names)}: {code}, {', '.join(laws)})"
        demands.append(_demand(f"the largest size of {shown(node)} over the sites", whole, "finite", text))
    return demands


def _demands_of_averages(layout: Layout) -> list[str]:
    """Return checks on averages over densities that may be infinite if laws are nonlinear.

    Sampling would return a finite number for an infinite average.
    """
    if layout.system.linear:
        return []
    text = PlainNumpyText(
        ModuleNames((*(n.split()[-1] for n in _LIBRARIES), *runtime_names("traits"), "Demand", "Setting"))
    )
    inside = PlainNumpyText(text.names, {VALUE: VALUE.name})
    demands = []
    for what, trait, formula in averages_over_traits(layout):
        code = (
            f"mean_size(lambda {VALUE.name}: {inside.formula(formula)}, {', '.join(map(text.value, law_parts(trait)))})"
        )
        demands.append(_demand(what, code, "finite", text))
    return demands


def _of_traits_alone(node: sp.Basic) -> bool:
    """Return whether an expression is a nontrivial function of traits and parameters alone."""
    if not traits_in(node) or node.has(Mean) or (node.is_Pow and node.exp.is_Integer and node.exp > 0):
        return False
    marks = {value: sp.Symbol(f"{VALUE.name}{k}") for k, value in enumerate(traits_in(node))}
    rest = node.xreplace(marks)  # a number instead of a symbol could decide conditions, and hide what is in them
    return set(other_symbols(rest, Parameter)) <= set(marks.values()) and not rest.atoms(FieldAt)


def _axes(data: Data) -> tuple[str, ...]:
    """Return the sizes of an array of data: parameters or numbers, and "times" for a clock."""
    return (*(("times",) if data.clock is not None else ()), *(str(axis.size) for axis in data.axes))
