"""The assumptions of a derivation by stage, read from its records, with their meaning for this model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sympy as sp

from derive.algebra.nodes import TAU
from derive.language.contents import atoms
from derive.language.model import Model
from derive.language.symbols import Axis, Clock, Sector
from derive.pipeline import PROBE_STAGES, Derivation, DerivedProbe
from derive.printing.documents import latex
from derive.printing.statements import matrix_law
from derive.records.action import Action, AveragedAction
from derive.records.base import Record
from derive.records.method import ClosureKind, Method
from derive.records.probe import BlockMatrix, Bulk, Pencil, ProjectedProbe
from derive.records.saddle import SaddlePoint, SingleSite, TimeOrder
from derive.records.system import System
from derive.report.document import Math, Words, words
from derive.support.plain_words import counted


@dataclass(frozen=True)
class Assumption:
    """An assumption, its stage (a key of the pipeline), and what it means in this model."""

    stage: str
    statement: Words
    particulars: tuple[Words, ...]


Level = Derivation | DerivedProbe
"""The subject of a report: a training level alone, or a probed matrix with its training level."""


def levels(derivation: Derivation, labels: Sequence[str] | None = None) -> dict[str, Level]:
    """Return the probed matrices of the report by label (all of them if none is named), or the training level if there
    are none.
    """
    chosen = derivation.probes if labels is None else labels
    return {label: derivation.probes[label] for label in chosen} or {"": derivation}


def assumptions(levels: dict[str, Level]) -> tuple[Assumption, ...]:
    """Return the assumptions in the order of the stages, those of the training level once."""
    particulars: dict[tuple[str, Words], dict[Words, list[str]]] = {}
    first = next(iter(levels))
    for stage in levels[first].stages:
        for label, level in levels.items():
            for statement, line in _assumed(level, stage):
                lines = particulars.setdefault((stage, statement), {})
                if stage in PROBE_STAGES or label == first or not lines:
                    lines.setdefault(line, []).append(label)
    return tuple(
        Assumption(
            stage, statement, tuple(_named(line, labels, levels, stage) for line, labels in lines.items() if line)
        )
        for (stage, statement), lines in particulars.items()
    )


def _assumed(level: Level, stage: str) -> Iterator[tuple[Words, Words]]:
    """Yield the assumptions of a stage, each with one detail about this model."""
    record = level.record(stage)
    new = [words(_sentence(a)) for a in record.assumptions if a not in _before(level, stage)]
    for belongs, line in _particulars(record):
        for statement in new if belongs is None else [words(belongs)]:
            yield statement, line
    for statement in new:
        yield statement, ()


def _before(level: Level, stage: str) -> set[str]:
    """Return the assumptions of the records on which this one builds."""
    mine = set(level.record(stage).assumptions)
    inherited: set[str] = set()
    earlier = True
    for other in level.stages:
        earlier = earlier and other != stage
        theirs = set(level.record(other).assumptions)
        if theirs < mine or (earlier and theirs == mine):
            inherited |= theirs
    return inherited


def _named(line: Words, labels: list[str], levels: dict[str, Level], stage: str) -> Words:
    """Return a detail, prefixed with the layers that it concerns."""
    if stage not in PROBE_STAGES or len(labels) == len(levels):
        return line
    return words(f"layer{'s' if len(labels) > 1 else ''} {', '.join(labels)}: ", *line)


Particulars = Iterator[tuple[str | None, Words]]
"""Particulars of a model: with None they refine the assumption of the record, otherwise the given statement."""


def _particulars(record: Record) -> Particulars:
    readers: tuple[tuple[type, Callable[..., Particulars]], ...] = (
        (System, _of_system),
        (Action, _of_action),
        (AveragedAction, _of_average),
        (SaddlePoint, _of_saddle),
        (SingleSite, _of_single_site),
        (TimeOrder, _of_order),
        (Method, _of_method),
        (ProjectedProbe, _of_probe),
        (BlockMatrix, _of_blocks),
        (Pencil, _of_pencil),
        (Bulk, _of_bulk),
    )
    for kind, reader in readers:
        if isinstance(record, kind):
            yield from reader(record)


def _of_system(record: System) -> Particulars:
    base = sp.Symbol(next((s.name for s in _sectors(record.model) if s.ratio == 1), "D"))
    for sector in _sectors(record.model):
        if sector.ratio == 1 and sector.name == base.name:
            yield None, words("the base size is ", Math(latex(sector)), ", which goes to infinity")
        else:
            yield None, words(Math(f"{latex(sector)} = {latex(sector.ratio * base)}"))
    for clock in atoms(record.model, Clock):
        yield None, words(Math(latex(clock.steps)), " stays finite, and so do all sums over ", Math(latex(clock)))
    for axis in atoms(record.model, Axis):
        yield None, words(Math(latex(axis.size)), f" labels along {axis} stay finite")
    for source in record.sources:
        if source.role == "normal":
            yield (
                "Given vectors are Gaussian, independent of each other and of all random matrices",
                words(Math(latex(source)), " over ", Math(latex(source.sector)), ", variance ",
                      Math(latex(source.scale**2))),
            )  # fmt: skip
    for vector in record.drawn:
        yield (
            "Other vectors have independent entries: linear laws involve only their means and variances, others the "
            "whole law",
            words(Math(latex(vector)), f" over {vector.sector}, {vector.law}"),
        )
    for trait in record.traits:
        yield (
            "Sites differ by traits, which are independent of each other and of everything random",
            words(Math(latex(trait)), " over ", Math(latex(trait.sector)),
                  ": sites of one value are a group, and means over sites are weighted sums over the groups"
                  if trait.discrete else
                  ": a density, taken at more and more values until nothing moves by more than 1e-10"),
        )  # fmt: skip
    for _, probe in record.model.probes:
        if probe.plus:
            yield (
                "An observable on the diagonal of the probed matrix is the number it concentrates on",
                words(f"{probe.plus} shifts the whole spectrum and changes nothing else"),
            )


def _of_action(record: Action) -> Particulars:
    clocks = atoms(record.system.model, Clock)
    for clock in clocks:
        last = clock.steps if clock.endpoint else clock.steps - 1
        yield None, words(
            "time is discrete, ", Math(rf"{latex(clock)} = 0, 1, \ldots, {latex(last)}"),
            ", and each equation gives a value from others that are already known (the Ito convention)",
        )  # fmt: skip
    if not clocks:
        yield None, words("no field depends on training time: every equation is an explicit assignment")
    if record.system.spectral:
        yield None, words("spectral time ", Math(latex(TAU)), " is continuous, and the probe is driven from rest")


def _of_average(record: AveragedAction) -> Particulars:
    for matrix in record.system.disorder:
        yield None, words(Math(latex(matrix)), f": {matrix_law(matrix)}, variance ", Math(latex(matrix.variance)))
        if matrix.fresh is not None:
            yield (
                "Matrices that are drawn afresh couple equal times only",
                words(Math(latex(matrix)), " is independent at each ", Math(latex(matrix.fresh))),
            )


def _of_saddle(record: SaddlePoint) -> Particulars:
    correlations = {(c.a, c.b) for c in record.covariances}
    responses = {(m.a, m.noise) for m in record.memories}
    yield (
        None,
        words(
            f"{counted(len(correlations), 'correlation')} and {counted(len(responses), 'response')} "
            "take the place of all bilinears; their fluctuations fall with the size"
        ),
    )
    probing = [v for v in record.vanishing if v.noise.role == "spectral" and v.left.role != "spectral"]
    training = [v for v in record.vanishing if v not in probing]
    causal = "Causality: a field does not respond to an impulse that comes later or never reaches it"
    for value in training:
        yield causal, words(Math(f"{latex(value, record)} = 0"))
    if probing:
        yield (
            "The probe is passive: it never acts back on the training",
            words(
                f"{counted(len(probing), 'response')} of training fields to impulses in the probe "
                + ("vanishes" if len(probing) == 1 else "vanish")
            ),
        )


def _of_single_site(record: SingleSite) -> Particulars:
    for sector in record.system.sectors:
        noises = record.noises(sector)
        inside = f"{counted(len(noises), 'noise')} with the covariances of the saddle point" if noises else "no noise"
        yield None, words("a site of ", Math(latex(sector)), f": {inside}")


def _of_order(record: TimeOrder) -> Particulars:
    same = [(a, j) for a, j, lag in record.lags if lag == 0]
    yield (
        None,
        words(
            f"an order without cycles was found for {counted(len(record.order), 'field')} of one time; "
            f"{counted(len(same), 'response')} of {len(record.lags)} "
            + ("acts" if len(same) == 1 else "act")
            + " at once"
        ),
    )


CLOSURES = {
    ClosureKind.EXACT: "Laws are exact: fields are Gaussian, and their moments have closed forms",
    ClosureKind.QUADRATURE: "Laws are integrated: averages are quadratures, which are refined until they converge",
    ClosureKind.SAMPLED: "Laws are sampled: averages are means over independent sites, with errors from replicates",
}


def _of_method(record: Method) -> Particulars:
    for one in record.sectors:
        yield CLOSURES[one.closure], words("sites of ", Math(latex(one.sector)), f": {one.reason}")


def _of_probe(record: ProjectedProbe) -> Particulars:
    if record.differing:
        yield (
            "Sites with different traits are solved separately: their response conditional on the traits is averaged "
            "over the traits",
            words(f"used for {counted(len(record.differing), 'spectral field')}"),
        )
    yield None, words("correlations and responses of the probe depend on differences of ", Math(latex(TAU)), " only")
    kinds = [unknown.kind for unknown in record.unknowns]
    if "C" in kinds:
        yield (
            "Stein's lemma: an average of a Gaussian noise times a field is its covariance times a mean response",
            words(
                f"used for {counted(kinds.count('C'), 'overlap')} of the probe with training fields; the noises are "
                "Gaussian whether or not the fields are"
            ),
        )
    if "R" in kinds:
        yield (
            "Mean responses of the probe to training noises close by differentiating its equations by them",
            words(f"used for {counted(kinds.count('R'), 'response')}"),
        )
    if not kinds:
        yield None, words("training adds no spike to the probed matrix: no projection is needed")


def _of_blocks(record: BlockMatrix) -> Particulars:
    if record.labels:
        yield (
            "An outlier is where the linear equations for the overlaps have a solution without a source",
            words("it is a zero of ", Math(r"\det A(z)"), f", with {counted(len(record.labels), 'kind')} of unknowns"),
        )


def _of_pencil(record: Pencil) -> Particulars:
    reduced = "Reduction: groups of unknowns with one scalar each that form a cycle make one eigenproblem free of z"
    for cycle in record.cycles:
        related = "inverted along a polynomial relation" if cycle.known else "inverted along the real axis"
        exact = "with an inverse in closed form" if cycle.inverse is not None else related
        yield reduced, words(f"{counted(len(cycle.groups), 'group')}, one scalar map {exact}")
    if record.rest:
        yield (
            "No such reduction exists for some unknowns: their outliers are zeros of a nonlinear eigenproblem in z",
            words(f"{counted(len(record.rest), 'unknown')}"),
        )


def _of_bulk(record: Bulk) -> Particulars:
    branch = (
        "Physical branch: the resolvent is the solution that is 1/z at infinity, continued without crossing the bulk"
    )
    if record.curve is None:
        yield branch, words("the response equations are followed by Newton continuation; no curve was eliminated")
        return
    degree = sp.Poly(record.curve, record.projected.resolvent).degree()
    closed = ", and it is known in closed form" if record.resolvent is not None else ""
    yield branch, words("chosen among ", Math(str(degree)), f" roots of the curve{closed}")


def _sectors(model: Model) -> tuple[Sector, ...]:
    return tuple(sorted(atoms(model, Sector), key=lambda s: (s.ratio != 1, s.name)))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
