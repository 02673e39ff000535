"""Refuse laws with infinite averages.

A Gaussian field has a density everywhere. A law that diverges like |x - x0|^-p therefore has no mean square for p >=
1/2, and no mean for p >= 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

from derive.errors import DeclarationError, blaming
from derive.language.data import DataAt
from derive.language.symbols import Parameter
from derive.language.vectors import Field, FieldAt, Mean, Mix, Total, shown
from derive.records.system import System

NUMBERS = (Mean, Total, Mix, AppliedUndef, DataAt)
"""Nodes of a law that are constants of the site: means, sums over labels and data."""
POLES = {sp.tan: sp.cos, sp.sec: sp.cos, sp.cot: sp.sin, sp.csc: sp.sin, sp.coth: sp.sinh, sp.csch: sp.sinh}
"""Functions with poles, and their denominators."""
# The numerical search for poles of a law: more points find narrower poles, and cost time at each declaration.
TRIES = 3
"""Random points of the other values."""
FAR = 5.0
"""Half width of the interval that is searched for zeros, in units of the value."""
CELLS = 200
"""Grid cells of that interval."""
NEAR, NEARER = "1e-8", "1e-12"
"""Distances from a zero that determine the power of a divergence, in units of the value."""


def check_moments(system: System) -> None:
    """Raise DeclarationError if the law of a field has no mean square, or an observable no mean."""
    everywhere = _fields_with_density(system)
    for each in system.fields:
        later = {each.time: each.time + each.shift} if each.shift else {}
        for rule in (each.rule, *each.starts):
            for law in rule.laws:
                with blaming(each.origin):
                    _check(law.subs(later), everywhere, 0.5, f"the equation of {each.field}: the mean square of")
    for name, value in system.model.observe:
        for average in sorted(value.atoms(Mean), key=sp.default_sort_key):
            _check(average.args[0], everywhere, 1.0, f"observable {name}: the mean of")


def _fields_with_density(system: System) -> set[Field]:
    """Return the fields with a density on the whole line.

    They are normals, random matrices applied to a vector, and sums that contain one of these at the same time.
    """
    fields = {source for source in system.sources if source.role == "normal"}
    fields |= {f.field for f in system.fields if f.product is not None}
    for each in system.fields:
        if any(term.vector.field in fields and term.past is None for term in each.rule.terms):
            fields.add(each.field)
    return fields


def _check(law: sp.Expr, everywhere: set[Field], power: float, what: str) -> None:
    for base in _denominators(law):
        for value in sorted(base.atoms(FieldAt), key=sp.default_sort_key):
            if value.field in everywhere and _diverges(law, base, value, everywhere, power):
                raise DeclarationError(
                    f"{what} {shown(law)} is infinite: it is not bounded where {shown(base)} vanishes, and "
                    f"{value.field} has a density there; keep it bounded, as 1/(1 + x**2) is"
                )


def _denominators(law: sp.Expr) -> Iterator[sp.Expr]:
    """Yield the denominators of a law, and the functions at whose zeros it has a pole."""
    walk = sp.preorder_traversal(law)
    for node in walk:
        if isinstance(node, NUMBERS):
            walk.skip()
            continue
        if node.is_Pow and node.base.has(FieldAt) and node.exp.could_extract_minus_sign():
            yield node.base.args[0] if isinstance(node.base, sp.Abs) else node.base
        for function, vanishing in POLES.items():
            if isinstance(node, function) and node.has(FieldAt):
                yield vanishing(node.args[0])


def _diverges(law: sp.Expr, base: sp.Expr, value: FieldAt, everywhere: set[Field], power: float) -> bool:
    """Return whether the law diverges with at least this power at a zero of the base, for any values of the other
    fields.
    """
    affine = base.is_polynomial(value) and sp.degree(base, value) == 1
    others = base.atoms(FieldAt, *NUMBERS)
    if not affine and not all(isinstance(other, FieldAt) and other.field in everywhere for other in others):
        return False  # whether it vanishes depends on values that need not be everywhere
    return all(_diverges_at(law, base, value, power, attempt) for attempt in range(TRIES))


def _diverges_at(law: sp.Expr, base: sp.Expr, value: FieldAt, power: float, seed: int) -> bool:
    """Return whether a law diverges with at least this power, at random values of the other fields and default
    parameters.
    """
    x = sp.Symbol("x", real=True)
    draw = random.Random(seed)
    point: dict[sp.Basic, sp.Basic] = {value: x}
    for node in (node for e in (law, base) for node in sp.preorder_traversal(e)):
        if node not in point and isinstance(node, (FieldAt, *NUMBERS)):
            point[node] = sp.Float(draw.uniform(0.5, 2.0))
        elif isinstance(node, Parameter):
            point[node] = sp.sympify(node.default)
    plain = [e.xreplace(point) for e in (law, base)]
    rest = {symbol: sp.Integer(draw.randint(2, 9)) for e in plain for symbol in e.free_symbols - {x}}
    function, vanishing = (sp.lambdify(x, e.xreplace(rest), "mpmath") for e in plain)
    try:
        with mpmath.workdps(40):
            return any(_power_at(function, zero) >= power - 0.02 for zero in _zeros(vanishing))
    except (TypeError, ValueError, ArithmeticError, NameError, AttributeError):
        return False  # not known outside of sampling, where its mean would show


def _zeros(function: Callable[[Any], Any]) -> list[Any]:
    """Return the sign changes of a function."""
    places = [mpmath.mpf(FAR) * (2 * k + 1 - CELLS) / CELLS + mpmath.mpf("0.01234") for k in range(CELLS)]
    values = [mpmath.re(function(place)) for place in places]
    return [
        mpmath.findroot(function, (places[k], places[k + 1]), solver="anderson", tol=1e-60, verify=False)
        for k in range(CELLS - 1)
        if values[k] * values[k + 1] < 0
    ]


def _power_at(function: Callable[[Any], Any], zero: Any) -> float:
    """Return the power p with which a function diverges as |x - zero|^-p."""
    near, nearer = (abs(function(zero + mpmath.mpf(step))) for step in (NEAR, NEARER))
    if not near or not nearer:
        return 0.0
    return float(mpmath.log(nearer / near) / mpmath.log(mpmath.mpf(NEAR) / mpmath.mpf(NEARER)))
