"""The permutation symmetry of labels in a training level.

Labels are equivalent if no rule multiplies a vector by data or combines different lists of labels. Then every order
parameter with two labels is a delta_cd + b. If moreover every rule is odd in the vectors with labels, the sign of each
label may be flipped as well, and b = 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sympy as sp

from derive.equations.layout import Layout
from derive.language.symbols import Axis
from derive.language.vectors import Field, FieldAt, GivenNumbers, LabelSelection, Mean, shown
from derive.records.method import LabelGroup, LabelSymmetry
from derive.records.system import LinearRule, SystemField, Term, is_moment, quadratic_pairs

Axes = tuple[Axis, ...]


def label_symmetry(layout: Layout, exact: bool) -> LabelSymmetry | None:
    """Return the permutations of labels that leave an exact training level invariant; None if nothing has labels."""
    fields = [*(f.field for f in layout.fields), *layout.system.sources]
    lists = tuple(dict.fromkeys(field.axes for field in fields if field.labelled))
    if not lists:
        return None
    axes = tuple(dict.fromkeys(axis for labels in lists for axis in labels))
    distinguishing = _distinguishing(layout)
    if not exact:
        return LabelSymmetry(axes, LabelGroup.NONE, "laws are nonlinear")
    if len(lists) > 1:
        return LabelSymmetry(axes, LabelGroup.NONE, "fields have different axes")
    if distinguishing is not None:
        return LabelSymmetry(axes, LabelGroup.NONE, f"{shown(distinguishing)} differs from label to label")
    joining = _joining(layout)
    if joining is None:
        return LabelSymmetry(axes, LabelGroup.SIGNED, "every equation is odd in the vectors of each label")
    return LabelSymmetry(axes, LabelGroup.PERMUTATIONS, f"the equation of {joining} couples labels")


def _distinguishing(layout: Layout) -> sp.Expr | None:
    """Return data or a table in an equation that differs from label to label; None if there is none."""
    nodes = [node for e in _expressions(layout) for node in e.atoms(GivenNumbers, LabelSelection) if _labelled(node)]
    return min(nodes, key=sp.default_sort_key, default=None)


def _labelled(node: sp.Basic) -> bool:
    return isinstance(node, LabelSelection) or bool(node.args[0].axes)


def _expressions(layout: Layout) -> Iterator[sp.Expr]:
    """Yield the right-hand sides of all equations, and the coefficients added by disorder averages."""
    for f in layout.fields:
        yield from (rule.expression(f.time) for rule in (f.rule, *f.starts))
    yield from (covariance.coefficient for covariance in layout.saddle.covariances)
    yield from (memory.coefficient for memory in layout.saddle.memories)


def _joining(layout: Layout) -> Field | None:
    """Return a field whose equation breaks the sign symmetry of a single label; None if there is none."""
    constants = (s for s in layout.system.sources if s.labelled and s.role == "constant")
    return next(constants, None) or next((f.field for f in layout.fields if not _is_odd(f, layout)), None)


def _is_odd(f: SystemField, layout: Layout) -> bool:
    rules = (rule for rule in (f.rule, *f.starts) if isinstance(rule, LinearRule))
    numbers = [covariance.coefficient for covariance in layout.covariances(f.field)]
    numbers += [memory.coefficient for memory in layout.memories(f.field)]
    return _even(numbers) and all(_keeps_labels(term, f.field) for rule in rules for term in rule.terms)


def _keeps_labels(term: Term, target: Field) -> bool:
    """Return whether a term is odd under the sign of a label if and only if its target has labels."""
    same = all(value.field.labelled == target.labelled for value in (term.vector, *(term.pair or ())))
    return same and term.mixing is None and _even((term.coefficient,))


def _even(coefficients: Iterable[sp.Expr]) -> bool:
    """Return whether every mean contains only products of two vectors with labels, or of two vectors without."""
    means = (m for c in coefficients for m in sp.sympify(c).atoms(Mean) if not is_moment(m))
    return all(_alike(a, b) for m in means for _, a, b in quadratic_pairs(m) or ())


def _alike(a: FieldAt, b: FieldAt) -> bool:
    return bool(a.field.labelled == b.field.labelled)
