"""Refusals name what was declared: the term, the law, the average, and nothing that the engine made."""

import pytest
from sympy import Symbol, tanh

from derive import (
    Eq,
    Model,
    diag,
    drawn,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    sectors,
    spectrum,
    training_clock,
    trait,
    uniform,
    whole_positive,
)
from derive.codegen import solver_files
from derive.errors import DeclarationError
from derive.pipeline import derive_model
from numerics.bulk.settling import not_converged

T = parameter("T", default=3, domain=whole_positive)
D = sectors("D")
t = training_clock("t", steps=T)
S, W, g = goe("S", D), gaussian("W", D, D), normal("g", D)
x = field("x", D, t)


@pytest.mark.parametrize(
    ("matrix", "term"),
    [
        (S / D + outer(g, g) / D, r"the term 1/D\*S vanishes like 1/D"),
        (S + outer(g, g) / D**2, r"the term D\*\*\(-2\)\*outer\(g, g\) vanishes like 1/D"),
        (S + W.T @ W, r"the term W\.T @ W grows like D"),
        (W.T @ (S + goe("B", D) / D) @ W / D, r"the term 1/D\*B vanishes like 1/D"),
    ],
)
def test_the_term_that_grows_or_vanishes_is_named(matrix, term):
    with pytest.raises(DeclarationError, match=term):
        derive_model(Model(parameters=(), probe=spectrum(matrix)))


@pytest.mark.parametrize(
    ("law", "named"),
    [
        (x(t) / 2 + tanh(x(t)), r"the equation of x: tanh\(x\(t - 1\)\) is not linear"),
        (x(t) / 2 + S @ tanh(x(t)), r"the equation of x: tanh\(x\(t\)\) is not linear"),
    ],
)
@pytest.mark.parametrize("start", [g, drawn("start", D, uniform(-1, 1))])
def test_the_law_that_is_not_linear_is_named(law, named, start):
    """Neither the start, which is only drawn, nor the field that the engine makes for what a matrix acts on."""
    equations = [Eq(x(0), start), Eq(x(t + 1), law)]
    with pytest.raises(DeclarationError, match=named):
        _ = derive_model(Model(parameters=(T,), equations=equations, observe={"norm": mean(x(t) ** 2)})).limit


def test_an_observable_that_is_not_quadratic_is_named_where_a_start_is_drawn():
    equations = [Eq(x(0), drawn("start", D, uniform(-1, 1))), Eq(x(t + 1), x(t) / 2)]
    with pytest.raises(DeclarationError, match=r"the observable fourth contains mean\(x\(t\)\*\*4\)"):
        _ = derive_model(Model(parameters=(T,), equations=equations, observe={"fourth": mean(x(t) ** 4)})).limit


def test_what_the_engine_made_is_written_as_it_was_declared():
    """Made fields inside made fields, at the time at which they are named."""
    equations = [Eq(x(0), g), Eq(x(t + 1), S @ tanh(x(t) + S @ tanh(x(t)) / 2))]
    derivation = derive_model(Model(parameters=(T,), equations=equations))
    made = [f.field.name for f in derivation.system.training if f.field.name != "x"]
    assert len(made) == 4
    in_words = derivation.as_declared()
    for name in made:
        assert not any(other in in_words(f"the law of {name} at {name}(t - 1)") for other in made)
    assert in_words("vector1(t - 1) and xvector1") == "tanh(x(t - 1)) and xvector1"


def test_a_law_at_a_single_time_in_a_probe_is_refused_in_a_sentence():
    equations = [Eq(x(0), g), Eq(x(t + 1), S @ x(t))]
    law = tanh(x(2))
    with pytest.raises(DeclarationError, match="single time 2"):
        derive_model(Model(parameters=(T,), equations=equations, probe=spectrum(S + outer(law, law) / D)))


u = Symbol("u")


@pytest.mark.parametrize(
    ("entries", "name"),
    [
        (trait("s", D, density=1 + u, low=0, high=1), "the density of the trait s"),
        (tanh(g), "the Gaussian field g on a diagonal"),
    ],
)
def test_the_average_that_has_not_converged_is_named(entries, name):
    """A trait, or a field on a diagonal: what there is none of is not blamed."""
    code = solver_files(Model(parameters=(), probe=spectrum(S + diag(entries))))["bulk.py"]
    assert repr(name) in code
    kind = "trait" if "trait" in name else "field"
    refusal = str(not_converged(((kind, name),), "with 4096 values the bulk still moves by 1.0e-04"))
    assert f"the average over {name} has not converged" in refusal
    assert len(refusal) <= 300
    assert ("trait" in refusal) == (kind == "trait")
