"""The stationary limit of linear training, without running it.

Order parameters are functions of v = z/(1 + z), the variable of v sum_t x(t) (1 - v)^t: the limit of x(t) is the value
at v = 0 (final value theorem). Individual responses may have a pole there, because without a ridge some directions
never forget their initial condition. Quantities with a limit are analytic in a disc around v = 0 unless modes decay
arbitrarily slowly. The value at the centre is the mean over a circle (Cauchy's formula), accurate to rounding; nothing
is extrapolated.

Training is stable if responses and all means are analytic where |1 - v| < 1. Their values there then follow from those
on the circle, which is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from derive.errors import NumericalError
from numerics.limit.linear_sites import Inverses, Pairs, end_of, laws_at, powers_at, slices, stacked
from numerics.limit.responses import Reached, ResponsesAt
from numerics.runtime.interface import NODES
from numerics.runtime.linear import LimitOf, MeanProduct
from numerics.runtime.point import Point
from numerics.support.precision import in_float64

NEAREST, WIDEST, SHRINK = 1e-10, 0.25, 4.0
"""Smallest and first radius of the circle, and the factor between successive radii. A small circle loses digits to
rounding, a large one meets other singularities."""
PIECES, POINTS = 8, 8
"""Pieces of the upper half-circle, and points in each."""
CLEAN = 1e-10
"""Relative tolerance of the mean over the circle and of coefficients that must vanish."""
NOTHING = 1e-13
"""Values below this fraction of those on the circle are zero."""
STABLE = 1e-6
"""Relative tolerance of Cauchy's formula on the circle |1 - v| = 1."""
INSIDE = (0.8, 0.5, 1 / 3)
"""Points v at which it is checked."""
SETTLED, MOST = 1e-10, 4096
"""Relative tolerance of results under doubling of the nodes of a density, and the largest number of nodes."""
NUMBERS = 4_000_000
"""Entries of inverses that are in memory at once."""


@dataclass(frozen=True)
class AtRest:
    """The stationary limit.

    Attributes:
        observables: values by name.
        radius: radius of the circle over which they are averaged.
        error: relative error.
        nodes: quadrature nodes of densities; None without any.
    """

    observables: dict[str, float | np.ndarray]
    radius: float
    error: float
    nodes: int | None


@in_float64
def at_rest(limit: LimitOf, p: Point) -> AtRest:
    """Return the observables in the stationary limit.

    Raises:
        NumericalError: if training is unstable, has no limit, or the limit depends on an unknown initial condition.
    """
    limits = limit_at(limit, p, NODES).rested()
    nodes, moved = NODES, 0.0
    while limit.settles:
        if nodes >= MOST:
            raise NumericalError(
                f"the averages over the density of a trait have not converged: with {nodes} nodes results still "
                f"change by {moved:.1e}; truncate the density, or use values and weights instead"
            )
        nodes *= 2
        finer = limit_at(limit, p, nodes).rested()
        now, before = (np.concatenate([np.ravel(x) for x in one.observables.values()]) for one in (finer, limits))
        moved = float(np.max(np.abs(now - before) / np.maximum(np.abs(now), 1e-3 * np.max(np.abs(now)))))
        limits = replace(finer, error=max(finer.error, moved))
        if moved <= SETTLED:
            break
    last = limit_at(limit, p, nodes)
    last.check_stable(limits.radius)
    if limit.forgotten and last.remembers(limits.radius):
        raise NumericalError(
            f"some directions never forget their initial condition, and {limit.forgotten} is not a drawn source; add a "
            "ridge, or start all fields from drawn sources"
        )
    return replace(limits, nodes=nodes if limit.settles else None)


def limit_at(limit: LimitOf, p: Point, nodes: int) -> LimitAt:
    """Return the limit equations at parameters, with densities at this many nodes."""
    return LimitAt(limit, p, laws_at(limit, p, nodes))


@dataclass(frozen=True)
class LimitAt(ResponsesAt):
    """The limit equations at parameters. reached: cached points of the real axis with known responses."""

    of: LimitOf
    reached: list[Reached] = field(default_factory=list)

    # -- means

    @cached_property
    def _drawn(self) -> dict[str, slice]:
        """The slices that sources occupy in the list of all their labels."""
        return slices({one.name: self.sizes[one.name] for one in self.of.sources})

    @cached_property
    def _drives(self) -> dict[str, dict[tuple[int, int], np.ndarray]]:
        """The coefficients of the sources, by sector and (delay, power): groups x rows x sources."""
        drives: dict[str, dict[tuple[int, int], np.ndarray]] = {name: {} for name in self.sectors}
        for term in self.of.drives:
            name = self.places[term.target].sector
            sector = self.sectors[name]
            empty = np.zeros((len(sector.weights), sector.rows, end_of(self._drawn)))
            added = drives[name].setdefault((term.delay, term.power), empty)
            added[:, sector.places[term.target], self._drawn[term.of]] += self.block(sector, term)
        return drives

    @cached_property
    def _variances(self) -> np.ndarray:
        """Variances of the sources, label by label."""
        variances = np.zeros(end_of(self._drawn))
        for source, variance in zip(self.of.sources, self.of.variances, strict=True):
            variances[self._drawn[source.name]] = self.coefficient(self.sectors[source.sector], variance)[0, :, 0]
        return variances

    def _to_drawn(self, v: np.ndarray, r: np.ndarray, inverse: Inverses) -> Inverses:
        """Return the responses of the fields of each sector to the sources: points x groups x rows x sources."""
        responses, answers = self.matrices(r), {}
        for name, own in inverse.items():
            sector = self.sectors[name]
            drive = np.zeros((*own.shape[:3], end_of(self._drawn)), complex)
            for (delay, power), block in self._drives[name].items():
                drive += powers_at(v, [(delay, power)])[..., None, None] * block
            for m, scale in self._memories:
                if m.target in sector.places and m.on not in sector.places:
                    drive[:, :, sector.places[m.target], self._drawn[m.on]] += scale * responses[m.response][:, None]
            answers[name] = own @ drive
        return answers

    def _seen(self, drawn: Inverses, name: str) -> np.ndarray:
        """Return the response of a field, or of a source, to the sources: points x groups x labels x sources."""
        sector = self.sector_of(name)
        if name in sector.places:
            return drawn[self.places[name].sector][:, :, sector.places[name]]
        own = np.zeros((self.sizes[name], end_of(self._drawn)))
        own[:, self._drawn[name]] = np.eye(self.sizes[name])
        return np.broadcast_to(own, (len(next(iter(drawn.values()))), len(sector.weights), *own.shape))

    def means(self, v: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the means at points with their responses, with both times at the same v: one row per point."""
        entries = sum(len(sector.weights) * sector.rows**2 for sector in self.sectors.values())
        count = min(len(v), 1 + len(v) * entries // NUMBERS)
        return np.concatenate(
            [self._means(*part) for part in zip(np.array_split(v, count), np.array_split(r, count), strict=True)]
        )

    def _means(self, v: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the means at points that fit into memory together."""
        inverse = self.inverses(v, r)
        drawn = self._to_drawn(v, r, inverse)
        correlations = self._correlations(inverse, drawn)
        sizes = self._mean_sizes
        means = np.zeros((len(v), end_of(sizes)), complex)
        for k, products in enumerate(self.of.means):
            for product in products:
                means[:, sizes[k]] += self._mean_of(product, inverse, drawn, correlations)
        return means

    def _correlations(self, inverse: Inverses, drawn: Inverses) -> dict[tuple[str, str], np.ndarray]:
        """Return the correlations of noises, from their linear equations."""
        pairs: Pairs = self.fixed_pairs
        if not pairs:
            return {}
        right = np.zeros((len(next(iter(inverse.values()))), end_of(pairs), 1), complex)
        for (a, b), where in pairs.items():
            one, other = self._seen(drawn, a), self._seen(drawn, b)
            weighed = self.sector_of(a).weights[:, None, None] * one * self._variances
            free = np.einsum("mgid,mgjd->mij", weighed, other)
            right[:, where, 0] = free.reshape(len(free), -1)
        matrix = np.eye(end_of(pairs)) - self.products(inverse, inverse, pairs, False)
        solution = np.linalg.solve(matrix, right)[..., 0]
        return {
            (a, b): solution[:, where].reshape(len(solution), self.sizes[a], self.sizes[b])
            for (a, b), where in pairs.items()
        }

    def _mean_of(
        self,
        product: MeanProduct,
        inverse: Inverses,
        drawn: Inverses,
        correlations: dict[tuple[str, str], np.ndarray],
    ) -> np.ndarray:
        """Return the mean over sites of a coefficient times a product of two fields, label by label."""
        sector = self.sectors[product.sector]
        scale = sector.weights[:, None] * self.coefficient(sector, product.coefficient)[..., 0]
        if product.a is None or product.b is None:
            return np.asarray(np.sum(scale, axis=0))
        covariance = np.sum(self._seen(drawn, product.a) * self._variances * self._seen(drawn, product.b), axis=3)
        if product.a in sector.places and product.b in sector.places:
            for c, strength in self.covariance_terms:
                if c.left in sector.places:
                    left, right = self.answer(inverse, product.a, c.left), self.answer(inverse, product.b, c.right)
                    noise = np.sum(left @ correlations[c.of][:, None] * right, axis=3)
                    covariance = covariance + strength[:, 0] * noise
        return np.asarray(np.sum(scale * covariance, axis=1))

    @cached_property
    def _mean_sizes(self) -> dict[int, slice]:
        """Slices of the means; each has one entry per label."""

        def size(product: MeanProduct) -> int:
            own = len(self.coefficient(self.sectors[product.sector], product.coefficient)[0])
            return max(own, *(self.sizes[name] for name in (product.a, product.b) if name is not None), 1)

        return slices({k: max(map(size, products)) for k, products in enumerate(self.of.means)})

    def observed(self, means: np.ndarray) -> dict[str, float | np.ndarray]:
        """Return observables by name from stationary means; those with labels are arrays."""
        rows = tuple(means[None, where] for where in self._mean_sizes.values())
        observables: dict[str, float | np.ndarray] = {}
        for name, value in zip(self.of.observables, self.of.observing(self.p, rows), strict=True):
            array = np.asarray(value, float)
            observables[name] = float(array.ravel()[0]) if array.size == 1 else np.squeeze(array, axis=0)
        return observables

    # -- the value in the centre

    def inward(self, radius: float) -> Reached:
        """Return the responses on the real axis at v = radius, continued from the nearest known point outside."""
        outside = (one for one in self.reached if one.v.real >= radius)
        here = min(outside, key=lambda one: one.v.real, default=self.start)
        if here.v == radius:
            return here
        count = 2 + int(2 * np.log2(here.v.real / radius))
        self.reached.extend(self.along(np.geomspace(here.v.real, radius, count)[1:], here))
        return self.reached[-1]

    def _half_circle(self, radius: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return angles of points on the upper half-circle, the responses there, and those at v = -radius."""
        here, responses = self.inward(radius), []
        angles = np.pi * (np.arange(PIECES * POINTS) + 0.5) / (PIECES * POINTS)
        for piece, part in enumerate(angles.reshape(PIECES, POINTS), start=1):
            points = radius * np.exp(1j * part)
            end = self.advanced(here, complex(radius * np.exp(1j * np.pi * piece / PIECES)))
            between = self.between(here, end, points)
            if between is None:
                between = np.array([one.responses for one in self.along(points, here)])
            responses.append(between)
            here = end
        return angles, np.concatenate(responses), here.responses

    def rested(self) -> AtRest:
        """Return the observables at v = 0, from the largest circle without other singularities inside."""
        radius = WIDEST
        while radius >= NEAREST:
            try:
                centre, error = self._centre(radius)
            except (NumericalError, np.linalg.LinAlgError):
                error = np.inf
            if error <= CLEAN:
                return AtRest(self.observed(centre), radius, float(error), None)
            radius /= SHRINK
        raise NumericalError(
            "training has no stationary limit: its last modes decay arbitrarily slowly, or something grows without "
            "bound; add a ridge, or change the number of samples or the rate"
        )

    def _centre(self, radius: float) -> tuple[np.ndarray, float]:
        """Return the mean over a circle, and its relative error from tests of analyticity and convergence."""
        angles, responses, end = self._half_circle(radius)
        values = self.means(radius * np.exp(1j * angles), responses)
        last = self.means(np.array([-radius + 0j]), end[None])[0]
        centre, size = np.mean(values, axis=0).real, np.max(np.abs(values), axis=0) + 1e-300
        defects = [np.abs(last.imag)]
        # negative Laurent coefficients, zero for an analytic function, and one that is aliased at half the points
        for k in (1, 2, 3, -len(angles)):
            defects.append(np.abs(np.mean(values * np.exp(1j * k * angles)[:, None], axis=0).real))
        usual = np.maximum(np.abs(centre), 1e-3 * np.max(size))
        centre = np.where(np.abs(centre) < NOTHING * size, 0.0, centre)
        return centre, float(np.max(np.max(defects, axis=0) / usual)) if np.isfinite(values).all() else np.inf

    def remembers(self, radius: float) -> bool:
        """Whether the response of some field has a pole at v = 0, so that initial conditions are not forgotten."""
        angles, responses, _ = self._half_circle(radius)
        turn = np.exp(1j * angles)[:, None]
        inverses = self.inverses(radius * np.exp(1j * angles), responses).values()
        for values in (responses, *(inverse.reshape(len(angles), -1) for inverse in inverses)):
            poles = np.abs(np.mean(values * turn, axis=0).real)
            if np.any(poles > 1e-8 * np.max(np.abs(values), axis=0, initial=0)):
                return True
        return False

    # -- stability

    def check_stable(self, radius: float) -> None:
        """Raise if training grows: values in |1 - v| < 1 must follow from those on the circle."""
        points = self.along(INSIDE, self.start)
        tried, responses = np.array([one.v for one in points]), np.array([one.responses for one in points])
        right = self._functions(tried, responses)[0].real
        try:
            from_circle, _ = self.from_contour(radius, self.inward(radius), self._functions, tried)
        except (NumericalError, np.linalg.LinAlgError):
            raise NumericalError(
                "whether training has a stationary limit is undecided: at these parameters it is close to instability; "
                "lower the rate or the momentum a little"
            ) from None
        if not np.all(np.abs(from_circle - right) <= STABLE * (np.max(np.abs(right), axis=0) + 1e-300)):
            raise NumericalError(
                "training has no stationary limit: it grows without bound at these parameters; lower the rate"
            )

    def _functions(self, v: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return the functions that must be analytic in |1 - v| < 1."""
        values = stacked([r, self.means(v, r)])
        if not np.isfinite(values).all():
            raise NumericalError("a response or a mean is infinite")
        return values, None
