"""Exact series of edges, outliers and thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import sympy as sp

from derive.cells.verdicts import PROVED
from derive.errors import ParameterError
from derive.expansions.limits import ParameterLimit, rational
from derive.expansions.quantities import QUANTITIES, Found, cell_of, expand_quantity
from derive.inputs.problems import problem_of
from derive.language.family import Family
from derive.language.model import Model
from derive.language.symbols import Parameter
from derive.pipeline import derive_model

HIGHEST_ORDER = 20
"""Highest order accepted; the cost grows steeply with it."""


@dataclass(frozen=True, repr=False)
class Expansion:
    """A series with exact coefficients, as text and as LaTeX.

    Attributes:
        terms: power, coefficient, the same relative to the first coefficient, and LaTeX.
        next_power: of the first omitted term, None if the series ends.
        coefficients: of the terms, as SymPy expressions in plain symbols.
        small: the expansion variable.
        theta: name, polynomial and isolating value of the algebraic number in the coefficients, if there is one.
        edge: the edge that an outlier leaves at a threshold.
        cell: inequalities between the open parameters under which this series holds, empty where it always holds.
        status: "proved" if it holds in all of its cells, "supported" if the physical branch was identified at
            points only.
        branch: values of open parameters at which that was done.
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
        """Return plain data with the keys that `derive expand --json` prints."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["in"] = data.pop("variable")
        order = ("setting", "choices", "of", "in", "order", "at", "parameter")
        expressions = ("coefficients", "small")
        data["others"] = [other.as_dict() for other in self.others]
        return {name: data[name] for name in (*order, *(k for k in data if k not in (*order, *expressions)))}

    def sympy(self) -> sp.Expr:
        """Return the series without its remainder as a SymPy expression in plain symbols."""
        powers = [sp.Rational(term["power"]) for term in self.terms]
        return sp.Add(*(c * self.small**power for c, power in zip(self.coefficients, powers, strict=True)))

    def __str__(self) -> str:
        fixed = "".join(f", {name} = {value}" for name, value in self.at.items())
        strength = "" if self.parameter is None else f" in {self.parameter}"
        if self.variable is None:
            lines = [f"{self.of}{strength} of {self.setting}{fixed}", f"  {self.terms[0]['coefficient']}"]
        else:
            lines = [f"{self.of}{strength} of {self.setting}, expanded in {self.variable}{fixed}"]
            lines += [f"  ({self.variable})^{term['power']}:  {term['coefficient']}" for term in self.terms]
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
    """Return the series of `Theory.expand`; what: the quantity, the expansion variable, and the highest power."""
    of, variable, order = what
    problem = problem_of(declared, chosen if layer is None else {**chosen, "layer": layer})
    model = problem.model.probing(problem.layers[0]) if problem.layers else problem.model
    names = {p.name: p for p in model.parameters}
    have = ", ".join(names) or "(none)"
    if of not in QUANTITIES:
        raise ParameterError(f"{of!r} cannot be expanded; take one of {', '.join(QUANTITIES)}")
    if not isinstance(order, Integral) or isinstance(order, bool) or not 0 <= order <= HIGHEST_ORDER:
        raise ParameterError(f"order={order!r}: order must be a whole number from 0 to {HIGHEST_ORDER}")
    if not isinstance(at, Mapping):
        raise ParameterError(f"at={at!r}: give exact numbers by name, as at={{'T': 2}}")
    if variable is not None and not isinstance(variable, str):
        raise ParameterError(
            f"variable={variable!r}: say what is small in a text, such as 'gamma', '1/nu' or 'gamma0-2'"
        )
    if parameter is not None and not isinstance(parameter, str):
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
    request = {
        "setting": model.setting,
        "choices": dict(model.choices),
        "of": of,
        "variable": variable,
        "order": None if limit is None else order,
        "at": {p.name: str(v) for p, v in fixed.items()},
    }
    small = sp.S.One if limit is None else limit.small
    root = "vartheta" if "theta" in names else "theta"
    first, *others = ({**request, **_series(series, small, root)} for series in found)
    return Expansion(**first, others=tuple(Expansion(**other, others=()) for other in others))


def _series(result: Found, small: sp.Expr, root: str) -> dict[str, Any]:
    """Return one series as text, LaTeX and data."""
    expansion = result.expansion.with_root(sp.Symbol(root))
    first = expansion.coefficients[0]
    series, latex = _written(expansion, small)
    minimal = None if expansion.minimal is None else str(expansion.minimal)
    return {
        "parameter": None if result.parameter is None else result.parameter.name,
        "terms": tuple(
            {
                "power": str(power),
                "coefficient": str(c),
                "relative": str(sp.factor(sp.radsimp(c / first))) if first != 0 and minimal is None else None,
                "latex": sp.latex(c),
            }
            for power, c in zip(expansion.powers, expansion.coefficients, strict=True)
        ),
        "series": series,
        "latex": latex,
        "next_power": None if expansion.ends else str(expansion.next_power),
        "theta": None if minimal is None else {"name": root, "polynomial": minimal, "near": expansion.root_near},
        "edge": result.told,
        "cell": cell_of(result),
        "status": result.status,
        "branch": {p.name: str(v) for p, v in result.points[0].items() if isinstance(p, Parameter)},
        "coefficients": tuple(map(_plain, expansion.coefficients)),
        "small": _plain(small),
    }


def _plain(expression: sp.Expr) -> sp.Expr:
    """Return the expression in symbols without assumptions."""
    symbols = expression.free_symbols
    return expression.xreplace({symbol: sp.Symbol(str(symbol)) for symbol in symbols})


def _written(expansion: Any, small: Any) -> tuple[str, str]:
    """Return the series as text and as LaTeX, in terms of the parameter itself."""
    texts, formulas = [], []
    for power, c in zip(expansion.powers, expansion.coefficients, strict=True):
        factor = small**power
        texts.append(f"({c})" if power == 0 else f"({c})*({factor})")
        formulas.append(sp.latex(c) if power == 0 else rf"\left({sp.latex(c)}\right) {sp.latex(factor)}")
    if not expansion.ends:
        texts.append(f"O(({small})**({expansion.next_power}))")
        formulas.append(rf"\mathcal{{O}}\left({sp.latex(small**expansion.next_power)}\right)")
    return " + ".join(texts), " + ".join(formulas)
