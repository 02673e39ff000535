"""How every command ends: one sentence on stderr for an error, and the exit code that belongs to it."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from derive.errors import DeriveError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class DeriveGroup(click.Group):
    """A click group that reports errors as single sentences and keeps commands in the order of a day's work."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self.commands:
            near = difflib.get_close_matches(name, list(self.commands), n=1)
            hint = f" (did you mean {near[0]}?)" if near else f"; the commands are {', '.join(self.commands)}"
            raise click.UsageError(f"there is no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if "_DERIVE_COMPLETE" in os.environ:
            from derive.cli.completion import switch_on

            switch_on()
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow ends in a sentence of ours, not in NumPy's
        try:
            result = super().main(args, prog_name or "derive", complete_var, standalone_mode=False, **extra)
        except DeriveError as error:
            _fail(str(error), error.exit_code)
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx is not None else "derive"
            _fail(f"{error.format_message().rstrip('.')} (see {path} --help)", 2)
        except click.ClickException as error:
            _fail(error.format_message(), 2)
        except click.Abort as abort:
            _fail(str(abort.__cause__ or "") or "interrupted", 130)
        sys.exit(result if isinstance(result, int) else 0)


def _fail(sentence: str, code: int) -> NoReturn:
    click.echo(f"error: {' '.join(sentence.split())}", err=True)
    sys.exit(code)
