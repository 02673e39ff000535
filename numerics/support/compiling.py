"""Compiler options of JAX programs.

Most programs here run for milliseconds, so that compilation dominates. XLA's older loop emitters compile faster than
the default ones, and faster still without optimisation, at the cost of slower code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax

Options = dict[str, bool | int | str]
# programs are small: generating code for 32 parts of one, the default, takes longer than for one part
THOROUGHLY: Options = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
QUICKLY: Options = {**THOROUGHLY, "xla_backend_optimization_level": "0"}


def compiled(function: Callable[..., Any], *, quickly: bool = False, static: Sequence[str] = ()) -> jax.stages.Wrapped:
    """Return a jitted function, to be called and not to be differentiated.

    Args:
        function: the function.
        quickly: compile without optimisation, for programs that run no longer than they compile.
        static: names of arguments that determine shapes.
    """
    return jax.jit(function, static_argnames=tuple(static), compiler_options=_understood(quickly))


@cache
def _understood(quickly: bool) -> Options | None:
    """Return the compiler options if the installed compiler accepts them, else None."""
    options = QUICKLY if quickly else THOROUGHLY
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return None
    return options


_TRACED, _COMPILED = "/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/backend_compile_duration"
_told: list[Callable[[bool], None]] = []


@contextmanager
def tell_while_compiling(tell: Callable[[bool], None]) -> Iterator[None]:
    """Call `tell(True)` when JAX begins to compile and `tell(False)` when it ends."""
    _listen()
    _told.append(tell)
    try:
        yield
    finally:
        _told.remove(tell)


@cache
def _listen() -> None:
    """Register one listener: compilation follows tracing, and JAX reports the end of both."""

    def heard(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event in (_TRACED, _COMPILED):
            for tell in _told:
                tell(event == _TRACED)

    jax.monitoring.register_event_duration_secs_listener(heard)
