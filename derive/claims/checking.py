"""Verdicts on claims: each formula decided against the records of the derivation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from derive.cells.verdicts import PROVED, REFUTED, SUPPORTED, UNDECIDED
from derive.claims.action_claims import (
    decide_average,
    decide_conjugate,
    decide_effective_action,
    decide_law,
    decide_observable,
    decide_order_parameter,
    decide_source,
    decide_symmetry,
)
from derive.claims.block_claims import decide_block, decide_matrix, decide_projected
from derive.claims.bulk_claims import (
    decide_atom,
    decide_curve,
    decide_edges,
    decide_equation,
    decide_moment,
    decide_resolvent,
)
from derive.claims.context import ClaimContext
from derive.claims.counterexamples import Counterexample, Refuted
from derive.claims.formulas import POINTS
from derive.claims.outlier_claims import (
    decide_critical,
    decide_inverse_map,
    decide_outlier,
    decide_scalar_map,
    decide_threshold,
)
from derive.claims.patience import within_time
from derive.claims.process_claims import decide_covariance, decide_kernel
from derive.claims.reading import Claim, ClaimsFile
from derive.claims.series_claims import decide_series
from derive.claims.site_claims import decide_site
from derive.claims.weight_claims import decide_weights
from derive.errors import ClaimError, NumericalError
from derive.inputs.loading import load_model
from derive.language.model import Model
from derive.pipeline import Derivation, derive_model
from derive.printing.lettering import MODEL, letters_of

_TRAINING_KINDS = (
    *("kernel", "covariance", "law", "source", "average", "order_parameter", "conjugate"),
    "effective_action",
    *("observable", "site", "symmetry", "weights"),
)
_CURVE_KINDS = ("resolvent", "curve", "edges", "atom")
_DECIDE: dict[str, Callable[[ClaimContext, Claim], tuple[str, str] | Refuted]] = {
    "atom": decide_atom,
    "average": decide_average,
    "block": decide_block,
    "conjugate": decide_conjugate,
    "covariance": decide_covariance,
    "critical": decide_critical,
    "curve": decide_curve,
    "edges": decide_edges,
    "effective_action": decide_effective_action,
    "equation": decide_equation,
    "inverse_map": decide_inverse_map,
    "kernel": decide_kernel,
    "law": decide_law,
    "matrix": decide_matrix,
    "moment": decide_moment,
    "observable": decide_observable,
    "order_parameter": decide_order_parameter,
    "outlier": decide_outlier,
    "projected": decide_projected,
    "resolvent": decide_resolvent,
    "scalar_map": decide_scalar_map,
    "series": decide_series,
    "site": decide_site,
    "source": decide_source,
    "symmetry": decide_symmetry,
    "threshold": decide_threshold,
    "weights": decide_weights,
}
"""The procedure that decides each kind of claim."""


@dataclass(frozen=True)
class ClaimVerdict:
    """The verdict on a claim. `status` is "proved", "supported", "refuted" or "not decided".

    "proved" holds for every value of the region. "supported" means that the algebra is proved, but the branch or region
    was tested only at the points given in `detail`. "refuted" comes with a counterexample, "not decided" with the
    methods that were tried. `counterexample` is set if the solver can compute the claimed number.
    """

    name: str
    status: str
    detail: str
    kind: str = ""
    where: str = ""
    counterexample: Counterexample | None = None

    @property
    def proved(self) -> bool:
        return self.status == PROVED

    @property
    def refuted(self) -> bool:
        return self.status == REFUTED


def check_claims(file: ClaimsFile, derivation: Derivation | None = None) -> list[ClaimVerdict]:
    """Return a verdict for each claim, in the order of the file.

    Args:
        file: the claims.
        derivation: the derivation to check against; by default the model is loaded and derived.
    """
    context = claim_context(file, derivation)
    return [_verdict(context, claim) for claim in file.claims]


def claim_context(file: ClaimsFile, derivation: Derivation | None = None) -> ClaimContext:
    """Return the context of the claims of a file, with the symbols of its notation."""
    context = ClaimContext(file, derive_model(model_of(file)) if derivation is None else derivation)
    if file.notation != MODEL:
        whole = whole_model_of(file) if derivation is None else derivation.model
        context.letters = letters_of(whole, file.notation)
    return context


def _verdict(context: ClaimContext, claim: Claim) -> ClaimVerdict:
    if claim.kind not in _TRAINING_KINDS and not context.probed:
        raise ClaimError(
            f"{context.place(claim)}: {context.file.model} probes no spectrum, so a {claim.kind} cannot be "
            "checked; add probe=spectrum(...) to the model"
        )
    if claim.kind not in _TRAINING_KINDS and context.bulk.projected.polynomials is None:
        raise ClaimError(
            f"{context.place(claim)}: the bulk of {context.file.model} has site averages that are not polynomials, so "
            "no formula can be checked against it; give its traits few values"
        )
    if claim.kind in _CURVE_KINDS and context.bulk.curve is None:
        raise ClaimError(
            f"{context.place(claim)}: the bulk of {context.file.model} is too large to eliminate to a curve; claim "
            "moments and equations between its responses instead"
        )
    against = None
    try:
        outcome = within_time(lambda: _decided(context, claim))
        if isinstance(outcome, Refuted):
            status, detail, against = REFUTED, outcome.detail, outcome.counterexample
        else:
            status, detail = outcome
    except NumericalError as error:
        status, detail = UNDECIDED, str(error)
    if claim.region and status != REFUTED:
        detail += f", for {' and '.join(claim.region)}"
    return ClaimVerdict(claim.name, status, detail, claim.kind, claim.where, against)


def _decided(context: ClaimContext, claim: Claim) -> tuple[str, str] | Refuted:
    context.integrals.clear()
    claim = context.in_names(claim)
    context.comparator = context.comparator_of(claim)
    outcome = _DECIDE[claim.kind](context, claim)
    if isinstance(outcome, Refuted):
        return outcome
    status, detail = outcome
    if context.integrals and status in (PROVED, SUPPORTED):
        return SUPPORTED, f"{detail}; the closed form of {context.integrals[0]} was tried at {POINTS} points"
    return status, detail


def model_of(file: ClaimsFile) -> Model:
    """Return the model of a claims file; a path is relative to the file."""
    model = whole_model_of(file)
    labels = [label for label, _ in model.probes]
    if file.layer and file.layer not in labels:
        raise ClaimError(f"{file.path}: there is no layer {file.layer!r}; the layers are {', '.join(labels)}")
    return model.probing(file.layer) if file.layer else model


def whole_model_of(file: ClaimsFile) -> Model:
    """Return the model of a claims file with all its probed matrices."""
    target = str(Path(file.path).parent / file.model) if file.model.endswith(".py") else file.model
    return load_model(target, dict(file.choices))
