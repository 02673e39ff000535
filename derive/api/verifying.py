"""Verify hand-written formulas (claims) against the derivation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from derive.cells.verdicts import PROVED, REFUTED, STATUSES, UNDECIDED, weakest
from derive.claims import ClaimsFile, ClaimVerdict, check_claims, load_claims, project_claims
from derive.claims.checking import model_of
from derive.claims.counterexamples import Counterexample
from derive.language.model import Model
from derive.pipeline import derive_model
from numerics.support.formatting import html_table


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

    without: models without an independent check.
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
    """Return the verdicts of `Theory.verify`; target: the name, path or model that was loaded."""
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
    progress: Callable[[float, str], None] | None = None,
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
            from derive.api.confirming import Confirmation  # the solver starts only where it is needed

            solver = Confirmation(named or model_of(file))
            verdicts = [_confirmed(v, solver) for v in verdicts]
        found += [VerifiedClaim(setting, chosen, v.name, v.status, v.detail) for v in verdicts]
    checked = {verdict.setting for verdict in found}
    wanted = everything or ([model.setting] if model is not None else [])
    return Verdicts(tuple(found), tuple(name for name in wanted if name not in checked))
