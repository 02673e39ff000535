"""Python's own exceptions reach a user in words of the declaration, without names of classes and addresses."""

from __future__ import annotations

import re

import pytest

from derive.errors import DeclarationError
from derive.inputs import loading
from derive.support.plain_words import in_plain_words

HEADER = """from sympy import sqrt
import numpy as np
from derive import *
k = parameter("k", default=2.0)
D = sectors("D")
T = parameter("T", default=2, domain=whole_positive)
t = training_clock("t", steps=T)
M, u, v = goe("M", D), normal("u", D), field("v", D, t)
"""
SLIPS = {
    "x = trait('s', D, 3, values=[1])": "trait(...) is given 3 arguments, where it takes 2 at most",
    "x = trait('s', D, values=np.array(2.0))": "values=2.0 is one number",
    "x = normal('w')": "normal(...) lacks sector; write it as in normal('v', D)",
    "x = Eq(v(t))": "Eq(...) lacks value",
    "x = v(t, t)": "a field is given 2 arguments, where it takes 1",
    "x = t(0)": "a clock is called like a function",
    "x = M(t)(t)": "M does not change in time",
    "x = spectrum.T": "a function has no T",
    "x = 'D'.T": "a text has no T",
    "x = outer(u)": "outer(...) lacks right",
    "x = training_clock('t', T, steps=T)": "training_clock(...) is given steps twice",
    "x = parameter('q', defualt=1)": "parameter(...) has no argument defualt",
    "x, y = sectors('D', N=1, P=1)": "the 2 names on the left do not match the number of values on the right",
    "x = past_sum(2.5, t)": "past_sum takes a function of the earlier time",
    "x = normal('w', mean)": "mean is not a sector",
    "x = [1, 2] + 3": "cannot be joined",
    "x = Model(parameters=np.array(2.0))": "parameters=2.0: give a list",
    "x = undefined(t)": "the name undefined is not defined; define it above this line",
}
INTERNAL = re.compile(r"\w+Error\b|object at|NoneType|<class|<function|0x[0-9a-f]|__\w+__|positional|\bmend\b")


@pytest.mark.parametrize("line", SLIPS)
def test_a_slip_is_told_in_plain_words(line, declared):
    path = declared(HEADER + line + "\n")
    with pytest.raises(DeclarationError) as caught:
        loading.load_model(str(path))
    told = str(caught.value).replace(str(path), "")
    assert SLIPS[line] in told and told.startswith(", line 9"), told
    assert not INTERNAL.search(told), told


@pytest.mark.parametrize("failing", ["None.x", "len(3)", "{}['a']", "[][1]", "-'a'", "'a' < 1", "{[]: 1}"])
def test_no_exception_names_a_class_of_python(failing):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever Python raises
        eval(failing)  # noqa: S307
    told = in_plain_words(caught.value)
    assert told and not re.search(r"object|NoneType|__|'int'", told), told
