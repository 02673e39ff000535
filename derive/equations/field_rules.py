"""The fields of a system under construction, both declared and auxiliary.

An existing auxiliary field is found by its content: its expression in terms of the clock, its sector, clock, axes and
role. Names are used for printing only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import sympy as sp

from derive.algebra.scaling import cure, growth, size_order
from derive.errors import SizeError
from derive.language.contents import atoms, declared_names
from derive.language.equations import Eq
from derive.language.matrices import Disorder
from derive.language.model import Model
from derive.language.symbols import Axis, Clock, MeasuredParameter, Sector
from derive.language.vectors import Field, FieldAt
from derive.records.system import DisorderRule, SystemField


@dataclass(frozen=True)
class Content:
    """The identity of an added field, independent of its name."""

    expression: sp.Expr
    sector: Sector
    clock: Clock | None
    timed: bool
    axes: tuple[Axis, ...]
    role: str


@dataclass(frozen=True)
class Applied:
    """A random matrix, or its transpose, applied to a field."""

    matrix: Disorder
    transposed: bool
    argument: Field

    @property
    def shape(self) -> tuple[Sector, Sector]:
        rows, columns = self.matrix.shape
        return (columns, rows) if self.transposed else (rows, columns)

    def __str__(self) -> str:
        return f"{self.matrix}{'.T' if self.transposed else ''} @ {self.argument}"


class FieldRules:
    """Every field with its rule, in order of insertion."""

    def __init__(self, model: Model):
        self.rules: dict[Field, SystemField] = {}
        self.equation: Eq | None = None
        """The declared equation that new fields belong to."""
        self.contents: dict[Content, Field] = {}
        self.products: dict[Applied, tuple[Field, sp.Expr]] = {}
        self.ones: dict[Sector, Field] = {}
        self.taken = declared_names(model)
        self.clock: Clock | None = next(iter(atoms(model, Clock)), None)
        self.numbers: dict[sp.Expr, MeasuredParameter] = {}
        self.unnamed = 0
        self.probe_names: set[str] = set()

    def put(self, rule: SystemField) -> None:
        """Add a field with its rule and the equation it comes from."""
        self.rules[rule.field] = replace(rule, origin=self.equation)

    def new_field(
        self,
        hint: str,
        sector: Sector,
        clock: Clock | None = None,
        role: str = "field",
        timed: bool = True,
        axes: tuple[Axis, ...] = (),
    ) -> Field:
        """Return a new field, with a name that no other field has."""
        name = self.free_name(hint, () if role == "spectral" else self.probe_names)
        return Field(name, sector, clock, role=role, timed=timed, axes=axes)

    def free_name(self, hint: str, others: Collection[str] = ()) -> str:
        """Return an unused name, different from `others`: the hint plus underscores."""
        while hint in self.taken or hint in others:
            hint += "_"
        self.taken.add(hint)
        return hint

    def measured(self, average: sp.Expr) -> MeasuredParameter:
        """Return the parameter of the probe that represents a mean of the training level; equal means share one."""
        if average not in self.numbers:
            inside = sorted({value.field.name for value in average.atoms(FieldAt)})
            self.numbers[average] = MeasuredParameter(self.free_name("_".join(["mean", *inside])), average)
        return self.numbers[average]

    def next_name(self) -> str:
        """Return the suggested name for the next field that represents an expression."""
        self.unnamed += 1
        return f"vector{self.unnamed}"

    def probe_field(self, sector: Sector) -> Field:
        """Return the next field of the probe."""
        hint = next(f"psi{n}" for n in range(len(self.taken) + 1) if f"psi{n}" not in self.taken)
        return self.new_field(hint, sector, role="spectral")

    def take_spectral(self, root: Field) -> tuple[SystemField, ...]:
        """Remove and return the fields of the probe `root`; other probes may then reuse their names."""
        taken = tuple(f for f in self.rules.values() if f.field.role == "spectral")
        names = {root.name, *(f.field.name for f in taken)} | self.probe_names
        self.taken -= names
        self.probe_names = names
        self.rules = {field: rule for field, rule in self.rules.items() if field.role != "spectral"}
        self.contents = {content: field for content, field in self.contents.items() if field.role != "spectral"}
        self.products = {p: entry for p, entry in self.products.items() if p.argument.role != "spectral"}
        return taken

    def constant(self, sector: Sector) -> Field:
        """Return the vector of ones over a sector."""
        if sector not in self.ones:
            self.ones[sector] = self.new_field(f"one_{sector}", sector, role="constant")
        return self.ones[sector]

    def add_product(self, field: Field, product: Applied, scale: sp.Expr) -> None:
        """Let a field represent scale * matrix @ argument."""
        rows, columns = product.shape
        where = f"{self.equation.name if self.equation is not None else field}: the noise from {product}"
        order = size_order(scale**2 * product.matrix.variance * columns, where)
        if order != 0:
            raise SizeError(
                f"{where} {growth(order / 2, columns)}; {cure(order / 2, columns)}: {product} is of order one where "
                f"variance * {columns} is"
            )
        self.products[product] = (field, scale)
        self.put(SystemField(field, DisorderRule(product.matrix, product.transposed, scale, product.argument)))
