"""Claims about equations, the action and its average, order parameters and their conjugates, kernels and noises."""

from __future__ import annotations

import re
from dataclasses import replace

import sympy as sp

from derive.algebra.words import Letter
from derive.cells.verdicts import PROVED, REFUTED
from derive.claims.context import ClaimContext
from derive.claims.formulas import EARLIER, ActingMatrix, Bracket, Carrier, Reader, WordSum, definition
from derive.claims.process_claims import same_time
from derive.claims.reading import Claim
from derive.claims.sizes import joined, same_sizes
from derive.claims.weight_claims import without_weights
from derive.errors import ClaimError
from derive.language.matrices import Disorder
from derive.language.traversal import outermost
from derive.language.vectors import Field, FieldAt, Mean, Mix, PastSum, Total
from derive.records.action import Coupling, Leg
from derive.records.saddle import Conjugate
from derive.records.system import LinearRule, SystemField, Term, quadratic_pairs


def decide_law(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide the right-hand side of the equation of a field, at the time t if the left-hand side is at t + shift."""
    reader = context.reader(claim, matrices=True, sizes=True)
    f = law_of(context, claim, reader)
    if f.shift != claim.get("shift", 0):
        return REFUTED, f"derived: the equation of {context.text.name(f.field)} gives its value at t + {f.shift}"
    what = f"equation of {context.text.name(f.field)}"
    if f.rule.laws:
        return _nonlinear(context, claim, f, what)
    matrices = (*map(str, context.disorder), *map(str, context.weights), EARLIER.matrix)
    reader = replace(reader, carriers=(*context.fields, "j"), matrices=matrices)
    claimed = without_weights(context, claim, without_sums(reader.matrix(claim.get("value"))))
    derived = written_out(context, right_hand_side(context, claim, f))
    status, detail = same_sizes(context, written_out(context, claimed), derived, what)
    lag, past = claim.get("lag"), [t.past for t in f.rule.terms if t.past is not None]
    lags = sorted({int(f.time + 1 - p.subs(f.time, f.time + f.shift)) for p in past if p.has(f.time)})
    if status != REFUTED and lag is not None and lags != [lag]:
        return REFUTED, f"derived: the sums of the {what} end at s = t - {', '.join(map(str, lags))}, claimed lag {lag}"
    return status, detail


def law_of(context: ClaimContext, claim: Claim, reader: Reader) -> SystemField:
    """Return the field that a claim is about, with its update rule or the starting value that the claim names.

    Raises:
        ClaimError: it is drawn, or has fewer starting values.
    """
    if claim.get("target") in map(str, context.weights):
        raise ClaimError(
            f"{context.place(claim)}: {context.text.name(claim.get('target'))} are weights, not a field; give the "
            "claim the kind weights"
        )
    target = reader.field(claim.get("target"))
    rules = [f for f in context.system.fields if f.field == target]
    if not rules:
        raise ClaimError(f"{context.place(claim)}: {target} is drawn at random and has no equation")
    (f,) = rules
    first = claim.get("start")
    if first is None:
        return f
    if first >= len(f.starts):
        raise ClaimError(f"{context.place(claim)}: {target} has {len(f.starts)} starting values")
    return replace(f, rule=f.starts[first], shift=0)


def without_sums(total: WordSum) -> WordSum:
    """Return words without the sum over earlier times that a product C[a,b]*x already implies."""
    kept = WordSum({})
    for word, scale in total.terms.items():
        matrix = any(isinstance(letter, Letter) for letter in word)
        plain = tuple(letter for letter in word if letter != EARLIER) if matrix else word
        kept += WordSum({plain: scale})
    return kept


def _nonlinear(context: ClaimContext, claim: Claim, f: SystemField, what: str) -> tuple[str, str]:
    """Decide an elementwise law; the name of a field stands for its value at the time of the law."""
    law = f.rule.expression(f.time).subs(f.time, f.time + f.shift)
    if law.has(PastSum, Mean, Mix, Total):
        raise ClaimError(f"{context.place(claim)}: the law of {f.field} contains averages, sums over times or labels")
    values = {value.field.name: value for value in sorted(law.atoms(FieldAt), key=str)}
    reader = context.reader(claim)
    claimed = replace(reader, scalars={**values, **reader.scalars}).scalar(claim.get("value"))
    plain = {value: sp.Symbol(name, real=True) for name, value in values.items()}
    claimed, derived = claimed.xreplace(plain), law.xreplace(plain)
    return context.conclude(context.comparator.same(claimed, derived), claimed, derived, what)


def written_out(context: ClaimContext, total: WordSum) -> WordSum:
    """Return words with fields that stand for products with random matrices replaced by these products."""
    products = {f.field.name: f.product for f in context.system.fields if f.product is not None}
    while True:
        total = total if context.source is None else context.source.same(total)
        done = WordSum({})
        for word, scale in total.terms.items():
            p = products.get(word[-1].name) if word and isinstance(word[-1], Carrier) else None
            acting = () if p is None else (ActingMatrix(p.matrix.name, p.transposed), Carrier(p.argument.name))
            done += WordSum({(*word[:-1], *acting) if acting else word: scale * (p.coefficient if p else 1)})
        if done.terms == total.terms:
            return done
        total = done


def right_hand_side(context: ClaimContext, claim: Claim, f: SystemField) -> WordSum:
    """Return the right-hand side as words: products with random matrices, values, sums over the past, overlaps."""
    if f.product is not None:
        p = f.product
        operator = ActingMatrix(p.matrix.name, p.transposed)
        return WordSum({(operator, Carrier(p.argument.name)): p.coefficient})
    assert isinstance(f.rule, LinearRule)
    total = WordSum({(Carrier("j"),): sp.S.One} if f.derivative else {})
    for term in f.rule.terms:
        total += WordSum({_word(context, claim, f, term): term.coefficient})
    return total


def _word(context: ClaimContext, claim: Claim, f: SystemField, term: Term) -> tuple[object, ...]:
    now = f.time - f.shift
    timed = [value for value in (term.vector, *(term.pair or ())) if value.time is not None]
    other = any(v.time not in (now, f.time) and term.past is None for v in timed)
    at_one_time = term.pair is not None and term.past is None and term.vector.time is not None
    if term.mixing is not None or other or at_one_time:
        raise ClaimError(
            f"{context.place(claim)}: the equation of {f.field} has labels or other times; it can be shown but not "
            f"claimed"
        )
    last = Carrier(term.vector.field.name)
    if term.pair is None:
        return (last,) if term.past is None else (EARLIER, last)
    left, right = term.pair
    first, second = (left, right) if left.field.role == "spectral" or right == term.vector else (right, left)
    return (Letter.correlation(first.field, second.field), last)


def decide_observable(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide an observable; C[a,b] stands for the correlation at equal times."""
    observed, place = dict(context.system.model.observe), context.place(claim)
    if claim.get("of") not in observed:
        raise ClaimError(f"{place}: there is no observable {claim.get('of')}; they are {', '.join(observed)}")
    symbols: dict[str, sp.Expr] = {}

    def at_one_time(a: Field, b: Field) -> sp.Expr:
        letter = Letter.correlation(a, b).plain
        printed = sp.Symbol(context.text.order_parameter(letter), real=True)
        return symbols.setdefault(letter.name, context.text.scale((letter,)) * printed)

    derived = observed[claim.get("of")]
    for average in outermost(derived, (Mean, Total)):
        pairs = quadratic_pairs(average) if isinstance(average, Mean) else None
        if pairs is None or any(a.time != b.time or scale.has(FieldAt) for scale, a, b in pairs):
            raise ClaimError(
                f"{place}: {claim.get('of')} does not consist of correlations at one time; it cannot be claimed"
            )
        total = sp.Add(*(scale * at_one_time(a.field, b.field) for scale, a, b in pairs))
        derived = derived.xreplace({average: total})
    words = context.reader(claim, matrices=True)
    used = {str(letter) for letter in re.findall(r"C\[[^\]]*\]", claim.get("value"))}
    text = claim.get("value")
    for letter in sorted(used):
        ((word,),) = words.matrix(letter).terms
        at_one_time(word.a, word.b)
        text = text.replace(letter, word.plain.name)
    reader = context.reader(claim)
    claimed = replace(reader, scalars={**reader.scalars, **symbols}).scalar(text)
    return context.conclude(context.comparator.same(claimed, derived), claimed, derived, claim.get("of"))


def decide_symmetry(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide which permutations of the labels along an axis leave the equations invariant."""
    labels = context.derivation.method.labels
    axes = () if labels is None else tuple(map(str, labels.axes))
    if labels is None or claim.get("of") not in axes:
        return REFUTED, f"derived: no symmetry of labels along {claim.get('of')}"
    found = f"derived: {labels.group.value} of the labels along {', '.join(axes)}, {labels.reason}"
    return (PROVED if claim.get("value") == labels.group.value else REFUTED), found


def decide_source(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide the matrix X in exp(-i Tr W^T X), a sum of dyads."""
    matrix = _matrix(context, claim)
    derived = WordSum({})
    for c in context.action.couplings:
        if c.matrix == matrix:
            derived += WordSum({(_dyad(c),): c.coefficient})
    claimed = _reader(context, claim).matrix(claim.get("value"))
    return same_sizes(context, claimed, derived, f"source of {context.text.name(matrix)}")


def decide_average(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide all terms that the average over a random matrix contributes to the exponent."""
    matrix = _matrix(context, claim)
    terms = [term for term in context.average.terms if term.matrix == matrix]
    derived = WordSum({})
    for term in terms:
        derived += WordSum({(Bracket(*term.left), Bracket(*term.right)): term.weight})
    claimed = _reader(context, claim).matrix(claim.get("value"))
    status, detail = same_sizes(
        context, joined(context, claimed), joined(context, derived), f"average over {context.text.name(matrix)}"
    )
    return same_time(context, claim, {matrix.fresh is not None}, status, detail)


def decide_order_parameter(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide the definition of an order parameter of the saddle point."""
    letter = _order_parameter(context, claim, overlaps=True)
    reader = _reader(context, claim)
    text = claim.get("value")
    if any(f"{kind}[" in text.replace(" ", "") for kind in "CR"):
        raise reader.error(text, "defines an order parameter in terms of order parameters; write it with dot and hat")
    derived = WordSum(definition(letter.kind, letter.a, letter.b))
    return same_sizes(
        context, joined(context, reader.matrix(text)), joined(context, derived), context.text.order_parameter(letter)
    )


def decide_conjugate(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide the value of the field conjugate to an order parameter at the saddle point."""
    letter = _order_parameter(context, claim)
    claimed = context.reader(claim, matrices=True).matrix(claim.get("value"))
    derived = WordSum({})
    unit = _in_source(context, letter)[1]
    for conjugate in context.conjugates.all:
        same, scale = _in_source(context, _letter(conjugate))
        if same == _in_source(context, letter)[0] and not conjugate.vanishes:
            for coefficient, a, j in conjugate.terms:
                derived += WordSum({(Letter.response(a, j).T,): coefficient * scale / unit})
    status, detail = context.same_words(claimed, derived, f"conjugate of {context.text.order_parameter(letter)}")
    if letter.kind == "C" and status == PROVED:
        detail += ", a mean of two response fields: the generating function of a site does not depend on its sources"
    return status, detail


def decide_effective_action(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide the products of two responses in the effective action of one site of the base sector."""
    products = context.conjugates.products
    fresh = {p.fresh for p in products}
    if len(fresh) > 1:
        raise ClaimError(
            f"{context.place(claim)}: some products are at equal times only; claim the conjugate of each response"
        )
    derived = WordSum({})
    for p in products:
        derived += WordSum({(Letter.response(*p.first).T, Letter.response(*p.second)): p.coefficient})
    claimed = context.reader(claim, matrices=True).matrix(claim.get("value"))
    sides = joined(context, claimed), joined(context, derived)
    return same_time(
        context, claim, fresh, *context.same_words(*sides, "products of responses in the effective action")
    )


def _order_parameter(context: ClaimContext, claim: Claim, overlaps: bool = False) -> Letter:
    """Return the order parameter that a claim is about; with `overlaps`, order parameters of low-rank terms are
    included.
    """
    words = list(context.reader(claim, matrices=True).matrix(claim.get("of")).terms)
    if len(words) != 1 or len(words[0]) != 1 or not isinstance(words[0][0], Letter):
        raise ClaimError(f"{context.place(claim)}: of must be one order parameter, such as C[a,b] or R[a,j]")
    letter = words[0][0].plain
    known = [_letter(conjugate) for conjugate in context.conjugates.all]
    pairs = [t.pair for f in context.system.fields for rule in f.rules for t in rule.terms if overlaps and t.pair]
    known += [Letter.correlation(*(value.field for value in pair)).plain for pair in pairs]
    if overlaps and letter.kind == "C" and letter.a.sector == letter.b.sector:
        return letter  # defined for any two fields, whether an average contains it or not
    if _in_source(context, letter)[0] not in [_in_source(context, other)[0] for other in known]:
        name = context.text.order_parameter(letter)
        raise ClaimError(
            f"{context.place(claim)}: {name} is not an order parameter; they are {context.text.names(known)}"
        )
    return letter


def _in_source(context: ClaimContext, letter: Letter) -> tuple[Letter, sp.Expr]:
    """Return the order parameter that represents all those with the same symbol, and the ratio of the two."""
    return (letter, sp.S.One) if context.source is None else context.source.canonical(letter)


def _letter(conjugate: Conjugate) -> Letter:
    a, b = conjugate.a, conjugate.b
    return Letter.response(a, b) if conjugate.response else Letter.correlation(a, b).plain


def _matrix(context: ClaimContext, claim: Claim) -> Disorder:
    matrices = {matrix.name: matrix for matrix in context.system.disorder}
    if claim.get("matrix") not in matrices:
        raise ClaimError(
            f"{context.place(claim)}: there is no random matrix {claim.get('matrix')}; they are "
            f"{context.text.names(matrices)}"
        )
    return matrices[claim.get("matrix")]


def _reader(context: ClaimContext, claim: Claim) -> Reader:
    return replace(context.reader(claim, matrices=True, sizes=True), legs=True)


def _dyad(coupling: Coupling) -> Bracket:
    hat, argument = Leg(coupling.field, True), Leg(coupling.argument, False)
    return Bracket(argument, hat, "outer") if coupling.transposed else Bracket(hat, argument, "outer")
