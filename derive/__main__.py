"""The command `derive` (`python -m derive`), which reports an interrupt from its first import on in one sentence."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line; a KeyboardInterrupt while its modules are imported ends it with exit code 130.

    Once a command is done, an interrupt no longer changes its exit code.
    """
    try:
        from derive.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.stderr.flush()
        os._exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
