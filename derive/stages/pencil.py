"""BlockMatrix -> Pencil: scalar functions of z times matrices that do not depend on z.

Unknowns whose rows have the same scalar d(z) on the diagonal form a group. If groups form a cycle, det A(z) = det(d1
... dn I - K1 ... Kn): one eigenproblem, and one scalar map s = d1 ... dn to invert.

Rows of sites that differ have the scalar one. If a single average E(z) over the sites occurs in all of its couplings,
the row is divided by it. Its scalar is then 1 / E(z), and its couplings do not depend on z.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import sympy as sp

from derive.algebra.generators import decode, hide_functions, roots_of
from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint, check_vanishes, physical_samples, plain_names
from derive.algebra.polynomials import TooLarge, eliminate, factors
from derive.algebra.recheck import check_same
from derive.algebra.sites import TraitAverage, without_averages
from derive.records.probe import MAP, Block, BlockCycle, BlockMatrix, Pencil


def reduce_blocks(blocks: BlockMatrix) -> Pencil:
    """Return the cycles of groups, the inverse scalar map of each, and the rows that need a nonlinear eigenproblem.

    The determinant of A(z) is the product over strongly connected sets of rows. A row outside these sets contributes a
    power of its own scalar, which has no zero outside the bulk.
    """
    whole, blocks = blocks, _divide_rows(blocks)
    scalars = _diagonal_scalars(blocks)
    groups: dict[sp.Expr, list[int]] = {}
    for row, scalar in enumerate(scalars):
        if scalar is not None:
            groups.setdefault(scalar, []).append(row)
    # rows with scalars off the diagonal belong to no group: each is its own, and no cycle passes through it
    members = [*groups.values(), *([row] for row, scalar in enumerate(scalars) if scalar is None)]
    into = _dependencies(blocks, members)
    cycles, reduced = [], set()
    for component in _components(into):
        cycle = _cyclic_order(component, into)
        if cycle is None or max(cycle) >= len(groups):
            continue
        rows = tuple(tuple(members[i]) for i in cycle)
        cycles.append(_cycle(blocks, rows, tuple(list(groups)[i] for i in cycle)))
        reduced |= {r for group in rows for r in group}
    by_row = _dependencies(blocks, [[row] for row in range(len(scalars))])
    rest = sorted({row for component in _components(by_row) for row in component} - reduced)
    return Pencil(whole, tuple(cycles), tuple(rest), blocks.assumptions, blocks)


def _divide_rows(blocks: BlockMatrix) -> BlockMatrix:
    """Return A(z) with rows of differing sites divided by the average in their couplings, if there is only one."""
    divided = dict(blocks.blocks)
    for row, unknown in enumerate(blocks.projected.unknowns):
        if unknown.probe not in blocks.projected.differing:
            continue
        fed = {key: block for key, block in blocks.blocks if key[0] == row}
        scales = [scale for block in fed.values() for scale, _ in block.combination]
        averages = {average for scale in scales for average in scale.atoms(TraitAverage)}
        if len(averages) != 1:
            continue
        (average,) = averages
        if any(_depends_on_z(scale / average, blocks) for scale in scales) or any(map(_is_weighted, fed.values())):
            continue
        for key, block in fed.items():
            combination = tuple((scale / average, word) for scale, word in block.combination)
            divided[key] = Block(block.scalar / average, combination)
    return replace(blocks, blocks=tuple(divided.items()))


def _depends_on_z(scale: sp.Expr, blocks: BlockMatrix) -> bool:
    return scale.has(TraitAverage) or bool(scale.free_symbols & {Z, *blocks.projected.bulk_symbols})


def _is_weighted(block: Block) -> bool:
    """Return whether a block contains means over sampled sites, whose weights depend on z."""
    return any(letter.tables for _, word in block.combination for letter in word)


def _dependencies(blocks: BlockMatrix, members: list[list[int]]) -> dict[int, set[int]]:
    """Return, for each set of rows, the sets whose unknowns occur in its equations."""
    home = {row: i for i, rows in enumerate(members) for row in rows}
    into: dict[int, set[int]] = {i: set() for i in range(len(members))}
    for (row, column), block in blocks.blocks:
        if block.combination or row != column:
            into[home[row]].add(home[column])
    return into


def _diagonal_scalars(blocks: BlockMatrix) -> list[sp.Expr | None]:
    """Return the scalar on the diagonal of each row.

    It is None for a row with scalars off the diagonal, or with couplings that depend on z.
    """
    count = len(blocks.labels)
    off = {r for (r, c), b in blocks.blocks if r != c and b.scalar != 0} | {
        c for (r, c), b in blocks.blocks if r != c and b.scalar != 0
    }
    off |= {r for (r, _), b in blocks.blocks if any(_depends_on_z(scale, blocks) for scale, _ in b.combination)}
    off |= {r for (r, _), b in blocks.blocks if _is_weighted(b)}
    return [None if r in off else blocks.block(r, r).scalar for r in range(count)]


def _components(into: dict[int, set[int]]) -> list[list[int]]:
    """Return the strongly connected components; a single set counts only if it depends on itself."""

    def reach(start: int) -> set[int]:
        seen, waiting = set(), [start]
        while waiting:
            node = waiting.pop()
            for following in into[node]:
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
        return seen

    reached = {i: reach(i) for i in into}
    components: list[list[int]] = []
    for i in into:
        if i in reached[i] and not any(i in component for component in components):
            components.append(sorted(j for j in into if j in reached[i] and i in reached[j]))
    return components


def _cyclic_order(component: list[int], into: dict[int, set[int]]) -> list[int] | None:
    """Return the groups of a component in the order of their cycle; None if a group depends on more than one."""
    following = {i: into[i] & set(component) for i in component}
    if any(len(f) != 1 for f in following.values()):
        return None
    cycle = [component[0]]
    while len(cycle) < len(component):
        cycle.append(next(iter(following[cycle[-1]])))
    return cycle


def _cycle(blocks: BlockMatrix, rows: tuple[tuple[int, ...], ...], scalars: tuple[sp.Expr, ...]) -> BlockCycle:
    """Return the cycle with its inverse scalar map, or with the relation between z and s within the size bound."""
    projected = blocks.projected
    resolvent = projected.resolvent
    names = {resolvent: resolvent, **plain_names(s for s in projected.bulk_symbols if s != resolvent)}
    product = without_averages(sp.Mul(*scalars))
    relation, inverse, critical = None, None, ()
    if projected.polynomials is not None and product is not None:
        equations = tuple(e.xreplace(names) for e in projected.polynomials)
        inversion = _inverted(equations, tuple(names.values()), product.xreplace(names))
        relation, inverse, critical = inversion or (None, None, ())
    return BlockCycle(rows, scalars, relation, inverse, critical, _explicit_eigenvalue(blocks, rows))


@lru_cache(maxsize=64)
def _inverted(
    equations: tuple[sp.Expr, ...], unknowns: tuple[sp.Symbol, ...], product: sp.Expr
) -> tuple[sp.Expr, sp.Expr | None, tuple[sp.Expr, ...]] | None:
    """Return the relation between z and s, the inverse map z(s), and the critical values of s."""
    try:
        physical = PhysicalPoint.of(equations, unknowns).joined_by(MAP, product)
        relation = eliminate([*equations, MAP - product], list(unknowns), physical)
    except TooLarge:
        return None
    samples = [sample.joined_by(MAP, product) for sample in physical_samples(equations, unknowns)]
    check_vanishes(relation, samples, "pencil", "the relation between z and the scalar map")
    poly = sp.Poly(relation, Z)
    if poly.degree() != 1:
        return relation, None, ()
    inverse = sp.factor(-poly.coeff_monomial(1) / poly.coeff_monomial(Z))
    check_vanishes(sp.fraction(sp.together(Z - inverse))[0], samples, "pencil", "z as a function of the scalar map")
    return relation, inverse, tuple(_critical_points(inverse))


def _critical_points(inverse: sp.Expr) -> list[sp.Expr]:
    """Return the zeros of dz/ds, where an outlier meets the bulk."""
    numerator = sp.fraction(sp.together(sp.diff(inverse, MAP)))[0]
    points: list[sp.Expr] = []
    for factor in factors(numerator):
        if factor.has(MAP) and sp.Poly(factor, MAP).degree() <= 2:
            roots = list(dict.fromkeys(roots_of(factor, MAP)))
            points += [decode(sp.simplify(hide_functions(r))) for r in roots]
            for root, simple in zip(roots, points[-len(roots) :], strict=True):
                check_same(root, simple, "pencil", "a critical value of the scalar map")
    return sorted(points, key=lambda r: (str(r).startswith("-"), str(r)), reverse=True)


def _explicit_eigenvalue(blocks: BlockMatrix, rows: tuple[tuple[int, ...], ...]) -> sp.Expr | None:
    """Return the eigenvalue of a one-by-one pencil in closed form, for spikes independent of all other variables."""
    if any(len(group) != 1 for group in rows):
        return None
    total = sp.S.One
    for group, following in zip(rows, (*rows[1:], rows[0]), strict=True):
        entry = sp.S.Zero
        for scale, word in blocks.block(group[0], following[0]).combination:
            for letter in word:
                ends = [f for order in letter.order_parameters if order.kind == "C" for f in (order.a, order.b)]
                if not ends or any(f.role not in ("normal", "constant") or f.timed or f.labelled for f in ends):
                    return None
                a, b = ends
                scale *= a.scale * b.scale if a == b else 0
            entry += scale
        total *= entry
    return total
