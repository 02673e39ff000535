"""ProjectedProbe -> BlockMatrix: collect the projected equations into A(z) q(z) = q0."""

from __future__ import annotations

import sympy as sp

from derive.algebra.words import Letter
from derive.errors import DeclarationError
from derive.records.probe import Block, BlockMatrix, ProjectedProbe


def assemble_blocks(projected: ProjectedProbe) -> BlockMatrix:
    """Propagators on the diagonal of each training field, minus the couplings between unknowns."""
    unknowns, propagator, couplings = projected.unknowns, dict(projected.propagator), dict(projected.couplings)
    index = {probe: i for i, probe in enumerate(projected.probes)}
    blocks = {}
    for r, u in enumerate(unknowns):
        for c, v in enumerate(unknowns):
            same = (u.kind, u.field) == (v.kind, v.field)
            scalar = propagator.get((index[u.probe], index[v.probe]), sp.S.Zero) if same else sp.S.Zero
            combination = couplings.get((r, c), ())
            if scalar != 0 or combination:
                blocks[r, c] = Block(scalar, combination)
    _check_names(projected)
    driven = {f.field for f in projected.system.spectral if f.derivative}
    right = tuple(sp.Symbol(f"source_{u.field}") if u.kind == "C" and u.probe in driven else None for u in unknowns)
    return BlockMatrix(projected, tuple(sorted(blocks.items(), key=lambda item: item[0])), right, projected.assumptions)


def _check_names(projected: ProjectedProbe) -> None:
    """Generated code knows matrices by name, so two of them must not share one."""
    letters = {
        letter
        for _, combination in projected.couplings
        for _, word in combination
        for letter in word
        if isinstance(letter, Letter)
    }
    owners: dict[str, tuple] = {}
    for letter in sorted(letters, key=lambda x: (x.name, x.a.name)):
        other = owners.setdefault(letter.name, (letter.a, letter.b))
        if other != (letter.a, letter.b):
            raise DeclarationError(
                f"the fields {letter.a}, {letter.b} and {other[0]}, {other[1]} both give the name "
                f"{letter.name}; rename one of them without underscores"
            )
