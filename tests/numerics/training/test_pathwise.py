"""Derivatives of sampled theories at fixed random numbers."""

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
