"""Benchmarks of whole processes: starting, importing, compiling, deriving, solving a second time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from numerics.bench.tools import BenchRow, cpu_seconds, python, time_in_turns

LIBRARIES = "import jax, jax.numpy, numpy, scipy.linalg, scipy.sparse.linalg, sympy"
"""The third-party imports of a solution."""
EXACT = (
    "spiked_wigner",
    "anti_hebbian",
    "coupled_spikes",
    "deep_linear",
    "extensive_two_layer",
    "extensive_multilayer",
)
"""Shipped settings whose theory is not sampled."""


def start_up(references: Path | None) -> Iterator[BenchRow]:
    """Start-up of the command line."""
    ways = time_in_turns(lambda: python("-m", "derive", "--help"), lambda: python("-c", "pass"), repeats=5)
    ours, nothing = (way.seconds for way in ways)
    yield BenchRow(
        "derive --help over an empty Python", ours / nothing, "times", f"{ours:.3f} s against {nothing:.3f} s"
    )


def build_everything(references: Path | None) -> Iterator[BenchRow]:
    """Derivation and code of every shipped setting."""
    with tempfile.TemporaryDirectory() as directory:
        seconds = cpu_seconds(lambda: python("-m", "derive", "build", "--out", directory))
    imports = cpu_seconds(lambda: python("-c", "import sympy"))
    told = f"derive build --out DIR, {seconds:.1f} s, against python -c 'import sympy', {imports:.2f} s"
    yield BenchRow("build of everything over importing SymPy", seconds / imports, "times", told)


_COMPILING = """
import time, jax
from numerics.solver import load_built
solver = load_built("deep_linear")
values = {**{q.name: q.default for q in solver.setting.parameters}, "T": 200}
with jax.enable_x64(True):
    p, seconds = solver.point(values), [time.process_time()]
    run = solver.pass_of(values).lower(p).compile()
    for _ in range(2):
        seconds.append(time.process_time())
        jax.block_until_ready(run(p))
print(seconds[1] - seconds[0], time.process_time() - seconds[2])
"""


def compiling(references: Path | None) -> Iterator[BenchRow]:
    """Compiling a forward pass against importing the compiler and against one run."""
    compiled, ran = map(float, python("-c", _COMPILING, JAX_ENABLE_COMPILATION_CACHE="0").split())
    imported = float(python("-c", "import time, jax, jax.numpy; print(time.process_time())"))
    told = f"deep_linear, T = 200, L = 2, as `derive solve` does it: {compiled:.2f} s"
    yield BenchRow(
        "compiling over importing JAX", compiled / imported, "times", f"{told}; importing {imported:.2f} s", compiled
    )
    yield BenchRow("compiling over running", compiled / ran, "times", f"{told}; running {ran:.3f} s", compiled)


_FIRST = """
import time, jax, derive
started, compiling = time.process_time(), []
def heard(event, seconds, **kwargs):
    if event == "/jax/core/compile/backend_compile_duration":
        compiling.append(seconds)
jax.monitoring.register_event_duration_secs_listener(heard)
derive.load("wide_network").solve(samples=2000)
spent = time.process_time() - started
count = len(compiling)
derive.load("wide_network").solve(samples=2000)
print(spent, time.process_time() - started - spent, count)
"""


def first_solve(references: Path | None) -> Iterator[BenchRow]:
    """The first solution of a sampled network against the second one in the same process."""
    printed = python("-c", _FIRST, JAX_ENABLE_COMPILATION_CACHE="0")
    first, second, programs = map(float, printed.split())
    told = f"wide_network, 2000 samples: {first:.1f} s, then {second:.1f} s; {programs:.0f} programs are compiled"
    yield BenchRow("first solve of a sampled network over the second", first / second, "times", told, first - second)


_FUNCTIONS = """
import time, jax, derive
from numerics.solver import load_built
solver = load_built("deep_linear")
values = {q.name: q.default for q in solver.setting.parameters}
outlier = derive.load("deep_linear").function("outlier", of="gamma0")
def compile_pass():
    with jax.enable_x64(True):
        jax.jit(solver.rows.forward_pass).lower(solver.point(values)).compile()
work = (
    compile_pass,
    lambda: jax.jit(outlier).lower(1.0).compile(),
    lambda: jax.block_until_ready(jax.grad(outlier)(1.0)),
)
work[0]()
for one in work:
    jax.clear_caches()
    started = time.process_time()
    one()
    print(time.process_time() - started)
"""


def functions(references: Path | None) -> Iterator[BenchRow]:
    """Compiling the largest outlier as a function against compiling a bare forward pass."""
    bare, whole, slope = map(float, python("-c", _FUNCTIONS, JAX_ENABLE_COMPILATION_CACHE="0").split())
    told = f"deep_linear at its defaults: compiled in {{:.2f}} s against {bare:.2f} s"
    yield BenchRow("jit of m.function over its forward pass", whole / bare, "times", told.format(whole), whole)
    yield BenchRow("grad of m.function over its forward pass", slope / bare, "times", told.format(slope), slope)


def second_solves(references: Path | None) -> Iterator[BenchRow]:
    """The second solution of each exact setting against importing its libraries."""
    for name in EXACT:
        with tempfile.TemporaryDirectory() as directory:

            def solve(name: str = name, directory: str = directory) -> None:
                python("-m", "derive", "solve", name, TWO_LEVEL_DMFT_CACHE=directory)

            again, imports = time_in_turns(solve, lambda: python("-c", LIBRARIES), repeats=5)
        yield BenchRow(
            f"second solve of {name} over importing its libraries",
            again.seconds / imports.seconds,
            "times",
            f"{again.seconds:.2f} s against {imports.seconds:.2f} s",
            again.compilation,
        )


def depth(references: Path | None) -> Iterator[BenchRow]:
    """Derivation and code of a network of 12 layers against one of 6."""
    with tempfile.TemporaryDirectory() as directory:

        def build(layers: int) -> None:
            python("-m", "derive", "build", "deep_linear", f"L={layers}", "--out", directory)

        deep, half = (way.seconds for way in time_in_turns(lambda: build(12), lambda: build(6), repeats=3))
    told = f"deep_linear, derivation and code: {deep:.2f} s against {half:.2f} s"
    yield BenchRow("build of 12 layers over 6", deep / half, "times", told)


_RESULTANTS = """
import time, sympy
from derive.algebra.polynomials import PolynomialRing
from derive.inputs.loading import load_model
from derive.pipeline import derive_model
bulk = derive_model(load_model("extensive_two_layer")).first.bulk
curve, resolvent = bulk.curve, bulk.projected.resolvent
slope = sympy.expand(curve.diff(resolvent))
ring = PolynomialRing.of((curve,))
p, q = ring.encode(curve), ring.encode(slope)
for work in (lambda: p.resultant(q, ring.variable(resolvent)), lambda: sympy.resultant(curve, slope, resolvent)):
    start = time.process_time()
    work()
    print(time.process_time() - start)
"""


def elimination(references: Path | None) -> Iterator[BenchRow]:
    """Elimination of the resolvent from a curve: python-flint against SymPy's resultant."""
    fast, slow = map(float, python("-c", _RESULTANTS).split())
    yield BenchRow(
        "elimination: SymPy over python-flint",
        slow / fast,
        "times",
        f"resultant of the curve of extensive_two_layer and its derivative, three parameters: {fast:.4f} s against "
        f"{slow:.2f} s",
    )


_BULK = """
import time
import derive
derivation = derive.load("extensive_two_layer", steps=2, output="included").derivation
start = time.process_time()
curve = derivation.bulk.curve
print(time.process_time() - start, len(derivation.probe.bulk_symbols), curve is None)
"""


def large_elimination(references: Path | None) -> Iterator[BenchRow]:
    """First derivation of a bulk whose curve is too large to eliminate: two steps of extensive_two_layer with its own
    output.
    """
    seconds, unknowns, refused = python("-c", _BULK).split()
    told = "no curve is within the bounds" if refused == "True" else "eliminated"
    yield BenchRow("bulk of a large elimination", float(seconds), "s", f"{unknowns} response equations, {told}")
