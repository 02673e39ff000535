"""Bad declarations: one clear sentence that names the place and what to try, and never a traceback."""

from __future__ import annotations

import pytest
import sympy as sp

from derive import diag, gaussian, normal, outer, parameter, sectors
from derive.codegen import generate_files
from derive.errors import DeclarationError
from derive.inputs.loading import load_model
from derive.language.expressions import plain
from derive.language.traversal import ByKind
from derive.language.vectors import PAST, Each, PastSum, Softmax, Total
from derive.pipeline import derive_model
from derive.printing import text_of_record

HEADER = """
import sympy
from sympy import sqrt, tanh, exp
from derive import *
b = parameter("b", default=0.5)
nu = parameter("nu", default=2.0, domain=positive)
T = parameter("T", default=3, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
other = training_clock("other", steps=T)
classes = axis("classes", C)
M0, W0 = goe("M0", D), gaussian("W0", N, D)
v, n = normal("v", D), normal("n", N)
x, y = fields("x y", D, t)
h = field("h", N, t)
M = weights("M", D, D, t)
START = [Eq(x(0), v), Eq(M(0), M0), Eq(M(t + 1), M(t) + outer(x(t), x(t)) / D)]
def model(*equations, **more):
    return Model(parameters=(b, nu, T), equations=equations, **more)
"""

BAD = {
    "undefined field": ("model(*START, Eq(x(t + 1), b * y(t)))", "y is used but has no equation"),
    "field defined twice": ("model(*START, Eq(x(t + 1), x(t)), Eq(x(t + 1), v))", "x is defined twice"),
    "start defined twice": ("model(*START, Eq(x(0), v), Eq(x(t + 1), x(t)))", "defined twice"),
    "no starting value": ("model(Eq(x(t + 1), x(t)))", "no starting value"),
    "start without a rule": ("model(Eq(x(0), v))", "no rule for later times"),
    "mixed sectors": ("model(*START, Eq(x(t + 1), x(t) + n))", "mixes sectors"),
    "wrong side of a matrix": ("model(*START, Eq(x(t + 1), W0 @ x(t) / sqrt(D)))", "mixes sectors"),
    "wrong argument of a matrix": ("model(Eq(h(t), W0 @ n / sqrt(D)))", "takes vectors over D"),
    "matrix added to a scalar": ("model(*START, Eq(x(t + 1), (M0 + 1) @ x(t)))", "matrices add to matrices"),
    "shapes that do not add": ("model(*START, Eq(x(t + 1), (M0 + W0) @ x(t)))", "cannot add"),
    "equal-time cycle": (
        "model(Eq(x(t), v + y(t)), Eq(y(t), M0 @ x(t)))",
        "non-causal equal-time cycle: .*x -> y|y -> x",
    ),
    "future value": ("model(*START, Eq(x(t + 1), x(t + 2)))", "future"),
    "elementwise square of disorder": ("model(*START, Eq(x(t + 1), (M0 @ x(t))**2))", "enters nonlinearly"),
    "law of disorder": ("model(*START, Eq(x(t + 1), tanh(M0 @ x(t))))", "enters nonlinearly; define a field"),
    "power of a matrix": ("model(*START, Eq(x(t + 1), M0**2 @ x(t)))", "enters nonlinearly"),
    "entrywise product": ("model(*START, Eq(x(t + 1), (M0 * M0) @ x(t)))", "use @ for the matrix product"),
    "noise that grows": ("model(*START, Eq(x(t + 1), W0.T @ (W0 @ x(t))))", "the equation of x .*divide it by"),
    "spike of the wrong size": (
        "model(*START[:2], Eq(M(t + 1), M(t) + outer(x(t), x(t))), Eq(x(t + 1), M(t) @ x(t)))",
        "the update of M .*divide it by D",
    ),
    "product in an update": (
        "model(*START[:2], Eq(M(t + 1), M(t) @ M(t)), Eq(x(t + 1), M(t) @ x(t)))",
        "product of matrices",
    ),
    "value from the future in an update": (
        "model(*START[:2], Eq(M(t + 1), M(t) + outer(x(t + 1), x(t + 1)) / D), Eq(x(t + 1), M(t) @ x(t)))",
        "or earlier",
    ),
    "field without its time": ("model(*START, Eq(x(t + 1), x + v))", r"write x\(t\)"),
    "time on a field without a clock": ("model(*START, Eq(x(t + 1), v(t)))", "has no clock"),
    "another clock": (
        "model(*START, Eq(x(t + 1), field('q', D, other)(other)), Eq(field('q', D, other)(other), v))",
        "another clock",
    ),
    "undeclared symbol": ("model(*START, Eq(x(t + 1), sympy.Symbol('kappa') * x(t)))", "kappa .*is not declared"),
    "unlisted parameter": ("Model(parameters=(b,), equations=[*START, Eq(x(t + 1), x(t))])", "not listed"),
    "fixed time on the right": ("model(*START, Eq(x(t + 1), x(2)))", "relative to the clock"),
    "rectangular probe": ("model(probe=spectrum(W0))", "probe W.T @ W"),
    "probe that is not symmetric": ("model(probe=spectrum(gaussian('Q', D, D) / sqrt(D)))", "not symmetric"),
    "probe before the end": ("model(*START, Eq(x(t + 1), x(t)), probe=spectrum(M(1)))", "after the last step"),
    "fresh matrix without its time": ("model(Eq(h(t), gaussian('X', N, D, fresh=t) @ v / sqrt(D)))", r"write X\(t\)"),
    "labels in the old spelling": ("field('q', D, t, labels=3)", "axes=c"),
    "observable that is a vector": ("model(*START, Eq(x(t + 1), x(t)), observe={'o': x(t)})", "mean(...)"),
    "observable at a fixed time": (
        "model(*START, Eq(x(t + 1), x(t)), observe={'o': mean(x(t) * x(0))})",
        "observables are followed in time",
    ),
    "observable with a size": (
        "model(*START, Eq(x(t + 1), x(t)), observe={'o': D * mean(x(t)**2)})",
        "size or on time",
    ),
    "mean of a number": ("model(observe={'o': mean(2)})", "no field to average"),
    "name that Python owns": ("model(Eq(field('__class__', D), v))", "Python reads this name as another"),
    "name that Python reads as another": ("model(Eq(field('\u00b5', D), v))", "Python reads this name as another"),
    "keyword as a name": ("parameter('lambda', default=1.0)", "not a Python name"),
    "same name twice": ("model(Eq(field('b', D), v), observe={'o': b * mean(v**2)})", "used twice"),
    "default out of its domain": ("parameter('q', default=-1.0, domain=positive)", "default"),
    "ratio that is not a parameter": ("sectors('A', B='beta')[0]", "is not a parameter"),
    "steps that are not whole": ("training_clock('k', steps=b)", "whole-number parameter"),
    "labels on one side only": ("outer(field('q', D, t, axes=classes)(t), v)", "the axes of the first are classes"),
    "function without code": ("model(*START, Eq(x(t + 1), sympy.besselj(2, x(t))))", "array code"),
    "sum inside a sum": (
        "model(*START, Eq(x(t + 1), past_sum(lambda s: past_sum(lambda q: x(q), t), t)))",
        "inside another",
    ),
    "weights from a mean": (
        "model(*START[:2], Eq(x(t + 1), x(t)), Eq(M(t + 1), mean(x(t)**2) * M(t)))",
        "multiplies weights by a mean",
    ),
    "products with changing weights in a sum": (
        "model(*START, Eq(x(t + 1), past_sum(lambda s: M(s) @ x(s), t)))",
        "the equation of x has products with M, which changes in time, in a sum over earlier times",
    ),
    "weights of later": ("model(*START, Eq(x(t + 1), M(t + 2) @ x(t)))", "use an earlier time"),
    "mean of too many values at two times": (
        "model(*START, Eq(x(t + 1), past_sum(lambda s: mean(x(s) * x(t) * v) * x(s), t)))",
        "is of values at s and at another time",
    ),
    "value of now in a sum over earlier times": (
        "model(*START, Eq(x(t + 1), v), Eq(y(t), past_sum(lambda s: mean(x(s) * v) * x(t), t)))",
        r"x\(t\) occurs in a sum over earlier times s",
    ),
    "imaginary number": ("model(*START, Eq(x(t + 1), sympy.I * x(t)))", "the equation of x: .* not real"),
    "infinite number": (
        "model(*START, Eq(x(t + 1), x(t)), observe={'o': mean(v**2) * sympy.oo})",
        "observable o: .* not finite",
    ),
    "imaginary variance": ("model(Eq(field('q', D), goe('Q', D, variance=sympy.I) @ v))", "I is not real"),
    "negative variance": (
        "model(Eq(field('q', D), goe('Q', D, variance=-2) @ v))",
        "matrix Q: its variance .* negative",
    ),
    "negative ratio": (
        "model(observe={'o': mean(normal('q', sectors('D', P=-2)[1])**2)})",
        "sector P: its ratio -2 must be positive",
    ),
    "nothing random in the probe": (
        "model(Eq(M(0), 0), Eq(M(t + 1), M(t) + outer(x(t), x(t)) / D), Eq(x(0), v), Eq(x(t + 1), x(t)), "
        "probe=spectrum(M(T) @ M(T)))",
        "starts from 0",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_declaration_is_one_clear_sentence(case, declared):
    code, message = BAD[case]
    path = declared(f"{HEADER}\nMODEL = {code}\n")
    with pytest.raises(DeclarationError, match=message) as caught:
        generate_files(load_model(str(path)))
    assert "\n" not in str(caught.value)


def test_declarations_with_equal_names_and_other_parameters_do_not_mix(declared):
    """SymPy caches expressions by equality, so symbols of two declarations differ when their meanings do."""
    text = (
        "from derive import *\nq = parameter('q', default={}, domain=positive)\n"
        "D, N = sectors('D', N=q)\nA = gaussian('A', N, D)\n"
        "MODEL = Model(parameters=(q,), probe=spectrum(A.T @ A / N))\n"
    )
    first, second = (load_model(str(declared(text.format(d), f"m{i}.py"))) for i, d in enumerate((2.0, 3.0)))
    assert first.parameters[0].default == 2.0 and second.parameters[0].default == 3.0
    assert generate_files(first)["__init__.py"] != generate_files(second)["__init__.py"]


def test_decimals_are_the_fractions_they_are_written_as(declared):
    """Otherwise 0.9 ** T would be a decimal to a symbolic power, which no elimination gets through."""
    code = (
        "MODEL = model(Eq(x(0), v), Eq(x(t + 1), b * M(t) @ x(t)), Eq(M(0), M0), "
        "Eq(M(t + 1), {} * M(t) + outer(x(t), x(t)) / D), probe=spectrum(M(T)))"
    )
    decimal, fraction = (
        text_of_record(
            derive_model(load_model(str(declared(f"{HEADER}\n{code.format(factor)}\n", f"m{i}.py")))).first.pencil
        )
        for i, factor in enumerate(("0.9", "sympy.Rational(9, 10)"))
    )
    assert decimal == fraction
    assert "z - (9/10)^T R[psi0, M0 psi0](z)" in decimal


def test_the_rule_of_the_nearest_class_holds():
    """PastSum is a Sum, Softmax a Total: what has no rule of its own has that of the class it is made from."""

    @ByKind
    def told(node: sp.Basic, more: str) -> str:
        return f"any {more}"

    @told.on(sp.Sum, Total)
    def _(node: sp.Basic, more: str) -> str:
        return f"sum {more}"

    @told.on(Softmax)
    def _(node: Softmax, more: str) -> str:
        return f"softmax {more}"

    kinds = (PastSum, Total, Each, Softmax, sp.Add)
    nodes = [PastSum(PAST, (PAST, 0, 3)), *(kind(sp.Symbol("x")) for kind in kinds[1:4]), sp.Symbol("x") + 1]
    assert [told(node, "x") for node in nodes] == ["sum x", "sum x", "sum x", "softmax x", "any x"]


def test_rules_that_are_added_to_a_copy_leave_the_function_as_it_is():
    @ByKind
    def told(node: sp.Basic) -> str:
        return "any"

    copy = told.extended()
    copy.on(sp.Symbol)(lambda node: "symbol")
    assert [told(sp.Symbol("x")), copy(sp.Symbol("x")), copy(sp.S.One)] == ["any", "symbol", "any"]


def test_a_matrix_is_changed_in_every_expression():
    D = sectors("D")
    a, b, x, y = (normal(name, D) for name in "abxy")
    gamma, delta = parameter("gamma", default=1.0), parameter("delta", default=1.0)
    W = gaussian("W", D, D)
    before = gamma * W @ outer(a, x) @ diag(a * x) + gamma / D * outer(x, a)
    after = delta * W @ outer(b, y) @ diag(b * y) + delta / D * outer(y, b)
    new = {a(): b(), x(): y(), gamma: delta}
    assert before.mapped(lambda e: e.xreplace({plain(k): plain(v) for k, v in new.items()})) == after
