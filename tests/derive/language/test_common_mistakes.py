"""Slips that are easily made in a declaration: each is refused with its equation, its line and the cure.

No sentence is pinned: each case names the words without which the sentence would not help, and no message may show
what only the engine knows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sympy
from click.testing import CliRunner

import derive
from derive.cli import main
from derive.codegen import declaration_digest, generate_files
from derive.errors import DeclarationError
from derive.inputs.loading import load_model
from derive.language.expressions import Condition, Expression
from derive.language.symbols import exact
from derive.pipeline import derive_model

HEADER = """
import math
import numpy as np
import sympy
from sympy import Symbol, sqrt, tanh
from derive import *
nu = parameter("nu", default=2.0, domain=positive)
eta = parameter("eta", default=0.5)
T = parameter("T", default=3, domain=whole_positive)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
M0, W0, J = goe("M0", D), gaussian("W0", N, D), gaussian("J", D, D, variance=1 / D)
v, n = normal("v", D), normal("n", N)
x, y = fields("x y", D, t)
h = field("h", N, t)
M, W = weights("M", D, D, t), weights("W", N, D, t)
STILL = [Eq(x(0), v), Eq(x(t + 1), x(t))]
def model(*equations, **more):
    return Model(parameters=(nu, eta, T), equations=equations, **more)
"""

INTERNAL = re.compile(
    r"FieldAt|WeightsAt|DisorderAt|DataAt|Atom\b|Dyad|Evolving|Dummy|_Named|rows=|transposed=|Apply\(|Mean\(|Project\("
    r"|<class|<function|0x[0-9a-f]{4}|vector\d|_input\b|sympify|Sympify|zoo|NoneType|Immutable"
)
"""What a declaration never says."""


def law(right: str) -> str:
    """A model with one field, whose update has this right side; its equation is on the line marked."""
    return f"MODEL = model(Eq(x(0), v),\n    Eq(x(t + 1), {right}),  # here\n)"


def update(right: str) -> str:
    """A model with weights that drive a field, and this update of them."""
    return (
        "MODEL = model(Eq(x(0), v), Eq(M(0), M0),\n    Eq(x(t + 1), M(t) @ x(t)),\n"
        f"    Eq(M(t + 1), {right}),  # here\n    probe=spectrum(M(T)),\n)"
    )


def equation(text: str, before: str = "*()", probe: str = "None") -> str:
    """A model with this equation beside those of a field that stays."""
    return f"MODEL = model(*STILL, {before},\n    {text},  # here\n    probe={probe},\n)"


def probed(probe: str) -> str:
    """A model with weights that stay, and this probe."""
    return f"MODEL = model(*STILL, Eq(M(0), M0), Eq(M(t + 1), M(t)), probe={probe})  # here"


def statement(text: str) -> str:
    return f"{text}  # here\nMODEL = model(*STILL)"


OF_X, OF_M = "the equation of x", "of M"
FOREIGN = {
    "np.tanh(x(t))": "from sympy import tanh",
    "J @ np.tanh(eta * x(t))": "from sympy import tanh",
    "np.maximum(x(t), 0)": "from sympy import Max",
    "np.arctan(x(t))": "from sympy import atan",
    "np.where(x(t) > 0, x(t), 0)": "Piecewise",
    "np.mean(x(t) ** 2) * x(t)": "mean(...) from derive",
    "np.sum(x(t)) * x(t)": "mean(...) from derive",
    "np.dot(J, x(t))": "@",
    "np.exp(eta) * x(t)": "from sympy import exp",
    "J @ x(t) * np.sqrt(D)": "from sympy import sqrt",
    "math.tanh(x(t))": "from sympy import tanh",
    "math.tanh(eta * x(t))": "from sympy import tanh",
    "J @ x(t) / math.sqrt(D)": "from sympy import sqrt",
    "math.exp(eta) * x(t)": "from sympy import exp",
    "__import__('scipy.special').special.erf(x(t))": "sympy",
    "max(x(t), 0)": "from sympy import Max",
    "x(t) if x(t) > 0 else 0": "Max",
    "round(x(t))": "not symbols",
    "sum(x(t))": "mean(...)",
    "sum(x(s) for s in range(t))": "past_sum",
    "sum(x(s) for s in range(t + 1))": "past_sum",
    "x(t).mean() * x(t)": "mean(...)",
    "(x(t) + v).mean() * x(t)": "mean(...)",
    "x(t) if x(t) + v > 0 else v": "Piecewise",
    "max(0, x(t) + v)": "from sympy import Max",
    "min(eta, 1) * x(t)": "from sympy import Min",
    "np.where(x(t) + v > 0, 1, 0)": "Piecewise",
    "np.sqrt(2 * eta) * x(t)": "from sympy import sqrt",
    "x(t) / math.sqrt(2 * D)": "from sympy import sqrt",
    "math.floor(x(t) + v)": "from sympy import floor",
    "int(2 * eta) * x(t)": "not symbols",
    "(x(t) + v) @ (x(t) + v)": "outer(",
    "(x(t) + v) @ (eta + 1)": "overlap(",
    "(x(t) + v) @ J": "J.T @ v",
    "(x(t) + v) ^ 2": "**",
    "2 ^ (x(t) + v)": "**",
    "(x(t) + v) | v": "+ - * /",
    "~(x(t) + v)": "+ - * /",
    "(x(t) + v) + None": "+ - * /",
    "[1, 2] * (x(t) + v)": "+ - * /",
    "(x(t) > 0) * v": "+ - * /",
    "'a' + x(t)": "quotes",
    "math.tanh(M) * x(t)": "M(t)",
    "np.mean(tanh(x(t)) ** 2) * x(t)": "mean(...) from derive",
    "np.dot(tanh(x(t)), sqrt(x(t))) * v": "overlap(",
    "(lambda a: np.sum(a + 1))(v) * v": "mean(...) from derive",
}
OF_FUNCTIONS = {
    "tanh(x(t)).T": "outer(",
    "(1 - tanh(x(t)) ** 2).mean() * v": "mean(...)",
    "np.exp(sqrt(eta)) * x(t)": "from sympy import exp",
    "math.tanh(tanh(x(t)))": "from sympy import tanh",
    "x(t) if tanh(x(t)) > 0 else v": "Piecewise",
    "max(tanh(x(t)), 0)": "from sympy import Max",
    "tanh(x(t)) @ tanh(x(t))": "outer(",
    "tanh(x(t)) ^ 2": "**",
    "tanh(x(t)) + None": "+ - * /",
    "sum(tanh(x(t)))": "mean(...)",
    "np.maximum(tanh(x(t)), 0)": "from sympy import Max",
}
"""Functions are of SymPy's own classes. Python's words about them are put right where a file is read."""
JAX = {
    "jnp.tanh(x(t))": "from sympy import tanh",
    "jnp.tanh(x(t) + v)": "from sympy import tanh",
    "jnp.tanh(2 * eta) * x(t)": "from sympy import tanh",
    "jnp.where(x(t) > 0, x(t), 0)": "Piecewise",
    "jax.nn.relu(x(t))": "Max(v, 0)",
    "jax.nn.relu(x(t) + v)": "Max(v, 0)",
    "jax.lax.tanh(eta) * x(t)": "from sympy import tanh",
    "jnp.tanh(J) @ x(t)": "the matrix J",
}
SLIPS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{right: (law(right), (OF_X, cure)) for right, cure in FOREIGN.items()},
    **{
        right: ("import jax\nimport jax.numpy as jnp\n" + law(right), (OF_X, cure)) for right, cure in JAX.items()
    },
    "scipy": ("import scipy.special\n" + law("scipy.special.erf(x(t))"), (OF_X, "from sympy import erf")),
    "function taken out of numpy": ("from numpy import tanh as f\n" + law("f(x(t))"), (OF_X, "sympy")),
    # products
    "matrix times vector": (law("J * x(t)"), (OF_X, "J", "x(t)", "@")),
    "multiple of a matrix times vector": (law("eta * J * x(t)"), (OF_X, "@")),
    "vector times matrix": (law("x(t) * J"), (OF_X, "@")),
    "vector before matrix": (law("x(t) @ J"), (OF_X, "J.T @ v")),
    "number before matrix": (law("2 @ J"), (OF_X, "J.T @ v")),
    "matrix on a number": (law("J @ 2"), (OF_X, "not a vector", "*")),
    "time on a matrix that stays": (law("J(t) * x(t)"), (OF_X, "write J", "@")),
    "weights times vector": (equation("Eq(y(t), M(t) * x(t))"), ("the equation of y", "@")),
    "weights without a time": (equation("Eq(y(t), M @ x(t))"), ("the equation of y", "M(t)")),
    "weights without a time, scaled": (equation("Eq(y(t), eta * M @ x(t))"), ("the equation of y", "M(t)")),
    "weights in square brackets": (equation("Eq(y(t), M[t] @ x(t))"), ("the equation of y", "M(t)")),
    "weights without a time in an update": (update("M + eta / D * outer(x(t), x(t))"), (OF_M, "M(t)")),
    "weights without a time on the left": (equation("Eq(M, M0)"), ("M(t)",)),
    "transpose of a vector": (update("M(t) + eta / D * x(t) @ x(t).T"), (OF_M, "outer(")),
    "vector on a vector": (update("M(t) + eta / D * x(t) @ x(t)"), (OF_M, "outer(")),
    "sums on sums": (update("M(t) + (x(t) + v) @ (x(t) + v) / D"), (OF_M, "outer(")),
    "square in an update": (update("M(t) + eta / D * x(t) * x(t)"), (OF_M, "outer(")),
    "square before the weights": (update("eta / D * x(t) * x(t) + M(t)"), (OF_M, "outer(")),
    "square minus the weights": (update("eta / D * x(t) * x(t) - M(t)"), (OF_M, "outer(")),
    "square alone in an update": (update("x(t) ** 2"), (OF_M, "outer(")),
    "numpy.outer": (update("M(t) + eta / D * np.outer(x(t), x(t))"), (OF_M, "outer(a, b) from derive")),
    "transpose alone": (law("x(t).T"), (OF_X, "outer(")),
    "transpose of a sum": (law("(x(t) + v).T"), (OF_X, "outer(")),
    "scalar product": (law("(x(t) @ x(t)) * x(t)"), (OF_X, "overlap(")),
    "matrix as a value": (law("J"), (OF_X, "@")),
    "outer as a value": (law("outer(x(t), x(t))"), (OF_X, "@")),
    "number for weights": (update("1"), (OF_M, "give a matrix")),
    "identity added": (law("(J - 1) @ x(t)"), (OF_X, "plus=")),
    # functions and operators of matrices
    "tanh of a matrix": (law("tanh(J) @ x(t)"), (OF_X, "the matrix J", "@")),
    "tanh of weights": (update("tanh(M(t))"), (OF_M, "the matrix M(t)", "@")),
    "numpy's tanh of a matrix": (law("np.tanh(J) @ x(t)"), (OF_X, "the matrix J", "@")),
    "math's tanh of a matrix": (law("math.tanh(J) @ x(t)"), (OF_X, "the matrix J", "@")),
    "mean of a matrix": (law("mean(J) * x(t)"), (OF_X, "the matrix J")),
    "entry of a matrix": (law("J[0] @ x(t)"), (OF_X, "the matrix J")),
    "condition on a matrix": (law("x(t) if J else v"), (OF_X, "the matrix J")),
    "power of a matrix": (law("J ** 2 @ x(t)"), (OF_X, "@")),
    "quotient by a matrix": (law("x(t) / J"), (OF_X, "the matrix J")),
    "matrix transposed by a method": (law("J.transpose() @ x(t)"), (OF_X, "J.T")),
    "matrix by a method": (law("J.dot(x(t))"), (OF_X, "@")),
    "floor of sizes": (update("M(t) + eta // D * outer(x(t), x(t))"), (OF_M, "write /")),
    "rest of sizes": (law("x(t) * (eta % D)"), (OF_X, "write /")),
    "hat": (law("x(t) ^ 2"), (OF_X, "**")),
    "hat on a parameter": (law("eta ^ 2 * x(t)"), (OF_X, "**")),
    "hat on a sum": (law("(x(t) + v) ^ 2"), (OF_X, "**")),
    "hat on a matrix": (law("(J ^ 2) @ x(t)"), (OF_X, "@")),
    "ampersand": (law("x(t) & 2"), (OF_X, "+ - * /")),
    # equations
    "SymPy's Eq": ("MODEL = model(Eq(x(0), v), sympy.Eq(x(t + 1), x(t)))", ("SymPy's", "x(t + 1)", "import Eq")),
    "SymPy's Eq that holds": ("MODEL = model(Eq(x(0), v), sympy.Eq(x(t), x(t)))", ("Eq from derive",)),
    "SymPy's Eq of matrices": (equation("sympy.Eq(M(0), M0)"), ("SymPy's Eq", "import Eq")),
    "comparison": ("MODEL = model(Eq(x(0), v), x(t + 1) == x(t))", ("==", "Eq(left, right)")),
    "pair": ("MODEL = model(Eq(x(0), v), (x(t + 1), x(t)))", ("entry 2", "Eq(")),
    "text as an equation": ("MODEL = model(Eq(x(0), v), 'x(t + 1) = x(t)')", ("entry 2", "Eq(")),
    "list of equations inside": ("MODEL = model(STILL)", ("star", "[*")),
    "dictionary of equations": ("MODEL = Model(parameters=(T,), equations={x(0): v})", ("equations", "list")),
    "one equation": ("MODEL = Model(parameters=(T,), equations=STILL[0])", ("equations", "list")),
    "one parameter": ("MODEL = Model(parameters=T, equations=STILL)", ("parameters", "list")),
    "dictionary of parameters": ("MODEL = Model(parameters={'T': 3}, equations=STILL)", ("parameters", "list")),
    "no parameters": ("MODEL = Model(equations=STILL)", ("parameters=",)),
    "misspelt argument": ("MODEL = Model(parameters=(T,), equation=STILL)", ("did you mean equations",)),
    "parameter twice": ("MODEL = Model(parameters=(T, T), equations=STILL)", ("T is listed twice",)),
    "one side only": (equation("Eq(y(t))"), ("the equation of y", "Eq(x(t + 1), x(t))")),
    "expression on the left": (equation("Eq(2 * y(t), x(t))"), ("2*y(t)", "left side")),
    "difference on the left": (equation("Eq(y(t + 1) - y(t), x(t))"), ("left side", "right side")),
    "product on the left": (equation("Eq(J @ y(t), x(t))"), ("J @ y(t)", "left side")),
    "random matrix on the left": (equation("Eq(J, M0)"), ("Eq(J", "left side")),
    "mean on the left": (equation("Eq(mean(x(t)), 1)"), ("mean(x(t))", "left side")),
    "parameter on the left": (equation("Eq(eta, 1)"), ("eta", "left side")),
    "text on the left": (equation("Eq('y', 1)"), ("left side",)),
    "time before the clock": (equation("Eq(y(t - 1), x(t))"), ("the equation of y", "t + 1")),
    "normal vector on the left": (equation("Eq(v, 2)"), ("the equation of v", "takes no equation")),
    "two equations": (equation("Eq(x(t + 1), v)"), (OF_X, "defined twice", "keep one")),
    "two starts": (equation("Eq(x(0), v)"), (OF_X, "x(0) is defined twice")),
    "two updates": (equation("Eq(M(0), M0), Eq(M(t + 1), M(t)), Eq(M(t + 1), M0)"), ("M is defined twice",)),
    "field without an equation": (law("y(t)"), (OF_X, "y is used", "Eq(y(t), ...)")),
    "weights without equations": (law("M(t) @ x(t)"), (OF_X, "M is used", "Eq(M(0), ...)")),
    "probed weights without equations": ("MODEL = model(probe=spectrum(M(T)))", ("M is used", "Eq(M(0), ...)")),
    "start alone": (equation("Eq(y(0), v)"), ("the equation of y", "Eq(y(t + 1), ...)")),
    "no start": (equation("Eq(y(t + 1), v)"), ("the equation of y", "Eq(y(0), ...)")),
    # times and names
    "field without its time": (law("x + v"), (OF_X, "x(t)")),
    "field without its time inside": (law("J @ tanh(x)"), (OF_X, "x(t)")),
    "field without its time in outer": (update("M(t) + outer(x, x) / D"), (OF_M, "x(t)")),
    "field without its time in a mean": (law("mean(x**2) * v"), (OF_X, "x(t)")),
    "square brackets": (law("x[t]"), (OF_X, "x(t)")),
    "time given twice": (law("x(t)(t)"), (OF_X, "once")),
    "half a step": (law("x(t - 0.5)"), (OF_X, "x(t - 1/2)", "t - 1")),
    "twice the time": (law("x(2 * t)"), (OF_X, "x(2*t)", "t - 1")),
    "time as a text": (law("x('t')"), (OF_X, "quotes")),
    "last time": (law("x(T)"), (OF_X, "relative to the clock")),
    "later time": (law("x(t + 2)"), (OF_X, "future", "earlier")),
    "same time": (law("x(t + 1)"), (OF_X, "cycle", "t - 1")),
    "two equations in a ring": (
        equation("Eq(y(t), W0.T @ h(t) / sqrt(D)), Eq(h(t), W0 @ y(t) / sqrt(D))"),
        ("cycle", "y", "h", "t - 1"),
    ),
    "SymPy's symbol": (law("Symbol('kappa') * x(t)"), (OF_X, "kappa = parameter('kappa'")),
    "SymPy's symbol in an update": (update("M(t) + Symbol('kappa') / D * outer(x(t), x(t))"), (OF_M, "parameter(")),
    "SymPy's symbol of a known name": (law("Symbol('eta') * x(t)"), (OF_X, "Symbol('eta')")),
    "SymPy's symbol in a variance": (
        statement("gaussian('q', D, D, variance=Symbol('g') / D)"),
        ("matrix q", "depends on g", "parameters"),
    ),
    "parameter that is not listed": (law("parameter('q', default=1.0) * x(t)"), (OF_X, "q", "parameters=(")),
    "function with a name only": (law("sympy.Function('f')(x(t))"), (OF_X, "f", "formula")),
    "derivative": (law("sympy.Derivative(x(t), t)"), (OF_X, "x(t + 1)")),
    "function without code": (law("sympy.besselj(2, x(t))"), (OF_X, "besselj", "NumPy and JAX")),
    "condition as a value": (law("x(t) > 0"), (OF_X, "Piecewise")),
    "two fields of one name": (equation("Eq(field('x', N, t)(t), n)"), ("the name x", "over D", "over N", "rename")),
    "field named like a parameter": (
        equation("Eq(field('eta', D, t)(t), eta * v)"),
        ("the name eta", "parameter", "field", "rename"),
    ),
    "two parameters of one name": (law("parameter('eta', default=1.0) * eta * x(t)"), ("the name eta", "rename")),
    "keyword": (statement("parameter('lambda', default=1.0)"), ("lambda", "lam")),
    "name with a space": (statement("field('my x', D, t)"), ("'my x'", "underscores")),
    # sizes
    "no size in an update": (update("M(t) + eta * outer(x(t), x(t))"), ("the update of M", "divide it by D")),
    "half a size in an update": (
        update("M(t) + eta / sqrt(D) * outer(x(t), x(t))"),
        ("the update of M", "divide it by sqrt(D)"),
    ),
    "a size too much in an update": (
        update("M(t) + eta / D**2 * outer(x(t), x(t))"),
        ("the update of M", "multiply it by D"),
    ),
    "no size in an update that only the probe sees": (
        equation(
            "Eq(W(t + 1), W(t) + outer(h(t), x(t)))",
            before="Eq(W(0), W0), Eq(h(t), W0 @ x(t) / sqrt(D))",
            probe="spectrum(W(T).T @ W(T) / N)",
        ),
        ("the update of W", "divide it by sqrt(D)"),
    ),
    "sizes that do not go together": (
        update("M(t) + (eta + 1 / D) * outer(x(t), x(t))"),
        ("the update of M", "power of a size"),
    ),
    "no size for a product": (equation("Eq(h(t), W0 @ x(t))"), ("the equation of h", "divide it by sqrt(D)")),
    "a size too much for a product": (equation("Eq(h(t), W0 @ x(t) / D)"), ("the equation of h", "multiply it by")),
    "a size in a sum": (law("D * x(t)"), (OF_X, "divide it by D")),
    "a size in a law": (law("tanh(D * x(t))"), (OF_X, "the size D", "ratios")),
    "no size in the probe": ("MODEL = model(probe=spectrum(W0.T @ W0))  # here", ("probed matrix", "divide it by D")),
    # vectors that need a field of their own
    "product in a mean": (law("mean(x(t) * (J @ x(t))) * x(t)"), (OF_X, "J @ x(t)", "field of its own")),
    "product in an overlap": (law("overlap(x(t), J @ x(t)) * x(t)"), (OF_X, "J @ x(t)", "field of its own")),
    "product in a mean of an update": (
        update("M(t) + mean(x(t) * (J @ x(t))) / D * outer(x(t), x(t))"),
        (OF_M, "J @ x(t)", "field of its own"),
    ),
    "product in an observable": (
        "MODEL = model(*STILL, observe={'energy': mean(x(t) * (J @ x(t)))})",
        ("energy", "J @ x(t)", "field of its own"),
    ),
    "product in outer": (update("M(t) + outer(M(t) @ x(t), x(t)) / D"), (OF_M, "field of its own")),
    "function of a product": (law("tanh(J @ x(t))"), (OF_X, "Eq(u(t), J @ x(t))")),
    "square of a product": (law("(J @ x(t)) ** 2"), (OF_X, "Eq(u(t), J @ x(t))")),
    # weights
    "weights from an outer product": (equation("Eq(M(0), outer(v, v) / D), Eq(M(t + 1), M(t))"), (OF_M, "M(0)")),
    "transpose in an update": (update("M(t).T"), (OF_M, "M(t).T", "outer products")),
    "product in an update": (update("M(t) - eta * M(t) @ M(t)"), (OF_M, "product of matrices")),
    "mean times weights": (update("mean(x(t) ** 2) * M(t)"), (OF_M, "mean", "numbers, parameters")),
    "weights of an earlier time": (update("M(t - 1)"), (OF_M, "M(t - 1)")),
    # what is declared before
    "clock without steps": (statement("training_clock('k')"), ("steps=T",)),
    "steps as a number": (statement("training_clock('k', steps=10)"), ("steps", "whole-number parameter")),
    "sector as a text": (statement("field('q', 'D', t)"), ("q", "sectors('D')")),
    "no sector": (statement("field('q')"), ("field('x', D, t)",)),
    "clock for a sector": (statement("field('q', t)"), ("q", "t is not a sector")),
    "steps for a clock": (statement("field('q', D, T)"), ("q", "T is not a clock", "training_clock")),
    "weights over texts": (statement("weights('q', 'D', 'D', t)"), ("q", "sectors('D')")),
    "weights without a clock": (statement("weights('q', D, D)"), ("weights('W', N, D, t)",)),
    "steps as a clock of weights": (statement("weights('q', D, D, T)"), ("q", "training_clock")),
    "matrix with one side": (statement("gaussian('q', D)"), ("gaussian('W0', N, D)",)),
    "variance as a text": (statement("gaussian('q', D, D, variance='1/D')"), ("'1/D'", "quotes")),
    "negative variance": (statement("gaussian('q', D, D, variance=-1 / D)"), ("q", "negative")),
    "fresh without a clock": (statement("gaussian('q', D, D, fresh=True)"), ("q", "training_clock")),
    "scale of a field": (statement("normal('q', D, scale=x(t))"), ("q", "numbers and parameters")),
    "two sectors by name": (statement("sectors('P', 'Q')"), ("sectors('D', N=nu)",)),
    "negative ratio": (statement("sectors('P', Q=-1)"), ("Q", "positive")),
    "fields as a list": (statement("fields(['q', 'r'], D, t)"), ("fields('x y', ...)",)),
    "parameter without a default": (statement("parameter('q')"), ("default=",)),
    "misspelt default": (statement("parameter('q', defualt=1.0)"), ("did you mean default",)),
    "default that is no number": (statement("parameter('q', default='1')"), ("q", "must be a number")),
    "domain as an interval": (statement("parameter('q', default=1.0, domain=(0, 2))"), ("q", "Domain(low, high")),
    # probes and observables
    "weights as a probe": (probed("M(T)").replace("  # here", ""), ("M(T)", "spectrum(M(T))")),
    "spectrum of weights without a time": (probed("spectrum(M)"), ("spectrum(M(T))",)),
    "list of probes": ("MODEL = model(*STILL, probe=[spectrum(M0)])", ("probe", "{0: spectrum")),
    "text as a probe": ("MODEL = model(*STILL, probe='M0')", ("probe", "spectrum(")),
    "rectangular probe": ("MODEL = model(*STILL, probe=spectrum(W0))  # here", ("N x D", "W.T @ W")),
    "probe that is not symmetric": ("MODEL = model(*STILL, probe=spectrum(J))  # here", ("symmetric", "W.T @ W")),
    "weights that are not symmetric": (
        "MODEL = model(*STILL, Eq(M(0), M0), Eq(M(t + 1), M(t) + outer(x(t), v) / D),\n"
        "    probe=spectrum(M(T)),  # here\n)",
        ("symmetric", "W.T @ W"),
    ),
    "outer products at one time": (
        "MODEL = model(*STILL,\n    probe=spectrum(M0 + outer(x(T), x(T)) / D),  # here\n)",
        ("probed matrix", "x", "update"),
    ),
    "field as a probe": ("MODEL = model(*STILL, probe=spectrum(x(T)))", ("x(T)", "give a matrix")),
    "list of observables": ("MODEL = model(*STILL, observe=[mean(x(t))])", ("observe", "name each")),
    "one observable": ("MODEL = model(*STILL, observe=mean(x(t)))", ("observe", "name each")),
    "text as an observable": ("MODEL = model(*STILL, observe={'a': 'mean(x(t))'})", ("observable a", "quotes")),
    "matrix as an observable": ("MODEL = model(*STILL, observe={'a': J})", ("observable a", "mean(")),
    "vector as an observable": ("MODEL = model(*STILL, observe={'a': x(t)})", ("observable a", "mean(")),
    "number as a name": ("MODEL = model(*STILL, observe={1: mean(x(t))})", ("observable 1", "underscores")),
    # values
    "text as a value": (law("'eta * x(t)'"), (OF_X, "quotes")),
    "text as a factor": (update("M(t) * 'eta'"), (OF_M, "quotes")),
    "nothing as a value": (law("None"), (OF_X, "None")),
    "list as a value": (law("[x(t)]"), (OF_X, "a list")),
    "comma behind a value": (law("(x(t),)"), (OF_X, "a tuple")),
    "dictionary as a value": (law("{'a': 1}"), (OF_X, "a dict")),
    "function as a value": (law("lambda t: x(t)"), (OF_X, "not called")),
    "truth as a value": (law("True"), (OF_X, "a bool")),
    "array as a factor": (law("np.ones(3) * x(t)"), (OF_X, "data(...)")),
    "array behind a field": (law("x(t) * np.ones(3)"), (OF_X, "data(...)")),
    "array as a start": (equation("Eq(y(0), np.ones(10)), Eq(y(t + 1), y(t))"), ("of y", "data(...)")),
    "array as weights": (equation("Eq(M(0), np.eye(3)), Eq(M(t + 1), M(t))"), (OF_M, "data(...)")),
    "array times weights": (update("np.ones(2) * M(t)"), (OF_M, "data(...)")),
    "matrix on an array": (law("J @ np.ones(3)"), (OF_X, "data(...)")),
    "nan": (law("float('nan') * x(t)"), (OF_X, "nan")),
    "infinity": (law("np.inf * x(t)"), (OF_X, "infinity")),
    "division by zero": (law("x(t) / 0"), (OF_X, "division by zero")),
    "weights over zero": (update("M(t) / 0"), (OF_M, "divided by 0")),
    "nan in an update": (update("M(t) + np.nan / D * outer(x(t), x(t))"), (OF_M, "nan")),
    "nan in an observable": ("MODEL = model(*STILL, observe={'a': np.nan * mean(x(t))})", ("observable a", "nan")),
    "nan as a variance": (statement("gaussian('q', D, D, variance=np.nan)"), ("nan",)),
    "imaginary number": (law("1j * x(t)"), (OF_X, "real")),
    "imaginary update": (update("M(t) + 1j / D * outer(x(t), x(t))"), (OF_M, "real")),
    "root of a negative number": (law("sqrt(-2) * x(t)"), (OF_X, "real")),
    # models
    "function as a model": ("def declare(L): return model(*STILL)\nMODEL = declare", ("MODEL", "function")),
    "family of nothing": ("MODEL = family(lambda L: None, L=whole_choice(2))", ("returns", "Model")),
    "choice as a number": ("MODEL = family(lambda L: model(*STILL), L=2)", ("L=2", "whole_choice")),
    "slip in a family": (
        "def declare(L):\n    return model(Eq(x(0), v),\n        Eq(x(t + 1), math.tanh(2 * x(t))))  # here\n"
        "MODEL = family(declare, L=whole_choice(2))",
        (OF_X, "from sympy import tanh"),
    ),
    "size in a family": (
        "def declare(L):\n    return model(*STILL, Eq(M(0), M0),\n"
        "        Eq(M(t + 1), M(t) + outer(x(t), x(t))),  # here\n"
        "        probe=spectrum(M(T)))\nMODEL = family(declare, L=whole_choice(2))",
        ("the update of M", "divide it by D"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SLIPS)
def test_a_slip_is_refused_with_its_line_and_its_cure(case, declared):
    text, words = SLIPS[case]
    source = HEADER + text + "\n"
    path = declared(source)
    with pytest.raises(DeclarationError) as caught:
        generate_files(load_model(str(path)))
    told = str(caught.value)
    assert "\n" not in told
    for word in words:
        assert word in told.replace(str(path), ""), f"{word!r} is not in: {told}"
    line = next((i for i, line in enumerate(source.splitlines(), 1) if "# here" in line), None)
    if line is not None:
        assert told.startswith(f"{path}, line {line}"), told
    assert not INTERNAL.search(told.replace(str(path), "")), told
    assert _told_to_a_script(source, path) in (told, None)


@pytest.mark.parametrize("right", OF_FUNCTIONS)
def test_a_slip_with_a_function_of_sympy_is_refused_in_a_file(right, declared):
    path = declared(HEADER + law(right) + "\n")
    with pytest.raises(DeclarationError) as caught:
        load_model(str(path))
    told = str(caught.value).replace(str(path), "")
    assert OF_X in told and OF_FUNCTIONS[right] in told, told
    assert not re.search(r"Error|" + INTERNAL.pattern, told), told


FLOWS = {
    "a helper": ("def norm(a): return np.mean(a**2)", "norm(tanh(x(t)))"),
    "a name inside a helper": ("def norm(a):\n    b = a + 1\n    return np.sum(b)", "norm(sqrt(x(t)))"),
    "what a helper returns": ("def rate(u):\n    return tanh(u)", "np.mean(rate(x(t)))"),
    "a name": ("phi = tanh(x(t))", "np.mean(phi)"),
    "entries of a list": ("some = [tanh(x(t)), tanh(y(t))]", "sum(np.mean(one) for one in some)"),
}


@pytest.mark.parametrize("way", FLOWS)
def test_numpy_is_given_no_function_of_fields_by_any_way(way, declared):
    """NumPy gives its argument back, so that the mean would be missing without a word."""
    before, right = FLOWS[way]
    path = declared(HEADER + before + "\n" + law(f"{right} * v") + "\n")
    with pytest.raises(DeclarationError, match="from derive"):
        load_model(str(path))


def test_numpy_makes_numbers_for_a_declaration(declared):
    """In helpers whose names are those of fields, where results are looked at, and in code that has not run."""
    before = "def draws(x): return np.mean(x) * np.sqrt(2.0)\nscale = draws(np.ones(3))\n"
    before += "scale += sum(np.mean(x**2) for x in [np.ones(2)])\n"
    before += "def never():\n    x = field('x', D, t)\n    return np.mean(tanh(x(t)))\n"
    after = "def look(s): return np.testing.assert_allclose(s['x'], np.array([1.0]))\n"
    path = declared(HEADER + before + law("np.mean([scale, 1.0]) * tanh(x(t))") + "\n" + after)
    assert "tanh" in str(load_model(str(path)).equations[-1])


COMMON = (
    "np.tanh(x(t))",
    "jnp.tanh(x(t))",
    "math.tanh(x(t))",
    "time on a matrix that stays",
    "transpose of a vector",
    "square in an update",
    "tanh of a matrix",
    "SymPy's Eq",
    "floor of sizes",
    "hat",
    "two fields of one name",
    "no size in an update",
    "product in a mean",
    "jax.nn.relu(x(t))",
    "max(x(t), 0)",
)


@pytest.mark.parametrize("case", COMMON)
def test_a_slip_is_told_alike_by_every_verb(case, declared):
    """A command, and the same in Python."""
    path = declared(HEADER + SLIPS[case][0] + "\n")
    told = CliRunner().invoke(main, ["solve", str(path)])
    with pytest.raises(DeclarationError) as caught:
        derive.load(str(path)).solve()
    assert (told.exit_code, told.stdout, told.stderr) == (2, "", f"error: {caught.value}\n")


def _told_to_a_script(source: str, path: Path) -> str | None:
    """What a script or a cell with the same lines is told; None where the model can be made and is refused later."""
    try:
        exec(compile(source, str(path), "exec"), {"__name__": "__main__"})
    except DeclarationError as error:
        return str(error)
    return None


def test_numbers_of_numpy_are_numbers(declared):
    """And give the very model that Python's own numbers give."""
    text = (
        "a = parameter('a', default={f}(0.5))\n"
        "G = gaussian('G', D, D, variance={f}(2.0) / D)\n"
        "MODEL = Model(parameters=(nu, a, T), equations=[Eq(x(0), v), Eq(M(0), M0),\n"
        "    Eq(x(t + 1), {f}(0.5) * x(t) + x(t) * {f}(0.25) + a * G @ x(t) * {f}(2.0) + x(t) / {i}(4)),\n"
        "    Eq(M(t + 1), {f}(0.5) * M(t) + M(t) / {i}(4) + {f}(1.5) / D * outer(x(t), {i}(3) * x(t)))],\n"
        "    observe={{'o': {f}(2.0) * mean(x(t)**2)}}, probe=spectrum(M(T) * {f}(2.0)))\n"
    )
    paths = [
        declared(HEADER + text.format(f=f, i=i), f"m{n}.py")
        for n, (f, i) in enumerate((("float", "int"), ("np.float64", "np.int64"), ("np.float32", "np.int8")))
    ]
    ours, *theirs = (load_model(str(path)) for path in paths)
    for other in theirs:
        assert (other.equations, other.observe, other.probe) == (ours.equations, ours.observe, ours.probe)


UNTOUCHED = """
import sys
import numpy, sympy

def attributes():
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in ("numpy", "sympy")]
    return {kind: dict(vars(kind)) for module in modules for kind in vars(module).values() if isinstance(kind, type)}

def changed():
    now = attributes()
    return {(kind.__qualname__, name) for kind, old in before.items() for name in {*old, *now[kind]}
        if old.get(name, sympy) is not now[kind].get(name, sympy)}

before = attributes()
from derive import *
print(len(before), changed())
from derive.codegen import generate_files
from derive.inputs.loading import load_model
generate_files(load_model("spiked_wigner"))
print(changed() - {("Dummy", "_count")})  # SymPy counts its dummies
print({(kind, name) for kind, found in attributes().items() for name, value in found.items()
    if str(getattr(value, "__module__", "")).startswith(("derive", "numerics"))})
"""


def test_no_class_of_sympy_or_numpy_is_touched():
    """Neither by importing the language nor by deriving a model: every attribute is the object that it was."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    run = subprocess.run([sys.executable, "-c", UNTOUCHED], env=environment, capture_output=True, text=True, check=True)
    count, imported, derived, ours = run.stdout.replace(" ", "\n", 1).splitlines()
    assert int(count) > 500
    assert (imported, derived, ours) == ("set()", "set()", "set()")


def test_arithmetic_keeps_the_class_and_sympy_reads_what_it_holds():
    D = derive.sectors("D")
    v, w = derive.normal("v", D), derive.normal("w", D)
    for expression in (v + 1, 1 - v, v * w, 2 / v, v**2, 2**v, -v, abs(v), v % 2, v.subs(w, 1), (v * (v + w)).expand()):
        assert isinstance(expression, Expression)
        assert type(sympy.sympify(expression)).__module__.startswith(("sympy", "derive.language.vectors"))
    assert sympy.tanh(v + w) + v - sympy.tanh(w + v) == v
    assert {v + w: 1}[sympy.sympify(w + v)] == 1
    clipped = exact(sympy.Piecewise((v, v > 0.5), (0, True)) + 0.25)
    assert not clipped.atoms(sympy.Float, Condition) and clipped.atoms(sympy.Rational) >= {
        sympy.S.Half,
        sympy.S.One / 4,
    }
    with pytest.raises(AttributeError):  # a walk through the tree is of SymPy's expression
        _ = (v + w).args
    assert sympy.Piecewise((v, v > 0), (0, True)) * v - v * sympy.Piecewise((v, v > 0), (0, True)) == 0


def test_any_name_but_a_keyword_may_be_used(declared):
    """Names of the generated code, of the language and of Python's builtins included."""
    parameters = ("print", "self", "match", "layer", "_replace", "__x", "I", "jnp", "field", "data", "t0", "seed")
    fields = ("E", "S", "np", "x_input", "vector1", "psi0", "R", "C", "len")
    text = "\n".join(
        [
            "from derive import *",
            "T = parameter('T', default=2, domain=whole_positive)",
            f"ps = [parameter(name, default=0.1) for name in {parameters}]",
            "D = sectors('D')",
            "t = training_clock('type', steps=T)",
            "A = goe('lambda_', D)",
            f"fs = [field(name, D, t) for name in {fields}]",
            "v = normal('import_', D)",
            "from sympy import tanh",
            "MODEL = Model(parameters=(T, *ps), equations=[e for i, f in enumerate(fs) for e in (",
            "    Eq(f(0), v), Eq(f(t + 1), sum(ps) * tanh(f(t)) + (A @ fs[0](t) if i else v)))],",
            "    observe={f.name: mean(f(t)**2) for f in fs}, probe=spectrum(A))",
        ]
    )
    for file in generate_files(load_model(str(declared(text)))).items():
        if file[0].endswith(".py"):
            compile(file[1], file[0], "exec")


def test_places_change_nothing(declared):
    """The same equations on other lines are the same model, with the same digest and the same code."""
    text = "MODEL = model(*STILL, Eq(M(0), M0), Eq(M(t + 1), M(t) + outer(x(t), x(t)) / D), probe=spectrum(M(T)))"
    first, second = (load_model(str(declared(HEADER + gap + text, "m.py"))) for gap in ("", "\n\n\n"))
    assert first == second
    assert [e.place.line for e in first.equations[2:]] != [e.place.line for e in second.equations[2:]]
    assert declaration_digest(first) == declaration_digest(second)
    assert hash(first.equations) == hash(second.equations)
    assert generate_files(first) == generate_files(second)


@pytest.mark.slow
def test_a_script_is_told_its_own_line(tmp_path: Path):
    """The same sentences where no file is loaded: errors of a declaration written in a script."""
    text = HEADER + "print('reached')\nfrom derive.pipeline import derive_model\nderive_model(model(\n"
    text += "    *STILL, Eq(M(0), M0),\n"
    text += "    Eq(M(t + 1), M(t) + outer(x(t), x(t))),  # here\n    probe=spectrum(M(T)),\n))\n"
    line = next(i for i, line in enumerate(text.splitlines(), 1) if "# here" in line)
    (tmp_path / "script.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    run = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.stdout == "reached\n"
    told = run.stderr.strip().splitlines()[-1]
    assert f"script.py, line {line}" in told and "the update of M" in told and "divide it by D" in told


def test_a_cell_is_told_its_own_line():
    """As in a notebook: the source of a cell is known to linecache, and the cell has no file."""
    import linecache

    source = HEADER + "Eq(x(t + 1),\n   v + np.tanh(x(t)))\n"
    name = "ipykernel_1/2.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with pytest.raises(DeclarationError) as caught:
        exec(compile(source, name, "exec"), {"__name__": "__main__"})
    told = str(caught.value)
    assert told.startswith(f"this cell, line {len(source.splitlines())}, the equation of x")
    assert "from sympy import tanh" in told


def test_the_engine_blames_no_caller(declared):
    """An error that no line is known for names none: least of all the line that asked for the derivation."""
    path = declared(HEADER + "MODEL = model(*STILL)\n")
    with pytest.raises(DeclarationError) as caught:
        _ = derive_model(load_model(str(path))).first
    assert "line" not in str(caught.value)
