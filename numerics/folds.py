"""Edges as folds: points of the real axis where the physical branch turns, because its Jacobian is singular.

Outside the support the resolvent G is real and falls with z. Taken as the variable instead of z it leads through the
fold without trouble: the edge is where dz/dG = 0.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError
from numerics.branch import FARTHEST, Branch, whole_numbers
from numerics.precision import in_float64

FOLD, POLE = "fold", "pole"


@dataclass(frozen=True)
class End:
    """Where a real piece of the branch ends: a fold (an edge), or a pole (an atom or a hard edge)."""

    z: float
    kind: str


@lru_cache(maxsize=64)
def _fold_program(module: types.ModuleType, whole: tuple[int, ...]):
    """The bordered system F = 0, F_r v = 0, v_G = 1 in the unknowns (z, r, v), and its derivative."""

    def fold(unknowns, *arguments):
        return fold_residual(module, unknowns, arguments)

    statics = tuple(1 + i for i in whole)
    return jax.jit(lambda u, *a: (fold(u, *a), jax.jacfwd(fold)(u, *a)), static_argnums=statics)


def fold_residual(module: types.ModuleType, unknowns, arguments: tuple):
    """Zero at an edge: there the responses r can move along v while z stands still."""
    count = len(module.RESPONSES)
    z, r, v = unknowns[0], unknowns[1 : count + 1], unknowns[count + 1 :]
    value, turned = jax.jvp(lambda r: module.residual(z, r, *arguments), (r,), (v,))
    return jnp.concatenate([value, turned, v[module.RESOLVENT][None] - 1])


def _newton_on_fold(branch: Branch, z: float, r: np.ndarray, v: np.ndarray) -> float | None:
    program = _fold_program(branch.module, whole_numbers(branch.arguments))
    unknowns = np.concatenate([[z], r, v])
    before = np.inf
    for _ in range(12):
        value, slope = (np.asarray(x) for x in program(unknowns, *branch.arguments))
        if not (np.all(np.isfinite(value)) and np.all(np.isfinite(slope))):
            return None
        rows = np.max(np.abs(slope), axis=1)
        scale = np.abs(unknowns) + 1e-12 * np.max(np.abs(unknowns[1:]))
        scale[0] = abs(unknowns[0]) + 1e-300
        try:
            step = scale * np.linalg.solve(slope * scale / rows[:, None], value / rows)
        except np.linalg.LinAlgError:
            return None
        size = np.max(np.abs(step) / scale)
        if size > 1 or (size >= before and before < 1e-10):
            break
        unknowns = unknowns - step
        before = size
    return float(unknowns[0]) if before < 1e-8 else None


@in_float64
def march(branch: Branch, z: float, r: np.ndarray, upward: bool) -> End:
    """The end of the real piece of the branch that holds (z, r), met on the way up or down the axis."""
    index, equations = branch.resolvent_index, branch.equations
    r = np.asarray(r.real, float)
    sign = -1.0 if upward else 1.0
    z_now, r_now, turn = float(z), r, None

    def corrected(z: float, r: np.ndarray):
        """Newton at fixed G. Returns z, r, the slope dz/dG, the tangent, first and last correction."""
        usual = np.abs(r_now) + 1e-300
        first = last = np.inf
        for n in range(4):
            residual, rate, slope = (x[0].real for x in equations(np.array([z + 0j]), r[None] + 0j))
            matrix = slope.copy()
            matrix[:, index] = rate
            step = np.linalg.solve(matrix, np.stack([residual, -slope[:, index]], axis=1))
            moved, tangent = step[:, 0], step[:, 1]
            size = np.abs(moved) / np.maximum(np.abs(r), usual)
            size[index] = abs(moved[index]) / (abs(z) + abs(z_now) + 1e-300)
            last = float(np.max(size))
            first = last if n == 0 else first
            z = z - float(moved[index])
            r = r - np.where(np.arange(r.size) == index, 0.0, moved)
            if last < 1e-13:
                break
        rate_of_z = float(tangent[index])
        tangent = tangent.copy()
        tangent[index] = 1.0
        return z, r, rate_of_z, tangent, first, last

    try:
        z_now, r_now, turn, along, _, last = corrected(z_now, r_now)
        stride = 0.05 * max(abs(r_now[index]), 1e-3 * branch.start.height * abs(1 / turn) if turn else 0.0)
        for _ in range(4000):
            g = r_now[index]
            if abs(g) * branch.start.height > 1e13 and abs(turn) * g * g < 10:
                weight = -turn * g * g
                limit = z_now - weight / g
                return End(0.0 if abs(limit) < 1e-9 * branch.start.height else limit, POLE)
            change = sign * stride
            guess = r_now + change * along
            z_new, r_new, turn_new, along_new, first, last = corrected(z_now + turn * change, guess)
            fine = first < 0.1 and last < 1e-9 and np.isfinite(turn_new)
            if fine and turn_new >= 0:
                edge = _newton_on_fold(branch, z_now, r_now, along)
                forward = edge is not None and (edge - z_now) * -sign >= -1e-9 * abs(z_now)
                if forward and abs(edge - z_now) <= 3 * abs(turn * change) + 1e-12 * abs(z_now):
                    return End(edge, FOLD)
                if stride < 1e-13 * abs(g):
                    return End(z_now, FOLD)
                stride *= 0.3
            elif fine:
                z_now, r_now, turn, along = z_new, r_new, turn_new, along_new
                stride *= min(2.0, max(0.5, (0.02 / max(first, 1e-12)) ** 0.5))
            else:
                stride *= 0.4
                if stride < 1e-15 * abs(g):
                    break
    except np.linalg.LinAlgError:
        pass
    g, height = r_now[index], branch.start.height
    if turn is not None and abs(g) * height > 1e3 and abs(turn * g) < 1e-9 * height:
        return End(0.0 if abs(z_now) < 1e-9 * height else z_now, POLE)
    raise NumericalError(f"the bulk could not be followed along the real axis near z = {z_now:.6g}")


@lru_cache(maxsize=64)
def upper_edge_program(module: types.ModuleType):
    """The upper edge as a pure function of the parameters: `edge, residual = program(*arguments)`.

    It can be compiled, mapped over parameters and differentiated in them. Far out z G = 1; from there G grows in steps
    that Newton's method checks, until dz/dG changes sign. The fold is then refined on the bordered system, and one last
    step of that refinement carries the derivatives. `residual` is the size of that step, relative.
    """
    count, index = len(module.RESPONSES), module.RESOLVENT

    def solve_scaled(matrix, right):
        rows = jax.lax.stop_gradient(jnp.max(jnp.abs(matrix), axis=1))
        return jnp.linalg.solve(matrix / rows[:, None], right / rows[:, None])

    def at_fixed_g(g, unknowns, arguments):
        """Newton in z G (in place of G) and the other responses, at fixed G; with the tangent in G."""

        def residual(unknowns, g):
            return module.residual(unknowns[index] / g, unknowns.at[index].set(g), *arguments)

        def step(number, state):
            unknowns, _, first, _ = state
            slope, rate = jax.jacfwd(residual, argnums=(0, 1))(unknowns, g)
            both = solve_scaled(slope, jnp.stack([residual(unknowns, g), -rate], axis=1))
            size = jnp.max(jnp.abs(both[:, 0]) / (jnp.abs(unknowns) + 1e-12 * jnp.max(jnp.abs(unknowns))))
            return unknowns - both[:, 0], both[:, 1], jnp.where(number == 0, size, first), size

        return jax.lax.fori_loop(0, 3, step, (unknowns, jnp.zeros(count), 0.0, 0.0))

    def marched(arguments):
        """A point of the branch shortly before the fold, as unknowns of the bordered system."""

        def at_infinity(_, r):
            value, slope = (f(r) for f in (far_residual, jax.jacfwd(far_residual)))
            return r - solve_scaled(slope, value[:, None])[:, 0]

        def far_residual(r):
            return module.residual(FARTHEST, r, *arguments)

        def busy(state):
            *_, found, number = state
            return ~found & (number < 400)

        def step(state):
            g, unknowns, tangent, factor, _, number = state
            further = g * (1 + factor)
            new, along, first, last = at_fixed_g(further, unknowns + tangent * (further - g), arguments)
            good = (first < 0.1) & (last < 1e-8)
            # G^2 dz/dG is -1 far out and zero at the fold
            crossed = good & (further * along[index] >= new[index])
            go = good & ~crossed
            grown = jnp.where(go, jnp.minimum(4 * factor, 9.0), jnp.minimum(0.4 * factor, 0.5))
            now = [jnp.where(go, a, b) for a, b in ((further, g), (new, unknowns), (along, tangent))]
            return (*now, grown, crossed & (factor < 0.02), number + 1)

        far = jax.lax.fori_loop(0, 16, at_infinity, jnp.zeros(count))
        begin = (far[index], far.at[index].set(1.0), jnp.zeros(count), 0.01, False, 0)
        g, unknowns, tangent, *_ = jax.lax.while_loop(busy, step, begin)
        return jnp.concatenate([unknowns[index][None] / g, unknowns.at[index].set(g), tangent.at[index].set(1.0)])

    def refined(unknowns, arguments):
        """One Newton step on the bordered system, and its relative size."""
        value = fold_residual(module, unknowns, arguments)
        slope = jax.jacfwd(lambda u: fold_residual(module, u, arguments))(unknowns)
        scale = jax.lax.stop_gradient(jnp.abs(unknowns) + 1e-12 * jnp.max(jnp.abs(unknowns[1:])))
        step = scale * solve_scaled(slope * scale, value[:, None])[:, 0]
        return unknowns - step, jnp.abs(step[0]) / scale[0]

    def upper_edge(*arguments):
        fixed = tuple(jax.lax.stop_gradient(a) for a in arguments)
        unknowns = jax.lax.fori_loop(0, 7, lambda _, u: refined(u, fixed)[0], marched(fixed))
        unknowns, residual = refined(jax.lax.stop_gradient(unknowns), arguments)
        return unknowns[0], jax.lax.stop_gradient(residual)

    return upper_edge


@lru_cache(maxsize=64)
def _mapped(module: types.ModuleType, whole: tuple[int, ...]):
    """The upper edge and its derivative in one direction, for many parameters; whole numbers are the same for all."""
    program = upper_edge_program(module)

    def one(real, direction, fixed):
        def at(real):
            numbers = iter(real)
            return program(*(next(numbers) if value is None else value for value in fixed))

        (edge, residual), (derivative, _) = jax.jvp(at, (real,), (direction,))
        return edge, derivative, residual

    def many(real, direction, fixed):
        return jax.vmap(lambda point: one(point, direction, fixed))(real)

    return jax.jit(many, static_argnums=2)


@in_float64
def edges_against(branch: Branch, position: int, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The upper edge at every value of one parameter, the others as in `branch`; and its derivative there.

    `position` is the parameter's place among the arguments. All values are solved side by side in one program.
    """
    grid = np.atleast_1d(np.asarray(grid, float))
    whole = whole_numbers(branch.arguments)
    if position in whole:
        raise NumericalError("the edge is followed along a real parameter; sweep a whole number value by value")
    places = [i for i in range(len(branch.arguments)) if i not in whole]
    real = np.tile([float(branch.arguments[i]) for i in places], (grid.size, 1))
    real[:, places.index(position)] = grid
    direction = np.array([float(i == position) for i in places])
    fixed = tuple(a if isinstance(a, int) else None for a in branch.arguments)
    edge, derivative, residual = (np.asarray(x) for x in _mapped(branch.module, whole)(real, direction, fixed))
    wrong = ~(np.isfinite(edge) & np.isfinite(derivative) & (residual < 1e-9))
    if wrong.any():
        raise NumericalError(
            f"the upper edge was not found at parameter value {grid[np.argmax(wrong)]:.6g}; take less extreme ones"
        )
    return edge, derivative
