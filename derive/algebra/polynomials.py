"""Exact elimination with python-flint: resultants, discriminants and factors of multivariate polynomials.

Input and output are SymPy expressions. Anything that is not a polynomial in symbols (a root, a power with a symbolic
exponent, a function) is replaced by an indeterminate during the calculation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import flint
import mpmath
import sympy as sp

from derive.algebra.degrees import NoExpansion, ResolventExpansion
from derive.algebra.generators import Generators, decode
from derive.algebra.nodes import Z
from derive.algebra.physical import DIGITS, PhysicalPoint
from derive.language.symbols import EngineSymbol, symbol_order
from derive.support.progress import report

# Bounds of an elimination. Larger ones reach more models, at the price of time and memory for those out of reach.
MOST_UNKNOWNS = 60
"""Unknowns that an elimination starts with."""
MOST_TERMS = 10_000_000
"""Terms of a resultant, estimated from its degrees."""
MOST_DISCRIMINANT_TERMS = 2_000_000
"""Terms of a discriminant, estimated likewise; fewer, because it is factored too."""
MOST_FACTORED_TERMS = 100_000
"""Terms of a resultant that is factored."""
MOST_FACTOR_TERMS = 5_000
"""Terms of a factor whose roots are expanded."""
MANY_TERMS = 5_000
"""Terms of a resultant above which the degrees of the final curve are bounded first."""
MOST_CURVE_TERMS = 400
"""Terms of a curve in z and G at numerical values of the parameters."""


@dataclass(frozen=True)
class PolynomialRing:
    """Integer polynomials in a fixed list of symbols, some of which represent functions of parameters."""

    symbols: tuple[sp.Symbol, ...]
    generators: Generators

    @staticmethod
    def of(expressions: tuple[sp.Expr, ...]) -> PolynomialRing:
        """Return the smallest ring that contains all numerators and denominators of the expressions."""
        generators = Generators.of(expressions)
        symbols = {s for e in expressions for s in generators.encode(e).free_symbols}
        return PolynomialRing(tuple(sorted(symbols, key=symbol_order)), generators)

    @property
    def context(self) -> Any:
        return flint.fmpz_mpoly_ctx.get([f"x{i}" for i in range(len(self.symbols))], flint.Ordering.lex)

    def encode(self, expression: sp.Expr) -> flint.fmpz_mpoly:
        """Return the numerator of an expression, with integer coefficients."""
        encoded = self.generators.encode(expression)
        plain = self._monomials(encoded)
        if plain is not None:
            return self.context.from_dict(plain)
        numerator = sp.fraction(sp.together(encoded))[0]
        poly = sp.Poly(numerator, *self.symbols, domain="QQ")
        _, poly = poly.clear_denoms(convert=True)
        return self.context.from_dict({monomial: int(c) for monomial, c in poly.terms() if c != 0})

    def _monomials(self, expression: sp.Expr) -> dict[Any, Any] | None:
        """Return integer coefficients by exponents; None unless the expression is an expanded integer polynomial."""
        places = {s: i for i, s in enumerate(self.symbols)}
        coefficients: dict[tuple[int, ...], int] = {}
        for term in sp.Add.make_args(expression):
            exponents, number = [0] * len(self.symbols), 1
            for factor in sp.Mul.make_args(term):
                base, power = factor.as_base_exp()
                if factor.is_Integer:
                    number *= int(factor)
                elif base in places and power.is_Integer and power > 0:
                    exponents[places[base]] += int(power)
                else:
                    return None
            coefficients[tuple(exponents)] = coefficients.get(tuple(exponents), 0) + number
        return {monomial: c for monomial, c in coefficients.items() if c}

    def decode(self, polynomial: flint.fmpz_mpoly) -> sp.Expr:
        terms = [
            sp.Integer(int(c)) * sp.Mul(*(s ** int(p) for s, p in zip(self.symbols, m, strict=True)))
            for m, c in polynomial.to_dict().items()
        ]
        return decode(sp.Add(*terms))

    def variable(self, symbol: sp.Symbol) -> str:
        return f"x{self.symbols.index(symbol)}"

    def degree(self, polynomial: flint.fmpz_mpoly, symbol: sp.Symbol) -> int:
        return int(polynomial.degrees()[self.symbols.index(symbol)]) if symbol in self.symbols else 0


def solve_linear_unknowns(
    equations: list[sp.Expr], unknowns: list[sp.Symbol], accept: Callable[[sp.Expr], bool]
) -> tuple[list[sp.Expr], list[sp.Symbol], list[tuple[sp.Symbol, sp.Expr]]]:
    """Eliminate unknowns that occur to first power only, by substitution.

    Each equation is replaced by the irreducible factor that `accept` recognises, so that no spurious solution is
    followed.

    Returns:
        the remaining equations, the remaining unknowns, and the substitutions in order.
    """
    substitutions: list[tuple[sp.Symbol, sp.Expr]] = []
    equations, unknowns = _distinct(equations, accept), list(unknowns)
    while True:
        choice = _simplest_linear(equations, unknowns)
        if choice is None:
            return equations, unknowns, substitutions
        position, symbol = choice
        poly = sp.Poly(equations[position], symbol)
        value = sp.cancel(-poly.coeff_monomial(1) / poly.coeff_monomial(symbol))
        substitutions.append((symbol, value))
        unknowns.remove(symbol)
        rest = [e for i, e in enumerate(equations) if i != position]
        equations = _distinct([e.subs(symbol, value) if e.has(symbol) else e for e in rest], accept)


def _distinct(equations: list[sp.Expr], accept: Callable[[sp.Expr], bool]) -> list[sp.Expr]:
    """Return the physical factors of the numerators, without zeros and duplicates."""
    numerators = [sp.expand(sp.fraction(sp.together(e))[0]) for e in equations]
    return list(dict.fromkeys(chosen_factor(e, accept) for e in numerators if e != 0))


def _simplest_linear(equations: list[sp.Expr], unknowns: list[sp.Symbol]) -> tuple[int, sp.Symbol] | None:
    """Return the equation and unknown with the simplest coefficient: constants first, then short polynomials."""
    best = None
    for i, equation in enumerate(equations):
        for symbol in unknowns:
            if equation.has(symbol):
                poly = sp.Poly(equation, symbol)
                if poly.degree() == 1:
                    lead = poly.LC()
                    cost = (
                        bool(lead.free_symbols & set(unknowns)),
                        sp.count_ops(lead) + sp.count_ops(equation),
                        i,
                        symbol.name,
                    )
                    best = min(best, (cost, i, symbol), key=lambda item: item[0]) if best else (cost, i, symbol)
    return None if best is None else (best[1], best[2])


class TooLarge(Exception):
    """An elimination would exceed the bounds on terms or unknowns, or leave no relation. The bounds do not depend on
    running time."""


def check_size(unknowns: list[sp.Symbol]) -> None:
    """Raise TooLarge for more unknowns than an elimination starts with."""
    if len(unknowns) > MOST_UNKNOWNS:
        raise TooLarge(f"{len(unknowns)} unknowns are more than {MOST_UNKNOWNS}")


def check_degrees(equations: Sequence[sp.Expr], unknowns: Sequence[sp.Symbol]) -> None:
    """Raise TooLarge if no curve between z and the first unknown has a discriminant within the bounds.

    A parameter on which the moments depend has at least degree one in the curve.
    """
    try:
        expansion = ResolventExpansion.of(equations, unknowns)
        count = expansion.parameters_in_resolvent

        def most(degree: int) -> int:
            """Return the highest degree in z for a given degree in the resolvent."""
            turns = max(1, 2 * degree - 2)
            within = int((MOST_DISCRIMINANT_TERMS // (2 * degree - 1) ** count - 1) // turns)
            return min(within, MOST_CURVE_TERMS // (degree + 1) - 1)

        pairs, low = [], 1
        while most(low) > 0:  # each pair stands for the degrees from low to high in the resolvent
            high = 3 * low // 2
            pairs.append((high, most(low)))
            low = high + 1
        if expansion.lowest_degrees(pairs) is None:
            raise TooLarge(f"the curve of {len(unknowns)} unknowns and {count} parameters is of too high a degree")
    except NoExpansion:
        return


def eliminate(
    equations: list[sp.Expr],
    unknowns: list[sp.Symbol],
    physical: PhysicalPoint,
    check_result: Callable[[], None] = lambda: None,
) -> sp.Expr:
    """Return one polynomial relation, free of the unknowns, that the physical branch satisfies.

    Unknowns that vanish or coincide on the physical branch are replaced first. The others are eliminated one by one:
    each step takes the equation and the unknown whose resultants with all other equations are cheapest. Every resultant
    is reduced to the irreducible factors that vanish on the physical branch.

    Args:
        check_result: raises TooLarge if the result is out of reach; called once, before resultants become large.

    Raises:
        TooLarge: if the elimination exceeds the bounds.
    """
    done = _Elimination.of(equations, unknowns, physical, check_result=check_result)
    return normalised(done.ring.decode(done.relation))


def proves_zero(
    expression: sp.Expr, equations: list[sp.Expr], unknowns: list[sp.Symbol], physical: PhysicalPoint
) -> bool:
    """Return whether an expression in the unknowns is proved to vanish on the physical branch.

    Each step of the elimination gives a relation between its unknown and the later ones. Successive pseudo-division of
    the numerator leaves polynomials that the final relation must divide; leading coefficients do not vanish on the
    physical branch.
    """
    try:
        done = _Elimination.of(equations, unknowns, physical, sp.sympify(expression))
    except (TooLarge, ValueError):
        return False
    if done.encoded is None:
        return True
    ring, numerators = done.ring, [done.encoded]
    for symbol, pivot, others in done.steps:
        if all(ring.degree(n, symbol) == 0 for n in numerators):
            continue
        lowest = _lowest_relation(ring, symbol, pivot, others, done.number)
        place = ring.symbols.index(symbol)
        if done.number.accepts(_coefficient(ring, lowest, place, ring.degree(lowest, symbol))):
            return False
        if any(_resultant_bound(ring, lowest, n, symbol) > 1000 * MOST_TERMS for n in numerators):
            return False
        if not done.number.accepts(_coefficient(ring, pivot, place, ring.degree(pivot, symbol))):
            numerators = [_remainder(ring, n, pivot, place) for n in numerators]
        left = [_remainder(ring, n, lowest, place) for n in numerators]
        numerators = [
            _coefficient(ring, n, place, k) for n in left if n != 0 for k in range(ring.degree(n, symbol) + 1)
        ]
    return all(n == 0 or divmod(n, done.relation)[1] == 0 for n in numerators)


@dataclass(frozen=True)
class _Elimination:
    """A sequence of elimination steps: (unknown, the equation that eliminates it, the other equations that contain
    it)."""

    ring: PolynomialRing
    number: _Evaluation
    relation: Any
    steps: tuple[tuple[sp.Symbol, Any, tuple[Any, ...]], ...]
    encoded: Any = None

    @staticmethod
    def of(
        equations: list[sp.Expr],
        unknowns: list[sp.Symbol],
        physical: PhysicalPoint,
        extra: sp.Expr = sp.S.Zero,
        check_result: Callable[[], None] = lambda: None,
    ) -> _Elimination:
        check_size(unknowns)
        count = len(equations)
        generators = Generators.of([*equations, extra])
        encoded = [generators.encode(e) for e in (*equations, extra)]
        rational, unknowns, physical = _without_irrational_numbers(encoded, unknowns, physical)
        equations, extra = [*rational[:count], *rational[count + 1 :]], rational[count]
        same = _coincidences(unknowns, equations, physical)
        reduced = [sp.expand(sp.sympify(e).xreplace(same)) for e in equations]
        extra = sp.fraction(sp.together(extra.xreplace(same)))[0]
        ring = PolynomialRing.of((*reduced, extra))
        number = _Evaluation.of(ring, physical)
        polys: list[flint.fmpz_mpoly] = []
        for e in reduced:
            if e != 0:
                number.add_factors(polys, ring.encode(e))
        left = [u for u in unknowns if u not in same and u in ring.symbols]
        count, steps, checked = len(left), [], False
        while left:
            report(1 - len(left) / count, f"eliminating unknown {count - len(left) + 1} of {count}")
            choice = _cheapest(ring, polys, left, number)
            if choice is None:
                break
            cost, symbol, pivot = choice
            if cost > MOST_TERMS:
                raise TooLarge(f"eliminating {symbol} may need {cost} terms")
            if cost > MANY_TERMS and not checked:
                check_result()
                checked = True
            left.remove(symbol)
            following: list[flint.fmpz_mpoly] = []
            others = tuple(q for q in polys if q is not pivot and ring.degree(q, symbol) > 0)
            steps.append((symbol, pivot, others))
            for q in polys:
                if q is pivot:
                    continue
                if ring.degree(q, symbol) == 0:
                    if q not in following:
                        following.append(q)
                    continue
                resultant = pivot.resultant(q, ring.variable(symbol))
                if resultant != 0:
                    number.add_factors(following, resultant)
            polys = following
        free = [p for p in polys if all(ring.degree(p, u) == 0 for u in unknowns if u in ring.symbols)]
        if not free:
            raise ValueError("the equations do not determine a relation")
        best = min(free, key=lambda p: (len(p), p.total_degree(), str(p)))
        return _Elimination(ring, number, best, tuple(steps), ring.encode(extra) if extra != 0 else None)


def _lowest_relation(
    ring: PolynomialRing, symbol: sp.Symbol, pivot: flint.fmpz_mpoly, others: tuple[Any, ...], number: _Evaluation
) -> flint.fmpz_mpoly:
    """Return the equation of lowest degree in the unknown, by Euclid's algorithm on the pivot and the others."""
    place = ring.symbols.index(symbol)
    best = pivot
    for other in others:
        high, low = best, other
        while low != 0 and ring.degree(low, symbol) > 0 and ring.degree(best, symbol) > 1:
            if ring.degree(low, symbol) < ring.degree(best, symbol) and not number.accepts(
                _coefficient(ring, low, place, ring.degree(low, symbol))
            ):
                best = low
            high, low = low, _remainder(ring, high, low, place)
    return best


def _remainder(ring: PolynomialRing, high: flint.fmpz_mpoly, low: flint.fmpz_mpoly, place: int) -> flint.fmpz_mpoly:
    """Return the primitive part of the pseudo-remainder."""
    generator = ring.context.gens()[place]
    degree = int(low.degrees()[place])
    lead = _coefficient(ring, low, place, degree)
    while high != 0 and int(high.degrees()[place]) >= degree:
        top = int(high.degrees()[place])
        high = lead * high - _coefficient(ring, high, place, top) * generator ** (top - degree) * low
    return high


def _coefficient(ring: PolynomialRing, polynomial: flint.fmpz_mpoly, place: int, degree: int) -> flint.fmpz_mpoly:
    """Return the coefficient of a power of one symbol."""
    return ring.context.from_dict(
        {(*m[:place], 0, *m[place + 1 :]): c for m, c in polynomial.to_dict().items() if int(m[place]) == degree}
    )


def _without_irrational_numbers(
    equations: list[sp.Expr], unknowns: list[sp.Symbol], physical: PhysicalPoint
) -> tuple[list[sp.Expr], list[sp.Symbol], PhysicalPoint]:
    """Return equations in which irrational numbers, such as sqrt(2), are unknowns with their minimal polynomials."""
    named: dict[tuple[sp.Rational, int], sp.Symbol] = {}
    roots: dict[sp.Basic, sp.Expr] = {}
    for node in (node for e in equations for node in sp.preorder_traversal(e)):
        if node.is_Pow and node.base.is_Rational and node.exp.is_Rational and not node.exp.is_Integer:
            number = EngineSymbol(f"_number{len(named)}", positive=True)
            roots[node] = named.setdefault((node.base, node.exp.q), number) ** node.exp.p
    equations = [e.xreplace(roots) for e in equations]
    for (base, degree), symbol in named.items():
        equations.append(sp.fraction(sp.together(symbol**degree - base))[0])
        physical = physical.joined_by(symbol, base ** sp.Rational(1, degree))
    return equations, [*unknowns, *named.values()], physical


def _coincidences(
    unknowns: list[sp.Symbol], equations: list[sp.Expr], physical: PhysicalPoint
) -> dict[sp.Symbol, sp.Expr]:
    """Return the unknowns that, to many digits, vanish or equal plus or minus another symbol at the generic physical
    point.
    """
    same: dict[sp.Symbol, sp.Expr] = {}
    others = sorted({s for e in equations for s in e.free_symbols if s in physical.values and s != Z}, key=str)
    kept = [s for s in others if s not in unknowns]
    tiny = mpmath.mpf(10) ** -40
    with mpmath.workdps(DIGITS):  # with the digits that mpmath has by itself, no two numbers coincide to forty
        for u in (s for s in others if s in unknowns):
            value = physical.values[u]
            if abs(value) < tiny:
                same[u] = sp.S.Zero
                continue
            for sign, other in ((sign, other) for other in kept for sign in (1, -1)):
                if abs(value - sign * physical.values[other]) < tiny * abs(value):
                    same[u] = sign * other
                    break
            else:
                kept.append(u)
    return same


@dataclass(frozen=True)
class _Evaluation:
    """Values of polynomials of a ring at the physical point."""

    values: tuple[Any, ...]

    @staticmethod
    def of(ring: PolynomialRing, physical: PhysicalPoint) -> _Evaluation:
        return _Evaluation(tuple(mpmath.mpmathify(physical.value(s)) for s in ring.symbols))

    def accepts(self, polynomial: flint.fmpz_mpoly) -> bool:
        """Return whether a polynomial is zero at the physical point, to far more digits than chance allows."""
        with mpmath.workdps(DIGITS):
            total, scale = mpmath.mpf(0), mpmath.mpf(0)
            powers: list[list[Any]] = [[mpmath.mpf(1)] for _ in self.values]
            for monomial, c in polynomial.to_dict().items():
                term = mpmath.mpf(int(c))
                for i, e in enumerate(map(int, monomial)):
                    if e:
                        while len(powers[i]) <= e:
                            powers[i].append(powers[i][-1] * self.values[i])
                        term = term * powers[i][e]
                total, scale = total + term, scale + abs(term)
            return bool(abs(total) <= (scale or 1) * mpmath.mpf(10) ** (-DIGITS // 2))

    def add_factors(self, polys: list[flint.fmpz_mpoly], polynomial: flint.fmpz_mpoly) -> None:
        """Add the irreducible factors that vanish on the physical branch; raise TooLarge beyond the bound."""
        if len(polynomial) > MOST_FACTORED_TERMS:
            raise TooLarge(f"a resultant has {len(polynomial)} terms, more than {MOST_FACTORED_TERMS}")
        fitting = [f for f in irreducible(polynomial) if self.accepts(f)]
        if not fitting:
            raise ValueError("no factor of an eliminated polynomial fits the physical branch")
        for f in sorted(fitting, key=lambda f: (len(f), str(f))):
            if f not in polys:
                polys.append(f)


def _cheapest(
    ring: PolynomialRing, polys: list[flint.fmpz_mpoly], unknowns: list[sp.Symbol], number: _Evaluation
) -> Any:
    """Return (cost, unknown, pivot equation) of least cost; the pivot must determine the unknown."""
    best = None
    degrees = [tuple(map(int, p.degrees())) for p in polys]
    for symbol in unknowns:
        place = ring.symbols.index(symbol)
        holding = [i for i, d in enumerate(degrees) if d[place] > 0]
        for i in holding:
            cost = sum(_terms_bound(polys[i], degrees[i], polys[j], degrees[j], place) for j in holding if j != i)
            key = (cost, degrees[i][place], len(polys[i]), symbol.name, i)
            if (best is None or key < best[0]) and not number.accepts(polys[i].derivative(place)):
                best = (key, symbol, polys[i])
    return None if best is None else (best[0][0], best[1], best[2])


def _resultant_bound(ring: PolynomialRing, p: flint.fmpz_mpoly, q: flint.fmpz_mpoly, symbol: sp.Symbol) -> int:
    place = ring.symbols.index(symbol)
    return _terms_bound(p, tuple(map(int, p.degrees())), q, tuple(map(int, q.degrees())), place)


def _terms_bound(
    p: flint.fmpz_mpoly, p_degrees: tuple[int, ...], q: flint.fmpz_mpoly, q_degrees: tuple[int, ...], place: int
) -> int:
    """Return a bound on the number of terms of a resultant, from the term counts and from its degrees."""
    m, n = p_degrees[place], q_degrees[place]
    box = 1
    for i, (a, b) in enumerate(zip(p_degrees, q_degrees, strict=True)):
        box *= 1 if i == place else a * n + b * m + 1
    return int(min(box, len(p) ** n * len(q) ** m))


def common_roots(first: sp.Expr, second: sp.Expr, symbol: sp.Symbol) -> list[sp.Expr]:
    """Return the irreducible factors of the resultant of two polynomials, which vanishes where they share a root.

    Raises:
        TooLarge: if they share a root everywhere, so that the resultant vanishes identically, or if the bound is
            exceeded.
    """
    ring, result = _resultant(first, second, symbol)
    if not result:
        raise TooLarge(f"two polynomials share a factor with {symbol}")
    return _decoded_factors(ring, result)


def eliminated(first: sp.Expr, second: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """Return the square-free part of the resultant of two polynomials; zero if they share a factor with the symbol."""
    ring, result = _resultant(first, second, symbol)
    return sp.Mul(*_decoded_factors(ring, result)) if result else sp.S.Zero


def _resultant(first: sp.Expr, second: sp.Expr, symbol: sp.Symbol) -> tuple[PolynomialRing, flint.fmpz_mpoly]:
    """Return the ring of two polynomials and their resultant with respect to a symbol."""
    ring = PolynomialRing.of((first, second))
    p, q = ring.encode(first), ring.encode(second)
    cost = _resultant_bound(ring, p, q, symbol)
    if cost > MOST_TERMS:
        raise TooLarge(f"eliminating {symbol} may need {cost} terms")
    result = p.resultant(q, ring.variable(symbol))
    if len(result) > MOST_FACTOR_TERMS:
        raise TooLarge(f"eliminating {symbol} leaves {len(result)} terms")
    return ring, result


def rational_factors(expression: sp.Expr) -> list[sp.Expr]:
    """Return irreducible polynomials that vanish at every zero of an expression with roots of symbols and numbers."""
    return factors(rational_norm(expression))


def rational_norm(expression: sp.Expr, absolute: bool = False) -> sp.Expr:
    """Return the norm of an expression with roots of symbols and numbers: a polynomial that vanishes at its zeros.

    It is the product of the numerators of the conjugates, up to repeated factors. Functions are indeterminates.

    Args:
        absolute: whether absolute values also have conjugates, with the opposite sign, instead of being indeterminates.
    """
    orders: dict[sp.Expr, int] = {}
    for node in sp.preorder_traversal(expression):
        if is_root(node):
            orders[node.base] = math.lcm(orders.get(node.base, 1), int(node.exp.q))
    relations: dict[sp.Symbol, sp.Expr] = {}  # those of inner roots first
    known: dict[sp.Basic, sp.Symbol] = {}

    def named(node: sp.Basic, degree: int, power: sp.Expr) -> sp.Symbol:
        if node not in known:
            known[node] = sp.Symbol(f"_radical{len(known)}")
            relations[known[node]] = known[node] ** degree - power
        return known[node]

    def plain(node: sp.Expr) -> sp.Expr:
        if is_root(node):
            order = orders[node.base]
            return named(node.base ** sp.Rational(1, order), order, plain(node.base)) ** (node.exp * order)
        if absolute and isinstance(node, sp.Abs):
            return named(node, 2, plain(node.args[0]) ** 2)
        return node.func(*map(plain, node.args)) if node.is_Add or node.is_Mul or node.is_Pow else node

    norm = _numerator(plain(expression))
    for symbol, relation in reversed(relations.items()):
        norm = eliminated(norm, _numerator(relation), symbol)
    return sp.expand(norm)


def is_root(node: sp.Basic) -> bool:
    """Return whether a node is a power with a fractional exponent."""
    return bool(node.is_Pow and node.exp.is_Rational and not node.exp.is_Integer)


def _numerator(expression: sp.Expr) -> sp.Expr:
    if expression.is_polynomial(*expression.free_symbols):
        return expression
    return sp.fraction(sp.together(expression))[0]


def factors(expression: sp.Expr) -> list[sp.Expr]:
    """Return the distinct irreducible factors of a polynomial, without constants, in a fixed order."""
    ring = PolynomialRing.of((expression,))
    return _decoded_factors(ring, ring.encode(expression)) if ring.symbols else []


def irreducible(polynomial: flint.fmpz_mpoly) -> list[flint.fmpz_mpoly]:
    """Return the irreducible factors.

    Rational polynomials are used because flint sorts factors of integer polynomials by machine-size coefficients, which
    fails for declared decimals with many digits.
    """
    try:
        return [f for f, _ in polynomial.factor()[1]]
    except OverflowError:
        pass
    whole = polynomial.context()
    context = flint.fmpq_mpoly_ctx.get(whole.names(), whole.ordering())
    rational = context.from_dict({m: flint.fmpq(c) for m, c in polynomial.to_dict().items()})
    factors = []
    for factor, _ in rational.factor()[1]:
        terms = factor.to_dict()
        common = math.lcm(*(int(c.q) for c in terms.values()))
        factors.append(whole.from_dict({m: flint.fmpz((c * common).p) for m, c in terms.items()}))
    return factors


def _decoded_factors(ring: PolynomialRing, polynomial: flint.fmpz_mpoly) -> list[sp.Expr]:
    decoded = [_signed(ring.decode(f)) for f in irreducible(polynomial)]
    return sorted((f for f in decoded if f.free_symbols), key=lambda f: (sp.count_ops(f), str(f)))


def branch_points(curve: sp.Expr, symbol: sp.Symbol) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """Return the factors of the discriminant and of the leading coefficient of a curve.

    Raises:
        TooLarge: if the discriminant exceeds the bound, or vanishes identically.
    """
    ring = PolynomialRing.of((curve,))
    polynomial = ring.encode(sp.expand(curve))
    degree, place = ring.degree(polynomial, symbol), ring.symbols.index(symbol)
    cost = 1
    for i, d in enumerate(map(int, polynomial.degrees())):
        cost *= 1 if i == place else (2 * degree - 2) * d + 1
    if cost > MOST_DISCRIMINANT_TERMS:
        raise TooLarge(f"the discriminant in {symbol} may need {cost} terms")
    lead = _coefficient(ring, polynomial, place, degree)
    discriminant = polynomial.discriminant(ring.variable(symbol)) if degree > 1 else ring.context.constant(1)
    if not discriminant:
        raise TooLarge(f"two roots of the curve in {symbol} coincide everywhere")
    return _decoded_factors(ring, discriminant), _decoded_factors(ring, lead)


def chosen_factor(expression: sp.Expr, accept: Callable[[sp.Expr], bool]) -> sp.Expr:
    """Return the irreducible factor that the physical solution satisfies."""
    candidates = factors(expression)
    fitting = [f for f in candidates if accept(f)]
    if len(fitting) != 1:
        raise ValueError(f"{len(fitting)} factors of the eliminated polynomial fit the physical branch")
    return fitting[0]


def normalised(polynomial: sp.Expr) -> sp.Expr:
    """Return the polynomial with a fixed sign, so that it always prints in the same form."""
    return _signed(sp.expand(polynomial))


def _signed(expanded: sp.Expr) -> sp.Expr:
    terms = sp.Add.make_args(expanded)
    first = min(terms, key=lambda term: str(sp.Mul(*[f for f in sp.Mul.make_args(term) if not f.is_Number])))
    return -expanded if first.could_extract_minus_sign() else expanded
