"""Random matrices, trained weights, and matrix expressions made of them.

Matrices are deliberately separate from SymPy's scalars: only sums, scalar multiples, transposes and products exist, so
a declaration cannot use disorder in any other way by accident.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import sympy as sp
from sympy.printing.str import StrPrinter

from derive.errors import DeclarationError
from derive.language.cures import cure_of_call
from derive.language.data import DataAt, Unusable
from derive.language.expressions import declared, operand, refuse_the_rest, word
from derive.language.symbols import Clock, Parameter, Sector, _Named, exact, other_symbols
from derive.language.vectors import Apply, Each, Mean, Mix, Project, Total, axes_of, named_fields, sector_of, shown
from derive.support.display import DisplayedFormula, DisplayedNode


class Disorder(_Named):
    """A Gaussian random matrix. Entries have mean 0 and the given variance.

    Symmetric ones have <M_ij M_kl> = variance (d_ik d_jl + d_il d_jk); with variance 1/D this is the GOE with spectrum
    [-2, 2]. With a `fresh` clock the matrix is drawn anew at each step.
    """

    __slots__ = ()

    def __new__(
        cls,
        name: str,
        rows: Sector,
        columns: Sector,
        variance: Any = 1,
        symmetric: bool = False,
        fresh: Clock | None = None,
        latex: str = "",
    ) -> Self:
        Sector.check(f"matrix {name}", rows, columns)
        if fresh is not None:
            Clock.check(f"matrix {name}", fresh)
        size = exact(variance)
        unknown = other_symbols(size, Parameter, Sector)
        if unknown:
            raise DeclarationError(
                f"matrix {name}: its variance {size} depends on {unknown[0]}; use numbers, parameters and sizes only"
            )
        if size.is_negative:
            raise DeclarationError(f"matrix {name}: its variance {size} is negative; give a positive one, such as 1")
        return super().__new__(cls, name, (rows, columns, size, symmetric, fresh), latex)

    rows = property(lambda self: self.payload[0])
    columns = property(lambda self: self.payload[1])
    variance = property(lambda self: self.payload[2])
    symmetric = property(lambda self: self.payload[3])
    fresh = property(lambda self: self.payload[4])
    shape = property(lambda self: self.payload[:2])
    random = disorder = property(lambda self: self)
    weights = time = property(lambda self: None)


class MatrixAt(DisplayedNode, sp.Expr):
    """A matrix at a time."""

    owner = property(lambda self: self.args[0])
    time = property(lambda self: self.args[1])
    weights = random = disorder = property(lambda self: None)
    shape = property(lambda self: self.args[0].shape)

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"{self.args[0]}({printer._print(self.time)})"


class DisorderAt(MatrixAt):
    """The draw of a fresh random matrix at a time."""

    disorder = property(lambda self: self.args[0])


class Weights(_Named):
    """A matrix with an initial value and an update rule."""

    __slots__ = ()

    def __new__(cls, name: str, rows: Sector, columns: Sector, clock: Clock, latex: str = "") -> Self:
        Sector.check(f"matrix {name}", rows, columns)
        Clock.check(f"matrix {name}", clock)
        return super().__new__(cls, name, (rows, columns, clock), latex)

    clock = property(lambda self: self.payload[2])
    timed, given_by = True, ""
    shape = property(lambda self: self.payload[:2])


class WeightsAt(MatrixAt):
    """The value of trained weights at a time."""

    weights = property(lambda self: self.args[0])


def _as_it_is(scale: sp.Expr, part: MatrixExpression) -> sp.Expr:
    return scale


Scaling = Callable[[sp.Expr, "MatrixExpression"], sp.Expr]
"""The new coefficient of a term, from the old one and its matrix."""


@dataclass(frozen=True, repr=False)
class MatrixExpression(DisplayedFormula, ABC):
    """Base of all matrix expressions: `rows` x `columns`, with +, -, scalar *, /, @ and .T."""

    rows: Sector
    columns: Sector

    weights = property(lambda self: None, doc="The trained weights if it is these at a time, or their transpose.")
    random = property(lambda self: None, doc="The random matrix if it is a fixed one, or its transpose.")
    low_rank = property(lambda self: False, doc="Whether it is an outer product.")
    is_diagonal = property(lambda self: False, doc="Whether it is a diagonal matrix.")
    time = property(lambda self: None, doc="The time at which it is taken, if it depends on time.")
    transposed = property(lambda self: False)

    @property
    @abstractmethod
    def T(self) -> MatrixExpression:
        """The transpose."""

    @abstractmethod
    def applied_to(self, vector: sp.Expr) -> sp.Expr:
        """Return the matrix times a vector, as an elementwise expression."""

    @property
    @abstractmethod
    def expressions(self) -> list[sp.Basic]:
        """Return all SymPy expressions inside."""

    @property
    def as_sum(self) -> tuple[tuple[sp.Expr, MatrixExpression], ...]:
        """Return its terms, each after its coefficient; none for zero."""
        return ((sp.S.One, self),)

    @property
    def as_product(self) -> tuple[MatrixExpression, ...]:
        """Return its factors."""
        return (self,)

    @property
    def scaled_factors(self) -> tuple[sp.Expr, tuple[MatrixExpression, ...]]:
        """Return its coefficient and factors."""
        return sp.S.One, self.as_product

    @abstractmethod
    def mapped(self, change: Callable[[sp.Basic], Any]) -> MatrixExpression:
        """Return the matrix with a function applied to every SymPy expression in it."""

    @property
    def leaves(self) -> list[MatrixExpression]:
        """Return the matrices in it that are neither sums nor products."""
        return [self]

    def rebuilt(
        self, part: Callable[[MatrixExpression], MatrixExpression], scale: Scaling = _as_it_is
    ) -> MatrixExpression:
        """Return the sum or product of its changed parts; itself if it has none."""
        return self

    def __add__(self, other: Any) -> MatrixExpression:
        if isinstance(other, MatrixExpression):
            return SumOfMatrices.of((sp.S.One, self), (sp.S.One, other))
        value = exact(other)
        if value == 0:
            return self
        why = f"cannot add {shown(value)} to the matrix {self}; matrices add to matrices only"
        if sector_of(named_fields(value)) is not None:
            raise DeclarationError(f"{why}, and the matrix of two vectors is outer(a, b), not a * b")
        raise DeclarationError(f"{why}; a multiple of the identity is spectrum(..., plus='name of an observable')")

    __radd__ = __add__

    def __neg__(self) -> MatrixExpression:
        return SumOfMatrices.of((sp.S.NegativeOne, self))

    def __sub__(self, other: Any) -> MatrixExpression:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> MatrixExpression:
        return (-self).__add__(other)

    def __mul__(self, scalar: Any) -> MatrixExpression:
        return _scaled(_scalar(scalar, self), self)

    __rmul__ = __mul__

    def __truediv__(self, scalar: Any) -> MatrixExpression:
        divisor = _scalar(scalar, self)
        if divisor == 0:
            raise DeclarationError(f"{self} is divided by 0")
        return _scaled(1 / divisor, self)

    def __pow__(self, exponent: Any) -> NoReturn:
        raise DeclarationError(
            f"{self} enters nonlinearly (power {exponent}); disorder may only be applied to vectors, "
            "so write products with @ and powers as repeated products"
        )

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, MatrixExpression):
            if self.columns != other.rows:
                raise DeclarationError(
                    f"{self} @ {other}: {self.columns} columns meet {other.rows} rows; check the sectors or use .T"
                )
            return product_of(self, other)
        vector = named_fields(exact(other))
        where = f"{self} @ ({shown(vector)})"
        sector = sector_of(vector, where)
        if sector is None:
            raise DeclarationError(f"{where}: the right-hand side is not a vector; matrices multiply numbers with *")
        if sector != self.columns:
            raise DeclarationError(
                f"{where}: the matrix takes vectors over {self.columns}, but this one lives on {sector}; "
                "check the sectors or use .T"
            )
        return declared(self.applied_to(vector))

    def __rmatmul__(self, other: Any) -> NoReturn:
        raise DeclarationError(
            f"{operand(other)} @ {self}: a matrix goes before the vector; write {self.T} @ v for v^T {self}"
        )

    def __xor__(self, other: Any) -> NoReturn:
        raise DeclarationError(f"{self} ^ {other}: products of matrices are written with @, powers of numbers with **")

    def _no_meaning(self, *_: object) -> NoReturn:
        raise Unusable(
            f"the matrix {self} can be added, multiplied by numbers with *, transposed with .T and applied with @, and "
            f"nothing else; {cure_of_call(self) or 'functions such as tanh act on fields, entry by entry'}"
        )

    __len__ = __bool__ = _sympy_ = _no_meaning

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        """Let NumPy scalars multiply matrices; other NumPy functions are refused."""
        reflected = {"multiply": self.__rmul__, "add": self.__radd__, "subtract": self.__rsub__}
        if ufunc.__name__ in reflected and method == "__call__" and inputs[1] is self:
            return reflected[ufunc.__name__](inputs[0])
        return self._no_meaning()


refuse_the_rest(MatrixExpression, MatrixExpression._no_meaning)
shown.on(MatrixExpression)(str)


def _scalar(value: Any, matrix: MatrixExpression) -> sp.Expr:
    if isinstance(value, MatrixExpression):
        raise DeclarationError(
            f"{value} and {matrix} are multiplied entry by entry, so disorder would enter nonlinearly; "
            "use @ for the matrix product"
        )
    scalar = exact(value)
    if sector_of(named_fields(scalar)) is not None:
        raise DeclarationError(
            f"the vector {shown(scalar)} and the matrix {matrix} are multiplied with *; write "
            f"mean({shown(scalar)}) for an average over sites, {matrix} @ v for a product with a vector, and "
            "outer(a, b) for a matrix"
        )
    return scalar


def _scaled(scalar: sp.Expr, matrix: MatrixExpression) -> MatrixExpression:
    """Return the multiple of a matrix. Factors that depend on data or labels go into the vectors of outer products."""
    axes = axes_of(scalar, f"({shown(scalar)}) * ({matrix})")
    if not axes and not scalar.has(DataAt, Total, Mix):
        return SumOfMatrices.of((scalar, matrix))
    outside, inside = scalar.as_independent(Mean, DataAt, Total, Mix, as_Add=False)
    parts = []
    for scale, part in matrix.as_sum:
        if not part.low_rank and not axes and not _outside_totals(scalar).has(DataAt, Mix):
            # a sum over labels is a number
            parts.append((scalar * scale, part))
            continue
        if not part.low_rank:
            raise DeclarationError(
                f"{shown(scalar)} multiplies {part}: the coefficients of a matrix are free of data and labels; "
                "only outer products may have such factors, as if they stood inside outer(...)"
            )
        if not set(axes) <= set(axes_of(part.expressions[0])):
            raise DeclarationError(
                f"{shown(scalar)} multiplies {part}: it has the axes {', '.join(map(str, axes))}, over which this "
                "outer product has no sum; wrap it in total(...) to sum over them, or give the vectors the same axes"
            )
        left, right = part.expressions
        parts.append((outside * scale, Dyad(part.rows, part.columns, inside * left, right)))
    return SumOfMatrices.of(*parts) if parts else matrix


def _outside_totals(scalar: sp.Expr) -> sp.Expr:
    """Return a scalar without its sums over labels."""
    return scalar.xreplace({node: sp.S.One for node in scalar.atoms(Total)})


def product_of(left: MatrixExpression, right: MatrixExpression) -> MatrixExpression:
    """Return left @ right in canonical form: nested products are flattened, and their scalars come first."""
    if not left.as_sum or not right.as_sum:
        return SumOfMatrices(left.rows, right.columns, ())
    (before, first), (after, second) = left.scaled_factors, right.scaled_factors
    product = ProductOfMatrices(left.rows, right.columns, (*first, *second))
    return (
        product if before * after == 1 else SumOfMatrices(product.rows, product.columns, ((before * after, product),))
    )


@dataclass(frozen=True, repr=False)
class MatrixAtom(MatrixExpression):
    """A random matrix or trained weights, or the transpose."""

    symbol: Disorder | DisorderAt | WeightsAt
    transposed: bool = False

    owner = property(lambda self: self.symbol.owner)
    time = property(lambda self: self.symbol.time)
    weights = property(lambda self: self.symbol.weights)
    random = property(lambda self: self.symbol.random)

    @property
    def T(self) -> MatrixExpression:
        if self.random is not None and self.random.symmetric:
            return self
        return MatrixAtom(self.columns, self.rows, self.symbol, not self.transposed)

    def applied_to(self, vector: sp.Expr) -> sp.Expr:
        return Apply(self.symbol, self.transposed, vector)

    @property
    def expressions(self) -> list[sp.Basic]:
        return [self.symbol]

    def mapped(self, change: Callable[[sp.Basic], Any]) -> MatrixExpression:
        return MatrixAtom(self.rows, self.columns, change(self.symbol), self.transposed)

    def __call__(self, time: Any) -> MatrixExpression:
        if self.random is None or self.random.fresh is None:
            raise DeclarationError(
                f"{self} does not change in time: write {self}, as in {self} @ v, not {self}({time!s})"
            )
        return MatrixAtom(self.rows, self.columns, DisorderAt(self.symbol, exact(time)), self.transposed)

    def __str__(self) -> str:
        return f"{self.symbol}{'.T' if self.transposed else ''}"


@dataclass(frozen=True, repr=False)
class Evolving(DisplayedFormula):
    """Weights without a time: `W(t)` is a matrix."""

    weights: Weights

    def __call__(self, time: Any = None) -> MatrixExpression:
        if time is None:
            raise self.untimed()
        rows, columns = self.weights.shape
        return MatrixAtom(rows, columns, WeightsAt(self.weights, exact(time)))

    def untimed(self) -> Unusable:
        """Return the error for weights that are used without a time."""
        return Unusable(f"{self} changes in time: write {self}({self.weights.clock}), or {self}(0) for its start")

    def _untimed(self, *_: object) -> NoReturn:
        raise self.untimed()

    __neg__ = _sympy_ = _untimed
    T = property(_untimed)

    def __str__(self) -> str:
        return str(self.weights)


refuse_the_rest(Evolving, Evolving._untimed)


@dataclass(frozen=True, repr=False)
class Dyad(MatrixExpression):
    """The outer product of two vectors; if they have labels, summed over the labels."""

    left: sp.Expr
    right: sp.Expr

    low_rank = property(lambda self: True)

    @property
    def T(self) -> MatrixExpression:
        return Dyad(self.columns, self.rows, self.right, self.left)

    def applied_to(self, vector: sp.Expr) -> sp.Expr:
        return Project(self.left, self.right, vector)

    @property
    def expressions(self) -> list[sp.Basic]:
        return [self.left, self.right]

    def mapped(self, change: Callable[[sp.Basic], Any]) -> MatrixExpression:
        return Dyad(self.rows, self.columns, change(self.left), change(self.right))

    def __str__(self) -> str:
        return f"outer({shown(self.left)}, {shown(self.right)})"


@dataclass(frozen=True, repr=False)
class SumOfMatrices(MatrixExpression):
    """A linear combination of matrices of one shape."""

    terms: tuple[tuple[sp.Expr, MatrixExpression], ...]

    @staticmethod
    def of(*parts: tuple[sp.Expr, MatrixExpression]) -> MatrixExpression:
        """Return the linear combination of (coefficient, matrix) pairs."""
        rows, columns = parts[0][1].rows, parts[0][1].columns
        total: dict[MatrixExpression, sp.Expr] = {}
        for coefficient, matrix in parts:
            if (matrix.rows, matrix.columns) != (rows, columns):
                raise DeclarationError(
                    f"cannot add {parts[0][1]} ({rows} x {columns}) and {matrix} ({matrix.rows} x {matrix.columns})"
                )
            for scale, part in matrix.as_sum:
                total[part] = total.get(part, sp.S.Zero) + coefficient * scale
        return SumOfMatrices(rows, columns, tuple((scale, part) for part, scale in total.items() if scale != 0))

    @property
    def T(self) -> MatrixExpression:
        return SumOfMatrices(self.columns, self.rows, tuple((coefficient, part.T) for coefficient, part in self.terms))

    def applied_to(self, vector: sp.Expr) -> sp.Expr:
        return sp.Add(*(coefficient * part.applied_to(vector) for coefficient, part in self.terms))

    @property
    def expressions(self) -> list[sp.Basic]:
        return [e for scale, part in self.terms for e in (scale, *part.expressions)]

    @property
    def as_sum(self) -> tuple[tuple[sp.Expr, MatrixExpression], ...]:
        return self.terms

    @property
    def scaled_factors(self) -> tuple[sp.Expr, tuple[MatrixExpression, ...]]:
        factors = self.terms[0][1].as_product if len(self.terms) == 1 else ()
        return (self.terms[0][0], factors) if len(factors) > 1 else (sp.S.One, (self,))

    def mapped(self, change: Callable[[sp.Basic], Any]) -> MatrixExpression:
        return self.rebuilt(lambda part: part.mapped(change), lambda scale, _: change(scale))

    @property
    def leaves(self) -> list[MatrixExpression]:
        return [leaf for _, part in self.terms for leaf in part.leaves]

    def rebuilt(
        self, part: Callable[[MatrixExpression], MatrixExpression], scale: Scaling = _as_it_is
    ) -> MatrixExpression:
        return SumOfMatrices(
            self.rows, self.columns, tuple((scale(factor, matrix), part(matrix)) for factor, matrix in self.terms)
        )

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for scale, part in self.terms:
            negative = bool(scale.as_coeff_Mul()[0].is_negative)
            size = -scale if negative else scale
            factor = "" if size == 1 else f"({shown(size)})*" if size.is_Add else f"{shown(size)}*"
            sign = (" - " if negative else " + ") if text else "-" if negative else ""
            text += f"{sign}{factor}{part}"
        return text


@dataclass(frozen=True, repr=False)
class ProductOfMatrices(MatrixExpression):
    """A product of matrices, leftmost first."""

    factors: tuple[MatrixExpression, ...]

    @property
    def T(self) -> MatrixExpression:
        return ProductOfMatrices(self.columns, self.rows, tuple(factor.T for factor in reversed(self.factors)))

    def applied_to(self, vector: sp.Expr) -> sp.Expr:
        for factor in reversed(self.factors):
            vector = factor.applied_to(vector)
        return vector

    @property
    def expressions(self) -> list[sp.Basic]:
        return [e for factor in self.factors for e in factor.expressions]

    @property
    def as_product(self) -> tuple[MatrixExpression, ...]:
        return self.factors

    def mapped(self, change: Callable[[sp.Basic], Any]) -> MatrixExpression:
        return self.rebuilt(lambda factor: factor.mapped(change))

    @property
    def leaves(self) -> list[MatrixExpression]:
        return [leaf for factor in self.factors for leaf in factor.leaves]

    def rebuilt(
        self, part: Callable[[MatrixExpression], MatrixExpression], scale: Scaling = _as_it_is
    ) -> MatrixExpression:
        return ProductOfMatrices(self.rows, self.columns, tuple(map(part, self.factors)))

    def __str__(self) -> str:
        return " @ ".join(
            f"({factor})" if isinstance(factor, SumOfMatrices) else str(factor) for factor in self.factors
        )


@word
def gaussian(
    name: str, rows: Sector, columns: Sector, variance: Any = 1, fresh: Clock | None = None, latex: str = ""
) -> MatrixAtom:
    """Return a rows x columns matrix of independent Gaussian entries.

    With `fresh` it is drawn anew at each step: write X(t). `latex` sets its symbol in formulas.

    >>> from derive import gaussian, normal, parameter, positive, sectors
    >>> D, N = sectors("D", N=parameter("nu", default=2.0, domain=positive))
    >>> W, x = gaussian("W", N, D), normal("x", D)
    >>> W @ x
    W @ x
    >>> W.T @ W / N
    1/N*W.T @ W
    """
    return MatrixAtom(rows, columns, Disorder(name, rows, columns, variance, fresh=fresh, latex=latex))


@word
def goe(name: str, sector: Sector, variance: Any = 1, latex: str = "") -> MatrixAtom:
    """Return a symmetric Gaussian matrix with off-diagonal variance `variance`/size and twice that on the diagonal.

    With variance 1 its spectrum is [-2, 2]. `latex` sets its symbol in formulas.

    >>> from derive import goe, normal, outer, parameter, sectors
    >>> D, gamma = sectors("D"), parameter("gamma", default=2.0)
    >>> v = normal("v", D)
    >>> goe("M", D) + gamma / D * outer(v, v)
    M + gamma/D*outer(v, v)
    """
    Sector.check(f"matrix {name}", sector)
    law = Disorder(name, sector, sector, exact(variance) / sector, symmetric=True, latex=latex)
    return MatrixAtom(sector, sector, law)


@word
def weights(name: str, rows: Sector, columns: Sector, clock: Clock, latex: str = "") -> Evolving:
    """Return a matrix that changes during training: declare Eq(W(0), ...) and Eq(W(t + 1), ...).

    `latex` sets its symbol in formulas.

    >>> from derive import Eq, goe, normal, outer, parameter, sectors, training_clock, weights, whole_positive
    >>> T = parameter("T", default=3, domain=whole_positive)
    >>> D, t = sectors("D"), training_clock("t", steps=T)
    >>> M, v = weights("M", D, D, t), normal("v", D)
    >>> Eq(M(0), goe("M0", D))
    Eq(M(0), M0)
    >>> Eq(M(t + 1), M(t) + outer(v, v) / D)
    Eq(M(t + 1), M(t) + 1/D*outer(v, v))
    """
    return Evolving(Weights(name, rows, columns, clock, latex))


@word
def outer(left: Any, right: Any) -> MatrixExpression:
    """Return the matrix left right^T; if the vectors have labels, summed over the labels.

    Both have the same axes, or the axes of one are among those of the other, which is then summed over its further
    axes. A factor with the same labels, as in mean(left**2) * outer(left, right), is inside that sum.

    >>> from derive import normal, outer, sectors
    >>> D = sectors("D")
    >>> outer(normal("a", D), normal("b", D)).T
    outer(b, a)
    """
    left, right = named_fields(exact(left)), named_fields(exact(right))
    where = f"outer({shown(left)}, {shown(right)})"
    rows, columns = sector_of(left, where), sector_of(right, where)
    if rows is None or columns is None:
        raise DeclarationError(f"{where}: both arguments must be vectors, such as fields at a time")
    if left.has(Apply) or right.has(Apply):
        raise DeclarationError(f"{where}: give W @ v a field of its own and use that field here")
    if left.has(Each) or right.has(Each):
        raise DeclarationError(f"{where}: each(...) is for observe={{...}} only")
    own, other = (set(axes_of(side, where)) for side in (left, right))
    if own != other and not (own and other and (own < other or other < own)):
        listings = (", ".join(sorted(map(str, axes))) or "none" for axes in (own, other))
        raise DeclarationError(
            f"{where}: the axes of the first are {next(listings)}, those of the second {next(listings)}, but labels "
            f"are summed jointly; give both vectors the same axes"
        )
    for axis in sorted(own ^ other, key=str):
        left, right = (Total(left, axis), right) if axis in own else (left, Total(right, axis))
    return Dyad(rows, columns, left, right)
