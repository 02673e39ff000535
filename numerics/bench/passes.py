"""Benchmarks of exact forward passes against hand-written ones: growing arrays in NumPy, masked ones in JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numerics.bench.networks import deep_linear_by_hand
from numerics.bench.tools import BenchRow, built, cpu_seconds, time_in_turns
from numerics.support.precision import in_float64

Array = Any
REPEATS = 5
DURATION = 20.0
"""Duration of anti-Hebbian learning, in units of its time constant."""
RECURRENT = (200, 500, 1000, 2000)
DEEP = (100, 200, 400)
"""Steps at which passes are compared."""


def recurrent_pass(references: Path | None) -> Iterator[BenchRow]:
    """Forward pass of anti-Hebbian learning against growing NumPy arrays."""
    yield from (_compare("anti_hebbian", references, steps) for steps in RECURRENT)


def deep_pass(references: Path | None) -> Iterator[BenchRow]:
    """Forward pass of a deep linear network, L = 2, against growing NumPy and masked JAX arrays."""
    yield from (_compare("deep_linear", references, steps) for steps in DEEP)


@in_float64
def _compare(setting: str, references: Path | None, steps: int) -> BenchRow:
    """Measure the forward pass of a setting against the fastest hand-written one."""
    solver = built(setting)
    rivals: dict[str, Callable[[], Array]]
    if setting == "anti_hebbian":
        values: dict[str, Any] = {"dt": DURATION / steps, "gamma0": 1.0, "T": steps}
        series, rivals = "activity", {"NumPy": partial(activity_in_numpy, **values)}
    else:
        series, rest = "test_loss", {"alpha": 2.0, "nu": 1.0, "gamma0": 1.0, "eta": 0.1, "sigma": 0.3}
        values, traced = {**rest, "T": steps, "C": 1}, jax.jit(partial(loss_in_jax, T=steps))
        rivals = {"JAX": lambda: np.asarray(traced(**rest))}
        by_hand = deep_linear_by_hand(references)
        if by_hand is not None:
            rivals["NumPy"] = lambda: by_hand.solve(L=2, **values).test_loss
    p, compiled = solver.point(values), []
    compilation = cpu_seconds(lambda: compiled.append(solver.forward_pass.lower(p).compile()))

    def ours() -> Array:
        return np.asarray(compiled[0](p)[1][series])

    error = max(float(np.max(np.abs(ours() - rival()))) for rival in rivals.values())
    fast, *slow = (timing.seconds for timing in time_in_turns(ours, *rivals.values(), repeats=REPEATS))
    listed = ", ".join(f"{seconds:.4f} s in {name}" for name, seconds in zip(rivals, slow, strict=True))
    return BenchRow(
        f"forward pass of {setting} over the best by hand, T = {steps}",
        fast / min(slow),
        "of its time",
        f"{fast:.4f} s against {listed}, series equal to {error:.0e}",
        compilation,
    )


def activity_in_numpy(dt: float, gamma0: float, T: int) -> Array:
    """Return <v(t)^2> of anti-Hebbian learning; rows of v are coefficients of its start and of the noises of M0 v."""
    v, C, rows = np.ones(1), np.zeros((T + 1, T + 1)), np.zeros((T + 1, T + 1))
    for t in range(T + 1):
        rows[t, : t + 1] = v
        dual = np.append(v[:1], v[1:] @ C[:t, :t])
        C[t, : t + 1] = C[: t + 1, t] = rows[: t + 1, : t + 1] @ dual
        kernel = dt * v[1:] + dt**2 * gamma0 * C[t, :t]
        v = np.append(v - kernel @ rows[:t, : t + 1], -dt)
    return np.diagonal(C)


def loss_in_jax(alpha: Array, nu: Array, gamma0: Array, eta: Array, sigma: Array, T: int) -> Array:
    """Return the test loss of a linear network with two hidden layers and one class.

    Each pair of fields h = u + A g and g = r + B h is a set of responses to u and r.
    """
    n, when = T + 1, jnp.arange(T + 1)
    names = ["C_g1", "C_g2", "C_h0", "C_h1", "C_w", "C_v", "C_Delta", "R_Delta", "R_vu", "v_w", "h_r", "h_u"]
    names += [f"{field}{variable}{layer}" for layer in (1, 2) for field in "hg" for variable in "ur"]

    def seen(C: Array | None, row: Array) -> Array:
        return jnp.full(n, jnp.sum(row)) if C is None else C @ row

    def step(t: Array, x: dict[str, Array]) -> dict[str, Array]:
        now = jnp.where(when == t, 1.0, 0.0)
        before, until = jnp.where(when < t, 1.0, 0.0), jnp.where(when <= t, 1.0, 0.0)

        def put(name: str, row: Array) -> None:
            x[name] = x[name].at[t].set(row)

        def mirror(name: str, row: Array) -> None:
            x[name] = x[name].at[t].set(row).at[:, t].set(row)

        def add(field: str, layer: int, u: Array, r: Array) -> Array:
            put(f"{field}u{layer}", u)
            put(f"{field}r{layer}", r)
            above = x["C_g2"] if layer == 1 else None
            return x[f"{field}u{layer}"] @ (x[f"C_h{layer - 1}"] @ u) + x[f"{field}r{layer}"] @ seen(above, r)

        x = dict(x)
        B = eta * gamma0 * before
        mirror("C_g2", add("g", 2, B @ x["hu2"], B @ x["hr2"] + now))
        B = (x["gu2"][t] + eta * gamma0 * x["C_g2"][t]) * before
        mirror("C_g1", add("g", 1, B @ x["hu1"], B @ x["hr1"] + now))
        K = (x["gu1"][t] / gamma0 + eta * x["C_g1"][t]) * before
        mirror("C_w", until + x["C_g1"][t] / (gamma0**2 * nu))
        put("v_w", K @ x["h_r"] + now)
        put("R_vu", -K @ x["h_u"])
        noise = x["R_vu"] @ (x["C_Delta"] @ x["R_vu"][t]) / alpha
        mirror("C_v", x["v_w"] @ (x["C_w"] @ x["v_w"][t]) + noise)
        put("R_Delta", x["R_vu"][t] @ x["R_Delta"] / alpha + now)
        row = x["R_Delta"][t]
        mirror("C_Delta", x["R_Delta"] @ (x["C_v"] @ row + sigma**2 * jnp.sum(row)))
        put("h_r", -row @ x["v_w"])
        put("h_u", row @ x["R_vu"] + now)
        noise = x["h_u"] @ (x["C_Delta"] @ x["h_u"][t]) / alpha
        mirror("C_h0", x["h_r"] @ (x["C_w"] @ x["h_r"][t]) + noise)
        A = x["h_r"][t] / (gamma0 * nu) + eta * gamma0 * x["C_h0"][t] * before
        mirror("C_h1", add("h", 1, A @ x["gu1"] + now, A @ x["gr1"]))
        A = x["hr1"][t] + eta * gamma0 * x["C_h1"][t] * before
        add("h", 2, A @ x["gu2"] + now, A @ x["gr2"])
        return x

    x = jax.lax.fori_loop(0, n, step, {name: jnp.zeros((n, n)) for name in names})
    return jnp.diagonal(x["C_v"]) + sigma**2
