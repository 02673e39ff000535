"""Claims about A(z), block by block."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.sites import without_averages
from derive.cells.verdicts import PROVED, REFUTED, ComparisonOutcome, weakest
from derive.claims.context import ClaimContext
from derive.claims.formulas import Carrier, WordSum
from derive.claims.reading import Claim
from derive.errors import ClaimError
from derive.records.probe import BlockMatrix


def _label(context: ClaimContext, claim: Claim, label: str) -> int:
    labels, label = context.blocks.labels, context.label(label)
    if label not in labels:
        raise ClaimError(
            f"{context.place(claim)}: A(z) has no unknown {label}; its labels are "
            f"{context.text.names(labels) or 'none'}"
        )
    return labels.index(label)


def decide_block(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a claim about one block of A(z)."""
    row, column = _label(context, claim, claim.get("row")), _label(context, claim, claim.get("column"))
    value = context.spectral_reader(claim).matrix(claim.get("value"))
    return context.same_words(value, derived_block(context.blocks, row, column), "block")


def decide_matrix(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a claim about all blocks of A(z)."""
    blocks, rows = context.blocks, claim.get("value")
    labels = tuple(map(context.label, claim.get("labels")))
    order = [_label(context, claim, label) for label in labels]
    if len(rows) != len(labels) or len(set(labels)) != len(labels):
        raise ClaimError(
            f"{context.place(claim)}: {len(labels)} labels for {len(rows)} rows; give one label to each row"
        )
    missing = [label for label in blocks.labels if label not in labels]
    if missing:
        return (
            REFUTED,
            f"the derived A(z) has {len(blocks.labels)} unknowns; the claim leaves out {context.text.names(missing)}",
        )
    total = sp.Add(*(u.size for u in blocks.projected.unknowns))
    rows_of_all = ComparisonOutcome(PROVED)
    if claim.get("size") is not None:
        size = context.reader(claim).scalar(claim.get("size"))
        rows_of_all = context.comparator.same(size, total)
        if rows_of_all.status == REFUTED:
            return REFUTED, f"the derived A(z) has {total} rows, the claim {size}; {rows_of_all.evidence}"
    names = list(map(context.text.order_parameter, labels))
    reader = context.spectral_reader(claim)
    left = [reader.scalar(text) for text in claim.get("rows_times", ("1",) * len(order))]
    right = [reader.scalar(text) for text in claim.get("columns_times", ("1",) * len(order))]
    if len(left) != len(order) or len(right) != len(order):
        raise ClaimError(f"{context.place(claim)}: rows_times and columns_times need one scalar for each label")
    for scalar in (*left, *right):
        if not context.comparator.differs_from_zero(scalar):
            raise ClaimError(
                f"{context.place(claim)}: {scalar} in rows_times or columns_times is not known to differ from 0 on the "
                "physical branch, and A(z) multiplied by 0 says nothing"
            )
    statuses, counterevidence = [rows_of_all.status], rows_of_all.evidence
    for i, row in enumerate(order):
        for j, column in enumerate(order):
            derived = left[i] * right[j] * derived_block(blocks, row, column)
            place, unit = f"row {names[i]}, column {names[j]}", context.text.entry(labels[i], labels[j])
            status, detail = context.same_words(reader.matrix(rows[i][j]), derived, "block", unit)
            if status == REFUTED:
                return REFUTED, f"{place}: {detail}"
            statuses.append(status)
            if status != PROVED:
                counterevidence = f"{place}: {detail}"
    scope = f"all {len(order)} x {len(order)} blocks, zeros included; A(z) is {total} x {total}"
    return weakest(statuses), f"{scope}; {counterevidence}" if counterevidence else scope


def decide_projected(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide one projected equation: the difference of its sides, with unknowns by their labels and `source_a` = <j a>.

    In spectral time, `dtau` is the derivative and a bulk response a convolution; after the Laplace transform they
    become z and a factor.
    """
    blocks, row = context.blocks, _label(context, claim, claim.get("unknown"))
    sources = {u.name: str(right) for u, right in zip(blocks.projected.unknowns, blocks.right_hand_side, strict=True)}
    reader = context.spectral_reader(claim)
    scalars = {"dtau": Z, **reader.scalars}
    carriers = (*blocks.labels, *(name for name in sources.values() if name != "None"))
    claimed = replace(reader, scalars=scalars, carriers=carriers).matrix(claim.get("value"))
    derived = WordSum({})
    for column, label in enumerate(blocks.labels):
        derived += derived_block(blocks, row, column) * WordSum({(Carrier(label),): sp.S.One})
    if blocks.right_hand_side[row] is not None:
        derived += WordSum({(Carrier(str(blocks.right_hand_side[row])),): sp.S.NegativeOne})
    factor = reader.scalar(claim.get("times", "1"))
    if not context.comparator.differs_from_zero(factor):
        raise ClaimError(f"{context.place(claim)}: {factor} in times is not known to differ from 0")
    return context.same_words(
        claimed, factor * derived, f"equation of {context.text.order_parameter(blocks.labels[row])}"
    )


def derived_block(blocks: BlockMatrix, row: int, column: int) -> WordSum:
    """Return a block of A(z) as a sum of words."""
    block = blocks.block(row, column)
    total = WordSum({(): block.scalar} if block.scalar != 0 else {})
    for scale, word in block.combination:
        written = without_averages(scale)
        assert written is not None, "claims about averages that cannot be written out are refused"
        total += WordSum({tuple(word): -written})
    return total
