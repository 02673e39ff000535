"""Traits: quenched random numbers per site with a known law.

A trait, or a function of it, multiplies fields entry by entry: `sqrt(lam) * x(t)`. Sites with equal traits are
equivalent. Results therefore hold conditionally on the traits, and means over sites include an average over their law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import sympy as sp
from sympy.logic.boolalg import BooleanAtom

from derive.errors import DeclarationError
from derive.language.data import DataAt
from derive.language.expressions import declared, is_list, word
from derive.language.laws import DrawnLaw
from derive.language.symbols import EngineSymbol, Parameter, Sector, _Named, exact, other_symbols
from derive.language.vectors import Field, FieldAt, Mean, values

VALUE = EngineSymbol("x", real=True)
"""The variable of a density."""


class Trait(Field):
    """A vector whose entries are drawn once from a law: values with weights, or a density between two ends.

    The law is stored as (values, weights) or (density, low, high); values may be data, with equal weights.
    """

    __slots__ = ()

    def __new__(cls, name: str, sector: Sector, law: sp.Tuple, latex: str = "") -> Self:
        Sector.check(name, sector)
        payload = (sector, None, "trait", sp.S.One, False, sp.Tuple(), law)
        return _Named.__new__(cls, name, payload, latex, real=True)

    given_by = "trait(...): it has a law and never changes"
    law = property(lambda self: self.payload[6])
    discrete = property(lambda self: len(self.payload[6]) == 2)
    values = property(lambda self: self.payload[6][0])
    weights = property(lambda self: self.payload[6][1])
    density = property(lambda self: self.payload[6][0])
    low = property(lambda self: self.payload[6][1])
    high = property(lambda self: self.payload[6][2])


def is_trait(node: sp.Basic) -> bool:
    """Return whether a node is the value of a trait."""
    return isinstance(node, FieldAt) and isinstance(node.field, Trait)


def traits_in(expression: sp.Basic) -> tuple[FieldAt, ...]:
    """Return the traits that an expression depends on outside of means, in a fixed order."""
    return tuple(value for value in values(expression) if is_trait(value))


def split_traits(coefficient: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Split a coefficient into its constant factor and its trait-dependent factor."""
    factors = sp.Mul.make_args(coefficient)
    return sp.Mul(*(f for f in factors if not traits_in(f))), sp.Mul(*(f for f in factors if traits_in(f)))


def apart(change: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    """Apply a change to an expression outside of its functions of traits alone."""
    if not traits_in(expression):
        return change(expression)
    functions: dict[sp.Basic, None] = {}

    def walk(node: sp.Basic) -> None:
        if isinstance(node, Mean):
            return
        if isinstance(node, sp.Expr) and traits_in(node) and not _depends_on_more(node) and not node.is_Mul:
            functions[node] = None
        else:
            for arg in node.args:
                walk(arg)

    walk(sp.sympify(expression))
    if not functions:
        return change(expression)
    order = sorted(functions, key=sp.default_sort_key)
    marks = {node: EngineSymbol(f"of_traits{number}", real=True) for number, node in enumerate(order)}
    return change(expression.xreplace(marks)).xreplace({mark: node for node, mark in marks.items()})


def _depends_on_more(node: sp.Basic) -> bool:
    """Return whether an expression depends on anything other than traits, parameters and numbers."""
    if is_trait(node) or isinstance(node, BooleanAtom):
        return False
    return (not node.args and not (node.is_number or isinstance(node, Parameter))) or any(
        map(_depends_on_more, node.args)
    )


@word
def trait(
    name: str,
    sector: Sector,
    *,
    values: Any = None,
    weights: Iterable[Any] | None = None,
    density: Any = None,
    low: Any = None,
    high: Any = None,
    law: DrawnLaw | None = None,
    latex: str = "",
) -> Trait:
    """Return a vector of quenched random numbers per site with a known law, such as a spectrum of inputs.

    Args:
        values: numbers, parameters or formulas of them; or data("lam", K), which the user provides.
        weights: the fraction of sites with each value; equal by default.
        density: a formula in one symbol, or a function; it is normalised on the interval from low to high.
        low: the lower end: a number, a parameter or minus infinity.
        high: the upper end: a number, a parameter or infinity.
        law: a law as for `drawn`, such as log_normal(0, 0.5), instead of all these.

    >>> from sympy import Symbol
    >>> from derive import mean, normal, parameter, positive, sectors, trait
    >>> D, kappa = sectors("D"), parameter("kappa", default=4.0, domain=positive)
    >>> lam = trait("lam", D, values=[1, kappa], weights=[0.75, 0.25])
    >>> mean(lam * normal("v", D) ** 2)
    mean(v**2*lam)
    >>> x = Symbol("x")
    >>> mu = trait("mu", D, density=x**-1.5, low=0.01, high=1)
    """
    if law is not None:
        if any(argument is not None for argument in (values, weights, density, low, high)):
            raise DeclarationError(f"trait {name}: law={law} already sets the law; leave values and density out")
        return Trait(name, sector, _of_law(name, law), latex)
    if (values is None) == (density is None):
        raise DeclarationError(
            f"trait {name}: give either values=[...] with weights=[...], or density=..., low=, high="
        )
    if values is not None:
        if low is not None or high is not None:
            raise DeclarationError(f"trait {name}: low and high belong to a density; omit them for values")
        return Trait(name, sector, _discrete(name, values, weights), latex)
    if weights is not None:
        raise DeclarationError(f"trait {name}: weights belong to values; omit them for a density")
    return Trait(name, sector, _continuous(name, density, low, high), latex)


def _discrete(name: str, values: Any, weights: Any) -> sp.Tuple:
    if isinstance(values, DataAt):
        if len(values.data.axes) != 1 or values.time is not None:
            raise DeclarationError(f"trait {name}: its values are data with one axis and no clock, data('lam', K)")
        if weights is not None:
            raise DeclarationError(f"trait {name}: values from data have equal weights; leave weights out")
        return sp.Tuple(values.data, sp.Tuple())
    numbers = _numbers(name, "values", values)
    shares = _numbers(name, "weights", [sp.Rational(1, len(numbers))] * len(numbers) if weights is None else weights)
    if len(numbers) != len(shares):
        raise DeclarationError(
            f"trait {name}: {len(numbers)} values and {len(shares)} weights; give one weight per value"
        )
    for share in shares:
        if share.is_negative:
            raise DeclarationError(f"trait {name}: the weight {share} is negative; weights are fractions of the sites")
    total = sp.Add(*shares)
    if total.is_Rational and abs(total - 1) > sp.Rational(1, 10**12):
        raise DeclarationError(f"trait {name}: its weights add up to {float(total):g}; they must add up to one")
    if total.is_Rational:  # decimals such as 1/3 add up to one only nearly
        shares = [share / total for share in shares]
    return sp.Tuple(sp.Tuple(*numbers), sp.Tuple(*shares))


def _numbers(name: str, what: str, values: Any) -> list[sp.Expr]:
    if not is_list(values):
        raise DeclarationError(f"trait {name}: {what}={values!s} is not a list; write {what}=[...]")
    try:
        numbers = [_number(name, what, value) for value in iter(values)]
    except TypeError:  # an array of no dimension says that it can be iterated over
        raise DeclarationError(f"trait {name}: {what}={values!s} is one number; write {what}=[...]") from None
    if not numbers:
        raise DeclarationError(f"trait {name}: {what}=[] is empty; give one number or more")
    return numbers


def _number(name: str, what: str, value: Any) -> sp.Expr:
    number = exact(value)
    unknown = other_symbols(number, Parameter)
    if unknown:
        raise DeclarationError(f"trait {name}: {what} depends on {unknown[0]}; use numbers and parameters only")
    return number


def _continuous(name: str, density: Any, low: Any, high: Any) -> sp.Tuple:
    if low is None or high is None:
        raise DeclarationError(f"trait {name}: give the ends of its density, low=... and high=...; oo is infinity")
    formula = exact(density(declared(VALUE)) if callable(density) and not isinstance(density, sp.Basic) else density)
    variables = other_symbols(formula, Parameter)
    if len(variables) > 1:
        raise DeclarationError(
            f"trait {name}: its density has the symbols {variables[0]} and {variables[1]}; one is the value, and all "
            "others must be parameters"
        )
    if variables and isinstance(variables[0], _Named):
        raise DeclarationError(f"trait {name}: its density depends on {variables[0]}; use one symbol and parameters")
    formula = formula.xreplace({symbol: VALUE for symbol in variables})
    ends = [end if end in (sp.oo, -sp.oo) else _number(name, "an end of its density", end) for end in _ends(low, high)]
    if (ends[1] - ends[0]).is_nonpositive:
        raise DeclarationError(
            f"trait {name}: the upper end of its density, {ends[1]}, is not above the lower one, {ends[0]}; "
            "exchange them"
        )
    return sp.Tuple(formula, *ends)


def _of_law(name: str, law: DrawnLaw) -> sp.Tuple:
    """Return a named law as values with weights, or as a density with its ends."""
    DrawnLaw.check(f"trait {name}", law)
    x, (a, *b) = VALUE, law.args[1:]
    if law.kind == "discrete":
        return sp.Tuple(b[0], a)
    if law.kind == "uniform":
        return _continuous(name, sp.S.One, a, b[0])
    if law.kind == "exponential":
        return sp.Tuple(sp.exp(-x / a), sp.S.Zero, sp.oo)
    if law.kind == "half_normal":
        return sp.Tuple(sp.exp(-(x**2) / (2 * a**2)), sp.S.Zero, sp.oo)
    if law.kind == "log_normal":
        return sp.Tuple(sp.exp(-((sp.log(x) - a) ** 2) / (2 * b[0] ** 2)) / x, sp.S.Zero, sp.oo)
    parts = law.parts if law.kind == "mixture" else ((sp.S.One, law),)
    if any(bell.kind != "normal_law" for _, bell in parts):
        raise DeclarationError(f"trait {name}: law={law} mixes other laws than normal ones; write its density")
    bells = (w / bell.args[2] * sp.exp(-((x - bell.args[1]) ** 2) / (2 * bell.args[2] ** 2)) for w, bell in parts)
    return sp.Tuple(sp.Add(*bells), -sp.oo, sp.oo)


def _ends(low: Any, high: Any) -> list[Any]:
    """Return both ends, with infinite floats as SymPy's infinities."""
    return [sp.oo if x == float("inf") else -sp.oo if x == float("-inf") else x for x in (low, high)]
