"""The fields of a system while it is built: those of the declaration, and those that the engine makes.

What has been made before is found by what it is: its expression written for the clock, its sector, clock, labels and
role. Printed names are hints; nothing is looked up by them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import sympy as sp

from derive.algebra.scaling import cure, growth, size_order
from derive.errors import SizeError
from derive.language.contents import atoms, declared_names
from derive.language.equations import Eq
from derive.language.matrices import Disorder
from derive.language.model import Model
from derive.language.symbols import Clock, Parameter, Sector
from derive.language.vectors import OF_CLOCK, Field
from derive.records.system import DisorderRule, SystemField


@dataclass(frozen=True)
class Content:
    """What a made field is, whatever its name."""

    expression: sp.Expr
    sector: Sector
    clock: Clock | None
    timed: bool
    labels: Parameter | None
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


class Made:
    """Every field with its rule, in the order in which they were put."""

    def __init__(self, model: Model):
        self.rules: dict[Field, SystemField] = {}
        self.equation: Eq | None = None
        """The equation that is being taken apart, which what is made now belongs to."""
        self.contents: dict[Content, Field] = {}
        self.products: dict[Applied, tuple[Field, sp.Expr]] = {}
        self.ones: dict[Sector, Field] = {}
        self.taken = declared_names(model)
        self.clock: Clock | None = next(iter(atoms(model, Clock)), None)
        self.unnamed = 0
        self.probe_names: set[str] = set()

    def put(self, made: SystemField) -> None:
        self.rules[made.field] = replace(made, origin=self.equation)

    def new_field(
        self,
        hint: str,
        sector: Sector,
        clock: Clock | None = None,
        role: str = "field",
        timed: bool = True,
        labels: Parameter | str | None = OF_CLOCK,
    ) -> Field:
        """A field unlike any other; underscores keep its printed name apart from all the others."""
        while hint in self.taken or (role != "spectral" and hint in self.probe_names):
            hint += "_"
        self.taken.add(hint)
        return Field(hint, sector, clock, role=role, timed=timed, labels=labels)

    def next_name(self) -> str:
        """A hint for a field that stands for an expression."""
        self.unnamed += 1
        return f"vector{self.unnamed}"

    def probe_field(self, sector: Sector) -> Field:
        """The next field of the probe."""
        hint = next(f"psi{n}" for n in range(len(self.taken) + 1) if f"psi{n}" not in self.taken)
        return self.new_field(hint, sector, role="spectral")

    def take_spectral(self) -> tuple[SystemField, ...]:
        """The fields of the probe, which are forgotten here; only other probes may use their names again."""
        taken = tuple(f for f in self.rules.values() if f.field.role == "spectral")
        names = {field.name for field in self.rules if field.role == "spectral"} | self.probe_names
        self.taken -= names
        self.probe_names = names
        self.rules = {field: rule for field, rule in self.rules.items() if field.role != "spectral"}
        self.contents = {content: field for content, field in self.contents.items() if field.role != "spectral"}
        self.products = {p: made for p, made in self.products.items() if p.argument.role != "spectral"}
        return taken

    def constant(self, sector: Sector) -> Field:
        """The vector of ones over a sector, the same wherever a constant stands."""
        if sector not in self.ones:
            self.ones[sector] = self.new_field(f"one_{sector}", sector, role="constant")
        return self.ones[sector]

    def add_product(self, field: Field, product: Applied, scale: sp.Expr) -> None:
        """Let a field stand for scale * matrix @ argument."""
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
