"""Functions of a vector in double precision, as one JAX primitive under transformations of any precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from numerics.runtime.interface import Array
from numerics.support.compiling import compiled
from numerics.support.precision import in_float64


def lifted(function: Callable[[Array], Array], quickly: bool = False) -> Callable[[Array], Array]:
    """Return the function, with derivatives of any order, computed in double precision and rounded to the caller's
    precision.

    JAX's rules for derivatives, batching and lowering retrace the operations that they act on. Operations traced in
    double precision must not meet rules that run in single precision. A caller therefore sees a single primitive, and
    each of its rules activates double precision.

    quickly: compile without optimisation unless a caller compiles it.
    """
    inner = _Lifted(function, quickly)
    return lambda x: _apply(x, inner)


class _Lifted:
    """A function of vectors x[k], mapped over all leading axes."""

    def __init__(self, function: Callable[[Array], Array], quickly: bool) -> None:
        self.function, self.quickly = function, quickly
        self.traced: dict[tuple[Any, ...], Any] = {}

    @cached_property
    def with_slopes(self) -> _Lifted:
        """Value and derivatives, concatenated along a last axis, from one evaluation. Cached, because a new function is
        compiled anew."""

        def both(x: Array) -> Array:
            slopes, value = jax.jacfwd(lambda y: (self.function(y),) * 2, has_aux=True)(x)
            return jnp.concatenate([value[..., None], slopes], axis=-1)

        return _Lifted(both, self.quickly)

    @cached_property
    def compiled(self) -> jax.stages.Wrapped:
        """The function as one compiled program."""
        return compiled(self._mapped, quickly=self.quickly)

    def program(self, x: Any) -> Any:
        """Return the operations at arguments of a shape and type, which rules need several times: JAX would trace them
        again for each."""
        key = x.shape, x.dtype
        if key not in self.traced:
            self.traced[key] = self.compiled.trace(jax.ShapeDtypeStruct(*key)).jaxpr  # type: ignore[no-untyped-call]
        return self.traced[key]

    def _mapped(self, x: Array) -> Array:
        """Evaluate in double precision over all leading axes."""
        whole: Any = self.function
        for _ in x.shape[:-1]:
            whole = jax.vmap(whole)
        return jax.lax.convert_element_type(whole(jnp.asarray(x, jnp.float64)), x.dtype)


_primitive: Any = Primitive("lifted_to_float64")
_instantiate: Callable[[Any], Array] = ad.instantiate_zeros


def _apply(x: Array, inner: _Lifted) -> Array:
    """Bind the primitive."""
    return _primitive.bind(x, inner=inner)


@in_float64
def _evaluate(x: Array, *, inner: _Lifted) -> Array:
    """Evaluate the primitive."""
    return inner.compiled(x)


@in_float64
def _shape(x: Any, *, inner: _Lifted) -> Any:
    """Return the abstract result of the primitive."""
    return inner.program(x).out_avals[0]


def _derivative(primals: tuple[Array], tangents: tuple[Any], *, inner: _Lifted) -> tuple[Array, Array]:
    """JVP rule: the product of the derivatives and the tangent.

    The derivatives are an ordinary array, so that JAX can transpose and batch the product.
    """
    (x,), tangent = primals, _instantiate(tangents[0])
    both = _apply(x, inner.with_slopes)
    value, slopes = both[..., 0], both[..., 1:]
    behind = slopes.ndim - x.ndim
    return value, jnp.sum(slopes * jnp.expand_dims(tangent, range(x.ndim - 1, x.ndim - 1 + behind)), -1)


def _traced(x: Array, *, inner: _Lifted) -> Array:
    """Lowering rule: the operations become part of the caller's program, with its compiler options."""
    return jaxpr_as_fun(inner.program(x))(x)[0]


def _batch(arrays: tuple[Array], axes: tuple[int], *, inner: _Lifted) -> tuple[Array, int]:
    """Batching rule."""
    return _apply(jnp.moveaxis(arrays[0], axes[0], 0), inner), 0


_primitive.def_impl(_evaluate)
_primitive.def_abstract_eval(_shape)
ad.primitive_jvps[_primitive] = _derivative
batching.primitive_batchers[_primitive] = _batch
mlir.register_lowering(_primitive, in_float64(mlir.lower_fun(_traced, False)))
