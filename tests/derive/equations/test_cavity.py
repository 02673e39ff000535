"""Two ways to every kernel: the averaged action against the cavity argument, on declarations drawn at random.

In a = s W b and a' = s' W^T b' the noise of a has covariance variance * s^2 * columns * <b b>, and a also receives
variance * s * s' * columns * <d b / d noise of a'> times b'. For a symmetric matrix every pair of uses does both.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from derive import Eq, Model, field, gaussian, goe, normal, parameter, positive, sectors, training_clock, whole_positive
from derive.pipeline import derive_model

ALPHA = parameter("alpha", default=2.0, domain=positive)
T = parameter("T", default=3, domain=whole_positive)
A, B = sectors("A", B=ALPHA)
CLOCK = training_clock("t", steps=T)
MATRICES = {
    "W": gaussian("W", B, A, variance=sp.Rational(3, 2)),
    "V": gaussian("V", B, A),
    "Q": gaussian("Q", A, A),
    "M": goe("M", A),
    "F": gaussian("F", B, A, fresh=CLOCK),
}


@dataclass(frozen=True)
class Use:
    """product(t) = scale * matrix @ x[source](t), which enters x[target](t + lag)."""

    name: str
    matrix: str
    transposed: bool
    scale: sp.Expr
    source: int
    target: int
    lag: int


@st.composite
def declarations(draw):
    homes = [draw(st.sampled_from([A, B])) for _ in range(draw(st.integers(2, 5)))]
    uses = []
    for name, matrix in MATRICES.items():
        for transposed in (False, True) if name != "M" else (False,):
            operator = matrix.T if transposed else matrix
            for source, home in enumerate(homes):
                targets = [i for i, other in enumerate(homes) if other == operator.rows]
                if home != operator.columns or not targets or not draw(st.booleans()):
                    continue
                target = draw(st.sampled_from(targets))
                lag = draw(st.sampled_from([0, 1] if source < target else [1]))
                number = draw(st.sampled_from([1, 2, -1]))
                scale = sp.Integer(number) if name == "M" else number / sp.sqrt(operator.columns)
                uses.append(Use(f"y{len(uses)}", name, transposed, scale, source, target, lag))
    return homes, uses


def _model(homes, uses) -> Model:
    xs = [field(f"x{i}", home, CLOCK) for i, home in enumerate(homes)]
    ys = {u.name: field(u.name, homes[u.target], CLOCK) for u in uses}
    equations = []
    for i, x in enumerate(xs):
        equations.append(
            Eq(x(CLOCK), normal(f"n{i}", homes[i])() + sum(ys[u.name](CLOCK - u.lag) for u in uses if u.target == i))
        )
    for u in uses:
        matrix = MATRICES[u.matrix](CLOCK) if u.matrix == "F" else MATRICES[u.matrix]
        equations.append(Eq(ys[u.name](CLOCK), u.scale * (matrix.T if u.transposed else matrix) @ xs[u.source](CLOCK)))
    return Model(parameters=(ALPHA, T), equations=equations)


def _delays(count: int, uses) -> dict[tuple[int, str], int]:
    """Shortest delay with which field x_i answers a kick to a product."""
    found = {(u.target, u.name): u.lag for u in uses}
    for _ in range(len(uses) + count):
        for u in uses:
            for kicked in uses:
                if (u.source, kicked.name) in found:
                    delay = found[u.source, kicked.name] + u.lag
                    found[u.target, kicked.name] = min(delay, found.get((u.target, kicked.name), delay))
    return found


@pytest.mark.long
@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(declarations())
def test_averaged_action_agrees_with_the_cavity_argument(case):
    check_kernels(*case)


EVERY = (
    Use("y0", "W", False, 1 / sp.sqrt(A), 0, 1, 0),
    Use("y1", "W", True, -2 / sp.sqrt(B), 1, 0, 1),
    Use("y2", "M", False, sp.Integer(2), 0, 2, 0),
    Use("y3", "M", False, sp.Integer(-1), 2, 0, 1),
    Use("y4", "Q", False, 1 / sp.sqrt(A), 0, 2, 1),
    Use("y5", "Q", True, 1 / sp.sqrt(A), 2, 0, 1),
    Use("y6", "F", False, 1 / sp.sqrt(A), 2, 1, 0),
    Use("y7", "F", True, 2 / sp.sqrt(B), 1, 2, 1),
)
"""Each kind of matrix forward and backward: rectangular, symmetric, square, drawn afresh."""


def test_every_kind_of_matrix_has_the_kernels_of_the_cavity_argument():
    check_kernels([A, B, A], EVERY)


def check_kernels(homes, uses) -> None:
    saddle = derive_model(_model(homes, uses)).saddle
    delays = _delays(len(homes), uses)
    covariances, memories = {}, {}
    for p in uses:
        for q in uses:
            if p.matrix != q.matrix:
                continue
            disorder = MATRICES[p.matrix].symbol
            strength = (disorder.variance * p.scale * q.scale * homes[p.source]).subs(B, ALPHA * A)
            if p.transposed == q.transposed:
                covariances[p.name, q.name] = (strength, f"x{p.source}", f"x{q.source}")
            if disorder.symmetric or p.transposed != q.transposed:
                delay = delays.get((p.source, q.name))
                if delay is not None and (delay == 0 or disorder.fresh is None):
                    memories[p.name, q.name] = (strength, f"x{p.source}", f"x{q.source}")
    derived = {(c.left.name, c.right.name): (c.coefficient, c.a.name, c.b.name) for c in saddle.covariances}
    assert _same(derived, covariances)
    derived = {(m.target.name, m.noise.name): (m.coefficient, m.a.name, m.on.name) for m in saddle.memories}
    assert _same(derived, memories)


def _same(derived: dict, expected: dict) -> bool:
    assert derived.keys() == expected.keys()
    return all(derived[k][1:] == expected[k][1:] and sp.simplify(derived[k][0] - expected[k][0]) == 0 for k in expected)
