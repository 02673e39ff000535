"""Checks that a declared model is well posed; errors name the place and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp

from derive.errors import DeclarationError, blaming
from derive.language.alignments import check_alignments
from derive.language.contents import DECLARED, Declaration, atoms, everything, expressions
from derive.language.data import Data, DataAt
from derive.language.equations import DeclaredSpectrum, Eq, clock_values, named
from derive.language.matrices import Disorder, DisorderAt, MatrixExpression, Weights, WeightsAt
from derive.language.symbols import Axis, Clock, Parameter, Sector
from derive.language.traits import is_trait
from derive.language.traversal import ByKind, outermost, parts
from derive.language.vectors import (
    PAST,
    Apply,
    Each,
    Field,
    FieldAt,
    Mean,
    Mix,
    Project,
    Softmax,
    Total,
    axes_of,
    sector_of,
    shown,
    values,
)
from derive.support.shapes import fits
from derive.support.source_lines import place_of_entry


def check_kinds(model: Declaration) -> None:
    """Raise DeclarationError if a part of the model has the wrong type."""
    for i, what in enumerate(model.parameters):
        if not isinstance(what, Parameter):
            raise DeclarationError(
                f"parameters: {named(what)} is not a parameter; make one with parameter('name', default=1.0)"
            )
        if what in model.parameters[:i]:
            raise DeclarationError(f"parameters: {what} is listed twice; leave one out")
    for i, equation in enumerate(model.equations):
        if not isinstance(equation, Eq):
            raise DeclarationError(f"equations: entry {i + 1}, {_no_equation(equation)}")
    if model.responses not in ("", "pathwise", "stein"):
        raise DeclarationError(f"responses={model.responses!r}: write 'pathwise' or 'stein', or leave it out")
    if model.arrays is not None and not callable(model.arrays):
        raise DeclarationError("arrays=... must be a function of the parameter values that returns arrays by name")
    if model.refuses is not None and not callable(model.refuses):
        raise DeclarationError("refuses=... must be a function of arrays by name that returns what is wrong, or ''")
    _check_probes(model)


def check(model: Declaration) -> None:
    """Raise DeclarationError, in one sentence that names the place, if the model is not well posed."""
    _check_names(model)
    _check_numbers(model)
    _check_parameters(model)
    _check_definitions(model)
    _check_use_of_disorder(model)
    _check_times(model)
    check_alignments(model)
    for name, value in model.observe:
        try:
            _check_observable(name, value)
        except DeclarationError as error:
            if (place := place_of_entry(name)) is not None:
                error.blame(place)
            raise


def _no_equation(item: Any) -> str:
    """Return an error message, with a remedy, about an object in the list of equations that is not an equation."""
    if isinstance(item, sp.core.relational.Relational):
        return f"is SymPy's {type(item).__name__} of {item.lhs}; take Eq from derive: from derive import Eq"
    if isinstance(item, (bool, sp.logic.boolalg.BooleanAtom)):
        return (
            f"is {item}, the result of a comparison; an equation is written Eq(left, right) with Eq from derive, "
            "not with == and not with SymPy's Eq"
        )
    if fits(item, Sequence[Eq]) and item:
        return "is a list of equations; put a star before it: [*these, Eq(...)]"
    return f"{named(item)}, is not an equation; write Eq(v(t), ...) with Eq from derive"


def _check_probes(model: Declaration) -> None:
    labels = [label for label, _ in model.probes]
    if len(set(labels)) < len(labels):
        raise DeclarationError(f"probe: two matrices have the label {max(labels, key=labels.count)}; rename one")
    for label, probe in model.probes:
        if not isinstance(probe, DeclaredSpectrum):
            what = probe if isinstance(probe, MatrixExpression) else "W(T).T @ W(T) / N"
            raise DeclarationError(f"probe: {named(probe)} is not a spectrum; write probe=spectrum({what})")
        if label and not f"_{label}".isidentifier():
            raise DeclarationError(f"probe: the label {label!r} must be made of letters, digits and underscores")
        if probe.plus and probe.plus not in dict(model.observe):
            raise DeclarationError(
                f"spectrum(..., plus={probe.plus!r}): there is no observable of that name; add it to observe={{...}}"
            )
        if probe.plus and isinstance(dict(model.observe)[probe.plus], Each):
            raise DeclarationError(
                f"spectrum(..., plus={probe.plus!r}): that observable has labels; name one that is a single number"
            )
        if probe.plus and (clock := _ends_early(dict(model.observe)[probe.plus])) is not None:
            raise DeclarationError(
                f"spectrum(..., plus={probe.plus!r}): with endpoint=False that observable ends at {clock.steps - 1}, "
                f"before the last weights; leave out endpoint=False of {clock}"
            )


def _ends_early(observable: sp.Basic) -> Clock | None:
    """Return the clock of an observable that has no value at the last time; None if it has one."""
    return next((clock for clock in observable.atoms(Clock) if not clock.endpoint), None)


def _check_names(model: Declaration) -> None:
    owners: dict[str, object] = {}
    for symbol in (*model.parameters, *atoms(model, (*DECLARED, Parameter))):
        other = owners.setdefault(symbol.name, symbol)
        if other == symbol:
            continue
        users = (part for part, inside in _parts(model) if any(e.has(symbol) for e in inside))
        with blaming(next(users, None)):
            raise DeclarationError(
                f"the name {symbol.name} is used twice, for {_described(other)} and for {_described(symbol)}; "
                "rename one"
            )


def _check_numbers(model: Declaration) -> None:
    """Refuse numbers that are not real and finite."""
    places = [(f"the equation of {e.name}", expressions(e.value)) for e in model.equations]
    places += [(f"observable {name}", [value]) for name, value in model.observe]
    places += [("spectrum(...)", expressions(matrix)) for _, probe in model.probes for matrix in probe.matrices]
    places += [(f"the scale of {f}", [f.scale]) for f in atoms(model, Field)]
    places += [(f"the variance of {m}", [m.variance]) for m in atoms(model, Disorder)]
    places += [(f"the ratio of {s}", [s.ratio]) for s in atoms(model, Sector)]
    for where, held in places:
        for expression in held:
            for number in (sp.I, sp.oo, -sp.oo, sp.zoo, sp.nan):
                if expression.has(number):
                    raise DeclarationError(f"{where} contains {number}; it must be real and finite")
    for symbol in atoms(model, (Sector, Disorder)):
        what, value = ("ratio", symbol.ratio) if isinstance(symbol, Sector) else ("variance", symbol.variance)
        if value.is_negative or (what == "ratio" and value.is_zero):
            raise DeclarationError(f"the {what} of {symbol} is {value}; it must be positive")


@ByKind
def _described(symbol: Any) -> str:
    """Return a symbol with a description that distinguishes it from others of the same name."""
    return f"a {type(symbol).__name__.lower()}"


@_described.on(Field)
def _(symbol: Field) -> str:
    kind = {"normal": "a normal vector", "trait": "a trait"}.get(symbol.role, "a field")
    return f"{kind} over {symbol.sector}" + (f" on {symbol.clock}" if symbol.timed else "")


@_described.on(Disorder)
def _(symbol: Disorder) -> str:
    return f"a random matrix of {symbol.shape[0]} x {symbol.shape[1]}"


@_described.on(Weights)
def _(symbol: Weights) -> str:
    return f"weights of {symbol.shape[0]} x {symbol.shape[1]}"


@_described.on(Parameter)
def _(symbol: Parameter) -> str:
    return f"a parameter with default {symbol.default:g}"


@_described.on(Axis)
def _(symbol: Axis) -> str:
    return f"an axis of {symbol.size} labels"


def _check_parameters(model: Declaration) -> None:
    listed = set(model.parameters)
    declared = {*listed, *atoms(model, DECLARED)}
    for part, inside in _parts(model):
        with blaming(part):
            for expression in inside:
                _check_known(expression, declared)
    for parameter in atoms(model, Parameter):
        if parameter not in listed:
            raise DeclarationError(f"parameter {parameter} is used but not listed in parameters=(...); add it there")


def _parts(model: Declaration) -> list[tuple[Eq | DeclaredSpectrum | None, list[sp.Basic]]]:
    """Return the parts of a model that store their source line, with their expressions."""
    parts: list[tuple[Eq | DeclaredSpectrum | None, list[sp.Basic]]] = [
        (e, [*expressions(e.target), *expressions(e.value)]) for e in model.equations
    ]
    parts.append((None, [value for _, value in (*model.observe, *model.alignments)]))
    probed = ((probe, [e for matrix in probe.matrices for e in expressions(matrix)]) for _, probe in model.probes)
    return [*parts, *probed]


def _check_known(expression: sp.Basic, declared: set[sp.Basic]) -> None:
    for symbol in sorted(expression.free_symbols - declared, key=str):
        if isinstance(symbol, Parameter):
            raise DeclarationError(f"parameter {symbol} is used but not listed in parameters=(...); add it there")
        own = next((s for s in sorted(declared, key=str) if str(s) == str(symbol)), None)
        if own is not None:
            raise DeclarationError(
                f"{symbol} in {shown(expression)} is a symbol of SymPy, not {_described(own)} of that name; create "
                f"it as a {type(own).__name__.lower()}, not with Symbol('{symbol}')"
            )
        raise DeclarationError(
            f"the symbol {symbol} in {shown(expression)} is not declared; make it a parameter, a field or a sector, as "
            f"in {symbol} = parameter('{symbol}', default=1.0)"
        )


def _check_definitions(model: Declaration) -> None:
    rules: dict[str, Eq] = {}
    starts: dict[tuple[str, int], Eq] = {}
    for equation in model.equations:
        with blaming(equation):
            _define(model, equation, rules, starts)
    for (name, first), equation in starts.items():
        if name not in rules:
            with blaming(equation):
                later = f"{name}({equation.clock} + 1)"
                raise DeclarationError(f"{name}({first}) is given, but no rule for later times; add Eq({later}, ...)")
    for part, inside in _parts(model):
        with blaming(part):
            for expression in inside:
                _check_defined(expression, rules)


def _check_defined(expression: sp.Basic, rules: dict[str, Eq]) -> None:
    for symbol in sorted(expression.atoms(Field, Weights), key=str):
        if symbol.name not in rules and not symbol.given_by:
            at = f"({symbol.clock})" if symbol.clock is not None else ""
            cure = (
                f"Eq({symbol}(0), ...) and Eq({symbol}({symbol.clock} + 1), ...)"
                if isinstance(symbol, Weights)
                else f"Eq({symbol}{at}, ...), or make it normal(...) if it is random"
            )
            raise DeclarationError(f"{symbol} is used but has no equation; add {cure}")


def _define(model: Declaration, equation: Eq, rules: dict[str, Eq], starts: dict[tuple[str, int], Eq]) -> None:
    """Add an equation to the earlier ones, if it is consistent with them."""
    if equation.defined.given_by:
        raise DeclarationError(f"{equation.name} is a {equation.defined.given_by}, so it takes no equation")
    if equation.start is not None:
        key = (equation.name, equation.start)
        if key in starts:
            raise DeclarationError(
                f"{equation.target} is defined twice{_line(starts[key])}; keep one of the two equations"
            )
        starts[key] = equation
        return
    if equation.name in rules:
        raise DeclarationError(
            f"{equation.name} is defined twice: as {rules[equation.name].target}{_line(rules[equation.name])} and as "
            f"{equation.target} here; keep one of the two equations"
        )
    rules[equation.name] = equation
    if equation.time is not None:
        clock = equation.clock
        shift = equation.time - clock
        if not (shift.is_Integer and shift >= 0):
            raise DeclarationError(
                f"{equation.target}: the left side must be at {clock}, {clock} + 1 or a starting time"
            )
        for first in range(int(shift)):
            if (equation.name, first) not in starts and not any(
                e.start is not None and e.name == equation.name and e.time == first for e in model.equations
            ):
                raise DeclarationError(
                    f"{equation.target} has a rule but no starting value; add Eq({equation.name}({first}), ...)"
                )


def _line(equation: Eq) -> str:
    return "" if equation.place is None else f" (before on line {equation.place.line})"


def _check_use_of_disorder(model: Declaration) -> None:
    for equation in model.equations:
        with blaming(equation):
            for inside in expressions(equation.value):
                _check_linear(inside, f"the equation of {equation.name}")
    for symbol in atoms(model, Disorder):
        applied = (node for e in everything(model) for node in e.atoms(Apply))
        if symbol.fresh is not None and any(node.matrix == symbol for node in applied):
            raise DeclarationError(f"{symbol} is drawn anew at each step: write {symbol}({symbol.fresh})")
    for _, probe in model.probes:
        with blaming(probe):
            if any(node.has(DisorderAt) for matrix in probe.matrices for node in expressions(matrix)):
                raise DeclarationError(
                    "the probed matrix contains disorder drawn anew at each step; probe fixed matrices or weights"
                )


def _check_times(model: Declaration) -> None:
    """Refuse several clocks, absolute times on right-hand sides, and times in the probe other than the last."""
    for equation in model.equations:
        with blaming(equation):
            _check_times_of(model, equation)
            _check_before_start(model, equation)
            _check_first_time(model, equation)
    clocks = atoms(model, Clock)
    if len(clocks) > 1:
        owner = next(s for s in atoms(model, (Field, Weights, Disorder, Data)) if clocks[1] in s.payload)
        raise DeclarationError(
            f"{owner} lives on another clock ({clocks[1]}) than the symbols before it ({clocks[0]}); use one clock "
            f"for all"
        )
    for _, probe in model.probes:
        with blaming(probe):
            for matrix in probe.matrices:
                _check_times_of_probe(expressions(matrix))


def _check_first_time(model: Declaration, equation: Eq) -> None:
    """Refuse coefficients that are infinite at the first time at which a rule is used, as 1/t is at 0."""
    clock, times = equation.clock, clock_values(equation, model.equations)
    if clock is None or times is None or times[0] + clock.steps - times[1] > 0:
        return  # there may be fewer steps
    first = times[0]
    for node in (n for e in expressions(equation.value) for n in _of_time_alone(e, clock)):
        value = node.subs(clock, first)
        if value.has(sp.zoo, sp.oo, -sp.oo, sp.nan) or value.is_real is False:
            raise DeclarationError(
                f"the equation of {equation.name}: {shown(node)} is {shown(value)} at {clock} = {first}, the first "
                "time it is used; write it so that it is finite there, as 1/(1 + t) is"
            )


def _of_time_alone(expression: sp.Basic, clock: Clock) -> list[sp.Basic]:
    """Return the maximal subexpressions that depend only on the clock."""
    if isinstance(expression, sp.Expr) and expression.free_symbols == {clock}:
        return [] if expression == clock or expression.has(FieldAt, WeightsAt, DisorderAt, DataAt) else [expression]
    return [node for arg in expression.args for node in _of_time_alone(arg, clock)]


def _check_times_of_probe(probed: list[sp.Basic]) -> None:
    for coefficient in (e for e in probed if e.atoms(Clock) and not e.has(FieldAt, WeightsAt)):
        raise DeclarationError(
            f"spectrum(...) has the coefficient {shown(coefficient)}, which changes in time; probe a matrix after the "
            "last step, with parameters only"
        )
    for e in probed:
        for average in sorted(e.atoms(Mean), key=sp.default_sort_key):
            _check_mean_in_probe(e, average)
    for node in (n for e in probed for n in sp.preorder_traversal(e)):
        if isinstance(node, WeightsAt) and node.time != node.weights.clock.steps:
            name, clock, last = node.weights, node.weights.clock, node.weights.clock.steps
            cure = f"choose {last} = {node.time} instead"
            if last in node.time.free_symbols:
                cure = (
                    f"declare weights that lag behind, Eq(Late({clock} + 1), {name}({clock})), and probe Late({last})"
                )
            raise DeclarationError(
                f"spectrum(...) uses {name}({node.time}); probe the weights after the last step, {name}({last}): {cure}"
            )


def _check_before_start(model: Declaration, equation: Eq) -> None:
    """Refuse weights before their start, unless the vector to which they are applied vanishes there, as fields do."""
    if equation.time is None or equation.time.is_Integer:
        return
    clock, starts = equation.clock, {e.time for e in model.equations if e.name == equation.name}
    first = shift = sp.expand(equation.time - clock)
    while first in starts:
        first += 1
    applied = {n for e in expressions(equation.value) for n in e.atoms(Apply) if n.matrix.weights is not None}
    for node in sorted(applied, key=sp.default_sort_key):
        early = sp.expand(node.matrix.time.xreplace({clock: first - shift}))
        if early.is_negative and not _vanishes(node.vector, node.matrix.time):
            raise DeclarationError(
                f"the equation of {equation.name} uses {shown(node)}, and {node.matrix.args[0]} has no value before "
                f"its start; give {equation.name} starting values, Eq({equation.name}({first}), ...), up to time "
                f"{first - early - 1}"
            )


@ByKind
def _vanishes(expression: sp.Expr, time: sp.Expr) -> bool:
    """Return whether an expression vanishes if all fields up to a given time vanish."""
    return False


@_vanishes.on(FieldAt)
def _(expression: FieldAt, time: sp.Expr) -> bool:
    return expression.time is not None and bool(sp.expand(expression.time - time).is_nonpositive)


@_vanishes.on(Apply, Project)
def _(expression: Apply | Project, time: sp.Expr) -> bool:
    return _vanishes(expression.vector, time)


@_vanishes.on(sp.Add)
def _(expression: sp.Add, time: sp.Expr) -> bool:
    return all(_vanishes(term, time) for term in expression.args)


@_vanishes.on(sp.Mul)
def _(expression: sp.Mul, time: sp.Expr) -> bool:
    return any(_vanishes(factor, time) for factor in expression.args)


@_vanishes.on(sp.Pow)
def _(expression: sp.Pow, time: sp.Expr) -> bool:
    return bool(expression.exp.is_positive) and _vanishes(expression.base, time)


@_vanishes.on(sp.Function)
def _(expression: sp.Function, time: sp.Expr) -> bool:
    single = len(expression.args) == 1 and _vanishes(expression.args[0], time)
    return bool(single and expression.func(sp.S.Zero) == 0)


def _check_times_of(model: Declaration, equation: Eq) -> None:
    for node in (n for e in expressions(equation.value) for n in sp.preorder_traversal(e)):
        _check_node(node, equation, model)
    if equation.time is None and equation.target.weights is None and equation.value.atoms(Clock):
        raise DeclarationError(f"{equation.name} has no clock, but its equation depends on time; put it on the clock")


@ByKind
def _check_node(node: sp.Basic, equation: Eq, model: Declaration) -> None:
    """Check the times of a node on the right-hand side of an equation; most nodes have none."""


@_check_node.on(sp.Sum)
def _(node: sp.Sum, equation: Eq, model: Declaration) -> None:
    if len(node.limits) > 1 or node.function.has(sp.Sum):
        raise DeclarationError(
            f"the equation of {equation.name} has a sum over earlier times inside another one; "
            "give the inner sum a field of its own"
        )
    if node.function.has(WeightsAt, DisorderAt):
        changing = min(node.function.atoms(WeightsAt, DisorderAt), key=sp.default_sort_key).args[0]
        raise DeclarationError(
            f"the equation of {equation.name} has products with {changing}, which changes in time, in a sum "
            "over earlier times; give the product a field of its own and sum over that"
        )


@_check_node.on(WeightsAt, DisorderAt)
def _check_time(node: Any, equation: Eq, model: Declaration) -> None:
    clock = equation.clock
    if node.time is None or equation.start is not None:
        return
    if not (node.time.free_symbols - set(model.parameters)):
        raise DeclarationError(
            f"the equation of {equation.name} uses {node.args[0]}({node.time}); on the right "
            f"side times are relative to the clock: {clock}, {clock} - 1, ..."
        )
    if not (sp.expand(node.time - clock).is_Integer or node.time.has(PAST)):
        raise DeclarationError(
            f"the equation of {equation.name} uses {shown(node)}; times are {clock}, {clock} - 1, ... in whole "
            "steps, or a sum over earlier times, past_sum(lambda s: ..., t)"
        )


@_check_node.on(FieldAt)
def _(node: FieldAt, equation: Eq, model: Declaration) -> None:
    if node.field.timed and node.field.clock != equation.clock:
        raise DeclarationError(
            f"the equation of {equation.name} uses {node.field}, which lives on another clock "
            f"({node.field.clock}); use one clock for all fields"
        )
    _check_time(node, equation, model)


@_check_node.on(DataAt)
def _(node: DataAt, equation: Eq, model: Declaration) -> None:
    _check_time(node, equation, model)
    if node.time is None:
        return
    if node.data.clock != equation.clock:
        raise DeclarationError(
            f"the equation of {equation.name} uses {node.data}, which lives on another clock "
            f"({node.data.clock}); use one clock for all"
        )
    if (node.time - equation.time).is_positive:
        raise DeclarationError(
            f"the equation of {equation.name} at {equation.time} uses {shown(node)}, which comes later; "
            f"use data up to {equation.time}"
        )


def _check_mean_in_probe(coefficient: sp.Expr, average: Mean) -> None:
    """Refuse a mean in the probed matrix that is not at the start, the last time, or a fixed lag before it."""
    timed = sorted((v for v in average.atoms(FieldAt) if v.time is not None), key=sp.default_sort_key)
    if not timed:
        return
    where = f"spectrum(...) has the coefficient {shown(average)}"
    if sector_of(coefficient) is not None:
        raise DeclarationError(
            f"{where} inside a vector; multiply the outer product by it, or put it into an update of weights"
        )
    clock = timed[0].field.clock
    if axes_of(coefficient):
        raise DeclarationError(
            f"{where}, which has labels; sum over them, total({shown(average)}), or put it into an update of weights "
            "and probe the weights"
        )
    for value in timed:
        before = sp.expand(clock.steps - value.time)
        fixed = value.time.is_Integer and 0 <= value.time <= clock.steps.domain.low
        if not fixed and not (before.is_Integer and before >= 0):
            raise DeclarationError(
                f"{where}, which uses {value.field} at {value.time}; a coefficient is taken at {clock.steps}, "
                f"{clock.steps} - 1, ..., or at 0"
            )
        if not clock.endpoint and before == 0:
            raise DeclarationError(
                f"{where}, but {clock} ends at {clock.steps} - 1; use that time, or omit endpoint=False"
            )
        if not sp.expand(value.time - timed[0].time).is_Integer:
            raise DeclarationError(
                f"{where}, which uses {timed[0].field}({timed[0].time}) and {value.field}({value.time}) together; "
                f"count all times from the same end"
            )


def _per_site(value: sp.Expr) -> sp.Expr:
    """Return the first term or product in an expression that has a value per site."""
    vectors = [part for part in value.args if isinstance(part, sp.Expr) and sector_of(part) is not None]
    inside = isinstance(value, (sp.Add, Total, Each)) or any(part.is_Add for part in vectors)
    return _per_site(vectors[0]) if inside and len(vectors) > 0 else value


def _check_observable(name: str, value: sp.Expr) -> None:
    sector = sector_of(value, f"observable {name}")
    if sector is not None:
        raise DeclarationError(
            f"observable {name} has a value per site of {sector}, because {shown(_per_site(value))} has; average over "
            "the sites with mean(...)"
        )
    inner = min(_not_elementwise(value), key=sp.default_sort_key, default=None)
    if inner is not None:
        raise DeclarationError(f"observable {name}: give {shown(inner)} a field of its own and average that field")
    each = value.atoms(Each)
    if each - {value}:
        raise DeclarationError(f"observable {name}: each(...) must enclose the whole expression")
    open_labels = axes_of(value, f"observable {name}") and value not in each
    if open_labels and (value.has(DataAt, Softmax, Mix) or any(node.axis for node in value.atoms(Total))):
        raise DeclarationError(f"observable {name} has labels; wrap it in total(...) to sum over them, or in each(...)")
    outside = value.xreplace({m: sp.S.One for m in value.atoms(Mean, DataAt)})
    if outside.atoms(Sector, Clock):
        raise DeclarationError(
            f"observable {name} depends on a size or on time outside mean(...); keep parameters only"
        )
    if value.atoms(Sector):
        size = min(map(str, value.atoms(Sector)))
        raise DeclarationError(
            f"observable {name} has the size {size} inside mean(...); write ratios of sizes as numbers or parameters"
        )
    for node in value.atoms(FieldAt, DataAt):
        if node.time is not None:
            symbol = node.args[0]
            lag = symbol.clock - node.time
            if not (lag.is_Integer and lag >= 0):
                raise DeclarationError(
                    f"observable {name} uses {symbol}({node.time}); observables are followed in time, so "
                    f"use {symbol}({symbol.clock}) or {symbol}({symbol.clock} - 1)"
                )


def _check_linear(expression: sp.Expr, where: str) -> None:
    """Refuse applied matrices inside nonlinear functions: they may only be added and multiplied by scalars."""
    marks = {node: sp.Symbol(f"applied_{i}") for i, node in enumerate(_outermost(expression))}
    if not marks:
        return
    plain = expression.xreplace(marks)
    for node, mark in marks.items():
        slope = sp.diff(plain, mark)
        if slope.has(*marks.values()) or any(not is_trait(v) for v in values(slope)):
            clock = next(iter(sorted(node.atoms(Clock), key=str)), None)
            u = "u" if clock is None else f"u({clock})"
            raise DeclarationError(
                f"{where}: disorder {_matrix_name(node)} enters nonlinearly; define a field for it first, such as "
                f"Eq({u}, {shown(node)}), and use {u} here"
            )


def _matrix_name(node: Apply | Project) -> str:
    if isinstance(node, Project):
        return f"outer({shown(node.left)}, {shown(node.right)})"
    return f"{node.matrix}{'.T' if node.transposed else ''}"


def _outermost(expression: sp.Basic) -> list[Any]:
    """Return the applied matrices that are not inside another one or inside a mean."""
    for average in parts(expression, (Mean,), (Apply, Project)):
        inner = min(_not_elementwise(average), key=sp.default_sort_key, default=None)
        if inner is not None:
            raise DeclarationError(
                f"{shown(average)}: give {shown(inner)} a field of its own and use that field inside the mean"
            )
    return outermost(expression, (Apply, Project), (Mean,))


def _not_elementwise(expression: sp.Basic) -> set[sp.Basic]:
    """Return the matrices, tables and sums over times or labels of vectors, which means and observables cannot contain.

    Renamed axes are allowed.
    """
    nodes: set[sp.Basic] = expression.atoms(Apply, Project, sp.Sum) | {
        m for m in expression.atoms(Mix) if m.table.data is not None
    }
    return nodes | {node for node in expression.atoms(Total) if sector_of(node) is not None}
