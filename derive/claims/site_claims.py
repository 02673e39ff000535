"""Claims about whole equations of one site, with products with random matrices replaced by noise and memory."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.cells.verdicts import REFUTED
from derive.claims.action_claims import law_of, right_hand_side, without_sums
from derive.claims.context import ClaimContext
from derive.claims.formulas import Carrier, WordSum, noise_name
from derive.claims.process_claims import at_once, memory_of, noise_terms, same_time, with_lag
from derive.claims.reading import Claim
from derive.errors import ClaimError


def decide_site(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide the equation of a field on one site, in which u[x] is the noise of a product x with a random matrix."""
    reader = context.reader(claim, matrices=True)
    f = law_of(context, claim, reader)
    if f.shift != claim.get("shift", 0):
        return REFUTED, f"derived: the equation of {context.text.name(f.field)} gives its value at t + {f.shift}"
    if f.rule.laws:
        raise ClaimError(
            f"{context.place(claim)}: the law of {context.text.name(f.field)} is not linear; claim its law and its "
            "noises"
        )
    sums = {field: noise_terms(context, field) for field in context.fields.values()}
    products = {field.name: field for field, terms in sums.items() if field in terms}
    noises = {noise_name(field.name): terms for field, terms in sums.items() if terms}
    reader = replace(reader, carriers=(*context.fields, "j", *noises))
    what = f"equation of {context.text.name(f.field)} on one site"
    own = WordSum({(Carrier(f.field.name),): sp.S.One}) if f.product else right_hand_side(context, claim, f)
    entering = [field for name, field in products.items() if (Carrier(name),) in own.terms]

    def with_noises(total: WordSum) -> WordSum:
        """Return words in which each product with a random matrix is replaced by its noise and memory."""
        done = WordSum({})
        for word, scale in (total if context.source is None else context.source.same(total)).terms.items():
            name = word[0].name if len(word) == 1 and isinstance(word[0], Carrier) else ""
            if name in products:
                noise = WordSum({(Carrier(noise_name(name)),): sp.S.One})
                done += scale * (noise + memory_of(context, products[name]))
            elif name in noises:
                parts = {(Carrier(noise_name(x.name)),): scale * factor for x, factor in noises[name].items()}
                done += WordSum(parts)
            else:
                done += WordSum({word: scale})
        return done

    claimed = at_once(context, without_sums(reader.matrix(claim.get("value"))))
    sides = with_noises(claimed), with_noises(own)
    status, detail = context.same_words(*sides, what)
    memories = [m for m in context.saddle.memories if m.target in entering]
    status, detail = with_lag(claim, memories, status, detail, what)
    return same_time(context, claim, {m.fresh for m in memories}, status, detail)
