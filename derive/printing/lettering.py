"""The notation of a source: derived results in declared symbols, with coefficients rescaled by algebra.

`Lettering.of` resolves the declared names, `settled` rewrites the sections of a record, and the printers look up the
symbol of a field, a noise, an order parameter or a parameter. Every command prints through it: `lettered` activates it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field as data_field, replace
from difflib import get_close_matches
from functools import cached_property

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.nodes import Correlation, Dot, Hat, Noise, Response, TauDerivative
from derive.equations.gaussian_laws import product_of
from derive.errors import DeclarationError, ParameterError
from derive.language.contents import DECLARED, atoms
from derive.language.model import Model
from derive.language.notation import SourceLetter
from derive.language.symbols import Parameter, Sector, _Named
from derive.language.traits import is_trait
from derive.language.traversal import ByKind
from derive.language.vectors import Apply, Field, FieldAt, Mean
from derive.pipeline import Derivation, derive_model
from derive.printing.layout import function_name
from derive.printing.names import Drive, OverlapName, PairName, PrintedNames, ProductName, latex_symbol, projected_of
from derive.printing.statements import Section, Statement
from derive.records.base import Record
from derive.records.probe import Unknown
from derive.records.system import LinearRule, System, SystemField

Pair = tuple[str, Field, Field]
"""The kind of an order parameter, "C" or "R", with its two fields; for C in the order of the symbol."""
MODEL, PAPER = NOTATIONS = "model", "paper"
"""The names of a model, and the notation of its source."""
_LETTERED = (FieldAt, Hat, Noise, Correlation, Response, TauDerivative)
LETTER = re.compile(r"\\(?:bm|mathrm|mathcal|mathbf|mathsf|text)\b")
_current: ContextVar[Lettering | None] = ContextVar("lettering", default=None)


def current() -> Lettering | None:
    """Return the notation in which printers write; None for the names of the model."""
    return _current.get()


@contextmanager
def lettered(letters: Lettering | None) -> Iterator[None]:
    """Print in the notation of a source; None prints the names of the model."""
    token = _current.set(letters)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True)
class LetterRow:
    """A line of the table of symbols: `key` of the model is `scale` times `latex` of the source."""

    key: str
    scale: sp.Expr
    latex: str


@dataclass(frozen=True)
class Lettering:
    """The objects of a derivation to which the names of a declared notation refer.

    `same` lists fields that are multiples of another field with the same symbol, which represents both, and sizes with
    the same symbol. `carried` maps products with random matrices without a symbol to the only field whose equation
    contains them, and their coefficient there, which is the ratio of the two response fields. `scales` are the scales
    of fields; `noises` and `pairs` are the declared scales of noises and order parameters, which otherwise follow from
    those of the fields. `words` contains the symbols of fields, matrices, parameters and sizes.
    """

    words: dict[sp.Symbol, str] = data_field(default_factory=dict)
    same: dict[sp.Symbol, sp.Symbol] = data_field(default_factory=dict)
    carried: dict[Field, tuple[Field, sp.Expr]] = data_field(default_factory=dict)
    scales: dict[Field, sp.Expr] = data_field(default_factory=dict)
    hats: dict[Field, str] = data_field(default_factory=dict)
    noises: dict[Field, tuple[str, sp.Expr | None]] = data_field(default_factory=dict)
    pairs: dict[Pair, tuple[str, sp.Expr | None]] = data_field(default_factory=dict)
    engine: dict[str, tuple[str, sp.Expr]] = data_field(default_factory=dict)
    rows: tuple[LetterRow, ...] = ()

    @staticmethod
    def of(derivation: Derivation) -> Lettering:
        """Return the notation that a model declares; raise if a key names nothing, or two objects share a symbol."""
        if not derivation.model.notation:
            raise DeclarationError(
                f"{derivation.model.setting} declares no notation; add notation={{'x': r'\\xi'}} to its Model, "
                "or leave --notation out"
            )
        return _Resolved(derivation).letters

    # -- scales

    def rep(self, f: Field) -> Field:
        """The field that is printed in place of a field."""
        return self.same.get(f, f)

    def scale(self, f: Field) -> sp.Expr:
        """The ratio of a field to its symbol."""
        return self.scales.get(f, sp.S.One)

    def noise_scale(self, f: Field) -> sp.Expr:
        declared = self.noises.get(f, ("", None))[1]
        return self.scale(f) if declared is None else declared

    def pair(self, kind: str, a: Field, b: Field) -> tuple[str, bool] | None:
        """The symbol of an order parameter, and whether its two fields are in the opposite order; None if it has no
        symbol.
        """
        a, b = self.rep(a), b if kind == "R" else self.rep(b)
        if (kind, a, b) in self.pairs:
            return self.pairs[kind, a, b][0], False
        return (self.pairs[kind, b, a][0], True) if kind == "C" and (kind, b, a) in self.pairs else None

    def pair_scale(self, kind: str, a: Field, b: Field) -> sp.Expr:
        """The ratio of an order parameter to its symbol."""
        x, y = self.rep(a), b if kind == "R" else self.rep(b)
        keys = [(kind, x, y), *([(kind, y, x)] if kind == "C" else [])]
        for key in keys:
            declared = self.pairs.get(key, ("", None))[1]
            if declared is not None:
                return declared * self.scale(a) / self.scale(x) * (1 if kind == "R" else self.scale(b) / self.scale(y))
        return self.scale(a) / self.noise_scale(b) if kind == "R" else self.scale(a) * self.scale(b)

    # -- words

    def word(self, symbol: sp.Symbol) -> str | None:
        """The LaTeX of a declared symbol; None if the name itself is printed."""
        return self.words.get(self.same.get(symbol, symbol))

    @cached_property
    def mentioned(self) -> dict[str, str]:
        """The LaTeX of names that sentences mention."""
        return {symbol.name: latex for symbol, latex in self.words.items() if symbol.name not in "aAI"}

    @cached_property
    def _mention(self) -> re.Pattern[str]:
        return re.compile(
            r"(?<![\w.])(?:" + "|".join(map(re.escape, sorted(self.mentioned, key=len)[::-1])) + r")(?![\w.])"
        )

    def pieces(self, words: str) -> list[tuple[str, str]]:
        """Split a sentence into pieces of prose, each with the symbol that follows it."""
        if not self.mentioned:
            return [(words, "")]
        ends = [(m.start(), m.end()) for m in self._mention.finditer(words)]
        begins = [0, *(end for _, end in ends)]
        letters = [self.mentioned[words[start:end]] for start, end in ends]
        stops = [*(start for start, _ in ends), len(words)]
        return [(words[a:b], letter) for a, b, letter in zip(begins, stops, [*letters, ""], strict=True)]

    # -- statements

    def settled(self, record: Record, sections: tuple[Section, ...]) -> tuple[Section, ...]:
        """Return the sections of a record in the source's scales; statements that reduce to x = x are omitted."""
        rescale = _Rescale(self, record)
        kept = (
            replace(section, statements=_merged(filter(None, map(rescale.statement, section.statements))))
            for section in sections
        )
        return tuple(section for section in kept if section.statements)

    def stated(self, record: Record, statement: Statement) -> Statement:
        """Return a statement of a record in the source's scales."""
        return _Rescale(self, record).statement(statement) or statement

    def rescaled(self, expression: sp.Basic, record: Record | None = None) -> sp.Basic:
        """Return an expression in the source's scales."""
        return _Rescale(self, record)(expression) if isinstance(expression, sp.Basic) else expression


class _Rescale:
    """Rewrites the statements of a record: each object becomes its scale times an object printed as its symbol."""

    def __init__(self, letters: Lettering, record: Record | None):
        self.letters, self.names = letters, PrintedNames.of(record)
        projected = projected_of(record)
        self.alike: dict[str, sp.Symbol] = {}
        self.responses: dict[str, tuple[Field, Field]] = {}
        self.unknowns: tuple[Unknown, ...] = () if projected is None else projected.unknowns

    def statement(self, statement: Statement) -> Statement | None:
        """Return a statement in the source's scales, divided by the scale of its subject."""
        left, right = statement.left, statement.right
        if left is None:
            return statement
        unit = self._unit(statement)
        new = self(left)
        if statement.relation == "i dot":  # the exponent is the product of both sides
            new, right = new / unit, None if right is None else sp.expand(unit * self(right))
        elif isinstance(right, sp.BlockMatrix):
            right = self._blocks(right, statement)
        else:
            new = _multiplied(1 / unit, new)
            right = None if right is None else _multiplied(1 / unit, self(right))
            if right == 0 and left.is_Add:
                new = _without_content(new)
        if right is not None and (new == right or (statement.relation == "i dot" and right == 0)):
            return None
        return replace(statement, left=new, right=right)

    def _unit(self, statement: Statement) -> sp.Expr:
        """Return the scale of the subject of a statement: its left-hand side, an unknown's row, or a block."""
        if statement.row:
            return self.of_symbol(statement.row)
        if statement.rows:
            return self.of_symbol(statement.rows[0]) / self.of_symbol(statement.columns[0])
        left = statement.left
        assert left is not None
        if left.is_Symbol and not isinstance(left, _Named):
            return self.of_symbol(left.name)
        if isinstance(left, _LETTERED) or function_name(left) in ("cov", "variance", "conjugate"):
            scale, _ = _split(self(left))
            return scale
        return sp.S.One

    def _blocks(self, matrix: sp.BlockMatrix, statement: Statement) -> sp.BlockMatrix:
        rows, columns = matrix.blockshape
        named = ([self.of_symbol(name) for name in names] for names in (statement.rows, statement.columns))
        above, along = (scales or [sp.S.One] * count for scales, count in zip(named, (rows, columns), strict=True))

        def block(r: int, c: int) -> sp.MatrixExpr:
            inside = matrix.blocks[r, c]
            if isinstance(inside, sp.MatrixSymbol) and inside.name.startswith("A_"):
                return inside  # named only; the block itself is rescaled where it is listed
            return _multiplied(along[c] / above[r], self(inside))

        return sp.BlockMatrix([[block(r, c) for c in range(columns)] for r in range(rows)])

    def of_symbol(self, name: str) -> sp.Expr:
        """Return the ratio of an engine symbol to its printed symbol."""
        letters = self.letters
        if name in letters.engine:
            return letters.engine[name][1]
        block, right = re.fullmatch(r"A_(\d+)_(\d+)", name), re.fullmatch(r"q0_(\d+)", name)
        if block and self.unknowns:
            row, column = (self.of_symbol(self.unknowns[int(number) - 1].name) for number in block.groups())
            return row / column
        if right and self.unknowns:
            return self.of_symbol(self.unknowns[int(right[1]) - 1].name)
        match self.names.symbols.get(name):
            case PairName(kind="L", a=a, b=b) if b is not None:
                return letters.scale(b) ** -1 * letters.scale(a)
            case PairName(a=a, b=None):
                return letters.scale(a)
            case PairName(kind=kind, a=a, b=b) if b is not None:
                return letters.pair_scale(kind, a, b)
            case OverlapName(field=f):
                return letters.scale(f)
            case Drive(unknown=unknown) if unknown.b is not None:
                return letters.pair_scale(unknown.kind, unknown.a, unknown.b)
        return sp.S.One

    @ByKind
    def __call__(self, node: sp.Basic) -> sp.Basic:
        if not node.args or isinstance(node, _Named):
            return node
        changed = tuple(map(self, node.args))
        return node if changed == node.args else node.func(*changed)

    @__call__.on(sp.Symbol)
    def _(self, node: sp.Symbol) -> sp.Basic:
        if isinstance(node, Sector):
            return self.letters.same.get(node, node)
        return node if isinstance(node, _Named) else self.of_symbol(node.name) * self._first(node)

    def _first(self, node: sp.Symbol) -> sp.Symbol:
        """Return the first engine symbol that is printed with the symbol of a response; responses that share a symbol
        are equal.
        """
        meaning = self.names.symbols.get(node.name)
        if not isinstance(meaning, PairName) or meaning.kind != "R" or meaning.b is None:
            return node
        letter = self.letters.pair("R", meaning.a, meaning.b)
        return node if letter is None else self.alike.setdefault(letter[0], node)

    @__call__.on(sp.MatrixSymbol)
    def _(self, node: sp.MatrixSymbol) -> sp.Basic:
        return _multiplied(self.of_symbol(node.name), node)

    @__call__.on(sp.Transpose)
    def _(self, node: sp.Transpose) -> sp.Basic:
        scale, inner = _split_matrix(self(node.arg))
        return _multiplied(scale, sp.Transpose(inner))

    @__call__.on(sp.MatMul)
    def _(self, node: sp.MatMul) -> sp.Basic:
        scale: sp.Expr = sp.S.One
        factors: list[sp.MatrixExpr] = []
        for argument in node.args:
            if not argument.is_Matrix:
                scale *= self(argument)
                continue
            factor, inner = _split_matrix(self(argument))
            scale, factors = scale * factor, [*factors, inner]
        return _multiplied(scale, factors[0] if len(factors) == 1 else sp.MatMul(*factors))

    @__call__.on(sp.MatAdd)
    def _(self, node: sp.MatAdd) -> sp.Basic:
        return sp.MatAdd(*map(self, node.args))

    @__call__.on(FieldAt)
    def _(self, node: FieldAt) -> sp.Basic:
        return self.letters.scale(node.field) * self._rep(node)

    def _rep(self, node: FieldAt) -> FieldAt:
        return FieldAt(self.letters.rep(node.field), *node.args[1:])

    @__call__.on(Hat)
    def _(self, node: Hat) -> sp.Basic:
        if node.value.field in self.letters.carried:
            field, coefficient = self.letters.carried[node.value.field]
            return self(coefficient) * self(Hat(FieldAt(field, *node.value.args[1:])))
        return Hat(self._rep(node.value)) / self.letters.scale(node.value.field)

    @__call__.on(TauDerivative)
    def _(self, node: TauDerivative) -> sp.Basic:
        return self.letters.scale(node.value.field) * TauDerivative(self._rep(node.value))

    @__call__.on(Noise)
    def _(self, node: Noise) -> sp.Basic:
        return self.letters.noise_scale(node.field) * node

    @__call__.on(Correlation)
    def _(self, node: Correlation) -> sp.Basic:
        a, b = node.left, node.right
        letters = self.letters
        return letters.pair_scale("C", a, b) * Correlation(letters.rep(a), letters.rep(b), *node.times)

    @__call__.on(Response)
    def _(self, node: Response) -> sp.Basic:
        a, j = node.left, node.noise
        letter = self.letters.pair("R", a, j)
        first = self.responses.setdefault(letter[0], (self.letters.rep(a), j)) if letter else (self.letters.rep(a), j)
        return self.letters.pair_scale("R", a, j) * Response(*first, *node.times)

    @__call__.on(Dot)
    def _(self, node: Dot) -> sp.Basic:
        (left_scale, left), (right_scale, right) = _split(self(node.left)), _split(self(node.right))
        return left_scale * right_scale * Dot(left, right)

    @__call__.on(Mean)
    def _(self, node: Mean) -> sp.Basic:
        values = two_values(node.expression)
        if values is not None:  # prints as a correlation
            a, b = values
            scale = self.letters.pair_scale("C", a.field, b.field)
            return scale * Mean(sp.Mul(self._rep(a), self._rep(b)))
        scale, inner = _split(self(node.expression))
        return scale * Mean(inner)

    @__call__.on(Apply)
    def _(self, node: Apply) -> sp.Basic:
        scale, vector = _split(self(node.vector))
        return scale * Apply(node.matrix, node.transposed, vector)

    @__call__.on(sp.Sum)
    def _(self, node: sp.Sum) -> sp.Basic:
        return node.func(self(node.function), *node.limits)

    @__call__.on(AppliedUndef)
    def _(self, node: AppliedUndef) -> sp.Basic:
        name = node.func.__name__
        if name in ("sum_s", "conjugate", "transpose"):
            scale, inner = _split(self(node.args[0]))
            return (1 / scale if name == "conjugate" else scale) * node.func(inner)
        if name == "variance" and isinstance(node.args[0], FieldAt):
            scale, inner = _split(self(node.args[0]))
            return scale**2 * node.func(inner)
        if name not in ("mean", "cov", "d", "outer"):
            return node
        parts = [_split(self(argument)) for argument in node.args]
        scales = [scale for scale, _ in parts]
        scale = scales[0] / scales[1] if name == "d" else sp.Mul(*scales)
        return scale * node.func(*(inner for _, inner in parts))


def _merged(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return statements without repetitions; conjugates of responses that share a symbol are added."""
    kept: dict[object, Statement] = {}
    for statement in statements:
        left, right = statement.left, statement.right
        key: object = (left, statement.relation, right, statement.remark)
        if function_name(left) == "conjugate":
            key, before = left, kept.pop(left, None)
            added = [side for side in (before and before.right, right) if side is not None]
            statement = replace(statement, right=sp.Add(*added))
        kept.setdefault(key, statement)
    return tuple(kept.values())


def two_values(expression: sp.Expr) -> tuple[FieldAt, FieldAt] | None:
    """Return the two field values whose product an expression is; None for other expressions."""
    pair = product_of(expression)
    fields = all(not is_trait(value) and value.field.role != "constant" for value in pair or ())
    return pair if fields else None


def _is_scalar(factor: sp.Basic) -> bool:
    """Return whether a factor consists of parameters, sizes and numbers."""
    return all(
        isinstance(s, (Parameter, Sector, sp.Number, sp.NumberSymbol)) for s in factor.atoms(sp.Symbol, sp.Number)
    )


def _split(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return a product as a factor of parameters and numbers, and the rest."""
    factors = sp.Mul.make_args(expression)
    scale = [factor for factor in factors if _is_scalar(factor)]
    return sp.Mul(*scale), sp.Mul(*(factor for factor in factors if factor not in scale))


def _split_matrix(matrix: sp.MatrixExpr) -> tuple[sp.Expr, sp.MatrixExpr]:
    if not matrix.is_MatMul:
        return sp.S.One, matrix
    scale, rest = matrix.as_coeff_matrices()
    return scale, rest[0] if len(rest) == 1 else sp.MatMul(*rest)


def _multiplied(scale: sp.Expr, expression: sp.Basic) -> sp.Basic:
    """Multiply an expression or a matrix by a factor, term by term."""
    if scale == 1:
        return expression
    if expression.is_MatAdd:
        return sp.MatAdd(*(_multiplied(scale, term) for term in expression.args))
    if expression.is_Matrix:
        if expression.is_ZeroMatrix:
            return expression
        inner, matrix = _split_matrix(expression)
        product = sp.powdenest(scale * inner)
        if product == 1:
            return matrix
        factors = matrix.args if matrix.is_MatMul else (matrix,)
        return sp.MatMul(product, *factors)
    if expression.is_Add:
        return sp.Add(*(_multiplied(scale, term) for term in expression.args))
    return scale * expression


def _without_content(expression: sp.Expr) -> sp.Expr:
    """Return an expression that equals 0, divided by the powers of parameters common to all its terms."""
    terms = sp.Add.make_args(sp.expand(expression))
    powers = [_split(term)[0].as_powers_dict() for term in terms]
    bases = dict.fromkeys(base for some in powers for base in some if base.is_Symbol)
    content = sp.Mul(*(base ** min(some.get(base, 0) for some in powers) for base in bases))
    return sp.Add(*(term / content for term in terms))


class _Resolved:
    """The declared notation of a model, resolved in its derivation."""

    def __init__(self, derivation: Derivation):
        self.model = derivation.model
        probed = [probe.system for probe in derivation.probes.values()]
        self.systems: list[System] = probed or [derivation.system]
        self.resolvents = [probe.probe.resolvent.name for probe in derivation.probes.values()]
        self.known: dict[str, dict[sp.Symbol, None]] = {}
        self.printed: dict[sp.Symbol, str] = {}
        for system in self.systems:
            products = PrintedNames.of(system).products
            for f in (*(s.field for s in system.fields), *system.sources):
                product = products.get(f)
                self._add(f.name, f)
                if product is not None:
                    self._add(self._product(f, products), f)
        for symbol in (*self.model.parameters, *atoms(self.model, DECLARED)):
            self._add(symbol.name, symbol)
        self.letters = self._read()
        for system in self.systems:
            self._check_distinct(system)

    def _add(self, name: str, symbol: sp.Symbol) -> None:
        self.known.setdefault(name, {})[symbol] = None
        self.printed[symbol] = name

    def _product(self, f: Field, products: dict[Field, ProductName]) -> str:
        if f not in products:
            return str(f.name)
        product = products[f]
        return f"{product.matrix}{'^T' if product.transposed else ''} {self._product(product.argument, products)}"

    def _read(self) -> Lettering:
        letters = Lettering()
        found: dict[object, str] = {}
        entries: list[tuple[SourceLetter, str, tuple[str, ...]]] = []
        for entry in self.model.notation:
            kind, names = _parsed(entry)
            entries.append((entry, kind, names))
        rank = {"": 0, "u": 1, "hat": 1, "C": 2, "R": 2}
        rows: dict[str, LetterRow] = {}
        for entry, kind, names in sorted(entries, key=lambda e: rank[e[1]]):
            given = None if entry.scale is None else entry.scale
            for thing in self._things(entry, kind, names):
                other = found.setdefault((kind, thing), entry.key)
                if other != entry.key:
                    raise DeclarationError(f"notation: {other!r} and {entry.key!r} name the same; leave one out")
                scale = self._put(letters, entry, kind, thing, given)
            rows[entry.key] = LetterRow(entry.key, scale, entry.latex)
        self._join(letters)
        return replace(letters, rows=tuple(rows[entry.key] for entry in self.model.notation))

    def _things(self, entry: SourceLetter, kind: str, names: tuple[str, ...]) -> list[object]:
        """Return the objects that a key names; there is at least one."""
        if kind == "" and names[0] in ("z", "G"):
            return ["z"] if names[0] == "z" else list(dict.fromkeys(self.resolvents))
        found = [self._named(entry, name) for name in names]
        if kind == "":
            return list(found[0])
        fields = [[f for f in some if isinstance(f, Field)] for some in found]
        if kind in ("u", "hat"):
            things: list[object] = [
                f for f in fields[0] if kind == "hat" or any(_gets_noise(f, system) for system in self.systems)
            ]
        else:
            things = [(a, b) for a in fields[0] for b in fields[1] if self._together(kind, a, b)]
        if not things:
            what = {"u": "has no noise of its own", "hat": "is not a field"}.get(kind, "is not an order parameter")
            raise DeclarationError(f"notation: {entry.key!r} {what} in {self.model.setting}; leave it out")
        return things

    def _together(self, kind: str, a: Field, b: Field) -> bool:
        """Return whether two fields have a correlation, or one has a response to the other's noise."""
        inside = (s for s in self.systems if all(any(x == f for x in _fields(s)) for f in (a, b)))
        return a.sector == b.sector and any(kind == "C" or _has_noise(b, system) for system in inside)

    def _named(self, entry: SourceLetter, name: str) -> dict[sp.Symbol, None]:
        if name not in self.known:
            near = get_close_matches(name, [*self.known, "z", "G"], n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else "`derive show` prints the names"
            raise DeclarationError(f"notation: {entry.key!r} names nothing in {self.model.setting}; {hint}")
        return self.known[name]

    def _put(self, letters: Lettering, entry: SourceLetter, kind: str, thing: object, given: sp.Expr | None) -> sp.Expr:
        """Add a symbol; return the ratio of the named object to that symbol."""
        match kind, thing:
            case "", str(name):
                letters.engine[name] = entry.latex, sp.S.One if given is None else given
                return letters.engine[name][1]
            case "", Field() as f:
                letters.words[f] = entry.latex
                letters.scales[f] = sp.S.One if given is None else given
                return letters.scale(f)
            case "", sp.Symbol() as symbol:
                if given is not None:
                    raise DeclarationError(
                        f"notation: {entry.key!r} has a scale; only fields and objects derived from them have one"
                    )
                letters.words[symbol] = entry.latex
                return sp.S.One
            case "hat", Field() as f:
                letters.hats[f] = entry.latex
                return 1 / letters.scale(f)
            case "u", Field() as f:
                letters.noises[f] = entry.latex, given
                return letters.noise_scale(f)
            case _, (Field() as a, Field() as b):
                letters.pairs[kind, a, b] = entry.latex, given
                return letters.pair_scale(kind, a, b)
        raise AssertionError(entry.key)

    def _join(self, letters: Lettering) -> None:
        """Let one field represent all fields with the same symbol that equal it by the equations."""
        for system in self.systems:
            table = {f.field: f for f in system.fields}
            for f in system.fields:
                other = _copied(f)
                if other is None or f.field not in letters.words:
                    continue
                coefficient, source = other
                equal = letters.words.get(source) == letters.words[f.field]
                if equal and source in table and letters.scale(f.field) == coefficient * letters.scale(source):
                    letters.same[f.field] = letters.rep(source)
            for p in (f.field for f in system.fields if f.product is not None):
                if p not in letters.words and p not in letters.hats:
                    self._carry(letters, system, p)
            for size in (s for s in system.sectors if s in letters.words):
                alike = (s for s in system.sectors if s.ratio == size.ratio)
                letters.same[size] = next(s for s in alike if letters.words.get(s) == letters.words.get(size))
        for kind, a, b in list(letters.pairs):
            moved = kind, letters.rep(a), b if kind == "R" else letters.rep(b)
            if moved != (kind, a, b):
                latex, given = letters.pairs.pop((kind, a, b))
                letters.pairs.setdefault(moved, (latex, given))

    def _carry(self, letters: Lettering, system: System, p: Field) -> None:
        """Note the field whose response field is a multiple of that of a product: i hat p p - i hat f c p in the action
        gives hat p = c hat f if p is integrated over."""
        entered = entered_once(system, p)
        if entered is not None and entered[0] in letters.words and not _is_shifted(system, entered[0]):
            letters.carried[p] = entered

    def _check_distinct(self, system: System) -> None:
        """Refuse a symbol shared by two objects of one derivation."""
        letters = self.letters
        owners: dict[str, str] = {}

        def claim(latex: str, what: str) -> None:
            other = owners.setdefault(_bare(latex), what)
            if other != what:
                raise DeclarationError(
                    f"notation of {self.model.setting}: {other} and {what} have the same letter {latex}; rename one"
                )

        def to_noise(a: Field, j: Field) -> str:
            """Return the object to which a response refers: the noise, or the field whose equation is the only one with
            it."""
            entered = entered_once(system, j)
            if entered is None:
                return f"R[{self.printed[a]},{self.printed[j]}]"
            field, coefficient = entered
            scale = letters.pair_scale("R", a, j) / coefficient
            return f"R[{self.printed[a]},{self.printed[j]}]" if scale.has(sp.zoo) else f"{scale} R[{a},{field}]"

        fields = dict.fromkeys(letters.rep(f) for f in _fields(system))
        own = atoms(self.model, Field)
        for symbol in (*self.model.parameters, *system.disorder, *system.sectors):
            what = f"a size of {symbol.ratio}" if isinstance(symbol, Sector) else symbol.name
            claim(letters.words.get(symbol, latex_symbol(symbol)), what)
        for f in fields:
            if f in letters.words or f in own:
                claim(letters.words.get(f, latex_symbol(f)), self.printed[f])
            if f in letters.words:
                claim(letters.hats.get(f, hatted(letters.words[f])), f"hat {self.printed[f]}")
            elif f in letters.hats:
                claim(letters.hats[f], f"hat {self.printed[f]}")
            if f in letters.noises:
                claim(letters.noises[f][0], f"u[{self.printed[f]}]")
        here = set(_fields(system))
        for kind, a, b in letters.pairs:
            if {a, b} <= here:
                plain = f"C[{self.printed[a]},{self.printed[b]}]"
                claim(letters.pairs[kind, a, b][0], to_noise(a, b) if kind == "R" else plain)
        for name, (latex, _) in letters.engine.items():
            claim(latex, name)


def _fields(system: System) -> tuple[Field, ...]:
    return (*(f.field for f in system.fields), *system.sources)


def _has_noise(f: Field, system: System) -> bool:
    return any(s.field == f and s.product is not None for s in system.fields)


def _gets_noise(f: Field, system: System) -> bool:
    """Return whether a field is a product with a random matrix, or its equation contains such products."""
    return _has_noise(f, system) or any(
        term.past is None and _has_noise(term.vector.field, system)
        for s in system.fields
        for term in s.rule.terms
        if s.field == f and not s.shift
    )


def _is_shifted(system: System, f: Field) -> bool:
    """Return whether the equation of a field gives its value at a later time than that of the right-hand side."""
    return any(s.shift for s in system.fields if s.field == f)


def _copied(f: SystemField) -> tuple[sp.Expr, Field] | None:
    """Return the coefficient and the field of which a field is a multiple at the same time; None if it is not one."""
    if f.starts or f.shift or f.derivative or not isinstance(f.rule, LinearRule) or len(f.rule.terms) != 1:
        return None
    (term,) = f.rule.terms
    if term.pair is not None or term.past is not None or term.mixing is not None or term.vector.time != f.field.clock:
        return None
    return term.coefficient, term.vector.field


def entered_once(system: System, j: Field) -> tuple[Field, sp.Expr] | None:
    """Return the one field whose equation has a product with a random matrix, with its coefficient; None otherwise."""
    users = [
        (f.field, term)
        for f in system.fields
        for rule in f.rules
        for term in rule.terms
        if j in {value.field for value in (term.vector, *(term.pair or ()))}
    ]
    if any(j in {v.field for law in f.rule.laws for v in law.atoms(FieldAt)} for f in system.fields):
        return None
    if len(users) != 1 or users[0][1].pair is not None or users[0][1].past is not None:
        return None
    if any(f.product is not None and f.product.argument == j for f in system.fields):
        return None
    return users[0][0], users[0][1].coefficient


def _parsed(entry: SourceLetter) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a key and its names: x, hat x, u[x], C[a,b] or R[a,j]."""
    pair = re.fullmatch(r"([CRu])\[(.*)\]", entry.key)
    if pair:
        names = tuple(name.strip() for name in pair[2].split(","))
        if len(names) == (1 if pair[1] == "u" else 2):
            return pair[1], names
        raise DeclarationError(f"notation: {entry.key!r} has {len(names)} names; write u[x], C[a,b] or R[a,j]")
    if entry.key.startswith("hat "):
        return "hat", (entry.key[4:].strip(),)
    return "", (entry.key,)


def hatted(latex: str) -> str:
    """Return a letter with a hat over its base: \\hat{\\chi}^1."""
    index = re.search(r"[_^]", latex)
    base, rest = (latex, "") if index is None else (latex[: index.start()], latex[index.start() :])
    return rf"\hat{{{base}}}{rest}"


def plain_letter(latex: str) -> str:
    """Return a letter as plain ASCII: \\chi^1 as chi^1, R_{hr}^0 as R_hr^0, \\hat{h}^0 as hat h^0."""
    text = re.sub(r"\\(?:wide)?hat\s*\{([^{}]*)\}", r"hat \1", LETTER.sub("", latex))
    text = re.sub(r"\\star\b|\\ast\b", "*", text)
    text = re.sub(r"(?<=[A-Za-z0-9}])\\(?=[A-Za-z])", r" \\", text)
    text = re.sub(r"\\([A-Za-z]+)", r"\1 ", text)
    text = re.sub(r"\\[,;! ]", " ", text)
    text = re.sub(r"\{\s*(\w+)\s*\}", r"\1", text)
    text = re.sub(r"\s+(?=[_^,)\]}]|$)", "", re.sub(r"(?<=[{(\[])\s+", "", text))
    return re.sub(r"^\{(.*)\}$", r"\1", " ".join(text.split()))


def _bare(latex: str) -> str:
    """Return LaTeX in a form for comparison: without spaces, and without braces around single letters."""
    return re.sub(r"\s+|\{(\w)\}", lambda m: m[1] or "", LETTER.sub("", latex)).strip("{}")


def letters_of(model: Model, notation: str) -> Lettering | None:
    """Return the notation that a model declares; None for its own names."""
    if notation not in NOTATIONS:
        raise ParameterError(f"notation={notation} is not known: it must be {' or '.join(NOTATIONS)}")
    return None if notation == MODEL else Lettering.of(derive_model(model))
