"""The resolvent in closed form stays on the physical branch in the whole complex plane."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Heaviside

from derive import Model, diag, discrete, drawn, gaussian, goe, parameter, sectors, spectrum, whole_positive
from derive.algebra.nodes import Z
from derive.pipeline import derive_model

PLACES = (3.5, -3.5, 0.1 + 0.5j, -0.1 + 0.5j, -1.2 - 0.3j, 2.5 - 0.01j, -0.3 + 2j)


def semicircle(z: complex, radius: float = 2.0) -> complex:
    return 2 * (z - np.emath.sqrt(z - radius) * np.emath.sqrt(z + radius)) / radius**2


def wigner() -> Model:
    return Model(parameters=(), equations=[], probe=spectrum(goe("S", sectors("D"))))


def projected_wigner() -> Model:
    """Half of the rows and columns vanish, so the discriminant has the factor z^4."""
    D = sectors("D")
    kept = diag(drawn("kept", D, discrete({0: 0.5, 1: 0.5})))
    return Model(parameters=(), equations=[], probe=spectrum(kept @ goe("S", D) @ kept))


def wishart() -> Model:
    D, N = sectors("D", N=2)
    W = gaussian("W", N, D)
    return Model(parameters=(), equations=[], probe=spectrum(W.T @ W / N))


def marchenko_pastur(z: complex) -> complex:
    low, high = (1 - 0.5**0.5) ** 2, (1 + 0.5**0.5) ** 2
    return (z - 0.5 - np.emath.sqrt(z - low) * np.emath.sqrt(z - high)) / z


@pytest.mark.parametrize(
    ("model", "by_hand"),
    [
        (wigner, semicircle),
        (projected_wigner, lambda z: semicircle(z, 2**0.5) / 2 + 1 / (2 * z)),
        (wishart, marchenko_pastur),
    ],
)
def test_closed_forms_hold_in_the_whole_plane(model, by_hand):
    closed = derive_model(model()).first.bulk.resolvent
    for z in PLACES:
        assert complex(closed.subs(Z, z)) == pytest.approx(by_hand(complex(z)), rel=1e-12), z


def test_powers_of_functions_are_factorised():
    """The radius of the semicircle is twice a factor whose exponent is a parameter, as after T steps of decay."""
    a, T = parameter("a", default=0.5), parameter("T", default=3, domain=whole_positive)
    kept = (1 - Heaviside(a) / 2) ** T
    closed = derive_model(Model(parameters=(a, T), probe=spectrum(kept * goe("S", sectors("D"))))).first.bulk.resolvent
    for z in PLACES:
        assert complex(closed.subs({Z: z, a: 1, T: 2})) == pytest.approx(semicircle(complex(z), 0.5), rel=1e-12), z
