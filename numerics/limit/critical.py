"""The largest stable learning rate of linear training, from its linear recursion.

Bisection of stability (`numerics.limit.recursion`) gives a bracket and the kind of instability. The rate then solves
the equations of that instability to rounding: a fold of the responses, F = 0 and (dF/dR) v = 0; a spectral radius of
the correlations equal to one; or a pole of a site's response. The root comes with an interval; training is stable at
its lower end and unstable at its upper end. No training step is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from derive.errors import NumericalError
from numerics.limit.recursion import BRANCHING, TOUCHING, Examined, Step, needed_for, on_circle, step_at
from numerics.limit.responses import Reached, UnfollowedResponses
from numerics.runtime.linear import RecursionOf
from numerics.runtime.point import Point
from numerics.support.precision import in_float64

FARTHEST = 30
"""Factors of four over which the search may move away from its starting rate."""
BRACKETS = (0.3, 0.03, 1e-3, 1e-5)
"""Relative bracket widths at which the equations of the critical rate are tried."""
FINEST, WIDEST = 1e-9, 1e-4
"""Relative bracket widths: the target if no equation applies, and the largest that is accepted."""
SHARES = (0.5, 0.35, 0.65, 0.2, 0.8)
"""Fractions (in the logarithm) at which a bracket is divided: the first where stability is decided."""
WIDTH = 3e-7
"""Relative half-width of the interval around a root. Smaller distances from the unit circle are lost to rounding."""
CLOSER = (5.5e-8, 1e-8, 3e-10, 1e-11)
"""Relative distances below an instability of the mean at which the covariances of redrawn noises are checked, after
WIDTH."""
SMALL = 1e-3
"""Angles (radians) within this distance of 0 or pi are set to 0 or pi."""
CONVERGED = 1e-12
"""Relative tolerance of Newton's method."""
NODES = 24
"""Initial number of quadrature nodes of a density."""
NEAR = 1e-3
"""Relative half-width of the bracket that is tried when the number of nodes doubles."""
SETTLED, MOST = 1e-10, 4096
"""Relative tolerance of the rate under doubling of the nodes of a density, and the largest number of nodes."""


@dataclass(frozen=True)
class CriticalRate:
    """The rate at which training loses stability.

    Attributes:
        rate: the critical rate.
        error: error of the root, or half-width of the bracket if no equation applies. low, high: a stable and an
            unstable rate around it.
        kind: "mean" if a mode of the mean becomes unstable first, "covariance" if covariances of redrawn noises do.
        angle: angle on the unit circle of the marginal mode, pi for a mode that alternates in sign; None for
            covariances.
        formula, polynomial: a formula for the rate, and a polynomial that vanishes at it, if elimination gives them.
    """

    rate: float
    error: float
    low: float
    high: float
    kind: str
    angle: float | None
    formula: str | None = None
    polynomial: str | None = None


@in_float64
def critical_rate(of: RecursionOf, point_at: Callable[[float], Point], start: float, loss: str) -> CriticalRate:
    """Return the largest rate at which an observable remains bounded for any number of steps.

    Raises:
        NumericalError: if no such rate is found.
    """
    of = needed_for(of, loss)
    nodes = NODES
    search = _Search(of, point_at, nodes)
    critical = search.critical(start)
    if search.step(critical.low).adds_up():
        raise NumericalError(
            f"noise of each step accumulates in {loss} along undamped modes; add a ridge, or observe another loss"
        )
    while of.settles:
        nodes *= 2
        if nodes > MOST:
            raise NumericalError(
                f"the critical rate has not converged with {nodes // 2} values of the density of a trait; "
                "truncate the density, or use values and weights instead"
            )
        finer = _Search(of, point_at, nodes).critical(critical.rate, NEAR)
        moved, critical = abs(finer.rate - critical.rate), finer
        if moved <= max(SETTLED * critical.rate, critical.error):
            return replace(critical, error=critical.error + moved, low=critical.low - moved, high=critical.high + moved)
    return critical


@dataclass(frozen=True)
class _Root:
    """A rate that solves an equation of the critical rate, with the angle and the kind of the instability."""

    rate: float
    angle: float | None
    kind: str = "mean"


@dataclass(frozen=True)
class _Search:
    """Search for the critical rate, with cached evaluations of stability."""

    of: RecursionOf
    point_at: Callable[[float], Point]
    nodes: int
    seen: dict[float, Examined] = field(default_factory=dict)
    radii: dict[float, tuple[float, float]] = field(default_factory=dict)

    def step(self, rate: float) -> Step:
        """Return the recursion at a rate."""
        return step_at(self.of, self.point_at(rate), self.nodes)

    def examined(self, rate: float) -> Examined:
        """Return the stability at a rate."""
        if rate not in self.seen:
            self.seen[rate] = self.step(rate).examine()
        return self.seen[rate]

    def stable(self, rate: float) -> bool:
        """Whether training is stable at a rate."""
        return self.examined(rate).stable

    def grows(self, rate: float) -> bool:
        """Whether training is unstable at a rate; False if undecided."""
        examined = self.examined(rate)
        return examined.decided and not examined.stable

    def _given(self, root: _Root, below: float, above: float) -> CriticalRate:
        """Return the critical rate at a root, with its error and its interval."""
        if root.kind == "covariance":
            return self._of_covariances(root.rate, below, above)
        if not self.step(root.rate).white_pairs:
            return CriticalRate(root.rate, CONVERGED * root.rate, below, above, "mean", root.angle)
        return self._beside_the_mean(root, below, above)

    def _of_covariances(self, rate: float, below: float, above: float) -> CriticalRate:
        """Return a root at which covariances of redrawn noises lose stability.

        Their spectral radius is convex in the rate, so that its slope at the root is at least the secant slope below
        it.
        """
        radius, error = self._white(below)
        rounding = CONVERGED * rate
        return CriticalRate(
            rate, max(rounding, error * (rate - below) / (1 - radius)), below, above, "covariance", None
        )

    def _beside_the_mean(self, root: _Root, below: float, above: float) -> CriticalRate:
        """Return a root at which the mean loses stability, or a root just below it at which covariances of redrawn
        noises do.

        The latter remain stable if their spectral radius rises to a bound below one at the root.
        """
        if self._bounded_at(root):
            return CriticalRate(root.rate, CONVERGED * root.rate, below, above, "mean", root.angle)
        for distance in (WIDTH, *CLOSER):
            rate = root.rate * (1 - distance)
            try:
                radius, error = self._white(rate)
            except (UnfollowedResponses, np.linalg.LinAlgError):
                break  # how covariances behave closer to the root is not known: the error covers the rest
            if radius >= 1 - error:
                crossing = _crossing(self._excess, below, rate)
                return self._of_covariances(rate if crossing is None else crossing, below, above)
            below = rate
        return CriticalRate(root.rate, root.rate - below, below, above, "mean", root.angle)

    def _bounded_at(self, root: _Root) -> bool:
        """Whether covariances of redrawn noises are shown to remain bounded up to an instability of the mean.

        Below a branch point their spectral radius is a power series in the square root of the distance. The linear term
        decides if the radius rises between two rates next to the root and on to its bound at the root.
        """
        try:
            if root.angle is None:
                return False
            highest = self.step(root.rate).white_radius_beside(root.angle)[1]
            if highest >= 1:
                return False
            (far, error), (near, _) = (self._white(root.rate * (1 - distance)) for distance in (WIDTH, CLOSER[0]))
            return far - error <= near <= highest
        except (UnfollowedResponses, np.linalg.LinAlgError):
            return False

    def _white(self, rate: float) -> tuple[float, float]:
        """Return the spectral radius of the covariances of redrawn noises, and its error."""
        if rate not in self.radii:
            examined = self.seen.get(rate)
            finite = examined is not None and math.isfinite(examined.white)
            self.radii[rate] = (
                (examined.white, examined.white_error) if examined and finite else self.step(rate).white_radius()
            )
        return self.radii[rate]

    def _excess(self, rate: float) -> float:
        """Return 1 - 1/radius, which is bounded where the spectral radius diverges."""
        return 1 - 1 / max(self._white(rate)[0], 1e-300)

    # -- brackets

    def critical(self, start: float, near: float | None = None) -> CriticalRate:
        """Return the critical rate, by a search from a starting rate. near: expected relative distance to it."""
        low, high = (start, start) if near is None else (start * (1 - near), start * (1 + near))
        if low == high or not self.stable(low) or self.stable(high):
            low, high = self._bracket(start)
        for width in BRACKETS:
            low, high = self._bisected(low, high, width)
            for root in self._roots(low, high):
                below, above = root.rate * (1 - WIDTH), root.rate * (1 + WIDTH)
                if not low <= above or not below <= high:
                    continue
                if self.stable(below) and self.grows(above):
                    return self._given(root, below, above)
                if self.grows(below):
                    high = max(below, low)
                elif self.stable(above):
                    low = min(above, high)
        low, high = self._bisected(low, high, FINEST)
        if not self.grows(high) or high / low - 1 > WIDEST:
            raise NumericalError(
                f"stability is undecided between the rates {low:.6g} and {high:.6g}; change parameters slightly, "
                "or add a small ridge"
            )
        error = (high - low) / 2 + math.sqrt(TOUCHING) * high
        return CriticalRate((low + high) / 2, error, low, high, self._kind(high), None)

    def _bracket(self, start: float) -> tuple[float, float]:
        """Return a stable and an unstable rate, at most a factor of four apart."""
        low = start
        for _ in range(FARTHEST):
            if self.stable(low):
                break
            low /= 4
        else:
            raise NumericalError(
                f"training grows at all rates from {low:.1e} to {start:.3g}; start from a rate at which it is bounded"
            )
        for _ in range(FARTHEST):
            high = 4 * low if low == start or 4 * low not in self.seen else min(r for r in self.seen if r > low)
            if not self.stable(high):
                return low, high
            low = high
        raise NumericalError(
            f"training remains bounded up to the rate {low:.1e}; raise a parameter that multiplies its updates"
        )

    def _bisected(self, low: float, high: float, width: float) -> tuple[float, float]:
        """Bisect a bracket to a relative width, or until stability is undecided everywhere inside."""
        while high / low - 1 > width:
            inside = (low * (high / low) ** share for share in SHARES)
            rate = next((rate for rate in inside if self.examined(rate).decided), None)
            if rate is None:
                break
            low, high = (rate, high) if self.stable(rate) else (low, rate)
        return low, high

    def _kind(self, high: float) -> str:
        """Return the kind of instability at an unstable rate."""
        examined = self.examined(high)
        return "covariance" if not examined.grows and examined.fixed < 1 - TOUCHING else "mean"

    # -- equations of the critical rate

    def _roots(self, low: float, high: float) -> Iterator[_Root]:
        """Yield candidate roots of the equations that may hold between a stable and an unstable rate."""
        step, lost = self.step(low), self.examined(high)
        if self._kind(high) == "covariance" or step.finite_memory is not None:
            crossing = _crossing(self._excess, low, high)
            if crossing is not None:
                yield _Root(crossing, None, "covariance")
        if self._kind(high) == "covariance":
            return
        equations = (self._pole,) if lost.fixed < BRANCHING else (self._fold, self._radius, self._pole)
        seen = [abs(self.examined(rate).at.angle) for rate in (high, low)]
        for angle in dict.fromkeys((math.pi, 0.0, *(angle for angle in seen if SMALL < angle < math.pi - SMALL))):
            for equation in equations:
                root = equation(step, low, high, angle)
                if root is not None:
                    yield root

    def _to(self, step: Step, angle: float) -> Reached:
        """Return the responses at an angle on the unit circle, continued from w = 0."""
        turned = np.exp(1j * np.linspace(0.0, angle, 2 + int(24 * angle / math.pi)))
        return step.along([0.5, 0.1, 0.01, *(1 - 0.999 * turned[:-1]), 1 - turned[-1]], step.start)[-1]

    def _fold(self, step: Step, low: float, high: float, angle: float) -> _Root | None:
        """Return the rate at which the responses have a branch point on the circle, by Newton's method."""
        count = step.count
        if not count:
            return None
        try:
            here = self._to(step, angle)
        except UnfollowedResponses:
            return None
        real = angle in (0.0, math.pi)
        slope = step.system(*here.row)[2][0]
        null = np.linalg.svd(slope)[2][-1].conj()
        weights = null.conj()
        steps: dict[float, Step] = {}

        def unpack(x: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
            if real:
                return x[0] * low, angle, x[1 : count + 1], x[count + 1 :]
            parts = x[2:].reshape(4, count)
            return x[0] * low, x[1], parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]

        def residual(x: np.ndarray) -> np.ndarray:
            rate, turn, r, v = unpack(x)
            now = steps[rate] if rate in steps else steps.setdefault(rate, self.step(rate))
            value, _, slope = now.system(np.array([on_circle(turn)]), np.asarray(r, complex)[None])
            equations = np.concatenate([value[0], slope[0] @ v, [weights @ v - 1]])
            return np.asarray(equations.real if real else np.concatenate([equations.real, equations.imag]))

        if real:
            phase = np.exp(-1j * np.angle(null[np.argmax(np.abs(null))]))
            null = weights = (null * phase).real
            x = np.concatenate([[1.0], here.responses.real, null / (weights @ null)])
        else:
            r = here.responses
            x = np.concatenate([[1.0, angle], r.real, r.imag, null.real, null.imag])
        x, last = _newton(residual, x)
        if last > CONVERGED:
            return None
        return _Root(float(x[0] * low), angle if real else abs(float(x[1])))

    def _radius(self, step: Step, low: float, high: float, angle: float) -> _Root | None:
        """Return the rate at which the largest spectral radius of correlations near an angle is one."""
        if not step.fixed_pairs:
            return None
        real = angle in (0.0, math.pi)
        best = [angle]

        def radius_at(here: Step, turn: float) -> float:
            return here.radius_at(self._to(here, turn))

        def excess(rate: float) -> float:
            here = self.step(rate)
            if real:
                return radius_at(here, angle) - 1
            span = (max(0.0, best[0] - 0.2), min(math.pi, best[0] + 0.2))
            minimum = minimize_scalar(
                lambda turn: -radius_at(here, turn), bounds=span, method="bounded", options={"xatol": 1e-7}
            )
            best[0] = float(minimum.x)
            return -float(minimum.fun) - 1

        crossing = _crossing(excess, low, high)
        return None if crossing is None else _Root(crossing, best[0])

    def _pole(self, step: Step, low: float, high: float, angle: float) -> _Root | None:
        """Return the rate at which a site's response, or the inverse of 1 - A(w), has a pole on the circle."""
        try:
            here = self._to(step, angle)
        except UnfollowedResponses:
            return None
        real = angle in (0.0, math.pi)
        guess = [here.responses]

        def values(rate: float, turn: float) -> np.ndarray:
            now, v = self.step(rate), complex(on_circle(turn))
            guess[0] = now.newton(v, guess[0])[0]
            return now.denominators(v, guess[0])

        with np.errstate(all="ignore"):
            ends = [values(rate, angle) for rate in (low, high)]
            if real:
                for place in np.flatnonzero(ends[0].real * ends[1].real < 0):
                    crossing = _crossing(lambda rate, k=int(place): float(values(rate, angle)[k].real), low, high)  # type: ignore[misc]  # a default
                    if crossing is not None:
                        return _Root(crossing, angle)
                return None
            which = int(np.argmin(np.abs(ends[0])))

            def residual(x: np.ndarray) -> np.ndarray:
                value = values(x[0] * low, x[1])[which]
                return np.array([value.real, value.imag])

            x, last = _newton(residual, np.array([1.0, angle]))
        return _Root(float(x[0] * low), abs(float(x[1]))) if last <= CONVERGED else None


def _crossing(function: Callable[[float], float], low: float, high: float) -> float | None:
    """Return a root between two rates by Brent's method; None if there is no sign change or responses cannot be
    continued.
    """
    try:
        ends = function(low), function(high)
        if ends[0] * ends[1] > 0:
            high *= 1 + WIDTH  # the root may be the upper end
            ends = ends[0], function(high)
        if not (np.isfinite(ends).all() and ends[0] * ends[1] < 0):
            return None
        return float(brentq(function, low, high, xtol=1e-15 * low, rtol=1e-14))
    except (UnfollowedResponses, np.linalg.LinAlgError, ValueError):
        return None


def _newton(residual: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a root by Newton's method with central differences, and the last relative step of its first entry."""
    last = math.inf
    with np.errstate(all="ignore"):
        for _ in range(40):
            value = residual(x)
            widths = 1e-6 * (np.abs(x) + 1e-3)
            columns = []
            for k, width in enumerate(widths):
                shift = np.zeros_like(x)
                shift[k] = width
                columns.append((residual(x + shift) - residual(x - shift)) / (2 * width))
            try:
                step = np.linalg.lstsq(np.array(columns).T, value, rcond=None)[0]
            except np.linalg.LinAlgError:
                return x, math.inf
            if not np.isfinite(step).all():
                return x, math.inf
            x, last = x - step, abs(step[0] / x[0])
            if not 1e-3 < abs(x[0]) < 1e3:
                return x, math.inf
            if last <= CONVERGED / 10:
                break
    return x, float(last)
