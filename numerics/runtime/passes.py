"""The forward pass of a training level, chosen by its closure."""

from __future__ import annotations

from .program import Training
from .quadrature import QuadratureClosure
from .rows import ExactClosure, RowsPass
from .samples import SampledPass


def pass_of(training: Training) -> RowsPass | SampledPass:
    """Return the forward pass of a training level."""
    if training.closure == "sampled":
        return SampledPass(training)
    return RowsPass(training, QuadratureClosure if training.closure == "quadrature" else ExactClosure)
