"""The command that verifies hand-written claims against the derivation."""

from __future__ import annotations

from dataclasses import replace

import click

from derive.cli import completion
from derive.cli.output import json_option, print_json, progress_bar
from derive.cli.problem import OneOf

EXIT_CODES = {"proved": 0, "refuted": 1, "not decided": 4, "supported": 5}
"""By the weakest verdict: a refuted claim, else one that is not decided, else one that is only supported."""


HELP = """
Check hand-written formulas against the derivation. The output counts the claims by setting and lists those that fail.

A claim is a resolvent, a block of A(z), an edge, a threshold or a series coefficient as your paper prints it.

\b
  proved       exact for every value of the region, or of the declared domains where there is none
  supported    the algebra is exact, but the branch or edge was identified only at sample points
  refuted      with a counterexample, and the result of `derive solve` there
  not decided  with the methods that were tried (agreement to 50 digits is not a proof)

A formula that holds for some parameters only needs a region: inequalities joined by `and`. The exit code is 0 if
all claims are proved, 1 if one is refuted, 4 if none is refuted but one is not decided, 5 if all others are proved
and one is only supported. The derivation never reads claims.
Without arguments all claims of the project are checked. With --claims the formulas of that file
are checked, against the named model or else the model that the file names.

\b
Examples:
  derive verify
  derive verify SETTING
  derive verify --claims my_paper.toml
  derive verify my_model.py --claims my_paper.toml --json
  derive verify SETTING --claims my_paper.toml --notation paper

\b
A claims file:
  model = "my_model.py"
  [[claim]]
  name = "resolvent of the bulk"
  kind = "curve"
  value = "nu - G*(nu*z - nu + 1) + z*G**2"
  [[claim]]
  name = "outlier"
  kind = "outlier"
  value = "(1 + l)*(1 + c*l)/(c*l)"
  region = "l > 1/sqrt(c)"

\b
Keys of --json:
  claims                   setting, of (choices and layer of a family), name, status (proved, supported,
                           not decided, refuted), detail
  proved, supported, not_decided, refuted
                           how many there are of each
  without_claims           models for which there is no independent check
"""


@click.command(short_help="Check hand-written formulas against the derivation.", help=HELP)
@click.argument("target", metavar="[SETTING|FILE]", required=False, shell_complete=completion.targets)
@click.option(
    "--claims",
    "claims_file",
    metavar="FILE",
    shell_complete=completion.files(".toml"),
    help="A claims file of your own, in TOML.",
)
@click.option(
    "--notation",
    type=OneOf("model", "paper"),
    help="The names in which the claims of --claims are written; by default those that the file states, or "
    "those of the model.",
)
@click.option("-v", "--verbose", is_flag=True, help="One line per claim, including proved ones.")
@json_option
def verify(target: str | None, claims_file: str | None, notation: str | None, verbose: bool, as_json: bool) -> None:
    """Check hand-written formulas against the derivation: their number by setting, and each one that fails."""
    from derive.claims import load_claims, project_claims
    from derive.inputs.loading import is_file_target, load_model, setting_names

    if target is not None and target.endswith(".toml") and claims_file is None:
        target, claims_file = None, target
    model = load_model(target) if target is not None else None
    if claims_file is not None:
        files = [load_claims(claims_file)]
        files = files if notation is None else [replace(files[0], notation=notation)]
    elif target is not None and is_file_target(target):
        files = []
    else:
        files = [load_claims(path) for path in project_claims()]
    if claims_file is None and model is not None:
        files = [file for file in files if file.model == model.setting]
    everything = [file.model for file in files] if claims_file else setting_names()
    with progress_bar("verifying", as_json) as progress:
        from derive.api.verifying import check

        wanted = everything if model is None else [model.setting]
        verdicts = check(files, model, wanted, own=claims_file is not None, progress=progress)
    if as_json:
        print_json(verdicts.as_dict())
    else:
        click.echo("\n".join(verdicts.lines(everything=verbose)))
    click.get_current_context().exit(EXIT_CODES[verdicts.weakest])
