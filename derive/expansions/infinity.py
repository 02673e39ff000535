"""The bulk responses as exact power series in 1/z, which identify the physical branch at infinity.

Each equation of the bulk contains an unknown of its own with coefficient 1 or z; at z = infinity it needs only unknowns
earlier in the chain of products. The coefficients follow one by one without division, so they are polynomials in the
coefficients of the equations. The moments of the spectrum are among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flint
import sympy as sp

from derive.algebra.nodes import Z
from derive.errors import NumericalError


@dataclass(frozen=True)
class Flow:
    """Recursion unknown[i] = sum of coefficient * w^power * product of at most two unknowns, with w = 1/z."""

    unknowns: tuple[sp.Symbol, ...]
    terms: tuple[tuple[tuple[sp.Expr, int, tuple[int, ...]], ...], ...]

    @staticmethod
    def of(equations: tuple[sp.Expr, ...], unknowns: tuple[sp.Symbol, ...]) -> Flow:
        """Return each equation solved for the unknown that it contains with coefficient 1 or z."""
        position = {s: i for i, s in enumerate(unknowns)}
        polys = [sp.Poly(e, *unknowns, Z) for e in equations]
        owners = _owners(polys, unknowns)
        rows: list[tuple[Any, ...]] = [()] * len(unknowns)
        for poly, (owner, lift) in zip(polys, owners, strict=True):
            terms = []
            for monomial, coefficient in poly.terms():
                inside = tuple(i for i, power in enumerate(monomial[:-1]) for _ in range(power))
                if inside == (owner,) and monomial[-1] == lift:
                    continue
                if monomial[-1] > lift or len(inside) > 2:
                    raise NumericalError("the bulk equations have no power series at infinity of the expected form")
                terms.append((-coefficient, lift - monomial[-1], inside))
            rows[owner] = tuple(terms)
        assert len(position) == len(unknowns)
        return Flow(tuple(unknowns), tuple(rows))

    def series(self, order: int, convert: Callable[[sp.Expr], Any], zero: Any) -> list[list[Any]]:
        """Return the coefficients of w^0 ... w^order of every unknown, in the ring to which `convert` maps."""
        table = [[(convert(c), power, inside) for c, power, inside in row] for row in self.terms]
        return _solve(table, order, zero)


def _owners(polys: list[sp.Poly], unknowns: tuple[sp.Symbol, ...]) -> list[tuple[int, int]]:
    """Return, for each equation, the unknown for which it is solved and the power of z, from a perfect matching."""
    choices: list[dict[int, int]] = []
    for poly in polys:
        options: dict[int, int] = {}
        top = max(monomial[-1] for monomial, _ in poly.terms())
        for monomial, coefficient in poly.terms():
            inside = [i for i, power in enumerate(monomial[:-1]) if power]
            if len(inside) == 1 and sum(monomial[:-1]) == 1 and coefficient == 1 and monomial[-1] == top:
                options[inside[0]] = top
        choices.append(options)
    chosen: dict[int, int] = {}
    while len(chosen) < len(polys):
        open_ones = [i for i in range(len(polys)) if i not in chosen]
        taken = set(chosen.values())
        best = min(open_ones, key=lambda i: (len(set(choices[i]) - taken) or 10**6, i))
        free = sorted(set(choices[best]) - taken)
        if not free:
            raise NumericalError("the bulk equations do not give each response an equation of its own")
        chosen[best] = free[0]
    return [(chosen[i], choices[i][chosen[i]]) for i in range(len(polys))]


def _solve(table: list[Any], order: int, zero: Any) -> list[list[Any]]:
    count = len(table)
    values: list[list[Any]] = [[] for _ in range(count)]
    needed_by: list[list[int]] = [[] for _ in range(count)]
    for i, row in enumerate(table):
        for _, power, inside in row:
            if power == 0:
                for j in inside:
                    if i not in needed_by[j]:
                        needed_by[j].append(i)
    for k in range(order + 1):
        lower = [_known_part(row, values, k, zero) for row in table]
        for series in values:
            series.append(zero)
        waiting = list(range(count))
        rounds = 0
        while waiting:
            rounds += 1
            if rounds > count + 2:
                raise NumericalError("the bulk equations have no unique power series at infinity")
            changed = []
            for i in waiting:
                new = lower[i] + _open_part(table[i], values, k, zero)
                if new != values[i][k]:
                    values[i][k] = new
                    changed.append(i)
            waiting = sorted({i for j in changed for i in needed_by[j]})
    return values


def _known_part(row: Any, values: list[list[Any]], k: int, zero: Any) -> Any:
    """Return the contribution of lower coefficients at order k."""
    total = zero
    for c, power, inside in row:
        left = k - power
        if left < 0:
            continue
        if not inside:
            total = total + c if left == 0 else total
        elif len(inside) == 1:
            total = total + c * values[inside[0]][left] if power else total
        else:
            a, b = (values[i] for i in inside)
            low, high = (0, left) if power else (1, left - 1)
            part = zero
            for m in range(low, high + 1):
                part = part + a[m] * b[left - m]
            total = total + c * part
    return total


def _open_part(row: Any, values: list[list[Any]], k: int, zero: Any) -> Any:
    """Return the contribution of the coefficients of order k itself."""
    total = zero
    for c, power, inside in row:
        if power or not inside:
            continue
        if len(inside) == 1:
            total = total + c * values[inside[0]][k]
        else:
            a, b = (values[i] for i in inside)
            total = total + c * (a[0] * b[k] if k == 0 else a[0] * b[k] + a[k] * b[0])
    return total


def series_at_infinity(
    equations: tuple[sp.Expr, ...], unknowns: tuple[sp.Symbol, ...], order: int
) -> dict[sp.Symbol, list[sp.Expr]]:
    """Return the coefficients of 1/z^0 ... 1/z^order of every bulk response, exact in the parameters."""
    flow = Flow.of(tuple(sp.expand(e) for e in equations), unknowns)
    coefficients = flow.series(order, sp.expand, sp.S.Zero)
    return {unknown: [sp.expand(c) for c in row] for unknown, row in zip(unknowns, coefficients, strict=True)}


def moments_of_system(
    equations: tuple[sp.Expr, ...],
    unknowns: tuple[sp.Symbol, ...],
    resolvent: sp.Symbol,
    order: int,
    point: dict[sp.Symbol, Any],
) -> list[sp.Expr]:
    """Return the moments m_0 = 1, ..., m_order of G = sum m_k / z^(k+1), exact in the parameters not in `point`."""
    flow = Flow.of(tuple(sp.expand(sp.sympify(e).subs(point)) for e in equations), unknowns)
    place = unknowns.index(resolvent)
    exact = [c for row in flow.terms for c, _, _ in row]
    if all(c.is_Rational for c in exact):
        coefficients = flow.series(order + 1, lambda c: flint.fmpq(int(c.p), int(c.q)), flint.fmpq(0))[place]
        return [sp.Rational(int(c.p), int(c.q)) for c in coefficients[1:]]
    names: dict[sp.Expr, sp.Symbol] = {}
    for c in exact:
        _, rest = c.as_coeff_Mul()
        if rest != 1:
            names.setdefault(rest, sp.Symbol(f"_c{len(names)}"))
    context = flint.fmpq_mpoly_ctx.get([s.name for s in names.values()], flint.Ordering.lex)
    generators = dict(zip(names, context.gens(), strict=True))

    def convert(c: sp.Expr) -> flint.fmpq_mpoly:
        number, rest = c.as_coeff_Mul()
        scalar = flint.fmpq(int(number.p), int(number.q))
        return generators[rest] * scalar if rest != 1 else context.constant(scalar)

    coefficients = flow.series(order + 1, convert, context.constant(0))[place]
    return [_decoded(c, list(names)) for c in coefficients[1:]]


def _decoded(polynomial: flint.fmpq_mpoly, meaning: list[sp.Expr]) -> sp.Expr:
    total = []
    for powers, c in polynomial.to_dict().items():
        number = sp.Rational(int(c.p), int(c.q))
        total.append(number * sp.Mul(*(m ** int(p) for m, p in zip(meaning, powers, strict=True))))
    return sp.factor(sp.expand(sp.powsimp(sp.expand(sp.Add(*total)))))


def moments_of_curve(curve: sp.Expr, root: sp.Symbol, order: int) -> list[sp.Expr]:
    """Return the moments m_0 = 1, m_1, ... of G = sum_k m_k / z**(k + 1), one by one from the curve."""
    small, unknown = sp.Symbol("small"), sp.Symbol("unknown")
    moments: list[sp.Expr] = [sp.S.One]
    cleared = sp.expand(curve.subs(Z, 1 / small) * small ** sp.Poly(curve, Z).degree())
    for k in range(1, order + 1):
        partial = sp.Add(*(m * small ** (i + 1) for i, m in enumerate(moments))) + unknown * small ** (k + 1)
        coefficients = sp.Poly(sp.expand(cleared.subs(root, partial)), small).all_coeffs()
        first = sp.Poly(next(sp.expand(c) for c in reversed(coefficients) if sp.expand(c).has(unknown)), unknown)
        moments.append(sp.cancel(-first.coeff_monomial(1) / first.coeff_monomial(unknown)))
    return moments
