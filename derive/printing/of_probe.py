"""Print the probed matrix: projected equations, A(z), its reduction to eigenproblems, and the bulk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import sympy as sp

from derive.algebra.nodes import Z, index_size
from derive.algebra.sites import around_averages
from derive.algebra.words import Combination, as_matrix
from derive.equations.layout import probe_tag
from derive.printing.statements import Section, Statement
from derive.records.probe import MAP, Aligned, BlockCycle, BlockMatrix, Bulk, Pencil, ProjectedProbe, Unknown
from derive.support.plain_words import counted

LARGEST_WHOLE = 6
"""Unknowns up to which A(z) is printed with its blocks in full; otherwise by their names."""


def probe_sections(record: ProjectedProbe) -> tuple[Section, ...]:
    """Return propagators, bulk responses, projected equations and sources."""
    propagators = tuple(
        Statement(sp.Symbol(f"L_{record.probes[i]}_{record.probes[j]}"), value) for (i, j), value in record.propagator
    )
    bulk = tuple(
        Statement(around_averages(sp.expand, e), sp.S.Zero, tag=probe_tag("B", k, record.system))
        for k, e in enumerate(record.bulk_equations)
    )
    lines = _projected_lines(record, range(len(record.unknowns)))
    projected = [replace(line, tag=probe_tag("A", row, record.system)) for row, line in enumerate(lines)]
    measured = tuple(Statement(number, number.average) for number in record.measured)
    return tuple(
        part
        for part in (
            Section(
                "numbers of the training level",
                measured,
                "Means at the last time multiply random matrices. They do not fluctuate, so the bulk takes them "
                "as parameters.",
            ),
            Section(
                "propagators of the spectral fields",
                propagators,
                "The probe's own equations are linear and do not change in spectral time, so a Laplace transform turns "
                "each into a number times the field.",
            ),
            Section(
                "responses of the bulk",
                bulk,
                "Differentiating by the noises of the probe gives equations for its mean responses that no training "
                "field enters: spikes are too few to change them. Their solution is the bulk.",
            ),
            Section(
                "projected on the training fields (Stein) and differentiated by their noises",
                tuple(projected),
                r"The probe's equation times a training field is averaged. Where the probe multiplies a noise $u$, "
                r"Stein's "
                r"lemma $\langle u f \rangle = \sum \langle u u' \rangle \langle \partial f / \partial u' \rangle$ "
                "replaces it by a covariance times a mean response; differentiating the probe's equation by the "
                "training noises gives the equations of these responses. The system "
                "of overlaps and responses is then closed.",
            ),
            Section(
                "contributions of a source along the spikes to the equations of the unknowns",
                _spike_sources(record),
                "With a source in the direction of a spike the unknowns are a projected resolvent, and its residue at "
                "an outlier is the overlap of the eigenvector with the spike.",
            ),
            *(_alignment(record, aligned) for aligned in record.alignments),
        )
        if part.statements
    )


def _spike_sources(record: ProjectedProbe) -> tuple[Statement, ...]:
    """Return the contributions of sources along the spikes to the equations of the unknowns."""
    return tuple(
        Statement(
            sp.Symbol(f"source_{side.side}_{record.unknowns[row].name}"),
            as_matrix(value, record.unknowns[row].size, index_size(side.fields[column])),
            remark=f"source along {side.fields[column]} in the equation of {side.probe}",
        )
        for side in record.directions
        for (row, column), value in side.drive
    )


Couplings = dict[Unknown, Combination]
"""Coefficients of other unknowns in the equation of one."""


def _projected_lines(record: ProjectedProbe, rows: Iterable[int]) -> list[Statement]:
    """Return the equations of some unknowns, restricted to couplings among them."""
    unknowns = tuple(record.unknowns[row] for row in rows)
    table: dict[Unknown, Couplings] = {unknown: {} for unknown in unknowns}
    for (row, column), value in record.couplings:
        if record.unknowns[row] in table and record.unknowns[column] in table:
            table[record.unknowns[row]][record.unknowns[column]] = value
    return [_projected_line(record, unknown, table[unknown], unknowns) for unknown in unknowns]


def _projected_line(
    record: ProjectedProbe, unknown: Unknown, couplings: Couplings, kept: tuple[Unknown, ...]
) -> Statement:
    """Return the equation of one unknown."""
    whole = [((i, j), value) for (i, j), value in record.propagator if record.probes[i] not in record.differing]
    whole += [((i, i), sp.S.One) for i, probe in enumerate(record.probes) if probe in record.differing]
    left = sp.Add(
        *(
            value * sp.Symbol(Unknown(unknown.kind, record.probes[j], unknown.field).name)
            for (i, j), value in whole
            if record.probes[i] == unknown.probe and Unknown(unknown.kind, record.probes[j], unknown.field) in kept
        )
    )
    terms = [
        as_matrix(value, unknown.size, other.size) * sp.MatrixSymbol(other.name, other.size, 1)
        for other, value in couplings.items()
    ]
    right = sp.MatAdd(*terms) if len(terms) > 1 else (terms[0] if terms else sp.S.Zero)
    return Statement(left, right, row=unknown.name)


def _alignment(record: ProjectedProbe, aligned: Aligned) -> Section:
    """Return the section of a declared direction: its additional unknowns, its source, and its overlap."""
    everything = (*record.unknowns, *aligned.later)
    seen: dict[int, Couplings] = {row: {} for row in range(len(aligned.later))}
    for (row, column), value in aligned.couplings:
        seen[row][everything[column]] = value
    kicked: dict[int, Couplings] = {row: {} for row in range(len(aligned.earlier))}
    for (row, column), value in aligned.sources:
        kicked[row][aligned.earlier[column]] = value
    lines = [_projected_line(record, u, kicked[row], aligned.earlier) for row, u in enumerate(aligned.earlier)]
    lines += [_projected_line(record, u, seen[row], everything) for row, u in enumerate(aligned.later)]
    field, targets = aligned.direction.field, (*record.unknowns, *aligned.earlier)
    lines += [
        Statement(
            sp.Symbol(f"source_{aligned.side}_{targets[row].name}"),
            as_matrix(value, targets[row].size, index_size(field)),
            remark=f"source along {field} in the equation of {aligned.probe}",
        )
        for row, value in aligned.drive
    ]
    lines += [
        Statement(
            sp.Symbol(f"source_{aligned.side}_{record.unknowns[row].name}"),
            as_matrix(value, record.unknowns[row].size, aligned.earlier[column].size)
            * sp.MatrixSymbol(aligned.earlier[column].name, aligned.earlier[column].size, 1),
            remark="and what it drives",
        )
        for (row, column), value in aligned.feeds
    ]
    over = f"over the mean square of {field}" + (" and over z" if aligned.side == "left" else "")
    cosine = f"the squared cosine is the residue of {aligned.unknown.name} at an outlier, {over}"
    return Section(
        f"alignment {aligned.name} of {aligned.side} vectors",
        (*lines, Statement(remark=cosine)),
        "The same for a declared direction. No equation of A(z) depends on the overlaps that its equation needs, and "
        "the responses that only its own source drives depend on no unknown of A(z). So A(z) keeps its zeros.",
    )


def blocks_sections(record: BlockMatrix) -> tuple[Section, ...]:
    """Return the unknowns, A(z) as a whole and by blocks, and the right-hand side."""
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
    block = record.matrix_block if len(unknowns) <= LARGEST_WHOLE else partial(_named_block, record)
    labels = record.labels
    whole = sp.BlockMatrix([[block(r, c) for c in count] for r in count])
    return (
        Section("unknowns", names, "Each is a vector over the training times of its field."),
        Section(
            "A(z) as a whole",
            (Statement(sp.Symbol("A"), whole, rows=labels, columns=labels),),
            r"At an isolated eigenvalue the unknowns have a pole, but the right-hand side stays finite: there "
            r"$\det A(z) = 0$.",
        ),
        Section("blocks (those not listed are zero)", entries),
        Section("right-hand side: overlap of the spike directions with the source", right),
    )


def _named_block(record: BlockMatrix, row: int, column: int) -> sp.MatrixExpr:
    """Return a block by its name only, or zero."""
    size = (record.projected.unknowns[row].size, record.projected.unknowns[column].size)
    zero = record.matrix_block(row, column).is_ZeroMatrix
    return sp.ZeroMatrix(*size) if zero else sp.MatrixSymbol(f"A_{row + 1}_{column + 1}", *size)


def pencil_sections(record: Pencil) -> tuple[Section, ...]:
    """Return the eigenproblems, and the part of A(z) without a reduction."""
    labels = record.blocks.labels
    sections = []
    for number, cycle in enumerate(record.cycles, start=1):
        members = (sp.Tuple(*(sp.Symbol(labels[i]) for i in group)) for group in cycle.groups)
        single = len(cycle.groups) == 1
        fed = "unknowns" if single else "unknowns, each group fed by the next, the last by the first"
        size = _words(record.size(cycle.groups[0]))
        lines = [Statement(sp.Function("cycle")(*members), remark=fed), *_couplings(record, cycle)]
        whose = "this matrix" if single else "the product of these matrices, in this order,"
        lines += [
            Statement(remark=f"{whose} is free of z, {size} by {size}; s is an eigenvalue of it at an outlier"),
            Statement(
                MAP,
                cycle.scalar_map,
                remark="scalar map of z",
                tag=probe_tag("S", number - 1, record.projected.system),
            ),
        ]
        if cycle.inverse is not None:
            lines.append(Statement(Z, cycle.inverse, remark="its inverse"))
        elif cycle.relation is None:
            lines.append(Statement(remark="no polynomial relates z to the map: it is inverted along the real axis"))
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
        sections.append(Section(f"eigenproblem {number}", tuple(lines), EIGENPROBLEM))
    if record.rest:
        why = "For these unknowns the outliers are not eigenvalues of a matrix free of z."
        sections.append(Section("nonlinear eigenproblem in z", tuple(_nonlinear_lines(record)), why))
    if record.idle:
        lines = [
            Statement(sp.Symbol(labels[row]), remark=f"{_fed(record, row)}; it lies on no cycle") for row in record.idle
        ]
        prose = (
            "each of these rows contributes to the determinant a power of its diagonal scalar, which has no zero "
            "outside the bulk: no outlier comes from them"
        )
        sections.append(Section("rows that do not contribute", (*lines, Statement(remark=prose))))
    if not sections:
        sections.append(Section("nothing to reduce", (Statement(remark="there are no spikes"),)))
    return tuple(sections)


EIGENPROBLEM = (
    "A(z) is a scalar function of z times the identity minus a matrix that does not depend on z, up to a cycle of such "
    "groups. So all outliers follow from eigenvalues of one matrix: each eigenvalue is a value of the scalar map, and "
    "the inverse of the map sends it to the outlier."
)


def _couplings(record: Pencil, cycle: BlockCycle) -> list[Statement]:
    """Return the matrices of an eigenproblem: the couplings from each group of a cycle to the next."""
    statements: list[Statement] = []
    unknowns = record.projected.unknowns
    several = len(cycle.groups) > 1
    for number, group in enumerate(cycle.groups, start=1):
        following = cycle.groups[number % len(cycle.groups)]
        if max(len(group), len(following)) > LARGEST_WHOLE:
            remark = "its blocks are those of A(z) with the opposite sign and without their scalars"
            return [Statement(remark=f"the coupling between the groups is a matrix of many blocks; {remark}")]
        rows = [
            [as_matrix(record.divided.block(r, c).combination, unknowns[r].size, unknowns[c].size) for c in following]
            for r in group
        ]
        name = sp.Symbol(f"K_{number}" if several else "K")
        whole = rows[0][0] if rows == [[rows[0][0]]] else sp.BlockMatrix(rows)
        fed, feeding = (tuple(unknowns[i].name for i in some) for some in (group, following))
        statements.append(Statement(name, whole, rows=fed, columns=feeding))
    return statements


def _nonlinear_lines(record: Pencil) -> list[Statement]:
    """Return the homogeneous equations of the nonlinear eigenproblem, the reason why they do not reduce, and their
    dimension.
    """
    rest, whole = record.rest, range(len(record.blocks.labels))
    lines = _projected_lines(record.projected, rest)
    solved = (
        f"a solution other than zero exists at an outlier: {len(rest)} unknowns, {_words(record.size(rest))} numbers"
    )
    if any(record.blocks.block(r, c).scalar != 0 for r in rest for c in rest if r != c):
        reason = "scalars that depend on z also occur off the diagonal, so these rows do not form a cycle of groups"
    else:
        reason = "groups of unknowns do not form a single cycle, or a row has averages over sites that no other row has"
    joint = ", and with them those of the eigenproblems above" if record.cycles else ""
    size = _words(record.size(whole))
    contour = f"its zeros{joint} are found by contour integrals of A(z) as a whole, {size} by {size}"
    return [*lines, Statement(remark=solved), Statement(remark=reason), Statement(remark=contour)]


def _fed(record: Pencil, row: int) -> str:
    columns = [c for (r, c), block in record.blocks.blocks if r == row and c != row]
    return f"fed by {counted(len(columns), 'unknown')}" if columns else "fed by none"


def _words(size: sp.Expr) -> str:
    return str(size).replace("*", " ")


CURVE = (
    "All responses but the resolvent are eliminated. The remaining curve has several branches. The physical one is "
    "continued from 1/z at infinity; -1/pi times its imaginary part above the real line is the density."
)
EDGES = "At an edge of the bulk two solutions of the curve meet, so the edges are among the roots of its discriminant."


def bulk_sections(record: Bulk) -> tuple[Section, ...]:
    """Return the curve, the resolvent in closed form, and the edges."""
    if record.curve is None:
        count = len(record.projected.bulk_equations)
        why = "too large to eliminate" if record.projected.polynomials is not None else "averages over sites remain"
        prose = (
            f"{why}: {record.projected.resolvent} is followed as one of {count} unknowns of the "
            f"{count} response equations of the probe, and edges are where their Jacobian is singular"
        )
        return (Section("curve", (Statement(remark=prose),)),)
    tag = probe_tag("G", 0, record.projected.system)
    lines = [Statement(record.curve, sp.S.Zero, remark="algebraic curve of the resolvent", tag=tag)]
    if record.resolvent is not None:
        lines.append(
            Statement(record.projected.resolvent, record.resolvent, remark="the branch that is 1/z at infinity")
        )
    edges = [Statement(factor, sp.S.Zero, remark="edges are among its real roots") for factor in record.edge_factors]
    edges += [Statement(sp.Symbol("z_edge"), value) for value in record.edges]
    return (Section("curve", tuple(lines), CURVE), Section("edges", tuple(edges), EDGES))
