"""The step that linear training applies over and over, and whether what it applies grows.

In the variable w of sum_t x(t) w^t a site answers its noises by the inverse G(w) of a small matrix S(w), in which the
responses R(w) of the memory terms stand: means over sites of entries of G. Training is stable if nothing has a
singularity in the disc |w| < 1, where 1/w is an eigenvalue of the step:

1. R and G are analytic there, and so is the inverse of 1 - A(w), where A joins overlaps with planted directions. By
   Cauchy's formula their values inside follow from those on the circle.
2. Correlations of fixed random matrices obey C = K(w, w*) C + drive, with K from products of G. Outside of the spectrum
   of a non-normal step the spectral radius of K is below one.
3. Covariances of matrices that are drawn afresh at each step obey c(t) = sum_s M(t - s) c(s) + drive. As c is a
   covariance, it stays bounded if the spectral radius of sum_s M(s) is below one.

Modes that stay for ever at any rate, as of directions that no sample has, lie at w = 1, which the circle avoids.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.linear_sites import MOST, AtPoint, scaled
from numerics.runtime.interface import RecursionOf
from numerics.runtime.point import Point
from numerics.runtime.traits import Law

INDENT, AXIS = 1e-4, 1e-8
"""Radius of the arc on which w = 1 is avoided, and the distance from it to which the real axis is followed."""
TOUCHING = 1e-8
"""A spectral radius that is below one by less is that of a singularity on the circle."""
BRANCHING = 0.99
"""Spectral radius beyond which responses that cannot be followed end in a branch point."""
INSIDE = (0.0, 0.2, 0.45)
"""Where values must follow from those on the circle."""
FOLLOWS = 1e-6
"""To which they must, relatively."""
NOTABLE, NARROW = 0.9, 1e-6
"""A spectral radius beyond which its maximum is sought, and to which angle."""
ORDER, RESOLVED, NARROWEST = 12, 1e-8, 1e-13
"""Points in a panel of the contour, when it is fine enough, and the smallest one."""
ROUNDING = 1e-13
"""What is smaller beside the largest values is rounding."""
PANELS = 400
"""Most panels that are tried on an arc: beyond, rounding hides what is next to the circle."""
FINEST = 1e-13
"""Relative accuracy of the covariances of fresh matrices."""
STEADY, ADDS_UP = (1e-5, 1e-6), 9.5
"""Angles next to w = 1 at which noise is compared, and by how much it grows at least where it adds up for ever."""
CLOSEST = 1e-7
"""Angle below which they do not change any more."""


class Undecided(NumericalError):
    """The responses cannot be followed along the circle; last: how far they could."""

    def __init__(self, sentence: str, last: Reached | None = None):
        super().__init__(sentence)
        self.last = last


@dataclass(frozen=True)
class Reached:
    """Responses at a point of the disc, and their derivatives in w."""

    w: complex
    responses: np.ndarray
    rates: np.ndarray


@dataclass(frozen=True)
class Examined:
    """What decides stability at parameters. fixed: the largest spectral radius of the correlations of fixed matrices on
    the contour, and `at` where; white: that of the covariances of fresh ones; grows: whether something is not analytic
    in the disc. What is not known is infinite, and decided tells whether stability is."""

    fixed: float
    at: Reached
    white: float
    grows: bool
    decided: bool = True

    @property
    def stable(self) -> bool:
        return self.decided and not self.grows and self.fixed < 1 - TOUCHING and self.white < 1


def needed_for(of: RecursionOf, loss: str) -> RecursionOf:
    """The step without the fields that an observable does not depend on."""
    keep = set(dict(of.observed)[loss])
    while True:
        more = {part[1] for part in of.parts if part[0] in keep}
        for target, on, _, which in of.memories:
            if target in keep:
                more |= {on, *of.responses[which]}
        for left, right, _, a, b in of.covariances:
            if left in keep or right in keep:
                more |= {a, b, left, right}
        more |= {of.overlaps[which][1] for target, _, _, which in of.uses if target in keep}
        if more <= keep:
            break
        keep |= more

    def inside(*places: int) -> bool:
        return all(place in keep for place in places)

    memories = [k for k, m in enumerate(of.memories) if inside(m[0], m[1])]
    covariances = [k for k, c in enumerate(of.covariances) if inside(*c[:2])]
    return replace(
        of,
        parts=tuple(part for part in of.parts if inside(part[0])),
        memories=tuple(of.memories[k] for k in memories),
        covariances=tuple(of.covariances[k] for k in covariances),
        instant=tuple(i for i, k in enumerate(memories) if k in of.instant),
        white=tuple(i for i, k in enumerate(covariances) if k in of.white),
        uses=tuple(use for use in of.uses if inside(use[0])),
        stirred=tuple(place for place in of.stirred if inside(place)),
        observed=((loss, dict(of.observed)[loss]),),
    )


@dataclass(frozen=True)
class Step(AtPoint):
    """The step at parameters."""

    of: RecursionOf

    # -- unknowns

    @cached_property
    def _unknown(self) -> dict[int, slice]:
        """By response the place of its entries among all unknowns: those that memories of fixed matrices hold."""
        inside = {m[3] for k, m in enumerate(self.of.memories) if k not in self.of.instant}
        found, end = {}, 0
        for k in sorted(inside):
            a, noise = self.of.responses[k]
            start, end = end, end + self.sizes[a] * self.sizes[noise]
            found[k] = slice(start, end)
        if end > MOST:
            raise ParameterError(f"there are {end} responses between labels, more than {MOST}; take fewer labels")
        return found

    @property
    def count(self) -> int:
        return max((where.stop for where in self._unknown.values()), default=0)

    @cached_property
    def at_once(self) -> list[np.ndarray]:
        """All responses at equal times. No loop comes back at once, so that iterating them ends."""
        found = [np.zeros((self.sizes[a], self.sizes[noise])) for a, noise in self.of.responses]
        for _ in range(2 * len(found) + 2):
            inverse = self._inverted(np.zeros(1), [one[None] for one in found], found)
            new = [self._mean(inverse, a, noise)[0].real for a, noise in self.of.responses]
            if all(np.array_equal(x, y) for x, y in zip(new, found, strict=True)):
                break
            found = new
        return found

    def _responses(self, r: np.ndarray) -> list[np.ndarray]:
        """By response its matrices over labels at points; those that are not unknown are not looked at."""
        found: list[np.ndarray] = [np.zeros(0)] * len(self.of.responses)
        for k, where in self._unknown.items():
            a, noise = self.of.responses[k]
            found[k] = r[:, where].reshape(len(r), self.sizes[a], self.sizes[noise])
        return found

    # -- one site

    @cached_property
    def _numbers(self) -> dict[tuple[int, int], np.ndarray]:
        """By sector and coefficient its values at groups of sites."""
        used = [(m[0], m[2]) for m in self.of.memories] + [(c[0], c[2]) for c in self.of.covariances]
        found = {}
        for target, coefficient in used:
            number = self.of.sectors[target]
            found[number, coefficient] = scaled(self.sectors[number].numbers, coefficient)
        return found

    def _inverted(self, w: np.ndarray, responses: list[np.ndarray], at_once: list[np.ndarray]) -> dict[int, np.ndarray]:
        """G(w) by sector: points x groups x rows x rows."""
        found = {}
        for number, sector in self.sectors.items():
            shape = (len(w), len(sector.weights), sector.rows, sector.rows)
            matrix = np.zeros(shape, complex) + np.eye(sector.rows)
            for delay, made in sector.delayed.items():
                matrix -= (w**delay)[:, None, None, None] * made
            for k, (target, on, coefficient, which) in enumerate(self.of.memories):
                if target in sector.places:
                    value = at_once[which] if k in self.of.instant else responses[which][:, None]
                    rows, columns = sector.places[target], sector.places[on]
                    matrix[:, :, rows, columns] -= self._numbers[number, coefficient] * value
            found[number] = np.linalg.inv(matrix)
        return found

    def inverses(self, w: np.ndarray, r: np.ndarray) -> dict[int, np.ndarray]:
        """G(w) by sector at points with their responses."""
        return self._inverted(w, self._responses(r), self.at_once)

    def _block(self, inverse: dict[int, np.ndarray], a: int, noise: int) -> np.ndarray:
        """What a field answers to another's equation: points x groups x labels x labels; nothing in another sector."""
        number = self.of.sectors[noise]
        sector = self.sectors[number]
        if a not in sector.places:
            groups = inverse[number].shape[:2]
            return np.zeros((*groups, self.sizes[a], self.sizes[noise]))
        return inverse[number][:, :, sector.places[a], sector.places[noise]]

    def _mean(self, inverse: dict[int, np.ndarray], a: int, noise: int) -> np.ndarray:
        weights = self.sectors[self.of.sectors[noise]].weights
        return np.asarray(np.einsum("g,mgij->mij", weights, self._block(inverse, a, noise)))

    # -- responses

    def system(self, w: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residual, derivative in w and slope in r of the equations of the responses, point by point."""
        responses = self._responses(r)
        inverse = self._inverted(w, responses, self.at_once)
        residual, rate = np.zeros(r.shape, complex), np.zeros(r.shape, complex)
        slope = np.zeros((*r.shape, self.count), complex) + np.eye(self.count)
        for number, sector in self.sectors.items():
            own = inverse[number]
            change: Any = 0.0
            for delay, made in sector.delayed.items():
                if delay:
                    change = change + (delay * w ** (delay - 1))[:, None, None, None] * made
            weighed = sector.weights[:, None, None]
            for k, where in self._unknown.items():
                a, noise = self.of.responses[k]
                if noise not in sector.places:
                    continue
                if a not in sector.places:
                    residual[:, where] = responses[k].reshape(len(w), -1)
                    continue
                rows, columns = sector.places[a], sector.places[noise]
                answer = np.sum(weighed * own[:, :, rows, columns], axis=1)
                residual[:, where] = (responses[k] - answer).reshape(len(w), -1)
                if isinstance(change, np.ndarray):
                    changed = np.sum(weighed * (own[:, :, rows] @ change @ own[:, :, :, columns]), axis=1)
                    rate[:, where] = -changed.reshape(len(w), -1)
                for m, (target, on, coefficient, which) in enumerate(self.of.memories):
                    if target in sector.places and m not in self.of.instant:
                        left = weighed * self._numbers[number, coefficient] * own[:, :, rows, sector.places[target]]
                        right = own[:, :, sector.places[on], columns]
                        made = np.einsum("mgij,mglk->mikjl", left, right)
                        slope[:, where, self._unknown[which]] -= made.reshape(len(w), where.stop - where.start, -1)
        return residual, rate, slope

    @cached_property
    def start(self) -> Reached:
        """The responses at w = 0: what is answered at once."""
        r = np.zeros(self.count, complex)
        for k, where in self._unknown.items():
            r[where] = self.at_once[k].ravel()
        return Reached(0.0, *self.newton(0.0, r)[:2])

    def newton(self, w: complex, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Improved responses, their derivative in w, and whether Newton's method converged."""
        found, rate, good = self.newtons(np.array([w], complex), r[None])
        return found[0], rate[0], good

    def newtons(self, w: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """The same at several points."""
        if not self.count:
            return r, r, True
        before = np.inf
        for _ in range(12):
            residual, rate, slope = self.system(w, r)
            try:
                both = np.linalg.solve(slope, np.stack([residual, -rate], axis=-1))
            except np.linalg.LinAlgError:
                return r, r, False
            r = r - both[..., 0]
            sizes = np.abs(r) + 1e-3 * np.max(np.abs(r), axis=1, keepdims=True) + 1e-300
            size = float(np.max(np.abs(both[..., 0]) / sizes))
            if not np.isfinite(size) or size > 10 * before:
                return r, r, False
            # corrections are squared from one to the next, until rounding
            if size < 1e-12 or (size < 1e-8 and size < 1e-2 * before) or (size >= before / 4 and before < 1e-10):
                return r, both[..., 1], True
            before = size
        return r, r, False

    def advanced(self, here: Reached, there: complex) -> Reached:
        """The responses at another point, along the straight line between the two."""
        if not self.count:
            return Reached(there, here.responses, here.rates)
        r, tangent, way = here.responses, here.rates, there - here.w
        share, done = 1.0, 0.0
        with np.errstate(all="ignore"):
            while done < 1.0:
                share = min(share, 1.0 - done)
                w = here.w + way * (done + share)
                guess = r + tangent * way * share
                found, rate, good = self.newton(w, guess)
                if good and _near(found, guess):
                    r, tangent, done = found, rate, done + share
                    share *= 2.0
                    continue
                share /= 3.0
                if share < 1e-9:
                    last = Reached(here.w + way * done, r, tangent)
                    raise Undecided(f"the responses of training cannot be followed near w = {w:.4g}", last)
        return Reached(there, r, tangent)

    def between(self, here: Reached, end: Reached, w: np.ndarray) -> np.ndarray | None:
        """The responses at points between two, from the cubic through both; None where that is too far off."""
        if not self.count:
            return np.zeros((len(w), 0), complex)
        way = end.w - here.w
        x = ((w - here.w) / way)[:, None]
        lower = (1 + 2 * x) * here.responses + x * way * here.rates
        upper = (3 - 2 * x) * end.responses + (x - 1) * way * end.rates
        guess = (1 - x) ** 2 * lower + x**2 * upper
        with np.errstate(all="ignore"):
            found, _, good = self.newtons(w, guess)
        return found if good and _near(found, guess) else None

    def along(self, points: Iterable[complex], here: Reached) -> list[Reached]:
        """The responses at points in their order."""
        found = []
        for point in points:
            here = self.advanced(here, complex(point))
            found.append(here)
        return found

    # -- correlations

    def _pairs(self, white: bool) -> dict[tuple[int, int], slice]:
        """Ordered pairs of fields whose correlations noises have, and their places."""
        found: dict[tuple[int, int], slice] = {}
        end = 0
        for k, (_, _, _, a, b) in enumerate(self.of.covariances):
            for pair in ((a, b), (b, a)):
                if (k in self.of.white) == white and pair not in found:
                    start, end = end, end + self.sizes[a] * self.sizes[b]
                    found[pair] = slice(start, end)
        if end > MOST:
            raise ParameterError(f"there are {end} correlations between labels, more than {MOST}; take fewer labels")
        return found

    @cached_property
    def fixed_pairs(self) -> dict[tuple[int, int], slice]:
        return self._pairs(False)

    @cached_property
    def white_pairs(self) -> dict[tuple[int, int], slice]:
        return self._pairs(True)

    @cached_property
    def _noises(self) -> list[tuple[int, int, int, int, int, bool]]:
        """Covariances with both orders of two noises."""
        found = []
        for k, (left, right, coefficient, a, b) in enumerate(self.of.covariances):
            found.append((left, right, coefficient, a, b, k in self.of.white))
            turned = (right, left, coefficient, b, a)
            if turned not in self.of.covariances:
                found.append((*turned, k in self.of.white))
        return found

    def products(self, inverse: dict[int, np.ndarray], to: dict[tuple[int, int], slice], of_white: bool) -> np.ndarray:
        """K(w, w*): what correlations of noises add to those of pairs of fields, points x pairs x pairs."""
        of = self.white_pairs if of_white else self.fixed_pairs
        points = len(next(iter(inverse.values())))
        ends = [max((where.stop for where in some.values()), default=0) for some in (to, of)]
        found = np.zeros((points, *ends), complex)
        for (a, b), rows in to.items():
            for left, right, coefficient, c, d, white in self._noises:
                number = self.of.sectors[left]
                places = self.sectors[number].places
                if white != of_white or a not in places or b not in places:
                    continue
                weighed = self.sectors[number].weights[:, None, None] * self._numbers[number, coefficient]
                one, other = self._block(inverse, a, left), np.conj(self._block(inverse, b, right))
                made = np.einsum("mgij,mgkl->mikjl", weighed * one, other)
                found[:, rows, of[c, d]] += made.reshape(points, rows.stop - rows.start, -1)
        return found

    def fixed_radius(self, inverse: dict[int, np.ndarray]) -> np.ndarray:
        """Point by point the spectral radius of the correlations of fixed matrices."""
        if not self.fixed_pairs:
            return np.zeros(len(next(iter(inverse.values()))))
        maps = self.products(inverse, self.fixed_pairs, False)
        if not np.isfinite(maps).all():
            raise Undecided("something is infinite on the circle")
        return np.asarray(np.max(np.abs(np.linalg.eigvals(maps)), axis=-1))

    def radius_at(self, here: Reached) -> float:
        """The same at one point."""
        return float(self.fixed_radius(self.inverses(np.array([here.w]), here.responses[None]))[0])

    def _transfer(self, inverse: dict[int, np.ndarray]) -> np.ndarray:
        """What fresh noises of one time add to covariances of all later times, as a density on the circle."""
        direct = self.products(inverse, self.white_pairs, True)
        if not self.fixed_pairs:
            return direct
        back = self._resolved(inverse, self.products(inverse, self.fixed_pairs, True))
        return np.asarray(direct + self.products(inverse, self.white_pairs, False) @ back)

    def _resolved(self, inverse: dict[int, np.ndarray], drive: np.ndarray) -> np.ndarray:
        """The correlations of fixed matrices that a drive makes: (1 - K)^-1 drive."""
        own = self.products(inverse, self.fixed_pairs, False)
        return np.linalg.solve(np.eye(own.shape[-1]) - own, drive)

    def adds_up(self) -> bool:
        """Whether noise of each step adds up in what is observed, along modes that no step damps.

        Its density on the circle then has a singularity at w = 1 that cannot be integrated.
        """
        ((_, fields),) = self.of.observed
        if not self.of.stirred:
            return False
        pairs, end = {}, 0
        for a in fields:
            pairs[a, a] = slice(end, end + self.sizes[a] ** 2)
            end += self.sizes[a] ** 2
        found = []
        here = self.along([1 - STEADY[0]], self.start)[-1]
        for angle in STEADY:
            here = self.advanced(here, complex(np.exp(1j * angle)))
            inverse = self.inverses(np.array([here.w]), here.responses[None])
            density = self._stirring(inverse, pairs)
            if self.fixed_pairs:
                back = self._resolved(inverse, self._stirring(inverse, self.fixed_pairs))
                density = density + self.products(inverse, pairs, False) @ back
            found.append(float(np.max(np.abs(density))))
        return found[1] > ADDS_UP * found[0]

    def _stirring(self, inverse: dict[int, np.ndarray], pairs: dict[tuple[int, int], slice]) -> np.ndarray:
        """What noise of each step adds to correlations of pairs of fields: points x pairs x 1."""
        points = len(next(iter(inverse.values())))
        found = np.zeros((points, max(where.stop for where in pairs.values()), 1), complex)
        for (a, b), where in pairs.items():
            for noise in self.of.stirred:
                if self.of.sectors[a] == self.of.sectors[b] == self.of.sectors[noise]:
                    weights = self.sectors[self.of.sectors[noise]].weights
                    one, other = self._block(inverse, a, noise), np.conj(self._block(inverse, b, noise))
                    made = np.einsum("g,mgij,mgkj->mik", weights, one, other)
                    found[:, where, 0] += made.reshape(points, -1)
        return found

    # -- overlaps

    def overlapping(self, inverse: dict[int, np.ndarray], w: np.ndarray) -> np.ndarray:
        """A(w), which joins overlaps with planted directions: points x overlaps x overlaps."""
        count = len(self.of.overlaps)
        found = np.zeros((len(w), count, count), complex)
        at_once = self.inverses(np.zeros(1), self.start.responses[None]) if self.of.renewed and count else inverse
        for k, (source, field, delay, variance) in enumerate(self.of.overlaps):
            for target, planted, coefficient, j in self.of.uses:
                if planted != source or self.of.sectors[field] != self.of.sectors[target]:
                    continue
                sector = self.sectors[self.of.sectors[target]]
                weighed = sector.weights * np.ravel(
                    scaled(sector.numbers, variance) * scaled(sector.numbers, coefficient)
                )
                seen = at_once if source in self.of.renewed else inverse
                answer = self._block(seen, field, target)[:, :, 0, 0]
                found[:, k, j] += w**delay * (answer @ weighed)
        return found

    # -- stability

    def denominators(self, w: complex, r: np.ndarray) -> np.ndarray:
        """What vanishes where a site's answer, or what joins overlaps, has a pole."""
        inverse = self.inverses(np.array([w]), r[None])
        found = [1 / np.linalg.det(own[0]) for own in inverse.values()]
        if self.of.overlaps:
            joined = np.eye(len(self.of.overlaps)) - self.overlapping(inverse, np.array([w]))
            found.append(np.linalg.det(joined))
        return np.concatenate(found)

    def functions(self, w: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """What must be analytic in the disc, one row per point, and G there."""
        inverse = self.inverses(w, r)
        parts = [r, *(own.reshape(len(w), -1) for own in inverse.values())]
        if self.of.overlaps:
            joined = np.eye(len(self.of.overlaps)) - self.overlapping(inverse, w)
            parts.append(np.linalg.inv(joined).reshape(len(w), -1))
        values = np.concatenate(parts, axis=1)
        if not np.isfinite(values).all():
            raise Undecided("something is infinite on the circle")
        return values, inverse

    def examine(self) -> Examined:
        """What decides whether training is stable."""
        try:
            return _Examination(self).examined()
        except Undecided as error:
            if error.last is not None:
                # next to a branch point, where responses end, the spectral radius is one
                radius = self.radius_at(error.last)
                return Examined(radius, error.last, math.inf, True, decided=radius > BRANCHING)
            return Examined(math.inf, self.start, math.inf, True, decided=False)
        except np.linalg.LinAlgError:
            return Examined(math.inf, self.start, math.inf, True, decided=False)

    def white_radius(self) -> float:
        """The spectral radius of the covariances of fresh matrices, summed over all later times; may be undecided."""
        if not self.white_pairs:
            return 0.0
        return float(np.max(np.abs(np.linalg.eigvals(self._mean_transfer()))))

    def _mean_transfer(self) -> np.ndarray:
        """The mean of the transfer over the circle."""
        arc, start = _Arc(0.0, 1.0, (CLOSEST, math.pi)), [1 - CLOSEST, np.exp(1j * CLOSEST)]
        here, scale = self.along(start, self.start)[-1], 0.0

        def resolve(w: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, Any]:
            values = self._transfer(self.inverses(w, r)).real
            if not np.isfinite(values).all():
                raise Undecided("something is infinite on the circle")
            return values.reshape(len(w), -1), values

        def coarse(tail: np.ndarray, values: np.ndarray, width: float) -> bool:
            return bool(np.any(tail > np.max(np.abs(values))))

        def fine(tail: np.ndarray, values: np.ndarray, width: float) -> bool:
            return bool(np.any(tail * width > FINEST * scale))

        total: Any = 0.0
        for rough in (coarse, fine):
            panels = list(_panels(self, arc, here, resolve, rough))
            scale = sum(float(np.max(np.abs(panel.values)) * np.sum(panel.weights)) for panel in panels)
            total = panels[0].kept[0] * CLOSEST / math.pi  # the rest next to w = 1, where it is constant
            for panel in panels:
                total = total + np.einsum("m,mij->ij", panel.weights / math.pi, panel.kept)
        return np.asarray(total)


@dataclass(frozen=True)
class _Arc:
    centre: float
    radius: float
    ends: tuple[float, float]

    def pieces(self) -> list[tuple[float, float]]:
        """Pieces to start from: those of the circle are as long as they are far from w = 1, up to a sixth of pi."""
        first, last = self.ends
        ends = [first]
        while self.radius == 1 and first < last / 6:
            first *= 2
            ends.append(first)
        count = max(2, math.ceil(6 * abs(last - ends[-1]) / math.pi))
        ends = [*ends[:-1], *np.linspace(ends[-1], last, count + 1)]
        return list(itertools.pairwise(map(float, ends)))

    def at(self, angle: Any) -> Any:
        return self.centre + self.radius * np.exp(1j * angle)


@dataclass(frozen=True)
class _Panel:
    """A resolved piece of an arc. weights: of its points in an integral over the angle; kept: of the last call."""

    w: np.ndarray
    r: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    kept: Any
    end: Reached


def _panels(
    step: Step,
    arc: _Arc,
    here: Reached,
    resolve: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, Any]],
    rough: Callable[[np.ndarray, np.ndarray, float], bool],
) -> Iterator[_Panel]:
    """Pieces of an arc that are halved until functions of the responses are resolved on them, in their order.

    rough: whether they are not, from the last coefficients of their Legendre series, their values and the width.
    """
    nodes, weights = np.polynomial.legendre.leggauss(ORDER)
    series = np.linalg.inv(np.polynomial.legendre.legvander(nodes, ORDER - 1))
    waiting = arc.pieces()[::-1]
    for _ in range(PANELS):
        if not waiting:
            return
        low, high = waiting.pop()
        w = arc.at((low + high) / 2 + (high - low) / 2 * nodes)
        end = step.advanced(here, complex(arc.at(high)))
        r = step.between(here, end, w)
        narrow = abs(high - low) <= NARROWEST
        if r is not None:
            values, kept = resolve(w, r)
            if narrow or not rough(np.abs(series[-3:] @ values), values, abs(high - low)):
                yield _Panel(w, r, weights * (high - low) / 2, values, kept, end)
                here = end
                continue
        if narrow:
            raise Undecided(f"the responses of training cannot be followed near w = {w[0]:.4g}")
        middle = (low + high) / 2
        waiting += [(middle, high), (low, middle)]
    raise Undecided("something next to the circle is not resolved")


@dataclass
class _Examination:
    """The contour that avoids w = 1, and what is seen on it."""

    step: Step
    radius: float = 0.0
    at: Reached | None = None

    def examined(self) -> Examined:
        step = self.step
        outer = 1 - np.geomspace(0.4, INDENT, 16)
        points = step.along([0.0, *INSIDE[1:], *outer], step.start)
        self._approach(points[-1])
        w, r = np.array([one.w for one in points]), np.array([one.responses for one in points])
        right, inverse = step.functions(w, r)
        self._look(w, r, inverse)
        if self.radius >= 1 - TOUCHING:
            return Examined(self.radius, self.at or step.start, math.inf, True)
        tried, right = np.array(INSIDE), right[: len(INSIDE)].real
        turn = math.pi - math.acos(INDENT / 2)
        arc, here = self._integrated(_Arc(1.0, INDENT, (math.pi, turn)), tried, points[-1])
        circle, here = self._integrated(_Arc(0.0, 1.0, (2 * math.asin(INDENT / 2), math.pi)), tried, here)
        last = np.array([here.w]), here.responses[None]
        self._look(*last, step.inverses(*last))
        self._sharpen()
        sizes = np.abs(right)
        defect = (arc + circle).imag / math.pi - right
        grows = bool(np.any(np.abs(defect) > FOLLOWS * np.max(sizes, axis=0) + FOLLOWS**2 * np.max(sizes)))
        white = math.inf if grows or self.radius >= 1 - TOUCHING else step.white_radius()
        return Examined(self.radius, self.at or here, white, grows)

    def _approach(self, here: Reached) -> None:
        """Look at the real axis next to w = 1, as far as rounding lets modes that stay for ever be told from growth."""
        for distance in np.geomspace(INDENT, AXIS, 16)[1:]:
            try:
                here = self.step.advanced(here, complex(1 - distance))
            except Undecided as error:
                if error.last is None or self.step.radius_at(error.last) > BRANCHING:
                    raise
                return
            last = np.array([here.w]), here.responses[None]
            self._look(*last, self.step.inverses(*last))

    def _look(self, w: np.ndarray, r: np.ndarray, inverse: dict[int, np.ndarray]) -> None:
        radii = self.step.fixed_radius(inverse)
        place = int(np.argmax(radii))
        if radii[place] >= self.radius:
            self.radius, self.at = float(radii[place]), Reached(complex(w[place]), r[place], np.zeros_like(r[place]))

    def _sharpen(self) -> None:
        """The largest spectral radius between points of the circle."""
        if self.at is None or self.radius < NOTABLE or abs(abs(self.at.w) - 1) > 1e-12:
            return
        here = replace(self.at, rates=self.step.newton(self.at.w, self.at.responses)[1])
        angle = float(np.angle(here.w))
        width = max(min(angle, math.pi - angle, math.pi / 12), INDENT)
        while width > NARROW:
            turned = np.exp(1j * np.clip(angle + width * np.array([-1.0, -0.5, 0.5, 1.0]), 2 * INDENT, math.pi))
            points = [self.step.advanced(here, complex(w)) for w in turned]
            r = np.array([one.responses for one in points])
            before = self.radius
            self._look(turned, r, self.step.inverses(turned, r))
            if self.radius > before:
                here = replace(self.at, rates=self.step.newton(self.at.w, self.at.responses)[1])
                angle = float(np.angle(here.w))
            width /= 2

    def _integrated(self, arc: _Arc, tried: np.ndarray, here: Reached) -> tuple[np.ndarray, Reached]:
        """Analytic functions along an arc, integrated with weights 1 / (w - each of some points), and where it ends."""
        total: Any = 0.0
        for panel in _panels(self.step, arc, here, self.step.functions, _rough):
            self._look(panel.w, panel.r, panel.kept)
            weights = 1j * (panel.w - arc.centre) * panel.weights
            total = total + np.array([(weights / (panel.w - x)) @ panel.values for x in tried])
            here = panel.end
        return total, here


def _rough(tail: np.ndarray, values: np.ndarray, width: float) -> bool:
    sizes = np.abs(values)
    return bool(np.any(tail > RESOLVED * np.max(sizes, axis=0) + ROUNDING * np.max(sizes)))


def _near(found: np.ndarray, guess: np.ndarray) -> bool:
    """Whether Newton's method moved a guess by little, so that it cannot have left the branch."""
    size = np.abs(found) + 0.01 * np.max(np.abs(found), axis=-1, keepdims=True) + 1e-300
    return bool(np.max(np.abs(found - guess) / size) < 0.05)


def step_at(of: RecursionOf, p: Point, nodes: int) -> Step:
    laws = tuple(Law(np.asarray(law.values), np.asarray(law.weights)) for law in of.sites(p, nodes))
    return Step(of, p, laws)
