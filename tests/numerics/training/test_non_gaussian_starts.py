"""Starts and noises that are not normal: moments in linear laws, the law itself in others, simulation, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import sympy as sp
from sympy import sqrt, tanh

import derive
from derive import (
    Eq,
    Model,
    alignment,
    diag,
    discrete,
    drawn,
    exponential,
    field,
    gaussian,
    goe,
    half_normal,
    log_normal,
    mean,
    mixture,
    normal,
    normal_law,
    outer,
    parameter,
    sectors,
    spectrum,
    training_clock,
    trait,
    uniform,
    weights,
    whole_positive,
)
from derive.errors import DeclarationError, ParameterError
from derive.stages.expand import expand_declaration

T = parameter("T", default=3, domain=whole_positive)
SIGNS = discrete([-1, 0.5, 2], [0.2, 0.5, 0.3])
TWO_BELLS = mixture([0.3, 0.7], [normal_law(-1, 0.2), normal_law(1, 0.5)])


def learner(start, noise) -> Model:
    """A start and fresh noise in a linear law, in spikes, in overlaps, and as a direction to compare with."""
    D, t = sectors("D"), training_clock("t", steps=T)
    s, xi = start("s", D), noise("xi", D, t)
    J, v, M = goe("J", D), field("v", D, t), weights("M", D, D, t)
    return Model(
        parameters=(T,),
        equations=[
            Eq(v(0), s),
            Eq(v(t + 1), (v(t) + M(t) @ v(t) + xi(t)) / 2),
            Eq(M(0), J),
            Eq(M(t + 1), M(t) + (outer(v(t), s) + outer(s, v(t))) / D),
        ],
        observe={"square": mean(v(t) ** 2), "start": mean(s * v(t)), "both": mean(xi(t) * s)},
        probe=spectrum(M(T)),
    )


def with_law(law):
    return (lambda name, D: drawn(name, D, law)), (lambda name, D, t: drawn(name, D, law, t)(t).field)


def with_moments(center: float, variance: float):
    """The same mean and variance, and everything else normal."""
    center, spread = sp.nsimplify(center), sp.sqrt(sp.nsimplify(variance))

    def noise(name, D, t):
        return lambda time: center + spread * normal(name, D, t)(time)

    return (lambda name, D: center + spread * normal(name, D)), noise


def same(law, center, variance) -> None:
    found, expected = (
        derive.load(learner(*pair)).solve(T=3) for pair in (with_law(law), with_moments(center, variance))
    )
    assert found.method.closure == "exact"
    for name in ("square", "start", "both"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)
    assert len(found.outliers) > 0
    np.testing.assert_allclose(found.outliers, expected.outliers, rtol=1e-10)


@pytest.mark.slow
def test_linear_laws_hold_the_first_two_moments_of_values():
    same(SIGNS, 0.65, 1.1025)


@pytest.mark.slow
def test_linear_laws_hold_the_first_two_moments_of_mixtures():
    same(TWO_BELLS, 0.4, 0.3 * (0.04 + 1.96) + 0.7 * (0.25 + 0.36))


@pytest.mark.slow
def test_linear_laws_hold_the_first_two_moments_of_densities():
    same(uniform(-1, 2), 0.5, 0.75)


@pytest.mark.long
def test_moments_of_all_laws():
    """Integrals over the normals that each is a function of, by hand."""
    D = sectors("D")
    laws = {
        "uniform": (uniform(-1, 2), [0.5, 1.0, 1.25, 2.2]),
        "exponential": (exponential(0.5), [0.5, 0.5, 0.75, 1.5]),
        "half_normal": (half_normal(2), [2 * np.sqrt(2 / np.pi), 4, 16 * np.sqrt(2 / np.pi), 48]),
        "log_normal": (log_normal(0.1, 0.3), [np.exp(0.1 * k + 0.045 * k * k) for k in (1, 2, 3, 4)]),
        "discrete": (SIGNS, [0.65, 1.525, 2.2625, 5.03125]),
        "mixture": (
            mixture([0.3, 0.7], [normal_law(0, 0.2), normal_law(1, 0.5)]),
            [0.7, 0.3 * 0.04 + 0.7 * 1.25, 0.7 * 1.75, 0.3 * 3 * 0.04**2 + 0.7 * (1 + 6 * 0.25 + 3 * 0.0625)],
        ),
    }
    observe = {f"{name}{k}": mean(drawn(name, D, law) ** k) for name, (law, _) in laws.items() for k in (1, 2, 3, 4)}
    found = derive.load(Model(parameters=(), observe=observe)).solve()
    for name, (law, moments) in laws.items():
        for k, expected in enumerate(moments, 1):
            assert found[f"{name}{k}"] == pytest.approx([expected], rel=1e-9), (name, k)
        assert float(law.mean) == pytest.approx(moments[0])
        assert float(law.variance) == pytest.approx(moments[1] - moments[0] ** 2)


def threshold(kind: str, fourth: bool = False) -> Model:
    """A static vector inside a law, as a trait or as a vector that is drawn."""
    D, t = sectors("D"), training_clock("t", steps=T)
    s = trait("s", D, law=SIGNS) if kind == "trait" else drawn("s", D, SIGNS)
    J, v, h = gaussian("J", D, D), field("v", D, t), field("h", D, t)
    return Model(
        parameters=(T,),
        equations=[Eq(v(0), s), Eq(h(t), J @ v(t) / sqrt(D)), Eq(v(t + 1), tanh(h(t) + s) + s * v(t) / 4)],
        observe={"square": mean(v(t) ** 2), "first": mean(v(t)), "with": mean(s * v(t))},
    )


@pytest.mark.slow
def test_a_static_vector_is_a_trait():
    """Exactly by groups, and by sampling."""
    groups, sites = (derive.load(threshold(kind)).solve(T=3) for kind in ("trait", "drawn"))
    assert (groups.method.closure, sites.method.closure) == ("quadrature", "sampled")
    for name in ("square", "first", "with"):
        assert np.all(np.abs(groups[name] - sites[name]) < 5 * np.maximum(sites.errors[name], 1e-12)), name
        assert np.all(sites.errors[name] < 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("law", [SIGNS, TWO_BELLS, exponential(0.5)], ids=["values", "mixture", "exponential"])
def test_drawn_vectors_agree_with_simulation(law, simulation_seed):
    """With forty samples six standard errors are a chance of 1e-6."""
    theory = derive.load(learner(*with_law(law)))
    for size in (150, 400):
        found = theory.compare(size=size, seeds=40, T=2, seed=simulation_seed)
        compared = [row for row in found.rows if row.compared]
        assert len(compared) > 8 and all(abs(row.difference) < 6 for row in compared), found


@pytest.mark.slow
def test_directions_may_be_drawn(simulation_seed):
    D, g = sectors("D"), parameter("g", default=2.0)
    s = drawn("s", D, discrete([0, 2], [0.75, 0.25]))
    model = Model(
        parameters=(g,),
        observe={"toward": alignment(s), "plain": mean(s**2)},
        probe=spectrum(goe("M", D) + g / D * outer(s, s)),
    )
    found = derive.load(model).compare(size=400, seeds=40, seed=simulation_seed, g=2.0)
    rows = [row for row in found.rows if row.compared]
    assert len(rows) >= 3 and all(abs(row.difference) < 6 for row in rows), found
    solved = derive.load(model).solve(g=2.0)
    assert solved.outliers == pytest.approx([2.5])


def test_fresh_noise_by_hand():
    """v(t + 1) = v(t)/2 + xi(t): moments add up, in a linear law and in one that is not."""
    D, t = sectors("D"), training_clock("t", steps=T)
    xi, v, u = drawn("xi", D, half_normal(1), t), field("v", D, t), field("u", D, t)
    equations = [Eq(v(0), 0 * xi(0)), Eq(v(t + 1), v(t) / 2 + xi(t)), Eq(u(t), xi(t) ** 2 + v(t))]
    model = Model(parameters=(T,), equations=equations, observe={"v": mean(v(t) ** 2), "u": mean(u(t))})
    found = derive.load(model).solve(T=2)
    center = np.sqrt(2 / np.pi)
    squares = [0.0, 1.0, 0.25 + center**2 + 1.0]
    assert found["v"] == pytest.approx(squares, rel=1e-9)
    assert found["u"] == pytest.approx([1, 1 + center, 1 + 1.5 * center], rel=1e-9)


# -- what is refused


def on_a_diagonal(law):
    """A GOE with a drawn vector, and a function of a field made of it, on its diagonal."""
    size = sectors("size")
    value = drawn("value", size, law)
    made = field("made", size)
    return Model(
        parameters=(),
        equations=[Eq(made(), value + normal("noise", size) / 2)],
        probe=spectrum(goe("matrix", size) + diag(value) + diag(tanh(made()))),
    )


@pytest.mark.long
def test_a_drawn_spike_beside_one_with_traits_is_gaussian_in_linear_laws():
    """Its covariances are needed by groups of sites alone."""
    T = parameter("T", default=1, domain=whole_positive)
    D, t = sectors("D"), training_clock("t", steps=T)
    gain = trait("gain", D, values=[0.5, 1.5])
    outliers = []
    for g in (drawn("g", D, discrete([-1, 1])), normal("g", D)):
        y, W = field("y", D, t), weights("W", D, D, t)
        K = diag(1 + gain / 2) @ W(T)
        equations = [
            Eq(y(0), gain * normal("y0", D)),
            Eq(y(t + 1), (1 + gain) * y(t)),
            Eq(W(0), gaussian("B", D, D)),
            Eq(W(t + 1), W(t) + 2 / sqrt(D) * outer(g, y(t))),
        ]
        outliers.append(derive.load(Model(parameters=(T,), equations=equations, probe=spectrum(K.T @ K / D))).solve())
    drawn_outliers, normal_outliers = (solution.outliers for solution in outliers)
    assert drawn_outliers.size == 1
    np.testing.assert_allclose(drawn_outliers, normal_outliers, rtol=1e-10)


def test_the_law_of_a_vector_on_a_diagonal_counts_beyond_its_moments():
    """The bulk sees the law of what stands on a diagonal, also where all training laws are linear."""
    rules = {f"{f.field}": f.rule for f in expand_declaration(on_a_diagonal(discrete([-1, 1, 2]))).fields}
    assert "Piecewise" in str(rules["value"])
    with pytest.raises(DeclarationError, match="unbounded because value is"):
        expand_declaration(on_a_diagonal(exponential(2)))


def test_edges_beside_drawn_diagonals_are_those_by_hand():
    """z = w + <1/(w - s)> turns where <1/(w - s)^2> = 1, for the sum s of two independent vectors."""
    size, s = sectors("size"), np.add.outer([-1.0, 1.0, 2.0], [0.0, 1.0]).ravel()
    first, second = drawn("first", size, discrete([-1, 1, 2])), drawn("second", size, discrete([0, 1]))
    matrix = goe("matrix", size) + diag(first) + diag(second)
    found = derive.load(Model(parameters=(), equations=[], probe=spectrum(matrix))).solve().bulk_edges
    edges = []
    for low, high in ((-5.0, -1.01), (3.01, 6.0)):
        w = scipy.optimize.brentq(lambda w: np.mean((w - s) ** -2.0) - 1, low, high)
        edges.append(w + np.mean(1 / (w - s)))
    assert [found[0][0], found[-1][1]] == pytest.approx(edges, abs=1e-8)


def test_laws_that_are_none_are_refused():
    D = sectors("D")
    for make, match in (
        (lambda: uniform(2, 1), "from low to high"),
        (lambda: discrete([1, 2], [0.5, 0.4]), "is 9/10; it must be one"),
        (lambda: discrete([1, 2], [1.5, -0.5]), "must be not negative"),
        (lambda: discrete([1, 2], [1]), "one weight each"),
        (lambda: discrete([]), "empty"),
        (lambda: exponential(-1), "must be not negative"),
        (lambda: normal_law(0, -1), "must be not negative"),
        (lambda: mixture([0.5, 0.5], [1, 2]), "is not a law"),
        (lambda: mixture([1], [SIGNS]), "a mixture itself"),
        (lambda: uniform(0, sp.Symbol("q")), "depends on q"),
        (lambda: drawn("x", D, 3), "is not a law"),
        (lambda: trait("x", D, law=3), "is not a law"),
        (lambda: trait("x", D, law=uniform(0, 1), values=[1]), "leave values"),
        (lambda: Model(parameters=(), equations=[Eq(drawn("x", D, SIGNS), normal("y", D))]), "takes no equation"),
    ):
        with pytest.raises(DeclarationError, match=match):
            make()


def test_laws_that_are_none_at_some_values_are_refused_there():
    D, share = sectors("D"), parameter("share", default=0.5)
    vector = drawn("x", D, discrete([1, 2], [share, 1 - share]))
    theory = derive.load(Model(parameters=(share,), observe={"square": mean(vector**2)}))
    assert theory.solve(share=0.25)["square"] == pytest.approx([3.25])
    with pytest.raises(ParameterError, match=r"a weight of .*drawn x.* is -0.5"):
        theory.solve(share=1.5)
