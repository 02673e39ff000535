"""How the numbers of a solution were computed, as typed records: closure, quadrature, sampling, bulk, replicates.

Every number has a field. The property `sentence` expresses the record in words, for output only; it is never parsed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

USABLE = 1e-6
"""Relative change of a result under more quadrature nodes above which the result is refused."""

Closure = Literal["exact", "quadrature", "sampled"]
"""How averages over sites were computed."""


class Described(ABC):
    """A record with a description in words."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The record in words, for output."""


@dataclass(frozen=True)
class ExpectedMemory(Described):
    """Memory expected before a sampled run, in bytes, for each of its stages."""

    passes: float
    """Passes over the sampled sites."""
    moments: float
    """Moments and order parameters."""
    outliers: float
    """Eigenproblems of the outliers."""

    @property
    def most(self) -> float:
        return max(self.passes, self.moments, self.outliers)

    @property
    def sentence(self) -> str:
        stages = {"sampling": self.passes, "order parameters": self.moments, "outliers": self.outliers}
        return f"about {self.most / 1e9:.1f} GB at most, for {max(stages, key=lambda name: stages[name])}"


@dataclass(frozen=True)
class QuadratureReport(Described):
    """Convergence of a quadrature."""

    over: Literal["Gaussian fields", "trait"]
    """What the quadrature integrates over."""
    nodes: int
    """Quadrature nodes per axis."""
    coarser: int
    """Nodes per axis of the coarser run used for comparison."""
    error: float
    """Largest relative change of order parameters and observables between the two runs."""

    @property
    def converged(self) -> bool:
        return self.error <= USABLE

    @property
    def sentence(self) -> str:
        way = (
            f"Gaussian quadrature, {self.nodes} nodes per axis"
            if self.over == "Gaussian fields"
            else f"exact forward pass for each of {self.nodes} values of a trait"
        )
        return f"{way}, relative change {self.error:.1e} from {self.coarser}"


@dataclass(frozen=True)
class BiasCorrection(Described):
    """The bias correction of a sampled pass, from passes over half of the sites."""

    share: float
    """Bias of the full pass, as a fraction of its difference from the passes over halves."""
    doubt: float
    """Standard error of that fraction."""

    @property
    def sentence(self) -> str:
        return f"subtracted: {self.share:.2f}({self.doubt:.2f}) of the difference from half passes"


@dataclass(frozen=True)
class SamplingReport(Described):
    """A Monte Carlo estimate of the training level."""

    samples: int
    """Sites of all passes together."""
    replicates: int
    """Independent estimates, whose spread gives the standard errors."""
    seed: int
    """Seed of the random numbers."""
    draws: str
    """How random numbers are drawn."""
    responses: str
    """Estimator of the responses."""
    rank: int
    """Dimension of the basis that represents the past of each field."""
    truncated_variance: float
    """Largest relative variance outside that basis; it is drawn as independent noise."""
    resolution: float
    """Relative variance below which a noise carries no response."""
    bias: BiasCorrection | None = None
    """The bias correction; None if none was made."""
    rank_effect: float | None = None
    """Largest change of an observable at twice the rank, in standard errors; None if the rank is not limited."""
    memory: ExpectedMemory | None = None
    """Memory expected before the run."""

    @property
    def sentence(self) -> str:
        return f"sampled: {self.samples} sites, seed {self.seed}"


@dataclass(frozen=True)
class TrainingMethod(Described):
    """How the training level was computed."""

    closure: Closure = "exact"
    """How averages over sites were computed: exact, quadrature or sampled."""
    quadrature: QuadratureReport | None = None
    """Convergence of the quadrature; None without one."""
    sampling: SamplingReport | None = None
    """The Monte Carlo estimate; None if nothing was sampled."""

    @property
    def sentence(self) -> str:
        report = self.sampling or self.quadrature
        return "exact: nothing was sampled" if report is None else report.sentence


@dataclass(frozen=True)
class BulkMethod(Described):
    """How the bulk was computed."""

    way: Literal["curve", "responses", "site averages", "sampled site averages"] = "curve"
    """From the polynomial curve of the resolvent, or from response equations with averages over (sampled) sites."""
    responses: int = 1
    """Number of response equations."""
    nodes: int | None = None
    """Quadrature nodes of a density in these averages; None without a density."""
    error: float | None = None
    """Relative change of the responses with twice as many nodes."""

    @property
    def sentence(self) -> str:
        if self.way == "curve":
            return "curve of the resolvent"
        if self.way == "responses":
            return f"{self.responses} response equations, too many to eliminate, followed by Newton's method"
        which = "sites" if self.way == "site averages" else "sampled sites"
        told = f"{self.responses} response equations with averages over {which}, followed by Newton's method"
        if self.nodes is None or self.error is None:
            return told
        return f"{told}; densities at {self.nodes} nodes, relative change {self.error:.1e} with twice as many"


@dataclass(frozen=True)
class ReplicateMethod(Described):
    """How the outliers of each replicate were computed, which give the standard errors."""

    way: Literal["followed", "solved", "from the mean", "first order", "differences"]
    """By continuation from the mean, solved separately, from eigenvectors of the mean, to first order, or by
    differences."""
    discrepancy: float | None = None
    """Difference from an independent solution of the replicate that changes most, in standard errors."""
    reason: str = ""
    """Why replicates were solved separately; empty otherwise."""

    @property
    def sentence(self) -> str:
        if self.way == "followed":
            return f"continued from the mean; the farthest, solved again, agrees to {self.discrepancy:.1g} errors"
        if self.way == "solved":
            return f"each replicate solved separately: {self.reason}"
        if self.way == "from the mean":
            return "each solved from the mean's vectors"
        if self.way == "differences":
            return f"finite differences, because first-order changes are off by {self.discrepancy:.1g} errors"
        return (
            "to first order; finite differences for the replicate that changes most agree to "
            f"{self.discrepancy:.1g} errors"
        )


@dataclass(frozen=True)
class UndecidedOutlier(Described):
    """An outlier that sampling leaves undecided: some replicates lack it, or it lies within an error of an edge."""

    edge: float | None = None
    """The edge in question, if its position is known only within a standard error."""
    error: float | None = None
    """Standard error of that edge."""

    @property
    def sentence(self) -> str:
        if self.edge is None or self.error is None:
            return "an outlier is within its standard error of the edge, or some replicates lack it; raise samples"
        return (
            f"whether there is an outlier at the edge {self.edge:.6g} is undecided: the error of the edge is "
            f"{self.error:.1g}; raise samples"
        )


@dataclass(frozen=True)
class SpikeSpan(Described):
    """The span of the spikes on one side."""

    dimension: float
    """Effective dimension; directions near the rounding error count in part."""
    spikes: int
    """Number of spikes."""

    @property
    def sentence(self) -> str:
        return f"{self.dimension:.3g} of {self.spikes}"


@dataclass(frozen=True)
class MissingOverlaps(Described):
    """Why overlaps with the span of the spikes were not computed."""

    why: Literal["dependent spikes", "large"]
    """The spikes are nearly dependent, or A(z) is too large."""
    rows: int | None = None
    """Rows of A(z), if it is too large."""

    @property
    def sentence(self) -> str:
        if self.why == "dependent spikes":
            return "not available: the spikes are too nearly dependent for sampled order parameters"
        return f"not available: vectors need A(z), which has about {self.rows} rows; take fewer steps or labels"


@dataclass(frozen=True)
class PathErrors(Described):
    """How standard errors along a path were computed."""

    times: int
    """Number of times on the path."""
    anew: int = 0
    """Times at which replicates were solved separately instead of continued."""
    unknown: int = 0
    """Times at which outliers have no standard error."""

    @property
    def sentence(self) -> str:
        told = "followed from the mean"
        if self.anew:
            told += f"; at {self.anew} of {self.times} times each replicate is solved separately"
        if self.unknown:
            told += (
                f"; not available at {self.unknown} of {self.times} times: replicates differ too much for "
                "continuation, and matrices are too large to solve each of them; raise samples"
            )
        return told


@dataclass(frozen=True)
class OmittedPath(Described):
    """Outliers along the path were not computed by default, because the eigenproblem is large."""

    rows: int
    """Rows of the eigenproblem."""

    @property
    def sentence(self) -> str:
        return f"computed on request: the eigenproblem has {self.rows} rows"


@dataclass(frozen=True)
class LayerDiagnostics:
    """How the spectrum of one probed matrix was computed, and how accurately."""

    residual: float = 0.0
    """Largest relative smallest singular value of A(z) at an outlier."""
    condition: float = 1.0
    """Largest eigenvalue condition number of an outlier."""
    reduced: bool = True
    """Whether A(z) was reduced to an eigenproblem."""
    spiked: bool = True
    """Whether the matrix has spikes."""
    bulk: BulkMethod = field(default_factory=BulkMethod)
    """How the bulk was computed."""
    outlier_errors: ReplicateMethod | None = None
    """How standard errors of outliers were computed; None if nothing was sampled."""
    undecided: UndecidedOutlier | None = None
    """An outlier that sampling leaves undecided; None if there is none."""
    spike_directions: dict[str, SpikeSpan] = field(default_factory=dict)
    """Span of the spikes by side, if overlaps were computed."""
    overlaps: MissingOverlaps | None = None
    """Why overlaps are missing, if they are."""
    overlap_errors: str | None = None
    """Why overlaps have no standard errors, if they have none."""
    path: OmittedPath | None = None
    """Why outliers along the path are missing, if they are."""
    path_errors: PathErrors | None = None
    """How standard errors along the path were computed; None if nothing was sampled."""


RECORDS = (
    TrainingMethod,
    QuadratureReport,
    SamplingReport,
    BiasCorrection,
    ExpectedMemory,
    LayerDiagnostics,
    BulkMethod,
    ReplicateMethod,
    UndecidedOutlier,
    SpikeSpan,
    MissingOverlaps,
    PathErrors,
    OmittedPath,
)
"""All records of this module, in the order in which the manual lists them."""
