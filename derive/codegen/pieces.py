"""Small pieces of array code: sums, multiples, coefficients of updated weights over time."""

from __future__ import annotations

import sympy as sp

from derive.codegen.printer import jax_code
from derive.language.vectors import PAST, Mean
from derive.records.system import Recurrence


def past_code(coefficient: sp.Expr, means: dict[Mean, str]) -> str:
    """A coefficient as code over all earlier times at once; powers of a delay are not taken where it is negative."""
    marks = {m: sp.Symbol(f"_mean{i}") for i, m in enumerate(means)}
    plain = coefficient.xreplace(marks).xreplace({PAST: sp.Symbol("when", integer=True)})
    plain = plain.replace(
        lambda e: e.is_Pow and bool(e.exp.free_symbols) and not e.exp.has(*marks.values()),
        lambda e: sp.Pow(e.base, sp.Max(e.exp, 0)),
    )
    return jax_code(plain, {mark: means[m] for m, mark in marks.items()})


def recurrence_lines(r: Recurrence, time: str) -> list[str]:
    """Coefficients of updated weights for all times, by stepping their recurrence."""
    matrix = "[" + ", ".join("[" + ", ".join(jax_code(e) for e in row) + "]" for row in r.matrix) + "]"
    entry = "[" + ", ".join(jax_code(e) for e in r.entry) + "]"
    forcing = "[" + ", ".join(jax_code(e) for e in r.forcing) + "]"
    step, table = f"next_{r.names[0]}", f"table_{r.names[0]}"
    if r.initial:
        start = f"jnp.array({entry}, float)"
        following = f"jnp.array({matrix}, float) @ now + jnp.array({forcing}, float)"
    else:
        start = f"jnp.zeros(({len(r.names)}, steps + 1))"
        following = f"(jnp.array({matrix}, float) @ now).at[:, {time}].set(jnp.array({entry}, float))"
    return [
        f"# coefficients of {', '.join(r.weights)}, by their update rules",
        f"def {step}(now, {time}):",
        f"    return {following}, now",
        f"{table} = jax.lax.scan({step}, {start}, jnp.arange(steps + 1))[1]",
        *(f"{name} = {table}[:, {i}]" for i, name in enumerate(r.names)),
    ]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]


def plus(a: str, b: str) -> str:
    return b if a == "0" else (a if b == "0" else f"{a} + {b}")


def multiple_of(count: str, name: str) -> str:
    return name if count == "1" else f"({count}) * {name}" if "+" in count else f"{count} * {name}"


def sum_of(parts) -> str:
    total = "0"
    for part in parts:
        total = plus(total, part)
    return total


def scaled_by(coefficient: sp.Expr) -> str:
    return "" if coefficient == 1 else f"({jax_code(coefficient)}) * "


def product_of(scale: str, code: str) -> str:
    return code if scale == "1" else (f"-{code}" if scale == "-1" else f"({scale}) * {code}")
