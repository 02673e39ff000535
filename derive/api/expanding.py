"""Edges, outliers and thresholds as exact series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import sympy as sp

from derive.cells.verdicts import PROVED
from derive.errors import ParameterError
from derive.expansions.limits import ParameterLimit, rational
from derive.expansions.quantities import QUANTITIES, QuantitySeries, cell_of, expand_quantity
from derive.inputs.problems import problem_of
from derive.language.family import Family
from derive.language.formulas import read_formula
from derive.language.model import Model
from derive.language.symbols import parameter_values
from derive.pipeline import derive_model
from derive.support.shapes import fits

MOST_POWERS = 12
"""Powers of a named combination that are tried."""
HIGHEST_ORDER = 20
"""Highest order; computing more terms takes too long."""


@dataclass(frozen=True, repr=False)
class Expansion:
    """A series with exact coefficients, as text and as LaTeX.

    terms: for each term its power, its coefficient, the ratio to the first coefficient, and LaTeX. next_power: the
    power of the first omitted term, None if the series ends. coefficients: the coefficients as SymPy expressions in
    plain symbols; small: the expansion variable. theta: the algebraic number in the coefficients, if there is one: its
    name, its polynomial and an approximate value. edge: the edge that an outlier leaves at a threshold. cell:
    inequalities between the open parameters under which this series holds, empty if it holds for all of them. status:
    "proved" if it holds in all of its cells, "supported" if the physical branch was identified only at sample points.
    branch: values of open parameters at these points.
    others: the series of other cells, and other thresholds.
    """

    setting: str
    choices: Mapping[str, int | str]
    of: str
    variable: str | None
    order: int | None
    at: Mapping[str, str]
    parameter: str | None
    terms: tuple[Mapping[str, str | None], ...]
    series: str
    latex: str
    next_power: str | None
    theta: Mapping[str, Any] | None
    edge: str
    cell: str
    status: str
    branch: Mapping[str, str]
    others: tuple[Expansion, ...]
    coefficients: tuple[sp.Expr, ...]
    small: sp.Expr

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the keys that `derive expand --json` prints."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        found["in"] = found.pop("variable")
        order = ("setting", "choices", "of", "in", "order", "at", "parameter")
        expressions = ("coefficients", "small")
        found["grouped"] = self.grouped
        found["others"] = [other.as_dict() for other in self.others]
        return {name: found[name] for name in (*order, *(k for k in found if k not in (*order, *expressions)))}

    def sympy(self, symbols: Iterable[sp.Symbol] | Mapping[str, sp.Expr] = ()) -> sp.Expr:
        """The series without its remainder, as a SymPy expression.

        symbols: your own symbols, which replace plain ones of the same names, or a dict of them by name.
        """
        series = sp.Add(*(c * self.small**power for c, power in zip(self.coefficients, self._powers, strict=True)))
        wanted: Any = symbols if isinstance(symbols, Mapping) else {str(symbol): symbol for symbol in symbols}
        return series.xreplace({sp.Symbol(name): symbol for name, symbol in wanted.items()})

    @property
    def _powers(self) -> list[sp.Rational]:
        return [sp.Rational(term["power"]) for term in self.terms]

    @property
    def leading(self) -> sp.Expr:
        """The first term, with its power."""
        return self.coefficients[0] * self.small ** self._powers[0]

    @property
    def scale(self) -> tuple[sp.Symbol, sp.Expr] | None:
        """The value of the variable, or its distance from the expansion point, at which the first correction equals the
        leading term: nu_star of nu.

        None if the relative power of the first correction is not one, or if coefficients contain an algebraic number.
        """
        if len(self.terms) < 2 or self.theta is not None or self._powers[1] - self._powers[0] != 1:
            return None
        (variable,) = self.small.free_symbols
        ratio = sp.factor(self.coefficients[1] / self.coefficients[0])
        inverse = self.small == 1 / variable
        return sp.Symbol(f"{variable.name}_star"), ratio if inverse else 1 / ratio

    @property
    def grouped(self) -> str:
        """The series as its leading term times one plus corrections, the first in terms of its scale."""
        if self.scale is None:
            return ""
        (variable,), (star, value) = self.small.free_symbols, self.scale
        first = star / variable if self.small == 1 / variable else self.small / star
        corrections = "" if len(self.terms) == 2 and self.next_power is None else " + ..."
        return f"({self.leading})*(1 + {first}{corrections}), {star} = {value}"

    def in_terms_of(self, names: Mapping[str, Any]) -> sp.Expr:
        """The series without its remainder, with named combinations of parameters as factors of its coefficients.

        names: for each name an expression or its text. A coefficient is divided by the power of each combination that
        leaves the shortest remainder, so that the result is equal to the series.

        >>> import derive
        >>> e = derive.load("my_step.py").expand("edge", "1/nu", order=2)  # doctest: +SKIP
        >>> e.in_terms_of({"lam": "1 + gamma^2*(1 + 1/sqrt(chi))^2"}).coeff("1/nu", 2)  # doctest: +SKIP
        -chi**(7/2)*lam**4/(4*gamma**6*(sqrt(chi) + 1)**4)
        """
        known = {s.name: s for c in (*self.coefficients, self.small) for s in c.free_symbols}
        for name in names:
            if name in known or not name.isidentifier():
                raise ParameterError(f"{name!r} cannot name a combination: take a name that no parameter has")
        places = {
            name: _plain(read_formula(one, tuple(known), f"the combination {name}") if isinstance(one, str) else one)
            for name, one in names.items()
        }
        terms = (
            _factored(c, places) * self.small**power for c, power in zip(self.coefficients, self._powers, strict=True)
        )
        return sp.Add(*terms)

    def __str__(self) -> str:
        fixed = "".join(f", {name} = {value}" for name, value in self.at.items())
        strength = "" if self.parameter is None else f" in {self.parameter}"
        if self.variable is None:
            lines = [f"{self.of}{strength} of {self.setting}{fixed}", f"  {self.terms[0]['coefficient']}"]
        else:
            lines = [f"{self.of}{strength} of {self.setting}, expanded in {self.variable}{fixed}"]
            lines += [f"  ({self.variable})^{term['power']}:  {term['coefficient']}" for term in self.terms]
            lines += [f"grouped: {self.grouped}"] if self.grouped else []
            lines.append("the series ends here" if self.next_power is None else f"next power: {self.next_power}")
        if self.theta is not None:
            lines.append(f"{self.theta['name']} is the root near {self.theta['near']} of {self.theta['polynomial']}")
        values = ", ".join(f"{name} = {value}" for name, value in self.branch.items())
        if self.edge:
            lines.append(self.edge)
        if self.cell:
            lines.append(f"holds {self.cell}")
        if self.status != PROVED:
            lines.append(
                f"physical branch identified{f' at {values}' if values else ''}; not shown for all other values"
            )
        return "\n".join([*lines, *(str(other) for other in self.others)])

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"


def expand(
    declared: Model | Family,
    chosen: Mapping[str, int | str],
    what: tuple[str, str | None, int],
    at: Mapping[str, Any],
    parameter: str | None,
    layer: int | str | None,
) -> Expansion:
    """See `Theory.expand`. what: the quantity, the expansion variable, and the highest power."""
    of, variable, order = what
    problem = problem_of(declared, chosen if layer is None else {**chosen, "layer": layer})
    model = problem.model.probing(problem.layers[0]) if problem.layers else problem.model
    names = {p.name: p for p in model.parameters}
    have = ", ".join(names) or "(none)"
    if of not in QUANTITIES:
        raise ParameterError(f"{of!r} cannot be expanded; take one of {', '.join(QUANTITIES)}")
    if not fits(order, Integral) or not 0 <= order <= HIGHEST_ORDER:
        raise ParameterError(f"order={order!r}: order must be a whole number from 0 to {HIGHEST_ORDER}")
    if not isinstance(at, Mapping):
        raise ParameterError(f"at={at!r}: give exact numbers by name, as at={{'T': 2}}")
    if not fits(variable, str | None):
        raise ParameterError(
            f"variable={variable!r}: name the small quantity as text, such as 'gamma', '1/nu' or 'gamma0-2'"
        )
    if not fits(parameter, str | None):
        raise ParameterError(f"parameter={parameter!r}: give the name of one of {have}")
    limit = None if variable is None else ParameterLimit.of(variable, tuple(model.parameters))
    fixed = {}
    for name, value in at.items():
        if name not in names:
            raise ParameterError(f"at {name}={value}: write name=value with one of the parameters {have}")
        fixed[names[name]] = rational(str(value), f"at {name}={value}")
    if parameter is not None and (parameter not in names or of != "threshold"):
        raise ParameterError(f"parameter {parameter}: use it with a threshold and one of {have}")
    if not model.probes:
        raise ParameterError(f"{model.setting} declares no probe; add probe=spectrum(...) to its Model")
    found = expand_quantity(derive_model(model).first, of, limit, sp.Integer(order), fixed, parameter).series
    asked = {
        "setting": model.setting,
        "choices": dict(model.choices),
        "of": of,
        "variable": variable,
        "order": None if limit is None else order,
        "at": {p.name: str(v) for p, v in fixed.items()},
    }
    small = sp.S.One if limit is None else limit.small
    root = "vartheta" if "theta" in names else "theta"
    first, *others = ({**asked, **_series(series, small, root)} for series in found)
    return Expansion(**first, others=tuple(Expansion(**other, others=()) for other in others))


def _series(result: QuantitySeries, small: sp.Expr, root: str) -> dict[str, Any]:
    """A series of an expansion, as text, LaTeX and data."""
    found = result.expansion.with_root(sp.Symbol(root))
    first = found.coefficients[0]
    series, latex = _written(found, small)
    minimal = None if found.minimal is None else str(found.minimal)
    return {
        "parameter": None if result.parameter is None else result.parameter.name,
        "terms": tuple(
            {
                "power": str(power),
                "coefficient": str(c),
                "relative": str(sp.factor(sp.radsimp(c / first))) if first != 0 and minimal is None else None,
                "latex": sp.latex(c),
            }
            for power, c in zip(found.powers, found.coefficients, strict=True)
        ),
        "series": series,
        "latex": latex,
        "next_power": None if found.ends else str(found.next_power),
        "theta": None if minimal is None else {"name": root, "polynomial": minimal, "near": found.root_near},
        "edge": result.edge_in_words,
        "cell": cell_of(result),
        "status": result.status,
        "branch": {p.name: str(v) for p, v in parameter_values(result.points[0]).items()},
        "coefficients": tuple(map(_plain, found.coefficients)),
        "small": _plain(small),
    }


def _factored(coefficient: sp.Expr, names: Mapping[str, sp.Expr]) -> sp.Expr:
    """Return a coefficient with powers of named combinations as factors; roots of symbols are temporarily replaced by
    symbols."""
    roots = {
        power.base: power.base ** sp.Rational(1, power.exp.q)
        for one in (coefficient, *names.values())
        for power in one.atoms(sp.Pow)
        if power.base.is_Symbol and power.exp.is_Rational and power.exp.q > 1
    }
    plain = {symbol: sp.Dummy(positive=True) for symbol in roots}
    there = {symbol: plain[symbol] ** (1 / root.exp) for symbol, root in roots.items()}
    back = {plain[symbol]: root for symbol, root in roots.items()}
    rest, found = sp.factor(coefficient.subs(there)), sp.S.One
    for name, combination in names.items():
        divisor = sp.factor(combination.subs(there))
        ways = [(sp.factor(rest / divisor**power), power) for power in range(-MOST_POWERS, MOST_POWERS + 1)]
        rest, power = min(ways, key=lambda way: (sp.count_ops(way[0]) + abs(way[1]), abs(way[1])))
        found *= sp.Symbol(name) ** power
    return found * rest.subs(back)


def _plain(expression: sp.Expr) -> sp.Expr:
    """Return the expression with plain symbols, which have no attributes besides their names."""
    symbols = expression.free_symbols
    return expression.xreplace({symbol: sp.Symbol(str(symbol)) for symbol in symbols})


def _written(found: Any, small: Any) -> tuple[str, str]:
    """The series as text and as LaTeX, in terms of the parameter itself."""
    texts, formulas = [], []
    for power, c in zip(found.powers, found.coefficients, strict=True):
        factor = small**power
        texts.append(f"({c})" if power == 0 else f"({c})*({factor})")
        formulas.append(sp.latex(c) if power == 0 else rf"\left({sp.latex(c)}\right) {sp.latex(factor)}")
    if not found.ends:
        texts.append(f"O(({small})**({found.next_power}))")
        formulas.append(rf"\mathcal{{O}}\left({sp.latex(small**found.next_power)}\right)")
    return " + ".join(texts), " + ".join(formulas)
