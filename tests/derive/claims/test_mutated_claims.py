"""Claims that were changed by machine are proved only where numbers agree with them."""

from __future__ import annotations

import random

import attack_claims
import pytest
from attack_claims import CHEAP, attack, holds, mutants, works

SPIKE = "outlier_of_a_covariance"


def test_no_false_mutant_of_a_claim_is_proved(tmp_path):
    told, wrong = attack(150, 3, tmp_path, CHEAP)
    assert not wrong, wrong
    assert (
        told["refuted"] > 0.8 * (150 - told["refused"]) and told["proved, true"] > 3 and not told["proved, not checked"]
    )
    assert told["refuted"] + told["proved, true"] + told["refused"] >= 147, "all but a few are decided"


@pytest.mark.long
def test_no_false_mutant_of_any_claim_is_proved(tmp_path):
    told, wrong = attack(None, 4, tmp_path)
    assert not wrong, wrong
    assert told["refuted"] > 4000


def test_numbers_are_against_claims_outside_their_region(tmp_path):
    """The judge itself: an outlier exists above the threshold only, and only with the right formula."""
    (work,) = works(tmp_path, (SPIKE,))
    changed = list(mutants(work.file, work))
    moved = [m for m in changed if "c0" in m.original.name and m.claim.region == ("l > 1 / sqrt(nu) * 1 / 3",)]
    terms = [m for m in changed if m.change in ("a tiny term", "true at the defaults", "a dropped term")]
    assert len(terms) > 5 and not any(holds(work, mutant, random.Random(5)) for mutant in terms[:4])
    regions = [m for m in changed if m.change == "no region"]
    assert regions and not all(holds(work, m, random.Random(seed)) for m in (*regions, *moved) for seed in range(3))


def test_changes_of_a_formula():
    told = dict(attack_claims.formulas(attack_claims.ast.parse("a - sqrt(b)", mode="eval").body))
    assert {what: attack_claims.ast.unparse(tree) for what, tree in told.items()} == {
        "sign of a term": "a + sqrt(b)",
        "a dropped term": "a",
        "other branch of a root": "a - -sqrt(b)",
        "positive values only": "a - sqrt(sqrt(b ** 2))",
    }
