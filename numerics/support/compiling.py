"""How much effort the compiler spends on what this package runs.

Most of what is compiled here runs for milliseconds, so that compiling it is what takes the time. XLA's older way of
writing loops for a processor compiles in two thirds of the time of the one it takes by itself, and without optimising
in a sixth; the code is equally fast, or half as fast where it is not optimised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax

Options = dict[str, bool | str]
THOROUGHLY: Options = {"xla_cpu_use_fusion_emitters": False}
QUICKLY: Options = {**THOROUGHLY, "xla_backend_optimization_level": "0"}


def compiled(function: Callable[..., Any], *, quickly: bool = False, static: Sequence[str] = ()) -> jax.stages.Wrapped:
    """The function, compiled at its first call for each set of shapes; to be called, not to be differentiated.

    quickly: spend little on it, because it runs for no longer than it compiles. static: names of arguments that fix
    shapes.
    """
    return jax.jit(function, static_argnames=tuple(static), compiler_options=_understood(quickly))


@cache
def _understood(quickly: bool) -> Options | None:
    """The options, if the installed compiler takes them: they come and go with its versions."""
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
    """Call `tell(True)` when JAX begins to compile and `tell(False)` when it is done."""
    _listen()
    _told.append(tell)
    try:
        yield
    finally:
        _told.remove(tell)


@cache
def _listen() -> None:
    """What has been traced is compiled next; JAX tells the end of both."""

    def heard(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event in (_TRACED, _COMPILED):
            for tell in _told:
                tell(event == _TRACED)

    jax.monitoring.register_event_duration_secs_listener(heard)
