"""Edges as folds: real points at which the Jacobian of the bulk equations is singular and the physical branch turns
back.

Outside the support G is real and decreases with z. Continuation in G instead of z passes through the fold, where dz/dG
= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import CLOSEST, FARTHEST, Branch, changed
from numerics.bulk.digits import long_system
from numerics.runtime.interface import Array, BulkLaw
from numerics.runtime.point import Point, replaced
from numerics.support.precision import in_float64

FOLD, POLE = "fold", "pole"
LARGE = 1e3
"""Resolvent, in units of the inverse width, above which the branch approaches a pole or a hard edge."""
STEEPEST = 20.0
"""Largest change of log z or log r in one power-law prediction."""
FITTING = 0.3
"""Relative tolerance between a step in z and the trapezoidal rule for dz/dG."""


@dataclass(frozen=True)
class End:
    """The end of a real piece of the branch: a fold (an edge) or a pole (a point mass or a hard edge)."""

    z: float
    kind: str


def residual_of(law: BulkLaw, p: Point, z: Array, r: Array) -> Array:
    """Return the residuals of the bulk equations as one array."""
    return jnp.stack(law.residual(p, z, r))


def fold_residual(law: BulkLaw, p: Point, unknowns: Array) -> Array:
    """Return the bordered system of a fold: F(z, r) = 0, (dF/dr) v = 0, v normalised on the resolvent."""
    count = len(law.responses)
    z, r, v = unknowns[0], unknowns[1 : count + 1], unknowns[count + 1 :]
    value, turned = jax.jvp(lambda r: residual_of(law, p, z, r), (r,), (v,))
    return jnp.concatenate([value, turned, v[law.resolvent][None] - 1])


@dataclass(frozen=True)
class _RealPoint:
    """A real point of the branch parametrised by G: z, responses r, dz/dG (`turn`) and dr/dG (`along`)."""

    z: float
    r: np.ndarray
    turn: float
    along: np.ndarray

    def g(self, index: int) -> float:
        return float(self.r[index])


def _solve_at_fixed_g(branch: Branch, near: _RealPoint, change: float) -> _RealPoint | None:
    """Return the real point of the branch at G + change by Newton's method; None if it does not contract."""
    index = branch.resolvent_index
    z, r = _predict(branch, near, change)
    if abs(r[index]) * branch.start.height > LARGE and branch.to_many_digits:
        return _correct_in_multiple_precision(branch, z, r)
    usual, first, last = np.abs(near.r) + 1e-300, np.inf, np.inf
    others = np.arange(r.size) != index
    stalled = False
    for n in range(8 if branch.by_factors else 5):
        residual, rate, slope = (x[0] for x in branch.equations(np.array([z]), r[None]))
        matrix = slope.copy()
        matrix[:, index] = rate
        try:
            moved, tangent = np.linalg.solve(matrix, np.stack([residual, -slope[:, index]], axis=1)).T
        except np.linalg.LinAlgError:
            return None
        size = np.abs(moved) / np.maximum(np.abs(r), usual)
        size[index] = abs(moved[index]) / (abs(z) + abs(near.z) + 1e-300)
        before, last = last, float(np.max(size))
        first = last if n == 0 else first
        stalled = 0.3 * before < last < 1e-6  # by rounding, where a response nearly vanishes
        by = changed if branch.by_factors else np.add
        z, r = float(by(z, -moved[index])), np.where(others, by(r, -moved), r)
        if last < 1e-13 or stalled:
            break
    if not (first < 0.1 and (last < 1e-9 or stalled) and np.all(np.isfinite(tangent))):
        return None
    return _RealPoint(z, r, float(tangent[index]), np.where(others, tangent, 1.0))


def _predict(branch: Branch, near: _RealPoint, change: float) -> tuple[float, np.ndarray]:
    """Predict z and the responses at G + change: linearly, or as power laws of G next to a divergent edge."""
    g = near.g(branch.resolvent_index)
    straight = near.z + near.turn * change, near.r + near.along * change
    if not branch.by_factors or abs(g) * branch.start.height <= LARGE or change / g <= -1:
        return straight
    with np.errstate(all="ignore"):
        ratio = np.log1p(change / g)
        power, powers = near.turn * g / near.z * ratio, near.along * g / near.r * ratio
        z = near.z * np.exp(power) if abs(power) < STEEPEST else straight[0]
        r = np.where(np.abs(powers) < STEEPEST, near.r * np.exp(powers), straight[1])
    return float(z), r


def _correct_in_multiple_precision(branch: Branch, z: float, r: np.ndarray) -> _RealPoint | None:
    """Correct z and the responses at fixed G in multiple precision, next to a divergent edge."""
    index = branch.resolvent_index
    z, r, tangent, first, last = long_system(branch.law, branch.own).at_fixed(index, z, r)
    if not (first < 0.1 and last < 1e-9 and np.all(np.isfinite(tangent))):
        return None
    return _RealPoint(z, r, float(tangent[index]), np.where(np.arange(r.size) != index, tangent, 1.0))


@in_float64
def march(branch: Branch, z: float, r: np.ndarray, upward: bool) -> End:
    """Return the first end of the real piece of the branch that contains (z, r), going up or down the real axis."""
    index, height = branch.resolvent_index, branch.start.height
    zero = np.zeros(len(r))
    now = _solve_at_fixed_g(branch, _RealPoint(float(z), np.asarray(r.real, float), 0.0, zero), 0.0)
    if now is not None:
        stride = 0.05 * max(abs(now.g(index)), 1e-3 * height / max(abs(now.turn), 1e-300))
        for _ in range(4000):
            g = now.g(index)
            if abs(g) * height > 1e13 and abs(now.turn) * g * g < 10:  # the pole of a point mass
                limit = now.z + now.turn * g
                return End(0.0 if abs(limit) < 1e-9 * height else limit, POLE)
            if abs(g) * height > LARGE and abs(now.turn * g) <= 1e-16 * abs(now.z):  # a hard edge that is not at zero
                return End(now.z, POLE)
            if abs(g) * height > LARGE and abs(now.z) < CLOSEST * height and branch.by_factors:
                return End(0.0, POLE)  # closer than double precision resolves
            new = _solve_at_fixed_g(branch, now, -stride if upward else stride)
            if new is not None and not _step_is_consistent(now, new, index, branch.by_factors):
                stride *= 0.4
            elif new is not None and new.turn < 0:
                now, stride = new, 1.6 * stride
            elif new is not None:
                edge = _locate_fold(branch, now, new)
                if edge is not None:
                    return End(edge, FOLD)
                stride *= 0.3
            else:
                stride *= 0.4
            if stride < 1e-15 * abs(g):
                break
        if abs(now.g(index)) * height > LARGE and abs(now.turn * now.g(index)) < 1e-9 * height:  # a hard edge
            return End(0.0 if abs(now.z) < 1e-9 * height else now.z, POLE)
        z = now.z
    raise NumericalError(
        f"the bulk could not be continued along the real axis near z = {z:.6g}; take less extreme parameters"
    )


def _step_is_consistent(now: _RealPoint, new: _RealPoint, index: int, by_factors: bool) -> bool:
    """Return whether the trapezoidal rule for dz/dG, in G, 1/G or log G, explains the step; it fails across
    two folds."""
    g, further = now.g(index), new.g(index)
    way = new.z - now.z
    off = abs(way - (now.turn + new.turn) / 2 * (further - g))
    if g * further > 0:
        by_inverse = (now.turn * g**2 + new.turn * further**2) / 2 * (1 / g - 1 / further)
        off = min(off, abs(way - by_inverse))
        if by_factors and now.z * new.z > 0:
            by_powers = (now.turn * g / now.z + new.turn * further / new.z) / 2 * np.log(further / g)
            off = min(off, abs(way) * abs(1 - by_powers / np.log(new.z / now.z)) if new.z != now.z else off)
    if now.turn < 0 <= new.turn:  # past a fold: compare with the extent before it
        way = min(abs(now.turn), new.turn) * (further - g)
    return bool(off <= FITTING * abs(way) + 1e-12 * (abs(now.z) + abs(new.z)))


def _locate_fold(branch: Branch, before: _RealPoint, behind: _RealPoint) -> float | None:
    """Return z where dz/dG = 0 between two points, by the Illinois variant of regula falsi; None if it fails."""
    index = branch.resolvent_index
    ends, values = [before, behind], [before.turn, behind.turn]
    for _ in range(60):
        g = [p.g(index) for p in ends]
        best = ends[int(abs(ends[1].turn) < abs(ends[0].turn))]
        if abs(best.turn * (g[1] - g[0])) <= 1e-17 * abs(best.z) or best.turn == 0:
            return best.z
        share = values[0] / (values[0] - values[1])
        middle = g[0] + (g[1] - g[0]) * (share if 0 < share < 1 else 0.5)
        if middle in g:
            return best.z
        new = _solve_at_fixed_g(branch, best, middle - best.g(index))
        if new is None:
            return None
        side = int(new.turn >= 0)
        ends[side], values[side] = new, new.turn
        values[1 - side] /= 2  # the Illinois rule: halve the value at the retained end
    return None


def solve_scaled(matrix: Array, right: Array) -> Array:
    """Solve a linear system after scaling each row by its largest entry."""
    rows = jax.lax.stop_gradient(jnp.max(jnp.abs(matrix), axis=1))
    return jnp.linalg.solve(matrix / rows[:, None], right / rows[:, None])


def _newton_at(law: BulkLaw, p: Point, g: Array, unknowns: Array) -> Array:
    """Take one Newton step at fixed G in z G (in place of G) and the other responses; return also the tangent in G."""
    count, index = len(law.responses), law.resolvent

    def residual(unknowns: Array, g: Array) -> Array:
        return residual_of(law, p, unknowns[index] / g, unknowns.at[index].set(g))

    def step(number: Array, state: Any) -> Any:
        unknowns, _, first, _ = state
        slope, rate = jax.jacfwd(residual, argnums=(0, 1))(unknowns, g)
        both = solve_scaled(slope, jnp.stack([residual(unknowns, g), -rate], axis=1))
        size = jnp.max(jnp.abs(both[:, 0]) / (jnp.abs(unknowns) + 1e-12 * jnp.max(jnp.abs(unknowns))))
        return unknowns - both[:, 0], both[:, 1], jnp.where(number == 0, size, first), size

    return jax.lax.fori_loop(0, 3, step, (unknowns, jnp.zeros(count), 0.0, 0.0))


@lru_cache(maxsize=64)
def marching_program(law: BulkLaw) -> Any:
    """Return `program(p, lowest) -> (g, unknowns, tangent)`: continuation down the real axis from infinity.

    It stops before the first fold, or before z = `lowest`. The unknowns contain z G, which is 1 at infinity, in place
    of G. G grows in steps that Newton's method checks, until dz/dG changes sign.
    """
    count, index = len(law.responses), law.resolvent

    def marched(p: Point, lowest: Array) -> Any:

        def at_infinity(_: Array, r: Array) -> Array:
            value, slope = (f(r) for f in (far_residual, jax.jacfwd(far_residual)))
            return r - solve_scaled(slope, value[:, None])[:, 0]

        def far_residual(r: Array) -> Array:
            return residual_of(law, p, FARTHEST, r)

        def busy(state: Any) -> Array:
            *_, found, number = state
            return ~found & (number < 400)

        def step(state: Any) -> Any:
            g, unknowns, tangent, factor, _, number = state
            further = g * (1 + factor)
            new, along, first, last = _newton_at(law, p, further, unknowns + tangent * (further - g))
            slopes = unknowns[index] - g * tangent[index], new[index] - further * along[index]  # dz / d(1/G)
            way = new[index] / further - unknowns[index] / g
            off = jnp.abs(way - (slopes[0] + slopes[1]) / 2 * (1 / further - 1 / g))
            turned = jnp.minimum(jnp.abs(slopes[0]), jnp.abs(slopes[1])) * (1 / g - 1 / further)
            fits = off <= FITTING * jnp.where(slopes[1] < 0, turned, jnp.abs(way)) + 1e-12 * jnp.abs(
                unknowns[index] / g
            )
            good = (first < 0.1) & (last < 1e-8) & fits
            # G^2 dz/dG is -1 far out and zero at the fold
            crossed = good & ((further * along[index] >= new[index]) | (new[index] <= lowest * further))
            go = good & ~crossed
            grown = jnp.where(go, jnp.minimum(4 * factor, 9.0), jnp.minimum(0.4 * factor, 0.5))
            now = [jnp.where(go, a, b) for a, b in ((further, g), (new, unknowns), (along, tangent))]
            return (*now, grown, crossed & (factor < 0.02), number + 1)

        far = jax.lax.fori_loop(0, 16, at_infinity, jnp.zeros(count))
        begin = (far[index], far.at[index].set(1.0), jnp.zeros(count), 0.01, False, 0)
        g, unknowns, tangent, *_ = jax.lax.while_loop(busy, step, begin)
        return g, unknowns, tangent

    return marched


@lru_cache(maxsize=64)
def upper_edge_program(law: BulkLaw) -> Any:
    """Return `program(p) -> (edge, residual)`: the upper edge as a pure function of the parameters, for jit, vmap and
    grad.

    The fold is refined by Newton's method on the bordered system. The last step carries the derivatives, and `residual`
    is its relative size.
    """
    march_down, from_march = marching_program(law), edge_from_march(law)

    def upper_edge(p: Point) -> Any:
        return from_march(p, march_down(jax.lax.stop_gradient(p), -FARTHEST))

    return upper_edge


def edge_from_march(law: BulkLaw) -> Any:
    """Return `program(p, marched) -> (edge, residual)`: the upper edge from the result of a march, which is not
    differentiated."""
    index = law.resolvent

    def refined(p: Point, unknowns: Array) -> Array:
        """Take one Newton step on the bordered system; return it with its relative size."""
        value = fold_residual(law, p, unknowns)
        slope = jax.jacfwd(lambda u: fold_residual(law, p, u))(unknowns)
        scale = jax.lax.stop_gradient(jnp.abs(unknowns) + 1e-12 * jnp.max(jnp.abs(unknowns[1:])))
        step = scale * solve_scaled(slope * scale, value[:, None])[:, 0]
        return unknowns - step, jnp.abs(step[0]) / scale[0]

    def upper_edge(p: Point, marched: Any) -> Any:
        fixed, (g, unknowns, tangent) = jax.lax.stop_gradient(p), marched
        # a point of the branch shortly before the fold, as unknowns of the bordered system
        unknowns = jnp.concatenate([unknowns[index][None] / g, unknowns.at[index].set(g), tangent.at[index].set(1.0)])
        unknowns = jax.lax.fori_loop(0, 7, lambda _, u: refined(fixed, u)[0], unknowns)
        unknowns, residual = refined(p, jax.lax.stop_gradient(unknowns))
        return unknowns[0], jax.lax.stop_gradient(residual)

    return upper_edge


def responses_from_march(law: BulkLaw) -> Any:
    """Return `program(p, z, marched) -> r`: the responses at a real z above the support, not differentiated."""
    index = law.resolvent

    def responses(p: Point, z: Array, marched: Any) -> Array:
        g, unknowns, _ = marched

        def newton(_: Array, r: Array) -> Array:
            slope = jax.jacfwd(lambda r: residual_of(law, p, z, r))(r)
            return r - solve_scaled(slope, residual_of(law, p, z, r)[:, None])[:, 0]

        return jax.lax.fori_loop(0, 9, newton, unknowns.at[index].set(g))

    return responses


def with_derivatives(law: BulkLaw, p: Point, z: Array, r: Array) -> Array:
    """Attach derivatives with respect to z and the parameters to responses r at a real z, by one Newton step (implicit
    differentiation)."""
    fixed, place, r = jax.lax.stop_gradient((p, z, r))
    slope = jax.jacfwd(lambda r: residual_of(law, fixed, place, r))(r)
    return r - solve_scaled(slope, residual_of(law, p, z, r)[:, None])[:, 0]


@lru_cache(maxsize=64)
def _mapped(law: BulkLaw, name: str) -> Any:
    """Return a function for the upper edge and its derivative by parameter `name` at many values (vmap)."""
    program = upper_edge_program(law)

    def one(value: Array, p: Point) -> Any:
        (edge, residual), (derivative, _) = jax.jvp(
            lambda x: program(replaced(p, **{name: x})), (value,), (jnp.ones_like(value),)
        )
        return edge, derivative, residual

    return jax.jit(jax.vmap(one, in_axes=(0, None)))


@in_float64
def edges_against(branch: Branch, name: str, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the upper edge, and its derivative, at every value `grid` of parameter `name`; the other parameters are
    those of `branch`."""
    grid = np.atleast_1d(np.asarray(grid, float))
    if branch.law.settles:
        raise NumericalError("the number of nodes of a density varies from point to point; sweep point by point")
    if isinstance(vars(branch.p)[name], int):
        raise NumericalError("the edge is followed along a real parameter; sweep a whole number value by value")
    edges_with_slopes = _mapped(branch.law, name)(jnp.asarray(grid), branch.p)
    edge, derivative, residual = (np.asarray(x) for x in edges_with_slopes)
    wrong = ~(np.isfinite(edge) & np.isfinite(derivative) & (residual < 1e-9))
    if wrong.any():
        raise NumericalError(
            f"the upper edge was not found at parameter value {grid[np.argmax(wrong)]:.6g}; take less extreme ones"
        )
    return edge, derivative
