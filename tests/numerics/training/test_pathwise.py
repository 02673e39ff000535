"""Derivatives of sampled theories at fixed random numbers."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sympy import Heaviside, sqrt, tanh

import derive
from derive import Eq, Model, discrete, drawn, field, gaussian, mean, parameter, positive, sectors
from derive.api.functions import check_pathwise
from derive.errors import ParameterError
from numerics.functions import hosted
from numerics.runtime.point import Point
from numerics.training import pathwise

FEW = {"S": 3, "samples": 2000, "seed": 1}


def squares(x, slopes):
    value = x[0] ** 2 * np.ones(2)
    return np.stack([value, 2 * x[0] * np.ones(2)], axis=-1) if slopes else value


def test_a_hosted_function_is_compiled_mapped_and_differentiated_once():
    f = hosted(squares, (2,))

    def of_number(x):
        return f(jnp.stack([x]))

    assert jax.jit(jax.vmap(of_number))(jnp.arange(3.0)).tolist() == [[0, 0], [1, 1], [4, 4]]
    assert jax.jit(jax.jacrev(of_number))(3.0).tolist() == jax.jacfwd(of_number)(3.0).tolist() == [6, 6]
    assert np.isnan(jax.jacfwd(jax.jacfwd(of_number))(3.0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("quantity", [pytest.param("phi_norm", marks=pytest.mark.long), "outlier"])
def test_slopes_are_those_of_finite_differences_at_the_same_seed(quantity):
    f = derive.load("coupled_spikes_tanh").function(quantity, of="theta", **FEW)
    found, step = f.gradient(2.5), 1e-3
    with jax.enable_x64(True):
        assert np.allclose(f(2.5), found.value, rtol=1e-12)
        differences = (f(2.5 + step) - f(2.5 - step)) / (2 * step)
    assert np.allclose(found.slopes["theta"], differences, rtol=1e-5)
    later = np.atleast_1d(found.slope_errors["theta"])[-1]
    assert 0 < later < 0.2 * abs(np.atleast_1d(differences)[-1])


@pytest.mark.slow
@pytest.mark.long
def test_errors_of_slopes_are_their_spread_over_seeds():
    model = derive.load("coupled_spikes_tanh")
    seeds = [model.function("phi_norm", of="theta", **{**FEW, "seed": seed}).gradient(2.5) for seed in range(6)]
    slopes = np.array([one.slopes["theta"][-1] for one in seeds])
    errors = np.array([one.slope_errors["theta"][-1] for one in seeds])
    # a chi-squared variable with five degrees of freedom is in (0.1, 26) but for one case in ten thousand
    assert 0.1 < 5 * slopes.var(ddof=1) / np.mean(errors**2) < 26


def one_step(law, start):
    """A model of one nonlinear step."""
    scale = parameter("scale", default=0.3, domain=positive, doc="width")
    D = sectors("D")
    g, x, h, y = gaussian("W", D, D), field("x", D), field("h", D), field("y", D)
    equations = [Eq(x, start(scale, D)), Eq(h, g @ tanh(x) / sqrt(D)), Eq(y, law(h) + scale)]
    return Model(parameters=(scale,), equations=equations, observe={"size": mean(y**2)}, name="one_step")


@pytest.mark.parametrize(
    "law, start, named",
    [
        (lambda x: Heaviside(x) * x, lambda scale, D: drawn("a", D, discrete([-1, 1])), "Heaviside"),
        (tanh, lambda scale, D: drawn("a", D, discrete([-1, 1], weights=[scale, 1 - scale])), "discrete values"),
    ],
)
def test_a_jump_is_refused_by_its_name(law, start, named):
    model = one_step(law, start)
    with pytest.raises(ParameterError, match=named):
        check_pathwise(model, "size", model.parameters)


def test_an_exact_theory_has_slopes_without_errors():
    found = derive.load("spiked_wigner").function("outlier", of="gamma0").gradient(2.0)
    assert float(found.slopes["gamma0"]) == pytest.approx(0.75) and found.slope_errors is None


class GivenRun:
    """Six replicates by number, each with its halves."""

    pilot = None

    def __init__(self, *_):
        pass

    def drawn(self, plan, number):
        return (number,)

    def halves(self, normals):
        return [(*normals, half) for half in (1, 2)]


def given_pass(training, of, rank, moments, slopes):
    """Observables of one parameter k with noise that grows with it, and twice as fast in halves."""

    def passed(p, x, normals, cut):
        noise = np.random.default_rng([7, *normals]).standard_normal(3) * (0.1 if len(normals) == 1 else 0.15)
        k, bias = float(x[0]), 0.2 * len(normals)
        value = np.array([np.sin(k), k**2, 1 + k]) + noise * (1 + k**3) + bias * k
        slope = np.array([np.cos(k), 2 * k, 1]) + noise * 3 * k**2 + bias
        return {"observables": {"q": np.stack([value, slope], axis=-1)}, "moments": {}}, 1

    return passed


def test_slopes_are_those_of_the_bias_corrected_value(monkeypatch):
    """The fraction of the difference to halves that is bias depends on the parameter, too."""
    monkeypatch.setattr(pathwise, "_SampledRun", GivenRun)
    monkeypatch.setattr(pathwise, "plans_for", lambda *_: None)
    monkeypatch.setattr(pathwise, "_chosen", lambda *_: (SimpleNamespace(rank=1, replicas=6, sites=100), 0.0))
    monkeypatch.setattr(pathwise, "_program", given_pass)
    monkeypatch.setattr(pathwise, "_finisher", lambda *_: lambda p, x, table, resolved: table["observables"]["q"])
    quantity = pathwise.SampledQuantity(None, ("k",), None, None, False)

    def at(k):
        return quantity.at(Point(k=k), True)

    for k in (0.3, 1.1):
        here = at(k)
        step = (at(k + 1e-5).numbers - at(k - 1e-5).numbers)[..., 0] / 2e-5
        np.testing.assert_allclose(here.numbers[..., 1], step, rtol=1e-6)
        assert np.all(here.errors > 0)
