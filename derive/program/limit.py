"""Where linear training comes to rest, as a program: order parameters at any z, and observables made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.sites import SiteAverage
from derive.language.data import Data
from derive.language.traits import VALUE, Trait, traits_in
from derive.printing import text
from derive.program.nodes import SCALAR, Call, Definition, Formula, Function, Ref, Slot, Symbol, Tuple, Value
from derive.program.text import PARAMETERS
from derive.records.limit import Limit


@dataclass(frozen=True)
class LimitProgram:
    responses: tuple[str, ...]
    correlations: tuple[str, ...]
    observables: tuple[str, ...]
    sites: Definition
    equations: Definition
    correlating: Definition
    means: Definition
    observing: Definition
    settles: bool
    forgotten: str

    @property
    def functions(self) -> tuple[Definition, ...]:
        return self.sites, self.equations, self.correlating, self.means, self.observing


def limit_program(limit: Limit) -> LimitProgram:
    work = _Work(limit)
    r, c, m = work.r, work.c, work.m
    told = "\n".join(f"0 = {text(e)}" for e in limit.response_equations)
    doc = f"Each is zero at the responses r at z, which are what is answered at once as z grows:\n{told}"
    equations = work.function("equations", (work.z, r, work.laws), doc, limit.response_equations)
    told = "\n".join(f"0 = {text(e)}" for e in limit.correlation_equations)
    doc = f"Each is linear in the correlations c and zero at them:\n{told}"
    correlating = work.function("correlating", (work.z, r, c, work.laws), doc, limit.correlation_equations)
    told = "\n".join(text(mean) for _, mean in limit.mean_symbols)
    doc = f"The transform, with both times at the same z, of:\n{told}"
    means = work.function("means", (work.z, r, c, work.laws), doc, limit.means)
    doc = "The observables from the means at rest:\n" + "\n".join(
        f"{name} = {text(e)}" for name, e in limit.observables
    )
    observing = work.function("observing", (m,), doc, [value for _, value in limit.observables])
    return LimitProgram(
        tuple(one.symbol.name for one in limit.responses),
        tuple(one.symbol.name for one in limit.correlations),
        tuple(name for name, _ in limit.observables),
        work.site_laws(),
        equations,
        correlating,
        means,
        observing,
        any(not trait.discrete for trait in limit.traits),
        limit.forgotten,
    )


class _Work:
    """Symbols of the module, and formulas in them."""

    def __init__(self, limit: Limit):
        self.limit = limit
        self.z, self.nodes = Symbol("z", SCALAR), Symbol("nodes", SCALAR)
        self.r, self.c, self.m, self.laws = Symbol("r"), Symbol("c"), Symbol("m"), Symbol("laws")
        named = {
            self.r: [one.symbol for one in limit.responses],
            self.c: [one.symbol for one in limit.correlations],
            self.m: [symbol for symbol, _ in limit.mean_symbols],
        }
        self.parts = {whole: {s: Symbol(s.name, SCALAR) for s in some} for whole, some in named.items()}
        self.leaves: dict[sp.Symbol, Slot] = {Z: Slot(Ref(self.z), "z")}
        for some in self.parts.values():
            self.leaves |= {symbol: Slot(Ref(made), symbol.name) for symbol, made in some.items()}
        self.values = {trait: Symbol(trait.name, (sp.Symbol("groups"),)) for trait in limit.traits}
        self.law = {trait: Symbol(f"law_{trait.name}") for trait in limit.traits}

    def number(self, expression: sp.Expr) -> Formula:
        expression = sp.sympify(expression)
        averages = sorted(expression.atoms(SiteAverage), key=sp.default_sort_key)
        found = expression.xreplace({node: Slot(self._over_sites(node), "average") for node in averages})
        return Formula(found.xreplace(self.leaves), SCALAR)

    def _over_sites(self, average: SiteAverage) -> Value:
        """The average of one site's answer over the laws of its traits."""
        traits = [value.field for value in traits_in(average.expression)]
        slots = {trait(): Slot(Ref(self.values[trait]), trait.name) for trait in traits}
        body = Formula(self.number(average.expression.xreplace(slots)).expression, None)
        function = Function(tuple(self.values[trait] for trait in traits), body)
        return Call("over_sites", (Ref(self.z), function, *(Ref(self.law[trait]) for trait in traits)), SCALAR)

    def function(self, name: str, given: tuple[Symbol, ...], doc: str, results: Iterable[sp.Expr]) -> Definition:
        taken = {
            **{whole: tuple(some.values()) for whole, some in self.parts.items()},
            self.laws: tuple(self.law.values()),
        }
        unpacked = tuple((whole, parts) for whole, parts in taken.items() if whole in given and parts)
        return Definition(name, (PARAMETERS, *given), doc, (), Tuple(tuple(map(self.number, results))), unpacked)

    def site_laws(self) -> Definition:
        """The laws of the traits in the averages."""
        doc = "The laws of what differs from site to site: values, and the share of the sites that has each."
        return Definition("sites", (PARAMETERS, self.nodes), doc, (), Tuple(tuple(map(self._law, self.limit.traits))))

    def _law(self, trait: Trait) -> Value:
        if trait.discrete and isinstance(trait.values, Data):
            return Call("discrete", (Formula(trait.values, None),), None)
        if trait.discrete:
            parts = (Tuple(tuple(map(self.number, some))) for some in (trait.values, trait.weights))
            return Call("discrete", tuple(parts), None)
        value = Symbol(VALUE.name, (sp.Symbol("values"),))
        formula = Formula(trait.density.xreplace({VALUE: Slot(Ref(value), VALUE.name)}), None)
        ends = (self.number(end) for end in trait.law[1:])
        return Call("density", (Function((value,), formula), *ends, Ref(self.nodes)), None)
