"""The bulk equations where sites differ: residual and Jacobian at many points by NumPy, with little to compile.

Averages over sites are rational functions of the responses, not polynomials. The generated equations are run on numbers
that carry their derivatives by z and by all responses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType
from typing import Any

import jax.numpy as jnp
import numpy as np

from numerics.bulk.parameters import updated
from numerics.compiling import compiled
from numerics.precision import in_float64
from numerics.runtime.interface import BulkLaw, Sites
from numerics.runtime.point import Point
from numerics.runtime.traits import Law


class Jet:
    """Numbers at many points, groups of sites x points, and their derivatives, one in front for each variable."""

    __array_ufunc__ = None
    __slots__ = ("slopes", "value")

    def __init__(self, value: np.ndarray, slopes: np.ndarray) -> None:
        self.value, self.slopes = value, slopes

    def __add__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return Jet(self.value + other.value, self.slopes + other.slopes)
        return Jet(self.value + np.asarray(other), self.slopes)

    def __mul__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return Jet(self.value * other.value, self.slopes * other.value + other.slopes * self.value)
        factor = np.asarray(other)
        return Jet(self.value * factor, self.slopes * factor)

    def __truediv__(self, other: Any) -> Jet:
        factor: Any = other._inverse() if isinstance(other, Jet) else 1.0 / np.asarray(other)
        return self.__mul__(factor)

    def __rtruediv__(self, other: Any) -> Jet:
        return self._inverse().__mul__(other)

    def __pow__(self, power: int) -> Jet:
        if not isinstance(power, int):
            raise TypeError("a number with derivatives has whole powers only")
        if power < 0:
            return self.__pow__(-power)._inverse()
        return Jet(self.value**power, power * self.value ** max(power - 1, 0) * self.slopes)

    def _inverse(self) -> Jet:
        inverse = 1.0 / self.value
        return Jet(inverse, -self.slopes * (inverse * inverse))

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.slopes)

    def __sub__(self, other: Any) -> Jet:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Jet:
        return (-self).__add__(other)

    __radd__, __rmul__ = __add__, __mul__

    def averaged(self, weights: Any) -> Jet:
        """The weighted sum over groups of sites."""
        shares = np.asarray(weights)
        rows = (len(shares), self.value.shape[-1])
        value = shares @ np.broadcast_to(self.value, rows)
        slopes = shares @ np.broadcast_to(self.slopes, (len(self.slopes), *rows))
        return Jet(value[None], slopes[:, None])


@dataclass(frozen=True)
class SiteSystem:
    """As many equations as responses, with averages over sites, and their derivatives by z and by the responses."""

    law: BulkLaw
    p: Point
    given: tuple[Any, ...]
    count: int
    groups: int

    def __call__(self, z: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residual, rate in z and slope in r at many points; real where the points are."""
        variables = [z, *r.T]
        kind = np.result_type(z, r)
        jets = []
        for number, values in enumerate(variables):
            slopes = np.zeros((len(variables), 1, 1), kind)
            slopes[number] = 1.0
            jets.append(Jet(np.asarray(values, kind)[None], slopes))
        found: Sequence[Any] = by_numpy(self.law.equations)(self.p, jets[0], jets[1:], *self.given)
        shape = (len(variables), 1, z.size)
        residual = np.stack([np.broadcast_to(e.value, shape[1:])[0] for e in found], axis=-1)
        slopes = np.stack([np.broadcast_to(e.slopes, shape)[:, 0] for e in found], axis=-1)
        return residual, slopes[0], np.moveaxis(slopes[1:], 0, -1)


@lru_cache(maxsize=64)
def by_numpy(equations: Callable[..., Any]) -> Callable[..., Any]:
    """Generated equations whose functions of traits are evaluated by NumPy, which has the same names as jax.numpy: one
    call of the latter takes longer than all of the former."""
    if not isinstance(equations, FunctionType):
        return equations
    names = {name: np if value is jnp else value for name, value in equations.__globals__.items()}
    return FunctionType(equations.__code__, names, equations.__name__, equations.__defaults__, equations.__closure__)


@lru_cache(maxsize=64)
@in_float64
def site_system(law: BulkLaw, p: Point) -> SiteSystem:
    """The generated equations at these parameters."""
    assert law.sites is not None
    sites = site_laws(law.sites, p, law.nodes)
    groups = int(np.prod([len(one.weights) for one in sites]))
    return SiteSystem(law, p, (sites, *updated(law, p)), len(law.responses), groups)


@lru_cache(maxsize=64)
@in_float64
def site_laws(sites: Sites, p: Point, nodes: int) -> tuple[Law, ...]:
    """What differs from site to site, in NumPy's arrays: averages over them have nothing to compile."""
    return tuple(Law(np.asarray(one.values), np.asarray(one.weights)) for one in _compiled(sites)(p, nodes=nodes))


@lru_cache(maxsize=64)
def _compiled(sites: Sites) -> Callable[..., Any]:
    """All at once: a density is taken at more and more values, and each operation would be compiled for each number."""
    return compiled(sites, quickly=True, static=("nodes",))
