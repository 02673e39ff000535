"""The probed matrix as mathematics: projected equations, A(z), its reduction to eigenproblems, the bulk."""

from __future__ import annotations

import sympy as sp

from derive.algebra.nodes import Z, index_size
from derive.algebra.words import as_matrix
from derive.language.vectors import Field
from derive.printing.statements import Section, Statement
from derive.records.probe import MAP, BlockMatrix, Bulk, Pencil, ProjectedProbe, Unknown


def probe_sections(record: ProjectedProbe) -> tuple[Section, ...]:
    """Propagators, bulk responses, projected equations and sources."""
    propagators = tuple(
        Statement(sp.Symbol(f"L_{record.probes[i]}_{record.probes[j]}"), value) for (i, j), value in record.propagator
    )
    bulk = tuple(Statement(sp.expand(e), sp.S.Zero) for e in record.bulk_equations)
    table = dict(record.couplings)
    projected = []
    for row, unknown in enumerate(record.unknowns):
        left = sp.Add(
            *(
                value * sp.Symbol(_at_probe(unknown, record.probes[j]))
                for (i, j), value in record.propagator
                if record.probes[i] == unknown.probe
            )
        )
        terms = [
            as_matrix(table[row, c], unknown.size, other.size) * sp.MatrixSymbol(other.name, other.size, 1)
            for c, other in enumerate(record.unknowns)
            if (row, c) in table
        ]
        right = sp.MatAdd(*terms) if len(terms) > 1 else (terms[0] if terms else sp.S.Zero)
        projected.append(Statement(left, right))
    sources = tuple(
        Statement(
            sp.Symbol(f"source_{side.side}_{record.unknowns[row].name}"),
            as_matrix(value, record.unknowns[row].size, index_size(side.fields[column])),
            remark=f"source along {side.fields[column]} in the equation of {side.probe}",
        )
        for side in record.directions
        for (row, column), value in side.drive
    )
    return tuple(
        part
        for part in (
            Section("propagators of the spectral fields", propagators),
            Section("responses of the bulk", bulk),
            Section("projected on the training fields (Stein) and differentiated by their noises", tuple(projected)),
            Section("what a source along the spikes adds to the equations of the unknowns", sources),
        )
        if part.statements
    )


def _at_probe(unknown: Unknown, probe: Field) -> str:
    return f"{unknown.kind}_{probe}_{unknown.field}"


def blocks_sections(record: BlockMatrix) -> tuple[Section, ...]:
    """The unknowns, A(z) whole and block by block, the right-hand side."""
    unknowns = record.projected.unknowns
    if not unknowns:
        return (
            Section(
                "A(z)", (Statement(remark="there are no spikes: A(z) is empty and the spectrum is the bulk alone"),)
            ),
        )
    names = tuple(
        Statement(sp.Symbol(u.name), remark=f"unknown {i + 1}, length {str(u.size).replace('*', ' ')}")
        for i, u in enumerate(unknowns)
    )
    entries = tuple(
        Statement(sp.Symbol(f"A_{r + 1}_{c + 1}"), record.matrix_block(r, c))
        for r in range(len(unknowns))
        for c in range(len(unknowns))
        if (r, c) in dict(record.blocks)
    )
    right = tuple(
        Statement(sp.Symbol(f"q0_{i + 1}"), value if value is not None else sp.S.Zero)
        for i, value in enumerate(record.right_hand_side)
    )
    count = range(len(unknowns))
    whole = (Statement(sp.Symbol("A"), sp.BlockMatrix([[record.matrix_block(r, c) for c in count] for r in count])),)
    return (
        Section("unknowns", names),
        Section("A(z) as a whole", whole if len(unknowns) <= 6 else ()),
        Section("blocks (those not listed are zero)", entries),
        Section("right-hand side: overlap of the spike directions with the source", right),
    )


def pencil_sections(record: Pencil) -> tuple[Section, ...]:
    """The eigenproblems, and what is left."""
    labels = record.blocks.labels
    found = []
    for number, cycle in enumerate(record.cycles, start=1):
        ring = (sp.Tuple(*(sp.Symbol(labels[i]) for i in group)) for group in cycle.groups)
        fed = "unknowns, each group fed by the next, the last by the first"
        lines = [
            Statement(sp.Function("ring")(*ring), remark=fed),
            Statement(MAP, cycle.scalar_map, remark="scalar map of z"),
        ]
        if cycle.inverse is not None:
            lines.append(Statement(Z, cycle.inverse, remark="its inverse"))
        else:
            lines.append(Statement(cycle.relation, sp.S.Zero, remark="relation between z and the map"))
        lines += [
            Statement(sp.Symbol("s_critical"), value, remark="here an outlier meets the bulk")
            for value in cycle.critical
        ]
        if cycle.eigenvalue is not None:
            lines.append(Statement(sp.Symbol("eigenvalue"), cycle.eigenvalue))
            if cycle.inverse is not None:
                lines.append(Statement(sp.Symbol("z_outlier"), sp.simplify(cycle.inverse.subs(MAP, cycle.eigenvalue))))
        found.append(Section(f"eigenproblem {number}", tuple(lines)))
    if record.rest:
        names = sp.Tuple(*(sp.Symbol(labels[i]) for i in record.rest))
        found.append(Section("no reduction", (Statement(names, remark="solved as a nonlinear eigenproblem in z"),)))
    if not found:
        found.append(Section("nothing to reduce", (Statement(remark="there are no spikes"),)))
    return tuple(found)


def bulk_sections(record: Bulk) -> tuple[Section, ...]:
    """The curve, the resolvent in closed form, the edges."""
    if record.curve is None:
        count = len(record.projected.bulk_equations)
        told = (
            f"too large to eliminate: {record.projected.resolvent} is followed as one of {count} unknowns of the "
            f"{count} response equations of the probe, and edges are where their Jacobian is singular"
        )
        return (Section("curve", (Statement(remark=told),)),)
    lines = [Statement(record.curve, sp.S.Zero, remark="algebraic curve of the resolvent")]
    if record.resolvent is not None:
        lines.append(
            Statement(record.projected.resolvent, record.resolvent, remark="the branch that is 1/z at infinity")
        )
    edges = [Statement(factor, sp.S.Zero, remark="edges are among its real roots") for factor in record.edge_factors]
    edges += [Statement(sp.Symbol("z_edge"), value) for value in record.edges]
    return (Section("curve", tuple(lines)), Section("edges", tuple(edges)))
