"""Lowering of a forward pass by Monte Carlo over sites: any laws, with the past of each field represented in an
orthonormal basis.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from derive.algebra.sites import TraitAverage, written_out
from derive.algebra.words import Letter
from derive.equations.layout import Layout
from derive.equations.needs import Needs
from derive.errors import DeclarationError
from derive.language.traits import is_trait
from derive.language.vectors import Field, Mean, axes_of, shown, values
from derive.program.forward import Lowering
from derive.program.nodes import Formula, Function, Op, Quoted, Ref, Slot, Symbol, Value
from derive.program.sites import Sharing
from derive.records.method import ClosureKind
from derive.records.probe import SampledSiteValues
from derive.records.system import Rule, SystemField, is_moment, quadratic_pairs

JUMPS = (sp.Heaviside, sp.sign, sp.Piecewise, sp.DiracDelta, sp.floor, sp.ceiling)
"""Discontinuous functions: their pointwise derivative misses the jumps."""


def has_jumps(layout: Layout) -> bool:
    """Return whether a law is discontinuous, so that its mean derivative has delta contributions."""
    rules = [rule for f in layout.fields for rule in f.rules]
    return any(law.has(*JUMPS) for rule in rules for law in rule.laws)


class BySampling(Lowering):
    """Lowers the single-site equations with Monte Carlo averages over sites."""

    closure = ClosureKind.SAMPLED

    def __init__(self, layout: Layout, needs: Needs, laws: Any, responses: str):
        super().__init__(layout, needs, laws, responses)
        if responses == "pathwise" and has_jumps(layout):
            raise DeclarationError(
                "pathwise responses are not available if a law jumps, because its derivative misses the jump; "
                "leave responses out, or write responses='stein'"
            )
        self.sharing = Sharing(layout, needs)
        self._check_fresh()

    def _check_fresh(self) -> None:
        """Refuse responses to random matrices that are drawn anew at every time."""
        responses = [(str(x.a), x.b) for x in self.needs.letters if x.kind == "R"]
        ends = [end for table in self.needs.tables for end in (table.left, table.right)]
        responses += [("sites", noise) for kind, noise in ends if kind == "R"]
        for field, noise in responses:
            channel = self.sharing.channel_of(noise)
            if channel.fresh:
                raise DeclarationError(
                    f"the probed matrix needs the response of {field} to {channel.matrix}, which is drawn anew at "
                    f"every time; probe weights that start from a fixed matrix"
                )

    def _put(self, f: SystemField) -> Op:
        base, factor = self.sharing.root(f.field)
        if factor is None:
            return super()._put(f)
        return Op("put_multiple", (Quoted(f.field.name), self.number(factor), Quoted(base.name)))

    def _law(self, f: SystemField, rule: Rule) -> Value:
        return Op("law", self._function(rule.laws[0]))

    def _function(self, expression: sp.Expr) -> tuple[Value, ...]:
        """Return an expression as a function of its field values; everything else in it is the same at all sites."""
        arguments = [value for value in values(expression) if not is_trait(value)]
        bound = {value: Symbol(value.field.name) for value in arguments}
        slots = {value: Slot(Ref(symbol), shown(value)) for value, symbol in bound.items()}
        body = self.formula(expression, slots=slots)
        return (Function(tuple(bound.values()), body), *map(self.value, arguments))

    def _mean(self, average: Mean) -> sp.Expr:
        moment = written_out(TraitAverage(average.expression)) if is_moment(average) else None
        if moment is not None:
            return moment
        if is_moment(average) or quadratic_pairs(average) is not None:
            return super()._mean(average)
        function, *arguments = self._function(average.expression)
        return Slot(Op("average", (function, tuple(arguments), int(bool(axes_of(average))))), shown(average))

    def _matrix_product(self, f: SystemField) -> Op:
        """Return the noise, plus the memory of fields that respond to the random matrix."""
        memories: dict[tuple[Field, str], Formula] = {}
        for m in self.layout.memories(f.field):
            other = self.sharing.channel_of(m.noise)
            if (m.a, other.hint) in memories:  # the normals of a random matrix stand for all of its noises
                continue
            # a multiple of the strength, and so finite where the variance of the matrix vanishes
            deviation = self.sharing.strength(m.noise)
            scale = sp.powsimp(sp.simplify(m.coefficient / deviation**2) * deviation)
            memories[m.a, other.hint] = self.number(scale)
        coefficients = tuple(self.number(m.coefficient) for m in self.layout.memories(f.field))
        return Op("product", (Quoted(f.field.name), tuple(memories.values()), coefficients))

    def _check_reach(self, reach: int, vector: Field, target: Field) -> None:
        """Accept every range of summation: samples of the current time are available."""

    def _known_as_covariance(self, letter: Letter) -> None:
        return None

    def _law_of_sites(self, sites: SampledSiteValues) -> Op:
        return Op("law_of_sites", (Quoted(sites.sector.name),))

    def _remembered(self) -> tuple[Field, ...]:
        return self.sharing.kept
