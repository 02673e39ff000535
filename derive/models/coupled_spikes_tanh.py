"""Coupled spikes with nonlinear laws: phi(t) = tanh(a(t) + kappa sum xi), g(t) = theta tanh(b(t) + kappa sum chi).

The model of coupled_spikes with saturating laws, so that the spike vectors are not Gaussian and averages are sampled.
"""

from sympy import tanh

from derive.models.coupled_spikes import declare, kappa, theta

MODEL = declare(
    phi_law=lambda a, earlier: tanh(a + kappa * earlier),
    g_law=lambda b, earlier: theta * tanh(b + kappa * earlier),
)
