"""Text streams that escape control characters, so that names from files cannot control the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from derive.support.plain_words import printable


class PrintableStream:
    """A text stream that writes control characters as escapes; `raw` is the wrapped stream."""

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
    """Escape control characters on stdout and stderr in this block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (PrintableStream(raw_stream(one)) for one in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw_stream(stream: TextIO) -> TextIO:
    """Return the wrapped stream, for a library that draws on the terminal and escapes text itself."""
    return stream.raw if isinstance(stream, PrintableStream) else stream
