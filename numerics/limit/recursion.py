"""Stability of the linear recursion that training iterates.

In the generating function sum_t x(t) w^t, with w = 1 - v, a site responds to its noises by the inverse G(w) of a small
matrix (`numerics.limit.linear_sites`). Training is stable if nothing is singular in the disc |w| < 1; a singularity at
w is an eigenvalue 1/w of the recursion:

1. R and G are analytic there, and so is the inverse of 1 - A(w), where A couples overlaps with planted directions. By
   Cauchy's formula their values inside follow from those on the circle. 2. Correlations of fixed random matrices obey C
   = K(w, w*) C + drive, where K consists of products of G. Outside the spectrum of a non-normal recursion the spectral
   radius of K is below one. 3. Covariances of redrawn noises, of fresh matrices or of multiplicative noise, obey c(t) =
   sum_s M(t - s) c(s) + drive. They remain bounded if the spectral radius of sum_s M(s) is below one.

Conserved modes, such as directions without samples, lie at w = 1, which the contour avoids.
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
"""Radius of the arc around w = 1, and the distance from it down to which the real axis is followed."""
TOUCHING = 1e-8
"""Distance of a spectral radius from one within which a singularity lies on the circle."""
BRANCHING = 0.99
"""Spectral radius above which responses that cannot be continued end in a branch point."""
INSIDE = (1.0, 0.8, 0.55)
"""Points v at which Cauchy's formula is checked."""
FOLLOWS = 1e-6
"""Relative tolerance of that check."""
NOTABLE, NARROW = 0.9, 1e-6
"""Spectral radius above which its maximum over angles is refined, and the tolerance in the angle (radians)."""
FINEST = 1e-13
"""Relative tolerance of the covariances of redrawn matrices."""
STEADY, ADDS_UP = (1e-5, 1e-6), 9.5
"""Angles (radians) near w = 1 at which noise densities are compared, and the smallest ratio at which noise
accumulates."""
CLOSEST = 1e-7
"""Angle (radians) below which densities are treated as constant."""
VARIES = 6.0
"""Bound on the mean change of a density below CLOSEST, in units of that between CLOSEST and twice this angle."""
STEEPEST = 0.75
"""Largest power of the inverse distance from a marginal mode with which a density may grow.

At a branch point the density is (a + b x)/x, with x the square root of the distance. If it grows by less than
2**STEEPEST from twice the distance to the distance, -b x/a < 0.28. Below 1/3 the density remains below the power law
continued to all smaller distances, and so does its integral. Measured powers at CLOSEST are 0.5001 to 0.5003
(`tests/numerics/limit/test_exact_stability.py`)."""


@dataclass(frozen=True)
class Examined:
    """Result of a stability analysis at given parameters.

    Attributes:
        fixed: largest spectral radius of the correlations of fixed matrices on the contour.
        at: the point at which it is attained.
        white: spectral radius of the covariances of redrawn noises; infinite if unknown.
        grows: whether some function fails to be analytic in the disc.
        decided: whether stability is decided.
        white_error: error of `white`.
    """

    fixed: float
    at: Reached
    white: float
    grows: bool
    decided: bool = True
    white_error: float = 0.0

    @property
    def stable(self) -> bool:
        """Whether training is stable."""
        return self.decided and not self.grows and self.fixed < 1 - TOUCHING and self.white < 1 - self.white_error


def needed_for(of: RecursionOf, loss: str) -> RecursionOf:
    """Return the recursion restricted to the fields on which an observable depends."""
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
    """The linear recursion at given parameters."""

    of: RecursionOf

    # -- correlations

    def _added(self, inverse: Inverses, to: Pairs, fresh: bool) -> np.ndarray:
        """Return K(w, w*), the linear map from correlations of noises to those of pairs of fields: points x pairs x
        pairs."""
        return self.products(inverse, conjugate(inverse), to, fresh)

    def fixed_radius(self, inverse: Inverses) -> np.ndarray:
        """Return the spectral radius of the correlations of fixed matrices, point by point."""
        if not self.fixed_pairs:
            return np.zeros(len(next(iter(inverse.values()))))
        maps = self._added(inverse, self.fixed_pairs, False)
        if not np.isfinite(maps).all():
            raise UnfollowedResponses("something is infinite on the circle")
        return np.asarray(np.max(np.abs(np.linalg.eigvals(maps)), axis=-1))

    def radius_at(self, here: Reached) -> float:
        """Return the spectral radius of the correlations of fixed matrices at one point."""
        return float(self.fixed_radius(self.inverses(*here.row))[0])

    def _transfer(self, inverse: Inverses) -> np.ndarray:
        """Return the contribution of noises redrawn at one time to later covariances, as a density on the circle."""
        direct = self._added(inverse, self.white_pairs, True)
        if not self.fixed_pairs:
            return direct
        back = self._resolved(inverse, self._added(inverse, self.fixed_pairs, True))
        return np.asarray(direct + self._added(inverse, self.white_pairs, False) @ back)

    def _resolved(self, inverse: Inverses, drive: np.ndarray) -> np.ndarray:
        """Return the correlations of fixed matrices for a drive: (1 - K)^-1 drive."""
        own = self._added(inverse, self.fixed_pairs, False)
        return np.linalg.solve(np.eye(own.shape[-1]) - own, drive)

    def adds_up(self) -> bool:
        """Whether noise accumulates in an observable along undamped modes.

        Its density on the circle then has a non-integrable singularity at w = 1.
        """
        ((_, fields),) = self.of.observed
        if not self.of.stirred:
            return False
        pairs: Pairs = slices({(a, a): self.sizes[a] ** 2 for a in fields})
        densities = []
        here = self.along([STEADY[0]], self.start)[-1]
        for angle in STEADY:
            here = self.advanced(here, on_circle(angle))
            inverse = self.inverses(*here.row)
            density = self._stirring(inverse, pairs)
            if self.fixed_pairs:
                back = self._resolved(inverse, self._stirring(inverse, self.fixed_pairs))
                density = density + self._added(inverse, pairs, False) @ back
            densities.append(float(np.max(np.abs(density))))
        return densities[1] > ADDS_UP * densities[0]

    def _stirring(self, inverse: Inverses, pairs: Pairs) -> np.ndarray:
        """Return the contribution of the noise of one step to correlations of pairs of fields: points x pairs x 1."""
        points = len(next(iter(inverse.values())))
        added_noise = np.zeros((points, end_of(pairs), 1), complex)
        for (a, b), where in pairs.items():
            for noise in self.of.stirred:
                if self.places[a].sector == self.places[b].sector == self.places[noise].sector:
                    one, other = self.answer(inverse, a, noise), np.conj(self.answer(inverse, b, noise))
                    added = np.einsum("g,mgij,mgkj->mik", self.sector_of(noise).weights, one, other)
                    added_noise[:, where, 0] += added.reshape(points, -1)
        return added_noise

    # -- overlaps

    def overlapping(self, inverse: Inverses, v: np.ndarray) -> np.ndarray:
        """Return A(w), which couples overlaps with planted directions: points x overlaps x overlaps."""
        overlaps = self.of.overlaps
        matrix = np.zeros((len(v), len(overlaps), len(overlaps)), complex)
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
                    matrix[:, k, j] += (1 - v) ** overlap.delay * (answer @ weighed)
        return matrix

    # -- stability

    def denominators(self, v: complex, r: np.ndarray) -> np.ndarray:
        """Return the determinants that vanish at poles of a site's response or of (1 - A(w))^-1."""
        inverse = self.inverses(np.array([v]), r[None])
        determinants = [1 / np.linalg.det(own[0]) for own in inverse.values()]
        if self.of.overlaps:
            joined = np.eye(len(self.of.overlaps)) - self.overlapping(inverse, np.array([v]))
            determinants.append(np.linalg.det(joined))
        return np.concatenate(determinants)

    def functions(self, v: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, Inverses]:
        """Return the functions that must be analytic in the disc, one row per point, and G there."""
        inverse = self.inverses(v, r)
        parts = [r, *inverse.values()]
        if self.of.overlaps:
            parts.append(np.linalg.inv(np.eye(len(self.of.overlaps)) - self.overlapping(inverse, v)))
        values = stacked(parts)
        if not np.isfinite(values).all():
            raise UnfollowedResponses("something is infinite on the circle")
        return values, inverse

    def examine(self) -> Examined:
        """Return the result of the stability analysis."""
        if self.finite_memory is not None and not self.of.overlaps:
            return self._examined_directly(self.finite_memory)
        try:
            return _Examination(self).examined()
        except UnfollowedResponses as error:
            if error.last is not None:
                # at a branch point of the responses the spectral radius is one
                radius = self.radius_at(error.last)
                return Examined(radius, error.last, math.inf, True, decided=radius > BRANCHING)
            return Examined(math.inf, self.start, math.inf, True, decided=False)
        except np.linalg.LinAlgError:
            return Examined(math.inf, self.start, math.inf, True, decided=False)

    def _examined_directly(self, memory: FiniteMemory) -> Examined:
        """Return the result from the eigenvalues of the companion matrix."""
        size, angle = abs(memory.leading), abs(float(np.angle(memory.leading)))
        at = replace(self.start, v=complex(on_circle(angle)))
        white, error = memory.white_radius(self.white_pairs)
        if math.isfinite(white):
            return Examined(0.0, at, white, False, abs(white - 1) > error, error)
        return Examined(0.0, at, math.inf, True, decided=abs(size - 1) > DECAYS)

    @cached_property
    def finite_memory(self) -> FiniteMemory | None:
        """The companion-matrix recursion, if all noises are redrawn; None otherwise."""
        return FiniteMemory(self) if has_finite_memory(self) else None

    def white_radius(self) -> tuple[float, float]:
        """Return the spectral radius of the covariances of redrawn noises, summed over later times, and its error."""
        if not self.white_pairs:
            return 0.0, 0.0
        if self.finite_memory is not None:
            return self.finite_memory.white_radius(self.white_pairs)
        transfer, error = self._mean_transfer()
        return spectral_radius(transfer), error

    def _mean_transfer(self) -> tuple[np.ndarray, float]:
        """Return the mean of the transfer over the circle, and its error."""
        (panels,), error = self._transfers([Arc(1.0, 1.0, (CLOSEST, math.pi))])
        return _mean_over(panels) + panels[0].kept[0] * CLOSEST / math.pi, error

    def _transfers(self, arcs: list[Arc]) -> tuple[list[list[ArcPanel]], float]:
        """Return the transfer on panels of the circle that resolve its mean, and the error of the mean.

        The first arc starts at CLOSEST; below it the density is nearly constant.
        """
        first, scale = self.along([CLOSEST, on_circle(CLOSEST)], self.start)[-1], 0.0

        def transfer(v: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, Any]:
            values = self._transfer(self.inverses(v, r)).real
            if not np.isfinite(values).all():
                raise UnfollowedResponses("something is infinite on the circle")
            return values.reshape(len(v), -1), values

        def coarse(tail: np.ndarray, values: np.ndarray, width: float) -> bool:
            return bool(np.any(tail > np.max(np.abs(values))))

        def fine(tail: np.ndarray, values: np.ndarray, width: float) -> bool:
            return bool(np.any(tail * width > FINEST * scale))

        resolved: list[list[ArcPanel]] = []
        for rough in (coarse, fine):
            here, resolved = first, []
            for arc in arcs:
                # from arc to arc through the disc, where responses are analytic
                inner = (1 - CLOSEST) * np.exp(1j * np.array([here.angle, arc.ends[0]]))
                here = self.along([*(1 - inner), arc.at(arc.ends[0])], here)[-1] if resolved else first
                resolved.append(list(self.panels(arc, here, transfer, rough)))
                here = resolved[-1][-1].end
            scale = sum(float(np.max(np.abs(p.values)) * np.sum(p.weights)) for panels in resolved for p in panels)
        # an integrable power of the angle varies there by less than VARIES times the change beyond
        panels = resolved[0]
        near = next(panel.kept[-1] for panel in panels if abs(panel.end.v) >= 2 * CLOSEST * (1 - 1e-9))
        rest = VARIES * float(np.max(np.abs(near - panels[0].kept[0]))) * CLOSEST
        return resolved, (rest + FINEST * scale) / math.pi

    def white_radius_beside(self, angle: float) -> tuple[float, float]:
        """Return bounds on the spectral radius of the covariances of redrawn noises where a mode of the mean is
        marginal at an angle; an unknown upper bound is infinite.

        Near the angle the density of the transfer grows like an inverse square root if responses have a branch point.
        It is a positive map of covariances, so omitting the vicinity of the angle can only lower the radius.
        """
        if self.finite_memory is not None or angle < 4 * CLOSEST:
            return 0.0, math.inf
        ends = [(CLOSEST, angle - CLOSEST), (angle + CLOSEST, math.pi)]
        resolved, error = self._transfers([Arc(1.0, 1.0, (low, high)) for low, high in ends if low < high])
        total = sum(_mean_over(panels) for panels in resolved) + resolved[0][0].kept[0] * CLOSEST / math.pi
        rest = np.zeros_like(total)
        for panels in resolved:
            distances = np.abs(np.angle(1 - np.concatenate([panel.v for panel in panels])) - angle)
            densities = np.concatenate([panel.kept for panel in panels])
            near = int(np.argmin(distances))
            twice = int(np.argmin(np.abs(distances - 2 * distances[near])))
            growth = np.max(np.abs(densities[near])) / np.max(np.abs(densities[twice]))
            if growth > (distances[twice] / distances[near]) ** STEEPEST:
                return spectral_radius(total) - error, math.inf
            rest += densities[near] * distances[near] / (1 - STEEPEST) / math.pi
        return spectral_radius(total) - error, spectral_radius(total + rest) + error


def _mean_over(panels: list[ArcPanel]) -> np.ndarray:
    """Return the contribution of panels of the upper half of the circle to the mean over the circle."""
    return np.asarray(sum(np.einsum("m,mij->ij", panel.weights / math.pi, panel.kept) for panel in panels))


@dataclass
class _Examination:
    """Stability analysis along a contour that avoids w = 1."""

    step: Step
    radius: float = 0.0
    at: Reached | None = None

    def examined(self) -> Examined:
        """Follow the contour and return the result."""
        step = self.step
        points = step.along([*INSIDE, *np.geomspace(0.4, INDENT, 16)], step.start)
        self._approach(points[-1])
        v, r = np.array([one.v for one in points]), np.array([one.responses for one in points])
        right, inverse = step.functions(v, r)
        self._look(v, r, inverse)
        if self.radius >= 1 - TOUCHING:
            return Examined(self.radius, self.at or step.start, math.inf, True)
        tried, right = np.array(INSIDE), right[: len(INSIDE)].real
        from_circle, here = step.from_contour(INDENT, points[-1], step.functions, tried, self._look_on)
        self._look(*here.row, step.inverses(*here.row))
        self._sharpen()
        sizes = np.abs(right)
        grows = bool(np.any(np.abs(from_circle - right) > FOLLOWS * np.max(sizes, axis=0) + FOLLOWS**2 * np.max(sizes)))
        at = self.at or here
        if grows or self.radius >= 1 - TOUCHING:
            return Examined(self.radius, at, math.inf, grows)
        white, error = step.white_radius()
        return Examined(self.radius, at, white, grows, abs(white - 1) > error, error)

    def _approach(self, here: Reached) -> None:
        """Record the spectral radius on the real axis near w = 1, as close as rounding allows conserved modes to be
        told from growth.
        """
        for distance in np.geomspace(INDENT, AXIS, 16)[1:]:
            try:
                here = self.step.advanced(here, complex(distance))
            except UnfollowedResponses as error:
                if error.last is None or self.step.radius_at(error.last) > BRANCHING:
                    raise
                return
            self._look(*here.row, self.step.inverses(*here.row))

    def _look_on(self, panel: ArcPanel) -> None:
        """Record the largest spectral radius on a panel."""
        self._look(panel.v, panel.r, panel.kept)

    def _look(self, v: np.ndarray, r: np.ndarray, inverse: Inverses) -> None:
        """Record the largest spectral radius at points."""
        radii = self.step.fixed_radius(inverse)
        place = int(np.argmax(radii))
        if radii[place] >= self.radius:
            self.radius, self.at = float(radii[place]), Reached(complex(v[place]), r[place], np.zeros_like(r[place]))

    def _sharpen(self) -> None:
        """Refine the largest spectral radius between points of the circle."""
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
    """Return the point v of a marginal mode w = exp(i angle)."""
    return 1 - np.exp(1j * angle)


def step_at(of: RecursionOf, p: Point, nodes: int) -> Step:
    """Return the recursion at parameters, with densities at this many nodes."""
    return Step(of, p, laws_at(of, p, nodes))
