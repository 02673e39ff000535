"""Where linear training comes to rest, without running there.

Order parameters are known in z, the variable of z/(1 + z) sum_t x(t) (1 + z)^(-t): the last value of x(t) is that at
z = 0. There single responses may have a pole, as without a ridge some directions never forget their start, but what
has a limit is analytic in a disc around z = 0 unless modes decay arbitrarily slowly. Its value in the centre is its
mean over a circle, by Cauchy's formula, which rounding alone limits: nothing is extrapolated.

Responses are followed from large z, where only what is answered at once remains. That training is stable means that
they and all means are analytic outside of the circle |1 + z| = 1: then their values there follow from those on the
circle, which is tried. Directions of growth, single or many, would break it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from derive.errors import NumericalError
from numerics.bulk.jets import Jet
from numerics.labelled_limit import LabelledEquations as _Labelled
from numerics.precision import in_float64
from numerics.runtime.interface import NODES, LabelledLimitOf, LimitOf
from numerics.runtime.point import Point
from numerics.runtime.traits import Law

FARTHEST, NEAREST = 1e12, 1e-10
"""Largest z from which responses are followed, and the smallest circle that is tried."""
WIDEST, SHRINK, POINTS = 0.25, 4.0, 32
"""Radius of the first circle, by how much the next one is smaller, and points on its upper half."""
CLEAN = 1e-10
"""How far two numbers of points on a circle may differ, and how large what should vanish on it may be, relatively."""
NOTHING = 1e-13
"""What is smaller than this beside its values on the circle is zero."""
STABLE = 1e-6
"""To which values outside must follow from those on the circle |1 + z| = 1."""
ORDER, RESOLVED, NARROWEST = 12, 1e-7, 1e-9
"""Points in a panel of that circle, when it is fine enough, and the smallest one: modes that decay or oscillate for
long are close to the circle."""
OUTSIDE = (0.5, 1.0, 4.0)
"""Where it is tried."""
SETTLED, MOST = 1e-10, 4096
"""How far results may move with twice as many values of a density, and the most that are tried."""


@dataclass(frozen=True)
class AtRest:
    """Observables by name at the end of long training. radius: of the circle that they are means over; error: how far
    they can be off, relatively. nodes: values at which densities were taken, where there are any."""

    observables: dict[str, float | np.ndarray]
    radius: float
    error: float
    nodes: int | None


@in_float64
def at_rest(limit: LimitOf | LabelledLimitOf, p: Point) -> AtRest:
    """The observables after arbitrarily many steps."""
    found = way_at(limit, p, NODES).rested()
    nodes, moved = NODES, 0.0
    while limit.settles:
        if nodes >= MOST:
            raise NumericalError(
                f"the averages over the density of a trait have not converged: with {nodes} of its values results "
                f"still move by {moved:.1e}; cut its density off, or take values and weights instead"
            )
        nodes *= 2
        finer = way_at(limit, p, nodes).rested()
        now, before = (np.concatenate([np.ravel(x) for x in one.observables.values()]) for one in (finer, found))
        moved = float(np.max(np.abs(now - before) / np.maximum(np.abs(now), 1e-3 * np.max(np.abs(now)))))
        found = replace(finer, error=max(finer.error, moved))
        if moved <= SETTLED:
            break
    way = way_at(limit, p, nodes)
    way.check_stable(found.radius)
    if limit.forgotten and way.remembers(found.radius):
        raise NumericalError(
            f"some directions never forget how they began, and {limit.forgotten} is not given by what is drawn; add a "
            "ridge, or start all fields from what is drawn"
        )
    return replace(found, nodes=nodes if limit.settles else None)


def way_at(limit: LimitOf | LabelledLimitOf, p: Point, nodes: int) -> Way:
    laws = tuple(Law(np.asarray(law.values), np.asarray(law.weights)) for law in limit.sites(p, nodes))
    return Way(_Labelled(limit, p, laws) if isinstance(limit, LabelledLimitOf) else _Plain(limit, p, laws))


@dataclass(frozen=True)
class Reached:
    """Responses at a point, and their rates in z."""

    z: complex
    responses: np.ndarray
    rates: np.ndarray


def _responses(points: Sequence[Reached]) -> np.ndarray:
    """One row per point."""
    return np.array([one.responses for one in points]).reshape(len(points), -1)


class _Equations(Protocol):
    """What responses and means at z obey. count: of responses."""

    @property
    def count(self) -> int: ...

    def system(self, z: complex, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residual, rate in z and slope in r of the response equations."""

    def means(self, z: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The means at points with their responses: one row per point."""

    def observed(self, means: np.ndarray) -> dict[str, float | np.ndarray]:
        """Observables by name from means at rest."""


@dataclass(frozen=True)
class _Plain:
    """Without labels: functions of z and numbers."""

    limit: LimitOf
    p: Point
    laws: tuple[Law, ...]

    @property
    def count(self) -> int:
        return len(self.limit.responses)

    def system(self, z: complex, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residual, rate in z and slope in r of the response equations."""
        count = len(r) + 1
        shape = (1, 1) if self.laws else ()  # groups of sites x points; numbers are faster where all sites are alike
        jets = []
        for number, value in enumerate((z, *r)):
            slopes = np.zeros((count, *shape), complex)
            slopes[number] = 1.0
            jets.append(Jet(np.full(shape, value, complex)[()], slopes))
        found = self.limit.equations(self.p, jets[0], jets[1:], self.laws)
        residual = np.array([e.value for e in found]).reshape(len(found))
        slopes = np.array([e.slopes for e in found]).reshape(len(found), count)
        return residual, slopes[:, 0], slopes[:, 1:]

    def means(self, z: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The means at points with their responses: one row per point. Correlations are linear in each other."""
        columns, count = list(r.T), len(self.limit.correlations)

        def residual(c: Any) -> np.ndarray:
            found = self.limit.correlating(self.p, z, columns, c, self.laws)
            return np.array([np.broadcast_to(np.asarray(e), z.shape) for e in found])

        nothing = [np.zeros(z.shape, complex)] * count
        c: list[np.ndarray] = []
        if count:
            alone = residual(nothing)
            units = [[np.ones(z.shape, complex) if i == k else nothing[0] for i in range(count)] for k in range(count)]
            matrix = np.stack([residual(unit) - alone for unit in units], axis=-1)
            c = list(np.linalg.solve(np.moveaxis(matrix, 1, 0), -alone.T[..., None])[..., 0].T)
        found = self.limit.means(self.p, z, columns, c, self.laws)
        return np.array([np.broadcast_to(np.asarray(e), z.shape) for e in found]).reshape(len(found), z.size).T

    def observed(self, means: np.ndarray) -> dict[str, float | np.ndarray]:
        values = self.limit.observing(self.p, tuple(means))
        return dict(zip(self.limit.observables, map(float, map(np.asarray, values)), strict=True))


@dataclass(frozen=True)
class Way:
    """Responses at parameters, followed along ways in the complex plane."""

    equations: _Equations
    reached: list[Reached] = field(default_factory=list)
    """Points of the positive real axis where the responses are known already."""

    @cached_property
    def start(self) -> Reached:
        """The responses at a large z: no loop comes back at once, so that iterating them ends."""
        z = 1e3
        while z <= FARTHEST:
            r = np.zeros(self.equations.count, complex)
            with np.errstate(all="ignore"):
                for _ in range(200):
                    step = self.equations.system(z, r)[0] if len(r) else r
                    r = r - step
                    if np.all(np.abs(step) <= 1e-13 * (1 + np.abs(r))):
                        return Reached(z, *self.newton(z, r)[:2])
            z *= 1e3
        raise NumericalError("the responses of training are not found at large z; take less extreme parameters")

    def newton(self, z: complex, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Improved responses, their rate in z, and whether Newton's method came to an end."""
        if not len(r):
            return r, r, True
        before = np.inf
        for _ in range(12):
            residual, rate, slope = self.equations.system(z, r)
            try:
                both = np.linalg.solve(slope, np.stack([residual, -rate], axis=-1))
            except np.linalg.LinAlgError:
                return r, r, False
            r = r - both[:, 0]
            size = float(np.max(np.abs(both[:, 0]) / (np.abs(r) + 1e-3 * np.max(np.abs(r)) + 1e-300)))
            if not np.isfinite(size) or size > 10 * before:
                return r, r, False
            # corrections are squared from one to the next, until rounding
            if size < 1e-12 or (size < 1e-8 and size < 1e-2 * before) or (size >= before / 4 and before < 1e-10):
                return r, both[:, 1], True
            before = size
        return r, r, False

    def advanced(self, here: Reached, there: complex) -> Reached:
        """The responses at another point, along the straight line between the two."""
        r, tangent, way = here.responses, here.rates, there - here.z
        share, done = 1.0, 0.0
        with np.errstate(all="ignore"):
            while done < 1.0:
                share = min(share, 1.0 - done)
                z = here.z + way * (done + share)
                guess = r + tangent * way * share
                found, rate, good = self.newton(z, guess)
                size = np.abs(found) + 0.01 * np.max(np.abs(found), initial=0.0) + 1e-300
                if good and np.max(np.abs(found - guess) / size, initial=0.0) < 0.05:
                    r, tangent, done = found, rate, done + share
                    share *= 2.0
                    continue
                share /= 3.0
                if share < 1e-9:
                    raise NumericalError(f"the responses of training cannot be followed near z = {z:.4g}")
        return Reached(there, r, tangent)

    def along(self, points: Iterable[complex], here: Reached) -> list[Reached]:
        """The responses at points in their order."""
        found = []
        for point in points:
            here = self.advanced(here, complex(point))
            found.append(here)
        return found

    def inward(self, radius: float) -> Reached:
        """The responses on the real axis at z = radius, from the nearest point outside that was reached."""
        here = min(
            (one for one in self.reached if one.z.real >= radius), key=lambda one: one.z.real, default=self.start
        )
        if here.z == radius:
            return here
        count = 2 + int(2 * np.log2(here.z.real / radius))
        self.reached.extend(self.along(np.geomspace(here.z.real, radius, count)[1:], here))
        return self.reached[-1]

    # -- the value in the centre

    def rested(self) -> AtRest:
        """The observables at z = 0, from the largest circle inside of which nothing else happens."""
        radius = WIDEST
        while radius >= NEAREST:
            try:
                centre, error = self._centre(radius)
            except (NumericalError, np.linalg.LinAlgError):
                error = np.inf
            if error <= CLEAN:
                return AtRest(self.equations.observed(centre), radius, float(error), None)
            radius /= SHRINK
        raise NumericalError(
            "training does not come to rest: its last modes decay arbitrarily slowly, or something grows without "
            "bound; add a ridge, or change the number of samples or the rate"
        )

    def _centre(self, radius: float) -> tuple[np.ndarray, float]:
        """The mean of all means over a circle, and by how much it is off or not that of an analytic function."""
        angles = np.pi * (np.arange(2 * POINTS) + 0.5) / (2 * POINTS)
        points = radius * np.exp(1j * angles)
        responses = _responses(self.along(np.append(points, -radius), self.inward(radius)))
        values = self.equations.means(points, responses[:-1])
        last = self.equations.means(np.array([-radius + 0j]), responses[-1:])[0]
        centre, size = np.mean(values, axis=0).real, np.max(np.abs(values), axis=0) + 1e-300
        defects = [np.abs(last.imag)]
        for k in (1, 2, 3):  # powers of 1/z, which an analytic function has not
            defects.append(np.abs(np.mean(values * np.exp(1j * k * angles)[:, None], axis=0).real))
        # powers that are too high for half as many points
        defects.append(np.abs(np.mean(values * np.exp(-2j * POINTS * angles)[:, None], axis=0).real))
        usual = np.maximum(np.abs(centre), 1e-3 * np.max(size))
        centre = np.where(np.abs(centre) < NOTHING * size, 0.0, centre)
        return centre, float(np.max(np.max(defects, axis=0) / usual)) if np.isfinite(values).all() else np.inf

    def remembers(self, radius: float) -> bool:
        """Whether a response has a pole at z = 0, so that starts are not forgotten."""
        angles = np.pi * (np.arange(POINTS) + 0.5) / POINTS
        responses = _responses(self.along(radius * np.exp(1j * angles), self.inward(radius)))
        poles = np.abs(np.mean(responses * np.exp(1j * angles)[:, None], axis=0).real)
        return bool(np.any(poles > 1e-8 * np.max(np.abs(responses), axis=0)))

    # -- stability

    def check_stable(self, radius: float) -> None:
        """Refuse training that grows: values outside of |1 + z| = 1 must follow from those on it."""
        tried = np.array(OUTSIDE, complex)
        beyond = _responses(self.along(tried[::-1], self.start))[::-1]
        right = np.concatenate([beyond, self.equations.means(tried, beyond)], axis=1).real
        usual = np.max(np.abs(right), axis=0) + 1e-300
        turn, first = np.arccos(-radius / 2), 2 * np.arcsin(radius / 2)
        try:
            small, here = self._integrated(0.0, radius, (0.0, turn), tried, self.inward(radius))
            large, _ = self._integrated(-1.0, 1.0, (first, np.pi), tried, here)
        except (NumericalError, np.linalg.LinAlgError):
            raise NumericalError(
                "it cannot be told whether training comes to rest: at these parameters it is close to growing; lower "
                "the rate or the momentum a little"
            ) from None
        defect = -(small + large).imag / np.pi - right
        if not np.all(np.abs(defect - defect[-1]) <= STABLE * usual):
            raise NumericalError(
                "training does not come to rest: it grows without bound at these parameters; lower the rate"
            )

    def _integrated(
        self, centre: float, radius: float, ends: tuple[float, float], tried: np.ndarray, here: Reached
    ) -> tuple[np.ndarray, Reached]:
        """Responses and means along an arc, integrated with weights 1 / (z - each of some points): panels are halved
        until they are resolved. Also where it ends."""
        nodes, weights = np.polynomial.legendre.leggauss(ORDER)
        series = np.linalg.inv(np.polynomial.legendre.legvander(nodes, ORDER - 1))
        total: Any = 0.0
        waiting = [ends]
        while waiting:
            low, high = waiting.pop()
            turned = radius * np.exp(1j * ((low + high) / 2 + (high - low) / 2 * nodes))
            circle = centre + turned
            points = self.along(circle, here)
            inside = _responses(points)
            values = np.concatenate([inside, self.equations.means(circle, inside)], axis=1)
            if not np.isfinite(values).all():
                raise NumericalError("something is infinite")
            tail = np.abs(series[-3:] @ values)
            if np.any(tail > RESOLVED * np.max(np.abs(values), axis=0)):
                if high - low < NARROWEST * (ends[1] - ends[0]):
                    raise NumericalError("something is not smooth")
                middle = (low + high) / 2
                waiting += [(middle, high), (low, middle)]
                continue
            step = 1j * turned * weights * (high - low) / 2
            total = total + np.array([(step / (circle - x)) @ values for x in tried])
            here = self.advanced(points[-1], complex(centre + radius * np.exp(1j * high)))
        return total, here
