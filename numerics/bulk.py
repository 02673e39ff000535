"""The bulk from its generated equations: physical branch, support, density, atoms."""

from __future__ import annotations

import types
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from derive.errors import NumericalError
from numerics.precision import in_float64

DESCENT = 0.5
"""Factor by which the imaginary part shrinks from one point of the path to the next."""


@lru_cache(maxsize=64)
def _follower(module: types.ModuleType, whole: tuple[int, ...]):
    """The compiled path from infinity to z, for all points side by side; compiled once for each setting."""

    def one(z, arguments):
        """Down the vertical line above z, each point starting from the last."""

        def residual(z, r):
            return module.residual(z, r, *arguments)

        slope = jax.jacfwd(residual, argnums=1, holomorphic=True)

        def newton(z, r, count):
            return jax.lax.fori_loop(0, count, lambda _, x: x - jnp.linalg.solve(slope(z, x), residual(z, x)), r)

        height = 1e3 * (1.0 + jnp.abs(z))
        levels = int(np.ceil(np.log(1e-9) / np.log(DESCENT))) + 14
        start = newton(z.real + 1j * height, jnp.zeros(len(module.RESPONSES), complex), 12)

        def down(k, r):
            return newton(z.real + 1j * jnp.maximum(height * DESCENT**k, z.imag), r, 4)

        r = newton(z, jax.lax.fori_loop(1, levels, down, start), 30)
        return r, jnp.max(jnp.abs(residual(z, r)))

    def many(z, *arguments):
        return jax.vmap(lambda point: one(point, arguments))(z)

    return jax.jit(many, static_argnums=tuple(1 + i for i in whole))


def _padded_size(count: int) -> int:
    """Few different sizes, so that few programs are compiled."""
    return 8 if count <= 8 else 1 << (count - 1).bit_length()


@dataclass(frozen=True)
class Branch:
    """The solution of the bulk equations that vanishes like 1/z at infinity, followed down to any z."""

    module: types.ModuleType
    arguments: tuple

    @in_float64
    def responses(self, z: np.ndarray) -> dict[str, np.ndarray]:
        """All bulk responses at points on the real axis or above it."""
        z = np.atleast_1d(np.asarray(z, complex))
        padded = np.full(_padded_size(z.size), z[0] if z.size else 1j, complex)
        padded[: z.size] = z
        follow = _follower(self.module, tuple(i for i, a in enumerate(self.arguments) if isinstance(a, int)))
        r, errors = (np.asarray(x)[: z.size] for x in follow(jnp.asarray(padded), *self.arguments))
        if not np.all(np.isfinite(errors)) or np.max(errors, initial=0.0) > 1e-6:
            raise NumericalError(f"the bulk equations did not converge near z = {z[np.argmax(errors)]:.6g}")
        return {name: r[:, i] for i, name in enumerate(self.module.RESPONSES)}

    def resolvent(self, z: np.ndarray) -> np.ndarray:
        return self.responses(z)[self.module.RESPONSES[self.module.RESOLVENT]]

    def density(self, x: np.ndarray, edges: list) -> np.ndarray:
        """-Im G / pi inside the support, zero outside."""
        inside = np.zeros(x.shape, bool)
        for low, high in edges:
            inside |= (x > low) & (x < high)
        values = np.zeros(x.shape)
        if inside.any():
            values[inside] = np.maximum(-self.resolvent(x[inside]).imag / np.pi, 0.0)
        return values


@in_float64
def edge_candidates(branch: Branch) -> np.ndarray:
    """Real roots of the edge polynomials, ascending."""
    found: list[float] = []
    try:
        polynomials = branch.module.edge_polynomials(*branch.arguments)
    except OverflowError:
        raise NumericalError(
            "the edge polynomial of the bulk overflows at these parameters; take less extreme ones"
        ) from None
    for polynomial in polynomials:
        coefficients = np.trim_zeros(np.asarray(polynomial, float), "f")
        if not np.all(np.isfinite(coefficients)):
            raise NumericalError("the edge polynomial of the bulk is not finite at these parameters")
        if coefficients.size < 2:
            continue
        for root in np.roots(coefficients):
            if abs(root.imag) <= 1e-6 * (1 + abs(root)):
                found.append(_polished(coefficients, root.real))
    found.sort()
    return np.array([x for i, x in enumerate(found) if i == 0 or x - found[i - 1] > 1e-10 * (1 + abs(x))])


def _polished(coefficients: np.ndarray, root: float) -> float:
    """A few Newton steps, kept only while they help."""
    slope = np.polyder(coefficients)
    for _ in range(5):
        value, rate = np.polyval(coefficients, root), np.polyval(slope, root)
        if rate == 0:
            break
        better = root - value / rate
        if abs(np.polyval(coefficients, better)) >= abs(value):
            break
        root = better
    return float(root)


def support(branch: Branch) -> list[tuple[float, float]]:
    """The intervals of the bulk. Between two candidates the density is either positive throughout or zero."""
    points = edge_candidates(branch)
    if points.size < 2:
        return []
    middles = (points[1:] + points[:-1]) / 2
    dense = -branch.resolvent(middles).imag / np.pi > 1e-7
    intervals: list[list[float]] = []
    for low, high, filled in zip(points[:-1], points[1:], dense, strict=True):
        if not filled:
            continue
        if intervals and intervals[-1][1] == low and _positive_at(branch, low):
            intervals[-1][1] = float(high)
        else:
            intervals.append([float(low), float(high)])
    return [(low, high) for low, high in intervals]


def _positive_at(branch: Branch, x: float) -> bool:
    """Whether the density does not vanish at a candidate: then it is no edge."""
    return bool(-branch.resolvent(np.array([x + 1e-12j]))[0].imag / np.pi > 1e-4)


def atoms_of(branch: Branch, edges: list) -> list[dict[str, float]]:
    """Point masses of the bulk: residues of the resolvent at candidates outside the support."""
    found = []
    for x in edge_candidates(branch):
        weights = [(1j * step * branch.resolvent(np.array([x + 1j * step]))[0]).real for step in (1e-5, 1e-6)]
        if weights[1] > 1e-4 and abs(weights[0] - weights[1]) < 1e-2 * weights[1]:
            found.append({"at": float(x), "weight": float(weights[1])})
    return found
