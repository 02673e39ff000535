"""The limiting spectral law as plain data: support, point masses, and the density as Chebyshev series on panels.

It is evaluated and integrated without the bulk equations, so a saved result contains it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from numerics.support.formatting import shown_number

NODES = 20
"""Chebyshev nodes per panel."""
NEARBY = 2.5
"""Parameter of the Bernstein ellipse around a panel within which poles are subtracted before quadrature."""
END = 1e-6
"""Relative size of the integrand at an end of a piece above which the density counts as divergent there."""
FINEST = 1e-17
"""Smallest resolved difference of the coordinate t along a piece."""
CLOSE = 1e-9
"""Distance from an end of a piece, relative to its width, below which the density takes its limit."""

TRACY_WIDOM_MEAN = 1.2065335745820
"""Minus the mean of the Tracy-Widom law (beta = 1)."""


@dataclass(frozen=True)
class DensityPiece:
    """An interval of positive density with a uniformising coordinate t in [0, 1]: x - low ~ t^a and high - x ~ (1 -
    t)^b."""

    low: float
    high: float
    a: int
    b: int

    def x(self, t: np.ndarray) -> np.ndarray:
        """Return x(t) as a signed distance from the nearer end."""
        width, rest = self.high - self.low, (1 - t**self.a) ** self.b
        return np.where(
            rest > 0.5, self.low + width * -np.expm1(self.b * np.log1p(-(t**self.a))), self.high - width * rest
        )

    def rate(self, t: np.ndarray) -> np.ndarray:
        """Return dx/dt."""
        return (self.high - self.low) * self.a * self.b * t ** (self.a - 1) * (1 - t**self.a) ** (self.b - 1)

    def t(self, x: np.ndarray) -> np.ndarray:
        share = np.clip((x - self.low) / (self.high - self.low), 0.0, 1.0)
        rest = np.clip((self.high - x) / (self.high - self.low), 0.0, 1.0)
        power = np.where(share < 0.5, -np.expm1(np.log1p(-np.minimum(share, 0.5)) / self.b), 1 - rest ** (1 / self.b))
        return power ** (1 / self.a)

    def beyond(self, z: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return z - x(t) for each z and t, without cancellation close to either end."""
        width, rest = self.high - self.low, (1 - t**self.a) ** self.b
        share = -np.expm1(self.b * np.log1p(-(t**self.a)))
        return np.where(rest > 0.5, (z - self.low)[:, None] - width * share, (z - self.high)[:, None] + width * rest)

    def roots(self, z: np.ndarray) -> list[np.ndarray]:
        """Return all complex t with x(t) = z; the first lies in the half plane of z."""
        rest = ((self.high - z) / (self.high - self.low)).astype(complex)
        share = ((z - self.low) / (self.high - self.low)).astype(complex)
        roots = []
        for j in range(self.b):
            turn = np.exp(2j * np.pi * j / self.b)
            # close to the lower end the difference from one is known better than its root
            small = np.where(np.abs(share) < 0.1, share, 0.0)
            logarithm = np.where(np.abs(share) < 0.1, _log_one_minus(small), np.log(np.where(rest == 0, 1.0, rest)))
            root = np.where(rest == 0, 0.0, np.exp(logarithm / self.b)) * turn
            power = np.where((j == 0) & (np.abs(share) < 0.1), -_exp_minus_one(logarithm / self.b), 1 - root)
            first = np.where(power == 0, 0.0, np.exp(np.log(np.where(power == 0, 1.0, power)) / self.a))
            roots += [first * np.exp(2j * np.pi * k / self.a) if k else first for k in range(self.a)]
        return roots


def _log_one_minus(x: np.ndarray) -> np.ndarray:
    """Return log(1 - x) for small complex x."""
    return np.log1p(-x.real * 2 + np.abs(x) ** 2) / 2 + 1j * np.arctan2(-x.imag, 1 - x.real)


def _exp_minus_one(x: np.ndarray) -> np.ndarray:
    """Return exp(x) - 1 for small complex x."""
    size = np.exp(x.real)
    return np.expm1(x.real) - 2 * size * np.sin(x.imag / 2) ** 2 + 1j * size * np.sin(x.imag)


@cache
def _gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of Gauss-Legendre quadrature."""
    return np.polynomial.legendre.leggauss(count)


@cache
def _chebyshev(count: int, terms: int) -> np.ndarray:
    """Return the first Chebyshev polynomials at the Gauss-Legendre nodes, one column each."""
    return np.polynomial.chebyshev.chebvander(_gauss(count)[0], terms - 1)


@dataclass(frozen=True)
class DensityPanel:
    """The Chebyshev series of density times dx/dt on [t0, t1] of a piece, with its truncation error."""

    piece: DensityPiece
    t0: float
    t1: float
    series: np.ndarray
    error: float

    def density(self, t: np.ndarray) -> np.ndarray:
        """Return the density at x(t) inside the panel, and its limit at an end of the piece."""
        ends = self.piece.rate(t) == 0
        if not np.any(ends):
            return self._density(t)
        steps = [min(CLOSE ** (1 / power), (self.t1 - self.t0) / 2) for power in (self.piece.a, self.piece.b)]
        close, closer = (
            self._density(np.where(t < 0.5, steps[0] * share, 1 - steps[1] * share)) for share in (1.0, 0.25)
        )
        density: np.ndarray = self._density(np.where(ends, (self.t0 + self.t1) / 2, t))
        # close to where it is smooth the density does not change; where it diverges it does
        return np.where(ends, np.where(closer > 1.2 * close, np.inf, close), density)

    def _density(self, t: np.ndarray) -> np.ndarray:
        u = (2 * t - self.t0 - self.t1) / (self.t1 - self.t0)
        return np.polynomial.chebyshev.chebval(u, self.series) / self.piece.rate(t)

    def integral(self, t: np.ndarray) -> np.ndarray:
        """Return the mass of the panel up to t."""
        u = np.clip((2 * t - self.t0 - self.t1) / (self.t1 - self.t0), -1.0, 1.0)
        whole = np.polynomial.chebyshev.chebint(self.series, lbnd=-1)
        return np.polynomial.chebyshev.chebval(u, whole) * (self.t1 - self.t0) / 2

    @property
    def mass(self) -> float:
        return float(self.integral(np.array(self.t1)))

    def transform(self, z: np.ndarray, side: int) -> np.ndarray:
        """Return the panel's Stieltjes transform at z; on the panel, its limit from above (side 1) or below (-1).

        The integrand has poles where x(t) = z. Nearby poles are subtracted and integrated analytically; the remainder
        is smooth, so an error in their residues cancels.
        """
        half, middle = (self.t1 - self.t0) / 2, (self.t0 + self.t1) / 2
        poles = []
        for root in self.piece.roots(z):
            u = (root - middle) / half
            near = np.abs(u + np.sqrt(u - 1) * np.sqrt(u + 1)) < NEARBY
            near &= (np.abs(root) > FINEST) & (np.abs(root - 1) > FINEST)
            if near.any():
                poles.append((np.where(near, root, 9.0 + self.t1), near))
        count = NODES + 8 if not poles else 2 * NODES
        total = np.zeros(z.shape, complex)
        closest = np.full(z.shape, -1.0)
        ends = ((self.piece.low, self.t0 == 0, -1.0), (self.piece.high, self.t1 == 1, 1.0))
        for nodes, weights in (_gauss(count + k) for k in range(2 if poles else 1)):
            t = middle + half * nodes
            rest = np.polynomial.chebyshev.chebval(nodes, self.series) / self.piece.beyond(z, t)
            logarithms = np.zeros(z.shape, complex)
            distance = np.full(z.shape, np.inf)
            for root, near in poles:
                u = (root - middle) / half
                weight = np.where(near, np.polynomial.chebyshev.chebval(u, self.series), 0) / self.piece.rate(root)
                apart = t - root[:, None]
                distance = np.minimum(distance, np.min(np.abs(apart), axis=1))
                rest = rest + weight[:, None] / np.where(apart == 0, 1.0, apart)
                logarithms -= weight * self._logarithm(root, side)
            integral = (rest @ weights) * half + logarithms
            # of two rules the one whose points keep away from the poles
            total, closest = np.where(distance > closest, integral, total), np.maximum(distance, closest)
        for end, here, place in ends:
            diverges = abs(np.polynomial.chebyshev.chebval(place, self.series)) > END * np.max(np.abs(self.series))
            if here and diverges:
                total = np.where(z == end, np.inf, total)
        return total

    def _logarithm(self, root: np.ndarray, side: int) -> np.ndarray:
        """Return the integral of 1 / (t - root) over the panel."""
        real = root.imag == 0
        below, above = np.where(real, 1.0, self.t0 - root), np.where(real, 1.0, self.t1 - root)
        ends = np.maximum(np.abs(self.t1 - root.real), FINEST) / np.maximum(np.abs(root.real - self.t0), FINEST)
        inside = (self.t0 <= root.real) & (root.real < self.t1)
        return np.where(real, np.log(ends) + 1j * np.pi * side * inside, np.log(above / below))

    def moments(self, count: int) -> np.ndarray:
        """Return the integrals of the first powers of x against the density."""
        nodes, weights = _gauss(NODES + 8)
        t = (self.t0 + self.t1) / 2 + (self.t1 - self.t0) / 2 * nodes
        density = _chebyshev(NODES + 8, len(self.series)) @ self.series
        powers = self.piece.x(t)[:, None] ** np.arange(count)
        return (weights * density) @ powers * (self.t1 - self.t0) / 2


@dataclass(frozen=True)
class Panelled:
    """The density on panels; `zeros` are points inside the intervals at which it unexpectedly vanishes."""

    panels: tuple[DensityPanel, ...]
    zeros: tuple[float, ...]

    @property
    def pieces(self) -> tuple[DensityPiece, ...]:
        return tuple(dict.fromkeys(panel.piece for panel in self.panels))

    @property
    def mass(self) -> float:
        return float(sum(p.mass for p in self.panels))

    @property
    def error(self) -> float:
        return float(sum(p.error for p in self.panels))


@dataclass(frozen=True)
class SpectralLaw:
    """The limiting law of the eigenvalues; `error` is the measured deviation of its mass from one and of its Stieltjes
    transform from the resolvent.
    """

    edges: tuple[tuple[float, float], ...]
    atoms: tuple[tuple[float, float], ...]
    panels: Panelled
    error: float

    def __repr__(self) -> str:
        intervals = ", ".join(f"[{shown_number(low)}, {shown_number(high)}]" for low, high in self.edges)
        masses = ", ".join(f"{shown_number(mass)} at {shown_number(x)}" for x, mass in self.atoms)
        return f"spectral law on {intervals or 'no interval'}; point masses: {masses or 'none'}"

    def density(self, x: np.ndarray) -> np.ndarray:
        """Return the density of the continuous part; zero at the ends of intervals, where it may also diverge."""
        x = np.asarray(x, float)
        density = np.zeros(x.shape)
        inside = np.any([(x > low) & (x < high) for low, high in self.edges] or [np.zeros(x.shape, bool)], axis=0)
        for panel in self.panels.panels:
            t = panel.piece.t(x)
            here = inside & (x >= panel.piece.low) & (x <= panel.piece.high) & (t >= panel.t0) & (t <= panel.t1)
            density[here] = panel.density(t[here])
        return np.maximum(density, 0.0)

    def cumulative(self, x: np.ndarray) -> np.ndarray:
        """Return the distribution function: the fraction of eigenvalues at or below each x."""
        x = np.asarray(x, float)
        total = np.zeros(x.shape)
        for panel in self.panels.panels:
            total += panel.integral(panel.piece.t(np.clip(x, panel.piece.low, panel.piece.high)))
        for at, weight in self.atoms:
            total += weight * (x >= at)
        return total

    def moment(self, order: int) -> float:
        """Return the moment of one order, by quadrature."""
        return float(self.moments(order + 1)[-1])

    def moments(self, count: int) -> np.ndarray:
        """Return the moments of orders 0, 1, ..., by quadrature."""
        if count not in self._moments:
            self._moments[count] = self._integrated(count)
        return self._moments[count].copy()

    @cached_property
    def _moments(self) -> dict[int, np.ndarray]:
        """Moments by their number: solutions with the same bulk share its law."""
        return {}

    def _integrated(self, count: int) -> np.ndarray:
        points, weights = np.array(self.atoms).reshape(-1, 2).T
        total = weights @ np.vander(points, count, increasing=True)
        return total + sum(panel.moments(count) for panel in self.panels.panels)

    def transform(self, z: Any, side: int = 1) -> np.ndarray:
        """Return the Stieltjes transform at z; on the support, its limit from above (side 1) or below (-1)."""
        z = np.asarray(z, complex)
        points = z.ravel()
        total = np.zeros(points.shape, complex)
        with np.errstate(all="ignore"):
            for panel in self.panels.panels:
                total += panel.transform(points, side)
            for at, weight in self.atoms:
                total += weight / (points - at)
        return total.reshape(z.shape)

    def mean_at_edge(self, edge: float, size: int) -> float | None:
        """Return the mean outermost of `size` eigenvalues at an edge without outliers, from the Tracy-Widom law
        (beta = 1).

        The density must behave as a sqrt(distance) / pi; otherwise the result is None.
        """
        low, high = next(pair for pair in self.edges if edge in pair)
        inward = 1.0 if edge == low else -1.0
        steps = 1e-5 * (high - low) * np.array([1.0, 4.0])
        near, far = self.density(edge + inward * steps)
        if near <= 0 or abs(far / near - 2) > 0.05:
            return None
        scale = np.sqrt(steps[0]) / (np.pi * near)
        return float(edge + inward * TRACY_WIDOM_MEAN * (scale / size) ** (2 / 3))

    def moved(self, shift: float) -> SpectralLaw:
        """Return the law of the eigenvalues plus `shift`."""
        pieces = {piece: replace(piece, low=piece.low + shift, high=piece.high + shift) for piece in self.panels.pieces}
        panels = tuple(replace(panel, piece=pieces[panel.piece]) for panel in self.panels.panels)
        return SpectralLaw(
            tuple((low + shift, high + shift) for low, high in self.edges),
            tuple((at + shift, weight) for at, weight in self.atoms),
            Panelled(panels, tuple(x + shift for x in self.panels.zeros)),
            self.error,
        )
