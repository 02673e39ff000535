"""Benchmarks of the bulk: continuation against fixed-point iteration, exact edges against bisection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from derive.errors import DeriveError
from numerics.bench.tools import BenchRow, built, time_in_turns
from numerics.bulk.branch import Branch
from numerics.bulk.curve import singular_points
from numerics.bulk.density import resolvent_at
from numerics.bulk.edges import support_from_curve
from numerics.runtime.interface import Array
from numerics.support.precision import in_float64

IMAGINARY = 1e-6
MOST_ITERATIONS = 400_000


def bulk(references: Path | None) -> Iterator[BenchRow]:
    """Density and edges of a bulk: continuation and exact roots against iteration and bisection."""
    solver = built("extensive_two_layer")
    branch = solver.branch({q.name: q.default for q in solver.setting.parameters})
    yield density_figure(branch)
    yield edge_figure(branch)


def fixed_point(branch: Branch, damping: float = 0.5) -> Any:
    """Return a damped fixed-point iteration of the bulk equations, compiled.

    Each equation is solved for its own response in turn. The function takes points z, start values, reference values of
    the resolvent, a tolerance and the maximum number of iterations. It stops when the resolvent is within the tolerance
    of the reference, which is the criterion most favourable to it.
    """
    index = branch.resolvent_index
    slope = np.abs(branch.equations(np.array([1j * branch.start.height]), branch.start.responses[None])[2][0])
    owner = linear_sum_assignment(-np.log(slope + 1e-300).T)[1]

    def correction(z: Array, r: list[Array], i: int) -> Array:
        """Return response i minus its value according to its own equation, which is linear in it."""

        def equation(x: Array) -> Array:
            return branch.law.residual(branch.p, z, [*r[:i], x, *r[i + 1 :]])[owner[i]]

        value, rate = jax.jvp(equation, (r[i],), (jnp.ones_like(r[i]),))
        return value / rate

    def once(z: Array, responses: Array) -> Array:
        r = list(responses)
        for i in range(len(r)):
            r[i] = r[i] - damping * correction(z, r, i)
        return jnp.stack(r)

    @jax.jit
    def run(z: Array, r: Array, reference: Array, tolerance: Array, most: Any) -> Any:
        def busy(state: Any) -> Array:
            r, number = state
            return (jnp.max(jnp.abs(r[index] - reference)) > tolerance) & (number < most)

        return jax.lax.while_loop(busy, lambda s: (once(z, s[0]), s[1] + 1), (r, 0))

    return run


@in_float64
def density_figure(branch: Branch, points: int = 400) -> BenchRow:
    """Measure the density on a grid: continuation against damped fixed-point iteration just above the axis."""
    intervals = support_from_curve(branch) or []
    if not intervals:
        raise DeriveError("the bench needs a bulk with a curve and a support")
    low, high = intervals[0][0], intervals[-1][1]
    x = np.linspace(low, high, points + 2)[1:-1]
    z = x + 1j * IMAGINARY
    reference = resolvent_at(branch, z)[0]
    bias = float(np.max(np.abs(resolvent_at(branch, x)[0] - reference))) / np.pi
    iterate = fixed_point(branch)
    start = jnp.asarray(np.tile(branch.start.responses[:, None], (1, points)))
    result: list[Any] = []

    def slow() -> None:
        result[:] = [np.asarray(v) for v in iterate(z, start, reference, np.pi * bias, MOST_ITERATIONS)]

    def fast() -> None:
        resolvent_at(Branch(branch.law, branch.p), x)

    iterated, followed = time_in_turns(slow, fast, repeats=5)
    slow_time, fast_time = iterated.seconds, followed.seconds
    error = float(np.max(resolvent_at(branch, x)[1])) / np.pi
    if result[1] >= MOST_ITERATIONS:
        raise DeriveError("the fixed-point iteration of the bench did not converge")
    return BenchRow(
        "density: fixed point over branch",
        slow_time / fast_time,
        "times",
        f"{points} points in {fast_time:.4f} s, error below {error:.0e}; {int(result[1])} damped iterations at "
        f"imaginary part {IMAGINARY:g} in {slow_time:.3f} s, error {bias:.0e}",
        followed.compilation,
    )


@in_float64
def edge_figure(branch: Branch) -> BenchRow:
    """Measure the upper edge: exact roots of the edge polynomial against bisection on a density threshold."""
    exact = (support_from_curve(branch) or [(0.0, 0.0)])[-1][1]
    span = branch.start.height
    edges: list[float] = []

    def by_roots() -> None:
        singular_points.cache_clear()
        support_from_curve(Branch(branch.law, branch.p))

    def by_bisection() -> None:
        inside, outside = exact - 0.1 * span / 10, span
        while outside - inside > 1e-13 * span:
            middle = (inside + outside) / 2
            dense = -resolvent_at(branch, np.array([middle + 1e-12j * span]))[0][0].imag / np.pi > 1e-5 / span
            inside, outside = (middle, outside) if dense else (inside, middle)
        edges[:] = [(inside + outside) / 2]

    bisected, exactly = time_in_turns(by_bisection, by_roots, repeats=5)
    slow, fast = bisected.seconds, exactly.seconds
    return BenchRow(
        "edge: bisection over exact roots",
        slow / fast,
        "times",
        f"all edges to machine precision in {fast:.4f} s; bisection on a density threshold in {slow:.3f} s, "
        f"off by {abs(edges[0] - exact) / abs(exact):.0e}",
        exactly.compilation,
    )
