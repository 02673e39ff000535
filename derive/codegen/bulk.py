"""Writes bulk.py: the equations of the bulk responses, the curve of the resolvent, and the edge polynomials."""

from __future__ import annotations

import sympy as sp

from derive.algebra.nodes import Z
from derive.codegen.pieces import recurrence_lines
from derive.codegen.printer import jax_code
from derive.printing import text
from derive.records.probe import Bulk


def write_bulk(bulk: Bulk, signature: str) -> str:
    """The text of bulk.py."""
    projected = bulk.projected
    symbols = projected.bulk_symbols
    names = tuple(s.name for s in symbols)
    lines = [
        '"""The bulk: self-consistent responses, the curve of the resolvent G, and where its edges may lie."""',
        "",
        "import jax",
        "import jax.numpy as jnp",
        "",
        "",
        f"RESPONSES = {names!r}",
        f'RESOLVENT = RESPONSES.index("{projected.resolvent}")',
        "",
        "",
        f"def residual(z, r, {signature}):",
        '    """Zero at the bulk responses r (in the order of RESPONSES) at z. They vanish as z grows."""',
    ]
    equations = [jax_code(e) for e in projected.bulk_equations]
    body = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = r", *_recurrences(bulk, " ".join(equations))]
    body += ["return jnp.stack(", "    ["]
    for equation, code in zip(projected.bulk_equations, equations, strict=True):
        body += [f"        # 0 = {text(equation)}", f"        {code},"]
    body += ["    ]", ")"]
    lines += [f"    {line}" for line in body]
    poly = sp.Poly(bulk.curve, projected.resolvent, Z)
    top_g, top_z = poly.degree(projected.resolvent), poly.degree(Z)
    table = [[poly.coeff_monomial(projected.resolvent**i * Z**j) for j in range(top_z + 1)] for i in range(top_g + 1)]
    rows = [f"[{', '.join(jax_code(c) for c in row)}]" for row in table]
    body = [*_recurrences(bulk, " ".join(rows)), f"return jnp.array([{', '.join(rows)}], dtype=float)"]
    lines += [
        "",
        "",
        f"def curve({signature}):",
        '    """Table c with sum_ij c[i, j] G^i z^j = 0 on the curve."""',
        *[f"    {line}" for line in body],
    ]
    polynomials = []
    for factor in bulk.edge_factors:
        coefficients = sp.Poly(factor, Z).all_coeffs()
        polynomials.append(f"jnp.array([{', '.join(jax_code(c) for c in coefficients)}], dtype=float)")
    body = [*_recurrences(bulk, " ".join(polynomials)), "return (", *[f"    {p}," for p in polynomials], ")"]
    lines += [
        "",
        "",
        f"def edge_polynomials({signature}):",
        '    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""',
        *[f"    {line}" for line in body],
    ]
    return "\n".join(lines) + "\n"


def _recurrences(bulk: Bulk, mentioned: str) -> list[str]:
    lines = []
    for r in bulk.system.recurrences:
        if any(name in mentioned for name in r.names):
            clock = next(f.field.clock for f in bulk.system.training if f.field.clock is not None)
            lines += [f"steps = {clock.steps}", *recurrence_lines(r, str(clock))]
    return lines
