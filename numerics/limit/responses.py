"""Numerical continuation of responses in the complex plane, and Cauchy integrals over the circle of marginal modes.

Continuation starts at v = 1, where only equal-time responses remain, and is corrected by Newton's method. Functions
that are analytic where |1 - v| < 1 follow from their values on the circle. Conserved modes lie at v = 0, around which
the contour makes a small arc.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from derive.errors import NumericalError
from numerics.limit.linear_sites import SitesAt

ORDER, RESOLVED, NARROWEST = 12, 1e-8, 1e-13
"""Gauss-Legendre nodes per panel, relative size of the last Legendre coefficients of a resolved panel, and smallest
panel width (radians)."""
ROUNDING = 1e-13
"""Values below this fraction of the largest are rounding errors."""
PANELS = 400
"""Largest number of panels on an arc; beyond it, rounding hides singularities next to the circle."""

Functions = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, Any]]
"""Functions of points and their responses that return values, one row per point, and other results of the
computation."""


class UnfollowedResponses(NumericalError):
    """Continuation of the responses along the circle failed. last: the last point reached."""

    def __init__(self, sentence: str, last: Reached | None = None):
        super().__init__(sentence)
        self.last = last


@dataclass(frozen=True)
class Reached:
    """Responses at a point, and their derivatives with respect to v."""

    v: complex
    responses: np.ndarray
    rates: np.ndarray

    @property
    def angle(self) -> float:
        """Angle of the mode w = 1 - v."""
        return float(np.angle(1 - self.v))

    @property
    def row(self) -> tuple[np.ndarray, np.ndarray]:
        """The point and its responses as arrays with one row."""
        return np.array([self.v]), self.responses[None]


@dataclass(frozen=True)
class ResponsesAt(SitesAt):
    """Linear laws at parameters, with continuation of their responses."""

    @cached_property
    def start(self) -> Reached:
        """Responses at v = 1: the equal-time responses."""
        r = np.zeros(self.count, complex)
        for pair, where in self.unknown.items():
            r[where] = self.at_once[pair].ravel()
        return Reached(1.0, *self.newton(1.0, r)[:2])

    def newton(self, v: complex, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return responses corrected by Newton's method, their derivative with respect to v, and whether it
        converged."""
        responses, rate, good = self.newtons(np.array([v], complex), r[None])
        return responses[0], rate[0], good

    def newtons(self, v: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return the results of `newton` at several points at once."""
        if not self.count:
            return r, r, True
        before = np.inf
        for _ in range(12):
            residual, rate, slope = self.system(v, r)
            try:
                both = np.linalg.solve(slope, np.stack([residual, -rate], axis=-1))
            except np.linalg.LinAlgError:
                return r, r, False
            r = r - both[..., 0]
            sizes = np.abs(r) + 1e-3 * np.max(np.abs(r), axis=1, keepdims=True) + 1e-300
            size = float(np.max(np.abs(both[..., 0]) / sizes))
            if not np.isfinite(size) or size > 10 * before:
                return r, r, False
            # quadratic convergence, until rounding
            if size < 1e-12 or (size < 1e-8 and size < 1e-2 * before) or (size >= before / 4 and before < 1e-10):
                return r, both[..., 1], True
            before = size
        return r, r, False

    def advanced(self, here: Reached, there: complex) -> Reached:
        """Return the responses at another point, continued along a straight line."""
        if not self.count:
            return Reached(there, here.responses, here.rates)
        r, tangent, way = here.responses, here.rates, there - here.v
        share, done = 1.0, 0.0
        with np.errstate(all="ignore"):
            while done < 1.0:
                share = min(share, 1.0 - done)
                v = here.v + way * (done + share)
                guess = r + tangent * way * share
                corrected, rate, good = self.newton(v, guess)
                if good and _near(corrected, guess):
                    r, tangent, done = corrected, rate, done + share
                    share *= 2.0
                    continue
                share /= 3.0
                if share < 1e-9:
                    last = Reached(here.v + way * done, r, tangent)
                    raise UnfollowedResponses(
                        f"the responses of training cannot be continued near w = {1 - v:.4g}", last
                    )
        return Reached(there, r, tangent)

    def between(self, here: Reached, end: Reached, v: np.ndarray) -> np.ndarray | None:
        """Return the responses at points between two, with a cubic Hermite predictor; None if that is too
        inaccurate."""
        if not self.count:
            return np.zeros((len(v), 0), complex)
        way = end.v - here.v
        x = ((v - here.v) / way)[:, None]
        lower = (1 + 2 * x) * here.responses + x * way * here.rates
        upper = (3 - 2 * x) * end.responses + (x - 1) * way * end.rates
        guess = (1 - x) ** 2 * lower + x**2 * upper
        with np.errstate(all="ignore"):
            corrected, _, good = self.newtons(v, guess)
        return corrected if good and _near(corrected, guess) else None

    def along(self, points: Iterable[complex], here: Reached) -> list[Reached]:
        """Return the responses along a sequence of points."""
        reached = []
        for point in points:
            here = self.advanced(here, complex(point))
            reached.append(here)
        return reached

    # -- contours

    def panels(
        self, arc: Arc, here: Reached, functions: Functions, rough: Callable[[np.ndarray, np.ndarray, float], bool]
    ) -> Iterator[ArcPanel]:
        """Yield panels of an arc, bisected until functions of the responses are resolved.

        rough: a function that decides from the last Legendre coefficients, the values and the width of a panel whether
            it is unresolved.
        """
        nodes, weights = np.polynomial.legendre.leggauss(ORDER)
        series = np.linalg.inv(np.polynomial.legendre.legvander(nodes, ORDER - 1))
        waiting = arc.pieces()[::-1]
        for _ in range(PANELS):
            if not waiting:
                return
            low, high = waiting.pop()
            v = arc.at((low + high) / 2 + (high - low) / 2 * nodes)
            end = self.advanced(here, complex(arc.at(high)))
            r = self.between(here, end, v)
            narrow = abs(high - low) <= NARROWEST
            if r is not None:
                values, kept = functions(v, r)
                if narrow or not rough(np.abs(series[-3:] @ values), values, abs(high - low)):
                    yield ArcPanel(v=v, r=r, weights=weights * (high - low) / 2, values=values, kept=kept, end=end)
                    here = end
                    continue
            if narrow:
                raise UnfollowedResponses(f"the responses of training cannot be continued near w = {1 - v[0]:.4g}")
            middle = (low + high) / 2
            waiting += [(middle, high), (low, middle)]
        raise UnfollowedResponses("something next to the circle is not resolved")

    def from_contour(
        self,
        radius: float,
        here: Reached,
        functions: Functions,
        inside: np.ndarray,
        seen: Callable[[ArcPanel], None] = lambda _: None,
    ) -> tuple[np.ndarray, Reached]:
        """Return values at points inside |1 - v| < 1 of functions analytic there, by Cauchy's formula, and the end of
        the contour.

        The contour starts at v = radius, makes an arc around v = 0 and follows the upper half of the circle.
        """
        turn = math.acos(radius / 2)
        total: Any = 0.0
        for arc in (Arc(0.0, radius, (0.0, -turn)), Arc(1.0, 1.0, (2 * math.asin(radius / 2), math.pi))):
            for panel in self.panels(arc, here, functions, _rough):
                seen(panel)
                weights = 1j * (panel.v - arc.centre) * panel.weights
                total = total + np.array([(weights / (panel.v - x)) @ panel.values for x in inside])
                here = panel.end
        return total.imag / math.pi, here


@dataclass(frozen=True)
class Arc:
    """An arc in the plane of v between two angles, around v = 0 or around v = 1 (then angles are those of w)."""

    centre: float
    radius: float
    ends: tuple[float, float]

    def pieces(self) -> list[tuple[float, float]]:
        """Return initial panels. Next to v = 0 they are as long as their distance from it, elsewhere at most pi/6."""
        first, last = self.ends
        ends = [first]
        while self.centre and first < last / 6:
            first *= 2
            ends.append(first)
        count = max(2, math.ceil(6 * abs(last - ends[-1]) / math.pi))
        ends = [*ends[:-1], *np.linspace(ends[-1], last, count + 1)]
        return list(itertools.pairwise(map(float, ends)))

    def at(self, angle: Any) -> Any:
        """Return the point at an angle."""
        return self.centre + (-1 if self.centre else 1) * self.radius * np.exp(1j * angle)


@dataclass(frozen=True)
class ArcPanel:
    """A resolved panel of an arc. weights: quadrature weights in the angle. kept: second result of the integrand."""

    v: np.ndarray
    r: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    kept: Any
    end: Reached


def _rough(tail: np.ndarray, values: np.ndarray, width: float) -> bool:
    """Whether the last Legendre coefficients of a panel are not small."""
    sizes = np.abs(values)
    return bool(np.any(tail > RESOLVED * np.max(sizes, axis=0) + ROUNDING * np.max(sizes)))


def _near(corrected: np.ndarray, guess: np.ndarray) -> bool:
    """Whether Newton's method changed the guess so little that the result lies on the same branch."""
    size = np.abs(corrected) + 0.01 * np.max(np.abs(corrected), axis=-1, keepdims=True) + 1e-300
    return bool(np.max(np.abs(corrected - guess) / size) < 0.05)
