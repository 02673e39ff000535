"""The probe, projected on the training fields; A(z); its reduction; the bulk."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.algebra.nodes import Z, index_size
from derive.algebra.words import Combination, as_matrix
from derive.language.symbols import EngineSymbol, Parameter
from derive.language.vectors import Field
from derive.records.base import Record, Section, Statement
from derive.records.saddle import TimeOrder
from derive.records.system import System


@dataclass(frozen=True)
class BulkResponse:
    """The symbol for the response of a spectral field to a spectral noise (noise None: to the source)."""

    symbol: sp.Symbol
    field: Field
    noise: Field | None


@dataclass(frozen=True)
class Unknown:
    """C[probe, field] (kind "C") or R[probe, noise of field] (kind "R"), a vector over training times."""

    kind: str
    probe: Field
    field: Field

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.probe}_{self.field}"

    @property
    def size(self) -> sp.Expr:
        return index_size(self.field)


@dataclass(frozen=True)
class Directions:
    """The spikes that span one side: "right" for the eigenvector psi0, "left" for K psi0 where the matrix is K^T K.

    With a source along the spike `fields[column]` in the equation of `probe`, the equation of unknown `row` gains
    drive[(row, column)]; what the spikes then see of `probe` is the projected resolvent.
    """

    side: str
    probe: Field
    fields: tuple[Field, ...]
    drive: tuple[tuple[tuple[int, int], Combination], ...]


@dataclass(frozen=True)
class ProjectedProbe(Record):
    """propagator: sum_l L[i, l] psi_l = noise + spikes, after the Laplace transform.

    couplings[(row, column)]: the matrix that multiplies unknown `column` in the equation of unknown `row`.
    directions: sources along the spikes, whose residues at an outlier are the overlaps of its vectors with them.
    """

    time_order: TimeOrder
    probes: tuple[Field, ...]
    propagator: tuple[tuple[tuple[int, int], sp.Expr], ...]
    responses: tuple[BulkResponse, ...]
    bulk_equations: tuple[sp.Expr, ...]
    resolvent: sp.Symbol
    unknowns: tuple[Unknown, ...]
    couplings: tuple[tuple[tuple[int, int], Combination], ...]
    directions: tuple[Directions, ...]
    assumptions: tuple[str, ...]
    title = "Probe, projected and Laplace transformed"

    @property
    def system(self) -> System:
        return self.time_order.system

    @property
    def bulk_symbols(self) -> tuple[sp.Symbol, ...]:
        """The unknowns of the bulk equations."""
        found = {s for e in self.bulk_equations for s in e.free_symbols if s != Z and not isinstance(s, Parameter)}
        return tuple(sorted(found, key=lambda s: s.name))

    def sections(self) -> tuple[Section, ...]:
        propagators = tuple(
            Statement(sp.Symbol(f"L_{self.probes[i]}_{self.probes[j]}"), value) for (i, j), value in self.propagator
        )
        bulk = tuple(Statement(sp.expand(e), sp.S.Zero) for e in self.bulk_equations)
        table = dict(self.couplings)
        projected = []
        for row, unknown in enumerate(self.unknowns):
            left = sp.Add(
                *(
                    value * sp.Symbol(_at_probe(unknown, self.probes[j]))
                    for (i, j), value in self.propagator
                    if self.probes[i] == unknown.probe
                )
            )
            terms = [
                as_matrix(table[row, c], unknown.size, other.size) * sp.MatrixSymbol(other.name, other.size, 1)
                for c, other in enumerate(self.unknowns)
                if (row, c) in table
            ]
            right = sp.MatAdd(*terms) if len(terms) > 1 else (terms[0] if terms else sp.S.Zero)
            projected.append(Statement(left, right))
        sources = tuple(
            Statement(
                sp.Symbol(f"source_{side.side}_{self.unknowns[row].name}"),
                as_matrix(value, self.unknowns[row].size, index_size(side.fields[column])),
                remark=f"source along {side.fields[column]} in the equation of {side.probe}",
            )
            for side in self.directions
            for (row, column), value in side.drive
        )
        return tuple(
            part
            for part in (
                Section("propagators of the spectral fields", propagators),
                Section("responses of the bulk", bulk),
                Section(
                    "projected on the training fields (Stein) and differentiated by their noises", tuple(projected)
                ),
                Section("what a source along the spikes adds to the equations of the unknowns", sources),
            )
            if part.statements
        )


def _at_probe(unknown: Unknown, probe: Field) -> str:
    return f"{unknown.kind}_{probe}_{unknown.field}"


@dataclass(frozen=True)
class Block:
    """One block of A(z): scalar(z) * identity - combination."""

    scalar: sp.Expr
    combination: Combination


@dataclass(frozen=True)
class BlockMatrix(Record):
    """A(z) q(z) = q0 with labelled rows and columns."""

    projected: ProjectedProbe
    blocks: tuple[tuple[tuple[int, int], Block], ...]
    right_hand_side: tuple[sp.Symbol | None, ...]
    assumptions: tuple[str, ...]
    title = "A(z)"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(u.name for u in self.projected.unknowns)

    def block(self, row: int, column: int) -> Block:
        return dict(self.blocks).get((row, column), Block(sp.S.Zero, ()))

    def matrix_block(self, row: int, column: int) -> sp.MatrixExpr:
        """The block as one SymPy matrix expression."""
        unknowns = self.projected.unknowns
        block = self.block(row, column)
        minus = tuple((-scale, word) for scale, word in block.combination)
        identity = ((block.scalar, ()),) if block.scalar != 0 else ()
        return as_matrix((*identity, *minus), unknowns[row].size, unknowns[column].size)

    def sections(self) -> tuple[Section, ...]:
        unknowns = self.projected.unknowns
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
            Statement(sp.Symbol(f"A_{r + 1}_{c + 1}"), self.matrix_block(r, c))
            for r in range(len(unknowns))
            for c in range(len(unknowns))
            if (r, c) in dict(self.blocks)
        )
        right = tuple(
            Statement(sp.Symbol(f"q0_{i + 1}"), value if value is not None else sp.S.Zero)
            for i, value in enumerate(self.right_hand_side)
        )
        count = range(len(unknowns))
        whole = (Statement(sp.Symbol("A"), sp.BlockMatrix([[self.matrix_block(r, c) for c in count] for r in count])),)
        return (
            Section("unknowns", names),
            Section("A(z) as a whole", whole if len(unknowns) <= 6 else ()),
            Section("blocks (those not listed are zero)", entries),
            Section("right-hand side: overlap of the spike directions with the source", right),
        )


@dataclass(frozen=True)
class Cycle:
    """Groups of unknowns that feed each other in a ring: det = det(product of scalars * I - product of couplings).

    groups[i] feeds on groups[i + 1]; scalars[i] multiplies the identity in the rows of groups[i].
    `inverse` gives z as a rational function of the map's value s, if there is one; `relation` is the polynomial
    relation between z and s in any case; `critical` are the values of s where an outlier leaves the bulk.
    """

    groups: tuple[tuple[int, ...], ...]
    scalars: tuple[sp.Expr, ...]
    relation: sp.Expr
    inverse: sp.Expr | None
    critical: tuple[sp.Expr, ...]
    eigenvalue: sp.Expr | None

    @property
    def scalar_map(self) -> sp.Expr:
        return sp.Mul(*self.scalars)


MAP = EngineSymbol("s_map", real=True)
"""The value of the scalar map: an eigenvalue of the pencil's constant matrix."""


@dataclass(frozen=True)
class Pencil(Record):
    """A(z) reduced: each cycle is one eigenproblem that does not depend on z; `rest` has no such reduction."""

    blocks: BlockMatrix
    cycles: tuple[Cycle, ...]
    rest: tuple[int, ...]
    assumptions: tuple[str, ...]
    title = "Reduction to an eigenproblem"

    def sections(self) -> tuple[Section, ...]:
        labels = self.blocks.labels
        found = []
        for number, cycle in enumerate(self.cycles, start=1):
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
                    lines.append(
                        Statement(sp.Symbol("z_outlier"), sp.simplify(cycle.inverse.subs(MAP, cycle.eigenvalue)))
                    )
            found.append(Section(f"eigenproblem {number}", tuple(lines)))
        if self.rest:
            names = sp.Tuple(*(sp.Symbol(labels[i]) for i in self.rest))
            found.append(Section("no reduction", (Statement(names, remark="solved as a nonlinear eigenproblem in z"),)))
        if not found:
            found.append(Section("nothing to reduce", (Statement(remark="there are no spikes"),)))
        return tuple(found)


@dataclass(frozen=True)
class Bulk(Record):
    """The bulk's algebraic curve and what follows from it. Everything downstream starts here.

    `curve` is None where the responses could not be eliminated within the work bound: then the response equations of
    the probe are all there is, and edges are where their Jacobian is singular.
    """

    pencil: Pencil
    curve: sp.Expr | None
    edge_factors: tuple[sp.Expr, ...]
    edges: tuple[sp.Expr, ...]
    resolvent: sp.Expr | None
    assumptions: tuple[str, ...]
    title = "Bulk"

    @property
    def blocks(self) -> BlockMatrix:
        return self.pencil.blocks

    @property
    def projected(self) -> ProjectedProbe:
        return self.pencil.blocks.projected

    @property
    def system(self) -> System:
        return self.projected.system

    def sections(self) -> tuple[Section, ...]:
        if self.curve is None:
            count = len(self.projected.bulk_equations)
            told = (
                f"too large to eliminate: {self.projected.resolvent} is followed as one of {count} unknowns of the "
                f"{count} response equations of the probe, and edges are where their Jacobian is singular"
            )
            return (Section("curve", (Statement(remark=told),)),)
        lines = [Statement(self.curve, sp.S.Zero, remark="algebraic curve of the resolvent")]
        if self.resolvent is not None:
            lines.append(
                Statement(self.projected.resolvent, self.resolvent, remark="the branch that is 1/z at infinity")
            )
        edges = [Statement(factor, sp.S.Zero, remark="edges are among its real roots") for factor in self.edge_factors]
        edges += [Statement(sp.Symbol("z_edge"), value) for value in self.edges]
        return (Section("curve", tuple(lines)), Section("edges", tuple(edges)))
