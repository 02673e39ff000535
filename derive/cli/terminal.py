"""What a command writes reaches the terminal as text: names out of files never move a cursor or change a colour."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from derive.support.plain_words import printable


class PrintableStream:
    """A text stream that writes control characters as escapes; `raw` is the stream without this."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(printable(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Let this process write printable text only."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (PrintableStream(raw_stream(one)) for one in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw_stream(stream: TextIO) -> TextIO:
    """The stream for a program that draws on the terminal itself, of what it has made printable."""
    return stream.raw if isinstance(stream, PrintableStream) else stream
