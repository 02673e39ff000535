"""The step that linear training applies over and over, and whether what it applies grows.

In the variable w = 1 - v of sum_t x(t) w^t a site answers its noises by the inverse G(w) of a small matrix
(`numerics.limit.linear_sites`). Training is stable if nothing has a singularity in the disc |w| < 1, where 1/w is an
eigenvalue of the step:

1. R and G are analytic there, and so is the inverse of 1 - A(w), where A joins overlaps with planted directions. By
   Cauchy's formula their values inside follow from those on the circle.
2. Correlations of fixed random matrices obey C = K(w, w*) C + drive, with K from products of G. Outside of the spectrum
   of a non-normal step the spectral radius of K is below one.
3. Covariances of what is drawn afresh at each step, as of fresh matrices and of noise that multiplies fields, obey
   c(t) = sum_s M(t - s) c(s) + drive. As c is a covariance, it stays bounded if the spectral radius of sum_s M(s) is
   below one.

Modes that stay for ever at any rate, as of directions that no sample has, lie at w = 1, which the circle avoids.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from numerics.limit.finite_memory import DECAYS, FiniteMemory, has_finite_memory, spectral_radius
from numerics.limit.linear_sites import Inverses, Pairs, conjugate, end_of, laws_at, slices, stacked
from numerics.limit.responses import Arc, ArcPanel, Reached, ResponsesAt, UnfollowedResponses
from numerics.runtime.linear import RecursionOf
from numerics.runtime.point import Point

INDENT, AXIS = 1e-4, 1e-8
"""Radius of the arc on which w = 1 is avoided, and the distance from it to which the real axis is followed."""
TOUCHING = 1e-8
"""A spectral radius that is below one by less is that of a singularity on the circle."""
BRANCHING = 0.99
"""Spectral radius beyond which responses that cannot be followed end in a branch point."""
INSIDE = (1.0, 0.8, 0.55)
"""Values of v where functions must follow from those on the circle."""
FOLLOWS = 1e-6
"""To which they must, relatively."""
NOTABLE, NARROW = 0.9, 1e-6
"""A spectral radius beyond which its maximum is sought, and to which angle."""
FINEST = 1e-13
"""Relative accuracy of the covariances of fresh matrices."""
STEADY, ADDS_UP = (1e-5, 1e-6), 9.5
"""Angles next to w = 1 at which noise is compared, and by how much it grows at least where it adds up for ever."""
CLOSEST = 1e-7
"""Angle below which they do not change any more."""
VARIES = 6.0
"""By how much more than between CLOSEST and twice this angle a density may change below it, on average."""


@dataclass(frozen=True)
class Examined:
    """What decides stability at parameters. fixed: the largest spectral radius of the correlations of fixed matrices on
    the contour, and `at` where; white: that of the covariances of fresh noises, white_error its error; grows: whether
    something is not analytic in the disc. What is not known is infinite, and decided tells whether stability is."""

    fixed: float
    at: Reached
    white: float
    grows: bool
    decided: bool = True
    white_error: float = 0.0

    @property
    def stable(self) -> bool:
        return self.decided and not self.grows and self.fixed < 1 - TOUCHING and self.white < 1 - self.white_error


def needed_for(of: RecursionOf, loss: str) -> RecursionOf:
    """The step without the fields that an observable does not depend on."""
    keep = set(dict(of.observed)[loss])
    while True:
        more = {term.of for term in of.operator if term.target in keep}
        for m in of.memories:
            if m.target in keep:
                more |= {m.on, *m.response}
        for c in of.covariances:
            if {c.left, c.right} & keep:
                more |= {c.left, c.right, *c.of}
        more |= {overlap.field for overlap in of.overlaps if any(term.target in keep for term in overlap.terms)}
        if more <= keep:
            break
        keep |= more
    overlaps = [replace(one, terms=tuple(term for term in one.terms if term.target in keep)) for one in of.overlaps]
    return replace(
        of,
        fields=tuple(field for field in of.fields if field.name in keep),
        operator=tuple(term for term in of.operator if term.target in keep),
        memories=tuple(m for m in of.memories if m.target in keep and m.on in keep),
        covariances=tuple(c for c in of.covariances if c.left in keep and c.right in keep),
        overlaps=tuple(one for one in overlaps if one.terms),
        stirred=tuple(name for name in of.stirred if name in keep),
        observed=((loss, dict(of.observed)[loss]),),
    )


@dataclass(frozen=True)
class Step(ResponsesAt):
    """The step at parameters."""

    of: RecursionOf

    # -- correlations

    def _added(self, inverse: Inverses, to: Pairs, fresh: bool) -> np.ndarray:
        """K(w, w*): what correlations of noises add to those of pairs of fields, points x pairs x pairs."""
        return self.products(inverse, conjugate(inverse), to, fresh)

    def fixed_radius(self, inverse: Inverses) -> np.ndarray:
        """Point by point the spectral radius of the correlations of fixed matrices."""
        if not self.fixed_pairs:
            return np.zeros(len(next(iter(inverse.values()))))
        maps = self._added(inverse, self.fixed_pairs, False)
        if not np.isfinite(maps).all():
            raise UnfollowedResponses("something is infinite on the circle")
        return np.asarray(np.max(np.abs(np.linalg.eigvals(maps)), axis=-1))

    def radius_at(self, here: Reached) -> float:
        """The same at one point."""
        return float(self.fixed_radius(self.inverses(*here.row))[0])

    def _transfer(self, inverse: Inverses) -> np.ndarray:
        """What fresh noises of one time add to covariances of all later times, as a density on the circle."""
        direct = self._added(inverse, self.white_pairs, True)
        if not self.fixed_pairs:
            return direct
        back = self._resolved(inverse, self._added(inverse, self.fixed_pairs, True))
        return np.asarray(direct + self._added(inverse, self.white_pairs, False) @ back)

    def _resolved(self, inverse: Inverses, drive: np.ndarray) -> np.ndarray:
        """The correlations of fixed matrices that a drive makes: (1 - K)^-1 drive."""
        own = self._added(inverse, self.fixed_pairs, False)
        return np.linalg.solve(np.eye(own.shape[-1]) - own, drive)

    def adds_up(self) -> bool:
        """Whether noise of each step adds up in what is observed, along modes that no step damps.

        Its density on the circle then has a singularity at w = 1 that cannot be integrated.
        """
        ((_, fields),) = self.of.observed
        if not self.of.stirred:
            return False
        pairs: Pairs = slices({(a, a): self.sizes[a] ** 2 for a in fields})
        found = []
        here = self.along([STEADY[0]], self.start)[-1]
        for angle in STEADY:
            here = self.advanced(here, on_circle(angle))
            inverse = self.inverses(*here.row)
            density = self._stirring(inverse, pairs)
            if self.fixed_pairs:
                back = self._resolved(inverse, self._stirring(inverse, self.fixed_pairs))
                density = density + self._added(inverse, pairs, False) @ back
            found.append(float(np.max(np.abs(density))))
        return found[1] > ADDS_UP * found[0]

    def _stirring(self, inverse: Inverses, pairs: Pairs) -> np.ndarray:
        """What noise of each step adds to correlations of pairs of fields: points x pairs x 1."""
        points = len(next(iter(inverse.values())))
        found = np.zeros((points, end_of(pairs), 1), complex)
        for (a, b), where in pairs.items():
            for noise in self.of.stirred:
                if self.places[a].sector == self.places[b].sector == self.places[noise].sector:
                    one, other = self.answer(inverse, a, noise), np.conj(self.answer(inverse, b, noise))
                    added = np.einsum("g,mgij,mgkj->mik", self.sector_of(noise).weights, one, other)
                    found[:, where, 0] += added.reshape(points, -1)
        return found

    # -- overlaps

    def overlapping(self, inverse: Inverses, v: np.ndarray) -> np.ndarray:
        """A(w), which joins overlaps with planted directions: points x overlaps x overlaps."""
        overlaps = self.of.overlaps
        found = np.zeros((len(v), len(overlaps), len(overlaps)), complex)
        at_once = self.inverses(*self.start.row) if self.of.renewed and overlaps else inverse
        for k, overlap in enumerate(overlaps):
            for j, other in enumerate(overlaps):
                for term in other.terms:
                    sector = self.sector_of(term.target)
                    if term.source != overlap.source or overlap.field not in sector.places:
                        continue
                    scales = (self.coefficient(sector, c)[:, 0, 0] for c in (overlap.variance, term.coefficient))
                    weighed = sector.weights * np.prod(list(scales), axis=0)
                    seen = at_once if overlap.source in self.of.renewed else inverse
                    answer = self.answer(seen, overlap.field, term.target)[:, :, 0, 0]
                    found[:, k, j] += (1 - v) ** overlap.delay * (answer @ weighed)
        return found

    # -- stability

    def denominators(self, v: complex, r: np.ndarray) -> np.ndarray:
        """What vanishes where a site's answer, or what joins overlaps, has a pole."""
        inverse = self.inverses(np.array([v]), r[None])
        found = [1 / np.linalg.det(own[0]) for own in inverse.values()]
        if self.of.overlaps:
            joined = np.eye(len(self.of.overlaps)) - self.overlapping(inverse, np.array([v]))
            found.append(np.linalg.det(joined))
        return np.concatenate(found)

    def functions(self, v: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, Inverses]:
        """What must be analytic in the disc, one row per point, and G there."""
        inverse = self.inverses(v, r)
        parts = [r, *inverse.values()]
        if self.of.overlaps:
            parts.append(np.linalg.inv(np.eye(len(self.of.overlaps)) - self.overlapping(inverse, v)))
        values = stacked(parts)
        if not np.isfinite(values).all():
            raise UnfollowedResponses("something is infinite on the circle")
        return values, inverse

    def examine(self) -> Examined:
        """What decides whether training is stable."""
        if self.finite_memory is not None and not self.of.overlaps:
            return self._examined_directly(self.finite_memory)
        try:
            return _Examination(self).examined()
        except UnfollowedResponses as error:
            if error.last is not None:
                # next to a branch point, where responses end, the spectral radius is one
                radius = self.radius_at(error.last)
                return Examined(radius, error.last, math.inf, True, decided=radius > BRANCHING)
            return Examined(math.inf, self.start, math.inf, True, decided=False)
        except np.linalg.LinAlgError:
            return Examined(math.inf, self.start, math.inf, True, decided=False)

    def _examined_directly(self, memory: FiniteMemory) -> Examined:
        """The same from the matrix that a site applies over and over."""
        size, angle = abs(memory.leading), abs(float(np.angle(memory.leading)))
        at = replace(self.start, v=complex(on_circle(angle)))
        white, error = memory.white_radius(self.white_pairs)
        if math.isfinite(white):
            return Examined(0.0, at, white, False, abs(white - 1) > error, error)
        return Examined(0.0, at, math.inf, True, decided=abs(size - 1) > DECAYS)

    @cached_property
    def finite_memory(self) -> FiniteMemory | None:
        """The step as a matrix that a site applies, where all noises are drawn afresh."""
        return FiniteMemory(self) if has_finite_memory(self) else None

    def white_radius(self) -> tuple[float, float]:
        """The spectral radius of the covariances of fresh noises, summed over all later times, and its error; may be
        undecided."""
        if not self.white_pairs:
            return 0.0, 0.0
        if self.finite_memory is not None:
            return self.finite_memory.white_radius(self.white_pairs)
        transfer, error = self._mean_transfer()
        return spectral_radius(transfer), error

    def _mean_transfer(self) -> tuple[np.ndarray, float]:
        """The mean of the transfer over the circle, and its error."""
        arc = Arc(1.0, 1.0, (CLOSEST, math.pi))
        here, scale = self.along([CLOSEST, on_circle(CLOSEST)], self.start)[-1], 0.0

        def transfer(v: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, Any]:
            values = self._transfer(self.inverses(v, r)).real
            if not np.isfinite(values).all():
                raise UnfollowedResponses("something is infinite on the circle")
            return values.reshape(len(v), -1), values

        def coarse(tail: np.ndarray, values: np.ndarray, width: float) -> bool:
            return bool(np.any(tail > np.max(np.abs(values))))

        def fine(tail: np.ndarray, values: np.ndarray, width: float) -> bool:
            return bool(np.any(tail * width > FINEST * scale))

        total: Any = 0.0
        for rough in (coarse, fine):
            panels = list(self.panels(arc, here, transfer, rough))
            scale = sum(float(np.max(np.abs(panel.values)) * np.sum(panel.weights)) for panel in panels)
            total = panels[0].kept[0] * CLOSEST / math.pi  # the rest next to w = 1, where it is nearly constant
            for panel in panels:
                total = total + np.einsum("m,mij->ij", panel.weights / math.pi, panel.kept)
        # a power of the angle that can be integrated changes less there than VARIES times beyond
        near = next(panel.kept[-1] for panel in panels if abs(panel.end.v) >= 2 * CLOSEST * (1 - 1e-9))
        rest = VARIES * float(np.max(np.abs(near - panels[0].kept[0]))) * CLOSEST
        return np.asarray(total), (rest + FINEST * scale) / math.pi


@dataclass
class _Examination:
    """The contour that avoids w = 1, and what is seen on it."""

    step: Step
    radius: float = 0.0
    at: Reached | None = None

    def examined(self) -> Examined:
        step = self.step
        points = step.along([*INSIDE, *np.geomspace(0.4, INDENT, 16)], step.start)
        self._approach(points[-1])
        v, r = np.array([one.v for one in points]), np.array([one.responses for one in points])
        right, inverse = step.functions(v, r)
        self._look(v, r, inverse)
        if self.radius >= 1 - TOUCHING:
            return Examined(self.radius, self.at or step.start, math.inf, True)
        tried, right = np.array(INSIDE), right[: len(INSIDE)].real
        found, here = step.from_contour(INDENT, points[-1], step.functions, tried, self._look_on)
        self._look(*here.row, step.inverses(*here.row))
        self._sharpen()
        sizes = np.abs(right)
        grows = bool(np.any(np.abs(found - right) > FOLLOWS * np.max(sizes, axis=0) + FOLLOWS**2 * np.max(sizes)))
        at = self.at or here
        if grows or self.radius >= 1 - TOUCHING:
            return Examined(self.radius, at, math.inf, grows)
        white, error = step.white_radius()
        return Examined(self.radius, at, white, grows, abs(white - 1) > error, error)

    def _approach(self, here: Reached) -> None:
        """Look at the real axis next to w = 1, as far as rounding lets modes that stay for ever be told from growth."""
        for distance in np.geomspace(INDENT, AXIS, 16)[1:]:
            try:
                here = self.step.advanced(here, complex(distance))
            except UnfollowedResponses as error:
                if error.last is None or self.step.radius_at(error.last) > BRANCHING:
                    raise
                return
            self._look(*here.row, self.step.inverses(*here.row))

    def _look_on(self, panel: ArcPanel) -> None:
        self._look(panel.v, panel.r, panel.kept)

    def _look(self, v: np.ndarray, r: np.ndarray, inverse: Inverses) -> None:
        radii = self.step.fixed_radius(inverse)
        place = int(np.argmax(radii))
        if radii[place] >= self.radius:
            self.radius, self.at = float(radii[place]), Reached(complex(v[place]), r[place], np.zeros_like(r[place]))

    def _sharpen(self) -> None:
        """The largest spectral radius between points of the circle."""
        if self.at is None or self.radius < NOTABLE or abs(abs(1 - self.at.v) - 1) > 1e-12:
            return
        here = replace(self.at, rates=self.step.newton(self.at.v, self.at.responses)[1])
        angle = here.angle
        width = max(min(angle, math.pi - angle, math.pi / 12), INDENT)
        while width > NARROW:
            turned = on_circle(np.clip(angle + width * np.array([-1.0, -0.5, 0.5, 1.0]), 2 * INDENT, math.pi))
            points = [self.step.advanced(here, complex(v)) for v in turned]
            r = np.array([one.responses for one in points])
            before = self.radius
            self._look(turned, r, self.step.inverses(turned, r))
            if self.radius > before:
                here = replace(self.at, rates=self.step.newton(self.at.v, self.at.responses)[1])
                angle = here.angle
            width /= 2


def on_circle(angle: Any) -> Any:
    """The point v of a mode w = exp(i angle) that neither grows nor decays."""
    return 1 - np.exp(1j * angle)


def step_at(of: RecursionOf, p: Point, nodes: int) -> Step:
    return Step(of, p, laws_at(of, p, nodes))
