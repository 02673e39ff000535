"""Errors as one sentence on stderr, with the exit code of their kind."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from derive.cli.output import printable_streams
from derive.errors import DeriveError
from derive.support import interrupts
from derive.support.plain_words import one_sentence

INTERRUPTED = interrupts.EXIT_CODE
SWEEPS = ("sweep", "scan", "grid")
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


PLOTS = ("plot", "draw", "figure", "show-plot")
"""Names of commands that other programs have for drawing."""


class DeriveGroup(click.Group):
    """A click group that reports errors as single sentences and lists commands in the order of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self.commands:
            if name in SWEEPS:
                raise click.UsageError(
                    f"there is no command {name!r}: solve, simulate and compare take lists and ranges, as in "
                    "derive solve SETTING nu=0.5,1,2 eta=0.1:0.5:9",
                    ctx,
                )
            if name in PLOTS:
                raise click.UsageError(
                    f"there is no command {name!r}: solve, simulate, compare and spectrum draw with --plot, as in "
                    "derive solve SETTING --plot FILE.png",
                    ctx,
                )
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
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow is reported as an error of ours
        alone = standalone_mode and args is None  # not where a program calls this function
        with interrupts.handled(alone), printable_streams():
            code = self._ended(args, prog_name, complete_var, extra)
        if alone:
            interrupts.end(code)
        sys.exit(code)

    def _ended(
        self, args: Sequence[str] | None, prog_name: str | None, complete_var: str | None, extra: dict[str, Any]
    ) -> int:
        """Run a command, report an error, and return the exit code."""
        try:
            result = super().main(args, prog_name or "derive", complete_var, standalone_mode=False, **extra)
        except DeriveError as error:
            return _failed(error.on_the_command_line, error.exit_code)
        except click.NoSuchOption as error:
            return _failed(_missing_option(error, sys.argv[1:] if args is None else args), 2)
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx is not None else "derive"
            return _failed(f"{error.format_message().rstrip('.')} (see {path} --help)", 2)
        except click.ClickException as error:
            return _failed(error.format_message(), 2)
        except click.Abort as abort:
            return _failed(str(abort.__cause__ or "") or "interrupted", INTERRUPTED)
        except OSError as error:
            return _failed(f"cannot write ({error.strerror or error}); free some space, or write elsewhere", 2)
        except Exception:
            if not interrupts.happened():
                raise
            return _failed("interrupted", INTERRUPTED)  # a library converted the KeyboardInterrupt
        return result if isinstance(result, int) else 0


def _missing_option(error: click.NoSuchOption, args: Sequence[str]) -> str:
    """Return an error message about an unknown option: a misspelt option, or a parameter written like an option."""
    path = error.ctx.command_path if error.ctx is not None else "derive"
    takes_values = error.ctx is not None and any(p.name == "pairs" for p in error.ctx.command.params)
    if error.possibilities or not takes_values:
        return f"{error.format_message().rstrip('.')} (see {path} --help)"
    place = next((k for k, word in enumerate(args) if word.startswith(error.option_name)), 0)
    name, equals, value = args[place].lstrip("-").partition("=")
    known = error.ctx.find_root().command if error.ctx is not None else None
    having = [
        command
        for command, other in getattr(known, "commands", {}).items()
        if any(f"--{name}" in param.opts + param.secondary_opts for param in other.params)
    ]
    if having:
        return f"{path} has no option --{name}; {', '.join(having)} {'has' if len(having) == 1 else 'have'} it"
    value = value if equals else args[place + 1] if place + 1 < len(args) else "VALUE"
    return f"there is no option {args[place]!r}; parameters have no dashes: write {name}={value} (see {path} --help)"


def _failed(sentence: str, code: int) -> int:
    """Report an error; return its exit code."""
    if interrupts.happened():
        interrupts.told()
        code = INTERRUPTED
    with suppress(OSError):
        click.echo(f"error: {one_sentence(sentence)}", err=True)
    return code
