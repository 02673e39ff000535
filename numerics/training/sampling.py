"""Monte Carlo estimates of the training level: replicates of the sampled forward pass, bias correction, standard
errors.

A replicate is a forward pass over M sites. Its order parameters are means over these sites. They have a standard error
of order M^(-1/2) and, because they feed back into the laws, a bias of order 1/M. The mean over independent replicates
is the estimate, and their spread gives its standard error.

The bias is estimated by Richardson extrapolation from passes over the two halves of the sites of each replicate. The
correction applies to results and not to order parameters: twice the moments of all sites minus those of halves need not
be positive semidefinite. The fraction of the difference that is bias follows from how the variance falls between M/2
and M sites.

Errors of results are propagated to first order (JVP) from the deviation of each replicate. If the basis of the past is
truncated, the truncated part is drawn as independent noise. Passes with a coarser truncation estimate its effect, which
counts as an error. The effect of resolving more responses is included in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from inspect import signature
from typing import Any

import jax
import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.runtime.diagonals import no_reach, widened
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import Point, replaced
from numerics.runtime.sampled import Carried
from numerics.runtime.samples import SampledPass
from numerics.support import compiling
from numerics.support.nearby import Nearby
from numerics.support.progress import Report
from numerics.support.reports import BiasCorrection, SamplingReport
from numerics.support.threads import threads_for
from numerics.training.draws import DRAWS, draw, halves
from numerics.training.ensemble import Ensemble, PassSum, Term
from numerics.training.shelf import Shelf, give_back

# Tuned constants: value, unit, and what the value trades off. tests/campaigns/calibrate_sampling.py varies one of those
# marked [C] and compares reported with observed errors, bias and CPU time; notebooks/manual/evidence.md has the figures
# that are on record. The others are bounds of memory or of rounding and have no script.
#
# -- number of sites and replicates
DEFAULT_SAMPLES = 100_000  # sites: standard error against time
REPLICATES = 20  # replicates: accuracy of the standard error against sites per replicate [C]
FEWEST_REPLICATES = 10  # replicates: the same where a replicate needs many sites [C]
SITES_WANTED = 16  # sites per normal: bias of higher order against number of replicates [C]
FEWEST_SITES = 4  # sites per direction: below, the basis is not determined; above, fewer directions fit [C]
SITES_AT_LEAST = (
    256  # sites per replicate: below, the bias is not yet of order 1/sites; above, few samples cost more [C]
)
# -- memory
SITES_BYTES = 1.2e9  # bytes per replicate: memory against number of replicates
WORKING_COPIES = 3  # temporary arrays per stored float of a pass: safety of the memory estimate against its size
# -- truncation of the basis of the past
ROUNDING = 1e-12  # relative variance: directions below are rounding errors
COARSE = (
    1e-6,
    1e-5,
    1e-4,
    1e-3,
    3e-3,
    1e-2,
    3e-2,
)  # relative variance: cutoffs in order; truncation error against rank
ENOUGH = 1e-2  # relative variance: largest cutoff before the rank doubles; truncation error against memory [C]
COARSER = (
    4.0  # ratio of cutoffs: signal of the truncation error against linearity; 1 / (COARSER - 1) of it is the error [C]
)
COARSER_REPLICATES = (
    4  # replicates run again with the coarser cutoff: accuracy of the truncation error against time [C]
)
PAIRS = 6  # pairs of passes at the rank and at twice the rank: accuracy of the truncation error against time [C]
BEYOND_DOUBT = (
    25.0  # sampling variances: a single observable gets its own truncation error above; power against noise [C]
)
# -- bias and responses
NEXT_ORDER = 1.5  # directions / sites: fraction of the bias correction that counts as error; coverage against size [C]
RESPONSE_CUTOFF = 0.5  # directions / sites, relative variance: noise of responses against truncated responses [C]
LEAST_CUTOFF, LARGEST_CUTOFF = 2.0, 30.0  # 1 / sites, relative variance: bounds of the response cutoff [C]
FINER = 4.0  # ratio of cutoffs: the change under the finer response cutoff counts as an error [C]
# -- overflow
OVERFLOW = 1e25  # size of an observable: above, it has diverged
MORE_SITES = 4  # ratio of sites: certainty that noise has diverged and not the model, against time
LATER = 0.1  # fraction of the steps: by more than this the larger pass must overflow later


@dataclass(frozen=True)
class Sampling:
    """Options of the sampled forward pass.

    Attributes:
        samples: number of sites over all replicates; with `debias` half of them belong to passes over halves.
        seed: seed of the pseudo-random numbers.
        draws: one of `draws.DRAWS`.
        rank: largest rank of the basis of the past; None for as large as memory allows.
        tolerance: relative variance cutoff of the basis; None to choose it.
        debias: whether to correct the bias of order 1/sites.
        share: fraction of the difference to halves that is bias, and its uncertainty; None to estimate both from
            observables. A second pass over the same sites uses the values of the first.
    """

    samples: int = DEFAULT_SAMPLES
    seed: int = 0
    draws: str = "sobol"
    rank: int | None = None
    tolerance: float | None = None
    debias: bool = True
    share: tuple[float, float] | None = None


Order = Mapping[OrderKey, np.ndarray]


@dataclass(frozen=True)
class Sampled:
    """Result of a sampled forward pass: order parameters, observables and their standard errors.

    Attributes:
        order: order parameters of the mean over replicates.
        nearby: perturbed order parameters, from which results get standard errors and a bias correction.
        observables: bias-corrected estimates.
        finite: number of times before the first overflow.
        errors: standard errors of the observables.
        method: description of the computation.
    """

    order: Order
    nearby: Nearby
    observables: Mapping[str, np.ndarray]
    finite: int
    errors: Mapping[str, np.ndarray]
    report: SamplingReport


def sampled_pass(training: SampledPass, p: Point, how: Sampling, tell: Report) -> Sampled:
    """Return the training level at p, estimated by independent replicates of the sampled forward pass.

    Args:
        training: the forward pass.
        p: parameter values and data.
        how: options.
        tell: progress report.

    Raises:
        NumericalError: if the truncated basis is too small, or sampling noise diverges.
    """
    with threads_for(0):  # the factored matrices, moments of normals, have few rows
        try:
            return _sampled_pass(training, p, how, tell)
        except _NoiseDiverged:
            tell(0.0, "sampled responses are too noisy: repeating with more sites")
            return _sampled_pass(training, p, replace(how, samples=MORE_SITES * how.samples), tell)


def _sampled_pass(training: SampledPass, p: Point, how: Sampling, tell: Report) -> Sampled:
    """Return the estimate at a fixed number of samples."""
    if how.draws not in DRAWS:
        raise ParameterError(f"draws={how.draws} is not known; it must be one of {', '.join(DRAWS)}")
    run = _SampledRun(training, p, how, tell)
    plans = plans_for(training, p, how)
    if training.ranges:
        run = replace(run, p=_within(training, p, run.drawn(plans[0], 0), plans[0].rank))
    plan, tolerance = _chosen(plans, how, run.pilot)
    checked = plan.rank is not None and tolerance > ROUNDING and how.tolerance is None and how.share is None
    moved = [run.doubled(plan, tolerance, number) for number in range(PAIRS if checked else 0)]
    replicas = run.replicas(plan, tolerance)
    ensemble, mean, half = replicas.ensemble, replicas.mean, replicas.half
    share, doubt = replicas.bias(how.share)
    deviations = _deviations(mean, half, replicas.wholes, replicas.halved, share) + replicas.left_out
    resolved = min(LARGEST_CUTOFF, max(LEAST_CUTOFF, RESPONSE_CUTOFF * replicas.directions))
    kept = resolved / (plan.replicas * plan.sites) if how.tolerance is None else how.tolerance
    central = ensemble.resolved(mean, kept)
    order, noises = central.whole(), central.resolved
    varied = [ensemble.moved(mean, terms, noises) for terms in deviations]
    varied.append(ensemble.resolved(mean, kept / FINER))
    errors = _errors(ensemble, [*deviations, [(doubt, mean), (-doubt, half)]])
    rank_effect = None
    if moved:
        errors, rank_effect = _with_fewer_directions(errors, moved, ensemble.observed(deviations[-1]))
    return Sampled(
        order,
        Nearby(
            tuple(varied),
            (1.0,) * len(varied),
            ensemble.order([(1.0, half)], noises) if replicas.halved else None,
            share,
            doubt,
            len(replicas.wholes),
            ensemble.moved(mean, [(share, mean), (-share, half)], noises) if replicas.halved else None,
        ),
        ensemble.observed([(1 + share, mean), (-share, half)]),
        min(report.finite for report in replicas.reports),
        errors,
        SamplingReport(
            samples=plan.replicas * plan.sites * (2 if how.debias else 1),
            replicates=plan.replicas,
            seed=how.seed,
            draws=how.draws,
            responses=training.responses,
            rank=replicas.directions,
            truncated_variance=max(one.lost for one in replicas.reports),
            resolution=float(kept),
            bias=BiasCorrection(float(share), float(doubt)) if how.debias else None,
            rank_effect=rank_effect,
        ),
    )


@dataclass(frozen=True)
class _SampledRun:
    """A sampled forward pass with its options; its methods run single passes."""

    training: SampledPass
    p: Point
    how: Sampling
    tell: Report

    def drawn(self, plan: _Plan, number: int) -> dict[str, Any]:
        """Draw the normals of one replicate."""
        shapes, training = self.training.shapes(self.p, plan.rank), self.training
        return draw(training.groups, shapes, plan.sites, (self.how.seed, number), self.how.draws, training.paired)

    def halves(self, normals: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return the normals of each half of the sites."""
        return halves(self.training.groups, normals, self.how.draws, self.training.paired)

    def passing(self, plan: _Plan, normals: Mapping[str, Any], tolerance: float, coarser: float = 1.0) -> _Pass:
        """Run one pass. coarser: factor by which its truncation exceeds the cutoff that allots space in the basis."""
        shares = np.array([tolerance, coarser * tolerance])
        return _Pass.of(forward_pass(self.training, self.p, normals, plan.rank, shares))

    def pilot(self, plan: _Plan) -> Callable[[float], _Pass]:
        """Return a function that runs half of the sites of one replicate at a given relative variance cutoff."""
        self.tell(0.0, f"choosing the truncation at rank {plan.rank}")
        return partial(self.passing, plan, self.halves(self.drawn(plan, 0))[0])

    def doubled(self, plan: _Plan, tolerance: float, number: int) -> dict[str, np.ndarray]:
        """Return the change of observables when the rank doubles and the cutoff falls by `COARSER`.

        Both passes take half of the sites of an additional replicate and share the normals of common directions.
        """
        self.tell(0.0, f"truncation error at rank {plan.rank}")
        wide = _Plan(plan.sites // 2, 1, 2 * (plan.rank or 1))
        normals = self.drawn(wide, plan.replicas + number)
        fine, rough = (self.passing(wide, normals, tolerance / COARSER, times) for times in (1.0, COARSER))
        return {name: value - rough.observables[name] for name, value in fine.observables.items()}

    def enlarged(self, plan: _Plan, tolerance: float) -> _Pass:
        """Run one pass over `MORE_SITES` times the sites."""
        wide = _Plan(MORE_SITES * plan.sites, 1, plan.rank)
        return self.passing(wide, self.drawn(wide, plan.replicas), tolerance)

    def replicas(self, plan: _Plan, tolerance: float) -> _Replicates:
        """Run all replicates, each with its halves for bias correction, the first few also with a coarser
        truncation."""
        results = _Replicates(Ensemble(self.training, self.p, Shelf()), plan)
        truncated, diverged = True, False
        for number in range(plan.replicas):
            normals = self.drawn(plan, number)
            passes = [self.passing(plan, normals, tolerance)]
            results.wholes.append(results.added(passes[0]))
            if number < COARSER_REPLICATES and truncated:
                rough = self.passing(plan, normals, tolerance, COARSER)
                truncated = not rough.equals(passes[0])
                if truncated:
                    results.coarser.append((results.added(rough), results.wholes[-1]))
            if self.how.debias:
                both = [self.passing(plan, half, tolerance) for half in self.halves(normals)]
                results.halved.append([results.added(half) for half in both])
                passes += both
            steps = [run.overflow for run in passes if run.overflow is not None]
            if steps and not diverged:
                _check_noise(min(steps), plan.sites, self.enlarged(plan, tolerance))
                diverged = True
            results.reports.extend(replace(run, kept=Carried(), observables={}) for run in passes)
            self.tell((number + 1) / plan.replicas, f"sampling, replicate {number + 1} of {plan.replicas}")
        give_back()
        return results


@dataclass
class _Replicates:
    """Passes of all replicates, by their indices in an ensemble.

    Attributes:
        wholes: passes over all sites.
        halved: pairs of passes over halves.
        coarser: pairs of a pass with coarser truncation and the pass over the same sites without it.
        reports: truncation and overflow of each pass.
    """

    ensemble: Ensemble
    plan: _Plan
    wholes: list[int] = field(default_factory=list)
    halved: list[list[int]] = field(default_factory=list)
    coarser: list[tuple[int, int]] = field(default_factory=list)
    reports: list[_Pass] = field(default_factory=list)

    def added(self, result: _Pass) -> int:
        """Add a pass to the ensemble and return its index."""
        return self.ensemble.add(result.kept, result.observables)

    @cached_property
    def mean(self) -> PassSum:
        """Mean of the passes over all sites."""
        return self.ensemble.mean([(1 / len(self.wholes), number) for number in self.wholes])

    @cached_property
    def half(self) -> PassSum:
        """Mean of the passes over halves, or, without bias correction, over all sites."""
        if not self.halved:
            return self.mean
        return self.ensemble.mean([(0.5 / len(self.halved), number) for both in self.halved for number in both])

    @property
    def directions(self) -> int:
        """Largest rank that a basis has reached."""
        return max(report.directions for report in self.reports)

    @property
    def left_out(self) -> list[list[Term]]:
        """Estimated truncation error as a sum of passes; empty without truncation."""
        if not self.coarser:
            return []
        part = 1 / ((COARSER - 1) * len(self.coarser))
        return [[term for rough, whole in self.coarser for term in ((part, rough), (-part, whole))]]

    def bias(self, given: tuple[float, float] | None) -> tuple[float, float]:
        """Return the fraction of the difference to halves that is bias, and its uncertainty."""
        if not self.halved:
            return 0.0, 0.0
        if given is not None:
            return given
        seen = self.ensemble.observables
        share, doubt = _share([seen[k] for k in self.wholes], [[seen[k] for k in both] for both in self.halved])
        return share, math.hypot(doubt, NEXT_ORDER * self.directions / self.plan.sites)


def _errors(ensemble: Ensemble, deviations: Sequence[Sequence[Term]]) -> dict[str, np.ndarray]:
    """Return standard errors of observables from independent deviations."""
    changes = [ensemble.observed(terms) for terms in deviations]
    return {name: np.sqrt(sum(change[name] ** 2 for change in changes)) for name in changes[0]}


def _with_fewer_directions(
    errors: Mapping[str, np.ndarray], moved: Sequence[Mapping[str, np.ndarray]], counted: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], float]:
    """Return errors that include the change of observables under a doubled rank, and the largest such change in
    units of its error."""
    twice = _beyond_chance({name: np.array([change[name] for change in moved]) for name in errors}, errors)
    more = {name: np.maximum(0.0, twice[name] - np.square(counted[name])) for name in errors}
    total = {name: np.sqrt(error**2 + more[name]) for name, error in errors.items()}
    most = max(
        float(np.max(np.sqrt(x[total[name] > 0]) / total[name][total[name] > 0], initial=0.0))
        for name, x in twice.items()
    )
    return total, most


def forward_pass(
    training: SampledPass, p: Point, normals: Mapping[str, Any], rank: int | None, tolerance: np.ndarray
) -> Any:
    """Run one pass over the sites of these normals; optimise the compiled program only if that saves time."""
    sites = max((len(x) for x in normals.values()), default=1)
    run = compiled(training.forward_pass, quickly=training.is_light(p, rank, sites))
    return run(p, normals, rank=rank, tolerance=tolerance)


def _within(training: SampledPass, p: Point, normals: Mapping[str, Any], rank: int | None) -> Point:
    """Return the point with the ranges of sampled diagonal entries, measured in one pass."""
    p = replaced(p, **{name: no_reach(count) for name, _, count in training.ranges})
    kept, *_ = forward_pass(training, p, normals, rank, np.full(2, ROUNDING))
    seen = compiled(training.moments_of, quickly=True)(p, kept)
    try:
        return replaced(p, **{name: widened(np.asarray(seen[key])) for name, key, _ in training.ranges})
    except ValueError as many:
        raise NumericalError(
            f"a diagonal entry takes {many}, which are too many point masses; use functions with fewer jumps, or "
            "smooth ones"
        ) from None


class _NoiseDiverged(NumericalError):
    """Sampling noise has diverged although the model has not."""


def _check_noise(step: int, sites: int, enlarged: _Pass) -> None:
    """Raise if a pass overflows at a step at which a pass over more sites does not."""
    if enlarged.overflow is None or enlarged.overflow > (1 + LATER) * step:
        later = "does not overflow" if enlarged.overflow is None else f"overflows at step {enlarged.overflow}"
        raise _NoiseDiverged(
            f"the noise of sampled responses has diverged at step {step} with {sites} sites; with {MORE_SITES * sites} "
            f"sites the pass {later}, so the model has not diverged; raise --samples by a factor of {MORE_SITES}"
        )


@dataclass(frozen=True)
class _Plan:
    """Sites per replicate, number of replicates, and largest rank of a basis (None for full rank)."""

    sites: int
    replicas: int
    rank: int | None


def plans_for(training: SampledPass, p: Point, how: Sampling) -> list[_Plan]:
    """Return plans of increasing rank.

    The sites per replicate are the power of two nearest to the requested number. Each further plan doubles the rank and
    uses as many sites as this rank needs, as long as they fit into memory.
    """
    budget = how.samples / (2 if how.debias else 1)

    def width(rank: int | None) -> int:
        """Largest number of normals of one kind per site, which bounds the rank of every basis."""
        shapes = training.shapes(p, rank)
        return max((math.prod(shapes[name]) for group in training.groups for name in group), default=1)

    def together(rank: int | None) -> int:
        """Number of normals per site over all kinds, which sets the noise of responses."""
        shapes = training.shapes(p, rank)
        return max((sum(math.prod(shapes[name]) for name in group) for group in training.groups), default=1)

    def most(rank: int | None) -> float:
        """Number of sites that fit into memory."""
        normals = sum(map(math.prod, training.shapes(p, rank).values()))
        return SITES_BYTES / (8 * (WORKING_COPIES * training.footprint(p, rank) + normals))

    def sites(rank: int | None, least: int = SITES_AT_LEAST) -> int:
        """Sites per replicate, a power of two."""
        wanted = max(budget / REPLICATES, min(budget / FEWEST_REPLICATES, SITES_WANTED * together(rank)), least)
        return 1 << max(4, math.floor(math.log2(min(1.42 * wanted, most(rank)))))

    def fits(rank: int | None) -> bool:
        """Whether the basis is well determined at this rank."""
        return sites(rank) >= FEWEST_SITES * width(rank)

    ranks = [how.rank]
    if how.rank is None and not fits(None):
        first = max(filter(fits, (2**k for k in range(4, 13))), default=16)
        larger = [first << k for k in range(1, 13) if first << k < width(None)]
        ranks = [first, *(rank for rank in larger if most(rank) >= FEWEST_SITES * rank)]
    plans = []
    for rank in ranks:
        count = sites(rank, SITES_AT_LEAST if rank == ranks[0] else FEWEST_SITES * width(rank))
        plans.append(_Plan(count, max(FEWEST_REPLICATES, math.ceil(budget / count)), rank))
    return plans


def _chosen(
    plans: Sequence[_Plan], how: Sampling, pilot: Callable[[_Plan], Callable[[float], _Pass]]
) -> tuple[_Plan, float]:
    """Return the plan of smallest rank whose basis has an acceptable cutoff, and the smallest such cutoff.

    Args:
        pilot: returns a pass over half of the sites of one replicate; noise gives it a higher rank than a pass over all
            sites.

    Raises:
        NumericalError: if no plan has a sufficient basis at the largest cutoff.
    """
    if how.tolerance is not None or plans[0].rank is None:
        return plans[0], ROUNDING if how.tolerance is None else how.tolerance
    shares = (ROUNDING, *COARSE)
    for plan in plans:
        run = pilot(plan)
        first, last = 0, len(shares) - 1 if plan is plans[-1] else shares.index(ENOUGH)
        if run(shares[last]).full:
            continue
        while first < last:
            middle = (first + last) // 2
            first, last = (middle + 1, last) if run(shares[middle]).full else (first, middle)
        return plan, shares[first]
    rank = plans[-1].rank or 1
    raised = "take fewer steps" if how.rank is None else f"raise --rank, for instance to {2 * rank}, or leave it out"
    raise NumericalError(
        f"{rank} directions of the past are too few: with a relative variance cutoff of {shares[-1]:g} the basis still "
        f"needs more; {raised}"
    )


@dataclass(frozen=True)
class _Pass:
    """Result of one forward pass.

    Attributes:
        kept: data from which moments are computed.
        finite: number of times before the first overflow.
        lost: largest truncated fraction of the variance of a field.
        directions: largest rank of a basis.
        full: whether some basis had no space left.
    """

    kept: Carried
    observables: Mapping[str, np.ndarray]
    finite: int
    lost: float
    directions: int
    full: bool

    @property
    def overflow(self) -> int | None:
        """First step at which an observable is not finite or exceeds `OVERFLOW`; None without overflow."""
        large = [
            ~(np.abs(x.reshape(len(x), -1)).max(axis=1, initial=0.0) < OVERFLOW) for x in self.observables.values()
        ]
        return min((int(np.argmax(steps)) for steps in large if steps.any()), default=None)

    def equals(self, other: _Pass) -> bool:
        """Whether both passes agree bit by bit."""
        pairs = zip(*(jax.tree.leaves((one.kept, one.observables)) for one in (self, other)), strict=True)
        return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)

    @staticmethod
    def of(result: Any) -> _Pass:
        """Convert the result of a compiled pass."""
        kept, observables, finite, report = result
        seen = {name: np.asarray(value) for name, value in observables.items()}
        return _Pass(kept, seen, int(finite), float(report.lost), int(report.directions), bool(report.full))


def _deviations(
    mean: PassSum, half: PassSum, wholes: Sequence[int], halved: Sequence[Sequence[int]], share: float
) -> list[list[Term]]:
    """Return the deviation of each replicate's bias-corrected result, (1 + share) whole - share half, from the mean.

    The squares of the deviations add up to the variance of the estimate.
    """
    scale = 1 / math.sqrt(len(wholes) * (len(wholes) - 1))
    deviations: list[list[Term]] = [[((1 + share) * scale, k), (-(1 + share) * scale, mean)] for k in wholes]
    for terms, pair in zip(deviations, halved, strict=False):
        terms += [*((-share * scale / 2, k) for k in pair), (share * scale, half)]
    return deviations


def _beyond_chance(moved: Mapping[str, np.ndarray], errors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return squared truncation errors of observables from a few paired differences (along the first axis).

    The squared mean difference of a single observable is dominated by noise. Squares minus their sampling variance, in
    units of squared errors, are therefore pooled over all observables. A single observable gets its own error only if
    it exceeds `BEYOND_DOUBT` times the sampling variance.
    """
    whole = 1 / (1 - 1 / COARSER) ** 2
    squares = {name: whole * np.mean(each, axis=0) ** 2 for name, each in moved.items()}
    chance = {name: whole * np.var(each, axis=0, ddof=1) / len(each) for name, each in moved.items()}
    parts = [(squares[name] - chance[name])[error > 0] / error[error > 0] ** 2 for name, error in errors.items()]
    together = max(0.0, float(np.mean(np.concatenate(parts)))) if any(part.size for part in parts) else 0.0
    return {
        name: np.maximum(together * error**2, np.maximum(0.0, squares[name] - BEYOND_DOUBT * chance[name]))
        for name, error in errors.items()
    }


def _share(
    wholes: Sequence[Mapping[str, np.ndarray]], halved: Sequence[Sequence[Mapping[str, np.ndarray]]]
) -> tuple[float, float]:
    """Return the fraction of the difference to halves that is bias, and its uncertainty.

    The bias is quadratic in the noise, so it scales like a variance when the number of sites doubles: by 1/2 for
    independent normals, by less for a Sobol sequence. The variance of the observables mixes both kinds, and the noise
    that causes the bias may contain more independent normals. The fraction therefore lies between that of the
    observables and one. Observables that vary by less than rounding errors of the largest one do not count.
    """
    falls: list[float] = []
    largest = max((float(np.max(np.nan_to_num(value) ** 2, initial=0.0)) for value in wholes[0].values()), default=0.0)
    for name in wholes[0]:
        whole = np.var([one[name] for one in wholes], axis=0)
        half = np.mean([np.var([both[k][name] for both in halved], axis=0) for k in (0, 1)], axis=0)
        scattered = half > ROUNDING**2 * largest
        falls += np.log(np.maximum(whole, 1e-300)[scattered] / half[scattered]).tolist()
    # the logarithm of a sample variance is biased low by about 1 / degrees of freedom
    fall = min(0.5, math.exp(float(np.mean(falls)) + 0.5 / (len(wholes) - 1))) if falls else 0.5
    share = fall / (1 - fall)
    return (1 + share) / 2, (1 - share) / 2


@lru_cache(maxsize=64)
def compiled(function: Callable[..., Any], quickly: bool = False) -> Callable[..., Any]:
    """Return a function of a generated module, compiled once for each set of whole numbers and each rank."""
    ranked = ("rank",) if "rank" in signature(function).parameters else ()
    if quickly:
        return compiling.compiled(function, quickly=True, static=ranked)
    # the older loop emitters (`support.compiling`) compile this program more slowly and are not faster
    return jax.jit(function, static_argnames=ranked)
