"""Compile a problem for a GPU, which need not be present."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from derive.api.functions import SPECTRAL, function
from derive.errors import DeriveError
from derive.inputs.problems import Problem
from derive.support.extras import check_installed
from derive.support.progress import Progress
from numerics.devices.compiling import PLUGIN, absent_devices, compile_for, compiler_versions
from numerics.devices.device import devices
from numerics.devices.functions import DeviceFunction, HostPart, generated_functions, host_parts
from numerics.devices.records import Compilation
from numerics.functions import needs_training
from numerics.modules import Solver
from numerics.options import CompileOptions, Options
from numerics.support.precision import in_float64


@in_float64
def compilation(
    problem: Problem, load: Callable[[], Solver], options: CompileOptions, progress: Progress | None
) -> Compilation:
    """Return the result of compilation; see `Theory.compile`. load: returns the solver."""
    check_installed(PLUGIN)
    if shutil.which("ptxas") is None:
        check_installed("nvidia.cuda_nvcc")
    device, count = devices()[options.device], int(options.devices)
    batch = int(options.batch or count)
    batch = -(-batch // count) * count
    targets, solver = absent_devices(device, count), load()
    found, refused = _quantities(problem, solver)
    wanted = [*generated_functions(solver, problem.inputs), *found]
    compiled = []
    for k, one in enumerate(wanted):
        if progress is not None:
            progress(k / len(wanted), f"{one.name} for {device.key}")
        compiled.append(compile_for(one, targets, batch))
    host = (*host_parts(solver), *refused)
    setting = problem.model.setting
    return Compilation(setting, device, count, batch, tuple(compiled), host, compiler_versions())


def _quantities(problem: Problem, solver: Solver) -> tuple[list[DeviceFunction], list[HostPart]]:
    """Return the quantities that are functions of all real parameters, with their derivatives, and for each other
    quantity the reason why it is not.
    """
    of = [parameter for parameter in problem.model.parameters if not parameter.domain.whole]
    arguments = tuple(jnp.asarray(float(problem.inputs[parameter.name])) for parameter in of)
    found, refused = [], []
    label = problem.layers[0] if problem.layers else None
    for quantity in _names(problem) if of else ():
        if not solver.setting.exact and needs_training(solver, quantity, label):
            refused.append(HostPart(f"function {quantity}", "laws are sampled on the host"))
            continue
        try:
            names = tuple(parameter.name for parameter in of)
            pure = function(problem, lambda: solver, quantity, names, {}, Options())
        except DeriveError as error:
            refused.append(HostPart(f"function {quantity}", str(error)))
        else:
            found.append(DeviceFunction(f"function {quantity}", partial(_with_derivatives, pure), arguments))
    return found, refused


def _names(problem: Problem) -> Iterator[str]:
    """Yield the quantities that `Theory.function` takes."""
    if problem.layers:
        yield from SPECTRAL
    yield from (name for name, _ in problem.model.observe)


def _with_derivatives(pure: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    """Return a value and its derivatives, from one evaluation."""
    every = tuple(range(len(arguments)))
    slopes, value = jax.jacfwd(lambda *x: (pure(*x),) * 2, argnums=every, has_aux=True)(*arguments)
    return value, slopes
