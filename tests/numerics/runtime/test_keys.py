"""Names of order parameters are keys of one class: equal to what generated code writes, and printed as C[a,b]."""

from __future__ import annotations

import json
import pickle

import jax
import numpy as np
import pytest

from derive.results.files import decoded
from derive.results.saving import Pool
from numerics.runtime.keys import OrderKey, keyed, keys_of

KEY = OrderKey("R", "phi", "xi")


def test_a_key_is_what_generated_code_writes_and_prints_as_in_the_paper():
    assert KEY == ("R", "phi", "xi") and {KEY: 1}["R", "phi", "xi"] == 1
    assert (KEY.kind, KEY.of, str(KEY), f"{OrderKey('M', 0)}") == ("R", ("phi", "xi"), "R[phi,xi]", "M[0]")
    assert sorted([KEY, OrderKey("C", "v", "v")])[0].kind == "C"


def test_a_kind_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="'Q' is not a kind"):
        OrderKey("Q", "a", "b")


def test_keys_stay_keys_in_trees_of_jax_in_pickles_and_in_files():
    (back,) = jax.tree.map(np.negative, keyed({("R", "phi", "xi"): np.ones(2)}))
    pool = Pool()
    saved = decoded(json.loads(json.dumps(pool.encoded(KEY))), pool.numbers())
    for key in (back, pickle.loads(pickle.dumps(KEY)), saved, *keys_of([("R", "phi", "xi")])):
        assert type(key) is OrderKey and key == KEY
    with pytest.raises(ValueError):
        decoded({"key": ["Q", "a"]}, pool.numbers())
