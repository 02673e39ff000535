"""Sites that differ by traits: the linear response of one site conditional on its traits, and its averages over their
laws.

Conditional on the traits of a site, its spectral fields obey linear equations whose coefficients are functions of the
traits and of averages over all sites. The integrands of those averages are therefore rational in the order parameters,
and known functions of the traits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Self

import sympy as sp

from derive.algebra.nodes import Z
from derive.language.symbols import EngineSymbol, Parameter, Sector, _Named, other_symbols
from derive.language.traits import VALUE, Trait, traits_in
from derive.language.vectors import FieldAt, Mean, shown

MOST_GROUPS = 8
"""Number of groups of equal sites up to which an average is expanded into a polynomial sum; more make elimination
slow."""


_NORMAL = sp.Tuple(sp.exp(-(VALUE**2) / 2), -sp.oo, sp.oo)


class SiteNormal(Trait):
    """A standard normal variable of each site; training fields there are linear combinations of these."""

    __slots__ = ()

    def __new__(cls, name: str, sector: Sector) -> Self:
        return super().__new__(cls, name, sector, _NORMAL)


class SiteValue(Trait):
    """A training field at a site and one time; for the spectral fields of the site it is a constant, like a trait."""

    __slots__ = ()

    def __new__(cls, value: FieldAt) -> Self:
        field = value.field
        payload = (field.sector, None, "trait", sp.S.One, False, None, _NORMAL, value)
        name = field.name if value.time is None else "".join(c if c.isalnum() else "_" for c in shown(value)).strip("_")
        return _Named.__new__(cls, name, payload, field.tex, real=True)

    value = property(lambda self: self.payload[7])


def site_values(values: Iterable[FieldAt]) -> list[SiteValue]:
    """Return the training fields at a site among the fields of some values."""
    return [value.field for value in values if isinstance(value.field, SiteValue)]


class SiteEntry(Trait):
    """A diagonal entry at a site: a function of training fields and traits there, whose law is sampled."""

    __slots__ = ()

    def __new__(cls, name: str, sector: Sector, function: sp.Expr) -> Self:
        payload = (sector, None, "trait", sp.S.One, False, None, _NORMAL, function)
        return _Named.__new__(cls, name, payload, "", real=True)

    function = property(lambda self: self.payload[7])


class TraitAverage(Mean):
    """The average over the traits of a site of a function of the traits, z and the bulk responses."""

    def _eval_is_real(self) -> Any:
        return None  # at a complex z it is not


def averaged(expression: sp.Expr) -> sp.Expr:
    """Return the average of an expression over its traits; factors that do not depend on them are moved in front."""
    expression = sp.sympify(expression)
    if not traits_in(expression):
        return expression
    scale, inside = expression.as_independent(*traits_in(expression), as_Add=False)
    numerator, denominator = sp.fraction(sp.together(inside))
    number, numerator = numerator.as_independent(*traits_in(numerator), as_Add=False)
    leading = sp.Poly(denominator, Z).LC() if denominator.has(Z) else denominator
    if leading.could_extract_minus_sign():
        number, denominator = -number, -denominator
    return scale * number * TraitAverage(numerator / denominator)


def around_averages(change: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    """Apply a change to an expression outside of its averages over sites."""
    averages = sorted(expression.atoms(TraitAverage), key=sp.default_sort_key)
    if not averages:
        return change(expression)
    marks = {average: EngineSymbol(f"average{number}") for number, average in enumerate(averages)}
    return change(expression.xreplace(marks)).xreplace({mark: average for average, mark in marks.items()})


def at_source(expression: sp.Expr, values: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    """Return an expression at given values of symbols, also inside its averages over sites."""
    inside = {
        average: averaged(average.expression.xreplace(values))
        for average in sorted(expression.atoms(TraitAverage), key=sp.default_sort_key)
    }
    return expression.xreplace(inside).xreplace(values)


def by_source(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """Return the derivative of an expression with respect to a symbol, also inside its averages over sites."""
    averages = sorted(expression.atoms(TraitAverage), key=sp.default_sort_key)
    marks = {average: EngineSymbol(f"average{number}") for number, average in enumerate(averages)}
    plain = expression.xreplace(marks)
    total = sp.diff(plain, symbol)
    for average, mark in marks.items():
        total += sp.diff(plain, mark) * averaged(sp.diff(average.expression, symbol))
    return total.xreplace({mark: average for average, mark in marks.items()})


def site_responses(rows: Sequence[Sequence[sp.Expr]]) -> sp.Matrix:
    """Return the inverse of one site's propagator, as fractions in lowest terms."""
    matrix = sp.Matrix(rows)
    functions = sorted({node for entry in matrix for node in _functions(entry)}, key=sp.default_sort_key)
    marks = {node: EngineSymbol(f"function{number}") for number, node in enumerate(functions)}
    plain = matrix.xreplace(marks)
    determinant = sp.factor(plain.det(method="berkowitz"))
    adjugate = plain.adjugate(method="berkowitz")
    back = {mark: node for node, mark in marks.items()}
    return adjugate.applyfunc(lambda entry: sp.cancel(sp.expand(entry) / determinant)).xreplace(back)


def _functions(expression: sp.Basic) -> Iterator[sp.Basic]:
    """Yield the outermost parts of an expression that are not sums, products or integer powers of symbols."""
    if expression.is_Add or expression.is_Mul:
        for arg in expression.args:
            yield from _functions(arg)
    elif expression.is_Pow and expression.exp.is_Integer:
        yield from _functions(expression.base)
    elif not expression.is_Rational and not expression.is_Symbol:
        yield expression


def as_polynomials(equations: Iterable[sp.Expr]) -> tuple[sp.Expr, ...] | None:
    """Return the equations as polynomials, with averages over few groups of equal sites as sums.

    None if there is no such form: laws with a density, values that are not rational in the parameters, or too many
    groups.
    """
    polynomials = []
    for equation in equations:
        whole = without_averages(equation)
        if whole is None:
            return None
        unknowns = other_symbols(whole, Parameter)
        if not equation.has(TraitAverage) and whole.is_polynomial(*unknowns):
            polynomials.append(equation)
            continue
        if not whole.is_rational_function(*unknowns):
            return None
        polynomials.append(sp.expand(sp.fraction(sp.cancel(sp.together(whole)))[0]))
    return tuple(polynomials)


def without_averages(expression: sp.Expr) -> sp.Expr | None:
    """Return an expression with averages over sites as sums; None if one has too many groups or a density."""
    expression = sp.sympify(expression)
    averages = sorted(expression.atoms(TraitAverage), key=sp.default_sort_key)
    written = {average: written_out(average) for average in averages}
    return None if None in written.values() else expression.xreplace(written)


def written_out(average: TraitAverage) -> sp.Expr | None:
    """Return an average as the weighted sum over groups of equal sites; None for a density or too many groups."""
    traits: list[Trait] = [value.field for value in traits_in(average.expression)]
    if any(not trait.discrete or not trait.weights for trait in traits):
        return None
    laws = [list(zip(trait.weights, trait.values, strict=True)) for trait in traits]
    groups = list(product(*laws))
    if len(groups) > MOST_GROUPS:
        return None
    total = sp.S.Zero
    for group in groups:
        weight = sp.Mul(*(share for share, _ in group))
        at = {trait(): value for trait, (_, value) in zip(traits, group, strict=True)}
        total += weight * average.expression.xreplace(at)
    return None if total.has(sp.zoo, sp.nan, sp.oo) else total
