"""How the numbers of a solution were computed, as typed records: closure, quadrature, sampling, bulk, replicates.

Every number has a field. The property `sentence` says the same in words, for output only; nothing reads it back.
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
    """A record that can be said in words."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The record in words, for output."""


@dataclass(frozen=True)
class ExpectedMemory(Described):
    """Bytes: of passes over the sites, of moments and order parameters, and of the eigenproblems of the outliers, each
    with what is there beside it."""

    passes: float
    moments: float
    outliers: float

    @property
    def most(self) -> float:
        return max(self.passes, self.moments, self.outliers)

    @property
    def sentence(self) -> str:
        stages = {"sampling": self.passes, "order parameters": self.moments, "outliers": self.outliers}
        return f"about {self.most / 1e9:.1f} GB at most, for {max(stages, key=lambda name: stages[name])}"


@dataclass(frozen=True)
class QuadratureReport(Described):
    """Convergence of a quadrature. nodes: per axis; coarser: nodes of the run before; error: the largest relative
    change of order parameters and observables between the two."""

    over: Literal["Gaussian fields", "trait"]
    nodes: int
    coarser: int
    error: float

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
        return f"{way}, moved by {self.error:.1e} from {self.coarser}"


@dataclass(frozen=True)
class BiasCorrection(Described):
    """Bias of all sites in units of the difference to passes over half of them, and its uncertainty."""

    share: float
    doubt: float

    @property
    def sentence(self) -> str:
        return f"taken off: {self.share:.2f}({self.doubt:.2f}) of the difference to halves"


@dataclass(frozen=True)
class SamplingReport(Described):
    """A Monte Carlo estimate of the training level.

    samples: sites of all passes together. responses: the estimator of responses. rank: basis vectors of the past that
    were used; truncated_variance: the largest relative variance outside their span, which is drawn as independent
    noise. resolution: relative variance below which a noise carries no response. bias: None where it is not corrected.
    rank_effect: the largest change of an observable with twice the rank, in standard errors; None where the rank is
    not limited. memory: as expected before the run.
    """

    samples: int
    replicates: int
    seed: int
    draws: str
    responses: str
    rank: int
    truncated_variance: float
    resolution: float
    bias: BiasCorrection | None = None
    rank_effect: float | None = None
    memory: ExpectedMemory | None = None

    @property
    def sentence(self) -> str:
        return f"sampled: {self.samples} sites, seed {self.seed}"


@dataclass(frozen=True)
class TrainingMethod(Described):
    """How the training level was computed. quadrature: where averages were integrated; sampling: where sampled."""

    closure: Closure = "exact"
    quadrature: QuadratureReport | None = None
    sampling: SamplingReport | None = None

    @property
    def sentence(self) -> str:
        report = self.sampling or self.quadrature
        return "exact: nothing was sampled" if report is None else report.sentence


@dataclass(frozen=True)
class BulkMethod(Described):
    """How the bulk was computed: from the polynomial curve of the resolvent, or from that many response equations,
    with averages over sites or over sampled sites. nodes: values of a density in these averages; error: the relative
    change of the responses with twice as many."""

    way: Literal["curve", "responses", "site averages", "sampled site averages"] = "curve"
    responses: int = 1
    nodes: int | None = None
    error: float | None = None

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
        return f"{told}; densities at {self.nodes} values, moved by {self.error:.1e} with twice as many"


@dataclass(frozen=True)
class ReplicateMethod(Described):
    """How the outliers of replicates were computed from those of their mean.

    way: followed by continuation; solved anew, for the stated reason; solved from the vectors of the mean; to first
    order; or by differences, where first order is off. discrepancy: of the way, against an independent solution of the
    replicate that moves most, in standard errors.
    """

    way: Literal["followed", "solved", "from the mean", "first order", "differences"]
    discrepancy: float | None = None
    reason: str = ""

    @property
    def sentence(self) -> str:
        if self.way == "followed":
            return f"followed from the mean; the farthest, solved again, agrees to {self.discrepancy:.1g} errors"
        if self.way == "solved":
            return f"each replicate solved anew: {self.reason}"
        if self.way == "from the mean":
            return "each solved from the mean's vectors"
        if self.way == "differences":
            return f"differences, since to first order they are off by {self.discrepancy:.1g} errors"
        return f"to first order; differences of the one that moves most agree to {self.discrepancy:.1g} errors"


@dataclass(frozen=True)
class UndecidedOutlier(Described):
    """An outlier that sampling leaves undecided: one that not all replicates have, one within its standard error of an
    edge, or one at an edge that is known to a standard error."""

    edge: float | None = None
    error: float | None = None

    @property
    def sentence(self) -> str:
        if self.edge is None or self.error is None:
            return "an outlier is within its standard error of the edge, or some replicates lack it; raise samples"
        return (
            f"whether there is an outlier at the edge {self.edge:.6g} is not decided: that is known to "
            f"{self.error:.1g}; raise samples"
        )


@dataclass(frozen=True)
class SpikeSpan(Described):
    """The span of the spikes on one side. dimension: effective, directions near the rounding error count in part."""

    dimension: float
    spikes: int

    @property
    def sentence(self) -> str:
        return f"{self.dimension:.3g} of {self.spikes}"


@dataclass(frozen=True)
class MissingOverlaps(Described):
    """Why overlaps with the span of the spikes are not computed. rows: of A(z), where it is too large."""

    why: Literal["dependent spikes", "large"]
    rows: int | None = None

    @property
    def sentence(self) -> str:
        if self.why == "dependent spikes":
            return "not given: the spikes are too nearly dependent for sampled order parameters"
        return f"not given: vectors are read off A(z), of about {self.rows} rows; take fewer steps or labels"


@dataclass(frozen=True)
class PathErrors(Described):
    """Of `times` times along a path, those at which replicates were solved anew instead of followed, and those at which
    outliers have no errors."""

    times: int
    anew: int = 0
    unknown: int = 0

    @property
    def sentence(self) -> str:
        told = "followed from the mean"
        if self.anew:
            told += f"; at {self.anew} of {self.times} times each replicate is solved anew"
        if self.unknown:
            told += (
                f"; not given at {self.unknown} of {self.times} times: replicates differ too much to be followed, and "
                "matrices are too large to solve for each; raise samples"
            )
        return told


@dataclass(frozen=True)
class OmittedPath(Described):
    """Outliers at all times were not computed, since the eigenproblem has that many rows."""

    rows: int

    @property
    def sentence(self) -> str:
        return f"given if it is asked for: the eigenproblem has {self.rows} rows"


@dataclass(frozen=True)
class LayerDiagnostics:
    """How the spectrum of one probed matrix was computed, and how well.

    residual: the largest relative smallest singular value of A(z) at an outlier. condition: the largest eigenvalue
    condition number of an outlier. reduced: whether A(z) is an eigenproblem. spiked: whether the matrix has spikes.
    outlier_errors: how replicates give errors, None where nothing is sampled. spike_directions: by side the span of the
    spikes, where overlaps were computed. overlaps: why they were not, though asked for. overlap_errors: why overlaps of
    replicates, and so errors, are missing. path: why outliers at all times are missing; path_errors: of those.
    """

    residual: float = 0.0
    condition: float = 1.0
    reduced: bool = True
    spiked: bool = True
    bulk: BulkMethod = field(default_factory=BulkMethod)
    outlier_errors: ReplicateMethod | None = None
    undecided: UndecidedOutlier | None = None
    spike_directions: dict[str, SpikeSpan] = field(default_factory=dict)
    overlaps: MissingOverlaps | None = None
    overlap_errors: str | None = None
    path: OmittedPath | None = None
    path_errors: PathErrors | None = None


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
