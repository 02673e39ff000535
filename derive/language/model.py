"""A declared model: equations, observables and the matrix whose spectrum matters, checked when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field as data_field, replace
from typing import Any

import sympy as sp

from derive.display import Displayed, DisplayedFormula
from derive.errors import DeclarationError, blaming
from derive.language.data import Data, DataAt
from derive.language.matrices import (
    Atom,
    Disorder,
    DisorderAt,
    Dyad,
    Evolving,
    Matrix,
    Product,
    Sum,
    Weights,
    WeightsAt,
)
from derive.language.symbols import Clock, Parameter, Sector, exact
from derive.language.vectors import (
    PAST,
    Apply,
    Each,
    Field,
    FieldAt,
    Mean,
    Mix,
    Project,
    Total,
    labels_of,
    named_fields,
    sector_of,
    shown,
)
from derive.source_lines import Place, line_of_caller

DECLARED = (Sector, Clock, Field, Disorder, Weights, Data)
"""The kinds of symbols that a declaration names, besides parameters."""


@dataclass(frozen=True, repr=False)
class Eq(DisplayedFormula):
    """A defining equation. The left side is a field or weights: at t, at t + k, or at a starting time.

    `place` is where it was written, for messages.

    >>> from derive import Eq, field, goe, parameter, sectors, training_clock, whole_positive
    >>> D, t = sectors("D"), training_clock("t", steps=parameter("T", default=3, domain=whole_positive))
    >>> M, x = goe("M", D), field("x", D, t)
    >>> Eq(x(t + 1), M @ x(t) / 2)
    Eq(x(t + 1), (M @ x(t))/2)
    >>> print(Eq(x(t + 1), M @ x(t) / 2).latex())
    x(t + 1) = \\frac{1}{2}\\, M\\, x(t)
    """

    target: FieldAt | Atom
    value: sp.Expr | Matrix
    place: Place | None = data_field(default=None, compare=False, repr=False)

    def __init__(self, target: Any, value: Any) -> None:
        target, value = _sides(target, value)
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "value", value)
        line = line_of_caller()
        object.__setattr__(self, "place", None if line is None else line.of_equation(self.name))

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, Matrix) else shown(self.value)
        return f"Eq({self.target}, {value})"

    @property
    def name(self) -> str:
        return str(self.target.field if isinstance(self.target, FieldAt) else self.target.symbol.weights)

    @property
    def time(self) -> sp.Expr | None:
        return self.target.time if isinstance(self.target, FieldAt) else self.target.symbol.time


def _sides(target: Any, value: Any) -> tuple[FieldAt | Atom, sp.Expr | Matrix]:
    """The sides of an equation, if they fit together."""
    if isinstance(target, Field):
        target = target()
    if isinstance(value, Evolving):
        raise value.untimed()
    if isinstance(target, Atom) and isinstance(target.symbol, WeightsAt) and not target.transposed:
        return target, _value_of_weights(target, value)
    if isinstance(target, FieldAt):
        return target, _value_of_field(target, value)
    if isinstance(target, Evolving):
        raise target.untimed()
    raise DeclarationError(
        f"Eq({target!s}, ...): the left side must be a field such as v(t), or weights W(t + 1), and nothing else; "
        "bring the rest to the right side"
    )


def _value_of_weights(target: Atom, value: Any) -> Matrix:
    if not isinstance(value, Matrix):
        given = named_fields(exact(value))
        if given != 0:
            cure = "the matrix of two vectors is outer(a, b)" if sector_of(given) is not None else "give a matrix"
            raise DeclarationError(f"{target} is a matrix, but its equation gives {shown(given)}; {cure}")
        value = Sum(target.rows, target.columns, ())
    if (value.rows, value.columns) != (target.rows, target.columns):
        raise DeclarationError(
            f"the equation of {target} gives a {value.rows} x {value.columns} matrix; "
            f"{target} is {target.rows} x {target.columns}; check the sectors or use .T"
        )
    matrix: Matrix = value
    return matrix


def _value_of_field(target: FieldAt, value: Any) -> sp.Expr:
    field = target.field
    where = f"the equation of {field}"
    if isinstance(value, Matrix):
        raise DeclarationError(
            f"{target} is a vector, but its equation gives the matrix {value}; apply it to a vector with @"
        )
    expression = named_fields(exact(value))
    if expression.has(Each):
        raise DeclarationError(f"{where}: each(...) is for observe={{...}} only")
    sector = sector_of(expression, where)
    if sector is not None and sector != field.sector:
        raise DeclarationError(
            f"{where} mixes sectors: {field} lives on {field.sector}, its right-hand side on {sector}; check the "
            "sectors or use .T"
        )
    labels = labels_of(expression, where)
    if labels is not None and labels != field.labels:
        raise DeclarationError(
            f"{where} has labels {labels} on its right-hand side, but {field} has {field.labels or 'none'}; sum over "
            "them with total(...), or give the field labels=..."
        )
    return expression


@dataclass(frozen=True, repr=False)
class Spectrum(DisplayedFormula):
    """The symmetric matrix to probe; `plus` names an observable that is added to it as a multiple of the identity."""

    matrix: Matrix
    plus: str = ""
    place: Place | None = data_field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"spectrum({self.matrix}{f', plus={self.plus!r}' if self.plus else ''})"


def spectrum(matrix: Matrix, plus: str = "") -> Spectrum:
    """Ask for the spectrum of a symmetric matrix: M(T), or W(T).T @ W(T) / N.

    With plus="name" the matrix is M(T) + name(T) * identity, where name is one of the observables.

    >>> from derive import gaussian, parameter, positive, sectors, spectrum
    >>> D, N = sectors("D", N=parameter("nu", default=2.0, domain=positive))
    >>> W = gaussian("W", N, D)
    >>> spectrum(W.T @ W / N)
    spectrum(1/N*W.T @ W)
    """
    if not isinstance(matrix, Matrix):
        if isinstance(matrix, Evolving):
            last = matrix.weights.clock.steps
            raise DeclarationError(f"spectrum({matrix}): {matrix} changes in time; write spectrum({matrix}({last}))")
        raise DeclarationError(f"spectrum({matrix!s}): give a matrix such as M(T) or W(T).T @ W(T) / N")
    if isinstance(matrix, Sum) and not matrix.terms:
        raise DeclarationError("spectrum(0): the terms of the matrix cancel, so there is nothing to probe")
    if matrix.rows != matrix.columns:
        raise DeclarationError(
            f"spectrum({matrix}): the matrix is {matrix.rows} x {matrix.columns}; for singular values probe W.T @ W, "
            f"as in spectrum(W.T @ W / {matrix.rows}) with W = {matrix}"
        )
    return Spectrum(matrix, plus, line_of_caller())


@dataclass(frozen=True, repr=False)
class Model(Displayed):
    """Everything that is declared; nothing of what follows from it.

    parameters: in the order in which generated solvers take them.
    equations: one for each field (and its starting values), two for each weight matrix.
    observe: name to scalar, made of mean(...) and overlap(...); kept as pairs.
    probe: spectrum(matrix), or several by layer, {0: spectrum(...), 1: spectrum(...)}, or None when only the training
    level matters; several are kept as pairs of a label and a spectrum.
    choices, family: which member of a family this is; filled in by the family.
    responses: how a sampled pass finds responses, "pathwise" or "stein"; "stein" if left out.
    arrays: a function of the parameter values (a dictionary) that returns the arrays of data(...) by name, for those
    who give none of their own.
    refuses: a function of the arrays that a user gives (a dictionary) that returns what is wrong with them, or "".

    >>> from derive import Model, goe, mean, normal, outer, parameter, positive, sectors, spectrum
    >>> gamma, D = parameter("gamma", default=2.0, domain=positive), sectors("D")
    >>> M, v = goe("M", D), normal("v", D)
    >>> model = Model(
    ...     parameters=(gamma,), observe={"norm": mean(v**2)}, probe=spectrum(M + gamma / D * outer(v, v))
    ... )
    >>> model
    Model model: 1 parameter, observables norm, spectrum of M + gamma/D*outer(v, v); print(...) shows it
    """

    parameters: Sequence[Parameter]
    equations: Sequence[Eq] = ()
    observe: Any = data_field(default_factory=dict)
    probe: Any = None
    name: str = "model"
    doc: str = ""
    choices: tuple[tuple[str, int | str], ...] = ()
    family: str = ""
    responses: str = ""
    arrays: Any = None
    refuses: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", _listed("parameters", self.parameters, "parameters=(eta, T)"))
        object.__setattr__(self, "equations", _listed("equations", self.equations, "equations=[Eq(...), Eq(...)]"))
        if not isinstance(self.observe, Mapping):
            raise DeclarationError(
                f"observe={_named(self.observe)}: name each, as in observe={{'activity': mean(v(t)**2)}}"
            )
        object.__setattr__(self, "observe", tuple(_observed(*item) for item in self.observe.items()))
        if isinstance(self.probe, Mapping):
            object.__setattr__(self, "probe", tuple((str(label), what) for label, what in self.probe.items()))
        elif isinstance(self.probe, (list, set)) or (isinstance(self.probe, tuple) and not _are_pairs(self.probe)):
            raise DeclarationError("probe=...: give one spectrum(...), or several by label, {0: spectrum(...), 1: ...}")
        check(self)

    @property
    def setting(self) -> str:
        """The name that was asked for: the family's for a member of one."""
        return self.family or self.name

    @property
    def probes(self) -> tuple[tuple[str, Spectrum], ...]:
        """Every probed matrix with its label; a single one has the empty label."""
        if self.probe is None:
            return ()
        return self.probe if isinstance(self.probe, tuple) else (("", self.probe),)

    def probing(self, label: str) -> Model:
        """The same model with one of its probed matrices only."""
        return replace(self, probe=dict(self.probes)[label], observe=dict(self.observe))


def _listed(what: str, given: Any, example: str) -> tuple[Any, ...]:
    """What was given as a list; one alone, a dictionary or a text is not one."""
    if isinstance(given, (str, Mapping, sp.Basic, Eq)) or not isinstance(given, Iterable):
        raise DeclarationError(f"{what}={_named(given)}: give a list, as in {example}")
    return tuple(given)


def _are_pairs(probe: tuple[Any, ...]) -> bool:
    """Whether probes are as a model keeps them."""
    return all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in probe)


def _named(given: Any) -> str:
    """Something that was given where it cannot stand, in a word."""
    if isinstance(given, (str, sp.Basic, Matrix, Evolving)):
        return repr(given) if isinstance(given, str) else str(given)
    return given.name if isinstance(given, Eq) else "None" if given is None else f"a {type(given).__name__}"


def _observed(name: Any, value: Any) -> tuple[str, sp.Expr]:
    if not isinstance(name, str) or not name.isidentifier():
        raise DeclarationError(f"observable {name!r} is not a Python name; use letters, digits and underscores")
    if isinstance(value, (Matrix, Evolving)):
        raise DeclarationError(
            f"observable {name} is the matrix {value}; observables are numbers made of mean(...) and overlap(...)"
        )
    try:
        return name, exact(value)
    except DeclarationError as error:
        raise DeclarationError(f"observable {name}: {error.sentence}") from None


def expressions(node: Any) -> list[sp.Basic]:
    """All SymPy expressions inside a matrix expression."""
    if isinstance(node, Sum):
        return [e for scale, part in node.terms for e in (scale, *expressions(part))]
    if isinstance(node, Product):
        return [e for factor in node.factors for e in expressions(factor)]
    if isinstance(node, Dyad):
        return [node.left, node.right]
    if isinstance(node, Atom):
        return [node.symbol]
    return [node]


def everything(model: Model) -> list[sp.Basic]:
    """All SymPy expressions of a model, in the order of the declaration."""
    found: list[sp.Basic] = []
    for equation in model.equations:
        found += [*expressions(equation.target), *expressions(equation.value)]
    found += [value for _, value in model.observe]
    for _, probe in model.probes:
        found += expressions(probe.matrix)
    return found


def atoms(model: Model, kind: type | tuple[type, ...]) -> tuple[Any, ...]:
    """The symbols of one kind, also those inside sizes, scales and variances, in order of first use."""
    found: dict[Any, None] = {}
    seen: set[Any] = set()

    def visit(expression: sp.Basic) -> None:
        for node in sp.preorder_traversal(expression):
            if isinstance(node, kind):
                found.setdefault(node)
            if isinstance(node, sp.Symbol) and hasattr(node, "payload") and node not in seen:
                seen.add(node)
                for part in node.payload:
                    if isinstance(part, sp.Basic):
                        visit(part)

    for expression in everything(model):
        visit(expression)
    return tuple(found)


def declared_names(model: Model) -> set[str]:
    """The names that a declaration gives to anything; what the engine makes is named apart from them."""
    return {symbol.name for symbol in (*model.parameters, *atoms(model, DECLARED))}


def check(model: Model) -> None:
    """Raise DeclarationError, in one sentence that names the place, if the model is not well posed."""
    for i, what in enumerate(model.parameters):
        if not isinstance(what, Parameter):
            raise DeclarationError(
                f"parameters: {_named(what)} is not a parameter; make one with parameter('name', default=1.0)"
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
    _check_names(model)
    _check_numbers(model)
    _check_parameters(model)
    _check_definitions(model)
    _check_use_of_disorder(model)
    _check_times(model)
    for name, value in model.observe:
        _check_observable(name, value)


def _no_equation(given: Any) -> str:
    """What stands among the equations and is none, with the cure."""
    if isinstance(given, sp.core.relational.Relational):
        return f"is SymPy's {type(given).__name__} of {given.lhs}; take Eq from derive: from derive import Eq"
    if isinstance(given, (bool, sp.logic.boolalg.BooleanAtom)):
        return (
            f"is {given}, the result of a comparison; an equation is written Eq(left, right) with Eq from derive, "
            "not with == and not with SymPy's Eq"
        )
    if isinstance(given, (list, tuple)) and given and all(isinstance(e, Eq) for e in given):
        return "is a list of equations; put a star before it: [*these, Eq(...)]"
    return f"{_named(given)}, is not an equation; write Eq(v(t), ...) with Eq from derive"


def _check_probes(model: Model) -> None:
    if isinstance(model.probe, tuple) and not model.probe:
        raise DeclarationError("probe={} names no matrix; give one spectrum(...) or more, or leave probe out")
    labels = [label for label, _ in model.probes]
    if len(set(labels)) < len(labels):
        raise DeclarationError(f"probe: two matrices have the label {max(labels, key=labels.count)}; rename one")
    for label, probe in model.probes:
        if not isinstance(probe, Spectrum):
            what = probe if isinstance(probe, Matrix) else "W(T).T @ W(T) / N"
            raise DeclarationError(f"probe: {_named(probe)} is no spectrum; write probe=spectrum({what})")
        if label and not f"_{label}".isidentifier():
            raise DeclarationError(f"probe: the label {label!r} must be made of letters, digits and underscores")
        if probe.plus and probe.plus not in dict(model.observe):
            raise DeclarationError(
                f"spectrum(..., plus={probe.plus!r}): there is no observable of that name; add it to observe={{...}}"
            )
        if probe.plus and isinstance(dict(model.observe)[probe.plus], Each):
            raise DeclarationError(f"spectrum(..., plus={probe.plus!r}): that observable has labels; name one number")


def _check_names(model: Model) -> None:
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


def _check_numbers(model: Model) -> None:
    """Everything is real and finite: no theory, and no simulation, is of anything else."""
    places = [(f"the equation of {e.name}", expressions(e.value)) for e in model.equations]
    places += [(f"observable {name}", [value]) for name, value in model.observe]
    places += [("spectrum(...)", expressions(probe.matrix)) for _, probe in model.probes]
    places += [(f"the scale of {f}", [f.scale]) for f in atoms(model, Field)]
    places += [(f"the variance of {m}", [m.variance]) for m in atoms(model, Disorder)]
    places += [(f"the ratio of {s}", [s.ratio]) for s in atoms(model, Sector)]
    for where, found in places:
        for expression in found:
            for number in (sp.I, sp.oo, -sp.oo, sp.zoo, sp.nan):
                if expression.has(number):
                    raise DeclarationError(f"{where} holds {number}; it must be real and finite")
    for symbol in atoms(model, (Sector, Disorder)):
        what, value = ("ratio", symbol.ratio) if isinstance(symbol, Sector) else ("variance", symbol.variance)
        if value.is_negative or (what == "ratio" and value.is_zero):
            raise DeclarationError(f"the {what} of {symbol} is {value}; it must be positive")


def _described(symbol: Any) -> str:
    """A symbol with what tells it from another of its name."""
    if isinstance(symbol, Field):
        kind = "a normal vector" if symbol.role == "normal" else "a field"
        return f"{kind} over {symbol.sector}" + (f" on {symbol.clock}" if symbol.timed else "")
    if isinstance(symbol, (Disorder, Weights)):
        kind = "a random matrix" if isinstance(symbol, Disorder) else "weights"
        return f"{kind} of {symbol.shape[0]} x {symbol.shape[1]}"
    if isinstance(symbol, Parameter):
        return f"a parameter with default {symbol.default:g}"
    return f"a {type(symbol).__name__.lower()}"


def _check_parameters(model: Model) -> None:
    listed = set(model.parameters)
    known = {*listed, *atoms(model, DECLARED)}
    for part, inside in _parts(model):
        with blaming(part):
            for expression in inside:
                _check_known(expression, known)
    for parameter in atoms(model, Parameter):
        if parameter not in listed:
            raise DeclarationError(f"parameter {parameter} is used but not listed in parameters=(...); add it there")


def _parts(model: Model) -> list[tuple[Eq | Spectrum | None, list[sp.Basic]]]:
    """The parts of a model that know where they were written, with the expressions in them."""
    found: list[tuple[Eq | Spectrum | None, list[sp.Basic]]] = [
        (e, [*expressions(e.target), *expressions(e.value)]) for e in model.equations
    ]
    found.append((None, [value for _, value in model.observe]))
    return [*found, *((probe, expressions(probe.matrix)) for _, probe in model.probes)]


def _check_known(expression: sp.Basic, known: set[sp.Basic]) -> None:
    for symbol in sorted(expression.free_symbols - known, key=str):
        if isinstance(symbol, Parameter):
            raise DeclarationError(f"parameter {symbol} is used but not listed in parameters=(...); add it there")
        own = next((s for s in sorted(known, key=str) if str(s) == str(symbol)), None)
        if own is not None:
            raise DeclarationError(
                f"{symbol} in {shown(expression)} is a symbol of SymPy, not {_described(own)} of that name; use what "
                f"{type(own).__name__.lower()}s are made with here, not Symbol('{symbol}')"
            )
        raise DeclarationError(
            f"the symbol {symbol} in {shown(expression)} is not declared; make it a parameter, a field or a sector, as "
            f"in {symbol} = parameter('{symbol}', default=1.0)"
        )


def _start(equation: Eq) -> bool:
    return equation.time is not None and equation.time.is_Integer


def _check_definitions(model: Model) -> None:
    rules: dict[str, Eq] = {}
    starts: dict[tuple[str, int], Eq] = {}
    for equation in model.equations:
        with blaming(equation):
            _define(model, equation, rules, starts)
    for (name, first), equation in starts.items():
        if name not in rules:
            with blaming(equation):
                later = f"{name}({_clock(equation)} + 1)"
                raise DeclarationError(f"{name}({first}) is given, but no rule for later times; add Eq({later}, ...)")
    for part, inside in _parts(model):
        with blaming(part):
            for expression in inside:
                _check_defined(expression, rules)


def _check_defined(expression: sp.Basic, rules: dict[str, Eq]) -> None:
    for symbol in sorted(expression.atoms(Field, Weights), key=str):
        if symbol.name not in rules and not (isinstance(symbol, Field) and symbol.role == "normal"):
            at = f"({symbol.clock})" if symbol.clock is not None else ""
            cure = (
                f"Eq({symbol}(0), ...) and Eq({symbol}({symbol.clock} + 1), ...)"
                if isinstance(symbol, Weights)
                else f"Eq({symbol}{at}, ...), or make it normal(...) if it is random"
            )
            raise DeclarationError(f"{symbol} is used but has no equation; add {cure}")


def _define(model: Model, equation: Eq, rules: dict[str, Eq], starts: dict[tuple[str, int], Eq]) -> None:
    """Put an equation with those before it, if it fits."""
    if isinstance(equation.target, FieldAt) and equation.target.field.role == "normal":
        raise DeclarationError(f"{equation.name} is a normal(...) vector: it is drawn, so it takes no equation")
    if equation.time is not None and equation.time.is_Integer:
        key = (equation.name, int(equation.time))
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
        clock = _clock(equation)
        shift = equation.time - clock
        if not (shift.is_Integer and shift >= 0):
            raise DeclarationError(
                f"{equation.target}: the left side must be at {clock}, {clock} + 1 or a starting time"
            )
        for first in range(int(shift)):
            if (equation.name, first) not in starts and not any(
                _start(e) and e.name == equation.name and e.time == first for e in model.equations
            ):
                raise DeclarationError(
                    f"{equation.target} has a rule but no starting value; add Eq({equation.name}({first}), ...)"
                )


def _line(equation: Eq) -> str:
    return "" if equation.place is None else f" (before on line {equation.place.line})"


def _clock(equation: Eq) -> Clock | None:
    target = equation.target
    found: Clock | None = target.field.clock if isinstance(target, FieldAt) else target.symbol.weights.clock
    return found


def _check_use_of_disorder(model: Model) -> None:
    for equation in model.equations:
        with blaming(equation):
            for inside in expressions(equation.value):
                _check_linear(inside, f"the equation of {equation.name}")
    for symbol in atoms(model, Disorder):
        if symbol.fresh is not None and any(
            node is symbol or (isinstance(node, Apply) and node.matrix == symbol)
            for e in everything(model)
            for node in sp.preorder_traversal(e)
            if not isinstance(node, (DisorderAt, Disorder))
        ):
            raise DeclarationError(f"{symbol} is drawn afresh at each step: write {symbol}({symbol.fresh})")
    for _, probe in model.probes:
        with blaming(probe):
            if any(node.has(DisorderAt) for node in expressions(probe.matrix)):
                raise DeclarationError(
                    "the probed matrix contains disorder drawn afresh at each step; probe fixed matrices or weights"
                )


def _check_times(model: Model) -> None:
    """One clock in the model, relative times on right sides, and the last time in the probe."""
    for equation in model.equations:
        with blaming(equation):
            _check_times_of(model, equation)
    clocks = atoms(model, Clock)
    if len(clocks) > 1:
        owner = next(s for s in atoms(model, (Field, Weights, Disorder, Data)) if clocks[1] in s.payload)
        raise DeclarationError(
            f"{owner} lives on another clock ({clocks[1]}) than what is used before it ({clocks[0]}); use one for all"
        )
    for _, probe in model.probes:
        with blaming(probe):
            _check_times_of_probe(expressions(probe.matrix))


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
            last = node.weights.clock.steps
            raise DeclarationError(
                f"spectrum(...) uses {node.weights}({node.time}); probe the weights after the last step, "
                f"{node.weights}({last}), and choose {last} as you like"
            )


def _check_times_of(model: Model, equation: Eq) -> None:
    clock = _clock(equation)
    start = equation.time is not None and equation.time.is_Integer
    for node in (n for e in expressions(equation.value) for n in sp.preorder_traversal(e)):
        if isinstance(node, sp.Sum) and (len(node.limits) > 1 or node.function.has(sp.Sum)):
            raise DeclarationError(
                f"the equation of {equation.name} has a sum over earlier times inside another one; "
                "give the inner sum a field of its own"
            )
        if isinstance(node, sp.Sum) and node.function.has(WeightsAt, DisorderAt):
            changing = min(node.function.atoms(WeightsAt, DisorderAt), key=sp.default_sort_key).args[0]
            raise DeclarationError(
                f"the equation of {equation.name} has products with {changing}, which changes in time, in a sum "
                "over earlier times; give the product a field of its own and sum over that"
            )
        if isinstance(node, FieldAt) and node.field.timed and node.field.clock != clock:
            raise DeclarationError(
                f"the equation of {equation.name} uses {node.field}, which lives on another clock "
                f"({node.field.clock}); use one clock for all fields"
            )
        if isinstance(node, (FieldAt, WeightsAt, DisorderAt, DataAt)) and node.time is not None:
            relative = sp.expand(node.time - clock).is_Integer or node.time.has(PAST)
            fixed = not (node.time.free_symbols - set(model.parameters))
            if fixed and not start:
                raise DeclarationError(
                    f"the equation of {equation.name} uses {node.args[0]}({node.time}); on the right "
                    f"side times are relative to the clock: {clock}, {clock} - 1, ..."
                )
            if not fixed and not relative and not start:
                raise DeclarationError(
                    f"the equation of {equation.name} uses {shown(node)}; times are {clock}, {clock} - 1, ... in whole "
                    "steps, or a sum over earlier times, past_sum(lambda s: ..., t)"
                )
            if isinstance(node, DataAt) and node.data.clock != clock:
                raise DeclarationError(
                    f"the equation of {equation.name} uses {node.data}, which lives on another clock "
                    f"({node.data.clock}); use one clock for all"
                )
            if isinstance(node, DataAt) and (node.time - equation.time).is_positive:
                raise DeclarationError(
                    f"the equation of {equation.name} at {equation.time} uses {shown(node)}, which comes later; "
                    f"use data up to {equation.time}"
                )
    if equation.time is None and not isinstance(equation.value, Matrix) and equation.value.atoms(Clock):
        raise DeclarationError(f"{equation.name} has no clock, but its equation depends on time; put it on the clock")


def _check_mean_in_probe(coefficient: sp.Expr, average: Mean) -> None:
    """A mean in the probed matrix is taken at the last time, some steps before it, or at the start."""
    timed = sorted((v for v in average.atoms(FieldAt) if v.time is not None), key=sp.default_sort_key)
    if not timed:
        return
    where = f"spectrum(...) has the coefficient {shown(average)}"
    if sector_of(coefficient) is not None or coefficient.has(Total):
        raise DeclarationError(
            f"{where} inside a vector; multiply the outer product by it, or put it into an update of weights"
        )
    clock = timed[0].field.clock
    if labels_of(average) is not None:
        raise DeclarationError(f"{where}, which has labels; put it into an update of weights and probe the weights")
    for value in timed:
        before = sp.expand(clock.steps - value.time)
        known = value.time.is_Integer and 0 <= value.time <= clock.steps.domain.low
        if not known and not (before.is_Integer and before >= 0):
            raise DeclarationError(
                f"{where}, which uses {value.field} at {value.time}; a coefficient is taken at {clock.steps}, "
                f"{clock.steps} - 1, ..., or at 0"
            )
        if not clock.endpoint and before == 0:
            raise DeclarationError(
                f"{where}, but {clock} ends at {clock.steps} - 1; take it there, or leave endpoint=False out"
            )
        if not sp.expand(value.time - timed[0].time).is_Integer:
            raise DeclarationError(
                f"{where}, which uses {timed[0].field}({timed[0].time}) and {value.field}({value.time}) together; "
                f"use times that count from the same end"
            )


def _check_observable(name: str, value: sp.Expr) -> None:
    if sector_of(value, f"observable {name}") is not None:
        raise DeclarationError(f"observable {name} is a vector; wrap it in mean(...)")
    if value.has(Mix, Apply, Project, sp.Sum):
        inner = min(value.atoms(Mix, Apply, Project, sp.Sum), key=sp.default_sort_key)
        raise DeclarationError(f"observable {name}: give {shown(inner)} a field of its own and average that field")
    if any(node is not value and isinstance(node, Each) for node in sp.preorder_traversal(value)):
        raise DeclarationError(f"observable {name}: each(...) stands alone, around the whole of it")
    labels_of(value, f"observable {name}")
    if value.has(DataAt) and not value.has(Total):
        raise DeclarationError(f"observable {name} has labels; wrap it in total(...) to sum over them, or in each(...)")
    outside = value.xreplace({m: sp.S.One for m in value.atoms(Mean, DataAt)})
    if outside.atoms(Sector, Clock):
        raise DeclarationError(
            f"observable {name} depends on a size or on time outside mean(...); keep parameters only"
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
    """Matrices applied to vectors may only be added and multiplied by scalars."""
    marks = {
        node: sp.Symbol(f"applied_{i}")
        for i, node in enumerate(sorted((n for n in _outermost(expression)), key=sp.default_sort_key))
    }
    if not marks:
        return
    plain = expression.xreplace(marks)
    for node, mark in marks.items():
        slope = sp.diff(plain, mark)
        if slope.has(*marks.values()) or sector_of(slope) is not None:
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


def _outermost(expression: sp.Basic) -> set[Any]:
    """Applied matrices that are not inside another one, nor inside a mean."""
    if isinstance(expression, (Apply, Project)):
        return {expression}
    if isinstance(expression, Mean):
        if expression.has(Apply, Mix, Project, sp.Sum):
            inner = min(expression.atoms(Apply, Mix, Project, sp.Sum), key=sp.default_sort_key)
            raise DeclarationError(
                f"{shown(expression)}: give {shown(inner)} a field of its own and use that field inside the mean"
            )
        return set()
    return set().union(*(_outermost(arg) for arg in expression.args)) if expression.args else set()
