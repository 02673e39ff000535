"""Expressions and values that stand in everyday declarations, against closed forms."""

import math

import numpy as np
import pytest
from sympy import (
    ITE,
    Abs,
    And,
    Heaviside,
    KroneckerDelta,
    Max,
    Min,
    Piecewise,
    Rational,
    Symbol,
    ceiling,
    cos,
    factorial,
    floor,
    log,
    pi,
    sign,
    sin,
    sqrt,
    tanh,
)

import derive
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
from derive.errors import DeclarationError, ParameterError
from derive.language.symbols import exact
from derive.program.text import ModuleNames, PlainNumpyText
from numerics.runtime.point import Point

k, a = parameter("k", default=1.5), parameter("a", default=0.5)
D = sectors("D")
B, g = goe("B", D), normal("g", D)
T = parameter("T", default=3, domain=whole_positive)
t = training_clock("t", steps=T)
x = field("x", D, t)


@pytest.mark.parametrize(
    ("strength", "values", "number"),
    [
        (k * Abs(k), {"k": -1.5}, -2.25),
        (3 * sqrt(1 - a**2), {"a": -0.6}, 2.4),
        (sqrt(k**2 + a**2), {"k": -1.5, "a": 2}, 2.5),
        (Min(k, a), {"k": -3, "a": 2}, -3),
        (Max(k, a) + sign(k), {"k": -3, "a": 4}, 3),
        (Piecewise((k, k > 0), (-2 * k, True)), {"k": -1}, 2),
        (3 * Heaviside(k - 1) + floor(a), {"k": 2, "a": -0.5}, 2),
        ((k**2) ** Rational(3, 4) * cos(pi * a), {"k": -4, "a": 1}, -8),
    ],
)
def test_coefficients_are_what_they_are_at_negative_values(strength, values, number):
    """Baik, Ben Arous and Peche: a spike of strength s beside a semicircle has its outlier at s + 1/s."""
    spiked = Model(parameters=(k, a), probe=spectrum(B + strength / D * outer(g, g)))
    np.testing.assert_allclose(derive.load(spiked).solve(**values).outliers, [number + 1 / number], rtol=1e-9)


def test_a_bulk_of_point_masses_alone_has_outliers_beside_and_between():
    """By hand, at k = 0: <1/(z - s)> = z/(z^2 - 1) is 1/2 at 1 + sqrt(2) and 1 - sqrt(2)."""
    s = trait("s", D, values=[-1, 1])
    spiked = derive.load(Model(parameters=(k,), probe=spectrum(k * B + diag(s) + 2 / D * outer(g, g))))
    np.testing.assert_allclose(spiked.solve(k=0).outliers, [1 + 2**0.5, 1 - 2**0.5], rtol=1e-9)


def test_a_term_that_hardly_counts_hides_no_outlier():
    s, W = trait("s", D, values=[-1, 1]), gaussian("W", D, D, variance=1 / D)
    spiked = derive.load(Model(parameters=(k,), probe=spectrum(W.T @ diag(k * s) @ W + B + 2 / D * outer(g, g))))
    np.testing.assert_allclose(spiked.solve(k=1e-6).outliers, [2.5], rtol=1e-9)


def test_a_uniform_law_may_have_no_width():
    """As other laws may: the vector is its middle everywhere."""
    equations = [Eq(x(0), drawn("start", D, uniform(1 - k, 1 + k))), Eq(x(t + 1), tanh(x(t)))]
    both = derive.load(Model(parameters=(k, T), equations=equations, observe={"norm": mean(x(t) ** 2)})).solve(k=0, T=1)
    np.testing.assert_allclose(both["norm"], [1, np.tanh(1) ** 2], rtol=1e-9)


@pytest.mark.parametrize(
    ("coefficient", "numbers"),
    [
        (-KroneckerDelta(t, 1), [0, -1, 0]),
        (1 / factorial(t), [1, 1, 1 / 2]),
        (ceiling(t / 2), [0, 1, 1]),
        (Piecewise((1 / t, t > 0), (0, True)), [0, 1, 1 / 2]),
        (Piecewise((2, And(t > 0, k < 0)), (1, True)), [1, 2, 2]),
    ],
)
def test_coefficients_in_time_are_what_they_are(coefficient, numbers):
    """By hand: x(t + 1) = c(t) A(t) x(t) + x(t)/2, A drawn afresh, has the norm q(t + 1) = (c(t)^2 + 1/4) q(t)."""
    A = gaussian("A", D, D, variance=1 / D, fresh=t)
    equations = [Eq(x(0), g), Eq(x(t + 1), coefficient * (A(t) @ x(t)) + x(t) / 2)]
    norm = derive.load(Model(parameters=(k, T), equations=equations, observe={"norm": mean(x(t) ** 2)}))
    expected = np.cumprod([1, *(c**2 + 1 / 4 for c in numbers)])
    np.testing.assert_allclose(norm.solve(k=-1)["norm"], expected, rtol=1e-9)


@pytest.mark.parametrize("coefficient", [1 / t, log(t), sqrt(t - 1)])
def test_a_coefficient_that_is_not_finite_at_the_first_time_is_refused(coefficient):
    """It is not the step that is too large."""
    with pytest.raises(DeclarationError, match="at t = 0, the first time it is used"):
        Model(parameters=(T,), equations=[Eq(x(0), g), Eq(x(t + 1), coefficient * x(t))])


def test_a_coefficient_that_is_not_finite_at_a_later_time_is_refused_by_its_name():
    """At T = 1 the pole at t = 1 is never met: the rule of x(t + 1) is used at t = 0 alone."""
    equations = [Eq(x(0), g), Eq(x(t + 1), x(t) / (t - k) + B @ x(t))]
    theory = derive.load(Model(parameters=(k, T), equations=equations, observe={"norm": mean(x(t) ** 2)}))
    with pytest.raises(ParameterError, match=r"1/\(t - k\) in the equation of x is not a finite number at time 1;"):
        theory.solve(k=1, T=2)
    np.testing.assert_allclose(theory.solve(k=1, T=1)["norm"], [1, 2], rtol=1e-9)


def test_a_coefficient_that_is_infinite_at_no_time_it_is_used_is_fine():
    """Neither before the first time, nor where a condition leaves it out."""
    equations = [Eq(x(0), g), Eq(x(t + 1), Piecewise((1 / (t - 1), t > 1), (2, True)) * x(t))]
    norm = derive.load(Model(parameters=(T,), equations=equations, observe={"norm": mean(x(t) ** 2)}))
    np.testing.assert_allclose(norm.solve(T=3)["norm"], [1, 4, 16, 16], rtol=1e-9)


def test_a_density_with_a_kink_is_refused_as_such():
    """Its integral is finite; averages over it would converge too slowly. One end further it has none."""
    kinked, smooth = (trait("s", D, density=Abs(Symbol("x")), low=low, high=1) for low in (-Rational(1, 3), 0))
    with pytest.raises(ParameterError, match="smooth between its ends; give one with a kink"):
        derive.load(Model(parameters=(), probe=spectrum(B + diag(kinked)))).solve()
    assert derive.load(Model(parameters=(), probe=spectrum(B + diag(smooth)))).solve().bulk_edges[0, 1] > 2


def test_a_choice_inside_a_condition_is_printed_without_being_simplified(monkeypatch):
    """SymPy simplifies such conditions as it prints them, which may take hours."""
    monkeypatch.setattr("sympy.logic.boolalg.simplify_logic", None)
    inner = ITE(k > 0, a > 1, a < -1)
    code = PlainNumpyText(ModuleNames()).formula(Piecewise((2, inner), (5, True)))
    points = {(1, 2): 2, (1, 0): 5, (-1, -2): 2, (-1, 2): 5}
    assert {at: int(eval(code, {"np": np, "p": Point(k=at[0], a=at[1])})) for at in points} == points


def test_steps_of_roots_are_printed_without_their_sign():
    """SymPy writes steps as cases and then asks for the sign of (-1)**(1/3), which has none."""
    step = 1 + 2 * Heaviside(Abs(sign(k)) ** Rational(1, 3))
    code = PlainNumpyText(ModuleNames()).formula(step)
    assert [float(eval(code, {"np": np, "p": Point(k=value)})) for value in (-1.5, 0.0, 2.0)] == [3, 2, 3]


@pytest.mark.long
def test_conditions_on_fields_and_on_parameters_may_stand_together():
    """By hand: the mean square of a standard normal that is clipped at |a| = 1/2."""
    A = gaussian("A", D, D, variance=1 / D)
    equations = [Eq(x(0), g), Eq(x(t + 1), A @ Min(Max(x(t), -Abs(a)), Abs(a)))]
    norm = derive.load(Model(parameters=(a, T), equations=equations, observe={"norm": mean(x(t) ** 2)}))
    pdf, share = np.exp(-1 / 8) / np.sqrt(2 * np.pi), math.erf(0.5 / 2**0.5)
    expected = share * (1 - 1 / 4) + 1 / 4 - pdf
    np.testing.assert_allclose(norm.solve(a=-0.5, T=1)["norm"], [1, expected], rtol=1e-8)


def test_conditions_of_different_shapes_are_joined():
    """Those on fields are arrays over nodes of quadrature, those on parameters are numbers."""
    A = gaussian("A", D, D, variance=1 / D)
    equations = [Eq(x(0), g), Eq(x(t + 1), A @ Piecewise((a, And(x(t) > a, a < 1)), (x(t), True)))]
    code = solver_files(Model(parameters=(a, T), equations=equations, observe={"norm": mean(x(t) ** 2)}))["training.py"]
    assert "jnp.logical_and(" in code
    assert "jnp.all(" not in code


STEPS = {
    "a step of a cosine": (Heaviside(cos(pi * t / 2)), [1, 0.5, 0, 0.5, 1]),
    "the sign of a sine": (sign(2 * sin(pi * t / 3 + pi / 3) - sqrt(3)), [0, 0, -1, -1, -1, -1, 0, 0]),
    "a comparison": (KroneckerDelta(cos(pi * t), 1), [1, 0, 1, 0]),
    "rounding": (floor(sin(pi * t / 2) + Rational(1, 2)), [0, 1, 0, -1, 0]),
}


@pytest.mark.parametrize("case", STEPS)
def test_jumps_at_zeros_of_waves_have_their_exact_values(case):
    """In floating point cos(pi/2) is 6e-17, where Heaviside is one."""
    coefficient, values = STEPS[case]
    assert [float(exact(coefficient).subs(t, k)) for k in range(len(values))] == values


def test_jumps_of_waves_may_depend_on_parameters_and_stand_in_conditions():
    crossing = exact(Heaviside(cos(pi * t / 3) - k, 1))
    assert [crossing.subs({t: time, k: Rational(1, 2)}) for time in range(7)] == [1, 1, 0, 0, 0, 1, 1]
    chosen = exact(Piecewise((a, cos(pi * t / 2) > 0), (k, True)))
    assert [chosen.subs(t, time) for time in range(6)] == [a, k, k, k, a, k]
    equations = [Eq(x(0), g), Eq(x(t + 1), Piecewise((3, cos(pi * t / 2) > 0), (2, True)) * x(t))]
    norm = derive.load(Model(parameters=(T,), equations=equations, observe={"norm": mean(x(t) ** 2)}))
    np.testing.assert_allclose(norm.solve(T=5)["norm"], [1, 9, 36, 144, 576, 5184], rtol=1e-12)


@pytest.mark.parametrize("coefficient", [Heaviside(cos(pi * k * t)), sign(sin(pi * t / 50))])
def test_jumps_of_waves_without_a_short_period_are_refused(coefficient):
    with pytest.raises(DeclarationError, match="rounding"):
        exact(coefficient)


CASES_OF_TRAITS = {
    "of a trait": (lambda s: Piecewise((Abs(s), s < k), (Min(s, 1), True)), lambda s, time: abs(s) if s < 0 else 1),
    "of a trait and of time": (lambda s: Piecewise((s, t > 0), (3, True)), lambda s, time: s if time else 3),
    "equal to a trait": (lambda s: 1 + KroneckerDelta(s, -2), lambda s, time: 1 + (s == -2)),
}


@pytest.mark.parametrize("case", CASES_OF_TRAITS)
def test_coefficients_with_cases_of_traits_are_what_they_are(case):
    """By hand: x(t + 1) = c(s, t) A(t) x(t), A drawn afresh, has the norm <c(s, t)^2> times that before."""
    function, number = CASES_OF_TRAITS[case]
    A, s = gaussian("A", D, D, variance=1 / D, fresh=t), trait("s", D, values=[-2, 4])
    equations = [Eq(x(0), g), Eq(x(t + 1), function(s) * (A(t) @ x(t)))]
    model = Model(parameters=(k, T), equations=equations, observe={"norm": mean(x(t) ** 2)})
    expected = np.cumprod([1, *((number(-2, time) ** 2 + number(4, time) ** 2) / 2 for time in range(2))])
    solution = derive.load(model).solve(k=0, T=2)
    np.testing.assert_allclose(solution["norm"], expected, rtol=1e-9)
    assert solution


def test_cases_of_a_trait_may_stand_on_a_diagonal():
    """By hand, at k = 0: two point masses at 1 and 2, and <1/(z - s)> = 1/2 for a spike of strength 2."""
    s = trait("s", D, values=[-2, 4])
    entries = diag(Piecewise((Abs(s), s < a), (Min(s, 1), True)))
    spiked = derive.load(Model(parameters=(k, a), probe=spectrum(k * B + entries + 2 / D * outer(g, g)))).solve(k=0)
    np.testing.assert_allclose(spiked.outliers, [(5 + 5**0.5) / 2, (5 - 5**0.5) / 2], rtol=1e-9)
