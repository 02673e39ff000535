"""Hold the thresholds of models with one, two and three bands against bisection of the solver.

    python tests/campaigns/bisect_thresholds.py --models 40

Each model has spikes whose strength is a parameter. `derive expand` gives all thresholds of the parameter; the solver,
which shares no code with it beyond the derived equations, counts outliers above, below and in each gap on a grid of
values, and bisection finds where a count changes. Both lists must agree, with the edge that each outlier leaves.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import derive
from derive.errors import DeriveError, NumericalError
from derive.expansions.quantities import NoOutlier

HALVINGS = 14
"""Bisections of one interval of the grid."""
AGREEING = 2e-4
"""The relative difference up to which two thresholds count as equal: closer to one the solver does not resolve an
outlier from its edge, since their distance is quadratic."""
GRID = 20
"""Values of the parameter on the grid."""
HEAD = "from sympy import Rational, sqrt\nfrom derive import *\n"


@dataclass(frozen=True)
class Gapped:
    """A declaration, the parameter whose thresholds are sought, between which values, and other parameters."""

    name: str
    text: str
    parameter: str = "k"
    low: float = -12.0
    high: float = 12.0
    at: tuple[tuple[str, Any], ...] = ()


def _fractions(values: list[Any]) -> str:
    return ", ".join(f"Rational('{v}')" for v in values)


def _groups(values: list[Any], weights: list[int], of: str = "D") -> str:
    shares = [sp.Rational(w, sum(weights)) for w in weights]
    return f't = trait("t", {of}, values=({_fractions(values)}), weights=({_fractions(shares)}))\n'


STRENGTH = 'k = parameter("k", default=3.0, domain=real)\n'
POSITIVE = 'k = parameter("k", default=3.0, domain=positive)\n'


def wigner(values: list[Any], weights: list[int], spikes: str = "k/D*outer(v, v)", noise: str = "1") -> str:
    """A symmetric Gaussian matrix on groups of sites."""
    groups = _groups(values, weights)
    vectors = 'u, v, w = normal("u", D), normal("v", D), normal("w", D)\n'
    probe = f'MODEL = Model(parameters=(k,), probe=spectrum({noise}*goe("M", D) + diag(t) + {spikes}))\n'
    return HEAD + STRENGTH + 'D = sectors("D")\n' + vectors + groups + probe


def covariance(
    values: list[Any], weights: list[int], ratio: str, spikes: str = "k/D*outer(v, v)", domain: str = STRENGTH
) -> str:
    """A Wishart matrix of samples whose variances fall into groups."""
    groups = f'D, N = sectors("D", N={ratio})\nu, v, w = normal("u", D), normal("v", D), normal("w", N)\n'
    groups += _groups(values, weights, "N") + 'A = gaussian("A", N, D)\n'
    probe = f"MODEL = Model(parameters=(k,), probe=spectrum(A.T @ diag(t) @ A / N + {spikes}))\n"
    return HEAD + domain + groups + probe


def planted(ratio: str, spikes: str) -> str:
    """A rectangular matrix with planted pairs of directions."""
    sizes = (
        f'D, N = sectors("D", N={ratio})\nu, v, a, b = normal("u", N), normal("v", D), normal("a", N), normal("b", D)\n'
    )
    probe = f'Y = gaussian("X", N, D) + {spikes}\nMODEL = Model(parameters=(k,), probe=spectrum(Y.T @ Y / N))\n'
    return HEAD + STRENGTH + sizes + probe


def population(values: list[Any], weights: list[int], ratio: str, spikes: str = "k/D*outer(v, v)") -> str:
    """A sample covariance of coordinates whose variances fall into groups."""
    sizes = f'D, N = sectors("D", N={ratio})\nu, v = normal("u", D), normal("v", D)\n' + _groups(values, weights)
    sizes += 'X = gaussian("X", N, D) @ diag(t)\n'
    return HEAD + STRENGTH + sizes + f"MODEL = Model(parameters=(k,), probe=spectrum(X.T @ X / N + {spikes}))\n"


def product(first: str, second: str, spikes: str = "k/D*outer(v, v)") -> str:
    """Squared singular values of a product of two Gaussian matrices, with a spike."""
    sizes = f'D, N, P = sectors("D", N={first}, P={second})\nv = normal("v", D)\n'
    sizes += 'B = gaussian("Y", P, N) @ gaussian("X", N, D)\n'
    return HEAD + STRENGTH + sizes + f"MODEL = Model(parameters=(k,), probe=spectrum(B.T @ B / N / P + {spikes}))\n"


def bands(strengths: str, spikes: str) -> str:
    """Two bands whose distance is a parameter."""
    text = HEAD + f'b = parameter("b", default=2.0, domain=positive)\n{STRENGTH}D = sectors("D")\n'
    text += 'v, w = normal("v", D), normal("w", D)\nt = trait("t", D, values=(b, -b)' + strengths + ")\n"
    return text + f'MODEL = Model(parameters=(b, k), probe=spectrum(goe("M", D) + diag(t) + {spikes}))\n'


ONE, TWO = "k/D*outer(v, v)", "k/D*outer(v, v) + k/3/D*outer(w, w)"
OPPOSITE = "k/D*outer(v, v) - 2*k/D*outer(w, w)"
ALIGNED = "k/D*outer(t*v, t*v)"

MODELS = (
    # one, two and three bands of a symmetric matrix
    Gapped("one band", wigner([0, "1/2"], [1, 1])),
    Gapped("one band, uneven", wigner([0, 1], [5, 1])),
    Gapped("two bands", wigner([2, -2], [1, 1])),
    Gapped("two close bands", wigner(["3/2", "-3/2"], [1, 1])),
    Gapped("two bands, uneven", wigner([2, -1], [1, 4])),
    Gapped("two bands, uneven the other way", wigner([3, 0], [7, 2])),
    Gapped("a thin band far above", wigner([0, 5], [9, 1])),
    Gapped("a thin band far below", wigner([0, -4], [12, 1])),
    Gapped("three bands", wigner([-4, 0, 4], [1, 1, 1])),
    Gapped("three bands, uneven", wigner([-3, 0, 5], [1, 4, 2])),
    Gapped("three bands, all above zero", wigner([2, 6, 11], [2, 1, 1], noise="Rational(1, 2)")),
    Gapped("three groups, two bands", wigner([0, 1, 6], [1, 1, 1])),
    # several spikes, spikes of either sign, spikes that go along with the groups
    Gapped("two spikes", wigner([2, -2], [1, 1], TWO)),
    Gapped("two spikes of opposite sign", wigner([2, -2], [1, 2], OPPOSITE)),
    Gapped("two spikes, three bands", wigner([-4, 0, 4], [1, 2, 1], TWO)),
    Gapped("opposite spikes, three bands", wigner([-4, 0, 5], [1, 1, 1], OPPOSITE)),
    Gapped("a spike of fixed strength beside", wigner([2, -2], [1, 1], "k/D*outer(v, v) + 3/D*outer(w, w)")),
    Gapped("a spike that knows its group", wigner([2, -2], [2, 1], ALIGNED)),
    Gapped("a spike that knows its group, one band", wigner([0, 1], [1, 1], ALIGNED)),
    Gapped("a spike of the square of the strength", wigner([3, -1], [1, 1], "k**2/D*outer(v, v)")),
    # rectangular matrices
    Gapped("samples of two kinds", covariance([1, 9], [2, 1], "8")),
    Gapped("samples of two kinds, two bands", covariance([1, 30], [9, 1], "8"), high=20.0),
    Gapped("samples of two kinds, few", covariance([1, 30], [19, 1], "12"), high=20.0),
    Gapped("samples of three kinds", covariance([1, 10, 80], [18, 1, 1], "12"), high=20.0),
    Gapped(
        "samples of two kinds, opposite spikes", covariance([1, 30], [9, 1], "8", "k/D*outer(v, v) - k/2/D*outer(u, u)")
    ),
    Gapped("signed samples", covariance([1, -1], [1, 1], "6")),
    Gapped("signed samples, uneven", covariance([2, -1], [3, 1], "Rational(5, 2)")),
    Gapped("coordinates of two kinds", population([1, 3], [2, 1], "6")),
    Gapped(
        "coordinates of two kinds, two spikes",
        population([1, 4], [2, 1], "8", "k/D*outer(v, v) + k/2/D*outer(u, u)"),
        high=20.0,
    ),
    Gapped("coordinates of three kinds", population([1, 3, 7], [1, 1, 1], "20"), high=40.0, low=-40.0),
    Gapped("a planted pair", planted("2", "k*outer(u, v)/sqrt(D)"), low=-4.0, high=4.0),
    Gapped("a planted pair, wide", planted("Rational(1, 3)", "k*outer(u, v)/sqrt(D)"), low=-4.0, high=4.0),
    Gapped("two planted pairs", planted("3", "k*outer(u, v)/sqrt(D) + k/2*outer(a, b)/sqrt(D)"), low=-4.0, high=4.0),
    # products
    Gapped("product of two", product("2", "3")),
    Gapped("product of two, narrow", product("Rational(1, 2)", "2")),
    Gapped("product with two spikes", product("4", "4", "k/D*outer(v, v) - 1/D*outer(v, v)")),
    # parameters that move the bulk as well
    Gapped("distance of two bands", bands("", ONE), "b", 0.05, 6.0, (("k", 1.2),)),
    Gapped("distance of two bands, strong spike", bands("", ONE), "b", 0.05, 6.0, (("k", 3),)),
    Gapped(
        "distance of two uneven bands",
        bands(", weights=(Rational(1, 5), Rational(4, 5))", ONE),
        "b",
        0.05,
        6.0,
        (("k", -1.5),),
    ),
    Gapped(
        "distance of two bands, two spikes",
        bands("", "k/D*outer(v, v) + 1/D*outer(w, w)"),
        "b",
        0.05,
        6.0,
        (("k", -2),),
    ),
)


def expanded(theory: Any, model: Gapped) -> list[tuple[float, str]]:
    """All thresholds that `derive expand` gives, in ascending order, each with the edge that an outlier leaves."""
    at = {name: str(value) for name, value in model.at}
    try:
        first = theory.expand("threshold", parameter=model.parameter, order=0, at=at)
    except NoOutlier:
        return []
    found = []
    for series in (first, *first.others):
        value = series.coefficients[0]
        if series.theta:
            value = value.subs(sp.Symbol(series.theta["name"]), sp.Float(series.theta["near"]))
        found.append((float(sp.N(value)), series.edge))
    return sorted(found)


def bisected(theory: Any, model: Gapped, between: list[float]) -> list[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    """Where the solver's count of outliers changes while bands stay: the value, and the counts on both sides.

    A count has one number for each gap, from below. `between` are values that belong to the grid too. Where bands
    merge, bisection ends at the first gap that the solver refuses because it is too narrow for double precision.
    """

    def counts(value: float) -> tuple[int, ...]:
        solution = theory.solve({**dict(model.at), model.parameter: value}, certify=False, overlaps=False)
        ends = np.ravel(solution.bulk_edges)
        found = [0] * (len(solution.bulk_edges) + 1)
        for place in solution.outliers:
            found[int(np.searchsorted(ends, place)) // 2] += 1
        return tuple(found)

    grid = sorted({*np.linspace(model.low, model.high, GRID) + 1e-3 * np.pi, *between})
    known = [(value, counts(value)) for value in grid]
    found = []
    for (low, before), (high, after) in zip(known, known[1:], strict=False):
        changes = [(low, before, high, after)]
        while changes:
            low, before, high, after = changes.pop()
            for _ in range(HALVINGS):
                if before == after:
                    break
                middle = (low + high) / 2
                try:
                    here = counts(middle)
                except NumericalError:
                    if len(before) == len(after):
                        raise
                    break
                if here not in (before, after):
                    changes.append((middle, here, high, after))
                if here == before:
                    low = middle
                else:
                    high, after = middle, here
            if before != after and len(before) == len(after):
                found.append(((low + high) / 2, before, after))
    return sorted(found)


def difference(model: Gapped, directory: Path) -> str:
    """What is wrong with the thresholds of a model; nothing if expansion and bisection agree."""
    path = directory / f"{model.name.replace(' ', '_').replace(',', '')}.py"
    path.write_text(model.text)
    theory = derive.load(str(path))
    given = [(value, edge) for value, edge in expanded(theory, model) if model.low < value < model.high]
    ends = [model.low, *(value for value, _ in given), model.high]
    solved = bisected(theory, model, [(a + b) / 2 for a, b in zip(ends, ends[1:], strict=False)])
    changes = [
        (value, gap, after[gap] > before[gap], len(before))
        for value, before, after in solved
        for gap in range(len(before))
        if before[gap] != after[gap]
    ]
    told = f"{model.name}: expanded {given}, bisected {[(round(v, 7), before, after) for v, before, after in solved]}"
    if len(given) != len(changes):
        return told
    for (value, edge), (other, gap, _, gaps) in zip(given, changes, strict=True):
        if abs(value - other) > AGREEING * (1 + abs(value)):
            return told
        if ("the upper edge" in edge) != (gap == gaps - 1) or ("the lower edge" in edge) != (gap == 0):
            return told
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first model, by number")
    parser.add_argument("--models", type=int, default=len(MODELS), help="so many of them")
    given, wrong = parser.parse_args(), 0
    models = MODELS[given.first : given.first + given.models]
    with tempfile.TemporaryDirectory() as directory:
        for model in models:
            start = time.perf_counter()
            try:
                told = difference(model, Path(directory))
            except DeriveError as error:
                told = f"{model.name}: {error}"
            wrong += bool(told)
            print(told or f"{model.name}: agrees", f"({time.perf_counter() - start:.1f} s)", flush=True)
    print(f"{len(models)} models, {wrong} wrong")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
