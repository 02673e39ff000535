"""Compilation for GPUs that are not there: what HLO consists of, published figures, and every setting."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from conftest import SHIPPED

import derive
from derive.cli.compiled import print_compilation
from derive.errors import DeriveError
from numerics.devices.device import devices
from numerics.devices.functions import HostPart
from numerics.devices.programs import Program
from numerics.devices.records import Compilation, CompiledFunction
from numerics.options import DEVICES

HLO = """
HloModule jit_forward, is_scheduled=true

%inside_a_kernel (a: f64[4]) -> f64[4] {
  %a = f64[4]{0} parameter(0)
  ROOT %b = f64[4]{0} sine(%a)
}

%body (x: (s64[], f64[4])) -> (s64[], f64[4]) {
  %x = (s64[], f64[4]{0}) parameter(0)
  %y = f64[4]{0} get-tuple-element(%x), index=1
  %product = (f64[4]{0}, s8[4096]{0}) custom-call(%y, %y), custom_call_target="__cublas$gemm"
  %z = f64[4]{0} fusion(%y), kind=kLoop, calls=%inside_a_kernel
  ROOT %both = (s64[], f64[4]{0}) tuple(%z, %z)
}

%condition (x: (s64[], f64[4])) -> pred[] {
  %x = (s64[], f64[4]{0}) parameter(0)
  ROOT %less = pred[] fusion(%x), kind=kLoop, calls=%inside_a_kernel
}

ENTRY %main (x: f64[4]) -> f64[4] {
  %x = f64[4]{0} parameter(0)
  %start = f64[10]{0} fusion(%x), kind=kLoop, calls=%inside_a_kernel
  %loop = (s64[], f64[4]{0}) while(%start), condition=%condition, body=%body, \
backend_config={"known_trip_count":{"n":"7"}}
  %host = f64[4]{0} custom-call(%x), custom_call_target="xla_ffi_python_gpu_callback"
  ROOT %result = f64[4]{0} get-tuple-element(%loop), index=1
}
"""


def test_kernels_of_a_program_are_counted_by_hand():
    """Two of the entry; in each of seven steps a product, a kernel, and the condition."""
    program = Program.of(HLO)
    assert program.whole.kernels == 2 and program.whole.per_step == 2 + 7 * 3
    (loop,) = program.whole.loops
    assert (loop.trips, loop.kernels, loop.entries) == (7, 3, 4 + 4 + 1)
    assert program.whole.width == pytest.approx((10 + 4 + 7 * 9) / 23)
    assert program.custom_calls == {"__cublas$gemm": 1, "xla_ffi_python_gpu_callback": 1}
    assert program.host_calls == ("xla_ffi_python_gpu_callback",)
    assert program.workspace == 4096 and program.floats == ("f64",) and program.collectives == 0


def test_a_loop_that_ends_at_a_condition_has_no_number_of_kernels():
    program = Program.of(HLO.replace('"known_trip_count":{"n":"7"}', ""))
    assert not program.whole.bounded and program.whole.loops[0].trips is None


def compiled_by_hand() -> Compilation:
    """The program above as if one point were compiled for a V100."""
    program = Program.of(HLO)
    one = CompiledFunction(
        name="forward pass",
        seconds=0.5,
        program=program.whole,
        custom_calls=program.custom_calls,
        host_calls=program.host_calls,
        collectives=program.collectives,
        floats=program.floats,
        arguments=32,
        results=32,
        working=36,
        workspace=program.workspace,
        points=1,
    )
    host = (HostPart("edges", "adaptive"), HostPart("atoms", "adaptive"))
    return Compilation("mine", devices()["v100"], 1, 1, (one,), host, {"jax": "0"})


def test_a_batch_is_busy_where_the_mean_kernel_has_a_thread_for_each_place():
    """80 multiprocessors of 2048 threads; 77 entries in 23 kernels; 100 bytes in 16935682048 less a workspace."""
    compilation = compiled_by_hand()
    one = compilation["forward pass"]
    assert one.busy(compilation.device) == math.ceil(80 * 2048 / (77 / 23))
    assert one.most(compilation.device) == (16935682048 - 4096) // 100 and one.kernels == 23
    assert json.loads(json.dumps(compilation.as_dict()))["functions"][0]["steps"] == [3]


def test_what_calls_the_host_is_printed(capsys):
    print_compilation(compiled_by_hand(), {"T": 7})
    told = capsys.readouterr().out
    assert "mine T=7, compiled for NVIDIA V100 SXM2 16GB; nothing was executed on it" in told
    assert "calls the host: forward pass (xla_ffi_python_gpu_callback)" in told
    assert "edges, atoms: adaptive" in told and "double precision throughout" in told


@pytest.mark.parametrize(("key", "published"), [("v100", 7.8), ("a100", 9.7), ("h100", 33.5), ("l4", 0.473)])
def test_figures_of_a_device_give_its_published_rate_in_double_precision(key, published):
    """TFLOP/s as published; L4: 1/64 of the rate in single precision."""
    assert devices()[key].peak / 1e12 == pytest.approx(published, rel=0.01)


def test_every_device_has_a_description_for_the_compiler():
    for device in devices().values():
        assert f"core_count: {device.multiprocessors}\n" in device.description
    assert tuple(devices()) == DEVICES


@pytest.mark.slow
def test_an_edge_of_a_sampled_setting_is_a_function_because_its_bulk_needs_no_training():
    edge = derive.load("coupled_spikes_tanh").function("edge", of="alpha")
    linear = derive.load("coupled_spikes").solve(alpha=2.0, path=False)
    assert float(edge(2.0)) == pytest.approx(linear.layers[0].law.edges[-1][1], rel=1e-6)


SHARED = """
import json, sys, jax
import derive
from numerics.training.trained import train_together
m = derive.load("anti_hebbian")
values = [m.inputs(T=6, gamma0=0.5 + k) for k in range(5)]
program = m.solver.forward_passes.lower(jax.tree.map(lambda *x: jax.numpy.stack(x), *[m.solver.point(values[0])] * 8))
print(json.dumps({
    "devices": jax.local_device_count(),
    "numbers": [one.observables["activity"].tolist() for one in train_together(m.solver, values)],
    "sweep": m.sweep(T=6, gamma0=[0.5 + k for k in range(5)]).to_xarray()["activity"].values.tolist(),
    "sharded": "num_partitions=4" in program.compile().as_text(),
    "waits": sum(program.compile().as_text().count(word) for word in ("all-reduce", "all-gather", "collective")),
}))
"""


@pytest.mark.long
def test_a_sweep_over_four_devices_gives_the_numbers_of_one():
    """Each computes an equal part, and waits for no other."""
    found = {}
    for count in (1, 4):
        told = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}", "JAX_PLATFORMS": "cpu"}
        done = subprocess.run([sys.executable, "-c", SHARED], env=told, stdout=subprocess.PIPE, text=True, check=True)
        found[count] = json.loads(done.stdout)
    one, four = found[1], found[4]
    assert (one["devices"], four["devices"]) == (1, 4) and four["sharded"] and not four["waits"]
    np.testing.assert_allclose(four["numbers"], one["numbers"], rtol=1e-13)
    np.testing.assert_allclose(four["sweep"], one["sweep"], rtol=1e-13)


INSTALLED = find_spec("jax_plugins") is not None and find_spec("jax_plugins.xla_cuda12") is not None
gpu = pytest.mark.skipif(not INSTALLED, reason="the compiler for GPUs is not installed (the extra gpu)")
VARIANTS = (
    *((name, {}) for name in SHIPPED if name not in ("deep_linear", "wide_network", "anti_hebbian", "coupled_spikes")),
    ("anti_hebbian", {"T": 5}),
    ("coupled_spikes", {"S": 3}),
    ("deep_linear", {"L": 1, "T": 4, "C": 2}),
    ("deep_linear", {"L": 2, "T": 4, "C": 2, "data": "online"}),
    ("wide_network", {"L": 2, "T": 2, "P": 2, "B": 2, "D": 2}),
)


@pytest.mark.skipif(INSTALLED, reason="the compiler for GPUs is installed")
def test_without_the_compiler_the_error_says_what_to_install():
    with pytest.raises(DeriveError, match=r"pip install 'two-level-dmft\[gpu\]'"):
        derive.load("spiked_wigner").compile()


@gpu
@pytest.mark.long
@pytest.mark.parametrize(("name", "values"), VARIANTS, ids=[" ".join(map(str, (n, *v.values()))) for n, v in VARIANTS])
def test_every_function_of_a_setting_compiles_for_a_gpu(name, values):
    compilation = derive.load(name).compile(device="a100", **values)
    assert compilation.functions and not [one.name for one in compilation.functions if one.host_calls]
    assert all(one.double for one in compilation.functions)
    for one in compilation.functions:
        assert one.program.per_step >= 1 and one.busy(compilation.device) >= 1 and one.most(compilation.device) > 1000
        if one.name == "forward pass":
            assert one.steps, "a loop over times"


@gpu
@pytest.mark.long
def test_a_batch_over_four_gpus_waits_for_none():
    compilation = derive.load("spiked_wigner").compile(batch=10, devices=4)
    assert compilation.batch == 12 and {one.points for one in compilation.functions} == {3}
    assert not sum(one.collectives for one in compilation.functions)
    assert {"function outlier", "function edge"} <= {one.name for one in compilation.functions}


@gpu
@pytest.mark.long
def test_devices_differ_in_what_they_hold_not_in_what_runs():
    found = [derive.load("structured_regression").compile(device=key, T=2) for key in ("h100", "l4")]
    large, small = (one["forward pass"] for one in found)
    assert large.kernels == small.kernels and math.isfinite(large.seconds)
    assert large.busy(found[0].device) > small.busy(found[1].device)
