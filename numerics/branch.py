"""The physical branch of the bulk: the solution that vanishes like 1/z at infinity, followed to any z.

From a point high above the spectrum each target is approached on a straight line. A step is kept only if Newton's
method contracts from the predicted point, if the tangents at both ends agree with the way that was made (another
branch close by would not fit), and if the resolvent stays what a resolvent is: below the real axis and no larger than
the inverse distance to it. Otherwise the step is shortened.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError
from numerics.precision import in_float64

Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]
"""Points z, guesses r and their usual sizes to: improved r, relative size of first and last correction, dr/dz."""

LARGE = 100
"""Systems of more equations are compiled without optimisation, which would take longer than it saves."""
FARTHEST = 1e16
MOST_STEPS = 600


@lru_cache(maxsize=64)
def compiled_equations(module: types.ModuleType, whole: tuple[int, ...]):
    """Residual of the bulk equations and its derivatives by z and by the responses; compiled once for each setting."""

    def one(z, r, arguments):
        def residual(z, r):
            return module.residual(z, r, *arguments)

        rate, slope = jax.jacfwd(residual, argnums=(0, 1), holomorphic=True)(z, r)
        return residual(z, r), rate, slope

    def many(z, r, *arguments):
        return jax.vmap(lambda *point: one(*point, arguments))(z, r)

    options = {"xla_backend_optimization_level": 0} if len(module.RESPONSES) > LARGE else None
    return jax.jit(many, static_argnums=tuple(2 + i for i in whole), compiler_options=options)


def relative_to(xp, r, usual):
    """What a correction of the responses is measured by: each by its own size, unless it just passes through zero."""
    size = xp.maximum(xp.abs(r), usual)
    return size + 1e-12 * xp.max(size, axis=-1, keepdims=True) + 1e-300


def solved(matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Linear systems side by side; NaN where one of them is singular."""
    try:
        return np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        result = np.full(right.shape, np.nan, complex)
        for i, (matrix, side) in enumerate(zip(matrices, right, strict=True)):
            with contextlib.suppress(np.linalg.LinAlgError):
                result[i] = np.linalg.solve(matrix, side)
        return result


BATCH = 32
"""Points handed to the compiled program at once: always as many, so that it is compiled once."""


def whole_numbers(arguments: tuple) -> tuple[int, ...]:
    return tuple(i for i, a in enumerate(arguments) if isinstance(a, int))


@dataclass(frozen=True)
class Start:
    """The branch at infinity and at the point `height` i, well above the spectrum."""

    height: float
    responses: np.ndarray
    at_infinity: np.ndarray

    def above(self, heights: np.ndarray) -> np.ndarray:
        """A good guess of the responses at `heights` i, all at least `height`: they are smooth in 1/z."""
        share = (self.height / heights)[:, None]
        return self.at_infinity + (self.responses - self.at_infinity) * share


@dataclass(frozen=True)
class Branch:
    """The solution of the bulk equations that vanishes like 1/z at infinity, followed down to any z."""

    module: types.ModuleType
    arguments: tuple
    use_curve: bool = True

    @property
    def resolvent_index(self) -> int:
        return self.module.RESOLVENT

    @property
    def eliminated(self) -> bool:
        """Whether there is a curve to use."""
        return self.use_curve and bool(self.module.ELIMINATED)

    @cached_property
    def equations(self):
        """Residual, rate in z and slope in r at many points, at these parameters."""
        program = compiled_equations(self.module, whole_numbers(self.arguments))
        with jax.enable_x64(True):
            arguments = tuple(a if isinstance(a, int) else jnp.asarray(a, float) for a in self.arguments)

        def run(z: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            parts = []
            for begin in range(0, z.size, BATCH):
                rows = np.minimum(np.arange(begin, begin + BATCH), z.size - 1)
                parts.append([np.asarray(x)[: z.size - begin] for x in program(z[rows], r[rows], *arguments)])
            residual, rate, slope = (np.concatenate(x) for x in zip(*parts, strict=True))
            return residual, rate, slope

        return run

    @cached_property
    def kernel(self) -> Kernel:
        """Newton's method on the generated equations."""
        equations = self.equations

        def run(z: np.ndarray, r: np.ndarray, usual: np.ndarray):
            residual, _, slope = equations(z, r)
            first = solved(slope, residual[..., None])[..., 0]
            r = r - first
            residual, rate, slope = equations(z, r)
            both = solved(slope, np.stack([residual, -rate], axis=-1))
            r = r - both[..., 0]
            measure = relative_to(np, r, usual)
            sizes = (np.max(np.abs(step) / measure, axis=-1) for step in (first, both[..., 0]))
            return r, *sizes, both[..., 1]

        return run

    @cached_property
    def start(self) -> Start:
        return _start(self.module, self.arguments)

    @in_float64
    def followed(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Responses at points on the real axis or above it, and the relative size of the last correction."""
        z = np.asarray(z, complex)
        heights = np.maximum(self.start.height, np.abs(z))
        r, tangent = begun(self.kernel, 1j * heights, self.start.above(heights))
        r, errors = follow(self.kernel, 1j * heights, z, r, tangent, self.resolvent_index)
        return polished(self.kernel, z, r, errors)

    def responses(self, z: np.ndarray) -> dict[str, np.ndarray]:
        """All bulk responses at points on the real axis or above it."""
        z = np.atleast_1d(np.asarray(z, complex))
        if not z.size:
            return {name: np.zeros(0, complex) for name in self.module.RESPONSES}
        if not np.all(np.isfinite(z)):
            raise NumericalError("the bulk was asked for at a point that is not finite")
        r, errors = self.followed(z)
        if np.max(errors) > 1e-6:
            raise NumericalError(f"the bulk equations did not converge near z = {z[np.argmax(errors)]:.6g}")
        return {name: r[:, i] for i, name in enumerate(self.module.RESPONSES)}

    def resolvent(self, z: np.ndarray) -> np.ndarray:
        return self.responses(z)[self.module.RESPONSES[self.resolvent_index]]

    def density(self, x: np.ndarray, edges: list) -> np.ndarray:
        """-Im G / pi inside the support, zero outside."""
        from numerics.density import density_on

        return density_on(self, np.asarray(x, float), edges)


@lru_cache(maxsize=256)
@in_float64
def _start(module: types.ModuleType, arguments: tuple) -> Start:
    """Come down from infinity as long as the responses are close to a straight line in 1/z."""
    branch = Branch(module, arguments)
    kernel, index = branch.kernel, branch.resolvent_index

    def newton(height: float, r: np.ndarray, rounds: int) -> tuple[np.ndarray, float]:
        last = np.array([np.inf])
        for _ in range(rounds):
            r, _, last, _ = kernel(np.array([1j * height]), r, np.abs(r))
        return r, float(last[0])

    height, size = FARTHEST, len(module.RESPONSES)
    with np.errstate(all="ignore"):
        far, last = newton(height, np.zeros((1, size), complex), 8)
        responses, nearer = newton(height / 10, far, 4)
        if not (last < 1e-8 and nearer < 1e-8 and abs(1j * height * far[0, index] - 1) < 1e-3):
            raise NumericalError(
                "the bulk equations have no solution that vanishes like 1/z at infinity at these parameters; "
                "take less extreme ones"
            )
        height, limit = height / 10, (10 * far - responses) / 9
        excess = abs(1j * height * responses[0, index] - 1)
        while height > 1e-12:
            r, last = newton(height / 10, limit + (responses - limit) * 10, 3)
            nearer = abs(1j * height / 10 * r[0, index] - 1)
            # z G - 1 is the first or second moment over a power of z until the spectrum comes into sight
            if not (last < 1e-10 and nearer < 0.2 and (nearer > 8 * excess or nearer < 1e-12)):
                break
            height, responses, excess = height / 10, r, nearer
    return Start(height, responses[0], limit[0])


def begun(kernel: Kernel, z: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Responses and their tangents high above the spectrum, where Newton's method needs no path."""
    tangent, last = np.zeros_like(r), np.full(z.shape, np.inf)
    for _ in range(4):
        r, _, last, tangent = kernel(z, r, np.abs(r))
        if np.all(last < 1e-10):
            return r, tangent
    raise NumericalError("the bulk equations could not be followed from infinity; take less extreme parameters")


def follow(
    kernel: Kernel, begin: np.ndarray, end: np.ndarray, r: np.ndarray, tangent: np.ndarray, index: int
) -> tuple[np.ndarray, np.ndarray]:
    """Responses at `end`, each followed on the straight line from `begin`; and how far they are from converged."""
    results, final = r.copy(), np.full(end.size, np.inf)
    place, way, goal_at = np.arange(end.size), begin - end, end
    left, share, rough = np.ones(end.size), np.full(end.size, 0.4), np.full(end.size, 1e-10)
    bend, size = np.zeros_like(r), np.abs(r)
    for _ in range(MOST_STEPS):
        if not place.size:
            break
        goal = left * (1 - share)
        z = goal_at + goal * way
        step = ((goal - left) * way)[:, None]
        run = tangent * step
        straight = r + run
        with np.errstate(all="ignore"):
            better, first, last, slope = kernel(z, straight + bend * (step * step / 2), size)
            g = better[:, index]
            new_size = np.abs(better)
            measure = np.maximum(new_size, size)
            measure += 1e-12 * _widest(measure)[:, None] + 1e-300
            curved, between = better - straight, (slope - tangent) * (step / 2)
            off, unfit = _widest(np.abs(curved) / measure), _widest(np.abs(curved - between) / measure)
            # `rough` is how far the last point was from converged, and its tangent as much
            slack = 3 * (rough**2 + last**2) + 2 * (rough + last) * _widest(np.abs(run) / measure) + 1e-9
            settled = (first < 1e-6) & (last < 1e-6)  # rounding is what is left
            slack += np.where(settled, 5 * (np.minimum(rough, 1e-6) + last), 0.0)
            good = (first < 0.1) & ((last < 0.1 * first) | settled) & (unfit < 0.5 * off + slack)
            good &= (g.imag <= 1e-10 * new_size[:, index]) & (new_size[:, index] * z.imag <= 1 + 1e-9)
            good &= np.isfinite(_widest(np.abs(slope)))
            wish = np.minimum(np.cbrt(0.03 / np.maximum(first, 1e-12)), 0.3 * (off + slack) / unfit)
            share = _capped(share * np.where(good, np.minimum(np.maximum(wish, 0.7), 2.0), 0.6))
            turned = between * (2 / (step * step))
        if good.all():
            r, tangent, bend, size, left, rough = better, slope, turned, new_size, goal, last
        else:
            column = good[:, None]
            r, tangent, bend = (
                np.where(column, better, r),
                np.where(column, slope, tangent),
                np.where(column, turned, bend),
            )
            size, left, rough = (
                np.where(column, new_size, size),
                np.where(good, goal, left),
                np.where(good, last, rough),
            )
        # a branch point at the very end, or next to it, can be approached but not met: rounding decides how closely
        arrived, short = left == 0, share < 1e-3
        near, reach = left * np.abs(way), np.abs(goal_at)
        stuck = ~arrived & ((near <= 1e-17 * reach + 1e-300) | short & (near <= 1e-9 * reach))
        ended = arrived | stuck | short
        if ended.any():
            results[place[ended]] = r[ended]
            error = np.where(arrived, rough, np.where(stuck, np.maximum(rough, 1e-7), np.inf))
            final[place[ended]] = error[ended]
            on = ~ended
            place, way, goal_at, left, share, rough = (x[on] for x in (place, way, goal_at, left, share, rough))
            r, tangent, bend, size = r[on], tangent[on], bend[on], size[on]
    return results, final


def _widest(values: np.ndarray) -> np.ndarray:
    """The largest entry of each row."""
    return values[:, 0] if values.shape[1] == 1 else values.max(axis=1)


def _capped(share: np.ndarray) -> np.ndarray:
    """The share of the remaining way to make in one step: all of it, or leave at least a seventh."""
    return np.where(share > 1.2, 1.0, np.minimum(share, 0.85))


def polished(kernel: Kernel, z: np.ndarray, r: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corrections to the last bit; outside the support on the real axis the responses are made exactly real."""
    r, errors = r.copy(), errors.copy()
    waiting = np.flatnonzero(np.isfinite(errors))
    for _ in range(4):
        if not waiting.size:
            break
        point, now = z[waiting], r[waiting]
        rounding = np.clip(30 * errors[waiting], 1e-10, 1e-6)[:, None]
        hardly = (point.imag == 0) & np.all(np.abs(now.imag) <= rounding * relative_to(np, now, 0.0), axis=1)
        begin = np.where(hardly[:, None], now.real, now)
        with np.errstate(all="ignore"):
            better, first, last, _ = kernel(point, begin, np.abs(now))
        better = np.where(hardly[:, None], better.real, better)
        good = (first < 0.1) & ((last < 0.2 * first) | (last < 1e-13) | hardly)
        good &= (last <= errors[waiting]) | hardly & (last < rounding[:, 0])
        kept = waiting[good]
        r[kept], errors[kept] = better[good], last[good]
        small = np.all(np.abs(better.imag) <= rounding * relative_to(np, better, 0.0), axis=1)
        nearly = (point.imag == 0) & ~hardly & small
        waiting = waiting[good & ((last > 1e-13) | nearly)]
    return r, errors
