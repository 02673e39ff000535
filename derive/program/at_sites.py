"""Lowering of scalar functions of z that contain averages over traits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.sites import TraitAverage
from derive.language.traits import Trait, traits_in
from derive.program.nodes import SCALAR, Call, Definition, Formula, Function, Let, Ref, Slot, Symbol, Tuple, Value
from derive.program.text import PARAMETERS
from derive.program.traits import law_of


class AtSites:
    """Builder for functions of z: their symbols, the formulas in them, and the averages over sites.

    Args:
        traits: the traits that are averaged over.
        parts: symbols that an argument unpacks into, by argument; the argument r unpacks into the bulk responses.
    """

    def __init__(self, traits: Iterable[Trait], parts: dict[Symbol, Iterable[sp.Symbol]]):
        self.traits = tuple(traits)
        self.z, self.nodes, self.laws = Symbol("z", SCALAR), Symbol("nodes", SCALAR), Symbol("laws")
        self.values = {trait: at_groups(trait) for trait in self.traits}
        self.law: dict[Any, Symbol] = {trait: Symbol(f"law_{trait.name}") for trait in self.traits}
        symbols = {whole: {s: Symbol(s.name, SCALAR) for s in some} for whole, some in parts.items()}
        self.parts = {whole: tuple(some.values()) for whole, some in symbols.items()}
        self.leaves: dict[sp.Symbol, Slot] = {Z: Slot(Ref(self.z), "z")}
        self.leaves |= {s: Slot(Ref(symbol), s.name) for some in symbols.values() for s, symbol in some.items()}

    def number(self, expression: sp.Expr) -> Formula:
        """Return an expression as a scalar formula."""
        expression = sp.sympify(expression)
        averages = sorted(expression.atoms(TraitAverage), key=sp.default_sort_key)
        formula = expression.xreplace({node: Slot(self._over_sites(node), "average") for node in averages})
        return Formula(formula.xreplace(self.leaves), SCALAR)

    def _over_sites(self, average: TraitAverage) -> Value:
        """Return the average of a function of the traits over their laws."""
        traits = [value.field for value in traits_in(average.expression)]
        laws = (Ref(self.law[trait]) for trait in traits)
        return Call("over_sites", (self.z, self._of_traits(average.expression, traits), *laws), SCALAR)

    def _of_traits(self, expression: sp.Expr, traits: Sequence[Trait]) -> Function:
        """Return an expression as a function of the traits of a site."""
        slots = {trait(): Slot(Ref(self.values[trait]), trait.name) for trait in traits}
        numerator, denominator = (_gathered(part, traits) for part in sp.fraction(expression))
        body = Formula(self.number((numerator / denominator).xreplace(slots)).expression, None)
        return Function(tuple(self.values[trait] for trait in traits), body)

    def numbers(self, expressions: Iterable[sp.Expr]) -> Tuple:
        """Return expressions as a tuple of scalar formulas."""
        return Tuple(tuple(map(self.number, expressions)))

    def function(
        self, name: str, arguments: Iterable[Symbol], doc: str, result: Value, body: tuple[Let, ...] = ()
    ) -> Definition:
        """Return a function of the module: its arguments after the parameters, its body and its result."""
        arguments = tuple(arguments)
        parts = {**self.parts, self.laws: tuple(self.law.values())}
        unpacked = tuple((whole, some) for whole, some in parts.items() if whole in arguments)
        return Definition(name, (PARAMETERS, *arguments), doc, body, result, unpacked)

    def site_laws(self) -> Definition:
        """Return the function `sites(p, nodes)`, which gives the law of each trait."""
        doc = "The laws of what differs from site to site: values, and the share of the sites that has each."
        return self.function("sites", (self.nodes,), doc, Tuple(tuple(map(self._law, self.law))))

    def _law(self, trait: Any) -> Value:
        return law_of(trait, (Ref(self.nodes),), self.number)


def _gathered(expression: sp.Expr, traits: Sequence[Trait]) -> sp.Expr:
    """Return the expression with its terms collected so that factors without traits are computed once.

    Terms are grouped either by their function of the traits or by their factor without traits, whichever gives fewer
    terms.
    """
    if expression.is_Mul:
        return sp.Mul(*(_gathered(factor, traits) for factor in expression.args))
    if expression.is_Pow and expression.exp.is_Integer:
        return _gathered(expression.base, traits) ** expression.exp
    values = [trait() for trait in traits]
    by_function, by_factor = dict[sp.Expr, list[sp.Expr]](), dict[sp.Expr, list[sp.Expr]]()
    for term in sp.Add.make_args(sp.expand_mul(expression)):
        scale, function = term.as_independent(*values, as_Add=False)
        number, factor = scale.as_coeff_Mul()
        by_function.setdefault(function, []).append(scale)
        by_factor.setdefault(factor, []).append(number * function)
    if len(by_function) <= len(by_factor):
        return sp.Add(*(function * sp.Add(*some) for function, some in by_function.items()))
    # differences of functions lose digits that their factors have
    return sp.Add(*(factor * sp.factor(sp.Add(*some)) for factor, some in by_factor.items()))


def at_groups(trait: Trait) -> Symbol:
    """Return the symbol for the values of a trait, one entry per group of sites."""
    return Symbol(trait.name, (sp.Symbol("groups"),))
