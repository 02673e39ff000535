"""ProjectedProbe -> BlockMatrix: collect the projected equations into A(z) q(z) = q0."""

from __future__ import annotations

import sympy as sp

from derive.records.probe import Block, BlockMatrix, ProjectedProbe


def assemble_blocks(projected: ProjectedProbe) -> BlockMatrix:
    """Return A(z): propagators on the diagonal of each training field, minus the couplings between unknowns.

    For differing sites the propagators have been inverted site by site and are part of the couplings.
    """
    unknowns, propagator, couplings = projected.unknowns, dict(projected.propagator), dict(projected.couplings)
    index = {probe: i for i, probe in enumerate(projected.probes)}
    blocks = {}
    for r, u in enumerate(unknowns):
        for c, v in enumerate(unknowns):
            same = (u.kind, u.field) == (v.kind, v.field)
            if u.probe in projected.differing:
                scalar = sp.S.One if r == c else sp.S.Zero
            else:
                scalar = propagator.get((index[u.probe], index[v.probe]), sp.S.Zero) if same else sp.S.Zero
            combination = couplings.get((r, c), ())
            if scalar != 0 or combination:
                blocks[r, c] = Block(scalar, combination)
    driven = {f.field for f in projected.system.spectral if f.derivative}
    right = tuple(sp.Symbol(f"source_{u.field}") if u.kind == "C" and u.probe in driven else None for u in unknowns)
    return BlockMatrix(projected, tuple(sorted(blocks.items(), key=lambda item: item[0])), right, projected.assumptions)
