"""Lowering of a forward pass whose nonlinear laws have Gaussian arguments: averages become Gaussian integrals.

The statements are those of the exact pass. A nonlinear law is an additional vector, and its average a number;
numerics/runtime/quadrature.py computes both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import sympy as sp

from derive.equations.gaussian_laws import GaussianLaw, Laws, factors, product_of
from derive.equations.layout import Layout
from derive.equations.needs import Needs
from derive.language.symbols import Sector
from derive.language.traits import split_traits, traits_in
from derive.language.vectors import Field, FieldAt, Mean, axes_of, shown
from derive.program import nodes as ir
from derive.program.forward import ONE, Forward, IntegratedLaw, Lowering, TwoTimeTable
from derive.records.method import ClosureKind
from derive.records.system import Rule, SystemField, is_moment


class ByQuadrature(Lowering):
    """Lowers the single-site equations with averages by quadrature."""

    closure = ClosureKind.QUADRATURE

    def __init__(self, layout: Layout, needs: Needs, laws: Laws | None, responses: str):
        super().__init__(layout, needs, laws, responses)
        assert laws is not None
        self.gaussian = laws
        self.integrands: dict[GaussianLaw, None] = {}
        self.without_time: set[Field] = set()
        """Arguments without time that are already computed."""
        self.bound: dict[sp.Symbol, ir.Symbol] = {}
        """Symbols of the arguments and numbers of laws."""

    def program(self) -> Forward:
        program, laws = super().program(), self.gaussian
        _, too_large = laws.all_meetings()
        carried = tuple((field, tuple(held)) for field, held in laws.carried.items() if held)
        sources = self.layout.system.sources
        vectors = [(field, "field") for field in laws.arguments]
        vectors += [(one, "constant") for one in laws.ones.values() if one not in sources]
        vectors += [(law.own, "law") for law in laws.owned]
        return replace(
            program,
            vectors=tuple(vectors),
            integrands=tuple(map(self._integrand, self.integrands)),
            meetings=tuple(
                (a, b, laws.meetings[a, b])
                for i, a in enumerate(laws.owned)
                for b in laws.owned[i:]
                if (a, b) in laws.meetings
            ),
            two_time=TwoTimeTable(carried, tuple(refusals(self.layout, laws, too_large))),
        )

    def _idle(self) -> frozenset[Field]:
        """Return the idle fields, and the laws and arguments that occur in idle fields alone."""
        idle, laws = super()._idle(), self.gaussian
        used = {law: None for field, held in laws.carried.items() if field not in idle for law in held}
        averaged = (law for parts in laws.averages.values() for _, law in parts.laws)
        arguments = {field for law in (*used, *averaged) for field in law.arguments}
        return idle | {law.own for law in laws.owned if law not in used} | (set(laws.arguments) - arguments)

    # -- laws

    def _law(self, f: SystemField, rule: Rule) -> ir.Value:
        number = next(i for i, other in enumerate(f.rules) if other is rule)
        parts = self.gaussian.parts[f.field, number]
        terms: list[tuple[ir.Formula, ir.Value]] = [(self.number(c), self.value(v)) for c, v in parts.linear]
        terms += [(self.number(c), self._integral("law", law)) for c, law in parts.laws]
        if parts.number != 0:
            terms.append((self.number(parts.number), self.value(self._one(f.field.sector))))
        return ir.WeightedSum(tuple(terms), None)

    def _one(self, sector: Sector) -> FieldAt:
        return self.gaussian.ones[sector]()

    def _integral(self, operation: str, law: GaussianLaw, *more: Any) -> ir.Op:
        """Return the operation that computes a law as a vector, or its average, from the law's name, arguments and
        numbers.
        """
        self.integrands.setdefault(law)
        arguments = tuple(self._argument(field) for field in law.arguments)
        numbers = tuple(map(self.number, law.numbers))
        numbers_and_traits = (numbers, *more) if numbers or more else ()
        return ir.Op(operation, (ir.Quoted(law.own.name), arguments, *numbers_and_traits))

    def _argument(self, field: Field) -> ir.Value:
        """Return an argument of a law at the current time; a linear combination is defined at its first use."""
        rule = self.gaussian.arguments.get(field)
        if rule is not None and field not in self.done and field not in self.without_time:
            terms = tuple(self._term(term, field)[:2] for term in rule.terms)
            symbol = ir.Symbol(field.name)
            self.lines.append(ir.Let(symbol, ir.Op("put", (ir.Quoted(field.name), ir.WeightedSum(terms, None)))))
            self.done[field] = symbol
            if not field.timed:
                self.without_time.add(field)
        return self.value(self.present(field))

    def _integrand(self, law: GaussianLaw) -> IntegratedLaw:
        """Return a nonlinear law as a record of the generated module."""
        owned = law in self.gaussian.owned
        slopes = None if law.slopes is None or not owned else self._function(law, *law.slopes)
        kinks = self._function(law, *law.kinks) if law.kinks else None
        straight = (True,) if law.straight else ()
        value = ir.Function(self._parameters(law), self._body(law, law.expression))
        return IntegratedLaw(law, ir.Call("GaussianFunction", (value, slopes, kinks, law.kinds, *straight), None))

    def _function(self, law: GaussianLaw, *bodies: sp.Expr) -> ir.Function:
        return ir.Function(self._parameters(law), ir.Tuple(tuple(self._body(law, body) for body in bodies)))

    def _parameters(self, law: GaussianLaw) -> tuple[ir.Symbol, ...]:
        symbols = (*law.symbols, *law.number_symbols)
        return tuple(self.bound.setdefault(symbol, ir.Symbol(str(symbol), ir.SCALAR)) for symbol in symbols)

    def _body(self, law: GaussianLaw, body: sp.Expr) -> ir.Formula:
        symbols = (*law.symbols, *law.number_symbols)
        slots = {s: ir.Slot(ir.Ref(name), str(s)) for s, name in zip(symbols, self._parameters(law), strict=True)}
        return ir.Formula(sp.sympify(body).xreplace(slots))

    # -- averages

    def _mean(self, average: Mean) -> sp.Expr:
        if is_moment(average):
            return self._moment(average)
        parts = self.gaussian.average(average)
        products: list[tuple[ir.Formula, ir.Value]] = []
        for term in sp.Add.make_args(sp.expand(average.expression)):
            coefficient, core = factors(term)
            pair = product_of(core)
            if pair is not None:
                products.append((ONE, self._product(coefficient, *pair)))
        for coefficient, value in parts.linear:
            products.append((ONE, self._product(coefficient, value, self._one(value.field.sector))))
        terms: list[sp.Expr] = []
        if products:
            op = ir.Op("mean", (ir.WeightedSum(tuple(products), None), int(bool(axes_of(average)))))
            terms.append(ir.Slot(op, shown(average)))
        for coefficient, law in parts.laws:
            number, of_traits = split_traits(coefficient)
            op = self._integral("average", law, *self._of_traits(of_traits))
            terms.append(self.number(number).expression * ir.Slot(op, law.shown))
        for part in sp.Add.make_args(parts.number):
            number, of_traits = split_traits(part)
            moment = sp.S.One if of_traits == 1 else self._moment(Mean(of_traits))
            terms.append(self.number(number).expression * moment)
        return sp.Add(*terms)

    def _of_traits(self, factor: sp.Expr) -> tuple[Any, ...]:
        """Return a factor as a function of traits, followed by the names of the traits; empty for the factor one."""
        if factor == 1:
            return ()
        bound = {value: ir.Symbol(value.field.name, ir.SCALAR) for value in traits_in(factor)}
        slots = {value: ir.Slot(ir.Ref(symbol), symbol.hint) for value, symbol in bound.items()}
        function = ir.Function(tuple(bound.values()), self.formula(factor, slots=slots))
        return (function, *(ir.Quoted(value.field.name) for value in bound))


def refusals(
    layout: Layout, laws: Laws, too_large: dict[tuple[Field, Field], str]
) -> Iterable[tuple[tuple[str, str, str], str]]:
    """Return the two-time functions that quadrature cannot compute, with reasons.

    The key ("R", "", b) stands for the response of any field to b.

    Args:
        too_large: pairs of fields whose correlations are integrals over too many variables.
    """
    for (a, b), why in too_large.items():
        yield ("C", a.name, b.name), why
    jumping = next((law for law in laws.owned if law.slopes is None and len(law.arguments) > 1), None)
    for b in layout.named:
        if b in laws.written_out:
            where = laws.written_out[b]
            yield (
                ("R", "", b.name),
                f"{where} is nonlinear in {b}, which is not Gaussian: its response is not an integral",
            )
        elif jumping is not None:
            why = f"{jumping.shown} jumps and has several arguments, so its response to one of them is not an integral"
            yield ("R", "", b.name), why
