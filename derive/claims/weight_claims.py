"""Claims about trained weights, and what they do to a vector in claims about equations of fields."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.algebra.words import Letter
from derive.claims.context import ClaimContext
from derive.claims.formulas import EARLIER, ActingMatrix, Bracket, Carrier, WordSum
from derive.claims.reading import Claim
from derive.claims.sizes import same_sizes
from derive.equations.history import Increment, InitialMatrix
from derive.errors import ClaimError
from derive.language.equations import Eq
from derive.language.matrices import Weights
from derive.language.vectors import PAST, FieldAt
from derive.records.action import Leg


def decide_weights(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide the value of trained weights: at time t, at t + 1 with shift = 1, or the first with start = 0."""
    weights = _weights(context, claim)
    matrices = (*map(str, context.weights), *map(str, context.disorder), EARLIER.matrix)
    reader = replace(context.reader(claim, matrices=True, sizes=True), legs=True, matrices=matrices)
    claimed = reader.matrix(claim.get("value"))
    if claim.get("start") is not None or claim.get("shift", 0):
        derived = _declared(context, claim, weights)
    else:
        derived = WordSum({})
        for start, coefficient in _starts(context, claim, weights):
            derived += WordSum({(ActingMatrix(start.disorder.name, start.transposed),): coefficient})
        for dyad, coefficient in _dyads(context, claim, weights):
            derived += WordSum({(EARLIER, _bracket(context, claim, dyad.left, dyad.right)): coefficient})
    return same_sizes(context, claimed, derived, f"value of {context.text.name(weights)}")


def without_weights(context: ClaimContext, claim: Claim, total: WordSum) -> WordSum:
    """Return words in which trained weights acting on a field are replaced by their initial matrix and history."""
    named = {weights.name: weights for weights in context.weights}
    done = WordSum({})
    for word, scale in total.terms.items():
        acting = [part for part in word if isinstance(part, ActingMatrix) and part.name.removesuffix(".T") in named]
        if not acting:
            done += WordSum({word: scale})
            continue
        if len(word) != 2 or not isinstance(word[1], Carrier):
            raise ClaimError(f"{context.place(claim)}: weights act on one field, as in W*x; write the rest with fields")
        done += scale * _applied(context, claim, named[acting[0].matrix], acting[0].transposed, word[1].name)
    return done


def _applied(context: ClaimContext, claim: Claim, weights: Weights, transposed: bool, name: str) -> WordSum:
    """Return weights, or their transpose, times a field as words."""
    x, total = context.fields[name], WordSum({})
    for start, coefficient in _starts(context, claim, weights):
        turned = start.transposed != transposed and not start.disorder.symmetric
        total += WordSum({(ActingMatrix(start.disorder.name, turned), Carrier(name)): coefficient})
    for dyad, coefficient in _dyads(context, claim, weights):
        left, right = (dyad.right, dyad.left) if transposed else (dyad.left, dyad.right)
        bracket = _bracket(context, claim, left, right)
        letter = Letter.correlation(x, bracket.right.field)
        total += WordSum({(letter, Carrier(bracket.left.field.name)): coefficient * x.sector})
    return total


def _weights(context: ClaimContext, claim: Claim) -> Weights:
    named = {weights.name: weights for weights in context.weights}
    if claim.get("target") not in named:
        known = context.text.names(named) or "none"
        raise ClaimError(f"{context.place(claim)}: there are no weights {claim.get('target')}; they are {known}")
    return named[claim.get("target")]


def _starts(context: ClaimContext, claim: Claim, weights: Weights) -> list[tuple[InitialMatrix, sp.Expr]]:
    """Return the random matrices in some weights with their coefficients, which must not depend on time."""
    return [
        (start, _constant(context, claim, weights, scale(weights.clock)))
        for start, scale in context.history.starts(weights)
    ]


def _dyads(context: ClaimContext, claim: Claim, weights: Weights) -> list[tuple[Increment, sp.Expr]]:
    """Return the updates summed over earlier times, with their coefficients, which must not depend on time."""
    return [
        (dyad, _constant(context, claim, weights, kernel(weights.clock, PAST) * dyad.coefficient))
        for (name, dyad), kernel in context.history.kernels.items()
        if name == weights
    ]


def _constant(context: ClaimContext, claim: Claim, weights: Weights, coefficient: sp.Expr) -> sp.Expr:
    if coefficient.has(weights.clock, PAST):
        raise ClaimError(
            f"{context.place(claim)}: the history of {context.text.name(weights)} depends on time other than through "
            "fields; claim one step of it, of kind weights with shift = 1"
        )
    return coefficient


def _declared(context: ClaimContext, claim: Claim, weights: Weights) -> WordSum:
    """Return the right-hand side of the declared start or step of some weights."""
    wants_start = claim.get("start") is not None
    equations = (e for e in context.system.model.equations if e.target.weights is not None)
    mine = (e for e in equations if e.target.symbol.weights == weights)
    own: list[Eq] = [e for e in mine if (e.start is not None) == wants_start]
    total = WordSum({})
    for scale, part in own[0].value.as_sum if own else ():
        if part.low_rank:
            total += WordSum({(_bracket(context, claim, *part.expressions),): scale})
        elif part.weights is not None or part.random is not None:
            matrix = part.weights if part.weights is not None else part.random
            total += WordSum({(ActingMatrix(matrix.name, part.transposed),): scale})
        else:
            raise ClaimError(f"{context.place(claim)}: {own[0].target} contains {part}, which cannot be claimed")
    return total


def _bracket(context: ClaimContext, claim: Claim, left: sp.Expr, right: sp.Expr) -> Bracket:
    """Return the dyad of two fields."""
    if not (isinstance(left, FieldAt) and isinstance(right, FieldAt)):
        raise ClaimError(
            f"{context.place(claim)}: the dyad of {left} and {right} is not one of fields; name them as fields"
        )
    return Bracket(Leg(left.field, False), Leg(right.field, False), "outer")
