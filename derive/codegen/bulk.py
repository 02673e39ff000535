"""Writes bulk.py: the equations of the bulk responses, the curve of the resolvent, and the edge polynomials."""

from __future__ import annotations

import sympy as sp

from derive.algebra.nodes import Z
from derive.codegen.pieces import indented, recurrence_lines
from derive.codegen.printer import jax_code
from derive.printing import text
from derive.records.probe import Bulk


def write_bulk(bulk: Bulk, signature: str) -> str:
    """The text of bulk.py. Without a curve it holds the response equations alone, and says so."""
    has_curve = bulk.curve is not None
    names = tuple(s.name for s in bulk.projected.bulk_symbols)
    curve = ", the curve of the resolvent G, and where its edges may lie" if has_curve else ""
    lines = [
        f'"""The bulk: self-consistent responses{curve}."""',
        "",
        "import jax",
        "import jax.numpy as jnp",
        "",
        "",
        f"RESPONSES = {names!r}",
        f'RESOLVENT = RESPONSES.index("{bulk.projected.resolvent}")',
        "# whether the responses were eliminated: curve and edge_polynomials exist",
        f"ELIMINATED = {has_curve!r}",
        *(["# zero on the curve of the resolvent", f"CURVE = {str(bulk.curve)!r}"] if has_curve else ["CURVE = None"]),
        *_residual(bulk, names, signature),
    ]
    if has_curve:
        lines += [*_curve(bulk, signature), *_edge_polynomials(bulk, signature)]
    return "\n".join(lines) + "\n"


def _residual(bulk: Bulk, names: tuple[str, ...], signature: str) -> list[str]:
    equations = [jax_code(e) for e in bulk.projected.bulk_equations]
    body = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = r", *_recurrences(bulk, " ".join(equations))]
    body += ["return ("]
    for equation, code in zip(bulk.projected.bulk_equations, equations, strict=True):
        body += [f"    # 0 = {text(equation)}", f"    {code},"]
    body += [")"]
    return [
        "",
        "",
        f"def equations(z, r, {signature}):",
        '    """Each is zero at the bulk responses r (in the order of RESPONSES) at z. They vanish as z grows."""',
        *indented(body),
        "",
        "",
        f"def residual(z, r, {signature}):",
        '    """The equations as one array."""',
        f"    return jnp.stack(equations(z, r, {signature}))",
    ]


def _curve(bulk: Bulk, signature: str) -> list[str]:
    resolvent = bulk.projected.resolvent
    poly = sp.Poly(bulk.curve, resolvent, Z)
    top_g, top_z = poly.degree(resolvent), poly.degree(Z)
    table = [[poly.coeff_monomial(resolvent**i * Z**j) for j in range(top_z + 1)] for i in range(top_g + 1)]
    rows = [_tuple([jax_code(c) for c in row]) for row in table]
    return [
        "",
        "",
        f"def curve({signature}):",
        '    """Table c with sum_ij c[i][j] G^i z^j = 0 on the curve; exact if the arguments are fractions."""',
        *indented([*_recurrences(bulk, " ".join(rows)), f"return {_tuple(rows)}"]),
    ]


def _edge_polynomials(bulk: Bulk, signature: str) -> list[str]:
    polynomials = [_tuple([jax_code(c) for c in sp.Poly(factor, Z).all_coeffs()]) for factor in bulk.edge_factors]
    return [
        "",
        "",
        f"def edge_polynomials({signature}):",
        '    """Polynomials in z, highest power first: every edge of the support is a real root of one of them."""',
        *indented([*_recurrences(bulk, " ".join(polynomials)), f"return {_tuple(polynomials)}"]),
    ]


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _recurrences(bulk: Bulk, mentioned: str) -> list[str]:
    lines = []
    for r in bulk.system.recurrences:
        if any(name in mentioned for name in r.names):
            clock = next(f.field.clock for f in bulk.system.training if f.field.clock is not None)
            lines += [f"steps = {clock.steps}", *recurrence_lines(r, str(clock))]
    return lines
