"""The probed matrix as equations: d psi0 / d tau = M psi0 + source, with one field for every intermediate product."""

from __future__ import annotations

import sympy as sp

from derive.algebra.scaling import norm_order
from derive.equations.history import History
from derive.equations.made import Made
from derive.equations.rules import Rules
from derive.errors import DeclarationError
from derive.language.diagonals import Diagonal
from derive.language.matrices import (
    Atom,
    Matrix,
    Product,
    Sum,
    WeightsAt,
    factors_of,
)
from derive.language.multiplied import Letters, dyad_words, half_product, words_of
from derive.language.traits import is_trait, traits_in
from derive.language.vectors import PAST, Field, Mean, shown, values
from derive.records.system import DisorderRule, LinearRule, SpectralFields, SystemField


def check_diagonals(matrix: Matrix) -> None:
    """Diagonal matrices in a probed matrix are functions of traits whose law is known, and bounded."""
    for entries in _diagonals(matrix):
        where = f"spectrum(...) has diag({shown(entries)})"
        fields = [value for value in values(entries) if not is_trait(value)]
        if fields:
            raise DeclarationError(
                f"{where}, and {shown(fields[0])} is no trait; in a probed matrix diag(...) takes traits and functions "
                "of them"
            )
        if entries.has(Mean):
            raise DeclarationError(f"{where}, which holds a mean; make it a parameter")
        for trait in (value.field for value in traits_in(entries)):
            if trait.discrete and not trait.weights:
                raise DeclarationError(
                    f"{where}, and the values of {trait} are data; write them into the declaration, values=[...]"
                )
            if not trait.discrete and {sp.oo, -sp.oo} & set(trait.law[1:]):
                raise DeclarationError(
                    f"{where}, and {trait} is unbounded, so the bulk would have no edge; cut its density off"
                )


def _diagonals(matrix: Matrix) -> list[sp.Expr]:
    if isinstance(matrix, Sum):
        return [entries for _, part in matrix.terms for entries in _diagonals(part)]
    if isinstance(matrix, Product):
        return [entries for factor in matrix.factors for entries in _diagonals(factor)]
    return [matrix.entries] if isinstance(matrix, Diagonal) else []


class Probing:
    """Adds the spectral fields of one matrix."""

    def __init__(self, made: Made, rules: Rules, history: History):
        self.made, self.rules, self.history = made, rules, history
        self.products: dict[tuple[Matrix, Field], Field] = {}

    def spectral_fields(
        self, label: str, matrix: Matrix, between: tuple[tuple[str, Matrix], ...] = ()
    ) -> SpectralFields:
        """The fields of one probed matrix, taken out again: what the probe needs of the training level stays.

        The next probed matrix finds their names free. between: matrices A, which get fields A psi0 beside them.
        """
        for one in (matrix, *(other for _, other in between)):
            check_diagonals(one)
        self._check_symmetric(matrix)
        root = self.made.probe_field(matrix.rows)
        expression = self._applied(matrix, root)
        rule = self.rules.rule(expression, None, root, "the probed matrix")
        images = tuple((name, self._image(name, other, root)) for name, other in between)
        fields = (SystemField(root, rule, derivative=True), *self.made.take_spectral())
        self._check_bulk(fields)
        if _diagonals(matrix) and not any(isinstance(f.rule, DisorderRule) for f in fields):
            raise DeclarationError(
                f"spectrum({matrix}): there is no random matrix beside diag(...), so its eigenvalues are the entries; "
                "add one, or look at the law of the trait"
            )
        return SpectralFields(label, fields, self._middle(matrix, root), images)

    def _image(self, name: str, matrix: Matrix, root: Field) -> Field:
        image = self.made.probe_field(matrix.rows)
        where = f"the matrix {name} between resolvents"
        self.made.put(SystemField(image, self.rules.rule(self._applied(matrix, root), None, image, where)))
        return image

    def _check_bulk(self, fields: tuple[SystemField, ...]) -> None:
        """The random part of the matrix has coefficients that are known without the training level."""
        rules = [f.rule for f in fields]
        for term in (t for rule in rules if isinstance(rule, LinearRule) for t in rule.terms):
            if term.vector.field.role == "spectral" and term.coefficient.has(Mean):
                average = min(term.coefficient.atoms(Mean), key=sp.default_sort_key)
                raise DeclarationError(
                    f"the probed matrix: {shown(average)} multiplies a random matrix, so the bulk would depend on an "
                    "order parameter; make it a parameter, or multiply outer products only"
                )

    def _middle(self, matrix: Matrix, root: Field) -> Field | None:
        """The field of K psi0, whose way on to the next factor is the only one."""
        half = half_product(matrix)
        if not half:
            return None
        if isinstance(matrix, Sum):
            matrix = matrix.terms[0][1]
        field = root
        for factor in reversed(factors_of(matrix)[half:]):
            field = self.products[factor, field]
        return field

    def _applied(self, matrix: Matrix, field: Field) -> sp.Expr:
        """matrix @ field, where every inner product gets a spectral field of order one, shared wherever it occurs."""
        if isinstance(matrix, Sum):
            return sp.Add(*(scale * self._applied(part, field) for scale, part in matrix.terms))
        head, *others = factors_of(matrix)
        scale = sp.S.One
        for factor in reversed(others):
            order = norm_order(self._at_start(factor))
            if (factor, field) not in self.products:
                inner = self.made.probe_field(factor.rows)
                expression = self._applied(factor, field) * factor.columns ** (-order)
                self.made.put(SystemField(inner, self.rules.rule(expression, None, inner, "the probed matrix")))
                self.products[factor, field] = inner
            scale *= factor.columns**order
            field = self.products[factor, field]
        if isinstance(head, Sum):
            return scale * self._applied(head, field)
        return scale * head.applied_to(field())

    def _at_start(self, matrix: Matrix) -> Matrix:
        """Weights replaced by their initial matrices, which set their size."""
        if isinstance(matrix, Sum):
            return Sum(matrix.rows, matrix.columns, tuple((c, self._at_start(m)) for c, m in matrix.terms))
        if isinstance(matrix, Product):
            return Product(matrix.rows, matrix.columns, tuple(map(self._at_start, matrix.factors)))
        if not (isinstance(matrix, Atom) and isinstance(matrix.symbol, WeightsAt)):
            return matrix
        parts = self.history.starts(matrix.symbol.weights)
        if not parts:
            raise DeclarationError(
                f"{matrix.symbol.weights} starts from 0, so it has no bulk; probe weights with a random initial matrix"
            )
        terms = (
            (
                scale(matrix.symbol.time),
                Atom(matrix.rows, matrix.columns, start.disorder, matrix.transposed != start.transposed),
            )
            for start, scale in parts
        )
        return Sum(matrix.rows, matrix.columns, tuple(terms))

    def _check_symmetric(self, matrix: Matrix) -> None:
        here, there = words_of(matrix, self._letters), words_of(matrix.T, self._letters)
        keys = sorted({*here, *there}, key=str)
        if any(sp.simplify(here.get(k, 0) - there.get(k, 0)) != 0 for k in keys):
            raise DeclarationError(
                f"spectrum({matrix}): the matrix is not symmetric; probe W.T @ W for singular values"
            )

    def _letters(self, matrix: Atom) -> dict[Letters, sp.Expr]:
        """Weights as initial matrices and outer products with coefficients; a random matrix as itself."""
        symbol, transposed = matrix.symbol, matrix.transposed
        if not isinstance(symbol, WeightsAt):
            return {((symbol, transposed),): sp.S.One}
        total: dict[Letters, sp.Expr] = {}
        for start, scale in self.history.starts(symbol.weights):
            turned = transposed != start.transposed and not start.disorder.symmetric
            total[(start.disorder, turned),] = scale(symbol.time)
        for (w, i), kernel in self.history.kernels.items():
            if w == symbol.weights:
                ends = (i.dyad.left, i.dyad.right)
                for word, value in dyad_words(*(ends[::-1] if transposed else ends)).items():
                    added = value * i.coefficient * kernel(symbol.time, PAST)
                    total[word] = total.get(word, sp.S.Zero) + added
        return total
