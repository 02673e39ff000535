"""Writes training.py: the order parameters of the training level by one forward pass in time.

Linear laws: every field is a row of coefficients over the Gaussian noises and sources of its site, and correlations
follow from the covariance of those. Nonlinear laws: many sites are sampled side by side; each carries its values
and, for responses, the derivatives of its values by its own noises.
"""

from __future__ import annotations

from derive.algebra.words import Letter
from derive.codegen.exact import Exact
from derive.codegen.layout import Layout
from derive.program import layout
from derive.program.sampled_text import write_sampled
from derive.records.saddle import TimeOrder

RUNTIME = "numerics.runtime"
"""Where generated code finds the functions that all solvers share."""


def write_training(time_order: TimeOrder, letters: tuple[Letter, ...], signature: str) -> str:
    """The text of training.py, giving the matrices named by `letters` and the observables."""
    if time_order.system.linear:
        return Exact(Layout.of(time_order), letters, signature).module()
    return write_sampled(layout.Layout(time_order), letters, (), time_order.system.model.responses, RUNTIME)
