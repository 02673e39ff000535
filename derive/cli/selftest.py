"""The command that checks the laws on random declarations."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import json_option, print_json, print_table, progress_bar
from derive.cli.problem import takes
from derive.support import interrupts
from derive.support.plain_words import counted
from numerics.options import options_of

if TYPE_CHECKING:
    from derive.selftest.running import Tally, Violation

QUICK = 40
"""Declarations of the short mode."""
TELL_AFTER = 60.0
"""Seconds between progress lines without a terminal."""


HELP = """
Test laws that every declaration must obey, on declarations drawn at random.

Each declaration is solved, or must be refused in one sentence. It is then rewritten in ways that must not change any
number: symbols renamed, equations reordered, an intermediate named or written out, a Gaussian matrix as the sum of
two, another sector as the base, a transpose declared, a parameter at zero against the term left out, one class against
none, more steps, a sampled pass against the exact one, numbers instead of parameters, functions of time written out
step by step. The averaged action is compared with the cavity argument, generated code with exact arithmetic, and the
theory with simulations at two sizes. `derive check FILE` tries these laws on your own file.

All rewritings are first applied together, in random order. If that breaks a law or is refused, they are applied one
at a time. A declaration that breaks a law is reported at once, reduced as far as possible, and printed in a form that
`derive solve` runs, with the two numbers. The exit code is 1 if any law is violated.

Each declaration is drawn for a pair of features, such as a parameter at zero and a probe at the first step; all pairs
are drawn in turn. With --vocabulary nothing is solved: a table shows how often each feature occurs.

A declaration takes about five seconds, or less than half a second with --laws 0 --no-simulate, which is exact
arithmetic only. A run ended by Ctrl-C or `timeout` prints its findings and how to resume. Simulations raise
a false alarm in one of ten thousand runs, whatever their length.

\b
Keys of --json:
  seed, first, checked     which declarations were drawn
  laws                     name to how often it held, does not apply, was not decided, one is refused, broke
  violations               law, declaration, reason, texts: the smallest of each kind, shortest first
  refusals                 sentence, without names and numbers, to how many declarations were refused with it
  differences              number, mean (in its standard errors) and spread of theory minus simulation
With --vocabulary:
  seed, declarations       which declarations were drawn
  frequencies              feature to the share of declarations that have it
  pairs                    how many pairs of features were met, and how many there are

\b
Examples:
  derive selftest --quick
  derive selftest --declarations 5000 --seed 3
  derive selftest --seed 3 --first 117 --declarations 118      one declaration of that run again
  derive selftest --vocabulary --declarations 300              what is drawn, and how often
"""


@click.command(short_help="Test laws that every declaration must obey, on random ones.", help=HELP)
@click.option(
    "--declarations",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="How many declarations to draw.",
)
@takes({"seed": options_of("check")["seed"]})
@click.option(
    "--first",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="K",
    help="Number of the first declaration of the seed: to resume a run, or to repeat one declaration.",
)
@click.option(
    "--laws",
    "compiled",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="K",
    help="Number of laws per declaration that compile a solver: first all rewritings at once, then some drawn "
    "for each declaration. Laws that compile nothing are always tried. With 0 nothing is compiled.",
)
@click.option(
    "--simulate/--no-simulate", default=True, show_default=True, help="Compare each with simulations at two sizes."
)
@click.option(
    "--shrink",
    "shrinking",
    type=click.IntRange(min=0),
    default=120,
    show_default=True,
    metavar="N",
    help="How many smaller declarations to try for each kind of violation.",
)
@click.option(
    "--quick",
    is_flag=True,
    help=f"A short run of about a minute: {QUICK} declarations, nothing compiled, no simulation.",
)
@click.option(
    "--vocabulary",
    is_flag=True,
    help="Only count the declarations in which each word, argument, function and kind of value occurs.",
)
@json_option
def selftest(
    declarations: int,
    seed: int,
    first: int,
    compiled: int,
    simulate: bool,
    shrinking: int,
    quick: bool,
    vocabulary: bool,
    as_json: bool,
) -> None:
    """Test laws that every declaration must obey, on declarations drawn at random."""
    if quick:
        declarations, compiled, simulate = min(declarations, first + QUICK), 0, False
    if first >= declarations:
        raise click.UsageError(f"--first {first} leaves nothing of --declarations {declarations}; take a smaller one")
    if vocabulary:
        _count(declarations, seed, first, as_json)
        return
    tally, interrupted = _tried(
        declarations, seed, first, as_json, compiled=compiled, simulate=simulate, shrinking=shrinking
    )
    _report(tally, seed, first, as_json)
    if interrupted:
        more = f"--laws {compiled}{'' if simulate else ' --no-simulate'}"
        click.echo(
            f"interrupted; resume with: derive selftest --declarations {declarations} --seed {seed} "
            f"--first {first + tally.checked} {more}",
            err=True,
        )
        click.get_current_context().exit(130)
    if tally.broken:
        click.get_current_context().exit(1)


def _tried(declarations: int, seed: int, first: int, quiet: bool, **how: Any) -> tuple[Tally, bool]:
    """Test the laws with a progress report; return the findings, and whether the run was interrupted."""
    from derive.selftest.engine import keep_nothing
    from derive.selftest.running import Tally, run

    keep_nothing()
    tally, began = Tally(), time.monotonic()
    last = began
    with progress_bar("selftest", quiet) as progress:

        def tell(number: int, so_far: Tally) -> None:
            nonlocal last
            done, left, now = number + 1 - first, declarations - number - 1, time.monotonic()
            text = (
                f"{number + 1} of {declarations}, {_duration((now - began) / done * left)} left, {so_far.broken} broken"
            )
            if progress is not None:
                progress(done / (declarations - first), text)
            elif now - last > TELL_AFTER:
                last = now
                click.echo(text, err=True)
            interrupts.check()

        def tell_broken(violation: Violation) -> None:
            what = f"broken: {violation.law} (declaration {violation.declaration}): {violation.reason}"
            click.echo("\n\n".join((what, *violation.texts)), err=True)

        if progress is not None:
            progress(0.0, f"{first} of {declarations}")
        try:
            run(declarations, seed, first=first, **how, tell=tell, tell_broken=tell_broken, tally=tally)
        except KeyboardInterrupt:
            return tally, True
    return tally, False


def _count(declarations: int, seed: int, first: int, as_json: bool) -> None:
    """Print how often each feature occurs in the declarations of a seed."""
    from derive.selftest.running import draft_of
    from derive.selftest.vocabulary import counted, features
    from derive.selftest.writing import write

    frequencies = counted(write(draft_of(seed, number)) for number in range(first, declarations))
    shares = {feature: frequencies.counts[feature] / frequencies.declarations for feature in features()}
    met, every = frequencies.coverage()
    if as_json:
        pairs = {"met": met, "of": every}
        print_json({"seed": seed, "declarations": frequencies.declarations, "frequencies": shares, "pairs": pairs})
        return
    rows = [(feature, f"{100 * share:.1f} %") for feature, share in shares.items()]
    print_table(f"{frequencies.declarations} declarations of seed {seed}", ("feature", "have it"), rows)
    click.echo(f"{met} of {every} pairs of features were met; {len(frequencies.missing)} features never")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _report(tally: Tally, seed: int, first: int, as_json: bool) -> None:
    from derive.selftest.laws import ALONE, BROKE, HELD, IDLE, UNDECIDED

    violations = sorted(tally.violations, key=lambda v: (v.length, v.law))
    statuses = (HELD, IDLE, UNDECIDED, ALONE, BROKE)
    bias = tally.bias()
    if as_json:
        differences: dict[str, Any] = {"number": len(tally.differences), "mean": None, "spread": None}
        if bias is not None:
            differences |= {"mean": bias[0], "spread": bias[1]}
        print_json(
            {
                "seed": seed,
                "first": first,
                "checked": tally.checked,
                "laws": {law: {s: count[s] for s in statuses} for law, count in tally.counts.items()},
                "violations": [
                    {"law": v.law, "declaration": v.declaration, "reason": v.reason, "texts": list(v.texts)}
                    for v in violations
                ],
                "refusals": dict(tally.refusals.most_common()),
                "differences": differences,
            }
        )
        return
    rows = [(law, *(str(count[s]) for s in statuses)) for law, count in tally.counts.items()]
    if rows:
        print_table(f"{tally.checked} declarations of seed {seed}", ("law", *statuses), rows)
    if tally.refusals:
        refused = [(sentence, str(count)) for sentence, count in tally.refusals.most_common()]
        print_table(f"{tally.refusals.total()} declarations were refused", ("sentence", "times"), refused)
    if bias is not None:
        click.echo(
            f"{len(tally.differences)} differences between theory and simulation: mean {bias[0]:+.2f} standard errors, "
            f"spread {bias[1]:.2f}"
        )
    for violation in violations:
        click.echo(f"\nbroken: {violation.law} (declaration {violation.declaration})\n{violation.reason}")
        for text in violation.texts:
            click.echo(f"\n{text.rstrip()}")
    click.echo(counted(tally.broken, "violation") if tally.broken else "no law was broken")
