"""Verify hand-written formulas (claims) against the derivation, and their counterexamples with the solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from derive.api.points import ProblemPoint
from derive.api.solvers import DeclarationSource
from derive.cells.verdicts import PROVED, REFUTED, STATUSES, UNDECIDED, weakest
from derive.claims import ClaimsFile, ClaimVerdict, check_claims, load_claims, project_claims
from derive.claims.checking import model_of
from derive.claims.counterexamples import Counterexample
from derive.errors import DeriveError
from derive.inputs.problems import problem_of
from derive.language.model import Model
from derive.pipeline import derive_model
from derive.results import Solution
from derive.support.progress import Progress
from numerics.options import BARE
from numerics.support.formatting import html_table

RESOLVED = 1e-6
"""Relative tolerance at which numbers of solver and derivation are equal, and beyond which an outlier is separate from
an edge."""


class Confirmation:
    """The solver of a model, evaluated at counterexamples."""

    def __init__(self, model: Model):
        self.model, self.source = model, DeclarationSource("")

    def __call__(self, against: Counterexample) -> tuple[bool | None, str]:
        """Return whether the solver agrees with the derivation (None if it has no result), and its result as text."""
        values = {name: int(v) if v.is_Integer else float(v) for name, v in against.point}
        try:
            if against.what == "threshold":
                return self._no_threshold(against, values)
            return self._same(against, self._solved(values))
        except DeriveError as error:
            return None, f"`derive solve` gives no number at the counterexample: {error}"

    def _solved(self, values: dict[str, Any]) -> Solution:
        point = ProblemPoint.of(self.source, problem_of(self.model, values), None)
        solution = point.solved(BARE)
        if not solution:
            raise DeriveError("it fails its own consistency check")
        return solution

    def _same(self, against: Counterexample, solution: Solution) -> tuple[bool | None, str]:
        expected, edges = np.array(against.values), np.ravel(solution.bulk_edges)
        what = f"the {against.what}"
        if against.what == "edges":
            solved, expected = (_without_contacts(places, edges) for places in (edges, expected))
        elif against.what == "outliers":
            solved, expected = (_away(places, edges) for places in (solution.outliers, expected))
            if not against.of:  # of one eigenproblem only
                solved = np.array([z for z in solved if len(expected) and _near(z, expected, edges)])
        elif against.what == "atom":
            what = f"the mass at {against.of:g}"
            masses = [mass for place, mass in solution.layer().atoms if _near(place, np.array([against.of]), edges)]
            solved = np.array([sum(masses)])
        else:
            what, solved = f"moment {against.of}", solution.layer().moments[against.of : against.of + 1]
            if not len(solved):
                return None, ""
        same = len(solved) == len(expected) and all(
            _near(a, np.array([b]), edges) for a, b in zip(solved, expected, strict=True)
        )
        return same, f"`derive solve` gives {what}: {', '.join(f'{x:.6g}' for x in solved) or 'none'}"

    def _no_threshold(self, against: Counterexample, values: dict[str, Any]) -> tuple[bool | None, str]:
        if not against.values:
            return None, ""
        counts = [len(self._solved({**values, against.of: side}).outliers) for side in against.values]
        low, high = (f"{against.of} = {side:.6g}" for side in against.values)
        return counts[0] == counts[1], f"`derive solve` gives {counts[0]} outliers at {low} and {counts[1]} at {high}"


def _near(value: float, others: np.ndarray, edges: np.ndarray) -> bool:
    """Return whether a number equals one in a list, within the solver's resolution."""
    scale = 1 + max(map(abs, (*edges, value)))
    return bool(np.min(np.abs(others - value)) <= RESOLVED * scale)


def _without_contacts(places: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the edges in ascending order, without points where two bands touch."""
    ends = sorted(places)
    touch = [_near(a, np.array([b]), edges) for a, b in zip(ends[1::2], ends[2::2], strict=False)]
    return np.array([z for i, z in enumerate(ends) if not any(touch[max(0, (i - 1) // 2) : (i + 1) // 2])])


def _away(places: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return, in ascending order, the outliers that are separated from the edges."""
    return np.array([z for z in sorted(places) if not len(edges) or not _near(z, edges, edges)])


@dataclass(frozen=True)
class VerifiedClaim:
    """The verdict on one claim: "proved", "supported", "refuted" with a counterexample, or "not decided".

    `derive verify --help` defines each of them.
    """

    setting: str
    of: str
    name: str
    status: str
    detail: str

    @property
    def proved(self) -> bool:
        return self.status == PROVED

    @property
    def refuted(self) -> bool:
        return self.status == REFUTED


@dataclass(frozen=True, repr=False)
class Verdicts:
    """The verdicts on all checked claims; truthy if there are some and all are proved.

    without: models that have no claims.
    """

    claims: tuple[VerifiedClaim, ...]
    without: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.claims) and all(claim.proved for claim in self.claims)

    def __iter__(self) -> Iterator[VerifiedClaim]:
        return iter(self.claims)

    def __len__(self) -> int:
        return len(self.claims)

    def count(self, status: str) -> int:
        """Return the number of claims that are "proved", "supported", "not decided" or "refuted"."""
        return sum(claim.status == status for claim in self.claims)

    @property
    def weakest(self) -> str:
        """The weakest status of all claims."""
        return weakest(claim.status for claim in self.claims)

    @property
    def summary(self) -> str:
        """A one-line summary."""
        others = [f"{self.count(status)} {status}" for status in STATUSES[1:] if self.count(status)]
        return ", ".join([f"{self.count(PROVED)} of {len(self.claims)} claims proved", *others])

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with the keys that `derive verify --json` prints."""
        return {
            "claims": [dict(vars(claim)) for claim in self.claims],
            **{status.replace(" ", "_"): self.count(status) for status in STATUSES},
            "without_claims": list(self.without),
        }

    def lines(self, everything: bool = False) -> list[str]:
        """Return counts by setting, and each claim that is not proved; with `everything`, each claim."""
        lines = []
        groups: dict[str, list[VerifiedClaim]] = {}
        for claim in self.claims:
            groups.setdefault(claim.setting, []).append(claim)
        for setting, claims in groups.items():
            lines.append(f"{setting}: {sum(claim.proved for claim in claims)} of {len(claims)} proved")
            for claim in claims:
                if everything or not claim.proved:
                    of = f" ({claim.of})" if claim.of else ""
                    lines.append(f"  {claim.status}: {claim.name}{of}" + (f" ({claim.detail})" if claim.detail else ""))
        lines += [f"no claims for {name}: no independent check" for name in self.without]
        return [*lines, self.summary] if self.claims else lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(claim.setting, claim.of, claim.name, claim.status, claim.detail) for claim in self.claims]
        return html_table(self.summary, rows, head=("setting", "of", "claim", "status", ""))


def verify(model: Model, target: str, claims: str | None) -> Verdicts:
    """Return the verdicts of `Theory.verify`. target: the name, path or model that was loaded."""
    if claims is not None:
        return check([load_claims(claims)], model, own=True)
    files = [load_claims(path) for path in project_claims()] if target == model.setting else []
    return check([file for file in files if file.model == model.setting], model)


def _confirmed(verdict: ClaimVerdict, solver: Callable[[Counterexample], tuple[bool | None, str]]) -> ClaimVerdict:
    """Return a verdict with the solver's result at its counterexample; "not decided" where they disagree."""
    if verdict.counterexample is None:
        return verdict
    same, detail = solver(verdict.counterexample)
    if same is False:
        at = ", ".join(f"{name} = {value}" for name, value in verdict.counterexample.point)
        expected = ", ".join(f"{x:.6g}" for x in verdict.counterexample.values) or "none"
        detail = f"internal error: at {at} the derivation gives {verdict.counterexample.what} {expected}, but {detail}"
        return replace(verdict, status=UNDECIDED, detail=detail)
    return replace(verdict, detail=f"{verdict.detail}; {detail}") if detail else verdict


def check(
    files: Sequence[ClaimsFile],
    model: Model | None = None,
    everything: Sequence[str] = (),
    own: bool = False,
    progress: Progress | None = None,
) -> Verdicts:
    """Return verdicts on all claims of some files, each against its named model, or against `model` if they are `own`.

    everything: the models that should have claims.
    """
    found: list[VerifiedClaim] = []
    for number, file in enumerate(files):
        if progress is not None:
            progress(number / len(files), file.model)
        named = model if own and not file.choices and not file.layer else None
        derivation = None if named is None else derive_model(named)
        picked = (*file.choices, *((("layer", file.layer),) if file.layer else ()))
        chosen = " ".join(f"{key}={value}" for key, value in picked)
        setting = file.model if model is None else model.setting
        verdicts = check_claims(file, derivation)
        refuted = [v for v in verdicts if v.counterexample is not None]
        if refuted:
            solver = Confirmation(named or model_of(file))
            verdicts = [_confirmed(v, solver) for v in verdicts]
        found += [VerifiedClaim(setting, chosen, v.name, v.status, v.detail) for v in verdicts]
    checked = {verdict.setting for verdict in found}
    wanted = everything or ([model.setting] if model is not None else [])
    return Verdicts(tuple(found), tuple(name for name in wanted if name not in checked))
