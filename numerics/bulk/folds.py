"""Edges as folds: real points at which the Jacobian of the bulk equations is singular and the physical branch turns
back.

Outside the support G is real and decreases with z. Continuation in G instead of z passes through the fold, where dz/dG
= 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import CLOSEST, FARTHEST, Branch, changed, relative_to
from numerics.bulk.digits import long_system
from numerics.runtime.interface import Array, BulkLaw
from numerics.runtime.point import Point
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
    usual, first, last = np.abs(near.r), np.inf, np.inf
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
        size = np.abs(moved) / relative_to(np, r, usual)
        reach = abs(z) + abs(near.z) + abs(tangent[index] * r[index])  # z may be zero where G is not large
        size[index] = abs(moved[index]) / (reach + 1e-300)
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
        f"the bulk could not be continued along the real axis near z = {z:.6g}; try less extreme parameters"
    )


def _step_is_consistent(now: _RealPoint, new: _RealPoint, index: int, by_factors: bool) -> bool:
    """Return whether the trapezoidal rule for dz/dG, in G, 1/G or log G, is consistent with the step; it is not across
    two folds.
    """
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
    """Solve a small linear system, each row divided by its largest entry, by Householder reflections.

    Without pivots they compile in half the time of an LU factorisation.
    """
    rows = jax.lax.stop_gradient(jnp.max(jnp.abs(matrix), axis=1))[:, None]
    orthogonal, upper = jnp.linalg.qr(matrix / rows)
    solution: Array = jax.lax.linalg.triangular_solve(upper, orthogonal.T @ (right / rows), left_side=True)
    return solution


class RealEnd(NamedTuple):
    """The end of continuation down the real axis: z, the responses, and their derivatives with respect to G (that of G
    itself is one). error: relative error of z; infinite if no end was reached.
    """

    z: Array
    r: Array
    along: Array
    error: Array


AT_INFINITY, MARCHING, AT_FOLD, AT_LOWEST, ENDED = 0.0, 1.0, 2.0, 3.0, 4.0
"""Phases of continuation: Newton's method at infinity, steps in G, the secant method at the fold, Newton's method at
the lowest z."""
RESOLVED = 1e-9
"""-G^2 dz/dG, which is one at infinity, from which one step of the secant method resolves the fold."""


@lru_cache(maxsize=64)
def continuation_program(law: BulkLaw) -> Any:
    """Return `program(p, lowest) -> RealEnd`: the branch, followed from infinity down the real axis to its first fold,
    or to z = `lowest` if that comes before. It is not differentiated.

    z G, which is 1 at infinity, takes the place of G among the unknowns. All phases are iterations of one loop with a
    single array as its state: compiling the response equations takes longer than solving them, and each array of a loop
    is compiled separately.
    """
    count = len(law.responses)
    own = np.arange(count) == law.resolvent

    def residual(p: Point, variables: Array) -> Array:
        """Return the residuals at the unknowns, followed by G."""
        unknowns, g = variables[:count], variables[count]
        return residual_of(law, p, unknowns[law.resolvent] / g, jnp.where(own, g, unknowns))

    def newton(p: Point, variables: Array, at_z: Array, z: Array) -> tuple[Array, ...]:
        """Take Newton steps at fixed z or else at fixed G. Return unknowns and G, the tangents of the unknowns, and the
        relative sizes of the first and last step."""

        def step(number: Array, state: Array) -> Array:
            variables, (first, _) = state[: count + 1], state[-2:]
            slope = jax.jacfwd(partial(residual, p))(variables)
            right = -jnp.stack([residual(p, variables), slope[:, count]], axis=1)
            moved, tangent = solve_scaled(slope[:, :count], right).T
            (w, change, turn), g = (x[law.resolvent] for x in (variables, moved, tangent)), variables[count]
            shift = jnp.where(at_z, (w + change - z * g) / (z - turn), 0.0)
            moved, unknowns = moved + tangent * shift, jnp.abs(variables[:count])
            size = jnp.max(jnp.abs(moved) / (unknowns + 1e-12 * jnp.max(unknowns)))
            sizes = jnp.stack([jnp.where(number == 0, size, first), size])
            return jnp.concatenate([variables + jnp.append(moved, shift), tangent, sizes])

        start = jnp.concatenate([variables, jnp.zeros(count + 2)])
        state = jax.lax.fori_loop(0, 3, step, start)
        return state[: count + 1], state[count + 1 : -2], state[-2], state[-1]

    def place(variables: Array, tangent: Array) -> tuple[Array, ...]:
        """Return G, z and -G^2 dz/dG = dz / d(1/G)."""
        g, w = variables[count], variables[law.resolvent]
        return g, w / g, w - g * tangent[law.resolvent]

    def advance(p: Point, lowest: Array, state: Array) -> Array:
        """Perform one iteration.

        The state contains the phase and its iterations, the next relative step in G, G and -G^2 dz/dG at the other
        point of a secant, the error of z, the unknowns and G, and the tangents.
        """
        (phase, rounds, factor, other, behind, _), rest = state[:6], state[6:]
        variables, tangent = rest[: count + 1], rest[count + 1 :]
        far, marching, folding = phase == AT_INFINITY, phase == MARCHING, phase == AT_FOLD
        g, z, before = place(variables, tangent)
        secant = before / (before - behind) * (other - g)
        shift = jnp.where(marching, g * factor, jnp.where(folding, secant, 0.0))
        guess = variables + jnp.append(tangent, 1.0) * shift
        new, along, first, last = newton(p, guess, phase == AT_LOWEST, lowest)
        further, below, after = place(new, along)
        off = jnp.abs(below - z - (before + after) / 2 * (1 / further - 1 / g))
        turned = jnp.minimum(jnp.abs(before), jnp.abs(after)) * (1 / g - 1 / further)
        fits = off <= FITTING * jnp.where(after < 0, turned, jnp.abs(below - z)) + 1e-12 * jnp.abs(z)
        good = (first < 0.1) & (last < 1e-8) & fits
        over, low = after <= 0, below <= lowest
        here = marching & good & (over | low) & (factor < 0.02)  # a short step would cross the end
        go = ~marching | (good & ~over & ~low)
        most = jnp.where(far, 6.0, jnp.where(marching, 400.0, jnp.where(folding, 12.0, 3.0)))
        ended = (rounds + 1 >= most) | (folding & (jnp.abs(before) <= RESOLVED))
        following = jnp.where(ended, jnp.where(far, MARCHING, ENDED), phase)
        following = jnp.where(here, jnp.where(over, AT_FOLD, AT_LOWEST), following)
        following = jnp.where(folding & ~over & low, AT_LOWEST, following)
        head = (
            following,
            jnp.where(following == phase, rounds + 1, 0.0),
            jnp.where(go, jnp.minimum(4 * factor, 9.0), jnp.minimum(0.4 * factor, 0.5)),
            jnp.where(here, further, g),
            jnp.where(here, after, before),
            jnp.where(far | marching, jnp.inf, last + jnp.where(folding, after**2, 0.0)),
        )
        return jnp.concatenate([jnp.stack(head), jnp.where(go, jnp.concatenate([new, along]), rest)])

    def continued(p: Point, lowest: Array) -> RealEnd:
        head = (AT_INFINITY, 0.0, 0.01, 0.0, 0.0, np.inf)
        start = np.concatenate([head, own, [1 / FARTHEST], np.zeros(count)])
        state = jax.lax.while_loop(
            lambda state: state[0] < ENDED, partial(advance, p, lowest), jnp.asarray(start, float)
        )
        variables, tangent = state[6 : 7 + count], state[7 + count :]
        g, z, _ = place(variables, tangent)
        return RealEnd(z, jnp.where(own, g, variables[:count]), jnp.where(own, 1.0, tangent), state[5])

    return continued


def implicit(equations: Callable[[Any, Array], Array]) -> Callable[[Any, Array], Array]:
    """Return a function of (p, x) that returns x, a solution of equations(p, x) = 0, and has the derivatives of this
    solution with respect to p, of any order."""

    @jax.custom_jvp
    def solution(p: Any, x: Array) -> Array:
        return x

    @solution.defjvp
    def _(primals: tuple[Any, Array], tangents: tuple[Any, Array]) -> tuple[Array, Array]:
        p, x = primals[0], solution(*primals)
        slope = jax.jacfwd(equations, argnums=1)(p, x)
        change = jax.jvp(lambda p: equations(p, x), primals[:1], tangents[:1])[1]
        return x, -solve_scaled(slope, change[:, None])[:, 0]

    return solution


@lru_cache(maxsize=64)
def upper_edge_program(law: BulkLaw) -> Any:
    """Return `program(p) -> (edge, error)`: the upper edge as a pure function of the parameters, for jit, vmap and
    grad, and its relative error."""
    continued, fold = continuation_program(law), implicit(partial(fold_residual, law))

    def upper_edge(p: Point) -> Any:
        end = continued(jax.lax.stop_gradient(p), -FARTHEST)
        return fold(p, jnp.concatenate([end.z[None], end.r, end.along]))[0], end.error

    return upper_edge
