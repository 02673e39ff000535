"""Records of a probed matrix: its projection on training fields, A(z), the reduction to eigenproblems, and the bulk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from derive.algebra.nodes import Z, index_size
from derive.algebra.sites import as_polynomials
from derive.algebra.words import Combination, as_matrix
from derive.language.symbols import EngineSymbol, MeasuredParameter, Parameter, Sector
from derive.language.traits import Trait
from derive.language.vectors import Field, FieldAt, Mean, values as values_in
from derive.records.base import Record
from derive.records.system import System


@dataclass(frozen=True)
class BulkResponse:
    """The symbol for the response of a spectral field to a spectral noise, or to the source if `noise` is None."""

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
    """The spikes that span one side: "right" for the eigenvector psi0, "left" for K psi0 if the matrix is K^T K.

    A source along the spike `fields[column]` in the equation of `probe` adds drive[(row, column)] to the equation of
    unknown `row`. The resulting overlaps of the spikes with `probe` are the projected resolvent.
    """

    side: str
    probe: Field
    fields: tuple[Field, ...]
    drive: tuple[tuple[tuple[int, int], Combination], ...]


@dataclass(frozen=True)
class Aligned:
    """A declared direction on one side of the probed matrix: its overlap with `probe` joins the unknowns of A(z).

    `later` are the additional unknowns in its equation, including its own; no equation of A(z) depends on them.
    couplings[(row, column)] multiplies an unknown of A(z), or one of `later`, which follow them, in the equation of
    later[row].

    `earlier` are responses that only a source along the direction drives; they depend on no unknown of A(z).
    sources[(row, column)] multiplies earlier[column] in the equation of earlier[row], and feeds[(row, column)] does so
    in the equation of an unknown of A(z).

    Neither adds a zero to det A(z). `drive` is the contribution of the source to the equations of the unknowns of A(z),
    followed by those of `earlier`.
    """

    name: str
    side: str
    probe: Field
    direction: FieldAt
    later: tuple[Unknown, ...]
    couplings: tuple[tuple[tuple[int, int], Combination], ...]
    earlier: tuple[Unknown, ...]
    sources: tuple[tuple[tuple[int, int], Combination], ...]
    feeds: tuple[tuple[tuple[int, int], Combination], ...]
    drive: tuple[tuple[int, Combination], ...]

    @property
    def unknown(self) -> Unknown:
        """The overlap of the probe with the direction."""
        return Unknown("C", self.probe, self.direction.field)

    @property
    def combinations(self) -> tuple[Combination, ...]:
        return tuple(combination for _, combination in (*self.couplings, *self.sources, *self.feeds, *self.drive))


@dataclass(frozen=True)
class DiagonalSpread:
    """Training fields on diagonals as linear combinations of independent standard normals.

    values[a] = sum_b lower[a][b] normals[b], b <= a, where lower is the Cholesky factor of the covariance of the
    values. `inverse` is the inverse of lower, zero in directions without variance. Both are computed by the training
    level.
    """

    values: tuple[FieldAt, ...]
    normals: tuple[Field, ...]
    lower: tuple[tuple[Parameter, ...], ...]
    inverse: tuple[tuple[Parameter, ...], ...]

    @property
    def covariances(self) -> tuple[tuple[Mean, ...], ...]:
        """The covariances whose Cholesky factor is lower, as rows of the lower triangle."""
        return tuple(tuple(Mean(a * b) for b in self.values[: row + 1]) for row, a in enumerate(self.values))


@dataclass(frozen=True)
class SampledSiteValues:
    """The diagonal entries of a sector whose law is sampled.

    `entries` are functions of training fields and traits of the site. `reach` contains bounds on them. `law` contains
    joint values of all entries with their weights. Both are computed by the training level.
    """

    sector: Sector
    entries: tuple[Field, ...]
    reach: Parameter
    law: Parameter

    @property
    def key(self) -> tuple[str, str]:
        """The key of the law among the order parameters."""
        return ("S", self.sector.name)

    @property
    def of_traits(self) -> bool:
        """Whether the entries depend on traits alone, so that only fields conditional on the entries are sampled."""
        return all(isinstance(value.field, Trait) for value in self.values)

    @property
    def bounded(self) -> bool:
        """Whether the traits bound the entries."""
        fields = [value.field for value in self.values]
        return self.of_traits and all(f.discrete or f.low.is_finite and f.high.is_finite for f in fields)

    @property
    def known(self) -> bool:
        """Whether the traits take few values.

        Each value then defines a group of sites, and fields that are Gaussian within a group need no samples.
        """
        return self.of_traits and all(value.field.discrete for value in self.values)

    @property
    def values(self) -> tuple[FieldAt, ...]:
        """The training fields and traits that the entries depend on."""
        values = {v for entry in self.entries for v in values_in(entry.function)}
        return tuple(sorted(values, key=sp.default_sort_key))


@dataclass(frozen=True, repr=False)
class ProjectedProbe(Record):
    """The projected equations of a probe: sum_l L[i, l] psi_l = noise + spikes, after the Laplace transform.

    `propagator` is L. couplings[(row, column)] is the matrix that multiplies unknown `column` in the equation of
    unknown `row`. `directions` are sources along the spikes; their residues at an outlier are the overlaps of its
    vectors with the spikes. `alignments` are the same for declared directions.

    `differing` are the spectral fields of sites that differ by traits. Their equations are solved site by site before
    averaging, so their couplings and the bulk equations contain averages of the sites' responses. `spreads` are the
    Gaussian variables behind training fields on diagonals. `sampled` are the diagonal entries with a sampled law.

    For traces with other matrices: `images` contains the symbol of tr R A by the name of A. `sources` are the
    derivatives of the bulk equations with respect to epsilon in M + epsilon A, at epsilon = 0. `slopes` are the
    derivatives with respect to each response that vanishes at epsilon = 0.
    """

    system: System
    probes: tuple[Field, ...]
    propagator: tuple[tuple[tuple[int, int], sp.Expr], ...]
    responses: tuple[BulkResponse, ...]
    bulk_equations: tuple[sp.Expr, ...]
    resolvent: sp.Symbol
    unknowns: tuple[Unknown, ...]
    couplings: tuple[tuple[tuple[int, int], Combination], ...]
    directions: tuple[Directions, ...]
    alignments: tuple[Aligned, ...]
    assumptions: tuple[str, ...]
    differing: tuple[Field, ...] = ()
    images: tuple[tuple[str, sp.Symbol], ...] = ()
    sources: tuple[tuple[sp.Expr, ...], ...] = ()
    slopes: tuple[tuple[sp.Symbol, tuple[sp.Expr, ...]], ...] = ()
    spreads: tuple[DiagonalSpread, ...] = ()
    sampled: tuple[SampledSiteValues, ...] = ()
    title = "Probe, projected and Laplace transformed"

    @property
    def projected(self) -> ProjectedProbe:
        """The projected probe itself; records that refer to a probe have the same attribute."""
        return self

    @cached_property
    def bulk_symbols(self) -> tuple[sp.Symbol, ...]:
        """The unknowns of the bulk equations."""
        inputs = (Parameter, Field)
        unknowns = {s for e in self.bulk_equations for s in e.free_symbols if s != Z and not isinstance(s, inputs)}
        return tuple(sorted(unknowns, key=lambda s: s.name))

    @cached_property
    def measured(self) -> tuple[MeasuredParameter, ...]:
        """The quantities of the training level that the equations take as parameters."""
        scales = (scale for _, combination in self.couplings for scale, _ in combination)
        entries = (entry for _, entry in self.propagator)
        parameters = {
            s for e in (*self.bulk_equations, *entries, *scales) for s in sp.sympify(e).atoms(MeasuredParameter)
        }
        return tuple(sorted(parameters, key=lambda s: s.name))

    @cached_property
    def polynomials(self) -> tuple[sp.Expr, ...] | None:
        """The bulk equations as polynomials; None if averages over sites do not have this form."""
        return as_polynomials(self.bulk_equations)

    @property
    def algebraic(self) -> tuple[sp.Expr, ...]:
        """The polynomials, for callers that know that they exist."""
        assert self.polynomials is not None
        return self.polynomials


@dataclass(frozen=True)
class Block:
    """One block of A(z): scalar(z) * identity - combination."""

    scalar: sp.Expr
    combination: Combination


@dataclass(frozen=True, repr=False)
class BlockMatrix(Record):
    """A(z) q(z) = q0 with labelled rows and columns."""

    projected: ProjectedProbe
    blocks: tuple[tuple[tuple[int, int], Block], ...]
    right_hand_side: tuple[sp.Symbol | None, ...]
    assumptions: tuple[str, ...]
    title = "A(z)"

    @property
    def system(self) -> System:
        return self.projected.system

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(u.name for u in self.projected.unknowns)

    def block(self, row: int, column: int) -> Block:
        return self._table.get((row, column), Block(sp.S.Zero, ()))

    @cached_property
    def _table(self) -> dict[tuple[int, int], Block]:
        return dict(self.blocks)

    def matrix_block(self, row: int, column: int) -> sp.MatrixExpr:
        """Return the block as one SymPy matrix expression."""
        unknowns = self.projected.unknowns
        block = self.block(row, column)
        minus = tuple((-scale, word) for scale, word in block.combination)
        identity = ((block.scalar, ()),) if block.scalar != 0 else ()
        return as_matrix((*identity, *minus), unknowns[row].size, unknowns[column].size)


@dataclass(frozen=True)
class BlockCycle:
    """Groups of unknowns that form a cycle, with the determinant det(product of scalars * I - product of couplings).

    The equations of groups[i] depend on groups[i + 1]; scalars[i] multiplies the identity in the rows of groups[i].
    `inverse` is z as a rational function of the map's value s, if there is one. `relation` is the polynomial relation
    between z and s; None if it exceeds the size bound, or if averages over sites admit none. `critical` are the values
    of s where an outlier leaves the bulk.
    """

    groups: tuple[tuple[int, ...], ...]
    scalars: tuple[sp.Expr, ...]
    relation: sp.Expr | None
    inverse: sp.Expr | None
    critical: tuple[sp.Expr, ...]
    eigenvalue: sp.Expr | None

    @property
    def scalar_map(self) -> sp.Expr:
        """The map s(z), with averages over sites if there are any."""
        return sp.Mul(*self.scalars)

    @property
    def known(self) -> bool:
        """Whether z and s satisfy a polynomial relation."""
        return self.relation is not None


MAP = EngineSymbol("s_map", real=True)
"""The value of the scalar map: an eigenvalue of the pencil's constant matrix."""


@dataclass(frozen=True, repr=False)
class Pencil(Record):
    """A(z) reduced: each cycle is one eigenproblem that does not depend on z; `rest` has no such reduction.

    `idle` rows belong to neither: they lie on no cycle and contribute no zeros to the determinant. `divided` is A(z)
    with the rows of differing sites divided by their averages; cycles refer to it.
    """

    blocks: BlockMatrix
    cycles: tuple[BlockCycle, ...]
    rest: tuple[int, ...]
    assumptions: tuple[str, ...]
    divided: BlockMatrix
    title = "Reduction to an eigenproblem"

    @property
    def projected(self) -> ProjectedProbe:
        return self.blocks.projected

    @property
    def system(self) -> System:
        return self.blocks.system

    @property
    def idle(self) -> tuple[int, ...]:
        used = {*self.rest, *(row for cycle in self.cycles for group in cycle.groups for row in group)}
        return tuple(row for row in range(len(self.blocks.labels)) if row not in used)

    def size(self, rows: Iterable[int]) -> sp.Expr:
        """Return the total dimension of the unknowns of some rows."""
        return sp.Add(*(self.projected.unknowns[row].size for row in rows))


@dataclass(frozen=True, repr=False)
class Bulk(Record):
    """The algebraic curve of the bulk, its edges and closed forms.

    `curve` is None if the elimination exceeds its size bound. The response equations of the probe then define the bulk,
    and edges are where their Jacobian is singular.
    """

    projected: ProjectedProbe
    curve: sp.Expr | None
    edge_factors: tuple[sp.Expr, ...]
    edges: tuple[sp.Expr, ...]
    resolvent: sp.Expr | None
    assumptions: tuple[str, ...]
    title = "Bulk"

    @property
    def system(self) -> System:
        return self.projected.system
