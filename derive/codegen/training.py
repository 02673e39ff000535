"""Writes training.py: the order parameters of the training level by one forward pass in time.

Linear laws: every field is a row of coefficients over the Gaussian noises and sources of its site, and correlations
follow from the covariance of those. Nonlinear laws: many sites are sampled side by side; each carries its values
and, for responses, the derivatives of its values by its own noises.
"""

from __future__ import annotations

from derive.algebra.words import Letter
from derive.codegen.exact import Exact
from derive.codegen.layout import Layout
from derive.codegen.sampled import Sampled
from derive.pipeline import Derivation


def write_training(derivation: Derivation, letters: tuple[Letter, ...], signature: str) -> str:
    """The text of training.py, giving the matrices named by `letters` and the observables."""
    layout = Layout.of(derivation)
    if derivation.system.linear:
        return Exact(layout, letters, signature).module()
    return Sampled(layout, letters, signature, derivation.model.responses).module()
