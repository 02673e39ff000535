"""The physical branch of the bulk equations, by predictor-corrector continuation from infinity to any z.

The physical branch is the solution that vanishes like 1/z at infinity. From a point high above the spectrum each target
is approached on a straight line. A step is accepted if Newton's method contracts from the predicted point, if the
tangents at both ends agree with the step (which excludes a jump to a nearby branch), and if the resolvent G remains a
Stieltjes transform: Im G <= 0 and |G| <= 1/Im z. Otherwise the step is shortened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import zgetrf as getrf, zgetrs as getrs

from derive.errors import NumericalError
from numerics.bulk.digits import long_kernel
from numerics.bulk.neighbours import Neighbours
from numerics.bulk.parameters import own_parameters
from numerics.bulk.polynomials import PolynomialSystem, polynomial_system
from numerics.bulk.site_averages import SiteSystem, site_system
from numerics.runtime.interface import BulkLaw
from numerics.runtime.point import Point
from numerics.support.precision import in_float64
from numerics.support.progress import Report, quiet

Improved = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray], Improved]
"""A Newton corrector: (z, guess r, typical sizes of r) to (improved r, relative size of first and last correction,
dr/dz)."""

FARTHEST = 1e16
MOST_STEPS = 600
BATCH, ENTRIES = 64, 2**14
FEWEST, MOST_ENTRIES = 8, 2**19
"""Points per batch of Newton's method: those that have ENTRIES Jacobian entries together, at least FEWEST unless they
exceed MOST_ENTRIES, which would not fit into the cache."""
GROUPS = 2**18
"""Largest number of (point, group of sites) pairs in one batch."""
BETWEEN, SURE = 4, 0.03
"""Of many real points one in BETWEEN is followed from infinity. The others are interpolated, and accepted if the first
Newton correction is below SURE (relative)."""
QUADRATIC = 1e-12
"""Largest relative error of responses after two steps of Newton's method, estimated from the sizes of both."""
AROUND = (1.0, 0.1, 10.0)
"""Heights of intermediate points, in units of |z|, by which a point is approached when the straight path fails."""
SMALL, GROUP = 30, 4
"""Systems with more than SMALL equations, or with many groups of sites, are followed in groups of GROUP neighbours."""

FACTOR = 0.5
"""Relative change of a response below which it is applied as a factor, exp(change), instead of added."""
CLOSEST = 1e-13
"""Distance from a hard edge, in units of the width, below which double precision has no correct digit."""
ROUGH, NEAR, MOST_LONG = 1e-10, 1e-2, 60
"""Corrections above ROUGH (relative) are repeated in multiple precision, starting NEAR above the point in units of the
width, for at most MOST_LONG equations."""
BEGUN = 1e-10
"""Relative tolerance of Newton's method high above the spectrum."""
VANISHES = 1e-12
"""A response below VANISHES, relative to its size high above the spectrum, is real if its imaginary part is far below
that size: where G crosses zero in a gap, no imaginary part is small relative to G."""
HIDDEN = 1e-8
"""Largest effect of rounding on the responses (relative) at which a small Newton correction is trusted."""


NEAR_ZERO = "if its entries come near zero with fewer rows than columns, take more rows"
"""The remedy for a diagonal whose entries make the density vanish faster than any power next to a point mass."""


def relative_to(xp: Any, r: Any, usual: Any) -> Any:
    """Return the scale of a correction: the size of each response, bounded below by its typical size `usual`."""
    size = xp.maximum(xp.abs(r), usual)
    return size + 1e-12 * xp.max(size, axis=-1, keepdims=True) + 1e-300


def changed(r: Any, change: Any) -> np.ndarray:
    """Return r + change, applied as r exp(change / r) where it is relatively small.

    Next to an edge where some responses diverge and others vanish, they are powers of each other, and a factor
    preserves their products.
    """
    with np.errstate(all="ignore"):
        ratio = change / r
        updated: np.ndarray = np.where(np.abs(ratio) < FACTOR, r * np.exp(ratio), r + change)
    return updated


def scale_equations(
    equations: PolynomialSystem | SiteSystem, z: np.ndarray, r: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the residual, its derivative with respect to z and its Jacobian with respect to r, with each equation
    divided by its largest scaled Jacobian entry.
    """
    if isinstance(equations, PolynomialSystem):
        return equations.scaled(z, r, sizes)
    residual, rate, slope = equations(z, r)
    rows = np.max(np.abs(slope) * sizes[:, None, :], axis=-1)
    rows = np.where(rows > 0, rows, 1.0)
    return residual / rows, rate / rows, slope / rows[..., None]


def solve_batch(matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve a batch of linear systems; return NaN for those that are singular."""
    try:
        return np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        result = np.full(right.shape, np.nan, complex)
        for i, (matrix, side) in enumerate(zip(matrices, right, strict=True)):
            with contextlib.suppress(np.linalg.LinAlgError):
                result[i] = np.linalg.solve(matrix, side)
        return result


CLOSE, REFINED, ROUNDS = 0.1, 1e-4, 6
"""If the first correction is below CLOSE, the second is solved with the LU factors of the first by iterative
refinement, to REFINED (relative) in at most ROUNDS rounds."""


def _with_one_factorisation(equations: PolynomialSystem, z: np.ndarray, r: np.ndarray, usual: np.ndarray) -> Improved:
    """Return two steps of Newton's method that share the LU factorisation of the first Jacobian, which dominates the
    cost."""
    residual, _, slopes = equations.values(z, r)
    widest = equations.widest(slopes, relative_to(np, r, usual))
    factors = [getrf(matrix.T) for matrix in equations.matrices(slopes / equations.by_equation(widest))]

    def divided(right: np.ndarray) -> np.ndarray:
        solution = np.full(right.shape, np.nan, complex)
        for i, (factored, pivots, failed) in enumerate(factors):
            if failed == 0:
                solution[i] = getrs(factored, pivots, right[i], trans=1)[0]
        return solution

    first = divided((residual / widest)[..., None])[..., 0]
    r = r - first
    residual, rate, slopes = equations.values(z, r)
    measure = relative_to(np, r, usual)
    slopes = slopes / equations.by_equation(widest)
    right = np.stack([residual, -rate], axis=-1) / widest[..., None]
    both, open_ = np.full(right.shape, np.nan, complex), np.ones(z.size, bool)
    near = np.max(np.abs(first) / measure, axis=-1) < CLOSE
    if near.any():
        now = divided(right)
        for _ in range(ROUNDS):
            change = divided(right - equations.times(slopes, now))
            now = now + change
            moved, size = (np.max(np.abs(x) / measure[..., None], axis=1) for x in (change, now))
            open_ = ~(near & np.all(moved <= REFINED * size + 1e-300, axis=-1))
            if not (open_ & near).any():
                break
        both = now
    if open_.any():
        both[open_] = solve_batch(equations.matrices(slopes[open_]), right[open_])
    r = r - both[..., 0]
    measure = relative_to(np, r, usual)
    before, after = (np.max(np.abs(step) / measure, axis=-1) for step in (first, both[..., 0]))
    return r, before, after, both[..., 1]


@dataclass(frozen=True)
class BranchStart:
    """The responses at infinity and at z = i `height`, well above the spectrum."""

    height: float
    responses: np.ndarray
    at_infinity: np.ndarray

    def above(self, heights: np.ndarray) -> np.ndarray:
        """Return a first guess of the responses at z = i `heights`, linear in 1/z; all heights are at least
        `height`."""
        share = (self.height / heights)[:, None]
        return self.at_infinity + (self.responses - self.at_infinity) * share


@dataclass(frozen=True)
class Branch:
    """The physical branch of the bulk equations: the solution that vanishes like 1/z at infinity, continued to
    any z."""

    law: BulkLaw
    p: Point
    use_curve: bool = True

    @cached_property
    def own(self) -> Point:
        """The parameters on which the bulk depends; they key all caches of the branch."""
        return own_parameters(self.law, self.p)

    @property
    def resolvent_index(self) -> int:
        return self.law.resolvent

    @property
    def eliminated(self) -> bool:
        """Whether the curve P(z, G) = 0 is available and enabled."""
        return self.use_curve and self.law.eliminated

    @cached_property
    def equations(self) -> PolynomialSystem | SiteSystem:
        """The bulk equations at these parameters: residual, derivative with respect to z and Jacobian with respect to r
        at many points."""
        return polynomial_system(self.law, self.own) if self.law.sites is None else site_system(self.law, self.own)

    @property
    def by_factors(self) -> bool:
        """Whether corrections are applied as factors, as they are for differing sites, because multiple precision is
        not available there."""
        return isinstance(self.equations, SiteSystem)

    @property
    def to_many_digits(self) -> bool:
        """Whether the system is polynomial and small enough for multiple precision."""
        return isinstance(self.equations, PolynomialSystem) and self.equations.count <= MOST_LONG

    @cached_property
    def kernel(self) -> Kernel:
        """Two steps of Newton's method on the bulk equations, in batches."""
        equations = self.equations
        slopes = max(1, equations.count) ** 2 * equations.groups
        batch = max(ENTRIES // slopes, min(BATCH, max(FEWEST, MOST_ENTRIES // slopes)))
        batch = min(batch, max(1, GROUPS // equations.groups))

        moved = changed if self.by_factors else np.add

        def corrector(z: np.ndarray, r: np.ndarray, usual: np.ndarray) -> Improved:
            residual, _, slope = scale_equations(equations, z, r, relative_to(np, r, usual))
            first = solve_batch(slope, residual[..., None])[..., 0]
            r = moved(r, -first)
            residual, rate, slope = scale_equations(equations, z, r, relative_to(np, r, usual))
            both = solve_batch(slope, np.stack([residual, -rate], axis=-1))
            r = moved(r, -both[..., 0])
            measure = relative_to(np, r, usual)
            before, after = (np.max(np.abs(step) / measure, axis=-1) for step in (first, both[..., 0]))
            return r, before, after, both[..., 1]

        def of_many(z: np.ndarray, r: np.ndarray, usual: np.ndarray) -> Improved:
            assert isinstance(equations, PolynomialSystem), "averages over sites have no slopes that vanish identically"
            return _with_one_factorisation(equations, z, r, usual)

        if isinstance(equations, PolynomialSystem) and equations.count > SMALL:
            corrector = of_many

        def run(z: np.ndarray, r: np.ndarray, usual: np.ndarray) -> Improved:
            if z.size <= batch:
                return corrector(z, r, usual)
            rows = [slice(begin, begin + batch) for begin in range(0, z.size, batch)]
            parts = zip(*(corrector(z[k], r[k], usual[k]) for k in rows), strict=True)
            r, before, after, rate = (np.concatenate(part) for part in parts)
            return r, before, after, rate

        return run

    @cached_property
    def start(self) -> BranchStart:
        return _start(self.law, self.own)

    @in_float64
    def followed(self, z: np.ndarray, tell: Report = quiet, what: str = "bulk") -> tuple[np.ndarray, np.ndarray]:
        """Return the responses at points with Im z >= 0, and the relative size of the last Newton correction."""
        z = np.asarray(z, complex)
        if self.equations.count * self.equations.groups <= SMALL:
            return self._polished(self.kernel, z, *self._from_infinity(z))
        r, errors = np.zeros((z.size, self.equations.count), complex), np.full(z.size, np.inf)
        for part in _split_coarse_first(z):
            r[part], errors[part] = self._beside_neighbours(z[part])
            lost = part[~np.isfinite(errors[part])]
            if lost.size:
                r[lost], errors[lost] = self._polished(self.kernel, z[lost], *self._together(z[lost], tell, what))
            inside = part[(z[part].imag == 0) & (r[part, self.resolvent_index].imag < 0) & (errors[part] < 1e-9)]
            self._inside.add(z[inside].real, r[inside])
        return r, errors

    def _polished(
        self, kernel: Kernel, z: np.ndarray, r: np.ndarray, errors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return polish(kernel, z, r, errors, self.start.responses)

    def _beside_neighbours(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return responses interpolated between stored points of the bulk and corrected by Newton's method.

        The error is infinite if there are no neighbours or the method does not contract.
        """
        r, errors = np.zeros((z.size, self.equations.count), complex), np.full(z.size, np.inf)
        places = np.flatnonzero((z.imag == 0) & self._inside.between(z.real))
        if not places.size:
            return r, errors
        with np.errstate(all="ignore"):
            guess = self._inside.guesses(z[places].real)
            better, first, last, _ = self.kernel(z[places], guess, np.abs(guess))
            g = better[:, self.resolvent_index]
            good = (first < SURE) & ((last < 0.1 * first) | (first < 1e-8)) & (g.imag < -1e-9 * np.abs(g))
        r[places[good]], errors[places[good]] = better[good], last[good]
        rough = places[good & (last > 1e-13)]
        if rough.size:
            r[rough], errors[rough] = self._polished(self.kernel, z[rough], r[rough], errors[rough])
        return r, errors

    def _from_infinity(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        heights = np.maximum(self.start.height, np.abs(z))
        r, tangent = begun(self.kernel, 1j * heights, self.start.above(heights))
        reached = follow(self.kernel, 1j * heights, z, r, tangent, self.resolvent_index, by_factors=self.by_factors)
        for share in AROUND:
            lost = np.flatnonzero(~np.isfinite(reached[1]))
            if not lost.size:
                break
            above = z[lost] + 1j * share * np.abs(z[lost])
            begin, known = follow(
                self.kernel,
                1j * heights[lost],
                above,
                r[lost],
                tangent[lost],
                self.resolvent_index,
                0.4,
                self.by_factors,
            )
            with np.errstate(all="ignore"):
                begin, _, last, along = self.kernel(above, begin, np.abs(begin))
            sure = np.isfinite(known) & (last < 1e-6)
            places = lost[sure]
            reached[0][places], reached[1][places] = follow(
                self.kernel,
                above[sure],
                z[places],
                begin[sure],
                along[sure],
                self.resolvent_index,
                0.4,
                self.by_factors,
            )
        return reached

    def _together(self, z: np.ndarray, tell: Report = quiet, what: str = "") -> tuple[np.ndarray, np.ndarray]:
        """Follow groups of neighbouring points together to a point above them, then each along its own path."""
        if z.size <= GROUP:
            return self._from_infinity(z)
        groups = np.array_split(np.lexsort((z.imag, z.real)), -(-z.size // GROUP))
        above = np.array([_above(z[group]) for group in groups])
        r, errors = self._together(above)
        responses, final = np.zeros((z.size, r.shape[1]), complex), np.full(z.size, np.inf)
        reached = np.isfinite(errors)
        with np.errstate(all="ignore"):
            r[reached], _, last, tangent = self.kernel(above[reached], r[reached], np.abs(r[reached]))
        tangents = np.zeros_like(r)
        tangents[reached] = tangent
        reached[reached] = last < 1e-6
        chunks = np.array_split(np.flatnonzero(reached), max(1, np.sum(reached) * GROUP // BATCH))
        for number, chunk in enumerate(chunks):
            if not chunk.size:
                continue
            places = np.concatenate([groups[k] for k in chunk])
            parent = np.concatenate([np.full(groups[k].size, k) for k in chunk])
            responses[places], final[places] = follow(
                self.kernel,
                above[parent],
                z[places],
                r[parent],
                tangents[parent],
                self.resolvent_index,
                1.0,
                self.by_factors,
            )
            tell((number + 1) / len(chunks), f"{what}, {z.size} points")
        lost = np.flatnonzero(~np.isfinite(final))
        if lost.size:
            responses[lost], final[lost] = self._from_infinity(z[lost])
        return responses, final

    @cached_property
    def _inside(self) -> Neighbours:
        """Real points of the bulk at which the responses of a large system are stored for interpolation."""
        return Neighbours()

    @in_float64
    def certain(self, z: np.ndarray, tell: Report = quiet, what: str = "bulk") -> tuple[np.ndarray, np.ndarray]:
        """Return the result of `followed`, with ill-conditioned points repeated in multiple precision."""
        z = np.asarray(z, complex)
        r, errors = self.followed(z, tell, what)
        if not self.to_many_digits:
            return r, errors
        hidden = self.rounding(z, r)
        errors = np.where(hidden > HIDDEN, np.maximum(errors, hidden), errors)
        rough = np.flatnonzero(errors > ROUGH)
        if not rough.size:
            return r, errors
        kernel = long_kernel(self.law, self.own)
        for share in (NEAR, 1.0, 1 / NEAR):
            if not rough.size:
                break
            above = z[rough] + 1j * share * self.start.height
            begin, errors_above = self.followed(above)
            sure = np.maximum(errors_above, self.rounding(above, begin)) <= SURE
            places, above, begin = rough[sure], above[sure], begin[sure]
            if not places.size:
                continue
            begin, tangent = begun(kernel, above, begin)
            precise = follow(kernel, above, z[places], begin, tangent, self.resolvent_index)
            precise = self._polished(kernel, z[places], *precise)
            better = precise[1] < errors[places]
            r[places[better]], errors[places[better]] = precise[0][better], precise[1][better]
            rough = np.setdiff1d(rough, places)
        return r, errors

    def rounding(self, z: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return a bound on the relative error of the responses from rounding in the equations.

        Where large terms cancel, the Newton correction may be small although the responses are wrong.
        """
        with np.errstate(all="ignore"):
            _, by_z, by_r = self.equations(z, r)
            size = np.abs(by_z) * np.abs(z)[:, None] + np.einsum("kij,kj->ki", np.abs(by_r), np.abs(r))
            regular = np.isfinite(size).all(axis=1) & (np.abs(np.linalg.det(by_r)) > 0)
            bounds = np.zeros(z.size)
            if np.any(regular):
                inverse = np.abs(np.linalg.inv(by_r[regular]))
                moved = np.einsum("kij,kj->ki", inverse, size[regular]) / relative_to(np, r[regular], 0.0)
                bounds[regular] = np.finfo(float).eps * np.max(moved, axis=1)
        return bounds

    def responses(self, z: np.ndarray) -> np.ndarray:
        """Return all bulk responses at points with Im z >= 0, one row per response."""
        z = np.atleast_1d(np.asarray(z, complex))
        if not z.size:
            return np.zeros((len(self.law.responses), 0), complex)
        if not np.all(np.isfinite(z)):
            raise NumericalError("the bulk was evaluated at a point that is not finite")
        missing = np.array(list(dict.fromkeys(x for x in z.tolist() if x not in self._known)), complex)
        if missing.size:
            r, errors = self.certain(missing)
            if np.max(errors) > 1e-6:
                cure = f"; {NEAR_ZERO.replace('its', 'diagonal')}" if self.law.densities else ""
                where = missing[np.argmax(errors)]
                raise NumericalError(f"the bulk equations did not converge near z = {where:.6g}{cure}")
            self._known.update(zip(missing.tolist(), r, strict=True))
        return np.array([self._known[x] for x in z.tolist()]).T

    def ask(self, z: np.ndarray) -> None:
        """Solve for the responses at many points at once and cache them for `responses`; skip points that fail."""
        missing = np.array(list(dict.fromkeys(x for x in np.asarray(z, complex).tolist() if x not in self._known)))
        if missing.size:
            r, errors = self.certain(missing)
            self._known.update((x, row) for x, row, off in zip(missing.tolist(), r, errors, strict=True) if off <= 1e-6)

    def ask_beside(self, z: np.ndarray, excluded: Sequence[tuple[float, float]]) -> None:
        """Solve for the responses at real points outside the bulk and cache them; skip points that fail.

        Each is followed along the real axis from the nearest cached point with no excluded interval between them.
        """
        real_points = np.array([x.real for x, r in self._known.items() if x.imag == 0 and np.all(r.imag == 0)])
        ends = np.sort([end for pair in excluded for end in pair])
        pairs = []
        for x in dict.fromkeys(np.asarray(z, float).tolist()):
            same = (
                real_points[np.searchsorted(ends, real_points) == np.searchsorted(ends, x)]
                if x not in self._known
                else real_points[:0]
            )
            if same.size:
                pairs.append((x, same[np.argmin(np.abs(same - x))]))
        if not pairs:
            return
        goal, begin = (np.array(some, complex) for some in zip(*pairs, strict=True))
        self._ask_from(begin, goal, real=True)

    @in_float64
    def ask_near(self, begin: np.ndarray, x: np.ndarray) -> None:
        """Solve for the responses at real points outside the bulk, each from the tangent at a real point nearby, and
        cache them.

        Points at which Newton's method does not contract at once are followed by `ask_from`.
        """
        pairs = [(a, b) for a, b in zip(begin.tolist(), x.tolist(), strict=True) if a in self._known]
        missing = [(a, b) for a, b in pairs if b not in self._known and np.all(self._known[a].imag == 0)]
        if not missing:
            return
        near, goal = (np.array(some, complex) for some in zip(*missing, strict=True))
        r, tangent = self._tangents_at(near)
        better = r + tangent * (goal - near)[:, None]
        with np.errstate(all="ignore"):
            for _ in range(2):
                better, first, last, _ = self.kernel(goal, better, np.abs(r))
                contracts = (first < SURE) & ((last < 0.1 * first) | (first < 1e-8))
                sure = contracts & (last * (last / np.maximum(first, 1e-300)) ** 2 < QUADRATIC)
                if not (contracts & ~sure).any():
                    break
        self._known.update((b, row.real + 0j) for b, row, kept in zip(goal.tolist(), better, sure, strict=True) if kept)
        self.ask_from(near[~sure], goal[~sure])

    def _tangents_at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the cached responses at real points and their derivatives with respect to z."""
        missing = [a for a in dict.fromkeys(x.tolist()) if a not in self._tangents]
        if missing:
            r = np.array([self._known[a] for a in missing])
            self._tangents.update(zip(missing, self.kernel(np.array(missing), r, np.abs(r))[3], strict=True))
        return np.array([self._known[a] for a in x.tolist()]), np.array([self._tangents[a] for a in x.tolist()])

    @cached_property
    def _tangents(self) -> dict[complex, np.ndarray]:
        """Cache of derivatives of the responses by point."""
        return {}

    def knows(self, z: np.ndarray) -> bool:
        """Return whether the responses at all points are cached."""
        return all(x in self._known for x in z.tolist())

    def ask_from(self, begin: np.ndarray, z: np.ndarray) -> None:
        """Solve for the responses at points of the upper half plane and cache them; skip points that fail.

        Each is followed on a straight line from the corresponding point of `begin`, at which the responses are cached.
        """
        pairs = [(a, x) for a, x in zip(begin.tolist(), z.tolist(), strict=True) if a in self._known]
        missing = [(a, x) for a, x in pairs if x not in self._known]
        if missing:
            known, goal = (np.array(some, complex) for some in zip(*missing, strict=True))
            self._ask_from(known, goal, real=False)

    @in_float64
    def _ask_from(self, begin: np.ndarray, goal: np.ndarray, real: bool) -> None:
        r = np.array([self._known[x] for x in begin.tolist()])
        with np.errstate(all="ignore"):
            r, _, last, tangent = self.kernel(begin, r, np.abs(r))
            responses, errors = follow(self.kernel, begin, goal, r, tangent, self.resolvent_index, 1.0, self.by_factors)
        responses, errors = self._polished(self.kernel, goal, responses, np.where(last < 1e-8, errors, np.inf))
        sure = errors <= 1e-12
        if real:
            sure &= np.all(responses.imag == 0, axis=1)
        self._known.update((x, row) for x, row, kept in zip(goal.tolist(), responses, sure, strict=True) if kept)

    @cached_property
    def _known(self) -> dict[complex, np.ndarray]:
        """Cache of responses by point: the search, refinement and vectors of an outlier evaluate the same points."""
        return {}

    def resolvent(self, z: np.ndarray) -> np.ndarray:
        return self.responses(z)[self.resolvent_index]


@lru_cache(maxsize=256)
@in_float64
def _start(law: BulkLaw, p: Point) -> BranchStart:
    """Start the branch at the lowest point, coming from infinity, where responses are still nearly linear in 1/z."""
    branch = Branch(law, p)
    kernel, index = branch.kernel, branch.resolvent_index

    def newton(height: float, r: np.ndarray, rounds: int) -> tuple[np.ndarray, float]:
        last = np.array([np.inf])
        for _ in range(rounds):
            r, _, last, _ = kernel(np.array([1j * height]), r, np.abs(r))
        return r, float(last[0])

    height, size = FARTHEST, len(law.responses)
    with np.errstate(all="ignore"):
        far, last = newton(height, np.zeros((1, size), complex), 8)
        responses, nearer = newton(height / 10, far, 4)
        if not (last < 1e-8 and nearer < 1e-8 and abs(1j * height * far[0, index] - 1) < 1e-3):
            raise NumericalError(
                "the bulk equations have no solution that vanishes like 1/z at infinity at these parameters; "
                "try less extreme values"
            )
        height, limit = height / 10, (10 * far - responses) / 9
        excess = abs(1j * height * responses[0, index] - 1)
        while height > 1e-12:
            r, last = newton(height / 10, limit + (responses - limit) * 10, 3)
            nearer = abs(1j * height / 10 * r[0, index] - 1)
            # far out z G - 1 is the first or second moment over a power of z
            if not (last < BEGUN and nearer < 0.2 and (nearer > 8 * excess or nearer < 1e-10)):
                break
            if branch.rounding(np.array([1j * height / 10]), r)[0] > HIDDEN:
                break
            height, responses, excess = height / 10, r, nearer
    return BranchStart(height, responses[0], limit[0])


def _split_coarse_first(z: np.ndarray) -> list[np.ndarray]:
    """Split the indices of all points into two parts: every few real points, and those between them."""
    real = np.flatnonzero(z.imag == 0)
    if real.size < 4 * BETWEEN:
        return [np.arange(z.size)]
    order = real[np.argsort(z[real].real, kind="stable")]
    coarse = np.union1d(np.flatnonzero(z.imag != 0), order[::BETWEEN])
    return [coarse, np.setdiff1d(order, coarse)]


def _above(z: np.ndarray) -> complex:
    """Return a point above the centre of a few others, at a height equal to their spread."""
    low, high = np.min(z.real), np.max(z.real)
    apart = max(high - low, np.max(z.imag) - np.min(z.imag))
    return complex((low + high) / 2, np.max(z.imag) + apart)


def begun(kernel: Kernel, z: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return responses and their tangents high above the spectrum, by Newton's method without continuation."""
    tangent, last = np.zeros_like(r), np.full(z.shape, np.inf)
    for _ in range(4):
        r, _, last, tangent = kernel(z, r, np.abs(r))
        if np.all(last < BEGUN):
            return r, tangent
    if np.all(last < 1e-6):  # rounding, where a response nearly vanishes
        return r, tangent
    raise NumericalError("the bulk equations could not be continued from infinity; try less extreme parameters")


def follow(
    kernel: Kernel,
    begin: np.ndarray,
    end: np.ndarray,
    r: np.ndarray,
    tangent: np.ndarray,
    index: int,
    attempt: float = 0.4,
    by_factors: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Continue each solution on the straight line from `begin` to `end`; return the responses there and their errors.

    Args:
        kernel: the Newton corrector.
        r, tangent: responses and dr/dz at `begin`.
        index: row of the resolvent G among the responses.
        attempt: first step, as a fraction of the path.
        by_factors: predict logarithms of responses, which are smoother next to a hard edge.
    """
    results, final = r.copy(), np.full(end.size, np.inf)
    place, way, goal_at = np.arange(end.size), begin - end, end
    left, share = np.ones(end.size), np.full(end.size, attempt)
    here = _PathState(r, tangent, np.zeros_like(r), np.abs(r), np.full(end.size, 1e-10))
    for _ in range(MOST_STEPS):
        if not place.size:
            break
        goal = left * (1 - share)
        z = goal_at + goal * way
        with np.errstate(all="ignore"):
            good, there, wish = _try_step(kernel, z, here, ((goal - left) * way)[:, None], index, by_factors)
            share = _cap_step(share * np.where(good, np.minimum(np.maximum(wish, 0.7), 2.0), 0.6))
        here, left = (there, goal) if good.all() else (here.replaced(good, there), np.where(good, goal, left))
        # next to a branch point at the end, rounding limits how closely it is approached
        arrived, short = left == 0, share < 1e-3
        near, reach = left * np.abs(way), np.abs(goal_at)
        stuck = ~arrived & ((near <= 1e-17 * reach + 1e-300) | short & (near <= 1e-9 * reach))
        ended = arrived | stuck | short
        if ended.any():
            results[place[ended]] = here.r[ended]
            error = np.where(arrived, here.rough, np.where(stuck, np.maximum(here.rough, 1e-7), np.inf))
            final[place[ended]] = error[ended]
            on = ~ended
            place, way, goal_at, left, share = (x[on] for x in (place, way, goal_at, left, share))
            here = here.of(on)
    return results, final


class _PathState(NamedTuple):
    """Responses at the current points of the paths, with first and second derivatives, sizes and errors (`rough`)."""

    r: np.ndarray
    tangent: np.ndarray
    bend: np.ndarray
    size: np.ndarray
    rough: np.ndarray

    def of(self, places: np.ndarray) -> _PathState:
        """Return the entries at some of the points."""
        return _PathState(*(x[places] for x in self))

    def replaced(self, places: np.ndarray, others: _PathState) -> _PathState:
        """Return a copy with the entries at some of the points replaced."""
        pairs = zip(self, others, strict=True)
        return _PathState(*(np.where(places[:, None] if old.ndim == 2 else places, new, old) for old, new in pairs))


def _try_step(
    kernel: Kernel, z: np.ndarray, here: _PathState, step: np.ndarray, index: int, by_factors: bool
) -> tuple[np.ndarray, _PathState, np.ndarray]:
    """Try one step. Return whether it stays on the branch, the new state, and the factor for the next step."""
    r, tangent, rough = here.r, here.tangent, here.rough
    run, more = tangent * step, here.bend * (step * step / 2)
    guess = r + run + more
    if by_factors:
        factor = run / r
        further = more / r - factor * factor / 2
        small = (np.abs(factor) < FACTOR) & (np.abs(further) < FACTOR)
        guess = np.where(small, r * np.exp(factor + further), guess)
    better, first, last, slope = kernel(z, guess, here.size)
    new_size = np.abs(better)
    measure = np.maximum(new_size, here.size)
    measure += 1e-12 * _row_maxima(measure)[:, None] + 1e-300
    curved, between = better - r - run, (slope - tangent) * (step / 2)
    turned = between * (2 / (step * step))
    if by_factors:
        rate = slope / better
        turning = (rate - tangent / r) / step
        curved = np.where(small, better * (np.log(better / r) - factor), curved)
        between = np.where(small, better * turning * (step * step / 2), between)
        turned = np.where(small, better * (turning + rate * rate), turned)
    off, unfit = _row_maxima(np.abs(curved) / measure), _row_maxima(np.abs(curved - between) / measure)
    slack = 3 * (rough**2 + last**2) + 2 * (rough + last) * _row_maxima(np.abs(run) / measure) + 1e-9
    settled = (first < 1e-6) & (last < 1e-6)  # only rounding is left
    slack += np.where(settled, 5 * (np.minimum(rough, 1e-6) + last), 0.0)
    good = (first < 0.1) & ((last < 0.1 * first) | settled) & (unfit < 0.5 * off + slack)
    good &= (better[:, index].imag <= 1e-10 * new_size[:, index]) & (new_size[:, index] * z.imag <= 1 + 1e-9)
    good &= np.isfinite(_row_maxima(np.abs(slope)))
    wish = np.minimum(np.cbrt(0.03 / np.maximum(first, 1e-12)), 0.3 * (off + slack) / unfit)
    return good, _PathState(better, slope, turned, new_size, last), wish


def _row_maxima(values: np.ndarray) -> np.ndarray:
    """Return the largest entry of each row."""
    return values[:, 0] if values.shape[1] == 1 else values.max(axis=1)


def _cap_step(share: np.ndarray) -> np.ndarray:
    """Limit a step so that it either completes the path or leaves at least a seventh of it."""
    return np.where(share > 1.2, 1.0, np.minimum(share, 0.85))


def polish(
    kernel: Kernel, z: np.ndarray, r: np.ndarray, errors: np.ndarray, typical: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Iterate Newton's method to machine precision; make responses exactly real outside the support on the
    real axis. typical: the size of each response high above the spectrum."""
    least = VANISHES * np.abs(typical)
    r, errors = r.copy(), errors.copy()
    waiting = np.flatnonzero(np.isfinite(errors))
    for _ in range(4):
        if not waiting.size:
            break
        point, now = z[waiting], r[waiting]
        rounding = np.clip(30 * errors[waiting], 1e-10, 1e-6)[:, None]
        hardly = (point.imag == 0) & np.all(np.abs(now.imag) <= rounding * relative_to(np, now, least), axis=1)
        begin = np.where(hardly[:, None], now.real, now)
        with np.errstate(all="ignore"):
            better, first, last, _ = kernel(point, begin, np.maximum(np.abs(now), least))
        better = np.where(hardly[:, None], better.real, better)
        settled = (last < 1e-13) | (first < 1e-8) & (last < 1e-8)  # only rounding is left
        good = (first < 0.1) & ((last < 0.2 * first) | settled | hardly)
        good &= (last <= errors[waiting]) | hardly & (last < rounding[:, 0])
        converged = waiting[good]
        r[converged], errors[converged] = better[good], last[good]
        small = np.all(np.abs(better.imag) <= rounding * relative_to(np, better, least), axis=1)
        nearly = (point.imag == 0) & ~hardly & small
        waiting = waiting[good & ((last > 1e-13) | nearly)]
    return r, errors
