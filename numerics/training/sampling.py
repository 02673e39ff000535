"""The sampled forward pass: replicas that fit into memory, their mean, its error, and the bias that is taken off.

A replica is a forward pass over some sites. Its order parameters are means over those sites, so they carry an error
of order sites^(-1/2) and, because they feed back into the laws, a bias of order 1/sites. Replicas are independent:
their mean has the smaller error and their spread says how large it is. Passes over the halves of the sites of each
replica show the bias, which is taken off results, not off order parameters: twice the moments of all sites minus those
of halves are not the moments of anything, and matrices made of them need not be positive. How much of the difference to
halves is bias is read off how the variance falls. Errors need derivatives only: each replica moves the moments of all
sites a little, by what it has, with its halves, on a result without bias. Where there is no room for all directions of
the past, what is left out is drawn as independent noise, and passes that leave out more show what that does, which is
counted as an error; so is what leaving out fewer responses does.
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

DEFAULT_SAMPLES = 100_000
REPLICAS, FEWEST_REPLICAS = 20, 10
"""How many replicas there are, and down to how many there may be where sites are few for all directions."""
COARSER_REPLICAS = 4
"""Replicas that are run again with more left out: they share their numbers, so that a few are enough."""
SITES_BYTES = 1.2e9
"""What the sites of one replica may take."""
WORKING_COPIES = 3
"""A pass takes about so many times what it keeps for each site."""
ROUNDING = 1e-12
"""Share of its variance below which a direction is rounding error."""
SITES_WANTED, FEWEST_SITES = 16, 4
"""Sites per normal of a site: as many as one wants, and per direction of the past: fewer than which one must not
have."""
SITES_AT_LEAST = 256
"""However few samples are asked for: with fewer, what halves show is not yet a bias of order 1/sites."""
COARSE = (1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
"""Shares below which a direction is left out where there is no room for all, the smallest that makes room."""
ENOUGH = 1e-2
"""Where so much would have to be left out to make room, there is more room with more sites, if memory has it."""
COARSER = 4.0
"""Passes that show what leaving out does leave out so many times more. Of the difference a third counts as an error: so
much it is if it grows in proportion."""
NEXT_ORDER = 1.5
"""What is taken off is the bias of order 1/sites. So many times directions/sites of the difference to halves may be the
next order, which counts as an error: with five sites per direction a quarter of it was seen."""
RESOLVED, AT_LEAST, AT_MOST = 0.5, 2.0, 30.0
"""Noises that earlier ones determine, but for so many times directions/sites of their variance, sites of all replicas
counted, carry no response: that of a noise with the share v has an error of 1/(v sites) in square, and errors of
responses to as many noises as there are directions add up. Between so many and so many times 1/sites at least and at
most. An outlier of 4.219 was off by +0.0047, +0.0014, -0.0012 and -0.0012 (0.0008) with 30, 10, 3 and 1 over the sites,
nine directions and 3000 samples, and its spread was the same; with 60 directions and 4000 samples a second outlier
appeared at the edge in nine of ten solutions with 2 or 5 over the sites, in six with 10 or 30."""
PAIRS = 6
"""Passes that are run with room for twice the directions and without. They share their numbers, so that a few tell how
far leaving out moves observables; with three, chance made errors a third larger. What a fourth of the share moves is
three fourths of it if it grows in proportion."""
BEYOND_DOUBT = 25.0
"""Squares of what such passes move one observable by count for it alone beyond so many times what chance gives them."""
OVERFLOW = 1e25
"""Observables that exceed this have diverged."""
MORE_SITES, LATER = 4, 0.1
"""A pass that overflows is repeated with so many times the sites: where it then overflows later by more than this share
of the steps, noise has diverged and not the model."""
FINER = 4.0
"""What so many times smaller a share would change counts as an error: in small networks a tenth changed no more than a
fourth."""


@dataclass(frozen=True)
class Sampling:
    """How a sampled pass is made. samples: sites that are followed, in all; with `debias` half of them in passes over
    halves. rank: most directions of the past, as many as fit into memory if None. tolerance: share of its variance
    below which a direction is left out; chosen if None. share: how much of the difference to halves is bias, and how
    far that may be off; estimated from the observables if None, so that a second pass over the same sites is told what
    the first has found."""

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
    """Order parameters of all replicas together, and those near them that give results their errors and take off their
    bias. observables: without bias; errors: their standard errors."""

    order: Order
    nearby: Nearby
    observables: Mapping[str, np.ndarray]
    finite: int
    errors: Mapping[str, np.ndarray]
    report: SamplingReport


def sampled_pass(training: SampledPass, p: Point, how: Sampling, tell: Report) -> Sampled:
    """The training level by independent replicas of a sampled forward pass, at parameter values and data p."""
    with threads_for(0):  # what is factored here, moments of normals, has few rows
        try:
            return _sampled_pass(training, p, how, tell)
        except _NoiseDiverged:
            tell(0.0, "sampled responses are too noisy: once more with more sites")
            return _sampled_pass(training, p, replace(how, samples=MORE_SITES * how.samples), tell)


def _sampled_pass(training: SampledPass, p: Point, how: Sampling, tell: Report) -> Sampled:
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
    resolved = min(AT_MOST, max(AT_LEAST, RESOLVED * replicas.directions))
    kept = resolved / (plan.replicas * plan.sites) if how.tolerance is None else how.tolerance
    noises = ensemble.resolved(mean, kept)
    order = ensemble.order([(1.0, mean)], noises).whole()
    varied = [ensemble.moved(mean, terms, noises) for terms in deviations]
    varied.append(ensemble.order([(1.0, mean)], ensemble.resolved(mean, kept / FINER)))
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
        min(one.finite for one in replicas.reports),
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
    """A sampled pass as it was asked for: its single passes."""

    training: SampledPass
    p: Point
    how: Sampling
    tell: Report

    def drawn(self, plan: _Plan, number: int) -> dict[str, Any]:
        """The normals of one replica."""
        shapes, training = self.training.shapes(self.p, plan.rank), self.training
        return draw(training.groups, shapes, plan.sites, (self.how.seed, number), self.how.draws, training.paired)

    def halves(self, normals: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """The normals of each half of the sites."""
        return halves(self.training.groups, normals, self.how.draws, self.training.paired)

    def passing(self, plan: _Plan, normals: Mapping[str, Any], tolerance: float, coarser: float = 1.0) -> _Pass:
        """One pass; coarser: how many times more it leaves out than spans are chosen for."""
        shares = np.array([tolerance, coarser * tolerance])
        return _Pass.of(forward_pass(self.training, self.p, normals, plan.rank, shares))

    def pilot(self, plan: _Plan) -> Callable[[float], _Pass]:
        """A pass over half of the sites of one replica, by the share that it leaves out."""
        self.tell(0.0, f"how much of the past {plan.rank} directions hold")
        return partial(self.passing, plan, self.halves(self.drawn(plan, 0))[0])

    def doubled(self, plan: _Plan, tolerance: float, number: int) -> dict[str, np.ndarray]:
        """What observables move by with room for twice the directions, which a fourth of the share takes: on half of
        the sites of one replica more, with the same normals for the directions that both have."""
        self.tell(0.0, f"what twice the {plan.rank} directions would change")
        wide = _Plan(plan.sites // 2, 1, 2 * (plan.rank or 1))
        normals = self.drawn(wide, plan.replicas + number)
        fine, rough = (self.passing(wide, normals, tolerance / COARSER, times) for times in (1.0, COARSER))
        return {name: value - rough.observables[name] for name, value in fine.observables.items()}

    def enlarged(self, plan: _Plan, tolerance: float) -> _Pass:
        """A pass over more sites."""
        wide = _Plan(MORE_SITES * plan.sites, 1, plan.rank)
        return self.passing(wide, self.drawn(wide, plan.replicas), tolerance)

    def replicas(self, plan: _Plan, tolerance: float) -> _Replicas:
        """All replicas, each with its halves where bias is taken off, the first ones also with more left out."""
        found = _Replicas(Ensemble(self.training, self.p, Shelf()), plan)
        truncated, diverged = True, False
        for number in range(plan.replicas):
            normals = self.drawn(plan, number)
            passes = [self.passing(plan, normals, tolerance)]
            found.wholes.append(found.added(passes[0]))
            if number < COARSER_REPLICAS and truncated:
                rough = self.passing(plan, normals, tolerance, COARSER)
                truncated = not rough.equals(passes[0])
                if truncated:
                    found.coarser.append((found.added(rough), found.wholes[-1]))
            if self.how.debias:
                both = [self.passing(plan, half, tolerance) for half in self.halves(normals)]
                found.halved.append([found.added(one) for one in both])
                passes += both
            steps = [one.overflow for one in passes if one.overflow is not None]
            if steps and not diverged:
                _check_noise(min(steps), plan.sites, self.enlarged(plan, tolerance))
                diverged = True
            found.reports.extend(replace(one, kept=Carried(), observables={}) for one in passes)
            self.tell((number + 1) / plan.replicas, f"sampling, replica {number + 1} of {plan.replicas}")
        give_back()
        return found


@dataclass
class _Replicas:
    """Passes of all replicas by their numbers in an ensemble: over all sites, over halves of them, and pairs of one
    with more left out and one without; reports: what else is known of each pass."""

    ensemble: Ensemble
    plan: _Plan
    wholes: list[int] = field(default_factory=list)
    halved: list[list[int]] = field(default_factory=list)
    coarser: list[tuple[int, int]] = field(default_factory=list)
    reports: list[_Pass] = field(default_factory=list)

    def added(self, one: _Pass) -> int:
        """The number of a pass that is put into the ensemble."""
        return self.ensemble.add(one.kept, one.observables)

    @cached_property
    def mean(self) -> PassSum:
        """The mean of passes over all sites."""
        return self.ensemble.mean([(1 / len(self.wholes), one) for one in self.wholes])

    @cached_property
    def half(self) -> PassSum:
        """The mean of passes over halves; that over all sites where there are none."""
        if not self.halved:
            return self.mean
        return self.ensemble.mean([(0.5 / len(self.halved), one) for both in self.halved for one in both])

    @property
    def directions(self) -> int:
        return max(one.directions for one in self.reports)

    @property
    def left_out(self) -> list[list[Term]]:
        """What leaving out moves a result by, where it does."""
        if not self.coarser:
            return []
        part = 1 / ((COARSER - 1) * len(self.coarser))
        return [[term for rough, whole in self.coarser for term in ((part, rough), (-part, whole))]]

    def bias(self, known: tuple[float, float] | None) -> tuple[float, float]:
        """How much of the difference to halves is bias, and how far that may be off."""
        if not self.halved:
            return 0.0, 0.0
        if known is not None:
            return known
        seen = self.ensemble.observables
        share, doubt = _share([seen[k] for k in self.wholes], [[seen[k] for k in both] for both in self.halved])
        return share, math.hypot(doubt, NEXT_ORDER * self.directions / self.plan.sites)


def _errors(ensemble: Ensemble, deviations: Sequence[Sequence[Term]]) -> dict[str, np.ndarray]:
    """Standard errors of observables, from what moves them."""
    changes = [ensemble.observed(terms) for terms in deviations]
    return {name: np.sqrt(sum(one[name] ** 2 for one in changes)) for name in changes[0]}


def _with_fewer_directions(
    errors: Mapping[str, np.ndarray], moved: Sequence[Mapping[str, np.ndarray]], counted: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], float]:
    """Errors with what twice the directions move observables by, beyond what is counted, and the largest such change
    in units of its error."""
    twice = _beyond_chance({name: np.array([one[name] for one in moved]) for name in errors}, errors)
    more = {name: np.maximum(0.0, twice[name] - np.square(counted[name])) for name in errors}
    found = {name: np.sqrt(error**2 + more[name]) for name, error in errors.items()}
    most = max(
        float(np.max(np.sqrt(x[found[name] > 0]) / found[name][found[name] > 0], initial=0.0))
        for name, x in twice.items()
    )
    return found, most


def forward_pass(
    training: SampledPass, p: Point, normals: Mapping[str, Any], rank: int | None, tolerance: np.ndarray
) -> Any:
    """A pass over the sites of these normals, by a program that is optimised where that pays."""
    sites = max((len(x) for x in normals.values()), default=1)
    run = compiled(training.forward_pass, quickly=training.is_light(p, rank, sites))
    return run(p, normals, rank=rank, tolerance=tolerance)


def _within(training: SampledPass, p: Point, normals: Mapping[str, Any], rank: int | None) -> Point:
    """The point that says between which ends numbers on sampled diagonals lie, as they do in one pass."""
    p = replaced(p, **{name: no_reach(count) for name, _, count in training.ranges})
    kept, *_ = forward_pass(training, p, normals, rank, np.full(2, ROUNDING))
    seen = compiled(training.moments_of, quickly=True)(p, kept)
    try:
        return replaced(p, **{name: widened(np.asarray(seen[key])) for name, key, _ in training.ranges})
    except ValueError as many:
        raise NumericalError(
            f"what stands on a diagonal jumps between {many}, which are too many to be kept apart; use functions that "
            "have fewer steps, or that are smooth"
        ) from None


class _NoiseDiverged(NumericalError):
    """The noise of sampling has diverged, and the model has not."""


def _check_noise(step: int, sites: int, enlarged: _Pass) -> None:
    """Refuse passes that overflow at a step where one over more sites does not."""
    if enlarged.overflow is None or enlarged.overflow > (1 + LATER) * step:
        later = "does not overflow" if enlarged.overflow is None else f"overflows at step {enlarged.overflow}"
        raise _NoiseDiverged(
            f"the noise of sampled responses has diverged at step {step} with {sites} sites; with {MORE_SITES * sites} "
            f"the same pass {later}, so that the model has not; raise --samples {MORE_SITES} times"
        )


@dataclass(frozen=True)
class _Plan:
    """rank: most directions, None where there is room for all."""

    sites: int
    replicas: int
    rank: int | None


def plans_for(training: SampledPass, p: Point, how: Sampling) -> list[_Plan]:
    """Sites of each replica, a power of two near to what is wanted, replicas, and room for directions; then with twice
    the room and the sites that it takes, as long as memory has them."""
    budget = how.samples / (2 if how.debias else 1)

    def width(rank: int | None) -> int:
        """Normals of one site, of the kind that has most: no span has more directions."""
        shapes = training.shapes(p, rank)
        return max((math.prod(shapes[name]) for group in training.groups for name in group), default=1)

    def together(rank: int | None) -> int:
        """Normals of one site, of all kinds: noise in responses comes from all of them."""
        shapes = training.shapes(p, rank)
        return max((sum(math.prod(shapes[name]) for name in group) for group in training.groups), default=1)

    def most(rank: int | None) -> float:
        """Sites that memory has room for."""
        normals = sum(map(math.prod, training.shapes(p, rank).values()))
        return SITES_BYTES / (8 * (WORKING_COPIES * training.footprint(p, rank) + normals))

    def sites(rank: int | None, least: int = SITES_AT_LEAST) -> int:
        wanted = max(budget / REPLICAS, min(budget / FEWEST_REPLICAS, SITES_WANTED * together(rank)), least)
        return 1 << max(4, math.floor(math.log2(min(1.42 * wanted, most(rank)))))

    def fits(rank: int | None) -> bool:
        return sites(rank) >= FEWEST_SITES * width(rank)

    ranks = [how.rank]
    if how.rank is None and not fits(None):
        first = max(filter(fits, (2**k for k in range(4, 13))), default=16)
        larger = [first << k for k in range(1, 13) if first << k < width(None)]
        ranks = [first, *(rank for rank in larger if most(rank) >= FEWEST_SITES * rank)]
    found = []
    for rank in ranks:
        count = sites(rank, SITES_AT_LEAST if rank == ranks[0] else FEWEST_SITES * width(rank))
        found.append(_Plan(count, max(FEWEST_REPLICAS, math.ceil(budget / count)), rank))
    return found


def _chosen(
    plans: Sequence[_Plan], how: Sampling, pilot: Callable[[_Plan], Callable[[float], _Pass]]
) -> tuple[_Plan, float]:
    """The first plan that has room for what may not be left out, or else the last one, and the smallest share to leave
    out with which there is room; refused before anything else is done if there is none.

    pilot: a pass over half of the sites of one replica, where noise takes more directions than on all.
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
        f"{rank} directions of the past are too few: with a share {shares[-1]:g} of the variance of each field left "
        f"out there are still more; {raised}"
    )


@dataclass(frozen=True)
class _Pass:
    kept: Carried
    observables: Mapping[str, np.ndarray]
    finite: int
    lost: float
    directions: int
    full: bool
    """Whether something found no room."""

    @property
    def overflow(self) -> int | None:
        """The first step at which an observable has overflowed, or grown beyond all measure."""
        large = [
            ~(np.abs(x.reshape(len(x), -1)).max(axis=1, initial=0.0) < OVERFLOW) for x in self.observables.values()
        ]
        return min((int(np.argmax(steps)) for steps in large if steps.any()), default=None)

    def equals(self, other: _Pass) -> bool:
        """Whether both give the same numbers."""
        pairs = zip(*(jax.tree.leaves((one.kept, one.observables)) for one in (self, other)), strict=True)
        return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)

    @staticmethod
    def of(result: Any) -> _Pass:
        kept, observables, finite, report = result
        seen = {name: np.asarray(value) for name, value in observables.items()}
        return _Pass(kept, seen, int(finite), float(report.lost), int(report.directions), bool(report.full))


def _deviations(
    mean: PassSum, half: PassSum, wholes: Sequence[int], halved: Sequence[Sequence[int]], share: float
) -> list[list[Term]]:
    """What each replica moves a result without bias by, which is one plus the share of that of all sites less the share
    of that of halves: squares of these add up to its variance."""
    scale = 1 / math.sqrt(len(wholes) * (len(wholes) - 1))
    found: list[list[Term]] = [[((1 + share) * scale, k), (-(1 + share) * scale, mean)] for k in wholes]
    for terms, pair in zip(found, halved, strict=False):
        terms += [*((-share * scale / 2, k) for k in pair), (share * scale, half)]
    return found


def _beyond_chance(moved: Mapping[str, np.ndarray], errors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The squares of what leaving out moves observables by, for all of the share, from a few passes along the first
    axis.

    Of each observable alone a few passes tell little but chance. So squares less what chance gives them, in units of
    squared errors, are put together, and counted for all alike; for one alone where it is beyond doubt.
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
    """The bias of all sites in units of how much more halves have, and how far that may be off.

    It comes from squares of noise, so it falls as a variance does when sites are doubled: to a half for independent
    normals, further for those of a sequence. The variance of the observables, all together, has some of both, and the
    noise that makes the bias may have more of the former: the share is between theirs and one.
    """
    falls = []
    for name in wholes[0]:
        whole = np.var([one[name] for one in wholes], axis=0)
        half = np.mean([np.var([both[k][name] for both in halved], axis=0) for k in (0, 1)], axis=0)
        scattered = half > ROUNDING**2 * np.mean(np.square([one[name] for one in wholes]), axis=0)
        falls += np.log(np.maximum(whole, 1e-300)[scattered] / half[scattered]).tolist()
    # logarithms of variances from few values are low, by about one over their degrees of freedom
    fall = min(0.5, math.exp(float(np.mean(falls)) + 0.5 / (len(wholes) - 1))) if falls else 0.5
    share = fall / (1 - fall)
    return (1 + share) / 2, (1 - share) / 2


@lru_cache(maxsize=64)
def compiled(function: Callable[..., Any], quickly: bool = False) -> Callable[..., Any]:
    """A function of a generated module, compiled once for each set of whole numbers and each rank."""
    ranked = ("rank",) if "rank" in signature(function).parameters else ()
    if quickly:
        return compiling.compiled(function, quickly=True, static=ranked)
    # XLA's older way of writing loops (`support.compiling`) takes twice as long to compile this, and is not faster
    return jax.jit(function, static_argnames=ranked)
