"""Exact elimination with python-flint: resultants, discriminants and factors of multivariate polynomials.

SymPy expressions go in and come out. Anything that is not a polynomial in symbols (a square root, a power with a
symbolic exponent) becomes a generator of its own on the way in and is put back on the way out.
"""

from __future__ import annotations

from dataclasses import dataclass

import flint
import sympy as sp


@dataclass(frozen=True)
class Ring:
    """Integer polynomials in a fixed list of symbols, with what the symbols stand for."""

    symbols: tuple[sp.Symbol, ...]
    meaning: tuple[tuple[sp.Symbol, sp.Expr], ...]
    roots: tuple[tuple[sp.Symbol, sp.Expr], ...]

    @staticmethod
    def of(expressions: tuple[sp.Expr, ...]) -> Ring:
        """The smallest ring that holds all numerators and denominators of the expressions."""
        powers: dict[sp.Symbol, int] = {}
        opaque: dict[sp.Expr, sp.Symbol] = {}
        for expression in expressions:
            for node in sp.preorder_traversal(expression):
                if node.is_Pow and node.base.is_Symbol and node.exp.is_Rational and not node.exp.is_Integer:
                    powers[node.base] = int(sp.ilcm(powers.get(node.base, 1), node.exp.q))
                elif node.is_Pow and not node.exp.is_Rational or node.is_Function:
                    opaque.setdefault(node, sp.Symbol(f"_opaque{len(opaque)}"))
        roots = {base: sp.Symbol(f"_root_{base}", positive=True) for base in sorted(powers, key=str)}
        replaced = tuple((base, root ** powers[base]) for base, root in roots.items())
        meaning = tuple((root, base ** sp.Rational(1, powers[base])) for base, root in roots.items())
        meaning += tuple((symbol, node) for node, symbol in opaque.items())
        named = [_named(e, opaque, replaced) for e in expressions]
        found = sorted({s for e in named for s in e.free_symbols}, key=lambda s: s.name)
        return Ring(tuple(found), meaning, replaced + tuple((node, symbol) for node, symbol in opaque.items()))

    @property
    def context(self):
        return flint.fmpz_mpoly_ctx.get([f"x{i}" for i in range(len(self.symbols))], flint.Ordering.lex)

    def encode(self, expression: sp.Expr):
        """The numerator of an expression, with integer coefficients."""
        opaque = {a: b for a, b in self.roots if not a.is_Symbol}
        replaced = tuple((a, b) for a, b in self.roots if a.is_Symbol)
        numerator = sp.fraction(sp.together(_named(expression, opaque, replaced)))[0]
        poly = sp.Poly(numerator, *self.symbols, domain="QQ")
        _, poly = poly.clear_denoms(convert=True)
        return self.context.from_dict({monomial: int(c) for monomial, c in poly.terms() if c != 0})

    def decode(self, polynomial) -> sp.Expr:
        terms = [
            sp.Integer(int(c)) * sp.Mul(*(s ** int(p) for s, p in zip(self.symbols, m, strict=True)))
            for m, c in polynomial.to_dict().items()
        ]
        return sp.Add(*terms).xreplace(dict(self.meaning))

    def variable(self, symbol: sp.Symbol) -> str:
        return f"x{self.symbols.index(symbol)}"

    def degree(self, polynomial, symbol: sp.Symbol) -> int:
        return int(polynomial.degrees()[self.symbols.index(symbol)]) if symbol in self.symbols else 0


def _named(expression: sp.Expr, opaque: dict, replaced: tuple) -> sp.Expr:
    expression = sp.sympify(expression).xreplace(opaque)
    return sp.powdenest(expression.subs(dict(replaced)), force=True) if replaced else expression


def solve_linear_unknowns(equations: list[sp.Expr], unknowns: list[sp.Symbol], accept):
    """Eliminate unknowns that some equation holds only to first power, by substitution.

    Each equation is replaced by the irreducible factor that `accept` recognises, so that no spurious solution of a
    factorised equation is followed. Returns the remaining equations and unknowns, and the substitutions in order.
    """
    made: list = []
    equations, unknowns = _distinct(equations, accept), list(unknowns)
    while True:
        choice = _simplest_linear(equations, unknowns)
        if choice is None:
            return equations, unknowns, made
        position, symbol = choice
        poly = sp.Poly(equations[position], symbol)
        value = sp.cancel(-poly.coeff_monomial(1) / poly.coeff_monomial(symbol))
        made.append((symbol, value))
        unknowns.remove(symbol)
        rest = [e for i, e in enumerate(equations) if i != position]
        equations = _distinct([e.subs(symbol, value) if e.has(symbol) else e for e in rest], accept)


def _distinct(equations: list[sp.Expr], accept) -> list[sp.Expr]:
    """Numerators reduced to their physical factor, zeros and repetitions dropped."""
    numerators = [sp.expand(sp.fraction(sp.together(e))[0]) for e in equations]
    return list(dict.fromkeys(chosen_factor(e, accept) for e in numerators if e != 0))


def _simplest_linear(equations: list[sp.Expr], unknowns: list[sp.Symbol]) -> tuple[int, sp.Symbol] | None:
    """The equation and unknown with the simplest coefficient: constants before polynomials, short before long."""
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


def eliminate(equations: list[sp.Expr], unknowns: list[sp.Symbol], accept) -> sp.Expr:
    """One polynomial relation free of the unknowns, the factor that `accept(expression)` recognises."""
    equations, unknowns, _ = solve_linear_unknowns(equations, unknowns, accept)
    while unknowns:
        ring = Ring.of(tuple(equations))
        coded = [ring.encode(e) for e in equations]
        symbol = min(unknowns, key=lambda u: (sum(ring.degree(p, u) for p in coded), u.name))
        unknowns.remove(symbol)
        holding = sorted(
            (p for p in coded if ring.degree(p, symbol) > 0), key=lambda p: (ring.degree(p, symbol), len(p.to_dict()))
        )
        if not holding:
            continue
        free = [p for p in coded if ring.degree(p, symbol) == 0]
        resultants = [p.resultant(q, ring.variable(symbol)) for i, p in enumerate(holding) for q in holding[i + 1 :]]
        equations = [ring.decode(p) for p in (*free, *resultants)]
        equations, unknowns, _ = solve_linear_unknowns(equations, unknowns, accept)
    if not equations:
        raise ValueError("the equations do not determine a relation")
    return min(equations, key=lambda e: (sp.count_ops(e), str(e)))


def factors(expression: sp.Expr) -> list[sp.Expr]:
    """The distinct irreducible factors of a polynomial, constants left out, in a fixed order."""
    ring = Ring.of((expression,))
    if not ring.symbols:
        return []
    _, found = ring.encode(expression).factor()
    decoded = [normalised(ring.decode(f)) for f, _ in found]
    return sorted((f for f in decoded if f.free_symbols), key=lambda f: (sp.count_ops(f), str(f)))


def chosen_factor(expression: sp.Expr, accept) -> sp.Expr:
    """The irreducible factor that the physical solution satisfies."""
    candidates = factors(expression)
    fitting = [f for f in candidates if accept(f)]
    if len(fitting) != 1:
        raise ValueError(f"{len(fitting)} factors of the eliminated polynomial fit the physical branch")
    return fitting[0]


def normalised(polynomial: sp.Expr) -> sp.Expr:
    """Sign fixed so that the same polynomial always prints the same way."""
    expanded = sp.expand(polynomial)
    terms = sp.Add.make_args(expanded)
    first = min(terms, key=lambda term: str(sp.Mul(*[f for f in sp.Mul.make_args(term) if not f.is_Number])))
    return -expanded if first.could_extract_minus_sign() else expanded


def discriminant(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    ring = Ring.of((expression,))
    return ring.decode(ring.encode(expression).discriminant(ring.variable(symbol)))
