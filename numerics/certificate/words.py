"""Large random matrices and vectors as sums of words, with traces by non-crossing Wick pairings (free probability).

A matrix is a linear combination of words in independent Gaussian and diagonal matrices, plus outer products of vectors.
A vector is a sum of words applied to drawn vectors, or an entrywise function of such sums. By Wick's theorem at leading
order in the sizes, each pair of Gaussian matrices in a word encloses a subword whose trace factors out. Anything else,
such as a random matrix applied to a function of itself, is unknown: it is represented by a vector without terms, whose
means are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any, Literal

import numpy as np

from numerics.certificate.recording import are_finite, as_number, entrywise, is_number, table

Word = tuple[int, ...]
"""Letters: 2k for random matrix k, 2k + 1 for its transpose, and -1 - k for diagonal matrix k."""
Terms = dict[tuple[Word, int], np.ndarray]
"""Coefficients by (word, index of the drawn vector): one row per label of that, one column per label of the result."""
MOST_TERMS = 16
"""Terms of a vector above which it counts as unknown."""
LONGEST_WORD = 10
"""Letters of a word in a vector above which it counts as unknown."""
MOST_WORDS = 256
"""Words of a matrix above which it is not expanded."""
MOST_ARGUMENTS = 3
"""Gaussian arguments of a function above which its mean counts as unknown."""
NODES = ((0, 0), (101, 151), (57, 81), (31, 41))
"""Quadrature nodes per axis of a coarse and a fine rule, by number of axes."""
REACH = 8.5
"""Cutoff of the quadrature, in standard deviations."""
CONVERGED = 1e-7
"""Tolerated difference between the coarse and the fine rule."""


class NotWritten(Exception):
    """Raised when an expression is not a sum of words; the argument names it."""


@dataclass(frozen=True)
class Random:
    """A Gaussian random matrix: independent entries, or symmetric."""

    rows: int
    columns: int
    variance: float
    symmetric: bool


@dataclass(frozen=True)
class DrawnLetter:
    """A drawn vector to which words are applied, with entries independent between sites.

    Attributes:
        kind: "normal", "constant" (ones) or "other".
        by: the random matrix of which it is the product with a function.
        made_with: all random matrices on which it depends.
    """

    size: int
    labels: int
    kind: Literal["normal", "constant", "other"] = "normal"
    by: int | None = None
    made_with: frozenset[int] = frozenset()


@dataclass
class DeclaredEnsemble:
    """The random matrices, diagonal matrices and drawn vectors of one declaration."""

    matrices: list[Random] = field(default_factory=list)
    diagonals: list[Any] = field(default_factory=list)
    """Entries of diagonal matrices: traits, vectors, or entrywise functions of vectors."""
    drawn: list[DrawnLetter] = field(default_factory=list)
    covariances: dict[int, np.ndarray] = field(default_factory=dict)
    known: dict[tuple[Word, Word], float] = field(default_factory=dict)

    def unknown(self, size: int, labels: int) -> LargeVector:
        """Return a vector with unknown entries."""
        return LargeVector(self, size, None, labels)

    # -- drawn vectors

    def matrix(self, rows: int, columns: int, variance: float, symmetric: bool) -> LargeMatrix:
        self.matrices.append(Random(rows, columns, variance, symmetric))
        return LargeMatrix(self, rows, columns, {(2 * len(self.matrices) - 2,): 1.0})

    def vector(self, drawn: DrawnLetter) -> LargeVector:
        self.drawn.append(drawn)
        return LargeVector(self, drawn.size, {((), len(self.drawn) - 1): np.eye(drawn.labels)})

    def constant(self, size: int, row: Any) -> LargeVector:
        """Return the vector with the same row of labels at all sites."""
        ones = DrawnLetter(size, 1, "constant")
        if ones not in self.drawn:
            self.drawn.append(ones)
        number = self.drawn.index(ones)
        return LargeVector(self, size, {((), number): np.atleast_2d(table(row))})

    def diagonal(self, entries: Entrywise) -> int:
        self.diagonals.append(entries)
        return -len(self.diagonals)

    # -- words

    def transposed(self, word: Word) -> Word:
        return tuple(self.partner(letter) for letter in reversed(word))

    def partner(self, letter: int) -> int:
        """Return the transpose of a letter; a Wick pairing joins a random matrix with it."""
        return letter if letter < 0 or self.matrices[letter // 2].symmetric else letter ^ 1

    def trace(self, word: Word, beside: Word = ()) -> float:
        """Return the normalised trace of a word at leading order; beside: diagonal letters that multiply the
        remainder."""
        key = (word, beside)
        value = self.known.get(key)
        if value is None:
            value = self.known[key] = self._trace(word, beside)
        return value

    def _trace(self, word: Word, beside: Word) -> float:
        if not word:
            return self._mean(beside) if beside else 1.0
        letter, rest = word[0], word[1:]
        if letter < 0:
            return self.trace(rest, tuple(sorted((*beside, letter))))
        random = self.matrices[letter // 2]
        inner = random.rows if letter % 2 else random.columns
        partner, total = self.partner(letter), 0.0
        for place, other in enumerate(rest):
            if other == partner:
                enclosed = self.trace(rest[:place])
                if enclosed:
                    total += enclosed * self.trace(rest[place + 1 :], beside)
        return random.variance * inner * total

    def _mean(self, letters: Word) -> float:
        """Return the mean over sites of a product of diagonal entries."""
        whole = self.diagonals[-1 - letters[0]]
        for letter in letters[1:]:
            whole = whole * self.diagonals[-1 - letter]
        return as_number(whole.mean_row())

    def covariance(self, number: int) -> np.ndarray:
        """Return the covariance between labels of a drawn vector."""
        matrix = self.covariances.get(number)
        return _identity(self.drawn[number].labels) if matrix is None else matrix

    def are_all_independent(self, a: Terms, b: Terms) -> bool:
        """Return whether all terms of different drawn vectors are independent."""
        if all(self.drawn[number].by is None for some in (a, b) for _, number in some):
            return True
        return all(self.are_independent(one, other) for one in a for other in b if one[1] != other[1])

    def are_independent(self, a: tuple[Word, int], b: tuple[Word, int]) -> bool:
        """Return whether two terms are independent: the random matrix behind one does not occur in the other."""
        drawn = [self.drawn[number] for _, number in (a, b)]
        if drawn[0].by is None and drawn[1].by is None:
            return True
        with_matrices = [_matrices(word) | one.made_with for (word, _), one in zip((a, b), drawn, strict=True)]
        return any(
            one.by is not None and one.by not in others
            for one, others in zip(drawn, reversed(with_matrices), strict=True)
        )

    def overlaps(self, a: LargeVector, b: LargeVector) -> np.ndarray:
        """Return means over sites of products of two vectors: rows for labels of the first, columns for the second."""
        total = np.zeros((a.labels, b.labels))
        if a.terms is None or b.terms is None:
            return np.full(total.shape, np.nan)
        if not self.are_all_independent(a.terms, b.terms):
            return np.full(total.shape, np.nan)
        for (first, one), left in a.terms.items():
            turned = self.transposed(first)
            shares = {second: self.trace((*turned, *second)) for second, other in b.terms if other == one}
            seen = [share * b.terms[second, one] for second, share in shares.items() if share]
            if seen:
                total = total + self.drawn[one].size / a.size * (left.T @ self.covariance(one) @ sum(seen))
        return total


@lru_cache(maxsize=4096)
def _matrices(word: Word) -> frozenset[int]:
    """Return the random matrices in a word."""
    return frozenset(letter // 2 for letter in word if letter >= 0)


@cache
def _identity(size: int) -> np.ndarray:
    return np.eye(size)


NUMBER, TRAIT, VECTOR, FUNCTION, MATRIX = range(5)
"""Kinds of operands; an operation between two of them belongs to the higher one."""


def kind_of(operand: Any) -> int:
    """Return the kind of an operand; NUMBER by default."""
    return getattr(operand, "kind", NUMBER)


class Entrywise:
    """Base of operands with entrywise arithmetic."""

    kind = NUMBER
    known = True
    """Whether it is a sum of words, or a function of such sums."""

    @property
    def vectors(self) -> tuple[LargeVector, ...]:
        """The vectors on which it depends."""
        return ()

    def evaluated(self, *values: Any) -> Any:
        """Return the value of the function at values of the vectors."""
        return values[0]

    def filled(self, ensemble: DeclaredEnsemble, size: int, labels: int) -> Any:
        """Broadcast to a vector over all sites and labels."""
        raise NotImplementedError

    def _applied(self, function: Callable[..., Any], *given: Any) -> Any:
        return EntrywiseFunction.of(function, *given)

    def _arithmetic(self, function: Callable[..., Any], other: Any, turned: bool = False) -> Any:
        """Return the value of an arithmetic function of this operand and another; `turned`: the other operand comes
        first.
        """
        return self._applied(function, *((other, self) if turned else (self, other)))

    def __add__(self, other: Any) -> Any:
        return self._arithmetic(np.add, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._arithmetic(np.subtract, other)

    def __rsub__(self, other: Any) -> Any:
        return self._arithmetic(np.subtract, other, True)

    def __mul__(self, other: Any) -> Any:
        return self._arithmetic(np.multiply, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._arithmetic(np.divide, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._arithmetic(np.divide, other, True)

    def __pow__(self, other: Any) -> Any:
        return self._arithmetic(np.power, other)

    def __rpow__(self, other: Any) -> Any:
        return self._arithmetic(np.power, other, True)

    def __neg__(self) -> Any:
        return self._applied(np.negative, self)

    def __abs__(self) -> Any:
        return self._applied(np.abs, self)

    def __lt__(self, other: Any) -> Any:
        return self._applied(np.less, self, other)

    def __gt__(self, other: Any) -> Any:
        return self._applied(np.greater, self, other)

    def __le__(self, other: Any) -> Any:
        return self._applied(np.less_equal, self, other)

    def __ge__(self, other: Any) -> Any:
        return self._applied(np.greater_equal, self, other)

    def __eq__(self, other: Any) -> Any:
        return self._applied(np.equal, self, other)

    def __ne__(self, other: Any) -> Any:
        return self._applied(np.not_equal, self, other)

    def __mod__(self, other: Any) -> Any:
        return self._applied(np.mod, self, other)


@dataclass(frozen=True, eq=False)
class LabelledNumber(Entrywise):
    """A number, or one per label."""

    values: Any

    @property
    def labels(self) -> int:
        return int(np.shape(self.values)[-1]) if np.ndim(self.values) else 1

    def evaluated(self, *values: Any) -> Any:
        return self.values

    def filled(self, ensemble: DeclaredEnsemble, size: int, labels: int) -> LargeVector:
        return ensemble.constant(size, np.broadcast_to(np.atleast_2d(table(self.values)), (1, labels)))


def operand(given: Any) -> Any:
    """Convert a value in a declared formula to an operand."""
    return LabelledNumber(given) if kind_of(given) == NUMBER else given


@dataclass(frozen=True, eq=False)
class TraitNumbers(Entrywise):
    """Site-dependent numbers, tabulated along one axis per trait on which they depend."""

    ensemble: DeclaredEnsemble
    size: int
    axes: tuple[int, ...]
    values: np.ndarray
    weights: Mapping[int, tuple[np.ndarray, ...]]
    """Of a fine rule and of coarser ones, by axis; one alone for a sum over values."""

    __array_ufunc__ = None
    kind = TRAIT
    labels = 1

    @property
    def vectors(self) -> tuple[LargeVector, ...]:
        return (
            self.ensemble.unknown(self.size, 1),
        )  # a function that also depends on a trait is not a Gaussian integral

    def filled(self, ensemble: DeclaredEnsemble, size: int, labels: int) -> LargeVector:
        return ensemble.constant(size, np.ones((1, labels))).scaled_by(self)

    def under(self, matrix: LargeMatrix) -> LargeVector:
        """Return a matrix times the vector with these entries."""
        return self.filled(self.ensemble, self.size, 1).under(matrix)

    def mean_row(self) -> np.ndarray:
        return np.array([[self.mean]])

    def aligned(self, axes: tuple[int, ...]) -> np.ndarray:
        shape = [self.values.shape[self.axes.index(axis)] if axis in self.axes else 1 for axis in axes]
        order = [self.axes.index(axis) for axis in axes if axis in self.axes]
        return self.values.transpose(order).reshape(shape)

    def combined(self, function: Callable[..., Any], *others: Any) -> TraitNumbers:
        """Return a function of site-dependent numbers of one sector and of plain numbers."""
        traits = [other for other in others if kind_of(other) == TRAIT]
        axes = tuple(sorted({axis for one in (self, *traits) for axis in one.axes}))
        values = [one.aligned(axes) if kind_of(one) == TRAIT else one for one in others]
        weights = {k: w for one in (self, *traits) for k, w in one.weights.items()}
        return TraitNumbers(self.ensemble, self.size, axes, entrywise(function, *values), weights)

    def _applied(self, function: Callable[..., Any], *given: Any) -> Any:
        if any(kind_of(one) > self.kind for one in given):
            return EntrywiseFunction.of(function, *given)
        return self.combined(function, *given)

    @property
    def mean(self) -> float:
        """The mean over sites; NaN if a coarse rule disagrees with the fine one."""
        fine, *coarse = (self._mean(rule) for rule in range(max(map(len, self.weights.values()), default=1)))
        return fine if all(abs(fine - one) <= CONVERGED * (1 + abs(fine)) for one in coarse) else math.nan

    def _mean(self, rule: int) -> float:
        total = self.values
        for axis in reversed(self.axes):
            total = total @ self.weights[axis][min(rule, len(self.weights[axis]) - 1)]
        return as_number(total)

    def _arithmetic(self, function: Callable[..., Any], other: Any, turned: bool = False) -> Any:
        if kind_of(other) > self.kind:
            return NotImplemented
        if kind_of(other) == NUMBER and np.size(other) > 1:
            return self._with_labels(np.atleast_2d(other), function, turned)
        one = as_number(other) if kind_of(other) == NUMBER else other
        return self.combined(function, one, self) if turned else self.combined(function, self, one)

    def _with_labels(self, row: np.ndarray, function: Callable[..., Any], turned: bool) -> Any:
        """Return the combination with its numbers broadcast to one per label."""
        constant = self.ensemble.constant(self.size, row)
        here = self.ensemble.constant(self.size, np.ones(row.shape)).scaled_by(self)
        if function is np.add or function is np.subtract:
            pair = (constant, here) if turned else (here, constant)
            return pair[0] + pair[1] if function is np.add else pair[0] - pair[1]
        if function is np.multiply:
            return here * row
        return here / row if function is np.divide and not turned else here.unknown()

    @property
    def T(self) -> TraitNumbers:
        return self


@dataclass(frozen=True, eq=False)
class LargeVector(Entrywise):
    """A vector over sites, with labels; terms: None if it is unknown."""

    ensemble: DeclaredEnsemble
    size: int
    terms: Terms | None
    width: int = 0

    __array_ufunc__ = None
    kind = VECTOR

    @property
    def known(self) -> bool:  # type: ignore[override]
        return self.terms is not None

    @property
    def vectors(self) -> tuple[LargeVector, ...]:
        return (self,)

    def filled(self, ensemble: DeclaredEnsemble, size: int, labels: int) -> LargeVector:
        return self.widened(labels)

    def under(self, matrix: LargeMatrix) -> LargeVector:
        """Return a matrix times the vector."""
        if self.terms is None or matrix.dyads == UNKNOWN:
            return self.ensemble.unknown(matrix.rows, self.labels)
        total = LargeVector(self.ensemble, matrix.rows, {}, self.labels)
        for word, scale in matrix.words.items():
            total = total + self.within(word, matrix.rows, scale)
        for scale, left, right in matrix.dyads:
            total = total + matrix.projected(scale, left, right, self)
        return total

    @property
    def labels(self) -> int:
        if not self.terms:
            return max(1, self.width)
        return int(next(iter(self.terms.values())).shape[1])

    @property
    def T(self) -> TransposedVector:
        return TransposedVector(self)

    def unknown(self, labels: int | None = None) -> LargeVector:
        return self.ensemble.unknown(self.size, self.labels if labels is None else labels)

    def widened(self, labels: int) -> LargeVector:
        """Broadcast a vector with one label to `labels` labels."""
        return self if self.labels == labels else self.mapped(lambda rows: _widened(rows, labels), labels)

    def _joined(self, other: Any) -> LargeVector:
        """Return the unknown vector with the labels of both operands."""
        if other is self or is_number(other):
            return self
        labels = operand(other).labels
        return self if labels <= self.labels else self.unknown(labels)

    def mapped(self, change: Callable[[np.ndarray], np.ndarray], labels: int | None = None) -> LargeVector:
        """Return the vector with a linear map applied to its labels."""
        width = change(np.zeros((1, self.labels))).shape[1] if labels is None else labels
        if self.terms is None:
            return self.unknown(width)
        terms = {key: change(rows) for key, rows in self.terms.items()}
        return _nonzero_vector(self.ensemble, self.size, terms, width)

    def within(self, word: Word, size: int, scale: float) -> LargeVector:
        """Return scale times a word applied to the vector."""
        if self.terms is None:
            return self.ensemble.unknown(size, self.labels)
        matrices, diagonals = _matrices(word), self.ensemble.diagonals
        dependent = any(letter < 0 and diagonals[-1 - letter].kind != TRAIT for letter in word)
        if dependent or any(matrices & self.ensemble.drawn[number].made_with for _, number in self.terms):
            return self.ensemble.unknown(size, self.labels)
        terms = {((*word, *old), number): scale * rows for (old, number), rows in self.terms.items()}
        return _nonzero_vector(self.ensemble, size, terms, self.labels)

    @property
    def made_with(self) -> frozenset[int]:
        """The random matrices on which it depends."""
        matrices: set[int] = set()
        for word, number in self.terms or {}:
            matrices |= _matrices(word) | self.ensemble.drawn[number].made_with
        return frozenset(matrices)

    def __add__(self, other: Any) -> Any:
        if self.terms is None:
            return self._joined(other)
        if kind_of(other) > self.kind:
            return NotImplemented
        if kind_of(other) == NUMBER and not np.any(other):
            return self
        if kind_of(other) < self.kind:
            given = operand(other)
            other = given.filled(self.ensemble, self.size, given.labels)
        labels = max(self.labels, other.labels)
        if other.terms is None:
            return self.unknown(labels)
        terms = {key: _widened(rows, labels) for key, rows in self.terms.items()}
        for key, rows in other.terms.items():
            terms[key] = terms[key] + rows if key in terms else _widened(rows, labels)
        return _nonzero_vector(self.ensemble, self.size, terms, labels)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if self.terms is None:
            return self._joined(other)
        return NotImplemented if kind_of(other) > self.kind else self + -1.0 * other

    def __rsub__(self, other: Any) -> Any:
        return self._joined(other) if self.terms is None else -1.0 * self + other

    def __neg__(self) -> LargeVector:
        return self if self.terms is None else self.mapped(lambda rows: -rows)

    def __mul__(self, other: Any) -> Any:
        if self.terms is None:
            return self._joined(other)
        if kind_of(other) > self.kind:
            return NotImplemented
        if kind_of(other) == self.kind:
            return EntrywiseFunction.of(np.multiply, self, other)
        if kind_of(other) == TRAIT:
            return self.scaled_by(other)
        row = np.atleast_2d(table(other))
        if row.shape[0] != 1:
            raise NotWritten("a table multiplies a vector entry by entry")
        return self.mapped(lambda rows: rows * row)

    __rmul__ = __mul__

    def scaled_by(self, trait: TraitNumbers) -> LargeVector:
        """Return diag(trait) times the vector."""
        return self.within((self.ensemble.diagonal(trait),), self.size, 1.0)

    def __truediv__(self, other: Any) -> Any:
        if self.terms is None:
            return self._joined(other)
        if kind_of(other) >= self.kind:
            return EntrywiseFunction.of(np.divide, self, other)
        return self * (1.0 / other)

    def __pow__(self, power: Any) -> Any:
        if self.terms is None:
            return self._joined(power)
        return (
            EntrywiseFunction.of(np.multiply, self, self)
            if np.all(power == 2)
            else EntrywiseFunction.of(np.power, self, power)
        )

    def __matmul__(self, table: Any) -> Any:
        if isinstance(table, TransposedVector):
            return outer_product(self, table.vector)
        return self.mapped(lambda rows: rows @ table)

    def mean_row(self) -> np.ndarray:
        """Return the means over sites, one row."""
        if self.terms is None:
            return np.full((1, self.labels), np.nan)
        return self.ensemble.overlaps(self.ensemble.constant(self.size, 1.0), self)


@dataclass(frozen=True)
class TransposedVector:
    """A row vector."""

    vector: LargeVector


def _widened(rows: np.ndarray, labels: int) -> np.ndarray:
    """Broadcast coefficients to one column per label."""
    return rows if rows.shape[1] == labels else np.broadcast_to(rows, (len(rows), labels))


def _nonzero_vector(ensemble: DeclaredEnsemble, size: int, terms: Terms, labels: int) -> LargeVector:
    """Return the vector of the non-zero terms, or the unknown vector if these are too many or too long."""
    nonzero = {key: rows for key, rows in terms.items() if rows.any()}
    width = next((rows.shape[1] for rows in terms.values()), labels)
    if len(nonzero) > MOST_TERMS or any(len(word) > LONGEST_WORD for word, _ in nonzero):
        return ensemble.unknown(size, width)
    return LargeVector(ensemble, size, nonzero, width)


@dataclass(frozen=True, eq=False)
class EntrywiseFunction(Entrywise):
    """An entrywise function of vectors that are sums of words."""

    function: Callable[..., Any]
    arguments: tuple[LargeVector, ...]
    pair: tuple[LargeVector, LargeVector] | None = None
    """The two factors, if it is a product."""

    __array_ufunc__ = None
    kind = FUNCTION

    @property
    def vectors(self) -> tuple[LargeVector, ...]:
        return self.arguments

    def evaluated(self, *values: Any) -> Any:
        return self.function(*values)

    def filled(self, ensemble: DeclaredEnsemble, size: int, labels: int) -> Any:
        return self if self.labels == labels else ensemble.unknown(size, labels)

    @staticmethod
    def of(function: Callable[..., Any], *given: Any) -> EntrywiseFunction | LargeVector:
        """Return a function of vectors, of functions of them, and of numbers; unknown if one of them is."""
        operands = [operand(one) for one in given]
        if not all(one.known for one in operands):
            together = [one for one in operands if one.kind >= VECTOR]
            return together[0].unknown(max(one.labels for one in together))
        arguments: list[LargeVector] = []
        parts: list[tuple[Any, list[int]]] = []
        for one in operands:
            places = []
            for vector in one.vectors:
                same = [k for k, known in enumerate(arguments) if known is vector]
                places.append(same[0] if same else len(arguments))
                if not same:
                    arguments.append(vector)
            parts.append((one, places))

        def applied(*values: Any) -> Any:
            return function(*(one.evaluated(*(values[k] for k in places)) for one, places in parts))

        plain = all(one.kind == VECTOR for one in operands)
        pair = (given[0], given[-1]) if function is np.multiply and plain else None
        return EntrywiseFunction(applied, tuple(arguments), pair)

    @property
    def ensemble(self) -> DeclaredEnsemble:
        return self.arguments[0].ensemble

    @property
    def size(self) -> int:
        return self.arguments[0].size

    @property
    def labels(self) -> int:
        return max(vector.labels for vector in self.arguments)

    @property
    def made_with(self) -> frozenset[int]:
        return frozenset().union(*(vector.made_with for vector in self.arguments))

    def unknown(self, labels: int) -> LargeVector:
        return self.arguments[0].unknown(labels)

    @property
    def gaussian(self) -> bool:
        """Whether its mean is a Gaussian integral over few variables."""
        if len(self.arguments) > MOST_ARGUMENTS or any(vector.terms is None for vector in self.arguments):
            return False
        keys = [key for vector in self.arguments for key in vector.terms or {}]
        drawn = self.ensemble.drawn
        return all(drawn[number].kind != "other" and min(word, default=0) >= 0 for word, number in keys)

    def mean_row(self) -> np.ndarray:
        """Return the means over sites, one row."""
        if self.pair is not None:
            one, other = self.pair
            products = np.diagonal(self.ensemble.overlaps(*_alike(one, other)))
            return products[None]
        return self.integrals[None]

    def __mul__(self, other: Any) -> Any:
        if self.pair is not None and (kind_of(other) == TRAIT or is_number(other)):
            return EntrywiseFunction.of(np.multiply, self.pair[0] * other, self.pair[1])
        return EntrywiseFunction.of(np.multiply, self, other)

    __rmul__ = __mul__

    def __matmul__(self, table: Any) -> Any:
        if isinstance(table, TransposedVector):
            return NotImplemented
        return self.ensemble.unknown(self.size, np.shape(table)[1])

    @property
    def T(self) -> TransposedVector:
        return TransposedVector(self.ensemble.unknown(self.size, self.labels))

    def under(self, matrix: LargeMatrix) -> LargeVector:
        """Return an independent random matrix times the function: a Gaussian vector with its covariance."""
        unknown = self.ensemble.unknown(matrix.rows, self.labels)
        if matrix.dyads or len(matrix.words) != 1:
            return unknown
        ((word, scale),) = matrix.words.items()
        if len(word) != 1 or word[0] < 0 or word[0] // 2 in self.made_with:
            return unknown
        random = word[0] // 2
        covariance = scale**2 * self.ensemble.matrices[random].variance * self.size * self.covariance
        if not np.all(np.isfinite(covariance)):
            return unknown
        drawn = DrawnLetter(matrix.rows, self.labels, by=random, made_with=self.made_with | {random})
        vector = self.ensemble.vector(drawn)
        self.ensemble.covariances[len(self.ensemble.drawn) - 1] = covariance
        return vector

    @property
    def covariance(self) -> np.ndarray:
        """Return the mean products between its labels."""
        matrix = np.full((self.labels, self.labels), np.nan)
        if self.labels == 1:
            matrix[0, 0] = (self * self).integrals[0]
        elif self.gaussian and 2 * len(self.arguments) <= MOST_ARGUMENTS:
            for a, b in combinations_with_replacement(range(self.labels), 2):
                matrix[a, b] = matrix[b, a] = self._joint(a, b)
        return matrix

    @cached_property
    def integrals(self) -> np.ndarray:
        """Return the mean of the function for each label, by quadrature over its Gaussian arguments."""
        if not self.gaussian:
            return np.full(self.labels, np.nan)
        each = [self._fields([(vector, label) for vector in self.arguments]) for label in range(self.labels)]
        return np.array([_integral(self.function, *fields, label) for label, fields in enumerate(each)])

    def _joint(self, a: int, b: int) -> float:
        """Return the mean of the product of two labels."""
        count = len(self.arguments)

        def both(*values: Any) -> Any:
            return self.function(*values[:count]) * self.function(*values[count:])

        return _integral(both, *self._fields([(vector, label) for label in (a, b) for vector in self.arguments]), a)

    def _fields(self, pairs: Sequence[tuple[LargeVector, int]]) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and covariance of vectors at labels."""
        split = [(*_centred(vector), min(label, vector.labels - 1)) for vector, label in pairs]
        mean = np.array([row[0, label] for row, _, label in split])
        overlaps = self.ensemble.overlaps
        return mean, np.array([[overlaps(x, y)[i, j] for _, y, j in split] for _, x, i in split])


def _centred(vector: LargeVector) -> tuple[np.ndarray, LargeVector]:
    """Return the mean of a vector as one row, and the centred vector."""
    mean = vector.mean_row()
    return mean, vector - mean


def _alike(one: LargeVector, other: LargeVector) -> tuple[LargeVector, LargeVector]:
    """Broadcast two vectors to the same labels."""
    labels = max(one.labels, other.labels)
    return one.widened(labels), other.widened(labels)


def _integral(function: Callable[..., Any], mean: np.ndarray, covariance: np.ndarray, label: int) -> float:
    """Return the Gaussian mean of a function for one label of its parameters; NaN if the coarse and fine quadrature
    rules disagree.
    """
    if not np.all(np.isfinite(covariance)):
        return math.nan
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    estimates = []
    for nodes in NODES[len(covariance)]:
        points, weights = _normals(len(covariance), nodes)
        with np.errstate(all="ignore"):
            at = np.asarray(function(*(row[:, None] for row in mean[:, None] + root @ points)), float)
        column = at[:, min(label, at.shape[1] - 1)] if at.ndim == 2 else at
        estimates.append(float(np.sum(weights * np.ravel(column))))
    return estimates[1] if abs(estimates[1] - estimates[0]) <= CONVERGED * (1 + abs(estimates[1])) else math.nan


@cache
def _normals(axes: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (one row per axis) and weights of the trapezoidal rule for standard normals.

    Its error falls exponentially with the number of nodes, even for functions with complex poles.
    """
    nodes, step = np.linspace(-REACH, REACH, count, retstep=True)
    grids = np.meshgrid(*[nodes] * axes, indexing="ij")
    each = np.meshgrid(*[step * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)] * axes, indexing="ij")
    return np.array([grid.ravel() for grid in grids]), np.prod([grid.ravel() for grid in each], axis=0)


Dyads = tuple[tuple[float, LargeVector, LargeVector], ...] | Literal["unknown"]
"""Coefficients times outer products of vectors."""
UNKNOWN: Literal["unknown"] = "unknown"
"""Outer products of unknown vectors: still a low-rank matrix."""


@dataclass(frozen=True)
class LargeMatrix:
    """A matrix between two sectors: a linear combination of words and of outer products."""

    ensemble: DeclaredEnsemble
    rows: int
    columns: int
    words: Mapping[Word, float]
    dyads: Dyads = ()

    __array_ufunc__ = None
    kind = MATRIX

    @cached_property
    def T(self) -> LargeMatrix:
        turned = {self.ensemble.transposed(word): scale for word, scale in self.words.items()}
        if self.dyads == UNKNOWN:
            return LargeMatrix(self.ensemble, self.columns, self.rows, turned, UNKNOWN)
        dyads = tuple((scale, right, left) for scale, left, right in self.dyads)
        return LargeMatrix(self.ensemble, self.columns, self.rows, turned, dyads)

    def __add__(self, other: Any) -> LargeMatrix:
        if not isinstance(other, LargeMatrix):
            raise NotWritten("a number is added to a matrix")
        if not other.words and self.dyads == UNKNOWN:
            return self
        words = dict(self.words)
        for word, scale in other.words.items():
            words[word] = words.get(word, 0.0) + scale
        return LargeMatrix(self.ensemble, self.rows, self.columns, words, _joined(self.dyads, other.dyads))

    def __sub__(self, other: Any) -> LargeMatrix:
        return self.__add__(-other)

    def __neg__(self) -> LargeMatrix:
        return self * -1.0

    def __mul__(self, other: Any) -> LargeMatrix:
        if not self.words and self.dyads == UNKNOWN:
            return self
        factor = as_number(other)
        words = {word: factor * scale for word, scale in self.words.items()}
        if self.dyads == UNKNOWN:
            return LargeMatrix(self.ensemble, self.rows, self.columns, words, UNKNOWN)
        dyads = tuple((factor * scale, a, b) for scale, a, b in self.dyads)
        return LargeMatrix(self.ensemble, self.rows, self.columns, words, dyads)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> LargeMatrix:
        return self.__mul__(1.0 / as_number(other))

    def __matmul__(self, other: Any) -> Any:
        if kind_of(other) < TRAIT:
            raise NotWritten("a matrix is applied to numbers")
        return other.under(self)

    def under(self, matrix: LargeMatrix) -> LargeMatrix:
        """Return another matrix times this one."""
        return matrix._times(self)

    def projected(self, scale: float, left: LargeVector, right: LargeVector, vector: LargeVector) -> LargeVector:
        """Return an outer product applied to a vector."""
        overlaps = scale * vector.size * self.ensemble.overlaps(right, vector)
        if not are_finite(overlaps):
            return self.ensemble.unknown(self.rows, vector.labels)
        return left.mapped(lambda rows: rows @ overlaps, vector.labels)

    def _times(self, other: LargeMatrix) -> LargeMatrix:
        if len(self.words) * len(other.words) > MOST_WORDS:
            raise NotWritten(f"the probed matrix has more than {MOST_WORDS} words")
        words: dict[Word, float] = {}
        for one, scale in self.words.items():
            for two, factor in other.words.items():
                words[(*one, *two)] = words.get((*one, *two), 0.0) + scale * factor
        return LargeMatrix(self.ensemble, self.rows, other.columns, words, self._low_rank_of_product(other))

    def _low_rank_of_product(self, other: LargeMatrix) -> Dyads:
        """Return the outer products in a product of two matrices."""
        if self.dyads == UNKNOWN or other.dyads == UNKNOWN:
            return UNKNOWN
        turned, bare = other.T, LargeMatrix(self.ensemble, self.rows, self.columns, self.words)
        dyads = [(scale, left, turned @ right) for scale, left, right in self.dyads]
        dyads += [(scale, bare @ left, right) for scale, left, right in other.dyads]
        known = all(side.terms is not None for _, *sides in dyads for side in sides)
        return tuple(dyads) if known else UNKNOWN


def _joined(one: Dyads, other: Dyads) -> Dyads:
    """Add outer products, merging those with equal vectors."""
    if one == UNKNOWN or other == UNKNOWN:
        return UNKNOWN
    merged: dict[tuple[int, int], tuple[float, LargeVector, LargeVector]] = {}
    for scale, left, right in (*one, *other):
        key = (id(left), id(right))
        merged[key] = (scale + merged[key][0] if key in merged else scale, left, right)
    return tuple(merged.values())


def outer_product(left: LargeVector | EntrywiseFunction, right: LargeVector | EntrywiseFunction) -> LargeMatrix:
    """Return left right^T, summed over labels."""
    dyads: Dyads = UNKNOWN
    if all(side.kind == VECTOR and side.known for side in (left, right)):
        dyads = ((1.0, left.vectors[0], right.vectors[0]),)
    return LargeMatrix(left.ensemble, left.size, right.size, {}, dyads)


def word_moments(matrix: LargeMatrix, most: int, work: int) -> list[float]:
    """Return normalised traces of the first powers of a matrix, without its low-rank part.

    Args:
        most: highest power.
        work: total letters of a power above which it is omitted.
    """
    powers: dict[Word, float] = {(): 1.0}
    moments = [1.0]
    words = {word: scale for word, scale in matrix.words.items() if scale != 0}
    if not are_finite(list(words.values())):
        return moments
    for _ in range(most):
        if len(powers) * len(words) * max((len(word) for word in (*powers, *words)), default=0) > work:
            break
        nearer: dict[Word, float] = {}
        for one, scale in powers.items():
            for two, factor in words.items():
                nearer[(*one, *two)] = nearer.get((*one, *two), 0.0) + scale * factor
        powers = nearer
        moments.append(sum(scale * matrix.ensemble.trace(word) for word, scale in powers.items()))
    return moments
