"""Parameters, sectors, axes and clocks of a declaration.

Each is a SymPy symbol that carries its declaration. Expressions therefore remain ordinary SymPy expressions, and the
engine reads the declaration back from them (`expression.atoms(Parameter)`).
"""

from __future__ import annotations

import itertools
import keyword
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn, Self, TypeVar, overload

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.sorting import ordered
from sympy.functions.elementary.trigonometric import TrigonometricFunction

from derive.errors import DeclarationError, NotPickled, ParameterError
from derive.language.expressions import Condition, plain, word
from derive.language.traversal import ByKind
from derive.support.display import DisplayedNode
from derive.support.shapes import fits

T = TypeVar("T")


def exact(value: Any) -> sp.Expr:
    """Return the expression with decimals as exact fractions: 0.9 is 9/10, as elimination requires.

    Anything but an expression in real numbers is refused.
    """
    value = plain(value)
    if isinstance(value, (sp.Symbol, sp.Rational)):
        return value
    if isinstance(value, str):
        raise DeclarationError(f"{value!r} is a text where an expression is needed; write it without the quotes")
    if isinstance(value, (bool, type(None), list, tuple, dict, set)) or getattr(value, "shape", ()) != ():
        raise DeclarationError(
            f"{_kind(value)} is used where an expression is needed; fields, parameters and numbers make expressions "
            "(for arrays of numbers, one per label, there is data(...))"
        )
    try:
        expression = sp.sympify(value)
    except sp.SympifyError as error:
        if isinstance(error, DeclarationError):
            raise
        raise DeclarationError(
            f"{_kind(value)} is used where an expression is needed; fields, parameters and numbers make expressions"
        ) from None
    if not isinstance(expression, sp.Expr):
        raise DeclarationError(f"{expression} is not an expression; {_other_than_expression(expression)}")
    odd = sorted(expression.atoms(*_restricted.kinds), key=str)  # one walk finds all that needs a second look
    changes = {node: _restricted(node, expression) for node in odd}
    return expression.xreplace({node: new for node, new in changes.items() if new is not node}) if odd else expression


def _kind(value: Any) -> str:
    """Describe the type of a value in a word or two."""
    if value is None:
        return "None"
    if callable(value):
        return "a function that was not called"
    return "an array" if hasattr(value, "shape") else f"a {type(value).__name__}"


def _other_than_expression(value: Any) -> str:
    if isinstance(value, (sp.logic.boolalg.Boolean, sp.core.relational.Relational)):
        return "a condition belongs into Piecewise((value, condition), (otherwise, True)) or Heaviside(...) from sympy"
    return "fields, parameters and numbers make expressions"


@ByKind
def _restricted(node: sp.Basic, expression: sp.Expr) -> sp.Basic:
    """Convert a node that is allowed only in restricted form to the form that the engine accepts."""
    return node


@_restricted.on(sp.Float)
def _(node: sp.Float, expression: sp.Expr) -> sp.Basic:
    return sp.Rational(repr(float(node)))


@_restricted.on(sp.Heaviside, sp.sign, sp.KroneckerDelta, sp.core.relational.Relational)
def _(node: sp.Basic, expression: sp.Expr) -> sp.Basic:
    return _by_exact_waves(node)


@_restricted.on(Condition)
def _(node: Condition, expression: sp.Expr) -> sp.Basic:
    return _by_exact_waves(node.func(*map(exact, node.args)))


LONGEST_PERIOD = 64
"""Period of a function of time, in steps, up to which its values are listed."""


def _by_exact_waves(node: sp.Basic) -> sp.Basic:
    """Return a function that jumps with the exact values of the sines of time inside it.

    In floating point cos(pi*t/2) is 6e-17, not zero, at t = 1, and rounding would decide on which side of a jump it is.
    """
    waves = [wave for wave in ordered(node.atoms(TrigonometricFunction)) if wave.has(sp.pi) and wave.atoms(Clock)]
    if not waves:
        return node
    clock, *others = set().union(*(wave.atoms(Clock) for wave in waves))
    rates = [wave.args[0].diff(clock) / sp.pi for wave in waves]
    period = sp.ilcm(1, *(2 * rate.q for rate in rates)) if all(rate.is_Rational for rate in rates) else sp.oo
    if others or period > LONGEST_PERIOD:
        raise DeclarationError(
            f"{node} jumps at points decided by rounding, because {waves[0]} is not exact; write its values with "
            f"KroneckerDelta(Mod(t, period), k)"
        )
    phase = sp.Mod(clock, period)
    values = [node.xreplace({wave: wave.subs(clock, k) for wave in waves}) for k in range(period)]
    if isinstance(node, sp.core.relational.Relational):
        return sp.Or(*(sp.And(sp.Eq(phase, k), value) for k, value in enumerate(values)))
    return sp.Add(*(sp.KroneckerDelta(phase, k) * value for k, value in enumerate(values)))


@_restricted.on(*(type(number) for number in (sp.nan, sp.oo, -sp.oo, sp.zoo)))
def _(node: sp.Basic, expression: sp.Expr) -> NoReturn:
    raise DeclarationError(
        "a number in the expression is not finite: nan, infinity or a division by zero; give it a value"
    )


@_restricted.on(type(sp.I))
def _(node: sp.Basic, expression: sp.Expr) -> NoReturn:
    raise DeclarationError(f"{expression} is not real; the language has real numbers only: write real parts")


@_restricted.on(AppliedUndef)
def _(node: AppliedUndef, expression: sp.Expr) -> NoReturn:
    raise DeclarationError(
        f"{node} contains the undefined function {node.func.__name__}; write its formula, or use a function of "
        f"SymPy, such as tanh"
    )


@_restricted.on(sp.Derivative, sp.Integral, sp.Limit, sp.Product)
def _(node: sp.Basic, expression: sp.Expr) -> NoReturn:
    raise DeclarationError(f"{node}: time is discrete, so write x(t + 1) = x(t) + dt * ..., and past_sum(...) for sums")


_ROUNDING = {sp.floor: "//", sp.Mod: "%", sp.ceiling: "ceiling"}


@_restricted.on(*_ROUNDING)
def _(node: sp.Basic, expression: sp.Expr) -> sp.Basic:
    if node.atoms(Sector):
        raise DeclarationError(f"{node}: {_ROUNDING[type(node)]} rounds a ratio of sizes; write / for the quotient")
    return _by_exact_waves(node)


@dataclass(frozen=True)
class Domain:
    """The allowed values of a parameter: an interval, possibly restricted to integers.

    `real`, `positive`, `nonnegative`, `whole_positive` and `whole_nonnegative` are predefined.

    >>> from derive import Domain, parameter, positive
    >>> rate = Domain(0, 1, high_included=True)
    >>> print(rate)
    a number in (0, 1]
    >>> rate.contains(1), rate.contains(0), positive.contains(0.5)
    (True, False, True)
    >>> mu = parameter("mu", default=0.9, domain=rate)
    """

    low: float = -math.inf
    high: float = math.inf
    low_included: bool = False
    high_included: bool = False
    whole: bool = False

    def contains(self, value: float) -> bool:
        try:
            finite = math.isfinite(value)
        except OverflowError:  # a whole number that no floating point number is close to
            finite = False
        if not finite or (self.whole and int(value) != value):
            return False
        above = value >= self.low if self.low_included else value > self.low
        below = value <= self.high if self.high_included else value < self.high
        return above and below

    def __str__(self) -> str:
        left = f"{'[' if self.low_included else '('}{self.low:g}"
        right = f"{self.high:g}{']' if self.high_included else ')'}"
        return ("a whole number in " if self.whole else "a number in ") + f"{left}, {right}"

    @property
    def assumptions(self) -> dict[str, bool]:
        """Return the SymPy assumptions of a symbol with this domain."""
        assumptions = {"real": True}
        if self.whole:
            assumptions["integer"] = True
        if self.low > 0 or (self.low == 0 and not self.low_included):
            assumptions["positive"] = True
        elif self.low == 0:
            assumptions["nonnegative"] = True
        if self.high < 0 or (self.high == 0 and not self.high_included):
            assumptions["negative"] = True
        elif self.high == 0:
            assumptions["nonpositive"] = True
        return assumptions


real = Domain()
positive = Domain(low=0)
nonnegative = Domain(low=0, low_included=True)
whole_positive = Domain(low=1, low_included=True, whole=True)
whole_nonnegative = Domain(low=0, low_included=True, whole=True)


def check_name(name: str, what: str) -> None:
    """Refuse what Python does not read as this name."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise DeclarationError(
            f"{what} {name!r} is not a Python name; use letters, digits and underscores, such as lam_1"
        )
    plain = unicodedata.normalize("NFKC", name).strip("_")
    special = plain and name.startswith("__") and name.endswith("__")
    if special or unicodedata.normalize("NFKC", name) != name:
        raise DeclarationError(f"{what} {name!r}: Python reads this name as another one; write {plain!r}")


def check_latex(latex: str, where: str) -> None:
    """Refuse LaTeX that cannot occur inside a formula."""
    if not isinstance(latex, str):
        raise DeclarationError(f"{where}: latex={latex!r} is not text; write it as latex=r'\\lambda'")
    wrong = ""
    escaped = re.sub(r"\\\\|\\[{}$%#&_]", lambda found: r"\\" if found[0] == r"\\" else "", latex)
    depths = list(itertools.accumulate({"{": 1, "}": -1}.get(letter, 0) for letter in escaped))
    if latex and not latex.strip():
        wrong = "is blank"
    elif min(depths, default=0) < 0 or (depths and depths[-1] != 0):
        wrong = "has braces that do not match"
    elif not latex.isascii() or not latex.isprintable():
        wrong = "has letters that LaTeX spells as commands, such as \\lambda"
    elif re.search(r"[$%#&~]|\\\\|\\$", escaped):
        wrong = "has characters that end a formula or a line"
    elif re.search(r"[\^_]\s*(\}|$)|[\^_]\s*[\^_]", escaped):
        wrong = "has an empty index"
    if wrong:
        raise DeclarationError(
            f"{where}: latex={latex!r} {wrong}; write a symbol as in a formula, such as r'\\lambda_0'"
        )


class _Named(DisplayedNode, sp.Symbol):
    """A symbol with a payload; two symbols are equal if their names, payloads, assumptions and LaTeX are.

    `fingerprint` is the part of the payload that can affect numbers; `tex` is the declared LaTeX ("": derived from the
    name).
    """

    __slots__ = ("fingerprint", "looks", "payload", "tex")
    varies = True  # from site to site, label to label or draw to draw
    fingerprint: tuple[Any, ...]
    looks: tuple[Any, ...]
    payload: tuple[Any, ...]
    tex: str

    called, maker = "a symbol", ""
    """Its name in error messages, and an example of its construction."""

    @classmethod
    def check(cls, where: str, *values: Any) -> None:
        """Refuse an argument that is not a symbol of this class."""
        for value in values:
            if not isinstance(value, cls):
                raise DeclarationError(f"{where}: {value!s} is not {cls.called}; make one with {cls.maker}")

    def __new__(cls, name: str, payload: tuple[Any, ...], latex: str = "", **assumptions: bool) -> Self:
        check_name(name, cls.__name__.lower())
        check_latex(latex, f"{cls.__name__.lower()} {name}")
        obj: Self = sp.Symbol.__xnew__(cls, name, **assumptions)
        obj.payload = payload
        obj.tex = latex.strip()
        inner = [symbol for part in payload if isinstance(part, sp.Basic) for symbol in part.atoms(_Named)]
        obj.fingerprint = (str(payload), tuple(sorted(symbol.fingerprint for symbol in inner)))
        # SymPy caches equal symbols, so two with different LaTeX must not be equal
        obj.looks = (obj.tex, tuple(sorted((symbol.name, symbol.looks) for symbol in inner)))
        return obj

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.fingerprint, self.looks)

    def __getnewargs_ex__(
        self,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:  # symbols with a payload are rebuilt by their own constructors
        raise NotPickled(
            f"{type(self).__name__.lower()} {self.name}: declarations cannot be pickled; write the model to a file "
            f"and load that by its path, or pickle the results of solve and simulate"
        )


class EngineSymbol(DisplayedNode, sp.Symbol):
    """A symbol of the derivation itself. It never equals a declared symbol, even one of the same name.

    Two are equal if their names, owners and assumptions are.
    """

    __slots__ = ("belongs",)
    belongs: sp.Tuple

    def __new__(cls, name: str, *belongs: sp.Basic, **assumptions: bool) -> Self:
        obj: Self = sp.Symbol.__xnew__(cls, name, **assumptions)
        obj.belongs = sp.Tuple(*belongs)
        return obj

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.belongs)

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.name, *self.belongs), self._assumptions_orig

    @classmethod
    def class_key(cls) -> Any:
        """Return the sort key of an ordinary symbol, so that printing orders them alike."""
        return sp.Symbol.class_key()


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not in `taken`, and add it there: the wished one plus underscores."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def other_symbols(expression: sp.Basic, *kinds: type) -> list[sp.Symbol]:
    """Return the symbols of an expression that belong to none of these classes, sorted by name."""
    return sorted((symbol for symbol in expression.free_symbols if not isinstance(symbol, kinds)), key=str)


def symbol_order(symbol: sp.Symbol) -> tuple[str, str]:
    """Return a sort key for symbols that is the same in every run, even for symbols of equal name."""
    return symbol.name, type(symbol).__name__


class Parameter(_Named):
    """A number that the user sets: `gamma0=2`."""

    __slots__ = ()
    varies = False

    def __new__(
        cls, name: str, default: float | Parameter, domain: Domain = real, doc: str = "", latex: str = ""
    ) -> Self:
        if not isinstance(domain, Domain):
            raise DeclarationError(
                f"parameter {name}: the domain must be one of real, positive, nonnegative, whole_positive, "
                "whole_nonnegative or Domain(low, high, ...)"
            )
        number = default.default if isinstance(default, Parameter) else default
        if not fits(number, Real) or not domain.contains(number):
            raise DeclarationError(f"parameter {name}: its default {default!r} must be {domain}")
        if not isinstance(default, Parameter) and type(default) not in (int, float):
            default = int(default) if domain.whole else float(default)  # a number of NumPy or SymPy
        return super().__new__(cls, name, (default, domain, doc), latex, **domain.assumptions)

    @property
    def default(self) -> float:
        return self.follows.default if self.follows is not None else self.payload[0]

    @property
    def follows(self) -> Parameter | None:
        """The parameter whose value this one takes by default; None if there is none."""
        return self.payload[0] if isinstance(self.payload[0], Parameter) else None

    @property
    def domain(self) -> Domain:
        return self.payload[1]

    @property
    def doc(self) -> str:
        return str(self.payload[2])

    def checked(self, value: float) -> float:
        """Return the value if it is in the domain."""
        if not self.domain.contains(value):
            raise ParameterError(f"{self.name}={value:g} is out of range: {self.name} must be {self.domain}")
        return int(value) if self.domain.whole else float(value)


class MeasuredParameter(Parameter):
    """A number that the training level computes and the bulk takes as a parameter: `average` at the last time."""

    __slots__ = ()

    def __new__(cls, name: str, average: sp.Expr) -> Self:
        domain = nonnegative if average.args[0].is_nonnegative else real
        return _Named.__new__(cls, name, (1.0, domain, str(average), average), "", **domain.assumptions)

    @property
    def average(self) -> sp.Expr:
        return self.payload[3]


def is_whole_parameter(value: Any) -> bool:
    """Return whether a value is a parameter whose values are whole numbers."""
    return isinstance(value, Parameter) and value.domain.whole


def parameter_values(point: Mapping[sp.Symbol, T]) -> dict[Parameter, T]:
    """Return the values of the parameters among those of all symbols at a point."""
    return {symbol: value for symbol, value in point.items() if isinstance(symbol, Parameter)}


class Sector(_Named):
    """An index space whose size goes to infinity. The symbol is its size; `ratio` is its size relative to that of the
    base."""

    __slots__ = ()
    varies = False
    called, maker = "a sector", "sectors('D')"

    def __new__(cls, name: str, ratio: Any = 1) -> Self:
        unknown = [ratio] if isinstance(ratio, str) else other_symbols(exact(ratio), Parameter)
        if unknown:
            raise DeclarationError(
                f"sector {name}: {unknown[0]} in its ratio is not a parameter; make it one with "
                f"{unknown[0]} = parameter('{unknown[0]}', default=1.0, domain=positive)"
            )
        size = exact(ratio)
        if size.is_positive is False:
            raise DeclarationError(f"sector {name}: its ratio {size} must be positive, such as {name}=2")
        return super().__new__(cls, name, (size,), positive=True)

    @property
    def ratio(self) -> sp.Expr:
        return self.payload[0]


@overload
def sectors(base: str, /) -> Sector: ...
@overload
def sectors(base: str, /, **ratios: Any) -> tuple[Sector, ...]: ...
@word
def sectors(base: str, /, **ratios: Any) -> tuple[Sector, ...] | Sector:
    """Return index spaces: the base first, every other one by its ratio to the base. In formulas they are the sizes.

    >>> from derive import parameter, positive, sectors
    >>> alpha = parameter("alpha", default=2.0, domain=positive)
    >>> N0, N1 = sectors("N0", N1=alpha)
    >>> N1.ratio
    alpha
    >>> sectors("D")
    D
    """
    spaces = (Sector(base), *(Sector(name, ratio) for name, ratio in ratios.items()))
    return spaces if len(spaces) > 1 else spaces[0]


@word
def parameter(
    name: str, default: float | Parameter, domain: Domain = real, doc: str = "", latex: str = ""
) -> Parameter:
    """Return a named number with a default and a domain; `derive solve SETTING name=value` sets it.

    If the default is another parameter, the value follows that one. `latex` sets its symbol in formulas; by default
    Greek names become Greek letters and digits become indices.

    >>> from derive import parameter, positive
    >>> lam = parameter("lam", default=0.1, domain=positive, doc="weight decay", latex=r"\\lambda")
    >>> lam.default
    0.1
    >>> lam._repr_latex_()
    '$\\\\displaystyle \\\\lambda$'
    """
    return Parameter(name, default, domain, doc, latex)


class Axis(_Named):
    """An axis of labels, such as classes or samples. `size` is the number of labels."""

    __slots__ = ()
    called, maker = "an axis", "c = axis('c', C)"

    def __new__(cls, name: str, size: Parameter | int, latex: str = "") -> Self:
        if not is_whole_parameter(size) and not (fits(size, int | sp.Integer) and size > 0):
            raise DeclarationError(
                f"axis {name}: its size {size!s} is neither a whole-number parameter nor a whole number above 0; write "
                f"axis({name!r}, parameter('C', default=3, domain=whole_positive))"
            )
        return super().__new__(cls, name, (sp.sympify(size),), latex, integer=True, nonnegative=True)

    @property
    def size(self) -> sp.Expr:
        return self.payload[0]


def axes_in_order(where: str, axes: Any) -> tuple[Axis, ...]:
    """Return the given axes, sorted by name: several form one list of labels, with the last axis varying fastest."""
    several = () if axes is None else (axes,) if isinstance(axes, Axis) else axes
    if not fits(several, Sequence[Axis]):
        raise DeclarationError(
            f"{where}: axes={axes!r} is not an axis; make one with c = axis('c', C), or give several"
        )
    ordered = tuple(sorted(several, key=lambda axis: axis.name))
    twice = [axis.name for axis, after in itertools.pairwise(ordered) if axis.name == after.name]
    if twice:
        raise DeclarationError(
            f"{where}: it has the axis {twice[0]} twice; make another of the same size with axis(...)"
        )
    return ordered


def labels_along(axes: Iterable[Axis]) -> sp.Expr:
    """Return the number of labels along some axes; one if there are none."""
    return sp.Mul(*(axis.size for axis in axes))


@word
def axis(name: str, size: Parameter | int, latex: str = "") -> Axis:
    """Return an axis of labels, such as classes or samples: fields, normals and data on it have one copy per label.

    `size` is an integer parameter, or a number. `latex` sets the symbol of a label in formulas.

    >>> from derive import axis, field, mean, normal, parameter, sectors, training_clock, whole_positive
    >>> T, C, P = (parameter(name, default=4, domain=whole_positive) for name in "TCP")
    >>> N, t = sectors("N"), training_clock("t", steps=T)
    >>> c, p = axis("c", C), axis("p", P)
    >>> readout, h = normal("readout", N, axes=c), field("h", N, t, axes=p)
    >>> mean(readout * h(t))  # one number per class and sample
    mean(readout*h(t))
    """
    return Axis(name, size, latex)


class Clock(_Named):
    """Discrete training time t = 0, 1, ..., steps.

    With `endpoint=False` the last time is steps - 1: no field is computed after the last update.
    """

    __slots__ = ()
    varies = False
    called, maker = "a clock", "training_clock('t', steps=T)"

    def __new__(
        cls,
        name: str,
        steps: Parameter,
        endpoint: bool = True,
        latex: str = "",
    ) -> Self:
        if not is_whole_parameter(steps):
            raise DeclarationError(
                f"clock {name}: steps must be a whole-number parameter, such as "
                f"parameter('T', default=10, domain=whole_positive)"
            )
        return super().__new__(cls, name, (steps, endpoint), latex, integer=True, nonnegative=True)

    @property
    def steps(self) -> Parameter:
        return self.payload[0]

    @property
    def endpoint(self) -> bool:
        return bool(self.payload[1])

    @property
    def points(self) -> sp.Expr:
        """The number of times of a field on this clock."""
        return self.steps + 1 if self.endpoint else self.steps


@word
def training_clock(name: str, steps: Parameter, endpoint: bool = True, latex: str = "") -> Clock:
    """Return discrete training time t = 0, 1, ..., steps, on which fields and weights live.

    With `endpoint=False` the last time is steps - 1.

    >>> from derive import parameter, training_clock, whole_positive
    >>> T = parameter("T", default=10, domain=whole_positive)
    >>> t = training_clock("t", steps=T)
    >>> t.points
    T + 1
    """
    return Clock(name, steps, endpoint, latex)
