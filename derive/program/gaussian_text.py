"""The forward pass by Gaussian integrals as a JAX module that reads as the model's equations in order."""

from __future__ import annotations

from derive.program.exact_text import ExactText
from derive.program.gaussian import GaussianPass

IN_GAUSSIAN = (
    "Law average columns columns_each dual_each facts over_groups overlaps_each own part_each products_each projection "
    "residuals terms"
).split()


class GaussianText(ExactText):
    """The module of an exact pass whose functions also know how many nodes an axis of an integral has."""

    plain_kind = trait_kind = "GaussianTraining"
    doc = "Training level by Gaussian integrals: what enters nonlinear laws is Gaussian, and one pass is enough."
    runtime_functions = (*ExactText.runtime_functions, ("gaussian", IN_GAUSSIAN))

    def __init__(self, made: GaussianPass, runtime: str):
        self.nodes, self.refused = made.nodes, made.refused
        super().__init__(made.program, runtime)

    @property
    def extra(self) -> tuple[str, ...]:
        return (self.text.names.of(self.nodes),)
