"""The order parameters that probed matrices need from the training level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from derive.algebra.words import Combination, DiagonalFactor, Letter, SiteTable, Weighed
from derive.errors import DeclarationError
from derive.language.vectors import Mean
from derive.records.probe import Aligned, BlockMatrix, SampledSiteValues


@dataclass(frozen=True)
class Needs:
    """Order parameters in A(z) and in the bulk equations.

    `letters` are correlations and responses over training times. `means` are averages that multiply updates. `sites`
    are sectors whose diagonal entries have a sampled law, or are functions of traits. `tables` are averages conditional
    on these entries.
    """

    letters: tuple[Letter, ...] = ()
    means: tuple[Mean, ...] = ()
    sites: tuple[SampledSiteValues, ...] = ()
    tables: tuple[SiteTable, ...] = ()


NOTHING = Needs()


def needs_of(matrices: Iterable[BlockMatrix]) -> Needs:
    """Return the union of the order parameters that several probed matrices need."""
    blocks = tuple(matrices)
    letters = {order for matrix in blocks for letter in _letters(matrix) for order in letter.order_parameters}
    tables = {table for matrix in blocks for letter in _letters(matrix) for table in letter.tables}
    sites = tuple(dict.fromkeys(sites for matrix in blocks for sites in matrix.projected.sampled))
    names = [matrix.sector.name for matrix in sites]
    if len(names) > len(set(names)):
        raise DeclarationError(
            f"several matrices are probed with different sampled fields on the diagonals of {sites[0].sector}; probe "
            "them one at a time"
        )
    return Needs(
        tuple(sorted(letters, key=lambda x: x.name)),
        tuple(dict.fromkeys(mean for matrix in blocks for mean in _means(matrix))),
        sites,
        tuple(dict.fromkeys(table for matrix in blocks for table in sorted(tables, key=lambda table: table.key))),
    )


def _letters(blocks: BlockMatrix) -> list[Letter | DiagonalFactor | Weighed]:
    return [letter for combination in _combinations(blocks) for _, word in combination for letter in word]


def _means(blocks: BlockMatrix) -> list[Mean]:
    weights = [weight for letter in _letters(blocks) for weight in letter.weights]
    return [
        *(mean for weight in weights for mean in sorted(weight.atoms(Mean), key=sp.default_sort_key)),
        *(number.average for number in blocks.projected.measured),
        *(mean for spread in blocks.projected.spreads for row in spread.covariances for mean in row),
    ]


def _combinations(blocks: BlockMatrix) -> list[Combination]:
    sides, alignments = blocks.projected.directions, blocks.projected.alignments
    return [
        *(block.combination for _, block in blocks.blocks),
        *(combination for side in sides for _, combination in side.drive),
        *(((sp.S.One, (Letter.correlation(a, b),)),) for side in sides for a in side.fields for b in side.fields),
        *(combination for aligned in alignments for combination in aligned.combinations),
        *(((sp.S.One, (squares_of(aligned),)),) for aligned in alignments),
    ]


def squares_of(aligned: Aligned) -> Letter:
    """Return the correlation whose diagonal contains the mean squares of a direction."""
    return Letter.correlation(aligned.direction.field, aligned.direction.field)
