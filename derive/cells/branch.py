"""Certified continuation of one root of a polynomial from large Im z down to the real axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import sympy as sp

from derive.algebra.nodes import Z
from derive.cells.balls import Inconclusive, ball, enclosure

STEPS = 4000
"""Maximal number of continuation steps to the real axis."""
FIRST_SHARES = tuple(Fraction(n, 16) for n in (0, 4, 8, 12, 15))
"""Fractions of the height to which a continuation step is first tried."""


@dataclass(frozen=True)
class Disc:
    """A disc that contains exactly one root of a polynomial."""

    centre: flint.acb
    radius: flint.arb

    @property
    def ball(self) -> flint.acb:
        """A square that contains the disc."""
        side = flint.arb(0, self.radius.abs_upper())
        return self.centre + flint.acb(side, side)


class RootBranch:
    """The branch of an algebraic function g(z) with a given asymptotic value far above the spectrum.

    Args:
        polynomial: the polynomial in z and the unknown; its coefficients are real at `point`.
        unknown: the symbol of g.
        point: values of the parameters.
        far: an approximation to the root far from the spectrum in the upper half plane, precise enough to separate it
            from the other roots.
    """

    def __init__(
        self,
        polynomial: sp.Expr,
        unknown: sp.Symbol,
        point: dict[sp.Symbol, Any],
        far: Callable[[Fraction], tuple[Fraction, flint.acb]],
    ):
        poly = sp.Poly(polynomial, unknown, Z)
        self.table: list[list[sp.Expr]] = [[sp.S.Zero] * (poly.degree(Z) + 1) for _ in range(poly.degree(unknown) + 1)]
        for (power, order), coefficient in poly.terms():
            self.table[power][order] = sp.sympify(coefficient)
        self.point, self.far = point, far
        self._rows: dict[int, list[flint.acb_poly]] = {}

    @property
    def rows(self) -> list[flint.acb_poly]:
        """The coefficients of the powers of the unknown, lowest first, as polynomials in z."""
        bits = flint.ctx.prec
        if bits not in self._rows:
            self._rows[bits] = [flint.acb_poly([enclosure(c, self.point) for c in row]) for row in self.table]
        return self._rows[bits]

    def at(self, place: Fraction) -> Disc:
        """Return the root at a real point by continuation down a vertical line.

        Raises:
            Inconclusive: the point is a branch point.
        """
        height, here = self.start(place)
        for _ in range(STEPS):
            if height == 0:
                return here
            height, here = self.lowered(place, height, here, FIRST_SHARES)
        raise Inconclusive("the physical branch was not followed to the real axis")

    def start(self, place: Fraction) -> tuple[Fraction, Disc]:
        """Return the height above a real point at which the asymptotic value identifies the root, and the root."""
        height, value = self.far(place)
        here = self.certified(flint.acb(ball(place).real, ball(height).real), value.mid())
        if not bool(abs(here.centre - value) < here.radius):
            raise Inconclusive("the branch was not separated from the others far from the spectrum")
        return height, here

    def lowered(
        self, place: Fraction, height: Fraction, here: Disc, shares: tuple[Fraction, ...]
    ) -> tuple[Fraction, Disc]:
        """Return a lower height and the root there, by a continuation step.

        The step is the first of the fractions `shares` of the height that certifies a unique root, or a longer one.
        """
        x, share, tried = ball(place).real, shares[-1], iter(shares)
        slope, near = self._along_tangent(flint.acb(x, ball(height).real), here)
        while share < 1 - Fraction(1, 2**40):
            share = next(tried, (1 + share) / 2)
            way = ball(height * (1 - share)).real
            radius = _root_radius(near, way, here.radius)
            if radius is None:
                continue
            guess = here.centre + slope * flint.acb(0, -way)
            disc = self.certified(flint.acb(x, ball(height * share).real), guess.mid())
            if bool(abs(disc.centre - guess) + disc.radius < radius):
                return height * share, disc
        raise Inconclusive("the physical branch was not followed to the real axis")

    def _along_tangent(self, z: flint.acb, here: Disc) -> tuple[flint.acb, list[flint.acb_poly]]:
        """Return the slope dg/dz of the root, and the polynomial expressed in the deviation from the tangent.

        The result lists the coefficients of powers of the deviation; each is a polynomial in the distance from z.
        """
        rows = [row(flint.acb_poly([z, 1])) for row in self.rows]
        value = flint.acb_poly([row[0] for row in rows])
        moving = flint.acb_poly([row[1] for row in rows])
        at_root = value.derivative()(here.centre)
        if at_root.contains(0):
            raise Inconclusive("two roots meet on the path")
        slope = (-moving(here.centre) / at_root).mid()
        line, total = flint.acb_poly([here.centre, slope]), [rows[-1]]
        for row in reversed(rows[:-1]):
            by_line = [line * c for c in total]
            total = [a + b for a, b in zip([*by_line, flint.acb_poly([])], [row, *total], strict=True)]
        return slope, total

    def certified(self, z: flint.acb, guess: flint.acb) -> Disc:
        """Return a small disc with exactly one root near a guess, by Newton's method."""
        for _ in range(60):
            shifted = self._shifted(z, guess)
            if shifted[1].contains(0):
                raise Inconclusive("two roots meet on the path")
            step = shifted[0] / shifted[1]
            guess = (guess - step).mid()
            if bool(step.abs_upper() <= (1 + guess.abs_upper()) * flint.arb(2) ** (12 - flint.ctx.prec)):
                break
        radius = self._radius(self._shifted(z, guess), flint.arb(2) ** (16 - flint.ctx.prec))
        if radius is None:
            raise Inconclusive("no disc with one root was found")
        return Disc(guess, radius)

    def is_real(self, place: Fraction, here: Disc) -> bool:
        """Return whether the root is real at a real point: a disc centred on the real axis isolates it."""
        if bool(abs(here.centre.imag) > here.radius):
            return False
        centre = flint.acb(here.centre.real.mid())
        least = (abs(here.centre - centre) + here.radius).abs_upper() * 2
        if self._radius(self._shifted(ball(place), centre), flint.arb(least)) is None:
            raise Inconclusive("a root was proved neither real nor complex")
        return True

    def enclosing(self, here: Disc, place: Fraction, where: flint.arb) -> Disc:
        """Return a disc with exactly one root for every z in a real ball around `place`."""
        radius = self._radius(self._shifted(flint.acb(where.union(ball(place).real)), here.centre), here.radius * 2)
        if radius is None:
            raise Inconclusive("no disc with one root was found")
        return Disc(here.centre, radius)

    def _shifted(self, z: flint.acb, centre: flint.acb) -> flint.acb_poly:
        """Return the Taylor shift of the polynomial to a centre."""
        return flint.acb_poly([row(z) for row in self.rows])(flint.acb_poly([centre, 1]))

    @staticmethod
    def _radius(shifted: flint.acb_poly, least: flint.arb) -> flint.arb | None:
        """Return a radius within which there is exactly one root; None if none is certified."""
        slope = shifted[1].abs_lower()
        if not bool(slope > 0):
            return None
        radius = flint.arb(max((2 * shifted[0].abs_upper() / slope).abs_upper(), least.abs_upper()))
        for _ in range(8):
            if roots_within(shifted, radius) == 1:
                return radius
            radius = 2 * radius
        return None

    def count(self, z: flint.acb, centre: flint.acb, radius: flint.arb) -> int | None:
        """Return the number of roots in a disc for every z in a ball, with multiplicity; None if not certified."""
        return roots_within(self._shifted(z, centre), radius)


def _root_radius(near: list[flint.acb_poly], way: flint.arb, least: flint.arb) -> flint.arb | None:
    """Return the radius of a tube around the tangent that contains one root for every z within `way`; None if not
    certified.
    """
    upper = [_bound(c, way) for c in near]
    slope = near[1][0].abs_lower() - (upper[1] - near[1][0].abs_upper())
    if not bool(slope > 0):
        return None
    radius = flint.arb(max((2 * upper[0] / slope).abs_upper(), (2 * least).abs_upper()))
    for _ in range(8):
        others = flint.arb(upper[0])
        for power, size in enumerate(upper[2:], start=2):
            others += size * radius**power
        if bool(others < slope * radius):
            return radius
        radius = 2 * radius
    return None


def _bound(polynomial: flint.acb_poly, way: flint.arb) -> flint.arb:
    """Return an upper bound of the modulus of a polynomial within a distance of the origin."""
    return sum((c.abs_upper() * way**k for k, c in enumerate(polynomial.coeffs())), flint.arb(0))


def roots_within(shifted: flint.acb_poly, radius: flint.arb) -> int | None:
    """Return the number of zeros within a radius of the origin by Rouche's theorem; None if no term dominates."""
    terms = [(c.abs_lower() * radius**k, c.abs_upper() * radius**k) for k, c in enumerate(shifted.coeffs())]
    total = sum((upper for _, upper in terms), flint.arb(0))
    for power, (lower, upper) in enumerate(terms):
        if bool(lower > total - upper):
            return power
    return None
