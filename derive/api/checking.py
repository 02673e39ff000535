"""Check one declaration against the laws that every declaration must obey."""

from __future__ import annotations

from derive.api.solvers import DeclarationSource
from derive.inputs.problems import Problem
from derive.results.check import Check, LawTried
from derive.support.progress import Progress
from numerics.options import Options


def check(
    source: DeclarationSource, problem: Problem, quick: bool, simulate: bool, seed: int, progress: Progress | None
) -> Check:
    """See `Theory.check`."""
    from derive.selftest.checking import Subject, laws_for, try_laws
    from derive.selftest.engine import TheoryNumbers, classify_errors, numbers_of
    from derive.selftest.reading import draft_of_model

    def own() -> TheoryNumbers:
        with classify_errors():
            solver = source.solver(problem.model, None)
            return numbers_of(solver, problem.model, problem.inputs, labels=problem.layers)

    subject = Subject(draft_of_model(problem.model, problem.inputs, problem.layers), own)
    laws = laws_for(subject, quick, simulate)
    found: list[LawTried] = []
    if progress is not None:
        progress(0.0, laws[0].name)
    for law, outcome, seconds in try_laws(laws, subject.draft, seed, quick):
        found.append(LawTried(law.name, outcome.status, outcome.reason, outcome.texts, seconds))
        if progress is not None:
            following = laws[len(found)].name if len(found) < len(laws) else ""
            progress(len(found) / len(laws), following)
    return Check(source.made("check", problem, Options(seed=seed)), tuple(found))
