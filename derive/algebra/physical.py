"""The physical branch in high precision: the solution of the bulk equations that decays like 1/z at infinity.

It serves only to select the factor of an eliminated polynomial; no numerical value enters a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import flint
import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.generators import Generator, Generators, decode, generic_value
from derive.algebra.nodes import Z
from derive.algebra.recheck import domain_points
from derive.errors import InternalError, NumericalError
from derive.language.symbols import Parameter, symbol_order

DIGITS = 60
"""Decimal digits of the physical branch."""
REAL_AXIS = 2.0**-40
"""Relative distance from the real axis at which the last Newton step goes to a point on it, outside the bulk."""


def sample_point(expressions: Iterable[sp.Expr], attempt: int = 0) -> dict[sp.Symbol, sp.Rational]:
    """Return generic rational values, inside their domains, for every parameter in the expressions.

    Defaults are avoided: quantities that differ elsewhere may coincide there, for example the first steps of weights
    that decay.
    """
    parameters = sorted({p for e in expressions for p in e.atoms(Parameter)}, key=symbol_order)
    values = {}
    for i, parameter in enumerate(parameters):
        if parameter.domain.whole:
            fitting = (n for n in range(7 + 2 * i + attempt, 0, -1) if parameter.domain.contains(n))
            values[parameter] = sp.Integer(next(fitting, int(parameter.default)))
            continue
        shift = sp.Rational(2 * i + 3 + attempt, 7 * i + 41)
        default = sp.nsimplify(parameter.default, rational=True)
        beside = (default + sign * shift * (default or 1) for sign in (1, -1))
        values[parameter] = next((x for x in beside if parameter.domain.contains(float(x))), default)
    functions = sorted({f for e in expressions for f in e.atoms(AppliedUndef)}, key=str)
    generators = {g: generic_value(g) for e in expressions for g in e.atoms(Generator)}
    return {
        **values,
        **{f: sp.Rational(7 + 2 * i + attempt, 8 + 3 * i) for i, f in enumerate(functions)},
        **dict(sorted(generators.items(), key=lambda item: symbol_order(item[0]))),
    }


def plain_names(unknowns: Iterable[sp.Symbol]) -> dict[sp.Symbol, sp.Symbol]:
    """Return canonical names for the unknowns of a bulk: equations that differ only in names become equal.

    Layers often share one bulk, which is then eliminated once. The names are not valid identifiers, so no parameter has
    them.
    """
    return {symbol: sp.Symbol(f"R[{i:03}]") for i, symbol in enumerate(unknowns)}


def physical_values(
    equations: tuple[sp.Expr, ...],
    unknowns: tuple[sp.Symbol, ...],
    point: dict[sp.Symbol, Any],
    digits: int = DIGITS,
    at: Any = None,
) -> Any:
    """Return z and all unknowns at one point of the upper half plane, by continuation from infinity.

    Every equation is linear in the column of each unknown. Near infinity the iteration that solves each column
    therefore contracts; Newton's method then continues z to the point. Only the last steps use full precision.

    Args:
        at: the point, if it is not the default one.
    """
    goal = mpmath.mpc(3, "1.5") if at is None else mpmath.mpc(at)
    lowest = goal.imag or REAL_AXIS * (1 + abs(goal.real))
    few, all_bits = max(120, 2 * _bits_of(goal)), int(digits * 3.33) + 120
    try:
        numbers = {symbol: sp.sympify(value) for symbol, value in point.items()}
        evaluated = [sp.sympify(e).xreplace(numbers) for e in equations]
    except (TypeError, ValueError) as error:  # SymPy compares real numbers only
        raise NumericalError("the bulk equations are not real at these parameters; try other values") from error
    system = _Polynomials.of(evaluated, unknowns, digits + 36)
    with mpmath.workdps(digits), flint.ctx.workprec(few):
        z = mpmath.mpc(goal.real, 10**6 * (1 + abs(goal.real)))
        values = [flint.acb(0)] * len(unknowns)
        while True:
            last = z == goal
            if last:
                flint.ctx.prec = all_bits
            values = system.newton(_acb(z), values, flint.arb(2) ** (-(all_bits - 110 if last else few // 4)))
            if last:
                solution = [_mpc(v) for v in values]
                return {Z: z, **dict(zip(unknowns, solution, strict=True))}
            lower = mpmath.im(z) * mpmath.mpf("0.75")
            z = mpmath.mpc(goal.real, lower) if lower > lowest else goal


def _bits_of(goal: mpmath.mpf) -> int:
    """Return the working precision, in bits, for a point at some distance from the real axis."""
    height = abs(mpmath.im(goal))
    return 60 if height == 0 else 60 + max(0, -int(mpmath.log(height, 2)))


Monomial = tuple[tuple[int, ...], tuple[tuple[flint.arb, int], ...]]
"""Indices of unknowns, and their factors: coefficients and powers of z."""


@dataclass(frozen=True)
class _Polynomials:
    """Equations as sums over monomials of the unknowns."""

    rows: tuple[tuple[Monomial, ...], ...]

    @staticmethod
    def of(equations: list[sp.Expr], unknowns: tuple[sp.Symbol, ...], digits: int) -> _Polynomials:
        rows = []
        with flint.ctx.workprec(int(digits * 3.33) + 20):
            for equation in equations:
                poly = sp.Poly(equation, *unknowns, Z)
                row: dict[tuple[int, ...], list[tuple[flint.arb, int]]] = {}
                for monomial, c in poly.terms():
                    inside = tuple(i for i, power in enumerate(monomial[:-1]) for _ in range(power))
                    if not c.is_real:
                        raise NumericalError(f"a coefficient of the bulk equations is {sp.N(c, 6)}, not a real number")
                    number = flint.arb(int(c.p)) / int(c.q) if c.is_Rational else flint.arb(str(sp.N(c, digits)))
                    row.setdefault(inside, []).append((number, monomial[-1]))
                rows.append(tuple((inside, tuple(factors)) for inside, factors in row.items()))
        return _Polynomials(tuple(rows))

    def newton(self, z: Any, values: list[Any], goal: mpmath.mpf) -> list[Any]:
        """Return the unknowns at z by Newton's method, to a relative accuracy of goal^2.

        The iteration stops when a correction is below the goal.
        """
        size = len(values)
        rows = [[(inside, sum(c * z**power for c, power in factors)) for inside, factors in row] for row in self.rows]
        for _ in range(80):
            residual = flint.acb_mat(size, 1)
            slope = [[flint.acb(0)] * size for _ in range(size)]
            for i, row in enumerate(rows):
                total, slopes = flint.acb(0), slope[i]
                for inside, factor in row:
                    front = factor
                    for k, j in enumerate(inside):
                        rest = front
                        for m in inside[k + 1 :]:
                            rest = rest * values[m]
                        slopes[j] = slopes[j] + rest
                        front = front * values[j]
                    total = total + front
                residual[i, 0] = total
            try:
                step = flint.acb_mat([[x.mid() for x in row] for row in slope]).solve(residual, algorithm="approx")
            except ZeroDivisionError:
                break
            values = [(v - step[i, 0]).mid() for i, v in enumerate(values)]
            if all(abs(step[i, 0]).mid() <= goal * (1 + abs(v).mid()) for i, v in enumerate(values)):
                return values
        raise NumericalError("the physical branch of the bulk equations could not be followed from infinity")


def _acb(z: mpmath.mpc) -> flint.acb:
    def exact(x: Any) -> Any:
        return flint.arb(str(mpmath.nstr(x, mpmath.mp.dps + 10))).mid()

    return flint.acb(exact(mpmath.re(z)), exact(mpmath.im(z)))


def _mpc(value: flint.acb) -> mpmath.mpc:
    def exact(x: Any) -> Any:
        man, exp = x.mid().man_exp()
        return mpmath.ldexp(mpmath.mpf(int(man)), int(exp))

    return mpmath.mpc(exact(value.real), exact(value.imag))


@dataclass(frozen=True)
class Sample:
    """The physical branch at one point of the declared domains: values of the parameters, of z and of all unknowns."""

    point: dict[sp.Basic, Any]
    values: dict[sp.Symbol, Any]

    def value(self, expression: sp.Expr) -> mpmath.mpc:
        """Return the value of an expression at this point."""
        return self._evaluated([expression])[0]

    def _evaluated(self, expressions: Iterable[sp.Expr]) -> list[mpmath.mpc]:
        """Return the values of expressions at this point; all are compiled as one function, because compilation
        dominates.
        """
        numbers = {symbol: sp.sympify(value) for symbol, value in self.point.items()}
        reduced = [expression.xreplace(numbers) for expression in expressions]
        with mpmath.workdps(DIGITS):
            results: list[mpmath.mpc] = sp.lambdify(list(self.values), reduced, "mpmath")(*self.values.values())
        return results

    def joined_by(self, symbol: sp.Symbol, expression: sp.Expr) -> Sample:
        """Return the same point with one more symbol, defined by an expression."""
        return replace(self, values={**self.values, symbol: self.value(expression)})

    def vanishes(self, polynomial: sp.Expr) -> bool:
        """Return whether the terms of a polynomial cancel here, to far more digits than chance allows."""
        with mpmath.workdps(DIGITS):
            terms = [mpmath.mpmathify(value) for value in self._evaluated(sp.Add.make_args(polynomial))]
            return bool(abs(sum(terms)) <= sum(map(abs, terms)) * mpmath.mpf(10) ** (-DIGITS // 3))


def check_vanishes(polynomial: sp.Expr, samples: Iterable[Sample], stage: str, what: str) -> None:
    """Raise InternalError if an eliminated polynomial is zero identically, or nonzero on the physical branch."""
    expanded = sp.expand(polynomial)
    if expanded == 0 or not all(sample.vanishes(expanded) for sample in samples):
        raise InternalError(
            f"{what} that the stage {stage} eliminated does not hold on the physical branch. This is a fault of the "
            "engine, so no result is given; please report the declaration"
        )


@lru_cache(maxsize=64)
def physical_samples(equations: tuple[sp.Expr, ...], unknowns: tuple[sp.Symbol, ...]) -> tuple[Sample, ...]:
    """Return the physical branch at points with all signs that the domains admit, where continuation succeeds."""
    parameters = {p for e in equations for p in e.atoms(Parameter)}
    functions = sorted({f for e in equations for f in e.atoms(AppliedUndef)}, key=str)
    samples = []
    for number, point in enumerate(domain_points(parameters)):
        values = {**point, **{f: sp.Rational(7 + 2 * i + number, 8 + 3 * i) for i, f in enumerate(functions)}}
        with suppress(NumericalError):
            samples.append(Sample(values, physical_values(equations, unknowns, values)))
    return tuple(samples)


@dataclass(frozen=True)
class PhysicalPoint:
    """One point of the physical branch: parameters, z and all unknowns.

    Non-polynomial functions of the parameters have independent random values. A polynomial that vanishes here vanishes
    for independent indeterminates, and therefore for any functions in their place.
    """

    point: dict[sp.Symbol, Any]
    values: dict[sp.Symbol, Any]
    generators: Generators

    @staticmethod
    @lru_cache(maxsize=64)
    def of(equations: tuple[sp.Expr, ...], unknowns: tuple[sp.Symbol, ...]) -> PhysicalPoint:
        """Return the branch at a generic point of the parameters."""
        return PhysicalPoint.at(equations, unknowns, {})

    @staticmethod
    def at(
        equations: tuple[sp.Expr, ...], unknowns: tuple[sp.Symbol, ...], given: Mapping[sp.Symbol, Any]
    ) -> PhysicalPoint:
        """Return the branch where some symbols have given values and all other parameters are generic."""
        generators = Generators.of(equations)
        encoded = tuple(map(generators.encode, equations))
        point = {**sample_point(encoded), **given}
        return PhysicalPoint(point, physical_values(encoded, unknowns, point), generators)

    def value(self, expression: sp.Expr) -> mpmath.mpc:
        """Return the value of an expression at this point."""
        with mpmath.workdps(DIGITS):
            return sp.lambdify(list(self.values), self._plain(expression), "mpmath")(*self.values.values())

    def _plain(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression at the parameters of this point."""
        expression = decode(expression.xreplace({g: v for g, v in self.point.items() if isinstance(g, Generator)}))
        encoded = self.generators.encode(expression)
        others = {g: generic_value(g) for g in encoded.atoms(Generator) if g not in self.point}
        return encoded.subs({**self.point, **others})

    def joined_by(self, symbol: sp.Symbol, expression: sp.Expr) -> PhysicalPoint:
        """Return the same point with one more symbol, defined by an expression."""
        return replace(self, values={**self.values, symbol: self.value(expression)})

    def accepts(self, expression: sp.Expr) -> bool:
        """Return whether an expression is zero here, to far more digits than chance allows."""
        with mpmath.workdps(DIGITS):
            plain = sp.expand(self._plain(expression))
            symbols = sorted(plain.free_symbols, key=symbol_order)
            if any(s not in self.values for s in symbols):
                return False
            arguments = [self.values[s] for s in symbols]
            terms = sp.lambdify(symbols, list(sp.Add.make_args(plain)), "mpmath")(*arguments)
            scale = sum(map(abs, terms))
            return bool(abs(sum(terms)) <= (scale or 1) * mpmath.mpf(10) ** (-DIGITS // 2))
