"""Sites that differ: traits against closed forms, against sectors, against simulation, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from reference_formulas.structured_regression_by_hand import (
    full_batch_losses,
    online_test_loss,
    planted_outlier,
    power_law,
)
from scipy.optimize import brentq
from scipy.special import beta, betaincc, gamma
from sympy import Symbol, exp, log, oo, sqrt

import derive
from derive import (
    Domain,
    Eq,
    Model,
    axis,
    data,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    past_sum,
    positive,
    sectors,
    spectrum,
    training_clock,
    trait,
    weights,
    whole_positive,
)
from derive.errors import DeclarationError, NumericalError, ParameterError
from derive.pipeline import derive_model
from derive.program.exact_run import ExactRun
from derive.program.lowering import forward_pass
from numerics.runtime.traits import density

x = Symbol("x")
T = parameter("T", default=5, domain=whole_positive)
alpha = parameter("alpha", default=1.3, domain=positive)
kappa = parameter("kappa", default=2.0, domain=positive)
share = parameter("share", default=0.25, domain=Domain(0, 1))
eta = sp.Rational(1, 10)


def learner(name: str = "lam", extra: tuple = (), spikes: bool = True, **law) -> Model:
    """Regression whose weights drive a matrix that learns them: traits in laws, means, products and spikes."""
    D, P, N = sectors("D", P=alpha, N=alpha)
    t = training_clock("t", steps=T)
    lam = trait(name, D, **law) if law else sp.S.One
    X, J = gaussian("X", P, D), gaussian("J", N, D)
    teacher, eps, r = normal("teacher", D), normal("eps", P), normal("r", N)
    w, u, delta, a = field("w", D, t), field("u", D, t), field("delta", P, t), field("a", N, t)
    W = weights("W", N, D, t)
    return Model(
        parameters=(alpha, T, *extra),
        equations=[
            Eq(u(t), sqrt(lam) * (teacher - w(t))),
            Eq(delta(t), X @ u(t) / sqrt(D) + eps / 3),
            Eq(w(0), 0 * teacher),
            Eq(w(t + 1), w(t) + eta * sqrt(D) / P * sqrt(lam) * (X.T @ delta(t))),
            Eq(a(t), W(t) @ (lam * w(t)) / sqrt(D) + r),
            Eq(W(0), J),
            Eq(W(t + 1), W(t) + outer(a(t), lam * w(t)) / sqrt(D)),
        ],
        observe={"train": mean(delta(t) ** 2), "test": mean(lam * (teacher - w(t)) ** 2), "a": mean(a(t) ** 2)},
        probe=spectrum(W(T).T @ W(T) / N) if spikes else None,
    )


def in_sectors(values: list, shares: list) -> Model:
    """The same with a sector for each value."""
    P, N, *D = sectors("P", N=1, **{f"D{k}": s / alpha for k, s in enumerate(shares)})
    t = training_clock("t", steps=T)
    eps, r, delta, a = normal("eps", P), normal("r", N), field("delta", P, t), field("a", N, t)
    size, each = P / alpha, range(len(values))
    X, J, W, teacher, w = ([] for _ in range(5))
    for k in each:
        X.append(gaussian(f"X{k}", P, D[k]))
        J.append(gaussian(f"J{k}", N, D[k]))
        W.append(weights(f"W{k}", N, D[k], t))
        teacher.append(normal(f"teacher{k}", D[k]))
        w.append(field(f"w{k}", D[k], t))
    seen = sum(sqrt(values[k]) * (X[k] @ (teacher[k] - w[k](t))) for k in each)
    equations = [
        Eq(delta(t), seen / sqrt(size) + eps / 3),
        Eq(a(t), sum(W[k](t) @ (values[k] * w[k](t)) for k in each) / sqrt(size) + r),
    ]
    for k in each:
        back = sqrt(values[k]) * (X[k].T @ delta(t))
        equations += [
            Eq(w[k](0), 0 * teacher[k]),
            Eq(w[k](t + 1), w[k](t) + eta * sqrt(size) / P * back),
            Eq(W[k](0), J[k]),
            Eq(W[k](t + 1), W[k](t) + outer(a(t), values[k] * w[k](t)) / sqrt(size)),
        ]
    test = sum(shares[k] * values[k] * mean((teacher[k] - w[k](t)) ** 2) for k in each)
    gram = W[0](T) @ W[0](T).T
    for k in each[1:]:
        gram = gram + W[k](T) @ W[k](T).T
    return Model(
        parameters=(alpha, T),
        equations=equations,
        observe={"train": mean(delta(t) ** 2), "test": test, "a": mean(a(t) ** 2)},
        probe=spectrum(gram / N),
    )


def same(a, b, tolerance: float = 1e-11) -> None:
    for name in ("train", "test", "a"):
        np.testing.assert_allclose(a[name], b[name], rtol=tolerance)
    np.testing.assert_allclose(a.outliers, b.outliers, rtol=tolerance)


TWO = {"values": [sp.Rational(1, 2), 3], "weights": [0.6, 0.4]}


@pytest.fixture(scope="module")
def two_values():
    return derive.load(learner(**TWO)).solve(T=5)


@pytest.mark.slow
def test_values_are_sectors_of_their_own(two_values):
    sectors_each = derive.load(in_sectors([sp.Rational(1, 2), 3], [sp.Rational(3, 5), sp.Rational(2, 5)])).solve(T=5)
    assert len(two_values.outliers) > 0
    same(two_values, sectors_each)


@pytest.mark.slow
def test_one_value_is_no_trait():
    same(derive.load(learner(values=[1])).solve(T=5), derive.load(learner()).solve(T=5))


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        {"name": "spread", **TWO},
        {"values": [3, 0.5], "weights": [0.4, 0.6]},
        {"values": [0.5, 3, 3, 0.5], "weights": [0.6, 0.3, 0.1, 0]},
        {"values": np.array([0.5, 0.5, 0.5, 3, 3])},
        {"values": [kappa / 4, 3], "weights": [1 - share, share], "extra": (kappa, share)},
    ],
    ids=["renamed", "reordered", "split", "array", "parameters"],
)
def test_the_same_law_written_otherwise(two_values, law):
    values = {"kappa": 2.0, "share": 0.4} if "extra" in law else {}
    same(two_values, derive.load(learner(**law)).solve(T=5, **values), 1e-10)


@pytest.mark.slow
def test_values_may_be_data():
    K = parameter("K", default=5, domain=whole_positive)
    made = learner(values=data("lam_given", axis("k", K)), extra=(K,), spikes=False)
    found = derive.load(made).solve(data={"lam_given": np.array([0.5, 0.5, 0.5, 3, 3])}, T=5)
    expected = derive.load(learner(spikes=False, **TWO)).solve(T=5)
    np.testing.assert_allclose(found["test"], expected["test"], rtol=1e-12)


def test_two_traits_of_one_sector_are_independent():
    D, t = sectors("D"), training_clock("t", steps=T)
    a, b = trait("a", D, values=[1, 2]), trait("b", D, values=[1, 3], weights=[0.25, 0.75])
    v, M = field("v", D, t), goe("M", D)
    start = normal("start", D)
    equations = [Eq(v(0), a * start), Eq(v(t + 1), v(t) + b * (M @ v(t)))]
    model = Model(parameters=(T,), equations=equations, observe={"v": mean(v(t) ** 2), "ab": mean(a * b)})
    found = derive.load(model).solve(T=2)
    assert found["ab"] == pytest.approx([1.5 * 2.5])
    # v(1) = a start + b M a start; v(2) adds b M v(1), whose noise is correlated and whose memory answers through b
    aa, bb = 2.5, 7.0
    one = aa + bb * aa
    assert found["v"][:2] == pytest.approx([aa, one])


def winding(values: list | None) -> Model:
    """Traits in sums over earlier times, in means of two times, in functions, and as vectors of their own."""
    D, N = sectors("D", N=2)
    t = training_clock("t", steps=T)
    lam = sp.Rational(1, 2) if values is None else trait("lam", D, values=values)
    square = lam**2 if values is None else mean(lam**2)
    M, W, start = goe("M", D), gaussian("W", N, D), normal("start", D)
    v, a, b = field("v", D, t), field("a", N, t), field("b", D, t)
    grown = (
        past_sum(lambda s: lam / 10 * b(s), t + 1) - past_sum(lambda s: mean(lam * v(s) * v(t)) * v(s) * lam, t) / 20
    )
    return Model(
        parameters=(T,),
        equations=[
            Eq(v(0), start + lam / 2),
            Eq(v(t + 1), exp(-lam / 3) * v(t) + (1 - lam) ** 3 / 9 * (M @ v(t)) + grown + square / 7 * lam),
            Eq(a(t), W @ (lam * v(t) + lam) / sqrt(D)),
            Eq(b(t), lam * (W.T @ a(t)) / sqrt(D) / 5),
        ],
        observe={"v": mean(v(t) ** 2), "a": mean(a(t) ** 2), "late": mean(lam * v(t) * v(t - 1))},
    )


@pytest.mark.slow
def test_one_value_is_a_number_wherever_it_stands():
    number, one = (derive.load(winding(values)).solve(T=5) for values in (None, [0.5, 0.5]))
    for name in ("v", "a", "late"):
        np.testing.assert_allclose(one[name], number[name], rtol=1e-12)


@pytest.mark.slow
def test_values_wherever_they_stand_agree_with_simulation(simulation_seed):
    """With forty samples six standard errors are a chance of 1e-6; what is of order 1/size is below one of them."""
    found = derive.load(winding([0.5, 0.5, 1, 2])).compare(size=300, seeds=40, T=4, seed=simulation_seed)
    compared = [row for row in found.rows if row.compared]
    assert len(compared) > 9 and all(abs(row.difference) < 6 for row in compared)


@pytest.mark.parametrize(
    ("law", "moments"),
    [
        ({"density": 1, "low": 0, "high": 2}, [1, 4 / 3, 2]),
        ({"density": x**-1.5, "low": 0.01, "high": 1}, [0.1, 0.037, 0.99999 / 45]),
        ({"density": x**-0.7, "low": 0, "high": 1}, [0.3 / 1.3, 0.3 / 2.3, 0.3 / 3.3]),
        ({"density": x * exp(-x), "low": 0, "high": oo}, [2, 6, 24]),
        ({"density": exp(-(log(x) ** 2) / 2) / x, "low": 0, "high": oo}, [np.exp(k * k / 2) for k in (1, 2, 3)]),
        ({"density": lambda y: exp(-((y - 1) ** 2) / 2), "low": -oo, "high": oo}, [1, 2, 4]),
    ],
    ids=["uniform", "power law", "singular", "gamma", "log-normal", "normal"],
)
def test_moments_of_densities(law, moments):
    D = sectors("D")
    lam, v = trait("lam", D, **law), normal("v", D)
    names = {f"moment{k}": mean(lam**k * v**2) for k in (1, 2, 3)}
    found = derive.load(Model(parameters=(), observe=names)).solve()
    for k, expected in enumerate(moments, 1):
        assert found[f"moment{k}"] == pytest.approx([expected], rel=1e-9)
    assert found.method.quadrature.error < 1e-10


# -- structured regression


def losses(spectrum: str, batch: str, **values):
    found = derive.load("structured_regression", spectrum=spectrum, batch=batch).solve(**values)
    return found["train_loss"], found["test_loss"]


SPECTRA = {
    "isotropic": ((np.ones(1), np.ones(1)), {}),
    "two_groups": ((np.array([1.0, 5.0]), np.array([0.7, 0.3])), {"kappa": 5.0, "share": 0.3}),
    "power_law": (power_law(1.4, 0.003), {"decay": 1.4, "cut": 0.003, "source": 0.5}),
}
COMMON = {"eta": 0.08, "sigma": 0.4, "ridge": 0.07, "mu": 0.3}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECTRA)
def test_online_regression_is_a_sum_over_the_spectrum(name):
    (lam, shares), values = SPECTRA[name]
    teacher = lam ** values.get("source", 0.0)
    train, test = losses(name, "online", alpha=0.8, T=12, **COMMON, **values)
    expected = online_test_loss(lam, shares, teacher, 0.8, **COMMON, steps=12)
    np.testing.assert_allclose(test, expected, rtol=1e-9)
    np.testing.assert_allclose(train, expected, rtol=1e-9)


@pytest.mark.long_cases("0.6-power_law", "2.5-power_law")
@pytest.mark.slow
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("ratio", [0.6, 2.5])
def test_full_batch_regression_follows_deterministic_equivalents(name, ratio):
    (lam, shares), values = SPECTRA[name]
    teacher = lam ** values.get("source", 0.0)
    train, test = losses(name, "full", alpha=ratio, T=9, **COMMON, **values)
    for steps in (1, 5, 9):
        expected = full_batch_losses(lam, shares, teacher, ratio, **COMMON, steps=steps)
        assert (train[steps], test[steps]) == pytest.approx(expected, rel=1e-8)


@pytest.mark.long_cases("power_law")
@pytest.mark.slow
@pytest.mark.parametrize("name", SPECTRA)
def test_curvature_has_the_outlier_of_a_planted_direction(name):
    """What one direction adds to the inputs does not change losses, whatever else is there."""
    (lam, shares), values = SPECTRA[name]
    if name == "power_law":
        values = {**values, "cut": 0.02}
        lam, shares = power_law(1.4, 0.02)
    theory = derive.load("structured_regression", spectrum=name, hessian="yes")
    found = theory.solve(alpha=2.5, spike=6.0, T=4, **COMMON, **values)
    gaps = [(lam.max(), lam.max() + 6.0), *([(1.0, 5.0)] if name == "two_groups" else [])]
    expected = [planted_outlier(lam, shares, 2.5, 6.0, *gap) for gap in gaps]
    assert found.outliers == pytest.approx(expected, rel=1e-9)  # one in the gap between the groups too
    teacher = lam ** values.get("source", 0.0)
    expected = full_batch_losses(lam, shares, teacher, 2.5, **COMMON, steps=4)
    assert (found["train_loss"][4], found["test_loss"][4]) == pytest.approx(expected, rel=1e-8)


@pytest.mark.long_cases("power_law")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_groups", "power_law"])
def test_curvature_agrees_with_simulation(name, simulation_seed):
    """With forty samples six standard errors are a chance of 1e-6."""
    values = {"cut": 0.02} if name == "power_law" else {}
    theory = derive.load("structured_regression", spectrum=name, hessian="yes")
    found = theory.compare(size=200, seeds=40, seed=simulation_seed, alpha=2.0, spike=9.0, T=3, **values)
    compared = [row for row in found.rows if row.compared]
    assert len(compared) > 8 and all(abs(row.difference) < 6 for row in compared), found


def test_curvature_takes_variances_that_are_known():
    with pytest.raises(ParameterError, match="spectrum=given"):
        derive.load("structured_regression", hessian="yes", spectrum="given").solve(T=1)


@pytest.mark.parametrize("cut", [1e-3, 1e-5])
def test_averages_over_wide_densities_settle_next_to_a_pole(cut):
    """What a bulk asks for: one value nearly makes a resolvent infinite, wherever it lies within several decades."""
    pole, power = 0.3 + 0.006j, -5 / 3
    ends = np.geomspace(cut, 1.0, 2001)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    x = (ends[1:, None] + ends[:-1, None]) / 2 + np.diff(ends)[:, None] / 2 * nodes
    shares = x**power * np.diff(ends)[:, None] / 2 * weights
    expected = np.sum(shares * x / (x - pole)) / np.sum(shares)
    law = density(lambda x: x**power, cut, 1.0, 4096, np)
    assert np.sum(law.weights * law.values / (law.values - pole)) == pytest.approx(expected, rel=1e-12)
    steep = density(lambda x: x**-0.95, 0.0, 1.0, 2048, np)  # tails reach an end at which the density is singular
    assert np.sum(steep.weights * steep.values) == pytest.approx(0.05 / 1.05, rel=1e-11)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("decay", "source"), [(1.5, 0.0), (2.0, 0.5)])
def test_learning_curves_of_power_laws_have_the_known_exponent(decay, source):
    cut = 1e-6
    values = {"decay": decay, "source": source, "cut": cut, "sigma": 0.0, "eta": 1.0, "alpha": 1e12}
    _, test = losses("power_law", "online", T=60, **values)
    power = 1 + source - 1 / decay
    # with rate 1 the loss is a Beta function, but for what is below the cut
    late, early = (beta(power, 2 * t + 1) * betaincc(power, 2 * t + 1, cut) for t in (60, 30))
    assert test[60] / test[30] == pytest.approx(late / early, rel=1e-7)
    lost = cut**power * 120**power / (power * gamma(power))  # how much of the loss the cut has taken by then
    assert np.log2(test[60] / test[30]) == pytest.approx(-power, rel=0.02 + 2 * lost)


@pytest.mark.long_cases("{'L': 1, 'param': 'ntk'}")
@pytest.mark.slow
@pytest.mark.parametrize("choices", [{"L": 2, "data": "online"}, {"L": 1, "param": "ntk"}], ids=str)
def test_networks_with_equal_inputs_are_networks(choices):
    values = {"nu": 2.0, "gamma0": 6.0, "T": 5, "eta": 0.1, "C": 2}
    one = derive.load("deep_linear", **choices).solve(**values)
    two = derive.load("deep_linear", spectrum="two_groups", **choices).solve(kappa=1.0, share=0.3, **values)
    assert len(one.layers[0].outliers) > 0
    np.testing.assert_allclose(two["test_loss"], one["test_loss"], rtol=1e-11)
    for a, b in zip(one.layers, two.layers, strict=True):
        np.testing.assert_allclose(b.outliers, a.outliers, rtol=1e-10)


@pytest.mark.long
@pytest.mark.slow
def test_two_time_functions_are_means_over_groups(two_values):
    """The diagonal of C is what is observed, and responses are those of sectors by their shares."""
    found, shares = two_values, [sp.Rational(3, 5), sp.Rational(2, 5)]
    each = derive.load(in_sectors([sp.Rational(1, 2), 3], shares)).solve(T=5)
    for kind in "CR":
        mean_of = sum(float(s) * getattr(each, kind)[f"w{k}", f"w{k}"].values for k, s in enumerate(shares))
        np.testing.assert_allclose(getattr(found, kind)["w", "w"].values, mean_of, rtol=1e-10, atol=1e-13)


def test_exact_expansions_know_values():
    """A planted direction with a trait: the outlier is that of its mean square."""
    D, g = sectors("D"), parameter("g", default=2.0, domain=positive)
    lam, v = trait("lam", D, values=[1, kappa, 2], weights=[0.5, 0.25, 0.25]), normal("v", D)
    model = Model(
        parameters=(g, kappa),
        observe={"square": mean(lam * v**2)},
        probe=spectrum(goe("M", D) + g / D * outer(sqrt(lam) * v, sqrt(lam) * v)),
    )
    theory = derive.load(model)
    found = theory.expand("outlier").sympy()
    strength = sp.Symbol("g") * (1 + sp.Symbol("kappa") / 4)
    assert (
        sp.simplify(found.xreplace({s: sp.Symbol(s.name) for s in found.free_symbols}) - strength - 1 / strength) == 0
    )
    assert theory.solve(g=2.0, kappa=3.0).outliers == pytest.approx([3.5 + 1 / 3.5], rel=1e-12)


def test_quotients_and_roots_of_traits():
    """A trait below the fraction line, beside a size, a mean and a root; two steps by hand, in floats and exactly."""
    D, t = sectors("D"), training_clock("t", steps=T)
    lam = trait("lam", D, values=[0.5, 1.5])
    off = parameter("off", default=0.0)
    A, v, start = gaussian("A", D, D, fresh=t), field("v", D, t), normal("start", D)
    below = 1 / (1 + lam)
    equations = [
        Eq(v(0), start),
        Eq(v(t + 1), below / sqrt(D) * (A(t) @ v(t)) + off * lam * sqrt(3) * v(t)),
    ]
    observe = {"v": mean(v(t) ** 2), "share": mean(below * v(t) ** 2 / (1 + mean(v(t) ** 2))), "root": mean(sqrt(lam))}
    model = Model(parameters=(T, off), equations=equations, observe=observe)
    squares, cubes = (sum((1 / (1 + value)) ** n for value in (0.5, 1.5)) / 2 for n in (2, 3))
    norms = [1, squares, squares**2]
    shares = [sum(1 / (1 + value) for value in (0.5, 1.5)) / 4, cubes / (1 + squares)]
    shares.append(cubes * squares / (1 + squares**2))
    found = derive.load(model).solve(T=2)
    assert found["v"] == pytest.approx(norms, rel=1e-14)
    assert found["share"] == pytest.approx(shares, rel=1e-14)
    assert found["root"] == pytest.approx((sqrt(0.5) + sqrt(1.5)) / 2, rel=1e-14)
    derivation = derive_model(model)
    machine = ExactRun(forward_pass(derivation.layout), {T: sp.Integer(2), off: sp.S.Zero})
    exact = {name: [machine.scalars.expression(q) for q in numbers] for name, numbers in machine.observables.items()}
    assert exact["v"] == [1, sp.Rational(68, 225), sp.Rational(68, 225) ** 2]
    assert sp.simplify(exact["root"][0] - (sqrt(2) + sqrt(6)) / 4) == 0


def test_two_time_functions_of_what_has_no_clock():
    v = derive.load("spiked_wigner").solve(gamma0=2.0)
    assert v.C["v", "v"].values == pytest.approx(np.ones_like(v.C["v", "v"].values))


# -- what is refused


def refused(match: str, **law) -> None:
    with pytest.raises(DeclarationError, match=match):
        trait("lam", sectors("D"), **law)


def test_laws_that_are_none_are_refused():
    refused("add up to 0.9", values=[1, 2], weights=[0.5, 0.4])
    refused("negative", values=[1, 2], weights=[1.5, -0.5])
    refused("one weight per value", values=[1, 2], weights=[1])
    refused("either values", values=[1], density=x, low=0, high=1)
    refused("give the ends", density=x)
    refused("upper end of its density", density=x, low=2, high=1)
    refused("symbols", density=x * Symbol("y"), low=0, high=1)
    refused("not a list", values=3)
    refused("empty", values=[])


@pytest.mark.slow
def test_laws_that_are_none_at_some_values_are_refused_there():
    theory = derive.load(learner(values=[1, kappa], weights=[share, share], extra=(kappa, share), spikes=False))
    with pytest.raises(ParameterError, match="sum of the weights of trait lam is 0.6.*must be one"):
        theory.solve(share=0.3)
    assert theory.solve(share=0.5)
    power = parameter("power", default=1.0)
    spread = derive.load(learner(density=x**-power, low=0, high=1, extra=(power,), spikes=False))
    with pytest.raises(ParameterError, match="integral of the density of trait lam"):
        spread.solve(power=1.5)
    negative = derive.load(learner(values=[1, power], extra=(power,), spikes=False))
    with pytest.raises(ParameterError, match=r"sqrt\(lam\)"):
        negative.solve(power=-1.0)


@pytest.mark.slow
def test_infinite_moments_are_refused():
    found = derive.load(learner(density=x**-2.5, low=1, high=oo, spikes=False)).solve(T=1)
    assert not found and "density has no such moment" in found.trouble[0]
    with pytest.raises(NumericalError):
        found["test"]  # noqa: B018


def test_traits_stand_where_they_can():
    D, N = sectors("D", N=2)
    t = training_clock("t", steps=T)
    lam, v, s, M = trait("lam", D, values=[1, 2]), field("v", D, t), normal("s", N), goe("M", D)

    def model(law, **more):
        return Model(parameters=(T,), equations=[Eq(v(0), normal("q", D)), Eq(v(t + 1), law)], **more)

    with pytest.raises(DeclarationError, match="mixes sectors"):
        model(v(t) + lam * s)
    with pytest.raises(DeclarationError, match="takes no equation"):
        Model(parameters=(T,), equations=[Eq(lam, normal("q", D))])
    with pytest.raises(DeclarationError):
        model(v(t), probe=spectrum(lam * M))


@pytest.mark.slow
def test_a_spike_made_by_the_matrix_with_a_gain_at_each_site_is_that_by_hand():
    """v = (1 + s) (S g) + g in S + k v v^T / D + diag(s). With P = 1/(z - s - G) at a site and G its mean, Stein's
    lemma gives <v R v> = <(1 + s)^2 P> + (2 + c) c G + G with c = <(1 + s) P>; the outlier is where it is 1/k."""
    D, k = derive.sectors("D"), derive.parameter("k", default=2.0)
    s = derive.trait("s", D, values=[0, 1], weights=[0.5, 0.5])
    S, g, u, v = derive.goe("S", D), derive.normal("g", D), *(derive.field(name, D) for name in "uv")
    equations = [derive.Eq(u, S @ g), derive.Eq(v, (1 + s) * u + g)]
    probe = derive.spectrum(S + k / D * derive.outer(v, v) + derive.diag(s))
    (found,) = derive.load(derive.Model(parameters=(k,), equations=equations, probe=probe)).solve().outliers

    def overlap(z: float) -> float:
        values, G = np.array([0.0, 1.0]), 1 / z
        for _ in range(200):
            G = np.mean(1 / (z - values - G))
        P = 1 / (z - values - G)
        c = np.mean((1 + values) * P)
        return np.mean((1 + values) ** 2 * P) + (2 + c) * c * G + G

    assert found == pytest.approx(brentq(lambda z: 2 * overlap(z) - 1, 4.0, 20.0), rel=1e-10)
