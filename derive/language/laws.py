"""Random vectors with a law other than the normal one, drawn once or afresh at every time.

A law has a mean, a variance, and a function of standard normals with that law. In a linear model only the moments
matter. Otherwise the entries are that function of Gaussian vectors, which is integrated or sampled like any other law.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import sympy as sp
from sympy.core.symbol import Str

from derive.errors import DeclarationError
from derive.language.expressions import is_list, word
from derive.language.symbols import Axis, Clock, Parameter, Sector, _Named, exact, other_symbols
from derive.language.vectors import Field

VALUE_FREE = "use numbers and parameters only"


class DrawnLaw(sp.Basic):
    """The law of one random number: its kind, its parameters, and the components of a mixture."""

    def __new__(cls, kind: Any, *numbers: Any) -> Self:
        return sp.Basic.__new__(cls, Str(str(kind)), *numbers)

    @classmethod
    def check(cls, where: str, *laws: Any) -> None:
        """Refuse an argument that is not a law."""
        for law in laws:
            if not isinstance(law, cls):
                raise DeclarationError(f"{where}: {law!s} is not a law; give one, such as uniform(-1, 1)")

    kind = property(lambda self: str(self.args[0]))

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.args[1:]))})"

    _sympystr = property(lambda self: lambda printer: str(self))

    @property
    def mean(self) -> sp.Expr:
        a, *b = self.args[1:]
        if self.kind == "uniform":
            return (a + b[0]) / 2
        if self.kind == "exponential":
            return a
        if self.kind == "half_normal":
            return a * sp.sqrt(2 / sp.pi)
        if self.kind == "log_normal":
            return sp.exp(a + b[0] ** 2 / 2)
        if self.kind == "normal_law":
            return a
        return sp.Add(*(share * law.mean for share, law in self.parts))

    @property
    def variance(self) -> sp.Expr:
        a, *b = self.args[1:]
        if self.kind == "uniform":
            return (b[0] - a) ** 2 / 12
        if self.kind == "exponential":
            return a**2
        if self.kind == "half_normal":
            return a**2 * (1 - 2 / sp.pi)
        if self.kind == "log_normal":
            return (sp.exp(b[0] ** 2) - 1) * sp.exp(2 * a + b[0] ** 2)
        if self.kind == "normal_law":
            return b[0] ** 2
        mean = self.mean
        return sp.Add(*(share * (law.variance + (law.mean - mean) ** 2) for share, law in self.parts))

    @property
    def parts(self) -> tuple[tuple[sp.Expr, DrawnLaw], ...]:
        """The components with their weights; a discrete value is a point mass."""
        shares, others = self.args[1:]
        laws = (part if isinstance(part, DrawnLaw) else DrawnLaw("normal_law", part, sp.S.Zero) for part in others)
        return tuple(zip(shares, laws, strict=True))

    @property
    def ends(self) -> tuple[sp.Expr, sp.Expr]:
        """The ends of the support; infinite if it is unbounded."""
        if self.kind in ("discrete", "mixture"):
            lows, highs = zip(*(law.ends for _, law in self.parts), strict=True)
            return sp.Min(*lows), sp.Max(*highs)
        if self.kind == "uniform":
            return self.args[1], self.args[2]
        if self.kind == "normal_law":
            return (self.args[1], self.args[1]) if self.args[2] == 0 else (-sp.oo, sp.oo)
        return sp.S.Zero, sp.oo

    @property
    def is_spread(self) -> bool:
        """Whether it is discrete, or has a density for all values of its parameters."""
        if self.kind == "mixture":
            return all(law.kind == "normal_law" and law.is_spread for _, law in self.parts)
        return self.kind == "discrete" or all(number.is_positive for _, number, _ in self.demands)

    @property
    def normals(self) -> int:
        """The number of standard normals on which it depends."""
        if self.kind in ("discrete", "mixture"):
            spread = [law.normals for _, law in self.parts if law.variance != 0]
            return 1 + max(spread, default=0)
        return 2 if self.kind == "exponential" else 1

    def of_normals(self, normals: Sequence[sp.Expr]) -> sp.Expr:
        """Return the function of standard normals that has this law."""
        a, *b = self.args[1:]
        n = normals[0]
        if self.kind == "uniform":
            return a + (b[0] - a) * (1 + sp.erf(n / sp.sqrt(2))) / 2
        if self.kind == "exponential":
            return a * (n**2 + normals[1] ** 2) / 2
        if self.kind == "half_normal":
            return a * sp.Abs(n)
        if self.kind == "log_normal":
            return sp.exp(a + b[0] * n)
        if self.kind == "normal_law":
            return a + b[0] * n if b[0] != 0 else a
        cases, below = [], sp.S.Zero
        for share, law in self.parts[:-1]:
            below += share
            cases.append((law.of_normals(normals[1:] or [n]), n < sp.sqrt(2) * sp.erfinv(2 * below - 1)))
        return sp.Piecewise(*cases, (self.parts[-1][1].of_normals(normals[1:] or [n]), True))

    @property
    def demands(self) -> tuple[tuple[str, sp.Expr, str], ...]:
        """The constraints on its parameters: a description, the parameter, and "positive", "not negative" or "one"."""
        if self.kind in ("discrete", "mixture"):
            weights = [(f"a weight of {self}", share, "not negative") for share, _ in self.parts]
            weights.append((f"the sum of the weights of {self}", sp.Add(*(s for s, _ in self.parts)), "one"))
            return (*weights, *(demand for _, law in self.parts for demand in law.demands))
        if self.kind == "uniform":
            return ((f"the distance from low to high of {self}", self.args[2] - self.args[1], "not negative"),)
        scale = self.args[-1]
        return ((f"the scale of {self}", scale, "not negative"),)


class Drawn(Field):
    """A vector of independent entries with a given law."""

    __slots__ = ()

    def __new__(
        cls,
        name: str,
        sector: Sector,
        law: DrawnLaw,
        clock: Clock | None = None,
        timed: bool = True,
        axes: Any = (),
        latex: str = "",
    ) -> Self:
        plain = Field(name, sector, clock, timed=timed, axes=axes, latex=latex)
        return _Named.__new__(cls, name, (*plain.payload, law), latex, real=True)

    law = property(lambda self: self.payload[6])
    expectation = property(lambda self: self.law.mean)
    variance = property(lambda self: self.law.variance)
    ends = property(lambda self: self.law.ends)
    is_drawn = has_law = True
    given_by = "drawn(...) vector: it has a law"


@word
def drawn(
    name: str,
    sector: Sector,
    law: DrawnLaw,
    clock: Clock | None = None,
    axes: Axis | tuple[Axis, ...] = (),
    latex: str = "",
) -> Drawn:
    """Return a vector of independent entries with a given law: an initial condition or noise that is not normal.

    Args:
        law: uniform(...), exponential(...), half_normal(...), log_normal(...), discrete(...), or mixture(...) of them.
        clock: if given, the vector is drawn anew at every time.
        axes: as for `normal`.
        latex: as for `normal`.

    >>> from derive import drawn, mean, sectors, uniform
    >>> D = sectors("D")
    >>> start = drawn("start", D, uniform(0, 1))
    >>> mean(start**2)
    mean(start**2)
    """
    DrawnLaw.check(f"drawn {name}", law)
    return Drawn(name, sector, law, clock, axes=axes, latex=latex)


def _law(kind: str, *numbers: Any) -> DrawnLaw:
    law = DrawnLaw(kind, *(_number(kind, number) for number in numbers))
    _check(law)
    return law


def _number(kind: str, value: Any) -> sp.Expr:
    number = exact(value)
    unknown = other_symbols(number, Parameter)
    if unknown:
        raise DeclarationError(f"{kind}: {number} depends on {unknown[0]}; {VALUE_FREE}")
    if number.has(sp.oo, -sp.oo, sp.nan, sp.zoo, sp.I):
        raise DeclarationError(f"{kind}: {number} is not a finite real number")
    return number


def _check(law: DrawnLaw) -> None:
    """Refuse parameters that are known to be outside their domain."""
    for what, value, kind in law.demands:
        wrong = {"positive": value.is_nonpositive, "not negative": value.is_negative}
        off = kind == "one" and value.is_Rational and abs(value - 1) > sp.Rational(1, 10**12)
        if off or wrong.get(kind):
            raise DeclarationError(f"{what} is {value}; it must be {kind}")


@word
def uniform(low: Any, high: Any) -> DrawnLaw:
    """Return the uniform law between two ends.

    >>> from derive import drawn, sectors, uniform
    >>> drawn("start", sectors("D"), uniform(-1, 1))
    start
    """
    return _law("uniform", low, high)


@word
def exponential(scale: Any = 1) -> DrawnLaw:
    """Return the exponential law, with density exp(-x/scale)/scale for x > 0.

    >>> from derive import drawn, exponential, sectors
    >>> drawn("start", sectors("D"), exponential(2))
    start
    """
    return _law("exponential", scale)


@word
def half_normal(scale: Any = 1) -> DrawnLaw:
    """Return the law of |x| for a normal x of mean zero and standard deviation `scale`.

    >>> from derive import drawn, half_normal, sectors
    >>> drawn("start", sectors("D"), half_normal())
    start
    """
    return _law("half_normal", scale)


@word
def log_normal(center: Any = 0, spread: Any = 1) -> DrawnLaw:
    """Return the law of exp(x) for a normal x with mean `center` and standard deviation `spread`.

    >>> from derive import drawn, log_normal, sectors
    >>> drawn("start", sectors("D"), log_normal(0, 0.5))
    start
    """
    return _law("log_normal", center, spread)


@word
def normal_law(center: Any = 0, spread: Any = 1) -> DrawnLaw:
    """Return the normal law with mean `center` and standard deviation `spread`, as a component of a mixture.

    >>> from derive import mixture, normal_law
    >>> mixture([0.25, 0.75], [normal_law(-1, 0.1), normal_law(1, 0.1)])
    mixture((1/4, 3/4), (normal_law(-1, 1/10), normal_law(1, 1/10)))
    """
    return _law("normal_law", center, spread)


@word
def discrete(values: Iterable[Any], weights: Iterable[Any] | None = None) -> DrawnLaw:
    """Return the discrete law with these values and weights; by default weights are equal.

    >>> from derive import discrete, drawn, sectors
    >>> drawn("signs", sectors("D"), discrete([-1, 1]))
    signs
    """
    return _mixed("discrete", weights, [_number("discrete", value) for value in _listed("discrete", "values", values)])


@word
def mixture(weights: Iterable[Any], laws: Iterable[DrawnLaw]) -> DrawnLaw:
    """Return the mixture of several laws with given weights.

    >>> from derive import drawn, exponential, mixture, normal_law, sectors
    >>> drawn("start", sectors("D"), mixture([0.5, 0.5], [normal_law(0, 1), exponential(2)]))
    start
    """
    listed = _listed("mixture", "laws", laws)
    DrawnLaw.check("mixture", *listed)
    for law in listed:
        if law.kind in ("discrete", "mixture"):
            raise DeclarationError(f"mixture: {law!s} is a mixture itself; write its parts into this one")
    return _mixed("mixture", weights, listed)


def _mixed(kind: str, weights: Any, parts: list[Any]) -> DrawnLaw:
    if weights is None:
        shares = [sp.Rational(1, len(parts))] * len(parts)
    else:
        shares = [_number(kind, share) for share in _listed(kind, "weights", weights)]
    if len(shares) != len(parts):
        raise DeclarationError(f"{kind}: {len(parts)} values or laws and {len(shares)} weights; give one weight each")
    _check(DrawnLaw(kind, sp.Tuple(*shares), sp.Tuple(*parts)))
    total = sp.Add(*shares)
    if total.is_Rational:  # decimals such as 1/3 add up to one only nearly
        shares = [share / total for share in shares]
    kept = [(share, part) for share, part in zip(shares, parts, strict=True) if share != 0]
    return DrawnLaw(kind, sp.Tuple(*(share for share, _ in kept)), sp.Tuple(*(part for _, part in kept)))


def _listed(kind: str, what: str, values: Any) -> list[Any]:
    if not is_list(values):
        raise DeclarationError(f"{kind}: {what}={values!s} is not a list; write [...]")
    items = list(values)
    if not items:
        raise DeclarationError(f"{kind}: {what}=[] is empty; give one or more")
    return items
