"""The limit of an expansion: a parameter that goes to zero, to infinity or to a value."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import sympy as sp

from derive.errors import ParameterError
from derive.language.symbols import Parameter

SMALL = sp.Symbol("epsilon", positive=True)
"""The small parameter of an expansion."""


@dataclass(frozen=True)
class ParameterLimit:
    """A parameter as a function of SMALL: p = e, p = 1/e or p = value + e."""

    parameter: Parameter
    value: sp.Expr

    @property
    def small(self) -> sp.Expr:
        """SMALL as a function of the parameter."""
        if self.value == 1 / SMALL:
            return 1 / self.parameter
        return self.parameter - self.value.subs(SMALL, 0)

    @property
    def in_words(self) -> str:
        """The limit in words."""
        if self.value == 1 / SMALL:
            return f"large {self.parameter}"
        at = self.value.subs(SMALL, 0)
        return f"small {self.parameter}" if at == 0 else f"{self.parameter} slightly above {at}"

    @staticmethod
    def of(text: str, parameters: tuple[Parameter, ...]) -> ParameterLimit:
        """Parse "1/nu", "gamma" or "gamma0-1"."""
        names = {p.name: p for p in parameters}
        inverse = re.fullmatch(r"\s*1\s*/\s*(\w+)\s*", text)
        shifted = re.fullmatch(r"\s*(\w+)\s*([+-])\s*([\d./]+)\s*", text)
        name = inverse[1] if inverse else shifted[1] if shifted else text.strip()
        if name not in names:
            raise ParameterError(
                f"cannot expand in {text!r}; write a parameter, its inverse or its distance from a value, such as "
                f"{_examples(parameters)}"
            )
        if names[name].domain.whole:
            raise ParameterError(f"cannot expand in {name}: it is a whole number; expand in another parameter")
        value = rational(shifted[3], text) * (1 if shifted[2] == "-" else -1) if shifted else sp.S.Zero
        _check_reached(names[name], None if inverse else value, text)
        return ParameterLimit(names[name], 1 / SMALL if inverse else value + SMALL)


def _check_reached(parameter: Parameter, value: sp.Rational | None, text: str) -> None:
    """Raise if the parameter's domain excludes the limit from above, or infinity (None)."""
    domain = parameter.domain
    if value is None:
        if domain.high == math.inf:
            return
        place, advice = "infinity", f"expand in {parameter} or its distance from a value inside"
    else:
        if domain.low <= value < domain.high:
            return
        inside = domain.low if math.isfinite(domain.low) else parameter.default
        place, advice = f"{value} from above", f"write a limit inside, such as {parameter}{_distance(inside)}"
    raise ParameterError(f"--in {text}: {parameter} would go to {place}, but it must be {domain}; {advice}")


def _distance(value: float) -> str:
    number = sp.nsimplify(value, rational=True)
    return "" if number == 0 else f"-{number}" if number > 0 else f"+{-number}"


def _examples(parameters: tuple[Parameter, ...]) -> str:
    open_ones = [p.name for p in parameters if not p.domain.whole]
    return ", ".join((*open_ones, *(f"1/{n}" for n in open_ones[:1]))) or "nothing: there are no parameters"


def rational(text: str, where: str) -> sp.Rational:
    """Parse an exact number: 2, 0.3, 1/3."""
    try:
        return sp.Rational(text.strip())
    except (TypeError, ValueError, ZeroDivisionError):
        raise ParameterError(f"{where}: {text!r} is not a number; write 2, 0.3 or 1/3") from None
