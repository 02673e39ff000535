"""The command that joins the journals of a sweep's shards."""

from __future__ import annotations

from pathlib import Path

import click

from derive.cli import completion


@click.command(short_help="Join the journals of the shards of a sweep.")
@click.argument("out", metavar="OUT", shell_complete=completion.files(".journal"))
@click.argument("journals", metavar="JOURNAL...", nargs=-1, required=True, shell_complete=completion.files(".journal"))
def merge(out: str, journals: tuple[str, ...]) -> None:
    """Join journals of one sweep into OUT, in the order of its parts.

    Journals of another declaration, other parameters, options or versions are refused, and so are two that disagree
    on a number. Then run the command of the sweep with --journal OUT and without --shard: it computes what is still
    missing and writes the table.

    \b
    Examples:
      derive solve my_model.py eta=0.1:0.5:20 --shard 1/2 --journal part1.journal
      derive merge all.journal part1.journal part2.journal
      derive solve my_model.py eta=0.1:0.5:20 --journal all.journal --out sweep.csv
    """
    from derive.sweeps.journal import merged, write_merged

    about, units = merged([Path(name) for name in journals])
    write_merged(Path(out), about, units)
    click.echo(f"wrote {out}: {len(units)} parts of {len(journals)} journals")
